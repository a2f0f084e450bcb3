/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of the context manager. Contexts are judged as the commands that
 * make them judge; nothing is written to ICM, which has been saved with the
 * machine's memory.
 */
#include "../qp_state.h"
#include "cxtmgt_int.h"
#include "recv_queue.h"

/* The unit */

static const HcaField table_fields[] = {
    HCA_SAVED(HcaCxtTable, base),
    HCA_SAVED(HcaCxtTable, log_num),
    HCA_DERIVED(HcaCxtTable, entry_size),
};
static const HcaStruct table_struct = HCA_STRUCT(HcaCxtTable, table_fields);

static const HcaField unit_fields[] = {
    HCA_DERIVED(HcaCxtMgt, format),
    HCA_DERIVED(HcaCxtMgt, config),
    HCA_DERIVED(HcaCxtMgt, v2p),
    HCA_DERIVED(HcaCxtMgt, port),
    HCA_DERIVED(HcaCxtMgt, faults),
    HCA_DERIVED(HcaCxtMgt, host),
    HCA_DERIVED(HcaCxtMgt, state_fn),
    HCA_DERIVED(HcaCxtMgt, state_opaque),
    HCA_ELSEWHERE(HcaCxtMgt, ctxmdata),
    HCA_SAVED(HcaCxtMgt, ready),
    HCA_SAVED_STRUCT(HcaCxtMgt, qpc, table_struct),
    HCA_SAVED_STRUCT(HcaCxtMgt, cqc, table_struct),
    HCA_SAVED_STRUCT(HcaCxtMgt, eqc, table_struct),
    HCA_SAVED_STRUCT(HcaCxtMgt, srqc, table_struct),
    HCA_ELSEWHERE(HcaCxtMgt, qps),
    HCA_ELSEWHERE(HcaCxtMgt, cqs),
    HCA_ELSEWHERE(HcaCxtMgt, eqs),
    HCA_DERIVED(HcaCxtMgt, failed_eqs),
    HCA_ELSEWHERE(HcaCxtMgt, srqs),
    HCA_ELSEWHERE(HcaCxtMgt, qp_counters),
    HCA_SAVED_ARRAY(HcaCxtMgt, special, special[0]),
    HCA_SAVED(HcaCxtMgt, srq_lives),
    HCA_DERIVED(HcaCxtMgt, cq_timers),
    HCA_SAVED_ARRAY(HcaCxtMgt, event_eq, event_eq[0]),
    HCA_ELSEWHERE(HcaCxtMgt, waiting),
    HCA_ELSEWHERE(HcaCxtMgt, port_events),
    HCA_COUNTED(HcaCxtMgt, counters),
    HCA_DERIVED(HcaCxtMgt, live),
};
static const HcaStruct unit_struct = HCA_STRUCT(HcaCxtMgt, unit_fields);

/* Of tables that there are not any more nothing is left. */
static void save_unit(void *room, GArray *records)
{
    const HcaCxtMgt *cm = room;
    HcaCxtMgt *to;

    g_array_append_vals(records, cm, 1);
    to = &g_array_index(records, HcaCxtMgt, 0);
    if (!cm->ready) {
        to->qpc = to->cqc = to->eqc = to->srqc = (HcaCxtTable) { 0 };
    }
}

static HcaCxtPlace place_of(const HcaCxtTable *table)
{
    return (HcaCxtPlace) { table->base, table->log_num };
}

static bool specials_ok(const HcaCxtMgt *cm, const HcaCxtMgt *from)
{
    bool ok = true;
    uint32_t index;

    for (unsigned i = 0; i < HCA_NSPECIALS; i++) {
        ok &= from->special[i] != 1 &&
              (!from->special[i] ||
               hca_index_of(cm, &cm->qpc, from->special[i], &index));
    }
    return ok &&
           (!from->special[HCA_SPECIAL_SMI] ||
            from->special[HCA_SPECIAL_SMI] != from->special[HCA_SPECIAL_GSI]);
}

static bool load_unit(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaCxtMgt *cm = room;
    const HcaCxtMgt *from = records;
    HcaCxtPlaces places;

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    cm->srq_lives = from->srq_lives;
    if (!from->ready) {
        return true;
    }
    places = (HcaCxtPlaces) { place_of(&from->qpc), place_of(&from->cqc),
                              place_of(&from->eqc), place_of(&from->srqc) };
    if (hca_cxtmgt_init(cm, &places) != HCA_STAT_OK) {
        return hca_state_refuse(error, "no such tables");
    }
    if (!specials_ok(cm, from)) {
        return hca_state_refuse(error, "no such special QPs");
    }
    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        uint8_t eqn = from->event_eq[type];

        if (eqn != HCA_NO_EQ && !hca_index_ok(cm, &cm->eqc, eqn)) {
            return hca_state_refuse(error, "events to EQ %u", eqn);
        }
    }
    memcpy(cm->special, from->special, sizeof(cm->special));
    memcpy(cm->event_eq, from->event_eq, sizeof(cm->event_eq));
    return true;
}

const HcaSection hca_cxtmgt_section = HCA_SECTION("cxtmgt", 1, &unit_struct,
                                                  save_unit, load_unit);

static void save_icm(void *room, GArray *records)
{
    hca_mdata_save(((HcaCxtMgt *)room)->ctxmdata, records);
}

static bool load_icm(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    return hca_mdata_load(((HcaCxtMgt *)room)->ctxmdata, records, n, error);
}

const HcaSection hca_cxt_icm_section = HCA_SECTION(
    "cxt-icm", 1, &hca_mdata_run_struct, save_icm, load_icm);

/* Event queues */

static void save_eqs(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (unsigned eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (cm->eqs[eqn]) {
            g_array_append_vals(records, cm->eqs[eqn], 1);
        }
    }
}

static bool load_eqs(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    const HcaEq *from = records;

    for (; n; n--, from++) {
        if (!hca_eq_add(room, from)) {
            return hca_state_refuse(error, "EQ %u cannot be", from->eqn);
        }
    }
    return true;
}

const HcaSection hca_eq_section = HCA_SECTION("eq", 1, &hca_eq_struct, save_eqs,
                                              load_eqs);

/* Those of them that lie at bus addresses */

typedef struct OnBus {
    uint32_t eqn;
} OnBus;

static const HcaField on_bus_fields[] = { HCA_SAVED(OnBus, eqn) };
static const HcaStruct on_bus_struct = HCA_STRUCT(OnBus, on_bus_fields);

static void save_on_bus(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (unsigned eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        OnBus record = { eqn };

        if (cm->eqs[eqn] && cm->eqs[eqn]->attr.on_bus) {
            g_array_append_val(records, record);
        }
    }
}

static bool load_on_bus(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    HcaCxtMgt *cm = room;
    const OnBus *from = records;

    for (; n; n--, from++) {
        if (from->eqn >= RDMA_HCA_MAX_EQS || !cm->eqs[from->eqn]) {
            return hca_state_refuse(error, "no EQ %u on the bus", from->eqn);
        }
        cm->eqs[from->eqn]->attr.on_bus = true;
    }
    return true;
}

const HcaSection hca_eq_on_bus_section = HCA_SECTION(
    "eq-on-bus", 1, &on_bus_struct, save_on_bus, load_on_bus);

/* Completion queues */

static void save_cqs(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (uint32_t cqn = 0; cqn < 1u << cm->config->log_cqs; cqn++) {
        if (cm->cqs[cqn]) {
            g_array_append_vals(records, cm->cqs[cqn], 1);
            hca_heap_save(
                &g_array_index(records, HcaCq, records->len - 1).timer);
        }
    }
}

static bool load_cqs(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    const HcaCq *from = records;

    for (; n; n--, from++) {
        if (!hca_cq_add(room, from)) {
            return hca_state_refuse(error, "CQ %u cannot be", from->cqn);
        }
    }
    return true;
}

const HcaSection hca_cq_section = HCA_SECTION("cq", 1, &hca_cq_struct, save_cqs,
                                              load_cqs);

/* Those of them that lie at bus addresses */

typedef struct CqOnBus {
    uint32_t cqn;
} CqOnBus;

static const HcaField cq_on_bus_fields[] = { HCA_SAVED(CqOnBus, cqn) };
static const HcaStruct cq_on_bus_struct = HCA_STRUCT(CqOnBus, cq_on_bus_fields);

static void save_cqs_on_bus(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (uint32_t i = 0; i < 1u << cm->config->log_cqs; i++) {
        if (cm->cqs[i] && cm->cqs[i]->attr.on_bus) {
            CqOnBus record = { cm->cqs[i]->cqn };

            g_array_append_val(records, record);
        }
    }
}

static bool load_cqs_on_bus(void *room, const void *records, uint32_t n,
                            HcaStateError *error)
{
    const CqOnBus *from = records;

    for (; n; n--, from++) {
        HcaCq *cq = hca_cq_peek(room, from->cqn);

        if (!cq) {
            return hca_state_refuse(error, "no CQ %u on the bus", from->cqn);
        }
        cq->attr.on_bus = true;
    }
    return true;
}

const HcaSection hca_cq_on_bus_section = HCA_SECTION(
    "cq-on-bus", 1, &cq_on_bus_struct, save_cqs_on_bus, load_cqs_on_bus);

/* Shared receive queues */

static void save_srqs(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (uint32_t srqn = 0; srqn < 1u << cm->config->log_srqs; srqn++) {
        if (cm->srqs[srqn]) {
            g_array_append_vals(records, cm->srqs[srqn], 1);
        }
    }
}

static bool load_srqs(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    const HcaSrq *from = records;

    for (; n; n--, from++) {
        if (!hca_srq_add(room, from)) {
            return hca_state_refuse(error, "SRQ %u cannot be", from->srqn);
        }
    }
    return true;
}

const HcaSection hca_srq_section = HCA_SECTION("srq", 1, &hca_srq_struct,
                                               save_srqs, load_srqs);

/* Queue pairs: what they have beside their attributes is the engines'. */

static void save_qps(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (HcaQp *qp = hca_qp_next(cm, NULL); qp; qp = hca_qp_next(cm, qp)) {
        g_array_append_vals(records, qp, 1);
    }
}

static bool load_qps(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    const HcaQp *from = records;

    for (; n; n--, from++) {
        if (!hca_qp_add(room, from)) {
            return hca_state_refuse(error, "QP %u cannot be", from->qpn);
        }
    }
    return true;
}

const HcaSection hca_qp_section = HCA_SECTION("qp", 1, &hca_qp_struct, save_qps,
                                              load_qps);

/* Where send queues are, and what they say of all their WQEs, if it is not 0 */

typedef struct SqPlace {
    uint32_t qpn;
    uint32_t offset;
    bool signals_all;
} SqPlace;

static const HcaField sq_place_fields[] = {
    HCA_SAVED(SqPlace, qpn),
    HCA_SAVED(SqPlace, offset),
    HCA_SAVED(SqPlace, signals_all),
};
static const HcaStruct sq_place_struct = HCA_STRUCT(SqPlace, sq_place_fields);

static void save_sq_places(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (HcaQp *qp = hca_qp_next(cm, NULL); qp; qp = hca_qp_next(cm, qp)) {
        SqPlace place = { qp->qpn, qp->attr.sq_offset, qp->attr.signals_all };

        if (place.offset || place.signals_all) {
            g_array_append_val(records, place);
        }
    }
}

static bool load_sq_places(void *room, const void *records, uint32_t n,
                           HcaStateError *error)
{
    const SqPlace *from = records;

    for (; n; n--, from++) {
        HcaQp *qp = hca_qp_peek(room, from->qpn);

        if (!qp || from->offset > UINT32_MAX - qp->attr.sq_len) {
            return hca_state_refuse(error, "QP %u", from->qpn);
        }
        qp->attr.sq_offset = from->offset;
        qp->attr.signals_all = from->signals_all;
    }
    return true;
}

const HcaSection hca_sq_place_section = HCA_SECTION(
    "sq-place", 1, &sq_place_struct, save_sq_places, load_sq_places);

/* And where receive queues are, and in which 4 GiB both; the same */

typedef struct RqPlace {
    uint32_t qpn;
    uint64_t base;
    uint32_t offset;
} RqPlace;

static const HcaField rq_place_fields[] = {
    HCA_SAVED(RqPlace, qpn),
    HCA_SAVED(RqPlace, base),
    HCA_SAVED(RqPlace, offset),
};
static const HcaStruct rq_place_struct = HCA_STRUCT(RqPlace, rq_place_fields);

static void save_rq_places(void *room, GArray *records)
{
    HcaCxtMgt *cm = room;

    for (HcaQp *qp = hca_qp_next(cm, NULL); qp; qp = hca_qp_next(cm, qp)) {
        RqPlace place = {
            .qpn = qp->qpn,
            .base = qp->attr.wq_base,
            .offset = qp->attr.rq_offset,
        };

        if (place.base || place.offset) {
            g_array_append_val(records, place);
        }
    }
}

static bool load_rq_places(void *room, const void *records, uint32_t n,
                           HcaStateError *error)
{
    const RqPlace *from = records;

    for (; n; n--, from++) {
        HcaQp *qp = hca_qp_peek(room, from->qpn);

        if (!qp || from->offset > UINT32_MAX - qp->attr.rq_len ||
            (uint32_t)from->base) {
            return hca_state_refuse(error, "QP %u", from->qpn);
        }
        qp->attr.wq_base = from->base;
        qp->attr.rq_offset = from->offset;
        qp->rq.base = from->base + from->offset;
    }
    return true;
}

const HcaSection hca_rq_place_section = HCA_SECTION(
    "rq-place", 1, &rq_place_struct, save_rq_places, load_rq_places);

/* Counters of QPs */

typedef struct Set {
    uint32_t number;
    HcaQpCounters counters;
} Set;

static const HcaField counters_fields[] = {
    HCA_SAVED(HcaQpCounters, tx_packets),
    HCA_SAVED(HcaQpCounters, tx_bytes),
    HCA_SAVED(HcaQpCounters, rx_packets),
    HCA_SAVED(HcaQpCounters, rx_bytes),
    HCA_SAVED(HcaQpCounters, write_requests),
    HCA_SAVED(HcaQpCounters, read_requests),
    HCA_SAVED(HcaQpCounters, atomic_requests),
    HCA_SAVED(HcaQpCounters, out_of_buffer),
    HCA_SAVED(HcaQpCounters, out_of_sequence),
    HCA_SAVED(HcaQpCounters, duplicates),
    HCA_SAVED(HcaQpCounters, rnrs_rx),
    HCA_SAVED(HcaQpCounters, psn_naks_rx),
    HCA_SAVED(HcaQpCounters, timeouts),
    HCA_SAVED(HcaQpCounters, retransmissions),
    HCA_SAVED(HcaQpCounters, sends_failed),
    HCA_SAVED(HcaQpCounters, sends_flushed),
    HCA_SAVED(HcaQpCounters, receives_failed),
    HCA_SAVED(HcaQpCounters, receives_flushed),
};
static const HcaStruct counters_struct = HCA_STRUCT(HcaQpCounters,
                                                    counters_fields);

static const HcaField set_fields[] = {
    HCA_SAVED(Set, number),
    HCA_SAVED_STRUCT(Set, counters, counters_struct),
};
static const HcaStruct set_struct = HCA_STRUCT(Set, set_fields);

static void save_sets(void *room, GArray *records)
{
    static const HcaQpCounters zeros;
    const HcaCxtMgt *cm = room;

    for (uint32_t i = 0; hca_qp_counter_set_ok(i); i++) {
        Set set = { i, cm->qp_counters[i] };

        if (memcmp(&set.counters, &zeros, sizeof(zeros))) {
            g_array_append_val(records, set);
        }
    }
}

static bool load_sets(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaCxtMgt *cm = room;
    const Set *set = records;

    for (; n; n--, set++) {
        if (!hca_qp_counter_set_ok(set->number)) {
            return hca_state_refuse(error, "counters of set %u", set->number);
        }
        cm->qp_counters[set->number] = set->counters;
    }
    return true;
}

const HcaSection hca_qp_counters_section = HCA_SECTION(
    "qp-counters", 1, &set_struct, save_sets, load_sets);

/*
 * Events that wait, in their order. Whose each is it says itself; that of the
 * last command is the command unit's.
 */

static const HcaField event_fields[] = {
    HCA_SAVED(HcaEvent, type),     HCA_SAVED(HcaEvent, subtype),
    HCA_SAVED(HcaEvent, status),   HCA_SAVED(HcaEvent, number),
    HCA_SAVED(HcaEvent, syndrome), HCA_SAVED(HcaEvent, out_param),
};
const HcaStruct hca_event_struct = HCA_STRUCT(HcaEvent, event_fields);

static const HcaField place_fields[] = {
    HCA_ELSEWHERE(HcaEventPlace, event),
    HCA_DERIVED(HcaEventPlace, list),
    HCA_DERIVED(HcaEventPlace, link),
};
static const HcaStruct place_struct = HCA_STRUCT(HcaEventPlace, place_fields);

static const HcaField of_port_fields[] = {
    HCA_ELSEWHERE(HcaPortEvents, change),
    HCA_ELSEWHERE(HcaPortEvents, mng),
};
static const HcaStruct of_port_struct = HCA_STRUCT(HcaPortEvents,
                                                   of_port_fields);

static void save_list(GArray *records, const GQueue *list)
{
    for (const GList *l = list->head; l; l = l->next) {
        g_array_append_vals(records, &((HcaEventPlace *)l->data)->event, 1);
    }
}

static void save_events(void *room, GArray *records)
{
    const HcaCxtMgt *cm = room;

    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        if (type != HCA_EVENT_CMD) {
            save_list(records, &cm->waiting[type]);
        }
    }
    for (unsigned eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (cm->eqs[eqn]) {
            save_list(records, &cm->eqs[eqn]->completions);
        }
    }
}

/* NULL: there is no such source. */
static HcaEventPlace *source_of(HcaCxtMgt *cm, const HcaEvent *event)
{
    HcaPortEvents *port = &cm->port_events;
    HcaSrq *srq;
    HcaCq *cq;
    HcaEq *eq;
    HcaQp *qp;

    switch (event->type) {
    case HCA_EVENT_PORT_CHANGE:
        return &port->change[hca_event_waits(&port->change[0])];
    case HCA_EVENT_PORT_MNG:
        return &port->mng;
    case HCA_EVENT_CQ_ERROR:
        cq = hca_cq_peek(cm, event->number);
        return cq ? &cq->error : NULL;
    case HCA_EVENT_EQ_OVERFLOW:
    case HCA_EVENT_LOCAL_CATAS_ERROR:
        eq = hca_eq_peek(cm, event->number);
        return eq ? &eq->failure : NULL;
    case HCA_EVENT_SRQ_CATAS_ERROR:
    case HCA_EVENT_SRQ_LIMIT:
        srq = hca_srq_peek(cm, event->number);
        if (!srq) {
            return NULL;
        }
        return event->type == HCA_EVENT_SRQ_LIMIT ? &srq->limit_reached
                                                  : &srq->catas_error;
    default:
        qp = hca_qp_peek(cm, event->number);
        return qp ? hca_qp_event_place(qp, event->type) : NULL;
    }
}

static bool load_event(HcaCxtMgt *cm, const HcaEvent *event)
{
    HcaEventPlace *place;
    HcaCq *cq;

    if (event->type == HCA_EVENT_COMP) {
        cq = hca_cq_peek(cm, event->number);
        return cq && hca_eq_wait_completion(cm->eqs[cq->attr.eqn], cq->cqn,
                                            &cq->completion);
    }
    place = source_of(cm, event);
    return place && hca_eq_wait(cm, event, place);
}

static bool load_events(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    const HcaEvent *event = records;

    for (; n; n--, event++) {
        if (!load_event(room, event)) {
            return hca_state_refuse(error, "an event 0x%x of %u", event->type,
                                    event->number);
        }
    }
    return true;
}

const HcaSection hca_event_section = HCA_SECTION(
    "event", 1, &hca_event_struct, save_events, load_events, &place_struct,
    &of_port_struct);
