// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: what they are asked for, what they get. */
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

void test_caps(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	struct rhca_cq *cq = new_cq(1);
	struct ibv_qp_cap cap = {};
	struct rhca_qp *qp;
	uint32_t head;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		head = types[i] == IBV_QPT_UD ? 64 : 32;
		for (cap.max_send_sge = 0; cap.max_send_sge <= 30;
		     cap.max_send_sge++) {
			cap.max_recv_sge = cap.max_send_sge;
			cap.max_inline_data = cap.max_send_sge * 17;
			cap.max_send_wr = cap.max_recv_wr = 5;
			qp = new_qp(cq, types[i], &cap);
			CHECK_EQ(qp->cap.max_send_wr, 8);
			CHECK_EQ(qp->cap.max_recv_wr, 8);
			CHECK(qp->cap.max_send_sge >= cap.max_send_sge &&
			      qp->cap.max_recv_sge >= cap.max_recv_sge &&
			      qp->cap.max_inline_data >= cap.max_inline_data);
			CHECK(head + 16 * qp->cap.max_send_sge <=
			      qp->send_limit);
			CHECK(!qp->cap.max_inline_data ||
			      head + 4 + qp->cap.max_inline_data <=
				      qp->send_limit);
			CHECK(32 + 16 * qp->cap.max_recv_sge <=
			      1u << qp->rq.shift);
			CHECK(qp->sq.shift >= 6 && qp->sq.shift <= 10);
			CHECK(qp->rq.shift >= 6 && qp->rq.shift <= 9);
			CHECK(qp->send_limit <= RDMA_HCA_MAX_SEND_WQE_SIZE);
			CHECK_EQ(kernel.qp_req.sq_len, 8u << qp->sq.shift);
			CHECK_EQ(kernel.qp_req.rq_len, 8u << qp->rq.shift);
			CHECK_EQ(kernel.qp_req.sq_addr % 4096, 0);
			rhca_destroy_qp(&qp->vqp.qp);
		}
	}
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_refused(struct rhca_cq *cq, struct ibv_qp_cap cap,
			  enum ibv_qp_type type, int err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = cap,
		.qp_type = type,
	};

	CHECK_FAILS(rhca_create_qp(pd, &attr), err);
	CHECK(!memcmp(&attr.cap, &cap, sizeof(cap)));
}

void test_bad_caps(void)
{
	struct rhca_cq *cq = new_cq(1);

	check_refused(cq, (struct ibv_qp_cap){ .max_send_wr = 32769 },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap){ .max_recv_wr = UINT32_MAX },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap){ .max_send_sge = 31 }, IBV_QPT_RC,
		      EINVAL);
	check_refused(cq, (struct ibv_qp_cap){ .max_recv_sge = UINT32_MAX },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap){ .max_inline_data = UINT32_MAX },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, small_cap, IBV_QPT_RAW_PACKET, EOPNOTSUPP);
	CHECK_FAILS(rhca_create_cq(&ctx.vctx.context, 0, NULL, 0), EINVAL);
	CHECK_FAILS(rhca_create_cq(&ctx.vctx.context, -1, NULL, 0), EINVAL);
	CHECK_FAILS(rhca_create_cq(&ctx.vctx.context, 65537, NULL, 0), EINVAL);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A kernel that does not know them, or a card that has not got them. */
void test_missing_ops(void)
{
	uint64_t ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE }, *bad_wr;
	struct rhca_cq *cq = new_cq(4);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = small_cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
	};
	struct rhca_qp *qp;
	uint64_t op;

	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_RC) & ops, ops);
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_XRC_SEND) & ops, ops);
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_UC) & ops, 0);
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_UD) & ops, 0);
	ctx.missing_ops = ops;
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_RC) & ops, 0);
	for (op = IBV_QP_EX_WITH_FLUSH; op <= IBV_QP_EX_WITH_ATOMIC_WRITE;
	     op *= 2) {
		attr.send_ops_flags = op;
		CHECK_FAILS(rhca_create_qp_ex(&ctx.vctx.context, &attr),
			    EOPNOTSUPP);
	}
	qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad_wr), EINVAL);
	CHECK(!qp->vqp.qp_ex.wr_flush && !qp->vqp.qp_ex.wr_atomic_write);
	ctx.missing_ops = 0;
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* Not to hear one's own multicasts, of UD; the kernel is told. */
void test_create_flags(void)
{
	struct rhca_cq *cq = new_cq(1);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = small_cap,
		.qp_type = IBV_QPT_UD,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};
	struct ibv_qp *qp = rhca_create_qp_ex(&ctx.vctx.context, &attr);

	CHECK(qp);
	CHECK_EQ(kernel.create_flags, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	rhca_destroy_qp(qp);
	attr.qp_type = IBV_QPT_RC;
	CHECK_FAILS(rhca_create_qp_ex(&ctx.vctx.context, &attr), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UD;
	attr.create_flags |= IBV_QP_CREATE_SCATTER_FCS;
	CHECK_FAILS(rhca_create_qp_ex(&ctx.vctx.context, &attr), EOPNOTSUPP);
	/* What the mask does not name is not looked at. */
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = rhca_create_qp_ex(&ctx.vctx.context, &attr);
	CHECK(qp);
	CHECK_EQ(kernel.create_flags, 0);
	rhca_destroy_qp(qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A target has no CQs and no queues, however one comes by it. */
void test_xrc_target(void)
{
	struct ibv_xrcd *xrcd = new_xrcd();
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = UINT32_MAX, .max_recv_wr = 7 },
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_NUM |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = 0x42,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_send_wr send = {}, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_qp *qp[2];
	int i;

	qp[0] = rhca_create_qp_ex(&ctx.vctx.context, &attr);
	qp[1] = rhca_open_qp(&ctx.vctx.context, &open);
	CHECK_EQ(attr.cap.max_send_wr | attr.cap.max_recv_wr, 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(rhca_post_send(qp[i], &send, &bad_send), EINVAL);
		CHECK_EQ(rhca_post_recv(qp[i], &recv, &bad_recv), EINVAL);
		CHECK_EQ(rhca_modify_qp(qp[i], &reset, IBV_QP_STATE), 0);
		CHECK_EQ(rhca_destroy_qp(qp[i]), 0);
	}
	open.comp_mask = 0;
	CHECK_FAILS(rhca_open_qp(&ctx.vctx.context, &open), EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	CHECK_FAILS(rhca_create_qp_ex(&ctx.vctx.context, &attr), EINVAL);
	CHECK_EQ(rhca_close_xrcd(xrcd), 0);
}

static struct {
	struct rhca_cq *cq;
	struct rhca_qp *qp;
} heir;

static void make_heir(void)
{
	kernel.next_qpn--;
	heir.qp = new_qp(heir.cq, IBV_QPT_RC, &small_cap);
}

/*
 * Who has an event of a QP that is being destroyed makes another one first,
 * which has the same number.
 */
void test_destroyed_under_an_event(void)
{
	struct rhca_cq *cq = heir.cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc;

	CHECK_EQ(post_nop_sends(qp, 1, 11), 0);
	produce(cq, 0, make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND));
	kernel.on_destroy = make_heir;
	CHECK_EQ(rhca_destroy_qp(&qp->vqp.qp), 0);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
	CHECK_EQ(post_nop_sends(heir.qp, 1, 22), 0);
	produce(cq, 1, make_cqe(heir.qp, true, 0, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.wr_id, 22);
	rhca_destroy_qp(&heir.qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}
