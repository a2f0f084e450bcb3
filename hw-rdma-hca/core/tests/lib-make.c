/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-make.h"

struct rdma_hca_mpt good_mpt(uint32_t key, uint32_t flags, uint32_t pd,
                             uint64_t start, uint64_t length, uint32_t mtt)
{
    return (struct rdma_hca_mpt) {
        .flags = GUINT32_TO_BE(flags),
        .key = GUINT32_TO_BE(key),
        .pd = GUINT32_TO_BE(pd),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(start)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(start)),
        .length_h = GUINT32_TO_BE(RDMA_HCA_HI32(length)),
        .length_l = GUINT32_TO_BE(RDMA_HCA_LO32(length)),
        .mtt_seg_l = GUINT32_TO_BE(mtt),
    };
}

struct rdma_hca_eqc good_eqc(uint32_t pd, uint32_t lkey, uint64_t start,
                             unsigned log_size)
{
    return (struct rdma_hca_eqc) {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, RDMA_HCA_EQ_OWNER_HW) |
            RDMA_HCA_EQC_TR |
            RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_ARMED)),
        .start_l = GUINT32_TO_BE(start),
        .logsize = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_EQC_LOGSIZE, log_size)),
        .pd = GUINT32_TO_BE(pd),
        .lkey = GUINT32_TO_BE(lkey),
    };
}

struct rdma_hca_cqc good_cqc(uint32_t pd, uint32_t lkey, uint64_t start,
                             unsigned log_size, uint32_t uar, uint32_t eqn)
{
    return (struct rdma_hca_cqc) {
        .flags = GUINT32_TO_BE(RDMA_HCA_CQC_TR),
        .start_l = GUINT32_TO_BE(start),
        .logsize_usrpage = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_CQC_LOGSIZE, log_size) | uar),
        .comp_eqn = GUINT32_TO_BE(eqn),
        .pd = GUINT32_TO_BE(pd),
        .lkey = GUINT32_TO_BE(lkey),
    };
}

struct rdma_hca_srqc good_srqc(uint32_t pd, uint32_t lkey, uint32_t len,
                               unsigned log_entry, uint64_t record)
{
    return (struct rdma_hca_srqc) {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_SRQC_ENTRY_SZ, log_entry)),
        .len = GUINT32_TO_BE(len),
        .pd = GUINT32_TO_BE(pd),
        .lkey = GUINT32_TO_BE(lkey),
        .db_h = GUINT32_TO_BE(RDMA_HCA_HI32(record)),
        .db_l = GUINT32_TO_BE(RDMA_HCA_LO32(record)),
    };
}
