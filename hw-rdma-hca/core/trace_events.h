/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the units of a card trace, by number (HcaTrace). */
#ifndef HCA_TRACE_EVENTS_H
#define HCA_TRACE_EVENTS_H

/* One name each; qemu/ turns them into trace events of the same name. */
/* clang-format off */
#define HCA_TRACE_EVENTS(X)                                                    \
    X(COMMAND)          /* opcode; in_modifier, op_modifier, status */         \
    X(DOORBELL)         /* qpn; sq offset, size, opcode */                     \
    X(DOORBELL_BAD)     /* qpn; uar, reason */                                 \
    X(QP_STATE)         /* qpn; old, new */                                    \
    X(WQE)              /* qpn; offset, opcode, length */                      \
    X(WQE_ERROR)        /* qpn; offset, syndrome, check */                     \
    X(PACKET_TX)        /* qpn of the peer; opcode, psn, length */             \
    X(PACKET_RX)        /* qpn; opcode, psn, length; raw: as a UD Send */      \
    X(PACKET_DROP)      /* qpn; opcode, psn, HcaDropReason */                  \
    X(NAK_TX)           /* qpn; psn, syndrome, reason */                       \
    X(NAK_RX)           /* qpn; psn, syndrome */                               \
    X(RETRANSMIT)       /* qpn; from psn, next psn, retries left */            \
    X(TIMEOUT)          /* qpn; 0 loss 1 rnr, unacked psn, retries left */     \
    X(REQ_TRANS)        /* qpn; from, to HcaReqTransState, cqn or result */    \
    X(CQE)              /* cqn; qpn, opcode, syndrome */                       \
    X(CQ_ERROR)         /* cqn; syndrome */                                    \
    X(EQE)              /* eqn; type, number */                                \
    X(V2P_ERROR)        /* key; HcaV2pState, va, length */                     \
    X(LINK)             /* 0; 1 up 0 down */                                   \
    X(FAULT)            /* qpn or 0; HcaFaultDirection, -Action, rule */       \
    X(SRQ_WQE)          /* srqn; offset, tag, WQEs left as far as known */     \
    X(SRQ_ERROR)        /* srqn; WQEs taken */                                 \
    X(CNP_TX)           /* qpn; qpn of the peer */                             \
    X(CONGESTION)       /* qpn; old limit, new limit, requests on their way */ \
    X(MEM_OP)           /* qpn; opcode, key, HcaV2pState */                    \
    X(V2P_REQUEST)      /* HcaV2pChannel; from, to HcaV2pStage, key */         \
    X(HOST_FAULT)       /* rule; HcaFaultPlace, -Action, address or number */
/* clang-format on */

typedef enum HcaTraceEvent {
#define HCA_TRACE_ENUM(name) HCA_TRACE_##name,
    HCA_TRACE_EVENTS(HCA_TRACE_ENUM)
#undef HCA_TRACE_ENUM
    HCA_TRACE_NEVENTS
} HcaTraceEvent;

#endif /* HCA_TRACE_EVENTS_H */
