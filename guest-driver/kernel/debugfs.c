// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For whoever debugs the driver, rdma_hca/<PCI address>/resources in debugfs:
 * how many numbers and table entries of each kind are in use. What is there
 * while nobody uses the card is there again when the last user has gone. And
 * congestion: how many notifications QPs have got (RoCE).
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "device.h"

static struct dentry *rhca_debugfs_root;

static int resources_show(struct seq_file *file, void *unused)
{
	struct rhca_dev *dev = file->private;

	seq_printf(file, "qp %u\n", rhca_bitmap_used(&dev->qp_map));
	seq_printf(file, "cq %u\n", rhca_bitmap_used(&dev->cq_map));
	seq_printf(file, "pd %u\n", rhca_bitmap_used(&dev->pd_map));
	seq_printf(file, "mpt %u\n", rhca_bitmap_used(&dev->mpt_map));
	seq_printf(file, "mtt %u\n", rhca_bitmap_used(&dev->mtt_map));
	seq_printf(file, "uar %u\n", rhca_bitmap_used(&dev->uar_map));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(resources);

void rhca_debugfs_add(struct rhca_dev *dev)
{
	dev->debugfs = debugfs_create_dir(pci_name(dev->pdev),
					  rhca_debugfs_root);
	debugfs_create_file("resources", 0444, dev->debugfs, dev,
			    &resources_fops);
	if (rhca_is_roce(dev))
		debugfs_create_atomic_t("congestion", 0444, dev->debugfs,
					&dev->congestion);
}

void rhca_debugfs_remove(struct rhca_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

void rhca_debugfs_init(void)
{
	rhca_debugfs_root = debugfs_create_dir(RHCA_NAME, NULL);
}

void rhca_debugfs_exit(void)
{
	debugfs_remove(rhca_debugfs_root);
}
