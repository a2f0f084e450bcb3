// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs that ask about the device, and the table of all verbs that the
 * driver has.
 */
#include "rdma_hca_user.h"

#include "compat.h"
#include "counter.h"
#include "cq.h"
#include "device.h"
#include "flow.h"
#include "mgmt.h"
#include "mr.h"
#include "netdev.h"
#include "port.h"
#include "qp.h"
#include "restrack.h"
#include "srq.h"
#include "uctx.h"
#include "udata.h"

/* The core is ready for events, and for users. */
static int rhca_enable_driver(struct ib_device *ibdev)
{
	struct rhca_dev *dev = to_rhca(ibdev);

	/* A failure that nobody could be told of. */
	if (rhca_life(dev->pci, RHCA_OFFER) == RHCA_LOST)
		queue_work(dev->pci->wq, &dev->failure);
	return 0;
}

static void rhca_query_identity(struct rhca_dev *dev,
				struct ib_device_attr *attr)
{
	u32 version = dev->caps.fw_version;

	attr->fw_ver = (u64)(version >> 16) << 32 | (version & 0xffff);
	attr->sys_image_guid = dev->ibdev.node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = dev->pdev->revision;
}

static void rhca_query_queues(struct rhca_dev *dev, struct ib_device_attr *attr)
{
	const struct rhca_caps *caps = &dev->caps;

	attr->device_cap_flags |= IB_DEVICE_PORT_ACTIVE_EVENT |
				  IB_DEVICE_SYS_IMAGE_GUID |
				  IB_DEVICE_RC_RNR_NAK_GEN |
				  IB_DEVICE_CURR_QP_STATE_MOD;
	/* The driver has a PD for its event queues. */
	attr->max_pd = dev->pd_map.num - caps->reserved_pds - 1;
	attr->max_qp = dev->qp_map.num - caps->reserved_qps;
	attr->max_qp_wr = 1 << caps->log_max_wqes;
	attr->max_send_sge = caps->max_send_sge;
	attr->max_recv_sge = caps->max_recv_sge;
	attr->max_sge_rd = caps->max_send_sge;
	attr->max_qp_init_rd_atom = caps->max_sra;
	attr->max_qp_rd_atom = caps->max_rra;
	attr->max_res_rd_atom = caps->max_rra * attr->max_qp;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_ah = INT_MAX;
	attr->max_pkeys = caps->num_pkeys;
	attr->local_ca_ack_delay = caps->ack_delay;
	if (rhca_has_srqs(dev)) {
		attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
		attr->max_srq = dev->srq_map.num - caps->reserved_srqs;
		attr->max_srq_wr = 1 << caps->log_max_srq_wqes;
		attr->max_srq_sge = caps->max_srq_sge;
	}
	if (rhca_has_xrc(dev))
		attr->device_cap_flags |= IB_DEVICE_XRC;
	if (rhca_has_raw(dev))
		attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
	if (caps->features & RDMA_HCA_FEATURE_ATOMIC_WRITE)
		attr->device_cap_flags |= RHCA_DEVICE_ATOMIC_WRITE;
	if (caps->features & RDMA_HCA_FEATURE_FLUSH)
		attr->device_cap_flags |= RHCA_DEVICE_FLUSH;
	if (caps->features & RDMA_HCA_FEATURE_BLOCK_LOOPBACK)
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
	if (caps->features & RDMA_HCA_FEATURE_MCAST) {
		attr->max_mcast_grp = RDMA_HCA_MGM_NUM;
		attr->max_mcast_qp_attach = RDMA_HCA_MGM_MAX_QPS;
		attr->max_total_mcast_qp_attach = RDMA_HCA_MGM_NUM *
						  RDMA_HCA_MGM_MAX_QPS;
	}
}

static void rhca_query_memory(struct rhca_dev *dev, struct ib_device_attr *attr)
{
	const struct rhca_caps *caps = &dev->caps;

	attr->page_size_cap = GENMASK_ULL(RDMA_HCA_MPT_PAGE_SHIFT_MAX,
					  RDMA_HCA_MPT_PAGE_SHIFT_MIN);
	/* What all MTT entries together can span. */
	attr->max_mr_size = (u64)(dev->mtt_map.num - caps->reserved_mtts)
			    << RDMA_HCA_MPT_PAGE_SHIFT_MAX;
	/* Each event queue is a region, and there may be one without memory. */
	attr->max_mr = dev->mpt_map.num - caps->reserved_mpts - dev->num_eqs -
		       (dev->null_mr ? 1 : 0);
	if (caps->max_page_list) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->kernel_cap_flags |= IBK_SG_GAPS_REG;
		attr->max_fast_reg_page_list_len = caps->max_page_list;
	}
	if (caps->features & RDMA_HCA_FEATURE_MW) {
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW |
					  IB_DEVICE_MEM_WINDOW_TYPE_2B;
		attr->max_mw = attr->max_mr;
	}
	attr->max_dm_size = caps->dev_mem;
}

static void rhca_query_completions(struct rhca_dev *dev,
				   struct ib_device_attr *attr)
{
	const struct rhca_caps *caps = &dev->caps;

	attr->max_cq = dev->cq_map.num - caps->reserved_cqs;
	attr->max_cqe = 1 << caps->log_max_cqes;
	if (caps->clock_khz) {
		attr->timestamp_mask =
			GENMASK_ULL(RDMA_HCA_CQE_TIME_BITS - 1, 0);
		attr->hca_core_clock = caps->clock_khz;
	}
	if (caps->features & RDMA_HCA_FEATURE_CQ_MODERATION) {
		attr->cq_caps.max_cq_moderation_count =
			FIELD_MAX(RDMA_HCA_MODERATION_COUNT);
		attr->cq_caps.max_cq_moderation_period =
			FIELD_MAX(RDMA_HCA_MODERATION_PERIOD);
	}
}

static int rhca_query_device(struct ib_device *ibdev,
			     struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	int err;

	err = rhca_take_no_request(udata);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	rhca_query_identity(dev, attr);
	rhca_query_queues(dev, attr);
	rhca_query_memory(dev, attr);
	rhca_query_completions(dev, attr);
	return 0;
}

static void rhca_get_fw_str(struct ib_device *ibdev, char *str)
{
	u32 version = to_rhca(ibdev)->caps.fw_version;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", version >> 16,
		 version & 0xffff);
}

/* What ibstat and others show; the core has the firmware's version. */
static ssize_t hca_type_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", RHCA_NAME);
}
static DEVICE_ATTR_RO(hca_type);

static struct rhca_dev *rhca_of_device(struct device *device)
{
	return rdma_device_to_drv_device(device, struct rhca_dev, ibdev);
}

static ssize_t hw_rev_show(struct device *device,
			   struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%x\n", rhca_of_device(device)->pdev->revision);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%016llx\n",
			  rhca_of_device(device)->caps.board_id);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *rhca_attributes[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL
};

static const struct attribute_group rhca_attribute_group = {
	.attrs = rhca_attributes,
};

static const struct ib_device_ops rhca_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = RDMA_HCA_UVERBS_ABI_VERSION,
	.device_group = &rhca_attribute_group,

	.alloc_pd = rhca_alloc_pd,
	.alloc_ucontext = rhca_alloc_ucontext,
	.create_ah = rhca_create_ah,
	.create_cq = rhca_create_cq,
	RHCA_CREATE_USER_CQ
	.create_qp = rhca_create_qp,
	.create_user_ah = rhca_create_ah,
	.dealloc_pd = rhca_dealloc_pd,
	.dealloc_ucontext = rhca_dealloc_ucontext,
	.dereg_mr = rhca_dereg_mr,
	.destroy_ah = rhca_destroy_ah,
	.destroy_cq = rhca_destroy_cq,
	.destroy_qp = rhca_destroy_qp,
	.disassociate_ucontext = rhca_disassociate_ucontext,
	.drain_rq = rhca_drain_rq,
	.drain_sq = rhca_drain_sq,
	.enable_driver = rhca_enable_driver,
	.fill_res_cq_entry = rhca_res_cq,
	.fill_res_cq_entry_raw = rhca_res_cq_context,
	.fill_res_mr_entry = rhca_res_mr,
	.fill_res_mr_entry_raw = rhca_res_mr_context,
	.fill_res_qp_entry = rhca_res_qp,
	.fill_res_qp_entry_raw = rhca_res_qp_context,
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
	RHCA_QUERY_PORT_SPEED
	RHCA_REPORT_PORT_EVENT
	.query_qp = rhca_query_qp,
	.query_ucontext = rhca_query_ucontext,
	.reg_user_mr = rhca_reg_user_mr,
	.reg_user_mr_dmabuf = rhca_reg_user_mr_dmabuf,
	.req_notify_cq = rhca_req_notify_cq,
	.rereg_user_mr = rhca_rereg_user_mr,
	.resize_user_cq = rhca_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, rhca_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, rhca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, rhca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, rhca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, rhca_ucontext, ibctx),
};

/*
 * IP over InfiniBand asks for an interface of the device's making; without
 * management it could not join the group that it lives by, with its own as
 * little. Only of EOPNOTSUPP would it make one itself, which never runs.
 */
static int rhca_netdev_get_params(struct ib_device *ibdev, u32 port,
				  enum rdma_netdev_t type,
				  struct rdma_netdev_alloc_params *params)
{
	return type == RDMA_NETDEV_IPOIB ? -ENODEV : -EOPNOTSUPP;
}

/* Of an InfiniBand card without management besides. */
static const struct ib_device_ops rhca_unmanaged_ops = {
	.rdma_netdev_get_params = rhca_netdev_get_params,
};

/* Of an InfiniBand card with management besides. */
static const struct ib_device_ops rhca_mad_ops = {
	.modify_device = rhca_modify_device,
	.modify_port = rhca_modify_port,
	.process_mad = rhca_process_mad,
};

/* Of a RoCE card besides. */
static const struct ib_device_ops rhca_roce_ops = {
	.add_gid = rhca_add_gid,
	.del_gid = rhca_del_gid,
	.get_netdev = rhca_get_netdev,
};

/* Of a card that knows multicast besides. */
static const struct ib_device_ops rhca_mcast_ops = {
	.attach_mcast = rhca_attach_mcast,
	.detach_mcast = rhca_detach_mcast,
};

/* Of a card that knows fast registration besides. */
static const struct ib_device_ops rhca_fast_reg_ops = {
	.alloc_mr = rhca_alloc_mr,
	.map_mr_sg = rhca_map_mr_sg,
};

/* Of a card that knows memory windows besides. */
static const struct ib_device_ops rhca_mw_ops = {
	.alloc_mw = rhca_alloc_mw,
	.dealloc_mw = rhca_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, rhca_mw, ibmw),
};

/* Of a card that knows shared receive queues besides. */
static const struct ib_device_ops rhca_srq_ops = {
	.create_srq = rhca_create_srq,
	.destroy_srq = rhca_destroy_srq,
#ifdef RHCA_HAS_RES_SRQ
	.fill_res_srq_entry = rhca_res_srq,
	.fill_res_srq_entry_raw = rhca_res_srq_context,
#endif
	.modify_srq = rhca_modify_srq,
	.post_srq_recv = rhca_post_srq_recv,
	.query_srq = rhca_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, rhca_srq, ibsrq),
};

/* Of a card that counts for QPs besides. */
static const struct ib_device_ops rhca_counter_ops = {
	.counter_alloc_stats = rhca_counter_alloc_stats,
	.counter_bind_qp = rhca_counter_bind_qp,
	.counter_dealloc = rhca_counter_dealloc,
	.counter_unbind_qp = rhca_counter_unbind_qp,
	.counter_update_stats = rhca_counter_update_stats,
	RHCA_COUNTER_OBJECT
};

/* Of a card that knows XRC besides. */
static const struct ib_device_ops rhca_xrc_ops = {
	.alloc_xrcd = rhca_alloc_xrcd,
	.dealloc_xrcd = rhca_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, rhca_xrcd, ibxrcd),
};

/* Of a card that has raw packet QPs besides. */
static const struct ib_device_ops rhca_raw_ops = {
	.create_flow = rhca_create_flow,
	.destroy_flow = rhca_destroy_flow,
};

/* Of a card that knows moderation besides. */
static const struct ib_device_ops rhca_moderation_ops = {
	.modify_cq = rhca_modify_cq,
};

/* Of a card that has memory of its own besides. */
static const struct ib_device_ops rhca_dm_ops = {
	.alloc_dm = rhca_alloc_dm,
	.dealloc_dm = rhca_dealloc_dm,
	.reg_dm_mr = rhca_reg_dm_mr,
};

/* What uverbs has of the driver beyond the verbs. */
static const struct uapi_definition rhca_uapi_defs[] = {
	UAPI_DEF_CHAIN(rhca_uctx_uapi_defs),
	UAPI_DEF_CHAIN(rhca_dm_uapi_defs),
	{}
};

/* What differs between link layers. */
static const struct ib_device_ops *rhca_link_ops(const struct rhca_dev *dev)
{
	if (rhca_is_roce(dev))
		return &rhca_roce_ops;
	return rhca_has_mad(dev) ? &rhca_mad_ops : &rhca_unmanaged_ops;
}

void rhca_set_verbs(struct rhca_dev *dev)
{
	dev->ibdev.driver_def = rhca_uapi_defs;
	ib_set_device_ops(&dev->ibdev, &rhca_dev_ops);
	ib_set_device_ops(&dev->ibdev, rhca_link_ops(dev));
	if (dev->caps.features & RDMA_HCA_FEATURE_MCAST)
		ib_set_device_ops(&dev->ibdev, &rhca_mcast_ops);
	if (dev->caps.max_page_list)
		ib_set_device_ops(&dev->ibdev, &rhca_fast_reg_ops);
	if (dev->caps.features & RDMA_HCA_FEATURE_MW)
		ib_set_device_ops(&dev->ibdev, &rhca_mw_ops);
	if (rhca_has_srqs(dev))
		ib_set_device_ops(&dev->ibdev, &rhca_srq_ops);
	if (rhca_has_xrc(dev))
		ib_set_device_ops(&dev->ibdev, &rhca_xrc_ops);
	if (rhca_has_raw(dev))
		ib_set_device_ops(&dev->ibdev, &rhca_raw_ops);
	if (dev->caps.features & RDMA_HCA_FEATURE_CQ_MODERATION)
		ib_set_device_ops(&dev->ibdev, &rhca_moderation_ops);
	if (dev->caps.dev_mem)
		ib_set_device_ops(&dev->ibdev, &rhca_dm_ops);
	if (dev->diag.num_qp)
		ib_set_device_ops(&dev->ibdev, &rhca_counter_ops);
}
