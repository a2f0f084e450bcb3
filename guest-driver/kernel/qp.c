// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs (interface document 3.2.6, tables A1-1 to A1-3). A QP is known
 * to the card from RESET to INIT on, and no more after it has gone back to
 * RESET.
 */
#include "rdma_hca_user.h"

#include "cq.h"
#include "eq.h"
#include "port.h"
#include "qp.h"
#include "srq.h"
#include "udata.h"

/*
 * What peers may do. Other rights are regions', or are of operations that a QP
 * does not have: programs ask for all that there are, and look at what they got.
 */
#define RHCA_QP_ACCESS							\
	(RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |	\
	 RDMA_HCA_ACCESS_REMOTE_ATOMIC)

static u8 rhca_service(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_UC:
		return RDMA_HCA_QP_ST_UC;
	case IB_QPT_UD:
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		return RDMA_HCA_QP_ST_UD;
	case IB_QPT_XRC_INI:
		return RDMA_HCA_QP_ST_XRC_INI;
	case IB_QPT_XRC_TGT:
		return RDMA_HCA_QP_ST_XRC_TGT;
	case IB_QPT_RAW_PACKET:
		return RDMA_HCA_QP_ST_RAW;
	default:
		return RDMA_HCA_QP_ST_RC;
	}
}

static u8 rhca_state_to_card(enum ib_qp_state state)
{
	static const u8 table[] = {
		[IB_QPS_RESET]	= RDMA_HCA_QP_STATE_RST,
		[IB_QPS_INIT]	= RDMA_HCA_QP_STATE_INIT,
		[IB_QPS_RTR]	= RDMA_HCA_QP_STATE_RTR,
		[IB_QPS_RTS]	= RDMA_HCA_QP_STATE_RTS,
		[IB_QPS_SQD]	= RDMA_HCA_QP_STATE_SQD,
		[IB_QPS_SQE]	= RDMA_HCA_QP_STATE_SQE,
		[IB_QPS_ERR]	= RDMA_HCA_QP_STATE_ERR,
	};

	return table[state];
}

static enum ib_qp_state rhca_state_from_card(u32 state)
{
	switch (state) {
	case RDMA_HCA_QP_STATE_RST:
		return IB_QPS_RESET;
	case RDMA_HCA_QP_STATE_INIT:
		return IB_QPS_INIT;
	case RDMA_HCA_QP_STATE_RTR:
		return IB_QPS_RTR;
	case RDMA_HCA_QP_STATE_RTS:
		return IB_QPS_RTS;
	case RDMA_HCA_QP_STATE_SQD:
		return IB_QPS_SQD;
	case RDMA_HCA_QP_STATE_SQE:
		return IB_QPS_SQE;
	default:
		return IB_QPS_ERR;
	}
}

/* The command of a transition that ib_modify_qp_is_ok() allows. */
static u16 rhca_transition(enum ib_qp_state from, enum ib_qp_state to)
{
	static const u16 table[IB_QPS_ERR + 1][IB_QPS_ERR + 1] = {
		[IB_QPS_RESET][IB_QPS_INIT] = RDMA_HCA_CMD_RST2INIT_QPEE,
		[IB_QPS_INIT][IB_QPS_INIT]  = RDMA_HCA_CMD_INIT2INIT_QPEE,
		[IB_QPS_INIT][IB_QPS_RTR]   = RDMA_HCA_CMD_INIT2RTR_QPEE,
		[IB_QPS_RTR][IB_QPS_RTS]    = RDMA_HCA_CMD_RTR2RTS_QPEE,
		[IB_QPS_RTS][IB_QPS_RTS]    = RDMA_HCA_CMD_RTS2RTS_QPEE,
		[IB_QPS_RTS][IB_QPS_SQD]    = RDMA_HCA_CMD_RTS2SQD_QPEE,
		[IB_QPS_SQD][IB_QPS_SQD]    = RDMA_HCA_CMD_SQD2SQD_QPEE,
		[IB_QPS_SQD][IB_QPS_RTS]    = RDMA_HCA_CMD_SQD2RTS_QPEE,
		[IB_QPS_SQE][IB_QPS_RTS]    = RDMA_HCA_CMD_SQERR2RTS_QPEE,
	};

	if (to == IB_QPS_ERR)
		return RDMA_HCA_CMD_2ERR_QPEE;
	if (to == IB_QPS_RESET)
		return RDMA_HCA_CMD_ERR2RST_QPEE;
	return table[from][to];
}

/* --- create and destroy ------------------------------------------------- */

static bool rhca_has_type(const struct rhca_dev *dev, enum ib_qp_type type,
			  bool of_kernel)
{
	switch (type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		return true;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return rhca_has_xrc(dev);
	case IB_QPT_SMI:
		return of_kernel && rhca_has_mad(dev);
	case IB_QPT_GSI:
		return of_kernel && (rhca_is_roce(dev) || rhca_has_mad(dev));
	case IB_QPT_RAW_PACKET:
		/* The kernel has the interface for that. */
		return !of_kernel && rhca_has_raw(dev);
	default:
		return false;
	}
}

/* What a QP does not have of its own it cannot be asked for. */
static void rhca_drop_queues(const struct ib_qp_init_attr *attr,
			     struct ib_qp_cap *cap)
{
	if (attr->qp_type == IB_QPT_XRC_TGT) {
		memset(cap, 0, sizeof(*cap));
	} else if (attr->srq || attr->qp_type == IB_QPT_XRC_INI) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
}

/* Of enum ib_qp_create_flags. */
static u32 rhca_create_flags(struct rhca_dev *dev, enum ib_qp_type type)
{
	return type == IB_QPT_UD &&
			       dev->caps.features & RDMA_HCA_FEATURE_BLOCK_LOOPBACK ?
		       IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK :
		       0;
}

/* @cap: of the queues that it is to have. */
static int rhca_check_qp_init(struct rhca_dev *dev,
			      const struct ib_qp_init_attr *attr,
			      const struct ib_qp_cap *cap, bool of_kernel)
{
	const struct rhca_caps *caps = &dev->caps;

	if (attr->rwq_ind_tbl ||
	    attr->create_flags & ~rhca_create_flags(dev, attr->qp_type))
		return -EOPNOTSUPP;
	if (!rhca_has_type(dev, attr->qp_type, of_kernel))
		return -EOPNOTSUPP;
	if (attr->qp_type == IB_QPT_XRC_TGT)
		return attr->xrcd ? 0 : -EINVAL;
	/* Its peers name the SRQs that a target uses; others have one. */
	if (attr->srq && (attr->qp_type == IB_QPT_XRC_INI ||
			  attr->srq->srq_type != IB_SRQT_BASIC))
		return -EINVAL;
	if (cap->max_send_wr > 1u << caps->log_max_wqes ||
	    cap->max_recv_wr > 1u << caps->log_max_wqes ||
	    cap->max_send_sge > caps->max_send_sge ||
	    cap->max_recv_sge > caps->max_recv_sge ||
	    cap->max_inline_data > caps->max_inline)
		return -EINVAL;
	return 0;
}

/* QPs 0 and 1 are there once, and have their numbers from the beginning. */
static int rhca_qpn_alloc(struct rhca_dev *dev, struct rhca_qp *qp)
{
	struct ib_qp *ibqp = &qp->ibqp;
	int err;

	if (rhca_is_special(ibqp->qp_type)) {
		ibqp->qp_num = ibqp->qp_type == IB_QPT_GSI;
		qp->qpn = dev->caps.special_qpn + ibqp->qp_num;
		return xa_load(&dev->qps, qp->qpn) ? -EBUSY : 0;
	}
	err = rhca_bitmap_alloc(&dev->qp_map, &qp->qpn, NULL);
	if (!err)
		ibqp->qp_num = qp->qpn;
	return err;
}

static void rhca_qpn_free(struct rhca_dev *dev, struct rhca_qp *qp)
{
	if (!rhca_is_special(qp->ibqp.qp_type))
		rhca_bitmap_free(&dev->qp_map, qp->qpn, 1);
}

/* As the card counts them. */
static u32 rhca_qp_slots(const struct rhca_qp *qp)
{
	return qp->sq.entries ? roundup_pow_of_two(qp->sq.entries) : 0;
}

/*
 * A QP that there is must not want for slots when it leaves RESET, where nobody
 * expects it.
 */
static int rhca_qp_take_slots(struct rhca_dev *dev, const struct rhca_qp *qp)
{
	int slots = rhca_qp_slots(qp);

	if (atomic_add_return(slots, &dev->sq_slots) <=
	    1 << dev->caps.log_sq_slots)
		return 0;
	atomic_sub(slots, &dev->sq_slots);
	return -ENOMEM;
}

static void rhca_qp_return_slots(struct rhca_dev *dev, const struct rhca_qp *qp)
{
	atomic_sub(rhca_qp_slots(qp), &dev->sq_slots);
}

static int rhca_qp_respond(struct rhca_qp *qp, struct ib_udata *udata)
{
	struct rdma_hca_create_qp_resp resp = { .qpn = qp->qpn };

	if (!udata)
		return 0;
	return rhca_respond(udata, &resp, sizeof(resp));
}

/*
 * Its CQs have to know the QPs of the kernel that end by them. An XRC target has
 * none, and a sender no second one.
 */
static void rhca_cq_link(struct ib_cq *ibcq, struct list_head *node, bool send)
{
	struct rhca_cq *cq;

	INIT_LIST_HEAD(node);
	if (!ibcq)
		return;
	cq = to_rhca_cq(ibcq);
	spin_lock_irq(&cq->lock);
	list_add_tail(node, send ? &cq->send_qps : &cq->recv_qps);
	spin_unlock_irq(&cq->lock);
}

static void rhca_cq_unlink(struct ib_cq *ibcq, struct list_head *node)
{
	struct rhca_cq *cq;

	if (!ibcq)
		return;
	cq = to_rhca_cq(ibcq);
	spin_lock_irq(&cq->lock);
	list_del(node);
	spin_unlock_irq(&cq->lock);
}

/* What the QP belongs to, from its creation on. */
static void rhca_qp_init(struct rhca_qp *qp, const struct ib_qp_init_attr *attr)
{
	mutex_init(&qp->lock);
	refcount_set(&qp->refs, 1);
	init_completion(&qp->unused);
	qp->state = IB_QPS_RESET;
	qp->sig_type = attr->sq_sig_type;
	qp->block_loopback = attr->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if (attr->qp_type == IB_QPT_XRC_TGT) {
		/* To the core it has no PD. */
		qp->pdn = to_rhca_xrcd(attr->xrcd)->pdn;
		qp->xrcdn = to_rhca_xrcd(attr->xrcd)->xrcdn;
		return;
	}
	qp->pdn = to_rhca_pd(qp->ibqp.pd)->pdn;
	qp->srq = attr->srq ? to_rhca_srq(attr->srq) : NULL;
}

int rhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata)
{
	struct rhca_ucontext *ctx = rhca_udata_ucontext(udata);
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_qp *qp = to_rhca_qp(ibqp);
	int err;

	qp->cap = attr->cap;
	rhca_drop_queues(attr, &qp->cap);
	err = rhca_check_qp_init(dev, attr, &qp->cap, !ctx);
	if (err)
		return err;
	rhca_qp_init(qp, attr);

	err = rhca_qpn_alloc(dev, qp);
	if (err)
		return err;
	err = rhca_icm_get(dev, &dev->qpc_table, qp->qpn, 1);
	if (err)
		goto number;
	err = ctx ? rhca_queues_create_user(dev, qp, ctx, udata) :
		    rhca_queues_create_kernel(dev, qp);
	if (err)
		goto number;
	err = rhca_qp_take_slots(dev, qp);
	if (err)
		goto queues;
	qp->cap.max_send_wr = qp->sq.entries;
	qp->cap.max_recv_wr = qp->rq.entries;
	err = rhca_qp_respond(qp, udata);
	if (err)
		goto slots;
	err = xa_insert(&dev->qps, qp->qpn, qp, GFP_KERNEL);
	if (err)
		goto slots;
	if (!ctx) {
		rhca_cq_link(ibqp->send_cq, &qp->send_node, true);
		rhca_cq_link(ibqp->recv_cq, &qp->recv_node, false);
	}
	attr->cap = qp->cap;
	return 0;

slots:
	rhca_qp_return_slots(dev, qp);
queues:
	rhca_queues_destroy(dev, qp, ctx);
number:
	rhca_qpn_free(dev, qp);
	return err;
}

/* What completions a QP of the kernel has left would name it, or another. */
static void rhca_qp_clean_cqs(struct rhca_qp *qp)
{
	struct ib_qp *ibqp = &qp->ibqp;

	if (ibqp->uobject)
		return;
	if (ibqp->send_cq)
		rhca_cq_clean(to_rhca_cq(ibqp->send_cq), qp->qpn, qp->srq);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		rhca_cq_clean(to_rhca_cq(ibqp->recv_cq), qp->qpn, qp->srq);
}

/*
 * What it has taken of its SRQ would be lost with a reset; in ERR it ends, and
 * has its place again. Nobody has asked for the event.
 */
static void rhca_qp_return_taken(struct rhca_dev *dev, struct rhca_qp *qp)
{
	if (!qp->srq)
		return;
	WRITE_ONCE(qp->has_last_wqe, true);
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_2ERR_QPEE, RDMA_HCA_MODIFY_NO_INBOX,
			qp->qpn, 0);
}

int rhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_qp *qp = to_rhca_qp(ibqp);

	if (qp->state != IB_QPS_RESET) {
		rhca_qp_return_taken(dev, qp);
		rhca_cmd_revoke(dev, RDMA_HCA_CMD_ERR2RST_QPEE,
				RDMA_HCA_MODIFY_NO_INBOX, qp->qpn, 0);
	}
	/* As long as it is found: what is polled meanwhile is its own. */
	rhca_qp_clean_cqs(qp);
	xa_erase(&dev->qps, qp->qpn);
	rhca_eq_synchronize(&dev->eq[0]);
	rhca_qp_put(qp);
	wait_for_completion(&qp->unused);
	if (!ibqp->uobject) {
		rhca_cq_unlink(ibqp->send_cq, &qp->send_node);
		rhca_cq_unlink(ibqp->recv_cq, &qp->recv_node);
	}
	rhca_qp_return_slots(dev, qp);
	rhca_queues_destroy(dev, qp, rhca_udata_ucontext(udata));
	rhca_qpn_free(dev, qp);
	return 0;
}

/* --- modify ------------------------------------------------------------- */

/* What does not change while the QP lives: part of RESET to INIT. */
static void rhca_put_fixed(struct rhca_qp *qp, struct rdma_hca_qpc *qpc)
{
	struct ib_qp *ibqp = &qp->ibqp;

	be32p_replace_bits(&qpc->usr_page, qp->uar, RDMA_HCA_QPC_UAR);
	be32p_replace_bits(&qpc->mtu_msgmax_sz, qp->rq.shift,
			   RDMA_HCA_QPC_RQ_ENTRY_SZ);
	be32p_replace_bits(&qpc->mtu_msgmax_sz, qp->sq.shift,
			   RDMA_HCA_QPC_SQ_ENTRY_SZ);
	qpc->pd = cpu_to_be32(qp->pdn);
	qpc->xrcd = cpu_to_be32(qp->xrcdn);
	qpc->counter_set = cpu_to_be32(qp->counter_set);
	if (qp->srq)
		qpc->srq = cpu_to_be32(RDMA_HCA_QPC_USES_SRQ | qp->srq->srqn);
	if (ibqp->send_cq)
		qpc->cqn_snd = cpu_to_be32(to_rhca_cq(ibqp->send_cq)->cqn);
	if (ibqp->recv_cq)
		qpc->cqn_rcv = cpu_to_be32(to_rhca_cq(ibqp->recv_cq)->cqn);
	qpc->snd_wqe_base_l = cpu_to_be32(qp->sq.region.key);
	qpc->snd_wqe_len = cpu_to_be32(qp->sq.len);
	qpc->rcv_wqe_base_l = cpu_to_be32(qp->rq.region.key);
	qpc->rcv_wqe_len = cpu_to_be32(qp->rq.len);
	rhca_put64(&qpc->rq_db_h, &qpc->rq_db_l, qp->rq_db.dma);
	/* A process has no say in what memory a key stands for. */
	if (!ibqp->uobject)
		be32p_replace_bits(&qpc->flags, 1, RDMA_HCA_QPC_PRIVILEGED);
	if (qp->block_loopback)
		be32p_replace_bits(&qpc->flags, 1, RDMA_HCA_QPC_BLOCK_LOOPBACK);
	/* For any other QP the port is an attribute. */
	if (rhca_is_special(ibqp->qp_type))
		be32p_replace_bits(&qpc->port_pkey, RHCA_PORT,
				   RDMA_HCA_QPC_PORT);
}

static void rhca_put_mtu(struct rhca_dev *dev, struct rhca_qp *qp,
			 const struct ib_qp_attr *attr,
			 struct rdma_hca_qpc *qpc)
{
	bool ud = rhca_is_datagram(qp);
	/* The port's may change while the QP lives; the card looks at it. */
	u8 mtu = ud ? dev->caps.max_mtu : attr->path_mtu;
	/* A datagram is one packet. */
	u8 log_msg = ud ? ilog2(ib_mtu_enum_to_int(mtu)) :
			  dev->caps.log_max_msg;

	be32p_replace_bits(&qpc->mtu_msgmax_sz, mtu, RDMA_HCA_QPC_MTU);
	be32p_replace_bits(&qpc->mtu_msgmax_sz, log_msg, RDMA_HCA_QPC_MSGMAX);
}

static void rhca_put_grh(const struct ib_global_route *grh,
			 struct rdma_hca_qpc *qpc)
{
	be32p_replace_bits(&qpc->rnr_retry_path, 1, RDMA_HCA_QPC_GRH);
	be32p_replace_bits(&qpc->ackto_path, grh->sgid_index,
			   RDMA_HCA_QPC_SGID_INDEX);
	be32p_replace_bits(&qpc->ackto_path, grh->hop_limit,
			   RDMA_HCA_QPC_HOP_LIMIT);
	be32p_replace_bits(&qpc->sl_tclass_flowlabel, grh->traffic_class,
			   RDMA_HCA_QPC_TCLASS);
	be32p_replace_bits(&qpc->sl_tclass_flowlabel, grh->flow_label,
			   RDMA_HCA_QPC_FLOW_LABEL);
	memcpy(qpc->rgid, grh->dgid.raw, sizeof(qpc->rgid));
}

/* The source is the port's LID, whatever it is, with the path bits. */
static void rhca_put_lids(const struct rdma_ah_attr *ah,
			  struct rdma_hca_qpc *qpc)
{
	be32p_replace_bits(&qpc->dlid_slid, rdma_ah_get_dlid(ah),
			   RDMA_HCA_QPC_DLID);
	be32p_replace_bits(&qpc->rnr_retry_path, rdma_ah_get_path_bits(ah),
			   RDMA_HCA_QPC_MLPATH);
}

/* The source is that of the GID table's entry. */
static void rhca_put_dmac(const u8 *dmac, struct rdma_hca_qpc *qpc)
{
	be32p_replace_bits(&qpc->dlid_slid, rhca_mac_low(dmac),
			   RDMA_HCA_QPC_DLID);
	qpc->dmac_h = cpu_to_be32(rhca_mac_high(dmac));
}

static void rhca_put_av(const struct rdma_ah_attr *ah, struct rdma_hca_qpc *qpc)
{
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		rhca_put_dmac(ah->roce.dmac, qpc);
	else
		rhca_put_lids(ah, qpc);
	be32p_replace_bits(&qpc->ackto_path, rdma_ah_get_static_rate(ah),
			   RDMA_HCA_QPC_STATIC_RATE);
	be32p_replace_bits(&qpc->sl_tclass_flowlabel, rdma_ah_get_sl(ah),
			   RDMA_HCA_QPC_SL);
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH)
		rhca_put_grh(rdma_ah_read_grh(ah), qpc);
}

static void rhca_put_path(const struct ib_qp_attr *attr, int mask,
			  struct rdma_hca_qpc *qpc)
{
	if (mask & IB_QP_PORT)
		be32p_replace_bits(&qpc->port_pkey, attr->port_num,
				   RDMA_HCA_QPC_PORT);
	if (mask & IB_QP_PKEY_INDEX)
		be32p_replace_bits(&qpc->port_pkey, attr->pkey_index,
				   RDMA_HCA_QPC_PKEY_INDEX);
	if (mask & IB_QP_AV)
		rhca_put_av(&attr->ah_attr, qpc);
	if (mask & IB_QP_RNR_RETRY)
		be32p_replace_bits(&qpc->rnr_retry_path, attr->rnr_retry,
				   RDMA_HCA_QPC_RNR_RETRY);
	if (mask & IB_QP_RETRY_CNT)
		be32p_replace_bits(&qpc->rnr_retry_path, attr->retry_cnt,
				   RDMA_HCA_QPC_RETRY_COUNT);
	if (mask & IB_QP_TIMEOUT)
		be32p_replace_bits(&qpc->ackto_path, attr->timeout,
				   RDMA_HCA_QPC_ACK_TIMEOUT);
}

/* A card without FLUSH does not look at that field. */
static void rhca_put_qp_access(int access, struct rdma_hca_qpc *qpc)
{
	be32p_replace_bits(&qpc->params1, access & RHCA_QP_ACCESS,
			   RDMA_HCA_QPC_ACCESS);
	be32p_replace_bits(&qpc->params1,
			   FIELD_GET(RDMA_HCA_ACCESS_FLUSH,
				     access & RHCA_ACCESS_FLUSH),
			   RDMA_HCA_QPC_FLUSH);
}

static void rhca_put_transport(const struct ib_qp_attr *attr, int mask,
			       struct rdma_hca_qpc *qpc)
{
	if (mask & IB_QP_DEST_QPN)
		qpc->remote_qpn = cpu_to_be32(attr->dest_qp_num);
	if (mask & IB_QP_QKEY)
		qpc->qkey = cpu_to_be32(attr->qkey);
	if (mask & IB_QP_ACCESS_FLAGS)
		rhca_put_qp_access(attr->qp_access_flags, qpc);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		be32p_replace_bits(&qpc->params1, attr->max_rd_atomic,
				   RDMA_HCA_QPC_SRA_MAX);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		be32p_replace_bits(&qpc->params1, attr->max_dest_rd_atomic,
				   RDMA_HCA_QPC_RRA_MAX);
	if (mask & IB_QP_MIN_RNR_TIMER)
		be32p_replace_bits(&qpc->rnr_nextrecvpsn, attr->min_rnr_timer,
				   RDMA_HCA_QPC_MIN_RNR_TIMER);
	if (mask & IB_QP_RQ_PSN)
		be32p_replace_bits(&qpc->rnr_nextrecvpsn, attr->rq_psn,
				   RDMA_HCA_QPC_PSN);
	if (mask & IB_QP_SQ_PSN) {
		be32p_replace_bits(&qpc->next_send_psn, attr->sq_psn,
				   RDMA_HCA_QPC_PSN);
		qpc->last_acked_psn = qpc->next_send_psn;
	}
}

static void rhca_put_qpc(struct rhca_dev *dev, struct rhca_qp *qp,
			 const struct ib_qp_attr *attr, int mask,
			 enum ib_qp_state from, enum ib_qp_state to,
			 struct rdma_hca_qpc *qpc)
{
	bool ud = rhca_is_datagram(qp);

	/* There the attribute's being named is its value. */
	if (!attr->en_sqd_async_notify)
		mask &= ~IB_QP_EN_SQD_ASYNC_NOTIFY;
	qpc->opt_param_mask = cpu_to_be32(mask);
	be32p_replace_bits(&qpc->flags, rhca_state_to_card(to),
			   RDMA_HCA_QPC_STATE);
	be32p_replace_bits(&qpc->flags, rhca_service(qp->ibqp.qp_type),
			   RDMA_HCA_QPC_SERVICE);
	qpc->local_qpn = cpu_to_be32(qp->qpn);
	if (from == IB_QPS_RESET)
		rhca_put_fixed(qp, qpc);
	if ((mask & IB_QP_PATH_MTU) || (ud && from == IB_QPS_RESET))
		rhca_put_mtu(dev, qp, attr, qpc);
	rhca_put_path(attr, mask, qpc);
	rhca_put_transport(attr, mask, qpc);
}

static int rhca_qp_transition(struct rhca_dev *dev, struct rhca_qp *qp,
			      const struct ib_qp_attr *attr, int mask,
			      enum ib_qp_state from, enum ib_qp_state to)
{
	u16 op = rhca_transition(from, to);
	struct rhca_mailbox box;
	int err;

	if (to == IB_QPS_RESET && from != IB_QPS_ERR)
		rhca_qp_return_taken(dev, qp);
	if (to == IB_QPS_RESET || to == IB_QPS_ERR)
		return rhca_cmd(dev, op, RDMA_HCA_MODIFY_NO_INBOX, qp->qpn, 0,
				0);

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	rhca_put_qpc(dev, qp, attr, mask, from, to, box.buf);
	err = rhca_cmd_in(dev, op, qp->qpn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

/* Alternate paths do not exist; a value that asks for none is welcome. */
static int rhca_check_modify(struct rhca_dev *dev,
			     const struct ib_qp_attr *attr, int mask)
{
	const struct rhca_caps *caps = &dev->caps;

	if ((mask & ~IB_QP_ATTR_STANDARD_BITS) || (mask & IB_QP_ALT_PATH))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PATH_MIG_STATE) &&
	    attr->path_mig_state != IB_MIG_MIGRATED)
		return -EINVAL;
	if ((mask & IB_QP_PORT) && attr->port_num != RHCA_PORT)
		return -EINVAL;
	if ((mask & IB_QP_AV) && !rhca_speaks_by(&attr->ah_attr))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index >= caps->num_pkeys)
		return -EINVAL;
	if ((mask & IB_QP_PATH_MTU) &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > caps->max_mtu))
		return -EINVAL;
	/* The card does not know what frames the interface may have. */
	if ((mask & IB_QP_PATH_MTU) && rhca_is_roce(dev) &&
	    attr->path_mtu > rhca_active_mtu(dev))
		return -EINVAL;
	if (((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	     attr->max_rd_atomic > caps->max_sra) ||
	    ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	     attr->max_dest_rd_atomic > caps->max_rra))
		return -EINVAL;
	if (((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7) ||
	    ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
	    ((mask & IB_QP_TIMEOUT) && attr->timeout > 31) ||
	    ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31))
		return -EINVAL;
	if ((mask & IB_QP_DEST_QPN) && (attr->dest_qp_num & ~RDMA_HCA_QPN_MASK))
		return -EINVAL;
	return 0;
}

static int rhca_read_qpc(struct rhca_dev *dev, struct rhca_qp *qp,
			 struct rhca_mailbox *box)
{
	return rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_QP, qp->qpn, box);
}

static enum ib_qp_state rhca_qpc_state(const struct rdma_hca_qpc *qpc)
{
	return rhca_state_from_card(
		be32_get_bits(qpc->flags, RDMA_HCA_QPC_STATE));
}

/* Who posts to a QP of the kernel goes by it, under the lock of a queue. */
static void rhca_qp_set_state(struct rhca_qp *qp, enum ib_qp_state state)
{
	if (qp->ibqp.uobject) {
		WRITE_ONCE(qp->state, state);
		return;
	}
	spin_lock_irq(&qp->sq.lock);
	spin_lock_nested(&qp->rq.lock, SINGLE_DEPTH_NESTING);
	WRITE_ONCE(qp->state, state);
	spin_unlock(&qp->rq.lock);
	spin_unlock_irq(&qp->sq.lock);
}

/* From RTR on, an error may have changed the state without the driver. */
static int rhca_refresh_state(struct rhca_dev *dev, struct rhca_qp *qp)
{
	struct rhca_mailbox box;
	int err;

	if (qp->state == IB_QPS_RESET || qp->state == IB_QPS_INIT)
		return 0;
	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_read_qpc(dev, qp, &box);
	if (!err)
		rhca_qp_set_state(qp, rhca_qpc_state(box.buf));
	rhca_mailbox_free(dev, &box);
	return err;
}

static int rhca_modify_locked(struct rhca_dev *dev, struct rhca_qp *qp,
			      const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from, to;
	int err;

	/* These need no more than that it is not RESET, nor memory to ask. */
	if (mask != IB_QP_STATE || (attr->qp_state != IB_QPS_ERR &&
				    attr->qp_state != IB_QPS_RESET)) {
		err = rhca_refresh_state(dev, qp);
		if (err)
			return err;
	}
	from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	if (from != qp->state ||
	    !ib_modify_qp_is_ok(from, to, qp->ibqp.qp_type, mask))
		return -EINVAL;
	if (from == IB_QPS_RESET && to == IB_QPS_RESET)
		return 0;
	err = rhca_qp_transition(dev, qp, attr, mask, from, to);
	if (err)
		return err;

	/* Events of the life that ends are not to be told in the next one. */
	if (to == IB_QPS_RESET)
		rhca_eq_catch_up(&dev->eq[0]);
	if (from == IB_QPS_RESET)
		WRITE_ONCE(qp->has_last_wqe, false);
	rhca_qp_set_state(qp, to);
	if (to == IB_QPS_RESET && !qp->ibqp.uobject) {
		rhca_qp_clean_cqs(qp);
		rhca_queues_reset(qp);
	}
	return 0;
}

int rhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_qp *qp = to_rhca_qp(ibqp);
	int err;

	err = rhca_take_no_request(udata);
	if (!err)
		err = rhca_check_modify(dev, attr, mask);
	if (err)
		return err;
	mutex_lock(&qp->lock);
	err = rhca_modify_locked(dev, qp, attr, mask);
	mutex_unlock(&qp->lock);
	return err;
}

/* --- query -------------------------------------------------------------- */

static void rhca_get_grh(const struct rdma_hca_qpc *qpc,
			 struct rdma_ah_attr *ah)
{
	union ib_gid dgid;

	memcpy(dgid.raw, qpc->rgid, sizeof(dgid.raw));
	rdma_ah_set_grh(ah, &dgid,
			be32_get_bits(qpc->sl_tclass_flowlabel,
				      RDMA_HCA_QPC_FLOW_LABEL),
			be32_get_bits(qpc->ackto_path, RDMA_HCA_QPC_SGID_INDEX),
			be32_get_bits(qpc->ackto_path, RDMA_HCA_QPC_HOP_LIMIT),
			be32_get_bits(qpc->sl_tclass_flowlabel,
				      RDMA_HCA_QPC_TCLASS));
}

static void rhca_get_dmac(const struct rdma_hca_qpc *qpc, u8 *dmac)
{
	__be16 low =
		cpu_to_be16(be32_get_bits(qpc->dlid_slid, RDMA_HCA_QPC_DLID));

	memcpy(dmac, &qpc->dmac_h, sizeof(qpc->dmac_h));
	memcpy(dmac + sizeof(qpc->dmac_h), &low, sizeof(low));
}

static void rhca_get_av(struct ib_device *ibdev, const struct rdma_hca_qpc *qpc,
			struct rdma_ah_attr *ah)
{
	ah->type = rdma_ah_find_type(ibdev, RHCA_PORT);
	rdma_ah_set_port_num(ah, RHCA_PORT);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		rhca_get_dmac(qpc, ah->roce.dmac);
	else
		rdma_ah_set_dlid(ah, be32_get_bits(qpc->dlid_slid,
						   RDMA_HCA_QPC_DLID));
	rdma_ah_set_sl(ah, be32_get_bits(qpc->sl_tclass_flowlabel,
					 RDMA_HCA_QPC_SL));
	rdma_ah_set_path_bits(ah, be32_get_bits(qpc->rnr_retry_path,
						RDMA_HCA_QPC_MLPATH));
	rdma_ah_set_static_rate(ah, be32_get_bits(qpc->ackto_path,
						  RDMA_HCA_QPC_STATIC_RATE));
	if (be32_get_bits(qpc->rnr_retry_path, RDMA_HCA_QPC_GRH))
		rhca_get_grh(qpc, ah);
}

static void rhca_get_path(const struct rdma_hca_qpc *qpc,
			  struct ib_qp_attr *attr)
{
	attr->path_mtu = be32_get_bits(qpc->mtu_msgmax_sz, RDMA_HCA_QPC_MTU);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->pkey_index =
		be32_get_bits(qpc->port_pkey, RDMA_HCA_QPC_PKEY_INDEX);
	attr->port_num = be32_get_bits(qpc->port_pkey, RDMA_HCA_QPC_PORT);
	attr->timeout =
		be32_get_bits(qpc->ackto_path, RDMA_HCA_QPC_ACK_TIMEOUT);
	attr->retry_cnt =
		be32_get_bits(qpc->rnr_retry_path, RDMA_HCA_QPC_RETRY_COUNT);
	attr->rnr_retry =
		be32_get_bits(qpc->rnr_retry_path, RDMA_HCA_QPC_RNR_RETRY);
}

static void rhca_get_transport(const struct rdma_hca_qpc *qpc,
			       struct ib_qp_attr *attr)
{
	attr->qkey = be32_to_cpu(qpc->qkey);
	attr->rq_psn = be32_get_bits(qpc->rnr_nextrecvpsn, RDMA_HCA_QPC_PSN);
	attr->sq_psn = be32_get_bits(qpc->next_send_psn, RDMA_HCA_QPC_PSN);
	attr->dest_qp_num = be32_get_bits(qpc->remote_qpn, RDMA_HCA_QPN_MASK);
	attr->qp_access_flags =
		be32_get_bits(qpc->params1, RDMA_HCA_QPC_ACCESS) |
		FIELD_PREP(RDMA_HCA_ACCESS_FLUSH,
			   be32_get_bits(qpc->params1, RDMA_HCA_QPC_FLUSH));
	attr->max_rd_atomic = be32_get_bits(qpc->params1, RDMA_HCA_QPC_SRA_MAX);
	attr->max_dest_rd_atomic =
		be32_get_bits(qpc->params1, RDMA_HCA_QPC_RRA_MAX);
	attr->min_rnr_timer =
		be32_get_bits(qpc->rnr_nextrecvpsn, RDMA_HCA_QPC_MIN_RNR_TIMER);
	attr->sq_draining = attr->qp_state == IB_QPS_SQD &&
			    be32_get_bits(qpc->flags, RDMA_HCA_QPC_SQ_DRAINING);
}

static void rhca_get_qpc(struct rhca_qp *qp, const struct rdma_hca_qpc *qpc,
			 struct ib_qp_attr *attr)
{
	rhca_get_path(qpc, attr);
	rhca_get_transport(qpc, attr);
	if (!rhca_is_datagram(qp))
		rhca_get_av(qp->ibqp.device, qpc, &attr->ah_attr);
}

static int rhca_query_locked(struct rhca_dev *dev, struct rhca_qp *qp,
			     struct ib_qp_attr *attr)
{
	struct rhca_mailbox box;
	int err;

	memset(attr, 0, sizeof(*attr));
	if (qp->state == IB_QPS_RESET) {
		attr->qp_state = IB_QPS_RESET;
		return 0;
	}
	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_read_qpc(dev, qp, &box);
	if (!err) {
		rhca_qp_set_state(qp, rhca_qpc_state(box.buf));
		attr->qp_state = qp->state;
		rhca_get_qpc(qp, box.buf, attr);
	}
	rhca_mailbox_free(dev, &box);
	return err;
}

int rhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr)
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	struct rhca_qp *qp = to_rhca_qp(ibqp);
	int err;

	mutex_lock(&qp->lock);
	err = rhca_query_locked(dev, qp, attr);
	mutex_unlock(&qp->lock);
	if (err)
		return err;

	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	memset(init_attr, 0, sizeof(*init_attr));
	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = qp->cap;
	init_attr->sq_sig_type = qp->sig_type;
	init_attr->qp_type = ibqp->qp_type;
	return 0;
}

/* --- events ------------------------------------------------------------- */

static enum ib_event_type rhca_event_type(u8 type)
{
	switch (type) {
	case RDMA_HCA_EVENT_PATH_MIG:
		return IB_EVENT_PATH_MIG;
	case RDMA_HCA_EVENT_PATH_MIG_FAILED:
		return IB_EVENT_PATH_MIG_ERR;
	case RDMA_HCA_EVENT_COMM_EST:
		return IB_EVENT_COMM_EST;
	case RDMA_HCA_EVENT_SQ_DRAINED:
		return IB_EVENT_SQ_DRAINED;
	case RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR:
		return IB_EVENT_QP_REQ_ERR;
	case RDMA_HCA_EVENT_WQ_ACCESS_ERROR:
		return IB_EVENT_QP_ACCESS_ERR;
	case RDMA_HCA_EVENT_LAST_WQE_REACHED:
		return IB_EVENT_QP_LAST_WQE_REACHED;
	default:
		return IB_EVENT_QP_FATAL;
	}
}

/* In the thread of EQ 0: rhca_destroy_qp() keeps the QP until it returns. */
void rhca_qp_event(struct rhca_dev *dev, u32 qpn, u8 type)
{
	struct rhca_qp *qp = xa_load(&dev->qps, qpn);

	if (!qp)
		return;
	/* Perhaps it was told already, when the card failed. */
	if (type == RDMA_HCA_EVENT_LAST_WQE_REACHED &&
	    xchg(&qp->has_last_wqe, true))
		return;
	if (rhca_event_type(type) == IB_EVENT_QP_FATAL)
		rhca_qp_broke(dev, &qp->ibqp);
	rhca_qp_tell(qp, rhca_event_type(type));
}
