/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of EQs, CQs and SRQs in a state. QPs: ../qp_state.c. */
#include "../qp_state.h"
#include "cxtmgt_int.h"

/* Event queues */

static const HcaField eq_attr_fields[] = {
    HCA_SAVED(HcaEqAttr, pd),     HCA_SAVED(HcaEqAttr, lkey),
    HCA_SAVED(HcaEqAttr, start),  HCA_SAVED(HcaEqAttr, log_size),
    HCA_SAVED(HcaEqAttr, vector), HCA_SAVED(HcaEqAttr, arm),
    HCA_SAVED(HcaEqAttr, index),  HCA_ELSEWHERE(HcaEqAttr, on_bus),
};
static const HcaStruct eq_attr_struct = HCA_STRUCT(HcaEqAttr, eq_attr_fields);

static const HcaField eq_fields[] = {
    HCA_SAVED(HcaEq, eqn),
    HCA_SAVED_STRUCT(HcaEq, attr, eq_attr_struct),
    HCA_SAVED(HcaEq, status),
    HCA_SAVED(HcaEq, arm),
    HCA_SAVED(HcaEq, producer_index),
    HCA_SAVED(HcaEq, consumer_index),
    HCA_DERIVED(HcaEq, cqs),
    HCA_ELSEWHERE(HcaEq, completions),
    HCA_ELSEWHERE(HcaEq, failure),
};
const HcaStruct hca_eq_struct = HCA_STRUCT(HcaEq, eq_fields);

/* Completion queues */

static const HcaField cq_attr_fields[] = {
    HCA_SAVED(HcaCqAttr, uar),
    HCA_SAVED(HcaCqAttr, eqn),
    HCA_SAVED(HcaCqAttr, pd),
    HCA_SAVED(HcaCqAttr, lkey),
    HCA_SAVED(HcaCqAttr, start),
    HCA_SAVED(HcaCqAttr, log_size),
    HCA_SAVED(HcaCqAttr, arm),
    HCA_SAVED(HcaCqAttr, ci_db),
    HCA_SAVED(HcaCqAttr, ignore_overrun),
    HCA_ELSEWHERE(HcaCqAttr, on_bus),
};
static const HcaStruct cq_attr_struct = HCA_STRUCT(HcaCqAttr, cq_attr_fields);

static const HcaField cq_fields[] = {
    HCA_SAVED(HcaCq, cqn),
    HCA_SAVED_STRUCT(HcaCq, attr, cq_attr_struct),
    HCA_SAVED(HcaCq, status),
    HCA_SAVED(HcaCq, arm),
    HCA_SAVED(HcaCq, producer_index),
    HCA_SAVED(HcaCq, consumer_index),
    HCA_SAVED(HcaCq, solicit_producer_index),
    HCA_SAVED(HcaCq, last_notified_index),
    HCA_SAVED(HcaCq, event_count),
    HCA_SAVED(HcaCq, event_period_us),
    HCA_DERIVED(HcaCq, queues),
    HCA_SAVED_STRUCT(HcaCq, timer, hca_timer_struct),
    HCA_ELSEWHERE(HcaCq, completion),
    HCA_ELSEWHERE(HcaCq, error),
};
const HcaStruct hca_cq_struct = HCA_STRUCT(HcaCq, cq_fields);

/* Shared receive queues */

static const HcaField srq_attr_fields[] = {
    HCA_SAVED(HcaSrqAttr, pd),     HCA_SAVED(HcaSrqAttr, lkey),
    HCA_SAVED(HcaSrqAttr, len),    HCA_SAVED(HcaSrqAttr, entry_log),
    HCA_SAVED(HcaSrqAttr, record), HCA_SAVED(HcaSrqAttr, xrc),
    HCA_SAVED(HcaSrqAttr, cqn),    HCA_SAVED(HcaSrqAttr, xrcd),
};
static const HcaStruct srq_attr_struct = HCA_STRUCT(HcaSrqAttr,
                                                    srq_attr_fields);

static const HcaField srq_fields[] = {
    HCA_SAVED(HcaSrq, srqn),
    HCA_SAVED_STRUCT(HcaSrq, attr, srq_attr_struct),
    HCA_SAVED(HcaSrq, failed),
    HCA_SAVED(HcaSrq, limit),
    HCA_SAVED_STRUCT(HcaSrq, rq, hca_recv_queue_struct),
    HCA_SAVED(HcaSrq, life),
    HCA_DERIVED(HcaSrq, qps),
    HCA_ELSEWHERE(HcaSrq, catas_error),
    HCA_ELSEWHERE(HcaSrq, limit_reached),
};
const HcaStruct hca_srq_struct = HCA_STRUCT(HcaSrq, srq_fields);
