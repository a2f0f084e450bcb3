/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues (interface document 3.2.4; context document 4.2.3).
 *
 * No event is lost because its queue is full: it waits where it happened, at a
 * place of its source's, and is written when software has made room. An event
 * that happens again while it waits is the same event. Completion events go to
 * the EQ of their CQ; others to the EQ that asked for their type. There is a
 * list for each type, so that a doorbell finds what waits for its queue and
 * stops when that is full.
 */
#include <string.h>

#include "../fault/host_faults.h"
#include "cxtmgt_int.h"

static uint32_t eq_size(const HcaEq *eq)
{
    return 1u << eq->attr.log_size;
}

HcaEq *hca_eq_peek(const HcaCxtMgt *cm, uint32_t eqn)
{
    return hca_index_ok(cm, &cm->eqc, eqn) ? cm->eqs[eqn] : NULL;
}

HcaEq *hca_eq_find(HcaCxtMgt *cm, uint32_t eqn)
{
    cm->counters.eqc_lookups++;
    return hca_eq_peek(cm, eqn);
}

/* Contexts */

static uint64_t event_mask(const HcaCxtMgt *cm, uint32_t eqn)
{
    uint64_t mask = 0;

    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        if (cm->event_eq[type] == eqn) {
            mask |= 1ull << type;
        }
    }
    return mask;
}

/* Write the context of @eqn; @eq NULL: not in use. */
static bool write_eqc(HcaCxtMgt *cm, uint32_t eqn, const HcaEq *eq)
{
    uint8_t cxt[HCA_MAX_CXT_SIZE];

    cm->format->put_eq(eq, event_mask(cm, eqn), cxt);
    return hca_cxt_write(cm, &cm->eqc, eqn, cxt);
}

static bool vector_ok(const HcaCxtMgt *cm, uint16_t vector)
{
    return vector < cm->config->num_vectors ||
           (vector == HCA_VECTOR_PIN && cm->format->has_pin);
}

static bool check(const HcaCxtMgt *cm, const HcaEqAttr *attr)
{
    return attr->start % cm->format->eqe_size == 0 &&
           attr->log_size <= HCA_MAX_LOG_EQ_SIZE &&
           vector_ok(cm, attr->vector) &&
           attr->pd < 1ull << cm->config->log_pds;
}

static void add_eq(HcaCxtMgt *cm, const HcaEq *from)
{
    HcaEq *eq = g_memdup2(from, sizeof(*from));

    g_queue_init(&eq->completions);
    cm->eqs[eq->eqn] = eq;
    cm->live.eqs++;
    g_atomic_int_add(&cm->failed_eqs, eq->status != HCA_QUEUE_OK);
}

uint8_t hca_cxtmgt_sw2hw_eq(HcaCxtMgt *cm, uint32_t eqn, const HcaEqAttr *attr)
{
    HcaEq eq = { .eqn = eqn };

    if (!hca_index_ok(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (cm->eqs[eqn]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (!attr || !check(cm, attr)) {
        return HCA_STAT_BAD_PARAM;
    }
    eq.attr = *attr;
    eq.arm = attr->arm;
    eq.producer_index = attr->index;
    eq.consumer_index = attr->index;
    if (!write_eqc(cm, eqn, &eq)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    add_eq(cm, &eq);
    return HCA_STAT_OK;
}

bool hca_eq_add(HcaCxtMgt *cm, const HcaEq *from)
{
    HcaEq eq = { 0 };

    hca_struct_take(&hca_eq_struct, &eq, from);
    if (!hca_index_ok(cm, &cm->eqc, eq.eqn) || cm->eqs[eq.eqn] ||
        !check(cm, &eq.attr) || eq.status > HCA_QUEUE_WRITE_FAIL ||
        eq.arm > HCA_EQ_ALWAYS_ARMED ||
        eq.producer_index - eq.consumer_index > eq_size(&eq)) {
        return false;
    }
    add_eq(cm, &eq);
    return true;
}

static void unmap_events(HcaCxtMgt *cm, uint32_t eqn, uint64_t mask)
{
    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        if (mask >> type & 1 && cm->event_eq[type] == eqn) {
            cm->event_eq[type] = HCA_NO_EQ;
        }
    }
}

static void free_eq(HcaCxtMgt *cm, HcaEq *eq)
{
    unmap_events(cm, eq->eqn, UINT64_MAX);
    hca_eq_forget(&eq->failure);
    cm->eqs[eq->eqn] = NULL;
    cm->live.eqs--;
    g_atomic_int_add(&cm->failed_eqs, -(eq->status != HCA_QUEUE_OK));
    g_free(eq);
}

void hca_eq_init(HcaCxtMgt *cm)
{
    memset(cm->event_eq, HCA_NO_EQ, sizeof(cm->event_eq));
    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        g_queue_init(&cm->waiting[type]);
    }
}

/* All CQs are gone, and their completion events with them. */
void hca_eq_free_all(HcaCxtMgt *cm)
{
    for (uint32_t eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (cm->eqs[eqn]) {
            free_eq(cm, cm->eqs[eqn]);
        }
    }
    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        while (cm->waiting[type].head) {
            hca_eq_forget(cm->waiting[type].head->data);
        }
    }
    memset(cm->event_eq, HCA_NO_EQ, sizeof(cm->event_eq));
}

static uint8_t find(HcaCxtMgt *cm, uint32_t eqn, HcaEq **eq)
{
    if (!hca_index_ok(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    *eq = cm->eqs[eqn];
    return *eq ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE;
}

bool hca_cxtmgt_eq_has_failed(const HcaCxtMgt *cm)
{
    return g_atomic_int_get(&cm->failed_eqs) != 0;
}

uint8_t hca_cxtmgt_query_eq(HcaCxtMgt *cm, uint32_t eqn, void *cxt)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (!status) {
        cm->format->put_eq(eq, event_mask(cm, eqn), cxt);
    }
    return status;
}

/* Entries */

typedef enum HcaEqPost {
    HCA_EQ_DONE,
    HCA_EQ_FULL,
} HcaEqPost;

static bool eq_is_full(const HcaEq *eq)
{
    return eq->producer_index - eq->consumer_index >= eq_size(eq);
}

static void interrupt(HcaCxtMgt *cm, HcaEq *eq)
{
    if (eq->arm == HCA_EQ_FIRED) {
        return;
    }
    if (eq->arm == HCA_EQ_ARMED) {
        eq->arm = HCA_EQ_FIRED;
    }
    cm->counters.interrupts++;
    hca_v2p_interrupt(cm->v2p, eq->attr.vector);
}

static uint64_t next_addr(const HcaCxtMgt *cm, const HcaEq *eq)
{
    uint32_t slot = eq->producer_index & (eq_size(eq) - 1);

    return eq->attr.start + (uint64_t)slot * cm->format->eqe_size;
}

static HcaMatchInfo eqe_info(const HcaCxtMgt *cm, const HcaEq *eq)
{
    return (HcaMatchInfo) {
        .flags = HCA_ACCESS_LOCAL_WRITE | hca_queue_addr_flag(eq->attr.on_bus),
        .pd = eq->attr.pd,
        .key = eq->attr.lkey,
        .len = cm->format->eqe_size,
        .va = next_addr(cm, eq),
    };
}

bool hca_eq_is_here(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t eqn,
                    HcaV2pAsk *ask, unsigned *nth)
{
    const HcaEq *eq = cm->eqs[eqn];
    HcaMatchInfo info = eqe_info(cm, eq);

    return eq->status != HCA_QUEUE_OK ||
           hca_v2p_ask(cm->v2p, ask, (*nth)++, channel, HCA_V2P_STORE, &info);
}

static bool write_eqe(HcaCxtMgt *cm, const HcaEq *eq, const HcaEvent *event)
{
    uint8_t entry[HCA_MAX_ENTRY_SIZE];
    HcaMatchInfo info = eqe_info(cm, eq);

    cm->format->put_eqe(event, entry);
    return hca_v2p_write_entry(cm->v2p, HCA_V2P_EE, &info, entry) ==
           HCA_V2P_SUCCESS;
}

/* @eq has failed: its events are lost. Another EQ may tell. */
static void fail(HcaCxtMgt *cm, HcaEq *eq, HcaQueueStatus status)
{
    HcaEvent event = {
        .type = status == HCA_QUEUE_OVERFLOW ? HCA_EVENT_EQ_OVERFLOW
                                             : HCA_EVENT_LOCAL_CATAS_ERROR,
        .number = eq->eqn,
    };

    g_atomic_int_inc(&cm->failed_eqs); /* it was HCA_QUEUE_OK */
    eq->status = status;
    write_eqc(cm, eq->eqn, eq);
    cm->counters.events_lost++;
    hca_host_broke(&cm->host);
    if (cm->event_eq[event.type] != eq->eqn) {
        hca_eq_event(cm, &event, &eq->failure);
    }
}

bool hca_eq_break_one(HcaCxtMgt *cm)
{
    uint8_t teller = cm->event_eq[HCA_EVENT_LOCAL_CATAS_ERROR];

    for (unsigned eqn = 0; teller != HCA_NO_EQ && eqn < RDMA_HCA_MAX_EQS;
         eqn++) {
        HcaEq *eq = cm->eqs[eqn];

        if (eq && eqn != teller && eq->status == HCA_QUEUE_OK) {
            fail(cm, eq, HCA_QUEUE_WRITE_FAIL);
            return true;
        }
    }
    return false;
}

/*
 * No EQ does so by itself; but a plan of faults may have it. Asked once for each
 * event, when there is room for it.
 */
static bool overflows(HcaCxtMgt *cm, const HcaEq *eq)
{
    const HcaFaultSubject subject = {
        .place = HCA_FAULT_EVENT,
        .actions = UINT16_MAX,
        .number = eq->eqn,
    };

    return hca_host_fault(cm->faults, &subject);
}

/* @eq NULL: nobody has asked for it. */
static HcaEqPost post_to(HcaCxtMgt *cm, HcaEq *eq, const HcaEvent *event)
{
    if (!eq) {
        cm->counters.events_unmapped++;
        return HCA_EQ_DONE;
    }
    if (eq->status != HCA_QUEUE_OK) {
        cm->counters.events_lost++;
        return HCA_EQ_DONE;
    }
    if (eq_is_full(eq)) {
        cm->counters.eq_waits++;
        return HCA_EQ_FULL;
    }
    if (overflows(cm, eq)) {
        fail(cm, eq, HCA_QUEUE_OVERFLOW);
        return HCA_EQ_DONE;
    }
    if (!write_eqe(cm, eq, event)) {
        fail(cm, eq, HCA_QUEUE_WRITE_FAIL);
        return HCA_EQ_DONE;
    }
    eq->producer_index++;
    cm->counters.eqes++;
    cm->counters.eqe_types[event->type]++;
    hca_cxt_trace(cm, HCA_TRACE_EQE, eq->eqn, event->type, event->number, 0);
    interrupt(cm, eq);
    return HCA_EQ_DONE;
}

/* The EQ that asked for events of this type, or NULL. */
static HcaEq *eq_of(const HcaCxtMgt *cm, uint8_t type)
{
    uint8_t eqn = type < HCA_EVENT_TYPES ? cm->event_eq[type] : HCA_NO_EQ;

    return eqn == HCA_NO_EQ ? NULL : cm->eqs[eqn];
}

/* Events that wait */

static HcaEvent completion_event(uint32_t cqn)
{
    return (HcaEvent) { .type = HCA_EVENT_COMP, .number = cqn };
}

static void wait(GQueue *list, const HcaEvent *event, HcaEventPlace *place)
{
    place->event = *event;
    place->list = list;
    place->link.data = place;
    g_queue_push_tail_link(list, &place->link);
}

bool hca_eq_wait(HcaCxtMgt *cm, const HcaEvent *event, HcaEventPlace *place)
{
    if (hca_event_waits(place)) {
        return false;
    }
    wait(&cm->waiting[event->type], event, place);
    return true;
}

bool hca_eq_wait_completion(HcaEq *eq, uint32_t cqn, HcaEventPlace *place)
{
    HcaEvent event = completion_event(cqn);

    if (hca_event_waits(place)) {
        return false;
    }
    wait(&eq->completions, &event, place);
    return true;
}

void hca_eq_forget(HcaEventPlace *place)
{
    if (hca_event_waits(place)) {
        g_queue_unlink(place->list, &place->link);
        place->list = NULL;
    }
}

void hca_eq_event(HcaCxtMgt *cm, const HcaEvent *event, HcaEventPlace *place)
{
    if (post_to(cm, eq_of(cm, event->type), event) == HCA_EQ_FULL &&
        !hca_event_waits(place)) {
        wait(&cm->waiting[event->type], event, place);
    }
}

/* Completion events, whose lists are the EQs' */

HcaEq *hca_eq_request(HcaCxtMgt *cm, uint32_t eqn, uint32_t cqn,
                      HcaEventPlace *place)
{
    HcaEvent event = completion_event(cqn);
    HcaEq *eq = cm->eqs[eqn];

    if (hca_event_waits(place)) {
        return NULL;
    }
    if (eq->status == HCA_QUEUE_OK && eq_is_full(eq)) {
        cm->counters.eq_waits++;
        wait(&eq->completions, &event, place);
        return NULL;
    }
    return eq;
}

void hca_eq_write_completion(HcaCxtMgt *cm, HcaEq *eq, uint32_t cqn)
{
    HcaEvent event = completion_event(cqn);

    post_to(cm, eq, &event);
}

unsigned hca_eq_waiting(const HcaCxtMgt *cm)
{
    unsigned n = 0;

    for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
        n += cm->waiting[type].length;
    }
    for (unsigned eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        n += cm->eqs[eqn] ? cm->eqs[eqn]->completions.length : 0;
    }
    return n;
}

/* Events that waited, delivered while there is room */

/* Those of a list, as post_to(). */
static HcaEqPost deliver_list(HcaCxtMgt *cm, HcaEq *eq, GQueue *list)
{
    while (list->head) {
        HcaEventPlace *place = list->head->data;

        if (post_to(cm, eq, &place->event) == HCA_EQ_FULL) {
            return HCA_EQ_FULL;
        }
        hca_eq_forget(place);
    }
    return HCA_EQ_DONE;
}

/*
 * What waits for @eqn (HCA_NO_EQ: for none any more), until that is full: first
 * what others wait for, or what says most.
 */
static void deliver(HcaCxtMgt *cm, uint8_t eqn)
{
    static const uint8_t order[] = {
        HCA_EVENT_CMD,
        HCA_EVENT_PORT_CHANGE,
        HCA_EVENT_PORT_MNG,
        HCA_EVENT_LOCAL_CATAS_ERROR,
        HCA_EVENT_EQ_OVERFLOW,
        HCA_EVENT_CQ_ERROR,
        HCA_EVENT_SRQ_CATAS_ERROR,
        HCA_EVENT_SRQ_LIMIT,
        HCA_EVENT_WQ_CATAS_ERROR,
        HCA_EVENT_WQ_INVAL_REQ_ERROR,
        HCA_EVENT_WQ_ACCESS_ERROR,
        HCA_EVENT_COMM_EST,
        HCA_EVENT_SQ_DRAINED,
        HCA_EVENT_CONGESTION,
        HCA_EVENT_PATH_MIG,
        HCA_EVENT_PATH_MIG_FAILED,
        HCA_EVENT_LAST_WQE_REACHED,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        if (cm->event_eq[order[i]] == eqn &&
            deliver_list(cm, eq_of(cm, order[i]), &cm->waiting[order[i]]) ==
                HCA_EQ_FULL) {
            return;
        }
    }
}

/* Commands and the doorbell */

uint8_t hca_cxtmgt_hw2sw_eq(HcaCxtMgt *cm, uint32_t eqn)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (status) {
        return status;
    }
    if (eq->cqs) {
        return HCA_STAT_RESOURCE_BUSY;
    }
    write_eqc(cm, eqn, NULL);
    free_eq(cm, eq);
    /* What waited for its room goes to nobody. */
    deliver(cm, HCA_NO_EQ);
    return HCA_STAT_OK;
}

uint8_t hca_cxtmgt_map_eq(HcaCxtMgt *cm, uint32_t eqn, uint64_t mask,
                          bool unmap)
{
    HcaEq *eq;
    uint8_t status = find(cm, eqn, &eq);

    if (status) {
        return status;
    }
    if (!hca_cxt_writable(cm, &cm->eqc, eqn)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    if (unmap) {
        unmap_events(cm, eqn, mask);
    } else {
        for (unsigned type = 0; type < HCA_EVENT_TYPES; type++) {
            if (mask >> type & 1) {
                cm->event_eq[type] = eqn;
            }
        }
    }
    write_eqc(cm, eq->eqn, eq);
    deliver(cm, unmap ? HCA_NO_EQ : eqn);
    return HCA_STAT_OK;
}

/* The consumer index of which a doorbell told @bits, with all of them. */
static bool widen_index(const HcaEq *eq, uint32_t ci, uint32_t bits,
                        uint32_t *wide)
{
    uint32_t behind = (eq->producer_index - ci) & bits;

    *wide = eq->producer_index - behind;
    return behind <= eq->producer_index - eq->consumer_index;
}

/* The EQ that a doorbell names, or NULL. */
static HcaEq *rung(HcaCxtMgt *cm, uint32_t eqn)
{
    HcaEq *eq = hca_eq_find(cm, eqn);

    cm->counters.eq_doorbells++;
    cm->counters.db_bad_eqn += !eq;
    return eq;
}

static bool consumed(HcaCxtMgt *cm, HcaEq *eq, uint32_t ci, uint32_t bits)
{
    if (!widen_index(eq, ci, bits, &ci)) {
        cm->counters.db_bad_ci++;
        return false;
    }
    eq->consumer_index = ci;
    if (deliver_list(cm, eq, &eq->completions) == HCA_EQ_DONE) {
        deliver(cm, eq->eqn);
    }
    return true;
}

static void arm(HcaCxtMgt *cm, HcaEq *eq)
{
    if (eq->arm == HCA_EQ_FIRED) {
        eq->arm = HCA_EQ_ARMED;
    }
    if (eq->producer_index != eq->consumer_index) {
        interrupt(cm, eq);
    }
}

void hca_eq_doorbell(HcaCxtMgt *cm, uint32_t eqn, uint32_t ci, uint32_t bits,
                     bool arms)
{
    HcaEq *eq = rung(cm, eqn);

    if (eq && consumed(cm, eq, ci, bits) && arms) {
        arm(cm, eq);
    }
}

void hca_eq_arm_doorbell(HcaCxtMgt *cm, uint32_t eqn)
{
    HcaEq *eq = rung(cm, eqn);

    if (eq) {
        arm(cm, eq);
    }
}
