/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The set-up of a test with bad input: a card that gets it, by its registers
 * and commands, and a connection that must not notice.
 */
#ifndef LIB_SCENE_H
#define LIB_SCENE_H

#include "lib-pair.h"

/* Sizes of lab_config(), as scene_init() uses it. */
#define LOG_QPS 8
#define LOG_CQS 8
#define LOG_EQS 3
#define LOG_MPTS 10
#define LOG_MTTS 14
#define LOG_PDS 8
#define NUM_VECTORS 8
#define MAX_MTU 5
/* The UAR page of the CQs and QPs of a Pair. */
#define CARD_UAR 1

/* What a command has to answer: EXPECT(driver_cmd(...), BAD_PARAM). */
#define EXPECT(status, answer)                                                 \
    g_assert_cmphex(status, ==, RDMA_HCA_STAT_##answer)

typedef struct Scene {
    Pair *pair;
    Driver *drv; /* of the card that gets the bad input */
    Host *host;
    Qp *bystander[2];
} Scene;

void scene_init(Scene *s, uint32_t seed);
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

#endif /* LIB_SCENE_H */
