// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event queues (interface document 3.2.4) and their interrupts.
 *
 * Queue 0 takes asynchronous events. It is served by a thread, since event
 * handlers of QPs and CQs may sleep, and even execute commands; but not those
 * that wait for the thread (destroying or resetting a QP). The other
 * queues take completions, in the interrupt itself. With one vector there is
 * only queue 0. An interrupt that was lost is found by a look at the queues.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>

#include "eq.h"

#define RHCA_EQ_ENTRIES		4096
/* Tell the card about entries freed after this many. */
#define RHCA_EQ_BATCH		256
/* One round of handling; what is left brings another interrupt. */
#define RHCA_EQ_BUDGET		(2 * RHCA_EQ_ENTRIES)

#define RHCA_ASYNC_EVENTS						\
	(BIT_ULL(RDMA_HCA_EVENT_PATH_MIG) |				\
	 BIT_ULL(RDMA_HCA_EVENT_PATH_MIG_FAILED) |			\
	 BIT_ULL(RDMA_HCA_EVENT_COMM_EST) |				\
	 BIT_ULL(RDMA_HCA_EVENT_SQ_DRAINED) |				\
	 BIT_ULL(RDMA_HCA_EVENT_CQ_ERROR) |				\
	 BIT_ULL(RDMA_HCA_EVENT_WQ_CATAS_ERROR) |			\
	 BIT_ULL(RDMA_HCA_EVENT_LOCAL_CATAS_ERROR) |			\
	 BIT_ULL(RDMA_HCA_EVENT_PORT_CHANGE) |				\
	 BIT_ULL(RDMA_HCA_EVENT_EQ_OVERFLOW) |				\
	 BIT_ULL(RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR) |			\
	 BIT_ULL(RDMA_HCA_EVENT_WQ_ACCESS_ERROR))

#define RHCA_SRQ_EVENTS							\
	(BIT_ULL(RDMA_HCA_EVENT_SRQ_CATAS_ERROR) |			\
	 BIT_ULL(RDMA_HCA_EVENT_LAST_WQE_REACHED) |			\
	 BIT_ULL(RDMA_HCA_EVENT_SRQ_LIMIT))

static u64 rhca_async_events(const struct rhca_dev *dev)
{
	return RHCA_ASYNC_EVENTS |
	       (rhca_has_srqs(dev) ? RHCA_SRQ_EVENTS : 0) |
	       (rhca_has_mad(dev) ? BIT_ULL(RDMA_HCA_EVENT_PORT_MNG) : 0) |
	       (rhca_is_roce(dev) ? BIT_ULL(RDMA_HCA_EVENT_CONGESTION) : 0);
}

static void rhca_eq_doorbell(struct rhca_eq *eq, u32 arm)
{
	/* The card may overwrite entries, read by now, once it sees it. */
	dma_mb();
	writel((eq->ci & RDMA_HCA_EQ_DB_CI) | arm,
	       eq->dev->pci->bar0 + RDMA_HCA_EQ_DB +
		       eq->eqn * RDMA_HCA_EQ_DB_STRIDE);
}

static struct rdma_hca_eqe *rhca_eqe(struct rhca_eq *eq, u32 index)
{
	return rhca_buf_at(&eq->buf, (index & (eq->entries - 1)) *
					     RDMA_HCA_EQE_SIZE);
}

/* Whether the card has written the entry. */
static bool rhca_eqe_is_there(struct rhca_eq *eq, u32 index)
{
	return READ_ONCE(rhca_eqe(eq, index)->owner) == RDMA_HCA_OWNER_SW;
}

/* The entry at the consumer index, if it is there. */
static struct rdma_hca_eqe *rhca_eq_next(struct rhca_eq *eq)
{
	if (!rhca_eqe_is_there(eq, eq->ci))
		return NULL;
	/* Read the rest only after the owner. */
	dma_rmb();
	return rhca_eqe(eq, eq->ci);
}

static void rhca_eq_consume(struct rhca_eq *eq, struct rdma_hca_eqe *eqe)
{
	WRITE_ONCE(eqe->owner, RDMA_HCA_OWNER_HW);
	WRITE_ONCE(eq->ci, eq->ci + 1);
	if (!(eq->ci % RHCA_EQ_BATCH))
		rhca_eq_doorbell(eq, 0);
}

/* The handler of queue 0 is a thread, that of the others is not. */
static irqreturn_t rhca_eq_interrupt(int irq, void *data)
{
	struct rhca_eq *eq = data;
	struct rdma_hca_eqe *eqe;
	u32 budget = RHCA_EQ_BUDGET;

	while (budget-- && (eqe = rhca_eq_next(eq))) {
		eq->dev->on_event(eq->dev, eqe);
		rhca_eq_consume(eq, eqe);
	}
	rhca_eq_doorbell(eq, RDMA_HCA_EQ_DB_ARM);
	return IRQ_HANDLED;
}

void rhca_eq_synchronize(struct rhca_eq *eq)
{
	synchronize_irq(eq->irq);
	mutex_lock(&eq->look_lock);
	mutex_unlock(&eq->look_lock);
}

/* Only one handles entries at a time: a look has the lock, too. */
void rhca_eq_catch_up(struct rhca_eq *eq)
{
	mutex_lock(&eq->look_lock);
	irq_wake_thread(eq->irq, eq);
	synchronize_irq(eq->irq);
	mutex_unlock(&eq->look_lock);
}

void rhca_eqs_synchronize(struct rhca_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_eqs; i++)
		rhca_eq_synchronize(&dev->eq[i]);
}

struct rhca_eq *rhca_eq_of_vector(struct rhca_dev *dev, u32 vector)
{
	if (dev->num_eqs == 1)
		return &dev->eq[0];
	return &dev->eq[1 + vector % (dev->num_eqs - 1)];
}

static int rhca_sw2hw_eq(struct rhca_dev *dev, struct rhca_eq *eq)
{
	struct rhca_mailbox box;
	struct rdma_hca_eqc *eqc;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	eqc = box.buf;
	be32p_replace_bits(&eqc->flags, RDMA_HCA_EQ_STATUS_OK,
			   RDMA_HCA_EQC_STATUS);
	be32p_replace_bits(&eqc->flags, RDMA_HCA_EQ_OWNER_HW,
			   RDMA_HCA_EQC_OWNER);
	be32p_replace_bits(&eqc->flags, 1, RDMA_HCA_EQC_TR);
	be32p_replace_bits(&eqc->flags, RDMA_HCA_EQ_STATE_ARMED,
			   RDMA_HCA_EQC_STATE);
	be32p_replace_bits(&eqc->logsize, ilog2(eq->entries),
			   RDMA_HCA_EQC_LOGSIZE);
	be32p_replace_bits(&eqc->msix_vector, eq->vector,
			   RDMA_HCA_EQC_VECTOR);
	eqc->pd = cpu_to_be32(dev->pdn);
	eqc->lkey = cpu_to_be32(eq->region.key);
	err = rhca_cmd_in(dev, RDMA_HCA_CMD_SW2HW_EQ, eq->eqn, &box);
	rhca_mailbox_free(dev, &box);
	return err;
}

static void rhca_eq_fill(struct rhca_eq *eq)
{
	u32 i;

	for (i = 0; i < eq->entries; i++)
		rhca_eqe(eq, i)->owner = RDMA_HCA_OWNER_HW;
}

static int rhca_eq_request_irq(struct rhca_dev *dev, struct rhca_eq *eq)
{
	int node = dev_to_node(&dev->pdev->dev);
	const struct cpumask *cpu;
	int err;

	if (!eq->vector)
		return request_threaded_irq(eq->irq, NULL, rhca_eq_interrupt,
					    IRQF_ONESHOT, eq->name, eq);
	err = request_irq(eq->irq, rhca_eq_interrupt, 0, eq->name, eq);
	if (err)
		return err;
	/* Only a hint: completions work wherever they are delivered. */
	cpu = cpumask_of(cpumask_local_spread(eq->vector - 1, node));
	irq_set_affinity_and_hint(eq->irq, cpu);
	return 0;
}

static void rhca_eq_free_irq(struct rhca_eq *eq)
{
	irq_update_affinity_hint(eq->irq, NULL);
	free_irq(eq->irq, eq);
}

static int rhca_eq_create(struct rhca_dev *dev, struct rhca_eq *eq, u32 vector)
{
	int err;

	eq->dev = dev;
	mutex_init(&eq->look_lock);
	eq->vector = vector;
	eq->eqn = dev->caps.reserved_eqs + vector;
	eq->entries = RHCA_EQ_ENTRIES;
	eq->irq = pci_irq_vector(dev->pdev, vector);
	snprintf(eq->name, sizeof(eq->name), RHCA_NAME "-%u@%s", vector,
		 pci_name(dev->pdev));

	err = rhca_buf_alloc(dev, &eq->buf, eq->entries * RDMA_HCA_EQE_SIZE);
	if (err)
		return err;
	rhca_eq_fill(eq);
	err = rhca_region_create_buf(dev, &eq->region, dev->pdn,
				     RDMA_HCA_ACCESS_LOCAL_WRITE, &eq->buf);
	if (err)
		goto free;
	err = rhca_icm_get(dev, &dev->eqc_table, eq->eqn, 1);
	if (err)
		goto destroy;
	err = rhca_eq_request_irq(dev, eq);
	if (err)
		goto destroy;
	err = rhca_sw2hw_eq(dev, eq);
	if (err)
		goto irq;
	return 0;

irq:
	rhca_eq_free_irq(eq);
destroy:
	rhca_region_destroy(dev, &eq->region);
free:
	rhca_buf_free(dev, &eq->buf);
	return err;
}

static void rhca_eq_destroy(struct rhca_dev *dev, struct rhca_eq *eq)
{
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_HW2SW_EQ, 0, eq->eqn, 0);
	rhca_eq_free_irq(eq);
	rhca_region_destroy(dev, &eq->region);
	rhca_buf_free(dev, &eq->buf);
}

/* Have @events come by queue 0, or with @unmap no more. */
static int rhca_map_events(struct rhca_dev *dev, u64 events, u32 unmap)
{
	return rhca_cmd(dev, RDMA_HCA_CMD_MAP_EQ, 0, dev->eq[0].eqn | unmap,
			events, 0);
}

static void rhca_eqs_destroy(struct rhca_dev *dev)
{
	while (dev->num_eqs)
		rhca_eq_destroy(dev, &dev->eq[--dev->num_eqs]);
	kfree(dev->eq);
	pci_free_irq_vectors(dev->pdev);
}

/*
 * Event queues have the first vectors, the Ethernet function those behind them,
 * one at least. Returns how many event queues there can be, or an errno.
 */
static int rhca_alloc_vectors(struct rhca_dev *dev)
{
	int usable = (1 << dev->caps.log_eqs) - dev->caps.reserved_eqs;
	int want = min_t(int, usable, 1 + num_online_cpus());
	int eth = rhca_is_roce(dev) ? RDMA_HCA_ETH_MAX_QUEUES : 0;
	int vectors;

	vectors = pci_alloc_irq_vectors(dev->pdev, eth ? 2 : 1, want + eth,
					PCI_IRQ_MSIX);
	if (vectors < 0)
		return vectors;
	dev->num_eth_vectors = eth ? max(vectors - want, 1) : 0;
	dev->eth_vector = vectors - dev->num_eth_vectors;
	return dev->eth_vector;
}

int rhca_eqs_init(struct rhca_dev *dev)
{
	int vectors = rhca_alloc_vectors(dev);
	int err = 0;

	if (vectors < 0)
		return vectors;
	dev->eq = kcalloc(vectors, sizeof(*dev->eq), GFP_KERNEL);
	if (!dev->eq) {
		pci_free_irq_vectors(dev->pdev);
		return -ENOMEM;
	}
	while (!err && dev->num_eqs < vectors) {
		err = rhca_eq_create(dev, &dev->eq[dev->num_eqs], dev->num_eqs);
		if (!err)
			dev->num_eqs++;
	}
	if (!err)
		err = rhca_map_events(dev, rhca_async_events(dev), 0);
	if (err)
		rhca_eqs_destroy(dev);
	return err;
}

void rhca_eqs_cleanup(struct rhca_dev *dev)
{
	rhca_map_events(dev, rhca_async_events(dev), RDMA_HCA_MAP_EQ_UNMAP);
	rhca_eqs_destroy(dev);
}

/* --- what was lost ------------------------------------------------------ */

/* As its interrupt would. */
static void rhca_eq_handle(struct rhca_eq *eq)
{
	unsigned long flags;

	if (!eq->vector) {
		rhca_eq_interrupt(eq->irq, eq);
		return;
	}
	local_bh_disable();
	local_irq_save(flags);
	rhca_eq_interrupt(eq->irq, eq);
	local_irq_restore(flags);
	local_bh_enable();
}

/* Nobody else handles entries meanwhile; somebody may have done so before. */
static void rhca_eq_handle_lost(struct rhca_eq *eq)
{
	mutex_lock(&eq->look_lock);
	disable_irq(eq->irq);
	if (eq->ci == eq->waiting) {
		rhca_count_lost(eq->dev, eq->irq);
		rhca_eq_handle(eq);
	}
	enable_irq(eq->irq);
	mutex_unlock(&eq->look_lock);
}

/* An entry that waits from one look to the next has had no interrupt. */
static void rhca_eq_look(struct rhca_eq *eq)
{
	u32 ci = READ_ONCE(eq->ci);
	bool waits = rhca_eqe_is_there(eq, ci);

	if (waits && eq->waits && ci == eq->waiting) {
		rhca_eq_handle_lost(eq);
		waits = false;
	}
	eq->waits = waits;
	eq->waiting = ci;
}

/*
 * Queue 0 tells of the others when they fail. Of itself the card alone tells,
 * and only who asks.
 */
static void rhca_eq_check(struct rhca_dev *dev)
{
	const struct rdma_hca_eqc *eqc;
	struct rhca_mailbox box;
	int err;

	if (rhca_mailbox_alloc(dev, &box))
		return;
	eqc = box.buf;
	err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_EQ, dev->eq[0].eqn, &box);
	if (!err && be32_get_bits(eqc->flags, RDMA_HCA_EQC_STATUS) !=
			    RDMA_HCA_EQ_STATUS_OK)
		rhca_fail(dev, "its event queue has failed");
	rhca_mailbox_free(dev, &box);
}

void rhca_eqs_look(struct rhca_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_eqs; i++)
		rhca_eq_look(&dev->eq[i]);
	rhca_eq_check(dev);
}
