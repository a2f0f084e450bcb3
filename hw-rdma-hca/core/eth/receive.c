/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receive: the filter, and from a frame to a buffer of the ring. */
#include <string.h>

#include "eth_int.h"

static bool is_multicast(const uint8_t *mac)
{
    return mac[0] & 1;
}

static bool is_broadcast(const uint8_t *mac)
{
    static const uint8_t broadcast[HCA_ETH_MAC_SIZE] = { 0xff, 0xff, 0xff,
                                                         0xff, 0xff, 0xff };

    return memcmp(mac, broadcast, sizeof(broadcast)) == 0;
}

static bool in_list(const HcaEthRxMode *filter, const uint8_t *mac)
{
    for (unsigned i = 0; i < filter->count; i++) {
        if (memcmp(mac, filter->multicast[i], HCA_ETH_MAC_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* A segment may hand a frame back to who sent it. */
static bool accepts(const HcaEthRxMode *filter, const uint8_t *frame)
{
    const uint8_t *to = frame;
    const uint8_t *from = frame + HCA_ETH_MAC_SIZE;

    if (memcmp(from, filter->mac, HCA_ETH_MAC_SIZE) == 0) {
        return false;
    }
    if (filter->promisc || is_broadcast(to)) {
        return true;
    }
    if (is_multicast(to)) {
        return filter->allmulti || in_list(filter, to);
    }
    return memcmp(to, filter->mac, HCA_ETH_MAC_SIZE) == 0;
}

static bool copy_to_guest(const Hca *hca, uint64_t addr, const uint8_t *from,
                          uint64_t len)
{
    while (len) {
        uint64_t n = len;
        void *to = hca->host.ops->dma_map(hca->host.opaque, addr, &n, true);

        if (!to) {
            return false;
        }
        memcpy(to, from, n);
        hca->host.ops->dma_written(hca->host.opaque, addr, n);
        from += n;
        addr += n;
        len -= n;
    }
    return true;
}

/* Fill a buffer; false: it is not RAM. */
static bool store(HcaEth *eth, uint64_t addr, const uint8_t *frame, size_t len)
{
    if (!copy_to_guest(eth->hca, addr, frame, len)) {
        eth->counters.rx_errors++;
        return false;
    }
    eth->counters.rx_frames++;
    eth->counters.rx_bytes += len;
    return true;
}

/* What the card knows of a frame that is received. */
typedef struct Frame {
    const uint8_t *data;
    size_t len;
    HcaEthHeaders headers;
    HcaRssType hash_type;
    uint32_t hash;
} Frame;

/* What software is told of a frame that has been @stored. */
static HcaEthReceived tell(HcaEth *eth, const Frame *frame, bool stored)
{
    HcaEthReceived received = { 0 };

    if (stored) {
        received.len = frame->len;
        received.checksum_right = hca_eth_checksum_right(&frame->headers);
        received.hash_type = frame->hash_type;
        received.hash = frame->hash;
    }
    eth->counters.rx_checksum_ok += received.checksum_right;
    eth->counters.rx_hashed += received.hash_type != HCA_RSS_NONE;
    return received;
}

static void take_descriptor(HcaEth *eth, HcaEthRing *ring, const Frame *frame)
{
    const HcaEthFormat *format = eth->hca->format->eth;
    HcaEthReceived received;
    HcaEthRxDesc desc;
    uint64_t addr;
    void *slot;

    slot = hca_eth_ring_slot(eth, ring, ring->head, &addr);
    if (!slot) {
        ring->running = false;
        eth->counters.rx_errors++;
        return;
    }
    format->read_rx(slot, &desc);
    if (frame->len > desc.size) {
        eth->counters.rx_no_buffer++;
        return;
    }
    received = tell(eth, frame, store(eth, desc.addr, frame->data, frame->len));
    format->rx_done(slot, &received);
    hca_eth_ring_done(eth, addr);
    ring->head++;
    hca_eth_ring_frame_done(ring);
    hca_eth_ring_notify(eth, ring);
}

/* The ring that a frame is for: the first one, unless it is spread over them. */
static HcaEthRing *find_ring(HcaEth *eth, Frame *frame)
{
    unsigned queue = 0;

    frame->hash_type = hca_rss_hash(&eth->rss, &frame->headers, &frame->hash);
    if (frame->hash_type != HCA_RSS_NONE) {
        queue = eth->rss.table[frame->hash % HCA_RSS_TABLE_SIZE];
    }
    return &eth->queue[queue].rx;
}

bool hca_eth_deliver(HcaEth *eth, const uint8_t *data, size_t len)
{
    Frame frame = { .data = data, .len = len };
    HcaEthRing *ring;

    hca_eth_parse(data, len, &frame.headers);
    ring = find_ring(eth, &frame);
    if (ring->running && hca_eth_ring_level(ring)) {
        take_descriptor(eth, ring, &frame);
    } else if (hca_pause_waits_for(eth, ring)) {
        return false;
    } else {
        eth->counters.rx_no_buffer++;
    }
    return true;
}

static bool is_receiving(const HcaEth *eth)
{
    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        if (eth->queue[i].rx.running) {
            return true;
        }
    }
    return false;
}

bool hca_eth_accepts(const HcaEth *eth, const uint8_t *frame, size_t len)
{
    return len >= HCA_ETH_HEADER_SIZE && is_receiving(eth) &&
           accepts(&eth->filter, frame);
}

void hca_eth_receive(HcaEth *eth, const uint8_t *frame, size_t len)
{
    if (len < HCA_ETH_HEADER_SIZE) {
        eth->counters.rx_errors++;
    } else if (!is_receiving(eth) || !accepts(&eth->filter, frame)) {
        eth->counters.rx_filtered++;
    } else if (eth->pause.num_held || !hca_eth_deliver(eth, frame, len)) {
        hca_pause_hold(eth, frame, len);
    }
}
