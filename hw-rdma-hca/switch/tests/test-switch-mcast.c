/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multicast: the table, the default ports, copies for ports that are slow. */
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#define N 5

static const Parcel parcel = {
    .slid = 1,
    .dlid = 0xc001,
    .dest_qp = HCA_QPN_MULTICAST,
    .src_qp = 0x456,
    .qkey = 0xb1b,
    .size = 64,
    .grh = true,
};

/* A packet of station @from has arrived at those in @to (bits, from 1 on). */
static void expect(Fabric *fabric, Station **s, unsigned from, const Parcel *p,
                   unsigned to)
{
    station_send(s[from - 1], p);
    fabric_run(fabric);
    for (unsigned i = 1; i <= N; i++) {
        if (to >> i & 1) {
            station_expect(s[i - 1], p);
        }
        station_expect_nothing(s[i - 1]);
    }
}

/* Each port of the group has one copy, but not where it came from. */
static void by_table(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);
    Parcel p = parcel;

    for (unsigned group = 0; group < 64; group++) {
        box->node->mft[group] = group;
    }
    for (unsigned group = 2; group < 64; group += 2) {
        p.dlid = HCA_LID_FIRST_MULTICAST + group;
        expect(fabric, s, 1, &p, group & ~2u);
        expect(fabric, s, 2, &p, group & ~4u);
    }
    /* Ports that there are not. */
    box->node->mft[1] = UINT64_MAX;
    p.dlid = HCA_LID_FIRST_MULTICAST + 1;
    expect(fabric, s, 3, &p, 0x3f & ~8u & ~1u);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_MULTICAST_RCV), ==, 31);
    g_assert_cmpuint(box_counter(box, 3, HCA_PMA_RCV_RELAY_ERRORS), ==, 0);
    fabric_free(fabric);
}

/* The sender's port alone has the bit: that is no loop. */
static void sender_alone(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);

    box->node->mft[1] = 1u << 1;
    expect(fabric, s, 1, &parcel, 0);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_RELAY_ERRORS), ==, 0);
    fabric_free(fabric);
}

/* Port 0 is the switch, which nobody speaks to by groups. */
static void port_0(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);

    box->node->mft[1] = 1u << 0 | 1u << 2;
    expect(fabric, s, 1, &parcel, 1u << 2);
    g_assert_cmpuint(box_counter(box, 0, HCA_PMA_MULTICAST_RCV), ==, 1);
    g_assert_cmpuint(box_reported(box, 1, "drop.agent"), ==, 1);
    fabric_free(fabric);
}

/* What no group takes goes by the default ports, if there are any. */
static void default_ports(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);
    HcaSwitchInfo *info = &box->node->switch_info;
    const uint16_t lids[] = { 0xc001, 0xc3ff, 0xc400, 0xfffe };
    unsigned lost = 0;
    Parcel p = parcel;

    for (unsigned i = 0; i < G_N_ELEMENTS(lids); i++) {
        p.dlid = lids[i];
        info->default_mcast_primary = 0;
        info->default_mcast_secondary = 0;
        expect(fabric, s, 1, &p, 0);
        g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_RELAY_ERRORS), ==,
                         ++lost);
        info->default_mcast_primary = 0xff;
        expect(fabric, s, 1, &p, 0);
        lost++;
        info->default_mcast_primary = 4;
        info->default_mcast_secondary = 5;
        expect(fabric, s, 1, &p, 1u << 4);
        expect(fabric, s, 5, &p, 1u << 4);
        expect(fabric, s, 4, &p, 1u << 5);
        info->default_mcast_secondary = 0;
        expect(fabric, s, 4, &p, 0);
    }
    fabric_free(fabric);
}

/* What is above the top of the table is as what no group takes. */
static void top(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);
    HcaSwitchInfo *info = &box->node->switch_info;
    Parcel p = parcel;

    box->node->mft[0] = box->node->mft[1] = 1u << 2;
    info->default_mcast_primary = 3;
    info->mft_top = 0xc000;
    expect(fabric, s, 1, &p, 1u << 3);
    p.dlid = 0xc000;
    expect(fabric, s, 1, &p, 1u << 2);
    info->mft_top = 0xbfff; /* no group at all */
    expect(fabric, s, 1, &p, 1u << 3);
    info->mft_top = 0; /* not used */
    expect(fabric, s, 1, &p, 1u << 2);
    fabric_free(fabric);
}

/* An SMP to a group goes nowhere. */
static void management(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);
    Parcel p = parcel;

    box->node->mft[1] = 0x3f;
    box->node->switch_info.default_mcast_primary = 3;
    p.vl = HCA_VL_MGMT;
    expect(fabric, s, 1, &p, 0);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_RELAY_ERRORS), ==, 1);
    fabric_free(fabric);
}

/* Each port judges for itself: state, MTU. */
static void each_port(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);
    Parcel p = parcel;

    box->node->mft[1] = 0x3e;
    box->node->port[2].info.state = HCA_PORT_ARMED;
    box->node->port[3].info.mtu = 1;
    p.size = 512;
    expect(fabric, s, 1, &p, 1u << 4 | 1u << 5);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_DISCARDS), ==, 1);
    g_assert_cmpuint(box_counter(box, 3, HCA_PMA_XMIT_DISCARDS), ==, 1);
    fabric_free(fabric);
}

/* One member does not read: all have every packet once, in the end. */
static void slow_member(void)
{
    Fabric *fabric = fabric_new();
    Station *s[N];
    Box *box = fabric_star(fabric, N, s);
    Parcel p = parcel;
    unsigned sent = 0;

    box->node->mft[1] = 0x3e;
    box->node->port[3].info.hoq_life = 31;
    s[2]->deaf = true;
    p.size = 2048;
    while (hca_link_can_send(s[0]->link, false)) {
        p.mark = sent++;
        station_send(s[0], &p);
        fabric_run(fabric);
    }
    g_assert_false(hca_switch_wants_read(box->sw, 1));
    s[2]->deaf = false;
    fabric_run(fabric);
    for (unsigned i = 2; i <= N; i++) {
        for (unsigned n = 0; n < sent; n++) {
            p.mark = n;
            station_expect(s[i - 1], &p);
        }
        station_expect_nothing(s[i - 1]);
    }
    fabric_free(fabric);
}

/* All ports of the largest switch. */
static void all_ports(void)
{
    unsigned n = HCA_SWITCH_MAX_PORTS;
    Fabric *fabric = fabric_new();
    Station *s[HCA_SWITCH_MAX_PORTS];
    Box *box = fabric_star(fabric, n, s);

    box->node->mft[1] = UINT64_MAX;
    station_send(s[0], &parcel);
    fabric_run(fabric);
    station_expect_nothing(s[0]);
    for (unsigned i = 1; i < n; i++) {
        station_expect(s[i], &parcel);
    }
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/mcast/table", by_table);
    test_add("/switch/mcast/sender-alone", sender_alone);
    test_add("/switch/mcast/port-0", port_0);
    test_add("/switch/mcast/default-ports", default_ports);
    test_add("/switch/mcast/top", top);
    test_add("/switch/mcast/management", management);
    test_add("/switch/mcast/each-port", each_port);
    test_add("/switch/mcast/slow-member", slow_member);
    test_add("/switch/mcast/all-ports", all_ports);
    return g_test_run();
}
