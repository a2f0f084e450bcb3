/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: sizes and architectural limits, which the
 * engine behind the interface has too. What a card has is in QUERY_DEV_LIM.
 */
#ifndef RDMA_HCA_SIZES_H
#define RDMA_HCA_SIZES_H

#define RDMA_HCA_NUM_PORTS		1
/* Room for P_Keys; MAX_PKEYS of QUERY_DEV_LIM says how many there are. */
#define RDMA_HCA_MAX_PKEYS		32
/* Multicast groups, and QPs in one of them. */
#define RDMA_HCA_MGM_NUM		64
#define RDMA_HCA_MGM_MAX_QPS		56

/* UAR pages (3.1.2, table 3-1-6), one for each process; they fill BAR 2. */
#define RDMA_HCA_BAR2_SIZE		0x800000
#define RDMA_HCA_UAR_PAGE_SIZE		0x1000
#define RDMA_HCA_NUM_UARS		(RDMA_HCA_BAR2_SIZE / RDMA_HCA_UAR_PAGE_SIZE)

/* Mailboxes, in bytes. */
#define RDMA_HCA_MAILBOX_SIZE		4096
#define RDMA_HCA_MGM_SIZE		256
/* GUIDs of an InfiniBand port, a management datagram. */
#define RDMA_HCA_MAX_GUIDS		8
#define RDMA_HCA_MAD_SIZE		256

/* ICM: its pages, and the entries of its tables in bytes. */
#define RDMA_HCA_ICM_PAGE_SHIFT		12
#define RDMA_HCA_QPC_SIZE		256
#define RDMA_HCA_CQC_SIZE		64
#define RDMA_HCA_EQC_SIZE		64
#define RDMA_HCA_SRQC_SIZE		64
#define RDMA_HCA_MPT_SIZE		64
#define RDMA_HCA_MTT_SIZE		8
/* Pages of a memory region. */
#define RDMA_HCA_MPT_PAGE_SHIFT_MIN	12
#define RDMA_HCA_MPT_PAGE_SHIFT_MAX	31
/* Entries of the page list of one REG_MR. */
#define RDMA_HCA_MAX_PAGE_LIST		512

/* Completion and event queues. */
#define RDMA_HCA_MAX_EQS		32
#define RDMA_HCA_CQE_SIZE		32
#define RDMA_HCA_EQE_SIZE		32

/* A WQE is made of 16-byte units and begins at a multiple of 64 bytes. */
#define RDMA_HCA_WQE_UNIT		16
#define RDMA_HCA_WQE_ALIGN		64
/* NDS has 6 bits. */
#define RDMA_HCA_MAX_SEND_WQE_SIZE	(63 * RDMA_HCA_WQE_UNIT)
/* One fetch of the RQ WQE manager (engine document, 4.4.2). */
#define RDMA_HCA_MAX_RECV_WQE_SIZE	512
/* next_unit, 30 data units, all-zero unit. */
#define RDMA_HCA_MAX_SGE		30

/* Pairs of rings of the Ethernet function (ours), a transmit and a receive one. */
#define RDMA_HCA_ETH_MAX_QUEUES		8
/* Logarithms of descriptors. */
#define RDMA_HCA_ETH_MIN_LOG_RING	4
#define RDMA_HCA_ETH_MAX_LOG_RING	12
/* A frame lies in at most so many transmit descriptors. */
#define RDMA_HCA_ETH_MAX_PIECES		20
/* Header with a VLAN tag, and what follows it at most. */
#define RDMA_HCA_ETH_HEADER_SIZE	18
#define RDMA_HCA_ETH_MAX_MTU		9000
/* What the card cuts into TCP segments, the headers of that, and the cuts. */
#define RDMA_HCA_ETH_MAX_TSO		(RDMA_HCA_ETH_HEADER_SIZE + 65535)
#define RDMA_HCA_ETH_MAX_TSO_HEADER	192
#define RDMA_HCA_ETH_MIN_MSS		64
/* Receive-side scaling, bytes. */
#define RDMA_HCA_RSS_KEY_SIZE		40
#define RDMA_HCA_RSS_TABLE_SIZE		128

#endif /* RDMA_HCA_SIZES_H */
