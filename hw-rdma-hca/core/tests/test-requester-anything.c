/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A requester whose peer says anything at all.
 */
#include "lib-requester.h"

#define MTU BED_MTU
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define CMP_SWAP RDMA_HCA_OPCODE_ATOMIC_CS

/* The fields that a peer may fill, mostly nearly right. */
static void say_anything(Bed *bed)
{
    static const uint8_t op[] = {
        HCA_ACK,
        HCA_READ_RESP_FIRST,
        HCA_READ_RESP_MIDDLE,
        HCA_READ_RESP_LAST,
        HCA_READ_RESP_ONLY,
        HCA_ATOMIC_ACK,
    };
    static const uint32_t len[] = { 0, 1, 8, 100, MTU - 1, MTU, MTU + 1 };
    HcaPacket packet = {
        .opcode = op[pair_rand(bed->pair, 0, G_N_ELEMENTS(op))],
        .psn = bed->hqp->req.unacked_psn +
               (pair_rand(bed->pair, 0, 3) ? 0
                                           : pair_rand(bed->pair, 0, 12) - 3),
        .syndrome = pair_rand(bed->pair, 0, 6) ? HCA_AETH_CREDITS_INVALID
                                               : pair_rand(bed->pair, 0, 256),
        .atomic_ack = pair_rand(bed->pair, 0, 1000),
    };

    if (packet.opcode != HCA_ACK && packet.opcode != HCA_ATOMIC_ACK) {
        packet.payload_len = len[pair_rand(bed->pair, 0, G_N_ELEMENTS(len))];
    }
    bed_say_packet(bed, &packet, 0);
}

/* Each WQE ends once and in order, whatever the peer says. */
static void test_anything(void)
{
    static const uint8_t opcode[] = { SEND, WRITE, READ, FETCH_ADD, CMP_SWAP };

    for (unsigned life = 0; life < 400; life++) {
        unsigned posted = 0, done = 0;
        Bed *bed = bed_new();
        Wc wc;

        for (unsigned n = 0; n < 60; n++) {
            uint8_t op = opcode[pair_rand(bed->pair, 0, G_N_ELEMENTS(opcode))];

            if (posted - done < 8) {
                bed_post_flags(
                    bed, op, posted++ % 16,
                    op == FETCH_ADD || op == CMP_SWAP
                        ? 8
                        : pair_rand(bed->pair, 0, 600),
                    SEND_SIGNALED |
                        (pair_rand(bed->pair, 0, 4) ? 0 : SEND_FENCE));
            }
            say_anything(bed);
            if (pair_rand(bed->pair, 0, 10) == 0) {
                lab_sleep(bed->pair->lab, BED_TIMEOUT_NS);
            }
            while (cq_poll(bed->cq, &wc)) {
                g_assert_cmpuint(wc.wr_id, ==, done++ % 16);
            }
        }
        g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
        bed_run(bed);
        while (cq_poll(bed->cq, &wc)) {
            g_assert_cmpuint(wc.wr_id, ==, done++ % 16);
        }
        g_assert_cmpuint(done, ==, posted);
        g_assert_cmpuint(bed->hqp->req.swpb_elements, ==, 0);
        g_assert_cmpuint(bed->hqp->req.reb.count, ==, 0);
        bed_forget_requests(bed);
        bed_free(bed);
        if (life % 8 == 0 && g_test_failed()) {
            break;
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/anything", test_anything);
    return g_test_run();
}
