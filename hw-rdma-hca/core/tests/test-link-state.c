/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cable comes and goes: port states and events, LIDs, what becomes of
 * work when the peer is gone, and that everything can be connected again.
 */
#include "lib-pair.h"

enum {
    PORT_DOWN = 1,
    PORT_ACTIVE = 4
}; /* enum ibv_port_state */

/* Takes all port events; the subtype of the last one, 0: there was none. */
static unsigned last_port_event(Driver *drv, unsigned *count)
{
    struct rdma_hca_eqe eqe;
    unsigned last = 0;

    *count = 0;
    while (driver_event(drv, RDMA_HCA_EVENT_PORT_CHANGE, &eqe)) {
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.port.port), ==, 1);
        last = eqe.subtype;
        ++*count;
    }
    return last;
}

static void check_port_event(Pair *pair, unsigned subtype)
{
    unsigned n;

    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpuint(last_port_event(pair->drv[i], &n), ==, subtype);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpuint(driver_port_state(pair->drv[i]), ==,
                         subtype == RDMA_HCA_PORT_CHANGE_ACTIVE ? PORT_ACTIVE
                                                                : PORT_DOWN);
    }
}

static void test_port_events(void)
{
    Pair *pair = pair_new(51, 4096);
    uint64_t msix;
    unsigned n;

    last_port_event(pair->drv[0], &n);
    last_port_event(pair->drv[1], &n);
    for (unsigned i = 0; i < 3; i++) {
        msix = pair->lab->host[0].msix[EQ_ASYNC];
        lab_cable(pair->lab, false);
        lab_run(pair->lab);
        g_assert_cmpuint(pair->lab->host[0].msix[EQ_ASYNC], ==, msix + 1);
        check_port_event(pair, RDMA_HCA_PORT_CHANGE_DOWN);
        lab_cable(pair->lab, true);
        lab_run(pair->lab);
        g_assert_cmpuint(pair->lab->host[0].msix[EQ_ASYNC], ==, msix + 2);
        check_port_event(pair, RDMA_HCA_PORT_CHANGE_ACTIVE);
    }
    pair_free(pair);
}

/* The port belongs to INIT_IB: before it and after CLOSE_IB it is down. */
static void test_port_enable(void)
{
    Pair *pair = pair_new(52, 4096);
    unsigned n;

    last_port_event(pair->drv[0], &n);
    g_assert_cmphex(
        driver_cmd(pair->drv[0], RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL), ==,
        RDMA_HCA_STAT_OK);
    lab_run(pair->lab);
    g_assert_cmpuint(driver_port_state(pair->drv[0]), ==, PORT_DOWN);
    g_assert_cmphex(
        driver_cmd(pair->drv[0], RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL), ==,
        RDMA_HCA_STAT_OK);
    lab_run(pair->lab);
    g_assert_cmpuint(driver_port_state(pair->drv[0]), ==, PORT_ACTIVE);
    g_assert_cmpuint(last_port_event(pair->drv[0], &n), ==,
                     RDMA_HCA_PORT_CHANGE_ACTIVE);
    pair_free(pair);
}

/* The peer's port belongs to its INIT_IB: without it this link is down, too. */
static void test_peer_enable(void)
{
    static const uint16_t op[2] = { RDMA_HCA_CMD_CLOSE_IB,
                                    RDMA_HCA_CMD_INIT_IB };
    Pair *pair = pair_new(63, 4096);
    unsigned n;

    last_port_event(pair->drv[0], &n);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(driver_cmd(pair->drv[1], op[i], 0, 1, 0, 0, NULL), ==,
                        RDMA_HCA_STAT_OK);
        lab_run(pair->lab);
        g_assert_cmpuint(last_port_event(pair->drv[0], &n), ==,
                         i ? RDMA_HCA_PORT_CHANGE_ACTIVE
                           : RDMA_HCA_PORT_CHANGE_DOWN);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpuint(driver_port_state(pair->drv[0]), ==,
                         i ? PORT_ACTIVE : PORT_DOWN);
    }
    /* So short that both arrive at once. */
    pair->lab->capacity = 0;
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(driver_cmd(pair->drv[1], op[i], 0, 1, 0, 0, NULL), ==,
                        RDMA_HCA_STAT_OK);
    }
    g_assert_cmpuint(last_port_event(pair->drv[0], &n), ==, 0);
    pair->lab->capacity = 65536;
    hca_link_writable(pair->lab->host[1].hca);
    pair->lab->host[0].kicked = true;
    lab_run(pair->lab);
    g_assert_cmpuint(last_port_event(pair->drv[0], &n), ==,
                     RDMA_HCA_PORT_CHANGE_ACTIVE);
    g_assert_cmpuint(n, ==, 2);
    pair_free(pair);
}

/* The peer is reset: this side sees its link go down, and come up with it. */
static void test_peer_reset_events(void)
{
    Pair *pair = pair_new(64, 4096);
    unsigned n;

    for (unsigned i = 0; i < 3; i++) {
        last_port_event(pair->drv[0], &n);
        driver_free(pair->drv[1]);
        host_reset(&pair->lab->host[1]);
        lab_run(pair->lab);
        g_assert_cmpuint(last_port_event(pair->drv[0], &n), ==,
                         RDMA_HCA_PORT_CHANGE_DOWN);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpuint(driver_port_state(pair->drv[0]), ==, PORT_DOWN);
        pair->drv[1] = driver_new(&pair->lab->host[1]);
        pair->pd[1] = pd_new(pair->drv[1]);
        pair->cq[1] = cq_new(pair->drv[1], 8, 1);
        pair->mr[1] = mr_new(pair->drv[1], pair->pd[1], 0x10000, 65536,
                             ACCESS_ALL);
        lab_run(pair->lab);
        g_assert_cmpuint(last_port_event(pair->drv[0], &n), ==,
                         RDMA_HCA_PORT_CHANGE_ACTIVE);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpuint(driver_port_state(pair->drv[0]), ==, PORT_ACTIVE);
    }
    pair_free(pair);
}

/* A packet for a LID that is not the peer's own is dropped and counted. */
static void test_wrong_lid(void)
{
    Pair *pair = pair_new(53, 4096);
    QpConfig config;
    QpAttr attr;
    SendWr wr;
    Sge sge;
    Qp *qp;
    Wc wc;

    qp_config_init(&config, pair->pd[0], pair->cq[0]);
    qp = qp_new(pair->drv[0], &config);
    qp_attr_init(&attr);
    attr.dlid = 0x77;
    attr.dest_qpn = 0x40;
    attr.retry_cnt = 1;
    qp_bring_up(qp, &attr);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 100, 0);
    g_assert_true(qp_post_send(qp, &wr, 1));
    cq_expect(pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    g_assert_cmpuint(pair_drops(pair, 1, HCA_DROP_LID), ==, 2);
    pair_free(pair);
}

#define VANISH_WRS 20

static void post_writes(Pair *pair, Qp *qp, unsigned n, uint32_t len)
{
    for (unsigned i = 0; i < n; i++) {
        SendWr wr;
        Sge sge;

        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0, len, 0);
        /* Flushed requests complete whether they asked for it or not. */
        wr.flags = i & 1 ? SEND_SIGNALED : 0;
        g_assert_true(qp_post_send(qp, &wr, 1));
    }
}

/* From @first on: one error that says why, then flushed ones to the end. */
static void expect_death(Pair *pair, Qp *qp, unsigned first, unsigned end)
{
    Wc wc;

    cq_expect(pair->cq[0], &wc, first, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    for (unsigned i = first + 1; i < end; i++) {
        cq_expect(pair->cq[0], &wc, i, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
        g_assert_true(wc.is_send);
    }
    cq_expect_none(pair->cq[0]);
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_ERR);
}

static void reconnect(Pair *pair, Qp *qp[2])
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.sq_psn = pair_rand(pair, 0, 0x1000000);
    attr.rq_psn = pair_rand(pair, 0, 0x1000000);
    g_assert_cmphex(qp_to_rst(qp[0]), ==, 0);
    g_assert_cmphex(qp_to_rst(qp[1]), ==, 0);
    qp_connect(qp[0], qp[1], &attr);
    pair_check_works(pair, qp, 0);
    pair_check_works(pair, qp, 1);
}

/* Time until the first error, and what IBA 9.7.6.1.3 allows for it. */
static void check_patience(const QpAttr *attr, int64_t took)
{
    int64_t unit = INT64_C(4096) << attr->timeout;
    unsigned tries = attr->retry_cnt + 1;

    g_assert_cmpint(took, >=, tries * unit - unit);
    g_assert_cmpint(took, <=, tries * 4 * unit + NS_PER_S);
}

static void vanish(bool mid_message, uint8_t timeout, uint8_t retry_cnt)
{
    Pair *pair = pair_new(54 + timeout, 1024 * 1024);
    unsigned done = 0;
    int64_t before;
    QpAttr attr;
    Qp *qp[2];
    Wc wc;

    qp_attr_init(&attr);
    attr.timeout = timeout;
    attr.retry_cnt = retry_cnt;
    pair_connect(pair, &attr, qp);
    if (mid_message) {
        post_writes(pair, qp[0], VANISH_WRS, 300000);
        for (unsigned i = 0; i < 200; i++) {
            lab_step(pair->lab);
        }
        while (cq_poll(pair->cq[0], &wc)) {
            g_assert_cmpuint(wc.syndrome, ==, 0);
            done = wc.wr_id + 1;
        }
        g_assert_cmpuint(done, <, VANISH_WRS);
    }
    lab_cable(pair->lab, false);
    before = pair->lab->now;
    if (!mid_message) {
        post_writes(pair, qp[0], VANISH_WRS, 300000);
    }
    /* Those acknowledged before, then the first that was not. */
    do {
        g_assert_true(cq_wait(pair->cq[0], &wc, PAIR_PATIENCE));
    } while (wc.syndrome == 0);
    check_patience(&attr, pair->lab->now - before);
    g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    cq_expect_flushed(pair->cq[0], wc.wr_id + 1, VANISH_WRS - 1 - wc.wr_id);
    cq_expect_none(pair->cq[0]);
    g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_ERR);

    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    reconnect(pair, qp);
    pair_free(pair);
}

static void test_vanish_mid_message(void)
{
    vanish(true, 14, 7);
}

static void test_vanish_before(void)
{
    vanish(false, 10, 3);
}

static void test_vanish_no_retry(void)
{
    vanish(true, 12, 0);
}

/* Pulled out and put back before the patience ends: nothing is lost. */
static void test_short_interruption(void)
{
    Pair *pair = pair_new(57, 1024 * 1024);
    g_autofree uint8_t *data = pair_data(pair, 900000);
    g_autofree uint8_t *got = g_malloc(900000);
    Sge sge;
    SendWr wr;
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[0], 0, data, 900000);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 900000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    for (unsigned i = 0; i < 5; i++) {
        pair_wait_packets(pair, 1, 99);
        lab_cable(pair->lab, false);
        lab_sleep(pair->lab, 100 * NS_PER_MS);
        lab_cable(pair->lab, true);
    }
    cq_expect(pair->cq[0], &wc, 1, 0);
    mr_read(pair->mr[1], 0, got, 900000);
    g_assert_cmpmem(got, 900000, data, 900000);
    pair_free(pair);
}

/* A Read whose responses stop coming ends in the same way. */
static void test_vanish_read(void)
{
    Pair *pair = pair_new(58, 1024 * 1024);
    SendWr wr[3];
    Sge sge[3];
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < 3; i++) {
        wr[i] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_READ, i, &sge[i], 0,
                          1000000, 0);
    }
    g_assert_true(qp_post_send(qp[0], wr, 3));
    for (unsigned i = 0; i < 60; i++) {
        lab_step(pair->lab);
    }
    lab_cable(pair->lab, false);
    expect_death(pair, qp[0], 0, 3);
    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    reconnect(pair, qp);
    pair_free(pair);
}

/* A machine's driver comes up again, with a QP. */
static Qp *renew(Pair *pair, unsigned side)
{
    QpConfig config;

    pair->drv[side] = driver_new(&pair->lab->host[side]);
    pair->pd[side] = pd_new(pair->drv[side]);
    pair->cq[side] = cq_new(pair->drv[side], 8, 1);
    pair->mr[side] = mr_new(pair->drv[side], pair->pd[side], 0x10000, 65536,
                            ACCESS_ALL);
    qp_config_init(&config, pair->pd[side], pair->cq[side]);
    return qp_new(pair->drv[side], &config);
}

/* The peer's machine is reset while we send; its driver comes up again. */
static void test_peer_reset(void)
{
    Pair *pair = pair_new(59, 1024 * 1024);
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    post_writes(pair, qp[0], VANISH_WRS, 300000);
    for (unsigned i = 0; i < 150; i++) {
        lab_step(pair->lab);
    }
    driver_free(pair->drv[1]);
    host_reset(&pair->lab->host[1]);
    do {
        g_assert_true(cq_wait(pair->cq[0], &wc, PAIR_PATIENCE));
    } while (wc.syndrome == 0);
    g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    cq_expect_flushed(pair->cq[0], wc.wr_id + 1, VANISH_WRS - 1 - wc.wr_id);

    qp[1] = renew(pair, 1);
    reconnect(pair, qp);
    pair_free(pair);
}

/* Both cards are back-pressured: a cable of a few bytes is only slow. */
static void test_narrow_cable(void)
{
    Pair *pair = pair_new(60, 65536);
    g_autofree uint8_t *data = pair_data(pair, 50000);
    g_autofree uint8_t *got = g_malloc(50000);
    SendWr wr[2];
    Sge sge[2];
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    pair->lab->capacity = 37;
    mr_write(pair->mr[0], 0, data, 50000);
    wr[0] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge[0], 0, 50000,
                      0);
    wr[1] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_READ, 2, &sge[1], 0, 50000,
                      0);
    g_assert_true(qp_post_send(qp[0], wr, 2));
    cq_expect(pair->cq[0], &wc, 1, 0);
    cq_expect(pair->cq[0], &wc, 2, 0);
    mr_read(pair->mr[1], 0, got, 50000);
    g_assert_cmpmem(got, 50000, data, 50000);
    pair_free(pair);
}

/* Sends, goes on with the rest of a frame after @steps, and is reset soon. */
static void reset_in_frame(unsigned steps, unsigned more)
{
    Pair *pair = pair_new(62, 65536);
    Host *host = &pair->lab->host[0];
    Sge sge;
    Qp *qp[2];
    SendWr wr;

    pair_connect(pair, NULL, qp);
    pair->lab->capacity = 37;
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 50000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    while (steps--) {
        lab_step(pair->lab);
    }
    host_reload(host);
    while (more--) {
        lab_step(pair->lab);
    }
    driver_free(pair->drv[0]);
    host_reset(host);
    qp[0] = renew(pair, 0);
    reconnect(pair, qp);
    pair_free(pair);
}

/* The cable finds each frame where the last one ends. */
static void test_reset_in_frame(void)
{
    for (unsigned steps = 10; steps < 40; steps++) {
        reset_in_frame(steps, 0);
        reset_in_frame(steps, 4);
    }
}

/* Both ways at full speed through a small pipe: no deadlock. */
static void test_both_ways(void)
{
    Pair *pair = pair_new(61, 512 * 1024);
    Qp *qp[2];
    Wc wc;

    pair->lab->capacity = 3000;
    pair_connect(pair, NULL, qp);
    for (unsigned n = 0; n < 4; n++) {
        for (unsigned side = 0; side < 2; side++) {
            SendWr wr[2];
            Sge sge[2];

            wr[0] = pair_send(pair, side, RDMA_HCA_OPCODE_RDMA_WRITE, n * 2,
                              &sge[0], 0, 200000, 0);
            wr[1] = pair_send(pair, side, RDMA_HCA_OPCODE_RDMA_READ, n * 2 + 1,
                              &sge[1], 300000, 200000, 200000);
            g_assert_true(qp_post_send(qp[side], wr, 2));
        }
    }
    for (unsigned n = 0; n < 8; n++) {
        cq_expect(pair->cq[0], &wc, n, 0);
        cq_expect(pair->cq[1], &wc, n, 0);
    }
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/link-state/port-events", test_port_events);
    test_add_each_link("/link-state/port-enable", test_port_enable);
    test_add("/link-state/peer-enable", test_peer_enable);
    test_add("/link-state/peer-reset-events", test_peer_reset_events);
    test_add("/link-state/wrong-lid", test_wrong_lid);
    test_add_each_link("/link-state/vanish/mid-message",
                       test_vanish_mid_message);
    test_add_each_link("/link-state/vanish/before", test_vanish_before);
    test_add_each_link("/link-state/vanish/no-retry", test_vanish_no_retry);
    test_add_each_link("/link-state/vanish/read", test_vanish_read);
    test_add_each_link("/link-state/short-interruption",
                       test_short_interruption);
    test_add_each_link("/link-state/peer-reset", test_peer_reset);
    test_add_each_link("/link-state/narrow-cable", test_narrow_cable);
    test_add_each_link("/link-state/reset-in-frame", test_reset_in_frame);
    test_add_each_link("/link-state/both-ways", test_both_ways);
    return g_test_run();
}
