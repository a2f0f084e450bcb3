/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a card has counted since it was reset, and what it holds now. Each room
 * has a table of it (counter_table.h); who shows counters walks them all:
 * DIAG_RPRT, QEMU's monitor, tests.
 *
 * Call these as the functions of hca.h.
 */
#ifndef HCA_COUNTERS_H
#define HCA_COUNTERS_H

#include <stdbool.h>

#include "counter_table.h"

typedef struct Hca Hca;

/* A row of a table with its value. Strings are in static storage. */
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

/*
 * A counter's own value, for a state that is saved; false: it is worked out of
 * something, or 0. To have it again; one that there is not is left out.
 */
bool hca_counter_saved(const Hca *hca, unsigned index, uint64_t *value);
void hca_counter_set(Hca *hca, uint32_t index, uint64_t value);

#endif /* HCA_COUNTERS_H */
