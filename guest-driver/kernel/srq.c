// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: their life, their limit, and what the card tells of
 * them. The queue is one as a QP has it (wq.c).
 */
#include "rdma_hca_user.h"

#include "cq.h"
#include "eq.h"
#include "srq.h"
#include "udata.h"

static bool rhca_srq_is_xrc(const struct rhca_srq *srq)
{
	return srq->ibsrq.srq_type == IB_SRQT_XRC;
}

/* --- what the card has of it -------------------------------------------- */

static int rhca_sw2hw_srq(struct rhca_dev *dev, struct rhca_srq *srq)
{
	struct ib_srq *ibsrq = &srq->ibsrq;
	struct rdma_hca_srqc *srqc;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	srqc = box.buf;
	be32p_replace_bits(&srqc->flags, srq->wq.shift,
			   RDMA_HCA_SRQC_ENTRY_SZ);
	srqc->len = cpu_to_be32(srq->wq.len);
	srqc->pd = cpu_to_be32(to_rhca_pd(ibsrq->pd)->pdn);
	srqc->lkey = cpu_to_be32(srq->wq.region.key);
	rhca_put64(&srqc->db_h, &srqc->db_l, srq->db.dma);
	if (rhca_srq_is_xrc(srq)) {
		be32p_replace_bits(&srqc->flags, 1, RDMA_HCA_SRQC_XRC);
		srqc->cqn = cpu_to_be32(to_rhca_cq(ibsrq->ext.cq)->cqn);
		srqc->xrcd = cpu_to_be32(
			to_rhca_xrcd(ibsrq->ext.xrc.xrcd)->xrcdn);
	}
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SW2HW_SRQ, srq->srqn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

static void rhca_hw2sw_srq(struct rhca_dev *dev, struct rhca_srq *srq)
{
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_HW2SW_SRQ, 0, srq->srqn, 0);
}

/* --- its queue ---------------------------------------------------------- */

static int rhca_srq_queue_user(struct rhca_dev *dev, struct rhca_srq *srq,
			       const struct ib_srq_attr *attr,
			       struct rhca_ucontext *ctx,
			       struct ib_udata *udata)
{
	struct rdma_hca_create_srq_req req;
	int err;

	err = rhca_take_request(udata, &req, sizeof(req)) ?:
	      rhca_check_request(req.comp_mask, req.reserved);
	if (err)
		return err;
	if (!req.len || req.entry_sz_log >= BITS_PER_TYPE(req.len) ||
	    req.len >> req.entry_sz_log > 1u << dev->caps.log_max_srq_wqes)
		return -EINVAL;
	srq->wq.len = req.len;
	srq->wq.shift = req.entry_sz_log;
	err = rhca_wq_create_user(dev, &srq->wq, to_rhca_pd(srq->ibsrq.pd)->pdn,
				  req.buf_addr, dev->caps.max_recv_wqe_size,
				  attr->max_wr);
	if (err)
		return err;
	err = rhca_db_map_user(ctx, req.db_addr, &srq->db);
	if (err)
		rhca_wq_destroy(dev, &srq->wq);
	return err;
}

static int rhca_srq_queue_kernel(struct rhca_dev *dev, struct rhca_srq *srq,
				 const struct ib_srq_attr *attr)
{
	int err;

	err = rhca_wq_size_recv(dev, &srq->wq, attr->max_sge, attr->max_wr);
	if (err)
		return err;
	err = rhca_wq_create_kernel(dev, &srq->wq,
				    to_rhca_pd(srq->ibsrq.pd)->pdn);
	if (err)
		return err;
	rhca_buf_clear(&srq->wq.buf);
	err = rhca_tags_init(&srq->tags, srq->wq.entries);
	if (err)
		goto queue;
	err = rhca_db_alloc(dev, &srq->db);
	if (err)
		goto tags;
	return 0;

tags:
	rhca_tags_cleanup(&srq->tags);
queue:
	rhca_wq_destroy(dev, &srq->wq);
	return err;
}

static void rhca_srq_free_queue(struct rhca_dev *dev, struct rhca_srq *srq,
				struct rhca_ucontext *ctx)
{
	rhca_db_free(dev, ctx, &srq->db);
	rhca_tags_cleanup(&srq->tags);
	rhca_wq_destroy(dev, &srq->wq);
}

/* --- create and destroy ------------------------------------------------- */

static int rhca_check_srq_init(struct rhca_dev *dev,
			       const struct ib_srq_init_attr *attr)
{
	const struct rhca_caps *caps = &dev->caps;

	switch (attr->srq_type) {
	case IB_SRQT_BASIC:
		break;
	case IB_SRQT_XRC:
		if (rhca_has_xrc(dev))
			break;
		fallthrough;
	default:
		return -EOPNOTSUPP;
	}
	if (attr->attr.max_wr > 1u << caps->log_max_srq_wqes ||
	    attr->attr.max_sge > caps->max_srq_sge)
		return -EINVAL;
	return 0;
}

static int rhca_srq_respond(struct rhca_srq *srq, struct ib_udata *udata)
{
	struct rdma_hca_create_srq_resp resp = { .srqn = srq->srqn };

	if (!udata)
		return 0;
	return rhca_respond(udata, &resp, sizeof(resp));
}

/* No handler finds @srq any more, nor is one using it. */
static void rhca_srq_hide(struct rhca_dev *dev, struct rhca_srq *srq)
{
	xa_erase(&dev->srqs, srq->srqn);
	rhca_eq_synchronize(&dev->eq[0]);
}

static int rhca_srq_create(struct rhca_dev *dev, struct rhca_srq *srq,
			   const struct ib_srq_attr *attr,
			   struct ib_udata *udata)
{
	struct rhca_ucontext *ctx = rhca_udata_ucontext(udata);
	int err;

	err = rhca_bitmap_alloc(&dev->srq_map, &srq->srqn, NULL);
	if (err)
		return err;
	err = rhca_icm_get(dev, &dev->srqc_table, srq->srqn, 1);
	if (err)
		goto number;
	err = ctx ? rhca_srq_queue_user(dev, srq, attr, ctx, udata) :
		    rhca_srq_queue_kernel(dev, srq, attr);
	if (err)
		goto number;
	err = xa_err(xa_store(&dev->srqs, srq->srqn, srq, GFP_KERNEL));
	if (err)
		goto queue;
	err = rhca_sw2hw_srq(dev, srq);
	if (err)
		goto hide;
	err = rhca_srq_respond(srq, udata);
	if (err)
		goto hw2sw;
	return 0;

hw2sw:
	rhca_hw2sw_srq(dev, srq);
hide:
	rhca_srq_hide(dev, srq);
queue:
	rhca_srq_free_queue(dev, srq, ctx);
number:
	rhca_bitmap_free(&dev->srq_map, srq->srqn, 1);
	return err;
}

int rhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init_attr,
		    struct ib_udata *udata)
{
	struct ib_srq_attr *attr = &init_attr->attr;
	struct rhca_dev *dev = to_rhca(ibsrq->device);
	struct rhca_srq *srq = to_rhca_srq(ibsrq);
	int err;

	err = rhca_check_srq_init(dev, init_attr);
	if (err)
		return err;
	spin_lock_init(&srq->wq.lock);
	mutex_init(&srq->resize_lock);
	attr->max_wr = max_t(u32, attr->max_wr, 1);
	err = rhca_srq_create(dev, srq, attr, udata);
	if (err)
		return err;
	srq->max_sge = attr->max_sge;
	attr->max_wr = srq->wq.entries;
	if (rhca_srq_is_xrc(srq))
		ibsrq->ext.xrc.srq_num = srq->srqn;
	return 0;
}

int rhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibsrq->device);
	struct rhca_srq *srq = to_rhca_srq(ibsrq);

	rhca_hw2sw_srq(dev, srq);
	/* Any other has had no QPs for some time, and so no completions. */
	if (rhca_srq_is_xrc(srq) && !ibsrq->uobject)
		rhca_cq_clean_srq(to_rhca_cq(ibsrq->ext.cq), srq->srqn);
	rhca_srq_hide(dev, srq);
	rhca_srq_free_queue(dev, srq, rhca_udata_ucontext(udata));
	rhca_bitmap_free(&dev->srq_map, srq->srqn, 1);
	return 0;
}

/* --- size and limit ----------------------------------------------------- */

static int rhca_cmd_resize_srq(struct rhca_dev *dev, struct rhca_srq *srq,
			       const struct rhca_wq *wq)
{
	struct rdma_hca_resize_srq *resize;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	resize = box.buf;
	resize->len = cpu_to_be32(wq->len);
	resize->lkey = cpu_to_be32(wq->region.key);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_RESIZE_SRQ, srq->srqn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

/* A new ring of a process, mapped; @wq has the size of its slots. */
static int rhca_srq_map_ring(struct rhca_dev *dev, struct rhca_srq *srq,
			     u32 max_wr, struct ib_udata *udata,
			     struct rhca_wq *wq)
{
	struct rdma_hca_modify_srq_req req;
	int err;

	err = rhca_take_request(udata, &req, sizeof(req)) ?:
	      rhca_check_request(req.comp_mask, 0);
	if (err)
		return err;
	if (!is_power_of_2(req.len >> wq->shift) ||
	    req.len >> wq->shift > 1u << dev->caps.log_max_srq_wqes)
		return -EINVAL;
	wq->len = req.len;
	return rhca_wq_create_user(dev, wq, to_rhca_pd(srq->ibsrq.pd)->pdn,
				   req.buf_addr, dev->caps.max_recv_wqe_size,
				   max_wr);
}

/*
 * The card goes on in another ring of the process. The provider, which holds
 * the SRQ's lock, has copied there what is posted.
 */
static int rhca_resize_srq(struct rhca_dev *dev, struct rhca_srq *srq,
			   u32 max_wr, struct ib_udata *udata)
{
	struct rhca_wq wq = { .shift = srq->wq.shift };
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	err = rhca_srq_map_ring(dev, srq, max_wr, udata, &wq);
	if (err)
		return err;
	/* Which ring is the old one is settled before anybody else resizes. */
	mutex_lock(&srq->resize_lock);
	err = rhca_cmd_resize_srq(dev, srq, &wq);
	if (!err) {
		swap(srq->wq.umem, wq.umem);
		swap(srq->wq.region, wq.region);
		swap(srq->wq.len, wq.len);
		WRITE_ONCE(srq->wq.entries, srq->wq.len >> srq->wq.shift);
	}
	mutex_unlock(&srq->resize_lock);
	rhca_wq_destroy(dev, &wq);
	return err;
}

int rhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibsrq->device);
	struct rhca_srq *srq = to_rhca_srq(ibsrq);
	bool resizes = mask & IB_SRQ_MAX_WR;
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if ((mask & IB_SRQ_LIMIT) && attr->srq_limit >
	    (resizes ? attr->max_wr : READ_ONCE(srq->wq.entries)))
		return -EINVAL;
	err = resizes ? rhca_resize_srq(dev, srq, attr->max_wr, udata) :
			rhca_take_no_request(udata);
	if (err || !(mask & IB_SRQ_LIMIT))
		return err;
	err = rhca_cmd(dev, RDMA_HCA_CMD_ARM_SRQ, 0, srq->srqn,
		       attr->srq_limit, 0);
	/*
	 * The card and the caller use the new ring by now, which a failure must not
	 * take back. Only an SRQ or a card that has failed refuses, and tells of it.
	 */
	return resizes ? 0 : err;
}

int rhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct rhca_dev *dev = to_rhca(ibsrq->device);
	struct rhca_srq *srq = to_rhca_srq(ibsrq);
	const struct rdma_hca_srqc *srqc;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_SRQ, srq->srqn, &box);
	if (!err) {
		srqc = box.buf;
		attr->max_wr = srq->wq.entries;
		attr->max_sge = srq->max_sge;
		attr->srq_limit = be32_get_bits(srqc->limit_wqes,
						RDMA_HCA_SRQC_LIMIT);
	}
	rhca_mailbox_free(dev, &box);
	return err;
}

/* --- events ------------------------------------------------------------- */

/* In the thread of EQ 0: rhca_srq_hide() keeps the SRQ until it returns. */
void rhca_srq_event(struct rhca_dev *dev, u32 srqn, u8 type)
{
	struct rhca_srq *srq = xa_load(&dev->srqs, srqn);
	struct ib_event event = {
		.event = type == RDMA_HCA_EVENT_SRQ_LIMIT ?
				 IB_EVENT_SRQ_LIMIT_REACHED : IB_EVENT_SRQ_ERR,
	};

	if (!srq || !srq->ibsrq.event_handler)
		return;
	event.device = srq->ibsrq.device;
	event.element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}
