/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request scheduler (VirtToPhys document 5.2): which channel's request is in
 * hand, and which channels wait for a refill.
 */
#ifndef HCA_REQUEST_SCHEDULER_H
#define HCA_REQUEST_SCHEDULER_H

#include "v2p.h"

/* The Selected Channel and Pend Channel Count registers (5.2.2.1). */
typedef struct HcaRequestScheduler {
    HcaV2pChannel selected;
    uint32_t pending[HCA_V2P_NCHANNELS];
    HcaV2pCounters *counters;
} HcaRequestScheduler;

/* Take a request of @channel in hand. */
void hca_sched_select(HcaRequestScheduler *sched, HcaV2pChannel channel);
/* The request in hand missed a cache; its line has been refilled. */
void hca_sched_pend(HcaRequestScheduler *sched);
void hca_sched_resume(HcaRequestScheduler *sched);

#endif /* HCA_REQUEST_SCHEDULER_H */
