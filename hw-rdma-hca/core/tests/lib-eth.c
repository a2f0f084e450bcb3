/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-eth.h"

#include <string.h>

#include "../link/framing.h"
#include "lib-frames.h"

#define DONE RDMA_HCA_ETH_DONE
#define BAD (RDMA_HCA_ETH_DONE | RDMA_HCA_ETH_ERROR)

const uint8_t eth_stranger[6] = { 0x02, 0, 0, 0, 0, 0x99 };

const uint8_t eth_broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

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

EthBench *eth_bench_new(uint32_t seed, unsigned log)
{
    EthBench *bench = g_new0(EthBench, 1);
    HcaConfig config[2];

    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
    bench->lab = lab_new(seed, config);
    bench->host = &bench->lab->host[0];
    host_dma_map = bench->host->ops.dma_map;
    bench->host->ops.dma_map = page_dma_map;
    g_queue_init(&bench->sent);
    lab_tap(bench->lab, frames_take, &bench->sent);
    lab_cable(bench->lab, true);
    bench->drv = driver_new(bench->host);
    bench->nic = nic_new(bench->drv, log);
    lab_run(bench->lab);
    return bench;
}

void eth_bench_free(EthBench *bench)
{
    g_assert_cmpuint(bench->host->msix_bad, ==, 0);
    frames_clear(&bench->sent);
    nic_free(bench->nic);
    driver_free(bench->drv);
    lab_free(bench->lab);
    g_free(bench);
}

void eth_queues_open(EthQueues *queues, uint32_t seed, unsigned log)
{
    queues->bench = eth_bench_new(seed, log);
    queues->nic[0] = queues->bench->nic;
    for (unsigned i = 1; i < ETH_QUEUES; i++) {
        queues->nic[i] = nic_new_queue(queues->bench->drv, log, i, i - 1);
    }
}

void eth_queues_close(EthQueues *queues)
{
    for (unsigned i = 1; i < ETH_QUEUES; i++) {
        nic_free(queues->nic[i]);
    }
    eth_bench_free(queues->bench);
}

uint64_t eth_count(EthBench *bench, const char *name)
{
    return nic_counter(bench->host, name);
}

uint32_t eth_rand(EthBench *bench, uint32_t begin, uint32_t end)
{
    return begin + g_rand_int(bench->lab->rand) % (end - begin);
}

GByteArray *eth_make_frame(EthBench *bench, const uint8_t *to,
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
    if (len >= ETH_HEADER) {
        frame->data[12] = 0x88; /* local experimental */
        frame->data[13] = 0xb5;
    }
    return frame;
}

void eth_expect_none_sent(EthBench *bench)
{
    lab_run(bench->lab);
    g_assert_true(g_queue_is_empty(&bench->sent));
}

void eth_expect_sent(EthBench *bench, const uint8_t *frame, size_t len)
{
    lab_run(bench->lab);
    frames_expect(&bench->sent, frame, len);
}

void eth_expect_done(EthBench *bench, unsigned n, uint8_t last)
{
    uint8_t done;

    lab_run(bench->lab);
    for (unsigned i = 0; i < n; i++) {
        g_assert_true(nic_take_tx(bench->nic, &done));
        g_assert_cmphex(done, ==, i + 1 == n ? last : DONE);
    }
    g_assert_false(nic_take_tx(bench->nic, &done));
}

void eth_expect_refused(EthBench *bench, unsigned n)
{
    GByteArray *good = eth_make_frame(bench, eth_stranger,
                                      bench->host->config.mac, 100);
    uint64_t errors = eth_count(bench, "tx_errors");

    nic_ring_tx(bench->nic);
    eth_expect_none_sent(bench);
    eth_expect_done(bench, n, BAD);
    g_assert_cmpuint(eth_count(bench, "tx_errors"), ==, errors + 1);
    nic_send(bench->nic, good->data, good->len);
    eth_expect_sent(bench, good->data, good->len);
    eth_expect_done(bench, 1, DONE);
    g_byte_array_unref(good);
}

uint16_t eth_checksum(const uint8_t *data, size_t len, uint32_t sum)
{
    for (size_t i = 0; i < len; i++) {
        sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

void eth_put16(uint8_t *p, uint16_t value)
{
    p[0] = value >> 8;
    p[1] = value;
}

static uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

void eth_inject(EthBench *bench, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(bench->lab, 1, header, sizeof(header));
    lab_cable_inject(bench->lab, 1, frame, len);
    lab_run(bench->lab);
}

void eth_expect_received(EthBench *bench, const uint8_t *frame, size_t len,
                         uint8_t flags)
{
    uint8_t got_flags;
    GByteArray *got = nic_receive(bench->nic, &got_flags);

    g_assert_nonnull(got);
    g_assert_cmpmem(got->data, got->len, frame, len);
    g_assert_cmphex(got_flags, ==, flags);
    g_byte_array_unref(got);
}

const Datagram eth_datagrams[] = {
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

const unsigned eth_datagrams_number = G_N_ELEMENTS(eth_datagrams);

static void put_ipv4(GByteArray *frame, const Datagram *d)
{
    uint8_t ip[60] = { 0 };
    unsigned header = 20 + d->options;

    ip[0] = 0x40 | header / 4;
    eth_put16(ip + 2, header + d->len);
    eth_put16(ip + 6, d->fragment);
    ip[8] = 64;
    ip[9] = d->tcp ? 6 : 17;
    memcpy(ip + 12, (uint8_t[]) { 192, 0, 2, 1, 198, 51, 100, 7 }, 8);
    memset(ip + 20, 1, d->options);
    eth_put16(ip + 10, eth_checksum(ip, header, 0));
    g_byte_array_append(frame, ip, header);
}

static void put_ipv6(GByteArray *frame, const Datagram *d)
{
    uint8_t ip[40] = { 0x60 };

    eth_put16(ip + 4, d->len);
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

static void put_payload(EthBench *bench, GByteArray *frame, const Datagram *d,
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
        eth_put16(l4 + 4, d->len + d->udp_len);
    }
    if (d->len >= field + 2) {
        uint16_t sum;

        eth_put16(l4 + field, 0);
        sum = eth_checksum(l4, d->len, pseudo_sum(d, frame->data + ip_at));
        eth_put16(l4 + field, d->no_checksum ? 0 : sum ? sum : 0xffff);
    }
    if (d->corrupt >= 0) {
        l4[d->corrupt] ^= 0x10;
    }
}

GByteArray *eth_make_datagram(EthBench *bench, const Datagram *d)
{
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger,
                                       ETH_HEADER);
    size_t ip_at;

    if (d->vlan) {
        eth_put16(frame->data + 12, 0x8100);
        g_byte_array_append(frame, (uint8_t[]) { 0x60, 5, 0, 0 }, 4);
    }
    eth_put16(frame->data + frame->len - 2, d->ipv6 ? 0x86dd : 0x0800);
    ip_at = frame->len;
    (d->ipv6 ? put_ipv6 : put_ipv4)(frame, d);
    put_payload(bench, frame, d, ip_at);
    g_byte_array_set_size(frame, frame->len - d->cut);
    return frame;
}

uint8_t eth_setup(EthBench *bench, uint64_t tx, uint64_t rx, uint32_t sizes,
                  uint32_t vectors, uint8_t op_modifier)
{
    struct rdma_hca_setup_eth eth_setup = {
        .tx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(tx)),
        .tx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(tx)),
        .rx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(rx)),
        .rx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(rx)),
        .log_sizes = GUINT32_TO_BE(sizes),
        .vectors = GUINT32_TO_BE(vectors),
    };

    return driver_cmd_in(bench->drv, RDMA_HCA_CMD_SETUP_ETH, &eth_setup,
                         sizeof(eth_setup), 0, op_modifier);
}
