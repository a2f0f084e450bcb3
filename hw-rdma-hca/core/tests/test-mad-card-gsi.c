/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1 of two cards: general management datagrams, by software or by the card's
 * performance management agent; their keys, their addresses, what is dropped.
 */
#include <string.h>

#include "lib-subnet.h"

#define GET 0x01
#define SET 0x02
#define PERF HCA_CLASS_PERF
#define CLASS_PORT_INFO 0x01
#define PORT_COUNTERS 0x12
#define LOCAL UINT64_C(0xfe80000000000000)
#define ALIAS UINT64_C(0x0a0b0c0d0e0f1011)

static uint64_t count(const Subnet *s, unsigned side, const char *name)
{
    return pair_counter(s->pair, side, name);
}

static Subnet *new_subnet(uint32_t seed)
{
    Subnet *s = subnet_new(seed);

    subnet_bring_up(s);
    subnet_take(s, 0, SUBNET_GSI);
    return s;
}

/* Send s->mad; the answer's status. */
static uint16_t ask(Subnet *s, const UdAddress *to, Wc *wc)
{
    subnet_send(s, 0, SUBNET_GSI, to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_GSI, wc, NULL, s->reply));
    g_assert_cmphex(s->reply[3], ==, 0x81);
    g_assert_cmphex(get_be64(s->reply + 8), ==, s->tid);
    return get_be16(s->reply + 4);
}

static void get_counters(Subnet *s)
{
    subnet_smp(s, PERF, GET, PORT_COUNTERS, 0)[1] = 1;
}

static void set_table(Subnet *s, unsigned side, uint16_t attribute,
                      unsigned byte, unsigned size, uint64_t value)
{
    uint8_t table[64];

    memcpy(table, subnet_get_own(s, side, attribute, 0), 64);
    for (unsigned i = size; i--; value >>= 8) {
        table[byte + i] = value;
    }
    g_assert_cmphex(subnet_set_own(s, side, attribute, 0, table), ==, 0);
}

static void set_pkey(Subnet *s, unsigned side, unsigned index, uint16_t key)
{
    set_table(s, side, 0x16, 2 * index, 2, key);
}

/* ---- the agent ---- */

/* It answers where it was asked from, along the same SL. */
static void test_agent(void)
{
    Subnet *s = new_subnet(9201);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    SubnetFrame *frame;
    Wc wc;

    set_table(s, 0, 0x17, 1, 1, 0x06); /* SL 3: VL 6 */
    set_table(s, 1, 0x17, 1, 1, 0x05);
    to.sl = 3;
    subnet_watch(s);
    subnet_smp(s, PERF, GET, CLASS_PORT_INFO, 0);
    g_assert_cmphex(ask(s, &to, &wc), ==, 0);
    g_assert_cmphex(get_be16(s->reply + 66), ==, 0x9200);
    g_assert_cmpuint(wc.rqpn, ==, 1);
    g_assert_cmphex(wc.rlid, ==, SUBNET_LID(1));
    g_assert_cmpuint(wc.sl, ==, 3);
    g_assert_cmpuint(wc.pkey_index, ==, 0);
    g_assert_false(wc.grh);
    for (unsigned side = 0; side < 2; side++) {
        frame = subnet_next_frame(s, side);
        g_assert_cmpuint(subnet_frame_vl(frame), ==, side ? 5 : 6);
        g_assert_cmpuint(frame->data[1] >> 4, ==, 3);
        g_assert_cmphex(get_be32(frame->data + 12) & 0xffffff, ==, 1);
        g_assert_cmphex(get_be32(frame->data + 20), ==, SUBNET_QKEY);
        g_assert_cmphex(get_be32(frame->data + 24), ==, 1);
        g_free(frame);
    }
    g_assert_cmpuint(count(s, 1, "mgmt_gmps"), ==, 1);
    subnet_free(s);
}

/* Counters of the port are those of its link: packets, words to the ICRC. */
static void test_counters(void)
{
    Subnet *s = new_subnet(9202);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    Wc wc;

    subnet_smp(s, PERF, SET, PORT_COUNTERS, 0)[1] = 1;
    put_be16(s->mad + 66, 0xffff);
    g_assert_cmphex(ask(s, &to, &wc), ==, 0);
    for (unsigned i = 0; i < 5; i++) {
        g_assert_true(subnet_passes(s, 0, SUBNET_LID(1)));
    }
    get_counters(s);
    g_assert_cmphex(ask(s, &to, &wc), ==, 0);
    /* The answer to the Set, which was cleared before it left; then 5 of 100
     * bytes, and this Get. */
    g_assert_cmpuint(get_be32(s->reply + 64 + 32), ==, 1);
    g_assert_cmpuint(get_be32(s->reply + 64 + 36), ==, 6);
    g_assert_cmpuint(get_be32(s->reply + 64 + 24), ==, 72);
    g_assert_cmpuint(get_be32(s->reply + 64 + 28), ==,
                     5 * (8 + 12 + 8 + 100 + 4) / 4 + 72);
    subnet_free(s);
}

/* Multicast packets are told from the others. */
static void test_counters_multicast(void)
{
    static const uint8_t mgid[16] = { 0xff, 0x12, [15] = 1 };
    Subnet *s = new_subnet(9203);
    UdAddress to = {
        .dlid = 0xc001, .grh = true, .dqpn = 0xffffff, .qkey = 0x11111111
    };
    UdAddress gsi = subnet_to_gsi(SUBNET_LID(1));
    Qp *qp = subnet_ud(s, 0);
    const uint8_t *data = s->reply + 64;
    uint64_t before[2];
    Wc wc;

    memcpy(to.dgid, mgid, sizeof(mgid));
    subnet_smp(s, PERF, GET, 0x1d, 0)[1] = 1;
    g_assert_cmphex(ask(s, &gsi, &wc), ==, 0);
    before[0] = get_be64(data + 48);
    before[1] = get_be64(data + 64);
    for (unsigned i = 0; i < 3; i++) {
        subnet_send_data(s, qp, &to);
    }
    subnet_smp(s, PERF, GET, 0x1d, 0)[1] = 1;
    g_assert_cmphex(ask(s, &gsi, &wc), ==, 0);
    g_assert_cmpuint(get_be64(data + 48), ==, before[0] + 1);
    g_assert_cmpuint(get_be64(data + 64), ==, before[1] + 3);
    g_assert_cmpuint(get_be64(data + 32), ==,
                     get_be64(data + 48) + get_be64(data + 64));
    subnet_get_own(s, 0, 0x15, 1);
    subnet_smp(s, PERF, GET, 0x1d, 0)[1] = 1;
    g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, 0);
    g_assert_cmpuint(get_be64(data + 56), ==, 3);
    subnet_free(s);
}

/* With a GRH: back from the address that was asked. */
static void test_grh(void)
{
    Subnet *s = new_subnet(9204);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    uint8_t grh[SUBNET_GRH];
    Wc wc;

    set_table(s, 0, 0x14, 8 * 6, 8, ALIAS);
    set_table(s, 1, 0x14, 8 * 4, 8, ALIAS + 1);
    to.grh = true;
    to.roce.sgid_index = 6;
    put_be64(to.dgid, LOCAL);
    put_be64(to.dgid + 8, ALIAS + 1);
    get_counters(s);
    subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_GSI, &wc, grh, s->reply));
    g_assert_true(wc.grh);
    g_assert_cmphex(get_be64(grh + 8), ==, LOCAL);
    g_assert_cmphex(get_be64(grh + 16), ==, ALIAS + 1);
    g_assert_cmphex(get_be64(grh + 24), ==, LOCAL);
    g_assert_cmphex(get_be64(grh + 32), ==, ALIAS);
    subnet_free(s);
}

/* Classes of nobody: refused, or silence. */
static void test_classes(void)
{
    static const uint8_t classes[] = {
        0x03, 0x05, 0x06, 0x07, 0x09, 0x21, 0x32
    };
    Subnet *s = new_subnet(9205);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    Wc wc;

    for (unsigned i = 0; i < G_N_ELEMENTS(classes); i++) {
        subnet_smp(s, classes[i], GET, 1, 0);
        g_assert_cmphex(ask(s, &to, &wc), ==, 0x000c);
        subnet_smp(s, classes[i], 0x03, 1, 0);
        subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
        subnet_expect_none(s, 0, SUBNET_GSI);
    }
    subnet_free(s);
}

/* Who asks from another QP than QP 1 is answered there. */
static void test_other_qp(void)
{
    Subnet *s = new_subnet(9206);
    HcaPacket packet = subnet_packet(s, SUBNET_GSI);
    SubnetFrame *frame;

    packet.src_qp = 0x345678;
    get_counters(s);
    subnet_watch(s);
    subnet_inject(s, 0, &packet, s->mad);
    frame = subnet_next_frame(s, 1);
    g_assert_cmphex(get_be32(frame->data + 12) & 0xffffff, ==, 0x345678);
    g_assert_cmphex(get_be32(frame->data + 20), ==, SUBNET_QKEY);
    g_free(frame);
    subnet_free(s);
}

/* To oneself: by agents, and by software, which finds its own request. */
static void test_loopback(void)
{
    Subnet *s = new_subnet(9207);
    UdAddress to = subnet_to_gsi(SUBNET_LID(0));
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    subnet_watch(s);
    get_counters(s);
    subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_GSI, &wc, NULL, mad));
    g_assert_cmpmem(mad, sizeof(mad), s->mad, sizeof(mad));
    g_assert_cmpuint(wc.rqpn, ==, 1);
    g_assert_cmphex(wc.rlid, ==, SUBNET_LID(0));
    subnet_no_frames(s);
    subnet_free(s);
}

/* ---- keys ---- */

/* Each with each: the receiver's index, the sender's; limited with full. */
static void test_pkey_index(gconstpointer data)
{
    bool software = GPOINTER_TO_UINT(data);
    Subnet *s = new_subnet(9210);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    if (software) {
        subnet_take(s, 1, SUBNET_GSI);
    }
    for (unsigned i = 1; i < 32; i++) {
        set_pkey(s, 0, i, 0x8100 + i);
        set_pkey(s, 1, 32 - i, (i & 1 ? 0x8100 : 0x0100) + i);
    }
    for (unsigned i = 0; i < 32; i++) {
        to.pkey_index = i;
        get_counters(s);
        if (software) {
            subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
            g_assert_true(subnet_receive(s, 1, SUBNET_GSI, &wc, NULL, mad));
            g_assert_cmpuint(wc.pkey_index, ==, i ? 32 - i : 0);
        } else {
            g_assert_cmphex(ask(s, &to, &wc), ==, 0);
            g_assert_cmpuint(wc.pkey_index, ==, i);
        }
    }
    subnet_free(s);
}

/* On the wire there is the key that the work request names. */
static void test_pkey_on_wire(void)
{
    Subnet *s = new_subnet(9211);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    SubnetFrame *frame;
    Wc wc;

    set_pkey(s, 0, 9, 0x0222);
    set_pkey(s, 1, 3, 0x8222);
    to.pkey_index = 9;
    get_counters(s);
    subnet_watch(s);
    g_assert_cmphex(ask(s, &to, &wc), ==, 0);
    frame = subnet_next_frame(s, 0);
    g_assert_cmphex(get_be16(frame->data + 10), ==, 0x0222);
    g_free(frame);
    frame = subnet_next_frame(s, 1);
    g_assert_cmphex(get_be16(frame->data + 10), ==, 0x8222);
    g_free(frame);
    subnet_free(s);
}

/* A key that is not in the table: dropped, counted, told. */
static void test_bad_pkey(gconstpointer data)
{
    bool software = GPOINTER_TO_UINT(data);
    Subnet *s = new_subnet(9212);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    if (software) {
        subnet_take(s, 1, SUBNET_GSI);
    }
    set_pkey(s, 0, 2, 0x8333);
    to.pkey_index = 2;
    get_counters(s);
    subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, mad));
    g_assert_cmpuint(get_be16(mad + 68), ==, 257);
    g_assert_cmphex(get_be32(mad + 64 + 20), ==, 1); /* SL 0, QP1 */
    g_assert_cmphex(get_be32(mad + 64 + 24), ==, 1);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_PKEY), ==, 1);
    g_assert_cmpuint(subnet_node_port(s, 1)->info.p_key_violations, ==, 1);
    g_assert_cmpuint(count(s, 1, "mgmt_gmps"), ==, 0);
    subnet_free(s);
}

/* No key at the index, or no such index: the packet is lost. */
static void test_no_pkey(void)
{
    static const uint16_t indices[] = { 1, 31, 32, 255, 0xffff };
    Subnet *s = new_subnet(9213);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));

    subnet_watch(s);
    for (unsigned i = 0; i < G_N_ELEMENTS(indices); i++) {
        to.pkey_index = indices[i];
        get_counters(s);
        subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
        g_assert_cmpuint(count(s, 0, "port_tx_unreachable"), ==, i + 1);
    }
    subnet_no_frames(s);
    subnet_free(s);
}

static void test_bad_qkey(gconstpointer data)
{
    bool software = GPOINTER_TO_UINT(data);
    Subnet *s = new_subnet(9214);
    UdAddress to = subnet_to_gsi(SUBNET_LID(1));
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    if (software) {
        subnet_take(s, 1, SUBNET_GSI);
    }
    to.qkey = 0x00010000;
    get_counters(s);
    subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, mad));
    g_assert_cmpuint(get_be16(mad + 68), ==, 258);
    g_assert_cmphex(get_be32(mad + 64 + 16), ==, 0x00010000);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_QKEY), ==, 1);
    g_assert_cmpuint(subnet_node_port(s, 1)->info.q_key_violations, ==, 1);
    g_assert_cmpuint(count(s, 1, "mgmt_gmps"), ==, 0);
    /* The QP's own, by which software means that of QP 1. */
    to.qkey = 0x80000000;
    get_counters(s);
    if (software) {
        subnet_send(s, 0, SUBNET_GSI, &to, s->mad);
        g_assert_true(subnet_receive(s, 1, SUBNET_GSI, &wc, NULL, mad));
    } else {
        g_assert_cmphex(ask(s, &to, &wc), ==, 0);
    }
    subnet_free(s);
}

/* ---- what is dropped ---- */

typedef struct Bad {
    const char *name;
    void (*edit)(HcaPacket *packet, uint8_t *mad);
    HcaDropReason reason;
} Bad;

static void on_vl_15(HcaPacket *packet, uint8_t *mad)
{
    packet->vl = 15;
}

static void too_short(HcaPacket *packet, uint8_t *mad)
{
    packet->payload_len = 252;
}

static void too_long(HcaPacket *packet, uint8_t *mad)
{
    packet->payload_len = 1024;
}

static void with_immediate(HcaPacket *packet, uint8_t *mad)
{
    packet->opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY_IMM);
}

static void not_ud(HcaPacket *packet, uint8_t *mad)
{
    packet->opcode = HCA_SEND_ONLY;
}

static void subnet_class(HcaPacket *packet, uint8_t *mad)
{
    mad[1] = HCA_CLASS_SUBN_LID;
}

static void directed_class(HcaPacket *packet, uint8_t *mad)
{
    mad[1] = HCA_CLASS_SUBN_DIRECTED;
}

static void to_permissive(HcaPacket *packet, uint8_t *mad)
{
    packet->dlid = 0xffff;
}

static void from_permissive(HcaPacket *packet, uint8_t *mad)
{
    packet->slid = 0xffff;
}

static const Bad bad_gmps[] = {
    { "vl-15", on_vl_15, HCA_DROP_MGMT },
    { "short", too_short, HCA_DROP_MGMT },
    { "long", too_long, HCA_DROP_MGMT },
    { "immediate", with_immediate, HCA_DROP_MGMT },
    { "rc", not_ud, HCA_DROP_MGMT },
    { "subnet-class", subnet_class, HCA_DROP_MGMT },
    { "directed-class", directed_class, HCA_DROP_MGMT },
    { "to-permissive", to_permissive, HCA_DROP_LID },
    { "from-permissive", from_permissive, HCA_DROP_LID },
};

static void test_bad_gmp(gconstpointer opaque)
{
    const Bad *bad = opaque;
    Subnet *s = new_subnet(9220);
    uint8_t mad[1024] = { 0 };

    for (unsigned software = 0; software < 2; software++) {
        HcaPacket packet = subnet_packet(s, SUBNET_GSI);
        uint64_t drops = pair_drops(s->pair, 1, bad->reason);

        if (software) {
            subnet_take(s, 1, SUBNET_SMI);
            subnet_take(s, 1, SUBNET_GSI);
        }
        get_counters(s);
        memcpy(mad, s->mad, HCA_MAD_SIZE);
        bad->edit(&packet, mad);
        subnet_watch(s);
        subnet_inject(s, 0, &packet, mad);
        subnet_no_frames(s);
        g_assert_cmpuint(pair_drops(s->pair, 1, bad->reason), ==, drops + 1);
        g_assert_cmpuint(count(s, 1, "mgmt_gmps"), ==, 0);
        if (software) {
            subnet_expect_none(s, 1, SUBNET_SMI);
            subnet_expect_none(s, 1, SUBNET_GSI);
        }
    }
    subnet_free(s);
}

/* Before the port is Armed there are no GMPs. */
static void test_not_active(void)
{
    Subnet *s = subnet_new(9221);
    HcaPacket packet = subnet_packet(s, SUBNET_GSI);
    uint64_t lost;

    subnet_set_lid(s, 0, SUBNET_LID(0), 0);
    subnet_set_lid(s, 1, SUBNET_LID(1), 0);
    subnet_take(s, 0, SUBNET_GSI);
    get_counters(s);
    subnet_watch(s);
    subnet_inject(s, 0, &packet, s->mad);
    subnet_no_frames(s);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_PORT_DOWN), ==, 1);
    lost = count(s, 0, "port_tx_inactive");
    subnet_send(s, 0, SUBNET_GSI, &(UdAddress) { .dlid = SUBNET_LID(1) },
                s->mad);
    g_assert_cmpuint(count(s, 0, "port_tx_inactive"), ==, lost + 1);
    subnet_no_frames(s);
    subnet_free(s);
}

/* What finds no receive: counters of the card, and those that managers read. */
static void test_no_receive(void)
{
    Subnet *s = new_subnet(9222);
    UdAddress gsi = subnet_to_gsi(SUBNET_LID(1));
    UdAddress smi = subnet_to_smi(0xffff);
    const unsigned extra[] = { 3, 5 };
    const uint8_t *data;

    for (unsigned which = 0; which < 2; which++) {
        subnet_take(s, 1, which);
        for (unsigned i = 0; i < SUBNET_RECVS + extra[which]; i++) {
            subnet_smp(s, which ? PERF : HCA_CLASS_SUBN_DIRECTED, GET, 0x12, 0);
            subnet_send(s, 0, which, which ? &gsi : &smi, s->mad);
        }
    }
    lab_run(s->lab);
    g_assert_cmpuint(count(s, 1, "port_vl15_dropped"), ==, 3);
    g_assert_cmpuint(count(s, 1, "port_qp1_dropped"), ==, 5);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_NO_WQE), ==, 8);
    get_counters(s);
    g_assert_cmphex(subnet_mad_ifc(s, 1, 0), ==, 0);
    data = s->reply + 64;
    g_assert_cmpuint(get_be16(data + 22), ==, 3);
    g_assert_cmpuint(get_be16(data + 20), ==, 5);
    subnet_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mad/card/gsi/agent", test_agent);
    test_add("/mad/card/gsi/counters", test_counters);
    test_add("/mad/card/gsi/counters-multicast", test_counters_multicast);
    test_add("/mad/card/gsi/grh", test_grh);
    test_add("/mad/card/gsi/classes", test_classes);
    test_add("/mad/card/gsi/other-qp", test_other_qp);
    test_add("/mad/card/gsi/loopback", test_loopback);
    for (unsigned i = 0; i < 2; i++) {
        const char *who = i ? "software" : "agent";

        test_add_data(test_named("/mad/card/gsi/pkey-index/%s", who),
                      GUINT_TO_POINTER(i), test_pkey_index);
        test_add_data(test_named("/mad/card/gsi/bad-pkey/%s", who),
                      GUINT_TO_POINTER(i), test_bad_pkey);
        test_add_data(test_named("/mad/card/gsi/bad-qkey/%s", who),
                      GUINT_TO_POINTER(i), test_bad_qkey);
    }
    test_add("/mad/card/gsi/pkey-on-wire", test_pkey_on_wire);
    test_add("/mad/card/gsi/no-pkey", test_no_pkey);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_gmps); i++) {
        test_add_data(test_named("/mad/card/gsi/bad/%s", bad_gmps[i].name),
                      &bad_gmps[i], test_bad_gmp);
    }
    test_add("/mad/card/gsi/not-active", test_not_active);
    test_add("/mad/card/gsi/no-receive", test_no_receive);
    return g_test_run();
}
