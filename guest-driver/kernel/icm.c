// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ICM: the host memory in which the card keeps its tables (interface
 * document 1.1, 3.2.2). The driver lays the tables out in the card's address
 * space, one space for contexts and one for the TPT, and gives them memory by
 * MAP_ICM, a chunk when the first entry in it is used. The chunks stay until
 * the card is closed.
 */
#include "card.h"

/* Memory of a chunk, in as few contiguous pieces as there were. */
struct rhca_icm_chunk {
	u32 pages;
	u32 num_pieces;
	struct rhca_icm_piece {
		void *va;
		dma_addr_t dma;
		u32 pages;
	} piece[RHCA_ICM_CHUNK_PAGES];
};

static size_t rhca_icm_bytes(u32 pages)
{
	return (size_t)pages << RDMA_HCA_ICM_PAGE_SHIFT;
}

static void rhca_chunk_free(struct rhca_dev *dev, struct rhca_icm_chunk *chunk)
{
	u32 i;

	for (i = 0; i < chunk->num_pieces; i++)
		dma_free_coherent(&dev->pdev->dev,
				  rhca_icm_bytes(chunk->piece[i].pages),
				  chunk->piece[i].va, chunk->piece[i].dma);
	kfree(chunk);
}

/* Halve the size of the pieces when memory is too fragmented for them. */
static struct rhca_icm_chunk *rhca_chunk_alloc(struct rhca_dev *dev, u32 pages)
{
	struct rhca_icm_chunk *chunk;
	struct rhca_icm_piece *piece;
	u32 try = pages;

	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return NULL;
	while (chunk->pages < pages) {
		try = min(try, pages - chunk->pages);
		piece = &chunk->piece[chunk->num_pieces];
		piece->va = dma_alloc_coherent(&dev->pdev->dev,
					       rhca_icm_bytes(try), &piece->dma,
					       GFP_KERNEL | __GFP_NOWARN);
		if (piece->va) {
			piece->pages = try;
			chunk->pages += try;
			chunk->num_pieces++;
		} else if (try > 1) {
			try /= 2;
		} else {
			rhca_chunk_free(dev, chunk);
			return NULL;
		}
	}
	return chunk;
}

/* A chunk has no more pieces than one MAP_ICM takes. */
static int rhca_chunk_map(struct rhca_dev *dev, u8 kind, u64 virt,
			  const struct rhca_icm_chunk *chunk)
{
	struct rdma_hca_icm_entry *entry;
	struct rhca_mailbox box;
	u32 i;
	int err;

	BUILD_BUG_ON(RHCA_ICM_CHUNK_PAGES > RDMA_HCA_ICM_MAX_ENTRIES);
	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	entry = box.buf;
	for (i = 0; i < chunk->num_pieces; i++) {
		const struct rhca_icm_piece *piece = &chunk->piece[i];
		struct rdma_hca_icm_entry *e = &entry[RDMA_HCA_ICM_SLOT(i)];

		rhca_put64(&e->virt_h, &e->virt_l, virt);
		rhca_put64(&e->page_h, &e->page_l, piece->dma);
		be32p_replace_bits(&e->page_l, piece->pages,
				   RDMA_HCA_ICM_PAGE_NUM);
		virt += rhca_icm_bytes(piece->pages);
	}
	err = rhca_cmd(dev, RDMA_HCA_CMD_MAP_ICM, kind, chunk->num_pieces,
		       box.dma, 0);
	rhca_mailbox_free(dev, &box);
	return err;
}

static u64 rhca_chunk_virt(const struct rhca_icm_table *table, u32 index)
{
	return table->virt + (u64)index * RHCA_ICM_CHUNK_SIZE;
}

static int rhca_chunk_add(struct rhca_dev *dev, struct rhca_icm_table *table,
			  u32 index)
{
	u64 left = table->size - (u64)index * RHCA_ICM_CHUNK_SIZE;
	struct rhca_icm_chunk *chunk;
	int err;

	chunk = rhca_chunk_alloc(dev, min_t(u64, left, RHCA_ICM_CHUNK_SIZE) >>
					      RDMA_HCA_ICM_PAGE_SHIFT);
	if (!chunk)
		return -ENOMEM;
	err = rhca_chunk_map(dev, table->kind, rhca_chunk_virt(table, index),
			     chunk);
	if (err) {
		rhca_chunk_free(dev, chunk);
		return err;
	}
	table->chunk[index] = chunk;
	return 0;
}

int rhca_icm_get(struct rhca_dev *dev, struct rhca_icm_table *table, u32 first,
		 u32 count)
{
	u32 i = div_u64((u64)first * table->entry_size, RHCA_ICM_CHUNK_SIZE);
	u32 last = div_u64(((u64)first + count) * table->entry_size - 1,
			   RHCA_ICM_CHUNK_SIZE);
	int err = 0;

	mutex_lock(&table->lock);
	for (; i <= last && !err; i++)
		if (!table->chunk[i])
			err = rhca_chunk_add(dev, table, i);
	mutex_unlock(&table->lock);
	return err;
}

static int rhca_table_init(struct rhca_icm_table *table, u8 kind, u64 *virt,
			   u32 entry_size, u32 log_num)
{
	mutex_init(&table->lock);
	table->kind = kind;
	table->virt = *virt;
	table->entry_size = entry_size;
	table->size = ALIGN((u64)entry_size << log_num,
			    1u << RDMA_HCA_ICM_PAGE_SHIFT);
	table->num_chunks = DIV_ROUND_UP_ULL(table->size, RHCA_ICM_CHUNK_SIZE);
	table->chunk = kvcalloc(table->num_chunks, sizeof(*table->chunk),
				GFP_KERNEL);
	*virt = ALIGN(*virt + table->size, RHCA_ICM_CHUNK_SIZE);
	return table->chunk ? 0 : -ENOMEM;
}

static void rhca_table_cleanup(struct rhca_dev *dev,
			       struct rhca_icm_table *table)
{
	u32 i;

	if (!table->chunk)
		return;
	for (i = 0; i < table->num_chunks; i++) {
		if (!table->chunk[i])
			continue;
		rhca_cmd_revoke(dev, RDMA_HCA_CMD_UNMAP_ICM, table->kind,
				table->chunk[i]->pages,
				rhca_chunk_virt(table, i));
		rhca_chunk_free(dev, table->chunk[i]);
	}
	kvfree(table->chunk);
	table->chunk = NULL;
}

void rhca_icm_cleanup(struct rhca_dev *dev)
{
	rhca_table_cleanup(dev, &dev->mtt_table);
	rhca_table_cleanup(dev, &dev->mpt_table);
	rhca_table_cleanup(dev, &dev->srqc_table);
	rhca_table_cleanup(dev, &dev->eqc_table);
	rhca_table_cleanup(dev, &dev->cqc_table);
	rhca_table_cleanup(dev, &dev->qpc_table);
}

int rhca_icm_init(struct rhca_dev *dev)
{
	const struct rhca_caps *caps = &dev->caps;
	u64 cxt = 0, tpt = 0;
	int err;

	err = rhca_table_init(&dev->qpc_table, RDMA_HCA_ICM_CXT, &cxt,
			      RDMA_HCA_QPC_SIZE, caps->log_qps);
	if (!err)
		err = rhca_table_init(&dev->cqc_table, RDMA_HCA_ICM_CXT, &cxt,
				      RDMA_HCA_CQC_SIZE, caps->log_cqs);
	if (!err)
		err = rhca_table_init(&dev->eqc_table, RDMA_HCA_ICM_CXT, &cxt,
				      RDMA_HCA_EQC_SIZE, caps->log_eqs);
	if (!err && rhca_has_srqs(dev))
		err = rhca_table_init(&dev->srqc_table, RDMA_HCA_ICM_CXT, &cxt,
				      RDMA_HCA_SRQC_SIZE, caps->log_srqs);
	if (!err)
		err = rhca_table_init(&dev->mpt_table, RDMA_HCA_ICM_TPT, &tpt,
				      RDMA_HCA_MPT_SIZE, caps->log_mpts);
	if (!err)
		err = rhca_table_init(&dev->mtt_table, RDMA_HCA_ICM_TPT, &tpt,
				      RDMA_HCA_MTT_SIZE, caps->log_mtts);
	if (!err && caps->max_icm && cxt + tpt > caps->max_icm) {
		dev_err(&dev->pdev->dev,
			"tables take %llu bytes of ICM, card has %llu\n",
			cxt + tpt, caps->max_icm);
		err = -ENODEV;
	}
	if (err)
		rhca_icm_cleanup(dev);
	return err;
}

static void rhca_put_base(__be32 *high, __be32 *low,
			  const struct rhca_icm_table *table, u8 log_num)
{
	rhca_put64(high, low, table->virt);
	be32p_replace_bits(low, log_num, RDMA_HCA_INIT_LOG_NUM);
}

int rhca_init_hca(struct rhca_dev *dev)
{
	const struct rhca_caps *caps = &dev->caps;
	struct rdma_hca_init_hca *init;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	init = box.buf;
	rhca_put_base(&init->qpc_base_h, &init->qpc_base_l, &dev->qpc_table,
		      caps->log_qps);
	rhca_put_base(&init->cqc_base_h, &init->cqc_base_l, &dev->cqc_table,
		      caps->log_cqs);
	rhca_put_base(&init->eqc_base_h, &init->eqc_base_l, &dev->eqc_table,
		      caps->log_eqs);
	if (rhca_has_srqs(dev))
		rhca_put_base(&init->srqc_base_h, &init->srqc_base_l,
			      &dev->srqc_table, caps->log_srqs);
	rhca_put_base(&init->mpt_base_h, &init->mpt_base_l, &dev->mpt_table,
		      caps->log_mpts);
	/* The MTT table's base has no count in its low bits. */
	rhca_put_base(&init->mtt_base_h, &init->mtt_base_l, &dev->mtt_table, 0);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_INIT_HCA, 0, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}
