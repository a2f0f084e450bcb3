/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of a card to itself, alone and beside those of the cable. */
#include <glib.h>

#include "lib-link.h"
#include "lib-test.h"

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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/link/loopback/full", test_loopback_full);
    test_add("/link/loopback/fair", test_fair);
    test_add("/link/loopback/silent-cable", test_loopback_and_silent_cable);
    return g_test_run();
}
