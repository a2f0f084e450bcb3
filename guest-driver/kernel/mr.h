/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory that the card may use: protection domains (pd.c), regions (mr.c),
 * windows (mw.c), and its own (dm.c).
 */
#ifndef RHCA_MR_H
#define RHCA_MR_H

#include <rdma/ib_verbs.h>

#include "compat.h"
#include "region.h"

/* Rights of a region. */
#define RHCA_ACCESS_MASK						\
	(RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE |	\
	 RDMA_HCA_ACCESS_REMOTE_READ | RDMA_HCA_ACCESS_REMOTE_ATOMIC |	\
	 RDMA_HCA_ACCESS_MW_BIND | RDMA_HCA_ACCESS_ZERO_BASED)

/*
 * Rights, and what is no more than a hint. What the card does not have is not
 * taken for granted.
 */
#define RHCA_ACCESS_KNOWN \
	(RHCA_ACCESS_MASK | RHCA_ACCESS_FLUSH | IB_ACCESS_HUGETLB | \
	 IB_ACCESS_OPTIONAL)

struct rhca_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

/* What a REG_MR names: pages or, of a region with gaps, pieces. */
struct rhca_page_list {
	__le64 *word;		/* one for a page, two for a piece */
	dma_addr_t dma;
	size_t size;		/* bytes, 0: no such list */
	bool has_pieces;
	u32 max;		/* pages or pieces */
	u32 count;
};

struct rhca_mr {
	struct ib_mr ibmr;
	struct rhca_region region;
	struct ib_umem *umem;	/* NULL: not a process's */
	u64 iova;
	int access;
	u32 pdn;
	struct rhca_page_list list;	/* fast registration */
};

struct rhca_mw {
	struct ib_mw ibmw;
	struct rhca_region region;
};

struct rhca_dm {
	struct ib_dm ibdm;
	u64 offset;		/* bytes, of its first page in device memory */
	struct rdma_user_mmap_entry *entry;
};

static inline struct rhca_pd *to_rhca_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct rhca_pd, ibpd);
}

static inline struct rhca_mr *to_rhca_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rhca_mr, ibmr);
}

static inline struct rhca_mw *to_rhca_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct rhca_mw, ibmw);
}

static inline struct rhca_dm *to_rhca_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct rhca_dm, ibdm);
}

/* pd.c */
int rhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int rhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* mr.c */
struct ib_mr *rhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *rhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access,
			       rhca_dmah_arg struct ib_udata *udata);
struct ib_mr *rhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 iova, int fd, int access,
				      rhca_dmah_arg
				      struct rhca_dmabuf_arg *arg);
struct ib_mr *rhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *rhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs);
int rhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct ib_mr *rhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_num_sg);
int rhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset);
/* The region of all processes that has no memory, if the card knows such. */
int rhca_null_mr_init(struct rhca_dev *dev);
void rhca_null_mr_cleanup(struct rhca_dev *dev);

/* dmabuf.c: memory of the file @fd's, pinned; ib_umem_release() unpins it. */
struct ib_umem *rhca_dmabuf_pin(struct ib_device *ibdev, u64 offset, u64 length,
				int fd, int access);

/* mw.c */
int rhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int rhca_dealloc_mw(struct ib_mw *ibmw);

/* dm.c */
struct ib_dm *rhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibctx,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int rhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
extern const struct uapi_definition rhca_dm_uapi_defs[];

#endif /* RHCA_MR_H */
