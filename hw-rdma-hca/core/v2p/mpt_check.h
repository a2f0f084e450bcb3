/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An MPT entry in host form and the checks against it (VirtToPhys document
 * 5.5.3, 5.6.2).
 */
#ifndef HCA_MPT_CHECK_H
#define HCA_MPT_CHECK_H

#include "v2p.h"

typedef struct HcaMpt {
    uint32_t flags;
    uint32_t page_shift; /* log of bytes; any value: not checked */
    uint32_t key;
    uint32_t pd;
    uint64_t start;
    uint64_t length;
    uint64_t mtt_seg;
    uint32_t mtt_sz; /* 0: not given */
} HcaMpt;

/* More than this only with RDMA_HCA_MPT_PHYSICAL. */
#define HCA_MPT_MAX_LENGTH (UINT64_C(1) << 63)

void hca_mpt_decode(HcaMpt *mpt, const struct rdma_hca_mpt *entry);

/* Whether its pages are of a size, and its length of a kind, that there is. */
bool hca_mpt_shape_ok(const HcaMpt *mpt);

/* Pages of a region whose shape is good, up to the one with its last byte. */
uint64_t hca_mpt_pages(const HcaMpt *mpt);

/*
 * Check @info, of a length other than 0, against the entry that its key
 * indexes. *@offset: of the first byte from the start of the region.
 */
HcaV2pState hca_mpt_check(const HcaMpt *mpt, const HcaMatchInfo *info,
                          uint64_t *offset);

#endif /* HCA_MPT_CHECK_H */
