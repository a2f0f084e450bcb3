/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The context manager's completion queues (context document 3.2.5).
 */
#include <string.h>

#include "lib-cxtmgt.h"
#include "lib-test.h"

#define RC RDMA_HCA_QP_ST_RC

static const struct rdma_hca_cqe *cqe_at(Fix *fix, uint64_t queue,
                                         uint32_t index)
{
    const struct rdma_hca_cqe *first = ram_at(fix->ram, fix->queues + queue);

    return &first[index & ((1u << FIX_LOG_CQ) - 1)];
}

static void test_cq_entries(void)
{
    Fix fix;
    FixQueues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    for (uint32_t i = 0; i < 40; i++) {
        const struct rdma_hca_cqe *cqe = cqe_at(&fix, q.cq, i);

        memset((void *)cqe, RDMA_HCA_OWNER_HW, sizeof(*cqe));
        fix_post(&fix, qp, false);
        g_assert_cmphex(GUINT32_FROM_LE(cqe->my_qpn), ==, fix_cqe.qpn);
        g_assert_cmphex(GUINT32_FROM_LE(cqe->ctrl), ==, 0x0000000a);
        fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_DISARMED, i + 1);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cqes, ==, 40);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->eqes, ==, 0);
    fix_free(&fix);
}

/* Arming: one event for each, at once if there is something already. */
static void test_cq_arm(void)
{
    Fix fix;
    FixQueues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);
    uint32_t ci = 0;

    fix_post(&fix, qp, true);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 0);
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_NEXT, ci);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 1);
    fix_expect_eqe(&fix, q.eq, FIX_LOG_EQ, 0, RDMA_HCA_EVENT_COMP, FIX_CQN);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 1);
    /* Fired: no more until armed again. */
    fix_post(&fix, qp, true);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 1);
    ci = 2;
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_NEXT, ci);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 1);
    fix_post(&fix, qp, false);
    fix_post(&fix, qp, false);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 2);
    ci = 4;
    hca_eq_doorbell(fix.cm, FIX_EQN, 2, RDMA_HCA_EQ_DB_CI, false);
    /* Solicited only: not for others, at once for one before. */
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_SOLICITED, ci);
    fix_post(&fix, qp, false);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 2);
    fix_post(&fix, qp, true);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 3);
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_SOLICITED, ci);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 4);
    ci = 6;
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_SOLICITED, ci);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 4);
    /* ARM_NEXT is not weakened by ARM_SOLICITED. */
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_NEXT, ci);
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_SOLICITED, ci);
    fix_post(&fix, qp, false);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 5);
    g_assert_cmpuint(fix.ram->msix[FIX_EQN], ==, 1);
    fix_free(&fix);
}

/*
 * A program that arms when an event has woken it, and takes one entry for each
 * event, as `ib_send_lat -e` does, on a CQ with an EQ of its own.
 */
typedef struct Waiter {
    Fix fix;
    HcaQp *qp;
    uint32_t ci;
    uint32_t events; /* taken */
    uint32_t added;  /* entries */
} Waiter;

#define WAITER_EQN 2
#define WAITER_LOG_EQ 7

static void waiter_init(Waiter *w, uint32_t first)
{
    HcaCq *cq;

    *w = (Waiter) { .ci = first };
    fix_init_bare(&w->fix);
    fix_new_eq(&w->fix, WAITER_EQN, WAITER_LOG_EQ);
    fix_new_cq(&w->fix, FIX_CQN, WAITER_EQN, 0);
    cq = hca_cq_find(w->fix.cm, FIX_CQN);
    cq->producer_index = cq->consumer_index = first;
    cq->solicit_producer_index = cq->last_notified_index = first;
    w->qp = fix_qp(&w->fix);
}

static void waiter_add(Waiter *w, unsigned n, bool solicited)
{
    for (unsigned i = 0; i < n; i++) {
        fix_post(&w->fix, w->qp, solicited);
        w->added++;
    }
}

/* Events that it has not taken. */
static uint32_t waiter_due(Waiter *w)
{
    return fix_eq_producer(&w->fix, WAITER_EQN) - w->events;
}

static void waiter_arm(Waiter *w, HcaCqArm how)
{
    fix_cq_doorbell(&w->fix, FIX_CQN, how, w->ci);
}

static void waiter_take_event(Waiter *w)
{
    w->events++;
    hca_eq_doorbell(w->fix.cm, WAITER_EQN, w->events, RDMA_HCA_EQ_DB_CI, true);
}

static void test_cq_arm_told(void)
{
    Waiter w;

    waiter_init(&w, 0);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_add(&w, 1, false);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    waiter_take_event(&w);
    /* It has told of the entry that is there still. */
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 0);
    w.ci++;
    waiter_add(&w, 1, false);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    waiter_take_event(&w);
    /* Not of the next one, which comes before the arm. */
    waiter_add(&w, 1, false);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    waiter_take_event(&w);
    w.ci++;
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 0);
    w.ci++;
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 0);
    fix_free(&w.fix);
}

/* Arms with an old index, over and over: an event for each entry, no more. */
static void test_cq_arm_stale(void)
{
    static const HcaCqArm hows[] = { HCA_CQ_ARMED_NEXT,
                                     HCA_CQ_ARMED_SOLICITED };

    for (unsigned i = 0; i < G_N_ELEMENTS(hows); i++) {
        Waiter w;

        waiter_init(&w, UINT32_MAX - 2);
        waiter_add(&w, 5, true);
        for (unsigned k = 0; k < 100; k++) {
            waiter_arm(&w, hows[i]);
        }
        g_assert_cmpuint(waiter_due(&w), ==, 5);
        fix_free(&w.fix);
    }
}

/* The CQ's event waits for room: arms meanwhile are answered by it. */
static void test_cq_arm_full_eq(void)
{
    Waiter w;

    waiter_init(&w, 0);
    for (unsigned i = 0; i < 1u << WAITER_LOG_EQ; i++) {
        waiter_arm(&w, HCA_CQ_ARMED_NEXT);
        waiter_add(&w, 1, false);
        w.ci++;
    }
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_add(&w, 3, false);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 1u << WAITER_LOG_EQ);
    g_assert_cmpuint(hca_cxt_waiting_events(w.fix.cm), ==, 1);
    waiter_take_event(&w);
    g_assert_cmpuint(waiter_due(&w), ==, 1u << WAITER_LOG_EQ);
    /* It told of one; of the other two nobody has. */
    for (unsigned i = 0; i < 1u << WAITER_LOG_EQ; i++) {
        waiter_take_event(&w);
    }
    for (unsigned i = 0; i < 3; i++) {
        waiter_arm(&w, HCA_CQ_ARMED_NEXT);
        g_assert_cmpuint(waiter_due(&w), ==, i < 2);
        w.events += i < 2;
    }
    fix_free(&w.fix);
}

/* One step of what a program does between two waits, by its number. */
static void waiter_step(Waiter *w, unsigned step, unsigned batch, HcaCqArm how)
{
    const HcaCq *cq = hca_cq_find(w->fix.cm, FIX_CQN);

    if (step == 0) {
        waiter_take_event(w);
    } else if (step == 1) {
        waiter_arm(w, how);
    } else {
        w->ci += MIN(batch, cq->producer_index - w->ci);
    }
}

/*
 * Whenever entries come, who takes one or more of them for each event gets
 * all, in the order arm and poll as in the other; indices wrap.
 */
static void waiter_run(GRand *rand, HcaCqArm how)
{
    bool poll_first = g_rand_boolean(rand);
    unsigned batch = 1 + g_rand_int_range(rand, 0, 3);
    unsigned step = 0;
    Waiter w;

    waiter_init(&w, UINT32_MAX - 20);
    waiter_arm(&w, how);
    while (w.added < 60 || step || waiter_due(&w)) {
        bool room = UINT32_MAX - 20 + w.added - w.ci < 1u << (FIX_LOG_CQ - 1);
        bool awake = step || waiter_due(&w);

        g_assert_true(awake || room);
        if (w.added < 60 && room && (!awake || g_rand_boolean(rand))) {
            waiter_add(&w, 1, how == HCA_CQ_ARMED_SOLICITED);
        } else if (awake) {
            waiter_step(&w, poll_first && step ? 3 - step : step, batch, how);
            step = (step + 1) % 3;
        }
        g_assert_cmpuint(w.events, <=, 60);
    }
    g_assert_cmpuint(w.ci, ==, UINT32_MAX - 20 + 60);
    fix_free(&w.fix);
}

static void test_cq_arm_race(void)
{
    GRand *rand = g_rand_new_with_seed(11);

    for (unsigned i = 0; i < 200; i++) {
        waiter_run(rand, i & 1 ? HCA_CQ_ARMED_NEXT : HCA_CQ_ARMED_SOLICITED);
    }
    g_rand_free(rand);
}

/* Who polls and never arms for 2^31 entries is told of the next one all the
 * same. */
static void test_cq_arm_long_after(void)
{
    Waiter w;

    waiter_init(&w, 0);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_add(&w, 1, false);
    waiter_take_event(&w);
    for (unsigned i = 1; i < 8; i++) {
        HcaCq *cq = hca_cq_find(w.fix.cm, FIX_CQN);

        cq->producer_index = w.ci = i << 29;
        fix_cq_doorbell(&w.fix, FIX_CQN, HCA_CQ_DISARMED, w.ci);
    }
    waiter_add(&w, 1, true);
    waiter_arm(&w, HCA_CQ_ARMED_SOLICITED);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    fix_free(&w.fix);
}

/* An error is solicited; a CQ may be armed when it is made. */
static void test_cq_arm_error(void)
{
    HcaCompletion cqe = { 0 };
    struct rdma_hca_cqc cqc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp = fix_qp(&fix);
    cqc = fix_make_cqc(&fix, FIX_EQN, FIX_LOG_CQ, 0);
    cqc.flags |= GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_CQC_STATE, RDMA_HCA_CQ_STATE_ARMED_SOLICITED));
    g_assert_cmphex(fix_sw2hw_cq(&fix, 7, &cqc), ==, 0);
    hca_cq_post(fix.cm, HCA_V2P_RRC, qp, 7, &cqe);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 0);
    cqe.syndrome = HCA_SYNDROME_WR_FLUSH_ERR;
    hca_cq_post(fix.cm, HCA_V2P_RRC, qp, 7, &cqe);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 1);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, 7, &cqc), ==, 0);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_CQC_STATE, GUINT32_FROM_BE(cqc.flags)), ==,
        RDMA_HCA_CQ_STATE_FIRED);
    /* It tells of the oldest entry. */
    g_assert_cmpuint(GUINT32_FROM_BE(cqc.last_notified_index), ==, 1);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->error_cqes, ==, 1);
    fix_free(&fix);
}

static void test_cq_doorbell_bad(void)
{
    HcaCxtCounters *counters;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    counters = hca_cxt_counters(fix.cm);
    qp = fix_qp(&fix);
    for (unsigned i = 0; i < 3; i++) {
        fix_post(&fix, qp, false);
    }
    hca_cq_doorbell(fix.cm, FIX_UAR + 1, FIX_CQN, HCA_CQ_ARMED_NEXT, 0);
    g_assert_cmpuint(counters->db_bad_uar, ==, 1);
    fix_cq_doorbell(&fix, FIX_CQN + 1, HCA_CQ_ARMED_NEXT, 0);
    fix_cq_doorbell(&fix, 0xffffff, HCA_CQ_ARMED_NEXT, 0);
    g_assert_cmpuint(counters->db_bad_cqn, ==, 2);
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_NEXT, 4);
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_ARMED_NEXT, 0x7fffffff);
    g_assert_cmpuint(counters->db_bad_ci, ==, 2);
    fix_cq_doorbell(&fix, FIX_CQN, 0xff, 3);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 0);
    /* An old index does not take room away that was given. */
    fix_cq_doorbell(&fix, FIX_CQN, HCA_CQ_DISARMED, 1);
    for (unsigned i = 0; i < 8; i++) {
        fix_post(&fix, qp, false);
    }
    g_assert_cmpuint(counters->cq_overruns, ==, 0);
    fix_free(&fix);
}

/* Overrun: an event of CQ and QP each; entries lost and counted. */
static void test_cq_overrun(void)
{
    struct rdma_hca_cqc cqc;
    Fix fix;
    FixQueues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    for (unsigned i = 0; i < 8; i++) {
        fix_post(&fix, qp, false);
    }
    g_assert_cmpuint(qp->state, ==, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 5; i++) {
        fix_post(&fix, qp, false);
    }
    g_assert_cmpuint(qp->state, ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 2);
    fix_expect_eqe(&fix, q.eq, FIX_LOG_EQ, 0, RDMA_HCA_EVENT_CQ_ERROR, FIX_CQN);
    fix_expect_eqe(&fix, q.eq, FIX_LOG_EQ, 1, RDMA_HCA_EVENT_WQ_CATAS_ERROR,
                   qp->qpn);
    g_assert_cmpuint(
        GUINT32_FROM_LE(fix_eqe_at(&fix, q.eq, FIX_LOG_EQ, 0)->cq.syndrome), ==,
        RDMA_HCA_CQ_ERROR_OVERRUN);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 1);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cqes_lost, ==, 5);
    hca_cxtmgt_query_cq(fix.cm, FIX_CQN, &cqc);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_CQC_STATUS, GUINT32_FROM_BE(cqc.flags)), ==,
        RDMA_HCA_CQ_STATUS_OVERFLOW);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, 5, FIX_KEY), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    fix_free(&fix);
}

/* Who asked for it loses entries, and is told of none. */
static void test_cq_ignore_overrun(void)
{
    struct rdma_hca_cqc cqc;
    HcaCompletion cqe = fix_cqe;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp = fix_qp(&fix);
    cqc = fix_make_cqc(&fix, FIX_EQN, 2, 0);
    cqc.flags |= GUINT32_TO_BE(RDMA_HCA_CQC_IGNORE_OVERRUN);
    g_assert_cmphex(fix_sw2hw_cq(&fix, 7, &cqc), ==, 0);
    for (uint32_t i = 0; i < 10; i++) {
        cqe.byte_cnt = i;
        g_assert_true(hca_cq_post(fix.cm, HCA_V2P_RTC, qp, 7, &cqe));
    }
    for (uint32_t i = 6; i < 10; i++) {
        const struct rdma_hca_cqe *at = ram_at(
            fix.ram, fix.queues + GUINT32_FROM_BE(cqc.start_l));

        g_assert_cmpuint(GUINT32_FROM_LE(at[i & 3].byte_cnt), ==, i);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 0);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 0);
    g_assert_cmpuint(qp->state, ==, HCA_QP_RTS);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, 7, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.flags), ==,
                    RDMA_HCA_CQC_TR | RDMA_HCA_CQC_IGNORE_OVERRUN);
    /* What is lost was never consumed: there is no room for it elsewhere. */
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, 7, 3, FIX_KEY), ==,
                    RDMA_HCA_STAT_BAD_SIZE);
    hca_cq_doorbell(fix.cm, FIX_UAR, 7, HCA_CQ_ARMED_NEXT, 10);
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 0);
    g_assert_true(hca_cq_post(fix.cm, HCA_V2P_RTC, qp, 7, &cqe));
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 1);
    fix_free(&fix);
}

/* The consumer index in memory is read before that is said. */
static void test_cq_ci_record(void)
{
    uint64_t record;
    uint32_t *ci;
    struct rdma_hca_cqc cqc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, FIX_QPN);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, FIX_CQN), ==,
                    RDMA_HCA_STAT_RESOURCE_BUSY);
    fix_qp_reset(&fix, FIX_QPN);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, FIX_CQN), ==, 0);
    record = ram_alloc(fix.ram, 1) + 64;
    ci = ram_at(fix.ram, record);
    fix_new_cq(&fix, FIX_CQN, FIX_EQN, record);
    qp = fix_qp(&fix);
    for (uint32_t i = 0; i < 100; i++) {
        fix_post(&fix, qp, false);
        *ci = GUINT32_TO_LE(i);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 0);
    *ci = GUINT32_TO_LE(100);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, 0, FIX_KEY), ==, 0);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, 3, FIX_KEY), ==, 0);
    /* Nonsense in it makes no room. */
    *ci = GUINT32_TO_LE(1000);
    for (uint32_t i = 0; i < 9; i++) {
        fix_post(&fix, qp, false);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 1);
    hca_cxtmgt_query_cq(fix.cm, FIX_CQN, &cqc);
    g_assert_cmpuint(GUINT32_FROM_BE(cqc.producer_index) -
                         GUINT32_FROM_BE(cqc.consumer_index),
                     ==, 8);
    fix_free(&fix);
}

static void test_cq_unwritable(void)
{
    HcaCompletion cqe = fix_cqe;
    struct rdma_hca_cqc cqc;
    Fix fix;
    FixQueues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    cqc = fix_make_cqc(&fix, FIX_EQN, FIX_LOG_CQ, 0);
    cqc.lkey = GUINT32_TO_BE(FIX_OTHER_KEY);
    g_assert_cmphex(fix_sw2hw_cq(&fix, 3, &cqc), ==, 0);
    g_assert_false(hca_cq_post(fix.cm, HCA_V2P_EE, qp, 3, &cqe));
    hca_qp_set_state(fix.cm, qp, HCA_QP_ERR);
    g_assert_false(hca_cq_post(fix.cm, HCA_V2P_EE, qp, 3, &cqe));
    g_assert_cmpuint(fix_eq_producer(&fix, FIX_EQN), ==, 2);
    g_assert_cmpuint(
        GUINT32_FROM_LE(fix_eqe_at(&fix, q.eq, FIX_LOG_EQ, 0)->cq.syndrome), ==,
        RDMA_HCA_CQ_ERROR_ACCESS);
    fix_free(&fix);
}

/* RESIZE_CQ: entries outstanding stay where they are, new ones go on. */
static void test_cq_resize(void)
{
    struct rdma_hca_mpt mpt;
    uint64_t other;
    struct rdma_hca_cqe *cqe;
    HcaQp *qp;
    Fix fix;
    FixQueues q = fix_init(&fix);

    qp = fix_qp(&fix);
    other = ram_alloc(fix.ram, 2);
    ram_query_mpt(fix.v2p, FIX_MPT, &mpt);
    mpt.key = GUINT32_TO_BE(FIX_OTHER_KEY);
    mpt.start_l = GUINT32_TO_BE((uint32_t)other);
    mpt.length_l = GUINT32_TO_BE(2 * RAM_PAGE);
    g_assert_cmphex(ram_write_mpt(fix.v2p, FIX_MPT + 1, &mpt), ==, 0);
    for (unsigned i = 0; i < 5; i++) {
        fix_post(&fix, qp, false);
    }
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, 2, FIX_OTHER_KEY), ==,
                    RDMA_HCA_STAT_BAD_SIZE);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, 23, FIX_OTHER_KEY),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN + 1, 4, FIX_OTHER_KEY),
                    ==, RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, 99, 4, FIX_OTHER_KEY), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, FIX_CQN, 4, FIX_OTHER_KEY), ==,
                    0);
    for (unsigned i = 5; i < 16; i++) {
        fix_post(&fix, qp, false);
        cqe = (struct rdma_hca_cqe *)ram_at(fix.ram, other + q.cq) + i;
        g_assert_cmphex(GUINT32_FROM_LE(cqe->my_qpn), ==, fix_cqe.qpn);
    }
    g_assert_cmphex(GUINT32_FROM_LE(cqe_at(&fix, q.cq, 5)->ctrl) >> 24, ==,
                    RDMA_HCA_OWNER_HW);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 0);
    fix_post(&fix, qp, false);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 1);
    fix_free(&fix);
}

typedef struct BadCq {
    size_t word;
    uint32_t value;
} BadCq;

static void test_cq_values(void)
{
#define CQ_WORD(field) offsetof(struct rdma_hca_cqc, field)
    static const BadCq bad[] = {
        { CQ_WORD(flags), 0 },
        { CQ_WORD(flags), RDMA_HCA_CQC_TR | 9u << 28 },
        { CQ_WORD(flags), RDMA_HCA_CQC_TR | 2u << 8 },
        { CQ_WORD(flags), RDMA_HCA_CQC_TR | 10u << 8 },
        { CQ_WORD(start_l), 8 },
        { CQ_WORD(logsize_usrpage), 23u << 24 },
        { CQ_WORD(logsize_usrpage), 255u << 24 },
        { CQ_WORD(logsize_usrpage), RDMA_HCA_NUM_UARS },
        { CQ_WORD(comp_eqn), FIX_EQN + 1 },
        { CQ_WORD(comp_eqn), UINT32_MAX },
        { CQ_WORD(pd), 1u << FIX_LOG_PDS },
        { CQ_WORD(ci_db_l), 2 },
    };
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        cqc = fix_make_cqc(&fix, FIX_EQN, 0, 0);
        ((__be32 *)&cqc)[bad[i].word / 4] = GUINT32_TO_BE(bad[i].value);
        g_assert_cmphex(fix_sw2hw_cq(&fix, 1, &cqc), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
    }
    cqc = fix_make_cqc(&fix, FIX_EQN, 0, 0);
    g_assert_cmphex(fix_sw2hw_cq(&fix, FIX_CQN, &cqc), ==,
                    RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(fix_sw2hw_cq(&fix, 1u << FIX_LOG_CQS, &cqc), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, 1), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, UINT32_MAX, &cqc), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmpuint(hca_cxt_live(fix.cm)->cqs, ==, 1);
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/cxtmgt/cq/entries", test_cq_entries);
    test_add("/cxtmgt/cq/arm", test_cq_arm);
    test_add("/cxtmgt/cq/arm-told", test_cq_arm_told);
    test_add("/cxtmgt/cq/arm-stale", test_cq_arm_stale);
    test_add("/cxtmgt/cq/arm-full-eq", test_cq_arm_full_eq);
    test_add("/cxtmgt/cq/arm-race", test_cq_arm_race);
    test_add("/cxtmgt/cq/arm-long-after", test_cq_arm_long_after);
    test_add("/cxtmgt/cq/arm-error", test_cq_arm_error);
    test_add("/cxtmgt/cq/doorbell-bad", test_cq_doorbell_bad);
    test_add("/cxtmgt/cq/overrun", test_cq_overrun);
    test_add("/cxtmgt/cq/ignore-overrun", test_cq_ignore_overrun);
    test_add("/cxtmgt/cq/ci-record", test_cq_ci_record);
    test_add("/cxtmgt/cq/unwritable", test_cq_unwritable);
    test_add("/cxtmgt/cq/resize", test_cq_resize);
    test_add("/cxtmgt/cq/values", test_cq_values);
    return g_test_run();
}
