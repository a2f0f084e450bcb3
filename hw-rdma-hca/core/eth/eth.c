/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet function: commands, doorbells, life. */
#include <string.h>

#include "eth_int.h"

#define RING_ALIGN 64

/* Commands */

static bool ring_is_valid(const HcaEth *eth, const HcaEthRingSetup *ring)
{
    return ring->addr % RING_ALIGN == 0 &&
           ring->log_size >= HCA_ETH_MIN_LOG_RING &&
           ring->log_size <= HCA_ETH_MAX_LOG_RING &&
           ring->addr <= UINT64_MAX - (HCA_ETH_DESC_SIZE << ring->log_size) &&
           ring->vector < eth->hca->config.num_vectors;
}

static void start(HcaEthRing *ring, const HcaEthRingSetup *setup)
{
    *ring = (HcaEthRing) {
        .addr = setup->addr,
        .log_size = setup->log_size,
        .vector = setup->vector,
        .running = true,
    };
}

static void stop(HcaEth *eth)
{
    memset(&eth->tx, 0, sizeof(eth->tx));
    memset(&eth->rx, 0, sizeof(eth->rx));
    eth->tx_discard = false;
}

uint8_t hca_eth_setup(HcaEth *eth, const HcaEthSetup *setup)
{
    if (!setup) {
        stop(eth);
        return HCA_STAT_OK;
    }
    if (hca_eth_running(eth)) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (!ring_is_valid(eth, &setup->tx) || !ring_is_valid(eth, &setup->rx)) {
        return HCA_STAT_BAD_PARAM;
    }
    start(&eth->tx, &setup->tx);
    start(&eth->rx, &setup->rx);
    return HCA_STAT_OK;
}

static bool is_station_address(const uint8_t *mac)
{
    static const uint8_t none[HCA_ETH_MAC_SIZE];

    return !(mac[0] & 1) && memcmp(mac, none, sizeof(none)) != 0;
}

uint8_t hca_eth_set_rx_mode(HcaEth *eth, const HcaEthRxMode *mode)
{
    if (mode->count > HCA_ETH_MAX_MULTICAST || !is_station_address(mode->mac)) {
        return HCA_STAT_BAD_PARAM;
    }
    for (unsigned i = 0; i < mode->count; i++) {
        if (!(mode->multicast[i][0] & 1)) {
            return HCA_STAT_BAD_PARAM;
        }
    }
    eth->filter = *mode;
    return HCA_STAT_OK;
}

/* Doorbells */

void hca_eth_doorbell(HcaEth *eth, HcaEthDoorbell doorbell, uint32_t value)
{
    bool tx = doorbell == HCA_ETH_TX_TAIL || doorbell == HCA_ETH_TX_ARM;
    HcaEthRing *ring = tx ? &eth->tx : &eth->rx;
    bool good = false;

    switch (doorbell) {
    case HCA_ETH_TX_TAIL:
    case HCA_ETH_RX_TAIL:
        good = hca_eth_ring_set_tail(ring, value);
        break;
    case HCA_ETH_TX_ARM:
    case HCA_ETH_RX_ARM:
        good = hca_eth_ring_arm(ring, value);
        hca_eth_ring_notify(eth, ring);
        break;
    case HCA_ETH_NO_DOORBELL:
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
