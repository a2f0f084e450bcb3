/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * devlink.c: what `devlink` shows of a card and may do to it: its identity,
 * its health, a reload.
 */
#ifndef RHCA_DEVLINK_H
#define RHCA_DEVLINK_H

#include "card.h"

#if IS_ENABLED(CONFIG_NET_DEVLINK)

int rhca_devlink_create(struct rhca_pci *pci);
void rhca_devlink_destroy(struct rhca_pci *pci);
/* Users may come, and errors be reported; or no more. */
void rhca_devlink_register(struct rhca_pci *pci);
void rhca_devlink_unregister(struct rhca_pci *pci);

#else

static inline int rhca_devlink_create(struct rhca_pci *pci)
{
	return 0;
}

static inline void rhca_devlink_destroy(struct rhca_pci *pci)
{
}

static inline void rhca_devlink_register(struct rhca_pci *pci)
{
}

static inline void rhca_devlink_unregister(struct rhca_pci *pci)
{
}


#endif

#endif /* RHCA_DEVLINK_H */
