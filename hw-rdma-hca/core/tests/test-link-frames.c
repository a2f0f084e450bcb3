/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is on the stream: frames as they have to be, and a peer, the test, that
 * sends others.
 */
#include <glib.h>
#include <string.h>

#include "lib-link.h"
#include "lib-test.h"

/* Of the number of a stream is known that it is there. */
static void expect_greeting(LinkPipe *pipe, const uint8_t begin[24],
                            const uint8_t token[8])
{
    g_assert_cmpuint(pipe->bytes->len, ==, HCA_GREETING_FRAME_SIZE);
    g_assert_cmpmem(pipe->bytes->data, 24, begin, 24);
    g_assert_cmpmem(pipe->bytes->data + 32, 8, token, 8);
    link_pipe_empty(pipe);
}

/* The frame as docs/wire.md has it. */
static void test_format(void)
{
    /* Behind it the stream's number, and that of no other one. */
    uint8_t greeting[] = {
        0xc0, 0,   1,   0,   0, 0, 0, 32, 'r', 'd', 'm', 'a',
        '-',  'h', 'c', 'a', 0, 4, 1, 1,  0,   0,   0,   0,
    };
    static const uint8_t no_token[8];
    static const uint8_t move[] = { 0xc0, 0, 4, 0, 0, 0, 0, 1, 0 };
    static const uint8_t frame[] = {
        0xc0, 15, 2, 0, 0, 0, 0, 3, 'a', 'b', 'c'
    };
    static const uint8_t state[] = {
        0xc0, 0, 3, 0, 0, 0, 0, 1, 0, /* disabled */
        0xc0, 0, 3, 0, 0, 0, 0, 1, 1, /* and enabled again */
    };
    Packet packet = { .vl = 15, .len = 3, .data = "abc" };
    LinkCable cable;

    link_cable_init(&cable);
    hca_link_set_up(cable.end[0].link, true);
    expect_greeting(&cable.pipe[0], greeting, no_token);
    hca_link_set_managed(cable.end[1].link, true);
    hca_link_set_up(cable.end[1].link, true);
    greeting[8 + 12] = 1;
    expect_greeting(&cable.pipe[1], greeting, no_token);
    hca_link_set_patience(cable.end[1].link, 1);
    hca_link_set_up(cable.end[1].link, false);
    hca_link_set_up(cable.end[1].link, true);
    greeting[8 + 13] = 1;
    expect_greeting(&cable.pipe[1], greeting, no_token);
    hca_link_set_patience(cable.end[0].link, 1);
    link_cable_set_up(&cable, true);
    packet_send(cable.end[0].link, false, &packet);
    hca_link_flush(cable.end[0].link);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len, frame,
                    sizeof(frame));
    link_pipe_empty(&cable.pipe[0]);
    hca_link_enable(cable.end[0].link, false);
    hca_link_enable(cable.end[0].link, true);
    hca_link_flush(cable.end[0].link);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len, state,
                    sizeof(state));
    link_pipe_empty(&cable.pipe[0]);
    g_assert_true(hca_link_depart(cable.end[0].link));
    hca_link_flush(cable.end[0].link);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len, move,
                    sizeof(move));
    link_cable_destroy(&cable);
}

/* Bytes put on the cable by hand */

static void put(LinkCable *cable, const void *data, size_t len)
{
    g_byte_array_append(cable->pipe[1].bytes, data, len);
}

static void put_frame(LinkCable *cable, uint8_t marks, uint8_t vl, uint8_t type,
                      uint8_t zero, uint32_t len)
{
    uint8_t header[8] = { marks,     vl,        type,     zero,
                          len >> 24, len >> 16, len >> 8, len };
    g_autofree uint8_t *body = g_malloc0(8192);

    put(cable, header, sizeof(header));
    put(cable, body, MIN(len, 8192));
}

static void expect_failure(LinkCable *cable)
{
    HcaLink *link = cable->end[0].link;
    uint64_t errors = hca_link_counters(link)->rx_frame_errors;

    link_receive_nothing(&cable->end[0]);
    g_assert_true(hca_link_rx_failed(link));
    g_assert_false(hca_link_is_up(link));
    g_assert_cmpuint(hca_link_counters(link)->rx_frame_errors, ==, errors + 1);
    link_receive_nothing(&cable->end[0]);
    g_assert_cmpuint(hca_link_counters(link)->rx_frame_errors, ==, errors + 1);

    /* A new stream mends it. */
    link_cable_set_up(cable, true);
    g_assert_false(hca_link_rx_failed(link));
}

static void test_broken_frames(void)
{
    static const struct {
        uint8_t marks, vl, type, zero;
        uint32_t len;
    } bad[] = {
        { 0x00, 0, 2, 0, 64 },         { 0x80, 0, 2, 0, 64 },
        { 0x40, 0, 2, 0, 64 },         { 0xc1, 0, 2, 0, 64 },
        { 0xd0, 0, 2, 0, 64 },         { 0xff, 0, 2, 0, 64 },
        { 0xc0, 16, 2, 0, 64 },        { 0xc0, 255, 2, 0, 64 },
        { 0xc0, 0, 0, 0, 64 },         { 0xc0, 0, 3, 0, 64 },
        { 0xc0, 0, 4, 0, 64 },         { 0xc0, 0, 3, 0, 2 },
        { 0xc0, 1, 3, 0, 1 },          { 0xe0, 0, 3, 0, 1 },
        { 0xc0, 0, 2, 1, 64 },         { 0xc0, 0, 2, 0, 0 },
        { 0xc0, 0, 2, 0, 9217 },       { 0xc0, 0, 2, 0, 0x10000 },
        { 0xc0, 0, 2, 0, 0x1000040 },  { 0xc0, 0, 2, 0, 0x80000000 },
        { 0xc0, 0, 2, 0, 0xffffffff }, { 0xc0, 0, 1, 0, 16 },
    };
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        size_t len;

        put_frame(&cable, 0xc0, 0, 2, 0, 100);
        put_frame(&cable, bad[i].marks, bad[i].vl, bad[i].type, bad[i].zero,
                  bad[i].len);
        put_frame(&cable, 0xc0, 0, 2, 0, 100);
        g_assert_nonnull(link_receive(&cable.end[0], &len));
        g_assert_cmpuint(len, ==, 100);
        expect_failure(&cable);
    }
    link_cable_destroy(&cable);
}

/* The state, managed, both flags, and the number. */
static bool may_be_either(size_t offset, unsigned bit)
{
    return ((offset == 11 || offset == 12) && bit == 0) ||
           (offset == 13 && bit <= 1) || (offset >= 16 && offset < 24);
}

static void test_bad_greeting(void)
{
    HcaGreeting greeting_of = { .enabled = true };
    uint8_t good[HCA_GREETING_FRAME_SIZE], bad[HCA_GREETING_FRAME_SIZE];
    LinkCable cable;

    link_cable_init(&cable);
    hca_frame_write_greeting(good, HCA_LINK_LAYER_IB, &greeting_of);
    for (unsigned i = 0; i < 8 * sizeof(good); i++) {
        if (may_be_either(i / 8 - HCA_FRAME_HEADER_SIZE, i % 8)) {
            continue;
        }
        memcpy(bad, good, sizeof(good));
        bad[i / 8] ^= 1 << i % 8;
        hca_link_set_up(cable.end[0].link, true);
        link_pipe_empty(&cable.pipe[1]);
        put(&cable, bad, sizeof(bad));
        put_frame(&cable, 0xc0, 0, 2, 0,
                  HCA_FRAME_MAX_PACKET); /* for long lengths */
        expect_failure(&cable);
    }

    /* A packet first. */
    hca_link_set_up(cable.end[0].link, true);
    link_pipe_empty(&cable.pipe[1]);
    put_frame(&cable, 0xc0, 0, 2, 0, 100);
    expect_failure(&cable);

    /* In pieces, it is not there before it is. */
    hca_link_set_up(cable.end[0].link, true);
    link_pipe_empty(&cable.pipe[1]);
    for (unsigned i = 0; i < sizeof(good); i++) {
        g_assert_false(hca_link_is_up(cable.end[0].link));
        put(&cable, good + i, 1);
        link_receive_nothing(&cable.end[0]);
    }
    g_assert_true(hca_link_is_up(cable.end[0].link));
    link_cable_destroy(&cable);
}

static void test_marked_bad(void)
{
    const HcaLinkCounters *counters;
    LinkCable cable;
    size_t len;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    counters = hca_link_counters(cable.end[0].link);
    put_frame(&cable, 0xc0, 0, 2, 0, 100);
    put_frame(&cable, 0xe0, 0, 2, 0, 200);
    put_frame(&cable, 0xc0, 0, 2, 0, 300);
    g_assert_nonnull(link_receive(&cable.end[0], &len));
    g_assert_cmpuint(len, ==, 100);
    g_assert_nonnull(link_receive(&cable.end[0], &len));
    g_assert_cmpuint(len, ==, 300);
    link_receive_nothing(&cable.end[0]);
    g_assert_cmpuint(counters->rx_marked_bad, ==, 1);
    g_assert_cmpuint(counters->rx_packets, ==, 2);
    g_assert_cmpuint(counters->rx_frame_errors, ==, 0);
    link_cable_destroy(&cable);
}

/* A peer that only sends rubbish does not hold the card's thread. */
static void test_flood(void)
{
    LinkCable cable;
    size_t len;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    cable.pipe[1].chunk = 1;
    for (unsigned i = 0; i < 1000; i++) {
        put_frame(&cable, 0xe0, 0, 2, 0, 1);
    }
    cable.pipe[1].reads = 0;
    g_assert_null(link_receive(&cable.end[0], &len));
    g_assert_cmpuint(cable.pipe[1].reads, <=, 16);
    g_assert_true(hca_link_rx_pending(cable.end[0].link));
    link_receive_nothing(&cable.end[0]);
    g_assert_cmpuint(hca_link_counters(cable.end[0].link)->rx_marked_bad, ==,
                     1000);
    link_cable_destroy(&cable);
}

/* Random bytes, and frames with a few wrong bytes. */
static void test_fuzz(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    unsigned failures = 0, packets = 0;
    LinkCable cable;

    link_cable_init(&cable);
    link_cable_set_up(&cable, true);
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t bytes[64];
        const uint8_t *got;
        size_t len;

        cable.pipe[1].chunk = g_rand_int_range(rand, 1, 100);
        for (unsigned i = 0; i < sizeof(bytes); i++) {
            bytes[i] = g_rand_int(rand);
        }
        hca_frame_write_header(bytes, HCA_FRAME_PACKET, 0,
                               g_rand_int_range(rand, 1, 57));
        if (g_rand_int_range(rand, 0, 4) == 0) {
            bytes[g_rand_int_range(rand, 0, 8)] = g_rand_int(rand);
        }
        put(&cable, bytes, 8 + MIN(bytes[7], 56));
        do {
            got = link_receive(&cable.end[0], &len);
            if (got) {
                g_assert_cmpuint(len, >=, 1);
                g_assert_cmpuint(len, <=, HCA_FRAME_MAX_PACKET);
                packets += got[len - 1] >= got[0];
            }
        } while (got || hca_link_rx_pending(cable.end[0].link));
        if (hca_link_rx_failed(cable.end[0].link)) {
            failures++;
            link_cable_set_up(&cable, true);
        }
    }
    g_assert_cmpuint(failures, >, 1000);
    g_assert_cmpuint(packets, >, 1000);
    link_cable_destroy(&cable);
    g_rand_free(rand);
}

/* ---- RoCE cards, and strangers ---- */

/* Two RoCE cards greet as InfiniBand cards do, but not each other. */
static void test_roce_greeting(void)
{
    static const uint8_t greeting[HCA_GREETING_FRAME_SIZE] = {
        0xc0, 0,   1,   0,   0, 0, 0, 32, 'r', 'd', 'm', 'a',
        '-',  'h', 'c', 'a', 0, 4, 2, 1,  0,   0,   0,   0,
    };
    static const uint8_t no_token[8];
    uint8_t managed[sizeof(greeting)];
    LinkCable cable;

    link_cable_init_kind(&cable, &link_kind_roce);
    hca_link_set_up(cable.end[0].link, true);
    expect_greeting(&cable.pipe[0], greeting, no_token);
    memcpy(managed, greeting, sizeof(managed));
    managed[HCA_FRAME_HEADER_SIZE + 10] = HCA_LINK_LAYER_IB;
    put(&cable, managed, sizeof(managed));
    expect_failure(&cable);

    /* No subnet manager has anything to say on Ethernet. */
    hca_link_set_up(cable.end[0].link, true);
    link_pipe_empty(&cable.pipe[1]);
    managed[HCA_FRAME_HEADER_SIZE + 10] = HCA_LINK_LAYER_ROCE;
    managed[HCA_FRAME_HEADER_SIZE + 12] = 1;
    put(&cable, managed, sizeof(managed));
    expect_failure(&cable);
    g_assert_false(hca_link_peer_is_managed(cable.end[0].link));
    link_cable_destroy(&cable);
}

/* A RoCE port is enabled for good, but a reset shows at the other end. */
static void test_roce_state(void)
{
    HcaLink *own, *peer;
    LinkCable cable;
    unsigned downs;

    link_cable_init_kind(&cable, &link_kind_roce);
    own = cable.end[0].link;
    peer = cable.end[1].link;
    hca_link_enable(own, false);
    link_cable_set_up(&cable, true);
    downs = hca_link_downs(peer);
    hca_link_enable(own, false);
    hca_link_flush(own);
    link_receive_nothing(&cable.end[1]);
    g_assert_cmpuint(hca_link_downs(peer), ==, downs);
    hca_link_clear(own);
    hca_link_flush(own);
    link_receive_nothing(&cable.end[1]);
    g_assert_true(hca_link_is_up(peer));
    g_assert_cmpuint(hca_link_downs(peer), ==, downs + 1);
    link_cable_destroy(&cable);
}

/* As QEMU's net/stream.c has it. */
static void test_netdev_format(void)
{
    static const uint8_t frames[] = {
        0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 1, 'd'
    };
    Packet packet = { .vl = 15, .len = 3, .data = "abc" };
    LinkCable cable;
    size_t len;

    link_cable_init_kind(&cable, &link_kind_netdev);
    link_cable_set_up(&cable, true);
    g_assert_cmpuint(cable.pipe[0].bytes->len, ==, 0);
    packet_send(cable.end[0].link, false, &packet);
    packet = (Packet) { .len = 1, .data = "d" };
    packet_send(cable.end[0].link, false, &packet);
    hca_link_flush(cable.end[0].link);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len, frames,
                    sizeof(frames));
    g_assert_cmpmem(link_receive(&cable.end[1], &len), 3, "abc", 3);
    g_assert_cmpuint(len, ==, 3);
    g_assert_cmpuint(hca_link_rx_vl(cable.end[1].link), ==, 0);
    packet_expect(&cable.end[1], &packet);
    link_receive_nothing(&cable.end[1]);
    /* There is nobody to be told. */
    hca_link_clear(cable.end[0].link);
    hca_link_flush(cable.end[0].link);
    g_assert_cmpuint(cable.pipe[0].bytes->len, ==, 0);
    link_cable_destroy(&cable);
}

static void put_netdev(LinkCable *cable, uint32_t len, uint32_t there)
{
    uint8_t header[4] = { len >> 24, len >> 16, len >> 8, len };
    g_autofree uint8_t *body = g_malloc0(there + 1);

    put(cable, header, sizeof(header));
    put(cable, body, there);
}

/* Of a frame the first @n bytes of the packet, and zeros. */
static void expect_part(LinkEnd *end, const Packet *packet, size_t n)
{
    static const uint8_t zeros[1000];
    const uint8_t *got;
    size_t len;

    got = link_receive(end, &len);
    g_assert_cmpuint(len, ==, packet->len);
    g_assert_cmpmem(got, n, packet->data, n);
    g_assert_cmpmem(got + n, len - n, zeros, packet->len - n);
}

/*
 * A reset with so many frames on the cable, and so many bytes of the next one:
 * that one ends, in zeros, and what is sent then is whole.
 */
static void netdev_reset(unsigned whole, unsigned part)
{
    Packet packet, next;
    LinkCable cable;
    HcaLink *link;

    link_cable_init_kind(&cable, &link_kind_netdev);
    link_cable_set_up(&cable, true);
    link = cable.end[0].link;
    packet_sized(&packet, 1, 1000);
    packet_sized(&next, 2, 1000);
    cable.pipe[0].capacity = whole * (HCA_NETDEV_HEADER_SIZE + 1000) + part;
    for (unsigned i = 0; i < whole + 2; i++) {
        g_assert_true(hca_link_can_send(link, false));
        packet_send(link, false, &packet);
    }
    hca_link_flush(link);
    g_assert_true(hca_link_tx_blocked(link));
    hca_link_clear(link);
    g_assert_cmpint(hca_link_tx_blocked(link), ==, part > 0);
    cable.pipe[0].capacity = 1000000;
    if (part) {
        hca_link_flush(link);
    }
    packet_send(link, false, &next);
    hca_link_flush(link);
    for (unsigned i = 0; i < whole; i++) {
        packet_expect(&cable.end[1], &packet);
    }
    if (part) {
        expect_part(&cable.end[1], &packet, part - HCA_NETDEV_HEADER_SIZE);
    }
    packet_expect(&cable.end[1], &next);
    link_receive_nothing(&cable.end[1]);
    link_cable_destroy(&cable);
}

/* Also far behind in what waits to be sent. */
static void test_netdev_reset(void)
{
    netdev_reset(2, 500);
    netdev_reset(200, 500);
}

static void test_netdev_reset_between(void)
{
    netdev_reset(2, 0);
}

/* What cannot be a packet of a link is lost alone; what is none, the stream. */
static void test_netdev_lengths(void)
{
    static const uint32_t lost[] = { 0, HCA_FRAME_MAX_PACKET + 1, 65535, 65536,
                                     HCA_NETDEV_MAX_FRAME };
    static const uint32_t broken[] = { HCA_NETDEV_MAX_FRAME + 1, 0x1000000,
                                       0x80000000, UINT32_MAX };
    LinkCable cable;
    size_t len;

    link_cable_init_kind(&cable, &link_kind_netdev);
    link_cable_set_up(&cable, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(lost); i++) {
        put_netdev(&cable, lost[i], lost[i]);
        put_netdev(&cable, HCA_FRAME_MAX_PACKET, HCA_FRAME_MAX_PACKET);
        do {
        } while (!link_receive(&cable.end[0], &len));
        g_assert_cmpuint(len, ==, HCA_FRAME_MAX_PACKET);
        g_assert_cmpuint(hca_link_counters(cable.end[0].link)->rx_marked_bad,
                         ==, i + 1);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(broken); i++) {
        put_netdev(&cable, 100, 100);
        put_netdev(&cable, broken[i], 8192);
        g_assert_nonnull(link_receive(&cable.end[0], &len));
        link_receive_nothing(&cable.end[0]);
        g_assert_true(hca_link_rx_failed(cable.end[0].link));
        link_cable_set_up(&cable, true);
    }
    link_cable_destroy(&cable);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/link/format", test_format);
    test_add("/link/broken-frames", test_broken_frames);
    test_add("/link/bad-greeting", test_bad_greeting);
    test_add("/link/marked-bad", test_marked_bad);
    test_add("/link/flood", test_flood);
    test_add("/link/fuzz", test_fuzz);
    test_add("/link/roce/greeting", test_roce_greeting);
    test_add("/link/roce/state", test_roce_state);
    test_add("/link/netdev/format", test_netdev_format);
    test_add("/link/netdev/lengths", test_netdev_lengths);
    test_add("/link/netdev/reset", test_netdev_reset);
    test_add("/link/netdev/reset-between", test_netdev_reset_between);
    return g_test_run();
}
