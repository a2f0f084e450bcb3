/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PSNs that a responder expects, those ahead, and those it has had (engine
 * document, figure 4.2; IBA 9.7.5); the MSN.
 */
#include "../responder/units.h"
#include "lib-responder.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN
#define RC_OP(op) (HCA_BTH_RC << 5 | (op))
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)

/* ---- figure 4.2: PSN regions ---- */

static void test_ahead(void)
{
    Bed *bed = resp_new();

    resp_post_recv(bed, 1, 0, 4096);
    for (unsigned i = 0; i < 3; i++) {
        bed->psn = hca_psn_add(PSN, 1 + i);
        request_send(bed, HCA_SEND_ONLY, 4);
    }
    resp_expect_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_quiet(bed);
    bed_expect_drops(bed, HCA_DROP_PSN, 2);
    bed->psn = PSN;
    request_send(bed, HCA_SEND_ONLY, 4);
    resp_expect_ack(bed, PSN, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 4);
    bed->psn = hca_psn_add(PSN, 2);
    request_send(bed, HCA_SEND_ONLY, 4);
    resp_expect_nak(bed, hca_psn_add(PSN, 1), NAK(PSN_SEQ));
    bed_free(bed);
}

/* The circle is cut half way round. */
static void test_regions(void)
{
    Bed *bed = resp_new();

    bed->psn = (PSN - 0x800000) & HCA_PSN_MASK;
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_ack(bed, PSN - 1, 0);
    bed->psn = (PSN - 1) & HCA_PSN_MASK;
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_ack(bed, PSN - 1, 0);
    bed->psn = hca_psn_add(PSN, 0x7fffff);
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_nak(bed, PSN, NAK(PSN_SEQ));
    g_assert_cmpuint(card_counter(bed->hca, "responder_duplicates"), ==, 2);
    bed_free(bed);
}

static void test_duplicate_send(void)
{
    Bed *bed = resp_new();

    resp_post_recv(bed, 1, 0, 4096);
    resp_post_recv(bed, 2, 0, 4096);
    request_send(bed, HCA_SEND_ONLY, 100);
    resp_expect_ack(bed, PSN, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 100);
    request_send(bed, HCA_WRITE_ONLY, 100);
    resp_expect_ack(bed, PSN + 1, 2);
    bed->psn = PSN;
    request_send_at(bed, HCA_SEND_ONLY, 1000, 100);
    resp_expect_ack(bed, PSN + 1, 2);
    request_send_at(bed, HCA_WRITE_ONLY, 1000, 100);
    resp_expect_ack(bed, PSN + 1, 2);
    bed_expect_none(bed);
    bed_expect_region(bed, 0, 0, 100);
    bed_free(bed);
}

static void test_duplicate_read(void)
{
    Bed *bed = resp_new();
    HcaPacket packet;

    packet = request_make_read(bed, 5, 3 * MTU + 7);
    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN, 5, 3 * MTU + 7, 1);
    /* Whole, and from its second packet on. */
    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN, 5, 3 * MTU + 7, 1);
    bed->psn = PSN + 1;
    packet = request_make_read(bed, 5 + MTU, 2 * MTU + 7);
    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN + 1, 5 + MTU, 2 * MTU + 7, 1);
    /* Beyond what was asked for. */
    packet = request_make_read(bed, 5, 3 * MTU + 1);
    request_put(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1);
    /* A ghost whose memory is gone harms nobody. */
    packet = request_make_read(bed, 5, MTU);
    packet.rkey ^= 0x100;
    request_put(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_ACCESS, 1);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    bed_free(bed);
}

static void repeat_atomics(unsigned n)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    HcaPacket packet;
    Bed *bed;

    config.attr.max_dest_rd_atomic = n;
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < 20; i++) {
        packet = request_make_atomic(bed, HCA_FETCH_ADD);
        packet.swap_add = 10;
        request_put(bed, &packet, 0);
        resp_expect_atomic(bed, bed->psn, 10 * i, i + 1);
        bed->psn = hca_psn_add(bed->psn, 1);
    }
    for (unsigned i = 0; i < 20; i++) {
        bed->psn = hca_psn_add(PSN, i);
        packet = request_make_atomic(bed, HCA_FETCH_ADD);
        packet.swap_add = 10;
        request_put(bed, &packet, 0);
        if (i >= 20 - n) {
            resp_expect_atomic(bed, bed->psn, 10 * i, 20);
        }
    }
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 20 - n);
    g_assert_cmpuint(resp_atomic_word(bed), ==, 200);
    bed_free(bed);
}

/* The replay store has a slot for each that the peer may have outstanding. */
static void test_duplicate_atomic(void)
{
    repeat_atomics(1);
    repeat_atomics(4);
    repeat_atomics(HCA_MAX_RD_ATOMIC);
}

/* A Read, a Write or nothing had this PSN: there is nothing to replay. */
static void test_duplicate_no_atomic(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make_atomic(bed, HCA_FETCH_ADD);

    packet.swap_add = 1;
    request_put(bed, &packet, 0);
    resp_expect_atomic(bed, PSN, 0, 1);
    bed->psn = PSN + 1;
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_ack(bed, PSN + 1, 2);
    for (int i = -1; i <= 1; i += 2) {
        packet = request_make_atomic(bed, HCA_FETCH_ADD);
        packet.psn = PSN + i;
        packet.swap_add = 1;
        request_put(bed, &packet, 0);
        bed_expect_quiet(bed);
    }
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 2);
    g_assert_cmpuint(resp_atomic_word(bed), ==, 1);
    bed_free(bed);
}

/* Answers that are still to come are not queued twice. */
static void test_duplicate_pending(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make_read(bed, 0, 3 * MTU);

    request_give(bed, &packet, 0);
    request_give(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1);
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 1));
    /* Its first packet has gone: that is sent again, once. */
    for (unsigned i = 0; i < 6; i++) {
        bed->psn = PSN;
        packet = request_make_read(bed, 0, MTU);
        request_give(bed, &packet, 0);
    }
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1 + 5);
    g_assert_cmpuint(hca_resp_duplicates(bed->hqp), ==, 1);
    resp_run(bed);
    resp_expect_read(bed, PSN, 0, 3 * MTU, 1);
    resp_expect_read(bed, PSN, 0, MTU, 1);
    bed_free(bed);
}

/* ---- figure 4.7: what is asked for again ---- */

/* No more Reads are answered again at a time than may be outstanding. */
static void test_duplicates_limit(void)
{
    Bed *bed = resp_new();
    HcaPacket packet;

    for (unsigned i = 0; i < 6; i++) {
        packet = request_make_read(bed, 0, 4);
        request_put(bed, &packet, 0);
        resp_expect_read(bed, bed->psn, 0, 4, i + 1);
        bed->psn++;
    }
    bed->psn = PSN;
    for (unsigned i = 0; i < 6; i++) {
        packet = request_make_read(bed, 0, 4);
        request_give(bed, &packet, 0);
    }
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 2);
    resp_run(bed);
    for (unsigned i = 0; i < 4; i++) {
        resp_expect_read(bed, PSN + i, 0, 4, 6);
    }
    bed_free(bed);
}

/* The region goes while a duplicate waits: the QP lives on. */
static void test_duplicate_deregistered(void)
{
    Bed *bed = resp_new();
    uint32_t index = mr_index(bed->mr);
    HcaPacket packet = request_make_read(bed, 0, 4);

    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN, 0, 4, 1);
    request_give(bed, &packet, 0);
    g_assert_cmphex(hca_v2p_invalidate_mpt(bed->hca->v2p, index), ==, 0);
    resp_run(bed);
    bed_expect_drops(bed, HCA_DROP_ACCESS, 1);
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_ack(bed, PSN + 1, 2);
    bed_free(bed);
}

/* 24 bits, counted by messages of every kind when their last packet is done. */
static void test_msn(void)
{
    Bed *bed = resp_new();
    HcaPacket packet;

    bed->hqp->resp.msn = HCA_PSN_MASK - 1;
    resp_post_recv(bed, 1, 0, 4096);
    request_send(bed, HCA_SEND_FIRST, MTU);
    resp_expect_ack(bed, PSN, HCA_PSN_MASK - 1);
    request_send(bed, HCA_SEND_LAST, 1);
    resp_expect_ack(bed, PSN + 1, HCA_PSN_MASK);
    bed->psn = PSN + 2;
    packet = request_make_read(bed, 0, 3 * MTU);
    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN + 2, 0, 3 * MTU, 0);
    bed->psn = PSN + 5;
    packet = request_make_atomic(bed, HCA_FETCH_ADD);
    request_put(bed, &packet, 0);
    g_assert_cmpuint(bed->heard.length, ==, 1);
    g_assert_cmphex(((BedPacket *)g_queue_peek_head(&bed->heard))->packet.msn,
                    ==, 1);
    g_free(bed_next(bed, HCA_ATOMIC_ACK, PSN + 5));
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/responder/4.2/ahead", test_ahead);
    test_add("/responder/4.2/regions", test_regions);
    test_add("/responder/4.2/send-again", test_duplicate_send);
    test_add("/responder/4.2/read-again", test_duplicate_read);
    test_add("/responder/4.2/atomic-again", test_duplicate_atomic);
    test_add("/responder/4.2/no-atomic-again", test_duplicate_no_atomic);
    test_add("/responder/4.2/pending", test_duplicate_pending);
    test_add("/responder/4.7/duplicates", test_duplicates_limit);
    test_add("/responder/4.7/duplicate-deregistered",
             test_duplicate_deregistered);
    test_add("/responder/rules/msn", test_msn);
    return g_test_run();
}
