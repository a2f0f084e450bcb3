/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of an InfiniHost III Lx, byte by byte: what the card says of
 * itself, and what it makes of contexts. Offsets are those of Linux's mthca.
 */
#include <string.h>

#include "../cxtmgt/cxt_format.h"
#include "../front/ceu/ceu_int.h"
#include "lib-card.h"
#include "lib-mthca.h"
#include "lib-test.h"

typedef struct Bytes {
    uint16_t at;
    uint8_t width;
    uint64_t value; /* big-endian in memory */
} Bytes;

static uint64_t get(const uint8_t *box, const Bytes *row)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < row->width; i++) {
        value = value << 8 | box[row->at + i];
    }
    return value;
}

/* What no row names is 0. */
static void check_box(const uint8_t *box, size_t len, const Bytes *rows,
                      unsigned n)
{
    bool named[256] = { false };

    for (unsigned i = 0; i < n; i++) {
        g_assert_cmphex(get(box, &rows[i]), ==, rows[i].value);
        memset(named + rows[i].at, true, rows[i].width);
    }
    for (unsigned i = 0; i < len; i++) {
        g_assert_true(named[i] || !box[i]);
    }
}

#define CHECK_BOX(box, rows)                                                   \
    check_box(box, sizeof(box), rows, G_N_ELEMENTS(rows))

static void test_query_fw(void)
{
    const uint64_t base = HOST_MMIO_BASE;
    const Bytes rows[] = {
        { 0x00, 2, 1 },
        { 0x02, 2, 1 },
        { 0x04, 2, 0 },
        { 0x06, 2, 2 },
        { 0x20, 8, base + 0x90000 },
        { 0x30, 8, base + 0x93000 },
        { 0x38, 4, 16 },
        { 0x40, 8, base + 0x91000 },
        { 0x48, 8, base + 0x92000 },
    };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 7, 0);

    mthca_query(m);
    CHECK_BOX(m->fw, rows);
    /* While all is well the buffer of errors reads 0, and so does what is not. */
    for (uint32_t at = 0; at < 16 * 4; at += 4) {
        g_assert_cmphex(mthca_read(m, 0x93000 + at), ==, 0);
    }
    mthca_lab_free(lab, m);
}

static void test_query_dev_lim(void)
{
    static const Bytes rows[] = {
        { 0x10, 1, 14 },   { 0x11, 1, 14 },   { 0x12, 1, 3 },
        { 0x13, 1, 16 },   { 0x15, 1, 13 },   { 0x19, 1, 17 },
        { 0x1b, 1, 16 },   { 0x1c, 1, 17 },   { 0x1d, 1, 17 },
        { 0x1f, 1, 5 },    { 0x20, 1, 0x40 }, { 0x21, 1, 31 },
        { 0x22, 1, 4 },    { 0x23, 1, 24 },   { 0x29, 1, 4 },
        { 0x2b, 1, 4 },    { 0x2f, 1, 24 },   { 0x35, 1, 15 },
        { 0x36, 1, 0x43 }, { 0x37, 1, 0x81 }, { 0x3b, 1, 3 },
        { 0x3c, 2, 0xf },  { 0x3f, 1, 5 },    { 0x44, 4, 0x00340347 },
        { 0x48, 1, 0x10 }, { 0x49, 1, 3 },    { 0x4b, 1, 12 },
        { 0x51, 1, 30 },   { 0x52, 2, 512 },  { 0x55, 1, 30 },
        { 0x56, 2, 512 },  { 0x61, 1, 6 },    { 0x63, 1, 13 },
        { 0x65, 1, 15 },   { 0x80, 2, 256 },  { 0x82, 2, 256 },
        { 0x84, 2, 32 },   { 0x86, 2, 32 },   { 0x88, 2, 64 },
        { 0x8a, 2, 64 },   { 0x8c, 2, 32 },   { 0x8e, 2, 32 },
        { 0x90, 2, 64 },   { 0x92, 2, 64 },   { 0xa0, 8, 1ull << 32 },
    };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 7, 0);

    mthca_query(m);
    CHECK_BOX(m->lim, rows);
    mthca_lab_free(lab, m);
}

/* As sysfs has it: words in the reverse order of bytes. */
static void test_query_adapter(void)
{
    char board[17] = "";
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 7, 0);

    mthca_probe(m);
    g_assert_cmpuint(m->adapter[0x10], ==, 31);
    for (unsigned i = 0; i < 16; i++) {
        board[i] = m->adapter[0x20 + 0xd0 + (i / 4 * 4 + 3 - i % 4)];
    }
    g_assert_cmpstr(board, ==, "RDMA-HCA-MTHCA-1");
    mthca_lab_free(lab, m);
}

/* Each right of a region has its bit; what comes is the table's own key. */
static void test_mpt(void)
{
    static const struct {
        uint32_t bit;
        uint32_t access;
    } rights[] = {
        { 1u << 11, HCA_ACCESS_LOCAL_WRITE },
        { 1u << 11 | 1u << 12,
          HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_READ },
        { 1u << 11 | 1u << 13,
          HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE },
        { 1u << 11 | 1u << 14,
          HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_ATOMIC },
    };
    HcaMpt mpt;

    for (unsigned i = 0; i < G_N_ELEMENTS(rights); i++) {
        uint8_t entry[64] = { 0 };
        const uint32_t words[] = {
            0xf0028500 | rights[i].bit,
            9,
            0x5a000123,
            0x77123456,
            0x00000012,
            0x34567000,
            0,
            0x00200000,
            0,
            0,
            0,
            0x00000001,
            0x00000040,
            0,
        };

        for (unsigned w = 0; w < G_N_ELEMENTS(words); w++) {
            uint32_t word = GUINT32_TO_BE(words[w]);

            memcpy(entry + 4 * w, &word, sizeof(word));
        }
        hca_front_interface(HCA_PERSONALITY_MTHCA)
            ->format->mpt->decode(&mpt, entry);
        g_assert_true(mpt.sw_owns && mpt.region && mpt.local);
        g_assert_true(mpt.bind_enable && !mpt.physical);
        g_assert_cmphex(mpt.access, ==, rights[i].access);
        g_assert_cmpuint(mpt.page_shift, ==, 12 + 9);
        g_assert_cmphex(mpt.key, ==, 0x0001235a);
        g_assert_cmphex(mpt.pd, ==, 0x123456);
        g_assert_cmphex(mpt.start, ==, 0x1234567000);
        g_assert_cmphex(mpt.length, ==, 0x200000);
        g_assert_cmphex(mpt.mtt_seg, ==, 0x100000040 / 8);
    }
}

/* Local access is by its own bit; iPXE leaves that of memory, or not, clear. */
static void test_mpt_local(void)
{
    static const struct {
        uint32_t flags;
        bool local;
    } rows[] = {
        { 0x00028500, true },
        { 0x00000700, true },
        { 0x00028100, false },
    };
    HcaMpt mpt;

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t entry[16] = { GUINT32_TO_BE(rows[i].flags) };

        hca_front_interface(HCA_PERSONALITY_MTHCA)
            ->format->mpt->decode(&mpt, entry);
        g_assert_cmpint(mpt.local, ==, rows[i].local);
    }
}

/* What was decoded is the same when it is written and read again. */
static void test_mpt_both_ways(void)
{
    const HcaMptFormat *format =
        hca_front_interface(HCA_PERSONALITY_MTHCA)->format->mpt;
    GRand *rand = g_rand_new_with_seed(lab_seed(11));

    for (unsigned round = 0; round < 1000; round++) {
        uint32_t entry[16], back[16] = { 0 };
        HcaMpt once, twice;

        for (unsigned i = 0; i < 16; i++) {
            entry[i] = g_rand_int(rand);
        }
        format->decode(&once, entry);
        format->encode(&once, back);
        format->decode(&twice, back);
        g_assert_cmpmem(&once, sizeof(once), &twice, sizeof(twice));
    }
    g_rand_free(rand);
}

static void put_word(uint8_t *box, unsigned at, uint32_t value)
{
    value = GUINT32_TO_BE(value);
    memcpy(box + at, &value, sizeof(value));
}

static void test_eqc(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 7, 0);
    Hca *hca = lab->host[0].hca;
    uint8_t eqc[64] = { 0 }, back[64];
    MthcaMr *mr;
    HcaEq *eq;

    mthca_probe(m);
    mr = mthca_mr(m, 2, 0);
    put_word(eqc, 0x00, 0x01040b00); /* the card's, TR, always armed */
    put_word(eqc, 0x08, 0x20);       /* where it begins in its region */
    put_word(eqc, 0x0c, 5u << 24);
    put_word(eqc, 0x14, 0x80 | 2);
    put_word(eqc, 0x18, m->pd);
    put_word(eqc, 0x1c, mr->key);
    put_word(eqc, 0x28, 0x12345678);
    put_word(eqc, 0x2c, 0x12345678);
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_EQ, eqc, sizeof(eqc), 9, 0), ==, 0);
    eq = hca_eq_peek(hca->cm, 9);
    g_assert_cmpuint(eq->attr.vector, ==, 2);
    g_assert_cmphex(eq->attr.start, ==, 0x20);
    g_assert_cmpuint(eq->attr.log_size, ==, 5);
    g_assert_cmphex(eq->attr.pd, ==, m->pd);
    g_assert_cmphex(eq->attr.lkey, ==, mr->key);
    g_assert_cmpint(eq->arm, ==, HCA_EQ_ALWAYS_ARMED);
    g_assert_cmphex(eq->producer_index, ==, 0x12345678);
    g_assert_cmphex(
        mthca_cmd_out(m, RDMA_HCA_CMD_HW2SW_EQ, back, sizeof(back), 9, 0), ==,
        0);
    g_assert_cmpmem(eqc, sizeof(eqc), back, sizeof(back));
    mthca_lab_free(lab, m);
}

/* Contexts that are none, each by one thing. */
static void test_eqc_refused(void)
{
    static const struct {
        unsigned at;
        uint32_t flip;
    } wrong[] = {
        { 0x00, 0x90000000 }, /* it has failed */
        { 0x00, 0x00000100 }, /* a state that there is not */
        { 0x08, 0x00000010 }, /* not at an entry */
        { 0x0c, 0x1f000000 }, /* larger than there are */
        { 0x14, 0x0000003f }, /* one that the function has not */
        { 0x2c, 0x00000001 }, /* entries in it */
    };
    struct mthca_eqc eqc;
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 7, 0);
    MthcaEq eq = { .eqn = 9, .log_size = 5 };

    mthca_probe(m);
    eq.mr = mthca_mr(m, 1, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        uint32_t *word;

        mthca_put_eqc(&eq, m->pd, 0, &eqc);
        word = (uint32_t *)((uint8_t *)&eqc + wrong[i].at);
        *word ^= GUINT32_TO_BE(wrong[i].flip);
        g_assert_cmphex(
            mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), 9, 0), ==,
            RDMA_HCA_STAT_BAD_PARAM);
    }
    g_assert_cmphex(mthca_sw2hw_eq(m, &eq), ==, 0);
    g_assert_cmphex(mthca_sw2hw_eq(m, &eq), ==, MTHCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(mthca_hw2sw_eq(m, &eq), ==, 0);
    g_assert_cmphex(mthca_hw2sw_eq(m, &eq), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    mthca_lab_free(lab, m);
}

/* Entries of each kind, as bytes. */
static void test_eqe(void)
{
    static const struct {
        HcaEvent event;
        uint8_t bytes[32];
    } rows[] = {
        { { .type = HCA_EVENT_COMP, .number = 0x123456 },
          { [1] = 0x00, [5] = 0x12, 0x34, 0x56 } },
        { { .type = HCA_EVENT_COMM_EST, .number = 0xabcdef },
          { [1] = 0x02, [5] = 0xab, 0xcd, 0xef } },
        { { .type = HCA_EVENT_CQ_ERROR,
            .number = 0x54321,
            .syndrome = HCA_CQ_ERROR_ACCESS },
          { [1] = 0x04, [5] = 0x05, 0x43, 0x21, [0xf] = 2 } },
        { { .type = HCA_EVENT_PORT_CHANGE,
            .subtype = HCA_PORT_CHANGE_ACTIVE,
            .number = 1 },
          { [1] = 0x09, [3] = 4, [0xc] = 0x10 } },
        { { .type = HCA_EVENT_CMD,
            .number = 0x1234,
            .status = HCA_STAT_BAD_RESOURCE,
            .out_param = 0x1122334455667788 },
          { [1] = 0x0a,
            [6] = 0x12,
            0x34,
            [0xf] = 5,
            0x11,
            0x22,
            0x33,
            0x44,
            0x55,
            0x66,
            0x77,
            0x88 } },
        { { .type = HCA_EVENT_SRQ_LIMIT, .number = 0x777 },
          { [1] = 0x14, [6] = 0x07, 0x77 } },
    };
    const HcaCxtFormat *format =
        hca_front_interface(HCA_PERSONALITY_MTHCA)->format->cxt;

    g_assert_cmpuint(format->eqe_size, ==, 32);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t entry[32];

        format->put_eqe(&rows[i].event, entry);
        g_assert_cmpmem(entry, sizeof(entry), rows[i].bytes,
                        sizeof(rows[i].bytes));
    }
}

static void test_cqc(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 7, 0);
    uint8_t cqc[64] = { 0 }, back[64];
    MthcaMr *mr;
    const HcaCq *cq;

    mthca_probe(m);
    mr = mthca_mr(m, 1, 0);
    put_word(cqc, 0x00, 0x00060900); /* TR, overruns ignored, armed */
    put_word(cqc, 0x08, 0x40);
    put_word(cqc, 0x0c, 5u << 24 | 3);
    put_word(cqc, 0x10, 0xff); /* of no use */
    put_word(cqc, 0x14, 1);
    put_word(cqc, 0x18, m->pd);
    put_word(cqc, 0x1c, mr->key);
    put_word(cqc, 0x30, 0x770055);
    put_word(cqc, 0x34, 0x1234);
    put_word(cqc, 0x38, 0x5678);
    g_assert_cmphex(
        mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_CQ, cqc, sizeof(cqc), 0x770055, 0),
        ==, 0);
    cq = hca_cq_peek(lab->host[0].hca->cm, 0x770055);
    g_assert_cmphex(cq->attr.start, ==, 0x40);
    g_assert_cmpuint(cq->attr.log_size, ==, 5);
    g_assert_cmpuint(cq->attr.uar, ==, 3);
    g_assert_cmpuint(cq->attr.eqn, ==, 1);
    g_assert_cmphex(cq->attr.lkey, ==, mr->key);
    g_assert_true(cq->attr.ignore_overrun);
    g_assert_cmpint(cq->arm, ==, HCA_CQ_ARMED_NEXT);
    g_assert_cmphex(cq->attr.ci_db, ==,
                    m->place[MTHCA_UARC].base + 3 * 0x40000 + 0x1234 * 8);
    g_assert_cmphex(mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_CQ, back, sizeof(back),
                                  0x770055, 0),
                    ==, 0);
    put_word(cqc, 0x10, 0);
    put_word(cqc, 0x34, 0);
    put_word(cqc, 0x38, 0);
    g_assert_cmpmem(cqc, sizeof(cqc), back, sizeof(back));
    mthca_lab_free(lab, m);
}

/* Entries of each kind, as bytes. */
static void test_cqe(void)
{
    static const struct {
        HcaCompletion completion;
        uint8_t bytes[32];
    } rows[] = {
        { { .qpn = 0x123456,
            .wqe = 0x12340,
            .byte_cnt = 8,
            .is_send = true,
            .opcode = 0x10 },
          { [1] = 0x12,
            0x34,
            0x56,
            [0x17] = 8,
            [0x19] = 1,
            0x23,
            0x40,
            0x10,
            0x80 } },
        { { .qpn = 7,
            .remote_qpn = 0xabcdef,
            .wqe = 0x40,
            .byte_cnt = 0x10203,
            .opcode = 0x65,
            .imm_be = 0x44332211,
            .source = { .lid = 0x1234,
                        .path_bits = 0x55,
                        .sl = 9,
                        .grh = true } },
          { [3] = 7,
            [9] = 0xab,
            0xcd,
            0xef,
            0x90,
            0xd5,
            0x12,
            0x34,
            0x11,
            0x22,
            0x33,
            0x44,
            0x00,
            0x01,
            0x02,
            0x03,
            [0x1b] = 0x40,
            0x65 } },
        { { .qpn = 10,
            .remote_qpn = 1,
            .byte_cnt = 0x100,
            .opcode = 0x64,
            .has_pkey_index = true,
            .pkey_index = 0x1f },
          { [3] = 10, [0xb] = 1, [0x11] = 0x1f, [0x16] = 1, [0x1c] = 0x64 } },
        { { .qpn = 3,
            .wqe = 0x80,
            .is_send = true,
            .opcode = 0x0a,
            .syndrome = 0x0c,
            .vendor_err = 0x77,
            .imm_be = 0x55555555 },
          { [3] = 3, [0x10] = 0x0c, 0x77, [0x1b] = 0x80, 0xff, 0x80 } },
        { { .qpn = 3, .wqe = 0xc0, .syndrome = 0x05, .opcode = 0x04 },
          { [3] = 3, [0x10] = 0x05, [0x1b] = 0xc0, 0xfe } },
    };
    const HcaCxtFormat *format =
        hca_front_interface(HCA_PERSONALITY_MTHCA)->format->cxt;

    g_assert_cmpuint(format->cqe_size, ==, 32);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t entry[32];

        format->put_cqe(&rows[i].completion, -1, entry);
        g_assert_cmpmem(entry, sizeof(entry), rows[i].bytes,
                        sizeof(rows[i].bytes));
    }
}

/* Statuses that have other numbers here, and one that has the same. */
static void test_statuses(void)
{
    const HcaCommandTable *table =
        hca_front_interface(HCA_PERSONALITY_MTHCA)->commands;

    g_assert_cmphex(table->status(HCA_STAT_OK), ==, 0x00);
    g_assert_cmphex(table->status(HCA_STAT_BAD_RESOURCE), ==, 0x05);
    g_assert_cmphex(table->status(HCA_STAT_RESOURCE_BUSY), ==, 0x06);
    g_assert_cmphex(table->status(RDMA_HCA_STAT_BAD_NVMEM), ==, 0x0b);
    g_assert_cmphex(table->status(HCA_STAT_EXCEED_LIM), ==, 0x08);
    g_assert_cmphex(table->status(RDMA_HCA_STAT_BAD_PKT), ==, 0x30);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/layouts/query-fw", test_query_fw);
    test_add("/mthca/layouts/query-dev-lim", test_query_dev_lim);
    test_add("/mthca/layouts/query-adapter", test_query_adapter);
    test_add("/mthca/layouts/mpt", test_mpt);
    test_add("/mthca/layouts/mpt-local", test_mpt_local);
    test_add("/mthca/layouts/mpt-both-ways", test_mpt_both_ways);
    test_add("/mthca/layouts/eqc", test_eqc);
    test_add("/mthca/layouts/eqc-refused", test_eqc_refused);
    test_add("/mthca/layouts/eqe", test_eqe);
    test_add("/mthca/layouts/cqc", test_cqc);
    test_add("/mthca/layouts/cqe", test_cqe);
    test_add("/mthca/layouts/statuses", test_statuses);
    return g_test_run();
}
