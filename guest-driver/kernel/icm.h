/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* icm.c: the tables that the card keeps in host memory. */
#ifndef RHCA_ICM_H
#define RHCA_ICM_H

#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct rhca_dev;

#define RHCA_ICM_CHUNK_SIZE	SZ_256K
#define RHCA_ICM_CHUNK_PAGES	(RHCA_ICM_CHUNK_SIZE >> RDMA_HCA_ICM_PAGE_SHIFT)

struct rhca_icm_chunk;

/* A table in ICM, whose memory is there chunk by chunk as it is needed. */
struct rhca_icm_table {
	struct mutex lock;	/* protects @chunk */
	u8 kind;		/* RDMA_HCA_ICM_CXT or _TPT */
	u64 virt;
	u64 size;		/* bytes, a multiple of the ICM page */
	u32 entry_size;
	u32 num_chunks;
	struct rhca_icm_chunk **chunk;
};

int rhca_icm_init(struct rhca_dev *dev);
void rhca_icm_cleanup(struct rhca_dev *dev);
/* INIT_HCA, with the layout that rhca_icm_init() chose. */
int rhca_init_hca(struct rhca_dev *dev);
/* See that entries @first to @first + @count - 1 have memory. May sleep. */
int rhca_icm_get(struct rhca_dev *dev, struct rhca_icm_table *table, u32 first,
		 u32 count);

#endif /* RHCA_ICM_H */
