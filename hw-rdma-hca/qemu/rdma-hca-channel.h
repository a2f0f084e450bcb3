/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the cables' ways over a QIOChannel have in common. */
#ifndef RDMA_HCA_CHANNEL_H
#define RDMA_HCA_CHANNEL_H

#include "io/channel.h"

/* What a QIOChannel's call has returned, as writev() and readv() of a cable. */
static inline ssize_t rdma_hca_channel_result(ssize_t ret)
{
    return ret == QIO_CHANNEL_ERR_BLOCK ? -EAGAIN : ret < 0 ? -EPIPE : ret;
}

#endif /* RDMA_HCA_CHANNEL_H */
