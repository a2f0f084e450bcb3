/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bounded ring of records between two threads: one writes, one reads, and
 * neither locks. A record lies together in memory.
 *
 * Who finds the ring full, or empty, can ask to be woken.
 */
#ifndef RDMA_HCA_RING_H
#define RDMA_HCA_RING_H

#include "qemu/atomic.h"

#define RDMA_HCA_RING_SIZE (1024 * 1024) /* a power of two */
#define RDMA_HCA_RING_ALIGN 8
/* In place of a length: the next record is at the ring's start. */
#define RDMA_HCA_RING_SKIP UINT32_MAX

typedef struct RdmaHcaRing {
    uint8_t *data;
    uint32_t produced; /* bytes; count without wrapping at the size */
    uint32_t consumed;
    bool starved;       /* the writer waits for room; atomic */
    uint32_t forgotten; /* what was written before this is not to be read */
    bool forget;        /* it has moved; both are atomic */
} RdmaHcaRing;

static inline void rdma_hca_ring_init(RdmaHcaRing *ring)
{
    ring->data = g_malloc(RDMA_HCA_RING_SIZE);
    ring->produced = ring->consumed = 0;
    ring->starved = false;
    ring->forget = false;
}

static inline void rdma_hca_ring_destroy(RdmaHcaRing *ring)
{
    g_free(ring->data);
    ring->data = NULL;
}

static inline uint32_t *rdma_hca_ring_at(const RdmaHcaRing *ring, uint32_t at)
{
    return (uint32_t *)(ring->data + at % RDMA_HCA_RING_SIZE);
}

static inline uint32_t rdma_hca_ring_record_size(uint32_t len)
{
    return ROUND_UP(RDMA_HCA_RING_ALIGN + len, RDMA_HCA_RING_ALIGN);
}

/* How far the writer has to skip so that a record of @size lies together. */
static inline uint32_t rdma_hca_ring_gap(const RdmaHcaRing *ring, uint32_t size)
{
    uint32_t left = RDMA_HCA_RING_SIZE - ring->produced % RDMA_HCA_RING_SIZE;

    return size <= left ? 0 : left;
}

static inline bool rdma_hca_ring_has_room(const RdmaHcaRing *ring,
                                          uint32_t size)
{
    uint32_t used = ring->produced - qatomic_load_acquire(&ring->consumed);

    return size <= RDMA_HCA_RING_SIZE - used;
}

/*
 * The writer: room for a record of @len bytes, much less than the ring's size,
 * or NULL; then rdma_hca_ring_unstarve() is true some time later.
 */
static inline uint8_t *rdma_hca_ring_reserve(RdmaHcaRing *ring, uint32_t len)
{
    uint32_t size = rdma_hca_ring_record_size(len);
    uint32_t gap = rdma_hca_ring_gap(ring, size);

    if (!rdma_hca_ring_has_room(ring, gap + size)) {
        /* Pairs with rdma_hca_ring_unstarve(): one of the two sees. */
        qatomic_set(&ring->starved, true);
        smp_mb();
        if (!rdma_hca_ring_has_room(ring, gap + size)) {
            return NULL;
        }
        qatomic_set(&ring->starved, false);
    }
    if (gap) {
        *rdma_hca_ring_at(ring, ring->produced) = RDMA_HCA_RING_SKIP;
    }
    return (uint8_t *)rdma_hca_ring_at(ring, ring->produced + gap) +
           RDMA_HCA_RING_ALIGN;
}

/* The writer: the reader may have what was reserved, with the same @len. */
static inline void rdma_hca_ring_commit(RdmaHcaRing *ring, uint32_t len)
{
    uint32_t size = rdma_hca_ring_record_size(len);
    uint32_t gap = rdma_hca_ring_gap(ring, size);

    *rdma_hca_ring_at(ring, ring->produced + gap) = len;
    qatomic_store_release(&ring->produced, ring->produced + gap + size);
}

/* The writer: what has not been read yet is not to be. */
static inline void rdma_hca_ring_forget(RdmaHcaRing *ring)
{
    qatomic_set(&ring->forgotten, ring->produced);
    qatomic_store_release(&ring->forget, true);
}

/* The reader: skip what the writer wants forgotten. */
static inline void rdma_hca_ring_skip_forgotten(RdmaHcaRing *ring)
{
    uint32_t forgotten;

    if (!qatomic_read(&ring->forget) || !qatomic_xchg(&ring->forget, false)) {
        return;
    }
    forgotten = qatomic_read(&ring->forgotten);
    if ((int32_t)(forgotten - ring->consumed) > 0) {
        qatomic_store_release(&ring->consumed, forgotten);
    }
}

/* The reader: the oldest record, or NULL. */
static inline const uint8_t *rdma_hca_ring_peek(RdmaHcaRing *ring,
                                                uint32_t *len)
{
    const uint32_t *record;

    rdma_hca_ring_skip_forgotten(ring);
    if (ring->consumed == qatomic_load_acquire(&ring->produced)) {
        return NULL;
    }
    record = rdma_hca_ring_at(ring, ring->consumed);
    if (*record == RDMA_HCA_RING_SKIP) {
        record = (const uint32_t *)ring->data;
    }
    *len = *record;
    return (const uint8_t *)record + RDMA_HCA_RING_ALIGN;
}

/* The reader: done with what rdma_hca_ring_peek() returned. */
static inline void rdma_hca_ring_release(RdmaHcaRing *ring)
{
    uint32_t at = ring->consumed;
    const uint32_t *record = rdma_hca_ring_at(ring, at);

    if (*record == RDMA_HCA_RING_SKIP) {
        at += RDMA_HCA_RING_SIZE - at % RDMA_HCA_RING_SIZE;
        record = (const uint32_t *)ring->data;
    }
    qatomic_store_release(&ring->consumed,
                          at + rdma_hca_ring_record_size(*record));
}

/* The reader: all records that there are now. */
static inline void rdma_hca_ring_discard(RdmaHcaRing *ring)
{
    qatomic_store_release(&ring->consumed,
                          qatomic_load_acquire(&ring->produced));
}

/* The reader, after it made room: true once for a writer that waits. */
static inline bool rdma_hca_ring_unstarve(RdmaHcaRing *ring)
{
    smp_mb();
    return qatomic_read(&ring->starved) && qatomic_xchg(&ring->starved, false);
}

#endif /* RDMA_HCA_RING_H */
