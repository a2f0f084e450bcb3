// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a process has of its own: a UAR page (interface document 3.1.2),
 * which it maps. Its doorbell records are in db.c.
 */
#define UVERBS_MODULE_NAME rdma_hca
#include <rdma/uverbs_named_ioctl.h>

#include "rdma_hca_user.h"

#include "region.h"
#include "uctx.h"
#include "udata.h"

static int rhca_insert_uar(struct rhca_dev *dev, struct rhca_ucontext *ctx)
{
	struct rhca_mmap_entry *entry;
	int err;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	entry->address = pci_resource_start(dev->pdev, RDMA_HCA_BAR2) +
			 (u64)ctx->uar * RDMA_HCA_UAR_PAGE_SIZE;
	err = rhca_mmap_insert(&ctx->ibctx, entry, PAGE_SIZE);
	if (err) {
		kfree(entry);
		return err;
	}
	ctx->uar_entry = &entry->rdma_entry;
	return 0;
}

static void rhca_fill_ucontext_resp(struct rhca_dev *dev,
				    struct rhca_ucontext *ctx,
				    struct rdma_hca_alloc_ucontext_resp *resp)
{
	resp->uar_mmap_key = rdma_user_mmap_get_offset(ctx->uar_entry);
	resp->uar_index = ctx->uar;
	resp->num_qps = 1u << dev->caps.log_qps;
	resp->max_send_wqe_size = dev->caps.max_send_wqe_size;
	resp->max_inline = dev->caps.max_inline;
	resp->max_send_sge = dev->caps.max_send_sge;
	resp->max_recv_sge = dev->caps.max_recv_sge;
	resp->num_srqs = rhca_has_srqs(dev) ? 1u << dev->caps.log_srqs : 0;
	if (resp->comp_mask & RDMA_HCA_UCONTEXT_NULL_MR)
		resp->null_key = dev->null_mr->key;
}

/* What driver and card know. */
static u32 rhca_known_parts(const struct rhca_dev *dev)
{
	return dev->null_mr ? RDMA_HCA_UCONTEXT_NULL_MR : 0;
}

/* And the provider, too. */
static int rhca_negotiate(const struct rhca_dev *dev, struct ib_udata *udata,
			  u32 *comp_mask)
{
	struct rdma_hca_alloc_ucontext_req req;
	int err;

	err = rhca_take_request(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.reserved)
		return -EINVAL;
	*comp_mask = req.comp_mask & rhca_known_parts(dev);
	return 0;
}

int rhca_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata)
{
	struct rhca_ucontext *ctx = to_rhca_ucontext(ibctx);
	struct rdma_hca_alloc_ucontext_resp resp = {};
	struct rhca_dev *dev = to_rhca(ibctx->device);
	u32 page;
	int err;

	mutex_init(&ctx->db_lock);
	INIT_LIST_HEAD(&ctx->db_pages);

	err = rhca_negotiate(dev, udata, &resp.comp_mask);
	if (err)
		return err;
	err = rhca_bitmap_alloc(&dev->uar_map, &page, NULL);
	if (err)
		return err;
	ctx->uar = page * RHCA_UARS_PER_PAGE;
	err = rhca_insert_uar(dev, ctx);
	if (err)
		goto free;
	rhca_fill_ucontext_resp(dev, ctx, &resp);
	err = rhca_respond(udata, &resp, sizeof(resp));
	if (err)
		goto remove;
	return 0;

remove:
	rdma_user_mmap_entry_remove(ctx->uar_entry);
free:
	rhca_bitmap_free(&dev->uar_map, page, 1);
	return err;
}

void rhca_dealloc_ucontext(struct ib_ucontext *ibctx)
{
	struct rhca_ucontext *ctx = to_rhca_ucontext(ibctx);

	rdma_user_mmap_entry_remove(ctx->uar_entry);
	rhca_bitmap_free(&to_rhca(ibctx->device)->uar_map,
			 ctx->uar / RHCA_UARS_PER_PAGE, 1);
}

/* For a process that another one has given the context to. */
int rhca_query_ucontext(struct ib_ucontext *ibctx,
			struct uverbs_attr_bundle *attrs)
{
	struct rdma_hca_alloc_ucontext_resp resp = {};
	struct rhca_dev *dev = to_rhca(ibctx->device);

	resp.comp_mask = rhca_known_parts(dev);
	rhca_fill_ucontext_resp(dev, to_rhca_ucontext(ibctx), &resp);
	return uverbs_copy_to_struct_or_zero(
		attrs, RDMA_HCA_ATTR_QUERY_CONTEXT_RESP, &resp, sizeof(resp));
}

/* The core's method has no place for what a driver says. */
ADD_UVERBS_ATTRIBUTES_SIMPLE(
	rhca_query_context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
	UVERBS_ATTR_PTR_OUT(RDMA_HCA_ATTR_QUERY_CONTEXT_RESP,
			    UVERBS_ATTR_STRUCT(
				    struct rdma_hca_alloc_ucontext_resp,
				    reserved),
			    UA_MANDATORY));

const struct uapi_definition rhca_uctx_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &rhca_query_context),
	{}
};

/* The core takes the mappings away itself; being here allows it to. */
void rhca_disassociate_ucontext(struct ib_ucontext *ibctx)
{
}
