/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a card, for its units: who is there, the run queues, timers,
 * traces and the counters that belong to no single unit.
 */
#ifndef HCA_CARD_H
#define HCA_CARD_H

#include "../abi/rdma_hca_cmd.h"
#include "../abi/rdma_hca_cxt.h"
#include "../abi/rdma_hca_regs.h"
#include "../abi/rdma_hca_wqe.h"
#include "addressing.h"
#include "cxtmgt/cxtmgt.h"
#include "gid_table.h"
#include "hca.h"
#include "link/link.h"
#include "mcast_table.h"
#include "trace_events.h"
#include "v2p/v2p.h"
#include "wire/wire.h"

typedef struct HcaMultiQueue HcaMultiQueue;

/* Why a received packet was dropped without an answer. */
/* clang-format off */
#define HCA_DROP_REASONS(X)                                                    \
    X(PARSE_SHORT) X(PARSE_LENGTH) X(PARSE_VERSION) X(PARSE_LNH)               \
    X(PARSE_OPCODE) X(PARSE_VCRC) X(PARSE_ICRC)                                \
    X(PARSE_FRAGMENT) X(PARSE_IP_HEADER) X(PARSE_UDP)                          \
    X(LID)              /* not for us */                                       \
    X(PORT_DOWN)        /* INIT_IB not done */                                 \
    X(QPN)              /* no such QP */                                       \
    X(QP_STATE)         /* its state takes no packets */                       \
    X(SERVICE)          /* opcode of another service type */                   \
    X(PKEY) X(QKEY)                                                            \
    X(SOURCE)           /* not from the connected peer */                      \
    X(DUPLICATE)        /* nothing to answer */                                \
    X(PSN)              /* out of sequence, already told or not to be told */  \
    X(GHOST)            /* a response to nothing that is outstanding */        \
    X(NO_WQE)           /* UC, UD: no receive WQE */                           \
    X(LENGTH)           /* UC, UD: does not fit */                             \
    X(OPCODE_SEQ)       /* UC: out of place in a message */                    \
    X(ACCESS)           /* UC: memory refused */                               \
    X(RESOURCES)        /* the response ring is full */                        \
    X(GROUP)            /* multicast, to no group of ours */
/* clang-format on */

typedef enum HcaDropReason {
#define HCA_DROP_ENUM(name) HCA_DROP_##name,
    HCA_DROP_REASONS(HCA_DROP_ENUM)
#undef HCA_DROP_ENUM
    HCA_DROP_NREASONS
} HcaDropReason;

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
    HCA_WAIT_NREASONS
} HcaWait;

/* Sizes of what the rooms number: HcaWqeCheck, HcaRequestKind, HcaOutcome. */
#define HCA_NWQE_CHECKS 8
#define HCA_NREQUEST_KINDS 4
#define HCA_NOUTCOMES 15
/* NAKs by AETH code; those that the specification reserves are one. */
#define HCA_NNAKS 6

/*
 * Counters of the units below hca.c, each written by its unit alone in the
 * card's thread. Every field is in the table of counters.c.
 */
typedef struct HcaCounters {
    /* send: doorbell to WQE */
    uint64_t doorbells, db_bad_uar, db_bad_qpn, db_bad_state, db_overflow;
    uint64_t wqes, wqes_chained;
    uint64_t wqe_opcodes[32];
    uint64_t wqe_checks[HCA_NWQE_CHECKS];
    /* requester */
    uint64_t packets_sent, reads_sent, retransmissions;
    uint64_t waits[HCA_WAIT_NREASONS];
    uint64_t acks_rx, naks_rx, nak_codes_rx[HCA_NNAKS], rnrs_rx;
    uint64_t responses_rx, answers_lost;
    uint64_t timeouts, rnr_timeouts, retries_exhausted, rnr_retries_exhausted;
    uint64_t wqes_completed, wqes_failed, wqes_flushed;
    uint64_t cnp_rx, limit_halved, limit_restored;
    /* responder */
    uint64_t requests[HCA_NREQUEST_KINDS];
    uint64_t outcomes[HCA_NOUTCOMES];
    uint64_t duplicates;
    uint64_t acks_tx, naks_tx, nak_codes_tx[HCA_NNAKS], rnrs_tx;
    uint64_t read_responses_tx, atomic_responses_tx;
    uint64_t rq_fetches, rq_record_reads;
    uint64_t ecn_marked_rx, cnp_tx;
    uint64_t receives_completed, receives_failed, receives_flushed;
    /* port */
    uint64_t tx_packets, rx_packets;
    uint64_t tx_unreachable; /* lost: no source address for the path */
    uint64_t rx_multicast;   /* to a group, counted once */
    uint64_t drops[HCA_DROP_NREASONS];
} HcaCounters;

/* Place of an AETH's NAK code in nak_codes_rx and nak_codes_tx. */
static inline unsigned hca_nak_index(uint8_t syndrome)
{
    return MIN(HCA_AETH_VALUE(syndrome), HCA_NNAKS - 1);
}

/* What a QP's turn at sending came to. */
typedef enum HcaTurn {
    HCA_TURN_IDLE,    /* nothing to do until it is scheduled again */
    HCA_TURN_MORE,    /* another turn now */
    HCA_TURN_BLOCKED, /* another turn when the cable takes packets */
} HcaTurn;

/* QPs ordered by timer_at; see hca_timer_set(). */
typedef struct HcaTimerHeap {
    HcaQp **slot;
    unsigned count;
    unsigned room;
} HcaTimerHeap;

struct Hca {
    HcaConfig config;
    const HcaHostOps *ops;
    void *opaque;

    const HcaAddressing *addressing; /* of the link layer */
    struct HcaCeu *ceu;
    HcaCxtMgt *cm;
    HcaV2p *v2p;
    HcaLink *link;
    HcaMultiQueue *mq;
    struct HcaEth *eth; /* NULL on an InfiniBand card */
    bool eth_first;     /* at the cable in this turn */
    HcaGidTable gids;
    HcaMcastTable mcast;

    GQueue send_queue; /* QPs with something to send */
    GQueue resp_queue; /* QPs with a response to send */
    HcaTimerHeap timers;
    int64_t alarm;     /* as last given to timer_mod */
    uint32_t *uar_low; /* low halves of split doorbells, by UAR */
    uint32_t reset;    /* the reset register; atomic */
    bool port_active;  /* as last told by a PORT_CHANGE event */
    HcaCounters counters;
};

/*
 * Run queues: give @qp a turn at sending requests, or responses. A QP that is
 * queued already keeps its place. Each turn is bounded; see hca_run().
 */
void hca_schedule_send(Hca *hca, HcaQp *qp);
void hca_schedule_resp(Hca *hca, HcaQp *qp);

/*
 * (Re)set the time at which @qp is looked at: the earliest of its deadlines.
 * Call after changing req.loss_deadline, req.rnr_deadline,
 * req.congestion_deadline or resp.flush_deadline.
 */
void hca_timer_set(Hca *hca, HcaQp *qp);

static inline int64_t hca_now(Hca *hca)
{
    return hca->ops->clock_ns(hca->opaque);
}

static inline void hca_trace(Hca *hca, HcaTraceEvent event, uint32_t qpn,
                             uint64_t a, uint64_t b, uint64_t c)
{
    if (hca->ops->trace) {
        HcaTrace trace = { event, qpn, { a, b, c } };

        hca->ops->trace(hca->opaque, &trace);
    }
}

/* Count and trace a received packet that is dropped without an answer. */
void hca_drop(Hca *hca, const HcaPacket *packet, HcaDropReason reason);

/* Whether @lid is the card's own. */
static inline bool hca_is_own_lid(const Hca *hca, uint16_t lid)
{
    return lid == hca->config.lid;
}

#endif /* HCA_CARD_H */
