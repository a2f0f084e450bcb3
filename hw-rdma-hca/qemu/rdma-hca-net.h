/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port of a RoCE card: a NIC of QEMU's, with a -netdev as its peer, in the
 * place of a cable.
 *
 * Frames come and go in the main loop; the card runs in its own thread. A
 * ring of frames for each direction is between them. The card sees the byte
 * stream of core/link/framing.h, without greetings; each call of readv and
 * writev moves whole frames.
 */
#ifndef RDMA_HCA_NET_H
#define RDMA_HCA_NET_H

#include <sys/uio.h>

#include "hw/qdev-core.h"
#include "net/net.h"
#include "rdma-hca-cable.h"

typedef struct RdmaHcaNet RdmaHcaNet;

/* With the BQL: a NIC after @conf for @dev; freed after it is unplugged. */
RdmaHcaNet *rdma_hca_net_new(DeviceState *dev, NICConf *conf);
void rdma_hca_net_free(RdmaHcaNet *net);

/* With the BQL, as rdma_hca_cable_plug() and rdma_hca_cable_unplug(). */
void rdma_hca_net_plug(RdmaHcaNet *net, AioContext *ctx,
                       const RdmaHcaCableOps *ops, void *opaque);
void rdma_hca_net_unplug(RdmaHcaNet *net);

/*
 * With the BQL: let frames pass between the rings and the netdev, or not.
 * Running, the card has to be started.
 */
void rdma_hca_net_set_running(RdmaHcaNet *net, bool running);

/* In the card's thread, as the functions of the cable. */
void rdma_hca_net_start(RdmaHcaNet *net);
void rdma_hca_net_stop(RdmaHcaNet *net);
void rdma_hca_net_close(RdmaHcaNet *net);
ssize_t rdma_hca_net_writev(RdmaHcaNet *net, const struct iovec *iov,
                            int iovcnt);
ssize_t rdma_hca_net_readv(RdmaHcaNet *net, const struct iovec *iov,
                           int iovcnt);

#endif /* RDMA_HCA_NET_H */
