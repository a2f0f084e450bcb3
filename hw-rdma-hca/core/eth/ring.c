/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A descriptor ring in guest memory, and its interrupt.
 *
 * Software may write to a ring at any time: a descriptor is copied before it
 * is looked at, and what the card remembers is in HcaEthRing alone.
 */
#include "eth_int.h"

static uint16_t ring_size(const HcaEthRing *ring)
{
    return 1u << ring->log_size;
}

void *hca_eth_ring_slot(HcaEth *eth, const HcaEthRing *ring, uint16_t index,
                        uint64_t *addr)
{
    const Hca *hca = eth->hca;
    uint64_t len = HCA_ETH_DESC_SIZE;
    void *slot;

    *addr = ring->addr +
            HCA_ETH_DESC_SIZE * (uint64_t)(index & (ring_size(ring) - 1));
    slot = hca->ops->dma_map(hca->opaque, *addr, &len, true);
    return slot && len == HCA_ETH_DESC_SIZE ? slot : NULL;
}

void hca_eth_ring_done(HcaEth *eth, uint64_t addr)
{
    const Hca *hca = eth->hca;

    hca->ops->dma_written(hca->opaque, addr, HCA_ETH_DESC_SIZE);
}

/* A tail never goes back, and one place of the ring stays free. */
bool hca_eth_ring_set_tail(HcaEthRing *ring, uint32_t value)
{
    uint16_t level = value - ring->head;

    if (!ring->running || value > UINT16_MAX || level >= ring_size(ring) ||
        level < hca_eth_ring_level(ring)) {
        return false;
    }
    ring->tail = value;
    return true;
}

/* Software looks at a descriptor at most one round behind or before head. */
bool hca_eth_ring_arm(HcaEthRing *ring, uint32_t value)
{
    uint16_t behind = ring->head - value;
    uint16_t before = value - ring->head;

    if (!ring->running || value > UINT16_MAX ||
        (behind > ring_size(ring) && before > ring_size(ring))) {
        return false;
    }
    ring->armed = true;
    ring->arm = value;
    return true;
}

static bool is_done(const HcaEthRing *ring, uint16_t index)
{
    uint16_t behind = ring->head - index;

    return behind != 0 && behind <= INT16_MAX;
}

void hca_eth_ring_notify(HcaEth *eth, HcaEthRing *ring)
{
    const Hca *hca = eth->hca;

    if (ring->armed && is_done(ring, ring->arm)) {
        ring->armed = false;
        eth->counters.interrupts++;
        hca->ops->msix_notify(hca->opaque, ring->vector);
    }
}
