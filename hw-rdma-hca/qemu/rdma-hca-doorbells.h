/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doorbells that vCPUs have rung, until a turn of the card takes them. One producer,
 * whoever holds the BQL; one consumer, who has the card's lock. Counted by references:
 * a vCPU that waits may outlive the card.
 */
#ifndef RDMA_HCA_DOORBELLS_H
#define RDMA_HCA_DOORBELLS_H

#include "qemu/thread.h"

#define RDMA_HCA_DOORBELL_RING 4096 /* a power of two */
/* From this level on those who ring wait: each time that so many were rung. */
#define RDMA_HCA_DOORBELL_MARK (RDMA_HCA_DOORBELL_RING / 2)
#define RDMA_HCA_DOORBELL_BURST 64

typedef struct RdmaHcaDoorbell {
    uint64_t value;
    uint32_t offset;
    uint8_t bar;
    uint8_t size; /* bytes */
} RdmaHcaDoorbell;

typedef struct RdmaHcaDoorbells {
    RdmaHcaDoorbell slot[RDMA_HCA_DOORBELL_RING];
    uint32_t produced; /* counted without wrapping at the ring's size */
    uint32_t consumed;
    uint32_t command_at; /* atomic: what the last command or reset follows */
    bool open;           /* atomic: the card takes doorbells */
    unsigned waiting;    /* atomic: threads that wait for room */
    QemuMutex lock;
    QemuCond room; /* when some were consumed, or the ring is closed */
} RdmaHcaDoorbells;

RdmaHcaDoorbells *rdma_hca_doorbells_new(void);
RdmaHcaDoorbells *rdma_hca_doorbells_ref(RdmaHcaDoorbells *ring);
void rdma_hca_doorbells_unref(RdmaHcaDoorbells *ring);

/* In any thread: how many there are, or were; no less. */
uint32_t rdma_hca_doorbells_level(const RdmaHcaDoorbells *ring);
/* Wait until there are less than @limit, or nobody will take them. */
void rdma_hca_doorbells_wait(RdmaHcaDoorbells *ring, uint32_t limit);

/* The producer's: another one, of which there is room; a command, or a reset. */
void rdma_hca_doorbells_put(RdmaHcaDoorbells *ring,
                            const RdmaHcaDoorbell *doorbell);
void rdma_hca_doorbells_mark_command(RdmaHcaDoorbells *ring);

/* The rest is the consumer's. */

void rdma_hca_doorbells_set_open(RdmaHcaDoorbells *ring, bool open);
/* Those before @consumed are taken. */
void rdma_hca_doorbells_consume(RdmaHcaDoorbells *ring, uint32_t consumed);
/* Forget all of them, or those that were rung before the last command or reset. */
void rdma_hca_doorbells_discard(RdmaHcaDoorbells *ring);
void rdma_hca_doorbells_discard_before_command(RdmaHcaDoorbells *ring);
/* Whether a command that software has asked for would overtake doorbells. */
bool rdma_hca_doorbells_hold_command(const RdmaHcaDoorbells *ring);

#endif /* RDMA_HCA_DOORBELLS_H */
