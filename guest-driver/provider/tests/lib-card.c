// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <string.h>

#include <util/util.h>

#include "lib-card.h"
#include "lib-check.h"

static uint8_t uar[RDMA_HCA_UAR_PAGE_SIZE] __attribute__((aligned(4096)));

void *clear_uar(void)
{
	memset(uar, 0, sizeof(uar));
	return uar;
}

uint32_t doorbell(unsigned int offset)
{
	__le32 word;

	memcpy(&word, uar + offset, sizeof(word));
	return le32toh(word);
}

void set_clock(uint64_t now)
{
	__le64 word = htole64(now);

	memcpy(uar + RDMA_HCA_CLOCK, &word, sizeof(word));
}

struct seen first_wqe(struct rhca_qp *qp)
{
	uint32_t low = doorbell(RDMA_HCA_SEND_DB);
	uint32_t high = doorbell(RDMA_HCA_SEND_DB + 4);

	CHECK_EQ(FIELD_GET(RDMA_HCA_SEND_DB_QPN, high), qp->vqp.qp.qp_num);
	return (struct seen){
		.next = (void *)((uint8_t *)qp->sq.buf.addr +
				 FIELD_GET(RDMA_HCA_SEND_DB_SQ_HEAD, low) *
					 RDMA_HCA_WQE_UNIT),
		.opcode = FIELD_GET(RDMA_HCA_SEND_DB_OPCODE, low),
		.fence = low & RDMA_HCA_SEND_DB_FENCE,
		.units = FIELD_GET(RDMA_HCA_SEND_DB_SIZE, high),
	};
}

struct seen next_wqe(struct rhca_qp *qp, struct seen wqe)
{
	uint32_t nda_nop = le32toh(wqe.next->nda_nop);
	uint32_t nee_nds = le32toh(wqe.next->nee_nds);

	return (struct seen){
		.next = (void *)((uint8_t *)qp->sq.buf.addr +
				 (nda_nop & RDMA_HCA_NEXT_NDA)),
		.opcode = FIELD_GET(RDMA_HCA_NEXT_NOP, nda_nop),
		.fence = nee_nds & RDMA_HCA_NEXT_FENCE,
		.units = FIELD_GET(RDMA_HCA_NEXT_NDS, nee_nds),
	};
}

uint32_t tag_of(struct rhca_srq *srq, uint32_t index)
{
	struct rdma_hca_next_unit *wqe = rhca_wq_slot(&srq->wq, index);

	return le32toh(wqe->tag);
}

void check_data(const struct rdma_hca_data_unit *unit, uint64_t addr,
		uint32_t length, uint32_t lkey)
{
	CHECK_EQ(le32toh(unit->byte_cnt), length);
	CHECK_EQ(le32toh(unit->lkey), lkey);
	CHECK_EQ(two_words(unit->addr_h, unit->addr_l), addr);
}

void check_raddr(const struct rdma_hca_raddr_unit *unit, uint64_t addr,
		 uint32_t rkey)
{
	CHECK_EQ(two_words(unit->raddr_h, unit->raddr_l), addr);
	CHECK_EQ(le32toh(unit->rkey), rkey);
}

void check_inv(struct seen wqe, uint32_t key)
{
	const struct rdma_hca_inv_unit *unit = (void *)(wqe.next + 1);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_LOCAL_INV);
	CHECK_EQ(wqe.units, 2);
	CHECK_EQ(le32toh(unit->key), key);
	CHECK_EQ(unit->reserved[0] | unit->reserved[1] | unit->reserved[2], 0);
}

void check_bind(struct seen wqe, uint32_t access, uint32_t type,
		       uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	const struct rdma_hca_bind_unit *unit = (void *)(wqe.next + 1);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_BIND_MW);
	CHECK_EQ(wqe.units, 3);
	CHECK_EQ(le32toh(unit->access), access);
	CHECK_EQ(le32toh(unit->type), type);
	CHECK_EQ(le32toh(unit->rkey), rkey);
	CHECK_EQ(le32toh(unit->lkey), info->mr ? info->mr->lkey : 0);
	CHECK_EQ(two_words(unit->addr_h, unit->addr_l), info->addr);
	CHECK_EQ(two_words(unit->length_h, unit->length_l), info->length);
}

void produce(struct rhca_cq *cq, uint32_t pi, struct rdma_hca_cqe cqe)
{
	struct rdma_hca_cqe *slot =
		(struct rdma_hca_cqe *)cq->buf.addr + (pi & (cq->entries - 1));

	CHECK_EQ(FIELD_GET(RDMA_HCA_CQE_OWNER, le32toh(slot->ctrl)),
		 RDMA_HCA_OWNER_HW);
	*slot = cqe;
}

struct rdma_hca_cqe make_cqe(struct rhca_qp *qp, bool is_send, uint32_t index,
			     uint8_t opcode)
{
	struct rhca_wq *wq = is_send ? &qp->sq : &qp->rq;

	return (struct rdma_hca_cqe){
		.my_qpn = htole32(qp->vqp.qp.qp_num),
		.wqe = htole32(rhca_wq_offset(wq, index)),
		.ctrl = htole32(FIELD_PREP(RDMA_HCA_CQE_IS_SEND, is_send) |
				FIELD_PREP(RDMA_HCA_CQE_OPCODE, opcode)),
	};
}

struct rdma_hca_cqe make_srq_cqe(struct rhca_qp *qp, uint32_t tag)
{
	return (struct rdma_hca_cqe){
		.my_qpn = htole32(qp->vqp.qp.qp_num),
		.wqe = htole32(tag),
		.ctrl = htole32(FIELD_PREP(RDMA_HCA_CQE_OPCODE, 0x04)),
	};
}
