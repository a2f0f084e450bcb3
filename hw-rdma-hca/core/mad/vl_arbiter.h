/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which virtual lane sends next at a port (IBA 7.6.9). */
#ifndef HCA_VL_ARBITER_H
#define HCA_VL_ARBITER_H

#include "node.h"

typedef struct HcaVlTable {
    uint8_t entry; /* the one whose turn it is */
    unsigned left; /* bytes that it may still send */
} HcaVlTable;

/* Of a port; all 0 at first. */
typedef struct HcaVlArbiter {
    HcaVlTable low, high;
    HcaVlTable *turn;  /* NULL: of a lane that is in no table */
    bool limited;      /* the high table's, and the low one waits */
    int64_t high_left; /* bytes until the low table has its turn */
    uint8_t last;      /* VL, for lanes of no table */
} HcaVlArbiter;

/*
 * Of the lanes in @waiting (bits, not 0), the one that is next by the tables of
 * @port. *@left: bytes (LRH to VCRC) that it may send, 0: no table says. It may
 * exceed them by part of a packet, and is to send one at least.
 */
unsigned hca_vl_arbiter_next(HcaVlArbiter *arbiter, const HcaNodePort *port,
                             uint16_t waiting, unsigned *left);

/* The lane that was next has sent so many bytes. */
void hca_vl_arbiter_sent(HcaVlArbiter *arbiter, uint64_t len);

#endif /* HCA_VL_ARBITER_H */
