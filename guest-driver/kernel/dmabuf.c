// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of another device's driver, or of the system, by a file. The card has
 * no page faults, so the exporter has to pin it; and it reaches RAM alone, so
 * that an exporter is told not to leave it in a device of its own (which
 * ib_umem_dmabuf_get_pinned() would let it do).
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>

#include "mr.h"

MODULE_INFO(import_ns, "DMA_BUF");

/* It is pinned, and does not move. */
static void rhca_dmabuf_move(struct dma_buf_attachment *attach)
{
}

static const struct dma_buf_attach_ops rhca_dmabuf_ops = {
	.allow_peer2peer = false,
	.invalidate_mappings = rhca_dmabuf_move,
};

/* With the reservation's lock. What is pinned is unpinned by its release. */
static int rhca_dmabuf_map(struct ib_umem_dmabuf *dmabuf)
{
	int err = dma_buf_pin(dmabuf->attach);

	if (err)
		return err;
	dmabuf->pinned = 1;
	return ib_umem_dmabuf_map_pages(dmabuf);
}

struct ib_umem *rhca_dmabuf_pin(struct ib_device *ibdev, u64 offset, u64 length,
				int fd, int access)
{
	struct ib_umem_dmabuf *dmabuf;
	struct dma_resv *resv;
	int err;

	dmabuf = ib_umem_dmabuf_get(ibdev, offset, length, fd, access,
				    &rhca_dmabuf_ops);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	resv = dmabuf->attach->dmabuf->resv;
	dma_resv_lock(resv, NULL);
	err = rhca_dmabuf_map(dmabuf);
	dma_resv_unlock(resv);
	if (!err)
		return &dmabuf->umem;
	ib_umem_release(&dmabuf->umem);
	return ERR_PTR(err);
}
