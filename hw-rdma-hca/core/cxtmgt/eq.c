/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues (interface document 3.2.4; context document 4.2.3).
 *
 * No event is lost because its queue is full: it waits where it happened, as
 * a bit of its QP, CQ, SRQ or port, and is written when software has made room. An
 * event that happens again while it waits is the same event. Completion
 * events go to the EQ of their CQ; others to the EQ that asked for their type.
 * There is a list for each type, so that a doorbell finds what waits for its
 * queue and stops when that is full.
 */
#include <string.h>

#include "../fault/host_faults.h"
#include "cxtmgt_int.h"

static uint32_t eq_size(const HcaEq *eq)
{
    return 1u << eq->attr.log_size;
}

HcaEq *hca_eq_peek(const HcaCxtMgt *cm, uint32_t eqn)
{
    return hca_index_ok(cm, &cm->eqc, eqn) ? cm->eqs[eqn] : NULL;
}

HcaEq *hca_eq_find(HcaCxtMgt *cm, uint32_t eqn)
{
    cm->counters.eqc_lookups++;
    return hca_eq_peek(cm, eqn);
}

/* Contexts */

static uint64_t event_mask(const HcaCxtMgt *cm, uint32_t eqn)
{
    uint64_t mask = 0;

    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        if (cm->event_eq[type] == eqn) {
            mask |= 1ull << type;
        }
    }
    return mask;
}

/* Write the context of @eqn; @eq NULL: not in use. */
static bool write_eqc(HcaCxtMgt *cm, uint32_t eqn, const HcaEq *eq)
{
    uint8_t cxt[HCA_MAX_CXT_SIZE];

    cm->format->put_eq(eq, event_mask(cm, eqn), cxt);
    return hca_cxt_write(cm, &cm->eqc, eqn, cxt);
}

static bool check(const HcaCxtMgt *cm, const HcaEqAttr *attr)
{
    return attr->start % cm->format->eqe_size == 0 &&
           attr->log_size <= HCA_MAX_LOG_EQ_SIZE &&
           attr->vector < cm->config->num_vectors &&
           attr->pd < 1ull << cm->config->log_pds;
}

uint8_t hca_cxtmgt_sw2hw_eq(HcaCxtMgt *cm, uint32_t eqn, const HcaEqAttr *attr)
{
    HcaEq eq = { .eqn = eqn };

    if (!hca_index_ok(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (cm->eqs[eqn]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (!attr || !check(cm, attr)) {
        return HCA_STAT_BAD_PARAM;
    }
    eq.attr = *attr;
    eq.arm = attr->arm;
    eq.producer_index = attr->index;
    eq.consumer_index = attr->index;
    if (!write_eqc(cm, eqn, &eq)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    cm->eqs[eqn] = g_memdup2(&eq, sizeof(eq));
    g_queue_init(&cm->eqs[eqn]->completions);
    cm->live.eqs++;
    return HCA_STAT_OK;
}

static void unmap_events(HcaCxtMgt *cm, uint32_t eqn, uint64_t mask)
{
    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        if (mask >> type & 1 && cm->event_eq[type] == eqn) {
            cm->event_eq[type] = HCA_NO_EQ;
        }
    }
}

static void free_eq(HcaCxtMgt *cm, HcaEq *eq)
{
    unmap_events(cm, eq->eqn, UINT64_MAX);
    cm->eq_errors &= ~(1u << eq->eqn);
    cm->eqs[eq->eqn] = NULL;
    cm->live.eqs--;
    g_free(eq);
}

/* All QPs and CQs are gone, and their events with them. */
void hca_eq_free_all(HcaCxtMgt *cm)
{
    for (uint32_t eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (cm->eqs[eqn]) {
            free_eq(cm, cm->eqs[eqn]);
        }
    }
    cm->nport_events = 0;
    cm->port_changes = 0;
    cm->command_pending = false;
}

static uint8_t find(HcaCxtMgt *cm, uint32_t eqn, HcaEq **eq)
{
    if (!hca_index_ok(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    *eq = cm->eqs[eqn];
    return *eq ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE;
}

uint8_t hca_cxtmgt_query_eq(HcaCxtMgt *cm, uint32_t eqn, void *cxt)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (!status) {
        cm->format->put_eq(eq, event_mask(cm, eqn), cxt);
    }
    return status;
}

/* Entries */

typedef enum HcaEqPost {
    HCA_EQ_DONE,
    HCA_EQ_FULL,
} HcaEqPost;

static bool eq_is_full(const HcaEq *eq)
{
    return eq->producer_index - eq->consumer_index >= eq_size(eq);
}

static void interrupt(HcaCxtMgt *cm, HcaEq *eq)
{
    if (eq->arm == HCA_EQ_FIRED) {
        return;
    }
    if (eq->arm == HCA_EQ_ARMED) {
        eq->arm = HCA_EQ_FIRED;
    }
    cm->counters.interrupts++;
    hca_v2p_interrupt(cm->v2p, eq->attr.vector);
}

static uint64_t next_addr(const HcaCxtMgt *cm, const HcaEq *eq)
{
    uint32_t slot = eq->producer_index & (eq_size(eq) - 1);

    return eq->attr.start + (uint64_t)slot * cm->format->eqe_size;
}

static HcaMatchInfo eqe_info(const HcaCxtMgt *cm, const HcaEq *eq)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_RELATIVE_ADDR | HCA_ACCESS_LOCAL_WRITE,
        .pd = eq->attr.pd,
        .key = eq->attr.lkey,
        .len = cm->format->eqe_size,
        .va = next_addr(cm, eq),
    };
}

bool hca_eq_is_here(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t eqn,
                    HcaV2pAsk *ask, unsigned *nth)
{
    const HcaEq *eq = cm->eqs[eqn];
    HcaMatchInfo info = eqe_info(cm, eq);

    return eq->status != HCA_QUEUE_OK ||
           hca_v2p_ask(cm->v2p, ask, (*nth)++, channel, HCA_V2P_STORE, &info);
}

static bool write_eqe(HcaCxtMgt *cm, const HcaEq *eq, const HcaEvent *event)
{
    uint8_t entry[HCA_MAX_ENTRY_SIZE];
    HcaMatchInfo info = eqe_info(cm, eq);

    cm->format->put_eqe(event, entry);
    return hca_v2p_write_entry(cm->v2p, HCA_V2P_EE, &info, entry) ==
           HCA_V2P_SUCCESS;
}

/* What another EQ tells of one that has failed. */
static uint8_t failure_event(const HcaEq *eq)
{
    return eq->status == HCA_QUEUE_OVERFLOW ? HCA_EVENT_EQ_OVERFLOW
                                            : HCA_EVENT_LOCAL_CATAS_ERROR;
}

/* @eq has failed: its events are lost. Another EQ may tell. */
static void fail(HcaCxtMgt *cm, HcaEq *eq, HcaQueueStatus status)
{
    HcaEvent event = { .number = eq->eqn };

    eq->status = status;
    event.type = failure_event(eq);
    write_eqc(cm, eq->eqn, eq);
    cm->counters.events_lost++;
    hca_host_broke(&cm->host);
    if (cm->event_eq[event.type] != eq->eqn) {
        hca_eq_event(cm, &event);
    }
}

/*
 * No EQ does so by itself; but a plan of faults may have it. Asked once for each
 * event, when there is room for it.
 */
static bool overflows(HcaCxtMgt *cm, const HcaEq *eq)
{
    const HcaFaultSubject subject = {
        .place = HCA_FAULT_EVENT,
        .actions = UINT16_MAX,
        .number = eq->eqn,
    };

    return hca_host_fault(cm->faults, &subject);
}

static HcaEqPost post_to(HcaCxtMgt *cm, HcaEq *eq, const HcaEvent *event)
{
    if (eq->status != HCA_QUEUE_OK) {
        cm->counters.events_lost++;
        return HCA_EQ_DONE;
    }
    if (eq_is_full(eq)) {
        cm->counters.eq_waits++;
        return HCA_EQ_FULL;
    }
    if (overflows(cm, eq)) {
        fail(cm, eq, HCA_QUEUE_OVERFLOW);
        return HCA_EQ_DONE;
    }
    if (!write_eqe(cm, eq, event)) {
        fail(cm, eq, HCA_QUEUE_WRITE_FAIL);
        return HCA_EQ_DONE;
    }
    eq->producer_index++;
    cm->counters.eqes++;
    cm->counters.eqe_types[event->type]++;
    hca_cxt_trace(cm, HCA_TRACE_EQE, eq->eqn, event->type, event->number, 0);
    interrupt(cm, eq);
    return HCA_EQ_DONE;
}

/* To the EQ that asked for this type. */
static HcaEqPost post_event(HcaCxtMgt *cm, const HcaEvent *event)
{
    uint8_t eqn = event->type < HCA_EVENT_TYPES ? cm->event_eq[event->type]
                                                : HCA_NO_EQ;

    if (eqn == HCA_NO_EQ) {
        cm->counters.events_unmapped++;
        return HCA_EQ_DONE;
    }
    return post_to(cm, cm->eqs[eqn], event);
}

static HcaEqPost post_completion(HcaCxtMgt *cm, HcaEq *eq, const HcaCq *cq)
{
    HcaEvent event = { .type = HCA_EVENT_COMP, .number = cq->cqn };

    return post_to(cm, eq, &event);
}

/* Events that wait */

/* Those of QPs: the place of a type in qp->event_link and cm->qp_events. */
static const uint8_t qp_event_types[HCA_QP_EVENTS] = {
    HCA_EVENT_WQ_CATAS_ERROR,   HCA_EVENT_WQ_INVAL_REQ_ERROR,
    HCA_EVENT_WQ_ACCESS_ERROR,  HCA_EVENT_COMM_EST,
    HCA_EVENT_SQ_DRAINED,       HCA_EVENT_CONGESTION,
    HCA_EVENT_LAST_WQE_REACHED,
};

static void wait_qp(HcaCxtMgt *cm, const HcaEvent *event)
{
    HcaQp *qp = hca_qp_find(cm, event->number);

    for (unsigned i = 0; qp && i < HCA_QP_EVENTS; i++) {
        if (qp_event_types[i] == event->type &&
            !(qp->events >> event->type & 1)) {
            qp->events |= 1u << event->type;
            qp->event_link[i].data = qp;
            g_queue_push_tail_link(&cm->qp_events[i], &qp->event_link[i]);
        }
    }
}

static void forget_qp_event(HcaCxtMgt *cm, HcaQp *qp, unsigned i)
{
    if (qp->events >> qp_event_types[i] & 1) {
        qp->events &= ~(1u << qp_event_types[i]);
        g_queue_unlink(&cm->qp_events[i], &qp->event_link[i]);
    }
}

/* The same of SRQs. */
static const uint8_t srq_event_types[HCA_SRQ_EVENTS] = {
    HCA_EVENT_SRQ_CATAS_ERROR,
    HCA_EVENT_SRQ_LIMIT,
};

static void wait_srq(HcaCxtMgt *cm, const HcaEvent *event)
{
    HcaSrq *srq = hca_srq_find(cm, event->number);

    for (unsigned i = 0; srq && i < HCA_SRQ_EVENTS; i++) {
        if (srq_event_types[i] == event->type &&
            !(srq->events >> event->type & 1)) {
            srq->events |= 1u << event->type;
            g_queue_push_tail_link(&cm->srq_events[i], &srq->event_link[i]);
        }
    }
}

static void forget_srq_event(HcaCxtMgt *cm, HcaSrq *srq, unsigned i)
{
    if (srq->events >> srq_event_types[i] & 1) {
        srq->events &= ~(1u << srq_event_types[i]);
        g_queue_unlink(&cm->srq_events[i], &srq->event_link[i]);
    }
}

static void wait_cq(HcaCxtMgt *cm, const HcaEvent *event)
{
    HcaCq *cq = hca_cq_find(cm, event->number);

    if (cq && !cq->error_pending) {
        cq->error_pending = true;
        g_queue_push_tail_link(&cm->cq_errors, &cq->error_link);
    }
}

/* Keep the last changes that leave the port in the state it is in. */
static void wait_port(HcaCxtMgt *cm, uint8_t subtype)
{
    if (cm->nport_events && cm->port_events[cm->nport_events - 1] == subtype) {
        return;
    }
    if (cm->nport_events == HCA_PORT_EVENTS) {
        cm->nport_events = 0;
    }
    cm->port_events[cm->nport_events++] = subtype;
}

static void wait_event(HcaCxtMgt *cm, const HcaEvent *event)
{
    switch (event->type) {
    case HCA_EVENT_CMD:
        cm->command_pending = true;
        cm->command = *event;
        break;
    case HCA_EVENT_CQ_ERROR:
        wait_cq(cm, event);
        break;
    case HCA_EVENT_SRQ_CATAS_ERROR:
    case HCA_EVENT_SRQ_LIMIT:
        wait_srq(cm, event);
        break;
    case HCA_EVENT_LOCAL_CATAS_ERROR:
    case HCA_EVENT_EQ_OVERFLOW:
        cm->eq_errors |= 1u << event->number;
        break;
    case HCA_EVENT_PORT_CHANGE:
        wait_port(cm, event->subtype);
        break;
    case HCA_EVENT_PORT_MNG:
        cm->port_changes |= event->syndrome;
        break;
    default:
        wait_qp(cm, event);
        break;
    }
}

void hca_eq_event(HcaCxtMgt *cm, const HcaEvent *event)
{
    if (post_event(cm, event) == HCA_EQ_FULL) {
        wait_event(cm, event);
    }
}

HcaEq *hca_eq_request(HcaCxtMgt *cm, HcaCq *cq)
{
    HcaEq *eq = cm->eqs[cq->attr.eqn];

    if (cq->event_pending) {
        return NULL;
    }
    if (eq->status == HCA_QUEUE_OK && eq_is_full(eq)) {
        cm->counters.eq_waits++;
        cq->event_pending = true;
        g_queue_push_tail_link(&eq->completions, &cq->comp_link);
        return NULL;
    }
    return eq;
}

void hca_eq_write_completion(HcaCxtMgt *cm, HcaEq *eq, const HcaCq *cq)
{
    post_completion(cm, eq, cq);
}

void hca_eq_completion(HcaCxtMgt *cm, HcaCq *cq)
{
    HcaEq *eq = hca_eq_request(cm, cq);

    if (eq) {
        post_completion(cm, eq, cq);
    }
}

bool hca_eq_command_pending(const HcaCxtMgt *cm)
{
    return cm->command_pending;
}

void hca_eq_forget_qp(HcaCxtMgt *cm, HcaQp *qp)
{
    for (unsigned i = 0; i < HCA_QP_EVENTS; i++) {
        forget_qp_event(cm, qp, i);
    }
}

void hca_eq_forget_srq(HcaCxtMgt *cm, HcaSrq *srq)
{
    for (unsigned i = 0; i < HCA_SRQ_EVENTS; i++) {
        forget_srq_event(cm, srq, i);
    }
}

void hca_eq_forget_cq(HcaCxtMgt *cm, HcaCq *cq)
{
    if (cq->event_pending) {
        g_queue_unlink(&cm->eqs[cq->attr.eqn]->completions, &cq->comp_link);
        cq->event_pending = false;
    }
    if (cq->error_pending) {
        g_queue_unlink(&cm->cq_errors, &cq->error_link);
        cq->error_pending = false;
    }
}

/* Events that waited, delivered while there is room */

static HcaEqPost deliver_command(HcaCxtMgt *cm)
{
    if (cm->command_pending && post_event(cm, &cm->command) == HCA_EQ_FULL) {
        return HCA_EQ_FULL;
    }
    cm->command_pending = false;
    return HCA_EQ_DONE;
}

static HcaEqPost deliver_port(HcaCxtMgt *cm)
{
    while (cm->nport_events) {
        HcaEvent event = {
            .type = HCA_EVENT_PORT_CHANGE,
            .subtype = cm->port_events[0],
            .number = RDMA_HCA_NUM_PORTS,
        };

        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        cm->nport_events--;
        memmove(&cm->port_events[0], &cm->port_events[1], cm->nport_events);
    }
    return HCA_EQ_DONE;
}

static HcaEqPost deliver_port_changes(HcaCxtMgt *cm)
{
    HcaEvent event = {
        .type = HCA_EVENT_PORT_MNG,
        .number = RDMA_HCA_NUM_PORTS,
        .syndrome = cm->port_changes,
    };

    if (cm->port_changes && post_event(cm, &event) == HCA_EQ_FULL) {
        return HCA_EQ_FULL;
    }
    cm->port_changes = 0;
    return HCA_EQ_DONE;
}

static HcaEqPost deliver_cqs(HcaCxtMgt *cm)
{
    while (cm->cq_errors.head) {
        HcaCq *cq = cm->cq_errors.head->data;
        HcaEvent event = {
            .type = HCA_EVENT_CQ_ERROR,
            .number = cq->cqn,
            .syndrome = cq->status == HCA_QUEUE_OVERFLOW ? HCA_CQ_ERROR_OVERRUN
                                                         : HCA_CQ_ERROR_ACCESS,
        };

        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        g_queue_unlink(&cm->cq_errors, &cq->error_link);
        cq->error_pending = false;
    }
    return HCA_EQ_DONE;
}

/* Those EQs that have failed of which event @type tells. */
static HcaEqPost deliver_eqs(HcaCxtMgt *cm, uint8_t type)
{
    for (uint32_t left = cm->eq_errors; left; left &= left - 1) {
        uint32_t eqn = __builtin_ctz(left);
        HcaEvent event = { .type = type, .number = eqn };

        if (failure_event(cm->eqs[eqn]) != type) {
            continue;
        }
        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        cm->eq_errors &= ~(1u << eqn);
    }
    return HCA_EQ_DONE;
}

static HcaEqPost deliver_qps(HcaCxtMgt *cm, unsigned i)
{
    while (cm->qp_events[i].head) {
        HcaQp *qp = cm->qp_events[i].head->data;
        HcaEvent event = { .type = qp_event_types[i], .number = qp->qpn };

        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        forget_qp_event(cm, qp, i);
    }
    return HCA_EQ_DONE;
}

static HcaEqPost deliver_srqs(HcaCxtMgt *cm, unsigned i)
{
    while (cm->srq_events[i].head) {
        HcaSrq *srq = cm->srq_events[i].head->data;
        HcaEvent event = { .type = srq_event_types[i], .number = srq->srqn };

        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        forget_srq_event(cm, srq, i);
    }
    return HCA_EQ_DONE;
}

static HcaEqPost deliver_completions(HcaCxtMgt *cm, HcaEq *eq)
{
    while (eq->completions.head) {
        HcaCq *cq = eq->completions.head->data;

        if (post_completion(cm, eq, cq) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        g_queue_unlink(&eq->completions, &cq->comp_link);
        cq->event_pending = false;
    }
    return HCA_EQ_DONE;
}

/* What waits for @eqn (HCA_NO_EQ: for none any more), until that is full. */
static void deliver(HcaCxtMgt *cm, uint8_t eqn)
{
    const uint8_t *to = cm->event_eq;
    HcaEqPost post = HCA_EQ_DONE;

    if (to[HCA_EVENT_CMD] == eqn) {
        post = deliver_command(cm);
    }
    if (to[HCA_EVENT_PORT_CHANGE] == eqn && post == HCA_EQ_DONE) {
        post = deliver_port(cm);
    }
    if (to[HCA_EVENT_PORT_MNG] == eqn && post == HCA_EQ_DONE) {
        post = deliver_port_changes(cm);
    }
    if (to[HCA_EVENT_LOCAL_CATAS_ERROR] == eqn && post == HCA_EQ_DONE) {
        post = deliver_eqs(cm, HCA_EVENT_LOCAL_CATAS_ERROR);
    }
    if (to[HCA_EVENT_EQ_OVERFLOW] == eqn && post == HCA_EQ_DONE) {
        post = deliver_eqs(cm, HCA_EVENT_EQ_OVERFLOW);
    }
    if (to[HCA_EVENT_CQ_ERROR] == eqn && post == HCA_EQ_DONE) {
        post = deliver_cqs(cm);
    }
    for (unsigned i = 0; i < HCA_SRQ_EVENTS && post == HCA_EQ_DONE; i++) {
        if (to[srq_event_types[i]] == eqn) {
            post = deliver_srqs(cm, i);
        }
    }
    for (unsigned i = 0; i < HCA_QP_EVENTS && post == HCA_EQ_DONE; i++) {
        if (to[qp_event_types[i]] == eqn) {
            post = deliver_qps(cm, i);
        }
    }
}

/* Commands and the doorbell */

uint8_t hca_cxtmgt_hw2sw_eq(HcaCxtMgt *cm, uint32_t eqn)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (status) {
        return status;
    }
    if (eq->cqs) {
        return HCA_STAT_RESOURCE_BUSY;
    }
    write_eqc(cm, eqn, NULL);
    free_eq(cm, eq);
    /* What waited for its room goes to nobody. */
    deliver(cm, HCA_NO_EQ);
    return HCA_STAT_OK;
}

uint8_t hca_cxtmgt_map_eq(HcaCxtMgt *cm, uint32_t eqn, uint64_t mask,
                          bool unmap)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (status) {
        return status;
    }
    if (!hca_cxt_writable(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    if (unmap) {
        unmap_events(cm, eqn, mask);
    } else {
        for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
            if (mask >> type & 1) {
                cm->event_eq[type] = eqn;
            }
        }
    }
    write_eqc(cm, eq->eqn, eq);
    deliver(cm, unmap ? HCA_NO_EQ : eqn);
    return HCA_STAT_OK;
}

/* The consumer index that a doorbell told, with all its bits. */
static bool widen_index(const HcaEq *eq, uint32_t ci, uint32_t *wide)
{
    uint32_t behind = (eq->producer_index - ci) & HCA_EQ_INDEX_MASK;

    *wide = eq->producer_index - behind;
    return behind <= eq->producer_index - eq->consumer_index;
}

void hca_eq_doorbell(HcaCxtMgt *cm, uint32_t eqn, uint32_t ci, bool arm)
{
    HcaEq *eq = hca_eq_find(cm, eqn);

    cm->counters.eq_doorbells++;
    if (!eq) {
        cm->counters.db_bad_eqn++;
        return;
    }
    if (!widen_index(eq, ci, &ci)) {
        cm->counters.db_bad_ci++;
        return;
    }
    eq->consumer_index = ci;
    if (deliver_completions(cm, eq) == HCA_EQ_DONE) {
        deliver(cm, eqn);
    }
    if (arm && eq->arm == HCA_EQ_FIRED) {
        eq->arm = HCA_EQ_ARMED;
    }
    if (arm && eq->producer_index != ci) {
        interrupt(cm, eq);
    }
}
