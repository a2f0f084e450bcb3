/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs of cards with the interface of an InfiniHost III Lx, with each other:
 * transitions, doorbells that count, WQEs, CQEs, records.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "lib-card.h"
#include "lib-driver.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

#define UAR MTHCA_SIDE_UAR
#define QPN MTHCA_SIDE_QPN
#define DATA_PAGES MTHCA_SIDE_PAGES
#define QKEY 0x11111111u

/* ---- messages ---- */

/* Around both queues several times, one by one. */
static void check_send(uint32_t latency)
{
    MthcaPair pair;

    mthca_pair_init_of(&pair, MTHCA_QPC_SERVICE_RC, false, latency);
    mthca_side_fill(&pair.side[0], pair.lab->rand);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t len = 1 + (i * 397) % 9000;
        MthcaSge to[] = { mthca_side_sge(&pair.side[1], i, len / 2),
                          mthca_side_sge(&pair.side[1], i + len / 2,
                                         len - len / 2) };
        MthcaWr wr = { .opcode = HCA_OP_SEND,
                       .signalled = true,
                       .nsge = 2,
                       .sge = { mthca_side_sge(&pair.side[0], 3 * i, len / 3),
                                mthca_side_sge(&pair.side[0], 3 * i + len / 3,
                                               len - len / 3) } };

        mthca_post_recv(pair.side[1].m, &pair.side[1].qp, to, 2);
        mthca_side_send(&pair.side[0], &wr);
        mthca_side_take_send(&pair.side[0], i);
        mthca_side_take_recv(&pair.side[1], i, len);
        mthca_pair_same(&pair, 3 * i, i, len);
    }
    mthca_pair_free(&pair);
}

static void test_send(void)
{
    check_send(0);
}

static void test_send_late(void)
{
    check_send(2000);
}

/* One doorbell for many; a link is written when the one before has been rung. */
static void test_counts(void)
{
    MthcaPair pair;
    uint32_t posted = 0, taken = 0;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    mthca_side_fill(&pair.side[0], pair.lab->rand);
    for (unsigned round = 0; round < 40; round++) {
        unsigned n = 1 + round % 13;

        for (unsigned i = 0; i < n; i++, posted++) {
            MthcaSge to = mthca_side_sge(&pair.side[1], 512 * (posted % 64),
                                         512);
            MthcaWr wr = { .opcode = HCA_OP_SEND,
                           .signalled = true,
                           .nsge = 1,
                           .sge = { mthca_side_sge(&pair.side[0],
                                                   512 * (posted % 64),
                                                   1 + posted % 512) } };

            mthca_post_recv(pair.side[1].m, &pair.side[1].qp, &to, 1);
            mthca_post_send(pair.side[0].m, &pair.side[0].qp, &wr);
        }
        mthca_ring_send(pair.side[0].m, &pair.side[0].qp, n);
        for (unsigned i = 0; i < n; i++, taken++) {
            mthca_side_take_send(&pair.side[0], taken);
            mthca_side_take_recv(&pair.side[1], taken, 1 + taken % 512);
            mthca_pair_same(&pair, 512 * (taken % 64), 512 * (taken % 64),
                            1 + taken % 512);
        }
        mthca_side_take_none(&pair.side[0]);
    }
    mthca_pair_free(&pair);
}

static void test_imm(void)
{
    MthcaPair pair;
    MthcaSge to;
    struct mthca_cqe cqe;
    MthcaWr wr = { .opcode = HCA_OP_SEND_IMM,
                   .signalled = true,
                   .imm = 0x12345678,
                   .inline_data = "sixteen and more",
                   .inline_len = 16 };
    char got[16];

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    to = mthca_side_sge(&pair.side[1], 100, 16);
    mthca_post_recv(pair.side[1].m, &pair.side[1].qp, &to, 1);
    mthca_side_send(&pair.side[0], &wr);
    mthca_side_take_send(&pair.side[0], 0);
    cqe = mthca_side_take_recv(&pair.side[1], 0, 16);
    g_assert_cmphex(GUINT32_FROM_BE(cqe.imm), ==, 0x12345678);
    g_assert_cmphex(cqe.opcode, ==, 0x05); /* of the packet: with immediate */
    mthca_side_read(&pair.side[1], 100, got, sizeof(got));
    g_assert_cmpmem(got, sizeof(got), "sixteen and more", 16);
    mthca_pair_free(&pair);
}

/* ---- memory of the peer ---- */

static MthcaWr to_peer(const MthcaPair *pair, uint8_t opcode, uint64_t local,
                       uint64_t remote, uint32_t len)
{
    return (MthcaWr) {
        .opcode = opcode,
        .signalled = true,
        .raddr = remote,
        .rkey = pair->side[1].data->key,
        .nsge = 1,
        .sge = { mthca_side_sge(&pair->side[0], local, len) },
    };
}

/* The next completion is that of send @i, which brought @len bytes. */
static void take_bytes(MthcaSide *s, uint32_t i, uint32_t len)
{
    struct mthca_cqe cqe = mthca_side_take_send(s, i);

    g_assert_cmpuint(GUINT32_FROM_BE(cqe.byte_cnt), ==, len);
}

static void test_write_read(void)
{
    MthcaPair pair;
    MthcaWr wr;
    uint32_t sent = 0;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    mthca_side_fill(&pair.side[0], pair.lab->rand);
    for (uint32_t len = 1; len < 20000; len = len * 3 + 1) {
        wr = to_peer(&pair, HCA_OP_RDMA_WRITE, 7, 11, len);
        mthca_side_send(&pair.side[0], &wr);
        mthca_side_take_send(&pair.side[0], sent++);
        mthca_pair_same(&pair, 7, 11, len);
        wr = to_peer(&pair, HCA_OP_RDMA_READ, 30000, 11, len);
        mthca_side_send(&pair.side[0], &wr);
        take_bytes(&pair.side[0], sent++, len);
        mthca_pair_same(&pair, 30000, 11, len);
    }
    mthca_pair_free(&pair);
}

static uint64_t word_at(MthcaSide *s, uint64_t va)
{
    uint64_t value;

    mthca_side_read(s, va, &value, sizeof(value));
    return GUINT64_FROM_LE(value);
}

static void test_atomics(void)
{
    MthcaPair pair;
    MthcaWr wr;
    uint64_t before;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    mthca_side_fill(&pair.side[1], pair.lab->rand);
    before = word_at(&pair.side[1], 64);
    wr = to_peer(&pair, HCA_OP_ATOMIC_FA, 0, 64, 8);
    wr.swap_add = 0x0102030405060708;
    mthca_side_send(&pair.side[0], &wr);
    take_bytes(&pair.side[0], 0, 8);
    g_assert_cmphex(word_at(&pair.side[0], 0), ==, before);
    g_assert_cmphex(word_at(&pair.side[1], 64), ==,
                    before + 0x0102030405060708);
    wr = to_peer(&pair, HCA_OP_ATOMIC_CS, 8, 64, 8);
    wr.compare = before + 0x0102030405060708;
    wr.swap_add = 0xa1a2a3a4a5a6a7a8;
    mthca_side_send(&pair.side[0], &wr);
    mthca_side_take_send(&pair.side[0], 1);
    g_assert_cmphex(word_at(&pair.side[0], 8), ==, before + 0x0102030405060708);
    g_assert_cmphex(word_at(&pair.side[1], 64), ==, 0xa1a2a3a4a5a6a7a8);
    mthca_pair_free(&pair);
}

/* ---- datagrams ---- */

static void test_ud(void)
{
    MthcaPair pair;
    MthcaSge to;
    MthcaWr wr;
    struct mthca_cqe cqe;
    uint8_t a[1000], b[1000];

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_UD);
    mthca_side_fill(&pair.side[0], pair.lab->rand);
    for (uint32_t i = 0; i < 40; i++) {
        to = mthca_side_sge(&pair.side[1], 0, 40 + 1000);
        mthca_post_recv(pair.side[1].m, &pair.side[1].qp, &to, 1);
        wr = (MthcaWr) {
            .opcode = HCA_OP_SEND,
            .signalled = true,
            .nsge = 1,
            .sge = { mthca_side_sge(&pair.side[0], 8 * i, 1000) },
            .dlid = pair.lab->host[1].config.lid,
            .dqpn = pair.side[1].qp.qpn,
            .qkey = i & 1 ? QKEY : 0x80000000, /* or that of the QP */
        };
        mthca_side_send(&pair.side[0], &wr);
        mthca_side_take_send(&pair.side[0], i);
        cqe = mthca_side_take_recv(&pair.side[1], i, 1040);
        g_assert_cmphex(GUINT32_FROM_BE(cqe.rqpn), ==, pair.side[0].qp.qpn);
        g_assert_cmphex(GUINT32_FROM_BE(cqe.rlid_path), ==,
                        pair.lab->host[0].config.lid);
        mthca_side_read(&pair.side[0], 8 * i, a, sizeof(a));
        mthca_side_read(&pair.side[1], 40, b, sizeof(b));
        g_assert_cmpmem(a, sizeof(a), b, sizeof(b));
    }
    /* To the number that the place of this one had in another life. */
    to = mthca_side_sge(&pair.side[1], 0, 40 + 1000);
    mthca_post_recv(pair.side[1].m, &pair.side[1].qp, &to, 1);
    wr.dqpn ^= 0x10000;
    mthca_side_send(&pair.side[0], &wr);
    mthca_side_take_send(&pair.side[0], 40);
    mthca_side_take_none(&pair.side[1]);
    g_assert_cmpuint(card_drops(pair.lab->host[1].hca, HCA_DROP_QPN), ==, 1);
    mthca_pair_free(&pair);
}

/* ---- a card with the documents' interface at the other end ---- */

typedef struct Native {
    Driver *drv;
    Cq *cq;
    Qp *qp;
    Mr *mr;
} Native;

static void make_native(Native *n, Host *host, const MthcaSide *peer)
{
    QpConfig config;
    QpAttr attr;
    uint32_t pd;

    n->drv = driver_new(host);
    pd = pd_new(n->drv);
    n->cq = cq_new(n->drv, 6, 0);
    n->mr = mr_new(n->drv, pd, 0x10000, DATA_PAGES * HOST_PAGE_SIZE,
                   ACCESS_ALL);
    qp_config_init(&config, pd, n->cq);
    n->qp = qp_new(n->drv, &config);
    qp_attr_init(&attr);
    attr.mtu = 3;
    attr.access = ACCESS_ALL & ~RDMA_HCA_ACCESS_LOCAL_WRITE;
    attr.dlid = peer->m->host->config.lid;
    attr.dest_qpn = peer->qp.qpn;
    attr.sq_psn = attr.rq_psn = 0x100;
    qp_bring_up(n->qp, &attr);
}

static void wait_wc(Native *n)
{
    Wc wc;

    g_assert_true(cq_wait(n->cq, &wc, NS_PER_S));
    g_assert_cmphex(wc.syndrome, ==, 0);
}

/* What lies on both sides is the same. */
static void check_native(MthcaSide *s, Native *n, uint64_t va, uint64_t offset,
                         size_t len)
{
    g_autofree uint8_t *a = g_malloc(len), *b = g_malloc(len);

    mthca_side_read(s, va, a, len);
    mr_read(n->mr, offset, b, len);
    g_assert_cmpmem(a, len, b, len);
}

static void native_sends(MthcaSide *s, Native *n, uint32_t i, uint32_t len)
{
    const MthcaSge to = mthca_side_sge(s, 2 * i, len);
    Sge from = mr_sge(n->mr, 5 * i, len);
    const SendWr send = {
        .opcode = HCA_OP_SEND, .flags = SEND_SIGNALED, .nsge = 1, .sge = &from
    };

    mthca_post_recv(s->m, &s->qp, &to, 1);
    g_assert_true(qp_post_send(n->qp, &send, 1));
    mthca_side_take_recv(s, i, len);
    wait_wc(n);
    check_native(s, n, 2 * i, 5 * i, len);
}

static void native_receives(MthcaSide *s, Native *n, uint32_t i, uint32_t len)
{
    Sge to = mr_sge(n->mr, 3 * i, len);
    const RecvWr recv = { .nsge = 1, .sge = &to };
    const MthcaWr wr = { .opcode = HCA_OP_SEND,
                         .signalled = true,
                         .nsge = 1,
                         .sge = { mthca_side_sge(s, 4 * i, len) } };

    g_assert_true(qp_post_recv(n->qp, &recv, 1));
    mthca_side_send(s, &wr);
    mthca_side_take_send(s, 2 * i);
    wait_wc(n);
    check_native(s, n, 4 * i, 3 * i, len);
}

static void test_native(void)
{
    HcaConfig config[2];
    Native native;
    MthcaSide s;
    Lab *lab;

    for (unsigned side = 0; side < 2; side++) {
        lab_config(&config[side], side);
    }
    config[0].personality = HCA_PERSONALITY_MTHCA;
    lab = lab_new(29, config);
    lab_cable(lab, true);
    mthca_side_init(&s, &lab->host[0], MTHCA_QPC_SERVICE_RC, false);
    make_native(&native, &lab->host[1], &s);
    g_assert_cmphex(mthca_qp_to_rtr(s.m, &s.qp, config[1].lid, native.qp->qpn),
                    ==, 0);
    g_assert_cmphex(mthca_qp_to_rts(s.m, &s.qp), ==, 0);
    lab_run(lab);
    mthca_side_fill(&s, lab->rand);
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t len = 1 + i * 311;
        MthcaWr wr = { .opcode = HCA_OP_RDMA_READ,
                       .signalled = true,
                       .raddr = 0x10000 + i,
                       .rkey = native.mr->key,
                       .nsge = 1,
                       .sge = { mthca_side_sge(&s, 30000, len) } };

        native_receives(&s, &native, i, len);
        native_sends(&s, &native, i, len);
        mthca_side_send(&s, &wr);
        mthca_side_take_send(&s, 2 * i + 1);
        check_native(&s, &native, 30000, i, len);
    }
    mthca_free(s.m);
    driver_free(native.drv);
    lab_free(lab);
}

/* ---- completions ---- */

/* Without a flag none, unless the QP has it for all. */
static void check_signals(bool all)
{
    MthcaPair pair;

    mthca_pair_init_of(&pair, MTHCA_QPC_SERVICE_RC, all, 0);
    for (uint32_t i = 0; i < 40; i++) {
        MthcaWr wr = to_peer(&pair, HCA_OP_RDMA_WRITE, 0, 0, 64);

        wr.signalled = i % 4 == 3;
        mthca_side_send(&pair.side[0], &wr);
        if (all || wr.signalled) {
            mthca_side_take_send(&pair.side[0], i);
        } else {
            mthca_side_take_none(&pair.side[0]);
        }
    }
    mthca_pair_free(&pair);
}

static void test_signals(void)
{
    check_signals(false);
}

static void test_signals_all(void)
{
    check_signals(true);
}

/* A wrong key: the first one fails, and all that is posted is flushed, in order. */
static void test_errors(void)
{
    MthcaPair pair;
    struct mthca_cqe cqe;
    MthcaSge to;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    to = mthca_side_sge(&pair.side[0], 0, 64);
    mthca_post_recv(pair.side[0].m, &pair.side[0].qp, &to, 1);
    for (unsigned i = 0; i < 5; i++) {
        MthcaWr wr = to_peer(&pair, HCA_OP_RDMA_WRITE, 0, 0, 64);

        wr.signalled = false;
        wr.rkey ^= 0x80000000; /* a bit of its tag */
        mthca_post_send(pair.side[0].m, &pair.side[0].qp, &wr);
    }
    mthca_ring_send(pair.side[0].m, &pair.side[0].qp, 5);
    for (unsigned i = 0, sends = 0; i < 6; i++) {
        cqe = mthca_side_take(&pair.side[0]);
        if (!cqe.is_send) {
            g_assert_cmphex(cqe.opcode, ==, MTHCA_CQE_ERROR_RECV);
            g_assert_cmphex(cqe.syndrome, ==, HCA_SYNDROME_WR_FLUSH_ERR);
            continue;
        }
        g_assert_cmphex(cqe.opcode, ==, MTHCA_CQE_ERROR_SEND);
        g_assert_cmphex(cqe.syndrome, ==,
                        sends ? HCA_SYNDROME_WR_FLUSH_ERR
                              : HCA_SYNDROME_REMOTE_ACCESS_ERR);
        g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==, 32 * 128 + sends * 128);
        sends++;
    }
    mthca_side_take_none(&pair.side[0]);
    mthca_pair_free(&pair);
}

/* Operations that this interface has no words for, though the engine knows them. */
static void test_unknown_operations(void)
{
    static const uint8_t opcodes[] = {
        HCA_OP_SEND_INV, 0x13, 0x14, 0x18, 0x19, 0x1b, 0x1f,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        MthcaPair pair;
        struct mthca_cqe cqe;
        MthcaWr wr;

        mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
        wr = to_peer(&pair, opcodes[i], 0, 0, 8);
        mthca_side_send(&pair.side[0], &wr);
        cqe = mthca_side_take(&pair.side[0]);
        g_assert_cmphex(cqe.opcode, ==, MTHCA_CQE_ERROR_SEND);
        g_assert_cmphex(cqe.syndrome, ==, HCA_SYNDROME_LOCAL_QP_OP_ERR);
        mthca_pair_free(&pair);
    }
}

/* ---- contexts ---- */

static void test_query(void)
{
    MthcaPair pair;
    struct mthca_qp_mailbox box;
    const uint8_t *qpc = (const uint8_t *)&box + 8;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    g_assert_cmphex(mthca_qp_query(pair.side[0].m, &pair.side[0].qp, &box), ==,
                    0);
    g_assert_cmphex(box.opt_param_mask, ==, 0);
    g_assert_cmphex(qpc[0x00] >> 4, ==, 3); /* RTS */
    g_assert_cmphex(qpc[0x01] & 7, ==, 0);  /* RC */
    g_assert_cmphex(qpc[0x08], ==, 3 << 5 | 31);
    g_assert_cmphex(qpc[0x09], ==, 5 << 3 | 3);
    g_assert_cmphex(qpc[0x0a], ==, 5 << 3 | 3);
    g_assert_cmphex(qpc[0x0f], ==, UAR);
    g_assert_cmphex(qpc[0x11], ==, QPN >> 16);
    g_assert_cmphex(qpc[0x15], ==, (QPN + 0x10000) >> 16);
    g_assert_cmphex(qpc[0x20], ==, 1); /* the port */
    g_assert_cmphex(qpc[0x24] >> 5, ==, 7);
    g_assert_cmphex(qpc[0x27], ==, pair.lab->host[1].config.lid);
    g_assert_cmphex(qpc[0x28] >> 3, ==, 14);
    g_assert_cmphex(qpc[0x71] & 7, ==, 7);    /* retries */
    g_assert_cmphex(qpc[0x71] >> 5, ==, 2);   /* 4 Reads */
    g_assert_cmphex(qpc[0x7a], ==, 1);        /* PSN 0x100 */
    g_assert_cmphex(qpc[0x82], ==, 0x10);     /* the send queue's place */
    g_assert_cmphex(qpc[0x92] >> 5, ==, 7);   /* rights */
    g_assert_cmphex(qpc[0x94] & 0x1f, ==, 1); /* RNR timer */
    g_assert_cmphex(qpc[0xa8], ==, 0);        /* no Q_Key */
    mthca_pair_free(&pair);
}

/* What a mask does not name is not taken, nor what a transition does not have. */
static void test_masks(void)
{
    MthcaPair pair;
    const HcaQp *qp;
    Mthca *m;
    struct mthca_qp_mailbox box = { 0 };

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    m = pair.side[0].m;
    qp = hca_qp_peek(m->host->hca->cm, QPN);
    g_assert_cmphex(qp->attr.access, ==, HCA_REMOTE_DATA_ACCESS);
    g_assert_cmphex(
        mthca_qp_modify(m, &pair.side[0].qp, RDMA_HCA_CMD_RTS2RTS_QPEE, &box),
        ==, 0);
    g_assert_cmphex(qp->attr.access, ==, HCA_REMOTE_DATA_ACCESS);
    g_assert_cmpuint(qp->attr.retry_count, ==, 7);
    g_assert_cmpuint(qp->attr.mtu, ==, 3);
    /* Retries cannot change here, and so do not; rights can. */
    box.opt_param_mask = GUINT32_TO_BE(0x1000e);
    box.qpc.params2 = GUINT32_TO_BE(MTHCA_QPC_RWE);
    g_assert_cmphex(
        mthca_qp_modify(m, &pair.side[0].qp, RDMA_HCA_CMD_RTS2RTS_QPEE, &box),
        ==, 0);
    g_assert_cmphex(qp->attr.access, ==, HCA_ACCESS_REMOTE_WRITE);
    g_assert_cmpuint(qp->attr.retry_count, ==, 7);
    mthca_pair_free(&pair);
}

/* From each state to RESET, by modify and by destroy. */
static void test_ways_out(void)
{
    static const uint16_t ways[] = { 0, RDMA_HCA_CMD_2ERR_QPEE,
                                     RDMA_HCA_CMD_RTS2SQD_QPEE };

    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        for (unsigned how = 2; how <= 3; how++) {
            MthcaPair pair;
            Mthca *m;

            mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
            m = pair.side[0].m;
            if (ways[i]) {
                g_assert_cmphex(
                    mthca_cmd(m, ways[i], m->mbox_in, QPN, 0, 0, NULL), ==, 0);
            }
            g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_ERR2RST_QPEE, 0, QPN, how,
                                      how == 2 ? m->mbox_out : 0, NULL),
                            ==, 0);
            g_assert_null(hca_qp_peek(m->host->hca->cm, QPN));
            g_assert_cmphex(mthca_hw2sw_cq(m, &pair.side[0].cq), ==, 0);
            mthca_pair_free(&pair);
        }
    }
}

/* Another QP has its place in the table as long as it lives. */
static void test_numbers(void)
{
    MthcaPair pair;
    MthcaQp other;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    other = pair.side[0].qp;
    other.qpn += 0x120000;
    g_assert_cmphex(mthca_qp_to_init(pair.side[0].m, &other), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(mthca_qp_destroy(pair.side[0].m, &other), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(mthca_qp_destroy(pair.side[0].m, &pair.side[0].qp), ==, 0);
    g_assert_cmphex(mthca_qp_to_init(pair.side[0].m, &other), ==, 0);
    mthca_pair_free(&pair);
}

/* Contexts that are none, each by one thing. */
static void test_refused(void)
{
    static const struct {
        unsigned at;
        uint32_t flip;
    } wrong[] = {
        { 0x00, 0x00020000 }, /* reliable datagrams */
        { 0x00, 0x00050000 }, /* a service of the engine's own */
        { 0x08, 0x00000300 }, /* strides of 16 bytes */
        { 0x08, 0x00f80000 }, /* more receives than there are */
        { 0x0c, 0x00800000 }, /* a page that is none */
        { 0x64, 0x00000000 }, { 0x7c, 0x00000100 }, /* no such CQ */
        { 0x80, 0xffffe000 }, /* a queue beyond all addresses */
        { 0x9c, 0x00010000 }, /* no such CQ, by its tag */
        { 0xa0, 0xfffff040 }, /* the same of receives */
        { 0xa4, 0x00008000 }, /* a record that its page has not */
        { 0x20, 0x02000000 }, /* port 3 */
    };
    MthcaPair pair;
    Mthca *m;

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    m = pair.side[0].m;
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        struct mthca_qp_mailbox box;
        uint32_t *word = (uint32_t *)((uint8_t *)&box + 8 + wrong[i].at);
        MthcaQp qp = pair.side[0].qp;

        qp.qpn += 1; /* a free place */
        g_assert_cmphex(mthca_qp_to_init(m, &qp), ==, 0);
        host_read(m->host, m->mbox_in, &box, sizeof(box));
        g_assert_cmphex(mthca_qp_destroy(m, &qp), ==, 0);
        *word ^= GUINT32_TO_BE(wrong[i].flip);
        g_assert_cmphex(
            mthca_qp_modify(m, &qp, RDMA_HCA_CMD_RST2INIT_QPEE, &box), ==,
            wrong[i].flip ? RDMA_HCA_STAT_BAD_PARAM : 0);
        mthca_qp_destroy(m, &qp);
    }
    mthca_pair_free(&pair);
}

/* ---- what no driver does ---- */

/* Doorbells, records and WQEs at random: the other QP of the card goes on. */
static void test_garbage(void)
{
    MthcaPair pair;
    MthcaSide *s;
    MthcaQp wild;
    uint8_t page[HOST_PAGE_SIZE];

    mthca_pair_init(&pair, MTHCA_QPC_SERVICE_RC);
    mthca_side_fill(&pair.side[0], pair.lab->rand);
    s = &pair.side[0];
    wild = s->qp;
    for (uint32_t round = 0; round < 300; round++) {
        wild.qpn = QPN + 1 + (round % 7) * 0x10000;
        wild.mr = round ? wild.mr : mthca_mr(s->m, 4, 0);
        g_assert_cmphex(mthca_qp_to_init(s->m, &wild), ==, 0);
        g_assert_cmphex(
            mthca_qp_to_rtr(s->m, &wild, pair.lab->host[1].config.lid, 0x12345),
            ==, 0);
        g_assert_cmphex(mthca_qp_to_rts(s->m, &wild), ==, 0);
        for (unsigned i = 0; i < 4; i++) {
            random_fill(pair.lab->rand, page, sizeof(page));
            host_write(s->m->host, wild.mr->page[i], page, sizeof(page));
        }
        for (unsigned i = 0; i < 20; i++) {
            uint64_t words = (uint64_t)g_rand_int(pair.lab->rand) << 32 |
                             g_rand_int(pair.lab->rand);

            if (i & 1) { /* of this QP */
                words = (words & ~0xffffff00ull) | (uint64_t)wild.qpn << 8;
            }
            host_uar_write64(s->m->host, UAR * 4096 + MTHCA_SEND_DB,
                             GUINT64_TO_BE(words));
        }
        lab_run_for(pair.lab, 10 * NS_PER_MS);
        g_assert_cmphex(mthca_qp_destroy(s->m, &wild), ==, 0);
        s->cq.ci = hca_cq_peek(s->m->host->hca->cm, s->cq.cqn)->producer_index;
        mthca_cq_consume(s->m, &s->cq);
    }
    g_assert_cmpint(hca_qp_peek(s->m->host->hca->cm, QPN)->state, ==,
                    HCA_QP_RTS);
    mthca_pair_free(&pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/data/send", test_send);
    test_add("/mthca/data/send-late", test_send_late);
    test_add("/mthca/data/counts", test_counts);
    test_add("/mthca/data/immediate", test_imm);
    test_add("/mthca/data/write-read", test_write_read);
    test_add("/mthca/data/atomics", test_atomics);
    test_add("/mthca/data/datagrams", test_ud);
    test_add("/mthca/data/native", test_native);
    test_add("/mthca/data/signals", test_signals);
    test_add("/mthca/data/signals-all", test_signals_all);
    test_add("/mthca/data/errors", test_errors);
    test_add("/mthca/data/unknown-operations", test_unknown_operations);
    test_add("/mthca/qp/query", test_query);
    test_add("/mthca/qp/masks", test_masks);
    test_add("/mthca/qp/ways-out", test_ways_out);
    test_add("/mthca/qp/numbers", test_numbers);
    test_add("/mthca/qp/refused", test_refused);
    test_add("/mthca/data/garbage", test_garbage);
    return g_test_run();
}
