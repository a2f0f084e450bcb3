/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a QP and of what it uses: what becomes of work when a QP goes to
 * another state, ends and is made anew, or loses its memory; and the events of
 * its life.
 */
#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define RECV 0x1000u /* the first receive */

/* ERR: what is in both queues, and what is posted later, is flushed. */
static void test_flush(void)
{
    Bed *bed;
    SendWr wr[10];
    Sge sge[10];
    Wc wc;

    bed = bed_new_rc(501, NULL);
    bed_post_recvs_on(bed, 0, RECV, 12, 4096);
    for (unsigned i = 0; i < 10; i++) {
        wr[i] = pair_send(bed->pair, 0, SEND, i, &sge[i], 0, 3000, 0);
        wr[i].flags = i % 3 ? 0 : SEND_SIGNALED;
    }
    g_assert_true(qp_post_send(bed->qps[0], wr, 7));
    lab_run(bed->lab); /* the peer is not ready */
    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    for (unsigned i = 0, sends = 0, recvs = 0; i < 19; i++) {
        g_assert_true(cq_wait(bed->cqs[0], &wc, PAIR_PATIENCE));
        g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
        if (wc.is_send) {
            g_assert_cmpuint(wc.wr_id, ==, sends++);
        } else {
            g_assert_cmpuint(wc.wr_id, ==, RECV + recvs++);
        }
    }
    cq_expect_none(bed->cqs[0]);
    g_assert_true(qp_post_send(bed->qps[0], wr + 7, 3));
    cq_expect_flushed(bed->cqs[0], 7, 3);
    bed_post_recvs_on(bed, 0, RECV, 3, 4096);
    cq_expect_flushed(bed->cqs[0], RECV, 3);
    cq_expect_none(bed->cqs[0]);
    /* ERR again is no error and flushes nothing twice. */
    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    cq_expect_none(bed->cqs[0]);
    g_assert_cmphex(qp_to_err(bed->qps[1]), ==, 0);
    bed_revive(bed);
    bed_free(bed);
}

/* From INIT: only receives can be there. */
static void test_flush_from_init(void)
{
    Bed *bed;
    QpAttr attr;

    bed = bed_new_rc(502, NULL);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(bed->qps[0], &attr), ==, 0);
    bed_post_recvs_on(bed, 0, RECV, 5, 4096);
    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    cq_expect_flushed(bed->cqs[0], RECV, 5);
    bed_revive(bed);
    bed_free(bed);
}

static void post_big(Bed *bed, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        SendWr wr;
        Sge sge;

        wr = pair_send(bed->pair, 0, i & 1 ? READ : WRITE, i, &sge, 0, 60000,
                       0);
        g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    }
}

/* RST with packets of the old life everywhere; the new life sees none. */
static void test_reset_with_work(void)
{
    for (unsigned steps = 0; steps < 120; steps += 15) {
        Bed *bed;

        bed = bed_new_rc(503 + steps, NULL);
        post_big(bed, 10);
        for (unsigned i = 0; i < steps; i++) {
            lab_step(bed->lab);
        }
        bed_revive(bed);
        cq_expect_none(bed->cqs[0]);
        cq_expect_none(bed->cqs[1]);
        bed_free(bed);
    }
}

/* The number of a QP destroyed at work is used again at once. */
static void test_reuse_number(void)
{
    for (unsigned steps = 0; steps < 120; steps += 15) {
        Bed *bed;
        QpAttr attr;

        bed = bed_new_rc(650 + steps, NULL);
        bed_post_recvs_on(bed, 1, RECV, 3, 4096);
        post_big(bed, 10);
        for (unsigned i = 0; i < steps; i++) {
            lab_step(bed->lab);
        }
        for (unsigned i = 0; i < 2; i++) {
            uint32_t qpn = bed->qps[i]->qpn;
            QpConfig config;

            qp_destroy(bed->qps[i]);
            qp_config_init(&config, bed->pair->pd[i], bed->cqs[i]);
            bed->qps[i] = qp_new_number(bed->drv[i], &config, qpn);
        }
        qp_attr_init(&attr);
        attr.sq_psn = attr.rq_psn = 0xabcdef;
        qp_connect(bed->qps[0], bed->qps[1], &attr);
        pair_check_works(bed->pair, bed->qps, 0);
        pair_check_works(bed->pair, bed->qps, 1);
        cq_expect_none(bed->cqs[0]);
        cq_expect_none(bed->cqs[1]);
        bed_free(bed);
    }
}

/* A doorbell of another process's UAR page does nothing and is counted. */
static void test_foreign_doorbell(void)
{
    Bed *bed;
    uint32_t low, high;
    SendWr wr;
    Sge sge;
    Wc wc;

    bed = bed_new_rc(504, NULL);
    wr = pair_send(bed->pair, 0, WRITE, 1, &sge, 0, 100, 0);
    g_assert_true(qp_write_send(bed->qps[0], &wr, 1, &low, &high));
    host_uar_write64(&bed->lab->host[0], 3 * RDMA_HCA_UAR_PAGE_SIZE,
                     (uint64_t)high << 32 | low);
    cq_expect_none(bed->cqs[0]);
    bed_counted(bed, 0, "send_db_bad_uar", 1);
    qp_ring(bed->qps[0], low, high);
    cq_expect(bed->cqs[0], &wc, 1, 0);
    bed_free(bed);
}

/* A region goes away under a transfer: an error, or its whole data. */
static void test_deregister_in_flight(void)
{
    for (unsigned steps = 5; steps < 100; steps += 10) {
        Bed *bed;
        Mr *mr;
        SendWr wr;
        Sge sge;
        Wc wc;

        bed = bed_new_rc(700 + steps, NULL);
        mr = bed->pair->mr[1];
        wr = pair_send(bed->pair, 0, WRITE, 1, &sge, 0, 60000, 0);
        g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
        for (unsigned i = 0; i < steps; i++) {
            lab_step(bed->lab);
        }
        g_assert_cmphex(mr_deregister(mr), ==, RDMA_HCA_STAT_OK);
        bed->pair->mr[1] = mr_new(bed->drv[1], mr->pd, mr->va, mr->len,
                                  ACCESS_ALL);
        g_assert_true(cq_wait(bed->cqs[0], &wc, PAIR_PATIENCE));
        g_assert_true(wc.syndrome == 0 ||
                      wc.syndrome == RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
        bed_revive(bed);
        bed_free(bed);
    }
}

/* Drain: nothing new is sent, what is sent ends, SQ_DRAINED comes once. */
static void test_drain(void)
{
    Bed *bed;
    struct rdma_hca_qpc qpc = { 0 };
    struct rdma_hca_eqe eqe;
    unsigned done = 0;
    Wc wc;

    bed = bed_new_rc(505, NULL);
    post_big(bed, 10);
    for (unsigned i = 0; i < 30; i++) {
        lab_step(bed->lab);
    }
    g_assert_cmphex(driver_cmd(bed->drv[0], RDMA_HCA_CMD_RTS2SQD_QPEE, 0,
                               bed->qps[0]->qpn | RDMA_HCA_RTS2SQD_EVENT,
                               RDMA_HCA_MODIFY_NO_INBOX, 0, NULL),
                    ==, 0);
    lab_sleep(bed->lab, NS_PER_S);
    g_assert_true(driver_event(bed->drv[0], RDMA_HCA_EVENT_SQ_DRAINED, &eqe));
    g_assert_cmpuint(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qps[0]->qpn);
    g_assert_cmpuint(
        driver_count_events(bed->drv[0], RDMA_HCA_EVENT_SQ_DRAINED), ==, 0);
    while (cq_poll(bed->cqs[0], &wc)) {
        g_assert_cmpuint(wc.syndrome, ==, 0);
        g_assert_cmpuint(wc.wr_id, ==, done++);
    }
    g_assert_cmpuint(done, <, 10);
    qpc.opt_param_mask = GUINT32_TO_BE(RDMA_HCA_QP_ATTR_STATE);
    qpc.flags = GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_QPC_STATE, RDMA_HCA_QP_STATE_RTS));
    g_assert_cmphex(driver_cmd_in(bed->drv[0], RDMA_HCA_CMD_SQD2RTS_QPEE, &qpc,
                                  sizeof(qpc), bed->qps[0]->qpn, 0),
                    ==, 0);
    for (; done < 10; done++) {
        cq_expect(bed->cqs[0], &wc, done, 0);
    }
    bed_free(bed);
}

/* First packet from the peer in RTR: communication established, once. */
static void test_comm_established(void)
{
    Pair *pair = pair_new(506, 65536);
    struct rdma_hca_eqe eqe;
    QpConfig config;
    QpAttr attr;
    Qp *qp[2];
    SendWr wr;
    Sge sge;
    Wc wc;

    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, pair->pd[i], pair->cq[i]);
        qp[i] = qp_new(pair->drv[i], &config);
    }
    for (unsigned i = 0; i < 2; i++) {
        qp_attr_init(&attr);
        qp_attr_to(&attr, pair->drv[i], pair->drv[!i]);
        attr.dest_qpn = qp[!i]->qpn;
        g_assert_cmphex(qp_to_init(qp[i], &attr), ==, 0);
        g_assert_cmphex(qp_to_rtr(qp[i], &attr), ==, 0);
    }
    g_assert_cmphex(qp_to_rts(qp[0], &attr), ==, 0);
    for (unsigned i = 0; i < 2; i++) {
        pair_post_recv(pair, 1, qp[1], i, 0, 100);
        wr = pair_send(pair, 0, SEND, i, &sge, 0, 100, 0);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[1], &wc, i, 0);
        cq_expect(pair->cq[0], &wc, i, 0);
    }
    g_assert_true(driver_event(pair->drv[1], RDMA_HCA_EVENT_COMM_EST, &eqe));
    g_assert_cmpuint(GUINT32_FROM_LE(eqe.qp.qpn), ==, qp[1]->qpn);
    g_assert_cmpuint(driver_count_events(pair->drv[1], RDMA_HCA_EVENT_COMM_EST),
                     ==, 0);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/qp-life/flush", test_flush);
    test_add_each_link("/qp-life/flush-from-init", test_flush_from_init);
    test_add_each_link("/qp-life/reset-with-work", test_reset_with_work);
    test_add_each_link("/qp-life/reuse-number", test_reuse_number);
    test_add_each_link("/qp-life/foreign-doorbell", test_foreign_doorbell);
    test_add_each_link("/qp-life/deregister-in-flight",
                       test_deregister_in_flight);
    test_add_each_link("/qp-life/drain", test_drain);
    test_add_each_link("/qp-life/comm-established", test_comm_established);
    return g_test_run();
}
