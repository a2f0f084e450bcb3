/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which ports a packet goes to (IBA 18.2.4, 18.2.5): what the port lets in, the
 * linear and the multicast forwarding table, and the switch itself.
 */
#include "../core/wire/bytes.h"
#include "switch_int.h"

/* What comes in (IBA 7.2.7, 10.9.3) */

uint16_t sw_find_pkey(const HcaNodePort *port, SwPkeyRule *rule, uint16_t pkey)
{
    for (unsigned i = 0; i < HCA_NODE_PKEYS; i++) {
        if (rule(port->pkeys[i], pkey)) {
            return port->pkeys[i];
        }
    }
    return 0;
}

/* The port's table is that of the end node there, which sends. */
static bool pkey_may_enter(const SwPort *in, const SwPacket *packet)
{
    const HcaNodePort *port = &in->sw->node->port[in->number];

    return !port->info.enforce_in ||
           sw_find_pkey(port, hca_pkey_may_send,
                        get_be16(sw_packet_bth(packet) + 2));
}

/* Data: into a port that is Armed or Active, which the first one activates. */
static SwDrop judge_data(SwPort *in, const SwPacket *packet)
{
    HcaNode *node = in->sw->node;
    unsigned state = sw_info(in)->state;

    if (state != HCA_PORT_ARMED && state != HCA_PORT_ACTIVE) {
        return SW_DROP_IN_STATE;
    }
    if (!pkey_may_enter(in, packet)) {
        HcaKeyViolation violation = sw_packet_violation(packet);

        hca_node_bad_pkey(node, in->number, &violation);
        return SW_DROP_IN_PKEY;
    }
    if (state == HCA_PORT_ARMED) {
        hca_node_activate(node, in->number);
    }
    return SW_NO_DROP;
}

static SwDrop judge(SwPort *in, const SwPacket *packet)
{
    if (sw_info(in)->state == HCA_PORT_DOWN || !in->trained) {
        return SW_DROP_IN_STATE;
    }
    return packet->vl == HCA_VL_MGMT ? SW_NO_DROP : judge_data(in, packet);
}

/* Where it goes */

unsigned sw_route(const HcaSwitch *sw, uint16_t lid)
{
    const HcaNode *node = sw->node;
    unsigned port;

    if (hca_node_owns_lid(&node->port[0], lid)) {
        return 0;
    }
    if (!lid || lid >= HCA_LFT_SIZE || lid > node->switch_info.lft_top) {
        return HCA_LFT_NO_PORT;
    }
    port = node->lft[lid];
    /* A way to port 0 that another LID has leads nowhere. */
    return port && port <= sw->num_ports ? port : HCA_LFT_NO_PORT;
}

static uint64_t unicast_ports(const HcaSwitch *sw, const SwPacket *packet,
                              SwDrop *why)
{
    unsigned out = sw_route(sw, packet->dlid);

    if (out == HCA_LFT_NO_PORT) {
        *why = SW_DROP_NO_ROUTE;
        return 0;
    }
    if (out == packet->in) {
        *why = SW_DROP_SAME_PORT;
        return 0;
    }
    return UINT64_C(1) << out;
}

/* From any port to the primary one, and from that to the other one. */
static uint64_t default_port(const HcaSwitch *sw, unsigned in)
{
    const HcaSwitchInfo *info = &sw->node->switch_info;
    unsigned out = in == info->default_mcast_primary
                       ? info->default_mcast_secondary
                       : info->default_mcast_primary;

    return out && out <= sw->num_ports ? UINT64_C(1) << out : 0;
}

static uint64_t group_ports(const HcaSwitch *sw, uint16_t dlid)
{
    unsigned group = dlid - HCA_LID_FIRST_MULTICAST;
    uint16_t top = sw->node->switch_info.mft_top;

    if (group >= HCA_MFT_SIZE || (top && dlid > top)) {
        return 0;
    }
    return sw->node->mft[group] & sw->all;
}

static uint64_t multicast_ports(const HcaSwitch *sw, const SwPacket *packet,
                                SwDrop *why)
{
    uint64_t to = group_ports(sw, packet->dlid);

    if (packet->vl == HCA_VL_MGMT) {
        to = 0; /* SMPs are not for groups */
    } else if (!to) {
        to = default_port(sw, packet->in);
    }
    if (!to) {
        *why = SW_DROP_NO_ROUTE;
        return 0;
    }
    /* One for the port that it came by alone is no loop. */
    return to & ~(UINT64_C(1) << packet->in);
}

static uint64_t ports_of(const HcaSwitch *sw, const SwPacket *packet,
                         SwDrop *why)
{
    *why = SW_NO_DROP;
    if (packet->dlid == HCA_LID_PERMISSIVE) {
        /* To this end of the cable: a directed route. */
        *why = packet->vl == HCA_VL_MGMT ? SW_NO_DROP : SW_DROP_NO_ROUTE;
        return packet->vl == HCA_VL_MGMT;
    }
    return sw_is_multicast(packet->dlid) ? multicast_ports(sw, packet, why)
                                         : unicast_ports(sw, packet, why);
}

uint64_t sw_deliver(HcaSwitch *sw, const SwPacket *packet, uint64_t to)
{
    uint64_t left = 0;

    for (; to; to &= to - 1) {
        unsigned out = __builtin_ctzll(to);

        if (!out) {
            sw_agent_receive(sw, packet);
        } else if (!sw_output(&sw->port[out], packet)) {
            left |= UINT64_C(1) << out;
        }
    }
    return left;
}

void sw_forward(SwPort *in, SwPacket *packet)
{
    HcaSwitch *sw = in->sw;
    SwDrop why = judge(in, packet);
    uint64_t to = 0;

    if (why == SW_NO_DROP) {
        to = ports_of(sw, packet, &why);
    }
    if (why != SW_NO_DROP) {
        sw_drop(in, why);
        return;
    }
    in->left = sw_deliver(sw, packet, to);
    if (in->left) {
        in->held = *packet;
        sw->inputs_held |= UINT64_C(1) << in->number;
    }
}
