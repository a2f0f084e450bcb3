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

typedef struct HcaTptCache HcaTptCache;

/* The table behind a cache, by line number. False: it cannot be reached. */
typedef struct HcaTptBackingOps {
    bool (*refill)(void *opaque, uint64_t line, void *data);
    bool (*write_back)(void *opaque, uint64_t line, const void *data);
    /* What is kept beside a line that is asked for decoded. NULL: none is. */
    void (*decode)(void *opaque, const void *data, void *decoded);
    size_t decoded_size;
} HcaTptBackingOps;

/*
 * @size in bytes and @ways are powers of two, @size at least one line for
 * each way. @counters outlives the cache.
 */
HcaTptCache *hca_tpt_cache_new(uint32_t size, uint32_t ways,
                               const HcaTptBackingOps *ops, void *opaque,
                               HcaTptCacheCounters *counters);
void hca_tpt_cache_free(HcaTptCache *cache);

/*
 * The HCA_TPT_LINE bytes of @line, refilled if they are not here, or NULL if
 * they could not be; then nothing has been replaced. Valid until the next
 * call. What is got for writing is written back later.
 */
const void *hca_tpt_cache_read(HcaTptCache *cache, uint64_t line);
void *hca_tpt_cache_write(HcaTptCache *cache, uint64_t line);
/* The same for reading, decoded: once for as long as the line stays as it is. */
const void *hca_tpt_cache_decoded(HcaTptCache *cache, uint64_t line);

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
