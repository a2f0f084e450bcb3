// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions: their keys, MTT entries (WRITE_MTT) and MPT entries (SW2HW_MPT,
 * HW2SW_MPT; interface document 3.2.3). The queues of QPs, CQs and EQs are
 * regions, too.
 */
#include <rdma/iter.h>

#include "region.h"

/* A WRITE_MTT that is being filled. */
struct rhca_mtt_writer {
	struct rhca_dev *dev;
	struct rhca_mailbox box;
	u32 start;
	u32 count;
};

static int rhca_mtt_flush(struct rhca_mtt_writer *w)
{
	struct rdma_hca_mtt_mailbox *m = w->box.buf;
	int err;

	if (!w->count)
		return 0;
	m->start_index_h = 0;
	m->start_index_l = cpu_to_be32(w->start);
	err = rhca_cmd_in(w->dev, RDMA_HCA_CMD_WRITE_MTT, w->count, &w->box);
	w->start += w->count;
	w->count = 0;
	return err;
}

static int rhca_mtt_push(struct rhca_mtt_writer *w, u64 addr)
{
	struct rdma_hca_mtt_mailbox *m = w->box.buf;
	u32 slot = RDMA_HCA_MTT_SLOT(w->count);

	rhca_put64(&m->entry[slot].addr_h, &m->entry[slot].addr_l, addr);
	w->count++;
	return w->count == RDMA_HCA_MTT_MAX_ENTRIES ? rhca_mtt_flush(w) : 0;
}

static int rhca_mtt_write_umem(struct rhca_mtt_writer *w, struct ib_umem *umem,
			       u8 page_shift)
{
	struct ib_block_iter biter;
	int err;

	rdma_umem_for_each_dma_block(umem, &biter, 1ul << page_shift) {
		err = rhca_mtt_push(w, rdma_block_iter_dma_address(&biter));
		if (err)
			return err;
	}
	return rhca_mtt_flush(w);
}

static int rhca_mtt_write_buf(struct rhca_mtt_writer *w,
			      const struct rhca_buf *buf)
{
	int err;
	u32 i;

	for (i = 0; i < buf->num_pieces; i++) {
		err = rhca_mtt_push(w, buf->piece[i].dma);
		if (err)
			return err;
	}
	return rhca_mtt_flush(w);
}

void rhca_mtt_destroy(struct rhca_dev *dev, struct rhca_mtt *mtt)
{
	if (mtt->count)
		rhca_bitmap_free(&dev->mtt_map, mtt->first, mtt->count);
	mtt->count = 0;
}

/* Allocate mtt->count entries. */
static int rhca_mtt_reserve(struct rhca_dev *dev, struct rhca_mtt *mtt)
{
	int err;

	err = rhca_bitmap_alloc_range(&dev->mtt_map, mtt->count, &mtt->first);
	if (err) {
		mtt->count = 0;
		return err;
	}
	err = rhca_icm_get(dev, &dev->mtt_table, mtt->first, mtt->count);
	if (err)
		rhca_mtt_destroy(dev, mtt);
	return err;
}

/* Fill them from @umem, else from @buf. */
static int rhca_mtt_fill(struct rhca_dev *dev, const struct rhca_mtt *mtt,
			 struct ib_umem *umem, const struct rhca_buf *buf)
{
	struct rhca_mtt_writer w = { .dev = dev, .start = mtt->first };
	int err;

	err = rhca_mailbox_alloc(dev, &w.box);
	if (err)
		return err;
	err = umem ? rhca_mtt_write_umem(&w, umem, mtt->page_shift) :
		     rhca_mtt_write_buf(&w, buf);
	rhca_mailbox_free(dev, &w.box);
	return err;
}

static int rhca_mtt_create(struct rhca_dev *dev, struct rhca_mtt *mtt,
			   struct ib_umem *umem, const struct rhca_buf *buf)
{
	int err;

	err = rhca_mtt_reserve(dev, mtt);
	if (err)
		return err;
	err = rhca_mtt_fill(dev, mtt, umem, buf);
	if (err)
		rhca_mtt_destroy(dev, mtt);
	return err;
}

int rhca_mtt_create_umem(struct rhca_dev *dev, struct rhca_mtt *mtt,
			 struct ib_umem *umem, u64 iova)
{
	unsigned long page_size;
	size_t blocks;

	mtt->count = 0;
	if (umem->length - 1 > U64_MAX - iova)
		return -EINVAL;
	page_size = ib_umem_find_best_pgsz(umem, RHCA_PAGE_SIZES, iova);
	if (!page_size)
		return -EINVAL;
	blocks = ib_umem_num_dma_blocks(umem, page_size);
	if (blocks > dev->mtt_map.num)
		return -ENOMEM;
	mtt->count = blocks;
	mtt->page_shift = ilog2(page_size);
	return rhca_mtt_create(dev, mtt, umem, NULL);
}

int rhca_region_enable(struct rhca_dev *dev, struct rhca_region *region,
		       u32 pdn, u32 flags, u64 start, u64 length)
{
	u32 index = rhca_key_index(dev, region->key);
	struct rhca_mailbox box;
	struct rdma_hca_mpt *mpt;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	mpt = box.buf;
	mpt->flags = cpu_to_be32(flags);
	mpt->key = cpu_to_be32(region->key);
	mpt->pd = cpu_to_be32(pdn);
	rhca_put64(&mpt->start_h, &mpt->start_l, start);
	rhca_put64(&mpt->length_h, &mpt->length_l, length);
	if (region->mtt.count) {
		mpt->page_size = cpu_to_be32(region->mtt.page_shift -
					     RDMA_HCA_MPT_PAGE_SHIFT_MIN);
		mpt->mtt_seg_l = cpu_to_be32(region->mtt.first);
		mpt->mtt_sz = cpu_to_be32(region->mtt.count);
	}
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SW2HW_MPT, index, &box);
	region->live = !err;
	rhca_mailbox_free(dev, &box);
	return err;
}

int rhca_region_disable(struct rhca_dev *dev, struct rhca_region *region)
{
	int err;

	if (!region->live)
		return 0;
	err = rhca_cmd_try_revoke(dev, RDMA_HCA_CMD_HW2SW_MPT, 0,
				  rhca_key_index(dev, region->key), 0);
	if (!err)
		region->live = false;
	return err;
}

/*
 * A key differs each time that its entry is used again: laps are counted in
 * its lowest byte, and above the index.
 */
static int rhca_key_alloc(struct rhca_dev *dev, u32 *key)
{
	u32 index, lap;
	int err;

	err = rhca_bitmap_alloc(&dev->mpt_map, &index, &lap);
	if (err)
		return err;
	err = rhca_icm_get(dev, &dev->mpt_table, index, 1);
	if (err) {
		rhca_bitmap_free(&dev->mpt_map, index, 1);
		return err;
	}
	index |= lap >> 8 << dev->caps.log_mpts;
	*key = FIELD_PREP(RDMA_HCA_KEY_INDEX, index) |
	       FIELD_PREP(RDMA_HCA_KEY_BYTE, lap & 0xff);
	return 0;
}

static void rhca_key_free(struct rhca_dev *dev, u32 key)
{
	rhca_bitmap_free(&dev->mpt_map, rhca_key_index(dev, key), 1);
}

int rhca_region_create(struct rhca_dev *dev, struct rhca_region *region,
		       u32 pdn, u32 flags, u64 start, u64 length)
{
	int err;

	err = rhca_key_alloc(dev, &region->key);
	if (err)
		return err;
	err = rhca_region_enable(dev, region, pdn, flags, start, length);
	if (err)
		rhca_key_free(dev, region->key);
	return err;
}

int rhca_region_create_umem(struct rhca_dev *dev, struct rhca_region *region,
			    u32 pdn, u32 access, struct ib_umem *umem)
{
	int err;

	err = rhca_mtt_create_umem(dev, &region->mtt, umem, 0);
	if (err)
		return err;
	err = rhca_region_create(dev, region, pdn, access | RHCA_MPT_MEMORY, 0,
				 umem->length);
	if (err)
		rhca_mtt_destroy(dev, &region->mtt);
	return err;
}

int rhca_region_create_buf(struct rhca_dev *dev, struct rhca_region *region,
			   u32 pdn, u32 access, const struct rhca_buf *buf)
{
	int err;

	region->mtt.count = buf->num_pieces;
	region->mtt.page_shift = buf->piece_shift;
	err = rhca_mtt_create(dev, &region->mtt, NULL, buf);
	if (err)
		return err;
	err = rhca_region_create(dev, region, pdn, access | RHCA_MPT_MEMORY, 0,
				 (u64)buf->num_pieces << buf->piece_shift);
	if (err)
		rhca_mtt_destroy(dev, &region->mtt);
	return err;
}

int rhca_region_create_blank(struct rhca_dev *dev, struct rhca_region *region,
			     u32 pdn, u32 flags, u32 mtts)
{
	int err;

	region->mtt.count = mtts;
	region->mtt.page_shift = RDMA_HCA_MPT_PAGE_SHIFT_MIN;
	err = rhca_mtt_reserve(dev, &region->mtt);
	if (err)
		return err;
	err = rhca_region_create(dev, region, pdn, flags, 0, 0);
	if (err)
		rhca_mtt_destroy(dev, &region->mtt);
	return err;
}

void rhca_region_destroy(struct rhca_dev *dev, struct rhca_region *region)
{
	if (region->live)
		rhca_cmd_revoke(dev, RDMA_HCA_CMD_HW2SW_MPT, 0,
				rhca_key_index(dev, region->key), 0);
	rhca_key_free(dev, region->key);
	rhca_mtt_destroy(dev, &region->mtt);
}
