/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subnet management between two cards: QP 0 on VL 15, by software or by the
 * card's own agents; states, set by a manager on the other side. The commands are
 * in test-mad-card-commands.c, what is addressed in -paths.c, QP 1 in -gsi.c,
 * cables in -cable.c.
 */
#include <string.h>

#include "lib-subnet.h"

#define GET 0x01
#define SET 0x02
#define DIRECTED 0x81
#define LID_ROUTED 0x01
#define NODE_INFO 0x11
#define PORT_INFO 0x15

static uint64_t count(const Subnet *s, unsigned side, const char *name)
{
    return pair_counter(s->pair, side, name);
}

/* ---- QP 0 ---- */

/* Headers of an SMP as IBA 13.5.1 has them. */
static void expect_smp_frame(const SubnetFrame *frame)
{
    const uint8_t *lrh = frame->data, *bth = lrh + 8, *deth = bth + 12;

    g_assert_cmpuint(frame->len, ==, 8 + 12 + 8 + 256 + 4 + 2);
    g_assert_cmphex(lrh[0], ==, 0xf0);                /* VL 15, version 0 */
    g_assert_cmphex(lrh[1], ==, 0x02);                /* SL 0, no GRH */
    g_assert_cmphex(get_be16(lrh + 2), ==, 0xffff);   /* DLID */
    g_assert_cmpuint(get_be16(lrh + 4), ==, 288 / 4); /* LRH to ICRC, words */
    g_assert_cmphex(get_be16(lrh + 6), ==, 0xffff);   /* SLID */
    g_assert_cmphex(bth[0], ==, 0x64);                /* UD SEND only */
    g_assert_cmphex(bth[1] & 0x3f, ==, 0);
    g_assert_cmphex(get_be16(bth + 2), ==, 0xffff);       /* P_Key */
    g_assert_cmphex(get_be32(bth + 4) & 0xffffff, ==, 0); /* to QP 0 */
    g_assert_cmphex(get_be32(deth), ==, 0);               /* Q_Key */
    g_assert_cmphex(get_be32(deth + 4), ==, 0);           /* from QP 0 */
}

/* Nobody has a LID, the ports are Init: the peer's agents answer by themselves. */
static void test_agent_answers(void)
{
    Subnet *s = subnet_new(9001);

    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_INIT);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_INIT);
    subnet_take(s, 0, SUBNET_SMI);
    subnet_watch(s);
    subnet_expect_node_info(s, subnet_get(s, NODE_INFO, 0), 1);
    g_assert_cmpuint(s->reply[6], ==, 1); /* for the requester's SMI */
    g_assert_cmpuint(s->reply[192 + 1], ==, 1);
    for (unsigned side = 0; side < 2; side++) {
        SubnetFrame *frame = subnet_next_frame(s, side);

        expect_smp_frame(frame);
        g_free(frame);
    }
    subnet_no_frames(s);
    g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, 1);
    g_assert_cmpuint(count(s, 0, "mgmt_smps"), ==, 0);
    subnet_free(s);
}

/* What an SMI has to do for its own: C14-13, first case. */
static void answer_by_software(Subnet *s, const uint8_t *request)
{
    UdAddress to = subnet_to_smi(0xffff);

    memcpy(s->mad, request, HCA_MAD_SIZE);
    g_assert_cmpuint(s->mad[6], ==, 1); /* software is the SMI: C14-9 */
    s->mad[192 + 1] = 1;
    s->mad[6] = 2;
    g_assert_cmphex(subnet_mad_ifc(s, 1, 0), ==, 0);
    g_assert_cmpuint(s->reply[6], ==, 2);
    s->reply[6] = 1;
    memcpy(s->mad, s->reply, HCA_MAD_SIZE);
    subnet_send(s, 1, SUBNET_SMI, &to, s->mad);
}

/* Software at both ends, which has its agents asked by MAD_IFC. */
static void test_software_answers(void)
{
    static const uint8_t zero[SUBNET_GRH];
    Subnet *s = subnet_new(9002);
    UdAddress to = subnet_to_smi(0xffff);
    uint8_t sent[HCA_MAD_SIZE], grh[SUBNET_GRH], mad[HCA_MAD_SIZE];
    Wc wc;

    subnet_take(s, 0, SUBNET_SMI);
    subnet_take(s, 1, SUBNET_SMI);
    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    memcpy(sent, s->mad, sizeof(sent));
    subnet_send(s, 0, SUBNET_SMI, &to, sent);
    g_assert_true(subnet_receive(s, 1, SUBNET_SMI, &wc, grh, mad));
    g_assert_cmpmem(mad, sizeof(mad), sent, sizeof(sent));
    g_assert_cmpmem(grh, sizeof(grh), zero, sizeof(zero));
    g_assert_cmpuint(wc.qpn, ==, s->port[1][SUBNET_SMI].qp->qpn);
    g_assert_cmpuint(wc.rqpn, ==, 0);
    g_assert_cmphex(wc.rlid, ==, 0xffff);
    g_assert_cmpuint(wc.sl, ==, 0);
    g_assert_cmpuint(wc.path_bits, ==, 0);
    g_assert_false(wc.grh);
    answer_by_software(s, mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply));
    subnet_expect_node_info(s, s->reply + 64, 1);
    subnet_expect_none(s, 0, SUBNET_SMI);
    subnet_expect_none(s, 1, SUBNET_SMI);
    subnet_free(s);
}

/* Whose QP goes leaves its place to the agents again. */
static void test_taken_and_given_up(void)
{
    Subnet *s = subnet_new(9003);
    UdAddress to = subnet_to_smi(0xffff);
    Wc wc;

    for (unsigned i = 0; i < 3; i++) {
        subnet_get(s, NODE_INFO, 0);
        subnet_take(s, 1, SUBNET_SMI);
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
        g_assert_true(subnet_receive(s, 1, SUBNET_SMI, &wc, NULL, s->reply));
        subnet_expect_none(s, 0, SUBNET_SMI);
        subnet_give_up(s, 1, SUBNET_SMI);
    }
    subnet_get(s, NODE_INFO, 0);
    subnet_free(s);
}

/* By LIDs, when there are some; to the own LID, too, which is no loop. */
static void test_lid_routed(void)
{
    Subnet *s = subnet_new(9004);
    Wc wc;

    subnet_bring_up(s);
    for (unsigned side = 0; side < 2; side++) {
        UdAddress to = subnet_to_smi(SUBNET_LID(side));

        if (side == 0) {
            subnet_watch(s);
        }
        subnet_smp(s, LID_ROUTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
        g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply));
        g_assert_cmphex(wc.rlid, ==, SUBNET_LID(side));
        g_assert_cmpuint(wc.rqpn, ==, 0);
        if (side == 0) {
            g_assert_cmpmem(s->reply, HCA_MAD_SIZE, s->mad, HCA_MAD_SIZE);
            subnet_no_frames(s);
        } else {
            g_assert_cmphex(get_be16(s->reply + 4), ==, 0); /* no D */
            subnet_expect_node_info(s, s->reply + 64, 1);
        }
    }
    subnet_free(s);
}

/* Directed SMPs are taken by LID, too, and answered to where they came from. */
static void test_directed_by_lid(void)
{
    Subnet *s = subnet_new(9005);
    UdAddress to = subnet_to_smi(SUBNET_LID(1));
    SubnetFrame *frame;
    Wc wc;

    subnet_bring_up(s);
    subnet_watch(s);
    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply));
    g_assert_cmphex(wc.rlid, ==, SUBNET_LID(1));
    frame = subnet_next_frame(s, 0);
    g_assert_cmphex(get_be16(frame->data + 6), ==, SUBNET_LID(0));
    g_free(frame);
    frame = subnet_next_frame(s, 1);
    g_assert_cmphex(get_be16(frame->data + 2), ==, SUBNET_LID(0));
    g_free(frame);
    subnet_free(s);
}

/*
 * Behind the directed part LIDs may lead on (C14-9, fourth case): the answer goes
 * back by LIDs to where that part ended, with its hop pointer as it was.
 */
static void test_lids_behind(void)
{
    Subnet *s = subnet_new(9006);
    UdAddress to = subnet_to_smi(SUBNET_LID(1));
    Wc wc;

    subnet_bring_up(s);
    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    s->mad[6] = 2;
    put_be16(s->mad + 34, SUBNET_LID(1));
    subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply));
    g_assert_cmphex(get_be16(s->reply + 4), ==, 0x8000);
    g_assert_cmpuint(s->reply[6], ==, 2);
    subnet_expect_node_info(s, s->reply + 64, 1);
    subnet_free(s);
}

/* A route of no hops has no way back by the cable. */
static void test_no_hops(void)
{
    Subnet *s = subnet_new(9009);
    HcaPacket packet = subnet_packet(s, SUBNET_SMI);

    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    s->mad[6] = s->mad[7] = 0;
    subnet_watch(s);
    subnet_inject(s, 0, &packet, s->mad);
    subnet_no_frames(s);
    subnet_free(s);
}

/* A card that goes on elsewhere rests when its QP 0 has nothing to do there. */
static void test_moved(void)
{
    Subnet *s = subnet_new(9010);

    subnet_bring_up(s);
    host_reload(&s->lab->host[0]);
    g_assert_true(lab_rests_within(s->lab, 1000));
    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    g_assert_cmphex(subnet_ask(s), ==, 0);
    subnet_free(s);
}

/* Routes that cannot be, at a card's agents: silence. */
static void test_bad_routes(void)
{
    Subnet *s = subnet_new(9007);
    HcaPacket packet = subnet_packet(s, SUBNET_SMI);
    uint64_t before, smps;

    subnet_bring_up(s);
    subnet_watch(s);
    smps = count(s, 1, "mgmt_smps");
    before = count(s, 1, "mgmt_route_errors");
    for (unsigned i = 0; i < 300; i++) {
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        s->mad[6] = g_test_rand_int_range(0, 256);
        s->mad[7] = g_test_rand_int_range(i & 1 ? 64 : 2, 256);
        if (s->mad[7] < 64 && s->mad[6] >= s->mad[7]) {
            s->mad[6] = s->mad[7] - 1;
        }
        subnet_inject(s, 0, &packet, s->mad);
    }
    subnet_no_frames(s);
    g_assert_cmpuint(count(s, 1, "mgmt_route_errors"), ==, before + 300);
    g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps);
    subnet_free(s);
}

/* An answer, by its direction, is not done what it says, whatever its method. */
static void test_direction(void)
{
    Subnet *s = subnet_new(9008);
    HcaPacket packet = subnet_packet(s, SUBNET_SMI);
    uint64_t smps;

    subnet_bring_up(s);
    subnet_watch(s);
    smps = count(s, 1, "mgmt_smps");
    for (unsigned pointer = 0; pointer < 4; pointer++) {
        for (uint8_t method = GET; method <= SET; method++) {
            subnet_smp(s, DIRECTED, method, 0x31, 0)[0] = 0x80;
            s->mad[4] = 0x80;
            s->mad[6] = pointer;
            subnet_inject(s, 0, &packet, s->mad);
            g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps);
            g_assert_false(subnet_node_port(s, 1)->led);
        }
    }
    subnet_no_frames(s);
    subnet_free(s);
}

/* One packet on the cable, with something wrong. */
typedef struct Bad {
    const char *name;
    void (*edit)(HcaPacket *packet, uint8_t *mad);
} Bad;

static void not_qp_0(HcaPacket *packet, uint8_t *mad)
{
    packet->dest_qp = 1;
}

static void user_qp(HcaPacket *packet, uint8_t *mad)
{
    packet->dest_qp = 0x50;
}

static void with_grh(HcaPacket *packet, uint8_t *mad)
{
    packet->has_grh = true;
    packet->dlid = SUBNET_LID(1);
    put_be64(packet->dgid.raw, UINT64_C(0xfe80000000000000));
    put_be64(packet->dgid.raw + 8, UINT64_C(0x0200c0fffe000001));
}

static void too_short(HcaPacket *packet, uint8_t *mad)
{
    packet->payload_len = 252;
}

static void too_long(HcaPacket *packet, uint8_t *mad)
{
    packet->payload_len = 260;
}

static void with_immediate(HcaPacket *packet, uint8_t *mad)
{
    packet->opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY_IMM);
}

static void not_ud(HcaPacket *packet, uint8_t *mad)
{
    packet->opcode = HCA_SEND_ONLY;
}

static void on_data_vl(HcaPacket *packet, uint8_t *mad)
{
    packet->vl = 0;
    packet->dlid = SUBNET_LID(1);
    packet->slid = SUBNET_LID(0);
}

static void permissive_by_lid(HcaPacket *packet, uint8_t *mad)
{
    mad[1] = LID_ROUTED;
}

static void of_another_class(HcaPacket *packet, uint8_t *mad)
{
    packet->dlid = SUBNET_LID(1);
    packet->slid = SUBNET_LID(0);
    mad[1] = HCA_CLASS_PERF;
}

static const Bad bad_smps[] = {
    { "qp1", not_qp_0 },
    { "user-qp", user_qp },
    { "grh", with_grh },
    { "short", too_short },
    { "long", too_long },
    { "immediate", with_immediate },
    { "rc", not_ud },
    { "data-vl", on_data_vl },
    { "permissive-by-lid", permissive_by_lid },
    { "class", of_another_class },
};

/* It is dropped, by agents and by software's QP, and there is no answer. */
static void test_bad_smp(gconstpointer opaque)
{
    const Bad *bad = opaque;
    Subnet *s = subnet_new(9010);
    uint8_t mad[512] = { 0 };

    subnet_bring_up(s);
    for (unsigned software = 0; software < 2; software++) {
        HcaPacket packet = subnet_packet(s, SUBNET_SMI);
        uint64_t drops = pair_drops(s->pair, 1, HCA_DROP_MGMT);
        uint64_t smps = count(s, 1, "mgmt_smps");

        if (software) {
            subnet_take(s, 1, SUBNET_SMI);
            subnet_take(s, 1, SUBNET_GSI);
        }
        memcpy(mad, s->mad, HCA_MAD_SIZE);
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        memcpy(mad, s->mad, HCA_MAD_SIZE);
        bad->edit(&packet, mad);
        subnet_watch(s);
        subnet_inject(s, 0, &packet, mad);
        subnet_no_frames(s);
        g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_MGMT), ==, drops + 1);
        g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps);
        g_assert_cmpuint(count(s, 1, "mgmt_gmps"), ==, 0);
        if (software) {
            subnet_expect_none(s, 1, SUBNET_SMI);
            subnet_expect_none(s, 1, SUBNET_GSI);
        }
    }
    subnet_free(s);
}

/* The P_Key and Q_Key of an SMP are not looked at (IBA 13.5.1.5). */
static void test_keys_of_smp(void)
{
    Subnet *s = subnet_new(9011);
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    subnet_bring_up(s);
    subnet_take(s, 1, SUBNET_SMI);
    for (unsigned i = 0; i < 4; i++) {
        HcaPacket packet = subnet_packet(s, SUBNET_SMI);

        packet.pkey = i & 1 ? 0x1234 : 0x7fff;
        packet.qkey = i & 2 ? 0x80010000 : 0xffffffff;
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_inject(s, 0, &packet, s->mad);
        g_assert_true(subnet_receive(s, 1, SUBNET_SMI, &wc, NULL, mad));
    }
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_PKEY), ==, 0);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_QKEY), ==, 0);
    subnet_free(s);
}

/* From a user's QP an SMP is a packet on a data VL. */
static void test_from_user_qp(void)
{
    Subnet *s = subnet_new(9012);
    uint64_t drops;
    Qp *qp;

    subnet_bring_up(s);
    qp = subnet_ud(s, 0);
    for (uint32_t qpn = 0; qpn < 2; qpn++) {
        UdAddress to = { .dlid = SUBNET_LID(1), .dqpn = qpn };
        SendWr wr;
        Sge sge;
        Wc wc;

        subnet_smp(s, DIRECTED, SET, PORT_INFO, 0);
        mr_write(s->pair->mr[0], SUBNET_DATA, s->mad, HCA_MAD_SIZE);
        wr = pair_send(s->pair, 0, RDMA_HCA_OPCODE_SEND, 7, &sge, SUBNET_DATA,
                       HCA_MAD_SIZE, 0);
        wr.ud = &to;
        drops = pair_drops(s->pair, 1, HCA_DROP_MGMT);
        subnet_watch(s);
        g_assert_true(qp_post_send(qp, &wr, 1));
        cq_expect(s->pair->cq[0], &wc, 7, 0);
        lab_run(s->lab);
        g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_MGMT), ==, drops + 1);
        g_free(subnet_next_frame(s, 0));
        subnet_no_frames(s);
    }
    subnet_free(s);
}

/* A WQE of QP 0 or QP 1 has 256 bytes, or it ends in an error. */
static void test_lengths(gconstpointer data)
{
    static const uint32_t lengths[] = { 0, 1, 252, 255, 257, 260, 512, 4096 };
    unsigned which = GPOINTER_TO_UINT(data);
    UdAddress to = which == SUBNET_SMI ? subnet_to_smi(0xffff)
                                       : subnet_to_gsi(SUBNET_LID(1));
    Subnet *s = subnet_new(9013);

    subnet_bring_up(s);
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        SubnetPort *port = &s->port[0][which];
        SendWr wr;
        Sge sge;
        Wc wc;

        if (port->qp) {
            subnet_give_up(s, 0, which);
        }
        subnet_take(s, 0, which);
        subnet_watch(s);
        wr = pair_send(s->pair, 0, RDMA_HCA_OPCODE_SEND, 9, &sge, SUBNET_DATA,
                       lengths[i], 0);
        wr.ud = &to;
        g_assert_true(qp_post_send(port->qp, &wr, 1));
        cq_expect(port->send_cq, &wc, 9, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
        subnet_no_frames(s);
    }
    subnet_free(s);
}

/* To a group there are no SMPs, though the card has joined it. */
static void test_smp_to_group(void)
{
    static const uint8_t mgid[16] = { 0xff, 0x12, [15] = 1 };
    Subnet *s = subnet_new(9014);
    UdAddress to = subnet_to_smi(0xc001);
    const Qp *qp;

    subnet_bring_up(s);
    qp = subnet_ud(s, 0);
    g_assert_cmphex(driver_write_mgm(s->pair->drv[0], 0, mgid, &qp, 1), ==, 0);
    memcpy(to.dgid, mgid, sizeof(mgid));
    for (unsigned i = 0; i < 3000; i++) {
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    }
    g_assert_cmpuint(count(s, 0, "link_loopback_packets"), ==, 0);
    g_assert_cmpuint(count(s, 0, "port_rx_multicast"), ==, 0);
    g_assert_cmpuint(count(s, 1, "port_rx_multicast"), ==, 0);
    subnet_free(s);
}

/* ---- states ---- */

static unsigned port_changes(Subnet *s, unsigned side, uint8_t subtype)
{
    struct rdma_hca_eqe eqe;
    unsigned n = 0;

    lab_run(s->lab);
    while (driver_event(s->pair->drv[side], RDMA_HCA_EVENT_PORT_CHANGE, &eqe)) {
        n += eqe.subtype == subtype;
    }
    return n;
}

/* Init to Active by a manager on side 0, with data tried at each step. */
static void test_bring_up(void)
{
    Subnet *s = subnet_new(9050);
    uint64_t lost;

    subnet_set_lid(s, 0, SUBNET_LID(0), 0);
    subnet_set_lid(s, 1, SUBNET_LID(1), 0);
    for (uint8_t state = HCA_PORT_INIT; state <= HCA_PORT_ARMED; state++) {
        if (state == HCA_PORT_ARMED) {
            subnet_set_state(s, 0, state);
            subnet_set_state(s, 1, state);
        }
        for (unsigned side = 0; side < 2; side++) {
            lost = count(s, side, "port_tx_inactive");
            g_assert_false(subnet_passes(s, side, SUBNET_LID(!side)));
            g_assert_cmpuint(count(s, side, "port_tx_inactive"), ==, lost + 1);
            g_assert_cmpuint(subnet_state(s, side), ==, state);
        }
    }
    g_assert_cmpuint(port_changes(s, 0, RDMA_HCA_PORT_CHANGE_ACTIVE), ==, 0);
    subnet_set_state(s, 0, HCA_PORT_ACTIVE);
    g_assert_cmpuint(port_changes(s, 0, RDMA_HCA_PORT_CHANGE_ACTIVE), ==, 1);
    g_assert_cmpuint(port_changes(s, 1, RDMA_HCA_PORT_CHANGE_ACTIVE), ==, 0);
    /* What is received in Armed makes it Active. */
    g_assert_false(subnet_passes(s, 1, SUBNET_LID(0)));
    g_assert_true(subnet_passes(s, 0, SUBNET_LID(1)));
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_ACTIVE);
    g_assert_cmpuint(port_changes(s, 1, RDMA_HCA_PORT_CHANGE_ACTIVE), ==, 1);
    g_assert_true(subnet_passes(s, 1, SUBNET_LID(0)));
    subnet_free(s);
}

/* An Init port takes no data, and is not made Active by it. */
static void test_init_takes_none(void)
{
    Subnet *s = subnet_new(9051);
    uint64_t drops;

    subnet_bring_up(s);
    subnet_set_state(s, 1, HCA_PORT_DOWN);
    subnet_set_state(s, 0, HCA_PORT_ARMED);
    subnet_set_state(s, 0, HCA_PORT_ACTIVE);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_INIT);
    drops = pair_drops(s->pair, 1, HCA_DROP_PORT_DOWN);
    g_assert_false(subnet_passes(s, 0, SUBNET_LID(1)));
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_PORT_DOWN), ==, drops + 1);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_INIT);
    subnet_free(s);
}

/* Data to itself needs no link, and no manager. */
static void test_loopback_in_init(void)
{
    Subnet *s = subnet_new(9052);
    Qp *qp;
    UdAddress to;
    Wc wc;

    subnet_set_lid(s, 0, SUBNET_LID(0), 0);
    qp = subnet_ud(s, 0);
    to = (UdAddress) { .dlid = SUBNET_LID(0),
                       .dqpn = qp->qpn,
                       .qkey = 0x11111111 };
    pair_post_recv(s->pair, 0, qp, 4, SUBNET_DATA + 1024, 1024);
    subnet_send_data(s, qp, &to);
    g_assert_true(subnet_receive_data(s, qp, &wc));
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_INIT);
    subnet_free(s);
}

/* Down by a Set: the answer comes, both ends are Init again, and keep LIDs. */
static void test_set_down(void)
{
    Subnet *s = subnet_new(9053);
    uint8_t info[64];

    subnet_bring_up(s);
    port_changes(s, 0, 0);
    subnet_port_info(s, 1, info);
    info[32] |= HCA_PORT_DOWN;
    subnet_set_port_info(s, 1, info);
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_INIT);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_INIT);
    g_assert_cmpuint(port_changes(s, 0, RDMA_HCA_PORT_CHANGE_DOWN), ==, 1);
    g_assert_cmphex(get_be16(subnet_get(s, PORT_INFO, 1) + 16), ==,
                    SUBNET_LID(1));
    for (uint8_t state = HCA_PORT_ARMED; state <= HCA_PORT_ACTIVE; state++) {
        subnet_set_state(s, 0, state);
        subnet_set_state(s, 1, state);
    }
    g_assert_true(subnet_passes(s, 0, SUBNET_LID(1)));
    subnet_free(s);
}

/* Disabled: its answer still leaves; then there is no link, until Polling. */
static void test_set_disabled(void)
{
    Subnet *s = subnet_new(9054);
    uint8_t info[64];

    subnet_bring_up(s);
    subnet_port_info(s, 1, info);
    info[33] |= 3 << 4;
    subnet_set_port_info(s, 1, info);
    lab_sleep(s->lab, NS_PER_S / 10);
    lab_run(s->lab);
    g_assert_true(hca_link_is_up(s->lab->host[0].hca->link));
    lab_sleep(s->lab, NS_PER_S);
    lab_run(s->lab);
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_DOWN);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_DOWN);
    g_assert_cmpuint(subnet_get_own(s, 1, PORT_INFO, 1)[33] >> 4, ==, 3);
    lab_cable(s->lab, false);
    lab_cable(s->lab, true);
    lab_run(s->lab);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_DOWN);
    memcpy(info, subnet_get_own(s, 1, PORT_INFO, 1), 64);
    info[32] &= 0xf0;
    info[33] = 2 << 4;
    g_assert_cmphex(subnet_set_own(s, 1, PORT_INFO, 1, info), ==, 0);
    lab_run(s->lab);
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_INIT);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_INIT);
    subnet_free(s);
}

/* What QUERY_PORT says is what the manager has set. */
static void test_query_port(void)
{
    Subnet *s = subnet_new(9055);
    struct rdma_hca_port port;
    uint8_t info[64];

    subnet_bring_up(s);
    subnet_port_info(s, 1, info);
    put_be64(info + 8, UINT64_C(0xfec0000000000001));
    put_be16(info + 18, 0x99);        /* MasterSMLID */
    info[34] = (info[34] & 0xf8) | 2; /* LMC */
    info[36] = 0x40 | 5;              /* NeighborMTU 4, SL 5 */
    info[51] = 20;                    /* SubnetTimeOut */
    subnet_set_port_info(s, 1, info);
    subnet_query(s, 1, &port);
#define IS(field, mask, value)                                                 \
    g_assert_cmphex(                                                           \
        RDMA_HCA_GET(RDMA_HCA_PORT_##mask, GUINT32_FROM_BE(port.field)), ==,   \
        value)
    IS(state, STATE, HCA_PORT_ACTIVE);
    IS(state, PHYS_STATE, 5);
    IS(lid, LID, SUBNET_LID(1));
    IS(lid, LMC, 2);
    IS(sm, SM_LID, 0x99);
    IS(sm, SM_SL, 5);
    IS(mtu_width_speed, ACTIVE_MTU, 4);
    IS(mtu_width_speed, MAX_MTU, 5);
    IS(mtu_width_speed, MAX_VL, 4);
    IS(mgmt, SUBNET_TIMEOUT, 20);
    IS(pkeys[0], PKEY(0), 0xffff);
    IS(pkeys[0], PKEY(1), 0);
#undef IS
    g_assert_cmphex(GUINT32_FROM_BE(port.gid_prefix_h), ==, 0xfec00000);
    g_assert_cmphex(GUINT32_FROM_BE(port.gid_prefix_l), ==, 1);
    g_assert_cmphex(GUINT32_FROM_BE(port.guids[0].l), ==,
                    RDMA_HCA_LO32(subnet_guid(s, 1)));
    subnet_free(s);
}

/* CLOSE_HCA and a reset forget the manager and the special QPs. */
static void test_reset(void)
{
    Subnet *s = subnet_new(9056);

    subnet_bring_up(s);
    subnet_take(s, 1, SUBNET_SMI);
    subnet_take(s, 1, SUBNET_GSI);
    host_reset(&s->lab->host[1]);
    lab_run(s->lab);
    g_assert_cmpuint(hca_cxtmgt_special(subnet_card(s, 1)->cm, HCA_SPECIAL_SMI),
                     ==, 0);
    g_assert_cmphex(subnet_node_port(s, 1)->info.lid, ==, 0);
    g_assert_cmpuint(subnet_node_port(s, 1)->info.state, ==, HCA_PORT_DOWN);
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_DOWN);
    driver_free(s->pair->drv[1]);
    s->pair->drv[1] = driver_new(&s->lab->host[1]);
    s->pair->mr[1] = mr_new(s->pair->drv[1], pd_new(s->pair->drv[1]), 0x1000,
                            SUBNET_AREA, ACCESS_ALL);
    lab_run(s->lab);
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_INIT);
    subnet_expect_node_info(s, subnet_get(s, NODE_INFO, 0), 1);
    subnet_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mad/card/smi/agent", test_agent_answers);
    test_add("/mad/card/smi/software", test_software_answers);
    test_add("/mad/card/smi/given-up", test_taken_and_given_up);
    test_add("/mad/card/smi/lid-routed", test_lid_routed);
    test_add("/mad/card/smi/directed-by-lid", test_directed_by_lid);
    test_add("/mad/card/smi/lids-behind", test_lids_behind);
    test_add("/mad/card/smi/no-hops", test_no_hops);
    test_add("/mad/card/smi/moved", test_moved);
    test_add("/mad/card/smi/bad-routes", test_bad_routes);
    test_add("/mad/card/smi/direction", test_direction);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_smps); i++) {
        test_add_data(test_named("/mad/card/smi/bad/%s", bad_smps[i].name),
                      &bad_smps[i], test_bad_smp);
    }
    test_add("/mad/card/smi/keys", test_keys_of_smp);
    test_add("/mad/card/smi/user-qp", test_from_user_qp);
    test_add("/mad/card/smi/group", test_smp_to_group);
    test_add_data("/mad/card/smi/lengths", GUINT_TO_POINTER(SUBNET_SMI),
                  test_lengths);
    test_add_data("/mad/card/gsi/lengths", GUINT_TO_POINTER(SUBNET_GSI),
                  test_lengths);
    test_add("/mad/card/state/bring-up", test_bring_up);
    test_add("/mad/card/state/init", test_init_takes_none);
    test_add("/mad/card/state/loopback", test_loopback_in_init);
    test_add("/mad/card/state/down", test_set_down);
    test_add("/mad/card/state/disabled", test_set_disabled);
    test_add("/mad/card/state/query", test_query_port);
    test_add("/mad/card/state/reset", test_reset);
    return g_test_run();
}
