// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The card below all commands: whether it is there, its reset, and giving it
 * up when it does not answer.
 */
#include <linux/iopoll.h>

#include "card.h"

#define RHCA_RESET_TIMEOUT_SECS	10

/* Table 3-1-2. */
int rhca_reset(struct rhca_pci *pci)
{
	void __iomem *reset = pci->bar0 + RDMA_HCA_RESET;
	u32 value;
	int err;

	writel(1, reset);
	err = read_poll_timeout(readl, value,
				!value || PCI_POSSIBLE_ERROR(value), 1000,
				RHCA_RESET_TIMEOUT_SECS * USEC_PER_SEC, false,
				reset);
	if (!err && PCI_POSSIBLE_ERROR(value))
		err = -ENODEV;
	if (err)
		dev_err(&pci->pdev->dev, "card does not leave reset\n");
	return err;
}

void rhca_let_master(struct rhca_pci *pci)
{
	spin_lock_irq(&pci->state_lock);
	if (pci->state != RHCA_OFF)
		pci_set_master(pci->pdev);
	spin_unlock_irq(&pci->state_lock);
}

void rhca_switch_off(struct rhca_pci *pci)
{
	/* Behind that nobody lets it master the bus again. */
	rhca_life(pci, RHCA_SHUTDOWN);
	pci_clear_master(pci->pdev);
}

void rhca_fail(struct rhca_dev *dev, const char *why)
{
	enum rhca_state before;

	/*
	 * What is freed from now on must not be written by the card. Who finds
	 * the card failed relies on that, whoever was first to notice.
	 */
	pci_clear_master(dev->pdev);
	before = rhca_life(dev->pci, RHCA_FAIL);
	if (rhca_is_lost(before))
		return;
	dev_err(&dev->pdev->dev, "card failed: %s\n", why);
	WRITE_ONCE(dev->pci->failure, why);
	dev->pci->failures++;
	dev->pci->failed_at = jiffies;
	/* Before there are users, and behind them, there is nobody to tell. */
	if (before != RHCA_PRIVATE)
		queue_work(dev->pci->wq, &dev->failure);
}

void rhca_fail_soon(struct rhca_dev *dev, const char *why)
{
	WRITE_ONCE(dev->trouble, why);
	if (!rhca_failed(dev))
		mod_delayed_work(system_wq, &dev->health, 0);
}

void rhca_count_lost(struct rhca_dev *dev, int irq)
{
	dev->pci->lost_interrupts++;
	dev_warn_ratelimited(&dev->pdev->dev, "interrupt %d was lost\n", irq);
}

/* --- health ------------------------------------------------------------- */

/* Whether the card may do its work, which needs both. */
static bool rhca_is_there(struct rhca_pci *pci)
{
	u16 needed = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	u16 command;

	pci_read_config_word(pci->pdev, PCI_COMMAND, &command);
	return !PCI_POSSIBLE_ERROR(command) && (command & needed) == needed;
}

/* The first command writes the token, which stays until a reset. */
static bool rhca_was_reset(struct rhca_pci *pci)
{
	return !readl(pci->bar0 + RDMA_HCA_HCR + RDMA_HCA_HCR_TOKEN);
}

void rhca_check_health(struct rhca_dev *dev)
{
	if (rhca_failed(dev))
		return;
	if (!rhca_is_there(dev->pci))
		rhca_fail(dev, "it is gone, or its configuration is lost");
	else if (rhca_was_reset(dev->pci))
		rhca_fail(dev, "it has been reset");
	else if (READ_ONCE(dev->trouble))
		rhca_fail(dev, dev->trouble);
}
