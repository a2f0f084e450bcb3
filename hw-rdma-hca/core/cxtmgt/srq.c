/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues (IBA 10.2.9; docs/abi.md): their contexts, and the
 * limit. WQEs are taken in the order in which they were posted; the queue is
 * recv_queue.c's.
 */
#include "cxtmgt_int.h"
#include "recv_queue.h"

HcaSrq *hca_srq_peek(const HcaCxtMgt *cm, uint32_t srqn)
{
    return hca_index_ok(cm, &cm->srqc, srqn) ? cm->srqs[srqn] : NULL;
}

HcaSrq *hca_srq_find(HcaCxtMgt *cm, uint32_t srqn)
{
    return hca_srq_peek(cm, srqn);
}

HcaSrq *hca_srq_xrc(HcaCxtMgt *cm, uint32_t srqn, uint32_t xrcd)
{
    HcaSrq *srq = hca_srq_find(cm, srqn);

    return srq && srq->attr.xrc && srq->attr.xrcd == xrcd ? srq : NULL;
}

HcaSrq *hca_srq_of(HcaCxtMgt *cm, const HcaRecvWqe *wqe)
{
    HcaSrq *srq = hca_srq_find(cm, wqe->srqn);

    return srq && srq->life == wqe->life ? srq : NULL;
}

/* Write the context of @srqn; @srq NULL: not in use. */
static bool write_srqc(HcaCxtMgt *cm, uint32_t srqn, const HcaSrq *srq)
{
    uint8_t cxt[HCA_MAX_CXT_SIZE];

    cm->format->put_srq(srq, cxt);
    return hca_cxt_write(cm, &cm->srqc, srqn, cxt);
}

static bool xrc_ok(HcaCxtMgt *cm, const HcaSrqAttr *attr)
{
    return !attr->xrc ||
           (hca_cq_find(cm, attr->cqn) && attr->xrcd < 1u << HCA_LOG_XRCDS);
}

static bool check(HcaCxtMgt *cm, const HcaSrqAttr *attr)
{
    return hca_recv_queue_shape_ok(attr->len, attr->entry_log) && attr->len &&
           attr->len >> attr->entry_log <= 1u << cm->config->log_srq_wqes &&
           attr->pd < 1ull << cm->config->log_pds && attr->record &&
           attr->record % sizeof(uint32_t) == 0 && xrc_ok(cm, attr);
}

static void add_srq(HcaCxtMgt *cm, const HcaSrq *from)
{
    HcaSrq *srq = g_memdup2(from, sizeof(*from));

    cm->srqs[srq->srqn] = srq;
    cm->live.srqs++;
    if (srq->attr.xrc) {
        hca_cq_find(cm, srq->attr.cqn)->queues++;
    }
}

static void remove_srq(HcaCxtMgt *cm, HcaSrq *srq)
{
    hca_eq_forget(&srq->catas_error);
    hca_eq_forget(&srq->limit_reached);
    if (srq->attr.xrc) {
        hca_cq_find(cm, srq->attr.cqn)->queues--;
    }
    cm->live.srqs--;
    cm->srqs[srq->srqn] = NULL;
    g_free(srq);
}

/* Where its queue is; how far it has been used is its own. */
static void derive_queue(const HcaCxtMgt *cm, HcaSrq *srq)
{
    srq->rq.linked = cm->format->linked_srqs;
    srq->rq.pd = srq->attr.pd;
    srq->rq.lkey = srq->attr.lkey;
    srq->rq.len = srq->attr.len;
    srq->rq.entry_log = srq->attr.entry_log;
    srq->rq.record = srq->attr.record;
}

bool hca_srq_add(HcaCxtMgt *cm, const HcaSrq *from)
{
    HcaSrq srq = { 0 };

    hca_struct_take(&hca_srq_struct, &srq, from);
    if (!hca_index_ok(cm, &cm->srqc, srq.srqn) || cm->srqs[srq.srqn] ||
        !check(cm, &srq.attr)) {
        return false;
    }
    derive_queue(cm, &srq);
    if (!hca_recv_queue_ok(&srq.rq) || srq.life > cm->srq_lives) {
        return false;
    }
    add_srq(cm, &srq);
    return true;
}

uint8_t hca_cxtmgt_sw2hw_srq(HcaCxtMgt *cm, uint32_t srqn,
                             const HcaSrqAttr *attr)
{
    HcaSrq srq = { .srqn = srqn };

    if (!hca_index_ok(cm, &cm->srqc, srqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (cm->srqs[srqn]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (!attr || !check(cm, attr)) {
        return HCA_STAT_BAD_PARAM;
    }
    srq.attr = *attr;
    derive_queue(cm, &srq);
    srq.life = ++cm->srq_lives;
    if (!write_srqc(cm, srqn, &srq)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    add_srq(cm, &srq);
    return HCA_STAT_OK;
}

void hca_srq_free_all(HcaCxtMgt *cm)
{
    for (uint32_t srqn = 0; srqn < 1u << cm->srqc.log_num; srqn++) {
        if (cm->srqs[srqn]) {
            remove_srq(cm, cm->srqs[srqn]);
        }
    }
}

/* BAD_RES_STATE for an SRQ that is not in hardware. */
static uint8_t find(HcaCxtMgt *cm, uint32_t srqn, HcaSrq **srq)
{
    if (!hca_index_ok(cm, &cm->srqc, srqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    *srq = cm->srqs[srqn];
    return *srq ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE;
}

uint8_t hca_cxtmgt_hw2sw_srq(HcaCxtMgt *cm, uint32_t srqn)
{
    HcaSrq *srq;
    uint8_t status = find(cm, srqn, &srq);

    if (status) {
        return status;
    }
    if (srq->qps) {
        return HCA_STAT_RESOURCE_BUSY;
    }
    write_srqc(cm, srqn, NULL);
    remove_srq(cm, srq);
    return HCA_STAT_OK;
}

/* The command reads the record; one that cannot be is the next taker's. */
uint8_t hca_cxtmgt_query_srq(HcaCxtMgt *cm, uint32_t srqn, void *cxt)
{
    HcaSrq *srq;
    uint8_t status = find(cm, srqn, &srq);
    uint16_t left;

    if (status) {
        return status;
    }
    if (!srq->failed) {
        hca_recv_queue_left(cm->v2p, &srq->rq, &cm->counters.srq, &left);
    }
    cm->format->put_srq(srq, cxt);
    return HCA_STAT_OK;
}

static void raise_event(HcaCxtMgt *cm, const HcaSrq *srq, uint8_t type,
                        HcaEventPlace *place)
{
    HcaEvent event = { .type = type, .number = srq->srqn };

    hca_eq_event(cm, &event, place);
}

/* The queue's memory or its record was refused: it gives no more WQEs. */
static void fail(HcaCxtMgt *cm, HcaSrq *srq)
{
    srq->failed = true;
    srq->limit = 0;
    write_srqc(cm, srq->srqn, srq);
    hca_cxt_trace(cm, HCA_TRACE_SRQ_ERROR, srq->srqn, srq->rq.consumed, 0, 0);
    raise_event(cm, srq, HCA_EVENT_SRQ_CATAS_ERROR, &srq->catas_error);
}

void hca_srq_break(HcaCxtMgt *cm, HcaSrq *srq)
{
    if (!srq->failed) {
        fail(cm, srq);
    }
}

void hca_srq_tell_limit(HcaCxtMgt *cm, HcaSrq *srq)
{
    srq->limit = 0;
    raise_event(cm, srq, HCA_EVENT_SRQ_LIMIT, &srq->limit_reached);
}

/*
 * The event of the limit is due, if fewer WQEs are left. More may have been
 * posted than the card knows of, so it looks before it says so.
 */
static void judge_limit(HcaCxtMgt *cm, HcaSrq *srq)
{
    uint16_t left = hca_recv_queue_known(&srq->rq);

    if (left >= srq->limit) {
        return;
    }
    if (!hca_recv_queue_left(cm->v2p, &srq->rq, &cm->counters.srq, &left)) {
        fail(cm, srq);
    } else if (left < srq->limit) {
        hca_srq_tell_limit(cm, srq);
    }
}

static bool fits(HcaCxtMgt *cm, const HcaSrqAttr *attr)
{
    uint32_t slots = attr->len >> attr->entry_log;

    return hca_recv_queue_shape_ok(attr->len, attr->entry_log) && slots &&
           (slots & (slots - 1)) == 0 &&
           slots <= 1u << cm->config->log_srq_wqes;
}

/*
 * RESIZE_SRQ: what was fetched of the old queue, and not taken, is fetched
 * again from the new one. Software has copied it there.
 */
static void go_on(HcaSrq *srq)
{
    HcaRecvQueue *rq = &srq->rq;

    rq->len = srq->attr.len;
    rq->lkey = srq->attr.lkey;
    rq->prefetched = 0;
    rq->offset = (rq->consumed & (hca_recv_queue_slots(rq) - 1))
                 << rq->entry_log;
}

static uint8_t check_resize(HcaCxtMgt *cm, HcaSrq *srq, const HcaSrqAttr *attr)
{
    uint16_t left;

    if (!fits(cm, attr)) {
        return HCA_STAT_BAD_PARAM;
    }
    if (srq->failed) {
        return HCA_STAT_BAD_RES_STATE;
    }
    if (!hca_recv_queue_left(cm->v2p, &srq->rq, &cm->counters.srq, &left)) {
        fail(cm, srq);
        return HCA_STAT_BAD_RES_STATE;
    }
    /* An armed limit is no more than what is left. */
    return left > attr->len >> attr->entry_log ? HCA_STAT_BAD_SIZE
                                               : HCA_STAT_OK;
}

uint8_t hca_cxtmgt_resize_srq(HcaCxtMgt *cm, uint32_t srqn, uint32_t len,
                              uint32_t lkey)
{
    HcaSrq *srq, after;
    uint8_t status = find(cm, srqn, &srq);

    if (status) {
        return status;
    }
    after = *srq;
    after.attr.len = len;
    after.attr.lkey = lkey;
    status = check_resize(cm, srq, &after.attr);
    if (status) {
        return status;
    }
    if (!write_srqc(cm, srqn, &after)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    srq->attr = after.attr;
    go_on(srq);
    return HCA_STAT_OK;
}

uint8_t hca_cxtmgt_arm_srq(HcaCxtMgt *cm, uint32_t srqn, uint64_t limit)
{
    HcaSrq *srq;
    uint8_t status = find(cm, srqn, &srq);

    if (status) {
        return status;
    }
    if (srq->failed) {
        return HCA_STAT_BAD_RES_STATE;
    }
    if (limit > hca_recv_queue_slots(&srq->rq)) {
        return HCA_STAT_BAD_PARAM;
    }
    srq->limit = limit;
    judge_limit(cm, srq);
    return srq->failed ? HCA_STAT_BAD_RES_STATE : HCA_STAT_OK;
}

HcaRwmResp hca_srq_take(Hca *hca, HcaSrq *srq, HcaRecvWqe *wqe)
{
    HcaCxtMgt *cm = hca->cm;
    HcaRwmResp resp = HCA_RWM_REFUSED;

    if (srq->failed) {
        return resp;
    }
    resp = hca_recv_queue_take(hca, &srq->rq, &cm->counters.srq, wqe);
    if (resp == HCA_RWM_REFUSED) {
        fail(cm, srq);
    } else if (resp == HCA_RWM_EMPTY) {
        cm->counters.srq_empty++;
    } else {
        wqe->srqn = srq->srqn;
        wqe->life = srq->life;
        cm->counters.srq_wqes++;
        hca_cxt_trace(cm, HCA_TRACE_SRQ_WQE, srq->srqn, wqe->offset, wqe->tag,
                      hca_recv_queue_known(&srq->rq));
        judge_limit(cm, srq);
    }
    return resp;
}

bool hca_srq_is_here(Hca *hca, const HcaSrq *srq, HcaV2pAsk *ask, unsigned *nth,
                     HcaRecvWqe *wqe)
{
    wqe->nsge = 0;
    return srq->failed || hca_recv_queue_is_here(hca, &srq->rq, ask, nth, wqe);
}
