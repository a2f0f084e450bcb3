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

/* Whether the region ends before the last address does. */
static bool ends(const HcaMpt *mpt)
{
    return !mpt->length || mpt->length - 1 <= UINT64_MAX - mpt->start;
}

bool hca_mpt_shape_ok(const HcaMpt *mpt)
{
    if (mpt->physical || mpt->null) {
        return mpt->page_shift == HCA_MPT_PAGE_SHIFT_MIN && ends(mpt);
    }
    return mpt->page_shift <= HCA_MPT_PAGE_SHIFT_MAX &&
           mpt->length <= HCA_MPT_MAX_LENGTH &&
           ((mpt->access & HCA_ACCESS_ZERO_BASED) || ends(mpt));
}

/* Of a window that is of its region's first page, of pieces the first piece. */
static uint64_t base_of(const HcaMpt *mpt)
{
    uint64_t page_mask = (UINT64_C(1) << mpt->page_shift) - 1;

    if (mpt->physical) {
        return mpt->start;
    }
    return mpt->pieces ? mpt->offset
                       : mpt->offset + ((mpt->start - mpt->offset) & page_mask);
}

void hca_region_init(HcaRegion *region)
{
    region->shape_ok = hca_mpt_shape_ok(&region->mpt);
    region->base = region->shape_ok ? base_of(&region->mpt) : 0;
}

uint64_t hca_mpt_pages(const HcaMpt *mpt)
{
    uint64_t page_mask;

    if (mpt->physical || mpt->pieces || mpt->null || !mpt->length) {
        return 0;
    }
    page_mask = (UINT64_C(1) << mpt->page_shift) - 1;
    return (((mpt->start & page_mask) + mpt->length - 1) >> mpt->page_shift) +
           1;
}

void hca_mpt_make_window(HcaMpt *mpt)
{
    *mpt = (HcaMpt) {
        .window2 = mpt->window2,
        .free = mpt->window2,
        .page_shift = HCA_MPT_PAGE_SHIFT_MIN,
        .key = mpt->key,
        .pd = mpt->pd,
    };
}

static bool key_ok(const HcaMpt *mpt, const HcaMatchInfo *info)
{
    return mpt->key == info->key && !mpt->sw_owns && !mpt->free;
}

/* A window of type 2 is its QP's alone. */
static bool pd_ok(const HcaMpt *mpt, const HcaMatchInfo *info)
{
    return (mpt->pd == info->pd || mpt->null) &&
           (!mpt->window2 || mpt->qpn == info->qpn);
}

static bool flags_ok(const HcaMpt *mpt, const HcaMatchInfo *info)
{
    uint32_t wanted = info->flags &
                      (HCA_REMOTE_ACCESS | HCA_ACCESS_LOCAL_WRITE);

    if (wanted & ~mpt->access) {
        return false;
    }
    return wanted & HCA_REMOTE_ACCESS ? !mpt->null : mpt->local;
}

/* Offset of the request's first byte; false if it lies before the region. */
static bool find_offset(const HcaMpt *mpt, const HcaMatchInfo *info,
                        uint64_t *offset)
{
    if ((info->flags & HCA_V2P_RELATIVE_ADDR) ||
        (mpt->access & HCA_ACCESS_ZERO_BASED)) {
        *offset = info->va;
        return true;
    }
    *offset = info->va - mpt->start;
    return info->va >= mpt->start;
}

static bool bounds_ok(const HcaRegion *region, const HcaMatchInfo *info,
                      uint64_t *offset)
{
    const HcaMpt *mpt = &region->mpt;

    return region->shape_ok && find_offset(mpt, info, offset) &&
           *offset <= mpt->length && info->len <= mpt->length - *offset;
}

HcaV2pState hca_mpt_check(const HcaRegion *region, const HcaMatchInfo *info,
                          uint64_t *offset)
{
    const HcaMpt *mpt = &region->mpt;

    if (!key_ok(mpt, info)) {
        return HCA_V2P_KEY_ERR;
    }
    if (!pd_ok(mpt, info)) {
        return HCA_V2P_PD_ERR;
    }
    if (!flags_ok(mpt, info)) {
        return HCA_V2P_FLAGS_ERR;
    }
    if (!bounds_ok(region, info, offset)) {
        return HCA_V2P_LENGTH_ERR;
    }
    return HCA_V2P_SUCCESS;
}
