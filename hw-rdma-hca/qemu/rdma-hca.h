/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device, as far as other files need to know it. */
#ifndef RDMA_HCA_H
#define RDMA_HCA_H

#include "qom/object.h"
#include "rdma-hca-thread.h"

#define TYPE_RDMA_HCA "rdma-hca"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaHcaState, RDMA_HCA)

/* The thread of the card; NULL while it is not realized. Needs the BQL. */
RdmaHcaThread *rdma_hca_thread(RdmaHcaState *s);

#endif /* RDMA_HCA_H */
