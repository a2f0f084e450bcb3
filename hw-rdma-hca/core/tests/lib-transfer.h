/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One operation, one MTU, one size, between two whole cards: its data, scattered
 * over lists of entries, are compared with all of the memory around them.
 */
#ifndef LIB_TRANSFER_H
#define LIB_TRANSFER_H

#include "lib-pair.h"

#define GRH_SIZE 40u /* before a datagram */

typedef struct TransferCase {
    uint8_t service; /* RDMA_HCA_QP_ST_* */
    uint8_t opcode;  /* RDMA_HCA_OPCODE_*, no atomic */
    uint8_t mtu;     /* IB MTU code */
    uint32_t size;
    bool inlined;
    bool grh; /* UD */
} TransferCase;

/*
 * A case as /SERVICE/OPERATION[-inline][-grh]/mtuN/SIZE; one of RC runs on
 * each link layer.
 */
void transfer_add(TransferCase c);
/* All sizes at which segmentation changes, at each MTU; and inline. */
void transfer_add_all(uint8_t service, uint8_t opcode);

/* The address of @to for UD, by LID. */
UdAddress transfer_address(const Qp *to, bool grh);

#endif /* LIB_TRANSFER_H */
