/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a process has in each case: a context, a PD, and what it makes there.
 * The program ends if it cannot be made.
 */
#ifndef LIB_OBJECTS_H
#define LIB_OBJECTS_H

#include "lib-card.h"

/* New in each case: of an InfiniBand card without a clock and a null key. */
extern struct rhca_context ctx;
extern struct ibv_pd *pd;

/* Before each case; after it, what was made has to be gone. */
void setup(void);
void teardown(void);

/* 4 sends and receives of 2 entries each, 32 bytes inline. */
extern const struct ibv_qp_cap small_cap;

struct rhca_cq *new_cq(int cqe);
/* @qp, in RTS; so are those that follow. */
struct rhca_qp *ready_qp(struct ibv_qp *qp);
struct rhca_qp *new_qp(struct rhca_cq *cq, enum ibv_qp_type type,
		       const struct ibv_qp_cap *cap);
/* One of RC that receives from @srq. */
struct rhca_qp *new_srq_qp(struct rhca_cq *cq, struct rhca_srq *srq);
struct rhca_srq *new_srq(uint32_t max_wr, uint32_t max_sge);
struct ibv_xrcd *new_xrcd(void);
/* An XRC SRQ, of 4 receives of 1 entry. */
struct rhca_srq *new_xsrq(struct rhca_cq *cq, struct ibv_xrcd *xrcd);

/* @n Sends of nothing, with @wr_id and those that follow; the first error. */
int post_nop_sends(struct rhca_qp *qp, int n, uint64_t wr_id);
/* A receive of nothing. */
int post_srq(struct rhca_srq *srq, uint64_t wr_id);

#endif /* LIB_OBJECTS_H */
