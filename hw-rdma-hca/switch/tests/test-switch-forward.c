/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unicast: which port a packet leaves by, what does not pass, and that nothing
 * is lost on the way for want of room.
 */
#include "core/link/framing.h"
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define DROPPED(port, name, n)                                                 \
    g_assert_cmpuint(box_reported(box, port, "drop." name), ==, n)

static const Parcel parcel = {
    .slid = 1,
    .dlid = 2,
    .dest_qp = 0x123,
    .src_qp = 0x456,
    .qkey = 0x789,
    .size = 100,
    .mark = 77,
};

/* By the table, as it was. */
static void by_table(void)
{
    Fabric *fabric = fabric_new();
    Station *s[4];
    Parcel p = parcel;

    fabric_star(fabric, 4, s);
    for (unsigned to = 2; to <= 4; to++) {
        for (unsigned grh = 0; grh < 2; grh++) {
            p.dlid = to;
            p.grh = grh;
            station_send(s[0], &p);
            fabric_run(fabric);
            station_expect(s[to - 1], &p);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        station_expect_nothing(s[i]);
    }
    fabric_free(fabric);
}

/* The table may change at any time, and leads where it does now. */
static void table_changes(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);

    box->node->lft[2] = 3;
    station_send(s[0], &parcel);
    fabric_run(fabric);
    station_expect(s[2], &parcel);
    box->node->lft[2] = 2;
    station_send(s[0], &parcel);
    fabric_run(fabric);
    station_expect(s[1], &parcel);
    fabric_free(fabric);
}

static void drop_one(Fabric *fabric, Station **s, const Parcel *p)
{
    station_send(s[0], p);
    fabric_run(fabric);
    for (unsigned i = 0; i < 3; i++) {
        station_expect_nothing(s[i]);
    }
}

/* LIDs that lead nowhere (PortRcvSwitchRelayErrors). */
static void no_route(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel;
    const uint16_t lids[] = { 0, 4, 5, 6, 0xbfff };

    box->node->lft[4] = HCA_LFT_NO_PORT;
    box->node->lft[5] = 4;      /* no such port */
    box->node->lft[6] = 0;      /* not port 0's LID */
    box->node->lft[0xbfff] = 2; /* above the top */
    box->node->switch_info.lft_top = 6;
    for (unsigned i = 0; i < G_N_ELEMENTS(lids); i++) {
        p.dlid = lids[i];
        drop_one(fabric, s, &p);
        DROPPED(1, "no-route", i + 1);
    }
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_RELAY_ERRORS), ==, 5);
    box->node->switch_info.lft_top = 0xbfff;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect(s[1], &p);
    fabric_free(fabric);
}

/* Nothing goes back where it came from; nothing but SMPs is permissive. */
static void loop(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel;

    p.dlid = 1;
    drop_one(fabric, s, &p);
    DROPPED(1, "same-port", 1);
    p.dlid = HCA_LID_PERMISSIVE;
    drop_one(fabric, s, &p);
    DROPPED(1, "no-route", 1);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_RELAY_ERRORS), ==, 2);
    fabric_free(fabric);
}

/* A packet on VL 15 goes by the table like any other, and before Armed. */
static void management(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel;

    p.vl = HCA_VL_MGMT;
    p.size = HCA_MAD_SIZE;
    for (unsigned state = HCA_PORT_INIT; state <= HCA_PORT_ACTIVE; state++) {
        box_set_states(box, state);
        station_send(s[0], &p);
        fabric_run(fabric);
        station_expect(s[1], &p);
    }
    p.size = 1024; /* longer than any MAD */
    drop_one(fabric, s, &p);
    DROPPED(1, "malformed", 1);
    fabric_free(fabric);
}

/* NeighborMTU of the port that it leaves by, whatever the headers. */
static void mtu(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel;

    for (unsigned code = 1; code <= 5; code++) {
        box->node->port[2].info.mtu = code;
        p.size = 128 << code;
        station_send(s[0], &p);
        fabric_run(fabric);
        station_expect(s[1], &p);
        if (code < 5) {
            p.size *= 2;
            drop_one(fabric, s, &p);
            DROPPED(2, "mtu", code);
        }
    }
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_DISCARDS), ==, 4);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_PKTS), ==, 9);
    fabric_free(fabric);
}

/* What a link cannot carry. */
static void malformed(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    GByteArray *packet = parcel_pack(&parcel);
    unsigned bad = 0;

    for (size_t len = 1; len < packet->len; len++) {
        station_send_bytes(s[0], packet->data, len);
        bad++;
    }
    packet->data[0] |= 1; /* LVer */
    packet_seal(packet, true);
    station_send_bytes(s[0], packet->data, packet->len);
    packet->data[0] = 0x80; /* VL 8 of 8 */
    packet_seal(packet, true);
    station_send_bytes(s[0], packet->data, packet->len);
    packet->data[0] = 0;
    packet->data[5]++; /* PktLen */
    packet_seal(packet, true);
    station_send_bytes(s[0], packet->data, packet->len);
    fabric_run(fabric);
    for (unsigned i = 0; i < 3; i++) {
        station_expect_nothing(s[i]);
    }
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_ERRORS), ==, bad + 3);
    /* Without IBA transport: a constraint, as SwitchInfo says. */
    packet->data[5]--;
    packet->data[1] &= 0xfc;
    packet_seal(packet, true);
    station_send_bytes(s[0], packet->data, packet->len);
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_CONSTRAINT), ==, 1);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* VCRC is the link's; ICRC is the ends', and passes as it is. */
static void crcs(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    GByteArray *packet = parcel_pack(&parcel);
    GByteArray *got;

    packet->data[packet->len - 7] ^= 1; /* of ICRC */
    station_send_bytes(s[0], packet->data, packet->len);
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    DROPPED(1, "vcrc", 1);
    packet_seal(packet, false);
    station_send_bytes(s[0], packet->data, packet->len);
    fabric_run(fabric);
    got = station_take(s[1]);
    g_assert_cmpmem(got->data, got->len, packet->data, packet->len);
    g_byte_array_unref(got);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* A frame that is marked in error: the sender's fault. */
static void marked(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    GByteArray *packet = parcel_pack(&parcel);
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, packet->len);
    header[0] |= HCA_FRAME_ERROR;
    station_inject(s[0], header, sizeof(header));
    station_inject(s[0], packet->data, packet->len);
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_REMOTE_ERRORS), ==, 1);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_ERRORS), ==, 0);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    station_expect(s[1], &parcel);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* A frame says another lane than its packet does. */
static void other_lane(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    GByteArray *packet = parcel_pack(&parcel);
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    for (unsigned vl = 1; vl < 16; vl++) {
        hca_frame_write_header(header, HCA_FRAME_PACKET, vl, packet->len);
        station_inject(s[0], header, sizeof(header));
        station_inject(s[0], packet->data, packet->len);
    }
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_ERRORS), ==, 15);
    DROPPED(1, "malformed", 15);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    station_expect(s[1], &parcel);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* Send @n packets, as fast as the cable takes them. */
static void send_many(Fabric *fabric, Station *from, Parcel *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        p->mark = i;
        while (!hca_link_can_send(from->link, false)) {
            fabric_run(fabric);
        }
        station_send(from, p);
    }
    fabric_run(fabric);
}

static void expect_many(Station *to, Parcel *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        p->mark = i;
        station_expect(to, p);
    }
    station_expect_nothing(to);
}

/* All that is sent arrives, in order. */
static void many(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Parcel p = parcel;

    fabric_star(fabric, 3, s);
    for (unsigned size = 0; size <= 4096; size += 1000) {
        p.size = MAX(size, 4);
        send_many(fabric, s[0], &p, 500);
        expect_many(s[1], &p, 500);
    }
    fabric_free(fabric);
}

/* All ports to all ports, of the largest switch. */
static void all_ports(void)
{
    Fabric *fabric = fabric_new();
    Station *s[HCA_SWITCH_MAX_PORTS];
    unsigned n = HCA_SWITCH_MAX_PORTS;
    Parcel p = parcel;

    fabric_star(fabric, n, s);
    for (unsigned from = 1; from <= n; from++) {
        for (unsigned to = 1; to <= n; to++) {
            p.slid = from;
            p.dlid = to;
            station_send(s[from - 1], &p);
        }
    }
    fabric_run(fabric);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(station_count(s[i]), ==, n - 1);
    }
    fabric_free(fabric);
}

/* As many as @from may send, with marks from 0 on; how many. */
static unsigned fill(Fabric *fabric, Station *from, Parcel *p)
{
    unsigned sent = 0;

    while (hca_link_can_send(from->link, false)) {
        p->mark = sent++;
        station_send(from, p);
        fabric_run(fabric);
    }
    return sent;
}

/*
 * A station that does not read holds up who sends to it, loses nothing, and
 * disturbs nobody else. (HOQLife without limit.)
 */
static void back_pressure(void)
{
    Fabric *fabric = fabric_new();
    Station *s[4];
    Box *box = fabric_star(fabric, 4, s);
    Parcel to_deaf = parcel, other = parcel;
    unsigned sent = 0;

    box->node->port[2].info.hoq_life = 31;
    to_deaf.size = 4096;
    s[1]->deaf = true;
    sent = fill(fabric, s[0], &to_deaf);
    g_assert_cmpuint(sent, >, 40);
    g_assert_false(hca_switch_wants_read(box->sw, 1));
    other.slid = 3;
    other.dlid = 4;
    send_many(fabric, s[2], &other, 1000);
    expect_many(s[3], &other, 1000);
    fabric_advance(fabric, 3600 * NS_PER_S);
    s[1]->deaf = false;
    fabric_run(fabric);
    expect_many(s[1], &to_deaf, sent);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_DISCARDS), ==, 0);
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_XMIT_WAIT), >=, 3600000000);
    fabric_free(fabric);
}

/* What has waited in the switch for longer than LifeTimeValue goes, where it came
 * in, too; what it has not read yet is young. */
static void life_time(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Parcel to_deaf = parcel;
    unsigned sent = 0, waiting;

    box->node->port[2].info.hoq_life = 31;
    to_deaf.size = 4096;
    s[1]->deaf = true;
    sent = fill(fabric, s[0], &to_deaf);
    g_assert_false(hca_switch_wants_read(box->sw, 1));
    waiting = box_counter(box, 1, HCA_PMA_RCV_PKTS) -
              box_counter(box, 2, HCA_PMA_XMIT_PKTS);
    g_assert_cmpuint(waiting, >, 1);
    fabric_advance(fabric, NS_PER_S);
    box->node->switch_info.life_time = 10; /* 4.194304 ms */
    s[1]->deaf = false;
    fabric_run(fabric);
    g_assert_cmpuint(box_reported(box, 2, "drop.lifetime"), ==, waiting);
    g_assert_cmpuint(station_count(s[1]), ==, sent - waiting);
    fabric_free(fabric);
}

/* A port has its share of a turn: so many packets, and so many bytes. */
static void share(void)
{
    static const struct {
        size_t size;
        unsigned sent, taken;
    } cases[] = { { 8, 300, 256 }, { 2048, 100, 63 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fabric *fabric = fabric_new();
        Parcel p = parcel;
        Station *s[2];
        uint64_t before;
        Box *box;

        fabric->capacity = 1024 * 1024;
        box = fabric_star(fabric, 2, s);
        p.size = cases[i].size;
        for (unsigned j = 0; j < cases[i].sent; j++) {
            station_send(s[0], &p);
        }
        hca_link_flush(s[0]->link);
        before = box_counter(box, 1, HCA_PMA_RCV_PKTS);
        g_assert_true(box_run(box));
        g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_PKTS) - before, ==,
                         cases[i].taken);
        fabric_run(fabric);
        g_assert_cmpuint(station_count(s[1]), ==, cases[i].sent);
        fabric_free(fabric);
    }
}

/* Packets of several ports to one that is slow come in turn. */
static void fair(void)
{
    Fabric *fabric = fabric_new();
    Station *s[4];
    Box *box = fabric_star(fabric, 4, s);
    Parcel p = parcel;
    unsigned of[4] = { 0 };
    GByteArray *got;

    box->node->port[4].info.hoq_life = 31;
    p.size = 2048;
    p.dlid = 4;
    s[3]->deaf = true;
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned from = 0; from < 3; from++) {
            p.slid = from + 1;
            for (unsigned i = 0;
                 i < 20 && hca_link_can_send(s[from]->link, false); i++) {
                station_send(s[from], &p);
            }
        }
        fabric_run(fabric);
    }
    s[3]->deaf = false;
    fabric_run(fabric);
    for (unsigned i = 0; i < 300; i++) {
        got = station_take(s[3]);
        of[get_be16(got->data + 6)]++;
        g_byte_array_unref(got);
    }
    for (unsigned from = 1; from <= 3; from++) {
        g_assert_cmpuint(of[from], >, 50);
    }
    fabric_free(fabric);
}

/* Through several switches in a row, and back. */
static void chain(void)
{
    Fabric *fabric = fabric_new();
    Station *a = fabric_station(fabric), *b = fabric_station(fabric);
    Box *box[3];
    Parcel p = parcel;

    for (unsigned i = 0; i < 3; i++) {
        box[i] = fabric_switch(fabric, 2);
        box[i]->node->switch_info.lft_top = 2;
        box[i]->node->lft[1] = 1;
        box[i]->node->lft[2] = 2;
    }
    fabric_join(a, box[0], 1);
    fabric_join_boxes(box[0], 2, box[1], 1);
    fabric_join_boxes(box[1], 2, box[2], 1);
    fabric_join(b, box[2], 2);
    for (unsigned i = 0; i < 3; i++) {
        box_set_states(box[i], HCA_PORT_ACTIVE);
    }
    p.size = 1000;
    for (unsigned i = 0; i < 100; i++) {
        send_many(fabric, a, &p, 10);
        expect_many(b, &p, 10);
    }
    p.slid = 2;
    p.dlid = 1;
    send_many(fabric, b, &p, 10);
    expect_many(a, &p, 10);
    fabric_free(fabric);
}

/*
 * Two switches whose cables are full in both directions, to stations that do not
 * read: when these read again, all goes on.
 */
static void both_ways(void)
{
    Fabric *fabric = fabric_new();
    Station *a = fabric_station(fabric), *b = fabric_station(fabric);
    Box *box[2];
    Parcel p = parcel, back = parcel;
    unsigned sent = 0, sent_back = 0;

    for (unsigned i = 0; i < 2; i++) {
        box[i] = fabric_switch(fabric, 2);
        box[i]->node->switch_info.lft_top = 2;
        box[i]->node->switch_info.life_time = 31;
        box[i]->node->lft[1] = 1;
        box[i]->node->lft[2] = 2;
        box[i]->node->port[1].info.hoq_life = 31;
        box[i]->node->port[2].info.hoq_life = 31;
    }
    fabric_join(a, box[0], 1);
    fabric_join_boxes(box[0], 2, box[1], 1);
    fabric_join(b, box[1], 2);
    box_set_states(box[0], HCA_PORT_ACTIVE);
    box_set_states(box[1], HCA_PORT_ACTIVE);
    p.size = back.size = 4096;
    back.slid = 2;
    back.dlid = 1;
    a->deaf = b->deaf = true;
    sent = fill(fabric, a, &p);
    sent_back = fill(fabric, b, &back);
    a->deaf = b->deaf = false;
    fabric_run(fabric);
    expect_many(b, &p, sent);
    expect_many(a, &back, sent_back);
    fabric_free(fabric);
}

/* A cable that goes takes what waits for it along, and frees who waits. */
static void lost_cable(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel;
    unsigned sent = 0;

    box->node->port[2].info.hoq_life = 31;
    p.size = 4096;
    s[1]->deaf = true;
    sent = fill(fabric, s[0], &p);
    g_assert_cmpuint(box_reported(box, 2, "queued"), >, 0);
    fabric_pull(&s[1]->end);
    fabric_run(fabric);
    g_assert_cmpuint(box_reported(box, 2, "drop.link-lost") +
                         box_reported(box, 2, "drop.out-state") +
                         box_counter(box, 2, HCA_PMA_XMIT_PKTS),
                     ==, sent);
    p = parcel;
    p.dlid = 3;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect(s[2], &p);
    /* The sender's own cable goes while its packet waits. */
    fabric_join(s[1], box, 2);
    box_set_states(box, HCA_PORT_ACTIVE);
    s[1]->deaf = true;
    p.dlid = 2;
    p.size = 4096;
    fill(fabric, s[0], &p);
    g_assert_false(hca_switch_wants_read(box->sw, 1));
    fabric_pull(&s[0]->end);
    fabric_run(fabric);
    g_assert_cmpuint(box_reported(box, 1, "drop.link-lost"), ==, 1);
    fabric_join(s[0], box, 1);
    box_set_states(box, HCA_PORT_ACTIVE);
    g_assert_true(hca_switch_wants_read(box->sw, 1));
    fabric_free(fabric);
}

/* Queues of the least size, packets of all sizes: gaps in the ring. */
static void small_queues(void)
{
    Fabric *fabric = fabric_new();
    Station *a = fabric_station(fabric), *b = fabric_station(fabric);
    HcaSwitchConfig config;
    Parcel p = parcel;
    unsigned sent = 0, got = 0;
    Box *box;

    hca_switch_config_init(&config);
    config.num_ports = 2;
    config.queue_size = HCA_SWITCH_MIN_QUEUE;
    fabric->capacity = 20000;
    box = fabric_switch_with(fabric, &config);
    box->node->switch_info.lft_top = 2;
    box->node->switch_info.life_time = 31;
    box->node->lft[2] = 2;
    box->node->port[2].info.hoq_life = 31;
    a->end.capacity = b->end.capacity = 20000;
    fabric_join(a, box, 1);
    fabric_join(b, box, 2);
    box_set_states(box, HCA_PORT_ACTIVE);
    for (unsigned round = 0; round < 2000; round++) {
        b->deaf = round % 3;
        while (hca_link_can_send(a->link, false) && sent < 40 * round) {
            p.mark = sent++;
            p.size = 4 + p.mark * 97 % 4093;
            station_send(a, &p);
        }
        fabric_run(fabric);
        while (!g_queue_is_empty(&b->received)) {
            p.mark = got++;
            p.size = 4 + p.mark * 97 % 4093;
            station_expect(b, &p);
        }
    }
    b->deaf = false;
    fabric_run(fabric);
    g_assert_cmpuint(got + station_count(b), ==, sent);
    g_assert_cmpuint(got, >, 10000);
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/forward/table", by_table);
    test_add("/switch/forward/table-changes", table_changes);
    test_add("/switch/forward/no-route", no_route);
    test_add("/switch/forward/loop", loop);
    test_add("/switch/forward/management", management);
    test_add("/switch/forward/mtu", mtu);
    test_add("/switch/forward/malformed", malformed);
    test_add("/switch/forward/other-lane", other_lane);
    test_add("/switch/forward/crcs", crcs);
    test_add("/switch/forward/marked", marked);
    test_add("/switch/forward/many", many);
    test_add("/switch/forward/all-ports", all_ports);
    test_add("/switch/forward/back-pressure", back_pressure);
    test_add("/switch/forward/life-time", life_time);
    test_add("/switch/forward/share", share);
    test_add("/switch/forward/fair", fair);
    test_add("/switch/forward/chain", chain);
    test_add("/switch/forward/both-ways", both_ways);
    test_add("/switch/forward/lost-cable", lost_cable);
    test_add("/switch/forward/small-queues", small_queues);
    return g_test_run();
}
