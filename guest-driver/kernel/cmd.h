/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* cmd.c: commands and their mailboxes. */
#ifndef RHCA_CMD_H
#define RHCA_CMD_H

#include <linux/bitfield.h>
#include <linux/dmapool.h>
#include <linux/mutex.h>

#include "rdma_hca_cmd.h"
#include "rdma_hca_cxt.h"
#include "rdma_hca_regs.h"

struct rhca_dev;

/* A mailbox: RDMA_HCA_MAILBOX_SIZE bytes, zeroed. */
struct rhca_mailbox {
	void *buf;
	dma_addr_t dma;
};

struct rhca_cmd {
	struct mutex lock;	/* one command at a time */
	/* What is in the HCR's words in front of the last one; 0 after a reset. */
	u32 written[RDMA_HCA_HCR_CTRL / sizeof(u32)];
	struct dma_pool *pool;
	struct rhca_mailbox blank;	/* nobody writes to it */
};

int rhca_cmd_init(struct rhca_dev *dev);
void rhca_cmd_cleanup(struct rhca_dev *dev);
/*
 * Execute a command; may sleep. Returns 0, the errno for the card's status,
 * or -EIO once the card has failed.
 */
int rhca_cmd(struct rhca_dev *dev, u16 op, u8 op_modifier, u32 in_modifier,
	     u64 in_param, u64 out_param);
/*
 * A command that takes from the card what it has, of the host's memory most of
 * all. When this returns the card does not reach it any more: one that does not
 * obey has failed. May sleep.
 */
void rhca_cmd_revoke(struct rhca_dev *dev, u16 op, u8 op_modifier,
		     u32 in_modifier, u64 in_param);
/* The same, but the card may keep what is in use: -EBUSY. */
int rhca_cmd_try_revoke(struct rhca_dev *dev, u16 op, u8 op_modifier,
			u32 in_modifier, u64 in_param);
int rhca_mailbox_alloc(struct rhca_dev *dev, struct rhca_mailbox *box);
void rhca_mailbox_free(struct rhca_dev *dev, struct rhca_mailbox *box);

/* A command that has an inbox, an outbox, or neither. */
static inline int rhca_cmd_in(struct rhca_dev *dev, u16 op, u32 in_modifier,
			      const struct rhca_mailbox *box)
{
	return rhca_cmd(dev, op, 0, in_modifier, box->dma, 0);
}

static inline int rhca_cmd_out(struct rhca_dev *dev, u16 op, u32 in_modifier,
			       const struct rhca_mailbox *box)
{
	return rhca_cmd(dev, op, 0, in_modifier, 0, box->dma);
}

static inline int rhca_cmd_none(struct rhca_dev *dev, u16 op, u32 in_modifier)
{
	return rhca_cmd(dev, op, 0, in_modifier, 0, 0);
}

static inline void rhca_put64(__be32 *high, __be32 *low, u64 value)
{
	*high = cpu_to_be32(upper_32_bits(value));
	*low = cpu_to_be32(lower_32_bits(value));
}

static inline u64 rhca_get64(__be32 high, __be32 low)
{
	return (u64)be32_to_cpu(high) << 32 | be32_to_cpu(low);
}

/* A MAC as the words of the interface have it: bytes 0 to 3, and 4 and 5. */
static inline u32 rhca_mac_high(const u8 *mac)
{
	return (u32)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3];
}

static inline u16 rhca_mac_low(const u8 *mac)
{
	return mac[4] << 8 | mac[5];
}

#endif /* RHCA_CMD_H */
