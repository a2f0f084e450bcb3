/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MPT entries (interface document, table 3-2-17). */
#include <glib.h>

#include "../../abi/rdma_hca_cxt.h"
#include "../v2p/v2p.h"
#include "format.h"
#include "words.h"

/* The lowest bits of an entry's flags are its rights, but for FLUSH. */
#define ACCESS RDMA_HCA_MASK(6, 0)

G_STATIC_ASSERT(sizeof(struct rdma_hca_mpt) == HCA_MPT_SIZE);
G_STATIC_ASSERT(RDMA_HCA_MTT_SIZE == HCA_MTT_SIZE);
G_STATIC_ASSERT(RDMA_HCA_MPT_PAGE_SHIFT_MIN == HCA_MPT_PAGE_SHIFT_MIN);
G_STATIC_ASSERT(RDMA_HCA_MPT_PAGE_SHIFT_MAX == HCA_MPT_PAGE_SHIFT_MAX);

/* What few entries have: apart, because each request decodes one. */
#define SPECIAL                                                                \
    (RDMA_HCA_MPT_FREE | RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_PIECES |         \
     RDMA_HCA_MPT_NULL | RDMA_HCA_MPT_DEV_MEM)

static void decode_special(HcaMpt *mpt, const struct rdma_hca_mpt *entry)
{
    uint32_t flags = GUINT32_FROM_BE(entry->flags);

    mpt->free = flags & RDMA_HCA_MPT_FREE;
    mpt->fast_reg = flags & RDMA_HCA_MPT_FAST_REG;
    mpt->pieces = flags & RDMA_HCA_MPT_PIECES;
    mpt->null = flags & RDMA_HCA_MPT_NULL;
    mpt->dev_mem = flags & RDMA_HCA_MPT_DEV_MEM;
    mpt->npieces = mpt->pieces ? GUINT32_FROM_BE(entry->pieces) : 0;
}

/* What a window alone has; local rights are not among it. */
static void decode_window(HcaMpt *mpt, const struct rdma_hca_mpt *entry)
{
    mpt->local = false;
    mpt->window2 = GUINT32_FROM_BE(entry->flags) & RDMA_HCA_MPT_WINDOW2;
    mpt->lkey = GUINT32_FROM_BE(entry->lkey);
    mpt->offset = hca_join_be(entry->offset_h, entry->offset_l);
    mpt->qpn = GUINT32_FROM_BE(entry->qpn);
}

static void decode(HcaMpt *mpt, const void *from)
{
    const struct rdma_hca_mpt *entry = from;
    uint32_t flags = GUINT32_FROM_BE(entry->flags);
    /* So that no sum wraps; too large all the same. */
    uint32_t page_size = MIN(GUINT32_FROM_BE(entry->page_size), 64);

    *mpt = (HcaMpt) {
        .sw_owns = flags & RDMA_HCA_MPT_SW_OWNS,
        .region = flags & RDMA_HCA_MPT_REGION,
        .physical = flags & RDMA_HCA_MPT_PHYSICAL,
        .local = flags & RDMA_HCA_MPT_MIO,
        .bind_enable = flags &
                       (RDMA_HCA_MPT_BIND_ENABLE | RDMA_HCA_ACCESS_MW_BIND),
        .access = (flags & ACCESS) |
                  HCA_FLUSH_NEEDS(RDMA_HCA_GET(RDMA_HCA_MPT_FLUSH, flags)),
        .page_shift = page_size + RDMA_HCA_MPT_PAGE_SHIFT_MIN,
        .key = GUINT32_FROM_BE(entry->key),
        .pd = GUINT32_FROM_BE(entry->pd),
        .start = hca_join_be(entry->start_h, entry->start_l),
        .length = hca_join_be(entry->length_h, entry->length_l),
        .mtt_seg = hca_join_be(entry->mtt_seg_h, entry->mtt_seg_l),
        .mtt_sz = GUINT32_FROM_BE(entry->mtt_sz),
    };
    if (mpt->region) {
        mpt->windows = GUINT32_FROM_BE(entry->window_count);
    } else {
        decode_window(mpt, entry);
    }
    if (flags & SPECIAL) {
        decode_special(mpt, entry);
    }
}

static uint32_t encode_flags(const HcaMpt *mpt)
{
    return (mpt->sw_owns ? RDMA_HCA_MPT_SW_OWNS : 0) |
           (mpt->region ? RDMA_HCA_MPT_REGION : 0) |
           (mpt->free ? RDMA_HCA_MPT_FREE : 0) |
           (mpt->fast_reg ? RDMA_HCA_MPT_FAST_REG : 0) |
           (mpt->physical ? RDMA_HCA_MPT_PHYSICAL : 0) |
           (mpt->pieces ? RDMA_HCA_MPT_PIECES : 0) |
           (mpt->null ? RDMA_HCA_MPT_NULL : 0) |
           (mpt->dev_mem ? RDMA_HCA_MPT_DEV_MEM : 0) |
           (mpt->local ? RDMA_HCA_MPT_MIO : 0) |
           (mpt->bind_enable ? RDMA_HCA_MPT_BIND_ENABLE : 0) |
           (mpt->window2 ? RDMA_HCA_MPT_WINDOW2 : 0) |
           RDMA_HCA_PREP(RDMA_HCA_MPT_FLUSH,
                         RDMA_HCA_GET(RDMA_HCA_ACCESS_FLUSH, mpt->access)) |
           (mpt->access & ACCESS);
}

static void encode_window(const HcaMpt *mpt, struct rdma_hca_mpt *entry)
{
    entry->lkey = GUINT32_TO_BE(mpt->lkey);
    entry->offset_h = GUINT32_TO_BE(RDMA_HCA_HI32(mpt->offset));
    entry->offset_l = GUINT32_TO_BE(RDMA_HCA_LO32(mpt->offset));
    entry->qpn = GUINT32_TO_BE(mpt->qpn);
}

static void encode(const HcaMpt *mpt, void *to)
{
    struct rdma_hca_mpt *entry = to;

    *entry = (struct rdma_hca_mpt) {
        .flags = GUINT32_TO_BE(encode_flags(mpt)),
        .page_size = GUINT32_TO_BE(mpt->page_shift -
                                   RDMA_HCA_MPT_PAGE_SHIFT_MIN),
        .key = GUINT32_TO_BE(mpt->key),
        .pd = GUINT32_TO_BE(mpt->pd),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(mpt->start)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(mpt->start)),
        .length_h = GUINT32_TO_BE(RDMA_HCA_HI32(mpt->length)),
        .length_l = GUINT32_TO_BE(RDMA_HCA_LO32(mpt->length)),
        .mtt_seg_h = GUINT32_TO_BE(RDMA_HCA_HI32(mpt->mtt_seg)),
        .mtt_seg_l = GUINT32_TO_BE(RDMA_HCA_LO32(mpt->mtt_seg)),
        .mtt_sz = GUINT32_TO_BE(mpt->mtt_sz),
        .pieces = GUINT32_TO_BE(mpt->npieces),
    };
    if (mpt->region) {
        entry->window_count = GUINT32_TO_BE(mpt->windows);
    } else {
        encode_window(mpt, entry);
    }
}

const HcaMptFormat hca_mpt_format = { .decode = decode, .encode = encode };
