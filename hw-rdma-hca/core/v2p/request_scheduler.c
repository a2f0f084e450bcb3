/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request Scheduler and mpt_ram_ctl (VirtToPhys document 5.2, 5.6.3.2).
 *
 * The command unit first, then the engine's channels in turn, but none whose
 * last request waits for its MPT entry: that would overtake it. So a miss holds
 * up its channel, and no other.
 *
 * Departure from 5.2.2.1: a channel has one request in the PendingFIFO at most,
 * which is what the rule comes to.
 */
#include <glib.h>
#include <string.h>

#include "../trace_events.h"
#include "requests.h"

/* In HcaV2pAsk.since: it only waits for the card's turn. */
#define NO_WAIT INT64_MAX

void hca_v2p_enter(HcaV2p *v2p, HcaV2pAsk *ask, HcaV2pStage stage)
{
    HcaV2pRequests *r = v2p->requests;
    HcaV2pWaits *waits = &v2p->counters.waits[ask->channel];

    if (r->now > ask->since) { /* so it is on its way */
        unsigned cause = ask->stage - HCA_V2P_QUEUED;

        waits->times[cause]++;
        waits->ns[cause] += r->now - ask->since;
    }
    hca_host_trace(&v2p->host, HCA_TRACE_V2P_REQUEST, ask->channel, ask->stage,
                   stage, ask->info.key);
    ask->since = r->now;
    ask->stage = stage;
}

void hca_v2p_answer(HcaV2p *v2p, HcaV2pAsk *ask)
{
    hca_v2p_enter(v2p, ask, HCA_V2P_ANSWERED);
    v2p->requests->answered = true;
    v2p->requests->answer(v2p->requests->opaque, ask);
}

/* mpt_hit_proc: the checks, and the entries of the MTT that it takes. */
static void mpt_hit(HcaV2p *v2p, HcaV2pAsk *ask)
{
    const HcaRegion *region = hca_v2p_peek_region(v2p, ask->info.key);
    const HcaMpt *mpt = &region->mpt;
    uint64_t offset, first, last;

    if (ask->use == HCA_V2P_CHECK || !ask->info.len ||
        hca_mpt_check(region, &ask->info, &offset) != HCA_V2P_SUCCESS ||
        mpt->null) {
        hca_v2p_answer(v2p, ask);
        return;
    }
    ask->mtt = ask->mtt_end = 0;
    if (!mpt->physical && !mpt->pieces) {
        first = (region->base + offset) >> mpt->page_shift;
        last = (region->base + offset + ask->info.len - 1) >> mpt->page_shift;
        if (mpt->mtt_seg >= v2p->nmtts || last >= v2p->nmtts - mpt->mtt_seg) {
            hca_v2p_answer(v2p, ask);
            return;
        }
        ask->mtt = mpt->mtt_seg + first;
        ask->mtt_end = mpt->mtt_seg + last + 1;
    }
    hca_mtt_put(v2p, ask);
}

/* mpt_miss_proc */
static void mpt_miss(HcaV2p *v2p, HcaV2pAsk *ask, uint32_t index)
{
    HcaV2pRequests *r = v2p->requests;

    v2p->counters.pended[ask->channel]++;
    r->pending[ask->channel] = ask;
    hca_v2p_enter(v2p, ask, HCA_V2P_MPT_MISS);
    ask->has_way = hca_fill_begin(v2p, v2p->mpt_ram, index, ask->channel);
}

/* mpt_lookup */
static void mpt_lookup(HcaV2p *v2p, HcaV2pAsk *ask)
{
    uint32_t index;

    if (ask->info.flags & HCA_V2P_BUS_ADDR) {
        ask->mtt = ask->mtt_end = 0;
        hca_mtt_put(v2p, ask);
    } else if (!hca_v2p_owns(v2p, ask->info.key, &index)) {
        hca_v2p_answer(v2p, ask);
    } else if (hca_tpt_cache_hits(v2p->mpt_ram, index)) {
        mpt_hit(v2p, ask);
    } else {
        mpt_miss(v2p, ask, index);
    }
}

/*
 * mpt_rsp_proc: the entry has come; or it never will, for the table cannot be
 * read or the region has gone, which who asked finds out by itself.
 */
static void mpt_response(HcaV2p *v2p, HcaV2pAsk *ask)
{
    HcaV2pRequests *r = v2p->requests;
    uint32_t index;
    bool owned = hca_v2p_owns(v2p, ask->info.key, &index);
    bool here = owned && hca_tpt_cache_peek(v2p->mpt_ram, index);

    if (owned && !here) {
        if (!ask->has_way) {
            ask->has_way = hca_fill_begin(v2p, v2p->mpt_ram, index,
                                          ask->channel);
            return;
        }
        if (hca_tpt_cache_awaits(v2p->mpt_ram, index)) {
            return;
        }
    }
    r->pending[ask->channel] = NULL;
    if (here) {
        mpt_hit(v2p, ask);
    } else {
        hca_v2p_answer(v2p, ask);
    }
}

static bool may_go(const HcaV2pRequests *r, unsigned channel)
{
    return r->fifo[channel].length && !r->pending[channel];
}

/* The channel whose request is next; NCHANNELS: none. */
static unsigned select_channel(HcaV2pRequests *r)
{
    if (may_go(r, HCA_V2P_CEU)) {
        return HCA_V2P_CEU;
    }
    for (unsigned i = 0; i < HCA_V2P_NCHANNELS; i++) {
        r->selected = (r->selected + 1) % HCA_V2P_NCHANNELS;
        if (may_go(r, r->selected)) {
            return r->selected;
        }
    }
    return HCA_V2P_NCHANNELS;
}

/* Those that are left wait for the one of their channel that has missed. */
static void begin_waits(HcaV2pRequests *r)
{
    for (unsigned i = 0; i < HCA_V2P_NCHANNELS; i++) {
        for (GList *l = r->fifo[i].tail; l; l = l->prev) {
            HcaV2pAsk *ask = l->data;

            if (ask->since != NO_WAIT) {
                break; /* so do all before it */
            }
            ask->since = r->now;
        }
    }
}

static void schedule(HcaV2p *v2p)
{
    HcaV2pRequests *r = v2p->requests;
    unsigned channel;

    for (unsigned i = 0; i < HCA_V2P_NCHANNELS; i++) {
        if (r->pending[i]) {
            mpt_response(v2p, r->pending[i]);
        }
    }
    while ((channel = select_channel(r)) != HCA_V2P_NCHANNELS) {
        mpt_lookup(v2p, g_queue_pop_head_link(&r->fifo[channel])->data);
    }
    begin_waits(r);
}

bool hca_v2p_run(HcaV2p *v2p)
{
    HcaV2pRequests *r = v2p->requests;

    hca_late_interrupts_run(v2p);
    if (!r) {
        return false;
    }
    r->answered = false;
    r->now = v2p->host.ops->clock_ns(v2p->host.opaque);
    hca_posted_run(v2p, r->now);
    hca_fill_run(v2p);
    schedule(v2p);
    hca_mtt_run(v2p);
    return r->answered;
}

int64_t hca_v2p_deadline(const HcaV2p *v2p)
{
    const HcaV2pRequests *r = v2p->requests;
    int64_t at = hca_late_interrupts_deadline(v2p);

    if (!r) {
        return at;
    }
    at = MIN(at, hca_fill_deadline(r));
    at = MIN(at, hca_posted_deadline(v2p));
    for (unsigned i = 0; i < HCA_MTT_NPATHS; i++) {
        if (r->away[i].head) {
            const HcaV2pAsk *ask = r->away[i].head->data;

            at = MIN(at, ask->ready_at);
        }
    }
    return at;
}

/* Who asks */

static bool same(const HcaV2pAsk *ask, HcaV2pChannel channel, HcaV2pUse use,
                 const HcaMatchInfo *info)
{
    return ask->channel == channel && ask->use == use &&
           ask->info.key == info->key && ask->info.va == info->va &&
           ask->info.len == info->len;
}

static void begin(HcaV2p *v2p, HcaV2pAsk *ask, HcaV2pChannel channel,
                  HcaV2pUse use, const HcaMatchInfo *info)
{
    HcaV2pRequests *r = v2p->requests;

    ask->link.data = ask;
    ask->channel = channel;
    ask->use = use;
    ask->info = *info;
    r->now = v2p->host.ops->clock_ns(v2p->host.opaque);
    ask->since = NO_WAIT;
    hca_v2p_enter(v2p, ask, HCA_V2P_QUEUED);
    if (!r->pending[channel]) {
        ask->since = NO_WAIT;
    }
    hca_queue_put(&r->fifo[channel], ask, &v2p->counters.fifo_peak[channel]);
}

/* It is on its way no more, and asks for nothing. */
static void give_up(HcaV2p *v2p, HcaV2pAsk *ask)
{
    HcaV2pRequests *r = v2p->requests;

    if (hca_v2p_ask_waits(ask)) {
        v2p->counters.forgotten++;
    }
    switch (ask->stage) {
    case HCA_V2P_QUEUED:
        g_queue_unlink(&r->fifo[ask->channel], &ask->link);
        break;
    case HCA_V2P_MPT_MISS:
        r->pending[ask->channel] = NULL;
        break;
    case HCA_V2P_MTT_QUEUED:
    case HCA_V2P_MTT_MISS:
        g_queue_unlink(&r->path[ask->path], &ask->link);
        break;
    case HCA_V2P_DMA:
        g_queue_unlink(&r->away[ask->path], &ask->link);
        break;
    default: /* not on its way */
        break;
    }
    ask->stage = HCA_V2P_IDLE;
}

bool hca_v2p_ask(HcaV2p *v2p, HcaV2pAsk *ask, unsigned nth,
                 HcaV2pChannel channel, HcaV2pUse use, const HcaMatchInfo *info)
{
    if (!v2p->requests || nth < ask->answered) {
        return true;
    }
    /* Whatever it was: who changes his mind each time would never go on. */
    if (ask->stage == HCA_V2P_ANSWERED) {
        ask->stage = HCA_V2P_IDLE;
        ask->answered = nth + 1;
        return true;
    }
    if (ask->stage != HCA_V2P_IDLE && !same(ask, channel, use, info)) {
        give_up(v2p, ask); /* it is another step by now */
    }
    if (ask->stage == HCA_V2P_IDLE) {
        begin(v2p, ask, channel, use, info);
    }
    return false;
}

void hca_v2p_ask_forget(HcaV2p *v2p, HcaV2pAsk *ask)
{
    give_up(v2p, ask);
    ask->answered = 0;
}

void hca_v2p_set_late(HcaV2p *v2p, uint64_t latency_ns, uint64_t bandwidth,
                      HcaV2pAnswerFn *answer, void *opaque)
{
    HcaV2pRequests *r;

    if (v2p->requests) {
        return;
    }
    r = g_new0(HcaV2pRequests, 1);
    r->latency_ns = latency_ns;
    r->bandwidth = bandwidth;
    r->answer = answer;
    r->opaque = opaque;
    v2p->requests = r;
    v2p->posted = hca_posted_new();
    /* What the units do when they have been answered is no look-up more. */
    v2p->mpt_ram->sync_counters = v2p->mtt_ram->sync_counters = &v2p->unseen;
}

static void forget_queue(GQueue *queue)
{
    GList *l;

    while ((l = g_queue_pop_head_link(queue))) {
        HcaV2pAsk *ask = l->data;

        ask->stage = HCA_V2P_IDLE;
        ask->answered = 0;
    }
}

void hca_v2p_forget_asks(HcaV2p *v2p)
{
    HcaV2pRequests *r = v2p->requests;

    if (!r) {
        return;
    }
    for (unsigned i = 0; i < HCA_V2P_NCHANNELS; i++) {
        forget_queue(&r->fifo[i]);
        if (r->pending[i]) {
            hca_v2p_ask_forget(v2p, r->pending[i]);
        }
    }
    for (unsigned i = 0; i < HCA_MTT_NPATHS; i++) {
        forget_queue(&r->path[i]);
        forget_queue(&r->away[i]);
    }
    memset(r->fills, 0, sizeof(r->fills));
    r->reads_free_at = r->writes_free_at = 0;
    hca_posted_forget(v2p);
}
