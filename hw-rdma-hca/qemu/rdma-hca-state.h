/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a card as QEMU saves it: each list of fields of the core's
 * (core/state.h) is a VMStateDescription, and each section a subsection, which is
 * there if it has records.
 */
#ifndef RDMA_HCA_STATE_H
#define RDMA_HCA_STATE_H

#include "../core/hca_state.h"
#include "migration/vmstate.h"

#define RDMA_HCA_MAX_SECTIONS 64

/* Records of a section, while a state is saved or loaded. */
typedef struct RdmaHcaRecords {
    void *record;
    int32_t number;
    uint32_t size; /* bytes of one */
} RdmaHcaRecords;

/* What QEMU's lists of fields refer to, a member of the device. */
typedef struct RdmaHcaSaved {
    RdmaHcaRecords section[RDMA_HCA_MAX_SECTIONS];
} RdmaHcaSaved;

/* @nown fields of the device, then those of its RdmaHcaSaved at @offset. */
const VMStateField *rdma_hca_state_fields(const VMStateField *own,
                                          unsigned nown, size_t offset);

/* Takes all of @state's records, and frees the rest of it. */
void rdma_hca_saved_fill(RdmaHcaSaved *saved, HcaState *state);
/* The records that were loaded, as a state; it is the caller's. */
HcaState *rdma_hca_saved_take(RdmaHcaSaved *saved);
/* No records. */
void rdma_hca_saved_clear(RdmaHcaSaved *saved);

#endif /* RDMA_HCA_STATE_H */
