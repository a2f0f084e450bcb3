/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cable of a RoCE card: a NIC of QEMU's, with a -netdev as its peer.
 *
 * Frames come and go in the main loop; the card runs in its own thread. A
 * ring of frames for each direction is between them. The card sees the byte
 * stream of core/link/framing.h, without greetings; each call of readv and
 * writev moves whole frames.
 */
#ifndef RDMA_HCA_NET_H
#define RDMA_HCA_NET_H

#include "net/net.h"
#include "qom/object.h"
#include "rdma-hca-compat.h"

#define TYPE_RDMA_HCA_NET "rdma-hca-net"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaHcaNet, RDMA_HCA_NET)

/* With the BQL: a NIC after @conf for @dev; freed after it is unplugged. */
RdmaHcaNet *rdma_hca_net_new(DeviceState *dev, NICConf *conf);
void rdma_hca_net_free(RdmaHcaNet *net);

#endif /* RDMA_HCA_NET_H */
