/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link: two links joined by a pipe in memory that takes and gives as few bytes
 * as it likes, and one link whose peer is the test.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "link/framing.h"
#include "link/link.h"
#include "wire/wire.h"
#include "lib-test.h"

#define MAX_PACKET HCA_FRAME_MAX_PACKET

G_STATIC_ASSERT(HCA_MAX_PACKET_SIZE <= HCA_FRAME_MAX_PACKET);

/* One direction of a stream */

typedef struct Pipe {
    GByteArray *bytes;
    size_t at; /* first byte not read */
    size_t capacity;
    size_t chunk;           /* one call moves at most this, at random; 0 all */
    int error;              /* what writes return instead, once if EINTR */
    unsigned writes, reads; /* calls that moved bytes */
    unsigned empty_reads;
    int iovcnt; /* of the last write */
    GRand *rand;
} Pipe;

static size_t pipe_level(const Pipe *pipe)
{
    return pipe->bytes->len - pipe->at;
}

static size_t pipe_cut(Pipe *pipe, size_t len)
{
    if (pipe->chunk) {
        len = g_rand_int_range(pipe->rand, 1, MIN(pipe->chunk, len) + 1);
    }
    return len;
}

static size_t iov_size(const struct iovec *iov, int iovcnt)
{
    size_t size = 0;

    for (int i = 0; i < iovcnt; i++) {
        size += iov[i].iov_len;
    }
    return size;
}

static ssize_t pipe_writev(Pipe *pipe, const struct iovec *iov, int iovcnt)
{
    size_t room = pipe->capacity - pipe_level(pipe);
    size_t left, len = iov_size(iov, iovcnt);
    int error = pipe->error;

    g_assert_cmpint(iovcnt, <=, 1024);
    g_assert_cmpuint(len, >, 0);
    if (error) {
        pipe->error = error == EINTR ? 0 : error;
        return -error;
    }
    if (!room) {
        return -EAGAIN;
    }
    len = left = pipe_cut(pipe, MIN(len, room));
    for (int i = 0; left; i++) {
        size_t n = MIN(left, iov[i].iov_len);

        g_byte_array_append(pipe->bytes, iov[i].iov_base, n);
        left -= n;
    }
    pipe->writes++;
    pipe->iovcnt = iovcnt;
    return len;
}

static ssize_t pipe_readv(Pipe *pipe, const struct iovec *iov, int iovcnt)
{
    size_t len = iov_size(iov, iovcnt);

    g_assert_cmpint(iovcnt, ==, 1);
    g_assert_cmpuint(len, >=, HCA_FRAME_MAX_SIZE);
    if (!pipe_level(pipe)) {
        pipe->empty_reads++;
        return -EAGAIN;
    }
    len = pipe_cut(pipe, MIN(len, pipe_level(pipe)));
    memcpy(iov[0].iov_base, pipe->bytes->data + pipe->at, len);
    pipe->at += len;
    if (pipe->at == pipe->bytes->len) {
        g_byte_array_set_size(pipe->bytes, 0);
        pipe->at = 0;
    }
    pipe->reads++;
    return len;
}

static void pipe_init(Pipe *pipe, uint32_t seed)
{
    *pipe = (Pipe) {
        .bytes = g_byte_array_new(),
        .capacity = 200000,
        .rand = g_rand_new_with_seed(seed),
    };
}

static void pipe_destroy(Pipe *pipe)
{
    g_byte_array_unref(pipe->bytes);
    g_rand_free(pipe->rand);
}

static void pipe_empty(Pipe *pipe)
{
    g_byte_array_set_size(pipe->bytes, 0);
    pipe->at = 0;
}

/* Two ends */

typedef struct End {
    HcaLink *link;
    Pipe *in, *out;
} End;

typedef struct Cable {
    Pipe pipe[2];
    End end[2];
} Cable;

static ssize_t op_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    return pipe_writev(((End *)opaque)->out, iov, iovcnt);
}

static ssize_t op_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    return pipe_readv(((End *)opaque)->in, iov, iovcnt);
}

static const HcaHostOps ops = {
    .link_writev = op_writev,
    .link_readv = op_readv,
};

static const uint8_t *receive(End *end, size_t *len)
{
    bool loopback;

    return hca_link_receive(end->link, len, &loopback);
}

/* Receive until there is nothing; no packet is expected. */
static void receive_nothing(End *end)
{
    size_t len;

    do {
        g_assert_null(receive(end, &len));
    } while (hca_link_rx_pending(end->link));
}

static void cable_init(Cable *cable)
{
    for (unsigned i = 0; i < 2; i++) {
        pipe_init(&cable->pipe[i], i + 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        cable->end[i].out = &cable->pipe[i];
        cable->end[i].in = &cable->pipe[!i];
        cable->end[i].link = hca_link_new(HCA_LINK_LAYER_IB, &ops,
                                          &cable->end[i]);
        hca_link_enable(cable->end[i].link, true);
    }
}

static void cable_destroy(Cable *cable)
{
    for (unsigned i = 0; i < 2; i++) {
        hca_link_free(cable->end[i].link);
        pipe_destroy(&cable->pipe[i]);
    }
}

static void cable_set_up(Cable *cable, bool up)
{
    for (unsigned i = 0; i < 2; i++) {
        pipe_empty(&cable->pipe[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        hca_link_set_up(cable->end[i].link, up);
        g_assert_false(hca_link_is_up(cable->end[i].link));
    }
    if (!up) {
        return;
    }
    while (!hca_link_is_up(cable->end[0].link) ||
           !hca_link_is_up(cable->end[1].link)) {
        for (unsigned i = 0; i < 2; i++) {
            hca_link_flush(cable->end[i].link);
            receive_nothing(&cable->end[i]);
        }
    }
}

/* Packets that are known by their number */

typedef struct Packet {
    unsigned vl;
    size_t len;
    uint8_t data[MAX_PACKET];
} Packet;

static void packet_fill(Packet *packet, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (size_t i = 0; i < packet->len; i++) {
        x = x * 1664525 + 1013904223;
        packet->data[i] = x >> 24;
    }
}

static void packet_sized(Packet *packet, uint32_t seed, size_t len)
{
    packet->vl = seed % 16;
    packet->len = len;
    packet_fill(packet, seed);
}

/* Most are short, as acknowledgements are; some are as long as can be. */
static void packet_random(Packet *packet, uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    size_t len;

    switch (g_rand_int_range(rand, 0, 8)) {
    case 0:
        len = MAX_PACKET;
        break;
    case 1:
        len = g_rand_int_range(rand, 1, MAX_PACKET + 1);
        break;
    default:
        len = g_rand_int_range(rand, 1, 200);
    }
    packet_sized(packet, seed, len);
}

static void packet_send(HcaLink *link, bool loopback, const Packet *packet)
{
    memcpy(hca_link_open(link, loopback), packet->data, packet->len);
    hca_link_close(link, loopback, packet->vl, packet->len);
}

static void packet_check(const Packet *packet, const uint8_t *got, size_t len)
{
    g_assert_nonnull(got);
    g_assert_cmpmem(got, len, packet->data, packet->len);
}

static void packet_expect(End *end, const Packet *packet)
{
    size_t len = 0;
    const uint8_t *got;

    do {
        got = receive(end, &len);
    } while (!got && hca_link_rx_pending(end->link));
    packet_check(packet, got, len);
}

/* Packets with numbers from @sent on, until the link takes no more. */
static unsigned send_some(End *end, uint32_t stream, unsigned sent,
                          unsigned total, unsigned batch)
{
    Packet *packets = g_new(Packet, batch);
    unsigned n = 0;

    while (n < batch && sent < total && hca_link_can_send(end->link, false)) {
        packet_random(&packets[n], stream + sent++);
        packet_send(end->link, false, &packets[n++]);
    }
    hca_link_flush(end->link);
    /* Nothing may refer to them any more. */
    memset(packets, 0xee, n * sizeof(*packets));
    g_free(packets);
    return sent;
}

static unsigned receive_some(End *end, uint32_t stream, unsigned received)
{
    const uint8_t *got;
    size_t len;

    while ((got = receive(end, &len))) {
        Packet packet;

        packet_random(&packet, stream + received++);
        packet_check(&packet, got, len);
    }
    return received;
}

static void check_stream(unsigned total, size_t chunk, size_t capacity,
                         unsigned batch)
{
    unsigned sent[2] = { 0 }, received[2] = { 0 };
    Cable cable;

    cable_init(&cable);
    for (unsigned i = 0; i < 2; i++) {
        cable.pipe[i].chunk = chunk;
        cable.pipe[i].capacity = capacity;
    }
    cable_set_up(&cable, true);
    while (received[0] < total || received[1] < total) {
        for (unsigned i = 0; i < 2; i++) {
            uint32_t out = i << 24, in = !i << 24;

            sent[i] = send_some(&cable.end[i], out, sent[i], total, batch);
            received[i] = receive_some(&cable.end[i], in, received[i]);
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
    cable_destroy(&cable);
}

static void test_stream_bytewise(void)
{
    check_stream(1500, 1, 200000, 5);
}

static void test_stream_small_pieces(void)
{
    check_stream(10000, 37, 1000, 20);
}

static void test_stream_pieces(void)
{
    check_stream(40000, 6000, 20000, 100);
}

static void test_stream_whole(void)
{
    check_stream(60000, 0, 200000, 200);
}

static void test_every_size(void)
{
    Cable cable;

    cable_init(&cable);
    cable_set_up(&cable, true);
    for (size_t len = 1; len <= MAX_PACKET; len++) {
        Packet packet;

        packet_sized(&packet, len, len);
        packet_send(cable.end[0].link, false, &packet);
        hca_link_flush(cable.end[0].link);
        packet_expect(&cable.end[1], &packet);
        packet_send(cable.end[0].link, true, &packet);
        packet_expect(&cable.end[0], &packet);
    }
    cable_destroy(&cable);
}

/* The frame as docs/wire.md has it. */
static void test_format(void)
{
    static const uint8_t greeting[] = {
        0xc0, 0,   1,   0,   0, 0, 0, 16, 'r', 'd', 'm', 'a',
        '-',  'h', 'c', 'a', 0, 2, 1, 1,  0,   0,   0,   0,
    };
    static const uint8_t frame[] = {
        0xc0, 15, 2, 0, 0, 0, 0, 3, 'a', 'b', 'c'
    };
    static const uint8_t state[] = {
        0xc0, 0, 3, 0, 0, 0, 0, 1, 0, /* disabled */
        0xc0, 0, 3, 0, 0, 0, 0, 1, 1, /* and enabled again */
    };
    Packet packet = { .vl = 15, .len = 3, .data = "abc" };
    Cable cable;

    cable_init(&cable);
    hca_link_set_up(cable.end[0].link, true);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len,
                    greeting, sizeof(greeting));
    cable_set_up(&cable, true);
    packet_send(cable.end[0].link, false, &packet);
    hca_link_flush(cable.end[0].link);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len, frame,
                    sizeof(frame));
    pipe_empty(&cable.pipe[0]);
    hca_link_enable(cable.end[0].link, false);
    hca_link_enable(cable.end[0].link, true);
    hca_link_flush(cable.end[0].link);
    g_assert_cmpmem(cable.pipe[0].bytes->data, cable.pipe[0].bytes->len, state,
                    sizeof(state));
    cable_destroy(&cable);
}

/* As few writes as can be. */
static void test_batch(void)
{
    g_autofree Packet *packets = g_new(Packet, 500);
    Pipe *pipe;
    Cable cable;
    unsigned n;

    cable_init(&cable);
    pipe = &cable.pipe[0];
    pipe->capacity = 1000000;
    cable_set_up(&cable, true);

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
    g_assert_cmpuint(cable.pipe[0].reads, ==, 2); /* a greeting, packets */
    cable_destroy(&cable);
}

/* A batch ends where it has no room for the longest packet. */
static void test_batch_full(void)
{
    g_autofree Packet *packets = g_new(Packet, 2000);
    unsigned n = 0, k;
    Cable cable;

    cable_init(&cable);
    cable.pipe[0].capacity = 1000000;
    cable_set_up(&cable, true);
    cable.pipe[0].writes = 0;
    while (hca_link_can_send(cable.end[0].link, false)) {
        g_assert_cmpuint(n, <, 2000);
        packet_sized(&packets[n], n, MAX_PACKET);
        packet_send(cable.end[0].link, false, &packets[n++]);
    }
    g_assert_cmpuint(n, >=, 16);
    hca_link_flush(cable.end[0].link);
    g_assert_true(hca_link_can_send(cable.end[0].link, false));
    g_assert_cmpuint(cable.pipe[0].writes, ==, 1);
    for (k = 0; k < n; k++) {
        packet_expect(&cable.end[1], &packets[k]);
    }
    cable_destroy(&cable);
}

static void test_back_pressure(void)
{
    const uint8_t *got;
    Packet a, b;
    Cable cable;
    HcaLink *link;
    size_t len;

    cable_init(&cable);
    cable_set_up(&cable, true);
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
    do {
        got = receive(&cable.end[1], &len);
        hca_link_flush(link);
    } while (!got);
    packet_check(&b, got, len);
    g_assert_true(hca_link_can_send(link, false));

    /* The other direction was free all along. */
    packet_send(cable.end[1].link, false, &b);
    hca_link_flush(cable.end[1].link);
    packet_expect(&cable.end[0], &b);
    cable_destroy(&cable);
}

static void test_interrupted(void)
{
    Packet packet;
    Cable cable;

    cable_init(&cable);
    cable_set_up(&cable, true);
    packet_sized(&packet, 1, 129);
    packet_send(cable.end[0].link, false, &packet);
    cable.pipe[0].error = EINTR;
    hca_link_flush(cable.end[0].link);
    packet_expect(&cable.end[1], &packet);
    cable_destroy(&cable);
}

static void test_no_peer(void)
{
    const HcaLinkCounters *counters;
    HcaLink *link;
    Packet packet;
    Cable cable;

    cable_init(&cable);
    link = cable.end[0].link;
    counters = hca_link_counters(link);
    packet_sized(&packet, 1, 4029);

    packet_send(link, false, &packet); /* no stream */
    hca_link_flush(link);
    hca_link_set_up(link, true); /* no greeting */
    packet_send(link, false, &packet);
    g_assert_cmpuint(counters->tx_discarded, ==, 2);

    cable_set_up(&cable, true); /* a stream that breaks */
    cable.pipe[0].error = EPIPE;
    packet_send(link, false, &packet);
    hca_link_flush(link);
    g_assert_true(hca_link_can_send(link, false));
    g_assert_false(hca_link_tx_blocked(link));
    packet_send(link, false, &packet);
    hca_link_flush(link);
    g_assert_cmpuint(counters->tx_discarded, ==, 3);

    cable.pipe[0].error = 0; /* and is made again */
    cable_set_up(&cable, true);
    packet_send(link, false, &packet);
    hca_link_flush(link);
    packet_expect(&cable.end[1], &packet);
    cable_destroy(&cable);
}

/* Without a peer the longest packet has room, however much waits. */
static void test_no_peer_room(void)
{
    static const uint8_t broken[HCA_FRAME_HEADER_SIZE];
    Packet packet;
    HcaLink *link;
    Cable cable;

    cable_init(&cable);
    link = cable.end[0].link;
    cable_set_up(&cable, true);
    cable.pipe[0].capacity = 10;
    packet_sized(&packet, 1, MAX_PACKET);
    while (hca_link_can_send(link, false)) {
        packet_send(link, false, &packet);
    }
    hca_link_flush(link);
    g_assert_true(hca_link_tx_blocked(link));
    g_byte_array_append(cable.pipe[1].bytes, broken, sizeof(broken));
    receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_rx_failed(link));
    g_assert_true(hca_link_can_send(link, false));
    packet_send(link, false, &packet);
    g_assert_cmpuint(hca_link_counters(link)->tx_discarded, ==, 1);
    cable_destroy(&cable);
}

/* The state of the peer's port */

static void pass_on(Cable *cable)
{
    hca_link_flush(cable->end[0].link);
    receive_nothing(&cable->end[1]);
}

static void test_state(void)
{
    HcaLink *own, *peer;
    Packet packet;
    Cable cable;

    cable_init(&cable);
    own = cable.end[0].link;
    peer = cable.end[1].link;
    packet_sized(&packet, 1, 100);
    cable_set_up(&cable, true);
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
    pipe_empty(&cable.pipe[0]);
    hca_link_set_up(own, true);
    hca_link_set_up(peer, true);
    pass_on(&cable);
    g_assert_true(hca_link_is_greeted(peer));
    g_assert_false(hca_link_is_up(peer));
    cable_destroy(&cable);
}

/* Packets do not come from a port that is not enabled. */
static void test_packet_of_disabled(void)
{
    uint8_t state[HCA_STATE_FRAME_SIZE];
    uint8_t frame[HCA_FRAME_HEADER_SIZE + 100] = { 0 };
    Cable cable;

    cable_init(&cable);
    cable_set_up(&cable, true);
    hca_frame_write_state(state, false);
    hca_frame_write_header(frame, HCA_FRAME_PACKET, 0, 100);
    g_byte_array_append(cable.pipe[1].bytes, state, sizeof(state));
    g_byte_array_append(cable.pipe[1].bytes, frame, sizeof(frame));
    receive_nothing(&cable.end[0]);
    g_assert_true(hca_link_rx_failed(cable.end[0].link));
    cable_destroy(&cable);
}

/* Down and up again with frames half way in every buffer. */
static void test_down_in_frame(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    Cable cable;

    cable_init(&cable);
    for (unsigned round = 0; round < 200; round++) {
        Packet packet;

        for (unsigned i = 0; i < 2; i++) {
            cable.pipe[i].chunk = 1000;
            cable.pipe[i].capacity = g_rand_int_range(rand, 100, 9000);
        }
        cable_set_up(&cable, true);
        for (unsigned i = 0; i < 2; i++) {
            send_some(&cable.end[i], i << 24, 0, 50, 10);
            receive_some(&cable.end[i], !i << 24, 0);
        }
        cable_set_up(&cable, false);
        for (unsigned i = 0; i < 2; i++) {
            g_assert_false(hca_link_tx_blocked(cable.end[i].link));
            g_assert_false(hca_link_rx_pending(cable.end[i].link));
            receive_nothing(&cable.end[i]);
        }
        packet_sized(&packet, round, 129);
        packet_send(cable.end[0].link, true, &packet);
        packet_expect(&cable.end[0], &packet);
    }
    cable_destroy(&cable);
    g_rand_free(rand);
}

/* A reset of the card must not cut frames in two. */
static void test_clear_in_frame(void)
{
    GRand *rand = g_rand_new_with_seed(6);
    Cable cable;

    cable_init(&cable);
    cable_set_up(&cable, true);
    for (unsigned round = 0; round < 300; round++) {
        Packet last;

        for (unsigned i = 0; i < 2; i++) {
            cable.pipe[i].chunk = g_rand_int_range(rand, 1, 6000);
            cable.pipe[i].capacity = g_rand_int_range(rand, 100, 9000);
        }
        packet_sized(&last, round, 4029);
        send_some(&cable.end[0], 0, 0, 20, 20);
        packet_send(cable.end[0].link, true, &last);
        receive_some(&cable.end[1], 0, 0);
        hca_link_clear(cable.end[round & 1].link);
        if (!(round & 1)) {
            receive_nothing(&cable.end[0]);
        } else {
            packet_expect(&cable.end[0], &last);
        }

        /* The rest of a frame still comes, then the new packet. */
        do {
            size_t len;

            receive(&cable.end[1], &len);
            hca_link_flush(cable.end[1].link);
            receive_nothing(&cable.end[0]);
            hca_link_flush(cable.end[0].link);
        } while (!hca_link_is_up(cable.end[0].link) ||
                 !hca_link_can_send(cable.end[0].link, false));
        packet_send(cable.end[0].link, false, &last);
        for (bool found = false; !found;) {
            size_t len;
            const uint8_t *got;

            hca_link_flush(cable.end[0].link);
            got = receive(&cable.end[1], &len);
            found = got && len == last.len && !memcmp(got, last.data, len);
            g_assert_false(hca_link_rx_failed(cable.end[1].link));
        }
        receive_nothing(&cable.end[1]);
        g_assert_true(hca_link_is_up(cable.end[1].link));
    }
    cable_destroy(&cable);
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
        Cable cable;

        memset(packet.data, 0xa5, packet.len);
        cable_init(&cable);
        cable_set_up(&cable, true);
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
        cable_destroy(&cable);
    }
}

/* A peer that is the test: bytes put on the cable by hand */

static void put(Cable *cable, const void *data, size_t len)
{
    g_byte_array_append(cable->pipe[1].bytes, data, len);
}

static void put_frame(Cable *cable, uint8_t marks, uint8_t vl, uint8_t type,
                      uint8_t zero, uint32_t len)
{
    uint8_t header[8] = { marks,     vl,        type,     zero,
                          len >> 24, len >> 16, len >> 8, len };
    g_autofree uint8_t *body = g_malloc0(8192);

    put(cable, header, sizeof(header));
    put(cable, body, MIN(len, 8192));
}

static void expect_failure(Cable *cable)
{
    HcaLink *link = cable->end[0].link;
    uint64_t errors = hca_link_counters(link)->rx_frame_errors;

    receive_nothing(&cable->end[0]);
    g_assert_true(hca_link_rx_failed(link));
    g_assert_false(hca_link_is_up(link));
    g_assert_cmpuint(hca_link_counters(link)->rx_frame_errors, ==, errors + 1);
    receive_nothing(&cable->end[0]);
    g_assert_cmpuint(hca_link_counters(link)->rx_frame_errors, ==, errors + 1);

    /* A new stream mends it. */
    cable_set_up(cable, true);
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
    Cable cable;

    cable_init(&cable);
    cable_set_up(&cable, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        size_t len;

        put_frame(&cable, 0xc0, 0, 2, 0, 100);
        put_frame(&cable, bad[i].marks, bad[i].vl, bad[i].type, bad[i].zero,
                  bad[i].len);
        put_frame(&cable, 0xc0, 0, 2, 0, 100);
        g_assert_nonnull(receive(&cable.end[0], &len));
        g_assert_cmpuint(len, ==, 100);
        expect_failure(&cable);
    }
    cable_destroy(&cable);
}

static void test_bad_greeting(void)
{
    uint8_t good[HCA_GREETING_FRAME_SIZE], bad[HCA_GREETING_FRAME_SIZE];
    Cable cable;

    cable_init(&cable);
    hca_frame_write_greeting(good, HCA_LINK_LAYER_IB, true);
    for (unsigned i = 0; i < 8 * sizeof(good); i++) {
        if (i == 8 * (HCA_FRAME_HEADER_SIZE + 11)) {
            continue; /* the state, which may be 0 or 1 */
        }
        memcpy(bad, good, sizeof(good));
        bad[i / 8] ^= 1 << i % 8;
        hca_link_set_up(cable.end[0].link, true);
        pipe_empty(&cable.pipe[1]);
        put(&cable, bad, sizeof(bad));
        put_frame(&cable, 0xc0, 0, 2, 0, MAX_PACKET); /* for long lengths */
        expect_failure(&cable);
    }

    /* A packet first. */
    hca_link_set_up(cable.end[0].link, true);
    pipe_empty(&cable.pipe[1]);
    put_frame(&cable, 0xc0, 0, 2, 0, 100);
    expect_failure(&cable);

    /* In pieces, it is not there before it is. */
    hca_link_set_up(cable.end[0].link, true);
    pipe_empty(&cable.pipe[1]);
    for (unsigned i = 0; i < sizeof(good); i++) {
        g_assert_false(hca_link_is_up(cable.end[0].link));
        put(&cable, good + i, 1);
        receive_nothing(&cable.end[0]);
    }
    g_assert_true(hca_link_is_up(cable.end[0].link));
    cable_destroy(&cable);
}

static void test_marked_bad(void)
{
    const HcaLinkCounters *counters;
    Cable cable;
    size_t len;

    cable_init(&cable);
    cable_set_up(&cable, true);
    counters = hca_link_counters(cable.end[0].link);
    put_frame(&cable, 0xc0, 0, 2, 0, 100);
    put_frame(&cable, 0xe0, 0, 2, 0, 200);
    put_frame(&cable, 0xc0, 0, 2, 0, 300);
    g_assert_nonnull(receive(&cable.end[0], &len));
    g_assert_cmpuint(len, ==, 100);
    g_assert_nonnull(receive(&cable.end[0], &len));
    g_assert_cmpuint(len, ==, 300);
    receive_nothing(&cable.end[0]);
    g_assert_cmpuint(counters->rx_marked_bad, ==, 1);
    g_assert_cmpuint(counters->rx_packets, ==, 2);
    g_assert_cmpuint(counters->rx_frame_errors, ==, 0);
    cable_destroy(&cable);
}

/* A peer that only sends rubbish does not hold the card's thread. */
static void test_flood(void)
{
    Cable cable;
    size_t len;

    cable_init(&cable);
    cable_set_up(&cable, true);
    cable.pipe[1].chunk = 1;
    for (unsigned i = 0; i < 1000; i++) {
        put_frame(&cable, 0xe0, 0, 2, 0, 1);
    }
    cable.pipe[1].reads = 0;
    g_assert_null(receive(&cable.end[0], &len));
    g_assert_cmpuint(cable.pipe[1].reads, <=, 16);
    g_assert_true(hca_link_rx_pending(cable.end[0].link));
    receive_nothing(&cable.end[0]);
    g_assert_cmpuint(hca_link_counters(cable.end[0].link)->rx_marked_bad, ==,
                     1000);
    cable_destroy(&cable);
}

/* Random bytes, and frames with a few wrong bytes. */
static void test_fuzz(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    unsigned failures = 0, packets = 0;
    Cable cable;

    cable_init(&cable);
    cable_set_up(&cable, true);
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
            got = receive(&cable.end[0], &len);
            if (got) {
                g_assert_cmpuint(len, >=, 1);
                g_assert_cmpuint(len, <=, MAX_PACKET);
                packets += got[len - 1] >= got[0];
            }
        } while (got || hca_link_rx_pending(cable.end[0].link));
        if (hca_link_rx_failed(cable.end[0].link)) {
            failures++;
            cable_set_up(&cable, true);
        }
    }
    g_assert_cmpuint(failures, >, 1000);
    g_assert_cmpuint(packets, >, 1000);
    cable_destroy(&cable);
    g_rand_free(rand);
}

/* Loopback */

static void test_loopback_full(void)
{
    unsigned sent = 0, received = 0;
    GRand *rand = g_rand_new_with_seed(8);
    Cable cable;
    End *end;

    cable_init(&cable);
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
            got = receive(end, &len);
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
    receive_nothing(end);
    cable_destroy(&cable);
    g_rand_free(rand);
}

/* By turns when both have packets. */
static void test_fair(void)
{
    bool last, loopback;
    Packet packet;
    Cable cable;
    size_t len;

    cable_init(&cable);
    cable_set_up(&cable, true);
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
    receive_nothing(&cable.end[0]);
    cable_destroy(&cable);
}

/* Loopback alone costs few reads, and does not shut out the cable. */
static void test_loopback_and_silent_cable(void)
{
    bool loopback = true;
    Packet packet;
    Cable cable;
    size_t len;

    cable_init(&cable);
    cable_set_up(&cable, true);
    packet_sized(&packet, 1, 129);
    packet_send(cable.end[0].link, true, &packet);
    cable.pipe[1].empty_reads = 0;
    for (unsigned i = 0; i < 1000; i++) {
        packet_send(cable.end[0].link, true, &packet);
        g_assert_nonnull(receive(&cable.end[0], &len));
    }
    g_assert_cmpuint(cable.pipe[1].empty_reads, <, 20);
    packet_send(cable.end[1].link, false, &packet);
    hca_link_flush(cable.end[1].link);
    for (unsigned i = 0; loopback; i++) {
        g_assert_cmpuint(i, <, 100);
        packet_send(cable.end[0].link, true, &packet);
        g_assert_nonnull(hca_link_receive(cable.end[0].link, &len, &loopback));
    }
    cable_destroy(&cable);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/link/format", test_format);
    test_add("/link/stream/bytewise", test_stream_bytewise);
    test_add("/link/stream/small-pieces", test_stream_small_pieces);
    test_add("/link/stream/pieces", test_stream_pieces);
    test_add("/link/stream/whole", test_stream_whole);
    test_add("/link/every-size", test_every_size);
    test_add("/link/batch", test_batch);
    test_add("/link/batch/full", test_batch_full);
    test_add("/link/back-pressure", test_back_pressure);
    test_add("/link/interrupted", test_interrupted);
    test_add("/link/no-peer", test_no_peer);
    test_add("/link/no-peer-room", test_no_peer_room);
    test_add("/link/state/told", test_state);
    test_add("/link/state/packet-of-disabled", test_packet_of_disabled);
    test_add("/link/clear-forgets", test_clear_forgets);
    test_add("/link/down-in-frame", test_down_in_frame);
    test_add("/link/clear-in-frame", test_clear_in_frame);
    test_add("/link/broken-frames", test_broken_frames);
    test_add("/link/bad-greeting", test_bad_greeting);
    test_add("/link/marked-bad", test_marked_bad);
    test_add("/link/flood", test_flood);
    test_add("/link/fuzz", test_fuzz);
    test_add("/link/loopback/full", test_loopback_full);
    test_add("/link/loopback/fair", test_fair);
    test_add("/link/loopback/silent-cable", test_loopback_and_silent_cable);
    return g_test_run();
}
