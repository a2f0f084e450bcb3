/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SMPs and GMPs at random, or good ones with something changed, with every hop
 * pointer and count: to nodes, and to whole cards on a cable. Nothing breaks, and
 * what an M_Key protects is as it was.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-subnet.h"

#define KEY UINT64_C(0x0123456789abcdef)
#define NODE_MADS 40000
#define CARD_MADS 4000

static uint32_t any(void)
{
    return g_test_rand_int();
}

static uint32_t below(uint32_t n)
{
    return any() % n;
}

static uint64_t rand64(void)
{
    return (uint64_t)any() << 32 | any();
}

static uint8_t pick(const uint8_t *values, unsigned n)
{
    return below(8) ? values[below(n)] : below(256);
}

/* ---- what is sent ---- */

static const uint8_t classes[] = { 0x01, 0x01, 0x81, 0x81, 0x81,
                                   0x04, 0x04, 0x03, 0x07 };
static const uint8_t methods[] = { 0x01, 0x01, 0x02, 0x02, 0x02, 0x02,
                                   0x03, 0x05, 0x06, 0x07, 0x81 };
static const uint8_t attributes[] = { 0x01, 0x02, 0x10, 0x11, 0x12, 0x14,
                                      0x15, 0x15, 0x15, 0x16, 0x17, 0x18,
                                      0x19, 0x1b, 0x1d, 0x20, 0x31 };

static uint32_t make_modifier(void)
{
    switch (below(6)) {
    case 0:
        return 0;
    case 1:
        return any();
    case 2:
        return below(40) << 16 | below(40);
    case 3:
        return below(16) << 28 | below(64);
    case 4:
        return below(40) << 8 | below(40);
    default:
        return below(40);
    }
}

static void make_route(uint8_t *mad)
{
    mad[7] = below(3) ? below(5) : below(256);
    mad[6] = below(3) ? below(mad[7] + 2) : below(256);
    put_be16(mad + 32, below(4) ? 0xffff : any());
    put_be16(mad + 34, below(4) ? 0xffff : any());
    if (!below(4)) {
        mad[4] |= 0x80;
    }
    for (unsigned i = 128; i < 256; i++) {
        mad[i] = below(4) ? below(3) : below(256);
    }
}

/* Good as far as it goes, with noise here and there. */
static void make_mad(uint8_t mad[HCA_MAD_SIZE], uint64_t key)
{
    for (unsigned i = 0; i < HCA_MAD_SIZE; i++) {
        mad[i] = i >= 64 && below(3) ? below(6) : below(256);
    }
    if (!below(20)) {
        return;
    }
    mad[0] = below(30) ? 1 : below(256);
    mad[1] = pick(classes, G_N_ELEMENTS(classes));
    mad[2] = below(30) ? 1 : below(256);
    mad[3] = pick(methods, G_N_ELEMENTS(methods));
    put_be16(mad + 4, 0);
    put_be16(mad + 16, pick(attributes, G_N_ELEMENTS(attributes)));
    put_be32(mad + 20, make_modifier());
    put_be64(mad + 24, key);
    if (mad[1] == 0x81) {
        make_route(mad);
    }
}

/* A key that is not the right one. */
static uint64_t wrong_key(void)
{
    uint64_t key = below(3) ? rand64() : KEY ^ UINT64_C(1) << below(64);

    return key == KEY || !below(4) ? 0 : key;
}

/* ---- nodes ---- */

/* As who owns a node hands it one: routes first, then the agents. */
static void give(MadBench *b, unsigned in_port, uint8_t *mad)
{
    HcaSmiAction action = HCA_SMI_LOCAL;
    unsigned out = 0;

    if (mad[1] == 0x81) {
        action = hca_smi_receive(b->node, in_port, mad, &out);
        g_assert_true(action != HCA_SMI_FORWARD || out <= b->node->num_ports);
    }
    if (action == HCA_SMI_LOCAL &&
        hca_node_answer(b->node, in_port, false, mad, b->reply) ==
            HCA_MAD_REPLY &&
        mad[1] == 0x81) {
        action = hca_smi_respond(b->node, b->reply, &out);
        g_assert_true(action != HCA_SMI_FORWARD || out <= b->node->num_ports);
    }
}

static unsigned any_port(const MadBench *b, bool with_0)
{
    unsigned first = mad_is_switch(b) && with_0 ? 0 : 1;

    return first + below(b->node->num_ports + 1 - first);
}

/* What a manager may have made of a port, at most. */
static void check_port(const MadBench *b, unsigned number)
{
    const HcaNodePort *port = &b->node->port[number];
    const HcaPortInfo *info = &port->info;
    bool end = !mad_is_switch(b) || number == 0;
    bool link = !mad_is_switch(b) || number != 0;

    g_assert_cmpuint(info->state, >=, 1);
    g_assert_cmpuint(info->state, <=, 4);
    g_assert_true(info->phys_state == 5 ||
                  (info->phys_state >= 1 && info->phys_state <= 3));
    g_assert_true((info->state != 1) == (info->phys_state == 5));
    g_assert_cmphex(info->lid, <, 0xc000);
    g_assert_cmphex(info->sm_lid, <, 0xc000);
    g_assert_cmpuint(info->lmc, <=, 7);
    g_assert_cmphex(port->guids[0], ==, MAD_GUID);
    g_assert_cmpuint(info->cap_mask != 0, ==, end);
    if (link) {
        g_assert_true(info->mtu >= 1 && info->mtu <= 5);
        g_assert_true(info->operational_vls >= 1 && info->operational_vls <= 4);
        g_assert_cmpuint(info->width_enabled, ==, 2);
        g_assert_cmpuint(info->speed_enabled & ~7, ==, 0);
        g_assert_cmpuint(info->speed_enabled, !=, 0);
    } else {
        g_assert_cmpuint(info->lmc, ==, 0);
    }
    for (uint8_t sl = 0; sl < 16 && link; sl++) {
        uint8_t vl = hca_node_vl(b->node, 0, number, sl);

        g_assert_true(vl < 8 || vl == 15);
    }
}

/* Links, packets and time beside what managers do. */
static void happen(MadBench *b)
{
    const HcaKeyViolation bad = { .key = below(4) };
    unsigned port = any_port(b, false);

    switch (below(12)) {
    case 0:
        hca_node_link(b->node, port, below(2));
        break;
    case 1:
        hca_node_activate(b->node, port);
        break;
    case 2:
        hca_node_packet(b->node, port, below(2));
        break;
    case 3:
        hca_node_bad_pkey(b->node, any_port(b, true), &bad);
        break;
    case 4:
        b->no_way = below(2);
        b->no_peer = below(2);
        break;
    case 5:
        mad_sleep(b, (int64_t)1 << below(40));
        mad_clear_sent(b);
        break;
    default:
        break;
    }
}

/* A node that anybody may set: it stays one. */
static void test_node_open(gconstpointer type)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t mad[HCA_MAD_SIZE];

    for (unsigned i = 0; i < NODE_MADS; i++) {
        unsigned mgmt = mad_is_switch(b) ? 0 : 1;

        make_mad(mad, b->node->port[mgmt].info.m_key);
        give(b, any_port(b, true), mad);
        happen(b);
        check_port(b, any_port(b, true));
        if (i % 5000 == 4999) {
            hca_node_reset(b->node);
        }
    }
    mad_bench_free(b);
}

static MadBench *new_protected(gconstpointer type, uint8_t protect)
{
    MadBench *b = mad_bench_new(GPOINTER_TO_UINT(type));
    uint8_t mad[HCA_MAD_SIZE], info[64];
    unsigned mgmt = mad_is_switch(b) ? 0 : 1;

    for (unsigned i = 0; i < 3000; i++) { /* anything at all */
        make_mad(mad, b->node->port[mgmt].info.m_key);
        give(b, any_port(b, true), mad);
    }
    b->local = true;
    mad_good_info(b, mgmt, info);
    put_be64(info, KEY);
    put_be16(info + 26, 0); /* a lease for ever */
    info[34] = (info[34] & 0x3f) | protect << 6;
    mad_set(b, 0x15, mgmt, info);
    b->local = false;
    mad_forget(b);
    return b;
}

/* One with a key is not changed by who has it not, in any way. */
static void test_node_protected(gconstpointer type)
{
    for (uint8_t protect = 0; protect < 4; protect++) {
        MadBench *b = new_protected(type, protect);
        GByteArray *before = mad_dump(b->node), *after;
        uint8_t mad[HCA_MAD_SIZE];

        for (unsigned i = 0; i < NODE_MADS / 4; i++) {
            make_mad(mad, wrong_key());
            give(b, any_port(b, true), mad);
            if (!below(50)) {
                mad_sleep(b, MAD_S * below(100000));
                mad_clear_sent(b);
            }
        }
        after = mad_dump(b->node);
        g_assert_cmpmem(before->data, before->len, after->data, after->len);
        mad_expect_changed(b, 0, 0);
        g_byte_array_unref(before);
        g_byte_array_unref(after);
        mad_bench_free(b);
    }
}

static bool shows_key(const uint8_t mad[HCA_MAD_SIZE])
{
    for (unsigned i = 0; i + 8 <= HCA_MAD_SIZE; i++) {
        if (get_be64(mad + i) == KEY) {
            return true;
        }
    }
    return false;
}

/* Nobody who has not the key sees it, if it is protected. */
static void test_node_secret(gconstpointer type)
{
    for (uint8_t protect = 1; protect < 4; protect++) {
        MadBench *b = new_protected(type, protect);
        uint8_t mad[HCA_MAD_SIZE];

        for (unsigned i = 0; i < NODE_MADS / 4; i++) {
            make_mad(mad, wrong_key());
            memset(b->reply, 0, HCA_MAD_SIZE);
            give(b, any_port(b, true), mad);
            g_assert_false(shows_key(b->reply));
        }
        while (b->sent.length) {
            MadSent *sent = g_queue_pop_head(&b->sent);

            g_assert_false(shows_key(sent->mad));
            g_free(sent);
        }
        mad_bench_free(b);
    }
}

/* ---- cards ---- */

static HcaPacket make_packet(Subnet *s)
{
    static const uint16_t lids[] = { 0xffff, SUBNET_LID(0), SUBNET_LID(1), 0,
                                     0xc001 };
    HcaPacket packet = subnet_packet(s, below(2));

    if (!below(4)) {
        packet.vl = below(16);
    }
    if (!below(4)) {
        packet.dlid = lids[below(G_N_ELEMENTS(lids))];
    }
    if (!below(4)) {
        packet.slid = lids[below(G_N_ELEMENTS(lids))];
    }
    if (!below(8)) {
        packet.dest_qp = below(4);
        packet.src_qp = any() & 0xffffff;
    }
    if (!below(8)) {
        packet.qkey = any();
        packet.pkey = any();
    }
    if (!below(8)) {
        packet.payload_len = 4 * below(100);
    }
    if (!below(8)) {
        packet.opcode = below(256);
        packet.has_grh = below(2);
    }
    packet.sl = below(16);
    return packet;
}

static void protect(Subnet *s, unsigned side)
{
    uint8_t info[64];

    subnet_port_info(s, side, info);
    put_be64(info, KEY);
    info[34] |= 2 << 6;
    subnet_set_port_info(s, side, info);
}

static bool both_pass(Subnet *s)
{
    return subnet_passes(s, 0, SUBNET_LID(1)) &&
           subnet_passes(s, 1, SUBNET_LID(0));
}

/* The peer says anything: to agents, or to software, which listens. */
static void test_card_peer(gconstpointer data)
{
    bool software = GPOINTER_TO_UINT(data);
    Subnet *s = subnet_new(9401);
    uint8_t mad[HCA_MAX_MTU] = { 0 };
    GByteArray *before, *after;

    subnet_bring_up(s);
    protect(s, 1);
    for (unsigned which = 0; which < 2 && software; which++) {
        subnet_take(s, 1, which);
    }
    before = mad_dump(subnet_card(s, 1)->port->node);
    for (unsigned i = 0; i < CARD_MADS; i++) {
        HcaPacket packet = make_packet(s);

        make_mad(mad, wrong_key());
        subnet_inject(s, 0, &packet, mad);
    }
    after = mad_dump(subnet_card(s, 1)->port->node);
    g_assert_cmpmem(before->data, before->len, after->data, after->len);
    g_assert_true(both_pass(s));
    g_byte_array_unref(before);
    g_byte_array_unref(after);
    subnet_free(s);
}

/* And without a key: cards that can be brought up again. */
static void test_card_open(void)
{
    Subnet *s = subnet_new(9402);
    uint8_t mad[HCA_MAX_MTU] = { 0 };

    subnet_bring_up(s);
    for (unsigned i = 0; i < CARD_MADS; i++) {
        HcaPacket packet = make_packet(s);

        make_mad(mad, subnet_node_port(s, 1)->info.m_key);
        subnet_inject(s, 0, &packet, mad);
        if (!below(100)) {
            lab_sleep(s->lab, NS_PER_S);
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        host_reset(&s->lab->host[side]);
    }
    lab_run(s->lab);
    subnet_free(s);
    s = subnet_new(9403);
    subnet_bring_up(s);
    g_assert_true(both_pass(s));
    subnet_free(s);
}

/* The host itself, by MAD_IFC, with and without the key. */
static void test_card_host(void)
{
    Subnet *s = subnet_new(9404);
    GByteArray *before, *after;

    subnet_bring_up(s);
    protect(s, 0);
    before = mad_dump(subnet_card(s, 0)->port->node);
    for (unsigned i = 0; i < CARD_MADS; i++) {
        make_mad(s->mad, wrong_key());
        subnet_mad_ifc(s, 0, below(2) ? 0 : RDMA_HCA_MAD_IGNORE_BKEY);
    }
    after = mad_dump(subnet_card(s, 0)->port->node);
    g_assert_cmpmem(before->data, before->len, after->data, after->len);
    for (unsigned i = 0; i < CARD_MADS; i++) {
        make_mad(s->mad, rand64());
        subnet_mad_ifc(s, 0, RDMA_HCA_MAD_IGNORE_MKEY);
    }
    lab_run(s->lab);
    g_byte_array_unref(before);
    g_byte_array_unref(after);
    subnet_free(s);
}

static UdAddress make_address(void)
{
    UdAddress to = {
        .dlid = below(2) ? 0xffff : any(),
        .path_bits = below(128),
        .pkey_index = below(2) ? below(40) : any(),
        .sl = below(16),
        .grh = !below(3),
        .roce = { .sgid_index = below(3) ? 0 : below(256) },
        .dqpn = below(2) ? below(3) : any() & 0xffffff,
        .qkey = below(2) ? SUBNET_QKEY : any(),
    };

    for (unsigned i = 0; i < 16; i++) {
        to.dgid[i] = below(2) ? 0xff : below(256);
    }
    return to;
}

/* Special QPs in the hands of who sends anything anywhere. */
static void test_card_special(gconstpointer data)
{
    unsigned which = GPOINTER_TO_UINT(data);
    Subnet *s = subnet_new(9405);
    SubnetPort *port = &s->port[0][which];
    GByteArray *before, *after;

    subnet_bring_up(s);
    protect(s, 1);
    before = mad_dump(subnet_card(s, 1)->port->node);
    for (unsigned i = 0; i < CARD_MADS / 4; i++) {
        UdAddress to = make_address();
        SendWr wr;
        Sge sge;
        Wc wc;

        if (!port->qp || qp_state(port->qp) != RDMA_HCA_QP_STATE_RTS) {
            if (port->qp) {
                subnet_give_up(s, 0, which);
            }
            subnet_take(s, 0, which);
        }
        make_mad(s->mad, wrong_key());
        mr_write(s->pair->mr[0], SUBNET_DATA, s->mad, HCA_MAD_SIZE);
        wr = pair_send(s->pair, 0, RDMA_HCA_OPCODE_SEND, 5, &sge, SUBNET_DATA,
                       below(10) ? HCA_MAD_SIZE : below(5000), 0);
        wr.ud = &to;
        g_assert_true(qp_post_send(port->qp, &wr, 1));
        g_assert_true(cq_wait(port->send_cq, &wc, NS_PER_S));
        lab_run(s->lab);
    }
    after = mad_dump(subnet_card(s, 1)->port->node);
    g_assert_cmpmem(before->data, before->len, after->data, after->len);
    g_assert_true(both_pass(s));
    g_byte_array_unref(before);
    g_byte_array_unref(after);
    subnet_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < 2; i++) {
        gconstpointer type = GUINT_TO_POINTER(i ? HCA_NODE_SWITCH
                                                : HCA_NODE_CA);
        const char *name = i ? "switch" : "ca";

        test_add_data(test_named("/mad/hostile/%s/open", name), type,
                      test_node_open);
        test_add_data(test_named("/mad/hostile/%s/protected", name), type,
                      test_node_protected);
        test_add_data(test_named("/mad/hostile/%s/secret", name), type,
                      test_node_secret);
    }
    test_add_data("/mad/hostile/card/agents", GUINT_TO_POINTER(false),
                  test_card_peer);
    test_add_data("/mad/hostile/card/software", GUINT_TO_POINTER(true),
                  test_card_peer);
    test_add("/mad/hostile/card/open", test_card_open);
    test_add("/mad/hostile/card/host", test_card_host);
    test_add_data("/mad/hostile/card/smi", GUINT_TO_POINTER(SUBNET_SMI),
                  test_card_special);
    test_add_data("/mad/hostile/card/gsi", GUINT_TO_POINTER(SUBNET_GSI),
                  test_card_special);
    return g_test_run();
}
