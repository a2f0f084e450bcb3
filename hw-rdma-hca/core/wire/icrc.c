/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant CRC (IBA 7.8.1): CRC-32 as Ethernet has it, over the packet from
 * LRH to the pad. What switches and routers may change counts as ones: in a
 * local packet the VL, in a global one the whole LRH (a router writes a new
 * one) and TClass, FlowLabel and HopLmt; in both resv8a of BTH.
 */
#include <libdeflate.h>
#include <string.h>

#include "crc.h"
#include "wire.h"

#define BTH_RESV8A 4

uint32_t hca_icrc_update(uint32_t crc, const void *data, size_t len)
{
    return len ? libdeflate_crc32(crc, data, len) : crc;
}

static void mask_local(uint8_t *lrh)
{
    lrh[0] |= 0xf0;             /* VL */
}

static void mask_global(uint8_t *lrh)
{
    uint8_t *grh = lrh + HCA_LRH_SIZE;

    memset(lrh, 0xff, HCA_LRH_SIZE);
    grh[0] |= 0x0f;             /* TClass, FlowLabel */
    memset(grh + 1, 0xff, 3);
    grh[7] = 0xff;              /* HopLmt */
}

uint32_t hca_icrc_masked_headers(const uint8_t *lrh, bool has_grh)
{
    uint8_t masked[HCA_LRH_SIZE + HCA_GRH_SIZE + HCA_BTH_SIZE];
    size_t bth = HCA_LRH_SIZE + (has_grh ? HCA_GRH_SIZE : 0);

    memcpy(masked, lrh, bth + HCA_BTH_SIZE);
    if (has_grh) {
        mask_global(masked);
    } else {
        mask_local(masked);
    }
    masked[bth + BTH_RESV8A] = 0xff;
    return hca_icrc_update(HCA_ICRC_INIT, masked, bth + HCA_BTH_SIZE);
}
