/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks against an MPT entry (VirtToPhys document 5.5.3). */
#ifndef HCA_MPT_CHECK_H
#define HCA_MPT_CHECK_H

#include "v2p.h"

/* A region or a window as its entry has it, and what follows from that alone. */
typedef struct HcaRegion {
    HcaMpt mpt;
    uint64_t base; /* of its first byte: an address, or from its first page */
    bool shape_ok;
} HcaRegion;

/* What follows from region->mpt. */
void hca_region_init(HcaRegion *region);

/* Whether its pages are of a size, and its length of a kind, that there is. */
bool hca_mpt_shape_ok(const HcaMpt *mpt);

/* All of @mpt, but for its key and PD, is that of a window bound to nothing. */
void hca_mpt_make_window(HcaMpt *mpt);

/* Pages of a region whose shape is good, up to the one with its last byte. */
uint64_t hca_mpt_pages(const HcaMpt *mpt);

/*
 * Check @info, of a length other than 0, against the entry that its key
 * indexes. *@offset: of the first byte from the start of the region.
 */
HcaV2pState hca_mpt_check(const HcaRegion *region, const HcaMatchInfo *info,
                          uint64_t *offset);

#endif /* HCA_MPT_CHECK_H */
