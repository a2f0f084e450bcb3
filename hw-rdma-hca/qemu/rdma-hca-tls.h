/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a cable over TLS: a QIOChannelTLS whose handshake is done. What is
 * read needs nothing of this.
 *
 * GnuTLS wants bytes again that it could not send, and takes others for the same.
 * A card may have others by then, so what was taken is kept here until it is sent.
 * Packets are small: records are filled with as many as there are.
 *
 * Everything is for one thread at a time, that of the card.
 */
#ifndef RDMA_HCA_TLS_H
#define RDMA_HCA_TLS_H

#include <sys/uio.h>

#include "io/channel.h"

typedef struct RdmaHcaTls RdmaHcaTls;

/* @ioc stays the caller's, does not block, and has not been written to. */
RdmaHcaTls *rdma_hca_tls_new(QIOChannel *ioc);
void rdma_hca_tls_free(RdmaHcaTls *tls);

/*
 * As writev() on a non-blocking stream, but of what was taken the last may be here
 * still: when rdma_hca_tls_is_full(), call rdma_hca_tls_flush() as soon as the
 * socket is writable. -EAGAIN: nothing is taken until then. -EPIPE: it has failed.
 */
ssize_t rdma_hca_tls_writev(RdmaHcaTls *tls, const struct iovec *iov,
                            int iovcnt);
bool rdma_hca_tls_is_full(const RdmaHcaTls *tls);
/* 0: all is sent; -EAGAIN: not yet; -EPIPE. */
int rdma_hca_tls_flush(RdmaHcaTls *tls);

#endif /* RDMA_HCA_TLS_H */
