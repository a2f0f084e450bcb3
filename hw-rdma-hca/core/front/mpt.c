/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MPT entries (interface document, table 3-2-17). */
#include <glib.h>

#include "../../abi/rdma_hca_cxt.h"
#include "../v2p/v2p.h"
#include "format.h"
#include "words.h"

/* The lowest bits of an entry's flags are its rights. */
#define ACCESS RDMA_HCA_MASK(6, 0)

G_STATIC_ASSERT(sizeof(struct rdma_hca_mpt) == HCA_MPT_SIZE);
G_STATIC_ASSERT(RDMA_HCA_MTT_SIZE == HCA_MTT_SIZE);
G_STATIC_ASSERT(RDMA_HCA_MPT_PAGE_SHIFT_MIN == HCA_MPT_PAGE_SHIFT_MIN);
G_STATIC_ASSERT(RDMA_HCA_MPT_PAGE_SHIFT_MAX == HCA_MPT_PAGE_SHIFT_MAX);

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
        .bind_enable = flags & RDMA_HCA_MPT_BIND_ENABLE,
        .access = flags & ACCESS,
        .page_shift = page_size + RDMA_HCA_MPT_PAGE_SHIFT_MIN,
        .key = GUINT32_FROM_BE(entry->key),
        .pd = GUINT32_FROM_BE(entry->pd),
        .start = hca_join_be(entry->start_h, entry->start_l),
        .length = hca_join_be(entry->length_h, entry->length_l),
        .mtt_seg = hca_join_be(entry->mtt_seg_h, entry->mtt_seg_l),
        .mtt_sz = GUINT32_FROM_BE(entry->mtt_sz),
    };
}

static uint32_t encode_flags(const HcaMpt *mpt)
{
    return (mpt->sw_owns ? RDMA_HCA_MPT_SW_OWNS : 0) |
           (mpt->region ? RDMA_HCA_MPT_REGION : 0) |
           (mpt->physical ? RDMA_HCA_MPT_PHYSICAL : 0) |
           (mpt->local ? RDMA_HCA_MPT_MIO : 0) |
           (mpt->bind_enable ? RDMA_HCA_MPT_BIND_ENABLE : 0) | mpt->access;
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
    };
}

const HcaMptFormat hca_mpt_format = { .decode = decode, .encode = encode };
