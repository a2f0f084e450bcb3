/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring of doorbells. See rdma-hca-doorbells.h. */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/lockable.h"
#include "rdma-hca-doorbells.h"

RdmaHcaDoorbells *rdma_hca_doorbells_new(void)
{
    RdmaHcaDoorbells *ring = g_atomic_rc_box_new0(RdmaHcaDoorbells);

    qemu_mutex_init(&ring->lock);
    qemu_cond_init(&ring->room);
    return ring;
}

RdmaHcaDoorbells *rdma_hca_doorbells_ref(RdmaHcaDoorbells *ring)
{
    return g_atomic_rc_box_acquire(ring);
}

static void ring_clear(gpointer opaque)
{
    RdmaHcaDoorbells *ring = opaque;

    qemu_cond_destroy(&ring->room);
    qemu_mutex_destroy(&ring->lock);
}

void rdma_hca_doorbells_unref(RdmaHcaDoorbells *ring)
{
    g_atomic_rc_box_release_full(ring, ring_clear);
}

uint32_t rdma_hca_doorbells_level(const RdmaHcaDoorbells *ring)
{
    uint32_t consumed = qatomic_load_acquire(&ring->consumed);

    return qatomic_load_acquire(&ring->produced) - consumed;
}

void rdma_hca_doorbells_wait(RdmaHcaDoorbells *ring, uint32_t limit)
{
    QEMU_LOCK_GUARD(&ring->lock);
    /* Pairs with ring_wake(): one of the two sees. */
    qatomic_inc(&ring->waiting);
    smp_mb__after_rmw();
    while (qatomic_read(&ring->open) &&
           rdma_hca_doorbells_level(ring) >= limit) {
        qemu_cond_wait(&ring->room, &ring->lock);
    }
    qatomic_dec(&ring->waiting);
}

void rdma_hca_doorbells_put(RdmaHcaDoorbells *ring,
                            const RdmaHcaDoorbell *doorbell)
{
    ring->slot[ring->produced % RDMA_HCA_DOORBELL_RING] = *doorbell;
    qatomic_store_release(&ring->produced, ring->produced + 1);
}

void rdma_hca_doorbells_mark_command(RdmaHcaDoorbells *ring)
{
    qatomic_store_release(&ring->command_at, ring->produced);
}

static void ring_wake(RdmaHcaDoorbells *ring)
{
    smp_mb();
    if (qatomic_read(&ring->waiting)) {
        QEMU_LOCK_GUARD(&ring->lock);
        qemu_cond_broadcast(&ring->room);
    }
}

void rdma_hca_doorbells_set_open(RdmaHcaDoorbells *ring, bool open)
{
    qatomic_set(&ring->open, open);
    ring_wake(ring);
}

void rdma_hca_doorbells_consume(RdmaHcaDoorbells *ring, uint32_t consumed)
{
    qatomic_store_release(&ring->consumed, consumed);
    ring_wake(ring);
}

static void ring_discard(RdmaHcaDoorbells *ring, uint32_t produced)
{
    if ((int32_t)(produced - ring->consumed) > 0) {
        rdma_hca_doorbells_consume(ring, produced);
    }
}

void rdma_hca_doorbells_discard(RdmaHcaDoorbells *ring)
{
    ring_discard(ring, qatomic_load_acquire(&ring->produced));
}

void rdma_hca_doorbells_discard_before_command(RdmaHcaDoorbells *ring)
{
    ring_discard(ring, qatomic_load_acquire(&ring->command_at));
}

bool rdma_hca_doorbells_hold_command(const RdmaHcaDoorbells *ring)
{
    return (int32_t)(qatomic_load_acquire(&ring->command_at) - ring->consumed) >
           0;
}
