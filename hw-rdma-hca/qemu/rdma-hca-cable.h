/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cable of an rdma-hca: a stream socket with a peer at its other end.
 *
 * The object listens, accepts, connects and reconnects in the main loop; the
 * bytes flow in the thread of the card that it is plugged into. A stream is
 * handed from the one to the other when the peer comes, and back when it
 * goes. One cable takes one card, and one peer at a time.
 */
#ifndef RDMA_HCA_CABLE_H
#define RDMA_HCA_CABLE_H

#include <sys/uio.h>

#include "block/aio.h"
#include "qom/object.h"

#define TYPE_RDMA_HCA_CABLE "rdma-hca-cable"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaHcaCable, RDMA_HCA_CABLE)

/* What happens at the cable; called in the card's thread, while started. */
typedef struct RdmaHcaCableOps {
    void (*up)(void *opaque);       /* a new stream begins */
    void (*down)(void *opaque);     /* it has ended */
    void (*readable)(void *opaque); /* after readv gave -EAGAIN */
    void (*writable)(void *opaque); /* after writev gave -EAGAIN */
} RdmaHcaCableOps;

/* True for the end that waits for its peer. */
bool rdma_hca_cable_is_server(const RdmaHcaCable *cable);

/*
 * Plug the cable into a card whose thread runs @ctx. With the BQL, from
 * outside that thread. Fails when the cable is in another card.
 */
bool rdma_hca_cable_plug(RdmaHcaCable *cable, AioContext *ctx,
                         const RdmaHcaCableOps *ops, void *opaque,
                         Error **errp);
/* The reverse; rdma_hca_cable_close() must have been called before. */
void rdma_hca_cable_unplug(RdmaHcaCable *cable);

/*
 * In the card's thread: let bytes flow, or stand still (a peer that comes or
 * goes meanwhile is told of at the next start). A cable starts out still.
 */
void rdma_hca_cable_start(RdmaHcaCable *cable);
void rdma_hca_cable_stop(RdmaHcaCable *cable);
/* In the card's thread: the last call before rdma_hca_cable_unplug(). */
void rdma_hca_cable_close(RdmaHcaCable *cable);

/*
 * In the card's thread, while the cable is started: as HcaHostOps.link_writev
 * and link_readv. When the stream has ended or failed, @down follows.
 */
ssize_t rdma_hca_cable_writev(RdmaHcaCable *cable, const struct iovec *iov,
                              int iovcnt);
ssize_t rdma_hca_cable_readv(RdmaHcaCable *cable, const struct iovec *iov,
                             int iovcnt);

/* In the card's thread: end the stream, if there is one; @down follows. */
void rdma_hca_cable_drop(RdmaHcaCable *cable);

#endif /* RDMA_HCA_CABLE_H */
