/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a switch has besides: SwitchInfo (IBA 14.2.5.4), the linear and the
 * multicast forwarding table (14.2.5.10, 14.2.5.12). Port 0 is a base port.
 */
#include "mad_int.h"

#define LFT_BLOCK 64
#define MFT_BLOCK 32
#define MFT_PORTS 16 /* of a position */
#define STATE_CHANGE 0x04
/* Byte 16: P_Keys are enforced both ways; raw packets never pass. */
#define ENFORCEMENT 0xf0

/* A top that cannot be is told, and the rest is taken. */
static uint16_t set_switch_info(HcaSwitchInfo *info, const uint8_t *data)
{
    uint16_t top = get_be16(data + 6);

    info->default_port = data[8];
    info->default_mcast_primary = data[9];
    info->default_mcast_secondary = data[10];
    info->life_time = data[11] >> 3;
    if (data[11] & STATE_CHANGE) {
        info->port_state_change = false; /* writing 1 clears it */
    }
    info->mft_top = get_be16(data + 18);
    if (top >= HCA_LFT_SIZE) {
        return HCA_MAD_BAD_VALUE;
    }
    info->lft_top = top;
    return HCA_MAD_OK;
}

uint16_t hca_sma_switch_info(HcaNode *node, HcaSmp *smp)
{
    HcaSwitchInfo *info = &node->switch_info;
    uint8_t *p = smp->answer;
    uint16_t status = HCA_MAD_OK;

    if (smp->set) {
        status = set_switch_info(info, smp->data);
    }
    put_be16(p, HCA_LFT_SIZE);
    put_be16(p + 4, HCA_MFT_SIZE);
    put_be16(p + 6, info->lft_top);
    p[8] = info->default_port;
    p[9] = info->default_mcast_primary;
    p[10] = info->default_mcast_secondary;
    p[11] = info->life_time << 3 | (info->port_state_change ? STATE_CHANGE : 0);
    put_be16(p + 14, HCA_NODE_PKEYS);
    p[16] = ENFORCEMENT;
    put_be16(p + 18, info->mft_top);
    return status;
}

uint16_t hca_sma_lft(HcaNode *node, HcaSmp *smp)
{
    uint8_t *block;

    if (smp->modifier >= HCA_LFT_SIZE / LFT_BLOCK) {
        return HCA_MAD_BAD_VALUE;
    }
    block = node->lft + smp->modifier * LFT_BLOCK;
    if (smp->set) {
        memcpy(block, smp->data, LFT_BLOCK);
    }
    memcpy(smp->answer, block, LFT_BLOCK);
    return HCA_MAD_OK;
}

uint16_t hca_sma_mft(HcaNode *node, HcaSmp *smp)
{
    unsigned block = smp->modifier & 0x0fffffff;
    unsigned shift = (smp->modifier >> 28) * MFT_PORTS;

    if (block >= HCA_MFT_SIZE / MFT_BLOCK || shift > node->num_ports) {
        return HCA_MAD_BAD_VALUE;
    }
    for (unsigned i = 0; i < MFT_BLOCK; i++) {
        uint64_t *ports = &node->mft[block * MFT_BLOCK + i];

        if (smp->set) {
            *ports &= ~(0xffffull << shift);
            *ports |= (uint64_t)get_be16(smp->data + 2 * i) << shift;
        }
        put_be16(smp->answer + 2 * i, *ports >> shift);
    }
    return HCA_MAD_OK;
}

void hca_switch_tables_reset(HcaNode *node)
{
    node->switch_info = (HcaSwitchInfo) { .port_state_change = true };
    memset(node->lft, HCA_LFT_NO_PORT, HCA_LFT_SIZE);
    memset(node->mft, 0, HCA_MFT_SIZE * sizeof(*node->mft));
}
