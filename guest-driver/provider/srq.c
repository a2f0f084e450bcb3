// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues and XRC domains. What is posted to them is in wr.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/compiler.h>
#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

static bool rhca_srq_is_xrc(const struct rhca_srq *srq)
{
	return srq->vsrq.srq_type == IBV_SRQT_XRC;
}

/* --- tags --------------------------------------------------------------- */

/* The first ones are taken first. */
static void rhca_tags_add(struct rhca_srq *srq, uint32_t num)
{
	uint32_t tag;

	for (tag = num; tag > srq->num_tags; tag--)
		srq->free_tags[srq->num_free++] = tag - 1;
	srq->num_tags = num;
}

static int rhca_tags_init(struct rhca_srq *srq)
{
	uint32_t num = srq->wq.entries;

	srq->free_tags = calloc(num, sizeof(*srq->free_tags));
	if (!srq->free_tags)
		return ENOMEM;
	rhca_tags_add(srq, num);
	return 0;
}

/* Place for the tags of @num entries; those of a smaller ring are left. */
static int rhca_tags_reserve(struct rhca_srq *srq, uint32_t num)
{
	uint32_t *free_tags;
	uint64_t *wr_id;

	if (num <= srq->num_tags)
		return 0;
	free_tags = realloc(srq->free_tags, num * sizeof(*free_tags));
	if (!free_tags)
		return ENOMEM;
	srq->free_tags = free_tags;
	wr_id = realloc(srq->wq.wr_id, num * sizeof(*wr_id));
	if (!wr_id)
		return ENOMEM;
	srq->wq.wr_id = wr_id;
	return 0;
}

uint64_t rhca_srq_retire(struct rhca_srq *srq, uint32_t tag)
{
	uint64_t wr_id;

	rhca_wq_lock(&srq->wq);
	tag &= srq->num_tags - 1;
	wr_id = srq->wq.wr_id[tag];
	if (likely(srq->num_free < srq->num_tags))
		srq->free_tags[srq->num_free++] = tag;
	rhca_wq_unlock(&srq->wq);
	return wr_id;
}

/* --- create ------------------------------------------------------------- */

static int rhca_check_srq_attr(const struct rhca_context *ctx,
			       const struct ibv_srq_init_attr_ex *attr)
{
	uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	bool is_xrc = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
		      attr->srq_type == IBV_SRQT_XRC;
	uint32_t parts = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (!ctx->srqs || !check_comp_mask(attr->comp_mask, known | parts))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && !is_xrc &&
	    attr->srq_type != IBV_SRQT_BASIC)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) ||
	    (attr->comp_mask & parts) != (is_xrc ? parts : 0))
		return EINVAL;
	if (attr->attr.max_wr > ctx->max_srq_wr ||
	    attr->attr.max_sge > ctx->max_srq_sge)
		return EINVAL;
	return 0;
}

static int rhca_srq_alloc(struct rhca_context *ctx, struct rhca_srq *srq)
{
	int err;

	err = rhca_wq_init(&srq->wq, srq->parent, RHCA_RESOURCE_SRQ);
	if (err)
		return err;
	/* Who polls gives entries back, and need not be who posts. */
	srq->wq.single_threaded = false;
	rhca_recv_reset(&srq->wq);
	err = rhca_tags_init(srq);
	if (err)
		goto ring;
	srq->db = rhca_record_alloc(ctx, srq->parent);
	if (!srq->db) {
		err = errno;
		goto tags;
	}
	return 0;

tags:
	free(srq->free_tags);
ring:
	rhca_wq_destroy(&srq->wq);
	return err;
}

static void rhca_srq_free(struct rhca_context *ctx, struct rhca_srq *srq)
{
	rhca_record_free(ctx, srq->parent, srq->db);
	free(srq->free_tags);
	rhca_wq_destroy(&srq->wq);
}

/*
 * Where a completion finds the SRQ: of XRC alone, as that of any other has a QP.
 * NULL: nowhere.
 */
static struct rhca_srq **rhca_srq_place(struct rhca_context *ctx,
					const struct rhca_srq *srq)
{
	return rhca_srq_is_xrc(srq) ?
		       &ctx->srqs[srq->vsrq.srq_num & ctx->srq_mask] :
		       NULL;
}

/* The SRQ is gone: no completion names it any more. Under table_mutex. */
static void rhca_srq_forget(struct rhca_context *ctx, struct rhca_srq *srq)
{
	struct rhca_srq **place = rhca_srq_place(ctx, srq);

	if (!place || *place != srq)
		return;
	rhca_cq_forget_srq(to_rcq(srq->vsrq.cq), srq, place);
}

/* As with a QP, the number may be that of one that is being destroyed. */
static void rhca_srq_remember(struct rhca_context *ctx, struct rhca_srq *srq)
{
	struct rhca_srq **place = rhca_srq_place(ctx, srq);

	if (!place)
		return;
	pthread_mutex_lock(&ctx->table_mutex);
	if (*place)
		rhca_srq_forget(ctx, *place);
	*place = srq;
	pthread_mutex_unlock(&ctx->table_mutex);
}

static int rhca_srq_command(struct rhca_context *ctx, struct rhca_srq *srq,
			    struct ibv_srq_init_attr_ex *attr)
{
	struct rhca_create_srq_cmd cmd = {
		.drv.buf_addr = (uintptr_t)srq->wq.buf.addr,
		.drv.db_addr = (uintptr_t)srq->db,
		.drv.len = srq->wq.entries << srq->wq.shift,
		.drv.entry_sz_log = srq->wq.shift,
	};
	struct rhca_create_srq_resp resp = {};
	int err;

	err = ibv_cmd_create_srq_ex(&ctx->vctx.context, &srq->vsrq, attr,
				    &cmd.core, sizeof(cmd), &resp.core,
				    sizeof(resp));
	if (!err)
		rhca_srq_remember(ctx, srq);
	return err;
}

static int rhca_srq_init(struct rhca_context *ctx, struct rhca_srq *srq,
			 struct ibv_srq_init_attr_ex *attr)
{
	int err;

	attr->attr.max_wr = max_t(uint32_t, attr->attr.max_wr, 1);
	rhca_size_recv(&srq->wq, &attr->attr.max_wr, &attr->attr.max_sge,
		       ctx->max_srq_sge);
	srq->max_sge = attr->attr.max_sge;
	err = rhca_srq_alloc(ctx, srq);
	if (err)
		return err;
	err = rhca_srq_command(ctx, srq, attr);
	if (err)
		rhca_srq_free(ctx, srq);
	return err;
}

struct ibv_srq *rhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	struct rhca_context *ctx = to_rctx(context);
	struct ibv_srq_init_attr_ex real;
	struct rhca_srq *srq;
	int err;

	err = rhca_check_srq_attr(ctx, attr);
	if (err)
		goto fail;
	err = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto fail;
	/* The caller's does not change on failure. */
	real = *attr;
	srq->parent = rhca_pd_use(attr->pd);
	err = rhca_srq_init(ctx, srq, &real);
	if (err) {
		rhca_pd_release(srq->parent);
		free(srq);
		goto fail;
	}
	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	attr->attr.max_wr = srq->wq.entries;
	attr->attr.max_sge = srq->max_sge;
	return &srq->vsrq.srq;

fail:
	errno = err;
	return NULL;
}

struct ibv_srq *rhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_srq *ibsrq = rhca_create_srq_ex(pd->context, &ex);

	if (ibsrq)
		attr->attr = ex.attr;
	return ibsrq;
}

/* --- query, modify, destroy --------------------------------------------- */

/*
 * The card goes on in @ring, where what is posted is by then; it may take from
 * either while the command is on its way. Under the lock.
 */
static int rhca_srq_move(struct rhca_srq *srq, struct rhca_wq *ring,
			 struct ibv_srq_attr *attr, int attr_mask)
{
	struct rhca_modify_srq_cmd cmd = {
		.drv.buf_addr = (uintptr_t)ring->buf.addr,
		.drv.len = ring->entries << ring->shift,
	};
	uint32_t posted = min_t(uint32_t, srq->wq.entries, ring->entries);
	struct rhca_buf old = srq->wq.buf;
	int err;

	if (srq->num_tags - srq->num_free > ring->entries)
		return EINVAL;
	err = rhca_tags_reserve(srq, ring->entries);
	if (err)
		return err;
	rhca_recv_copy(&srq->wq, ring, posted);
	err = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, attr_mask, &cmd.core,
				 sizeof(cmd));
	if (err)
		return err;
	srq->wq.buf = ring->buf;
	srq->wq.entries = ring->entries;
	if (ring->entries > srq->num_tags)
		rhca_tags_add(srq, ring->entries);
	ring->buf = old;
	return 0;
}

static int rhca_resize_srq(struct rhca_srq *srq, struct ibv_srq_attr *attr,
			   int attr_mask)
{
	struct rhca_context *ctx = to_rctx(srq->vsrq.srq.context);
	struct rhca_wq ring = { .shift = srq->wq.shift };
	int err;

	if (!attr->max_wr || attr->max_wr > ctx->max_srq_wr)
		return EINVAL;
	ring.entries = roundup_pow_of_two(attr->max_wr);
	err = rhca_buf_alloc(&ring.buf, (size_t)ring.entries << ring.shift,
			     srq->parent, RHCA_RESOURCE_SRQ);
	if (err)
		return err;
	rhca_recv_reset(&ring);
	rhca_wq_lock(&srq->wq);
	err = rhca_srq_move(srq, &ring, attr, attr_mask);
	rhca_wq_unlock(&srq->wq);
	rhca_buf_free(&ring.buf);
	return err;
}

int rhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		    int attr_mask)
{
	struct ibv_modify_srq cmd;

	if (attr_mask & IBV_SRQ_MAX_WR)
		return rhca_resize_srq(to_rsrq(ibsrq), attr, attr_mask);
	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int rhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int rhca_destroy_srq(struct ibv_srq *ibsrq)
{
	struct rhca_context *ctx = to_rctx(ibsrq->context);
	struct rhca_srq *srq = to_rsrq(ibsrq);
	int err;

	/* It waits for whoever has an event of the SRQ: no lock is held. */
	err = ibv_cmd_destroy_srq(ibsrq);
	if (err)
		return err;
	pthread_mutex_lock(&ctx->table_mutex);
	rhca_srq_forget(ctx, srq);
	pthread_mutex_unlock(&ctx->table_mutex);
	rhca_srq_free(ctx, srq);
	rhca_pd_release(srq->parent);
	free(srq);
	return 0;
}

/* Only a peer's XRC needs it. */
int rhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	struct rhca_srq *srq = to_rsrq(ibsrq);

	if (!rhca_srq_is_xrc(srq))
		return EINVAL;
	*srq_num = srq->vsrq.srq_num;
	return 0;
}

/* --- XRC domains -------------------------------------------------------- */

struct ibv_xrcd *rhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct ibv_open_xrcd cmd;
	struct verbs_xrcd *xrcd;
	int err;

	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	err = ibv_cmd_open_xrcd(context, xrcd, sizeof(*xrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(xrcd);
		errno = err;
		return NULL;
	}
	return &xrcd->xrcd;
}

int rhca_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int err;

	err = ibv_cmd_close_xrcd(xrcd);
	if (!err)
		free(xrcd);
	return err;
}
