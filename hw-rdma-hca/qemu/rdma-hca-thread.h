/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread of a card: the event loop in which core/ runs, and what a card asks
 * of its host (core/host.h).
 *
 * vCPUs leave doorbells in a ring and kick the thread, which takes a bounded
 * number of them in each of its turns. One that finds the card idle does a turn
 * itself, with the card's lock, which the thread holds in its own turns. A vCPU that rings faster is sent to wait
 * without the BQL. The thread never takes the BQL, so whoever holds the BQL may
 * wait for it, at most for a turn: for a reset, for a standstill. It leaves
 * interrupts in a bitmap, which a bottom half of the main loop delivers.
 *
 * A card behind a vIOMMU has no thread of its own: the main loop, which holds
 * the BQL, is in its place (see rdma-hca-iommu.h).
 */
#ifndef RDMA_HCA_THREAD_H
#define RDMA_HCA_THREAD_H

#include "../core/counters.h"
#include "../core/hca.h"
#include "../core/hca_state.h"
#include "hw/pci/pci_device.h"
#include "qemu/thread.h"
#include "rdma-hca-cable.h"
#include "rdma-hca-doorbells.h"
#include "rdma-hca-iommu.h"
#include "rdma-hca-ram.h"
#include "system/iothread.h"

/* Doorbells that one turn takes. */
#define RDMA_HCA_DOORBELL_BUDGET 128

typedef struct RdmaHcaThread {
    PCIDevice *pci;
    char *name; /* for messages and traces */
    Hca *hca;
    RdmaHcaCable *cable; /* or NULL */
    IOThread *iothread;  /* NULL: behind a vIOMMU */
    bool own_iothread;
    AioContext *ctx;

    /* Shared with the holders of the BQL. */
    RdmaHcaDoorbells *ring;
    QemuRecMutex lock;   /* of the core and the cable */
    QemuMutex sync_lock; /* sync_call() */
    QemuCond sync_done;
    RdmaHcaRam ram;
    RdmaHcaIommu *iommu;    /* NULL: there is none in front of the card */
    unsigned long *vectors; /* MSI-X messages to send; atomic */
    unsigned num_vectors;
    bool has_pin;
    int pin;            /* the interrupt pin is to be raised; atomic */
    uint64_t bar0_base; /* bus address, 0: none; atomic */
    QEMUBH *msix_bh;    /* in the main loop */
    QEMUBH *run_bh;     /* in the card's thread */
    bool running;       /* changed with the BQL, in the card's thread */
    bool loaded;        /* the same: since it has run */
    bool link_up;       /* atomic */
    int capture_fd;     /* -1: there is none */

    /* Written before the card works. */
    const char *recorder_path; /* the owner's; NULL: nobody wants a file */

    /* With the BQL. */
    int64_t rung_ns; /* when a doorbell was rung last */
    unsigned burst;  /* doorbells that came together, up to some */

    /* With @lock. */
    bool here; /* a holder of the BQL does the card's turn */
    QEMUTimer *timer;
    bool reset_wanted; /* when the core function that goes on has returned */
    bool unplugged;    /* what it does reaches nothing any more */
    const RdmaHcaRamMap *map;  /* while in a core function */
    RdmaHcaRamSection dev_mem; /* the card's own, at 0; size 0: none */
    unsigned map_hint;
    bool settled;          /* the peer of now has said who it is */
    bool waits;            /* an end of the cable is away */
    int64_t warn_after_ns; /* of the burst, when the next line is in time */
    unsigned warnings_held;
} RdmaHcaThread;

/*
 * All of these are called with the BQL held, from outside the card's thread.
 *
 * rdma_hca_thread_start(): make a card with @config, whose device memory is
 * @dev_mem (NULL: it has none), in the thread of @iothread (NULL: one of its
 * own), with @cable plugged in (NULL: none). It stands still until
 * rdma_hca_thread_set_running().
 * rdma_hca_thread_unplug(): it stands still for ever, and reaches nothing of the
 * machine any more. False: behind a vIOMMU, by what that tells of a fault, a
 * core function has led here, which has to return first.
 * rdma_hca_thread_finish(): free it all; only after that.
 */
bool rdma_hca_thread_start(RdmaHcaThread *thread, PCIDevice *pci,
                           const HcaConfig *config, MemoryRegion *dev_mem,
                           IOThread *iothread, RdmaHcaCable *cable,
                           Error **errp);
bool rdma_hca_thread_unplug(RdmaHcaThread *thread);
void rdma_hca_thread_finish(RdmaHcaThread *thread);

/* Reset the card; it is done on return. */
void rdma_hca_thread_reset(RdmaHcaThread *thread);

/*
 * Let the card work, or bring it to a standstill: on return it makes no DMA,
 * and all interrupts that it asked for have been delivered.
 */
void rdma_hca_thread_set_running(RdmaHcaThread *thread, bool running);

/*
 * Ring a doorbell, in the order of calls. If there are many already, the vCPU
 * that rings it waits before it goes on, once it has left the BQL. Who rings
 * from elsewhere, and finds no room at all, waits here: for a turn of the card.
 */
void rdma_hca_thread_doorbell(RdmaHcaThread *thread,
                              const RdmaHcaDoorbell *doorbell);

/*
 * The state of a card that stands still; to be freed. Or have it go on from there,
 * with a cable that is plugged in anew; or be reset, with an error.
 */
HcaState *rdma_hca_thread_save(RdmaHcaThread *thread);
bool rdma_hca_thread_load(RdmaHcaThread *thread, const HcaState *state,
                          Error **errp);

/* Write a register of BAR 0 that is no doorbell; doorbells go before it. */
void rdma_hca_thread_register(RdmaHcaThread *thread, uint32_t offset,
                              uint32_t value);

/* Call @fn for each counter, in the card's thread, all at one moment. */
void rdma_hca_thread_counters(RdmaHcaThread *thread, HcaCounterFn *fn,
                              void *opaque);

/* Have faults happen on the cable as @plan says, which has been checked. */
void rdma_hca_thread_set_faults(RdmaHcaThread *thread,
                                const HcaFaultPlan *plan);
/* As hca_add_faults(). */
void rdma_hca_thread_add_faults(RdmaHcaThread *thread, const HcaFaultPlan *plan,
                                unsigned kept);
/* Of the first @n rules. */
void rdma_hca_thread_fault_states(RdmaHcaThread *thread, HcaFaultState *states,
                                  unsigned n);

/*
 * Write what passes the cable to a new file @path, until
 * rdma_hca_thread_finish() or until it has @max_bytes (0: no limit). Once at
 * most.
 */
bool rdma_hca_thread_capture(RdmaHcaThread *thread, const char *path,
                             uint64_t max_bytes, Error **errp);

/*
 * Call @fn for each line of what the flight recorder holds, or of the card's
 * queues, in the card's thread, all at one moment.
 */
void rdma_hca_thread_recorder(RdmaHcaThread *thread, HcaLineFn *fn,
                              void *opaque);
void rdma_hca_thread_queues(RdmaHcaThread *thread, HcaLineFn *fn, void *opaque);

/* Write the flight recorder to a new file @path. */
bool rdma_hca_thread_save_recorder(RdmaHcaThread *thread, const char *path,
                                   Error **errp);

/*
 * Do so by itself when something breaks, for the first time since a reset. For
 * a card that stands still; @path (NULL: do not) has to stay until
 * rdma_hca_thread_finish().
 */
void rdma_hca_thread_record_to(RdmaHcaThread *thread, const char *path);

/* What a card asks of its host, whose opaque is the thread (rdma-hca-host.c). */
extern const HcaHostOps rdma_hca_host_ops;

/* Have a new file @path be @data. */
bool rdma_hca_write_file(const char *path, const GByteArray *data,
                         Error **errp);

/* HcaHostOps.trace: a trace event of QEMU for one of the card. */
void rdma_hca_trace(void *opaque, const HcaTrace *trace);

#endif /* RDMA_HCA_THREAD_H */
