/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TPT cache (VirtToPhys document 5.5): set-associative, write-back, least
 * recently used line replaced. mpt_ram (5.6.3.1) and mtt_ram (5.7.3.1) are two
 * of these.
 */
#ifndef HCA_TPT_CACHE_H
#define HCA_TPT_CACHE_H

#include "v2p.h"

/* Bytes in a line: one MPT entry or eight MTT entries (5.5.1.3). */
#define HCA_TPT_LINE 64

/* The table behind a cache, by line number. False: it cannot be reached. */
typedef struct HcaTptBackingOps {
    bool (*refill)(void *opaque, uint64_t line, void *data);
    bool (*write_back)(void *opaque, uint64_t line, const void *data);
    /* What is kept beside a line that is asked for decoded. NULL: none is. */
    void (*decode)(void *opaque, const void *data, void *decoded);
    size_t decoded_size;
} HcaTptBackingOps;

/* A line, by its number in the table; and how it is. */
typedef struct HcaTptTag {
    uint64_t line;      /* HCA_TPT_NO_LINE: none */
    uint64_t used : 60; /* when, by the cache's clock: LRU order */
    uint64_t dirty : 1;
    /* There is no line: @used is the one that comes, or that did not. */
    uint64_t awaited : 1;
    uint64_t refused : 1;
    uint64_t decoded : 1; /* what is decoded is of this line as it is */
} HcaTptTag;

#define HCA_TPT_NO_LINE UINT64_MAX

/* Here so that a hit, of which each request has two, costs no call. */
typedef struct HcaTptCache {
    uint32_t ways;
    uint32_t set_mask;
    bool peeking;  /* what is not here is not fetched */
    uint32_t used; /* ways that have a line, or are kept for one */
    uint64_t clock;
    HcaTptTag *tags; /* sets of @ways */
    uint8_t (*data)[HCA_TPT_LINE];
    uint8_t *decoded;    /* ops->decoded_size for each line */
    size_t decoded_size; /* the same, at hand */
    const HcaTptBackingOps *ops;
    void *opaque;
    HcaTptCacheCounters *counters;
    HcaTptCacheCounters *sync_counters; /* of what is looked up at once */
} HcaTptCache;

/*
 * @size in bytes and @ways are powers of two, @size at least one line for
 * each way. @counters outlives the cache.
 */
HcaTptCache *hca_tpt_cache_new(uint32_t size, uint32_t ways,
                               const HcaTptBackingOps *ops, void *opaque,
                               HcaTptCacheCounters *counters);
void hca_tpt_cache_free(HcaTptCache *cache);

/* tpt_cache.c: what is missing, and what is not decoded. */
HcaTptTag *hca_tpt_cache_miss(HcaTptCache *cache, uint64_t line);
void hca_tpt_cache_decode(HcaTptCache *cache, HcaTptTag *tag);

/* The way that has @line, or NULL. */
static inline HcaTptTag *hca_tpt_cache_peek(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = &cache->tags[(line & cache->set_mask) * cache->ways];

    for (uint32_t way = cache->ways; way; way--, tag++) {
        if (tag->line == line) {
            return tag;
        }
    }
    return NULL;
}

static inline HcaTptTag *hca_tpt_cache_find(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = hca_tpt_cache_peek(cache, line);

    if (!tag) {
        return hca_tpt_cache_miss(cache, line);
    }
    cache->sync_counters->hits++;
    tag->used = ++cache->clock;
    return tag;
}

/*
 * The HCA_TPT_LINE bytes of @line, refilled if they are not here, or NULL if
 * they could not be, or no line of the set could be written back; then nothing
 * has been replaced. Valid until the next
 * call. What is got for writing is written back later.
 */
static inline const void *hca_tpt_cache_read(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = hca_tpt_cache_find(cache, line);

    return tag ? cache->data[tag - cache->tags] : NULL;
}

void *hca_tpt_cache_write(HcaTptCache *cache, uint64_t line);

/* A dirty line, which is not here; false: its set has no way that is free. */
bool hca_tpt_cache_put(HcaTptCache *cache, uint64_t line, const void *data);

static inline uint32_t hca_tpt_cache_lines(const HcaTptCache *cache)
{
    return (cache->set_mask + 1) * cache->ways;
}

/*
 * A line that takes its time. Look it up, counted, or only see whether it is
 * here; take a way for a line that is not, which what was there leaves (false:
 * its set has to wait; if it never can, none is taken, and the line does not
 * come); and fill that way, if nobody has taken it or forgotten its line
 * meanwhile.
 */
static inline bool hca_tpt_cache_hits(HcaTptCache *cache, uint64_t line)
{
    HcaTptTag *tag = hca_tpt_cache_peek(cache, line);

    if (!tag) {
        cache->counters->misses++;
        return false;
    }
    cache->counters->hits++;
    tag->used = ++cache->clock;
    return true;
}

bool hca_tpt_cache_await(HcaTptCache *cache, uint64_t line);
bool hca_tpt_cache_awaits(HcaTptCache *cache, uint64_t line);
void hca_tpt_cache_arrive(HcaTptCache *cache, uint64_t line);

/* What is decoded of a way that has a line. */
static inline const void *hca_tpt_cache_decoded_of(HcaTptCache *cache,
                                                   HcaTptTag *tag)
{
    if (!tag->decoded) {
        hca_tpt_cache_decode(cache, tag);
    }
    return cache->decoded + (tag - cache->tags) * cache->decoded_size;
}

/* The same for reading, decoded: once for as long as the line stays as it is. */
static inline const void *hca_tpt_cache_decoded(HcaTptCache *cache,
                                                uint64_t line)
{
    HcaTptTag *tag = hca_tpt_cache_find(cache, line);

    return tag ? hca_tpt_cache_decoded_of(cache, tag) : NULL;
}

/*
 * Write back dirty lines, all or those from @first to before @end. False if
 * one was refused; it stays dirty.
 */
bool hca_tpt_cache_sync(HcaTptCache *cache);
bool hca_tpt_cache_flush(HcaTptCache *cache, uint64_t first, uint64_t end);
/* Forget the lines from @first to before @end, dirty ones too. */
void hca_tpt_cache_drop(HcaTptCache *cache, uint64_t first, uint64_t end);
/* Forget all lines, dirty ones too. */
void hca_tpt_cache_clear(HcaTptCache *cache);

#endif /* HCA_TPT_CACHE_H */
