/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The Ethernet function of a RoCE card: what netdev.c (the interface),
 * ethtool.c (its settings) and ring.c, tx.c, rx.c (its rings) share.
 */
#ifndef RHCA_ETH_H
#define RHCA_ETH_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/timer.h>

#include "rdma_hca_eth.h"

#include "card.h"

#define RHCA_ETH_DEFAULT_LOG_RING	8
/* A ring must have room for all pieces of a frame. */
#define RHCA_ETH_MIN_LOG_TX		5
#define RHCA_ETH_MIN_LOG_RX		RDMA_HCA_ETH_MIN_LOG_RING

struct page_pool;
struct rhca_eth;

/* A descriptor that the card may be using, and what it stands for. */
struct rhca_tx_slot {
	struct sk_buff *skb;	/* in a frame's first */
	dma_addr_t dma;
	u16 len;		/* 0: it is no piece of the frame */
	bool is_page;		/* mapped as such */
	u16 last;		/* in a frame's first: index of its last */
};

/* A piece of a page of the ring's pool. */
struct rhca_rx_slot {
	struct page *page;
	unsigned int offset;
};

/* The memory of a ring. Indices count without wrapping at its size. */
struct rhca_tx_mem {
	struct rdma_hca_eth_tx *ring;
	dma_addr_t dma;
	struct rhca_tx_slot *slot;
	u16 size;		/* power of two */
	u16 head;		/* next to be filled: the sender's */
	u16 tail;		/* next to be over: NAPI's */
};

struct rhca_rx_mem {
	struct rdma_hca_eth_rx *ring;
	dma_addr_t dma;
	struct rhca_rx_slot *slot;
	struct page_pool *pool;
	u16 size;		/* power of two */
	u16 head;		/* next to be filled */
	u16 tail;		/* next to be over */
	u16 buf_len;		/* for a frame... */
	u32 piece_len;		/* ...and for what Linux wants around it */
};

/* Each has one writer: NAPI, the sender, the interrupt or the look. */
struct rhca_queue_stats {
	u64 rx_packets;
	u64 rx_bytes;
	u64 rx_no_memory;	/* the ring could not be refilled */
	u64 tx_packets;
	u64 tx_bytes;
	u64 tx_tso;		/* frames that the card has cut */
	u64 tx_stopped;		/* the ring was full */
	u64 interrupts;
	u64 lost_interrupts;	/* a look has found what they were for */
};

static inline void rhca_count(u64 *stat, u64 n)
{
	WRITE_ONCE(*stat, *stat + n);
}

/* What its interrupts wait for. */
struct rhca_coalesce {
	u16 usecs;
	u16 frames;
};

/* A pair of rings, with a vector and a NAPI context for both. */
struct rhca_queue {
	struct rhca_eth *eth;
	struct napi_struct napi;
	struct rhca_tx_mem tx;
	struct rhca_rx_mem rx;
	struct timer_list refill;
	struct rhca_queue_stats stats;
	struct rhca_coalesce tx_coalesce;
	struct rhca_coalesce rx_coalesce;
	/* As the last look saw them: whether something waited, and where. */
	bool waits;
	u16 tx_waiting;
	u16 rx_waiting;
	u16 index;
	int irq;
	bool placed;		/* it has had a processor, which... */
	struct cpumask cpus;	/* ...who operates it may have changed */
	char name[32];
};

/* Receive-side scaling: what the card is told when there are several rings. */
struct rhca_rss {
	u32 types;		/* RDMA_HCA_RSS_* */
	u8 key[RDMA_HCA_RSS_KEY_SIZE];
	u8 table[RDMA_HCA_RSS_TABLE_SIZE];
};

/* Flow control of the link: PAUSE frames that count, and that are sent. */
struct rhca_pause {
	bool rx;
	bool tx;
};

/* What the card had counted at the last look, since its reset. */
struct rhca_eth_seen {
	bool valid;		/* since the rings were opened */
	u64 errors;		/* of memory and frames */
	u64 bad_doorbells;
};

/*
 * The interface outlives a restart of the card: it keeps its addresses and is
 * detached in between. RTNL protects what is not the rings' own.
 */
struct rhca_eth {
	struct net_device *ndev;
	struct rhca_pci *pci;
	struct rhca_dev *dev;	/* NULL: the card is stopped */
	struct rhca_queue queue[RDMA_HCA_ETH_MAX_QUEUES];
	u8 num_queues;		/* that are in use when it is open */
	u8 max_queues;		/* as many as card and vectors allow */
	bool open;		/* the card has the rings */
	u8 log_tx;		/* of the rings when they are next opened */
	u8 log_rx;
	u32 speed;		/* Mbit/s */
	struct rhca_rss rss;
	struct rhca_pause pause;
	bool can_pause;
	bool filter_unknown;	/* the card has not taken the last one */
	struct rhca_eth_seen seen;
	struct work_struct rx_mode;
	struct work_struct reset;
};

static inline struct rhca_eth *rhca_eth_of(struct net_device *ndev)
{
	return netdev_priv(ndev);
}

static inline struct device *rhca_eth_dma(struct rhca_eth *eth)
{
	return &eth->pci->pdev->dev;
}

static inline void rhca_eth_doorbell(struct rhca_queue *queue, u32 offset,
				     u16 index)
{
	writel(index, queue->eth->pci->bar0 + RDMA_HCA_ETH_DB +
			      queue->index * RDMA_HCA_ETH_DB_STRIDE + offset);
}

/* ring.c */
/* Add and remove the NAPI contexts. */
void rhca_rings_init(struct rhca_eth *eth);
void rhca_rings_cleanup(struct rhca_eth *eth);
/* Give the card rings for the interface's MTU; eth->dev is there. */
int rhca_rings_open(struct rhca_eth *eth);
/*
 * Exchange them for others, @num pairs, as MTU and sizes are now. If there is
 * no memory for these, all stays as it was. If the card does not take them it
 * has failed.
 */
int rhca_rings_exchange(struct rhca_eth *eth, u8 num);
void rhca_rings_close(struct rhca_eth *eth);
/* Once a second: handle what no interrupt has told of. Caller holds RTNL. */
void rhca_rings_look(struct rhca_eth *eth);
/* Have NAPI look at all rings, and arm them. */
void rhca_rings_poll(struct rhca_eth *eth);
/* Tell the card what has changed, if it has rings. */
int rhca_rings_set_rss(struct rhca_eth *eth);
int rhca_rings_set_coalesce(struct rhca_queue *queue);

/* tx.c */
int rhca_tx_alloc(struct rhca_eth *eth, struct rhca_tx_mem *tx);
/* Its frames are gone. */
void rhca_tx_free(struct rhca_eth *eth, struct rhca_tx_mem *tx);
netdev_tx_t rhca_start_xmit(struct sk_buff *skb, struct net_device *ndev);
netdev_features_t rhca_features_check(struct sk_buff *skb,
				      struct net_device *ndev,
				      netdev_features_t features);
/* Take back frames that have been sent; returns how many. */
int rhca_tx_clean(struct rhca_queue *queue, int budget);
void rhca_tx_arm(struct rhca_queue *queue);
/* A guess of who is not NAPI: something is over. */
bool rhca_tx_waits(struct rhca_queue *queue);
/* Also those that the card has not sent, and now never will. */
void rhca_tx_drain(struct rhca_queue *queue);

/* rx.c */
int rhca_rx_alloc(struct rhca_eth *eth, struct rhca_rx_mem *rx);
void rhca_rx_free(struct rhca_eth *eth, struct rhca_rx_mem *rx);
/* Deliver up to @budget frames, and refill the ring; returns how many. */
int rhca_rx_clean(struct rhca_queue *queue, int budget);
void rhca_rx_refill_timer(struct timer_list *timer);
/* As rhca_tx_waits(). */
bool rhca_rx_waits(struct rhca_queue *queue);

/* ethtool.c */
extern const struct ethtool_ops rhca_ethtool_ops;
/* Tell a card that begins anew what a user has set. */
int rhca_pause_restore(struct rhca_eth *eth);
/* A key, and the rings in turn. */
void rhca_rss_init(struct rhca_eth *eth);
/* The same number of places for each ring, unless a user has said otherwise. */
void rhca_rss_spread(struct rhca_eth *eth);

#endif /* RHCA_ETH_H */
