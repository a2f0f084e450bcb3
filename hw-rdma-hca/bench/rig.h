/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two cards in one process and one thread, with nothing between them but memory:
 * what benchmarks measure that have no guests.
 */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include "lib-pair.h"

/* One at a time: the cards' callbacks know no more than their sides. */
typedef struct Rig {
    Pair *pair;
    Cq *cq[2];
    Qp **qp[2]; /* [0][n] and [1][n] are connected */
    unsigned num_qps;
} Rig;

/* Cards, and queue pairs whose responders have receives or not. */
void rig_open(Rig *rig, const HcaConfig config[2], unsigned num_qps,
              bool receives);
/*
 * When drivers have given their last command: a cable in the place of the lab's,
 * which carries so many bytes each way in a turn (0: all that it has room for).
 */
void rig_plug(Rig *rig, size_t turn_bytes);
void rig_close(Rig *rig);

/* One turn of each card, @ns after the last. False: neither has work. */
bool rig_turn(Rig *rig, int64_t ns);

/* @n good completions, and they are there. */
void rig_expect(Cq *cq, unsigned n);

/* Drop what the tests' drivers tell a tester. */
void rig_be_quiet(void);

#endif /* BENCH_RIG_H */
