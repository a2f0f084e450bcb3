/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requester engine (engine document 3).
 *
 * trans_control.c  3.4.1: judging, segmentation, PSNs, retransmission
 * timer_control.c  3.4.2: loss timer and RNR timer
 * local_op.c       IBA 10.6: operations that send nothing
 * multi_queue.c    3.4.3: packets sent and not acknowledged, and their pools
 * req_pkt_gen.c    3.4.4: request packets
 * recv_control.c   3.4.5: ACK, NAK, Read and atomic responses
 * scatter_entry.c  3.4.5.4: scatter entries of Reads
 * credits.c        IBA 9.7.7.2: what the peer has receives for
 * congestion.c     RoCE engine document 7.4: outstanding limit, CNPs received
 */
#ifndef HCA_REQUESTER_H
#define HCA_REQUESTER_H

#include "../card.h"
#include "../cxtmgt/cxtmgt.h"
#include "../port/port.h"
#include "../service.h"
#include "../v2p/v2p.h"

typedef struct HcaMultiQueue HcaMultiQueue;

/* Why the WQE in hand waits (engine document 3.4.1.1.3.2.3). */
typedef enum HcaWait {
    HCA_WAIT_STATE,   /* the QP does not send in its state */
    HCA_WAIT_RNR,     /* the peer's receive queue was empty */
    HCA_WAIT_BARRIER, /* for the WQEs before one that was put aside */
    HCA_WAIT_FENCE,   /* for the Reads before it */
    HCA_WAIT_READS,   /* as many Reads as the peer takes are outstanding */
    HCA_WAIT_PSNS,    /* half of all PSNs are on their way */
    HCA_WAIT_SWPB,    /* for room in the pools of the multi-queue */
    HCA_WAIT_RPB,
    HCA_WAIT_CABLE,       /* the cable takes no packet */
    HCA_WAIT_OUTSTANDING, /* RoCE: as many requests out as the limit says */
    HCA_WAIT_CREDITS,     /* the peer has no receive for it */
    HCA_WAIT_NREASONS
} HcaWait;

typedef struct HcaRequesterCounters {
    uint64_t packets_sent, reads_sent, retransmissions;
    uint64_t waits[HCA_WAIT_NREASONS];
    uint64_t acks_rx, naks_rx, nak_codes_rx[HCA_NNAKS], rnrs_rx;
    uint64_t responses_rx, answers_lost;
    uint64_t timeouts, rnr_timeouts, retries_exhausted, rnr_retries_exhausted;
    uint64_t wqes_completed, wqes_failed, wqes_flushed;
    uint64_t cnp_rx, limit_halved, limit_restored;
} HcaRequesterCounters;

/* What is not a single QP's. */
typedef struct HcaRequesterUnit {
    HcaMultiQueue *mq;
    HcaRequesterCounters counters;
} HcaRequesterUnit;

HcaRequesterUnit *hca_requester_new(const HcaConfig *config);
void hca_requester_free(HcaRequesterUnit *requester);
/* The counters begin again; QPs are gone. */
void hca_requester_reset(HcaRequesterUnit *requester);

/* A response packet for @qp, which is reliable, in RTS or SQD. */
void hca_requester_receive(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/* What the requester says to the WQE that DataPack offers (3.4.1.1.3). */
typedef enum HcaJudge {
    HCA_JUDGE_SEND,    /* one more packet may be sent */
    HCA_JUDGE_WAIT,    /* not now; the QP is scheduled when that changes */
    HCA_JUDGE_BLOCKED, /* the cable takes no packet now */
    HCA_JUDGE_TAKEN,   /* no packets of it: it is the requester's */
} HcaJudge;

HcaJudge hca_requester_judge(Hca *hca, HcaQp *qp, const HcaWqe *wqe);

/*
 * Send the next packet of @wqe: @len bytes of payload in @refs (those of the
 * whole message for what is answered by a response). Returns true if
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

void hca_mq_gauges(const HcaMultiQueue *mq, HcaMqGauges *gauges);

/* A deadline of @qp may have come. */
void hca_requester_timer(Hca *hca, HcaQp *qp, int64_t now);

/* The QP's state changed (HcaQpStateFn): begin, flush, drain or forget. */
void hca_requester_state(Hca *hca, HcaQp *qp, uint8_t old_state);

/*
 * Memory that takes its time: whether what ReqTransCore will find for the packet
 * of @refs is here, the place of a completion, too, if it @completes a request;
 * and what an answer needs that arrived, asked for by @ask.
 */
bool hca_req_trans_is_here(Hca *hca, HcaQp *qp, uint8_t opcode,
                           const HcaSge *refs, unsigned nrefs, bool completes);
bool hca_answer_is_here(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                        HcaV2pAsk *ask);

/* state.c: what is saved beside the QP, in this order; a QP that was loaded. */
extern const HcaSection hca_sent_section, hca_sent_piece_section,
    hca_read_section, hca_read_entry_section;
bool hca_requester_load_qp(HcaQp *qp);

#endif /* HCA_REQUESTER_H */
