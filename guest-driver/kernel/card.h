/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The PCI function and the card behind it, which all files know; and card.c,
 * the lowest of them: whether the card is there and answers.
 *
 * The card's programming interface is in the rdma_hca_*.h headers; names
 * there begin with rdma_hca_, the driver's own with rhca_.
 */
#ifndef RHCA_CARD_H
#define RHCA_CARD_H

#include <linux/io.h>
#include <linux/pci.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "rdma_hca_regs.h"

#include "alloc.h"
#include "caps.h"
#include "cmd.h"
#include "diag.h"
#include "icm.h"
#include "life.h"

#define RHCA_NAME	"rdma_hca"
#define RHCA_PORT	1

/*
 * A process maps a page of the machine's, and nobody else may have something
 * in it: of the card's UAR pages there it uses the first. The kernel's is in
 * page 0.
 */
#define RHCA_UARS_PER_PAGE	(PAGE_SIZE / RDMA_HCA_UAR_PAGE_SIZE)

struct devlink;
struct devlink_health_reporter;
struct rdma_hca_eqe;
struct rhca_eq;
struct rhca_mgm;
struct rhca_region;

/* What outlives a restart of the card: the PCI function. */
struct rhca_pci {
	struct pci_dev *pdev;
	void __iomem *bar0;
	void __iomem *uar;	/* page RDMA_HCA_UAR_KERNEL */

	enum rhca_state state;	/* rhca_life() changes it */
	spinlock_t state_lock;	/* and bus mastering against RHCA_OFF */
	struct mutex lock;	/* one start or stop; protects the next five */
	struct rhca_dev *dev;		/* NULL: there is none */
	struct net_device *ndev;	/* RoCE: since the first start */
	u32 halters;		/* enum rhca_halter */
	u32 pause_secs;		/* from the last start to the next restart */
	unsigned long started;	/* when that was, in jiffies */
	struct delayed_work restart;
	/* Failures, and what users are told of them: one at a time, in order. */
	struct workqueue_struct *wq;

	struct devlink *devlink;
	struct devlink_health_reporter *reporter;
	const char *failure;	/* the last one */
	unsigned long failed_at;	/* when that was, in jiffies */
	u32 failures;
	u32 lost_interrupts;	/* the look at the card has found */
};

struct rhca_dev {
	struct ib_device ibdev;
	struct rhca_pci *pci;
	struct pci_dev *pdev;
	struct rhca_caps caps;
	struct rhca_cmd cmd;
	struct rhca_diag diag;

	struct work_struct failure;	/* users are told of it */
	struct work_struct flush;	/* rhca_flush_kernel() once more */
	struct delayed_work health;	/* a look at the card, once a second */
	const char *trouble;	/* the next look fails the card for it */
	/* What event.c has eq.c call: the card has written an event. */
	void (*on_event)(struct rhca_dev *dev, const struct rdma_hca_eqe *eqe);

	/* what the card keeps in host memory */
	struct rhca_icm_table qpc_table;
	struct rhca_icm_table cqc_table;
	struct rhca_icm_table eqc_table;
	struct rhca_icm_table srqc_table;
	struct rhca_icm_table mpt_table;
	struct rhca_icm_table mtt_table;

	/* numbers in use */
	struct rhca_bitmap qp_map;
	struct rhca_bitmap cq_map;
	struct rhca_bitmap mpt_map;
	struct rhca_bitmap mtt_map;
	struct rhca_bitmap pd_map;
	struct rhca_bitmap uar_map;
	struct rhca_bitmap srq_map;
	struct rhca_bitmap xrcd_map;
	struct rhca_bitmap dm_map;	/* pages of device memory */
	struct rhca_bitmap flow_map;
	struct rhca_bitmap counter_map;	/* sets of QPs' counters */
	atomic_t sq_slots;	/* that send queues have */
	u32 pdn;		/* PD of the driver's own regions */
	struct rhca_region *null_mr;	/* without memory; NULL: none */
	struct dma_pool *db_pool;

	/* what events and completions name */
	struct xarray qps;	/* by the card's QPN */
	struct xarray cqs;	/* by CQN */
	struct xarray srqs;	/* by SRQN */

	struct rhca_eq *eq;	/* see eq.c for what each is for */
	u32 num_eqs;
	u32 eth_vector;		/* the first one of the Ethernet function... */
	u32 num_eth_vectors;	/* ...and how many it has */

	/* the port */
	u16 lid;		/* as QUERY_PORT last said */
	u8 active_mtu;		/* IB MTU code, likewise */
	bool port_up;		/* RoCE: as users were last told */
	struct mutex mgmt_lock;	/* one change of what it tells others */
	struct net_device *ndev;	/* RoCE: the interface */
	struct mutex link_lock;	/* setting @ndev; orders link changes */
	bool link_unknown;	/* the card has not said how it is now */

	struct mutex mgm_lock;	/* protects the rest */
	struct rhca_mgm *mgm;	/* RDMA_HCA_MGM_NUM */
	struct rhca_mailbox mgm_box;	/* a detach needs no memory */
};

static inline struct rhca_dev *to_rhca(struct ib_device *ibdev)
{
	return container_of(ibdev, struct rhca_dev, ibdev);
}

/* A RoCE card has an Ethernet function, an InfiniBand card has none. */
static inline bool rhca_is_roce(const struct rhca_dev *dev)
{
	return dev->caps.features & RDMA_HCA_FEATURE_ETH;
}

/* An InfiniBand card whose port a subnet manager can manage. */
static inline bool rhca_has_mad(const struct rhca_dev *dev)
{
	return dev->caps.features & RDMA_HCA_FEATURE_MAD;
}

static inline bool rhca_has_srqs(const struct rhca_dev *dev)
{
	return dev->caps.features & RDMA_HCA_FEATURE_SRQ;
}

static inline bool rhca_has_xrc(const struct rhca_dev *dev)
{
	return dev->caps.features & RDMA_HCA_FEATURE_XRC;
}

/* More than one set of counters for QPs, and names for them. */
static inline bool rhca_has_qp_counters(const struct rhca_dev *dev)
{
	return (dev->caps.features & RDMA_HCA_FEATURE_QP_COUNTERS) &&
	       dev->caps.log_counter_sets;
}

/* Raw packet QPs, and rules for them. */
static inline bool rhca_has_raw(const struct rhca_dev *dev)
{
	return dev->caps.features & RDMA_HCA_FEATURE_RAW;
}

/* A doorbell of the kernel's UAR page: one 64-bit write, @low first. */
static inline void rhca_ring(struct rhca_dev *dev, u32 offset, u32 low,
			     u32 high)
{
	BUILD_BUG_ON(BITS_PER_LONG != 64);
	writeq((u64)high << 32 | low, dev->pci->uar + offset);
}

/*
 * Whether the card has stopped answering: commands fail at once then, and the
 * card reaches no memory any more.
 */
static inline bool rhca_failed(const struct rhca_dev *dev)
{
	return rhca_is_lost(READ_ONCE(dev->pci->state));
}

/* Whether the core takes events. */
static inline bool rhca_has_users(const struct rhca_dev *dev)
{
	return rhca_is_offered(READ_ONCE(dev->pci->state));
}

/* The card forgets everything and leaves host memory alone. */
int rhca_reset(struct rhca_pci *pci);
/* Let the card do DMA, unless it has been switched off. */
void rhca_let_master(struct rhca_pci *pci);
/* No DMA any more, whoever starts or stops the card now. */
void rhca_switch_off(struct rhca_pci *pci);
/*
 * Give the card up: no more commands or DMA; soon users are told, and it
 * restarts. In any context. What the card had of memory is free when this
 * returns.
 */
void rhca_fail(struct rhca_dev *dev, const char *why);
/* The same, soon, for who holds a lock. */
void rhca_fail_soon(struct rhca_dev *dev, const char *why);
/* An interrupt did not come: somebody has found what it was for. */
void rhca_count_lost(struct rhca_dev *dev, int irq);
/* Give up a card that is lost, even if nobody talks to it. */
void rhca_check_health(struct rhca_dev *dev);

#endif /* RHCA_CARD_H */
