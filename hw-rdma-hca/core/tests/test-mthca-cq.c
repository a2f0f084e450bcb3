/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues of an InfiniHost III Lx: numbers with tags, arming, consumer
 * counters in records, resizing.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "lib-card.h"
#include "lib-mthca.h"
#include "lib-test.h"

#define CQN 0xa50023u /* with a tag */

static MthcaCq new_cq(Mthca *m)
{
    return (MthcaCq) {
        .cqn = CQN,
        .mr = mthca_mr(m, 1, 0),
        .log_size = 4,
        .uar = 2,
        .ci_record = 0x7fff, /* from the end, and from the beginning */
        .arm_record = 0,
    };
}

/* A completion of a QP that is not there. */
static bool post(Mthca *m, uint32_t cqn, bool solicited, uint8_t syndrome)
{
    HcaCompletion completion = {
        .qpn = 0x123456,
        .opcode = 0x0a,
        .is_send = !solicited,
        .solicited = solicited,
        .syndrome = syndrome,
    };
    HcaQp qp = { .qpn = completion.qpn };
    bool posted = hca_cq_post(m->host->hca->cm, HCA_V2P_RTC, &qp, cqn,
                              &completion);

    lab_run(m->host->lab);
    return posted;
}

/* Events of the CQ since the last call; its EQ is armed again. */
static unsigned events_of(Mthca *m, uint32_t cqn)
{
    MthcaEq *eq = &m->eq[MTHCA_EQ_COMP];
    struct mthca_eqe eqe;
    unsigned n = 0;

    lab_run(m->host->lab);
    while (mthca_eq_take(m, eq, &eqe)) {
        g_assert_cmphex(eqe.type, ==, HCA_EVENT_COMP);
        g_assert_cmphex(GUINT32_FROM_BE(eqe.object.number), ==, cqn);
        n++;
    }
    mthca_eq_arm(m, 1u << eq->eqn);
    return n;
}

/* By its number with the tag, and no other. */
static void test_cq_numbers(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaCq cq, other;

    mthca_probe(m);
    cq = new_cq(m);
    g_assert_cmphex(mthca_sw2hw_cq(m, &cq), ==, 0);
    other = cq;
    other.cqn = CQN + 0x10000;
    g_assert_cmphex(mthca_sw2hw_cq(m, &other), ==, MTHCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(mthca_hw2sw_cq(m, &other), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    other.cqn = 0x1000000 | CQN;
    g_assert_cmphex(mthca_hw2sw_cq(m, &other), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_false(post(m, CQN + 0x10000, false, 0));
    g_assert_true(post(m, CQN, false, 0));
    g_assert_cmphex(mthca_hw2sw_cq(m, &cq), ==, 0);
    cq.cqn = CQN + 0x10000;
    g_assert_cmphex(mthca_sw2hw_cq(m, &cq), ==, 0);
    g_assert_false(post(m, CQN, false, 0));
    g_assert_true(post(m, cq.cqn, false, 0));
    mthca_lab_free(lab, m);
}

/* One event for each arm, at once if there is what none has told of. */
static void test_cq_arm(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    struct mthca_cqe cqe;
    MthcaCq cq;

    mthca_probe(m);
    cq = new_cq(m);
    g_assert_cmphex(mthca_sw2hw_cq(m, &cq), ==, 0);
    g_assert_true(post(m, CQN, false, 0));
    g_assert_cmpuint(events_of(m, CQN), ==, 0);
    for (unsigned i = 0; i < 5; i++) {
        mthca_cq_arm(m, &cq, MTHCA_CQ_DB_ARM_NEXT, i & 1);
        g_assert_cmpuint(events_of(m, CQN), ==, i == 0);
    }
    g_assert_true(mthca_cq_take(m, &cq, &cqe));
    g_assert_false(mthca_cq_take(m, &cq, &cqe));
    mthca_cq_arm(m, &cq, MTHCA_CQ_DB_ARM_NEXT, true);
    g_assert_cmpuint(events_of(m, CQN), ==, 0);
    g_assert_true(post(m, CQN, false, 0));
    g_assert_true(post(m, CQN, false, 0));
    g_assert_cmpuint(events_of(m, CQN), ==, 1);
    cq.ci += 2;
    /* For one that is solicited, or an error. */
    mthca_cq_arm(m, &cq, MTHCA_CQ_DB_ARM_SOLICITED, false);
    g_assert_true(post(m, CQN, false, 0));
    g_assert_cmpuint(events_of(m, CQN), ==, 0);
    g_assert_true(post(m, CQN, true, 0));
    g_assert_cmpuint(events_of(m, CQN), ==, 1);
    cq.ci += 2;
    mthca_cq_arm(m, &cq, MTHCA_CQ_DB_ARM_SOLICITED, true);
    g_assert_true(post(m, CQN, false, HCA_SYNDROME_WR_FLUSH_ERR));
    g_assert_cmpuint(events_of(m, CQN), ==, 1);
    mthca_lab_free(lab, m);
}

/* Its consumer counter is read from its record; without one it overruns. */
static void test_cq_ci(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    struct mthca_cqe cqe;
    MthcaEq *async;
    struct mthca_eqe eqe;
    MthcaCq cq;

    mthca_probe(m);
    cq = new_cq(m);
    g_assert_cmphex(mthca_sw2hw_cq(m, &cq), ==, 0);
    for (unsigned i = 0; i < 100; i++) {
        g_assert_true(post(m, CQN, false, 0));
        g_assert_true(mthca_cq_take(m, &cq, &cqe));
        g_assert_cmphex(GUINT32_FROM_BE(cqe.my_qpn), ==, 0x123456);
        mthca_cq_consume(m, &cq);
    }
    for (unsigned i = 0; i < 16; i++) {
        g_assert_true(post(m, CQN, false, 0));
    }
    /* The record's page goes: nothing has been consumed that is known of. */
    g_assert_cmphex(mthca_unmap(m, 2 * 0x40000 + 0x3f000, 1), ==, 0);
    g_assert_false(post(m, CQN, false, 0));
    async = &m->eq[MTHCA_EQ_ASYNC];
    g_assert_true(mthca_eq_take(m, async, &eqe));
    g_assert_cmphex(eqe.type, ==, HCA_EVENT_CQ_ERROR);
    g_assert_cmphex(GUINT32_FROM_BE(eqe.cq.cqn), ==, CQN);
    g_assert_cmphex(eqe.cq.syndrome, ==, HCA_CQ_ERROR_OVERRUN);
    mthca_lab_free(lab, m);
}

/* RESIZE_CQ: what comes later lies in the other buffer, by the same counter. */
static void test_cq_resize(void)
{
    struct mthca_resize_cq resize = { .logsize = GUINT32_TO_BE(6u << 24) };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    struct mthca_cqe cqe;
    MthcaCq cq;
    MthcaMr *mr;

    mthca_probe(m);
    cq = new_cq(m);
    mr = mthca_mr(m, 1, 0);
    g_assert_cmphex(mthca_sw2hw_cq(m, &cq), ==, 0);
    for (unsigned i = 0; i < 20; i++) {
        g_assert_true(post(m, CQN, false, 0));
        g_assert_true(mthca_cq_take(m, &cq, &cqe));
        mthca_cq_consume(m, &cq);
    }
    host_fill(m->host, mr->page[0], 0xff, HOST_PAGE_SIZE);
    resize.lkey = GUINT32_TO_BE(mr->key);
    g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_RESIZE_CQ, &resize,
                                 sizeof(resize), CQN, 1),
                    ==, 0);
    g_assert_true(post(m, CQN, false, 0));
    g_assert_false(mthca_cq_take(m, &cq, &cqe));
    host_read(m->host, mr->page[0] + 20 * 32, &cqe, sizeof(cqe));
    g_assert_cmphex(cqe.owner, ==, MTHCA_OWNER_SW);
    resize.start_l = GUINT32_TO_BE(64);
    g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_RESIZE_CQ, &resize,
                                 sizeof(resize), CQN, 1),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    mthca_lab_free(lab, m);
}

/* Contexts that are none, each by one thing. */
static void test_cq_refused(void)
{
    static const struct {
        unsigned at;
        uint32_t flip;
    } wrong[] = {
        { 0x00, 0x90000000 }, /* it has failed */
        { 0x00, 0x00000100 }, /* a state that there is not */
        { 0x08, 0x00000010 }, /* not at an entry */
        { 0x0c, 0x1f000000 }, /* larger than there are */
        { 0x0c, 0x00800000 }, /* a page that is none */
        { 0x14, 0x00000010 }, /* no such EQ */
        { 0x18, 0x01000000 }, /* no such PD */
        { 0x34, 0x00008000 }, /* a record that its page has not */
    };
    struct mthca_cqc cqc;
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaCq cq;

    mthca_probe(m);
    cq = new_cq(m);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        mthca_put_cqc(&cq, m->pd, 1, &cqc);
        *(uint32_t *)((uint8_t *)&cqc +
                      wrong[i].at) ^= GUINT32_TO_BE(wrong[i].flip);
        g_assert_cmphex(
            mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc), CQN, 0),
            ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    g_assert_cmphex(mthca_sw2hw_cq(m, &cq), ==, 0);
    /* Its EQ is in use. */
    g_assert_cmphex(mthca_hw2sw_eq(m, &m->eq[MTHCA_EQ_COMP]), ==,
                    MTHCA_STAT_RESOURCE_BUSY);
    mthca_lab_free(lab, m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/cq/numbers", test_cq_numbers);
    test_add("/mthca/cq/arm", test_cq_arm);
    test_add("/mthca/cq/consumer", test_cq_ci);
    test_add("/mthca/cq/resize", test_cq_resize);
    test_add("/mthca/cq/refused", test_cq_refused);
    return g_test_run();
}
