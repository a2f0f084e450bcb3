/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of an InfiniHost III Lx, byte by byte: work queue entries, and
 * the contexts of those that have them. Offsets are those of Linux's mthca.
 */
#include <string.h>

#include "../cxtmgt/cxt_format.h"
#include "../front/ceu/ceu_int.h"
#include "../wqe_format.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

typedef struct Word {
    uint16_t at;
    uint32_t value; /* big-endian in memory */
} Word;

static void put_words(uint8_t *box, const Word *words, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint32_t value = GUINT32_TO_BE(words[i].value);

        memcpy(box + words[i].at, &value, sizeof(value));
    }
}

#define PUT_WORDS(box, words) put_words(box, words, G_N_ELEMENTS(words))

/* Words that the rows name are as they say, and all others are 0. */
static void check_words(const uint8_t *box, size_t len, const Word *words,
                        unsigned n)
{
    g_autofree uint8_t *want = g_malloc0(len);

    put_words(want, words, n);
    for (unsigned at = 0; at < len; at += 4) {
        uint32_t got, expected;

        memcpy(&got, box + at, 4);
        memcpy(&expected, want + at, 4);
        if (got != expected) {
            g_test_message("word %#x", at);
        }
        g_assert_cmphex(GUINT32_FROM_BE(got), ==, GUINT32_FROM_BE(expected));
    }
}

#define CHECK_WORDS(box, words)                                                \
    check_words(box, sizeof(box), words, G_N_ELEMENTS(words))

static const HcaWqeFormat *format(void)
{
    return hca_front_interface(HCA_PERSONALITY_MTHCA)->format->wqe;
}

/* ---- contexts ---- */

typedef struct QpStep {
    uint16_t op;
    const Word *words;
    unsigned n;
} QpStep;

/* All that a reliable QP is told on its way to RTS, and asked for then. */
static void test_qpc(void)
{
    static const uint8_t dgid[16] = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0,
                                      1,    2,    3, 4, 5, 6, 7, 8 };
    Lab *lab = mthca_lab(8, 0);
    MthcaSide s;
    uint8_t back[8 + 256];

    mthca_side_open(&s, &lab->host[0], MTHCA_QPC_SERVICE_RC, false);
    {
        const Word init[] = {
            { 0x00, 0x0000081e },     /* rights, P_Key, port */
            { 0x08, 0x10001900 },     /* INIT, RC, migrated */
            { 0x10, 0x00231b00 },     /* 16 and 8 entries of 128 bytes */
            { 0x14, MTHCA_SIDE_UAR }, /* page */
            { 0x18, s.qp.qpn },       /* own number */
            { 0x28, 0x01000000 },     /* port 1, P_Key 0 */
            { 0x6c, s.m->pd },        /* PD */
            { 0x74, s.qp.mr->key },   /* L_Key */
            { 0x78, 0xa9004008 },     /* all sends make a CQE */
            { 0x84, s.cq.cqn },       /* of sends */
            { 0x88, 0x00000800 },     /* where sends begin */
            { 0x8c, s.qp.sq_record }, /* record */
            { 0x98, 0x00004008 },     /* RWE, RSC */
            { 0xa4, s.cq.cqn },       /* of receives */
            { 0xac, s.qp.rq_record }, /* record */
        };
        const Word rtr[] = {
            { 0x00, 0x000002ce }, /* rights, timer, path, reads */
            { 0x10, 0x7e000000 }, /* MTU 1024, 2^30 bytes */
            { 0x1c, 0x00abcdef }, /* remote number */
            { 0x2c, 0x00851234 }, /* GRH, path bits, LID */
            { 0x30, 0x00000103 }, /* GID 0, rate, hops */
            { 0x34, 0x91234567 }, /* SL, class, flow */
            { 0x38, 0xfe800000 }, { 0x40, 0x01020304 },
            { 0x44, 0x05060708 }, { 0x98, 0x0040e008 }, /* 4, all rights */
            { 0x9c, 0x0c555555 },                       /* timer, PSN */
        };
        const Word rts[] = {
            { 0x00, 0x0000d100 }, /* reads, retries */
            { 0x2c, 0x60000000 }, /* RNR retries: 3 */
            { 0x30, 0x70000000 }, /* time-out 14 */
            { 0x78, 0xa945e000 }, /* 4 reads, 5 retries */
            { 0x80, 0x00654321 }, /* PSN */
        };
        const Word all[] = {
            { 0x08, 0x30001900 },     { 0x10, 0x7e231b00 },
            { 0x14, MTHCA_SIDE_UAR }, { 0x18, s.qp.qpn },
            { 0x1c, 0x00abcdef },     { 0x28, 0x01000000 },
            { 0x2c, 0x60851234 },     { 0x30, 0x70000103 },
            { 0x34, 0x91234567 },     { 0x38, 0xfe800000 },
            { 0x40, 0x01020304 },     { 0x44, 0x05060708 },
            { 0x6c, s.m->pd },        { 0x74, s.qp.mr->key },
            { 0x78, 0x0045e008 },     { 0x80, 0x00654321 },
            { 0x84, s.cq.cqn },       { 0x88, 0x00000800 },
            { 0x90, 0x00654321 },     { 0x98, 0x0040e008 },
            { 0x9c, 0x0c555555 },     { 0xa4, s.cq.cqn },
        };
        const QpStep steps[] = {
            { RDMA_HCA_CMD_RST2INIT_QPEE, init, G_N_ELEMENTS(init) },
            { RDMA_HCA_CMD_INIT2RTR_QPEE, rtr, G_N_ELEMENTS(rtr) },
            { RDMA_HCA_CMD_RTR2RTS_QPEE, rts, G_N_ELEMENTS(rts) },
        };

        /* The records' pages */
        mthca_must(mthca_qp_to_init(s.m, &s.qp));
        mthca_must(mthca_qp_destroy(s.m, &s.qp));
        for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
            uint8_t box[8 + 256] = { 0 };

            put_words(box, steps[i].words, steps[i].n);
            mthca_must(
                mthca_cmd_in(s.m, steps[i].op, box, sizeof(box), s.qp.qpn, 0));
        }
        mthca_must(mthca_cmd_out(s.m, RDMA_HCA_CMD_QUERY_QP, back, sizeof(back),
                                 s.qp.qpn, 0));
        g_assert_cmpmem(back + 0x38, 16, dgid, 16);
        CHECK_WORDS(back, all);
    }
    mthca_lab_free(lab, s.m);
}

static void test_srqc(void)
{
    Lab *lab = mthca_lab(8, 0);
    MthcaSide s;
    MthcaSrq srq = { .srqn = 0x21,
                     .log_size = 4,
                     .log_stride = 6,
                     .uar = MTHCA_SIDE_UAR,
                     .record = 0x7ffd };
    uint8_t box[48] = { 0 }, back[48];

    mthca_side_open(&s, &lab->host[0], MTHCA_QPC_SERVICE_RC, false);
    srq.mr = mthca_mr(s.m, 1, 0);
    {
        const Word words[] = {
            { 0x00, 0x04000021 },                  /* 16 entries, number */
            { 0x04, srq.mr->key },                 /* L_Key */
            { 0x08, 0x00007ffd },                  /* record */
            { 0x0c, 0x40000000 | MTHCA_SIDE_UAR }, /* 64 bytes, page */
            { 0x18, 0x01000000 | s.m->pd },        /* an EQ of no use, PD */
        };
        const Word all[] = {
            { 0x00, 0x04000021 }, { 0x04, srq.mr->key }, { 0x0c, 0x40000000 },
            { 0x18, s.m->pd },    { 0x1c, 0x00050008 }, /* limit, WQEs */
        };

        mthca_must(mthca_sw2hw_srq(s.m, &srq)); /* maps the record's page */
        mthca_must(mthca_hw2sw_srq(s.m, &srq));
        PUT_WORDS(box, words);
        mthca_must(mthca_cmd_in(s.m, RDMA_HCA_CMD_SW2HW_SRQ, box, sizeof(box),
                                0x21, 0));
        srq.posted = 0;
        for (unsigned i = 0; i < 8; i++) {
            mthca_srq_post(s.m, &srq, NULL, 0);
        }
        mthca_must(mthca_cmd(s.m, RDMA_HCA_CMD_ARM_SRQ, 5, 0x21, 0, 0, NULL));
        mthca_must(mthca_cmd_out(s.m, RDMA_HCA_CMD_QUERY_SRQ, back,
                                 sizeof(back), 0x21, 0));
        CHECK_WORDS(back, all);
    }
    mthca_lab_free(lab, s.m);
}

/* An entry of a group, as ib_mthca writes it: what is behind its QPs is not. */
static void test_mgm(void)
{
    static const Word words[] = {
        { 0x00, 4097 << 6 },  /* the next one */
        { 0x10, 0xff12401b }, /* MGID */
        { 0x14, 0xffff0000 }, { 0x18, 0x00000000 }, { 0x1c, 0x12345678 },
        { 0x20, 0x80123456 }, /* its QPs */
        { 0x24, 0x80000406 }, { 0x28, 0x00777777 }, { 0x2c, 0x80777777 },
    };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 8, 0);
    uint8_t box[256] = { 0 }, back[256];

    mthca_probe(m);
    PUT_WORDS(box, words);
    mthca_must(
        mthca_cmd_in(m, RDMA_HCA_CMD_WRITE_MGM, box, sizeof(box), 17, 0));
    mthca_must(
        mthca_cmd_out(m, RDMA_HCA_CMD_READ_MGM, back, sizeof(back), 17, 0));
    check_words(back, sizeof(back), words, G_N_ELEMENTS(words) - 2);
    mthca_lab_free(lab, m);
}

/* ---- send WQEs ---- */

/* A WQE at 4000h in its region, which is @units units long. */
static HcaWqe wqe_of(uint8_t opcode, unsigned units, uint8_t count)
{
    return (HcaWqe) {
        .ref = { .offset = 0x4000,
                 .size = units * 16,
                 .opcode = opcode,
                 .count = count },
    };
}

static void test_next_segment(void)
{
    static const Word words[] = {
        { 0x00, 0x0000408b },
        { 0x04, 0x000000c5 },
        { 0x08, 0x0000000b },
        { 0x0c, 0x11223344 },
    };
    uint8_t bytes[16] = { 0 };
    HcaWqe wqe = wqe_of(HCA_OP_SEND, 1, 3);
    HcaWqeRef next;

    PUT_WORDS(bytes, words);
    format()->parse_header(bytes, &wqe, &next);
    g_assert_true(wqe.signalled && wqe.solicited);
    g_assert_cmphex(GUINT32_FROM_BE(wqe.imm_be), ==, 0x11223344);
    g_assert_cmphex(next.offset, ==, 0x4080);
    g_assert_cmphex(next.opcode, ==, HCA_OP_SEND_IMM);
    g_assert_cmpuint(next.size, ==, 5 * 16);
    g_assert_true(next.fence);
    g_assert_cmpuint(next.count, ==, 2);
    /* The last one that was rung for; and neither flag. */
    wqe = wqe_of(HCA_OP_SEND, 1, 1);
    bytes[0x0b] = 1;
    format()->parse_header(bytes, &wqe, &next);
    g_assert_false(wqe.signalled || wqe.solicited);
    g_assert_cmpuint(next.size, ==, 0);
}

/* A Write of two entries, one of which is empty. */
static void test_write(void)
{
    static const Word words[] = {
        { 0x10, 0x11223344 }, { 0x14, 0x55667788 }, /* address */
        { 0x18, 0xabcdef01 },                       /* R_Key */
        { 0x20, 0x00000000 }, { 0x24, 0x00000100 },
        { 0x30, 0x00012345 }, { 0x34, 0x00000777 }, /* length, L_Key */
        { 0x38, 0x99aabbcc }, { 0x3c, 0xddeeff00 }, /* address */
    };
    uint8_t bytes[64] = { 0 };
    HcaWqe wqe = wqe_of(HCA_OP_RDMA_WRITE, 4, 1);

    PUT_WORDS(bytes, words);
    g_assert_true(format()->parse_units(bytes, HCA_SERVICE_RC, 0x55, &wqe));
    g_assert_cmphex(wqe.raddr, ==, 0x1122334455667788);
    g_assert_cmphex(wqe.rkey, ==, 0xabcdef01);
    g_assert_cmphex(wqe.msg_len, ==, 0x12345);
    g_assert_cmpuint(wqe.nsge, ==, 1);
    g_assert_cmphex(wqe.sge[0].lkey, ==, 0x777);
    g_assert_cmphex(wqe.sge[0].va, ==, 0x99aabbccddeeff00);
    /* Cut in its address */
    wqe = wqe_of(HCA_OP_RDMA_WRITE, 1, 1);
    g_assert_false(format()->parse_units(bytes, HCA_SERVICE_RC, 0x55, &wqe));
}

static void test_atomic(void)
{
    static const Word words[] = {
        { 0x10, 0x11223344 }, { 0x14, 0x55667788 }, { 0x18, 0xabcdef01 },
        { 0x20, 0x01010101 }, { 0x24, 0x02020202 }, /* swap or add */
        { 0x28, 0x03030303 }, { 0x2c, 0x04040404 }, /* compare */
        { 0x30, 0x00000008 }, { 0x34, 0x00000777 }, { 0x3c, 0x00001000 },
    };
    uint8_t bytes[64] = { 0 };
    HcaWqe wqe = wqe_of(HCA_OP_ATOMIC_CS, 4, 1);

    PUT_WORDS(bytes, words);
    g_assert_true(format()->parse_units(bytes, HCA_SERVICE_RC, 0, &wqe));
    g_assert_cmphex(wqe.raddr, ==, 0x1122334455667788);
    g_assert_cmphex(wqe.rkey, ==, 0xabcdef01);
    g_assert_cmphex(wqe.swap_add, ==, 0x0101010102020202);
    g_assert_cmphex(wqe.compare, ==, 0x0303030304040404);
    g_assert_cmpuint(wqe.nsge, ==, 1);
    g_assert_cmphex(wqe.sge[0].va, ==, 0x1000);
    wqe = wqe_of(HCA_OP_ATOMIC_CS, 2, 1);
    g_assert_false(format()->parse_units(bytes, HCA_SERVICE_RC, 0, &wqe));
}

/* 20 bytes that lie in the WQE itself; a Read has nowhere to put them. */
static void test_inline(void)
{
    static const Word words[] = { { 0x10, 0x80000014 } };
    uint8_t bytes[48] = { 0 };
    HcaWqe wqe = wqe_of(HCA_OP_SEND, 3, 1);

    PUT_WORDS(bytes, words);
    g_assert_true(format()->parse_units(bytes, HCA_SERVICE_RC, 0x55, &wqe));
    g_assert_cmpuint(wqe.msg_len, ==, 20);
    g_assert_cmpuint(wqe.nsge, ==, 1);
    g_assert_true(wqe.sge[0].relative);
    g_assert_cmphex(wqe.sge[0].va, ==, 0x4014);
    g_assert_cmphex(wqe.sge[0].lkey, ==, 0x55);
    wqe = wqe_of(HCA_OP_SEND, 2, 1);
    g_assert_false(format()->parse_units(bytes, HCA_SERVICE_RC, 0x55, &wqe));
    memmove(bytes + 0x20, bytes + 0x10, 4);
    wqe = wqe_of(HCA_OP_RDMA_READ, 3, 1);
    g_assert_false(format()->parse_units(bytes, HCA_SERVICE_RC, 0x55, &wqe));
}

static void test_datagram(void)
{
    static const Word words[] = {
        { 0x10, 0x01000123 }, /* port, PD */
        { 0x14, 0x00851234 }, /* GRH, path bits, LID */
        { 0x18, 0x00033006 }, /* GID 3, message, hops */
        { 0x1c, 0x91234567 }, /* SL, class, flow */
        { 0x20, 0xfe800000 }, { 0x28, 0x01020304 }, { 0x2c, 0x05060708 },
        { 0x30, 0xff000407 }, /* number */
        { 0x34, 0x80010000 }, /* Q_Key */
        { 0x40, 0x00000064 }, { 0x44, 0x00000777 }, { 0x4c, 0x00002000 },
    };
    uint8_t bytes[80] = { 0 };
    HcaWqe wqe = wqe_of(HCA_OP_SEND, 5, 1);

    PUT_WORDS(bytes, words);
    g_assert_true(format()->parse_peer(bytes, false, &wqe));
    g_assert_cmphex(wqe.path.dlid, ==, 0x1234);
    g_assert_cmphex(wqe.path.path_bits, ==, 5);
    g_assert_true(wqe.path.grh);
    g_assert_cmpuint(wqe.path.sgid_index, ==, 3);
    g_assert_cmpuint(wqe.path.hop_limit, ==, 6);
    g_assert_cmpuint(wqe.path.sl, ==, 9);
    g_assert_cmphex(wqe.path.tclass, ==, 0x12);
    g_assert_cmphex(wqe.path.flow_label, ==, 0x34567);
    g_assert_cmpmem(wqe.path.dgid.raw, 16, bytes + 0x20, 16);
    g_assert_cmphex(wqe.dqpn, ==, 0x407);
    g_assert_cmphex(wqe.qkey, ==, 0x80010000);
    g_assert_true(format()->parse_units(bytes, HCA_SERVICE_UD, 0, &wqe));
    g_assert_cmpuint(wqe.nsge, ==, 1);
    g_assert_cmpuint(wqe.msg_len, ==, 100);
    /* Without GRH all that is of one may be anything. */
    bytes[0x15] = 0x05;
    wqe = wqe_of(HCA_OP_SEND, 5, 1);
    g_assert_true(format()->parse_peer(bytes, false, &wqe));
    g_assert_cmphex(wqe.path.dlid, ==, 0x1234);
    g_assert_cmphex(wqe.path.sgid_index, ==, 0);
    g_assert_cmphex(wqe.path.flow_label, ==, 0);
    /* Another port; and cut. */
    bytes[0x10] = 0x02;
    g_assert_false(format()->parse_peer(bytes, false, &wqe));
    bytes[0x10] = 0x01;
    wqe = wqe_of(HCA_OP_SEND, 3, 1);
    g_assert_false(format()->parse_peer(bytes, false, &wqe));
}

/* QP 0 and QP 1: headers, payload, and room for an ICRC. */
static void test_mlx(void)
{
    static const Word words[] = {
        { 0x10, 0x0000001c }, { 0x14, 0x00000777 }, { 0x1c, 0x00001000 },
        { 0x20, 0x00000100 }, { 0x24, 0x00000777 }, { 0x2c, 0x00002000 },
        { 0x30, 0x80000004 },
    };
    uint8_t bytes[64] = { 0 };
    HcaWqe wqe = wqe_of(HCA_OP_SEND, 4, 1);
    HcaSge headers;

    PUT_WORDS(bytes, words);
    g_assert_true(format()->parse_special(bytes, &wqe, &headers));
    g_assert_cmphex(headers.va, ==, 0x1000);
    g_assert_cmpuint(headers.len, ==, 28);
    g_assert_cmpuint(wqe.nsge, ==, 1);
    g_assert_cmphex(wqe.sge[0].va, ==, 0x2000);
    g_assert_cmpuint(wqe.sge[0].len, ==, 256);
    wqe = wqe_of(HCA_OP_SEND, 1, 1);
    g_assert_false(format()->parse_special(bytes, &wqe, &headers));
}

/* ---- receive WQEs ---- */

static void test_recv(void)
{
    static const Word words[] = {
        { 0x00, 0x00000181 }, /* in a list: where the next one is */
        { 0x10, 0x00000200 }, { 0x14, 0x00000777 }, { 0x18, 0x00000001 },
        { 0x1c, 0x00003000 }, { 0x24, 0x00000777 }, /* empty, and not the end */
        { 0x30, 0x00000040 }, { 0x34, 0x00000778 }, { 0x3c, 0x00004000 },
        { 0x44, 0x00000100 }, /* the end */
        { 0x50, 0x00000040 }, { 0x54, 0x00000779 },
    };
    uint8_t bytes[128] = { 0 };
    HcaRecvWqe wqe = { .offset = 0x80 };

    PUT_WORDS(bytes, words);
    g_assert_true(format()->parse_recv(bytes, sizeof(bytes), &wqe));
    g_assert_cmpuint(wqe.nsge, ==, 2);
    g_assert_cmphex(wqe.sge[0].va, ==, 0x100003000);
    g_assert_cmphex(wqe.sge[0].lkey, ==, 0x777);
    g_assert_cmpuint(wqe.sge[0].len, ==, 0x200);
    g_assert_cmphex(wqe.sge[1].va, ==, 0x4000);
    g_assert_cmphex(wqe.tag, ==, 0x80);
    g_assert_cmphex(format()->recv_link(bytes), ==, 0x180);
    /* Or the slot's own end; nothing can lie in a receive itself. */
    wqe = (HcaRecvWqe) { .offset = 0x80 };
    g_assert_true(format()->parse_recv(bytes, 64, &wqe));
    g_assert_cmpuint(wqe.nsge, ==, 2);
    bytes[0x10] = 0x80;
    g_assert_false(format()->parse_recv(bytes, 64, &wqe));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/contexts/qpc", test_qpc);
    test_add("/mthca/contexts/srqc", test_srqc);
    test_add("/mthca/contexts/mgm", test_mgm);
    test_add("/mthca/wqes/next-segment", test_next_segment);
    test_add("/mthca/wqes/write", test_write);
    test_add("/mthca/wqes/atomic", test_atomic);
    test_add("/mthca/wqes/inline", test_inline);
    test_add("/mthca/wqes/datagram", test_datagram);
    test_add("/mthca/wqes/mlx", test_mlx);
    test_add("/mthca/wqes/recv", test_recv);
    return g_test_run();
}
