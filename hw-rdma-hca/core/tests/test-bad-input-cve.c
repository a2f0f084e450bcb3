/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The classes of fault for which QEMU's earlier RDMA device (pvrdma) had CVEs,
 * each tried on a whole card. The sanitizers see what is read or written out
 * of bounds, and at the end what has leaked. Classes that need the PCI device,
 * or have a side of it, are in its qtest as well.
 */
#include <string.h>

#include "lib-inside.h"
#include "lib-scene.h"

#define SPARE_QPN 200
#define SPARE_CQN 200
#define SPARE_EQN 7
#define SPARE_MPT 1000
#define SPARE_MTT 16000

/* What the card holds for its guest. */
typedef struct Live {
    HcaCxtLive cxt;
    uint32_t mpts;
} Live;

static Live live(const Scene *s)
{
    const Hca *hca = s->host->hca;

    return (Live) { *hca_cxt_live(hca->cm), hca_v2p_live_mpts(hca->v2p) };
}

static void expect_live(const Scene *s, const Live *was)
{
    Live now = live(s);

    g_assert_cmpuint(now.cxt.qps, ==, was->cxt.qps);
    g_assert_cmpuint(now.cxt.cqs, ==, was->cxt.cqs);
    g_assert_cmpuint(now.cxt.eqs, ==, was->cxt.eqs);
    g_assert_cmpuint(now.mpts, ==, was->mpts);
}

static struct rdma_hca_mpt make_mpt(const Scene *s, uint64_t start,
                                    uint64_t length, uint32_t flags)
{
    return (struct rdma_hca_mpt) {
        .flags = GUINT32_TO_BE(RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO |
                               ACCESS_ALL | flags),
        .key = GUINT32_TO_BE(SPARE_MPT),
        .pd = GUINT32_TO_BE(s->pair->pd[0]),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(start)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(start)),
        .length_h = GUINT32_TO_BE(RDMA_HCA_HI32(length)),
        .length_l = GUINT32_TO_BE(RDMA_HCA_LO32(length)),
        .mtt_seg_l = GUINT32_TO_BE(SPARE_MTT),
    };
}

static uint8_t sw2hw_mpt(Scene *s, const struct rdma_hca_mpt *mpt)
{
    return scene_command_in(s, RDMA_HCA_CMD_SW2HW_MPT, mpt, sizeof(*mpt),
                            SPARE_MPT);
}

static uint8_t hw2sw_mpt(Scene *s)
{
    return scene_command(s, RDMA_HCA_CMD_HW2SW_MPT, 0, SPARE_MPT, 0);
}

static struct rdma_hca_eqc make_eqc(const Scene *s, unsigned log_size)
{
    return (struct rdma_hca_eqc) {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_EQC_TR |
            RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_ARMED)),
        .logsize = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_EQC_LOGSIZE, log_size)),
        .pd = GUINT32_TO_BE(s->pair->pd[0]),
        .lkey = GUINT32_TO_BE(s->pair->mr[0]->key),
    };
}

static struct rdma_hca_cqc make_cqc(const Scene *s, unsigned log_size)
{
    return (struct rdma_hca_cqc) {
        .flags = GUINT32_TO_BE(RDMA_HCA_CQC_TR),
        .logsize_usrpage = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_CQC_LOGSIZE, log_size) | CARD_UAR),
        .comp_eqn = GUINT32_TO_BE(s->drv->eq[EQ_COMP].eqn),
        .pd = GUINT32_TO_BE(s->pair->pd[0]),
        .lkey = GUINT32_TO_BE(s->pair->mr[0]->key),
    };
}

static struct rdma_hca_qpc make_qpc(const Scene *s, uint32_t sq_len,
                                    uint32_t rq_len)
{
    return (struct rdma_hca_qpc) {
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 5)),
        .usr_page = GUINT32_TO_BE(CARD_UAR),
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .pd = GUINT32_TO_BE(s->pair->pd[0]),
        .cqn_snd = GUINT32_TO_BE(s->pair->cq[0]->cqn),
        .cqn_rcv = GUINT32_TO_BE(s->pair->cq[0]->cqn),
        .snd_wqe_base_l = GUINT32_TO_BE(s->pair->mr[0]->key),
        .snd_wqe_len = GUINT32_TO_BE(sq_len),
        .rcv_wqe_base_l = GUINT32_TO_BE(s->pair->mr[0]->key),
        .rcv_wqe_len = GUINT32_TO_BE(rq_len),
    };
}

static uint8_t rst2init(Scene *s, const struct rdma_hca_qpc *qpc)
{
    return scene_command_in(s, RDMA_HCA_CMD_RST2INIT_QPEE, qpc, sizeof(*qpc),
                            SPARE_QPN);
}

static uint8_t to_rst(Scene *s, uint32_t qpn)
{
    return scene_command(s, RDMA_HCA_CMD_ERR2RST_QPEE, 0, qpn,
                         RDMA_HCA_MODIFY_NO_INBOX);
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

static void disconnect(Qp *qp[2])
{
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
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
 * CVE-2018-20123: what a device held was not given back when it was unplugged.
 * A card goes in the middle of everything: requests under way, responses to
 * send, events that wait for room, a command not begun.
 */
static void test_leak_on_unplug(void)
{
    for (unsigned round = 0; round < 30; round++) {
        Scene s;

        scene_init(&s, 2101 + round);
        for (unsigned side = 0; side < 2; side++) {
            for (unsigned i = 0; i < 8; i++) {
                SendWr wr;
                Sge sge;

                wr = pair_send(s.pair, side,
                               i & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                                     : RDMA_HCA_OPCODE_SEND,
                               i, &sge, 0, 8000, 8000);
                g_assert_true(qp_post_send(s.bystander[side], &wr, 1));
            }
            cq_arm(s.pair->cq[side], false);
        }
        for (unsigned i = 0; i < round * 4; i++) {
            lab_step(s.pair->lab);
        }
        host_bar0_write(s.host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                        RDMA_HCA_HCR_GO | RDMA_HCA_CMD_NOP);
        if (round & 1) {
            /* Power off and on: the card is there, what it held is not. */
            host_reset(s.host);
            expect_live(&s, &(Live) { { 0 }, 0 });
        }
        pair_free(s.pair);
    }
}

/*
 * A card that is reset or goes has let go of its guest's memory: who has it now
 * may not be who gave it.
 */
static void test_no_dma_on_reset(void)
{
    Scene s;

    scene_init(&s, 2140);
    for (unsigned by_register = 0; by_register < 2; by_register++) {
        host_clear_dirty(s.host);
        if (by_register) {
            scene_reset_card(&s);
        } else {
            host_reset(s.host);
        }
        for (guint i = 0; i < s.drv->icm_pages->len; i++) {
            g_assert_false(host_is_dirty(
                s.host, g_array_index(s.drv->icm_pages, uint64_t, i)));
        }
        scene_recover(&s);
    }
    scene_free(&s);
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
        disconnect(qp);
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
        disconnect(qp);
        scene_check(&s);
    }
    scene_free(&s);
}

/*
 * CVE-2018-20125: page counts of rings in CREATE_CQ and CREATE_QP were taken
 * as they came: 0 had the device follow a null pointer, a huge one had it
 * allocate without limit.
 */
static void test_page_counts(void)
{
    Scene s;
    Live was;

    scene_init(&s, 2151);
    was = live(&s);
    for (unsigned log = 0; log < 256; log++) {
        struct rdma_hca_cqc cqc = make_cqc(&s, log);
        struct rdma_hca_eqc eqc = make_eqc(&s, log);

        g_assert_cmphex(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_CQ, &cqc,
                                         sizeof(cqc), SPARE_CQN),
                        ==,
                        log <= HCA_MAX_LOG_CQ_SIZE ? RDMA_HCA_STAT_OK
                                                   : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_EQ, &eqc,
                                         sizeof(eqc), SPARE_EQN),
                        ==,
                        log <= HCA_MAX_LOG_EQ_SIZE ? RDMA_HCA_STAT_OK
                                                   : RDMA_HCA_STAT_BAD_PARAM);
        scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0);
        scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN, 0);
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t len = 1u << bit;
        struct rdma_hca_qpc qpc = make_qpc(&s, len, 0);

        g_assert_cmphex(rst2init(&s, &qpc), ==,
                        bit >= 6 && bit <= 6 + HCA_MAX_LOG_WQES
                            ? RDMA_HCA_STAT_OK
                            : RDMA_HCA_STAT_BAD_PARAM);
        EXPECT(to_rst(&s, SPARE_QPN), OK);
        qpc = make_qpc(&s, 0, len);
        g_assert_cmphex(rst2init(&s, &qpc), ==,
                        bit >= 5 && bit <= 5 + HCA_MAX_LOG_WQES
                            ? RDMA_HCA_STAT_OK
                            : RDMA_HCA_STAT_BAD_PARAM);
        EXPECT(to_rst(&s, SPARE_QPN), OK);
        qpc = make_qpc(&s, -len, -len);
        if (bit < 31) {
            EXPECT(rst2init(&s, &qpc), BAD_PARAM);
        }
    }
    expect_live(&s, &was);
    scene_free(&s);
}

/* Neither queue: a QP with nothing to post to, and doorbells for it. */
static void test_no_pages(void)
{
    struct rdma_hca_qpc qpc;
    QpAttr attr;
    QpConfig config;
    Scene s;
    Qp *qp;

    scene_init(&s, 2152);
    qpc = make_qpc(&s, 0, 0);
    EXPECT(rst2init(&s, &qpc), OK);
    EXPECT(to_rst(&s, SPARE_QPN), OK);
    qp_config_init(&config, s.pair->pd[0], s.pair->cq[0]);
    config.sq_entries = config.rq_entries = 0;
    qp = qp_new(s.drv, &config);
    qp_attr_init(&attr);
    attr.dlid = s.pair->lab->host[1].config.lid;
    attr.dest_qpn = SPARE_QPN;
    EXPECT(qp_to_init(qp, &attr), OK);
    EXPECT(qp_to_rtr(qp, &attr), OK);
    EXPECT(qp_to_rts(qp, &attr), OK);
    for (unsigned i = 0; i < 100; i++) {
        qp_ring(qp, i << 8 | RDMA_HCA_OPCODE_SEND,
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) | (i & 63));
    }
    lab_run(s.pair->lab);
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_ERR);
    qp_destroy(qp);
    scene_free(&s);
}

/*
 * CVE-2018-20126: CREATE_CQ and CREATE_QP did not give back what they had
 * made when a later step of theirs failed. Here each fails at each step.
 */
static void test_leak_on_error(void)
{
    Scene s;
    Live was;

    scene_init(&s, 2161);
    was = live(&s);
    /* The last step of all is the writing of the context: no page for it. */
    for (unsigned i = ICM_QPC; i <= ICM_EQC; i++) {
        const IcmTable *table = &s.drv->icm[i];
        unsigned npages = (table->size + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;

        EXPECT(scene_unmap_icm(&s, table->kind, table->base, npages), OK);
    }
    for (unsigned i = 0; i < 500; i++) {
        struct rdma_hca_mpt mpt = make_mpt(&s, 0, 4096, 0);
        struct rdma_hca_eqc eqc = make_eqc(&s, 4);
        struct rdma_hca_cqc cqc = make_cqc(&s, 4);
        struct rdma_hca_qpc qpc = make_qpc(&s, 4096, 4096);
        bool last = i & 1;

        if (!last) {
            mpt.page_size = GUINT32_TO_BE(20);
            EXPECT(sw2hw_mpt(&s, &mpt), BAD_PARAM);
            eqc.msix_vector = GUINT32_TO_BE(NUM_VECTORS);
            cqc.comp_eqn = GUINT32_TO_BE(SPARE_EQN);
            qpc.rq_db_l = GUINT32_TO_BE(1);
        }
        g_assert_cmphex(
            scene_command_in(&s, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc),
                             SPARE_EQN),
            ==, last ? RDMA_HCA_STAT_BAD_SEG_PARAM : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(
            scene_command_in(&s, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc),
                             SPARE_CQN),
            ==, last ? RDMA_HCA_STAT_BAD_SEG_PARAM : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(rst2init(&s, &qpc), ==,
                        last ? RDMA_HCA_STAT_BAD_SEG_PARAM
                             : RDMA_HCA_STAT_BAD_PARAM);
    }
    expect_live(&s, &was);
    /* MAP_ICM that fails with its last entry; INIT_HCA with its last table. */
    for (unsigned n = 2; n <= RDMA_HCA_ICM_MAX_ENTRIES; n += 6) {
        g_autofree struct rdma_hca_icm_entry *entry = g_malloc0(
            RDMA_HCA_MAILBOX_SIZE);

        for (unsigned i = 0; i < n; i++) {
            entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
                .virt_l = GUINT32_TO_BE(0x80000000 + (i % (n - 1)) * 0x4000),
                .page_l = GUINT32_TO_BE(0x100000 | 4),
            };
        }
        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry,
                             RDMA_HCA_MAILBOX_SIZE, n, 1 + n / 6 % 2),
               BAD_PARAM);
    }
    scene_check(&s);
    scene_reset_card(&s);
    for (unsigned i = 0; i < 100; i++) {
        struct rdma_hca_init_hca init = {
            .eqc_base_h = GUINT32_TO_BE(i & 1),
            .eqc_base_l = GUINT32_TO_BE(i & 1 ? 0 : LOG_EQS + 1),
        };

        g_assert_cmphex(
            scene_command_in(&s, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0),
            ==, i & 1 ? RDMA_HCA_STAT_BAD_PARAM : RDMA_HCA_STAT_EXCEED_LIM);
    }
    scene_recover(&s);
    scene_free(&s);
}

/*
 * CVE-2018-20191: the doorbell pages could be written only, and a read of one
 * called a function that was not there. Reads of BAR 2 end in the PCI device
 * (its qtest); here it is BAR 0, in any state.
 */
static void test_register_read(void)
{
    Scene s;

    scene_init(&s, 2171);
    for (unsigned state = 0; state < 2; state++) {
        for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
            uint32_t value = host_bar0_read(s.host, at);

            if (at < RDMA_HCA_HCR || at >= RDMA_HCA_HCR + RDMA_HCA_HCR_SIZE) {
                g_assert_cmphex(value, ==, 0);
            }
        }
        scene_check(&s);
        if (!state) {
            scene_recover(&s);
        }
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
            disconnect(qp);
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
        disconnect(qp);
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
        struct rdma_hca_cqc cqc = make_cqc(&s, 2);
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

/*
 * CVE-2021-3582: the pages of a region were moved together by a length that
 * was not checked against the number of pages given. Here a region ends where
 * its length says, whatever lies behind it in the table.
 */
static void test_remap_length(void)
{
    struct rdma_hca_mtt_mailbox *box = g_malloc0(RDMA_HCA_MAILBOX_SIZE);
    struct rdma_hca_mpt mpt;
    uint64_t page[3];
    Scene s;
    Wc wc;

    scene_init(&s, 2191);
    box->start_index_l = GUINT32_TO_BE(SPARE_MTT);
    for (unsigned i = 0; i < 3; i++) {
        page[i] = host_alloc(s.host, 1);
        host_fill(s.host, page[i], 0x11, HOST_PAGE_SIZE);
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
            RDMA_HCA_HI32(page[i]));
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
            RDMA_HCA_LO32(page[i]));
    }
    EXPECT(scene_command_in(&s, RDMA_HCA_CMD_WRITE_MTT, box,
                            RDMA_HCA_MAILBOX_SIZE, 3),
           OK);
    g_free(box);
    /* Of the three pages behind each other it has the first, and a part. */
    for (uint64_t len = 4095; len <= 4098; len++) {
        mpt = make_mpt(&s, 0x10000, len, 0);
        EXPECT(sw2hw_mpt(&s, &mpt), OK);
        for (uint32_t more = 0; more < 2; more++) {
            uint8_t *data = pair_data(s.pair, len + more);
            uint8_t after[HOST_PAGE_SIZE];
            SendWr wr;
            Qp *qp[2];
            Sge sge;

            pair_connect(s.pair, NULL, qp);
            mr_write(s.pair->mr[1], 0, data, len + more);
            wr = pair_send(s.pair, 1, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0,
                           len + more, 0);
            wr.raddr = 0x10000;
            wr.rkey = SPARE_MPT;
            g_assert_true(qp_post_send(qp[1], &wr, 1));
            cq_expect(s.pair->cq[1], &wc, 1,
                      more ? RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR : 0);
            disconnect(qp);
            host_read(s.host, page[1], after, sizeof(after));
            for (unsigned at = len > 4096 ? len - 4096 : 0; at < sizeof(after);
                 at++) {
                g_assert_cmphex(after[at], ==, 0x11);
            }
            g_free(data);
        }
        EXPECT(hw2sw_mpt(&s), OK);
    }
    scene_free(&s);
}

/* UNMAP_ICM of more or less than was mapped with one command. */
static void test_unmap_length(void)
{
    const uint64_t far = UINT64_C(0x80000000);
    Scene s;

    scene_init(&s, 2192);
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        uint64_t bus = host_alloc(s.host, 8);

        EXPECT(scene_map_icm(&s, kind, far, bus, 8), OK);
        EXPECT(scene_unmap_icm(&s, kind, far, 9), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far - HOST_PAGE_SIZE, 9), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far, UINT32_MAX), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far, 0), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far + 1, 1), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far + 3 * HOST_PAGE_SIZE, 2), OK);
        EXPECT(scene_unmap_icm(&s, kind, far, 8), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far, 3), OK);
        EXPECT(scene_unmap_icm(&s, kind, far + 5 * HOST_PAGE_SIZE, 3), OK);
        EXPECT(scene_unmap_icm(&s, kind, far, 1), BAD_PARAM);
    }
    scene_free(&s);
}

/*
 * CVE-2021-3607: a number of pages from the guest was made a size by a product
 * that could overflow, so that what was allocated was too small for what was
 * then done. Here are products and sums of all kinds, at their ends.
 */
static void test_size_overflow(void)
{
    static const struct {
        uint64_t start, length;
        uint32_t flags;
        bool good;
    } regions[] = {
        { 0, UINT64_MAX, RDMA_HCA_MPT_PHYSICAL, true },
        { 1, UINT64_MAX, RDMA_HCA_MPT_PHYSICAL, true },
        { 2, UINT64_MAX, RDMA_HCA_MPT_PHYSICAL, false },
        { UINT64_MAX, 1, RDMA_HCA_MPT_PHYSICAL, true },
        { UINT64_MAX, 2, RDMA_HCA_MPT_PHYSICAL, false },
        { UINT64_MAX - 4095, 4096, 0, true },
        { UINT64_MAX - 4095, 4097, 0, false },
        { UINT64_C(1) << 63, UINT64_C(1) << 63, 0, false },
        { 0xfff, UINT64_MAX, 0, false },
        { 0, 0, 0, true },
    };
    Scene s;

    scene_init(&s, 2201);
    for (unsigned i = 0; i < G_N_ELEMENTS(regions); i++) {
        struct rdma_hca_mpt mpt = make_mpt(&s, regions[i].start,
                                           regions[i].length, regions[i].flags);

        g_assert_cmphex(sw2hw_mpt(&s, &mpt), ==,
                        regions[i].good ? RDMA_HCA_STAT_OK
                                        : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(hw2sw_mpt(&s), ==,
                        regions[i].good ? RDMA_HCA_STAT_OK
                                        : RDMA_HCA_STAT_BAD_RES_STATE);
    }
    /* ICM: an address and a number of pages. */
    EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0xfffff000, 0x100000, 2),
           BAD_PARAM);
    EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, UINT64_C(0xfffffffffffff000),
                         0x100000, 2),
           BAD_PARAM);
    EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0x80000000,
                         UINT64_C(0xfffffffffffff000), 2),
           BAD_PARAM);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0xfffff000, UINT32_MAX),
           BAD_PARAM);
    /* INIT_HCA: every number of entries as a power of two. */
    scene_reset_card(&s);
    for (unsigned log = 0; log < 256; log++) {
        struct rdma_hca_init_hca init = { 0 };
        __be32 *low[] = { &init.qpc_base_l, &init.cqc_base_l, &init.eqc_base_l,
                          &init.mpt_base_l };
        const unsigned most[] = { LOG_QPS, LOG_CQS, LOG_EQS, LOG_MPTS };

        for (unsigned i = 0; i < G_N_ELEMENTS(low); i++) {
            *low[i] = GUINT32_TO_BE(log);
            g_assert_cmphex(scene_command_in(&s, RDMA_HCA_CMD_INIT_HCA, &init,
                                             sizeof(init), 0),
                            ==,
                            log <= most[i] ? RDMA_HCA_STAT_OK
                                           : RDMA_HCA_STAT_EXCEED_LIM);
            if (log <= most[i]) {
                EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), OK);
            }
            *low[i] = 0;
        }
    }
    scene_recover(&s);
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
            disconnect(qp);
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
        disconnect(qp);
    }
    scene_free(&s);
}

/*
 * CVE-2021-3608: when only some pages of a ring could be mapped, the error
 * path unmapped all of them, those never mapped too. Here is everything that
 * takes back, without that which gives.
 */
static void test_never_mapped(void)
{
    Scene s;
    Live was;

    scene_init(&s, 2211);
    was = live(&s);
    for (unsigned twice = 0; twice < 2; twice++) {
        EXPECT(hw2sw_mpt(&s), BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_RESIZE_CQ, s.drv->mbox_in,
                             SPARE_CQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_MAP_EQ, UINT64_MAX,
                             RDMA_HCA_MAP_EQ_UNMAP | SPARE_EQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_2ERR_QPEE, 0, SPARE_QPN,
                             RDMA_HCA_MODIFY_NO_INBOX),
               BAD_QP_STATE);
        EXPECT(to_rst(&s, SPARE_QPN), OK); /* RST to RST is legal */
        EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_CXT, 0x80000000, 1), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0x80000000, 1), BAD_PARAM);
    }
    expect_live(&s, &was);
    scene_check(&s);
    /* What exists, taken back twice; what is in use, not at all. */
    {
        struct rdma_hca_mpt mpt = make_mpt(&s, 0, 4096, 0);
        Cq *cq = cq_new(s.drv, 4, CARD_UAR);
        uint32_t cqn = cq->cqn;

        EXPECT(sw2hw_mpt(&s, &mpt), OK);
        EXPECT(sw2hw_mpt(&s, &mpt), BAD_RESOURCE);
        EXPECT(hw2sw_mpt(&s), OK);
        EXPECT(hw2sw_mpt(&s), BAD_RES_STATE);
        EXPECT(cq_destroy(cq), OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, cqn, 0),
               BAD_RES_STATE);
        EXPECT(
            scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, s.pair->cq[0]->cqn, 0),
            RESOURCE_BUSY);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0,
                             s.drv->eq[EQ_COMP].eqn, 0),
               RESOURCE_BUSY);
    }
    expect_live(&s, &was);
    scene_check(&s);
    scene_reset_card(&s);
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), BAD_SYS_STATE);
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0), BAD_SYS_STATE);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_CXT, 0, 1), BAD_PARAM);
    scene_recover(&s);
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
    HcaCxtCounters *cxt;
    Scene s;
    Wc wc;

    scene_init(&s, 2231);
    cxt = hca_cxt_counters(s.host->hca->cm);
    /* A CQ of 2^22 entries in a region of 64. */
    {
        Mr *mr = mr_new(s.drv, s.drv->kernel_pd, 0x40000,
                        64 * RDMA_HCA_CQE_SIZE, RDMA_HCA_ACCESS_LOCAL_WRITE);
        struct rdma_hca_cqc cqc = make_cqc(&s, HCA_MAX_LOG_CQ_SIZE);
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
        g_assert_cmpuint(cxt->cq_overruns, ==, 0);
        EXPECT(to_rst(&s, qp[0]->qpn), OK);
        qp[0]->send_cq = qp[0]->recv_cq = s.pair->cq[0];
        disconnect(qp);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0), OK);
        EXPECT(mr_deregister(mr), OK);
        scene_check(&s);
    }
    /* An EQ of 2^20 entries in a region of 4. */
    {
        Mr *mr = mr_new(s.drv, s.pair->pd[0], 0x50000, 4 * RDMA_HCA_EQE_SIZE,
                        RDMA_HCA_ACCESS_LOCAL_WRITE);
        struct rdma_hca_eqc eqc = make_eqc(&s, HCA_MAX_LOG_EQ_SIZE);
        uint64_t mask = UINT64_C(1) << RDMA_HCA_EVENT_CMD;
        uint64_t lost = cxt->events_lost;

        eqc.lkey = GUINT32_TO_BE(mr->key);
        EXPECT(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc),
                                SPARE_EQN),
               OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_MAP_EQ, mask, SPARE_EQN, 0), OK);
        for (unsigned i = 0; i < 6; i++) {
            g_assert_cmpuint(cxt->events_lost, ==, lost + (i > 4));
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
            struct rdma_hca_mpt mpt = make_mpt(&s, ring->mr->va,
                                               4u << ring->log_entry, 0);

            if (!i) {
                EXPECT(to_rst(&s, qp[0]->qpn), OK);
                EXPECT(to_rst(&s, SPARE_QPN), OK);
                mpt.mtt_seg_l = GUINT32_TO_BE(ring->mr->mtt);
                EXPECT(sw2hw_mpt(&s, &mpt), OK);
            }
        }
        {
            Ring *ring = receive ? &qp[0]->rq : &qp[0]->sq;
            uint32_t key = ring->mr->key;
            QpAttr attr;

            /* 64 slots by the context, 4 by the region. */
            ring->mr->key = SPARE_MPT;
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
        disconnect(qp);
        EXPECT(hw2sw_mpt(&s), OK);
        scene_check(&s);
    }
    scene_free(&s);
}

/* And mailboxes that say that they are longer than a mailbox is. */
static void test_beyond_one_mailbox(void)
{
    static const uint32_t counts[] = {
        257, 258, 512, 4096, 65536, 1u << 28, 1u << 31, UINT32_MAX,
    };
    g_autofree struct rdma_hca_icm_entry *entry = g_malloc0(
        RDMA_HCA_MAILBOX_SIZE);
    const uint64_t far = UINT64_C(0x80000000);
    Scene s;

    scene_init(&s, 2232);
    for (unsigned i = 0; i < RDMA_HCA_ICM_MAX_ENTRIES; i++) {
        entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
            .virt_l = GUINT32_TO_BE(far + i * HOST_PAGE_SIZE),
            .page_l = GUINT32_TO_BE(0x100000 | 1),
        };
    }
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
            EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry,
                                 RDMA_HCA_MAILBOX_SIZE, counts[i], kind),
                   BAD_PARAM);
        }
        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry,
                             RDMA_HCA_MAILBOX_SIZE, RDMA_HCA_ICM_MAX_ENTRIES,
                             kind),
               OK);
        EXPECT(scene_unmap_icm(&s, kind, far, RDMA_HCA_ICM_MAX_ENTRIES), OK);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        uint32_t n = counts[i] < 512 ? 509 : counts[i];

        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_WRITE_MTT, entry,
                             RDMA_HCA_MAILBOX_SIZE, n, 0),
               BAD_PARAM);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, 0, n, 0), BAD_PARAM);
    }
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) lab_add_test("/bad-input/cve/" path, test)
    ADD("leak-on-unplug", test_leak_on_unplug);
    ADD("leak-on-unplug/no-dma", test_no_dma_on_reset);
    ADD("sge-count/send", test_sge_count);
    ADD("sge-count/receive", test_sge_count_receive);
    ADD("page-counts", test_page_counts);
    ADD("page-counts/none", test_no_pages);
    ADD("leak-on-error-path", test_leak_on_error);
    ADD("register-read", test_register_read);
    ADD("corrupt-index/receive", test_index_receive);
    ADD("corrupt-index/send", test_index_send);
    ADD("corrupt-index/events", test_index_events);
    ADD("remap-length/region", test_remap_length);
    ADD("remap-length/icm", test_unmap_length);
    ADD("size-overflow/tables", test_size_overflow);
    ADD("size-overflow/lengths", test_length_overflow);
    ADD("never-mapped", test_never_mapped);
    ADD("before-buffers", test_before_buffers);
    ADD("beyond-one-table/rings", test_beyond_one_table);
    ADD("beyond-one-table/mailboxes", test_beyond_one_mailbox);
    return g_test_run();
}
