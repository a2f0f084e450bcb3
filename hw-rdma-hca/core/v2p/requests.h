/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests while memory takes its time: the inside of request_scheduler.c,
 * mtt_ram_ctl.c and host_channels.c.
 *
 * A request (HcaV2pAsk, v2p.h) goes one way: from the FIFO of its channel,
 * through the MPT, through the MTT, to the host, and back to who asked. It
 * carries nothing: it is how long the memory that somebody needs is away. When
 * it has been answered that somebody does what it wanted to by the calls of
 * v2p.h, which judge as if nothing had been asked; so a key that has gone
 * meanwhile is an error, and no answer is older than the tables are.
 */
#ifndef HCA_V2P_REQUESTS_H
#define HCA_V2P_REQUESTS_H

#include "v2p_int.h"

/* A line of a table that is on its way: one for each who may wait. */
#define HCA_MAX_FILLS (HCA_V2P_NCHANNELS + HCA_MTT_NPATHS)
typedef struct HcaFill {
    HcaTptCache *cache;    /* NULL: none */
    HcaV2pChannel channel; /* that asked first */
    uint64_t line;
    int64_t ready_at;
} HcaFill;

typedef struct HcaV2pRequests {
    uint64_t latency_ns;
    uint64_t bandwidth; /* bytes in a microsecond, 0: no limit */
    HcaV2pAnswerFn *answer;
    void *opaque;
    int64_t now; /* as of hca_v2p_run() */

    bool answered; /* some, in this run */

    GQueue fifo[HCA_V2P_NCHANNELS];
    HcaV2pAsk *pending[HCA_V2P_NCHANNELS]; /* PendingFIFO (5.2.2.1) */
    unsigned selected; /* Selected Channel Reg: the last one */
    GQueue path[HCA_MTT_NPATHS];
    GQueue away[HCA_MTT_NPATHS]; /* on their way to the host and back */
    HcaFill fills[HCA_MAX_FILLS];
    /* Ways to the host, on which bytes follow each other: when each is free. */
    int64_t reads_free_at, writes_free_at;
} HcaV2pRequests;

/* host_channels.c: when @bytes that are asked for now, by a way, will have come. */
int64_t hca_host_arrival(HcaV2pRequests *r, int64_t *free_at, uint64_t bytes);
/*
 * Have @line come to @cache for @channel, unless it is on its way. False: there
 * is no way for it until another line has come.
 */
bool hca_fill_begin(HcaV2p *v2p, HcaTptCache *cache, uint64_t line,
                    HcaV2pChannel channel);
/* Lines that have come are there; when the next one does. */
void hca_fill_run(HcaV2p *v2p);
int64_t hca_fill_deadline(const HcaV2pRequests *r);

/* mtt_ram_ctl.c: @ask has passed the MPT. */
void hca_mtt_put(HcaV2p *v2p, HcaV2pAsk *ask);
/* Requests at the head of each path go as far as they can. */
void hca_mtt_run(HcaV2p *v2p);

/* request_scheduler.c: who asked may go on. */
void hca_v2p_answer(HcaV2p *v2p, HcaV2pAsk *ask);

/* A request goes to another stage, and what it has waited for is counted. */
void hca_v2p_enter(HcaV2p *v2p, HcaV2pAsk *ask, HcaV2pStage stage);

/* The last of @queue, and the most that were in it. */
static inline void hca_queue_put(GQueue *queue, HcaV2pAsk *ask, uint64_t *peak)
{
    g_queue_push_tail_link(queue, &ask->link);
    *peak = MAX(*peak, queue->length);
}

#endif /* HCA_V2P_REQUESTS_H */
