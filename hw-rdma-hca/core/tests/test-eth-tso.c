/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP segmentation: segments that the Ethernet function makes of a long one,
 * and what cannot be cut.
 */
#include <string.h>

#include "lib-eth.h"
#include "lib-frames.h"

#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define DONE RDMA_HCA_ETH_DONE
#define BAD (RDMA_HCA_ETH_DONE | RDMA_HCA_ETH_ERROR)
#define LOG_RING 6

#define FIN 0x01
#define PSH 0x08
#define ACK 0x10
#define ECE 0x40
#define CWR 0x80

typedef struct Long {
    const char *what;
    bool ipv6;
    unsigned tags;        /* VLAN */
    unsigned ip_options;  /* bytes */
    unsigned tcp_options; /* the same */
    unsigned mss, payload;
    uint8_t flags;
    unsigned pieces;
} Long;

static const Long longs[] = {
    { "ipv4", .mss = 1448, .payload = 1448 * 5, .flags = ACK, .pieces = 1 },
    { "ipv6", .ipv6 = true, .mss = 1428, .payload = 1428 * 4 + 1,
      .flags = ACK | PSH | FIN, .pieces = 3 },
    { "one segment", .mss = 1460, .payload = 1460, .flags = ACK | PSH,
      .pieces = 2 },
    { "less than one", .mss = 1460, .payload = 7, .flags = ACK | CWR | FIN,
      .pieces = 2 },
    { "options", .ip_options = 40, .tcp_options = 40, .mss = 536,
      .payload = 5000, .flags = ACK | CWR | ECE, .pieces = 7 },
    { "timestamps in a VLAN", .tags = 1, .tcp_options = 12, .mss = 1448,
      .payload = 64000, .flags = ACK | PSH | CWR, .pieces = 19 },
    { "two tags", .ipv6 = true, .tags = 2, .tcp_options = 12, .mss = 1200,
      .payload = 20000, .flags = ACK, .pieces = 4 },
    { "largest", .mss = 8960, .payload = 65535 - 40, .flags = ACK | PSH,
      .pieces = 17 },
    { "largest frames", .tags = 1, .mss = 8960, .payload = 65535 - 40,
      .flags = ACK, .pieces = 5 },
    { "shortest", .mss = 64, .payload = 4000, .flags = ACK | PSH | CWR | FIN,
      .pieces = 19 },
};

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static void put32(uint8_t *p, uint32_t value)
{
    eth_put16(p, value >> 16);
    eth_put16(p + 2, value);
}

static unsigned ip_start(const Long *l)
{
    return ETH_HEADER + 4 * l->tags;
}

static unsigned tcp_start(const Long *l)
{
    return ip_start(l) + (l->ipv6 ? 40 : 20 + l->ip_options);
}

static unsigned header_len(const Long *l)
{
    return tcp_start(l) + 20 + l->tcp_options;
}

static void put_ip(uint8_t *ip, const Long *l, unsigned len)
{
    memset(ip, 0, l->ipv6 ? 40 : 20 + l->ip_options);
    if (l->ipv6) {
        ip[0] = 0x60;
        eth_put16(ip + 4, MIN(len, UINT16_MAX));
        ip[6] = 6;
        ip[7] = 64;
        for (unsigned i = 8; i < 40; i++) {
            ip[i] = 0x91 * i;
        }
        return;
    }
    ip[0] = 0x45 + l->ip_options / 4;
    eth_put16(ip + 2, 20 + l->ip_options + len);
    eth_put16(ip + 4, 0xfffd); /* wraps */
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 6;
    memcpy(ip + 12, (uint8_t[]) { 192, 0, 2, 1, 198, 51, 100, 7 }, 8);
    memset(ip + 20, 1, l->ip_options);
}

/* Checksums are left out, as software does it. */
static GByteArray *make(EthBench *bench, const Long *l)
{
    GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                       bench->host->config.mac,
                                       header_len(l) + l->payload);
    uint8_t *tcp = frame->data + tcp_start(l);

    for (unsigned i = 0; i < l->tags; i++) {
        eth_put16(frame->data + 12 + 4 * i, i + 1 < l->tags ? 0x88a8 : 0x8100);
    }
    eth_put16(frame->data + ip_start(l) - 2, l->ipv6 ? 0x86dd : 0x0800);
    put_ip(frame->data + ip_start(l), l, 20 + l->tcp_options + l->payload);
    put32(tcp + 4, 0xfffffff0); /* wraps */
    tcp[12] = (20 + l->tcp_options) / 4 << 4;
    tcp[13] = l->flags;
    return frame;
}

/* As much as lies together; see post(). */
static uint64_t memory(EthBench *bench)
{
    return host_alloc(bench->host, HOST_BLOCK_SIZE / HOST_PAGE_SIZE);
}

/* Bytes of piece @i, with @left to go. The longest frames have their headers aside. */
static unsigned piece_len(EthBench *bench, const Long *l, unsigned i,
                          unsigned left)
{
    if (i + 1 == l->pieces) {
        return left;
    }
    if (!i && (l->pieces == 2 || l->payload > 60000)) {
        return header_len(l);
    }
    return eth_rand(bench, 0, left / 3 + 1);
}

/* A descriptor for cutting, and the frame in pieces. */
static unsigned post(EthBench *bench, const Long *l, const GByteArray *frame,
                     uint64_t at)
{
    unsigned done = 0;

    nic_put_tso(bench->nic, l->mss, header_len(l), ip_start(l), tcp_start(l));
    for (unsigned i = 0; i < l->pieces; i++) {
        unsigned len = piece_len(bench, l, i, frame->len - done);
        uint64_t place = i ? at : bench->nic->buffer;

        place = l->pieces == 1 ? at : place;
        host_write(bench->host, place, frame->data + done, len);
        nic_put_tx(bench->nic, place, len, i + 1 == l->pieces ? LAST : 0);
        done += len;
        at += i ? len : 0;
    }
    return l->pieces + 1;
}

/* Sum of the pseudo-header and all of the segment. */
static uint16_t tcp_sum(const Long *l, const uint8_t *frame, unsigned len)
{
    const uint8_t *ip = frame + ip_start(l);
    const uint8_t *addresses = ip + (l->ipv6 ? 8 : 12);
    uint32_t sum = 6 + len - tcp_start(l);

    for (unsigned i = 0; i < (l->ipv6 ? 32u : 8u); i += 2) {
        sum += get16(addresses + i);
    }
    return eth_checksum(frame + tcp_start(l), len - tcp_start(l), sum);
}

/* The headers of a segment, of the frame's own. */
static void check_headers(const Long *l, const uint8_t *whole,
                          const uint8_t *frame, unsigned number, unsigned done,
                          unsigned len)
{
    const uint8_t *ip = frame + ip_start(l), *tcp = frame + tcp_start(l);
    const uint8_t *whole_tcp = whole + tcp_start(l);
    unsigned size = header_len(l) - ip_start(l) + len;
    bool is_last = done + len == l->payload;
    uint8_t flags = l->flags;

    g_assert_cmpmem(frame, ip_start(l), whole, ip_start(l));
    if (l->ipv6) {
        g_assert_cmpuint(get16(ip + 4), ==, size - 40);
        g_assert_cmpmem(ip + 6, 34, whole + ip_start(l) + 6, 34);
    } else {
        g_assert_cmpuint(get16(ip + 2), ==, size);
        g_assert_cmphex(get16(ip + 4), ==, (uint16_t)(0xfffd + number));
        g_assert_cmphex(eth_checksum(ip, 20 + l->ip_options, 0), ==, 0);
        g_assert_cmpmem(ip + 12, 8, whole + ip_start(l) + 12, 8);
    }
    flags &= number ? ~CWR : 0xff;
    flags &= is_last ? 0xff : ~(FIN | PSH);
    g_assert_cmphex(tcp[13], ==, flags);
    g_assert_cmphex(get32(tcp + 4), ==, 0xfffffff0 + done);
    g_assert_cmpmem(tcp, 4, whole_tcp, 4);
    g_assert_cmpmem(tcp + 8, 5, whole_tcp + 8, 5);
    g_assert_cmpmem(tcp + 14, 2, whole_tcp + 14, 2);
    g_assert_cmpmem(tcp + 18, 2 + l->tcp_options, whole_tcp + 18,
                    2 + l->tcp_options);
    g_assert_cmphex(tcp_sum(l, frame, header_len(l) + len), ==, 0);
}

static void expect_segments(EthBench *bench, const Long *l,
                            const GByteArray *whole)
{
    unsigned number = 0, len;

    for (unsigned done = 0; done < l->payload; done += len, number++) {
        GByteArray *frame = g_queue_pop_head(&bench->sent);
        unsigned header = header_len(l);

        len = MIN(l->mss, l->payload - done);
        g_assert_nonnull(frame);
        g_assert_cmpuint(frame->len, ==, MAX(header + len, 60));
        check_headers(l, whole->data, frame->data, number, done, len);
        g_assert_cmpmem(frame->data + header, len, whole->data + header + done,
                        len);
        g_byte_array_unref(frame);
    }
    g_assert_true(g_queue_is_empty(&bench->sent));
}

static void test_segments(void)
{
    EthBench *bench = eth_bench_new(1, LOG_RING);
    uint64_t at = memory(bench), segments = 0;

    for (unsigned i = 0; i < 10 * G_N_ELEMENTS(longs); i++) {
        const Long *l = &longs[i % G_N_ELEMENTS(longs)];
        GByteArray *frame = make(bench, l);
        unsigned descriptors = post(bench, l, frame, at);

        g_test_message("%s", l->what);
        nic_ring_tx(bench->nic);
        lab_run(bench->lab);
        expect_segments(bench, l, frame);
        eth_expect_done(bench, descriptors, DONE);
        segments += (l->payload + l->mss - 1) / l->mss;
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(eth_count(bench, "tx_tso"), ==, 10 * G_N_ELEMENTS(longs));
    g_assert_cmpuint(eth_count(bench, "tx_segments"), ==, segments);
    g_assert_cmpuint(eth_count(bench, "tx_frames"), ==, segments);
    g_assert_cmpuint(eth_count(bench, "tx_errors"), ==, 0);
    eth_bench_free(bench);
}

/* What the descriptor says cannot be, or is not so. */
static void test_descriptors(void)
{
    static const struct {
        uint16_t mss, header, ip, tcp;
    } wrong[] = {
        { 0, 54, 14, 34 },      { 1, 54, 14, 34 },
        { 63, 54, 14, 34 },     { 8965, 54, 14, 34 },
        { 0xffff, 54, 14, 34 }, { 1448, 53, 14, 34 },
        { 1448, 55, 14, 34 },   { 1448, 74, 14, 34 },
        { 1448, 0, 14, 34 },    { 1448, 3054, 14, 34 },
        { 1448, 193, 14, 34 },  { 1448, 0xffff, 14, 34 },
        { 1448, 54, 13, 34 },   { 1448, 54, 15, 34 },
        { 1448, 54, 0, 34 },    { 1448, 54, 0xffff, 34 },
        { 1448, 54, 14, 33 },   { 1448, 54, 14, 35 },
        { 1448, 54, 14, 14 },   { 1448, 54, 34, 14 },
        { 1448, 54, 14, 0 },    { 1448, 54, 14, 0xffff },
        { 1448, 54, 14, 54 },
    };
    const Long l = { .mss = 1448, .payload = 3000, .flags = ACK };
    EthBench *bench = eth_bench_new(2, LOG_RING);
    GByteArray *frame = make(bench, &l);
    uint64_t at = memory(bench);

    host_write(bench->host, at, frame->data, frame->len);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_test_message("%u", i);
        nic_put_tso(bench->nic, wrong[i].mss, wrong[i].header, wrong[i].ip,
                    wrong[i].tcp);
        nic_put_tx(bench->nic, at, frame->len, LAST);
        eth_expect_refused(bench, 2);
    }
    g_assert_cmpuint(eth_count(bench, "tx_tso"), ==, 0);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* Headers that are not those of TCP, or not what the descriptor says. */
static void test_headers(void)
{
    static const struct {
        bool ipv6;
        uint8_t at, value;
    } changes[] = {
        { false, 14, 0x55 }, { false, 14, 0x44 },     { false, 14, 0x46 },
        { false, 14, 0x05 }, { false, 14, 0x65 },     { false, 23, 17 },
        { false, 20, 0x20 }, { false, 21, 1 },        { false, 34 + 12, 0x40 },
        { false, 46, 0x60 }, { false, 46, 0xf0 },     { true, 14, 0x45 },
        { true, 14, 0x50 },  { true, 20, 17 },        { true, 20, 0 },
        { true, 66, 0x40 },  { true, 54 + 12, 0xf0 },
    };
    EthBench *bench = eth_bench_new(3, LOG_RING);
    uint64_t at = memory(bench);

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        const Long l = { .ipv6 = changes[i].ipv6,
                         .mss = 1000,
                         .payload = 3000,
                         .flags = ACK,
                         .pieces = 1 };
        GByteArray *frame = make(bench, &l);

        g_test_message("%u", i);
        frame->data[changes[i].at] = changes[i].value;
        post(bench, &l, frame, at);
        eth_expect_refused(bench, 2);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

/* Lengths and pieces that do not make a frame to be cut. */
static void test_pieces(void)
{
    EthBench *bench = eth_bench_new(4, LOG_RING);
    Nic *nic = bench->nic;
    const Long l = { .mss = 1448, .payload = 3000, .flags = ACK };
    GByteArray *frame = make(bench, &l);
    uint64_t at = memory(bench);

    host_write(bench->host, at, frame->data, frame->len);
    nic_put_tso(nic, 1448, 54, 14, 34); /* nothing but headers */
    nic_put_tx(nic, at, 54, LAST);
    eth_expect_refused(bench, 2);
    nic_put_tso(nic, 1448, 54, 14, 34);
    nic_put_tx(nic, at, 20, 0);
    nic_put_tx(nic, at + 20, 33, LAST);
    eth_expect_refused(bench, 3);
    nic_put_tso(nic, 1448, 54, 14, 34); /* too much */
    nic_put_tx(nic, at, 0xffff, 0);
    nic_put_tx(nic, at, 19, LAST);
    eth_expect_refused(bench, 3);
    for (unsigned i = 0; i < RDMA_HCA_ETH_MAX_PIECES; i++) {
        if (i) {
            nic_put_tx(nic, at, UINT16_MAX,
                       i + 1 == RDMA_HCA_ETH_MAX_PIECES ? LAST : 0);
        } else {
            nic_put_tso(nic, 1448, 54, 14, 34);
        }
    }
    eth_expect_refused(bench, RDMA_HCA_ETH_MAX_PIECES);
    nic_put_tso(nic, 1448, 54, 14, 34); /* twice */
    nic_put_tso(nic, 1448, 54, 14, 34);
    nic_put_tx(nic, at, frame->len, LAST);
    eth_expect_refused(bench, 3);
    nic_put_tx(nic, at, 54, 0); /* in the middle of a frame */
    nic_put_tso(nic, 1448, 54, 14, 34);
    nic_put_tx(nic, at + 54, 100, LAST);
    eth_expect_refused(bench, 3);
    nic_put_tso(nic, 1448, 54, 14, 34); /* headers that are not RAM */
    nic_put_tx(nic, HOST_MMIO_BASE, frame->len, LAST);
    eth_expect_refused(bench, 2);
    nic_put_tso(nic, 1448, 54, 14, 34); /* the end of them */
    nic_put_tx(nic, at, 30, 0);
    nic_put_tx(nic, HOST_MMIO_BASE, 1000, LAST);
    eth_expect_refused(bench, 3);
    nic_put_tso(nic, 1448, 54, 14, 34); /* the first byte behind them */
    nic_put_tx(nic, at, 54, 0);
    nic_put_tx(nic, HOST_MMIO_BASE, 1000, LAST);
    eth_expect_refused(bench, 3);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* A descriptor alone is a frame without pieces. */
static void test_alone(void)
{
    EthBench *bench = eth_bench_new(5, LOG_RING);
    struct rdma_hca_eth_tso desc = {
        .mss = GUINT16_TO_LE(100),
        .header_len = GUINT16_TO_LE(54),
        .ip_start = GUINT16_TO_LE(14),
        .tcp_start = GUINT16_TO_LE(34),
        .flags = RDMA_HCA_ETH_TX_TSO | LAST,
    };

    nic_put_tso(bench->nic, 100, 54, 14, 34);
    host_write(bench->host, bench->nic->tx_ring, &desc, sizeof(desc));
    eth_expect_refused(bench, 1);
    eth_bench_free(bench);
}

/* Memory ends in the middle: segments in front of that leave, the rest does not. */
static void test_ends_early(void)
{
    const Long l = { .mss = 1000, .payload = 5000, .flags = ACK };
    EthBench *bench = eth_bench_new(6, LOG_RING);
    GByteArray *frame = make(bench, &l);
    uint64_t at = memory(bench);

    host_write(bench->host, at, frame->data, frame->len);
    nic_put_tso(bench->nic, l.mss, header_len(&l), 14, 34);
    nic_put_tx(bench->nic, at, header_len(&l) + 2500, 0);
    nic_put_tx(bench->nic, HOST_MMIO_BASE, 2500, LAST);
    nic_ring_tx(bench->nic);
    lab_run(bench->lab);
    g_assert_cmpuint(g_queue_get_length(&bench->sent), ==, 2);
    frames_clear(&bench->sent);
    eth_expect_done(bench, 3, BAD);
    g_assert_cmpuint(eth_count(bench, "tx_errors"), ==, 1);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* Software that changes the headers meanwhile changes nothing that is sent. */
static void test_headers_are_kept(void)
{
    const Long l = { .mss = 100, .payload = 60000, .flags = ACK, .pieces = 1 };
    EthBench *bench = eth_bench_new(7, LOG_RING);
    GByteArray *frame = make(bench, &l);
    uint64_t at = memory(bench);
    uint8_t noise[54];

    post(bench, &l, frame, at);
    nic_ring_tx(bench->nic);
    memset(noise, 0xff, sizeof(noise));
    g_assert_true(lab_step(bench->lab)); /* 64 segments of 600 */
    g_assert_cmpuint(eth_count(bench, "tx_segments"), >, 0);
    g_assert_cmpuint(eth_count(bench, "tx_segments"), <, 600);
    host_write(bench->host, at, noise, sizeof(noise));
    lab_run(bench->lab);
    expect_segments(bench, &l, frame);
    eth_expect_done(bench, 2, DONE);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* Rings that are stopped in the middle of a frame begin anew. */
static void test_stop(void)
{
    const Long l = { .mss = 100, .payload = 60000, .flags = ACK, .pieces = 1 };
    EthBench *bench = eth_bench_new(8, LOG_RING);
    GByteArray *frame = make(bench, &l);
    uint64_t at = memory(bench), sent;
    uint8_t other[100] = { 0 };

    post(bench, &l, frame, at);
    nic_ring_tx(bench->nic);
    g_assert_true(lab_step(bench->lab));
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    sent = eth_count(bench, "tx_segments");
    g_assert_cmpuint(sent, <, 600);
    frames_clear(&bench->sent);
    g_assert_cmphex(nic_start(bench->nic), ==, OK);
    nic_send(bench->nic, other, sizeof(other));
    eth_expect_sent(bench, other, sizeof(other));
    g_assert_cmpuint(eth_count(bench, "tx_segments"), ==, sent);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/tso/segments", test_segments);
    test_add("/eth/tso/descriptors", test_descriptors);
    test_add("/eth/tso/headers", test_headers);
    test_add("/eth/tso/pieces", test_pieces);
    test_add("/eth/tso/alone", test_alone);
    test_add("/eth/tso/ends-early", test_ends_early);
    test_add("/eth/tso/headers-kept", test_headers_are_kept);
    test_add("/eth/tso/stop", test_stop);
    return g_test_run();
}
