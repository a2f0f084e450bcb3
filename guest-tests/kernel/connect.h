/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two QPs of one device that talk to each other, connected or of datagrams, on
 * InfiniBand and on RoCE. The first entry of a GID table is made of the interface's MAC, and
 * leads back to it without a neighbour.
 */
#ifndef CONNECT_H
#define CONNECT_H

#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "rdma_hca_module.h"

/* The address of the device's own port. */
static inline int connect_address(struct ib_device *dev,
				  struct rdma_ah_attr *ah)
{
	struct ib_port_attr port;
	union ib_gid gid;
	int err;

	ah->type = rdma_ah_find_type(dev, PORT);
	rdma_ah_set_port_num(ah, PORT);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE) {
		err = rdma_query_gid(dev, PORT, 0, &gid);
		if (!err)
			rdma_ah_set_grh(ah, &gid, 0, 0, 1, 0);
		return err;
	}
	err = ib_query_port(dev, PORT, &port);
	rdma_ah_set_dlid(ah, err ? 0 : port.lid);
	return err;
}

static inline int connect_rtr(struct ib_qp *qp, u32 peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	int err, mask = IB_QP_STATE;

	if (qp->qp_type == IB_QPT_RC || qp->qp_type == IB_QPT_UC)
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN;
	if (qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	err = connect_address(qp->device, &attr.ah_attr);
	return err ?: ib_modify_qp(qp, &attr, mask);
}

static inline int connect_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(qp, &attr, mask);
}

/* @qp is in RESET; the other side is to come. */
static inline int connect_qp(struct ib_qp *qp, u32 peer)
{
	return to_init(qp) ?: connect_rtr(qp, peer) ?: connect_rts(qp);
}

#endif /* CONNECT_H */
