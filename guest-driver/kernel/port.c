// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RDMA port, of which there is one: what the card says of it (QUERY_PORT,
 * interface document 3.2.1) and, of a RoCE card, what its interface makes of
 * it.
 */
#include <linux/netdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "port.h"

/* --- the card's answer -------------------------------------------------- */

static void rhca_decode_port(const struct rdma_hca_port *port,
			     struct ib_port_attr *attr)
{
	__be32 link = port->mtu_width_speed;

	attr->state = be32_get_bits(port->state, RDMA_HCA_PORT_STATE);
	attr->phys_state = be32_get_bits(port->state, RDMA_HCA_PORT_PHYS_STATE);
	attr->max_mtu = be32_get_bits(link, RDMA_HCA_PORT_MAX_MTU);
	attr->active_mtu = be32_get_bits(link, RDMA_HCA_PORT_ACTIVE_MTU);
	attr->active_width = be32_get_bits(link, RDMA_HCA_PORT_WIDTH);
	attr->active_speed = be32_get_bits(link, RDMA_HCA_PORT_SPEED);
	attr->max_vl_num = be32_get_bits(link, RDMA_HCA_PORT_MAX_VL);
	attr->lid = be32_get_bits(port->lid, RDMA_HCA_PORT_LID);
	attr->lmc = be32_get_bits(port->lid, RDMA_HCA_PORT_LMC);
	attr->sm_lid = be32_get_bits(port->sm, RDMA_HCA_PORT_SM_LID);
	attr->sm_sl = be32_get_bits(port->sm, RDMA_HCA_PORT_SM_SL);
	attr->port_cap_flags = be32_to_cpu(port->cap_mask);
	attr->subnet_timeout =
		be32_get_bits(port->mgmt, RDMA_HCA_PORT_SUBNET_TIMEOUT);
	attr->init_type_reply =
		be32_get_bits(port->mgmt, RDMA_HCA_PORT_INIT_TYPE_REPLY);
	attr->bad_pkey_cntr =
		be32_get_bits(port->violations, RDMA_HCA_PORT_PKEY_VIOLATIONS);
	attr->qkey_viol_cntr =
		be32_get_bits(port->violations, RDMA_HCA_PORT_QKEY_VIOLATIONS);
}

static u64 rhca_port_prefix(const struct rdma_hca_port *port)
{
	return rhca_get64(port->gid_prefix_h, port->gid_prefix_l);
}

/* The port's own, which is there in any case, or another. */
static u64 rhca_port_guid(const struct rdma_hca_port *port, int index)
{
	if (!index)
		return rhca_get64(port->guid_h, port->guid_l);
	return rhca_get64(port->guids[index].h, port->guids[index].l);
}

int rhca_read_port(struct rhca_dev *dev, struct rdma_hca_port *port)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_PORT, RHCA_PORT, &box);
	if (!err)
		*port = *(struct rdma_hca_port *)box.buf;
	rhca_mailbox_free(dev, &box);
	return err;
}

/* --- the interface of a RoCE card --------------------------------------- */

/* As the RDMA port has it: the link is there and the interface is up. */
static bool rhca_ndev_is_up(const struct rhca_dev *dev)
{
	const struct net_device *ndev = dev->ndev;

	return netif_running(ndev) && netif_carrier_ok(ndev);
}

static enum ib_mtu rhca_roce_mtu(const struct rhca_dev *dev, int ndev_mtu)
{
	/* Less than the least is not fit for RDMA, but for the rest. */
	return clamp_t(u8, iboe_get_mtu(ndev_mtu), IB_MTU_256,
		       dev->caps.max_mtu);
}

static enum ib_mtu rhca_ndev_mtu(const struct rhca_dev *dev)
{
	return rhca_roce_mtu(dev, READ_ONCE(dev->ndev->mtu));
}

/* The RDMA port follows the interface: what it is, what it can carry. */
static void rhca_put_roce_port(const struct rhca_dev *dev,
			       struct ib_port_attr *attr)
{
	bool up = rhca_ndev_is_up(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = dev->caps.max_mtu;
	attr->active_mtu = rhca_ndev_mtu(dev);
	attr->port_cap_flags |= IB_PORT_CM_SUP;
	attr->ip_gids = true;
}

void rhca_tell_port(struct rhca_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RHCA_PORT,
	};
	bool up;

	/* The last one to tell has to be the last one to look. */
	mutex_lock(&dev->link_lock);
	if (!rhca_has_users(dev))
		goto unlock;
	up = rhca_ndev_is_up(dev);
	if (up == dev->port_up)
		goto unlock;
	dev->port_up = up;
	event.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
unlock:
	mutex_unlock(&dev->link_lock);
}

void rhca_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
			    unsigned long event)
{
	rhca_tell_port(to_rhca(ibdev));
}

int rhca_tell_mtu(struct rhca_dev *dev, int ndev_mtu)
{
	if (!(dev->caps.features & RDMA_HCA_FEATURE_SET_MTU))
		return 0;
	return rhca_cmd(dev, RDMA_HCA_CMD_SET_MTU, 0, 0,
			rhca_roce_mtu(dev, ndev_mtu), 0);
}

/* --- what users get ----------------------------------------------------- */

enum ib_mtu rhca_active_mtu(const struct rhca_dev *dev)
{
	return rhca_is_roce(dev) ? rhca_ndev_mtu(dev) :
				   READ_ONCE(dev->active_mtu);
}

/*
 * The core asks after each port event: this is where a new LID is noticed of
 * which no event tells.
 */
static void rhca_keep_port(struct rhca_dev *dev,
			   const struct ib_port_attr *attr)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RHCA_PORT,
		.event = IB_EVENT_LID_CHANGE,
	};
	u16 old = xchg(&dev->lid, attr->lid);

	WRITE_ONCE(dev->active_mtu, attr->active_mtu);
	if (old != attr->lid && !rhca_has_mad(dev) && rhca_has_users(dev))
		ib_dispatch_event(&event);
}

int rhca_query_port(struct ib_device *ibdev, u32 port,
		    struct ib_port_attr *attr)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	struct rdma_hca_port answer;
	int err;

	err = rhca_read_port(dev, &answer);
	if (err)
		return err;
	rhca_decode_port(&answer, attr);
	if (rhca_is_roce(dev))
		rhca_put_roce_port(dev, attr);
	else
		attr->subnet_prefix = rhca_port_prefix(&answer);
	if (attr->active_mtu < IB_MTU_256 || attr->active_mtu > IB_MTU_4096)
		return -EIO;
	attr->gid_tbl_len = dev->caps.num_gids;
	attr->pkey_tbl_len = dev->caps.num_pkeys;
	attr->max_msg_sz = 1u << dev->caps.log_max_msg;
	rhca_keep_port(dev, attr);
	return 0;
}

#ifdef RHCA_HAS_QUERY_PORT_SPEED
int rhca_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct ib_port_speed_info info;
	struct ib_port_attr attr = {};
	int err;

	err = rhca_query_port(ibdev, port, &attr) ?:
	      ib_port_attr_to_speed_info(&attr, &info);
	if (!err)
		*speed = info.rate;
	return err;
}
#endif

int rhca_query_guid(struct rhca_dev *dev, __be64 *guid)
{
	struct rdma_hca_port port;
	int err;

	err = rhca_read_port(dev, &port);
	if (!err)
		*guid = cpu_to_be64(rhca_port_guid(&port, 0));
	return err;
}

/* Only of InfiniBand: the core has RoCE's. */
int rhca_query_gid(struct ib_device *ibdev, u32 port, int index,
		   union ib_gid *gid)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	struct rdma_hca_port answer;
	int err;

	if (index >= dev->caps.num_gids || index >= RDMA_HCA_MAX_GUIDS)
		return -EINVAL;
	err = rhca_read_port(dev, &answer);
	if (err)
		return err;
	/* The core takes the prefix from any of them, also without a GUID. */
	gid->global.subnet_prefix = cpu_to_be64(rhca_port_prefix(&answer));
	gid->global.interface_id = cpu_to_be64(rhca_port_guid(&answer, index));
	return 0;
}

int rhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	struct rdma_hca_port answer;
	u32 keys;
	int err;

	if (index >= dev->caps.num_pkeys)
		return -EINVAL;
	err = rhca_read_port(dev, &answer);
	if (err)
		return err;
	keys = be32_to_cpu(answer.pkeys[index / 2]);
	*pkey = index % 2 ? lower_16_bits(keys) : upper_16_bits(keys);
	return 0;
}

int rhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable)
{
	const struct rhca_dev *dev = to_rhca(ibdev);

	if (rhca_is_roce(dev))
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP |
			(dev->caps.features & RDMA_HCA_FEATURE_ROCE_V1_GIDS ?
			 RDMA_CORE_PORT_IBA_ROCE : 0);
	else if (rhca_has_mad(dev))
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	else
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	if (immutable->core_cap_flags & RDMA_CORE_CAP_IB_MAD)
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	immutable->gid_tbl_len = dev->caps.num_gids;
	immutable->pkey_tbl_len = dev->caps.num_pkeys;
	return 0;
}

bool rhca_speaks_by(const struct rdma_ah_attr *ah)
{
	return ah->type != RDMA_AH_ATTR_TYPE_ROCE ||
	       ah->grh.sgid_attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP;
}

enum rdma_link_layer rhca_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return rhca_is_roce(to_rhca(ibdev)) ? IB_LINK_LAYER_ETHERNET :
					      IB_LINK_LAYER_INFINIBAND;
}
