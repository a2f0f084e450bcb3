/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each send operation is: one row, which send/ and requester/ go by.
 */
#ifndef HCA_SEND_OP_H
#define HCA_SEND_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "mem_op.h"
#include "verbs.h"

typedef enum HcaTransfer {
    HCA_TRANSFER_NONE,     /* local: nothing is sent */
    HCA_TRANSFER_PAYLOAD,  /* gathered and sent; the peer acknowledges */
    HCA_TRANSFER_RESPONSE, /* asked for, one of max_rd_atomic; scattered */
    HCA_TRANSFER_DONE,     /* the same, and the response has no data */
} HcaTransfer;

typedef struct HcaSendOp {
    uint8_t services; /* that have it: 1 << HCA_SERVICE_*; 0: none */
    HcaTransfer transfer;
    bool remote;       /* its WQE says where in the peer's memory */
    bool atomic;       /* its WQE has operands; the response is one value */
    bool flush;        /* its WQE says what is to be flushed, and how */
    bool ends_receive; /* takes a receive WQE of the peer */
    bool invalidates;  /* its WQE has a key, which the peer invalidates */
    HcaMemOpKind mem;  /* local: what it does to memory, as its WQE says */
    bool waits;        /* local: for all before it, and all behind for it */
    bool privileged;   /* the QP has to be */
    uint8_t length;    /* bytes of a message, 0: any number */
    /* BTH operation of a packet by its place; a request is an Only. */
    uint8_t first, middle, last, only;
} HcaSendOp;

extern const HcaSendOp hca_send_ops[HCA_NOPCODES];

/* @opcode is an HcaOpcode, or any number below HCA_NOPCODES. */
static inline const HcaSendOp *hca_send_op(uint8_t opcode)
{
    return &hca_send_ops[opcode];
}

/* Whether it is answered by a response, and not acknowledged. */
static inline bool hca_has_response(const HcaSendOp *op)
{
    return op->transfer == HCA_TRANSFER_RESPONSE ||
           op->transfer == HCA_TRANSFER_DONE;
}

/* Whether its data are kept in the card, so that they are the same each time. */
static inline bool hca_has_value(const HcaSendOp *op)
{
    return op->transfer == HCA_TRANSFER_DONE && op->length;
}

#endif /* HCA_SEND_OP_H */
