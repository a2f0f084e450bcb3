/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands with an inbox, good ones, and of each field of the inbox the values
 * that it may have. Words are in host byte order.
 */
#ifndef LIB_BOX_H
#define LIB_BOX_H

#include "lib-scene.h"

#define WORDS(type) (sizeof(type) / 4)
#define WORD_OF(type, field) (offsetof(struct type, field) / 4)
#define ALL UINT32_MAX
#define MR_PAGES 5

/* A field and its good values. Bits of no field are reserved: any will do. */
typedef struct Field {
    const char *name;
    unsigned word;
    uint32_t mask;
    uint32_t low, high; /* good from here to there, */
    uint32_t step;      /* in multiples of this; 0: all of them */
    uint32_t set;       /* or: good values as bits */
    bool or_zero;
    bool either;   /* others but the maximum may be good */
    uint8_t bad;   /* answer to the others */
    uint32_t attr; /* QPC: only if the command takes this */
} Field;

/* A command with an inbox, and one that is good. Words in host byte order. */
typedef struct Box {
    const char *name;
    uint16_t op;
    uint8_t op_modifier;
    uint32_t in_modifier;
    unsigned nwords;
    const Field *fields;
    unsigned nfields;
    void (*make)(Scene *s, uint32_t *words);
    /* Before and after the command; @status is what it answered. */
    void (*prepare)(Scene *s, const uint32_t *words);
    void (*finish)(Scene *s, const uint32_t *words, uint8_t status);
} Box;

#define BOX_MAX_WORDS 64

#define FIELD(type, field, bits, ...)                                          \
    {                                                                          \
        .name = #field, .word = WORD_OF(type, field), .mask = bits,            \
        .bad = RDMA_HCA_STAT_BAD_PARAM, __VA_ARGS__                            \
    }
#define BOX(cmd, type, array, ...)                                             \
    {                                                                          \
        .name = #cmd, .op = RDMA_HCA_CMD_##cmd, .nwords = WORDS(struct type),  \
        .fields = array, .nfields = G_N_ELEMENTS(array), __VA_ARGS__           \
    }

/* WRITE_MTT of one group of four. */
#define BOX_MTT_WORDS (WORDS(struct rdma_hca_mtt_mailbox) + 4 * 2)
#define BOX_MTT_START WORD_OF(rdma_hca_mtt_mailbox, start_index_h)

/* Those that a card takes after INIT_HCA. */
extern const Box boxes_open[];
extern const unsigned num_boxes_open;
extern const Box box_cqc; /* SW2HW_CQ */
/* The one of command @op. */
const Box *box_find(uint16_t op);

uint8_t box_send(Scene *s, const Box *box, const uint32_t *words);
void box_put64(uint32_t *words, unsigned word, uint64_t value);
/* The words of a context of @size bytes. */
void box_words(uint32_t *words, const void *entry, size_t size);

void box_make_mpt(Scene *s, uint32_t *words);
void box_make_eqc(Scene *s, uint32_t *words);
void box_make_cqc(Scene *s, uint32_t *words);
/* Take the entry back that a command of status @status has given. */
void box_finish_mpt(Scene *s, const uint32_t *words, uint8_t status);
void box_finish_eqc(Scene *s, const uint32_t *words, uint8_t status);
void box_finish_cqc(Scene *s, const uint32_t *words, uint8_t status);

#endif /* LIB_BOX_H */
