/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plans of faults as text: what each key makes of a rule. */
#include "../program.h"

#define BOTH (1u << HCA_FAULT_TX | 1u << HCA_FAULT_RX)

static HcaFaultPlan parse(const char *text)
{
    HcaFaultPlan plan = { .seed = 7 };
    GError *error = NULL;
    bool good = sw_faults_parse(text, &plan, &error);

    g_assert_no_error(error);
    g_assert_true(good);
    g_assert_cmpuint(plan.seed, ==, 7);
    return plan;
}

static HcaFaultRule one(const char *text)
{
    HcaFaultPlan plan = parse(text);

    g_assert_cmpuint(plan.nrules, ==, 1);
    return plan.rule[0];
}

/* What no key names. */
static void test_default(void)
{
    HcaFaultRule rule = one("action=drop");
    const HcaFaultRule should_be = { .action = HCA_FAULT_DROP,
                                     .directions = BOTH,
                                     .probability = HCA_FAULT_ALWAYS,
                                     .offset = -1 };

    g_assert_cmpmem(&rule, sizeof(rule), &should_be, sizeof(should_be));
}

static void test_actions(void)
{
    static const struct {
        const char *text;
        HcaFaultAction action;
    } rows[] = {
        { "action=drop", HCA_FAULT_DROP },
        { "action=duplicate", HCA_FAULT_DUPLICATE },
        { "action=reorder,distance=1", HCA_FAULT_REORDER },
        { "action=delay,delay-ns=1", HCA_FAULT_DELAY },
        { "action=corrupt", HCA_FAULT_CORRUPT },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpuint(one(rows[i].text).action, ==, rows[i].action);
    }
}

static void test_directions(void)
{
    g_assert_cmpuint(one("action=drop,direction=tx").directions, ==,
                     1u << HCA_FAULT_TX);
    g_assert_cmpuint(one("action=drop,direction=rx").directions, ==,
                     1u << HCA_FAULT_RX);
    g_assert_cmpuint(one("direction=both,action=drop").directions, ==, BOTH);
}

static void test_kinds(void)
{
    static const char *const names[] = {
        [HCA_FAULT_SEND] = "send",
        [HCA_FAULT_WRITE] = "write",
        [HCA_FAULT_READ_REQUEST] = "read-request",
        [HCA_FAULT_READ_RESPONSE] = "read-response",
        [HCA_FAULT_ATOMIC] = "atomic",
        [HCA_FAULT_ATOMIC_RESPONSE] = "atomic-response",
        [HCA_FAULT_ACK] = "ack",
        [HCA_FAULT_RNR_NAK] = "rnr-nak",
        [HCA_FAULT_NAK] = "nak",
        [HCA_FAULT_OTHER] = "other",
    };
    HcaFaultRule rule;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *text = g_strdup_printf("action=drop,kind=%s",
                                                names[i]);

        g_assert_cmphex(one(text).kinds, ==, 1u << i);
    }
    rule = one("action=drop,kind=send+nak+other");
    g_assert_cmphex(rule.kinds, ==,
                    1u << HCA_FAULT_SEND | 1u << HCA_FAULT_NAK |
                        1u << HCA_FAULT_OTHER);
}

static void test_numbers(void)
{
    HcaFaultRule rule = one("action=reorder,opcode=0x64,qpn=17,psn=5-7,"
                            "skip=1,every=2,count=3,distance=4,after-ns=5,"
                            "for-ns=6");

    g_assert_true(rule.match_opcode);
    g_assert_cmphex(rule.opcode, ==, 0x64);
    g_assert_true(rule.match_qpn);
    g_assert_cmphex(rule.qpn, ==, 17);
    g_assert_true(rule.match_psn);
    g_assert_cmphex(rule.psn_first, ==, 5);
    g_assert_cmphex(rule.psn_last, ==, 7);
    g_assert_cmpuint(rule.skip, ==, 1);
    g_assert_cmpuint(rule.every, ==, 2);
    g_assert_cmpuint(rule.count, ==, 3);
    g_assert_cmpuint(rule.distance, ==, 4);
    g_assert_cmpuint(rule.after_ns, ==, 5);
    g_assert_cmpuint(rule.for_ns, ==, 6);
    rule = one("action=drop,psn=0xfffffe");
    g_assert_cmphex(rule.psn_first, ==, 0xfffffe);
    g_assert_cmphex(rule.psn_last, ==, 0xfffffe);
    rule = one("action=corrupt,offset=9,mask=255");
    g_assert_cmpint(rule.offset, ==, 9);
    g_assert_cmphex(rule.mask, ==, 255);
    rule = one("action=delay,delay-ns=1000000");
    g_assert_cmpuint(rule.delay_ns, ==, 1000000);
}

/* What is not impossible does not become so. */
static void test_probability(void)
{
    g_assert_cmphex(one("action=drop,probability=1").probability, ==,
                    HCA_FAULT_ALWAYS);
    g_assert_cmphex(one("action=drop,probability=0.5").probability, ==,
                    HCA_FAULT_ALWAYS / 2);
    g_assert_cmphex(one("action=drop,probability=0").probability, ==, 0);
    g_assert_cmphex(one("action=drop,probability=1e-30").probability, ==, 1);
}

static void test_rules(void)
{
    HcaFaultPlan plan = parse("action=drop;action=corrupt,qpn=3");
    GError *error = NULL;

    g_assert_cmpuint(plan.nrules, ==, 2);
    g_assert_cmpuint(plan.rule[0].action, ==, HCA_FAULT_DROP);
    g_assert_false(plan.rule[0].match_qpn);
    g_assert_cmpuint(plan.rule[1].action, ==, HCA_FAULT_CORRUPT);
    g_assert_cmpuint(plan.rule[1].qpn, ==, 3);
    /* Behind those that there are, up to the most. */
    while (plan.nrules < HCA_FAULT_MAX_RULES) {
        g_assert_true(sw_faults_parse("action=drop", &plan, &error));
    }
    g_assert_false(sw_faults_parse("action=drop", &plan, &error));
    g_assert_nonnull(strstr(error->message, "rules at most"));
    g_error_free(error);
}

static void test_bad(void)
{
    static const char *const texts[] = {
        "",
        ";",
        "action",
        "action=",
        "action=nothing",
        "drop",
        "action=drop,",
        "action=drop,direction=up",
        "action=drop,kind=",
        "action=drop,kind=send+",
        "action=drop,kind=send,kind=all",
        "action=drop,opcode=256",
        "action=drop,qpn=-1",
        "action=drop,qpn=4294967296",
        "action=drop,psn=",
        "action=drop,psn=1-",
        "action=drop,psn=1-2-3",
        "action=drop,psn=7-5x",
        "action=drop,probability=1.1",
        "action=drop,probability=nan",
        "action=drop,probability=-0.1",
        "action=drop,probability=",
        "action=corrupt,offset=2147483648",
        "action=corrupt,mask=256",
        "action=drop,skip=x",
        "action=drop,every=4294967296",
        "action=drop,unknown=1",
        "direction=tx",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        HcaFaultPlan plan = { 0 };
        GError *error = NULL;

        if (sw_faults_parse(texts[i], &plan, &error)) {
            g_error("'%s' is a rule", texts[i]);
        }
        g_assert_nonnull(error);
        g_error_free(error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/switch/fault-text/default", test_default);
    g_test_add_func("/switch/fault-text/actions", test_actions);
    g_test_add_func("/switch/fault-text/directions", test_directions);
    g_test_add_func("/switch/fault-text/kinds", test_kinds);
    g_test_add_func("/switch/fault-text/numbers", test_numbers);
    g_test_add_func("/switch/fault-text/probability", test_probability);
    g_test_add_func("/switch/fault-text/rules", test_rules);
    g_test_add_func("/switch/fault-text/bad", test_bad);
    return g_test_run();
}
