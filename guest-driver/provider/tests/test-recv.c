// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posting receives, to a QP or to an SRQ. */
#include <string.h>

#include <util/util.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

static void check_recv_wqe(const struct rdma_hca_next_unit *wqe,
			   const struct ibv_recv_wr *wr)
{
	static const struct rdma_hca_data_unit zero;
	const struct rdma_hca_data_unit *unit = (void *)(wqe + 1);
	int i;

	CHECK(FIELD_GET(RDMA_HCA_NEXT_NDS, le32toh(wqe->nee_nds)));
	for (i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length)
			check_data(unit++, wr->sg_list[i].addr,
				   wr->sg_list[i].length, wr->sg_list[i].lkey);
	CHECK(!memcmp(unit, &zero, sizeof(zero)));
}

static int post_recv(struct rhca_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	return qp->srq ? rhca_post_srq_recv(&qp->srq->vsrq.srq, wr, bad) :
			 rhca_post_recv(&qp->vqp.qp, wr, bad);
}

/* The message that ends receive @index. */
static struct rdma_hca_cqe recv_cqe(struct rhca_qp *qp, uint32_t index)
{
	return qp->srq ? make_srq_cqe(qp, tag_of(qp->srq, index)) :
			 make_cqe(qp, false, index, 0x04);
}

/*
 * Laps around a queue of 32768 receives of 30 entries: one can post until it
 * is full, in slots one behind the other; then whenever one has ended.
 */
static void check_laps(struct rhca_cq *cq, struct rhca_qp *qp)
{
	struct rhca_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
	__le32 *db = qp->srq ? qp->srq->db : qp->rq_db;
	struct ibv_sge sge[31];
	struct ibv_recv_wr wr = { .sg_list = sge };
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < 31; i++)
		sge[i] = (struct ibv_sge){ 0x1000 + i, i % 5, i };
	for (i = 0; i < 70000; i++) {
		wr.wr_id = i;
		wr.num_sge = i % 31;
		CHECK_EQ(post_recv(qp, &wr, &bad), 0);
		CHECK_EQ(le32toh(*db), (i + 1) & 0xffff);
		check_recv_wqe(rhca_wq_slot(wq, i), &wr);
		if (i < 32767)
			continue;
		CHECK_EQ(post_recv(qp, &wr, &bad), ENOMEM);
		produce(cq, i - 32767, recv_cqe(qp, i - 32767));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.wr_id, i - 32767);
		CHECK_EQ(wc.qp_num, qp->vqp.qp.qp_num);
	}
	wr.num_sge = 31;
	CHECK_EQ(post_recv(qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	CHECK_EQ(post_recv(qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
}

void test_recv(void)
{
	struct ibv_qp_cap cap = { .max_recv_wr = 32768, .max_recv_sge = 30 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_recv_wr wr = {}, *bad;

	check_laps(cq, qp);
	rhca_destroy_qp(&qp->vqp.qp);

	cap = (struct ibv_qp_cap){ .max_send_wr = 1 };
	qp = new_qp(cq, IBV_QPT_RC, &cap);
	CHECK_EQ(kernel.qp_req.rq_addr, 0);
	CHECK_EQ(kernel.qp_req.rq_len, 0);
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), ENOMEM);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* All entries of an SRQ can be posted, each with a tag. */
void test_srq_recv(void)
{
	struct rhca_srq *srq = new_srq(32768, 30);
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_srq_qp(cq, srq);
	struct ibv_sge sge = { 0x1000, RDMA_HCA_MAX_BYTE_CNT + 1, 0 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	check_laps(cq, qp);
	CHECK_EQ(rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad), EINVAL);
	/* What failed has taken nothing. */
	CHECK_EQ(post_srq(srq, 0), 0);
	CHECK_EQ(post_srq(srq, 0), ENOMEM);
	/* The QP has no queue of its own. */
	wr.num_sge = 0;
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}
