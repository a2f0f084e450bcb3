/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device, as far as other files need to know it. */
#ifndef RDMA_HCA_H
#define RDMA_HCA_H

#include "qapi/qapi-types-rdma-hca.h"
#include "qom/object.h"
#include "rdma-hca-thread.h"

#define TYPE_RDMA_HCA "rdma-hca"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaHcaState, RDMA_HCA)

/* The thread of the card; NULL while it is not realized. Needs the BQL. */
RdmaHcaThread *rdma_hca_thread(RdmaHcaState *s);
/* Of a realized card: more rules behind those that there are; or it fails. */
bool rdma_hca_add_faults(RdmaHcaState *s, const RdmaHcaFaultList *more,
                         Error **errp);
/* The rules, and what has become of them. */
RdmaHcaFaultStateList *rdma_hca_fault_states(RdmaHcaState *s);

#endif /* RDMA_HCA_H */
