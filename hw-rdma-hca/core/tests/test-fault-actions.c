/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector: plans, and what its actions do to packets.
 */
#include <string.h>

#include "../verbs.h"
#include "lib-fault.h"

#define TX HCA_FAULT_TX
#define RX HCA_FAULT_RX

/* ---- the plan ---- */

/* @field has to be named in what is wrong with the plan. */
static void refuse(const HcaFaultPlan *plan, const char *field)
{
    const char *wrong = hca_fault_check(plan);

    g_assert_nonnull(wrong);
    g_assert_nonnull(strstr(wrong, field));
}

#define REFUSE(base, field, value, name)                                       \
    do {                                                                       \
        HcaFaultPlan wrong = (base);                                           \
                                                                               \
        wrong.rule[0].field = (value);                                         \
        refuse(&wrong, name);                                                  \
    } while (0)

static void test_check(void)
{
    HcaFaultPlan drop = fault_plan(HCA_FAULT_DROP);
    HcaFaultPlan delay = fault_plan(HCA_FAULT_DELAY);
    HcaFaultPlan reorder = fault_plan(HCA_FAULT_REORDER);
    HcaFaultPlan corrupt = fault_plan(HCA_FAULT_CORRUPT);
    HcaFaultPlan plan = { 0 };

    g_assert_null(hca_fault_check(&plan));
    for (unsigned i = 0; i < HCA_FAULT_NPACKET_ACTIONS; i++) {
        plan = fault_plan(i);
        g_assert_null(hca_fault_check(&plan));
    }
    REFUSE(drop, action, HCA_FAULT_NPACKET_ACTIONS, "action");
    REFUSE(drop, directions, 0, "directions");
    REFUSE(drop, directions, 4, "directions");
    REFUSE(drop, kinds, 1u << HCA_FAULT_NKINDS, "kinds");
    REFUSE(drop, probability, HCA_FAULT_ALWAYS + 1, "probability");
    drop.rule[0].match_qpn = drop.rule[0].match_psn = true;
    g_assert_null(hca_fault_check(&drop));
    REFUSE(drop, qpn, 0x1000000, "qpn");
    REFUSE(drop, psn_first, 0x1000000, "psn-first");
    REFUSE(drop, psn_last, 0x1000000, "psn-last");
    REFUSE(delay, delay_ns, 0, "delay-ns");
    REFUSE(delay, delay_ns, HCA_FAULT_MAX_DELAY_NS + 1, "delay-ns");
    REFUSE(reorder, delay_ns, UINT64_MAX, "delay-ns");
    REFUSE(corrupt, offset, HCA_LINK_MAX_PACKET, "offset");

    REFUSE(drop, after_ns, HCA_FAULT_MAX_DELAY_NS + 1, "after-ns");
    REFUSE(drop, for_ns, HCA_FAULT_MAX_DELAY_NS + 1, "for-ns");

    /* The limits themselves, in the last rule of the longest plan. */
    plan = fault_plan(HCA_FAULT_DELAY);
    plan.nrules = HCA_FAULT_MAX_RULES;
    for (unsigned i = 1; i < HCA_FAULT_MAX_RULES; i++) {
        plan.rule[i] = plan.rule[0];
    }
    plan.rule[31].delay_ns = HCA_FAULT_MAX_DELAY_NS;
    g_assert_null(hca_fault_check(&plan));
    plan.rule[31].delay_ns++;
    refuse(&plan, "delay-ns");
    plan.rule[31].delay_ns--;
    plan.nrules++;
    refuse(&plan, "32 rules");
}

/* A rule of verbs that is good, and what is wrong with others. */
static void test_check_verbs(void)
{
    HcaFaultPlan send = fault_plan(HCA_FAULT_FAIL);
    HcaFaultPlan card = fault_plan(HCA_FAULT_FAIL);
    HcaFaultPlan receive, request;

    send.rule[0].place = HCA_FAULT_SEND_WR;
    send.rule[0].status = HCA_SYNDROME_REMOTE_ACCESS_ERR;
    send.rule[0].match_qpn = send.rule[0].match_peer_qpn = true;
    send.rule[0].match_cqn = send.rule[0].match_srqn = true;
    receive = request = send;
    receive.rule[0].place = HCA_FAULT_RECEIVE;
    receive.rule[0].status = HCA_SYNDROME_TM_ERR;
    request.rule[0].place = HCA_FAULT_REQUEST;
    g_assert_null(hca_fault_check(&send));
    g_assert_null(hca_fault_check(&receive));
    g_assert_null(hca_fault_check(&request));
    card.rule[0].place = HCA_FAULT_CARD;
    card.rule[0].action = HCA_FAULT_DOWN;
    card.rule[0].down.down_ns = HCA_FAULT_MAX_DELAY_NS;
    g_assert_null(hca_fault_check(&card));
    REFUSE(card, down.down_ns, 0, "down-ns"); /* again and again */
    REFUSE(card, down.down_ns, HCA_FAULT_MAX_DELAY_NS + 1, "down-ns");
    REFUSE(card, down.up_ns, HCA_FAULT_MAX_DELAY_NS + 1, "up-ns");
    REFUSE(card, down.ends, 4, "ends");
    REFUSE(card, down.speed, 3, "speed");
    REFUSE(card, down.speed, 8, "speed");
    REFUSE(card, down.mtu, 6, "mtu");
    card.rule[0].action = HCA_FAULT_RAISE;
    REFUSE(card, event, HCA_FAULT_NO_EVENT, "event");
    REFUSE(card, event, HCA_FAULT_NEVENTS, "event");
    REFUSE(card, event, HCA_FAULT_QP_FATAL, "qpn");
    REFUSE(card, event, HCA_FAULT_CQ_ERR, "cqn");
    REFUSE(card, event, HCA_FAULT_SRQ_LIMIT, "srqn");
    REFUSE(send, place, HCA_FAULT_NPLACES, "place");
    REFUSE(send, action, HCA_FAULT_RNR, "send");
    REFUSE(send, status, 0, "wc-status");
    REFUSE(send, status, HCA_SYNDROME_WR_FLUSH_ERR, "wc-status");
    REFUSE(send, status, HCA_SYNDROME_REMOTE_OP_ERR, "peer");
    REFUSE(send, qpn, 0x1000000, "qpn");
    REFUSE(send, peer_qpn, 0x1000000, "qpn");
    REFUSE(send, cqn, 0x1000000, "cqn");
    REFUSE(send, kinds, 1u << HCA_FAULT_NKINDS, "kinds");
    REFUSE(receive, srqn, 0x1000000, "srqn");
    REFUSE(receive, action, HCA_FAULT_DROP, "receive");
    REFUSE(receive, status, HCA_SYNDROME_RETRY_EXC_ERR, "receive");
    REFUSE(request, action, HCA_FAULT_BREAK, "request");
    REFUSE(request, status, HCA_SYNDROME_LOCAL_PROT_ERR, "request");
}

static void case_none(FaultBench *b, HcaFaultDirection d)
{
    fault_set_none(b);
    fault_pass_psns(b, d, 1, 5);
    fault_let_pass(b, NS_PER_S);
    fault_expect(b, d, "1 2 3 4 5");
    g_assert_cmpuint(b->clock_reads, ==, 0);
    g_assert_cmpint(hca_link_deadline(b->link), ==, INT64_MAX);
    g_assert_cmpuint(b->traces->len, ==, 0);
}

/* ---- actions ---- */

static void case_drop(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].match_psn = true;
    plan.rule[0].psn_first = plan.rule[0].psn_last = 2;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 3);
    fault_expect(b, d, "1 3");
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DROP), ==, 1);
    g_assert_cmpuint(b->traces->len, ==, 1);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).qpn, ==, FAULT_QPN);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).arg[0], ==, d);
    g_assert_cmpuint(hca_link_counters(b->link)->rx_packets, ==,
                     d == RX ? 3 : 0);
    g_assert_cmpuint(hca_link_counters(b->link)->tx_packets, ==,
                     d == TX ? 2 : 0);
    hca_link_reset_counters(b->link);
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DROP), ==, 0);
}

static void case_duplicate(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DUPLICATE);

    plan.rule[0].skip = 1;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 3);
    fault_expect(b, d, "1 2 2 3 3");
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DUPLICATE), ==, 2);
    /* A second copy comes although the plan has gone. */
    fault_pass_psns(b, d, 4, 4);
    if (d == RX) {
        size_t len;

        g_assert_nonnull(fault_next_out(b, d, &len));
        fault_set_none(b);
        g_assert_true(hca_link_rx_pending(b->link));
        fault_expect(b, d, "4");
    }
}

static void case_corrupt_byte(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_CORRUPT);
    uint8_t sent[HCA_MAX_PACKET_SIZE];
    size_t len, size = fault_make(sent, HCA_SEND_ONLY, FAULT_QPN, 7, 0);
    const uint8_t *got;

    plan.rule[0].offset = size - 1;
    plan.rule[0].mask = 0x81;
    fault_set(b, &plan);
    fault_pass(b, d, sent, size - 1); /* too short, does not match */
    fault_pass(b, d, sent, size);
    hca_link_flush(b->link);
    got = fault_next_out(b, d, &len);
    g_assert_cmpmem(got, len, sent, size - 1);
    got = fault_next_out(b, d, &len);
    sent[size - 1] ^= 0x81;
    g_assert_cmpmem(got, len, sent, size);
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_CORRUPT), ==, 1);
}

/* One bit of any byte; all bytes and bits have their turn. */
static void case_corrupt_by_chance(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_CORRUPT);
    uint8_t sent[HCA_MAX_PACKET_SIZE], seen[HCA_MAX_PACKET_SIZE] = { 0 };
    size_t size = fault_make(sent, HCA_SEND_ONLY, FAULT_QPN, 7, 0);

    fault_set(b, &plan);
    for (unsigned n = 0; n < 2000; n++) {
        const uint8_t *got;
        unsigned bits = 0;
        size_t len;

        fault_pass(b, d, sent, size);
        hca_link_flush(b->link);
        got = fault_next_out(b, d, &len);
        g_assert_cmpuint(len, ==, size);
        for (size_t i = 0; i < len; i++) {
            bits += __builtin_popcount(got[i] ^ sent[i]);
            seen[i] |= got[i] ^ sent[i];
        }
        g_assert_cmpuint(bits, ==, 1);
    }
    for (size_t i = 0; i < size; i++) {
        g_assert_cmphex(seen[i], !=, 0);
    }
}

static void case_reorder(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_REORDER);

    plan.rule[0].distance = 2;
    plan.rule[0].count = 1;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 4);
    fault_expect(b, d, "2 3 1 4");
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_REORDER), ==, 1);

    plan.rule[0].distance = 0; /* as 1 */
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 2);
    fault_expect(b, d, "2 1");

    /* Nobody comes: after a millisecond, or as long as the rule says. */
    fault_set(b, &plan);
    fault_pass_psns(b, d, 5, 5);
    fault_expect(b, d, "");
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now + NS_PER_MS);
    fault_let_pass(b, NS_PER_MS - 1);
    fault_expect(b, d, "");
    fault_let_pass(b, 1);
    fault_expect(b, d, "5");
    plan.rule[0].delay_ns = 70;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 6, 6);
    fault_expect(b, d, "");
    fault_let_pass(b, 70);
    fault_expect(b, d, "6");
}

static void case_delay(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);

    plan.nrules = 2;
    plan.rule[0].count = 2;
    plan.rule[1] = plan.rule[0];
    plan.rule[1].count = 1;
    plan.rule[1].delay_ns = 40;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 4);
    fault_expect(b, d, "4");
    g_assert_cmpuint(hca_link_held(b->link), ==, 3);
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now + 40);
    fault_let_pass(b, 39);
    fault_expect(b, d, "");
    fault_let_pass(b, 1);
    fault_expect(b, d, "3");
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now + 60);
    fault_let_pass(b, 60);
    fault_expect(b, d, "1 2");
    g_assert_cmpint(hca_link_deadline(b->link), ==, INT64_MAX);
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DELAY), ==, 3);

    /* Late: in the order in which they should have left. */
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 3);
    fault_expect(b, d, "");
    fault_let_pass(b, NS_PER_S);
    fault_expect(b, d, "3 1 2");
    g_assert_cmpuint(hca_link_held(b->link), ==, 0);
}

/* ---- what is not on the cable ---- */

/* The greeting and the card's packets to itself do not pass the cable. */
static void test_not_cable(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    size_t len, size = fault_make(bytes, HCA_SEND_ONLY, FAULT_QPN, 1, 0);
    bool loopback;
    FaultBench b;

    fault_bench_init(&b);
    fault_set(&b, &plan);
    fault_bench_restart(&b);
    memcpy(hca_link_open(b.link, true), bytes, size);
    hca_link_close(b.link, true, 0, size);
    g_assert_nonnull(hca_link_receive(b.link, &len, &loopback));
    g_assert_true(loopback);
    g_assert_cmpuint(fault_injected(&b, TX, HCA_FAULT_DROP) +
                         fault_injected(&b, RX, HCA_FAULT_DROP),
                     ==, 0);
    fault_bench_free(&b);
}

/* ---- anything ---- */

static void random_plan(GRand *rand, HcaFaultPlan *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->seed = g_rand_int(rand);
    plan->nrules = g_rand_int_range(rand, 0, 6);
    for (unsigned i = 0; i < plan->nrules; i++) {
        plan->rule[i] = (HcaFaultRule) {
            .action = g_rand_int_range(rand, 0, HCA_FAULT_NPACKET_ACTIONS),
            .directions = g_rand_int_range(rand, 1, 4),
            .kinds = g_rand_boolean(rand) ? g_rand_int(rand) & 0x3ff : 0,
            .every = g_rand_int_range(rand, 0, 4),
            .probability = g_rand_int(rand),
            .count = g_rand_int_range(rand, 0, 50),
            .distance = g_rand_int_range(rand, 0, 90),
            .delay_ns = g_rand_int_range(rand, 1, 1000),
            .offset = g_rand_int_range(rand, -2, HCA_LINK_MAX_PACKET),
        };
    }
    g_assert_null(hca_fault_check(plan));
}

/* No packet is lost or made but by the faults that are counted. */
static void check_balance(FaultBench *b, HcaFaultDirection d, uint64_t passed,
                          uint64_t came)
{
    g_assert_cmpuint(came, ==,
                     passed - fault_injected(b, d, HCA_FAULT_DROP) +
                         fault_injected(b, d, HCA_FAULT_DUPLICATE));
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(lab_seed(4));
    uint64_t passed[2] = { 0 }, came[2] = { 0 };
    HcaFaultPlan plan;
    FaultBench b;

    fault_bench_init(&b);
    for (unsigned n = 0; n < 100000; n++) {
        HcaFaultDirection d = g_rand_boolean(rand);
        uint8_t bytes[256];
        size_t len;

        if (n % 200 == 0) {
            random_plan(rand, &plan);
            fault_set(&b, &plan);
        }
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = g_rand_int(rand);
        }
        bytes[8] &= 0x1f;
        if (d == TX && !hca_link_can_send(b.link, false)) {
            hca_link_flush(b.link);
        } else {
            fault_pass(&b, d, bytes, g_rand_int_range(rand, 1, sizeof(bytes)));
            passed[d]++;
        }
        if (g_rand_int_range(rand, 0, 8) == 0) {
            fault_let_pass(&b, g_rand_int_range(rand, 0, 300));
            hca_link_flush(b.link);
            for (d = 0; d < 2; d++) {
                while (fault_next_out(&b, d, &len)) {
                    came[d]++;
                }
            }
        }
    }
    fault_set_none(&b);
    fault_let_pass(&b, 0);
    hca_link_flush(b.link);
    for (HcaFaultDirection d = 0; d < 2; d++) {
        size_t len;

        while (fault_next_out(&b, d, &len)) {
            came[d]++;
        }
        check_balance(&b, d, passed[d], came[d]);
    }
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    fault_bench_free(&b);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        FaultCase *test;
    } cases[] = {
        { "none", case_none },
        { "drop", case_drop },
        { "duplicate", case_duplicate },
        { "corrupt/byte", case_corrupt_byte },
        { "corrupt/by-chance", case_corrupt_by_chance },
        { "reorder", case_reorder },
        { "delay", case_delay },
    };

    g_test_init(&argc, &argv, NULL);
    test_add("/fault/check", test_check);
    test_add("/fault/check/verbs", test_check_verbs);
    test_add("/fault/not-on-the-cable", test_not_cable);
    test_add("/fault/random", test_random);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *path = test_named("/fault/%s", cases[i].name);

        test_add_data(path, &cases[i].test, fault_both_directions);
    }
    return g_test_run();
}
