// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues (interface document 3.2.5, 3.3). A process's ring lies in
 * its own memory; the kernel's is here with the functions that read it.
 */
#include "rhca.h"

static int rhca_sw2hw_cq(struct rhca_dev *dev, struct rhca_cq *cq, u32 uar)
{
	struct rhca_mailbox box;
	struct rdma_hca_cqc *cqc;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	cqc = box.buf;
	rhca_put(&cqc->flags, RDMA_HCA_CQC_STATUS, RDMA_HCA_CQ_STATUS_OK);
	rhca_put(&cqc->flags, RDMA_HCA_CQC_TR, 1);
	rhca_put(&cqc->flags, RDMA_HCA_CQC_STATE, RDMA_HCA_CQ_STATE_DISARMED);
	rhca_put(&cqc->logsize_usrpage, RDMA_HCA_CQC_LOGSIZE,
		 ilog2(cq->entries));
	rhca_put(&cqc->logsize_usrpage, RDMA_HCA_CQC_UAR, uar);
	cqc->comp_eqn = cpu_to_be32(cq->eq->eqn);
	cqc->pd = cpu_to_be32(dev->pdn);
	cqc->lkey = cpu_to_be32(cq->region.key);
	cqc->cqn = cpu_to_be32(cq->cqn);
	rhca_put64(&cqc->ci_db_h, &cqc->ci_db_l, cq->db.dma);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SW2HW_CQ, cq->cqn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

static void rhca_hw2sw_cq(struct rhca_dev *dev, struct rhca_cq *cq)
{
	int err;

	err = rhca_cmd_none(dev, RDMA_HCA_CMD_HW2SW_CQ, cq->cqn);
	if (err && !rhca_failed(dev))
		dev_warn(&dev->pdev->dev, "HW2SW_CQ %#x: %d\n", cq->cqn, err);
}

static void rhca_cq_fill(struct rhca_cq *cq)
{
	struct rdma_hca_cqe *cqe = cq->buf.va;
	u32 i;

	for (i = 0; i < cq->entries; i++)
		cqe[i].ctrl = cpu_to_le32(RDMA_HCA_PREP(RDMA_HCA_CQE_OWNER,
							RDMA_HCA_OWNER_HW));
}

static int rhca_cq_ring_kernel(struct rhca_dev *dev, struct rhca_cq *cq)
{
	int err;

	err = rhca_buf_alloc(dev, &cq->buf, cq->entries * RDMA_HCA_CQE_SIZE);
	if (err)
		return err;
	rhca_cq_fill(cq);
	err = rhca_region_create_buf(dev, &cq->region, dev->pdn,
				     RDMA_HCA_ACCESS_LOCAL_WRITE, &cq->buf);
	if (err)
		goto free;
	err = rhca_db_alloc(dev, &cq->db);
	if (err)
		goto destroy;
	return 0;

destroy:
	rhca_region_destroy(dev, &cq->region);
free:
	rhca_buf_free(dev, &cq->buf);
	return err;
}

/* Pin and register a process's ring of @entries CQEs. */
static int rhca_cq_map_user(struct rhca_dev *dev, u64 addr, u32 entries,
			    struct ib_umem **umem, struct rhca_region *region)
{
	int err;

	if (!PAGE_ALIGNED(addr))
		return -EINVAL;
	*umem = ib_umem_get(&dev->ibdev, addr, entries * RDMA_HCA_CQE_SIZE,
			    IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(*umem))
		return PTR_ERR(*umem);
	err = rhca_region_create_umem(dev, region, dev->pdn,
				      RDMA_HCA_ACCESS_LOCAL_WRITE, *umem);
	if (err)
		ib_umem_release(*umem);
	return err;
}

static int rhca_cq_ring_user(struct rhca_dev *dev, struct rhca_cq *cq,
			     struct rhca_ucontext *ctx, struct ib_udata *udata)
{
	struct rdma_hca_create_cq_req req;
	int err;

	if (udata->inlen < sizeof(req))
		return -EINVAL;
	err = ib_copy_from_udata(&req, udata, sizeof(req));
	if (err)
		return err;
	err = rhca_cq_map_user(dev, req.buf_addr, cq->entries, &cq->umem,
			       &cq->region);
	if (err)
		return err;
	err = rhca_db_map_user(ctx, req.ci_db_addr, &cq->db);
	if (err) {
		rhca_region_destroy(dev, &cq->region);
		ib_umem_release(cq->umem);
	}
	return err;
}

static void rhca_cq_free_ring(struct rhca_dev *dev, struct rhca_cq *cq,
			      struct rhca_ucontext *ctx)
{
	rhca_db_free(dev, ctx, &cq->db);
	rhca_region_destroy(dev, &cq->region);
	if (ctx)
		ib_umem_release(cq->umem);
	else
		rhca_buf_free(dev, &cq->buf);
}

static int rhca_cq_respond(struct rhca_cq *cq, struct ib_udata *udata)
{
	struct rdma_hca_create_cq_resp resp = {
		.cqn = cq->cqn,
		.entries = cq->entries,
	};

	if (!udata)
		return 0;
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

/* No handler finds @cq any more, nor is one using it. */
static void rhca_cq_hide(struct rhca_dev *dev, struct rhca_cq *cq)
{
	xa_erase(&dev->cqs, cq->cqn);
	rhca_eq_synchronize(cq->eq);
	rhca_eq_synchronize(&dev->eq[0]);
	rhca_flush_synchronize(dev);
}

static int rhca_cq_create(struct rhca_dev *dev, struct rhca_cq *cq,
			  struct ib_udata *udata)
{
	struct rhca_ucontext *ctx = rhca_udata_ucontext(udata);
	int err;

	err = rhca_bitmap_alloc(&dev->cq_map, &cq->cqn, NULL);
	if (err)
		return err;
	err = rhca_icm_get(dev, &dev->cqc_table, cq->cqn, 1);
	if (err)
		goto number;
	err = ctx ? rhca_cq_ring_user(dev, cq, ctx, udata) :
		    rhca_cq_ring_kernel(dev, cq);
	if (err)
		goto number;
	err = xa_err(xa_store(&dev->cqs, cq->cqn, cq, GFP_KERNEL));
	if (err)
		goto ring;
	err = rhca_sw2hw_cq(dev, cq, ctx ? ctx->uar : RDMA_HCA_UAR_KERNEL);
	if (err)
		goto hide;
	err = rhca_cq_respond(cq, udata);
	if (err)
		goto hw2sw;
	return 0;

hw2sw:
	rhca_hw2sw_cq(dev, cq);
hide:
	rhca_cq_hide(dev, cq);
ring:
	rhca_cq_free_ring(dev, cq, ctx);
number:
	rhca_bitmap_free(&dev->cq_map, cq->cqn, 1);
	return err;
}

int rhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   RHCA_CQ_ARG *arg)
{
	struct rhca_dev *dev = to_rhca(ibcq->device);
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > 1u << dev->caps.log_max_cqes)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize_lock);
	cq->entries = roundup_pow_of_two(attr->cqe);
	cq->eq = rhca_eq_of_vector(dev, attr->comp_vector);
	err = rhca_cq_create(dev, cq, rhca_cq_udata(arg));
	if (!err)
		ibcq->cqe = cq->entries;
	return err;
}

int rhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibcq->device);
	struct rhca_cq *cq = to_rhca_cq(ibcq);

	rhca_hw2sw_cq(dev, cq);
	rhca_cq_hide(dev, cq);
	rhca_cq_free_ring(dev, cq, rhca_udata_ucontext(udata));
	rhca_bitmap_free(&dev->cq_map, cq->cqn, 1);
	return 0;
}

static int rhca_cmd_resize(struct rhca_dev *dev, struct rhca_cq *cq,
			   u32 entries, u32 lkey)
{
	struct rdma_hca_resize_cq *resize;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	resize = box.buf;
	rhca_put(&resize->logsize, RDMA_HCA_RESIZE_CQ_LOGSIZE, ilog2(entries));
	resize->lkey = cpu_to_be32(lkey);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_RESIZE_CQ, cq->cqn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

/*
 * A new ring for a process's CQ: the card goes on in it where it is. The
 * provider, which holds the CQ's lock, moves the entries that are there.
 */
int rhca_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibcq->device);
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	struct rdma_hca_resize_cq_req req;
	struct rhca_region region;
	struct ib_umem *umem;
	u32 entries;
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > 1 << dev->caps.log_max_cqes ||
	    udata->inlen < sizeof(req))
		return -EINVAL;
	err = ib_copy_from_udata(&req, udata, sizeof(req));
	if (err)
		return err;
	entries = roundup_pow_of_two(cqe);
	err = rhca_cq_map_user(dev, req.buf_addr, entries, &umem, &region);
	if (err)
		return err;
	/* Which ring is the old one is settled before anybody else resizes. */
	mutex_lock(&cq->resize_lock);
	err = rhca_cmd_resize(dev, cq, entries, region.key);
	if (!err) {
		swap(cq->umem, umem);
		swap(cq->region, region);
		cq->entries = entries;
		ibcq->cqe = entries;
	}
	mutex_unlock(&cq->resize_lock);
	rhca_region_destroy(dev, &region);
	ib_umem_release(umem);
	return err;
}

/* In a handler: rhca_cq_hide() keeps the CQ until it returns. */
void rhca_cq_completion(struct rhca_dev *dev, u32 cqn)
{
	struct rhca_cq *cq = xa_load(&dev->cqs, cqn);

	if (cq)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	else
		dev_dbg(&dev->pdev->dev, "completion for no CQ, %#x\n", cqn);
}

void rhca_cq_error(struct rhca_dev *dev, u32 cqn, u32 syndrome)
{
	struct rhca_cq *cq = xa_load(&dev->cqs, cqn);
	struct ib_event event = { .event = IB_EVENT_CQ_ERR };

	dev_warn_ratelimited(&dev->pdev->dev, "CQ %#x %s\n", cqn,
			     syndrome == RDMA_HCA_CQ_ERROR_OVERRUN ?
				     "overrun" : "access violation");
	if (!cq || !cq->ibcq.event_handler)
		return;
	event.device = cq->ibcq.device;
	event.element.cq = &cq->ibcq;
	cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static struct rdma_hca_cqe *rhca_cqe(struct rhca_cq *cq, u32 index)
{
	struct rdma_hca_cqe *cqe = cq->buf.va;

	return cqe + (index & (cq->entries - 1));
}

static bool rhca_cqe_is_hw(const struct rdma_hca_cqe *cqe)
{
	return RDMA_HCA_GET(RDMA_HCA_CQE_OWNER,
			    le32_to_cpu(READ_ONCE(cqe->ctrl))) ==
	       RDMA_HCA_OWNER_HW;
}

static void rhca_cqe_give_back(struct rdma_hca_cqe *cqe)
{
	WRITE_ONCE(cqe->ctrl, cpu_to_le32(RDMA_HCA_PREP(RDMA_HCA_CQE_OWNER,
							RDMA_HCA_OWNER_HW)));
}

static void rhca_cq_update_ci(struct rhca_cq *cq)
{
	/* The card may overwrite entries once it sees the index. */
	dma_wmb();
	WRITE_ONCE(*cq->db.va, cpu_to_le32(cq->ci));
}

static enum ib_wc_status rhca_wc_status(u8 syndrome)
{
	switch (syndrome) {
	case RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR:
		return IB_WC_LOC_LEN_ERR;
	case RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR:
		return IB_WC_LOC_QP_OP_ERR;
	case RDMA_HCA_SYNDROME_LOCAL_EEC_OP_ERR:
		return IB_WC_LOC_EEC_OP_ERR;
	case RDMA_HCA_SYNDROME_LOCAL_PROT_ERR:
		return IB_WC_LOC_PROT_ERR;
	case RDMA_HCA_SYNDROME_WR_FLUSH_ERR:
		return IB_WC_WR_FLUSH_ERR;
	case RDMA_HCA_SYNDROME_MW_BIND_ERR:
		return IB_WC_MW_BIND_ERR;
	case RDMA_HCA_SYNDROME_BAD_RESP_ERR:
		return IB_WC_BAD_RESP_ERR;
	case RDMA_HCA_SYNDROME_LOCAL_ACCESS_ERR:
		return IB_WC_LOC_ACCESS_ERR;
	case RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR:
		return IB_WC_REM_INV_REQ_ERR;
	case RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR:
		return IB_WC_REM_ACCESS_ERR;
	case RDMA_HCA_SYNDROME_REMOTE_OP_ERR:
		return IB_WC_REM_OP_ERR;
	case RDMA_HCA_SYNDROME_RETRY_EXC_ERR:
		return IB_WC_RETRY_EXC_ERR;
	case RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR:
		return IB_WC_RNR_RETRY_EXC_ERR;
	case RDMA_HCA_SYNDROME_LOCAL_RDD_VIOL_ERR:
		return IB_WC_LOC_RDD_VIOL_ERR;
	case RDMA_HCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR:
		return IB_WC_REM_INV_RD_REQ_ERR;
	case RDMA_HCA_SYNDROME_REMOTE_ABORTED_ERR:
		return IB_WC_REM_ABORT_ERR;
	case RDMA_HCA_SYNDROME_INVAL_EECN_ERR:
		return IB_WC_INV_EECN_ERR;
	case RDMA_HCA_SYNDROME_INVAL_EEC_STATE_ERR:
		return IB_WC_INV_EEC_STATE_ERR;
	default:
		return IB_WC_GENERAL_ERR;
	}
}

/*
 * Retire the entry that a CQE names and all before it, which without a signal
 * have no CQE of their own. Returns its place in the arrays of @wq.
 */
static u32 rhca_wq_retire(struct rhca_wq *wq, u32 offset)
{
	u32 index = (offset >> wq->shift) & (wq->entries - 1);

	wq->tail += ((index - wq->tail) & (wq->entries - 1)) + 1;
	return index;
}

static void rhca_wc_send(struct rhca_qp *qp, const struct rdma_hca_cqe *cqe,
			 struct ib_wc *wc)
{
	u32 index = rhca_wq_retire(&qp->sq, le32_to_cpu(cqe->wqe));

	wc->wr_id = qp->sq.wr_id[index];
	wc->opcode = qp->sq.opcode[index];
	wc->byte_len = le32_to_cpu(cqe->byte_cnt);
}

/* The last packet's BTH opcode, without the service type in its high bits. */
static bool rhca_bth_has_imm(u8 opcode)
{
	switch (opcode & 0x1f) {
	case 0x03:		/* Send Last, Only, with immediate */
	case 0x05:
	case 0x09:		/* RDMA Write Last, Only, with immediate */
	case 0x0b:
		return true;
	default:
		return false;
	}
}

/* The path of a datagram; of other messages nobody asks. */
static void rhca_wc_path(struct rhca_dev *dev, u32 path, struct ib_wc *wc)
{
	wc->sl = RDMA_HCA_GET(RDMA_HCA_CQE_SL, path);
	wc->port_num = RHCA_PORT;
	if (path & RDMA_HCA_CQE_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (!rhca_is_roce(dev)) {
		wc->slid = RDMA_HCA_GET(RDMA_HCA_CQE_RLID, path);
		wc->dlid_path_bits = RDMA_HCA_GET(RDMA_HCA_CQE_MLPATH, path);
		return;
	}
	wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->network_hdr_type = path & RDMA_HCA_CQE_IPV4 ? RDMA_NETWORK_IPV4 :
							  RDMA_NETWORK_IPV6;
	if (path & RDMA_HCA_CQE_HAS_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = RDMA_HCA_GET(RDMA_HCA_CQE_VLAN, path);
	}
}

static void rhca_wc_recv(struct rhca_qp *qp, const struct rdma_hca_cqe *cqe,
			 u8 opcode, struct ib_wc *wc)
{
	u32 index = rhca_wq_retire(&qp->rq, le32_to_cpu(cqe->wqe));

	wc->wr_id = qp->rq.wr_id[index];
	wc->opcode = (opcode & 0x1f) >= 0x06 ? IB_WC_RECV_RDMA_WITH_IMM :
					       IB_WC_RECV;
	wc->byte_len = le32_to_cpu(cqe->byte_cnt);
	wc->src_qp = le32_to_cpu(cqe->rqpn) & RDMA_HCA_QPN_MASK;
	rhca_wc_path(to_rhca(qp->ibqp.device), le32_to_cpu(cqe->rlid_path), wc);
	if (rhca_bth_has_imm(opcode)) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm;
	}
}

static void rhca_wc_error(const struct rdma_hca_cqe *cqe, struct ib_wc *wc)
{
	u32 err = le32_to_cpu(cqe->err);

	wc->status = rhca_wc_status(RDMA_HCA_GET(RDMA_HCA_CQE_SYNDROME, err));
	wc->vendor_err = RDMA_HCA_GET(RDMA_HCA_CQE_VENDOR_ERR, err);
	wc->byte_len = 0;
	wc->wc_flags = 0;
}

/* Returns false if the CQE belongs to no QP of the kernel: it is passed by. */
static bool rhca_cqe_to_wc(struct rhca_dev *dev, const struct rdma_hca_cqe *cqe,
			   struct ib_wc *wc)
{
	u32 qpn = le32_to_cpu(cqe->my_qpn) & RDMA_HCA_QPN_MASK;
	struct rhca_qp *qp = xa_load(&dev->qps, qpn);
	u32 ctrl = le32_to_cpu(cqe->ctrl);
	u8 opcode = RDMA_HCA_GET(RDMA_HCA_CQE_OPCODE, ctrl);
	bool is_send = RDMA_HCA_GET(RDMA_HCA_CQE_IS_SEND, ctrl);

	if (!qp || !(is_send ? qp->sq.wr_id : qp->rq.wr_id))
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->qp = &qp->ibqp;
	if (is_send)
		rhca_wc_send(qp, cqe, wc);
	else
		rhca_wc_recv(qp, cqe, opcode, wc);
	if (opcode == RDMA_HCA_OPCODE_INVALID)
		rhca_wc_error(cqe, wc);
	return true;
}

/* --- a card that has failed ---------------------------------------------- */

/* What is still in @wq ends: the card will not do it. */
static int rhca_wq_flush(struct rhca_qp *qp, struct rhca_wq *wq, bool is_send,
			 int num_entries, struct ib_wc *wc)
{
	u32 index;
	int n;

	for (n = 0; n < num_entries && wq->tail != READ_ONCE(wq->head); n++) {
		index = wq->tail++ & (wq->entries - 1);
		memset(&wc[n], 0, sizeof(*wc));
		wc[n].wr_id = wq->wr_id[index];
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].opcode = is_send ? wq->opcode[index] : IB_WC_RECV;
		wc[n].qp = &qp->ibqp;
		wc[n].port_num = RHCA_PORT;
	}
	return n;
}

/* Under @cq's lock, which keeps the QPs found from being destroyed. */
static int rhca_cq_flush(struct rhca_dev *dev, struct rhca_cq *cq,
			 int num_entries, struct ib_wc *wc)
{
	struct rhca_qp *qp;
	unsigned long qpn;
	int n = 0;

	xa_for_each(&dev->qps, qpn, qp) {
		if (qp->ibqp.uobject)
			continue;
		if (qp->ibqp.send_cq == &cq->ibcq)
			n += rhca_wq_flush(qp, &qp->sq, true, num_entries - n,
					   &wc[n]);
		if (qp->ibqp.recv_cq == &cq->ibcq)
			n += rhca_wq_flush(qp, &qp->rq, false, num_entries - n,
					   &wc[n]);
	}
	return n;
}

void rhca_flush_kernel(struct rhca_dev *dev)
{
	unsigned long flags, number;
	struct rhca_qp *qp;
	struct rhca_cq *cq;

	spin_lock_irqsave(&dev->flush_lock, flags);
	/* Who still posts without having seen the failure, is done. */
	xa_for_each(&dev->qps, number, qp) {
		if (qp->ibqp.uobject)
			continue;
		spin_lock(&qp->sq.lock);
		spin_unlock(&qp->sq.lock);
		spin_lock(&qp->rq.lock);
		spin_unlock(&qp->rq.lock);
	}
	xa_for_each(&dev->cqs, number, cq)
		if (!cq->ibcq.uobject && cq->ibcq.comp_handler &&
		    cq->ibcq.poll_ctx != IB_POLL_DIRECT)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	spin_unlock_irqrestore(&dev->flush_lock, flags);
}

void rhca_flush_synchronize(struct rhca_dev *dev)
{
	spin_lock_irq(&dev->flush_lock);
	spin_unlock_irq(&dev->flush_lock);
}

int rhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct rhca_dev *dev = to_rhca(ibcq->device);
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	struct rdma_hca_cqe *cqe;
	u32 before;
	unsigned long flags;
	int n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	before = cq->ci;
	while (n < num_entries) {
		cqe = rhca_cqe(cq, cq->ci);
		if (rhca_cqe_is_hw(cqe))
			break;
		/* Read the rest only after the owner. */
		dma_rmb();
		n += rhca_cqe_to_wc(dev, cqe, &wc[n]);
		rhca_cqe_give_back(cqe);
		cq->ci++;
	}
	if (cq->ci != before)
		rhca_cq_update_ci(cq);
	if (unlikely(rhca_failed(dev)))
		n += rhca_cq_flush(dev, cq, num_entries - n, &wc[n]);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/* The card fires at once for what is there already: no event is missed. */
int rhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	u32 cmd = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
			  RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED :
			  RDMA_HCA_CQ_DB_CMD_ARM_NEXT;

	rhca_ring(to_rhca(ibcq->device), RDMA_HCA_CQ_DB,
		  RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, cmd) |
			  RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CQN, cq->cqn),
		  READ_ONCE(cq->ci));
	return 0;
}

static u32 rhca_cqe_qpn(const struct rdma_hca_cqe *cqe)
{
	return le32_to_cpu(cqe->my_qpn) & RDMA_HCA_QPN_MASK;
}

/*
 * The entries that stay move towards the producer, into the place of those
 * that go. The QP is in RESET: the card adds no more of it.
 */
void rhca_cq_clean(struct rhca_cq *cq, u32 qpn)
{
	unsigned long flags;
	u32 producer, at, gone = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (producer = cq->ci; producer - cq->ci < cq->entries; producer++)
		if (rhca_cqe_is_hw(rhca_cqe(cq, producer)))
			break;
	dma_rmb();
	for (at = producer; at != cq->ci; at--) {
		if (rhca_cqe_qpn(rhca_cqe(cq, at - 1)) == qpn)
			gone++;
		else if (gone)
			*rhca_cqe(cq, at - 1 + gone) = *rhca_cqe(cq, at - 1);
	}
	for (; gone; gone--)
		rhca_cqe_give_back(rhca_cqe(cq, cq->ci++));
	rhca_cq_update_ci(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
}
