/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* counter.c: counters of QPs (`rdma statistic qp`). */
#ifndef RHCA_COUNTER_H
#define RHCA_COUNTER_H

#include <rdma/ib_verbs.h>

#include "compat.h"

int rhca_counter_bind_qp(struct rdma_counter *counter,
			 rhca_with_port(struct ib_qp *ibqp));
int rhca_counter_unbind_qp(rhca_with_port(struct ib_qp *ibqp));
int rhca_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *rhca_counter_alloc_stats(struct rdma_counter *counter);
int rhca_counter_update_stats(struct rdma_counter *counter);

#endif /* RHCA_COUNTER_H */
