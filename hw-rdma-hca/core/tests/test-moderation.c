/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moderation of completion events (MODIFY_CQ): when the event of an armed CQ
 * comes, whatever is done with the CQ meanwhile.
 */
#include "lib-pair.h"

#define COUNT 4
#define PERIOD_US 100
#define PERIOD (PERIOD_US * NS_PER_US)
#define QUEUE 32 /* entries of the CQ */
/* What the making of an entry, and a command, take at most. */
#define SLACK (20 * NS_PER_US)

/* A moderated CQ of machine 0, and what fills it. */
typedef struct Fix {
    Pair *pair;
    Lab *lab;
    Driver *drv;
    Cq *cq;
    Qp *qp[2];
} Fix;

static void fix_init(Fix *fix, unsigned count, unsigned period_us)
{
    QpConfig config;
    QpAttr attr;

    *fix = (Fix) { .pair = pair_new(17, 65536) };
    fix->lab = fix->pair->lab;
    fix->drv = fix->pair->drv[0];
    fix->cq = cq_new(fix->drv, 5, 1);
    qp_attr_init(&attr);
    for (unsigned side = 0; side < 2; side++) {
        qp_config_init(&config, fix->pair->pd[side],
                       side ? fix->pair->cq[1] : fix->cq);
        fix->qp[side] = qp_new(fix->pair->drv[side], &config);
    }
    qp_connect(fix->qp[0], fix->qp[1], &attr);
    g_assert_cmphex(cq_moderate(fix->cq, count, period_us), ==, 0);
    driver_count_events(fix->drv, RDMA_HCA_EVENT_COMP);
}

static void fix_free(Fix *fix)
{
    pair_free(fix->pair);
}

static void arm(Fix *fix)
{
    cq_arm(fix->cq, false);
    lab_run(fix->lab);
}

/* @n entries, at once. */
static void add(Fix *fix, unsigned n)
{
    SendWr wr = { .opcode = RDMA_HCA_OPCODE_NOP, .flags = SEND_SIGNALED };

    for (unsigned i = 0; i < n; i++) {
        g_assert_true(qp_post_send(fix->qp[0], &wr, 1));
    }
    lab_run(fix->lab);
}

static unsigned take_all(Fix *fix)
{
    unsigned n = 0;
    Wc wc;

    while (cq_poll(fix->cq, &wc)) {
        n++;
    }
    lab_run(fix->lab);
    return n;
}

/* Events of the CQ since it was last asked. */
static void expect_events(Fix *fix, unsigned n)
{
    g_assert_cmpuint(driver_count_events(fix->drv, RDMA_HCA_EVENT_COMP), ==, n);
}

/* When the event comes that waits now. */
static int64_t event_due(Fix *fix)
{
    return hca_cxtmgt_deadline(fix->lab->host[0].hca->cm);
}

/* It comes by its time alone, @period after the first entry, just now. */
static void expect_period(Fix *fix, int64_t period)
{
    int64_t due = event_due(fix);

    g_assert_cmpint(due, <=, fix->lab->now + period);
    g_assert_cmpint(due, >, fix->lab->now + period - SLACK);
    lab_sleep(fix->lab, due - 1 - fix->lab->now);
    expect_events(fix, 0);
    lab_sleep(fix->lab, 1);
    expect_events(fix, 1);
    lab_sleep(fix->lab, 10 * period);
    expect_events(fix, 0);
}

static void test_count(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, COUNT - 1);
    expect_events(&fix, 0);
    add(&fix, 1);
    expect_events(&fix, 1);
    /* One event; nothing is left to come. */
    add(&fix, 3);
    lab_sleep(fix.lab, 10 * PERIOD);
    expect_events(&fix, 0);
    g_assert_cmpuint(pair_counter(fix.pair, 0, "cxtmgt_cqes_held"), ==,
                     COUNT - 1);
    g_assert_cmpuint(pair_counter(fix.pair, 0, "cxtmgt_cq_periods"), ==, 0);
    fix_free(&fix);
}

/* The period begins with the first entry, not with the arm or the last one. */
static void test_period(void)
{
    int64_t due;
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    lab_sleep(fix.lab, 10 * PERIOD);
    add(&fix, 1);
    due = event_due(&fix);
    lab_sleep(fix.lab, PERIOD / 2);
    add(&fix, 1);
    g_assert_cmpint(event_due(&fix), ==, due);
    expect_period(&fix, PERIOD / 2);
    g_assert_cmpuint(pair_counter(fix.pair, 0, "cxtmgt_cq_periods"), ==, 1);
    fix_free(&fix);
}

/* Without both there is none. */
static void test_none(void)
{
    static const uint16_t none[][2] = {
        { 0, 0 },          { 0, 1 }, { 1, 0 },          { UINT16_MAX, 0 },
        { 0, UINT16_MAX }, { 1, 1 }, { 1, UINT16_MAX },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(none); i++) {
        Fix fix;

        fix_init(&fix, none[i][0], none[i][1]);
        arm(&fix);
        add(&fix, 1);
        expect_events(&fix, 1);
        fix_free(&fix);
    }
}

/* More entries than the queue has are never waited for beyond the period. */
static void test_most(void)
{
    Fix fix;

    fix_init(&fix, UINT16_MAX, UINT16_MAX);
    arm(&fix);
    add(&fix, QUEUE / 2);
    expect_period(&fix, UINT16_MAX * NS_PER_US);
    g_assert_cmpuint(take_all(&fix), ==, QUEUE / 2);
    fix_free(&fix);
}

/* Arming when there is something: at once, and it tells of everything. */
static void test_arm_late(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    add(&fix, 2);
    arm(&fix);
    expect_events(&fix, 1);
    arm(&fix);
    expect_events(&fix, 0);
    add(&fix, 1);
    arm(&fix);
    expect_events(&fix, 1);
    arm(&fix);
    lab_sleep(fix.lab, 10 * PERIOD);
    expect_events(&fix, 0);
    g_assert_cmpuint(take_all(&fix), ==, 3);
    fix_free(&fix);
}

/* What was consumed is not told of; the next entry begins a new wait. */
static void test_consumed(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 2);
    lab_sleep(fix.lab, PERIOD / 2);
    g_assert_cmpuint(take_all(&fix), ==, 2);
    arm(&fix);
    lab_sleep(fix.lab, 10 * PERIOD);
    expect_events(&fix, 0);
    add(&fix, 1);
    expect_period(&fix, PERIOD);
    fix_free(&fix);
}

static void test_error(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 1);
    expect_events(&fix, 0);
    g_assert_cmphex(qp_to_err(fix.qp[0]), ==, 0);
    add(&fix, 1); /* flushed */
    expect_events(&fix, 1);
    lab_sleep(fix.lab, 10 * PERIOD);
    expect_events(&fix, 0);
    fix_free(&fix);
}

static void send_to(Fix *fix, unsigned flags)
{
    Sge sge = mr_sge(fix->pair->mr[1], 0, 8);
    SendWr wr = {
        .opcode = RDMA_HCA_OPCODE_SEND, .flags = flags, .nsge = 1, .sge = &sge
    };

    pair_post_recv(fix->pair, 0, fix->qp[0], 0, 0, 8);
    g_assert_true(qp_post_send(fix->qp[1], &wr, 1));
    lab_run(fix->lab);
}

/* An entry that was asked for as a solicited one does not wait. */
static void test_solicited(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    cq_arm(fix.cq, true);
    send_to(&fix, 0);
    lab_sleep(fix.lab, 10 * PERIOD);
    expect_events(&fix, 0);
    send_to(&fix, SEND_SOLICITED);
    expect_events(&fix, 1);
    /* Who has armed for any entry gets it as one of them. */
    g_assert_cmpuint(take_all(&fix), ==, 2);
    arm(&fix);
    cq_arm(fix.cq, true);
    send_to(&fix, SEND_SOLICITED);
    expect_events(&fix, 0);
    lab_sleep(fix.lab, PERIOD);
    expect_events(&fix, 1);
    fix_free(&fix);
}

/* MODIFY_CQ while an event waits. */
static void test_change(void)
{
    static const struct {
        uint16_t count, period_us;
        int64_t at; /* when the event comes, after the first entry */
    } changes[] = {
        { 0, 0, PERIOD / 2 },
        { 2, 1000, PERIOD / 2 },
        { 1, 1000, PERIOD / 2 },
        { 3, 1000, PERIOD },
        { 3, 20, PERIOD / 2 + 20 * NS_PER_US },
        { UINT16_MAX, UINT16_MAX, PERIOD },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        int64_t begin;
        Fix fix;

        fix_init(&fix, COUNT, PERIOD_US);
        arm(&fix);
        add(&fix, 2);
        begin = event_due(&fix) - PERIOD;
        lab_sleep(fix.lab, PERIOD / 2);
        expect_events(&fix, 0);
        g_assert_cmphex(
            cq_moderate(fix.cq, changes[i].count, changes[i].period_us), ==, 0);
        while (!driver_count_events(fix.drv, RDMA_HCA_EVENT_COMP)) {
            lab_sleep(fix.lab, 1);
            g_assert_cmpint(fix.lab->now, <, begin + changes[i].at + SLACK);
        }
        g_assert_cmpint(fix.lab->now, >=, begin + changes[i].at);
        lab_sleep(fix.lab, 1000 * PERIOD);
        expect_events(&fix, 0);
        fix_free(&fix);
    }
}

static void test_values(void)
{
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix, 0x1234, 0x5678);
    g_assert_cmphex(cq_query(fix.cq, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.moderation), ==, 0x12345678);
    /* What lies above the two is nothing. */
    g_assert_cmphex(driver_cmd(fix.drv, RDMA_HCA_CMD_MODIFY_CQ,
                               UINT64_C(0xffffffff00020003), fix.cq->cqn, 0xff,
                               UINT64_MAX, NULL),
                    ==, 0);
    g_assert_cmphex(cq_query(fix.cq, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.moderation), ==, 0x00020003);
    for (unsigned bit = 8; bit < 32; bit++) {
        g_assert_cmphex(driver_cmd(fix.drv, RDMA_HCA_CMD_MODIFY_CQ, 0,
                                   fix.cq->cqn | 1u << bit, 0, 0, NULL),
                        ==, RDMA_HCA_STAT_BAD_INDEX);
    }
    g_assert_cmphex(driver_cmd(fix.drv, RDMA_HCA_CMD_MODIFY_CQ, 0,
                               fix.cq->cqn + 1, 0, 0, NULL),
                    ==, RDMA_HCA_STAT_BAD_RES_STATE);
    fix_free(&fix);
}

/* A refused command changes nothing: the context has no place any more. */
static void test_icm(void)
{
    struct rdma_hca_cqc cqc;
    uint64_t page;
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 2);
    page = fix.drv->icm[ICM_CQC].base & ~(uint64_t)(HOST_PAGE_SIZE - 1);
    g_assert_cmphex(driver_cmd(fix.drv, RDMA_HCA_CMD_UNMAP_ICM, page, 1,
                               RDMA_HCA_ICM_CXT, 0, NULL),
                    ==, 0);
    g_assert_cmphex(cq_moderate(fix.cq, 0, 0), ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    expect_events(&fix, 0);
    g_assert_cmphex(cq_query(fix.cq, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.moderation), ==,
                    COUNT << 16 | PERIOD_US);
    lab_sleep(fix.lab, PERIOD);
    expect_events(&fix, 1);
    driver_free(fix.drv);
    fix.pair->drv[0] = NULL;
    host_reset(&fix.lab->host[0]);
    lab_run(fix.lab);
    fix.pair->drv[0] = driver_new(&fix.lab->host[0]);
    fix_free(&fix);
}

/* The CQ goes while its event waits. */
static void test_destroy(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 1);
    qp_destroy(fix.qp[0]);
    g_assert_cmphex(cq_destroy(fix.cq), ==, 0);
    lab_sleep(fix.lab, 10 * PERIOD);
    expect_events(&fix, 0);
    fix_free(&fix);
}

/* So does everything: CLOSE_HCA, or a reset (@hard). */
static void test_gone(gconstpointer hard)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 1);
    g_assert_cmpint(event_due(&fix), !=, INT64_MAX);
    if (hard) {
        host_reset(&fix.lab->host[0]);
        lab_run(fix.lab);
    } else {
        g_assert_cmphex(
            driver_cmd(fix.drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL), ==,
            0);
    }
    g_assert_cmpint(event_due(&fix), ==, INT64_MAX);
    lab_sleep(fix.lab, 10 * PERIOD);
    fix_free(&fix);
}

/* A new ring, and a smaller one, while an event waits: it comes all the same. */
static void test_resize(void)
{
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 2);
    g_assert_cmphex(cq_resize(fix.cq, 2), ==, 0);
    expect_events(&fix, 0);
    lab_sleep(fix.lab, PERIOD);
    expect_events(&fix, 1);
    g_assert_cmpuint(take_all(&fix), ==, 2);
    fix_free(&fix);
}

/* The event finds its EQ full: it comes when there is room, once. */
static void test_full_eq(void)
{
    Eq *eq;
    Fix fix;
    unsigned n;

    fix_init(&fix, COUNT, PERIOD_US);
    eq = &fix.drv->eq[EQ_COMP];
    cq_moderate(fix.cq, 0, 0);
    for (n = 0; n < 1u << eq->log_size; n++) {
        arm(&fix);
        add(&fix, 1);
        g_assert_cmpuint(take_all(&fix), ==, 1);
    }
    cq_moderate(fix.cq, COUNT, PERIOD_US);
    arm(&fix);
    add(&fix, 2);
    lab_sleep(fix.lab, PERIOD);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.lab->host[0].hca->cm), ==, 1);
    arm(&fix);
    add(&fix, COUNT);
    lab_sleep(fix.lab, PERIOD);
    expect_events(&fix, (1u << eq->log_size) + 1);
    lab_run(fix.lab);
    expect_events(&fix, 0);
    fix_free(&fix);
}

/*
 * Whenever entries come, who takes all of them for each event and arms, in
 * either order, gets all, none more than a period after it came.
 */
static void run_at_random(Fix *fix, GRand *rand, bool poll_first)
{
    unsigned added = 0, taken = 0;
    int64_t oldest = 0; /* when the first entry came that is not taken */

    arm(fix);
    while (taken < 200) {
        if (driver_count_events(fix->drv, RDMA_HCA_EVENT_COMP)) {
            if (!poll_first) {
                arm(fix);
            }
            taken += take_all(fix);
            if (poll_first) {
                arm(fix);
            }
            g_assert_cmpuint(taken, ==, added);
        } else if (added < 200 && added - taken < QUEUE / 2 &&
                   g_rand_boolean(rand)) {
            oldest = added == taken ? fix->lab->now : oldest;
            add(fix, 1);
            added++;
        } else {
            lab_sleep(fix->lab, g_rand_int_range(rand, 0, PERIOD));
            g_assert_true(added == taken ||
                          fix->lab->now < oldest + 2 * PERIOD);
        }
    }
}

static void test_random(void)
{
    GRand *rand = g_rand_new_with_seed(lab_seed(5));

    for (unsigned i = 0; i < 20; i++) {
        Fix fix;

        fix_init(&fix, 1 + g_rand_int_range(rand, 0, 8), PERIOD_US);
        run_at_random(&fix, rand, i & 1);
        fix_free(&fix);
    }
    g_rand_free(rand);
}

/* Many at once: each has its own time, whatever the order. */
static void test_many(void)
{
    SendWr wr = { .opcode = RDMA_HCA_OPCODE_NOP, .flags = SEND_SIGNALED };
    uint32_t by_period[41];
    Cq *cq[40];
    Qp *qp[40];
    Fix fix;

    fix_init(&fix, COUNT, PERIOD_US);
    for (unsigned i = 0; i < G_N_ELEMENTS(cq); i++) {
        unsigned period = 1 + i * 7 % G_N_ELEMENTS(cq);
        QpConfig config;
        QpAttr attr;

        cq[i] = cq_new(fix.drv, 2, 1);
        by_period[period] = cq[i]->cqn;
        qp_config_init(&config, fix.pair->pd[0], cq[i]);
        qp_attr_init(&attr);
        qp_attr_to(&attr, fix.drv, fix.pair->drv[1]);
        qp[i] = qp_new(fix.drv, &config);
        qp_bring_up(qp[i], &attr);
        g_assert_cmphex(cq_moderate(cq[i], COUNT, period * PERIOD_US), ==, 0);
        cq_arm(cq[i], false);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(cq); i++) {
        g_assert_true(qp_post_send(qp[i], &wr, 1));
    }
    lab_run(fix.lab);
    for (unsigned i = 0; i < G_N_ELEMENTS(cq); i++) {
        struct rdma_hca_eqe eqe;

        expect_events(&fix, 0);
        lab_sleep(fix.lab, event_due(&fix) - fix.lab->now);
        g_assert_true(driver_event(fix.drv, RDMA_HCA_EVENT_COMP, &eqe));
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.cqn), ==, by_period[i + 1]);
    }
    g_assert_cmpint(event_due(&fix), ==, INT64_MAX);
    expect_events(&fix, 0);
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/moderation/count", test_count);
    test_add("/moderation/period", test_period);
    test_add("/moderation/none", test_none);
    test_add("/moderation/most", test_most);
    test_add("/moderation/arm-late", test_arm_late);
    test_add("/moderation/consumed", test_consumed);
    test_add("/moderation/error", test_error);
    test_add_each_link("/moderation/solicited", test_solicited);
    test_add("/moderation/change", test_change);
    test_add("/moderation/values", test_values);
    test_add("/moderation/icm", test_icm);
    test_add("/moderation/destroy", test_destroy);
    test_add_data("/moderation/reset", GINT_TO_POINTER(true), test_gone);
    test_add_data("/moderation/close", GINT_TO_POINTER(false), test_gone);
    test_add("/moderation/resize", test_resize);
    test_add("/moderation/full-eq", test_full_eq);
    test_add("/moderation/random", test_random);
    test_add("/moderation/many", test_many);
    return g_test_run();
}
