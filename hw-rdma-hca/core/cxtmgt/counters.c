/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The context manager: what it counts. */
#include "../counter_table.h"
#include "cxtmgt.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaCxtCounters, field, text)
#define EVENT(number, name, e)                                                 \
    COUNTER(number, "event_" name, eqe_types[HCA_EVENT_##e],                   \
            #e " events written")

HCA_GAUGE_FN(qps, HcaCxtMgt, hca_cxt_live(room)->qps)
HCA_GAUGE_FN(cqs, HcaCxtMgt, hca_cxt_live(room)->cqs)
HCA_GAUGE_FN(eqs, HcaCxtMgt, hca_cxt_live(room)->eqs)
HCA_GAUGE_FN(srqs, HcaCxtMgt, hca_cxt_live(room)->srqs)
HCA_GAUGE_FN(cxt_pages, HcaCxtMgt, hca_cxt_live_pages(room))
HCA_GAUGE_FN(waiting_events, HcaCxtMgt, hca_cxt_waiting_events(room))

static const void *counters(const void *room)
{
    return hca_cxt_counters((HcaCxtMgt *)room);
}

static const HcaCounterRow rows[] = {
    HCA_GAUGE(150, "qps", INSTANT, qps, "QPs not in RST"),
    HCA_GAUGE(151, "cqs", INSTANT, cqs, "CQs owned by the card"),
    HCA_GAUGE(152, "eqs", INSTANT, eqs, "EQs owned by the card"),
    HCA_GAUGE(153, "icm_pages", INSTANT, cxt_pages,
              "ICM pages mapped for contexts"),
    COUNTER(154, "qpc_lookups", qpc_lookups, "QP contexts fetched by number"),
    COUNTER(155, "cqc_lookups", cqc_lookups, "CQ contexts fetched by number"),
    COUNTER(156, "eqc_lookups", eqc_lookups, "EQ contexts fetched by number"),
    COUNTER(157, "icm_writes", icm_writes, "contexts written to ICM"),
    COUNTER(158, "icm_write_errors", icm_write_errors,
            "contexts that ICM did not take"),
    COUNTER(159, "transitions", transitions, "QP transitions commanded"),
    COUNTER(160, "transitions_refused", transitions_refused,
            "QP transitions refused"),
    COUNTER(161, "cqes", cqes, "CQEs written"),
    COUNTER(162, "error_cqes", error_cqes, "of them, in error"),
    COUNTER(163, "cq_overruns", cq_overruns, "CQs that overran"),
    COUNTER(164, "cqes_lost", cqes_lost, "CQEs that no CQ took"),
    COUNTER(165, "cq_doorbells", cq_doorbells, "CQ doorbells"),
    COUNTER(166, "cq_ci_reads", cq_ci_reads, "reads of a consumer index"),
    COUNTER(167, "db_bad_cqn", db_bad_cqn, "doorbells for no CQ"),
    COUNTER(168, "db_bad_uar", db_bad_uar,
            "CQ doorbells from another UAR page"),
    COUNTER(169, "db_bad_eqn", db_bad_eqn, "doorbells for no EQ"),
    COUNTER(170, "db_bad_ci", db_bad_ci, "doorbells with an impossible index"),
    COUNTER(171, "eqes", eqes, "EQEs written"),
    EVENT(172, "comp", COMP),
    EVENT(173, "comm_est", COMM_EST),
    EVENT(568, "path_mig", PATH_MIG),
    EVENT(569, "path_mig_failed", PATH_MIG_FAILED),
    EVENT(174, "sq_drained", SQ_DRAINED),
    EVENT(175, "cq_error", CQ_ERROR),
    EVENT(176, "wq_catas_error", WQ_CATAS_ERROR),
    EVENT(177, "port_change", PORT_CHANGE),
    EVENT(178, "cmd", CMD),
    EVENT(179, "wq_inval_req_error", WQ_INVAL_REQ_ERROR),
    EVENT(180, "wq_access_error", WQ_ACCESS_ERROR),
    COUNTER(181, "interrupts", interrupts, "interrupts sent"),
    COUNTER(182, "eq_doorbells", eq_doorbells, "EQ doorbells"),
    COUNTER(183, "eq_waits", eq_waits, "times that an event found its EQ full"),
    COUNTER(184, "events_unmapped", events_unmapped,
            "events that no EQ asked for"),
    COUNTER(185, "events_lost", events_lost, "events whose EQ had failed"),
    HCA_GAUGE(186, "events_waiting", INSTANT, waiting_events,
              "events that wait for room in their EQ"),
    EVENT(336, "congestion", CONGESTION),
    EVENT(339, "local_catas_error", LOCAL_CATAS_ERROR),
    EVENT(546, "eq_overflow", EQ_OVERFLOW),
    HCA_GAUGE(357, "srqs", INSTANT, srqs, "SRQs owned by the card"),
    COUNTER(358, "srq_fetches", srq.fetches, "fetches of WQEs of an SRQ"),
    COUNTER(359, "srq_record_reads", srq.record_reads,
            "reads of the posted count of an SRQ"),
    COUNTER(360, "srq_wqes", srq_wqes, "WQEs of SRQs taken"),
    COUNTER(361, "srq_empty", srq_empty, "WQEs asked of an SRQ that had none"),
    EVENT(362, "srq_catas_error", SRQ_CATAS_ERROR),
    EVENT(363, "last_wqe_reached", LAST_WQE_REACHED),
    EVENT(364, "srq_limit", SRQ_LIMIT),
    EVENT(419, "port_mng", PORT_MNG),
    COUNTER(367, "cqes_held", cq_held,
            "CQEs whose event waited for more of them"),
    COUNTER(368, "cq_periods", cq_periods, "waits that the period ended"),
};

const HcaCounterTable hca_cxtmgt_counter_table = {
    .unit = "cxtmgt",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
