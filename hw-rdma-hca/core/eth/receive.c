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
        void *to = hca->ops->dma_map(hca->opaque, addr, &n, true);

        if (!to) {
            return false;
        }
        memcpy(to, from, n);
        hca->ops->dma_written(hca->opaque, addr, n);
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

static void take_descriptor(HcaEth *eth, const uint8_t *frame, size_t len)
{
    const HcaEthFormat *format = eth->hca->format->eth;
    HcaEthRing *ring = &eth->rx;
    HcaEthRxDesc desc;
    uint64_t addr;
    bool stored, right;
    void *slot;

    slot = hca_eth_ring_slot(eth, ring, ring->head, &addr);
    if (!slot) {
        ring->running = false;
        eth->counters.rx_errors++;
        return;
    }
    format->read_rx(slot, &desc);
    if (len > desc.size) {
        eth->counters.rx_no_buffer++;
        return;
    }
    stored = store(eth, desc.addr, frame, len);
    right = stored && hca_eth_checksum_right(frame, len);
    eth->counters.rx_checksum_ok += right;
    format->rx_done(slot, stored ? len : 0, right);
    hca_eth_ring_done(eth, addr);
    ring->head++;
    hca_eth_ring_notify(eth, ring);
}

bool hca_eth_accepts(const HcaEth *eth, const uint8_t *frame, size_t len)
{
    return len >= HCA_ETH_HEADER_SIZE && eth->rx.running &&
           accepts(&eth->filter, frame);
}

void hca_eth_receive(HcaEth *eth, const uint8_t *frame, size_t len)
{
    if (len < HCA_ETH_HEADER_SIZE) {
        eth->counters.rx_errors++;
    } else if (!eth->rx.running || !accepts(&eth->filter, frame)) {
        eth->counters.rx_filtered++;
    } else if (!hca_eth_ring_level(&eth->rx)) {
        eth->counters.rx_no_buffer++;
    } else {
        take_descriptor(eth, frame, len);
    }
}
