// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests of the kernel's QPs and SRQs (interface document 3.4): their
 * WQEs, and the doorbells that announce them. A process's are its provider's
 * work.
 */
#include "srq.h"

/* --- operations --------------------------------------------------------- */

/* What a send is: to the card, in its WQE, in its completion. */
struct rhca_op {
	u8 opcode;		/* RDMA_HCA_OPCODE_*; 0: unknown */
	u8 wc_opcode;		/* enum ib_wc_opcode */
	bool is_datagram;	/* QPs of datagrams have it, too */
	bool is_reliable;	/* UC has not */
	bool is_local;		/* nothing is sent: no data */
	bool has_imm;
	bool has_inv;		/* a key, in the place of immediate data */
	bool has_raddr;
	bool has_answer;	/* data comes in: none can be inline */
	bool has_atomic;
	bool has_compare;	/* of an atomic */
	bool has_mr;		/* local: else a key */
};

static const struct rhca_op rhca_ops[] = {
	[IB_WR_RDMA_WRITE] = {
		.opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
		.wc_opcode = IB_WC_RDMA_WRITE,
		.has_raddr = true,
	},
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		.opcode = RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
		.wc_opcode = IB_WC_RDMA_WRITE,
		.has_imm = true,
		.has_raddr = true,
	},
	[IB_WR_SEND] = {
		.opcode = RDMA_HCA_OPCODE_SEND,
		.wc_opcode = IB_WC_SEND,
		.is_datagram = true,
	},
	[IB_WR_SEND_WITH_IMM] = {
		.opcode = RDMA_HCA_OPCODE_SEND_IMM,
		.wc_opcode = IB_WC_SEND,
		.is_datagram = true,
		.has_imm = true,
	},
	[IB_WR_RDMA_READ] = {
		.opcode = RDMA_HCA_OPCODE_RDMA_READ,
		.wc_opcode = IB_WC_RDMA_READ,
		.is_reliable = true,
		.has_raddr = true,
		.has_answer = true,
	},
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		.opcode = RDMA_HCA_OPCODE_ATOMIC_CS,
		.wc_opcode = IB_WC_COMP_SWAP,
		.is_reliable = true,
		.has_raddr = true,
		.has_answer = true,
		.has_atomic = true,
		.has_compare = true,
	},
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		.opcode = RDMA_HCA_OPCODE_ATOMIC_FA,
		.wc_opcode = IB_WC_FETCH_ADD,
		.is_reliable = true,
		.has_raddr = true,
		.has_answer = true,
		.has_atomic = true,
	},
#ifdef RHCA_HAS_FLUSH
	[IB_WR_ATOMIC_WRITE] = {
		.opcode = RDMA_HCA_OPCODE_ATOMIC_WRITE,
		.wc_opcode = IB_WC_ATOMIC_WRITE,
		.is_reliable = true,
		.has_raddr = true,
	},
#endif
	[IB_WR_SEND_WITH_INV] = {
		.opcode = RDMA_HCA_OPCODE_SEND_INV,
		.wc_opcode = IB_WC_SEND,
		.is_reliable = true,
		.has_inv = true,
	},
	[IB_WR_LOCAL_INV] = {
		.opcode = RDMA_HCA_OPCODE_LOCAL_INV,
		.wc_opcode = IB_WC_LOCAL_INV,
		.is_local = true,
	},
	[IB_WR_REG_MR] = {
		.opcode = RDMA_HCA_OPCODE_REG_MR,
		.wc_opcode = IB_WC_REG_MR,
		.is_local = true,
		.has_mr = true,
	},
};

/* NULL: this QP has no such operation. */
static const struct rhca_op *rhca_find_op(const struct rhca_qp *qp,
					  enum ib_wr_opcode opcode)
{
	const struct rhca_op *op;

	/* A work request of the kernel has no place for the peer's SRQ. */
	if (opcode >= ARRAY_SIZE(rhca_ops) || rhca_is_xrc(qp))
		return NULL;
	op = &rhca_ops[opcode];
	if (!op->opcode || (rhca_is_datagram(qp) && !op->is_datagram) ||
	    (qp->ibqp.qp_type == IB_QPT_UC && op->is_reliable))
		return NULL;
	return op;
}

/* --- units -------------------------------------------------------------- */

/* A WQE as it is being written: where it ends so far. */
struct rhca_wqe {
	struct rdma_hca_next_unit *next;
	void *end;
};

static void *rhca_wqe_at(const struct rhca_wq *wq, u32 index)
{
	return rhca_buf_at(&wq->buf,
			   (size_t)(index & (wq->entries - 1)) << wq->shift);
}

static u32 rhca_wqe_offset(const struct rhca_wq *wq, u32 index)
{
	return (index & (wq->entries - 1)) << wq->shift;
}

static u32 rhca_wqe_units(const struct rhca_wqe *wqe)
{
	return (wqe->end - (void *)wqe->next) / RDMA_HCA_WQE_UNIT;
}

static void rhca_put_raddr(struct rhca_wqe *wqe, u64 raddr, u32 rkey)
{
	struct rdma_hca_raddr_unit *unit = wqe->end;

	unit->raddr_l = cpu_to_le32(lower_32_bits(raddr));
	unit->raddr_h = cpu_to_le32(upper_32_bits(raddr));
	unit->rkey = cpu_to_le32(rkey);
	unit->reserved = 0;
	wqe->end = unit + 1;
}

static void rhca_put_atomic(struct rhca_wqe *wqe, u64 swap_add, u64 compare)
{
	struct rdma_hca_atomic_unit *unit = wqe->end;

	unit->swap_add_l = cpu_to_le32(lower_32_bits(swap_add));
	unit->swap_add_h = cpu_to_le32(upper_32_bits(swap_add));
	unit->cmp_l = cpu_to_le32(lower_32_bits(compare));
	unit->cmp_h = cpu_to_le32(upper_32_bits(compare));
	wqe->end = unit + 1;
}

/* The card has one place for what is swapped in and what is added. */
static void rhca_put_atomic_head(const struct rhca_op *op,
				 struct rhca_wqe *wqe,
				 const struct ib_atomic_wr *wr)
{
	rhca_put_raddr(wqe, wr->remote_addr, wr->rkey);
	if (op->has_compare)
		rhca_put_atomic(wqe, wr->swap, wr->compare_add);
	else
		rhca_put_atomic(wqe, wr->compare_add, 0);
}

/*
 * Its start is what the consumer has made of it since the MR was mapped: NFS
 * and RDS choose their own.
 */
static void rhca_put_reg_mr(struct rhca_wqe *wqe, const struct ib_reg_wr *wr)
{
	const struct rhca_page_list *list = &to_rhca_mr(wr->mr)->list;
	struct rdma_hca_fast_reg_unit *unit = wqe->end;
	const struct ib_mr *ibmr = wr->mr;

	memset(unit, 0, sizeof(*unit));
	unit->access = cpu_to_le32(wr->access &
				   (RHCA_ACCESS_MASK | RHCA_ACCESS_FLUSH));
	unit->key = cpu_to_le32(wr->key);
	unit->list_l = cpu_to_le32(lower_32_bits(list->dma));
	unit->list_h = cpu_to_le32(upper_32_bits(list->dma));
	unit->start_l = cpu_to_le32(lower_32_bits(ibmr->iova));
	unit->start_h = cpu_to_le32(upper_32_bits(ibmr->iova));
	unit->length_l = cpu_to_le32(lower_32_bits(ibmr->length));
	unit->length_h = cpu_to_le32(upper_32_bits(ibmr->length));
	unit->page_size = cpu_to_le32(list->has_pieces ?
					      RDMA_HCA_MPT_PAGE_SHIFT_MIN :
					      ilog2(ibmr->page_size));
	unit->entries = cpu_to_le32(list->count);
	wqe->end = unit + 1;
}

static void rhca_put_inv(struct rhca_wqe *wqe, u32 key)
{
	struct rdma_hca_inv_unit *unit = wqe->end;

	memset(unit, 0, sizeof(*unit));
	unit->key = cpu_to_le32(key);
	wqe->end = unit + 1;
}

/*
 * Where the DLID is on InfiniBand, there is a part of the MAC on RoCE, and the
 * other part where QP 1 says with which P_Key it sends.
 */
static void rhca_put_dest(const struct rhca_qp *qp, const struct ib_ud_wr *wr,
			  struct rdma_hca_ud_unit *unit)
{
	const struct rdma_ah_attr *ah = &to_rhca_ah(wr->ah)->attr;
	const u8 *dmac = ah->roce.dmac;
	u32 dest;

	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE) {
		dest = FIELD_PREP(RDMA_HCA_UD_DLID, rhca_mac_low(dmac));
		unit->dmac_h2 = cpu_to_le32(rhca_mac_high(dmac));
	} else {
		dest = FIELD_PREP(RDMA_HCA_UD_DLID, rdma_ah_get_dlid(ah)) |
		       FIELD_PREP(RDMA_HCA_UD_PATH_BITS,
				  rdma_ah_get_path_bits(ah));
		if (qp->ibqp.qp_type == IB_QPT_GSI)
			unit->pkey_index = cpu_to_le32(wr->pkey_index);
	}
	unit->dlid_slid = cpu_to_le32(dest);
}

static void rhca_put_ud(const struct rhca_qp *qp, struct rhca_wqe *wqe,
			const struct ib_ud_wr *wr)
{
	const struct rdma_ah_attr *ah = &to_rhca_ah(wr->ah)->attr;
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);
	struct rdma_hca_ud_unit *unit = wqe->end;
	u32 port, flow = 0;

	memset(unit, 0, sizeof(*unit));
	port = FIELD_PREP(RDMA_HCA_UD_PORT, RHCA_PORT) |
	       FIELD_PREP(RDMA_HCA_UD_SL, rdma_ah_get_sl(ah));
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH) {
		port |= RDMA_HCA_UD_GRH |
			FIELD_PREP(RDMA_HCA_UD_HOP_LIMIT, grh->hop_limit) |
			FIELD_PREP(RDMA_HCA_UD_SGID_INDEX, grh->sgid_index);
		flow = FIELD_PREP(RDMA_HCA_QPC_TCLASS, grh->traffic_class) |
		       FIELD_PREP(RDMA_HCA_QPC_FLOW_LABEL, grh->flow_label);
		memcpy(unit->dgid, grh->dgid.raw, sizeof(unit->dgid));
	}
	unit->port = cpu_to_le32(port);
	rhca_put_dest(qp, wr, unit);
	unit->flow = cpu_to_le32(flow);
	unit->dqpn = cpu_to_le32(wr->remote_qpn & RDMA_HCA_QPN_MASK);
	unit->qkey = cpu_to_le32(wr->remote_qkey);
	wqe->end = unit + 1;
}

/* Elements of length 0 are left out: a unit of zeros would end a list. */
static int rhca_put_sges(struct rhca_wqe *wqe, const struct ib_sge *sge,
			 int num_sge)
{
	struct rdma_hca_data_unit *unit = wqe->end;

	for (; num_sge; num_sge--, sge++) {
		/* It would be a unit of another kind. */
		if (sge->length > RDMA_HCA_MAX_BYTE_CNT)
			return -EINVAL;
		if (!sge->length)
			continue;
		unit->byte_cnt = cpu_to_le32(sge->length);
		unit->lkey = cpu_to_le32(sge->lkey);
		unit->addr_l = cpu_to_le32(lower_32_bits(sge->addr));
		unit->addr_h = cpu_to_le32(upper_32_bits(sge->addr));
		unit++;
	}
	wqe->end = unit;
	return 0;
}

static int rhca_put_inline(struct rhca_qp *qp, struct rhca_wqe *wqe,
			   const struct ib_send_wr *wr)
{
	__le32 *header = wqe->end;
	u8 *data = (u8 *)(header + 1);
	u32 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > qp->cap.max_inline_data - length)
			return -EINVAL;
		memcpy(data + length, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		length += wr->sg_list[i].length;
	}
	if (!length)
		return 0;
	*header = cpu_to_le32(RDMA_HCA_INLINE |
			      FIELD_PREP(RDMA_HCA_INLINE_LENGTH, length));
	wqe->end += ALIGN(sizeof(*header) + length, RDMA_HCA_WQE_UNIT);
	return 0;
}

/* --- send --------------------------------------------------------------- */

/* The units between next_unit and the data. */
static void rhca_put_head(const struct rhca_qp *qp, const struct rhca_op *op,
			  struct rhca_wqe *wqe, const struct ib_send_wr *wr)
{
	if (rhca_is_datagram(qp))
		rhca_put_ud(qp, wqe, ud_wr(wr));
	else if (op->has_atomic)
		rhca_put_atomic_head(op, wqe, atomic_wr(wr));
	else if (op->has_raddr)
		rhca_put_raddr(wqe, rdma_wr(wr)->remote_addr,
			       rdma_wr(wr)->rkey);
	else if (op->has_mr)
		rhca_put_reg_mr(wqe, reg_wr(wr));
	else if (op->is_local)
		rhca_put_inv(wqe, wr->ex.invalidate_rkey);
}

static u32 rhca_send_flags(struct rhca_qp *qp, const struct ib_send_wr *wr)
{
	u32 flags = 0;

	if (qp->sig_type == IB_SIGNAL_ALL_WR ||
	    (wr->send_flags & IB_SEND_SIGNALED))
		flags |= RDMA_HCA_WQE_CQ_UPDATE;
	if (wr->send_flags & IB_SEND_SOLICITED)
		flags |= RDMA_HCA_WQE_SOLICITED;
	return flags;
}

static int rhca_build_send(struct rhca_qp *qp, const struct rhca_op *op,
			   struct rhca_wqe *wqe, const struct ib_send_wr *wr)
{
	memset(wqe->next, 0, sizeof(*wqe->next));
	wqe->next->flags = cpu_to_le32(rhca_send_flags(qp, wr));
	if (op->has_imm)
		wqe->next->imm_data = wr->ex.imm_data;
	else if (op->has_inv)
		wqe->next->inv_rkey = cpu_to_le32(wr->ex.invalidate_rkey);
	wqe->end = wqe->next + 1;
	rhca_put_head(qp, op, wqe, wr);
	if (op->is_local)
		return 0;
	if (wr->send_flags & IB_SEND_INLINE)
		return rhca_put_inline(qp, wqe, wr);
	return rhca_put_sges(wqe, wr->sg_list, wr->num_sge);
}

/*
 * Tell the WQE before about this one. The card may be reading it: the place
 * comes before the size that makes the link valid.
 */
static void rhca_link(struct rhca_wq *sq, u32 index, u8 opcode, u32 units,
		      bool fence, bool has_doorbell)
{
	struct rdma_hca_next_unit *prev = rhca_wqe_at(sq, index - 1);
	u32 place = rhca_wqe_offset(sq, index) / RDMA_HCA_WQE_ALIGN;
	u32 nda_nop = FIELD_PREP(RDMA_HCA_NEXT_NDA, place) |
		      FIELD_PREP(RDMA_HCA_NEXT_NOP, opcode);
	u32 nee_nds = FIELD_PREP(RDMA_HCA_NEXT_DBD, has_doorbell) |
		      FIELD_PREP(RDMA_HCA_NEXT_FENCE, fence) |
		      FIELD_PREP(RDMA_HCA_NEXT_NDS, units);

	WRITE_ONCE(prev->nda_nop, cpu_to_le32(nda_nop));
	dma_wmb();
	WRITE_ONCE(prev->nee_nds, cpu_to_le32(nee_nds));
}

static bool rhca_wq_is_full(const struct rhca_wq *wq)
{
	/* Who polled has read what an entry before the tail was. */
	return wq->head - smp_load_acquire(&wq->tail) >= wq->entries;
}

/* An MR that was not mapped has no list, and a page size of nothing. */
static int rhca_check_reg_mr(const struct ib_reg_wr *wr)
{
	if (wr->access & ~RHCA_ACCESS_KNOWN)
		return -EINVAL;
	return to_rhca_mr(wr->mr)->list.count ? 0 : -EINVAL;
}

static int rhca_check_send(const struct rhca_qp *qp, const struct rhca_op *op,
			   const struct ib_send_wr *wr)
{
	if (rhca_wq_is_full(&qp->sq))
		return -ENOMEM;
	if (!op)
		return -EINVAL;
	if (op->is_local)
		return op->has_mr ? rhca_check_reg_mr(reg_wr(wr)) : 0;
	if (wr->send_flags & IB_SEND_INLINE)
		return op->has_answer ? -EINVAL : 0;
	return wr->num_sge > qp->cap.max_send_sge ? -EINVAL : 0;
}

/* The doorbell that will announce the chain, kept from its first WQE. */
struct rhca_doorbell {
	u32 low;
	u32 high;
};

static void rhca_set_doorbell(const struct rhca_qp *qp,
			      const struct rhca_wqe *wqe, u8 opcode, bool fence,
			      struct rhca_doorbell *db)
{
	u32 head = rhca_wqe_offset(&qp->sq, qp->sq.head) / RDMA_HCA_WQE_UNIT;
	u32 units = rhca_wqe_units(wqe);

	db->low = FIELD_PREP(RDMA_HCA_SEND_DB_SQ_HEAD, head) |
		  FIELD_PREP(RDMA_HCA_SEND_DB_FENCE, fence) |
		  FIELD_PREP(RDMA_HCA_SEND_DB_OPCODE, opcode);
	db->high = FIELD_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) |
		   FIELD_PREP(RDMA_HCA_SEND_DB_SIZE, units);
}

/* The WQE at the head is written: it is in the queue now. */
static void rhca_add_send(struct rhca_qp *qp, const struct rhca_op *op,
			  const struct rhca_wqe *wqe, u64 wr_id, bool fence,
			  bool first, struct rhca_doorbell *db)
{
	struct rhca_wq *sq = &qp->sq;
	u32 index = sq->head & (sq->entries - 1);

	sq->wr_id[index] = wr_id;
	sq->wc_opcode[index] = op->wc_opcode;
	if (first)
		rhca_set_doorbell(qp, wqe, op->opcode, fence, db);
	/* A lone WQE has no other before it that is still in the queue. */
	if (sq->entries > 1) {
		dma_wmb();
		rhca_link(sq, sq->head, op->opcode, rhca_wqe_units(wqe), fence,
			  first);
	}
	/* The flush of a card that has failed reads entries before the head. */
	smp_store_release(&sq->head, sq->head + 1);
}

static int rhca_post_one(struct rhca_qp *qp, const struct ib_send_wr *wr,
			 bool first, struct rhca_doorbell *db)
{
	const struct rhca_op *op = rhca_find_op(qp, wr->opcode);
	struct rhca_wqe wqe;
	int err;

	err = rhca_check_send(qp, op, wr);
	if (err)
		return err;
	wqe.next = rhca_wqe_at(&qp->sq, qp->sq.head);
	err = rhca_build_send(qp, op, &wqe, wr);
	if (err)
		return err;
	rhca_add_send(qp, op, &wqe, wr->wr_id, wr->send_flags & IB_SEND_FENCE,
		      first, db);
	return 0;
}

/* Work requests are for QPs that have a peer, or had one. */
static int rhca_may_send(struct rhca_dev *dev, const struct rhca_qp *qp)
{
	if (rhca_failed(dev))
		return -EIO;
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		return -EINVAL;
	default:
		return 0;
	}
}

int rhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_qp *qp = to_rhca_qp(ibqp);
	struct rhca_doorbell db;
	bool first = true;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->sq.lock, flags);
	for (; wr; wr = wr->next) {
		err = rhca_may_send(dev, qp) ?:
		      rhca_post_one(qp, wr, first, &db);
		if (err) {
			*bad_wr = wr;
			break;
		}
		first = false;
	}
	/* The write of the register comes after those of the WQEs. */
	if (!first)
		rhca_ring(dev, RDMA_HCA_SEND_DB, db.low, db.high);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	return err;
}

int rhca_post_send_marker(struct rhca_qp *qp, struct ib_cqe *cqe)
{
	const struct rhca_op *op = &rhca_ops[IB_WR_SEND];
	struct rhca_dev *dev = to_rhca(qp->ibqp.device);
	struct rhca_wqe wqe;
	struct rhca_doorbell db;
	unsigned long flags;
	int err = -ENOMEM;

	spin_lock_irqsave(&qp->sq.lock, flags);
	if (qp->sq.len && !rhca_wq_is_full(&qp->sq)) {
		wqe.next = rhca_wqe_at(&qp->sq, qp->sq.head);
		wqe.end = wqe.next + 1;
		memset(wqe.next, 0, sizeof(*wqe.next));
		wqe.next->flags = cpu_to_le32(RDMA_HCA_WQE_CQ_UPDATE);
		rhca_add_send(qp, op, &wqe, (uintptr_t)cqe, false, true, &db);
		rhca_ring(dev, RDMA_HCA_SEND_DB, db.low, db.high);
		err = 0;
	}
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	return err;
}

/* --- receive ------------------------------------------------------------ */

/* Put @wr at the head of @rq; @index is where its wr_id is kept. */
static int rhca_add_recv(struct rhca_wq *rq, const struct ib_recv_wr *wr,
			 u32 index, u32 tag)
{
	struct rhca_wqe wqe = { .next = rhca_wqe_at(rq, rq->head) };
	u32 place = rhca_wqe_offset(rq, rq->head + 1) / RDMA_HCA_WQE_ALIGN;
	u32 units = (1u << rq->shift) / RDMA_HCA_WQE_UNIT;
	int err;

	memset(wqe.next, 0, sizeof(*wqe.next));
	/* All entries are alike: the next one's place and size are known. */
	wqe.next->nda_nop = cpu_to_le32(FIELD_PREP(RDMA_HCA_NEXT_NDA, place));
	wqe.next->nee_nds = cpu_to_le32(FIELD_PREP(RDMA_HCA_NEXT_NDS, units));
	wqe.next->tag = cpu_to_le32(tag);
	wqe.end = wqe.next + 1;
	err = rhca_put_sges(&wqe, wr->sg_list, wr->num_sge);
	if (err)
		return err;
	memset(wqe.end, 0, RDMA_HCA_WQE_UNIT);
	rq->wr_id[index] = wr->wr_id;
	/* As in rhca_add_send(). */
	smp_store_release(&rq->head, rq->head + 1);
	return 0;
}

static int rhca_post_one_recv(struct rhca_qp *qp, const struct ib_recv_wr *wr)
{
	struct rhca_wq *rq = &qp->rq;

	if (rhca_wq_is_full(rq))
		return -ENOMEM;
	if (wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	return rhca_add_recv(rq, wr, rq->head & (rq->entries - 1), 0);
}

static void rhca_count_posted(const struct rhca_wq *rq,
			      const struct rhca_db *db)
{
	/* The card may read entries once it sees the count. */
	dma_wmb();
	WRITE_ONCE(*db->va, cpu_to_le32(rq->head & 0xffff));
}

static int rhca_may_recv(struct rhca_dev *dev, const struct rhca_qp *qp)
{
	/* Those that share a queue have none of their own. */
	if (qp->srq || rhca_is_xrc(qp))
		return -EINVAL;
	if (rhca_failed(dev))
		return -EIO;
	return READ_ONCE(qp->state) == IB_QPS_RESET ? -EINVAL : 0;
}

int rhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_qp *qp = to_rhca_qp(ibqp);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->rq.lock, flags);
	for (; wr; wr = wr->next) {
		err = rhca_may_recv(dev, qp) ?: rhca_post_one_recv(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (qp->rq.len)
		rhca_count_posted(&qp->rq, &qp->rq_db);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	return err;
}

int rhca_post_recv_marker(struct rhca_qp *qp, struct ib_cqe *cqe)
{
	struct ib_recv_wr wr = { .wr_cqe = cqe };
	unsigned long flags;
	int err = -ENOMEM;

	spin_lock_irqsave(&qp->rq.lock, flags);
	if (qp->rq.len) {
		err = rhca_post_one_recv(qp, &wr);
		rhca_count_posted(&qp->rq, &qp->rq_db);
	}
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	return err;
}

/* --- shared receive ----------------------------------------------------- */

static int rhca_post_one_srq(struct rhca_srq *srq, const struct ib_recv_wr *wr)
{
	u32 tag;
	int err;

	if (rhca_failed(to_rhca(srq->ibsrq.device)))
		return -EIO;
	if (wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (!rhca_tags_take(&srq->tags, &tag))
		return -ENOMEM;
	err = rhca_add_recv(&srq->wq, wr, tag, tag);
	if (err)
		rhca_tags_give(&srq->tags, tag);
	return err;
}

int rhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct rhca_srq *srq = to_rhca_srq(ibsrq);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&srq->wq.lock, flags);
	for (; wr; wr = wr->next) {
		err = rhca_post_one_srq(srq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	rhca_count_posted(&srq->wq, &srq->db);
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	return err;
}
