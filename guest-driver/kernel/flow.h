/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* flow.c: rules by which raw packet QPs get frames. */
#ifndef RHCA_FLOW_H
#define RHCA_FLOW_H

#include "qp.h"
#include "udata.h"

struct ib_flow *rhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata);
int rhca_destroy_flow(struct ib_flow *ibflow);

#endif /* RHCA_FLOW_H */
