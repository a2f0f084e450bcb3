/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of rdma-hca-cable, the cable that is a stream socket: what its files
 * share.
 *
 * rdma-hca-stream.c       the object, and what is done in the main loop: it
 *                         listens, accepts, connects and reconnects
 * rdma-hca-stream-tls.c   which TLS it has, if any
 * rdma-hca-stream-flow.c  the flow of bytes, in the card's thread
 *
 * A stream is handed from the one to the other when the peer comes, and back
 * when it goes.
 */
#ifndef RDMA_HCA_STREAM_H
#define RDMA_HCA_STREAM_H

#include "io/channel-socket.h"
#include "io/net-listener.h"
#include "qapi/qapi-types-qom.h"
#include "qemu/event_notifier.h"
#include "qemu/thread.h"
#include "rdma-hca-cable.h"
#include "rdma-hca-handshake.h"
#include "rdma-hca-shm.h"
#include "rdma-hca-tls.h"

#define TYPE_RDMA_HCA_STREAM "rdma-hca-cable"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaHcaStream, RDMA_HCA_STREAM)

struct RdmaHcaStream {
    RdmaHcaCable cable; /* what it is a kind of */

    /* Properties. */
    SocketAddress *addr;
    bool server;
    uint32_t reconnect_ms;
    bool reconnect_given;
    uint32_t greeting_ms;
    RdmaHcaCableProtocol protocol;
    OnOffAuto share; /* memory */
    char *tls_creds, *tls_authz, *tls_hostname;
    bool complete;

    /* The main loop's. */
    QIONetListener *listener;  /* server */
    QIOChannelSocket *at_path; /* the same, at a unix socket's path */
    QIOChannelSocket *passed;  /* client on a passed fd, until plugged */
    guint reconnect_tag;
    bool connecting;
    bool taken;             /* the card has a stream */
    QCryptoTLSCreds *creds; /* NULL: no TLS */
    RdmaHcaHandshakes handshakes;
    unsigned handshakes_failed; /* since there was a peer */
    QEMUBH *ended_bh;
    dev_t listens_dev; /* what was made there */
    ino_t listens_ino;
    NotifierWithReturn migration;

    /* Hand-over between the two. */
    bool away;  /* atomic: a card that is, or was, somewhere else has no peer */
    bool seeks; /* atomic: it is here now */
    bool hurry; /* atomic: a peer that is away comes back */
    QemuMutex lock;
    QIOChannel *arrived; /* to the card */
    QIOChannel *ended;   /* to the main loop */

    /* The card's. */
    QEMUBH *arrived_bh;
    QEMUBH *broken_bh;
    QIOChannel *ioc; /* while a peer is there */
    bool running;
    bool broken;      /* to be ended by broken_bh */
    bool read_wanted; /* the card reads until -EAGAIN */
    bool read_watched;
    bool write_watched;  /* the card was told -EAGAIN */
    bool rings_watched;  /* in place of the socket, while the thread polls */
    EventNotifier wakes; /* the socket's descriptor, for that */
    bool write_blocked;  /* the same, and a wake-up will come */
    bool greeted;        /* the peer has said who it is */
    RdmaHcaShm *shm;     /* NULL: the socket carries everything */
    RdmaHcaTls *tls;     /* NULL: the socket carries the bytes as they are */
    bool distrusted;     /* a peer has broken the rules of shared memory */
    bool sharing;        /* atomic: both directions go by it */
    QEMUTimer *greeting_timer;
};

/* For messages and traces. */
const char *rdma_hca_stream_id(const RdmaHcaStream *stream);

/* Whether property @name may be set now; else @errp. */
bool rdma_hca_stream_can_be_set(const RdmaHcaStream *stream, const char *name,
                                Error **errp);

/* TLS: its properties, and what they name. False with @errp: that cannot be. */
void rdma_hca_stream_tls_class_init(ObjectClass *klass);
bool rdma_hca_stream_tls_complete(RdmaHcaStream *stream, Error **errp);
void rdma_hca_stream_tls_finalize(RdmaHcaStream *stream);
/* With credentials: @done, with the stream, when the other end is known. */
void rdma_hca_stream_tls_begin(RdmaHcaStream *stream, QIOChannelSocket *sioc,
                               RdmaHcaHandshakeDone *done);

/* The methods that are called in the card's thread. */
void rdma_hca_stream_flow_class_init(RdmaHcaCableClass *cc);
/*
 * When it is plugged in, with the BQL: make what is the card's. Schedule
 * @arrived_bh after putting a stream into @arrived; the method close frees all.
 */
void rdma_hca_stream_flow_init(RdmaHcaStream *stream);

#endif /* RDMA_HCA_STREAM_H */
