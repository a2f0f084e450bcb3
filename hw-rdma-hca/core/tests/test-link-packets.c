/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets from one end of the cable to the other: all of them, in as few writes
 * as can be; what waits for room, and what is lost without a peer.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "wire/wire.h"
#include "lib-link.h"
#include "lib-test.h"

G_STATIC_ASSERT(HCA_MAX_PACKET_SIZE <= HCA_FRAME_MAX_PACKET);

static void check_stream(unsigned total, size_t chunk, size_t capacity,
                         unsigned batch)
{
    unsigned sent[2] = { 0 }, received[2] = { 0 };
    LinkCable cable;

    link_cable_init(&cable);
    for (unsigned i = 0; i < 2; i++) {
        cable.pipe[i].chunk = chunk;
        cable.pipe[i].capacity = capacity;
    }
    link_cable_set_up(&cable, true);
    while (received[0] < total || received[1] < total) {
        for (unsigned i = 0; i < 2; i++) {
            uint32_t out = i << 24, in = !i << 24;

            sent[i] = link_send_some(&cable.end[i], out, sent[i], total, batch);
            received[i] = link_receive_some(&cable.end[i], in, received[i]);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        const HcaLinkCounters *counters = hca_link_counters(cable.end[i].link);

        g_assert_cmpuint(counters->tx_packets, ==, total);
        g_assert_cmpuint(counters->rx_packets, ==, total);
        g_assert_cmpuint(counters->tx_discarded, ==, 0);
        g_assert_cmpuint(counters->rx_frame_errors, ==, 0);
        g_assert_cmpuint(counters->tx_bytes, ==,
                         hca_link_counters(cable.end[!i].link)->rx_bytes);
    }
    link_cable_destroy(&cable);
}

static void test_stream_bytewise(void)
{
    check_stream(500, 1, 200000, 5);
}

static void test_stream_small_pieces(void)
{
    check_stream(2500, 37, 1000, 20);
}

static void test_stream_pieces(void)
{
    check_stream(10000, 6000, 20000, 100);
}

static void test_stream_whole(void)
{
    check_stream(10000, 0, 200000, 200);
}

static void test_every_size(void)
{
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    for (size_t len = 1; len <= HCA_FRAME_MAX_PACKET; len++) {
        Packet packet;

        packet_sized(&packet, len, len);
        packet_send(cable.end[0].link, false, &packet);
        hca_link_flush(cable.end[0].link);
        packet_expect(&cable.end[1], &packet);
        packet_send(cable.end[0].link, true, &packet);
        packet_expect(&cable.end[0], &packet);
    }
    link_cable_destroy(&cable);
}

/* As few writes as can be. */
static void test_batch(void)
{
    g_autofree Packet *packets = g_new(Packet, 500);
    LinkPipe *pipe;
    LinkCable cable;
    unsigned n;

    link_cable_init(&cable);
    pipe = &cable.pipe[0];
    pipe->capacity = 1000000;
    link_cable_set_up(&cable, true);

    pipe->writes = 0;
    for (n = 0; n < 500; n++) {
        packet_sized(&packets[n], n, n + 1);
        packet_send(cable.end[0].link, false, &packets[n]);
    }
    hca_link_flush(cable.end[0].link);
    g_assert_cmpuint(pipe->writes, ==, 1);
    for (n = 0; n < 500; n++) {
        packet_expect(&cable.end[1], &packets[n]);
    }
    g_assert_cmpuint(cable.pipe[0].reads, ==,
                     1 + cable.greets); /* a greeting, packets */
    link_cable_destroy(&cable);
}

/* A batch ends where it has no room for the longest packet. */
static void test_batch_full(void)
{
    g_autofree Packet *packets = g_new(Packet, 2000);
    unsigned n = 0, k;
    LinkCable cable;

    link_cable_init(&cable);
    cable.pipe[0].capacity = 1000000;
    link_cable_set_up(&cable, true);
    cable.pipe[0].writes = 0;
    while (hca_link_can_send(cable.end[0].link, false)) {
        g_assert_cmpuint(n, <, 2000);
        packet_sized(&packets[n], n, HCA_FRAME_MAX_PACKET);
        packet_send(cable.end[0].link, false, &packets[n++]);
    }
    g_assert_cmpuint(n, >=, 16);
    hca_link_flush(cable.end[0].link);
    g_assert_true(hca_link_can_send(cable.end[0].link, false));
    g_assert_cmpuint(cable.pipe[0].writes, ==, 1);
    for (k = 0; k < n; k++) {
        packet_expect(&cable.end[1], &packets[k]);
    }
    link_cable_destroy(&cable);
}

static void test_back_pressure(void)
{
    const uint8_t *got;
    Packet a, b;
    LinkCable cable;
    HcaLink *link;
    size_t len;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    link = cable.end[0].link;
    cable.pipe[0].capacity = 100;
    packet_sized(&a, 1, 4125);
    packet_send(link, false, &a);
    hca_link_flush(link);
    g_assert_true(hca_link_tx_blocked(link));
    g_assert_false(hca_link_can_send(link, false));
    g_assert_true(hca_link_can_send(link, true));
    g_assert_cmpuint(hca_link_counters(link)->tx_waits, ==, 1);

    packet_sized(&b, 1, 4125);
    memset(a.data, 0, sizeof(a.data));
    cable.now += 300; /* it is still full: so far */
    g_assert_cmpuint(hca_link_counters(link)->tx_wait_ns, ==, 300);
    g_assert_cmpuint(hca_link_counters(link)->tx_wait_ns, ==, 300);
    cable.now += 100;
    hca_link_reset_counters(link);
    cable.now += 400;
    do {
        got = link_receive(&cable.end[1], &len);
        hca_link_flush(link);
    } while (!got);
    packet_check(&b, got, len);
    g_assert_true(hca_link_can_send(link, false));
    /* How long it was full, and nothing for the time when it was not. */
    g_assert_cmpuint(hca_link_counters(link)->tx_wait_ns, ==, 400);
    cable.now += 700;

    /* The other direction was free all along. */
    packet_send(cable.end[1].link, false, &b);
    hca_link_flush(cable.end[1].link);
    packet_expect(&cable.end[0], &b);
    g_assert_cmpuint(hca_link_counters(link)->tx_wait_ns, ==, 400);
    g_assert_cmpuint(hca_link_counters(cable.end[1].link)->tx_wait_ns, ==, 0);
    link_cable_destroy(&cable);
}

/* VL 15 has 32 KiB that no data gets, and waits for no room of the cable's. */
static void test_mgmt_room(void)
{
    unsigned n = 0, managed = 0;
    Packet packet, small;
    HcaLink *link;
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    link = cable.end[0].link;
    cable.pipe[0].capacity = 0;
    packet_sized(&packet, 1, HCA_FRAME_MAX_PACKET);
    packet_sized(&small, 15, HCA_LINK_MAX_MGMT);
    for (; hca_link_can_send(link, false); n++) {
        packet_send(link, false, &packet);
    }
    hca_link_flush(link);
    g_assert_true(hca_link_tx_blocked(link));
    for (; hca_link_can_send_mgmt(link, false); managed++) {
        packet_send(link, false, &small);
        hca_link_flush(link);
    }
    /* But for the last one and its copy, which there might have been. */
    g_assert_cmpuint(managed, >=, 32768 / (HCA_LINK_MAX_MGMT + 8) - 2);
    g_assert_true(hca_link_can_send_mgmt(link, true));
    cable.pipe[0].capacity = 1000000;
    hca_link_flush(link);
    g_assert_true(hca_link_can_send(link, false));
    g_assert_true(hca_link_can_send_mgmt(link, false));
    while (n--) {
        packet_expect(&cable.end[1], &packet);
    }
    while (managed--) {
        packet_expect(&cable.end[1], &small);
    }
    g_assert_cmpuint(hca_link_counters(link)->tx_discarded, ==, 0);
    link_cable_destroy(&cable);
}

/* Without a peer there is room, and what is sent is lost. */
static void test_mgmt_no_peer(void)
{
    Packet small;
    HcaLink *link;
    LinkCable cable;

    link_cable_init(&cable);
    link = cable.end[0].link;
    packet_sized(&small, 15, HCA_LINK_MAX_MGMT);
    for (unsigned i = 0; i < 1000; i++) {
        g_assert_true(hca_link_can_send_mgmt(link, false));
        packet_send(link, false, &small);
    }
    g_assert_cmpuint(hca_link_counters(link)->tx_discarded, ==, 1000);
    link_cable_destroy(&cable);
}

static void test_interrupted(void)
{
    Packet packet;
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    packet_sized(&packet, 1, 129);
    packet_send(cable.end[0].link, false, &packet);
    cable.pipe[0].error = EINTR;
    hca_link_flush(cable.end[0].link);
    packet_expect(&cable.end[1], &packet);
    link_cable_destroy(&cable);
}

static void test_no_peer(void)
{
    const HcaLinkCounters *counters;
    HcaLink *link;
    Packet packet;
    LinkCable cable;

    link_cable_init(&cable);
    link = cable.end[0].link;
    counters = hca_link_counters(link);
    packet_sized(&packet, 1, 4029);

    packet_send(link, false, &packet); /* no stream */
    hca_link_flush(link);
    hca_link_set_up(link, true); /* no greeting */
    packet_send(link, false, &packet);
    g_assert_cmpuint(counters->tx_discarded, ==, 2);

    link_cable_set_up(&cable, true); /* a stream that breaks */
    cable.pipe[0].error = EPIPE;
    packet_send(link, false, &packet);
    hca_link_flush(link);
    g_assert_true(hca_link_can_send(link, false));
    g_assert_false(hca_link_tx_blocked(link));
    packet_send(link, false, &packet);
    hca_link_flush(link);
    g_assert_cmpuint(counters->tx_discarded, ==, 3);

    cable.pipe[0].error = 0; /* and is made again */
    link_cable_set_up(&cable, true);
    packet_send(link, false, &packet);
    hca_link_flush(link);
    packet_expect(&cable.end[1], &packet);
    link_cable_destroy(&cable);
}

/* Without a peer the longest packet has room, however much waits. */
static void test_no_peer_room(void)
{
    static const uint8_t broken[] = { 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff };
    Packet packet;
    HcaLink *link;
    LinkCable cable;

    link_cable_init(&cable);
    link = cable.end[0].link;
    link_cable_set_up(&cable, true);
    cable.pipe[0].capacity = 10;
    packet_sized(&packet, 1, HCA_FRAME_MAX_PACKET);
    while (hca_link_can_send(link, false)) {
        packet_send(link, false, &packet);
    }
    hca_link_flush(link);
    g_assert_true(hca_link_tx_blocked(link));
    g_byte_array_append(cable.pipe[1].bytes, broken, sizeof(broken));
    link_receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_rx_failed(link));
    g_assert_true(hca_link_can_send(link, false));
    packet_send(link, false, &packet);
    g_assert_cmpuint(hca_link_counters(link)->tx_discarded, ==, 1);
    link_cable_destroy(&cable);
}

/*
 * A cable tells of what comes after it has said that it is empty: until it has,
 * the link is not done.
 */
static void test_until_empty(void)
{
    Packet packet;
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    packet_sized(&packet, 1, 100);
    for (unsigned i = 0; i < 3; i++) {
        packet_send(cable.end[0].link, false, &packet);
        hca_link_flush(cable.end[0].link);
        packet_expect(&cable.end[1], &packet);
        g_assert_true(hca_link_rx_pending(cable.end[1].link));
        cable.pipe[0].empty_reads = 0;
        g_assert_null(link_receive(&cable.end[1], &packet.len));
        g_assert_cmpuint(cable.pipe[0].empty_reads, ==, 1);
        g_assert_false(hca_link_rx_pending(cable.end[1].link));
    }
    link_cable_destroy(&cable);
}

/* A packet's lane stays with it, whatever faults do to it. */
static void test_lanes(void)
{
    HcaFaultPlan plan = {
        .nrules = 2,
        .rule = {
            { .action = HCA_FAULT_REORDER, .count = 1 },
            { .action = HCA_FAULT_DUPLICATE, .skip = 1 },
        },
    };
    static const unsigned lanes[] = { 9, 3, 6, 6 };
    LinkCable cable;

    for (unsigned i = 0; i < plan.nrules; i++) {
        plan.rule[i].directions = 1u << HCA_FAULT_RX;
        plan.rule[i].probability = HCA_FAULT_ALWAYS;
    }
    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    hca_link_set_faults(cable.end[1].link, &plan);
    for (unsigned i = 0; i < 3; i++) {
        Packet packet;

        packet_sized(&packet, 3 + (i == 1) * 6 + (i == 2) * 3, 100);
        packet_send(cable.end[0].link, false, &packet);
    }
    hca_link_flush(cable.end[0].link);
    for (unsigned i = 0; i < G_N_ELEMENTS(lanes); i++) {
        Packet packet;

        packet_sized(&packet, lanes[i], 100);
        packet_expect(&cable.end[1], &packet);
        g_assert_cmpuint(hca_link_rx_vl(cable.end[1].link), ==, lanes[i]);
    }
    link_receive_nothing(&cable.end[1]);
    link_cable_destroy(&cable);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    link_test_add("/link/stream/bytewise", test_stream_bytewise);
    link_test_add("/link/stream/small-pieces", test_stream_small_pieces);
    link_test_add("/link/stream/pieces", test_stream_pieces);
    link_test_add("/link/stream/whole", test_stream_whole);
    link_test_add("/link/every-size", test_every_size);
    link_test_add("/link/batch", test_batch);
    link_test_add("/link/batch/full", test_batch_full);
    link_test_add("/link/back-pressure", test_back_pressure);
    link_test_add("/link/management/room", test_mgmt_room);
    test_add("/link/management/no-peer", test_mgmt_no_peer);
    link_test_add("/link/interrupted", test_interrupted);
    test_add("/link/no-peer", test_no_peer);
    link_test_add("/link/no-peer-room", test_no_peer_room);
    link_test_add("/link/until-empty", test_until_empty);
    test_add("/link/lanes", test_lanes);
    return g_test_run();
}
