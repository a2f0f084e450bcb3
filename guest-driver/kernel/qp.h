/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs: qp.c, their queues in wq.c, what is posted to them in wr.c (the
 * queues that they share: srq.h); and where datagrams go: address handles (ah.c), multicast groups (mcast.c).
 */
#ifndef RHCA_QP_H
#define RHCA_QP_H

#include "rdma_hca_wqe.h"

#include "mr.h"
#include "uctx.h"

struct rhca_ah {
	struct ib_ah ibah;
	struct rdma_ah_attr attr;
};

struct rhca_srq;

/* A send or receive queue. */
struct rhca_wq {
	u32 len;		/* bytes */
	u32 entries;
	u8 shift;		/* log of an entry's bytes */
	struct ib_umem *umem;	/* process */
	struct rhca_region region;

	/* kernel: @entries is a power of two, indices do not wrap */
	spinlock_t lock;	/* one post at a time */
	struct rhca_buf buf;
	u32 head;		/* next to be posted */
	u32 tail;		/* next to end: of who polls */
	u64 *wr_id;
	u8 *wc_opcode;		/* send: enum ib_wc_opcode */
};

struct rhca_qp {
	struct ib_qp ibqp;
	u32 qpn;		/* the card's; ibqp.qp_num: its users' */
	struct mutex lock;	/* one state change at a time */
	enum ib_qp_state state;	/* as far as the driver knows */
	enum ib_sig_type sig_type;
	bool block_loopback;	/* of multicasts */
	struct ib_qp_cap cap;
	u32 uar;
	u32 pdn;
	u32 xrcdn;		/* XRC target */
	u32 counter_set;	/* that it counts in */
	struct rhca_wq sq;
	struct rhca_wq rq;
	struct rhca_db rq_db;
	struct rhca_srq *srq;	/* instead of @rq */
	refcount_t refs;	/* its owner's, and who tells of a failure */
	struct completion unused;
	bool has_last_wqe;	/* takes nothing of @srq: told, or not wanted */
	/* kernel: in the lists of its CQs */
	struct list_head send_node;
	struct list_head recv_node;
};

static inline struct rhca_ah *to_rhca_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct rhca_ah, ibah);
}

static inline struct rhca_qp *to_rhca_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct rhca_qp, ibqp);
}

/* QP 0 or 1. */
static inline bool rhca_is_special(enum ib_qp_type type)
{
	return type == IB_QPT_SMI || type == IB_QPT_GSI;
}

/* A QP has ended in an error. With 0 or 1 the core does not begin anew. */
static inline void rhca_qp_broke(struct rhca_dev *dev, const struct ib_qp *qp)
{
	if (rhca_is_special(qp->qp_type))
		rhca_fail_soon(dev, "a queue pair of its management broke");
}

static inline bool rhca_is_datagram(const struct rhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD ||
	       qp->ibqp.qp_type == IB_QPT_RAW_PACKET ||
	       rhca_is_special(qp->ibqp.qp_type);
}

static inline void rhca_qp_put(struct rhca_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->unused);
}

static inline void rhca_qp_tell(struct rhca_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = type,
	};

	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

static inline bool rhca_is_xrc(const struct rhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_INI ||
	       qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* wq.c */
/* @max_size: bytes of the largest WQE; wq->len and wq->shift are asked for. */
int rhca_wq_create_user(struct rhca_dev *dev, struct rhca_wq *wq, u32 pdn,
			u64 addr, u32 max_size, u32 max_wr);
/* How large a receive queue is; rhca_wq_create_kernel() makes it. */
int rhca_wq_size_recv(struct rhca_dev *dev, struct rhca_wq *wq, u32 sges,
		      u32 wrs);
int rhca_wq_create_kernel(struct rhca_dev *dev, struct rhca_wq *wq, u32 pdn);
void rhca_wq_destroy(struct rhca_dev *dev, struct rhca_wq *wq);
/* The sizes are in @udata, or follow from qp->cap. */
int rhca_queues_create_user(struct rhca_dev *dev, struct rhca_qp *qp,
			    struct rhca_ucontext *ctx, struct ib_udata *udata);
int rhca_queues_create_kernel(struct rhca_dev *dev, struct rhca_qp *qp);
/* @ctx: whose they are, NULL: the kernel's. */
void rhca_queues_destroy(struct rhca_dev *dev, struct rhca_qp *qp,
			 struct rhca_ucontext *ctx);
/* The kernel's: both empty, as the card expects after a reset of the QP. */
void rhca_queues_reset(struct rhca_qp *qp);

/* qp.c */
int rhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata);
int rhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int rhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr);
int rhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
/* @type: RDMA_HCA_EVENT_* of a QP. */
void rhca_qp_event(struct rhca_dev *dev, u32 qpn, u8 type);

/* drain.c */
/* Wait until all that has been posted has ended; may sleep. */
void rhca_drain_sq(struct ib_qp *ibqp);
void rhca_drain_rq(struct ib_qp *ibqp);

/* wr.c */
/*
 * Post what does nothing to a QP in ERR, which may be one of a card that has
 * failed: @cqe is told that it has ended, after all before it.
 */
int rhca_post_send_marker(struct rhca_qp *qp, struct ib_cqe *cqe);
int rhca_post_recv_marker(struct rhca_qp *qp, struct ib_cqe *cqe);
int rhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int rhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);
int rhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);

/* ah.c */
int rhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
		   struct ib_udata *udata);
int rhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int rhca_destroy_ah(struct ib_ah *ibah, u32 flags);

/* mcast.c */
int rhca_mcast_init(struct rhca_dev *dev);
void rhca_mcast_cleanup(struct rhca_dev *dev);
int rhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int rhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif /* RHCA_QP_H */
