/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector with RoCEv2 frames: marks, and what rules find in them.
 */
#include <string.h>

#include "lib-fault.h"

#define RX HCA_FAULT_RX
#define ETH_HEADER_SIZE 14
#define VLAN_TAG_SIZE 4
#define MAX_ROCE_FRAME 256

/* The four shapes that a frame has in front of UDP. */
typedef struct Shape {
    bool is_ipv4, has_vlan;
} Shape;

static const Shape shapes[] = {
    { true, false },
    { true, true },
    { false, false },
    { false, true },
};

static size_t ip_at(const Shape *shape)
{
    return ETH_HEADER_SIZE + (shape->has_vlan ? VLAN_TAG_SIZE : 0);
}

static size_t roce_bth_at(const Shape *shape)
{
    return ip_at(shape) + HCA_UDP_HEADER_SIZE +
           (shape->is_ipv4 ? HCA_IPV4_HEADER_SIZE : HCA_IPV6_HEADER_SIZE);
}

/* A frame of @opcode with five bytes of payload. */
static size_t make_roce(uint8_t *frame, const Shape *shape, uint8_t opcode,
                        uint8_t tclass, uint32_t psn)
{
    HcaPacket packet = {
        .is_ipv4 = shape->is_ipv4,
        .has_vlan = shape->has_vlan,
        .vlan_tci = 5,
        .dmac = { 2, [5] = 1 },
        .smac = { 2, [5] = 2 },
        .sgid.raw = { 0xfd, [10] = 0xff, 0xff, 10, [15] = 2 },
        .dgid.raw = { 0xfd, [10] = 0xff, 0xff, 10, [15] = 1 },
        .tclass = tclass,
        .hop_limit = 64,
        .flow_label = 0x12345,
        .udp_sport = 0xc001,
        .opcode = opcode,
        .pkey = 0xffff,
        .dest_qp = FAULT_QPN,
        .psn = psn,
        .payload_len = opcode == HCA_SEND_ONLY ? 5 : 0,
    };
    size_t len = hca_roce_build(&packet, frame);

    memset(frame + len, 0xa5, packet.payload_len);
    return hca_roce_seal(&packet, frame, len + packet.payload_len);
}

/* The frame as it comes out behind the injector; NULL: it does not. */
static const uint8_t *through(FaultBench *b, HcaFaultDirection d,
                              const uint8_t *frame, size_t len)
{
    const uint8_t *got;
    size_t got_len;

    fault_pass(b, d, frame, len);
    hca_link_flush(b->link);
    got = fault_next_out(b, d, &got_len);
    g_assert_true(!got || got_len == len);
    return got;
}

static bool is_marked(FaultBench *b, HcaFaultDirection d, const uint8_t *frame,
                      size_t len)
{
    const uint8_t *got = through(b, d, frame, len);
    HcaPacket packet;

    /* IPv4's checksum and ICRC are good. */
    g_assert_cmpint(hca_roce_parse(&packet, got, len), ==, HCA_PARSE_OK);
    return (packet.tclass & HCA_ECN_MASK) == HCA_ECN_CE;
}

/* Nothing but the ECN field changes, and the checksum that covers it. */
static void case_mark(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);

    fault_set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * 256; i++) {
        const Shape *shape = &shapes[i / 256];
        uint8_t tclass = i, frame[MAX_ROCE_FRAME], marked[MAX_ROCE_FRAME];
        size_t len = make_roce(frame, shape, HCA_SEND_ONLY, tclass, i);
        const uint8_t *got;
        HcaPacket packet;

        make_roce(marked, shape, HCA_SEND_ONLY, tclass | HCA_ECN_CE, i);
        got = through(b, d, frame, len);
        g_assert_cmpmem(got, len, marked, len);
        g_assert_cmpint(hca_roce_parse(&packet, got, len), ==, HCA_PARSE_OK);
        g_assert_cmphex(packet.tclass, ==, tclass | HCA_ECN_CE);
        g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_MARK), ==, i + 1);
    }
    g_assert_cmpuint(fault_injected(b, !d, HCA_FAULT_MARK), ==, 0);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).qpn, ==, FAULT_QPN);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).arg[1], ==,
                     HCA_FAULT_MARK);
}

/* A frame with UDP to @port and no more than a word behind it. */
static size_t make_udp(uint8_t *frame, const Shape *shape, uint16_t port)
{
    size_t udp = roce_bth_at(shape) - HCA_UDP_HEADER_SIZE;
    size_t len = make_roce(frame, shape, HCA_SEND_ONLY, 0, 1);

    put_be16(frame + udp + 2, port);
    return len;
}

static size_t make_arp(uint8_t *frame)
{
    memset(frame, 0, 60);
    memset(frame, 0xff, 6);
    put_be16(frame + 12, 0x0806);
    return 60;
}

/* skip, every, count and PSNs; frames that have no mark are not counted. */
static void case_mark_selection(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);
    g_autoptr(GString) marked = g_string_new("");
    uint8_t frame[MAX_ROCE_FRAME], arp[60];

    make_arp(arp);
    plan.rule[0].skip = 1;
    plan.rule[0].every = 3;
    plan.rule[0].count = 2;
    fault_set(b, &plan);
    for (uint32_t psn = 1; psn <= 12; psn++) {
        size_t len = make_roce(frame, &shapes[psn % 4], HCA_SEND_ONLY,
                               HCA_ECN_ECT0, psn);

        g_assert_cmpmem(through(b, d, arp, sizeof(arp)), sizeof(arp), arp,
                        sizeof(arp));
        if (is_marked(b, d, frame, len)) {
            g_string_append_printf(marked, " %u", psn);
        }
    }
    g_assert_cmpstr(marked->str, ==, " 4 7");
    plan = fault_plan(HCA_FAULT_MARK);
    plan.rule[0].match_psn = true;
    plan.rule[0].psn_first = plan.rule[0].psn_last = 9;
    plan.rule[0].kinds = 1u << HCA_FAULT_SEND;
    fault_set(b, &plan);
    for (uint32_t psn = 8; psn <= 10; psn++) {
        size_t len = make_roce(frame, shapes, HCA_SEND_ONLY, HCA_ECN_ECT0, psn);

        g_assert_cmpint(is_marked(b, d, frame, len), ==, psn == 9);
    }
}

/* What has no BTH behind UDP's port passes as it is; the next rule sees it. */
static void case_mark_not_roce(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);
    uint8_t frame[MAX_ROCE_FRAME];
    uint64_t frames = 0;
    size_t len;

    plan.nrules = 2;
    plan.rule[1] = fault_plan(HCA_FAULT_DUPLICATE).rule[0];
    fault_set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const Shape *shape = &shapes[i];

        len = make_udp(frame, shape, HCA_ROCE_UDP_PORT + 1);
        g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
        g_assert_nonnull(fault_next_out(b, d, &len));
        frames++;
        make_roce(frame, shape, HCA_SEND_ONLY, 0, 1);
        for (len = 1; len < roce_bth_at(shape) + HCA_BTH_SIZE; len++) {
            size_t again;

            g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
            g_assert_nonnull(fault_next_out(b, d, &again));
            frames++;
        }
    }
    /* A later fragment: its port cannot be seen. */
    len = make_roce(frame, shapes, HCA_SEND_ONLY, 0, 1);
    frame[ETH_HEADER_SIZE + 7] = 1;
    g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
    g_assert_nonnull(fault_next_out(b, d, &len));
    len = make_arp(frame);
    g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
    g_assert_nonnull(fault_next_out(b, d, &len));
    frames += 2;
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_MARK), ==, 0);
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_DUPLICATE), ==, frames);
}

static void case_mark_infiniband(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);
    HcaPacket global = { .has_grh = true,
                         .tclass = HCA_ECN_ECT0,
                         .opcode = HCA_ACK,
                         .dest_qp = FAULT_QPN };
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    size_t len = hca_ib_seal(&global, bytes, hca_ib_build(&global, bytes));

    plan.nrules = 2;
    plan.rule[1] = fault_plan(HCA_FAULT_DROP).rule[0];
    plan.rule[1].every = 2;
    fault_set(b, &plan);
    for (unsigned i = 0; i < 4; i++) {
        const uint8_t *got = through(b, d, bytes, len);

        g_assert_cmpint(!got, ==, i % 2);
        if (got) {
            g_assert_cmpmem(got, len, bytes, len);
        }
    }
    g_assert_cmpuint(fault_injected(b, d, HCA_FAULT_MARK), ==, 0);
}

/* Rules find BTH behind all headers. A CNP has numbers, and no kind. */
static void case_roce_numbers(FaultBench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    HcaFaultRule *rule = plan.rule;
    uint8_t frame[MAX_ROCE_FRAME];
    size_t len;

    rule->match_opcode = rule->match_qpn = rule->match_psn = true;
    rule->opcode = HCA_SEND_ONLY;
    rule->qpn = FAULT_QPN;
    rule->psn_first = rule->psn_last = 9;
    rule->kinds = 1u << HCA_FAULT_SEND;
    fault_set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        len = make_roce(frame, &shapes[i], HCA_SEND_ONLY, 0, 9);
        g_assert_true(fault_dropped(b, d, frame, len));
        len = make_roce(frame, &shapes[i], HCA_SEND_ONLY, 0, 8);
        g_assert_false(fault_dropped(b, d, frame, len));
        len = make_udp(frame, &shapes[i], 53);
        g_assert_false(fault_dropped(b, d, frame, len));
    }
    rule->opcode = HCA_BTH_CNP;
    rule->kinds = 1u << HCA_FAULT_OTHER;
    fault_set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        len = make_roce(frame, &shapes[i], HCA_BTH_CNP, 0, 9);
        g_assert_true(fault_dropped(b, d, frame, len));
    }
}

/* A RoCEv2 frame that ends anywhere in front of its ICRC is still treated. */
static void case_roce_short(FaultBench *b, HcaFaultDirection d)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * HCA_FAULT_MARK; i++) {
        const Shape *shape = &shapes[i % G_N_ELEMENTS(shapes)];
        HcaFaultAction action = i / G_N_ELEMENTS(shapes);
        HcaFaultPlan plan = fault_plan(action);
        uint64_t before = fault_injected(b, d, action);
        uint8_t frame[MAX_ROCE_FRAME];
        size_t len = make_roce(frame, shape, HCA_ACK, 0, 1), got;

        fault_set(b, &plan);
        for (size_t size = 1; size <= len; size++) {
            fault_pass(b, d, frame, size);
            hca_link_flush(b->link);
            while (fault_next_out(b, d, &got)) {
            }
            fault_let_pass(b, NS_PER_S);
            hca_link_flush(b->link);
            while (fault_next_out(b, d, &got)) {
            }
        }
        g_assert_cmpuint(fault_injected(b, d, action) - before, ==, len);
    }
}

int main(int argc, char **argv)
{
    static FaultCase *const infiniband = case_mark_infiniband;
    static const struct {
        const char *name;
        FaultCase *test;
    } cases[] = {
        { "mark/frames", case_mark },
        { "mark/selection", case_mark_selection },
        { "mark/not-rocev2", case_mark_not_roce },
        { "match/numbers", case_roce_numbers },
        { "short", case_roce_short },
    };

    g_test_init(&argc, &argv, NULL);
    test_add_data("/fault/mark/infiniband", &infiniband, fault_both_directions);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *path = test_named("/roce/fault/%s", cases[i].name);

        test_add_data(path, &cases[i].test, fault_both_directions_roce);
    }
    return g_test_run();
}
