/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the context manager. */
#ifndef HCA_CXTMGT_INT_H
#define HCA_CXTMGT_INT_H

#include "../../abi/rdma_hca_sizes.h"
#include "../card.h"
#include "../service.h"
#include "../trace_events.h"
#include "cxt_format.h"

/* A table of contexts in ICM (INIT_HCA). */
typedef struct HcaCxtTable {
    uint64_t base; /* card-virtual */
    unsigned log_num;
    unsigned entry_size; /* bytes; divides a page */
} HcaCxtTable;

#define HCA_EVENT_TYPES 64
#define HCA_NO_EQ 0xff

/* The card has one port; the last two changes of its state say all. */
typedef struct HcaPortEvents {
    HcaEventPlace change[2];
    HcaEventPlace mng;
} HcaPortEvents;

struct HcaCxtMgt {
    const HcaCxtFormat *format;
    const HcaConfig *config;
    HcaV2p *v2p;
    HcaPort *port;
    HcaHostFaults *faults; /* or NULL */
    HcaHost host;
    HcaQpStateFn *state_fn;
    void *state_opaque;

    HcaTptMdata *ctxmdata;
    bool ready; /* INIT_HCA gave the tables' places */
    HcaCxtTable qpc, cqc, eqc, srqc;
    HcaQp **qps; /* key data, by number; NULL: RST, SW */
    HcaCq **cqs;
    HcaEq *eqs[RDMA_HCA_MAX_EQS];
    int failed_eqs; /* how many of them have failed; atomic */
    HcaSrq **srqs;
    HcaQpCounters *qp_counters;      /* 2^HCA_LOG_COUNTER_SETS sets */
    uint32_t special[HCA_NSPECIALS]; /* QPNs, 0: none */
    uint64_t srq_lives;              /* SRQs that there have been */
    HcaHeap cq_timers;

    /* Which EQ asked for events of a type, HCA_NO_EQ: none. */
    uint8_t event_eq[HCA_EVENT_TYPES];
    /* Places of events that wait for room in their EQ, by type. */
    GQueue waiting[HCA_EVENT_TYPES];
    HcaPortEvents port_events;

    HcaCxtCounters counters;
    HcaCxtLive live;
};

static inline bool hca_index_ok(const HcaCxtMgt *cm, const HcaCxtTable *table,
                                uint32_t index)
{
    return cm->ready && index < 1ull << table->log_num;
}

/*
 * Where the context of QP or CQ @number is in @table; false: there is no such
 * number. Where numbers have tags, bits above the table's index are one.
 */
static inline bool hca_index_of(const HcaCxtMgt *cm, const HcaCxtTable *table,
                                uint32_t number, uint32_t *index)
{
    uint32_t mask = (1u << table->log_num) - 1;

    *index = number & mask;
    return cm->ready && (number <= mask || (cm->format->tagged_numbers &&
                                            number <= HCA_QPN_MASK));
}

static inline void hca_cxt_trace(HcaCxtMgt *cm, HcaTraceEvent event,
                                 uint32_t number, uint64_t a, uint64_t b,
                                 uint64_t c)
{
    hca_host_trace(&cm->host, event, number, a, b, c);
}

/*
 * ctxmdata.c: write a context, an entry of @table, to ICM. False when its page
 * is not mapped or not RAM.
 */
bool hca_cxt_write(HcaCxtMgt *cm, const HcaCxtTable *table, uint32_t index,
                   const void *cxt);
/*
 * Whether it would be true. A command that changes a context asks before it
 * changes anything.
 */
bool hca_cxt_writable(HcaCxtMgt *cm, const HcaCxtTable *table, uint32_t index);

/* qp_attr.c: a row of table A1-2: what a transition may and must bring. */
typedef struct HcaQpTransitionRow {
    uint8_t from; /* bits: states in which it is legal */
    uint8_t to;
    bool attrs_optional; /* it may come without any */
    /* Any attribute may be left out if the mask names those that are not. */
    bool masked;
    struct {
        uint32_t required;
        uint32_t optional;
    } attrs[HCA_NSERVICES];
} HcaQpTransitionRow;

extern const HcaQpTransitionRow hca_qp_transitions[HCA_QP_NTRANSITIONS];
/*
 * The attributes that @row takes with @change's mask for a QP of this service
 * type. BAD_PARAM if the mask has one that is not to be there.
 */
uint8_t hca_qp_attrs(const HcaQpTransitionRow *row, uint8_t service,
                     const HcaQpChange *change, uint32_t *attrs);
/* Judge the values of @attrs. */
uint8_t hca_qp_check(HcaCxtMgt *cm, const HcaQpAttr *attr, uint32_t attrs);
/* The same of all that a QP has. */
bool hca_qp_attr_ok(HcaCxtMgt *cm, const HcaQp *qp);
/* What follows from the attributes. */
void hca_qp_derive(const HcaCxtMgt *cm, HcaQp *qp);
/* Take @attrs from @attr, and with them what follows from them. */
void hca_qp_take(const HcaCxtMgt *cm, HcaQp *qp, const HcaQpAttr *attr,
                 uint32_t attrs);

/* qp_counters.c */
void hca_qp_counters_init(HcaCxtMgt *cm);
void hca_qp_counters_cleanup(HcaCxtMgt *cm);
void hca_qp_counters_reset(HcaCxtMgt *cm);
bool hca_qp_counter_set_ok(uint64_t set);
/* @qp counts where its attributes say. */
void hca_qp_find_counters(const HcaCxtMgt *cm, HcaQp *qp);

/* cq.c */
HcaCq *hca_cq_find(HcaCxtMgt *cm, uint32_t cqn);
void hca_cq_free_all(HcaCxtMgt *cm);
/* Entries that have been neither consumed nor told of. */
static inline uint32_t hca_cq_untold(const HcaCq *cq)
{
    return cq->producer_index - cq->last_notified_index;
}

/* How the place of a queue's entry is said. */
static inline uint32_t hca_queue_addr_flag(bool on_bus)
{
    return on_bus ? HCA_V2P_BUS_ADDR : HCA_V2P_RELATIVE_ADDR;
}

/* moderation.c */
void hca_moderation_init(HcaCxtMgt *cm);
void hca_moderation_cleanup(HcaCxtMgt *cm);
bool hca_cq_is_moderated(const HcaCq *cq);
/* How @cq is moderated from now on: whether what waits is due at once. */
bool hca_cq_moderate(HcaCxtMgt *cm, HcaCq *cq, uint16_t count,
                     uint16_t period_us);
/* The next CQ whose event has waited for long enough at @now; NULL: none. */
HcaCq *hca_cq_next_due(HcaCxtMgt *cm, int64_t now);
/* @cq is armed and an entry has come: whether its event waits for more. */
bool hca_cq_hold(HcaCxtMgt *cm, HcaCq *cq);
/* Nothing waits, or @cq is going. */
void hca_cq_stop_timer(HcaCxtMgt *cm, HcaCq *cq);

/*
 * cq.c: the completion chain's steps (completion.c). A CQ that can take an
 * entry:
 */
HcaCq *hca_cq_request(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t cqn);
/* where it goes, an offset in the CQ's region; */
uint64_t hca_cq_next_addr(const HcaCxtMgt *cm, const HcaCq *cq);
/* its writing (false: refused, the CQ has failed); */
bool hca_cq_write(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq,
                  uint64_t addr, const HcaCompletion *completion);
/* and whether it calls for an event. */
bool hca_cq_take_arm(HcaCxtMgt *cm, HcaCq *cq, const HcaCompletion *completion);

/* eq.c */
HcaEq *hca_eq_find(HcaCxtMgt *cm, uint32_t eqn);
/*
 * @eqn, if it takes a completion event of @cqn now; else the event waits at
 * @place, and it is NULL.
 */
HcaEq *hca_eq_request(HcaCxtMgt *cm, uint32_t eqn, uint32_t cqn,
                      HcaEventPlace *place);
/* Write the completion event of @cqn, after hca_eq_request(). */
void hca_eq_write_completion(HcaCxtMgt *cm, HcaEq *eq, uint32_t cqn);
/* The source of @place goes, and an event that waits there with it. */
void hca_eq_forget(HcaEventPlace *place);
void hca_eq_init(HcaCxtMgt *cm);
/* And all events that wait. */
void hca_eq_free_all(HcaCxtMgt *cm);
/* Events that wait. */
unsigned hca_eq_waiting(const HcaCxtMgt *cm);

/* srq.c */
HcaSrq *hca_srq_find(HcaCxtMgt *cm, uint32_t srqn);
void hca_srq_free_all(HcaCxtMgt *cm);

/* key_qpc_data.c */
void hca_qp_free_all(HcaCxtMgt *cm);

/* eq.c: as hca_cq_is_here(), of an entry of @eqn. */
bool hca_eq_is_here(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t eqn,
                    HcaV2pAsk *ask, unsigned *nth);

/* state.c: what is saved of each. */
extern const HcaStruct hca_eq_struct, hca_cq_struct, hca_srq_struct;
/*
 * A queue as it was saved, but for what can be worked out. False: it cannot be,
 * or there is one of that number.
 */
bool hca_eq_add(HcaCxtMgt *cm, const HcaEq *from);
bool hca_cq_add(HcaCxtMgt *cm, const HcaCq *from);
bool hca_srq_add(HcaCxtMgt *cm, const HcaSrq *from);
bool hca_qp_add(HcaCxtMgt *cm, const HcaQp *from);
/* eq.c: the same as hca_eq_wait() of a completion event. */
bool hca_eq_wait_completion(HcaEq *eq, uint32_t cqn, HcaEventPlace *place);
/* key_qpc_data.c: where events of @type wait; NULL: a QP has none. */
HcaEventPlace *hca_qp_event_place(HcaQp *qp, uint8_t type);

#endif /* HCA_CXTMGT_INT_H */
