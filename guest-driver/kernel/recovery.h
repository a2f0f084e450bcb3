/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* recovery.c: when the card stands still, and when it starts again. */
#ifndef RHCA_RECOVERY_H
#define RHCA_RECOVERY_H

#include "card.h"

/* All of them may sleep, and take pci->lock. */

int rhca_recovery_init(struct rhca_pci *pci);
void rhca_recovery_cleanup(struct rhca_pci *pci);
/* The first start, which is not tried again. */
int rhca_first_start(struct rhca_pci *pci);
/* The driver is ready for restarts. */
void rhca_watch(struct rhca_pci *pci);
/* Nobody recovers the card any more, nor begins to report that it has failed. */
void rhca_unwatch(struct rhca_pci *pci);

/* Stop the card until rhca_continue(); @why: it is lost first. */
void rhca_halt(struct rhca_pci *pci, enum rhca_halter halter, const char *why);
/* Start it, if nobody else wants it to stand still. */
int rhca_continue(struct rhca_pci *pci, enum rhca_halter halter);
/* Start a card that has failed, or whose last start has, once more. */
int rhca_recover(struct rhca_pci *pci);

#endif /* RHCA_RECOVERY_H */
