/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subnet management agent: what NodeInfo and PortInfo show and what a Set
 * makes of them, byte by byte; what is refused, with which status, and what is
 * not answered. Tables are in test-mad-tables.c, states in test-mad-state.c, the
 * M_Key in test-mad-mkey.c.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define NODE_DESC 0x10
#define NODE_INFO 0x11
#define PORT_INFO 0x15

static const uint8_t zero[64];

/* ---- NodeDescription, NodeInfo ---- */

static void test_node_desc(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    char text[64] = MAD_DESCRIPTION;

    g_assert_cmpmem(mad_get(b, NODE_DESC, 0), 64, text, 64);
    /* All 64 bytes, without an end; and what was longer before is gone. */
    memset(text, 'x', sizeof(text));
    hca_node_set_description(b->node, text);
    g_assert_cmpmem(mad_get(b, NODE_DESC, 0), 64, text, 64);
    memset(text, 0, sizeof(text));
    strcpy(text, "short");
    hca_node_set_description(b->node, text);
    g_assert_cmpmem(mad_get(b, NODE_DESC, 0), 64, text, 64);
    mad_set_refused(b, NODE_DESC, 0, MAD_BAD_ATTRIBUTE);
    mad_get_refused(b, NODE_DESC, 1, MAD_BAD_VALUE);
    g_assert_cmpmem(mad_data(b), 64, text, 64);
    mad_bench_free(b);
}

static void node_info(const MadBench *b, unsigned in_port, uint8_t data[64])
{
    memset(data, 0, 64);
    data[0] = 1;
    data[1] = 1;
    data[2] = mad_is_switch(b) ? 2 : 1;
    data[3] = mad_is_switch(b) ? MAD_SWITCH_PORTS : 1;
    put_be64(data + 4, MAD_GUID);
    put_be64(data + 12, MAD_GUID);
    put_be64(data + 20, MAD_GUID);
    put_be16(data + 28, 32);
    put_be16(data + 30, MAD_DEVICE_ID);
    put_be32(data + 32, MAD_REVISION);
    data[36] = in_port;
    put_be24(data + 37, MAD_VENDOR_ID);
}

static void test_node_info(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t want[64];

    for (unsigned port = !mad_is_switch(b); port <= b->node->num_ports;
         port++) {
        node_info(b, port, want);
        mad_request(b, 0x01, NODE_INFO, 0);
        g_assert_cmphex(mad_answer(b, port), ==, MAD_OK);
        g_assert_cmpmem(mad_data(b), 64, want, 64);
    }
    mad_set_refused(b, NODE_INFO, 0, MAD_BAD_ATTRIBUTE);
    mad_get_refused(b, NODE_INFO, 0x80000000, MAD_BAD_VALUE);
    g_assert_cmpmem(mad_data(b), 36, want, 36);
    mad_bench_free(b);
}

/* ---- PortInfo ---- */

/* Which ports have a field: bits. */
#define CA 1u
#define PORT_0 2u
#define EXTERNAL 4u
#define END (CA | PORT_0)
#define LINK (CA | EXTERNAL)
#define ALL (CA | PORT_0 | EXTERNAL)

/* What a Set does. */
typedef enum Access {
    RO,
    RW,      /* any value */
    LID,     /* 1 to 0xbfff */
    ENABLED, /* bits of what is supported; 0: no change, all ones: all */
    RANGE,   /* @least to @most, 0 among them or refused */
    RANGE_0, /* the same, 0: no change */
    COUNT,   /* 0 resets it */
    COMMAND, /* see test-mad-state.c */
    ONCE,    /* ClientReregister */
} Access;

#define CAPS_CA 0x06600a4c
#define CAPS_SWITCH 0x44601a4c

/* One field of table 3.5; @bits are those of its last byte if it is in one. */
typedef struct Field {
    uint8_t byte, bytes, high, low;
    Access access;
    uint8_t ports, writable; /* who has it; who can be set */
    uint32_t reset[3];       /* of a CA, of port 0, of an external port */
    uint8_t least, most;
    unsigned changed;
} Field;

#define WHOLE(at, n) .byte = at, .bytes = n, .high = 7, .low = 0
#define BITS(at, from, to) .byte = at, .bytes = 1, .high = from, .low = to

static const Field fields[] = {
    { WHOLE(16, 2), LID, END, END, .changed = HCA_CHANGED_LID },
    { WHOLE(18, 2), LID, END, END, .changed = HCA_CHANGED_SM },
    { WHOLE(20, 4), RO, END, 0, { CAPS_CA, CAPS_SWITCH, 0 } },
    { WHOLE(24, 2), RO, 0, 0 },
    { WHOLE(26, 2), RW, END, END },
    { WHOLE(28, 1), RO, ALL, 0, { MAD_IN_PORT, MAD_IN_PORT, MAD_IN_PORT } },
    { WHOLE(29, 1), ENABLED, ALL, LINK, { 2, 2, 2 }, .most = 2 },
    { WHOLE(30, 1), RO, ALL, 0, { 2, 2, 2 } },
    { WHOLE(31, 1), RO, ALL, 0, { 2, 2, 2 } },
    { BITS(32, 7, 4), RO, ALL, 0, { 7, 7, 7 } },
    { BITS(32, 3, 0), COMMAND, ALL, 0, { 1, 4, 1 } },
    { BITS(33, 7, 4), COMMAND, ALL, 0, { 2, 5, 2 } },
    { BITS(33, 3, 0), RANGE_0, ALL, LINK, { 2, 2, 2 }, 1, 2 },
    { BITS(34, 7, 6), RW, END, END },
    { BITS(34, 5, 3), RO, 0, 0 },
    { BITS(34, 2, 0), RW, CA, CA, .changed = HCA_CHANGED_LID },
    { BITS(35, 7, 4), RO, ALL, 0, { 4, 4, 4 } },
    { BITS(35, 3, 0), ENABLED, ALL, LINK, { 7, 7, 7 }, .most = 7 },
    { BITS(36, 7, 4), RANGE, LINK, LINK, { 5, 0, 5 }, 1, 5 },
    { BITS(36, 3, 0), RW, END, END, .changed = HCA_CHANGED_SM },
    { BITS(37, 7, 4), RO, LINK, 0, { 4, 0, 4 } },
    { BITS(37, 3, 0), RO, 0, 0 },
    { WHOLE(38, 1), RW, LINK, LINK },
    { WHOLE(39, 1), RO, LINK, 0, { 32, 0, 32 } },
    { WHOLE(40, 1), RO, LINK, 0, { 32, 0, 32 } },
    { BITS(41, 7, 4), RO, 0, 0 },
    { BITS(41, 3, 0), RO, ALL, 0, { 5, 5, 5 } },
    { BITS(42, 7, 5), RW, EXTERNAL, EXTERNAL, { 0, 0, 7 } },
    { BITS(42, 4, 0), RW, EXTERNAL, EXTERNAL, { 0, 0, 18 } },
    { BITS(43, 7, 4), RANGE_0, LINK, LINK, { 4, 0, 4 }, 1, 4 },
    { BITS(43, 3, 3), RW, EXTERNAL, EXTERNAL },
    { BITS(43, 2, 2), RW, EXTERNAL, EXTERNAL },
    { BITS(43, 1, 1), RW, EXTERNAL, EXTERNAL },
    { BITS(43, 0, 0), RW, EXTERNAL, EXTERNAL },
    { WHOLE(44, 2), COUNT, END, END },
    { WHOLE(46, 2), COUNT, END, END },
    { WHOLE(48, 2), COUNT, END, END },
    { WHOLE(50, 1), RO, END, 0, { 8, 1, 0 } },
    { BITS(51, 7, 7), ONCE, END, END, .changed = HCA_CHANGED_REREGISTER },
    { BITS(51, 6, 5), RO, 0, 0 },
    { BITS(51, 4, 0), RW, END, END, { 18, 18, 0 } },
    { BITS(52, 7, 5), RO, 0, 0 },
    { BITS(52, 4, 0), RO, END, 0, { 16, 16, 0 } },
    { BITS(53, 7, 4), RW, LINK, LINK, { 8, 0, 8 } },
    { BITS(53, 3, 0), RW, LINK, LINK, { 8, 0, 8 } },
    { WHOLE(54, 2), RO, 0, 0 },
    { WHOLE(56, 1), RO, 0, 0 },
    { WHOLE(57, 3), RO, 0, 0 },
    { WHOLE(60, 2), RO, 0, 0 },
    { WHOLE(62, 1), RO, 0, 0 },
    { WHOLE(63, 1), RO, 0, 0 },
};

/* A field of more than one byte, or of bits. */
static uint32_t get_field(const uint8_t *data, const Field *f)
{
    uint32_t value = 0;

    if (f->bytes == 1) {
        return mad_bits(data, f->byte, f->high, f->low);
    }
    for (unsigned i = 0; i < f->bytes; i++) {
        value = value << 8 | data[f->byte + i];
    }
    return value;
}

static void put_value(uint8_t *data, const Field *f, uint32_t value)
{
    if (f->bytes == 1) {
        mad_put_bits(data, f->byte, f->high, f->low, value);
        return;
    }
    for (unsigned i = f->bytes; i--; value >>= 8) {
        data[f->byte + i] = value;
    }
}

static unsigned width(const Field *f)
{
    return f->bytes == 1 ? f->high - f->low + 1 : f->bytes * 8;
}

static uint32_t ones(const Field *f)
{
    return UINT32_MAX >> (32 - width(f));
}

/* What a port is, as the fields have it. */
static unsigned kind_of(const MadBench *b, unsigned port)
{
    if (!mad_is_switch(b)) {
        return CA;
    }
    return port ? EXTERNAL : PORT_0;
}

static void reset_info(unsigned kind, uint8_t info[64])
{
    memset(info, 0, 64);
    if (kind & END) {
        put_be64(info + 8, UINT64_C(0xfe80000000000000));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        put_value(info, &fields[i], fields[i].reset[kind >> 1]);
    }
}

static void compare_info(unsigned port, const uint8_t *info,
                         const uint8_t want[64])
{
    for (unsigned i = 0; i < 64; i++) {
        if (info[i] != want[i]) {
            g_error("PortInfo of port %u, byte %u: %#x and not %#x", port, i,
                    info[i], want[i]);
        }
    }
}

static void expect_info(MadBench *b, unsigned port, const uint8_t want[64])
{
    compare_info(port, mad_get(b, PORT_INFO, port), want);
}

/* Each bit of the table's is in one field, but for M_Key and prefix. */
static void test_table(void)
{
    uint8_t seen[64] = { 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        uint8_t mask[64] = { 0 };

        put_value(mask, &fields[i], ones(&fields[i]));
        for (unsigned n = 0; n < 64; n++) {
            g_assert_cmphex(seen[n] & mask[n], ==, 0);
            seen[n] |= mask[n];
        }
    }
    for (unsigned n = 0; n < 64; n++) {
        g_assert_cmphex(seen[n], ==, n < 16 ? 0 : 0xff);
    }
}

static void test_port_info_reset(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t want[64];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned port = !mad_is_switch(b); port <= b->node->num_ports;
             port++) {
            reset_info(kind_of(b, port), want);
            expect_info(b, port, want);
            /* "The manager supports extended speeds". */
            expect_info(b, port | 0x80000000, want);
        }
        mad_configure(b, 5, 3);
        hca_node_reset(b->node);
    }
    mad_expect_changed(b, 0, 0);
    mad_bench_free(b);
}

/* The port that it came in by, whichever it is asked for. */
static void test_port_info_local_port(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);

    for (unsigned in = 0; in <= MAD_SWITCH_PORTS; in++) {
        for (unsigned port = 0; port <= MAD_SWITCH_PORTS; port++) {
            mad_request(b, 0x01, PORT_INFO, port);
            g_assert_cmphex(mad_answer(b, in), ==, MAD_OK);
            g_assert_cmpuint(mad_data(b)[28], ==, in);
        }
    }
    mad_bench_free(b);
}

static void test_port_info_modifier(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    unsigned ports = b->node->num_ports;
    const uint32_t bad[] = { ports + 1, 255,        256,       0x10000,
                             1u << 30,  0x7fffffff, UINT32_MAX };
    uint8_t want[64];

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        mad_get_refused(b, PORT_INFO, bad[i], MAD_BAD_VALUE);
        mad_set_refused(b, PORT_INFO, bad[i], MAD_BAD_VALUE);
    }
    if (!mad_is_switch(b)) {
        reset_info(CA, want);
        expect_info(b, 0, want); /* the port that it came in by */
    }
    mad_bench_free(b);
}

static bool value_good(const Field *f, uint32_t value)
{
    switch (f->access) {
    case LID:
        return value && value < 0xc000;
    case ENABLED:
        return value == ones(f) || !(value & ~(uint32_t)f->most);
    case RANGE:
        return value >= f->least && value <= f->most;
    case RANGE_0:
        return value == 0 || (value >= f->least && value <= f->most);
    default:
        return true;
    }
}

/* What a field is after a Set of @value. */
static uint32_t value_after(const Field *f, uint32_t old, uint32_t value)
{
    switch (f->access) {
    case RO:
    case COMMAND:
        return old;
    case ENABLED:
        value = value == ones(f) ? f->most : value;
        return value && value_good(f, value) ? value : old;
    case RANGE_0:
        return value && value_good(f, value) ? value : old;
    case COUNT:
        return value ? old : 0;
    case ONCE:
        return 0;
    default:
        return value_good(f, value) ? value : old;
    }
}

/* Set it to @value, and M_KeyLeasePeriod or HOQLife beside it. */
static void try_value(MadBench *b, unsigned port, const Field *f,
                      uint32_t value)
{
    unsigned kind = kind_of(b, port);
    bool writable = f->writable & kind;
    uint8_t set[64], want[64];
    uint32_t old, now;
    uint16_t status;

    mad_good_info(b, port, set);
    mad_set_port_info(b, port, set);
    mad_forget(b);
    mad_port_info(b, port, want);
    old = get_field(want, f);
    now = writable ? value_after(f, old, value) : old;
    put_value(want, f, now);
    put_value(set, f, value);
    status = mad_set(b, PORT_INFO, port, set);
    g_assert_cmphex(status, ==,
                    writable && !value_good(f, value) ? MAD_BAD_VALUE : MAD_OK);
    if (f->access == ONCE && writable) {
        g_assert_cmphex(get_field(mad_data(b), f), ==, value);
        mad_expect_changed(b, port, value ? f->changed : 0);
    } else {
        mad_expect_changed(b, port, now != old ? f->changed : 0);
        compare_info(port, mad_data(b), want);
    }
    expect_info(b, port, want);
}

static void try_field(MadBench *b, unsigned port, const Field *f)
{
    if (f->access == COMMAND && (kind_of(b, port) & LINK)) {
        return;
    }
    if (width(f) <= 8) {
        for (uint32_t value = 0; value <= ones(f); value++) {
            try_value(b, port, f, value);
        }
        return;
    }
    for (unsigned i = 0; i < 60; i++) {
        static const uint32_t edges[] = { 0,      1,      0xbfff,    0xc000,
                                          0xfffe, 0xffff, UINT32_MAX };
        uint32_t value = i < G_N_ELEMENTS(edges) ? edges[i]
                                                 : (uint32_t)g_test_rand_int();

        try_value(b, port, f, value & ones(f));
    }
}

static void test_port_info_fields(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    const unsigned ports[] = { mad_is_switch(b) ? 0 : 1, b->node->num_ports };

    for (unsigned n = 0; n < 1u + mad_is_switch(b); n++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
            try_field(b, ports[n], &fields[i]);
            hca_node_reset(b->node);
            mad_forget(b);
        }
    }
    mad_bench_free(b);
}

/* M_Key and prefix are of 64 bits; a new prefix is a new GID. */
static void test_port_info_long(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    unsigned port = mad_is_switch(b) ? 0 : 1;
    uint8_t info[64];

    mad_good_info(b, port, info);
    mad_set_port_info(b, port, info);
    mad_forget(b);
    put_be64(info, UINT64_C(0x8899aabbccddeeff));
    put_be64(info + 8, UINT64_C(0x0123456789abcdef));
    mad_set_port_info(b, port, info);
    g_assert_cmpmem(mad_data(b), 16, info, 16);
    g_assert_cmphex(b->port[port].seen.info.gid_prefix, ==,
                    UINT64_C(0x0123456789abcdef));
    mad_expect_changed(b, port, HCA_CHANGED_GIDS);
    b->m_key = UINT64_C(0x8899aabbccddeeff);
    g_assert_cmpmem(mad_get(b, PORT_INFO, port), 16, info, 16);
    /* The same again is no change. */
    mad_set_port_info(b, port, info);
    mad_expect_changed(b, port, 0);
    if (mad_is_switch(b)) {
        memset(info, 0x55, 16);
        g_assert_cmphex(mad_set(b, PORT_INFO, 3, info), ==, MAD_BAD_VALUE);
        g_assert_cmpmem(mad_get(b, PORT_INFO, 3), 28, zero, 28);
    }
    mad_bench_free(b);
}

/*
 * All that is wrong at once: nothing of it is taken, and all the rest is. Who is
 * told finds everything new, at once.
 */
static void test_port_info_mixed(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_CA);
    uint8_t good[64], bad[64], want[64];

    mad_good_info(b, 1, good);
    mad_set_port_info(b, 1, good);
    mad_forget(b);
    memcpy(bad, good, 64);
    put_be16(bad + 16, 0xc000);      /* LID */
    put_be16(bad + 18, 0);           /* MasterSMLID */
    mad_put_bits(bad, 35, 3, 0, 8);  /* LinkSpeedEnabled */
    mad_put_bits(bad, 36, 7, 4, 6);  /* NeighborMTU */
    mad_put_bits(bad, 43, 7, 4, 5);  /* OperationalVLs */
    mad_put_bits(bad, 33, 3, 0, 3);  /* LinkDownDefaultState */
    bad[29] = 4;                     /* LinkWidthEnabled */
    mad_put_bits(bad, 34, 2, 0, 3);  /* good: LMC */
    mad_put_bits(bad, 36, 3, 0, 9);  /* MasterSMSL */
    put_be16(bad + 26, 0x1234);      /* lease */
    bad[38] = 0x77;                  /* VLHighLimit */
    mad_put_bits(bad, 51, 4, 0, 20); /* SubnetTimeOut */
    mad_put_bits(bad, 51, 7, 7, 1);  /* ClientReregister */
    mad_port_info(b, 1, want);
    mad_put_bits(want, 34, 2, 0, 3);
    mad_put_bits(want, 36, 3, 0, 9);
    put_be16(want + 26, 0x1234);
    want[38] = 0x77;
    mad_put_bits(want, 51, 4, 0, 20);
    g_assert_cmphex(mad_set(b, PORT_INFO, 1, bad), ==, MAD_BAD_VALUE);
    g_assert_cmphex(mad_bits(mad_data(b), 51, 7, 7), ==, 1);
    expect_info(b, 1, want);
    g_assert_cmpuint(b->port[1].tells, ==, 1);
    g_assert_cmpuint(b->port[1].seen.info.lmc, ==, 3);
    g_assert_cmpuint(b->port[1].seen.info.sm_sl, ==, 9);
    mad_expect_changed(
        b, 1, HCA_CHANGED_LID | HCA_CHANGED_SM | HCA_CHANGED_REREGISTER);
    mad_bench_free(b);
}

/* Each of them to all ones, as packets make it, and back by a Set. */
static void test_violations(gconstpointer type)
{
    const HcaKeyViolation bad = { .slid = 1, .dlid = 2, .key = 3 };
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    unsigned port = mad_is_switch(b) ? 0 : 1;
    uint8_t info[64];

    for (unsigned i = 0; i < 3; i++) {
        hca_node_bad_pkey(b->node, port, &bad);
        hca_node_bad_qkey(b->node, port, &bad);
    }
    hca_node_bad_qkey(b->node, port, &bad);
    mad_good_info(b, port, info);
    g_assert_cmpuint(get_be16(info + 46), ==, 3);
    g_assert_cmpuint(get_be16(info + 48), ==, 4);
    put_be16(info + 46, 0xffff); /* not 0: it stays */
    put_be16(info + 48, 0);
    mad_set_port_info(b, port, info);
    g_assert_cmpuint(get_be16(mad_data(b) + 46), ==, 3);
    g_assert_cmpuint(get_be16(mad_data(b) + 48), ==, 0);
    for (unsigned i = 0; i < 0x10005; i++) {
        hca_node_bad_pkey(b->node, port, &bad);
        hca_node_bad_qkey(b->node, port, &bad);
    }
    g_assert_cmphex(get_be16(mad_get(b, PORT_INFO, port) + 46), ==, 0xffff);
    g_assert_cmphex(get_be16(mad_data(b) + 48), ==, 0xffff);
    mad_bench_free(b);
}

/* ---- what is refused, or not answered ---- */

/* Of each of 65536 attributes. */
static void test_attributes(gconstpointer type)
{
    static const uint16_t both[] = { 0x02, 0x10, 0x11, 0x14, 0x15,
                                     0x16, 0x17, 0x18, 0x31 };
    static const uint16_t of_switch[] = { 0x12, 0x19, 0x1b };
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint64_t refused = 0;

    for (unsigned number = 0; number < 0x10000; number++) {
        bool known = false;
        uint16_t status;

        for (unsigned i = 0; i < G_N_ELEMENTS(both); i++) {
            known |= both[i] == number;
        }
        for (unsigned i = 0; mad_is_switch(b) && i < 3; i++) {
            known |= of_switch[i] == number;
        }
        for (unsigned method = 1; method <= 2; method++) {
            mad_request(b, method, number, 0);
            status = mad_answer(b, MAD_IN_PORT);
            if (!known || (method == 2 && (number == 0x10 || number == 0x11))) {
                g_assert_cmphex(status, ==, MAD_BAD_ATTRIBUTE);
            } else {
                g_assert_cmphex(status, !=, MAD_BAD_ATTRIBUTE);
            }
            refused += status != MAD_OK;
        }
    }
    g_assert_cmpuint(b->node->counters.smps, ==, 0x20000);
    g_assert_cmpuint(b->node->counters.refused, ==, refused);
    mad_bench_free(b);
}

/* Send, Trap, Report and all responses are none of an agent's. */
static bool is_silent(unsigned method)
{
    return method >= 0x80 || method == 0x03 || method == 0x05 || method == 0x06;
}

static void test_methods(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (unsigned class = 0; class < 2; class ++) {
        b->class = class ? 0x81 : 0x01;
        for (unsigned method = 0; method < 256; method++) {
            mad_request(b, method, 0x10, 0);
            if (method == 0x07) {
                mad_unanswered(b, MAD_IN_PORT, HCA_MAD_SILENT);
            } else if (is_silent(method)) {
                mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
            } else if (method == 0x01) {
                g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, MAD_OK);
            } else {
                g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==,
                                method == 0x02 ? MAD_BAD_ATTRIBUTE
                                               : MAD_BAD_METHOD);
            }
        }
    }
    mad_bench_free(b);
}

static void test_versions(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (unsigned version = 0; version < 256; version++) {
        mad_request(b, 0x01, 0x11, 0);
        b->mad[2] = version;
        g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==,
                        version == 1 ? MAD_OK : MAD_BAD_VERSION);
        b->mad[2] = 1;
        b->mad[0] = version;
        if (version == 1) {
            g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, MAD_OK);
        } else {
            mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
        }
    }
    mad_bench_free(b);
}

/* Classes that nobody manages: who asks is refused, who does not is silent. */
static void test_classes(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (unsigned class = 0; class < 256; class ++) {
        if (class == 0x01 || class == 0x81 || class == 0x04) {
            continue;
        }
        for (unsigned method = 0; method < 256; method++) {
            b->class = class;
            mad_request(b, method, 0x01, 0);
            b->mad[2] = 2;
            if (method == 0x01 || method == 0x02) {
                g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==,
                                MAD_BAD_ATTRIBUTE);
            } else {
                mad_unanswered(b, MAD_IN_PORT, HCA_MAD_DROP);
            }
        }
    }
    mad_bench_free(b);
}

/* The D bit and the paths of a directed route; see check_echo() of lib-mad. */
static void test_directed(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    b->class = 0x81;
    for (unsigned i = 0; i < 200; i++) {
        mad_request(b, 1 + i % 2, g_test_rand_int_range(0, 0x40),
                    g_test_rand_int_range(0, 3));
        b->mad[7] = g_test_rand_int_range(0, 64);
        b->mad[6] = b->mad[7] + 1;
        for (unsigned n = 32; n < 256; n++) {
            b->mad[n] = n < 64 || n >= 128 ? g_test_rand_int() : 0;
        }
        mad_answer(b, MAD_IN_PORT);
    }
    mad_bench_free(b);
}

static void add_both(const char *name, GTestDataFunc test)
{
    test_add_data(test_named("/mad/sma/ca/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_CA), test);
    test_add_data(test_named("/mad/sma/switch/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_SWITCH), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_both("node-desc", test_node_desc);
    add_both("node-info", test_node_info);
    test_add("/mad/sma/port-info/table", test_table);
    add_both("port-info/reset", test_port_info_reset);
    add_both("port-info/fields", test_port_info_fields);
    add_both("port-info/modifier", test_port_info_modifier);
    add_both("port-info/long", test_port_info_long);
    test_add("/mad/sma/ca/port-info/mixed", test_port_info_mixed);
    test_add("/mad/sma/switch/port-info/local-port", test_port_info_local_port);
    add_both("violations", test_violations);
    add_both("attributes", test_attributes);
    add_both("methods", test_methods);
    add_both("versions", test_versions);
    add_both("classes", test_classes);
    add_both("directed", test_directed);
    return g_test_run();
}
