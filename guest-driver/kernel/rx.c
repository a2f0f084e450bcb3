// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive rings of the Ethernet function (rdma_hca_eth.h). Buffers are pieces of
 * pages of a pool that stay mapped for the card and come back when Linux has
 * done with a frame.
 */
#include <linux/if_vlan.h>

#include "compat.h"
#include "eth.h"

#define RHCA_REFILL_MS	100
/* In front of a frame. */
#define RHCA_RX_PAD	(NET_SKB_PAD + NET_IP_ALIGN)

static struct rhca_rx_slot *rhca_rx_slot(struct rhca_rx_mem *rx, u16 index)
{
	return &rx->slot[index & (rx->size - 1)];
}

static struct rdma_hca_eth_rx *rhca_rx_desc(struct rhca_rx_mem *rx,
					    u16 index)
{
	return &rx->ring[index & (rx->size - 1)];
}

/* --- buffers ------------------------------------------------------------ */

/* A buffer for the descriptor at the head. */
static bool rhca_rx_add(struct rhca_rx_mem *rx, gfp_t gfp)
{
	struct rdma_hca_eth_rx *desc = rhca_rx_desc(rx, rx->head);
	struct rhca_rx_slot *slot = rhca_rx_slot(rx, rx->head);
	dma_addr_t dma;

	slot->page = page_pool_alloc_frag(rx->pool, &slot->offset,
					  rx->piece_len, gfp);
	if (!slot->page)
		return false;
	dma = page_pool_get_dma_addr(slot->page) + slot->offset + RHCA_RX_PAD;
	memset(desc, 0, sizeof(*desc));
	desc->addr_l = cpu_to_le32(lower_32_bits(dma));
	desc->addr_h = cpu_to_le32(upper_32_bits(dma));
	desc->size = cpu_to_le16(rx->buf_len);
	rx->head++;
	return true;
}

/* Returns false if memory is short. */
static bool rhca_rx_fill(struct rhca_rx_mem *rx, gfp_t gfp)
{
	while ((u16)(rx->head - rx->tail) < rx->size - 1)
		if (!rhca_rx_add(rx, gfp))
			return false;
	return true;
}

static void rhca_rx_refill(struct rhca_queue *queue)
{
	struct rhca_rx_mem *rx = &queue->rx;
	u16 before = rx->head;

	/* With an empty ring there is no interrupt that would try again. */
	if (!rhca_rx_fill(rx, GFP_ATOMIC | __GFP_NOWARN)) {
		rhca_count(&queue->stats.rx_no_memory, 1);
		mod_timer(&queue->refill,
			  jiffies + msecs_to_jiffies(RHCA_REFILL_MS));
	}
	if (rx->head != before)
		rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_RX_TAIL, rx->head);
}

void rhca_rx_refill_timer(struct timer_list *timer)
{
	struct rhca_queue *queue = container_of(timer, struct rhca_queue,
						refill);

	napi_schedule(&queue->napi);
}

/* --- frames ------------------------------------------------------------- */

/* The frame in the buffer at the tail, whose descriptor this is. */
static struct sk_buff *rhca_rx_build(struct rhca_queue *queue,
				     const struct rdma_hca_eth_rx *desc)
{
	const struct rhca_rx_slot *slot = rhca_rx_slot(&queue->rx,
						       queue->rx.tail);
	u16 len = le16_to_cpu(desc->len);
	struct sk_buff *skb;

	if ((desc->done & RDMA_HCA_ETH_ERROR) || len < ETH_HLEN ||
	    len > queue->rx.buf_len)
		return NULL;
	dma_sync_single_range_for_cpu(rhca_eth_dma(queue->eth),
				      page_pool_get_dma_addr(slot->page),
				      slot->offset + RHCA_RX_PAD, len,
				      DMA_FROM_DEVICE);
	skb = napi_build_skb(page_address(slot->page) + slot->offset,
			     queue->rx.piece_len);
	if (!skb)
		return NULL;
	skb_mark_for_recycle(skb);
	skb_reserve(skb, RHCA_RX_PAD);
	skb_put(skb, len);
	return skb;
}

static void rhca_rx_set_hash(struct sk_buff *skb,
			     const struct rdma_hca_eth_rx *desc)
{
	bool ports = !(desc->hash_type &
		       (RDMA_HCA_RSS_IPV4 | RDMA_HCA_RSS_IPV6));

	skb_set_hash(skb, le32_to_cpu(desc->addr_l),
		     ports ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
}

static void rhca_rx_deliver(struct rhca_queue *queue, struct sk_buff *skb,
			    const struct rdma_hca_eth_rx *desc)
{
	struct net_device *ndev = queue->eth->ndev;

	dev_sw_netstats_rx_add(ndev, skb->len);
	rhca_count(&queue->stats.rx_packets, 1);
	rhca_count(&queue->stats.rx_bytes, skb->len);
	if ((desc->flags & RDMA_HCA_ETH_RX_CSUM_OK) &&
	    (ndev->features & NETIF_F_RXCSUM))
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (desc->hash_type && (ndev->features & NETIF_F_RXHASH))
		rhca_rx_set_hash(skb, desc);
	skb_record_rx_queue(skb, queue->index);
	skb->protocol = eth_type_trans(skb, ndev);
	if (skb->pkt_type == PACKET_MULTICAST)
		DEV_STATS_INC(ndev, multicast);
	napi_gro_receive(&queue->napi, skb);
}

static bool rhca_rx_is_over(struct rhca_rx_mem *rx)
{
	if (rx->tail == rx->head ||
	    !(READ_ONCE(rhca_rx_desc(rx, rx->tail)->done) & RDMA_HCA_ETH_DONE))
		return false;
	/* Read the rest only after that. */
	dma_rmb();
	return true;
}

bool rhca_rx_waits(struct rhca_queue *queue)
{
	return rhca_rx_is_over(&queue->rx);
}

static void rhca_rx_one(struct rhca_queue *queue)
{
	struct rhca_rx_mem *rx = &queue->rx;
	const struct rdma_hca_eth_rx *desc = rhca_rx_desc(rx, rx->tail);
	struct sk_buff *skb = rhca_rx_build(queue, desc);

	if (skb) {
		rhca_rx_deliver(queue, skb, desc);
	} else {
		DEV_STATS_INC(queue->eth->ndev, rx_errors);
		page_pool_recycle_direct(rx->pool,
					 rhca_rx_slot(rx, rx->tail)->page);
	}
	rx->tail++;
}

int rhca_rx_clean(struct rhca_queue *queue, int budget)
{
	int frames = 0;

	while (frames < budget && rhca_rx_is_over(&queue->rx)) {
		rhca_rx_one(queue);
		frames++;
	}
	/* Without a budget pages may not be taken from the pool here. */
	if (budget)
		rhca_rx_refill(queue);
	return frames;
}

/* --- its memory --------------------------------------------------------- */

/*
 * What a frame of @buf_len bytes takes of a page: what is left over of it, too, as
 * sockets are charged with the piece.
 */
static u32 rhca_rx_piece_len(u32 buf_len)
{
	u32 least = SKB_DATA_ALIGN(RHCA_RX_PAD + buf_len) +
		    SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	u32 page = PAGE_SIZE << get_order(least);

	return ALIGN_DOWN(page / (page / least), SMP_CACHE_BYTES);
}

static struct page_pool *rhca_rx_pool(struct rhca_eth *eth,
				      const struct rhca_rx_mem *rx)
{
	u32 order = get_order(rx->piece_len);
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV |
			 RHCA_PP_FLAG_FRAG,
		.order = order,
		.pool_size = rx->size,
		.nid = dev_to_node(rhca_eth_dma(eth)),
		.dev = rhca_eth_dma(eth),
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE << order,
	};

	return page_pool_create(&params);
}

void rhca_rx_free(struct rhca_eth *eth, struct rhca_rx_mem *rx)
{
	for (; rx->tail != rx->head; rx->tail++)
		page_pool_put_full_page(rx->pool,
					rhca_rx_slot(rx, rx->tail)->page,
					false);
	page_pool_destroy(rx->pool);
	dma_free_coherent(rhca_eth_dma(eth), rx->size * sizeof(*rx->ring),
			  rx->ring, rx->dma);
	kvfree(rx->slot);
}

static int rhca_rx_alloc_ring(struct rhca_eth *eth, struct rhca_rx_mem *rx)
{
	rx->slot = kvcalloc(rx->size, sizeof(*rx->slot), GFP_KERNEL);
	if (!rx->slot)
		return -ENOMEM;
	rx->ring = dma_alloc_coherent(rhca_eth_dma(eth),
				      rx->size * sizeof(*rx->ring), &rx->dma,
				      GFP_KERNEL | __GFP_NOWARN);
	if (rx->ring)
		return 0;
	kvfree(rx->slot);
	return -ENOMEM;
}

/* Whoever asks for more than there is gets an error; nobody is killed for it. */
int rhca_rx_alloc(struct rhca_eth *eth, struct rhca_rx_mem *rx)
{
	u32 buf_len = eth->ndev->mtu + RDMA_HCA_ETH_HEADER_SIZE;
	int err;

	*rx = (struct rhca_rx_mem){
		.size = 1 << eth->log_rx,
		.buf_len = buf_len,
		.piece_len = rhca_rx_piece_len(buf_len),
	};
	err = rhca_rx_alloc_ring(eth, rx);
	if (err)
		return err;
	rx->pool = rhca_rx_pool(eth, rx);
	if (IS_ERR(rx->pool)) {
		err = PTR_ERR(rx->pool);
		goto ring;
	}
	if (rhca_rx_fill(rx, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN))
		return 0;
	rhca_rx_free(eth, rx);
	return -ENOMEM;

ring:
	dma_free_coherent(rhca_eth_dma(eth), rx->size * sizeof(*rx->ring),
			  rx->ring, rx->dma);
	kvfree(rx->slot);
	return err;
}
