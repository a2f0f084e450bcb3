// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider for libibverbs: which device it serves, and what a process
 * has of it (a UAR page, interface document 3.1.2).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

static void rhca_free_context(struct ibv_context *context)
{
	struct rhca_context *ctx = to_rctx(context);

	munmap(ctx->uar, RDMA_HCA_UAR_PAGE_SIZE);
	pthread_mutex_destroy(&ctx->db_mutex);
	pthread_mutex_destroy(&ctx->table_mutex);
	free(ctx->srqs);
	free(ctx->qps);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static const struct verbs_context_ops rhca_context_ops = {
	.alloc_dm = rhca_alloc_dm,
	.alloc_mw = rhca_alloc_mw,
	.alloc_null_mr = rhca_alloc_null_mr,
	.alloc_parent_domain = rhca_alloc_parent_domain,
	.alloc_pd = rhca_alloc_pd,
	.alloc_td = rhca_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = rhca_bind_mw,
	.close_xrcd = rhca_close_xrcd,
	.create_ah = rhca_create_ah,
	.create_cq = rhca_create_cq,
	.create_cq_ex = rhca_create_cq_ex,
	.create_flow = rhca_create_flow,
	.create_qp = rhca_create_qp,
	.create_qp_ex = rhca_create_qp_ex,
	.create_srq = rhca_create_srq,
	.create_srq_ex = rhca_create_srq_ex,
	.dealloc_mw = rhca_dealloc_mw,
	.dealloc_pd = rhca_dealloc_pd,
	.dealloc_td = rhca_dealloc_td,
	.dereg_mr = rhca_dereg_mr,
	.destroy_ah = rhca_destroy_ah,
	.destroy_cq = rhca_destroy_cq,
	.destroy_flow = rhca_destroy_flow,
	.destroy_qp = rhca_destroy_qp,
	.destroy_srq = rhca_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = rhca_free_context,
	.free_dm = rhca_free_dm,
	.get_srq_num = rhca_get_srq_num,
	.import_dm = rhca_import_dm,
	.import_mr = rhca_import_mr,
	.import_pd = rhca_import_pd,
	.modify_cq = rhca_modify_cq,
	.modify_qp = rhca_modify_qp,
	.modify_srq = rhca_modify_srq,
	.open_qp = rhca_open_qp,
	.open_xrcd = rhca_open_xrcd,
	.poll_cq = rhca_poll_cq,
	.post_recv = rhca_post_recv,
	.post_send = rhca_post_send,
	.post_srq_recv = rhca_post_srq_recv,
	.query_device_ex = rhca_query_device_ex,
	.query_port = rhca_query_port,
	RHCA_PORT_SPEED_OP
	.query_qp = rhca_query_qp,
	.query_srq = rhca_query_srq,
	.query_rt_values = rhca_query_rt_values,
	.reg_dm_mr = rhca_reg_dm_mr,
	.reg_dmabuf_mr = rhca_reg_dmabuf_mr,
	.reg_mr = rhca_reg_mr,
	.req_notify_cq = rhca_req_notify_cq,
	.rereg_mr = rhca_rereg_mr,
	.resize_cq = rhca_resize_cq,
	.unimport_dm = rhca_unimport_dm,
	.unimport_mr = rhca_unimport_mr,
	.unimport_pd = rhca_unimport_pd,
};

static int rhca_learn_port(struct rhca_context *ctx)
{
	struct ibv_port_attr port = {};
	int err;

	err = rhca_query_port(&ctx->vctx.context, 1, &port);
	ctx->is_roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	rhca_keep_ah_limits(ctx, &port);
	return err;
}

/* What the device says that it has: the card, and the kernel knows it. */
static uint64_t rhca_missing_ops(uint64_t cap_flags)
{
	uint64_t flush = IB_UVERBS_DEVICE_FLUSH_GLOBAL |
			 IB_UVERBS_DEVICE_FLUSH_PERSISTENT;
	uint64_t missing = 0;

	if ((cap_flags & flush) != flush)
		missing |= IBV_QP_EX_WITH_FLUSH;
	if (!(cap_flags & IB_UVERBS_DEVICE_ATOMIC_WRITE))
		missing |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	return missing;
}

static int rhca_query_limits(struct rhca_context *ctx,
			     const struct rdma_hca_alloc_ucontext_resp *resp)
{
	struct ibv_device_attr_ex attr;
	int err;

	err = ibv_cmd_query_device_any(&ctx->vctx.context, NULL, &attr,
				       sizeof(attr), NULL, NULL);
	if (err)
		return err;
	ctx->has_clock = attr.completion_timestamp_mask != 0;
	ctx->has_dm = attr.max_dm_size != 0;
	ctx->missing_ops = rhca_missing_ops(attr.device_cap_flags_ex);
	ctx->max_cqe = attr.orig_attr.max_cqe;
	ctx->max_wr = min_t(uint32_t, attr.orig_attr.max_qp_wr, RHCA_MAX_WR);
	ctx->max_srq_wr = min_t(uint32_t, attr.orig_attr.max_srq_wr,
				RHCA_MAX_WR);
	ctx->max_srq_sge = min_t(uint32_t, attr.orig_attr.max_srq_sge,
				 RDMA_HCA_MAX_SGE);
	ctx->max_send_wqe_size = min_t(uint32_t, resp->max_send_wqe_size,
				       RDMA_HCA_MAX_SEND_WQE_SIZE);
	ctx->max_inline = resp->max_inline;
	ctx->max_send_sge = resp->max_send_sge;
	ctx->max_recv_sge = min_t(uint32_t, resp->max_recv_sge,
				  RDMA_HCA_MAX_SGE);
	return 0;
}

static bool rhca_is_table_size(uint32_t num)
{
	return num && !(num & (num - 1));
}

static int rhca_alloc_tables(struct rhca_context *ctx,
			     const struct rdma_hca_alloc_ucontext_resp *resp)
{
	if (!rhca_is_table_size(resp->num_qps) ||
	    (resp->num_srqs && !rhca_is_table_size(resp->num_srqs)))
		return EPROTO;
	ctx->qp_mask = resp->num_qps - 1;
	ctx->qps = calloc(resp->num_qps, sizeof(*ctx->qps));
	if (!ctx->qps)
		return ENOMEM;
	if (!resp->num_srqs)
		return 0;
	ctx->srq_mask = resp->num_srqs - 1;
	ctx->srqs = calloc(resp->num_srqs, sizeof(*ctx->srqs));
	if (!ctx->srqs) {
		free(ctx->qps);
		return ENOMEM;
	}
	return 0;
}

static int rhca_init_context(struct rhca_context *ctx, int cmd_fd,
			     const struct rdma_hca_alloc_ucontext_resp *resp)
{
	int err;

	err = rhca_learn_port(ctx);
	if (!err)
		err = rhca_query_limits(ctx, resp);
	if (!err)
		err = rhca_alloc_tables(ctx, resp);
	if (err)
		return err;
	if (resp->comp_mask & RDMA_HCA_UCONTEXT_NULL_MR)
		ctx->null_key = resp->null_key;
	ctx->uar = mmap(NULL, RDMA_HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
			MAP_SHARED, cmd_fd, resp->uar_mmap_key);
	if (ctx->uar == MAP_FAILED) {
		err = errno;
		free(ctx->srqs);
		free(ctx->qps);
		return err;
	}
	pthread_mutex_init(&ctx->table_mutex, NULL);
	pthread_mutex_init(&ctx->db_mutex, NULL);
	list_head_init(&ctx->db_pages);
	return 0;
}

/* The kernel has answered with @err. */
static struct verbs_context *
rhca_finish_context(struct rhca_context *ctx, int cmd_fd,
		    const struct rdma_hca_alloc_ucontext_resp *resp, int err)
{
	if (!err) {
		verbs_set_ops(&ctx->vctx, &rhca_context_ops);
		err = rhca_init_context(ctx, cmd_fd, resp);
	}
	if (err) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = err;
		return NULL;
	}
	return &ctx->vctx;
}

static struct verbs_context *rhca_alloc_context(struct ibv_device *device,
						int cmd_fd, void *private_data)
{
	struct rhca_alloc_context_resp resp = {};
	struct rhca_alloc_context_cmd cmd = {
		.drv.comp_mask = RDMA_HCA_UCONTEXT_NULL_MR,
	};
	struct rhca_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	err = ibv_cmd_get_context(&ctx->vctx, &cmd.core, sizeof(cmd),
				  rhca_fds_arg(NULL) &resp.core, sizeof(resp));
	return rhca_finish_context(ctx, cmd_fd, &resp.drv, err);
}

/* A context of another process: its queues are not known here. */
static struct verbs_context *rhca_import_context(struct ibv_device *device,
						 int cmd_fd)
{
	DECLARE_COMMAND_BUFFER_LINK(driver, UVERBS_OBJECT_DEVICE,
				    UVERBS_METHOD_QUERY_CONTEXT, 1, NULL);
	struct rdma_hca_alloc_ucontext_resp resp = {};
	struct rhca_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	fill_attr_out_ptr(driver, RDMA_HCA_ATTR_QUERY_CONTEXT_RESP, &resp);
	err = ibv_cmd_query_context(&ctx->vctx.context, driver);
	return rhca_finish_context(ctx, cmd_fd, &resp, err);
}

static struct verbs_device *rhca_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void rhca_uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_match_ent rhca_match_table[] = {
	VERBS_PCI_MATCH(RDMA_HCA_PCI_VENDOR_ID, RDMA_HCA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops rhca_device_ops = {
	.name = "rdma_hca",
	.match_min_abi_version = RDMA_HCA_UVERBS_ABI_VERSION,
	.match_max_abi_version = RDMA_HCA_UVERBS_ABI_VERSION,
	.match_table = rhca_match_table,
	.alloc_device = rhca_alloc_device,
	.uninit_device = rhca_uninit_device,
	.alloc_context = rhca_alloc_context,
	.import_context = rhca_import_context,
};

PROVIDER_DRIVER(rdma_hca, rhca_device_ops);
