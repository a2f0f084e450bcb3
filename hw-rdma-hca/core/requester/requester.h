/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requester engine (engine document 3).
 *
 * trans_control.c  3.4.1: judging, segmentation, PSNs, retransmission
 * timer_control.c  3.4.2: loss timer and RNR timer
 * multi_queue.c    3.4.3: packets sent and not acknowledged, and their pools
 * req_pkt_gen.c    3.4.4: request packets
 * recv_control.c   3.4.5: ACK, NAK, Read and atomic responses
 * scatter_entry.c  3.4.5.4: scatter entries of Reads
 * congestion.c     RoCE engine document 7.4: outstanding limit, CNPs received
 */
#ifndef HCA_REQUESTER_H
#define HCA_REQUESTER_H

#include "../card.h"

/* A response packet for @qp, RC, in RTS, SQD or SQE. */
void hca_requester_receive(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/* What the requester says to the WQE that DataPack offers (3.4.1.1.3). */
typedef enum HcaJudge {
    HCA_JUDGE_SEND,    /* one more packet may be sent */
    HCA_JUDGE_WAIT,    /* not now; the QP is scheduled when that changes */
    HCA_JUDGE_BLOCKED, /* the cable takes no packet now */
    HCA_JUDGE_TAKEN,   /* a bad request: put aside, it is the requester's */
} HcaJudge;

HcaJudge hca_requester_judge(Hca *hca, HcaQp *qp, const HcaWqe *wqe);

/*
 * Send the next packet of @wqe: @len bytes of payload in @refs (those of the
 * whole message for a Read or an atomic, which sends none). Returns true if
 * it was the last one. Call only after HCA_JUDGE_SEND.
 */
bool hca_requester_segment(Hca *hca, HcaQp *qp, const HcaWqe *wqe,
                           const HcaSge *refs, unsigned nrefs, uint32_t len);

/* The last packet of the WQE in hand has been sent, and it is in hand no more */
void hca_requester_wqe_sent(Hca *hca, HcaQp *qp);

/*
 * Send again what is due, up to *@budget packets, which is lowered. Idle when
 * nothing is left of it, or has to wait: hca_requester_judge() knows.
 */
HcaTurn hca_requester_resend(Hca *hca, HcaQp *qp, unsigned *budget);

/* In ERR or SQE: complete @ref unsent, as the first in error or flushed. */
void hca_requester_flush(Hca *hca, HcaQp *qp, const HcaWqeRef *ref);

/* Elements of a pool in use (may exceed its size by what each QP has of its
 * own), and the most that were since the last reset. */
typedef struct HcaMqUse {
    uint32_t used;
    uint32_t peak;
} HcaMqUse;

typedef struct HcaMqGauges {
    HcaMqUse swpb, rpb, reb;
    unsigned waiting; /* QPs that wait for room */
} HcaMqGauges;

HcaMultiQueue *hca_mq_new(const HcaConfig *config);
void hca_mq_free(HcaMultiQueue *mq);
/* Forget @qp: all its elements are free again. */
void hca_mq_forget(Hca *hca, HcaQp *qp);
void hca_mq_gauges(const HcaMultiQueue *mq, HcaMqGauges *gauges);
/* The peaks begin again. */
void hca_mq_reset_peaks(HcaMultiQueue *mq);

/* A deadline of @qp may have come. */
void hca_requester_timer(Hca *hca, HcaQp *qp, int64_t now);

/* The QP's state changed (HcaQpStateFn): begin, flush, drain or forget. */
void hca_requester_state(Hca *hca, HcaQp *qp, uint8_t old_state);

#endif /* HCA_REQUESTER_H */
