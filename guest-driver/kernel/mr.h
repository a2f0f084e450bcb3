/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory that the card may use: protection domains (pd.c), regions (mr.c). */
#ifndef RHCA_MR_H
#define RHCA_MR_H

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "card.h"
#include "compat.h"

struct rhca_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

/* Translation of a region: MTT entries of one page size. */
struct rhca_mtt {
	u32 first;
	u32 count;		/* 0: none */
	u8 page_shift;
};

/* An MPT entry with its translation. */
struct rhca_region {
	u32 key;
	bool live;		/* in hardware */
	struct rhca_mtt mtt;
};

struct rhca_mr {
	struct ib_mr ibmr;
	struct rhca_region region;
	struct ib_umem *umem;	/* NULL: all memory */
	u64 iova;
	int access;
	u32 pdn;
};

static inline struct rhca_pd *to_rhca_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct rhca_pd, ibpd);
}

static inline struct rhca_mr *to_rhca_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rhca_mr, ibmr);
}

/* pd.c */
int rhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int rhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* mr.c */
/*
 * A region for a queue of its own, from offset 0 on. @access: what the card
 * may do, 0 (read) or RDMA_HCA_ACCESS_LOCAL_WRITE.
 */
int rhca_region_create_umem(struct rhca_dev *dev, struct rhca_region *region,
			    u32 pdn, u32 access, struct ib_umem *umem);
int rhca_region_create_buf(struct rhca_dev *dev, struct rhca_region *region,
			   u32 pdn, u32 access, const struct rhca_buf *buf);
void rhca_region_destroy(struct rhca_dev *dev, struct rhca_region *region);

struct ib_mr *rhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *rhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access, struct ib_udata *udata);
struct ib_mr *rhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 iova, int fd, int access,
				      struct rhca_dmabuf_arg *arg);
struct ib_mr *rhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata);
int rhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* RHCA_MR_H */
