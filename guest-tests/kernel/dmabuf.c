// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an exporter of a DMA buffer sees of an importer. There is no device with
 * memory of its own in the guests, so this is the exporter.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " KBUILD_BASENAME ": " fmt

#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <linux/fcntl.h>
#include <linux/slab.h>

#include "bench.h"
#include "cases.h"

MODULE_INFO(import_ns, "DMA_BUF");

/* No hints of how the memory is to be reached, which there are since 6.18. */
#ifdef RHCA_REG_MR_HAS_DMAH
#define NO_DMAH NULL,
#else
#define NO_DMAH
#endif

struct exporter {
	struct page *page;
	bool peer2peer;		/* of who has attached last */
	int attached, pinned, mapped;
	bool released;
};

static int exporter_attach(struct dma_buf *buf,
			   struct dma_buf_attachment *attach)
{
	struct exporter *e = buf->priv;

	e->peer2peer = attach->peer2peer;
	e->attached++;
	return 0;
}

static void exporter_detach(struct dma_buf *buf,
			    struct dma_buf_attachment *attach)
{
	struct exporter *e = buf->priv;

	e->attached--;
}

static int exporter_pin(struct dma_buf_attachment *attach)
{
	struct exporter *e = attach->dmabuf->priv;

	e->pinned++;
	return 0;
}

static void exporter_unpin(struct dma_buf_attachment *attach)
{
	struct exporter *e = attach->dmabuf->priv;

	e->pinned--;
}

static struct sg_table *exporter_map(struct dma_buf_attachment *attach,
				     enum dma_data_direction direction)
{
	struct exporter *e = attach->dmabuf->priv;
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(table, &e->page, 1, 0, PAGE_SIZE,
					GFP_KERNEL);
	if (err)
		goto free;
	err = dma_map_sgtable(attach->dev, table, direction, 0);
	if (err)
		goto table;
	e->mapped++;
	return table;

table:
	sg_free_table(table);
free:
	kfree(table);
	return ERR_PTR(err);
}

static void exporter_unmap(struct dma_buf_attachment *attach,
			   struct sg_table *table,
			   enum dma_data_direction direction)
{
	struct exporter *e = attach->dmabuf->priv;

	dma_unmap_sgtable(attach->dev, table, direction, 0);
	sg_free_table(table);
	kfree(table);
	e->mapped--;
}

static void exporter_release(struct dma_buf *buf)
{
	struct exporter *e = buf->priv;

	e->released = true;
}

static const struct dma_buf_ops exporter_ops = {
	.attach = exporter_attach,
	.detach = exporter_detach,
	.pin = exporter_pin,
	.unpin = exporter_unpin,
	.map_dma_buf = exporter_map,
	.unmap_dma_buf = exporter_unmap,
	.release = exporter_release,
};

/* As uverbs does for a process. */
static int import(struct bench *b, struct exporter *e, int fd)
{
	const struct ib_device_ops *ops = &b->dev->ops;
	struct ib_mr *mr;

	mr = ops->reg_user_mr_dmabuf(b->pd, 0, PAGE_SIZE, 0, fd,
				     IB_ACCESS_LOCAL_WRITE, NO_DMAH NULL);
	CHECK(!IS_ERR(mr));
	mr->device = b->dev;
	mr->pd = b->pd;
	CHECK(e->attached == 1 && e->pinned && e->mapped == 1);
	CHECK(!e->peer2peer);
	CHECK(!ops->dereg_mr(mr, NULL));
	CHECK(!e->attached && !e->pinned && !e->mapped);
	return 0;
}

/*
 * The card reaches RAM alone: an exporter is not to leave the memory in a device
 * of its own, and has it pinned while the region is there.
 */
int test_dmabuf_exporter(struct bench *b)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct exporter e = {};
	struct dma_buf *buf;
	int fd;

	e.page = alloc_page(GFP_KERNEL);
	CHECK(e.page);
	info.ops = &exporter_ops;
	info.size = PAGE_SIZE;
	info.flags = O_RDWR;
	info.priv = &e;
	buf = dma_buf_export(&info);
	CHECK(!IS_ERR(buf));
	fd = dma_buf_fd(buf, O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!import(b, &e, fd));
	get_dma_buf(buf);
	CHECK(!close_fd(fd));
	CHECK(!e.released);
	dma_buf_put(buf);
	__free_page(e.page);
	return 0;
}
