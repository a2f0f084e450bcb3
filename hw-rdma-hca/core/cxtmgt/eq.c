/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues (interface document 3.2.4; context document 4.2.3).
 *
 * No event is lost because its queue is full: it waits where it happened, as
 * a bit of its QP, CQ or port, and is written when software has made room. An
 * event that happens again while it waits is the same event. Completion
 * events go to the EQ of their CQ; others to the EQ that asked for their type.
 */
#include <string.h>

#include "cxtmgt_int.h"

static uint32_t eq_size(const HcaEq *eq)
{
    return 1u << eq->log_size;
}

HcaEq *hca_eq_find(HcaCxtMgt *cm, uint32_t eqn)
{
    cm->counters.eqc_lookups++;
    return hca_index_ok(cm, &cm->eqc, eqn) ? cm->eqs[eqn] : NULL;
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

static void encode(const HcaCxtMgt *cm, const HcaEq *eq,
                   struct rdma_hca_eqc *eqc)
{
    uint64_t mask = event_mask(cm, eq->eqn);

    *eqc = (struct rdma_hca_eqc) {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_EQC_STATUS, eq->status) |
            RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, RDMA_HCA_EQ_OWNER_HW) |
            RDMA_HCA_EQC_TR | RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, eq->state)),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(eq->start)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(eq->start)),
        .logsize = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_EQC_LOGSIZE, eq->log_size)),
        .msix_vector = GUINT32_TO_BE(eq->vector),
        .pd = GUINT32_TO_BE(eq->pd),
        .lkey = GUINT32_TO_BE(eq->lkey),
        .consumer_index = GUINT32_TO_BE(eq->consumer_index),
        .producer_index = GUINT32_TO_BE(eq->producer_index),
        .event_mask_h = GUINT32_TO_BE(RDMA_HCA_HI32(mask)),
        .event_mask_l = GUINT32_TO_BE(RDMA_HCA_LO32(mask)),
    };
}

static bool write_eqc(HcaCxtMgt *cm, const HcaEq *eq)
{
    struct rdma_hca_eqc eqc;

    encode(cm, eq, &eqc);
    return hca_cxt_write(cm, &cm->eqc, eq->eqn, &eqc, sizeof(eqc));
}

static void decode(HcaEq *eq, const struct rdma_hca_eqc *eqc)
{
    eq->start = (uint64_t)GUINT32_FROM_BE(eqc->start_h) << 32 |
                GUINT32_FROM_BE(eqc->start_l);
    eq->log_size = RDMA_HCA_GET(RDMA_HCA_EQC_LOGSIZE,
                                GUINT32_FROM_BE(eqc->logsize));
    eq->state = RDMA_HCA_GET(RDMA_HCA_EQC_STATE, GUINT32_FROM_BE(eqc->flags));
    eq->vector = RDMA_HCA_GET(RDMA_HCA_EQC_VECTOR,
                              GUINT32_FROM_BE(eqc->msix_vector));
    eq->pd = GUINT32_FROM_BE(eqc->pd);
    eq->lkey = GUINT32_FROM_BE(eqc->lkey);
    eq->consumer_index = GUINT32_FROM_BE(eqc->consumer_index);
    eq->producer_index = GUINT32_FROM_BE(eqc->producer_index);
}

static bool check(const HcaCxtMgt *cm, const HcaEq *eq, uint32_t flags)
{
    return RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, flags) == RDMA_HCA_EQ_STATUS_OK &&
           (flags & RDMA_HCA_EQC_TR) &&
           (eq->state == RDMA_HCA_EQ_STATE_ARMED ||
            eq->state == RDMA_HCA_EQ_STATE_FIRED ||
            eq->state == RDMA_HCA_EQ_STATE_ALWAYS_ARMED) &&
           eq->start % RDMA_HCA_EQE_SIZE == 0 &&
           eq->log_size <= HCA_MAX_LOG_EQ_SIZE &&
           eq->vector < cm->config->num_vectors &&
           eq->pd < 1ull << cm->config->log_pds &&
           eq->producer_index == eq->consumer_index;
}

uint8_t hca_cxtmgt_sw2hw_eq(HcaCxtMgt *cm, uint32_t eqn,
                            const struct rdma_hca_eqc *eqc)
{
    HcaEq eq = { .eqn = eqn };

    if (!hca_index_ok(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (cm->eqs[eqn]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    decode(&eq, eqc);
    if (!check(cm, &eq, GUINT32_FROM_BE(eqc->flags))) {
        return HCA_STAT_BAD_PARAM;
    }
    if (!write_eqc(cm, &eq)) {
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
    cm->card_events = 0;
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

uint8_t hca_cxtmgt_query_eq(HcaCxtMgt *cm, uint32_t eqn,
                            struct rdma_hca_eqc *eqc)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (!status) {
        encode(cm, eq, eqc);
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
    if (eq->state == RDMA_HCA_EQ_STATE_FIRED) {
        return;
    }
    if (eq->state == RDMA_HCA_EQ_STATE_ARMED) {
        eq->state = RDMA_HCA_EQ_STATE_FIRED;
    }
    cm->counters.interrupts++;
    cm->ops->msix_notify(cm->opaque, eq->vector);
}

static uint64_t next_addr(const HcaEq *eq)
{
    uint32_t slot = eq->producer_index & (eq_size(eq) - 1);

    return eq->start + (uint64_t)slot * RDMA_HCA_EQE_SIZE;
}

static bool write_eqe(HcaCxtMgt *cm, const HcaEq *eq,
                      const struct rdma_hca_eqe *eqe)
{
    struct rdma_hca_eqe entry = *eqe;
    HcaMatchInfo info = {
        .flags = HCA_V2P_RELATIVE_ADDR | HCA_ACCESS_LOCAL_WRITE,
        .pd = eq->pd,
        .key = eq->lkey,
        .len = sizeof(entry),
        .va = next_addr(eq),
    };

    entry.owner = RDMA_HCA_OWNER_SW;
    return hca_v2p_write_entry(cm->v2p, HCA_V2P_EE, &info, &entry) ==
           HCA_V2P_SUCCESS;
}

static HcaEqPost post_eqe(HcaCxtMgt *cm, HcaEq *eq,
                          const struct rdma_hca_eqe *eqe)
{
    if (eq->status != RDMA_HCA_EQ_STATUS_OK) {
        cm->counters.events_lost++;
        return HCA_EQ_DONE;
    }
    if (eq_is_full(eq)) {
        return HCA_EQ_FULL;
    }
    if (!write_eqe(cm, eq, eqe)) {
        /* Nobody can be told: the driver finds the status by QUERY_EQ. */
        eq->status = RDMA_HCA_EQ_STATUS_WRITE_FAIL;
        write_eqc(cm, eq);
        cm->counters.events_lost++;
        return HCA_EQ_DONE;
    }
    eq->producer_index++;
    cm->counters.eqes++;
    cm->counters.eqe_types[eqe->type]++;
    hca_cxt_trace(cm, HCA_TRACE_EQE, eq->eqn, eqe->type,
                  GUINT32_FROM_LE(eqe->raw[0]), 0);
    interrupt(cm, eq);
    return HCA_EQ_DONE;
}

/* To the EQ that asked for this type. */
static HcaEqPost post_by_type(HcaCxtMgt *cm, const struct rdma_hca_eqe *eqe)
{
    uint8_t eqn = eqe->type < HCA_EVENT_TYPES ? cm->event_eq[eqe->type]
                                              : HCA_NO_EQ;
    if (eqn == HCA_NO_EQ) {
        cm->counters.events_unmapped++;
        return HCA_EQ_DONE;
    }
    return post_eqe(cm, cm->eqs[eqn], eqe);
}

static HcaEqPost post_event(HcaCxtMgt *cm, const HcaEvent *event)
{
    struct rdma_hca_eqe eqe = {
        .type = event->type,
        .subtype = event->subtype,
    };

    /* QPN, CQN and port have the same place. */
    eqe.raw[0] = GUINT32_TO_LE(event->number);
    if (event->type == HCA_EVENT_CQ_ERROR) {
        eqe.cq.syndrome = GUINT32_TO_LE(event->syndrome);
    }
    return post_by_type(cm, &eqe);
}

static HcaEqPost post_completion(HcaCxtMgt *cm, HcaEq *eq, const HcaCq *cq)
{
    struct rdma_hca_eqe eqe = {
        .type = HCA_EVENT_COMP,
        .cq.cqn = GUINT32_TO_LE(cq->cqn),
    };

    return post_eqe(cm, eq, &eqe);
}

/* Events that wait */

static bool is_qp_event(uint8_t type)
{
    switch (type) {
    case HCA_EVENT_COMM_EST:
    case HCA_EVENT_SQ_DRAINED:
    case HCA_EVENT_WQ_CATAS_ERROR:
    case HCA_EVENT_WQ_INVAL_REQ_ERROR:
    case HCA_EVENT_WQ_ACCESS_ERROR:
    case HCA_EVENT_LAST_WQE_REACHED:
    case HCA_EVENT_CONGESTION:
        return true;
    default:
        return false;
    }
}

static void wait_qp(HcaCxtMgt *cm, const HcaEvent *event)
{
    HcaQp *qp = hca_qp_find(cm, event->number);

    if (!qp) {
        return;
    }
    if (!qp->events) {
        g_queue_push_tail_link(&cm->qp_events, &qp->event_link);
    }
    qp->events |= 1u << event->type;
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
    cm->counters.eq_waits++;
    if (is_qp_event(event->type)) {
        wait_qp(cm, event);
    } else if (event->type == HCA_EVENT_CQ_ERROR) {
        wait_cq(cm, event);
    } else if (event->type == HCA_EVENT_PORT_CHANGE) {
        wait_port(cm, event->subtype);
    } else {
        cm->card_events |= 1ull << event->type;
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
    HcaEq *eq = cm->eqs[cq->eqn];

    if (cq->event_pending) {
        return NULL;
    }
    if (eq->status == RDMA_HCA_EQ_STATUS_OK && eq_is_full(eq)) {
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

bool hca_eq_command(HcaCxtMgt *cm, uint16_t token, uint8_t status,
                    uint64_t out_param)
{
    struct rdma_hca_eqe eqe = {
        .type = HCA_EVENT_CMD,
        .cmd = {
            .token = GUINT32_TO_LE(token),
            .status = GUINT32_TO_LE(status),
            .out_param_h = GUINT32_TO_LE(RDMA_HCA_HI32(out_param)),
            .out_param_l = GUINT32_TO_LE(RDMA_HCA_LO32(out_param)),
        },
    };

    if (cm->event_eq[HCA_EVENT_CMD] == HCA_NO_EQ) {
        cm->counters.events_unmapped++;
        return false;
    }
    if (post_by_type(cm, &eqe) == HCA_EQ_FULL) {
        cm->counters.eq_waits++;
        cm->command_pending = true;
        cm->command = eqe;
    }
    return true;
}

void hca_eq_forget_qp(HcaCxtMgt *cm, HcaQp *qp)
{
    if (qp->events) {
        g_queue_unlink(&cm->qp_events, &qp->event_link);
        qp->events = 0;
    }
}

void hca_eq_forget_cq(HcaCxtMgt *cm, HcaCq *cq)
{
    if (cq->event_pending) {
        g_queue_unlink(&cm->eqs[cq->eqn]->completions, &cq->comp_link);
        cq->event_pending = false;
    }
    if (cq->error_pending) {
        g_queue_unlink(&cm->cq_errors, &cq->error_link);
        cq->error_pending = false;
    }
}

/* Events that waited, delivered while there is room */

static void deliver_qp(HcaCxtMgt *cm, HcaQp *qp)
{
    for (uint8_t type = 0; type < 32; type++) {
        HcaEvent event = { .type = type, .number = qp->qpn };

        if (qp->events >> type & 1 && post_event(cm, &event) == HCA_EQ_DONE) {
            qp->events &= ~(1u << type);
        }
    }
}

static void deliver_qps(HcaCxtMgt *cm)
{
    GList *next;

    for (GList *link = cm->qp_events.head; link; link = next) {
        HcaQp *qp = link->data;

        next = link->next;
        deliver_qp(cm, qp);
        if (!qp->events) {
            g_queue_unlink(&cm->qp_events, link);
        }
    }
}

static void deliver_cqs(HcaCxtMgt *cm)
{
    while (cm->cq_errors.head) {
        HcaCq *cq = cm->cq_errors.head->data;
        HcaEvent event = {
            .type = HCA_EVENT_CQ_ERROR,
            .number = cq->cqn,
            .syndrome = cq->status == RDMA_HCA_CQ_STATUS_OVERFLOW
                            ? HCA_CQ_ERROR_OVERRUN
                            : HCA_CQ_ERROR_ACCESS,
        };

        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return;
        }
        g_queue_unlink(&cm->cq_errors, &cq->error_link);
        cq->error_pending = false;
    }
}

static void deliver_port(HcaCxtMgt *cm)
{
    while (cm->nport_events) {
        HcaEvent event = {
            .type = HCA_EVENT_PORT_CHANGE,
            .subtype = cm->port_events[0],
            .number = RDMA_HCA_NUM_PORTS,
        };

        if (post_event(cm, &event) == HCA_EQ_FULL) {
            return;
        }
        cm->nport_events--;
        memmove(&cm->port_events[0], &cm->port_events[1], cm->nport_events);
    }
}

static void deliver_card(HcaCxtMgt *cm)
{
    for (uint8_t type = 0; type < HCA_EVENT_TYPES; type++) {
        HcaEvent event = { .type = type };

        if (cm->card_events >> type & 1 &&
            post_event(cm, &event) == HCA_EQ_DONE) {
            cm->card_events &= ~(1ull << type);
        }
    }
}

static void deliver_completions(HcaCxtMgt *cm, HcaEq *eq)
{
    while (eq->completions.head) {
        HcaCq *cq = eq->completions.head->data;

        if (post_completion(cm, eq, cq) == HCA_EQ_FULL) {
            return;
        }
        g_queue_unlink(&eq->completions, &cq->comp_link);
        cq->event_pending = false;
    }
}

static void deliver(HcaCxtMgt *cm)
{
    if (cm->command_pending && post_by_type(cm, &cm->command) == HCA_EQ_DONE) {
        cm->command_pending = false;
    }
    deliver_port(cm);
    deliver_card(cm);
    deliver_cqs(cm);
    deliver_qps(cm);
}

/* Commands and the doorbell */

uint8_t hca_cxtmgt_hw2sw_eq(HcaCxtMgt *cm, uint32_t eqn)
{
    static const struct rdma_hca_eqc invalid;
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (status) {
        return status;
    }
    if (eq->cqs) {
        return HCA_STAT_RESOURCE_BUSY;
    }
    hca_cxt_write(cm, &cm->eqc, eqn, &invalid, sizeof(invalid));
    free_eq(cm, eq);
    /* What waited for its room goes to whom asks now, or to nobody. */
    deliver(cm);
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
    if (unmap) {
        unmap_events(cm, eqn, mask);
    } else {
        for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
            if (mask >> type & 1) {
                cm->event_eq[type] = eqn;
            }
        }
    }
    write_eqc(cm, eq);
    deliver(cm);
    return HCA_STAT_OK;
}

/* Bits of a consumer index in a doorbell. */
#define EQ_INDEX_MASK 0xffffffu

/* Consumer index of a doorbell to all its bits. */
static bool widen_index(const HcaEq *eq, uint32_t ci, uint32_t *wide)
{
    uint32_t behind = (eq->producer_index - ci) & EQ_INDEX_MASK;

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
    deliver_completions(cm, eq);
    deliver(cm);
    if (arm && eq->state == RDMA_HCA_EQ_STATE_FIRED) {
        eq->state = RDMA_HCA_EQ_STATE_ARMED;
    }
    if (arm && eq->producer_index != ci) {
        interrupt(cm, eq);
    }
}
