/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that is lent to the peer for a while, by a key that a work request
 * makes and another one takes back: a region, or a window of either type.
 */
#ifndef LIB_LEASE_H
#define LIB_LEASE_H

#include "lib-mem.h"

typedef enum LeaseKind {
    LEASE_NONE,
    LEASE_REGION,
    LEASE_WINDOW_1,
    LEASE_WINDOW_2,
    LEASE_KINDS
} LeaseKind;

typedef struct Lease {
    LeaseKind kind;
    enum {
        LEASE_FREE,
        LEASE_MAKING, /* its work request is on its way */
        LEASE_LENT,
        LEASE_CLOSING, /* nobody begins to use it */
        LEASE_ENDING   /* a work request or a Send is on its way */
    } state;
    const Mr *target; /* what is lent: all of it */
    uint32_t key;
    uint64_t request;  /* work request that is on its way */
    uint64_t last_use; /* closing: messages of the peer's that may use it */
    /* Of a region. */
    Mr *fast;
    uint64_t list;
} Lease;

/* @target: for a window it has the right to be bound to. */
void lease_init(Lease *lease, LeaseKind kind, const Mr *target);
/* Free, whatever was on its way: its connection is over. */
void lease_renew(Lease *lease);
/* What makes it, with a key that is new; what takes it back. */
SendWr lease_make(Lease *lease, uint64_t wr_id);
SendWr lease_end(Lease *lease, uint64_t wr_id);
/* Whether the peer can give it back, with a Send. */
bool lease_can_return(const Lease *lease);
/* A work request of the lender has completed. */
void lease_complete(Lease *lease, uint64_t wr_id);
/* The peer's Send has come, with this key. */
void lease_returned(Lease *lease, uint32_t key);
/* By which address the peer reaches byte @at of what is lent. */
uint64_t lease_va(const Lease *lease, uint64_t at);

#endif /* LIB_LEASE_H */
