/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance management agent (IBA 16.1): where each counter lies, at which
 * value it stays, which bit clears it, and whose it is.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define CLASS_PORT_INFO 0x01
#define COUNTERS 0x12
#define EXTENDED 0x1d
#define ALL_PORTS 0xff
#define CLASS 0x04

/* A counter; @select: from 16 on a bit of CounterSelect2. */
typedef struct Row {
    HcaPmaCounter counter;
    unsigned byte, width, shift, select;
} Row;

static const Row counters[] = {
    { HCA_PMA_SYMBOL_ERRORS, 4, 16, 0, 0 },
    { HCA_PMA_LINK_RECOVERIES, 6, 8, 0, 1 },
    { HCA_PMA_LINK_DOWNED, 7, 8, 0, 2 },
    { HCA_PMA_RCV_ERRORS, 8, 16, 0, 3 },
    { HCA_PMA_RCV_REMOTE_ERRORS, 10, 16, 0, 4 },
    { HCA_PMA_RCV_RELAY_ERRORS, 12, 16, 0, 5 },
    { HCA_PMA_XMIT_DISCARDS, 14, 16, 0, 6 },
    { HCA_PMA_XMIT_CONSTRAINT, 16, 8, 0, 7 },
    { HCA_PMA_RCV_CONSTRAINT, 17, 8, 0, 8 },
    { HCA_PMA_INTEGRITY_ERRORS, 19, 4, 4, 9 },
    { HCA_PMA_OVERRUN_ERRORS, 19, 4, 0, 10 },
    { HCA_PMA_QP1_DROPPED, 20, 16, 0, 17 },
    { HCA_PMA_VL15_DROPPED, 22, 16, 0, 11 },
    { HCA_PMA_XMIT_DATA, 24, 32, 0, 12 },
    { HCA_PMA_RCV_DATA, 28, 32, 0, 13 },
    { HCA_PMA_XMIT_PKTS, 32, 32, 0, 14 },
    { HCA_PMA_RCV_PKTS, 36, 32, 0, 15 },
    { HCA_PMA_XMIT_WAIT, 40, 32, 0, 16 },
};

static const Row extended[] = {
    { HCA_PMA_XMIT_DATA, 8, 64, 0, 0 },
    { HCA_PMA_RCV_DATA, 16, 64, 0, 1 },
    { HCA_PMA_XMIT_PKTS, 24, 64, 0, 2 },
    { HCA_PMA_RCV_PKTS, 32, 64, 0, 3 },
    { HCA_PMA_UNICAST_XMIT, 40, 64, 0, 4 },
    { HCA_PMA_UNICAST_RCV, 48, 64, 0, 5 },
    { HCA_PMA_MULTICAST_XMIT, 56, 64, 0, 6 },
    { HCA_PMA_MULTICAST_RCV, 64, 64, 0, 7 },
};

typedef struct Table {
    const Row *rows;
    unsigned n;
    uint16_t attribute;
} Table;

static const Table tables[] = {
    { counters, G_N_ELEMENTS(counters), COUNTERS },
    { extended, G_N_ELEMENTS(extended), EXTENDED },
};

static MadBench *new_bench(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));

    b->class = CLASS;
    return b;
}

/* The port under test. */
static unsigned port_of(const MadBench *b)
{
    return mad_is_switch(b) ? 7 : 1;
}

/* The node counts two of them itself. */
static void count(MadBench *b, unsigned port, HcaPmaCounter counter,
                  uint64_t value)
{
    switch (counter) {
    case HCA_PMA_LINK_DOWNED:
        b->node->port[port].downs = value;
        break;
    case HCA_PMA_INTEGRITY_ERRORS:
        b->node->port[port].integrity_errors = value;
        break;
    default:
        b->port[port].counters.value[counter] = value;
    }
}

static uint64_t limit(const Row *row)
{
    return row->width == 64 ? UINT64_MAX : (UINT64_C(1) << row->width) - 1;
}

static uint64_t get_counter(const uint8_t *data, const Row *row)
{
    uint64_t value = 0;

    if (row->width == 4) {
        return data[row->byte] >> row->shift & 15;
    }
    for (unsigned i = 0; i < row->width / 8; i++) {
        value = value << 8 | data[row->byte + i];
    }
    return value;
}

static const uint8_t *read_counters(MadBench *b, const Table *table,
                                    uint8_t select)
{
    uint8_t *data = mad_request(b, 0x01, table->attribute, 0);

    data[1] = select;
    g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_OK);
    return mad_data(b);
}

static const uint8_t *clear_counters(MadBench *b, const Table *table,
                                     uint8_t select, uint32_t which)
{
    uint8_t *data = mad_request(b, 0x02, table->attribute, 0);

    /* What the payload has for counters does not matter. */
    for (unsigned i = 0; i < 192; i++) {
        data[i] = g_test_rand_int();
    }
    data[1] = select;
    put_be16(data + 2, which);
    if (table->attribute == COUNTERS) {
        data[18] = which >> 16;
    }
    g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_OK);
    return mad_data(b);
}

/* All of the answer: @value of each row, and 0 between them. */
static void expect_all(const uint8_t *data, const Table *table, uint8_t select,
                       uint16_t selected, const uint64_t *value)
{
    uint8_t left[192];

    memcpy(left, data, sizeof(left));
    for (unsigned i = 0; i < table->n; i++) {
        const Row *row = &table->rows[i];

        if (get_counter(data, row) != value[i]) {
            g_error("attribute %#x byte %u: %" G_GUINT64_FORMAT
                    " and not %" G_GUINT64_FORMAT,
                    table->attribute, row->byte, get_counter(data, row),
                    value[i]);
        }
        if (row->width == 4) {
            left[row->byte] &= 15 << (4 - row->shift);
        } else {
            memset(left + row->byte, 0, row->width / 8);
        }
    }
    g_assert_cmpuint(left[1], ==, select);
    g_assert_cmphex(get_be16(left + 2), ==, selected);
    left[1] = left[2] = left[3] = 0;
    for (unsigned i = 0; i < sizeof(left); i++) {
        g_assert_cmphex(left[i], ==, 0);
    }
}

/* ---- one port ---- */

static void test_layout(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned t = 0; t < G_N_ELEMENTS(tables); t++) {
        uint64_t value[G_N_ELEMENTS(counters)];

        for (unsigned round = 0; round < 50; round++) {
            for (unsigned i = 0; i < tables[t].n; i++) {
                const Row *row = &tables[t].rows[i];

                value[i] = (uint64_t)(uint32_t)g_test_rand_int() << 32 |
                           (uint32_t)g_test_rand_int();
                value[i] &= limit(row);
                count(b, port_of(b), row->counter, value[i]);
            }
            expect_all(read_counters(b, &tables[t], port_of(b)), &tables[t],
                       port_of(b), 0, value);
        }
    }
    mad_bench_free(b);
}

/* Each alone, below its limit, at it and beyond: it stays there. */
static void test_saturation(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned t = 0; t < G_N_ELEMENTS(tables); t++) {
        for (unsigned i = 0; i < tables[t].n; i++) {
            const Row *row = &tables[t].rows[i];
            const uint64_t values[] = {
                1,
                limit(row) - 1,
                limit(row),
                limit(row) == UINT64_MAX ? UINT64_MAX : limit(row) + 1,
                limit(row) == UINT64_MAX ? UINT64_MAX : 2 * limit(row) + 1,
                UINT64_MAX,
                0,
            };

            for (unsigned n = 0; n < G_N_ELEMENTS(values); n++) {
                uint64_t want[G_N_ELEMENTS(counters)] = { 0 };

                count(b, port_of(b), row->counter, values[n]);
                want[i] = MIN(values[n], limit(row));
                expect_all(read_counters(b, &tables[t], port_of(b)), &tables[t],
                           port_of(b), 0, want);
            }
        }
    }
    mad_bench_free(b);
}

static void count_all(MadBench *b, unsigned port, uint64_t value)
{
    for (unsigned i = 0; i < HCA_PMA_NCOUNTERS; i++) {
        count(b, port, i, value + (value ? i % 3 : 0));
    }
}

static void expect_since(MadBench *b, const Table *table, const uint8_t *data,
                         uint16_t selected, const uint64_t *from)
{
    uint64_t want[G_N_ELEMENTS(counters)];

    for (unsigned i = 0; i < table->n; i++) {
        uint64_t now = 9 + table->rows[i].counter % 3;

        want[i] = from ? now - from[i] : now;
    }
    expect_all(data, table, port_of(b), selected, want);
}

/* Each bit clears its counter, in its own set; a Get clears nothing. */
static void test_clear(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned t = 0; t < 2; t++) {
        const Table *table = &tables[t], *other = &tables[!t];

        for (unsigned bit = 0; bit < 24; bit++) {
            uint64_t from[G_N_ELEMENTS(counters)] = { 0 };

            if (t && bit >= 16) {
                continue;
            }
            hca_node_reset(b->node);
            count_all(b, port_of(b), 9);
            for (unsigned i = 0; i < table->n; i++) {
                bool hit = table->rows[i].select == bit;

                from[i] = hit ? 9 + table->rows[i].counter % 3 : 0;
            }
            mad_request(b, 0x01, table->attribute, 0);
            memset(b->mad + 64, 0xff, 192);
            b->mad[65] = port_of(b);
            g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_OK);
            expect_since(b, table, mad_data(b), 0xffff, NULL);
            expect_since(b, table,
                         clear_counters(b, table, port_of(b), 1u << bit),
                         bit < 16 ? 1u << bit : 0, from);
            expect_since(b, table, read_counters(b, table, port_of(b)), 0,
                         from);
            expect_since(b, other, read_counters(b, other, port_of(b)), 0,
                         NULL);
        }
    }
    mad_bench_free(b);
}

/* What was at its limit counts from 0 again; what begins anew does, too. */
static void test_clear_counts(gconstpointer type)
{
    const Row *row = &counters[0];
    MadBench *b = new_bench(type);

    count(b, port_of(b), row->counter, 1000000);
    g_assert_cmpuint(get_counter(read_counters(b, &tables[0], port_of(b)), row),
                     ==, 0xffff);
    clear_counters(b, &tables[0], port_of(b), 0xffff);
    g_assert_cmpuint(get_counter(mad_data(b), row), ==, 0);
    count(b, port_of(b), row->counter, 1000005);
    g_assert_cmpuint(get_counter(read_counters(b, &tables[0], port_of(b)), row),
                     ==, 5);
    count(b, port_of(b), row->counter, 3); /* a card that was reset */
    g_assert_cmpuint(get_counter(read_counters(b, &tables[0], port_of(b)), row),
                     ==, 3);
    mad_bench_free(b);
}

/* ---- ports ---- */

static void test_port_select(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned t = 0; t < 2; t++) {
        for (unsigned select = 0; select < 256; select++) {
            bool good = mad_is_switch(b)
                            ? select <= MAD_SWITCH_PORTS || select == ALL_PORTS
                            : select == 1;

            for (unsigned method = 1; method <= 2; method++) {
                mad_request(b, method, tables[t].attribute, 0)[1] = select;
                g_assert_cmphex(mad_answer(b, port_of(b)), ==,
                                good ? MAD_OK : MAD_BAD_VALUE);
                g_assert_cmpuint(mad_data(b)[1], ==, select);
            }
        }
    }
    mad_bench_free(b);
}

/* Each port's own, whichever a MAD comes in by. */
static void test_each_port(void)
{
    MadBench *b = new_bench(GUINT_TO_POINTER(HCA_NODE_SWITCH));

    for (unsigned port = 0; port <= MAD_SWITCH_PORTS; port++) {
        count(b, port, HCA_PMA_RCV_PKTS, 1000 + port);
    }
    clear_counters(b, &tables[1], 3, 0xff);
    for (unsigned port = 0; port <= MAD_SWITCH_PORTS; port++) {
        g_assert_cmpuint(
            get_counter(read_counters(b, &tables[1], port), &extended[3]), ==,
            port == 3 ? 0 : 1000 + port);
    }
    mad_bench_free(b);
}

/* All external ports together; a Set clears each of them. */
static void test_all_ports(void)
{
    MadBench *b = new_bench(GUINT_TO_POINTER(HCA_NODE_SWITCH));
    uint64_t sum = 0;

    for (unsigned port = 0; port <= MAD_SWITCH_PORTS; port++) {
        count_all(b, port, 0);
        count(b, port, HCA_PMA_RCV_PKTS, UINT64_C(0x20000000) + port);
        count(b, port, HCA_PMA_RCV_ERRORS, 100 + port);
        count(b, port, HCA_PMA_LINK_DOWNED, 20);
        sum += port ? 100 + port : 0;
    }
    read_counters(b, &tables[0], ALL_PORTS);
    g_assert_cmpuint(get_counter(mad_data(b), &counters[16]), ==, UINT32_MAX);
    g_assert_cmpuint(get_counter(mad_data(b), &counters[3]), ==, sum);
    g_assert_cmpuint(get_counter(mad_data(b), &counters[2]), ==, 0xff);
    read_counters(b, &tables[1], ALL_PORTS);
    g_assert_cmphex(get_counter(mad_data(b), &extended[3]), ==,
                    UINT64_C(0x20000000) * 20 + 20 * 21 / 2);
    clear_counters(b, &tables[0], ALL_PORTS, 1u << 3);
    g_assert_cmpuint(get_counter(mad_data(b), &counters[3]), ==, 0);
    for (unsigned port = 0; port <= MAD_SWITCH_PORTS; port++) {
        read_counters(b, &tables[0], port);
        g_assert_cmpuint(get_counter(mad_data(b), &counters[3]), ==,
                         port ? 0 : 100);
        g_assert_cmpuint(get_counter(mad_data(b), &counters[2]), ==, 20);
    }
    mad_bench_free(b);
}

/* ---- what else it is asked ---- */

static void test_class_port_info(gconstpointer type)
{
    MadBench *b = new_bench(type);
    uint8_t want[192] = { 1, 1 };

    /* Extended counters, PortXmitWait, QP1Dropped; a switch's all ports. */
    put_be16(want + 2, 0x9200 | (mad_is_switch(b) ? 0x0100 : 0));
    want[7] = 18;
    for (unsigned i = 0; i < 2; i++) {
        mad_request(b, 0x01, CLASS_PORT_INFO, 0);
        memset(b->mad + 64, i ? 0xff : 0, 192);
        g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_OK);
        g_assert_cmpmem(mad_data(b), 192, want, 192);
    }
    mad_request(b, 0x01, CLASS_PORT_INFO, 1);
    g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_BAD_VALUE);
    mad_request(b, 0x02, CLASS_PORT_INFO, 0);
    g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_BAD_ATTRIBUTE);
    mad_bench_free(b);
}

/* The modifier is 0; if not, there are counters all the same. */
static void test_modifier(gconstpointer type)
{
    MadBench *b = new_bench(type);

    count(b, port_of(b), HCA_PMA_RCV_PKTS, 77);
    for (unsigned t = 0; t < 2; t++) {
        for (unsigned i = 0; i < 32; i++) {
            mad_request(b, 0x01, tables[t].attribute, 1u << i)[1] = port_of(b);
            g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_BAD_VALUE);
            g_assert_cmpuint(
                get_counter(mad_data(b), t ? &extended[3] : &counters[16]), ==,
                77);
        }
    }
    mad_bench_free(b);
}

static void test_attributes(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned number = 0; number < 0x10000; number++) {
        if (number == CLASS_PORT_INFO || number == COUNTERS ||
            number == EXTENDED) {
            continue;
        }
        mad_request(b, 1 + number % 2, number, 0)[1] = port_of(b);
        g_assert_cmphex(mad_answer(b, port_of(b)), ==, MAD_BAD_ATTRIBUTE);
    }
    g_assert_cmpuint(b->node->counters.gmps, ==, 0x10000 - 3);
    g_assert_cmpuint(b->node->counters.refused, ==, 0x10000 - 3);
    g_assert_cmpuint(b->node->counters.smps, ==, 0);
    mad_bench_free(b);
}

static void test_methods(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned method = 0; method < 256; method++) {
        mad_request(b, method, COUNTERS, 0)[1] = port_of(b);
        if (method >= 0x80 || method == 3 || (method >= 5 && method <= 7)) {
            mad_unanswered(b, port_of(b), HCA_MAD_DROP);
        } else {
            g_assert_cmphex(mad_answer(b, port_of(b)), ==,
                            method == 1 || method == 2 ? MAD_OK
                                                       : MAD_BAD_METHOD);
        }
    }
    mad_bench_free(b);
}

static void test_versions(gconstpointer type)
{
    MadBench *b = new_bench(type);

    for (unsigned version = 0; version < 256; version++) {
        mad_request(b, 0x01, COUNTERS, 0)[1] = port_of(b);
        b->mad[2] = version;
        g_assert_cmphex(mad_answer(b, port_of(b)), ==,
                        version == 1 ? MAD_OK : MAD_BAD_VERSION);
        b->mad[2] = 1;
        b->mad[0] = version;
        if (version != 1) {
            mad_unanswered(b, port_of(b), HCA_MAD_DROP);
        }
    }
    mad_bench_free(b);
}

static void add_both(const char *name, GTestDataFunc test)
{
    test_add_data(test_named("/mad/pma/ca/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_CA), test);
    test_add_data(test_named("/mad/pma/switch/%s", name),
                  GUINT_TO_POINTER(HCA_NODE_SWITCH), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_both("layout", test_layout);
    add_both("saturation", test_saturation);
    add_both("clear", test_clear);
    add_both("clear-counts", test_clear_counts);
    add_both("port-select", test_port_select);
    test_add("/mad/pma/switch/each-port", test_each_port);
    test_add("/mad/pma/switch/all-ports", test_all_ports);
    add_both("class-port-info", test_class_port_info);
    add_both("modifier", test_modifier);
    add_both("attributes", test_attributes);
    add_both("methods", test_methods);
    add_both("versions", test_versions);
    return g_test_run();
}
