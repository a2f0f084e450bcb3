/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive-side scaling of the Ethernet function: hashes, and the rings that
 * they lead to.
 */
#include <string.h>

#include "lib-eth.h"

#define OK RDMA_HCA_STAT_OK
#define QUEUES RDMA_HCA_ETH_MAX_QUEUES
#define LOG_RING 4

/* Microsoft, "Verifying the RSS hash calculation". */
typedef struct Flow {
    bool ipv6;
    uint8_t to[16], from[16];
    uint16_t to_port, from_port;
    uint32_t addresses, all; /* hashes, without and with the ports */
} Flow;

static const Flow flows[] = {
    { false,
      { 161, 142, 100, 80 },
      { 66, 9, 149, 187 },
      1766,
      2794,
      0x323e8fc2,
      0x51ccc178 },
    { false,
      { 65, 69, 140, 83 },
      { 199, 92, 111, 2 },
      4739,
      14230,
      0xd718262a,
      0xc626b0ea },
    { false,
      { 12, 22, 207, 184 },
      { 24, 19, 198, 95 },
      38024,
      12898,
      0xd2d0a5de,
      0x5c2b394a },
    { false,
      { 209, 142, 163, 6 },
      { 38, 27, 205, 30 },
      2217,
      48228,
      0x82989176,
      0xafc7327f },
    { false,
      { 202, 188, 127, 2 },
      { 153, 39, 163, 191 },
      1303,
      44251,
      0x5d1809c5,
      0x10e828a2 },
    { true,
      { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, [15] = 1 },
      { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, [15] = 7 },
      1766,
      2794,
      0x2cc18cd5,
      0x40207d3d },
    { true,
      { 0xff, 0x02, [15] = 1 },
      { 0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe,
        0x40, 0xef, 0xab },
      4739,
      14230,
      0x0f0c461c,
      0xdde51bbf },
    { true,
      { 0xfe, 0x80, [8] = 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf },
      { 0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0x00, 0x03, 0x02, 0x00, 0xf8, 0xff,
        0xfe, 0x21, 0x67, 0xcf },
      38024,
      44251,
      0x4b61e985,
      0x02d1feef },
};

#define TCP 6
#define UDP 17
#define ICMP 1

/* A frame of @flow. Where its IP header is stands in *@ip. */
static GByteArray *make(EthBench *bench, const Flow *flow, uint8_t protocol,
                        size_t *ip)
{
    const Datagram d = {
        .ipv6 = flow->ipv6, .tcp = true, .len = 60, .corrupt = -1
    };
    GByteArray *frame = eth_make_datagram(bench, &d);
    uint8_t *header = frame->data + ETH_HEADER;
    uint8_t *ports = header + (flow->ipv6 ? 40 : 20);
    size_t size = flow->ipv6 ? 16 : 4;
    uint8_t *addresses = header + (flow->ipv6 ? 8 : 12);

    header[flow->ipv6 ? 6 : 9] = protocol;
    memcpy(addresses, flow->from, size);
    memcpy(addresses + size, flow->to, size);
    eth_put16(ports, flow->from_port);
    eth_put16(ports + 2, flow->to_port);
    *ip = ETH_HEADER;
    return frame;
}

/* It comes, to the ring that the hash leads to, and to no other. */
static void expect_at(EthQueues *rss, GByteArray *frame, uint8_t type,
                      uint32_t hash)
{
    unsigned queue = type ? hash % RDMA_HCA_RSS_TABLE_SIZE % QUEUES : 0;

    eth_inject(rss->bench, frame->data, frame->len);
    for (unsigned i = 0; i < QUEUES; i++) {
        GByteArray *got = nic_receive(rss->nic[i], NULL);

        g_assert_cmpint(got != NULL, ==, i == queue);
        if (got) {
            const struct rdma_hca_eth_rx *desc = &rss->nic[i]->received;

            g_assert_cmpmem(got->data, got->len, frame->data, frame->len);
            g_assert_cmphex(desc->hash_type, ==, type);
            if (type) {
                g_assert_cmphex(GUINT32_FROM_LE(desc->addr_l), ==, hash);
            }
            g_byte_array_unref(got);
        }
    }
    g_byte_array_unref(frame);
}

static uint8_t v(const Flow *flow, uint8_t ipv4, uint8_t ipv6)
{
    return flow->ipv6 ? ipv6 : ipv4;
}

static void test_vectors(void)
{
    size_t ip;
    EthQueues rss;

    eth_queues_open(&rss, 1, LOG_RING);
    g_assert_cmphex(nic_set_rss(rss.nic[0], RDMA_HCA_RSS_ALL, QUEUES), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(flows); i++) {
        const Flow *flow = &flows[i];
        uint8_t tcp = v(flow, RDMA_HCA_RSS_TCP_IPV4, RDMA_HCA_RSS_TCP_IPV6);
        uint8_t udp = v(flow, RDMA_HCA_RSS_UDP_IPV4, RDMA_HCA_RSS_UDP_IPV6);
        uint8_t other = v(flow, RDMA_HCA_RSS_IPV4, RDMA_HCA_RSS_IPV6);

        expect_at(&rss, make(rss.bench, flow, TCP, &ip), tcp, flow->all);
        expect_at(&rss, make(rss.bench, flow, UDP, &ip), udp, flow->all);
        expect_at(&rss, make(rss.bench, flow, ICMP, &ip), other,
                  flow->addresses);
    }
    g_assert_cmpuint(eth_count(rss.bench, "rx_hashed"), ==,
                     3 * G_N_ELEMENTS(flows));
    eth_queues_close(&rss);
}

/* With each set of types: the ports if they count, else the addresses, or none. */
static void test_types(void)
{
    EthQueues rss;

    eth_queues_open(&rss, 2, LOG_RING);
    for (uint32_t types = 0; types <= RDMA_HCA_RSS_ALL; types++) {
        g_assert_cmphex(nic_set_rss(rss.nic[0], types, QUEUES), ==, OK);
        for (unsigned i = 4; i < 6; i++) {
            const Flow *flow = &flows[i];
            uint8_t want = types & v(flow, RDMA_HCA_RSS_UDP_IPV4,
                                     RDMA_HCA_RSS_UDP_IPV6);
            uint32_t hash = flow->all;
            size_t ip;

            if (!want) {
                want = types & v(flow, RDMA_HCA_RSS_IPV4, RDMA_HCA_RSS_IPV6);
                hash = flow->addresses;
            }
            expect_at(&rss, make(rss.bench, flow, UDP, &ip), want, hash);
        }
    }
    eth_queues_close(&rss);
}

/* Fragments have no ports, not even the first one, and trailers do not count. */
static void test_fragments(void)
{
    static const uint16_t words[] = { 0x2000, 0x2001, 0x0001, 0x1fff };
    const Flow *flow = &flows[0];
    GByteArray *frame;
    size_t ip;
    EthQueues rss;

    eth_queues_open(&rss, 3, LOG_RING);
    g_assert_cmphex(nic_set_rss(rss.nic[0], RDMA_HCA_RSS_ALL, QUEUES), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        frame = make(rss.bench, flow, UDP, &ip);
        eth_put16(frame->data + ip + 6, words[i]);
        expect_at(&rss, frame, RDMA_HCA_RSS_IPV4, flow->addresses);
    }
    frame = make(rss.bench, flow, UDP, &ip);
    eth_put16(frame->data + ip + 6, 0x4000); /* do not fragment */
    expect_at(&rss, frame, RDMA_HCA_RSS_UDP_IPV4, flow->all);
    frame = make(rss.bench, flow, TCP, &ip);
    eth_put16(frame->data + ip + 2, 20 + 3); /* three bytes are no ports */
    expect_at(&rss, frame, RDMA_HCA_RSS_IPV4, flow->addresses);
    frame = make(rss.bench, flow, TCP, &ip);
    eth_put16(frame->data + ip + 2, 20 + 4);
    expect_at(&rss, frame, RDMA_HCA_RSS_TCP_IPV4, flow->all);
    eth_queues_close(&rss);
}

/* What is no whole IP header has no hash, and the first ring. */
static void test_no_header(void)
{
    GByteArray *frame;
    size_t ip;
    EthQueues rss;

    eth_queues_open(&rss, 4, LOG_RING);
    g_assert_cmphex(nic_set_rss(rss.nic[0], RDMA_HCA_RSS_ALL, QUEUES), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(flows); i += 5) {
        unsigned header = flows[i].ipv6 ? 40 : 20;

        for (unsigned len = ETH_HEADER; len < ETH_HEADER + header + 60; len++) {
            frame = make(rss.bench, &flows[i], TCP, &ip);
            g_byte_array_set_size(frame, len);
            expect_at(&rss, frame, 0, 0);
        }
        frame = make(rss.bench, &flows[i], TCP, &ip);
        frame->data[ip] ^= 0x80; /* another version */
        expect_at(&rss, frame, 0, 0);
    }
    frame = eth_make_frame(rss.bench, eth_broadcast, eth_stranger, 100);
    expect_at(&rss, frame, 0, 0);
    eth_queues_close(&rss);
}

/* Behind a VLAN tag the same. */
static void test_vlan(void)
{
    static const uint8_t tag[4] = { 0x81, 0x00, 0x20, 0x07 };
    size_t ip;
    EthQueues rss;

    eth_queues_open(&rss, 5, LOG_RING);
    g_assert_cmphex(nic_set_rss(rss.nic[0], RDMA_HCA_RSS_ALL, QUEUES), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(flows); i++) {
        GByteArray *plain = make(rss.bench, &flows[i], TCP, &ip);
        GByteArray *frame = g_byte_array_new();

        g_byte_array_append(frame, plain->data, 12);
        g_byte_array_append(frame, tag, sizeof(tag));
        g_byte_array_append(frame, plain->data + 12, plain->len - 12);
        g_byte_array_unref(plain);
        expect_at(&rss, frame,
                  v(&flows[i], RDMA_HCA_RSS_TCP_IPV4, RDMA_HCA_RSS_TCP_IPV6),
                  flows[i].all);
    }
    eth_queues_close(&rss);
}

static void test_refused(void)
{
    struct rdma_hca_rss box = { 0 };
    EthBench *bench = eth_bench_new(6, LOG_RING);

    for (unsigned bit = 6; bit < 32; bit++) {
        g_assert_cmphex(nic_set_rss(bench->nic, 1u << bit, 1), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
    }
    for (unsigned i = 0; i < RDMA_HCA_RSS_TABLE_SIZE; i++) {
        memset(box.table, 0, sizeof(box.table));
        box.table[i] = i % 2 ? QUEUES : 0xff;
        g_assert_cmphex(driver_cmd_in(bench->drv, RDMA_HCA_CMD_SET_RSS, &box,
                                      sizeof(box), 0, 0),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    eth_bench_free(bench);
}

/* A ring that is not there: its frames are lost, and no others. */
static void test_missing_ring(void)
{
    EthBench *bench = eth_bench_new(7, LOG_RING);
    uint64_t lost = 0;
    size_t ip;

    g_assert_cmphex(nic_set_rss(bench->nic, RDMA_HCA_RSS_ALL, QUEUES), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(flows); i++) {
        GByteArray *frame = make(bench, &flows[i], TCP, &ip);
        bool own = flows[i].all % RDMA_HCA_RSS_TABLE_SIZE % QUEUES == 0;

        eth_inject(bench, frame->data, frame->len);
        lost += !own;
        if (own) {
            eth_expect_received(bench, frame->data, frame->len, 0);
        }
        g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, lost);
        g_byte_array_unref(frame);
    }
    eth_bench_free(bench);
}

/* It stays when rings are stopped, and is off after a reset. */
static void test_life(void)
{
    const Flow *flow = &flows[1];
    size_t ip;
    EthQueues rss;

    eth_queues_open(&rss, 8, LOG_RING);
    g_assert_cmphex(nic_set_rss(rss.nic[0], RDMA_HCA_RSS_ALL, QUEUES), ==, OK);
    g_assert_cmphex(nic_stop(rss.nic[0]), ==, OK);
    g_assert_cmpuint(eth_count(rss.bench, "running"), ==, 0);
    for (unsigned i = 0; i < QUEUES; i++) {
        g_assert_cmphex(nic_start(rss.nic[i]), ==, OK);
        g_assert_cmphex(nic_start(rss.nic[i]), ==, RDMA_HCA_STAT_BAD_RESOURCE);
    }
    expect_at(&rss, make(rss.bench, flow, TCP, &ip), RDMA_HCA_RSS_TCP_IPV4,
              flow->all);
    host_reset(rss.bench->host);
    driver_free(rss.bench->drv);
    rss.bench->drv = driver_new(rss.bench->host);
    for (unsigned i = 0; i < QUEUES; i++) {
        rss.nic[i]->drv = rss.bench->drv;
        g_assert_cmphex(nic_start(rss.nic[i]), ==, OK);
    }
    expect_at(&rss, make(rss.bench, flow, TCP, &ip), 0, 0);
    eth_queues_close(&rss);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/rss/vectors", test_vectors);
    test_add("/eth/rss/types", test_types);
    test_add("/eth/rss/fragments", test_fragments);
    test_add("/eth/rss/no-header", test_no_header);
    test_add("/eth/rss/vlan", test_vlan);
    test_add("/eth/rss/refused", test_refused);
    test_add("/eth/rss/missing-ring", test_missing_ring);
    test_add("/eth/rss/life", test_life);
    return g_test_run();
}
