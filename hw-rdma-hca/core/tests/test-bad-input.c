/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bad input to a whole card, by its registers only: every opcode in every
 * state of the card, every field of every mailbox, ICM that is mapped badly,
 * tables and keys that do not fit each other, numbers out of range, addresses
 * that are registers. Each has the documented answer, and a connection that
 * has nothing to do with it goes on.
 *
 * The classes of fault of QEMU's earlier RDMA device are in
 * test-bad-input-cve.c.
 */
#include <stddef.h>
#include <string.h>

#include "lib-inside.h"
#include "lib-scene.h"

/* Numbers that the driver does not get to in these tests. */
#define SPARE_QPN 200
#define SPARE_CQN 200
#define SPARE_EQN 7
#define SPARE_MPT 1000
#define SPARE_MTT 16000
#define MR_PAGES 5
#define WORDS(type) (sizeof(type) / 4)
#define WORD_OF(type, field) (offsetof(struct type, field) / 4)
#define ALL UINT32_MAX

/* ---- every opcode in every state of the card ---- */

/* What a command answers when it is legal and all its arguments are bad. */
typedef struct Known {
    uint16_t op;
    bool before, after; /* INIT_HCA */
    uint8_t answer;
    bool roce; /* of RoCE cards alone */
} Known;

#define ANY(cmd, answer)                                                       \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, true, true, RDMA_HCA_STAT_##answer, false          \
    }
#define BEFORE(cmd, answer)                                                    \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, true, false, RDMA_HCA_STAT_##answer, false         \
    }
#define AFTER(cmd, answer)                                                     \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, false, true, RDMA_HCA_STAT_##answer, false         \
    }
#define ROCE(cmd, answer)                                                      \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, false, true, RDMA_HCA_STAT_##answer, true          \
    }

static const Known known[] = {
    ANY(QUERY_DEV_LIM, BAD_PARAM),    ANY(QUERY_FW, BAD_PARAM),
    ANY(QUERY_ADAPTER, BAD_PARAM),    ANY(QUERY_PORT, BAD_INDEX),
    ANY(DIAG_RPRT, BAD_PARAM),        ANY(NOP, OK),
    ANY(MAP_ICM, BAD_PARAM),          ANY(UNMAP_ICM, BAD_PARAM),
    BEFORE(INIT_HCA, BAD_PARAM),      AFTER(CLOSE_HCA, OK),
    AFTER(INIT_IB, BAD_INDEX),        AFTER(CLOSE_IB, BAD_INDEX),
    AFTER(SW2HW_MPT, BAD_PARAM),      AFTER(QUERY_MPT, BAD_INDEX),
    AFTER(HW2SW_MPT, BAD_INDEX),      AFTER(READ_MTT, BAD_PARAM),
    AFTER(WRITE_MTT, BAD_PARAM),      AFTER(SYNC_TPT, OK),
    AFTER(MAP_EQ, BAD_INDEX),         AFTER(SW2HW_EQ, BAD_PARAM),
    AFTER(HW2SW_EQ, BAD_INDEX),       AFTER(QUERY_EQ, BAD_INDEX),
    AFTER(SW2HW_CQ, BAD_PARAM),       AFTER(HW2SW_CQ, BAD_INDEX),
    AFTER(QUERY_CQ, BAD_INDEX),       AFTER(RESIZE_CQ, BAD_PARAM),
    AFTER(QUERY_QP, BAD_INDEX),       AFTER(RST2INIT_QPEE, BAD_PARAM),
    AFTER(INIT2INIT_QPEE, BAD_PARAM), AFTER(INIT2RTR_QPEE, BAD_PARAM),
    AFTER(RTR2RTS_QPEE, BAD_PARAM),   AFTER(RTS2RTS_QPEE, BAD_PARAM),
    AFTER(SQERR2RTS_QPEE, BAD_PARAM), AFTER(2ERR_QPEE, BAD_PARAM),
    AFTER(RTS2SQD_QPEE, BAD_PARAM),   AFTER(SQD2SQD_QPEE, BAD_PARAM),
    AFTER(SQD2RTS_QPEE, BAD_PARAM),   AFTER(ERR2RST_QPEE, BAD_PARAM),
    AFTER(WRITE_MGM, BAD_PARAM),      AFTER(READ_MGM, BAD_INDEX),
    ROCE(SET_GID, BAD_PARAM),         ROCE(SETUP_ETH, BAD_PARAM),
    ROCE(SET_RX_MODE, BAD_PARAM),
};

static const Known *find_known(uint16_t op, bool roce)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        if (known[i].op == op && (roce || !known[i].roce)) {
            return &known[i];
        }
    }
    return NULL;
}

/* All bits set, and registers for mailboxes. */
static uint8_t worst_command(Scene *s, uint16_t op)
{
    return driver_cmd(s->drv, op, HOST_MMIO_BASE, UINT32_MAX, 0xff,
                      HOST_MMIO_BASE, NULL);
}

/* All bits clear, and mailboxes of zeros. */
static uint8_t zero_command(Scene *s, uint16_t op)
{
    host_fill(s->host, s->drv->mbox_in, 0, HOST_PAGE_SIZE);
    return driver_cmd(s->drv, op, s->drv->mbox_in, 0, 0, s->drv->mbox_out,
                      NULL);
}

static void try_opcode(Scene *s, uint16_t op, bool after)
{
    const Known *row = find_known(op, s->drv->roce);
    uint8_t worst = worst_command(s, op);
    uint8_t zero = zero_command(s, op);

    if (!row) {
        EXPECT(worst, BAD_OP);
        EXPECT(zero, BAD_OP);
    } else if (after ? row->after : row->before) {
        g_assert_cmphex(worst, ==, row->answer);
        g_assert_cmphex(zero, !=, RDMA_HCA_STAT_BAD_OP);
        g_assert_cmphex(zero, !=, RDMA_HCA_STAT_BAD_SYS_STATE);
        if (op == RDMA_HCA_CMD_INIT_HCA) {
            /* Zeros ask for one entry of each table. */
            EXPECT(zero, OK);
            EXPECT(zero_command(s, RDMA_HCA_CMD_CLOSE_HCA), OK);
        }
    } else {
        EXPECT(worst, BAD_SYS_STATE);
        EXPECT(zero, BAD_SYS_STATE);
    }
}

/*
 * CLOSE_HCA ends the state it is tried in: it is left to the end. SET_GID of
 * zeros has emptied the entry that the bystanders use.
 */
static void try_opcodes(Scene *s, bool after)
{
    for (unsigned op = 0; op <= 0xfff; op++) {
        if (!after || op != RDMA_HCA_CMD_CLOSE_HCA) {
            try_opcode(s, op, after);
        }
    }
    if (after && s->drv->roce) {
        EXPECT(driver_set_gid(s->drv, 0, &s->drv->gid[0]), OK);
    }
}

static void test_opcodes(void)
{
    Scene s;

    scene_init(&s, 2001);
    try_opcodes(&s, true); /* in full operation */
    scene_check(&s);
    driver_cmd_events(s.drv, true); /* ending by events */
    try_opcodes(&s, true);
    driver_cmd_events(s.drv, false);
    scene_check(&s);
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0), OK);
    try_opcodes(&s, true); /* port disabled */
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), OK);
    try_opcodes(&s, false); /* closed with objects */
    scene_reset_card(&s);
    try_opcodes(&s, false); /* fresh from reset */
    scene_small_map(&s);
    try_opcodes(&s, false); /* ICM, no tables */
    EXPECT(scene_small_init(&s), OK);
    try_opcodes(&s, true); /* tables, no objects */
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), OK);
    try_opcodes(&s, false);
    scene_recover(&s);
    scene_free(&s);
}

/* ---- every field of every mailbox ---- */

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

#define MAX_WORDS 64

static bool value_good(const Field *f, uint32_t value, uint32_t taken)
{
    if (f->attr && !(f->attr & taken)) {
        return true;
    }
    if (f->or_zero && !value) {
        return true;
    }
    if (f->set) {
        return value < 32 && f->set >> value & 1;
    }
    return value >= f->low && value <= f->high &&
           (!f->step || value % f->step == 0);
}

/* 0, the maximum, both sides of each bound, and at random. */
static unsigned field_values(Scene *s, const Field *f, uint32_t *values)
{
    uint32_t max = RDMA_HCA_GET(f->mask, ALL);
    uint32_t list[] = {
        0,
        max,
        f->low,
        f->high,
        f->low - 1,
        f->high + 1,
        g_rand_int(s->pair->lab->rand),
        g_rand_int(s->pair->lab->rand),
        g_rand_int(s->pair->lab->rand) % (f->high - f->low + (uint64_t)1) +
            f->low,
    };
    unsigned n = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(list); i++) {
        values[n++] = list[i] & max;
    }
    return n;
}

static uint8_t send_box(Scene *s, const Box *box, const uint32_t *words)
{
    __be32 inbox[MAX_WORDS];

    for (unsigned i = 0; i < box->nwords; i++) {
        inbox[i] = GUINT32_TO_BE(words[i]);
    }
    return driver_cmd_in(s->drv, box->op, inbox, box->nwords * 4,
                         box->in_modifier, box->op_modifier);
}

static uint8_t try_words(Scene *s, const Box *box, const uint32_t *words)
{
    uint8_t status;

    if (box->prepare) {
        box->prepare(s, words);
    }
    status = send_box(s, box, words);
    if (box->finish) {
        box->finish(s, words, status);
    }
    return status;
}

static void try_value(Scene *s, const Box *box, const Field *f, uint32_t value,
                      uint32_t taken)
{
    uint32_t words[MAX_WORDS] = { 0 };
    uint8_t status, expected;

    box->make(s, words);
    words[f->word] &= ~f->mask;
    words[f->word] |= RDMA_HCA_PREP(f->mask, value);
    status = try_words(s, box, words);
    expected = value_good(f, value, taken) ? RDMA_HCA_STAT_OK : f->bad;
    if (f->either && value != RDMA_HCA_GET(f->mask, ALL) && !status) {
        expected = RDMA_HCA_STAT_OK;
    }
    if (status != expected) {
        g_error("%s, word %02xh, %s (%#x) = %#x: status %#x, not %#x",
                box->name, f->word * 4, f->name, f->mask, value, status,
                expected);
    }
}

static void try_field(Scene *s, const Box *box, const Field *f, uint32_t taken)
{
    uint32_t words[MAX_WORDS] = { 0 };
    uint32_t values[16];
    unsigned n = field_values(s, f, values);

    for (unsigned i = 0; i < n; i++) {
        try_value(s, box, f, values[i], taken);
    }
    /* What has been refused has left nothing behind. */
    box->make(s, words);
    EXPECT(try_words(s, box, words), OK);
}

static void walk_box(Scene *s, const Box *box, uint32_t taken)
{
    for (unsigned word = 0; word < box->nwords; word++) {
        Field reserved = {
            .name = "reserved", .word = word, .mask = ALL, .high = ALL
        };

        for (unsigned i = 0; i < box->nfields; i++) {
            const Field *f = &box->fields[i];

            if (f->word != word) {
                continue;
            }
            g_assert_cmphex(f->mask & ~reserved.mask, ==, 0);
            reserved.mask &= ~f->mask;
            try_field(s, box, f, taken);
        }
        if (reserved.mask) {
            try_field(s, box, &reserved, taken);
        }
    }
}

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

static void put64(uint32_t *words, unsigned word, uint64_t value)
{
    words[word] = RDMA_HCA_HI32(value);
    words[word + 1] = RDMA_HCA_LO32(value);
}

/* SW2HW_MPT: four pages from 10000h on, with MTT entries to spare. */

static const Field mpt_fields[] = {
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_REGION, .low = 1, .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_ACCESS_ON_DEMAND, .high = 0),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_PHYSICAL, .high = 1),
    FIELD(rdma_hca_mpt, flags, RDMA_HCA_MPT_SW_OWNS, .high = 15),
    FIELD(rdma_hca_mpt, page_size, ALL, .high = 19),
    FIELD(rdma_hca_mpt, key, (1u << LOG_MPTS) - 1, .low = SPARE_MPT,
          .high = SPARE_MPT),
    FIELD(rdma_hca_mpt, length_h, ALL, .high = 0),
    FIELD(rdma_hca_mpt, length_l, ALL, .high = MR_PAGES * HOST_PAGE_SIZE),
    FIELD(rdma_hca_mpt, mtt_seg_h, ALL, .high = 0),
    FIELD(rdma_hca_mpt, mtt_seg_l, ALL, .high = (1u << LOG_MTTS) - 4),
    FIELD(rdma_hca_mpt, mtt_sz, ALL, .low = 4, .high = ALL, .or_zero = true),
};

static void make_mpt(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_mpt, flags)] = RDMA_HCA_MPT_REGION |
                                          RDMA_HCA_MPT_MIO | ACCESS_ALL;
    words[WORD_OF(rdma_hca_mpt, key)] = SPARE_MPT | 0xabcd << LOG_MPTS;
    words[WORD_OF(rdma_hca_mpt, pd)] = s->pair->pd[0];
    put64(words, WORD_OF(rdma_hca_mpt, start_h), 0x10000);
    put64(words, WORD_OF(rdma_hca_mpt, length_h), 4 * HOST_PAGE_SIZE);
    put64(words, WORD_OF(rdma_hca_mpt, mtt_seg_h), SPARE_MTT);
    words[WORD_OF(rdma_hca_mpt, mtt_sz)] = MR_PAGES;
}

static void finish_mpt(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_MPT, 0, SPARE_MPT,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

/* WRITE_MTT of one group of four. */

#define MTT_BOX_WORDS (WORDS(struct rdma_hca_mtt_mailbox) + 4 * 2)
#define MTT_START WORD_OF(rdma_hca_mtt_mailbox, start_index_h)

static const Field mtt_fields[] = {
    { .name = "start_index_h",
      .word = MTT_START,
      .mask = ALL,
      .bad = RDMA_HCA_STAT_BAD_INDEX },
    { .name = "start_index_l",
      .word = MTT_START + 1,
      .mask = ALL,
      .high = (1u << LOG_MTTS) - 4,
      .bad = RDMA_HCA_STAT_BAD_INDEX },
};

static void make_mtt(Scene *s, uint32_t *words)
{
    words[MTT_START + 1] = SPARE_MTT;
}

/* The entries may be in use: those that were there come back. */
static struct rdma_hca_mtt_mailbox *saved_mtts;

static void prepare_mtt(Scene *s, const uint32_t *words)
{
    uint64_t index = (uint64_t)words[MTT_START] << 32 | words[MTT_START + 1];

    saved_mtts = g_malloc0(MTT_BOX_WORDS * 4);
    if (driver_cmd(s->drv, RDMA_HCA_CMD_READ_MTT, index, 4, 0, s->drv->mbox_out,
                   NULL) == RDMA_HCA_STAT_OK) {
        host_read(s->host, s->drv->mbox_out, saved_mtts, MTT_BOX_WORDS * 4);
    }
}

static void finish_mtt(Scene *s, const uint32_t *words, uint8_t status)
{
    if (!status) {
        EXPECT(scene_command_in(s, RDMA_HCA_CMD_WRITE_MTT, saved_mtts,
                                MTT_BOX_WORDS * 4, 4),
               OK);
    }
    g_clear_pointer(&saved_mtts, g_free);
}

/* SW2HW_EQ */

static const Field eqc_fields[] = {
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_STATUS, .high = 0),
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_OWNER, .high = 15),
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_TR, .low = 1, .high = 1),
    FIELD(rdma_hca_eqc, flags, RDMA_HCA_EQC_STATE, .low = 1, .high = 3),
    FIELD(rdma_hca_eqc, start_l, ALL, .high = ALL, .step = RDMA_HCA_EQE_SIZE),
    FIELD(rdma_hca_eqc, logsize, RDMA_HCA_EQC_LOGSIZE,
          .high = HCA_MAX_LOG_EQ_SIZE),
    FIELD(rdma_hca_eqc, msix_vector, RDMA_HCA_EQC_VECTOR,
          .high = NUM_VECTORS - 1),
    FIELD(rdma_hca_eqc, pd, ALL, .high = (1u << LOG_PDS) - 1),
    FIELD(rdma_hca_eqc, consumer_index, ALL, .high = 0),
    FIELD(rdma_hca_eqc, producer_index, ALL, .high = 0),
};

static void make_eqc(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_eqc, flags)] =
        RDMA_HCA_EQC_TR |
        RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_ARMED);
    words[WORD_OF(rdma_hca_eqc, logsize)] = RDMA_HCA_PREP(RDMA_HCA_EQC_LOGSIZE,
                                                          4);
    words[WORD_OF(rdma_hca_eqc, pd)] = s->pair->pd[0];
    words[WORD_OF(rdma_hca_eqc, lkey)] = s->pair->mr[0]->key;
}

static void finish_eqc(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

/* SW2HW_CQ and RESIZE_CQ */

static const Field cqc_fields[] = {
    FIELD(rdma_hca_cqc, flags, RDMA_HCA_CQC_STATUS, .high = 0),
    FIELD(rdma_hca_cqc, flags, RDMA_HCA_CQC_TR, .low = 1, .high = 1),
    FIELD(rdma_hca_cqc, flags, RDMA_HCA_CQC_STATE,
          .set = 1u << RDMA_HCA_CQ_STATE_DISARMED |
                 1u << RDMA_HCA_CQ_STATE_ARMED |
                 1u << RDMA_HCA_CQ_STATE_ARMED_SOLICITED),
    FIELD(rdma_hca_cqc, start_l, ALL, .high = ALL, .step = RDMA_HCA_CQE_SIZE),
    FIELD(rdma_hca_cqc, logsize_usrpage, RDMA_HCA_CQC_LOGSIZE,
          .high = HCA_MAX_LOG_CQ_SIZE),
    FIELD(rdma_hca_cqc, logsize_usrpage, RDMA_HCA_CQC_UAR,
          .high = RDMA_HCA_NUM_UARS - 1),
    FIELD(rdma_hca_cqc, comp_eqn, ALL, .low = 1, .high = NUM_EQS),
    FIELD(rdma_hca_cqc, pd, ALL, .high = (1u << LOG_PDS) - 1),
    FIELD(rdma_hca_cqc, ci_db_l, ALL, .high = ALL, .step = 4),
};

static void make_cqc(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_cqc, flags)] = RDMA_HCA_CQC_TR;
    words[WORD_OF(rdma_hca_cqc, logsize_usrpage)] =
        RDMA_HCA_PREP(RDMA_HCA_CQC_LOGSIZE, 4) | CARD_UAR;
    words[WORD_OF(rdma_hca_cqc, comp_eqn)] = s->drv->eq[EQ_COMP].eqn;
    words[WORD_OF(rdma_hca_cqc, pd)] = s->pair->pd[0];
    words[WORD_OF(rdma_hca_cqc, lkey)] = s->pair->mr[0]->key;
}

static void finish_cqc(Scene *s, const uint32_t *words, uint8_t status)
{
    uint8_t taken_back = scene_command(s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN,
                                       0);

    g_assert_cmphex(taken_back, ==,
                    status ? RDMA_HCA_STAT_BAD_RES_STATE : RDMA_HCA_STAT_OK);
}

static const Box box_cqc = BOX(SW2HW_CQ, rdma_hca_cqc, cqc_fields,
                               .in_modifier = SPARE_CQN, .make = make_cqc,
                               .finish = finish_cqc);

static const Field resize_fields[] = {
    FIELD(rdma_hca_resize_cq, logsize, RDMA_HCA_RESIZE_CQ_LOGSIZE,
          .high = HCA_MAX_LOG_CQ_SIZE),
};

static void make_resize(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_resize_cq, logsize)] = RDMA_HCA_PREP(
        RDMA_HCA_RESIZE_CQ_LOGSIZE, 5);
    words[WORD_OF(rdma_hca_resize_cq, lkey)] = s->pair->mr[0]->key;
}

static void prepare_resize(Scene *s, const uint32_t *words)
{
    uint32_t cqc[MAX_WORDS] = { 0 };

    make_cqc(s, cqc);
    EXPECT(send_box(s, &box_cqc, cqc), OK);
}

static void finish_resize(Scene *s, const uint32_t *words, uint8_t status)
{
    finish_cqc(s, words, RDMA_HCA_STAT_OK);
}

/* INIT_HCA: tables of the card's full size, wherever they fit. */

#define SPACE ((uint64_t)HCA_ICM_MAX_PAGES << RDMA_HCA_ICM_PAGE_SHIFT)
#define LAST_BASE(entry, log) ((SPACE - ((uint64_t)(entry) << (log))) >> 8)
#define TABLE(table, entry, log)                                               \
    FIELD(rdma_hca_init_hca, table##_base_h, ALL, .high = 0),                  \
        FIELD(rdma_hca_init_hca, table##_base_l, RDMA_HCA_INIT_BASE,           \
              .high = LAST_BASE(entry, log)),                                  \
    {                                                                          \
        .name = #table " count",                                               \
        .word = WORD_OF(rdma_hca_init_hca, table##_base_l),                    \
        .mask = RDMA_HCA_INIT_LOG_NUM, .high = log,                            \
        .bad = RDMA_HCA_STAT_EXCEED_LIM                                        \
    }

static const Field init_fields[] = {
    TABLE(qpc, RDMA_HCA_QPC_SIZE, LOG_QPS),
    TABLE(cqc, RDMA_HCA_CQC_SIZE, LOG_CQS),
    TABLE(eqc, RDMA_HCA_EQC_SIZE, LOG_EQS),
    TABLE(mpt, RDMA_HCA_MPT_SIZE, LOG_MPTS),
    FIELD(rdma_hca_init_hca, mtt_base_h, ALL, .high = 0),
    FIELD(rdma_hca_init_hca, mtt_base_l, ALL, .high = ALL, .step = 64),
};

static void make_init(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_init_hca, qpc_base_l)] = 0x100000 | LOG_QPS;
    words[WORD_OF(rdma_hca_init_hca, cqc_base_l)] = 0x200000 | LOG_CQS;
    words[WORD_OF(rdma_hca_init_hca, eqc_base_l)] = 0x300000 | LOG_EQS;
    words[WORD_OF(rdma_hca_init_hca, mpt_base_l)] = 0x100000 | LOG_MPTS;
    words[WORD_OF(rdma_hca_init_hca, mtt_base_l)] = 0x200000;
}

static void finish_init(Scene *s, const uint32_t *words, uint8_t status)
{
    g_assert_cmphex(scene_command(s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), ==,
                    status ? RDMA_HCA_STAT_BAD_SYS_STATE : RDMA_HCA_STAT_OK);
}

/* MAP_ICM: the first entry of a group, in an empty space. */

#define ICM_WORD(field)                                                        \
    (RDMA_HCA_ICM_SLOT(0) * WORDS(struct rdma_hca_icm_entry) +                 \
     WORD_OF(rdma_hca_icm_entry, field))
#define ICM_FIELD(field, bits, ...)                                            \
    {                                                                          \
        .name = #field, .word = ICM_WORD(field), .mask = bits,                 \
        .bad = RDMA_HCA_STAT_BAD_PARAM, __VA_ARGS__                            \
    }

static const Field icm_fields[] = {
    ICM_FIELD(virt_h, ALL, .high = 0),
    ICM_FIELD(virt_l, ALL, .high = SPACE - 3 * HOST_PAGE_SIZE,
              .step = HOST_PAGE_SIZE),
    ICM_FIELD(page_l, RDMA_HCA_ICM_PAGE_NUM, .low = 1, .high = 0xfff),
};

static void make_icm(Scene *s, uint32_t *words)
{
    words[ICM_WORD(virt_l)] = 0x200000;
    words[ICM_WORD(page_l)] = 0x300000 | 3;
}

static void finish_icm(Scene *s, uint8_t kind, const uint32_t *words,
                       uint8_t status)
{
    uint64_t virt = (uint64_t)words[ICM_WORD(virt_h)] << 32 |
                    words[ICM_WORD(virt_l)];
    uint32_t n = words[ICM_WORD(page_l)] & RDMA_HCA_ICM_PAGE_NUM;

    g_assert_cmphex(scene_unmap_icm(s, kind, virt, n), ==, status);
}

static void finish_icm_cxt(Scene *s, const uint32_t *words, uint8_t status)
{
    finish_icm(s, RDMA_HCA_ICM_CXT, words, status);
}

static void finish_icm_tpt(Scene *s, const uint32_t *words, uint8_t status)
{
    finish_icm(s, RDMA_HCA_ICM_TPT, words, status);
}

static const Box boxes_closed[] = {
    BOX(INIT_HCA, rdma_hca_init_hca, init_fields, .make = make_init,
        .finish = finish_init),
    BOX(MAP_ICM, rdma_hca_icm_entry[2], icm_fields, .in_modifier = 1,
        .op_modifier = RDMA_HCA_ICM_CXT, .make = make_icm,
        .finish = finish_icm_cxt),
    BOX(MAP_ICM, rdma_hca_icm_entry[2], icm_fields, .in_modifier = 1,
        .op_modifier = RDMA_HCA_ICM_TPT, .make = make_icm,
        .finish = finish_icm_tpt),
};

static const Box boxes_open[] = {
    BOX(SW2HW_MPT, rdma_hca_mpt, mpt_fields, .in_modifier = SPARE_MPT,
        .make = make_mpt, .finish = finish_mpt),
    { .name = "WRITE_MTT",
      .op = RDMA_HCA_CMD_WRITE_MTT,
      .in_modifier = 4,
      .nwords = MTT_BOX_WORDS,
      .fields = mtt_fields,
      .nfields = G_N_ELEMENTS(mtt_fields),
      .make = make_mtt,
      .prepare = prepare_mtt,
      .finish = finish_mtt },
    BOX(SW2HW_EQ, rdma_hca_eqc, eqc_fields, .in_modifier = SPARE_EQN,
        .make = make_eqc, .finish = finish_eqc),
    BOX(SW2HW_CQ, rdma_hca_cqc, cqc_fields, .in_modifier = SPARE_CQN,
        .make = make_cqc, .finish = finish_cqc),
    BOX(RESIZE_CQ, rdma_hca_resize_cq, resize_fields, .in_modifier = SPARE_CQN,
        .make = make_resize, .prepare = prepare_resize,
        .finish = finish_resize),
};

static void test_mailboxes(void)
{
    Scene s;

    scene_init(&s, 2002);
    for (unsigned i = 0; i < G_N_ELEMENTS(boxes_open); i++) {
        walk_box(&s, &boxes_open[i], 0);
        scene_check(&s);
    }
    scene_reset_card(&s);
    for (unsigned i = 0; i < G_N_ELEMENTS(boxes_closed); i++) {
        walk_box(&s, &boxes_closed[i], 0);
    }
    scene_recover(&s);
    scene_free(&s);
}

/* ---- MODIFY_QP: each command, service type and field ---- */

#define CREATE (1u << 31)
#define ATTR(name) RDMA_HCA_QP_ATTR_##name
#define QPC(field, bits, taken, ...)                                           \
    FIELD(rdma_hca_qpc, field, bits, .attr = taken, __VA_ARGS__)

static const Field qpc_fields[] = {
    QPC(opt_param_mask, ALL, 0, .high = 0, .either = true),
    QPC(flags, RDMA_HCA_QPC_SERVICE, CREATE,
        .set = 1u << RDMA_HCA_QP_ST_RC | 1u << RDMA_HCA_QP_ST_UC |
               1u << RDMA_HCA_QP_ST_UD),
    QPC(mtu_msgmax_sz, RDMA_HCA_QPC_MTU, ATTR(PATH_MTU), .low = 1,
        .high = MAX_MTU),
    /* A queue of 4096 bytes in slots of 32 to 512, or 64 to 1024 bytes. */
    QPC(mtu_msgmax_sz, RDMA_HCA_QPC_RQ_ENTRY_SZ, CREATE, .low = 5, .high = 9),
    QPC(mtu_msgmax_sz, RDMA_HCA_QPC_SQ_ENTRY_SZ, CREATE, .low = 6, .high = 10),
    QPC(usr_page, RDMA_HCA_QPC_UAR, CREATE, .high = RDMA_HCA_NUM_UARS - 1),
    QPC(remote_qpn, ALL, ATTR(DEST_QPN), .high = RDMA_HCA_QPN_MASK),
    QPC(port_pkey, RDMA_HCA_QPC_PORT, ATTR(PORT), .low = 1, .high = 1),
    QPC(port_pkey, RDMA_HCA_QPC_PKEY_INDEX, ATTR(PKEY_INDEX), .high = 0),
    QPC(rnr_retry_path, RDMA_HCA_QPC_GRH, ATTR(AV), .high = 1),
    /* The context that is changed has a GRH: there is one source GID. */
    QPC(ackto_path, RDMA_HCA_QPC_SGID_INDEX, ATTR(AV), .high = 0),
    QPC(pd, ALL, CREATE, .high = (1u << LOG_PDS) - 1),
    QPC(params1, RDMA_HCA_QPC_SRA_MAX, ATTR(MAX_QP_RD_ATOMIC),
        .high = HCA_MAX_RD_ATOMIC),
    QPC(params1, RDMA_HCA_QPC_RRA_MAX, ATTR(MAX_DEST_RD_ATOMIC),
        .high = HCA_MAX_RD_ATOMIC),
    QPC(next_send_psn, ALL, ATTR(SQ_PSN), .high = HCA_PSN_MASK),
    QPC(cqn_snd, ALL, CREATE, .low = 1, .high = 1),
    QPC(snd_wqe_len, ALL, CREATE, .high = 64u << HCA_MAX_LOG_WQES, .step = 64),
    QPC(cqn_rcv, ALL, CREATE, .low = 1, .high = 1),
    QPC(rcv_wqe_len, ALL, CREATE, .high = 32u << HCA_MAX_LOG_WQES, .step = 32),
    QPC(rq_db_l, ALL, CREATE, .high = ALL, .step = 4),
};

/* The one QP of this test, and how it gets to where a command begins. */
static struct {
    Qp *qp;
    QpAttr attr;
    unsigned from;
    struct rdma_hca_qpc before;
} victim;

static void make_qpc(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_qpc, flags)] = RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE,
                                                        victim.qp->service);
    words[WORD_OF(rdma_hca_qpc, mtu_msgmax_sz)] =
        RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, 3) |
        RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 31) |
        RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6) |
        RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 5);
    words[WORD_OF(rdma_hca_qpc, usr_page)] = CARD_UAR;
    words[WORD_OF(rdma_hca_qpc, port_pkey)] = RDMA_HCA_PREP(RDMA_HCA_QPC_PORT,
                                                            1);
    words[WORD_OF(rdma_hca_qpc, rnr_retry_path)] = RDMA_HCA_QPC_GRH;
    words[WORD_OF(rdma_hca_qpc, pd)] = s->pair->pd[0];
    words[WORD_OF(rdma_hca_qpc, cqn_snd)] = s->pair->cq[0]->cqn;
    words[WORD_OF(rdma_hca_qpc, snd_wqe_base_l)] = s->pair->mr[0]->key;
    words[WORD_OF(rdma_hca_qpc, snd_wqe_len)] = 4096;
    words[WORD_OF(rdma_hca_qpc, cqn_rcv)] = s->pair->cq[0]->cqn;
    words[WORD_OF(rdma_hca_qpc, rcv_wqe_base_l)] = s->pair->mr[0]->key;
    words[WORD_OF(rdma_hca_qpc, rcv_wqe_len)] = 4096;
    put64(words, WORD_OF(rdma_hca_qpc, rq_db_h), victim.qp->rq_record);
}

/* A WQE that cannot be: UC and UD queue pairs go to SQE. */
static void to_sqe(Scene *s)
{
    qp_ring(victim.qp, RDMA_HCA_OPCODE_ATOMIC_CS,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, SPARE_QPN) | 1);
    lab_run(s->pair->lab);
}

static void prepare_qpc(Scene *s, const uint32_t *words)
{
    Qp *qp = victim.qp;
    unsigned state = victim.from;

    if (state > RDMA_HCA_QP_STATE_RST) {
        EXPECT(qp_to_init(qp, &victim.attr), OK);
    }
    if (state > RDMA_HCA_QP_STATE_INIT) {
        EXPECT(qp_to_rtr(qp, &victim.attr), OK);
    }
    if (state > RDMA_HCA_QP_STATE_RTR) {
        EXPECT(qp_to_rts(qp, &victim.attr), OK);
    }
    if (state == RDMA_HCA_QP_STATE_SQD) {
        EXPECT(scene_command(s, RDMA_HCA_CMD_RTS2SQD_QPEE, 0, qp->qpn,
                             RDMA_HCA_MODIFY_NO_INBOX),
               OK);
    } else if (state == RDMA_HCA_QP_STATE_SQE) {
        to_sqe(s);
    } else if (state == RDMA_HCA_QP_STATE_ERR) {
        EXPECT(qp_to_err(qp), OK);
    }
    lab_run(s->pair->lab);
    EXPECT(qp_query(qp, &victim.before), OK);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(victim.before.flags)),
        ==, state);
}

static void finish_qpc(Scene *s, const uint32_t *words, uint8_t status)
{
    struct rdma_hca_qpc after;

    if (status) {
        EXPECT(qp_query(victim.qp, &after), OK);
        g_assert_cmpmem(&victim.before, sizeof(after), &after, sizeof(after));
    }
    EXPECT(qp_to_rst(victim.qp), OK);
}

#define INIT_ATTRS (ATTR(PKEY_INDEX) | ATTR(PORT))
#define RTR_ATTRS (ATTR(AV) | ATTR(PATH_MTU) | ATTR(DEST_QPN))

/* A command, where it begins, and what it takes without being asked. */
static const struct {
    const char *name;
    uint16_t op;
    unsigned from;
    uint32_t taken[RDMA_HCA_QP_ST_UD + 1]; /* by service type */
} modify[] = {
    { "RST2INIT",
      RDMA_HCA_CMD_RST2INIT_QPEE,
      RDMA_HCA_QP_STATE_RST,
      { CREATE | INIT_ATTRS, CREATE | INIT_ATTRS, 0, CREATE | INIT_ATTRS } },
    { "INIT2INIT",
      RDMA_HCA_CMD_INIT2INIT_QPEE,
      RDMA_HCA_QP_STATE_INIT,
      { INIT_ATTRS, INIT_ATTRS, 0, INIT_ATTRS } },
    { "INIT2RTR",
      RDMA_HCA_CMD_INIT2RTR_QPEE,
      RDMA_HCA_QP_STATE_INIT,
      { RTR_ATTRS | ATTR(MAX_DEST_RD_ATOMIC), RTR_ATTRS, 0, 0 } },
    { "RTR2RTS",
      RDMA_HCA_CMD_RTR2RTS_QPEE,
      RDMA_HCA_QP_STATE_RTR,
      { ATTR(SQ_PSN) | ATTR(MAX_QP_RD_ATOMIC), ATTR(SQ_PSN), 0,
        ATTR(SQ_PSN) } },
    { "RTS2RTS", RDMA_HCA_CMD_RTS2RTS_QPEE, RDMA_HCA_QP_STATE_RTS, { 0 } },
    { "RTS2SQD", RDMA_HCA_CMD_RTS2SQD_QPEE, RDMA_HCA_QP_STATE_RTS, { 0 } },
    { "SQD2SQD", RDMA_HCA_CMD_SQD2SQD_QPEE, RDMA_HCA_QP_STATE_SQD, { 0 } },
    { "SQD2RTS", RDMA_HCA_CMD_SQD2RTS_QPEE, RDMA_HCA_QP_STATE_SQD, { 0 } },
    { "SQERR2RTS", RDMA_HCA_CMD_SQERR2RTS_QPEE, RDMA_HCA_QP_STATE_SQE, { 0 } },
    { "2ERR", RDMA_HCA_CMD_2ERR_QPEE, RDMA_HCA_QP_STATE_RTS, { 0 } },
    { "ERR2RST", RDMA_HCA_CMD_ERR2RST_QPEE, RDMA_HCA_QP_STATE_ERR, { 0 } },
};

/* A RoCE card has more than one source GID, and no group as a peer. */
static unsigned roce_fields(const Scene *s, Field *fields)
{
    static const Field rgid = QPC(rgid, ALL, ATTR(AV), .high = 0xfeffffff);
    unsigned n = G_N_ELEMENTS(qpc_fields);

    for (unsigned i = 0; i < n; i++) {
        if (fields[i].word == WORD_OF(rdma_hca_qpc, ackto_path) &&
            fields[i].mask == RDMA_HCA_QPC_SGID_INDEX) {
            fields[i].high = (1u << s->host->config.log_gids) - 1;
        }
    }
    fields[n++] = rgid;
    return n;
}

static void walk_modify(Scene *s, unsigned row, uint8_t service)
{
    Field fields[G_N_ELEMENTS(qpc_fields) + 1];
    Box box = BOX(RST2INIT_QPEE, rdma_hca_qpc, fields, .in_modifier = SPARE_QPN,
                  .make = make_qpc, .prepare = prepare_qpc,
                  .finish = finish_qpc);

    memcpy(fields, qpc_fields, sizeof(qpc_fields));
    box.nfields = s->drv->roce ? roce_fields(s, fields)
                               : G_N_ELEMENTS(qpc_fields);
    if (modify[row].from == RDMA_HCA_QP_STATE_SQE &&
        service == RDMA_HCA_QP_ST_RC) {
        return;
    }
    box.name = modify[row].name;
    box.op = modify[row].op;
    victim.from = modify[row].from;
    walk_box(s, &box, modify[row].taken[service]);
    scene_check(s);
}

static void test_modify_qp(gconstpointer data)
{
    uint8_t service = GPOINTER_TO_UINT(data);
    QpConfig config;
    Scene s;

    scene_init(&s, 2003);
    g_assert_cmpuint(s.pair->cq[0]->cqn, ==, 1); /* as qpc_fields has it */
    qp_config_init(&config, s.pair->pd[0], s.pair->cq[0]);
    config.service = service;
    config.uar = CARD_UAR;
    qp_attr_init(&victim.attr);
    victim.qp = qp_new_number(s.drv, &config, SPARE_QPN);
    for (unsigned row = 0; row < G_N_ELEMENTS(modify); row++) {
        walk_modify(&s, row, service);
    }
    qp_destroy(victim.qp);
    scene_free(&s);
}

/* ---- the command register's own fields ---- */

/* Numbers of objects: everything from the table's end on is BAD_INDEX. */
static void test_indices(void)
{
    static const struct {
        uint16_t op;
        unsigned log;
        size_t inbox;
    } indexed[] = {
        { RDMA_HCA_CMD_SW2HW_MPT, LOG_MPTS, 64 },
        { RDMA_HCA_CMD_QUERY_MPT, LOG_MPTS, 0 },
        { RDMA_HCA_CMD_HW2SW_MPT, LOG_MPTS, 0 },
        { RDMA_HCA_CMD_MAP_EQ, LOG_EQS, 0 },
        { RDMA_HCA_CMD_SW2HW_EQ, LOG_EQS, 64 },
        { RDMA_HCA_CMD_HW2SW_EQ, LOG_EQS, 0 },
        { RDMA_HCA_CMD_QUERY_EQ, LOG_EQS, 0 },
        { RDMA_HCA_CMD_SW2HW_CQ, LOG_CQS, 64 },
        { RDMA_HCA_CMD_HW2SW_CQ, LOG_CQS, 0 },
        { RDMA_HCA_CMD_QUERY_CQ, LOG_CQS, 0 },
        { RDMA_HCA_CMD_RESIZE_CQ, LOG_CQS, 32 },
        { RDMA_HCA_CMD_QUERY_QP, LOG_QPS, 0 },
        { RDMA_HCA_CMD_RST2INIT_QPEE, LOG_QPS, 256 },
        { RDMA_HCA_CMD_RTS2RTS_QPEE, LOG_QPS, 256 },
        { RDMA_HCA_CMD_2ERR_QPEE, LOG_QPS, 256 },
        { RDMA_HCA_CMD_ERR2RST_QPEE, LOG_QPS, 256 },
    };
    Scene s;

    scene_init(&s, 2004);
    for (unsigned i = 0; i < G_N_ELEMENTS(indexed); i++) {
        uint32_t end = 1u << indexed[i].log;
        const uint32_t numbers[] = {
            end,         end + 1,    end | 1,
            end * 2 + 1, 1u << 23,   1u << 24,
            1u << 30,    0x7ffffffe, pair_rand(s.pair, end, 0x7fffffff),
        };

        host_fill(s.host, s.drv->mbox_in, 0, HOST_PAGE_SIZE);
        for (unsigned n = 0; n < G_N_ELEMENTS(numbers); n++) {
            EXPECT(
                scene_command(&s, indexed[i].op, s.drv->mbox_in, numbers[n], 0),
                BAD_INDEX);
        }
    }
    for (uint32_t first = 4096; first; first <<= 1) {
        EXPECT(scene_command(&s, RDMA_HCA_CMD_DIAG_RPRT, 0, first, 0),
               BAD_INDEX);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_DIAG_RPRT, 0, -first, 1),
               BAD_INDEX);
    }
    for (uint32_t port = 0; port < 300; port++) {
        uint8_t status = port == 1 ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_INDEX;

        g_assert_cmphex(scene_command(&s, RDMA_HCA_CMD_QUERY_PORT, 0, port, 0),
                        ==, status);
        g_assert_cmphex(scene_command(&s, RDMA_HCA_CMD_INIT_IB, 0, port, 0), ==,
                        status);
        if (port != 1) {
            g_assert_cmphex(
                scene_command(&s, RDMA_HCA_CMD_CLOSE_IB, 0, port, 0), ==,
                status);
        }
    }
    scene_free(&s);
}

/* op_modifier: where it counts, other values are BAD_PARAM. */
static void test_op_modifier(void)
{
    Scene s;

    scene_init(&s, 2005);
    for (unsigned modifier = 0; modifier < 256; modifier++) {
        bool kind = modifier == RDMA_HCA_ICM_CXT ||
                    modifier == RDMA_HCA_ICM_TPT;
        uint64_t far = UINT64_C(0x80000000);
        uint8_t status = kind ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM;

        g_assert_cmphex(
            scene_map_icm(&s, modifier, far, host_alloc(s.host, 1), 1), ==,
            status);
        g_assert_cmphex(scene_unmap_icm(&s, modifier, far, 1), ==, status);
        /* Of a QP in RST: 3 is "no inbox", 0 one of zeros, else refused. */
        status = modifier == 0 || modifier == RDMA_HCA_MODIFY_NO_INBOX
                     ? RDMA_HCA_STAT_OK
                     : RDMA_HCA_STAT_BAD_PARAM;
        host_fill(s.host, s.drv->mbox_in, 0, HOST_PAGE_SIZE);
        g_assert_cmphex(scene_command(&s, RDMA_HCA_CMD_ERR2RST_QPEE,
                                      s.drv->mbox_in, SPARE_QPN, modifier),
                        ==, status);
        status = modifier <= RDMA_HCA_DIAG_NAMES ? RDMA_HCA_STAT_OK
                                                 : RDMA_HCA_STAT_BAD_PARAM;
        g_assert_cmphex(
            scene_command(&s, RDMA_HCA_CMD_DIAG_RPRT, 0, 0, modifier), ==,
            status);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_NOP, 0, 0, modifier), OK);
    }
    scene_free(&s);
}

/* ---- ICM ---- */

static const uint64_t no_memory[] = {
    HOST_MMIO_BASE, /* registers */
    HOST_MMIO_BASE + HOST_MMIO_SIZE - HOST_PAGE_SIZE,
    0,
    0x7ffff000,
    UINT64_C(1) << 40,
    UINT64_C(0xfffffffffffff000),
};

static const Box *open_box(uint16_t op)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(boxes_open); i++) {
        if (boxes_open[i].op == op) {
            return &boxes_open[i];
        }
    }
    g_assert_not_reached();
}

static uint8_t send_good(Scene *s, uint16_t op, uint32_t number)
{
    Box box = *open_box(op);
    uint32_t words[MAX_WORDS] = { 0 };

    box.in_modifier = number;
    box.make(s, words);
    if (op == RDMA_HCA_CMD_SW2HW_MPT) {
        words[WORD_OF(rdma_hca_mpt, key)] = number;
        words[WORD_OF(rdma_hca_mpt, flags)] |= RDMA_HCA_MPT_PHYSICAL;
    } else if (op == RDMA_HCA_CMD_WRITE_MTT) {
        words[MTT_START + 1] = number;
    }
    return send_box(s, &box, words);
}

/* Nothing of tables that are nowhere can be used, and nothing is lost. */
static void try_tables_missing(Scene *s)
{
    struct rdma_hca_mpt mpt;

    EXPECT(send_good(s, RDMA_HCA_CMD_SW2HW_MPT, 3), BAD_SEG_PARAM);
    EXPECT(
        driver_cmd_out(s->drv, RDMA_HCA_CMD_QUERY_MPT, &mpt, sizeof(mpt), 3, 0),
        BAD_SEG_PARAM);
    EXPECT(send_good(s, RDMA_HCA_CMD_WRITE_MTT, 8), BAD_SEG_PARAM);
    EXPECT(scene_command(s, RDMA_HCA_CMD_READ_MTT, 8, 4, 0), BAD_SEG_PARAM);
    EXPECT(send_good(s, RDMA_HCA_CMD_SW2HW_EQ, 3), BAD_SEG_PARAM);
    EXPECT(scene_command(s, RDMA_HCA_CMD_HW2SW_EQ, 0, 3, 0), BAD_RES_STATE);
    EXPECT(scene_command(s, RDMA_HCA_CMD_SYNC_TPT, 0, 0, 0), OK);
}

/* Nothing is mapped, or what is mapped is not memory. */
static void test_icm_over_nothing(void)
{
    Scene s;

    scene_init(&s, 2006);
    scene_reset_card(&s);
    EXPECT(scene_small_init(&s), OK);
    try_tables_missing(&s);
    for (unsigned i = 0; i < G_N_ELEMENTS(no_memory); i++) {
        scene_reset_card(&s);
        if (no_memory[i] == UINT64_C(0xfffffffffffff000)) {
            /* The range would go past the last address. */
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_CXT, 0, no_memory[i], 2),
                   BAD_PARAM);
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0, no_memory[i], 1), OK);
        } else {
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_CXT, 0, no_memory[i], 3), OK);
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0, no_memory[i], 2), OK);
        }
        EXPECT(scene_small_init(&s), OK);
        try_tables_missing(&s);
    }
    /* Registers have been tried, and never touched. */
    g_assert_cmpuint(s.host->mmio_hits, >, 0);
    scene_recover(&s);
    scene_free(&s);
}

/* A page that is mapped stays what it is; a refused command maps none. */
static void test_icm_twice(void)
{
    Scene s;

    scene_init(&s, 2007);
    for (unsigned i = 0; i < NUM_ICM_TABLES; i++) {
        const IcmTable *table = &s.drv->icm[i];
        uint64_t virt = table->base & ~(uint64_t)(HOST_PAGE_SIZE - 1);

        EXPECT(scene_map_icm(&s, table->kind, virt, host_alloc(s.host, 1), 1),
               BAD_PARAM);
        /* From a free page on into the table. */
        if (virt) {
            EXPECT(scene_map_icm(&s, table->kind, virt - HOST_PAGE_SIZE,
                                 host_alloc(s.host, 2), 2),
                   BAD_PARAM);
            EXPECT(scene_unmap_icm(&s, table->kind, virt - HOST_PAGE_SIZE, 1),
                   BAD_PARAM);
        }
        scene_check(&s);
    }
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        struct rdma_hca_icm_entry entry[4] = { 0 };
        uint32_t far = 0x80000000;

        /* The third of four overlaps the first. */
        for (unsigned i = 0; i < 4; i++) {
            entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
                .virt_l = GUINT32_TO_BE(far + (i == 2 ? 0x1000 : i * 0x4000)),
                .page_l = GUINT32_TO_BE(0x100000 | 3),
            };
        }
        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry),
                             4, kind),
               BAD_PARAM);
        for (unsigned page = 0; page < 16; page++) {
            EXPECT(scene_unmap_icm(&s, kind, far + page * HOST_PAGE_SIZE, 1),
                   BAD_PARAM);
        }
    }
    scene_free(&s);
}

/* Any command, with numbers that exist and mailboxes that are half good. */
static void storm(Scene *s, unsigned count)
{
    static const uint16_t ops[] = {
        RDMA_HCA_CMD_SW2HW_MPT,
        RDMA_HCA_CMD_WRITE_MTT,
        RDMA_HCA_CMD_SW2HW_EQ,
        RDMA_HCA_CMD_SW2HW_CQ,
    };

    for (unsigned i = 0; i < count; i++) {
        uint32_t number = pair_rand(s->pair, 0, 16);

        send_good(s, ops[pair_rand(s->pair, 0, G_N_ELEMENTS(ops))], number);
        scene_command(s, known[pair_rand(s->pair, 0, G_N_ELEMENTS(known))].op,
                      s->drv->mbox_in, number, pair_rand(s->pair, 0, 4));
        if (i % 16 == 0) {
            host_uar_write64(s->host, CARD_UAR * RDMA_HCA_UAR_PAGE_SIZE,
                             RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, number) | 1);
            host_bar0_write(s->host, RDMA_HCA_EQ_DB + number % 8 * 4,
                            RDMA_HCA_EQ_DB_ARM | number);
        }
    }
    lab_run(s->pair->lab);
}

/*
 * One page for all tables, the mailbox and the queues: each write of the card
 * goes over all the others.
 */
static void test_icm_over_itself(void)
{
    Scene s;

    scene_init(&s, 2008);
    for (unsigned round = 0; round < 8; round++) {
        uint64_t page = round & 1 ? s.drv->mbox_in : host_alloc(s.host, 1);

        scene_reset_card(&s);
        for (unsigned i = 0; i < 3; i++) {
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_CXT, i * HOST_PAGE_SIZE, page,
                                 1),
                   OK);
        }
        for (unsigned i = 0; i < 2; i++) {
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, i * HOST_PAGE_SIZE, page,
                                 1),
                   OK);
        }
        EXPECT(scene_small_init(&s), OK);
        storm(&s, 400);
        scene_recover(&s);
    }
    scene_free(&s);
}

/* All tables at one place of ICM, overlapping. */
static void test_icm_tables_overlap(void)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = GUINT32_TO_BE(4),
        .cqc_base_l = GUINT32_TO_BE(4),
        .eqc_base_l = GUINT32_TO_BE(LOG_EQS),
        .mpt_base_l = GUINT32_TO_BE(4),
    };
    Scene s;

    scene_init(&s, 2009);
    scene_reset_card(&s);
    scene_small_map(&s);
    EXPECT(scene_command_in(&s, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0),
           OK);
    storm(&s, 400);
    scene_recover(&s);
    scene_free(&s);
}

/* The tables' pages go, under traffic; the same pages come back. */
static void test_icm_taken_away(void)
{
    const IcmTable *table;
    uint64_t first;
    unsigned pages;
    Scene s;

    scene_init(&s, 2010);
    table = &s.drv->icm[ICM_MPT];
    pages = table->size / HOST_PAGE_SIZE;
    g_assert_cmphex(table->base, ==, 0);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0, pages), OK);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0, pages), BAD_PARAM);
    EXPECT(send_good(&s, RDMA_HCA_CMD_SW2HW_MPT, SPARE_MPT), BAD_SEG_PARAM);
    /* The driver's list has the contexts' pages first, then these. */
    for (first = 0; first < s.drv->icm_pages->len; first++) {
        uint64_t cxt = 0;

        for (unsigned i = ICM_QPC; i <= ICM_EQC; i++) {
            cxt += (s.drv->icm[i].size + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;
        }
        if (first == cxt) {
            break;
        }
    }
    for (unsigned i = 0; i < pages; i++) {
        EXPECT(scene_map_icm(
                   &s, RDMA_HCA_ICM_TPT, (uint64_t)i * HOST_PAGE_SIZE,
                   g_array_index(s.drv->icm_pages, uint64_t, first + i), 1),
               OK);
    }
    scene_check(&s);
    for (unsigned i = ICM_QPC; i <= ICM_EQC; i++) {
        table = &s.drv->icm[i];
        pages = (table->size + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;
        EXPECT(scene_unmap_icm(&s, table->kind, table->base, pages), OK);
    }
    /* Contexts are written there, never read: what exists goes on. */
    scene_check(&s);
    EXPECT(send_good(&s, RDMA_HCA_CMD_SW2HW_CQ, SPARE_CQN), BAD_SEG_PARAM);
    scene_recover(&s);
    scene_free(&s);
}

/* ---- MTT, MPT and keys ---- */

static uint8_t write_mtt(Scene *s, uint64_t index, unsigned n)
{
    struct rdma_hca_mtt_mailbox *box = g_malloc0(RDMA_HCA_MAILBOX_SIZE);
    uint8_t status;

    box->start_index_h = GUINT32_TO_BE(RDMA_HCA_HI32(index));
    box->start_index_l = GUINT32_TO_BE(RDMA_HCA_LO32(index));
    status = scene_command_in(s, RDMA_HCA_CMD_WRITE_MTT, box,
                              RDMA_HCA_MAILBOX_SIZE, n);
    g_free(box);
    return status;
}

static void test_mtt_index(void)
{
    const uint64_t table = 1u << LOG_MTTS;
    static const uint64_t far[] = {
        1u << LOG_MTTS,
        1u << 20,
        UINT32_MAX,
        UINT64_C(1) << 32,
        (UINT64_C(1) << 61) - 1,
        UINT64_C(1) << 63,
        UINT64_MAX - 507,
        UINT64_MAX,
    };
    Scene s;

    scene_init(&s, 2011);
    for (unsigned n = 1; n <= RDMA_HCA_MTT_MAX_ENTRIES; n += 13) {
        EXPECT(write_mtt(&s, table - n, n), OK);
        EXPECT(write_mtt(&s, table - n + 1, n), BAD_INDEX);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, table - n, n, 0), OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, table - n + 1, n, 0),
               BAD_INDEX);
        for (unsigned i = 0; i < G_N_ELEMENTS(far); i++) {
            EXPECT(write_mtt(&s, far[i], n), BAD_INDEX);
            EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, far[i], n, 0),
                   BAD_INDEX);
        }
    }
    for (unsigned n = 509; n < 2000; n += 7) {
        EXPECT(write_mtt(&s, SPARE_MTT, n), BAD_PARAM);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, SPARE_MTT, n, 0),
               BAD_PARAM);
    }
    EXPECT(write_mtt(&s, SPARE_MTT, 0), BAD_PARAM);
    scene_free(&s);
}

static uint8_t sw2hw_mpt(Scene *s, const uint32_t *words)
{
    uint8_t status = send_box(s, open_box(RDMA_HCA_CMD_SW2HW_MPT), words);

    finish_mpt(s, words, status);
    return status;
}

/* For each page size, a region of some pages and the entries it has. */
static void test_mpt_length(void)
{
    Scene s;

    scene_init(&s, 2012);
    for (unsigned shift = 12; shift <= 31; shift++) {
        uint64_t page = UINT64_C(1) << shift;
        uint32_t words[MAX_WORDS] = { 0 };

        for (unsigned n = 1; n <= 40; n += 3) {
            /* It begins with the last byte of its first page. */
            uint64_t length = n == 1 ? 1 : (n - 2) * page + 2;

            make_mpt(&s, words);
            words[WORD_OF(rdma_hca_mpt, page_size)] = shift - 12;
            put64(words, WORD_OF(rdma_hca_mpt, start_h), 7 * page - 1);
            put64(words, WORD_OF(rdma_hca_mpt, length_h), length);
            words[WORD_OF(rdma_hca_mpt, mtt_sz)] = n;
            EXPECT(sw2hw_mpt(&s, words), OK);
            if (n > 1) {
                words[WORD_OF(rdma_hca_mpt, mtt_sz)] = n - 1;
                EXPECT(sw2hw_mpt(&s, words), BAD_PARAM);
            }
            /* The same at the end of the table, the number not given. */
            words[WORD_OF(rdma_hca_mpt, mtt_sz)] = 0;
            put64(words, WORD_OF(rdma_hca_mpt, mtt_seg_h),
                  (1u << LOG_MTTS) - n);
            EXPECT(sw2hw_mpt(&s, words), OK);
            words[WORD_OF(rdma_hca_mpt, mtt_seg_l)]++;
            EXPECT(sw2hw_mpt(&s, words), BAD_PARAM);
        }
        /* More than the whole table can map. */
        make_mpt(&s, words);
        words[WORD_OF(rdma_hca_mpt, page_size)] = shift - 12;
        put64(words, WORD_OF(rdma_hca_mpt, mtt_seg_h), 0);
        put64(words, WORD_OF(rdma_hca_mpt, length_h), (page << LOG_MTTS) + 1);
        words[WORD_OF(rdma_hca_mpt, mtt_sz)] = 0;
        EXPECT(sw2hw_mpt(&s, words), BAD_PARAM);
        put64(words, WORD_OF(rdma_hca_mpt, length_h), UINT64_MAX);
        EXPECT(sw2hw_mpt(&s, words), BAD_PARAM);
    }
    scene_free(&s);
}

/* The right entry by its low bits, another key by the high ones. */
static void test_key_bits(void)
{
    QpAttr attr;
    Scene s;
    Wc wc;

    scene_init(&s, 2013);
    qp_attr_init(&attr);
    for (unsigned bit = 0; bit < 32; bit++) {
        uint8_t op = bit & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                             : RDMA_HCA_OPCODE_RDMA_WRITE;
        uint8_t *image = mr_image(s.pair->mr[1]);
        Qp *qp[2];
        SendWr wr;
        Sge sge;

        pair_connect(s.pair, NULL, qp);
        wr = pair_send(s.pair, 0, op, 1, &sge, 0, 100, 0);
        wr.rkey ^= 1u << bit;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(s.pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
        qp_destroy(qp[0]);
        qp_destroy(qp[1]);
        pair_connect(s.pair, NULL, qp);
        wr = pair_send(s.pair, 0, op, 2, &sge, 0, 100, 0);
        sge.lkey ^= 1u << bit;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(s.pair->cq[0], &wc, 2, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
        qp_destroy(qp[0]);
        qp_destroy(qp[1]);
        mr_check_image(s.pair->mr[1], image);
        g_free(image);
        scene_check(&s);
    }
    scene_free(&s);
}

/* ---- numbers out of range in doorbells ---- */

static const uint32_t wild[] = {
    1u << LOG_QPS, (1u << LOG_QPS) + 1,
    0xfff,         1u << 14,
    1u << 16,      1u << 23,
    0xfffffe,      0xffffff,
};

static void test_doorbells(void)
{
    HcaSendCounters *counters;
    HcaCxtCounters *cxt;
    uint64_t qpns, cqns, eqns;
    Scene s;

    scene_init(&s, 2014);
    counters = &s.host->hca->send->counters;
    cxt = hca_cxt_counters(s.host->hca->cm);
    qpns = counters->db_bad_qpn;
    cqns = cxt->db_bad_cqn;
    eqns = cxt->db_bad_eqn;
    for (unsigned i = 0; i < G_N_ELEMENTS(wild); i++) {
        for (uint32_t uar = 0; uar < RDMA_HCA_NUM_UARS; uar += 89) {
            uint32_t at = uar * RDMA_HCA_UAR_PAGE_SIZE;
            uint64_t high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, wild[i]) | 1;
            uint32_t cmd = RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, uar & 3);

            host_uar_write64(s.host, at + RDMA_HCA_SEND_DB, high << 32);
            host_uar_write64(s.host, at + RDMA_HCA_CQ_DB, cmd | wild[i]);
            qpns++;
            cqns++;
        }
    }
    /* Registers of EQs that there are not: those beyond 8, and EQ 0. */
    for (uint32_t eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (eqn < 1 || eqn > NUM_EQS) {
            host_bar0_write(s.host,
                            RDMA_HCA_EQ_DB + eqn * RDMA_HCA_EQ_DB_STRIDE,
                            ALL << (eqn & 1));
            eqns++;
        }
    }
    lab_run(s.pair->lab);
    g_assert_cmpuint(counters->db_bad_qpn, ==, qpns);
    g_assert_cmpuint(cxt->db_bad_cqn, ==, cqns);
    g_assert_cmpuint(cxt->db_bad_eqn, ==, eqns);
    scene_free(&s);
}

/* Numbers that are right, from each page that is not theirs. */
static void test_foreign_pages(void)
{
    HcaCxtCounters *cxt;
    Cq *cq;
    Scene s;

    scene_init(&s, 2015);
    cxt = hca_cxt_counters(s.host->hca->cm);
    cq = s.pair->cq[0];
    for (uint32_t uar = 0; uar < RDMA_HCA_NUM_UARS; uar++) {
        uint32_t at = uar * RDMA_HCA_UAR_PAGE_SIZE;

        if (uar == cq->uar) {
            continue;
        }
        host_uar_write64(
            s.host, at + RDMA_HCA_SEND_DB,
            (uint64_t)RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.bystander[0]->qpn)
                << 32);
        host_uar_write64(
            s.host, at + RDMA_HCA_CQ_DB,
            RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, RDMA_HCA_CQ_DB_CMD_ARM_NEXT) |
                cq->cqn);
    }
    lab_run(s.pair->lab);
    g_assert_cmpuint(s.host->hca->send->counters.db_bad_uar, ==,
                     RDMA_HCA_NUM_UARS - 1);
    g_assert_cmpuint(cxt->db_bad_uar, ==, RDMA_HCA_NUM_UARS - 1);
    scene_check(&s);
    /* None of these has armed the queue. */
    g_assert_cmpuint(driver_count_events(s.drv, RDMA_HCA_EVENT_COMP), ==, 0);
    scene_free(&s);
}

/* ---- BARs ---- */

/*
 * Each register's worth of both BARs, written with patterns and read. (What is
 * narrower or not aligned ends in the PCI device: its qtest.)
 */
static void test_bars(void)
{
    static const uint32_t patterns[] = { 0, ALL, 0x01234567 };
    Scene s;

    scene_init(&s, 2016);
    for (unsigned i = 0; i < G_N_ELEMENTS(patterns); i++) {
        for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
            uint32_t offset = at - RDMA_HCA_HCR;
            uint32_t value;

            host_bar0_write(s.host, at, patterns[i]);
            value = host_bar0_read(s.host, at);
            if (offset >= RDMA_HCA_HCR_SIZE && at != RDMA_HCA_RESET) {
                g_assert_cmphex(value, ==, 0);
            }
        }
        for (uint32_t at = 0; at < RDMA_HCA_BAR2_SIZE; at += 4) {
            hca_doorbell(s.host->hca, RDMA_HCA_BAR2, at, patterns[i], 4);
            if (at % 8 == 0) {
                hca_doorbell(s.host->hca, RDMA_HCA_BAR2, at,
                             (uint64_t)patterns[i] << 32 | ~patterns[i], 8);
            }
        }
        lab_run(s.pair->lab);
    }
    scene_recover(&s);
    scene_free(&s);
}

/* ---- addresses that are registers ---- */

static void map_region_to(Scene *s, Mr *mr, uint64_t bus)
{
    struct rdma_hca_mtt_mailbox *box = g_malloc0(RDMA_HCA_MAILBOX_SIZE);

    box->start_index_l = GUINT32_TO_BE(mr->mtt);
    for (unsigned i = 0; i < mr->npages; i++) {
        uint64_t page = bus + (uint64_t)i * HOST_PAGE_SIZE;

        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
            RDMA_HCA_HI32(page));
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
            RDMA_HCA_LO32(page));
    }
    EXPECT(scene_command_in(s, RDMA_HCA_CMD_WRITE_MTT, box,
                            RDMA_HCA_MAILBOX_SIZE, mr->npages),
           OK);
    g_free(box);
}

/* A CQ whose consumer index, and a QP whose posted count, is a register. */
static void try_records(Scene *s, uint64_t bus)
{
    HcaCxtCounters *cxt = hca_cxt_counters(s->host->hca->cm);
    uint32_t words[MAX_WORDS] = { 0 };
    struct rdma_hca_qpc qpc;
    QpConfig config;
    QpAttr attr;
    SendWr wr;
    Sge sge;
    Qp *qp[2];
    Cq cq;
    Wc wc;

    make_cqc(s, words);
    words[WORD_OF(rdma_hca_cqc, logsize_usrpage)] = CARD_UAR;
    put64(words, WORD_OF(rdma_hca_cqc, ci_db_h), bus);
    EXPECT(send_box(s, &box_cqc, words), OK);
    cq = *s->pair->cq[0];
    cq.cqn = SPARE_CQN;
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, s->pair->pd[i], s->pair->cq[i]);
        config.uar = CARD_UAR;
        if (!i) {
            config.send_cq = &cq;
        }
        qp[i] = qp_new_number(s->pair->drv[i], &config, SPARE_QPN);
    }
    /* With the queue of one entry full, its record is asked. */
    qp[0]->rq_record = bus;
    qp_connect(qp[0], qp[1], &attr);
    EXPECT(qp_query(qp[0], &qpc), OK);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.rq_db_l), ==, (uint32_t)bus);
    for (unsigned i = 0; i < 2; i++) {
        wr = pair_send(s->pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0, 8,
                       0);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        lab_run(s->pair->lab);
    }
    g_assert_cmpuint(cxt->cq_overruns, ==, 1);
    g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_ERR);
    cxt->cq_overruns = 0;
    /* And what is sent there finds no receive queue that works. */
    EXPECT(scene_command(s, RDMA_HCA_CMD_ERR2RST_QPEE, 0, SPARE_QPN,
                         RDMA_HCA_MODIFY_NO_INBOX),
           OK);
    EXPECT(qp_to_rst(qp[1]), OK);
    qp[0]->send_cq = s->pair->cq[0];
    qp_connect(qp[0], qp[1], &attr);
    wr = pair_send(s->pair, 1, RDMA_HCA_OPCODE_SEND, 9, &sge, 0, 8, 0);
    g_assert_true(qp_post_send(qp[1], &wr, 1));
    cq_expect(s->pair->cq[1], &wc, 9, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    EXPECT(scene_command(s, RDMA_HCA_CMD_ERR2RST_QPEE, 0, SPARE_QPN,
                         RDMA_HCA_MODIFY_NO_INBOX),
           OK);
    qp[0]->rq_record = s->drv->record_page;
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
    finish_cqc(s, words, 0);
    driver_count_events(s->drv, RDMA_HCA_EVENT_CQ_ERROR);
    scene_check(s);
}

/* An EQ in a region of registers: its first event fails it. */
static void try_eq(Scene *s, uint64_t bus)
{
    uint32_t mpt[MAX_WORDS] = { 0 }, eqc[MAX_WORDS] = { 0 };
    struct rdma_hca_eqc after;
    Box box = *open_box(RDMA_HCA_CMD_SW2HW_EQ);
    uint64_t mask = UINT64_C(1) << RDMA_HCA_EVENT_CMD;

    make_mpt(s, mpt);
    mpt[WORD_OF(rdma_hca_mpt, flags)] |= RDMA_HCA_MPT_PHYSICAL;
    put64(mpt, WORD_OF(rdma_hca_mpt, start_h), bus);
    put64(mpt, WORD_OF(rdma_hca_mpt, length_h), HOST_PAGE_SIZE);
    EXPECT(send_box(s, open_box(RDMA_HCA_CMD_SW2HW_MPT), mpt), OK);
    make_eqc(s, eqc);
    eqc[WORD_OF(rdma_hca_eqc, lkey)] = mpt[WORD_OF(rdma_hca_mpt, key)];
    EXPECT(send_box(s, &box, eqc), OK);
    EXPECT(scene_command(s, RDMA_HCA_CMD_MAP_EQ, mask, SPARE_EQN, 0), OK);
    host_bar0_write(s->host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO | RDMA_HCA_HCR_EVENT | RDMA_HCA_CMD_NOP);
    lab_run(s->pair->lab);
    EXPECT(driver_cmd_out(s->drv, RDMA_HCA_CMD_QUERY_EQ, &after, sizeof(after),
                          SPARE_EQN, 0),
           OK);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, GUINT32_FROM_BE(after.flags)), ==,
        RDMA_HCA_EQ_STATUS_WRITE_FAIL);
    EXPECT(
        scene_command(s, RDMA_HCA_CMD_MAP_EQ, mask, s->drv->eq[EQ_CMD].eqn, 0),
        OK);
    finish_eqc(s, eqc, 0);
    finish_mpt(s, mpt, 0);
}

static void test_registers_as_memory(void)
{
    static const struct {
        uint8_t op;
        bool local;
        uint8_t syndrome;
    } uses[] = {
        { RDMA_HCA_OPCODE_SEND, true, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
        { RDMA_HCA_OPCODE_RDMA_WRITE, true, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
        { RDMA_HCA_OPCODE_RDMA_READ, true, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
        { RDMA_HCA_OPCODE_RDMA_WRITE, false, RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
        { RDMA_HCA_OPCODE_RDMA_READ, false, RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    };
    Scene s;
    Wc wc;

    scene_init(&s, 2017);
    for (unsigned b = 0; b < G_N_ELEMENTS(no_memory); b++) {
        uint64_t bus = no_memory[b];
        Mr *mr = mr_new(s.drv, s.pair->pd[0], 0x20000, 4096, ACCESS_ALL);

        /* Mailboxes. */
        EXPECT(driver_cmd(s.drv, RDMA_HCA_CMD_QUERY_FW, 0, 0, 0, bus, NULL),
               BAD_PARAM);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_SW2HW_MPT, bus, SPARE_MPT, 0),
               BAD_PARAM);
        /* Data, from this side and from the other. */
        map_region_to(&s, mr, bus);
        for (unsigned i = 0; i < G_N_ELEMENTS(uses); i++) {
            unsigned from = !uses[i].local;
            Qp *qp[2];
            SendWr wr;
            Sge sge;

            pair_connect(s.pair, NULL, qp);
            pair_post_recv(s.pair, !from, qp[!from], 7, 0, 100);
            wr = pair_send(s.pair, from, uses[i].op, i, &sge, 0, 100, 0);
            if (uses[i].local) {
                sge = mr_sge(mr, 0, 100);
            } else {
                wr.raddr = mr->va;
                wr.rkey = mr->key;
            }
            g_assert_true(qp_post_send(qp[from], &wr, 1));
            cq_expect(s.pair->cq[from], &wc, i, uses[i].syndrome);
            qp_destroy(qp[0]);
            qp_destroy(qp[1]);
        }
        EXPECT(mr_deregister(mr), OK);
        if (bus) {
            try_records(&s, bus); /* 0 is "no record" */
        }
        try_eq(&s, bus);
        scene_check(&s);
    }
    g_assert_cmpuint(s.host->mmio_hits, >, 0);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    lab_add_test("/bad-input/opcodes", test_opcodes);
    lab_add_test("/bad-input/mailboxes", test_mailboxes);
    lab_add_data_test("/bad-input/modify-qp/rc",
                      GUINT_TO_POINTER(RDMA_HCA_QP_ST_RC), test_modify_qp);
    lab_add_data_test("/bad-input/modify-qp/uc",
                      GUINT_TO_POINTER(RDMA_HCA_QP_ST_UC), test_modify_qp);
    lab_add_data_test("/bad-input/modify-qp/ud",
                      GUINT_TO_POINTER(RDMA_HCA_QP_ST_UD), test_modify_qp);
    lab_add_test("/bad-input/indices", test_indices);
    lab_add_test("/bad-input/op-modifier", test_op_modifier);
    lab_add_test("/bad-input/icm/over-nothing", test_icm_over_nothing);
    lab_add_test("/bad-input/icm/twice", test_icm_twice);
    lab_add_test("/bad-input/icm/over-itself", test_icm_over_itself);
    lab_add_test("/bad-input/icm/tables-overlap", test_icm_tables_overlap);
    lab_add_test("/bad-input/icm/taken-away", test_icm_taken_away);
    lab_add_test("/bad-input/mtt-index", test_mtt_index);
    lab_add_test("/bad-input/mpt-length", test_mpt_length);
    lab_add_test("/bad-input/key-bits", test_key_bits);
    lab_add_test("/bad-input/doorbells", test_doorbells);
    lab_add_test("/bad-input/foreign-pages", test_foreign_pages);
    lab_add_test("/bad-input/bars", test_bars);
    lab_add_test("/bad-input/registers-as-memory", test_registers_as_memory);
    return g_test_run();
}
