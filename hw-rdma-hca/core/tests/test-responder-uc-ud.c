/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responders of UC and UD (IBA 9.8, 9.9.3).
 */
#include "../link/framing.h"
#include "lib-responder.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN
#define UC_OP(op) (HCA_BTH_UC << 5 | (op))
#define UD_OP(op) (HCA_BTH_UD << 5 | (op))

/* ---- UC ---- */

static void test_uc(void)
{
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UC);

    resp_post_recv(bed, 1, 0, 4096);
    resp_post_recv(bed, 2, 0, 4096);
    request_send_at(bed, HCA_SEND_FIRST, 0, MTU);
    request_send_at(bed, HCA_SEND_LAST, MTU, 9);
    resp_expect_recv(bed, 1, UC_OP(HCA_SEND_LAST), MTU + 9);
    bed_expect_region(bed, 0, 0, MTU + 9);
    request_send_at(bed, HCA_WRITE_ONLY_IMM, 5000, 100);
    resp_expect_recv(bed, 2, UC_OP(HCA_WRITE_ONLY_IMM), 100);
    bed_expect_region(bed, 0, 5000, 100);
    request_send(bed, HCA_SEND_ONLY, 1);
    bed_expect_drops(bed, HCA_DROP_NO_WQE, 1);
    bed_free(bed);
}

/* A packet is lost: its message is, and the next one has the whole WQE. */
static void test_uc_loss(void)
{
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UC);

    resp_post_recv(bed, 1, 0, 2 * MTU);
    request_send(bed, HCA_SEND_FIRST, MTU);
    bed->psn = hca_psn_add(bed->psn, 1);
    request_send(bed, HCA_SEND_MIDDLE, MTU);
    bed_expect_drops(bed, HCA_DROP_PSN, 1);
    request_send(bed, HCA_SEND_LAST, 1);
    bed_expect_drops(bed, HCA_DROP_OPCODE_SEQ, 1);
    /* Cut short by the next, of which a packet is lost; then a whole one. */
    request_send(bed, HCA_SEND_FIRST, MTU);
    request_send(bed, HCA_SEND_FIRST, MTU);
    bed->psn = hca_psn_add(bed->psn, 5);
    request_send_at(bed, HCA_SEND_FIRST, 777, MTU);
    request_send_at(bed, HCA_SEND_LAST, 777 + MTU, MTU);
    resp_expect_recv(bed, 1, UC_OP(HCA_SEND_LAST), 2 * MTU);
    bed_expect_region(bed, 0, 777, 2 * MTU);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    bed_free(bed);
}

/* Operations that UC does not have, Send with Invalidate among them. */
static void test_uc_opcodes(void)
{
    static const uint8_t op[] = { HCA_SEND_ONLY_INV, HCA_SEND_LAST_INV,
                                  HCA_READ_REQUEST, HCA_FETCH_ADD, 0x1f };
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UC);

    resp_post_recv(bed, 1, 0, 64);
    for (unsigned i = 0; i < G_N_ELEMENTS(op); i++) {
        request_send(bed, op[i], 0);
    }
    bed_expect_drops(bed, HCA_DROP_PARSE_OPCODE, G_N_ELEMENTS(op));
    bed->psn = PSN;
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_recv(bed, 1, UC_OP(HCA_SEND_ONLY), 8);
    bed_free(bed);
}

/* Remote faults are nobody's business; local ones break the QP. */
static void test_uc_errors(void)
{
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UC);
    HcaPacket packet = request_make(bed, HCA_WRITE_ONLY, 8);
    Sge sge = mr_sge(bed->mr, 0, 100);
    RecvWr wr = { .wr_id = 2, .nsge = 1, .sge = &sge };

    packet.rkey ^= 0x100;
    request_put(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_ACCESS, 1);
    bed->psn++;
    resp_post_recv(bed, 1, 0, 10);
    request_send(bed, HCA_SEND_ONLY, 11);
    bed_expect_drops(bed, HCA_DROP_LENGTH, 1);
    request_send(bed, HCA_SEND_ONLY, 10);
    resp_expect_recv(bed, 1, UC_OP(HCA_SEND_ONLY), 10);
    sge.lkey ^= 0x100;
    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    request_send(bed, HCA_SEND_ONLY, 10);
    resp_expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    resp_expect_broken(bed, 0);
    bed_free(bed);
}

/* ---- UD ---- */

static void test_ud(void)
{
    static const uint8_t zero[HCA_GRH_SIZE];
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UD);
    uint8_t grh[HCA_GRH_SIZE];
    Wc wc;

    mr_fill(bed->mr, 0, 0xee, 4096);
    resp_post_recv(bed, 1, 0, 4096);
    request_send(bed, HCA_SEND_ONLY_IMM, 100);
    cq_expect(bed->cq, &wc, 1, 0);
    g_assert_cmphex(wc.opcode, ==, UD_OP(HCA_SEND_ONLY_IMM));
    g_assert_cmpuint(wc.byte_len, ==, 140);
    g_assert_cmphex(wc.rqpn, ==, 0x4321);
    g_assert_cmphex(wc.imm_be, ==, 0x44332211);
    mr_read(bed->mr, 0, grh, sizeof(grh));
    g_assert_cmpmem(grh, sizeof(grh), zero, sizeof(zero));
    bed_expect_region(bed, 40, 0, 100);

    resp_post_recv(bed, 2, 0, 4096);
    bed->peer.has_grh = true;
    bed->peer.flow_label = 0x12345;
    bed->peer.tclass = 0x67;
    bed->peer.hop_limit = 9;
    driver_gid(bed->drv[1], bed->peer.dgid.raw);
    request_send(bed, HCA_SEND_ONLY, 101);
    resp_expect_recv(bed, 2, UD_OP(HCA_SEND_ONLY), 141);
    mr_read(bed->mr, 0, grh, sizeof(grh));
    g_assert_cmpmem(grh, 8, "\x66\x71\x23\x45\x00\x80\x1b\x09", 8);
    g_assert_cmpmem(grh + 8, 16, &bed->peer.sgid, 16);
    g_assert_cmpmem(grh + 24, 16, &bed->peer.dgid, 16);
    bed_expect_region(bed, 40, 0, 101);
    bed_free(bed);
}

static void test_ud_drops(void)
{
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UD);

    request_send(bed, HCA_SEND_ONLY, 8);
    bed_expect_drops(bed, HCA_DROP_NO_WQE, 1);
    resp_post_recv(bed, 1, 0, 48);
    request_send(bed, HCA_SEND_ONLY, 9);
    bed_expect_drops(bed, HCA_DROP_LENGTH, 1);
    bed_expect_none(bed);
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_recv(bed, 1, UD_OP(HCA_SEND_ONLY), 48);
    bed_free(bed);
}

static void put_state(Bed *bed, bool enabled)
{
    uint8_t state[HCA_STATE_FRAME_SIZE];

    hca_frame_write_state(state, enabled);
    lab_cable_inject(bed->lab, 0, state, sizeof(state));
}

/* Right behind what brings the port up: it is up for it. */
static void test_ud_first(void)
{
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UD);

    resp_post_recv(bed, 1, 0, 48);
    put_state(bed, false);
    bed_run(bed);
    put_state(bed, true);
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_recv(bed, 1, UD_OP(HCA_SEND_ONLY), 48);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/responder/uc/all", test_uc);
    test_add("/responder/uc/loss", test_uc_loss);
    test_add("/responder/uc/opcodes", test_uc_opcodes);
    test_add("/responder/uc/errors", test_uc_errors);
    test_add("/responder/ud/all", test_ud);
    test_add("/responder/ud/drops", test_ud_drops);
    test_add("/responder/ud/first", test_ud_first);
    return g_test_run();
}
