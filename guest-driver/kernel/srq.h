/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues: srq.c; what is posted to them is in wr.c. XRC domains,
 * which are numbers that the card compares, are in pd.c.
 */
#ifndef RHCA_SRQ_H
#define RHCA_SRQ_H

#include "qp.h"

/*
 * Entries are used in the order in which they are posted and complete in any
 * other: what tells of one is its tag. There are as many of them as entries, so
 * who has a tag has an entry, too.
 */
struct rhca_srq {
	struct ib_srq ibsrq;
	u32 srqn;
	u32 max_sge;
	struct rhca_wq wq;	/* wr_id by tag; the lock protects @tags, too */
	struct rhca_tags tags;	/* kernel */
	struct rhca_db db;
	struct mutex resize_lock;
};

struct rhca_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
	u32 pdn;		/* of the target QPs, which have none */
};

static inline struct rhca_srq *to_rhca_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct rhca_srq, ibsrq);
}

static inline struct rhca_xrcd *to_rhca_xrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct rhca_xrcd, ibxrcd);
}

static inline bool rhca_cqe_is_xrc(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_XRC, le32_to_cpu(cqe->ctrl));
}

/* Of a CQE of an XRC SRQ. */
static inline u32 rhca_cqe_srqn(const struct rdma_hca_cqe *cqe)
{
	return le32_to_cpu(cqe->rqpn) & RDMA_HCA_XRC_SRQN;
}

/*
 * What a CQE names has ended; @wr_id, if not NULL, is what it was. Returns false
 * if it names none that is in use. Under the lock of a CQ.
 */
static inline bool rhca_srq_retire(struct rhca_srq *srq,
				   const struct rdma_hca_cqe *cqe, u64 *wr_id)
{
	u32 tag = le32_to_cpu(cqe->wqe);
	bool known;

	spin_lock(&srq->wq.lock);
	known = rhca_tags_give(&srq->tags, tag);
	if (known && wr_id)
		*wr_id = srq->wq.wr_id[tag];
	spin_unlock(&srq->wq.lock);
	return known;
}

/* srq.c */
int rhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		    struct ib_udata *udata);
int rhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata);
int rhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int rhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
/* @type: RDMA_HCA_EVENT_* of an SRQ. */
void rhca_srq_event(struct rhca_dev *dev, u32 srqn, u8 type);

/* pd.c */
int rhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int rhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

#endif /* RHCA_SRQ_H */
