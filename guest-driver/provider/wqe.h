/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How WQEs are written (interface document 3.4), by ibv_post_send() and
 * ibv_wr_*() in the same way: one call, or what is between ibv_wr_start() and
 * ibv_wr_complete(), is one chain and rings one doorbell.
 *
 * A chain is whole before its doorbell rings, and nothing is linked to it
 * afterwards: the card follows links at its own pace, and a WQE that is both
 * linked and announced would run twice.
 */
#ifndef RHCA_WQE_H
#define RHCA_WQE_H

#include <errno.h>
#include <string.h>

#include <rdma_hca_cmd.h>
#include <util/compiler.h>
#include <util/util.h>

#include "rhca.h"

/* --- operations --------------------------------------------------------- */

/* What a send is: to the card, and in its WQE. */
struct rhca_op {
	uint64_t qp_ex;			/* IBV_QP_EX_WITH_* */
	uint16_t qp_types;		/* that have it; 0: unknown */
	uint8_t opcode;			/* RDMA_HCA_OPCODE_* */
	bool has_imm;
	bool has_inv;			/* a key, in the place of the imm */
	bool has_raddr;
	bool has_atomic;
	bool has_compare;		/* of an atomic */
	bool is_response;		/* data comes here: not inline */
	bool is_local;			/* nothing is sent: no data */
	bool has_bind;			/* local: else a key */
	bool has_flush;			/* what, and how; no data */
};

/* By enum ibv_wr_opcode (op.c). */
#define RHCA_NUM_OPS	(IBV_WR_ATOMIC_WRITE + 1)
extern const struct rhca_op rhca_ops[RHCA_NUM_OPS];

static inline bool rhca_has_op(enum ibv_qp_type type, const struct rhca_op *op)
{
	return type <= IBV_QPT_XRC_RECV && (op->qp_types & 1u << type);
}

static inline bool rhca_has_data(const struct rhca_op *op)
{
	return !op->is_local && !op->has_flush;
}

/* --- queues ------------------------------------------------------------- */

/* The slot of WQE @head is still in use. */
static inline bool rhca_wq_is_full(struct rhca_wq *wq, uint32_t head)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_acquire);

	return head - tail >= wq->entries;
}

/* Work for a send queue that does not send yet is an error at once. */
static inline bool rhca_can_post_send(const struct rhca_qp *qp)
{
	switch (qp->vqp.qp.state) {
	case IBV_QPS_RESET:
	case IBV_QPS_INIT:
	case IBV_QPS_RTR:
		return false;
	default:
		return true;
	}
}

/* --- units -------------------------------------------------------------- */

static inline void rhca_put_raddr(struct rhca_chain *chain, uint64_t raddr,
				  uint32_t rkey)
{
	struct rdma_hca_raddr_unit *unit = chain->end;

	unit->raddr_l = htole32(RDMA_HCA_LO32(raddr));
	unit->raddr_h = htole32(RDMA_HCA_HI32(raddr));
	unit->rkey = htole32(rkey);
	unit->reserved = 0;
	chain->end = unit + 1;
}

static inline void rhca_put_atomic(struct rhca_chain *chain, uint64_t swap_add,
				   uint64_t compare)
{
	struct rdma_hca_atomic_unit *unit = chain->end;

	unit->swap_add_l = htole32(RDMA_HCA_LO32(swap_add));
	unit->swap_add_h = htole32(RDMA_HCA_HI32(swap_add));
	unit->cmp_l = htole32(RDMA_HCA_LO32(compare));
	unit->cmp_h = htole32(RDMA_HCA_HI32(compare));
	chain->end = unit + 1;
}

static inline void rhca_put_inv(struct rhca_chain *chain, uint32_t rkey)
{
	struct rdma_hca_inv_unit *unit = chain->end;

	memset(unit, 0, sizeof(*unit));
	unit->key = htole32(rkey);
	chain->end = unit + 1;
}

/*
 * What a window can allow. The right to write is of regions, and programs ask
 * for it together with that of peers; it adds nothing.
 */
#define RHCA_MW_ACCESS							\
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |		\
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

static inline bool rhca_is_bind(const struct ibv_mw *mw, enum ibv_mw_type type,
				const struct ibv_mw_bind_info *info)
{
	return mw && mw->type == type &&
	       !(info->mw_access_flags &
		 ~(RHCA_MW_ACCESS | IBV_ACCESS_LOCAL_WRITE));
}

/* Windows of type 2 are bound by work requests, and name their own keys. */
static inline bool rhca_is_bind_wr(const struct ibv_mw *mw,
				   const struct ibv_mw_bind_info *info)
{
	return rhca_is_bind(mw, IBV_MW_TYPE_2, info) && info->mr;
}

static inline void rhca_put_bind(struct rhca_chain *chain,
				 const struct ibv_mw *mw, uint32_t rkey,
				 const struct ibv_mw_bind_info *info)
{
	struct rdma_hca_bind_unit *unit = chain->end;

	unit->access = htole32(info->mw_access_flags & RHCA_MW_ACCESS);
	unit->type = htole32(mw->type);
	unit->rkey = htole32(rkey);
	unit->lkey = htole32(info->mr ? info->mr->lkey : 0);
	unit->addr_l = htole32(RDMA_HCA_LO32(info->addr));
	unit->addr_h = htole32(RDMA_HCA_HI32(info->addr));
	unit->length_l = htole32(RDMA_HCA_LO32(info->length));
	unit->length_h = htole32(RDMA_HCA_HI32(info->length));
	chain->end = unit + 1;
}

/* The unit has its place behind next_unit already, as the ud_unit has. */
static inline void rhca_put_xrc(struct rhca_chain *chain, uint32_t srqn)
{
	struct rdma_hca_xrc_unit *unit = (void *)(chain->wqe + 1);

	/* What sends nothing has no such unit. */
	if (chain->op->is_local)
		return;
	memset(unit, 0, sizeof(*unit));
	unit->srqn = htole32(srqn & RDMA_HCA_XRC_SRQN);
	chain->has_addr = true;
}

static inline void rhca_put_ud(struct rhca_chain *chain,
			       const struct rhca_ah *ah, uint32_t qpn,
			       uint32_t qkey)
{
	struct rdma_hca_ud_unit *unit = (void *)(chain->wqe + 1);

	*unit = ah->unit;
	unit->dqpn = htole32(qpn & RDMA_HCA_QPN_MASK);
	unit->qkey = htole32(qkey);
	chain->has_addr = true;
}

static inline void rhca_write_data_unit(struct rdma_hca_data_unit *unit,
					const struct ibv_sge *sge)
{
	unit->byte_cnt = htole32(sge->length);
	unit->lkey = htole32(sge->lkey);
	unit->addr_l = htole32(RDMA_HCA_LO32(sge->addr));
	unit->addr_h = htole32(RDMA_HCA_HI32(sge->addr));
}

/*
 * Write data units at @unit. An element of length 0 is left out: a unit of
 * zeros ends a receive list. Returns the end, or NULL for a length that would
 * mark the unit as another kind.
 */
static inline struct rdma_hca_data_unit *
rhca_write_sges(struct rdma_hca_data_unit *unit, const struct ibv_sge *sge,
		size_t num_sge)
{
	for (; num_sge; num_sge--, sge++) {
		if (unlikely(sge->length > RDMA_HCA_MAX_BYTE_CNT))
			return NULL;
		if (sge->length)
			rhca_write_data_unit(unit++, sge);
	}
	return unit;
}

/* Bytes that the open WQE has left for its data. */
static inline uint32_t rhca_room(const struct rhca_qp *qp)
{
	const struct rhca_chain *chain = &qp->chain;

	return qp->send_limit -
	       ((uint8_t *)chain->data - (uint8_t *)chain->wqe);
}

static inline int rhca_put_sges(struct rhca_qp *qp, const struct ibv_sge *sge,
				size_t num_sge)
{
	struct rhca_chain *chain = &qp->chain;
	struct rdma_hca_data_unit *end;

	if (unlikely(num_sge > qp->cap.max_send_sge ||
		     num_sge > rhca_room(qp) / sizeof(*end)))
		return EINVAL;
	end = rhca_write_sges(chain->data, sge, num_sge);
	if (unlikely(!end))
		return EINVAL;
	chain->end = end;
	return 0;
}

/* @length bytes are there already; add @size more from @addr. */
static inline int rhca_add_inline(struct rhca_qp *qp, uint32_t *length,
				  const void *addr, size_t size)
{
	uint8_t *data = (uint8_t *)qp->chain.data + sizeof(__le32);

	if (unlikely(size > qp->cap.max_inline_data - *length))
		return EINVAL;
	if (size)
		memcpy(data + *length, addr, size);
	*length += size;
	return 0;
}

/* Put the header before @length bytes of inline data; none has no unit. */
static inline void rhca_end_inline(struct rhca_chain *chain, uint32_t length)
{
	__le32 *header = chain->data;

	chain->end = chain->data;
	if (!length)
		return;
	*header = htole32(RDMA_HCA_INLINE |
			  FIELD_PREP(RDMA_HCA_INLINE_LENGTH, length));
	chain->end = (uint8_t *)chain->data +
		     align(sizeof(*header) + length, RDMA_HCA_WQE_UNIT);
}

/* --- the chain ---------------------------------------------------------- */

static inline void rhca_chain_begin(struct rhca_qp *qp)
{
	struct rhca_chain *chain = &qp->chain;

	chain->head = qp->sq.head;
	chain->last = NULL;
	chain->wqe = NULL;
	chain->err = 0;
}

static inline uint32_t rhca_wqe_flags(const struct rhca_qp *qp,
				      unsigned int flags)
{
	return (qp->sig_all || (flags & IBV_SEND_SIGNALED) ?
			RDMA_HCA_WQE_CQ_UPDATE : 0) |
	       (flags & IBV_SEND_SOLICITED ? RDMA_HCA_WQE_SOLICITED : 0);
}

/* The unit that says where a message goes, of QPs where each says so. */
static inline size_t rhca_addr_size(const struct rhca_qp *qp)
{
	switch (qp->vqp.qp.qp_type) {
	case IBV_QPT_UD:
		return sizeof(struct rdma_hca_ud_unit);
	case IBV_QPT_XRC_SEND:
		return sizeof(struct rdma_hca_xrc_unit);
	default:
		return 0;
	}
}

/*
 * Begin a WQE: next_unit, and the place of the address, if it has one. What
 * sends nothing goes nowhere.
 */
static inline int rhca_wqe_open(struct rhca_qp *qp, const struct rhca_op *op,
				uint64_t wr_id, unsigned int flags, __be32 imm)
{
	size_t addr_size = op->is_local ? 0 : rhca_addr_size(qp);
	struct rhca_chain *chain = &qp->chain;
	struct rdma_hca_next_unit *wqe;

	if (unlikely(rhca_wq_is_full(&qp->sq, chain->head)))
		return ENOMEM;
	wqe = rhca_wq_slot(&qp->sq, chain->head);
	wqe->nda_nop = 0;
	wqe->nee_nds = 0;
	wqe->flags = htole32(rhca_wqe_flags(qp, flags));
	wqe->imm_data = op->has_imm ? imm : 0;
	qp->sq.wr_id[chain->head & (qp->sq.entries - 1)] = wr_id;

	chain->wqe = wqe;
	chain->op = op;
	chain->fence = flags & IBV_SEND_FENCE;
	chain->has_addr = !addr_size;
	chain->end = (uint8_t *)(wqe + 1) + addr_size;
	chain->data = chain->end;
	return 0;
}

/* The units before the data are there. */
static inline void rhca_wqe_begin_data(struct rhca_chain *chain)
{
	chain->data = chain->end;
}

/* The WQE is whole: have its predecessor, or the doorbell, announce it. */
static inline void rhca_wqe_close(struct rhca_qp *qp)
{
	struct rhca_chain *chain = &qp->chain;
	uint32_t offset = rhca_wq_offset(&qp->sq, chain->head);
	uint32_t units = ((uint8_t *)chain->end - (uint8_t *)chain->wqe) /
			 RDMA_HCA_WQE_UNIT;

	if (chain->last) {
		chain->last->nda_nop = htole32(
			(offset & RDMA_HCA_NEXT_NDA) |
			FIELD_PREP(RDMA_HCA_NEXT_NOP, chain->op->opcode));
		chain->last->nee_nds =
			htole32((chain->fence ? RDMA_HCA_NEXT_FENCE : 0) |
				FIELD_PREP(RDMA_HCA_NEXT_NDS, units));
	} else {
		chain->db_low =
			FIELD_PREP(RDMA_HCA_SEND_DB_SQ_HEAD,
				   offset / RDMA_HCA_WQE_UNIT) |
			(chain->fence ? RDMA_HCA_SEND_DB_FENCE : 0) |
			FIELD_PREP(RDMA_HCA_SEND_DB_OPCODE, chain->op->opcode);
		chain->db_high =
			FIELD_PREP(RDMA_HCA_SEND_DB_QPN, qp->vqp.qp.qp_num) |
			FIELD_PREP(RDMA_HCA_SEND_DB_SIZE, units);
	}
	chain->last = chain->wqe;
	chain->wqe = NULL;
	chain->head++;
}

/* Hand the WQEs that are whole to the card. */
static inline void rhca_chain_end(struct rhca_qp *qp)
{
	struct rhca_chain *chain = &qp->chain;

	if (!chain->last)
		return;
	qp->sq.head = chain->head;
	rhca_ring(to_rctx(qp->vqp.qp.context), RDMA_HCA_SEND_DB, chain->db_low,
		  chain->db_high);
}

#endif /* RHCA_WQE_H */
