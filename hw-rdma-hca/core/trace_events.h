/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the units of a card trace, by number (HcaTrace). */
#ifndef HCA_TRACE_EVENTS_H
#define HCA_TRACE_EVENTS_H

/*
 * name, what the number is, up to three arguments; each with how it is
 * written: x hexadecimal, d decimal, s a state of
 * QPs, r why a packet was dropped, p a place of faults and a an action, k a
 * kind of the strict mode. qemu/ has trace events of the same names.
 *
 * opcodes: COMMAND HcaCmdOp, DOORBELL, WQE and MEM_OP HcaOpcode, PACKET_* of BTH
 * (a raw frame: as a UD Send); reasons: PACKET_DROP HcaDropReason; states:
 * QP_STATE HcaQpState, REQ_TRANS HcaReqTransState, MEM_OP and V2P_ERROR
 * HcaV2pState, V2P_REQUEST HcaV2pStage; FAULT and HOST_FAULT: fault/fault.h.
 */
/* clang-format off */
#define HCA_TRACE_EVENTS(X)                                                    \
    X(COMMAND, "opcode:x", "in_modifier:x op_modifier:x status:x")             \
    X(DOORBELL, "qpn:x", "sq_offset:x size:d opcode:x")                        \
    X(DOORBELL_BAD, "qpn:x", "uar:d reason:d")                                 \
    X(QP_STATE, "qpn:x", "old:s new:s")                                        \
    X(WQE, "qpn:x", "offset:x opcode:x length:d")                              \
    X(WQE_ERROR, "qpn:x", "offset:x syndrome:x check:d")                       \
    X(PACKET_TX, "dqpn:x", "opcode:x psn:x length:d")                          \
    X(PACKET_RX, "qpn:x", "opcode:x psn:x length:d")                           \
    X(PACKET_DROP, "qpn:x", "opcode:x psn:x reason:r")                         \
    X(NAK_TX, "qpn:x", "psn:x syndrome:x reason:d")                            \
    X(NAK_RX, "qpn:x", "psn:x syndrome:x")                                     \
    X(RETRANSMIT, "qpn:x", "from_psn:x next_psn:x retries_left:d")             \
    X(TIMEOUT, "qpn:x", "rnr:d unacked_psn:x retries_left:d")                  \
    X(REQ_TRANS, "qpn:x", "from:d to:d what:x")                                \
    X(CQE, "cqn:x", "qpn:x opcode:x syndrome:x")                               \
    X(CQ_ERROR, "cqn:x", "syndrome:x")                                         \
    X(EQE, "eqn:x", "type:x number:x")                                         \
    X(V2P_ERROR, "key:x", "state:d va:x length:d")                             \
    X(LINK, "port:d", "up:d")                                                  \
    X(FAULT, "dqpn:x", "direction:d action:d rule:d")                          \
    X(SRQ_WQE, "srqn:x", "offset:x tag:x left:d")                              \
    X(SRQ_ERROR, "srqn:x", "taken:d")                                          \
    X(CNP_TX, "qpn:x", "dqpn:x")                                               \
    X(CONGESTION, "qpn:x", "old:d new:d outstanding:d")                        \
    X(MEM_OP, "qpn:x", "opcode:x key:x state:d")                               \
    X(V2P_REQUEST, "channel:d", "from:d to:d key:x")                           \
    X(HOST_FAULT, "rule:d", "place:p action:a what:x")                         \
    X(STRICT, "qpn:x", "kind:k index:d")                                       \
    X(RESET, "card:d", "")
/* clang-format on */

typedef enum HcaTraceEvent {
#define HCA_TRACE_ENUM(name, ...) HCA_TRACE_##name,
    HCA_TRACE_EVENTS(HCA_TRACE_ENUM)
#undef HCA_TRACE_ENUM
    HCA_TRACE_NEVENTS
} HcaTraceEvent;

#endif /* HCA_TRACE_EVENTS_H */
