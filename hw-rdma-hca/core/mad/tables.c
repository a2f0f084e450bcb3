/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of a port: P_Keys (IBA 14.2.5.7), GUIDs (14.2.5.5), SL to VL (14.2.5.8),
 * VL arbitration (14.2.5.9), and its LED (14.2.5.14).
 */
#include "mad_int.h"

#define PKEYS_PER_BLOCK 32
#define GUIDS_PER_BLOCK 8
#define LED_ON 0x80

/* The port that is asked of; a CA answers for that which it is asked by. */
static HcaNodePort *port_of(HcaNode *node, const HcaSmp *smp, unsigned number)
{
    if (node->type == HCA_NODE_CA) {
        number = smp->in_port;
    }
    return number <= node->num_ports ? &node->port[number] : NULL;
}

static unsigned number_of(const HcaNode *node, const HcaNodePort *port)
{
    return port - node->port;
}

uint16_t hca_sma_pkeys(HcaNode *node, HcaSmp *smp)
{
    HcaNodePort *port = port_of(node, smp, smp->modifier >> 16);
    unsigned block = smp->modifier & 0xffff;
    bool changed = false;

    if (!port || block >= HCA_NODE_PKEYS / PKEYS_PER_BLOCK) {
        return HCA_MAD_BAD_VALUE;
    }
    for (unsigned i = 0; i < PKEYS_PER_BLOCK; i++) {
        uint16_t *key = &port->pkeys[block * PKEYS_PER_BLOCK + i];
        uint16_t to = get_be16(smp->data + 2 * i);

        if (smp->set && *key != to) {
            *key = to;
            changed = true;
        }
        put_be16(smp->answer + 2 * i, *key);
    }
    if (changed) {
        hca_node_tell(node, number_of(node, port), HCA_CHANGED_PKEYS);
    }
    return HCA_MAD_OK;
}

/* The first one is the port's own, and stays. */
uint16_t hca_sma_guids(HcaNode *node, HcaSmp *smp)
{
    HcaNodePort *port = port_of(node, smp, 0);
    bool changed = false;

    if (smp->modifier) {
        return HCA_MAD_BAD_VALUE;
    }
    for (unsigned i = 0; i < GUIDS_PER_BLOCK; i++) {
        uint64_t to = get_be64(smp->data + 8 * i);

        if (smp->set && i && i < port->info.guid_cap && port->guids[i] != to) {
            port->guids[i] = to;
            changed = true;
        }
        put_be64(smp->answer + 8 * i, port->guids[i]);
    }
    if (changed) {
        hca_node_tell(node, number_of(node, port), HCA_CHANGED_GIDS);
    }
    return HCA_MAD_OK;
}

/*
 * Of a switch there is one for each port in and out; of a CA one, whichever
 * ports are named (ibdiagpath names them).
 */
static uint8_t *sl_to_vl(HcaNode *node, const HcaSmp *smp)
{
    unsigned out = smp->modifier & 0xff;
    unsigned in = smp->modifier >> 8;

    if (node->type == HCA_NODE_CA) {
        return smp->modifier >> 16 ? NULL
                                   : node->port[smp->in_port].sl_to_vl[0];
    }
    return out && out <= node->num_ports && in <= node->num_ports
               ? node->port[out].sl_to_vl[in]
               : NULL;
}

uint16_t hca_sma_sl_to_vl(HcaNode *node, HcaSmp *smp)
{
    uint8_t *vl = sl_to_vl(node, smp);

    if (!vl) {
        return HCA_MAD_BAD_VALUE;
    }
    for (unsigned i = 0; i < HCA_NUM_SLS / 2; i++) {
        if (smp->set) {
            vl[2 * i] = smp->data[i] >> 4;
            vl[2 * i + 1] = smp->data[i] & 0xf;
        }
        smp->answer[i] = vl[2 * i] << 4 | vl[2 * i + 1];
    }
    return HCA_MAD_OK;
}

/* The part that is asked for, as far as the port has entries (PortInfo). */
static HcaVlWeight *vl_arb(HcaNode *node, const HcaSmp *smp)
{
    unsigned part = smp->modifier >> 16;
    unsigned number = smp->modifier & 0xffff;
    HcaNodePort *port = port_of(node, smp, number);

    if (!port || !hca_node_has_link(node, number_of(node, port)) || part < 1 ||
        part > HCA_VL_ARB_PARTS || part % 2 == 0) {
        return NULL;
    }
    return port->vl_arb[part - 1];
}

uint16_t hca_sma_vl_arb(HcaNode *node, HcaSmp *smp)
{
    HcaVlWeight *entry = vl_arb(node, smp);

    if (!entry) {
        return HCA_MAD_BAD_VALUE;
    }
    for (unsigned i = 0; i < HCA_VL_ARB_ENTRIES; i++, entry++) {
        if (smp->set) {
            entry->vl = smp->data[2 * i] & 0xf;
            entry->weight = smp->data[2 * i + 1];
        }
        smp->answer[2 * i] = entry->vl;
        smp->answer[2 * i + 1] = entry->weight;
    }
    return HCA_MAD_OK;
}

uint16_t hca_sma_led(HcaNode *node, HcaSmp *smp)
{
    HcaNodePort *port = port_of(node, smp, smp->modifier);

    if (!port) {
        return HCA_MAD_BAD_VALUE;
    }
    if (smp->set) {
        port->led = smp->data[0] & LED_ON;
    }
    smp->answer[0] = port->led ? LED_ON : 0;
    return HCA_MAD_OK;
}
