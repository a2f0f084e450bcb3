/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues (engine document 4.4.2, figure 4.9, table 4.5).
 *
 * Departures: a WQE begins at the start of a slot, whose size the context
 * gives (interface document 3.2.6), so that the size of the next WQE is not
 * needed to find it. With a posted-count record the record says which slots
 * hold a WQE, and entries of an earlier lap or half written ones are never
 * looked at. Without one the rules of table 4.5 hold: a slot may be empty, and
 * a WQE that names no next one ends what a fetch brought. A fetch does not go
 * past the end of the queue.
 */
#include "recv_queue.h"

#include <string.h>

#include "../wqe_format.h"

#define FETCH_SIZE ((uint32_t)RDMA_HCA_MAX_RECV_WQE_SIZE)
/* A WQE without entries, to one fetch: 32 to 512 bytes. */
#define MIN_SLOT_LOG 5
#define MAX_SLOT_LOG 9

void hca_recv_queue_rewind(HcaRecvQueue *rq)
{
    rq->offset = 0;
    rq->consumed = rq->posted = 0;
    rq->prefetched = 0;
    rq->buffer_at = 0;
    rq->buffer_offset = 0;
}

bool hca_recv_queue_shape_ok(uint32_t len, unsigned entry_log)
{
    return entry_log >= MIN_SLOT_LOG && entry_log <= MAX_SLOT_LOG &&
           len % (1u << entry_log) == 0;
}

uint32_t hca_recv_queue_slots(const HcaRecvQueue *rq)
{
    if (rq->entry_log < MIN_SLOT_LOG || rq->entry_log > MAX_SLOT_LOG) {
        return 0;
    }
    return rq->len >> rq->entry_log;
}

bool hca_recv_queue_ok(const HcaRecvQueue *rq)
{
    uint32_t slots = hca_recv_queue_slots(rq);

    return rq->offset % (1u << (rq->entry_log & 31)) == 0 &&
           (slots ? rq->offset >> rq->entry_log < slots : !rq->offset);
}

/* Read the posted-count record. False if it cannot be what it says. */
static bool read_record(HcaV2p *v2p, HcaRecvQueue *rq,
                        HcaRecvQueueCounters *counters)
{
    uint32_t record;
    uint16_t left;

    counters->record_reads++;
    if (!hca_record_read(v2p, HCA_V2P_RWM, rq->record, &record)) {
        return false;
    }
    /* The WQEs that it counts were written before it. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    left = record - rq->consumed;
    if (left < rq->prefetched || left > hca_recv_queue_slots(rq)) {
        return false;
    }
    rq->posted = rq->consumed + left;
    return true;
}

bool hca_recv_queue_left(HcaV2p *v2p, HcaRecvQueue *rq,
                         HcaRecvQueueCounters *counters, uint16_t *left)
{
    if (!rq->record || !read_record(v2p, rq, counters)) {
        return false;
    }
    *left = hca_recv_queue_known(rq);
    return true;
}

/* How many one fetch can bring: of a list one, as the next may lie anywhere. */
static uint32_t fetch_slots(const HcaRecvQueue *rq)
{
    uint32_t at = rq->offset >> rq->entry_log;

    return rq->linked ? 1
                      : MIN(FETCH_SIZE >> rq->entry_log,
                            hca_recv_queue_slots(rq) - at);
}

/* How many slots to fetch: what is posted, the buffer and the queue's end. */
static HcaRwmResp slots_to_fetch(Hca *hca, HcaRecvQueue *rq,
                                 HcaRecvQueueCounters *counters, uint32_t *n)
{
    *n = fetch_slots(rq);
    if (!rq->record) {
        return HCA_RWM_VALID;
    }
    if (!hca_recv_queue_known(rq) && !read_record(hca->v2p, rq, counters)) {
        return HCA_RWM_REFUSED;
    }
    *n = MIN(*n, hca_recv_queue_known(rq));
    return *n ? HCA_RWM_VALID : HCA_RWM_EMPTY;
}

static HcaMatchInfo slots_info(const HcaRecvQueue *rq, uint32_t n)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_RELATIVE_ADDR,
        .pd = rq->pd,
        .key = rq->lkey,
        .len = n << rq->entry_log,
        .va = rq->base + rq->offset,
    };
}

/* MEM_RESP */
static HcaV2pState read_slots(Hca *hca, HcaRecvQueue *rq, uint32_t n)
{
    HcaMatchInfo info = slots_info(rq, n);

    rq->buffer_offset = rq->offset;
    rq->buffer_at = 0;
    return hca_v2p_read(hca->v2p, HCA_V2P_RWM, &info, rq->buffer);
}

/* WQE_SPLIT without a record: the WQEs among the @n slots that were read. */
static uint32_t split(const Hca *hca, const HcaRecvQueue *rq, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *slot = rq->buffer + (i << rq->entry_log);

        switch (hca->format->wqe->recv_slot(slot)) {
        case HCA_SLOT_EMPTY:
            return i; /* FLUSH_DATA 1 */
        case HCA_SLOT_LAST:
            return i + 1; /* FLUSH_DATA 3 */
        case HCA_SLOT_WQE:
            break;
        }
    }
    return n;
}

/* CMD_FETCH_ENTRY with nothing in the buffer. */
static HcaRwmResp prefetch(Hca *hca, HcaRecvQueue *rq,
                           HcaRecvQueueCounters *counters)
{
    HcaRwmResp resp;
    uint32_t n;

    if (!hca_recv_queue_slots(rq)) {
        return HCA_RWM_EMPTY;
    }
    resp = slots_to_fetch(hca, rq, counters, &n);
    if (resp != HCA_RWM_VALID) {
        return resp;
    }
    counters->fetches++;
    if (read_slots(hca, rq, n) != HCA_V2P_SUCCESS) {
        return HCA_RWM_REFUSED;
    }
    rq->prefetched = rq->record ? n : split(hca, rq, n);
    return rq->prefetched ? HCA_RWM_VALID : HCA_RWM_EMPTY;
}

/*
 * Where the WQE behind that at @offset is. What a link names that is no slot is
 * the first one: who has written it gets somebody's receive, of its own.
 */
static uint32_t next_offset(const Hca *hca, const HcaRecvQueue *rq,
                            uint32_t offset, const uint8_t *bytes)
{
    uint32_t next = rq->linked ? hca->format->wqe->recv_link(bytes)
                               : offset + (1u << rq->entry_log);

    return next >> rq->entry_log < hca_recv_queue_slots(rq)
               ? next & ~((1u << rq->entry_log) - 1)
               : 0;
}

HcaRwmResp hca_recv_queue_take(Hca *hca, HcaRecvQueue *rq,
                               HcaRecvQueueCounters *counters, HcaRecvWqe *wqe)
{
    const uint8_t *bytes;
    uint32_t slot;

    if (!rq->prefetched) {
        HcaRwmResp resp = prefetch(hca, rq, counters);

        if (resp != HCA_RWM_VALID) {
            return resp;
        }
    }
    slot = 1u << rq->entry_log;
    bytes = rq->buffer + rq->buffer_at;
    wqe->offset = rq->buffer_offset + rq->buffer_at;
    wqe->pd = rq->pd;
    wqe->nsge = wqe->sge_at = 0;
    wqe->sge_done = 0;
    rq->buffer_at += slot;
    rq->prefetched--;
    rq->consumed++;
    rq->offset = next_offset(hca, rq, wqe->offset, bytes);
    return hca->format->wqe->parse_recv(bytes, slot, wqe) ? HCA_RWM_VALID
                                                          : HCA_RWM_MALFORMED;
}

/* MEM_REQ: the record, then as much as a fetch would bring. */
static bool fetch_is_here(Hca *hca, const HcaRecvQueue *rq, HcaV2pAsk *ask,
                          unsigned *nth)
{
    HcaMatchInfo slots = slots_info(rq, fetch_slots(rq));

    return (!rq->record || hca_record_is_here(hca->v2p, ask, (*nth)++,
                                              HCA_V2P_RWM, rq->record)) &&
           hca_v2p_ask(hca->v2p, ask, (*nth)++, HCA_V2P_RWM, HCA_V2P_FETCH,
                       &slots);
}

bool hca_recv_queue_is_here(Hca *hca, const HcaRecvQueue *rq, HcaV2pAsk *ask,
                            unsigned *nth, HcaRecvWqe *wqe)
{
    uint8_t bytes[FETCH_SIZE];
    HcaMatchInfo info;

    wqe->nsge = wqe->sge_at = 0;
    wqe->sge_done = 0;
    wqe->pd = rq->pd;
    if (!hca_recv_queue_slots(rq)) {
        return true; /* nor has anybody judged how large slots are */
    }
    if (rq->prefetched) {
        hca->format->wqe->parse_recv(rq->buffer + rq->buffer_at,
                                     1u << rq->entry_log, wqe);
        return true;
    }
    if (!fetch_is_here(hca, rq, ask, nth)) {
        return false;
    }
    info = slots_info(rq, 1);
    if (hca_v2p_peek(hca->v2p, &info, bytes) == HCA_V2P_SUCCESS) {
        hca->format->wqe->parse_recv(bytes, info.len, wqe);
    }
    return true;
}
