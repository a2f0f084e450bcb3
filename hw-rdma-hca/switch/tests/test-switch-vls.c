/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual lanes: SL to VL, who is next, and how long a packet waits: HOQLife,
 * VLStallCount, LifeTimeValue. The clock is the test's.
 */
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define LOW 0
#define HIGH 2
#define UNIT_NS 4096ll

static const Parcel parcel = { .slid = 1, .dlid = 2, .size = 2048 };

/* SL to VL */

static void sl_to_vl(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    HcaNodePort *port = &box->node->port[2];
    Parcel p = parcel;

    for (unsigned sl = 0; sl < HCA_NUM_SLS; sl++) {
        port->sl_to_vl[1][sl] = 15 - sl; /* VLs 8 to 14 are not operational */
        port->sl_to_vl[3][sl] = sl % 8;
    }
    for (unsigned sl = 0; sl < HCA_NUM_SLS; sl++) {
        p.sl = sl;
        p.slid = 1;
        station_send(s[0], &p);
        fabric_run(fabric);
        if (sl > 7) {
            station_expect_vl(s[1], &p, 15 - sl);
        }
        station_expect_nothing(s[1]);
        p.slid = 3;
        station_send(s[2], &p);
        fabric_run(fabric);
        station_expect_vl(s[1], &p, sl % 8);
    }
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_RELAY_ERRORS), ==, 8);
    fabric_free(fabric);
}

/* The VL that it came on does not matter, if there is such a one. */
static void incoming_vl(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Parcel p = parcel;

    box->node->port[2].sl_to_vl[1][0] = 5;
    for (unsigned vl = 0; vl < 8; vl++) {
        p.vl = vl;
        station_send(s[0], &p);
        fabric_run(fabric);
        station_expect_vl(s[1], &p, 5);
    }
    box->node->port[1].info.operational_vls = 2; /* VL 0 and 1 */
    for (unsigned vl = 0; vl < 15; vl++) {
        p.vl = vl;
        station_send(s[0], &p);
        fabric_run(fabric);
        g_assert_cmpuint(station_count(s[1]), ==, vl < 2);
    }
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_ERRORS), ==, 13);
    box->node->port[2].info.operational_vls = 3; /* VL 5 is gone */
    p.vl = 0;
    station_send(s[0], &p);
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    fabric_free(fabric);
}

/* The switch's own answers, by the table of port 0. */
static void own_answers(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Mad mad;

    box->node->port[0].info.lid = 9;
    box->node->port[1].sl_to_vl[0][0] = 6;
    smp_init(&mad, s[0], HCA_METHOD_GET, HCA_ATTR_CLASS_PORT_INFO, 0, NULL, 0);
    mad.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
    station_send_gmp(s[0], &mad, 1, 9);
    fabric_run(fabric);
    g_assert_true(station_take_mad(s[0], &mad));
    g_assert_cmpuint(mad.packet.vl, ==, 6);
    fabric_free(fabric);
}

/* Arbitration */

/* Two stations: s[0] sends, of SL n on VL n; s[1], at port @to, is slow. */
typedef struct Lanes {
    Fabric *fabric;
    Station *s[2];
    Box *box;
    unsigned to;
    HcaNodePort *port; /* that one */
} Lanes;

static Lanes lanes_to(unsigned to)
{
    Lanes l = { .fabric = fabric_new(), .to = to };
    unsigned from = 3 - to;
    Station *s[2];

    l.box = fabric_star(l.fabric, 2, s);
    l.s[0] = s[from - 1];
    l.s[1] = s[to - 1];
    l.port = &l.box->node->port[to];
    l.port->info.hoq_life = 31;
    for (unsigned sl = 0; sl < HCA_NUM_SLS; sl++) {
        l.port->sl_to_vl[from][sl] = sl % 8;
    }
    return l;
}

static Lanes lanes_new(void)
{
    return lanes_to(2);
}

static void send(Lanes *l, unsigned vl, unsigned n)
{
    Parcel p = parcel;

    p.sl = vl;
    p.slid = 3 - l->to;
    p.dlid = l->to;
    for (unsigned i = 0; i < n; i++) {
        p.mark = i;
        station_send(l->s[0], &p);
        fabric_run(l->fabric);
    }
}

/* Fill the cable, so that what follows has to wait. */
static void block(Lanes *l)
{
    l->s[1]->deaf = true;
    while (!hca_switch_wants_write(l->box->sw, l->to)) {
        send(l, 0, 1);
    }
}

/* How many of each VL there are among the next @n. */
static void count(Lanes *l, unsigned n, unsigned *of_vl)
{
    memset(of_vl, 0, 16 * sizeof(*of_vl));
    for (unsigned i = 0; i < n; i++) {
        GByteArray *packet = station_take(l->s[1]);

        g_assert_nonnull(packet);
        of_vl[packet->data[0] >> 4]++;
        g_byte_array_unref(packet);
    }
}

/* The station reads; forget the first @n, which were on the cable already. */
static void unblock(Lanes *l, unsigned n)
{
    unsigned of_vl[16];

    l->s[1]->deaf = false;
    fabric_run(l->fabric);
    count(l, n, of_vl);
}

/* Without tables lanes take turns. */
static void in_turn(void)
{
    Lanes l = lanes_new();
    uint64_t before;
    unsigned of_vl[16];

    block(&l);
    before = box_counter(l.box, 2, HCA_PMA_XMIT_PKTS);
    for (unsigned vl = 1; vl < 8; vl += 2) {
        send(&l, vl, 20);
    }
    unblock(&l, before);
    count(&l, 40, of_vl);
    for (unsigned vl = 1; vl < 8; vl += 2) {
        g_assert_cmpuint(of_vl[vl], ==, 10);
    }
    count(&l, 40, of_vl);
    station_expect_nothing(l.s[1]);
    fabric_free(l.fabric);
}

/* By weight: of VL 1 three times as much as of VL 2, and VL 3 but for the rest. */
static void weights(gconstpointer part)
{
    Lanes l = lanes_new();
    unsigned which = GPOINTER_TO_UINT(part);
    uint64_t before;
    unsigned of_vl[16];

    l.port->vl_arb[which][0] = (HcaVlWeight) { 1, 97 };
    l.port->vl_arb[which][1] = (HcaVlWeight) { 2, 32 };
    l.port->vl_arb[which][2] = (HcaVlWeight) { 3, 0 };
    l.port->info.vl_high_limit = 255;
    block(&l);
    before = box_counter(l.box, 2, HCA_PMA_XMIT_PKTS);
    send(&l, 3, 20);
    send(&l, 2, 30);
    send(&l, 1, 30);
    unblock(&l, before);
    count(&l, 40, of_vl);
    /* Packets of 2082 bytes: three for 97 * 64, one for 32 * 64. */
    g_assert_cmpuint(of_vl[1], ==, 30);
    g_assert_cmpuint(of_vl[2], ==, 10);
    count(&l, 20, of_vl);
    g_assert_cmpuint(of_vl[2], ==, 20);
    count(&l, 20, of_vl); /* block() may have left one of VL 0 */
    g_assert_cmpuint(of_vl[3], >=, 19);
    fabric_free(l.fabric);
}

/* The high table first, as far as its limit goes while the low one has some. */
static void high_limit(gconstpointer limit)
{
    Lanes l = lanes_new();
    unsigned value = GPOINTER_TO_UINT(limit);
    uint64_t before;
    unsigned of_vl[16];

    l.port->vl_arb[HIGH][0] = (HcaVlWeight) { 1, 255 };
    l.port->vl_arb[LOW][0] = (HcaVlWeight) { 2, 255 };
    l.port->info.vl_high_limit = value;
    block(&l);
    before = box_counter(l.box, 2, HCA_PMA_XMIT_PKTS);
    send(&l, 2, 40);
    send(&l, 1, 40);
    unblock(&l, before);
    count(&l, 40, of_vl);
    if (value == 255) {
        g_assert_cmpuint(of_vl[1], ==, 40);
    } else if (value == 0) {
        g_assert_cmpuint(of_vl[1], ==, 20); /* one packet each */
    } else {
        /* Of 2082 bytes until 4096 * value are gone, then one. */
        unsigned high = (4096 * value + 2081) / 2082;

        g_assert_cmpuint(of_vl[1], >=, 40 * high / (high + 1) - 1);
        g_assert_cmpuint(of_vl[1], <=, 40 * high / (high + 1) + high);
        g_assert_cmpuint(of_vl[2], >, 0);
    }
    count(&l, 40, of_vl);
    station_expect_nothing(l.s[1]);
    fabric_free(l.fabric);
}

/* One lane without an end does not keep another one out. */
static void no_starving(void)
{
    Lanes l = lanes_new();
    Parcel p = parcel;
    unsigned got[16] = { 0 };

    for (unsigned round = 0; round < 200; round++) {
        l.s[1]->deaf = round % 2;
        for (unsigned i = 0; i < 10; i++) {
            p.sl = i == 5 ? 6 : 1;
            if (hca_link_can_send(l.s[0]->link, false)) {
                station_send(l.s[0], &p);
            }
        }
        fabric_run(l.fabric);
        while (!g_queue_is_empty(&l.s[1]->received)) {
            GByteArray *packet = station_take(l.s[1]);

            got[packet->data[0] >> 4]++;
            g_byte_array_unref(packet);
        }
    }
    g_assert_cmpuint(got[6] * 12, >, got[1]);
    fabric_free(l.fabric);
}

/* A lane keeps the order of its packets. */
static void order(void)
{
    Lanes l = lanes_new();
    Parcel p = parcel;
    uint32_t next[8] = { 0 };
    uint64_t before;
    unsigned sent = 0;

    block(&l);
    before = box_counter(l.box, 2, HCA_PMA_XMIT_PKTS);
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned vl = 0; vl < 8; vl += 3) {
            p.sl = vl;
            p.mark = i;
            station_send(l.s[0], &p);
            sent++;
        }
        fabric_run(l.fabric);
    }
    unblock(&l, before);
    while (sent--) {
        GByteArray *packet = station_take(l.s[1]);
        unsigned vl = packet->data[0] >> 4;
        uint32_t mark;

        memcpy(&mark, packet->data + 28, sizeof(mark));
        g_assert_cmpuint(mark, ==, next[vl]++);
        g_byte_array_unref(packet);
    }
    fabric_free(l.fabric);
}

/* Time */

static uint64_t dropped(const Lanes *l, const char *name)
{
    char *counter = g_strdup_printf("drop.%s", name);
    uint64_t n = box_reported(l->box, l->to, counter);

    g_free(counter);
    return n;
}

/* A packet at the head of a queue for longer than HOQLife goes. */
static void hoq_life(gconstpointer to)
{
    Lanes l = lanes_to(GPOINTER_TO_UINT(to));

    l.port->info.hoq_life = 10; /* 4.194304 ms */
    l.port->info.vl_stall_count = 0;
    block(&l);
    send(&l, 1, 3);
    fabric_advance(l.fabric, UNIT_NS << 10);
    g_assert_cmpuint(dropped(&l, "hoq"), ==, 0);
    fabric_advance(l.fabric, 1);
    /* VL 0 may have one waiting, too. */
    g_assert_cmpuint(dropped(&l, "hoq"), >=, 1);
    g_assert_cmpuint(dropped(&l, "hoq"), <=, 2);
    fabric_advance(l.fabric, 100 * (UNIT_NS << 10));
    g_assert_cmpuint(dropped(&l, "hoq"), >=, 3);
    g_assert_cmpuint(dropped(&l, "hoq"), <=, 4);
    g_assert_cmpint(hca_switch_deadline(l.box->sw), ==, INT64_MAX);
    fabric_free(l.fabric);
}

/* After so many in a row the lane stalls: all of it goes, for 8 times as long. */
static void stall(void)
{
    Lanes l = lanes_new();
    int64_t life = UNIT_NS << 10;

    l.port->info.hoq_life = 10;
    l.port->info.vl_stall_count = 3;
    block(&l);
    fabric_advance(l.fabric, 100 * life); /* what block() left */
    g_assert_cmpuint(dropped(&l, "stalled"), ==, 0);
    send(&l, 1, 10);
    for (unsigned i = 1; i <= 2; i++) {
        uint64_t before = dropped(&l, "hoq");

        fabric_advance(l.fabric, life + 1);
        g_assert_cmpuint(dropped(&l, "hoq"), ==, before + 1);
        g_assert_cmpuint(dropped(&l, "stalled"), ==, 0);
    }
    fabric_advance(l.fabric, life + 1);
    g_assert_cmpuint(dropped(&l, "stalled"), ==, 7);
    /* Also what comes now, though the cable takes it again. */
    l.s[1]->deaf = false;
    fabric_run(l.fabric);
    station_count(l.s[1]);
    send(&l, 1, 2);
    g_assert_cmpuint(dropped(&l, "stalled"), ==, 9);
    send(&l, 2, 1); /* another lane */
    g_assert_cmpuint(station_count(l.s[1]), ==, 1);
    fabric_advance(l.fabric, 8 * life - 1);
    send(&l, 1, 1);
    g_assert_cmpuint(dropped(&l, "stalled"), ==, 10);
    fabric_advance(l.fabric, 1);
    send(&l, 1, 1);
    g_assert_cmpuint(station_count(l.s[1]), ==, 1);
    fabric_free(l.fabric);
}

/* One that leaves makes a new row. */
static void stall_in_a_row(void)
{
    Lanes l = lanes_new();
    int64_t life = UNIT_NS << 10;

    l.port->info.hoq_life = 10;
    l.port->info.vl_stall_count = 3;
    for (unsigned i = 0; i < 5; i++) {
        block(&l);
        fabric_advance(l.fabric, 2 * life);
        send(&l, 1, 3);
        fabric_advance(l.fabric, 2 * (life + 1));
        l.s[1]->deaf = false;
        fabric_run(l.fabric);
    }
    g_assert_cmpuint(dropped(&l, "hoq"), >=, 10);
    g_assert_cmpuint(dropped(&l, "stalled"), ==, 0);
    fabric_free(l.fabric);
}

/* Codes from 20 on: for ever. */
static void no_limit(void)
{
    Lanes l = lanes_new();

    for (unsigned code = 20; code < 32; code++) {
        l.port->info.hoq_life = code;
        l.box->node->switch_info.life_time = code;
        block(&l);
        send(&l, 1, 2);
        g_assert_cmpint(hca_switch_deadline(l.box->sw), ==, INT64_MAX);
        fabric_advance(l.fabric, 3600 * NS_PER_S);
        l.s[1]->deaf = false;
        fabric_run(l.fabric);
    }
    g_assert_cmpuint(box_counter(l.box, 2, HCA_PMA_XMIT_DISCARDS), ==, 0);
    fabric_free(l.fabric);
}

/* LifeTimeValue: all of a queue that is as old goes at once, without a stall. */
static void life_time(void)
{
    Lanes l = lanes_new();
    int64_t life = UNIT_NS << 12;

    l.box->node->switch_info.life_time = 12;
    l.port->info.vl_stall_count = 1;
    block(&l);
    fabric_advance(l.fabric, 2 * life);
    send(&l, 1, 5);
    fabric_advance(l.fabric, life / 2);
    send(&l, 1, 5);
    fabric_advance(l.fabric, life / 2);
    g_assert_cmpuint(dropped(&l, "lifetime"), <=, 1);
    fabric_advance(l.fabric, 1);
    g_assert_cmpuint(dropped(&l, "lifetime"), >=, 5);
    g_assert_cmpuint(dropped(&l, "lifetime"), <=, 6);
    fabric_advance(l.fabric, life);
    g_assert_cmpuint(dropped(&l, "lifetime"), >=, 10);
    g_assert_cmpuint(dropped(&l, "lifetime"), <=, 11);
    g_assert_cmpuint(dropped(&l, "stalled") + dropped(&l, "hoq"), ==, 0);
    fabric_free(l.fabric);
}

/*
 * Who waits for a full queue is freed in the end, and with it all that is behind
 * it on its cable, whoever that is for.
 */
static void frees_input(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel p = parcel, other = parcel;

    box->node->port[2].info.hoq_life = 16; /* 268 ms, as towards a card */
    p.size = 4096;
    other.dlid = 3;
    s[1]->deaf = true;
    while (hca_switch_wants_read(box->sw, 1)) {
        station_send(s[0], &p);
        fabric_run(fabric);
    }
    station_send(s[0], &other);
    fabric_run(fabric);
    station_expect_nothing(s[2]);
    fabric_advance(fabric, (UNIT_NS << 16) + 1);
    station_expect(s[2], &other);
    g_assert_cmpuint(box_reported(box, 2, "drop.hoq"), ==, 1);
    fabric_free(fabric);
}

/*
 * One large packet behind a queue of small ones, each of which makes little room:
 * it does not wait for longer than one at the head would.
 */
static void large_behind_small(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = fabric_star(fabric, 3, s);
    Parcel small = parcel, large = parcel, other = parcel;

    box->node->port[2].info.hoq_life = 16;
    box->node->port[2].info.vl_stall_count = 0;
    small.size = 4;
    large.size = 4096;
    other.dlid = 3;
    s[1]->deaf = true;
    while (hca_switch_wants_read(box->sw, 1)) {
        station_send(s[0], &small);
        fabric_run(fabric);
    }
    station_send(s[0], &large);
    station_send(s[0], &other);
    /* The last small one takes the room that the first one leaves. */
    fabric_advance(fabric, (UNIT_NS << 16) + 1);
    station_expect_nothing(s[2]);
    fabric_advance(fabric, (UNIT_NS << 16) + 1);
    station_expect(s[2], &other);
    fabric_free(fabric);
}

/* With two stations that never read, all goes on for others, at any time. */
static void two_dead(void)
{
    Fabric *fabric = fabric_new();
    Station *s[4];
    Box *box = fabric_star(fabric, 4, s);
    Parcel p = parcel;
    unsigned got = 0;

    box->node->port[2].info.hoq_life = 16;
    box->node->port[3].info.hoq_life = 16;
    box->node->switch_info.life_time = 18;
    s[1]->deaf = s[2]->deaf = true;
    for (unsigned i = 0; i < 3000; i++) {
        p.dlid = 2 + i % 3;
        if (hca_link_can_send(s[0]->link, false)) {
            station_send(s[0], &p);
        }
        fabric_advance(fabric, 10 * NS_PER_MS);
        got += station_count(s[3]);
    }
    g_assert_cmpuint(got, >, 500);
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/vls/sl-to-vl", sl_to_vl);
    test_add("/switch/vls/incoming-vl", incoming_vl);
    test_add("/switch/vls/own-answers", own_answers);
    test_add("/switch/vls/in-turn", in_turn);
    test_add_data("/switch/vls/weights/low", GUINT_TO_POINTER(LOW), weights);
    test_add_data("/switch/vls/weights/low-32", GUINT_TO_POINTER(LOW + 1),
                  weights);
    test_add_data("/switch/vls/weights/high", GUINT_TO_POINTER(HIGH), weights);
    test_add_data("/switch/vls/weights/high-32", GUINT_TO_POINTER(HIGH + 1),
                  weights);
    test_add_data("/switch/vls/high-limit/0", GUINT_TO_POINTER(0), high_limit);
    test_add_data("/switch/vls/high-limit/1", GUINT_TO_POINTER(1), high_limit);
    test_add_data("/switch/vls/high-limit/3", GUINT_TO_POINTER(3), high_limit);
    test_add_data("/switch/vls/high-limit/255", GUINT_TO_POINTER(255),
                  high_limit);
    test_add("/switch/vls/no-starving", no_starving);
    test_add("/switch/vls/order", order);
    test_add_data("/switch/vls/hoq-life/1", GUINT_TO_POINTER(1), hoq_life);
    test_add_data("/switch/vls/hoq-life/2", GUINT_TO_POINTER(2), hoq_life);
    test_add("/switch/vls/stall", stall);
    test_add("/switch/vls/stall-in-a-row", stall_in_a_row);
    test_add("/switch/vls/no-limit", no_limit);
    test_add("/switch/vls/life-time", life_time);
    test_add("/switch/vls/frees-input", frees_input);
    test_add("/switch/vls/large-behind-small", large_behind_small);
    test_add("/switch/vls/two-dead", two_dead);
    return g_test_run();
}
