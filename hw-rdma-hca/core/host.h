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

#include "record/recorder.h"
#include "trace_events.h"

/* What a unit saw, for whoever traces the card. See hca_trace_name(). */
typedef struct HcaTrace {
    unsigned event; /* HcaTraceEvent */
    uint32_t qpn;   /* or the number of what it is about */
    uint64_t arg[3];
} HcaTrace;

/* In place of a message's number. */
#define HCA_VECTOR_PIN UINT16_MAX

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
    /* Where BAR 0 is on the bus, 0: nowhere. NULL: 0. */
    uint64_t (*bar0_base)(void *opaque);
    /*
     * Send MSI-X message @vector; out of range does nothing. HCA_VECTOR_PIN: raise
     * the interrupt pin, if there is one. It stays raised until software writes
     * where hca_bar0_clears_pin() says so; the machine keeps its level.
     */
    void (*msix_notify)(void *opaque, unsigned vector);
    /* Nanoseconds of the clock that stops when the machine does. */
    int64_t (*clock_ns)(void *opaque);
    /*
     * A number that no other call of any host's has given, for greetings. NULL: 0;
     * one that has such numbers at an end of a cable is enough.
     */
    uint64_t (*nonce)(void *opaque);
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
     * A QP, a CQ or an EQ has broken, for the first time since the card was
     * reset; the flight recorder says how it came about. At the end of the
     * turn: hca_recorder_visit() and its like may be called. NULL: nobody wants
     * to know.
     */
    void (*recorder_dump)(void *opaque);
    /* One line that the user of the machine should see. */
    void (*warn)(void *opaque, const char *message);
} HcaHostOps;

/* The machine, and what a card tells it that it may read later. */
typedef struct HcaHost {
    const HcaHostOps *ops;
    void *opaque;
    HcaRecorder *recorder; /* NULL: none */
} HcaHost;

/* A machine without a flight recorder. */
#define HCA_HOST(its_ops, its_opaque)                                          \
    ((const HcaHost) { .ops = (its_ops), .opaque = (its_opaque) })

static inline uint64_t hca_host_bar0(const HcaHost *host)
{
    return host->ops->bar0_base ? host->ops->bar0_base(host->opaque) : 0;
}

/*
 * Record an event, and trace it, if somebody listens. Not recorded is what a
 * packet or a WQE in the recorder says, too, and what each request has several
 * of.
 */
static inline void hca_host_trace(const HcaHost *host, HcaTraceEvent event,
                                  uint32_t number, uint64_t a, uint64_t b,
                                  uint64_t c)
{
    if (host->recorder && event != HCA_TRACE_PACKET_TX &&
        event != HCA_TRACE_PACKET_RX && event != HCA_TRACE_REQ_TRANS &&
        event != HCA_TRACE_DOORBELL) {
        hca_recorder_event(host->recorder, event, number, a, b, c);
    }
    if (host->ops->trace) {
        HcaTrace trace = { event, number, { a, b, c } };

        host->ops->trace(host->opaque, &trace);
    }
}

/* Something has broken: a QP, a CQ, an EQ. The machine hears of it later. */
static inline void hca_host_broke(const HcaHost *host)
{
    if (host->recorder) {
        hca_recorder_broke(host->recorder);
    }
}

#endif /* HCA_HOST_H */
