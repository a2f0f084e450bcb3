/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections of a cable whose TLS handshake is not done yet. Whoever is at their
 * other ends is not known, so they are few, have little time, and keep nobody else
 * from the cable.
 *
 * Everything is the main loop's.
 */
#ifndef RDMA_HCA_HANDSHAKE_H
#define RDMA_HCA_HANDSHAKE_H

#include "crypto/tlscreds.h"
#include "io/channel-socket.h"
#include "qemu/queue.h"

/* Of a cable; another one ends the oldest. */
#define RDMA_HCA_HANDSHAKES_MAX 8

/* The end that a handshake is made by. Strings are the cable's. */
typedef struct RdmaHcaTlsEnd {
    QCryptoTLSCreds *creds;
    bool server;
    const char *authz;    /* server: who may connect; NULL: all may */
    const char *hostname; /* client: who is to be there; NULL: not known */
    uint32_t limit_ms;    /* 0: none */
} RdmaHcaTlsEnd;

typedef struct RdmaHcaHandshake RdmaHcaHandshake;
typedef struct RdmaHcaHandshakes {
    QTAILQ_HEAD(, RdmaHcaHandshake) list; /* the oldest first */
    unsigned count;
} RdmaHcaHandshakes;

/*
 * It is done, with a channel that is lent until the call returns; or it has failed,
 * @err says why and is the caller's.
 */
typedef void RdmaHcaHandshakeDone(void *opaque, QIOChannel *ioc,
                                  const Error *err);

void rdma_hca_handshakes_init(RdmaHcaHandshakes *handshakes);
/* @sioc does not block. @done may be called before it returns. */
void rdma_hca_handshake_begin(RdmaHcaHandshakes *handshakes,
                              const RdmaHcaTlsEnd *end, QIOChannelSocket *sioc,
                              RdmaHcaHandshakeDone *done, void *opaque);
/* All of them end, and nobody is told. */
void rdma_hca_handshakes_cancel(RdmaHcaHandshakes *handshakes);

#endif /* RDMA_HCA_HANDSHAKE_H */
