// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Allocation of numbers, of ranges of numbers, of tags, and of memory for the
 * queues of the kernel.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "card.h"

/* A larger one would save little. */
#define RHCA_PIECE_SHIFT_MAX	18

int rhca_bitmap_init(struct rhca_bitmap *bitmap, u32 num, u32 reserved)
{
	mutex_init(&bitmap->lock);
	bitmap->num = num;
	bitmap->reserved = reserved;
	bitmap->next = reserved;
	bitmap->lap = 0;
	bitmap->map = kvcalloc(BITS_TO_LONGS(num), sizeof(long), GFP_KERNEL);
	if (!bitmap->map)
		return -ENOMEM;
	bitmap_set(bitmap->map, 0, reserved);
	return 0;
}

void rhca_bitmap_cleanup(struct rhca_bitmap *bitmap)
{
	u32 left = bitmap->map ? bitmap_weight(bitmap->map, bitmap->num) : 0;

	/* Whoever took a number has given it back. */
	WARN(left > bitmap->reserved, "%u of %u numbers still in use\n",
	     left - bitmap->reserved, bitmap->num);
	kvfree(bitmap->map);
	bitmap->map = NULL;
}

int rhca_bitmap_alloc_range(struct rhca_bitmap *bitmap, u32 count, u32 *first)
{
	unsigned long at;
	int err = 0;

	if (!count || count > bitmap->num)
		return -ENOMEM;

	mutex_lock(&bitmap->lock);
	at = bitmap_find_next_zero_area(bitmap->map, bitmap->num, bitmap->next,
					count, 0);
	if (at >= bitmap->num) {
		bitmap->lap++;
		at = bitmap_find_next_zero_area(bitmap->map, bitmap->num, 0,
						count, 0);
	}
	if (at < bitmap->num) {
		bitmap_set(bitmap->map, at, count);
		bitmap->next = at + count;
		*first = at;
	} else {
		err = -ENOMEM;
	}
	mutex_unlock(&bitmap->lock);
	return err;
}

int rhca_bitmap_alloc_first(struct rhca_bitmap *bitmap, u32 count, u32 align,
			    u32 *first)
{
	unsigned long at;
	int err = -ENOMEM;

	mutex_lock(&bitmap->lock);
	at = bitmap_find_next_zero_area(bitmap->map, bitmap->num, 0, count,
					align - 1);
	if (at < bitmap->num) {
		bitmap_set(bitmap->map, at, count);
		*first = at;
		err = 0;
	}
	mutex_unlock(&bitmap->lock);
	return err;
}

int rhca_bitmap_alloc(struct rhca_bitmap *bitmap, u32 *number, u32 *lap)
{
	unsigned long at;
	int err = 0;

	mutex_lock(&bitmap->lock);
	at = find_next_zero_bit(bitmap->map, bitmap->num, bitmap->next);
	if (at >= bitmap->num) {
		bitmap->lap++;
		at = find_first_zero_bit(bitmap->map, bitmap->num);
	}
	if (at < bitmap->num) {
		__set_bit(at, bitmap->map);
		bitmap->next = at + 1;
		*number = at;
		if (lap)
			*lap = bitmap->lap;
	} else {
		err = -ENOMEM;
	}
	mutex_unlock(&bitmap->lock);
	return err;
}

void rhca_bitmap_free(struct rhca_bitmap *bitmap, u32 first, u32 count)
{
	mutex_lock(&bitmap->lock);
	bitmap_clear(bitmap->map, first, count);
	mutex_unlock(&bitmap->lock);
}

/* --- tags --------------------------------------------------------------- */

int rhca_tags_init(struct rhca_tags *tags, u32 num)
{
	tags->free = kvcalloc(num, sizeof(*tags->free), GFP_KERNEL);
	tags->taken = kvcalloc(BITS_TO_LONGS(num), sizeof(long), GFP_KERNEL);
	if (!tags->free || !tags->taken) {
		rhca_tags_cleanup(tags);
		return -ENOMEM;
	}
	tags->num = num;
	/* The first ones are taken first. */
	for (tags->num_free = 0; tags->num_free < num; tags->num_free++)
		tags->free[tags->num_free] = num - 1 - tags->num_free;
	return 0;
}

void rhca_tags_cleanup(struct rhca_tags *tags)
{
	kvfree(tags->taken);
	kvfree(tags->free);
}

bool rhca_tags_take(struct rhca_tags *tags, u32 *tag)
{
	if (!tags->num_free)
		return false;
	*tag = tags->free[--tags->num_free];
	__set_bit(*tag, tags->taken);
	return true;
}

bool rhca_tags_give(struct rhca_tags *tags, u32 tag)
{
	if (tag >= tags->num || !__test_and_clear_bit(tag, tags->taken))
		return false;
	tags->free[tags->num_free++] = tag;
	return true;
}

/* --- memory of queues ---------------------------------------------------- */

static void rhca_pieces_free(struct rhca_dev *dev, struct rhca_buf *buf)
{
	while (buf->num_pieces) {
		struct rhca_piece *piece = &buf->piece[--buf->num_pieces];

		dma_free_coherent(&dev->pdev->dev, rhca_piece_size(buf),
				  piece->va, piece->dma);
	}
	kvfree(buf->piece);
	buf->piece = NULL;
}

/* All of @size bytes in pieces of one size. */
static int rhca_pieces_alloc(struct rhca_dev *dev, struct rhca_buf *buf,
			     size_t size, u8 shift)
{
	/* Smaller ones will do, down to a page. */
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN |
		    (shift > PAGE_SHIFT ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL);
	u32 count = size >> shift;

	buf->piece_shift = shift;
	buf->num_pieces = 0;
	buf->piece = kvcalloc(count, sizeof(*buf->piece), GFP_KERNEL);
	if (!buf->piece)
		return -ENOMEM;
	while (buf->num_pieces < count) {
		struct rhca_piece *piece = &buf->piece[buf->num_pieces];

		piece->va = dma_alloc_coherent(&dev->pdev->dev,
					       rhca_piece_size(buf),
					       &piece->dma, gfp);
		if (!piece->va) {
			rhca_pieces_free(dev, buf);
			return -ENOMEM;
		}
		buf->num_pieces++;
	}
	return 0;
}

int rhca_buf_alloc(struct rhca_dev *dev, struct rhca_buf *buf, size_t size)
{
	u8 shift, least;

	size = max_t(size_t, roundup_pow_of_two(size),
		     1u << RDMA_HCA_MPT_PAGE_SHIFT_MIN);
	shift = min_t(u8, ilog2(size), RHCA_PIECE_SHIFT_MAX);
	least = min_t(u8, shift, PAGE_SHIFT);
	for (; shift >= least; shift--)
		if (!rhca_pieces_alloc(dev, buf, size, shift))
			return 0;
	return -ENOMEM;
}

void rhca_buf_clear(struct rhca_buf *buf)
{
	u32 i;

	for (i = 0; i < buf->num_pieces; i++)
		memset(buf->piece[i].va, 0, rhca_piece_size(buf));
}

void rhca_buf_free(struct rhca_dev *dev, struct rhca_buf *buf)
{
	if (buf->piece)
		rhca_pieces_free(dev, buf);
}
