// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues, and XRC, whose QPs receive by nothing else.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " KBUILD_BASENAME ": " fmt

#include <linux/delay.h>

#include "bench.h"
#include "cases.h"

static void srq_event(struct ib_event *event, void *context)
{
	struct bench *b = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		atomic_inc(&b->limits);
}

/* From now on QPs have it. */
static int create_srq(struct bench *b)
{
	struct ib_srq_init_attr attr = {
		.event_handler = srq_event,
		.srq_context = b,
		.attr = { .max_wr = WRS, .max_sge = 2 },
		.srq_type = IB_SRQT_BASIC,
	};

	atomic_set(&b->limits, 0);
	atomic_set(&b->last_wqes, 0);
	b->srq = ib_create_srq(b->pd, &attr);
	CHECK(!IS_ERR(b->srq));
	CHECK(attr.attr.max_wr == WRS && attr.attr.max_sge >= 2);
	return 0;
}

static int destroy_srq(struct bench *b)
{
	CHECK(!ib_destroy_srq_user(b->srq, NULL));
	b->srq = NULL;
	return 0;
}

static int post_srq(struct bench *b, u64 wr_id, u32 at, u32 length)
{
	struct ib_sge sge = sge_at(b, at, length);
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge,
				 .num_sge = 1 };

	return ib_post_srq_recv(b->srq, &wr, NULL);
}

/* What is free of it is posted, and that is @count. */
static int fill_srq(struct bench *b, u32 count)
{
	u32 n;

	for (n = 0; n < count; n++)
		CHECK(!post_srq(b, n, n * 1000, 1000));
	CHECK(post_srq(b, n, 0, 1000) == -ENOMEM);
	return 0;
}

/* A Send of the first QP, into the entry of the SRQ that is @wr_id. */
static int message(struct bench *b, u64 wr_id)
{
	struct ib_wc wc;
	int i;

	CHECK(!post_rdma(b, IB_WR_SEND, 4711, SZ_32K, 1000, 0, false));
	for (i = 0; i < 2; i++) {
		CHECK(!next_wc(b, &wc));
		CHECK(wc.status == IB_WC_SUCCESS);
		if (wc.opcode == IB_WC_SEND)
			CHECK(wc.wr_id == 4711 && wc.qp == b->qp[0]);
		else
			CHECK(wc.wr_id == wr_id && wc.qp == b->qp[1] &&
			      wc.byte_len == 1000);
	}
	return 0;
}

static int wait_count(atomic_t *count, int wanted)
{
	unsigned long end = jiffies + PATIENCE;

	while (atomic_read(count) < wanted && time_before(jiffies, end))
		usleep_range(100, 200);
	/* There is no other one. */
	msleep(50);
	CHECK(atomic_read(count) == wanted);
	return 0;
}

int test_srq(struct bench *b)
{
	struct ib_recv_wr wr = { .num_sge = 31 };
	int lap, n;

	CHECK(!create_srq(b));
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (lap = 0; lap < 50; lap++) {
		fill(b, SZ_32K, 1000);
		CHECK(!fill_srq(b, WRS));
		for (n = 0; n < WRS; n++) {
			CHECK(!message(b, n));
			CHECK(equal(b, n * 1000, SZ_32K, 1000));
		}
	}
	CHECK(ib_post_srq_recv(b->srq, &wr, NULL) == -EINVAL);
	CHECK(post_recv(b, b->qp[0], 1, 0, 100) == -EINVAL);
	CHECK(ib_destroy_srq_user(b->srq, NULL) == -EBUSY);
	CHECK(!destroy_qps(b));
	return destroy_srq(b);
}

int test_srq_limit(struct bench *b)
{
	struct ib_srq_attr attr = { .max_wr = 2 * WRS };
	int n;

	CHECK(!create_srq(b));
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	CHECK(ib_modify_srq(b->srq, &attr, IB_SRQ_MAX_WR) == -EOPNOTSUPP);
	attr.srq_limit = WRS + 1;
	CHECK(ib_modify_srq(b->srq, &attr, IB_SRQ_LIMIT) == -EINVAL);
	CHECK(!fill_srq(b, WRS));
	attr.srq_limit = WRS - 2;
	CHECK(!ib_modify_srq(b->srq, &attr, IB_SRQ_LIMIT));
	for (n = 0; n < 2; n++)
		CHECK(!message(b, n));
	CHECK(!wait_count(&b->limits, 0));
	CHECK(!ib_query_srq(b->srq, &attr));
	CHECK(attr.srq_limit == WRS - 2 && attr.max_wr == WRS);
	CHECK(!message(b, n));
	CHECK(!wait_count(&b->limits, 1));
	CHECK(!ib_query_srq(b->srq, &attr) && !attr.srq_limit);
	CHECK(!destroy_qps(b));
	return destroy_srq(b);
}

/*
 * A QP in ERR takes nothing more, and says so; what is in the SRQ is for others.
 * What it has left in its CQ goes with it, and its place is free again.
 */
int test_srq_last_wqe(struct bench *b)
{
	struct ib_srq_attr limit = { .srq_limit = WRS - 1 };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_wc wc;
	int n;

	CHECK(!create_srq(b));
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	CHECK(!fill_srq(b, WRS));
	CHECK(!ib_modify_srq(b->srq, &limit, IB_SRQ_LIMIT));
	for (n = 0; n < 2; n++)
		CHECK(!post_rdma(b, IB_WR_SEND, n, SZ_32K, 1000, 0, false));
	/* Both have come. */
	CHECK(!wait_count(&b->limits, 1));
	CHECK(!next_wc(b, &wc) && !wc.status && wc.opcode == IB_WC_RECV);
	CHECK(!ib_modify_qp(b->qp[1], &attr, IB_QP_STATE));
	CHECK(!wait_count(&b->last_wqes, 1));
	CHECK(!destroy_qps(b));
	CHECK(!ib_poll_cq(b->cq, 1, &wc));
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (n = 2; n < WRS; n++)
		CHECK(!message(b, n));
	CHECK(!fill_srq(b, WRS));
	CHECK(!destroy_qps(b));
	return destroy_srq(b);
}

int test_srq_drain(struct bench *b)
{
	enum ib_poll_context context;
	struct ib_cq *cq = b->cq;

	CHECK(!create_srq(b));
	for (context = IB_POLL_DIRECT; context <= IB_POLL_LAST_POOL_TYPE;
	     context++) {
		b->cq = ib_alloc_cq(b->dev, NULL, 4 * WRS, 0, context);
		CHECK(!IS_ERR(b->cq));
		CHECK(!create_qps(b, IB_QPT_RC, 0));
		ib_drain_qp(b->qp[0]);
		CHECK(!destroy_qps(b));
		ib_free_cq(b->cq);
	}
	b->cq = cq;
	return destroy_srq(b);
}

/* --- XRC ---------------------------------------------------------------- */

static int create_xrc_qp(struct bench *b, enum ib_qp_type type,
			 struct ib_xrcd *xrcd, struct ib_qp **qp)
{
	struct ib_qp_init_attr attr = {
		.send_cq = type == IB_QPT_XRC_INI ? b->cq : NULL,
		.cap = { .max_send_wr = WRS, .max_send_sge = 1 },
		.qp_type = type,
		.xrcd = xrcd,
	};

	*qp = ib_create_qp(b->pd, &attr);
	CHECK(!IS_ERR(*qp));
	CHECK(!attr.cap.max_recv_wr);
	CHECK(type == IB_QPT_XRC_INI || !attr.cap.max_send_wr);
	return to_init(*qp);
}

/* A work request of the kernel cannot name the peer's SRQ: none is taken. */
int test_xrc(struct bench *b)
{
	struct ib_xrcd *xrcd = ib_alloc_xrcd_user(b->dev, NULL, NULL);
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = WRS, .max_sge = 1 },
		.srq_type = IB_SRQT_XRC,
		.ext.xrc.xrcd = xrcd,
	};
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct ib_qp *target, *sender;
	struct ib_cq *cq = b->cq;

	CHECK(!IS_ERR(xrcd));
	b->cq = ib_alloc_cq(b->dev, NULL, 4 * WRS, 0, IB_POLL_WORKQUEUE);
	CHECK(!IS_ERR(b->cq));
	attr.ext.cq = b->cq;
	b->srq = ib_create_srq(b->pd, &attr);
	CHECK(!IS_ERR(b->srq));
	CHECK(!fill_srq(b, WRS));
	CHECK(!create_xrc_qp(b, IB_QPT_XRC_TGT, xrcd, &target));
	CHECK(!create_xrc_qp(b, IB_QPT_XRC_INI, NULL, &sender));
	CHECK(ib_post_send(sender, &wr, NULL));
	CHECK(ib_post_send(target, &wr, NULL));
	ib_drain_qp(sender);
	ib_drain_qp(target);
	CHECK(!ib_destroy_qp(sender));
	CHECK(!ib_destroy_qp(target));
	CHECK(!destroy_srq(b));
	CHECK(!ib_dealloc_xrcd_user(xrcd, NULL));
	ib_free_cq(b->cq);
	b->cq = cq;
	return 0;
}
