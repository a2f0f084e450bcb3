// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a process maps of the card: pages of its BARs, which are its alone. */
#include "uctx.h"

int rhca_mmap_insert(struct ib_ucontext *ibctx, struct rhca_mmap_entry *entry,
		     size_t size)
{
	return rdma_user_mmap_entry_insert(ibctx, &entry->rdma_entry, size);
}

/*
 * Device memory is prefetchable: writes to it may be combined. It is not
 * cached, because nothing keeps a processor's cache and the card together.
 */
static pgprot_t rhca_mmap_prot(const struct rhca_mmap_entry *entry,
			       pgprot_t prot)
{
	return entry->is_memory ? pgprot_writecombine(prot) :
				  pgprot_noncached(prot);
}

int rhca_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma_entry;
	struct rhca_mmap_entry *entry;
	int err;

	rdma_entry = rdma_user_mmap_entry_get(ibctx, vma);
	if (!rdma_entry)
		return -EINVAL;
	entry = container_of(rdma_entry, struct rhca_mmap_entry, rdma_entry);
	err = rdma_user_mmap_io(ibctx, vma, PFN_DOWN(entry->address),
				rdma_entry->npages * PAGE_SIZE,
				rhca_mmap_prot(entry, vma->vm_page_prot),
				rdma_entry);
	rdma_user_mmap_entry_put(rdma_entry);
	return err;
}

void rhca_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct rhca_mmap_entry *entry =
		container_of(rdma_entry, struct rhca_mmap_entry, rdma_entry);

	if (entry->release)
		entry->release(entry);
	kfree(entry);
}
