/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory management by work requests (IBA 10.6): what REG_MR, BIND_MW and
 * LOCAL_INV ask for.
 */
#ifndef HCA_MEM_OP_H
#define HCA_MEM_OP_H

#include <stdint.h>

typedef enum HcaMemOpKind {
    HCA_MEM_NONE,
    HCA_MEM_FAST_REG,
    HCA_MEM_BIND,
    HCA_MEM_INVALIDATE,
    HCA_NMEM_OPS
} HcaMemOpKind;

typedef struct HcaMemOp {
    uint32_t key;    /* to be: the new one; else the one to invalidate */
    uint32_t access; /* HCA_ACCESS_*, or any bits */
    uint64_t start;
    uint64_t length;
    /* FAST_REG: pages, or pieces. */
    uint64_t list; /* bus address */
    uint32_t entries;
    uint32_t page_shift; /* any value */
    /* BIND */
    uint32_t type; /* of the window: 1 or 2 */
    uint32_t lkey; /* of the region */
} HcaMemOp;

#endif /* HCA_MEM_OP_H */
