/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory management by work requests (IBA 10.6.5 to 10.6.7, 10.7.2): regions
 * that are registered and invalidated, windows that are bound. The document
 * has BIND_ENABLE and places for windows in an entry (5.6.2), and nothing of
 * what they do.
 *
 * A bound window's entry is complete in itself: it has the translation of its
 * region, so that a request looks at one entry. While it is bound its region
 * counts it, and can go nowhere.
 */
#include <glib.h>

#include "v2p_int.h"

#define REGION_ACCESS                                                          \
    (HCA_ACCESS_LOCAL_WRITE | HCA_REMOTE_ACCESS | HCA_ACCESS_MW_BIND |         \
     HCA_ACCESS_ZERO_BASED)
/* A pair is two entries of the MTT. */
#define PAIR 2

static bool put_mpt(HcaV2p *v2p, const HcaMpt *mpt)
{
    void *line = hca_tpt_cache_write(v2p->mpt_ram,
                                     hca_mpt_index(v2p, mpt->key));

    if (line) {
        v2p->format->encode(mpt, line);
    }
    return line;
}

/* The entry that @key names, with any consumer's byte: a copy. */
static HcaV2pState find_any(HcaV2p *v2p, uint32_t key, HcaMpt *mpt)
{
    const HcaMpt *found = hca_v2p_find_mpt(v2p, key);

    if (!found || found->sw_owns || (found->key ^ key) & ~HCA_KEY_BYTE) {
        return HCA_V2P_KEY_ERR;
    }
    *mpt = *found;
    return HCA_V2P_SUCCESS;
}

/* The one whose key it is. */
static HcaV2pState find_own(HcaV2p *v2p, uint32_t key, HcaMpt *mpt)
{
    HcaV2pState state = find_any(v2p, key, mpt);

    return state == HCA_V2P_SUCCESS && mpt->key != key ? HCA_V2P_KEY_ERR
                                                       : state;
}

static HcaV2pState end(HcaV2p *v2p, HcaV2pState state, uint64_t *done)
{
    v2p->counters.failed[state]++;
    if (state == HCA_V2P_SUCCESS) {
        ++*done;
    } else {
        v2p->counters.mem_ops_refused++;
    }
    return state;
}

/* Fast registration */

/* A list of pages, or of pairs, as it was read. */
typedef struct PageList {
    uint64_t entry[PAIR * RDMA_HCA_MAX_PAGE_LIST];
    unsigned n;
} PageList;

/* A free region that @op may make valid: as it will be then. */
static HcaV2pState judge_fast_reg(HcaV2p *v2p, uint32_t pd, const HcaMemOp *op,
                                  HcaMpt *mpt)
{
    HcaV2pState state = find_any(v2p, op->key, mpt);

    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    if (!mpt->region || !mpt->fast_reg || (op->access & ~REGION_ACCESS) ||
        !hca_region_access_ok(op->access)) {
        return HCA_V2P_FLAGS_ERR;
    }
    if (!mpt->free) {
        return HCA_V2P_KEY_ERR;
    }
    return mpt->pd == pd ? HCA_V2P_SUCCESS : HCA_V2P_PD_ERR;
}

static void make_valid(HcaMpt *mpt, const HcaMemOp *op)
{
    mpt->free = false;
    mpt->key = op->key;
    mpt->access = op->access;
    mpt->bind_enable = op->access & HCA_ACCESS_MW_BIND;
    mpt->start = op->start;
    mpt->length = op->length;
    mpt->page_shift = mpt->pieces ? HCA_MPT_PAGE_SHIFT_MIN : op->page_shift;
    mpt->npieces = mpt->pieces ? op->entries : 0;
    mpt->windows = 0;
}

/* Whether the entries of @op have place, and are as many as @mpt needs. */
static bool list_fits(const HcaMpt *mpt, const HcaMemOp *op)
{
    uint32_t width = mpt->pieces ? PAIR : 1;

    return op->entries <= RDMA_HCA_MAX_PAGE_LIST &&
           op->entries * width <= mpt->mtt_sz &&
           mpt->page_shift >= HCA_MPT_PAGE_SHIFT_MIN && hca_mpt_shape_ok(mpt) &&
           hca_mpt_pages(mpt) <= op->entries;
}

static bool read_list(HcaV2p *v2p, HcaV2pChannel channel, const HcaMpt *mpt,
                      const HcaMemOp *op, PageList *list)
{
    list->n = op->entries * (mpt->pieces ? PAIR : 1);
    if (!hca_dma_read(v2p, channel, op->list, list->entry,
                      list->n * sizeof(list->entry[0]))) {
        return false;
    }
    for (unsigned i = 0; i < list->n; i++) {
        list->entry[i] = GUINT64_FROM_LE(list->entry[i]);
    }
    return true;
}

/* Whether the ends of pieces ascend and the last one is far enough. */
static bool pieces_ok(const HcaMpt *mpt, const PageList *list)
{
    uint64_t end = 0;

    for (unsigned i = 0; mpt->pieces && i < list->n; i += PAIR) {
        if (list->entry[i + 1] <= end) {
            return false;
        }
        end = list->entry[i + 1];
    }
    return !mpt->pieces || end >= mpt->length;
}

/* The list is read once, and looked at and stored as it was then. */
static HcaV2pState fast_reg(HcaV2p *v2p, HcaV2pChannel channel, uint32_t pd,
                            const HcaMemOp *op)
{
    HcaMpt mpt;
    PageList list;
    HcaV2pState state = judge_fast_reg(v2p, pd, op, &mpt);

    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    make_valid(&mpt, op);
    if (!list_fits(&mpt, op)) {
        return HCA_V2P_LENGTH_ERR;
    }
    if (!read_list(v2p, channel, &mpt, op, &list)) {
        return HCA_V2P_DMA_ERR;
    }
    if (!pieces_ok(&mpt, &list)) {
        return HCA_V2P_LENGTH_ERR;
    }
    if (!hca_mtts_write(v2p, mpt.mtt_seg, list.entry, list.n) ||
        !put_mpt(v2p, &mpt)) {
        return HCA_V2P_DMA_ERR;
    }
    return HCA_V2P_SUCCESS;
}

HcaV2pState hca_v2p_fast_reg(HcaV2p *v2p, HcaV2pChannel channel, uint32_t pd,
                             const HcaMemOp *op)
{
    hca_v2p_select(v2p, channel);
    return end(v2p, fast_reg(v2p, channel, pd, op), &v2p->counters.fast_regs);
}

/* Windows */

static bool is_bound(const HcaMpt *window)
{
    return !window->region && !window->free && window->length;
}

/* What is in ICM may be wrong: then nothing counts @window. */
static void count_out(HcaV2p *v2p, const HcaMpt *window)
{
    HcaMpt region;

    if (find_own(v2p, window->lkey, &region) == HCA_V2P_SUCCESS &&
        region.region && region.windows) {
        region.windows--;
        put_mpt(v2p, &region);
    }
}

void hca_v2p_unbind(HcaV2p *v2p, HcaMpt *window)
{
    if (is_bound(window)) {
        count_out(v2p, window);
        v2p->bound_windows -= v2p->bound_windows != 0;
    }
    hca_mpt_make_window(window);
}

/* Whether the window that @op names may be bound, or unbound, by @pd. */
static HcaV2pState judge_window(HcaV2p *v2p, uint32_t pd, const HcaMemOp *op,
                                HcaMpt *window)
{
    HcaV2pState state = find_any(v2p, op->key, window);

    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    if (window->region || op->type != (window->window2 ? 2 : 1)) {
        return HCA_V2P_FLAGS_ERR;
    }
    if (window->window2 && !window->free) {
        return HCA_V2P_KEY_ERR;
    }
    if (window->pd != pd) {
        return HCA_V2P_PD_ERR;
    }
    return window->window2 && !op->length ? HCA_V2P_LENGTH_ERR
                                          : HCA_V2P_SUCCESS;
}

/* Whether it gives away no more than @region has. */
static bool rights_ok(const HcaMpt *region, const HcaMemOp *op)
{
    uint32_t known = HCA_REMOTE_DATA_ACCESS |
                     (op->type == 2 ? HCA_ACCESS_ZERO_BASED : 0);

    return !(op->access & ~known) && region->bind_enable &&
           !(region->access & HCA_ACCESS_ZERO_BASED) &&
           hca_region_access_ok(op->access |
                                (region->access & HCA_ACCESS_LOCAL_WRITE));
}

/* Whether the region that @op names may be bound to. */
static HcaV2pState judge_region(HcaV2p *v2p, uint32_t pd, const HcaMemOp *op,
                                HcaMpt *region)
{
    HcaV2pState state = find_own(v2p, op->lkey, region);
    uint64_t offset;

    if (state != HCA_V2P_SUCCESS) {
        return state;
    }
    if (!region->region || region->null) {
        return HCA_V2P_FLAGS_ERR;
    }
    if (region->free) {
        return HCA_V2P_KEY_ERR;
    }
    if (region->pd != pd) {
        return HCA_V2P_PD_ERR;
    }
    if (!rights_ok(region, op)) {
        return HCA_V2P_FLAGS_ERR;
    }
    offset = op->start - region->start;
    return op->start >= region->start && offset <= region->length &&
                   op->length <= region->length - offset
               ? HCA_V2P_SUCCESS
               : HCA_V2P_LENGTH_ERR;
}

/* @window as it is when it is bound to @region. */
static void bind_to(HcaMpt *window, const HcaMpt *region, uint32_t qpn,
                    const HcaMemOp *op)
{
    window->free = false;
    window->access = op->access;
    window->start = op->start;
    window->length = op->length;
    window->lkey = region->key;
    window->offset = op->start - region->start;
    window->qpn = window->window2 ? qpn : 0;
    window->physical = region->physical;
    window->dev_mem = region->dev_mem;
    window->pieces = region->pieces;
    window->npieces = region->npieces;
    window->page_shift = region->page_shift;
    window->mtt_seg = region->mtt_seg;
    window->mtt_sz = region->mtt_sz;
}

/* Both have been judged. The old region may be the new one: it is read again. */
static HcaV2pState bind_window(HcaV2p *v2p, uint32_t qpn, const HcaMemOp *op,
                               HcaMpt *window)
{
    HcaMpt region;

    hca_v2p_unbind(v2p, window);
    window->key = op->key;
    if (op->length) {
        if (find_own(v2p, op->lkey, &region) != HCA_V2P_SUCCESS) {
            return HCA_V2P_DMA_ERR;
        }
        bind_to(window, &region, qpn, op);
        region.windows++;
        if (!put_mpt(v2p, &region)) {
            return HCA_V2P_DMA_ERR;
        }
        v2p->bound_windows++;
    }
    return put_mpt(v2p, window) ? HCA_V2P_SUCCESS : HCA_V2P_DMA_ERR;
}

HcaV2pState hca_v2p_bind(HcaV2p *v2p, HcaV2pChannel channel, uint32_t pd,
                         uint32_t qpn, const HcaMemOp *op)
{
    HcaMpt window, region;
    HcaV2pState state;

    hca_v2p_select(v2p, channel);
    state = judge_window(v2p, pd, op, &window);
    if (state == HCA_V2P_SUCCESS && op->length) {
        state = judge_region(v2p, pd, op, &region);
    }
    if (state == HCA_V2P_SUCCESS) {
        state = bind_window(v2p, qpn, op, &window);
    }
    return end(v2p, state, &v2p->counters.binds);
}

/* Invalidation */

/* A region that is used by nobody else, and by a peer only if it may. */
static HcaV2pState judge_region_inv(const HcaMpt *region, bool remote)
{
    if (!region->fast_reg || region->windows ||
        (remote && !(region->access & HCA_REMOTE_ACCESS))) {
        return HCA_V2P_FLAGS_ERR;
    }
    return HCA_V2P_SUCCESS;
}

static HcaV2pState judge_window_inv(const HcaMpt *window, uint32_t qpn)
{
    if (!window->window2) {
        return HCA_V2P_FLAGS_ERR;
    }
    return window->qpn == qpn ? HCA_V2P_SUCCESS : HCA_V2P_PD_ERR;
}

static HcaV2pState judge_inv(const HcaMpt *mpt, const HcaInvalidation *inv)
{
    if (mpt->pd != inv->pd) {
        return HCA_V2P_PD_ERR;
    }
    if (mpt->free) {
        return inv->remote ? HCA_V2P_KEY_ERR : HCA_V2P_SUCCESS;
    }
    return mpt->region ? judge_region_inv(mpt, inv->remote)
                       : judge_window_inv(mpt, inv->qpn);
}

static HcaV2pState invalidate(HcaV2p *v2p, const HcaInvalidation *inv)
{
    HcaMpt mpt;
    HcaV2pState state = find_own(v2p, inv->key, &mpt);

    if (state == HCA_V2P_SUCCESS) {
        state = judge_inv(&mpt, inv);
    }
    if (state != HCA_V2P_SUCCESS || mpt.free) {
        return state;
    }
    if (mpt.region) {
        mpt.free = true;
    } else {
        hca_v2p_unbind(v2p, &mpt);
    }
    return put_mpt(v2p, &mpt) ? HCA_V2P_SUCCESS : HCA_V2P_DMA_ERR;
}

HcaV2pState hca_v2p_invalidate(HcaV2p *v2p, HcaV2pChannel channel,
                               const HcaInvalidation *inv)
{
    hca_v2p_select(v2p, channel);
    return end(v2p, invalidate(v2p, inv),
               inv->remote ? &v2p->counters.remote_invs
                           : &v2p->counters.local_invs);
}

uint32_t hca_v2p_bound_windows(const HcaV2p *v2p)
{
    return v2p->bound_windows;
}
