// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI function: probe and remove, and the start, stop and restart of the
 * card behind it. What a start does, a stop undoes in reverse.
 */
#include <linux/delay.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "rhca.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("rdma-hca RDMA host channel adapter");
MODULE_LICENSE("Dual BSD/GPL");

#define RHCA_RESET_TIMEOUT_SECS	10

/* --- failure ------------------------------------------------------------ */

void rhca_fail(struct rhca_dev *dev, const char *why)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RHCA_PORT,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	if (test_and_set_bit(0, &dev->failed))
		return;
	dev_err(&dev->pdev->dev, "card failed: %s\n", why);
	/* What is freed from now on must not be written by the card. */
	pci_clear_master(dev->pdev);
	rhca_cmd_abort(dev);
	rhca_flush_kernel(dev);
	if (!READ_ONCE(dev->registered))
		return;
	if (rhca_is_roce(dev))
		rhca_eth_fail(dev);
	ib_dispatch_event(&event);
	if (!READ_ONCE(dev->pci->removing))
		queue_work(system_long_wq, &dev->pci->restart);
}

/* --- start and stop ----------------------------------------------------- */

/* The card forgets everything and leaves host memory alone (table 3-1-2). */
static int rhca_reset(struct rhca_pci *pci)
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

static void rhca_maps_cleanup(struct rhca_dev *dev)
{
	rhca_bitmap_cleanup(&dev->uar_map);
	rhca_bitmap_cleanup(&dev->pd_map);
	rhca_bitmap_cleanup(&dev->mtt_map);
	rhca_bitmap_cleanup(&dev->mpt_map);
	rhca_bitmap_cleanup(&dev->cq_map);
	rhca_bitmap_cleanup(&dev->qp_map);
	dma_pool_destroy(dev->db_pool);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->qps);
	rhca_mcast_cleanup(dev);
}

static int rhca_maps_init(struct rhca_dev *dev)
{
	const struct rhca_caps *caps = &dev->caps;
	int err;

	dev->db_pool = dma_pool_create(RHCA_NAME "_db", &dev->pdev->dev,
				       SMP_CACHE_BYTES, SMP_CACHE_BYTES, 0);
	err = dev->db_pool ? 0 : -ENOMEM;
	if (!err)
		err = rhca_bitmap_init(&dev->qp_map, 1u << caps->log_qps,
				       caps->reserved_qps);
	if (!err)
		err = rhca_bitmap_init(&dev->cq_map, 1u << caps->log_cqs,
				       caps->reserved_cqs);
	if (!err)
		err = rhca_bitmap_init(&dev->mpt_map, 1u << caps->log_mpts,
				       caps->reserved_mpts);
	if (!err)
		err = rhca_bitmap_init(&dev->mtt_map, 1u << caps->log_mtts,
				       caps->reserved_mtts);
	if (!err)
		err = rhca_bitmap_init(&dev->pd_map, 1u << caps->log_pds,
				       caps->reserved_pds);
	if (!err)
		err = rhca_bitmap_init(&dev->uar_map, caps->num_uars,
				       RDMA_HCA_UAR_KERNEL + 1);
	if (!err)
		err = rhca_bitmap_alloc(&dev->pd_map, &dev->pdn, NULL);
	if (!err)
		err = rhca_mcast_init(dev);
	if (err)
		rhca_maps_cleanup(dev);
	return err;
}

/* From reset to a card that has its tables and event queues. */
static int rhca_start_card(struct rhca_dev *dev)
{
	int err;

	err = rhca_query_caps(dev);
	if (err)
		return err;
	err = rhca_maps_init(dev);
	if (err)
		return err;
	err = rhca_icm_init(dev);
	if (err)
		goto maps;
	err = rhca_init_hca(dev);
	if (err)
		goto icm;
	err = rhca_eqs_init(dev);
	if (err)
		goto close;
	return 0;

close:
	rhca_cmd_none(dev, RDMA_HCA_CMD_CLOSE_HCA, 0);
icm:
	rhca_icm_cleanup(dev);
maps:
	rhca_maps_cleanup(dev);
	return err;
}

static void rhca_stop_card(struct rhca_dev *dev)
{
	rhca_eqs_cleanup(dev);
	rhca_cmd_none(dev, RDMA_HCA_CMD_CLOSE_HCA, 0);
	rhca_icm_cleanup(dev);
	rhca_maps_cleanup(dev);
}

static void rhca_describe(struct rhca_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = RDMA_HCA_NUM_PORTS;
	ibdev->num_comp_vectors = max_t(u32, dev->num_eqs - 1, 1);
	ibdev->dev.parent = &dev->pdev->dev;
	strscpy(ibdev->node_desc, RHCA_NAME, sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &rhca_dev_ops);
	if (rhca_is_roce(dev))
		ib_set_device_ops(ibdev, &rhca_roce_ops);
	if (dev->caps.features & RDMA_HCA_FEATURE_MCAST)
		ib_set_device_ops(ibdev, &rhca_mcast_ops);
}

/* From here on nothing of the port is told to users any more. */
static void rhca_silence(struct rhca_dev *dev)
{
	WRITE_ONCE(dev->registered, false);
	/* Those who tell it: the event thread, and the interface. */
	rhca_eq_synchronize(&dev->eq[0]);
	rtnl_lock();
	rtnl_unlock();
}

static int rhca_register(struct rhca_dev *dev)
{
	struct ib_port_attr port = {};
	int err;

	err = rhca_query_port(&dev->ibdev, RHCA_PORT, &port);
	if (!err)
		err = rhca_query_guid(dev, &dev->ibdev.node_guid);
	if (err)
		return err;
	err = ib_register_device(&dev->ibdev, RHCA_NAME "%d", &dev->pdev->dev);
	if (err)
		rhca_silence(dev);
	return err;
}

/* Bring the port up and offer the device to the world. */
static int rhca_publish(struct rhca_dev *dev)
{
	int err;

	rhca_describe(dev);
	err = rhca_cmd_none(dev, RDMA_HCA_CMD_INIT_IB, RHCA_PORT);
	if (err)
		return err;
	rhca_diag_init(dev);
	err = rhca_is_roce(dev) ? rhca_eth_start(dev) : 0;
	if (err)
		goto diag;
	err = rhca_register(dev);
	if (err)
		goto eth;
	if (rhca_is_roce(dev))
		rhca_eth_tell_port(dev);
	rhca_debugfs_add(dev);
	dev_info(&dev->pdev->dev, "%s: board %016llx, %u event queues\n",
		 dev_name(&dev->ibdev.dev), dev->caps.board_id, dev->num_eqs);
	return 0;

eth:
	if (rhca_is_roce(dev))
		rhca_eth_stop(dev);
diag:
	rhca_diag_cleanup(dev);
	rhca_cmd_none(dev, RDMA_HCA_CMD_CLOSE_IB, RHCA_PORT);
	return err;
}

static void rhca_unpublish(struct rhca_dev *dev)
{
	rhca_debugfs_remove(dev);
	rhca_silence(dev);
	ib_unregister_device(&dev->ibdev);
	if (rhca_is_roce(dev))
		rhca_eth_stop(dev);
	/* The interface shows some of them as long as it is there. */
	rhca_diag_cleanup(dev);
	rhca_cmd_none(dev, RDMA_HCA_CMD_CLOSE_IB, RHCA_PORT);
}

/* Caller holds pci->lock. */
static int rhca_start(struct rhca_pci *pci)
{
	struct rhca_dev *dev;
	int err;

	err = rhca_reset(pci);
	if (err)
		return err;
	dev = ib_alloc_device(rhca_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->pci = pci;
	dev->pdev = pci->pdev;
	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	spin_lock_init(&dev->flush_lock);
	mutex_init(&dev->link_lock);
	pci_set_master(pci->pdev);
	err = rhca_cmd_init(dev);
	if (err)
		goto master;
	err = rhca_start_card(dev);
	if (err)
		goto cmd;
	err = rhca_publish(dev);
	if (err)
		goto card;
	pci->dev = dev;
	return 0;

card:
	rhca_stop_card(dev);
cmd:
	rhca_cmd_cleanup(dev);
master:
	pci_clear_master(pci->pdev);
	ib_dealloc_device(&dev->ibdev);
	return err;
}

/* Whether work that the card has may still end: else nobody may wait for it. */
static bool rhca_is_there(struct rhca_pci *pci)
{
	u16 needed = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	u16 command;

	pci_read_config_word(pci->pdev, PCI_COMMAND, &command);
	return !PCI_POSSIBLE_ERROR(command) && (command & needed) == needed;
}

/* Caller holds pci->lock. Does nothing if the card is stopped. */
static void rhca_stop(struct rhca_pci *pci)
{
	struct rhca_dev *dev = pci->dev;

	if (!dev)
		return;
	pci->dev = NULL;
	if (!rhca_is_there(pci))
		rhca_fail(dev, "it is gone, or its configuration is lost");
	rhca_unpublish(dev);
	rhca_stop_card(dev);
	rhca_cmd_cleanup(dev);
	pci_clear_master(pci->pdev);
	ib_dealloc_device(&dev->ibdev);
}

static void rhca_restart(struct work_struct *work)
{
	struct rhca_pci *pci = container_of(work, struct rhca_pci, restart);
	int err;

	mutex_lock(&pci->lock);
	if (!pci->removing && pci->dev && rhca_failed(pci->dev)) {
		dev_warn(&pci->pdev->dev, "restarting\n");
		rhca_stop(pci);
		/* Lost configuration is one reason why a card fails. */
		pci_restore_state(pci->pdev);
		pci_save_state(pci->pdev);
		err = rhca_start(pci);
		if (err)
			dev_err(&pci->pdev->dev, "restart failed: %d\n", err);
	}
	mutex_unlock(&pci->lock);
}

/* --- PCI ---------------------------------------------------------------- */

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

static int rhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct rhca_pci *pci;
	int err;

	pci = kzalloc(sizeof(*pci), GFP_KERNEL);
	if (!pci)
		return -ENOMEM;
	pci->pdev = pdev;
	mutex_init(&pci->lock);
	INIT_WORK(&pci->restart, rhca_restart);

	err = rhca_enable(pci);
	if (err)
		goto free;
	mutex_lock(&pci->lock);
	err = rhca_start(pci);
	mutex_unlock(&pci->lock);
	if (err)
		goto eth;
	pci_set_drvdata(pdev, pci);
	return 0;

eth:
	rhca_eth_destroy(pci);
	rhca_disable(pci);
free:
	kfree(pci);
	return err;
}

static void rhca_remove(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);

	mutex_lock(&pci->lock);
	WRITE_ONCE(pci->removing, true);
	rhca_stop(pci);
	mutex_unlock(&pci->lock);
	cancel_work_sync(&pci->restart);
	rhca_eth_destroy(pci);
	/* Nothing of the card's may be left running, whatever failed above. */
	rhca_reset(pci);
	rhca_disable(pci);
	kfree(pci);
}

/* The machine goes down or boots another kernel: only stop all DMA. */
static void rhca_shutdown(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);

	mutex_lock(&pci->lock);
	WRITE_ONCE(pci->removing, true);
	if (pci->dev)
		set_bit(0, &pci->dev->failed);
	rhca_reset(pci);
	pci_clear_master(pdev);
	mutex_unlock(&pci->lock);
}

/* A function-level reset that somebody asks for while the driver is bound. */
static void rhca_reset_prepare(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);

	mutex_lock(&pci->lock);
	rhca_stop(pci);
	mutex_unlock(&pci->lock);
}

static void rhca_reset_done(struct pci_dev *pdev)
{
	struct rhca_pci *pci = pci_get_drvdata(pdev);
	int err;

	/* What was saved has been used up by the reset. */
	pci_save_state(pdev);
	mutex_lock(&pci->lock);
	err = rhca_start(pci);
	mutex_unlock(&pci->lock);
	if (err)
		dev_err(&pdev->dev, "start after a reset failed: %d\n", err);
}

static const struct pci_error_handlers rhca_err_handlers = {
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
};

static int __init rhca_module_init(void)
{
	int err;

	rhca_debugfs_init();
	err = pci_register_driver(&rhca_pci_driver);
	if (err)
		rhca_debugfs_exit();
	return err;
}
module_init(rhca_module_init);

static void __exit rhca_module_exit(void)
{
	pci_unregister_driver(&rhca_pci_driver);
	rhca_debugfs_exit();
}
module_exit(rhca_module_exit);
