/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the requester makes of ACKs and NAKs (engine document, figures 3.18
 * and 3.19; IBA 9.7.5.2).
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

/* ---- figure 3.18: ACKs ---- */

/* SILENT_DROP */
static void test_silent_drop(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, WRITE, 2, 100);
    bed_ack(bed, PSN);
    bed_pass_time(bed);
    bed_ack(bed, PSN);
    bed_ack(bed, PSN - 1);
    bed_nak(bed, PSN, NAK(REMOTE_ACCESS));
    bed_nak(bed, PSN, RNR(1));
    bed_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 5);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_expect_quiet(bed);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    bed_expect_upsn(bed, PSN + 1);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS] - bed->pair->lab->now, <,
                    BED_TIMEOUT_NS - NS_PER_MS);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* What was never sent cannot be acknowledged: the invalid region. */
static void test_invalid_region(void)
{
    Bed *bed = bed_new();

    bed_ack(bed, PSN);
    bed_post(bed, WRITE, 1, 100);
    bed_ack(bed, PSN + 1);
    bed_nak(bed, PSN + 1, NAK(REMOTE_ACCESS));
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_atomic_ack(bed, PSN + 0x7fffff, 1);
    bed_expect_drops(bed, HCA_DROP_GHOST, 5);
    bed_expect_none(bed);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* FLUSH, CLEAR_TIMER: all was flushed when the QP broke; nothing is left. */
static void test_response_in_error(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_expect_broken(bed, 1, SYNDROME(WR_FLUSH_ERR), 1);
    bed_ack(bed, PSN);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_expect_drops(bed, HCA_DROP_QP_STATE, 2);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* ACK_RELEASE_NORMAL, CLEAR_TIMER: RPSN + 1 = NPSN */
static void test_ack_release_all(void)
{
    Bed *bed = bed_new();

    for (unsigned i = 1; i <= 5; i++) {
        bed_post(bed, i % 2 ? SEND : WRITE, i, 300);
    }
    bed_forget_requests(bed);
    bed_ack(bed, PSN + 9);
    for (unsigned i = 1; i <= 5; i++) {
        bed_expect_done(bed, i);
    }
    bed_expect_timer_off(bed);
    bed_expect_upsn(bed, PSN + 10);
    bed_free(bed);
}

/* ACK_RELEASE_NORMAL, RESET_TIMER: RPSN + 1 < NPSN; in mid-message, too */
static void test_ack_release_some(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, SEND, 2, 300);
    bed_forget_requests(bed);
    for (unsigned i = 0; i < 3; i++) {
        bed_pass_time(bed);
        bed_ack(bed, PSN + i);
        bed_expect_upsn(bed, PSN + i + 1);
        bed_expect_timer_reset(bed);
        if (i == 1) {
            bed_expect_done(bed, 1);
        }
        bed_expect_none(bed);
    }
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 2);
    bed_expect_timer_off(bed);
    bed_free(bed);
}

/* ACK_RELEASE_EXCEPTION, ACK_LOSS_RETRANS, RESET_TIMER: a Read stays */
static void test_ack_release_exception(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 2 * MTU);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    bed_expect_upsn(bed, PSN + 1);
    bed_expect_read(bed, PSN + 1, 0, 2 * MTU);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    bed_expect_timer_reset(bed);
    /* The same ACK again asks for nothing more. */
    bed_ack(bed, PSN + 3);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, MTU, MTU);
    bed_expect_done(bed, 2);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 3);
    bed_expect_region(bed, 2 * 4096, 0, 2 * MTU);
    bed_free(bed);
}

/* ---- figure 3.19: NAKs ---- */

/* UPSN = RPSN, RNR: RESET_TIMER, the RNR timer */
static void test_rnr_at_upsn(void)
{
    Bed *bed = bed_new();
    int64_t told;

    bed_post(bed, SEND, 1, 100);
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    told = bed->pair->lab->now;
    bed_nak(bed, PSN, RNR(RNR_CODE));
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_RNR], <, INT64_MAX);
    /* Nothing new is sent meanwhile. */
    bed_post(bed, WRITE, 3, 100);
    lab_sleep(bed->pair->lab, RNR_NS - NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 2 * NS_PER_MS);
    {
        g_autofree BedPacket *again = bed_next(bed, HCA_SEND_ONLY, PSN);

        g_assert_cmpint(again->time - told, >=, RNR_NS);
    }
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 2);
    bed_ack(bed, PSN + 2);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* UPSN = RPSN, PSN error: NAK_RETRANS, RESET_TIMER */
static void test_psn_at_upsn(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, READ, 2, 100);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_payload(bed, HCA_SEND_FIRST, PSN, 4096, MTU);
    bed_expect_payload(bed, HCA_SEND_LAST, PSN + 1, 4096 + MTU, 300 - MTU);
    bed_expect_read(bed, PSN + 2, 0, 100);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 3, 3 * 4096, 100);
    bed_expect_timer_reset(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    /* The cable doubles it: nothing more is sent, no retry is used. */
    bed_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    bed_ack(bed, PSN + 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_ack(bed, PSN + 3);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

typedef struct FatalNak {
    const char *name;
    uint8_t aeth;
    uint8_t syndrome;
} FatalNak;

static const FatalNak fatal_naks[] = {
    { "invalid-request", NAK(INVALID_REQUEST), SYNDROME(REMOTE_INVAL_REQ_ERR) },
    { "remote-access", NAK(REMOTE_ACCESS), SYNDROME(REMOTE_ACCESS_ERR) },
    { "remote-operation", NAK(REMOTE_OP), SYNDROME(REMOTE_OP_ERR) },
    { "invalid-rd", NAK(INVALID_RD), SYNDROME(REMOTE_INVAL_RD_REQ_ERR) },
    { "reserved-code", HCA_AETH(HCA_AETH_NAK, 17), SYNDROME(BAD_RESP_ERR) },
    { "reserved-kind", HCA_AETH(2, 0), SYNDROME(BAD_RESP_ERR) },
};

/* UPSN = RPSN, fatal: FLUSH, CXT_WB, CLEAR_TIMER */
static void test_fatal_at_upsn(const void *opaque)
{
    const FatalNak *fatal = opaque;
    Bed *bed = bed_new();

    bed_post_flags(bed, SEND, 1, 300, 0);
    bed_post(bed, READ, 2, 100);
    bed_post_flags(bed, WRITE, 3, 100, 0);
    bed_forget_requests(bed);
    bed_nak(bed, PSN, fatal->aeth);
    /* The unsignalled complete, too: in error. */
    bed_expect_broken(bed, 1, fatal->syndrome, 2);
    bed_expect_quiet(bed);
    bed_free(bed);
}

/* UPSN < RPSN: NAK_IMPLICIT_RELEASE, FLUSH */
static void test_fatal_implicit_release(const void *opaque)
{
    const FatalNak *fatal = opaque;
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post_flags(bed, WRITE, 2, 100, 0);
    bed_post(bed, WRITE, 3, 300);
    bed_post(bed, READ, 4, 100);
    bed_forget_requests(bed);
    bed_nak(bed, PSN + 4, fatal->aeth); /* in the middle of message 3 */
    bed_expect_done(bed, 1);
    bed_expect_broken(bed, 3, fatal->syndrome, 1);
    bed_expect_quiet(bed);
    bed_free(bed);
}

/* What a NAK for message 3 finds: 1 is acknowledged, 2 lost its answer. */
static Bed *read_in_way(uint8_t aeth)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    bed_post(bed, SEND, 3, 100);
    bed_post(bed, WRITE, 4, 100);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_nak(bed, PSN + 2, aeth);
    bed_expect_done(bed, 1);
    bed_counted(bed, 0, "requester_answers_lost", 1);
    return bed;
}

/* NAK_IMPLICIT_RELEASE, NAK_RETRANS: PSN error, and a Read is left. */
static void test_psn_read_in_way(void)
{
    Bed *bed = read_in_way(NAK(PSN_SEQ));

    bed_expect_none(bed);
    bed_expect_upsn(bed, PSN + 1);
    bed_expect_read(bed, PSN + 1, 0, 100);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    bed_expect_timer_reset(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_ack(bed, PSN + 3);
    for (unsigned i = 2; i <= 4; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/*
 * NAK_IMPLICIT_RELEASE, NAK_RETRANS, RESET_TIMER: RNR, and a Read is left. It
 * is asked for at once; what the peer is not ready for waits.
 */
static void test_rnr_read_in_way(void)
{
    Bed *bed = read_in_way(RNR(RNR_CODE));

    bed_expect_none(bed);
    bed_expect_read(bed, PSN + 1, 0, 100);
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 3);
    g_assert_cmpuint(bed->hqp->req.rnr_retries_left, ==, 2);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    /* The cable doubles what tells of the lost answer. */
    bed_nak(bed, PSN + 2, RNR(RNR_CODE));
    bed_ack(bed, PSN + 1);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_expect_done(bed, 2);
    lab_sleep(bed->pair->lab, RNR_NS - 3 * NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 4 * NS_PER_MS);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 3);
    bed_expect_done(bed, 4);
    bed_free(bed);
}

/* The Read's answer is lost once more: it is sent again with the rest. */
static void test_rnr_read_lost_again(void)
{
    Bed *bed = read_in_way(RNR(RNR_CODE));

    bed_expect_read(bed, PSN + 1, 0, 100);
    lab_sleep(bed->pair->lab, RNR_NS + NS_PER_MS);
    bed_expect_read(bed, PSN + 1, 0, 100);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_ack(bed, PSN + 3);
    for (unsigned i = 2; i <= 4; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* NAK_IMPLICIT_RELEASE, FLUSH: fatal, and a Read is left. */
static void test_fatal_read_in_way(const void *opaque)
{
    const FatalNak *fatal = opaque;
    Bed *bed = read_in_way(fatal->aeth);

    /* The first to end has the cause; the answer to the Read never comes. */
    bed_expect_broken(bed, 2, fatal->syndrome, 2);
    bed_expect_quiet(bed);
    bed_free(bed);
}

/* NAK_IMPLICIT_RELEASE, NAK_RETRANS: PSN error */
static void test_psn_implicit_release(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, WRITE, 2, 300);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    bed_nak(bed, PSN + 3, NAK(PSN_SEQ));
    bed_expect_done(bed, 1);
    bed_expect_payload(bed, HCA_WRITE_LAST, PSN + 3, 2 * 4096 + MTU, 300 - MTU);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 4, 3 * 4096, 100);
    bed_ack(bed, PSN + 4);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/* NAK_IMPLICIT_RELEASE, RESET_TIMER: RNR, and no Read left */
static void test_rnr_implicit_release(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 300);
    bed_post(bed, SEND, 2, 100);
    bed_forget_requests(bed);
    bed_nak(bed, PSN + 2, RNR(RNR_CODE));
    bed_expect_done(bed, 1);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    lab_sleep(bed->pair->lab, RNR_NS - NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 2 * NS_PER_MS);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
    bed_ack(bed, PSN + 2);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/fig-3.18/silent-drop", test_silent_drop);
    test_add("/requester/fig-3.18/invalid-region", test_invalid_region);
    test_add("/requester/fig-3.18/flush", test_response_in_error);
    test_add("/requester/fig-3.18/ack-release-normal/all",
             test_ack_release_all);
    test_add("/requester/fig-3.18/ack-release-normal/some",
             test_ack_release_some);
    test_add("/requester/fig-3.18/ack-release-exception",
             test_ack_release_exception);
    test_add("/requester/fig-3.19/rnr-at-upsn", test_rnr_at_upsn);
    test_add("/requester/fig-3.19/psn-at-upsn", test_psn_at_upsn);
    test_add("/requester/fig-3.19/implicit-release/psn",
             test_psn_implicit_release);
    test_add("/requester/fig-3.19/implicit-release/rnr",
             test_rnr_implicit_release);
    test_add("/requester/fig-3.19/read-in-way/psn", test_psn_read_in_way);
    test_add("/requester/fig-3.19/read-in-way/rnr", test_rnr_read_in_way);
    test_add("/requester/fig-3.19/read-in-way/rnr-lost-again",
             test_rnr_read_lost_again);
    for (unsigned i = 0; i < G_N_ELEMENTS(fatal_naks); i++) {
        const char *at_upsn = test_named("/requester/fig-3.19/fatal-at-upsn/%s",
                                         fatal_naks[i].name);
        const char *release = test_named(
            "/requester/fig-3.19/implicit-release/%s", fatal_naks[i].name);
        const char *read = test_named("/requester/fig-3.19/read-in-way/%s",
                                      fatal_naks[i].name);

        test_add_data(at_upsn, &fatal_naks[i], test_fatal_at_upsn);
        test_add_data(release, &fatal_naks[i], test_fatal_implicit_release);
        test_add_data(read, &fatal_naks[i], test_fatal_read_in_way);
    }
    return g_test_run();
}
