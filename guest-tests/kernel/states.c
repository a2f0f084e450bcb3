// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a QP takes in which state; what becomes of work requests when it
 * leaves one; posting while another thread polls; drains.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " KBUILD_BASENAME ": " fmt

#include <linux/delay.h>
#include <linux/kthread.h>

#include "bench.h"
#include "connect.h"
#include "cases.h"

#define RACE_WRS	40000

/* What is posted is flushed; what is left of a QP in its CQ goes with it. */
int test_flush_and_clean(struct bench *b)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_wc wc;
	int n;

	CHECK(!create_qps(b, IB_QPT_RC, 0));
	for (n = 0; n < WRS; n++)
		CHECK(!post_recv(b, b->qp[0], n, 0, 8));
	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE));
	for (n = 0; n < WRS / 2; n++)
		CHECK(!expect(b, n, IB_WC_RECV, IB_WC_WR_FLUSH_ERR));
	attr.qp_state = IB_QPS_RESET;
	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE));
	CHECK(!ib_poll_cq(b->cq, 1, &wc));
	CHECK(!ib_modify_qp(b->qp[1], &attr, IB_QP_STATE));
	CHECK(!connect(b));
	for (n = 0; n < WRS; n++)
		CHECK(!post_rdma(b, IB_WR_RDMA_WRITE, n, 0, 8, 64, false));
	CHECK(!expect(b, 0, IB_WC_RDMA_WRITE, IB_WC_SUCCESS));
	CHECK(!destroy_qps(b));
	CHECK(!ib_poll_cq(b->cq, 1, &wc));
	return 0;
}

/* What a QP cannot take yet is refused; what it takes in INIT is used later. */
int test_posts_by_state(struct bench *b)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	int i;

	for (i = 0; i < 2; i++)
		CHECK(!create_qp(b, IB_QPT_RC, 0, &b->qp[i]));
	CHECK(post_recv(b, b->qp[0], 1, 0, 100) == -EINVAL);
	CHECK(post_rdma(b, IB_WR_RDMA_WRITE, 1, 0, 8, 64, false) == -EINVAL);
	for (i = 0; i < 2; i++)
		CHECK(!to_init(b->qp[i]));
	CHECK(post_rdma(b, IB_WR_RDMA_WRITE, 1, 0, 8, 64, false) == -EINVAL);
	CHECK(!post_recv(b, b->qp[1], 2, 0, 100));
	for (i = 0; i < 2; i++)
		CHECK(!connect_rtr(b->qp[i], b->qp[1 - i]->qp_num));
	CHECK(post_rdma(b, IB_WR_RDMA_WRITE, 1, 0, 8, 64, false) == -EINVAL);
	for (i = 0; i < 2; i++)
		CHECK(!connect_rts(b->qp[i]));
	CHECK(!post_rdma(b, IB_WR_SEND, 1, 0, 8, 0, true));
	CHECK(!expect(b, 2, IB_WC_RECV, IB_WC_SUCCESS));
	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE));
	CHECK(post_recv(b, b->qp[0], 1, 0, 100) == -EINVAL);
	return destroy_qps(b);
}

/* One thread posts whenever there is room, this one polls. */
static int post_many(void *context)
{
	struct bench *b = context;
	int n, err = 0;

	for (n = 0; n < RACE_WRS && !err; n++)
		while ((err = post_rdma(b, IB_WR_RDMA_WRITE, n, 0, 8, 64,
					false)) == -ENOMEM &&
		       !kthread_should_stop())
			cond_resched();
	while (!kthread_should_stop())
		usleep_range(100, 200);
	return err;
}

static int poll_many(struct bench *b)
{
	int n;

	for (n = 0; n < RACE_WRS; n++) {
		unsigned long end = jiffies + PATIENCE;
		struct ib_wc wc;
		int got;

		while (!(got = ib_poll_cq(b->cq, 1, &wc)) &&
		       time_before(jiffies, end))
			cond_resched();
		CHECK(got == 1);
		CHECK(wc.status == IB_WC_SUCCESS);
		CHECK(wc.wr_id == n);
	}
	return 0;
}

int test_post_while_polling(struct bench *b)
{
	struct task_struct *poster;
	int err;

	/* With one processor they would only take turns. */
	if (num_online_cpus() == 1)
		return 0;
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	poster = kthread_run(post_many, b, "rdma_hca_poster");
	CHECK(!IS_ERR(poster));
	err = poll_many(b);
	CHECK(!kthread_stop(poster));
	return err ?: destroy_qps(b);
}

/* A drain returns when all that was posted before it has ended. */
struct drained {
	struct ib_cqe cqe;
	int count;	/* flushed */
	int all;
};

static void count_drained(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drained *d = container_of(wc->wr_cqe, struct drained, cqe);

	d->count += wc->status == IB_WC_WR_FLUSH_ERR;
	d->all++;
}

static int drain(struct bench *b, enum ib_qp_type type,
		 enum ib_poll_context context)
{
	struct drained d = { .cqe.done = count_drained };
	struct ib_recv_wr wr = { .wr_cqe = &d.cqe };
	struct ib_cq *cq = b->cq;
	int n;

	b->cq = ib_alloc_cq(b->dev, NULL, 4 * WRS, 0, context);
	CHECK(!IS_ERR(b->cq));
	CHECK(!create_qps(b, type, 0));
	for (n = 0; n < WRS - 1; n++)
		CHECK(!ib_post_recv(b->qp[0], &wr, NULL));
	ib_drain_qp(b->qp[0]);
	CHECK(d.count == WRS - 1);
	CHECK(!destroy_qps(b));
	ib_free_cq(b->cq);
	b->cq = cq;
	return 0;
}

int test_drain(struct bench *b)
{
	enum ib_poll_context context;
	int err = 0;

	for (context = IB_POLL_DIRECT; context <= IB_POLL_LAST_POOL_TYPE && !err;
	     context++)
		err = drain(b, IB_QPT_RC, context) ?:
		      drain(b, IB_QPT_UD, context);
	return err;
}

/*
 * The softirq that polls a CQ asks for the next event last. A processor that
 * is slow there, as one that is virtual may be, does it when the completions
 * have been told, and who waited for them destroys the CQ.
 */
static int (*notify)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
static struct ib_cq *slow_cq;

static int notify_late(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	if (cq == READ_ONCE(slow_cq) && in_serving_softirq())
		mdelay(100);
	return notify(cq, flags);
}

static int free_at_once(struct bench *b, int vector)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct drained d = { .cqe.done = count_drained };
	struct ib_recv_wr wr = { .wr_cqe = &d.cqe };
	unsigned long end = jiffies + PATIENCE;

	b->cq = ib_alloc_cq(b->dev, NULL, 4 * WRS, vector, IB_POLL_SOFTIRQ);
	CHECK(!IS_ERR(b->cq));
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	WRITE_ONCE(slow_cq, b->cq);
	CHECK(!ib_post_recv(b->qp[0], &wr, NULL));
	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE));
	while (!READ_ONCE(d.all) && time_before(jiffies, end))
		cond_resched();
	CHECK(d.count == 1);
	CHECK(!destroy_qps(b));
	ib_free_cq(b->cq);
	WRITE_ONCE(slow_cq, NULL);
	return 0;
}

int test_free_polled(struct bench *b)
{
	struct ib_cq *cq = b->cq;
	int cpu, vector, err = 0;

	/* One processor ends the softirq before who waited goes on. */
	if (num_online_cpus() == 1)
		return 0;
	notify = b->dev->ops.req_notify_cq;
	b->dev->ops.req_notify_cq = notify_late;
	/* Whichever processor a vector's softirq runs on, another one waits for it once. */
	for_each_online_cpu(cpu) {
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		for (vector = 0; vector < b->dev->num_comp_vectors && !err;
		     vector++)
			err = free_at_once(b, vector);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	b->dev->ops.req_notify_cq = notify;
	b->cq = cq;
	return err;
}

/*
 * A CQ that has overrun takes nothing any more. What is in the queues of its QPs
 * ends nevertheless for who drains one, and the card is none the worse.
 */
int test_drain_overrun(struct bench *b)
{
	struct drained d = { .cqe.done = count_drained };
	struct ib_recv_wr recv = { .wr_cqe = &d.cqe };
	struct ib_send_wr send = {
		.wr_cqe = &d.cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_cq *cq = b->cq;
	int n;

	b->cq = ib_alloc_cq(b->dev, NULL, 1, 0, IB_POLL_DIRECT);
	CHECK(!IS_ERR(b->cq));
	CHECK(b->cq->cqe < WRS);
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	/* One place is for the end of a drain. */
	for (n = 0; n < WRS - 1; n++) {
		CHECK(!ib_post_recv(b->qp[1], &recv, NULL));
		CHECK(!ib_post_send(b->qp[0], &send, NULL));
	}
	msleep(100);
	ib_drain_sq(b->qp[0]);
	ib_drain_rq(b->qp[1]);
	CHECK(d.count && d.count < 2 * (WRS - 1));
	CHECK(d.all == 2 * (WRS - 1));
	CHECK(!destroy_qps(b));
	ib_free_cq(b->cq);
	b->cq = cq;
	/* The card has not failed. */
	return test_writes(b);
}

/* A QP that only receives has no queue to post a send to. */
int test_receives_only(struct bench *b)
{
	struct ib_qp_init_attr attr = {
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.cap = { .max_recv_wr = WRS, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	b->qp[0] = ib_create_qp(b->pd, &attr);
	CHECK(!IS_ERR(b->qp[0]));
	CHECK(!connect_qp(b->qp[0], b->qp[0]->qp_num));
	CHECK(ib_post_send(b->qp[0], &wr, &bad) == -ENOMEM && bad == &wr);
	CHECK(!ib_destroy_qp(b->qp[0]));
	return 0;
}
