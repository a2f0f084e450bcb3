/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unreliable services between two whole cards, driven as a driver does it:
 * every operation at the sizes where segmentation changes, data compared with
 * all of the memory around them; datagrams with and without a GRH, to the
 * card itself, by Q_Key and P_Key; lost packets; solicited events; completion
 * queues that change their size under traffic; what each state of a QP permits
 * (interface document, table A1-1). The last two also of RC.
 */
#include <string.h>

#include "lib-transfer.h"

#define MIB (1024 * 1024)
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD

/* ---- what they do not do ---- */

/* A datagram is one packet; the queue waits in SQE and can go on. */
static void test_ud_too_long(void)
{
    Pair *pair = pair_new(301, 65536);
    Qp *qp[2] = { pair_new_ud(pair, 0), pair_new_ud(pair, 1) };
    UdAddress ud = transfer_address(qp[1], false);
    uint32_t mtu = 128u << pair->lab->host[0].config.max_mtu;

    for (unsigned over = 0; over < 3; over++) {
        SendWr wr;
        Sge sge;
        Wc wc;

        pair_post_recv(pair, 1, qp[1], over, 0, mtu + GRH_SIZE);
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, over, &sge, 0,
                       mtu + over % 2, 0);
        wr.ud = &ud;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        if (over == 1) {
            cq_expect(pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
            g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_SQE);
            g_assert_cmphex(qp_sqe_to_rts(qp[0]), ==, 0);
        } else {
            cq_expect(pair->cq[0], &wc, over, 0);
            /* The receive that found nothing serves the next. */
            cq_expect(pair->cq[1], &wc, over ? 1 : 0, 0);
        }
    }
    pair_free(pair);
}

/* A RoCE card's driver says it, on InfiniBand a manager does. */
static void set_port_mtu(Pair *pair, unsigned side, unsigned mtu)
{
    if (test_is_roce()) {
        g_assert_cmphex(driver_cmd(pair->drv[side], RDMA_HCA_CMD_SET_MTU, mtu,
                                   0, 0, 0, NULL),
                        ==, RDMA_HCA_STAT_OK);
    } else {
        g_assert_true(hca_port_set_mtu(pair->lab->host[side].hca->port, mtu));
    }
}

static unsigned active_mtu(Pair *pair, unsigned side)
{
    struct rdma_hca_port port;

    g_assert_cmphex(driver_cmd_out(pair->drv[side], RDMA_HCA_CMD_QUERY_PORT,
                                   &port, sizeof(port), 1, 0),
                    ==, RDMA_HCA_STAT_OK);
    return RDMA_HCA_GET(RDMA_HCA_PORT_ACTIVE_MTU,
                        GUINT32_FROM_BE(port.mtu_width_speed));
}

/* What the port holds now counts, also for QPs that have been there before. */
static void test_ud_port_mtu(void)
{
    Pair *pair = pair_new(313, 65536);
    Qp *qp[2] = { pair_new_ud(pair, 0), pair_new_ud(pair, 1) };
    UdAddress ud = { .dqpn = qp[1]->qpn, .qkey = 0x11111111 };
    unsigned greatest = pair->lab->host[0].config.max_mtu;
    Wc wc;

    ud_address_to(&ud, pair->drv[0], pair->drv[1]);
    g_assert_cmpuint(active_mtu(pair, 0), ==, greatest);
    for (unsigned mtu = 1; mtu <= greatest; mtu++) {
        set_port_mtu(pair, 0, mtu);
        g_assert_cmpuint(active_mtu(pair, 0), ==, mtu);
        for (unsigned over = 0; over < 2; over++) {
            SendWr wr;
            Sge sge;

            pair_post_recv(pair, 1, qp[1], 2 * mtu + over, 0, 8192);
            wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, over, &sge, 0,
                           (128u << mtu) + over, 0);
            wr.ud = &ud;
            g_assert_true(qp_post_send(qp[0], &wr, 1));
            cq_expect(pair->cq[0], &wc, over,
                      over ? RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR : 0);
        }
        g_assert_cmphex(qp_sqe_to_rts(qp[0]), ==, 0);
        g_assert_true(cq_wait(pair->cq[1], &wc, PAIR_PATIENCE));
        g_assert_cmpuint(wc.byte_len, ==, (128u << mtu) + GRH_SIZE);
        cq_expect_none(pair->cq[1]);
    }
    pair_free(pair);
}

static void test_bad_port_mtu(void)
{
    static const uint64_t bad[] = {
        0, 6, 255, 256 + 3, UINT64_C(3) << 32, UINT64_MAX
    };
    Pair *pair = pair_new_roce(314, 4096, NULL, NULL);

    set_port_mtu(pair, 0, 3);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(driver_cmd(pair->drv[0], RDMA_HCA_CMD_SET_MTU, bad[i],
                                   0, 0, 0, NULL),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmpuint(active_mtu(pair, 0), ==, 3);
    }
    pair_free(pair);
}

/* What a service lacks, Send with Invalidate among it, is a bad opcode. */
static void test_bad_opcodes(const void *opaque)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND_INV,
        RDMA_HCA_OPCODE_ATOMIC_CS,
        RDMA_HCA_OPCODE_ATOMIC_FA,
        RDMA_HCA_OPCODE_RDMA_READ,
        0x0c /* mthca's Send with Invalidate */,
    };
    uint8_t service = GPOINTER_TO_UINT(opaque);
    bool rc = service == RDMA_HCA_QP_ST_RC;

    for (unsigned i = 0; i < G_N_ELEMENTS(opcode); i++) {
        Pair *pair;
        UdAddress ud;
        Qp *qp[2];
        QpAttr attr;
        SendWr wr;
        Sge sge;
        Wc wc;

        if (rc && opcode[i] != 0x0c) {
            continue;
        }
        pair = pair_new(302, 4096);
        qp_attr_init(&attr);
        qp[0] = pair_new_qp(pair, 0, service);
        qp[1] = pair_new_qp(pair, 1, service);
        qp_connect(qp[0], qp[1], &attr);
        ud = transfer_address(qp[1], false);
        pair_post_recv(pair, 1, qp[1], 1, 0, 4096);
        wr = pair_send(pair, 0, opcode[i], 1, &sge, 0, 8, 0);
        wr.ud = service == UD ? &ud : NULL;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
        cq_expect_none(pair->cq[1]);
        g_assert_cmpuint(qp_state(qp[0]), ==,
                         rc ? RDMA_HCA_QP_STATE_ERR : RDMA_HCA_QP_STATE_SQE);
        pair_free(pair);
    }
}

/* ---- datagrams find their way ---- */

/* Each of several QPs of both sides to each, itself included. */
static void test_ud_everybody(void)
{
    enum {
        N = 6
    };
    Pair *pair = pair_new(303, 65536);
    Qp *qp[N];

    for (unsigned i = 0; i < N; i++) {
        qp[i] = pair_new_ud(pair, i % 2);
    }
    for (unsigned n = 0; n < 2 * N * N; n++) {
        Qp *from = qp[n % N], *to = qp[n / N % N];
        unsigned a = n % N % 2, b = n / N % N % 2;
        bool grh = n >= N * N;
        UdAddress ud = transfer_address(to, grh);
        uint8_t got[100], want[100];
        SendWr wr;
        Sge sge;
        Wc wc;

        mr_fill(pair->mr[a], 0, n, sizeof(want));
        mr_read(pair->mr[a], 0, want, sizeof(want));
        pair_post_recv(pair, b, to, 100 + n, 4096, 4096);
        wr = pair_send(pair, a, RDMA_HCA_OPCODE_SEND, n, &sge, 0, 100, 0);
        wr.ud = &ud;
        /* An even one asks for the QP's own Q_Key by the high bit. */
        ud.qkey = n % 4 ? ud.qkey : 0x80000000;
        g_assert_true(qp_post_send(from, &wr, 1));
        if (a == b) {
            lab_run(pair->lab);
            g_assert_true(cq_poll(pair->cq[a], &wc));
            if (wc.is_send) {
                cq_expect(pair->cq[b], &wc, 100 + n, 0);
            } else {
                Wc sent;

                cq_expect(pair->cq[a], &sent, n, 0);
            }
        } else {
            cq_expect(pair->cq[a], &wc, n, 0);
            cq_expect(pair->cq[b], &wc, 100 + n, 0);
        }
        g_assert_false(wc.is_send);
        g_assert_cmphex(wc.qpn, ==, to->qpn);
        g_assert_cmphex(wc.rqpn, ==, from->qpn);
        g_assert_cmphex(wc.rlid, ==, pair->lab->host[a].config.lid);
        g_assert_cmpint(wc.grh, ==, grh);
        mr_read(pair->mr[b], 4096 + GRH_SIZE, got, sizeof(got));
        g_assert_cmpmem(got, sizeof(got), want, sizeof(want));
    }
    pair_free(pair);
}

/* To nobody: wrong Q_Key, QP, GID. The sender cannot know. */
static void test_ud_lost(void)
{
    static const HcaDropReason reason[] = { HCA_DROP_QKEY, HCA_DROP_QPN,
                                            HCA_DROP_LID, HCA_DROP_NO_WQE };
    Pair *pair = pair_new(304, 4096);
    Qp *qp[2] = { pair_new_ud(pair, 0), pair_new_ud(pair, 1) };
    Wc wc;

    for (unsigned i = 0; i < G_N_ELEMENTS(reason); i++) {
        UdAddress ud = transfer_address(qp[1], true);
        SendWr wr;
        Sge sge;

        ud.qkey += i == 0;
        ud.dqpn += 77 * (i == 1);
        ud.dgid[15] ^= i == 2;
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, i, &sge, 0, 8, 0);
        wr.ud = &ud;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, i, 0);
        lab_run(pair->lab);
        g_assert_cmpuint(pair_drops(pair, 1, reason[i]), ==, 1);
    }
    cq_expect_none(pair->cq[1]);
    pair_free(pair);
}

/* ---- P_Keys ---- */

static const char pkeys[] = "0xffff:0x8001:1:0x8002:0x0002";

static Pair *pair_with_pkeys(void)
{
    HcaConfig config[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        g_assert_null(hca_config_set_pkeys(&config[i], pkeys));
        g_assert_null(hca_config_check(&config[i]));
    }
    return pair_new_with(305, 4096, config, NULL, NULL);
}

static void check_port(Pair *pair, unsigned violations)
{
    static const uint16_t want[RDMA_HCA_MAX_PKEYS] = { 0xffff, 0x8001, 0x0001,
                                                       0x8002, 0x0002 };
    struct rdma_hca_port port;

    g_assert_cmphex(driver_cmd_out(pair->drv[1], RDMA_HCA_CMD_QUERY_PORT, &port,
                                   sizeof(port), 1, 0),
                    ==, 0);
    g_assert_cmpuint(RDMA_HCA_GET(RDMA_HCA_PORT_PKEY_VIOLATIONS,
                                  GUINT32_FROM_BE(port.violations)),
                     ==, violations);
    g_assert_cmpuint(1u << RDMA_HCA_GET(
                         RDMA_HCA_DEV_LIM_MAX_PKEYS,
                         GUINT32_FROM_BE(pair->drv[1]->lim.max_pds_gids_pkeys)),
                     ==, RDMA_HCA_MAX_PKEYS);
    for (unsigned i = 0; i < RDMA_HCA_MAX_PKEYS; i++) {
        g_assert_cmphex(RDMA_HCA_GET(RDMA_HCA_PORT_PKEY(i),
                                     GUINT32_FROM_BE(port.pkeys[i / 2])),
                        ==, want[i]);
    }
}

/* A QP with each key to a QP with each: both services. */
static void test_pkeys(const void *opaque)
{
    static const char *const match[] = { "10000", "01100", "01000", "00011",
                                         "00010" };
    uint8_t service = GPOINTER_TO_UINT(opaque);
    Pair *pair = pair_with_pkeys();
    unsigned violations = 0;

    check_port(pair, 0);
    for (unsigned n = 0; n < 25; n++) {
        Qp *qp[2] = { pair_new_qp(pair, 0, service),
                      pair_new_qp(pair, 1, service) };
        UdAddress ud = transfer_address(qp[1], false);
        bool matches = match[n / 5][n % 5] == '1';
        SendWr wr;
        Sge sge;
        Wc wc;

        for (unsigned i = 0; i < 2; i++) {
            QpAttr attr;

            qp_attr_init(&attr);
            attr.pkey_index = i ? n % 5 : n / 5;
            attr.dlid = pair->lab->host[!i].config.lid;
            attr.dest_qpn = qp[!i]->qpn;
            qp_bring_up(qp[i], &attr);
        }
        pair_post_recv(pair, 1, qp[1], n, 0, 100);
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, n, &sge, 0, 8, 0);
        wr.ud = service == UD ? &ud : NULL;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, n, 0);
        lab_run(pair->lab);
        g_assert_cmpint(cq_poll(pair->cq[1], &wc), ==, matches);
        violations += !matches;
        g_assert_cmpuint(pair_drops(pair, 1, HCA_DROP_PKEY), ==, violations);
        qp_destroy(qp[0]);
        qp_destroy(qp[1]);
    }
    check_port(pair, violations);
    pair_free(pair);
}

/* An index that names no key; a list that is no table. */
static void test_pkeys_bad(void)
{
    static const char *const bad[] = {
        "",
        ":",
        "0xffff:",
        "0",
        "0x8000",
        "0x10000",
        "-1",
        "0xffff,1",
        "key",
        "1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22:23:24:25:26:"
        "27:28:29:30:31:32:33",
    };
    Pair *pair = pair_with_pkeys();
    HcaConfig config;

    for (unsigned index = 5; index < 128; index += 41) {
        Qp *qp = pair_new_qp(pair, 0, UC);
        QpAttr attr;

        qp_attr_init(&attr);
        attr.pkey_index = index;
        g_assert_cmphex(qp_to_init(qp, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    pair_free(pair);
    lab_config(&config, 0);
    g_assert_null(hca_config_check(&config));
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        HcaConfig c = config;

        g_test_message("%s", bad[i]);
        g_assert_nonnull(hca_config_set_pkeys(&c, bad[i]));
    }
    config.num_pkeys = 0;
    g_assert_nonnull(hca_config_check(&config));
    config.num_pkeys = RDMA_HCA_MAX_PKEYS + 1;
    g_assert_nonnull(hca_config_check(&config));
}

/* ---- a cable that loses packets ---- */

static CableFate lose_some(void *opaque, unsigned from, uint8_t *packet,
                           size_t len)
{
    unsigned *n = opaque;

    return ++*n % 11 ? CABLE_DELIVER : CABLE_DROP;
}

/* UC: a message arrives whole or not at all; they keep their order. */
static void test_uc_loss(void)
{
    enum {
        MESSAGES = 200,
        LEN = 2500,
        SLOT = 4096
    };
    unsigned packets = 0, arrived = 0, posted = 0, last = 0;
    Pair *pair = pair_new_with(306, 16 * SLOT, NULL, lose_some, &packets);
    Qp *qp[2];

    pair_connect_service(pair, UC, NULL, qp);
    for (unsigned i = 1; i <= MESSAGES; i++) {
        SendWr wr;
        Sge sge;
        Wc wc;

        for (; posted < arrived + 4; posted++) {
            pair_post_recv(pair, 1, qp[1], posted, posted % 16 * SLOT, LEN);
        }
        mr_fill(pair->mr[0], 0, i, LEN);
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND_IMM, i, &sge, 0, LEN, 0);
        wr.imm_be = i;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, i, 0);
        lab_run(pair->lab);
        while (cq_poll(pair->cq[1], &wc)) {
            uint8_t got[LEN], want[LEN];

            g_assert_cmpuint(wc.wr_id, ==, arrived);
            g_assert_cmpuint(wc.imm_be, ==, i);
            g_assert_cmpuint(wc.imm_be, >, last);
            g_assert_cmpuint(wc.byte_len, ==, LEN);
            memset(want, i, LEN);
            mr_read(pair->mr[1], wc.wr_id % 16 * SLOT, got, LEN);
            g_assert_cmpmem(got, LEN, want, LEN);
            last = wc.imm_be;
            arrived++;
        }
    }
    /* A packet of eleven, three of a message: 8 of 11 messages are whole. */
    g_assert_cmpuint(arrived, >=, MESSAGES * 8 / 11 - 1);
    g_assert_cmpuint(arrived, <=, MESSAGES * 8 / 11 + 1);
    g_assert_cmpuint(qp_state(qp[1]), ==, RDMA_HCA_QP_STATE_RTS);
    pair_free(pair);
}

/* ---- completion queues ---- */

/* Armed for solicited ones: a message with the mark alone makes an event. */
static void test_solicited(const void *opaque)
{
    uint8_t service = GPOINTER_TO_UINT(opaque);
    Pair *pair = pair_new(307, 65536);
    UdAddress ud;
    Qp *qp[2];
    Wc wc;

    if (service == UC) {
        pair_connect_service(pair, UC, NULL, qp);
    } else {
        qp[0] = pair_new_ud(pair, 0);
        qp[1] = pair_new_ud(pair, 1);
    }
    ud = transfer_address(qp[1], true);
    driver_count_events(pair->drv[1], RDMA_HCA_EVENT_COMP);
    for (unsigned i = 0; i < 12; i++) {
        bool mark = i % 3 == 2;
        SendWr wr;
        Sge sge;

        cq_arm(pair->cq[1], true);
        pair_post_recv(pair, 1, qp[1], i, 0, 8192);
        /* UC: two packets, of which the last has the mark. */
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND_IMM, i, &sge, 0,
                       service == UC ? 2000 : 100, 0);
        wr.flags |= mark ? SEND_SOLICITED : 0;
        wr.ud = service == UD ? &ud : NULL;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, i, 0);
        cq_expect(pair->cq[1], &wc, i, 0);
        g_assert_cmpuint(driver_count_events(pair->drv[1], RDMA_HCA_EVENT_COMP),
                         ==, mark);
    }
    pair_free(pair);
}

typedef struct Resize {
    Pair *pair;
    Qp *qp[2];
    UdAddress ud;
    unsigned posted, received, sent;
} Resize;

/* @n messages more, none of them polled for. */
static void post_messages(Resize *r, unsigned n)
{
    for (; n; n--, r->posted++) {
        SendWr wr;
        Sge sge;

        pair_post_recv(r->pair, 1, r->qp[1], r->posted, 0, 4096);
        wr = pair_send(r->pair, 0, RDMA_HCA_OPCODE_SEND_IMM, r->posted, &sge, 0,
                       100, 0);
        wr.imm_be = r->posted;
        wr.ud = r->qp[0]->service == UD ? &r->ud : NULL;
        g_assert_true(qp_post_send(r->qp[0], &wr, 1));
    }
}

static void poll_received(Resize *r, unsigned n)
{
    for (; n; n--, r->received++) {
        Wc wc;

        cq_expect(r->pair->cq[1], &wc, r->received, 0);
        g_assert_cmpuint(wc.imm_be, ==, r->received);
    }
}

static void poll_sent(Resize *r)
{
    for (; r->sent < r->posted; r->sent++) {
        Wc wc;

        cq_expect(r->pair->cq[0], &wc, r->sent, 0);
    }
}

/*
 * Larger and smaller, with entries that nobody has polled yet and messages on
 * their way: none is lost, doubled or overtaken.
 */
static void test_resize(const void *opaque)
{
    static const unsigned log[] = { 6, 4, 5, 7, 4, 4, 8 };
    uint8_t service = GPOINTER_TO_UINT(opaque);
    Resize r = { .pair = pair_new(308, 4096) };
    QpAttr attr;

    qp_attr_init(&attr);
    r.qp[0] = pair_new_qp(r.pair, 0, service);
    r.qp[1] = pair_new_qp(r.pair, 1, service);
    qp_connect(r.qp[0], r.qp[1], &attr);
    r.ud = transfer_address(r.qp[1], false);
    for (unsigned round = 0; round < 5 * G_N_ELEMENTS(log); round++) {
        unsigned outstanding = pair_rand(r.pair, 1, 13);
        Cq *cq = r.pair->cq[1];

        post_messages(&r, outstanding);
        for (unsigned i = pair_rand(r.pair, 0, 30); i; i--) {
            lab_step(r.pair->lab); /* some are there, some are not */
        }
        g_assert_cmphex(cq_resize(cq, log[round % G_N_ELEMENTS(log)]), ==, 0);
        poll_received(&r, outstanding / 2);
        post_messages(&r, 3);
        poll_received(&r, r.posted - r.received);
        poll_sent(&r);
    }
    /* Not below what is outstanding; the queue goes on as it was. */
    post_messages(&r, 9);
    lab_run(r.pair->lab);
    g_assert_cmphex(cq_resize(r.pair->cq[1], 3), ==, RDMA_HCA_STAT_BAD_SIZE);
    poll_received(&r, 9);
    poll_sent(&r);
    g_assert_cmphex(cq_resize(r.pair->cq[1], 3), ==, 0);
    post_messages(&r, 8);
    poll_received(&r, 8);
    poll_sent(&r);
    g_assert_cmpuint(
        driver_count_events(r.pair->drv[1], RDMA_HCA_EVENT_CQ_ERROR), ==, 0);
    pair_free(r.pair);
}

/* ---- the life of a QP ---- */

/* QP 1 goes through its life; QP 0 is in RTS all the time. */
typedef struct Life {
    Pair *pair;
    Qp *qp[2];
    QpAttr attr;
    UdAddress to[2];
    unsigned posted, received; /* receives of QP 1 */
    unsigned sent;             /* messages of QP 1 */
} Life;

typedef enum Fate {
    IGNORED,
    WAITS,
    DONE,
    FLUSHED
} Fate;

static void life_send(Life *l, unsigned from, uint64_t wr_id, uint32_t key_xor)
{
    SendWr wr;
    Sge sge;

    wr = pair_send(l->pair, from, RDMA_HCA_OPCODE_SEND, wr_id, &sge, 0, 8, 0);
    wr.ud = l->qp[from]->service == UD ? &l->to[!from] : NULL;
    sge.lkey ^= key_xor;
    g_assert_true(qp_post_send(l->qp[from], &wr, 1));
    lab_run(l->pair->lab);
}

/* A message to QP 1, which has a receive posted: taken, or dropped. */
static void life_receives(Life *l, bool receives)
{
    uint64_t before = pair_drops(l->pair, 1, HCA_DROP_QP_STATE);
    Wc wc;

    pair_post_recv(l->pair, 1, l->qp[1], l->posted++, 0, 100);
    life_send(l, 0, 1, 0);
    g_assert_cmpuint(pair_drops(l->pair, 1, HCA_DROP_QP_STATE) - before, ==,
                     !receives);
    g_assert_cmpint(cq_poll(l->pair->cq[1], &wc), ==, receives);
    if (receives) {
        g_assert_cmpuint(wc.syndrome, ==, 0);
        g_assert_cmpuint(wc.wr_id, ==, l->received++);
    }
    cq_expect(l->pair->cq[0], &wc, 1, 0);
}

/* What becomes of a message that QP 1 is told to send. */
static void life_sends(Life *l, Fate fate)
{
    uint64_t ignored = pair_counter(l->pair, 1, "send_db_bad_state");
    uint64_t id = 1000 + l->sent++;
    Wc wc;

    life_send(l, 1, id, 0);
    g_assert_cmpuint(pair_counter(l->pair, 1, "send_db_bad_state") - ignored,
                     ==, fate == IGNORED);
    g_assert_cmpint(cq_poll(l->pair->cq[1], &wc), ==, fate >= DONE);
    if (fate >= DONE) {
        g_assert_cmpuint(wc.wr_id, ==, id);
        g_assert_cmphex(wc.syndrome, ==,
                        fate == DONE ? 0 : RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    g_assert_cmpint(cq_poll(l->pair->cq[0], &wc), ==, fate == DONE);
}

static void life_begin(Life *l, uint8_t service)
{
    l->pair = pair_new(309, 4096);
    qp_attr_init(&l->attr);
    for (unsigned i = 0; i < 2; i++) {
        l->qp[i] = pair_new_qp(l->pair, i, service);
        l->to[i] = transfer_address(l->qp[i], false);
    }
    for (unsigned i = 0; i < 2; i++) {
        QpAttr attr = l->attr;

        attr.dlid = l->to[!i].dlid;
        attr.dest_qpn = l->to[!i].dqpn;
        if (!i) {
            qp_bring_up(l->qp[0], &attr);
        }
        l->attr = attr;
    }
    for (unsigned i = 0; i < 16; i++) {
        pair_post_recv(l->pair, 0, l->qp[0], i, 0, 100);
    }
}

/* SQD: what is posted waits, and goes out in RTS. */
static void life_drain(Life *l)
{
    Wc wc;

    g_assert_cmphex(qp_to_sqd(l->qp[1], false), ==, 0);
    life_receives(l, true);
    life_sends(l, WAITS);
    g_assert_cmphex(qp_sqd_to_rts(l->qp[1]), ==, 0);
    cq_expect(l->pair->cq[1], &wc, 1000 + l->sent - 1, 0);
    g_assert_true(cq_wait(l->pair->cq[0], &wc, PAIR_PATIENCE));
    g_assert_false(wc.is_send);
}

/* SQE: the send queue alone has failed. */
static void life_sqe(Life *l)
{
    Wc wc;

    life_send(l, 1, 999, 0x100);
    cq_expect(l->pair->cq[1], &wc, 999, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    g_assert_cmpuint(qp_state(l->qp[1]), ==, RDMA_HCA_QP_STATE_SQE);
    life_receives(l, true);
    life_sends(l, FLUSHED);
    g_assert_cmphex(qp_sqe_to_rts(l->qp[1]), ==, 0);
    life_sends(l, DONE);
}

static void life_end(Life *l)
{
    bool rc = l->qp[1]->service == RDMA_HCA_QP_ST_RC;
    Wc wc;

    g_assert_cmphex(qp_to_err(l->qp[1]), ==, 0);
    for (; l->received < l->posted; l->received++) {
        cq_expect(l->pair->cq[1], &wc, l->received,
                  RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    life_sends(l, FLUSHED);
    if (!rc) {
        life_receives(l, false);
        cq_expect(l->pair->cq[1], &wc, l->received,
                  RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    g_assert_cmphex(qp_to_rst(l->qp[1]), ==, 0);
    if (!rc) {
        life_send(l, 0, 1, 0);
        g_assert_cmpuint(pair_drops(l->pair, 1, HCA_DROP_QPN), ==, 1);
    }
}

/*
 * Each state of table A1-1, with messages to the QP and from it. (A message
 * that RC loses comes again: /responder/4.3/states has the states that take
 * none.)
 */
static void test_life(const void *opaque)
{
    uint8_t service = GPOINTER_TO_UINT(opaque);
    bool rc = service == RDMA_HCA_QP_ST_RC;
    Life l = { 0 };

    life_begin(&l, service);
    g_assert_cmphex(qp_to_init(l.qp[1], &l.attr), ==, 0);
    if (!rc) {
        life_receives(&l, false);
    }
    life_sends(&l, IGNORED);
    g_assert_cmphex(qp_to_rtr(l.qp[1], &l.attr), ==, 0);
    life_receives(&l, true);
    life_sends(&l, IGNORED);
    g_assert_cmphex(qp_to_rts(l.qp[1], &l.attr), ==, 0);
    life_receives(&l, true);
    life_sends(&l, DONE);
    life_drain(&l);
    if (!rc) {
        life_sqe(&l);
    }
    life_end(&l);
    pair_free(l.pair);
}

static void add_services(const char *name, GTestDataFunc test, bool rc)
{
    static const struct {
        uint8_t service;
        const char *name;
    } services[] = { { UC, "uc" }, { UD, "ud" }, { RDMA_HCA_QP_ST_RC, "rc" } };

    for (unsigned i = 0; i < 2u + rc; i++) {
        const char *path = test_named("/%s/%s", services[i].name, name);

        test_add_data(path, GUINT_TO_POINTER(services[i].service), test);
    }
}

static const uint8_t operations[] = {
    RDMA_HCA_OPCODE_SEND,
    RDMA_HCA_OPCODE_SEND_IMM,
    RDMA_HCA_OPCODE_RDMA_WRITE,
    RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(operations); i++) {
        transfer_add_all(UC, operations[i]);
        if (wr_is_send(operations[i])) {
            transfer_add_all(UD, operations[i]);
        }
    }
    test_add("/ud/too-long", test_ud_too_long);
    test_add_each_link("/ud/port-mtu", test_ud_port_mtu);
    test_add("/ud/port-mtu-bad", test_bad_port_mtu);
    add_services("bad-opcodes", test_bad_opcodes, true);
    test_add("/ud/everybody", test_ud_everybody);
    test_add("/ud/lost", test_ud_lost);
    add_services("pkeys", test_pkeys, false);
    test_add("/pkeys/bad", test_pkeys_bad);
    test_add_each_link("/uc/loss", test_uc_loss);
    add_services("solicited", test_solicited, false);
    add_services("resize-cq", test_resize, true);
    add_services("life", test_life, true);
    return g_test_run();
}
