// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows: bound and invalidated, by verbs and by work requests. */
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

static struct ibv_mr some_mr = { .lkey = 0x56789a00 };

/* Whatever was in the slots: a window's life in one chain, and Sends. */
void test_invalidate(void)
{
	static const struct ibv_qp_cap cap = { .max_send_wr = 4 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_mw *mw = rhca_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr[3] = {
		{ .next = &wr[1],
		  .opcode = IBV_WR_BIND_MW,
		  .bind_mw = { .mw = mw,
			       .rkey = 0x123401,
			       .bind_info = { .mr = &some_mr,
					      .addr = 0x123456789abcdef0,
					      .length = 0x200000001,
					      .mw_access_flags =
						      IBV_ACCESS_LOCAL_WRITE |
						      IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_ZERO_BASED } } },
		{ .next = &wr[2],
		  .opcode = IBV_WR_LOCAL_INV,
		  .num_sge = 7,
		  .invalidate_rkey = 0x123402 },
		{ .opcode = IBV_WR_SEND_WITH_INV,
		  .send_flags = IBV_SEND_FENCE,
		  .invalidate_rkey = 0x11223344 },
	};
	struct ibv_send_wr *bad;
	struct seen wqe;

	memset(qp->sq.buf.addr, 0xff, qp->sq.buf.size);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);
	wqe = first_wqe(qp);
	check_bind(wqe, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, 2,
		   0x123401, &wr[0].bind_mw.bind_info);
	CHECK_EQ(wqe.next->imm_data, 0);
	wqe = next_wqe(qp, wqe);
	check_inv(wqe, 0x123402);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND_INV);
	CHECK_EQ(wqe.units, 1);
	CHECK(wqe.fence);
	CHECK_EQ(le32toh(wqe.next->inv_rkey), 0x11223344);

	rhca_destroy_qp(&qp->vqp.qp);
	CHECK_EQ(rhca_dealloc_mw(mw), 0);
	CHECK_EQ(kernel.mws, 0);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* The verb that binds windows of type 1 finds a key by itself. */
void test_bind(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UC, &small_cap);
	struct ibv_mw *mw = rhca_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 5,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = &some_mr,
			       .addr = 0x1000,
			       .length = 8,
			       .mw_access_flags = IBV_ACCESS_REMOTE_READ },
	};
	struct ibv_qp *ibqp = &qp->vqp.qp;
	int i;

	CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), 0);
	CHECK_EQ(mw->rkey, 0x123400);
	CHECK_EQ(qp->sq.wr_id[0], 5);
	check_bind(first_wqe(qp), IBV_ACCESS_REMOTE_READ, 1, 0x123400,
		   &bind.bind_info);
	/* No MR: it is unbound. */
	bind.bind_info = (struct ibv_mw_bind_info){};
	CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), 0);
	check_bind(first_wqe(qp), 0, 1, 0x123401, &bind.bind_info);
	for (i = 0; i < 2; i++)
		CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), 0);
	CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), ENOMEM);
	CHECK_EQ(mw->rkey, 0x123403);
	rhca_destroy_qp(ibqp);
	rhca_dealloc_mw(mw);
	rhca_destroy_cq(&cq->vcq.cq);
}

static int try_bind(struct rhca_qp *qp, struct ibv_mw *mw,
		    struct ibv_mw_bind_info info, unsigned int flags)
{
	struct ibv_mw_bind bind = { .bind_info = info, .send_flags = flags };

	return rhca_bind_mw(&qp->vqp.qp, mw, &bind);
}

/* One that a work request binds, or the builder. */
static int try_bind_wr(struct rhca_qp *qp, struct ibv_mw *mw,
		       struct ibv_mw_bind_info info)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .bind_mw = { .mw = mw, .bind_info = info } };
	struct ibv_send_wr *bad;
	int err;

	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, mw, 0, &info);
	err = ibv_wr_complete(ex);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), err);
	return err;
}

void test_bad_binds(void)
{
	const struct ibv_mw_bind_info good = { .mr = &some_mr, .length = 1 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct rhca_qp *ud = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_mw *one = rhca_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = rhca_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = good;

	CHECK_FAILS(rhca_alloc_mw(pd, 3), EINVAL);
	CHECK_EQ(try_bind(qp, two, good, 0), EINVAL);
	CHECK_EQ(try_bind(ud, one, good, 0), EINVAL);
	CHECK_EQ(try_bind(qp, one, good, IBV_SEND_IP_CSUM), EINVAL);
	CHECK_EQ(try_bind_wr(qp, one, good), EINVAL);
	info.mr = NULL;
	CHECK_EQ(try_bind(qp, one, info, 0), EINVAL);
	info.length = 0;
	CHECK_EQ(try_bind_wr(qp, two, info), EINVAL);
	info = good;
	info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
	CHECK_EQ(try_bind(qp, one, info, 0), EINVAL);
	info.mw_access_flags = IBV_ACCESS_MW_BIND;
	CHECK_EQ(try_bind(qp, one, info, 0), EINVAL);
	CHECK_EQ(try_bind_wr(qp, two, info), EINVAL);
	CHECK_EQ(doorbell(RDMA_HCA_SEND_DB + 4), 0);
	CHECK_EQ(try_bind_wr(qp, two, good), 0);
	qp->vqp.qp.state = IBV_QPS_RTR;
	CHECK_EQ(try_bind(qp, one, good, 0), EINVAL);
	CHECK_EQ(one->rkey, 0x1234ff);

	rhca_dealloc_mw(two);
	rhca_dealloc_mw(one);
	rhca_destroy_qp(&ud->vqp.qp);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}
