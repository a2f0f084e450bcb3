/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function: rings, filters, checksums, interrupts, and what a
 * hostile driver or segment can do. Card 0 is looked at; most tests lend card
 * 1's end of the cable.
 */
#include <string.h>

#include "../link/framing.h"
#include "lib-nic.h"
#include "lib-pair.h"

#define HEADER 14u
#define MIN_FRAME 60u
#define MAX_FRAME (RDMA_HCA_ETH_HEADER_SIZE + RDMA_HCA_ETH_MAX_MTU)
#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define DONE RDMA_HCA_ETH_DONE
#define BAD (RDMA_HCA_ETH_DONE | RDMA_HCA_ETH_ERROR)

static const uint8_t stranger[6] = { 0x02, 0, 0, 0, 0, 0x99 };
static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

typedef struct Bench {
    Lab *lab;
    Host *host; /* 0 */
    Driver *drv;
    Nic *nic;
    GQueue sent; /* GByteArray: frames that card 0 sent */
} Bench;

static CableFate take_frame(void *opaque, unsigned from, uint8_t *packet,
                            size_t len)
{
    Bench *bench = opaque;

    if (from == 0) {
        GByteArray *frame = g_byte_array_new();

        g_byte_array_append(frame, packet, len);
        g_queue_push_tail(&bench->sent, frame);
    }
    return CABLE_DROP;
}

/* The machine's own, which the test's wrapper asks. */
static void *(*host_dma_map)(void *opaque, uint64_t addr, uint64_t *len,
                             bool is_write);

/* Memory in pieces of a page at most, as the spec of dma_map allows. */
static void *page_dma_map(void *opaque, uint64_t addr, uint64_t *len,
                          bool is_write)
{
    *len = MIN(*len, HOST_PAGE_SIZE - addr % HOST_PAGE_SIZE);
    return host_dma_map(opaque, addr, len, is_write);
}

static Bench *bench_new(uint32_t seed, unsigned log)
{
    Bench *bench = g_new0(Bench, 1);
    HcaConfig config[2];

    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
    bench->lab = lab_new(seed, config);
    bench->host = &bench->lab->host[0];
    host_dma_map = bench->host->ops.dma_map;
    bench->host->ops.dma_map = page_dma_map;
    g_queue_init(&bench->sent);
    lab_tap(bench->lab, take_frame, bench);
    lab_cable(bench->lab, true);
    bench->drv = driver_new(bench->host);
    bench->nic = nic_new(bench->drv, log);
    lab_run(bench->lab);
    return bench;
}

static void frame_unref(gpointer frame)
{
    g_byte_array_unref(frame);
}

static void bench_free(Bench *bench)
{
    g_assert_cmpuint(bench->host->msix_bad, ==, 0);
    g_queue_clear_full(&bench->sent, frame_unref);
    nic_free(bench->nic);
    driver_free(bench->drv);
    lab_free(bench->lab);
    g_free(bench);
}

static uint64_t count(Bench *bench, const char *name)
{
    return nic_counter(bench->host, name);
}

static uint32_t rnd(Bench *bench, uint32_t begin, uint32_t end)
{
    return begin + g_rand_int(bench->lab->rand) % (end - begin);
}

static GByteArray *make_frame(Bench *bench, const uint8_t *to,
                              const uint8_t *from, size_t len)
{
    GByteArray *frame = g_byte_array_new();

    g_byte_array_set_size(frame, len);
    for (size_t i = 0; i < len; i++) {
        frame->data[i] = g_rand_int(bench->lab->rand);
    }
    memcpy(frame->data, to, MIN(len, 6));
    if (len >= 12) {
        memcpy(frame->data + 6, from, 6);
    }
    if (len >= HEADER) {
        frame->data[12] = 0x88; /* local experimental */
        frame->data[13] = 0xb5;
    }
    return frame;
}

/* ---- frames that card 0 sends ---- */

static GByteArray *next_sent(Bench *bench)
{
    lab_run(bench->lab);
    return g_queue_pop_head(&bench->sent);
}

static void expect_none_sent(Bench *bench)
{
    g_assert_null(next_sent(bench));
}

/* The next frame that left is @frame, filled up. */
static void expect_sent(Bench *bench, const uint8_t *frame, size_t len)
{
    static const uint8_t zeros[MIN_FRAME];
    GByteArray *sent = next_sent(bench);

    g_assert_nonnull(sent);
    g_assert_cmpmem(sent->data, MIN(sent->len, len), frame, len);
    g_assert_cmpuint(sent->len, ==, MAX(len, MIN_FRAME));
    g_assert_cmpmem(sent->data + len, sent->len - len, zeros, sent->len - len);
    g_byte_array_unref(sent);
}

/* @n descriptors are done, the last one with @last. */
static void expect_done(Bench *bench, unsigned n, uint8_t last)
{
    uint8_t done;

    lab_run(bench->lab);
    for (unsigned i = 0; i < n; i++) {
        g_assert_true(nic_take_tx(bench->nic, &done));
        g_assert_cmphex(done, ==, i + 1 == n ? last : DONE);
    }
    g_assert_false(nic_take_tx(bench->nic, &done));
}

static void test_tx_sizes(void)
{
    static const uint16_t sizes[] = {
        HEADER, HEADER + 1, 59, 60, 61, 1514, 1518, 4096, 8191, MAX_FRAME,
    };
    Bench *bench = bench_new(1, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                       sizes[i]);

        nic_send(bench->nic, frame->data, frame->len);
        expect_sent(bench, frame->data, frame->len);
        expect_done(bench, 1, DONE);
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(count(bench, "tx_frames"), ==, G_N_ELEMENTS(sizes));
    g_assert_cmpuint(count(bench, "tx_errors"), ==, 0);
    bench_free(bench);
}

/* A frame in @n pieces, empty ones among them, all over the buffer. */
static void put_pieces(Bench *bench, const GByteArray *frame, unsigned n)
{
    uint64_t at = bench->nic->buffer;
    size_t done = 0;

    for (unsigned i = 0; i < n; i++) {
        size_t left = frame->len - done;
        size_t len = i + 1 == n         ? left
                     : rnd(bench, 0, 4) ? rnd(bench, 0, left / 2 + 1)
                                        : 0;

        host_write(bench->host, at, frame->data + done, len);
        nic_put_tx(bench->nic, at, len, i + 1 == n ? LAST : 0);
        at += len + rnd(bench, 0, 40);
        done += len;
    }
}

static void test_tx_pieces(void)
{
    Bench *bench = bench_new(2, 6);

    for (unsigned i = 0; i < 300; i++) {
        unsigned n = i % RDMA_HCA_ETH_MAX_PIECES + 1;
        GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                       rnd(bench, HEADER, MAX_FRAME + 1));

        put_pieces(bench, frame, n);
        nic_ring_tx(bench->nic);
        expect_sent(bench, frame->data, frame->len);
        expect_done(bench, n, DONE);
        g_byte_array_unref(frame);
    }
    bench_free(bench);
}

/* As many as fit, many times round, indices past 16 bits. */
static void test_tx_wrap(void)
{
    Bench *bench = bench_new(3, 10);
    unsigned batch = (1u << 10) - 1;
    uint8_t bytes[MIN_FRAME] = { 0 };

    for (unsigned round = 0; round < 70; round++) {
        for (unsigned i = 0; i < batch; i++) {
            uint64_t at = bench->nic->buffer + i % 128 * sizeof(bytes);

            nic_put_tx(bench->nic, at, sizeof(bytes), LAST);
        }
        nic_ring_tx(bench->nic);
        expect_done(bench, batch, DONE);
        g_assert_cmpuint(g_queue_get_length(&bench->sent), ==, batch);
        g_queue_clear_full(&bench->sent, frame_unref);
    }
    g_assert_cmpuint(count(bench, "tx_frames"), ==, 70 * batch);
    g_assert_cmpuint(count(bench, "bad_doorbells"), ==, 0);
    bench_free(bench);
}

/* What is in a frame is the guest's: RoCEv2 like anything else. */
static void test_tx_roce_like(void)
{
    Bench *bench = bench_new(4, 4);
    GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                   100);
    static const uint8_t headers[] = {
        0x08, 0x00, 0x45, 0,  0, 86, 0, 0,    0, 0,    64,   17, 0,  0, 10,
        0,    0,    1,    10, 0, 0,  2, 0xc0, 0, 0x12, 0xb7, 0,  66, 0, 0,
    };

    memcpy(frame->data + 12, headers, sizeof(headers));
    nic_send(bench->nic, frame->data, frame->len);
    expect_sent(bench, frame->data, frame->len);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* The ring goes on after what could not be sent. */
static void expect_refused(Bench *bench, unsigned n)
{
    GByteArray *good = make_frame(bench, stranger, bench->host->config.mac,
                                  100);
    uint64_t errors = count(bench, "tx_errors");

    nic_ring_tx(bench->nic);
    expect_none_sent(bench);
    expect_done(bench, n, BAD);
    g_assert_cmpuint(count(bench, "tx_errors"), ==, errors + 1);
    nic_send(bench->nic, good->data, good->len);
    expect_sent(bench, good->data, good->len);
    expect_done(bench, 1, DONE);
    g_byte_array_unref(good);
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
    Bench *bench = bench_new(5, 6);
    Nic *nic = bench->nic;

    nic_put_tx(nic, nic->buffer, HEADER - 1, LAST); /* too short */
    expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, 0, LAST);
    expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, MAX_FRAME + 1, LAST); /* too long */
    expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, UINT16_MAX, LAST);
    expect_refused(bench, 1);
    nic_put_tx(nic, nic->buffer, MAX_FRAME, 0);
    nic_put_tx(nic, nic->buffer, 1, LAST);
    expect_refused(bench, 2);
    for (unsigned i = 0; i < RDMA_HCA_ETH_MAX_PIECES; i++) {
        nic_put_tx(nic, nic->buffer, UINT16_MAX,
                   i + 1 == RDMA_HCA_ETH_MAX_PIECES ? LAST : 0);
    }
    expect_refused(bench, RDMA_HCA_ETH_MAX_PIECES);
    for (unsigned i = 0; i < G_N_ELEMENTS(nowhere); i++) { /* not RAM */
        nic_put_tx(nic, nic->buffer, 50, 0);
        nic_put_tx(nic, nowhere[i], 50, 0);
        nic_put_tx(nic, nic->buffer, 50, LAST);
        expect_refused(bench, 3);
    }
    bench_free(bench);
}

/* Too many pieces: refused to the frame's end, wherever that is. */
static void test_tx_endless(void)
{
    Bench *bench = bench_new(6, 8);

    for (unsigned n = RDMA_HCA_ETH_MAX_PIECES + 1; n < 90; n++) {
        for (unsigned i = 1; i <= n; i++) {
            nic_put_tx(bench->nic, bench->nic->buffer, 10, i == n ? LAST : 0);
        }
        expect_refused(bench, n);
    }
    bench_free(bench);
}

/* A frame without an end waits for it; a ring full of such is worked off. */
static void test_tx_unfinished(void)
{
    Bench *bench = bench_new(7, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                   90);
    uint8_t done;

    host_write(bench->host, nic->buffer, frame->data, frame->len);
    for (unsigned i = 0; i < 3; i++) {
        nic_put_tx(nic, nic->buffer + 30 * i, 30, i == 2 ? LAST : 0);
        nic_ring_tx(nic);
        if (i < 2) {
            expect_none_sent(bench);
            g_assert_false(nic_take_tx(nic, &done));
        }
    }
    expect_sent(bench, frame->data, frame->len);
    expect_done(bench, 3, DONE);

    /* The ring has fewer places than a frame pieces: software has to reset. */
    for (unsigned i = 0; i < 15; i++) {
        nic_put_tx(nic, nic->buffer, 30, 0);
    }
    nic_ring_tx(nic);
    expect_none_sent(bench);
    g_assert_false(nic_take_tx(nic, &done));
    g_assert_cmphex(nic_stop(nic), ==, OK);
    g_assert_cmphex(nic_start(nic), ==, OK);
    nic_send(nic, frame->data, frame->len);
    expect_sent(bench, frame->data, frame->len);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* ---- doorbells ---- */

static void expect_bad_doorbell(Bench *bench, uint32_t reg, uint32_t value)
{
    uint64_t bad = count(bench, "bad_doorbells");

    nic_doorbell(bench->nic, reg, value);
    lab_run(bench->lab);
    g_assert_cmpuint(count(bench, "bad_doorbells"), ==, bad + 1);
}

static void test_doorbells(void)
{
    Bench *bench = bench_new(8, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                   64);

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
    expect_none_sent(bench);
    g_assert_cmpuint(count(bench, "interrupts"), ==, 0);

    nic_send(nic, frame->data, frame->len);
    expect_sent(bench, frame->data, frame->len);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 0); /* back */
    g_assert_cmphex(nic_stop(nic), ==, OK);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_TAIL, 1);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_TAIL, 1);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_TX_ARM, 0);
    expect_bad_doorbell(bench, RDMA_HCA_ETH_DB_RX_ARM, 0);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* ---- checksums ---- */

/* RFC 1071, byte by byte. */
static uint16_t checksum(const uint8_t *data, size_t len, uint32_t sum)
{
    for (size_t i = 0; i < len; i++) {
        sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

static void put16(uint8_t *p, uint16_t value)
{
    p[0] = value >> 8;
    p[1] = value;
}

static uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static void test_tx_checksum(void)
{
    Bench *bench = bench_new(9, 4);

    for (unsigned i = 0; i < 500; i++) {
        unsigned len = rnd(bench, HEADER + 2, i % 2 ? 200 : MAX_FRAME + 1);
        unsigned start = rnd(bench, 0, len - 1);
        unsigned offset = rnd(bench, 0, len - start - 1);
        GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                       len);
        uint16_t value = checksum(frame->data + start, len - start, 0);

        host_write(bench->host, bench->nic->buffer, frame->data, len);
        nic_put_tx(bench->nic, bench->nic->buffer, len, LAST);
        nic_want_checksum(bench->nic, start, offset);
        nic_ring_tx(bench->nic);
        put16(frame->data + start + offset, value ? value : 0xffff);
        expect_sent(bench, frame->data, len);
        expect_done(bench, 1, DONE);
        g_byte_array_unref(frame);
    }
    bench_free(bench);
}

static void test_tx_checksum_zero(void)
{
    Bench *bench = bench_new(10, 4);
    GByteArray *frame = make_frame(bench, stranger, bench->host->config.mac,
                                   64);

    memset(frame->data + 40, 0xff, 24); /* sums up to 0xffff */
    host_write(bench->host, bench->nic->buffer, frame->data, 64);
    nic_put_tx(bench->nic, bench->nic->buffer, 64, LAST);
    nic_want_checksum(bench->nic, 40, 6);
    nic_ring_tx(bench->nic);
    expect_sent(bench, frame->data, 64); /* 0xffff in place of 0 */
    g_byte_array_unref(frame);
    bench_free(bench);
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
    Bench *bench = bench_new(11, 6);

    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        nic_put_tx(bench->nic, bench->nic->buffer, 64, LAST);
        nic_want_checksum(bench->nic, wrong[i].start, wrong[i].offset);
        expect_refused(bench, 1);
    }
    bench_free(bench);
}

/* ---- frames that card 0 receives ---- */

static void inject(Bench *bench, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(bench->lab, 1, header, sizeof(header));
    lab_cable_inject(bench->lab, 1, frame, len);
    lab_run(bench->lab);
}

static void expect_received(Bench *bench, const uint8_t *frame, size_t len,
                            uint8_t flags)
{
    uint8_t got_flags;
    GByteArray *got = nic_receive(bench->nic, &got_flags);

    g_assert_nonnull(got);
    g_assert_cmpmem(got->data, got->len, frame, len);
    g_assert_cmphex(got_flags, ==, flags);
    g_byte_array_unref(got);
}

static void expect_none_received(Bench *bench)
{
    g_assert_null(nic_receive(bench->nic, NULL));
}

static void test_rx_sizes(void)
{
    Bench *bench = bench_new(20, 4);

    for (unsigned i = 0; i < 400; i++) {
        size_t len = i < 100   ? HEADER + i
                     : i < 110 ? HCA_LINK_MAX_PACKET - (i - 100)
                               : rnd(bench, HEADER, HCA_LINK_MAX_PACKET + 1);
        GByteArray *frame = make_frame(bench, bench->host->config.mac, stranger,
                                       len);

        host_clear_dirty(bench->host);
        inject(bench, frame->data, len);
        expect_received(bench, frame->data, len, 0);
        g_assert_true(host_is_dirty(bench->host, bench->nic->rx_ring));
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(count(bench, "rx_frames"), ==, 400);
    bench_free(bench);
}

/* Without an Ethernet header. */
static void test_rx_short(void)
{
    Bench *bench = bench_new(21, 4);

    for (size_t len = 1; len < HEADER; len++) {
        GByteArray *frame = make_frame(bench, broadcast, stranger, len);

        inject(bench, frame->data, len);
        expect_none_received(bench);
        g_assert_cmpuint(count(bench, "rx_errors"), ==, len);
        g_byte_array_unref(frame);
    }
    bench_free(bench);
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

static void check_hears(Bench *bench, const Hear *h, bool expected)
{
    const uint8_t *from = h->from_self ? bench->host->config.mac : stranger;
    GByteArray *frame = make_frame(bench, h->to, from, 80);
    uint64_t filtered = count(bench, "rx_filtered");

    g_test_message("%s", h->what);
    inject(bench, frame->data, frame->len);
    if (expected) {
        expect_received(bench, frame->data, frame->len, 0);
    }
    expect_none_received(bench);
    g_assert_cmpuint(count(bench, "rx_filtered"), ==, filtered + !expected);
    g_byte_array_unref(frame);
}

static void test_rx_filter(void)
{
    uint8_t list[RDMA_HCA_RX_MODE_MAX_MULTICAST][6];
    Bench *bench = bench_new(22, 4);

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
    bench_free(bench);
}

/* The interface's own address may be another than the card's. */
static void test_rx_own_address(void)
{
    Bench *bench = bench_new(23, 4);
    GByteArray *to_new = make_frame(bench, stranger, bench->host->config.mac,
                                    80);
    GByteArray *to_old = make_frame(bench, bench->host->config.mac, broadcast,
                                    80);
    uint8_t old[6];

    memcpy(old, bench->host->config.mac, 6);
    memcpy(bench->host->config.mac, stranger, 6); /* of nic_set_rx_mode() */
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, NULL, 0), ==, OK);
    inject(bench, to_new->data, to_new->len);
    expect_received(bench, to_new->data, to_new->len, 0);
    inject(bench, to_old->data, to_old->len);
    expect_none_received(bench);
    memcpy(bench->host->config.mac, old, 6);
    g_byte_array_unref(to_new);
    g_byte_array_unref(to_old);
    bench_free(bench);
}

/* No descriptor; a buffer that is too small stays for the next frame. */
static void test_rx_no_buffer(void)
{
    Bench *bench = bench_new(24, 4);
    Nic *nic = bench->nic;
    GByteArray *small = make_frame(bench, broadcast, stranger, 60);
    GByteArray *big = make_frame(bench, broadcast, stranger, 61);
    struct rdma_hca_eth_rx desc;

    for (unsigned i = 0; i < 20; i++) {
        inject(bench, small->data, small->len);
    }
    g_assert_cmpuint(count(bench, "rx_frames"), ==, 15);
    g_assert_cmpuint(count(bench, "rx_no_buffer"), ==, 5);
    for (unsigned i = 0; i < 15; i++) {
        g_assert_true(nic_take_rx(nic, &desc));
    }
    nic_put_rx(nic, nic->rx_buffer[0], 60);
    nic_ring_rx(nic);
    inject(bench, big->data, big->len);
    g_assert_false(nic_take_rx(nic, &desc));
    g_assert_cmpuint(count(bench, "rx_no_buffer"), ==, 6);
    inject(bench, small->data, small->len);
    expect_received(bench, small->data, small->len, 0);
    g_byte_array_unref(small);
    g_byte_array_unref(big);
    bench_free(bench);
}

/* Buffers that are not RAM cost their frame, and nothing else. */
static void test_rx_bad_buffer(void)
{
    static const uint64_t nowhere[] = { 0, HOST_MMIO_BASE, UINT64_MAX - 20,
                                        UINT64_C(1) << 52 };
    Bench *bench = bench_new(25, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = make_frame(bench, broadcast, stranger, 100);
    uint64_t rom = host_alloc(bench->host, 16);
    struct rdma_hca_eth_rx desc;

    host_set_rom(bench->host, rom);
    for (unsigned i = 0; i < 15; i++) {
        inject(bench, frame->data, frame->len);
        g_assert_true(nic_take_rx(nic, &desc));
    }
    for (unsigned i = 0; i <= G_N_ELEMENTS(nowhere); i++) {
        nic_put_rx(nic, i ? nowhere[i - 1] : rom, 2000);
        nic_ring_rx(nic);
        inject(bench, frame->data, frame->len);
        g_assert_true(nic_take_rx(nic, &desc));
        g_assert_cmphex(desc.done, ==, BAD);
        g_assert_cmpuint(desc.len, ==, 0);
        g_assert_cmpuint(count(bench, "rx_errors"), ==, i + 1);
    }
    nic_put_rx(nic, nic->rx_buffer[0], 2000);
    nic_ring_rx(nic);
    inject(bench, frame->data, frame->len);
    expect_received(bench, frame->data, frame->len, 0);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* ---- received checksums ---- */

typedef struct Datagram {
    const char *what;
    bool ipv6, vlan, tcp;
    unsigned len;     /* of the TCP or UDP part */
    unsigned trailer; /* behind the datagram */
    unsigned options; /* of IPv4, bytes */
    /* What a test changes. */
    uint16_t fragment; /* the word of IPv4 */
    bool no_checksum;
    int corrupt; /* byte of the TCP or UDP part, -1: none */
    int cut;     /* bytes missing at the end */
    int udp_len; /* too many */
    bool expected;
} Datagram;

static const Datagram datagrams[] = {
    { "udp4", .len = 8, .corrupt = -1, .expected = true },
    { "udp4 odd", .len = 201, .corrupt = -1, .expected = true },
    { "tcp4", .tcp = true, .len = 20, .corrupt = -1, .expected = true },
    { "tcp4 long", .tcp = true, .len = 8000, .corrupt = -1, .expected = true },
    { "tcp4 vlan", .tcp = true, .vlan = true, .len = 99, .corrupt = -1,
      .expected = true },
    { "tcp4 options", .tcp = true, .len = 99, .options = 40, .corrupt = -1,
      .expected = true },
    { "udp4 trailer", .len = 9, .trailer = 18, .corrupt = -1,
      .expected = true },
    { "udp6", .ipv6 = true, .len = 8, .corrupt = -1, .expected = true },
    { "udp6 vlan", .ipv6 = true, .vlan = true, .len = 555, .corrupt = -1,
      .expected = true },
    { "tcp6", .ipv6 = true, .tcp = true, .len = 1021, .corrupt = -1,
      .expected = true },
    { "tcp6 trailer", .ipv6 = true, .tcp = true, .len = 20, .trailer = 5,
      .corrupt = -1, .expected = true },
    { "udp4 do not fragment", .len = 40, .fragment = 0x4000, .corrupt = -1,
      .expected = true },
    { "udp4 first fragment", .len = 40, .fragment = 0x2000, .corrupt = -1 },
    { "udp4 last fragment", .len = 40, .fragment = 0x0001, .corrupt = -1 },
    { "udp4 none", .len = 40, .no_checksum = true, .corrupt = -1 },
    { "udp4 wrong", .len = 40, .corrupt = 20 },
    { "udp4 wrong port", .len = 40, .corrupt = 0 },
    { "udp6 wrong", .ipv6 = true, .len = 41, .corrupt = 40 },
    { "tcp4 wrong", .tcp = true, .len = 40, .corrupt = 17 },
    { "tcp6 wrong", .ipv6 = true, .tcp = true, .len = 40, .corrupt = 39 },
    { "udp4 cut", .len = 40, .corrupt = -1, .cut = 1 },
    { "udp6 cut", .ipv6 = true, .len = 40, .corrupt = -1, .cut = 40 },
    { "tcp4 no header", .tcp = true, .len = 19, .corrupt = -1 },
    { "udp4 no header", .len = 7, .corrupt = -1 },
    { "udp4 too long", .len = 40, .corrupt = -1, .udp_len = 1 },
    { "udp4 too short", .len = 40, .corrupt = -1, .udp_len = -1 },
};

static void put_ipv4(GByteArray *frame, const Datagram *d)
{
    uint8_t ip[60] = { 0 };
    unsigned header = 20 + d->options;

    ip[0] = 0x40 | header / 4;
    put16(ip + 2, header + d->len);
    put16(ip + 6, d->fragment);
    ip[8] = 64;
    ip[9] = d->tcp ? 6 : 17;
    memcpy(ip + 12, (uint8_t[]) { 192, 0, 2, 1, 198, 51, 100, 7 }, 8);
    memset(ip + 20, 1, d->options);
    put16(ip + 10, checksum(ip, header, 0));
    g_byte_array_append(frame, ip, header);
}

static void put_ipv6(GByteArray *frame, const Datagram *d)
{
    uint8_t ip[40] = { 0x60 };

    put16(ip + 4, d->len);
    ip[6] = d->tcp ? 6 : 17;
    ip[7] = 64;
    for (unsigned i = 8; i < 40; i++) {
        ip[i] = 0x91 * i;
    }
    g_byte_array_append(frame, ip, sizeof(ip));
}

/* Sum of the pseudo-header (RFC 768, 793, 8200). */
static uint32_t pseudo_sum(const Datagram *d, const uint8_t *ip)
{
    const uint8_t *at = ip + (d->ipv6 ? 8 : 12);
    uint32_t sum = (d->tcp ? 6 : 17) + d->len;

    for (unsigned i = 0; i < (d->ipv6 ? 32u : 8u); i += 2) {
        sum += get16(at + i);
    }
    return sum;
}

static void put_payload(Bench *bench, GByteArray *frame, const Datagram *d,
                        size_t ip_at)
{
    unsigned field = d->tcp ? 16 : 6;
    size_t at = frame->len;
    uint8_t *l4;

    g_byte_array_set_size(frame, at + d->len + d->trailer);
    l4 = frame->data + at;
    for (unsigned i = 0; i < d->len + d->trailer; i++) {
        l4[i] = g_rand_int(bench->lab->rand);
    }
    if (!d->tcp) {
        put16(l4 + 4, d->len + d->udp_len);
    }
    if (d->len >= field + 2) {
        uint16_t sum;

        put16(l4 + field, 0);
        sum = checksum(l4, d->len, pseudo_sum(d, frame->data + ip_at));
        put16(l4 + field, d->no_checksum ? 0 : sum ? sum : 0xffff);
    }
    if (d->corrupt >= 0) {
        l4[d->corrupt] ^= 0x10;
    }
}

static GByteArray *make_datagram(Bench *bench, const Datagram *d)
{
    GByteArray *frame = make_frame(bench, broadcast, stranger, HEADER);
    size_t ip_at;

    if (d->vlan) {
        put16(frame->data + 12, 0x8100);
        g_byte_array_append(frame, (uint8_t[]) { 0x60, 5, 0, 0 }, 4);
    }
    put16(frame->data + frame->len - 2, d->ipv6 ? 0x86dd : 0x0800);
    ip_at = frame->len;
    (d->ipv6 ? put_ipv6 : put_ipv4)(frame, d);
    put_payload(bench, frame, d, ip_at);
    g_byte_array_set_size(frame, frame->len - d->cut);
    return frame;
}

static void test_rx_checksum(void)
{
    Bench *bench = bench_new(26, 4);
    unsigned good = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(datagrams); i++) {
        GByteArray *frame = make_datagram(bench, &datagrams[i]);

        g_test_message("%s", datagrams[i].what);
        inject(bench, frame->data, frame->len);
        expect_received(bench, frame->data, frame->len,
                        datagrams[i].expected ? RDMA_HCA_ETH_RX_CSUM_OK : 0);
        good += datagrams[i].expected;
        g_byte_array_unref(frame);
    }
    g_assert_cmpuint(count(bench, "rx_checksum_ok"), ==, good);
    bench_free(bench);
}

/* Each cut off at each byte: no flag, and nothing beyond its end is read. */
static void test_rx_checksum_cut(void)
{
    Bench *bench = bench_new(27, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(datagrams); i++) {
        const Datagram *d = &datagrams[i];
        GByteArray *frame = make_datagram(bench, d);
        size_t whole = frame->len - d->trailer;

        for (size_t len = HEADER; len < MIN(whole, 150); len++) {
            inject(bench, frame->data, len);
            expect_received(bench, frame->data, len, 0);
        }
        g_byte_array_unref(frame);
    }
    bench_free(bench);
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
    Bench *bench = bench_new(28, 4);

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        GByteArray *frame = make_datagram(bench, &udp);

        frame->data[changes[i].at] = changes[i].value;
        inject(bench, frame->data, frame->len);
        expect_received(bench, frame->data, frame->len, 0);
        g_byte_array_unref(frame);
    }
    bench_free(bench);
}

/* ---- interrupts ---- */

static void expect_interrupts(Bench *bench, uint64_t tx, uint64_t rx)
{
    lab_run(bench->lab);
    g_assert_cmpuint(bench->host->msix[NIC_TX_VECTOR], ==, tx);
    g_assert_cmpuint(bench->host->msix[NIC_RX_VECTOR], ==, rx);
    g_assert_cmpuint(count(bench, "interrupts"), ==, tx + rx);
}

static void test_arm_tx(void)
{
    Bench *bench = bench_new(30, 4);
    Nic *nic = bench->nic;
    uint8_t frame[MIN_FRAME] = { 0 };

    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 0, 0);               /* not armed */
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 0); /* is done already */
    expect_interrupts(bench, 1, 0);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 1, 0);               /* only once */
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 2); /* not posted yet */
    expect_interrupts(bench, 1, 0);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 2, 0);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 5); /* the third from now */
    nic_send(nic, frame, sizeof(frame));
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 2, 0);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 3, 0);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 9); /* armed anew: it moves */
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 6);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 4, 0);
    bench_free(bench);
}

static void test_arm_rx(void)
{
    Bench *bench = bench_new(31, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = make_frame(bench, broadcast, stranger, 70);
    GByteArray *other = make_frame(bench, stranger, broadcast, 70);

    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
    inject(bench, other->data, other->len);
    expect_interrupts(bench, 0, 0); /* not for us */
    inject(bench, frame->data, frame->len);
    expect_interrupts(bench, 0, 1);
    inject(bench, frame->data, frame->len);
    expect_interrupts(bench, 0, 1);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 1);
    expect_interrupts(bench, 0, 2);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 2);
    expect_interrupts(bench, 0, 2);
    inject(bench, frame->data, frame->len);
    expect_interrupts(bench, 0, 3);
    g_byte_array_unref(frame);
    g_byte_array_unref(other);
    bench_free(bench);
}

/*
 * A driver that looks, arms at what it has not seen done, and sleeps: whatever
 * the order of frames and arming, it is always woken. Indices wrap.
 */
static void test_arm_race(void)
{
    Bench *bench = bench_new(32, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = make_frame(bench, broadcast, stranger, 60);
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, frame->len);
    for (unsigned i = 0; i < 30000; i++) {
        uint64_t before = bench->host->msix[NIC_RX_VECTOR];
        unsigned frames = rnd(bench, 0, 4), taken = 0;
        bool arm_first = rnd(bench, 0, 2);
        GByteArray *got;

        if (arm_first) {
            nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, nic->rx_next);
        }
        for (unsigned n = 0; n < frames; n++) {
            lab_cable_inject(bench->lab, 1, header, sizeof(header));
            lab_cable_inject(bench->lab, 1, frame->data, frame->len);
        }
        lab_run(bench->lab);
        if (!arm_first) {
            nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, nic->rx_next);
            lab_run(bench->lab);
        }
        g_assert_cmpint(bench->host->msix[NIC_RX_VECTOR] > before, ==,
                        frames > 0);
        while ((got = nic_receive(nic, NULL))) {
            g_byte_array_unref(got);
            taken++;
        }
        g_assert_cmpuint(taken, ==, frames);
    }
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* ---- commands ---- */

static uint8_t setup(Bench *bench, uint64_t tx, uint64_t rx, uint32_t sizes,
                     uint32_t vectors, uint8_t op_modifier)
{
    struct rdma_hca_setup_eth setup = {
        .tx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(tx)),
        .tx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(tx)),
        .rx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(rx)),
        .rx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(rx)),
        .log_sizes = GUINT32_TO_BE(sizes),
        .vectors = GUINT32_TO_BE(vectors),
    };

    return driver_cmd_in(bench->drv, RDMA_HCA_CMD_SETUP_ETH, &setup,
                         sizeof(setup), 0, op_modifier);
}

static void test_setup(void)
{
    static const struct {
        int64_t tx, rx; /* added to the rings' places */
        uint32_t sizes, vectors;
        uint8_t op_modifier;
    } wrong[] = {
        { 1, 0, 0x40004, 0, 1 },
        { 32, 0, 0x40004, 0, 1 },
        { 0, 16, 0x40004, 0, 1 },
        { 0, -1, 0x40004, 0, 1 },
        { 0, 0, 0x30004, 0, 1 },
        { 0, 0, 0x40003, 0, 1 },
        { 0, 0, 0xd0004, 0, 1 },
        { 0, 0, 0x4000d, 0, 1 },
        { 0, 0, 0, 0, 1 },
        { 0, 0, UINT32_MAX, 0, 1 },
        { 0, 0, 0x400004, 0, 1 },
        { 0, 0, 0x40024, 0, 1 },
        { 0, 0, 0x40004, 8, 1 },
        { 0, 0, 0x40004, 8 << 16, 1 },
        { 0, 0, 0x40004, UINT32_MAX, 1 },
        { 0, 0, 0x40004, 0, 2 },
        { 0, 0, 0x40004, 0, 0xf },
    };
    Bench *bench = bench_new(40, 4);
    uint64_t tx = bench->nic->tx_ring, rx = bench->nic->rx_ring;

    g_assert_cmphex(nic_start(bench->nic), ==, RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_cmphex(setup(bench, tx + wrong[i].tx, rx + wrong[i].rx,
                              wrong[i].sizes, wrong[i].vectors,
                              wrong[i].op_modifier),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmpuint(count(bench, "running"), ==, 0);
    }
    g_assert_cmphex(setup(bench, UINT64_MAX - 63, rx, 0x40004, 0, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(setup(bench, tx, rx, 0xc0004, 7 << 16, 1), ==, OK);
    g_assert_cmpuint(count(bench, "running"), ==, 1);
    bench_free(bench);
}

static void test_rx_mode_refused(void)
{
    uint8_t list[2][6] = { { 1, 2, 3, 4, 5, 6 }, { 2, 2, 3, 4, 5, 6 } };
    Bench *bench = bench_new(41, 4);
    uint8_t *mac = bench->host->config.mac, was[6];

    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 2), ==,
                    RDMA_HCA_STAT_BAD_PARAM); /* not a group */
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 1), ==, OK);
    memcpy(was, mac, 6);
    memset(mac, 0, 6);
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    memcpy(mac, broadcast, 6);
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    memcpy(mac, was, 6);
    bench_free(bench);
}

static void test_rx_mode_count(void)
{
    static const uint32_t counts[] = { 129, 1000, 0x10000, 0x80000000,
                                       UINT32_MAX };
    uint8_t list[RDMA_HCA_RX_MODE_MAX_MULTICAST][6];
    Bench *bench = bench_new(42, 4);

    memset(list, 1, sizeof(list));
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, counts[i]), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
    }
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 128), ==, OK);
    bench_free(bench);
}

static void test_infiniband(void)
{
    Pair *pair = pair_new(43, 4096);
    uint8_t box[RDMA_HCA_RX_MODE_SIZE] = { 0 };

    for (unsigned modifier = 0; modifier < 2; modifier++) {
        g_assert_cmphex(driver_cmd_in(pair->drv[0], RDMA_HCA_CMD_SETUP_ETH, box,
                                      sizeof(box), 0, modifier),
                        ==, RDMA_HCA_STAT_BAD_OP);
    }
    g_assert_cmphex(driver_cmd_in(pair->drv[0], RDMA_HCA_CMD_SET_RX_MODE, box,
                                  sizeof(box), 0, 0),
                    ==, RDMA_HCA_STAT_BAD_OP);
    for (unsigned reg = 0; reg < RDMA_HCA_ETH_DB_SIZE; reg += 4) {
        host_bar0_write(&pair->lab->host[0], RDMA_HCA_ETH_DB + reg, 1);
    }
    lab_run(pair->lab);
    g_assert_cmpuint(nic_counter(&pair->lab->host[0], "bad_doorbells"), ==, 0);
    pair_free(pair);
}

/* ---- stopping ---- */

typedef enum End {
    END_STOP,
    END_CLOSE_HCA,
    END_RESET
} End;

static void end_it(Bench *bench, End end)
{
    switch (end) {
    case END_STOP:
        g_assert_cmphex(nic_stop(bench->nic), ==, OK);
        break;
    case END_CLOSE_HCA:
        g_assert_cmphex(
            driver_cmd(bench->drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL),
            ==, OK);
        break;
    case END_RESET:
        host_reset(bench->host);
        break;
    }
}

/*
 * The cable is full, frames wait in the ring: after the end of the rings none
 * of them leaves but those that had been taken, and no memory is written.
 */
static void stop_while_full(End end)
{
    Bench *bench = bench_new(50 + end, 8);
    Nic *nic = bench->nic;
    GByteArray *frame = make_frame(bench, broadcast, stranger, 9000);
    uint64_t taken;

    lab_tap(bench->lab, NULL, NULL);
    bench->lab->host[1].kicked = false;
    bench->lab->capacity = 0;
    for (unsigned i = 0; i < 200; i++) {
        nic_put_tx(nic, nic->buffer, 9000, LAST);
    }
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 199);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
    nic_ring_tx(nic);
    lab_run(bench->lab);
    taken = count(bench, "tx_frames");
    g_assert_cmpuint(taken, >, 10);
    g_assert_cmpuint(taken, <, 199);

    end_it(bench, end);
    lab_run(bench->lab);
    host_clear_dirty(bench->host);
    bench->lab->capacity = 1 << 20;
    hca_link_writable(bench->host->hca);
    bench->host->kicked = true;
    inject(bench, frame->data, frame->len);
    g_assert_cmpuint(count(bench, "tx_frames"), ==,
                     end == END_RESET ? 0 : taken);
    g_assert_cmpuint(count(bench, "rx_frames"), ==, 0);
    g_assert_cmpuint(count(bench, "rx_filtered"), ==, 1);
    g_assert_cmpuint(count(bench, "interrupts"), ==, 0);
    g_assert_false(host_is_dirty(bench->host, nic->tx_ring));
    g_assert_false(host_is_dirty(bench->host, nic->rx_ring));
    g_assert_false(host_is_dirty(bench->host, nic->rx_buffer[0]));
    g_byte_array_unref(frame);
    bench_free(bench);
}

static void test_stop_while_full(void)
{
    stop_while_full(END_STOP);
}

static void test_close_while_full(void)
{
    stop_while_full(END_CLOSE_HCA);
}

static void test_reset_while_full(void)
{
    stop_while_full(END_RESET);
}

/* The first piece of a frame of too many is not held against the next ring. */
static void test_stop_in_endless(void)
{
    Bench *bench = bench_new(54, 6);
    Nic *nic = bench->nic;
    uint8_t frame[MIN_FRAME] = { 0 };

    for (unsigned i = 0; i < 25; i++) {
        nic_put_tx(nic, nic->buffer, 20, 0);
    }
    nic_ring_tx(nic);
    expect_none_sent(bench);
    g_assert_cmphex(nic_stop(nic), ==, OK);
    g_assert_cmphex(nic_start(nic), ==, OK);
    nic_send(nic, frame, sizeof(frame));
    expect_sent(bench, frame, sizeof(frame));
    bench_free(bench);
}

/* The filter is the card's own again. */
static void test_reset_filter(void)
{
    Bench *bench = bench_new(55, 4);
    GByteArray *frame = make_frame(bench, stranger, broadcast, 80);

    g_assert_cmphex(
        nic_set_rx_mode(bench->nic, RDMA_HCA_RX_MODE_PROMISC, NULL, 0), ==, OK);
    host_reset(bench->host);
    driver_free(bench->drv);
    bench->drv = driver_new(bench->host);
    bench->nic->drv = bench->drv;
    g_assert_cmphex(nic_start(bench->nic), ==, OK);
    inject(bench, frame->data, frame->len);
    g_assert_cmpuint(count(bench, "rx_filtered"), ==, 1);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* A ring that is not RAM, or read-only, is given up; a new one works. */
static void test_bad_rings(void)
{
    Bench *bench = bench_new(56, 4);
    Nic *nic = bench->nic;
    uint64_t rom = host_alloc(bench->host, 16);
    const uint64_t bad[] = { 0, HOST_MMIO_BASE, UINT64_MAX - 4095, rom };
    GByteArray *frame = make_frame(bench, broadcast, stranger, 80);

    host_set_rom(bench->host, rom);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(nic_stop(nic), ==, OK);
        g_assert_cmphex(setup(bench, bad[i] & ~63ull, bad[i] & ~63ull, 0x40004,
                              NIC_TX_VECTOR << 16 | NIC_RX_VECTOR, 1),
                        ==, OK);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 0);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_TAIL, 3);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_TAIL, 3);
        lab_run(bench->lab);
        inject(bench, frame->data, frame->len);
        inject(bench, frame->data, frame->len);
        g_assert_cmpuint(count(bench, "tx_errors"), ==, i + 1);
        g_assert_cmpuint(count(bench, "rx_errors"), ==, i + 1);
        g_assert_cmpuint(count(bench, "running"), ==, 0);
    }
    g_assert_cmpuint(count(bench, "interrupts"), ==, 0);
    g_assert_cmphex(nic_stop(nic), ==, OK);
    g_assert_cmphex(nic_start(nic), ==, OK);
    inject(bench, frame->data, frame->len);
    expect_received(bench, frame->data, frame->len, 0);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* Without a cable frames are lost, and their descriptors done. */
static void test_no_link(void)
{
    Bench *bench = bench_new(57, 6);
    uint8_t frame[MIN_FRAME] = { 0 };

    lab_cable(bench->lab, false);
    for (unsigned i = 0; i < 40; i++) {
        nic_send(bench->nic, frame, sizeof(frame));
    }
    expect_done(bench, 40, DONE);
    lab_cable(bench->lab, true);
    nic_send(bench->nic, frame, sizeof(frame));
    expect_sent(bench, frame, sizeof(frame));
    expect_none_sent(bench);
    bench_free(bench);
}

/* ---- hostile ---- */

static uint64_t random_address(Bench *bench)
{
    switch (rnd(bench, 0, 6)) {
    case 0:
        return (uint64_t)g_rand_int(bench->lab->rand) << 32 |
               g_rand_int(bench->lab->rand);
    case 1:
        return bench->nic->tx_ring + rnd(bench, 0, 4096); /* itself */
    case 2:
        return HOST_MMIO_BASE + rnd(bench, 0, HOST_MMIO_SIZE);
    default:
        return bench->nic->buffer + rnd(bench, 0, NIC_BUFFER_SIZE);
    }
}

static void random_descriptors(Bench *bench, uint64_t ring)
{
    for (unsigned i = 0; i < 64; i++) {
        uint64_t addr = random_address(bench);
        uint32_t desc[4] = {
            RDMA_HCA_LO32(addr),
            RDMA_HCA_HI32(addr),
            g_rand_int(bench->lab->rand),
            g_rand_int(bench->lab->rand),
        };

        if (rnd(bench, 0, 2)) {
            desc[2] = (desc[2] & 0xffff0000) | rnd(bench, 0, 600);
        }
        host_write(bench->host, ring + 16 * i, desc, sizeof(desc));
    }
}

/* Noise; or a datagram with a few bytes changed, cut anywhere. */
static GByteArray *hostile_frame(Bench *bench)
{
    GByteArray *frame;

    if (rnd(bench, 0, 2)) {
        return make_frame(bench, rnd(bench, 0, 2) ? broadcast : stranger,
                          stranger, rnd(bench, 1, HCA_LINK_MAX_PACKET + 1));
    }
    frame = make_datagram(bench,
                          &datagrams[rnd(bench, 0, G_N_ELEMENTS(datagrams))]);
    for (unsigned n = rnd(bench, 0, 5); n; n--) {
        frame->data[rnd(bench, 12, MIN(frame->len, 80))] = g_rand_int(
            bench->lab->rand);
    }
    if (rnd(bench, 0, 2)) {
        g_byte_array_set_size(frame, rnd(bench, 1, frame->len + 1));
    }
    return frame;
}

/* Where a ring can lie: over buffers, over the other one, or nowhere. */
static uint64_t hostile_ring(Bench *bench)
{
    const Nic *nic = bench->nic;
    const uint64_t places[] = {
        nic->tx_ring,
        nic->rx_ring,
        nic->buffer + 64 * rnd(bench, 0, NIC_BUFFER_SIZE / 64 - 16),
        nic->rx_buffer[rnd(bench, 0, 1u << nic->log)],
        HOST_MMIO_BASE + 64 * rnd(bench, 0, 1000),
        UINT64_MAX - 4095,
        0,
    };

    /* Places in memory more often. */
    return places[rnd(bench, 0, 3) ? rnd(bench, 0, 4)
                                   : rnd(bench, 0, G_N_ELEMENTS(places))];
}

static void hostile_restart(Bench *bench)
{
    uint32_t sizes = rnd(bench, 4, 7) << 16 | rnd(bench, 4, 7);

    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    if (rnd(bench, 0, 2)) {
        g_assert_cmphex(nic_start(bench->nic), ==, OK);
    } else {
        uint64_t tx = hostile_ring(bench), rx = hostile_ring(bench);

        g_assert_cmphex(setup(bench, tx, rx, sizes, rnd(bench, 0, 8), 1), ==,
                        OK);
    }
}

static void hostile_step(Bench *bench)
{
    static const uint32_t regs[] = {
        RDMA_HCA_ETH_DB_TX_TAIL,
        RDMA_HCA_ETH_DB_RX_TAIL,
        RDMA_HCA_ETH_DB_TX_ARM,
        RDMA_HCA_ETH_DB_RX_ARM,
    };
    GByteArray *frame;

    switch (rnd(bench, 0, 8)) {
    case 0:
        random_descriptors(bench, bench->nic->tx_ring);
        break;
    case 1:
        random_descriptors(bench, bench->nic->rx_ring);
        break;
    case 2:
        hostile_restart(bench);
        break;
    case 3:
    case 4:
        frame = hostile_frame(bench);
        inject(bench, frame->data, frame->len);
        g_byte_array_unref(frame);
        break;
    default:
        nic_doorbell(bench->nic, regs[rnd(bench, 0, 4)],
                     rnd(bench, 0, 4) ? rnd(bench, 0, 128)
                                      : g_rand_int(bench->lab->rand));
    }
}

/*
 * Rings, descriptors, doorbells and frames at random. What the card then does
 * to memory is what it was told to; afterwards it works as before.
 */
static void test_hostile(void)
{
    Bench *bench = bench_new(60, 6);
    GByteArray *frame = make_frame(bench, broadcast, stranger, 333);
    /* With holes around it: no buffer of those named here leads to it. */
    uint64_t aside = host_alloc(bench->host, HOST_BLOCK_SIZE / HOST_PAGE_SIZE);

    host_clear_dirty(bench->host);

    for (unsigned i = 0; i < 20000; i++) {
        hostile_step(bench);
        lab_run(bench->lab);
        g_queue_clear_full(&bench->sent, frame_unref);
    }
    g_assert_cmpuint(count(bench, "tx_errors"), >, 0);
    g_assert_cmpuint(count(bench, "tx_frames"), >, 0);
    g_assert_cmpuint(count(bench, "rx_frames"), >, 0);
    g_assert_cmpuint(count(bench, "rx_checksum_ok"), >, 0);
    g_assert_cmpuint(count(bench, "rx_errors"), >, 0);
    g_assert_cmpuint(count(bench, "bad_doorbells"), >, 0);
    for (unsigned at = 0; at < HOST_BLOCK_SIZE; at += sizeof(uint32_t)) {
        g_assert_cmphex(host_read_le32(bench->host, aside + at), ==, 0);
        g_assert_false(host_is_dirty(bench->host, aside + at));
    }
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    g_assert_cmphex(nic_start(bench->nic), ==, OK);
    nic_send(bench->nic, frame->data, frame->len);
    expect_sent(bench, frame->data, frame->len);
    inject(bench, frame->data, frame->len);
    expect_received(bench, frame->data, frame->len, 0);
    g_byte_array_unref(frame);
    bench_free(bench);
}

/* ---- two cards, Ethernet beside RDMA ---- */

#define FLOW_FRAMES 200u
#define FLOW_WRITES 60u
#define FLOW_WRITE_LEN 20000u

typedef struct Flow {
    Pair *pair;
    Nic *nic[2];
    Qp *qp[2];
    unsigned sent[2], received[2];
} Flow;

/* Frame @n of side @from: its number, and bytes that follow from it. */
static size_t flow_frame(const Flow *flow, unsigned from, unsigned n,
                         uint8_t *frame)
{
    size_t len = 60 + n * 37 % 1400;

    for (size_t i = 12; i < len; i++) {
        frame[i] = n * 7 + i * 3 + from;
    }
    memcpy(frame, flow->pair->lab->host[!from].config.mac, 6);
    memcpy(frame + 6, flow->pair->lab->host[from].config.mac, 6);
    put16(frame + 12, 0x88b5);
    return len;
}

static void flow_turn(Flow *flow, unsigned side)
{
    uint8_t frame[2048], done;
    GByteArray *got;

    while (nic_take_tx(flow->nic[side], &done)) {
        g_assert_cmphex(done, ==, DONE);
    }
    if (flow->sent[side] < FLOW_FRAMES &&
        flow->nic[side]->tx_next == flow->nic[side]->tx_tail) {
        size_t len = flow_frame(flow, side, flow->sent[side]++, frame);

        nic_send(flow->nic[side], frame, len);
    }
    while ((got = nic_receive(flow->nic[side], NULL))) {
        size_t len = flow_frame(flow, !side, flow->received[side]++, frame);

        g_assert_cmpmem(got->data, got->len, frame, len);
        g_byte_array_unref(got);
    }
}

static bool flow_done(const Flow *flow)
{
    return flow->received[0] == FLOW_FRAMES && flow->received[1] == FLOW_FRAMES;
}

static void post_write(Flow *flow, unsigned side, uint64_t wr_id)
{
    Sge sge;
    SendWr wr = pair_send(flow->pair, side, RDMA_HCA_OPCODE_RDMA_WRITE, wr_id,
                          &sge, side * FLOW_WRITE_LEN, FLOW_WRITE_LEN,
                          side * FLOW_WRITE_LEN);

    g_assert_true(qp_post_send(flow->qp[side], &wr, 1));
}

static void flow_run(Flow *flow)
{
    unsigned writes[2] = { 0, 0 };

    for (unsigned i = 0; i < 2; i++) {
        post_write(flow, i, 0);
    }
    while (!flow_done(flow) || MIN(writes[0], writes[1]) < FLOW_WRITES) {
        bool stepped = lab_step(flow->pair->lab);

        for (unsigned i = 0; i < 2; i++) {
            Wc wc;

            flow_turn(flow, i);
            if (cq_poll(flow->pair->cq[i], &wc)) {
                g_assert_cmphex(wc.syndrome, ==, 0);
                g_assert_cmpuint(wc.wr_id, ==, writes[i]);
                post_write(flow, i, ++writes[i]);
            }
        }
        g_assert_true(stepped || flow->pair->lab->host[0].kicked ||
                      flow->pair->lab->host[1].kicked);
    }
}

static void test_beside_rdma(void)
{
    Flow flow = { .pair = pair_new_roce(70, 65536, NULL, NULL) };
    Pair *pair = flow.pair;
    uint8_t *data = pair_data(pair, FLOW_WRITE_LEN);
    uint8_t *got = g_malloc(FLOW_WRITE_LEN);

    for (unsigned i = 0; i < 2; i++) {
        flow.nic[i] = nic_new(pair->drv[i], 6);
    }
    pair_connect(pair, NULL, flow.qp);
    mr_write(pair->mr[0], 0, data, FLOW_WRITE_LEN);
    flow_run(&flow);
    mr_read(pair->mr[1], 0, got, FLOW_WRITE_LEN);
    g_assert_cmpmem(got, FLOW_WRITE_LEN, data, FLOW_WRITE_LEN);
    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        g_assert_cmpuint(nic_counter(host, "rx_frames"), ==, FLOW_FRAMES);
        g_assert_cmpuint(nic_counter(host, "rx_filtered"), ==, 0);
        g_assert_cmpuint(nic_counter(host, "rx_no_buffer"), ==, 0);
        nic_free(flow.nic[i]);
    }
    g_free(data);
    g_free(got);
    pair_free(pair);
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
    test_add("/eth/tx/checksum", test_tx_checksum);
    test_add("/eth/tx/checksum-zero", test_tx_checksum_zero);
    test_add("/eth/tx/checksum-refused", test_tx_checksum_refused);
    test_add("/eth/doorbells", test_doorbells);
    test_add("/eth/rx/sizes", test_rx_sizes);
    test_add("/eth/rx/short", test_rx_short);
    test_add("/eth/rx/filter", test_rx_filter);
    test_add("/eth/rx/own-address", test_rx_own_address);
    test_add("/eth/rx/no-buffer", test_rx_no_buffer);
    test_add("/eth/rx/bad-buffer", test_rx_bad_buffer);
    test_add("/eth/rx/checksum", test_rx_checksum);
    test_add("/eth/rx/checksum-cut", test_rx_checksum_cut);
    test_add("/eth/rx/checksum-headers", test_rx_checksum_headers);
    test_add("/eth/arm/tx", test_arm_tx);
    test_add("/eth/arm/rx", test_arm_rx);
    test_add("/eth/arm/race", test_arm_race);
    test_add("/eth/commands/setup", test_setup);
    test_add("/eth/commands/rx-mode", test_rx_mode_refused);
    test_add("/eth/commands/rx-mode-count", test_rx_mode_count);
    test_add("/eth/commands/infiniband", test_infiniband);
    test_add("/eth/stop/full", test_stop_while_full);
    test_add("/eth/stop/close-hca", test_close_while_full);
    test_add("/eth/stop/reset", test_reset_while_full);
    test_add("/eth/stop/in-endless", test_stop_in_endless);
    test_add("/eth/stop/filter", test_reset_filter);
    test_add("/eth/stop/bad-rings", test_bad_rings);
    test_add("/eth/no-link", test_no_link);
    test_add("/eth/hostile", test_hostile);
    test_add("/eth/beside-rdma", test_beside_rdma);
    return g_test_run();
}
