/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector: which packets a rule matches, and which of those it
 * takes.
 */
#include <string.h>

#include "lib-fault.h"

#define TX HCA_FAULT_TX
#define RX HCA_FAULT_RX
#define BOTH (1u << TX | 1u << RX)

/* ---- what a rule matches ---- */

static const struct {
    uint8_t opcode, syndrome;
    HcaFaultKind kind;
} kinds[] = {
    { HCA_SEND_FIRST, 0, HCA_FAULT_SEND },
    { HCA_SEND_LAST_IMM, 0, HCA_FAULT_SEND },
    { HCA_SEND_ONLY_INV, 0, HCA_FAULT_SEND },
    { HCA_BTH_UC << 5 | HCA_SEND_MIDDLE, 0, HCA_FAULT_SEND },
    { HCA_BTH_UD << 5 | HCA_SEND_ONLY, 0, HCA_FAULT_SEND },
    { HCA_WRITE_FIRST, 0, HCA_FAULT_WRITE },
    { HCA_WRITE_ONLY_IMM, 0, HCA_FAULT_WRITE },
    { HCA_BTH_UC << 5 | HCA_WRITE_LAST, 0, HCA_FAULT_WRITE },
    { HCA_READ_REQUEST, 0, HCA_FAULT_READ_REQUEST },
    { HCA_READ_RESP_FIRST, 0, HCA_FAULT_READ_RESPONSE },
    { HCA_READ_RESP_MIDDLE, 0, HCA_FAULT_READ_RESPONSE },
    { HCA_READ_RESP_ONLY, 0, HCA_FAULT_READ_RESPONSE },
    { HCA_CMP_SWAP, 0, HCA_FAULT_ATOMIC },
    { HCA_FETCH_ADD, 0, HCA_FAULT_ATOMIC },
    { HCA_ATOMIC_WRITE, 0, HCA_FAULT_ATOMIC },
    { HCA_FLUSH, 0, HCA_FAULT_OTHER },
    { HCA_ATOMIC_ACK, 0, HCA_FAULT_ATOMIC_RESPONSE },
    { HCA_ACK, HCA_AETH(HCA_AETH_ACK, 31), HCA_FAULT_ACK },
    { HCA_ACK, HCA_AETH(HCA_AETH_RNR, 1), HCA_FAULT_RNR_NAK },
    { HCA_ACK, HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ), HCA_FAULT_NAK },
    { HCA_ACK, HCA_AETH(2, 0), HCA_FAULT_NAK },
    { 0x15, 0, HCA_FAULT_OTHER }, /* reserved */
    { HCA_BTH_RD << 5 | HCA_SEND_ONLY, 0, HCA_FAULT_OTHER },
    { HCA_BTH_UD << 5 | HCA_WRITE_ONLY, 0, HCA_FAULT_OTHER },
};

static void case_kinds(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    unsigned seen = 0;

    for (unsigned kind = 0; kind < HCA_FAULT_NKINDS; kind++) {
        plan.rule[0].kinds = 1u << kind;
        fault_set(b, &plan);
        for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
            uint8_t bytes[HCA_MAX_PACKET_SIZE];
            size_t len = fault_make(bytes, kinds[i].opcode, FAULT_QPN, 1,
                                    kinds[i].syndrome);

            g_test_message("opcode %#x, syndrome %#x, kind %u", kinds[i].opcode,
                           kinds[i].syndrome, kind);
            g_assert_cmpint(fault_dropped(b, d, bytes, len), ==,
                            kinds[i].kind == kind);
            seen |= 1u << kinds[i].kind;
        }
    }
    g_assert_cmphex(seen, ==, (1u << HCA_FAULT_NKINDS) - 1);
}

/* BTH is behind a GRH, too; no BTH matches no number. */
static void case_numbers(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    HcaFaultRule *rule = plan.rule;
    HcaPacket global = {
        .has_grh = true, .opcode = HCA_ACK, .dest_qp = FAULT_QPN, .psn = 9
    };
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    size_t len;

    rule->match_opcode = rule->match_qpn = rule->match_psn = true;
    rule->opcode = HCA_ACK;
    rule->qpn = FAULT_QPN;
    rule->psn_first = rule->psn_last = 9;
    fault_set(b, &plan);
    len = fault_make(bytes, HCA_ACK, FAULT_QPN, 9, 0);
    g_assert_true(fault_dropped(b, d, bytes, len));
    bytes[1] &= ~3; /* LNH: raw, no BTH */
    g_assert_false(fault_dropped(b, d, bytes, len));
    len = fault_make(bytes, HCA_READ_REQUEST, FAULT_QPN, 9, 0);
    g_assert_false(fault_dropped(b, d, bytes, len));
    len = fault_make(bytes, HCA_ACK, FAULT_QPN + 1, 9, 0);
    g_assert_false(fault_dropped(b, d, bytes, len));
    len = fault_make(bytes, HCA_ACK, FAULT_QPN, 8, 0);
    g_assert_false(fault_dropped(b, d, bytes, len));
    len = hca_ib_seal(&global, bytes, hca_ib_build(&global, bytes));
    g_assert_true(fault_dropped(b, d, bytes, len));
}

static void case_psn_range(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    static const uint32_t psn[] = { 0,        1,        2,       0x7fffff,
                                    0xfffffd, 0xfffffe, 0xffffff };

    plan.rule[0].match_psn = true;
    plan.rule[0].psn_first = 0xfffffe;
    plan.rule[0].psn_last = 1;
    fault_set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(psn); i++) {
        fault_pass_one(b, d, HCA_SEND_ONLY, FAULT_QPN, psn[i]);
    }
    fault_expect(b, d, "2 8388607 16777213");
    plan.rule[0].psn_first = 1;
    plan.rule[0].psn_last = 0x7fffff;
    fault_set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(psn); i++) {
        fault_pass_one(b, d, HCA_SEND_ONLY, FAULT_QPN, psn[i]);
    }
    fault_expect(b, d, "0 16777213 16777214 16777215");
}

static void case_direction(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].directions = 1u << !d;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 3);
    fault_expect(b, d, "1 2 3");
    plan.rule[0].directions = 1u << d;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 3);
    fault_expect(b, d, "");
}

/* ---- which of those it takes ---- */

static void case_select(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].skip = 2;
    plan.rule[0].every = 3;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 12);
    fault_expect(b, d, "1 2 3 4 6 7 9 10 12");
    plan.rule[0].count = 2;
    fault_set(b, &plan); /* begins anew */
    fault_pass_psns(b, d, 1, 12);
    fault_expect(b, d, "1 2 3 4 6 7 9 10 11 12");
    /* Only packets that match are counted. */
    plan.rule[0] = (HcaFaultRule) {
        .directions = BOTH,
        .kinds = 1u << HCA_FAULT_ACK,
        .every = 2,
        .probability = HCA_FAULT_ALWAYS,
    };
    fault_set(b, &plan);
    for (unsigned psn = 1; psn <= 12; psn++) {
        fault_pass_one(b, d, psn % 3 ? HCA_SEND_ONLY : HCA_ACK, FAULT_QPN, psn);
    }
    fault_expect(b, d, "1 2 3 4 5 7 8 9 10 11");
}

static void case_probability(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].probability = 0;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 3);
    fault_expect(b, d, "1 2 3");
    plan.rule[0].probability = HCA_FAULT_ALWAYS / 100;
    fault_set(b, &plan);
    for (unsigned i = 0; i < 100; i++) {
        g_autofree char *got = NULL;

        fault_pass_psns(b, d, 1, 100);
        got = fault_psns_out(b, d);
    }
    /* 100 are expected; four standard deviations. */
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DROP), >=, 60);
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DROP), <=, 140);
}

/* The first rule that fires acts; the next sees what the first left. */
static void case_first_rule(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.nrules = 2;
    plan.rule[1] = plan.rule[0];
    plan.rule[0].every = 2;
    plan.rule[1].action = HCA_FAULT_DUPLICATE;
    plan.rule[1].every = 2;
    fault_set(b, &plan);
    fault_pass_psns(b, d, 1, 8);
    fault_expect(b, d, "1 3 3 5 7 7");
}

static char *faults_of(uint32_t seed, HcaFaultDirection d, bool disturb)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    char *got;
    FaultBench b;

    plan.seed = seed;
    plan.rule[0].probability = HCA_FAULT_ALWAYS / 2;
    fault_bench_init(&b);
    fault_set(&b, &plan);
    for (uint32_t psn = 1; psn <= 64; psn++) {
        fault_pass_psns(&b, d, psn, psn);
        if (disturb) {
            g_autofree char *other = NULL;

            fault_pass_psns(&b, !d, psn, psn);
            other = fault_psns_out(&b, !d);
        }
    }
    got = fault_psns_out(&b, d);
    fault_bench_free(&b);
    return got;
}

/* By the seed alone: what goes the other way does not matter. */
static void test_seed(void)
{
    g_autofree char *first = faults_of(7, TX, false);
    g_autofree char *again = faults_of(7, TX, true);
    g_autofree char *other = faults_of(8, TX, false);
    g_autofree char *rx = faults_of(7, RX, false);

    g_assert_cmpstr(first, ==, again);
    g_assert_cmpstr(first, !=, other);
    g_assert_cmpstr(first, !=, rx);
}

/* ---- what is too short ---- */

/* Whatever is too short to be a packet is of kind OTHER, and treated. */
static void case_short(FaultBench *b, HcaFaultDirection d)
{
    uint8_t bytes[64];

    for (unsigned action = 0; action < HCA_FAULT_MARK; action++) {
        HcaFaultPlan plan = fault_plan(action);

        plan.rule[0].kinds = 1u << HCA_FAULT_OTHER;
        fault_set(b, &plan);
        for (unsigned lnh = 0; lnh < 4; lnh++) {
            size_t bth = lnh == 3 ? 48 : 8;
            uint64_t before = fault_injected(b, d, action);
            size_t most = lnh < 2 ? sizeof(bytes) : bth + HCA_BTH_SIZE - 1;
            size_t len;

            memset(bytes, HCA_SEND_ONLY, sizeof(bytes));
            bytes[1] = lnh;
            for (size_t size = 1; size <= most; size++) {
                fault_pass(b, d, bytes, size);
                hca_link_flush(b->link);
                while (fault_next_out(b, d, &len)) {
                }
                fault_let_pass(b, NS_PER_S);
                hca_link_flush(b->link);
                while (fault_next_out(b, d, &len)) {
                }
            }
            g_assert_cmpuint(fault_injected(b, d, action) - before, ==, most);
        }
    }
    /* An acknowledgement that ends before its AETH is none. */
    memset(bytes, 0, sizeof(bytes));
    bytes[1] = 2;
    bytes[FAULT_BTH_AT] = HCA_ACK;
    fault_set_none(b);
    for (unsigned i = 0; i < 2; i++) {
        HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

        plan.rule[0].kinds = 1u << (i ? HCA_FAULT_ACK : HCA_FAULT_OTHER);
        fault_set(b, &plan);
        g_assert_cmpint(fault_dropped(b, d, bytes, 8 + 12 + 3 + i), ==, true);
        g_assert_cmpint(fault_dropped(b, d, bytes, 8 + 12 + 3 + !i), ==, false);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        FaultCase *test;
    } cases[] = {
        { "match/kinds", case_kinds },
        { "match/numbers", case_numbers },
        { "match/psn-range", case_psn_range },
        { "match/direction", case_direction },
        { "select/skip-every-count", case_select },
        { "select/probability", case_probability },
        { "select/first-rule", case_first_rule },
        { "short", case_short },
    };

    g_test_init(&argc, &argv, NULL);
    test_add("/fault/seed", test_seed);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *path = test_named("/fault/%s", cases[i].name);

        test_add_data(path, &cases[i].test, fault_both_directions);
    }
    return g_test_run();
}
