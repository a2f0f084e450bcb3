// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device and port queries, memory regions and windows, and address handles.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma_hca_cxt.h>
#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

int rhca_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr *orig = &attr->orig_attr;
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw_ver;
	int err;

	err = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp,
				       &resp_size);
	if (err)
		return err;
	orig->max_qp_wr = min_t(int, orig->max_qp_wr, RHCA_MAX_WR);
	orig->max_srq_wr = min_t(int, orig->max_srq_wr, RHCA_MAX_WR);
	fw_ver = resp.base.fw_ver;
	snprintf(orig->fw_ver, sizeof(orig->fw_ver), "%" PRIu32 ".%" PRIu32,
		 (uint32_t)(fw_ver >> 32), (uint32_t)fw_ver);
	return 0;
}

int rhca_query_port(struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

int rhca_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values)
{
	struct rhca_context *ctx = to_rctx(context);

	if (!ctx->has_clock)
		return EOPNOTSUPP;
	/* Units of the clock that completions have, whatever a second is. */
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = rhca_read_clock(ctx);
	}
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

struct ibv_mr *rhca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	/* Some kernels call it an invalid argument. */
	if (access & IBV_ACCESS_ON_DEMAND) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

struct ibv_mr *rhca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr,
				    NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

struct ibv_mr *rhca_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_query_mr(pd, vmr, handle);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

void rhca_unimport_mr(struct ibv_mr *ibmr)
{
	free(verbs_get_mr(ibmr));
}

int rhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
				access, pd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

int rhca_dereg_mr(struct verbs_mr *vmr)
{
	/* The kernel has one for all. */
	bool is_null = vmr->mr_type == IBV_MR_TYPE_NULL_MR;
	int err = is_null ? 0 : ibv_cmd_dereg_mr(vmr);

	if (err)
		return err;
	free(vmr);
	return 0;
}

/* Of its keys the local one alone can be used. */
struct ibv_mr *rhca_alloc_null_mr(struct ibv_pd *pd)
{
	uint32_t key = to_rctx(pd->context)->null_key;
	struct verbs_mr *vmr;

	if (!key) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	vmr->mr_type = IBV_MR_TYPE_NULL_MR;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.length = SIZE_MAX;
	vmr->ibv_mr.lkey = key;
	return &vmr->ibv_mr;
}

/* --- memory windows ----------------------------------------------------- */

struct ibv_mw *rhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int err;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	err = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	return mw;
}

int rhca_dealloc_mw(struct ibv_mw *mw)
{
	int err;

	err = ibv_cmd_dealloc_mw(mw);
	if (err)
		return err;
	free(mw);
	return 0;
}

/* --- address handles ---------------------------------------------------- */

void rhca_keep_ah_limits(struct rhca_context *ctx,
			 const struct ibv_port_attr *port)
{
	atomic_store(&ctx->ah_limits,
		     (uint32_t)port->gid_tbl_len << 8 | port->lmc);
}

static bool rhca_ah_fits(struct rhca_context *ctx,
			 const struct ibv_ah_attr *attr)
{
	uint32_t limits = atomic_load(&ctx->ah_limits);

	return !(attr->src_path_bits >> (limits & 0xff)) &&
	       (!attr->is_global || attr->grh.sgid_index < limits >> 8);
}

/* A manager may have given the port more path bits since it was asked. */
static int rhca_check_ah(struct rhca_context *ctx,
			 const struct ibv_ah_attr *attr)
{
	struct ibv_port_attr port = {};
	int err;

	if (attr->sl > 15 || attr->port_num != 1)
		return EINVAL;
	if (rhca_ah_fits(ctx, attr))
		return 0;
	err = rhca_query_port(&ctx->vctx.context, attr->port_num, &port);
	if (err)
		return err;
	rhca_keep_ah_limits(ctx, &port);
	return rhca_ah_fits(ctx, attr) ? 0 : EINVAL;
}

static uint32_t rhca_av_port(const struct ibv_ah_attr *attr)
{
	return FIELD_PREP(RDMA_HCA_UD_PORT, attr->port_num) |
	       FIELD_PREP(RDMA_HCA_UD_SL, attr->sl);
}

/* Programs put more into the flow label than its 20 bits, which count. */
static void rhca_fill_grh(const struct ibv_global_route *grh, uint8_t hop_limit,
			  struct rdma_hca_ud_unit *unit)
{
	unit->port |= htole32(
		RDMA_HCA_UD_GRH | FIELD_PREP(RDMA_HCA_UD_HOP_LIMIT, hop_limit) |
		FIELD_PREP(RDMA_HCA_UD_SGID_INDEX, grh->sgid_index));
	unit->flow =
		htole32(FIELD_PREP(RDMA_HCA_QPC_TCLASS, grh->traffic_class) |
			FIELD_PREP(RDMA_HCA_QPC_FLOW_LABEL, grh->flow_label));
	memcpy(unit->dgid, grh->dgid.raw, sizeof(unit->dgid));
}

/*
 * The address vector (interface document 3.4.4) is all that there is. The
 * source is the port's LID, whatever it is, with the path bits.
 */
static int rhca_init_ib_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr,
			   struct rhca_ah *ah)
{
	struct rdma_hca_ud_unit *unit = &ah->unit;
	int err;

	err = rhca_check_ah(to_rctx(pd->context), attr);
	if (err)
		return err;
	unit->port = htole32(rhca_av_port(attr));
	unit->dlid_slid = htole32(
		FIELD_PREP(RDMA_HCA_UD_DLID, attr->dlid) |
		FIELD_PREP(RDMA_HCA_UD_PATH_BITS, attr->src_path_bits));
	if (attr->is_global)
		rhca_fill_grh(&attr->grh, attr->grh.hop_limit, unit);
	return 0;
}

/* The kernel asks the network for the MAC, and the routes for the hop limit. */
static int rhca_init_roce_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr,
			     struct rhca_ah *ah)
{
	struct rdma_hca_ud_unit *unit = &ah->unit;
	struct rhca_create_ah_resp resp = {};
	const uint8_t *mac = resp.drv.dmac;
	int err;

	if (!attr->is_global || attr->sl > 15)
		return EINVAL;
	err = ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.core,
				sizeof(resp));
	if (err)
		return err;
	ah->in_kernel = true;
	unit->port = htole32(rhca_av_port(attr));
	unit->dlid_slid =
		htole32(FIELD_PREP(RDMA_HCA_UD_DLID, mac[4] << 8 | mac[5]));
	unit->dmac_h2 = htole32((uint32_t)mac[0] << 24 | mac[1] << 16 |
				mac[2] << 8 | mac[3]);
	rhca_fill_grh(&attr->grh, resp.drv.hop_limit, unit);
	return 0;
}

/* The card has no object for it: it goes into each WQE. */
struct ibv_ah *rhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rhca_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	err = to_rctx(pd->context)->is_roce ? rhca_init_roce_ah(pd, attr, ah) :
					      rhca_init_ib_ah(pd, attr, ah);
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	return &ah->ibv_ah;
}

int rhca_destroy_ah(struct ibv_ah *ibah)
{
	struct rhca_ah *ah = to_rah(ibah);
	int err = ah->in_kernel ? ibv_cmd_destroy_ah(ibah) : 0;

	if (!err)
		free(ah);
	return err;
}
