/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: cq.c, and poll.c, which reads those of the kernel. */
#ifndef RHCA_CQ_H
#define RHCA_CQ_H

#include "rdma_hca_wqe.h"

#include "compat.h"
#include "region.h"
#include "uctx.h"

struct rhca_eq;
struct rhca_srq;

struct rhca_cq {
	struct ib_cq ibcq;
	u32 cqn;
	u32 entries;		/* power of two */
	u32 ci;			/* kernel: counts without wrapping */
	spinlock_t lock;	/* kernel: protects the ring, @ci, the lists */
	struct list_head send_qps;	/* kernel: QPs that send by it */
	struct list_head recv_qps;	/* and that receive */
	bool armed;		/* kernel: an event has been asked for */
	bool has_events;	/* kernel: ever */
	bool failed;		/* kernel: it takes no entries any more */
	bool ignore_overrun;
	struct rhca_buf buf;	/* kernel */
	struct ib_umem *umem;	/* process */
	struct rhca_region region;
	struct rhca_db db;
	struct rhca_eq *eq;
	struct mutex resize_lock;	/* one resize at a time */
};

static inline struct rhca_cq *to_rhca_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct rhca_cq, ibcq);
}

/* An entry of the kernel's ring; @index need not be wrapped. */
static inline struct rdma_hca_cqe *rhca_cqe(struct rhca_cq *cq, u32 index)
{
	return rhca_buf_at(&cq->buf, (size_t)(index & (cq->entries - 1)) *
					     RDMA_HCA_CQE_SIZE);
}

static inline bool rhca_cqe_is_hw(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_OWNER,
			 le32_to_cpu(READ_ONCE(cqe->ctrl))) ==
	       RDMA_HCA_OWNER_HW;
}

static inline void rhca_cqe_give_back(struct rdma_hca_cqe *cqe)
{
	WRITE_ONCE(cqe->ctrl, cpu_to_le32(FIELD_PREP(RDMA_HCA_CQE_OWNER,
						     RDMA_HCA_OWNER_HW)));
}

static inline u32 rhca_cqe_qpn(const struct rdma_hca_cqe *cqe)
{
	return le32_to_cpu(cqe->my_qpn) & RDMA_HCA_QPN_MASK;
}

static inline bool rhca_cqe_is_send(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_IS_SEND, le32_to_cpu(cqe->ctrl));
}

static inline void rhca_cq_update_ci(struct rhca_cq *cq)
{
	/* The card may overwrite entries, read by now, once it sees it. */
	dma_mb();
	WRITE_ONCE(*cq->db.va, cpu_to_le32(cq->ci));
}

/* cq.c */
int rhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct rhca_cq_arg *arg);
int rhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int rhca_resize_cq(struct ib_cq *ibcq, rhca_cqe_arg cqe,
		   struct ib_udata *udata);
int rhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
/*
 * Remove what a QP of the kernel has left in a CQ of the kernel; what it has
 * taken of @srq, if it has one, goes back there.
 */
void rhca_cq_clean(struct rhca_cq *cq, u32 qpn, struct rhca_srq *srq);
/* The same of an XRC SRQ. */
void rhca_cq_clean_srq(struct rhca_cq *cq, u32 srqn);
void rhca_cq_completion(struct rhca_dev *dev, u32 cqn);
void rhca_cq_error(struct rhca_dev *dev, u32 cqn, u32 syndrome);

/* poll.c */
int rhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int rhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
/* Of the kernel: there is a completion that nobody has taken. */
bool rhca_cq_has_entry(struct ib_cq *ibcq);
/*
 * The card has failed: have users in the kernel poll, who wait for the end of
 * requests, which all end with a flush. What is posted from now on is refused.
 */
void rhca_flush_kernel(struct rhca_dev *dev);
/* Then: wait until those who are told by events have polled, for 2 s at most. */
void rhca_flush_wait(struct rhca_dev *dev);

/* Once more: somebody waits for the end of what is in a queue. */
static inline void rhca_flush_soon(struct rhca_dev *dev)
{
	queue_work(dev->pci->wq, &dev->flush);
}

#endif /* RHCA_CQ_H */
