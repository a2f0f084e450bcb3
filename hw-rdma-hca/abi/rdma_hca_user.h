/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca uverbs ABI: what the kernel driver and the provider exchange.
 *
 * Keep structures a multiple of 8 bytes, with no implicit padding. A structure
 * may grow at its end. The kernel refuses reserved fields, bits of comp_mask
 * and bytes behind a request that are not 0 and that it does not know; in a
 * response, bits of comp_mask say which later fields are there.
 */
#ifndef RDMA_HCA_USER_H
#define RDMA_HCA_USER_H

#include "rdma_hca_types.h"

#define RDMA_HCA_UVERBS_ABI_VERSION	3

/* @comp_mask of alloc_ucontext. */
#define RDMA_HCA_UCONTEXT_NULL_MR	(1u << 0)	/* @null_key */

/*
 * Besides uverbs' own attributes of UVERBS_METHOD_QUERY_CONTEXT: a structure
 * rdma_hca_alloc_ucontext_resp, for who imports a context.
 */
#define RDMA_HCA_ATTR_QUERY_CONTEXT_RESP	(1u << 12)

/*
 * Besides uverbs' own attributes of UVERBS_METHOD_DM_ALLOC, and of a method of
 * our own on UVERBS_OBJECT_DM, for who imports device memory: a structure
 * rdma_hca_dm_resp.
 */
#define RDMA_HCA_ATTR_ALLOC_DM_RESP		(1u << 12)
enum {
	RDMA_HCA_METHOD_DM_QUERY = 1u << 12,
};
#define RDMA_HCA_ATTR_DM_QUERY_HANDLE		(1u << 12)
#define RDMA_HCA_ATTR_DM_QUERY_RESP		((1u << 12) + 1)

/* @comp_mask: what the provider knows; the response has what both know. */
struct rdma_hca_alloc_ucontext_req {
	__u32 comp_mask;
	__u32 reserved;
};

struct rdma_hca_alloc_ucontext_resp {
	__aligned_u64 uar_mmap_key;	/* offset to mmap() the UAR page */
	__u32 uar_index;
	__u32 num_qps;			/* power of two */
	__u32 max_send_wqe_size;	/* bytes */
	__u32 max_inline;		/* bytes */
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 comp_mask;
	__u32 num_srqs;			/* power of two, or 0: there are none */
	__u32 null_key;			/* L_Key without memory, for all PDs */
	__u32 reserved;
};

struct rdma_hca_alloc_pd_resp {
	__u32 pdn;
	__u32 comp_mask;
};

/* Buffers are page aligned; the queue fills the buffer. */
struct rdma_hca_create_cq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 ci_db_addr;	/* 32-bit record, see rdma_hca_cqc */
	__u32 comp_mask;
	__u32 reserved;
};

struct rdma_hca_create_cq_resp {
	__u32 cqn;
	__u32 entries;			/* size of the ring, power of two */
	__u32 comp_mask;
	__u32 reserved;
};

struct rdma_hca_resize_cq_req {
	__aligned_u64 buf_addr;
	__u32 comp_mask;
	__u32 reserved;
};

struct rdma_hca_create_qp_req {
	__aligned_u64 sq_addr;
	__aligned_u64 rq_addr;		/* 0 with an empty receive queue */
	__aligned_u64 rq_db_addr;	/* 32-bit record, posted count in 15:0 */
	__u32 sq_len;			/* bytes */
	__u32 rq_len;			/* bytes */
	__u8 sq_entry_sz_log;
	__u8 rq_entry_sz_log;
	__u16 reserved;
	__u32 comp_mask;
};

struct rdma_hca_create_qp_resp {
	__u32 qpn;
	__u32 comp_mask;
};

struct rdma_hca_create_srq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 db_addr;		/* as rq_db_addr of a QP */
	__u32 len;			/* bytes */
	__u32 entry_sz_log;
	__u32 comp_mask;
	__u32 reserved;
};

struct rdma_hca_create_srq_resp {
	__u32 srqn;
	__u32 comp_mask;
};

/* Only with IBV_SRQ_MAX_WR; the slots are as they were. */
struct rdma_hca_modify_srq_req {
	__aligned_u64 buf_addr;
	__u32 len;			/* bytes: slots times a power of two */
	__u32 comp_mask;
};

/* What the kernel has found out about the address; RoCE only. */
struct rdma_hca_create_ah_resp {
	__u8 dmac[6];
	__u8 hop_limit;
	__u8 reserved;
};

struct rdma_hca_dm_resp {
	__aligned_u64 mmap_key;		/* offset to mmap() its pages */
	__aligned_u64 length;		/* bytes; the pages are filled up */
};

#endif /* RDMA_HCA_USER_H */
