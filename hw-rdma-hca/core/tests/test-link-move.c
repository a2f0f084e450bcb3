/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What two ends of a cable say when one of them moves, and when one of them knows
 * nothing of that; what a hostile one may say.
 */
#include <glib.h>
#include <string.h>

#include "lib-link.h"
#include "lib-test.h"

#define PATIENCE_NS 1000000000

static void init(LinkCable *cable)
{
    link_cable_init(cable);
    for (unsigned i = 0; i < 2; i++) {
        hca_link_set_patience(cable->end[i].link, PATIENCE_NS);
    }
}

/* A new stream, */
static void begin(LinkCable *cable)
{
    link_pipe_empty(&cable->pipe[0]);
    link_pipe_empty(&cable->pipe[1]);
    for (unsigned i = 0; i < 2; i++) {
        hca_link_set_up(cable->end[i].link, true);
    }
}

/* and the greetings of both. */
static void join(LinkCable *cable)
{
    begin(cable);
    for (unsigned i = 0; i < 2; i++) {
        link_receive_nothing(&cable->end[i]);
    }
}

static void part(LinkCable *cable)
{
    for (unsigned i = 0; i < 2; i++) {
        hca_link_set_up(cable->end[i].link, false);
    }
}

static void put(LinkPipe *pipe, const uint8_t *frame, size_t len)
{
    g_byte_array_append(pipe->bytes, frame, len);
}

static void put_greeting(LinkPipe *pipe, const HcaGreeting *greeting)
{
    uint8_t frame[HCA_GREETING_FRAME_SIZE];

    put(pipe, frame,
        hca_frame_write_greeting(frame, HCA_LINK_LAYER_IB, greeting));
}

/* Nothing is sent, and nothing is lost. */
static void test_waits(void)
{
    HcaLink *own, *peer;
    Packet packet;
    LinkCable cable;

    init(&cable);
    own = cable.end[0].link;
    peer = cable.end[1].link;
    packet_sized(&packet, 1, 100);
    link_cable_set_up(&cable, true);
    g_assert_true(hca_link_depart(own));
    g_assert_false(hca_link_drain(own));
    packet_send(peer, false, &packet); /* before it has heard of it */
    hca_link_flush(peer);
    link_receive_nothing(&cable.end[1]);
    hca_link_flush(peer);
    g_assert_true(hca_link_drain(own));
    part(&cable);
    for (unsigned i = 0; i < 2; i++) {
        HcaLink *link = cable.end[i].link;

        g_assert_true(hca_link_is_away(link));
        g_assert_true(hca_link_is_up(link));
        g_assert_false(hca_link_is_greeted(link));
        g_assert_false(hca_link_can_send(link, false));
        g_assert_false(hca_link_can_send_mgmt(link, false));
        g_assert_true(hca_link_can_send(link, true));
        g_assert_cmpint(hca_link_deadline(link), ==, PATIENCE_NS);
    }
    packet_expect(&cable.end[0], &packet);
    join(&cable);
    for (unsigned i = 0; i < 2; i++) {
        HcaLink *link = cable.end[i].link;

        g_assert_false(hca_link_is_away(link));
        g_assert_true(hca_link_can_send(link, false));
        g_assert_cmpuint(hca_link_downs(link), ==, 0);
        packet_send(link, false, &packet);
        hca_link_flush(link);
        packet_expect(&cable.end[!i], &packet);
    }
    link_cable_destroy(&cable);
}

/* More than a buffer has is on its way, and it is cut anywhere. */
static void test_much(void)
{
    enum {
        PACKETS = 3000
    };
    LinkCable cable;
    HcaLink *own;

    init(&cable);
    own = cable.end[0].link;
    link_cable_set_up(&cable, true);
    cable.pipe[1].capacity = 16 << 20;
    cable.pipe[1].chunk = 5000;
    g_assert_true(hca_link_depart(own));
    hca_link_flush(own);
    for (unsigned i = 0; i < PACKETS; i++) {
        Packet packet;

        packet_random(&packet, i);
        packet_send(cable.end[1].link, false, &packet);
        hca_link_flush(cable.end[1].link);
    }
    link_receive_nothing(&cable.end[1]);
    hca_link_flush(cable.end[1].link);
    g_assert_true(hca_link_drain(own));
    part(&cable);
    begin(&cable);
    for (unsigned i = 0; i < PACKETS; i++) {
        Packet packet;

        packet_random(&packet, i);
        packet_expect(&cable.end[0], &packet);
    }
    link_receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_is_up(own));
    link_cable_destroy(&cable);
}

/* The time is over: no link; that of the stream that is there is no good, either. */
static void test_limit(void)
{
    LinkCable cable;
    HcaLink *peer;

    init(&cable);
    peer = cable.end[1].link;
    link_cable_set_up(&cable, true);
    g_assert_true(hca_link_depart(cable.end[0].link));
    hca_link_flush(cable.end[0].link);
    link_receive_nothing(&cable.end[1]);
    cable.now = PATIENCE_NS - 1;
    hca_link_tick(peer);
    g_assert_true(hca_link_is_up(peer));
    cable.now++;
    hca_link_tick(peer);
    g_assert_false(hca_link_is_up(peer));
    g_assert_false(hca_link_is_away(peer));
    g_assert_true(hca_link_rx_failed(peer));
    g_assert_cmpuint(hca_link_downs(peer), ==, 1);
    link_cable_destroy(&cable);
}

/* The stream ends before anything but greetings has come by it, again and again. */
static void test_never_sure(void)
{
    LinkCable cable;

    init(&cable);
    link_cable_set_up(&cable, true);
    g_assert_true(hca_link_depart(cable.end[0].link));
    hca_link_flush(cable.end[0].link);
    link_receive_nothing(&cable.end[1]);
    for (unsigned i = 0; i < 10; i++) {
        unsigned late = i & 1;

        part(&cable);
        begin(&cable);
        link_receive_nothing(&cable.end[!late]);
        g_assert_false(hca_link_is_away(cable.end[!late].link));
        g_assert_true(hca_link_is_away(cable.end[late].link));
    }
    part(&cable);
    join(&cable);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_false(hca_link_is_away(cable.end[i].link));
        g_assert_true(hca_link_is_up(cable.end[i].link));
        g_assert_cmpuint(hca_link_downs(cable.end[i].link), ==, 0);
    }
    link_cable_destroy(&cable);
}

/* An end that greets as it was done before there were moves: it refuses ours. */
static void test_old_peer(void)
{
    const HcaGreeting old = { .enabled = true, .old = true };
    uint8_t frame[HCA_GREETING_FRAME_SIZE];
    size_t len = hca_frame_write_greeting(frame, HCA_LINK_LAYER_IB, &old);
    LinkCable cable;
    HcaLink *own;

    init(&cable);
    own = cable.end[0].link;
    for (unsigned i = 0; i < 2; i++) {
        link_pipe_empty(&cable.pipe[0]);
        hca_link_set_up(own, true);
        /* The second time it is what that end says itself. */
        g_assert_cmpuint(cable.pipe[0].bytes->len, ==,
                         i ? len : (size_t)HCA_GREETING_FRAME_SIZE);
        put_greeting(&cable.pipe[1], &old);
        link_receive_nothing(&cable.end[0]);
        g_assert_true(hca_link_is_up(own));
        g_assert_false(hca_link_depart(own));
        hca_link_set_up(own, false);
        g_assert_false(hca_link_is_up(own));
    }
    g_assert_cmpmem(cable.pipe[0].bytes->data, len, frame, len);

    /* Its successor takes that, and what is said next is of now. */
    hca_link_set_up(own, true);
    put_greeting(&cable.pipe[1],
                 &(HcaGreeting) { .enabled = true, .waits = true, .nonce = 5 });
    link_receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_is_up(own));
    g_assert_false(hca_link_depart(own));
    hca_link_set_up(own, false);
    link_pipe_empty(&cable.pipe[0]);
    hca_link_set_up(own, true);
    g_assert_cmpuint(cable.pipe[0].bytes->len, ==, HCA_GREETING_FRAME_SIZE);
    link_cable_destroy(&cable);
}

/* Who resumes what is not, or says another number, is a peer like any other. */
static void test_wrong_token(void)
{
    LinkCable cable;
    HcaLink *own;

    init(&cable);
    own = cable.end[0].link;
    hca_link_set_up(own, true);
    put_greeting(&cable.pipe[1], &(HcaGreeting) { .enabled = true,
                                                  .waits = true,
                                                  .resumes = true,
                                                  .nonce = 5,
                                                  .token = 6 });
    link_receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_is_up(own));
    g_assert_true(hca_link_depart(own));
    hca_link_set_up(own, false);
    g_assert_true(hca_link_is_up(own));
    hca_link_set_up(own, true);
    put_greeting(&cable.pipe[1], &(HcaGreeting) { .enabled = true,
                                                  .waits = true,
                                                  .resumes = true,
                                                  .nonce = 7,
                                                  .token = 6 });
    link_receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_is_up(own));
    g_assert_false(hca_link_is_away(own));
    g_assert_cmpuint(hca_link_downs(own), ==, 1);
    g_assert_cmpuint(hca_link_counters(own)->moves_lost, ==, 1);
    link_cable_destroy(&cable);
}

/* Whatever comes behind the last frame, and a last frame that may not be. */
static void test_hostile(void)
{
    static const uint8_t other_move[] = { 0xc0, 0, HCA_FRAME_MOVE, 0, 0, 0, 0,
                                          1,    1 };

    for (unsigned what = 0; what < 5; what++) {
        uint8_t move[HCA_MOVE_FRAME_SIZE], state[HCA_STATE_FRAME_SIZE];
        uint8_t packet[HCA_FRAME_HEADER_SIZE + 100] = { 0 };
        LinkPipe *pipe;
        LinkCable cable;

        init(&cable);
        if (what == 4) { /* this end has said that it does not wait */
            hca_link_set_patience(cable.end[0].link, 0);
        }
        link_cable_set_up(&cable, true);
        pipe = &cable.pipe[1];
        hca_frame_write_move(move);
        if (what < 3 || what == 4) {
            put(pipe, move, sizeof(move));
        }
        if (what == 0) {
            hca_frame_write_header(packet, HCA_FRAME_PACKET, 0, 100);
            put(pipe, packet, sizeof(packet));
        } else if (what == 1) {
            put(pipe, state, hca_frame_write_state(state, true));
        } else if (what == 2) {
            put(pipe, move, sizeof(move));
        } else if (what == 3) {
            put(pipe, other_move, sizeof(other_move));
        }
        link_receive_nothing(&cable.end[0]);
        g_assert_true(hca_link_rx_failed(cable.end[0].link));
        g_assert_false(hca_link_is_up(cable.end[0].link));
        g_assert_false(hca_link_is_away(cable.end[0].link));
        link_cable_destroy(&cable);
    }
}

/* The other end sends without end: what is kept has one. */
static void test_flood(void)
{
    uint8_t frame[HCA_FRAME_HEADER_SIZE + HCA_FRAME_MAX_PACKET] = { 0 };
    LinkCable cable;
    unsigned n = 0;

    init(&cable);
    link_cable_set_up(&cable, true);
    hca_frame_write_header(frame, HCA_FRAME_PACKET, 0, HCA_FRAME_MAX_PACKET);
    g_assert_true(hca_link_depart(cable.end[0].link));
    do {
        for (unsigned i = 0; i < 100; i++) {
            put(&cable.pipe[1], frame, sizeof(frame));
        }
        g_assert_cmpuint(++n, <, 100);
    } while (!hca_link_drain(cable.end[0].link));
    link_cable_destroy(&cable);
}

/* Nobody greets: the link of a card that was loaded does not go down. */
static void test_segment(gconstpointer opaque)
{
    LinkCable cable;
    HcaLink *own;

    link_cable_init_kind(&cable, opaque);
    own = cable.end[0].link;
    hca_link_set_patience(own, PATIENCE_NS);
    link_cable_set_up(&cable, true);
    g_assert_false(hca_link_depart(own));
    hca_link_arrive(own);
    g_assert_true(hca_link_is_up(own));
    g_assert_false(hca_link_can_send(own, false));
    hca_link_set_up(own, true);
    g_assert_true(hca_link_can_send(own, false));
    g_assert_cmpuint(hca_link_downs(own), ==, 0);

    hca_link_arrive(own);
    cable.now = PATIENCE_NS;
    hca_link_tick(own);
    g_assert_false(hca_link_is_up(own));
    g_assert_cmpuint(hca_link_downs(own), ==, 1);
    link_cable_destroy(&cable);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/link/move/waits", test_waits);
    test_add("/link/move/much", test_much);
    test_add("/link/move/limit", test_limit);
    test_add("/link/move/never-sure", test_never_sure);
    test_add("/link/move/old-peer", test_old_peer);
    test_add("/link/move/wrong-token", test_wrong_token);
    test_add("/link/move/hostile", test_hostile);
    test_add("/link/move/flood", test_flood);
    test_add_data("/link/move/segment", &link_kind_segment, test_segment);
    test_add_data("/link/move/netdev", &link_kind_netdev, test_segment);
    return g_test_run();
}
