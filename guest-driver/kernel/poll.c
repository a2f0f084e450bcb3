// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How users in the kernel get completions: CQEs (interface document 3.3)
 * become work completions of their QPs. A process's provider does so itself.
 */
#include <linux/iopoll.h>

#include "cq.h"
#include "eq.h"
#include "qp.h"
#include "srq.h"

/* How long users may take to see that all has ended, and how often to look. */
#define RHCA_FLUSH_WAIT_US	(2 * USEC_PER_SEC)
#define RHCA_FLUSH_LOOK_US	1000

/* --- what a CQE says ---------------------------------------------------- */

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
	case RDMA_HCA_SYNDROME_FATAL_ERR:
		return IB_WC_FATAL_ERR;
	case RDMA_HCA_SYNDROME_RESP_TIMEOUT_ERR:
		return IB_WC_RESP_TIMEOUT_ERR;
	default:
		return IB_WC_GENERAL_ERR;
	}
}

/*
 * Retire the entry that a CQE names and all before it, which without a signal
 * have no CQE of their own; what the entry was goes to @wc.
 */
static void rhca_wq_retire(struct rhca_wq *wq, u32 offset, struct ib_wc *wc)
{
	u32 index = (offset >> wq->shift) & (wq->entries - 1);

	wc->wr_id = wq->wr_id[index];
	wc->opcode = wq->wc_opcode[index];
	/* Who posts may overwrite the entry once it sees the tail. */
	smp_store_release(&wq->tail, wq->tail + 1 +
			  ((index - wq->tail) & (wq->entries - 1)));
}

/*
 * What else a message brings, by the last packet's BTH opcode, without the
 * service type in its high bits.
 */
static void rhca_wc_extra(const struct rdma_hca_cqe *cqe, u8 opcode,
			  struct ib_wc *wc)
{
	switch (opcode & 0x1f) {
	case 0x09:		/* RDMA Write Last, Only, with immediate */
	case 0x0b:
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		fallthrough;
	case 0x03:		/* Send Last, Only, with immediate */
	case 0x05:
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm;
		break;
	case 0x16:		/* Send Last, Only, with invalidate */
	case 0x17:
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->inv_rkey);
		break;
	}
}

/* The path of a datagram; of other messages nobody asks. */
static void rhca_wc_path(struct rhca_dev *dev, u32 path, struct ib_wc *wc)
{
	wc->sl = FIELD_GET(RDMA_HCA_CQE_SL, path);
	wc->port_num = RHCA_PORT;
	if (path & RDMA_HCA_CQE_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (!rhca_is_roce(dev)) {
		wc->slid = FIELD_GET(RDMA_HCA_CQE_RLID, path);
		wc->dlid_path_bits = FIELD_GET(RDMA_HCA_CQE_MLPATH, path);
		return;
	}
	wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->network_hdr_type = path & RDMA_HCA_CQE_IPV4 ? RDMA_NETWORK_IPV4 :
							  RDMA_NETWORK_IPV6;
	if (path & RDMA_HCA_CQE_HAS_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = FIELD_GET(RDMA_HCA_CQE_VLAN, path);
	}
}

/* QP 1 of InfiniBand takes any P_Key of the port, and no immediate data. */
static bool rhca_has_pkey_index(struct rhca_dev *dev, const struct rhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_GSI && !rhca_is_roce(dev);
}

/* What follows the retirement of the request. */
static void rhca_wc_recv(struct rhca_qp *qp, const struct rdma_hca_cqe *cqe,
			 u8 opcode, struct ib_wc *wc)
{
	struct rhca_dev *dev = to_rhca(qp->ibqp.device);

	wc->opcode = IB_WC_RECV;
	wc->byte_len = le32_to_cpu(cqe->byte_cnt);
	if (!rhca_cqe_is_xrc(cqe))
		wc->src_qp = le32_to_cpu(cqe->rqpn) & RDMA_HCA_QPN_MASK;
	rhca_wc_path(dev, le32_to_cpu(cqe->rlid_path), wc);
	if (rhca_has_pkey_index(dev, qp))
		wc->pkey_index = FIELD_GET(RDMA_HCA_CQE_PKEY_INDEX,
					   le32_to_cpu(cqe->pkey_index));
	else
		rhca_wc_extra(cqe, opcode, wc);
}

static void rhca_wc_error(struct rhca_dev *dev, const struct rdma_hca_cqe *cqe,
			  struct ib_wc *wc)
{
	u32 err = le32_to_cpu(cqe->err);

	wc->status = rhca_wc_status(FIELD_GET(RDMA_HCA_CQE_SYNDROME, err));
	wc->vendor_err = FIELD_GET(RDMA_HCA_CQE_VENDOR_ERR, err);
	wc->byte_len = 0;
	wc->wc_flags = 0;
	if (wc->opcode == IB_WC_RECV && wc->status != IB_WC_WR_FLUSH_ERR)
		rhca_qp_broke(dev, wc->qp);
}

/* Where the request of a receive came from; NULL: the QP's own queue. */
static struct rhca_srq *rhca_cqe_srq(struct rhca_dev *dev, struct rhca_qp *qp,
				     const struct rdma_hca_cqe *cqe)
{
	if (rhca_cqe_is_xrc(cqe))
		return xa_load(&dev->srqs, rhca_cqe_srqn(cqe));
	return qp ? qp->srq : NULL;
}

/*
 * Whose the CQE is, with its request, which ends here; NULL if there is no such
 * QP of the kernel, or no such request.
 */
static struct rhca_qp *rhca_cqe_retire(struct rhca_dev *dev,
				       const struct rdma_hca_cqe *cqe,
				       struct ib_wc *wc)
{
	struct rhca_qp *qp = xa_load(&dev->qps, rhca_cqe_qpn(cqe));
	bool is_send = rhca_cqe_is_send(cqe);
	struct rhca_srq *srq = is_send ? NULL : rhca_cqe_srq(dev, qp, cqe);
	struct rhca_wq *wq;

	/* A target that is gone has left it; its request is free again. */
	if (srq)
		return rhca_srq_retire(srq, cqe, &wc->wr_id) ? qp : NULL;
	if (!qp)
		return NULL;
	wq = is_send ? &qp->sq : &qp->rq;
	if (!wq->wr_id)
		return NULL;
	rhca_wq_retire(wq, le32_to_cpu(cqe->wqe), wc);
	return qp;
}

/* Returns false if the CQE belongs to no QP of the kernel: it is passed by. */
static bool rhca_cqe_to_wc(struct rhca_dev *dev, const struct rdma_hca_cqe *cqe,
			   struct ib_wc *wc)
{
	u8 opcode = FIELD_GET(RDMA_HCA_CQE_OPCODE, le32_to_cpu(cqe->ctrl));
	struct rhca_qp *qp;

	memset(wc, 0, sizeof(*wc));
	qp = rhca_cqe_retire(dev, cqe, wc);
	if (!qp)
		return false;
	wc->qp = &qp->ibqp;
	if (rhca_cqe_is_send(cqe))
		wc->byte_len = le32_to_cpu(cqe->byte_cnt);
	else
		rhca_wc_recv(qp, cqe, opcode, wc);
	if (opcode == RDMA_HCA_OPCODE_INVALID)
		rhca_wc_error(dev, cqe, wc);
	return true;
}

/* --- a card, or a CQ, that has failed ----------------------------------- */

/* What is still in @wq ends: the card will not do it. */
static int rhca_wq_flush(struct rhca_qp *qp, struct rhca_wq *wq, bool is_send,
			 int num_entries, struct ib_wc *wc)
{
	u32 index;
	int n;

	/* Entries before the head are written. */
	for (n = 0; n < num_entries && wq->tail != smp_load_acquire(&wq->head);
	     n++) {
		index = wq->tail & (wq->entries - 1);
		memset(&wc[n], 0, sizeof(*wc));
		wc[n].wr_id = wq->wr_id[index];
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].opcode = is_send ? wq->wc_opcode[index] : IB_WC_RECV;
		wc[n].qp = &qp->ibqp;
		wc[n].port_num = RHCA_PORT;
		/* As in rhca_wq_retire(). */
		smp_store_release(&wq->tail, wq->tail + 1);
	}
	return n;
}

/*
 * Whether the card does no more of what is in @qp's queues, nor tells of it. Those
 * of a QP in RESET are being emptied (rhca_modify_locked(), which has @cq's lock
 * before it does so).
 */
static bool rhca_is_to_flush(const struct rhca_cq *cq, const struct rhca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state != IB_QPS_RESET &&
	       (rhca_failed(to_rhca(cq->ibcq.device)) ||
		(state == IB_QPS_ERR && READ_ONCE(cq->failed)));
}

/* Under @cq's lock, which keeps its QPs. */
static int rhca_cq_flush(struct rhca_cq *cq, int num_entries, struct ib_wc *wc)
{
	struct rhca_qp *qp;
	int n = 0;

	list_for_each_entry(qp, &cq->send_qps, send_node)
		if (rhca_is_to_flush(cq, qp))
			n += rhca_wq_flush(qp, &qp->sq, true, num_entries - n,
					   &wc[n]);
	list_for_each_entry(qp, &cq->recv_qps, recv_node)
		if (rhca_is_to_flush(cq, qp))
			n += rhca_wq_flush(qp, &qp->rq, false, num_entries - n,
					   &wc[n]);
	return n;
}

/* Who posts without having seen the failure, has done so then. */
static bool rhca_has_work(struct rhca_wq *wq)
{
	bool has;

	spin_lock(&wq->lock);
	has = wq->head != READ_ONCE(wq->tail);
	spin_unlock(&wq->lock);
	return has;
}

/* One event for one request for it, as from a card that is well. */
static void rhca_notify(struct ib_cq *ibcq)
{
	if (!xchg(&to_rhca_cq(ibcq)->armed, false))
		return;
	/* Users that poll in softirqs know of the end when this returns. */
	local_bh_disable();
	ibcq->comp_handler(ibcq, ibcq->cq_context);
	local_bh_enable();
}

/*
 * What is in an SRQ stays there, as always; but somebody may wait until the card
 * takes nothing out of it any more.
 */
static void rhca_tell_last_wqe(struct rhca_qp *qp)
{
	if (qp->srq && READ_ONCE(qp->state) != IB_QPS_RESET &&
	    !xchg(&qp->has_last_wqe, true))
		rhca_qp_tell(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* The first QP from @number on, which stays there until rhca_qp_put(). */
static struct rhca_qp *rhca_qp_get(struct rhca_dev *dev, unsigned long *number)
{
	struct rhca_qp *qp;

	xa_lock(&dev->qps);
	qp = xa_find(&dev->qps, number, ULONG_MAX, XA_PRESENT);
	if (qp)
		refcount_inc(&qp->refs);
	xa_unlock(&dev->qps);
	return qp;
}

static void rhca_wq_tell_end(struct rhca_qp *qp, struct rhca_wq *wq,
			     struct ib_cq *ibcq)
{
	struct rhca_cq *cq = to_rhca_cq(ibcq);

	if (!rhca_is_to_flush(cq, qp) || !rhca_has_work(wq))
		return;
	/* The last event of a CQ that has overrun may be being told. */
	if (READ_ONCE(cq->failed))
		rhca_eq_synchronize(cq->eq);
	rhca_notify(ibcq);
}

/* A QP that is there has CQs that are, and so is its SRQ. */
static void rhca_qp_tell_end(struct rhca_dev *dev, struct rhca_qp *qp)
{
	if (qp->ibqp.uobject)
		return;
	if (rhca_failed(dev))
		rhca_tell_last_wqe(qp);
	rhca_wq_tell_end(qp, &qp->sq, qp->ibqp.send_cq);
	rhca_wq_tell_end(qp, &qp->rq, qp->ibqp.recv_cq);
}

void rhca_flush_kernel(struct rhca_dev *dev)
{
	unsigned long number = 0;
	struct rhca_qp *qp;

	for (; (qp = rhca_qp_get(dev, &number)); number++) {
		rhca_qp_tell_end(dev, qp);
		rhca_qp_put(qp);
	}
}

/* Whether who is told by events has yet to poll for the end of what is in @wq. */
static bool rhca_is_awaited(struct ib_cq *ibcq, struct rhca_wq *wq)
{
	return READ_ONCE(to_rhca_cq(ibcq)->has_events) && rhca_has_work(wq);
}

static bool rhca_has_awaited(struct rhca_dev *dev)
{
	unsigned long number = 0;
	struct rhca_qp *qp;
	bool awaited = false;

	for (; !awaited && (qp = rhca_qp_get(dev, &number)); number++) {
		awaited = !qp->ibqp.uobject &&
			  (rhca_is_awaited(qp->ibqp.send_cq, &qp->sq) ||
			   rhca_is_awaited(qp->ibqp.recv_cq, &qp->rq));
		rhca_qp_put(qp);
	}
	return awaited;
}

void rhca_flush_wait(struct rhca_dev *dev)
{
	bool awaited;

	if (read_poll_timeout(rhca_has_awaited, awaited, !awaited,
			      RHCA_FLUSH_LOOK_US, RHCA_FLUSH_WAIT_US, false,
			      dev))
		dev_warn(&dev->pdev->dev,
			 "a user has not polled for what has ended\n");
}

/* --- poll and arm ------------------------------------------------------- */

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
	if (unlikely(rhca_failed(dev) || READ_ONCE(cq->failed)))
		n += rhca_cq_flush(cq, num_entries - n, &wc[n]);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

bool rhca_cq_has_entry(struct ib_cq *ibcq)
{
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	unsigned long flags;
	bool has;

	spin_lock_irqsave(&cq->lock, flags);
	has = !rhca_cqe_is_hw(rhca_cqe(cq, cq->ci));
	spin_unlock_irqrestore(&cq->lock, flags);
	return has;
}

/*
 * The card fires at once for an entry that no event has told of. One of which
 * an event has told, since the last poll, is a missed one to the caller.
 */
int rhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct rhca_dev *dev = to_rhca(ibcq->device);
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	u32 cmd = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
			  RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED :
			  RDMA_HCA_CQ_DB_CMD_ARM_NEXT;

	WRITE_ONCE(cq->has_events, true);
	WRITE_ONCE(cq->armed, true);
	/* Either a failure finds the CQ armed, or it is seen here. */
	smp_mb();
	if (unlikely(rhca_failed(dev))) {
		rhca_flush_soon(dev);
		return 0;
	}
	rhca_ring(dev, RDMA_HCA_CQ_DB,
		  FIELD_PREP(RDMA_HCA_CQ_DB_CMD, cmd) |
			  FIELD_PREP(RDMA_HCA_CQ_DB_CQN, cq->cqn),
		  READ_ONCE(cq->ci));
	return (flags & IB_CQ_REPORT_MISSED_EVENTS) && rhca_cq_has_entry(ibcq);
}
