/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables that managers read and write: P_Keys, GUIDs, virtual lanes, LEDs;
 * SwitchInfo and forwarding tables of a switch. Blocks that there are not, ports
 * that there are not, who is told of a change.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define SWITCH_INFO 0x12
#define GUID_INFO 0x14
#define PKEYS 0x16
#define SL_TO_VL 0x17
#define VL_ARB 0x18
#define LFT 0x19
#define MFT 0x1b
#define LED 0x31

static const uint8_t zero[64];

/* ---- SwitchInfo ---- */

static void switch_info(uint8_t data[64], bool changed)
{
    memset(data, 0, 64);
    put_be16(data, 0xc000);
    put_be16(data + 4, 1024);
    data[11] = changed ? 0x04 : 0;
    put_be16(data + 14, 32);
    data[16] = 0xf0;
}

static void test_switch_info(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);
    uint8_t want[64], set[64];

    switch_info(want, true);
    g_assert_cmpmem(mad_get(b, SWITCH_INFO, 0), 64, want, 64);
    /* What may be set, all at once; the capabilities are as they were. */
    memset(set, 0xff, sizeof(set));
    put_be16(set + 6, 0xbfff);
    set[8] = 1;
    set[9] = 2;
    set[10] = 3;
    set[11] = 0x12 << 3;
    put_be16(set + 18, 0xc11f);
    memcpy(want + 6, set + 6, 5);
    want[11] = 0x12 << 3 | 0x04; /* a 0 leaves PortStateChange */
    put_be16(want + 18, 0xc11f);
    g_assert_cmphex(mad_set(b, SWITCH_INFO, 0, set), ==, MAD_OK);
    g_assert_cmpmem(mad_data(b), 64, want, 64);
    g_assert_cmpmem(mad_get(b, SWITCH_INFO, 0), 64, want, 64);
    /* A 1 clears it, and the answer shows that. */
    set[11] |= 0x04;
    want[11] &= ~0x04;
    g_assert_cmphex(mad_set(b, SWITCH_INFO, 0, set), ==, MAD_OK);
    g_assert_cmpmem(mad_data(b), 64, want, 64);
    mad_get_refused(b, SWITCH_INFO, 1, MAD_BAD_VALUE);
    mad_set_refused(b, SWITCH_INFO, 1, MAD_BAD_VALUE);
    /* A top that cannot be: the old one stays, the rest is applied. */
    put_be16(set + 6, 0xc000);
    set[8] = 7;
    want[8] = 7;
    g_assert_cmphex(mad_set(b, SWITCH_INFO, 0, set), ==, MAD_BAD_VALUE);
    g_assert_cmpmem(mad_data(b), 64, want, 64);
    hca_node_reset(b->node);
    switch_info(want, true);
    g_assert_cmpmem(mad_get(b, SWITCH_INFO, 0), 64, want, 64);
    mad_bench_free(b);
}

/* ---- tables ---- */

/* A block at random, as it comes back. */
static void random_block(uint8_t block[64])
{
    for (unsigned i = 0; i < 64; i++) {
        block[i] = g_test_rand_int();
    }
}

/* Set it, and find it in the answer and by a Get. */
static void try_block(MadBench *b, uint16_t attribute, uint32_t modifier,
                      const uint8_t block[64])
{
    g_assert_cmphex(mad_set(b, attribute, modifier, block), ==, MAD_OK);
    g_assert_cmpmem(mad_data(b), 64, block, 64);
    g_assert_cmpmem(mad_get(b, attribute, modifier), 64, block, 64);
}

static void test_pkeys(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t first[64] = { 0xff, 0xff }, block[64];

    for (unsigned port = !mad_is_switch(b); port <= b->node->num_ports;
         port++) {
        uint32_t modifier = mad_is_switch(b) ? port << 16 : port * 0x12340000;

        g_assert_cmpmem(mad_get(b, PKEYS, modifier), 64, first, 64);
        random_block(block);
        put_be16(block + 10, 0x8000); /* what is no key is held, too */
        put_be16(block + 12, get_be16(block + 2));
        try_block(b, PKEYS, modifier, block);
        g_assert_cmphex(b->port[port].seen.pkeys[31], ==, get_be16(block + 62));
        g_assert_cmpuint(b->port[port].tells, ==, 1);
        mad_expect_changed(b, port, HCA_CHANGED_PKEYS);
        try_block(b, PKEYS, modifier, block);
        mad_expect_changed(b, port, 0);
        mad_get_refused(b, PKEYS, modifier | 1, MAD_BAD_VALUE);
        mad_set_refused(b, PKEYS, modifier | 0xffff, MAD_BAD_VALUE);
    }
    if (mad_is_switch(b)) {
        mad_get_refused(b, PKEYS, (MAD_SWITCH_PORTS + 1) << 16, MAD_BAD_VALUE);
        mad_set_refused(b, PKEYS, 0xffff0000, MAD_BAD_VALUE);
        g_assert_cmpmem(mad_get(b, PKEYS, 20 << 16), 64, block, 64);
    }
    hca_node_reset(b->node);
    g_assert_cmpmem(mad_get(b, PKEYS, 1 << 16), 64, first, 64);
    mad_bench_free(b);
}

static void test_guids(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    unsigned port = mad_is_switch(b) ? 0 : 1;
    uint8_t want[64] = { 0 }, block[64];

    put_be64(want, MAD_GUID);
    g_assert_cmpmem(mad_get(b, GUID_INFO, 0), 64, want, 64);
    random_block(block);
    /* The first is the port's own, which is no error. */
    g_assert_cmphex(mad_set(b, GUID_INFO, 0, block), ==, MAD_OK);
    if (!mad_is_switch(b)) {
        memcpy(want + 8, block + 8, 56);
        g_assert_cmphex(b->port[1].seen.guids[7], ==, get_be64(block + 56));
    }
    g_assert_cmpmem(mad_data(b), 64, want, 64);
    mad_expect_changed(b, port, mad_is_switch(b) ? 0 : HCA_CHANGED_GIDS);
    g_assert_cmphex(mad_set(b, GUID_INFO, 0, block), ==, MAD_OK);
    mad_expect_changed(b, port, 0);
    g_assert_cmpmem(mad_get(b, GUID_INFO, 0), 64, want, 64);
    mad_get_refused(b, GUID_INFO, 1, MAD_BAD_VALUE);
    mad_set_refused(b, GUID_INFO, 0x80000000, MAD_BAD_VALUE);
    mad_bench_free(b);
}

static void test_sl_to_vl_ca(void)
{
    static const uint8_t map[] = { 0x01, 0x23, 0x45, 0x67,
                                   0x89, 0xab, 0xcd, 0xef };
    MadBench *b = mad_bench_new(HCA_NODE_CA);
    uint8_t block[64] = { 0 };

    g_assert_cmpmem(mad_get(b, SL_TO_VL, 0), 64, zero, 64);
    memcpy(block, map, sizeof(map));
    try_block(b, SL_TO_VL, 0, block);
    /* VL 8 and above are not operational: such packets are dropped. */
    for (unsigned sl = 0; sl < 16; sl++) {
        g_assert_cmpuint(hca_node_vl(b->node, 0, 1, sl), ==, sl < 8 ? sl : 15);
    }
    for (unsigned i = 0; i < 16; i++) {
        g_assert_cmpmem(mad_get(b, SL_TO_VL, 1u << i), 64, block, 64);
    }
    for (unsigned i = 16; i < 32; i++) {
        mad_set_refused(b, SL_TO_VL, 1u << i, MAD_BAD_VALUE);
    }
    mad_bench_free(b);
}

/* A map for each way through, none of them another's. */
static void test_sl_to_vl_switch(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);
    uint8_t block[64] = { 0 };

    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned out = 1; out <= MAD_SWITCH_PORTS; out++) {
            for (unsigned in = 0; in <= MAD_SWITCH_PORTS; in++) {
                memset(block, (in + 3 * out) % 8 * 0x11, 8);
                if (pass) {
                    g_assert_cmpmem(mad_get(b, SL_TO_VL, in << 8 | out), 64,
                                    block, 64);
                    g_assert_cmpuint(hca_node_vl(b->node, in, out, 5), ==,
                                     (in + 3 * out) % 8);
                } else {
                    try_block(b, SL_TO_VL, in << 8 | out, block);
                }
            }
        }
    }
    g_assert_cmpuint(hca_node_vl(b->node, 1, 0, 5), ==, 0); /* base port 0 */
    mad_get_refused(b, SL_TO_VL, 0x0100, MAD_BAD_VALUE);
    mad_get_refused(b, SL_TO_VL, MAD_SWITCH_PORTS + 1, MAD_BAD_VALUE);
    mad_set_refused(b, SL_TO_VL, (MAD_SWITCH_PORTS + 1) << 8 | 1,
                    MAD_BAD_VALUE);
    mad_set_refused(b, SL_TO_VL, 1u << 16 | 1, MAD_BAD_VALUE); /* all inputs */
    mad_set_refused(b, SL_TO_VL, 1u << 17 | 1, MAD_BAD_VALUE); /* all outputs */
    mad_bench_free(b);
}

/* How many VLs are operational says which there are. */
static void test_operational_vls(void)
{
    static const uint8_t vls[] = { 0, 1, 2, 4, 8 };
    MadBench *b = mad_bench_new(HCA_NODE_CA);
    uint8_t map[64] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };
    uint8_t info[64];

    try_block(b, SL_TO_VL, 0, map);
    for (unsigned code = 1; code <= 4; code++) {
        mad_good_info(b, 1, info);
        mad_put_bits(info, 43, 7, 4, code);
        mad_set_port_info(b, 1, info);
        for (unsigned sl = 0; sl < 16; sl++) {
            g_assert_cmpuint(hca_node_vl(b->node, 0, 1, sl), ==,
                             sl < vls[code] ? sl : 15);
        }
    }
    mad_bench_free(b);
}

/* Bytes 7:4 of a VL are nothing; the others are as they were set. */
static void try_arb(MadBench *b, unsigned part, unsigned port)
{
    uint32_t modifier = part << 16 | port;
    uint8_t block[64], want[64];

    random_block(block);
    for (unsigned i = 0; i < 64; i++) {
        want[i] = i & 1 ? block[i] : block[i] & 0x0f;
    }
    g_assert_cmphex(mad_set(b, VL_ARB, modifier, block), ==, MAD_OK);
    g_assert_cmpmem(mad_data(b), 64, want, 64);
    g_assert_cmpmem(mad_get(b, VL_ARB, modifier), 64, want, 64);
}

static void test_vl_arb(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    for (unsigned part = 0; part < 8; part++) {
        for (unsigned port = !!mad_is_switch(b); port <= b->node->num_ports;
             port++) {
            unsigned number = mad_is_switch(b) ? port : 0;

            if (part == 1 || part == 3) {
                try_arb(b, part, number);
            } else {
                mad_get_refused(b, VL_ARB, part << 16 | number, MAD_BAD_VALUE);
                mad_set_refused(b, VL_ARB, part << 16 | number, MAD_BAD_VALUE);
            }
        }
    }
    if (mad_is_switch(b)) {
        mad_get_refused(b, VL_ARB, 1 << 16, MAD_BAD_VALUE);
        mad_set_refused(b, VL_ARB, 1 << 16 | (MAD_SWITCH_PORTS + 1),
                        MAD_BAD_VALUE);
    }
    mad_set_refused(b, VL_ARB, 0xffff0001, MAD_BAD_VALUE);
    mad_bench_free(b);
}

static void test_lft(void)
{
    MadBench *b = mad_bench_new(HCA_NODE_SWITCH);
    uint8_t block[64];

    for (uint32_t i = 0; i < 0xc000 / 64; i++) {
        memset(block, 0xff, sizeof(block));
        g_assert_cmpmem(mad_get(b, LFT, i), 64, block, 64);
        memset(block, i, sizeof(block));
        block[63] = i >> 8;
        try_block(b, LFT, i, block);
    }
    for (uint32_t i = 0; i < 0xc000 / 64; i++) {
        memset(block, i, sizeof(block));
        block[63] = i >> 8;
        g_assert_cmpmem(mad_get(b, LFT, i), 64, block, 64);
        g_assert_cmphex(b->node->lft[64 * i], ==, i & 0xff);
    }
    mad_get_refused(b, LFT, 0xc000 / 64, MAD_BAD_VALUE);
    mad_set_refused(b, LFT, 0xc000 / 64, MAD_BAD_VALUE);
    mad_set_refused(b, LFT, UINT32_MAX, MAD_BAD_VALUE);
    mad_set_refused(b, LFT, 1u << 26, MAD_BAD_VALUE);
    mad_bench_free(b);
}

/* Ports that there can be, 16 at a time, port 0 being one. */
static void test_mft(void)
{
    static const unsigned ports[] = { 1, 14, 15, 16, 20, 31, 32, 40 };

    for (unsigned n = 0; n < G_N_ELEMENTS(ports); n++) {
        MadBench *b = mad_bench_new_ports(HCA_NODE_SWITCH, ports[n]);
        unsigned positions = (ports[n] + 1 + 15) / 16;
        uint8_t block[64];

        for (uint32_t position = 0; position < 16; position++) {
            uint32_t modifier = position << 28 | 31;

            if (position >= positions) {
                mad_get_refused(b, MFT, modifier, MAD_BAD_VALUE);
                mad_set_refused(b, MFT, modifier, MAD_BAD_VALUE);
                continue;
            }
            g_assert_cmpmem(mad_get(b, MFT, modifier), 64, zero, 64);
            random_block(block);
            try_block(b, MFT, modifier, block);
            g_assert_cmphex(b->node->mft[31 * 32 + 7] >> 16 * position & 0xffff,
                            ==, get_be16(block + 14));
            mad_get_refused(b, MFT, position << 28 | 32, MAD_BAD_VALUE);
            mad_set_refused(b, MFT, position << 28 | 0x1ff, MAD_BAD_VALUE);
        }
        mad_bench_free(b);
    }
}

static void test_led(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t on[64] = { 0x80 }, all[64];

    memset(all, 0xff, sizeof(all));
    g_assert_cmpmem(mad_get(b, LED, 0), 64, zero, 64);
    g_assert_cmphex(mad_set(b, LED, 0, all), ==, MAD_OK);
    g_assert_cmpmem(mad_data(b), 64, on, 64);
    g_assert_cmpmem(mad_get(b, LED, 0), 64, on, 64);
    if (mad_is_switch(b)) {
        g_assert_cmpmem(mad_get(b, LED, 7), 64, zero, 64);
        mad_get_refused(b, LED, MAD_SWITCH_PORTS + 1, MAD_BAD_VALUE);
    }
    all[0] = 0x7f;
    g_assert_cmphex(mad_set(b, LED, 0, all), ==, MAD_OK);
    g_assert_cmpmem(mad_get(b, LED, 0), 64, zero, 64);
    mad_bench_free(b);
}

static void add_both(const char *name, GTestDataFunc test)
{
    test_add_data(test_named("/mad/tables/ca/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_CA), test);
    test_add_data(test_named("/mad/tables/switch/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_SWITCH), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mad/tables/switch/switch-info", test_switch_info);
    add_both("pkeys", test_pkeys);
    add_both("guids", test_guids);
    test_add("/mad/tables/ca/sl-to-vl", test_sl_to_vl_ca);
    test_add("/mad/tables/ca/operational-vls", test_operational_vls);
    test_add("/mad/tables/switch/sl-to-vl", test_sl_to_vl_switch);
    add_both("vl-arb", test_vl_arb);
    test_add("/mad/tables/switch/lft", test_lft);
    test_add("/mad/tables/switch/mft", test_mft);
    add_both("led", test_led);
    return g_test_run();
}
