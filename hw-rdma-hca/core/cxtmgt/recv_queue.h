/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A receive queue (engine document 4.4.2): WQEs fetched 512 bytes at a time
 * and handed out one by one. Whoever owns it sets its attributes.
 */
#ifndef HCA_RECV_QUEUE_H
#define HCA_RECV_QUEUE_H

#include "../card.h"
#include "cxtmgt.h"

/* What asking for a WQE came to; RQWQEManager's codes (table 7.19) and ours. */
typedef enum HcaRwmResp {
    HCA_RWM_VALID,
    HCA_RWM_INVALID,   /* the WQE has no (more) entries; no such SRQ */
    HCA_RWM_EMPTY,     /* no WQE is posted */
    HCA_RWM_MALFORMED, /* the WQE taken into use is no WQE */
    HCA_RWM_REFUSED,   /* queue memory or record cannot be used */
} HcaRwmResp;

/* At its beginning again, with nothing fetched. Attributes stay. */
void hca_recv_queue_rewind(HcaRecvQueue *rq);
/* WQEs that it holds; 0: none ever. */
uint32_t hca_recv_queue_slots(const HcaRecvQueue *rq);
/* Take the next WQE into use: VALID, EMPTY, MALFORMED (taken) or REFUSED. */
HcaRwmResp hca_recv_queue_take(Hca *hca, HcaRecvQueue *rq,
                               HcaRecvQueueCounters *counters, HcaRecvWqe *wqe);
/*
 * Memory that takes its time: whether the next WQE is here; it and its queue are
 * asked for by @ask, from the *@nth thing on. *@wqe: it, or one without entries.
 */
bool hca_recv_queue_is_here(Hca *hca, const HcaRecvQueue *rq, HcaV2pAsk *ask,
                            unsigned *nth, HcaRecvWqe *wqe);
bool hca_srq_is_here(Hca *hca, const HcaSrq *srq, HcaV2pAsk *ask, unsigned *nth,
                     HcaRecvWqe *wqe);
/* WQEs posted and not taken; false: there is no record, or a bad one. */
bool hca_recv_queue_left(HcaV2p *v2p, HcaRecvQueue *rq,
                         HcaRecvQueueCounters *counters, uint16_t *left);
/* The same, as far as the card knows. */
static inline uint16_t hca_recv_queue_known(const HcaRecvQueue *rq)
{
    return rq->posted - rq->consumed;
}
/* The same of a shared queue, which fails if it is REFUSED. */
HcaRwmResp hca_srq_take(Hca *hca, HcaSrq *srq, HcaRecvWqe *wqe);
/* The SRQ with this number, if it is an XRC SRQ of domain @xrcd; or NULL. */
HcaSrq *hca_srq_xrc(HcaCxtMgt *cm, uint32_t srqn, uint32_t xrcd);
/* The XRC SRQ that @wqe was taken from; NULL: it is gone. */
HcaSrq *hca_srq_of(HcaCxtMgt *cm, const HcaRecvWqe *wqe);
/* Whether @rq, with its attributes, can be where it says that it is. */
bool hca_recv_queue_ok(const HcaRecvQueue *rq);
/* Whether a queue of @len bytes in slots of 2^@entry_log can be. */
bool hca_recv_queue_shape_ok(uint32_t len, unsigned entry_log);

#endif /* HCA_RECV_QUEUE_H */
