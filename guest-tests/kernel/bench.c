// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the tests of rdma_hca_test share: how the bench is set up, two QPs
 * are connected, work requests posted, and completions polled.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " KBUILD_BASENAME ": " fmt

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "bench.h"
#include "connect.h"

#define BUF_SIZE	SZ_64K

/* --- CQs and QPs --------------------------------------------------------- */

void completion_event(struct ib_cq *cq, void *context)
{
	struct bench *b = context;

	atomic_inc(&b->events);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct bench *b = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(&b->last_wqes);
}

int create_qp(struct bench *b, enum ib_qp_type type, u32 inline_data,
	      struct ib_qp **qp)
{
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = b,
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.srq = b->srq,
		.cap = {
			.max_send_wr = b->wrs,
			.max_recv_wr = b->wrs,
			.max_send_sge = b->sges,
			.max_recv_sge = b->sges,
			.max_inline_data = inline_data,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = type,
	};

	*qp = ib_create_qp(b->pd, &attr);
	CHECK(!IS_ERR(*qp));
	return 0;
}

int connect(struct bench *b)
{
	CHECK(!connect_qp(b->qp[0], b->qp[1]->qp_num));
	CHECK(!connect_qp(b->qp[1], b->qp[0]->qp_num));
	return 0;
}

int create_qps(struct bench *b, enum ib_qp_type type, u32 inline_data)
{
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = create_qp(b, type, inline_data, &b->qp[i]);
	return err ?: connect(b);
}

int destroy_qps(struct bench *b)
{
	CHECK(!ib_destroy_qp(b->qp[0]));
	CHECK(!ib_destroy_qp(b->qp[1]));
	return 0;
}

/* --- work requests and completions -------------------------------------- */

struct ib_sge sge_at(struct bench *b, u32 at, u32 length)
{
	return (struct ib_sge) {
		.addr = b->dma + at,
		.length = length,
		.lkey = b->pd->local_dma_lkey,
	};
}

int post_recv(struct bench *b, struct ib_qp *qp, u64 wr_id, u32 at, u32 length)
{
	struct ib_sge sge = sge_at(b, at, length);
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge,
				 .num_sge = 1 };

	return ib_post_recv(qp, &wr, NULL);
}

/* An RDMA work request to @to, without a completion if @silent. */
int post_rdma(struct bench *b, enum ib_wr_opcode opcode, u64 wr_id, u32 at,
	      u32 length, u32 to, bool silent)
{
	struct ib_sge sge = sge_at(b, at, length);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = wr_id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = silent ? 0 : IB_SEND_SIGNALED,
		},
		.remote_addr = b->dma + to,
		.rkey = b->pd->unsafe_global_rkey,
	};

	return ib_post_send(b->qp[0], &wr.wr, NULL);
}

int next_wc(struct bench *b, struct ib_wc *wc)
{
	unsigned long end = jiffies + PATIENCE;
	int n;

	while (!(n = ib_poll_cq(b->cq, 1, wc)) && time_before(jiffies, end))
		usleep_range(10, 50);
	CHECK(n == 1);
	return 0;
}

int expect(struct bench *b, u64 wr_id, enum ib_wc_opcode opcode,
	   enum ib_wc_status status)
{
	struct ib_wc wc;

	CHECK(!next_wc(b, &wc));
	if (wc.wr_id == wr_id && wc.status == status &&
	    (status || wc.opcode == opcode))
		return 0;
	pr_err("%llu has status %d and opcode %d, not %llu %d %d\n",
	       wc.wr_id, wc.status, wc.opcode, wr_id, status, opcode);
	return -EIO;
}

void fill(struct bench *b, u32 at, u32 length)
{
	get_random_bytes(b->buf + at, length);
}

bool equal(struct bench *b, u32 one, u32 other, u32 length)
{
	return !memcmp(b->buf + one, b->buf + other, length);
}

/* --- the bench ----------------------------------------------------------- */

int bench_init(struct bench *b, struct ib_device *dev)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * WRS };

	b->dev = dev;
	b->wrs = WRS;
	b->sges = 2;
	CHECK(!ib_query_port(dev, PORT, &b->port));
	CHECK(!rdma_query_gid(dev, PORT, 0, &b->gid));
	b->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	CHECK(!IS_ERR(b->pd));
	b->cq = ib_create_cq(dev, completion_event, NULL, b, &attr);
	CHECK(!IS_ERR(b->cq));
	b->buf = kzalloc(BUF_SIZE, GFP_KERNEL);
	CHECK(b->buf);
	b->dma = ib_dma_map_single(dev, b->buf, BUF_SIZE, DMA_BIDIRECTIONAL);
	CHECK(!ib_dma_mapping_error(dev, b->dma));
	return 0;
}

void bench_cleanup(struct bench *b)
{
	ib_dma_unmap_single(b->dev, b->dma, BUF_SIZE, DMA_BIDIRECTIONAL);
	kfree(b->buf);
	ib_destroy_cq(b->cq);
	ib_dealloc_pd(b->pd);
}
