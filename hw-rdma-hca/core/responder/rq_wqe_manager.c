/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RQWQEManager (engine document 4.4.2, figure 4.9, table 4.5): receive WQEs,
 * fetched 512 bytes at a time and handed out entry by entry.
 *
 * Departures: a WQE begins at the start of a slot, whose size the QP context
 * gives (interface document 3.2.6), so that the size of the next WQE is not
 * needed to find it. With a posted-count record the record says which slots
 * hold a WQE, and entries of an earlier lap or half written ones are never
 * looked at. Without one the rules of table 4.5 hold: a slot that begins with
 * zeros holds no WQE, and a next_unit that names no next one ends what a fetch
 * brought. A fetch does not go past the end of the queue.
 */
#include <string.h>

#include "../../abi/rdma_hca_wqe.h"
#include "units.h"

#define UNIT RDMA_HCA_WQE_UNIT
#define FETCH_SIZE ((uint32_t)RDMA_HCA_MAX_RECV_WQE_SIZE)
/* A next_unit and an all-zero unit, to one fetch: 32 to 512 bytes. */
#define MIN_SLOT_LOG 5
#define MAX_SLOT_LOG 9

static const uint8_t zero_unit[UNIT];

uint32_t hca_rwm_slots(const HcaQp *qp)
{
    if (qp->attr.rq_entry_log < MIN_SLOT_LOG ||
        qp->attr.rq_entry_log > MAX_SLOT_LOG) {
        return 0;
    }
    return qp->attr.rq_len >> qp->attr.rq_entry_log;
}

static uint16_t posted(const HcaRecvQueue *rq)
{
    return rq->posted - rq->consumed;
}

/* Read the posted-count record. False if it cannot be what it says. */
static bool read_record(Hca *hca, HcaQp *qp)
{
    HcaRecvQueue *rq = &qp->resp.rq;
    uint32_t record;
    uint16_t left;

    hca->responder->counters.rq_record_reads++;
    if (!hca_dma_read(hca->v2p, HCA_V2P_RWM, qp->attr.rq_db, &record,
                      sizeof(record))) {
        return false;
    }
    /* The WQEs that it counts were written before it. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    left = GUINT32_FROM_LE(record) - rq->consumed;
    if (left < rq->prefetched || left > hca_rwm_slots(qp)) {
        return false;
    }
    rq->posted = rq->consumed + left;
    return true;
}

/* How many slots to fetch: what is posted, the buffer and the queue's end. */
static HcaRwmResp slots_to_fetch(Hca *hca, HcaQp *qp, uint32_t *n)
{
    const HcaRecvQueue *rq = &qp->resp.rq;
    uint32_t at = rq->offset >> qp->attr.rq_entry_log;

    *n = MIN(FETCH_SIZE >> qp->attr.rq_entry_log, hca_rwm_slots(qp) - at);
    if (!qp->attr.rq_db) {
        return HCA_RWM_VALID;
    }
    if (!posted(rq) && !read_record(hca, qp)) {
        return HCA_RWM_REFUSED;
    }
    *n = MIN(*n, posted(rq));
    return *n ? HCA_RWM_VALID : HCA_RWM_EMPTY;
}

/* MEM_RESP */
static HcaV2pState read_slots(Hca *hca, HcaQp *qp, uint32_t n)
{
    HcaRecvQueue *rq = &qp->resp.rq;
    HcaMatchInfo info = {
        .flags = HCA_V2P_RELATIVE_ADDR,
        .pd = qp->attr.pd,
        .key = qp->attr.rq_lkey,
        .len = n << qp->attr.rq_entry_log,
        .va = rq->offset,
    };

    rq->buffer_offset = rq->offset;
    rq->buffer_at = 0;
    hca->responder->counters.rq_fetches++;
    return hca_v2p_read(hca->v2p, HCA_V2P_RWM, &info, rq->buffer);
}

/* WQE_SPLIT without a record: the WQEs among the @n slots that were read. */
static uint32_t split(const HcaQp *qp, uint32_t n)
{
    const HcaRecvQueue *rq = &qp->resp.rq;

    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *slot = rq->buffer + (i << qp->attr.rq_entry_log);
        struct rdma_hca_next_unit next;

        if (!memcmp(slot, zero_unit, UNIT)) {
            return i; /* FLUSH_DATA 1 */
        }
        memcpy(&next, slot, sizeof(next));
        if (!RDMA_HCA_GET(RDMA_HCA_NEXT_NDS, GUINT32_FROM_LE(next.nee_nds))) {
            return i + 1; /* FLUSH_DATA 3 */
        }
    }
    return n;
}

/* CMD_FETCH_ENTRY with nothing in the buffer. */
static HcaRwmResp prefetch(Hca *hca, HcaQp *qp)
{
    HcaRecvQueue *rq = &qp->resp.rq;
    HcaRwmResp resp;
    uint32_t n;

    if (!hca_rwm_slots(qp)) {
        return HCA_RWM_EMPTY;
    }
    resp = slots_to_fetch(hca, qp, &n);
    if (resp != HCA_RWM_VALID) {
        return resp;
    }
    if (read_slots(hca, qp, n) != HCA_V2P_SUCCESS) {
        return HCA_RWM_REFUSED;
    }
    rq->prefetched = qp->attr.rq_db ? n : split(qp, n);
    return rq->prefetched ? HCA_RWM_VALID : HCA_RWM_EMPTY;
}

/* Entries from next_unit to the all-zero unit, or the end of the slot. */
static bool decode_wqe(HcaQp *qp)
{
    HcaRecvQueue *rq = &qp->resp.rq;
    const uint8_t *slot = rq->buffer + (rq->wqe_offset - rq->buffer_offset);
    unsigned units = (1u << qp->attr.rq_entry_log) / UNIT;

    rq->nsge = 0;
    rq->sge_at = 0;
    for (unsigned i = 1; i < units; i++) {
        struct rdma_hca_data_unit unit;
        HcaSge *sge = &rq->sge[rq->nsge];

        memcpy(&unit, slot + i * UNIT, UNIT);
        if (!memcmp(&unit, zero_unit, UNIT)) {
            return true;
        }
        if (rq->nsge == RDMA_HCA_MAX_SGE) {
            return false;
        }
        sge->len = GUINT32_FROM_LE(unit.byte_cnt);
        sge->lkey = GUINT32_FROM_LE(unit.lkey);
        sge->va = (uint64_t)GUINT32_FROM_LE(unit.addr_h) << 32 |
                  GUINT32_FROM_LE(unit.addr_l);
        sge->relative = false;
        if (sge->len & RDMA_HCA_INLINE) {
            return false;
        }
        rq->nsge++;
    }
    return true;
}

HcaRwmResp hca_rwm_fetch_wqe(Hca *hca, HcaQp *qp)
{
    HcaRecvQueue *rq = &qp->resp.rq;
    uint32_t slot;

    if (rq->wqe_valid) {
        return HCA_RWM_VALID;
    }
    if (!rq->prefetched) {
        HcaRwmResp resp = prefetch(hca, qp);

        if (resp != HCA_RWM_VALID) {
            return resp;
        }
    }
    slot = 1u << qp->attr.rq_entry_log;
    rq->wqe_offset = rq->buffer_offset + rq->buffer_at;
    rq->wqe_valid = true;
    rq->buffer_at += slot;
    rq->prefetched--;
    rq->consumed++;
    rq->offset = rq->wqe_offset + slot;
    if (rq->offset >> qp->attr.rq_entry_log == hca_rwm_slots(qp)) {
        rq->offset = 0;
    }
    return decode_wqe(qp) ? HCA_RWM_VALID : HCA_RWM_MALFORMED;
}

HcaRwmResp hca_rwm_fetch_entry(HcaQp *qp, const HcaSge **entry)
{
    const HcaRecvQueue *rq = &qp->resp.rq;

    if (rq->sge_at == rq->nsge) {
        return HCA_RWM_INVALID;
    }
    *entry = &rq->sge[rq->sge_at];
    return HCA_RWM_VALID;
}

void hca_rwm_update_entry(HcaQp *qp, uint32_t used)
{
    HcaSge *sge = &qp->resp.rq.sge[qp->resp.rq.sge_at];

    sge->va += used;
    sge->len -= used;
}

void hca_rwm_release_entry(HcaQp *qp)
{
    qp->resp.rq.sge_at++;
}

void hca_rwm_release_wqe(HcaQp *qp)
{
    qp->resp.rq.wqe_valid = false;
}

/* The buffer still holds it: the next fetch comes after its release. */
void hca_rwm_restart_wqe(HcaQp *qp)
{
    if (qp->resp.rq.wqe_valid) {
        decode_wqe(qp);
    }
}

/* Value of credit code @code (IBA 9.7.7.2.2): 0, 1, 2, 3, 4, 6, 8, 12, ... */
static uint32_t credit_value(unsigned code)
{
    uint32_t power = 1u << (code / 2);

    return code ? power + (code % 2 ? power / 2 : 0) : 0;
}

/* The WQE in use belongs to a message that the MSN does not count yet. */
uint8_t hca_rwm_credits(Hca *hca, HcaQp *qp)
{
    const HcaRecvQueue *rq = &qp->resp.rq;
    uint8_t code = HCA_AETH_CREDITS_INVALID;
    uint32_t left;

    if (!qp->attr.rq_db || !read_record(hca, qp)) {
        return code;
    }
    left = posted(rq) + rq->wqe_valid;
    do {
        code--;
    } while (credit_value(code) > left);
    return code;
}
