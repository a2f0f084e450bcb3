/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow rules (verbs: ibv_create_flow). Software chooses a rule's number; rules
 * of a kind are kept in the order in which they are tried. A frame costs no
 * more than a look at each of them.
 */
#include <glib.h>
#include <string.h>

#include "../verbs.h"
#include "../wire/wire.h"
#include "port_int.h"

static unsigned table_size(const HcaPort *port)
{
    return 1u << port->config->log_flows;
}

void hca_flow_init(HcaPort *port)
{
    HcaFlowTable *table = &port->flows;

    table->rule = g_new0(HcaFlowRule, table_size(port));
    table->used = g_new0(bool, table_size(port));
    for (unsigned kind = 0; kind < HCA_FLOW_NKINDS; kind++) {
        table->list[kind].index = g_new0(uint16_t, table_size(port));
    }
}

void hca_flow_cleanup(HcaPort *port)
{
    HcaFlowTable *table = &port->flows;

    for (unsigned kind = 0; kind < HCA_FLOW_NKINDS; kind++) {
        g_free(table->list[kind].index);
    }
    g_free(table->used);
    g_free(table->rule);
}

/* What is sent is kept for sniffers while there are some. */
static void tap(HcaPort *port)
{
    hca_link_set_tap(port->link, port->flows.list[HCA_FLOW_SNIFFER].count != 0);
}

void hca_flow_reset(HcaPort *port)
{
    HcaFlowTable *table = &port->flows;

    memset(table->used, 0, table_size(port) * sizeof(*table->used));
    for (unsigned kind = 0; kind < HCA_FLOW_NKINDS; kind++) {
        table->list[kind].count = 0;
    }
    tap(port);
}

unsigned hca_flow_count(const HcaPort *port)
{
    unsigned count = 0;

    for (unsigned kind = 0; kind < HCA_FLOW_NKINDS; kind++) {
        count += port->flows.list[kind].count;
    }
    return count;
}

/* Behind those of its priority. */
static void insert(HcaFlowTable *table, unsigned index)
{
    const HcaFlowRule *rule = &table->rule[index];
    HcaFlowList *list = &table->list[rule->kind];
    unsigned at = list->count++;

    while (at && table->rule[list->index[at - 1]].priority > rule->priority) {
        list->index[at] = list->index[at - 1];
        at--;
    }
    list->index[at] = index;
}

static void take_out(HcaFlowTable *table, unsigned index)
{
    HcaFlowList *list = &table->list[table->rule[index].kind];
    unsigned at = 0;

    while (list->index[at] != index) {
        at++;
    }
    list->count--;
    memmove(&list->index[at], &list->index[at + 1],
            (list->count - at) * sizeof(*list->index));
}

uint8_t hca_flow_add(HcaPort *port, unsigned index, const HcaFlowRule *rule)
{
    HcaFlowTable *table = &port->flows;

    if (index >= table_size(port)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (rule->kind >= HCA_FLOW_NKINDS ||
        rule->qpn >= 1u << port->config->log_qps ||
        (rule->dont_trap && rule->kind != HCA_FLOW_NORMAL)) {
        return HCA_STAT_BAD_PARAM;
    }
    if (table->used[index]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    table->rule[index] = *rule;
    table->used[index] = true;
    insert(table, index);
    tap(port);
    return HCA_STAT_OK;
}

uint8_t hca_flow_remove(HcaPort *port, unsigned index)
{
    HcaFlowTable *table = &port->flows;

    if (index >= table_size(port)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (!table->used[index]) {
        return HCA_STAT_BAD_RES_STATE;
    }
    take_out(table, index);
    table->used[index] = false;
    tap(port);
    return HCA_STAT_OK;
}

/* Frames */

static bool matches(const HcaFlowRule *rule, const HcaFlowKey *key)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(key->word); i++) {
        if ((key->word[i] ^ rule->value.word[i]) & rule->mask.word[i]) {
            return false;
        }
    }
    return true;
}

/* QPs that have got a frame: none gets it twice. */
typedef struct Served {
    unsigned count;
    uint32_t qpn[1u << HCA_MAX_LOG_FLOWS];
} Served;

static bool is_served(const Served *served, uint32_t qpn)
{
    for (unsigned i = 0; i < served->count; i++) {
        if (served->qpn[i] == qpn) {
            return true;
        }
    }
    return false;
}

/* Whether the rule's QP has the frame now, or had it. */
static bool serve(const HcaFlowRule *rule, Served *served, HcaFlowFn *fn,
                  void *opaque)
{
    if (is_served(served, rule->qpn)) {
        return true;
    }
    if (!fn(opaque, rule)) {
        return false;
    }
    served->qpn[served->count++] = rule->qpn;
    return true;
}

static const HcaFlowRule *rule_at(const HcaFlowTable *table, HcaFlowKind kind,
                                  unsigned at)
{
    return &table->rule[table->list[kind].index[at]];
}

bool hca_flow_steer(HcaPort *port, const uint8_t *frame, size_t len,
                    HcaFlowFn *fn, void *opaque)
{
    const HcaFlowTable *table = &port->flows;
    unsigned count = table->list[HCA_FLOW_NORMAL].count;
    uint16_t trapped_by = 0;
    bool trapped = false;
    HcaFlowKey key;
    Served served;

    if (!count || len < HCA_ETH_HEADER_SIZE) {
        return false;
    }
    served.count = 0;
    hca_flow_key(frame, len, &key);
    for (unsigned i = 0; i < count; i++) {
        const HcaFlowRule *rule = rule_at(table, HCA_FLOW_NORMAL, i);

        if (trapped && rule->priority != trapped_by) {
            break;
        }
        if (matches(rule, &key) && serve(rule, &served, fn, opaque) &&
            !rule->dont_trap) {
            trapped = true;
            trapped_by = rule->priority;
        }
    }
    port->counters.flow_steered += served.count;
    return trapped;
}

static void serve_all(HcaPort *port, HcaFlowKind kind, Served *served,
                      HcaFlowFn *fn, void *opaque)
{
    for (unsigned i = 0; i < port->flows.list[kind].count; i++) {
        serve(rule_at(&port->flows, kind, i), served, fn, opaque);
    }
}

bool hca_flow_default(HcaPort *port, const uint8_t *frame, HcaFlowFn *fn,
                      void *opaque)
{
    Served served;

    served.count = 0;
    serve_all(port, HCA_FLOW_ALL_DEFAULT, &served, fn, opaque);
    if (frame[0] & 1) {
        serve_all(port, HCA_FLOW_MC_DEFAULT, &served, fn, opaque);
    }
    port->counters.flow_steered += served.count;
    return served.count != 0;
}

void hca_flow_sniff(HcaPort *port, HcaFlowFn *fn, void *opaque)
{
    Served served;

    served.count = 0;
    serve_all(port, HCA_FLOW_SNIFFER, &served, fn, opaque);
    port->counters.flow_sniffed += served.count;
}
