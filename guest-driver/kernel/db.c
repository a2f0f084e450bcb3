// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbell records: of a process in pages of its own, which are pinned once
 * however many queues have a record in them; of the kernel in a pool.
 */
#include <rdma/ib_umem.h>

#include "compat.h"
#include "uctx.h"

/* A pinned page of doorbell records. */
struct rhca_db_page {
	struct list_head list;
	struct ib_umem *umem;
	u64 addr;
	u32 refs;
};

static struct rhca_db_page *rhca_db_page_pin(struct rhca_ucontext *ctx,
					     u64 addr)
{
	struct rhca_db_page *page;

	page = kzalloc(sizeof(*page), GFP_KERNEL);
	if (!page)
		return ERR_PTR(-ENOMEM);
	page->addr = addr;
	/* The card only reads records. */
	page->umem = ib_umem_get_va(ctx->ibctx.device, addr, PAGE_SIZE, 0);
	if (IS_ERR(page->umem)) {
		long err = PTR_ERR(page->umem);

		kfree(page);
		return ERR_PTR(err);
	}
	list_add(&page->list, &ctx->db_pages);
	return page;
}

static struct rhca_db_page *rhca_db_page_get(struct rhca_ucontext *ctx,
					     u64 addr)
{
	struct rhca_db_page *page;

	/* After a fork there are two processes with the same addresses. */
	list_for_each_entry(page, &ctx->db_pages, list)
		if (page->addr == addr && page->umem->owning_mm == current->mm)
			return page;
	return rhca_db_page_pin(ctx, addr);
}

int rhca_db_map_user(struct rhca_ucontext *ctx, u64 addr, struct rhca_db *db)
{
	struct rhca_db_page *page;
	int err = 0;

	if (!IS_ALIGNED(addr, sizeof(__le32)))
		return -EINVAL;

	mutex_lock(&ctx->db_lock);
	page = rhca_db_page_get(ctx, addr & PAGE_MASK);
	if (IS_ERR(page)) {
		err = PTR_ERR(page);
	} else {
		page->refs++;
		db->page = page;
		db->dma = sg_dma_address(page->umem->sgt_append.sgt.sgl) +
			  offset_in_page(addr);
	}
	mutex_unlock(&ctx->db_lock);
	return err;
}

static void rhca_db_unmap_user(struct rhca_ucontext *ctx, struct rhca_db *db)
{
	struct rhca_db_page *page = db->page;

	mutex_lock(&ctx->db_lock);
	if (!--page->refs) {
		list_del(&page->list);
		ib_umem_release(page->umem);
		kfree(page);
	}
	mutex_unlock(&ctx->db_lock);
}

int rhca_db_alloc(struct rhca_dev *dev, struct rhca_db *db)
{
	db->va = dma_pool_zalloc(dev->db_pool, GFP_KERNEL, &db->dma);
	return db->va ? 0 : -ENOMEM;
}

void rhca_db_free(struct rhca_dev *dev, struct rhca_ucontext *ctx,
		  struct rhca_db *db)
{
	if (ctx)
		rhca_db_unmap_user(ctx, db);
	else
		dma_pool_free(dev->db_pool, db->va, db->dma);
}
