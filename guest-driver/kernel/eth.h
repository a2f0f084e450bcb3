/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The Ethernet function of a RoCE card: what netdev.c (the interface) and
 * ring.c (its rings) share.
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

struct rhca_eth;

/* A descriptor that the card may be using, and what it stands for. */
struct rhca_tx_slot {
	struct sk_buff *skb;	/* in a frame's first */
	dma_addr_t dma;
	u16 len;
	bool is_page;		/* mapped as such */
	u16 last;		/* in a frame's first: index of its last */
};

struct rhca_rx_slot {
	struct sk_buff *skb;
	dma_addr_t dma;
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
	u16 size;		/* power of two */
	u16 head;		/* next to be filled */
	u16 tail;		/* next to be over */
	u16 buf_len;
};

struct rhca_tx {
	struct napi_struct napi;
	struct rhca_tx_mem mem;
	int irq;
	char name[32];
};

struct rhca_rx {
	struct napi_struct napi;
	struct rhca_rx_mem mem;
	struct timer_list refill;
	int irq;
	char name[32];
};

/*
 * The interface outlives a restart of the card: it keeps its addresses and is
 * detached in between. RTNL protects what is not the rings' own.
 */
struct rhca_eth {
	struct net_device *ndev;
	struct rhca_pci *pci;
	struct rhca_dev *dev;	/* NULL: the card is stopped */
	struct rhca_tx tx;
	struct rhca_rx rx;
	bool open;		/* the card has the rings */
	u8 log_tx;		/* of the rings when they are next opened */
	u8 log_rx;
	u32 speed;		/* Mbit/s */
	struct work_struct rx_mode;
	struct work_struct reset;
};

/* ring.c */
/* Add and remove both NAPI contexts. */
void rhca_rings_init(struct rhca_eth *eth);
void rhca_rings_cleanup(struct rhca_eth *eth);
/* Give the card rings for the interface's MTU; eth->dev is there. */
int rhca_rings_open(struct rhca_eth *eth);
/*
 * Exchange them for others, as MTU and sizes are now. If there is no memory for
 * these, all stays as it was. If the card does not take them it has failed.
 */
int rhca_rings_exchange(struct rhca_eth *eth);
void rhca_rings_close(struct rhca_eth *eth);
netdev_tx_t rhca_start_xmit(struct sk_buff *skb, struct net_device *ndev);

#endif /* RHCA_ETH_H */
