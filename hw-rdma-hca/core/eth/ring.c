/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A descriptor ring in guest memory, and its interrupt.
 *
 * Software may write to a ring at any time: a descriptor is copied before it
 * is looked at, and what the card remembers is in HcaEthRing alone.
 */
#include "eth_int.h"

#define NS_PER_US 1000

void *hca_eth_ring_slot(HcaEth *eth, const HcaEthRing *ring, uint16_t index,
                        uint64_t *addr)
{
    const Hca *hca = eth->hca;
    uint64_t len = HCA_ETH_DESC_SIZE;
    void *slot;

    *addr = ring->addr + HCA_ETH_DESC_SIZE *
                             (uint64_t)(index & (hca_eth_ring_size(ring) - 1));
    slot = hca->host.ops->dma_map(hca->host.opaque, *addr, &len, true);
    return slot && len == HCA_ETH_DESC_SIZE ? slot : NULL;
}

void hca_eth_ring_done(HcaEth *eth, uint64_t addr)
{
    const Hca *hca = eth->hca;

    hca->host.ops->dma_written(hca->host.opaque, addr, HCA_ETH_DESC_SIZE);
}

/* A tail never goes back, and one place of the ring stays free. */
bool hca_eth_ring_set_tail(HcaEthRing *ring, uint32_t value)
{
    uint16_t level = value - ring->head;

    if (!ring->running || value > UINT16_MAX ||
        level >= hca_eth_ring_size(ring) || level < hca_eth_ring_level(ring)) {
        return false;
    }
    ring->tail = value;
    ring->posted |= level != 0;
    return true;
}

/* The interrupt: software waits for a descriptor that is done. */

static bool is_wanted(const HcaEthRing *ring)
{
    uint16_t behind = ring->head - ring->arm;

    return ring->armed && behind != 0 && behind <= INT16_MAX;
}

static void interrupt(HcaEth *eth, HcaEthRing *ring)
{
    const Hca *hca = eth->hca;

    hca_heap_remove(&eth->timers, &ring->timer);
    ring->armed = false;
    eth->counters.interrupts++;
    hca_v2p_interrupt(hca->v2p, ring->vector);
}

/*
 * Software looks at a descriptor at most one round behind or before head. What
 * is done already it is told at once: it has just looked, and did not see it.
 */
bool hca_eth_ring_arm(HcaEth *eth, HcaEthRing *ring, uint32_t value)
{
    uint16_t behind = ring->head - value;
    uint16_t before = value - ring->head;

    if (!ring->running || value > UINT16_MAX ||
        (behind > hca_eth_ring_size(ring) &&
         before > hca_eth_ring_size(ring))) {
        return false;
    }
    hca_heap_remove(&eth->timers, &ring->timer);
    ring->armed = true;
    ring->arm = value;
    ring->untold = 0;
    if (is_wanted(ring)) {
        interrupt(eth, ring);
    }
    return true;
}

void hca_eth_ring_frame_done(HcaEthRing *ring)
{
    ring->untold += is_wanted(ring);
}

static bool has_enough(const HcaEthRing *ring)
{
    const HcaEthModeration *moderation = &ring->moderation;

    return !moderation->frames || !moderation->period_us ||
           ring->untold >= moderation->frames;
}

static int64_t period_end(const HcaEth *eth, const HcaEthRing *ring)
{
    return hca_now(eth->hca) + (int64_t)ring->moderation.period_us * NS_PER_US;
}

void hca_eth_ring_notify(HcaEth *eth, HcaEthRing *ring)
{
    if (!is_wanted(ring)) {
        return;
    }
    if (has_enough(ring)) {
        interrupt(eth, ring);
    } else if (ring->timer.slot < 0) {
        eth->counters.interrupts_held++;
        hca_heap_put(&eth->timers, &ring->timer, period_end(eth, ring));
    }
}

/* An interrupt that waits comes no later than it would have. */
void hca_eth_ring_moderate(HcaEth *eth, HcaEthRing *ring,
                           const HcaEthModeration *moderation)
{
    int64_t end;

    ring->moderation = *moderation;
    if (ring->timer.slot < 0) {
        return;
    }
    if (has_enough(ring)) {
        interrupt(eth, ring);
        return;
    }
    end = period_end(eth, ring);
    hca_heap_put(&eth->timers, &ring->timer, MIN(end, ring->timer.key));
}

void hca_eth_ring_clear(HcaEth *eth, HcaEthRing *ring)
{
    hca_heap_remove(&eth->timers, &ring->timer);
    *ring = (HcaEthRing) { .timer.slot = -1 };
}

int64_t hca_eth_deadline(const HcaEth *eth)
{
    const HcaHeapNode *first = hca_heap_first(&eth->timers);

    return MIN(first ? first->key : INT64_MAX, eth->pause.again_at);
}

void hca_eth_run_timers(HcaEth *eth)
{
    HcaHeapNode *first = hca_heap_first(&eth->timers);
    int64_t now = first ? hca_now(eth->hca) : 0;

    for (; first && first->key <= now; first = hca_heap_first(&eth->timers)) {
        interrupt(eth, HCA_HEAP_ENTRY(first, HcaEthRing, timer));
    }
}
