/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The block of memory of one end (link/shared_ring.h), as both see it: the owner
 * may write, the peer may not, and what lies before and behind it is nobody's.
 */
#ifndef LIB_SHARED_H
#define LIB_SHARED_H

#include "link/shared_ring.h"

typedef struct SharedMemory {
    HcaSharedBlock *own;        /* the owner's mapping */
    const HcaSharedBlock *seen; /* the peer's */
} SharedMemory;

void shared_memory_init(SharedMemory *memory);
void shared_memory_destroy(SharedMemory *memory);

/*
 * Two ends, and their memory, as they are when both have opened. The first end
 * sends from position @start[0] on, the second one from @start[1].
 */
typedef struct SharedPair {
    SharedMemory memory[2];
    HcaSharedEnd end[2];
} SharedPair;

void shared_pair_init(SharedPair *pair, const uint64_t start[2]);
void shared_pair_destroy(SharedPair *pair);
/* The same pair, with all as it is in the beginning. */
void shared_pair_restart(SharedPair *pair, const uint64_t start[2]);

/* What is sent at a position, so that bytes out of place are found. */
void shared_pattern(uint64_t at, uint8_t *to, size_t len);

#endif /* LIB_SHARED_H */
