/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cxtmgt: QP, CQ, EQ and SRQ contexts, in ICM in guest memory, and the key
 * data of them that the card keeps (context document 4.1, 5.4).
 *
 * cxt_format.h    how contexts and entries lie in guest memory: a table
 * cxtmgt.c        the unit assembled
 * qp_attr.c       interface document A1-2, A1-3: transitions and attributes
 * key_qpc_data.c  5.4: QP contexts on the card, MODIFY_QP, QUERY_QP
 * recv_queue.c    engine document 4.4.2: receive queues
 * srq.c           shared receive queues (IBA 10.2.9)
 * completion.c    the way of a completion through CQ and EQ
 * cq.c            completion queues: CQEs, arming, overrun
 * moderation.c    events that wait for more entries
 * qp_counters.c   what is counted for QPs, in sets
 * port_event.c    events of the port
 * eq.c            event queues: EQEs, interrupts, events that wait for room
 * ctxmdata.c      5.3: where a context lies in ICM, and its writing
 */
#ifndef HCA_CXTMGT_H
#define HCA_CXTMGT_H

#include <glib.h>

#include "../config.h"
#include "../event.h"
#include "../port/port.h"
#include "../qp.h"
#include "../v2p/v2p.h"

typedef struct HcaCxtFormat HcaCxtFormat; /* cxt_format.h */

/* An arm request of a CQ that has not been answered yet. */
typedef enum HcaCqArm {
    HCA_CQ_DISARMED,
    HCA_CQ_ARMED_SOLICITED,
    HCA_CQ_ARMED_NEXT,
    HCA_CQ_FIRED, /* answered; disarmed until asked again */
} HcaCqArm;

/* Largest queues, logarithms to base 2 of entries. */
#define HCA_MAX_LOG_WQES 15 /* half of what a posted count counts */
#define HCA_MAX_LOG_CQ_SIZE 22
#define HCA_MAX_LOG_EQ_SIZE 20

/* A queue that has failed takes no more entries. */
typedef enum HcaQueueStatus {
    HCA_QUEUE_OK,
    HCA_QUEUE_OVERFLOW,
    HCA_QUEUE_WRITE_FAIL,
} HcaQueueStatus;

/* What software says of a CQ (table 3-2-32). */
typedef struct HcaCqAttr {
    uint32_t uar;
    uint32_t eqn;
    uint32_t pd;
    uint32_t lkey;
    uint64_t start; /* offset of entry 0 in its region, or */
    bool on_bus;    /* its bus address: there is no region */
    uint8_t log_size;
    HcaCqArm arm;   /* to begin with */
    uint64_t ci_db; /* consumer index: bus address, 0: none */
    bool ignore_overrun;
} HcaCqAttr;

struct HcaCq {
    uint32_t cqn;
    HcaCqAttr attr;
    HcaQueueStatus status;
    HcaCqArm arm;
    uint32_t producer_index;         /* all indices count without wrapping */
    uint32_t consumer_index;         /* as last heard */
    uint32_t solicit_producer_index; /* behind the last solicited entry */
    uint32_t last_notified_index;    /* entries consumed, or told of */
    /* Moderation; either 0: none. */
    uint16_t event_count;     /* entries of an event */
    uint16_t event_period_us; /* after the first of them */

    /* The context manager's own. */
    unsigned queues;   /* of QPs, and XRC SRQs, that use it */
    HcaHeapNode timer; /* of an event that waits for more entries */
    HcaEventPlace completion;
    HcaEventPlace error;
};

typedef enum HcaEqArm {
    HCA_EQ_ARMED,
    HCA_EQ_FIRED,
    HCA_EQ_ALWAYS_ARMED,
} HcaEqArm;

/* What software says of an EQ (table 3-2-27). */
typedef struct HcaEqAttr {
    uint32_t pd;
    uint32_t lkey;
    uint64_t start; /* offset of entry 0 in its region, or */
    bool on_bus;    /* its bus address: there is no region */
    uint8_t log_size;
    uint16_t vector; /* of a message, or HCA_VECTOR_PIN */
    HcaEqArm arm;    /* to begin with */
    uint32_t index;  /* of both sides, to begin with */
} HcaEqAttr;

typedef struct HcaEq {
    uint32_t eqn;
    HcaEqAttr attr;
    HcaQueueStatus status;
    HcaEqArm arm;
    uint32_t producer_index; /* count without wrapping */
    uint32_t consumer_index;
    /* The context manager's own. */
    unsigned cqs;       /* CQs that report here */
    GQueue completions; /* places of CQs */
    HcaEventPlace failure;
} HcaEq;

/* What software says of an SRQ. */
typedef struct HcaSrqAttr {
    uint32_t pd;
    uint32_t lkey;
    uint32_t len; /* bytes */
    uint8_t entry_log;
    uint64_t record; /* posted count, bus address */
    bool xrc;
    uint32_t cqn; /* XRC: of completions, and the domain */
    uint32_t xrcd;
} HcaSrqAttr;

struct HcaSrq {
    uint32_t srqn;
    HcaSrqAttr attr;
    bool failed;    /* its memory was refused: it gives no more WQEs */
    uint16_t limit; /* the event comes when fewer WQEs are left; 0: never */
    HcaRecvQueue rq;
    uint64_t life; /* which of all that have this number */
    /* The context manager's own. */
    unsigned qps; /* that use it */
    HcaEventPlace catas_error, limit_reached;
};

/* A transition that software commands, and what it brings. */
typedef struct HcaQpChange {
    HcaQpTransition transition;
    const HcaQpAttr *attr; /* NULL: nothing */
    uint32_t mask;         /* HCA_QP_ATTR_*, as software names them */
    bool lenient;          /* those that are not to be there are left out */
    bool sqd_event;        /* RTS2SQD: SQ_DRAINED is wanted */
} HcaQpChange;

/* How a WQE ended, for who posted it (interface document 3.3.1). */
typedef struct HcaCompletion {
    uint32_t qpn;
    uint32_t remote_qpn;
    uint32_t wqe; /* its place in its queue, bytes; of an SRQ, its tag */
    uint32_t byte_cnt;
    uint8_t syndrome; /* HcaSyndrome, 0: well */
    uint8_t vendor_err;
    bool is_send;
    bool xrc;       /* @remote_qpn is the SRQN */
    uint8_t opcode; /* HcaOpcode; of a receive, that of the packet */
    /* Of a receive: */
    bool solicited; /* fires a solicited-only arm; errors always do */
    uint32_t imm_be;
    uint32_t inv_rkey;   /* a key that it has invalidated */
    uint32_t flow_tag;   /* of the rule that a frame came by */
    bool has_pkey_index; /* QP 1: where the packet's P_Key is in the table */
    uint16_t pkey_index;
    HcaSource source;
} HcaCompletion;

/* What receive queues cost. */
typedef struct HcaRecvQueueCounters {
    uint64_t fetches, record_reads;
} HcaRecvQueueCounters;

typedef struct HcaCxtCounters {
    uint64_t qpc_lookups, cqc_lookups, eqc_lookups; /* by number */
    uint64_t cqes, error_cqes, cq_overruns;
    uint64_t eqes, eq_waits, interrupts;
    uint64_t cqes_lost; /* the queue took none */
    uint64_t cq_doorbells, cq_ci_reads, eq_doorbells;
    uint64_t cq_held, cq_periods; /* moderation: entries, ends of waiting */
    uint64_t eqe_types[64];       /* by HcaEventType */
    uint64_t events_unmapped;     /* no EQ asked for that type */
    uint64_t events_lost;         /* the EQ could not be written */
    uint64_t db_bad_uar, db_bad_cqn, db_bad_eqn;
    uint64_t db_bad_ci; /* beyond what has been written */
    uint64_t icm_writes, icm_write_errors;
    uint64_t transitions; /* MODIFY_QP done */
    uint64_t transitions_refused;
    HcaRecvQueueCounters srq;
    uint64_t srq_wqes, srq_empty; /* WQEs taken, and not found */
} HcaCxtCounters;

/* Contexts in hardware ownership now, and what the QPs have of the card's. */
typedef struct HcaCxtLive {
    uint32_t qps, cqs, eqs, srqs;
    uint32_t sq_slots;
} HcaCxtLive;

/*
 * Called after a QP's state has changed, by MODIFY_QP or hca_qp_set_state().
 * The engines then flush, drain or forget what they hold of it. After a
 * change to RST nothing of the QP may remain anywhere.
 */
typedef void HcaQpStateFn(void *opaque, HcaQp *qp, uint8_t old_state);

/* @format, @config, @v2p and @port outlive it. */
HcaCxtMgt *hca_cxtmgt_new(const HcaCxtFormat *format, const HcaConfig *config,
                          HcaV2p *v2p, HcaPort *port, const HcaHost *host,
                          HcaQpStateFn *state_fn, void *state_opaque);
void hca_cxtmgt_free(HcaCxtMgt *cm);
/* What goes wrong with event queues. */
void hca_cxtmgt_set_faults(HcaCxtMgt *cm, HcaHostFaults *faults);
/* All contexts gone, nothing mapped. Calls the state function for each QP. */
void hca_cxtmgt_reset(HcaCxtMgt *cm);

/* Where a table of contexts lies in ICM, and how many it has. */
typedef struct HcaCxtPlace {
    uint64_t base; /* card-virtual */
    unsigned log_num;
} HcaCxtPlace;

typedef struct HcaCxtPlaces {
    HcaCxtPlace qpc, cqc, eqc, srqc;
} HcaCxtPlaces;

/* The command unit's side (context document 3.1); each returns a status. */
uint8_t hca_cxtmgt_init(HcaCxtMgt *cm, const HcaCxtPlaces *places);
void hca_cxtmgt_close(HcaCxtMgt *cm);
uint8_t hca_cxtmgt_map_icm(HcaCxtMgt *cm, uint64_t virt, uint64_t page,
                           uint32_t npages);
uint8_t hca_cxtmgt_unmap_icm(HcaCxtMgt *cm, uint64_t virt, uint32_t npages);
/* The same where not all need be mapped. */
uint8_t hca_cxtmgt_clear_icm(HcaCxtMgt *cm, uint64_t virt, uint32_t npages);
/* MODIFY_QP (3.2.6.1). What is illegal changes nothing. */
uint8_t hca_cxtmgt_modify_qp(HcaCxtMgt *cm, uint32_t qpn,
                             const HcaQpChange *change);
/*
 * CONF_SPECIAL_QP: QP @qpn, which is in RST, takes the place of @special; 0:
 * none does. An InfiniBand port's alone.
 */
uint8_t hca_cxtmgt_set_special(HcaCxtMgt *cm, HcaSpecial special, uint32_t qpn);
/* Which QP it is, 0: none. */
uint32_t hca_cxtmgt_special(const HcaCxtMgt *cm, HcaSpecial special);
/* Queries give all of a context as the programming interface has it. */
uint8_t hca_cxtmgt_query_qp(HcaCxtMgt *cm, uint32_t qpn, void *cxt);
/* @attr NULL, here and for an EQ: what software says is no context. */
/* SET_QP_COUNTERS: the QP counts in another set. */
uint8_t hca_cxtmgt_set_qp_counters(HcaCxtMgt *cm, uint32_t qpn, uint64_t set);
uint8_t hca_cxtmgt_sw2hw_cq(HcaCxtMgt *cm, uint32_t cqn, const HcaCqAttr *attr);
uint8_t hca_cxtmgt_hw2sw_cq(HcaCxtMgt *cm, uint32_t cqn);
uint8_t hca_cxtmgt_query_cq(HcaCxtMgt *cm, uint32_t cqn, void *cxt);
uint8_t hca_cxtmgt_resize_cq(HcaCxtMgt *cm, uint32_t cqn, unsigned log_size,
                             uint32_t lkey);
uint8_t hca_cxtmgt_modify_cq(HcaCxtMgt *cm, uint32_t cqn, uint16_t count,
                             uint16_t period_us);
uint8_t hca_cxtmgt_sw2hw_eq(HcaCxtMgt *cm, uint32_t eqn, const HcaEqAttr *attr);
uint8_t hca_cxtmgt_hw2sw_eq(HcaCxtMgt *cm, uint32_t eqn);
/* Whether one of those in hardware has failed. From any thread. */
bool hca_cxtmgt_eq_has_failed(const HcaCxtMgt *cm);
uint8_t hca_cxtmgt_query_eq(HcaCxtMgt *cm, uint32_t eqn, void *cxt);
uint8_t hca_cxtmgt_map_eq(HcaCxtMgt *cm, uint32_t eqn, uint64_t mask,
                          bool unmap);
uint8_t hca_cxtmgt_sw2hw_srq(HcaCxtMgt *cm, uint32_t srqn,
                             const HcaSrqAttr *attr);
uint8_t hca_cxtmgt_hw2sw_srq(HcaCxtMgt *cm, uint32_t srqn);
uint8_t hca_cxtmgt_query_srq(HcaCxtMgt *cm, uint32_t srqn, void *cxt);
/* RESIZE_SRQ: go on in the queue of @len bytes at the start of region @lkey. */
uint8_t hca_cxtmgt_resize_srq(HcaCxtMgt *cm, uint32_t srqn, uint32_t len,
                              uint32_t lkey);
uint8_t hca_cxtmgt_arm_srq(HcaCxtMgt *cm, uint32_t srqn, uint64_t limit);

/*
 * The QP with this number in a state other than RST, or NULL. To fetch it is
 * counted; to see what it will need is not.
 */
HcaQp *hca_qp_find(HcaCxtMgt *cm, uint32_t qpn);
HcaQp *hca_qp_peek(const HcaCxtMgt *cm, uint32_t qpn);
/* The one behind @qp, by its number, NULL: the first; NULL: there is no more. */
HcaQp *hca_qp_next(const HcaCxtMgt *cm, const HcaQp *qp);
/* The same of other queues that software has given to the card; for looking. */
HcaCq *hca_cq_peek(const HcaCxtMgt *cm, uint32_t cqn);
HcaEq *hca_eq_peek(const HcaCxtMgt *cm, uint32_t eqn);
HcaSrq *hca_srq_peek(const HcaCxtMgt *cm, uint32_t srqn);
/*
 * Faults. A queue fails, with its event: it takes no more entries (@status), or
 * gives none. An SRQ's limit is told, armed or not. Of the event queues one fails
 * as if it could not be written, and another one tells; false: there is none.
 */
void hca_cq_break(HcaCxtMgt *cm, HcaCq *cq, HcaQueueStatus status);
void hca_srq_break(HcaCxtMgt *cm, HcaSrq *srq);
void hca_srq_tell_limit(HcaCxtMgt *cm, HcaSrq *srq);
bool hca_eq_break_one(HcaCxtMgt *cm);
/* Change the state as the engine does (to ERR or SQE). */
void hca_qp_set_state(HcaCxtMgt *cm, HcaQp *qp, uint8_t state);

/*
 * Write @completion, of @qp, to queue @cqn. A full or unwritable queue raises
 * CQ_ERROR once and loses the entry: false. Then the QP, which has been told
 * of by an event, has to go to ERR; the caller may have an answer to give first.
 */
bool hca_cq_post(HcaCxtMgt *cm, HcaV2pChannel channel, HcaQp *qp, uint32_t cqn,
                 const HcaCompletion *completion);
/*
 * An asynchronous event, to the EQ that asked for its type; until that has room
 * it waits at @place. What waits there already is the same event.
 */
void hca_eq_event(HcaCxtMgt *cm, const HcaEvent *event, HcaEventPlace *place);
/* The same of one that waits, as it was saved; false: another one does there. */
bool hca_eq_wait(HcaCxtMgt *cm, const HcaEvent *event, HcaEventPlace *place);
/* One of @qp's types. */
void hca_qp_event(HcaCxtMgt *cm, HcaQp *qp, uint8_t type);
/* The port has come up or gone down: HCA_PORT_CHANGE_*. */
void hca_port_change_event(HcaCxtMgt *cm, uint8_t subtype);
/* A manager has changed the port: HCA_CHANGED_*. */
void hca_port_mng_event(HcaCxtMgt *cm, uint32_t changes);

/*
 * Doorbells: all before @ci has been consumed, and software asks for an event
 * (HCA_CQ_DISARMED: for none), or for an interrupt. Of an EQ's index it tells
 * these low @bits.
 */
void hca_cq_doorbell(HcaCxtMgt *cm, uint32_t uar, uint32_t cqn, HcaCqArm how,
                     uint32_t ci);
void hca_eq_doorbell(HcaCxtMgt *cm, uint32_t eqn, uint32_t ci, uint32_t bits,
                     bool arms);
void hca_eq_arm_doorbell(HcaCxtMgt *cm, uint32_t eqn);

/*
 * Events of moderated CQs that have waited long enough. True: there are more
 * than a turn's share.
 */
bool hca_cxtmgt_run_timers(HcaCxtMgt *cm);
/* When it has to be called; INT64_MAX: not at all. */
int64_t hca_cxtmgt_deadline(const HcaCxtMgt *cm);

/* A set of counters for QPs; NULL: there is none with that number. */
HcaQpCounters *hca_qp_counter_set(HcaCxtMgt *cm, uint32_t set);
/* How many counters each set has, and the @i-th of one. */
unsigned hca_qp_counters_number(void);
const char *hca_qp_counter_name(unsigned i);
uint64_t hca_qp_counter_value(const HcaQpCounters *counters, unsigned i);

HcaCxtCounters *hca_cxt_counters(HcaCxtMgt *cm);
const HcaCxtLive *hca_cxt_live(const HcaCxtMgt *cm);
/* Pages mapped for contexts now. */
uint64_t hca_cxt_live_pages(const HcaCxtMgt *cm);
/* Events that wait for room in their EQ. */
unsigned hca_cxt_waiting_events(const HcaCxtMgt *cm);

/* state.c: what is saved, in this order; and of an event. */
extern const HcaSection hca_cxtmgt_section, hca_cxt_icm_section, hca_eq_section,
    hca_eq_on_bus_section, hca_cq_section, hca_cq_on_bus_section,
    hca_srq_section, hca_qp_section, hca_sq_place_section, hca_rq_place_section,
    hca_qp_counters_section, hca_event_section;
extern const HcaStruct hca_event_struct;

#endif /* HCA_CXTMGT_H */
