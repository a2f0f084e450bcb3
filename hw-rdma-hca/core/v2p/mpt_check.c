/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MPT checks (VirtToPhys document 5.5.3, steps 1 and 2).
 *
 * Order: is it the key's entry at all, PD, flags, bounds. The bounds follow
 * the document but for one byte: it asks for V-Addr + Length < start + length,
 * which would lock out the last byte of every region.
 */
#include <glib.h>

#include "mpt_check.h"

#define REMOTE_ACCESS                                                          \
    (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ |                        \
     HCA_ACCESS_REMOTE_ATOMIC)

static uint64_t join(__be32 high, __be32 low)
{
    return (uint64_t)GUINT32_FROM_BE(high) << 32 | GUINT32_FROM_BE(low);
}

void hca_mpt_decode(HcaMpt *mpt, const struct rdma_hca_mpt *entry)
{
    uint32_t page_size = GUINT32_FROM_BE(entry->page_size);

    mpt->flags = GUINT32_FROM_BE(entry->flags);
    mpt->page_shift = MIN(page_size, 64) + RDMA_HCA_MPT_PAGE_SHIFT_MIN;
    mpt->key = GUINT32_FROM_BE(entry->key);
    mpt->pd = GUINT32_FROM_BE(entry->pd);
    mpt->start = join(entry->start_h, entry->start_l);
    mpt->length = join(entry->length_h, entry->length_l);
    mpt->mtt_seg = join(entry->mtt_seg_h, entry->mtt_seg_l);
    mpt->mtt_sz = GUINT32_FROM_BE(entry->mtt_sz);
}

/* Whether the region ends before the last address does. */
static bool ends(const HcaMpt *mpt)
{
    return !mpt->length || mpt->length - 1 <= UINT64_MAX - mpt->start;
}

bool hca_mpt_shape_ok(const HcaMpt *mpt)
{
    if (mpt->flags & RDMA_HCA_MPT_PHYSICAL) {
        return ends(mpt);
    }
    return mpt->page_shift <= RDMA_HCA_MPT_PAGE_SHIFT_MAX &&
           mpt->length <= HCA_MPT_MAX_LENGTH &&
           ((mpt->flags & HCA_ACCESS_ZERO_BASED) || ends(mpt));
}

uint64_t hca_mpt_pages(const HcaMpt *mpt)
{
    uint64_t page_mask = (UINT64_C(1) << mpt->page_shift) - 1;

    if ((mpt->flags & RDMA_HCA_MPT_PHYSICAL) || !mpt->length) {
        return 0;
    }
    return (((mpt->start & page_mask) + mpt->length - 1) >> mpt->page_shift) +
           1;
}

static bool key_ok(const HcaMpt *mpt, const HcaMatchInfo *info)
{
    return mpt->key == info->key && !(mpt->flags & RDMA_HCA_MPT_SW_OWNS) &&
           (mpt->flags & RDMA_HCA_MPT_REGION);
}

static bool flags_ok(const HcaMpt *mpt, const HcaMatchInfo *info)
{
    uint32_t wanted = info->flags & (REMOTE_ACCESS | HCA_ACCESS_LOCAL_WRITE);

    if (wanted & ~mpt->flags) {
        return false;
    }
    return (wanted & REMOTE_ACCESS) || (mpt->flags & RDMA_HCA_MPT_MIO);
}

/* Offset of the request's first byte; false if it lies before the region. */
static bool find_offset(const HcaMpt *mpt, const HcaMatchInfo *info,
                        uint64_t *offset)
{
    if ((info->flags & HCA_V2P_RELATIVE_ADDR) ||
        (mpt->flags & HCA_ACCESS_ZERO_BASED)) {
        *offset = info->va;
        return true;
    }
    *offset = info->va - mpt->start;
    return info->va >= mpt->start;
}

static bool bounds_ok(const HcaMpt *mpt, const HcaMatchInfo *info,
                      uint64_t *offset)
{
    return hca_mpt_shape_ok(mpt) && find_offset(mpt, info, offset) &&
           *offset <= mpt->length && info->len <= mpt->length - *offset;
}

HcaV2pState hca_mpt_check(const HcaMpt *mpt, const HcaMatchInfo *info,
                          uint64_t *offset)
{
    if (!key_ok(mpt, info)) {
        return HCA_V2P_KEY_ERR;
    }
    if (mpt->pd != info->pd) {
        return HCA_V2P_PD_ERR;
    }
    if (!flags_ok(mpt, info)) {
        return HCA_V2P_FLAGS_ERR;
    }
    if (!bounds_ok(mpt, info, offset)) {
        return HCA_V2P_LENGTH_ERR;
    }
    return HCA_V2P_SUCCESS;
}
