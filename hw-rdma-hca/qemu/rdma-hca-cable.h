/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cable: what joins a card to whoever is at the other end.
 *
 * To the card it is a stream of bytes each way, the frames of
 * core/link/framing.h, that begins anew whenever a peer comes. Each kind of
 * cable is a subclass in a file of its own: rdma-hca-stream.c, a stream
 * socket; rdma-hca-net.c, a netdev. Which frames these are the cable says.
 *
 * A cable is in one card at a time:
 *
 *   plug, any number of [start, stop], stop, close, unplug
 *
 * plug and unplug are called with the BQL, from outside the card's thread. All
 * else between a card and its cable, in both directions, happens in the card's
 * thread, with its lock; but for start, stop and close also in another one that
 * has this lock, and the BQL, and then the event loop of the card's thread goes
 * on meanwhile: what that calls takes the lock first. The card's thread never
 * takes the BQL, but at start, stop and close a holder of the BQL waits for it:
 * what they write may be read with the BQL.
 */
#ifndef RDMA_HCA_CABLE_H
#define RDMA_HCA_CABLE_H

#include <sys/uio.h>

#include "../core/config.h"
#include "qom/object.h"
#include "rdma-hca-compat.h"

#define TYPE_RDMA_HCA_CABLE "rdma-hca-cable-base"
OBJECT_DECLARE_TYPE(RdmaHcaCable, RdmaHcaCableClass, RDMA_HCA_CABLE)

/*
 * What a cable tells the card, in the card's thread with the lock, from start to
 * stop and never from inside of a method.
 */
typedef struct RdmaHcaCableEvents {
    void (*up)(void *opaque);       /* a peer is there */
    void (*down)(void *opaque);     /* it is gone */
    void (*readable)(void *opaque); /* after readv gave -EAGAIN */
    void (*writable)(void *opaque); /* after writev gave -EAGAIN */
} RdmaHcaCableEvents;

struct RdmaHcaCable {
    Object parent_obj;

    /* The card, from plug to unplug; otherwise NULL. */
    const RdmaHcaCableEvents *events;
    void *opaque;       /* of @events */
    AioContext *ctx;    /* of the card's thread */
    QemuRecMutex *lock; /* of the card */
};

struct RdmaHcaCableClass {
    ObjectClass parent_class;

    /* With the BQL. @unplug, @is_server and @address may be NULL. */
    HcaCableProtocol (*protocol)(const RdmaHcaCable *cable);
    void (*plug)(RdmaHcaCable *cable);
    void (*unplug)(RdmaHcaCable *cable);
    bool (*is_server)(const RdmaHcaCable *cable);
    /*
     * Whether another stream follows one that has ended, so that an end may move
     * (core/link/move.c). NULL: none does.
     */
    bool (*comes_back)(const RdmaHcaCable *cable);
    char *(*address)(const RdmaHcaCable *cable);

    /*
     * In the card's thread. Between stop and start nothing is told and nothing
     * flows: a peer that comes or goes meanwhile is told of afterwards. After
     * start both sides look for what they have waited for. close ends what is
     * left of a peer, without @down.
     */
    void (*start)(RdmaHcaCable *cable);
    void (*stop)(RdmaHcaCable *cable);
    void (*close)(RdmaHcaCable *cable);

    /*
     * With the lock, between start and stop: as HcaHostOps.link_writev and
     * link_readv. When the stream has ended or failed, @down follows.
     */
    ssize_t (*writev)(RdmaHcaCable *cable, const struct iovec *iov, int iovcnt);
    ssize_t (*readv)(RdmaHcaCable *cable, const struct iovec *iov, int iovcnt);
    /*
     * The same: end a stream whose frames are broken; @down follows. NULL:
     * they cannot be.
     */
    void (*drop)(RdmaHcaCable *cable);
    /*
     * The same, once after @up: the peer has said who it is (its greeting was
     * good). NULL: a peer need not.
     */
    void (*settle)(RdmaHcaCable *cable);
    /*
     * With the lock: as HcaHostOps.link_forget. NULL: nothing that was
     * written lies in the cable.
     */
    void (*forget)(RdmaHcaCable *cable);
    /*
     * With the lock, between stop and start: end what is left of a peer, without
     * @down, and have none until start. NULL: it has no peer that would know.
     */
    void (*part)(RdmaHcaCable *cable);
    /* With the lock: a peer is wanted soon, or as ever. NULL: nobody is looked for. */
    void (*hurry)(RdmaHcaCable *cable, bool hurry);
};

/*
 * The methods. @cable may be NULL: nothing is plugged in, and nobody comes.
 * Plugging fails when the cable is in another card.
 */
bool rdma_hca_cable_plug(RdmaHcaCable *cable, AioContext *ctx,
                         QemuRecMutex *lock, const RdmaHcaCableEvents *events,
                         void *opaque, Error **errp);
void rdma_hca_cable_unplug(RdmaHcaCable *cable);
bool rdma_hca_cable_is_plugged(const RdmaHcaCable *cable);

/* Of what is plugged in; nobody knows the difference if nothing is. */
HcaCableProtocol rdma_hca_cable_protocol(const RdmaHcaCable *cable);
/* The end that waits for the other; of two that are alike, each is one. */
bool rdma_hca_cable_is_server(const RdmaHcaCable *cable);
bool rdma_hca_cable_comes_back(const RdmaHcaCable *cable);
/* Where its other end is, or is waited for; to be freed. NULL: it has no name. */
char *rdma_hca_cable_address(const RdmaHcaCable *cable);

void rdma_hca_cable_start(RdmaHcaCable *cable);
void rdma_hca_cable_stop(RdmaHcaCable *cable);
void rdma_hca_cable_close(RdmaHcaCable *cable);
ssize_t rdma_hca_cable_writev(RdmaHcaCable *cable, const struct iovec *iov,
                              int iovcnt);
ssize_t rdma_hca_cable_readv(RdmaHcaCable *cable, const struct iovec *iov,
                             int iovcnt);
void rdma_hca_cable_drop(RdmaHcaCable *cable);
void rdma_hca_cable_settle(RdmaHcaCable *cable);
void rdma_hca_cable_forget(RdmaHcaCable *cable);
/* Whether it has streams that can be ended so. */
bool rdma_hca_cable_can_part(const RdmaHcaCable *cable);
void rdma_hca_cable_part(RdmaHcaCable *cable);
void rdma_hca_cable_hurry(RdmaHcaCable *cable, bool hurry);

#endif /* RDMA_HCA_CABLE_H */
