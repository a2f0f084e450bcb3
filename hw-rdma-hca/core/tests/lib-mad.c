/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-mad.h"

#include <string.h>

/* ---- what the node asks ---- */

static int64_t op_now(void *opaque)
{
    return ((MadBench *)opaque)->now;
}

static void op_set_link(void *opaque, unsigned port, bool poll)
{
    MadBench *b = opaque;

    g_assert_cmpuint(port, <=, b->node->num_ports);
    if (poll) {
        b->port[port].trains++;
    } else {
        b->port[port].stops++;
    }
    hca_node_link(b->node, port, poll && !b->no_peer);
}

static void op_changed(void *opaque, unsigned port, unsigned what)
{
    MadBench *b = opaque;

    g_assert_cmpuint(what, !=, 0);
    b->port[port].changed |= what;
    b->port[port].tells++;
    b->port[port].seen = b->node->port[port];
}

static void op_counters(void *opaque, unsigned port, HcaPmaCounters *counters)
{
    *counters = ((MadBench *)opaque)->port[port].counters;
}

static bool op_send_smp(void *opaque, uint16_t lid, uint8_t sl,
                        const uint8_t *mad)
{
    MadBench *b = opaque;
    MadSent *sent;

    if (b->no_way) {
        return false;
    }
    sent = g_new0(MadSent, 1);
    *sent = (MadSent) { .lid = lid, .sl = sl, .time = b->now };
    memcpy(sent->mad, mad, HCA_MAD_SIZE);
    g_queue_push_tail(&b->sent, sent);
    return true;
}

static const HcaNodeOps ops = {
    .now = op_now,
    .set_link = op_set_link,
    .changed = op_changed,
    .counters = op_counters,
    .send_smp = op_send_smp,
};

/* ---- life ---- */

MadBench *mad_bench_new_ports(HcaNodeType type, unsigned num_ports)
{
    const HcaNodeSetup setup = {
        .type = type,
        .num_ports = num_ports,
        .guid = MAD_GUID,
        .device_id = MAD_DEVICE_ID,
        .vendor_id = MAD_VENDOR_ID,
        .revision = MAD_REVISION,
        .description = MAD_DESCRIPTION,
        .mtu_cap = 5,
        .vl_cap = 4,
        .width = 2,
        .speeds = 7,
    };
    MadBench *b = g_new0(MadBench, 1);

    g_assert_cmpuint(num_ports, <=, MAD_MAX_PORTS);
    b->now = MAD_S;
    b->class = 0x01;
    b->tid = UINT64_C(0x8123456700000000);
    g_queue_init(&b->sent);
    b->node = hca_node_new(&setup, &ops, b);
    return b;
}

MadBench *mad_bench_new(HcaNodeType type)
{
    return mad_bench_new_ports(type,
                               type == HCA_NODE_CA ? 1 : MAD_SWITCH_PORTS);
}

void mad_bench_free(MadBench *b)
{
    mad_clear_sent(b);
    hca_node_free(b->node);
    g_free(b);
}

void mad_forget(MadBench *b)
{
    for (unsigned i = 0; i <= MAD_MAX_PORTS; i++) {
        b->port[i].changed = 0;
        b->port[i].tells = 0;
        b->port[i].trains = 0;
        b->port[i].stops = 0;
    }
}

void mad_expect_changed(MadBench *b, unsigned port, unsigned changed)
{
    for (unsigned i = 0; i <= MAD_MAX_PORTS; i++) {
        g_assert_cmphex(b->port[i].changed, ==, i == port ? changed : 0);
    }
    mad_forget(b);
}

/* ---- requests ---- */

uint8_t *mad_request(MadBench *b, uint8_t method, uint16_t attribute,
                     uint32_t modifier)
{
    uint8_t *mad = b->mad;

    memset(mad, 0, HCA_MAD_SIZE);
    mad[0] = 1;
    mad[1] = b->class;
    mad[2] = 1;
    mad[3] = method;
    put_be64(mad + 8, ++b->tid);
    put_be16(mad + 16, attribute);
    put_be32(mad + 20, modifier);
    put_be64(mad + 24, b->class == 0x04 ? 0 : b->m_key);
    if (b->class == 0x81) {
        mad[6] = 1; /* no hops, and there */
        put_be16(mad + 32, 0xffff);
        put_be16(mad + 34, 0xffff);
    }
    return mad + 64;
}

/* All but method, status and data is the request's. */
static void check_echo(const MadBench *b)
{
    const uint8_t *mad = b->mad, *reply = b->reply;
    unsigned data = mad[1] == 0x81 ? 128 : 256;

    g_assert_cmphex(reply[3], ==, 0x81);
    g_assert_cmpmem(reply, 3, mad, 3);
    g_assert_cmpmem(reply + 6, 58, mad + 6, 58);
    g_assert_cmpmem(reply + data, 256 - data, mad + data, 256 - data);
    g_assert_cmphex(reply[4] & 0x80, ==, mad[1] == 0x81 ? 0x80 : 0);
}

static HcaMadVerdict ask(MadBench *b, unsigned in_port)
{
    uint8_t before[HCA_MAD_SIZE];
    HcaMadVerdict verdict;

    memcpy(before, b->mad, HCA_MAD_SIZE);
    memset(b->reply, 0xee, HCA_MAD_SIZE);
    verdict = hca_node_answer(b->node, in_port, b->local, b->mad, b->reply);
    g_assert_cmpmem(before, HCA_MAD_SIZE, b->mad, HCA_MAD_SIZE);
    return verdict;
}

uint16_t mad_answer(MadBench *b, unsigned in_port)
{
    g_assert_cmpint(ask(b, in_port), ==, HCA_MAD_REPLY);
    check_echo(b);
    return get_be16(b->reply + 4) & 0x7fff;
}

void mad_unanswered(MadBench *b, unsigned in_port, HcaMadVerdict verdict)
{
    g_assert_cmpint(ask(b, in_port), ==, verdict);
}

const uint8_t *mad_get(MadBench *b, uint16_t attribute, uint32_t modifier)
{
    mad_request(b, 0x01, attribute, modifier);
    g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, 0);
    return mad_data(b);
}

uint16_t mad_set(MadBench *b, uint16_t attribute, uint32_t modifier,
                 const void *data)
{
    memcpy(mad_request(b, 0x02, attribute, modifier), data, 64);
    return mad_answer(b, MAD_IN_PORT);
}

uint8_t mad_bits(const uint8_t *data, unsigned byte, unsigned high,
                 unsigned low)
{
    return data[byte] >> low & ((1u << (high - low + 1)) - 1);
}

void mad_put_bits(uint8_t *data, unsigned byte, unsigned high, unsigned low,
                  uint8_t value)
{
    uint8_t mask = ((1u << (high - low + 1)) - 1) << low;

    data[byte] = (data[byte] & ~mask) | (value << low & mask);
}

const uint8_t *mad_look(MadBench *b, uint16_t attribute, uint32_t modifier)
{
    HcaNodeCounters counters = b->node->counters;
    uint8_t mad[HCA_MAD_SIZE] = { 1, 0x01, 1, 0x01 };

    put_be16(mad + 16, attribute);
    put_be32(mad + 20, modifier);
    g_assert_cmpint(hca_node_answer(b->node, MAD_IN_PORT, true, mad, b->look),
                    ==, HCA_MAD_REPLY);
    b->node->counters = counters;
    return b->look + 64;
}

void mad_get_refused(MadBench *b, uint16_t attribute, uint32_t modifier,
                     uint16_t status)
{
    mad_request(b, 0x01, attribute, modifier);
    g_assert_cmphex(mad_answer(b, MAD_IN_PORT), ==, status);
}

void mad_set_refused(MadBench *b, uint16_t attribute, uint32_t modifier,
                     uint16_t status)
{
    GByteArray *before = mad_dump(b->node), *after;
    uint8_t data[64];

    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = g_test_rand_int();
    }
    g_assert_cmphex(mad_set(b, attribute, modifier, data), ==, status);
    after = mad_dump(b->node);
    g_assert_cmpmem(before->data, before->len, after->data, after->len);
    g_byte_array_unref(before);
    g_byte_array_unref(after);
    mad_expect_changed(b, 0, 0);
}

/* ---- ports ---- */

void mad_port_info(MadBench *b, unsigned port, uint8_t info[64])
{
    memcpy(info, mad_get(b, 0x15, port), 64);
}

void mad_good_info(MadBench *b, unsigned port, uint8_t info[64])
{
    mad_port_info(b, port, info);
    mad_put_bits(info, 32, 3, 0, 0);
    mad_put_bits(info, 33, 7, 4, 0);
    if ((port == 0 || !mad_is_switch(b)) && !get_be16(info + 16)) {
        put_be16(info + 16, 0x11);
        put_be16(info + 18, 0x22);
    }
}

void mad_set_port_info(MadBench *b, unsigned port, const uint8_t info[64])
{
    g_assert_cmphex(mad_set(b, 0x15, port, info), ==, 0);
}

uint8_t mad_state(MadBench *b, unsigned port)
{
    return mad_bits(mad_get(b, 0x15, port), 32, 3, 0);
}

uint8_t mad_phys_state(MadBench *b, unsigned port)
{
    return mad_bits(mad_get(b, 0x15, port), 33, 7, 4);
}

static void set_state(MadBench *b, unsigned port, uint8_t state)
{
    uint8_t info[64];

    mad_port_info(b, port, info);
    mad_put_bits(info, 32, 3, 0, state);
    mad_put_bits(info, 33, 7, 4, 0);
    mad_set_port_info(b, port, info);
}

void mad_configure(MadBench *b, uint16_t lid, uint16_t sm_lid)
{
    bool is_switch = b->node->type == HCA_NODE_SWITCH;
    uint8_t info[64];

    hca_node_link(b->node, MAD_IN_PORT, true);
    mad_port_info(b, is_switch ? 0 : MAD_IN_PORT, info);
    put_be16(info + 16, lid);
    put_be16(info + 18, sm_lid);
    mad_put_bits(info, 32, 3, 0, 0);
    mad_put_bits(info, 33, 7, 4, 0);
    mad_set_port_info(b, is_switch ? 0 : MAD_IN_PORT, info);
    set_state(b, MAD_IN_PORT, 3);
    set_state(b, MAD_IN_PORT, 4);
    mad_forget(b);
}

/* ---- traps ---- */

void mad_sleep(MadBench *b, int64_t ns)
{
    int64_t end = b->now + ns;

    hca_node_tick(b->node);
    for (unsigned i = 0; hca_node_deadline(b->node) <= end; i++) {
        g_assert_cmpuint(i, <, 100000);
        b->now = MAX(b->now, hca_node_deadline(b->node));
        hca_node_tick(b->node);
    }
    b->now = end;
}

MadSent *mad_next_trap(MadBench *b, unsigned number)
{
    static const uint8_t zero[192];
    MadSent *sent = g_queue_pop_head(&b->sent);
    const uint8_t *mad;

    g_assert_nonnull(sent);
    mad = sent->mad;
    g_assert_cmpmem(mad, 8, "\1\1\1\5\0\0\0\0", 8);
    g_assert_cmphex(get_be64(mad + 8), !=, 0);
    g_assert_cmphex(get_be16(mad + 16), ==, 0x0002);
    g_assert_cmpmem(mad + 18, 46, zero, 46);
    g_assert_cmpmem(mad + 128, 128, zero, 128);
    g_assert_cmpuint(get_be16(mad + 64 + 4), ==, number);
    return sent;
}

void mad_expect_quiet(MadBench *b)
{
    g_assert_cmpuint(b->sent.length, ==, 0);
}

void mad_clear_sent(MadBench *b)
{
    g_queue_clear_full(&b->sent, g_free);
    g_queue_init(&b->sent);
}

void mad_repress(MadBench *b, const MadSent *trap)
{
    memcpy(b->mad, trap->mad, HCA_MAD_SIZE);
    b->mad[3] = 0x07;
    put_be64(b->mad + 24, b->m_key);
    mad_unanswered(b, MAD_IN_PORT, HCA_MAD_SILENT);
}

/* ---- all there is ---- */

static void dump_attribute(HcaNode *node, GByteArray *out, uint16_t attribute,
                           uint32_t modifier)
{
    uint8_t mad[HCA_MAD_SIZE] = { 1, 0x01, 1, 0x01 };
    uint8_t reply[HCA_MAD_SIZE];

    put_be16(mad + 16, attribute);
    put_be32(mad + 20, modifier);
    g_assert_cmpint(hca_node_answer(node, MAD_IN_PORT, true, mad, reply), ==,
                    HCA_MAD_REPLY);
    g_byte_array_append(out, reply + 4, 2);
    g_byte_array_append(out, reply + 64, 64);
}

static void dump_port(HcaNode *node, GByteArray *out, unsigned port)
{
    bool is_switch = node->type == HCA_NODE_SWITCH;
    uint32_t high = is_switch ? port << 16 : 0;

    dump_attribute(node, out, 0x15, port);
    memset(out->data + out->len - 64 + 44, 0, 6); /* violations */
    dump_attribute(node, out, 0x16, high);
    dump_attribute(node, out, 0x18, 1u << 16 | (is_switch ? port : 0));
    dump_attribute(node, out, 0x18, 3u << 16 | (is_switch ? port : 0));
    dump_attribute(node, out, 0x31, is_switch ? port : 0);
    for (unsigned in = 0; in <= (is_switch ? node->num_ports : 0); in++) {
        dump_attribute(node, out, 0x17, is_switch ? in << 8 | port : 0);
    }
}

static void dump_switch(HcaNode *node, GByteArray *out)
{
    dump_attribute(node, out, 0x12, 0);
    for (uint32_t block = 0; block < 0xc000 / 64; block++) {
        dump_attribute(node, out, 0x19, block);
    }
    for (uint32_t position = 0; position <= node->num_ports / 16u; position++) {
        for (uint32_t block = 0; block < HCA_MFT_SIZE / 32; block++) {
            dump_attribute(node, out, 0x1b, position << 28 | block);
        }
    }
}

GByteArray *mad_dump(HcaNode *node)
{
    GByteArray *out = g_byte_array_new();
    bool is_switch = node->type == HCA_NODE_SWITCH;

    dump_attribute(node, out, 0x10, 0);
    dump_attribute(node, out, 0x11, 0);
    dump_attribute(node, out, 0x14, 0);
    for (unsigned port = !is_switch; port <= node->num_ports; port++) {
        dump_port(node, out, port);
    }
    if (is_switch) {
        dump_switch(node, out);
    }
    return out;
}
