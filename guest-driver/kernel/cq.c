// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues (interface document 3.2.5). A process's ring lies in its
 * own memory; the kernel's is read in poll.c.
 */
#include "rdma_hca_user.h"

#include "cq.h"
#include "eq.h"
#include "srq.h"
#include "udata.h"

static int rhca_sw2hw_cq(struct rhca_dev *dev, struct rhca_cq *cq, u32 uar)
{
	struct rhca_mailbox box;
	struct rdma_hca_cqc *cqc;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	cqc = box.buf;
	be32p_replace_bits(&cqc->flags, RDMA_HCA_CQ_STATUS_OK,
			   RDMA_HCA_CQC_STATUS);
	be32p_replace_bits(&cqc->flags, 1, RDMA_HCA_CQC_TR);
	be32p_replace_bits(&cqc->flags, RDMA_HCA_CQ_STATE_DISARMED,
			   RDMA_HCA_CQC_STATE);
	be32p_replace_bits(&cqc->flags, cq->ignore_overrun,
			   RDMA_HCA_CQC_IGNORE_OVERRUN);
	be32p_replace_bits(&cqc->logsize_usrpage, ilog2(cq->entries),
			   RDMA_HCA_CQC_LOGSIZE);
	be32p_replace_bits(&cqc->logsize_usrpage, uar, RDMA_HCA_CQC_UAR);
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
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_HW2SW_CQ, 0, cq->cqn, 0);
}

static void rhca_cq_fill(struct rhca_cq *cq)
{
	u32 i;

	for (i = 0; i < cq->entries; i++)
		rhca_cqe_give_back(rhca_cqe(cq, i));
}

static int rhca_cq_ring_kernel(struct rhca_dev *dev, struct rhca_cq *cq)
{
	int err;

	err = rhca_buf_alloc(dev, &cq->buf,
			     (size_t)cq->entries * RDMA_HCA_CQE_SIZE);
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

/* Register a process's ring of CQEs. @umem, or an error, is taken. */
static int rhca_cq_map_user(struct rhca_dev *dev, struct ib_umem *umem,
			    struct rhca_region *region)
{
	int err = -EINVAL;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	if (!ib_umem_offset(umem))
		err = rhca_region_create_umem(dev, region, dev->pdn,
					      RDMA_HCA_ACCESS_LOCAL_WRITE,
					      umem);
	if (err)
		ib_umem_release(umem);
	return err;
}

static int rhca_cq_ring_user(struct rhca_dev *dev, struct rhca_cq *cq,
			     struct rhca_ucontext *ctx, struct rhca_cq_arg *arg)
{
	struct rdma_hca_create_cq_req req;
	int err;

	err = rhca_take_request(rhca_cq_udata(arg), &req, sizeof(req)) ?:
	      rhca_check_request(req.comp_mask, req.reserved);
	if (err)
		return err;
	cq->umem = rhca_umem_get_cq(&dev->ibdev, arg, req.buf_addr,
				    cq->entries * RDMA_HCA_CQE_SIZE);
	err = rhca_cq_map_user(dev, cq->umem, &cq->region);
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
	return rhca_respond(udata, &resp, sizeof(resp));
}

/* No handler finds @cq any more, nor is one using it. */
static void rhca_cq_hide(struct rhca_dev *dev, struct rhca_cq *cq)
{
	xa_erase(&dev->cqs, cq->cqn);
	rhca_eq_synchronize(cq->eq);
	rhca_eq_synchronize(&dev->eq[0]);
}

/*
 * No poll of the core's is queued, nor is one still using @cq. The core has
 * made sure of less: a late event of a QP that is gone may have queued its work
 * since then, and irq_poll_disable() does not wait for the end of a softirq,
 * which asks for the next event there. To RCU a softirq is a reader.
 */
static void rhca_cq_end_polls(struct rhca_cq *cq)
{
	switch (cq->ibcq.poll_ctx) {
	case IB_POLL_WORKQUEUE:
	case IB_POLL_UNBOUND_WORKQUEUE:
		cancel_work_sync(&cq->ibcq.work);
		break;
	case IB_POLL_SOFTIRQ:
		synchronize_rcu();
		break;
	default:
		break;
	}
}

static int rhca_cq_create(struct rhca_dev *dev, struct rhca_cq *cq,
			  struct rhca_cq_arg *arg)
{
	struct ib_udata *udata = rhca_cq_udata(arg);
	struct rhca_ucontext *ctx = rhca_udata_ucontext(udata);
	int err;

	err = rhca_bitmap_alloc(&dev->cq_map, &cq->cqn, NULL);
	if (err)
		return err;
	err = rhca_icm_get(dev, &dev->cqc_table, cq->cqn, 1);
	if (err)
		goto number;
	err = ctx ? rhca_cq_ring_user(dev, cq, ctx, arg) :
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

/* Flags that a CQ can have; completions have their time in any case. */
static u32 rhca_cq_flags(const struct rhca_dev *dev)
{
	u32 flags = IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;

	if (dev->caps.clock_khz)
		flags |= IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	return flags;
}

int rhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct rhca_cq_arg *arg)
{
	struct rhca_dev *dev = to_rhca(ibcq->device);
	struct rhca_cq *cq = to_rhca_cq(ibcq);
	int err;

	if (attr->flags & ~rhca_cq_flags(dev))
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > 1u << dev->caps.log_max_cqes)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	mutex_init(&cq->resize_lock);
	cq->entries = roundup_pow_of_two(attr->cqe);
	cq->ignore_overrun = attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	cq->eq = rhca_eq_of_vector(dev, attr->comp_vector);
	err = rhca_cq_create(dev, cq, arg);
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
	if (!ibcq->uobject)
		rhca_cq_end_polls(cq);
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
	be32p_replace_bits(&resize->logsize, ilog2(entries),
			   RDMA_HCA_RESIZE_CQ_LOGSIZE);
	resize->lkey = cpu_to_be32(lkey);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_RESIZE_CQ, cq->cqn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

/*
 * A new ring for a process's CQ: the card goes on in it where it is. The
 * provider, which holds the CQ's lock, moves the entries that are there.
 */
int rhca_resize_cq(struct ib_cq *ibcq, rhca_cqe_arg cqe, struct ib_udata *udata)
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
	if (cqe < 1 || cqe > 1 << dev->caps.log_max_cqes)
		return -EINVAL;
	err = rhca_take_request(udata, &req, sizeof(req)) ?:
	      rhca_check_request(req.comp_mask, req.reserved);
	if (err)
		return err;
	entries = roundup_pow_of_two(cqe);
	umem = ib_umem_get_va(&dev->ibdev, req.buf_addr,
			      entries * RDMA_HCA_CQE_SIZE,
			      IB_ACCESS_LOCAL_WRITE);
	err = rhca_cq_map_user(dev, umem, &region);
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

int rhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	u64 moderation = FIELD_PREP(RDMA_HCA_MODERATION_COUNT, count) |
			 FIELD_PREP(RDMA_HCA_MODERATION_PERIOD, period);

	return rhca_cmd(to_rhca(ibcq->device), RDMA_HCA_CMD_MODIFY_CQ, 0,
			to_rhca_cq(ibcq)->cqn, moderation, 0);
}

/* In a handler: rhca_cq_hide() keeps the CQ until it returns. */
void rhca_cq_completion(struct rhca_dev *dev, u32 cqn)
{
	struct rhca_cq *cq = xa_load(&dev->cqs, cqn);

	if (!cq) {
		dev_dbg(&dev->pdev->dev, "completion for no CQ, %#x\n", cqn);
		return;
	}
	/* Users in the kernel hear of it by rhca_flush_kernel(), not twice. */
	if (!cq->ibcq.uobject && rhca_failed(dev))
		return;
	WRITE_ONCE(cq->armed, false);
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

void rhca_cq_error(struct rhca_dev *dev, u32 cqn, u32 syndrome)
{
	struct rhca_cq *cq = xa_load(&dev->cqs, cqn);
	struct ib_event event = { .event = IB_EVENT_CQ_ERR };

	dev_warn_ratelimited(&dev->pdev->dev, "CQ %#x %s\n", cqn,
			     syndrome == RDMA_HCA_CQ_ERROR_OVERRUN ?
				     "overrun" : "access violation");
	if (!cq)
		return;
	WRITE_ONCE(cq->failed, true);
	/* Its users wait for what will never be in it, and few ask to be told. */
	if (!cq->ibcq.uobject && syndrome != RDMA_HCA_CQ_ERROR_OVERRUN)
		rhca_fail(dev, "it could not write a completion queue");
	if (!cq->ibcq.event_handler)
		return;
	event.device = cq->ibcq.device;
	event.element.cq = &cq->ibcq;
	cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* What is to be removed: of a QP, or of an XRC SRQ. */
struct rhca_cq_filter {
	bool of_srq;
	u32 number;
	struct rhca_srq *srq;	/* of the QP */
};

static bool rhca_cq_matches(const struct rdma_hca_cqe *cqe,
			    const struct rhca_cq_filter *filter)
{
	if (filter->of_srq)
		return rhca_cqe_is_xrc(cqe) &&
		       rhca_cqe_srqn(cqe) == filter->number;
	return rhca_cqe_qpn(cqe) == filter->number;
}

static void rhca_cqe_drop(const struct rdma_hca_cqe *cqe,
			  const struct rhca_cq_filter *filter)
{
	if (filter->srq && !rhca_cqe_is_send(cqe))
		rhca_srq_retire(filter->srq, cqe, NULL);
}

/*
 * The entries that stay move towards the producer, into the place of those
 * that go. The QP is in RESET, or the SRQ gone: the card adds no more of it.
 */
static void rhca_cq_remove(struct rhca_cq *cq,
			   const struct rhca_cq_filter *filter)
{
	unsigned long flags;
	u32 producer, at, gone = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (producer = cq->ci; producer - cq->ci < cq->entries; producer++)
		if (rhca_cqe_is_hw(rhca_cqe(cq, producer)))
			break;
	dma_rmb();
	for (at = producer; at != cq->ci; at--) {
		struct rdma_hca_cqe *cqe = rhca_cqe(cq, at - 1);

		if (rhca_cq_matches(cqe, filter)) {
			rhca_cqe_drop(cqe, filter);
			gone++;
		} else if (gone) {
			*rhca_cqe(cq, at - 1 + gone) = *cqe;
		}
	}
	for (; gone; gone--)
		rhca_cqe_give_back(rhca_cqe(cq, cq->ci++));
	rhca_cq_update_ci(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
}

void rhca_cq_clean(struct rhca_cq *cq, u32 qpn, struct rhca_srq *srq)
{
	struct rhca_cq_filter filter = { .number = qpn, .srq = srq };

	rhca_cq_remove(cq, &filter);
}

void rhca_cq_clean_srq(struct rhca_cq *cq, u32 srqn)
{
	struct rhca_cq_filter filter = { .of_srq = true, .number = srqn };

	rhca_cq_remove(cq, &filter);
}
