/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TPT cache (VirtToPhys document 5.5, 5.6.3.1, 5.7.3.1).
 *
 * A line that is missing while memory takes its time (host_channels.c) has a
 * way kept for it until it comes. Who needs it at once, as the command unit does,
 * has it at once.
 *
 * Departures. The document calls for write-through in 5.5.1 and write-back in
 * 5.5.2; the rules of the pipeline (5.6.3.1, dirty bits) are those of write-back.
 * A write to a line that is missing refills it first for MTTs only (5.7.3.1);
 * here for MPTs too, so that a table that cannot be reached is found by the
 * command.
 */
#include <glib.h>
#include <string.h>

#include "tpt_cache.h"

HcaTptCache *hca_tpt_cache_new(uint32_t size, uint32_t ways,
                               const HcaTptBackingOps *ops, void *opaque,
                               HcaTptCacheCounters *counters)
{
    HcaTptCache *cache = g_new0(HcaTptCache, 1);
    uint32_t lines = size / HCA_TPT_LINE;

    cache->ways = ways;
    cache->set_mask = lines / ways - 1;
    cache->tags = g_new(HcaTptTag, lines);
    cache->data = g_malloc(size);
    cache->decoded = g_malloc_n(lines, ops->decoded_size);
    cache->decoded_size = ops->decoded_size;
    cache->ops = ops;
    cache->opaque = opaque;
    cache->counters = counters;
    cache->sync_counters = counters;
    hca_tpt_cache_clear(cache);
    return cache;
}

void hca_tpt_cache_free(HcaTptCache *cache)
{
    g_free(cache->tags);
    g_free(cache->data);
    g_free(cache->decoded);
    g_free(cache);
}

static HcaTptTag *first_way(const HcaTptCache *cache, uint64_t line)
{
    return &cache->tags[(line & cache->set_mask) * cache->ways];
}

static uint8_t *tag_data(const HcaTptCache *cache, const HcaTptTag *tag)
{
    return cache->data[tag - cache->tags];
}

static bool is_valid(const HcaTptTag *tag)
{
    return tag->line != HCA_TPT_NO_LINE;
}

static bool is_used(const HcaTptTag *tag)
{
    return is_valid(tag) || tag->awaited;
}

/* What @tag's way has from now on. */
static void set_tag(HcaTptCache *cache, HcaTptTag *tag, HcaTptTag now)
{
    cache->used += is_used(&now) - is_used(tag);
    *tag = now;
}

static void empty_tag(HcaTptCache *cache, HcaTptTag *tag)
{
    set_tag(cache, tag, (HcaTptTag) { .line = HCA_TPT_NO_LINE });
}

/* The way that is kept for @line, which was refused, or else comes; or NULL. */
static HcaTptTag *kept_for(const HcaTptCache *cache, uint64_t line,
                           bool refused)
{
    HcaTptTag *tag = first_way(cache, line);

    for (uint32_t way = 0; way < cache->ways; way++, tag++) {
        if ((refused ? tag->refused : tag->awaited) && tag->used == line) {
            return tag;
        }
    }
    return NULL;
}

static HcaTptTag *refused(const HcaTptCache *cache, uint64_t line)
{
    return kept_for(cache, line, true);
}

static HcaTptTag *awaiting(const HcaTptCache *cache, uint64_t line)
{
    return kept_for(cache, line, false);
}

static bool write_back(HcaTptCache *cache, HcaTptTag *tag)
{
    if (!is_valid(tag) || !tag->dirty) {
        return true;
    }
    if (!cache->ops->write_back(cache->opaque, tag->line,
                                tag_data(cache, tag))) {
        cache->counters->write_back_errors++;
        return false;
    }
    cache->counters->write_backs++;
    tag->dirty = false;
    return true;
}

/* A way of @line's set that waits for some line, or NULL. */
static HcaTptTag *some_awaiting(const HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = first_way(cache, line);

    for (uint32_t way = 0; way < cache->ways; way++, tag++) {
        if (tag->awaited) {
            return tag;
        }
    }
    return NULL;
}

/* The way to replace: a free one, else the least recently used, or NULL. */
static HcaTptTag *choose_victim(const HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = first_way(cache, line);
    HcaTptTag *victim = NULL;

    for (uint32_t way = 0; way < cache->ways; way++, tag++) {
        if (tag->awaited) {
            continue;
        }
        if (!is_valid(tag)) {
            return tag;
        }
        if (!victim || tag->used < victim->used) {
            victim = tag;
        }
    }
    return victim;
}

/*
 * A way of @line's set whose line can go. One that its table refuses is the
 * only true form of its entry: it stays, and the next one is tried. NULL: all
 * ways wait for lines, or have such ones.
 */
static HcaTptTag *make_room(HcaTptCache *cache, uint64_t line)
{
    for (uint32_t way = 0; way < cache->ways; way++) {
        HcaTptTag *tag = choose_victim(cache, line);

        if (!tag || write_back(cache, tag)) {
            return tag;
        }
        tag->used = ++cache->clock;
    }
    return NULL;
}

/* Where to put a line that is needed now: first of all where it is awaited. */
static HcaTptTag *choose_way(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = awaiting(cache, line);

    if (!tag) {
        tag = make_room(cache, line);
    }
    return tag ? tag : some_awaiting(cache, line);
}

/* Select, replace and refill: the third stage of the pipeline. */
static HcaTptTag *refill(HcaTptCache *cache, uint64_t line)
{
    uint8_t data[HCA_TPT_LINE];
    HcaTptTag *tag;

    if (!cache->ops->refill(cache->opaque, line, data)) {
        return NULL;
    }
    cache->counters->refills++;
    tag = choose_way(cache, line);
    if (!tag) {
        return NULL;
    }
    memcpy(tag_data(cache, tag), data, sizeof(data));
    set_tag(cache, tag, (HcaTptTag) { .line = line });
    return tag;
}

HcaTptTag *hca_tpt_cache_miss(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag;

    if (cache->peeking) {
        return NULL;
    }
    tag = refused(cache, line);
    cache->sync_counters->misses++;
    if (tag) {
        tag->refused = false;
        return NULL; /* the answer to who waited for it */
    }
    tag = refill(cache, line);
    if (tag) {
        tag->used = ++cache->clock;
    }
    return tag;
}

bool hca_tpt_cache_await(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = make_room(cache, line);

    if (!tag) {
        return !some_awaiting(cache, line);
    }
    set_tag(cache, tag,
            (HcaTptTag) {
                .line = HCA_TPT_NO_LINE,
                .awaited = true,
                .used = line,
            });
    return true;
}

bool hca_tpt_cache_awaits(HcaTptCache *cache, uint64_t line)
{
    return awaiting(cache, line);
}

void hca_tpt_cache_arrive(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = awaiting(cache, line);

    if (tag && !refill(cache, line)) {
        set_tag(cache, tag,
                (HcaTptTag) {
                    .line = HCA_TPT_NO_LINE,
                    .used = line,
                    .refused = true,
                });
    } else if (tag) {
        tag->used = ++cache->clock;
    }
}

void hca_tpt_cache_decode(HcaTptCache *cache, HcaTptTag *tag)
{
    cache->ops->decode(cache->opaque, tag_data(cache, tag),
                       cache->decoded +
                           (tag - cache->tags) * cache->decoded_size);
    tag->decoded = true;
}

void *hca_tpt_cache_write(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = refused(cache, line);

    if (tag) {
        tag->refused = false; /* that was a reader's */
    }
    tag = hca_tpt_cache_find(cache, line);
    if (!tag) {
        return NULL;
    }
    tag->dirty = true;
    tag->decoded = false;
    return tag_data(cache, tag);
}

bool hca_tpt_cache_put(HcaTptCache *cache, uint64_t line, const void *data)
{
    HcaTptTag *tag = choose_victim(cache, line);

    if (!tag || is_used(tag) || hca_tpt_cache_peek(cache, line)) {
        return false;
    }
    memcpy(tag_data(cache, tag), data, HCA_TPT_LINE);
    set_tag(cache, tag,
            (HcaTptTag) {
                .line = line,
                .used = ++cache->clock,
                .dirty = true,
            });
    return true;
}

static bool in_range(const HcaTptTag *tag, uint64_t first, uint64_t end)
{
    return is_valid(tag) && tag->line >= first && tag->line < end;
}

/* The same of a line that comes, or did not. */
static bool is_awaited_in(const HcaTptTag *tag, uint64_t first, uint64_t end)
{
    return (tag->awaited || tag->refused) && tag->used >= first &&
           tag->used < end;
}

/* False: it could not be done to @tag. */
typedef bool TagFn(HcaTptCache *cache, HcaTptTag *tag);

/* Of @n tags from @tag on, those of lines from @first to before @end. */
static bool do_to(HcaTptCache *cache, HcaTptTag *tag, uint32_t n,
                  uint64_t first, uint64_t end, TagFn *fn)
{
    bool ok = true;

    for (; n; n--, tag++) {
        if (in_range(tag, first, end) || is_awaited_in(tag, first, end)) {
            ok &= fn(cache, tag);
        }
    }
    return ok;
}

/* The sets of those lines; or all of them, if there are not more. */
static bool do_to_range(HcaTptCache *cache, uint64_t first, uint64_t end,
                        TagFn *fn)
{
    uint32_t lines = hca_tpt_cache_lines(cache);
    bool ok = true;

    if (first < end && end - first >= lines / cache->ways) {
        return do_to(cache, cache->tags, lines, first, end, fn);
    }
    for (uint64_t line = first; line < end; line++) {
        ok &= do_to(cache, first_way(cache, line), cache->ways, line, line + 1,
                    fn);
    }
    return ok;
}

bool hca_tpt_cache_flush(HcaTptCache *cache, uint64_t first, uint64_t end)
{
    return do_to_range(cache, first, end, write_back);
}

bool hca_tpt_cache_sync(HcaTptCache *cache)
{
    return hca_tpt_cache_flush(cache, 0, UINT64_MAX);
}

static bool drop(HcaTptCache *cache, HcaTptTag *tag)
{
    empty_tag(cache, tag);
    return true;
}

void hca_tpt_cache_drop(HcaTptCache *cache, uint64_t first, uint64_t end)
{
    do_to_range(cache, first, end, drop);
}

void hca_tpt_cache_clear(HcaTptCache *cache)
{
    for (uint32_t i = 0; i < hca_tpt_cache_lines(cache); i++) {
        cache->tags[i] = (HcaTptTag) { .line = HCA_TPT_NO_LINE };
    }
    cache->used = 0;
    cache->clock = 0;
}
