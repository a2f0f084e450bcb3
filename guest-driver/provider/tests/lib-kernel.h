/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel: answers the uverbs commands that libibverbs would send to it.
 */
#ifndef LIB_KERNEL_H
#define LIB_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>

#include <rdma_hca_user.h>

/* Device memory has one handle; it is in the second page of a file. */
#define DM_HANDLE 9
#define DM_PAGE 4096

struct kernel {
	/* the numbers that it gives next */
	uint32_t next_qpn;
	uint32_t next_cqn;
	uint32_t next_srqn;
	/* what it was asked last */
	struct rdma_hca_create_qp_req qp_req;
	uint32_t create_flags;
	struct rdma_hca_create_cq_req cq_req;
	struct rdma_hca_create_srq_req srq_req;
	struct rdma_hca_modify_srq_req modify_srq_req;
	size_t modify_srq_size;
	uint64_t resize_addr;
	struct ibv_modify_cq_attr modify_cq;
	struct ibv_alloc_dm_attr dm_attr;
	uint64_t dm_length;
	unsigned int dm_mr_access;
	/* errors that it is to answer; 0: none */
	int create_cq_err;
	int modify_srq_err;
	int create_ah_err;
	int dereg_err;
	int free_dm_err;
	int destroy_flow_err;
	/* of the port, 0: 1; and how often it was asked */
	uint8_t lmc;
	unsigned int port_queries;
	/* how many it has of them */
	int ahs;
	int mws;
	int dms;
	int flows;
	/* called in the middle of RESIZE_CQ, as the card works on */
	void (*on_resize)(void);
	/*
	 * called when a QP or SRQ is gone, and its destroyer waits for somebody
	 * to acknowledge its events
	 */
	void (*on_destroy)(void);
};

extern struct kernel kernel;

#endif /* LIB_KERNEL_H */
