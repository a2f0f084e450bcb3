/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every counter of the management agents, and of what the port and others count
 * for them, moves when what it counts happens.
 */
#include <string.h>

#include "lib-counter-events.h"
#include "lib-subnet.h"

#define GET HCA_METHOD_GET
#define SET HCA_METHOD_SET
#define LID_ROUTED HCA_CLASS_SUBN_LID
#define DIRECTED HCA_CLASS_SUBN_DIRECTED
#define NODE_INFO 0x11
#define PORT_COUNTERS 0x12

static void counted(const Subnet *s, unsigned side, const char *name,
                    uint64_t n)
{
    card_counted(subnet_card(s, side), side ? "side 1" : "side 0", name, n);
}

static uint64_t count(const Subnet *s, unsigned side, const char *name)
{
    return pair_counter(s->pair, side, name);
}

static void look_and_free(Subnet *s)
{
    events_look_lab(s->lab);
    subnet_free(s);
}

static void test_agents(void)
{
    Subnet *s = subnet_new(9501);
    HcaPacket packet = subnet_packet(s, SUBNET_SMI);

    subnet_smp(s, LID_ROUTED, GET, NODE_INFO, 0);
    subnet_mad_ifc(s, 0, 0);
    counted(s, 0, "mgmt_smps", 1);
    subnet_smp(s, HCA_CLASS_PERF, GET, PORT_COUNTERS, 0)[1] = 1;
    subnet_mad_ifc(s, 0, 0);
    counted(s, 0, "mgmt_gmps", 1);
    counted(s, 0, "mgmt_refused", 0);
    subnet_smp(s, LID_ROUTED, SET, NODE_INFO, 0);
    subnet_mad_ifc(s, 0, 0);
    counted(s, 0, "mgmt_refused", 1);
    counted(s, 0, "mgmt_smps", 2);
    subnet_smp(s, LID_ROUTED, HCA_METHOD_GET_RESP, NODE_INFO, 0);
    subnet_mad_ifc(s, 0, 0);
    counted(s, 0, "ceu_status_bad_pkt", 1);
    counted(s, 0, "mgmt_smps", 2);
    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    s->mad[7] = 64;
    subnet_inject(s, 0, &packet, s->mad);
    counted(s, 1, "mgmt_route_errors", 1);
    counted(s, 1, "mgmt_smps", 0);
    look_and_free(s);
}

static void test_mkey(void)
{
    Subnet *s = subnet_new(9502);
    uint8_t info[64];

    subnet_port_info(s, 0, info);
    put_be64(info, 5);
    subnet_set_port_info(s, 0, info);
    subnet_smp(s, LID_ROUTED, SET, 0x31, 0);
    subnet_mad_ifc(s, 0, 0);
    counted(s, 0, "mgmt_mkey_violations", 1);
    counted(s, 0, "mgmt_refused", 0);
    look_and_free(s);
}

/* A datagram whose Q_Key is wrong, each time in another way. */
static void violate(Subnet *s, uint32_t qkey)
{
    HcaPacket packet = subnet_packet(s, SUBNET_GSI);

    packet.qkey = qkey;
    subnet_smp(s, HCA_CLASS_PERF, GET, PORT_COUNTERS, 0);
    subnet_inject(s, 0, &packet, s->mad);
}

static void test_traps(void)
{
    Subnet *s = subnet_new(9503);
    UdAddress to = subnet_to_smi(SUBNET_LID(1));
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    subnet_bring_up(s);
    violate(s, 1);
    counted(s, 1, "mgmt_traps", 1);
    counted(s, 1, "mgmt_traps_waiting", 1);
    events_look_lab(s->lab);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, mad));
    mad[3] = HCA_METHOD_TRAP_REPRESS;
    subnet_send(s, 0, SUBNET_SMI, &to, mad);
    lab_run(s->lab);
    counted(s, 1, "mgmt_traps_repressed", 1);
    counted(s, 1, "mgmt_traps_waiting", 0);
    for (unsigned i = 0; i < HCA_NODE_TRAPS / 2 + 1; i++) {
        violate(s, 2 + i);
    }
    counted(s, 1, "mgmt_traps_lost", 1);
    counted(s, 1, "mgmt_traps_waiting", HCA_NODE_TRAPS / 2);
    look_and_free(s);
}

/* A packet that is not as those of QP 0 are; and before the port is Active. */
static void test_port(void)
{
    Subnet *s = subnet_new(9504);
    HcaPacket packet = subnet_packet(s, SUBNET_SMI);

    subnet_set_lid(s, 0, SUBNET_LID(0), 0);
    g_assert_false(subnet_passes(s, 0, SUBNET_LID(1)));
    counted(s, 0, "port_tx_inactive", 1);
    counted(s, 0, "port_tx_unreachable", 0);
    packet.payload_len = 100;
    subnet_inject(s, 0, &packet, s->mad);
    counted(s, 1, "port_drop_mgmt", 1);
    look_and_free(s);
}

/* More than software has receives for. */
static void test_no_receive(void)
{
    Subnet *s = subnet_new(9505);
    UdAddress smi = subnet_to_smi(0xffff);
    UdAddress gsi = subnet_to_gsi(SUBNET_LID(1));

    subnet_bring_up(s);
    for (unsigned which = 0; which < 2; which++) {
        if (!s->port[0][which].qp) {
            subnet_take(s, 0, which);
        }
        subnet_take(s, 1, which);
        for (unsigned i = 0; i < SUBNET_RECVS + 1; i++) {
            subnet_smp(s, which ? HCA_CLASS_PERF : DIRECTED, GET, NODE_INFO, 0);
            subnet_send(s, 0, which, which ? &gsi : &smi, s->mad);
        }
    }
    lab_run(s->lab);
    counted(s, 1, "port_vl15_dropped", 1);
    counted(s, 1, "port_qp1_dropped", 1);
    counted(s, 1, "port_drop_no_wqe", 2);
    look_and_free(s);
}

/* A cable that takes nothing for a while. */
static void test_full(void)
{
    Subnet *s = subnet_new(9506);
    UdAddress to = subnet_to_smi(0xffff);
    size_t capacity;
    unsigned sent = 0;
    int64_t began;

    subnet_bring_up(s);
    capacity = s->lab->capacity;
    s->lab->capacity = 0;
    began = s->lab->now;
    for (; !count(s, 0, "port_tx_mgmt_full"); sent++) {
        g_assert_cmpuint(sent, <, 2000);
        subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
        subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    }
    s->lab->now += NS_PER_MS;
    s->lab->capacity = capacity;
    s->lab->host[0].kicked = true;
    lab_run(s->lab);
    counted(s, 0, "port_tx_mgmt_full", 1);
    g_assert_cmpuint(count(s, 0, "link_tx_wait_ns"), >=, NS_PER_MS);
    g_assert_cmpuint(count(s, 0, "link_tx_wait_ns"), <=, s->lab->now - began);
    look_and_free(s);
}

static void test_multicast(void)
{
    static const uint8_t mgid[16] = { 0xff, 0x12, [15] = 1 };
    Subnet *s = subnet_new(9507);
    UdAddress to = { .dlid = 0xc001, .grh = true, .dqpn = 0xffffff };

    subnet_bring_up(s);
    memcpy(to.dgid, mgid, sizeof(mgid));
    subnet_send_data(s, subnet_ud(s, 0), &to);
    counted(s, 0, "port_tx_multicast", 1);
    counted(s, 1, "port_rx_multicast_all", 1);
    counted(s, 1, "port_rx_multicast", 0); /* to no group of its own */
    look_and_free(s);
}

static void test_event(void)
{
    Subnet *s = subnet_new(9508);

    subnet_set_lid(s, 0, SUBNET_LID(0), 0);
    lab_run(s->lab);
    counted(s, 0, "cxtmgt_event_port_mng", 1);
    look_and_free(s);
}

static const EventsTest tests[] = {
    { "mgmt/agents", test_agents },
    { "mgmt/mkey", test_mkey },
    { "mgmt/traps", test_traps },
    { "port/management", test_port },
    { "port/no-receive", test_no_receive },
    { "port/multicast", test_multicast },
    { "link/full", test_full },
    { "cxtmgt/port-mng", test_event },
};

static const EventsProgram program = {
    .subject = EVENTS_MANAGEMENT,
    .tests = tests,
    .n = G_N_ELEMENTS(tests),
};

int main(int argc, char **argv)
{
    return events_main(argc, argv, &program);
}
