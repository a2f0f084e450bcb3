// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Commands: the HCR (interface document 3.1.1), by polling its GO bit. The card
 * can also tell the end of a command by an event: that takes some times as long.
 */
#include <linux/delay.h>
#include <linux/iopoll.h>

#include "card.h"

/* Generous: the card may be emulated on a busy machine. */
#define RHCA_CMD_TIMEOUT_SECS	10
/*
 * A card answers within microseconds, sooner than an interrupt would: first
 * look without a pause, then with short ones. Who has waited for long does
 * not mind a longer one, and a card that hangs costs no processor.
 */
#define RHCA_SPIN_US		100
#define RHCA_SHORT_PAUSE_US	20
#define RHCA_SHORT_PAUSES_US	2000
#define RHCA_LONG_PAUSE_US	1000

static u32 rhca_hcr_read(struct rhca_dev *dev, u32 offset)
{
	return readl(dev->pci->bar0 + RDMA_HCA_HCR + offset);
}

static void rhca_hcr_write(struct rhca_dev *dev, u32 offset, u32 value)
{
	writel(value, dev->pci->bar0 + RDMA_HCA_HCR + offset);
}

/* A register that the card leaves as it is; a write costs more than all else. */
static void rhca_hcr_put(struct rhca_dev *dev, u32 offset, u32 value)
{
	u32 *written = &dev->cmd.written[offset / sizeof(u32)];

	if (*written != value)
		rhca_hcr_write(dev, offset, value);
	*written = value;
}

/* Those that man pages of verbs have, but for what a driver alone can cause. */
static int rhca_status_to_errno(u8 status)
{
	static const struct {
		u8 status;
		int err;
	} table[] = {
		{ RDMA_HCA_STAT_OK,		0 },
		{ RDMA_HCA_STAT_INTERNAL_ERR,	-EIO },
		{ RDMA_HCA_STAT_BAD_OP,		-EOPNOTSUPP },
		{ RDMA_HCA_STAT_BAD_PARAM,	-EINVAL },
		{ RDMA_HCA_STAT_BAD_SYS_STATE,	-EIO },
		{ RDMA_HCA_STAT_BAD_NVMEM,	-EIO },
		{ RDMA_HCA_STAT_BAD_RESOURCE,	-EINVAL },
		{ RDMA_HCA_STAT_RESOURCE_BUSY,	-EBUSY },
		{ RDMA_HCA_STAT_EXCEED_LIM,	-ENOMEM },
		{ RDMA_HCA_STAT_BAD_RES_STATE,	-EINVAL },
		{ RDMA_HCA_STAT_BAD_INDEX,	-EINVAL },
		{ RDMA_HCA_STAT_BAD_QP_STATE,	-EINVAL },
		{ RDMA_HCA_STAT_BAD_SEG_PARAM,	-EFAULT },
		{ RDMA_HCA_STAT_REG_BOUND,	-EBUSY },
		{ RDMA_HCA_STAT_BAD_PKT,	-EBADMSG },
		{ RDMA_HCA_STAT_BAD_SIZE,	-EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].status == status)
			return table[i].err;
	return -EIO;
}

/* @ctrl: what the HCR's last word reads now. */
static bool rhca_is_over(const struct rhca_dev *dev, u32 ctrl)
{
	return !(ctrl & RDMA_HCA_HCR_GO) || PCI_POSSIBLE_ERROR(ctrl) ||
	       rhca_failed(dev);
}

/*
 * Wait until the command @op is over; *@ctrl is then the HCR's last word. The
 * card leaves @op there: registers that nobody answers for read as all ones or
 * as zero.
 */
static int rhca_wait_go(struct rhca_dev *dev, u16 op, u32 *ctrl)
{
	int err;

	err = read_poll_timeout_atomic(rhca_hcr_read, *ctrl,
				       rhca_is_over(dev, *ctrl), 0,
				       RHCA_SPIN_US, false, dev,
				       RDMA_HCA_HCR_CTRL);
	if (err)
		err = read_poll_timeout(rhca_hcr_read, *ctrl,
					rhca_is_over(dev, *ctrl),
					RHCA_SHORT_PAUSE_US,
					RHCA_SHORT_PAUSES_US, false, dev,
					RDMA_HCA_HCR_CTRL);
	if (err)
		err = read_poll_timeout(rhca_hcr_read, *ctrl,
					rhca_is_over(dev, *ctrl),
					RHCA_LONG_PAUSE_US,
					RHCA_CMD_TIMEOUT_SECS * USEC_PER_SEC,
					false, dev, RDMA_HCA_HCR_CTRL);
	if (err)
		rhca_fail(dev, "no answer to a command");
	else if (!rhca_failed(dev) && FIELD_GET(RDMA_HCA_HCR_OP, *ctrl) != op)
		rhca_fail(dev, "registers do not answer");
	return err || rhca_failed(dev) ? -EIO : 0;
}

static void rhca_post(struct rhca_dev *dev, u32 ctrl, u32 in_modifier,
		      u64 in_param, u64 out_param)
{
	rhca_hcr_put(dev, RDMA_HCA_HCR_IN_PARAM_H, upper_32_bits(in_param));
	rhca_hcr_put(dev, RDMA_HCA_HCR_IN_PARAM_L, lower_32_bits(in_param));
	rhca_hcr_put(dev, RDMA_HCA_HCR_IN_MODIFIER, in_modifier);
	/*
	 * A card that was reset unseen has forgotten it, and would write to
	 * address 0. A command that has no answer does not look at it.
	 */
	if (out_param) {
		rhca_hcr_write(dev, RDMA_HCA_HCR_OUT_PARAM_H,
			       upper_32_bits(out_param));
		rhca_hcr_write(dev, RDMA_HCA_HCR_OUT_PARAM_L,
			       lower_32_bits(out_param));
	}
	rhca_hcr_put(dev, RDMA_HCA_HCR_TOKEN,
		     FIELD_PREP(RDMA_HCA_HCR_TOKEN_MASK,
				RDMA_HCA_CMD_POLL_TOKEN));
	rhca_hcr_write(dev, RDMA_HCA_HCR_CTRL, ctrl | RDMA_HCA_HCR_GO);
}

static int rhca_cmd_poll(struct rhca_dev *dev, u32 ctrl, u32 in_modifier,
			 u64 in_param, u64 out_param, u8 *status)
{
	u32 result;
	int err;

	rhca_post(dev, ctrl, in_modifier, in_param, out_param);
	err = rhca_wait_go(dev, FIELD_GET(RDMA_HCA_HCR_OP, ctrl), &result);
	*status = FIELD_GET(RDMA_HCA_HCR_STATUS, result);
	return err;
}

int rhca_cmd(struct rhca_dev *dev, u16 op, u8 op_modifier, u32 in_modifier,
	     u64 in_param, u64 out_param)
{
	u32 ctrl = FIELD_PREP(RDMA_HCA_HCR_OP, op) |
		   FIELD_PREP(RDMA_HCA_HCR_OP_MODIFIER, op_modifier);
	struct rhca_cmd *cmd = &dev->cmd;
	int err = -EIO;
	u8 status;

	/* The HCR is free: the command before is over, or the card failed. */
	mutex_lock(&cmd->lock);
	if (!rhca_failed(dev))
		err = rhca_cmd_poll(dev, ctrl, in_modifier, in_param, out_param,
				    &status);
	mutex_unlock(&cmd->lock);
	if (err)
		return err;

	if (status != RDMA_HCA_STAT_OK)
		dev_dbg(&dev->pdev->dev,
			"command %#x modifier %#x: status %#x\n", op,
			in_modifier, status);
	return rhca_status_to_errno(status);
}

/* @err: of a command that takes something from the card. */
static void rhca_check_revoked(struct rhca_dev *dev, u16 op, u32 in_modifier,
			       int err)
{
	if (!err || rhca_failed(dev))
		return;
	dev_err(&dev->pdev->dev, "command %#x modifier %#x: %d\n", op,
		in_modifier, err);
	rhca_fail(dev, "it refuses to give something back");
}

void rhca_cmd_revoke(struct rhca_dev *dev, u16 op, u8 op_modifier,
		     u32 in_modifier, u64 in_param)
{
	int err;

	err = rhca_cmd(dev, op, op_modifier, in_modifier, in_param, 0);
	rhca_check_revoked(dev, op, in_modifier, err);
}

int rhca_cmd_try_revoke(struct rhca_dev *dev, u16 op, u8 op_modifier,
			u32 in_modifier, u64 in_param)
{
	int err;

	err = rhca_cmd(dev, op, op_modifier, in_modifier, in_param, 0);
	if (err == -EBUSY)
		return err;
	rhca_check_revoked(dev, op, in_modifier, err);
	return 0;
}

int rhca_mailbox_alloc(struct rhca_dev *dev, struct rhca_mailbox *box)
{
	box->buf = dma_pool_zalloc(dev->cmd.pool, GFP_KERNEL, &box->dma);
	return box->buf ? 0 : -ENOMEM;
}

void rhca_mailbox_free(struct rhca_dev *dev, struct rhca_mailbox *box)
{
	dma_pool_free(dev->cmd.pool, box->buf, box->dma);
}

int rhca_cmd_init(struct rhca_dev *dev)
{
	struct rhca_cmd *cmd = &dev->cmd;
	int err;

	mutex_init(&cmd->lock);
	cmd->pool = dma_pool_create(RHCA_NAME "_mailbox", &dev->pdev->dev,
				    RDMA_HCA_MAILBOX_SIZE,
				    RDMA_HCA_MAILBOX_SIZE, 0);
	if (!cmd->pool)
		return -ENOMEM;
	err = rhca_mailbox_alloc(dev, &cmd->blank);
	if (err)
		dma_pool_destroy(cmd->pool);
	return err;
}

void rhca_cmd_cleanup(struct rhca_dev *dev)
{
	rhca_mailbox_free(dev, &dev->cmd.blank);
	dma_pool_destroy(dev->cmd.pool);
}
