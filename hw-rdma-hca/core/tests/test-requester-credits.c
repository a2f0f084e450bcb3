/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The credits that a requester is told of (IBA 9.7.7.2).
 */
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define RNR_CODE 20 /* 10.24 ms */
#define RNR_NS (INT64_C(10240) * NS_PER_US)
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name
#define RNR(code) HCA_AETH(HCA_AETH_RNR, code)

/* The peer has executed @msn messages, and has receives for more: a code. */
static void ack_credits(Bed *bed, uint32_t psn, uint32_t msn, uint8_t code)
{
    bed->msn = msn - 1;
    bed_nak(bed, psn, HCA_AETH(HCA_AETH_ACK, code));
}

/* So many as there are credits for, and one more. */
static void test_credits_limit(void)
{
    Bed *bed = bed_new_credits();

    for (unsigned i = 1; i <= 7; i++) {
        bed_post(bed, i % 2 ? SEND : WRITE_IMM, i, 8);
    }
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_credits"), >, 0);
    ack_credits(bed, PSN, 1, 2); /* two, and one */
    bed_expect_request(bed, HCA_WRITE_ONLY_IMM, PSN + 1);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
    bed_expect_request(bed, HCA_WRITE_ONLY_IMM, PSN + 3);
    bed_expect_quiet(bed);
    ack_credits(bed, PSN + 1, 2, 1); /* as before */
    bed_expect_quiet(bed);
    ack_credits(bed, PSN + 3, 4, 0);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 4);
    bed_expect_quiet(bed);
    /* An ACK that comes once more tells new credits; and once more, nothing. */
    ack_credits(bed, PSN + 3, 4, 3);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 0);
    bed_expect_request(bed, HCA_WRITE_ONLY_IMM, PSN + 5);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 6);
    ack_credits(bed, PSN + 3, 4, 3);
    ack_credits(bed, PSN + 3, 4, 2);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 2);
    ack_credits(bed, PSN + 6, 7, 0);
    for (unsigned i = 1; i <= 7; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* What takes no receive needs no credit, and uses none. */
static void test_credits_others(void)
{
    Bed *bed = bed_new_credits();

    bed_post(bed, SEND, 1, 8);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_post(bed, WRITE, 2, 3 * MTU);
    bed_post(bed, READ, 3, 2 * MTU);
    bed_post(bed, FETCH_ADD, 4, 8);
    bed_forget_requests(bed);
    bed_post(bed, SEND, 5, 8);
    bed_expect_quiet(bed);
    /* Of a Read response, too. */
    bed->msn = 2;
    bed_say_packet(bed,
                   &(HcaPacket) {
                       .opcode = HCA_READ_RESP_FIRST,
                       .psn = PSN + 4,
                       .msn = 3,
                       .syndrome = HCA_AETH(HCA_AETH_ACK, 1),
                       .payload_len = MTU,
                   },
                   0);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 7);
    bed_post(bed, SEND, 6, 8);
    bed_expect_quiet(bed);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_expect_broken(bed, 3, SYNDROME(WR_FLUSH_ERR), 3);
    bed_free(bed);
}

/* A message that has begun goes on; the next one waits. */
static void test_credits_in_message(void)
{
    Bed *bed = bed_new_credits();

    bed_post(bed, SEND, 1, 4 * MTU);
    bed_post(bed, SEND, 2, 2 * MTU);
    g_assert_cmpuint(bed->heard.length, ==, 4);
    bed_forget_requests(bed);
    ack_credits(bed, PSN + 3, 1, 0);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(bed->heard.length, ==, 2);
    bed_forget_requests(bed);
    ack_credits(bed, PSN + 5, 2, 0);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* The peer tells none: no limit, whatever it says later. */
static void test_credits_none(void)
{
    Bed *bed = bed_new_credits();

    for (unsigned i = 1; i <= 5; i++) {
        bed_post(bed, SEND, i, 8);
    }
    g_assert_cmpuint(bed->heard.length, ==, 1);
    ack_credits(bed, PSN, 1, HCA_AETH_CREDITS_INVALID);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(bed->heard.length, ==, 5);
    bed_forget_requests(bed);
    ack_credits(bed, PSN + 1, 2, 0);
    bed_post(bed, SEND, 6, 8);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 5);
    ack_credits(bed, PSN + 5, 6, 0);
    for (unsigned i = 2; i <= 6; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* A peer that does not count messages is waited for, but not for ever. */
static void test_credits_wrong_msn(void)
{
    Bed *bed = bed_new_credits();

    for (unsigned i = 1; i <= 5; i++) {
        bed_post(bed, SEND, i, 8);
    }
    for (unsigned i = 1; i <= 5; i++) {
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + i - 1);
        bed_expect_quiet(bed);
        ack_credits(bed, PSN + i - 1, 0, 0);
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* RNR NAKs tell none: the message that they are for is the only one out. */
static void test_credits_rnr(void)
{
    Bed *bed = bed_new_credits();

    bed_post(bed, SEND, 1, 8);
    bed_post(bed, SEND, 2, 8);
    for (unsigned i = 0; i < 3; i++) {
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_nak(bed, PSN, RNR(RNR_CODE));
        bed_expect_quiet(bed);
        lab_sleep(bed->pair->lab, RNR_NS + NS_PER_MS);
    }
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    ack_credits(bed, PSN, 1, 0);
    bed_expect_done(bed, 1);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
    ack_credits(bed, PSN + 1, 2, 0);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* Sequence numbers have 24 bits. */
static void test_credits_wrap(void)
{
    Bed *bed = bed_new_credits();

    bed->hqp->req.ssn = bed->hqp->req.lsn = 0xffffff;
    bed_post(bed, SEND, 1, 8);
    bed_post(bed, SEND, 2, 8);
    bed_post(bed, WRITE, 3, 8);
    bed_post(bed, SEND, 4, 8);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_expect_quiet(bed);
    ack_credits(bed, PSN, 0, 1);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 2);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 3);
    ack_credits(bed, PSN + 3, 3, 0);
    for (unsigned i = 1; i <= 4; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/credits/limit", test_credits_limit);
    test_add("/requester/credits/others", test_credits_others);
    test_add("/requester/credits/in-message", test_credits_in_message);
    test_add("/requester/credits/none", test_credits_none);
    test_add("/requester/credits/wrong-msn", test_credits_wrong_msn);
    test_add("/requester/credits/rnr", test_credits_rnr);
    test_add("/requester/credits/wrap", test_credits_wrap);
    return g_test_run();
}
