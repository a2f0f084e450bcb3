/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes by a socket, and then by shared memory. See rdma-hca-shm.h.
 */
#include "qemu/osdep.h"
#include <linux/magic.h>
#include <sys/vfs.h>

#include "../core/link/shared_ring.h"
#include "io/channel-socket.h"
#include "qapi/error.h"
#include "qemu/iov.h"
#include "qemu/memfd.h"
#include "rdma-hca-channel.h"
#include "rdma-hca-shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define WAKE_BATCH 256 /* wake-ups that are taken at once */
/* Who polls the rings looks at the socket, too, once in so many reads. */
#define READS_A_LOOK 4096

struct RdmaHcaShm {
    QIOChannel *ioc;
    int fd;           /* of the own block, until it is sent; else -1 */
    void *own;        /* block */
    void *peer;       /* the other end's, or NULL */
    bool heard;       /* the first bytes have come */
    HcaSharedEnd end; /* once there is @peer */
    bool sending;
    bool receiving;
    unsigned reads; /* of the ring since the last look at the socket */
    uint64_t sent;  /* bytes of the stream */
    uint64_t received;
};

/* ---- memory ---- */

static bool block_is_sealed(int fd)
{
    const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & needed) == needed;
}

/*
 * Whether all of the file is there to be read, and stays so: no page of it can
 * be taken away again, by cutting it or punching holes, and none can be missing
 * because its file system is full.
 */
static bool block_is_safe(int fd)
{
    struct statfs fs;
    struct stat st;

    return block_is_sealed(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_size == hca_shared_block_size() && fstatfs(fd, &fs) == 0 &&
           fs.f_type == TMPFS_MAGIC;
}

static void *block_map(int fd, int protection)
{
    void *block = mmap(NULL, hca_shared_block_size(), protection,
                       MAP_SHARED | MAP_POPULATE, fd, 0);

    return block == MAP_FAILED ? NULL : block;
}

static void block_unmap(void *block)
{
    if (block) {
        munmap(block, hca_shared_block_size());
    }
}

/* The other end's, of which @fd is closed; NULL if it is none. */
static void *block_take(int fd)
{
    void *block = block_is_safe(fd) ? block_map(fd, PROT_READ) : NULL;

    if (block && !hca_shared_block_ok(block)) {
        block_unmap(block);
        block = NULL;
    }
    close(fd);
    return block;
}

/* Mapped once for writing, and then for good by nobody else. */
static void *block_make(int fd)
{
    void *block = block_map(fd, PROT_READ | PROT_WRITE);

    if (block && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)) {
        block_unmap(block);
        return NULL;
    }
    return block;
}

RdmaHcaShm *rdma_hca_shm_new(QIOChannel *ioc, Error **errp)
{
    RdmaHcaShm *shm;
    void *own;
    int fd;

    if (!qio_channel_has_feature(ioc, QIO_CHANNEL_FEATURE_FD_PASS)) {
        error_setg(errp, "the socket is not a local one");
        return NULL;
    }
    fd = qemu_memfd_create("rdma-hca-cable", hca_shared_block_size(), false, 0,
                           F_SEAL_SHRINK | F_SEAL_GROW, errp);
    if (fd < 0) {
        return NULL;
    }
    own = block_make(fd);
    if (!own) {
        error_setg_errno(errp, errno, "the memory cannot be sealed");
        close(fd);
        return NULL;
    }
    hca_shared_block_init(own);
    shm = g_new0(RdmaHcaShm, 1);
    shm->ioc = ioc;
    shm->fd = fd;
    shm->own = own;
    return shm;
}

static void forget_fd(RdmaHcaShm *shm)
{
    if (shm->fd >= 0) {
        close(shm->fd);
        shm->fd = -1;
    }
}

void rdma_hca_shm_free(RdmaHcaShm *shm)
{
    if (shm) {
        forget_fd(shm);
        block_unmap(shm->own);
        block_unmap(shm->peer);
        g_free(shm);
    }
}

/* ---- the stream ---- */

static ssize_t stream_writev(RdmaHcaShm *shm, const struct iovec *iov,
                             int iovcnt)
{
    bool offer = shm->fd >= 0;
    ssize_t ret = qio_channel_writev_full(shm->ioc, iov, MIN(iovcnt, IOV_MAX),
                                          offer ? &shm->fd : NULL, offer, 0,
                                          NULL);

    if (ret < 0) {
        return rdma_hca_channel_result(ret);
    }
    forget_fd(shm);
    shm->sent += ret;
    return ret;
}

/* The first bytes bring the other end's memory, if it shares any. */
static void take_offer(RdmaHcaShm *shm, const int *fds, size_t nfds)
{
    shm->heard = true;
    if (nfds) {
        shm->peer = block_take(fds[0]);
    }
    for (size_t i = 1; i < nfds; i++) {
        close(fds[i]);
    }
    if (shm->peer) {
        hca_shared_open(&shm->end, shm->own, shm->peer);
        hca_shared_accept(&shm->end);
    }
}

static ssize_t first_readv(RdmaHcaShm *shm, const struct iovec *iov, int iovcnt)
{
    g_autofree int *fds = NULL;
    size_t nfds = 0;
    ssize_t ret = qio_channel_readv_full(shm->ioc, iov, MIN(iovcnt, IOV_MAX),
                                         &fds, &nfds, 0, NULL);

    if (ret > 0 || nfds) {
        take_offer(shm, fds, nfds);
    }
    return ret;
}

static ssize_t stream_readv(RdmaHcaShm *shm, const struct iovec *iov,
                            int iovcnt)
{
    ssize_t ret = shm->heard ? qio_channel_readv(shm->ioc, iov,
                                                 MIN(iovcnt, IOV_MAX), NULL)
                             : first_readv(shm, iov, iovcnt);

    return rdma_hca_channel_result(ret);
}

/* ---- from the stream to the rings ---- */

static bool send_wake(RdmaHcaShm *shm)
{
    ssize_t ret;

    if (!hca_shared_take_wake(&shm->end)) {
        return true;
    }
    ret = qio_channel_write(shm->ioc, "", 1, NULL);
    /* A socket that is full of them wakes as well. */
    return ret > 0 || ret == QIO_CHANNEL_ERR_BLOCK;
}

/* Once the other end reads what is in the ring, go on there. */
static bool go_over(RdmaHcaShm *shm)
{
    if (shm->sending || !shm->peer || !hca_shared_is_accepted(&shm->end)) {
        return true;
    }
    shm->sending = true;
    hca_shared_switch(&shm->end, shm->sent);
    return send_wake(shm);
}

/*
 * Of @len bytes that the socket gave those that are of the stream: behind its
 * end they were wake-ups. Negative: it has no such end.
 */
static ssize_t cut_stream(RdmaHcaShm *shm, size_t len)
{
    uint64_t end;

    if (shm->peer && hca_shared_peer_switched(&shm->end, &end)) {
        if (end < shm->received || !go_over(shm) || !shm->sending) {
            return -EPROTO;
        }
        shm->receiving = len >= end - shm->received;
        len = MIN(len, end - shm->received);
    }
    shm->received += len;
    return len;
}

ssize_t rdma_hca_shm_writev(RdmaHcaShm *shm, const struct iovec *iov,
                            int iovcnt)
{
    ssize_t ret;

    if (!go_over(shm)) {
        return -EPIPE;
    }
    if (!shm->sending) {
        return stream_writev(shm, iov, iovcnt);
    }
    ret = hca_shared_writev(&shm->end, iov, iovcnt);
    return send_wake(shm) ? ret : -EPIPE;
}

bool rdma_hca_shm_woken(RdmaHcaShm *shm)
{
    char wakes[WAKE_BATCH];
    ssize_t ret;

    if (!shm->receiving) {
        return true; /* what has come is for readv */
    }
    shm->reads = 0;
    ret = qio_channel_read(shm->ioc, wakes, sizeof(wakes), NULL);
    return ret > 0 || ret == QIO_CHANNEL_ERR_BLOCK;
}

static ssize_t ring_readv(RdmaHcaShm *shm, const struct iovec *iov, int iovcnt)
{
    ssize_t ret = hca_shared_readv(&shm->end, iov, iovcnt);

    if (++shm->reads >= READS_A_LOOK && !rdma_hca_shm_woken(shm)) {
        return -EPIPE;
    }
    return send_wake(shm) ? ret : -EPIPE;
}

ssize_t rdma_hca_shm_readv(RdmaHcaShm *shm, const struct iovec *iov, int iovcnt)
{
    ssize_t ret;

    if (shm->receiving) {
        return ring_readv(shm, iov, iovcnt);
    }
    ret = stream_readv(shm, iov, iovcnt);
    if (ret == 0 || (ret < 0 && ret != -EAGAIN)) {
        return ret;
    }
    if (!go_over(shm)) {
        return -EPIPE;
    }
    ret = cut_stream(shm, MAX(ret, 0));
    if (ret) {
        return ret;
    }
    return shm->receiving ? ring_readv(shm, iov, iovcnt) : -EAGAIN;
}

void rdma_hca_shm_set_polling(RdmaHcaShm *shm, bool polling)
{
    hca_shared_set_awake(&shm->end, polling);
}

bool rdma_hca_shm_is_ready(RdmaHcaShm *shm)
{
    return hca_shared_is_ready(&shm->end);
}

bool rdma_hca_shm_is_refused(const RdmaHcaShm *shm)
{
    return shm->heard && !shm->peer;
}

bool rdma_hca_shm_is_sending(const RdmaHcaShm *shm)
{
    return shm->sending;
}

bool rdma_hca_shm_is_receiving(const RdmaHcaShm *shm)
{
    return shm->receiving;
}
