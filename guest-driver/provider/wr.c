// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_wr_*(): work requests in pieces. */
#include "wqe.h"

/* Bytes: as much as a message at most. */
#define RHCA_MAX_FLUSH	0x80000000u

/* The first failure counts; ibv_wr_complete() tells it. */
static void rhca_wr_fail(struct rhca_chain *chain, int err)
{
	if (!chain->err)
		chain->err = err;
	chain->wqe = NULL;
}

static void rhca_wr_close(struct rhca_qp *qp)
{
	if (!qp->chain.wqe)
		return;
	if (unlikely(!qp->chain.has_addr))
		rhca_wr_fail(&qp->chain, EINVAL);
	else
		rhca_wqe_close(qp);
}

/* Returns the chain with the new WQE, or NULL after a failure. */
static struct rhca_chain *rhca_wr_open(struct ibv_qp_ex *ibqp,
				       enum ibv_wr_opcode opcode, __be32 imm)
{
	struct rhca_qp *qp = to_rqp_ex(ibqp);
	int err;

	rhca_wr_close(qp);
	if (unlikely(qp->chain.err))
		return NULL;
	err = rhca_wqe_open(qp, &rhca_ops[opcode], ibqp->wr_id, ibqp->wr_flags,
			    imm);
	if (unlikely(err)) {
		rhca_wr_fail(&qp->chain, err);
		return NULL;
	}
	return &qp->chain;
}

static void rhca_wr_open_rdma(struct ibv_qp_ex *ibqp, enum ibv_wr_opcode opcode,
			      uint32_t rkey, uint64_t raddr, __be32 imm)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, opcode, imm);

	if (unlikely(!chain))
		return;
	rhca_put_raddr(chain, raddr, rkey);
	rhca_wqe_begin_data(chain);
}

static void rhca_wr_open_atomic(struct ibv_qp_ex *ibqp,
				enum ibv_wr_opcode opcode, uint32_t rkey,
				uint64_t raddr, uint64_t swap_add,
				uint64_t compare)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, opcode, 0);

	if (unlikely(!chain))
		return;
	rhca_put_raddr(chain, raddr, rkey);
	rhca_put_atomic(chain, swap_add, compare);
	rhca_wqe_begin_data(chain);
}

static void rhca_wr_start(struct ibv_qp_ex *ibqp)
{
	struct rhca_qp *qp = to_rqp_ex(ibqp);

	rhca_wq_lock(&qp->sq);
	rhca_chain_begin(qp);
	if (unlikely(!rhca_can_post_send(qp)))
		qp->chain.err = EINVAL;
}

static int rhca_wr_complete(struct ibv_qp_ex *ibqp)
{
	struct rhca_qp *qp = to_rqp_ex(ibqp);
	int err;

	rhca_wr_close(qp);
	err = qp->chain.err;
	if (likely(!err))
		rhca_chain_end(qp);
	rhca_wq_unlock(&qp->sq);
	return err;
}

/* The queue's head has not moved: the slots are free as before. */
static void rhca_wr_abort(struct ibv_qp_ex *ibqp)
{
	rhca_wq_unlock(&to_rqp_ex(ibqp)->sq);
}

static void rhca_wr_send(struct ibv_qp_ex *ibqp)
{
	rhca_wr_open(ibqp, IBV_WR_SEND, 0);
}

static void rhca_wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm)
{
	rhca_wr_open(ibqp, IBV_WR_SEND_WITH_IMM, imm);
}

static void rhca_wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, IBV_WR_SEND_WITH_INV, 0);

	if (likely(chain))
		chain->wqe->inv_rkey = htole32(rkey);
}

static void rhca_wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, IBV_WR_LOCAL_INV, 0);

	if (likely(chain))
		rhca_put_inv(chain, rkey);
}

static void rhca_wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw,
			    uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, IBV_WR_BIND_MW, 0);

	if (unlikely(!chain))
		return;
	if (unlikely(!rhca_is_bind_wr(mw, info)))
		rhca_wr_fail(chain, EINVAL);
	else
		rhca_put_bind(chain, mw, rkey, info);
}

static void rhca_wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			       uint64_t raddr)
{
	rhca_wr_open_rdma(ibqp, IBV_WR_RDMA_WRITE, rkey, raddr, 0);
}

static void rhca_wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey,
				   uint64_t raddr, __be32 imm)
{
	rhca_wr_open_rdma(ibqp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, raddr, imm);
}

static void rhca_wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t raddr)
{
	rhca_wr_open_rdma(ibqp, IBV_WR_RDMA_READ, rkey, raddr, 0);
}

static void rhca_wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey,
				   uint64_t raddr, uint64_t compare,
				   uint64_t swap)
{
	rhca_wr_open_atomic(ibqp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, raddr, swap,
			    compare);
}

static void rhca_wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey,
				     uint64_t raddr, uint64_t add)
{
	rhca_wr_open_atomic(ibqp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, raddr, add,
			    0);
}

/* It fits the smallest slot, whatever room for inline data was asked for. */
static void rhca_wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
				 uint64_t raddr, const void *value)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, IBV_WR_ATOMIC_WRITE, 0);

	if (unlikely(!chain))
		return;
	rhca_put_raddr(chain, raddr, rkey);
	rhca_wqe_begin_data(chain);
	memcpy((uint8_t *)chain->data + sizeof(__le32), value,
	       sizeof(uint64_t));
	rhca_end_inline(chain, sizeof(uint64_t));
}

#ifdef RHCA_HAS_FLUSH
/* Of all of a region its address and length do not matter. */
static bool rhca_is_flush(size_t len, uint8_t type, uint8_t level)
{
	if (!type || (type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)))
		return false;
	return level == IBV_FLUSH_MR ||
	       (level == IBV_FLUSH_RANGE && len <= RHCA_MAX_FLUSH);
}

static void rhca_put_flush(struct rhca_chain *chain, uint32_t len, uint8_t type,
			   uint8_t level)
{
	struct rdma_hca_flush_unit *unit = chain->end;

	memset(unit, 0, sizeof(*unit));
	unit->length = htole32(len);
	unit->type_level = htole32(FIELD_PREP(RDMA_HCA_FLUSH_TYPE, type) |
				   FIELD_PREP(RDMA_HCA_FLUSH_LEVEL, level));
	chain->end = unit + 1;
}

static void rhca_wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr,
			  size_t len, uint8_t type, uint8_t level)
{
	struct rhca_chain *chain = rhca_wr_open(ibqp, IBV_WR_FLUSH, 0);

	if (unlikely(!chain))
		return;
	if (unlikely(!rhca_is_flush(len, type, level))) {
		rhca_wr_fail(chain, EINVAL);
		return;
	}
	rhca_put_raddr(chain, raddr, rkey);
	rhca_put_flush(chain, level == IBV_FLUSH_MR ? 0 : len, type, level);
}

static void rhca_set_flush(struct ibv_qp_ex *ex, uint64_t ops)
{
	if (ops & IBV_QP_EX_WITH_FLUSH)
		ex->wr_flush = rhca_wr_flush;
}
#else
static void rhca_set_flush(struct ibv_qp_ex *ex, uint64_t ops)
{
}
#endif

static void rhca_wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
				uint32_t qpn, uint32_t qkey)
{
	struct rhca_chain *chain = &to_rqp_ex(ibqp)->chain;

	if (unlikely(!chain->wqe))
		return;
	if (unlikely(!ah))
		rhca_wr_fail(chain, EINVAL);
	else
		rhca_put_ud(chain, to_rah(ah), qpn, qkey);
}

static void rhca_wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t remote_srqn)
{
	struct rhca_chain *chain = &to_rqp_ex(ibqp)->chain;

	if (likely(chain->wqe))
		rhca_put_xrc(chain, remote_srqn);
}

static void rhca_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
				 const struct ibv_sge *sge)
{
	struct rhca_qp *qp = to_rqp_ex(ibqp);
	int err;

	if (unlikely(!qp->chain.wqe))
		return;
	err = rhca_has_data(qp->chain.op) ? rhca_put_sges(qp, sge, num_sge) :
					    EINVAL;
	if (unlikely(err))
		rhca_wr_fail(&qp->chain, err);
}

static void rhca_wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey,
			    uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	rhca_wr_set_sge_list(ibqp, 1, &sge);
}

static void rhca_wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
					 const struct ibv_data_buf *buf)
{
	struct rhca_qp *qp = to_rqp_ex(ibqp);
	uint32_t length = 0;
	int err;

	if (unlikely(!qp->chain.wqe))
		return;
	err = qp->chain.op->is_response || !rhca_has_data(qp->chain.op) ?
		      EINVAL : 0;
	for (; num_buf && !err; num_buf--, buf++)
		err = rhca_add_inline(qp, &length, buf->addr, buf->length);
	if (unlikely(err))
		rhca_wr_fail(&qp->chain, err);
	else
		rhca_end_inline(&qp->chain, length);
}

static void rhca_wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
				    size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	rhca_wr_set_inline_data_list(ibqp, 1, &buf);
}

void rhca_init_qp_ex(struct rhca_qp *qp)
{
	uint64_t ops = rhca_send_ops(to_rctx(qp->vqp.qp.context),
				     qp->vqp.qp.qp_type);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = rhca_wr_start;
	ex->wr_complete = rhca_wr_complete;
	ex->wr_abort = rhca_wr_abort;
	ex->wr_send = rhca_wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = rhca_wr_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE) {
		ex->wr_rdma_write = rhca_wr_rdma_write;
		ex->wr_rdma_write_imm = rhca_wr_rdma_write_imm;
	}
	if (ops & IBV_QP_EX_WITH_RDMA_READ) {
		ex->wr_rdma_read = rhca_wr_rdma_read;
		ex->wr_atomic_cmp_swp = rhca_wr_atomic_cmp_swp;
		ex->wr_atomic_fetch_add = rhca_wr_atomic_fetch_add;
	}
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = rhca_wr_atomic_write;
	rhca_set_flush(ex, ops);
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = rhca_wr_send_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW) {
		ex->wr_bind_mw = rhca_wr_bind_mw;
		ex->wr_local_inv = rhca_wr_local_inv;
	}
	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		ex->wr_set_ud_addr = rhca_wr_set_ud_addr;
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = rhca_wr_set_xrc_srqn;
	ex->wr_set_sge = rhca_wr_set_sge;
	ex->wr_set_sge_list = rhca_wr_set_sge_list;
	ex->wr_set_inline_data = rhca_wr_set_inline_data;
	ex->wr_set_inline_data_list = rhca_wr_set_inline_data_list;
	qp->vqp.comp_mask |= VERBS_QP_EX;
}
