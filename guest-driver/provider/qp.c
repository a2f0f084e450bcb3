// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: what they are asked for, and their life. What is posted to them
 * is in wr.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

/* --- sizes -------------------------------------------------------------- */

/*
 * Bytes before the inline or data units. An atomic has an atomic_unit more
 * and one data unit: but for XRC that fits the smallest slot.
 */
static uint32_t rhca_send_head_size(enum ibv_qp_type type)
{
	uint32_t next = sizeof(struct rdma_hca_next_unit);
	uint32_t raddr = sizeof(struct rdma_hca_raddr_unit);

	switch (type) {
	case IBV_QPT_UD:
		return next + sizeof(struct rdma_hca_ud_unit);
	case IBV_QPT_RAW_PACKET:
		return next;
	case IBV_QPT_XRC_SEND:
		return next + sizeof(struct rdma_hca_xrc_unit) + raddr +
		       sizeof(struct rdma_hca_atomic_unit);
	default:
		return next + raddr;
	}
}

static uint32_t rhca_inline_size(uint32_t length)
{
	return length ? align(sizeof(__le32) + length, RDMA_HCA_WQE_UNIT) : 0;
}

/* What is asked for within the limits, so no sum here overflows. */
static int rhca_size_sq(const struct rhca_context *ctx, struct rhca_qp *qp,
			enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	uint32_t data = sizeof(struct rdma_hca_data_unit);
	uint32_t head = rhca_send_head_size(type);
	uint32_t size = head + max_t(uint32_t, cap->max_send_sge * data,
				     rhca_inline_size(cap->max_inline_data));
	uint32_t room;

	if (size > ctx->max_send_wqe_size)
		return EINVAL;
	rhca_size_wq(&qp->sq, size, cap->max_send_wr);
	qp->send_limit = min_t(uint32_t, 1u << qp->sq.shift,
			       ctx->max_send_wqe_size);
	room = qp->send_limit - head;
	cap->max_send_wr = qp->sq.entries;
	cap->max_send_sge = min_t(uint32_t, room / data, ctx->max_send_sge);
	cap->max_inline_data = room ? min_t(uint32_t, room - sizeof(__le32),
					    ctx->max_inline) : 0;
	return 0;
}

static int rhca_check_cap(const struct rhca_context *ctx,
			  const struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr > ctx->max_wr || cap->max_recv_wr > ctx->max_wr ||
	    cap->max_send_sge > ctx->max_send_sge ||
	    cap->max_recv_sge > ctx->max_recv_sge ||
	    cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	return 0;
}

/* --- rings -------------------------------------------------------------- */

static void rhca_reset_rings(struct rhca_qp *qp)
{
	if (qp->sq.entries)
		rhca_wq_reset(&qp->sq);
	if (qp->rq.entries) {
		rhca_recv_reset(&qp->rq);
		rhca_store_record(qp->rq_db, 0);
	}
}

static int rhca_alloc_rings(struct rhca_context *ctx, struct rhca_qp *qp)
{
	int err;

	err = rhca_wq_init(&qp->sq, qp->parent, RHCA_RESOURCE_QP);
	if (err)
		return err;
	err = rhca_wq_init(&qp->rq, qp->parent, RHCA_RESOURCE_QP);
	if (err)
		goto sq;
	if (qp->rq.entries) {
		qp->rq_db = rhca_record_alloc(ctx, qp->parent);
		if (!qp->rq_db) {
			err = errno;
			goto rq;
		}
	}
	rhca_reset_rings(qp);
	return 0;

rq:
	rhca_wq_destroy(&qp->rq);
sq:
	rhca_wq_destroy(&qp->sq);
	return err;
}

static void rhca_free_rings(struct rhca_context *ctx, struct rhca_qp *qp)
{
	rhca_record_free(ctx, qp->parent, qp->rq_db);
	rhca_wq_destroy(&qp->rq);
	rhca_wq_destroy(&qp->sq);
}

/* --- create ------------------------------------------------------------- */

static bool rhca_has_type(const struct rhca_context *ctx,
			  enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return true;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return ctx->srqs;
	case IBV_QPT_RAW_PACKET:
		return ctx->is_roce;
	default:
		return false;
	}
}

/* What a QP of its type has to be given. */
static int rhca_check_qp_parts(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? 0 : EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->send_cq ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD))
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return attr->srq ? EINVAL : 0;
	if (attr->srq && to_rsrq(attr->srq)->vsrq.srq_type != IBV_SRQT_BASIC)
		return EINVAL;
	return attr->recv_cq ? 0 : EINVAL;
}

static uint32_t rhca_create_flags(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ?
		       attr->create_flags :
		       0;
}

static int rhca_check_qp_attr(const struct rhca_context *ctx,
			      const struct ibv_qp_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask,
			     IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
				     IBV_QP_INIT_ATTR_CREATE_FLAGS |
				     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (!check_comp_mask(rhca_create_flags(attr),
			     attr->qp_type == IBV_QPT_UD ?
				     IBV_QP_CREATE_BLOCK_SELF_MCAST_LB :
				     0))
		return EOPNOTSUPP;
	if (!rhca_has_type(ctx, attr->qp_type))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    !check_comp_mask(attr->send_ops_flags,
			     rhca_send_ops(ctx, attr->qp_type)))
		return EOPNOTSUPP;
	return rhca_check_qp_parts(attr);
}

/* A receive queue of its own. */
static bool rhca_has_rq(const struct ibv_qp_init_attr_ex *attr)
{
	return !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND &&
	       attr->qp_type != IBV_QPT_XRC_RECV;
}

/* A queue that it does not have of its own cannot be asked for. */
static void rhca_drop_queues(struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		memset(&attr->cap, 0, sizeof(attr->cap));
		attr->srq = NULL;
	} else if (!rhca_has_rq(attr)) {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}
}

/* Lock what CQs it has, perhaps one that is both. */
static void rhca_qp_lock_cqs(struct rhca_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	rhca_lock_cqs(to_rcq(ibqp->send_cq), to_rcq(rhca_has_recv(qp) ?
							    ibqp->recv_cq :
							    ibqp->send_cq));
}

static void rhca_qp_unlock_cqs(struct rhca_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	rhca_unlock_cqs(to_rcq(ibqp->send_cq), to_rcq(rhca_has_recv(qp) ?
							      ibqp->recv_cq :
							      ibqp->send_cq));
}

/* Completions that are left would name the QP's next life, or another QP. */
static void rhca_clean_cqs(struct rhca_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	rhca_clean_cq(to_rcq(ibqp->send_cq), qp);
	if (rhca_has_recv(qp) && ibqp->recv_cq != ibqp->send_cq)
		rhca_clean_cq(to_rcq(ibqp->recv_cq), qp);
}

/*
 * Where a completion finds the QP; of XRC targets, which have none of their own,
 * NULL.
 */
static struct rhca_qp **rhca_qp_place(struct rhca_context *ctx,
				      const struct rhca_qp *qp)
{
	return rhca_has_send(qp) ?
		       &ctx->qps[qp->vqp.qp.qp_num & ctx->qp_mask] :
		       NULL;
}

/* The QP is gone: no completion names it any more. Under table_mutex. */
static void rhca_qp_forget(struct rhca_context *ctx, struct rhca_qp *qp)
{
	struct rhca_qp **place = rhca_qp_place(ctx, qp);

	if (!place || *place != qp)
		return;
	rhca_qp_lock_cqs(qp);
	rhca_clean_cqs(qp);
	*place = NULL;
	rhca_qp_unlock_cqs(qp);
}

/*
 * The kernel may have given the number of a QP that is being destroyed, whose
 * thread waits there until its events are acknowledged.
 */
static void rhca_qp_remember(struct rhca_context *ctx, struct rhca_qp *qp)
{
	struct rhca_qp **place = rhca_qp_place(ctx, qp);

	if (!place)
		return;
	pthread_mutex_lock(&ctx->table_mutex);
	if (*place)
		rhca_qp_forget(ctx, *place);
	*place = qp;
	pthread_mutex_unlock(&ctx->table_mutex);
}

static int rhca_qp_command(struct rhca_context *ctx, struct rhca_qp *qp,
			   struct ibv_qp_init_attr_ex *attr)
{
	struct rhca_create_qp_cmd cmd = {
		.drv.sq_addr = (uintptr_t)qp->sq.buf.addr,
		.drv.rq_addr = (uintptr_t)qp->rq.buf.addr,
		.drv.rq_db_addr = (uintptr_t)qp->rq_db,
		.drv.sq_len = qp->sq.entries << qp->sq.shift,
		.drv.rq_len = qp->rq.entries << qp->rq.shift,
		.drv.sq_entry_sz_log = qp->sq.shift,
		.drv.rq_entry_sz_log = qp->rq.shift,
	};
	struct rhca_create_qp_resp resp = {};
	int err;

	err = ibv_cmd_create_qp_ex2(&ctx->vctx.context, &qp->vqp, attr,
				    &cmd.core, sizeof(cmd), &resp.core,
				    rhca_driver_arg(sizeof(resp), NULL));
	if (!err)
		rhca_qp_remember(ctx, qp);
	return err;
}

static int rhca_qp_init(struct rhca_context *ctx, struct rhca_qp *qp,
			struct ibv_qp_init_attr_ex *attr)
{
	int err;

	rhca_drop_queues(attr);
	err = rhca_check_cap(ctx, &attr->cap);
	if (err)
		return err;
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		err = rhca_size_sq(ctx, qp, attr->qp_type, &attr->cap);
	if (err)
		return err;
	if (rhca_has_rq(attr))
		rhca_size_recv(&qp->rq, &attr->cap.max_recv_wr,
			       &attr->cap.max_recv_sge, ctx->max_recv_sge);
	qp->cap = attr->cap;
	qp->sig_all = attr->sq_sig_all;
	qp->srq = attr->srq ? to_rsrq(attr->srq) : NULL;
	err = rhca_alloc_rings(ctx, qp);
	if (err)
		return err;
	err = rhca_qp_command(ctx, qp, attr);
	if (err)
		rhca_free_rings(ctx, qp);
	return err;
}

struct ibv_qp *rhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct rhca_context *ctx = to_rctx(context);
	struct ibv_qp_init_attr_ex real = {};
	struct rhca_qp *qp;
	int err;

	err = rhca_check_qp_attr(ctx, attr);
	if (err)
		goto fail;
	err = ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto fail;
	/* The caller's structure need not be whole, nor changes on failure. */
	memcpy(&real, attr, offsetof(struct ibv_qp_init_attr_ex, create_flags));
	/* What a target need not have, it need not have set. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		qp->parent = rhca_pd_use(attr->pd);
	real.create_flags = rhca_create_flags(attr);
	err = rhca_qp_init(ctx, qp, &real);
	if (err) {
		rhca_pd_release(qp->parent);
		free(qp);
		goto fail;
	}
	attr->cap = qp->cap;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		rhca_init_qp_ex(qp);
	return &qp->vqp.qp;

fail:
	errno = err;
	return NULL;
}

struct ibv_qp *rhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {};
	struct ibv_qp *ibqp;

	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	ibqp = rhca_create_qp_ex(pd->context, &ex);
	if (ibqp)
		attr->cap = ex.cap;
	return ibqp;
}

/* --- query, modify, destroy --------------------------------------------- */

int rhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct rhca_qp *qp = to_rqp(ibqp);
	struct ibv_query_qp cmd;
	int err;

	err = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
			       sizeof(cmd));
	if (err)
		return err;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	return 0;
}

int rhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask)
{
	struct rhca_qp *qp = to_rqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int err;

	err = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (err)
		return err;
	if ((attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET &&
	    rhca_has_send(qp)) {
		rhca_qp_lock_cqs(qp);
		rhca_clean_cqs(qp);
		rhca_reset_rings(qp);
		rhca_qp_unlock_cqs(qp);
	}
	return 0;
}

int rhca_destroy_qp(struct ibv_qp *ibqp)
{
	struct rhca_context *ctx = to_rctx(ibqp->context);
	struct rhca_qp *qp = to_rqp(ibqp);
	int err;

	/* It waits for whoever has an event of the QP: no lock is held. */
	err = ibv_cmd_destroy_qp(ibqp);
	if (err)
		return err;
	pthread_mutex_lock(&ctx->table_mutex);
	rhca_qp_forget(ctx, qp);
	pthread_mutex_unlock(&ctx->table_mutex);
	rhca_free_rings(ctx, qp);
	rhca_pd_release(qp->parent);
	free(qp);
	return 0;
}

/* --- XRC targets -------------------------------------------------------- */

/* One that another process, or another handle, has made. */
struct ibv_qp *rhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr)
{
	struct rhca_context *ctx = to_rctx(context);
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct rhca_qp *qp;
	int err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	err = rhca_alloc_rings(ctx, qp);
	if (err)
		goto fail;
	err = ibv_cmd_open_qp(context, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		rhca_free_rings(ctx, qp);
		goto fail;
	}
	return &qp->vqp.qp;

fail:
	free(qp);
	errno = err;
	return NULL;
}
