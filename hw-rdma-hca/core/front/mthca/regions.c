/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regions of an InfiniHost III Lx: MPT entries. Its MTT entries are written by
 * software, by plain stores to its pages of ICM, and named by ICM addresses.
 */
#include "mthca.h"

#define RIGHTS                                                                 \
    RIGHT(ATOMIC, REMOTE_ATOMIC)                                               \
    RIGHT(REMOTE_WRITE, REMOTE_WRITE)                                          \
    RIGHT(REMOTE_READ, REMOTE_READ)                                            \
    RIGHT(LOCAL_WRITE, LOCAL_WRITE)

/* Users' keys are rotated; what is an entry's number is in the low bits here. */
static uint32_t key_of_users(uint32_t key)
{
    return key << 8 | key >> 24;
}

static uint32_t key_of_table(uint32_t key)
{
    return key >> 8 | key << 24;
}

static uint32_t decode_access(uint32_t flags)
{
    uint32_t access = 0;

#define RIGHT(theirs, ours)                                                    \
    access |= flags & MTHCA_MPT_##theirs ? HCA_ACCESS_##ours : 0;
    RIGHTS
#undef RIGHT
    return access;
}

static uint32_t encode_access(uint32_t access)
{
    uint32_t flags = 0;

#define RIGHT(theirs, ours)                                                    \
    flags |= access & HCA_ACCESS_##ours ? MTHCA_MPT_##theirs : 0;
    RIGHTS
#undef RIGHT
    return flags;
}

static bool is_software(uint32_t flags)
{
    uint32_t status = RDMA_HCA_GET(MTHCA_MPT_STATUS, flags);

    return status == MTHCA_MPT_STATUS_FREE || status == MTHCA_MPT_STATUS_SW;
}

static void decode(HcaMpt *mpt, const void *from)
{
    const struct mthca_mpt *entry = from;
    uint32_t flags = GUINT32_FROM_BE(entry->flags);
    uint32_t page_size = GUINT32_FROM_BE(entry->page_size);

    *mpt = (HcaMpt) {
        .sw_owns = is_software(flags),
        .region = flags & MTHCA_MPT_REGION,
        .physical = flags & MTHCA_MPT_PHYSICAL,
        .local = flags & MTHCA_MPT_LOCAL_READ,
        .bind_enable = flags & MTHCA_MPT_BIND_ENABLE,
        .access = decode_access(flags),
        .page_shift = RDMA_HCA_GET(MTHCA_MPT_PAGE_SIZE, page_size) +
                      HCA_MPT_PAGE_SHIFT_MIN,
        .key = key_of_users(GUINT32_FROM_BE(entry->key)),
        .pd = RDMA_HCA_GET(MTHCA_MPT_PD, GUINT32_FROM_BE(entry->pd)),
        .start = hca_join_be(entry->start_h, entry->start_l),
        .length = hca_join_be(entry->length_h, entry->length_l),
        .mtt_seg = hca_join_be(entry->mtt_seg_h, entry->mtt_seg_l) /
                   HCA_MTT_SIZE,
        .mtt_sz = GUINT32_FROM_BE(entry->mtt_sz),
    };
}

static void encode(const HcaMpt *mpt, void *to)
{
    struct mthca_mpt *entry = to;
    uint64_t mtt = mpt->mtt_seg * HCA_MTT_SIZE;

    *entry = (struct mthca_mpt) {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(MTHCA_MPT_STATUS,
                          mpt->sw_owns ? MTHCA_MPT_STATUS_SW : 0) |
            (mpt->region ? MTHCA_MPT_REGION : 0) |
            (mpt->physical ? MTHCA_MPT_PHYSICAL : 0) |
            (mpt->local ? MTHCA_MPT_LOCAL_READ : 0) |
            (mpt->bind_enable ? MTHCA_MPT_BIND_ENABLE : 0) | MTHCA_MPT_MIO |
            encode_access(mpt->access)),
        .page_size = GUINT32_TO_BE(mpt->page_shift - HCA_MPT_PAGE_SHIFT_MIN),
        .key = GUINT32_TO_BE(key_of_table(mpt->key)),
        .pd = GUINT32_TO_BE(mpt->pd),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(mpt->start)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(mpt->start)),
        .length_h = GUINT32_TO_BE(RDMA_HCA_HI32(mpt->length)),
        .length_l = GUINT32_TO_BE(RDMA_HCA_LO32(mpt->length)),
        .mtt_seg_h = GUINT32_TO_BE(RDMA_HCA_HI32(mtt)),
        .mtt_seg_l = GUINT32_TO_BE(RDMA_HCA_LO32(mtt)),
        .mtt_sz = GUINT32_TO_BE(mpt->mtt_sz),
    };
}

const HcaMptFormat hca_mthca_mpt_format = {
    .decode = decode,
    .encode = encode,
    .mtts_are_software = true,
    .mtt_present = MTHCA_MTT_PRESENT,
    .records_in_icm = true,
};

/*
 * A region of the whole bus has the length of all ones. The card has no windows,
 * and none are offered.
 */
uint8_t hca_mthca_sw2hw_mpt(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct mthca_mpt *entry = (const void *)cmd->inbox;
    HcaMpt mpt;

    decode(&mpt, entry);
    if (!mpt.region ||
        (hca_join_be(entry->mtt_seg_h, entry->mtt_seg_l) % HCA_MTT_SIZE)) {
        return HCA_STAT_BAD_PARAM;
    }
    return hca_v2p_write_mpt(ceu->hca->v2p, cmd->in_modifier, &mpt);
}

/* OP_MODIFIER 0 asks for the entry as it was, 1 for nothing. */
uint8_t hca_mthca_hw2sw_mpt(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaMpt mpt;
    uint8_t status;

    if (!cmd->row->outbox) {
        return hca_v2p_invalidate_mpt(ceu->hca->v2p, cmd->in_modifier);
    }
    status = hca_v2p_query_mpt(ceu->hca->v2p, cmd->in_modifier, &mpt);
    if (!status) {
        status = hca_v2p_invalidate_mpt(ceu->hca->v2p, cmd->in_modifier);
    }
    if (!status) {
        encode(&mpt, cmd->outbox);
    }
    return status;
}
