/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a room counts, as a table of its own. Units count by plain increments
 * of a structure that they alone write; here each field gets a name. Nothing
 * is copied or summed until somebody asks (counters.h).
 */
#ifndef HCA_COUNTER_TABLE_H
#define HCA_COUNTER_TABLE_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

typedef enum HcaCounterKind {
    HCA_COUNTER_CUMULATIVE, /* events since the last reset */
    HCA_COUNTER_INSTANT,    /* held now */
    HCA_COUNTER_PEAK,       /* the most held at a time since the reset */
} HcaCounterKind;

/* A counter is a uint64_t of the room's structure, a gauge a function. */
typedef struct HcaCounterRow {
    unsigned number;  /* DIAG_RPRT's, for ever: a new row gets the next one */
    const char *name; /* one of its kind in the unit */
    const char *text; /* what it counts */
    HcaCounterKind kind;
    size_t offset;
    uint64_t (*gauge)(const void *room);
} HcaCounterRow;

typedef struct HcaCounterTable {
    const char *unit;
    /* The structure that rows have offsets in. */
    const void *(*counters)(const void *room);
    const HcaCounterRow *rows;
    unsigned nrows;
} HcaCounterTable;

#define HCA_COUNTER(num, n, type, field, t)                                    \
    {                                                                          \
        .number = (num), .name = (n), .text = (t),                             \
        .offset = offsetof(type, field)                                        \
    }
#define HCA_PEAK(num, n, type, field, t)                                       \
    {                                                                          \
        .number = (num), .name = (n), .text = (t), .kind = HCA_COUNTER_PEAK,   \
        .offset = offsetof(type, field)                                        \
    }
#define HCA_GAUGE(num, n, k, fn, t)                                            \
    {                                                                          \
        .number = (num), .name = (n), .text = (t), .kind = HCA_COUNTER_##k,    \
        .gauge = (fn)                                                          \
    }
/* @value of @room, which is a @type. */
#define HCA_GAUGE_FN(fn, type, value)                                          \
    static uint64_t fn(const void *opaque)                                     \
    {                                                                          \
        const type *room = opaque;                                             \
                                                                               \
        return value;                                                          \
    }

/* The rooms' tables; what their @room is, counters.c says. */
extern const HcaCounterTable hca_ceu_counter_table;
extern const HcaCounterTable hca_send_counter_table;
extern const HcaCounterTable hca_requester_counter_table;
extern const HcaCounterTable hca_responder_counter_table;
extern const HcaCounterTable hca_cxtmgt_counter_table;
extern const HcaCounterTable hca_v2p_counter_table;
extern const HcaCounterTable hca_port_counter_table;
extern const HcaCounterTable hca_link_counter_table;
extern const HcaCounterTable hca_fault_counter_table;
extern const HcaCounterTable hca_host_fault_counter_table;
extern const HcaCounterTable hca_verb_fault_counter_table;
extern const HcaCounterTable hca_capture_counter_table;
extern const HcaCounterTable hca_eth_counter_table;
extern const HcaCounterTable hca_mgmt_counter_table;

#endif /* HCA_COUNTER_TABLE_H */
