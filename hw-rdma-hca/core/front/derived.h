/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What counters come to: hit rates, how full, how long a wait is on average.
 * A row names the counters; who shows them has their values.
 */
#ifndef HCA_DERIVED_H
#define HCA_DERIVED_H

#include <stdint.h>

typedef enum HcaDerivedForm {
    HCA_DERIVED_RATE,  /* of two kinds of event, how many are of the first */
    HCA_DERIVED_OF,    /* so much of what there is */
    HCA_DERIVED_MEAN,  /* nanoseconds, and how often */
    HCA_DERIVED_VALUE, /* a counter, beside others */
} HcaDerivedForm;

/* Rows of a unit lie together, and in it those of a subject: a line of text. */
typedef struct HcaDerived {
    const char *unit;
    const char *subject;
    const char *name;
    HcaDerivedForm form;
    const char *first;
    const char *second; /* of VALUE: none */
} HcaDerived;

const HcaDerived *hca_derived(unsigned *number);

/*
 * @row of these values of its counters, as text to be freed. NULL: there is
 * nothing to be said, as nothing has happened or is held.
 */
char *hca_derived_text(const HcaDerived *row, uint64_t first, uint64_t second);

#endif /* HCA_DERIVED_H */
