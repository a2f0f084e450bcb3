/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The states of ports: what cables, peers and a manager make of them, what may
 * pass in each, and who is told.
 */
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define PATH(...)                                                              \
    ((const uint8_t[]) { __VA_ARGS__ }), sizeof((uint8_t[]) { __VA_ARGS__ })
#define SELF NULL, 0
/* PortInfo, SwitchInfo */
#define LID 16
#define SM_LID 18
#define STATE 32
#define PHYS 33
#define SUBNET_TIMEOUT 51
#define SWITCH_STATE 11
#define STATE_CHANGE 4

static const Parcel parcel = { .slid = 1, .dlid = 2, .size = 100 };

static void expect_state(Station *s, unsigned port, HcaPortState state,
                         HcaPortPhysState phys)
{
    uint8_t info[HCA_SMP_DATA_SIZE];

    g_assert_cmphex(smp_get(s, SELF, HCA_ATTR_PORT_INFO, port, info), ==, 0);
    g_assert_cmpuint(info[STATE] & 0xf, ==, state);
    g_assert_cmpuint(info[PHYS] >> 4, ==, phys);
}

/* Set PortState and PortPhysicalState; all else stays. */
static uint16_t set_state(Station *s, unsigned port, unsigned state,
                          unsigned phys, uint8_t *answer)
{
    uint8_t info[HCA_SMP_DATA_SIZE];

    smp_get(s, SELF, HCA_ATTR_PORT_INFO, port, info);
    info[STATE] = (info[STATE] & 0xf0) | state;
    info[PHYS] = (info[PHYS] & 0x0f) | phys << 4;
    if (answer) {
        memcpy(answer, info, sizeof(info));
        return smp_set(s, SELF, HCA_ATTR_PORT_INFO, port, answer);
    }
    return smp_set(s, SELF, HCA_ATTR_PORT_INFO, port, info);
}

/* Whether it was set; it is cleared. */
static bool state_change(Station *s)
{
    uint8_t info[HCA_SMP_DATA_SIZE];
    bool was;

    smp_get(s, SELF, HCA_ATTR_SWITCH_INFO, 0, info);
    was = info[SWITCH_STATE] & STATE_CHANGE;
    info[SWITCH_STATE] |= STATE_CHANGE;
    g_assert_cmphex(smp_set(s, SELF, HCA_ATTR_SWITCH_INFO, 0, info), ==, 0);
    g_assert_cmphex(info[SWITCH_STATE] & STATE_CHANGE, ==, 0);
    return was;
}

/* A cable makes Init of Down, and no cable makes Down of everything. */
static void cable(void)
{
    Fabric *fabric = fabric_new();
    Station *a = fabric_station(fabric), *b = fabric_station(fabric);
    Box *box = fabric_switch(fabric, 4);

    fabric_join(a, box, 1);
    expect_state(a, 1, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    expect_state(a, 2, HCA_PORT_DOWN, HCA_PORT_PHYS_POLLING);
    g_assert_true(state_change(a)); /* since power-up */
    g_assert_false(state_change(a));
    fabric_join(b, box, 2);
    expect_state(a, 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    g_assert_true(state_change(a));
    for (unsigned state = HCA_PORT_INIT; state <= HCA_PORT_ACTIVE; state++) {
        box->node->port[2].info.state = state;
        fabric_pull(&b->end);
        expect_state(a, 2, HCA_PORT_DOWN, HCA_PORT_PHYS_POLLING);
        g_assert_true(state_change(a));
        fabric_join(b, box, 2);
        expect_state(a, 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
        g_assert_true(state_change(a));
    }
    g_assert_cmpuint(box->node->port[2].downs, ==, 3);
    fabric_free(fabric);
}

/* The same if the peer's port is disabled and enabled, also within one turn. */
static void peer(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);

    state_change(s[0]);
    hca_link_enable(s[1]->link, false);
    fabric_run(fabric);
    expect_state(s[0], 2, HCA_PORT_DOWN, HCA_PORT_PHYS_POLLING);
    hca_link_enable(s[1]->link, true);
    fabric_run(fabric);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    box_set_states(box, HCA_PORT_ACTIVE);
    state_change(s[0]);
    hca_link_enable(s[1]->link, false);
    hca_link_enable(s[1]->link, true);
    fabric_run(fabric);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    g_assert_true(state_change(s[0]));
    g_assert_cmpuint(box->node->port[2].downs, ==, 2);
    fabric_free(fabric);
}

/* What a peer sends behind its bounce comes in Init. */
static void packet_behind_bounce(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);

    station_send(s[0], &parcel);
    hca_link_enable(s[0]->link, false);
    hca_link_enable(s[0]->link, true);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    g_assert_cmpuint(station_count(s[1]), ==, 1);
    g_assert_cmpuint(box_reported(box, 1, "drop.in-state"), ==, 1);
    fabric_free(fabric);
}

/* Init to Armed to Active by a manager, and no other way. */
static void manager(void)
{
    Fabric *fabric = fabric_new();
    Station *a = fabric_station(fabric), *b = fabric_station(fabric);
    Box *box = fabric_switch(fabric, 4);

    fabric_join(a, box, 1);
    fabric_join(b, box, 2);
    g_assert_cmphex(set_state(a, 2, HCA_PORT_ACTIVE, 0, NULL), ==,
                    HCA_MAD_BAD_VALUE);
    expect_state(a, 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    g_assert_cmphex(set_state(a, 2, HCA_PORT_ARMED, 0, NULL), ==, 0);
    expect_state(a, 2, HCA_PORT_ARMED, HCA_PORT_PHYS_LINK_UP);
    g_assert_cmphex(set_state(a, 2, HCA_PORT_ACTIVE, 0, NULL), ==, 0);
    expect_state(a, 2, HCA_PORT_ACTIVE, HCA_PORT_PHYS_LINK_UP);
    g_assert_cmphex(set_state(a, 3, HCA_PORT_ARMED, 0, NULL), ==,
                    HCA_MAD_BAD_VALUE);
    expect_state(a, 3, HCA_PORT_DOWN, HCA_PORT_PHYS_POLLING);
    fabric_free(fabric);
}

/* Down: the link trains anew, and the answer already shows Init. */
static void bounce(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    uint8_t answer[HCA_SMP_DATA_SIZE];
    unsigned downs = hca_link_downs(s[1]->link);

    g_assert_cmphex(set_state(s[0], 2, HCA_PORT_DOWN, 0, answer), ==, 0);
    g_assert_cmpuint(answer[STATE] & 0xf, ==, HCA_PORT_INIT);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    /* The peer has seen it. */
    g_assert_cmpuint(hca_link_downs(s[1]->link), ==, downs + 1);
    g_assert_true(hca_link_is_up(s[1]->link));
    /* The same by PortPhysicalState Polling (ibportstate reset). */
    box_set_states(box, HCA_PORT_ACTIVE);
    g_assert_cmphex(set_state(s[0], 2, 0, HCA_PORT_PHYS_POLLING, NULL), ==, 0);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    /* And of the port that the manager itself is behind: it has its answer. */
    g_assert_cmphex(set_state(s[0], 1, HCA_PORT_DOWN, 0, answer), ==, 0);
    expect_state(s[0], 1, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    fabric_free(fabric);
}

/* Between two switches: the other end sees it, and both come back. */
static void bounce_between(void)
{
    Fabric *fabric = fabric_new();
    Station *s = fabric_station(fabric);
    Box *a = fabric_switch(fabric, 2), *b = fabric_switch(fabric, 2);
    uint8_t info[HCA_SMP_DATA_SIZE];

    fabric_join(s, a, 1);
    fabric_join_boxes(a, 2, b, 1);
    box_set_states(a, HCA_PORT_ACTIVE);
    box_set_states(b, HCA_PORT_ACTIVE);
    b->node->switch_info.port_state_change = false;
    g_assert_cmphex(set_state(s, 2, HCA_PORT_DOWN, 0, NULL), ==, 0);
    g_assert_cmpuint(b->node->port[1].info.state, ==, HCA_PORT_INIT);
    g_assert_cmpuint(b->node->port[1].downs, ==, 1);
    g_assert_true(b->node->switch_info.port_state_change);
    smp_get(s, PATH(2), HCA_ATTR_NODE_INFO, 0, info);
    fabric_free(fabric);
}

/* A card moves: the port stays as it is, and what comes for the card waits. */
static void move(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    GString *report = g_string_new(NULL);

    for (unsigned i = 0; i < 3; i++) {
        g_assert_true(hca_link_depart(s[1]->link));
        do {
            fabric_run(fabric);
        } while (!hca_link_drain(s[1]->link));
        fabric_pull(&s[1]->end);
        station_send(s[0], &parcel);
        fabric_run(fabric);
        hca_switch_report_port(box->sw, 2, report);
        g_assert_nonnull(strstr(report->str, "link=away"));
        g_assert_nonnull(strstr(report->str, "active"));
        g_string_truncate(report, 0);
        station_expect_nothing(s[1]);
        fabric_join(s[1], box, 2);
        fabric_run(fabric);
        station_expect(s[1], &parcel);
        g_assert_cmpuint(hca_link_downs(s[1]->link), ==, 0);
        g_assert_cmpuint(box->node->port[2].downs, ==, 0);
    }
    g_string_free(report, TRUE);
    fabric_free(fabric);
}

/* It does not come back; what waits for it grows old in time (IBA 18.2.5.4). */
static void move_without_end(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);

    box->node->port[2].info.hoq_life = 10; /* 4 ms */
    g_assert_true(hca_link_depart(s[1]->link));
    do {
        fabric_run(fabric);
    } while (!hca_link_drain(s[1]->link));
    fabric_pull(&s[1]->end);
    station_send(s[0], &parcel);
    fabric_advance(fabric, 9 * NS_PER_S);
    g_assert_cmpuint(box_reported(box, 2, "drop.hoq"), ==, 1);
    expect_state(s[0], 2, HCA_PORT_ACTIVE, HCA_PORT_PHYS_LINK_UP);
    fabric_advance(fabric, 2 * NS_PER_S);
    expect_state(s[0], 2, HCA_PORT_DOWN, HCA_PORT_PHYS_POLLING);
    fabric_join(s[1], box, 2);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    fabric_free(fabric);
}

/* Disabled: nothing makes it train but a manager. */
static void disabled(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];

    fabric_star(fabric, 3, s);
    g_assert_cmphex(set_state(s[0], 2, 0, HCA_PORT_PHYS_DISABLED, NULL), ==, 0);
    expect_state(s[0], 2, HCA_PORT_DOWN, HCA_PORT_PHYS_DISABLED);
    g_assert_false(hca_link_is_up(s[1]->link));
    g_assert_true(hca_link_is_greeted(s[1]->link));
    fabric_pull(&s[1]->end);
    fabric_join(s[1], g_ptr_array_index(fabric->boxes, 0), 2);
    expect_state(s[0], 2, HCA_PORT_DOWN, HCA_PORT_PHYS_DISABLED);
    g_assert_false(hca_link_is_up(s[1]->link));
    g_assert_cmphex(set_state(s[0], 2, 0, HCA_PORT_PHYS_POLLING, NULL), ==, 0);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    g_assert_true(hca_link_is_up(s[1]->link));
    fabric_free(fabric);
}

/* The port that the manager is behind: the answer leaves in front of it. */
static void disabled_below_oneself(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    uint8_t answer[HCA_SMP_DATA_SIZE];

    fabric_star(fabric, 2, s);
    g_assert_cmphex(set_state(s[0], 1, 0, HCA_PORT_PHYS_DISABLED, answer), ==,
                    0);
    g_assert_cmpuint(answer[STATE] & 0xf, ==, HCA_PORT_DOWN);
    g_assert_cmpuint(answer[PHYS] >> 4, ==, HCA_PORT_PHYS_DISABLED);
    g_assert_false(hca_link_is_up(s[0]->link));
    g_assert_true(hca_link_is_greeted(s[0]->link));
    expect_state(s[1], 1, HCA_PORT_DOWN, HCA_PORT_PHYS_DISABLED);
    g_assert_cmphex(set_state(s[1], 1, 0, HCA_PORT_PHYS_POLLING, NULL), ==, 0);
    expect_state(s[0], 1, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    fabric_free(fabric);
}

/* Which packets pass, by the states of both ports. */
static void passes(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Parcel mgmt = parcel;

    mgmt.vl = HCA_VL_MGMT;
    for (unsigned in = HCA_PORT_INIT; in <= HCA_PORT_ACTIVE; in++) {
        for (unsigned out = HCA_PORT_INIT; out <= HCA_PORT_ACTIVE; out++) {
            bool data = in != HCA_PORT_INIT && out == HCA_PORT_ACTIVE;

            box->node->port[1].info.state = in;
            box->node->port[2].info.state = out;
            station_send(s[0], &mgmt);
            fabric_run(fabric);
            station_expect(s[1], &mgmt);
            g_assert_cmpuint(box->node->port[1].info.state, ==, in);
            station_send(s[0], &parcel);
            fabric_run(fabric);
            g_assert_cmpuint(station_count(s[1]), ==, data);
            g_assert_cmpuint(box->node->port[1].info.state, ==,
                             in == HCA_PORT_INIT ? in : HCA_PORT_ACTIVE);
            g_assert_cmpuint(box->node->port[2].info.state, ==, out);
        }
    }
    g_assert_cmpuint(box_reported(box, 1, "drop.in-state"), ==, 3);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_DISCARDS), ==, 4);
    fabric_free(fabric);
}

/* A bad packet activates nothing. */
static void armed(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    GByteArray *packet = parcel_pack(&parcel);

    box->node->port[1].info.state = HCA_PORT_ARMED;
    packet->data[20] ^= 1;
    station_send_bytes(s[0], packet->data, packet->len);
    fabric_run(fabric);
    g_assert_cmpuint(box->node->port[1].info.state, ==, HCA_PORT_ARMED);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* What waits for a port that stops to be Active does not leave. */
static void leaves_active(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Parcel p = parcel;
    unsigned sent;

    p.size = 4096;
    s[1]->deaf = true;
    for (sent = 0; sent < 30; sent++) {
        station_send(s[0], &p);
        fabric_run(fabric);
    }
    g_assert_cmpuint(box_reported(box, 2, "queued"), >, 5);
    set_state(s[0], 2, HCA_PORT_ARMED, 0, NULL);
    s[1]->deaf = false;
    fabric_run(fabric);
    g_assert_cmpuint(
        station_count(s[1]) + box_reported(box, 2, "drop.link-lost"), ==, sent);
    g_assert_cmpuint(box_reported(box, 2, "drop.link-lost"), >, 5);
    fabric_free(fabric);
}

/* Traps */

/* A switch of LID 9 whose manager is station 0, of LID 1. */
static Box *managed(Fabric *fabric, Station **s)
{
    Box *box = fabric_star(fabric, 3, s);
    uint8_t info[HCA_SMP_DATA_SIZE];

    smp_get(s[0], SELF, HCA_ATTR_PORT_INFO, 0, info);
    put_be16(info + LID, 9);
    put_be16(info + SM_LID, 1);
    info[SUBNET_TIMEOUT] = 18;
    g_assert_cmphex(smp_set(s[0], SELF, HCA_ATTR_PORT_INFO, 0, info), ==, 0);
    fabric_advance(fabric, 10 * NS_PER_S);
    station_count(s[0]);
    return box;
}

static void expect_trap(Station *s, unsigned number, Mad *trap)
{
    g_assert_true(station_take_mad(s, trap));
    g_assert_cmphex(trap->bytes[HCA_MAD_METHOD], ==, HCA_METHOD_TRAP);
    g_assert_cmphex(trap->bytes[HCA_MAD_CLASS], ==, HCA_CLASS_SUBN_LID);
    g_assert_cmpuint(get_be16(trap->bytes + HCA_MAD_DATA + 4), ==, number);
    g_assert_cmpuint(trap->packet.vl, ==, HCA_VL_MGMT);
    g_assert_cmpuint(trap->packet.slid, ==, 9);
    g_assert_cmpuint(trap->packet.dlid, ==, 1);
    g_assert_cmpuint(trap->packet.dest_qp, ==, 0);
}

static void repress(Station *s, const Mad *trap)
{
    Mad mad = *trap;

    mad.bytes[HCA_MAD_METHOD] = HCA_METHOD_TRAP_REPRESS;
    station_send_smp(s, &mad, 1, 9);
    fabric_run(s->fabric);
}

/* Trap 128, again until it is repressed. */
static void trap_128(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = managed(fabric, s);
    Mad first, again;

    fabric_pull(&s[2]->end);
    fabric_run(fabric);
    expect_trap(s[0], HCA_TRAP_LINK_STATE, &first);
    g_assert_cmpuint(get_be16(first.bytes + HCA_MAD_DATA + 10), ==, 9);
    station_expect_nothing(s[0]);
    fabric_advance(fabric, 1000 * NS_PER_MS);
    station_expect_nothing(s[0]);
    fabric_advance(fabric, 100 * NS_PER_MS); /* 4.096 us * 2^18 */
    expect_trap(s[0], HCA_TRAP_LINK_STATE, &again);
    g_assert_cmpmem(again.bytes, HCA_MAD_SIZE, first.bytes, HCA_MAD_SIZE);
    repress(s[0], &again);
    fabric_advance(fabric, 60 * NS_PER_S);
    station_expect_nothing(s[0]);
    g_assert_cmpuint(box_reported(box, 0, "agent.traps-repressed"), ==, 1);
    /* The next change is news. */
    fabric_join(s[2], box, 3);
    fabric_run(fabric);
    expect_trap(s[0], HCA_TRAP_LINK_STATE, &again);
    fabric_free(fabric);
}

/* Nobody answers: it ends. */
static void trap_ends(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];

    managed(fabric, s);
    fabric_pull(&s[2]->end);
    fabric_advance(fabric, 3600 * NS_PER_S);
    g_assert_cmpuint(station_count(s[0]), <=, 10);
    fabric_advance(fabric, 3600 * NS_PER_S);
    station_expect_nothing(s[0]);
    fabric_free(fabric);
}

/* There is no way to the manager: its cable is what went. It hears of it later. */
static void trap_finds_no_way(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = managed(fabric, s);
    Mad trap;

    fabric_pull(&s[0]->end);
    fabric_advance(fabric, NS_PER_MS);
    fabric_join(s[0], box, 1);
    fabric_advance(fabric, 3 * NS_PER_S);
    expect_trap(s[0], HCA_TRAP_LINK_STATE, &trap);
    fabric_free(fabric);
}

/* Before there are LIDs nothing is sent. */
static void no_lid_no_trap(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];

    fabric_star(fabric, 3, s);
    fabric_pull(&s[2]->end);
    fabric_advance(fabric, 10 * NS_PER_S);
    station_expect_nothing(s[0]);
    station_expect_nothing(s[1]);
    fabric_free(fabric);
}

/* Another version, another greeting: the cable goes, and the next may come. */
static void bad_greeting(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    const uint8_t rubbish[] = "GET / HTTP/1.1\r\n\r\n";

    station_inject(s[1], rubbish, sizeof(rubbish));
    fabric_run(fabric);
    g_assert_null(s[1]->end.peer);
    expect_state(s[0], 2, HCA_PORT_DOWN, HCA_PORT_PHYS_POLLING);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_RCV_ERRORS), ==, 1);
    fabric_join(s[1], box, 2);
    expect_state(s[0], 2, HCA_PORT_INIT, HCA_PORT_PHYS_LINK_UP);
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/states/cable", cable);
    test_add("/switch/states/peer", peer);
    test_add("/switch/states/packet-behind-bounce", packet_behind_bounce);
    test_add("/switch/states/manager", manager);
    test_add("/switch/states/bounce", bounce);
    test_add("/switch/states/bounce-between", bounce_between);
    test_add("/switch/states/move", move);
    test_add("/switch/states/move-without-end", move_without_end);
    test_add("/switch/states/disabled", disabled);
    test_add("/switch/states/disabled-below-oneself", disabled_below_oneself);
    test_add("/switch/states/passes", passes);
    test_add("/switch/states/armed", armed);
    test_add("/switch/states/leaves-active", leaves_active);
    test_add("/switch/states/trap-128", trap_128);
    test_add("/switch/states/trap-ends", trap_ends);
    test_add("/switch/states/trap-finds-no-way", trap_finds_no_way);
    test_add("/switch/states/no-lid-no-trap", no_lid_no_trap);
    test_add("/switch/states/bad-greeting", bad_greeting);
    return g_test_run();
}
