/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a process has of its own: uctx.c; what it maps of the card, mmap.c; and
 * doorbell records, db.c, which the kernel has, too.
 */
#ifndef RHCA_UCTX_H
#define RHCA_UCTX_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "card.h"

struct rhca_ucontext {
	struct ib_ucontext ibctx;
	u32 uar;
	struct rdma_user_mmap_entry *uar_entry;
	struct mutex db_lock;	/* protects @db_pages */
	struct list_head db_pages;
};

/* Pages of a BAR that a process may map. */
struct rhca_mmap_entry {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t address;
	bool is_memory;		/* else registers */
	/* It was removed, and nobody has it mapped any more; may be NULL. */
	void (*release)(struct rhca_mmap_entry *entry);
};

/* A doorbell record: a 32-bit word that the card reads. */
struct rhca_db_page;
struct rhca_db {
	dma_addr_t dma;
	__le32 *va;			/* the kernel's */
	struct rhca_db_page *page;	/* a process's */
};

static inline struct rhca_ucontext *to_rhca_ucontext(struct ib_ucontext *ibctx)
{
	return container_of(ibctx, struct rhca_ucontext, ibctx);
}

static inline struct rhca_ucontext *rhca_udata_ucontext(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct rhca_ucontext, ibctx);
}

/* uctx.c */
int rhca_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata);
void rhca_dealloc_ucontext(struct ib_ucontext *ibctx);
int rhca_query_ucontext(struct ib_ucontext *ibctx,
			struct uverbs_attr_bundle *attrs);
/* What uverbs has of the driver beyond the verbs. */
extern const struct uapi_definition rhca_uctx_uapi_defs[];
void rhca_disassociate_ucontext(struct ib_ucontext *ibctx);

/* mmap.c */
/* Frees @entry with kfree() when it is released. */
int rhca_mmap_insert(struct ib_ucontext *ibctx, struct rhca_mmap_entry *entry,
		     size_t size);
int rhca_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma);
void rhca_mmap_free(struct rdma_user_mmap_entry *entry);

/* db.c */
/* The record at address @addr of the calling process. */
int rhca_db_map_user(struct rhca_ucontext *ctx, u64 addr, struct rhca_db *db);
/* @ctx: whose record it is, NULL: the kernel's. */
void rhca_db_free(struct rhca_dev *dev, struct rhca_ucontext *ctx,
		  struct rhca_db *db);
int rhca_db_alloc(struct rhca_dev *dev, struct rhca_db *db);

#endif /* RHCA_UCTX_H */
