/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester's timers and how often it tries again (engine document, figure
 * 3.17; IBA 9.7.6).
 */
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define RNR_CODE 20 /* 10.24 ms */
#define RNR_NS (INT64_C(10240) * NS_PER_US)
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)
#define RNR(code) HCA_AETH(HCA_AETH_RNR, code)

/* ---- figure 3.17: timers and bad requests ---- */

/* TIMER_RETRANS, IDLE */
static void test_timer_retrans(void)
{
    Bed *bed = bed_new();
    int64_t began;

    bed_post(bed, SEND, 1, 100);
    began = bed->hqp->deadline[HCA_TIMER_LOSS] - BED_TIMEOUT_NS;
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    lab_sleep(bed->pair->lab, BED_TIMEOUT_NS - NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 2 * NS_PER_MS);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    {
        g_autofree BedPacket *again = bed_next(bed, HCA_SEND_ONLY, PSN);

        g_assert_cmpint(again->time - began, >=, BED_TIMEOUT_NS);
        g_assert_cmpint(again->time - began, <,
                        BED_TIMEOUT_NS + 10 * NS_PER_US);
        g_assert_true(again->packet.ack_req);
    }
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 1, 2 * 4096, 100);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 3);
    bed_free(bed);
}

/* FLUSH, CXT_WB, CLEAR_TIMER: the retries are used up. */
static void test_timer_flush(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 100);
    bed_post(bed, SEND, 2, 3 * MTU);
    bed_post(bed, WRITE, 3, 100);
    lab_sleep(bed->pair->lab, 4 * BED_TIMEOUT_NS + NS_PER_MS);
    bed_expect_broken(bed, 1, SYNDROME(RETRY_EXC_ERR), 2);
    g_assert_cmpuint(bed->heard.length, ==, 4 * 5);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* ---- timers and counts ---- */

/* IBA table 45, in units of 10 us. */
static const uint32_t rnr_10us[] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void test_rnr_table(void)
{
    for (unsigned code = 0; code < G_N_ELEMENTS(rnr_10us); code++) {
        int64_t want = rnr_10us[code] * 10 * NS_PER_US, told;
        Bed *bed = bed_new();
        BedPacket *again;

        bed_post(bed, SEND, 1, 0);
        bed_forget_requests(bed);
        told = bed->pair->lab->now;
        bed_nak(bed, PSN, RNR(code));
        lab_sleep(bed->pair->lab, want + NS_PER_MS);
        again = bed_next(bed, HCA_SEND_ONLY, PSN);
        g_assert_cmpint(again->time - told, >=, want);
        g_assert_cmpint(again->time - told, <, want + 10 * NS_PER_US);
        g_free(again);
        bed_ack(bed, PSN);
        bed_expect_done(bed, 1);
        bed_free(bed);
    }
}

/* 4.096 us * 2^code; 0 waits for ever. */
static void test_timeout_table(void)
{
    for (unsigned code = 0; code < 32; code++) {
        int64_t want = INT64_C(4096) << code, began;
        QpAttr attr;
        Bed *bed;

        bed_attr_init(&attr);
        attr.timeout = code;
        attr.retry_cnt = 0;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        bed_post(bed, WRITE, 1, 0);
        began = bed->pair->lab->now;
        bed_forget_requests(bed);
        if (code) {
            lab_sleep(bed->pair->lab, want - MIN(want / 2, NS_PER_MS));
            bed_expect_none(bed);
            lab_sleep(bed->pair->lab, want);
            bed_expect_broken(bed, 1, SYNDROME(RETRY_EXC_ERR), 0);
        } else {
            lab_sleep(bed->pair->lab, 3600 * NS_PER_S);
            bed_expect_none(bed);
            g_assert_cmpint(bed->pair->lab->now - began, >=, 3600 * NS_PER_S);
            bed_ack(bed, PSN);
            bed_expect_done(bed, 1);
        }
        bed_free(bed);
    }
}

/* Sent so often again as retry_cnt says, then the WQE fails in time. */
static void test_retry_count(void)
{
    for (unsigned count = 0; count <= 7; count++) {
        int64_t began;
        QpAttr attr;
        Bed *bed;
        Wc wc;

        bed_attr_init(&attr);
        attr.retry_cnt = count;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        began = bed->pair->lab->now;
        bed_post(bed, WRITE, 1, 0);
        g_assert_true(cq_wait(bed->cq, &wc, 10 * NS_PER_S));
        g_assert_cmphex(wc.syndrome, ==, SYNDROME(RETRY_EXC_ERR));
        g_assert_cmpint(bed->pair->lab->now - began, >=,
                        (count + 1) * BED_TIMEOUT_NS);
        g_assert_cmpint(bed->pair->lab->now - began, <,
                        (count + 1) * BED_TIMEOUT_NS + NS_PER_MS);
        g_assert_cmpuint(bed->heard.length, ==, count + 1);
        bed_forget_requests(bed);
        bed_free(bed);
    }
}

/* The cable takes @capacity bytes from now on, which the card sees. */
static void set_capacity(Bed *bed, uint64_t capacity)
{
    bed->pair->lab->capacity = capacity;
    bed->pair->lab->host[0].kicked = true;
    bed_run(bed);
}

/* While the cable takes nothing nothing is lost: no retry is used. */
static void test_cable_stands(void)
{
    Bed *bed = bed_new();
    uint64_t capacity = bed->pair->lab->capacity;

    set_capacity(bed, 0);
    bed_post(bed, WRITE, 1, 100);
    lab_sleep(bed->pair->lab, 20 * BED_TIMEOUT_NS);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 3);
    bed_counted(bed, 0, "requester_timeouts", 0);
    bed_expect_quiet(bed);
    set_capacity(bed, capacity);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_expect_quiet(bed);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/*
 * The packet has left and is lost; then the cable stands. One retry is what it
 * needs, whether it waits in the cable's buffer or in front of it.
 */
static void check_cable_stands_later(bool buffer_full)
{
    Bed *bed = bed_new();
    uint64_t capacity = bed->pair->lab->capacity;
    Qp *other[1];
    QpAttr attr;
    SendWr wr;
    Sge sge;

    bed_attr_init(&attr);
    wr = bed_wr(bed, &sge, WRITE, 2, 100);
    bed_post_from_others(bed, &attr, other, 1, &wr);
    bed_post(bed, WRITE, 1, 100);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    set_capacity(bed, 0);
    if (buffer_full) {
        g_assert_true(qp_post_send(other[0], &wr, 1));
        bed_run(bed);
        lab_sleep(bed->pair->lab, BED_TIMEOUT_NS + NS_PER_MS);
        /* As if the cable had taken it, and others had filled it again. */
        bed->hqp->req.timer_mark = 0;
    }
    lab_sleep(bed->pair->lab, 20 * BED_TIMEOUT_NS);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    bed_expect_quiet(bed);
    set_capacity(bed, capacity);
    /* One of each QP; what lay in the buffer, and again behind the first. */
    g_assert_cmpuint(bed->heard.length, ==, buffer_full ? 4 : 2);
    bed_forget_requests(bed);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    qp_destroy(other[0]);
    bed_free(bed);
}

static void test_cable_stands_later(void)
{
    check_cable_stands_later(false);
    check_cable_stands_later(true);
}

/* A packet that is acknowledged restores the count. */
static void test_retry_restored(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 0);
    bed_post(bed, WRITE, 2, 0);
    lab_sleep(bed->pair->lab, 3 * BED_TIMEOUT_NS + NS_PER_MS);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 0);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    lab_sleep(bed->pair->lab, 3 * BED_TIMEOUT_NS + NS_PER_MS);
    bed_expect_none(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 0);
    lab_sleep(bed->pair->lab, BED_TIMEOUT_NS);
    bed_expect_broken(bed, 2, SYNDROME(RETRY_EXC_ERR), 0);
    bed_forget_requests(bed);
    bed_free(bed);
}

/*
 * A packet is lost, comes late, is not taken, and is lost once more: the peer
 * tells each time, and no timer is needed.
 */
static void test_lost_after_rnr(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.timeout = 0;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, SEND, 1, 100);
    bed_post(bed, SEND, 2, 100);
    bed_forget_requests(bed);
    for (unsigned round = 0; round < 2; round++) {
        bed_nak(bed, PSN, NAK(PSN_SEQ));
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
        bed_nak(bed, PSN, RNR(RNR_CODE));
        bed_expect_quiet(bed);
        lab_sleep(bed->pair->lab, RNR_NS + NS_PER_MS);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
    }
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* The peer answers, though it is not ready: no time-out is counted on. */
static void test_rnr_restores_retries(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.rnr_retry = 7;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, SEND, 1, 0);
    for (unsigned i = 0; i < 10; i++) {
        lab_sleep(bed->pair->lab, 2 * BED_TIMEOUT_NS + NS_PER_MS);
        g_assert_cmpuint(bed->hqp->req.retries_left, ==, 1);
        bed_nak(bed, PSN, RNR(1));
        lab_sleep(bed->pair->lab, NS_PER_MS);
        g_assert_cmpuint(bed->hqp->req.retries_left, ==, 3);
    }
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* rnr_retry times, 7 is for ever. */
static void test_rnr_retry(void)
{
    for (unsigned count = 0; count <= 7; count++) {
        unsigned rounds = count == 7 ? 1000 : count;
        QpAttr attr;
        Bed *bed;

        bed_attr_init(&attr);
        attr.rnr_retry = count;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        bed_post(bed, SEND, 1, 0);
        bed_post(bed, SEND, 2, 0);
        for (unsigned i = 0; i < rounds; i++) {
            bed_expect_request(bed, HCA_SEND_ONLY, PSN);
            bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
            bed_nak(bed, PSN, RNR(1));
            lab_sleep(bed->pair->lab, 20 * NS_PER_US);
        }
        bed_forget_requests(bed);
        bed_expect_none(bed);
        if (count == 7) {
            bed_ack(bed, PSN + 1);
            bed_expect_done(bed, 1);
            bed_expect_done(bed, 2);
        } else {
            bed_nak(bed, PSN, RNR(1));
            bed_expect_broken(bed, 1, SYNDROME(RNR_RETRY_EXC_ERR), 1);
        }
        bed_free(bed);
    }
}

/* An RNR NAK that the cable doubles costs no more than one. */
static void test_rnr_doubled(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 0);
    bed_forget_requests(bed);
    for (unsigned i = 0; i < 10; i++) {
        bed_nak(bed, PSN, RNR(RNR_CODE));
    }
    g_assert_cmpuint(bed->hqp->req.rnr_retries_left, ==, 2);
    lab_sleep(bed->pair->lab, RNR_NS + NS_PER_MS);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(bed->hqp->req.rnr_retries_left, ==, 3);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/fig-3.17/timer-retrans", test_timer_retrans);
    test_add("/requester/fig-3.17/timer-flush", test_timer_flush);
    test_add("/requester/timer/rnr-table", test_rnr_table);
    test_add("/requester/timer/timeout-table", test_timeout_table);
    test_add("/requester/timer/retry-count", test_retry_count);
    test_add("/requester/timer/retry-restored", test_retry_restored);
    test_add("/requester/timer/cable-stands", test_cable_stands);
    test_add("/requester/timer/cable-stands-later", test_cable_stands_later);
    test_add("/requester/timer/rnr-restores-retries",
             test_rnr_restores_retries);
    test_add("/requester/timer/rnr-retry", test_rnr_retry);
    test_add("/requester/timer/rnr-doubled", test_rnr_doubled);
    test_add("/requester/timer/lost-after-rnr", test_lost_after_rnr);
    return g_test_run();
}
