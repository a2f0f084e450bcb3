// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs that ask about the device and its port, and the table of all
 * verbs that the driver has.
 */
#include <rdma/ib_mad.h>

#include "rhca.h"

/* An InfiniBand port has one GID until management arrives. */
#define RHCA_NUM_GIDS	1

/* The core is ready for events, and for users. */
static int rhca_enable_driver(struct ib_device *ibdev)
{
	WRITE_ONCE(to_rhca(ibdev)->registered, true);
	return 0;
}

static int rhca_query_device(struct ib_device *ibdev,
			     struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	const struct rhca_caps *caps = &dev->caps;

	if (udata->inlen || udata->outlen)
		return -EINVAL;

	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = (u64)(caps->fw_version >> 16) << 32 |
		       (caps->fw_version & 0xffff);
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = dev->pdev->revision;
	attr->device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_CURR_QP_STATE_MOD;
	attr->page_size_cap = GENMASK_ULL(RDMA_HCA_MPT_PAGE_SHIFT_MAX,
					  RDMA_HCA_MPT_PAGE_SHIFT_MIN);
	/* What all MTT entries together can span. */
	attr->max_mr_size = (u64)(dev->mtt_map.num - caps->reserved_mtts)
			    << RDMA_HCA_MPT_PAGE_SHIFT_MAX;
	/* Each event queue is a region, and the driver has a PD for them. */
	attr->max_mr = dev->mpt_map.num - caps->reserved_mpts - dev->num_eqs;
	attr->max_pd = dev->pd_map.num - caps->reserved_pds - 1;
	attr->max_qp = dev->qp_map.num - caps->reserved_qps;
	attr->max_qp_wr = 1 << caps->log_max_wqes;
	attr->max_send_sge = caps->max_send_sge;
	attr->max_recv_sge = caps->max_recv_sge;
	attr->max_sge_rd = caps->max_send_sge;
	attr->max_cq = dev->cq_map.num - caps->reserved_cqs;
	attr->max_cqe = 1 << caps->log_max_cqes;
	attr->max_qp_init_rd_atom = caps->max_sra;
	attr->max_qp_rd_atom = caps->max_rra;
	attr->max_res_rd_atom = caps->max_rra * attr->max_qp;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_ah = INT_MAX;
	attr->max_pkeys = caps->num_pkeys;
	attr->local_ca_ack_delay = caps->ack_delay;
	if (caps->features & RDMA_HCA_FEATURE_MCAST) {
		attr->max_mcast_grp = RDMA_HCA_MGM_NUM;
		attr->max_mcast_qp_attach = RDMA_HCA_MGM_MAX_QPS;
		attr->max_total_mcast_qp_attach = RDMA_HCA_MGM_NUM *
						  RDMA_HCA_MGM_MAX_QPS;
	}
	return 0;
}

static void rhca_decode_port(const struct rdma_hca_port *port,
			     struct ib_port_attr *attr)
{
	__be32 link = port->mtu_width_speed;

	attr->state = rhca_get(port->state, RDMA_HCA_PORT_STATE);
	attr->phys_state = rhca_get(port->state, RDMA_HCA_PORT_PHYS_STATE);
	attr->max_mtu = rhca_get(link, RDMA_HCA_PORT_MAX_MTU);
	attr->active_mtu = rhca_get(link, RDMA_HCA_PORT_ACTIVE_MTU);
	attr->active_width = rhca_get(link, RDMA_HCA_PORT_WIDTH);
	attr->active_speed = rhca_get(link, RDMA_HCA_PORT_SPEED);
	attr->max_vl_num = rhca_get(link, RDMA_HCA_PORT_MAX_VL);
	attr->lid = rhca_get(port->lid, RDMA_HCA_PORT_LID);
	attr->lmc = rhca_get(port->lid, RDMA_HCA_PORT_LMC);
	attr->sm_lid = rhca_get(port->sm, RDMA_HCA_PORT_SM_LID);
	attr->sm_sl = rhca_get(port->sm, RDMA_HCA_PORT_SM_SL);
	attr->port_cap_flags = be32_to_cpu(port->cap_mask);
	attr->bad_pkey_cntr = rhca_get(port->violations,
				       RDMA_HCA_PORT_PKEY_VIOLATIONS);
	attr->qkey_viol_cntr = rhca_get(port->violations,
					RDMA_HCA_PORT_QKEY_VIOLATIONS);
}

static __be64 rhca_port_guid(const struct rdma_hca_port *port)
{
	return cpu_to_be64(rhca_get64(port->guid_h, port->guid_l));
}

int rhca_read_port(struct rhca_dev *dev, struct rdma_hca_port *port)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_PORT, RHCA_PORT, &box);
	*port = *(struct rdma_hca_port *)box.buf;
	rhca_mailbox_free(dev, &box);
	return err;
}

/* The core asks after each port event: this is where a new LID is noticed. */
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
	if (old != attr->lid && READ_ONCE(dev->registered))
		ib_dispatch_event(&event);
}

/* The RDMA port follows the interface: what it is, what it can carry. */
static void rhca_put_roce_port(const struct rhca_dev *dev,
			       struct ib_port_attr *attr)
{
	bool up = rhca_eth_is_up(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = dev->caps.max_mtu;
	attr->active_mtu = rhca_eth_mtu(dev);
	attr->port_cap_flags |= IB_PORT_CM_SUP;
	attr->ip_gids = true;
}

enum ib_mtu rhca_active_mtu(const struct rhca_dev *dev)
{
	return rhca_is_roce(dev) ? rhca_eth_mtu(dev) :
				   READ_ONCE(dev->active_mtu);
}

static u32 rhca_num_gids(const struct rhca_dev *dev)
{
	return rhca_is_roce(dev) ? dev->caps.num_gids : RHCA_NUM_GIDS;
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
	if (attr->active_mtu < IB_MTU_256 || attr->active_mtu > IB_MTU_4096)
		return -EIO;
	attr->gid_tbl_len = rhca_num_gids(dev);
	attr->pkey_tbl_len = dev->caps.num_pkeys;
	attr->max_msg_sz = 1u << dev->caps.log_max_msg;
	rhca_keep_port(dev, attr);
	return 0;
}

int rhca_query_guid(struct rhca_dev *dev, __be64 *guid)
{
	struct rdma_hca_port port;
	int err;

	err = rhca_read_port(dev, &port);
	*guid = rhca_port_guid(&port);
	return err;
}

static int rhca_query_gid(struct ib_device *ibdev, u32 port, int index,
			  union ib_gid *gid)
{
	struct rdma_hca_port answer;
	u64 prefix;
	int err;

	if (index >= RHCA_NUM_GIDS)
		return -EINVAL;
	err = rhca_read_port(to_rhca(ibdev), &answer);
	prefix = rhca_get64(answer.gid_prefix_h, answer.gid_prefix_l);
	gid->global.subnet_prefix = cpu_to_be64(prefix);
	gid->global.interface_id = rhca_port_guid(&answer);
	return err;
}

static int rhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			   u16 *pkey)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	struct rdma_hca_port answer;
	int err;

	if (index >= dev->caps.num_pkeys)
		return -EINVAL;
	err = rhca_read_port(dev, &answer);
	*pkey = rhca_get(answer.pkeys[index / 2], RDMA_HCA_PORT_PKEY(index));
	return err;
}

static int rhca_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *immutable)
{
	const struct rhca_dev *dev = to_rhca(ibdev);

	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	if (rhca_is_roce(dev)) {
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	}
	immutable->gid_tbl_len = rhca_num_gids(dev);
	immutable->pkey_tbl_len = dev->caps.num_pkeys;
	return 0;
}

static enum rdma_link_layer rhca_get_link_layer(struct ib_device *ibdev,
						u32 port)
{
	return rhca_is_roce(to_rhca(ibdev)) ? IB_LINK_LAYER_ETHERNET :
					      IB_LINK_LAYER_INFINIBAND;
}

static void rhca_get_fw_str(struct ib_device *ibdev, char *str)
{
	u32 version = to_rhca(ibdev)->caps.fw_version;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", version >> 16,
		 version & 0xffff);
}

const struct ib_device_ops rhca_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = RDMA_HCA_UVERBS_ABI_VERSION,

	.alloc_pd = rhca_alloc_pd,
	.alloc_ucontext = rhca_alloc_ucontext,
	.create_ah = rhca_create_ah,
	.create_cq = rhca_create_cq,
	.create_qp = rhca_create_qp,
	.create_user_ah = rhca_create_ah,
	.dealloc_pd = rhca_dealloc_pd,
	.dealloc_ucontext = rhca_dealloc_ucontext,
	.dereg_mr = rhca_dereg_mr,
	.destroy_ah = rhca_destroy_ah,
	.destroy_cq = rhca_destroy_cq,
	.destroy_qp = rhca_destroy_qp,
	.disassociate_ucontext = rhca_disassociate_ucontext,
	.enable_driver = rhca_enable_driver,
	.get_dev_fw_str = rhca_get_fw_str,
	.get_dma_mr = rhca_get_dma_mr,
	.get_link_layer = rhca_get_link_layer,
	.get_port_immutable = rhca_get_port_immutable,
	.mmap = rhca_mmap,
	.mmap_free = rhca_mmap_free,
	.modify_qp = rhca_modify_qp,
	.poll_cq = rhca_poll_cq,
	.post_recv = rhca_post_recv,
	.post_send = rhca_post_send,
	.query_ah = rhca_query_ah,
	.query_device = rhca_query_device,
	.query_gid = rhca_query_gid,
	.query_pkey = rhca_query_pkey,
	.query_port = rhca_query_port,
	.query_qp = rhca_query_qp,
	.reg_user_mr = rhca_reg_user_mr,
	.req_notify_cq = rhca_req_notify_cq,
	.rereg_user_mr = rhca_rereg_user_mr,
	.resize_cq = rhca_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, rhca_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, rhca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, rhca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, rhca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, rhca_ucontext, ibctx),
};

const struct ib_device_ops rhca_roce_ops = {
	.add_gid = rhca_add_gid,
	.del_gid = rhca_del_gid,
};

const struct ib_device_ops rhca_mcast_ops = {
	.attach_mcast = rhca_attach_mcast,
	.detach_mcast = rhca_detach_mcast,
};
