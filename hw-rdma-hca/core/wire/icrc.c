/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant CRC (IBA 7.8.1): CRC-32 as Ethernet has it, over the packet from
 * LRH to the pad. What switches and routers may change counts as ones: in a
 * local packet the VL, in a global one the whole LRH (a router writes a new
 * one) and TClass, FlowLabel and HopLmt; in both resv8a of BTH.
 *
 * A RoCEv2 packet is taken for one with an LRH of ones in the place of its
 * Ethernet header (annex A17.3.3).
 */
#include <libdeflate.h>
#include <string.h>

#include "crc.h"
#include "crc_way.h"
#include "wire.h"

#define BTH_RESV8A 4

uint32_t hca_icrc_update(uint32_t crc, const void *data, size_t len)
{
    const HcaCrcWay *way = hca_crc_way_for(len);

    if (way->icrc) {
        return ~way->icrc(~crc, data, len);
    }
    return len ? libdeflate_crc32(crc, data, len) : crc;
}

static void mask_local(uint8_t *lrh)
{
    lrh[0] |= 0xf0; /* VL */
}

static void mask_global(uint8_t *lrh)
{
    uint8_t *grh = lrh + HCA_LRH_SIZE;

    memset(lrh, 0xff, HCA_LRH_SIZE);
    grh[0] |= 0x0f; /* TClass, FlowLabel */
    memset(grh + 1, 0xff, 3);
    grh[7] = 0xff; /* HopLmt */
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

static void mask_ipv4(uint8_t *ip)
{
    ip[1] = 0xff;             /* type of service: DSCP, ECN */
    ip[8] = 0xff;             /* time to live */
    memset(ip + 10, 0xff, 2); /* header checksum */
}

static void mask_ipv6(uint8_t *ip)
{
    ip[0] |= 0x0f; /* traffic class, flow label */
    memset(ip + 1, 0xff, 3);
    ip[7] = 0xff; /* hop limit */
}

uint32_t hca_icrc_masked_ip_headers(const uint8_t *ip, bool is_ipv4)
{
    uint8_t masked[HCA_LRH_SIZE + HCA_IPV6_HEADER_SIZE + HCA_UDP_HEADER_SIZE +
                   HCA_BTH_SIZE];
    size_t size = is_ipv4 ? HCA_IPV4_HEADER_SIZE : HCA_IPV6_HEADER_SIZE;
    uint8_t *udp = masked + HCA_LRH_SIZE + size;
    uint8_t *bth = udp + HCA_UDP_HEADER_SIZE;

    memset(masked, 0xff, HCA_LRH_SIZE);
    memcpy(masked + HCA_LRH_SIZE, ip,
           size + HCA_UDP_HEADER_SIZE + HCA_BTH_SIZE);
    if (is_ipv4) {
        mask_ipv4(masked + HCA_LRH_SIZE);
    } else {
        mask_ipv6(masked + HCA_LRH_SIZE);
    }
    memset(udp + 6, 0xff, 2); /* checksum */
    bth[BTH_RESV8A] = 0xff;
    return hca_icrc_update(HCA_ICRC_INIT, masked, bth + HCA_BTH_SIZE - masked);
}
