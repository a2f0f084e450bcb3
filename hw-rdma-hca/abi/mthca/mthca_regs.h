/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * InfiniHost III Lx, without memory of its own: registers and doorbells, as
 * Linux's ib_mthca and libmthca and iPXE's arbel drive them. All are big-endian.
 *
 * BAR 0 has the size of RDMA_HCA_BAR0_SIZE, BAR 2 that of RDMA_HCA_BAR2_SIZE.
 */
#ifndef MTHCA_REGS_H
#define MTHCA_REGS_H

#include "../rdma_hca_types.h"

#define MTHCA_PCI_VENDOR_ID	0x15b3
#define MTHCA_PCI_DEVICE_ID	0x6274
#define MTHCA_PCI_REVISION	0xa0

/* BAR 0. The HCR's words are those of RDMA_HCA_HCR. */
#define MTHCA_HCR		0x80680
#define MTHCA_RESET		0xf0010

/* QUERY_FW tells where these are; each has a page of its own. */
#define MTHCA_CLEAR_INT		0x90000
#define MTHCA_CLEAR_INT_SIZE	8
#define MTHCA_EQ_ARM		0x91000	/* 64 bits, one for each EQ */
#define MTHCA_EQ_ARM_SIZE	8
#define MTHCA_EQ_SET_CI		0x92000	/* of each EQ a word, in 8 bytes */
#define MTHCA_EQ_SET_CI_STRIDE	8
#define MTHCA_CATAS		0x93000	/* reads 0 while all is well */
#define MTHCA_CATAS_WORDS	16
#define MTHCA_CATAS_INTERNAL	1	/* the first word: its top byte is the kind */

/* In each page of BAR 2: a doorbell's first word is its high one. */
#define MTHCA_SEND_DB		0x10
#define MTHCA_CQ_DB		0x20

/* Send doorbell: WQEs from a counter on; opcode, fence and size of the first. */
#define MTHCA_SEND_DB_COUNT	RDMA_HCA_MASK(31, 24)	/* high word */
#define MTHCA_SEND_DB_COUNTER	RDMA_HCA_MASK(23, 8)
#define MTHCA_SEND_DB_FENCE	RDMA_HCA_MASK(5, 5)
#define MTHCA_SEND_DB_OPCODE	RDMA_HCA_MASK(4, 0)
#define MTHCA_SEND_DB_QPN	RDMA_HCA_MASK(31, 8)	/* low word */
#define MTHCA_SEND_DB_SIZE	RDMA_HCA_MASK(5, 0)

/* CQ doorbell; its low word is the consumer counter. */
#define MTHCA_CQ_DB_SN		RDMA_HCA_MASK(29, 28)	/* high word */
#define MTHCA_CQ_DB_CMD		RDMA_HCA_MASK(26, 24)
#define MTHCA_CQ_DB_CQN		RDMA_HCA_MASK(23, 0)
#define MTHCA_CQ_DB_ARM_SOLICITED	1
#define MTHCA_CQ_DB_ARM_NEXT		2
#define MTHCA_CQ_DB_ARM_AT		3	/* at the given counter */

#endif /* MTHCA_REGS_H */
