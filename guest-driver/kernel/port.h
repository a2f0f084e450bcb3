/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The RDMA port: port.c; the GID table of a RoCE card: gid.c. */
#ifndef RHCA_PORT_H
#define RHCA_PORT_H

#include "card.h"

/* The card's answer to QUERY_PORT. */
int rhca_read_port(struct rhca_dev *dev, struct rdma_hca_port *port);
/* RoCE: tell users of the port if it has come up or gone down. */
void rhca_tell_port(struct rhca_dev *dev);
/* What the port's packets hold at most. */
enum ib_mtu rhca_active_mtu(const struct rhca_dev *dev);
/* The core saw the interface come or go: the port's users are told once. */
void rhca_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
			    unsigned long event);
/* RoCE: have the card know what they hold with that MTU of the interface. */
int rhca_tell_mtu(struct rhca_dev *dev, int ndev_mtu);
/* The port's GUID: the node's too. */
int rhca_query_guid(struct rhca_dev *dev, __be64 *guid);
/* QUERY_PORT, and what the driver keeps of it. */
int rhca_query_port(struct ib_device *ibdev, u32 port,
		    struct ib_port_attr *attr);
/* What it can carry, in units of 100 Mb/s. */
int rhca_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
int rhca_query_gid(struct ib_device *ibdev, u32 port, int index,
		   union ib_gid *gid);
int rhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int rhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable);
enum rdma_link_layer rhca_get_link_layer(struct ib_device *ibdev, u32 port);
/* Whether it speaks by the GID: one of RoCEv1 only has a place in the table. */
bool rhca_speaks_by(const struct rdma_ah_attr *ah);

/* gid.c */
int rhca_add_gid(const struct ib_gid_attr *attr, void **context);
int rhca_del_gid(const struct ib_gid_attr *attr, void **context);

#endif /* RHCA_PORT_H */
