/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of TLS that are to be sent. See rdma-hca-tls.h. */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "rdma-hca-channel.h"
#include "rdma-hca-tls.h"

/* RFC 8446, 5.1: a record has no more. */
#define TLS_RECORD_SIZE (16 * 1024)

struct RdmaHcaTls {
    QIOChannel *ioc;
    size_t at, end; /* what is not sent yet */
    uint8_t record[TLS_RECORD_SIZE];
};

RdmaHcaTls *rdma_hca_tls_new(QIOChannel *ioc)
{
    RdmaHcaTls *tls = g_new(RdmaHcaTls, 1);

    tls->ioc = ioc;
    tls->at = 0;
    tls->end = 0;
    return tls;
}

void rdma_hca_tls_free(RdmaHcaTls *tls)
{
    g_free(tls);
}

bool rdma_hca_tls_is_full(const RdmaHcaTls *tls)
{
    return tls->at < tls->end;
}

int rdma_hca_tls_flush(RdmaHcaTls *tls)
{
    while (rdma_hca_tls_is_full(tls)) {
        ssize_t ret = rdma_hca_channel_result(qio_channel_write(
            tls->ioc, (char *)tls->record + tls->at, tls->end - tls->at, NULL));

        if (ret < 0) {
            return ret;
        }
        tls->at += ret;
    }
    return 0;
}

/* What follows @offset bytes of @iov is the next record. False: nothing does. */
static bool tls_fill(RdmaHcaTls *tls, const struct iovec *iov, int iovcnt,
                     size_t offset)
{
    tls->at = 0;
    tls->end = iov_to_buf(iov, iovcnt, offset, tls->record,
                          sizeof(tls->record));
    return rdma_hca_tls_is_full(tls);
}

ssize_t rdma_hca_tls_writev(RdmaHcaTls *tls, const struct iovec *iov,
                            int iovcnt)
{
    int ret = rdma_hca_tls_flush(tls);
    size_t taken = 0;

    while (!ret && tls_fill(tls, iov, iovcnt, taken)) {
        taken += tls->end;
        ret = rdma_hca_tls_flush(tls);
    }
    return ret == -EPIPE || !taken ? ret : taken;
}
