/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tests of rdma_hca_test work with: two QPs of the device that talk to
 * each other, and memory that both reach.
 */
#ifndef BENCH_H
#define BENCH_H

#include <rdma/ib_verbs.h>

#include "rdma_hca_module.h"

#define PATIENCE	(20 * HZ)

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

int bench_init(struct bench *b, struct ib_device *dev);
void bench_cleanup(struct bench *b);

/* Counts in @events; @context is the bench. */
void completion_event(struct ib_cq *cq, void *context);

int create_qp(struct bench *b, enum ib_qp_type type, u32 inline_data,
	      struct ib_qp **qp);

/* Both QPs. */
int connect(struct bench *b);
int create_qps(struct bench *b, enum ib_qp_type type, u32 inline_data);
int destroy_qps(struct bench *b);

struct ib_sge sge_at(struct bench *b, u32 at, u32 length);
int post_recv(struct bench *b, struct ib_qp *qp, u64 wr_id, u32 at, u32 length);
int post_rdma(struct bench *b, enum ib_wr_opcode opcode, u64 wr_id, u32 at,
	      u32 length, u32 to, bool silent);

int next_wc(struct bench *b, struct ib_wc *wc);
int expect(struct bench *b, u64 wr_id, enum ib_wc_opcode opcode,
	   enum ib_wc_status status);

/* Places in the memory. */
void fill(struct bench *b, u32 at, u32 length);
bool equal(struct bench *b, u32 one, u32 other, u32 length);

#endif /* BENCH_H */
