// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_post_send() and ibv_bind_mw(). */
#include "wqe.h"

#define RHCA_SEND_FLAGS							\
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |	\
	 IBV_SEND_INLINE)

/* NULL: this QP has no such operation. */
static const struct rhca_op *rhca_find_op(const struct rhca_qp *qp,
					  enum ibv_wr_opcode opcode)
{
	const struct rhca_op *op;

	if (unlikely((unsigned int)opcode >= RHCA_NUM_OPS))
		return NULL;
	op = &rhca_ops[opcode];
	if (unlikely(!rhca_has_op(qp->vqp.qp.qp_type, op) ||
		     (op->qp_ex & to_rctx(qp->vqp.qp.context)->missing_ops)))
		return NULL;
	return op;
}

static int rhca_put_inline(struct rhca_qp *qp, const struct ibv_sge *sge,
			   size_t num_sge)
{
	uint32_t length = 0;
	int err;

	for (; num_sge; num_sge--, sge++) {
		err = rhca_add_inline(qp, &length,
				      (void *)(uintptr_t)sge->addr,
				      sge->length);
		if (unlikely(err))
			return err;
	}
	rhca_end_inline(&qp->chain, length);
	return 0;
}

/* Those of type 1 by a verb. Without an MR they are unbound. */
static bool rhca_is_bind_verb(const struct ibv_mw *mw,
			      const struct ibv_mw_bind_info *info)
{
	return rhca_is_bind(mw, IBV_MW_TYPE_1, info) &&
	       !(info->mw_access_flags & IBV_ACCESS_ZERO_BASED) &&
	       (info->mr || !info->length);
}

/* The card has one place for what is swapped in and what is added. */
static void rhca_put_atomic_head(struct rhca_chain *chain,
				 const struct ibv_send_wr *wr)
{
	rhca_put_raddr(chain, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
	if (chain->op->has_compare)
		rhca_put_atomic(chain, wr->wr.atomic.swap,
				wr->wr.atomic.compare_add);
	else
		rhca_put_atomic(chain, wr->wr.atomic.compare_add, 0);
}

static void rhca_put_local_head(struct rhca_chain *chain,
				const struct ibv_send_wr *wr)
{
	if (chain->op->has_bind)
		rhca_put_bind(chain, wr->bind_mw.mw, wr->bind_mw.rkey,
			      &wr->bind_mw.bind_info);
	else
		rhca_put_inv(chain, wr->invalidate_rkey);
}

static void rhca_put_head(struct rhca_qp *qp, const struct ibv_send_wr *wr)
{
	struct rhca_chain *chain = &qp->chain;

	if (chain->op->has_inv)
		chain->wqe->inv_rkey = htole32(wr->invalidate_rkey);
	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		rhca_put_ud(chain, to_rah(wr->wr.ud.ah), wr->wr.ud.remote_qpn,
			    wr->wr.ud.remote_qkey);
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		rhca_put_xrc(chain, wr->qp_type.xrc.remote_srqn);
	if (chain->op->has_atomic)
		rhca_put_atomic_head(chain, wr);
	else if (chain->op->has_raddr)
		rhca_put_raddr(chain, wr->wr.rdma.remote_addr,
			       wr->wr.rdma.rkey);
	else if (chain->op->is_local)
		rhca_put_local_head(chain, wr);
	rhca_wqe_begin_data(chain);
}

static int rhca_put_data(struct rhca_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->chain.op->is_local)
		return 0;
	return wr->send_flags & IBV_SEND_INLINE ?
		       rhca_put_inline(qp, wr->sg_list, wr->num_sge) :
		       rhca_put_sges(qp, wr->sg_list, wr->num_sge);
}

static int rhca_post_one_send(struct rhca_qp *qp, const struct ibv_send_wr *wr)
{
	const struct rhca_op *op = rhca_find_op(qp, wr->opcode);
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	int err;

	if (unlikely(!op || wr->num_sge < 0 ||
		     (wr->send_flags & ~RHCA_SEND_FLAGS) ||
		     (is_inline && op->is_response)))
		return EINVAL;
	/* A struct ibv_send_wr has no place for what is to be flushed. */
	if (unlikely(op->has_flush))
		return EINVAL;
	if (unlikely(op->has_bind && !rhca_is_bind_wr(wr->bind_mw.mw,
						      &wr->bind_mw.bind_info)))
		return EINVAL;
	if (unlikely(qp->vqp.qp.qp_type == IBV_QPT_UD && !wr->wr.ud.ah))
		return EINVAL;
	err = rhca_wqe_open(qp, op, wr->wr_id, wr->send_flags, wr->imm_data);
	if (unlikely(err))
		return err;
	rhca_put_head(qp, wr);
	err = rhca_put_data(qp, wr);
	if (unlikely(err))
		return err;
	rhca_wqe_close(qp);
	return 0;
}

int rhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct rhca_qp *qp = to_rqp(ibqp);
	int err = 0;

	if (unlikely(!rhca_can_post_send(qp))) {
		*bad_wr = wr;
		return EINVAL;
	}
	rhca_wq_lock(&qp->sq);
	rhca_chain_begin(qp);
	for (; wr; wr = wr->next) {
		err = rhca_post_one_send(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	rhca_chain_end(qp);
	rhca_wq_unlock(&qp->sq);
	return err;
}

static int rhca_post_bind(struct rhca_qp *qp, const struct ibv_mw *mw,
			  uint32_t rkey, const struct ibv_mw_bind *mw_bind)
{
	int err;

	err = rhca_wqe_open(qp, &rhca_ops[IBV_WR_BIND_MW], mw_bind->wr_id,
			    mw_bind->send_flags, 0);
	if (err)
		return err;
	rhca_put_bind(&qp->chain, mw, rkey, &mw_bind->bind_info);
	rhca_wqe_close(qp);
	return 0;
}

/* The window has a new key as soon as this returns. */
int rhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *mw_bind)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct rhca_qp *qp = to_rqp(ibqp);
	int err;

	if (!rhca_find_op(qp, IBV_WR_BIND_MW) || !rhca_can_post_send(qp) ||
	    (mw_bind->send_flags & ~RHCA_SEND_FLAGS) ||
	    !rhca_is_bind_verb(mw, &mw_bind->bind_info))
		return EINVAL;
	rhca_wq_lock(&qp->sq);
	rhca_chain_begin(qp);
	err = rhca_post_bind(qp, mw, rkey, mw_bind);
	rhca_chain_end(qp);
	if (!err)
		mw->rkey = rkey;
	rhca_wq_unlock(&qp->sq);
	return err;
}
