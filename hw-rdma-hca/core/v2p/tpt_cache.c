/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TPT cache (VirtToPhys document 5.5, 5.6.3.1, 5.7.3.1).
 *
 * Departures. The document reads a missing line while requests of other
 * channels go on; here a refill is a copy from mapped memory and happens at
 * once. It calls for write-through in 5.5.1 and write-back in 5.5.2; the rules
 * of the pipeline (5.6.3.1, dirty bits) are those of write-back. A write to a
 * line that is missing refills it first for MTTs only (5.7.3.1); here for MPTs
 * too, so that a table that cannot be reached is found by the command.
 */
#include <glib.h>
#include <string.h>

#include "tpt_cache.h"

typedef struct HcaTptTag {
    uint64_t line;
    uint64_t used; /* when, by the cache's clock: LRU order */
    bool valid;
    bool dirty;
    bool decoded; /* what is decoded is of this line as it is */
} HcaTptTag;

struct HcaTptCache {
    uint32_t ways;
    uint32_t set_mask;
    uint64_t clock;
    HcaTptTag *tags; /* sets of @ways */
    uint8_t (*data)[HCA_TPT_LINE];
    uint8_t *decoded; /* ops->decoded_size for each line */
    const HcaTptBackingOps *ops;
    void *opaque;
    HcaTptCacheCounters *counters;
};

HcaTptCache *hca_tpt_cache_new(uint32_t size, uint32_t ways,
                               const HcaTptBackingOps *ops, void *opaque,
                               HcaTptCacheCounters *counters)
{
    HcaTptCache *cache = g_new0(HcaTptCache, 1);
    uint32_t lines = size / HCA_TPT_LINE;

    cache->ways = ways;
    cache->set_mask = lines / ways - 1;
    cache->tags = g_new0(HcaTptTag, lines);
    cache->data = g_malloc(size);
    cache->decoded = g_malloc_n(lines, ops->decoded_size);
    cache->ops = ops;
    cache->opaque = opaque;
    cache->counters = counters;
    return cache;
}

void hca_tpt_cache_free(HcaTptCache *cache)
{
    g_free(cache->tags);
    g_free(cache->data);
    g_free(cache->decoded);
    g_free(cache);
}

static uint32_t line_count(const HcaTptCache *cache)
{
    return (cache->set_mask + 1) * cache->ways;
}

static HcaTptTag *first_way(const HcaTptCache *cache, uint64_t line)
{
    return &cache->tags[(line & cache->set_mask) * cache->ways];
}

static uint8_t *tag_data(const HcaTptCache *cache, const HcaTptTag *tag)
{
    return cache->data[tag - cache->tags];
}

static HcaTptTag *find_line(const HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = first_way(cache, line);

    for (uint32_t way = 0; way < cache->ways; way++, tag++) {
        if (tag->valid && tag->line == line) {
            return tag;
        }
    }
    return NULL;
}

/* The way to replace: a free one, else the least recently used. */
static HcaTptTag *choose_victim(const HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = first_way(cache, line);
    HcaTptTag *victim = tag;

    for (uint32_t way = 0; way < cache->ways; way++, tag++) {
        if (!tag->valid) {
            return tag;
        }
        if (tag->used < victim->used) {
            victim = tag;
        }
    }
    return victim;
}

static bool write_back(HcaTptCache *cache, HcaTptTag *tag)
{
    if (!tag->valid || !tag->dirty) {
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

/* Select, replace and refill: the third stage of the pipeline. */
static HcaTptTag *refill(HcaTptCache *cache, uint64_t line)
{
    uint8_t data[HCA_TPT_LINE];
    HcaTptTag *tag;

    if (!cache->ops->refill(cache->opaque, line, data)) {
        return NULL;
    }
    cache->counters->refills++;
    tag = choose_victim(cache, line);
    /* A line that its table refuses is lost; it has been counted. */
    write_back(cache, tag);
    memcpy(tag_data(cache, tag), data, sizeof(data));
    tag->line = line;
    tag->valid = true;
    tag->dirty = false;
    tag->decoded = false;
    return tag;
}

static HcaTptTag *lookup(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = find_line(cache, line);

    if (tag) {
        cache->counters->hits++;
    } else {
        cache->counters->misses++;
        tag = refill(cache, line);
        if (!tag) {
            return NULL;
        }
    }
    tag->used = ++cache->clock;
    return tag;
}

const void *hca_tpt_cache_read(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = lookup(cache, line);

    return tag ? tag_data(cache, tag) : NULL;
}

void *hca_tpt_cache_write(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = lookup(cache, line);

    if (!tag) {
        return NULL;
    }
    tag->dirty = true;
    tag->decoded = false;
    return tag_data(cache, tag);
}

const void *hca_tpt_cache_decoded(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = lookup(cache, line);
    void *decoded;

    if (!tag) {
        return NULL;
    }
    decoded = cache->decoded + (tag - cache->tags) * cache->ops->decoded_size;
    if (!tag->decoded) {
        cache->ops->decode(cache->opaque, tag_data(cache, tag), decoded);
        tag->decoded = true;
    }
    return decoded;
}

static bool in_range(const HcaTptTag *tag, uint64_t first, uint64_t end)
{
    return tag->valid && tag->line >= first && tag->line < end;
}

bool hca_tpt_cache_flush(HcaTptCache *cache, uint64_t first, uint64_t end)
{
    bool ok = true;

    for (uint32_t i = 0; i < line_count(cache); i++) {
        if (in_range(&cache->tags[i], first, end)) {
            ok &= write_back(cache, &cache->tags[i]);
        }
    }
    return ok;
}

bool hca_tpt_cache_sync(HcaTptCache *cache)
{
    return hca_tpt_cache_flush(cache, 0, UINT64_MAX);
}

void hca_tpt_cache_drop(HcaTptCache *cache, uint64_t first, uint64_t end)
{
    for (uint32_t i = 0; i < line_count(cache); i++) {
        if (in_range(&cache->tags[i], first, end)) {
            cache->tags[i].valid = false;
        }
    }
}

void hca_tpt_cache_clear(HcaTptCache *cache)
{
    memset(cache->tags, 0, line_count(cache) * sizeof(*cache->tags));
    cache->clock = 0;
}
