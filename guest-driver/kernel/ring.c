// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rings of the Ethernet function as a whole: pairs of a transmit and a
 * receive ring, each pair with an MSI-X vector and a NAPI context. A vector
 * fires once for each time that a ring is armed.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/irq.h>

#include "eth.h"

/* A ring's index that could be 16 bits further would look the same. */
static_assert(RDMA_HCA_ETH_MAX_LOG_RING < 15);

static int rhca_queue_poll(struct napi_struct *napi, int budget)
{
	struct rhca_queue *queue = container_of(napi, struct rhca_queue, napi);
	int sent = rhca_tx_clean(queue, budget);
	int received = rhca_rx_clean(queue, budget);

	if (sent >= budget || received >= budget)
		return budget;
	if (napi_complete_done(napi, received)) {
		rhca_tx_arm(queue);
		rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_RX_ARM,
				  queue->rx.tail);
	}
	return received;
}

/* --- interrupts --------------------------------------------------------- */

static irqreturn_t rhca_queue_interrupt(int irq, void *data)
{
	struct rhca_queue *queue = data;

	rhca_count(&queue->stats.interrupts, 1);
	napi_schedule_irqoff(&queue->napi);
	return IRQ_HANDLED;
}

/*
 * A queue's own processor, for what it receives and for what is sent there: once,
 * as both are the operator's to change. Only hints: frames pass wherever they
 * are handled.
 */
static void rhca_queue_place(struct rhca_queue *queue)
{
	struct rhca_eth *eth = queue->eth;
	u32 cpu;

	if (!queue->placed) {
		cpu = cpumask_local_spread(queue->index,
					   dev_to_node(rhca_eth_dma(eth)));
		cpumask_copy(&queue->cpus, cpumask_of(cpu));
		netif_set_xps_queue(eth->ndev, &queue->cpus, queue->index);
		queue->placed = true;
	}
	irq_set_affinity_and_hint(queue->irq, &queue->cpus);
}

/* The next vector is where this one was. */
static void rhca_queue_free_irq(struct rhca_queue *queue)
{
	const struct cpumask *cpus = irq_get_affinity_mask(queue->irq);

	if (cpus)
		cpumask_copy(&queue->cpus, cpus);
	irq_update_affinity_hint(queue->irq, NULL);
	free_irq(queue->irq, queue);
}

static int rhca_queue_request_irq(struct rhca_queue *queue)
{
	struct rhca_eth *eth = queue->eth;
	struct pci_dev *pdev = eth->pci->pdev;
	int err;

	queue->irq = pci_irq_vector(pdev, eth->dev->eth_vector + queue->index);
	snprintf(queue->name, sizeof(queue->name), RHCA_NAME "-eth%u@%s",
		 queue->index, pci_name(pdev));
	err = request_irq(queue->irq, rhca_queue_interrupt, 0, queue->name,
			  queue);
	if (!err)
		rhca_queue_place(queue);
	return err;
}

/* Those of queues from @first to @end - 1. */
static void rhca_rings_free_irqs(struct rhca_eth *eth, u8 first, u8 end)
{
	while (end-- > first)
		rhca_queue_free_irq(&eth->queue[end]);
}

static int rhca_rings_request_irqs(struct rhca_eth *eth, u8 first, u8 end)
{
	u8 i;
	int err;

	for (i = first; i < end; i++) {
		err = rhca_queue_request_irq(&eth->queue[i]);
		if (err) {
			rhca_rings_free_irqs(eth, first, i);
			return err;
		}
	}
	return 0;
}

/* --- memory ------------------------------------------------------------- */

/* What is made before the card has anything to do with it. */
struct rhca_rings {
	u8 num;
	struct rhca_tx_mem tx[RDMA_HCA_ETH_MAX_QUEUES];
	struct rhca_rx_mem rx[RDMA_HCA_ETH_MAX_QUEUES];
	struct rhca_mailbox box;
};

static void rhca_rings_free_mem(struct rhca_eth *eth, struct rhca_rings *rings)
{
	while (rings->num) {
		rings->num--;
		rhca_rx_free(eth, &rings->rx[rings->num]);
		rhca_tx_free(eth, &rings->tx[rings->num]);
	}
}

static void rhca_rings_free(struct rhca_eth *eth, struct rhca_rings *rings)
{
	rhca_mailbox_free(eth->dev, &rings->box);
	rhca_rings_free_mem(eth, rings);
	kfree(rings);
}

static int rhca_rings_alloc_pair(struct rhca_eth *eth,
				 struct rhca_rings *rings)
{
	int err;

	err = rhca_tx_alloc(eth, &rings->tx[rings->num]);
	if (err)
		return err;
	err = rhca_rx_alloc(eth, &rings->rx[rings->num]);
	if (err)
		rhca_tx_free(eth, &rings->tx[rings->num]);
	else
		rings->num++;
	return err;
}

static struct rhca_rings *rhca_rings_alloc(struct rhca_eth *eth, u8 num)
{
	struct rhca_rings *rings = kzalloc(sizeof(*rings), GFP_KERNEL);
	int err;

	if (!rings)
		return ERR_PTR(-ENOMEM);
	do {
		err = rhca_rings_alloc_pair(eth, rings);
	} while (!err && rings->num < num);
	if (!err)
		err = rhca_mailbox_alloc(eth->dev, &rings->box);
	if (!err)
		return rings;
	rhca_rings_free_mem(eth, rings);
	kfree(rings);
	return ERR_PTR(err);
}

/* The rings of @eth, which no one uses, and those of @rings change places. */
static void rhca_rings_swap(struct rhca_eth *eth, struct rhca_rings *rings)
{
	u8 i;

	for (i = 0; i < RDMA_HCA_ETH_MAX_QUEUES; i++) {
		swap(eth->queue[i].tx, rings->tx[i]);
		swap(eth->queue[i].rx, rings->rx[i]);
	}
	swap(eth->num_queues, rings->num);
}

/* --- the card ----------------------------------------------------------- */

static int rhca_queue_setup(struct rhca_queue *queue, struct rhca_mailbox *box)
{
	struct rdma_hca_setup_eth *setup = box->buf;
	struct rhca_dev *dev = queue->eth->dev;
	u32 vector = dev->eth_vector + queue->index;

	memset(setup, 0, sizeof(*setup));
	rhca_put64(&setup->tx_ring_h, &setup->tx_ring_l, queue->tx.dma);
	rhca_put64(&setup->rx_ring_h, &setup->rx_ring_l, queue->rx.dma);
	be32p_replace_bits(&setup->log_sizes, ilog2(queue->tx.size),
			   RDMA_HCA_SETUP_ETH_LOG_TX);
	be32p_replace_bits(&setup->log_sizes, ilog2(queue->rx.size),
			   RDMA_HCA_SETUP_ETH_LOG_RX);
	be32p_replace_bits(&setup->vectors, vector,
			   RDMA_HCA_SETUP_ETH_TX_VECTOR);
	be32p_replace_bits(&setup->vectors, vector,
			   RDMA_HCA_SETUP_ETH_RX_VECTOR);
	return rhca_cmd(dev, RDMA_HCA_CMD_SETUP_ETH, RDMA_HCA_SETUP_ETH_START,
			queue->index, box->dma, 0);
}

static u32 rhca_coalesce_word(const struct rhca_coalesce *coalesce)
{
	/* Without a number of frames the time alone counts. */
	return FIELD_PREP(RDMA_HCA_MODERATION_COUNT,
			  coalesce->frames ?: U16_MAX) |
	       FIELD_PREP(RDMA_HCA_MODERATION_PERIOD, coalesce->usecs);
}

static int rhca_queue_moderate(struct rhca_queue *queue)
{
	u64 tx = rhca_coalesce_word(&queue->tx_coalesce);
	u64 rx = rhca_coalesce_word(&queue->rx_coalesce);

	if (!(queue->eth->dev->caps.features & RDMA_HCA_FEATURE_ETH_MODERATION))
		return 0;
	return rhca_cmd(queue->eth->dev, RDMA_HCA_CMD_MODIFY_ETH, 0,
			queue->index, tx << 32 | rx, 0);
}

int rhca_rings_set_coalesce(struct rhca_queue *queue)
{
	const struct rhca_eth *eth = queue->eth;

	return eth->open && queue->index < eth->num_queues ?
		       rhca_queue_moderate(queue) : 0;
}

/* The card hashes if somebody has a use for that. */
static int rhca_rings_put_rss(struct rhca_eth *eth, struct rhca_mailbox *box)
{
	bool wanted = eth->num_queues > 1 ||
		      (eth->ndev->features & NETIF_F_RXHASH);
	struct rdma_hca_rss *rss = box->buf;

	if (!(eth->dev->caps.features & RDMA_HCA_FEATURE_ETH_RSS))
		return 0;
	memset(rss, 0, sizeof(*rss));
	rss->types = cpu_to_be32(wanted ? eth->rss.types : 0);
	memcpy(rss->key, eth->rss.key, sizeof(rss->key));
	memcpy(rss->table, eth->rss.table, sizeof(rss->table));
	return rhca_cmd_in(eth->dev, RDMA_HCA_CMD_SET_RSS, 0, box);
}

int rhca_rings_set_rss(struct rhca_eth *eth)
{
	struct rhca_mailbox box;
	int err;

	if (!eth->open)
		return 0;
	err = rhca_mailbox_alloc(eth->dev, &box);
	if (err)
		return err;
	err = rhca_rings_put_rss(eth, &box);
	rhca_mailbox_free(eth->dev, &box);
	return err;
}

static int rhca_rings_setup(struct rhca_eth *eth, struct rhca_mailbox *box)
{
	int err;
	u8 i;

	err = rhca_rings_put_rss(eth, box);
	for (i = 0; !err && i < eth->num_queues; i++) {
		err = rhca_queue_setup(&eth->queue[i], box);
		if (!err)
			err = rhca_queue_moderate(&eth->queue[i]);
	}
	if (err)
		rhca_cmd_revoke(eth->dev, RDMA_HCA_CMD_SETUP_ETH,
				RDMA_HCA_SETUP_ETH_STOP, 0, 0);
	return err;
}

/* --- start and stop ----------------------------------------------------- */

static void rhca_rings_start(struct rhca_eth *eth)
{
	u8 i;

	eth->open = true;
	eth->seen.valid = false;
	for (i = 0; i < eth->num_queues; i++) {
		struct rhca_queue *queue = &eth->queue[i];

		napi_enable(&queue->napi);
		rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_RX_TAIL,
				  queue->rx.head);
		rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_RX_ARM, 0);
		rhca_eth_doorbell(queue, RDMA_HCA_ETH_DB_TX_ARM, 0);
	}
	/* Frames may wait for it that came while there were no rings. */
	netif_tx_wake_all_queues(eth->ndev);
}

/* The card has no rings any more, and nothing is on its way. */
static void rhca_rings_stop(struct rhca_eth *eth)
{
	u8 i;

	eth->open = false;
	/* NAPI first, as it would wake the queue again. */
	for (i = 0; i < eth->num_queues; i++)
		napi_disable(&eth->queue[i].napi);
	netif_tx_disable(eth->ndev);
	rhca_cmd_revoke(eth->dev, RDMA_HCA_CMD_SETUP_ETH,
			RDMA_HCA_SETUP_ETH_STOP, 0, 0);
	for (i = 0; i < eth->num_queues; i++) {
		timer_delete_sync(&eth->queue[i].refill);
		rhca_tx_drain(&eth->queue[i]);
	}
}

static void rhca_rings_free_own(struct rhca_eth *eth)
{
	u8 i;

	for (i = 0; i < eth->num_queues; i++) {
		rhca_rx_free(eth, &eth->queue[i].rx);
		rhca_tx_free(eth, &eth->queue[i].tx);
	}
}

int rhca_rings_open(struct rhca_eth *eth)
{
	u8 num = eth->num_queues;
	struct rhca_rings *rings;
	int err;

	rings = rhca_rings_alloc(eth, num);
	if (IS_ERR(rings))
		return PTR_ERR(rings);
	err = netif_set_real_num_queues(eth->ndev, num, num);
	if (err)
		goto free;
	err = rhca_rings_request_irqs(eth, 0, num);
	if (err)
		goto free;
	rhca_rings_swap(eth, rings);
	err = rhca_rings_setup(eth, &rings->box);
	if (err)
		goto irqs;
	rhca_mailbox_free(eth->dev, &rings->box);
	kfree(rings);
	rhca_rings_start(eth);
	return 0;

irqs:
	rhca_rings_swap(eth, rings);
	rhca_rings_free_irqs(eth, 0, num);
free:
	rhca_rings_free(eth, rings);
	return err;
}

/* Vectors for queues that come, and room for them in the interface. */
static int rhca_rings_prepare(struct rhca_eth *eth, u8 num)
{
	u8 old = eth->num_queues;
	int err;

	if (num == old)
		return 0;
	err = rhca_rings_request_irqs(eth, old, num);
	if (err)
		return err;
	/* Nobody may send by a queue that has no ring yet. */
	netif_tx_disable(eth->ndev);
	err = netif_set_real_num_queues(eth->ndev, num, num);
	if (err) {
		netif_tx_wake_all_queues(eth->ndev);
		rhca_rings_free_irqs(eth, old, num);
	}
	return err;
}

int rhca_rings_exchange(struct rhca_eth *eth, u8 num)
{
	u8 old = eth->num_queues;
	struct rhca_rings *rings;
	int err;

	rings = rhca_rings_alloc(eth, num);
	if (IS_ERR(rings))
		return PTR_ERR(rings);
	err = rhca_rings_prepare(eth, num);
	if (err) {
		rhca_rings_free(eth, rings);
		return err;
	}
	rhca_rings_stop(eth);
	rhca_rings_free_irqs(eth, num, old);
	rhca_rings_swap(eth, rings);
	err = rhca_rings_setup(eth, &rings->box);
	if (!err) {
		rhca_rings_start(eth);
	} else {
		rhca_fail(eth->dev, "it does not take other Ethernet rings");
		rhca_rings_free_irqs(eth, 0, num);
		rhca_rings_free_own(eth);
	}
	rhca_rings_free(eth, rings);
	return err;
}

void rhca_rings_close(struct rhca_eth *eth)
{
	if (!eth->open)
		return;
	rhca_rings_stop(eth);
	rhca_rings_free_irqs(eth, 0, eth->num_queues);
	rhca_rings_free_own(eth);
}

/* --- what was lost ------------------------------------------------------ */

static void rhca_queue_schedule(struct rhca_queue *queue)
{
	local_bh_disable();
	napi_schedule(&queue->napi);
	local_bh_enable();
}

/* What waits from one look to the next has had no interrupt. */
static void rhca_queue_look(struct rhca_queue *queue)
{
	u16 tx = READ_ONCE(queue->tx.tail), rx = READ_ONCE(queue->rx.tail);
	bool waits = !test_bit(NAPI_STATE_SCHED, &queue->napi.state) &&
		     (rhca_tx_waits(queue) || rhca_rx_waits(queue));

	if (waits && queue->waits && tx == queue->tx_waiting &&
	    rx == queue->rx_waiting) {
		rhca_count(&queue->stats.lost_interrupts, 1);
		rhca_count_lost(queue->eth->dev, queue->irq);
		rhca_queue_schedule(queue);
		waits = false;
	}
	queue->waits = waits;
	queue->tx_waiting = tx;
	queue->rx_waiting = rx;
}

void rhca_rings_look(struct rhca_eth *eth)
{
	u8 i;

	for (i = 0; i < eth->num_queues; i++)
		rhca_queue_look(&eth->queue[i]);
}

void rhca_rings_poll(struct rhca_eth *eth)
{
	u8 i;

	for (i = 0; i < eth->num_queues; i++)
		rhca_queue_schedule(&eth->queue[i]);
}

/* --- life --------------------------------------------------------------- */

void rhca_rings_init(struct rhca_eth *eth)
{
	u8 i;

	for (i = 0; i < RDMA_HCA_ETH_MAX_QUEUES; i++) {
		struct rhca_queue *queue = &eth->queue[i];

		queue->eth = eth;
		queue->index = i;
		netif_napi_add(eth->ndev, &queue->napi, rhca_queue_poll);
		timer_setup(&queue->refill, rhca_rx_refill_timer, 0);
	}
}

void rhca_rings_cleanup(struct rhca_eth *eth)
{
	u8 i;

	for (i = 0; i < RDMA_HCA_ETH_MAX_QUEUES; i++)
		netif_napi_del(&eth->queue[i].napi);
}
