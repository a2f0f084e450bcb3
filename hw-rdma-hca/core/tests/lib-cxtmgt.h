/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The context manager alone, over a machine of nothing but memory: what a
 * driver does with its queues and QPs, by its functions.
 */
#ifndef LIB_CXTMGT_H
#define LIB_CXTMGT_H

#include "../cxtmgt/cxtmgt_int.h"
#include "lib-card.h"
#include "lib-make.h"
#include "lib-ram.h"

#define FIX_LOG_QPS 6
#define FIX_LOG_CQS 5
#define FIX_LOG_EQS 3
#define FIX_LOG_SRQS 2
#define FIX_LOG_PDS 8
#define FIX_QPC_BASE 0x10000
#define FIX_CQC_BASE 0x20000
#define FIX_EQC_BASE 0x30000
#define FIX_SRQC_BASE 0x38000
#define FIX_ICM_PAGES 64
#define FIX_PD 3
#define FIX_MPT 1
#define FIX_KEY GOOD_KEY(FIX_MPT)
#define FIX_OTHER_KEY GOOD_KEY(FIX_MPT + 1)
#define FIX_UAR 9
#define FIX_CQN 2
#define FIX_EQN 1
#define FIX_FIRST_QPN 2 /* 0 and 1 are no numbers of QPs */
#define FIX_QPN 5
#define FIX_LOG_CQ 3
#define FIX_LOG_EQ 2

typedef struct Fix {
    Ram *ram;
    HcaConfig config;
    HcaLink *link;
    HcaPort *port;
    HcaV2p *v2p;
    HcaCxtMgt *cm;
    uint64_t icm;        /* bus address of card-virtual 0 */
    uint64_t queues;     /* all queues: region FIX_KEY begins here */
    uint64_t next_queue; /* offset in the region */
    unsigned changes;    /* calls of the state function */
    uint8_t from, to;    /* the last one */
} Fix;

typedef struct FixQueues {
    uint64_t eq, cq; /* offsets in the region */
} FixQueues;

/* Without queues; then one EQ for everything and one CQ. */
void fix_init_bare(Fix *fix);
FixQueues fix_init(Fix *fix);
void fix_free(Fix *fix);

/* ---- event queues ---- */

uint8_t fix_sw2hw_eq(Fix *fix, uint32_t eqn, const struct rdma_hca_eqc *eqc);
struct rdma_hca_eqc fix_make_eqc(Fix *fix, unsigned log_size, unsigned vector,
                                 unsigned state);
/* An EQ armed once; its vector is its number. Returns the queue's offset. */
uint64_t fix_new_eq(Fix *fix, uint32_t eqn, unsigned log_size);
const struct rdma_hca_eqe *fix_eqe_at(Fix *fix, uint64_t queue,
                                      unsigned log_size, uint32_t index);
void fix_expect_eqe(Fix *fix, uint64_t queue, unsigned log_size, uint32_t index,
                    uint8_t type, uint32_t number);
/* How many entries it has had. */
uint32_t fix_eq_producer(Fix *fix, uint32_t eqn);

/* ---- completion queues ---- */

/* What fix_post() posts, but for its length, opcode and solicited bit. */
extern const HcaCompletion fix_cqe;

uint8_t fix_sw2hw_cq(Fix *fix, uint32_t cqn, const struct rdma_hca_cqc *cqc);
struct rdma_hca_cqc fix_make_cqc(Fix *fix, uint32_t eqn, unsigned log_size,
                                 uint64_t ci_db);
uint64_t fix_new_cq(Fix *fix, uint32_t cqn, uint32_t eqn, uint64_t ci_db);
void fix_cq_doorbell(Fix *fix, uint32_t cqn, HcaCqArm how, uint32_t ci);
/* As an engine does it: the QP of a completion that is lost breaks. */
void fix_post(Fix *fix, HcaQp *qp, bool solicited);

/* ---- queue pairs ---- */

/* Values that are all good, for each attribute there is. */
struct rdma_hca_qpc fix_make_qpc(unsigned service, uint32_t mask);
/* @qpc NULL: no inbox. */
uint8_t fix_modify_qp(Fix *fix, HcaQpTransition transition, uint32_t qpn,
                      const struct rdma_hca_qpc *qpc, bool sqd_event);
uint8_t fix_modify(Fix *fix, HcaQpTransition transition, uint32_t qpn,
                   unsigned service, uint32_t mask);
unsigned fix_qp_state(Fix *fix, uint32_t qpn);
/* Bring a QP from RST to @state by the commands of a driver. */
void fix_qp_to(Fix *fix, uint32_t qpn, unsigned service, unsigned state);
void fix_qp_reset(Fix *fix, uint32_t qpn);
/* QP FIX_QPN, RC, in RTS. */
HcaQp *fix_qp(Fix *fix);

#endif /* LIB_CXTMGT_H */
