// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles: what datagrams along them are given. */
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

/* What varies of a ud_unit, in the host's byte order; all go to QP 0x77. */
struct ud_unit {
	uint32_t port;
	uint32_t dlid_slid;
	uint32_t dmac_h2;
	uint32_t flow;
	uint32_t qkey;
};

static void check_ud_unit(struct seen wqe, const struct ud_unit *want,
			  const uint8_t *dgid)
{
	const struct rdma_hca_ud_unit *unit = (void *)(wqe.next + 1);

	CHECK_EQ(le32toh(unit->port), want->port);
	CHECK_EQ(le32toh(unit->dlid_slid), want->dlid_slid);
	CHECK_EQ(le32toh(unit->dmac_h2), want->dmac_h2);
	CHECK_EQ(le32toh(unit->flow), want->flow);
	CHECK(!memcmp(unit->dgid, dgid, 16));
	CHECK_EQ(le32toh(unit->dqpn), 0x77);
	CHECK_EQ(le32toh(unit->qkey), want->qkey);
}

static void check_bad_ahs(struct ibv_ah_attr attr)
{
	attr.port_num = 2;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EINVAL);
	attr.port_num = 1;
	attr.src_path_bits = 2;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EINVAL);
	attr.src_path_bits = 0;
	attr.grh.sgid_index = 1;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EINVAL);
}

/* The kernel is asked for the port when it was opened, and in doubt. */
void test_ah_limits(void)
{
	struct ibv_ah_attr attr = { .dlid = 0x1234, .port_num = 1 };
	unsigned int before;
	int i;

	attr.src_path_bits = 2;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EINVAL);
	before = kernel.port_queries;
	for (i = 0; i < 100; i++) {
		attr.src_path_bits = i % 2;
		rhca_destroy_ah(check_made(rhca_create_ah(pd, &attr), "AH"));
	}
	CHECK_EQ(kernel.port_queries, before);
	attr.src_path_bits = 3;
	kernel.lmc = 2;
	for (i = 0; i < 2; i++)
		rhca_destroy_ah(check_made(rhca_create_ah(pd, &attr), "AH"));
	CHECK_EQ(kernel.port_queries, before + 1);
	attr.sl = 16;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EINVAL);
}

void test_ud(void)
{
	static const struct ud_unit want = {
		.port = 0x80000931,
		.dlid_slid = 0x12340001,
		.flow = 0x055abcde,
		.qkey = 0x80000001,
	};
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.dlid = 0x1234,
		.sl = 3,
		.src_path_bits = 1,
		.port_num = 1,
		.grh = { .flow_label = 0xfffabcde, /* 20 bits count */
			 .hop_limit = 9,
			 .traffic_class = 0x55 },
	};
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM };
	struct ibv_send_wr *bad;
	struct ibv_ah *ah;
	struct seen wqe;

	memset(attr.grh.dgid.raw, 0xfe, 16);
	ah = rhca_create_ah(pd, &attr);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x77;
	wr.wr.ud.remote_qkey = 0x80000001;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 4);
	check_ud_unit(wqe, &want, attr.grh.dgid.raw);

	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = NULL;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	rhca_destroy_ah(ah);
	/* InfiniBand needs no kernel for it. */
	CHECK_EQ(kernel.ahs, 0);
	check_bad_ahs(attr);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* Posted by a work request, and by the builder. */
static void check_roce_ah(struct rhca_qp *qp, struct ibv_ah_attr attr)
{
	static const struct ud_unit want = {
		.port = 0x80054021,
		.dlid_slid = 0xbbcc0000,
		.dmac_h2 = 0x525400aa,
		.flow = 0x06812345,
		.qkey = 0x11111111,
	};
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_ah *ah = check_made(rhca_create_ah(pd, &attr), "AH");
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr *bad;

	CHECK_EQ(kernel.ahs, 1);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x77;
	wr.wr.ud.remote_qkey = 0x11111111;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	check_ud_unit(first_wqe(qp), &want, attr.grh.dgid.raw);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, 0x77, 0x11111111);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	check_ud_unit(first_wqe(qp), &want, attr.grh.dgid.raw);
	CHECK_EQ(rhca_destroy_ah(ah), 0);
	CHECK_EQ(kernel.ahs, 0);
}

/* The MAC and the hop limit come from the kernel, the rest from the user. */
void test_roce_ud(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.dlid = 0x1234,
		.sl = 2,
		.port_num = 1,
		.grh = { .flow_label = 0x12345,
			 .hop_limit = 1,
			 .sgid_index = 5,
			 .traffic_class = 0x68 },
	};
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);

	ctx.is_roce = true;
	memset(attr.grh.dgid.raw, 0x3c, 16);
	check_roce_ah(qp, attr);
	/* Of a flow label that is too long its 20 bits count. */
	attr.grh.flow_label = 0xfff12345;
	check_roce_ah(qp, attr);

	attr.is_global = 0;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EINVAL);
	attr.is_global = 1;
	kernel.create_ah_err = EHOSTUNREACH;
	CHECK_FAILS(rhca_create_ah(pd, &attr), EHOSTUNREACH);
	kernel.create_ah_err = 0;
	CHECK_EQ(kernel.ahs, 0);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}
