/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The floor that all engines of a card stand on: who is there, QPs' turns,
 * their timers, traces.
 */
#ifndef HCA_CARD_H
#define HCA_CARD_H

#include <glib.h>

#include "config.h"
#include "format.h"
#include "host.h"
#include "qp.h"
#include "trace_events.h"

/* Nodes, the least key first. There has to be a slot for each. */
typedef struct HcaHeap {
    HcaHeapNode **slot;
    unsigned count;
} HcaHeap;

/*
 * QPs whose turn comes, by the virtual lane that each sent in last: that of its
 * path, which a datagram QP may change with each message.
 */
#define HCA_RUN_HELD 16 /* behind the lanes: those that the cable blocks */
typedef struct HcaRunQueue {
    GQueue lane[HCA_RUN_HELD + 1];
    unsigned lanes;  /* that are not empty: bits */
    unsigned length; /* of all */
} HcaRunQueue;

typedef struct Hca {
    HcaConfig config;
    HcaHost host;
    const struct HcaInterface *interface; /* front/'s, and of it: */
    const HcaFormat *format;

    /* The rooms, from top to bottom. */
    struct HcaBars *bars;
    struct HcaCeu *ceu;
    struct HcaEth *eth; /* NULL on an InfiniBand card */
    struct HcaSender *send;
    struct HcaRequesterUnit *requester;
    struct HcaResponderUnit *responder;
    struct HcaCxtMgt *cm;
    struct HcaPort *port;
    struct HcaV2p *v2p;
    struct HcaHostFaults *faults;
    struct HcaScript *script;
    struct HcaStrict *strict; /* NULL: it is not */
    struct HcaLink *link;

    HcaRunQueue send_queue;     /* QPs with something to send */
    HcaRunQueue resp_queue;     /* QPs with a response to send */
    HcaHeap timers;             /* of QPs */
    unsigned timers_of_peers;   /* that run: all but HCA_TIMER_FLUSH */
    bool timers_stand;          /* an end of the cable is away, */
    int64_t timers_stood_at;    /* since then */
    int64_t alarm;              /* as last given to timer_mod */
    bool late;                  /* memory takes its time */
    struct HcaArrived *arrived; /* dispatch.c; NULL unless late */
    bool eth_first;             /* at the cable in this turn */
    unsigned resp_first; /* lanes whose next turn is a response's: bits */
    unsigned rx_left;    /* packets, or copies, that this turn still takes */
    bool announces;      /* that it has moved, as soon as there is a cable */
} Hca;

/* Who asks for memory that takes its time: HcaV2pAsk's unit. */
typedef enum HcaAskUnit {
    HCA_ASK_SEND,    /* a QP that sends */
    HCA_ASK_RESP,    /* a QP that answers */
    HCA_ASK_RECEIVE, /* the packet that arrived last */
    HCA_ASK_COMMAND, /* the command unit */
} HcaAskUnit;

/* What a QP's turn at sending came to. */
typedef enum HcaTurn {
    HCA_TURN_IDLE,    /* nothing to do until it is scheduled again */
    HCA_TURN_MORE,    /* another turn now */
    HCA_TURN_BLOCKED, /* another turn when the cable takes packets */
} HcaTurn;

/* The queues and timers of @hca, whose config is set. */
void hca_card_init(Hca *hca);
void hca_card_cleanup(Hca *hca);

/* A new QP: in no queue, no timer runs. One that is going: the same again. */
void hca_card_add_qp(HcaQp *qp);
void hca_card_forget_qp(Hca *hca, HcaQp *qp);

/*
 * Run queues: give @qp a turn at sending requests, or responses. A QP that is
 * queued already keeps its place. Each turn is bounded; see hca_run().
 */
void hca_schedule_send(Hca *hca, HcaQp *qp);
void hca_schedule_resp(Hca *hca, HcaQp *qp);

/* Put @node, which may be in @queue, at the end of @lane; take out the first. */
void hca_run_queue_put(HcaRunQueue *queue, HcaRunNode *node, unsigned lane);
HcaQp *hca_run_queue_take(HcaRunQueue *queue, unsigned lane);

/* Heaps: put @node in, or to its new place; take it out, if it is in. */
void hca_heap_put(HcaHeap *heap, HcaHeapNode *node, int64_t key);
void hca_heap_remove(HcaHeap *heap, HcaHeapNode *node);
/* For a state: whether it is in, 0 or -1, and not where. */
static inline void hca_heap_save(HcaHeapNode *node)
{
    node->slot = node->slot < 0 ? -1 : 0;
}
/* The QP, or another @type, that has this node as its @member. */
#define HCA_HEAP_ENTRY(node, type, member)                                     \
    ((type *)((char *)(node)-offsetof(type, member)))
#define HCA_HEAP_QP(node, member) HCA_HEAP_ENTRY(node, HcaQp, member)
/* NULL: it is empty. */
static inline HcaHeapNode *hca_heap_first(const HcaHeap *heap)
{
    return heap->count ? heap->slot[0] : NULL;
}

/* Have @timer of @qp end at @deadline; INT64_MAX: stop it. */
void hca_timer_set(Hca *hca, HcaQp *qp, HcaQpTimer timer, int64_t deadline);
void hca_timer_stop(Hca *hca, HcaQp *qp, HcaQpTimer timer);
static inline bool hca_timer_runs(const HcaQp *qp, HcaQpTimer timer)
{
    return qp->deadline[timer] != INT64_MAX;
}
/* Whether @timer of @qp has ended; it is stopped then. */
bool hca_timer_take(Hca *hca, HcaQp *qp, HcaQpTimer timer, int64_t now);
/* Have all timers end so much later; @ns is not negative. */
void hca_timers_delay(Hca *hca, int64_t ns);
/* The QP whose timer ends first, or NULL. */
HcaQp *hca_timer_first(const Hca *hca);

static inline int64_t hca_now(Hca *hca)
{
    return hca->host.ops->clock_ns(hca->host.opaque);
}

static inline void hca_trace(Hca *hca, HcaTraceEvent event, uint32_t qpn,
                             uint64_t a, uint64_t b, uint64_t c)
{
    hca_host_trace(&hca->host, event, qpn, a, b, c);
}

#endif /* HCA_CARD_H */
