/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device, as far as other files need to know it. */
#ifndef RDMA_HCA_H
#define RDMA_HCA_H

#include "qapi/qapi-types-rdma-hca.h"
#include "qom/object.h"
#include "rdma-hca-thread.h"

#define TYPE_RDMA_HCA "rdma-hca"
OBJECT_DECLARE_TYPE(RdmaHcaState, RdmaHcaClass, RDMA_HCA)
/*
 * A card with another programming interface. It has a type of its own, as drivers
 * know it by other IDs, which are a class's.
 */
#define TYPE_RDMA_HCA_MTHCA "rdma-hca-mthca"

struct RdmaHcaClass {
    PCIDeviceClass parent_class;

    HcaPersonality personality;
};

/* The thread of the card; NULL while it is not realized. Needs the BQL. */
RdmaHcaThread *rdma_hca_thread(RdmaHcaState *s);
/* Of a realized card: more rules behind those that there are; or it fails. */
bool rdma_hca_add_faults(RdmaHcaState *s, const RdmaHcaFaultList *more,
                         Error **errp);
/* The rules, and what has become of them. */
RdmaHcaFaultStateList *rdma_hca_fault_states(RdmaHcaState *s);

#endif /* RDMA_HCA_H */
