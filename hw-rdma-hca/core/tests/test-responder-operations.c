/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a responder does for Sends, Writes, Reads and atomics (engine
 * document, figures 4.5 to 4.7).
 */
#include "lib-responder.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN
#define RC_OP(op) (HCA_BTH_RC << 5 | (op))
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)
#define RNR(code) HCA_AETH(HCA_AETH_RNR, code)
#define RNR_CODE BED_RNR_CODE

/* ---- figure 4.5: Send ---- */

/* Entries are filled one after the other, across packets. */
static void test_scatter(void)
{
    static const struct {
        uint32_t at, len;
    } entry[] = { { 0, 100 }, { 1000, 256 }, { 3000, 1 }, { 4000, 400 } };
    Bed *bed = resp_new();
    Sge sge[G_N_ELEMENTS(entry)];
    RecvWr wr = { .wr_id = 7, .nsge = G_N_ELEMENTS(entry), .sge = sge };
    uint32_t done = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(entry); i++) {
        sge[i] = mr_sge(bed->mr, entry[i].at, entry[i].len);
    }
    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    request_send_at(bed, HCA_SEND_FIRST, 0, MTU);
    resp_expect_ack(bed, PSN, 0);
    request_send_at(bed, HCA_SEND_MIDDLE, MTU, MTU);
    resp_expect_ack(bed, PSN + 1, 0);
    bed_expect_none(bed);
    request_send_at(bed, HCA_SEND_LAST_IMM, 2 * MTU, 245);
    resp_expect_ack(bed, PSN + 2, 1);
    resp_expect_recv(bed, 7, RC_OP(HCA_SEND_LAST_IMM), 2 * MTU + 245);
    for (unsigned i = 0; i < G_N_ELEMENTS(entry); i++) {
        bed_expect_region(bed, entry[i].at, done, entry[i].len);
        done += entry[i].len;
    }
    g_assert_cmpuint(done, ==, 2 * MTU + 245);
    bed_free(bed);
}

/* First and Middle: ENTRY_UPDATE when room is left in the entry... */
static void test_entry_update(void)
{
    Bed *bed = resp_new();
    const HcaRecvWqe *wqe = &bed->hqp->resp.wqe;

    resp_post_recv(bed, 1, 0, 3 * MTU);
    request_send_at(bed, HCA_SEND_FIRST, 0, MTU);
    resp_expect_ack(bed, PSN, 0);
    g_assert_cmpuint(wqe->sge_at, ==, 0);
    g_assert_cmpuint(wqe->sge[0].len - wqe->sge_done, ==, 2 * MTU);
    g_assert_cmphex(wqe->sge[0].va + wqe->sge_done, ==, bed->mr->va + MTU);
    request_send_at(bed, HCA_SEND_LAST, MTU, 10);
    resp_expect_ack(bed, PSN + 1, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_LAST), MTU + 10);
    bed_expect_region(bed, 0, 0, MTU + 10);
    bed_free(bed);
}

/* ...and ENTRY_RELEASE when there is none. */
static void test_entry_release(void)
{
    Bed *bed = resp_new();
    const HcaResponder *resp = &bed->hqp->resp;
    Sge sge[3] = { mr_sge(bed->mr, 0, MTU), mr_sge(bed->mr, 4000, MTU),
                   mr_sge(bed->mr, 8000, 5) };
    RecvWr wr = { .wr_id = 1, .nsge = 3, .sge = sge };

    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    request_send_at(bed, HCA_SEND_FIRST, 0, MTU);
    resp_expect_ack(bed, PSN, 0);
    g_assert_cmpuint(resp->wqe.sge_at, ==, 1);
    request_send_at(bed, HCA_SEND_MIDDLE, MTU, MTU);
    resp_expect_ack(bed, PSN + 1, 0);
    g_assert_cmpuint(resp->wqe.sge_at, ==, 2);
    g_assert_true(resp->wqe_valid);
    request_send_at(bed, HCA_SEND_LAST, 2 * MTU, 5);
    resp_expect_ack(bed, PSN + 2, 1);
    g_assert_false(resp->wqe_valid); /* WQE_RELEASE */
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_LAST), 2 * MTU + 5);
    bed_expect_region(bed, 4000, MTU, MTU);
    bed_expect_region(bed, 8000, 2 * MTU, 5);
    bed_free(bed);
}

static void test_send_zero(void)
{
    Bed *bed = resp_new();
    RecvWr wr = { .wr_id = 3 };

    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    request_send(bed, HCA_SEND_ONLY, 0);
    resp_expect_ack(bed, PSN, 1);
    resp_expect_recv(bed, 3, RC_OP(HCA_SEND_ONLY), 0);
    bed_free(bed);
}

/* Not ready: EPSN stays, silence until the packet comes again. */
static void test_rnr(void)
{
    Bed *bed = resp_new();

    request_send(bed, HCA_SEND_ONLY, 4);
    resp_expect_nak(bed, PSN, RNR(RNR_CODE));
    request_send(bed, HCA_SEND_ONLY, 4);
    bed_expect_quiet(bed);
    bed_expect_drops(bed, HCA_DROP_PSN, 1);
    bed->psn = PSN;
    request_send(bed, HCA_SEND_ONLY, 4);
    resp_expect_nak(bed, PSN, RNR(RNR_CODE));
    resp_post_recv(bed, 1, 0, 64);
    bed->psn = PSN;
    request_send(bed, HCA_SEND_ONLY, 4);
    resp_expect_ack(bed, PSN, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 4);
    bed_counted(bed, 1, "responder_rnrs_tx", 2);
    bed_free(bed);
}

static void test_send_too_long(void)
{
    Bed *bed = resp_new();

    resp_post_recv(bed, 1, 0, MTU + 10);
    resp_post_recv(bed, 2, 0, MTU + 10);
    request_send(bed, HCA_SEND_FIRST, MTU);
    resp_expect_ack(bed, PSN, 0);
    request_send(bed, HCA_SEND_LAST, 11);
    resp_expect_nak(bed, PSN + 1, NAK(INVALID_REQUEST));
    resp_expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
    resp_expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    resp_expect_broken(bed, 0);
    bed_free(bed);
}

static void test_send_bad_entry(void)
{
    Bed *bed = resp_new();
    Sge sge = mr_sge(bed->mr, 0, 100);
    RecvWr wr = { .wr_id = 1, .nsge = 1, .sge = &sge };

    sge.lkey ^= 0x100;
    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    request_send(bed, HCA_SEND_ONLY, 10);
    resp_expect_nak(bed, PSN, NAK(REMOTE_OP));
    resp_expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    resp_expect_broken(bed, 0);
    bed_free(bed);
}

/* The completion queue is full: what was received cannot be told. */
static void test_cq_overrun(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.log_cq = 0;
    bed = bed_new_as(&config);
    resp_post_recv(bed, 1, 0, 64);
    resp_post_recv(bed, 2, 0, 64);
    request_send(bed, HCA_SEND_ONLY, 1);
    resp_expect_ack(bed, PSN, 1);
    request_send(bed, HCA_SEND_ONLY, 1);
    resp_expect_nak(bed, PSN + 1, NAK(REMOTE_OP));
    g_assert_cmpuint(driver_count_events(bed->drv[1], RDMA_HCA_EVENT_CQ_ERROR),
                     ==, 1);
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_free(bed);
}

/* Answers that were owed before are given, and then the NAK. */
static void test_cq_overrun_owing(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    HcaPacket packet;
    Bed *bed;

    config.log_cq = 0;
    bed = bed_new_as(&config);
    resp_post_recv(bed, 1, 0, 64);
    resp_post_recv(bed, 2, 0, 64);
    request_send(bed, HCA_SEND_ONLY, 1);
    resp_expect_ack(bed, PSN, 1);
    packet = request_make_read(bed, 0, MTU + 1);
    request_give(bed, &packet, 0);
    bed->psn = hca_psn_add(PSN, 3);
    packet = request_make_atomic(bed, HCA_FETCH_ADD);
    request_give(bed, &packet, 0);
    packet = request_make(bed, HCA_SEND_ONLY, 1);
    request_give(bed, &packet, 0);
    g_assert_cmphex(bed->hqp->state, ==, RDMA_HCA_QP_STATE_ERR);
    resp_run(bed);
    resp_expect_read(bed, PSN + 1, 0, MTU + 1, 2);
    g_free(bed_next(bed, HCA_ATOMIC_ACK, PSN + 3));
    resp_expect_nak(bed, PSN + 4, NAK(REMOTE_OP));
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_free(bed);
}

static void test_solicited(void)
{
    Bed *bed = resp_new();
    Driver *drv = bed->drv[1];

    resp_post_recv(bed, 1, 0, 64);
    resp_post_recv(bed, 2, 0, 64);
    driver_count_events(drv, RDMA_HCA_EVENT_COMP);
    cq_arm(bed->cq, true);
    for (unsigned i = 0; i < 2; i++) {
        HcaPacket packet = request_make(bed, HCA_SEND_ONLY, 1);

        packet.solicited = i;
        request_put(bed, &packet, 0);
        resp_expect_ack(bed, bed->psn, i + 1);
        bed->psn++;
        g_assert_cmpuint(driver_count_events(drv, RDMA_HCA_EVENT_COMP), ==, i);
    }
    bed_free(bed);
}

/* ---- figure 4.6: Write ---- */

static void test_write(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make(bed, HCA_WRITE_FIRST, MTU);

    packet.va += 33;
    packet.dma_len = 2 * MTU + 3;
    request_put(bed, &packet, 0);
    resp_expect_ack(bed, PSN, 0);
    bed->psn++;
    request_send_at(bed, HCA_WRITE_MIDDLE, MTU, MTU);
    resp_expect_ack(bed, PSN + 1, 0);
    request_send_at(bed, HCA_WRITE_LAST, 2 * MTU, 3);
    resp_expect_ack(bed, PSN + 2, 1);
    bed_expect_region(bed, 33, 0, 2 * MTU + 3);
    request_send_at(bed, HCA_WRITE_ONLY, 5000, MTU);
    resp_expect_ack(bed, PSN + 3, 2);
    bed_expect_region(bed, 0, 5000, MTU);
    bed_expect_none(bed);
    bed_free(bed);
}

/* Acknowledged only when asked. */
static void test_ack_req(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make(bed, HCA_WRITE_ONLY, 4);

    packet.ack_req = false;
    request_put(bed, &packet, 0);
    bed_expect_quiet(bed);
    bed->psn++;
    request_send(bed, HCA_WRITE_ONLY, 4);
    resp_expect_ack(bed, PSN + 1, 2);
    bed_free(bed);
}

static void test_write_imm(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make(bed, HCA_WRITE_FIRST, MTU);
    static const uint8_t zero[5];
    uint8_t got[5];

    packet.dma_len = MTU + 5;
    request_put(bed, &packet, 0);
    resp_expect_ack(bed, PSN, 0);
    bed->psn++;
    request_send_at(bed, HCA_WRITE_LAST_IMM, MTU, 5);
    resp_expect_nak(bed, PSN + 1, RNR(RNR_CODE));
    mr_read(bed->mr, MTU, got, sizeof(got));
    g_assert_cmpmem(got, sizeof(got), zero, sizeof(zero));
    resp_post_recv(bed, 1, 9000, 1);
    bed->psn = PSN + 1;
    request_send_at(bed, HCA_WRITE_LAST_IMM, MTU, 5);
    resp_expect_ack(bed, PSN + 1, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_WRITE_LAST_IMM), MTU + 5);
    bed_expect_region(bed, 0, 0, MTU + 5);
    bed_free(bed);
}

/* ---- figure 4.7: Read; atomics ---- */

static void test_read(void)
{
    static const uint32_t len[] = { 1,       MTU - 1, MTU,         MTU + 1,
                                    2 * MTU, 3 * MTU, 5 * MTU + 77 };
    Bed *bed = resp_new();

    mr_write(bed->mr, 0, bed->data, BED_AREA);
    for (unsigned i = 0; i < G_N_ELEMENTS(len); i++) {
        HcaPacket packet = request_make_read(bed, 3, len[i]);

        request_put(bed, &packet, 0);
        resp_expect_read(bed, bed->psn, 3, len[i], i + 1);
        bed->psn = hca_psn_add(bed->psn, (len[i] + MTU - 1) / MTU);
    }
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_ack(bed, hca_psn_add(bed->psn, HCA_PSN_MASK),
                    G_N_ELEMENTS(len) + 1);
    bed_free(bed);
}

static void test_atomics(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make_atomic(bed, HCA_FETCH_ADD);

    packet.swap_add = UINT64_C(0x123456789abcdef0);
    request_put(bed, &packet, 0);
    resp_expect_atomic(bed, PSN, 0, 1);
    bed->psn++;
    packet = request_make_atomic(bed, HCA_CMP_SWAP);
    packet.compare = 5;
    packet.swap_add = 6;
    request_put(bed, &packet, 0);
    resp_expect_atomic(bed, PSN + 1, UINT64_C(0x123456789abcdef0), 2);
    bed->psn++;
    packet = request_make_atomic(bed, HCA_CMP_SWAP);
    packet.compare = UINT64_C(0x123456789abcdef0);
    packet.swap_add = 6;
    request_put(bed, &packet, 0);
    resp_expect_atomic(bed, PSN + 2, UINT64_C(0x123456789abcdef0), 3);
    g_assert_cmpuint(resp_atomic_word(bed), ==, 6);
    bed_free(bed);
}

/* One more than rra_max breaks the QP, behind the answers to those before. */
static void test_rd_atomic_limit(void)
{
    Bed *bed = resp_new();
    HcaPacket packet;

    for (unsigned i = 0; i < 5; i++) {
        packet = i % 2 ? request_make_atomic(bed, HCA_FETCH_ADD)
                       : request_make_read(bed, 0, 10);
        request_give(bed, &packet, 0);
    }
    resp_run(bed);
    resp_expect_read(bed, PSN, 0, 10, 1);
    resp_expect_atomic(bed, PSN + 1, 0, 2);
    resp_expect_read(bed, PSN + 2, 0, 10, 3);
    resp_expect_atomic(bed, PSN + 3, 0, 4);
    resp_expect_nak(bed, PSN + 4, NAK(INVALID_REQUEST));
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    bed_free(bed);
}

/* The region goes while its Read is being answered. */
static void test_read_deregistered(void)
{
    Bed *bed = resp_new();
    uint32_t index = mr_index(bed->mr);
    HcaPacket packet = request_make_read(bed, 0, 3 * MTU);

    request_give(bed, &packet, 0);
    bed->psn = PSN + 3;
    packet = request_make_read(bed, 0, 3 * MTU);
    request_give(bed, &packet, 0);
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 1));
    g_assert_cmphex(hca_v2p_invalidate_mpt(bed->hca->v2p, index), ==, 0);
    resp_run(bed);
    g_free(bed_next(bed, HCA_READ_RESP_FIRST, PSN));
    resp_expect_nak(bed, PSN + 1, NAK(REMOTE_ACCESS));
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_ACCESS_ERROR);
    bed_free(bed);
}

/* Middle responses tell no credits: the posted-count record is not read. */
static void test_read_record(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make_read(bed, 0, 20 * MTU);
    uint64_t reads = bed_counter(bed, 1, "responder_rq_record_reads");

    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN, 0, 20 * MTU, 1);
    bed_counted(bed, 1, "responder_rq_record_reads", reads + 2);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/responder/4.5/scatter", test_scatter);
    test_add("/responder/4.5/entry-update", test_entry_update);
    test_add("/responder/4.5/entry-release", test_entry_release);
    test_add("/responder/4.5/zero", test_send_zero);
    test_add("/responder/4.5/rnr", test_rnr);
    test_add("/responder/4.5/too-long", test_send_too_long);
    test_add("/responder/4.5/bad-entry", test_send_bad_entry);
    test_add("/responder/4.5/cq-overrun", test_cq_overrun);
    test_add("/responder/4.5/cq-overrun-owing", test_cq_overrun_owing);
    test_add("/responder/4.5/solicited", test_solicited);
    test_add("/responder/4.6/write", test_write);
    test_add("/responder/4.6/ack-req", test_ack_req);
    test_add("/responder/4.6/imm", test_write_imm);
    test_add("/responder/4.7/read", test_read);
    test_add("/responder/4.7/atomics", test_atomics);
    test_add("/responder/4.7/limit", test_rd_atomic_limit);
    test_add("/responder/4.7/deregistered", test_read_deregistered);
    test_add("/responder/4.7/read-record", test_read_record);
    return g_test_run();
}
