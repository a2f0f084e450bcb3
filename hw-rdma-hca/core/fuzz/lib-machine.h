/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between a card and its machine: counts what the card asks for, takes down
 * what it may have written and what it says on the cable, and lets memory
 * change or go away between two look-ups.
 */
#ifndef LIB_MACHINE_H
#define LIB_MACHINE_H

#include "lib-host.h"

/* What must not be seen: eight bytes, the same from either end. */
typedef struct Canary {
    uint8_t byte[8];
} Canary;

/* Whether @canary is anywhere in @data. */
bool canary_is_in(const Canary *canary, const uint8_t *data, size_t len);

/* Stand between @host and its card, from its beginning to machine_forget(). */
void machine_watch(Host *host);
void machine_forget(void);
/* @canary must not be said from now on. */
void machine_hide(const Canary *canary);

/* Pages that the card of @side has asked to write: bus addresses. */
const GArray *machine_written(unsigned side);

/* See fuzz_plan_write(). */
#define MACHINE_MOST_DATA 16
void machine_plan_write(unsigned side, unsigned lookups, uint64_t bus,
                        const void *data, unsigned len);
void machine_plan_failure(unsigned side, unsigned lookups, unsigned times);
void machine_plan_nothing(void);

#endif /* LIB_MACHINE_H */
