/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contexts as they lie in a mailbox, good as they are: for a card that has the
 * protection domain, region and queues that they name.
 */
#ifndef LIB_MAKE_H
#define LIB_MAKE_H

#include <glib.h>
#include <stdint.h>

#include "../../abi/rdma_hca_cmd.h"
#include "../../abi/rdma_hca_cxt.h"

/* A key of MPT entry @index, and the other way. */
#define GOOD_KEY(index) (RDMA_HCA_PREP(RDMA_HCA_KEY_INDEX, index) | 0xa5)
#define KEY_INDEX(key, log_mpts)                                               \
    (RDMA_HCA_GET(RDMA_HCA_KEY_INDEX, key) & ((1u << (log_mpts)) - 1))

/* A region of 4 KiB pages. @flags: RDMA_HCA_MPT_* and access. */
struct rdma_hca_mpt good_mpt(uint32_t key, uint32_t flags, uint32_t pd,
                             uint64_t start, uint64_t length, uint32_t mtt);
/* Armed; its ring is at @start of region @lkey. Vector 0. */
struct rdma_hca_eqc good_eqc(uint32_t pd, uint32_t lkey, uint64_t start,
                             unsigned log_size);
/* No record of its consumer index. */
struct rdma_hca_cqc good_cqc(uint32_t pd, uint32_t lkey, uint64_t start,
                             unsigned log_size, uint32_t uar, uint32_t eqn);

/* No XRC SRQ; its record is at @record. */
struct rdma_hca_srqc good_srqc(uint32_t pd, uint32_t lkey, uint32_t len,
                               unsigned log_entry, uint64_t record);

#endif /* LIB_MAKE_H */
