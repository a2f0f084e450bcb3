// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_post_recv() and ibv_post_srq_recv(). */
#include "wqe.h"

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
