// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of QPs (`rdma statistic qp`): a counter of the core's is a set of the
 * card's, and its QPs count there. What is counted is in diag.c.
 */
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "counter.h"
#include "qp.h"

/* A set that begins with zeros. */
static int rhca_set_alloc(struct rhca_dev *dev, struct rdma_counter *counter)
{
	u32 number;
	int err;

	err = rhca_bitmap_alloc(&dev->counter_map, &number, NULL);
	if (err)
		return err;
	err = rhca_diag_read_set(dev, number, true, counter->stats);
	if (err) {
		rhca_bitmap_free(&dev->counter_map, number, 1);
		return err;
	}
	memset(counter->stats->value, 0,
	       counter->stats->num_counters * sizeof(u64));
	counter->id = number;
	return 0;
}

/*
 * NULL: in the set of those that have no counter. What the card does not have
 * yet, a QP in RESET, it is told of with INIT.
 */
static int rhca_count_in(struct rhca_qp *qp, struct rdma_counter *counter)
{
	struct rhca_dev *dev = to_rhca(qp->ibqp.device);
	u32 number = counter ? counter->id : 0;
	int err = 0;

	mutex_lock(&qp->lock);
	if (qp->state != IB_QPS_RESET)
		err = rhca_cmd(dev, RDMA_HCA_CMD_SET_QP_COUNTERS, 0, qp->qpn,
			       number, 0);
	/* A card that has failed counts nothing any more. */
	if (!counter && rhca_failed(dev))
		err = 0;
	if (!err) {
		qp->counter_set = number;
		/* It is the driver's to set. */
		qp->ibqp.counter = counter;
	}
	mutex_unlock(&qp->lock);
	return err;
}

int rhca_counter_bind_qp(struct rdma_counter *counter,
			 rhca_with_port(struct ib_qp *ibqp))
{
	struct rhca_dev *dev = to_rhca(ibqp->device);
	bool fresh = !counter->id;
	int err;

	err = fresh ? rhca_set_alloc(dev, counter) : 0;
	if (err)
		return err;
	err = rhca_count_in(to_rhca_qp(ibqp), counter);
	if (err && fresh) {
		rhca_counter_dealloc(counter);
		counter->id = 0;
	}
	return err;
}

int rhca_counter_unbind_qp(rhca_with_port(struct ib_qp *ibqp))
{
	return rhca_count_in(to_rhca_qp(ibqp), NULL);
}

int rhca_counter_dealloc(struct rdma_counter *counter)
{
	rhca_bitmap_free(&to_rhca(counter->device)->counter_map, counter->id,
			 1);
	return 0;
}

struct rdma_hw_stats *rhca_counter_alloc_stats(struct rdma_counter *counter)
{
	return rhca_diag_alloc_set(to_rhca(counter->device));
}

int rhca_counter_update_stats(struct rdma_counter *counter)
{
	return rhca_diag_read_set(to_rhca(counter->device), counter->id, false,
				  counter->stats);
}
