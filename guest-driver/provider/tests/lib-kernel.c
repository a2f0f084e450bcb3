// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <string.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <util/util.h>

#include "../rhca_uverbs.h"
#include "lib-check.h"
#include "lib-kernel.h"

struct kernel kernel = {
	.next_qpn = 0x40,
	.next_cqn = 7,
	.next_srqn = 0x123450,
};

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 rhca_prov_attr_arg(struct verbs_create_cq_prov_attr *p)
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd,
			 size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags)
{
	struct rhca_create_cq_cmd *whole =
		container_of(cmd, struct rhca_create_cq_cmd, core);
	struct rhca_create_cq_resp *answer =
		container_of(resp, struct rhca_create_cq_resp, core);

	if (kernel.create_cq_err)
		return kernel.create_cq_err;
	CHECK_EQ(attr->cqe & (attr->cqe - 1), 0);
	kernel.cq_req = whole->drv;
	answer->drv.cqn = kernel.next_cqn++;
	answer->drv.entries = attr->cqe;
	cq->cq.context = context;
	cq->cq.cqe = attr->cqe;
	return 0;
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
		      size_t resp_size)
{
	kernel.resize_addr =
		container_of(cmd, struct rhca_resize_cq_cmd, core)->drv.buf_addr;
	if (kernel.on_resize)
		kernel.on_resize();
	cq->cqe = cqe;
	return 0;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size)
{
	kernel.modify_cq = *attr;
	return 0;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return 0;
}

int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *qp,
			  struct ibv_qp_init_attr_ex *attr,
			  struct ibv_create_qp_ex *cmd, size_t cmd_size,
			  struct ib_uverbs_ex_create_qp_resp *resp,
			  rhca_driver_arg(size_t resp_size,
					  struct ibv_command_buffer *driver))
{
	kernel.create_flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ?
				      attr->create_flags :
				      0;
	kernel.qp_req = container_of(cmd, struct rhca_create_qp_cmd, core)->drv;
	qp->qp.context = context;
	qp->qp.qp_num = kernel.next_qpn++;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.state = IBV_QPS_RESET;
	qp->comp_mask = 0;
	return 0;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		     struct ibv_qp_init_attr *init, struct ibv_query_qp *cmd,
		     size_t cmd_size)
{
	return 0;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	return 0;
}

static void be_waited_for(void)
{
	void (*on_destroy)(void) = kernel.on_destroy;

	kernel.on_destroy = NULL;
	if (on_destroy)
		on_destroy();
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	be_waited_for();
	return 0;
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
		    int vqp_sz, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	if (!(attr->comp_mask & IBV_QP_OPEN_ATTR_XRCD))
		return EINVAL;
	qp->qp.context = context;
	qp->qp.qp_num = attr->qp_num;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.state = IBV_QPS_UNKNOWN;
	return 0;
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size)
{
	kernel.srq_req =
		container_of(cmd, struct rhca_create_srq_cmd, core)->drv;
	srq->srq.context = context;
	srq->srq_type = attr->srq_type;
	if (attr->srq_type == IBV_SRQT_XRC) {
		srq->srq_num = kernel.next_srqn++;
		srq->cq = attr->cq;
	}
	return 0;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	kernel.modify_srq_size = cmd_size;
	if (mask & IBV_SRQ_MAX_WR)
		kernel.modify_srq_req =
			((struct rhca_modify_srq_cmd *)cmd)->drv;
	return kernel.modify_srq_err;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		      struct ibv_query_srq *cmd, size_t cmd_size)
{
	return 0;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	be_waited_for();
	return 0;
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
		      int vxrcd_size, struct ibv_xrcd_init_attr *attr,
		      struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	xrcd->xrcd.context = context;
	return 0;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	return 0;
}

/* The address is resolved as that of a gateway would be. */
int ibv_cmd_create_ah(struct ibv_pd *ibpd, struct ibv_ah *ah,
		      struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	static const uint8_t mac[] = { 0x52, 0x54, 0x00, 0xaa, 0xbb, 0xcc };
	struct rhca_create_ah_resp *answer =
		container_of(resp, struct rhca_create_ah_resp, core);

	if (kernel.create_ah_err)
		return kernel.create_ah_err;
	CHECK_EQ(resp_size, sizeof(*answer));
	memcpy(answer->drv.dmac, mac, sizeof(mac));
	answer->drv.hop_limit = 64;
	kernel.ahs++;
	return 0;
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	kernel.ahs--;
	return 0;
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port,
		       struct ibv_port_attr *attr, struct ibv_query_port *cmd,
		       size_t cmd_size)
{
	if (port != 1)
		return EINVAL;
	attr->lid = 0x20;
	attr->lmc = kernel.lmc ? kernel.lmc : 1;
	kernel.port_queries++;
	attr->gid_tbl_len = 1;
	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return 0;
}

int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp,
			     size_t *resp_size)
{
	attr->orig_attr.max_qp_wr = 65536;
	attr->orig_attr.max_srq_wr = 65536;
	resp->base.fw_ver = 1ULL << 32 | 5;
	return 0;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	pd->context = context;
	pd->handle = 3;
	return 0;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	return 0;
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		   uint64_t hca_va, int access, struct verbs_mr *vmr,
		   struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	return ENOMEM;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
			  uint64_t iova, int fd, int access,
			  struct verbs_mr *vmr,
			  struct ibv_command_buffer *driver)
{
	CHECK(!driver);
	if (fd < 0)
		return EBADF;
	vmr->ibv_mr.lkey = 0x77;
	vmr->ibv_mr.addr = (void *)(uintptr_t)iova;
	return 0;
}

static void answer_dm(struct ibv_command_buffer *driver, uint16_t attr,
		      uint64_t length)
{
	struct rdma_hca_dm_resp resp = {
		.mmap_key = DM_PAGE,
		.length = length,
	};
	struct ib_uverbs_attr *a;

	for (a = driver->hdr.attrs; a != driver->next_attr; a++) {
		if (a->attr_id != attr)
			continue;
		CHECK_EQ(a->len, sizeof(resp));
		memcpy((void *)(uintptr_t)a->data, &resp, sizeof(resp));
		return;
	}
	CHECK(!"the driver's attribute");
}

int ibv_cmd_alloc_dm(struct ibv_context *context,
		     const struct ibv_alloc_dm_attr *attr, struct verbs_dm *dm,
		     struct ibv_command_buffer *driver)
{
	kernel.dm_attr = *attr;
	if (attr->length > 2 * DM_PAGE)
		return ENOMEM;
	answer_dm(driver, RDMA_HCA_ATTR_ALLOC_DM_RESP, attr->length);
	kernel.dms++;
	kernel.dm_length = attr->length;
	dm->handle = DM_HANDLE;
	dm->dm.context = context;
	return 0;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	CHECK_EQ(dm->handle, DM_HANDLE);
	kernel.dms -= !kernel.free_dm_err;
	return kernel.free_dm_err;
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
		      size_t length, unsigned int access, struct verbs_mr *vmr,
		      struct ibv_command_buffer *driver)
{
	kernel.dm_mr_access = access;
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return EINVAL;
	vmr->ibv_mr.lkey = offset;
	vmr->ibv_mr.length = length;
	return 0;
}

/* The provider's own method. */
int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	CHECK_EQ(cmd->hdr.object_id, UVERBS_OBJECT_DM);
	CHECK_EQ(cmd->hdr.method_id, RDMA_HCA_METHOD_DM_QUERY);
	CHECK_EQ(cmd->hdr.attrs[0].attr_id, RDMA_HCA_ATTR_DM_QUERY_HANDLE);
	if (cmd->hdr.attrs[0].data != DM_HANDLE) {
		errno = ENOENT;
		return -1;
	}
	answer_dm(cmd, RDMA_HCA_ATTR_DM_QUERY_RESP, kernel.dm_length);
	return 0;
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t handle)
{
	if (handle != 5)
		return ENOENT;
	vmr->ibv_mr.handle = handle;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.lkey = 0x55;
	return 0;
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr,
		     size_t length, uint64_t hca_va, int access,
		     struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_size)
{
	return EINVAL;
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	return kernel.dereg_err;
}

int ibv_cmd_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type,
		     struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp,
		     size_t resp_size)
{
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return EINVAL;
	mw->context = ibpd->context;
	mw->pd = ibpd;
	mw->type = type;
	mw->rkey = 0x1234ff;
	kernel.mws++;
	return 0;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	kernel.mws--;
	return 0;
}

int ibv_cmd_create_flow(struct ibv_qp *qp, struct ibv_flow *flow_id,
			struct ibv_flow_attr *flow_attr, void *ucmd,
			size_t ucmd_size)
{
	CHECK(!ucmd && !ucmd_size);
	if (flow_attr->port != 1)
		return EINVAL;
	flow_id->context = qp->context;
	kernel.flows++;
	return 0;
}

int ibv_cmd_destroy_flow(struct ibv_flow *flow_id)
{
	if (kernel.destroy_flow_err)
		return kernel.destroy_flow_err;
	kernel.flows--;
	return 0;
}
