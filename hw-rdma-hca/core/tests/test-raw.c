/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Raw packet QPs: frames sent and received as they are. */
#include <string.h>

#include "lib-raw.h"

#define OK RDMA_HCA_STAT_OK
#define LONGEST (RDMA_HCA_ETH_HEADER_SIZE + RDMA_HCA_ETH_MAX_MTU)
#define HEADER 14u
#define NORMAL RDMA_HCA_PREP(RDMA_HCA_FLOW_KIND, RDMA_HCA_FLOW_NORMAL)

static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 1 };
static const uint8_t neighbour[6] = { 0x02, 0, 0, 0, 0, 0x77 };

static Mr *mr_of(RawBench *bench)
{
    return bench->pair->mr[0];
}

/* Sends */

static void test_send_sizes(void)
{
    RawBench *bench = raw_bench_new(400);
    uint8_t frame[LONGEST];
    Qp *qp = raw_new(bench);

    for (unsigned i = 0; i < 200; i++) {
        size_t len = i < 80   ? HEADER + i
                     : i < 90 ? LONGEST - (i - 80)
                              : pair_rand(bench->pair, HEADER, LONGEST + 1);

        raw_frame(bench, frame, len, neighbour);
        raw_send(bench, qp, frame, len);
        raw_expect_sent(bench, frame, len);
    }
    raw_expect_none_sent(bench);
    g_assert_cmpuint(raw_count(bench, "port_tx_frames"), ==, 200);
    raw_bench_free(bench);
}

/* In many pieces, in place, in chains. */
static void test_send_pieces(void)
{
    RawBench *bench = raw_bench_new(401);
    Pair *pair = bench->pair;
    Qp *qp = raw_new(bench);
    uint8_t frame[3][4000];

    for (unsigned i = 0; i < 100; i++) {
        Sge sge[3][PAIR_MAX_SGE];
        SendWr wr[3] = { 0 };
        Wc wc;

        for (unsigned j = 0; j < 3; j++) {
            size_t len = pair_rand(pair, HEADER, j == 1 ? 200 : 4000);

            raw_frame(bench, frame[j], len, neighbour);
            wr[j] = (SendWr) {
                .opcode = RDMA_HCA_OPCODE_SEND,
                .wr_id = j,
                .flags = SEND_SIGNALED,
                .sge = sge[j],
                .inline_data = frame[j],
                .inline_len = len,
            };
            if (j == 1) {
                wr[j].flags |= SEND_INLINE;
                continue;
            }
            wr[j].nsge = pair_split(pair, mr_of(bench), j * 100000, len, sge[j],
                                    PAIR_MAX_SGE);
            sges_write(mr_of(bench), sge[j], wr[j].nsge, frame[j]);
        }
        g_assert_true(qp_post_send(qp, wr, 3));
        for (unsigned j = 0; j < 3; j++) {
            cq_expect(qp->send_cq, &wc, j, 0);
            raw_expect_sent(bench, frame[j], wr[j].inline_len);
        }
    }
    raw_bench_free(bench);
}

typedef struct BadSend {
    const char *what;
    uint8_t opcode;
    uint32_t len;
    uint32_t key_off; /* added to the L_Key */
    uint8_t syndrome;
} BadSend;

static const BadSend bad_sends[] = {
    { "short", RDMA_HCA_OPCODE_SEND, HEADER - 1, 0,
      RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR },
    { "nothing", RDMA_HCA_OPCODE_SEND, 0, 0,
      RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR },
    { "long", RDMA_HCA_OPCODE_SEND, LONGEST + 1, 0,
      RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR },
    { "key", RDMA_HCA_OPCODE_SEND, 100, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "immediate", RDMA_HCA_OPCODE_SEND_IMM, 100, 0,
      RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    { "write", RDMA_HCA_OPCODE_RDMA_WRITE, 100, 0,
      RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    { "read", RDMA_HCA_OPCODE_RDMA_READ, 100, 0,
      RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    { "atomic", RDMA_HCA_OPCODE_ATOMIC_FA, 8, 0,
      RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
};

/* As a datagram QP does, it stops sending, and may go on. */
static void test_bad_send(gconstpointer data)
{
    const BadSend *bad = data;
    RawBench *bench = raw_bench_new(402);
    Qp *qp = raw_new(bench);
    Sge sge = mr_sge(mr_of(bench), 0, bad->len);
    SendWr wr = {
        .opcode = bad->opcode,
        .wr_id = 1,
        .sge = &sge,
        .nsge = 1,
    };
    uint8_t frame[100];
    Wc wc;

    sge.lkey += bad->key_off;
    g_assert_true(qp_post_send(qp, &wr, 1));
    cq_expect(qp->send_cq, &wc, 1, bad->syndrome);
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_SQE);
    raw_expect_none_sent(bench);
    g_assert_cmphex(qp_sqe_to_rts(qp), ==, OK);
    raw_frame(bench, frame, sizeof(frame), neighbour);
    raw_send(bench, qp, frame, sizeof(frame));
    raw_expect_sent(bench, frame, sizeof(frame));
    raw_bench_free(bench);
}

/* To the card's own address a frame turns round; a multicast does both. */
static void test_self(void)
{
    RawBench *bench = raw_bench_new(403);
    Qp *sender = raw_new(bench), *taker = raw_new(bench);
    const uint8_t *own = bench->host->config.mac;
    struct rdma_hca_flow flow;
    uint8_t frame[100];

    raw_frame(bench, frame, sizeof(frame), own);
    raw_send(bench, sender, frame, sizeof(frame));
    raw_expect_nic(bench, frame, sizeof(frame));
    raw_expect_none_sent(bench);

    raw_post(bench, taker, 4);
    flow_init(&flow, taker, NORMAL);
    memset(&flow.mask.ether_type, 0xff, sizeof(flow.mask.ether_type));
    flow.value.ether_type = GUINT16_TO_BE(0x88b5);
    g_assert_cmphex(flow_add(bench, 0, &flow), ==, OK);
    raw_send(bench, sender, frame, sizeof(frame));
    raw_expect(bench, taker, frame, sizeof(frame));
    raw_expect_nic_none(bench);
    raw_expect_none_sent(bench);

    raw_frame(bench, frame, sizeof(frame), group);
    raw_send(bench, sender, frame, sizeof(frame));
    raw_expect(bench, taker, frame, sizeof(frame));
    raw_expect_sent(bench, frame, sizeof(frame));

    raw_frame(bench, frame, sizeof(frame), neighbour);
    raw_send(bench, sender, frame, sizeof(frame));
    raw_expect_none(bench, taker);
    raw_expect_sent(bench, frame, sizeof(frame));

    /* It may be its own taker. */
    flow_init(&flow, sender, NORMAL);
    g_assert_cmphex(flow_remove(bench, 0), ==, OK);
    g_assert_cmphex(flow_add(bench, 0, &flow), ==, OK);
    raw_frame(bench, frame, sizeof(frame), own);
    raw_send(bench, sender, frame, sizeof(frame));
    raw_expect_none(bench, sender); /* nothing is posted */
    g_assert_cmpuint(pair_drops(bench->pair, 0, HCA_DROP_NO_WQE), ==, 1);
    raw_bench_free(bench);
}

/* Receives */

static void test_receive_pieces(void)
{
    RawBench *bench = raw_bench_new(404);
    Pair *pair = bench->pair;
    Qp *qp = raw_new(bench);
    uint8_t frame[LONGEST], got[LONGEST];

    flow_rule(bench, 0, qp, NORMAL);
    for (unsigned i = 0; i < 200; i++) {
        size_t len = pair_rand(pair, HEADER, LONGEST + 1);
        size_t room = i % 3 ? len : LONGEST;
        Sge sge[PAIR_MAX_SGE];
        RecvWr wr = { .wr_id = i, .sge = sge };
        Wc wc;

        wr.nsge = pair_split(pair, mr_of(bench), 0, room, sge, 6);
        g_assert_true(qp_post_recv(qp, &wr, 1));
        raw_frame(bench, frame, len, neighbour);
        raw_inject(bench, frame, len);
        cq_expect(qp->recv_cq, &wc, i, 0);
        g_assert_cmpuint(wc.byte_len, ==, len);
        if (room == len) {
            sges_read(mr_of(bench), sge, wr.nsge, got);
            g_assert_cmpmem(got, len, frame, len);
        }
    }
    g_assert_cmpuint(raw_count(bench, "port_flow_steered"), ==, 200);
    raw_bench_free(bench);
}

/* Dropped, and no more: with nothing posted, and if it does not fit. */
static void test_receive_drops(void)
{
    RawBench *bench = raw_bench_new(405);
    Qp *qp = raw_new(bench);
    uint8_t frame[300];

    flow_rule(bench, 0, qp, NORMAL);
    raw_frame(bench, frame, sizeof(frame), neighbour);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect_none(bench, qp);
    g_assert_cmpuint(pair_drops(bench->pair, 0, HCA_DROP_NO_WQE), ==, 1);

    pair_post_recv(bench->pair, 0, qp, 0, 0, 200);
    raw_inject(bench, frame, 201);
    raw_expect_none(bench, qp);
    g_assert_cmpuint(pair_drops(bench->pair, 0, HCA_DROP_LENGTH), ==, 1);
    raw_inject(bench, frame, 200);
    raw_expect(bench, qp, frame, 200);
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_RTS);
    raw_expect_nic_none(bench);
    raw_bench_free(bench);
}

/* Memory that is not its own breaks the QP, and the interface goes on. */
static void test_receive_bad_entry(void)
{
    RawBench *bench = raw_bench_new(406);
    Qp *qp = raw_new(bench);
    Sge sge = mr_sge(mr_of(bench), 0, 1000);
    RecvWr wr = { .wr_id = 7, .nsge = 1, .sge = &sge };
    uint8_t frame[100];
    Wc wc;

    sge.lkey ^= 1;
    flow_rule(bench, 0, qp, NORMAL);
    g_assert_true(qp_post_recv(qp, &wr, 1));
    raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
    raw_inject(bench, frame, sizeof(frame));
    cq_expect(qp->recv_cq, &wc, 7, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_ERR);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect_nic(bench, frame, sizeof(frame));
    raw_bench_free(bench);
}

/* Receives of a shared queue. */
static void test_srq(void)
{
    RawBench *bench = raw_bench_new(407);
    Pair *pair = bench->pair;
    SrqConfig srq_config;
    QpConfig config;
    uint8_t frame[500];
    QpAttr attr;
    Srq *srq;
    Qp *qp[2];

    srq_config_init(&srq_config, pair->pd[0]);
    srq = srq_new(bench->drv, &srq_config);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, pair->pd[0], pair->cq[0]);
        config.service = RDMA_HCA_QP_ST_RAW;
        config.srq = srq;
        qp[i] = qp_new(bench->drv, &config);
        qp_bring_up(qp[i], &attr);
        flow_rule(bench, i, qp[i], NORMAL);
    }
    raw_frame(bench, frame, sizeof(frame), neighbour);
    for (unsigned i = 0; i < 20; i++) {
        Sge sge[2] = { mr_sge(mr_of(bench), 0, 1000),
                       mr_sge(mr_of(bench), 5000, 1000) };
        RecvWr wr[2] = { { .wr_id = 0, .nsge = 1, .sge = &sge[0] },
                         { .wr_id = 1, .nsge = 1, .sge = &sge[1] } };
        uint8_t got[500];
        Wc wc;

        g_assert_true(srq_post(srq, wr, 2));
        raw_inject(bench, frame, sizeof(frame));
        for (unsigned j = 0; j < 2; j++) {
            cq_expect(pair->cq[0], &wc, j, 0);
            g_assert_cmpuint(wc.qpn, ==, qp[j]->qpn);
            mr_read(mr_of(bench), j * 5000, got, sizeof(got));
            g_assert_cmpmem(got, sizeof(got), frame, sizeof(frame));
        }
    }
    raw_bench_free(bench);
}

/* Life */

static void test_life(void)
{
    RawBench *bench = raw_bench_new(408);
    Qp *qp = pair_new_qp(bench->pair, 0, RDMA_HCA_QP_ST_RAW);
    struct rdma_hca_qpc qpc;
    QpConfig config;
    uint8_t frame[100];
    QpAttr attr;
    Qp *special;

    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, OK);
    g_assert_cmphex(qp_to_rtr(qp, &attr), ==, OK);
    g_assert_cmphex(qp_to_rts(qp, &attr), ==, OK);
    g_assert_cmphex(qp_query(qp, &qpc), ==, OK);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_SERVICE, GUINT32_FROM_BE(qpc.flags)), ==,
        RDMA_HCA_QP_ST_RAW);
    g_assert_cmphex(qp_to_sqd(qp, true), ==, OK);
    lab_run(bench->pair->lab);
    g_assert_cmpuint(driver_count_events(bench->drv, RDMA_HCA_EVENT_SQ_DRAINED),
                     ==, 1);
    g_assert_cmphex(qp_sqd_to_rts(qp), ==, OK);
    raw_post(bench, qp, 3);
    g_assert_cmphex(qp_to_err(qp), ==, OK);
    cq_expect_flushed(qp->recv_cq, 0, 3);
    g_assert_cmphex(qp_to_rst(qp), ==, OK);
    qp_bring_up(qp, &attr);
    raw_frame(bench, frame, sizeof(frame), neighbour);
    raw_send(bench, qp, frame, sizeof(frame));
    raw_expect_sent(bench, frame, sizeof(frame));

    /* QP 1 is for the connection manager's datagrams. */
    qp_config_init(&config, bench->pair->pd[0], bench->pair->cq[0]);
    config.service = RDMA_HCA_QP_ST_RAW;
    special = qp_new_number(bench->drv, &config, 1);
    g_assert_cmphex(qp_to_init(special, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    raw_bench_free(bench);
}

/* A raw packet QP is nobody that RDMA packets could be for. */
static void test_rdma_packets(void)
{
    static const uint8_t opcodes[] = {
        0x64, 0x04, 0x24, 0x11, 0x81, 0xa4, 0xe4
    };
    RawBench *bench = raw_bench_new(409);
    Qp *qp = raw_new(bench);

    raw_post(bench, qp, 4);
    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        uint64_t dropped = pair_drops(bench->pair, 0, HCA_DROP_SERVICE) +
                           pair_drops(bench->pair, 0, HCA_DROP_PARSE_OPCODE);
        uint8_t frame[HCA_MAX_PACKET_SIZE] = { 0 };
        HcaPacket packet = {
            .opcode = opcodes[i],
            .dest_qp = qp->qpn,
            .pkey = 0xffff,
            .hop_limit = 64,
        };
        size_t len;

        driver_roce_headers(bench->pair->drv[1], bench->drv, GID_IPV4, &packet);
        len = hca_encap_roce.build(&packet, frame);
        len = hca_encap_roce.seal(&packet, frame, len);
        raw_inject(bench, frame, len);
        raw_expect_none(bench, qp);
        g_assert_cmpuint(pair_drops(bench->pair, 0, HCA_DROP_SERVICE) +
                             pair_drops(bench->pair, 0, HCA_DROP_PARSE_OPCODE),
                         ==, dropped + 1);
    }
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_RTS);
    raw_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/raw/send/sizes", test_send_sizes);
    test_add("/raw/send/pieces", test_send_pieces);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_sends); i++) {
        test_add_data(test_named("/raw/send/bad/%s", bad_sends[i].what),
                      &bad_sends[i], test_bad_send);
    }
    test_add("/raw/self", test_self);
    test_add("/raw/receive/pieces", test_receive_pieces);
    test_add("/raw/receive/drops", test_receive_drops);
    test_add("/raw/receive/bad-entry", test_receive_bad_entry);
    test_add("/raw/srq", test_srq);
    test_add("/raw/life", test_life);
    test_add("/raw/rdma-packets", test_rdma_packets);
    return g_test_run();
}
