/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The assembled card: reset, registers, the event loop body.
 *
 * hca_run() is one turn of the card's clock. Each source of work gets a
 * bounded share of it: a command, packets that arrived, timers, QPs with
 * responses to send, QPs with requests to send, frames of the Ethernet
 * function.
 */
#include <string.h>

#include "card.h"
#include "ceu/ceu.h"
#include "eth/eth.h"
#include "requester/congestion.h"
#include "requester/requester.h"
#include "responder/responder.h"
#include "send/send.h"

/* Shares of one turn. */
#define RX_BUDGET 128    /* packets received */
#define QP_BUDGET 16     /* packets of a QP's turn */
#define TURN_BUDGET 64   /* QPs that have a turn at sending */
#define TIMER_BUDGET 256 /* QPs whose timer is due */
#define ETH_BUDGET 64    /* frames of the Ethernet function */

static const char *const trace_names[] = {
#define TRACE_NAME(name) #name,
    HCA_TRACE_EVENTS(TRACE_NAME)
#undef TRACE_NAME
};

const char *hca_trace_name(unsigned event)
{
    return event < G_N_ELEMENTS(trace_names) ? trace_names[event] : NULL;
}

/* Run queues */

void hca_schedule_send(Hca *hca, HcaQp *qp)
{
    if (!qp->send_queued) {
        qp->send_queued = true;
        qp->send_link.data = qp;
        g_queue_push_tail_link(&hca->send_queue, &qp->send_link);
    }
}

void hca_schedule_resp(Hca *hca, HcaQp *qp)
{
    if (!qp->resp_queued) {
        qp->resp_queued = true;
        qp->resp_link.data = qp;
        g_queue_push_tail_link(&hca->resp_queue, &qp->resp_link);
    }
}

static void unschedule(Hca *hca, HcaQp *qp)
{
    if (qp->send_queued) {
        g_queue_unlink(&hca->send_queue, &qp->send_link);
        qp->send_queued = false;
    }
    if (qp->resp_queued) {
        g_queue_unlink(&hca->resp_queue, &qp->resp_link);
        qp->resp_queued = false;
    }
}

/* Timers: a binary heap of QPs by timer_at; each QP knows its place. */

static void heap_put(HcaTimerHeap *heap, unsigned slot, HcaQp *qp)
{
    heap->slot[slot] = qp;
    qp->timer_slot = slot;
}

static void heap_up(HcaTimerHeap *heap, unsigned slot, HcaQp *qp)
{
    while (slot) {
        unsigned parent = (slot - 1) / 2;

        if (heap->slot[parent]->timer_at <= qp->timer_at) {
            break;
        }
        heap_put(heap, slot, heap->slot[parent]);
        slot = parent;
    }
    heap_put(heap, slot, qp);
}

static void heap_down(HcaTimerHeap *heap, unsigned slot, HcaQp *qp)
{
    for (;;) {
        unsigned child = 2 * slot + 1;

        if (child + 1 < heap->count &&
            heap->slot[child + 1]->timer_at < heap->slot[child]->timer_at) {
            child++;
        }
        if (child >= heap->count ||
            heap->slot[child]->timer_at >= qp->timer_at) {
            break;
        }
        heap_put(heap, slot, heap->slot[child]);
        slot = child;
    }
    heap_put(heap, slot, qp);
}

static void heap_remove(HcaTimerHeap *heap, HcaQp *qp)
{
    unsigned slot = qp->timer_slot;
    HcaQp *last;

    if (qp->timer_slot < 0) {
        return;
    }
    qp->timer_slot = -1;
    last = heap->slot[--heap->count];
    if (last != qp) {
        heap_up(heap, slot, last);
        heap_down(heap, last->timer_slot, last);
    }
}

/* The heap's room is that of the QP table: there is a place for each QP. */
void hca_timer_set(Hca *hca, HcaQp *qp)
{
    HcaTimerHeap *heap = &hca->timers;
    int64_t at = MIN(MIN(qp->req.loss_deadline, qp->req.rnr_deadline),
                     MIN(qp->resp.flush_deadline, qp->req.congestion_deadline));

    if (at == INT64_MAX) {
        heap_remove(heap, qp);
    } else if (qp->timer_slot < 0) {
        qp->timer_at = at;
        heap_up(heap, heap->count++, qp);
    } else if (at < qp->timer_at) {
        qp->timer_at = at;
        heap_up(heap, qp->timer_slot, qp);
    } else if (at > qp->timer_at) {
        qp->timer_at = at;
        heap_down(heap, qp->timer_slot, qp);
    }
}

static bool run_timers(Hca *hca)
{
    HcaTimerHeap *heap = &hca->timers;
    int64_t now;

    if (!heap->count) {
        return false;
    }
    now = hca_now(hca);
    for (unsigned n = 0; n < TIMER_BUDGET; n++) {
        HcaQp *qp;

        if (!heap->count || heap->slot[0]->timer_at > now) {
            return false;
        }
        qp = heap->slot[0];
        hca_requester_timer(hca, qp, now);
        if (qp->resp.flush_deadline <= now) {
            hca_responder_timer(hca, qp, now);
        }
        hca_timer_set(hca, qp);
    }
    return true;
}

/* QP states */

static void qp_state_changed(void *opaque, HcaQp *qp, uint8_t old_state)
{
    Hca *hca = opaque;

    if (old_state == RDMA_HCA_QP_STATE_RST) {
        qp->timer_slot = -1;
        qp->resp.flush_deadline = INT64_MAX;
        qp->req.loss_deadline = INT64_MAX;
        qp->req.rnr_deadline = INT64_MAX;
        qp->req.congestion_deadline = INT64_MAX;
    }
    hca_trace(hca, HCA_TRACE_QP_STATE, qp->qpn, old_state, qp->state, 0);
    hca_requester_state(hca, qp, old_state);
    hca_send_state(hca, qp, old_state);
    hca_responder_state(hca, qp, old_state);
    if (qp->state == RDMA_HCA_QP_STATE_RST) {
        unschedule(hca, qp);
        heap_remove(&hca->timers, qp);
    }
}

/* The port */

/* Tell the driver when the port goes to ACTIVE or DOWN. */
static void watch_port(Hca *hca)
{
    bool active = hca_link_is_up(hca->link) && hca_ceu_port_enabled(hca->ceu);
    HcaEvent event = {
        .type = RDMA_HCA_EVENT_PORT_CHANGE,
        .subtype = active ? RDMA_HCA_PORT_CHANGE_ACTIVE
                          : RDMA_HCA_PORT_CHANGE_DOWN,
        .number = 1,
    };

    if (active != hca->port_active) {
        hca->port_active = active;
        hca_trace(hca, HCA_TRACE_LINK, 0, active, 0, 0);
        if (hca_ceu_initialised(hca->ceu)) {
            hca_eq_event(hca->cm, &event);
        }
    }
}

void hca_link_up(Hca *hca)
{
    hca_link_set_up(hca->link, true);
}

void hca_link_down(Hca *hca)
{
    hca_link_set_up(hca->link, false);
    watch_port(hca);
}

void hca_link_writable(Hca *hca)
{
    hca_link_flush(hca->link);
    hca_link_flush_capture(hca->link);
}

bool hca_link_failed(const Hca *hca)
{
    return hca_link_rx_failed(hca->link);
}

/* Packets that arrive */

void hca_drop(Hca *hca, const HcaPacket *packet, HcaDropReason reason)
{
    hca->counters.drops[reason]++;
    hca_trace(hca, HCA_TRACE_PACKET_DROP, packet->dest_qp, packet->opcode,
              packet->psn, reason);
}

/* Whether the packet answers a request: for the requester. */
static bool is_response(const HcaPacket *packet)
{
    uint8_t operation = HCA_BTH_OPERATION(packet->opcode);

    return operation >= HCA_READ_RESP_FIRST && operation <= HCA_ATOMIC_ACK;
}

/* The checks of a response that do not depend on what is outstanding. */
static void dispatch_response(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (qp->state != RDMA_HCA_QP_STATE_RTS &&
        qp->state != RDMA_HCA_QP_STATE_SQD) {
        hca_drop(hca, packet, HCA_DROP_QP_STATE);
    } else if (qp->service != RDMA_HCA_QP_ST_RC) {
        hca_drop(hca, packet, HCA_DROP_SERVICE);
    } else if (!hca_pkey_match(packet->pkey, qp->pkey)) {
        hca_drop(hca, packet, HCA_DROP_PKEY);
    } else if (!hca->addressing->came_along(hca, &qp->path, packet)) {
        hca_drop(hca, packet, HCA_DROP_SOURCE);
    } else {
        hca_cnp_note(hca, qp, packet);
        hca_requester_receive(hca, qp, packet);
    }
}

static void dispatch_request(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (qp->state < RDMA_HCA_QP_STATE_RTR ||
        qp->state == RDMA_HCA_QP_STATE_ERR) {
        hca_drop(hca, packet, HCA_DROP_QP_STATE); /* figure 4.3 */
    } else {
        hca_responder_receive(hca, qp, packet);
    }
}

/* A congestion notification, which each service has (annex A17.9.3). */
static void dispatch_cnp(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (qp->state != RDMA_HCA_QP_STATE_RTS &&
        qp->state != RDMA_HCA_QP_STATE_SQD) {
        hca_drop(hca, packet, HCA_DROP_QP_STATE);
    } else if (!hca_pkey_match(packet->pkey, qp->pkey)) {
        hca_drop(hca, packet, HCA_DROP_PKEY);
    } else if (qp->service != RDMA_HCA_QP_ST_UD &&
               !hca->addressing->came_along(hca, &qp->path, packet)) {
        hca_drop(hca, packet, HCA_DROP_SOURCE);
    } else {
        hca_congestion_receive(hca, qp);
    }
}

/* To one QP. */
static void dispatch_to(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    hca_trace(hca, HCA_TRACE_PACKET_RX, qp->qpn, packet->opcode, packet->psn,
              packet->payload_len);
    if (packet->opcode == HCA_BTH_CNP) {
        dispatch_cnp(hca, qp, packet);
    } else if (HCA_BTH_SERVICE(packet->opcode) != qp->service) {
        hca_drop(hca, packet, HCA_DROP_SERVICE);
    } else if (is_response(packet)) {
        dispatch_response(hca, qp, packet);
    } else {
        dispatch_request(hca, qp, packet);
    }
}

/*
 * To each QP of a group (IBA 10.5.2): one that takes no packets, or is gone,
 * does not keep it from the others.
 */
static void dispatch_group(Hca *hca, const HcaPacket *packet)
{
    const HcaMcastGroup *group = hca_mcast_find(hca, &packet->dgid);

    if (!group) {
        hca_drop(hca, packet, HCA_DROP_GROUP);
        return;
    }
    if (packet->dest_qp != HCA_QPN_MULTICAST) {
        hca_drop(hca, packet, HCA_DROP_QPN);
        return;
    }
    if (HCA_BTH_SERVICE(packet->opcode) != HCA_BTH_UD) {
        hca_drop(hca, packet, HCA_DROP_SERVICE);
        return;
    }
    hca->counters.rx_multicast++;
    for (unsigned i = 0; i < group->count; i++) {
        HcaQp *qp = hca_qp_find(hca->cm, group->qpn[i]);

        if (qp) {
            dispatch_to(hca, qp, packet);
        }
    }
}

static void dispatch(Hca *hca, const HcaPacket *packet, HcaArrival arrival)
{
    HcaQp *qp;

    if (arrival == HCA_ARRIVAL_OTHER) {
        hca_drop(hca, packet, HCA_DROP_LID);
        return;
    }
    if (!hca_ceu_port_enabled(hca->ceu)) {
        hca_drop(hca, packet, HCA_DROP_PORT_DOWN);
        return;
    }
    if (arrival == HCA_ARRIVAL_GROUP) {
        dispatch_group(hca, packet);
        return;
    }
    qp = hca_qp_find(hca->cm, packet->dest_qp);
    if (qp) {
        dispatch_to(hca, qp, packet);
    } else {
        hca_drop(hca, packet, HCA_DROP_QPN);
    }
}

/*
 * Sort a frame by its headers: what is not RoCEv2, or not to the card's
 * addresses, belongs to the Ethernet function.
 */
static void receive_frame(Hca *hca, const uint8_t *frame, size_t len,
                          bool loopback)
{
    HcaPacket packet = { 0 };
    HcaParseError error = hca->addressing->encap->parse(&packet, frame, len);
    HcaArrival arrival = error == HCA_PARSE_NOT_ROCE
                             ? HCA_ARRIVAL_OTHER
                             : hca->addressing->arrival(hca, &packet, loopback);

    if (hca->eth && arrival == HCA_ARRIVAL_OTHER && !loopback) {
        hca_eth_receive(hca->eth, frame, len);
        return;
    }
    hca->counters.rx_packets++;
    if (error == HCA_PARSE_OK || error == HCA_PARSE_NOT_ROCE) {
        dispatch(hca, &packet, arrival);
    } else {
        /* The reasons begin with the parser's, in its order. */
        hca_drop(hca, &packet,
                 HCA_DROP_PARSE_SHORT + (error - HCA_PARSE_SHORT));
    }
}

static bool run_receive(Hca *hca)
{
    for (unsigned n = 0; n < RX_BUDGET; n++) {
        const uint8_t *frame;
        bool loopback;
        size_t len;

        frame = hca_link_receive(hca->link, &len, &loopback);
        if (!frame) {
            return false;
        }
        receive_frame(hca, frame, len, loopback);
    }
    return hca_link_rx_pending(hca->link);
}

/* QPs' turns */

/*
 * Each QP that is queued has one turn, as far as the budget goes; a turn of a
 * QP that the cable blocks costs next to nothing. Returns true if a QP could
 * go on at once: one whose turn has not come, one that is not finished, and
 * one that was scheduled meanwhile, be it by its own turn.
 */
static bool run_responses(Hca *hca)
{
    unsigned visits = hca->resp_queue.length;
    unsigned blocked = 0;

    for (unsigned turns = 0; visits && turns < TURN_BUDGET; visits--) {
        GList *link = g_queue_pop_head_link(&hca->resp_queue);
        HcaQp *qp = link->data;
        bool more;

        qp->resp_queued = false;
        more = hca_responder_send(hca, qp, QP_BUDGET);
        if (!hca_responder_owes(qp)) {
            turns++;
            continue;
        }
        hca_schedule_resp(hca, qp);
        if (more) {
            turns++;
        } else {
            blocked++;
        }
    }
    return hca->resp_queue.length > blocked;
}

static bool run_requests(Hca *hca)
{
    unsigned visits = hca->send_queue.length;
    unsigned blocked = 0;

    for (unsigned turns = 0; visits && turns < TURN_BUDGET; visits--) {
        GList *link = g_queue_pop_head_link(&hca->send_queue);
        HcaQp *qp = link->data;
        HcaTurn turn;

        qp->send_queued = false;
        turn = hca_send_run(hca, qp, QP_BUDGET);
        if (turn != HCA_TURN_IDLE) {
            hca_schedule_send(hca, qp);
        }
        if (turn == HCA_TURN_BLOCKED) {
            blocked++;
        } else {
            turns++;
        }
    }
    return hca->send_queue.length > blocked;
}

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
    more |= run_responses(hca);
    more |= run_requests(hca);
    if (hca->eth && !hca->eth_first) {
        more |= hca_eth_run(hca->eth, ETH_BUDGET);
    }
    return more;
}

static void set_alarm(Hca *hca)
{
    const HcaTimerHeap *heap = &hca->timers;
    int64_t at = hca_link_deadline(hca->link);

    if (heap->count) {
        at = MIN(at, heap->slot[0]->timer_at);
    }
    if (at != hca->alarm) {
        hca->alarm = at;
        hca->ops->timer_mod(hca->opaque, at);
    }
}

/* Whether QPs that found the link's buffer full can go on: it was emptied. */
static bool may_go_on(const Hca *hca)
{
    return (hca->send_queue.length || hca->resp_queue.length) &&
           hca_link_can_send(hca->link, false);
}

bool hca_run(Hca *hca)
{
    bool more;

    if (g_atomic_int_get((gint *)&hca->reset)) {
        hca_reset(hca);
        g_atomic_int_set((gint *)&hca->reset, 0);
    }
    hca_ceu_run(hca->ceu);
    hca_link_tick(hca->link);
    more = run_receive(hca);
    watch_port(hca);
    more |= run_timers(hca);
    more |= run_senders(hca);
    hca_link_flush(hca->link);
    hca_link_flush_capture(hca->link);
    set_alarm(hca);
    return more || hca_link_rx_pending(hca->link) || may_go_on(hca);
}

/* Faults and capture */

void hca_set_faults(Hca *hca, const HcaFaultPlan *plan)
{
    hca_link_set_faults(hca->link, plan);
    set_alarm(hca); /* what was held back leaves now */
}

void hca_start_capture(Hca *hca)
{
    hca_link_start_capture(hca->link);
}

/* Registers and doorbells */

uint32_t hca_bar0_read(const Hca *hca, uint32_t offset)
{
    if (offset >= RDMA_HCA_HCR && offset - RDMA_HCA_HCR < RDMA_HCA_HCR_SIZE) {
        return hca_ceu_read(hca->ceu, offset - RDMA_HCA_HCR);
    }
    if (offset == RDMA_HCA_RESET) {
        return g_atomic_int_get((gint *)&hca->reset);
    }
    return 0;
}

bool hca_bar0_write(Hca *hca, uint32_t offset, uint32_t value)
{
    if (offset >= RDMA_HCA_HCR && offset - RDMA_HCA_HCR < RDMA_HCA_HCR_SIZE) {
        return hca_ceu_write(hca->ceu, offset - RDMA_HCA_HCR, value);
    }
    if (offset == RDMA_HCA_RESET && (value & 1)) {
        g_atomic_int_set((gint *)&hca->reset, 1);
        return true;
    }
    return false;
}

void hca_eq_doorbell(Hca *hca, uint32_t offset, uint32_t value)
{
    uint32_t eqn = (offset - RDMA_HCA_EQ_DB) / RDMA_HCA_EQ_DB_STRIDE;

    if (offset >= RDMA_HCA_EQ_DB && eqn < RDMA_HCA_MAX_EQS) {
        hca_eq_doorbell_write(hca->cm, eqn, value);
    }
}

void hca_eth_doorbell(Hca *hca, uint32_t offset, uint32_t value)
{
    if (hca->eth && offset >= RDMA_HCA_ETH_DB &&
        offset - RDMA_HCA_ETH_DB < RDMA_HCA_ETH_DB_SIZE) {
        hca_eth_db(hca->eth, offset - RDMA_HCA_ETH_DB, value);
    }
}

/* The two 64-bit doorbells of a UAR page. */
static void uar_doorbell(Hca *hca, uint32_t uar, uint32_t reg, uint32_t low,
                         uint32_t high)
{
    if (reg == RDMA_HCA_SEND_DB) {
        hca_send_doorbell(hca, uar, low, high);
    } else {
        hca_cq_doorbell(hca->cm, uar, low, high);
    }
}

void hca_uar_write(Hca *hca, uint32_t offset, uint64_t value, unsigned size)
{
    uint32_t uar = offset / RDMA_HCA_UAR_PAGE_SIZE;
    uint32_t reg = offset % RDMA_HCA_UAR_PAGE_SIZE;
    bool high_half = reg % 8;
    uint32_t *low;

    reg -= reg % 8;
    if (uar >= RDMA_HCA_NUM_UARS ||
        (reg != RDMA_HCA_SEND_DB && reg != RDMA_HCA_CQ_DB)) {
        return;
    }
    /* Halves written one by one: each page keeps its own low words. */
    low = &hca->uar_low[2 * uar + (reg == RDMA_HCA_CQ_DB)];
    if (size == 8) {
        uar_doorbell(hca, uar, reg, value, value >> 32);
    } else if (high_half) {
        uar_doorbell(hca, uar, reg, *low, value);
    } else {
        *low = value;
    }
}

/* Life */

Hca *hca_new(const HcaConfig *config, const HcaHostOps *ops, void *opaque)
{
    bool roce = hca_config_is_roce(config);
    Hca *hca = g_new0(Hca, 1);
    HcaCxtConfig cxt = {
        .log_qps = config->log_qps,
        .log_cqs = config->log_cqs,
        .log_eqs = config->log_eqs,
        .log_pds = config->log_pds,
        .num_vectors = config->num_vectors,
        .num_uars = RDMA_HCA_NUM_UARS,
        .max_mtu = config->max_mtu,
        .roce = roce,
        .log_gids = roce ? config->log_gids : 0,
        .lid = config->lid,
        .num_pkeys = config->num_pkeys,
    };

    memcpy(cxt.pkeys, config->pkeys, sizeof(cxt.pkeys));
    hca->config = *config;
    hca->ops = ops;
    hca->opaque = opaque;
    hca->addressing = roce ? &hca_addressing_roce : &hca_addressing_ib;
    hca->alarm = INT64_MAX;
    g_queue_init(&hca->send_queue);
    g_queue_init(&hca->resp_queue);
    hca->timers.room = 1u << config->log_qps;
    hca->timers.slot = g_new(HcaQp *, hca->timers.room);
    hca->uar_low = g_new0(uint32_t, 2 * RDMA_HCA_NUM_UARS);
    hca->mq = hca_mq_new(config);
    hca->link = hca_link_new(config->link_layer, ops, opaque);
    hca->v2p = hca_v2p_new(ops, opaque, config->log_mpts, config->log_mtts,
                           config->mpt_cache_size, config->mtt_cache_size,
                           config->cache_ways);
    hca->cm = hca_cxtmgt_new(&cxt, hca->v2p, ops, opaque, qp_state_changed,
                             hca);
    hca->ceu = hca_ceu_new(hca);
    hca->eth = roce ? hca_eth_new(hca) : NULL;
    hca_gid_reset(hca);
    return hca;
}

void hca_free(Hca *hca)
{
    hca_cxtmgt_reset(hca->cm);
    if (hca->eth) {
        hca_eth_free(hca->eth);
    }
    hca_ceu_free(hca->ceu);
    hca_cxtmgt_free(hca->cm);
    hca_v2p_free(hca->v2p);
    hca_link_free(hca->link);
    hca_mq_free(hca->mq);
    g_free(hca->uar_low);
    g_free(hca->timers.slot);
    g_free(hca);
}

void hca_reset(Hca *hca)
{
    hca_cxtmgt_reset(hca->cm);
    hca_v2p_reset(hca->v2p);
    hca_ceu_reset(hca->ceu);
    hca_gid_reset(hca);
    hca_mcast_reset(hca);
    if (hca->eth) {
        hca_eth_reset(hca->eth);
    }
    hca_link_clear(hca->link);
    hca_link_reset_counters(hca->link);
    hca_mq_reset_peaks(hca->mq);
    memset(hca->uar_low, 0, 2 * RDMA_HCA_NUM_UARS * sizeof(*hca->uar_low));
    memset(&hca->counters, 0, sizeof(hca->counters));
    hca->port_active = false;
    set_alarm(hca);
}
