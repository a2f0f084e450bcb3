// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_post_send(): the WQEs and the doorbell that the card is given. */
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-objects.h"

static void check_chain(struct rhca_qp *qp, const struct ibv_sge *sge,
			const char *text)
{
	struct seen wqe = first_wqe(qp);
	const __le32 *inl;

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND);
	CHECK_EQ(wqe.units, 2);
	CHECK(!wqe.fence);
	CHECK_EQ(le32toh(wqe.next->flags),
		 RDMA_HCA_WQE_CQ_UPDATE | RDMA_HCA_WQE_SOLICITED);
	check_data((void *)(wqe.next + 1), sge[0].addr, 100, 0xabc);

	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_RDMA_WRITE_IMM);
	CHECK_EQ(wqe.units, 4);
	CHECK_EQ(wqe.next->flags, 0);
	CHECK_EQ(wqe.next->imm_data, htobe32(0x01020304));
	check_raddr((void *)(wqe.next + 1), 0xa1a2a3a4a5a6a7a8, 0xbeef);
	inl = (void *)(wqe.next + 2);
	CHECK_EQ(le32toh(*inl), RDMA_HCA_INLINE | 17);
	CHECK(!memcmp(inl + 1, text, 17));

	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_RDMA_READ);
	CHECK_EQ(wqe.units, 3);
	CHECK(wqe.fence);
	CHECK_EQ(wqe.next->nee_nds, 0);
}

/* Three operations in one call: one doorbell, two links, one end. */
void test_chain(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	char text[] = "seventeen bytes..";
	struct ibv_sge sge[] = {
		{ .addr = 0x1122334455667788, .length = 100, .lkey = 0xabc },
		{ .addr = 0x99, .length = 0, .lkey = 0xdef },
		{ .addr = (uintptr_t)text, .length = 17 },
	};
	struct ibv_send_wr wr[3] = {
		{
			.next = &wr[1],
			.opcode = IBV_WR_SEND,
			.sg_list = sge,
			.num_sge = 2,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		},
		{
			.next = &wr[2],
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.imm_data = htobe32(0x01020304),
			.sg_list = &sge[2],
			.num_sge = 1,
			.send_flags = IBV_SEND_INLINE,
			.wr.rdma = { 0xa1a2a3a4a5a6a7a8, 0xbeef },
		},
		{
			.opcode = IBV_WR_RDMA_READ,
			.sg_list = sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_FENCE,
			.wr.rdma = { 0x5000, 0xcafe },
		},
	};
	struct ibv_send_wr *bad;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);
	check_chain(qp, sge, text);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_atomics(void)
{
	static const struct ibv_qp_cap cap = { .max_send_wr = 4,
					       .max_send_sge = 2 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_sge sge[2] = { { 0x1000, 8, 1 }, { 0x2000, 8, 1 } };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.sg_list = sge,
		.num_sge = 1,
		.wr.atomic = { .remote_addr = 0x3000,
			       .compare_add = 0x1111111122222222,
			       .swap = 0x3333333344444444,
			       .rkey = 5 },
	};
	const struct rdma_hca_atomic_unit *unit;
	struct ibv_send_wr *bad;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_CS);
	CHECK_EQ(wqe.units, 4);
	check_raddr((void *)(wqe.next + 1), 0x3000, 5);
	unit = (void *)(wqe.next + 2);
	CHECK_EQ(le32toh(unit->swap_add_h), 0x33333333);
	CHECK_EQ(le32toh(unit->swap_add_l), 0x44444444);
	CHECK_EQ(le32toh(unit->cmp_h), 0x11111111);
	CHECK_EQ(le32toh(unit->cmp_l), 0x22222222);
	check_data((void *)(wqe.next + 3), 0x1000, 8, 1);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	unit = (void *)(wqe.next + 2);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_FA);
	CHECK_EQ(le32toh(unit->swap_add_l), 0x22222222);
	CHECK_EQ(unit->cmp_l, 0);

	/* Two entries fit a Send's slot but not an atomic's. */
	wr.num_sge = 2;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_bad_sends(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UC, &small_cap);
	char data[4096] = {};
	struct ibv_sge sge[40] = { { (uintptr_t)data, 4096, 1 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
	struct ibv_send_wr *bad = NULL;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	wr.opcode = IBV_WR_TSO;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = -1;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.sg_list = sge;
	wr.num_sge = 40;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	sge[0].length = UINT32_MAX;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = 0;
	wr.send_flags = IBV_SEND_IP_CSUM;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	qp->vqp.qp.state = IBV_QPS_RTR;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	qp->vqp.qp.state = IBV_QPS_ERR;
	CHECK_EQ(doorbell(RDMA_HCA_SEND_DB + 4), 0);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	CHECK_EQ(first_wqe(qp).units, 1);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A bad request in the middle: those before it go out. */
void test_bad_wr(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_send_wr wr[3] = {
		{ .next = &wr[1], .opcode = IBV_WR_SEND },
		{ .next = &wr[2], .opcode = IBV_WR_TSO },
		{ .opcode = IBV_WR_SEND },
	};
	struct ibv_send_wr *bad = NULL;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), EINVAL);
	CHECK(bad == &wr[1]);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 1);
	CHECK_EQ(wqe.next->nee_nds, 0);
	CHECK_EQ(qp->sq.head, 1);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_full(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc[4];
	uint32_t pi = 0;
	int lap;

	CHECK_EQ(post_nop_sends(qp, 4, 0), 0);
	CHECK_EQ(post_nop_sends(qp, 1, 4), ENOMEM);
	/* One completion retires the unsignalled ones before it. */
	produce(cq, pi++, make_cqe(qp, true, 2, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 4, wc), 1);
	CHECK_EQ(wc[0].wr_id, 2);
	CHECK_EQ(post_nop_sends(qp, 3, 4), 0);
	CHECK_EQ(post_nop_sends(qp, 1, 7), ENOMEM);
	for (lap = 3; lap < 1000; lap++) {
		produce(cq, pi++,
			make_cqe(qp, true, lap, RDMA_HCA_OPCODE_SEND));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 4, wc), 1);
		CHECK_EQ(wc[0].wr_id, lap);
		CHECK_EQ(post_nop_sends(qp, 1, lap + 4), 0);
		CHECK_EQ(post_nop_sends(qp, 1, 0), ENOMEM);
	}
	CHECK_EQ(le32toh(*cq->ci_db), pi);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}
