/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cards at the monitor: counters, queues and the flight recorder, by
 * query-rdma-hca-* (QMP) and info rdma-hca (HMP).
 */
#include "qemu/osdep.h"
#include "../core/counters.h"
#include "../core/front/derived.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma-hca.h"
#include "qobject/qdict.h"
#include "rdma-hca-compat.h"
#include "rdma-hca.h"

/* ---- finding cards ---- */

typedef void CardFn(Object *obj, RdmaHcaThread *thread, void *opaque);

typedef struct Search {
    const char *id; /* NULL: all cards */
    CardFn *fn;
    void *opaque;
    bool found;
} Search;

static bool is_wanted(const Search *search, Object *obj)
{
    g_autofree char *path = object_get_canonical_path(obj);

    return !search->id || !g_strcmp0(search->id, DEVICE(obj)->id) ||
           g_str_equal(search->id, path);
}

static int visit_object(Object *obj, void *opaque)
{
    Search *search = opaque;
    RdmaHcaState *s = (RdmaHcaState *)object_dynamic_cast(obj, TYPE_RDMA_HCA);
    RdmaHcaThread *thread = s ? rdma_hca_thread(s) : NULL;

    if (thread && is_wanted(search, obj)) {
        search->found = true;
        search->fn(obj, thread, search->opaque);
    }
    return 0;
}

/* Call @fn for the card @id, or for each one if that is NULL. */
static void visit_cards(const char *id, CardFn *fn, void *opaque, Error **errp)
{
    Search search = { .id = id, .fn = fn, .opaque = opaque };

    object_child_foreach_recursive(object_get_root(), visit_object, &search);
    if (id && !search.found) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND,
                  "'%s' is not an rdma-hca device", id);
    }
}

/* ---- counters ---- */

/* A list that grows at its end. */
typedef struct UnitList {
    RdmaHcaUnitList *head;
    RdmaHcaUnitList **tail;
    RdmaHcaCounterList **counters_tail; /* of the last unit */
    RdmaHcaUnit *unit;                  /* the last one */
} UnitList;

static StatsType counter_type(HcaCounterKind kind)
{
    switch (kind) {
    case HCA_COUNTER_INSTANT:
        return STATS_TYPE_INSTANT;
    case HCA_COUNTER_PEAK:
        return STATS_TYPE_PEAK;
    default:
        return STATS_TYPE_CUMULATIVE;
    }
}

static void begin_unit(UnitList *units, const char *name)
{
    units->unit = g_new0(RdmaHcaUnit, 1);
    units->unit->name = g_strdup(name);
    units->counters_tail = &units->unit->counters;
    QAPI_LIST_APPEND(units->tail, units->unit);
}

/* HcaCounterFn, in the card's thread while the main loop waits. */
static void add_counter(void *opaque, const HcaCounter *counter)
{
    UnitList *units = opaque;
    RdmaHcaCounter *c = g_new0(RdmaHcaCounter, 1);

    if (!units->unit || !g_str_equal(units->unit->name, counter->unit)) {
        begin_unit(units, counter->unit);
    }
    c->name = g_strdup(counter->name);
    c->type = counter_type(counter->kind);
    c->value = counter->value;
    c->description = g_strdup(counter->text);
    QAPI_LIST_APPEND(units->counters_tail, c);
}

typedef struct CountersList {
    RdmaHcaCountersList *head;
    RdmaHcaCountersList **tail;
} CountersList;

static void query_counters(Object *obj, RdmaHcaThread *thread, void *opaque)
{
    CountersList *cards = opaque;
    RdmaHcaCounters *counters = g_new0(RdmaHcaCounters, 1);
    UnitList units = { .tail = &units.head };

    counters->id = g_strdup(DEVICE(obj)->id);
    counters->qom_path = object_get_canonical_path(obj);
    rdma_hca_thread_counters(thread, add_counter, &units);
    counters->units = units.head;
    QAPI_LIST_APPEND(cards->tail, counters);
}

RdmaHcaCountersList *qmp_query_rdma_hca_counters(const char *id, Error **errp)
{
    CountersList cards = { .tail = &cards.head };

    visit_cards(id, query_counters, &cards, errp);
    return cards.head;
}

/* ---- lines ---- */

typedef void LinesFn(RdmaHcaThread *thread, HcaLineFn *fn, void *opaque);

typedef struct LinesList {
    LinesFn *fn;
    RdmaHcaLinesList *head;
    RdmaHcaLinesList **tail;
} LinesList;

/* HcaLineFn, in the card's thread while the main loop waits. */
static void add_line(void *opaque, const char *line)
{
    strList ***tail = opaque;

    QAPI_LIST_APPEND(*tail, g_strdup(line));
}

static void query_lines(Object *obj, RdmaHcaThread *thread, void *opaque)
{
    LinesList *cards = opaque;
    RdmaHcaLines *lines = g_new0(RdmaHcaLines, 1);
    strList **tail = &lines->lines;

    lines->id = g_strdup(DEVICE(obj)->id);
    lines->qom_path = object_get_canonical_path(obj);
    cards->fn(thread, add_line, &tail);
    QAPI_LIST_APPEND(cards->tail, lines);
}

RdmaHcaLinesList *qmp_query_rdma_hca_recorder(const char *id, Error **errp)
{
    LinesList cards = { .fn = rdma_hca_thread_recorder, .tail = &cards.head };

    visit_cards(id, query_lines, &cards, errp);
    return cards.head;
}

RdmaHcaLinesList *qmp_query_rdma_hca_queues(const char *id, Error **errp)
{
    LinesList cards = { .fn = rdma_hca_thread_queues, .tail = &cards.head };

    visit_cards(id, query_lines, &cards, errp);
    return cards.head;
}

typedef struct Save {
    const char *filename;
    Error **errp;
} Save;

static void save_recorder(Object *obj, RdmaHcaThread *thread, void *opaque)
{
    Save *save = opaque;

    rdma_hca_thread_save_recorder(thread, save->filename, save->errp);
}

void qmp_rdma_hca_recorder_save(const char *id, const char *filename,
                                Error **errp)
{
    Save save = { .filename = filename, .errp = errp };

    visit_cards(id, save_recorder, &save, errp);
}

/* ---- faults ---- */

static void query_faults(Object *obj, RdmaHcaThread *thread, void *opaque)
{
    RdmaHcaFaultsList ***tail = opaque;
    RdmaHcaFaults *faults = g_new0(RdmaHcaFaults, 1);

    faults->id = g_strdup(DEVICE(obj)->id);
    faults->qom_path = object_get_canonical_path(obj);
    faults->faults = rdma_hca_fault_states(RDMA_HCA(obj));
    QAPI_LIST_APPEND(*tail, faults);
}

RdmaHcaFaultsList *qmp_query_rdma_hca_faults(const char *id, Error **errp)
{
    RdmaHcaFaultsList *head = NULL, **tail = &head;

    visit_cards(id, query_faults, &tail, errp);
    return head;
}

typedef struct Add {
    const RdmaHcaFaultList *faults;
    Error **errp;
} Add;

static void add_faults(Object *obj, RdmaHcaThread *thread, void *opaque)
{
    const Add *add = opaque;

    rdma_hca_add_faults(RDMA_HCA(obj), add->faults, add->errp);
}

void qmp_rdma_hca_fault_add(const char *id, RdmaHcaFaultList *faults,
                            Error **errp)
{
    Add add = { .faults = faults, .errp = errp };

    visit_cards(id, add_faults, &add, errp);
}

/* ---- info rdma-hca ---- */

/* 0 if @name is NULL. */
static uint64_t value_of(const RdmaHcaUnit *unit, const char *name)
{
    for (RdmaHcaCounterList *l = unit->counters; name && l; l = l->next) {
        if (g_str_equal(l->value->name, name)) {
            return l->value->value;
        }
    }
    return 0;
}

/* What counters come to, in a line for each subject that has something. */
static void add_derived(GString *lines, const RdmaHcaUnit *unit)
{
    unsigned n;
    const HcaDerived *row = hca_derived(&n);
    const char *subject = ""; /* of the last line */

    for (; n--; row++) {
        g_autofree char *text = NULL;

        if (g_str_equal(row->unit, unit->name)) {
            text = hca_derived_text(row, value_of(unit, row->first),
                                    value_of(unit, row->second));
        }
        if (!text) {
            continue;
        }
        if (g_str_equal(row->subject, subject)) {
            g_string_truncate(lines, lines->len - 1);
            g_string_append_printf(lines, ", %s\n", text);
        } else {
            g_string_append_printf(lines, "    %-24s %s\n", row->subject, text);
        }
        subject = row->subject;
    }
}

static void add_counters(GString *lines, const RdmaHcaUnit *unit, bool all)
{
    for (RdmaHcaCounterList *l = unit->counters; l; l = l->next) {
        const RdmaHcaCounter *c = l->value;

        if (all || c->value) {
            g_string_append_printf(lines, "    %-24s %16" PRIu64 "  %s\n",
                                   c->name, c->value, c->description);
        }
    }
}

static void print_unit(Monitor *mon, const RdmaHcaUnit *unit, bool all)
{
    g_autoptr(GString) lines = g_string_new(NULL);

    add_derived(lines, unit);
    add_counters(lines, unit, all);
    if (lines->len) {
        monitor_printf(mon, "  %s\n%s", unit->name, lines->str);
    }
}

static void print_name(Monitor *mon, const char *id, const char *qom_path)
{
    monitor_printf(mon, "%s\n", id ? id : qom_path);
}

static void print_counters(Monitor *mon, const char *id, bool all, Error **errp)
{
    RdmaHcaCountersList *cards = qmp_query_rdma_hca_counters(id, errp);

    for (RdmaHcaCountersList *l = cards; l; l = l->next) {
        print_name(mon, l->value->id, l->value->qom_path);
        for (RdmaHcaUnitList *u = l->value->units; u; u = u->next) {
            print_unit(mon, u->value, all);
        }
    }
    qapi_free_RdmaHcaCountersList(cards);
}

static void print_lines(Monitor *mon, RdmaHcaLinesList *cards)
{
    for (RdmaHcaLinesList *l = cards; l; l = l->next) {
        print_name(mon, l->value->id, l->value->qom_path);
        for (strList *line = l->value->lines; line; line = line->next) {
            monitor_printf(mon, "  %s\n", line->value);
        }
    }
    qapi_free_RdmaHcaLinesList(cards);
}

/* What is neither the recorder nor the queues is the ID of a card. */
static void hmp_info_rdma_hca(Monitor *mon, const QDict *qdict)
{
    const char *what = qdict_get_try_str(qdict, "what");
    const char *id = qdict_get_try_str(qdict, "id");
    bool all = qdict_get_try_bool(qdict, "all", false);
    Error *err = NULL;

    if (!g_strcmp0(what, "recorder")) {
        print_lines(mon, qmp_query_rdma_hca_recorder(id, &err));
    } else if (!g_strcmp0(what, "queues")) {
        print_lines(mon, qmp_query_rdma_hca_queues(id, &err));
    } else if (id) {
        error_setg(&err, "'%s' is neither 'recorder' nor 'queues'", what);
    } else {
        print_counters(mon, what, all, &err);
    }
    hmp_handle_error(mon, err);
}

static void register_commands(void)
{
    monitor_register_hmp("rdma-hca", true, hmp_info_rdma_hca);
}

type_init(register_commands)
