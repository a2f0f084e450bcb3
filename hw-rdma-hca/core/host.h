/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a card asks of the machine it sits in.
 *
 * The core calls these only from inside hca_run() and the other functions of
 * hca.h, in the thread that called those; but clock_ns also from that of a
 * reader of BAR 2. @opaque is what hca_new() was given.
 */
#ifndef HCA_HOST_H
#define HCA_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* What a unit saw, for whoever traces the card. See hca_trace_name(). */
typedef struct HcaTrace {
    unsigned event; /* HcaTraceEvent */
    uint32_t qpn;   /* or the number of what it is about */
    uint64_t arg[3];
} HcaTrace;

typedef struct HcaHostOps {
    /*
     * Find the memory behind bus address @addr. On entry *@len is the number
     * of bytes wanted (not 0), on return the number that lie together from the
     * returned pointer on (at least 1, at most what was asked). Returns NULL
     * when @addr is not RAM (nor, for @is_write, writable RAM): a register of
     * a device is not. The pointer is valid until hca_run() returns or the
     * function of hca.h that was called does.
     */
    void *(*dma_map)(void *opaque, uint64_t addr, uint64_t *len, bool is_write);
    /* Bytes mapped for writing have been written: @addr as given to dma_map. */
    void (*dma_written)(void *opaque, uint64_t addr, uint64_t len);
    /*
     * The device memory: as many bytes as HcaConfig says, aligned for 64-bit
     * accesses. It is there for the life of the card, and software may read
     * and write it at any time. Only for a card that has some.
     */
    void *(*dev_mem)(void *opaque);
    /* Bytes of it have been written. */
    void (*dev_mem_written)(void *opaque, uint64_t offset, uint64_t len);
    /* Send MSI-X message @vector; out of range does nothing. */
    void (*msix_notify)(void *opaque, unsigned vector);
    /* Nanoseconds of the clock that stops when the machine does. */
    int64_t (*clock_ns)(void *opaque);
    /* Call hca_run() at @deadline_ns (clock_ns); INT64_MAX: not at all. */
    void (*timer_mod)(void *opaque, int64_t deadline_ns);
    /*
     * The cable, while it is up: like writev() and readv() on a non-blocking
     * stream. -EAGAIN: nothing now; the host calls hca_link_writable() or
     * hca_run() when that changes. Another negative errno or end of stream (0
     * from link_readv): the host takes the link down soon.
     */
    ssize_t (*link_writev)(void *opaque, const struct iovec *iov, int iovcnt);
    ssize_t (*link_readv)(void *opaque, const struct iovec *iov, int iovcnt);
    /*
     * Frames that link_writev() took, and that are not on their way yet, are
     * not to be sent. NULL: they are on their way at once.
     */
    void (*link_forget)(void *opaque);
    /*
     * Append to the capture file. False: it takes no more, and the capture
     * ends. NULL: there is none.
     */
    bool (*capture_write)(void *opaque, const void *data, size_t len);
    /* One trace event. NULL: nobody listens. */
    void (*trace)(void *opaque, const HcaTrace *trace);
    /*
     * Something has broken, for the first time since the card was reset, and
     * the flight recorder says how it came about: hca_recorder_visit() and its
     * like may be called. NULL: nobody wants to know.
     */
    void (*recorder_dump)(void *opaque);
    /* One line that the user of the machine should see. */
    void (*warn)(void *opaque, const char *message);
} HcaHostOps;

/* Trace, if somebody listens. */
static inline void hca_host_trace(const HcaHostOps *ops, void *opaque,
                                  unsigned event, uint32_t qpn, uint64_t a,
                                  uint64_t b, uint64_t c)
{
    if (ops->trace) {
        HcaTrace trace = { event, qpn, { a, b, c } };

        ops->trace(opaque, &trace);
    }
}

#endif /* HCA_HOST_H */
