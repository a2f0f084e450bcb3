/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine of a Lab that moves, and its card with it. */
#ifndef LIB_MOVE_H
#define LIB_MOVE_H

#include "lib-host.h"

/*
 * It stands still, its card departs and is drained while the other machine goes on,
 * and the stream ends. False: not all that was on its way has come.
 */
bool move_depart(Lab *lab, unsigned side);

/* It goes on from what was saved then, in another card, without a stream. */
void move_arrive(Lab *lab, unsigned side);

/* All of it, with some time in between and a new stream: Lab.move. */
void move_somewhere(Lab *lab, unsigned side);

#endif /* LIB_MOVE_H */
