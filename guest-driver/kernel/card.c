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

bool rhca_is_there(struct rhca_pci *pci)
{
	u16 needed = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	u16 command;

	pci_read_config_word(pci->pdev, PCI_COMMAND, &command);
	return !PCI_POSSIBLE_ERROR(command) && (command & needed) == needed;
}

void rhca_fail(struct rhca_dev *dev, const char *why)
{
	if (test_and_set_bit(0, &dev->failed))
		return;
	dev_err(&dev->pdev->dev, "card failed: %s\n", why);
	/* What is freed from now on must not be written by the card. */
	pci_clear_master(dev->pdev);
	dev->on_failure(dev);
}
