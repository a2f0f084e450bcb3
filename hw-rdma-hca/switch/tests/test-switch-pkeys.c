/* SPDX-License-Identifier: GPL-2.0-or-later */
/* P_Key enforcement: which packets pass, what is counted, who is told. */
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define FULL 0x8123
#define LIMITED 0x0123

static const Parcel parcel = {
    .slid = 1,
    .dlid = 2,
    .sl = 3,
    .dest_qp = 0x123,
    .src_qp = 0x456,
    .size = 100,
};

/* Which keys of packets may enter and leave by a port with which in its table:
 * that of the end node which is there. */
typedef struct Match {
    uint16_t table, packet;
    bool enters, leaves;
} Match;

static const Match matches[] = {
    { FULL, FULL, true, true },        { FULL, LIMITED, true, true },
    { LIMITED, FULL, false, true },    { LIMITED, LIMITED, true, false },
    { FULL, 0x8124, false, false },    { 0xffff, FULL, false, false },
    { 0x8000, 0x8000, false, false },  { 0x0000, 0x8000, false, false },
    { 0x8000, LIMITED, false, false },
};

/* @in: where it enters; else where it leaves. */
static void enforce(bool in)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    HcaNodePort *port = &box->node->port[in ? 1 : 2];
    unsigned dropped = 0;
    Parcel p = parcel;

    port->pkeys[0] = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(matches); i++) {
        const Match *m = &matches[i];
        bool passes = in ? m->enters : m->leaves;

        for (unsigned slot = 0; slot < HCA_NODE_PKEYS; slot += 31) {
            port->pkeys[slot] = m->table;
            p.pkey = m->packet;
            port->info.enforce_in = port->info.enforce_out = false;
            station_send(s[0], &p);
            fabric_run(fabric);
            station_expect(s[1], &p);
            port->info.enforce_in = in;
            port->info.enforce_out = !in;
            station_send(s[0], &p);
            fabric_run(fabric);
            g_assert_cmpuint(station_count(s[1]), ==, passes);
            dropped += !passes;
            port->pkeys[slot] = 0;
        }
    }
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_CONSTRAINT), ==,
                     in ? dropped : 0);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_CONSTRAINT), ==,
                     in ? 0 : dropped);
    fabric_free(fabric);
}

static void inbound(void)
{
    enforce(true);
}

static void outbound(void)
{
    enforce(false);
}

/* What comes in is not what goes out: each port has its direction. */
static void other_direction(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Parcel back = parcel;

    back.slid = 2;
    back.dlid = 1;
    back.pkey = FULL;
    box->node->port[1].info.enforce_in = true;
    box->node->port[2].info.enforce_out = true;
    station_send(s[1], &back);
    fabric_run(fabric);
    station_expect(s[0], &back);
    fabric_free(fabric);
}

/* Two limited members do not talk, be the way to the second one clear or not:
 * the first is heard by the full one alone. */
static void limited_member(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    const uint16_t key[] = { LIMITED, LIMITED, FULL };
    Parcel p = parcel;

    for (unsigned i = 0; i < G_N_ELEMENTS(key); i++) {
        box->node->port[i + 1].info.enforce_in = true;
        box->node->port[i + 1].info.enforce_out = true;
        box->node->port[i + 1].pkeys[0] = key[i];
    }
    p.pkey = LIMITED;
    p.dlid = 3;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect(s[2], &p);
    p.dlid = 2;
    station_send(s[0], &p);
    p.pkey = FULL;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_CONSTRAINT), ==, 1);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_CONSTRAINT), ==, 1);
    fabric_free(fabric);
}

/* VL 15 is never checked. */
static void management(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    uint8_t info[HCA_SMP_DATA_SIZE];
    Parcel p = parcel;

    for (unsigned i = 1; i <= 2; i++) {
        box->node->port[i].info.enforce_in = true;
        box->node->port[i].info.enforce_out = true;
        box->node->port[i].pkeys[0] = 0;
    }
    p.vl = HCA_VL_MGMT;
    p.pkey = FULL;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect(s[1], &p);
    smp_get(s[0], NULL, 0, HCA_ATTR_NODE_INFO, 0, info);
    fabric_free(fabric);
}

/* Groups: each port that it leaves by. */
static void multicast(void)
{
    Fabric *fabric = fabric_new();
    Station *s[4];
    Box *box = fabric_star(fabric, 4, s);
    Parcel p = parcel;

    box->node->mft[1] = 0x1e;
    box->node->port[2].info.enforce_out = true;
    box->node->port[3].info.enforce_out = true;
    box->node->port[3].pkeys[1] = FULL;
    p.dlid = 0xc001;
    p.pkey = LIMITED;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    station_expect(s[2], &p);
    station_expect(s[3], &p);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_CONSTRAINT), ==, 1);
    fabric_free(fabric);
}

/* Answers of the switch itself, too. */
static void own_answers(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Mad mad;

    box->node->port[0].info.lid = 9;
    box->node->port[1].info.enforce_out = true;
    box->node->port[1].pkeys[0] = FULL;
    smp_init(&mad, s[0], HCA_METHOD_GET, HCA_ATTR_CLASS_PORT_INFO, 0, NULL, 0);
    mad.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
    station_send_gmp(s[0], &mad, 1, 9);
    fabric_run(fabric);
    station_expect_nothing(s[0]);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_XMIT_CONSTRAINT), ==, 1);
    fabric_free(fabric);
}

/* Trap 259, with what the packet says of itself. */
static void trap(gconstpointer with_grh)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    const uint8_t *notice;
    Parcel p = parcel;
    Mad got;

    box->node->port[0].info.lid = 9;
    box->node->port[0].info.sm_lid = 3;
    box->node->port[1].info.enforce_in = true;
    box->node->switch_info.life_time = 31;
    p.pkey = FULL;
    p.grh = with_grh;
    station_send(s[0], &p);
    fabric_run(fabric);
    fabric_advance(fabric, NS_PER_MS);
    g_assert_true(station_take_mad(s[2], &got));
    notice = got.bytes + HCA_MAD_DATA;
    g_assert_cmpuint(get_be16(notice + 4), ==, HCA_TRAP_SWITCH_BAD_PKEY);
    g_assert_cmpuint(get_be16(notice + 12), ==, 1);
    g_assert_cmpuint(get_be16(notice + 14), ==, 2);
    g_assert_cmphex(get_be16(notice + 16), ==, FULL);
    g_assert_cmphex(get_be32(notice + 18), ==, 0x30000456);
    g_assert_cmphex(get_be32(notice + 22) & 0xffffff, ==, 0x123);
    g_assert_cmphex(notice[26], ==, p.grh ? 0x51 : 0);
    g_assert_cmphex(notice[42], ==, p.grh ? 0xd1 : 0);
    g_assert_cmpuint(get_be16(notice + 58), ==, 9);
    g_assert_cmpuint(notice[60], ==, 1);
    fabric_free(fabric);
}

/* A flood of bad keys is a bounded number of traps. */
static void flood(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel;

    box->node->port[0].info.lid = 9;
    box->node->port[0].info.sm_lid = 3;
    box->node->port[1].info.enforce_in = true;
    for (unsigned i = 0; i < 10000; i++) {
        p.pkey = 0x8000 | (1 + i % 0x7ffe);
        while (!hca_link_can_send(s[0]->link, false)) {
            fabric_run(fabric);
        }
        station_send(s[0], &p);
    }
    fabric_run(fabric);
    fabric_advance(fabric, 3600 * NS_PER_S);
    g_assert_cmpuint(station_count(s[2]), <=, 10 * HCA_NODE_TRAPS);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_CONSTRAINT), ==, 10000);
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/pkeys/inbound", inbound);
    test_add("/switch/pkeys/outbound", outbound);
    test_add("/switch/pkeys/other-direction", other_direction);
    test_add("/switch/pkeys/limited-member", limited_member);
    test_add("/switch/pkeys/management", management);
    test_add("/switch/pkeys/multicast", multicast);
    test_add("/switch/pkeys/own-answers", own_answers);
    test_add_data("/switch/pkeys/trap/local", NULL, trap);
    test_add_data("/switch/pkeys/trap/global", "grh", trap);
    test_add("/switch/pkeys/flood", flood);
    return g_test_run();
}
