// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs on memory regions: of a process, of all memory, of the card's, for
 * fast registration, and the one that has no memory.
 */
#include <linux/backing-dev.h>

#include "mr.h"
#include "udata.h"

static int rhca_check_access(const struct rhca_dev *dev, int access)
{
	if (access & ~RHCA_ACCESS_KNOWN)
		return -EOPNOTSUPP;
	if ((access & IB_ACCESS_MW_BIND) &&
	    !(dev->caps.features & RDMA_HCA_FEATURE_MW))
		return -EOPNOTSUPP;
	if ((access & RHCA_ACCESS_FLUSH) &&
	    !(dev->caps.features & RDMA_HCA_FEATURE_FLUSH))
		return -EOPNOTSUPP;
	return 0;
}

/* The flags of an MPT entry with these rights. */
static u32 rhca_mr_flags(int access)
{
	u32 flush = FIELD_GET(RDMA_HCA_ACCESS_FLUSH, access & RHCA_ACCESS_FLUSH);

	return (access & RHCA_ACCESS_MASK) | RHCA_MPT_MEMORY |
	       FIELD_PREP(RDMA_HCA_MPT_FLUSH, flush);
}

static void rhca_mr_publish(struct rhca_mr *mr)
{
	mr->ibmr.lkey = mr->region.key;
	mr->ibmr.rkey = mr->region.key;
}

/* --- all memory --------------------------------------------------------- */

struct ib_mr *rhca_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct rhca_dev *dev = to_rhca(ibpd->device);
	struct rhca_mr *mr;
	int err;

	err = rhca_check_access(dev, access);
	if (err)
		return ERR_PTR(err);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = rhca_region_create(dev, &mr->region, to_rhca_pd(ibpd)->pdn,
				 rhca_mr_flags(access) | RDMA_HCA_MPT_PHYSICAL,
				 0, RHCA_ALL_MEMORY);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	rhca_mr_publish(mr);
	return &mr->ibmr;
}

/* --- device memory ------------------------------------------------------ */

/*
 * The core has checked that it lies in @ibdm, and that its addresses count from
 * 0. Windows are not bound to such a region.
 */
struct ib_mr *rhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct rhca_dev *dev = to_rhca(ibpd->device);
	struct rhca_mr *mr;
	int err;

	err = rhca_check_access(dev, attr->access_flags);
	if (!err && (attr->access_flags & IB_ACCESS_MW_BIND))
		err = -EINVAL;
	if (err)
		return ERR_PTR(err);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = attr->access_flags;
	mr->pdn = to_rhca_pd(ibpd)->pdn;
	mr->ibmr.length = attr->length;
	err = rhca_region_create(dev, &mr->region, mr->pdn,
				 rhca_mr_flags(mr->access) |
					 RDMA_HCA_MPT_PHYSICAL |
					 RDMA_HCA_MPT_DEV_MEM,
				 to_rhca_dm(ibdm)->offset + attr->offset,
				 attr->length);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	rhca_mr_publish(mr);
	return &mr->ibmr;
}

/* --- of a process ------------------------------------------------------- */

/*
 * Not what a file system has to write back: all of it would be dirty afterwards,
 * and some let nobody pin it for writing.
 */
static bool rhca_may_pin_writable(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & VM_WRITE) &&
	       (!(vma->vm_flags & VM_SHARED) || !vma->vm_file ||
		!mapping_can_writeback(vma->vm_file->f_mapping));
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
	    rhca_may_pin_writable(vma))
		access |= IB_ACCESS_LOCAL_WRITE;
	mmap_read_unlock(current->mm);
	return ib_umem_get_va(ibdev, start, length, access);
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
				 rhca_mr_flags(access), iova, umem->length);
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
			       u64 iova, int access,
			       rhca_dmah_arg struct ib_udata *udata)
{
	struct ib_umem *umem;
	int err;

	err = rhca_check_dmah() ?: rhca_take_no_request(udata) ?:
	      rhca_check_access(to_rhca(ibpd->device), access);
	if (err)
		return ERR_PTR(err);
	umem = rhca_pin(ibpd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return rhca_mr_create(ibpd, umem, iova, access);
}

struct ib_mr *rhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 iova, int fd, int access,
				      rhca_dmah_arg
				      struct rhca_dmabuf_arg *arg)
{
	struct ib_umem *umem;
	int err;

	err = rhca_check_dmah() ?: rhca_take_no_request(rhca_dmabuf_udata(arg)) ?:
	      rhca_check_access(to_rhca(ibpd->device), access);
	if (err)
		return ERR_PTR(err);
	if (!length)
		return ERR_PTR(-EINVAL);
	umem = rhca_dmabuf_pin(ibpd->device, offset, length, fd, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return rhca_mr_create(ibpd, umem, iova, access);
}

/*
 * Put @mr's entry back with what @mr now says. If the card refuses, the
 * entry stays with software: the keys are dead until the region goes.
 */
static int rhca_mr_enable(struct rhca_dev *dev, struct rhca_mr *mr)
{
	return rhca_region_enable(dev, &mr->region, mr->pdn,
				  rhca_mr_flags(mr->access), mr->iova,
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

	err = rhca_region_disable(dev, &mr->region);
	if (err)
		goto destroy;
	swap(mr->umem, umem);
	swap(mr->region.mtt, mtt);
	mr->ibmr.length = mr->umem->length;
	mr->iova = iova;
	mr->access = access;
	mr->pdn = pdn;
	err = rhca_mr_enable(dev, mr);
destroy:
	rhca_mtt_destroy(dev, &mtt);
release:
	ib_umem_release(umem);
	return err;
}

static int rhca_mr_change(struct rhca_dev *dev, struct rhca_mr *mr, int access,
			  u32 pdn)
{
	int err;

	err = rhca_region_disable(dev, &mr->region);
	if (err)
		return err;
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
	err = rhca_check_access(dev, access);
	if (err)
		return ERR_PTR(err);

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

/* --- fast registration -------------------------------------------------- */

/* Words of a list of @count entries, in memory and in the MTT. */
static u32 rhca_list_words(const struct rhca_page_list *list, u32 count)
{
	return list->has_pieces ? 2 * count : count;
}

static u32 rhca_list_flags(const struct rhca_page_list *list)
{
	return RHCA_MPT_MEMORY | RDMA_HCA_MPT_FREE | RDMA_HCA_MPT_FAST_REG |
	       (list->has_pieces ? RDMA_HCA_MPT_PIECES : 0);
}

static int rhca_list_alloc(struct rhca_dev *dev, struct rhca_page_list *list,
			   bool has_pieces, u32 max)
{
	struct device *device = &dev->pdev->dev;

	list->has_pieces = has_pieces;
	list->max = max;
	list->size = rhca_list_words(list, max) * sizeof(*list->word);
	list->word = kzalloc(list->size, GFP_KERNEL);
	if (!list->word)
		return -ENOMEM;
	list->dma = dma_map_single(device, list->word, list->size,
				   DMA_TO_DEVICE);
	if (!dma_mapping_error(device, list->dma))
		return 0;
	kfree(list->word);
	return -ENOMEM;
}

static void rhca_list_free(struct rhca_dev *dev, struct rhca_page_list *list)
{
	if (!list->size)
		return;
	dma_unmap_single(&dev->pdev->dev, list->dma, list->size, DMA_TO_DEVICE);
	kfree(list->word);
}

struct ib_mr *rhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_num_sg)
{
	struct rhca_dev *dev = to_rhca(ibpd->device);
	struct rhca_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->caps.max_page_list)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = rhca_list_alloc(dev, &mr->list, type == IB_MR_TYPE_SG_GAPS,
			      max_num_sg);
	if (err)
		goto free;
	err = rhca_region_create_blank(dev, &mr->region,
				       to_rhca_pd(ibpd)->pdn,
				       rhca_list_flags(&mr->list),
				       rhca_list_words(&mr->list, max_num_sg));
	if (err)
		goto list;
	rhca_mr_publish(mr);
	return &mr->ibmr;

list:
	rhca_list_free(dev, &mr->list);
free:
	kfree(mr);
	return ERR_PTR(err);
}

static int rhca_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct rhca_page_list *list = &to_rhca_mr(ibmr)->list;

	if (list->count == list->max)
		return -ENOMEM;
	list->word[list->count++] = cpu_to_le64(addr);
	return 0;
}

/* Pages as long as the consumer says, the MTT's as the card knows them. */
static int rhca_map_pages(struct ib_mr *ibmr, struct scatterlist *sg,
			  int sg_nents, unsigned int *sg_offset)
{
	if (!is_power_of_2(ibmr->page_size) ||
	    !(ibmr->page_size & RHCA_PAGE_SIZES))
		return -EINVAL;
	return ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, rhca_set_page);
}

/* The element that an offset is in is the first, and has what is behind it. */
static int rhca_map_pieces(struct ib_mr *ibmr, struct scatterlist *sgl,
			   int sg_nents, unsigned int *sg_offset)
{
	struct rhca_page_list *list = &to_rhca_mr(ibmr)->list;
	unsigned int offset = sg_offset ? *sg_offset : 0;
	struct scatterlist *sg;
	__le64 *word = list->word;
	int i;

	if (sg_nents <= 0 || offset > sg_dma_len(sgl))
		return -EINVAL;
	ibmr->iova = sg_dma_address(sgl) + offset;
	ibmr->length = 0;
	for_each_sg(sgl, sg, sg_nents, i) {
		if (list->count == list->max)
			break;
		/* An offset may leave nothing of the first. */
		if (sg_dma_len(sg) == offset) {
			offset = 0;
			continue;
		}
		ibmr->length += sg_dma_len(sg) - offset;
		*word++ = cpu_to_le64(sg_dma_address(sg) + offset);
		*word++ = cpu_to_le64(ibmr->length);
		list->count++;
		offset = 0;
	}
	if (sg_offset)
		*sg_offset = 0;
	return i;
}

int rhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset)
{
	struct rhca_page_list *list = &to_rhca_mr(ibmr)->list;
	struct device *device = &to_rhca(ibmr->device)->pdev->dev;
	int n;

	list->count = 0;
	dma_sync_single_for_cpu(device, list->dma, list->size, DMA_TO_DEVICE);
	n = list->has_pieces ? rhca_map_pieces(ibmr, sg, sg_nents, sg_offset) :
			       rhca_map_pages(ibmr, sg, sg_nents, sg_offset);
	dma_sync_single_for_device(device, list->dma, list->size,
				   DMA_TO_DEVICE);
	return n;
}

/* --- no memory ---------------------------------------------------------- */

int rhca_null_mr_init(struct rhca_dev *dev)
{
	struct rhca_region *region;
	int err;

	if (!(dev->caps.features & RDMA_HCA_FEATURE_NULL_MR))
		return 0;
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return -ENOMEM;
	err = rhca_region_create(dev, region, dev->pdn,
				 RHCA_MPT_MEMORY | RDMA_HCA_MPT_NULL |
					 RDMA_HCA_ACCESS_LOCAL_WRITE,
				 0, RHCA_ALL_MEMORY);
	if (err) {
		kfree(region);
		return err;
	}
	dev->null_mr = region;
	return 0;
}

void rhca_null_mr_cleanup(struct rhca_dev *dev)
{
	if (!dev->null_mr)
		return;
	rhca_region_destroy(dev, dev->null_mr);
	kfree(dev->null_mr);
	dev->null_mr = NULL;
}

/* --- the end ------------------------------------------------------------ */

/* A region that windows are bound to stays, and can be used as before. */
int rhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibmr->device);
	struct rhca_mr *mr = to_rhca_mr(ibmr);
	int err;

	err = rhca_region_disable(dev, &mr->region);
	if (err)
		return err;
	rhca_region_destroy(dev, &mr->region);
	rhca_list_free(dev, &mr->list);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
