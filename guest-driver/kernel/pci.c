// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI function: probe and remove, and what the bus and the machine have done
 * to the card behind it.
 */
#include <linux/module.h>

#include "devlink.h"
#include "netdev.h"
#include "recovery.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("rdma-hca RDMA host channel adapter");
MODULE_LICENSE("Dual BSD/GPL");

static int rhca_check_bars(struct pci_dev *pdev)
{
	if ((pci_resource_flags(pdev, RDMA_HCA_BAR0) & IORESOURCE_MEM) &&
	    (pci_resource_flags(pdev, RDMA_HCA_BAR2) & IORESOURCE_MEM) &&
	    pci_resource_len(pdev, RDMA_HCA_BAR0) >= RDMA_HCA_BAR0_SIZE &&
	    pci_resource_len(pdev, RDMA_HCA_BAR2) >= 2 * RDMA_HCA_UAR_PAGE_SIZE)
		return 0;
	dev_err(&pdev->dev, "BARs are missing or too small\n");
	return -ENODEV;
}

static int rhca_map_bars(struct rhca_pci *pci)
{
	pci->bar0 = pci_iomap(pci->pdev, RDMA_HCA_BAR0, RDMA_HCA_BAR0_SIZE);
	if (!pci->bar0)
		return -ENOMEM;
	pci->uar = pci_iomap(pci->pdev, RDMA_HCA_BAR2, RDMA_HCA_UAR_PAGE_SIZE);
	if (!pci->uar) {
		pci_iounmap(pci->pdev, pci->bar0);
		return -ENOMEM;
	}
	return 0;
}

static void rhca_unmap_bars(struct rhca_pci *pci)
{
	pci_iounmap(pci->pdev, pci->uar);
	pci_iounmap(pci->pdev, pci->bar0);
}

static int rhca_enable(struct rhca_pci *pci)
{
	struct pci_dev *pdev = pci->pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = rhca_check_bars(pdev);
	if (err)
		goto disable;
	err = pci_request_regions(pdev, RHCA_NAME);
	if (err)
		goto disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto release;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	err = rhca_map_bars(pci);
	if (err)
		goto release;
	pci_save_state(pdev);
	return 0;

release:
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
	return err;
}

static void rhca_disable(struct rhca_pci *pci)
{
	rhca_unmap_bars(pci);
	pci_release_regions(pci->pdev);
	pci_disable_device(pci->pdev);
}

static struct rhca_pci *rhca_pci_alloc(struct pci_dev *pdev)
{
	struct rhca_pci *pci;

	pci = kzalloc(sizeof(*pci), GFP_KERNEL);
	if (!pci)
		return NULL;
	pci->pdev = pdev;
	if (rhca_recovery_init(pci)) {
		kfree(pci);
		return NULL;
	}
	return pci;
}

static void rhca_pci_free(struct rhca_pci *pci)
{
	rhca_recovery_cleanup(pci);
	kfree(pci);
}

static int rhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct rhca_pci *pci;
	int err;

	pci = rhca_pci_alloc(pdev);
	if (!pci)
		return -ENOMEM;
	err = rhca_devlink_create(pci);
	if (err)
		goto free;
	err = rhca_enable(pci);
	if (err)
		goto devlink;
	err = rhca_first_start(pci);
	if (err)
		goto eth;
	pci_set_drvdata(pdev, pci);
	rhca_devlink_register(pci);
	rhca_watch(pci);
	return 0;

eth:
	rhca_eth_destroy(pci);
	rhca_disable(pci);
devlink:
	rhca_devlink_destroy(pci);
free:
	rhca_pci_free(pci);
	return err;
}

static void rhca_remove(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);

	rhca_unwatch(pci);
	rhca_devlink_unregister(pci);
	rhca_halt(pci, RHCA_HALT_REMOVAL, NULL);
	rhca_eth_destroy(pci);
	/* Nothing of the card's may be left running, whatever failed above. */
	rhca_reset(pci);
	rhca_disable(pci);
	rhca_devlink_destroy(pci);
	rhca_pci_free(pci);
}

/*
 * The machine goes down or boots another kernel: only stop all DMA. That does
 * not wait for pci->lock: a stop waits for users of the device.
 */
static void rhca_shutdown(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);

	rhca_switch_off(pci);
	rhca_reset(pci);
}

/* A function-level reset that somebody asks for while the driver is bound. */
static void rhca_reset_prepare(struct pci_dev *pdev)
{
	rhca_halt(pci_get_drvdata(pdev), RHCA_HALT_RESET, NULL);
}

static void rhca_reset_done(struct pci_dev *pdev)
{
	rhca_continue(pci_get_drvdata(pdev), RHCA_HALT_RESET);
}

/*
 * The bus has lost something between the card and the machine: the card is not
 * to be trusted before it has been reset, be the link good or not.
 */
static pci_ers_result_t rhca_error_detected(struct pci_dev *pdev,
					    pci_channel_state_t state)
{
	rhca_halt(pci_get_drvdata(pdev), RHCA_HALT_BUS,
		  "the bus reports an error");
	return state == pci_channel_io_perm_failure ?
	       PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_NEED_RESET;
}

/* The slot may have been reset: what the card knew of the bus is gone. */
static pci_ers_result_t rhca_slot_reset(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	pci_save_state(pdev);
	return rhca_reset(pci) ? PCI_ERS_RESULT_DISCONNECT :
				 PCI_ERS_RESULT_RECOVERED;
}

static void rhca_error_resume(struct pci_dev *pdev)
{
	rhca_continue(pci_get_drvdata(pdev), RHCA_HALT_BUS);
}

/* The card keeps nothing while it sleeps. */
static int rhca_suspend(struct device *device)
{
	rhca_halt(dev_get_drvdata(device), RHCA_HALT_SLEEP, NULL);
	return 0;
}

static int rhca_resume(struct device *device)
{
	rhca_continue(dev_get_drvdata(device), RHCA_HALT_SLEEP);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(rhca_pm_ops, rhca_suspend, rhca_resume);

static const struct pci_error_handlers rhca_err_handlers = {
	.error_detected = rhca_error_detected,
	.slot_reset = rhca_slot_reset,
	.resume = rhca_error_resume,
	.reset_prepare = rhca_reset_prepare,
	.reset_done = rhca_reset_done,
};

static const struct pci_device_id rhca_pci_ids[] = {
	{ PCI_DEVICE(RDMA_HCA_PCI_VENDOR_ID, RDMA_HCA_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, rhca_pci_ids);

static struct pci_driver rhca_pci_driver = {
	.name = RHCA_NAME,
	.id_table = rhca_pci_ids,
	.probe = rhca_probe,
	.remove = rhca_remove,
	.shutdown = rhca_shutdown,
	.err_handler = &rhca_err_handlers,
	.driver.pm = pm_sleep_ptr(&rhca_pm_ops),
};
module_pci_driver(rhca_pci_driver);
