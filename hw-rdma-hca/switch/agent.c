/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Port 0: the switch as an end of paths. SMPs by directed route come here at
 * every switch on their way (IBA 14.2.2); SMPs to QP0 and GMPs to QP1 by the LID
 * of port 0. The agents answer, and the answer leaves by the way back.
 */
#include <string.h>

#include "../core/wire/bytes.h"
#include "switch_int.h"

#define QP_SMI 0
#define QP_GSI 1
#define MAX_FRAME (HCA_MAX_HEADER_SIZE + HCA_MAD_SIZE + HCA_MAX_TRAILER_SIZE)
#define OPCODE HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY)

/* Sending */

static size_t build(HcaSwitch *sw, HcaPacket *packet, const uint8_t *mad,
                    uint8_t *frame)
{
    size_t len;

    packet->opcode = OPCODE;
    packet->mig_req = true;
    packet->psn = sw->psn++ & HCA_PSN_MASK;
    packet->payload_len = HCA_MAD_SIZE;
    len = hca_ib_build(packet, frame);
    memcpy(frame + len, mad, HCA_MAD_SIZE);
    return hca_ib_seal(packet, frame, len + HCA_MAD_SIZE);
}

/* @in: the port that it came in by, 0 if the switch has made it. */
static void emit(HcaSwitch *sw, unsigned in, unsigned out, HcaPacket *packet,
                 const uint8_t *mad)
{
    uint8_t frame[MAX_FRAME];
    SwPacket sent = {
        .data = frame,
        .len = build(sw, packet, mad, frame),
        .in = in,
        .vl = packet->vl,
        .sl = packet->sl,
        .has_grh = packet->has_grh,
        .slid = packet->slid,
        .dlid = packet->dlid,
        .arrived = sw->now,
    };

    sw_count_tx(&sw->port[0], sent.dlid, sent.len);
    if (!sw_output(&sw->port[out], &sent)) {
        sw_drop(&sw->port[out], SW_DROP_OWN);
    }
}

/* Each hop of a directed route is a packet of its own. */
static void send_hop(HcaSwitch *sw, unsigned in, unsigned out,
                     const uint8_t *mad)
{
    HcaPacket packet = {
        .vl = HCA_VL_MGMT,
        .slid = HCA_LID_PERMISSIVE,
        .dlid = HCA_LID_PERMISSIVE,
        .pkey = HCA_DEFAULT_PKEY,
        .dest_qp = QP_SMI,
        .src_qp = QP_SMI,
    };

    emit(sw, in, out, &packet, mad);
}

static void send_smp(HcaSwitch *sw, unsigned out, uint16_t lid, uint8_t sl,
                     const uint8_t *mad)
{
    HcaPacket packet = {
        .vl = HCA_VL_MGMT,
        .sl = sl,
        .slid = sw->node->port[0].info.lid,
        .dlid = lid,
        .pkey = HCA_DEFAULT_PKEY,
        .dest_qp = QP_SMI,
        .src_qp = QP_SMI,
    };

    emit(sw, 0, out, &packet, mad);
}

/* By LIDs; the switch itself needs no answers. */
static void answer_smp(HcaSwitch *sw, uint16_t lid, uint8_t sl,
                       const uint8_t *mad)
{
    unsigned out = sw_route(sw, lid);

    if (out && out != HCA_LFT_NO_PORT) {
        send_smp(sw, out, lid, sl, mad);
    } else {
        sw_drop(&sw->port[0], SW_DROP_NO_ROUTE);
    }
}

/* SMPs */

/* One on a directed route, at this switch. */
typedef struct Smp {
    unsigned in; /* the port it has come in by; 0: from the switch itself */
    uint16_t slid;
    uint8_t sl;
    uint16_t to; /* LID, of HCA_SMI_ROUTE */
    uint8_t mad[HCA_MAD_SIZE];
} Smp;

static uint16_t end_of_route(const uint8_t *mad)
{
    return get_be16(
        mad + (hca_smp_is_response(mad) ? HCA_SMP_DR_SLID : HCA_SMP_DR_DLID));
}

/*
 * The route has ended here. What was brought by LIDs behind its directed part
 * goes back the same way: to the switch where that ended (IBA 14.2.2.4).
 */
static HcaSmiAction answer_directed(HcaSwitch *sw, Smp *smp, unsigned *out)
{
    bool by_lid = get_be16(smp->mad + HCA_SMP_DR_DLID) != HCA_LID_PERMISSIVE;
    uint8_t reply[HCA_MAD_SIZE];

    if (hca_smp_is_response(smp->mad) ||
        hca_node_answer(sw->node, smp->in, false, smp->mad, reply) !=
            HCA_MAD_REPLY) {
        return HCA_SMI_DROP;
    }
    memcpy(smp->mad, reply, sizeof(reply));
    smp->to = by_lid ? smp->slid : end_of_route(reply);
    if (by_lid) {
        return HCA_SMI_ROUTE;
    }
    return hca_smi_respond(sw->node, smp->mad, out);
}

/* What the SMI says, and the agent if it is for that. */
static HcaSmiAction step(HcaSwitch *sw, Smp *smp, unsigned *out)
{
    HcaSmiAction action = hca_smi_receive(sw->node, smp->in, smp->mad, out);

    smp->to = end_of_route(smp->mad);
    if (action == HCA_SMI_LOCAL) {
        action = answer_directed(sw, smp, out);
    }
    return action;
}

/* True: to this switch itself, where it comes in by port 0. */
static bool leave(HcaSwitch *sw, Smp *smp, HcaSmiAction action, unsigned out)
{
    if (action == HCA_SMI_FORWARD && out) {
        send_hop(sw, smp->in, out, smp->mad);
        return false;
    }
    if (action == HCA_SMI_ROUTE &&
        !hca_node_owns_lid(&sw->node->port[0], smp->to)) {
        answer_smp(sw, smp->to, smp->sl, smp->mad);
        return false;
    }
    smp->in = 0;
    smp->slid = sw->node->port[0].info.lid;
    return action == HCA_SMI_FORWARD || action == HCA_SMI_ROUTE;
}

/* Each step moves the hop pointer, so that there is an end to them. */
static void directed_smp(HcaSwitch *sw, Smp *smp)
{
    HcaSmiAction action;
    unsigned out = 0;

    do {
        action = step(sw, smp, &out);
    } while (leave(sw, smp, action, out));
}

static void lid_routed_smp(HcaSwitch *sw, const HcaPacket *packet, unsigned in)
{
    uint8_t reply[HCA_MAD_SIZE];

    if (hca_node_answer(sw->node, in, false, packet->payload, reply) ==
        HCA_MAD_REPLY) {
        answer_smp(sw, packet->slid, packet->sl, reply);
    }
}

/* False: it is none. */
static bool receive_smp(HcaSwitch *sw, const HcaPacket *packet, unsigned in)
{
    const uint8_t *mad = packet->payload;
    Smp smp = { .in = in, .slid = packet->slid, .sl = packet->sl };

    if (packet->vl != HCA_VL_MGMT || packet->src_qp != QP_SMI ||
        !hca_mad_is_smp(mad)) {
        return false;
    }
    if (mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED) {
        memcpy(smp.mad, mad, HCA_MAD_SIZE);
        directed_smp(sw, &smp);
        return true;
    }
    if (packet->dlid == HCA_LID_PERMISSIVE) {
        return false;
    }
    lid_routed_smp(sw, packet, in);
    return true;
}

/* GMPs */

/* The key of port 0 that a packet with @pkey is let in by; 0: none. */
static uint16_t own_pkey(const HcaSwitch *sw, uint16_t pkey)
{
    return sw_find_pkey(&sw->node->port[0], hca_pkey_match, pkey);
}

/* False, and told: a key is wrong (IBA 10.2.4, 10.9.3). */
static bool keys_are_good(HcaSwitch *sw, const HcaPacket *packet)
{
    HcaKeyViolation violation = {
        .slid = packet->slid,
        .dlid = packet->dlid,
        .key = packet->pkey,
        .sl = packet->sl,
        .src_qp = packet->src_qp,
        .dest_qp = packet->dest_qp,
        .sgid = packet->has_grh ? packet->sgid.raw : NULL,
        .dgid = packet->has_grh ? packet->dgid.raw : NULL,
    };

    if (!own_pkey(sw, packet->pkey)) {
        hca_node_bad_pkey(sw->node, 0, &violation);
        return false;
    }
    if (packet->qkey != HCA_QKEY_GSI) {
        violation.key = packet->qkey;
        hca_node_bad_qkey(sw->node, 0, &violation);
        return false;
    }
    return true;
}

static void answer_gmp(HcaSwitch *sw, const HcaPacket *request,
                       const uint8_t *mad)
{
    unsigned out = sw_route(sw, request->slid);
    HcaPacket packet = {
        .sl = request->sl,
        .slid = sw->node->port[0].info.lid,
        .dlid = request->slid,
        .has_grh = request->has_grh,
        .tclass = request->tclass,
        .flow_label = request->flow_label,
        .hop_limit = 0xff,
        .sgid = request->dgid,
        .dgid = request->sgid,
        .pkey = own_pkey(sw, request->pkey),
        .dest_qp = request->src_qp,
        .src_qp = QP_GSI,
        .qkey = HCA_QKEY_GSI,
    };

    if (out && out != HCA_LFT_NO_PORT) {
        emit(sw, 0, out, &packet, mad);
    } else {
        sw_drop(&sw->port[0], SW_DROP_NO_ROUTE);
    }
}

static bool receive_gmp(HcaSwitch *sw, const HcaPacket *packet, unsigned in)
{
    uint8_t reply[HCA_MAD_SIZE];

    if (packet->vl == HCA_VL_MGMT || hca_mad_is_smp(packet->payload) ||
        !keys_are_good(sw, packet)) {
        return false;
    }
    if (hca_node_answer(sw->node, in, false, packet->payload, reply) ==
        HCA_MAD_REPLY) {
        answer_gmp(sw, packet, reply);
    }
    return true;
}

/* Packets */

static bool receive_mad(HcaSwitch *sw, const HcaPacket *packet, unsigned in)
{
    if (packet->opcode != OPCODE || packet->payload_len != HCA_MAD_SIZE) {
        return false;
    }
    switch (packet->dest_qp) {
    case QP_SMI:
        return receive_smp(sw, packet, in);
    case QP_GSI:
        return receive_gmp(sw, packet, in);
    default:
        return false;
    }
}

/* Ports that were to be disabled: now that the answer is on its way. */
static void close_ports(HcaSwitch *sw)
{
    uint64_t ports = sw->closing;

    sw->closing = 0;
    for (; ports; ports &= ports - 1) {
        sw_port_set_link(&sw->port[__builtin_ctzll(ports)], false);
    }
}

static void receive(HcaSwitch *sw, const SwPacket *packet)
{
    HcaPacket parsed;
    HcaParseError error = hca_ib_parse(&parsed, packet->data, packet->len);

    if (error == HCA_PARSE_ICRC) {
        sw_drop(&sw->port[packet->in], SW_DROP_CORRUPT);
    } else if (error != HCA_PARSE_OK || !receive_mad(sw, &parsed, packet->in)) {
        sw_drop(&sw->port[packet->in], SW_DROP_AGENT);
    }
}

void sw_agent_receive(HcaSwitch *sw, const SwPacket *packet)
{
    sw_count_rx(&sw->port[0], packet);
    sw->answering = true;
    receive(sw, packet);
    sw->answering = false;
    close_ports(sw);
}

/* What the node asks for */

static int64_t op_now(void *opaque)
{
    HcaSwitch *sw = opaque;

    return sw->now;
}

static void op_set_link(void *opaque, unsigned port, bool poll)
{
    HcaSwitch *sw = opaque;

    if (sw->answering && !poll) {
        sw->closing |= UINT64_C(1) << port;
    } else {
        sw_port_set_link(&sw->port[port], poll);
    }
}

/* A port that is no longer Active sends no data. */
static void op_changed(void *opaque, unsigned number, unsigned what)
{
    HcaSwitch *sw = opaque;
    SwPort *port = &sw->port[number];

    if (what & HCA_CHANGED_STATE) {
        sw_say(sw, "port %u: %s", number, sw_state_name(sw_info(port)->state));
        if (sw_info(port)->state != HCA_PORT_ACTIVE) {
            sw_output_lose(port);
        }
    }
    if (what & HCA_CHANGED_LID) {
        sw_say(sw, "LID %u", sw_info(port)->lid);
    }
}

static void op_counters(void *opaque, unsigned port, HcaPmaCounters *counters)
{
    HcaSwitch *sw = opaque;

    sw_counters(&sw->port[port], counters);
}

/* A trap. */
static bool op_send_smp(void *opaque, uint16_t lid, uint8_t sl,
                        const uint8_t *mad)
{
    HcaSwitch *sw = opaque;
    unsigned out = sw_route(sw, lid);

    if (!out || out == HCA_LFT_NO_PORT || !sw->port[out].trained ||
        !hca_link_can_send_mgmt(sw->port[out].link, false)) {
        return false;
    }
    send_smp(sw, out, lid, sl, mad);
    return true;
}

const HcaNodeOps sw_node_ops = {
    .now = op_now,
    .set_link = op_set_link,
    .changed = op_changed,
    .counters = op_counters,
    .send_smp = op_send_smp,
};
