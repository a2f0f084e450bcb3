/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A responder that is asked anything at all.
 */
#include "lib-responder.h"

#define MTU BED_MTU

static uint32_t pick(Bed *bed, uint32_t end)
{
    return pair_rand(bed->pair, 0, end);
}

/* Nearly right in most fields, wrong in some. */
static HcaPacket make_random(Bed *bed)
{
    static const uint32_t len[] = { 0,          1,         8,       MTU - 1,
                                    MTU,        MTU + 1,   4 * MTU, BED_AREA,
                                    0x7fffffff, 0xffffffff };
    HcaPacket packet = request_make(bed, pick(bed, 0x1e), 0);

    packet.psn = bed->hqp->resp.expected_psn;
    if (!pick(bed, 3)) {
        packet.psn = hca_psn_add(packet.psn, pick(bed, 20) - 15);
    }
    packet.ack_req = pick(bed, 2);
    packet.payload_len = len[pick(bed, 6)];
    packet.dma_len = pick(bed, 2) ? packet.payload_len
                                  : len[pick(bed, G_N_ELEMENTS(len))];
    packet.va = (packet.va + 7) & ~UINT64_C(7);
    if (!pick(bed, 40)) {
        packet.va += pick(bed, UINT32_MAX);
    }
    if (!pick(bed, 40)) {
        packet.rkey = pick(bed, UINT32_MAX);
    }
    packet.has_grh = pick(bed, 2);
    packet.feth = pick(bed, 4) ? pick(bed, 32) : pick(bed, UINT32_MAX);
    return packet;
}

static void check_ring(const Bed *bed)
{
    const HcaResponder *resp = &bed->hqp->resp;
    unsigned rd_atomic = 0;

    g_assert_cmpuint(resp_waiting(bed), <=, HCA_RESP_RING);
    for (uint32_t i = resp->ring_head; i != resp->ring_tail; i++) {
        const HcaResp *entry = &resp->ring[i % HCA_RESP_RING];

        g_assert_false(entry->counts && entry->duplicate);
        rd_atomic += entry->counts;
    }
    g_assert_cmpuint(rd_atomic, ==, resp->rd_atomic);
    g_assert_cmpuint(rd_atomic, <=, bed->hqp->attr.rra_max);
}

static void random_packets(Bed *bed)
{
    for (unsigned n = 0; n < 300; n++) {
        HcaPacket packet = make_random(bed);
        uint8_t operation = HCA_BTH_OPERATION(packet.opcode);

        if ((operation >= HCA_READ_RESP_FIRST && operation <= HCA_ATOMIC_ACK) ||
            bed->hqp->state == RDMA_HCA_QP_STATE_ERR) {
            continue;
        }
        request_give(bed, &packet, pick(bed, 1000));
        check_ring(bed);
        if (!pick(bed, 4)) {
            hca_responder_send(bed->hca, bed->hqp, pick(bed, 5));
            check_ring(bed);
        }
        if (!pick(bed, 10) && bed->qp->rq.head - bed->qp->rq.tail < 16) {
            resp_post_recv(bed, n, pick(bed, 1000), pick(bed, 3 * MTU));
        }
    }
    resp_run(bed);
    g_queue_clear_full(&bed->heard, g_free);
}

static void test_random(const void *opaque)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.service = GPOINTER_TO_UINT(opaque);
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < 100; i++) {
        Wc wc;

        random_packets(bed);
        while (cq_poll(bed->cq, &wc)) {
        }
        qp_destroy(bed->qp);
        g_assert_cmphex(cq_destroy(bed->cq), ==, 0);
        bed_make_qp(bed, &config);
    }
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_data("/responder/random/rc", GUINT_TO_POINTER(RDMA_HCA_QP_ST_RC),
                  test_random);
    test_add_data("/responder/random/uc", GUINT_TO_POINTER(RDMA_HCA_QP_ST_UC),
                  test_random);
    test_add_data("/responder/random/ud", GUINT_TO_POINTER(RDMA_HCA_QP_ST_UD),
                  test_random);
    return g_test_run();
}
