// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Transmit rings of the Ethernet function (rdma_hca_eth.h): from a frame of
 * Linux's to descriptors, and back when the card has sent it. Long TCP segments
 * go as they are, and the card cuts them.
 */
#include <linux/if_vlan.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#include "eth.h"

/* What a frame at most needs must fit the smallest ring, or nothing goes. */
#define RHCA_TX_ROOM	RDMA_HCA_ETH_MAX_PIECES
static_assert(RHCA_TX_ROOM < 1 << RHCA_ETH_MIN_LOG_TX);

/* One index is unused, so that a full ring differs from an empty one. */
static u16 rhca_tx_room(const struct rhca_tx_mem *tx)
{
	u16 used = READ_ONCE(tx->head) - READ_ONCE(tx->tail);

	return tx->size - 1 - used;
}

static struct rhca_tx_slot *rhca_tx_slot(struct rhca_tx_mem *tx, u16 index)
{
	return &tx->slot[index & (tx->size - 1)];
}

static struct rdma_hca_eth_tx *rhca_tx_desc(struct rhca_tx_mem *tx, u16 index)
{
	return &tx->ring[index & (tx->size - 1)];
}

static struct netdev_queue *rhca_tx_queue(const struct rhca_queue *queue)
{
	return netdev_get_tx_queue(queue->eth->ndev, queue->index);
}

/* --- frames into the ring ----------------------------------------------- */

static void rhca_tx_unmap(struct rhca_queue *queue, u16 index)
{
	struct rhca_tx_slot *slot = rhca_tx_slot(&queue->tx, index);

	if (!slot->len)
		return;
	if (slot->is_page)
		dma_unmap_page(rhca_eth_dma(queue->eth), slot->dma, slot->len,
			       DMA_TO_DEVICE);
	else
		dma_unmap_single(rhca_eth_dma(queue->eth), slot->dma,
				 slot->len, DMA_TO_DEVICE);
}

static void rhca_tx_fill(struct rhca_tx_mem *tx, u16 index, dma_addr_t dma,
			 u16 len, bool is_page)
{
	struct rdma_hca_eth_tx *desc = rhca_tx_desc(tx, index);
	struct rhca_tx_slot *slot = rhca_tx_slot(tx, index);

	slot->skb = NULL;
	slot->dma = dma;
	slot->len = len;
	slot->is_page = is_page;
	memset(desc, 0, sizeof(*desc));
	desc->addr_l = cpu_to_le32(lower_32_bits(dma));
	desc->addr_h = cpu_to_le32(upper_32_bits(dma));
	desc->len = cpu_to_le16(len);
}

/* How the frame behind it is to be cut. */
static void rhca_tx_fill_tso(struct rhca_tx_mem *tx, u16 index,
			     const struct sk_buff *skb)
{
	struct rdma_hca_eth_tso *tso = (void *)rhca_tx_desc(tx, index);

	rhca_tx_fill(tx, index, 0, 0, false);
	tso->flags = RDMA_HCA_ETH_TX_TSO;
	tso->mss = cpu_to_le16(skb_shinfo(skb)->gso_size);
	tso->header_len = cpu_to_le16(skb_tcp_all_headers(skb));
	tso->ip_start = cpu_to_le16(skb_network_offset(skb));
	tso->tcp_start = cpu_to_le16(skb_transport_offset(skb));
}

static int rhca_tx_map_head(struct rhca_queue *queue, u16 index,
			    struct sk_buff *skb)
{
	struct device *dma_dev = rhca_eth_dma(queue->eth);
	dma_addr_t dma;

	dma = dma_map_single(dma_dev, skb->data, skb_headlen(skb),
			     DMA_TO_DEVICE);
	if (dma_mapping_error(dma_dev, dma))
		return -ENOMEM;
	rhca_tx_fill(&queue->tx, index, dma, skb_headlen(skb), false);
	return 0;
}

static int rhca_tx_map_frag(struct rhca_queue *queue, u16 index,
			    const skb_frag_t *frag)
{
	struct device *dma_dev = rhca_eth_dma(queue->eth);
	dma_addr_t dma;

	dma = skb_frag_dma_map(dma_dev, frag, 0, skb_frag_size(frag),
			       DMA_TO_DEVICE);
	if (dma_mapping_error(dma_dev, dma))
		return -ENOMEM;
	rhca_tx_fill(&queue->tx, index, dma, skb_frag_size(frag), true);
	return 0;
}

/* Returns how many descriptors from the head on have @skb, or an errno. */
static int rhca_tx_map(struct rhca_queue *queue, struct sk_buff *skb)
{
	struct rhca_tx_mem *tx = &queue->tx;
	u16 index = tx->head;
	int i, err;

	if (skb_is_gso(skb))
		rhca_tx_fill_tso(tx, index++, skb);
	err = rhca_tx_map_head(queue, index, skb);
	if (err)
		return err;
	index++;
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		err = rhca_tx_map_frag(queue, index,
				       &skb_shinfo(skb)->frags[i]);
		if (err)
			goto undo;
		index++;
	}
	return (u16)(index - tx->head);

undo:
	while (index != tx->head)
		rhca_tx_unmap(queue, --index);
	return err;
}

static void rhca_tx_describe(struct rhca_tx_mem *tx, struct sk_buff *skb,
			     u16 count)
{
	struct rdma_hca_eth_tx *first = rhca_tx_desc(tx, tx->head);
	struct rhca_tx_slot *slot = rhca_tx_slot(tx, tx->head);
	u16 last = tx->head + count - 1;

	slot->skb = skb;
	slot->last = last;
	rhca_tx_desc(tx, last)->flags |= RDMA_HCA_ETH_TX_LAST;
	if (skb_is_gso(skb) || skb->ip_summed != CHECKSUM_PARTIAL)
		return;
	first->flags |= RDMA_HCA_ETH_TX_CSUM;
	first->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
	first->csum_offset = cpu_to_le16(skb->csum_offset);
}

/* Stop the queue unless the next frame finds room, however large it is. */
static void rhca_tx_stop_if_full(struct rhca_queue *queue)
{
	struct netdev_queue *txq = rhca_tx_queue(queue);

	if (rhca_tx_room(&queue->tx) >= RHCA_TX_ROOM)
		return;
	netif_tx_stop_queue(txq);
	rhca_count(&queue->stats.tx_stopped, 1);
	/* Either NAPI sees the queue stopped, or room is seen here. */
	smp_mb__after_atomic();
	if (rhca_tx_room(&queue->tx) >= RHCA_TX_ROOM)
		netif_tx_start_queue(txq);
}

static netdev_tx_t rhca_tx_drop(struct rhca_queue *queue, struct sk_buff *skb)
{
	DEV_STATS_INC(queue->eth->ndev, tx_dropped);
	dev_kfree_skb_any(skb);
	/* Of frames before it the doorbell may not have been rung. */
	rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_TX_TAIL, queue->tx.head);
	return NETDEV_TX_OK;
}

/* Its descriptors are as many as a frame may have, and each can say its length. */
static bool rhca_tx_fits(struct sk_buff *skb)
{
	u32 pieces = skb_shinfo(skb)->nr_frags + 1 + skb_is_gso(skb);

	if (pieces > RDMA_HCA_ETH_MAX_PIECES && skb_linearize(skb))
		return false;
	return skb_is_gso(skb) ? skb_headlen(skb) <= U16_MAX &&
				 skb->data_len <= U16_MAX :
				 skb->len <= U16_MAX;
}

netdev_tx_t rhca_start_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	u16 index = skb_get_queue_mapping(skb);
	struct rhca_queue *queue = &rhca_eth_of(ndev)->queue[index];
	struct netdev_queue *txq = rhca_tx_queue(queue);
	struct rhca_tx_mem *tx = &queue->tx;
	int count;

	if (unlikely(rhca_tx_room(tx) < RHCA_TX_ROOM)) {
		rhca_tx_stop_if_full(queue);
		return NETDEV_TX_BUSY;
	}
	if (!rhca_tx_fits(skb))
		return rhca_tx_drop(queue, skb);
	count = rhca_tx_map(queue, skb);
	if (count < 0)
		return rhca_tx_drop(queue, skb);
	rhca_tx_describe(tx, skb, count);
	skb_tx_timestamp(skb);
	/* NAPI looks at the slots once it sees the head. */
	smp_store_release(&tx->head, tx->head + count);
	rhca_tx_stop_if_full(queue);
	if (__netdev_tx_sent_queue(txq, skb->len, netdev_xmit_more()))
		rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_TX_TAIL, tx->head);
	return NETDEV_TX_OK;
}

/* What the card can cut: Linux does it otherwise. */
static bool rhca_tx_can_cut(const struct sk_buff *skb)
{
	u32 ip_len = skb_transport_offset(skb) - skb_network_offset(skb);
	u32 header_len = skb_tcp_all_headers(skb);

	return skb->len <= RDMA_HCA_ETH_MAX_TSO &&
	       skb_shinfo(skb)->gso_size >= RDMA_HCA_ETH_MIN_MSS &&
	       header_len <= RDMA_HCA_ETH_MAX_TSO_HEADER &&
	       header_len + skb_shinfo(skb)->gso_size <=
		       RDMA_HCA_ETH_HEADER_SIZE + RDMA_HCA_ETH_MAX_MTU &&
	       (!(skb_shinfo(skb)->gso_type & SKB_GSO_TCPV6) ||
		ip_len == sizeof(struct ipv6hdr));
}

netdev_features_t rhca_features_check(struct sk_buff *skb,
				      struct net_device *ndev,
				      netdev_features_t features)
{
	if (skb_is_gso(skb) && !rhca_tx_can_cut(skb))
		features &= ~NETIF_F_GSO_MASK;
	return vlan_features_check(skb, features);
}

/* --- and back ----------------------------------------------------------- */

/* Take back the frame at the tail. */
static void rhca_tx_retire(struct rhca_queue *queue, int budget)
{
	struct rhca_tx_mem *tx = &queue->tx;
	u16 end = rhca_tx_slot(tx, tx->tail)->last + 1;
	struct sk_buff *skb = rhca_tx_slot(tx, tx->tail)->skb;
	u16 index;

	for (index = tx->tail; index != end; index++)
		rhca_tx_unmap(queue, index);
	napi_consume_skb(skb, budget);
	WRITE_ONCE(tx->tail, end);
}

/* Whether the frame at the tail is over; *@done: what its last one says. */
static bool rhca_tx_is_over(struct rhca_tx_mem *tx, u8 *done)
{
	/* Slots before the head are filled. */
	if (tx->tail == smp_load_acquire(&tx->head))
		return false;
	*done = READ_ONCE(rhca_tx_desc(tx, rhca_tx_slot(tx, tx->tail)->last)
				  ->done);
	return *done & RDMA_HCA_ETH_DONE;
}

/* As many as there are on the cable. */
static void rhca_tx_count(struct rhca_queue *queue, const struct sk_buff *skb,
			  u8 done)
{
	struct net_device *ndev = queue->eth->ndev;
	u32 packets = 1, bytes = skb->len;

	if (done & RDMA_HCA_ETH_ERROR) {
		DEV_STATS_INC(ndev, tx_errors);
		return;
	}
	if (skb_is_gso(skb)) {
		packets = skb_shinfo(skb)->gso_segs;
		bytes += (packets - 1) * skb_tcp_all_headers(skb);
		rhca_count(&queue->stats.tx_tso, 1);
	}
	dev_sw_netstats_tx_add(ndev, packets, bytes);
	rhca_count(&queue->stats.tx_packets, packets);
	rhca_count(&queue->stats.tx_bytes, bytes);
}

int rhca_tx_clean(struct rhca_queue *queue, int budget)
{
	struct netdev_queue *txq = rhca_tx_queue(queue);
	struct rhca_tx_mem *tx = &queue->tx;
	unsigned int bytes = 0;
	int frames = 0;
	u8 done;

	/* Without a budget it is netpoll that wants room. */
	while (frames < (budget ?: NAPI_POLL_WEIGHT) &&
	       rhca_tx_is_over(tx, &done)) {
		struct sk_buff *skb = rhca_tx_slot(tx, tx->tail)->skb;

		rhca_tx_count(queue, skb, done);
		bytes += skb->len;
		frames++;
		rhca_tx_retire(queue, budget);
	}
	netdev_tx_completed_queue(txq, frames, bytes);
	/* Either the sender sees the room, or it is seen to have stopped. */
	smp_mb();
	if (frames && netif_tx_queue_stopped(txq) &&
	    rhca_tx_room(tx) >= RHCA_TX_ROOM)
		netif_tx_wake_queue(txq);
	return frames;
}

bool rhca_tx_waits(struct rhca_queue *queue)
{
	u8 done;

	return rhca_tx_is_over(&queue->tx, &done);
}

void rhca_tx_arm(struct rhca_queue *queue)
{
	struct rhca_tx_mem *tx = &queue->tx;
	u16 index = tx->tail;

	/* Slots before the head are filled. */
	if (index != smp_load_acquire(&tx->head))
		index = rhca_tx_slot(tx, index)->last;
	rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_TX_ARM, index);
}

void rhca_tx_drain(struct rhca_queue *queue)
{
	struct rhca_tx_mem *tx = &queue->tx;
	u8 done;

	local_bh_disable(); /* as the poll that counts otherwise */
	while (tx->tail != tx->head) {
		if (rhca_tx_is_over(tx, &done))
			rhca_tx_count(queue, rhca_tx_slot(tx, tx->tail)->skb,
				      done);
		else
			DEV_STATS_INC(queue->eth->ndev, tx_dropped);
		rhca_tx_retire(queue, 0);
	}
	local_bh_enable();
	netdev_tx_reset_queue(rhca_tx_queue(queue));
}

/* --- its memory --------------------------------------------------------- */

int rhca_tx_alloc(struct rhca_eth *eth, struct rhca_tx_mem *tx)
{
	*tx = (struct rhca_tx_mem){ .size = 1 << eth->log_tx };
	tx->slot = kvcalloc(tx->size, sizeof(*tx->slot), GFP_KERNEL);
	if (!tx->slot)
		return -ENOMEM;
	tx->ring = dma_alloc_coherent(rhca_eth_dma(eth),
				      tx->size * sizeof(*tx->ring), &tx->dma,
				      GFP_KERNEL | __GFP_NOWARN);
	if (tx->ring)
		return 0;
	kvfree(tx->slot);
	return -ENOMEM;
}

void rhca_tx_free(struct rhca_eth *eth, struct rhca_tx_mem *tx)
{
	dma_free_coherent(rhca_eth_dma(eth), tx->size * sizeof(*tx->ring),
			  tx->ring, tx->dma);
	kvfree(tx->slot);
}
