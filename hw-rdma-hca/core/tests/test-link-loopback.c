/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of a card to itself, alone and beside those of the cable. */
#include <glib.h>

#include "lib-link.h"
#include "lib-test.h"
#include "link/loopback.h"

static void test_loopback_full(void)
{
    unsigned sent = 0, received = 0;
    GRand *rand = g_rand_new_with_seed(8);
    LinkCable cable;
    LinkEnd *end;

    link_cable_init(&cable);
    end = &cable.end[0];
    while (received < 20000) {
        const uint8_t *got = NULL;
        Packet packet;
        size_t len;

        while (hca_link_can_send(end->link, true)) {
            packet_random(&packet, sent++);
            packet_send(end->link, true, &packet);
            g_assert_true(hca_link_rx_pending(end->link));
        }
        for (int n = g_rand_int_range(rand, 1, sent & 1 ? 400 : 4); n; n--) {
            got = link_receive(end, &len);
            if (!got) {
                break;
            }
            packet_random(&packet, received++);
            packet_check(&packet, got, len);
        }
        g_assert_true(got || received == sent);
        g_assert_cmpint(hca_link_rx_pending(end->link), ==, received < sent);
    }
    g_assert_cmpuint(hca_link_counters(end->link)->loopback_packets, ==, sent);

    /* A full ring holds up nobody else, and a clear empties it. */
    g_assert_true(hca_link_can_send(end->link, false));
    hca_link_clear(end->link);
    g_assert_false(hca_link_rx_pending(end->link));
    g_assert_true(hca_link_can_send(end->link, true));
    link_receive_nothing(end);
    link_cable_destroy(&cable);
    g_rand_free(rand);
}

/* By turns when both have packets. */
static void test_fair(void)
{
    bool last, loopback;
    Packet packet;
    LinkCable cable;
    size_t len;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    packet_sized(&packet, 1, 129);
    for (unsigned i = 0; i < 100; i++) {
        packet_send(cable.end[0].link, true, &packet);
        packet_send(cable.end[1].link, false, &packet);
    }
    hca_link_flush(cable.end[1].link);
    g_assert_nonnull(hca_link_receive(cable.end[0].link, &len, &last));
    for (unsigned i = 1; i < 200; i++) {
        g_assert_nonnull(hca_link_receive(cable.end[0].link, &len, &loopback));
        g_assert_cmpint(loopback, !=, last);
        last = loopback;
    }
    link_receive_nothing(&cable.end[0]);
    link_cable_destroy(&cable);
}

/* Loopback alone costs few reads, and does not shut out the cable. */
static void test_loopback_and_silent_cable(void)
{
    bool loopback = true;
    Packet packet;
    LinkCable cable;
    size_t len;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    packet_sized(&packet, 1, 129);
    packet_send(cable.end[0].link, true, &packet);
    cable.pipe[1].empty_reads = 0;
    for (unsigned i = 0; i < 1000; i++) {
        packet_send(cable.end[0].link, true, &packet);
        g_assert_nonnull(link_receive(&cable.end[0], &len));
    }
    g_assert_cmpuint(cable.pipe[1].empty_reads, <, 20);
    packet_send(cable.end[1].link, false, &packet);
    hca_link_flush(cable.end[1].link);
    for (unsigned i = 0; loopback; i++) {
        g_assert_cmpuint(i, <, 100);
        packet_send(cable.end[0].link, true, &packet);
        g_assert_nonnull(hca_link_receive(cable.end[0].link, &len, &loopback));
    }
    link_cable_destroy(&cable);
}

/* ---- in another card ---- */

static void put(HcaLoopback *loopback, unsigned i)
{
    Packet packet;

    packet_random(&packet, i);
    memcpy(hca_loopback_open(loopback), packet.data, packet.len);
    hca_loopback_close(loopback, packet.len);
}

static void get(HcaLoopback *loopback, unsigned i)
{
    const uint8_t *got;
    Packet packet;
    size_t len;

    got = hca_loopback_get(loopback, &len);
    g_assert_nonnull(got);
    packet_random(&packet, i);
    packet_check(&packet, got, len);
}

/* The queue in which another one goes on, with @least packets or more. */
static HcaLoopback *move(HcaLoopback *loopback, unsigned least)
{
    GArray *bytes = g_array_new(false, false, 1);
    HcaLoopback *other = hca_loopback_new();
    unsigned count;

    hca_loopback_save(loopback, bytes);
    g_assert_true(
        hca_loopback_load(other, (uint8_t *)bytes->data, bytes->len, &count));
    g_assert_cmpuint(count, >=, least);
    hca_loopback_free(loopback);
    g_array_free(bytes, true);
    return other;
}

/*
 * What is on its way goes on in order, wherever the ring begins, but for what was
 * given.
 */
static void test_moved(void)
{
    HcaLoopback *loopback = hca_loopback_new();
    unsigned sent = 0, received = 0;

    while (received < 2000) {
        while (hca_loopback_can_put(loopback)) {
            put(loopback, sent++);
        }
        get(loopback, received++);
        loopback = move(loopback, sent - received);
        for (unsigned i = 0; i < 7; i++) {
            get(loopback, received++);
        }
    }
    while (received < sent) {
        get(loopback, received++);
    }
    loopback = move(loopback, 0);
    g_assert_true(hca_loopback_is_empty(loopback));
    hca_loopback_free(loopback);
}

static bool loads(GArray *bytes, unsigned n)
{
    HcaLoopback *loopback = hca_loopback_new();
    unsigned count;
    bool ok;

    g_assert_cmpuint(n, <=, bytes->len);
    ok = hca_loopback_load(loopback, (uint8_t *)bytes->data, n, &count);
    hca_loopback_free(loopback);
    return ok;
}

/* Records that are cut, empty, too long, or more than there is room for. */
static void test_moved_lies(void)
{
    static const uint8_t packet[HCA_FRAME_MAX_PACKET + 1];
    GArray *bytes = g_array_new(false, false, 1);

    hca_state_put_packet(bytes, packet, 1);
    g_assert_true(loads(bytes, 0));
    for (unsigned n = 1; n < bytes->len; n++) {
        g_assert_false(loads(bytes, n));
    }
    g_assert_true(loads(bytes, bytes->len));
    hca_state_put_packet(bytes, packet, 0);
    g_assert_false(loads(bytes, bytes->len));
    g_array_set_size(bytes, 0);
    hca_state_put_packet(bytes, packet, HCA_FRAME_MAX_PACKET);
    g_assert_true(loads(bytes, bytes->len));
    while (bytes->len < 512 * 1024) { /* twice the ring */
        hca_state_put_packet(bytes, packet, HCA_FRAME_MAX_PACKET);
    }
    g_assert_false(loads(bytes, bytes->len));
    g_array_set_size(bytes, 0);
    hca_state_put_packet(bytes, packet, sizeof(packet));
    g_assert_false(loads(bytes, bytes->len));
    g_array_free(bytes, true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/link/loopback/full", test_loopback_full);
    test_add("/link/loopback/fair", test_fair);
    test_add("/link/loopback/silent-cable", test_loopback_and_silent_cable);
    test_add("/link/loopback/moved", test_moved);
    test_add("/link/loopback/moved/lies", test_moved_lies);
    return g_test_run();
}
