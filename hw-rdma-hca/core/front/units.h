/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What send WQEs of all programming interfaces have in common: units of 16 bytes,
 * or several of them, one behind the other.
 */
#ifndef HCA_FRONT_UNITS_H
#define HCA_FRONT_UNITS_H

#include <string.h>

#include "../qp.h"

/* Units not parsed yet. */
typedef struct HcaUnits {
    const uint8_t *at;
    uint32_t left;   /* bytes */
    uint32_t offset; /* of @at in the send queue's region */
} HcaUnits;

static inline void hca_units_skip(HcaUnits *units, uint32_t size)
{
    units->at += size;
    units->left -= size;
    units->offset += size;
}

/* Take the next unit of @size bytes; false if there is none. */
static inline bool hca_units_take(HcaUnits *units, void *unit, uint32_t size)
{
    if (units->left < size) {
        return false;
    }
    memcpy(unit, units->at, size);
    hca_units_skip(units, size);
    return true;
}

/* Those behind the first one of a WQE. */
static inline HcaUnits hca_units_of(const uint8_t *bytes, const HcaWqe *wqe)
{
    HcaUnits units = {
        .at = bytes,
        .left = wqe->ref.size,
        .offset = wqe->ref.offset,
    };

    hca_units_skip(&units, RDMA_HCA_WQE_UNIT);
    return units;
}

/* @len bytes of data lie here, and are read from here; false: they do not. */
static inline bool hca_units_inline(const HcaUnits *units, uint32_t len,
                                    uint32_t lkey, HcaWqe *wqe)
{
    wqe->msg_len = len;
    if (len > units->left) {
        return false;
    }
    wqe->sge[wqe->nsge++] = (HcaSge) {
        .va = units->offset,
        .lkey = lkey,
        .len = len,
        .relative = true,
    };
    return true;
}

/* An entry of RDMA_HCA_WQE_UNIT bytes; false: it is none. */
typedef bool HcaEntryFn(const void *unit, HcaSge *sge);

/* Gather or scatter entries to the end of the WQE; empty ones are left out. */
static inline bool hca_units_entries(HcaUnits *units, HcaEntryFn *parse_entry,
                                     HcaWqe *wqe)
{
    uint8_t unit[RDMA_HCA_WQE_UNIT];
    uint64_t total = 0;
    HcaSge sge;

    while (hca_units_take(units, unit, sizeof(unit))) {
        if (!parse_entry(unit, &sge)) {
            return false;
        }
        if (!sge.len) {
            continue;
        }
        if (wqe->nsge == RDMA_HCA_MAX_SGE) {
            return false;
        }
        total += sge.len;
        wqe->sge[wqe->nsge++] = sge;
    }
    wqe->msg_len = total < UINT32_MAX ? total : UINT32_MAX;
    return true;
}

#endif /* HCA_FRONT_UNITS_H */
