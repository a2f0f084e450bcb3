// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdlib.h>
#include <string.h>

#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

struct rhca_context ctx;
struct ibv_pd *pd;

const struct ibv_qp_cap small_cap = {
	.max_send_wr = 4,
	.max_recv_wr = 4,
	.max_send_sge = 2,
	.max_recv_sge = 2,
	.max_inline_data = 32,
};

void setup(void)
{
	memset(&ctx, 0, sizeof(ctx));
	ctx.uar = clear_uar();
	ctx.max_cqe = 1 << 16;
	ctx.max_wr = RHCA_MAX_WR;
	ctx.max_send_wqe_size = RDMA_HCA_MAX_SEND_WQE_SIZE;
	ctx.max_inline = 512;
	ctx.max_send_sge = RDMA_HCA_MAX_SGE;
	ctx.max_recv_sge = RDMA_HCA_MAX_SGE;
	ctx.qp_mask = 0xff;
	ctx.qps = calloc(ctx.qp_mask + 1, sizeof(*ctx.qps));
	ctx.has_dm = true;
	ctx.max_srq_wr = RHCA_MAX_WR;
	ctx.max_srq_sge = RDMA_HCA_MAX_SGE;
	ctx.srq_mask = 0xf;
	ctx.srqs = calloc(ctx.srq_mask + 1, sizeof(*ctx.srqs));
	pthread_mutex_init(&ctx.table_mutex, NULL);
	pthread_mutex_init(&ctx.db_mutex, NULL);
	list_head_init(&ctx.db_pages);
	pd = rhca_alloc_pd(&ctx.vctx.context);
}

/* No page of doorbell records is left, so whoever had one is gone. */
void teardown(void)
{
	rhca_dealloc_pd(pd);
	CHECK(list_empty(&ctx.db_pages));
	free(ctx.srqs);
	free(ctx.qps);
}

struct rhca_cq *new_cq(int cqe)
{
	struct ibv_cq *cq = rhca_create_cq(&ctx.vctx.context, cqe, NULL, 0);

	return to_rcq(check_made(cq, "CQ"));
}

struct rhca_qp *ready_qp(struct ibv_qp *qp)
{
	check_made(qp, "QP");
	qp->state = IBV_QPS_RTS;
	return to_rqp(qp);
}

struct rhca_qp *new_qp(struct rhca_cq *cq, enum ibv_qp_type type,
		       const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = *cap,
		.qp_type = type,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = rhca_send_ops(&ctx, type),
	};

	return ready_qp(rhca_create_qp_ex(&ctx.vctx.context, &attr));
}

struct rhca_qp *new_srq_qp(struct rhca_cq *cq, struct rhca_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.srq = &srq->vsrq.srq,
		/* Of the receive queue that it does not have. */
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = UINT32_MAX,
			 .max_recv_sge = UINT32_MAX },
		.qp_type = IBV_QPT_RC,
	};
	struct rhca_qp *qp = ready_qp(rhca_create_qp(pd, &attr));

	CHECK_EQ(attr.cap.max_recv_wr, 0);
	CHECK_EQ(attr.cap.max_recv_sge, 0);
	CHECK_EQ(kernel.qp_req.rq_len, 0);
	return qp;
}

struct rhca_srq *new_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
	};
	struct ibv_srq *srq = check_made(rhca_create_srq(pd, &attr), "SRQ");

	CHECK(attr.attr.max_wr >= max_wr && attr.attr.max_sge >= max_sge);
	return to_rsrq(srq);
}

struct ibv_xrcd *new_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = { .fd = -1 };

	return check_made(rhca_open_xrcd(&ctx.vctx.context, &attr), "XRCD");
}

struct rhca_srq *new_xsrq(struct rhca_cq *cq, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = &cq->vcq.cq,
	};
	struct ibv_srq *srq = rhca_create_srq_ex(&ctx.vctx.context, &attr);

	return to_rsrq(check_made(srq, "XRC SRQ"));
}

int post_nop_sends(struct rhca_qp *qp, int n, uint64_t wr_id)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	int err = 0;

	for (; n && !err; n--) {
		wr.wr_id = wr_id++;
		err = rhca_post_send(&qp->vqp.qp, &wr, &bad);
	}
	return err;
}

int post_srq(struct rhca_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id };
	struct ibv_recv_wr *bad;

	return rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad);
}
