/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues (interface document 3.2.5, 3.3; context document 4.2.2).
 *
 * Indices count without wrapping at the queue's size, modulo 2^32. A CQ stays
 * while QPs use it. The overrun check, the consumer index in guest memory and
 * the arming, which the documents leave open, are as docs/abi.md says. Events
 * that wait for more entries are in moderation.c.
 */
#include "cxtmgt_int.h"

#define TIMER_BUDGET 256 /* events of a turn */
#define TRACE_ERROR 0xff /* in the place of an opcode */

static uint32_t cq_size(const HcaCq *cq)
{
    return 1u << cq->attr.log_size;
}

/* The place of @cqn, which another one may have; NULL: there is no such number. */
static HcaCq **place_of(const HcaCxtMgt *cm, uint32_t cqn)
{
    uint32_t index;

    return hca_index_of(cm, &cm->cqc, cqn, &index) ? &cm->cqs[index] : NULL;
}

/* Not counted, for who will fetch it when what it asks for is here. */
HcaCq *hca_cq_peek(const HcaCxtMgt *cm, uint32_t cqn)
{
    HcaCq **place = place_of(cm, cqn);

    return place && *place && (*place)->cqn == cqn ? *place : NULL;
}

HcaCq *hca_cq_find(HcaCxtMgt *cm, uint32_t cqn)
{
    cm->counters.cqc_lookups++;
    return hca_cq_peek(cm, cqn);
}

/* Write the context of @cqn; @cq NULL: not in use. */
static bool write_cqc(HcaCxtMgt *cm, uint32_t cqn, const HcaCq *cq)
{
    uint8_t cxt[HCA_MAX_CXT_SIZE];

    cm->format->put_cq(cq, cxt);
    return hca_cxt_write(cm, &cm->cqc, cqn, cxt);
}

static bool check(HcaCxtMgt *cm, const HcaCqAttr *attr)
{
    return attr->start % cm->format->cqe_size == 0 &&
           attr->log_size <= HCA_MAX_LOG_CQ_SIZE &&
           attr->uar < RDMA_HCA_NUM_UARS && hca_eq_find(cm, attr->eqn) &&
           attr->pd < 1ull << cm->config->log_pds &&
           attr->ci_db % sizeof(uint32_t) == 0;
}

static HcaCq *add_cq(HcaCxtMgt *cm, const HcaCq *from)
{
    HcaCq *cq = g_memdup2(from, sizeof(*from));

    *place_of(cm, cq->cqn) = cq;
    hca_eq_find(cm, cq->attr.eqn)->cqs++;
    cm->live.cqs++;
    return cq;
}

uint8_t hca_cxtmgt_sw2hw_cq(HcaCxtMgt *cm, uint32_t cqn, const HcaCqAttr *attr)
{
    HcaCq cq = { .cqn = cqn, .timer.slot = -1 };
    HcaCq **place = place_of(cm, cqn);

    if (!place) {
        return HCA_STAT_BAD_INDEX;
    }
    if (*place) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (!attr || !check(cm, attr)) {
        return HCA_STAT_BAD_PARAM;
    }
    cq.attr = *attr;
    cq.arm = attr->arm;
    if (!write_cqc(cm, cqn, &cq)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    add_cq(cm, &cq);
    return HCA_STAT_OK;
}

bool hca_cq_add(HcaCxtMgt *cm, const HcaCq *from)
{
    HcaCq cq = { 0 };
    HcaCq **place, *added;

    hca_struct_take(&hca_cq_struct, &cq, from);
    place = place_of(cm, cq.cqn);
    if (!place || *place || !check(cm, &cq.attr) ||
        cq.status > HCA_QUEUE_WRITE_FAIL || cq.arm > HCA_CQ_FIRED) {
        return false;
    }
    cq.timer.slot = -1;
    added = add_cq(cm, &cq);
    if (from->timer.slot >= 0) {
        hca_heap_put(&cm->cq_timers, &added->timer, from->timer.key);
    }
    return true;
}

static void free_cq(HcaCxtMgt *cm, HcaCq *cq)
{
    hca_cq_stop_timer(cm, cq);
    hca_eq_forget(&cq->error);
    hca_eq_forget(&cq->completion);
    hca_eq_find(cm, cq->attr.eqn)->cqs--;
    cm->live.cqs--;
    *place_of(cm, cq->cqn) = NULL;
    g_free(cq);
}

void hca_cq_free_all(HcaCxtMgt *cm)
{
    for (uint32_t i = 0; i < 1u << cm->cqc.log_num; i++) {
        if (cm->cqs[i]) {
            free_cq(cm, cm->cqs[i]);
        }
    }
}

/* BAD_RES_STATE for one that is not in hardware. */
static uint8_t owned(HcaCxtMgt *cm, uint32_t cqn, HcaCq **cq)
{
    if (!place_of(cm, cqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    *cq = hca_cq_peek(cm, cqn);
    return *cq ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE;
}

uint8_t hca_cxtmgt_hw2sw_cq(HcaCxtMgt *cm, uint32_t cqn)
{
    HcaCq *cq;
    uint8_t status = owned(cm, cqn, &cq);

    if (status) {
        return status;
    }
    if (cq->queues) {
        return HCA_STAT_RESOURCE_BUSY;
    }
    write_cqc(cm, cqn, NULL);
    free_cq(cm, cq);
    return HCA_STAT_OK;
}

uint8_t hca_cxtmgt_query_cq(HcaCxtMgt *cm, uint32_t cqn, void *cxt)
{
    HcaCq *cq;
    uint8_t status = owned(cm, cqn, &cq);

    if (!status) {
        cm->format->put_cq(cq, cxt);
    }
    return status;
}

/* The consumer moved to @ci, if that can be; it does not move back. */
static void consumed(HcaCxtMgt *cm, HcaCq *cq, uint32_t ci)
{
    if (ci - cq->consumer_index <= cq->producer_index - cq->consumer_index) {
        cq->consumer_index = ci;
    }
    if ((int32_t)(cq->consumer_index - cq->solicit_producer_index) > 0) {
        cq->solicit_producer_index = cq->consumer_index;
    }
    if ((int32_t)(cq->consumer_index - cq->last_notified_index) > 0) {
        cq->last_notified_index = cq->consumer_index;
    }
    if (!hca_cq_untold(cq)) {
        hca_cq_stop_timer(cm, cq);
    }
}

static uint32_t entries(const HcaCq *cq)
{
    return cq->producer_index - cq->consumer_index;
}

/* Read the consumer index that software keeps in memory. */
static void refresh_consumer(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq)
{
    uint64_t place = cq->attr.ci_db;
    uint32_t record;

    cm->counters.cq_ci_reads += place != 0;
    if (place && hca_record_read(cm->v2p, channel, place, &record)) {
        consumed(cm, cq, record);
    }
}

/*
 * RESIZE_CQ: entries from here on go to the new buffer, at the same offset in
 * its region. Those before it are software's to move; they must fit.
 */
uint8_t hca_cxtmgt_resize_cq(HcaCxtMgt *cm, uint32_t cqn, unsigned log_size,
                             uint32_t lkey)
{
    HcaCq *cq;
    uint8_t status = owned(cm, cqn, &cq);

    if (status) {
        return status;
    }
    if (log_size > HCA_MAX_LOG_CQ_SIZE) {
        return HCA_STAT_BAD_PARAM;
    }
    if (cq->status != HCA_QUEUE_OK || cq->attr.on_bus) {
        return HCA_STAT_BAD_RES_STATE;
    }
    refresh_consumer(cm, HCA_V2P_CEU, cq);
    if (entries(cq) > 1u << log_size) {
        return HCA_STAT_BAD_SIZE;
    }
    if (!hca_cxt_writable(cm, &cm->cqc, cqn)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    cq->attr.log_size = log_size;
    cq->attr.lkey = lkey;
    write_cqc(cm, cqn, cq);
    return HCA_STAT_OK;
}

static bool is_full(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq)
{
    if (cq->attr.ignore_overrun || entries(cq) < cq_size(cq)) {
        return false;
    }
    refresh_consumer(cm, channel, cq);
    return entries(cq) >= cq_size(cq);
}

uint64_t hca_cq_next_addr(const HcaCxtMgt *cm, const HcaCq *cq)
{
    uint32_t slot = cq->producer_index & (cq_size(cq) - 1);

    return cq->attr.start + (uint64_t)slot * cm->format->cqe_size;
}

static HcaMatchInfo cqe_info(const HcaCxtMgt *cm, const HcaCq *cq,
                             uint64_t addr)
{
    return (HcaMatchInfo) {
        .flags = HCA_ACCESS_LOCAL_WRITE | hca_queue_addr_flag(cq->attr.on_bus),
        .pd = cq->attr.pd,
        .key = cq->attr.lkey,
        .len = cm->format->cqe_size,
        .va = addr,
    };
}

static HcaV2pState write_cqe(HcaCxtMgt *cm, HcaV2pChannel channel,
                             const HcaCq *cq, uint64_t addr,
                             const HcaCompletion *completion)
{
    uint8_t entry[HCA_MAX_ENTRY_SIZE];
    HcaMatchInfo info = cqe_info(cm, cq, addr);

    cm->format->put_cqe(completion, cm->host.ops->clock_ns(cm->host.opaque),
                        entry);
    return hca_v2p_write_entry(cm->v2p, channel, &info, entry);
}

static void trace_cqe(HcaCxtMgt *cm, const HcaCq *cq,
                      const HcaCompletion *completion)
{
    hca_cxt_trace(cm, HCA_TRACE_CQE, cq->cqn, completion->qpn,
                  completion->syndrome ? TRACE_ERROR : completion->opcode,
                  completion->syndrome);
}

/* One event, and it takes no more entries. */
void hca_cq_break(HcaCxtMgt *cm, HcaCq *cq, HcaQueueStatus status)
{
    HcaEvent event = {
        .type = HCA_EVENT_CQ_ERROR,
        .number = cq->cqn,
        .syndrome = status == HCA_QUEUE_OVERFLOW ? HCA_CQ_ERROR_OVERRUN
                                                 : HCA_CQ_ERROR_ACCESS,
    };

    cq->status = status;
    write_cqc(cm, cq->cqn, cq);
    hca_cxt_trace(cm, HCA_TRACE_CQ_ERROR, cq->cqn, event.syndrome, 0, 0);
    hca_host_broke(&cm->host);
    hca_eq_event(cm, &event, &cq->error);
}

HcaCq *hca_cq_request(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t cqn)
{
    HcaCq *cq = hca_cq_find(cm, cqn);

    if (!cq || cq->status != HCA_QUEUE_OK) {
        return NULL;
    }
    if (is_full(cm, channel, cq)) {
        cm->counters.cq_overruns++;
        hca_cq_break(cm, cq, HCA_QUEUE_OVERFLOW);
        return NULL;
    }
    return cq;
}

bool hca_cq_write(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq,
                  uint64_t addr, const HcaCompletion *completion)
{
    if (write_cqe(cm, channel, cq, addr, completion) != HCA_V2P_SUCCESS) {
        hca_cq_break(cm, cq, HCA_QUEUE_WRITE_FAIL);
        return false;
    }
    cq->producer_index++;
    cm->counters.cqes++;
    trace_cqe(cm, cq, completion);
    return true;
}

/*
 * An arm of @cq is answered: the caller sees to the event. Each event tells of
 * one entry, the oldest that none has told of: who takes an entry for each event
 * never sleeps in front of one. Who has asked for one event for many takes them
 * all.
 */
static void fire(HcaCxtMgt *cm, HcaCq *cq)
{
    cq->arm = HCA_CQ_FIRED;
    hca_cq_stop_timer(cm, cq);
    if (hca_event_waits(&cq->completion)) {
        return; /* one that waits for room becomes one with this */
    }
    if (hca_cq_is_moderated(cq)) {
        cq->last_notified_index = cq->producer_index;
    } else {
        cq->last_notified_index++;
    }
}

/* The same, with the event: at once, or when there is room. */
static void fire_and_tell(HcaCxtMgt *cm, HcaCq *cq)
{
    HcaEq *eq;

    fire(cm, cq);
    eq = hca_eq_request(cm, cq->attr.eqn, cq->cqn, &cq->completion);
    if (eq) {
        hca_eq_write_completion(cm, eq, cq->cqn);
    }
}

/* Whether an entry is what @cq is armed for, and calls for the event now. */
static bool answers(HcaCxtMgt *cm, HcaCq *cq, bool solicited, bool error)
{
    switch (cq->arm) {
    case HCA_CQ_ARMED_SOLICITED:
        return solicited;
    case HCA_CQ_ARMED_NEXT:
        return error || !hca_cq_hold(cm, cq);
    default:
        return false;
    }
}

bool hca_cq_take_arm(HcaCxtMgt *cm, HcaCq *cq, const HcaCompletion *completion)
{
    bool error = completion->syndrome != 0;
    bool solicited = completion->solicited || error;

    cm->counters.error_cqes += error;
    if (solicited) {
        cq->solicit_producer_index = cq->producer_index;
    }
    if (!answers(cm, cq, solicited, error)) {
        return false;
    }
    fire(cm, cq);
    return true;
}

/* Arm @cq for entries that have been neither consumed nor told of. */
static void arm(HcaCxtMgt *cm, HcaCq *cq, HcaCqArm how)
{
    uint32_t end = how == HCA_CQ_ARMED_NEXT ? cq->producer_index
                                            : cq->solicit_producer_index;

    if ((int32_t)(end - cq->last_notified_index) > 0) {
        fire_and_tell(cm, cq);
    } else {
        cq->arm = how;
    }
}

void hca_cq_doorbell(HcaCxtMgt *cm, uint32_t uar, uint32_t cqn, HcaCqArm how,
                     uint32_t ci)
{
    HcaCq *cq = hca_cq_find(cm, cqn);

    cm->counters.cq_doorbells++;
    if (!cq) {
        cm->counters.db_bad_cqn++;
        return;
    }
    if (cq->attr.uar != uar) {
        cm->counters.db_bad_uar++;
        return;
    }
    if ((int32_t)(cq->producer_index - ci) < 0) {
        cm->counters.db_bad_ci++;
        return;
    }
    consumed(cm, cq, ci);
    /* An arm for any entry is not taken back. */
    if (how == HCA_CQ_ARMED_NEXT ||
        (how == HCA_CQ_ARMED_SOLICITED && cq->arm != HCA_CQ_ARMED_NEXT)) {
        arm(cm, cq, how);
    }
}

uint8_t hca_cxtmgt_modify_cq(HcaCxtMgt *cm, uint32_t cqn, uint16_t count,
                             uint16_t period_us)
{
    HcaCq *cq;
    uint8_t status = owned(cm, cqn, &cq);

    if (status) {
        return status;
    }
    if (!hca_cxt_writable(cm, &cm->cqc, cqn)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    if (hca_cq_moderate(cm, cq, count, period_us)) {
        fire_and_tell(cm, cq);
    }
    write_cqc(cm, cqn, cq);
    return HCA_STAT_OK;
}

bool hca_cxtmgt_run_timers(HcaCxtMgt *cm)
{
    int64_t now;

    if (!hca_heap_first(&cm->cq_timers)) {
        return false;
    }
    now = cm->host.ops->clock_ns(cm->host.opaque);
    for (unsigned n = 0; n < TIMER_BUDGET; n++) {
        HcaCq *cq = hca_cq_next_due(cm, now);

        if (!cq) {
            return false;
        }
        fire_and_tell(cm, cq);
    }
    return true;
}

bool hca_cq_is_here(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t cqn,
                    HcaV2pAsk *ask, unsigned *nth)
{
    HcaCq *cq = hca_cq_peek(cm, cqn);
    HcaMatchInfo info;
    bool may_fire;

    if (!cq || cq->status != HCA_QUEUE_OK) {
        return true;
    }
    may_fire = cq->arm == HCA_CQ_ARMED_NEXT ||
               cq->arm == HCA_CQ_ARMED_SOLICITED;
    if (!cq->attr.ignore_overrun && entries(cq) >= cq_size(cq) &&
        cq->attr.ci_db) {
        if (!hca_record_is_here(cm->v2p, ask, (*nth)++, channel,
                                cq->attr.ci_db)) {
            return false;
        }
    }
    info = cqe_info(cm, cq, hca_cq_next_addr(cm, cq));
    return hca_v2p_ask(cm->v2p, ask, (*nth)++, channel, HCA_V2P_STORE, &info) &&
           (!may_fire || hca_eq_is_here(cm, channel, cq->attr.eqn, ask, nth));
}
