/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-move.h"

static bool drained(void *hca)
{
    return hca_drain(hca);
}

bool move_depart(Lab *lab, unsigned side)
{
    Hca *hca = lab->host[side].hca;
    bool all;

    host_set_running(&lab->host[side], false);
    all = !hca_depart(hca) || lab_wait(lab, drained, hca, NS_PER_S);
    lab_cable(lab, false);
    return all;
}

void move_arrive(Lab *lab, unsigned side)
{
    Host *host = &lab->host[side];

    host_reload(host);
    host_set_running(host, true);
    hca_arrive(host->hca);
}

void move_somewhere(Lab *lab, unsigned side)
{
    unsigned moves = lab->moves;

    lab->moves = 0; /* one at a time */
    g_assert_true(move_depart(lab, side));
    lab_run_for(lab, g_rand_double_range(lab->rand, 0, lab->away_ns));
    move_arrive(lab, side);
    lab_run_for(lab, g_rand_double_range(lab->rand, 0, lab->away_ns / 2));
    lab_cable(lab, true);
    lab->moves = moves;
}
