// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Raw packet QPs, and the rules that steer frames to them. */
#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

/* A frame is the whole message: nothing says where it goes. */
void test_raw(void)
{
	struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_SNIFFER,
				      .port = 1,
				      .size = sizeof(attr) };
	struct rhca_cq *cq = new_cq(8);
	struct ibv_sge sge = { 0x1000, 60, 7 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1 };
	const struct rdma_hca_data_unit *unit;
	struct ibv_send_wr *bad;
	struct ibv_flow *flow;
	struct rhca_qp *qp;
	struct seen wqe;

	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_RAW_PACKET), IBV_QP_EX_WITH_SEND);
	ctx.is_roce = true;
	qp = new_qp(cq, IBV_QPT_RAW_PACKET, &small_cap);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 2);
	unit = (void *)(wqe.next + 1);
	CHECK_EQ(le32toh(unit->byte_cnt), 60);
	CHECK_EQ(le32toh(unit->lkey), 7);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);

	flow = rhca_create_flow(&qp->vqp.qp, &attr);
	CHECK(flow);
	CHECK_EQ(kernel.flows, 1);
	kernel.destroy_flow_err = EIO;
	CHECK_EQ(rhca_destroy_flow(flow), EIO);
	kernel.destroy_flow_err = 0;
	CHECK_EQ(rhca_destroy_flow(flow), 0);
	CHECK_EQ(kernel.flows, 0);
	attr.port = 2;
	CHECK_FAILS(rhca_create_flow(&qp->vqp.qp, &attr), EINVAL);
	rhca_destroy_qp(&qp->vqp.qp);
	ctx.is_roce = false;
	rhca_destroy_cq(&cq->vcq.cq);
}
