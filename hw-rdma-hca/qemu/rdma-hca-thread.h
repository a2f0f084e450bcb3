/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread of a card: the event loop in which all of core/ runs, and what a
 * card asks of its host (core/host.h).
 *
 * vCPUs leave doorbells in a ring and kick the thread. The thread never takes
 * the BQL, so whoever holds the BQL may wait for it: for room in the ring,
 * for a reset, for a standstill. It leaves interrupts in a bitmap, which a
 * bottom half of the main loop delivers.
 */
#ifndef RDMA_HCA_THREAD_H
#define RDMA_HCA_THREAD_H

#include "../core/counters.h"
#include "../core/hca.h"
#include "hw/pci/pci_device.h"
#include "qemu/thread.h"
#include "rdma-hca-cable.h"
#include "rdma-hca-ram.h"
#include "system/iothread.h"

#define RDMA_HCA_DOORBELL_RING 4096 /* a power of two */

typedef struct RdmaHcaDoorbell {
    uint64_t value;
    uint32_t offset;
    uint8_t bar;
    uint8_t size; /* bytes */
} RdmaHcaDoorbell;

/* One producer, whoever holds the BQL; one consumer, the card's thread. */
typedef struct RdmaHcaDoorbellRing {
    RdmaHcaDoorbell slot[RDMA_HCA_DOORBELL_RING];
    uint32_t produced; /* counted without wrapping at the ring's size */
    uint32_t consumed;
    QemuEvent room; /* set each time that some were consumed */
} RdmaHcaDoorbellRing;

typedef struct RdmaHcaThread {
    PCIDevice *pci;
    char *name; /* for messages and traces */
    Hca *hca;
    RdmaHcaCable *cable; /* or NULL */
    IOThread *iothread;
    bool own_iothread;
    AioContext *ctx;

    /* Shared with the holders of the BQL. */
    RdmaHcaDoorbellRing ring;
    RdmaHcaRam ram;
    unsigned long *vectors; /* MSI-X messages to send; atomic */
    unsigned num_vectors;
    QEMUBH *msix_bh; /* in the main loop */
    QEMUBH *run_bh;  /* in the card's thread */
    bool running;    /* changed with the BQL, in the card's thread */
    bool link_up;    /* atomic */
    int capture_fd;  /* -1: there is none */

    /* The thread's own. */
    QEMUTimer *timer;
    const RdmaHcaRamMap *map; /* while in a core function */
    unsigned map_hint;
    int64_t warn_after_ns;
    unsigned warnings_held;
} RdmaHcaThread;

/*
 * All of these are called with the BQL held, from outside the card's thread.
 *
 * rdma_hca_thread_start(): make a card with @config in the thread of
 * @iothread (NULL: one of its own), with @cable plugged in (NULL: none). It
 * stands still until rdma_hca_thread_set_running().
 * rdma_hca_thread_finish(): free it all; only after a successful start.
 */
bool rdma_hca_thread_start(RdmaHcaThread *thread, PCIDevice *pci,
                           const HcaConfig *config, IOThread *iothread,
                           RdmaHcaCable *cable, Error **errp);
void rdma_hca_thread_finish(RdmaHcaThread *thread);

/* Reset the card; it is done on return. */
void rdma_hca_thread_reset(RdmaHcaThread *thread);

/*
 * Let the card work, or bring it to a standstill: on return it makes no DMA,
 * and all interrupts that it asked for have been delivered.
 */
void rdma_hca_thread_set_running(RdmaHcaThread *thread, bool running);

/* Ring a doorbell, in the order of calls. May wait for room in the ring. */
void rdma_hca_thread_doorbell(RdmaHcaThread *thread,
                              const RdmaHcaDoorbell *doorbell);

/* Call @fn for each counter, in the card's thread, all at one moment. */
void rdma_hca_thread_counters(RdmaHcaThread *thread, HcaCounterFn *fn,
                              void *opaque);

/* Have faults happen on the cable as @plan says, which has been checked. */
void rdma_hca_thread_set_faults(RdmaHcaThread *thread,
                                const HcaFaultPlan *plan);

/*
 * Write what passes the cable to a new file @path, until
 * rdma_hca_thread_finish(). Once at most.
 */
bool rdma_hca_thread_capture(RdmaHcaThread *thread, const char *path,
                             Error **errp);

/* Have hca_run() called. */
void rdma_hca_thread_kick(RdmaHcaThread *thread);

/* HcaHostOps.trace: a trace event of QEMU for one of the card. */
void rdma_hca_trace(void *opaque, const HcaTrace *trace);

#endif /* RDMA_HCA_THREAD_H */
