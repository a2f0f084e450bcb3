/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* alloc.c: numbers, tags, and memory for the queues of the kernel. */
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
	u32 reserved;		/* at the low end */
	u32 next;
	u32 lap;
};

/*
 * Numbers 0 to @num - 1 that come back in any order, and at once. Who takes or
 * gives one holds a lock of its own, and does not sleep.
 */
struct rhca_tags {
	u32 *free;		/* a stack */
	u32 num_free;
	u32 num;
	unsigned long *taken;
};

/*
 * Memory that a queue of the kernel lies in: pieces of one size, as large as
 * there are. Each is contiguous and aligned to its size (so the DMA API has
 * it): an MTT entry maps it, and an entry of a queue lies in one.
 */
struct rhca_piece {
	void *va;
	dma_addr_t dma;
};

struct rhca_buf {
	struct rhca_piece *piece;
	u32 num_pieces;
	u8 piece_shift;		/* log of bytes */
};

static inline size_t rhca_piece_size(const struct rhca_buf *buf)
{
	return (size_t)1 << buf->piece_shift;
}

static inline void *rhca_buf_at(const struct rhca_buf *buf, size_t offset)
{
	return buf->piece[offset >> buf->piece_shift].va +
	       (offset & (rhca_piece_size(buf) - 1));
}

int rhca_bitmap_init(struct rhca_bitmap *bitmap, u32 num, u32 reserved);
/* Complains of numbers that nobody has freed. */
void rhca_bitmap_cleanup(struct rhca_bitmap *bitmap);
/* @lap may be NULL. -ENOMEM if all are taken. */
int rhca_bitmap_alloc(struct rhca_bitmap *bitmap, u32 *number, u32 *lap);
int rhca_bitmap_alloc_range(struct rhca_bitmap *bitmap, u32 count, u32 *first);
/*
 * The first @count (not 0) that are free, from a multiple of @align on, which
 * is a power of two: for what has to stay together, and not for numbers.
 */
int rhca_bitmap_alloc_first(struct rhca_bitmap *bitmap, u32 count, u32 align,
			    u32 *first);
void rhca_bitmap_free(struct rhca_bitmap *bitmap, u32 first, u32 count);
int rhca_tags_init(struct rhca_tags *tags, u32 num);
void rhca_tags_cleanup(struct rhca_tags *tags);
/* Returns false if all are taken. */
bool rhca_tags_take(struct rhca_tags *tags, u32 *tag);
/* Returns false if @tag is none that has been taken. */
bool rhca_tags_give(struct rhca_tags *tags, u32 tag);
/* At least @size bytes, not cleared. */
int rhca_buf_alloc(struct rhca_dev *dev, struct rhca_buf *buf, size_t size);
void rhca_buf_clear(struct rhca_buf *buf);
void rhca_buf_free(struct rhca_dev *dev, struct rhca_buf *buf);

#endif /* RHCA_ALLOC_H */
