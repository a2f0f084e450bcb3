/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VirtToPhys (its document 4, 5.5.3, 5.8): the unit assembled, and the way of
 * a request from key and virtual address to memory: MPT entry, checks, then
 * page by page through the MTT (the MPT parser's splitting, 5.8).
 */
#include <glib.h>
#include <string.h>

#include "requests.h"

/* Number of a table's line @line at card-virtual @base, from or to ICM. */
static bool icm_line(HcaV2p *v2p, uint64_t base, uint64_t line, uint64_t *bus)
{
    return hca_mdata_lookup(v2p->mdata, base + line * HCA_TPT_LINE, bus);
}

static bool read_line(HcaV2p *v2p, uint64_t base, uint64_t line, void *data)
{
    uint64_t bus;

    if (!v2p->requests) {
        v2p->counters.pended[v2p->channel]++;
    }
    return icm_line(v2p, base, line, &bus) &&
           hca_host_read_line(v2p, bus, data);
}

static bool write_line(HcaV2p *v2p, uint64_t base, uint64_t line,
                       const void *data)
{
    uint64_t bus;

    return icm_line(v2p, base, line, &bus) &&
           hca_host_write_line(v2p, bus, data);
}

bool hca_v2p_line_bus(HcaV2p *v2p, const HcaTptCache *cache, uint64_t line,
                      uint64_t *bus)
{
    return icm_line(v2p, cache == v2p->mpt_ram ? v2p->mpt_base : v2p->mtt_base,
                    line, bus);
}

static bool mpt_refill(void *opaque, uint64_t line, void *data)
{
    HcaV2p *v2p = opaque;

    return read_line(v2p, v2p->mpt_base, line, data);
}

static bool mpt_write_back(void *opaque, uint64_t line, const void *data)
{
    HcaV2p *v2p = opaque;

    return write_line(v2p, v2p->mpt_base, line, data);
}

static bool mtt_refill(void *opaque, uint64_t line, void *data)
{
    HcaV2p *v2p = opaque;

    return read_line(v2p, v2p->mtt_base, line, data);
}

static bool mtt_write_back(void *opaque, uint64_t line, const void *data)
{
    HcaV2p *v2p = opaque;

    return write_line(v2p, v2p->mtt_base, line, data);
}

static void mpt_decode(void *opaque, const void *data, void *decoded)
{
    HcaV2p *v2p = opaque;
    HcaRegion *region = decoded;

    v2p->format->decode(&region->mpt, data);
    hca_region_init(region);
}

static const HcaTptBackingOps mpt_backing = {
    .refill = mpt_refill,
    .write_back = mpt_write_back,
    .decode = mpt_decode,
    .decoded_size = sizeof(HcaRegion),
};
static const HcaTptBackingOps mtt_backing = {
    .refill = mtt_refill,
    .write_back = mtt_write_back,
};

static size_t owned_words(const HcaV2p *v2p)
{
    return ((UINT64_C(1) << v2p->max_log_mpts) + 63) / 64;
}

HcaV2p *hca_v2p_new(const HcaMptFormat *format, const HcaHost *host,
                    unsigned log_mpts, unsigned log_mtts,
                    uint32_t mpt_cache_size, uint32_t mtt_cache_size,
                    uint32_t ways)
{
    HcaV2p *v2p = g_new0(HcaV2p, 1);

    v2p->format = format;
    v2p->host = *host;
    v2p->max_log_mpts = log_mpts;
    v2p->nmtts = format->mtts_are_software
                     ? ((uint64_t)HCA_ICM_MAX_PAGES << HCA_ICM_PAGE_SHIFT) /
                           HCA_MTT_SIZE
                     : UINT64_C(1) << log_mtts;
    v2p->mdata = hca_mdata_new(HCA_ICM_MAX_PAGES);
    v2p->mpt_ram = hca_tpt_cache_new(mpt_cache_size, ways, &mpt_backing, v2p,
                                     &v2p->counters.mpt);
    v2p->mtt_ram = hca_tpt_cache_new(mtt_cache_size, ways, &mtt_backing, v2p,
                                     &v2p->counters.mtt);
    v2p->owned = g_new0(uint64_t, owned_words(v2p));
    return v2p;
}

void hca_v2p_set_dev_mem(HcaV2p *v2p, void *mem, uint64_t size)
{
    v2p->dev_mem = mem;
    v2p->dev_mem_size = size;
}

void hca_v2p_set_faults(HcaV2p *v2p, HcaHostFaults *faults)
{
    v2p->faults = faults;
    v2p->late_interrupts = hca_late_interrupts_new();
}

void hca_v2p_free(HcaV2p *v2p)
{
    g_free(v2p->requests);
    g_free(v2p->posted);
    g_free(v2p->late_interrupts);
    hca_tpt_cache_free(v2p->mpt_ram);
    hca_tpt_cache_free(v2p->mtt_ram);
    hca_mdata_free(v2p->mdata);
    g_free(v2p->owned);
    g_free(v2p);
}

void hca_v2p_forget(HcaV2p *v2p)
{
    hca_tpt_cache_clear(v2p->mpt_ram);
    hca_tpt_cache_clear(v2p->mtt_ram);
    memset(v2p->owned, 0, owned_words(v2p) * sizeof(*v2p->owned));
    v2p->live_mpts = 0;
    v2p->bound_windows = 0;
    v2p->ready = false;
}

void hca_v2p_reset(HcaV2p *v2p)
{
    hca_v2p_forget_asks(v2p);
    hca_late_interrupts_forget(v2p);
    hca_v2p_forget(v2p);
    hca_mdata_clear(v2p->mdata);
    memset(&v2p->counters, 0, sizeof(v2p->counters));
}

uint32_t hca_v2p_live_mpts(const HcaV2p *v2p)
{
    return v2p->live_mpts;
}

uint64_t hca_v2p_live_pages(const HcaV2p *v2p)
{
    return hca_mdata_pages(v2p->mdata);
}

const HcaV2pCounters *hca_v2p_counters(const HcaV2p *v2p)
{
    return &v2p->counters;
}

void hca_v2p_begin_share(HcaV2p *v2p)
{
    v2p->share_end = v2p->counters.pieces + HCA_V2P_SHARE_PIECES;
}

bool hca_v2p_share_is_over(const HcaV2p *v2p)
{
    return v2p->counters.pieces >= v2p->share_end;
}

/* A request that has passed its checks, and how far it has come. */
typedef struct HcaWalk {
    const HcaMpt *mpt; /* in the cache, of which a walk asks no other */
    uint64_t at;       /* from the region's first page or piece, or PHYSICAL */
    uint32_t left;
    uint32_t piece;       /* PIECES: the next one, if it is known, */
    uint64_t piece_start; /* and where it begins */
    bool piece_known;
} HcaWalk;

static bool is_physical(const HcaWalk *walk)
{
    return walk->mpt->physical;
}

/* Whether what is left of a request has no memory. */
static bool is_null(const HcaWalk *walk)
{
    return walk->left && walk->mpt->null;
}

static const HcaRegion *find_region(HcaV2p *v2p, uint32_t key)
{
    uint32_t index;

    return hca_v2p_owns(v2p, key, &index)
               ? hca_tpt_cache_decoded(v2p->mpt_ram, index)
               : NULL;
}

const HcaRegion *hca_v2p_peek_region(HcaV2p *v2p, uint32_t key)
{
    HcaTptCache *cache = v2p->mpt_ram;

    return hca_tpt_cache_decoded_of(
        cache, hca_tpt_cache_peek(cache, hca_mpt_index(v2p, key)));
}

const HcaMpt *hca_v2p_find_mpt(HcaV2p *v2p, uint32_t key)
{
    const HcaRegion *region = find_region(v2p, key);

    return region ? &region->mpt : NULL;
}

/* What has bus addresses for all that it asks for. */
static const HcaMpt the_bus = { .region = true, .physical = true };

/* Judge a request. With @info->len 0 there is nothing to judge. */
static HcaV2pState judge(HcaV2p *v2p, const HcaMatchInfo *info, HcaWalk *walk)
{
    const HcaRegion *region;
    HcaV2pState state;
    uint64_t offset;

    walk->left = info->len;
    if (!info->len) {
        return HCA_V2P_SUCCESS;
    }
    if (info->flags & HCA_V2P_BUS_ADDR) {
        walk->mpt = &the_bus;
        walk->at = info->va;
        return HCA_V2P_SUCCESS;
    }
    region = find_region(v2p, info->key);
    if (!region) {
        return HCA_V2P_KEY_ERR;
    }
    state = hca_mpt_check(region, info, &offset);
    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    walk->mpt = &region->mpt;
    walk->at = region->base + offset;
    walk->piece_known = false;
    return HCA_V2P_SUCCESS;
}

static HcaV2pState begin(HcaV2p *v2p, HcaV2pChannel channel,
                         const HcaMatchInfo *info, HcaWalk *walk)
{
    hca_v2p_select(v2p, channel);
    return judge(v2p, info, walk);
}

static HcaV2pState end(HcaV2p *v2p, HcaV2pState state)
{
    v2p->counters.failed[state]++;
    return state;
}

/* MTT entry @n of a region. */
static HcaV2pState find_mtt(HcaV2p *v2p, const HcaMpt *mpt, uint64_t n,
                            uint64_t *entry)
{
    uint64_t index;
    const uint64_t *line;

    if ((mpt->mtt_sz && n >= mpt->mtt_sz) || mpt->mtt_seg >= v2p->nmtts ||
        n >= v2p->nmtts - mpt->mtt_seg) {
        return HCA_V2P_LENGTH_ERR;
    }
    index = mpt->mtt_seg + n;
    line = hca_tpt_cache_read(v2p->mtt_ram, index / HCA_MTTS_PER_LINE);
    if (!line) {
        return HCA_V2P_DMA_ERR;
    }
    *entry = GUINT64_FROM_BE(line[index % HCA_MTTS_PER_LINE]);
    return HCA_V2P_SUCCESS;
}

/* Bus address of page @page of a region. */
static HcaV2pState find_page(HcaV2p *v2p, const HcaMpt *mpt, uint64_t page,
                             uint64_t *bus)
{
    uint64_t present = v2p->format->mtt_present;
    HcaV2pState state = find_mtt(v2p, mpt, page, bus);

    if (state == HCA_V2P_SUCCESS && (*bus & present) != present) {
        return HCA_V2P_DMA_ERR;
    }
    /* Multiples of 4 KiB for pages of any size; the low bits are flags. */
    if (state == HCA_V2P_SUCCESS) {
        *bus &= ~((UINT64_C(1) << HCA_MPT_PAGE_SHIFT_MIN) - 1);
    }
    return state;
}

/* Pieces: pairs of MTT entries. */

static HcaV2pState find_piece_end(HcaV2p *v2p, const HcaMpt *mpt, uint32_t n,
                                  uint64_t *end)
{
    v2p->counters.pieces++;
    return find_mtt(v2p, mpt, 2 * (uint64_t)n + 1, end);
}

/* The piece that walk->at lies in: the first one that ends behind it. */
static HcaV2pState search_piece(HcaV2p *v2p, HcaWalk *walk)
{
    uint32_t low = 0, high = walk->mpt->npieces;
    HcaV2pState state = HCA_V2P_SUCCESS;

    while (low < high && state == HCA_V2P_SUCCESS) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t end = 0;

        state = find_piece_end(v2p, walk->mpt, middle, &end);
        if (end > walk->at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    walk->piece = low;
    walk->piece_start = 0;
    walk->piece_known = true;
    if (state == HCA_V2P_SUCCESS && low) {
        state = find_piece_end(v2p, walk->mpt, low - 1, &walk->piece_start);
    }
    return state;
}

/* What is left of the request in its next piece. */
static HcaV2pState next_piece(HcaV2p *v2p, HcaWalk *walk, uint64_t *bus,
                              uint32_t *len)
{
    HcaV2pState state = HCA_V2P_SUCCESS;
    uint64_t end;

    if (!walk->piece_known) {
        state = search_piece(v2p, walk);
    }
    if (state == HCA_V2P_SUCCESS && walk->piece >= walk->mpt->npieces) {
        state = HCA_V2P_LENGTH_ERR;
    }
    if (state == HCA_V2P_SUCCESS) {
        state = find_mtt(v2p, walk->mpt, 2 * (uint64_t)walk->piece, bus);
    }
    if (state == HCA_V2P_SUCCESS) {
        state = find_piece_end(v2p, walk->mpt, walk->piece, &end);
    }
    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    if (walk->at < walk->piece_start || end <= walk->at) {
        return HCA_V2P_LENGTH_ERR; /* they do not ascend */
    }
    *bus += walk->at - walk->piece_start;
    *len = MIN(walk->left, end - walk->at);
    walk->piece++;
    walk->piece_start = end;
    return HCA_V2P_SUCCESS;
}

/* The same in its next page. */
static HcaV2pState next_page(HcaV2p *v2p, HcaWalk *walk, uint64_t *bus,
                             uint32_t *len)
{
    uint64_t page_size = UINT64_C(1) << walk->mpt->page_shift;
    uint64_t offset = walk->at & (page_size - 1);
    HcaV2pState state = find_page(v2p, walk->mpt,
                                  walk->at >> walk->mpt->page_shift, bus);

    *bus += offset;
    *len = MIN(walk->left, page_size - offset);
    return state;
}

/*
 * The next piece, up to the end of its page: *@place and *@len. Call while
 * walk->left is not 0.
 */
static HcaV2pState next(HcaV2p *v2p, HcaWalk *walk, HcaPlace *place,
                        uint32_t *len)
{
    HcaV2pState state;

    place->dev_mem = walk->mpt->dev_mem;
    if (is_physical(walk)) {
        place->addr = walk->at;
        *len = walk->left;
    } else {
        state = walk->mpt->pieces ? next_piece(v2p, walk, &place->addr, len)
                                  : next_page(v2p, walk, &place->addr, len);
        if (state != HCA_V2P_SUCCESS) {
            return state;
        }
    }
    if (*len - 1 > UINT64_MAX - place->addr) {
        return HCA_V2P_DMA_ERR;
    }
    walk->at += *len;
    walk->left -= *len;
    return HCA_V2P_SUCCESS;
}

HcaV2pState hca_v2p_check(HcaV2p *v2p, HcaV2pChannel channel,
                          const HcaMatchInfo *info)
{
    HcaWalk walk;

    return end(v2p, begin(v2p, channel, info, &walk));
}

HcaV2pState hca_v2p_check_flush(HcaV2p *v2p, HcaV2pChannel channel,
                                const HcaMatchInfo *info, bool whole)
{
    HcaMatchInfo match = *info;
    const HcaRegion *region;
    uint64_t offset;

    hca_v2p_select(v2p, channel);
    region = find_region(v2p, info->key);
    if (!region) {
        return end(v2p, HCA_V2P_KEY_ERR);
    }
    if (whole) {
        match.va = region->mpt.access & HCA_ACCESS_ZERO_BASED
                       ? 0
                       : region->mpt.start;
        match.len = 0;
    }
    return end(v2p, hca_mpt_check(region, &match, &offset));
}

/* Pieces of a list of memory that is being made. */
typedef struct HcaPieces {
    struct iovec *iov;
    unsigned room;
    unsigned used;
} HcaPieces;

static bool add_piece(HcaPieces *pieces, void *p, uint64_t len)
{
    if (pieces->used) {
        struct iovec *last = &pieces->iov[pieces->used - 1];

        if ((uint8_t *)last->iov_base + last->iov_len == p) {
            last->iov_len += len;
            return true;
        }
    }
    if (pieces->used == pieces->room) {
        return false;
    }
    pieces->iov[pieces->used++] = (struct iovec) { p, len };
    return true;
}

static HcaV2pState map_place(HcaV2p *v2p, HcaPlace at, uint64_t left,
                             HcaPieces *pieces)
{
    while (left) {
        uint64_t len = left;
        void *p = hca_host_map(v2p, at, &len);

        if (!p) {
            return HCA_V2P_DMA_ERR;
        }
        if (!add_piece(pieces, p, len)) {
            return HCA_V2P_LENGTH_ERR;
        }
        at.addr += len;
        left -= len;
    }
    return HCA_V2P_SUCCESS;
}

/* What is left of a request goes to @to. */
static HcaV2pState read_walk(HcaV2p *v2p, HcaWalk *walk, uint8_t *to)
{
    HcaV2pState state = HCA_V2P_SUCCESS;
    HcaPlace at;
    uint32_t len;

    if (is_null(walk)) {
        memset(to, 0, walk->left);
        return HCA_V2P_SUCCESS;
    }
    while (state == HCA_V2P_SUCCESS && walk->left) {
        state = next(v2p, walk, &at, &len);
        if (state == HCA_V2P_SUCCESS) {
            if (!hca_host_read(v2p, at, to, len)) {
                state = HCA_V2P_DMA_ERR;
            }
            to += len;
        }
    }
    return state;
}

/*
 * What has no memory, or is in pieces of which there may be more than places
 * for them: a copy.
 */
static HcaV2pState map_copy(HcaV2p *v2p, HcaWalk *walk, HcaPieces *pieces)
{
    uint32_t len = walk->left;
    HcaV2pState state;
    uint8_t *copy;

    if (len > HCA_V2P_MAX_MAP) {
        return HCA_V2P_LENGTH_ERR;
    }
    if (len > sizeof(v2p->copies) - v2p->copies_at) {
        v2p->copies_at = 0;
    }
    copy = v2p->copies + v2p->copies_at;
    v2p->copies_at += len;
    state = read_walk(v2p, walk, copy);
    if (state == HCA_V2P_SUCCESS && !add_piece(pieces, copy, len)) {
        state = HCA_V2P_LENGTH_ERR;
    }
    walk->left = 0;
    return state;
}

static bool needs_copy(const HcaWalk *walk)
{
    return walk->left && (walk->mpt->pieces || walk->mpt->null);
}

HcaV2pState hca_v2p_map(HcaV2p *v2p, HcaV2pChannel channel,
                        const HcaMatchInfo *info, struct iovec *iov,
                        unsigned *iovcnt)
{
    HcaPieces pieces = { iov, *iovcnt, 0 };
    HcaWalk walk;
    HcaV2pState state = begin(v2p, channel, info, &walk);
    bool copied = state == HCA_V2P_SUCCESS && needs_copy(&walk);
    HcaPlace at = { 0 };
    uint32_t len;

    if (copied) {
        state = map_copy(v2p, &walk, &pieces);
    }
    while (state == HCA_V2P_SUCCESS && walk.left) {
        state = next(v2p, &walk, &at, &len);
        if (state == HCA_V2P_SUCCESS) {
            state = map_place(v2p, at, len, &pieces);
        }
    }
    if (state == HCA_V2P_SUCCESS && !copied) {
        hca_host_mapped(v2p, at.dev_mem, pieces.used, info->len);
    }
    *iovcnt = pieces.used;
    return end(v2p, state);
}

HcaV2pState hca_v2p_read(HcaV2p *v2p, HcaV2pChannel channel,
                         const HcaMatchInfo *info, void *buf)
{
    HcaWalk walk;
    HcaV2pState state = begin(v2p, channel, info, &walk);

    if (state == HCA_V2P_SUCCESS) {
        state = read_walk(v2p, &walk, buf);
    }
    return end(v2p, state);
}

/* Look-ups find what is in the caches, and change nothing. */
static void set_peeking(HcaV2p *v2p, bool peeking)
{
    v2p->peeking = peeking;
    v2p->mpt_ram->peeking = v2p->mtt_ram->peeking = peeking;
}

HcaV2pState hca_v2p_peek(HcaV2p *v2p, const HcaMatchInfo *info, void *buf)
{
    HcaWalk walk;
    HcaV2pState state;

    set_peeking(v2p, true);
    state = judge(v2p, info, &walk);
    if (state == HCA_V2P_SUCCESS) {
        state = read_walk(v2p, &walk, buf);
    }
    set_peeking(v2p, false);
    return state;
}

uint64_t hca_v2p_delay(HcaV2p *v2p, HcaV2pChannel channel, bool is_write,
                       const HcaMatchInfo *info)
{
    uint64_t delay = 0, piece;
    HcaV2pState state;
    HcaWalk walk;
    HcaPlace at;
    uint32_t len;

    set_peeking(v2p, true);
    state = judge(v2p, info, &walk);
    while (state == HCA_V2P_SUCCESS && walk.left && !is_null(&walk)) {
        state = next(v2p, &walk, &at, &len);
        if (state == HCA_V2P_SUCCESS && !at.dev_mem) {
            piece = hca_dma_delay(v2p, channel, false, is_write, at.addr, len);
            delay = MAX(delay, piece);
        }
    }
    set_peeking(v2p, false);
    return delay;
}

HcaV2pState hca_v2p_write(HcaV2p *v2p, HcaV2pChannel channel,
                          const HcaMatchInfo *info, const void *buf)
{
    const uint8_t *from = buf;
    HcaWalk walk;
    HcaV2pState state = begin(v2p, channel, info, &walk);
    HcaPlace at;
    uint32_t len;

    if (state == HCA_V2P_SUCCESS && is_null(&walk)) {
        return end(v2p, state);
    }
    while (state == HCA_V2P_SUCCESS && walk.left) {
        state = next(v2p, &walk, &at, &len);
        if (state == HCA_V2P_SUCCESS) {
            if (!hca_host_write(v2p, at, from, len)) {
                state = HCA_V2P_DMA_ERR;
            }
            from += len;
        }
    }
    return end(v2p, state);
}

/* An entry that lies across two pages: in two writes, the owner's last. */
static HcaV2pState write_split_entry(HcaV2p *v2p, HcaV2pChannel channel,
                                     const HcaMatchInfo *info,
                                     const uint8_t *entry)
{
    HcaMatchInfo body = *info, last = *info;
    HcaV2pState state;

    last.len = sizeof(uint32_t);
    body.len = info->len - last.len;
    last.va += body.len;
    state = hca_v2p_write(v2p, channel, &body, entry);
    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return hca_v2p_write(v2p, channel, &last, entry + body.len);
}

HcaV2pState hca_v2p_write_entry(HcaV2p *v2p, HcaV2pChannel channel,
                                const HcaMatchInfo *info, const void *entry)
{
    HcaWalk walk;
    HcaV2pState state = begin(v2p, channel, info, &walk);
    HcaPlace at;
    uint32_t len;

    if (state == HCA_V2P_SUCCESS && is_null(&walk)) {
        return end(v2p, state);
    }
    if (state == HCA_V2P_SUCCESS) {
        state = next(v2p, &walk, &at, &len);
    }
    if (state == HCA_V2P_SUCCESS && walk.left) {
        return write_split_entry(v2p, channel, info, entry);
    }
    if (state == HCA_V2P_SUCCESS &&
        !hca_host_write_entry(v2p, at, entry, len)) {
        state = HCA_V2P_DMA_ERR;
    }
    return end(v2p, state);
}

/* Find the target of an atomic; NULL and *@state if there is none. */
static uint64_t *find_atomic(HcaV2p *v2p, HcaV2pChannel channel,
                             const HcaMatchInfo *info, HcaPlace *at,
                             HcaV2pState *state)
{
    uint64_t *target = NULL;
    HcaWalk walk;
    uint32_t len;

    *state = begin(v2p, channel, info, &walk);
    if (*state != HCA_V2P_SUCCESS) {
        return NULL;
    }
    if (info->len != sizeof(uint64_t)) {
        *state = HCA_V2P_LENGTH_ERR;
        return NULL;
    }
    *state = next(v2p, &walk, at, &len);
    if (*state != HCA_V2P_SUCCESS) {
        return NULL;
    }
    if (len < sizeof(uint64_t) || at->addr % sizeof(uint64_t)) {
        *state = HCA_V2P_LENGTH_ERR;
        return NULL;
    }
    target = hca_host_map_atomic(v2p, *at);
    if (!target) {
        *state = HCA_V2P_DMA_ERR;
    }
    return target;
}

HcaV2pState hca_v2p_fetch_add(HcaV2p *v2p, HcaV2pChannel channel,
                              const HcaMatchInfo *info, uint64_t add,
                              uint64_t *old)
{
    HcaV2pState state;
    HcaPlace at;
    uint64_t *target = find_atomic(v2p, channel, info, &at, &state);
    uint64_t before, after;

    if (!target) {
        return end(v2p, state);
    }
    before = __atomic_load_n(target, __ATOMIC_SEQ_CST);
    do {
        after = GUINT64_TO_LE(GUINT64_FROM_LE(before) + add);
    } while (!__atomic_compare_exchange_n(target, &before, after, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    hca_host_wrote_atomic(v2p, at);
    *old = GUINT64_FROM_LE(before);
    return end(v2p, HCA_V2P_SUCCESS);
}

HcaV2pState hca_v2p_cmp_swap(HcaV2p *v2p, HcaV2pChannel channel,
                             const HcaMatchInfo *info, uint64_t compare,
                             uint64_t swap, uint64_t *old)
{
    HcaV2pState state;
    HcaPlace at;
    uint64_t *target = find_atomic(v2p, channel, info, &at, &state);
    uint64_t before = GUINT64_TO_LE(compare);

    if (!target) {
        return end(v2p, state);
    }
    if (__atomic_compare_exchange_n(target, &before, GUINT64_TO_LE(swap), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        hca_host_wrote_atomic(v2p, at);
    }
    *old = GUINT64_FROM_LE(before);
    return end(v2p, HCA_V2P_SUCCESS);
}

HcaV2pState hca_v2p_atomic_write(HcaV2p *v2p, HcaV2pChannel channel,
                                 const HcaMatchInfo *info, uint64_t value)
{
    HcaV2pState state;
    HcaPlace at;
    uint64_t *target = find_atomic(v2p, channel, info, &at, &state);

    if (!target) {
        return end(v2p, state);
    }
    __atomic_store_n(target, value, __ATOMIC_SEQ_CST);
    hca_host_wrote_atomic(v2p, at);
    return end(v2p, HCA_V2P_SUCCESS);
}

/* Doorbell records, whose page in ICM may come and go */

static bool record_bus(HcaV2p *v2p, uint64_t place, uint64_t *bus)
{
    *bus = place;
    return !v2p->format->records_in_icm ||
           hca_mdata_lookup(v2p->mdata, place, bus);
}

bool hca_record_read(HcaV2p *v2p, HcaV2pChannel channel, uint64_t place,
                     uint32_t *word)
{
    uint64_t bus;

    if (!record_bus(v2p, place, &bus) ||
        !hca_dma_read(v2p, channel, bus, word, sizeof(*word))) {
        return false;
    }
    *word = v2p->format->records_in_icm ? GUINT32_FROM_BE(*word)
                                        : GUINT32_FROM_LE(*word);
    return true;
}

bool hca_record_is_here(HcaV2p *v2p, HcaV2pAsk *ask, unsigned nth,
                        HcaV2pChannel channel, uint64_t place)
{
    HcaMatchInfo info = {
        .flags = HCA_V2P_BUS_ADDR,
        .len = sizeof(uint32_t),
    };

    return !record_bus(v2p, place, &info.va) ||
           hca_v2p_ask(v2p, ask, nth, channel, HCA_V2P_FETCH, &info);
}
