// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Thread domains and parent domains. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-kernel.h"
#include "lib-objects.h"

static struct {
	int live;
	int calls;
	int fail_at; /* the call that gets no memory */
	bool odd; /* a byte off */
	bool use_default;
} memory;

static void *domain_alloc(struct ibv_pd *ibpd, void *pd_context, size_t size,
			  size_t alignment, uint64_t resource_type)
{
	uint8_t *p;

	CHECK(pd_context == &memory);
	CHECK(resource_type >= RHCA_RESOURCE_QP &&
	      resource_type <= RHCA_RESOURCE_SRQ);
	if (++memory.calls == memory.fail_at)
		return NULL;
	if (memory.use_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (posix_memalign((void **)&p, alignment, size + alignment))
		return NULL;
	memset(p, 0, size + alignment);
	memory.live++;
	return p + memory.odd;
}

static void domain_free(struct ibv_pd *ibpd, void *pd_context, void *ptr,
			uint64_t resource_type)
{
	CHECK(pd_context == &memory);
	memory.live--;
	free((uint8_t *)ptr - memory.odd);
}

static struct ibv_pd *new_parent(struct ibv_td *td, bool allocators)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.td = td,
		.comp_mask =
			allocators ?
				IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
					IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT :
				0,
		.alloc = domain_alloc,
		.free = domain_free,
		.pd_context = &memory,
	};

	memset(&memory, 0, sizeof(memory));
	return rhca_alloc_parent_domain(&ctx.vctx.context, &attr);
}

void test_domains(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = rhca_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *parent = new_parent(td, false);

	CHECK_EQ(parent->handle, pd->handle);
	CHECK(parent->context == pd->context);
	/* Each stays while another one is made of it. */
	CHECK_EQ(rhca_dealloc_td(td), EBUSY);
	CHECK_EQ(rhca_dealloc_pd(pd), EBUSY);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
	CHECK_EQ(rhca_dealloc_td(td), 0);
	td_attr.comp_mask = 1;
	CHECK_FAILS(rhca_alloc_td(&ctx.vctx.context, &td_attr), EOPNOTSUPP);
}

static void check_bad_parent(struct ibv_parent_domain_init_attr attr, int err)
{
	CHECK_FAILS(rhca_alloc_parent_domain(&ctx.vctx.context, &attr), err);
}

void test_bad_domains(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = domain_alloc,
	};
	struct ibv_pd *parent = new_parent(NULL, false);

	check_bad_parent(attr, EINVAL);
	attr.alloc = NULL;
	attr.free = domain_free;
	check_bad_parent(attr, EINVAL);
	attr.comp_mask = 1 << 2;
	check_bad_parent(attr, EOPNOTSUPP);
	attr.comp_mask = 0;
	attr.pd = NULL;
	check_bad_parent(attr, EINVAL);
	attr.pd = parent;
	check_bad_parent(attr, EINVAL);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
}

static struct ibv_cq_ex *domain_cq(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};

	return rhca_create_cq_ex(&ctx.vctx.context, &attr);
}

static struct ibv_qp *domain_qp(struct ibv_pd *parent, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = small_cap,
		.qp_type = IBV_QPT_RC,
	};

	return rhca_create_qp(parent, &attr);
}

/* Queues and records lie in the application's memory, all or none of it. */
void test_allocators(void)
{
	struct ibv_pd *parent = new_parent(NULL, true);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(domain_cq(parent));
	struct ibv_qp *qp = domain_qp(parent, cq);
	int i;

	CHECK_EQ(memory.live, 5);
	CHECK_EQ(kernel.cq_req.buf_addr % 4096, 0);
	CHECK(list_empty(&ctx.db_pages));
	CHECK_EQ(rhca_dealloc_pd(parent), EBUSY);
	CHECK_EQ(rhca_resize_cq(cq, 64), 0);
	CHECK_EQ(memory.live, 5);
	CHECK_EQ(rhca_destroy_qp(qp), 0);
	for (i = 1; i <= 3; i++) {
		memory.fail_at = memory.calls + i;
		CHECK_FAILS(domain_qp(parent, cq), ENOMEM);
		CHECK_EQ(memory.live, 2);
	}
	CHECK_EQ(rhca_destroy_cq(cq), 0);
	for (i = 1; i <= 2; i++) {
		memory.fail_at = memory.calls + i;
		CHECK_FAILS(domain_cq(parent), ENOMEM);
	}
	kernel.create_cq_err = EMFILE;
	CHECK_FAILS(domain_cq(parent), EMFILE);
	kernel.create_cq_err = 0;
	memory.odd = true;
	CHECK_FAILS(domain_cq(parent), EINVAL);
	memory.odd = false;
	CHECK_EQ(memory.live, 0);

	memory.use_default = true;
	cq = ibv_cq_ex_to_cq(domain_cq(parent));
	qp = domain_qp(parent, cq);
	CHECK_EQ(memory.live, 0);
	CHECK(!list_empty(&ctx.db_pages));
	CHECK_EQ(rhca_destroy_qp(qp), 0);
	CHECK_EQ(rhca_destroy_cq(cq), 0);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
}

/* In a thread domain nobody waits for a lock, not even one that is taken. */
void test_thread_domain(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = rhca_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *parent = new_parent(td, false);
	struct ibv_cq_ex *ex = domain_cq(parent);
	struct rhca_cq *cq = to_rcq_ex(ex);
	struct rhca_qp *qp = to_rqp(domain_qp(parent, &cq->vcq.cq));
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_wc wc;

	qp->vqp.qp.state = IBV_QPS_RTS;
	pthread_spin_lock(&cq->lock);
	pthread_spin_lock(&qp->sq.lock);
	pthread_spin_lock(&qp->rq.lock);
	CHECK_EQ(post_nop_sends(qp, 1, 9), 0);
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &recv, &bad), 0);
	produce(cq, 0, make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.wr_id, 9);
	CHECK_EQ(rhca_destroy_qp(&qp->vqp.qp), 0);
	CHECK_EQ(rhca_destroy_cq(&cq->vcq.cq), 0);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
	CHECK_EQ(rhca_dealloc_td(td), 0);
}
