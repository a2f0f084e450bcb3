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

static bool in_list(const HcaEthFilter *filter, const uint8_t *mac)
{
    for (unsigned i = 0; i < filter->count; i++) {
        if (memcmp(mac, filter->multicast[i], HCA_ETH_MAC_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* A segment may hand a frame back to who sent it. */
static bool accepts(const HcaEthFilter *filter, const uint8_t *frame)
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

/* Fill the buffer of a descriptor; false: it is not RAM. */
static bool store(HcaEth *eth, struct rdma_hca_eth_rx *slot,
                  const struct rdma_hca_eth_rx *desc, const uint8_t *frame,
                  size_t len)
{
    uint64_t addr = (uint64_t)GUINT32_FROM_LE(desc->addr_h) << 32 |
                    GUINT32_FROM_LE(desc->addr_l);

    if (!copy_to_guest(eth->hca, addr, frame, len)) {
        slot->len = 0;
        slot->flags = 0;
        eth->counters.rx_errors++;
        return false;
    }
    slot->len = GUINT16_TO_LE(len);
    slot->flags = 0;
    if (hca_eth_checksum_right(frame, len)) {
        slot->flags = RDMA_HCA_ETH_RX_CSUM_OK;
        eth->counters.rx_checksum_ok++;
    }
    eth->counters.rx_frames++;
    eth->counters.rx_bytes += len;
    return true;
}

static void take_descriptor(HcaEth *eth, const uint8_t *frame, size_t len)
{
    HcaEthRing *ring = &eth->rx;
    struct rdma_hca_eth_rx desc, *slot;
    uint64_t addr;
    bool stored;

    slot = hca_eth_ring_slot(eth, ring, ring->head, &addr);
    if (!slot) {
        ring->running = false;
        eth->counters.rx_errors++;
        return;
    }
    memcpy(&desc, slot, sizeof(desc));
    if (len > GUINT16_FROM_LE(desc.size)) {
        eth->counters.rx_no_buffer++;
        return;
    }
    stored = store(eth, slot, &desc, frame, len);
    hca_eth_ring_done(eth, slot, addr, &slot->done,
                      stored ? 0 : RDMA_HCA_ETH_ERROR);
    ring->head++;
    hca_eth_ring_notify(eth, ring);
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
