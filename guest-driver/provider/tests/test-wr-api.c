// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_wr_*(): the builders of work requests. */
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-objects.h"

static void check_built(struct rhca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_sge sge[2] = { { 0x10, 1, 2 }, { 0x20, 2, 3 } };
	char text[] = "inline";
	struct seen wqe;

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, 7, 0x8000);
	ibv_wr_set_sge_list(ex, 2, sge);
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_send_imm(ex, htobe32(5));
	ibv_wr_set_inline_data(ex, text, 6);
	ibv_wr_atomic_cmp_swp(ex, 7, 0x8000, 1, 2);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	CHECK_EQ(ibv_wr_complete(ex), 0);

	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_RDMA_WRITE);
	CHECK_EQ(wqe.units, 4);
	check_raddr((void *)(wqe.next + 1), 0x8000, 7);
	check_data((void *)(wqe.next + 3), 0x20, 2, 3);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND_IMM);
	CHECK_EQ(wqe.units, 2);
	CHECK(wqe.fence);
	CHECK(!memcmp((char *)(wqe.next + 1) + 4, text, 6));
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_CS);
	CHECK_EQ(wqe.units, 4);
	CHECK_EQ(wqe.next->nee_nds, 0);
}

/* What sends nothing has no data. */
static void check_no_data(struct rhca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	char byte = 0;

	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 5);
	ibv_wr_set_sge(ex, 1, 2, 3);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 5);
	ibv_wr_set_inline_data(ex, &byte, 1);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
}

/* Whatever fails or is aborted leaves nothing behind. */
static void check_nothing_left(struct rhca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	uint32_t head = qp->sq.head;
	char text[64] = "inline";
	int i;

	clear_uar();
	ibv_wr_start(ex);
	for (i = 0; i < 3; i++) {
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, 1, 2, 3);
	}
	CHECK_EQ(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, text, SIZE_MAX);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	CHECK_EQ(doorbell(RDMA_HCA_SEND_DB + 4), 0);
	CHECK_EQ(qp->sq.head, head);
}

static void check_built_inv(struct rhca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;

	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_local_inv(ex, 0x5678);
	ibv_wr_send_inv(ex, 0x9abc);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_inv(wqe, 0x5678);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND_INV);
	CHECK_EQ(wqe.units, 2);
	CHECK_EQ(le32toh(wqe.next->inv_rkey), 0x9abc);
}

void test_wr_api(void)
{
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);

	check_built(qp);
	check_no_data(qp);
	check_nothing_left(qp);
	CHECK_EQ(qp->sq.head, 3);
	atomic_store(&qp->sq.tail, 3);
	check_built_inv(qp);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

void test_wr_api_ud(void)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_ah *ah = rhca_create_ah(pd, &attr);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	ibv_wr_set_ud_addr(ex, ah, 9, 10);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 5);
	check_data((void *)(wqe.next + 4), 0x1000, 8, 1);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	rhca_destroy_ah(ah);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_flush(struct seen wqe, uint32_t len, uint8_t type,
			uint8_t level)
{
	const struct rdma_hca_flush_unit *unit = (void *)(wqe.next + 2);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_FLUSH);
	CHECK_EQ(wqe.units, 3);
	check_raddr((void *)(wqe.next + 1), 0x8000, 7);
	CHECK_EQ(le32toh(unit->length), len);
	CHECK_EQ(le32toh(unit->type_level), type | level << 4);
	CHECK_EQ(unit->reserved[0] | unit->reserved[1], 0);
}

void test_flush(void)
{
	static const struct {
		uint64_t len;
		uint8_t type, level;
	} bad[] = {
		{ 8, 0, IBV_FLUSH_RANGE },
		{ 8, 4, IBV_FLUSH_RANGE },
		{ 8, 0x81, IBV_FLUSH_MR },
		{ 8, IBV_FLUSH_GLOBAL, 2 },
		{ 0x80000001, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
		{ 1ULL << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
	};
	struct ibv_send_wr wr = { .opcode = IBV_WR_FLUSH }, *bad_wr;
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;
	size_t i;

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_flush(ex, 7, 0x8000, 0x80000000, IBV_FLUSH_GLOBAL,
		     IBV_FLUSH_RANGE);
	ibv_wr_flush(ex, 7, 0x8000, SIZE_MAX,
		     IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_flush(wqe, 0x80000000, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	CHECK(wqe.fence);
	wqe = next_wqe(qp, wqe);
	check_flush(wqe, 0, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
		    IBV_FLUSH_MR);

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ibv_wr_start(ex);
		ibv_wr_flush(ex, 7, 0x8000, bad[i].len, bad[i].type,
			     bad[i].level);
		CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	}
	/* It has no data, and a struct ibv_send_wr no place for what it has. */
	ibv_wr_start(ex);
	ibv_wr_flush(ex, 7, 0x8000, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(ex, 1, 2, 3);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad_wr), EINVAL);
	CHECK(bad_wr == &wr);
	CHECK_EQ(qp->sq.head, 2);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_atomic_write(struct seen wqe, const void *value)
{
	const __le32 *header = (void *)(wqe.next + 2);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_WRITE);
	CHECK_EQ(wqe.units, 3);
	check_raddr((void *)(wqe.next + 1), 0x8000, 7);
	CHECK_EQ(le32toh(*header), RDMA_HCA_INLINE | 8);
	CHECK(!memcmp(header + 1, value, 8));
}

void test_atomic_write(void)
{
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1 };
	struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 5 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = 0x8000, .rkey = 7 },
	};
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr *bad_wr;
	const char *value = "8 bytes!";
	struct seen wqe;

	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, 7, 0x8000, value);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_atomic_write(wqe, value);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND);

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad_wr), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_WRITE);
	CHECK_EQ(wqe.units, 3);
	check_data((void *)(wqe.next + 2), 0x1000, 8, 5);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}
