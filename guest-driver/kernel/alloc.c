// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Allocation of numbers, of ranges of numbers, and of memory for the queues
 * of the kernel.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "card.h"

int rhca_bitmap_init(struct rhca_bitmap *bitmap, u32 num, u32 reserved)
{
	mutex_init(&bitmap->lock);
	bitmap->num = num;
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
	kvfree(bitmap->map);
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

u32 rhca_bitmap_used(struct rhca_bitmap *bitmap)
{
	u32 used;

	mutex_lock(&bitmap->lock);
	used = bitmap_weight(bitmap->map, bitmap->num);
	mutex_unlock(&bitmap->lock);
	return used;
}

/* The DMA API aligns such a buffer to its size: one MTT entry maps it. */
int rhca_buf_alloc(struct rhca_dev *dev, struct rhca_buf *buf, size_t size)
{
	buf->size = max_t(size_t, roundup_pow_of_two(size),
			  1u << RDMA_HCA_MPT_PAGE_SHIFT_MIN);
	buf->va = dma_alloc_coherent(&dev->pdev->dev, buf->size, &buf->dma,
				     GFP_KERNEL | __GFP_NOWARN);
	return buf->va ? 0 : -ENOMEM;
}

void rhca_buf_free(struct rhca_dev *dev, struct rhca_buf *buf)
{
	if (buf->va)
		dma_free_coherent(&dev->pdev->dev, buf->size, buf->va,
				  buf->dma);
	buf->va = NULL;
}
