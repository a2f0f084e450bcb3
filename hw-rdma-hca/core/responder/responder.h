/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responder engine (engine document 4).
 *
 * header_check.c      4.4.1.1.1: the checks before a request is executed
 * execution_engine.c  4.4.1: PSN regions, execution, what failures lead to
 * recv_completion.c   4.4.1.3: state COMPLETION; flush of the receive queue
 * rq_wqe_manager.c    4.4.2: the receive WQE in use
 * write_addr_table.c  4.4.3: where the next packet of a Write goes
 * resp_pkt_gen.c      4.4.4: ACK, NAK, Read response, atomic response packets
 * planned.c           what a plan of faults has in mind for requests and answers
 * notification.c      RoCE engine document 7.4: CE marks received, CNPs sent
 */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

#include "../card.h"
#include "../cxtmgt/cxtmgt.h"
#include "../cxtmgt/recv_queue.h"
#include "../port/port.h"
#include "../service.h"
#include "../v2p/v2p.h"

/* What a request asks for. */
typedef enum HcaRequestKind {
    HCA_REQUEST_SEND,
    HCA_REQUEST_WRITE,
    HCA_REQUEST_READ,
    HCA_REQUEST_ATOMIC,
    HCA_REQUEST_ATOMIC_WRITE,
    HCA_REQUEST_FLUSH,
    HCA_NREQUEST_KINDS
} HcaRequestKind;

/*
 * What became of a request. The number is the vendor_err of a receive
 * completion and the reason of a NAK_TX trace event.
 */
typedef enum HcaOutcome {
    HCA_EXE_OK,
    HCA_EXE_PSN,           /* ahead of what is expected */
    HCA_EXE_NO_WQE,        /* no receive WQE is posted */
    HCA_EXE_OPCODE,        /* out of place in a message */
    HCA_EXE_FORBIDDEN,     /* the QP does not serve the operation */
    HCA_EXE_LENGTH,        /* of the payload, or of the message */
    HCA_EXE_ALIGNMENT,     /* of an atomic's address */
    HCA_EXE_RESOURCES,     /* more Reads and atomics than rra_max */
    HCA_EXE_TOO_LONG,      /* for the receive WQE */
    HCA_EXE_ACCESS,        /* R_Key, address or length refused */
    HCA_EXE_REMOTE_MEMORY, /* allowed by the R_Key, but not RAM */
    HCA_EXE_LOCAL_PROT,    /* a scatter entry was refused */
    HCA_EXE_BAD_WQE,       /* a receive WQE that cannot be */
    HCA_EXE_BAD_QUEUE,     /* receive queue or its record refused */
    HCA_EXE_CQ_LOST,       /* the completion could not be written */
    HCA_EXE_XRC_SRQ,       /* no SRQ that the packet may name */
    HCA_EXE_INVALIDATION,  /* a key that the peer cannot invalidate */
    HCA_EXE_PLANNED,       /* a fault: as HcaResponderUnit.planned says */
    HCA_EXE_IGNORED,       /* a fault: no notice is taken of it */
    HCA_NOUTCOMES
} HcaOutcome;

typedef struct HcaResponderCounters {
    uint64_t requests[HCA_NREQUEST_KINDS];
    uint64_t outcomes[HCA_NOUTCOMES];
    uint64_t duplicates;
    uint64_t acks_tx, naks_tx, nak_codes_tx[HCA_NNAKS], rnrs_tx;
    uint64_t read_responses_tx, atomic_responses_tx;
    HcaRecvQueueCounters rq;
    uint64_t ecn_marked_rx, cnp_tx;
    uint64_t receives_completed, receives_failed, receives_flushed;
} HcaResponderCounters;

/* What a failed request leads to (IBA 9.9.3, tables 57 and 58). */
typedef struct HcaFailure {
    uint8_t nak;        /* AETH syndrome, RC */
    uint8_t event;      /* and asynchronous event, 0: none */
    uint8_t syndrome;   /* of the WQE in use, 0: it is flushed */
    uint8_t vendor_err; /* beside it; 0: the HcaOutcome */
    uint8_t drop;       /* HcaDropReason, UC and UD */
    bool local;         /* breaks UC and UD, too */
} HcaFailure;

/* What is not a single QP's. */
typedef struct HcaResponderUnit {
    HcaResponderCounters counters;
    HcaFailure planned; /* HCA_EXE_PLANNED: of the request in hand */
    bool answer_lost;   /* a fault: the packet in hand does not leave */
} HcaResponderUnit;

HcaResponderUnit *hca_responder_new(void);
void hca_responder_free(HcaResponderUnit *responder);
void hca_responder_reset(HcaResponderUnit *responder);

/*
 * Memory that takes its time: whether what hca_responder_receive() will touch is
 * here; it is asked for by @ask.
 */
bool hca_responder_is_here(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                           HcaV2pAsk *ask);
/* A request packet for @qp, which is in RTR, RTS, SQE or SQD. */
void hca_responder_receive(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/*
 * A frame for @qp, a raw packet QP, which is in RTR, RTS, SQE or SQD. @flow_tag:
 * of the rule that it came by.
 */
void hca_responder_receive_frame(Hca *hca, HcaQp *qp, const uint8_t *frame,
                                 size_t len, uint32_t flow_tag);

/*
 * Send up to @budget response packets of @qp. MORE: some are left;
 * BLOCKED: the cable takes no more; IDLE: none, or their memory is not here.
 */
HcaTurn hca_responder_send(Hca *hca, HcaQp *qp, unsigned budget);

/* Whether anything is left to send. */
static inline bool hca_responder_owes(const HcaQp *qp)
{
    return qp->resp.cnp_owed || qp->resp.ring_head != qp->resp.ring_tail;
}

/* A sound packet for @qp, request or response: owe a CNP if it is marked. */
void hca_cnp_note(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/* A timer of @qp may have ended. */
void hca_responder_timer(Hca *hca, HcaQp *qp, int64_t now);

/* The QP's state changed (HcaQpStateFn): begin, flush or forget. */
void hca_responder_state(Hca *hca, HcaQp *qp, uint8_t old_state);

/* state.c: what is saved beside the QP, in this order; a QP that was loaded. */
extern const HcaSection hca_answer_section, hca_replay_section,
    hca_receive_section;
bool hca_responder_load_qp(const Hca *hca, HcaQp *qp);

#endif /* HCA_RESPONDER_H */
