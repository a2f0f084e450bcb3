/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queue of what a responder has to say (engine document 4.4.4:
 * RespPktGen).
 */
#include "lib-responder.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)

static void test_coalesce(void)
{
    Bed *bed = resp_new();
    HcaPacket packet;

    for (unsigned i = 0; i < 100; i++) {
        request_give_op(bed, HCA_WRITE_ONLY, 4);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, 1);
    /* The response says what the ACK did. */
    packet = request_make_read(bed, 0, 4);
    request_give(bed, &packet, 0);
    g_assert_cmpuint(resp_waiting(bed), ==, 1);
    request_give_op(bed, HCA_WRITE_ONLY, 4);
    request_give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(resp_waiting(bed), ==, 2);
    /* A NAK says what the ACK did; the ACK after it more again. */
    bed->psn = hca_psn_add(bed->psn, 1);
    request_give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(resp_waiting(bed), ==, 2);
    bed->psn = PSN; /* duplicate: nothing to add */
    request_give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(resp_waiting(bed), ==, 2);
    g_assert_cmphex(
        bed->hqp->resp.ring[(bed->hqp->resp.ring_tail - 1) % HCA_RESP_RING]
            .syndrome,
        ==, NAK(PSN_SEQ));
    bed->psn = hca_psn_add(PSN, 103);
    request_give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(resp_waiting(bed), ==, 2);
    resp_run(bed);
    resp_expect_read(bed, hca_psn_add(PSN, 100), 0, 4, 101);
    resp_expect_ack(bed, hca_psn_add(PSN, 103), 104);
    bed_free(bed);
}

/* A peer that asks and asks while nothing can be sent: there is room for all that
 * it is granted, again and anew. More of it: test-flush.c. */
static void test_ring_room(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    HcaPacket packet;
    Bed *bed;

    config.attr.max_dest_rd_atomic = HCA_MAX_RD_ATOMIC;
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
        packet = request_make_read(bed, 0, 4);
        request_give(bed, &packet, 0);
        request_give_op(bed, HCA_WRITE_ONLY, 0);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, HCA_MAX_RD_ATOMIC + 1);
    g_assert_cmpuint(bed->hqp->resp.rd_atomic, ==, HCA_MAX_RD_ATOMIC);
    resp_run(bed);
    g_assert_cmpuint(bed->heard.length, ==, HCA_MAX_RD_ATOMIC + 1);
    g_queue_clear_full(&bed->heard, g_free);
    /* The same again: duplicates, with acknowledgements between them. */
    bed->psn = PSN;
    for (unsigned i = 0; i < 2 * HCA_MAX_RD_ATOMIC; i++) {
        if (i % 2) {
            request_give_op(bed, HCA_WRITE_ONLY, 0);
        } else {
            packet = request_make_read(bed, 0, 4);
            request_give(bed, &packet, 0);
        }
    }
    for (unsigned i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
        packet = request_make_read(bed, 0, 4);
        request_give(bed, &packet, 0);
        request_give_op(bed, HCA_WRITE_ONLY, 0);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, 3 * HCA_MAX_RD_ATOMIC);
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 0);
    resp_run(bed);
    g_assert_cmpuint(bed->heard.length, ==, 3 * HCA_MAX_RD_ATOMIC);
    g_queue_clear_full(&bed->heard, g_free);
    bed_free(bed);
}

static void test_budget(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make_read(bed, 0, 10 * MTU);

    request_give(bed, &packet, 0);
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 4));
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 4));
    g_assert_false(hca_responder_send(bed->hca, bed->hqp, 4));
    resp_run(bed);
    resp_expect_read(bed, PSN, 0, 10 * MTU, 1);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/responder/4.10/coalesce", test_coalesce);
    test_add("/responder/4.10/ring-room", test_ring_room);
    test_add("/responder/4.10/budget", test_budget);
    return g_test_run();
}
