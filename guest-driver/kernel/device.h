/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* device.c, and what it makes of a card: verbs, events. */
#ifndef RHCA_DEVICE_H
#define RHCA_DEVICE_H

#include "card.h"

/* device.c */
/* The card offers its device, or no more; caller holds pci->lock. */
int rhca_start(struct rhca_pci *pci);
/* Does nothing if the card is stopped. */
void rhca_stop(struct rhca_pci *pci);

/* verbs.c */
/* Tell the RDMA core what verbs @dev has. */
void rhca_set_verbs(struct rhca_dev *dev);

/* event.c */
/* What the card has written to an event queue. */
void rhca_event(struct rhca_dev *dev, const struct rdma_hca_eqe *eqe);

#endif /* RHCA_DEVICE_H */
