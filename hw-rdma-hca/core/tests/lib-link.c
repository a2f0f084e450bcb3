/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-link.h"
#include "lib-test.h"

#include <errno.h>
#include <string.h>

static size_t pipe_level(const LinkPipe *pipe)
{
    return pipe->bytes->len - pipe->at;
}

static size_t pipe_cut(LinkPipe *pipe, size_t len)
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

static ssize_t pipe_writev(LinkPipe *pipe, const struct iovec *iov, int iovcnt)
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
    return len;
}

static ssize_t pipe_readv(LinkPipe *pipe, const struct iovec *iov, int iovcnt)
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

static void pipe_init(LinkPipe *pipe, uint32_t seed)
{
    *pipe = (LinkPipe) {
        .bytes = g_byte_array_new(),
        .capacity = 200000,
        .rand = g_rand_new_with_seed(seed),
    };
}

static void pipe_destroy(LinkPipe *pipe)
{
    g_byte_array_unref(pipe->bytes);
    g_rand_free(pipe->rand);
}

void link_pipe_empty(LinkPipe *pipe)
{
    g_byte_array_set_size(pipe->bytes, 0);
    pipe->at = 0;
}

static ssize_t op_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    return pipe_writev(((LinkEnd *)opaque)->out, iov, iovcnt);
}

static ssize_t op_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    return pipe_readv(((LinkEnd *)opaque)->in, iov, iovcnt);
}

static int64_t op_clock(void *opaque)
{
    return ((LinkEnd *)opaque)->cable->now;
}

static uint64_t op_nonce(void *opaque)
{
    return ++((LinkEnd *)opaque)->cable->nonces * UINT64_C(0x9e3779b97f4a7c15);
}

static const HcaHostOps ops = {
    .clock_ns = op_clock,
    .nonce = op_nonce,
    .link_writev = op_writev,
    .link_readv = op_readv,
};

const uint8_t *link_receive(LinkEnd *end, size_t *len)
{
    bool loopback;

    return hca_link_receive(end->link, len, &loopback);
}

void link_receive_nothing(LinkEnd *end)
{
    size_t len;

    do {
        g_assert_null(link_receive(end, &len));
    } while (hca_link_rx_pending(end->link));
}

const LinkKind link_kind_ib = { "ib", HCA_LINK_LAYER_IB, HCA_CABLE_CARD };
const LinkKind link_kind_roce = { "roce", HCA_LINK_LAYER_ROCE, HCA_CABLE_CARD };
const LinkKind link_kind_segment = { "segment", HCA_LINK_LAYER_ROCE,
                                     HCA_CABLE_SEGMENT };
const LinkKind link_kind_netdev = { "netdev", HCA_LINK_LAYER_ROCE,
                                    HCA_CABLE_NETDEV };
/* Of the case that runs. */
static const LinkKind *kind_of_case = &link_kind_ib;

typedef struct LinkTest {
    const LinkKind *kind;
    GTestFunc test;
} LinkTest;

static void run_with_kind(gconstpointer opaque)
{
    const LinkTest *test = opaque;

    kind_of_case = test->kind;
    test->test();
    kind_of_case = &link_kind_ib;
}

void link_test_add(const char *path, GTestFunc test)
{
    const LinkKind *const kinds[] = { &link_kind_ib, &link_kind_roce,
                                      &link_kind_segment, &link_kind_netdev };

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        LinkTest of_kind = { kinds[i], test };

        test_add_data(test_named("%s/%s", path, kinds[i]->name),
                      test_copy(&of_kind, sizeof(of_kind)), run_with_kind);
    }
}

void link_cable_init(LinkCable *cable)
{
    link_cable_init_kind(cable, kind_of_case);
}

void link_cable_init_kind(LinkCable *cable, const LinkKind *kind)
{
    cable->now = 0;
    cable->nonces = 0;
    cable->greets = hca_framing(kind->protocol)->greets;
    cable->lanes = kind->protocol != HCA_CABLE_NETDEV;
    for (unsigned i = 0; i < 2; i++) {
        pipe_init(&cable->pipe[i], i + 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        cable->end[i].cable = cable;
        cable->end[i].out = &cable->pipe[i];
        cable->end[i].in = &cable->pipe[!i];
        cable->end[i].link = hca_link_new(kind->layer, kind->protocol,
                                          &HCA_HOST(&ops, &cable->end[i]));
        hca_link_enable(cable->end[i].link, true);
    }
}

void link_cable_destroy(LinkCable *cable)
{
    for (unsigned i = 0; i < 2; i++) {
        hca_link_free(cable->end[i].link);
        pipe_destroy(&cable->pipe[i]);
    }
}

void link_cable_set_up(LinkCable *cable, bool up)
{
    for (unsigned i = 0; i < 2; i++) {
        link_pipe_empty(&cable->pipe[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        hca_link_set_up(cable->end[i].link, up);
        g_assert_true(hca_link_is_up(cable->end[i].link) ==
                      (up && !cable->greets));
    }
    if (!up) {
        return;
    }
    while (!hca_link_is_up(cable->end[0].link) ||
           !hca_link_is_up(cable->end[1].link)) {
        for (unsigned i = 0; i < 2; i++) {
            hca_link_flush(cable->end[i].link);
            link_receive_nothing(&cable->end[i]);
        }
    }
}

static void packet_fill(Packet *packet, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (size_t i = 0; i < packet->len; i++) {
        x = x * 1664525 + 1013904223;
        packet->data[i] = x >> 24;
    }
}

void packet_sized(Packet *packet, uint32_t seed, size_t len)
{
    packet->vl = seed % 16;
    packet->len = len;
    packet_fill(packet, seed);
}

void packet_random(Packet *packet, uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    size_t len;

    switch (g_rand_int_range(rand, 0, 8)) {
    case 0:
        len = HCA_FRAME_MAX_PACKET;
        break;
    case 1:
        len = g_rand_int_range(rand, 1, HCA_FRAME_MAX_PACKET + 1);
        break;
    default:
        len = g_rand_int_range(rand, 1, 200);
    }
    packet_sized(packet, seed, len);
}

void packet_send(HcaLink *link, bool loopback, const Packet *packet)
{
    memcpy(hca_link_open(link, loopback), packet->data, packet->len);
    hca_link_close(link, loopback, packet->vl, packet->len);
}

void packet_check(const Packet *packet, const uint8_t *got, size_t len)
{
    g_assert_nonnull(got);
    g_assert_cmpmem(got, len, packet->data, packet->len);
}

void packet_expect(LinkEnd *end, const Packet *packet)
{
    size_t len = 0;
    const uint8_t *got;

    do {
        got = link_receive(end, &len);
    } while (!got && hca_link_rx_pending(end->link));
    packet_check(packet, got, len);
}

unsigned link_send_some(LinkEnd *end, uint32_t stream, unsigned sent,
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

unsigned link_receive_some(LinkEnd *end, uint32_t stream, unsigned received)
{
    const uint8_t *got;
    size_t len;

    while ((got = link_receive(end, &len))) {
        Packet packet;

        packet_random(&packet, stream + received++);
        packet_check(&packet, got, len);
        g_assert_cmpuint(hca_link_rx_vl(end->link), ==,
                         end->cable->lanes ? packet.vl : 0);
    }
    return received;
}
