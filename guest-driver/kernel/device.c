// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The life of a card: from its reset to a device that the RDMA core offers,
 * and back. What a start does, a stop undoes in reverse.
 */
#include <linux/rtnetlink.h>

#include "cq.h"
#include "device.h"
#include "eq.h"
#include "mgmt.h"
#include "mr.h"
#include "netdev.h"
#include "port.h"
#include "qp.h"

/* --- failure ------------------------------------------------------------ */

/*
 * Users that poll in softirqs know of the end when this returns, or at the end of
 * the interrupt. It has to be before the device is taken from them: what nvme-rdma
 * takes for sound it deletes with care, and waits for answers that do not come.
 */
static void rhca_flush_now(struct rhca_dev *dev)
{
	if (in_hardirq()) {
		rhca_flush_kernel(dev);
		return;
	}
	local_bh_disable();
	rhca_flush_kernel(dev);
	local_bh_enable();
}

/* dev->on_failure: users are told, and the card restarts. */
static void rhca_end_all(struct rhca_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RHCA_PORT,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	rhca_flush_now(dev);
	if (!READ_ONCE(dev->registered))
		return;
	if (rhca_is_roce(dev))
		rhca_eth_fail(dev);
	ib_dispatch_event(&event);
	queue_delayed_work(system_long_wq, &dev->pci->restart, 0);
}

/* dev->on_look: find what the card has said that nobody has heard. */
static void rhca_look(struct rhca_dev *dev)
{
	rhca_eqs_look(dev);
	if (rhca_is_roce(dev))
		rhca_eth_look(dev);
}

/* Somebody waits for the end of what is in a queue of a card that has failed. */
static void rhca_flush_work(struct work_struct *work)
{
	rhca_flush_kernel(container_of(work, struct rhca_dev, flush));
}

/* --- start and stop ----------------------------------------------------- */

static void rhca_maps_cleanup(struct rhca_dev *dev)
{
	if (dev->pdn)
		rhca_bitmap_free(&dev->pd_map, dev->pdn, 1);
	rhca_bitmap_cleanup(&dev->dm_map);
	rhca_bitmap_cleanup(&dev->counter_map);
	rhca_bitmap_cleanup(&dev->flow_map);
	rhca_bitmap_cleanup(&dev->xrcd_map);
	rhca_bitmap_cleanup(&dev->srq_map);
	rhca_bitmap_cleanup(&dev->uar_map);
	rhca_bitmap_cleanup(&dev->pd_map);
	rhca_bitmap_cleanup(&dev->mtt_map);
	rhca_bitmap_cleanup(&dev->mpt_map);
	rhca_bitmap_cleanup(&dev->cq_map);
	rhca_bitmap_cleanup(&dev->qp_map);
	dma_pool_destroy(dev->db_pool);
	xa_destroy(&dev->srqs);
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
		err = rhca_bitmap_init(&dev->uar_map,
				       caps->num_uars / RHCA_UARS_PER_PAGE, 1);
	if (!err && rhca_has_srqs(dev))
		err = rhca_bitmap_init(&dev->srq_map, 1u << caps->log_srqs,
				       caps->reserved_srqs);
	if (!err && rhca_has_xrc(dev))
		err = rhca_bitmap_init(&dev->xrcd_map, 1u << caps->log_xrcds,
				       0);
	if (!err && caps->dev_mem)
		err = rhca_bitmap_init(&dev->dm_map,
				       caps->dev_mem >> PAGE_SHIFT, 0);
	if (!err && rhca_has_raw(dev))
		err = rhca_bitmap_init(&dev->flow_map, 1u << caps->log_flows,
				       0);
	/* QPs that are in no other set count in 0. */
	if (!err && rhca_has_qp_counters(dev))
		err = rhca_bitmap_init(&dev->counter_map,
				       1u << caps->log_counter_sets, 1);
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
	err = rhca_null_mr_init(dev);
	if (err)
		goto eqs;
	return 0;

eqs:
	rhca_eqs_cleanup(dev);
close:
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0);
icm:
	rhca_icm_cleanup(dev);
maps:
	rhca_maps_cleanup(dev);
	return err;
}

static void rhca_stop_card(struct rhca_dev *dev)
{
	rhca_null_mr_cleanup(dev);
	rhca_eqs_cleanup(dev);
	rhca_cmd_revoke(dev, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0);
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
	rhca_set_verbs(dev);
}

/* From here on nothing of the port is told to users any more. */
static void rhca_silence(struct rhca_dev *dev)
{
	WRITE_ONCE(dev->registered, false);
	/* Those who tell it: the event thread, the look, and the interface. */
	rhca_eq_synchronize(&dev->eq[0]);
	flush_delayed_work(&dev->health);
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
	if (err) {
		rhca_silence(dev);
		cancel_work_sync(&dev->flush);
	}
	return err;
}

static void rhca_close_port(struct rhca_dev *dev)
{
	int err;

	err = rhca_cmd_none(dev, RDMA_HCA_CMD_CLOSE_IB, RHCA_PORT);
	if (err && !rhca_failed(dev))
		dev_warn(&dev->pdev->dev, "port not closed: %d\n", err);
}

/* Bring the port up and offer the device to the world. */
static int rhca_publish(struct rhca_dev *dev)
{
	int err;

	rhca_diag_init(dev);
	rhca_describe(dev);
	err = rhca_mgmt_start(dev);
	if (err)
		goto diag;
	err = rhca_cmd_none(dev, RDMA_HCA_CMD_INIT_IB, RHCA_PORT);
	if (err)
		goto mgmt;
	err = rhca_is_roce(dev) ? rhca_eth_start(dev) : 0;
	if (err)
		goto close;
	err = rhca_register(dev);
	if (err)
		goto eth;
	if (rhca_is_roce(dev))
		rhca_tell_port(dev);
	dev_info(&dev->pdev->dev, "%s: board %016llx, %u event queues\n",
		 dev_name(&dev->ibdev.dev), dev->caps.board_id, dev->num_eqs);
	return 0;

eth:
	if (rhca_is_roce(dev))
		rhca_eth_stop(dev);
close:
	rhca_close_port(dev);
mgmt:
	rhca_mgmt_stop(dev);
diag:
	rhca_diag_cleanup(dev);
	return err;
}

static void rhca_unpublish(struct rhca_dev *dev)
{
	/* On a busy machine softirqs may come long after rhca_flush_now(). */
	if (rhca_failed(dev))
		rhca_flush_wait(dev);
	rhca_silence(dev);
	ib_unregister_device(&dev->ibdev);
	cancel_work_sync(&dev->flush);
	if (rhca_is_roce(dev))
		rhca_eth_stop(dev);
	/* The interface shows some of them as long as it is there. */
	rhca_diag_cleanup(dev);
	rhca_close_port(dev);
	rhca_mgmt_stop(dev);
}

int rhca_start(struct rhca_pci *pci)
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
	dev->on_failure = rhca_end_all;
	dev->on_event = rhca_event;
	dev->on_look = rhca_look;
	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	xa_init(&dev->srqs);
	spin_lock_init(&dev->flush_lock);
	mutex_init(&dev->link_lock);
	mutex_init(&dev->mgmt_lock);
	INIT_WORK(&dev->flush, rhca_flush_work);
	rhca_health_init(dev);
	rhca_let_master(pci);
	err = rhca_cmd_init(dev);
	if (err)
		goto master;
	err = rhca_start_card(dev);
	if (err)
		goto cmd;
	/* Who learns of the device waits for its completions at once. */
	rhca_health_start(dev);
	err = rhca_publish(dev);
	if (err)
		goto health;
	pci->dev = dev;
	return 0;

health:
	rhca_health_stop(dev);
	rhca_stop_card(dev);
cmd:
	rhca_cmd_cleanup(dev);
master:
	pci_clear_master(pci->pdev);
	ib_dealloc_device(&dev->ibdev);
	return err;
}

void rhca_stop(struct rhca_pci *pci)
{
	struct rhca_dev *dev = pci->dev;

	if (!dev)
		return;
	pci->dev = NULL;
	/* Nobody may wait for work that the card will not end. */
	rhca_check_health(dev);
	rhca_unpublish(dev);
	rhca_health_stop(dev);
	rhca_stop_card(dev);
	rhca_cmd_cleanup(dev);
	pci_clear_master(pci->pdev);
	ib_dealloc_device(&dev->ibdev);
}
