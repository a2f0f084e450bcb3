/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: PCI identity, BARs, registers, doorbells.
 *
 * Registers and doorbells are little-endian (interface document, 3.1).
 */
#ifndef RDMA_HCA_REGS_H
#define RDMA_HCA_REGS_H

#include "rdma_hca_sizes.h"
#include "rdma_hca_types.h"

/* The experimental range of QEMU's PCI IDs (docs/specs/pci-ids.rst). */
#define RDMA_HCA_PCI_VENDOR_ID		0x1af4
#define RDMA_HCA_PCI_DEVICE_ID		0x10f0
#define RDMA_HCA_PCI_REVISION		0x01

/* Changes when an old driver cannot drive a new card; see QUERY_FW. */
#define RDMA_HCA_INTERFACE_VERSION	2

/*
 * BAR 0 (64 bit): HCR, reset, event-queue doorbells, MSI-X. For the kernel
 * only.
 */
#define RDMA_HCA_BAR0			0
#define RDMA_HCA_BAR0_SIZE		0x100000
/* BAR 2 (64 bit): UAR pages. */
#define RDMA_HCA_BAR2			2
/* BAR 4 (64 bit, prefetchable): device memory, if the card has any. */
#define RDMA_HCA_BAR4			4

/*
 * HCR, the command register (3.1.1, table 3-1-3). The write of the last word
 * with GO set starts the command; GO reads 1 until it is done.
 */
#define RDMA_HCA_HCR			0x80000
#define RDMA_HCA_HCR_SIZE		0x1c
#define RDMA_HCA_HCR_IN_PARAM_H		0x00
#define RDMA_HCA_HCR_IN_PARAM_L		0x04
#define RDMA_HCA_HCR_IN_MODIFIER	0x08
#define RDMA_HCA_HCR_OUT_PARAM_H	0x0c
#define RDMA_HCA_HCR_OUT_PARAM_L	0x10
#define RDMA_HCA_HCR_TOKEN		0x14
#define RDMA_HCA_HCR_CTRL		0x18

#define RDMA_HCA_HCR_TOKEN_MASK		RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_HCR_STATUS		RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_HCR_GO			RDMA_HCA_MASK(23, 23)
#define RDMA_HCA_HCR_EVENT		RDMA_HCA_MASK(22, 22)
#define RDMA_HCA_HCR_OP_MODIFIER	RDMA_HCA_MASK(19, 12)
#define RDMA_HCA_HCR_OP			RDMA_HCA_MASK(11, 0)

/*
 * Event-queue doorbells (ours), one 32-bit register for each EQ. A write
 * sets the consumer index (low 24 bits, counted without wrapping at the
 * queue's size); with ARM set it also asks for one interrupt, which is sent
 * at once if an entry at or after that index is there already.
 */
#define RDMA_HCA_EQ_DB			0x90000
#define RDMA_HCA_EQ_DB_STRIDE		4
#define RDMA_HCA_EQ_DB_ARM		RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_EQ_DB_CI		RDMA_HCA_MASK(23, 0)

/*
 * Ethernet doorbells (ours), for the rings of SETUP_ETH. TAIL: the ring's
 * producer index. ARM: the index of the next descriptor that software will
 * look at; one interrupt is sent when that one is done, at once if it is
 * already. Indices are 16 bits and count without wrapping at the ring's size.
 * Each pair of rings has its own registers.
 */
#define RDMA_HCA_ETH_DB			0x91000
#define RDMA_HCA_ETH_DB_TX_TAIL		0x00
#define RDMA_HCA_ETH_DB_RX_TAIL		0x04
#define RDMA_HCA_ETH_DB_TX_ARM		0x08
#define RDMA_HCA_ETH_DB_RX_ARM		0x0c
#define RDMA_HCA_ETH_DB_STRIDE		0x10

/* In BAR 0: MSI-X table, for up to 2048 vectors, and pending bits. */
#define RDMA_HCA_MSIX_TABLE		0xe0000
#define RDMA_HCA_MSIX_PBA		0xe8000
#define RDMA_HCA_MSIX_END		0xe9000

/* Reset (3.1.1, table 3-1-2). Write 1; reads 1 until the reset is over. */
#define RDMA_HCA_RESET			0xf0010

/* Page 0 is the kernel's. */
#define RDMA_HCA_UAR_KERNEL		0

/*
 * Send doorbell: one 64-bit write, or two 32-bit writes, low word first (the
 * write of the high word rings). SQ_HEAD is the place of the first WQE in
 * the send queue and SIZE its size, both in units of 16 bytes.
 *
 * SQ_HEAD follows table 7.1 of the engine document (24 bits); a driver
 * written to the 16 bits of table 3-1-7 works too.
 */
#define RDMA_HCA_SEND_DB		0x00
#define RDMA_HCA_SEND_DB_SQ_HEAD	RDMA_HCA_MASK(31, 8)	/* low word */
#define RDMA_HCA_SEND_DB_FENCE		RDMA_HCA_MASK(5, 5)
#define RDMA_HCA_SEND_DB_OPCODE		RDMA_HCA_MASK(4, 0)
#define RDMA_HCA_SEND_DB_QPN		RDMA_HCA_MASK(31, 8)	/* high word */
#define RDMA_HCA_SEND_DB_SIZE		RDMA_HCA_MASK(7, 0)

/*
 * Completion-queue doorbell (ours): written like the send doorbell. The low
 * word names the CQ and the request, the high word is the consumer index,
 * counted without wrapping at the queue's size. An arm request fires at once
 * if an entry (a solicited one for ARM_SOLICITED) at or after that index is
 * there already. Each arm gives one event.
 */
#define RDMA_HCA_CQ_DB			0x20
#define RDMA_HCA_CQ_DB_CMD		RDMA_HCA_MASK(31, 24)	/* low word */
#define RDMA_HCA_CQ_DB_CQN		RDMA_HCA_MASK(23, 0)
#define RDMA_HCA_CQ_DB_CMD_SET_CI	0
#define RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED 1
#define RDMA_HCA_CQ_DB_CMD_ARM_NEXT	2

/*
 * The card's clock (ours), for reading: 64 bits, low word first, that count
 * with the frequency of QUERY_DEV_LIM. CQEs have its low bits.
 */
#define RDMA_HCA_CLOCK			0x30

#endif /* RDMA_HCA_REGS_H */
