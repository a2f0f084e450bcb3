/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The M_Key (IBA 14.2.4): who may do what at which protection, what a wrong key
 * leaves behind, and the lease after which a port may be had again.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define KEY UINT64_C(0x0123456789abcdef)
#define WRONG UINT64_C(0x0123456789abcdee)
#define LID 0x123
#define SM_LID 0x45

#define GET 0x01
#define SET 0x02
#define REPRESS 0x07
#define PORT_INFO 0x15

static unsigned mgmt_port(const MadBench *b)
{
    return mad_is_switch(b) ? 0 : 1;
}

/* A node with a key and a manager, whose own key is right. */
static MadBench *new_protected(gconstpointer type, uint8_t protect,
                               uint16_t lease)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t info[64];

    mad_configure(b, LID, SM_LID);
    mad_sleep(b, 100 * MAD_S);
    mad_clear_sent(b);
    mad_good_info(b, mgmt_port(b), info);
    put_be64(info, KEY);
    put_be16(info + 26, lease);
    mad_put_bits(info, 34, 7, 6, protect);
    mad_set_port_info(b, mgmt_port(b), info);
    b->m_key = KEY;
    mad_forget(b);
    return b;
}

static uint16_t violations(MadBench *b)
{
    return get_be16(mad_look(b, PORT_INFO, mgmt_port(b)) + 44);
}

static uint8_t protection(MadBench *b)
{
    return mad_bits(mad_look(b, PORT_INFO, mgmt_port(b)), 34, 7, 6);
}

/* The request is a violation: silence, one more, and nothing is changed. */
static void expect_violation(MadBench *b, unsigned in_port)
{
    uint64_t counted = b->node->counters.mkey_violations;
    uint16_t before = violations(b);
    GByteArray *was = mad_dump(b->node), *is;

    mad_unanswered(b, in_port, HCA_MAD_DROP);
    is = mad_dump(b->node);
    g_assert_cmpmem(was->data, was->len, is->data, is->len);
    g_byte_array_unref(was);
    g_byte_array_unref(is);
    g_assert_cmpuint(violations(b), ==, MIN(before + 1, 0xffff));
    g_assert_cmpuint(b->node->counters.mkey_violations, ==, counted + 1);
    mad_expect_changed(b, 0, 0);
}

static void violate(MadBench *b, uint8_t method, uint16_t attribute)
{
    uint16_t before = violations(b);

    mad_request(b, method, attribute, 0);
    memset(b->mad + 64, 0x5a, 64);
    mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
    g_assert_cmpuint(violations(b), ==, MIN(before + 1, 0xffff));
}

static const uint16_t attributes[] = { 0x02, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16,
                                       0x17, 0x18, 0x19, 0x1b, 0x20, 0x31 };

/* A node without a key is everybody's, whatever its protection. */
static void test_none(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t info[64];

    for (unsigned protect = 0; protect < 4; protect++) {
        mad_good_info(b, mgmt_port(b), info);
        mad_put_bits(info, 34, 7, 6, protect);
        put_be16(info + 26, 1);
        b->m_key = protect * WRONG;
        mad_set_port_info(b, mgmt_port(b), info);
        for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
            mad_request(b, GET, attributes[i], 0);
            mad_answer(b, MAD_IN_PORT);
        }
    }
    g_assert_cmpuint(violations(b), ==, 0);
    g_assert_cmpint(hca_node_deadline(b->node), ==, INT64_MAX);
    mad_bench_free(b);
}

static void test_right(gconstpointer type)
{
    for (unsigned protect = 0; protect < 4; protect++) {
        MadBench *b = new_protected(type, protect, 10);
        uint8_t info[64];

        for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
            mad_request(b, GET, attributes[i], 0);
            mad_answer(b, MAD_IN_PORT);
        }
        mad_good_info(b, mgmt_port(b), info);
        g_assert_cmphex(get_be64(info), ==, KEY);
        mad_put_bits(info, 36, 3, 0, 7);
        mad_set_port_info(b, mgmt_port(b), info);
        mad_request(b, REPRESS, 0x02, 0);
        mad_unanswered(b, MAD_IN_PORT, HCA_MAD_SILENT);
        g_assert_cmpuint(violations(b), ==, 0);
        mad_bench_free(b);
    }
}

/* Without the key: Get as the protection has it, each attribute. */
static void test_get(gconstpointer type)
{
    for (unsigned protect = 0; protect < 4; protect++) {
        MadBench *b = new_protected(type, protect, 0);
        unsigned n = 0;

        for (unsigned keys = 0; keys < 2; keys++) {
            b->m_key = keys ? WRONG : 0;
            for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
                mad_request(b, GET, attributes[i], 0);
                if (protect >= 2) {
                    expect_violation(b, MAD_IN_PORT);
                    n++;
                    continue;
                }
                mad_answer(b, MAD_IN_PORT);
                if (attributes[i] == PORT_INFO) {
                    g_assert_cmphex(get_be64(mad_data(b)), ==,
                                    protect ? 0 : KEY);
                    g_assert_cmpuint(mad_bits(mad_data(b), 34, 7, 6), ==,
                                     protect);
                }
            }
        }
        g_assert_cmpuint(violations(b), ==, n);
        mad_bench_free(b);
    }
}

/* Set and TrapRepress never, by whichever port of a switch. */
static void test_set(gconstpointer type)
{
    for (unsigned protect = 0; protect < 4; protect++) {
        MadBench *b = new_protected(type, protect, 0);
        unsigned first = mad_is_switch(b) ? 0 : 1;

        for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
            unsigned port = g_test_rand_int_range(first,
                                                  b->node->num_ports + 1);

            b->m_key = i & 1 ? WRONG : 0;
            b->class = i & 2 ? 0x81 : 0x01;
            mad_request(b, SET, attributes[i], 0);
            memset(b->mad + 64, 0x11, 64);
            expect_violation(b, port);
            mad_request(b, REPRESS, attributes[i], 0);
            expect_violation(b, port);
        }
        mad_bench_free(b);
    }
}

/* What is no request of the agent's has no key to be looked at. */
static void test_others(gconstpointer type)
{
    static const uint8_t methods[] = { 0x03, 0x05, 0x06, 0x81, 0x83, 0x86 };
    MadBench *b = new_protected(type, 3, 10);

    b->m_key = WRONG;
    for (unsigned i = 0; i < G_N_ELEMENTS(methods); i++) {
        mad_request(b, methods[i], PORT_INFO, 0);
        mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
    }
    mad_request(b, 0x0a, PORT_INFO, 0); /* no such method */
    g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, MAD_BAD_METHOD);
    g_assert_cmpuint(violations(b), ==, 0);
    mad_sleep(b, 0);
    mad_expect_quiet(b);
    mad_bench_free(b);
}

/* Performance management has no key. */
static void test_gmp(gconstpointer type)
{
    MadBench *b = new_protected(type, 3, 10);

    b->class = 0x04;
    mad_request(b, GET, 0x12, 0)[1] = 1;
    put_be64(b->mad + 24, WRONG);
    g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, MAD_OK);
    b->class = 0x01;
    g_assert_cmpuint(violations(b), ==, 0);
    mad_bench_free(b);
}

/* The host's own SMPs need none, and see it. */
static void test_local(gconstpointer type)
{
    MadBench *b = new_protected(type, 3, 10);
    uint8_t info[64];

    b->local = true;
    b->m_key = WRONG;
    mad_good_info(b, mgmt_port(b), info);
    g_assert_cmphex(get_be64(info), ==, KEY);
    mad_put_bits(info, 36, 3, 0, 5);
    mad_set_port_info(b, mgmt_port(b), info);
    g_assert_cmpuint(mad_bits(mad_data(b), 36, 3, 0), ==, 5);
    g_assert_cmpuint(violations(b), ==, 0);
    mad_bench_free(b);
}

/*
 * A manager writes the key with the old one, and knows the new one from the
 * answer; from then on the new one counts.
 */
static void test_change(gconstpointer type)
{
    for (unsigned protect = 0; protect < 4; protect++) {
        MadBench *b = new_protected(type, protect, 0);
        uint8_t info[64];

        mad_good_info(b, mgmt_port(b), info);
        put_be64(info, WRONG);
        mad_set_port_info(b, mgmt_port(b), info);
        g_assert_cmphex(get_be64(mad_data(b)), ==, WRONG);
        violate(b, SET, PORT_INFO);
        b->m_key = WRONG;
        g_assert_cmphex(get_be64(mad_get(b, PORT_INFO, mgmt_port(b))), ==,
                        WRONG);
        put_be64(info, 0);
        mad_set_port_info(b, mgmt_port(b), info);
        b->m_key = KEY;
        mad_set_port_info(b, mgmt_port(b), info);
        mad_bench_free(b);
    }
}

static void test_saturation(gconstpointer type)
{
    MadBench *b = new_protected(type, 2, 0);
    uint8_t info[64];

    b->m_key = WRONG;
    for (unsigned i = 0; i < 0x10010; i++) {
        mad_request(b, SET, PORT_INFO, 0);
        mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
        if (i + 1 == 0xffff || i == 5) {
            g_assert_cmphex(violations(b), ==, i + 1);
        }
    }
    g_assert_cmphex(violations(b), ==, 0xffff);
    violate(b, GET, PORT_INFO);
    b->m_key = KEY;
    mad_good_info(b, mgmt_port(b), info);
    put_be16(info + 44, 1); /* not 0: it stays */
    mad_set_port_info(b, mgmt_port(b), info);
    g_assert_cmphex(violations(b), ==, 0xffff);
    put_be16(info + 44, 0);
    mad_set_port_info(b, mgmt_port(b), info);
    g_assert_cmphex(violations(b), ==, 0);
    mad_bench_free(b);
}

/* ---- the lease ---- */

/* Let the owner's traps go by, which are not what this is about. */
static void sleep_to(MadBench *b, int64_t at)
{
    mad_sleep(b, at - b->now);
    mad_clear_sent(b);
}

/* From the first violation on; others do not begin it anew. */
static void test_lease_ends(gconstpointer type)
{
    static const uint16_t leases[] = { 1, 15, 3600, 0xffff };

    for (unsigned i = 0; i < G_N_ELEMENTS(leases); i++) {
        MadBench *b = new_protected(type, 2 + i % 2, leases[i]);
        int64_t end;

        b->now += 12345;
        end = b->now + leases[i] * MAD_S;
        b->m_key = WRONG;
        violate(b, GET, PORT_INFO);
        sleep_to(b, end - leases[i] * MAD_S / 2);
        violate(b, SET, PORT_INFO);
        sleep_to(b, end - 1);
        g_assert_cmpuint(protection(b), ==, 2 + i % 2);
        violate(b, GET, PORT_INFO);
        sleep_to(b, end);
        g_assert_cmpuint(protection(b), ==, 0);
        /* The key is the same, and everybody sees it. */
        g_assert_cmphex(get_be64(mad_get(b, PORT_INFO, mgmt_port(b))), ==, KEY);
        violate(b, SET, PORT_INFO);
        mad_bench_free(b);
    }
}

/* Its owner comes back in time: any SMP with the key. */
static void test_lease_renewed(gconstpointer type)
{
    static const uint8_t methods[] = { GET, SET, REPRESS };

    for (unsigned i = 0; i < G_N_ELEMENTS(methods); i++) {
        MadBench *b = new_protected(type, 1, 10);
        int64_t start;

        b->m_key = WRONG;
        violate(b, SET, PORT_INFO);
        sleep_to(b, b->now + 9 * MAD_S);
        b->m_key = KEY;
        mad_request(b, methods[i], 0x31, 0);
        if (methods[i] == REPRESS) {
            mad_unanswered(b, MAD_IN_PORT, HCA_MAD_SILENT);
        } else {
            g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, MAD_OK);
        }
        sleep_to(b, b->now + 1000 * MAD_S);
        g_assert_cmpuint(protection(b), ==, 1);
        /* The next violation begins it again. */
        start = b->now;
        b->m_key = WRONG;
        violate(b, SET, PORT_INFO);
        sleep_to(b, start + 10 * MAD_S - 1);
        g_assert_cmpuint(protection(b), ==, 1);
        sleep_to(b, start + 10 * MAD_S);
        g_assert_cmpuint(protection(b), ==, 0);
        mad_bench_free(b);
    }
}

/* 0 is for ever; and without a violation no lease runs. */
static void test_lease_none(gconstpointer type)
{
    MadBench *b = new_protected(type, 3, 0);

    b->m_key = WRONG;
    violate(b, SET, PORT_INFO);
    sleep_to(b, b->now + 1000000 * MAD_S);
    g_assert_cmpuint(protection(b), ==, 3);
    mad_bench_free(b);
    b = new_protected(type, 3, 1);
    g_assert_cmpint(hca_node_deadline(b->node), ==, INT64_MAX);
    sleep_to(b, b->now + 1000000 * MAD_S);
    g_assert_cmpuint(protection(b), ==, 3);
    /* What is allowed without the key is no violation. */
    mad_bench_free(b);
    b = new_protected(type, 1, 1);
    b->m_key = WRONG;
    mad_get(b, PORT_INFO, mgmt_port(b));
    g_assert_cmpint(hca_node_deadline(b->node), ==, INT64_MAX);
    mad_bench_free(b);
}

/* ---- trap 256 ---- */

static void expect_trap(MadBench *b, const uint8_t *mad, unsigned hops)
{
    MadSent *trap;
    uint8_t want[64] = { 0x82, 0, 0, b->node->type, 1, 0, 1, 0x23 };

    mad_sleep(b, 0);
    trap = mad_next_trap(b, 256);
    g_assert_cmphex(trap->lid, ==, SM_LID);
    put_be16(want + 12, LID);
    want[16] = mad[3];
    memcpy(want + 18, mad + 16, 2);
    memcpy(want + 20, mad + 20, 4);
    memcpy(want + 24, mad + 24, 8);
    if (mad[1] == 0x81) {
        memcpy(want + 14, mad + 32, 2);
        want[33] = 0x80 | (hops > 30 ? 0x40 | 30 : hops);
        memcpy(want + 34, mad + 193, MIN(hops, 30));
    }
    g_assert_cmpmem(trap->mad + 64, 64, want, 64);
    b->m_key = KEY;
    mad_repress(b, trap);
    g_free(trap);
    mad_sleep(b, 100 * MAD_S);
    mad_expect_quiet(b);
}

static void test_trap(gconstpointer type)
{
    static const uint8_t all_hops[] = { 0, 1, 2, 29, 30, 31, 63 };
    MadBench *b = new_protected(type, 2, 0);

    for (unsigned i = 0; i < 2 + G_N_ELEMENTS(all_hops); i++) {
        unsigned hops = i < 2 ? 0 : all_hops[i - 2];
        uint8_t mad[HCA_MAD_SIZE];

        b->class = i < 2 ? 0x01 : 0x81;
        b->m_key = WRONG - i;
        mad_request(b, i & 1 ? SET : GET, 0x11 + i, 0xabcd0001 + i);
        b->mad[6] = hops + 1;
        b->mad[7] = hops;
        for (unsigned n = 0; n < 64 && i >= 2; n++) {
            b->mad[192 + n] = n + i;
        }
        memcpy(mad, b->mad, sizeof(mad));
        mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
        expect_trap(b, mad, hops);
    }
    g_assert_cmphex(get_be64(mad_look(b, PORT_INFO, mgmt_port(b))), ==, KEY);
    mad_bench_free(b);
}

static void add_both(const char *name, GTestDataFunc test)
{
    test_add_data(test_named("/mad/mkey/ca/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_CA), test);
    test_add_data(test_named("/mad/mkey/switch/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_SWITCH), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_both("none", test_none);
    add_both("right", test_right);
    add_both("get", test_get);
    add_both("set", test_set);
    add_both("others", test_others);
    add_both("gmp", test_gmp);
    add_both("local", test_local);
    add_both("change", test_change);
    add_both("saturation", test_saturation);
    add_both("lease/ends", test_lease_ends);
    add_both("lease/renewed", test_lease_renewed);
    add_both("lease/none", test_lease_none);
    add_both("trap", test_trap);
    return g_test_run();
}
