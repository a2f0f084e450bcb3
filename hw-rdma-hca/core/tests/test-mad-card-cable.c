/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Management and the cable: VL 15 beside data that waits, the room that it has;
 * cards that are left to a manager, and those that take the peer's word for it.
 */
#include <string.h>

#include "lib-subnet.h"

#define GET 0x01
#define DIRECTED HCA_CLASS_SUBN_DIRECTED
#define NODE_INFO 0x11
#define MNG(name) RDMA_HCA_PORT_MNG_##name

static uint64_t count(const Subnet *s, unsigned side, const char *name)
{
    return pair_counter(s->pair, side, name);
}

/* ---- a full cable ---- */

/* Datagrams until the card takes no more; how many wait for the cable. */
static unsigned fill(Subnet *s, Qp *qp)
{
    UdAddress to = { .dlid = SUBNET_LID(1), .dqpn = 77, .qkey = 1 };
    SendWr wr[64];
    Sge sge[64];
    unsigned n = 0;

    s->lab->capacity = 0;
    for (; n < 64; n++) {
        wr[n] = pair_send(s->pair, 0, RDMA_HCA_OPCODE_SEND, n, &sge[n],
                          SUBNET_DATA, 4096, 0);
        wr[n].ud = &to;
    }
    g_assert_true(qp_post_send(qp, wr, n));
    lab_run(s->lab);
    return n;
}

static Qp *new_sender(Subnet *s)
{
    Qp *qp = pair_new_qp(s->pair, 0, RDMA_HCA_QP_ST_UD);
    QpAttr attr;

    qp_attr_init(&attr);
    attr.mtu = 5;
    qp_bring_up(qp, &attr);
    return qp;
}

static unsigned completed(Subnet *s)
{
    unsigned n = 0;
    Wc wc;

    while (cq_poll(s->pair->cq[0], &wc)) {
        n++;
    }
    return n;
}

/* SMPs do not wait for data, and all that there is room for arrive. */
static void test_passes_data(void)
{
    UdAddress to = subnet_to_smi(0xffff);
    Subnet *s = subnet_new(9301);
    unsigned n, some = SUBNET_RECVS;
    uint64_t smps;
    size_t capacity;
    Wc wc;

    subnet_bring_up(s);
    capacity = s->lab->capacity;
    n = fill(s, new_sender(s));
    g_assert_cmpuint(completed(s), <, n);
    smps = count(s, 1, "mgmt_smps");
    for (unsigned i = 0; i < some; i++) {
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    }
    g_assert_cmpuint(count(s, 0, "port_tx_mgmt_full"), ==, 0);
    g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps);
    s->lab->capacity = capacity;
    s->lab->host[0].kicked = true;
    for (unsigned i = 0; i < some; i++) {
        g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply));
    }
    lab_run(s->lab);
    g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps + some);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_QPN), ==, n);
    subnet_free(s);
}

/* Its own room is full: the SMP is lost, and counted; data is not touched. */
static void test_room_full(void)
{
    UdAddress to = subnet_to_smi(0xffff);
    Subnet *s = subnet_new(9302);
    unsigned n, sent = 1000;
    uint64_t smps, lost;
    size_t capacity;

    subnet_bring_up(s);
    capacity = s->lab->capacity;
    n = fill(s, new_sender(s));
    smps = count(s, 1, "mgmt_smps");
    for (unsigned i = 0; i < sent; i++) {
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    }
    lost = count(s, 0, "port_tx_mgmt_full");
    g_assert_cmpuint(lost, >, 0);
    g_assert_cmpuint(lost, <, sent - 100); /* 32 KiB of them fit */
    s->lab->capacity = capacity;
    s->lab->host[0].kicked = true;
    lab_run(s->lab);
    g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps + sent - lost);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_QPN), ==, n);
    /* A performance manager sees them. */
    subnet_smp(s, HCA_CLASS_PERF, GET, 0x12, 0)[1] = 1;
    g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, 0);
    g_assert_cmpuint(get_be16(s->reply + 64 + 14), ==, lost);
    g_assert_cmpuint(get_be32(s->reply + 64 + 40), ==,
                     count(s, 0, "link_tx_wait_ns") / 1000);
    subnet_free(s);
}

/* The card of @side alone, until it has nothing more to do. */
static void run_alone(Subnet *s, unsigned side)
{
    Host *host = s->lab->host;

    do {
        host[!side].kicked = false;
        g_assert_true(!host[side].kicked || lab_step(s->lab));
    } while (host[side].kicked);
}

/* Answers of agents have that room as well: without it they are lost. */
static void test_answers_lost(void)
{
    Subnet *s = subnet_new(9303);
    HcaPacket packet = subnet_packet(s, SUBNET_SMI);
    uint64_t smps, sent;
    unsigned asked = 3000;
    Wc wc;

    subnet_bring_up(s);
    lab_run(s->lab);
    smps = count(s, 1, "mgmt_smps");
    sent = count(s, 1, "link_tx_packets");
    for (unsigned i = 0; i < asked; i++) {
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_put(s, 0, &packet, s->mad);
        s->lab->host[1].kicked = true;
        run_alone(s, 1);
    }
    g_assert_cmpuint(count(s, 1, "mgmt_smps"), ==, smps + asked);
    g_assert_cmpuint(count(s, 1, "port_tx_mgmt_full"), >, 0);
    g_assert_cmpuint(count(s, 1, "link_tx_packets") - sent, ==,
                     asked - count(s, 1, "port_tx_mgmt_full"));
    s->lab->host[0].kicked = true;
    while (subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply)) {
        g_assert_cmphex(s->reply[3], ==, HCA_METHOD_GET_RESP);
    }
    subnet_get(s, NODE_INFO, 0);
    subnet_free(s);
}

/* Without a cable SMPs are lost at once. */
static void test_no_cable(void)
{
    UdAddress to = subnet_to_smi(0xffff);
    Subnet *s = subnet_new(9304);
    uint64_t lost;

    subnet_take(s, 0, SUBNET_SMI);
    lab_cable(s->lab, false);
    lab_run(s->lab);
    lost = count(s, 0, "link_tx_discarded");
    for (unsigned i = 0; i < 1000; i++) {
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    }
    g_assert_cmpuint(count(s, 0, "link_tx_discarded"), ==, lost + 1000);
    lab_cable(s->lab, true);
    lab_run(s->lab);
    subnet_get(s, NODE_INFO, 0);
    subnet_free(s);
}

/* Out and in again: Init, with what the manager had set. */
static void test_replugged(void)
{
    Subnet *s = subnet_new(9305);

    subnet_bring_up(s);
    for (unsigned side = 0; side < 2; side++) {
        driver_count_events(s->pair->drv[side], RDMA_HCA_EVENT_PORT_CHANGE);
    }
    lab_cable(s->lab, false);
    lab_run(s->lab);
    for (unsigned side = 0; side < 2; side++) {
        g_assert_cmpuint(subnet_state(s, side), ==, HCA_PORT_DOWN);
    }
    lab_cable(s->lab, true);
    lab_run(s->lab);
    for (unsigned side = 0; side < 2; side++) {
        g_assert_cmpuint(subnet_state(s, side), ==, HCA_PORT_INIT);
        g_assert_cmphex(subnet_node_port(s, side)->info.lid, ==,
                        SUBNET_LID(side));
        g_assert_cmpuint(
            driver_count_events(s->pair->drv[side], RDMA_HCA_EVENT_PORT_CHANGE),
            ==, 1);
    }
    for (uint8_t state = HCA_PORT_ARMED; state <= HCA_PORT_ACTIVE; state++) {
        subnet_set_state(s, 0, state);
        subnet_set_state(s, 1, state);
    }
    g_assert_true(subnet_passes(s, 0, SUBNET_LID(1)));
    subnet_free(s);
}

/* ---- who is managed ---- */

/* What a card is without a manager, or before one has said something. */
static void expect_static(Subnet *s, unsigned side)
{
    const HcaConfig *config = &s->lab->host[side].config;
    struct rdma_hca_port port;

    subnet_query(s, side, &port);
    g_assert_cmpuint(subnet_state(s, side), ==, HCA_PORT_ACTIVE);
    g_assert_cmphex(GUINT32_FROM_BE(port.lid), ==,
                    RDMA_HCA_PREP(RDMA_HCA_PORT_LID, config->lid));
    g_assert_cmphex(GUINT32_FROM_BE(port.sm), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(port.pkeys[0]) >> 16, ==, config->pkeys[0]);
    g_assert_cmphex(GUINT32_FROM_BE(port.pkeys[0]) & 0xffff, ==,
                    config->pkeys[1]);
    g_assert_cmphex(GUINT32_FROM_BE(port.gid_prefix_h), ==, 0xfe800000);
    g_assert_cmphex(GUINT32_FROM_BE(port.gid_prefix_l), ==, 0);
    for (unsigned i = 1; i < RDMA_HCA_MAX_GUIDS; i++) {
        g_assert_cmphex(port.guids[i].h | port.guids[i].l, ==, 0);
    }
}

static void expect_new(Subnet *s, unsigned side)
{
    struct rdma_hca_port port;

    subnet_query(s, side, &port);
    g_assert_cmpuint(subnet_state(s, side), ==, HCA_PORT_INIT);
    g_assert_cmphex(GUINT32_FROM_BE(port.lid), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(port.sm), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(port.pkeys[0]), ==, 0xffff0000);
}

static Subnet *new_pair(HcaManaged a, HcaManaged b)
{
    HcaConfig config[2];

    subnet_config(config, a, b);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_null(hca_config_set_pkeys(&config[i], "0x8001:0x8002"));
    }
    return subnet_new_with(9310, config);
}

/* All combinations: who waits for a manager, whose data passes. */
static void test_managed(gconstpointer data)
{
    unsigned which = GPOINTER_TO_UINT(data);
    HcaManaged choice[2] = { which % 3, which / 3 };
    Subnet *s = new_pair(choice[0], choice[1]);
    bool passes = true;

    for (unsigned side = 0; side < 2; side++) {
        bool managed = choice[side] == HCA_MANAGED_ON ||
                       (choice[side] == HCA_MANAGED_AUTO &&
                        choice[!side] == HCA_MANAGED_ON);

        if (managed) {
            expect_new(s, side);
        } else {
            expect_static(s, side);
        }
        passes &= !managed;
    }
    for (unsigned side = 0; side < 2; side++) {
        uint16_t lid = s->lab->host[!side].config.lid;

        g_assert_cmpint(subnet_passes(s, side, lid), ==, passes);
    }
    subnet_free(s);
}

/* Another peer is plugged in: one that is managed, or not. */
static void replug(Subnet *s, bool managed)
{
    lab_cable(s->lab, false);
    lab_run(s->lab);
    hca_link_set_managed(subnet_card(s, 1)->link, managed);
    lab_cable(s->lab, true);
    lab_run(s->lab);
}

/* All that a manager may have left behind. */
static void manage(Subnet *s)
{
    uint8_t info[64], block[64];

    subnet_port_info(s, 0, info);
    put_be64(info, 0x55);                             /* M_Key */
    put_be64(info + 8, UINT64_C(0xfec0000000000001)); /* GidPrefix */
    info[34] = (info[34] & 0x38) | 0x80 | 3;          /* protection, LMC */
    info[36] = (info[36] & 0xf0) | 7;                 /* MasterSMSL */
    subnet_set_port_info(s, 0, info);
    memset(block, 0x21, sizeof(block));
    g_assert_cmphex(subnet_set_own(s, 0, 0x16, 0, block), ==, 0);
    g_assert_cmphex(subnet_set_own(s, 0, 0x14, 0, block), ==, 0);
    memset(block, 0xff, sizeof(block)); /* every SL is dropped */
    g_assert_cmphex(subnet_set_own(s, 0, 0x17, 0, block), ==, 0);
}

/* To and fro: a card without a manager is what its options say. */
static void test_auto(void)
{
    Subnet *s = new_pair(HCA_MANAGED_AUTO, HCA_MANAGED_OFF);
    uint32_t all = MNG(LID) | MNG(SM) | MNG(PKEYS);

    for (unsigned round = 0; round < 3; round++) {
        expect_static(s, 0);
        g_assert_true(subnet_passes(s, 0, s->lab->host[1].config.lid));
        g_assert_true(subnet_passes(s, 1, s->lab->host[0].config.lid));
        subnet_changes(s, 0);
        replug(s, true);
        expect_new(s, 0);
        g_assert_cmphex(subnet_changes(s, 0) & all, ==, all);
        manage(s);
        subnet_changes(s, 0);
        replug(s, false);
        all |= MNG(GIDS); /* which were others */
        g_assert_cmphex(subnet_changes(s, 0) & all, ==, all);
        all &= ~MNG(GIDS);
    }
    expect_static(s, 0);
    subnet_free(s);
}

/* The same peer again: what the manager has set stays. */
static void test_auto_same(void)
{
    Subnet *s = new_pair(HCA_MANAGED_AUTO, HCA_MANAGED_ON);

    expect_new(s, 0);
    subnet_set_lid(s, 0, 0x123, 1);
    subnet_changes(s, 0);
    replug(s, true);
    g_assert_cmphex(subnet_node_port(s, 0)->info.lid, ==, 0x123);
    g_assert_cmpuint(subnet_node_port(s, 0)->info.lmc, ==, 1);
    g_assert_cmphex(subnet_changes(s, 0), ==, 0);
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_INIT);
    subnet_free(s);
}

/* A reset of an automatic card, with a managed peer all the while. */
static void test_auto_reset(void)
{
    Subnet *s = new_pair(HCA_MANAGED_AUTO, HCA_MANAGED_ON);

    subnet_set_lid(s, 0, 0x123, 1);
    host_reset(&s->lab->host[0]);
    lab_run(s->lab);
    driver_free(s->pair->drv[0]);
    s->pair->drv[0] = driver_new(&s->lab->host[0]);
    lab_run(s->lab);
    expect_new(s, 0);
    subnet_free(s);
}

/* A static card has agents, too; but its port is Active by itself. */
static void test_static_agents(void)
{
    Subnet *s = new_pair(HCA_MANAGED_OFF, HCA_MANAGED_OFF);

    g_assert_cmphex(get_be16(subnet_get(s, 0x15, 1) + 16), ==,
                    s->lab->host[1].config.lid);
    g_assert_cmpuint(s->reply[64 + 32] & 0xf, ==, HCA_PORT_ACTIVE);
    expect_static(s, 1);
    subnet_set_state(s, 1, HCA_PORT_DOWN);
    lab_run(s->lab);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_ACTIVE);
    expect_static(s, 0);
    subnet_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mad/card/cable/passes-data", test_passes_data);
    test_add("/mad/card/cable/room-full", test_room_full);
    test_add("/mad/card/cable/answers", test_answers_lost);
    test_add("/mad/card/cable/none", test_no_cable);
    test_add("/mad/card/cable/replugged", test_replugged);
    for (unsigned i = 0; i < 9; i++) {
        static const char *const names[] = { "auto", "on", "off" };

        test_add_data(
            test_named("/mad/card/managed/%s-%s", names[i % 3], names[i / 3]),
            GUINT_TO_POINTER(i), test_managed);
    }
    test_add("/mad/card/managed/changes", test_auto);
    test_add("/mad/card/managed/same", test_auto_same);
    test_add("/mad/card/managed/reset", test_auto_reset);
    test_add("/mad/card/managed/static-agents", test_static_agents);
    return g_test_run();
}
