/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Commands and responses as the kernel sees them: those of uverbs, followed
 * by the driver's own part (abi/rdma_hca_user.h).
 */
#ifndef RHCA_UVERBS_H
#define RHCA_UVERBS_H

#include <assert.h>
#include <stddef.h>

#include <infiniband/kern-abi.h>

#include <rdma_hca_user.h>

#include "compat.h"

#define RHCA_DECLARE(_name, _core, _drv)                                       \
	struct _name {                                                         \
		_core core;                                                    \
		_drv drv;                                                      \
	};                                                                     \
	static_assert(offsetof(struct _name, drv) == sizeof(_core) &&          \
			      sizeof(struct _name) ==                          \
				      sizeof(_core) + sizeof(_drv),            \
		      "padding in " #_name)

RHCA_DECLARE(rhca_alloc_context_cmd, struct ibv_get_context,
	     struct rdma_hca_alloc_ucontext_req);
RHCA_DECLARE(rhca_alloc_context_resp, struct ib_uverbs_get_context_resp,
	     struct rdma_hca_alloc_ucontext_resp);
RHCA_DECLARE(rhca_alloc_pd_resp, struct ib_uverbs_alloc_pd_resp,
	     struct rdma_hca_alloc_pd_resp);
RHCA_DECLARE(rhca_create_cq_cmd, struct ibv_create_cq_ex,
	     struct rdma_hca_create_cq_req);
RHCA_DECLARE(rhca_create_cq_resp, struct ib_uverbs_ex_create_cq_resp,
	     struct rdma_hca_create_cq_resp);
RHCA_DECLARE(rhca_resize_cq_cmd, struct ibv_resize_cq,
	     struct rdma_hca_resize_cq_req);
RHCA_DECLARE(rhca_create_ah_resp, struct ib_uverbs_create_ah_resp,
	     struct rdma_hca_create_ah_resp);
RHCA_DECLARE(rhca_create_qp_cmd, struct ibv_create_qp_ex,
	     struct rdma_hca_create_qp_req);
RHCA_DECLARE(rhca_create_qp_resp, struct ib_uverbs_ex_create_qp_resp,
	     struct rdma_hca_create_qp_resp);
RHCA_DECLARE(rhca_create_srq_cmd, struct ibv_create_xsrq,
	     struct rdma_hca_create_srq_req);
RHCA_DECLARE(rhca_create_srq_resp, struct ib_uverbs_create_srq_resp,
	     struct rdma_hca_create_srq_resp);
RHCA_DECLARE(rhca_modify_srq_cmd, struct ibv_modify_srq,
	     struct rdma_hca_modify_srq_req);

#undef RHCA_DECLARE

#endif /* RHCA_UVERBS_H */
