/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work, completion and event queues in memory that a guest may write: noise in
 * WQEs, chains without end, WQEs that change while they are read, counts and
 * indices beyond the queue, queues whose memory is gone; of QPs and shared.
 */
#include <string.h>

#include "lib-noise.h"
#include "lib-scene.h"

static void random_ring(Scene *s, Mr *mr)
{
    g_autofree uint8_t *data = g_malloc(mr->len);

    noise_fill(s, data, mr->len);
    mr_write(mr, 0, data, mr->len);
}

/* Both queues full of noise, any doorbell, any posted count. */
static void test_work_queues(void)
{
    Scene s;

    scene_init_victim(&s, 1002);
    for (unsigned round = 0; round < 300; round++) {
        random_ring(&s, s.victim[0]->sq.mr);
        random_ring(&s, s.victim[1]->rq.mr);
        host_write_le32(&s.pair->lab->host[1], s.victim[1]->rq_record,
                        noise_odd32(&s));
        for (unsigned i = 0; i < 10; i++) {
            noise_send_doorbell(&s);
        }
        lab_run(s.pair->lab);
        scene_check(&s);
        scene_revive_victim(&s);
    }
    scene_free(&s);
}

/* Sound WQEs with one word changed: these get further than noise. */
static void test_changed_wqes(void)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
        RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
        RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_ATOMIC_CS,
    };
    Scene s;

    scene_init_victim(&s, 1003);
    for (unsigned round = 0; round < 600; round++) {
        uint32_t low, high, word;
        SendWr wr[4];
        Sge sge[4];

        for (unsigned i = 0; i < 4; i++) {
            wr[i] = pair_send(s.pair, 0, opcode[noise32(&s) % 6], i, &sge[i],
                              i * 10000, noise32(&s) % 5000, 0);
            pair_post_recv(s.pair, 1, s.victim[1], i, 0, 4096);
        }
        word = noise_odd32(&s);
        mr_write(s.victim[1]->rq.mr, pair_rand(s.pair, 0, 64) * 4, &word, 4);
        g_assert_true(qp_write_send(s.victim[0], wr, 4, &low, &high));
        word = noise_odd32(&s);
        mr_write(s.victim[0]->sq.mr, pair_rand(s.pair, 0, 256) * 4, &word, 4);
        qp_ring(s.victim[0], low, high);
        lab_run(s.pair->lab);
        if (round % 10 == 0) {
            scene_check(&s);
        }
        scene_revive_victim(&s);
    }
    scene_free(&s);
}

/* A chain that bites its own tail. */
static void test_chain_loop(void)
{
    for (unsigned len = 1; len <= 3; len++) {
        Scene s;
        Ring *ring;

        scene_init_victim(&s, 1004);
        ring = &s.victim[0]->sq;
        for (unsigned i = 0; i < len; i++) {
            unsigned next = (i + 1) % len;
            struct rdma_hca_next_unit unit = {
                .nda_nop = GUINT32_TO_LE(
                    RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA,
                                  (next << ring->log_entry) / 64) |
                    (i & 1 ? RDMA_HCA_OPCODE_NOP : RDMA_HCA_OPCODE_SEND)),
                .nee_nds = GUINT32_TO_LE(1),
            };

            mr_write(ring->mr, i << ring->log_entry, &unit, sizeof(unit));
        }
        qp_ring(s.victim[0], RDMA_HCA_OPCODE_SEND,
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.victim[0]->qpn) | 1);
        lab_run(s.pair->lab);
        scene_check(&s);
        scene_revive_victim(&s);
        scene_free(&s);
    }
}

/* Completions that nobody takes, consumer indices that make no sense. */
static void test_cq_abuse(void)
{
    Scene s;

    scene_init_victim(&s, 1006);
    for (unsigned round = 0; round < 20; round++) {
        Cq *cq = s.victim_cq[0];

        for (unsigned i = 0; i < 20; i++) {
            uint32_t low = RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, noise32(&s) % 4) |
                           cq->cqn;

            host_uar_write64(&s.pair->lab->host[0],
                             cq->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB,
                             (uint64_t)noise_odd32(&s) << 32 | low);
            if (cq->ci_record) {
                host_write_le32(&s.pair->lab->host[0], cq->ci_record,
                                noise_odd32(&s));
            }
            for (unsigned n = 0; n < 10; n++) {
                qp_ring(s.victim[0], RDMA_HCA_OPCODE_NOP,
                        RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.victim[0]->qpn) |
                            1);
            }
            lab_run(s.pair->lab);
        }
        scene_check(&s);
        scene_revive_victim(&s);
    }
    scene_free(&s);
}

/* A connection whose queues take the longest WQEs. */
static void connect_long(Scene *s, Qp *qp[2])
{
    QpAttr attr;

    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        QpConfig config;

        qp_config_init(&config, s->pair->pd[i], s->pair->cq[i]);
        config.sq_entries = config.rq_entries = 8;
        config.log_sq_entry = 10;
        config.log_rq_entry = 9;
        qp[i] = qp_new(s->pair->drv[i], &config);
    }
    qp_connect(qp[0], qp[1], &attr);
}

static struct rdma_hca_data_unit data_unit(const Mr *mr, uint32_t len)
{
    return (struct rdma_hca_data_unit) {
        .byte_cnt = GUINT32_TO_LE(len),
        .lkey = GUINT32_TO_LE(mr->key),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(mr->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(mr->va)),
    };
}

/* A Send of @n entries of @len bytes, by hand; the doorbell says @units. */
static void post_entries(Qp *qp, const Mr *mr, unsigned n, uint32_t len,
                         unsigned units)
{
    struct rdma_hca_next_unit next = {
        .flags = GUINT32_TO_LE(RDMA_HCA_WQE_CQ_UPDATE),
    };
    struct rdma_hca_data_unit unit = data_unit(mr, len);
    uint32_t slot = qp->sq.head++ & (qp->sq.entries - 1);
    uint32_t at = slot << qp->sq.log_entry;

    qp->sq.wr_id[slot] = n;
    mr_write(qp->sq.mr, at, &next, sizeof(next));
    for (unsigned i = 1; i <= MIN(n, 63); i++) {
        mr_write(qp->sq.mr, at + i * RDMA_HCA_WQE_UNIT, &unit, sizeof(unit));
    }
    qp_ring(qp,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD, at / RDMA_HCA_WQE_UNIT) |
                RDMA_HCA_OPCODE_SEND,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) | units);
}

/*
 * CVE-2018-20124: a work request said how many scatter/gather entries it has,
 * and they were copied to an array of fixed size unseen.
 */
static void test_sge_count(void)
{
    static const struct {
        unsigned entries, units; /* there are, and in the doorbell */
        uint8_t syndrome;
    } wqes[] = {
        { 1, 2, 0 },
        { RDMA_HCA_MAX_SGE, RDMA_HCA_MAX_SGE + 1, 0 },
        { 31, 32, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 32, 33, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 62, 63, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 63, 64, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 127, 128, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 254, 255, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 1, 0, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    };
    Scene s;
    Wc wc;

    scene_init(&s, 2141);
    for (unsigned i = 0; i < G_N_ELEMENTS(wqes); i++) {
        Qp *qp[2];

        connect_long(&s, qp);
        pair_post_recv(s.pair, 1, qp[1], 1, 0, 4096);
        post_entries(qp[0], s.pair->mr[0], wqes[i].entries, 4, wqes[i].units);
        cq_expect(s.pair->cq[0], &wc, wqes[i].entries, wqes[i].syndrome);
        scene_disconnect(qp);
        scene_check(&s);
    }
    scene_free(&s);
}

/* The same of a receive queue: 31 entries where 30 are the limit. */
static void test_sge_count_receive(void)
{
    Scene s;
    Wc wc;

    scene_init(&s, 2142);
    for (unsigned n = RDMA_HCA_MAX_SGE; n <= RDMA_HCA_MAX_SGE + 1; n++) {
        bool good = n == RDMA_HCA_MAX_SGE;
        struct rdma_hca_data_unit unit = data_unit(s.pair->mr[0], 1);
        SendWr wr;
        Qp *qp[2];
        Sge sge;

        connect_long(&s, qp);
        pair_post_recv(s.pair, 0, qp[0], 1, 0, 1);
        for (unsigned i = 1; i <= n; i++) {
            mr_write(qp[0]->rq.mr, i * RDMA_HCA_WQE_UNIT, &unit, sizeof(unit));
        }
        wr = pair_send(s.pair, 1, RDMA_HCA_OPCODE_SEND, 2, &sge, 0,
                       RDMA_HCA_MAX_SGE, 0);
        g_assert_true(qp_post_send(qp[1], &wr, 1));
        cq_expect(s.pair->cq[0], &wc, 1,
                  good ? 0 : RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
        cq_expect(s.pair->cq[1], &wc, 2,
                  good ? 0 : RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
        scene_disconnect(qp);
        scene_check(&s);
    }
    scene_free(&s);
}

/*
 * CVE-2018-20216: with an index that cannot be, the ring's functions said so,
 * nobody asked them, and the loop over the ring did not end. Here are all
 * indices that a guest keeps: of receive, completion and event queues, and the
 * links from one WQE to the next. (lib-host fails a card that does not rest.)
 */
static const uint32_t corrupt[] = {
    0,          1,          63,       64,         65,         127,
    0x7fff,     0x8000,     0x8001,   0xffff,     0x10000,    0x7fffffff,
    0x80000000, 0x80000001, 0xffffff, 0xfffffffe, 0xffffffff,
};

/* Posted counts: many more WQEs than there are. */
static void test_index_receive(void)
{
    Scene s;

    scene_init(&s, 2181);
    for (unsigned i = 0; i < G_N_ELEMENTS(corrupt); i++) {
        for (unsigned err = 0; err < 2; err++) {
            struct rdma_hca_cqc cqc;
            Qp *qp[2];
            SendWr wr;
            Sge sge;

            pair_connect(s.pair, NULL, qp);
            host_write_le32(s.host, qp[0]->rq_record, corrupt[i]);
            wr = pair_send(s.pair, 1, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 0, 0);
            g_assert_true(qp_post_send(qp[1], &wr, 1));
            lab_sleep(s.pair->lab, 10 * NS_PER_MS);
            if (err) {
                EXPECT(qp_to_err(qp[0]), OK); /* all are flushed */
                lab_sleep(s.pair->lab, NS_PER_S);
            }
            scene_disconnect(qp);
            /* The flush may have filled the queue: a new one for the next. */
            EXPECT(driver_cmd_out(s.drv, RDMA_HCA_CMD_QUERY_CQ, &cqc,
                                  sizeof(cqc), s.pair->cq[0]->cqn, 0),
                   OK);
            if (RDMA_HCA_GET(RDMA_HCA_CQC_STATUS, GUINT32_FROM_BE(cqc.flags))) {
                scene_recover(&s);
            } else {
                scene_check(&s);
            }
        }
    }
    scene_free(&s);
}

/* Links of WQEs: to themselves, each other, beyond the end of the queue. */
static void test_index_send(void)
{
    Scene s;

    scene_init(&s, 2182);
    for (unsigned i = 0; i < 200; i++) {
        Qp *qp[2];
        Ring *ring;

        connect_long(&s, qp);
        ring = &qp[0]->sq;
        for (unsigned slot = 0; slot < ring->entries; slot++) {
            uint32_t to = i < 8 ? i : pair_rand(s.pair, 0, 300);
            struct rdma_hca_next_unit next = {
                .nda_nop = GUINT32_TO_LE(
                    RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA,
                                  to << ring->log_entry >> 6) |
                    RDMA_HCA_OPCODE_NOP),
                .nee_nds = GUINT32_TO_LE(pair_rand(s.pair, 1, 64)),
            };

            if (i == 199) {
                next.nda_nop = GUINT32_TO_LE(UINT32_MAX);
                next.nee_nds = GUINT32_TO_LE(UINT32_MAX);
            }
            mr_write(ring->mr, slot << ring->log_entry, &next, sizeof(next));
        }
        for (unsigned n = 0; n < 3; n++) {
            qp_ring(qp[0], RDMA_HCA_OPCODE_NOP,
                    RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp[0]->qpn) | 1);
        }
        lab_run(s.pair->lab);
        scene_disconnect(qp);
        scene_check(&s);
    }
    scene_free(&s);
}

/* Consumer indices, by record and by doorbell, of a CQ and of an EQ. */
static void test_index_events(void)
{
    Scene s;

    scene_init(&s, 2183);
    for (unsigned i = 0; i < G_N_ELEMENTS(corrupt); i++) {
        Eq *eq = &s.drv->eq[EQ_COMP];
        uint32_t uar = CARD_UAR * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB;
        uint64_t record = host_alloc(s.host, 1);
        struct rdma_hca_cqc cqc = scene_cqc(&s, 2);
        struct rdma_hca_eqc eqc;

        cqc.ci_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(record));
        cqc.ci_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(record));
        EXPECT(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc),
                                SPARE_CQN),
               OK);
        host_write_le32(s.host, record, corrupt[i]);
        for (uint32_t cmd = 0; cmd < 4; cmd++) {
            host_uar_write64(s.host, uar,
                             (uint64_t)corrupt[i] << 32 |
                                 RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, cmd) |
                                 SPARE_CQN);
        }
        host_bar0_write(s.host,
                        RDMA_HCA_EQ_DB + eq->eqn * RDMA_HCA_EQ_DB_STRIDE,
                        corrupt[i]);
        lab_run(s.pair->lab);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0), OK);
        EXPECT(driver_cmd_out(s.drv, RDMA_HCA_CMD_QUERY_EQ, &eqc, sizeof(eqc),
                              eq->eqn, 0),
               OK);
        g_assert_cmpuint(GUINT32_FROM_BE(eqc.producer_index) -
                             GUINT32_FROM_BE(eqc.consumer_index),
                         <=, 1u << eq->log_size);
        scene_check(&s);
        driver_poll_eq(s.drv, EQ_COMP);
    }
    scene_free(&s);
}

/* Lengths of work requests and packets, whose sums pass 2^32 and 2^64. */
static void test_length_overflow(void)
{
    static const uint32_t lengths[] = {
        0x7fffffff, 0x40000000, 0x08888889, 0x10000000, 0x7ffff000,
    };
    static const uint64_t ends[] = {
        UINT64_MAX,        UINT64_MAX - 98,         UINT64_MAX - 99,
        UINT64_C(1) << 63, UINT64_MAX - 0x7fffffff,
    };
    Scene s;
    Wc wc;

    scene_init(&s, 2202);
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        for (unsigned n = 1; n <= RDMA_HCA_MAX_SGE; n++) {
            uint8_t syndrome = (uint64_t)n * lengths[i] > (UINT64_C(1) << 31)
                                   ? RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR
                                   : RDMA_HCA_SYNDROME_LOCAL_PROT_ERR;
            Qp *qp[2];

            connect_long(&s, qp);
            post_entries(qp[0], s.pair->mr[0], n, lengths[i], n + 1);
            cq_expect(s.pair->cq[0], &wc, n, syndrome);
            scene_disconnect(qp);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(ends) * 4; i++) {
        bool remote = i & 1;
        Qp *qp[2];
        SendWr wr;
        Sge sge;

        pair_connect(s.pair, NULL, qp);
        wr = pair_send(s.pair, 0,
                       i & 2 ? RDMA_HCA_OPCODE_RDMA_READ
                             : RDMA_HCA_OPCODE_RDMA_WRITE,
                       i, &sge, 0, 100, 0);
        *(remote ? &wr.raddr : &sge.va) = ends[i / 4];
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(s.pair->cq[0], &wc, i,
                  remote ? RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
                         : RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
        scene_disconnect(qp);
    }
    scene_free(&s);
}

/*
 * CVE-2022-1050: a driver could start a command before it had told the device
 * where the shared buffers are, which the command then used. Here: commands,
 * doorbells and packets before INIT_HCA, before ICM, before any EQ.
 */
static void test_before_buffers(void)
{
    Scene s;

    scene_init(&s, 2221);
    for (unsigned stage = 0; stage < 3; stage++) {
        scene_reset_card(&s);
        if (stage > 0) {
            EXPECT(scene_small_init(&s), OK); /* tables, but no ICM */
        }
        if (stage > 1) {
            scene_small_map(&s);
        }
        /* Without a mailbox, ending in an event that no EQ takes. */
        for (unsigned op = 0; op <= 0xfff; op++) {
            if (op == RDMA_HCA_CMD_CLOSE_HCA || op == RDMA_HCA_CMD_INIT_HCA) {
                continue;
            }
            for (unsigned reg = 0; reg < RDMA_HCA_HCR_CTRL; reg += 4) {
                host_bar0_write(s.host, RDMA_HCA_HCR + reg, 0);
            }
            host_bar0_write(s.host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                            RDMA_HCA_HCR_GO | RDMA_HCA_HCR_EVENT | op);
            lab_run(s.pair->lab);
            g_assert_cmphex(
                host_bar0_read(s.host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL) &
                    RDMA_HCA_HCR_GO,
                ==, 0);
        }
        for (uint32_t number = 0; number < 300; number++) {
            uint64_t send = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, number) | 1;

            host_uar_write64(s.host, RDMA_HCA_SEND_DB, send << 32);
            host_uar_write64(s.host, RDMA_HCA_CQ_DB,
                             RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, 2) | number);
            host_bar0_write(s.host, RDMA_HCA_EQ_DB + number % 32 * 4,
                            RDMA_HCA_EQ_DB_ARM);
        }
        /* The peer, who knows nothing of the reset, sends on. */
        {
            SendWr wr;
            Sge sge;

            wr = pair_send(s.pair, 1, RDMA_HCA_OPCODE_RDMA_READ, stage, &sge, 0,
                           100, 0);
            g_assert_true(qp_post_send(s.bystander[1], &wr, 1));
            lab_sleep(s.pair->lab, NS_PER_MS);
        }
    }
    scene_recover(&s);
    scene_free(&s);
}

/*
 * CVE-2023-1544: the number of page tables of a ring was not bounded by what
 * its directory holds, and the ring was read beyond it. Here each ring says
 * that it is longer than the region that it is in.
 */
static void test_beyond_one_table(void)
{
    Scene s;
    Wc wc;

    scene_init(&s, 2231);
    /* A CQ of 2^22 entries in a region of 64. */
    {
        Mr *mr = mr_new(s.drv, s.drv->kernel_pd, 0x40000,
                        64 * RDMA_HCA_CQE_SIZE, RDMA_HCA_ACCESS_LOCAL_WRITE);
        struct rdma_hca_cqc cqc = scene_cqc(&s, HCA_MAX_LOG_CQ_SIZE);
        Cq cq = *s.pair->cq[0];
        struct rdma_hca_eqe eqe;
        QpConfig config;
        QpAttr attr;
        Qp *qp[2];

        cqc.pd = GUINT32_TO_BE(s.drv->kernel_pd);
        cqc.lkey = GUINT32_TO_BE(mr->key);
        EXPECT(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc),
                                SPARE_CQN),
               OK);
        cq.cqn = SPARE_CQN;
        qp_attr_init(&attr);
        for (unsigned i = 0; i < 2; i++) {
            qp_config_init(&config, s.pair->pd[i], i ? s.pair->cq[1] : &cq);
            config.sq_entries = 128;
            qp[i] = qp_new(s.pair->drv[i], &config);
        }
        qp_connect(qp[0], qp[1], &attr);
        for (unsigned i = 0; i < 65; i++) {
            SendWr wr;
            Sge sge;

            g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_RTS);
            wr = pair_send(s.pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0, 8,
                           0);
            g_assert_true(qp_post_send(qp[0], &wr, 1));
            lab_run(s.pair->lab);
        }
        g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_ERR);
        g_assert_true(driver_event(s.drv, RDMA_HCA_EVENT_CQ_ERROR, &eqe));
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.cqn), ==, SPARE_CQN);
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.syndrome), ==,
                         RDMA_HCA_CQ_ERROR_ACCESS);
        g_assert_cmpuint(card_counter(s.host->hca, "cxtmgt_cq_overruns"), ==,
                         0);
        EXPECT(scene_to_rst(&s, qp[0]->qpn), OK);
        qp[0]->send_cq = qp[0]->recv_cq = s.pair->cq[0];
        scene_disconnect(qp);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0), OK);
        EXPECT(mr_deregister(mr), OK);
        scene_check(&s);
    }
    /* An EQ of 2^20 entries in a region of 4. */
    {
        Mr *mr = mr_new(s.drv, s.pair->pd[0], 0x50000, 4 * RDMA_HCA_EQE_SIZE,
                        RDMA_HCA_ACCESS_LOCAL_WRITE);
        struct rdma_hca_eqc eqc = scene_eqc(&s, HCA_MAX_LOG_EQ_SIZE);
        uint64_t mask = UINT64_C(1) << RDMA_HCA_EVENT_CMD;
        uint64_t lost = card_counter(s.host->hca, "cxtmgt_events_lost");

        eqc.lkey = GUINT32_TO_BE(mr->key);
        EXPECT(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc),
                                SPARE_EQN),
               OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_MAP_EQ, mask, SPARE_EQN, 0), OK);
        for (unsigned i = 0; i < 6; i++) {
            g_assert_cmpuint(card_counter(s.host->hca, "cxtmgt_events_lost"),
                             ==, lost + (i > 4));
            host_bar0_write(s.host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                            RDMA_HCA_HCR_GO | RDMA_HCA_HCR_EVENT |
                                RDMA_HCA_CMD_NOP);
            lab_run(s.pair->lab);
        }
        EXPECT(driver_cmd_out(s.drv, RDMA_HCA_CMD_QUERY_EQ, &eqc, sizeof(eqc),
                              SPARE_EQN, 0),
               OK);
        g_assert_cmpuint(
            RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, GUINT32_FROM_BE(eqc.flags)), ==,
            RDMA_HCA_EQ_STATUS_WRITE_FAIL);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_MAP_EQ, mask,
                             s.drv->eq[EQ_CMD].eqn, 0),
               OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN, 0), OK);
        EXPECT(mr_deregister(mr), OK);
        scene_check(&s);
    }
    /* Work queues that go on where their region does not. */
    for (unsigned receive = 0; receive < 2; receive++) {
        Qp *qp[2];
        SendWr wr;
        Sge sge;

        pair_connect(s.pair, NULL, qp);
        for (unsigned i = 0; i < 2; i++) {
            Ring *ring = receive ? &qp[0]->rq : &qp[0]->sq;
            struct rdma_hca_mpt mpt = scene_mpt(&s, ring->mr->va,
                                                4u << ring->log_entry, 0);

            if (!i) {
                EXPECT(scene_to_rst(&s, qp[0]->qpn), OK);
                EXPECT(scene_to_rst(&s, SPARE_QPN), OK);
                mpt.mtt_seg_l = GUINT32_TO_BE(ring->mr->mtt);
                EXPECT(scene_sw2hw_mpt(&s, &mpt), OK);
            }
        }
        {
            Ring *ring = receive ? &qp[0]->rq : &qp[0]->sq;
            uint32_t key = ring->mr->key;
            QpAttr attr;

            /* 64 slots by the context, 4 by the region. */
            ring->mr->key = GOOD_KEY(SPARE_MPT);
            EXPECT(qp_to_rst(qp[0]), OK);
            EXPECT(qp_to_rst(qp[1]), OK);
            qp_attr_init(&attr);
            qp_connect(qp[0], qp[1], &attr);
            ring->mr->key = key;
        }
        for (unsigned i = 0; i < 5; i++) {
            unsigned from = receive;

            pair_post_recv(s.pair, !from, qp[!from], i, 0, 64);
            wr = pair_send(s.pair, from, RDMA_HCA_OPCODE_SEND, i, &sge, 0, 8,
                           0);
            g_assert_true(qp_post_send(qp[from], &wr, 1));
            cq_expect(s.pair->cq[from], &wc, i,
                      i < 4     ? 0
                      : receive ? RDMA_HCA_SYNDROME_REMOTE_OP_ERR
                                : RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
            if (i < 4) {
                cq_expect(s.pair->cq[!from], &wc, i, 0);
            }
        }
        scene_disconnect(qp);
        EXPECT(scene_hw2sw_mpt(&s), OK);
        scene_check(&s);
    }
    scene_free(&s);
}

static void test_queue_memory_gone(void)
{
    for (unsigned which = 0; which < 3; which++) {
        Pair *pair = pair_new(3501, 4096);
        struct rdma_hca_eqe eqe;
        Qp *qp[2];
        SendWr wr;
        Sge sge;
        Wc wc;

        pair_connect(pair, NULL, qp);
        pair_post_recv(pair, 1, qp[1], 1, 0, 100);
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 100, 0);
        switch (which) {
        case 0: /* receive queue */
            g_assert_cmphex(mr_deregister(qp[1]->rq.mr), ==, 0);
            g_assert_true(qp_post_send(qp[0], &wr, 1));
            cq_expect(pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
            g_assert_true(driver_event(pair->drv[1],
                                       RDMA_HCA_EVENT_WQ_CATAS_ERROR, &eqe));
            g_assert_cmpuint(GUINT32_FROM_LE(eqe.qp.qpn), ==, qp[1]->qpn);
            g_assert_cmpuint(qp_state(qp[1]), ==, RDMA_HCA_QP_STATE_ERR);
            break;
        case 1: /* send queue */
            g_assert_cmphex(mr_deregister(qp[0]->sq.mr), ==, 0);
            g_assert_true(qp_post_send(qp[0], &wr, 1));
            cq_expect(pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
            g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_ERR);
            break;
        default: /* completion queue */
            g_assert_cmphex(mr_deregister(pair->cq[1]->mr), ==, 0);
            g_assert_true(qp_post_send(qp[0], &wr, 1));
            lab_sleep(pair->lab, NS_PER_S);
            g_assert_true(
                driver_event(pair->drv[1], RDMA_HCA_EVENT_CQ_ERROR, &eqe));
            g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.cqn), ==, pair->cq[1]->cqn);
            g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.syndrome), ==,
                             RDMA_HCA_CQ_ERROR_ACCESS);
            g_assert_cmpuint(qp_state(qp[1]), ==, RDMA_HCA_QP_STATE_ERR);
        }
        pair_free(pair);
    }
}

/* ---- shared receive queues ---- */

#define XRC_DOMAIN 9
#define SHARERS 3 /* RC, UD, XRC */

/* Queues of side 1 whose owner means harm, and who sends to them. */
typedef struct Shared {
    Scene *s;
    Cq *cq[2];
    Srq *srq, *xrc_srq;
    Qp *near[SHARERS], *far[SHARERS];
} Shared;

static Srq *shared_srq(Shared *sh, bool xrc)
{
    Pair *pair = sh->s->pair;
    SrqConfig config;

    srq_config_init(&config, pair->pd[1]);
    config.entries = 16;
    if (xrc) {
        srq_config_xrc(&config, sh->cq[1], XRC_DOMAIN);
    }
    return srq_new_number(pair->drv[1], &config,
                          xrc ? SPARE_SRQN : SPARE_SRQN + 1);
}

static Qp *shared_qp(Shared *sh, unsigned side, uint8_t service)
{
    Pair *pair = sh->s->pair;
    QpConfig config;

    qp_config_init(&config, pair->pd[side], sh->cq[side]);
    config.service = service;
    if (service == RDMA_HCA_QP_ST_XRC_INI) {
        config.rq_entries = 0;
    } else if (service == RDMA_HCA_QP_ST_XRC_TGT) {
        config.sq_entries = config.rq_entries = 0;
        config.send_cq = config.recv_cq = NULL;
        config.xrcd = XRC_DOMAIN;
    } else if (side) {
        config.srq = sh->srq;
    }
    return qp_new_number(pair->drv[side], &config, SPARE_QPN + service);
}

static void shared_begin(Shared *sh, Scene *s)
{
    static const uint8_t service[SHARERS][2] = {
        { RDMA_HCA_QP_ST_RC, RDMA_HCA_QP_ST_RC },
        { RDMA_HCA_QP_ST_UD, RDMA_HCA_QP_ST_UD },
        { RDMA_HCA_QP_ST_XRC_INI, RDMA_HCA_QP_ST_XRC_TGT },
    };
    QpAttr attr;

    *sh = (Shared) { .s = s };
    for (unsigned i = 0; i < 2; i++) {
        sh->cq[i] = cq_new(s->pair->drv[i], 5, 3);
    }
    sh->srq = shared_srq(sh, false);
    sh->xrc_srq = shared_srq(sh, true);
    qp_attr_init(&attr);
    attr.timeout = 8;
    attr.retry_cnt = attr.rnr_retry = 1;
    for (unsigned i = 0; i < SHARERS; i++) {
        sh->near[i] = shared_qp(sh, 0, service[i][0]);
        sh->far[i] = shared_qp(sh, 1, service[i][1]);
        qp_connect(sh->near[i], sh->far[i], &attr);
    }
}

/* Nobody looks at the completions: their tags are noise, too. */
static void shared_end(Shared *sh)
{
    lab_sleep(sh->s->pair->lab, NS_PER_S / 10);
    for (unsigned i = 0; i < SHARERS; i++) {
        sh->far[i]->srq = NULL;
        EXPECT(qp_to_err(sh->far[i]), OK);
        qp_destroy(sh->far[i]);
        qp_destroy(sh->near[i]);
    }
    EXPECT(srq_destroy(sh->srq), OK);
    EXPECT(srq_destroy(sh->xrc_srq), OK);
    EXPECT(cq_destroy(sh->cq[0]), OK);
    EXPECT(cq_destroy(sh->cq[1]), OK);
}

static void shared_send(Shared *sh, unsigned i, uint32_t len)
{
    Pair *pair = sh->s->pair;
    UdAddress ud = { .dqpn = sh->far[i]->qpn, .qkey = 0x11111111 };
    SendWr wr;
    Sge sge;

    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, i, &sge, 0, len, 0);
    wr.flags = 0;
    if (sh->near[i]->service == RDMA_HCA_QP_ST_UD) {
        ud_address_to(&ud, pair->drv[0], pair->drv[1]);
        wr.ud = &ud;
    }
    wr.xrc = sh->near[i]->service == RDMA_HCA_QP_ST_XRC_INI;
    wr.srqn = sh->xrc_srq->srqn;
    qp_post_send(sh->near[i], &wr, 1);
}

static void shared_post(Shared *sh, Srq *srq, unsigned n)
{
    Sge sge = mr_sge(sh->s->pair->mr[1], 0, 4096);
    RecvWr wr = { .nsge = 1, .sge = &sge };

    for (; n; n--) {
        if (!srq_room(srq)) {
            srq_forget(srq);
        }
        srq_post(srq, &wr, 1);
    }
}

/* A slot of the queue is noise, a word of it is, or it is another one's. */
static void shared_spoil(Shared *sh, Srq *srq)
{
    const uint32_t size = 1u << srq->log_entry;
    uint32_t to = noise32(sh->s) % srq->entries * size;
    uint8_t slot[128];
    uint32_t word = noise_odd32(sh->s);

    switch (noise32(sh->s) % 5) {
    case 0:
        random_ring(sh->s, srq->mr);
        break;
    case 1:
        mr_write(srq->mr, to + noise32(sh->s) % 32 * 4, &word, 4);
        break;
    case 2: /* posted twice */
        mr_read(srq->mr, noise32(sh->s) % srq->entries * size, slot, size);
        mr_write(srq->mr, to, slot, size);
        break;
    case 3:
        host_write_le32(srq->drv->host, srq->record, word);
        break;
    default:
        host_write_le32(srq->drv->host, srq->record,
                        srq->head + (int)(noise32(sh->s) % 40) - 20);
        break;
    }
}

static void test_shared_queues(void)
{
    struct rdma_hca_srqc srqc;
    Scene s;

    scene_init_victim(&s, 1021);
    for (unsigned round = 0; round < 150; round++) {
        Shared sh;

        shared_begin(&sh, &s);
        for (unsigned i = 0; i < 12; i++) {
            Srq *srq = noise32(&s) % 3 ? sh.srq : sh.xrc_srq;

            shared_post(&sh, srq, noise32(&s) % 5);
            shared_send(&sh, noise32(&s) % SHARERS, noise32(&s) % 1024);
            if (noise32(&s) % 3 == 0) {
                shared_spoil(&sh, srq);
            }
            if (noise32(&s) % 8 == 0) {
                srq_arm(srq, noise32(&s) % 17);
                EXPECT(srq_query(srq, &srqc), OK);
            }
            for (unsigned n = noise32(&s) % 20; n && lab_step(s.pair->lab);) {
                n--;
            }
        }
        EXPECT(srq_destroy(sh.srq), RESOURCE_BUSY);
        shared_end(&sh);
        scene_check(&s);
    }
    scene_free(&s);
}

/* Its memory goes while messages come. */
static void test_shared_memory_gone(void)
{
    Scene s;

    scene_init_victim(&s, 1022);
    for (unsigned round = 0; round < 60; round++) {
        Shared sh;

        shared_begin(&sh, &s);
        for (unsigned i = 0; i < 20; i++) {
            shared_post(&sh, sh.srq, 2);
            shared_post(&sh, sh.xrc_srq, 2);
            shared_send(&sh, i % SHARERS, 3000 * (i % SHARERS != 1));
            for (unsigned n = noise32(&s) % 6; n && lab_step(s.pair->lab);) {
                n--;
            }
            if (i == 5 + round % 8) {
                EXPECT(mr_deregister(sh.srq->mr), OK);
                EXPECT(mr_deregister(sh.xrc_srq->mr), OK);
            }
        }
        lab_run(s.pair->lab);
        g_assert_cmpuint(
            pair_counter(s.pair, 1, "cxtmgt_event_srq_catas_error"), <=,
            2 * (round + 1));
        shared_end(&sh);
        scene_check(&s);
    }
    scene_free(&s);
}

/* XRC SRQs come and go under the messages that name them. */
static void test_shared_destroyed(void)
{
    Scene s;

    scene_init_victim(&s, 1023);
    for (unsigned round = 0; round < 40; round++) {
        Shared sh;

        shared_begin(&sh, &s);
        for (unsigned i = 0; i < 10; i++) {
            shared_post(&sh, sh.xrc_srq, 3);
            shared_send(&sh, 2, 1 + noise32(&s) % 30000);
            for (unsigned n = noise32(&s) % 12; n && lab_step(s.pair->lab);) {
                n--;
            }
            EXPECT(srq_destroy(sh.xrc_srq), OK);
            sh.xrc_srq = shared_srq(&sh, true); /* the same number */
        }
        shared_end(&sh);
        scene_check(&s);
    }
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bad-queues/random", test_work_queues);
    test_add_each_link("/bad-queues/changed-wqes", test_changed_wqes);
    test_add_each_link("/bad-queues/chain-loop", test_chain_loop);
    test_add_each_link("/bad-queues/cq-abuse", test_cq_abuse);
    test_add_each_link("/bad-queues/sge-count/send", test_sge_count);
    test_add_each_link("/bad-queues/sge-count/receive", test_sge_count_receive);
    test_add_each_link("/bad-queues/corrupt-index/receive", test_index_receive);
    test_add_each_link("/bad-queues/corrupt-index/send", test_index_send);
    test_add_each_link("/bad-queues/corrupt-index/events", test_index_events);
    test_add_each_link("/bad-queues/size-overflow", test_length_overflow);
    test_add_each_link("/bad-queues/before-buffers", test_before_buffers);
    test_add_each_link("/bad-queues/beyond-one-table", test_beyond_one_table);
    test_add_each_link("/bad-queues/memory-gone", test_queue_memory_gone);
    test_add_each_link("/bad-queues/shared/random", test_shared_queues);
    test_add_each_link("/bad-queues/shared/memory-gone",
                       test_shared_memory_gone);
    test_add_each_link("/bad-queues/shared/destroyed", test_shared_destroyed);
    return g_test_run();
}
