/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of the Ethernet function. An InfiniBand card has none: then @room
 * is NULL.
 */
#include <string.h>

#include "../qp_state.h"
#include "eth_int.h"

/* Rings */

static const HcaField moderation_fields[] = {
    HCA_SAVED(HcaEthModeration, frames),
    HCA_SAVED(HcaEthModeration, period_us),
};
static const HcaStruct moderation_struct = HCA_STRUCT(HcaEthModeration,
                                                      moderation_fields);

static const HcaField ring_fields[] = {
    HCA_SAVED(HcaEthRing, addr),
    HCA_SAVED(HcaEthRing, log_size),
    HCA_SAVED(HcaEthRing, running),
    HCA_SAVED(HcaEthRing, posted),
    HCA_SAVED(HcaEthRing, armed),
    HCA_SAVED(HcaEthRing, arm),
    HCA_SAVED(HcaEthRing, vector),
    HCA_SAVED(HcaEthRing, head),
    HCA_SAVED(HcaEthRing, tail),
    HCA_SAVED_STRUCT(HcaEthRing, moderation, moderation_struct),
    HCA_SAVED(HcaEthRing, untold),
    HCA_SAVED_STRUCT(HcaEthRing, timer, hca_timer_struct),
    HCA_SAVED(HcaEthRing, supply),
    HCA_SAVED(HcaEthRing, short_tail),
    HCA_SAVED(HcaEthRing, short_since),
};
static const HcaStruct ring_struct = HCA_STRUCT(HcaEthRing, ring_fields);

static const HcaField desc_fields[] = {
    HCA_SAVED(HcaEthTxDesc, addr),       HCA_SAVED(HcaEthTxDesc, len),
    HCA_SAVED(HcaEthTxDesc, last),       HCA_SAVED(HcaEthTxDesc, checksum),
    HCA_SAVED(HcaEthTxDesc, csum_start), HCA_SAVED(HcaEthTxDesc, csum_offset),
    HCA_SAVED(HcaEthTxDesc, tso),        HCA_SAVED(HcaEthTxDesc, mss),
    HCA_SAVED(HcaEthTxDesc, header_len), HCA_SAVED(HcaEthTxDesc, ip_start),
    HCA_SAVED(HcaEthTxDesc, tcp_start),
};
static const HcaStruct desc_struct = HCA_STRUCT(HcaEthTxDesc, desc_fields);

static const HcaField pieces_fields[] = {
    HCA_SAVED_STRUCTS(HcaEthPieces, desc, desc[0], desc_struct),
    HCA_SAVED(HcaEthPieces, count),
    HCA_SAVED(HcaEthPieces, whole),
};
static const HcaStruct pieces_struct = HCA_STRUCT(HcaEthPieces, pieces_fields);

static const HcaField tso_fields[] = {
    HCA_SAVED(HcaEthTso, piece),
    HCA_SAVED(HcaEthTso, at),
    HCA_SAVED(HcaEthTso, left),
    HCA_SAVED(HcaEthTso, sent),
    HCA_SAVED(HcaEthTso, segments),
    HCA_SAVED(HcaEthTso, mss),
    HCA_SAVED(HcaEthTso, header_len),
    HCA_SAVED(HcaEthTso, ip_start),
    HCA_SAVED(HcaEthTso, tcp_start),
    HCA_SAVED(HcaEthTso, ipv6),
    HCA_SAVED_ARRAY(HcaEthTso, header, header[0]),
};
static const HcaStruct tso_struct = HCA_STRUCT(HcaEthTso, tso_fields);

static const HcaField queue_fields[] = {
    HCA_SAVED_STRUCT(HcaEthQueue, tx, ring_struct),
    HCA_SAVED_STRUCT(HcaEthQueue, rx, ring_struct),
    HCA_SAVED(HcaEthQueue, tx_discard),
    HCA_SAVED_STRUCT(HcaEthQueue, pieces, pieces_struct),
    HCA_SAVED_STRUCT(HcaEthQueue, tso, tso_struct),
};
static const HcaStruct queue_struct = HCA_STRUCT(HcaEthQueue, queue_fields);

typedef struct Queue {
    uint8_t number;
    HcaEthQueue queue;
} Queue;

static const HcaField numbered_fields[] = {
    HCA_SAVED(Queue, number),
    HCA_SAVED_STRUCT(Queue, queue, queue_struct),
};
static const HcaStruct numbered_struct = HCA_STRUCT(Queue, numbered_fields);

static void save_queues(void *room, GArray *records)
{
    const HcaEth *eth = room;

    for (unsigned i = 0; eth && i < HCA_ETH_MAX_QUEUES; i++) {
        Queue queue = { i, eth->queue[i] };

        if (queue.queue.tx.running || queue.queue.rx.running) {
            hca_heap_save(&queue.queue.tx.timer);
            hca_heap_save(&queue.queue.rx.timer);
            g_array_append_val(records, queue);
        }
    }
}

static bool ring_ok(const HcaEth *eth, const HcaEthRing *ring)
{
    const HcaEthRingSetup setup = { ring->addr, ring->log_size, ring->vector };

    return (!ring->running || hca_eth_ring_setup_ok(eth, &setup)) &&
           ring->log_size <= HCA_ETH_MAX_LOG_RING &&
           hca_eth_ring_level(ring) <= hca_eth_ring_size(ring) &&
           ring->supply <= HCA_ETH_SUPPLY_GIVEN_UP;
}

/* What is left of a frame that is being cut is in its pieces. */
static bool rest_ok(const HcaEthTso *tso, const HcaEthPieces *pieces)
{
    uint64_t there = 0;

    for (unsigned i = tso->piece; i < pieces->count; i++) {
        there += pieces->desc[i].len;
    }
    return tso->piece < pieces->count &&
           tso->at <= pieces->desc[tso->piece].len &&
           tso->left <= there - tso->at;
}

static bool header_ok(const HcaEthTso *tso)
{
    HcaEthTso checked = *tso;

    return tso->mss >= HCA_ETH_MIN_MSS &&
           tso->header_len <= HCA_ETH_MAX_TSO_HEADER &&
           tso->mss + tso->header_len <= HCA_ETH_MAX_FRAME &&
           hca_eth_tso_check(&checked) && checked.ipv6 == tso->ipv6;
}

/* It is a whole one, whose descriptors have not been given back. */
static bool tso_ok(const HcaEthQueue *queue)
{
    return queue->pieces.whole && !queue->tx_discard &&
           queue->pieces.count <= hca_eth_ring_level(&queue->tx) &&
           rest_ok(&queue->tso, &queue->pieces) && header_ok(&queue->tso);
}

static bool queue_ok(const HcaEth *eth, const HcaEthQueue *queue)
{
    return ring_ok(eth, &queue->tx) && ring_ok(eth, &queue->rx) &&
           queue->pieces.count <= HCA_ETH_MAX_PIECES &&
           (!queue->tso.left || tso_ok(queue));
}

static void start_timer(HcaEth *eth, HcaEthRing *ring)
{
    bool runs = ring->timer.slot >= 0;

    ring->timer.slot = -1;
    if (runs) {
        hca_heap_put(&eth->timers, &ring->timer, ring->timer.key);
    }
}

static bool load_queues(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    HcaEth *eth = room;
    const Queue *from = records;

    for (; n; n--, from++) {
        HcaEthQueue *queue;

        if (!eth || from->number >= HCA_ETH_MAX_QUEUES ||
            eth->queue[from->number].tx.running ||
            eth->queue[from->number].rx.running ||
            !(from->queue.tx.running || from->queue.rx.running) ||
            !queue_ok(eth, &from->queue)) {
            return hca_state_refuse(error, "no queue %u", from->number);
        }
        queue = &eth->queue[from->number];
        *queue = from->queue;
        start_timer(eth, &queue->tx);
        start_timer(eth, &queue->rx);
    }
    return true;
}

const HcaSection hca_eth_queue_section = HCA_SECTION(
    "eth-queue", 1, &numbered_struct, save_queues, load_queues);

/* The rest */

static const HcaField filter_fields[] = {
    HCA_SAVED(HcaEthRxMode, promisc),
    HCA_SAVED(HcaEthRxMode, allmulti),
    HCA_SAVED_ARRAY(HcaEthRxMode, mac, mac[0]),
    HCA_SAVED(HcaEthRxMode, count),
    HCA_SAVED_ARRAY(HcaEthRxMode, multicast, multicast[0][0]),
};
static const HcaStruct filter_struct = HCA_STRUCT(HcaEthRxMode, filter_fields);

static const HcaField rss_fields[] = {
    HCA_SAVED(HcaRss, types),
    HCA_SAVED_ARRAY(HcaRss, part, part[0][0]),
    HCA_SAVED_ARRAY(HcaRss, table, table[0]),
};
static const HcaStruct rss_struct = HCA_STRUCT(HcaRss, rss_fields);

static const HcaField pause_fields[] = {
    HCA_SAVED(HcaPause, rx),        HCA_SAVED(HcaPause, tx),
    HCA_SAVED(HcaPause, told),      HCA_SAVED(HcaPause, again_at),
    HCA_ELSEWHERE(HcaPause, held),  HCA_ELSEWHERE(HcaPause, num_held),
    HCA_ELSEWHERE(HcaPause, first), HCA_ELSEWHERE(HcaPause, first_len),
};
static const HcaStruct pause_struct = HCA_STRUCT(HcaPause, pause_fields);

static const HcaField eth_fields[] = {
    HCA_DERIVED(HcaEth, hca),
    HCA_ELSEWHERE(HcaEth, queue),
    HCA_SAVED(HcaEth, tx_turn),
    HCA_SAVED(HcaEth, tx_waits),
    HCA_DERIVED(HcaEth, timers),
    HCA_DERIVED(HcaEth, timer_slot),
    HCA_SAVED_STRUCT(HcaEth, filter, filter_struct),
    HCA_SAVED_STRUCT(HcaEth, rss, rss_struct),
    HCA_SAVED_STRUCT(HcaEth, pause, pause_struct),
    HCA_COUNTED(HcaEth, counters),
};
static const HcaStruct eth_struct = HCA_STRUCT(HcaEth, eth_fields);

static void save_eth(void *room, GArray *records)
{
    if (room) {
        g_array_append_vals(records, room, 1);
    }
}

static bool eth_ok(const HcaEth *from)
{
    bool ok = from->tx_turn <= HCA_ETH_MAX_QUEUES &&
              from->filter.count <= HCA_ETH_MAX_MULTICAST;

    for (unsigned i = 0; i < HCA_RSS_TABLE_SIZE; i++) {
        ok &= from->rss.table[i] < HCA_ETH_MAX_QUEUES;
    }
    return ok;
}

static bool load_eth(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    HcaEth *eth = room;
    const HcaEth *from = records;

    if (n != (eth != NULL) || (eth && !eth_ok(from))) {
        return hca_state_refuse(error, "no such function");
    }
    if (eth) {
        hca_eth_set_pause(eth, from->pause.rx, from->pause.tx);
        hca_struct_take(&eth_struct, eth, from);
    }
    return true;
}

const HcaSection hca_eth_section = HCA_SECTION("eth", 1, &eth_struct, save_eth,
                                               load_eth);

/* Frames that wait for a descriptor */

static void save_held(void *room, GArray *bytes)
{
    const HcaEth *eth = room;

    if (!eth || !eth->pause.held) {
        return;
    }
    if (eth->pause.first) {
        hca_state_put_packet(bytes, eth->pause.first, eth->pause.first_len);
    }
    hca_loopback_save(eth->pause.held, bytes);
}

static bool load_held(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaEth *eth = room;

    if (n && (!eth || !eth->pause.held ||
              !hca_loopback_load(eth->pause.held, records, n,
                                 &eth->pause.num_held))) {
        return hca_state_refuse(error, "frames that cannot wait");
    }
    return true;
}

const HcaSection hca_eth_held_section = HCA_SECTION(
    "eth-held", 1, &hca_byte_struct, save_held, load_held);
