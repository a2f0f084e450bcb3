/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* region.c: what a key names: entries of the card's MPT and MTT. */
#ifndef RHCA_REGION_H
#define RHCA_REGION_H

#include <rdma/ib_umem.h>

#include "card.h"

/* What makes an MPT entry one of memory; that of a window has neither. */
#define RHCA_MPT_MEMORY	(RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION)
/* Pages of a translation. */
#define RHCA_PAGE_SIZES \
	GENMASK(RDMA_HCA_MPT_PAGE_SHIFT_MAX, RDMA_HCA_MPT_PAGE_SHIFT_MIN)
/* The whole of bus address space, as far as a length field reaches. */
#define RHCA_ALL_MEMORY	(~0ULL >> 1)

/* Translation of a region: MTT entries of one page size. */
struct rhca_mtt {
	u32 first;
	u32 count;		/* 0: none */
	u8 page_shift;
};

/* An MPT entry with its translation. */
struct rhca_region {
	u32 key;
	bool live;		/* in hardware */
	struct rhca_mtt mtt;
};

/* The place of @key's MPT entry. */
static inline u32 rhca_key_index(const struct rhca_dev *dev, u32 key)
{
	return FIELD_GET(RDMA_HCA_KEY_INDEX, key) & (dev->mpt_map.num - 1);
}

/*
 * A region for a queue of its own, from offset 0 on. @access: what the card
 * may do, 0 (read) or RDMA_HCA_ACCESS_LOCAL_WRITE.
 */
int rhca_region_create_umem(struct rhca_dev *dev, struct rhca_region *region,
			    u32 pdn, u32 access, struct ib_umem *umem);
int rhca_region_create_buf(struct rhca_dev *dev, struct rhca_region *region,
			   u32 pdn, u32 access, const struct rhca_buf *buf);
/* One whose translation has @mtts entries that say nothing yet. */
int rhca_region_create_blank(struct rhca_dev *dev, struct rhca_region *region,
			     u32 pdn, u32 flags, u32 mtts);
/*
 * A key and an MPT entry for the translation that region->mtt has already.
 * @flags: RDMA_HCA_MPT_*, RDMA_HCA_ACCESS_*.
 */
int rhca_region_create(struct rhca_dev *dev, struct rhca_region *region,
		       u32 pdn, u32 flags, u64 start, u64 length);
/* The card must let go of it. */
void rhca_region_destroy(struct rhca_dev *dev, struct rhca_region *region);

/* Give the card the MPT entry of @region, as rhca_region_create() does. */
int rhca_region_enable(struct rhca_dev *dev, struct rhca_region *region,
		       u32 pdn, u32 flags, u64 start, u64 length);
/* Take it back. -EBUSY: windows are bound to it, and it stays as it is. */
int rhca_region_disable(struct rhca_dev *dev, struct rhca_region *region);

/* @iova: the address of the first byte as the card will see it. */
int rhca_mtt_create_umem(struct rhca_dev *dev, struct rhca_mtt *mtt,
			 struct ib_umem *umem, u64 iova);
void rhca_mtt_destroy(struct rhca_dev *dev, struct rhca_mtt *mtt);

#endif /* RHCA_REGION_H */
