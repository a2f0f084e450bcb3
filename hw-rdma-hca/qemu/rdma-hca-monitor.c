/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a card at the monitor: query-rdma-hca-counters (QMP) and
 * info rdma-hca (HMP).
 */
#include "qemu/osdep.h"
#include "../core/counters.h"
#include "../core/front/derived.h"
#include "hw/qdev-core.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma-hca.h"
#include "qobject/qdict.h"
#include "rdma-hca.h"

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

static RdmaHcaCounters *query_card(Object *obj, RdmaHcaThread *thread)
{
    RdmaHcaCounters *counters = g_new0(RdmaHcaCounters, 1);
    UnitList units = { .tail = &units.head };

    counters->id = g_strdup(DEVICE(obj)->id);
    counters->qom_path = object_get_canonical_path(obj);
    rdma_hca_thread_counters(thread, add_counter, &units);
    counters->units = units.head;
    return counters;
}

typedef struct Query {
    const char *id; /* NULL: all cards */
    RdmaHcaCountersList *head;
    RdmaHcaCountersList **tail;
} Query;

static bool is_wanted(const Query *query, Object *obj)
{
    g_autofree char *path = object_get_canonical_path(obj);

    return !query->id || !g_strcmp0(query->id, DEVICE(obj)->id) ||
           g_str_equal(query->id, path);
}

static int visit_object(Object *obj, void *opaque)
{
    Query *query = opaque;
    RdmaHcaState *s = (RdmaHcaState *)object_dynamic_cast(obj, TYPE_RDMA_HCA);
    RdmaHcaThread *thread = s ? rdma_hca_thread(s) : NULL;

    if (thread && is_wanted(query, obj)) {
        QAPI_LIST_APPEND(query->tail, query_card(obj, thread));
    }
    return 0;
}

RdmaHcaCountersList *qmp_query_rdma_hca_counters(const char *id, Error **errp)
{
    Query query = { .id = id, .tail = &query.head };

    object_child_foreach_recursive(object_get_root(), visit_object, &query);
    if (id && !query.head) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND,
                  "'%s' is not an rdma-hca device", id);
    }
    return query.head;
}

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

static void hmp_info_rdma_hca(Monitor *mon, const QDict *qdict)
{
    const char *id = qdict_get_try_str(qdict, "id");
    bool all = qdict_get_try_bool(qdict, "all", false);
    RdmaHcaCountersList *cards;
    Error *err = NULL;

    cards = qmp_query_rdma_hca_counters(id, &err);
    if (hmp_handle_error(mon, err)) {
        return;
    }
    for (RdmaHcaCountersList *l = cards; l; l = l->next) {
        monitor_printf(mon, "%s\n",
                       l->value->id ? l->value->id : l->value->qom_path);
        for (RdmaHcaUnitList *u = l->value->units; u; u = u->next) {
            print_unit(mon, u->value, all);
        }
    }
    qapi_free_RdmaHcaCountersList(cards);
}

static void register_commands(void)
{
    monitor_register_hmp("rdma-hca", true, hmp_info_rdma_hca);
}

type_init(register_commands)
