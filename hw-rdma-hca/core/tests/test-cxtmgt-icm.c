/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contexts in the guest's memory: what the card writes to ICM, what it takes
 * from there, and ICM that is not there (context document 5.3 to 5.6).
 */
#include <string.h>

#include "lib-cxtmgt.h"
#include "lib-test.h"

#define RC RDMA_HCA_QP_ST_RC

static void eq_doorbell(Fix *fix, uint32_t eqn, uint32_t value)
{
    hca_eq_doorbell(fix->cm, eqn, RDMA_HCA_GET(RDMA_HCA_EQ_DB_CI, value),
                    RDMA_HCA_EQ_DB_CI, value & RDMA_HCA_EQ_DB_ARM);
}

/* ICM that is not there */
static void test_icm_missing(void)
{
    struct rdma_hca_eqc eqc;
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(hca_cxtmgt_unmap_icm(fix.cm, FIX_QPC_BASE, 33), ==, 0);
    g_assert_cmphex(hca_cxtmgt_unmap_icm(fix.cm, FIX_QPC_BASE, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_RST2INIT, FIX_QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_null(hca_qp_find(fix.cm, FIX_QPN));
    cqc = fix_make_cqc(&fix, FIX_EQN, FIX_LOG_CQ, 0);
    g_assert_cmphex(fix_sw2hw_cq(&fix, 3, &cqc), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 2, RDMA_HCA_EQ_STATE_ARMED);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 2, &eqc), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    /* Mapped, but onto registers of a device. */
    g_assert_cmphex(hca_cxtmgt_map_icm(fix.cm, FIX_QPC_BASE, RAM_HOLE, 33), ==,
                    0);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_RST2INIT, FIX_QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmpuint(hca_cxt_live(fix.cm)->qps, ==, 0);
    fix_free(&fix);
}

/*
 * ICM goes away under what is in hardware. A command that changes something
 * changes all or nothing; what goes may go.
 */
static void test_icm_gone(void)
{
    const uint64_t comm_est = UINT64_C(1) << HCA_EVENT_COMM_EST;
    struct rdma_hca_qpc before, after;
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix);
    fix_new_eq(&fix, 2, FIX_LOG_EQ);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_INIT);
    g_assert_cmphex(hca_cxtmgt_unmap_icm(fix.cm, FIX_QPC_BASE, 33), ==, 0);
    hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &before);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_INIT2RTR, FIX_QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_INIT2INIT, FIX_QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &after);
    g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, FIX_LOG_CQ + 1, 77),
                    ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, FIX_CQN, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.lkey), ==, FIX_KEY);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, comm_est, false), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, FIX_EQN, comm_est, true), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    hca_qp_event(fix.cm, hca_qp_find(fix.cm, FIX_QPN), HCA_EVENT_COMM_EST);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 1);
    g_assert_cmpuint(fix_eq_producer(&fix, 2), ==, 0);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->icm_write_errors, ==, 5);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_2ERR, FIX_QPN, RC, 0), ==, 0);
    fix_qp_reset(&fix, FIX_QPN);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, FIX_CQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, FIX_EQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, 2), ==, 0);
    fix_free(&fix);
}

static void test_init_limits(void)
{
    const uint64_t space = (uint64_t)HCA_ICM_MAX_PAGES << 12;
    const struct {
        HcaCxtPlaces places;
        uint8_t status;
    } bad[] = {
        { { .qpc = { 0, FIX_LOG_QPS + 1 } }, RDMA_HCA_STAT_EXCEED_LIM },
        { { .cqc = { 0, 255 } }, RDMA_HCA_STAT_EXCEED_LIM },
        { { .srqc = { 0, FIX_LOG_SRQS + 1 } }, RDMA_HCA_STAT_EXCEED_LIM },
        { { .qpc = { space, 0 } }, RDMA_HCA_STAT_BAD_PARAM },
        { { .cqc = { space - 64, 1 } }, RDMA_HCA_STAT_BAD_PARAM },
        { { .eqc = { UINT64_MAX - 63, 0 } }, RDMA_HCA_STAT_BAD_PARAM },
        { { .srqc = { space - 64, 1 } }, RDMA_HCA_STAT_BAD_PARAM },
        { { .srqc = { 32, 0 } }, RDMA_HCA_STAT_BAD_PARAM },
    };
    struct rdma_hca_qpc qpc = fix_make_qpc(RC, 0);
    Fix fix;

    fix_init(&fix);
    hca_cxtmgt_close(fix.cm);
    /* Nothing answers before INIT_HCA. */
    g_assert_cmphex(fix_modify_qp(&fix, HCA_QP_RST2INIT, 0, &qpc, false), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    eq_doorbell(&fix, FIX_EQN, 0);
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_DISARMED, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(hca_cxtmgt_init(fix.cm, &bad[i].places), ==,
                        bad[i].status);
    }
    fix_free(&fix);
}

/* Context document 5.3 to 5.6: what is in ICM, and what is on the card */

static const void *context_at(Fix *fix, uint64_t base, uint32_t index,
                              size_t size)
{
    return ram_at(fix->ram, fix->icm + base + index * size);
}

static void expect_zeros(const void *context, size_t size)
{
    const uint8_t *byte = context;

    for (size_t i = 0; i < size; i++) {
        g_assert_cmphex(byte[i], ==, 0);
    }
}

/* DMA_PROC, and writectx: whole contexts; parts; zeros when they go */
static void test_icm_written(void)
{
    const struct rdma_hca_cqc *cqc;
    const struct rdma_hca_eqc *eqc;
    const struct rdma_hca_qpc *qpc;
    Fix fix;
    FixQueues q = fix_init(&fix);

    qpc = context_at(&fix, FIX_QPC_BASE, FIX_QPN, RDMA_HCA_QPC_SIZE);
    cqc = context_at(&fix, FIX_CQC_BASE, FIX_CQN, RDMA_HCA_CQC_SIZE);
    eqc = context_at(&fix, FIX_EQC_BASE, FIX_EQN, RDMA_HCA_EQC_SIZE);
    g_assert_cmpuint(GUINT32_FROM_BE(cqc->start_l), ==, q.cq);
    g_assert_cmpuint(GUINT32_FROM_BE(cqc->cqn), ==, FIX_CQN);
    g_assert_cmpuint(GUINT32_FROM_BE(eqc->start_l), ==, q.eq);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_l), ==, UINT32_MAX);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_INIT);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc->local_qpn), ==, FIX_QPN);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc->snd_wqe_len), ==, 0x1000);

    g_assert_cmphex(
        hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, FIX_LOG_CQ + 1, FIX_KEY), ==, 0);
    g_assert_cmpuint(RDMA_HCA_GET(RDMA_HCA_CQC_LOGSIZE,
                                  GUINT32_FROM_BE(cqc->logsize_usrpage)),
                     ==, FIX_LOG_CQ + 1);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, FIX_EQN, 0xf0, true), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_l), ==, 0xffffff0f);

    fix_qp_reset(&fix, FIX_QPN);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc->flags)), ==,
        RDMA_HCA_QP_STATE_RST);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, FIX_CQN), ==, 0);
    expect_zeros(cqc, sizeof(*cqc));
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, FIX_EQN), ==, 0);
    expect_zeros(eqc, sizeof(*eqc));
    fix_free(&fix);
}

/* RD_REQ, DATA_WR, RESP_OUT: an engine's write of the state goes to ICM. */
static void test_key_engine_write(void)
{
    const struct rdma_hca_qpc *qpc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qpc = context_at(&fix, FIX_QPC_BASE, FIX_QPN, RDMA_HCA_QPC_SIZE);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, FIX_QPN);
    qp->req.next_psn = 0x111111;
    qp->req.unacked_psn = 0x101010;
    qp->resp.expected_psn = 0x222222;
    hca_qp_set_state(fix.cm, qp, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc->flags)), ==,
        RDMA_HCA_QP_STATE_ERR);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->next_send_psn), ==, 0x111111);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->last_acked_psn), ==, 0x101010);
    g_assert_cmphex(
        RDMA_HCA_GET(RDMA_HCA_QPC_PSN, GUINT32_FROM_BE(qpc->rnr_nextrecvpsn)),
        ==, 0x222222);
    fix_free(&fix);
}

/* RD_REQ, RESP_OUT: PSNs are read live; to ICM they go with the state. */
static void test_key_engine_read(void)
{
    struct rdma_hca_qpc got;
    const struct rdma_hca_qpc *qpc;
    Fix fix;

    fix_init(&fix);
    qpc = context_at(&fix, FIX_QPC_BASE, FIX_QPN, RDMA_HCA_QPC_SIZE);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->next_send_psn), ==, 0x123456);
    hca_qp_find(fix.cm, FIX_QPN)->req.next_psn = 0x111111;
    g_assert_cmphex(hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &got), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(got.next_send_psn), ==, 0x111111);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->next_send_psn), ==, 0x123456);
    fix_free(&fix);
}

/* No readctx: what the guest writes over its contexts changes nothing. */
static void test_icm_not_believed(void)
{
    struct rdma_hca_qpc qpc[2];
    struct rdma_hca_cqc cqc[2];
    struct rdma_hca_eqc eqc[2];
    Fix fix;

    fix_init(&fix);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &qpc[i]), ==, 0);
        g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, FIX_CQN, &cqc[i]), ==, 0);
        g_assert_cmphex(hca_cxtmgt_query_eq(fix.cm, FIX_EQN, &eqc[i]), ==, 0);
        memset(ram_at(fix.ram, fix.icm), 0xff, FIX_ICM_PAGES * RAM_PAGE);
    }
    g_assert_cmpmem(&qpc[0], sizeof(qpc[0]), &qpc[1], sizeof(qpc[1]));
    g_assert_cmpmem(&cqc[0], sizeof(cqc[0]), &cqc[1], sizeof(cqc[1]));
    g_assert_cmpmem(&eqc[0], sizeof(eqc[0]), &eqc[1], sizeof(eqc[1]));
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/cxtmgt/icm/missing", test_icm_missing);
    test_add("/cxtmgt/icm/gone", test_icm_gone);
    test_add("/cxtmgt/icm/limits", test_init_limits);
    test_add("/cxtmgt/5.3/written", test_icm_written);
    test_add("/cxtmgt/5.4/engine-write", test_key_engine_write);
    test_add("/cxtmgt/5.4/engine-read", test_key_engine_read);
    test_add("/cxtmgt/5.5/not-believed", test_icm_not_believed);
    return g_test_run();
}
