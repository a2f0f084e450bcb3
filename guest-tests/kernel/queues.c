// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queues as large as they come, also where the kernel has hardly more than
 * single pages to make them of.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " KBUILD_BASENAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>

#include "bench.h"
#include "cases.h"

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

int test_largest(struct bench *b)
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

int test_fragmented(struct bench *b)
{
	struct hog hog = { .blocks = LIST_HEAD_INIT(hog.blocks) };
	int err;

	err = hog_memory(&hog);
	if (!err)
		err = go_round(b, b->dev->attrs.max_cqe / 4, 2);
	free_hog(&hog);
	return err;
}
