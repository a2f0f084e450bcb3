// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The descriptor rings of the Ethernet function (rdma_hca_eth.h): transmit
 * and receive, each with a NAPI context and an MSI-X vector of its own. A
 * vector fires once for each time that its ring is armed.
 */
#include <linux/interrupt.h>

#include "eth.h"

/* A ring's index that could be 16 bits further would look the same. */
static_assert(RDMA_HCA_ETH_MAX_LOG_RING < 15);
/* What a frame at most needs must fit the smallest ring, or nothing goes. */
#define RHCA_TX_ROOM	RDMA_HCA_ETH_MAX_PIECES
static_assert(RHCA_TX_ROOM < 1 << RHCA_ETH_MIN_LOG_TX);

#define RHCA_REFILL_MS	100

static void rhca_eth_doorbell(struct rhca_eth *eth, u32 offset, u16 index)
{
	writel(index, eth->pci->bar0 + RDMA_HCA_ETH_DB + offset);
}

static struct device *rhca_eth_dma(struct rhca_eth *eth)
{
	return &eth->pci->pdev->dev;
}

/* --- transmit ----------------------------------------------------------- */

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

static void rhca_tx_unmap(struct rhca_eth *eth, u16 index)
{
	struct rhca_tx_slot *slot = rhca_tx_slot(&eth->tx.mem, index);

	if (slot->is_page)
		dma_unmap_page(rhca_eth_dma(eth), slot->dma, slot->len,
			       DMA_TO_DEVICE);
	else
		dma_unmap_single(rhca_eth_dma(eth), slot->dma, slot->len,
				 DMA_TO_DEVICE);
}

static void rhca_tx_fill(struct rhca_eth *eth, u16 index, dma_addr_t dma,
			 u16 len, bool is_page)
{
	struct rdma_hca_eth_tx *desc = rhca_tx_desc(&eth->tx.mem, index);
	struct rhca_tx_slot *slot = rhca_tx_slot(&eth->tx.mem, index);

	slot->skb = NULL;
	slot->dma = dma;
	slot->len = len;
	slot->is_page = is_page;
	memset(desc, 0, sizeof(*desc));
	desc->addr_l = cpu_to_le32(lower_32_bits(dma));
	desc->addr_h = cpu_to_le32(upper_32_bits(dma));
	desc->len = cpu_to_le16(len);
}

/* Returns how many descriptors from the head on have @skb, or an errno. */
static int rhca_tx_map(struct rhca_eth *eth, struct sk_buff *skb)
{
	struct device *dma_dev = rhca_eth_dma(eth);
	u16 index = eth->tx.mem.head;
	dma_addr_t dma;
	int i;

	dma = dma_map_single(dma_dev, skb->data, skb_headlen(skb),
			     DMA_TO_DEVICE);
	if (dma_mapping_error(dma_dev, dma))
		return -ENOMEM;
	rhca_tx_fill(eth, index++, dma, skb_headlen(skb), false);

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		dma = skb_frag_dma_map(dma_dev, frag, 0, skb_frag_size(frag),
				       DMA_TO_DEVICE);
		if (dma_mapping_error(dma_dev, dma))
			goto undo;
		rhca_tx_fill(eth, index++, dma, skb_frag_size(frag), true);
	}
	return (u16)(index - eth->tx.mem.head);

undo:
	while (index != eth->tx.mem.head)
		rhca_tx_unmap(eth, --index);
	return -ENOMEM;
}

static void rhca_tx_describe(struct rhca_tx_mem *tx, struct sk_buff *skb, u16 count)
{
	struct rdma_hca_eth_tx *first = rhca_tx_desc(tx, tx->head);
	struct rhca_tx_slot *slot = rhca_tx_slot(tx, tx->head);
	u16 last = tx->head + count - 1;

	slot->skb = skb;
	slot->last = last;
	rhca_tx_desc(tx, last)->flags |= RDMA_HCA_ETH_TX_LAST;
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return;
	first->flags |= RDMA_HCA_ETH_TX_CSUM;
	first->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
	first->csum_offset = cpu_to_le16(skb->csum_offset);
}

/* Stop the queue unless the next frame finds room, however large it is. */
static void rhca_tx_stop_if_full(struct rhca_eth *eth)
{
	if (rhca_tx_room(&eth->tx.mem) >= RHCA_TX_ROOM)
		return;
	netif_stop_queue(eth->ndev);
	/* Either NAPI sees the queue stopped, or room is seen here. */
	smp_mb__after_atomic();
	if (rhca_tx_room(&eth->tx.mem) >= RHCA_TX_ROOM)
		netif_start_queue(eth->ndev);
}

static void rhca_tx_drop(struct rhca_eth *eth, struct sk_buff *skb)
{
	DEV_STATS_INC(eth->ndev, tx_dropped);
	dev_kfree_skb_any(skb);
	/* Of frames before it the doorbell may not have been rung. */
	rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_TX_TAIL, eth->tx.mem.head);
}

netdev_tx_t rhca_start_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct netdev_queue *queue = netdev_get_tx_queue(ndev, 0);
	struct rhca_eth *eth = netdev_priv(ndev);
	struct rhca_tx_mem *tx = &eth->tx.mem;
	int count;

	if (unlikely(rhca_tx_room(tx) < RHCA_TX_ROOM)) {
		netif_stop_queue(ndev);
		return NETDEV_TX_BUSY;
	}
	if ((skb_shinfo(skb)->nr_frags >= RDMA_HCA_ETH_MAX_PIECES &&
	     skb_linearize(skb)) || skb->len > U16_MAX) {
		rhca_tx_drop(eth, skb);
		return NETDEV_TX_OK;
	}
	count = rhca_tx_map(eth, skb);
	if (count < 0) {
		rhca_tx_drop(eth, skb);
		return NETDEV_TX_OK;
	}
	rhca_tx_describe(tx, skb, count);
	skb_tx_timestamp(skb);
	/* NAPI looks at the slots once it sees the head. */
	smp_store_release(&tx->head, tx->head + count);
	rhca_tx_stop_if_full(eth);
	if (__netdev_tx_sent_queue(queue, skb->len, netdev_xmit_more()))
		rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_TX_TAIL, tx->head);
	return NETDEV_TX_OK;
}

/* Take back the frame at the tail. */
static void rhca_tx_retire(struct rhca_eth *eth, int budget)
{
	struct rhca_tx_mem *tx = &eth->tx.mem;
	u16 end = rhca_tx_slot(tx, tx->tail)->last + 1;
	struct sk_buff *skb = rhca_tx_slot(tx, tx->tail)->skb;
	u16 index;

	for (index = tx->tail; index != end; index++)
		rhca_tx_unmap(eth, index);
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

static void rhca_tx_count(struct rhca_eth *eth, const struct sk_buff *skb,
			  u8 done)
{
	if (done & RDMA_HCA_ETH_ERROR)
		DEV_STATS_INC(eth->ndev, tx_errors);
	else
		dev_sw_netstats_tx_add(eth->ndev, 1, skb->len);
}

static int rhca_tx_clean(struct rhca_eth *eth, int budget)
{
	struct rhca_tx_mem *tx = &eth->tx.mem;
	unsigned int bytes = 0;
	int frames = 0;
	u8 done;

	/* Without a budget it is netpoll that wants room. */
	while (frames < (budget ?: NAPI_POLL_WEIGHT) &&
	       rhca_tx_is_over(tx, &done)) {
		struct sk_buff *skb = rhca_tx_slot(tx, tx->tail)->skb;

		rhca_tx_count(eth, skb, done);
		bytes += skb->len;
		frames++;
		rhca_tx_retire(eth, budget);
	}
	netdev_completed_queue(eth->ndev, frames, bytes);
	/* Either the sender sees the room, or it is seen to have stopped. */
	smp_mb();
	if (frames && netif_queue_stopped(eth->ndev) &&
	    rhca_tx_room(tx) >= RHCA_TX_ROOM)
		netif_wake_queue(eth->ndev);
	return frames;
}

static void rhca_tx_arm(struct rhca_eth *eth)
{
	struct rhca_tx_mem *tx = &eth->tx.mem;
	u16 index = tx->tail;

	/* Slots before the head are filled. */
	if (index != smp_load_acquire(&tx->head))
		index = rhca_tx_slot(tx, index)->last;
	rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_TX_ARM, index);
}

static int rhca_tx_poll(struct napi_struct *napi, int budget)
{
	struct rhca_eth *eth = container_of(napi, struct rhca_eth, tx.napi);
	int frames = rhca_tx_clean(eth, budget);

	if (frames < budget && napi_complete_done(napi, frames))
		rhca_tx_arm(eth);
	return min(frames, budget);
}

/* Also what the card has not sent, and now never will. */
static void rhca_tx_drain(struct rhca_eth *eth)
{
	struct rhca_tx_mem *tx = &eth->tx.mem;
	u8 done;

	while (tx->tail != tx->head) {
		if (rhca_tx_is_over(tx, &done))
			rhca_tx_count(eth, rhca_tx_slot(tx, tx->tail)->skb,
				      done);
		else
			DEV_STATS_INC(eth->ndev, tx_dropped);
		rhca_tx_retire(eth, 0);
	}
	netdev_reset_queue(eth->ndev);
}

static int rhca_tx_alloc(struct rhca_eth *eth, struct rhca_tx_mem *tx)
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

/* Its frames are gone. */
static void rhca_tx_free(struct rhca_eth *eth, struct rhca_tx_mem *tx)
{
	dma_free_coherent(rhca_eth_dma(eth), tx->size * sizeof(*tx->ring),
			  tx->ring, tx->dma);
	kvfree(tx->slot);
}

/* --- receive ------------------------------------------------------------ */

static struct rhca_rx_slot *rhca_rx_slot(struct rhca_rx_mem *rx, u16 index)
{
	return &rx->slot[index & (rx->size - 1)];
}

static struct rdma_hca_eth_rx *rhca_rx_desc(struct rhca_rx_mem *rx,
					    u16 index)
{
	return &rx->ring[index & (rx->size - 1)];
}

/* A buffer for the descriptor at the head. */
static bool rhca_rx_add(struct rhca_eth *eth, struct rhca_rx_mem *rx,
			gfp_t gfp)
{
	struct rdma_hca_eth_rx *desc = rhca_rx_desc(rx, rx->head);
	struct rhca_rx_slot *slot = rhca_rx_slot(rx, rx->head);
	struct device *dma_dev = rhca_eth_dma(eth);

	slot->skb = __netdev_alloc_skb_ip_align(eth->ndev, rx->buf_len, gfp);
	if (!slot->skb)
		return false;
	slot->dma = dma_map_single(dma_dev, slot->skb->data, rx->buf_len,
				   DMA_FROM_DEVICE);
	if (dma_mapping_error(dma_dev, slot->dma)) {
		dev_kfree_skb_any(slot->skb);
		return false;
	}
	memset(desc, 0, sizeof(*desc));
	desc->addr_l = cpu_to_le32(lower_32_bits(slot->dma));
	desc->addr_h = cpu_to_le32(upper_32_bits(slot->dma));
	desc->size = cpu_to_le16(rx->buf_len);
	rx->head++;
	return true;
}

/* Returns false if memory is short. */
static bool rhca_rx_fill(struct rhca_eth *eth, struct rhca_rx_mem *rx,
			 gfp_t gfp)
{
	while ((u16)(rx->head - rx->tail) < rx->size - 1)
		if (!rhca_rx_add(eth, rx, gfp))
			return false;
	return true;
}

static void rhca_rx_refill(struct rhca_eth *eth)
{
	struct rhca_rx_mem *rx = &eth->rx.mem;
	u16 before = rx->head;

	/* With an empty ring there is no interrupt that would try again. */
	if (!rhca_rx_fill(eth, rx, GFP_ATOMIC))
		mod_timer(&eth->rx.refill,
			  jiffies + msecs_to_jiffies(RHCA_REFILL_MS));
	if (rx->head != before)
		rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_RX_TAIL, rx->head);
}

static void rhca_rx_refill_timer(struct timer_list *timer)
{
	struct rhca_eth *eth = container_of(timer, struct rhca_eth, rx.refill);

	napi_schedule(&eth->rx.napi);
}

/* Take the buffer at the tail from the card. */
static struct sk_buff *rhca_rx_take(struct rhca_eth *eth,
				    struct rhca_rx_mem *rx)
{
	struct rhca_rx_slot *slot = rhca_rx_slot(rx, rx->tail);

	dma_unmap_single(rhca_eth_dma(eth), slot->dma, rx->buf_len,
			 DMA_FROM_DEVICE);
	rx->tail++;
	return slot->skb;
}

static void rhca_rx_deliver(struct rhca_eth *eth, struct sk_buff *skb, u16 len,
			    u8 flags)
{
	struct net_device *ndev = eth->ndev;

	skb_put(skb, len);
	dev_sw_netstats_rx_add(ndev, len);
	if ((flags & RDMA_HCA_ETH_RX_CSUM_OK) &&
	    (ndev->features & NETIF_F_RXCSUM))
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->protocol = eth_type_trans(skb, ndev);
	if (skb->pkt_type == PACKET_MULTICAST)
		DEV_STATS_INC(ndev, multicast);
	napi_gro_receive(&eth->rx.napi, skb);
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

static void rhca_rx_one(struct rhca_eth *eth)
{
	struct rhca_rx_mem *rx = &eth->rx.mem;
	const struct rdma_hca_eth_rx *desc = rhca_rx_desc(rx, rx->tail);
	bool error = desc->done & RDMA_HCA_ETH_ERROR;
	u16 len = le16_to_cpu(desc->len);
	u8 flags = desc->flags;
	struct sk_buff *skb = rhca_rx_take(eth, rx);

	if (error || len < ETH_HLEN || len > rx->buf_len) {
		DEV_STATS_INC(eth->ndev, rx_errors);
		dev_kfree_skb_any(skb);
		return;
	}
	rhca_rx_deliver(eth, skb, len, flags);
}

static int rhca_rx_poll(struct napi_struct *napi, int budget)
{
	struct rhca_eth *eth = container_of(napi, struct rhca_eth, rx.napi);
	struct rhca_rx_mem *rx = &eth->rx.mem;
	int frames = 0;

	while (frames < budget && rhca_rx_is_over(rx)) {
		rhca_rx_one(eth);
		frames++;
	}
	rhca_rx_refill(eth);
	if (frames < budget && napi_complete_done(napi, frames))
		rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_RX_ARM, rx->tail);
	return frames;
}

static void rhca_rx_free(struct rhca_eth *eth, struct rhca_rx_mem *rx)
{
	while (rx->tail != rx->head)
		dev_kfree_skb_any(rhca_rx_take(eth, rx));
	dma_free_coherent(rhca_eth_dma(eth), rx->size * sizeof(*rx->ring),
			  rx->ring, rx->dma);
	kvfree(rx->slot);
}

/* Whoever asks for more than there is gets an error; nobody is killed for it. */
static int rhca_rx_alloc(struct rhca_eth *eth, struct rhca_rx_mem *rx)
{
	*rx = (struct rhca_rx_mem){
		.size = 1 << eth->log_rx,
		.buf_len = eth->ndev->mtu + RDMA_HCA_ETH_HEADER_SIZE,
	};
	rx->slot = kvcalloc(rx->size, sizeof(*rx->slot), GFP_KERNEL);
	if (!rx->slot)
		return -ENOMEM;
	rx->ring = dma_alloc_coherent(rhca_eth_dma(eth),
				      rx->size * sizeof(*rx->ring), &rx->dma,
				      GFP_KERNEL | __GFP_NOWARN);
	if (!rx->ring) {
		kvfree(rx->slot);
		return -ENOMEM;
	}
	if (rhca_rx_fill(eth, rx, GFP_KERNEL | __GFP_RETRY_MAYFAIL |
				  __GFP_NOWARN))
		return 0;
	rhca_rx_free(eth, rx);
	return -ENOMEM;
}

/* --- both --------------------------------------------------------------- */

static irqreturn_t rhca_ring_interrupt(int irq, void *napi)
{
	napi_schedule_irqoff(napi);
	return IRQ_HANDLED;
}

static int rhca_rings_request_irqs(struct rhca_eth *eth)
{
	struct rhca_dev *dev = eth->dev;
	struct pci_dev *pdev = dev->pdev;
	struct rhca_tx *tx = &eth->tx;
	struct rhca_rx *rx = &eth->rx;
	int err;

	tx->irq = pci_irq_vector(pdev, dev->eth_vector);
	rx->irq = pci_irq_vector(pdev, dev->eth_vector + 1);
	snprintf(tx->name, sizeof(tx->name), RHCA_NAME "-tx@%s",
		 pci_name(pdev));
	snprintf(rx->name, sizeof(rx->name), RHCA_NAME "-rx@%s",
		 pci_name(pdev));
	err = request_irq(tx->irq, rhca_ring_interrupt, 0, tx->name, &tx->napi);
	if (err)
		return err;
	err = request_irq(rx->irq, rhca_ring_interrupt, 0, rx->name, &rx->napi);
	if (err)
		free_irq(tx->irq, &tx->napi);
	return err;
}

static void rhca_rings_free_irqs(struct rhca_eth *eth)
{
	free_irq(eth->rx.irq, &eth->rx.napi);
	free_irq(eth->tx.irq, &eth->tx.napi);
}

/* What is made before the card has anything to do with it. */
struct rhca_rings {
	struct rhca_tx_mem tx;
	struct rhca_rx_mem rx;
	struct rhca_mailbox box;
};

static void rhca_rings_free(struct rhca_eth *eth, struct rhca_rings *rings)
{
	rhca_mailbox_free(eth->dev, &rings->box);
	rhca_rx_free(eth, &rings->rx);
	rhca_tx_free(eth, &rings->tx);
}

static int rhca_rings_alloc(struct rhca_eth *eth, struct rhca_rings *rings)
{
	int err;

	err = rhca_tx_alloc(eth, &rings->tx);
	if (err)
		return err;
	err = rhca_rx_alloc(eth, &rings->rx);
	if (err)
		goto tx;
	err = rhca_mailbox_alloc(eth->dev, &rings->box);
	if (err)
		goto rx;
	return 0;

rx:
	rhca_rx_free(eth, &rings->rx);
tx:
	rhca_tx_free(eth, &rings->tx);
	return err;
}

/* The rings of @eth, which no one uses, and those of @rings change places. */
static void rhca_rings_swap(struct rhca_eth *eth, struct rhca_rings *rings)
{
	swap(eth->tx.mem, rings->tx);
	swap(eth->rx.mem, rings->rx);
}

static int rhca_rings_setup(struct rhca_eth *eth, struct rhca_mailbox *box)
{
	struct rdma_hca_setup_eth *setup = box->buf;
	struct rhca_dev *dev = eth->dev;

	rhca_put64(&setup->tx_ring_h, &setup->tx_ring_l, eth->tx.mem.dma);
	rhca_put64(&setup->rx_ring_h, &setup->rx_ring_l, eth->rx.mem.dma);
	be32p_replace_bits(&setup->log_sizes, ilog2(eth->tx.mem.size),
			   RDMA_HCA_SETUP_ETH_LOG_TX);
	be32p_replace_bits(&setup->log_sizes, ilog2(eth->rx.mem.size),
			   RDMA_HCA_SETUP_ETH_LOG_RX);
	be32p_replace_bits(&setup->vectors, dev->eth_vector,
			   RDMA_HCA_SETUP_ETH_TX_VECTOR);
	be32p_replace_bits(&setup->vectors, dev->eth_vector + 1,
			   RDMA_HCA_SETUP_ETH_RX_VECTOR);
	return rhca_cmd(dev, RDMA_HCA_CMD_SETUP_ETH, 1, 0, box->dma, 0);
}

static void rhca_rings_start(struct rhca_eth *eth)
{
	eth->open = true;
	napi_enable(&eth->tx.napi);
	napi_enable(&eth->rx.napi);
	rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_RX_TAIL, eth->rx.mem.head);
	rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_RX_ARM, 0);
	rhca_eth_doorbell(eth, RDMA_HCA_ETH_DB_TX_ARM, 0);
	netif_start_queue(eth->ndev);
}

/* The card has no rings any more, and nothing is on its way. */
static void rhca_rings_stop(struct rhca_eth *eth)
{
	eth->open = false;
	/* NAPI first, as it would wake the queue again. */
	napi_disable(&eth->rx.napi);
	napi_disable(&eth->tx.napi);
	netif_tx_disable(eth->ndev);
	rhca_cmd_revoke(eth->dev, RDMA_HCA_CMD_SETUP_ETH, 0, 0, 0);
	timer_delete_sync(&eth->rx.refill);
	rhca_tx_drain(eth);
}

int rhca_rings_open(struct rhca_eth *eth)
{
	struct rhca_rings rings;
	int err;

	err = rhca_rings_alloc(eth, &rings);
	if (err)
		return err;
	err = rhca_rings_request_irqs(eth);
	if (err)
		goto free;
	rhca_rings_swap(eth, &rings);
	err = rhca_rings_setup(eth, &rings.box);
	if (err)
		goto irqs;
	rhca_mailbox_free(eth->dev, &rings.box);
	rhca_rings_start(eth);
	return 0;

irqs:
	rhca_rings_swap(eth, &rings);
	rhca_rings_free_irqs(eth);
free:
	rhca_rings_free(eth, &rings);
	return err;
}

int rhca_rings_exchange(struct rhca_eth *eth)
{
	struct rhca_rings rings;
	int err;

	err = rhca_rings_alloc(eth, &rings);
	if (err)
		return err;
	rhca_rings_stop(eth);
	rhca_rings_swap(eth, &rings);
	err = rhca_rings_setup(eth, &rings.box);
	if (!err) {
		rhca_rings_start(eth);
	} else {
		rhca_fail(eth->dev, "it does not take other Ethernet rings");
		rhca_rings_free_irqs(eth);
		rhca_rx_free(eth, &eth->rx.mem);
		rhca_tx_free(eth, &eth->tx.mem);
	}
	rhca_rings_free(eth, &rings);
	return err;
}

void rhca_rings_close(struct rhca_eth *eth)
{
	if (!eth->open)
		return;
	rhca_rings_stop(eth);
	rhca_rings_free_irqs(eth);
	rhca_rx_free(eth, &eth->rx.mem);
	rhca_tx_free(eth, &eth->tx.mem);
}

void rhca_rings_init(struct rhca_eth *eth)
{
	netif_napi_add_tx(eth->ndev, &eth->tx.napi, rhca_tx_poll);
	netif_napi_add(eth->ndev, &eth->rx.napi, rhca_rx_poll);
	timer_setup(&eth->rx.refill, rhca_rx_refill_timer, 0);
}

void rhca_rings_cleanup(struct rhca_eth *eth)
{
	netif_napi_del(&eth->rx.napi);
	netif_napi_del(&eth->tx.napi);
}
