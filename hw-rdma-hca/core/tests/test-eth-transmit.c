/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that the Ethernet function sends: their pieces, checksums, and the
 * doorbells that start it.
 */
#include <string.h>

#include "lib-eth.h"
#include "lib-frames.h"

#define MIN_FRAME 60u
#define MAX_FRAME (RDMA_HCA_ETH_HEADER_SIZE + RDMA_HCA_ETH_MAX_MTU)
#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define DONE RDMA_HCA_ETH_DONE

/* ---- frames that card 0 sends ---- */

static void test_tx_sizes(void)
{
    static const uint16_t sizes[] = {
        ETH_HEADER, ETH_HEADER + 1, 59,   60,   61,
        1514,       1518,           4096, 8191, MAX_FRAME,
    };
    EthBench *bench = eth_bench_new(1, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                           bench->host->config.mac, sizes[i]);

        nic_send(bench->nic, frame->data, frame->len);
        eth_expect_sent(bench, frame->data, frame->len);
        eth_expect_done(bench, 1, DONE);
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(eth_count(bench, "tx_frames"), ==, G_N_ELEMENTS(sizes));
    g_assert_cmpuint(eth_count(bench, "tx_errors"), ==, 0);
    eth_bench_free(bench);
}

/* A frame in @n pieces, empty ones among them, all over the buffer. */
static void put_pieces(EthBench *bench, const GByteArray *frame, unsigned n)
{
    uint64_t at = bench->nic->buffer;
    size_t done = 0;

    for (unsigned i = 0; i < n; i++) {
        size_t left = frame->len - done;
        size_t len = i + 1 == n              ? left
                     : eth_rand(bench, 0, 4) ? eth_rand(bench, 0, left / 2 + 1)
                                             : 0;

        host_write(bench->host, at, frame->data + done, len);
        nic_put_tx(bench->nic, at, len, i + 1 == n ? LAST : 0);
        at += len + eth_rand(bench, 0, 40);
        done += len;
    }
}

static void test_tx_pieces(void)
{
    EthBench *bench = eth_bench_new(2, 6);

    for (unsigned i = 0; i < 300; i++) {
        unsigned n = i % RDMA_HCA_ETH_MAX_PIECES + 1;
        GByteArray *frame = eth_make_frame(
            bench, eth_stranger, bench->host->config.mac,
            eth_rand(bench, ETH_HEADER, MAX_FRAME + 1));

        put_pieces(bench, frame, n);
        nic_ring_tx(bench->nic);
        eth_expect_sent(bench, frame->data, frame->len);
        eth_expect_done(bench, n, DONE);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

/* As many as fit, many times round, indices past 16 bits. */
static void test_tx_wrap(void)
{
    EthBench *bench = eth_bench_new(3, 10);
    unsigned batch = (1u << 10) - 1;
    uint8_t bytes[MIN_FRAME] = { 0 };

    for (unsigned round = 0; round < 70; round++) {
        for (unsigned i = 0; i < batch; i++) {
            uint64_t at = bench->nic->buffer + i % 128 * sizeof(bytes);

            nic_put_tx(bench->nic, at, sizeof(bytes), LAST);
        }
        nic_ring_tx(bench->nic);
        eth_expect_done(bench, batch, DONE);
        g_assert_cmpuint(g_queue_get_length(&bench->sent), ==, batch);
        frames_clear(&bench->sent);
    }
    g_assert_cmpuint(eth_count(bench, "tx_frames"), ==, 70 * batch);
    g_assert_cmpuint(eth_count(bench, "bad_doorbells"), ==, 0);
    eth_bench_free(bench);
}

/* What is in a frame is the guest's: RoCEv2 like anything else. */
static void test_tx_roce_like(void)
{
    EthBench *bench = eth_bench_new(4, 4);
    GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                       bench->host->config.mac, 100);
    static const uint8_t headers[] = {
        0x08, 0x00, 0x45, 0,  0, 86, 0, 0,    0, 0,    64,   17, 0,  0, 10,
        0,    0,    1,    10, 0, 0,  2, 0xc0, 0, 0x12, 0xb7, 0,  66, 0, 0,
    };

    memcpy(frame->data + 12, headers, sizeof(headers));
    nic_send(bench->nic, frame->data, frame->len);
    eth_expect_sent(bench, frame->data, frame->len);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

static void test_tx_refused(void)
{
    static const uint64_t nowhere[] = {
        0,
        HOST_BLOCK_SIZE - 1,
        HOST_MMIO_BASE,
        HOST_MMIO_BASE + 0x91000,
        UINT64_MAX - 99,
        UINT64_MAX,
        UINT64_C(1) << 63,
        HOST_HIGH_BASE,
    };
    EthBench *bench = eth_bench_new(5, 6);
    Nic *nic = bench->nic;

    nic_put_tx(nic, nic->buffer, ETH_HEADER - 1, LAST); /* too short */
    eth_expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, 0, LAST);
    eth_expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, MAX_FRAME + 1, LAST); /* too long */
    eth_expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, UINT16_MAX, LAST);
    eth_expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, MAX_FRAME, 0);
    nic_put_tx(nic, nic->buffer, 1, LAST);
    eth_expect_refused(bench, 2);
    for (unsigned i = 0; i < RDMA_HCA_ETH_MAX_PIECES; i++) {
        nic_put_tx(nic, nic->buffer, UINT16_MAX,
                   i + 1 == RDMA_HCA_ETH_MAX_PIECES ? LAST : 0);
    }
    eth_expect_refused(bench, RDMA_HCA_ETH_MAX_PIECES);
    for (unsigned i = 0; i < G_N_ELEMENTS(nowhere); i++) { /* not RAM */
        nic_put_tx(nic, nic->buffer, 50, 0);
        nic_put_tx(nic, nowhere[i], 50, 0);
        nic_put_tx(nic, nic->buffer, 50, LAST);
        eth_expect_refused(bench, 3);
    }
    eth_bench_free(bench);
}

/* Too many pieces: refused to the frame's end, wherever that is. */
static void test_tx_endless(void)
{
    EthBench *bench = eth_bench_new(6, 8);

    for (unsigned n = RDMA_HCA_ETH_MAX_PIECES + 1; n < 90; n++) {
        for (unsigned i = 1; i <= n; i++) {
            nic_put_tx(bench->nic, bench->nic->buffer, 10, i == n ? LAST : 0);
        }
        eth_expect_refused(bench, n);
    }
    eth_bench_free(bench);
}

/* A frame without an end waits for it; a ring full of such is worked off. */
static void test_tx_unfinished(void)
{
    EthBench *bench = eth_bench_new(7, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                       bench->host->config.mac, 90);
    uint8_t done;

    host_write(bench->host, nic->buffer, frame->data, frame->len);
    for (unsigned i = 0; i < 3; i++) {
        nic_put_tx(nic, nic->buffer + 30 * i, 30, i == 2 ? LAST : 0);
        nic_ring_tx(nic);
        if (i < 2) {
            eth_expect_none_sent(bench);
            g_assert_false(nic_take_tx(nic, &done));
        }
    }
    eth_expect_sent(bench, frame->data, frame->len);
    eth_expect_done(bench, 3, DONE);

    /* The ring has fewer places than a frame pieces: software has to reset. */
    for (unsigned i = 0; i < 15; i++) {
        nic_put_tx(nic, nic->buffer, 30, 0);
    }
    nic_ring_tx(nic);
    eth_expect_none_sent(bench);
    g_assert_false(nic_take_tx(nic, &done));
    g_assert_cmphex(nic_stop(nic), ==, OK);
    g_assert_cmphex(nic_start(nic), ==, OK);
    nic_send(nic, frame->data, frame->len);
    eth_expect_sent(bench, frame->data, frame->len);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* ---- doorbells ---- */

static void expect_bad_doorbell(EthBench *bench, uint32_t reg, uint32_t value)
{
    uint64_t bad = eth_count(bench, "bad_doorbells");

    nic_doorbell(bench->nic, reg, value);
    lab_run(bench->lab);
    g_assert_cmpuint(eth_count(bench, "bad_doorbells"), ==, bad + 1);
}

static void test_doorbells(void)
{
    EthBench *bench = eth_bench_new(8, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                       bench->host->config.mac, 64);

    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 16);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 17);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 0xffff);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 0x10000);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, UINT32_MAX);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_TAIL, 14); /* was 15 */
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_TAIL, 16);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_ARM, 17);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_ARM, 0x8000);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_ARM, 0x10000);
    eth_expect_none_sent(bench);
    g_assert_cmpuint(eth_count(bench, "interrupts"), ==, 0);

    nic_send(nic, frame->data, frame->len);
    eth_expect_sent(bench, frame->data, frame->len);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 0); /* back */
    g_assert_cmphex(nic_stop(nic), ==, OK);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 1);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_TAIL, 1);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_ARM, 0);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_ARM, 0);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* ---- checksums ---- */

/* Their places in a header. */
#define UDP_CHECKSUM 6
#define TCP_CHECKSUM 16

static void test_tx_checksum(void)
{
    EthBench *bench = eth_bench_new(9, 4);

    for (unsigned i = 0; i < 500; i++) {
        unsigned len = eth_rand(bench, ETH_HEADER + 2,
                                i % 2 ? 200 : MAX_FRAME + 1);
        unsigned start = eth_rand(bench, 0, len - 1);
        unsigned offset = eth_rand(bench, 0, len - start - 1);
        GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                           bench->host->config.mac, len);
        uint16_t value = eth_checksum(frame->data + start, len - start, 0);

        host_write(bench->host, bench->nic->buffer, frame->data, len);
        nic_put_tx(bench->nic, bench->nic->buffer, len, LAST);
        nic_want_checksum(bench->nic, start, offset);
        nic_ring_tx(bench->nic);
        eth_put16(frame->data + start + offset,
                  value || offset != UDP_CHECKSUM ? value : 0xffff);
        eth_expect_sent(bench, frame->data, len);
        eth_expect_done(bench, 1, DONE);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

/* Of UDP, 0 would be none; of TCP, 0xffff is never right (RFC 1624). */
static void test_tx_checksum_zero(void)
{
    static const unsigned offsets[] = { UDP_CHECKSUM, TCP_CHECKSUM };
    EthBench *bench = eth_bench_new(10, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(offsets); i++) {
        GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                           bench->host->config.mac, 64);

        memset(frame->data + 40, 0xff, 24); /* sums up to 0xffff */
        host_write(bench->host, bench->nic->buffer, frame->data, 64);
        nic_put_tx(bench->nic, bench->nic->buffer, 64, LAST);
        nic_want_checksum(bench->nic, 40, offsets[i]);
        nic_ring_tx(bench->nic);
        eth_put16(frame->data + 40 + offsets[i],
                  offsets[i] == UDP_CHECKSUM ? 0xffff : 0);
        eth_expect_sent(bench, frame->data, 64);
        eth_expect_done(bench, 1, DONE);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

static void test_tx_checksum_refused(void)
{
    static const struct {
        uint16_t start, offset;
    } wrong[] = {
        { 64, 0 },          { 63, 0 },  { 62, 1 },        { 0, 63 },
        { 0, 64 },          { 65, 0 },  { 0xffff, 0 },    { 0, 0xffff },
        { 0xffff, 0xffff }, { 34, 29 }, { 0xfff0, 0x20 },
    };
    EthBench *bench = eth_bench_new(11, 6);

    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        nic_put_tx(bench->nic, bench->nic->buffer, 64, LAST);
        nic_want_checksum(bench->nic, wrong[i].start, wrong[i].offset);
        eth_expect_refused(bench, 1);
    }
    eth_bench_free(bench);
}

/*
 * The cable has no room, and then has: the turn that finds it so ends with an
 * empty link, and nobody tells the card of room.
 */
static void test_room_in_turn(void)
{
    EthBench *bench = eth_bench_new(12, 8);
    Nic *nic = bench->nic;

    lab_tap(bench->lab, NULL, NULL);
    bench->lab->capacity = 4 << 20;
    bench->lab->refusals[0] = 1;
    for (unsigned i = 0; i < 200; i++) {
        nic_put_tx(nic, nic->buffer, 9000, LAST);
    }
    nic_ring_tx(nic);
    lab_run(bench->lab);
    g_assert_cmpuint(bench->lab->refusals[0], ==, 0);
    g_assert_cmpuint(eth_count(bench, "tx_frames"), ==, 200);
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/tx/sizes", test_tx_sizes);
    test_add("/eth/tx/pieces", test_tx_pieces);
    test_add("/eth/tx/wrap", test_tx_wrap);
    test_add("/eth/tx/roce-like", test_tx_roce_like);
    test_add("/eth/tx/refused", test_tx_refused);
    test_add("/eth/tx/endless", test_tx_endless);
    test_add("/eth/tx/unfinished", test_tx_unfinished);
    test_add("/eth/tx/room-in-turn", test_room_in_turn);
    test_add("/eth/tx/checksum", test_tx_checksum);
    test_add("/eth/tx/checksum-zero", test_tx_checksum_zero);
    test_add("/eth/tx/checksum-refused", test_tx_checksum_refused);
    test_add("/eth/doorbells", test_doorbells);
    return g_test_run();
}
