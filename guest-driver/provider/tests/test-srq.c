// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */
#include <stdlib.h>

#include "../rhca_uverbs.h"
#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

void test_srq_caps(void)
{
	struct ibv_srq_init_attr attr = {};
	struct rhca_srq *srq;
	uint32_t sges;

	for (sges = 0; sges <= 30; sges++) {
		srq = new_srq(5, sges);
		CHECK_EQ(srq->wq.entries, 8);
		CHECK_EQ(srq->num_free, 8);
		CHECK(srq->wq.shift >= 6 && srq->wq.shift <= 9);
		CHECK(32 + 16 * srq->max_sge <= 1u << srq->wq.shift);
		CHECK_EQ(kernel.srq_req.len, 8u << srq->wq.shift);
		CHECK_EQ(kernel.srq_req.entry_sz_log, srq->wq.shift);
		CHECK_EQ(kernel.srq_req.buf_addr, (uintptr_t)srq->wq.buf.addr);
		CHECK_EQ(kernel.srq_req.db_addr, (uintptr_t)srq->db);
		rhca_destroy_srq(&srq->vsrq.srq);
	}
	attr.attr.max_wr = RHCA_MAX_WR + 1;
	CHECK_FAILS(rhca_create_srq(pd, &attr), EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = 31;
	CHECK_FAILS(rhca_create_srq(pd, &attr), EINVAL);
	free(ctx.srqs);
	ctx.srqs = NULL;
	attr.attr.max_sge = 1;
	CHECK_FAILS(rhca_create_srq(pd, &attr), EOPNOTSUPP);
}

/* Two QPs end what they took in any order; each is told what it was. */
void test_srq_order(void)
{
	static const uint8_t order[] = { 3, 0, 7, 1, 2, 6, 5, 4 };
	struct rhca_srq *srq = new_srq(8, 1);
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp[] = { new_srq_qp(cq, srq), new_srq_qp(cq, srq) };
	uint32_t base, i, pi = 0;
	struct ibv_wc wc[8];

	for (base = 0; base < 80; base += 8) {
		for (i = 0; i < 8; i++)
			CHECK_EQ(post_srq(srq, base + i), 0);
		CHECK_EQ(post_srq(srq, 0), ENOMEM);
		for (i = 0; i < 8; i++)
			produce(cq, pi++,
				make_srq_cqe(qp[i % 2],
					     tag_of(srq, base + order[i])));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 8);
		for (i = 0; i < 8; i++) {
			CHECK_EQ(wc[i].wr_id, base + order[i]);
			CHECK_EQ(wc[i].qp_num, qp[i % 2]->vqp.qp.qp_num);
		}
	}
	rhca_destroy_qp(&qp[1]->vqp.qp);
	rhca_destroy_qp(&qp[0]->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

static int resize_srq(struct rhca_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return rhca_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR);
}

/* Entry @index is where the card will look for it, and names the next slot. */
static void check_moved(struct rhca_srq *srq, uint32_t index, uint32_t tag)
{
	struct rdma_hca_next_unit *wqe = rhca_wq_slot(&srq->wq, index);

	CHECK_EQ(le32toh(wqe->tag), tag);
	CHECK_EQ(le32toh(wqe->nda_nop) & RDMA_HCA_NEXT_NDA,
		 rhca_wq_offset(&srq->wq, index + 1));
	CHECK_EQ(srq->wq.wr_id[tag], index);
}

void test_srq_resize(void)
{
	struct rhca_srq *srq = new_srq(8, 1);
	struct rhca_cq *cq = new_cq(16);
	struct rhca_qp *qp = new_srq_qp(cq, srq);
	uint32_t tag[16], i;
	struct ibv_wc wc[16];
	void *ring;

	for (i = 0; i < 13; i++) {
		CHECK_EQ(post_srq(srq, i), 0);
		tag[i] = tag_of(srq, i);
		if (i >= 8 - 3)
			continue;
		produce(cq, i, make_srq_cqe(qp, tag[i]));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, wc), 1);
	}
	/* 5 to 12 are posted, in a ring of 8. */
	CHECK_EQ(post_srq(srq, 13), ENOMEM);
	ring = srq->wq.buf.addr;
	kernel.modify_srq_err = EIO;
	CHECK_EQ(resize_srq(srq, 16), EIO);
	kernel.modify_srq_err = 0;
	CHECK(srq->wq.buf.addr == ring && srq->wq.entries == 8);
	CHECK_EQ(post_srq(srq, 13), ENOMEM);
	CHECK_EQ(resize_srq(srq, 4), EINVAL);
	CHECK_EQ(resize_srq(srq, 0), EINVAL);
	CHECK_EQ(resize_srq(srq, UINT32_MAX), EINVAL);
	CHECK_EQ(resize_srq(srq, 13), 0);
	CHECK_EQ(kernel.modify_srq_size, sizeof(struct rhca_modify_srq_cmd));
	CHECK_EQ(kernel.modify_srq_req.buf_addr, (uintptr_t)srq->wq.buf.addr);
	CHECK_EQ(kernel.modify_srq_req.len, 16u << srq->wq.shift);
	for (i = 5; i < 13; i++)
		check_moved(srq, i, tag[i]);
	for (; i < 16 + 5; i++)
		CHECK_EQ(post_srq(srq, i), 0);
	CHECK_EQ(post_srq(srq, 0), ENOMEM);
	for (i = 5; i < 16 + 5; i++)
		produce(cq, i, make_srq_cqe(qp, tag_of(srq, i)));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 16, wc), 16);
	for (i = 0; i < 16; i++)
		CHECK_EQ(wc[i].wr_id, i + 5);
	/* Tags are left from when it was larger; the room is the ring's. */
	CHECK_EQ(resize_srq(srq, 2), 0);
	CHECK_EQ(post_srq(srq, 0), 0);
	CHECK_EQ(post_srq(srq, 1), 0);
	CHECK_EQ(post_srq(srq, 2), ENOMEM);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* What a QP had taken goes back when it goes, or is reset. */
void test_srq_clean(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct rhca_srq *srq = new_srq(4, 1);
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *a = new_srq_qp(cq, srq);
	struct rhca_qp *b = new_srq_qp(cq, srq);
	struct ibv_wc wc[8];
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(post_srq(srq, i), 0);
	for (i = 0; i < 3; i++)
		produce(cq, i, make_srq_cqe(i == 1 ? b : a, tag_of(srq, i)));
	produce(cq, 3, make_cqe(a, true, 0, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_modify_qp(&a->vqp.qp, &reset, IBV_QP_STATE), 0);
	CHECK_EQ(srq->num_free, 2);
	produce(cq, 4, make_srq_cqe(a, tag_of(srq, 3)));
	rhca_destroy_qp(&a->vqp.qp);
	CHECK_EQ(srq->num_free, 3);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 1);
	CHECK_EQ(wc[0].wr_id, 1);
	CHECK_EQ(srq->num_free, 4);
	rhca_destroy_qp(&b->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_bad_srqs(void)
{
	struct ibv_xrcd *xrcd = new_xrcd();
	struct rhca_cq *cq = new_cq(8);
	struct rhca_srq *xsrq = new_xsrq(cq, xrcd);
	struct rhca_srq *srq = new_srq(1, 1);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
	};
	struct ibv_qp_init_attr qp = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.qp_type = IBV_QPT_RC,
		.srq = &xsrq->vsrq.srq,
	};
	uint32_t number;

	CHECK_EQ(rhca_get_srq_num(&srq->vsrq.srq, &number), EINVAL);
	CHECK_FAILS(rhca_create_srq_ex(&ctx.vctx.context, &attr), EINVAL);
	attr.srq_type = IBV_SRQT_TM;
	CHECK_FAILS(rhca_create_srq_ex(&ctx.vctx.context, &attr), EOPNOTSUPP);
	attr.srq_type = IBV_SRQT_BASIC;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	CHECK_FAILS(rhca_create_srq_ex(&ctx.vctx.context, &attr), EINVAL);
	/* An XRC SRQ is for targets; a sender has none. */
	CHECK_FAILS(rhca_create_qp(pd, &qp), EINVAL);
	qp.qp_type = IBV_QPT_XRC_SEND;
	CHECK_FAILS(rhca_create_qp(pd, &qp), EINVAL);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_srq(&xsrq->vsrq.srq);
	rhca_close_xrcd(xrcd);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* --- several threads: each posts, and ends what it posted by its own CQ --- */

#define THREADS 4
#define THREAD_POSTS 20000

struct poster {
	pthread_t thread;
	struct rhca_srq *srq;
	struct rhca_cq *cq;
	struct rhca_qp *qp;
	uint32_t number;
	int bad;
};

/* The WQE with @wr_id, of those that are in the ring. */
static uint32_t find_tag(struct rhca_srq *srq, uint64_t wr_id)
{
	uint32_t tag;

	pthread_spin_lock(&srq->wq.lock);
	for (tag = 0; srq->wq.wr_id[tag] != wr_id; tag++)
		;
	pthread_spin_unlock(&srq->wq.lock);
	return tag;
}

static void *post_and_poll(void *arg)
{
	struct poster *p = arg;
	struct ibv_wc wc;
	uint64_t wr_id;
	uint32_t i;

	for (i = 0; i < THREAD_POSTS; i++) {
		wr_id = (uint64_t)p->number << 32 | i;
		p->bad += post_srq(p->srq, wr_id) != 0;
		produce(p->cq, i, make_srq_cqe(p->qp, find_tag(p->srq, wr_id)));
		p->bad += rhca_poll_cq(&p->cq->vcq.cq, 1, &wc) != 1 ||
			  wc.wr_id != wr_id;
	}
	return NULL;
}

void test_srq_threads(void)
{
	struct rhca_srq *srq = new_srq(THREADS, 1);
	struct poster p[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		p[i] = (struct poster){ .srq = srq, .number = i + 1 };
		p[i].cq = new_cq(2);
		p[i].qp = new_srq_qp(p[i].cq, srq);
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&p[i].thread, NULL, post_and_poll, &p[i]);
	for (i = 0; i < THREADS; i++) {
		pthread_join(p[i].thread, NULL);
		CHECK_EQ(p[i].bad, 0);
		rhca_destroy_qp(&p[i].qp->vqp.qp);
		rhca_destroy_cq(&p[i].cq->vcq.cq);
	}
	CHECK_EQ(srq->num_free, THREADS);
	CHECK_EQ(le32toh(*srq->db), THREADS * THREAD_POSTS & 0xffff);
	rhca_destroy_srq(&srq->vsrq.srq);
}
