/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agents: what they count. */
#include "../counter_table.h"
#include "../mad/node.h"
#include "../port/port.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaNodeCounters, field, text)

HCA_GAUGE_FN(traps_waiting, HcaPort, hca_port_node(room)->ntraps)

static const void *counters(const void *room)
{
    return &hca_port_node(room)->counters;
}

static const HcaCounterRow rows[] = {
    COUNTER(397, "smps", smps, "requests to the subnet management agent"),
    COUNTER(398, "gmps", gmps, "requests to the performance management agent"),
    COUNTER(399, "refused", refused, "of them, answered with a status"),
    COUNTER(400, "mkey_violations", mkey_violations,
            "SMPs with a wrong M_Key, not answered"),
    COUNTER(401, "route_errors", route_errors,
            "SMPs with a directed route that cannot be"),
    COUNTER(402, "traps", traps, "traps sent, repeats too"),
    COUNTER(403, "traps_repressed", traps_repressed,
            "traps that a manager has repressed"),
    COUNTER(404, "traps_lost", traps_lost, "traps for which there was no room"),
    HCA_GAUGE(405, "traps_waiting", INSTANT, traps_waiting,
              "traps to be sent, or sent again"),
};

const HcaCounterTable hca_mgmt_counter_table = {
    .unit = "mgmt",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
