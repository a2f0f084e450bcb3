/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* alloc.c: numbers, and memory for the queues of the kernel. */
#ifndef RHCA_ALLOC_H
#define RHCA_ALLOC_H

#include <linux/mutex.h>
#include <linux/types.h>

struct rhca_dev;

/*
 * Numbers 0 to @num - 1. They are handed out in ascending order, round and
 * round, so that a number comes back as late as possible; @lap counts the
 * rounds. What allocates or frees them may sleep.
 */
struct rhca_bitmap {
	struct mutex lock;	/* protects what follows; a search may take long */
	unsigned long *map;
	u32 num;
	u32 next;
	u32 lap;
};

/* Memory that a queue of the kernel lies in: contiguous, a power of two. */
struct rhca_buf {
	void *va;
	dma_addr_t dma;
	size_t size;
};

int rhca_bitmap_init(struct rhca_bitmap *bitmap, u32 num, u32 reserved);
void rhca_bitmap_cleanup(struct rhca_bitmap *bitmap);
/* @lap may be NULL. -ENOMEM if all are taken. */
int rhca_bitmap_alloc(struct rhca_bitmap *bitmap, u32 *number, u32 *lap);
int rhca_bitmap_alloc_range(struct rhca_bitmap *bitmap, u32 count, u32 *first);
void rhca_bitmap_free(struct rhca_bitmap *bitmap, u32 first, u32 count);
/* How many are taken, those reserved among them. */
u32 rhca_bitmap_used(struct rhca_bitmap *bitmap);
int rhca_buf_alloc(struct rhca_dev *dev, struct rhca_buf *buf, size_t size);
void rhca_buf_free(struct rhca_dev *dev, struct rhca_buf *buf);

#endif /* RHCA_ALLOC_H */
