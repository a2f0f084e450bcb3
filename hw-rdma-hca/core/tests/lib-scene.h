/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The set-up of a test with bad input: a card that gets it, by its registers
 * and commands, and a connection that must not notice.
 */
#ifndef LIB_SCENE_H
#define LIB_SCENE_H

#include "lib-make.h"
#include "lib-pair.h"

/* Sizes of lab_config(), as scene_init() uses it. */
#define LOG_QPS 8
#define LOG_CQS 8
#define LOG_EQS 3
#define LOG_SRQS 6
#define LOG_SRQ_WQES 12
#define LOG_MPTS 10
#define LOG_MTTS 14
#define LOG_PDS 8
#define NUM_VECTORS 8
#define MAX_MTU 5
/* The UAR page of the CQs and QPs of a Pair. */
#define CARD_UAR 1

/* Numbers that the driver does not get to in these tests. */
#define SPARE_QPN 200
#define SPARE_CQN 200
#define SPARE_EQN 7
#define SPARE_SRQN 60
#define SPARE_MPT 1000
#define SPARE_MTT 16000

/* What a command has to answer: EXPECT(driver_cmd(...), BAD_PARAM). */
#define EXPECT(status, answer)                                                 \
    g_assert_cmphex(status, ==, RDMA_HCA_STAT_##answer)

typedef struct Scene {
    Pair *pair;
    Driver *drv; /* of the card that gets the bad input */
    Host *host;
    Qp *bystander[2];
    /* Of UAR page 3, with short patience: it gets the bad input itself. */
    Qp *victim[2];
    Cq *victim_cq[2];
} Scene;

void scene_init(Scene *s, uint32_t seed);
/* With a victim, and regions of 64 KiB. */
void scene_init_victim(Scene *s, uint32_t seed);
/*
 * Let the victim's mess come to an end and make it a QP again. Its CQ may
 * have overrun, which is its own business: it gets a new one.
 */
void scene_revive_victim(Scene *s);
/* Traffic of the victim all the while, in both directions. */
void scene_keep_busy(Scene *s);
/* Traffic of the bystander, both ways. */
void scene_check(Scene *s);
/* The same, and the end. */
void scene_free(Scene *s);

/* The card as after power-on; s->drv is good for commands only. */
void scene_reset_card(Scene *s);
/* Both cards from the beginning: they have to be as good as new. */
void scene_recover(Scene *s);

/* Commands; an outbox goes to s->drv->mbox_out. */
uint8_t scene_command(Scene *s, uint16_t op, uint64_t in_param,
                      uint32_t in_modifier, uint8_t op_modifier);
uint8_t scene_command_in(Scene *s, uint16_t op, const void *inbox, size_t len,
                         uint32_t in_modifier);
uint8_t scene_map_icm(Scene *s, uint8_t kind, uint64_t virt, uint64_t page,
                      uint32_t npages);
uint8_t scene_unmap_icm(Scene *s, uint8_t kind, uint64_t virt, uint32_t npages);

/*
 * After a reset: one page of ICM for each table; INIT_HCA of 16 entries of
 * each, 8 EQs.
 */
void scene_small_map(Scene *s);
uint8_t scene_small_init(Scene *s);

/* Contexts of the spare numbers, in the pair's region and of its CQ. */
struct rdma_hca_mpt scene_mpt(const Scene *s, uint64_t start, uint64_t length,
                              uint32_t flags);
struct rdma_hca_eqc scene_eqc(const Scene *s, unsigned log_size);
struct rdma_hca_cqc scene_cqc(const Scene *s, unsigned log_size);
struct rdma_hca_qpc scene_qpc(const Scene *s, uint32_t sq_len, uint32_t rq_len);
/* Commands with them. */
uint8_t scene_sw2hw_mpt(Scene *s, const struct rdma_hca_mpt *mpt);
uint8_t scene_hw2sw_mpt(Scene *s);
uint8_t scene_to_rst(Scene *s, uint32_t qpn);
void scene_disconnect(Qp *qp[2]);

/* What the card holds for its guest. */
typedef struct SceneLive {
    uint64_t qps, cqs, eqs, srqs, mpts;
} SceneLive;

SceneLive scene_live(const Scene *s);
void scene_expect_live(const Scene *s, const SceneLive *was);

#endif /* LIB_SCENE_H */
