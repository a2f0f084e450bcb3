// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: entries that the card writes, and what one reads. */
#include <string.h>
#include <time.h>

#include <util/util.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

void test_recv_completions(void)
{
	static const struct {
		uint8_t bth;
		enum ibv_wc_opcode opcode;
		unsigned int flags;
	} rows[] = {
		{ 0x02, IBV_WC_RECV, 0 },
		{ 0x03, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x04, IBV_WC_RECV, 0 },
		{ 0x05, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x09, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
		{ 0x0b, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
		{ 0x23, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x2b, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
		{ 0x64, IBV_WC_RECV, 0 },
		{ 0x65, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x16, IBV_WC_RECV, IBV_WC_WITH_INV },
		{ 0x17, IBV_WC_RECV, IBV_WC_WITH_INV },
	};
	struct rhca_cq *cq = new_cq(16);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct rdma_hca_cqe cqe;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cqe = make_cqe(qp, false, 0, rows[i].bth);
		cqe.rqpn = htole32(0x123456);
		cqe.rlid_path = htole32(0xbeef8103);
		if (rows[i].flags == IBV_WC_WITH_INV)
			cqe.inv_rkey = htole32(0xdeadbeef);
		else
			cqe.imm = htobe32(0xdeadbeef);
		cqe.byte_cnt = htole32(140);
		produce(cq, i, cqe);
		memset(&wc, 0xff, sizeof(wc));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.opcode, rows[i].opcode);
		CHECK_EQ(wc.wc_flags, rows[i].flags | IBV_WC_GRH);
		CHECK_EQ(wc.src_qp, 0x123456);
		CHECK_EQ(wc.slid, 0xbeef);
		CHECK_EQ(wc.sl, 3);
		CHECK_EQ(wc.dlid_path_bits, 1);
		CHECK_EQ(wc.byte_len, 140);
		CHECK_EQ(wc.qp_num, qp->vqp.qp.qp_num);
		CHECK_EQ(wc.vendor_err, 0);
		if (rows[i].flags == IBV_WC_WITH_INV)
			CHECK_EQ(wc.invalidated_rkey, 0xdeadbeef);
		else if (rows[i].flags)
			CHECK_EQ(wc.imm_data, htobe32(0xdeadbeef));
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/*
 * With a VLAN and an IPv4 header or not, which are where InfiniBand has LIDs.
 * The SL of a datagram says which header it had, that of others the priority.
 */
static void check_roce_completion(enum ibv_qp_type type, uint8_t bth,
				  uint32_t ipv4, uint8_t sl)
{
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, type, &small_cap);
	struct rdma_hca_cqe cqe = make_cqe(qp, false, 0, bth);
	struct ibv_wc wc;

	cqe.rqpn = htole32(0x42);
	cqe.rlid_path = htole32(RDMA_HCA_CQE_HAS_VLAN | RDMA_HCA_CQE_GRH |
				ipv4 | FIELD_PREP(RDMA_HCA_CQE_VLAN, 0x123) |
				FIELD_PREP(RDMA_HCA_CQE_SL, 5));
	produce(cq, 0, cqe);
	memset(&wc, 0xff, sizeof(wc));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.wc_flags, IBV_WC_GRH);
	CHECK_EQ(wc.src_qp, 0x42);
	CHECK_EQ(wc.slid, 0);
	CHECK_EQ(wc.dlid_path_bits, 0);
	CHECK_EQ(wc.sl, sl);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_roce_completions(void)
{
	ctx.is_roce = true;
	check_roce_completion(IBV_QPT_UD, 0x64, RDMA_HCA_CQE_IPV4, 2);
	check_roce_completion(IBV_QPT_UD, 0x64, 0, 1);
	check_roce_completion(IBV_QPT_RC, 0x04, RDMA_HCA_CQE_IPV4, 5);
	check_roce_completion(IBV_QPT_RC, 0x04, 0, 5);
}

void test_send_completions(void)
{
	static const struct {
		uint8_t card;
		enum ibv_wc_opcode opcode;
	} rows[] = {
		{ RDMA_HCA_OPCODE_SEND, IBV_WC_SEND },
		{ RDMA_HCA_OPCODE_SEND_IMM, IBV_WC_SEND },
		{ RDMA_HCA_OPCODE_RDMA_WRITE, IBV_WC_RDMA_WRITE },
		{ RDMA_HCA_OPCODE_RDMA_WRITE_IMM, IBV_WC_RDMA_WRITE },
		{ RDMA_HCA_OPCODE_RDMA_READ, IBV_WC_RDMA_READ },
		{ RDMA_HCA_OPCODE_ATOMIC_CS, IBV_WC_COMP_SWAP },
		{ RDMA_HCA_OPCODE_ATOMIC_FA, IBV_WC_FETCH_ADD },
		{ RDMA_HCA_OPCODE_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE },
		{ RDMA_HCA_OPCODE_FLUSH, IBV_WC_FLUSH },
		{ RDMA_HCA_OPCODE_SEND_INV, IBV_WC_SEND },
		{ RDMA_HCA_OPCODE_LOCAL_INV, IBV_WC_LOCAL_INV },
		{ RDMA_HCA_OPCODE_BIND_MW, IBV_WC_BIND_MW },
	};
	struct rhca_cq *cq = new_cq(16);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		produce(cq, i, make_cqe(qp, true, i, rows[i].card));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.opcode, rows[i].opcode);
		CHECK_EQ(wc.wc_flags, 0);
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_errors(void)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} rows[] = {
		{ 0x00, IBV_WC_GENERAL_ERR },
		{ 0x01, IBV_WC_LOC_LEN_ERR },
		{ 0x02, IBV_WC_LOC_QP_OP_ERR },
		{ 0x04, IBV_WC_LOC_PROT_ERR },
		{ 0x05, IBV_WC_WR_FLUSH_ERR },
		{ 0x06, IBV_WC_MW_BIND_ERR },
		{ 0x10, IBV_WC_BAD_RESP_ERR },
		{ 0x11, IBV_WC_LOC_ACCESS_ERR },
		{ 0x12, IBV_WC_REM_INV_REQ_ERR },
		{ 0x13, IBV_WC_REM_ACCESS_ERR },
		{ 0x14, IBV_WC_REM_OP_ERR },
		{ 0x15, IBV_WC_RETRY_EXC_ERR },
		{ 0x16, IBV_WC_RNR_RETRY_EXC_ERR },
		{ 0x20, IBV_WC_LOC_RDD_VIOL_ERR },
		{ 0x21, IBV_WC_REM_INV_RD_REQ_ERR },
		{ 0x22, IBV_WC_REM_ABORT_ERR },
		{ 0x23, IBV_WC_INV_EECN_ERR },
		{ 0x24, IBV_WC_INV_EEC_STATE_ERR },
		{ 0x07, IBV_WC_GENERAL_ERR },
		{ 0x25, IBV_WC_GENERAL_ERR },
		{ 0xff, IBV_WC_GENERAL_ERR },
	};
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct rdma_hca_cqe cqe;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		qp->sq.wr_id[i % 4] = i;
		cqe = make_cqe(qp, true, i, RDMA_HCA_OPCODE_INVALID);
		cqe.err = htole32(0x0300 | rows[i].syndrome);
		produce(cq, i, cqe);
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.status, rows[i].status);
		CHECK_EQ(wc.vendor_err, 3);
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.qp_num, qp->vqp.qp.qp_num);
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* The entries of a QP that goes are gone; the others stay in order. */
void test_clean(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *a = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct rhca_qp *b = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_wc wc[8];
	uint32_t pi = 0;
	int i;

	/* Begin in the middle of the ring, so that it wraps. */
	for (i = 0; i < 5; i++) {
		CHECK_EQ(post_nop_sends(a, 1, 0), 0);
		produce(cq, pi++, make_cqe(a, true, i, RDMA_HCA_OPCODE_SEND));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 1);
	}
	CHECK_EQ(post_nop_sends(b, 4, 100), 0);
	CHECK_EQ(rhca_post_recv(&a->vqp.qp, &recv, &bad), 0);
	for (i = 0; i < 8; i++)
		produce(cq, pi++,
			i % 2 ? make_cqe(b, true, i / 2, RDMA_HCA_OPCODE_SEND) :
				make_cqe(a, true, 5 + i / 2,
					 RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_modify_qp(&a->vqp.qp, &attr, IBV_QP_STATE), 0);
	CHECK_EQ(le32toh(*cq->ci_db), pi - 4);
	CHECK_EQ(a->sq.head + a->sq.tail + a->rq.head, 0);
	CHECK_EQ(*a->rq_db, 0);
	/* The freed places can be written again. */
	produce(cq, pi++, make_cqe(a, true, 0, RDMA_HCA_OPCODE_SEND));
	rhca_destroy_qp(&a->vqp.qp);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 4);
	for (i = 0; i < 4; i++)
		CHECK_EQ(wc[i].wr_id, 100 + i);
	CHECK_EQ(le32toh(*cq->ci_db), pi);
	rhca_destroy_qp(&b->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static struct {
	struct rhca_cq *cq;
	struct rhca_qp *qp;
	uint32_t pi;
} resizing;

static void produce_while_resizing(void)
{
	produce(resizing.cq, resizing.pi++,
		make_cqe(resizing.qp, true, 3, RDMA_HCA_OPCODE_SEND));
}

void test_resize(void)
{
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc[8];
	uint32_t i;

	CHECK_EQ(post_nop_sends(qp, 4, 10), 0);
	for (i = 0; i < 3; i++)
		produce(cq, i, make_cqe(qp, true, i, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, wc), 1);
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 1), EINVAL);
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 0), EINVAL);
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 65537), EINVAL);

	resizing.cq = cq;
	resizing.qp = qp;
	resizing.pi = 3;
	kernel.on_resize = produce_while_resizing;
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 60), 0);
	kernel.on_resize = NULL;
	CHECK_EQ(kernel.resize_addr, (uintptr_t)cq->buf.addr);
	CHECK_EQ(cq->vcq.cq.cqe, 64);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 3);
	for (i = 0; i < 3; i++)
		CHECK_EQ(wc[i].wr_id, 11 + i);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_arm(void)
{
	struct rhca_cq *cq = new_cq(4);

	CHECK_EQ(rhca_req_notify_cq(&cq->vcq.cq, 0), 0);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB), 2u << 24 | cq->cqn);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB + 4), 0);
	cq->ci = 0x12345;
	rhca_store_record(cq->ci_db, cq->ci);
	CHECK_EQ(rhca_req_notify_cq(&cq->vcq.cq, 1), 0);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB), 1u << 24 | cq->cqn);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB + 4), 0x12345);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_start_poll(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *ex = rhca_create_cq_ex(&ctx.vctx.context, &attr);
	struct rhca_cq *cq = to_rcq_ex(ex);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_poll_cq_attr poll = {};
	struct rdma_hca_cqe stray;

	CHECK_EQ(ibv_start_poll(ex, &poll), ENOENT);
	CHECK_EQ(post_nop_sends(qp, 2, 20), 0);
	produce(cq, 0, make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND));
	/* An entry of no QP is passed by. */
	stray = make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND);
	stray.my_qpn = htole32(0xfe);
	produce(cq, 1, stray);
	produce(cq, 2, make_cqe(qp, true, 1, RDMA_HCA_OPCODE_RDMA_READ));
	CHECK_EQ(ibv_start_poll(ex, &poll), 0);
	CHECK_EQ(ex->wr_id, 20);
	CHECK_EQ(ex->status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_SEND);
	CHECK_EQ(ibv_next_poll(ex), 0);
	CHECK_EQ(ex->wr_id, 21);
	CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_RDMA_READ);
	CHECK_EQ(ibv_wc_read_qp_num(ex), qp->vqp.qp.qp_num);
	/* What is being read is not given back yet. */
	CHECK_EQ(le32toh(*cq->ci_db), 0);
	CHECK_EQ(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	CHECK_EQ(le32toh(*cq->ci_db), 3);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_cq_attr(void)
{
	struct ibv_modify_cq_attr modify = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 7, .cq_period = 8 },
	};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *ex = rhca_create_cq_ex(&ctx.vctx.context, &attr);

	CHECK(ex);
	CHECK(!to_rcq_ex(ex)->single_threaded);
	CHECK_EQ(rhca_modify_cq(ibv_cq_ex_to_cq(ex), &modify), 0);
	CHECK(!memcmp(&modify, &kernel.modify_cq, sizeof(modify)));
	rhca_destroy_cq(ibv_cq_ex_to_cq(ex));
	attr.flags = 1 << 2;
	CHECK_FAILS(rhca_create_cq_ex(&ctx.vctx.context, &attr), EOPNOTSUPP);
	attr.comp_mask = 1 << 2;
	CHECK_FAILS(rhca_create_cq_ex(&ctx.vctx.context, &attr), EOPNOTSUPP);
	/* The domain of a CQ is a parent domain. */
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	CHECK_FAILS(rhca_create_cq_ex(&ctx.vctx.context, &attr), EINVAL);
	attr.parent_domain = pd;
	CHECK_FAILS(rhca_create_cq_ex(&ctx.vctx.context, &attr), EINVAL);
}

static struct rhca_cq *new_cq_ex(uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .wc_flags = wc_flags };
	struct ibv_cq_ex *ex = rhca_create_cq_ex(&ctx.vctx.context, &attr);

	return ex ? to_rcq_ex(ex) : NULL;
}

/* Each field for itself, and those that there are not. */
void test_wc_flags(void)
{
	struct rhca_cq *cq;
	int bit;

	ctx.has_clock = true;
	for (bit = 0; bit < 64; bit++) {
		cq = new_cq_ex(1ull << bit);
		if (bit > 11 || 1ull << bit == IBV_WC_EX_WITH_TM_INFO) {
			CHECK(!cq);
			CHECK_EQ(errno, EOPNOTSUPP);
			continue;
		}
		CHECK(cq);
		rhca_destroy_cq(&cq->vcq.cq);
	}
}

static void check_cvlan(bool is_roce, uint32_t path, uint16_t tag)
{
	struct ibv_poll_cq_attr poll = {};
	struct rdma_hca_cqe cqe;
	struct rhca_cq *cq;
	struct rhca_qp *qp;

	ctx.is_roce = is_roce;
	cq = new_cq_ex(IBV_WC_EX_WITH_CVLAN);
	qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	cqe = make_cqe(qp, false, 0, 0x64);
	cqe.rlid_path = htole32(path);
	produce(cq, 0, cqe);
	CHECK_EQ(ibv_start_poll(&cq->vcq.cq_ex, &poll), 0);
	CHECK_EQ(ibv_wc_read_cvlan(&cq->vcq.cq_ex), tag);
	ibv_end_poll(&cq->vcq.cq_ex);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_cvlan(void)
{
	check_cvlan(true, RDMA_HCA_CQE_HAS_VLAN | 0x123 << 16 | 5, 0xa123);
	check_cvlan(true, 0x123 << 16 | 5, 0);
	check_cvlan(false, RDMA_HCA_CQE_HAS_VLAN | 0x123 << 16, 0);
}

static void check_flow_tag(struct rdma_hca_cqe cqe, uint32_t tag)
{
	struct rhca_cq *cq = new_cq_ex(IBV_WC_EX_WITH_FLOW_TAG);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_poll_cq_attr poll = {};

	cqe.my_qpn = htole32(qp->vqp.qp.qp_num);
	produce(cq, 0, cqe);
	CHECK_EQ(ibv_start_poll(&cq->vcq.cq_ex, &poll), 0);
	CHECK_EQ(ibv_wc_read_flow_tag(&cq->vcq.cq_ex), tag);
	ibv_end_poll(&cq->vcq.cq_ex);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* Of what is no frame the word is immediate data, a key, or the syndrome. */
void test_flow_tag(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct rdma_hca_cqe cqe;
	static const struct {
		bool is_send;
		uint8_t opcode;
		uint32_t tag;
	} rows[] = {
		{ false, 0x64, 0xfedcba98 }, /* UD Send only */
		{ false, 0x65, 0 }, /* with immediate */
		{ false, 0x17, 0 }, /* RC Send only with invalidate */
		{ false, RDMA_HCA_OPCODE_INVALID, 0 },
		{ true, RDMA_HCA_OPCODE_SEND, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cqe = make_cqe(qp, rows[i].is_send, 0, rows[i].opcode);
		cqe.flow_tag = htole32(0xfedcba98);
		check_flow_tag(cqe, rows[i].tag);
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* --- time --------------------------------------------------------------- */

#define NS_PER_S 1000000000ull

static uint64_t wallclock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct rdma_hca_cqe timed_cqe(struct rhca_qp *qp, uint32_t index,
				     uint64_t now)
{
	struct rdma_hca_cqe cqe =
		make_cqe(qp, true, index, RDMA_HCA_OPCODE_SEND);

	cqe.time_l = htole32((uint32_t)now);
	cqe.ctrl |=
		htole32(FIELD_PREP(RDMA_HCA_CQE_TIME_H, (now >> 32) & 0x7f));
	return cqe;
}

void test_timestamps(void)
{
	/* Around the end of what an entry has of the clock. */
	const uint64_t start = (1ull << RDMA_HCA_CQE_TIME_BITS) * 5 - 1000;
	struct ibv_poll_cq_attr poll = {};
	uint64_t before, after, wall;
	struct rhca_cq *cq;
	struct rhca_qp *qp;
	uint32_t i;

	CHECK_FAILS(new_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP), EOPNOTSUPP);
	ctx.has_clock = true;
	cq = new_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	for (i = 0; i < 4; i++) {
		uint64_t now = start + i * 600;

		CHECK_EQ(post_nop_sends(qp, 1, i), 0);
		produce(cq, i, timed_cqe(qp, i, now));
		set_clock(start + 1000);
		before = wallclock();
		CHECK_EQ(ibv_start_poll(&cq->vcq.cq_ex, &poll), 0);
		after = wallclock();
		CHECK_EQ(ibv_wc_read_completion_ts(&cq->vcq.cq_ex),
			 now & ((1ull << RDMA_HCA_CQE_TIME_BITS) - 1));
		/* The clock stands still here, but for 10 ms at most. */
		wall = ibv_wc_read_completion_wallclock_ns(&cq->vcq.cq_ex);
		CHECK(wall + 1000 - i * 600 + 10000000 >= before);
		CHECK(wall + 1000 - i * 600 <= after);
		ibv_end_poll(&cq->vcq.cq_ex);
		if (i == 1)
			cq->sample_wallclock = 1; /* long ago */
		if (i == 2)
			cq->sample_wallclock += NS_PER_S; /* set back */
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}
