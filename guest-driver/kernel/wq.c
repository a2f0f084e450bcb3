// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The two work queues of a QP, and that of an SRQ: their sizes, their memory,
 * and the regions that the card finds them by. What is posted to those of the kernel is in wr.c.
 */
#include "rdma_hca_user.h"

#include "qp.h"
#include "udata.h"

void rhca_wq_destroy(struct rhca_dev *dev, struct rhca_wq *wq)
{
	if (!wq->len)
		return;
	rhca_region_destroy(dev, &wq->region);
	rhca_buf_free(dev, &wq->buf);
	kvfree(wq->wc_opcode);
	kvfree(wq->wr_id);
	if (wq->umem)
		ib_umem_release(wq->umem);
}

/* --- of a process ------------------------------------------------------- */

/* @max_size: bytes of the largest WQE, @max_wr: what the caller asked for. */
static int rhca_check_wq(struct rhca_dev *dev, const struct rhca_wq *wq,
			 u64 addr, u32 max_size, u32 max_wr)
{
	u8 max_shift = order_base_2(max_size);

	if (!PAGE_ALIGNED(addr) ||
	    wq->shift < ilog2(RDMA_HCA_WQE_ALIGN) || wq->shift > max_shift ||
	    !IS_ALIGNED(wq->len, 1u << wq->shift))
		return -EINVAL;
	if (wq->len >> wq->shift < max_wr ||
	    wq->len >> wq->shift > 1u << dev->caps.log_max_wqes)
		return -EINVAL;
	return 0;
}

int rhca_wq_create_user(struct rhca_dev *dev, struct rhca_wq *wq, u32 pdn,
			u64 addr, u32 max_size, u32 max_wr)
{
	int err;

	if (!wq->len) {
		wq->shift = 0; /* of nothing: no provider says it well */
		return max_wr || addr ? -EINVAL : 0;
	}
	err = rhca_check_wq(dev, wq, addr, max_size, max_wr);
	if (err)
		return err;
	wq->entries = wq->len >> wq->shift;
	wq->umem = ib_umem_get_va(&dev->ibdev, addr, wq->len, 0);
	if (IS_ERR(wq->umem))
		return PTR_ERR(wq->umem);
	err = rhca_region_create_umem(dev, &wq->region, pdn, 0, wq->umem);
	if (err)
		ib_umem_release(wq->umem);
	return err;
}

static int rhca_read_create_req(struct ib_udata *udata,
				struct rdma_hca_create_qp_req *req)
{
	return rhca_take_request(udata, req, sizeof(*req)) ?:
	       rhca_check_request(req->comp_mask, req->reserved);
}

int rhca_queues_create_user(struct rhca_dev *dev, struct rhca_qp *qp,
			    struct rhca_ucontext *ctx, struct ib_udata *udata)
{
	struct rdma_hca_create_qp_req req;
	int err;

	err = rhca_read_create_req(udata, &req);
	if (err)
		return err;
	qp->uar = ctx->uar;
	qp->sq.len = req.sq_len;
	qp->sq.shift = req.sq_entry_sz_log;
	qp->rq.len = req.rq_len;
	qp->rq.shift = req.rq_entry_sz_log;

	err = rhca_wq_create_user(dev, &qp->sq, qp->pdn, req.sq_addr,
				  dev->caps.max_send_wqe_size,
				  qp->cap.max_send_wr);
	if (err)
		return err;
	err = rhca_wq_create_user(dev, &qp->rq, qp->pdn, req.rq_addr,
				  dev->caps.max_recv_wqe_size,
				  qp->cap.max_recv_wr);
	if (err)
		goto sq;
	if (qp->rq.len)
		err = rhca_db_map_user(ctx, req.rq_db_addr, &qp->rq_db);
	else if (req.rq_db_addr)
		err = -EINVAL;
	if (err)
		goto rq;
	return 0;

rq:
	rhca_wq_destroy(dev, &qp->rq);
sq:
	rhca_wq_destroy(dev, &qp->sq);
	return err;
}

/* --- of the kernel ------------------------------------------------------ */

/* @max_size: bytes of the largest WQE. */
static int rhca_wq_size(struct rhca_wq *wq, u32 wqe_size, u32 max_size,
			u32 wrs)
{
	if (!wrs)
		return 0;
	if (wqe_size > max_size)
		return -EINVAL;
	wq->shift = max_t(u8, order_base_2(wqe_size),
			  ilog2(RDMA_HCA_WQE_ALIGN));
	wq->entries = roundup_pow_of_two(wrs);
	wq->len = wq->entries << wq->shift;
	return 0;
}

int rhca_wq_size_recv(struct rhca_dev *dev, struct rhca_wq *wq, u32 sges,
		      u32 wrs)
{
	/* The unit that ends a receive WQE counts too. */
	u32 size = sizeof(struct rdma_hca_next_unit) +
		   (sges + 1) * sizeof(struct rdma_hca_data_unit);

	return rhca_wq_size(wq, size, dev->caps.max_recv_wqe_size, wrs);
}

static int rhca_size_queues(struct rhca_dev *dev, struct rhca_qp *qp)
{
	const struct ib_qp_cap *cap = &qp->cap;
	u32 inl = ALIGN(sizeof(__le32) + cap->max_inline_data,
			RDMA_HCA_WQE_UNIT);
	u32 sges = cap->max_send_sge * sizeof(struct rdma_hca_data_unit);
	u32 data = max(sges, cap->max_inline_data ? inl : 0);
	u32 head = rhca_is_datagram(qp) ?
			   sizeof(struct rdma_hca_ud_unit) :
			   sizeof(struct rdma_hca_raddr_unit) +
				   sizeof(struct rdma_hca_atomic_unit);
	u32 send = sizeof(struct rdma_hca_next_unit) + head + data;
	int err;

	err = rhca_wq_size(&qp->sq, send, dev->caps.max_send_wqe_size,
			   cap->max_send_wr);
	return err ?: rhca_wq_size_recv(dev, &qp->rq, cap->max_recv_sge,
					cap->max_recv_wr);
}

int rhca_wq_create_kernel(struct rhca_dev *dev, struct rhca_wq *wq, u32 pdn)
{
	int err;

	spin_lock_init(&wq->lock);
	if (!wq->len)
		return 0;
	wq->wr_id = kvcalloc(wq->entries, sizeof(*wq->wr_id), GFP_KERNEL);
	wq->wc_opcode = kvcalloc(wq->entries, sizeof(*wq->wc_opcode),
				 GFP_KERNEL);
	err = -ENOMEM;
	if (!wq->wr_id || !wq->wc_opcode)
		goto arrays;
	err = rhca_buf_alloc(dev, &wq->buf, wq->len);
	if (err)
		goto arrays;
	err = rhca_region_create_buf(dev, &wq->region, pdn, 0, &wq->buf);
	if (err)
		goto buf;
	return 0;

buf:
	rhca_buf_free(dev, &wq->buf);
arrays:
	kvfree(wq->wc_opcode);
	kvfree(wq->wr_id);
	return err;
}

static void rhca_wq_reset(struct rhca_wq *wq)
{
	if (!wq->len)
		return;
	rhca_buf_clear(&wq->buf);
	wq->head = 0;
	wq->tail = 0;
}

void rhca_queues_reset(struct rhca_qp *qp)
{
	rhca_wq_reset(&qp->sq);
	rhca_wq_reset(&qp->rq);
	if (qp->rq.len)
		WRITE_ONCE(*qp->rq_db.va, 0);
}

int rhca_queues_create_kernel(struct rhca_dev *dev, struct rhca_qp *qp)
{
	int err;

	qp->uar = RDMA_HCA_UAR_KERNEL;
	err = rhca_size_queues(dev, qp);
	if (err)
		return err;
	err = rhca_wq_create_kernel(dev, &qp->sq, qp->pdn);
	if (err)
		return err;
	err = rhca_wq_create_kernel(dev, &qp->rq, qp->pdn);
	if (err)
		goto sq;
	err = qp->rq.len ? rhca_db_alloc(dev, &qp->rq_db) : 0;
	if (err)
		goto rq;
	rhca_queues_reset(qp);
	return 0;

rq:
	rhca_wq_destroy(dev, &qp->rq);
sq:
	rhca_wq_destroy(dev, &qp->sq);
	return err;
}

/* --- of both ------------------------------------------------------------ */

void rhca_queues_destroy(struct rhca_dev *dev, struct rhca_qp *qp,
			 struct rhca_ucontext *ctx)
{
	if (qp->rq.len)
		rhca_db_free(dev, ctx, &qp->rq_db);
	rhca_wq_destroy(dev, &qp->rq);
	rhca_wq_destroy(dev, &qp->sq);
}
