// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Management of an InfiniBand port: what the host has a say in, QPs 0 and 1,
 * and the card's agents, which the core's MAD layer asks by way of the driver.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>

#include "icm.h"
#include "mgmt.h"
#include "port.h"

/* --- what the card tells subnet managers -------------------------------- */

static int rhca_set_node_desc(struct rhca_dev *dev, const char *text)
{
	struct rhca_mailbox box;
	int err;

	BUILD_BUG_ON(IB_DEVICE_NODE_DESC_MAX != RDMA_HCA_NODE_DESC_SIZE);
	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	memcpy(box.buf, text, RDMA_HCA_NODE_DESC_SIZE);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SET_NODE_DESC, 0, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

int rhca_modify_device(struct ib_device *ibdev, int mask,
		       struct ib_device_modify *attr)
{
	struct rhca_dev *dev = to_rhca(ibdev);
	int err;

	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (!mask)
		return 0;
	mutex_lock(&dev->mgmt_lock);
	err = rhca_set_node_desc(dev, attr->node_desc);
	if (!err)
		memcpy(ibdev->node_desc, attr->node_desc,
		       sizeof(ibdev->node_desc));
	mutex_unlock(&dev->mgmt_lock);
	return err;
}

static int rhca_set_ib(struct rhca_dev *dev, u32 cap_mask, bool reset_qkey)
{
	struct rdma_hca_set_ib *set;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	set = box.buf;
	be32p_replace_bits(&set->flags, reset_qkey, RDMA_HCA_SET_IB_RESET_QKEY);
	set->cap_mask = cpu_to_be32(cap_mask);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SET_IB, RHCA_PORT, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

/* What the CapabilityMask is, only the card knows. */
static int rhca_modify_caps(struct rhca_dev *dev, u32 set, u32 clear,
			    bool reset_qkey)
{
	struct rdma_hca_port port;
	u32 mask;
	int err;

	mutex_lock(&dev->mgmt_lock);
	err = rhca_read_port(dev, &port);
	if (!err) {
		mask = (be32_to_cpu(port.cap_mask) | set) & ~clear;
		err = rhca_set_ib(dev, mask, reset_qkey);
	}
	mutex_unlock(&dev->mgmt_lock);
	return err;
}

/* The port is taken down, and initialized, by a subnet manager. */
int rhca_modify_port(struct ib_device *ibdev, u32 port, int mask,
		     struct ib_port_modify *attr)
{
	u32 set = attr->set_port_cap_mask, clear = attr->clr_port_cap_mask;

	if ((mask & ~IB_PORT_RESET_QKEY_CNTR) ||
	    ((set | clear) & ~RDMA_HCA_CAP_SOFTWARE))
		return -EOPNOTSUPP;
	return rhca_modify_caps(to_rhca(ibdev), set, clear,
				mask & IB_PORT_RESET_QKEY_CNTR);
}

/* --- QPs 0 and 1 -------------------------------------------------------- */

/* @qpn: which QP of the table is the special one @which, 0: none. */
static int rhca_conf_special(struct rhca_dev *dev, u8 which, u32 qpn)
{
	return rhca_cmd(dev, RDMA_HCA_CMD_CONF_SPECIAL_QP, which, qpn, 0, 0);
}

int rhca_mgmt_start(struct rhca_dev *dev)
{
	u32 qpn = dev->caps.special_qpn;
	int err;

	if (!rhca_has_mad(dev))
		return 0;
	err = rhca_set_node_desc(dev, dev->ibdev.node_desc);
	if (!err)
		err = rhca_icm_get(dev, &dev->qpc_table, qpn, RHCA_SPECIAL_QPS);
	if (!err)
		err = rhca_conf_special(dev, RDMA_HCA_SPECIAL_SMI, qpn);
	if (err)
		return err;
	err = rhca_conf_special(dev, RDMA_HCA_SPECIAL_GSI, qpn + 1);
	if (err)
		rhca_conf_special(dev, RDMA_HCA_SPECIAL_SMI, 0);
	return err;
}

void rhca_mgmt_stop(struct rhca_dev *dev)
{
	if (!rhca_has_mad(dev))
		return;
	rhca_conf_special(dev, RDMA_HCA_SPECIAL_GSI, 0);
	rhca_conf_special(dev, RDMA_HCA_SPECIAL_SMI, 0);
}

/* --- the card's agents -------------------------------------------------- */

/* Others are the host's: a subnet manager's, or somebody's at a umad. */
static bool rhca_has_agent(const struct ib_mad_hdr *hdr)
{
	switch (hdr->mgmt_class) {
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
		if (hdr->attr_id == IB_SMP_ATTR_SM_INFO)
			return false;
		if (hdr->method == IB_MGMT_METHOD_TRAP_REPRESS)
			return true;
		break;
	case IB_MGMT_CLASS_PERF_MGMT:
		break;
	default:
		return false;
	}
	return hdr->method == IB_MGMT_METHOD_GET ||
	       hdr->method == IB_MGMT_METHOD_SET;
}

/* How the MAD came. */
static void rhca_put_mad_path(const struct ib_wc *wc, const struct ib_grh *grh,
			      struct rdma_hca_mad_ifc *ifc)
{
	ifc->my_qpn = cpu_to_be32(wc->qp->qp_num);
	ifc->rqpn = cpu_to_be32(wc->src_qp);
	ifc->sl = wc->sl << 4;
	ifc->grh_path = wc->dlid_path_bits;
	ifc->slid = cpu_to_be16(wc->slid);
	ifc->pkey_index = cpu_to_be16(wc->pkey_index);
	if (!grh || !(wc->wc_flags & IB_WC_GRH))
		return;
	ifc->grh_path |= BIT(7);
	memcpy(ifc->grh, grh, sizeof(ifc->grh));
}

/* Those of sysfs come without a completion, and may ask anything. */
static u8 rhca_mad_op_modifier(int flags, const struct ib_wc *wc)
{
	u8 op_modifier = 0;

	if (!wc || (flags & IB_MAD_IGNORE_MKEY))
		op_modifier |= RDMA_HCA_MAD_IGNORE_MKEY;
	if (!wc || (flags & IB_MAD_IGNORE_BKEY))
		op_modifier |= RDMA_HCA_MAD_IGNORE_BKEY;
	if (wc)
		op_modifier |= RDMA_HCA_MAD_EXTENDED;
	return op_modifier;
}

static int rhca_mad_ifc(struct rhca_dev *dev, int flags,
			const struct ib_wc *wc, const struct ib_grh *grh,
			const struct ib_mad *in, struct ib_mad *out)
{
	u32 in_modifier = RHCA_PORT | (wc ? wc->slid << 16 : 0);
	struct rhca_mailbox request, answer;
	struct rdma_hca_mad_ifc *ifc;
	int err;

	BUILD_BUG_ON(sizeof(*in) != sizeof(ifc->mad));
	err = rhca_mailbox_alloc(dev, &request);
	if (err)
		return err;
	err = rhca_mailbox_alloc(dev, &answer);
	if (err)
		goto free;
	ifc = request.buf;
	memcpy(ifc->mad, in, sizeof(*in));
	if (wc)
		rhca_put_mad_path(wc, grh, ifc);
	err = rhca_cmd(dev, RDMA_HCA_CMD_MAD_IFC,
		       rhca_mad_op_modifier(flags, wc), in_modifier,
		       request.dma, answer.dma);
	if (!err)
		memcpy(out, answer.buf, sizeof(*out));
	rhca_mailbox_free(dev, &answer);
free:
	rhca_mailbox_free(dev, &request);
	return err;
}

/*
 * In a context that may sleep, as commands do. A MAD that the card does not
 * answer, say one with a wrong M_Key, nobody else may answer, too.
 */
int rhca_process_mad(struct ib_device *ibdev, int flags, u32 port,
		     const struct ib_wc *wc, const struct ib_grh *grh,
		     const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index)
{
	int err;

	if (!rhca_has_agent(&in->mad_hdr))
		return IB_MAD_RESULT_SUCCESS;
	err = rhca_mad_ifc(to_rhca(ibdev), flags, wc, grh, in, out);
	if (err == -EBADMSG ||
	    in->mad_hdr.method == IB_MGMT_METHOD_TRAP_REPRESS)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	return err ? IB_MAD_RESULT_FAILURE :
		     IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
