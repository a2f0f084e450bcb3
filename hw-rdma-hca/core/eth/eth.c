/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet function: commands, doorbells, life. */
#include <string.h>

#include "eth_int.h"

#define RING_ALIGN 64

/* Commands */

static bool ring_is_valid(const HcaEth *eth, const HcaEthRing *ring,
                          uint32_t log_size)
{
    return ring->addr % RING_ALIGN == 0 &&
           log_size >= RDMA_HCA_ETH_MIN_LOG_RING &&
           log_size <= RDMA_HCA_ETH_MAX_LOG_RING &&
           ring->addr <= UINT64_MAX - (HCA_ETH_DESC_SIZE << log_size) &&
           ring->vector < eth->hca->config.num_vectors;
}

static void stop(HcaEth *eth)
{
    memset(&eth->tx, 0, sizeof(eth->tx));
    memset(&eth->rx, 0, sizeof(eth->rx));
    eth->tx_discard = false;
}

uint8_t hca_eth_setup(HcaEth *eth, const struct rdma_hca_setup_eth *setup)
{
    HcaEthRing tx = { .running = true }, rx = { .running = true };
    uint32_t sizes, vectors, log_tx, log_rx;

    if (!setup) {
        stop(eth);
        return HCA_STAT_OK;
    }
    if (hca_eth_running(eth)) {
        return HCA_STAT_BAD_RESOURCE;
    }
    sizes = GUINT32_FROM_BE(setup->log_sizes);
    vectors = GUINT32_FROM_BE(setup->vectors);
    log_tx = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_LOG_TX, sizes);
    log_rx = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_LOG_RX, sizes);
    tx.addr = (uint64_t)GUINT32_FROM_BE(setup->tx_ring_h) << 32 |
              GUINT32_FROM_BE(setup->tx_ring_l);
    rx.addr = (uint64_t)GUINT32_FROM_BE(setup->rx_ring_h) << 32 |
              GUINT32_FROM_BE(setup->rx_ring_l);
    tx.vector = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_TX_VECTOR, vectors);
    rx.vector = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_RX_VECTOR, vectors);
    if (!ring_is_valid(eth, &tx, log_tx) || !ring_is_valid(eth, &rx, log_rx)) {
        return HCA_STAT_BAD_PARAM;
    }
    tx.log_size = log_tx;
    rx.log_size = log_rx;
    eth->tx = tx;
    eth->rx = rx;
    return HCA_STAT_OK;
}

static void get_mac(uint8_t *mac, const struct rdma_hca_rx_mode *mode)
{
    memcpy(mac, &mode->mac_h, 4);
    memcpy(mac + 4, &mode->mac_l, 2);
}

static bool is_station_address(const uint8_t *mac)
{
    static const uint8_t none[HCA_ETH_MAC_SIZE];

    return !(mac[0] & 1) && memcmp(mac, none, sizeof(none)) != 0;
}

uint8_t hca_eth_set_rx_mode(HcaEth *eth, const struct rdma_hca_rx_mode *mode)
{
    uint32_t flags = GUINT32_FROM_BE(mode->flags);
    HcaEthFilter filter = {
        .promisc = flags & RDMA_HCA_RX_MODE_PROMISC,
        .allmulti = flags & RDMA_HCA_RX_MODE_ALLMULTI,
        .count = GUINT32_FROM_BE(mode->count),
    };

    get_mac(filter.mac, mode);
    if (filter.count > RDMA_HCA_RX_MODE_MAX_MULTICAST ||
        !is_station_address(filter.mac)) {
        return HCA_STAT_BAD_PARAM;
    }
    for (unsigned i = 0; i < filter.count; i++) {
        if (!(mode->multicast[i][0] & 1)) {
            return HCA_STAT_BAD_PARAM;
        }
        memcpy(filter.multicast[i], mode->multicast[i], HCA_ETH_MAC_SIZE);
    }
    eth->filter = filter;
    return HCA_STAT_OK;
}

/* Doorbells */

void hca_eth_doorbell(HcaEth *eth, uint32_t offset, uint32_t value)
{
    bool tx = offset == RDMA_HCA_ETH_DB_TX_TAIL ||
              offset == RDMA_HCA_ETH_DB_TX_ARM;
    HcaEthRing *ring = tx ? &eth->tx : &eth->rx;
    bool good = false;

    switch (offset) {
    case RDMA_HCA_ETH_DB_TX_TAIL:
    case RDMA_HCA_ETH_DB_RX_TAIL:
        good = hca_eth_ring_set_tail(ring, value);
        break;
    case RDMA_HCA_ETH_DB_TX_ARM:
    case RDMA_HCA_ETH_DB_RX_ARM:
        good = hca_eth_ring_arm(ring, value);
        hca_eth_ring_notify(eth, ring);
        break;
    }
    eth->counters.bad_doorbells += !good;
}

/* Life */

HcaEth *hca_eth_new(Hca *hca)
{
    HcaEth *eth = g_new0(HcaEth, 1);

    eth->hca = hca;
    hca_eth_reset(eth);
    return eth;
}

void hca_eth_free(HcaEth *eth)
{
    g_free(eth);
}

void hca_eth_close(HcaEth *eth)
{
    stop(eth);
    memset(&eth->filter, 0, sizeof(eth->filter));
    memcpy(eth->filter.mac, eth->hca->config.mac, HCA_ETH_MAC_SIZE);
}

void hca_eth_reset(HcaEth *eth)
{
    hca_eth_close(eth);
    memset(&eth->counters, 0, sizeof(eth->counters));
}

bool hca_eth_running(const HcaEth *eth)
{
    return eth->tx.running || eth->rx.running;
}

const HcaEthCounters *hca_eth_counters(const HcaEth *eth)
{
    return &eth->counters;
}
