/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The card: its doorbell page, WQEs as it finds them, and CQEs as it writes
 * them.
 */
#ifndef LIB_CARD_H
#define LIB_CARD_H

#include "../rhca.h"

/* The doorbell page, in which nothing has been rung and no time has passed. */
void *clear_uar(void);
/* The word at @offset of it. */
uint32_t doorbell(unsigned int offset);
/* Its clock stands at @now. */
void set_clock(uint64_t now);

/* A WQE as the card knows it: from the doorbell, or from the one before. */
struct seen {
	const struct rdma_hca_next_unit *next;
	uint8_t opcode;
	bool fence;
	uint32_t units;
};

struct seen first_wqe(struct rhca_qp *qp);
struct seen next_wqe(struct rhca_qp *qp, struct seen wqe);
/* The tag of the WQE that was posted to @srq as number @index. */
uint32_t tag_of(struct rhca_srq *srq, uint32_t index);

/* What is in a WQE's units, or in the whole WQE of a local invalidate. */
void check_data(const struct rdma_hca_data_unit *unit, uint64_t addr,
		uint32_t length, uint32_t lkey);
void check_raddr(const struct rdma_hca_raddr_unit *unit, uint64_t addr,
		 uint32_t rkey);
void check_inv(struct seen wqe, uint32_t key);
/* The whole WQE of a bind. */
void check_bind(struct seen wqe, uint32_t access, uint32_t type, uint32_t rkey,
		const struct ibv_mw_bind_info *info);

/* A number of 64 bits that a unit has in two words. */
static inline uint64_t two_words(__le32 high, __le32 low)
{
	return (uint64_t)le32toh(high) << 32 | le32toh(low);
}

/* Write @cqe as the card does, owner last, at producer index @pi. */
void produce(struct rhca_cq *cq, uint32_t pi, struct rdma_hca_cqe cqe);
/*
 * WQE @index of @qp has ended; @opcode is the card's own of a send, that of the
 * last packet of a receive.
 */
struct rdma_hca_cqe make_cqe(struct rhca_qp *qp, bool is_send, uint32_t index,
			     uint8_t opcode);
/* The WQE of @tag of an SRQ has ended, with a message for @qp. */
struct rdma_hca_cqe make_srq_cqe(struct rhca_qp *qp, uint32_t tag);

#endif /* LIB_CARD_H */
