/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ways to the host when they take their time (VirtToPhys document 5.4):
 * dma_read_ctx for lines of the tables, and writes that are posted.
 *
 * What the card writes lies here until it has arrived, in its order, interrupts
 * among it; so nobody sees a completion before its data. The card itself sees
 * what it has written: who reads a place that a write is on its way to has that
 * write, and all before it, arrive.
 */
#include <glib.h>
#include <string.h>

#include "requests.h"

int64_t hca_host_arrival(HcaV2pRequests *r, int64_t *free_at, uint64_t bytes)
{
    *free_at = MAX(*free_at, r->now);
    if (r->bandwidth) {
        *free_at += (bytes * 1000 + r->bandwidth - 1) / r->bandwidth;
    }
    return *free_at + r->latency_ns;
}

/* Lines of the tables */

/* When a line that is asked for now will be there. */
static int64_t line_arrival(HcaV2p *v2p, HcaTptCache *cache, uint64_t line,
                            HcaV2pChannel channel)
{
    HcaV2pRequests *r = v2p->requests;
    int64_t at = hca_host_arrival(r, &r->reads_free_at, HCA_TPT_LINE);
    uint64_t bus;

    if (hca_v2p_line_bus(v2p, cache, line, &bus)) {
        at += hca_dma_delay(v2p, channel, true, false, bus, HCA_TPT_LINE);
    }
    return at;
}

bool hca_fill_begin(HcaV2p *v2p, HcaTptCache *cache, uint64_t line,
                    HcaV2pChannel channel)
{
    HcaV2pRequests *r = v2p->requests;

    if (hca_tpt_cache_awaits(cache, line)) {
        return true; /* another channel's: it is fetched once */
    }
    for (unsigned i = 0; i < HCA_MAX_FILLS; i++) {
        HcaFill *fill = &r->fills[i];

        if (fill->cache) {
            continue;
        }
        if (!hca_tpt_cache_await(cache, line)) {
            return false;
        }
        *fill = (HcaFill) {
            .cache = cache,
            .channel = channel,
            .line = line,
            .ready_at = line_arrival(v2p, cache, line, channel),
        };
        return true;
    }
    return false;
}

void hca_fill_run(HcaV2p *v2p)
{
    HcaV2pRequests *r = v2p->requests;

    for (unsigned i = 0; i < HCA_MAX_FILLS; i++) {
        HcaFill *fill = &r->fills[i];

        if (fill->cache && fill->ready_at <= r->now) {
            v2p->channel = fill->channel;
            hca_tpt_cache_arrive(fill->cache, fill->line);
            fill->cache = NULL;
        }
    }
}

int64_t hca_fill_deadline(const HcaV2pRequests *r)
{
    int64_t at = INT64_MAX;

    for (unsigned i = 0; i < HCA_MAX_FILLS; i++) {
        if (r->fills[i].cache) {
            at = MIN(at, r->fills[i].ready_at);
        }
    }
    return at;
}

/* Posted writes */

#define POSTED_MAX 256

typedef struct Posted {
    int64_t at_ns;
    HcaPlace at;
    uint32_t offset; /* of its bytes */
    uint32_t len;
    bool entry;
    bool interrupt;
    unsigned vector;
} Posted;

struct HcaPosted {
    unsigned head, count;
    uint32_t end; /* of the newest one's bytes */
    Posted slot[POSTED_MAX];
    uint8_t bytes[HCA_POSTED_BYTES];
};

HcaPosted *hca_posted_new(void)
{
    return g_new0(HcaPosted, 1);
}

static Posted *nth(HcaPosted *posted, unsigned n)
{
    return &posted->slot[(posted->head + n) % POSTED_MAX];
}

static Posted *oldest(HcaPosted *posted)
{
    return nth(posted, 0);
}

/* The oldest one arrives. */
static void arrive(HcaV2p *v2p)
{
    HcaPosted *posted = v2p->posted;
    const Posted *write = oldest(posted);

    posted->head = (posted->head + 1) % POSTED_MAX;
    posted->count--;
    if (write->interrupt) {
        hca_v2p_notify(v2p, write->vector);
    } else if (!hca_host_write_now(v2p, write->at,
                                   posted->bytes + write->offset, write->len,
                                   write->entry)) {
        v2p->counters.posted_lost++;
    }
}

/* So many of the oldest do. */
static void arrive_many(HcaV2p *v2p, unsigned n)
{
    while (n--) {
        arrive(v2p);
    }
}

static void arrive_early(HcaV2p *v2p, unsigned n)
{
    v2p->counters.posted_early += n;
    arrive_many(v2p, n);
}

void hca_v2p_settle(HcaV2p *v2p)
{
    if (v2p->posted) {
        arrive_many(v2p, v2p->posted->count);
    }
}

void hca_posted_forget(HcaV2p *v2p)
{
    v2p->posted->head = v2p->posted->count = 0;
}

void hca_posted_run(HcaV2p *v2p, int64_t now)
{
    while (v2p->posted->count && oldest(v2p->posted)->at_ns <= now) {
        arrive(v2p);
    }
}

unsigned hca_posted_count(const HcaV2p *v2p)
{
    return v2p->posted ? v2p->posted->count : 0;
}

int64_t hca_posted_deadline(const HcaV2p *v2p)
{
    return v2p->posted->count ? oldest(v2p->posted)->at_ns : INT64_MAX;
}

/* Where @len bytes find room behind the newest; older ones arrive for it. */
static uint32_t make_room(HcaV2p *v2p, uint32_t len)
{
    HcaPosted *posted = v2p->posted;
    unsigned left = 0;
    uint32_t from;

    if (posted->count == POSTED_MAX) {
        arrive_early(v2p, 1);
    }
    from = len > HCA_POSTED_BYTES - posted->end ? 0 : posted->end;
    for (unsigned i = 0; i < posted->count; i++) {
        const Posted *write = nth(posted, i);

        if (write->offset < from + len && from < write->offset + write->len) {
            left = i + 1;
        }
    }
    arrive_early(v2p, left);
    return from;
}

/* What has had to arrive for want of room is on its way no more. */
static void bound_backlog(HcaV2pRequests *r)
{
    if (r->bandwidth) {
        r->writes_free_at = MIN(
            r->writes_free_at,
            r->now + (int64_t)(HCA_POSTED_BYTES * 1000 / r->bandwidth));
    }
}

static Posted *post(HcaV2p *v2p, uint32_t len)
{
    HcaV2pRequests *r = v2p->requests;
    HcaPosted *posted = v2p->posted;
    uint32_t offset = make_room(v2p, len);
    Posted *write;

    write = nth(posted, posted->count++);
    v2p->counters.posted_peak = MAX(v2p->counters.posted_peak, posted->count);
    posted->end = offset + len;
    r->now = v2p->host.ops->clock_ns(v2p->host.opaque);
    bound_backlog(r);
    *write = (Posted) {
        .at_ns = hca_host_arrival(r, &r->writes_free_at, len),
        .offset = offset,
        .len = len,
    };
    return write;
}

void hca_posted_put(HcaV2p *v2p, HcaPlace at, const void *buf, uint32_t len,
                    bool entry)
{
    Posted *write = post(v2p, len);

    write->at = at;
    write->entry = entry;
    if (!at.dev_mem) {
        write->at_ns += hca_dma_delay(v2p, v2p->channel, v2p->ctx, true,
                                      at.addr, len);
    }
    memcpy(v2p->posted->bytes + write->offset, buf, len);
}

void hca_v2p_interrupt(HcaV2p *v2p, unsigned vector)
{
    Posted *write;

    if (!v2p->requests) {
        hca_v2p_notify(v2p, vector);
        return;
    }
    write = post(v2p, 0);
    write->interrupt = true;
    write->vector = vector;
}

static bool meets(const Posted *write, HcaPlace at, uint64_t len)
{
    return !write->interrupt && write->at.dev_mem == at.dev_mem &&
           (write->at.addr >= at.addr ? write->at.addr - at.addr < len
                                      : at.addr - write->at.addr < write->len);
}

void hca_posted_settle(HcaV2p *v2p, HcaPlace at, uint64_t len)
{
    HcaPosted *posted = v2p->posted;
    unsigned settle = 0;

    for (unsigned i = 0; i < posted->count; i++) {
        if (meets(nth(posted, i), at, len)) {
            settle = i + 1;
        }
    }
    arrive_many(v2p, settle);
}
