/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QPs' turns at sending. */
#ifndef HCA_TURNS_H
#define HCA_TURNS_H

#include "card.h"
#include "v2p/v2p.h"

/* Whether a share of the card's turn goes on, of which @left is left. */
static inline bool hca_turns_go_on(const Hca *hca, unsigned left)
{
    return left && !hca_v2p_share_is_over(hca->v2p);
}

/*
 * The QPs that are queued send responses and requests, as far as their share
 * goes. True if one could go on at once: one whose turn has not come, one that
 * is not finished, and one that was scheduled meanwhile, be it by its own turn.
 */
bool hca_turns_run(Hca *hca);

#endif /* HCA_TURNS_H */
