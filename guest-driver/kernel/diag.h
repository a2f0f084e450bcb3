/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* diag.c: the card's counters. */
#ifndef RHCA_DIAG_H
#define RHCA_DIAG_H

#include <rdma/ib_verbs.h>

#include "rdma_hca_cmd.h"

struct rhca_dev;

/* What the card counts; no counters: @num is 0. */
struct rhca_diag {
	u32 num;
	char (*names)[RDMA_HCA_DIAG_NAME_SIZE];
	struct rdma_stat_desc *descs;	/* priv: the counter's number */
	u32 num_qp;			/* what is counted for QPs, in sets */
	char (*qp_names)[RDMA_HCA_DIAG_NAME_SIZE];
	u32 num_port;			/* those of QPs, then of @num the port's */
	struct rdma_stat_desc *port_descs;
	u32 port_room;			/* that they take in a message */
	u32 num_eth;			/* and of the Ethernet function */
	struct rdma_stat_desc *eth_descs;
};

/* Find out what the card counts, before the device is registered. */
void rhca_diag_init(struct rhca_dev *dev);
void rhca_diag_cleanup(struct rhca_dev *dev);
/*
 * Values of the set @number of QPs' counters, those of @stats that come first;
 * @clear: they begin anew.
 */
int rhca_diag_read_set(struct rhca_dev *dev, u32 number, bool clear,
		       struct rdma_hw_stats *stats);
/* For such a set, or NULL. The counters of the port alone are not shown. */
struct rdma_hw_stats *rhca_diag_alloc_set(const struct rhca_dev *dev);
/* Those of the Ethernet function: name of the @i-th, and all values. */
const char *rhca_diag_eth_name(const struct rhca_dev *dev, u32 i);
int rhca_diag_read_eth(struct rhca_dev *dev, u64 *value);

#endif /* RHCA_DIAG_H */
