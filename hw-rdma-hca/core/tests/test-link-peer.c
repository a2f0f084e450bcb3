/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each end knows of the other one: the state of its port, who manages it;
 * streams that end, and cards that are reset, in the middle of a frame.
 */
#include <glib.h>
#include <string.h>

#include "lib-link.h"
#include "lib-test.h"

/* The state of the peer's port */

static void pass_on(LinkCable *cable)
{
    hca_link_flush(cable->end[0].link);
    link_receive_nothing(&cable->end[1]);
}

static void test_state(void)
{
    HcaLink *own, *peer;
    Packet packet;
    LinkCable cable;

    link_cable_init(&cable);
    own = cable.end[0].link;
    peer = cable.end[1].link;
    packet_sized(&packet, 1, 100);
    link_cable_set_up(&cable, true);
    hca_link_enable(own, false);
    pass_on(&cable);
    g_assert_false(hca_link_is_up(peer));
    g_assert_true(hca_link_is_greeted(peer));
    g_assert_cmpuint(hca_link_downs(peer), ==, 1);

    /* Neither end sends now. */
    packet_send(own, false, &packet);
    packet_send(peer, false, &packet);
    g_assert_cmpuint(hca_link_counters(own)->tx_discarded, ==, 1);
    g_assert_cmpuint(hca_link_counters(peer)->tx_discarded, ==, 1);
    hca_link_enable(own, true);
    pass_on(&cable);
    g_assert_true(hca_link_is_up(peer));
    packet_send(own, false, &packet);
    hca_link_flush(own);
    packet_expect(&cable.end[1], &packet);

    /* However often it changes while the cable is full: down, and up. */
    cable.pipe[0].capacity = 0;
    for (unsigned i = 0; i < 100000; i++) {
        hca_link_enable(own, i & 1);
        hca_link_flush(own);
    }
    g_assert_true(hca_link_tx_blocked(own));
    cable.pipe[0].capacity = 200000;
    pass_on(&cable);
    g_assert_true(hca_link_is_up(peer));
    g_assert_cmpuint(hca_link_downs(peer), >=, 2);
    g_assert_cmpuint(hca_link_downs(peer), <=, 3);

    /* A new stream begins with the state of now. */
    hca_link_enable(own, false);
    hca_link_set_up(peer, false);
    link_pipe_empty(&cable.pipe[0]);
    hca_link_set_up(own, true);
    hca_link_set_up(peer, true);
    pass_on(&cable);
    g_assert_true(hca_link_is_greeted(peer));
    g_assert_false(hca_link_is_up(peer));
    link_cable_destroy(&cable);
}

/* What a greeting says of who manages its end, all combinations. */
static void test_managed(void)
{
    for (unsigned which = 0; which < 4; which++) {
        LinkCable cable;

        link_cable_init(&cable);
        for (unsigned i = 0; i < 2; i++) {
            hca_link_set_managed(cable.end[i].link, which >> i & 1);
            g_assert_false(hca_link_peer_is_managed(cable.end[i].link));
        }
        link_cable_set_up(&cable, true);
        for (unsigned i = 0; i < 2; i++) {
            g_assert_cmpint(hca_link_peer_is_managed(cable.end[!i].link), ==,
                            which >> i & 1);
        }
        /* Another peer, or the same that has changed its mind. */
        hca_link_set_managed(cable.end[0].link, !(which & 1));
        link_cable_set_up(&cable, false);
        link_cable_set_up(&cable, true);
        g_assert_cmpint(hca_link_peer_is_managed(cable.end[1].link), ==,
                        !(which & 1));
        g_assert_cmpint(hca_link_peer_is_managed(cable.end[0].link), ==,
                        which >> 1 & 1);
        link_cable_destroy(&cable);
    }
}

/* Packets do not come from a port that is not enabled. */
static void test_packet_of_disabled(void)
{
    uint8_t state[HCA_STATE_FRAME_SIZE];
    uint8_t frame[HCA_FRAME_HEADER_SIZE + 100] = { 0 };
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    hca_frame_write_state(state, false);
    hca_frame_write_header(frame, HCA_FRAME_PACKET, 0, 100);
    g_byte_array_append(cable.pipe[1].bytes, state, sizeof(state));
    g_byte_array_append(cable.pipe[1].bytes, frame, sizeof(frame));
    link_receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_rx_failed(cable.end[0].link));
    link_cable_destroy(&cable);
}

/* Ends and resets */

/* Down and up again with frames half way in every buffer. */
static void test_down_in_frame(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    LinkCable cable;

    link_cable_init(&cable);
    for (unsigned round = 0; round < 200; round++) {
        Packet packet;

        for (unsigned i = 0; i < 2; i++) {
            cable.pipe[i].chunk = 1000;
            cable.pipe[i].capacity = g_rand_int_range(rand, 100, 9000);
        }
        link_cable_set_up(&cable, true);
        for (unsigned i = 0; i < 2; i++) {
            link_send_some(&cable.end[i], i << 24, 0, 50, 10);
            link_receive_some(&cable.end[i], !i << 24, 0);
        }
        link_cable_set_up(&cable, false);
        for (unsigned i = 0; i < 2; i++) {
            g_assert_false(hca_link_tx_blocked(cable.end[i].link));
            g_assert_false(hca_link_rx_pending(cable.end[i].link));
            link_receive_nothing(&cable.end[i]);
        }
        packet_sized(&packet, round, 129);
        packet_send(cable.end[0].link, true, &packet);
        packet_expect(&cable.end[0], &packet);
    }
    link_cable_destroy(&cable);
    g_rand_free(rand);
}

/* A reset of the card must not cut frames in two. */
static void test_clear_in_frame(void)
{
    GRand *rand = g_rand_new_with_seed(6);
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    for (unsigned round = 0; round < 300; round++) {
        Packet last;

        for (unsigned i = 0; i < 2; i++) {
            cable.pipe[i].chunk = g_rand_int_range(rand, 1, 6000);
            cable.pipe[i].capacity = g_rand_int_range(rand, 100, 9000);
        }
        packet_sized(&last, round, 4029);
        link_send_some(&cable.end[0], 0, 0, 20, 20);
        packet_send(cable.end[0].link, true, &last);
        link_receive_some(&cable.end[1], 0, 0);
        hca_link_clear(cable.end[round & 1].link);
        if (!(round & 1)) {
            link_receive_nothing(&cable.end[0]);
        } else {
            packet_expect(&cable.end[0], &last);
        }

        /* The rest of a frame still comes, then the new packet. */
        do {
            size_t len;

            link_receive(&cable.end[1], &len);
            hca_link_flush(cable.end[1].link);
            link_receive_nothing(&cable.end[0]);
            hca_link_flush(cable.end[0].link);
        } while (!hca_link_is_up(cable.end[0].link) ||
                 !hca_link_can_send(cable.end[0].link, false));
        packet_send(cable.end[0].link, false, &last);
        for (bool found = false; !found;) {
            size_t len;
            const uint8_t *got;

            hca_link_flush(cable.end[0].link);
            got = link_receive(&cable.end[1], &len);
            found = got && len == last.len && !memcmp(got, last.data, len);
            g_assert_false(hca_link_rx_failed(cable.end[1].link));
        }
        link_receive_nothing(&cable.end[1]);
        g_assert_true(hca_link_is_up(cable.end[1].link));
    }
    link_cable_destroy(&cable);
    g_rand_free(rand);
}

/*
 * Of what was sent before a reset, and has not left, nothing leaves: the frame
 * that has left in part ends in zeros.
 */
static void test_clear_forgets(void)
{
    const size_t written[] = { 0, 1, 8, 9, 100, 307, 308, 309, 1000 };

    for (unsigned i = 0; i < G_N_ELEMENTS(written); i++) {
        uint8_t secret[300];
        Packet packet = { .vl = 1, .len = sizeof(secret) };
        GByteArray *bytes;
        size_t frame, after;
        LinkCable cable;

        memset(packet.data, 0xa5, packet.len);
        link_cable_init(&cable);
        link_cable_set_up(&cable, true);
        bytes = cable.pipe[0].bytes;
        cable.pipe[0].capacity = written[i];
        for (unsigned n = 0; n < 10; n++) {
            packet_send(cable.end[0].link, false, &packet);
        }
        hca_link_flush(cable.end[0].link);
        g_assert_true(hca_link_tx_blocked(cable.end[0].link));
        g_assert_cmpuint(bytes->len, ==, written[i]);

        hca_link_clear(cable.end[0].link);
        cable.pipe[0].capacity = 200000;
        hca_link_flush(cable.end[0].link);
        frame = HCA_FRAME_HEADER_SIZE + packet.len;
        after = (frame - written[i] % frame) % frame;
        g_assert_cmpuint(bytes->len, ==,
                         written[i] + after + 2 * HCA_STATE_FRAME_SIZE);
        for (size_t at = written[i]; at < bytes->len; at++) {
            g_assert_cmphex(bytes->data[at], !=, 0xa5);
        }
        link_cable_destroy(&cable);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/link/state/told", test_state);
    test_add("/link/state/managed", test_managed);
    test_add("/link/state/packet-of-disabled", test_packet_of_disabled);
    test_add("/link/clear-forgets", test_clear_forgets);
    test_add("/link/down-in-frame", test_down_in_frame);
    test_add("/link/clear-in-frame", test_clear_in_frame);
    return g_test_run();
}
