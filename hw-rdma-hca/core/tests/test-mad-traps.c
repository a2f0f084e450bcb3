/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traps and notices (IBA 13.4.8 to 13.4.11): what each says, when it is sent, how
 * often, when it stops, and the queue that a manager reads.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define LID 0x123
#define SM_LID 0x45
#define PERIOD(timeout) (INT64_C(4096) << (timeout))
#define TIMEOUT 18 /* after a reset */

static unsigned mgmt_port(const MadBench *b)
{
    return mad_is_switch(b) ? 0 : 1;
}

/* With a manager, and nothing to tell. */
static MadBench *new_managed(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    mad_configure(b, LID, SM_LID);
    mad_sleep(b, 100 * MAD_S);
    mad_clear_sent(b);
    return b;
}

/* Something that is told, another each time. */
static void raise_some(MadBench *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        hca_node_set_capabilities(b->node, mgmt_port(b),
                                  b->node->port[mgmt_port(b)].info.cap_mask +
                                      0x100000);
    }
}

static void set_byte(MadBench *b, unsigned byte, unsigned high, unsigned low,
                     uint8_t value)
{
    uint8_t info[64];

    mad_good_info(b, mgmt_port(b), info);
    mad_put_bits(info, byte, high, low, value);
    mad_set_port_info(b, mgmt_port(b), info);
}

/* The notice is this from byte 0 on, and 0 behind it. */
static void expect_notice(const MadSent *trap, const uint8_t want[64])
{
    for (unsigned i = 0; i < 64; i++) {
        if (trap->mad[64 + i] != want[i]) {
            g_error("byte %u of notice %u is %#x, not %#x", i,
                    get_be16(trap->mad + 68), trap->mad[64 + i], want[i]);
        }
    }
}

static void begin_notice(const MadBench *b, uint8_t type, unsigned number,
                         uint8_t want[64])
{
    memset(want, 0, 64);
    want[0] = 0x80 | type;
    want[3] = b->node->type;
    put_be16(want + 4, number);
    put_be16(want + 6, LID);
}

/* Just this one has been sent, to the manager; and it is repressed. */
static void expect_only(MadBench *b, const uint8_t want[64])
{
    MadSent *trap;

    mad_sleep(b, 0);
    trap = mad_next_trap(b, get_be16(want + 4));
    g_assert_cmphex(trap->lid, ==, SM_LID);
    expect_notice(trap, want);
    mad_repress(b, trap);
    g_free(trap);
    mad_sleep(b, 100 * MAD_S);
    mad_expect_quiet(b);
}

/* ---- what they say ---- */

static void test_128(void)
{
    MadBench *b = new_managed(GUINT_TO_POINTER(HCA_NODE_SWITCH));
    uint8_t want[64];

    begin_notice(b, 1, 128, want);
    put_be16(want + 10, LID);
    hca_node_link(b->node, 9, true);
    expect_only(b, want);
    mad_bench_free(b);
}

static void test_129(gconstpointer type)
{
    MadBench *b = new_managed(type);
    unsigned port = mad_is_switch(b) ? 13 : 1;
    uint8_t want[64];

    begin_notice(b, 1, 129, want);
    put_be16(want + 12, LID);
    want[14] = port;
    for (unsigned i = 0; i < 9; i++) { /* LocalPhyErrors is 8 */
        mad_sleep(b, 0);
        mad_expect_quiet(b);
        hca_node_packet(b->node, port, false);
    }
    expect_only(b, want);
    mad_bench_free(b);
}

static void test_144(gconstpointer type)
{
    MadBench *b = new_managed(type);
    uint32_t mask = get_be32(mad_get(b, 0x15, mgmt_port(b)) + 20);
    uint8_t want[64];

    begin_notice(b, 4, 144, want);
    put_be16(want + 12, LID);
    put_be32(want + 16, mask | 2); /* IsSM */
    hca_node_set_capabilities(b->node, mgmt_port(b), mask | 2);
    expect_only(b, want);
    g_assert_cmphex(get_be32(mad_get(b, 0x15, mgmt_port(b)) + 20), ==,
                    mask | 2);
    hca_node_set_capabilities(b->node, mgmt_port(b), mask | 2);
    hca_node_set_description(b->node, MAD_DESCRIPTION);
    mad_sleep(b, MAD_S);
    mad_expect_quiet(b); /* no change */
    want[15] = 1;        /* OtherLocalChanges: the description */
    put_be16(want + 20, 1);
    hca_node_set_description(b->node, "another");
    expect_only(b, want);
    mad_bench_free(b);
}

static HcaKeyViolation violation(uint32_t key, const uint8_t *gids)
{
    return (HcaKeyViolation) {
        .slid = 0x1111,
        .dlid = 0x2222,
        .key = key,
        .sl = 0xb,
        .src_qp = 0x345678,
        .dest_qp = 0x9abcde,
        .sgid = gids,
        .dgid = gids ? gids + 16 : NULL,
    };
}

static void make_gids(uint8_t gids[32])
{
    for (unsigned i = 0; i < 32; i++) {
        gids[i] = 0x80 + i;
    }
}

static void test_257_258(gconstpointer type)
{
    MadBench *b = new_managed(type);
    uint8_t gids[32], want[64];

    make_gids(gids);
    for (unsigned i = 0; i < 4; i++) {
        HcaKeyViolation bad = violation(i & 1 ? 0xfedcba98 : 0x8001,
                                        i & 2 ? gids : NULL);

        begin_notice(b, 2, 257 + (i & 1), want);
        put_be16(want + 12, 0x1111);
        put_be16(want + 14, 0x2222);
        put_be32(want + 16, bad.key);
        put_be32(want + 20, 0xb0345678);
        put_be32(want + 24, 0x009abcde);
        if (i & 2) {
            memcpy(want + 28, gids, 32);
        }
        if (i & 1) {
            hca_node_bad_qkey(b->node, mgmt_port(b), &bad);
        } else {
            hca_node_bad_pkey(b->node, mgmt_port(b), &bad);
        }
        expect_only(b, want);
    }
    mad_bench_free(b);
}

/* At a port of a switch, which counts no violations. */
static void test_259(void)
{
    MadBench *b = new_managed(GUINT_TO_POINTER(HCA_NODE_SWITCH));
    uint8_t gids[32], want[64];

    make_gids(gids);
    for (unsigned i = 0; i < 2; i++) {
        HcaKeyViolation bad = violation(0x8001, i ? gids : NULL);
        MadSent *trap;

        begin_notice(b, 2, 259, want);
        put_be16(want + 12, 0x1111);
        put_be16(want + 14, 0x2222);
        put_be16(want + 16, 0x8001);
        put_be32(want + 18, 0xb0345678);
        put_be32(want + 22, 0x009abcde);
        put_be16(want + 58, LID);
        want[60] = 17;
        if (i) {
            memcpy(want + 26, gids, 32);
        }
        hca_node_bad_pkey(b->node, 17, &bad);
        mad_sleep(b, 0);
        trap = g_queue_peek_head(&b->sent);
        /* All of it is valid, but for GIDs that there are not. */
        put_be16(want + 10, get_be16(trap->mad + 74));
        g_assert_cmpuint(__builtin_popcount(get_be16(want + 10)), ==,
                         i ? 10 : 8);
        g_assert_cmphex(get_be16(want + 10) & ~0x03ff, ==, 0);
        expect_only(b, want);
        for (unsigned port = 0; port <= 17; port += 17) {
            g_assert_cmpuint(get_be16(mad_get(b, 0x15, port) + 46), ==, 0);
        }
    }
    mad_bench_free(b);
}

/* ---- when they are sent ---- */

/* No more often than one in SubnetTimeOut; the first at once. */
static void test_rate(gconstpointer type)
{
    for (unsigned timeout = 0; timeout < 32; timeout++) {
        MadBench *b = new_managed(type);
        int64_t period = PERIOD(timeout);
        int64_t last = -period;
        MadSent *trap;

        set_byte(b, 51, 4, 0, timeout);
        b->now += period;
        raise_some(b, 5);
        mad_sleep(b, 100 * period);
        g_assert_cmpuint(b->sent.length, >=, 10);
        last += ((MadSent *)b->sent.head->data)->time;
        while (b->sent.length) {
            trap = mad_next_trap(b, 144);
            g_assert_cmpint(trap->time, >=, last + period);
            last = trap->time;
            g_free(trap);
        }
        g_assert_cmpint(hca_node_deadline(b->node), ==, INT64_MAX);
        mad_bench_free(b);
    }
}

/* Of several each is sent once before one is sent again. */
static void test_repeats(gconstpointer type)
{
    MadBench *b = new_managed(type);
    uint64_t tid[3];
    unsigned times;

    raise_some(b, 3);
    mad_sleep(b, 1000 * MAD_S);
    g_assert_cmpuint(b->sent.length % 3, ==, 0);
    times = b->sent.length / 3;
    g_assert_cmpuint(times, >=, 2);
    g_assert_cmpuint(times, <=, 9); /* 10 are noise to a manager */
    for (unsigned i = 0; i < 3 * times; i++) {
        MadSent *trap = mad_next_trap(b, 144);

        if (i < 3) {
            tid[i] = get_be64(trap->mad + 8);
        }
        g_assert_cmphex(get_be64(trap->mad + 8), ==, tid[i % 3]);
        g_free(trap);
    }
    g_assert_true(tid[0] != tid[1] && tid[1] != tid[2] && tid[0] != tid[2]);
    g_assert_cmpuint(b->node->counters.traps, ==, 3 * times);
    g_assert_cmpuint(b->node->ntraps, ==, 0);
    mad_bench_free(b);
}

/* By its TransactionID, one of several; another does nothing. */
static void test_repress(gconstpointer type)
{
    MadBench *b = new_managed(type);
    MadSent *first, *trap;

    raise_some(b, 2);
    mad_sleep(b, 0);
    first = mad_next_trap(b, 144);
    put_be64(first->mad + 8, get_be64(first->mad + 8) ^ UINT64_C(1) << 63);
    mad_repress(b, first);
    g_assert_cmpuint(b->node->counters.traps_repressed, ==, 0);
    put_be64(first->mad + 8, get_be64(first->mad + 8) ^ UINT64_C(1) << 63);
    mad_repress(b, first);
    mad_repress(b, first); /* it is gone */
    g_assert_cmpuint(b->node->counters.traps_repressed, ==, 1);
    mad_sleep(b, 1000 * MAD_S);
    g_assert_cmpuint(b->sent.length, >=, 2);
    while (b->sent.length) {
        trap = mad_next_trap(b, 144);
        g_assert_cmphex(get_be64(trap->mad + 8), !=, get_be64(first->mad + 8));
        g_free(trap);
    }
    g_free(first);
    mad_bench_free(b);
}

/* The same again while it waits is the same; later it is another. */
static void test_same(gconstpointer type)
{
    MadBench *b = new_managed(type);
    HcaKeyViolation bad = violation(1, NULL);
    uint64_t tid;
    MadSent *trap;

    for (unsigned i = 0; i < 100; i++) {
        hca_node_bad_pkey(b->node, mgmt_port(b), &bad);
    }
    g_assert_cmpuint(b->node->ntraps, ==, 1);
    g_assert_cmpuint(b->node->counters.traps_lost, ==, 0);
    mad_sleep(b, 0);
    trap = mad_next_trap(b, 257);
    tid = get_be64(trap->mad + 8);
    mad_repress(b, trap);
    g_free(trap);
    hca_node_bad_pkey(b->node, mgmt_port(b), &bad);
    mad_sleep(b, 10 * MAD_S);
    trap = mad_next_trap(b, 257);
    g_assert_cmphex(get_be64(trap->mad + 8), !=, tid);
    g_free(trap);
    mad_bench_free(b);
}

/* To where the manager is when it is sent. */
static void test_address(gconstpointer type)
{
    MadBench *b = new_managed(type);
    MadSent *trap;

    set_byte(b, 36, 3, 0, 11); /* MasterSMSL */
    raise_some(b, 1);
    mad_sleep(b, 0);
    trap = mad_next_trap(b, 144);
    g_assert_cmphex(trap->lid, ==, SM_LID);
    g_assert_cmpuint(trap->sl, ==, 11);
    g_free(trap);
    set_byte(b, 19, 7, 0, 0x99); /* MasterSMLID */
    set_byte(b, 36, 3, 0, 2);
    mad_sleep(b, 2 * PERIOD(TIMEOUT));
    trap = mad_next_trap(b, 144);
    g_assert_cmphex(trap->lid, ==, 0x99);
    g_assert_cmpuint(trap->sl, ==, 2);
    g_free(trap);
    mad_bench_free(b);
}

/* Who has no LID, no manager, or a port that is not Active is silent. */
static void test_nobody(gconstpointer type)
{
    for (unsigned missing = 0; missing < 3; missing++) {
        MadBench *b = new_managed(type);
        HcaPortInfo *info = &b->node->port[mgmt_port(b)].info;

        if (missing == 2 && mad_is_switch(b)) {
            mad_bench_free(b);
            continue; /* port 0 is always Active */
        }
        raise_some(b, 3); /* and forgets what it wanted to say */
        info->lid = missing == 0 ? 0 : LID;
        info->sm_lid = missing == 1 ? 0 : SM_LID;
        info->state = missing == 2 ? HCA_PORT_ARMED : HCA_PORT_ACTIVE;
        mad_sleep(b, 100 * MAD_S);
        raise_some(b, 1);
        mad_sleep(b, 100 * MAD_S);
        mad_expect_quiet(b);
        g_assert_cmpint(hca_node_deadline(b->node), ==, INT64_MAX);
        info->lid = LID;
        info->sm_lid = SM_LID;
        info->state = HCA_PORT_ACTIVE;
        mad_sleep(b, 100 * MAD_S);
        mad_expect_quiet(b);
        raise_some(b, 1);
        mad_sleep(b, 0);
        g_free(mad_next_trap(b, 144));
        mad_bench_free(b);
    }
}

/* No way for a while: it is sent when there is one again, if that is soon. */
static void test_no_way(gconstpointer type)
{
    MadBench *b = new_managed(type);

    b->no_way = true;
    raise_some(b, 1);
    mad_sleep(b, PERIOD(TIMEOUT) + 1);
    g_assert_cmpuint(b->node->counters.traps, ==, 0);
    b->no_way = false;
    mad_sleep(b, PERIOD(TIMEOUT));
    g_free(mad_next_trap(b, 144));
    mad_clear_sent(b);
    b->no_way = true;
    raise_some(b, 1);
    mad_sleep(b, 1000 * MAD_S);
    g_assert_cmpuint(b->node->ntraps, ==, 0);
    mad_bench_free(b);
}

/* More than there is room for: the oldest are told, the others are counted. */
static void test_full(gconstpointer type)
{
    MadBench *b = new_managed(type);
    GHashTable *tids = g_hash_table_new(g_direct_hash, g_direct_equal);

    raise_some(b, HCA_NODE_TRAPS + 7);
    g_assert_cmpuint(b->node->ntraps, ==, HCA_NODE_TRAPS);
    g_assert_cmpuint(b->node->counters.traps_lost, ==, 7);
    mad_sleep(b, 1000 * MAD_S);
    while (b->sent.length) {
        MadSent *trap = mad_next_trap(b, 144);

        g_hash_table_add(tids, (gpointer)(uintptr_t)get_be64(trap->mad + 8));
        g_free(trap);
    }
    g_assert_cmpuint(g_hash_table_size(tids), ==, HCA_NODE_TRAPS);
    g_hash_table_destroy(tids);
    raise_some(b, 1);
    g_assert_cmpuint(b->node->ntraps, ==, 1);
    mad_bench_free(b);
}

static void raise_security(MadBench *b, unsigned n)
{
    HcaKeyViolation bad = violation(0x8001, NULL);

    for (unsigned i = 0; i < n; i++) {
        bad.dest_qp++;
        hca_node_bad_pkey(b->node, mgmt_port(b), &bad);
    }
}

/* Who sends with bad keys does not silence the rest: neither in what is sent
 * nor in what is kept. */
static void test_crowd(gconstpointer type)
{
    for (unsigned n = 1; n <= 4 * HCA_NODE_TRAPS; n *= 2) {
        MadBench *b = new_managed(type);
        unsigned kept = MIN(n, HCA_NODE_TRAPS / 2);
        unsigned before = b->node->nnotices;
        MadSent *trap;

        raise_security(b, n);
        mad_sleep(b, 0);
        g_free(mad_next_trap(b, 257));
        raise_some(b, 2);
        for (unsigned i = 0; i < 2; i++) {
            mad_sleep(b, PERIOD(TIMEOUT));
            trap = mad_next_trap(b, 144);
            mad_repress(b, trap);
            g_free(trap);
            raise_security(b, n);
        }
        g_assert_cmpuint(b->node->ntraps, ==, kept);
        g_assert_cmpuint(b->node->nnotices, ==,
                         before + 2 + MIN(3 * n, HCA_NODE_NOTICES / 2));
        mad_bench_free(b);
    }
}

/* What a reset forgets; the next one is not held up by those before. */
static void test_reset(gconstpointer type)
{
    MadBench *b = new_managed(type);

    raise_some(b, 5);
    mad_sleep(b, 0);
    mad_clear_sent(b);
    hca_node_reset(b->node);
    g_assert_cmpint(hca_node_deadline(b->node), ==, INT64_MAX);
    mad_sleep(b, 100 * MAD_S);
    mad_expect_quiet(b);
    g_assert_cmpuint(get_be16(mad_get(b, 0x02, 0) + 8), ==, 0);
    mad_bench_free(b);
}

/* ---- the queue that is read ---- */

/* The oldest, the toggle bit and how many there are. */
static void expect_oldest(MadBench *b, const uint8_t *data, uint16_t number,
                          unsigned count)
{
    g_assert_cmpuint(get_be16(data + 4), ==, number);
    g_assert_cmpuint(get_be16(data + 8) & 0x7fff, ==, count);
}

static void take_notice(MadBench *b, bool toggle)
{
    uint8_t data[64] = { 0 };

    put_be16(data + 8, toggle ? 0x8000 : 0);
    g_assert_cmphex(mad_set(b, 0x02, 0, data), ==, MAD_OK);
}

static bool toggle_of(const uint8_t *data)
{
    return data[8] & 0x80;
}

static void test_notices(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    HcaKeyViolation bad = violation(7, NULL);
    bool toggle;

    g_assert_cmphex(get_be16(mad_get(b, 0x02, 0) + 8) & 0x7fff, ==, 0);
    /* Nobody has to be there to be told. */
    hca_node_bad_pkey(b->node, mgmt_port(b), &bad);
    hca_node_bad_qkey(b->node, mgmt_port(b), &bad);
    raise_some(b, 1);
    expect_oldest(b, mad_get(b, 0x02, 0), 257, 3);
    g_assert_cmphex(get_be32(mad_data(b) + 16), ==, 7);
    expect_oldest(b, mad_get(b, 0x02, 0), 257, 3);
    toggle = toggle_of(mad_data(b));
    take_notice(b, !toggle); /* of another Get */
    expect_oldest(b, mad_data(b), 257, 3);
    take_notice(b, toggle);
    expect_oldest(b, mad_data(b), 258, 2);
    g_assert_cmpint(toggle_of(mad_data(b)), ==, !toggle);
    take_notice(b, toggle); /* the same again, which got lost on its way */
    expect_oldest(b, mad_data(b), 258, 2);
    take_notice(b, !toggle);
    expect_oldest(b, mad_data(b), 144, 1);
    take_notice(b, toggle);
    expect_oldest(b, mad_data(b), 0, 0);
    take_notice(b, !toggle);
    expect_oldest(b, mad_data(b), 0, 0);
    mad_get_refused(b, 0x02, 1, MAD_BAD_VALUE);
    mad_bench_free(b);
}

/* It keeps the oldest. */
static void test_notices_full(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    HcaKeyViolation bad = violation(0, NULL);
    const unsigned kept = HCA_NODE_NOTICES / 2; /* of security */

    for (unsigned i = 0; i < HCA_NODE_NOTICES + 5; i++) {
        bad.key = i;
        hca_node_bad_qkey(b->node, mgmt_port(b), &bad);
    }
    for (unsigned i = 0; i < kept; i++) {
        expect_oldest(b, mad_get(b, 0x02, 0), 258, kept - i);
        g_assert_cmphex(get_be32(mad_data(b) + 16), ==, i);
        take_notice(b, toggle_of(mad_data(b)));
    }
    expect_oldest(b, mad_get(b, 0x02, 0), 0, 0);
    mad_bench_free(b);
}

static void add_both(const char *name, GTestDataFunc test)
{
    test_add_data(test_named("/mad/traps/ca/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_CA), test);
    test_add_data(test_named("/mad/traps/switch/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_SWITCH), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mad/traps/switch/128", test_128);
    add_both("129", test_129);
    add_both("144", test_144);
    add_both("257-258", test_257_258);
    test_add("/mad/traps/switch/259", test_259);
    add_both("rate", test_rate);
    add_both("repeats", test_repeats);
    add_both("repress", test_repress);
    add_both("same", test_same);
    add_both("address", test_address);
    add_both("nobody", test_nobody);
    add_both("no-way", test_no_way);
    add_both("full", test_full);
    add_both("crowd", test_crowd);
    add_both("reset", test_reset);
    add_both("notices", test_notices);
    add_both("notices-full", test_notices_full);
    return g_test_run();
}
