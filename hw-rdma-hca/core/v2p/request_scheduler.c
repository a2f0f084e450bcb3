/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request scheduler (VirtToPhys document 5.2).
 *
 * Departure. The hardware polls one request FIFO for each channel, the command
 * unit first and the engine's in turn, and passes over a channel whose last
 * request waits for a refill, so that a channel's requests stay in order. Here
 * a unit asks when its turn in hca_run() comes (commands first, then the
 * engine's queues in turn) and has its answer before the next one asks: no
 * channel can overtake or block another.
 */
#include "request_scheduler.h"

void hca_sched_select(HcaRequestScheduler *sched, HcaV2pChannel channel)
{
    sched->selected = channel;
    sched->counters->requests[channel]++;
}

void hca_sched_pend(HcaRequestScheduler *sched)
{
    sched->pending[sched->selected]++;
    sched->counters->pended[sched->selected]++;
}

void hca_sched_resume(HcaRequestScheduler *sched)
{
    sched->pending[sched->selected]--;
}
