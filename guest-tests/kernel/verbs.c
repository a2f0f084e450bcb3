// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Each work request that a user in the kernel posts, and what it does; events
 * of CQs; and what is refused.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " KBUILD_BASENAME ": " fmt

#include <linux/delay.h>

#include "bench.h"
#include "cases.h"

#define GRH_SIZE	sizeof(struct ib_grh)

/* Laps of the queues, with work requests that only the next one completes. */
int test_writes(struct bench *b)
{
	int lap, n;

	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (lap = 0; lap < 200; lap++) {
		fill(b, 0, 8000);
		for (n = 0; n < WRS; n++)
			CHECK(!post_rdma(b, IB_WR_RDMA_WRITE, n, n * 1000, 1000,
					 SZ_32K + n * 1000, n < WRS - 1));
		CHECK(post_rdma(b, IB_WR_RDMA_WRITE, n, 0, 8, 0, false) ==
		      -ENOMEM);
		CHECK(!expect(b, WRS - 1, IB_WC_RDMA_WRITE, IB_WC_SUCCESS));
		CHECK(equal(b, 0, SZ_32K, 8000));
	}
	return destroy_qps(b);
}

int test_reads(struct bench *b)
{
	int n;

	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (n = 0; n < 100; n++) {
		fill(b, SZ_32K, 20000);
		CHECK(!post_rdma(b, IB_WR_RDMA_READ, n, 0, 20000, SZ_32K,
				 false));
		CHECK(!expect(b, n, IB_WC_RDMA_READ, IB_WC_SUCCESS));
		CHECK(equal(b, 0, SZ_32K, 20000));
	}
	return destroy_qps(b);
}

/* One atomic on the first word; what was there comes to the ninth. */
static int do_atomic(struct bench *b, u32 rkey, enum ib_wr_opcode opcode,
		     u64 compare_add, u64 swap)
{
	struct ib_sge sge = sge_at(b, 64, 8);
	struct ib_atomic_wr wr = {
		.wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = b->dma,
		.rkey = rkey,
		.compare_add = compare_add,
		.swap = swap,
	};

	return ib_post_send(b->qp[0], &wr.wr, NULL);
}

/* The PD's own key does not allow atomics. */
int test_atomics(struct bench *b)
{
	struct ib_mr *mr = b->dev->ops.get_dma_mr(b->pd,
						  IB_ACCESS_LOCAL_WRITE |
						  IB_ACCESS_REMOTE_ATOMIC);
	u64 *word = (u64 *)b->buf;

	CHECK(!IS_ERR(mr));
	mr->device = b->dev;	/* as the core would */
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	word[0] = 5;
	CHECK(!do_atomic(b, mr->rkey, IB_WR_ATOMIC_FETCH_AND_ADD, 7, 0));
	CHECK(!expect(b, 0, IB_WC_FETCH_ADD, IB_WC_SUCCESS));
	CHECK(word[0] == 12 && word[8] == 5);
	CHECK(!do_atomic(b, mr->rkey, IB_WR_ATOMIC_CMP_AND_SWP, 12, 100));
	CHECK(!expect(b, 0, IB_WC_COMP_SWAP, IB_WC_SUCCESS));
	CHECK(word[0] == 100 && word[8] == 12);
	CHECK(!do_atomic(b, b->pd->unsafe_global_rkey,
			 IB_WR_ATOMIC_FETCH_AND_ADD, 7, 0));
	CHECK(!expect(b, 0, 0, IB_WC_REM_ACCESS_ERR));
	CHECK(word[0] == 100);
	CHECK(!destroy_qps(b));
	CHECK(!b->dev->ops.dereg_mr(mr, NULL));
	return 0;
}

/* Where the kernel knows it. */
int test_atomic_writes(struct bench *b)
{
#ifdef RHCA_HAS_FLUSH
	int n;

	CHECK(b->dev->attrs.device_cap_flags & IB_DEVICE_ATOMIC_WRITE);
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (n = 0; n < 100; n++) {
		fill(b, 64, 8);
		CHECK(!post_rdma(b, IB_WR_ATOMIC_WRITE, n, 64, 8, 0, false));
		CHECK(!expect(b, n, IB_WC_ATOMIC_WRITE, IB_WC_SUCCESS));
		CHECK(equal(b, 0, 64, 8));
	}
	CHECK(!post_rdma(b, IB_WR_ATOMIC_WRITE, n, 64, 4, 0, false));
	CHECK(!expect(b, n, 0, IB_WC_LOC_LEN_ERR));
	return destroy_qps(b);
#else
	return 0;
#endif
}

/* Inline data in a Send with immediate data. */
int test_sends(struct bench *b)
{
	static const char text[] = "hello, kernel";
	struct ib_sge sge = { .addr = (uintptr_t)text,
			      .length = sizeof(text) };
	struct ib_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND_WITH_IMM,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
		.ex.imm_data = cpu_to_be32(4711),
	};
	bool sent = false, received = false;
	struct ib_wc wc;

	CHECK(!create_qps(b, IB_QPT_RC, 64));
	memset(b->buf, 0, 100);
	CHECK(!post_recv(b, b->qp[1], 2, 0, 100));
	CHECK(!ib_post_send(b->qp[0], &wr, NULL));
	while (!sent || !received) {
		CHECK(!next_wc(b, &wc));
		CHECK(wc.status == IB_WC_SUCCESS);
		if (wc.wr_id == 1) {
			CHECK(!sent && wc.opcode == IB_WC_SEND &&
			      wc.qp == b->qp[0]);
			sent = true;
		} else {
			CHECK(!received && wc.opcode == IB_WC_RECV &&
			      wc.qp == b->qp[1]);
			CHECK(wc.byte_len == sizeof(text));
			CHECK(wc.wc_flags & IB_WC_WITH_IMM);
			CHECK(wc.ex.imm_data == cpu_to_be32(4711));
			received = true;
		}
	}
	CHECK(!memcmp(b->buf, text, sizeof(text)));
	return destroy_qps(b);
}

static struct ib_ah *create_ah(struct bench *b, bool global)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };

	rdma_ah_set_dlid(&attr, b->port.lid);
	rdma_ah_set_port_num(&attr, PORT);
	if (global)
		rdma_ah_set_grh(&attr, &b->gid, 0x54321, 0, 7, 0xa5);
	return rdma_create_ah(b->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
}

/* A datagram to the other QP; with GRH if @ah has one. */
static int send_datagram(struct bench *b, struct ib_ah *ah)
{
	struct ib_sge sge = sge_at(b, SZ_32K, 150);
	struct ib_ud_wr wr = {
		.wr = {
			.wr_id = 1,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
		},
		.ah = ah,
		.remote_qpn = b->qp[1]->qp_num,
		.remote_qkey = QKEY,
	};

	return ib_post_send(b->qp[0], &wr.wr, NULL);
}

static int check_datagram(struct bench *b, const struct ib_wc *wc, bool global)
{
	const struct ib_grh *grh = (const struct ib_grh *)b->buf;

	CHECK(wc->byte_len == GRH_SIZE + 150 && wc->slid == b->port.lid);
	CHECK(wc->src_qp == b->qp[0]->qp_num);
	CHECK(!(wc->wc_flags & IB_WC_GRH) == !global);
	CHECK(equal(b, GRH_SIZE, SZ_32K, 150));
	if (!global)
		return 0;
	CHECK(grh->version_tclass_flow == cpu_to_be32(0x6a554321));
	CHECK(grh->hop_limit == 7);
	CHECK(!memcmp(&grh->sgid, &b->gid, sizeof(b->gid)));
	CHECK(!memcmp(&grh->dgid, &b->gid, sizeof(b->gid)));
	return 0;
}

static int datagram(struct bench *b, bool global)
{
	struct ib_ah *ah = create_ah(b, global);
	struct ib_wc wc;
	int i;

	CHECK(!IS_ERR(ah));
	CHECK(!create_qps(b, IB_QPT_UD, 0));
	fill(b, SZ_32K, 150);
	CHECK(!post_recv(b, b->qp[1], 2, 0, 1000));
	CHECK(!send_datagram(b, ah));
	for (i = 0; i < 2; i++) {
		CHECK(!next_wc(b, &wc));
		CHECK(wc.status == IB_WC_SUCCESS);
		if (wc.wr_id == 2)
			CHECK(!check_datagram(b, &wc, global));
	}
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return destroy_qps(b);
}

int test_datagrams(struct bench *b)
{
	int err = datagram(b, false);

	return err ?: datagram(b, true);
}

/* One event for each time that it was asked for. */
int test_events(struct bench *b)
{
	unsigned long end = jiffies + PATIENCE;
	int n;

	CHECK(!create_qps(b, IB_QPT_RC, 0));
	atomic_set(&b->events, 0);
	for (n = 0; n < 20; n++) {
		CHECK(!ib_req_notify_cq(b->cq, IB_CQ_NEXT_COMP));
		CHECK(!post_rdma(b, IB_WR_RDMA_WRITE, n, 0, 8, 64, false));
		CHECK(!expect(b, n, IB_WC_RDMA_WRITE, IB_WC_SUCCESS));
		while (atomic_read(&b->events) <= n && time_before(jiffies, end))
			usleep_range(10, 50);
		CHECK(atomic_read(&b->events) == n + 1);
	}
	return destroy_qps(b);
}

/* What the card cannot do is refused when it is posted, and only that. */
int test_refused(struct bench *b)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_RDMA_READ_WITH_INV, IB_WR_LSO,
		IB_WR_MASKED_ATOMIC_CMP_AND_SWP, IB_WR_REG_MR_INTEGRITY,
	};
	const struct ib_send_wr *bad;
	int n;

	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (n = 0; n < ARRAY_SIZE(opcodes); n++) {
		struct ib_send_wr wr = { .opcode = opcodes[n] };

		bad = NULL;
		CHECK(ib_post_send(b->qp[0], &wr, &bad) == -EINVAL);
		CHECK(bad == &wr);
	}
	CHECK(!post_rdma(b, IB_WR_RDMA_WRITE, 1, 0, 8, 64, false));
	CHECK(!expect(b, 1, IB_WC_RDMA_WRITE, IB_WC_SUCCESS));
	return destroy_qps(b);
}

/* What brings data in cannot have its data in the work request. */
int test_inline_answers(struct bench *b)
{
	struct ib_sge sge = sge_at(b, 0, 8);
	struct ib_atomic_wr atomic = {
		.wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
		},
		.remote_addr = b->dma,
		.rkey = b->pd->unsafe_global_rkey,
	};
	struct ib_rdma_wr read = {
		.wr = atomic.wr,
		.remote_addr = b->dma,
		.rkey = b->pd->unsafe_global_rkey,
	};

	read.wr.opcode = IB_WR_RDMA_READ;
	CHECK(!create_qps(b, IB_QPT_RC, 64));
	CHECK(ib_post_send(b->qp[0], &read.wr, NULL) == -EINVAL);
	CHECK(ib_post_send(b->qp[0], &atomic.wr, NULL) == -EINVAL);
	return destroy_qps(b);
}

/* A right that the card does not have is refused, or known to be none. */
int test_access_flags(struct bench *b)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_ON_DEMAND,
	};
	struct ib_qp_init_attr init;
	struct ib_mr *mr;

	mr = b->dev->ops.get_dma_mr(b->pd, IB_ACCESS_LOCAL_WRITE |
					   IB_ACCESS_ON_DEMAND);
	CHECK(IS_ERR(mr) && PTR_ERR(mr) == -EOPNOTSUPP);
	mr = b->dev->ops.get_dma_mr(b->pd, IB_ACCESS_LOCAL_WRITE |
					   IB_ACCESS_RELAXED_ORDERING);
	CHECK(!IS_ERR(mr));
	mr->device = b->dev;	/* as the core would */
	CHECK(!b->dev->ops.dereg_mr(mr, NULL));
	CHECK(!create_qp(b, IB_QPT_RC, 0, &b->qp[0]));
	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE | IB_QP_PORT |
			    IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS));
	CHECK(!ib_query_qp(b->qp[0], &attr, IB_QP_ACCESS_FLAGS, &init));
	CHECK(attr.qp_access_flags == IB_ACCESS_REMOTE_READ);
	CHECK(!ib_destroy_qp(b->qp[0]));
	return 0;
}

/* What UC has not is refused when it is posted, and the QP goes on (IBA 9.8.2). */
int test_unreliable(struct bench *b)
{
	static const enum ib_wr_opcode reliable[] = {
		IB_WR_RDMA_READ,
		IB_WR_ATOMIC_CMP_AND_SWP,
		IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_SEND_WITH_INV,
	};
	struct ib_sge sge = sge_at(b, 0, 8);
	int i;

	CHECK(!create_qps(b, IB_QPT_UC, 0));
	for (i = 0; i < ARRAY_SIZE(reliable); i++) {
		struct ib_atomic_wr wr = {
			.wr = {
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = reliable[i],
				.send_flags = IB_SEND_SIGNALED,
			},
			.remote_addr = b->dma + 64,
			.rkey = b->pd->unsafe_global_rkey,
		};

		CHECK(ib_post_send(b->qp[0], &wr.wr, NULL) == -EINVAL);
	}
	fill(b, 0, 8);
	CHECK(!post_rdma(b, IB_WR_RDMA_WRITE, 1, 0, 8, 64, false));
	CHECK(!expect(b, 1, IB_WC_RDMA_WRITE, IB_WC_SUCCESS));
	CHECK(!post_recv(b, b->qp[1], 2, 128, 8));
	CHECK(!post_rdma(b, IB_WR_SEND, 3, 0, 8, 0, true));
	CHECK(!expect(b, 2, IB_WC_RECV, IB_WC_SUCCESS));
	CHECK(equal(b, 0, 64, 8) && equal(b, 0, 128, 8));
	return destroy_qps(b);
}
