// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests (interface document 3.4). ibv_post_send() and ibv_wr_*() write
 * WQEs with the same functions: one call, or what is between ibv_wr_start()
 * and ibv_wr_complete(), is one chain and rings one doorbell.
 *
 * A chain is whole before its doorbell rings, and nothing is linked to it
 * afterwards: the card follows links at its own pace, and a WQE that is both
 * linked and announced would run twice.
 */
#include <errno.h>
#include <string.h>

#include <rdma_hca_cmd.h>
#include <util/compiler.h>
#include <util/util.h>

#include "rhca.h"

#define RHCA_SEND_FLAGS							\
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |	\
	 IBV_SEND_INLINE)

/* Bytes: as much as a message at most. */
#define RHCA_MAX_FLUSH	0x80000000u

/* --- operations --------------------------------------------------------- */

/* Types of QP; one that sends by XRC does what RC does. */
#define RHCA_RC	(1u << IBV_QPT_RC | 1u << IBV_QPT_XRC_SEND)
#define RHCA_UC	(1u << IBV_QPT_UC)
#define RHCA_UD	(1u << IBV_QPT_UD)
#define RHCA_RAW	(1u << IBV_QPT_RAW_PACKET)

/* What a send is: to the card, in its WQE, in its completion. */
struct rhca_op {
	uint64_t qp_ex;			/* IBV_QP_EX_WITH_* */
	uint16_t qp_types;		/* that have it; 0: unknown */
	uint8_t opcode;			/* RDMA_HCA_OPCODE_* */
	uint8_t wc_opcode;		/* enum ibv_wc_opcode */
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

static const struct rhca_op rhca_ops[] = {
	[IBV_WR_RDMA_WRITE] = {
		.qp_ex = IBV_QP_EX_WITH_RDMA_WRITE,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
		.wc_opcode = IBV_WC_RDMA_WRITE,
		.has_raddr = true,
	},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		.qp_ex = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
		.wc_opcode = IBV_WC_RDMA_WRITE,
		.has_imm = true,
		.has_raddr = true,
	},
	[IBV_WR_SEND] = {
		.qp_ex = IBV_QP_EX_WITH_SEND,
		.qp_types = RHCA_RC | RHCA_UC | RHCA_UD | RHCA_RAW,
		.opcode = RDMA_HCA_OPCODE_SEND,
		.wc_opcode = IBV_WC_SEND,
	},
	[IBV_WR_SEND_WITH_IMM] = {
		.qp_ex = IBV_QP_EX_WITH_SEND_WITH_IMM,
		.qp_types = RHCA_RC | RHCA_UC | RHCA_UD,
		.opcode = RDMA_HCA_OPCODE_SEND_IMM,
		.wc_opcode = IBV_WC_SEND,
		.has_imm = true,
	},
	[IBV_WR_RDMA_READ] = {
		.qp_ex = IBV_QP_EX_WITH_RDMA_READ,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_RDMA_READ,
		.wc_opcode = IBV_WC_RDMA_READ,
		.has_raddr = true,
		.is_response = true,
	},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		.qp_ex = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_ATOMIC_CS,
		.wc_opcode = IBV_WC_COMP_SWAP,
		.has_raddr = true,
		.has_atomic = true,
		.has_compare = true,
		.is_response = true,
	},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		.qp_ex = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_ATOMIC_FA,
		.wc_opcode = IBV_WC_FETCH_ADD,
		.has_raddr = true,
		.has_atomic = true,
		.is_response = true,
	},
	[IBV_WR_ATOMIC_WRITE] = {
		.qp_ex = IBV_QP_EX_WITH_ATOMIC_WRITE,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_ATOMIC_WRITE,
		.wc_opcode = IBV_WC_ATOMIC_WRITE,
		.has_raddr = true,
	},
	[IBV_WR_FLUSH] = {
		.qp_ex = IBV_QP_EX_WITH_FLUSH,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_FLUSH,
		.wc_opcode = IBV_WC_FLUSH,
		.has_raddr = true,
		.has_flush = true,
	},
	[IBV_WR_SEND_WITH_INV] = {
		.qp_ex = IBV_QP_EX_WITH_SEND_WITH_INV,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_SEND_INV,
		.wc_opcode = IBV_WC_SEND,
		.has_inv = true,
	},
	[IBV_WR_LOCAL_INV] = {
		.qp_ex = IBV_QP_EX_WITH_LOCAL_INV,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_LOCAL_INV,
		.wc_opcode = IBV_WC_LOCAL_INV,
		.is_local = true,
	},
	[IBV_WR_BIND_MW] = {
		.qp_ex = IBV_QP_EX_WITH_BIND_MW,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_BIND_MW,
		.wc_opcode = IBV_WC_BIND_MW,
		.is_local = true,
		.has_bind = true,
	},
};

static bool rhca_has_op(enum ibv_qp_type type, const struct rhca_op *op)
{
	return type <= IBV_QPT_XRC_RECV && (op->qp_types & 1u << type);
}

uint64_t rhca_send_ops(const struct rhca_context *ctx, enum ibv_qp_type type)
{
	uint64_t ops = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rhca_ops); i++)
		if (rhca_has_op(type, &rhca_ops[i]))
			ops |= rhca_ops[i].qp_ex;
	return ops & ~ctx->missing_ops;
}

enum ibv_wc_opcode rhca_send_wc_opcode(uint8_t opcode)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rhca_ops); i++)
		if (rhca_ops[i].opcode == opcode)
			return rhca_ops[i].wc_opcode;
	return IBV_WC_SEND;
}

/* NULL: this QP has no such operation. */
static const struct rhca_op *rhca_find_op(const struct rhca_qp *qp,
					  enum ibv_wr_opcode opcode)
{
	const struct rhca_op *op;

	if (unlikely((unsigned int)opcode >= ARRAY_SIZE(rhca_ops)))
		return NULL;
	op = &rhca_ops[opcode];
	if (unlikely(!rhca_has_op(qp->vqp.qp.qp_type, op) ||
		     (op->qp_ex & to_rctx(qp->vqp.qp.context)->missing_ops)))
		return NULL;
	return op;
}

static bool rhca_has_data(const struct rhca_op *op)
{
	return !op->is_local && !op->has_flush;
}

/* --- queues ------------------------------------------------------------- */

/* The slot of WQE @head is still in use. */
static bool rhca_wq_is_full(struct rhca_wq *wq, uint32_t head)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_acquire);

	return head - tail >= wq->entries;
}

/* Work for a send queue that does not send yet is an error at once. */
static bool rhca_can_post_send(const struct rhca_qp *qp)
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

static void rhca_put_raddr(struct rhca_chain *chain, uint64_t raddr,
			   uint32_t rkey)
{
	struct rdma_hca_raddr_unit *unit = chain->end;

	unit->raddr_l = htole32(RDMA_HCA_LO32(raddr));
	unit->raddr_h = htole32(RDMA_HCA_HI32(raddr));
	unit->rkey = htole32(rkey);
	unit->reserved = 0;
	chain->end = unit + 1;
}

static void rhca_put_atomic(struct rhca_chain *chain, uint64_t swap_add,
			    uint64_t compare)
{
	struct rdma_hca_atomic_unit *unit = chain->end;

	unit->swap_add_l = htole32(RDMA_HCA_LO32(swap_add));
	unit->swap_add_h = htole32(RDMA_HCA_HI32(swap_add));
	unit->cmp_l = htole32(RDMA_HCA_LO32(compare));
	unit->cmp_h = htole32(RDMA_HCA_HI32(compare));
	chain->end = unit + 1;
}

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

static void rhca_put_inv(struct rhca_chain *chain, uint32_t rkey)
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

static bool rhca_is_bind(const struct ibv_mw *mw, enum ibv_mw_type type,
			 const struct ibv_mw_bind_info *info)
{
	return mw && mw->type == type &&
	       !(info->mw_access_flags &
		 ~(RHCA_MW_ACCESS | IBV_ACCESS_LOCAL_WRITE));
}

/* Windows of type 2 are bound by work requests, and name their own keys. */
static bool rhca_is_bind_wr(const struct ibv_mw *mw,
			    const struct ibv_mw_bind_info *info)
{
	return rhca_is_bind(mw, IBV_MW_TYPE_2, info) && info->mr;
}

/* Those of type 1 by a verb. Without an MR they are unbound. */
static bool rhca_is_bind_verb(const struct ibv_mw *mw,
			      const struct ibv_mw_bind_info *info)
{
	return rhca_is_bind(mw, IBV_MW_TYPE_1, info) &&
	       !(info->mw_access_flags & IBV_ACCESS_ZERO_BASED) &&
	       (info->mr || !info->length);
}

static void rhca_put_bind(struct rhca_chain *chain, const struct ibv_mw *mw,
			  uint32_t rkey, const struct ibv_mw_bind_info *info)
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
static void rhca_put_xrc(struct rhca_chain *chain, uint32_t srqn)
{
	struct rdma_hca_xrc_unit *unit = (void *)(chain->wqe + 1);

	/* What sends nothing has no such unit. */
	if (chain->op->is_local)
		return;
	memset(unit, 0, sizeof(*unit));
	unit->srqn = htole32(srqn & RDMA_HCA_XRC_SRQN);
	chain->has_addr = true;
}

static void rhca_put_ud(struct rhca_chain *chain, const struct rhca_ah *ah,
			uint32_t qpn, uint32_t qkey)
{
	struct rdma_hca_ud_unit *unit = (void *)(chain->wqe + 1);

	*unit = ah->unit;
	unit->dqpn = htole32(qpn & RDMA_HCA_QPN_MASK);
	unit->qkey = htole32(qkey);
	chain->has_addr = true;
}

static void rhca_write_data_unit(struct rdma_hca_data_unit *unit,
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
static struct rdma_hca_data_unit *
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
static uint32_t rhca_room(const struct rhca_qp *qp)
{
	const struct rhca_chain *chain = &qp->chain;

	return qp->send_limit -
	       ((uint8_t *)chain->data - (uint8_t *)chain->wqe);
}

static int rhca_put_sges(struct rhca_qp *qp, const struct ibv_sge *sge,
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
static int rhca_add_inline(struct rhca_qp *qp, uint32_t *length,
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
static void rhca_end_inline(struct rhca_chain *chain, uint32_t length)
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

/* --- the chain ---------------------------------------------------------- */

static void rhca_chain_begin(struct rhca_qp *qp)
{
	struct rhca_chain *chain = &qp->chain;

	chain->head = qp->sq.head;
	chain->last = NULL;
	chain->wqe = NULL;
	chain->err = 0;
}

static uint32_t rhca_wqe_flags(const struct rhca_qp *qp, unsigned int flags)
{
	return (qp->sig_all || (flags & IBV_SEND_SIGNALED) ?
			RDMA_HCA_WQE_CQ_UPDATE : 0) |
	       (flags & IBV_SEND_SOLICITED ? RDMA_HCA_WQE_SOLICITED : 0);
}

/* The unit that says where a message goes, of QPs where each says so. */
static size_t rhca_addr_size(const struct rhca_qp *qp)
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
static int rhca_wqe_open(struct rhca_qp *qp, const struct rhca_op *op,
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
static void rhca_wqe_begin_data(struct rhca_chain *chain)
{
	chain->data = chain->end;
}

/* The WQE is whole: have its predecessor, or the doorbell, announce it. */
static void rhca_wqe_close(struct rhca_qp *qp)
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
static void rhca_chain_end(struct rhca_qp *qp)
{
	struct rhca_chain *chain = &qp->chain;

	if (!chain->last)
		return;
	qp->sq.head = chain->head;
	rhca_ring(to_rctx(qp->vqp.qp.context), RDMA_HCA_SEND_DB, chain->db_low,
		  chain->db_high);
}

/* --- ibv_post_send ------------------------------------------------------ */

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

/* --- ibv_post_recv ------------------------------------------------------ */

/* Write @wr into the slot at the head, but for its tag. */
static int rhca_write_recv(struct rhca_wq *rq, const struct ibv_recv_wr *wr,
			   uint32_t max_sge)
{
	struct rdma_hca_next_unit *wqe = rhca_wq_slot(rq, rq->head);
	struct rdma_hca_data_unit *end;

	if (unlikely((uint32_t)wr->num_sge > max_sge))
		return EINVAL;
	end = rhca_write_sges((void *)(wqe + 1), wr->sg_list, wr->num_sge);
	if (unlikely(!end))
		return EINVAL;
	memset(end, 0, sizeof(*end));
	return 0;
}

static int rhca_post_one_recv(struct rhca_qp *qp, const struct ibv_recv_wr *wr)
{
	struct rhca_wq *rq = &qp->rq;
	int err;

	if (unlikely(rhca_wq_is_full(rq, rq->head)))
		return ENOMEM;
	err = rhca_write_recv(rq, wr, qp->cap.max_recv_sge);
	if (unlikely(err))
		return err;
	rq->wr_id[rq->head & (rq->entries - 1)] = wr->wr_id;
	rq->head++;
	return 0;
}

int rhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct rhca_qp *qp = to_rqp(ibqp);
	int err = 0;

	/* Those that share a queue have none of their own. */
	if (unlikely(ibqp->state == IBV_QPS_RESET || qp->srq ||
		     !rhca_has_recv(qp))) {
		*bad_wr = wr;
		return EINVAL;
	}
	rhca_wq_lock(&qp->rq);
	for (; wr; wr = wr->next) {
		err = rhca_post_one_recv(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (qp->rq.entries)
		rhca_store_record(qp->rq_db, qp->rq.head & 0xffff);
	rhca_wq_unlock(&qp->rq);
	return err;
}

/* --- ibv_post_srq_recv -------------------------------------------------- */

static int rhca_post_one_srq(struct rhca_srq *srq, const struct ibv_recv_wr *wr)
{
	struct rdma_hca_next_unit *wqe = rhca_wq_slot(&srq->wq, srq->wq.head);
	uint32_t tag;
	int err;

	if (unlikely(srq->num_tags - srq->num_free >= srq->wq.entries))
		return ENOMEM;
	err = rhca_write_recv(&srq->wq, wr, srq->max_sge);
	if (unlikely(err))
		return err;
	tag = srq->free_tags[--srq->num_free];
	wqe->tag = htole32(tag);
	srq->wq.wr_id[tag] = wr->wr_id;
	srq->wq.head++;
	return 0;
}

int rhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct rhca_srq *srq = to_rsrq(ibsrq);
	int err = 0;

	rhca_wq_lock(&srq->wq);
	for (; wr; wr = wr->next) {
		err = rhca_post_one_srq(srq, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	rhca_store_record(srq->db, srq->wq.head & 0xffff);
	rhca_wq_unlock(&srq->wq);
	return err;
}

/* --- ibv_wr_* ----------------------------------------------------------- */

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
	if (ops & IBV_QP_EX_WITH_FLUSH)
		ex->wr_flush = rhca_wr_flush;
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
