/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The send operations: services of table 1.1 of the engine document, units of
 * figures 3-4-1 and 3-4-2 of the interface document.
 */
#include "send_op.h"

#include "wire/packet.h"

#define RC (1 << HCA_SERVICE_RC | 1 << HCA_SERVICE_XRC_INI)
#define UC (1 << HCA_SERVICE_UC)
#define UD (1 << HCA_SERVICE_UD)
#define RAW (1 << HCA_SERVICE_RAW)

const HcaSendOp hca_send_ops[HCA_NOPCODES] = {
    [HCA_OP_NOP] = { .services = RC | UC | UD | RAW },
    [HCA_OP_SEND] = { .services = RC | UC | UD | RAW,
                      .transfer = HCA_TRANSFER_PAYLOAD,
                      .ends_receive = true,
                      .first = HCA_SEND_FIRST,
                      .middle = HCA_SEND_MIDDLE,
                      .last = HCA_SEND_LAST,
                      .only = HCA_SEND_ONLY },
    [HCA_OP_SEND_IMM] = { .services = RC | UC | UD,
                          .transfer = HCA_TRANSFER_PAYLOAD,
                          .ends_receive = true,
                          .first = HCA_SEND_FIRST,
                          .middle = HCA_SEND_MIDDLE,
                          .last = HCA_SEND_LAST_IMM,
                          .only = HCA_SEND_ONLY_IMM },
    [HCA_OP_SEND_INV] = { .services = RC,
                          .transfer = HCA_TRANSFER_PAYLOAD,
                          .ends_receive = true,
                          .invalidates = true,
                          .first = HCA_SEND_FIRST,
                          .middle = HCA_SEND_MIDDLE,
                          .last = HCA_SEND_LAST_INV,
                          .only = HCA_SEND_ONLY_INV },
    [HCA_OP_RDMA_WRITE] = { .services = RC | UC,
                            .transfer = HCA_TRANSFER_PAYLOAD,
                            .remote = true,
                            .first = HCA_WRITE_FIRST,
                            .middle = HCA_WRITE_MIDDLE,
                            .last = HCA_WRITE_LAST,
                            .only = HCA_WRITE_ONLY },
    [HCA_OP_RDMA_WRITE_IMM] = { .services = RC | UC,
                                .transfer = HCA_TRANSFER_PAYLOAD,
                                .remote = true,
                                .ends_receive = true,
                                .first = HCA_WRITE_FIRST,
                                .middle = HCA_WRITE_MIDDLE,
                                .last = HCA_WRITE_LAST_IMM,
                                .only = HCA_WRITE_ONLY_IMM },
    [HCA_OP_RDMA_READ] = { .services = RC,
                           .transfer = HCA_TRANSFER_RESPONSE,
                           .remote = true,
                           .only = HCA_READ_REQUEST },
    [HCA_OP_ATOMIC_CS] = { .services = RC,
                           .transfer = HCA_TRANSFER_RESPONSE,
                           .remote = true,
                           .atomic = true,
                           .length = sizeof(uint64_t),
                           .only = HCA_CMP_SWAP },
    [HCA_OP_ATOMIC_FA] = { .services = RC,
                           .transfer = HCA_TRANSFER_RESPONSE,
                           .remote = true,
                           .atomic = true,
                           .length = sizeof(uint64_t),
                           .only = HCA_FETCH_ADD },
    [HCA_OP_BIND_MW] = { .services = RC | UC, .mem = HCA_MEM_BIND },
    [HCA_OP_REG_MR] = { .services = RC | UC,
                        .mem = HCA_MEM_FAST_REG,
                        .privileged = true },
    [HCA_OP_LOCAL_INV] = { .services = RC | UC,
                           .mem = HCA_MEM_INVALIDATE,
                           .waits = true },
};
