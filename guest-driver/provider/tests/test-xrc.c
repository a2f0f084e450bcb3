// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC: who sends, and SRQs that messages name. */
#include <string.h>

#include <util/util.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

static struct rdma_hca_cqe make_xrc_cqe(struct rhca_srq *srq, uint32_t tag)
{
	return (struct rdma_hca_cqe){
		.my_qpn = htole32(0x777777), /* another process's */
		.rqpn = htole32(srq->vsrq.srq_num),
		.wqe = htole32(tag),
		.ctrl = htole32(RDMA_HCA_CQE_XRC |
				FIELD_PREP(RDMA_HCA_CQE_OPCODE, 0xa4)),
	};
}

void test_xrc_completions(void)
{
	struct ibv_xrcd *xrcd = new_xrcd();
	struct rhca_cq *cq = new_cq(8);
	struct rhca_srq *srq[] = { new_xsrq(cq, xrcd), new_xsrq(cq, xrcd) };
	struct ibv_wc wc[8];
	uint32_t i, number;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(rhca_get_srq_num(&srq[i]->vsrq.srq, &number), 0);
		CHECK_EQ(number, kernel.next_srqn - 2 + i);
		CHECK_EQ(post_srq(srq[i], 10 + i), 0);
		CHECK_EQ(post_srq(srq[i], 20 + i), 0);
	}
	for (i = 0; i < 4; i++)
		produce(cq, i,
			make_xrc_cqe(srq[i % 2],
				     tag_of(srq[i % 2], 1 - i / 2)));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 3, wc), 3);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(wc[i].wr_id, (i < 2 ? 20 : 10) + i % 2);
		CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
		CHECK_EQ(wc[i].opcode, IBV_WC_RECV);
		CHECK_EQ(wc[i].qp_num, 0x777777);
		CHECK_EQ(wc[i].src_qp, 0);
	}
	/* An SRQ that goes takes along what the CQ has of it. */
	produce(cq, 4, make_xrc_cqe(srq[0], 0));
	rhca_destroy_srq(&srq[1]->vsrq.srq);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 1);
	rhca_destroy_srq(&srq[0]->vsrq.srq);
	/* One that comes later is nobody's. */
	produce(cq, 5, make_xrc_cqe(srq[0], 0));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 0);
	CHECK_EQ(rhca_close_xrcd(xrcd), 0);
	rhca_destroy_cq(&cq->vcq.cq);
}

static struct rhca_qp *new_xrc_sender(struct rhca_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.cap = { .max_send_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_wr = UINT32_MAX },
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = rhca_send_ops(&ctx, IBV_QPT_RC),
	};

	return ready_qp(rhca_create_qp_ex(&ctx.vctx.context, &attr));
}

static void check_xrc_unit(const struct rdma_hca_next_unit *next, uint32_t srqn)
{
	const struct rdma_hca_xrc_unit *unit = (void *)(next + 1);

	CHECK_EQ(le32toh(unit->srqn), srqn);
	CHECK_EQ(unit->reserved[0] | unit->reserved[1] | unit->reserved[2], 0);
}

void test_xrc_send(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_xrc_sender(cq);
	struct ibv_sge sge = { 0x1000, 8, 1 };
	struct ibv_send_wr wr[3] = {
		{
			.next = &wr[1],
			.opcode = IBV_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.qp_type.xrc.remote_srqn = 0xff123456,
		},
		{
			.next = &wr[2],
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = { 0x5000, 0xcafe },
			.qp_type.xrc.remote_srqn = 2,
		},
		{
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.atomic = { .remote_addr = 0x6000, .rkey = 7 },
			.qp_type.xrc.remote_srqn = 3,
		},
	};
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 3);
	check_xrc_unit(wqe.next, 0x123456);
	check_data((void *)(wqe.next + 2), 0x1000, 8, 1);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.units, 4);
	check_xrc_unit(wqe.next, 2);
	check_raddr((void *)(wqe.next + 2), 0x5000, 0xcafe);
	check_data((void *)(wqe.next + 3), 0x1000, 8, 1);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.units, 5);
	check_xrc_unit(wqe.next, 3);
	check_raddr((void *)(wqe.next + 2), 0x6000, 7);
	check_data((void *)(wqe.next + 4), 0x1000, 8, 1);
	CHECK(5 * 16 <= 1 << qp->sq.shift);

	produce(cq, 0, make_cqe(qp, true, 2, RDMA_HCA_OPCODE_ATOMIC_FA));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.opcode, IBV_WC_FETCH_ADD);
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &recv, &bad_recv), EINVAL);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_xrc_wr_api(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_xrc_sender(cq);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;

	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 7, 0x8000);
	ibv_wr_set_xrc_srqn(ex, 9);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	ibv_wr_set_xrc_srqn(ex, 10);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 4);
	check_xrc_unit(wqe.next, 9);
	check_raddr((void *)(wqe.next + 2), 0x8000, 7);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.units, 3);
	check_xrc_unit(wqe.next, 10);
	check_data((void *)(wqe.next + 2), 0x1000, 8, 1);
	/* It has to be said where a message goes. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* What sends nothing has no place for an SRQ, and need not be told of one. */
void test_xrc_local(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_xrc_sender(cq);
	struct ibv_mw *mw = rhca_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mr mr = { .lkey = 0x56789a00 };
	struct ibv_mw_bind_info info = { .mr = &mr, .addr = 0x1000 };
	struct ibv_send_wr wr[2] = {
		{ .next = &wr[1],
		  .opcode = IBV_WR_LOCAL_INV,
		  .invalidate_rkey = 0x123402,
		  .qp_type.xrc.remote_srqn = 0x1234 },
		{ .opcode = IBV_WR_BIND_MW,
		  .bind_mw = { .mw = mw, .rkey = 0x123401, .bind_info = info },
		  .qp_type.xrc.remote_srqn = 0x1234 },
	};
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr *bad;
	struct seen wqe;

	memset(qp->sq.buf.addr, 0xee, qp->sq.buf.size);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);
	wqe = first_wqe(qp);
	check_inv(wqe, 0x123402);
	check_bind(next_wqe(qp, wqe), 0, 2, 0x123401, &wr[1].bind_mw.bind_info);

	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 0x123403);
	ibv_wr_set_xrc_srqn(ex, 0x1234);
	ibv_wr_bind_mw(ex, mw, 0x123404, &info);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_inv(wqe, 0x123403);
	check_bind(next_wqe(qp, wqe), 0, 2, 0x123404, &info);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_dealloc_mw(mw);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* The verb that binds a window of type 1. */
void test_xrc_bind(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_xrc_sender(cq);
	struct ibv_mw *mw = rhca_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {};

	memset(qp->sq.buf.addr, 0xee, qp->sq.buf.size);
	CHECK_EQ(rhca_bind_mw(&qp->vqp.qp, mw, &bind), 0);
	check_bind(first_wqe(qp), 0, 1, mw->rkey, &bind.bind_info);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_dealloc_mw(mw);
	rhca_destroy_cq(&cq->vcq.cq);
}

static struct {
	struct rhca_cq *cq;
	struct ibv_xrcd *xrcd;
	struct rhca_srq *srq;
} heir;

static void make_heir(void)
{
	kernel.next_srqn--;
	heir.srq = new_xsrq(heir.cq, heir.xrcd);
}

/* Another SRQ is made meanwhile, which has its number. */
void test_xrc_destroyed_under_an_event(void)
{
	struct ibv_xrcd *xrcd = heir.xrcd = new_xrcd();
	struct rhca_cq *cq = heir.cq = new_cq(8);
	struct rhca_srq *srq = new_xsrq(cq, xrcd);
	struct ibv_wc wc;

	CHECK_EQ(post_srq(srq, 11), 0);
	produce(cq, 0, make_xrc_cqe(srq, tag_of(srq, 0)));
	kernel.on_destroy = make_heir;
	CHECK_EQ(rhca_destroy_srq(&srq->vsrq.srq), 0);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
	CHECK_EQ(post_srq(heir.srq, 22), 0);
	produce(cq, 1, make_xrc_cqe(heir.srq, tag_of(heir.srq, 0)));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.wr_id, 22);
	rhca_destroy_srq(&heir.srq->vsrq.srq);
	CHECK_EQ(rhca_close_xrcd(xrcd), 0);
	rhca_destroy_cq(&cq->vcq.cq);
}
