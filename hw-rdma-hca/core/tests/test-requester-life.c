/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What becomes of a requester's requests when its QP is flushed, drained,
 * left in SQE, and made anew (IBA 9.9.2).
 */
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)

/* The failing WQE first, then the others in the order of their posting. */
static void test_flush_order(void)
{
    Bed *bed = bed_new();

    bed_post_flags(bed, WRITE, 1, 100, 0);
    bed_post_flags(bed, READ, 2, 300, 0);
    bed_post_flags(bed, WRITE, 3, 1000, 0);
    bed_post_flags(bed, FETCH_ADD, 4, 8, 0);
    bed_post_flags(bed, SEND, 5, 100, SEND_FENCE); /* waits */
    bed_post_flags(bed, SEND, 6, 0, 0);            /* is not fetched */
    bed_post_bad(bed, 7);
    bed_forget_requests(bed);
    bed_ack(bed, PSN); /* 1: unsignalled */
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_expect_broken(bed, 2, SYNDROME(WR_FLUSH_ERR), 5);
    bed_free(bed);
}

/* In mid-message: the WQE in hand is flushed once. */
static void test_flush_in_hand(void)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].swpb_elements = 512;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    bed_post(bed, WRITE, 1, 60 * MTU);
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    g_assert_true(bed->hqp->send.wqe_valid);
    bed_nak(bed, PSN + 3, NAK(REMOTE_OP));
    bed_expect_broken(bed, 1, SYNDROME(REMOTE_OP_ERR), 1);
    bed_free(bed);
}

static unsigned count_drained(Bed *bed)
{
    bed_run(bed);
    return driver_count_events(bed->pair->drv[0], RDMA_HCA_EVENT_SQ_DRAINED);
}

static bool draining(Bed *bed)
{
    struct rdma_hca_qpc qpc;

    g_assert_cmphex(qp_query(bed->qp, &qpc), ==, 0);
    return GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_SQ_DRAINING;
}

/* SQD: what has begun ends, the event comes then, and only if asked for. */
static void test_drain(void)
{
    for (unsigned event = 0; event <= 1; event++) {
        Bed *bed = bed_new();

        bed_post(bed, WRITE, 1, 100);
        bed_post(bed, READ, 2, 300);
        bed_forget_requests(bed);
        g_assert_cmphex(qp_to_sqd(bed->qp, event), ==, 0);
        bed_post(bed, WRITE, 3, 100);
        bed_expect_quiet(bed);
        bed_ack(bed, PSN);
        bed_expect_done(bed, 1);
        bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
        g_assert_cmpuint(count_drained(bed), ==, 0);
        g_assert_true(draining(bed));
        /* What is lost is still sent again. */
        lab_sleep(bed->pair->lab, BED_TIMEOUT_NS + NS_PER_MS);
        bed_expect_read(bed, PSN + 2, MTU, 300 - MTU);
        bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, MTU, 300 - MTU);
        bed_expect_done(bed, 2);
        g_assert_cmpuint(count_drained(bed), ==, event);
        g_assert_false(draining(bed));
        bed_expect_quiet(bed);
        g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
        bed_run(bed);
        bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 3, 3 * 4096, 100);
        bed_ack(bed, PSN + 3);
        bed_expect_done(bed, 3);
        g_assert_cmpuint(count_drained(bed), ==, 0);
        bed_free(bed);
    }
}

/* Nothing is outstanding: drained at once. */
static void test_drain_idle(void)
{
    Bed *bed = bed_new();

    g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
    g_assert_cmpuint(count_drained(bed), ==, 1);
    g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
    g_assert_cmpuint(count_drained(bed), ==, 1);
    bed_free(bed);
}

/* A message that has begun is sent to its end, of UC too. */
static void test_drain_in_message(void)
{
    static const uint8_t service[] = { RDMA_HCA_QP_ST_RC, RDMA_HCA_QP_ST_UC };

    for (unsigned i = 0; i < G_N_ELEMENTS(service); i++) {
        const unsigned packets = BED_AREA / MTU;
        Bed *bed = bed_new_service(service[i]);
        Sge sge;
        SendWr wr = bed_wr(bed, &sge, WRITE, 0, BED_AREA);

        g_assert_true(qp_post_send(bed->qp, &wr, 1));
        while (bed->heard.length < 3) {
            lab_step(bed->pair->lab);
        }
        g_assert_cmpuint(bed->heard.length, <, packets / 2);
        g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
        bed_post(bed, WRITE, 1, 1);
        for (unsigned acked = 0; acked < packets;) {
            bed_run(bed);
            acked = bed->heard.length;
            if (service[i] == RDMA_HCA_QP_ST_RC) {
                g_assert_cmpuint(count_drained(bed), ==, 0);
                bed_ack(bed, PSN + acked - 1);
            }
        }
        g_assert_cmpuint(bed->heard.length, ==, packets);
        bed_expect_done(bed, 0);
        bed_expect_none(bed);
        g_assert_cmpuint(count_drained(bed), ==, 1);
        g_assert_false(draining(bed));
        bed_forget_requests(bed);
        g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
        bed_expect_wc(bed, 1, SYNDROME(WR_FLUSH_ERR));
        bed_free(bed);
    }
}

/* What stands behind the bad one in the queue is flushed without delay. */
static void test_sqe(void)
{
    static const uint8_t service[] = { RDMA_HCA_QP_ST_UC, RDMA_HCA_QP_ST_UD };

    for (unsigned i = 0; i < G_N_ELEMENTS(service); i++) {
        Bed *bed = bed_new_service(service[i]);
        UdAddress ud = { .dlid = bed->peer.slid,
                         .dqpn = BED_PEER_QPN,
                         .qkey = BED_QKEY };
        SendWr wr[40];
        Sge sge[40];

        for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
            wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
            sge[n] = mr_sge(bed->mr, 0, 8);
            wr[n].flags = n == 1 ? SEND_SIGNALED : 0;
            wr[n].ud = service[i] == RDMA_HCA_QP_ST_UD ? &ud : NULL;
        }
        sge[2].lkey = 0xbad;
        g_assert_true(qp_post_send(bed->qp, wr, G_N_ELEMENTS(wr)));
        bed_run(bed);
        g_assert_cmpuint(bed_counter(bed, 0, "requester_wqes_flushed"), ==, 37);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
        bed_expect_done(bed, 1);
        bed_expect_wc(bed, 2, SYNDROME(LOCAL_PROT_ERR));
        for (unsigned n = 3; n < G_N_ELEMENTS(wr); n++) {
            bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
        }
        bed_expect_none(bed);
        bed_expect_state(bed, RDMA_HCA_QP_STATE_SQE);
        wr[0].wr_id = 100;
        g_assert_true(qp_post_send(bed->qp, wr, 1));
        bed_expect_wc(bed, 100, SYNDROME(WR_FLUSH_ERR));
        /* And back: the next PSN is the one that the bad one did not use. */
        g_assert_cmphex(qp_sqe_to_rts(bed->qp), ==, 0);
        wr[0].wr_id = 101;
        wr[0].flags = SEND_SIGNALED;
        g_assert_true(qp_post_send(bed->qp, wr, 1));
        bed_expect_done(bed, 101);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
        bed_free(bed);
    }
}

/* What was posted before the QP is taken back to RTS is flushed all the same. */
static void test_sqe_then_rts(void)
{
    enum {
        N = 50
    };
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UC);
    SendWr wr[N];
    Sge sge[N];
    Wc wc;

    for (unsigned n = 0; n < N; n++) {
        wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    sge[0].lkey = 0xbad;
    /* Half in a chain, half by doorbells. */
    g_assert_true(qp_post_send(bed->qp, wr, N / 2));
    for (unsigned n = N / 2; n < N; n++) {
        g_assert_true(qp_post_send(bed->qp, &wr[n], 1));
    }
    while (!cq_poll(bed->cq, &wc)) {
        lab_step(bed->pair->lab);
    }
    g_assert_cmphex(wc.syndrome, ==, SYNDROME(LOCAL_PROT_ERR));
    g_assert_cmphex(qp_sqe_to_rts(bed->qp), ==, 0);
    bed_post(bed, SEND, 7, 8);
    for (unsigned n = 1; n < N; n++) {
        bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
    }
    bed_expect_done(bed, 7);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_free(bed);
}

/* The flush ends where it has to, whatever the QP does meanwhile. */
static void test_sqe_then_sqd(void)
{
    enum {
        N = 50
    };
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UC);
    SendWr wr[N];
    Sge sge[N];

    for (unsigned n = 0; n < N; n++) {
        wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    sge[0].lkey = 0xbad;
    for (unsigned n = 0; n < N; n++) {
        g_assert_true(qp_post_send(bed->qp, &wr[n], 1));
    }
    while (bed->hqp->state != HCA_QP_SQE) {
        lab_step(bed->pair->lab);
    }
    g_assert_cmphex(qp_sqe_to_rts(bed->qp), ==, 0);
    g_assert_cmphex(qp_to_sqd(bed->qp, false), ==, 0);
    g_assert_true(bed->hqp->send.flushing);
    /* Behind what has to be flushed. */
    bed_post(bed, SEND, 7, 8);
    bed_expect_wc(bed, 0, SYNDROME(LOCAL_PROT_ERR));
    for (unsigned n = 1; n < N; n++) {
        bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
    }
    bed_expect_none(bed);
    g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    bed_expect_done(bed, 7);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_free(bed);
}

/* RC breaks at once, too: no WQE waits for a timer to be flushed. */
static void test_flush_at_once(void)
{
    Bed *bed = bed_new();
    SendWr wr[40];
    Sge sge[40];

    for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
        wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    sge[0].lkey = 0xbad;
    g_assert_true(qp_post_send(bed->qp, wr, G_N_ELEMENTS(wr)));
    bed_run(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wqes_flushed"), ==, 39);
    bed_expect_broken(bed, 0, SYNDROME(LOCAL_PROT_ERR), 39);
    bed_free(bed);
}

/* A QP in place of one that was destroyed: late responses are not for it. */
static void test_reuse_number(void)
{
    static const uint32_t psn[] = { PSN, PSN + 0x1000, 0x400000 };

    for (unsigned i = 0; i < G_N_ELEMENTS(psn); i++) {
        Bed *bed = bed_new();
        uint32_t qpn = bed->qp->qpn;
        QpConfig config;
        QpAttr attr;

        bed_post(bed, WRITE, 1, 100);
        bed_post(bed, READ, 2, 1000);
        bed_forget_requests(bed);
        bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
        qp_destroy(bed->qp);
        qp_config_init(&config, bed->pair->pd[0], bed->cq);
        bed->qp = qp_new_number(bed->pair->drv[0], &config, qpn);
        bed_ack(bed, PSN);
        bed_expect_drops(bed, HCA_DROP_QPN, 1);
        bed_attr_init(&attr);
        attr.sq_psn = psn[i];
        attr.dlid = bed->peer.slid;
        attr.dest_qpn = BED_PEER_QPN;
        g_assert_cmphex(qp_to_init(bed->qp, &attr), ==, 0);
        g_assert_cmphex(qp_to_rtr(bed->qp, &attr), ==, 0);
        bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 0, MTU);
        bed_expect_drops(bed, HCA_DROP_QP_STATE, 1);
        g_assert_cmphex(qp_to_rts(bed->qp, &attr), ==, 0);
        bed->hqp = card_qp(bed->hca, qpn);
        bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 3, 0, MTU);
        bed_ack(bed, PSN);
        lab_sleep(bed->pair->lab, 10 * BED_TIMEOUT_NS);
        bed_expect_none(bed);
        bed_expect_quiet(bed);
        bed_expect_timer_off(bed);
        bed_post(bed, SEND, 7, 100);
        bed_expect_payload(bed, HCA_SEND_ONLY, psn[i], 7 * 4096, 100);
        bed_ack(bed, psn[i]);
        bed_expect_done(bed, 7);
        bed_free(bed);
    }
}

/* A Read waited for others when SQD took away the right to Reads. */
static void test_drain_no_reads(void)
{
    struct rdma_hca_qpc qpc = {
        .opt_param_mask = GUINT32_TO_BE(RDMA_HCA_QP_ATTR_MAX_QP_RD_ATOMIC),
    };
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, READ, 1, 8);
    bed_post(bed, READ, 2, 8);
    bed_post(bed, WRITE, 3, 8);
    bed_expect_read(bed, PSN, 0, 8);
    g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
    /* It drains still. */
    g_assert_cmphex(driver_cmd_in(bed->qp->drv, RDMA_HCA_CMD_SQD2SQD_QPEE, &qpc,
                                  sizeof(qpc), bed->qp->qpn, 0),
                    ==, RDMA_HCA_STAT_BAD_QP_STATE);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(count_drained(bed), ==, 1);
    g_assert_cmphex(driver_cmd_in(bed->qp->drv, RDMA_HCA_CMD_SQD2SQD_QPEE, &qpc,
                                  sizeof(qpc), bed->qp->qpn, 0),
                    ==, RDMA_HCA_STAT_OK);
    g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    bed_expect_broken(bed, 2, SYNDROME(LOCAL_QP_OP_ERR), 1);
    bed_free(bed);
}

/* What is in hand when the queue is drained is sent once, and its chain too. */
static void test_drain_in_hand(void)
{
    QpAttr attr;
    Bed *bed;
    SendWr wr[64];
    Sge sge[64];

    bed_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    /* As long a chain as the queue takes: no link may count twice. */
    for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
        wr[n] = bed_wr(bed, &sge[n], n < 2 ? READ : WRITE, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    g_assert_cmpuint(qp_send_room(bed->qp), ==, G_N_ELEMENTS(wr));
    g_assert_true(qp_post_send(bed->qp, wr, G_N_ELEMENTS(wr)));
    bed_run(bed);
    bed_expect_read(bed, PSN, 0, 8);
    for (unsigned n = 0; n < 3; n++) {
        g_assert_cmphex(qp_to_sqd(bed->qp, false), ==, 0);
        g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    }
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_read(bed, PSN + 1, 0, 8);
    for (unsigned n = 2; n < G_N_ELEMENTS(wr); n++) {
        bed_expect_request(bed, HCA_WRITE_ONLY, PSN + n);
    }
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 8);
    bed_ack(bed, PSN + G_N_ELEMENTS(wr) - 1);
    for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
        bed_expect_done(bed, n);
    }
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/life/flush-order", test_flush_order);
    test_add("/requester/life/flush-in-hand", test_flush_in_hand);
    test_add("/requester/life/flush-at-once", test_flush_at_once);
    test_add("/requester/life/drain", test_drain);
    test_add("/requester/life/drain-idle", test_drain_idle);
    test_add("/requester/life/drain-in-message", test_drain_in_message);
    test_add("/requester/life/drain-in-hand", test_drain_in_hand);
    test_add("/requester/life/drain-no-reads", test_drain_no_reads);
    test_add("/requester/life/sqe", test_sqe);
    test_add("/requester/life/sqe-then-rts", test_sqe_then_rts);
    test_add("/requester/life/sqe-then-sqd", test_sqe_then_sqd);
    test_add("/requester/life/reuse-number", test_reuse_number);
    return g_test_run();
}
