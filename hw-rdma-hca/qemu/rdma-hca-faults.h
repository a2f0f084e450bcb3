/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The faults of a cable: from their QAPI form to the card's. */
#ifndef RDMA_HCA_FAULTS_H
#define RDMA_HCA_FAULTS_H

#include "../core/fault/fault.h"
#include "qapi/qapi-types-rdma-hca.h"

/* Make the plan of @faults; false if it is none that a card may have. */
bool rdma_hca_fault_plan(const RdmaHcaFaultList *faults, uint32_t seed,
                         HcaFaultPlan *plan, Error **errp);

/* As JSON, to be freed, and back; the list is the caller's. */
char *rdma_hca_faults_text(RdmaHcaFaultList *faults);
bool rdma_hca_faults_parse(const char *text, RdmaHcaFaultList **faults,
                           Error **errp);

#endif /* RDMA_HCA_FAULTS_H */
