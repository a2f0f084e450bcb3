/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet function: commands, doorbells, life. */
#include <string.h>

#include "eth_int.h"

#define RING_ALIGN 64

/* Commands */

bool hca_eth_ring_setup_ok(const HcaEth *eth, const HcaEthRingSetup *ring)
{
    return ring->addr % RING_ALIGN == 0 &&
           ring->log_size >= HCA_ETH_MIN_LOG_RING &&
           ring->log_size <= HCA_ETH_MAX_LOG_RING &&
           ring->addr <= UINT64_MAX - (HCA_ETH_DESC_SIZE << ring->log_size) &&
           ring->vector < eth->hca->config.num_vectors;
}

static void clear(HcaEth *eth, HcaEthQueue *queue)
{
    hca_eth_ring_clear(eth, &queue->tx);
    hca_eth_ring_clear(eth, &queue->rx);
    queue->tx_discard = false;
    queue->tso.left = 0;
}

static void start(HcaEthRing *ring, const HcaEthRingSetup *setup)
{
    ring->addr = setup->addr;
    ring->log_size = setup->log_size;
    ring->vector = setup->vector;
    ring->running = true;
}

static bool is_running(const HcaEthQueue *queue)
{
    return queue->tx.running || queue->rx.running;
}

uint8_t hca_eth_start(HcaEth *eth, uint32_t queue, const HcaEthSetup *setup)
{
    if (queue >= HCA_ETH_MAX_QUEUES) {
        return HCA_STAT_BAD_INDEX;
    }
    if (is_running(&eth->queue[queue])) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (!hca_eth_ring_setup_ok(eth, &setup->tx) ||
        !hca_eth_ring_setup_ok(eth, &setup->rx)) {
        return HCA_STAT_BAD_PARAM;
    }
    clear(eth, &eth->queue[queue]);
    start(&eth->queue[queue].tx, &setup->tx);
    start(&eth->queue[queue].rx, &setup->rx);
    return HCA_STAT_OK;
}

void hca_eth_stop(HcaEth *eth)
{
    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        clear(eth, &eth->queue[i]);
    }
    hca_pause_forget(eth);
}

uint8_t hca_eth_moderate(HcaEth *eth, uint32_t queue,
                         const HcaEthModeration *tx, const HcaEthModeration *rx)
{
    if (queue >= HCA_ETH_MAX_QUEUES) {
        return HCA_STAT_BAD_INDEX;
    }
    if (!is_running(&eth->queue[queue])) {
        return HCA_STAT_BAD_RES_STATE;
    }
    hca_eth_ring_moderate(eth, &eth->queue[queue].tx, tx);
    hca_eth_ring_moderate(eth, &eth->queue[queue].rx, rx);
    return HCA_STAT_OK;
}

uint8_t hca_eth_set_rss(HcaEth *eth, const HcaRssSetup *setup)
{
    if (setup->types & ~(uint32_t)HCA_RSS_ALL) {
        return HCA_STAT_BAD_PARAM;
    }
    for (unsigned i = 0; i < HCA_RSS_TABLE_SIZE; i++) {
        if (setup->table[i] >= HCA_ETH_MAX_QUEUES) {
            return HCA_STAT_BAD_PARAM;
        }
    }
    hca_rss_set(&eth->rss, setup);
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

void hca_eth_doorbell(HcaEth *eth, unsigned queue, HcaEthDoorbell doorbell,
                      uint32_t value)
{
    bool tx = doorbell == HCA_ETH_TX_TAIL || doorbell == HCA_ETH_TX_ARM;
    HcaEthRing *ring = tx ? &eth->queue[queue].tx : &eth->queue[queue].rx;
    bool good = false;

    switch (doorbell) {
    case HCA_ETH_TX_TAIL:
    case HCA_ETH_RX_TAIL:
        good = hca_eth_ring_set_tail(ring, value);
        break;
    case HCA_ETH_TX_ARM:
    case HCA_ETH_RX_ARM:
        good = hca_eth_ring_arm(eth, ring, value);
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
    eth->timers.slot = eth->timer_slot;
    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        eth->queue[i].tx.timer.slot = -1;
        eth->queue[i].rx.timer.slot = -1;
    }
    hca_pause_init(&eth->pause);
    hca_eth_reset(eth);
    return eth;
}

void hca_eth_free(HcaEth *eth)
{
    hca_loopback_free(eth->pause.held);
    g_free(eth);
}

void hca_eth_close(HcaEth *eth)
{
    hca_eth_stop(eth);
    hca_eth_set_pause(eth, false, false);
    eth->rss = (HcaRss) { .types = HCA_RSS_NONE };
    memset(&eth->filter, 0, sizeof(eth->filter));
    memcpy(eth->filter.mac, eth->hca->config.mac, HCA_ETH_MAC_SIZE);
}

void hca_eth_reset(HcaEth *eth)
{
    hca_eth_close(eth);
    eth->tx_turn = 0;
    memset(&eth->counters, 0, sizeof(eth->counters));
}

bool hca_eth_running(const HcaEth *eth)
{
    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        if (is_running(&eth->queue[i])) {
            return true;
        }
    }
    return false;
}

const HcaEthCounters *hca_eth_counters(const HcaEth *eth)
{
    return &eth->counters;
}
