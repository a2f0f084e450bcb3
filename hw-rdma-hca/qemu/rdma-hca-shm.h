/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a cable whose ends are on one host: by its unix socket at first,
 * and once each end has the other's memory, by rings in that
 * (core/link/shared_ring.h).
 *
 * The memory is a sealed memfd: nobody can shrink it, and only who made it
 * writes to it. It goes with the first bytes of the stream, which an end that
 * knows nothing of it reads as it always did. After the last byte of the stream,
 * the socket carries wake-ups: a byte of any value each.
 *
 * Everything is for one thread at a time, that of the card.
 */
#ifndef RDMA_HCA_SHM_H
#define RDMA_HCA_SHM_H

#include <sys/uio.h>

#include "io/channel.h"

typedef struct RdmaHcaShm RdmaHcaShm;

/*
 * Memory to be shared with the other end of @ioc, a non-blocking stream at its
 * first byte, which stays the caller's. NULL with @errp: @ioc cannot carry it,
 * or the host has none.
 */
RdmaHcaShm *rdma_hca_shm_new(QIOChannel *ioc, Error **errp);
void rdma_hca_shm_free(RdmaHcaShm *shm);

/*
 * As writev() and readv() on a non-blocking stream. -EAGAIN: nothing now; wait
 * until the socket is readable, then call rdma_hca_shm_woken(), or, if writev
 * said so before rdma_hca_shm_is_sending(), until it is writable. -EPIPE: the
 * stream has failed. -EPROTO: what the other end has in its memory cannot be.
 */
ssize_t rdma_hca_shm_writev(RdmaHcaShm *shm, const struct iovec *iov,
                            int iovcnt);
ssize_t rdma_hca_shm_readv(RdmaHcaShm *shm, const struct iovec *iov,
                           int iovcnt);

/* Take the wake-ups that have come. False: the other end is gone. */
bool rdma_hca_shm_woken(RdmaHcaShm *shm);

/*
 * Once it is sending and receiving: who polls looks by rdma_hca_shm_is_ready()
 * for what -EAGAIN said was not there, and the other end saves its wake-ups. Who
 * stops polling looks once more.
 */
void rdma_hca_shm_set_polling(RdmaHcaShm *shm, bool polling);
bool rdma_hca_shm_is_ready(RdmaHcaShm *shm);

/* The other end has been heard, and shares no memory that can be used. */
bool rdma_hca_shm_is_refused(const RdmaHcaShm *shm);
/* What is sent, or received, goes by memory. */
bool rdma_hca_shm_is_sending(const RdmaHcaShm *shm);
bool rdma_hca_shm_is_receiving(const RdmaHcaShm *shm);

#endif /* RDMA_HCA_SHM_H */
