/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The context manager's event queues (context document 3.2.4).
 */
#include "lib-cxtmgt.h"
#include "lib-test.h"

#define RC RDMA_HCA_QP_ST_RC

/* Every CQ fires into an EQ of four entries; none is lost. */
static void test_eq_full_completions(void)
{
    HcaCompletion cqe = fix_cqe;
    bool seen[1u << FIX_LOG_CQS] = { 0 };
    uint32_t ci = 0;
    Fix fix;
    FixQueues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    for (uint32_t cqn = 3; cqn < 1u << FIX_LOG_CQS; cqn++) {
        fix_new_cq(&fix, cqn, FIX_EQN, 0);
        fix_cq_doorbell(&fix, cqn, HCA_CQ_ARMED_NEXT, 0);
        hca_cq_post(fix.cm, HCA_V2P_EE, qp, cqn, &cqe);
    }
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 4);
    /* One of those that wait goes away before its turn. */
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, 20), ==, 0);
    while (ci < fix_eq_producer(&fix, FIX_EQN)) {
        const struct rdma_hca_eqe *eqe = fix_eqe_at(&fix, q.eq, FIX_LOG_EQ,
                                                    ci++);

        g_assert_cmphex(eqe->type, ==, RDMA_HCA_EVENT_COMP);
        seen[GUINT32_FROM_LE(eqe->cq.cqn)] = true;
        hca_eq_doorbell(fix.cm, FIX_EQN, ci, RDMA_HCA_EQ_DB_CI, false);
    }
    for (uint32_t cqn = 3; cqn < 1u << FIX_LOG_CQS; cqn++) {
        g_assert_cmpint(seen[cqn], ==, cqn != 20);
    }
    fix_free(&fix);
}

static void qp_event(Fix *fix, uint8_t type, uint32_t qpn)
{
    hca_qp_event(fix->cm, hca_qp_find(fix->cm, qpn), type);
}

/* In place of any other source's, and of the command unit's. */
static HcaEventPlace source, command;

static void any_event(Fix *fix, uint8_t type, uint32_t number)
{
    HcaEvent event = { .type = type, .number = number };

    hca_eq_event(fix->cm, &event, &source);
}

static void command_event(Fix *fix, uint16_t token, uint8_t status,
                          uint64_t out_param)
{
    HcaEvent event = {
        .type = HCA_EVENT_CMD,
        .number = token,
        .status = status,
        .out_param = out_param,
    };

    hca_eq_event(fix->cm, &event, &command);
}

static void port_event(Fix *fix, uint8_t subtype)
{
    hca_port_change_event(fix->cm, subtype);
}

/* Take all entries; how many there were of each type and number. */
static void drain_eq(Fix *fix, uint64_t queue, unsigned count[64])
{
    struct rdma_hca_eqc eqc;
    uint32_t ci;

    hca_cxtmgt_query_eq(fix->cm, FIX_EQN, &eqc);
    ci = GUINT32_FROM_BE(eqc.consumer_index);
    while (ci < fix_eq_producer(fix, FIX_EQN)) {
        count[fix_eqe_at(fix, queue, FIX_LOG_EQ, ci++)->type]++;
        hca_eq_doorbell(fix->cm, FIX_EQN, ci, RDMA_HCA_EQ_DB_CI, false);
    }
}

static void test_eq_full_async(void)
{
    unsigned count[64] = { 0 };
    Fix fix;
    FixQueues q = fix_init(&fix);

    for (uint32_t qpn = FIX_FIRST_QPN; qpn < FIX_FIRST_QPN + 32; qpn++) {
        fix_qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_RTS);
        qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, qpn);
        qp_event(&fix, RDMA_HCA_EVENT_SQ_DRAINED, qpn);
        qp_event(&fix, RDMA_HCA_EVENT_WQ_ACCESS_ERROR, qpn);
    }
    for (unsigned i = 0; i < 5; i++) {
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
        port_event(&fix, RDMA_HCA_PORT_CHANGE_ACTIVE);
    }
    command_event(&fix, 0x55, 3, UINT64_MAX);
    g_assert_true(hca_event_waits(&command));
    /* A QP that is gone has no events any more. */
    fix_qp_reset(&fix, 31);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 4);
    drain_eq(&fix, q.eq, count);
    g_assert_false(hca_event_waits(&command));
    g_assert_cmpuint(count[RDMA_HCA_EVENT_COMM_EST], ==, 31);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_SQ_DRAINED], ==, 31);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_WQ_ACCESS_ERROR], ==, 31);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_PORT_CHANGE], ==, 2);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_CMD], ==, 1);
    fix_free(&fix);
}

static void port_mng(Fix *fix, uint32_t changes)
{
    hca_port_mng_event(fix->cm, changes);
}

/* What a manager changes while the queue is full is told in one. */
static void test_eq_full_port_mng(void)
{
    const struct rdma_hca_eqe *eqe;
    Fix fix;
    FixQueues q = fix_init(&fix);

    port_mng(&fix, 0x10);
    fix_expect_eqe(&fix, q.eq, FIX_LOG_EQ, 0, RDMA_HCA_EVENT_PORT_MNG, 1);
    eqe = fix_eqe_at(&fix, q.eq, FIX_LOG_EQ, 0);
    g_assert_cmphex(GUINT32_FROM_LE(eqe->port.changes), ==, 0x10);
    for (unsigned i = 0; i < 3; i++) {
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
    }
    port_mng(&fix, 0x01);
    port_mng(&fix, 0x08);
    port_mng(&fix, 0x01);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 1);
    hca_eq_doorbell(fix.cm, FIX_EQN, 4, RDMA_HCA_EQ_DB_CI, false);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 5);
    eqe = fix_eqe_at(&fix, q.eq, FIX_LOG_EQ, 4);
    g_assert_cmphex(eqe->type, ==, RDMA_HCA_EVENT_PORT_MNG);
    g_assert_cmphex(GUINT32_FROM_LE(eqe->port.changes), ==, 0x09);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 0);
    fix_free(&fix);
}

/* CQ_ERROR waits like the others; the CQ may go first. */
static void test_eq_full_cq_error(void)
{
    unsigned count[64] = { 0 };
    HcaQp *qp;
    Fix fix;
    FixQueues q = fix_init(&fix);

    fix_qp_to(&fix, 9, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 4; i++) {
        any_event(&fix, RDMA_HCA_EVENT_COMM_EST, 9);
    }
    qp = fix_qp(&fix);
    for (unsigned i = 0; i < 9; i++) {
        fix_post(&fix, qp, false);
    }
    drain_eq(&fix, q.eq, count);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_CQ_ERROR], ==, 1);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_COMM_EST], ==, 4);
    fix_free(&fix);
}

/*
 * Events of many QPs wait for a full EQ. A doorbell does no more than it can
 * deliver, be it of this queue or of another, and none is lost.
 */
static void test_eq_wait_work(void)
{
    const HcaCxtCounters *counters;
    uint32_t ci = 0, n = 0;
    uint64_t waits;
    Fix fix;

    fix_init(&fix);
    counters = hca_cxt_counters(fix.cm);
    fix_new_eq(&fix, 2, FIX_LOG_EQ);
    for (uint32_t qpn = FIX_FIRST_QPN; qpn < 1u << FIX_LOG_QPS; qpn++) {
        fix_qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_RTS);
        qp_event(&fix, HCA_EVENT_COMM_EST, qpn);
        qp_event(&fix, HCA_EVENT_WQ_ACCESS_ERROR, qpn);
        n += 2;
    }
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==,
                     n - (1u << FIX_LOG_EQ));
    for (unsigned i = 0; i < 10; i++) {
        waits = counters->eq_waits;
        hca_eq_doorbell(fix.cm, FIX_EQN, 0, RDMA_HCA_EQ_DB_CI, true);
        hca_eq_doorbell(fix.cm, 2, 0, RDMA_HCA_EQ_DB_CI, true);
        g_assert_cmpuint(counters->eq_waits - waits, <=, 1);
    }
    while (ci < n) {
        waits = counters->eq_waits;
        hca_eq_doorbell(fix.cm, FIX_EQN, ++ci, RDMA_HCA_EQ_DB_CI, true);
        g_assert_cmpuint(counters->eq_waits - waits, <=, 1);
        g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==,
                         MIN(ci + (1u << FIX_LOG_EQ), n));
    }
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 0);
    g_assert_cmpuint(counters->eqe_types[HCA_EVENT_COMM_EST], ==, n / 2);
    g_assert_cmpuint(counters->eqe_types[HCA_EVENT_WQ_ACCESS_ERROR], ==, n / 2);
    fix_free(&fix);
}

/* What waits goes to whoever asks for its type, or to nobody. */
static void test_eq_wait_remapped(void)
{
    const uint64_t comm_est = UINT64_C(1) << HCA_EVENT_COMM_EST;
    const uint64_t access = UINT64_C(1) << HCA_EVENT_WQ_ACCESS_ERROR;
    Fix fix;

    fix_init(&fix);
    fix_new_eq(&fix, 2, FIX_LOG_EQ);
    for (uint32_t qpn = FIX_FIRST_QPN; qpn < FIX_FIRST_QPN + 6; qpn++) {
        fix_qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_RTS);
        qp_event(&fix, HCA_EVENT_COMM_EST, qpn);
        qp_event(&fix, HCA_EVENT_WQ_ACCESS_ERROR, qpn);
    }
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 8);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, access, false), ==, 0);
    g_assert_cmpuint(fix_eq_producer(&fix, 2), ==, 4);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 4);
    /* A QP that goes takes its events along. */
    fix_qp_reset(&fix, 5);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 3);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, FIX_EQN, comm_est, true), ==, 0);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 0);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->events_unmapped, ==, 3);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 4);
    fix_free(&fix);
}

/* Interrupts: one for each arm; at once if there is an entry. */
static void test_eq_interrupts(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    any_event(&fix, RDMA_HCA_EVENT_COMM_EST, FIX_QPN);
    any_event(&fix, RDMA_HCA_EVENT_COMM_EST, FIX_QPN);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 1);
    hca_eq_doorbell(fix.cm, FIX_EQN, 1, RDMA_HCA_EQ_DB_CI, false);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 1);
    hca_eq_doorbell(fix.cm, FIX_EQN, 1, RDMA_HCA_EQ_DB_CI, true);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 2);
    hca_eq_doorbell(fix.cm, FIX_EQN, 2, RDMA_HCA_EQ_DB_CI, true);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 2);
    any_event(&fix, RDMA_HCA_EVENT_COMM_EST, FIX_QPN);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 3);
    /* Beyond what there is, or back. */
    hca_eq_doorbell(fix.cm, FIX_EQN, 4, RDMA_HCA_EQ_DB_CI, true);
    hca_eq_doorbell(fix.cm, FIX_EQN, 1, RDMA_HCA_EQ_DB_CI, true);
    hca_eq_doorbell(fix.cm, 7, 0, RDMA_HCA_EQ_DB_CI, true);
    hca_eq_doorbell(fix.cm, UINT32_MAX, 0, RDMA_HCA_EQ_DB_CI, true);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->db_bad_ci, ==, 2);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->db_bad_eqn, ==, 2);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 3);
    /* ALWAYS_ARMED: one for each entry. */
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 5, RDMA_HCA_EQ_STATE_ALWAYS_ARMED);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 4, &eqc), ==, 0);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 4, UINT64_MAX, false), ==, 0);
    any_event(&fix, RDMA_HCA_EVENT_COMM_EST, FIX_QPN);
    any_event(&fix, RDMA_HCA_EVENT_COMM_EST, FIX_QPN);
    g_assert_cmpuint(fix.ram->msix[5], ==, 2);
    g_assert_cmpuint(fix.ram->msix_bad, ==, 0);
    fix_free(&fix);
}

/* The consumer index has 24 bits; the producer goes past them. */
static void test_eq_wrap(void)
{
    struct rdma_hca_eqc eqc;
    uint32_t ci = 0xfffffe;
    Fix fix;

    fix_init(&fix);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 2, RDMA_HCA_EQ_STATE_ARMED);
    eqc.consumer_index = eqc.producer_index = GUINT32_TO_BE(ci);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 2, &eqc), ==, 0);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, UINT64_MAX, false), ==, 0);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 20; i++) {
        any_event(&fix, RDMA_HCA_EVENT_COMM_EST, FIX_QPN);
        hca_eq_doorbell(fix.cm, 2, ++ci & RDMA_HCA_EQ_DB_CI, RDMA_HCA_EQ_DB_CI,
                        false);
    }
    g_assert_cmphex(fix_eq_producer(&fix, 2), ==, ci);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->db_bad_ci, ==, 0);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->eq_waits, ==, 0);
    fix_free(&fix);
}

/* Of a new card no EQ has any, whichever its number is. */
static void test_eq_nothing_mapped(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init_bare(&fix);
    for (unsigned eqn = 0; eqn < 1u << FIX_LOG_EQS; eqn++) {
        fix_new_eq(&fix, eqn, FIX_LOG_EQ);
        hca_cxtmgt_query_eq(fix.cm, eqn, &eqc);
        g_assert_cmphex(eqc.event_mask_h | eqc.event_mask_l, ==, 0);
    }
    fix_free(&fix);
}

/* MAP_EQ: each type goes to the EQ that asked last, or nowhere. */
static void test_eq_map(void)
{
    HcaCxtCounters *counters;
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    counters = hca_cxt_counters(fix.cm);
    fix_new_eq(&fix, 2, FIX_LOG_EQ);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned type = 1; type < 0x15; type++) {
        uint32_t before = fix_eq_producer(&fix, 2);

        g_assert_cmphex(
            hca_cxtmgt_map_eq(fix.cm, 2, UINT64_C(1) << type, false), ==, 0);
        any_event(&fix, type, FIX_QPN);
        g_assert_cmpuint(fix_eq_producer(&fix, 2), ==, before + 1);
        hca_eq_doorbell(fix.cm, 2, before + 1, RDMA_HCA_EQ_DB_CI, false);
        hca_cxtmgt_query_eq(fix.cm, 2, &eqc);
        g_assert_cmphex(GUINT32_FROM_BE(eqc.event_mask_l), ==, 1u << type);
        /* Unmapped by another it stays; by itself it goes. */
        g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, FIX_EQN, UINT64_MAX, true),
                        ==, 0);
        any_event(&fix, type, FIX_QPN);
        g_assert_cmpuint(fix_eq_producer(&fix, 2), ==, before + 2);
        hca_eq_doorbell(fix.cm, 2, before + 2, RDMA_HCA_EQ_DB_CI, false);
        g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, UINT64_MAX, true), ==, 0);
        counters->events_unmapped = 0;
        any_event(&fix, type, FIX_QPN);
        g_assert_cmpuint(counters->events_unmapped, ==, 1);
    }
    command_event(&fix, 1, 0, 0);
    g_assert_cmpuint(counters->events_unmapped, ==, 2);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 3, 1, false), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 0x7fffffff, 1, false), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    fix_free(&fix);
}

static void test_eq_life(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, FIX_EQN), ==,
                    RDMA_HCA_STAT_RESOURCE_BUSY);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, FIX_CQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, FIX_EQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, FIX_EQN), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, 1u << FIX_LOG_EQS), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_query_eq(fix.cm, FIX_EQN, &eqc), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->events_unmapped, ==, 1);
    /* Bad values. */
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, RAM_VECTORS, RDMA_HCA_EQ_STATE_ARMED);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, 0);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, 4);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.logsize = GUINT32_TO_BE(21u << 24);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.start_l = GUINT32_TO_BE(16);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.consumer_index = GUINT32_TO_BE(1);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.pd = GUINT32_TO_BE(1u << FIX_LOG_PDS);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 0, &eqc), ==, 3);
    g_assert_cmpuint(hca_cxt_live(fix.cm)->eqs, ==, 0);
    fix_free(&fix);
}

/* An EQ whose memory is refused: its status says so, and it is not tried. */
static void test_eq_unwritable(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.lkey = GUINT32_TO_BE(FIX_OTHER_KEY);
    g_assert_cmphex(fix_sw2hw_eq(&fix, 2, &eqc), ==, 0);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, UINT64_MAX, false), ==, 0);
    for (unsigned i = 0; i < 9; i++) {
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->events_lost, ==, 9);
    hca_cxtmgt_query_eq(fix.cm, 2, &eqc);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, GUINT32_FROM_BE(eqc.flags)), ==,
        RDMA_HCA_EQ_STATUS_WRITE_FAIL);
    g_assert_cmpuint(fix.ram->msix[0], ==, 0);
    fix_free(&fix);
}

/* The EQ that asked for it is told which one has failed, once it has room. */
static void test_eq_failed(void)
{
    const uint64_t port = UINT64_C(1) << HCA_EVENT_PORT_CHANGE;
    struct rdma_hca_eqc eqc;
    Fix fix;
    FixQueues q = fix_init(&fix);

    for (unsigned full = 0; full < 2; full++) {
        uint32_t next = fix_eq_producer(&fix, FIX_EQN);

        eqc = fix_make_eqc(&fix, FIX_LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
        eqc.lkey = GUINT32_TO_BE(FIX_OTHER_KEY);
        g_assert_cmphex(fix_sw2hw_eq(&fix, 2 + full, &eqc), ==, 0);
        for (unsigned i = 0; full && i < 1u << FIX_LOG_EQ; i++) {
            any_event(&fix, HCA_EVENT_COMM_EST, FIX_QPN);
            next++;
        }
        g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2 + full, port, false), ==,
                        0);
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
        g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, full);
        hca_eq_doorbell(fix.cm, FIX_EQN, next, RDMA_HCA_EQ_DB_CI, false);
        g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, next + 1);
        fix_expect_eqe(&fix, q.eq, FIX_LOG_EQ, next,
                       HCA_EVENT_LOCAL_CATAS_ERROR, 2 + full);
        hca_eq_doorbell(fix.cm, FIX_EQN, next + 1, RDMA_HCA_EQ_DB_CI, false);
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
        g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, next + 1);
    }
    fix_free(&fix);
}

/* ---- what waits goes on elsewhere ---- */

#define MOVED_SRQN 1

/* One of each source that waits, the queue being full; all again is the same. */
static void raise_all(Fix *fix)
{
    HcaQp *qp = hca_qp_find(fix->cm, 9);
    HcaSrq *srq = hca_srq_peek(fix->cm, MOVED_SRQN);

    port_event(fix, RDMA_HCA_PORT_CHANGE_DOWN);
    port_mng(fix, 0x10);
    hca_srq_tell_limit(fix->cm, srq);
    hca_srq_break(fix->cm, srq);
    hca_qp_event(fix->cm, qp, RDMA_HCA_EVENT_COMM_EST);
    hca_qp_event(fix->cm, qp, RDMA_HCA_EVENT_SQ_DRAINED);
    hca_qp_event(fix->cm, qp, RDMA_HCA_EVENT_WQ_ACCESS_ERROR);
}

static FixQueues full(Fix *fix)
{
    FixQueues q = fix_init(fix);
    HcaSrqAttr attr = {
        .pd = FIX_PD,
        .lkey = FIX_KEY,
        .len = 1 << 6,
        .entry_log = 6,
        .record = fix->queues,
    };

    g_assert_cmphex(hca_cxtmgt_sw2hw_srq(fix->cm, MOVED_SRQN, &attr), ==, 0);
    fix_qp_to(fix, 9, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 1u << FIX_LOG_EQ; i++) {
        any_event(fix, RDMA_HCA_EVENT_PATH_MIG, 9);
    }
    return q;
}

/* @n events of another that wait here, and are raised again: each comes once. */
static void expect_moved(const GArray *records, unsigned first, unsigned n)
{
    static const uint8_t types[] = {
        RDMA_HCA_EVENT_PORT_CHANGE,     RDMA_HCA_EVENT_PORT_MNG,
        RDMA_HCA_EVENT_SRQ_LIMIT,       RDMA_HCA_EVENT_SRQ_CATAS_ERROR,
        RDMA_HCA_EVENT_COMM_EST,        RDMA_HCA_EVENT_SQ_DRAINED,
        RDMA_HCA_EVENT_WQ_ACCESS_ERROR,
    };
    const HcaEvent *events = (const HcaEvent *)records->data;
    unsigned count[64] = { 0 };
    HcaStateError error;
    Fix fix;
    FixQueues q = full(&fix);

    g_assert_true(hca_event_section.load(fix.cm, &events[first], n, &error));
    raise_all(&fix);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, records->len);
    drain_eq(&fix, q.eq, count);
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        g_assert_cmpuint(count[types[i]], ==, 1);
    }
    fix_free(&fix);
}

static void test_eq_waiting_moved(void)
{
    GArray *records = g_array_new(FALSE, FALSE, hca_event_struct.size);
    HcaStateError error;
    Fix fix;

    full(&fix);
    raise_all(&fix);
    hca_event_section.save(fix.cm, records);
    fix_free(&fix);
    expect_moved(records, 0, records->len);
    for (unsigned i = 0; i < records->len; i++) {
        expect_moved(records, i, 1);
    }
    /* Of a QP and an SRQ that there are not. */
    fix_init(&fix);
    g_assert_false(
        hca_event_section.load(fix.cm, records->data, records->len, &error));
    fix_free(&fix);
    g_array_free(records, TRUE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/cxtmgt/eq/full-completions", test_eq_full_completions);
    test_add("/cxtmgt/eq/full-async", test_eq_full_async);
    test_add("/cxtmgt/eq/full-port-mng", test_eq_full_port_mng);
    test_add("/cxtmgt/eq/full-cq-error", test_eq_full_cq_error);
    test_add("/cxtmgt/eq/wait-work", test_eq_wait_work);
    test_add("/cxtmgt/eq/wait-remapped", test_eq_wait_remapped);
    test_add("/cxtmgt/eq/interrupts", test_eq_interrupts);
    test_add("/cxtmgt/eq/wrap", test_eq_wrap);
    test_add("/cxtmgt/eq/nothing-mapped", test_eq_nothing_mapped);
    test_add("/cxtmgt/eq/map", test_eq_map);
    test_add("/cxtmgt/eq/life", test_eq_life);
    test_add("/cxtmgt/eq/unwritable", test_eq_unwritable);
    test_add("/cxtmgt/eq/failed", test_eq_failed);
    test_add("/cxtmgt/eq/waiting-moved", test_eq_waiting_moved);
    return g_test_run();
}
