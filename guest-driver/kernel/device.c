// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The life of a card: from its reset to a device that the RDMA core offers,
 * and back. What a start does, a stop undoes in reverse.
 */
#include <linux/delay.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "device.h"
#include "eq.h"
#include "mgmt.h"
#include "mr.h"
#include "netdev.h"
#include "port.h"
#include "qp.h"

#define RHCA_HEALTH_PERIOD	HZ

/* How long what users have left behind is waited for, and how often looked at. */
#define RHCA_LEFT_SECS		10
#define RHCA_LEFT_POLL_MS	10

/* --- failure and health ------------------------------------------------- */

/*
 * Users are told, and the card restarts. What is posted has to end before the
 * device is taken from users: what nvme-rdma takes for sound it deletes with
 * care, and waits for answers that do not come.
 */
static void rhca_failure_work(struct work_struct *work)
{
	struct rhca_dev *dev = container_of(work, struct rhca_dev, failure);
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RHCA_PORT,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	/* From here on no handler of a CQ's runs but by rhca_flush_kernel(). */
	rhca_eqs_synchronize(dev);
	rhca_flush_kernel(dev);
	if (!rhca_has_users(dev))
		return;
	if (rhca_is_roce(dev))
		rhca_eth_fail(dev);
	ib_dispatch_event(&event);
	queue_delayed_work(system_long_wq, &dev->pci->restart, 0);
}

static void rhca_flush_work(struct work_struct *work)
{
	rhca_flush_kernel(container_of(work, struct rhca_dev, flush));
}

static void rhca_health_start(struct rhca_dev *dev)
{
	if (!rhca_failed(dev))
		schedule_delayed_work(&dev->health, RHCA_HEALTH_PERIOD);
}

/*
 * Until the end of a card: whether it is well, and what it has said that nobody
 * has heard.
 */
static void rhca_health_work(struct work_struct *work)
{
	struct rhca_dev *dev = container_of(to_delayed_work(work),
					    struct rhca_dev, health);

	rhca_check_health(dev);
	if (!rhca_failed(dev)) {
		rhca_eqs_look(dev);
		if (rhca_is_roce(dev))
			rhca_eth_look(dev);
	}
	rhca_health_start(dev);
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
	mutex_lock(&dev->link_lock);
	rhca_life(dev->pci, RHCA_LEAVE);
	mutex_unlock(&dev->link_lock);
	/* Who may be telling it: the event thread, the look. */
	rhca_eq_synchronize(&dev->eq[0]);
	flush_delayed_work(&dev->health);
}

/* There are no users any more, who would have to be told of a failure. */
static void rhca_vacate(struct rhca_dev *dev)
{
	rhca_life(dev->pci, RHCA_VACATED);
	cancel_work_sync(&dev->failure);
	cancel_work_sync(&dev->flush);
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
		rhca_vacate(dev);
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

/* What users still have of the card. All but CQs belong to a PD. */
static int rhca_left(struct rhca_dev *dev)
{
	return rdma_restrack_count(&dev->ibdev, RDMA_RESTRACK_PD, true) +
	       rdma_restrack_count(&dev->ibdev, RDMA_RESTRACK_CQ, true);
}

/*
 * Users in the kernel are to have given all back when they have let the device
 * go, but some leave that to a work item (RDS of Linux: rds_ib_dev_put()).
 */
static void rhca_wait_left(struct rhca_dev *dev)
{
	unsigned long end = jiffies + RHCA_LEFT_SECS * HZ;

	while (rhca_left(dev) && time_before(jiffies, end))
		msleep(RHCA_LEFT_POLL_MS);
}

static void rhca_unpublish(struct rhca_dev *dev)
{
	/* Nobody may wait for work that the card will not end. */
	rhca_check_health(dev);
	flush_work(&dev->failure);
	/* On a busy machine softirqs may come long after that. */
	if (rhca_failed(dev))
		rhca_flush_wait(dev);
	rhca_silence(dev);
	ib_unregister_device(&dev->ibdev);
	rhca_wait_left(dev);
	rhca_vacate(dev);
	if (rhca_is_roce(dev))
		rhca_eth_stop(dev);
	/* The interface shows some of them as long as it is there. */
	rhca_diag_cleanup(dev);
	rhca_close_port(dev);
	rhca_mgmt_stop(dev);
}

static struct rhca_dev *rhca_alloc(struct rhca_pci *pci)
{
	struct rhca_dev *dev;

	dev = ib_alloc_device(rhca_dev, ibdev);
	if (!dev)
		return NULL;
	dev->pci = pci;
	dev->pdev = pci->pdev;
	dev->on_event = rhca_event;
	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	xa_init(&dev->srqs);
	mutex_init(&dev->link_lock);
	mutex_init(&dev->mgmt_lock);
	INIT_WORK(&dev->failure, rhca_failure_work);
	INIT_WORK(&dev->flush, rhca_flush_work);
	INIT_DELAYED_WORK(&dev->health, rhca_health_work);
	return dev;
}

/* What is between a card that was reset and a device that is offered. */
static int rhca_bring_up(struct rhca_dev *dev)
{
	int err;

	rhca_let_master(dev->pci);
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
	return 0;

health:
	cancel_delayed_work_sync(&dev->health);
	rhca_stop_card(dev);
cmd:
	rhca_cmd_cleanup(dev);
master:
	pci_clear_master(dev->pdev);
	return err;
}

static void rhca_take_down(struct rhca_dev *dev)
{
	rhca_unpublish(dev);
	cancel_delayed_work_sync(&dev->health);
	rhca_stop_card(dev);
	rhca_cmd_cleanup(dev);
	pci_clear_master(dev->pdev);
}

int rhca_start(struct rhca_pci *pci)
{
	struct rhca_dev *dev = NULL;
	int err;

	if (rhca_life(pci, RHCA_START) == RHCA_OFF)
		return -ESHUTDOWN;
	err = rhca_reset(pci);
	if (!err) {
		dev = rhca_alloc(pci);
		err = dev ? rhca_bring_up(dev) : -ENOMEM;
	}
	if (!err) {
		pci->dev = dev;
		return 0;
	}
	if (dev)
		ib_dealloc_device(&dev->ibdev);
	rhca_life(pci, RHCA_END);
	return err;
}

void rhca_stop(struct rhca_pci *pci)
{
	struct rhca_dev *dev = pci->dev;

	if (dev) {
		pci->dev = NULL;
		rhca_take_down(dev);
		ib_dealloc_device(&dev->ibdev);
	}
	rhca_life(pci, RHCA_END);
}
