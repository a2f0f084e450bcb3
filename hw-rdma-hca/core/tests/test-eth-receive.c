/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that the Ethernet function receives: filters, buffers and
 * checksums.
 */
#include <string.h>

#include "lib-eth.h"

#define OK RDMA_HCA_STAT_OK
#define BAD (RDMA_HCA_ETH_DONE | RDMA_HCA_ETH_ERROR)

/* ---- frames that card 0 receives ---- */

static void expect_none_received(EthBench *bench)
{
    g_assert_null(nic_receive(bench->nic, NULL));
}

static void test_rx_sizes(void)
{
    EthBench *bench = eth_bench_new(20, 4);

    for (unsigned i = 0; i < 400; i++) {
        size_t len = i < 100 ? ETH_HEADER + i
                     : i < 110
                         ? HCA_LINK_MAX_PACKET - (i - 100)
                         : eth_rand(bench, ETH_HEADER, HCA_LINK_MAX_PACKET + 1);
        GByteArray *frame = eth_make_frame(bench, bench->host->config.mac,
                                           eth_stranger, len);

        host_clear_dirty(bench->host);
        eth_inject(bench, frame->data, len);
        eth_expect_received(bench, frame->data, len, 0);
        g_assert_true(host_is_dirty(bench->host, bench->nic->rx_ring));
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(eth_count(bench, "rx_frames"), ==, 400);
    eth_bench_free(bench);
}

/* Without an Ethernet header. */
static void test_rx_short(void)
{
    EthBench *bench = eth_bench_new(21, 4);

    for (size_t len = 1; len < ETH_HEADER; len++) {
        GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger,
                                           len);

        eth_inject(bench, frame->data, len);
        expect_none_received(bench);
        g_assert_cmpuint(eth_count(bench, "rx_errors"), ==, len);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

typedef struct Hear {
    const char *what;
    uint8_t to[6];
    bool from_self;
    /* Whether it comes: own address only; with a list; allmulti; promisc. */
    bool plain, listed, allmulti, promisc;
} Hear;

static const Hear hear[] = {
    { "broadcast", { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 0, 1, 1, 1, 1 },
    { "own", { 0x02, 0, 0xc0, 0xff, 0xee, 0x10 }, 0, 1, 1, 1, 1 },
    { "neighbour", { 0x02, 0, 0xc0, 0xff, 0xee, 0x11 }, 0, 0, 0, 0, 1 },
    { "listed first", { 1, 0, 0x5e, 0, 0, 0 }, 0, 0, 1, 1, 1 },
    { "listed last", { 1, 0, 0x5e, 0, 0, 127 }, 0, 0, 1, 1, 1 },
    { "not listed", { 1, 0, 0x5e, 0, 0, 128 }, 0, 0, 0, 1, 1 },
    { "echo", { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 1, 0, 0, 0, 0 },
    { "group of own bytes",
      { 0x03, 0, 0xc0, 0xff, 0xee, 0x10 },
      0,
      0,
      0,
      1,
      1 },
};

static void check_hears(EthBench *bench, const Hear *h, bool expected)
{
    const uint8_t *from = h->from_self ? bench->host->config.mac : eth_stranger;
    GByteArray *frame = eth_make_frame(bench, h->to, from, 80);
    uint64_t filtered = eth_count(bench, "rx_filtered");

    g_test_message("%s", h->what);
    eth_inject(bench, frame->data, frame->len);
    if (expected) {
        eth_expect_received(bench, frame->data, frame->len, 0);
    }
    expect_none_received(bench);
    g_assert_cmpuint(eth_count(bench, "rx_filtered"), ==, filtered + !expected);
    g_byte_array_unref(frame);
}

static void test_rx_filter(void)
{
    uint8_t list[RDMA_HCA_RX_MODE_MAX_MULTICAST][6];
    EthBench *bench = eth_bench_new(22, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(list); i++) {
        memcpy(list[i], (uint8_t[]) { 1, 0, 0x5e, 0, 0, i }, 6);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(hear); i++) {
        const Hear *h = &hear[i];

        check_hears(bench, h, h->plain);
        g_assert_cmphex(
            nic_set_rx_mode(bench->nic, 0, list, G_N_ELEMENTS(list)), ==, OK);
        check_hears(bench, h, h->listed);
        g_assert_cmphex(
            nic_set_rx_mode(bench->nic, RDMA_HCA_RX_MODE_ALLMULTI, NULL, 0), ==,
            OK);
        check_hears(bench, h, h->allmulti);
        g_assert_cmphex(
            nic_set_rx_mode(bench->nic, RDMA_HCA_RX_MODE_PROMISC, NULL, 0), ==,
            OK);
        check_hears(bench, h, h->promisc);
        g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, NULL, 0), ==, OK);
        check_hears(bench, h, h->plain);
    }
    eth_bench_free(bench);
}

/* The interface's own address may be another than the card's. */
static void test_rx_own_address(void)
{
    EthBench *bench = eth_bench_new(23, 4);
    GByteArray *to_new = eth_make_frame(bench, eth_stranger,
                                        bench->host->config.mac, 80);
    GByteArray *to_old = eth_make_frame(bench, bench->host->config.mac,
                                        eth_broadcast, 80);
    uint8_t old[6];

    memcpy(old, bench->host->config.mac, 6);
    memcpy(bench->host->config.mac, eth_stranger, 6); /* of nic_set_rx_mode() */
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, NULL, 0), ==, OK);
    eth_inject(bench, to_new->data, to_new->len);
    eth_expect_received(bench, to_new->data, to_new->len, 0);
    eth_inject(bench, to_old->data, to_old->len);
    expect_none_received(bench);
    memcpy(bench->host->config.mac, old, 6);
    g_byte_array_unref(to_new);
    g_byte_array_unref(to_old);
    eth_bench_free(bench);
}

/* No descriptor; a buffer that is too small stays for the next frame. */
static void test_rx_no_buffer(void)
{
    EthBench *bench = eth_bench_new(24, 4);
    Nic *nic = bench->nic;
    GByteArray *small = eth_make_frame(bench, eth_broadcast, eth_stranger, 60);
    GByteArray *big = eth_make_frame(bench, eth_broadcast, eth_stranger, 61);
    struct rdma_hca_eth_rx desc;

    for (unsigned i = 0; i < 20; i++) {
        eth_inject(bench, small->data, small->len);
    }
    g_assert_cmpuint(eth_count(bench, "rx_frames"), ==, 15);
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 5);
    for (unsigned i = 0; i < 15; i++) {
        g_assert_true(nic_take_rx(nic, &desc));
    }
    nic_put_rx(nic, nic->rx_buffer[0], 60);
    nic_ring_rx(nic);
    eth_inject(bench, big->data, big->len);
    g_assert_false(nic_take_rx(nic, &desc));
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 6);
    eth_inject(bench, small->data, small->len);
    eth_expect_received(bench, small->data, small->len, 0);
    g_byte_array_unref(small);
    g_byte_array_unref(big);
    eth_bench_free(bench);
}

/* Buffers that are not RAM cost their frame, and nothing else. */
static void test_rx_bad_buffer(void)
{
    static const uint64_t nowhere[] = { 0, HOST_MMIO_BASE, UINT64_MAX - 20,
                                        UINT64_C(1) << 52 };
    EthBench *bench = eth_bench_new(25, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger, 100);
    uint64_t rom = host_alloc(bench->host, 16);
    struct rdma_hca_eth_rx desc;

    host_set_rom(bench->host, rom);
    for (unsigned i = 0; i < 15; i++) {
        eth_inject(bench, frame->data, frame->len);
        g_assert_true(nic_take_rx(nic, &desc));
    }
    for (unsigned i = 0; i <= G_N_ELEMENTS(nowhere); i++) {
        nic_put_rx(nic, i ? nowhere[i - 1] : rom, 2000);
        nic_ring_rx(nic);
        eth_inject(bench, frame->data, frame->len);
        g_assert_true(nic_take_rx(nic, &desc));
        g_assert_cmphex(desc.done, ==, BAD);
        g_assert_cmpuint(desc.len, ==, 0);
        g_assert_cmpuint(eth_count(bench, "rx_errors"), ==, i + 1);
    }
    nic_put_rx(nic, nic->rx_buffer[0], 2000);
    nic_ring_rx(nic);
    eth_inject(bench, frame->data, frame->len);
    eth_expect_received(bench, frame->data, frame->len, 0);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* ---- received checksums ---- */

static void test_rx_checksum(void)
{
    EthBench *bench = eth_bench_new(26, 4);
    unsigned good = 0;

    for (unsigned i = 0; i < eth_datagrams_number; i++) {
        GByteArray *frame = eth_make_datagram(bench, &eth_datagrams[i]);

        g_test_message("%s", eth_datagrams[i].what);
        eth_inject(bench, frame->data, frame->len);
        eth_expect_received(bench, frame->data, frame->len,
                            eth_datagrams[i].expected ? RDMA_HCA_ETH_RX_CSUM_OK
                                                      : 0);
        good += eth_datagrams[i].expected;
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(eth_count(bench, "rx_checksum_ok"), ==, good);
    eth_bench_free(bench);
}

/* Each cut off at each byte: no flag, and nothing beyond its end is read. */
static void test_rx_checksum_cut(void)
{
    EthBench *bench = eth_bench_new(27, 4);

    for (unsigned i = 0; i < eth_datagrams_number; i++) {
        const Datagram *d = &eth_datagrams[i];
        GByteArray *frame = eth_make_datagram(bench, d);
        size_t whole = frame->len - d->trailer;

        for (size_t len = ETH_HEADER; len < MIN(whole, 150); len++) {
            eth_inject(bench, frame->data, len);
            eth_expect_received(bench, frame->data, len, 0);
        }
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

/* IPv4 header lengths, versions and types that are not what they seem. */
static void test_rx_checksum_headers(void)
{
    static const struct {
        unsigned at;
        uint8_t value;
    } changes[] = {
        { 14, 0x44 }, { 14, 0x4f }, { 14, 0x65 }, { 14, 0x05 },
        { 14, 0x40 }, { 16, 0xff }, { 17, 19 },   { 17, 0 },
        { 12, 0x88 }, { 13, 0x06 }, { 23, 1 },    { 23, 0 },
    };
    const Datagram udp = { .len = 50, .corrupt = -1 };
    EthBench *bench = eth_bench_new(28, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        GByteArray *frame = eth_make_datagram(bench, &udp);

        frame->data[changes[i].at] = changes[i].value;
        eth_inject(bench, frame->data, frame->len);
        eth_expect_received(bench, frame->data, frame->len, 0);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/rx/sizes", test_rx_sizes);
    test_add("/eth/rx/short", test_rx_short);
    test_add("/eth/rx/filter", test_rx_filter);
    test_add("/eth/rx/own-address", test_rx_own_address);
    test_add("/eth/rx/no-buffer", test_rx_no_buffer);
    test_add("/eth/rx/bad-buffer", test_rx_bad_buffer);
    test_add("/eth/rx/checksum", test_rx_checksum);
    test_add("/eth/rx/checksum-cut", test_rx_checksum_cut);
    test_add("/eth/rx/checksum-headers", test_rx_checksum_headers);
    return g_test_run();
}
