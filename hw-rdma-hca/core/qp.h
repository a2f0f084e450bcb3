/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QP context that the card keeps (context document 4.1, 5.4; engine
 * document 7.3). The context manager owns the memory and the attributes; each
 * engine's part is written by that engine alone.
 *
 * Each part is its state, then, behind "Derived", what can be computed from
 * the state, or can begin anew and nobody would tell. Whoever saves a QP saves
 * its state alone. A new member goes to its side of the line.
 *
 * With thousands of QPs in turn each packet finds its own in none of the
 * processor's caches. So what each packet needs lies together and comes first,
 * and what is large lies behind it, be it state or not.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include <string.h>

#include <glib.h>

#include "../abi/rdma_hca_sizes.h"
#include "event.h"
#include "fault/status.h"
#include "mem_op.h"
#include "path.h"
#include "v2p/v2p.h"
#include "verbs.h"

typedef struct HcaCxtMgt HcaCxtMgt;
typedef struct HcaCq HcaCq;
typedef struct HcaQp HcaQp;
typedef struct HcaSrq HcaSrq;

#define HCA_MAX_RD_ATOMIC 16
/* Types of events that a QP has. */
#define HCA_QP_EVENTS 9

/* Attributes that a transition can bring (table A1-3), bits. */
#define HCA_QP_ATTR_STATE (1u << 0)
#define HCA_QP_ATTR_CUR_STATE (1u << 1)
#define HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY (1u << 2)
#define HCA_QP_ATTR_ACCESS_FLAGS (1u << 3)
#define HCA_QP_ATTR_PKEY_INDEX (1u << 4)
#define HCA_QP_ATTR_PORT (1u << 5)
#define HCA_QP_ATTR_QKEY (1u << 6)
#define HCA_QP_ATTR_AV (1u << 7)
#define HCA_QP_ATTR_PATH_MTU (1u << 8)
#define HCA_QP_ATTR_TIMEOUT (1u << 9)
#define HCA_QP_ATTR_RETRY_CNT (1u << 10)
#define HCA_QP_ATTR_RNR_RETRY (1u << 11)
#define HCA_QP_ATTR_RQ_PSN (1u << 12)
#define HCA_QP_ATTR_MAX_QP_RD_ATOMIC (1u << 13)
#define HCA_QP_ATTR_ALT_PATH (1u << 14)
#define HCA_QP_ATTR_MIN_RNR_TIMER (1u << 15)
#define HCA_QP_ATTR_SQ_PSN (1u << 16)
#define HCA_QP_ATTR_MAX_DEST_RD_ATOMIC (1u << 17)
#define HCA_QP_ATTR_PATH_MIG_STATE (1u << 18)
#define HCA_QP_ATTR_CAP (1u << 19)
#define HCA_QP_ATTR_DEST_QPN (1u << 20)
#define HCA_QP_ATTR_CREATE (1u << 31) /* what only RST2INIT sets */

/* What software says of a QP (table 3-2-40); which, a mask of the above. */
typedef struct HcaQpAttr {
    /* CREATE */
    uint8_t service;     /* HcaService */
    bool privileged;     /* its WQEs are the kernel's */
    bool block_loopback; /* UD: it hears no multicast of its own */
    uint32_t pd;
    uint32_t uar;
    uint32_t sq_cqn;
    uint32_t rq_cqn;
    uint32_t sq_lkey;
    uint32_t sq_len; /* bytes */
    uint8_t sq_entry_log;
    bool signals_all; /* each send WQE completes with an entry */
    uint32_t rq_lkey;
    uint32_t rq_len; /* bytes, 0: no receive queue */
    uint8_t rq_entry_log;
    uint64_t wq_base;   /* of the 4 GiB in which both queues are... */
    uint32_t sq_offset; /* ...where the send queue begins in its region */
    uint32_t rq_offset; /* ...and the receive queue */
    uint64_t rq_db;     /* posted-count record, its place, 0: none */
    bool uses_srq;
    uint32_t srqn;
    uint32_t xrcd;        /* XRC_TGT */
    uint32_t counter_set; /* also by itself, see qp_counters.c */
    /* CREATE, PATH_MTU */
    uint8_t mtu;         /* IB MTU code; UD has the port's */
    uint8_t log_max_msg; /* of bytes; 0: no limit but that of the wire */
    /* AV */
    HcaPath path;
    uint16_t slid; /* this and the next two are for QUERY_QP only: */
    uint8_t static_rate;
    uint32_t alt_path[3]; /* ALT_PATH: the same, as it was given */
    uint8_t pkey_index;
    uint8_t port;
    uint32_t qkey;
    uint16_t access; /* HCA_ACCESS_* allowed to the peer */
    uint32_t remote_qpn;
    uint32_t rq_psn; /* that the transition began with */
    uint32_t sq_psn;
    uint8_t sra_max; /* max_rd_atomic */
    uint8_t rra_max; /* max_dest_rd_atomic */
    uint8_t retry_count;
    uint8_t rnr_retry;
    uint8_t ack_timeout;
    uint8_t min_rnr_timer;
} HcaQpAttr;

/* What is counted for one QP or several: a set. Names: cxtmgt/qp_counters.c. */
typedef struct HcaQpCounters {
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t write_requests, read_requests, atomic_requests;
    uint64_t out_of_buffer, out_of_sequence, duplicates;
    uint64_t rnrs_rx, psn_naks_rx, timeouts, retransmissions;
    uint64_t sends_failed, sends_flushed, receives_failed, receives_flushed;
} HcaQpCounters;

/* A piece of guest memory: a gather or scatter entry. */
typedef struct HcaSge {
    uint64_t va;
    uint32_t lkey;
    uint32_t len;
    bool relative; /* va counts from the start of the region */
} HcaSge;

/* A send doorbell or a link of a chain: where the next WQE is (7.1.1). */
typedef struct HcaWqeRef {
    uint32_t offset; /* bytes in the send queue's 4 GiB */
    uint16_t size;   /* bytes */
    uint8_t opcode;  /* HcaOpcode */
    bool fence;
    uint8_t count; /* WQEs from it on, where links do not tell the last one */
} HcaWqeRef;

/*
 * A send WQE parsed: the metadata of 7.2.3. With @syndrome set only the
 * fields up to it are valid.
 */
typedef struct HcaWqe {
    HcaWqeRef ref;
    bool signalled;
    bool solicited;
    uint8_t syndrome;   /* HcaSyndrome, 0: good */
    uint8_t vendor_err; /* which check, HcaWqeCheck */
    uint8_t nsge;
    uint8_t sge_at;    /* DataPack: the entry in hand */
    uint32_t sge_done; /* and how much of it has been sent */
    uint32_t sent;     /* bytes of the message sent so far */
    uint32_t msg_len;
    uint32_t imm_be;
    uint64_t raddr;
    uint32_t rkey;      /* of @raddr; or to be invalidated by the peer */
    HcaPlanned planned; /* what a plan of faults has in mind */
    uint64_t swap_add;
    uint64_t compare;
    uint32_t feth;      /* FLUSH: as the packet has it... */
    uint32_t flush_len; /* ...and how much */
    uint32_t srqn;      /* XRC: the peer's */
    HcaPath path;       /* UD */
    uint32_t dqpn;
    uint32_t qkey;
    union {
        HcaSge sge[RDMA_HCA_MAX_SGE]; /* inline data: one, in the send queue */
        HcaMemOp mem;
    };
} HcaWqe;

/*
 * Send queue of a QP (engine document 2): doorbells that wait (Q1), the link
 * found in the last WQE (Q2), whether a chain is being followed (the QP's
 * flag in the WQE indicator table), and the WQE in hand.
 */
typedef struct HcaSendQueue {
    HcaWqeRef *doorbells; /* ring of doorbell_mask + 1 */
    uint32_t doorbell_mask;
    uint32_t doorbell_head; /* indices count without wrapping */
    uint32_t doorbell_tail;
    bool indicator;
    HcaWqeRef chained;
    uint32_t chain_len; /* WQEs followed since the doorbell */
    uint16_t taken;     /* WQEs taken in hand, modulo 2^16 */
    uint16_t ended;     /* the same that have ended, of a strict card */
    bool wqe_valid;     /* @wqe is being sent */
    bool flushing;      /* back from SQE: what came before... */
    uint32_t flush_end; /* ...this doorbell is flushed still */
    HcaWqe wqe;
} HcaSendQueue;

/* Indices into a pool of multi_queue.c; this one is none. */
#define HCA_MQ_NONE UINT32_MAX

/* List table entry (3.4.3.2): head, tail; empty if count is 0. */
typedef struct HcaMqList {
    uint32_t head;
    uint32_t tail;
    uint32_t count; /* entries in the list */
} HcaMqList;

/*
 * A WQE put aside until all before it has completed: a bad request (3.4.5.1.5)
 * or a local operation that is executed then.
 */
typedef struct HcaBarrier {
    bool pending;
    bool signalled;
    uint8_t syndrome; /* 0: not bad */
    uint8_t vendor_err;
    HcaWqeRef ref;
    HcaMemOp mem;
} HcaBarrier;

/* Requester part (engine document 3). */
typedef struct HcaRequester {
    uint32_t next_psn;    /* NPSN */
    uint32_t unacked_psn; /* UPSN */
    /* Credits (IBA 9.7.7.2): messages begun, and how many the peer can take. */
    uint32_t ssn;
    uint32_t lsn;
    bool no_credits; /* it tells none: no limit */
    HcaMqList swpb;  /* Send and Write packets not acknowledged */
    HcaMqList rpb;   /* Read and atomic requests not answered */
    HcaMqList reb;   /* scatter entries of the latter */
    uint32_t locals; /* of @swpb, local operations */
    /* Retransmission: the next packet of each list to send again. */
    bool retransmit;
    uint32_t resend_swpb;
    uint32_t resend_rpb;
    bool loss_seen;    /* a lost response was asked for again at... */
    uint32_t loss_psn; /* ...this UPSN: once is enough */
    uint8_t retries_left;
    uint8_t rnr_retries_left;
    bool rnr_wait;         /* the peer's receive queue was empty... */
    uint32_t rnr_psn;      /* ...at this packet */
    uint8_t fail_syndrome; /* of the next WQE to be flushed, 0: none */
    uint8_t fail_vendor_err;
    bool drained;   /* SQD: nothing is outstanding any more */
    bool congested; /* RoCE: the outstanding limit is halved */
    HcaBarrier barrier;

    /* Derived. */
    uint32_t swpb_elements; /* 256-bit elements in use by @swpb, and... */
    uint32_t swpb_memory;   /* ...elements of memory */
    uint64_t timer_mark;    /* the loss timer's packet: hca_frame_mark() */
} HcaRequester;

/* What the responder still has to send, in order (engine document 4.4.4). */
typedef enum HcaRespKind {
    HCA_RESP_ACK, /* or NAK, by syndrome; coalesced */
    HCA_RESP_READ,
    HCA_RESP_ATOMIC,
} HcaRespKind;

typedef struct HcaResp {
    HcaRespKind kind;
    uint8_t syndrome;
    uint32_t psn; /* of the next packet to send */
    uint32_t msn;
    uint32_t pd;   /* READ: whose the key is, and... */
    uint32_t rkey; /* ...what is left to read */
    uint64_t va;
    uint32_t len;
    bool started;   /* READ: First has been sent */
    bool duplicate; /* READ, ATOMIC: answered again */
    bool counts;    /* READ, ATOMIC: one of rra_max */
    uint64_t atomic_ack;
} HcaResp;

#define HCA_RESP_RING 64 /* at least 2 * HCA_MAX_RD_ATOMIC + 2 */

/* An atomic executed, for its duplicate (the replay store). */
typedef struct HcaReplay {
    bool valid;
    uint32_t psn;
    uint64_t atomic_ack;
} HcaReplay;

/*
 * A receive queue (4.4.2): where it is, how far it has been used, and what
 * the last fetch brought.
 */
typedef struct HcaRecvQueue {
    uint32_t pd;
    uint32_t lkey;
    uint64_t base; /* where it begins in its region */
    uint32_t len;  /* bytes, 0: no receive queue */
    uint8_t entry_log;
    bool linked;            /* a WQE says where the next one is */
    uint64_t record;        /* posted count, its place, 0: none */
    uint32_t offset;        /* of the next WQE to fetch, bytes */
    uint16_t consumed;      /* WQEs taken into use, modulo 2^16 */
    uint16_t posted;        /* the posted-count record, as last read */
    uint16_t prefetched;    /* WQEs in @buffer not used yet */
    uint16_t buffer_at;     /* byte of @buffer of the next one */
    uint32_t buffer_offset; /* place of @buffer in the receive queue */
    uint8_t buffer[RDMA_HCA_MAX_RECV_WQE_SIZE];
} HcaRecvQueue;

/* A receive WQE parsed, and how far it has been filled. */
typedef struct HcaRecvWqe {
    uint32_t offset; /* its place in the receive queue */
    uint32_t tag;    /* of software's, where a queue is shared */
    uint32_t pd;     /* of its entries */
    uint32_t srqn;   /* XRC: where it came from, and... */
    uint64_t life;   /* ...which SRQ of that number that was */
    uint8_t nsge;
    uint8_t sge_at;    /* the entry in hand */
    uint32_t sge_done; /* and how much of it has been written */
    HcaSge sge[RDMA_HCA_MAX_SGE];
} HcaRecvWqe;

/* Responder part (engine document 4). */
typedef struct HcaResponder {
    uint32_t expected_psn; /* EPSN */
    uint32_t msn;
    bool nak_sent;        /* silent until the sequence is right again */
    bool nak_owed;        /* the expected packet had to wait for answers */
    bool comm_est;        /* the event has been sent */
    bool in_message;      /* a First has come, its Last has not */
    uint8_t message;      /* the kind of that message */
    uint32_t message_len; /* bytes received of it */
    /* Whose regions R_Keys name: the QP's PD; XRC: of the last request's SRQ */
    uint32_t remote_pd;
    /* Write address table entry (4.4.3). */
    uint64_t write_va;
    uint32_t write_pd;
    uint32_t write_rkey;
    uint32_t write_left;
    bool wqe_valid;     /* a message is using @wqe */
    bool waited;        /* a fault: the next answer has, or is about to */
    bool cnp_owed;      /* RoCE: a CNP, and to whom: */
    uint32_t ring_head; /* of @ring; indices count without wrapping */
    uint32_t ring_tail;
    uint32_t replay_next;

    /* Derived. */
    uint32_t rd_atomic; /* those in @ring that count for rra_max */
    int64_t cnp_next;   /* RoCE: the earliest time of a CNP */

    /* State again: large, or seldom used. */
    uint32_t cnp_qpn;
    uint32_t flushed; /* ERR: WQEs flushed */
    /* ERR: ns from one look for receive WQEs to the next. */
    int64_t flush_delay;
    HcaPath cnp_path;
    HcaResp ring[HCA_RESP_RING];
    HcaReplay replay[HCA_MAX_RD_ATOMIC];
    HcaRecvWqe wqe;
} HcaResponder;

/* A place in a heap (card.h). */
typedef struct HcaHeapNode {
    int64_t key;
    int slot; /* -1: in none */
} HcaHeapNode;

/* A place in a run queue (card.h). */
typedef struct HcaRunNode {
    GList link; /* of the QP */
    bool queued;
    uint8_t lane;
} HcaRunNode;

/* What a QP waits for; see hca_timer_set(). */
typedef enum HcaQpTimer {
    HCA_TIMER_LOSS,       /* an answer (engine document 3.4.2) */
    HCA_TIMER_RNR,        /* the peer's receive queue (3.4.2) */
    HCA_TIMER_CONGESTION, /* RoCE: the end of a halved limit */
    HCA_TIMER_FLUSH,      /* ERR: a look for new receive WQEs */
    HCA_TIMER_ANSWER,     /* a fault: answers are withheld */
    HCA_NTIMERS
} HcaQpTimer;

/* The QPs of a port's management interfaces (IBA 13.5.1, 13.5.3). */
typedef enum HcaSpecial {
    HCA_SPECIAL_NONE,
    HCA_SPECIAL_SMI, /* QP 0 */
    HCA_SPECIAL_GSI, /* QP 1, InfiniBand */
    HCA_NSPECIALS
} HcaSpecial;

struct HcaQp {
    uint32_t qpn;
    uint8_t special; /* HcaSpecial */
    uint8_t state;   /* HcaQpState */
    bool sqd_event;  /* RTS2SQD asked for SQ_DRAINED */
    HcaQpAttr attr;
    int64_t deadline[HCA_NTIMERS]; /* ns; INT64_MAX: off */

    /* Derived: of the attributes. */
    uint32_t pmtu;    /* bytes */
    uint32_t max_msg; /* bytes */
    HcaSrq *srq;      /* NULL: it uses none */
    HcaQpCounters *counters;
    /*
     * Places in the requester's pool and in queues of the card (card.h): not for
     * the units.
     */
    HcaRunNode send_turn;
    HcaRunNode resp_turn;
    HcaHeapNode timer; /* the earliest of the deadlines */
    uint8_t lane;      /* virtual, of the last packet */
    /* A pool of the multi-queue: the QP waits for room, or has a promise. */
    uint8_t pool;
    bool pool_promised;
    uint32_t pool_need;
    HcaHeapNode pool_wait;

    /* State again: the engines' parts. */
    HcaRequester req;
    HcaSendQueue send;
    HcaResponder resp;
    HcaRecvQueue rq;

    HcaEventPlace event[HCA_QP_EVENTS]; /* one for each type */
    uint16_t strict_told;               /* what strict.c has told of it: bits */
    bool strict_lived;                  /* it has been in RTS */

    /* Derived: places in queues of VirtToPhys. */
    HcaV2pAsk send_ask, resp_ask;
};

/* Which slot of the send queue @offset, of its region, is in. */
static inline uint32_t hca_sq_slot(const HcaQpAttr *attr, uint32_t offset)
{
    return (offset - attr->sq_offset) >> attr->sq_entry_log;
}

/* Places for doorbells: one for each slot of the send queue, a power of two. */
static inline uint32_t hca_qp_doorbells(const HcaQpAttr *attr)
{
    uint32_t slots = attr->sq_len >> attr->sq_entry_log;
    uint32_t room = 1;

    while (room < slots) {
        room *= 2;
    }
    return slots ? room : 0;
}

#endif /* HCA_QP_H */
