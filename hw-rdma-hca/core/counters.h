/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a card has counted since it was reset, and what it holds now. One
 * table, in counters.c, names all of it; who shows counters walks the table:
 * DIAG_RPRT, QEMU's monitor, tests.
 *
 * Call these in the card's thread, or while it stands still.
 */
#ifndef HCA_COUNTERS_H
#define HCA_COUNTERS_H

#include "hca.h"

typedef enum HcaCounterKind {
    HCA_COUNTER_CUMULATIVE, /* events since the last reset */
    HCA_COUNTER_INSTANT,    /* held now */
    HCA_COUNTER_PEAK,       /* the most held at a time since the reset */
} HcaCounterKind;

/* A row of the table with its value. Strings are in static storage. */
typedef struct HcaCounter {
    const char *unit; /* the room in core/ that counts */
    const char *name; /* one of its kind in the unit */
    const char *text; /* what it counts */
    HcaCounterKind kind;
    uint64_t value;
} HcaCounter;

/* How many counters a card has. */
unsigned hca_counters_number(void);

/*
 * Counter @index, less than hca_counters_number(). An index is for ever: a
 * new counter gets the next one (DIAG_RPRT's numbers).
 */
void hca_counter_get(const Hca *hca, unsigned index, HcaCounter *counter);

/* All counters, unit by unit in the order of the data path. */
typedef void HcaCounterFn(void *opaque, const HcaCounter *counter);
void hca_counters_visit(const Hca *hca, HcaCounterFn *fn, void *opaque);

#endif /* HCA_COUNTERS_H */
