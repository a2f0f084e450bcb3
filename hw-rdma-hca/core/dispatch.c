/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One turn of the card's clock. Each source of work gets a bounded share of
 * it: a command, packets that arrived, timers, QPs with responses to send, QPs
 * with requests to send, frames of the Ethernet function.
 */
#include "dispatch.h"

#include <string.h>

#include "cxtmgt/cxtmgt.h"
#include "eth/eth.h"
#include "front/bars.h"
#include "front/ceu/ceu.h"
#include "link/link.h"
#include "mgmt/mgmt.h"
#include "port/port.h"
#include "requester/congestion.h"
#include "requester/requester.h"
#include "responder/responder.h"
#include "script.h"
#include "send/send.h"
#include "service.h"
#include "strict.h"
#include "turns.h"

/* Shares of one turn. */
#define RX_BUDGET 128    /* packets received */
#define TIMER_BUDGET 256 /* QPs whose timer is due */
#define ETH_BUDGET 64    /* frames of the Ethernet function */
#define SNIFF_BUDGET 128 /* frames that were sent, for sniffers */

/*
 * While an end of the cable is away no answer can come: connections have as much
 * time left afterwards as they had before.
 */
static void watch_moves(Hca *hca)
{
    bool away = hca_link_is_away(hca->link);

    if (away == hca->timers_stand) {
        return;
    }
    hca->timers_stand = away;
    if (away) {
        hca->timers_stood_at = hca_now(hca);
    } else {
        hca_timers_delay(hca, MAX(hca_now(hca) - hca->timers_stood_at, 0));
    }
}

static bool run_timers(Hca *hca)
{
    int64_t now;

    watch_moves(hca);
    if (hca->timers_stand || !hca_timer_first(hca)) {
        return false;
    }
    now = hca_now(hca);
    for (unsigned n = 0; n < TIMER_BUDGET; n++) {
        HcaQp *qp = hca_timer_first(hca);

        if (!qp || qp->timer.key > now) {
            return false;
        }
        hca_requester_timer(hca, qp, now);
        hca_responder_timer(hca, qp, now);
    }
    return true;
}

void hca_dispatch_qp_state(void *opaque, HcaQp *qp, uint8_t old_state)
{
    Hca *hca = opaque;

    if (old_state == HCA_QP_RST) {
        hca_card_add_qp(qp);
    }
    hca_trace(hca, HCA_TRACE_QP_STATE, qp->qpn, old_state, qp->state, 0);
    if (hca_is_strict(hca)) {
        hca_strict_state(hca, qp, old_state);
    }
    hca_requester_state(hca, qp, old_state);
    hca_send_state(hca, qp, old_state);
    hca_responder_state(hca, qp, old_state);
    if (qp->state == HCA_QP_RST) {
        hca_card_forget_qp(hca, qp);
    }
}

/* What a manager has changed of the port: its software looks again. */
static void tell_changes(Hca *hca)
{
    uint32_t changes = hca_port_take_changes(hca->port);

    if (changes && hca_ceu_initialised(hca->ceu)) {
        hca_port_mng_event(hca->cm, changes);
    }
}

void hca_dispatch_watch_port(Hca *hca)
{
    HcaPortState state;

    hca_port_refresh(hca->port);
    tell_changes(hca);
    while (hca_port_state_changed(hca->port, &state)) {
        hca_trace(hca, HCA_TRACE_LINK, 0, state == HCA_PORT_ACTIVE, 0, 0);
        if (hca_ceu_initialised(hca->ceu)) {
            hca_port_change_event(hca->cm, state == HCA_PORT_ACTIVE
                                               ? HCA_PORT_CHANGE_ACTIVE
                                               : HCA_PORT_CHANGE_DOWN);
        }
    }
}

/* Packets that arrive */

/* The checks of a response that do not depend on what is outstanding. */
static void dispatch_response(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    const HcaServiceRow *service = hca_service(qp->attr.service);

    if (qp->state != HCA_QP_RTS && qp->state != HCA_QP_SQD) {
        hca_drop(hca->port, packet, HCA_DROP_QP_STATE);
    } else if (!service->reliable || !service->sends) {
        hca_drop(hca->port, packet, HCA_DROP_SERVICE);
    } else if (!hca_port_takes_pkey(hca->port, qp->attr.pkey_index,
                                    packet->pkey)) {
        hca_drop(hca->port, packet, HCA_DROP_PKEY);
    } else if (!hca_port_came_along(hca->port, &qp->attr.path, packet)) {
        hca_drop(hca->port, packet, HCA_DROP_SOURCE);
    } else {
        hca_cnp_note(hca, qp, packet);
        hca_requester_receive(hca, qp, packet);
    }
}

static void dispatch_request(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (qp->state < HCA_QP_RTR || qp->state == HCA_QP_ERR) {
        hca_drop(hca->port, packet, HCA_DROP_QP_STATE); /* figure 4.3 */
    } else if (!hca_service(qp->attr.service)->serves) {
        hca_drop(hca->port, packet, HCA_DROP_SERVICE);
    } else {
        hca_responder_receive(hca, qp, packet);
    }
}

/* A congestion notification, which each service has (annex A17.9.3). */
static void dispatch_cnp(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (hca_service(qp->attr.service)->raw) {
        hca_drop(hca->port, packet, HCA_DROP_SERVICE);
    } else if (qp->state != HCA_QP_RTS && qp->state != HCA_QP_SQD) {
        hca_drop(hca->port, packet, HCA_DROP_QP_STATE);
    } else if (!hca_port_takes_pkey(hca->port, qp->attr.pkey_index,
                                    packet->pkey)) {
        hca_drop(hca->port, packet, HCA_DROP_PKEY);
    } else if (qp->attr.service != HCA_SERVICE_UD &&
               !hca_port_came_along(hca->port, &qp->attr.path, packet)) {
        hca_drop(hca->port, packet, HCA_DROP_SOURCE);
    } else {
        hca_congestion_receive(hca, qp);
    }
}

/* To one QP. */
static void dispatch_to(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    hca_trace(hca, HCA_TRACE_PACKET_RX, qp->qpn, packet->opcode, packet->psn,
              packet->payload_len);
    qp->counters->rx_packets++;
    qp->counters->rx_bytes += packet->payload_len;
    if (packet->opcode == HCA_BTH_CNP) {
        dispatch_cnp(hca, qp, packet);
    } else if (HCA_BTH_SERVICE(packet->opcode) !=
               hca_service(qp->attr.service)->bth) {
        hca_drop(hca->port, packet, HCA_DROP_SERVICE);
    } else if (hca_is_response(packet->opcode)) {
        dispatch_response(hca, qp, packet);
    } else {
        dispatch_request(hca, qp, packet);
    }
}

/* What this QP has sent, and does not want to hear. */
static bool is_own_echo(const HcaQp *qp, const HcaPacket *packet)
{
    return qp->attr.block_loopback && packet->src_qp == qp->qpn;
}

/*
 * To each QP of a group (IBA 10.5.2): one that takes no packets, or is gone,
 * does not keep it from the others. Each copy counts as a packet.
 */
static void dispatch_group(Hca *hca, const HcaPacket *packet, bool loopback)
{
    const HcaMcastGroup *group = hca_mcast_find(hca->port, &packet->dgid);

    if (!group) {
        hca_drop(hca->port, packet, HCA_DROP_GROUP);
        return;
    }
    if (packet->dest_qp != HCA_QPN_MULTICAST) {
        hca_drop(hca->port, packet, HCA_DROP_QPN);
        return;
    }
    if (HCA_BTH_SERVICE(packet->opcode) != HCA_BTH_UD) {
        hca_drop(hca->port, packet, HCA_DROP_SERVICE);
        return;
    }
    hca_port_counters(hca->port)->rx_multicast++;
    hca->rx_left -= MIN(hca->rx_left - 1, group->count);
    for (unsigned i = 0; i < group->count; i++) {
        HcaQp *qp = hca_qp_find(hca->cm, group->qpn[i]);

        if (qp && !(loopback && is_own_echo(qp, packet))) {
            dispatch_to(hca, qp, packet);
        }
    }
}

static void dispatch_own(Hca *hca, const HcaPacket *packet)
{
    HcaQp *qp;

    if (hca_mgmt_is_for(hca, packet)) {
        qp = hca_mgmt_receive(hca, packet);
    } else {
        qp = hca_qp_find(hca->cm, packet->dest_qp);
        if (!qp) {
            hca_drop(hca->port, packet, HCA_DROP_QPN);
        }
    }
    if (qp) {
        dispatch_to(hca, qp, packet);
    }
}

/* SMPs come in any state of a port that is enabled. */
static bool takes(Hca *hca, const HcaPacket *packet, bool loopback)
{
    return packet->vl == HCA_VL_MGMT ? hca_port_is_enabled(hca->port)
                                     : hca_port_takes_data(hca->port, loopback);
}

static void dispatch(Hca *hca, const HcaPacket *packet, HcaArrival arrival,
                     bool loopback)
{
    if (arrival == HCA_ARRIVAL_OTHER) {
        hca_drop(hca->port, packet, HCA_DROP_LID);
    } else if (!takes(hca, packet, loopback)) {
        hca_drop(hca->port, packet, HCA_DROP_PORT_DOWN);
    } else if (arrival == HCA_ARRIVAL_GROUP) {
        dispatch_group(hca, packet, loopback);
    } else {
        dispatch_own(hca, packet);
    }
}

/* Frames */

typedef struct Delivery {
    Hca *hca;
    const uint8_t *frame;
    size_t len;
} Delivery;

/* A copy for a raw packet QP, if it is one that receives. */
static bool deliver(void *opaque, const HcaFlowRule *rule)
{
    const Delivery *delivery = opaque;
    Hca *hca = delivery->hca;
    HcaQp *qp = hca_qp_find(hca->cm, rule->qpn);

    if (!qp || !hca_service(qp->attr.service)->raw || qp->state < HCA_QP_RTR ||
        qp->state == HCA_QP_ERR) {
        return false;
    }
    hca->rx_left -= hca->rx_left > 1;
    hca_responder_receive_frame(hca, qp, delivery->frame, delivery->len,
                                rule->tag);
    return true;
}

/*
 * Who gets a frame that is not the engine's: QPs by their rules, the interface
 * (verbs: rules of programs come before its own), or whoever takes the rest.
 */
static void steer(Hca *hca, const uint8_t *frame, size_t len)
{
    Delivery delivery = { hca, frame, len };
    bool enabled = hca_port_is_enabled(hca->port);

    if (enabled && hca_flow_steer(hca->port, frame, len, deliver, &delivery)) {
        return;
    }
    if (enabled && len && !hca_eth_accepts(hca->eth, frame, len) &&
        hca_flow_default(hca->port, frame, deliver, &delivery)) {
        return;
    }
    hca_eth_receive(hca->eth, frame, len);
}

/*
 * Multicasts that turn round have been sent, too, and are seen once, there (a
 * frame is never empty).
 */
static void sniff(Hca *hca, const uint8_t *frame, size_t len, bool loopback)
{
    Delivery delivery = { hca, frame, len };

    if (len && !(loopback && frame[0] & 1) && hca_port_is_enabled(hca->port)) {
        hca_flow_sniff(hca->port, deliver, &delivery);
    }
}

/*
 * Copies of what was sent. True: there was one, and so who found no room to
 * send may have some.
 */
static bool run_sniffers(Hca *hca)
{
    const uint8_t *frame;
    bool any = false;
    size_t len;

    hca_v2p_begin_share(hca->v2p);
    for (hca->rx_left = SNIFF_BUDGET; hca_turns_go_on(hca, hca->rx_left);
         hca->rx_left--) {
        frame = hca_link_tapped(hca->link, &len);
        if (!frame) {
            break;
        }
        any = true;
        sniff(hca, frame, len, false);
    }
    return any;
}

/* Packets whose memory takes its time */

/*
 * The packet that arrived last waits here while what it needs is on its way, and
 * all that arrive behind it wait for it: figure 4.4 has one in hand.
 */
typedef struct HcaArrived {
    HcaV2pAsk ask;
    bool held;
    bool loopback;
    size_t len;
    uint8_t frame[HCA_LINK_MAX_PACKET];
} HcaArrived;

void hca_dispatch_be_late(Hca *hca)
{
    if (!hca->late) {
        hca->late = true;
        hca->arrived = g_new0(HcaArrived, 1);
        hca->arrived->ask.unit = HCA_ASK_RECEIVE;
    }
}

void hca_dispatch_cleanup(Hca *hca)
{
    g_free(hca->arrived);
}

void hca_dispatch_cable_gone(Hca *hca)
{
    if (hca->late && !hca->arrived->loopback) {
        hca_dispatch_forget(hca);
    }
}

void hca_dispatch_forget(Hca *hca)
{
    hca->eth_first = false;
    hca->resp_first = 0;
    if (hca->late) {
        hca_v2p_ask_forget(hca->v2p, &hca->arrived->ask);
        hca->arrived->held = false;
    }
}

void hca_dispatch_answered(void *opaque, HcaV2pAsk *ask)
{
    Hca *hca = opaque;

    switch ((HcaAskUnit)ask->unit) {
    case HCA_ASK_SEND:
        hca_schedule_send(hca, ask->owner);
        break;
    case HCA_ASK_RESP:
        hca_schedule_resp(hca, ask->owner);
        break;
    case HCA_ASK_RECEIVE:
    case HCA_ASK_COMMAND:
        break; /* they look */
    }
}

static bool is_held(const Hca *hca)
{
    return hca->late && hca->arrived->held;
}

/* Whether more can be received now. */
static bool rx_pending(const Hca *hca)
{
    return !is_held(hca) && hca_link_rx_pending(hca->link);
}

/* The packet that waited, or the next one; NULL: none, or it still waits. */
static const uint8_t *next_frame(Hca *hca, size_t *len, bool *loopback)
{
    HcaArrived *arrived = hca->arrived;

    if (!is_held(hca)) {
        return hca_link_receive(hca->link, len, loopback);
    }
    if (hca_v2p_ask_waits(&arrived->ask)) {
        return NULL;
    }
    arrived->held = false;
    *len = arrived->len;
    *loopback = arrived->loopback;
    return arrived->frame;
}

static void hold(Hca *hca, const uint8_t *frame, size_t len, bool loopback)
{
    HcaArrived *arrived = hca->arrived;

    arrived->held = true;
    arrived->loopback = loopback;
    arrived->len = len;
    memmove(arrived->frame, frame, len);
}

/* Whether what a packet of a QP needs is here. */
static bool memory_is_here(Hca *hca, const HcaPacket *packet,
                           HcaArrival arrival, bool loopback)
{
    HcaV2pAsk *ask = &hca->arrived->ask;
    HcaQp *qp;

    if (arrival != HCA_ARRIVAL_OWN || !takes(hca, packet, loopback) ||
        hca_mgmt_is_for(hca, packet)) {
        return true;
    }
    qp = hca_qp_peek(hca->cm, packet->dest_qp);
    if (!qp || qp->state < HCA_QP_RTR || qp->state == HCA_QP_ERR ||
        packet->opcode == HCA_BTH_CNP ||
        HCA_BTH_SERVICE(packet->opcode) != hca_service(qp->attr.service)->bth) {
        return true;
    }
    return hca_is_response(packet->opcode)
               ? hca_answer_is_here(hca, qp, packet, ask)
               : hca_responder_is_here(hca, qp, packet, ask);
}

/*
 * Sort a frame by its headers: what is not RoCEv2, or not to the card's
 * addresses, belongs to the Ethernet function and to raw packet QPs. What turned
 * round and is not RoCEv2 is a raw packet QP's.
 */
static void receive_frame(Hca *hca, const uint8_t *frame, size_t len,
                          bool loopback)
{
    HcaPacket packet; /* the parser leaves 0 what is not there */
    HcaParseError error = hca_port_parse(hca->port, &packet, frame, len);
    HcaArrival arrival = error == HCA_PARSE_NOT_ROCE
                             ? HCA_ARRIVAL_OTHER
                             : hca_port_arrival(hca->port, &packet, loopback);

    if (hca->late) {
        if (error == HCA_PARSE_OK &&
            !memory_is_here(hca, &packet, arrival, loopback)) {
            hold(hca, frame, len, loopback);
            return;
        }
        hca_v2p_ask_done(&hca->arrived->ask);
    }
    if (hca->eth && error == HCA_PARSE_NOT_ROCE && !loopback &&
        hca_eth_take_control(hca->eth, frame, len)) {
        return;
    }
    if (hca->eth) {
        sniff(hca, frame, len, loopback);
    }
    if (hca->eth && arrival == HCA_ARRIVAL_OTHER &&
        (!loopback || error == HCA_PARSE_NOT_ROCE)) {
        steer(hca, frame, len);
        return;
    }
    hca_port_counters(hca->port)->rx_packets++;
    if (error == HCA_PARSE_OK || error == HCA_PARSE_NOT_ROCE) {
        dispatch(hca, &packet, arrival, loopback);
    } else {
        /* The reasons begin with the parser's, in its order. */
        hca_drop(hca->port, &packet,
                 HCA_DROP_PARSE_SHORT + (error - HCA_PARSE_SHORT));
    }
}

static bool run_receive(Hca *hca)
{
    hca_v2p_begin_share(hca->v2p);
    for (hca->rx_left = RX_BUDGET; hca_turns_go_on(hca, hca->rx_left);
         hca->rx_left--) {
        const uint8_t *frame;
        bool loopback;
        size_t len;

        frame = next_frame(hca, &len, &loopback);
        if (!frame) {
            return false;
        }
        receive_frame(hca, frame, len, loopback);
    }
    return rx_pending(hca);
}

/* Senders */

/*
 * Packets and frames of the interface share the cable: who comes first may
 * fill it, so they take turns at that.
 */
static bool run_senders(Hca *hca)
{
    bool more = false;

    hca->eth_first = !hca->eth_first;
    if (hca->eth && hca->eth_first) {
        more |= hca_eth_run(hca->eth, ETH_BUDGET);
    }
    more |= hca_turns_run(hca);
    if (hca->eth && !hca->eth_first) {
        more |= hca_eth_run(hca->eth, ETH_BUDGET);
    }
    return more;
}

void hca_dispatch_set_alarm(Hca *hca)
{
    const HcaQp *first = hca_timer_first(hca);
    int64_t at = hca_link_deadline(hca->link);

    at = MIN(at, hca_cxtmgt_deadline(hca->cm));
    at = MIN(at, hca_v2p_deadline(hca->v2p));
    at = MIN(at, hca_bars_deadline(hca->bars));
    at = MIN(at, hca_ceu_deadline(hca->ceu));
    at = MIN(at, hca_port_deadline(hca->port));
    at = MIN(at, hca_script_deadline(hca));
    if (hca->eth) {
        at = MIN(at, hca_eth_deadline(hca->eth));
    }
    if (first && !hca->timers_stand) {
        at = MIN(at, first->timer.key);
    }
    if (at != hca->alarm) {
        hca->alarm = at;
        hca->host.ops->timer_mod(hca->host.opaque, at);
    }
}

/* Whether who found the link's buffer full can go on: it was emptied. */
static bool may_go_on(const Hca *hca)
{
    return (hca->send_queue.length || hca->resp_queue.length ||
            (hca->eth && hca_eth_waits(hca->eth))) &&
           hca_link_can_send(hca->link, false);
}

bool hca_dispatch_run(Hca *hca)
{
    bool more;

    /* Each change of the link by a fault is one of the port. */
    if (hca_link_tick(hca->link)) {
        hca_dispatch_watch_port(hca);
    }
    if (hca_script_run(hca)) {
        hca_dispatch_watch_port(hca);
    }
    more = hca_bars_ring_late(hca);
    more |= hca_v2p_run(hca->v2p);
    more |= run_receive(hca);
    hca_dispatch_watch_port(hca);
    hca_port_tick(hca->port);
    more |= run_timers(hca);
    more |= hca_cxtmgt_run_timers(hca->cm);
    if (hca->eth) {
        hca_eth_run_timers(hca->eth);
        more |= hca_eth_run_pause(hca->eth);
    }
    more |= run_senders(hca);
    more |= run_sniffers(hca);
    hca_link_flush(hca->link);
    hca_link_flush_capture(hca->link);
    more |= hca_v2p_run(hca->v2p); /* what this turn asked for */
    hca_dispatch_set_alarm(hca);
    return more || rx_pending(hca) || may_go_on(hca);
}

/* State: the packet that waits for memory, and whether it turned round */

static const HcaField arrived_fields[] = {
    HCA_ANEW(HcaArrived, ask),           HCA_DERIVED(HcaArrived, held),
    HCA_ELSEWHERE(HcaArrived, loopback), HCA_ELSEWHERE(HcaArrived, len),
    HCA_ELSEWHERE(HcaArrived, frame),
};
static const HcaStruct arrived_struct = HCA_STRUCT(HcaArrived, arrived_fields);

static void save_arrived(void *room, GArray *bytes)
{
    const Hca *hca = room;

    if (is_held(hca)) {
        const HcaArrived *arrived = hca->arrived;
        uint8_t loopback = arrived->loopback;

        g_array_append_val(bytes, loopback);
        g_array_append_vals(bytes, arrived->frame, arrived->len);
    }
}

static bool load_arrived(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    const Hca *hca = room;
    HcaArrived *arrived = hca->arrived;
    const uint8_t *bytes = records;

    if (!n) {
        return true;
    }
    if (!arrived || n - 1 > sizeof(arrived->frame)) {
        return hca_state_refuse(error, "a packet that cannot wait");
    }
    arrived->held = true;
    arrived->loopback = bytes[0];
    arrived->len = n - 1;
    memcpy(arrived->frame, bytes + 1, n - 1);
    return true;
}

const HcaSection hca_arrived_section = HCA_SECTION(
    "arrived", 1, &hca_byte_struct, save_arrived, load_arrived,
    &arrived_struct);
