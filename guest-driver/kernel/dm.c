// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: memory on the card, in BAR 4. A process has whole pages of it,
 * which it maps; regions of it are in mr.c.
 */
#define UVERBS_MODULE_NAME rdma_hca
#include <rdma/uverbs_named_ioctl.h>

#include "rdma_hca_user.h"

#include "mr.h"
#include "uctx.h"

/*
 * Pages are free when no process has them mapped any more, which may be after
 * the memory was freed.
 */
static void rhca_dm_release(struct rhca_mmap_entry *entry)
{
	struct rhca_dev *dev = to_rhca(entry->rdma_entry.ucontext->device);
	phys_addr_t start = pci_resource_start(dev->pdev, RDMA_HCA_BAR4);

	rhca_bitmap_free(&dev->dm_map, (entry->address - start) >> PAGE_SHIFT,
			 entry->rdma_entry.npages);
}

/* Nobody gets to see what another process has left there. */
static int rhca_dm_clear(phys_addr_t address, u32 pages)
{
	void __iomem *va = ioremap_wc(address, (size_t)pages << PAGE_SHIFT);
	u32 i;

	if (!va)
		return -ENOMEM;
	for (i = 0; i < pages; i++) {
		memset_io(va + (size_t)i * PAGE_SIZE, 0, PAGE_SIZE);
		cond_resched();
	}
	/* Before the card or the process has it. */
	wmb();
	iounmap(va);
	return 0;
}

/* Pages of memory for @dm in which there are zeros. */
static int rhca_dm_get_pages(struct rhca_dev *dev, struct rhca_dm *dm,
			     u32 pages, u32 align)
{
	u32 first;
	int err;

	err = rhca_bitmap_alloc_first(&dev->dm_map, pages, align, &first);
	if (err)
		return err;
	dm->offset = (u64)first << PAGE_SHIFT;
	err = rhca_dm_clear(pci_resource_start(dev->pdev, RDMA_HCA_BAR4) +
				    dm->offset,
			    pages);
	if (err)
		rhca_bitmap_free(&dev->dm_map, first, pages);
	return err;
}

/* The pages go with the entry from now on. */
static int rhca_dm_insert(struct rhca_dev *dev, struct ib_ucontext *ibctx,
			  struct rhca_dm *dm, u32 pages)
{
	struct rhca_mmap_entry *entry;
	int err = -ENOMEM;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		goto free;
	entry->address = pci_resource_start(dev->pdev, RDMA_HCA_BAR4) +
			 dm->offset;
	entry->is_memory = true;
	entry->release = rhca_dm_release;
	err = rhca_mmap_insert(ibctx, entry, (size_t)pages << PAGE_SHIFT);
	if (err) {
		kfree(entry);
		goto free;
	}
	dm->entry = &entry->rdma_entry;
	return 0;

free:
	rhca_bitmap_free(&dev->dm_map, dm->offset >> PAGE_SHIFT, pages);
	return err;
}

/* Where it can be mapped. */
static int rhca_dm_respond(struct uverbs_attr_bundle *attrs, u16 attr,
			   const struct rhca_dm *dm, u64 length)
{
	struct rdma_hca_dm_resp resp = {
		.mmap_key = rdma_user_mmap_get_offset(dm->entry),
		.length = length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, attr, &resp, sizeof(resp));
}

/* @attr->alignment is a logarithm; a page is aligned as a page is. */
static int rhca_dm_check(const struct rhca_dev *dev,
			 const struct ib_dm_alloc_attr *attr)
{
	/*
	 * A card that has failed is not kept from its own memory: nobody gets
	 * any that another one had before.
	 */
	if (rhca_failed(dev))
		return -EIO;
	if (!attr->length || attr->length > dev->caps.dev_mem ||
	    attr->alignment > ilog2(dev->caps.dev_mem))
		return -EINVAL;
	return 0;
}

struct ib_dm *rhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibctx,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	struct rhca_dm *dm;
	u32 pages, align;
	int err;

	err = rhca_dm_check(dev, attr);
	if (err)
		return ERR_PTR(err);
	pages = DIV_ROUND_UP(attr->length, PAGE_SIZE);
	align = DIV_ROUND_UP(1ul << attr->alignment, PAGE_SIZE);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	err = rhca_dm_get_pages(dev, dm, pages, align);
	if (err)
		goto free;
	err = rhca_dm_insert(dev, ibctx, dm, pages);
	if (err)
		goto free;
	err = rhca_dm_respond(attrs, RDMA_HCA_ATTR_ALLOC_DM_RESP, dm,
			      attr->length);
	if (err)
		goto remove;
	return &dm->ibdm;

remove:
	rdma_user_mmap_entry_remove(dm->entry);
free:
	kfree(dm);
	return ERR_PTR(err);
}

/* The core has made sure that no region is left. */
int rhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct rhca_dm *dm = to_rhca_dm(ibdm);

	rdma_user_mmap_entry_remove(dm->entry);
	kfree(dm);
	return 0;
}

/* For a process that another one has given the context to. */
static int UVERBS_HANDLER(RDMA_HCA_METHOD_DM_QUERY)(
	struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm =
		uverbs_attr_get_obj(attrs, RDMA_HCA_ATTR_DM_QUERY_HANDLE);

	return rhca_dm_respond(attrs, RDMA_HCA_ATTR_DM_QUERY_RESP,
			       to_rhca_dm(ibdm), ibdm->length);
}

DECLARE_UVERBS_NAMED_METHOD(
	RDMA_HCA_METHOD_DM_QUERY,
	UVERBS_ATTR_IDR(RDMA_HCA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(RDMA_HCA_ATTR_DM_QUERY_RESP,
			    UVERBS_ATTR_STRUCT(struct rdma_hca_dm_resp,
					       length),
			    UA_MANDATORY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	rhca_alloc_dm_attributes, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
	UVERBS_ATTR_PTR_OUT(RDMA_HCA_ATTR_ALLOC_DM_RESP,
			    UVERBS_ATTR_STRUCT(struct rdma_hca_dm_resp,
					       length),
			    UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM,
			      &UVERBS_METHOD(RDMA_HCA_METHOD_DM_QUERY));

const struct uapi_definition rhca_dm_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &rhca_alloc_dm_attributes),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DM),
	{}
};
