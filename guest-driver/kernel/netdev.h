/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* netdev.c: the Ethernet interface of a RoCE card. */
#ifndef RHCA_NETDEV_H
#define RHCA_NETDEV_H

#include "card.h"

/* Offer it or, after a restart of the card, continue it. */
int rhca_eth_start(struct rhca_dev *dev);
/* Nothing of the card is used any more. */
void rhca_eth_stop(struct rhca_dev *dev);
/* The card has failed: nobody should wait for frames to go. */
void rhca_eth_fail(struct rhca_dev *dev);
/* Handle what was lost on its way from the card. Once a second. */
void rhca_eth_look(struct rhca_dev *dev);
/* Remove the interface, if there is one. */
void rhca_eth_destroy(struct rhca_pci *pci);
/* get_netdev: for users of the port that ask for its interface, as SMC does. */
struct net_device *rhca_get_netdev(struct ib_device *ibdev, u32 port);
/* Ask the card about its link; tell users of the port what has changed. */
void rhca_eth_update_link(struct rhca_dev *dev);

#endif /* RHCA_NETDEV_H */
