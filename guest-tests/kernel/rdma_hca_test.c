// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs of the kernel on an rdma_hca device: what a storage protocol or
 * IP over InfiniBand does in there. Loading the module runs the tests, with
 * QPs of the device that talk to each other, and succeeds if they do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "rdma_hca_module.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("Tests of the kernel's verbs on an rdma_hca device");
MODULE_LICENSE("Dual BSD/GPL");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the test to run, in place of all");

#define BUF_SIZE	SZ_64K
#define GRH_SIZE	sizeof(struct ib_grh)
#define PATIENCE	(20 * HZ)
#define RACE_WRS	40000

struct bench {
	struct ib_device *dev;
	struct ib_port_attr port;
	union ib_gid gid;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];
	struct ib_srq *srq;	/* of the QPs, or NULL */
	u32 wrs;		/* of each queue */
	u32 sges;
	u8 *buf;
	u64 dma;
	atomic_t events;
	atomic_t limits;	/* events of the SRQ, and of its QPs */
	atomic_t last_wqes;
};

/* --- set-up ------------------------------------------------------------- */

static void completion_event(struct ib_cq *cq, void *context)
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

static int create_qp(struct bench *b, enum ib_qp_type type, u32 inline_data,
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

static int to_rtr(struct bench *b, struct ib_qp *qp, u32 peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_IB,
	};
	int mask = IB_QP_STATE;

	rdma_ah_set_dlid(&attr.ah_attr, b->port.lid);
	rdma_ah_set_port_num(&attr.ah_attr, PORT);
	if (qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			IB_QP_MIN_RNR_TIMER;
	return ib_modify_qp(qp, &attr, mask);
}

static int to_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(qp, &attr, mask);
}

static int connect(struct bench *b)
{
	int i;

	for (i = 0; i < 2; i++) {
		CHECK(!to_init(b->qp[i]));
		CHECK(!to_rtr(b, b->qp[i], b->qp[1 - i]->qp_num));
		CHECK(!to_rts(b->qp[i]));
	}
	return 0;
}

static int create_qps(struct bench *b, enum ib_qp_type type, u32 inline_data)
{
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = create_qp(b, type, inline_data, &b->qp[i]);
	return err ?: connect(b);
}

static int destroy_qps(struct bench *b)
{
	CHECK(!ib_destroy_qp(b->qp[0]));
	CHECK(!ib_destroy_qp(b->qp[1]));
	return 0;
}

/* --- work requests and completions -------------------------------------- */

static struct ib_sge sge_at(struct bench *b, u32 at, u32 length)
{
	return (struct ib_sge) {
		.addr = b->dma + at,
		.length = length,
		.lkey = b->pd->local_dma_lkey,
	};
}

static int post_recv(struct bench *b, struct ib_qp *qp, u64 wr_id, u32 at,
		     u32 length)
{
	struct ib_sge sge = sge_at(b, at, length);
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge,
				 .num_sge = 1 };

	return ib_post_recv(qp, &wr, NULL);
}

/* An RDMA work request to @to, without a completion if @silent. */
static int post_rdma(struct bench *b, enum ib_wr_opcode opcode, u64 wr_id,
		     u32 at, u32 length, u32 to, bool silent)
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

static int next_wc(struct bench *b, struct ib_wc *wc)
{
	unsigned long end = jiffies + PATIENCE;
	int n;

	while (!(n = ib_poll_cq(b->cq, 1, wc)) && time_before(jiffies, end))
		usleep_range(10, 50);
	CHECK(n == 1);
	return 0;
}

static int expect(struct bench *b, u64 wr_id, enum ib_wc_opcode opcode,
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

static void fill(struct bench *b, u32 at, u32 length)
{
	get_random_bytes(b->buf + at, length);
}

static bool equal(struct bench *b, u32 one, u32 other, u32 length)
{
	return !memcmp(b->buf + one, b->buf + other, length);
}

/* --- tests -------------------------------------------------------------- */

/* Laps of the queues, with work requests that only the next one completes. */
static int test_writes(struct bench *b)
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

static int test_reads(struct bench *b)
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
static int test_atomics(struct bench *b)
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
static int test_atomic_writes(struct bench *b)
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
static int test_sends(struct bench *b)
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

static int test_datagrams(struct bench *b)
{
	int err = datagram(b, false);

	return err ?: datagram(b, true);
}

/* One event for each time that it was asked for. */
static int test_events(struct bench *b)
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

/* What is posted is flushed; what is left of a QP in its CQ goes with it. */
static int test_flush_and_clean(struct bench *b)
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

/* What the card cannot do is refused when it is posted, and only that. */
static int test_refused(struct bench *b)
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

/* --- large queues ------------------------------------------------------- */

#define BATCH		512

static int send_batch(struct bench *b)
{
	u32 n, sent = 0, received = 0;
	struct ib_wc wc;

	for (n = 0; n < BATCH; n++)
		CHECK(!post_recv(b, b->qp[1], n, 0, 64));
	for (n = 0; n < BATCH; n++)
		CHECK(!post_rdma(b, IB_WR_SEND, n, SZ_32K, 64, 0, false));
	while (sent < BATCH || received < BATCH) {
		CHECK(!next_wc(b, &wc));
		CHECK(!wc.status);
		CHECK(wc.wr_id == (wc.opcode == IB_WC_SEND ? sent++ :
							     received++));
	}
	return 0;
}

/* Messages all around queues as large as they come, with a CQ of @cqe. */
static int go_round(struct bench *b, u32 cqe, u32 sges)
{
	struct ib_cq_init_attr attr = { .cqe = cqe };
	struct ib_cq *small = b->cq;
	u32 n;

	b->cq = ib_create_cq(b->dev, completion_event, NULL, b, &attr);
	CHECK(!IS_ERR(b->cq));
	b->wrs = b->dev->attrs.max_qp_wr;
	b->sges = sges;
	CHECK(!create_qps(b, IB_QPT_RC, 0));
	fill(b, SZ_32K, 64);
	for (n = 0; n <= b->wrs; n += BATCH) {
		CHECK(!send_batch(b));
		cond_resched();
	}
	CHECK(equal(b, 0, SZ_32K, 64));
	CHECK(!destroy_qps(b));
	ib_destroy_cq(b->cq);
	b->cq = small;
	b->wrs = WRS;
	b->sges = 2;
	return 0;
}

static int test_largest(struct bench *b)
{
	const struct ib_device_attr *attrs = &b->dev->attrs;

	return go_round(b, attrs->max_cqe,
			min(attrs->max_send_sge, attrs->max_recv_sge) / 2);
}

/* Memory in which hardly more than single pages are free. */
struct hog {
	struct page **page;
	unsigned long count;
	struct list_head blocks;	/* of more than one page */
};

/* What is still whole. */
static void hog_blocks(struct hog *hog, gfp_t gfp)
{
	struct page *block;
	int order;

	for (order = get_order(SZ_256K); order; order--) {
		while ((block = alloc_pages(gfp, order))) {
			set_page_private(block, order);
			list_add(&block->lru, &hog->blocks);
		}
	}
}

static int hog_memory(struct hog *hog)
{
	unsigned long i, room = totalram_pages();
	gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;

	hog->page = kvcalloc(room, sizeof(*hog->page), GFP_KERNEL);
	CHECK(hog->page);
	while (hog->count < room && (hog->page[hog->count] = alloc_page(gfp))) {
		hog->count++;
		cond_resched();
	}
	for (i = 0; i < hog->count; i += 2) {
		__free_page(hog->page[i]);
		hog->page[i] = NULL;
	}
	hog_blocks(hog, gfp);
	return 0;
}

static void free_hog(struct hog *hog)
{
	struct page *block, *next;
	unsigned long i;

	list_for_each_entry_safe(block, next, &hog->blocks, lru)
		__free_pages(block, page_private(block));
	for (i = 0; i < hog->count; i++) {
		if (hog->page[i])
			__free_page(hog->page[i]);
		cond_resched();
	}
	kvfree(hog->page);
}

static int test_fragmented(struct bench *b)
{
	struct hog hog = { .blocks = LIST_HEAD_INIT(hog.blocks) };
	int err;

	err = hog_memory(&hog);
	if (!err)
		err = go_round(b, b->dev->attrs.max_cqe / 4, 2);
	free_hog(&hog);
	return err;
}

/* --- states and drains --------------------------------------------------- */

/* What a QP cannot take yet is refused; what it takes in INIT is used later. */
static int test_posts_by_state(struct bench *b)
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
		CHECK(!to_rtr(b, b->qp[i], b->qp[1 - i]->qp_num));
	CHECK(post_rdma(b, IB_WR_RDMA_WRITE, 1, 0, 8, 64, false) == -EINVAL);
	for (i = 0; i < 2; i++)
		CHECK(!to_rts(b->qp[i]));
	CHECK(!post_rdma(b, IB_WR_SEND, 1, 0, 8, 0, true));
	CHECK(!expect(b, 2, IB_WC_RECV, IB_WC_SUCCESS));
	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE));
	CHECK(post_recv(b, b->qp[0], 1, 0, 100) == -EINVAL);
	return destroy_qps(b);
}

/* What brings data in cannot have its data in the work request. */
static int test_inline_answers(struct bench *b)
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
static int test_access_flags(struct bench *b)
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

static int test_post_while_polling(struct bench *b)
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
	int count;
};

static void count_drained(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drained *d = container_of(wc->wr_cqe, struct drained, cqe);

	d->count += wc->status == IB_WC_WR_FLUSH_ERR;
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

static int test_drain(struct bench *b)
{
	enum ib_poll_context context;
	int err = 0;

	for (context = IB_POLL_DIRECT; context <= IB_POLL_LAST_POOL_TYPE && !err;
	     context++)
		err = drain(b, IB_QPT_RC, context) ?:
		      drain(b, IB_QPT_UD, context);
	return err;
}

/* --- shared receive queues ----------------------------------------------- */

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

static int test_srq(struct bench *b)
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

static int test_srq_limit(struct bench *b)
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
static int test_srq_last_wqe(struct bench *b)
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

static int test_srq_drain(struct bench *b)
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
static int test_xrc(struct bench *b)
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

static const struct {
	const char *name;
	int (*run)(struct bench *b);
} tests[] = {
	{ "writes", test_writes },
	{ "reads", test_reads },
	{ "atomics", test_atomics },
	{ "atomic-writes", test_atomic_writes },
	{ "sends", test_sends },
	{ "datagrams", test_datagrams },
	{ "events", test_events },
	{ "refused", test_refused },
	{ "largest-queues", test_largest },
	{ "fragmented-memory", test_fragmented },
	{ "flush-and-clean", test_flush_and_clean },
	{ "posts-by-state", test_posts_by_state },
	{ "inline-answers", test_inline_answers },
	{ "access-flags", test_access_flags },
	{ "post-while-polling", test_post_while_polling },
	{ "drain", test_drain },
	{ "srq", test_srq },
	{ "srq-limit", test_srq_limit },
	{ "srq-last-wqe", test_srq_last_wqe },
	{ "srq-drain", test_srq_drain },
	{ "xrc", test_xrc },
};

/* --- module ------------------------------------------------------------- */

static int bench_init(struct bench *b, struct ib_device *dev)
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

static void bench_cleanup(struct bench *b)
{
	ib_dma_unmap_single(b->dev, b->dma, BUF_SIZE, DMA_BIDIRECTIONAL);
	kfree(b->buf);
	ib_destroy_cq(b->cq);
	ib_dealloc_pd(b->pd);
}

static int tested = -ENODEV;

/* A test that fails leaves what it has made: the guest is of no more use. */
static int test_device(struct ib_device *dev)
{
	struct bench b = {};
	int i, err;

	err = bench_init(&b, dev);
	for (i = 0; i < ARRAY_SIZE(tests) && !err; i++) {
		if (*only && strcmp(only, tests[i].name))
			continue;
		err = tests[i].run(&b);
		pr_info("%s: %s\n", tests[i].name, err ? "failed" : "passed");
	}
	if (!err)
		bench_cleanup(&b);
	return err;
}

static int add_device(struct ib_device *dev)
{
	if (is_rdma_hca(dev))
		tested = test_device(dev);
	return -EOPNOTSUPP;	/* not to be told when it goes */
}

static struct ib_client client = {
	.name = "rdma_hca_test",
	.add = add_device,
};

static int __init rdma_hca_test_init(void)
{
	return run_tests(&client, &tested);
}
module_init(rdma_hca_test_init);

static void __exit rdma_hca_test_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(rdma_hca_test_exit);
