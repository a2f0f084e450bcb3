/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subnet management interface: what a node does with an SMP by directed
 * route (IBA 14.2.2.1 to 14.2.2.5). A route is a list of ports to leave by; on
 * its way a request writes down the ports that it came in by, and the response
 * leaves by these.
 */
#include "mad_int.h"

/* The three places of a route that an SMP can be at, and beyond. */
#define HOP(mad) ((mad)[HCA_SMP_HOP_POINTER])
#define HOPS(mad) ((mad)[HCA_SMP_HOP_COUNT])

static bool is_permissive(const uint8_t *lid)
{
    return get_be16(lid) == HCA_LID_PERMISSIVE;
}

/*
 * Out of the port that @path has at the pointer. A route may name port 0 of a
 * switch, which leads to the switch itself.
 */
static HcaSmiAction leave(const HcaNode *node, const uint8_t *mad,
                          const uint8_t *path, unsigned *out_port)
{
    *out_port = path[HOP(mad)];
    if (*out_port > node->num_ports ||
        (node->type == HCA_NODE_CA && *out_port == 0)) {
        return HCA_SMI_DROP;
    }
    return HCA_SMI_FORWARD;
}

/* The end of the directed part: @lid is permissive, or where LIDs lead to. */
static HcaSmiAction arrive(const HcaNode *node, const uint8_t *lid)
{
    if (is_permissive(lid)) {
        return HCA_SMI_LOCAL;
    }
    return node->type == HCA_NODE_SWITCH ? HCA_SMI_ROUTE : HCA_SMI_DROP;
}

/*
 * The directed part begins here (C14-9, first case): at the node itself, or at
 * a switch which LIDs have led to.
 */
static HcaSmiAction start(const HcaNode *node, unsigned in_port, uint8_t *mad,
                          unsigned *out_port)
{
    if (in_port && is_permissive(mad + HCA_SMP_DR_SLID)) {
        return HCA_SMI_DROP;
    }
    if (in_port && node->type == HCA_NODE_CA) {
        return HCA_SMI_DROP;
    }
    HOP(mad) = 1;
    return leave(node, mad, mad + HCA_SMP_INITIAL_PATH, out_port);
}

static HcaSmiAction request(const HcaNode *node, unsigned in_port, uint8_t *mad,
                            unsigned *out_port)
{
    unsigned hop = HOP(mad);
    unsigned hops = HOPS(mad);

    if (hops && hop == 0) {
        return start(node, in_port, mad, out_port);
    }
    if (hop && hop < hops) {
        if (node->type != HCA_NODE_SWITCH) {
            return HCA_SMI_DROP;
        }
        mad[HCA_SMP_RETURN_PATH + hop] = in_port;
        HOP(mad)++;
        return leave(node, mad, mad + HCA_SMP_INITIAL_PATH, out_port);
    }
    if (hop == hops) {
        if (hops) {
            mad[HCA_SMP_RETURN_PATH + hop] = in_port;
        }
        HOP(mad)++;
        return arrive(node, mad + HCA_SMP_DR_DLID);
    }
    return hop == hops + 1 ? HCA_SMI_LOCAL : HCA_SMI_DROP;
}

static HcaSmiAction response(const HcaNode *node, uint8_t *mad,
                             unsigned *out_port)
{
    unsigned hop = HOP(mad);
    unsigned hops = HOPS(mad);

    if (hops && hop == hops + 1) {
        HOP(mad)--;
        return leave(node, mad, mad + HCA_SMP_RETURN_PATH, out_port);
    }
    if (hop >= 2 && hop <= hops) {
        if (node->type != HCA_NODE_SWITCH) {
            return HCA_SMI_DROP;
        }
        HOP(mad)--;
        return leave(node, mad, mad + HCA_SMP_RETURN_PATH, out_port);
    }
    if (hop == 1) {
        HOP(mad)--;
        return arrive(node, mad + HCA_SMP_DR_SLID);
    }
    return hop == 0 ? HCA_SMI_LOCAL : HCA_SMI_DROP;
}

HcaSmiAction hca_smi_receive(HcaNode *node, unsigned in_port, uint8_t *mad,
                             unsigned *out_port)
{
    HcaSmiAction action = HCA_SMI_DROP;

    if (HOPS(mad) <= HCA_SMP_MAX_HOPS) {
        action = hca_smp_is_response(mad)
                     ? response(node, mad, out_port)
                     : request(node, in_port, mad, out_port);
    }
    node->counters.route_errors += action == HCA_SMI_DROP;
    return action;
}

/* One of no hops is this node's, or goes by LIDs again (C14-13, third case). */
HcaSmiAction hca_smi_respond(HcaNode *node, uint8_t *mad, unsigned *out_port)
{
    return response(node, mad, out_port);
}
