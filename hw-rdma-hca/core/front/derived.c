/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "derived.h"

#include <glib.h>

#define ROW(u, s, n, f, a, b)                                                  \
    {                                                                          \
        .unit = (u), .subject = (s), .name = (n), .form = HCA_DERIVED_##f,     \
        .first = (a), .second = (b)                                            \
    }
#define VALUE(u, s, n, a) ROW(u, s, n, VALUE, a, NULL)
#define BUFFER(b)                                                              \
    ROW("requester", b, "elements", OF, b "_used", b "_capacity"),             \
        VALUE("requester", b, "peak", b "_peak")
#define CACHE(c)                                                               \
    ROW("v2p", c "_cache", "hits", RATE, c "_hits", c "_misses"),              \
        ROW("v2p", c "_cache", "lines", OF, c "_lines", c "_capacity")
#define WAIT(channel, cause)                                                   \
    ROW("v2p", "waits_" channel, cause, MEAN, "wait_ns_" cause "_" channel,    \
        "waits_" cause "_" channel)
#define WAITS(channel)                                                         \
    WAIT(channel, "channel"), WAIT(channel, "mpt"), WAIT(channel, "path"),     \
        WAIT(channel, "mtt"), WAIT(channel, "host")
#define FIFO(channel) VALUE("v2p", "fifo_peaks", channel, "fifo_peak_" channel)
#define PATHS(kind)                                                            \
    VALUE("v2p", kind "_peaks", "wqe", kind "_peak_wqe"),                      \
        VALUE("v2p", kind "_peaks", "data", kind "_peak_data"),                \
        VALUE("v2p", kind "_peaks", "write", kind "_peak_write")

static const HcaDerived rows[] = {
    VALUE("send", "queue", "qps", "qps_scheduled"),
    BUFFER("swpb"),
    BUFFER("rpb"),
    BUFFER("reb"),
    VALUE("requester", "queue", "qps", "qps_waiting"),
    VALUE("responder", "queue", "qps", "qps_scheduled"),
    VALUE("cxtmgt", "queue", "events", "events_waiting"),
    CACHE("mpt"),
    CACHE("mtt"),
    WAITS("ceu"),
    WAITS("db"),
    WAITS("wp_wqe"),
    WAITS("wp_nd"),
    WAITS("rtc"),
    WAITS("rrc"),
    WAITS("rwm"),
    WAITS("ee"),
    FIFO("ceu"),
    FIFO("db"),
    FIFO("wp_wqe"),
    FIFO("wp_nd"),
    FIFO("rtc"),
    FIFO("rrc"),
    FIFO("rwm"),
    FIFO("ee"),
    PATHS("path"),
    PATHS("away"),
    VALUE("v2p", "posted_writes", "now", "posted"),
    VALUE("v2p", "posted_writes", "peak", "posted_peak"),
    ROW("link", "queue", "full", MEAN, "tx_wait_ns", "tx_waits"),
    VALUE("fault", "queue", "held", "held"),
    VALUE("mgmt", "queue", "traps", "traps_waiting"),
};

const HcaDerived *hca_derived(unsigned *number)
{
    *number = G_N_ELEMENTS(rows);
    return rows;
}

char *hca_derived_text(const HcaDerived *row, uint64_t first, uint64_t second)
{
    switch (row->form) {
    case HCA_DERIVED_RATE:
        return first || second
                   ? g_strdup_printf("%s %.1f %%", row->name,
                                     100.0 * first / ((double)first + second))
                   : NULL;
    case HCA_DERIVED_OF:
        return first ? g_strdup_printf("%s %" G_GUINT64_FORMAT
                                       " of %" G_GUINT64_FORMAT,
                                       row->name, first, second)
                     : NULL;
    case HCA_DERIVED_MEAN:
        return second ? g_strdup_printf("%s %" G_GUINT64_FORMAT
                                        " ns x %" G_GUINT64_FORMAT,
                                        row->name, first / second, second)
                      : NULL;
    case HCA_DERIVED_VALUE:
        break;
    }
    return first ? g_strdup_printf("%s %" G_GUINT64_FORMAT, row->name, first)
                 : NULL;
}
