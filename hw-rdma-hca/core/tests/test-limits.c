/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sizes: the smallest card, the smallest and the longest queues and lists,
 * counters that wrap, tables that fill up. What fills up makes the card wait;
 * it fails no work request and loses no event.
 */
#include <string.h>

#include "lib-pair.h"

/* A connection of QPs of this shape. */
static void connect_shaped(Pair *pair, const QpConfig *shape, Qp *qp[2])
{
    QpAttr attr;

    for (unsigned i = 0; i < 2; i++) {
        QpConfig config = *shape;

        config.pd = pair->pd[i];
        config.send_cq = config.recv_cq = pair->cq[i];
        config.uar = pair->cq[i]->uar;
        qp[i] = qp_new(pair->drv[i], &config);
    }
    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
}

static void smallest_config(HcaConfig config[2])
{
    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].mpt_cache_size = 64 * config[i].cache_ways;
        config[i].mtt_cache_size = 64 * config[i].cache_ways;
        config[i].rpb_elements = 1;
        config[i].reb_elements = 32;
        config[i].swpb_elements = 512;
        g_assert_null(hca_config_check(&config[i]));
    }
}

/* Everything at once through buffers of next to nothing. */
static void test_smallest_card(void)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND,      RDMA_HCA_OPCODE_RDMA_WRITE,
        RDMA_HCA_OPCODE_RDMA_READ, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
        RDMA_HCA_OPCODE_RDMA_READ,
    };
    enum {
        QPS = 6,
        N = G_N_ELEMENTS(opcode),
        LEN = 40000
    };
    HcaConfig config[2];
    unsigned next[QPS] = { 0 };
    Qp *qp[QPS][2];
    Pair *pair;
    Wc wc;

    smallest_config(config);
    pair = pair_new_with(3001, 65536 * 2, config, NULL, NULL);
    for (unsigned i = 0; i < QPS; i++) {
        SendWr wr[N];
        Sge sge[N];

        pair_connect(pair, NULL, qp[i]);
        pair_post_recv(pair, 1, qp[i][1], 0, 65536, LEN);
        pair_post_recv(pair, 1, qp[i][1], 1, 65536, LEN);
        for (unsigned k = 0; k < N; k++) {
            wr[k] = pair_send(pair, 0, opcode[k], k, &sge[k], 0, LEN, 0);
        }
        g_assert_true(qp_post_send(qp[i][0], wr, N));
    }
    for (unsigned n = 0; n < QPS * N; n++) {
        unsigned i;

        g_assert_true(cq_wait(pair->cq[0], &wc, PAIR_PATIENCE));
        g_assert_cmphex(wc.syndrome, ==, 0);
        for (i = 0; qp[i][0]->qpn != wc.qpn; i++) {
        }
        g_assert_cmpuint(wc.wr_id, ==, next[i]++);
    }
    for (unsigned n = 0; n < QPS * 2; n++) {
        g_assert_true(cq_wait(pair->cq[1], &wc, PAIR_PATIENCE));
        g_assert_cmphex(wc.syndrome, ==, 0);
        g_assert_cmpuint(wc.byte_len, ==, LEN);
    }
    pair_free(pair);
}

/* Far more regions than the caches hold, used in turn, each with its data. */
static void test_many_regions(void)
{
    enum {
        REGIONS = 300
    };
    HcaConfig config[2];
    Mr *mr[REGIONS];
    Qp *qp[2];
    Pair *pair;

    smallest_config(config);
    pair = pair_new_with(3002, 65536, config, NULL, NULL);
    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < REGIONS; i++) {
        mr[i] = mr_new(pair->drv[1], pair->pd[1],
                       0x100000 + i * 0x10000 + i * 3, 6000, ACCESS_ALL);
    }
    for (unsigned n = 0; n < 3 * REGIONS; n++) {
        Mr *to = mr[n * 7 % REGIONS];
        uint64_t stamp = n, got;
        SendWr wr;
        Sge sge;
        Wc wc;

        mr_write(pair->mr[0], 3000, &stamp, sizeof(stamp));
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, n, &sge, 0, 6000,
                       0);
        wr.raddr = to->va;
        wr.rkey = to->key;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, n, 0);
        mr_read(to, 3000, &got, sizeof(got));
        g_assert_cmpuint(got, ==, stamp);
    }
    g_assert_cmpuint(pair_counter(pair, 1, "v2p_mpt_misses"), >, REGIONS);
    pair_free(pair);
}

/* ---- shapes of queues ---- */

static void test_queue_shapes(void)
{
    for (unsigned entries = 1; entries <= 8; entries *= 2) {
        for (unsigned log_sq = 6; log_sq <= 10; log_sq += 2) {
            for (unsigned log_rq = 6; log_rq <= 9; log_rq++) {
                QpConfig shape = {
                    .service = RDMA_HCA_QP_ST_RC,
                    .sq_entries = entries,
                    .rq_entries = entries,
                    .log_sq_entry = log_sq,
                    .log_rq_entry = log_rq,
                };
                Pair *pair = pair_new(3101, 65536);
                Qp *qp[2];

                connect_shaped(pair, &shape, qp);
                for (unsigned i = 0; i < 2 * entries + 1; i++) {
                    pair_check_works(pair, qp, i & 1);
                }
                pair_free(pair);
            }
        }
    }
}

/* A full send queue and a full receive queue, several laps. */
static void test_full_queues(void)
{
    QpConfig shape = {
        .service = RDMA_HCA_QP_ST_RC,
        .sq_entries = 16,
        .rq_entries = 16,
        .log_sq_entry = 7,
        .log_rq_entry = 6,
    };
    Pair *pair = pair_new(3102, 65536);
    Qp *qp[2];
    Wc wc;

    connect_shaped(pair, &shape, qp);
    for (unsigned lap = 0; lap < 5; lap++) {
        SendWr wr[16];
        Sge sge[16];

        for (unsigned i = 0; i < 16; i++) {
            pair_post_recv(pair, 1, qp[1], i, 0, 100);
            wr[i] = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, i, &sge[i], 0, 100,
                              0);
        }
        g_assert_false(qp_post_recv(qp[1], &(RecvWr) { 0 }, 1));
        g_assert_true(qp_post_send(qp[0], wr, 16));
        g_assert_false(qp_post_send(qp[0], wr, 1));
        for (unsigned i = 0; i < 16; i++) {
            cq_expect(pair->cq[0], &wc, i, 0);
            cq_expect(pair->cq[1], &wc, i, 0);
        }
    }
    pair_free(pair);
}

/* A QP that only sends, and only takes RDMA. A Send to it finds no WQE. */
static void test_no_receive_queue(void)
{
    QpConfig shape = {
        .service = RDMA_HCA_QP_ST_RC,
        .sq_entries = 16,
        .log_sq_entry = 7,
    };
    Pair *pair = pair_new(3103, 65536);
    QpConfig config = shape;
    SendWr wr;
    Sge sge;
    Qp *qp[2];
    QpAttr attr;
    Wc wc;

    for (unsigned i = 0; i < 2; i++) {
        config.pd = pair->pd[i];
        config.send_cq = config.recv_cq = pair->cq[i];
        config.uar = pair->cq[i]->uar;
        qp[i] = qp_new(pair->drv[i], &config);
    }
    qp_attr_init(&attr);
    attr.rnr_retry = 1;
    qp_connect(qp[0], qp[1], &attr);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 5000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 1, 0);
    wr.opcode = RDMA_HCA_OPCODE_SEND;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR);
    pair_free(pair);
}

/* The longest lists that QUERY_DEV_LIM promises, in both directions. */
static void test_longest_lists(void)
{
    enum {
        PIECE = 133
    };
    Pair *pair = pair_new(3104, 65536);
    const struct rdma_hca_dev_lim *lim = &pair->drv[0]->lim;
    unsigned max = RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_SG,
                                GUINT32_FROM_BE(lim->max_sg_desc_sz));
    unsigned max_rq = RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_SG,
                                   GUINT32_FROM_BE(lim->max_sg_desc_sz_rq));
    QpConfig shape = {
        .service = RDMA_HCA_QP_ST_RC,
        .sq_entries = 8,
        .rq_entries = 8,
        .log_sq_entry = 10,
        .log_rq_entry = 9,
    };
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND,
        RDMA_HCA_OPCODE_RDMA_WRITE,
        RDMA_HCA_OPCODE_RDMA_READ,
    };
    Sge sge[RDMA_HCA_MAX_SGE], to[RDMA_HCA_MAX_SGE];
    uint32_t len = max * PIECE;
    g_autofree uint8_t *data = pair_data(pair, len);
    g_autofree uint8_t *got = g_malloc(len);
    Qp *qp[2];
    Wc wc;

    g_assert_cmpuint(max, <=, RDMA_HCA_MAX_SGE);
    g_assert_cmpuint(max_rq, <=, RDMA_HCA_MAX_SGE);
    connect_shaped(pair, &shape, qp);
    for (unsigned i = 0; i < max; i++) {
        sge[i] = mr_sge(pair->mr[0], i * 1000 + i % 3, PIECE);
    }
    for (unsigned i = 0; i < max_rq; i++) {
        uint32_t piece = len / max_rq + 1;

        to[i] = mr_sge(pair->mr[1], (max_rq - i) * 1000, piece);
    }
    for (unsigned op = 0; op < G_N_ELEMENTS(opcode); op++) {
        Sge remote = mr_sge(pair->mr[1], 40000, len);
        RecvWr recv = { .wr_id = 9, .nsge = max_rq, .sge = to };
        SendWr send = {
            .wr_id = op,
            .opcode = opcode[op],
            .flags = SEND_SIGNALED,
            .raddr = remote.va,
            .rkey = remote.lkey,
            .nsge = max,
            .sge = sge,
        };

        g_test_message("opcode %#x", opcode[op]);
        if (opcode[op] == RDMA_HCA_OPCODE_RDMA_READ) {
            mr_fill(pair->mr[0], 0, 0, pair->mr[0]->len);
        } else {
            sges_write(pair->mr[0], sge, max, data);
        }
        if (opcode[op] == RDMA_HCA_OPCODE_SEND) {
            g_assert_true(qp_post_recv(qp[1], &recv, 1));
        }
        g_assert_true(qp_post_send(qp[0], &send, 1));
        cq_expect(pair->cq[0], &wc, op, 0);
        switch (opcode[op]) {
        case RDMA_HCA_OPCODE_SEND:
            cq_expect(pair->cq[1], &wc, 9, 0);
            g_assert_cmpuint(wc.byte_len, ==, len);
            to[max_rq - 1].len -= max_rq * (len / max_rq + 1) - len;
            sges_read(pair->mr[1], to, max_rq, got);
            break;
        case RDMA_HCA_OPCODE_RDMA_WRITE:
            mr_read(pair->mr[1], 40000, got, len);
            break;
        default:
            sges_read(pair->mr[0], sge, max, got);
        }
        g_assert_cmpmem(got, len, data, len);
    }
    pair_free(pair);
}

/* An entry of as many bytes as a message may have; one of more is none. */
static void test_longest_entry(void)
{
    Pair *pair = pair_new(3106, 65536);
    Sge to = {
        .va = mr_bus(pair->mr[1], 0),
        .len = RDMA_HCA_MAX_BYTE_CNT,
        .lkey = driver_physical_region(pair->drv[1], pair->pd[1]),
    };
    RecvWr recv = { .wr_id = 2, .nsge = 1, .sge = &to };
    uint8_t got[100];
    Sge from;
    SendWr wr;
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[0], 0, "as long as can be", 18);
    for (unsigned more = 0; more < 2; more++) {
        to.len += more;
        g_assert_true(qp_post_recv(qp[1], &recv, 1));
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 1, &from, 0, 100, 0);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, 1,
                  more ? RDMA_HCA_SYNDROME_REMOTE_OP_ERR : 0);
        cq_expect(pair->cq[1], &wc, 2,
                  more ? RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR : 0);
        g_assert_true(more || wc.byte_len == 100);
    }
    mr_read(pair->mr[1], 0, got, sizeof(got));
    g_assert_cmpstr((char *)got, ==, "as long as can be");
    pair_free(pair);
}

/* The longest inline data, in one packet and over several. */
static void test_longest_inline(void)
{
    for (unsigned mtu = 1; mtu <= 5; mtu += 2) {
        Pair *pair = pair_new(3105, 65536);
        uint32_t max = RDMA_HCA_GET(
            RDMA_HCA_DEV_LIM_MAX_INLINE,
            GUINT32_FROM_BE(pair->drv[0]->lim.rd_atomic_inline));
        g_autofree uint8_t *data = pair_data(pair, max);
        g_autofree uint8_t *got = g_malloc(max);
        QpConfig config;
        QpAttr attr;
        Qp *qp[2];
        SendWr wr = {
            .wr_id = 1,
            .opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
            .flags = SEND_SIGNALED | SEND_INLINE,
            .raddr = pair->mr[1]->va + 77,
            .rkey = pair->mr[1]->key,
            .inline_data = data,
            .inline_len = max,
        };
        Wc wc;

        for (unsigned i = 0; i < 2; i++) {
            qp_config_init(&config, pair->pd[i], pair->cq[i]);
            config.log_sq_entry = 10;
            qp[i] = qp_new(pair->drv[i], &config);
        }
        qp_attr_init(&attr);
        attr.mtu = mtu;
        qp_connect(qp[0], qp[1], &attr);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, 1, 0);
        mr_read(pair->mr[1], 77, got, max);
        g_assert_cmpmem(got, max, data, max);
        pair_free(pair);
    }
}

/* ---- counters that wrap ---- */

#define MANY 70000

typedef struct Many {
    Pair *pair;
    Qp *qp[2];
    unsigned sent, sent_done, posted, received;
} Many;

static bool many_turn(void *opaque)
{
    Many *m = opaque;
    Wc wc;

    while (cq_poll(m->pair->cq[1], &wc)) {
        g_assert_cmphex(wc.syndrome, ==, 0);
        g_assert_cmpuint(wc.wr_id, ==, m->received);
        g_assert_cmpuint(GUINT32_FROM_BE(wc.imm_be), ==, m->received);
        m->received++;
    }
    while (cq_poll(m->pair->cq[0], &wc)) {
        g_assert_cmphex(wc.syndrome, ==, 0);
        m->sent_done = wc.wr_id + 1;
    }
    while (m->posted - m->received < 64) {
        RecvWr recv = { .wr_id = m->posted++ };

        g_assert_true(qp_post_recv(m->qp[1], &recv, 1));
    }
    while (m->sent < MANY && m->sent - m->sent_done <= 48) {
        SendWr wr[16];

        for (unsigned i = 0; i < 16; i++) {
            wr[i] = (SendWr) {
                .wr_id = m->sent + i,
                .opcode = RDMA_HCA_OPCODE_SEND_IMM,
                .flags = i == 15 ? SEND_SIGNALED : 0,
                .imm_be = GUINT32_TO_BE(m->sent + i),
            };
        }
        g_assert_true(qp_post_send(m->qp[0], wr, 16));
        m->sent += 16;
    }
    return m->received >= MANY;
}

/* The posted count has 16 bits; queue indices go round a thousand times. */
static void test_posted_count_wraps(void)
{
    Many m = { .pair = pair_new(3201, 4096) };

    pair_connect(m.pair, NULL, m.qp);
    g_assert_true(lab_wait(m.pair->lab, many_turn, &m, PAIR_PATIENCE));
    pair_free(m.pair);
}

/* A PSN has 24 bits: a message across the wrap, for each operation. */
static void test_psn_wraps(void)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND,
        RDMA_HCA_OPCODE_RDMA_WRITE,
        RDMA_HCA_OPCODE_RDMA_READ,
    };

    for (unsigned op = 0; op < G_N_ELEMENTS(opcode); op++) {
        for (uint32_t before = 0; before < 12; before++) {
            Pair *pair = pair_new(3202, 65536);
            QpAttr attr;
            SendWr wr[3];
            Sge sge[3];
            Qp *qp[2];
            Wc wc;

            qp_attr_init(&attr);
            attr.sq_psn = (0x1000000 - before) & 0xffffff;
            attr.rq_psn = attr.sq_psn;
            pair_connect(pair, &attr, qp);
            for (unsigned i = 0; i < 3; i++) {
                pair_post_recv(pair, 1, qp[1], i, 0, 4096);
                wr[i] = pair_send(pair, 0, opcode[op], i, &sge[i], 0, 4096,
                                  8192);
            }
            g_assert_true(qp_post_send(qp[0], wr, 3));
            for (unsigned i = 0; i < 3; i++) {
                cq_expect(pair->cq[0], &wc, i, 0);
            }
            while (cq_poll(pair->cq[1], &wc)) {
                g_assert_cmphex(wc.syndrome, ==, 0);
            }
            g_assert_cmphex(qp_to_rst(qp[0]), ==, 0);
            g_assert_cmphex(qp_to_rst(qp[1]), ==, 0);
            qp_connect(qp[0], qp[1], &attr);
            pair_check_works(pair, qp, 1);
            pair_free(pair);
        }
    }
}

/* ---- tables that fill up ---- */

static Qp *self_connected(Pair *pair, Cq *cq)
{
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, pair->pd[0], cq);
    config.sq_entries = config.rq_entries = 4;
    qp = qp_new(pair->drv[0], &config);
    qp_attr_init(&attr);
    qp_connect(qp, qp, &attr);
    return qp;
}

/*
 * More events than the EQ holds while nobody reads it: all come in the end,
 * but for that of a CQ that is gone by then.
 */
static void test_event_queue_full(void)
{
    enum {
        CQS = 200
    };
    Pair *pair = pair_new(3301, 4096);
    Driver *drv = pair->drv[0];
    unsigned events[1 << 8] = { 0 };
    struct rdma_hca_eqe eqe;
    uint32_t cqn[CQS];
    Qp *qp = NULL;
    Cq *cq = NULL;

    for (unsigned i = 0; i < CQS; i++) {
        cq = cq_new(drv, 2, 1);
        cqn[i] = cq->cqn;
        qp = self_connected(pair, cq);
        cq_arm(cq, false);
        g_assert_true(qp_post_send(
            qp,
            &(SendWr) { .opcode = RDMA_HCA_OPCODE_NOP, .flags = SEND_SIGNALED },
            1));
    }
    lab_run(pair->lab);
    qp_destroy(qp);
    g_assert_cmphex(cq_destroy(cq), ==, 0);
    for (unsigned i = 0; i < CQS - 1; i++) {
        lab_run(pair->lab);
        if (!driver_event(drv, RDMA_HCA_EVENT_COMP, &eqe)) {
            g_error("event %u is lost", i);
        }
        events[GUINT32_FROM_LE(eqe.cq.cqn)]++;
    }
    lab_run(pair->lab);
    g_assert_false(driver_event(drv, RDMA_HCA_EVENT_COMP, NULL));
    for (unsigned i = 0; i < CQS - 1; i++) {
        g_assert_cmpuint(events[cqn[i]], ==, 1);
    }
    pair_free(pair);
}

/* Of what is allocated now; the tests are built with the sanitizer. */
size_t __sanitizer_get_current_allocated_bytes(void);

static uint8_t make_claiming_qp(Pair *pair, uint32_t qpn, uint32_t slots)
{
    struct rdma_hca_qpc qpc = {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, RDMA_HCA_QP_ST_RC)),
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6)),
        .usr_page = GUINT32_TO_BE(pair->cq[0]->uar),
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .pd = GUINT32_TO_BE(pair->pd[0]),
        .cqn_snd = GUINT32_TO_BE(pair->cq[0]->cqn),
        .cqn_rcv = GUINT32_TO_BE(pair->cq[0]->cqn),
        .snd_wqe_len = GUINT32_TO_BE(slots << 6),
    };

    return driver_cmd_in(pair->drv[0], RDMA_HCA_CMD_RST2INIT_QPEE, &qpc,
                         sizeof(qpc), qpn, 0);
}

/*
 * A guest claims send queues of the greatest size, which it need not have
 * memory for. What the card allocates for them is bounded.
 */
static void test_claimed_send_queues(void)
{
    enum {
        LOG_SLOTS = 17,
        FIRST = 16,
        QPS = 200,
        SLOTS = 32768,
        MOST = (1 << LOG_SLOTS) / SLOTS
    };
    HcaConfig config[2];
    size_t before, claimed;
    unsigned made = 0;
    Pair *pair;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].log_sq_slots = LOG_SLOTS;
    }
    pair = pair_new_with(3009, 65536, config, NULL, NULL);
    /* What the driver and ICM have to have for the first one is there. */
    g_assert_cmphex(make_claiming_qp(pair, FIRST, 1), ==, 0);
    driver_cmd(pair->drv[0], RDMA_HCA_CMD_ERR2RST_QPEE, 0, FIRST,
               RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);
    before = __sanitizer_get_current_allocated_bytes();
    for (unsigned i = 0; i < QPS; i++) {
        uint8_t status = make_claiming_qp(pair, FIRST + i, SLOTS);

        g_assert_cmphex(status, ==,
                        made < MOST ? RDMA_HCA_STAT_OK
                                    : RDMA_HCA_STAT_EXCEED_LIM);
        made += !status;
    }
    claimed = __sanitizer_get_current_allocated_bytes() - before;
    g_assert_cmpuint(made, ==, MOST);
    g_assert_cmpuint(claimed, <=,
                     (sizeof(HcaWqeRef) << LOG_SLOTS) + MOST * sizeof(HcaQp));
    /* One that goes makes room for others, and for no more. */
    driver_cmd(pair->drv[0], RDMA_HCA_CMD_ERR2RST_QPEE, 0, FIRST,
               RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);
    g_assert_cmphex(make_claiming_qp(pair, FIRST + QPS, SLOTS / 2 + 1), ==, 0);
    g_assert_cmphex(make_claiming_qp(pair, FIRST, 1), ==,
                    RDMA_HCA_STAT_EXCEED_LIM);
    g_assert_cmphex(make_claiming_qp(pair, FIRST, 0), ==, 0);
    pair_free(pair);
}

/* Every QP number of the card, connected and used. */
static void test_all_qps(void)
{
    Pair *pair = pair_new(3302, 4096);
    unsigned end = 1u << pair->lab->host[0].config.log_qps;
    GPtrArray *qps = g_ptr_array_new();

    while (pair->drv[0]->next_qpn < end) {
        g_ptr_array_add(qps, self_connected(pair, pair->cq[0]));
    }
    g_assert_cmpuint(qps->len, >, end / 2);
    for (guint i = 0; i < qps->len; i++) {
        Qp *qp = g_ptr_array_index(qps, i);
        Wc wc;

        g_assert_true(qp_post_send(qp,
                                   &(SendWr) { .wr_id = i,
                                               .opcode = RDMA_HCA_OPCODE_SEND,
                                               .flags = SEND_SIGNALED },
                                   1));
        g_assert_true(qp_post_recv(qp, &(RecvWr) { .wr_id = i }, 1));
        cq_expect(pair->cq[0], &wc, i, 0);
        cq_expect(pair->cq[0], &wc, i, 0);
    }
    g_ptr_array_free(qps, TRUE);
    pair_free(pair);
}

/*
 * Forty processes whose peers are never ready, for ever: what they hold of
 * the card's buffers must leave something for everybody else.
 */
static void test_stuck_crowd(void)
{
    enum {
        STUCK = 40
    };
    Pair *pair = pair_new(3303, 65536);
    Qp *qp[2];
    SendWr wr;
    Sge sge;
    Wc wc;

    for (unsigned i = 0; i < STUCK; i++) {
        pair_connect(pair, NULL, qp);
        for (unsigned n = 0; n < 4; n++) {
            wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, n, &sge, 0, 60000, 0);
            g_assert_true(qp_post_send(qp[0], &wr, 1));
        }
    }
    lab_sleep(pair->lab, 10 * NS_PER_MS);
    pair_connect(pair, NULL, qp);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 99, &sge, 0, 60000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 99, 0);
    pair_check_works(pair, qp, 0);
    pair_check_works(pair, qp, 1);
    pair_free(pair);
}

/* After all QPs are gone nothing of the shared buffers is in use. */
static void test_nothing_left(void)
{
    HcaConfig config[2];
    Pair *pair;

    smallest_config(config);
    pair = pair_new_with(3304, 65536, config, NULL, NULL);
    for (unsigned round = 0; round < 40; round++) {
        Qp *qp[4][2];

        for (unsigned i = 0; i < 4; i++) {
            SendWr wr[3];
            Sge sge[3];

            pair_connect(pair, NULL, qp[i]);
            for (unsigned n = 0; n < 3; n++) {
                wr[n] = pair_send(pair, 0,
                                  n & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                                        : RDMA_HCA_OPCODE_RDMA_WRITE,
                                  n, &sge[n], 0, 30000, 0);
            }
            g_assert_true(qp_post_send(qp[i][0], wr, 3));
        }
        for (unsigned n = 0; n < round * 3; n++) {
            lab_step(pair->lab);
        }
        for (unsigned i = 0; i < 4; i++) {
            for (unsigned side = 0; side < 2; side++) {
                uint32_t qpn = qp[i][side]->qpn;

                qp_destroy(qp[i][side]);
                pair->drv[side]->next_qpn = MIN(pair->drv[side]->next_qpn, qpn);
            }
        }
    }
    {
        Qp *qp[2];

        pair_connect(pair, NULL, qp);
        pair_check_works(pair, qp, 0);
        pair_check_works(pair, qp, 1);
    }
    pair_free(pair);
}

/* A QP of @pair's side 0, connected with itself, that takes from @srq. */
static Qp *sharing_qp(Pair *pair, Srq *srq)
{
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, pair->pd[0], pair->cq[0]);
    config.srq = srq;
    qp = qp_new(pair->drv[0], &config);
    qp_attr_init(&attr);
    attr.sq_psn = attr.rq_psn;
    qp_connect(qp, qp, &attr);
    return qp;
}

static void take_shared(Pair *pair, Qp *qp, uint64_t wr_id)
{
    Wc wc;

    g_assert_true(qp_post_send(qp,
                               &(SendWr) { .wr_id = wr_id,
                                           .opcode = RDMA_HCA_OPCODE_SEND,
                                           .flags = SEND_SIGNALED },
                               1));
    cq_expect(pair->cq[0], &wc, wr_id, 0);
    cq_expect(pair->cq[0], &wc, wr_id, 0);
}

/* Every number of a shared receive queue, each in use. */
static void test_all_srqs(void)
{
    Pair *pair = pair_new(3305, 4096);
    unsigned end = 1u << pair->lab->host[0].config.log_srqs;
    GPtrArray *srqs = g_ptr_array_new();
    SrqConfig config;

    srq_config_init(&config, pair->pd[0]);
    config.entries = 1;
    for (uint32_t srqn = 0; srqn < end; srqn++) {
        g_ptr_array_add(srqs, srq_new_number(pair->drv[0], &config, srqn));
    }
    for (unsigned i = 0; i < end; i++) {
        Srq *srq = g_ptr_array_index(srqs, i);

        for (unsigned n = 0; n < 3; n++) { /* one slot, again and again */
            g_assert_true(srq_post(srq, &(RecvWr) { .wr_id = i }, 1));
            g_assert_false(srq_post(srq, &(RecvWr) { .wr_id = i }, 1));
            take_shared(pair, sharing_qp(pair, srq), i);
        }
    }
    g_assert_cmpuint(pair_counter(pair, 0, "cxtmgt_srqs"), ==, end);
    g_ptr_array_free(srqs, TRUE);
    pair_free(pair);
}

/* The most WQEs that the option allows, all of them posted. */
static void test_largest_srq(void)
{
    enum {
        LOG = 15
    };
    HcaConfig cards[2];
    struct rdma_hca_srqc srqc;
    SrqConfig config;
    Pair *pair;
    Srq *srq;
    Qp *qp;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].log_srq_wqes = LOG;
    }
    pair = pair_new_with(3306, 4096, cards, NULL, NULL);
    srq_config_init(&config, pair->pd[0]);
    config.entries = 1u << LOG;
    config.log_entry = 5;
    srq = srq_new(pair->drv[0], &config);
    qp = sharing_qp(pair, srq);
    for (unsigned i = 0; i < config.entries; i++) {
        g_assert_true(srq_post(srq, &(RecvWr) { .wr_id = i }, 1));
    }
    g_assert_cmphex(srq_arm(srq, config.entries), ==, 0);
    g_assert_cmpuint(
        driver_count_events(pair->drv[0], RDMA_HCA_EVENT_SRQ_LIMIT), ==, 0);
    g_assert_cmphex(srq_query(srq, &srqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(srqc.limit_wqes), ==,
                    config.entries << 16 | config.entries);
    take_shared(pair, qp, 0);
    g_assert_cmpuint(
        driver_count_events(pair->drv[0], RDMA_HCA_EVENT_SRQ_LIMIT), ==, 1);
    for (unsigned i = 1; i < 3000; i++) {
        g_assert_true(srq_post(srq, &(RecvWr) { .wr_id = 0 }, 1));
        take_shared(pair, qp, i);
    }
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/limits/smallest-card", test_smallest_card);
    test_add_each_link("/limits/many-regions", test_many_regions);
    test_add_each_link("/limits/queue-shapes", test_queue_shapes);
    test_add_each_link("/limits/full-queues", test_full_queues);
    test_add_each_link("/limits/no-receive-queue", test_no_receive_queue);
    test_add_each_link("/limits/longest-lists", test_longest_lists);
    test_add_each_link("/limits/longest-entry", test_longest_entry);
    test_add_each_link("/limits/longest-inline", test_longest_inline);
    test_add_each_link("/limits/posted-count-wraps", test_posted_count_wraps);
    test_add_each_link("/limits/psn-wraps", test_psn_wraps);
    test_add_each_link("/limits/event-queue-full", test_event_queue_full);
    test_add("/limits/claimed-send-queues", test_claimed_send_queues);
    test_add_each_link("/limits/all-qps", test_all_qps);
    test_add_each_link("/limits/all-srqs", test_all_srqs);
    test_add_each_link("/limits/largest-srq", test_largest_srq);
    test_add_each_link("/limits/stuck-crowd", test_stuck_crowd);
    test_add_each_link("/limits/nothing-left", test_nothing_left);
    return g_test_run();
}
