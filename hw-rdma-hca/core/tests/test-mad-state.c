/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The states of a port: what a Set(PortInfo) makes of each, what the cable does,
 * the host, and packets; when a switch tells (PortStateChange, trap 128).
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define DOWN 1
#define INIT 2
#define ARMED 3
#define ACTIVE 4
#define SLEEP 1
#define POLLING 2
#define DISABLED 3
#define LINK_UP 5

/* The port under test: any of a switch's will do. */
static unsigned port_of(const MadBench *b)
{
    return mad_is_switch(b) ? 7 : 1;
}

static void expect(MadBench *b, uint8_t state, uint8_t phys)
{
    g_assert_cmpuint(mad_state(b, port_of(b)), ==, state);
    g_assert_cmpuint(mad_phys_state(b, port_of(b)), ==, phys);
}

static uint16_t try_set(MadBench *b, uint8_t state, uint8_t phys)
{
    uint8_t info[64];

    mad_good_info(b, port_of(b), info);
    mad_put_bits(info, 32, 3, 0, state);
    mad_put_bits(info, 33, 7, 4, phys);
    return mad_set(b, 0x15, port_of(b), info);
}

static void set(MadBench *b, uint8_t state, uint8_t phys)
{
    g_assert_cmphex(try_set(b, state, phys), ==, MAD_OK);
}

/* As after a reset, and with a LID, so that a Set changes states alone. */
static void begin(MadBench *b, uint8_t state)
{
    hca_node_reset(b->node);
    b->no_peer = false;
    set(b, 0, 0);
    hca_node_link(b->node, port_of(b), state != DOWN);
    for (uint8_t to = ARMED; to <= state; to++) {
        set(b, to, 0);
    }
    expect(b, state, state == DOWN ? POLLING : LINK_UP);
    mad_forget(b);
}

/* Where Set(PortState) leads to without a link that goes down; 0: refused. */
static const uint8_t steps[5][5] = {
    [DOWN] = { DOWN, DOWN, 0, 0, 0 },
    [INIT] = { INIT, DOWN, 0, ARMED, 0 },
    [ARMED] = { ARMED, DOWN, 0, ARMED, ACTIVE },
    [ACTIVE] = { ACTIVE, DOWN, 0, ARMED, ACTIVE },
};

static uint8_t step(uint8_t from, uint8_t to)
{
    return to <= ACTIVE ? steps[from][to] : 0;
}

static void test_set_state(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (uint8_t from = DOWN; from <= ACTIVE; from++) {
        for (uint8_t to = 0; to < 16; to++) {
            uint8_t end = step(from, to);

            if (to == DOWN) {
                continue; /* below */
            }
            begin(b, from);
            g_assert_cmphex(try_set(b, to, 0), ==,
                            end ? MAD_OK : MAD_BAD_VALUE);
            end = end ? end : from;
            g_assert_cmpuint(mad_bits(mad_data(b), 32, 3, 0), ==, end);
            g_assert_cmpuint(b->port[port_of(b)].trains, ==, 0);
            g_assert_cmpuint(b->port[port_of(b)].stops, ==, 0);
            mad_expect_changed(b, port_of(b),
                               end == from ? 0 : HCA_CHANGED_STATE);
            expect(b, end, from == DOWN ? POLLING : LINK_UP);
        }
    }
    mad_bench_free(b);
}

/* The link goes down and is trained: without a peer that is the end of it. */
static void test_set_down(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (uint8_t from = DOWN; from <= ACTIVE; from++) {
        for (unsigned peer = 0; peer < 2; peer++) {
            bool trained = from != DOWN;

            begin(b, from);
            b->no_peer = !peer;
            set(b, DOWN, 0);
            g_assert_cmpuint(b->port[port_of(b)].trains, ==, trained);
            g_assert_cmpuint(b->port[port_of(b)].stops, ==, 0);
            mad_expect_changed(b, port_of(b), trained ? HCA_CHANGED_STATE : 0);
            if (peer && trained) {
                g_assert_cmpuint(mad_bits(mad_data(b), 32, 3, 0), ==, INIT);
                expect(b, INIT, LINK_UP);
            } else {
                expect(b, DOWN, POLLING);
            }
        }
    }
    mad_bench_free(b);
}

/* LinkDownDefaultState is where a link is that went down, by itself or not. */
static void test_default_state(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t info[64];

    for (uint8_t state = SLEEP; state <= POLLING; state++) {
        for (unsigned asked = 0; asked < 2; asked++) {
            begin(b, INIT);
            b->no_peer = true;
            mad_good_info(b, port_of(b), info);
            mad_put_bits(info, 33, 3, 0, state);
            mad_set_port_info(b, port_of(b), info);
            if (asked) {
                set(b, DOWN, 0);
            } else {
                hca_node_link(b->node, port_of(b), false);
            }
            expect(b, DOWN, state);
            hca_node_link(b->node, port_of(b), true); /* the peer wakes it */
            expect(b, INIT, LINK_UP);
        }
    }
    mad_bench_free(b);
}

/* All physical states with all logical ones, which may be 0 or Down. */
static void test_set_phys_state(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (unsigned i = 0; i < 4 * 16 * 15; i++) {
        uint8_t from = 1 + i % 4, state = i / 4 % 16, phys = 1 + i / 64;
        bool good = phys <= DISABLED && state <= DOWN;
        bool up = from != DOWN;

        begin(b, from);
        g_assert_cmphex(try_set(b, state, phys), ==,
                        good ? MAD_OK : MAD_BAD_VALUE);
        if (!good) {
            mad_expect_changed(b, port_of(b), 0);
            expect(b, from, up ? LINK_UP : POLLING);
        } else if (phys == DISABLED) {
            g_assert_cmpuint(b->port[port_of(b)].stops, ==, 1);
            mad_expect_changed(b, port_of(b), up ? HCA_CHANGED_STATE : 0);
            expect(b, DOWN, DISABLED);
        } else {
            g_assert_cmpuint(b->port[port_of(b)].trains, ==, 1);
            mad_expect_changed(b, port_of(b), HCA_CHANGED_STATE);
            expect(b, INIT, LINK_UP);
        }
    }
    mad_bench_free(b);
}

/* What sleeps or polls without a peer says so. */
static void test_set_phys_state_alone(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (uint8_t phys = SLEEP; phys <= POLLING; phys++) {
        begin(b, ACTIVE);
        b->no_peer = true;
        set(b, 0, phys);
        expect(b, DOWN, phys);
        set(b, 0, phys == SLEEP ? POLLING : SLEEP);
        expect(b, DOWN, phys == SLEEP ? POLLING : SLEEP);
    }
    mad_bench_free(b);
}

/* Until a manager says otherwise, whatever the cable and the default say. */
static void test_disabled(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    begin(b, ACTIVE);
    set(b, DOWN, DISABLED);
    for (unsigned i = 0; i < 3; i++) {
        hca_node_link(b->node, port_of(b), i != 1);
        expect(b, DOWN, DISABLED);
    }
    for (uint8_t to = DOWN; to <= ACTIVE; to++) {
        begin(b, ACTIVE);
        set(b, 0, DISABLED);
        mad_forget(b);
        g_assert_cmphex(try_set(b, to, 0), ==,
                        to == DOWN ? MAD_OK : MAD_BAD_VALUE);
        g_assert_cmpuint(b->port[port_of(b)].trains, ==, 0);
        expect(b, DOWN, DISABLED);
    }
    set(b, 0, POLLING);
    expect(b, INIT, LINK_UP);
    set(b, 0, DISABLED);
    set(b, 0, SLEEP);
    expect(b, INIT, LINK_UP);
    mad_bench_free(b);
}

/* ---- the cable, the host, packets ---- */

static void test_link(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (uint8_t from = INIT; from <= ACTIVE; from++) {
        begin(b, from);
        hca_node_link(b->node, port_of(b), true); /* no news */
        mad_expect_changed(b, port_of(b), 0);
        expect(b, from, LINK_UP);
        hca_node_link(b->node, port_of(b), false);
        g_assert_cmpuint(b->port[port_of(b)].seen.info.state, ==, DOWN);
        mad_expect_changed(b, port_of(b), HCA_CHANGED_STATE);
        expect(b, DOWN, POLLING);
        hca_node_link(b->node, port_of(b), false);
        mad_expect_changed(b, port_of(b), 0);
        hca_node_link(b->node, port_of(b), true);
        mad_expect_changed(b, port_of(b), HCA_CHANGED_STATE);
        expect(b, INIT, LINK_UP);
    }
    mad_bench_free(b);
}

/* The fastest that is enabled, from when the link comes up. */
static void test_link_speed(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    static const uint8_t active[] = { 0, 1, 2, 2, 4, 4, 4, 4 };

    for (uint8_t enabled = 1; enabled < G_N_ELEMENTS(active); enabled++) {
        uint8_t info[64];

        begin(b, ACTIVE);
        mad_good_info(b, port_of(b), info);
        mad_put_bits(info, 35, 3, 0, enabled);
        mad_set_port_info(b, port_of(b), info);
        hca_node_link(b->node, port_of(b), false);
        hca_node_link(b->node, port_of(b), true);
        mad_get(b, 0x15, port_of(b));
        g_assert_cmpuint(mad_bits(mad_data(b), 35, 7, 4), ==, active[enabled]);
        g_assert_cmpuint(mad_bits(mad_data(b), 35, 3, 0), ==, enabled);
    }
    mad_bench_free(b);
}

/* What a manager has set outlives the link, but for the state. */
static void test_link_keeps(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    GByteArray *before, *after;
    uint8_t block[64];

    mad_configure(b, 0x123, 0x45);
    memset(block, 0x5a, sizeof(block));
    mad_set(b, 0x16, port_of(b) << 16, block);
    mad_set(b, 0x17, mad_is_switch(b) ? port_of(b) : 0, block);
    mad_set(b, 0x14, 0, block);
    set(b, DOWN, 0);
    hca_node_link(b->node, port_of(b), true);
    if (mad_is_switch(b)) {
        hca_node_link(b->node, MAD_IN_PORT, false);
        hca_node_link(b->node, MAD_IN_PORT, true);
    }
    before = mad_dump(b->node);
    hca_node_link(b->node, port_of(b), false);
    hca_node_link(b->node, port_of(b), true);
    after = mad_dump(b->node);
    g_assert_cmpmem(before->data, before->len, after->data, after->len);
    g_assert_cmphex(get_be16(mad_get(b, 0x15, 0) + 16), ==, 0x123);
    g_byte_array_unref(before);
    g_byte_array_unref(after);
    mad_bench_free(b);
}

static uint8_t downs(MadBench *b)
{
    b->class = 0x04;
    mad_request(b, 0x01, 0x12, 0)[1] = port_of(b);
    g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_OK);
    b->class = 0x01;
    return mad_data(b)[7];
}

/* LinkDownedCounter: each time that there was a link, and no other. */
static void test_downs(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    begin(b, DOWN);
    hca_node_link(b->node, port_of(b), false);
    set(b, DOWN, 0);
    set(b, 0, DISABLED);
    g_assert_cmpuint(downs(b), ==, 0);
    set(b, 0, POLLING);
    hca_node_link(b->node, port_of(b), false);
    g_assert_cmpuint(downs(b), ==, 1);
    hca_node_link(b->node, port_of(b), true);
    set(b, DOWN, 0);
    set(b, 0, SLEEP);
    set(b, 0, DISABLED);
    g_assert_cmpuint(downs(b), ==, 4);
    set(b, 0, POLLING);
    hca_node_enable(b->node, port_of(b), false);
    g_assert_cmpuint(downs(b), ==, 5);
    mad_bench_free(b);
}

/* By a packet, or without a manager. */
static void test_activate(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (uint8_t from = DOWN; from <= ACTIVE; from++) {
        begin(b, from);
        hca_node_activate(b->node, port_of(b));
        mad_expect_changed(b, port_of(b),
                           from == INIT || from == ARMED ? HCA_CHANGED_STATE
                                                         : 0);
        if (from == DOWN) {
            expect(b, DOWN, POLLING);
        } else {
            expect(b, ACTIVE, LINK_UP);
        }
    }
    mad_bench_free(b);
}

static void test_host(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (uint8_t from = DOWN; from <= ACTIVE; from++) {
        begin(b, from);
        hca_node_enable(b->node, port_of(b), false);
        mad_expect_changed(b, port_of(b), from == DOWN ? 0 : HCA_CHANGED_STATE);
        expect(b, DOWN, DISABLED);
        hca_node_link(b->node, port_of(b), true);
        expect(b, DOWN, DISABLED);
        hca_node_enable(b->node, port_of(b), true);
        expect(b, DOWN, POLLING);
        hca_node_enable(b->node, port_of(b), true);
        hca_node_link(b->node, port_of(b), true);
        expect(b, INIT, LINK_UP);
        hca_node_enable(b->node, port_of(b), true);
        expect(b, INIT, LINK_UP);
        g_assert_cmpuint(b->port[port_of(b)].trains, ==, 0);
    }
    mad_bench_free(b);
}

/* Base port 0 has no link: it can be reached, whatever is said to it. */
static void test_port_0(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);
    uint8_t info[64];

    for (unsigned i = 0; i < 256; i++) {
        mad_good_info(b, 0, info);
        mad_put_bits(info, 32, 3, 0, i);
        mad_put_bits(info, 33, 7, 4, i >> 4);
        mad_set_port_info(b, 0, info);
        g_assert_cmpuint(mad_state(b, 0), ==, ACTIVE);
        g_assert_cmpuint(mad_phys_state(b, 0), ==, LINK_UP);
        g_assert_cmpuint(b->port[0].trains + b->port[0].stops, ==, 0);
    }
    mad_bench_free(b);
}

/* A port of a CA is not set by what comes in by another. */
static void test_other_port(void)
{
    MadBench *b = mad_bench_new_ports(HCA_NODE_CA, 2);
    GByteArray *before, *after;
    uint8_t info[64];

    hca_node_link(b->node, 2, true);
    mad_forget(b);
    before = mad_dump(b->node);
    mad_good_info(b, 2, info);
    mad_put_bits(info, 32, 3, 0, DOWN);
    mad_put_bits(info, 51, 7, 7, 1);
    mad_set_port_info(b, 2, info);
    after = mad_dump(b->node);
    g_assert_cmpmem(before->data, before->len, after->data, after->len);
    mad_expect_changed(b, 0, 0);
    g_assert_cmpuint(b->port[2].trains, ==, 0);
    g_byte_array_unref(before);
    g_byte_array_unref(after);
    mad_bench_free(b);
}

/* ---- what a switch tells ---- */

static bool state_change(MadBench *b)
{
    return mad_bits(mad_get(b, 0x12, 0), 11, 2, 2);
}

static void clear_state_change(MadBench *b)
{
    uint8_t info[64];

    memcpy(info, mad_get(b, 0x12, 0), 64);
    info[11] |= 0x04;
    g_assert_cmphex(mad_set(b, 0x12, 0, info), ==, MAD_OK);
    g_assert_cmpuint(mad_bits(mad_data(b), 11, 2, 2), ==, 0);
}

static void expect_trap_128(MadBench *b)
{
    MadSent *trap;

    mad_sleep(b, 0);
    trap = mad_next_trap(b, 128);
    g_assert_cmphex(trap->lid, ==, 0x45);
    g_assert_cmpmem(trap->mad + 64, 12, "\x81\0\0\2\0\x80\1\x23\0\0\1\x23", 12);
    mad_repress(b, trap);
    g_free(trap);
    mad_expect_quiet(b);
    mad_sleep(b, 100 * MAD_S);
}

static void test_tells(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);

    mad_configure(b, 0x123, 0x45);
    mad_sleep(b, 100 * MAD_S);
    mad_clear_sent(b);
    g_assert_true(state_change(b)); /* after power-up */
    for (unsigned i = 0; i < 3; i++) {
        clear_state_change(b);
        g_assert_false(state_change(b));
        hca_node_link(b->node, port_of(b), i != 1);
        g_assert_true(state_change(b));
        expect_trap_128(b);
    }
    mad_bench_free(b);
}

/* What a manager has asked for, and what is no change of Down. */
static void test_tells_not(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);

    mad_configure(b, 0x123, 0x45);
    hca_node_link(b->node, port_of(b), true);
    mad_sleep(b, 100 * MAD_S);
    mad_clear_sent(b);
    clear_state_change(b);
    set(b, ARMED, 0);
    set(b, ACTIVE, 0);
    set(b, ARMED, 0);
    hca_node_activate(b->node, port_of(b));
    hca_node_link(b->node, port_of(b), true);
    b->no_peer = true;
    set(b, DOWN, 0);
    set(b, 0, SLEEP);
    set(b, 0, DISABLED);
    hca_node_link(b->node, port_of(b), true);
    hca_node_link(b->node, port_of(b), false);
    g_assert_false(state_change(b));
    mad_sleep(b, 100 * MAD_S);
    mad_expect_quiet(b);
    mad_bench_free(b);
}

/* A CA has nothing to say of its link. */
static void test_ca_silent(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_CA);

    mad_configure(b, 0x123, 0x45);
    for (unsigned i = 0; i < 4; i++) {
        hca_node_link(b->node, 1, i & 1);
        mad_sleep(b, 10 * MAD_S);
    }
    mad_expect_quiet(b);
    mad_bench_free(b);
}

/* ---- local link integrity (IBA 7.12.2) ---- */

static uint8_t integrity_errors(MadBench *b)
{
    b->class = 0x04;
    mad_request(b, 0x01, 0x12, 0)[1] = port_of(b);
    g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_OK);
    b->class = 0x01;
    return mad_data(b)[19] >> 4;
}

/* More errors than the threshold, less those that good packets made good. */
static void test_integrity(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    unsigned port = port_of(b);
    uint8_t info[64];

    for (uint8_t threshold = 0; threshold < 16; threshold++) {
        unsigned before = integrity_errors(b);

        mad_good_info(b, port, info);
        mad_put_bits(info, 53, 7, 4, threshold);
        mad_set_port_info(b, port, info);
        for (unsigned i = 0; i < threshold; i++) {
            hca_node_packet(b->node, port, false);
        }
        g_assert_cmpuint(integrity_errors(b), ==, before);
        for (unsigned i = 0; i < 100 && threshold; i++) {
            hca_node_packet(b->node, port, true);
            hca_node_packet(b->node, port, false);
        }
        g_assert_cmpuint(integrity_errors(b), ==, before);
        hca_node_packet(b->node, port, false);
        g_assert_cmpuint(integrity_errors(b), ==, MIN(before + 1, 15));
        for (unsigned i = 0; i < 100; i++) {
            hca_node_packet(b->node, port, true);
        }
    }
    mad_bench_free(b);
}

static void add_both(const char *name, GTestDataFunc test)
{
    test_add_data(test_named("/mad/state/ca/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_CA), test);
    test_add_data(test_named("/mad/state/switch/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_SWITCH), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_both("set/state", test_set_state);
    add_both("set/down", test_set_down);
    add_both("set/default-state", test_default_state);
    add_both("set/phys-state", test_set_phys_state);
    add_both("set/phys-state-alone", test_set_phys_state_alone);
    add_both("set/disabled", test_disabled);
    add_both("link", test_link);
    add_both("link-speed", test_link_speed);
    add_both("link-keeps", test_link_keeps);
    add_both("downs", test_downs);
    add_both("activate", test_activate);
    add_both("host", test_host);
    add_both("integrity", test_integrity);
    test_add("/mad/state/switch/port-0", test_port_0);
    test_add("/mad/state/ca/other-port", test_other_port);
    test_add("/mad/state/switch/tells", test_tells);
    test_add("/mad/state/switch/tells-not", test_tells_not);
    test_add("/mad/state/ca/silent", test_ca_silent);
    return g_test_run();
}
