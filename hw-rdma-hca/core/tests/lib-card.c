/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-card.h"

#include <string.h>

#include "../counters.h"

static bool is_named(const HcaCounter *counter, const char *name)
{
    size_t len = strlen(counter->unit);

    return !strncmp(name, counter->unit, len) && name[len] == '_' &&
           g_str_equal(name + len + 1, counter->name);
}

uint64_t card_counter(const Hca *hca, const char *name)
{
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(hca, i, &counter);
        if (is_named(&counter, name)) {
            return counter.value;
        }
    }
    g_error("no counter %s", name);
}

void card_counted(const Hca *hca, const char *who, const char *name, uint64_t n)
{
    uint64_t value = card_counter(hca, name);

    if (value != n) {
        g_error("%s of %s is %" G_GUINT64_FORMAT " and not %" G_GUINT64_FORMAT,
                name, who, value, n);
    }
}

uint64_t card_drops(const Hca *hca, HcaDropReason reason)
{
    return hca_port_counters(hca->port)->drops[reason];
}

HcaQp *card_qp(Hca *hca, uint32_t qpn)
{
    HcaQp *qp = hca_qp_find(hca->cm, qpn);

    g_assert_nonnull(qp);
    return qp;
}

HcaFaultPlan fault_plan(HcaFaultAction action)
{
    return (HcaFaultPlan) {
        .seed = 1,
        .nrules = 1,
        .rule[0] = { .action = action,
                     .directions = 1u << HCA_FAULT_TX | 1u << HCA_FAULT_RX,
                     .probability = HCA_FAULT_ALWAYS,
                     .offset = -1,
                     .delay_ns = action == HCA_FAULT_DELAY ? 100 : 0 },
    };
}
