/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector: packets that are held back, and how much it takes.
 */
#include <errno.h>

#include "lib-fault.h"

#define TX HCA_FAULT_TX
#define RX HCA_FAULT_RX

/* ---- packets that are held back ---- */

/* Each waits for two; one that leaves counts for those before it. */
static void case_held_chain(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_REORDER);

    plan.nrules = 2;
    plan.rule[0].count = 1;
    plan.rule[0].distance = 2;
    plan.rule[1] = plan.rule[0];
    plan.rule[1].distance = 1;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 4);
    fault_expect(b, d, "3 2 1 4");
    /* But not for those behind it. */
    plan.rule[0].action = HCA_FAULT_DELAY;
    plan.rule[0].delay_ns = 100;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 2);
    fault_expect(b, d, "");
    fault_let_pass(b, 100);
    fault_expect(b, d, "1");
    fault_pass_psns(b, d, 3, 3);
    fault_expect(b, d, "3 2");
    plan.rule[0] = plan.rule[1];
    /* Dropped packets pass nothing; a pair counts as one. */
    plan.rule[0].distance = 2;
    plan.rule[1].action = HCA_FAULT_DROP;
    plan.rule[2] = plan.rule[1];
    plan.rule[2].action = HCA_FAULT_DUPLICATE;
    plan.nrules = 3;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 5);
    fault_expect(b, d, "3 3 4 1 5");
}

static void case_held_full(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    g_autofree char *got = NULL;

    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, HCA_FAULT_MAX_HELD + 3);
    fault_expect(b, d, "65 66 67");
    g_assert_cmpuint(hca_link_fault_counters(b->link)->held_full, ==, 3);
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DELAY), ==,
                     HCA_FAULT_MAX_HELD);
    fault_let_pass(b, 100);
    got = fault_psns_out(b, d);
    g_assert_true(g_str_has_prefix(got, "1 2 3 4 "));
    g_assert_true(g_str_has_suffix(got, " 62 63 64"));
    fault_pass_psns(b, d, 1, 1);
    fault_expect(b, d, "");
}

static void case_held_plan_replaced(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    HcaFaultPlan drop = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].delay_ns = HCA_FAULT_MAX_DELAY_NS;
    plan.rule[0].count = 2;
    plan.rule[0].skip = 1;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 4);
    fault_expect(b, d, "1 4");
    b->now += 10;
    fault_set(b, &drop);
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now);
    fault_let_pass(b, 0);
    fault_expect(b, d, "2 3"); /* not judged again */
    fault_set(b, &plan);
    fault_pass_psns(b, d, 5, 7);
    fault_expect(b, d, "5");
    fault_set_none(b);
    fault_let_pass(b, 0);
    fault_expect(b, d, "6 7");
    g_assert_cmpint(hca_link_deadline(b->link), ==, INT64_MAX);
}

static void forget_by_clear(FaultBench *b)
{
    hca_link_clear(b->link);
}

/* Neither packets that wait nor those that are due nor a second copy. */
static void check_forgotten(FaultBench *b, HcaFaultDirection d,
                            void (*forget)(FaultBench *b))
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    HcaFaultPlan twice = fault_plan(HCA_FAULT_DUPLICATE);

    for (unsigned due = 0; due < 2; due++) {
        fault_set(b, &plan);
        b->room = 0;
        fault_pass_psns(b, d, 1, 3);
        if (d == RX) {
            fault_expect(b, d, "");
        } else {
            hca_link_flush(b->link);
        }
        fault_let_pass(b, due ? 100 : 0);
        g_assert_cmpuint(hca_link_held(b->link), ==, due && d == TX ? 0 : 3);
        forget(b);
        b->room = SIZE_MAX;
        g_assert_cmpuint(hca_link_held(b->link), ==, 0);
        fault_let_pass(b, NS_PER_S);
        fault_expect(b, d, "");
        fault_set_none(b);
    }
    fault_set(b, &twice);
    fault_pass_psns(b, d, 1, 1);
    if (d == RX) {
        size_t len;

        g_assert_nonnull(fault_next_out(b, d, &len));
        forget(b);
        fault_expect(b, d, "");
    }
}

static void case_held_cleared(FaultBench *b, HcaFaultDirection d)
{
    check_forgotten(b, d, forget_by_clear);
}

static void case_held_down(FaultBench *b, HcaFaultDirection d)
{
    check_forgotten(b, d, fault_bench_restart);
}

/* The cable is full when they are due: they leave when it is not. */
static void test_held_blocked(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    FaultBench b;

    fault_bench_init(&b);
    plan.rule[0].count = HCA_FAULT_MAX_HELD;
    fault_set(&b, &plan);
    fault_pass_psns(&b, TX, 1, HCA_FAULT_MAX_HELD + 1);
    b.room = 10;
    hca_link_flush(b.link);
    g_assert_true(hca_link_tx_blocked(b.link));
    fault_let_pass(&b, 100);
    g_assert_false(hca_link_can_send(b.link, false));
    g_assert_cmpuint(hca_link_held(b.link), ==, HCA_FAULT_MAX_HELD);
    b.room = 100; /* the buffer, but not all that follows */
    hca_link_flush(b.link);
    g_assert_true(hca_link_tx_blocked(b.link));
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    b.room = SIZE_MAX;
    hca_link_flush(b.link);
    g_assert_true(hca_link_can_send(b.link, false));
    g_assert_cmpuint(hca_link_counters(b.link)->tx_packets, ==,
                     HCA_FAULT_MAX_HELD + 1);
    fault_bench_free(&b);
}

/* A stream that broke takes nothing along. */
static ssize_t op_writev_broken(void *opaque, const struct iovec *iov,
                                int iovcnt)
{
    return -EPIPE;
}

static void test_held_broken(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    HcaHostOps whole;
    FaultBench b;

    fault_bench_init(&b);
    whole = b.ops;
    plan.rule[0].count = 2;
    fault_set(&b, &plan);
    fault_pass_psns(&b, TX, 1, 3);
    b.ops.link_writev = op_writev_broken;
    hca_link_flush(b.link);
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    fault_let_pass(&b, NS_PER_S);
    b.ops.link_writev = whole.link_writev;
    fault_bench_restart(&b);
    fault_expect(&b, TX, "");
    fault_bench_free(&b);
}

/* ---- bounds ---- */

/* All of the longest packets twice: can_send() knows of both. */
static void test_room(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DUPLICATE);
    uint8_t bytes[HCA_LINK_MAX_PACKET] = { 0 };
    unsigned n = 0;
    FaultBench b;

    fault_bench_init(&b);
    plan.rule[0].skip = 1; /* so that there is room for an odd number */
    fault_set(&b, &plan);
    b.room = 0;
    while (hca_link_can_send(b.link, false)) {
        bytes[0] = n++;
        fault_pass(&b, TX, bytes, sizeof(bytes));
    }
    /* 24 frames fit beside what VL 15 has for itself. */
    g_assert_cmpuint(hca_link_counters(b.link)->tx_packets, ==, 23);
    b.room = SIZE_MAX;
    hca_link_flush(b.link);
    for (unsigned i = 1; i < 2 * n; i++) {
        size_t len;
        const uint8_t *got = fault_next_out(&b, TX, &len);

        g_assert_cmpuint(len, ==, sizeof(bytes));
        g_assert_cmpuint(got[0], ==, i / 2);
    }
    fault_bench_free(&b);
}

/* More are due at once than the buffer takes. */
static void test_room_due(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_REORDER);
    uint8_t bytes[HCA_LINK_MAX_PACKET] = { 0 };
    FaultBench b;

    fault_bench_init(&b);
    plan.rule[0].count = HCA_FAULT_MAX_HELD;
    fault_set(&b, &plan);
    b.room = 0;
    for (unsigned i = 0; i <= HCA_FAULT_MAX_HELD; i++) {
        bytes[0] = i;
        fault_pass(&b, TX, bytes, sizeof(bytes));
    }
    g_assert_cmpuint(hca_link_held(b.link), >, 0);
    g_assert_false(hca_link_can_send(b.link, false));
    b.room = SIZE_MAX;
    hca_link_flush(b.link);
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    g_assert_true(hca_link_can_send(b.link, false));
    for (unsigned i = 0; i <= HCA_FAULT_MAX_HELD; i++) {
        size_t len;

        g_assert_cmpuint(fault_next_out(&b, TX, &len)[0], ==,
                         (i + HCA_FAULT_MAX_HELD) % (HCA_FAULT_MAX_HELD + 1));
    }
    fault_bench_free(&b);
}

/* One call swallows a bounded number, and says that there is more. */
static void test_swallow(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    bool loopback;
    size_t len;
    FaultBench b;

    fault_bench_init(&b);
    fault_set(&b, &plan);
    fault_pass_psns(&b, RX, 1, 10000); /* more than the buffer takes */
    do {
        uint64_t before = fault_injected(&b, RX, HCA_FAULT_DROP);

        g_assert_null(hca_link_receive(b.link, &len, &loopback));
        g_assert_cmpuint(fault_injected(&b, RX, HCA_FAULT_DROP) - before, <=,
                         128);
    } while (hca_link_rx_pending(b.link));
    g_assert_cmpuint(fault_injected(&b, RX, HCA_FAULT_DROP), ==, 10000);
    fault_bench_free(&b);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        FaultCase *test;
    } cases[] = {
        { "held/chain", case_held_chain },
        { "held/full", case_held_full },
        { "held/plan-replaced", case_held_plan_replaced },
        { "held/cleared", case_held_cleared },
        { "held/down", case_held_down },
    };

    g_test_init(&argc, &argv, NULL);
    test_add("/fault/held/blocked", test_held_blocked);
    test_add("/fault/held/broken", test_held_broken);
    test_add("/fault/room/twice", test_room);
    test_add("/fault/room/due", test_room_due);
    test_add("/fault/swallow", test_swallow);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *path = test_named("/fault/%s", cases[i].name);

        test_add_data(path, &cases[i].test, fault_both_directions);
    }
    return g_test_run();
}
