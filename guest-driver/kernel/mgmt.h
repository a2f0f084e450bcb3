/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Management of an InfiniBand port: mgmt.c. */
#ifndef RHCA_MGMT_H
#define RHCA_MGMT_H

#include "card.h"

/*
 * A card that can be managed gets to know its description and its QPs 0 and 1,
 * before its port comes up; and forgets them, when these QPs are gone.
 */
int rhca_mgmt_start(struct rhca_dev *dev);
void rhca_mgmt_stop(struct rhca_dev *dev);
int rhca_modify_device(struct ib_device *ibdev, int mask,
		       struct ib_device_modify *attr);
int rhca_modify_port(struct ib_device *ibdev, u32 port, int mask,
		     struct ib_port_modify *attr);
int rhca_process_mad(struct ib_device *ibdev, int flags, u32 port,
		     const struct ib_wc *wc, const struct ib_grh *grh,
		     const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index);

#endif /* RHCA_MGMT_H */
