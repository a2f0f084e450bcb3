// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: MTT entries (WRITE_MTT), MPT entries (SW2HW_MPT, HW2SW_MPT;
 * interface document 3.2.3), and the verbs on them. The queues of QPs, CQs
 * and EQs are regions too.
 */
#include <rdma/iter.h>

#include "mr.h"
#include "udata.h"

#define RHCA_PAGE_SIZES \
	GENMASK(RDMA_HCA_MPT_PAGE_SHIFT_MAX, RDMA_HCA_MPT_PAGE_SHIFT_MIN)

#define RHCA_ACCESS_MASK						\
	(RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE |	\
	 RDMA_HCA_ACCESS_REMOTE_READ | RDMA_HCA_ACCESS_REMOTE_ATOMIC |	\
	 RDMA_HCA_ACCESS_ZERO_BASED)

/*
 * Rights, and what is no more than a hint. What the card does not have is not
 * taken for granted.
 */
#define RHCA_ACCESS_KNOWN \
	(RHCA_ACCESS_MASK | IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

/* The whole of bus address space, as far as a length field reaches. */
#define RHCA_ALL_MEMORY	(~0ULL >> 1)

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

static void rhca_mtt_destroy(struct rhca_dev *dev, struct rhca_mtt *mtt)
{
	if (mtt->count)
		rhca_bitmap_free(&dev->mtt_map, mtt->first, mtt->count);
	mtt->count = 0;
}

/* Allocate mtt->count entries and fill them from @umem, else from @buf. */
static int rhca_mtt_create(struct rhca_dev *dev, struct rhca_mtt *mtt,
			   struct ib_umem *umem, const struct rhca_buf *buf)
{
	struct rhca_mtt_writer w = { .dev = dev };
	int err;

	err = rhca_bitmap_alloc_range(&dev->mtt_map, mtt->count, &mtt->first);
	if (err)
		goto none;
	err = rhca_icm_get(dev, &dev->mtt_table, mtt->first, mtt->count);
	if (err)
		goto free;
	err = rhca_mailbox_alloc(dev, &w.box);
	if (err)
		goto free;
	w.start = mtt->first;
	err = umem ? rhca_mtt_write_umem(&w, umem, mtt->page_shift) :
		     rhca_mtt_write_buf(&w, buf);
	rhca_mailbox_free(dev, &w.box);
	if (err)
		goto free;
	return 0;

free:
	rhca_mtt_destroy(dev, mtt);
none:
	mtt->count = 0;
	return err;
}

/* @iova: the address of the first byte as the card will see it. */
static int rhca_mtt_create_umem(struct rhca_dev *dev, struct rhca_mtt *mtt,
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

/* Give the card the MPT entry of @region. @flags: RDMA_HCA_MPT_*, _ACCESS_*. */
static int rhca_mpt_enable(struct rhca_dev *dev, struct rhca_region *region,
			   u32 pdn, u32 flags, u64 start, u64 length)
{
	u32 index = region->key & (dev->mpt_map.num - 1);
	struct rhca_mailbox box;
	struct rdma_hca_mpt *mpt;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	mpt = box.buf;
	flags |= RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION;
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

static void rhca_mpt_disable(struct rhca_dev *dev, struct rhca_region *region)
{
	if (region->live)
		rhca_cmd_revoke(dev, RDMA_HCA_CMD_HW2SW_MPT, 0,
				region->key & (dev->mpt_map.num - 1), 0);
	region->live = false;
}

/* The key's high bits differ each time that its low bits are used again. */
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
	*key = index | lap << dev->caps.log_mpts;
	return 0;
}

static void rhca_key_free(struct rhca_dev *dev, u32 key)
{
	rhca_bitmap_free(&dev->mpt_map, key & (dev->mpt_map.num - 1), 1);
}

/* A key and an MPT entry for the translation that region->mtt has already. */
static int rhca_region_create(struct rhca_dev *dev, struct rhca_region *region,
			      u32 pdn, u32 flags, u64 start, u64 length)
{
	int err;

	err = rhca_key_alloc(dev, &region->key);
	if (err)
		return err;
	err = rhca_mpt_enable(dev, region, pdn, flags, start, length);
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
	err = rhca_region_create(dev, region, pdn, access, 0, umem->length);
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
	err = rhca_region_create(dev, region, pdn, access, 0,
				 (u64)buf->num_pieces << buf->piece_shift);
	if (err)
		rhca_mtt_destroy(dev, &region->mtt);
	return err;
}

void rhca_region_destroy(struct rhca_dev *dev, struct rhca_region *region)
{
	rhca_mpt_disable(dev, region);
	rhca_key_free(dev, region->key);
	rhca_mtt_destroy(dev, &region->mtt);
}

static void rhca_mr_publish(struct rhca_mr *mr)
{
	mr->ibmr.lkey = mr->region.key;
	mr->ibmr.rkey = mr->region.key;
}

struct ib_mr *rhca_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct rhca_dev *dev = to_rhca(ibpd->device);
	struct rhca_mr *mr;
	int err;

	if (access & ~RHCA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = rhca_region_create(dev, &mr->region, to_rhca_pd(ibpd)->pdn,
				 (access & RHCA_ACCESS_MASK) |
					 RDMA_HCA_MPT_PHYSICAL,
				 0, RHCA_ALL_MEMORY);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	rhca_mr_publish(mr);
	return &mr->ibmr;
}

/*
 * Memory that the process may write is pinned for writing, whatever the region
 * is for now: a new registration can give it that right, on the same pages.
 */
static struct ib_umem *rhca_pin(struct ib_device *ibdev, u64 start, u64 length,
				int access)
{
	struct vm_area_struct *vma;

	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, start);
	if (vma && vma->vm_start <= start && vma->vm_end - start >= length &&
	    (vma->vm_flags & VM_WRITE))
		access |= IB_ACCESS_LOCAL_WRITE;
	mmap_read_unlock(current->mm);
	return ib_umem_get(ibdev, start, length, access);
}

/* A region of @umem, which is released if that fails. */
static struct ib_mr *rhca_mr_create(struct ib_pd *ibpd, struct ib_umem *umem,
				    u64 iova, int access)
{
	struct rhca_dev *dev = to_rhca(ibpd->device);
	struct rhca_mr *mr;
	int err = -ENOMEM;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		goto release;
	mr->umem = umem;
	mr->ibmr.length = umem->length;
	mr->iova = iova;
	mr->access = access;
	mr->pdn = to_rhca_pd(ibpd)->pdn;
	err = rhca_mtt_create_umem(dev, &mr->region.mtt, umem, iova);
	if (err)
		goto free;
	err = rhca_region_create(dev, &mr->region, mr->pdn,
				 access & RHCA_ACCESS_MASK, iova, umem->length);
	if (err)
		goto destroy;
	rhca_mr_publish(mr);
	return &mr->ibmr;

destroy:
	rhca_mtt_destroy(dev, &mr->region.mtt);
free:
	kfree(mr);
release:
	ib_umem_release(umem);
	return ERR_PTR(err);
}

struct ib_mr *rhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access, struct ib_udata *udata)
{
	struct ib_umem *umem;
	int err;

	err = rhca_take_no_request(udata);
	if (err)
		return ERR_PTR(err);
	if (access & ~RHCA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	umem = rhca_pin(ibpd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return rhca_mr_create(ibpd, umem, iova, access);
}

/*
 * Memory of another device's driver, or of the system, by a file. The card has
 * no page faults, so the exporter has to pin it: it never moves while the
 * region is there.
 */
struct ib_mr *rhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 iova, int fd, int access,
				      struct rhca_dmabuf_arg *arg)
{
	struct ib_umem_dmabuf *dmabuf;
	int err;

	err = rhca_take_no_request(rhca_dmabuf_udata(arg));
	if (err)
		return ERR_PTR(err);
	if (access & ~RHCA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, length, fd,
					   access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	return rhca_mr_create(ibpd, &dmabuf->umem, iova, access);
}

int rhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct rhca_mr *mr = to_rhca_mr(ibmr);

	rhca_region_destroy(to_rhca(ibmr->device), &mr->region);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}

/*
 * Put @mr's entry back with what @mr now says. If the card refuses, the
 * entry stays with software: the keys are dead until the region goes.
 */
static int rhca_mr_enable(struct rhca_dev *dev, struct rhca_mr *mr)
{
	return rhca_mpt_enable(dev, &mr->region, mr->pdn,
			       mr->access & RHCA_ACCESS_MASK, mr->iova,
			       mr->umem->length);
}

/* Exchange the memory under @mr, whose entry is in hardware. */
static int rhca_mr_replace(struct rhca_dev *dev, struct rhca_mr *mr, u64 start,
			   u64 length, u64 iova, int access, u32 pdn)
{
	struct ib_umem *umem;
	struct rhca_mtt mtt;
	int err;

	umem = rhca_pin(&dev->ibdev, start, length, access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = rhca_mtt_create_umem(dev, &mtt, umem, iova);
	if (err)
		goto release;

	rhca_mpt_disable(dev, &mr->region);
	swap(mr->umem, umem);
	swap(mr->region.mtt, mtt);
	mr->ibmr.length = mr->umem->length;
	mr->iova = iova;
	mr->access = access;
	mr->pdn = pdn;
	err = rhca_mr_enable(dev, mr);
	rhca_mtt_destroy(dev, &mtt);
release:
	ib_umem_release(umem);
	return err;
}

static int rhca_mr_change(struct rhca_dev *dev, struct rhca_mr *mr, int access,
			  u32 pdn)
{
	rhca_mpt_disable(dev, &mr->region);
	mr->access = access;
	mr->pdn = pdn;
	return rhca_mr_enable(dev, mr);
}

struct ib_mr *rhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibmr->device);
	struct rhca_mr *mr = to_rhca_mr(ibmr);
	u32 pdn = mr->pdn;
	int err;

	err = rhca_take_no_request(udata);
	if (err)
		return ERR_PTR(err);
	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_PD)
		pdn = to_rhca_pd(ibpd)->pdn;
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (access & ~RHCA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);

	/* What is at the old address now need not be what is pinned. */
	if (flags & IB_MR_REREG_TRANS)
		err = rhca_mr_replace(dev, mr, start, length, iova, access,
				      pdn);
	else if (ib_access_writable(access) && !mr->umem->writable)
		err = -EPERM;
	else
		err = rhca_mr_change(dev, mr, access, pdn);
	return err ? ERR_PTR(err) : NULL;
}
