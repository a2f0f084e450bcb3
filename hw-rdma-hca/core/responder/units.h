/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the units of the responder engine offer to one another. */
#ifndef HCA_RESPONDER_UNITS_H
#define HCA_RESPONDER_UNITS_H

#include "../fault/host_faults.h"
#include "responder.h"

/* What a BTH operation is, to the responder. */
typedef struct HcaOperation {
    uint8_t services; /* that have it: 1 << HCA_SERVICE_*; 0: none */
    uint8_t kind;     /* HcaRequestKind */
    uint8_t access;   /* HCA_ACCESS_* that the QP must allow */
    bool first;       /* begins a message */
    bool last;        /* ends it */
    bool imm;         /* takes a receive WQE although it is a Write */
    bool invalidates; /* a key, before the receive is completed */
    bool refused;     /* nothing serves it */
} HcaOperation;

/* Header checks */

/* What the operation of @opcode (a BTH opcode) is. */
const HcaOperation *hca_operation(uint8_t opcode);
/* Whether it is one of those of which the peer has rra_max at the most. */
bool hca_operation_counts(const HcaOperation *op);
/* The HCA_ACCESS_* that @packet needs. */
uint32_t hca_operation_access(const HcaOperation *op, const HcaPacket *packet);
/* Whether @packet may touch @qp at all (figure 4.3); dropped if not. */
bool hca_check_headers(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       const HcaOperation *op);
/* The checks of a packet in its turn, before memory is looked at. */
HcaOutcome hca_check_request(const HcaQp *qp, const HcaPacket *packet,
                             const HcaOperation *op);

/* RQWQEManager (4.4.2, tables 7.16 to 7.19) */

/* Take a WQE into use, if none is: VALID, EMPTY, MALFORMED or REFUSED. */
HcaRwmResp hca_rwm_fetch_wqe(Hca *hca, HcaQp *qp);
/* The same of XRC: from SRQ @srqn; INVALID: it is none of the QP's. */
HcaRwmResp hca_rwm_fetch_xrc_wqe(Hca *hca, HcaQp *qp, uint32_t srqn);
/* XRC: whether the WQE in use is still that SRQ's. */
bool hca_rwm_is_of(Hca *hca, const HcaQp *qp, uint32_t srqn);
/* Fetch Entry: what is left of the head entry of the WQE in use: VALID, INVALID */
HcaRwmResp hca_rwm_fetch_entry(const HcaQp *qp, HcaSge *entry);
/* Update Entry: @used bytes of the head entry are used. */
void hca_rwm_update_entry(HcaQp *qp, uint32_t used);
/* Release Entry: the head entry is used up. */
void hca_rwm_release_entry(HcaQp *qp);
/* Release WQE. */
void hca_rwm_release_wqe(HcaQp *qp);
/* All entries of the WQE in use are as they were: its message was dropped. */
void hca_rwm_restart_wqe(HcaQp *qp);
/* The receive WQEs that are left, as a credit count of an AETH. */
uint8_t hca_rwm_credits(Hca *hca, HcaQp *qp);

/* What a plan of faults has in mind */

/*
 * A message of @qp is to have a receive: BREAK (an SRQ's has been done), RNR, or
 * HCA_FAULT_NACTIONS: nothing.
 */
HcaFaultAction hca_planned_before_receive(Hca *hca, const HcaQp *qp,
                                          const HcaPacket *packet);
/* It has one: OK or PLANNED. */
HcaOutcome hca_planned_receive(Hca *hca, const HcaQp *qp,
                               const HcaPacket *packet);
/* A request may be executed: OK, PLANNED or IGNORED; only its first packet. */
HcaOutcome hca_planned_request(Hca *hca, const HcaQp *qp,
                               const HcaPacket *packet, const HcaOperation *op);
/* Whether these have to be asked. */
static inline bool hca_receives_are_planned(const Hca *hca)
{
    return hca_host_faults_at(hca->faults, HCA_FAULT_RECEIVE);
}
static inline bool hca_requests_are_planned(const Hca *hca)
{
    return hca_host_faults_at(hca->faults, HCA_FAULT_REQUEST);
}
/*
 * Whether the next answer, @resp, has to wait; *@lost: it is not to leave. Asked
 * once for each packet, and again for one that has waited.
 */
bool hca_planned_answer(Hca *hca, HcaQp *qp, const HcaResp *resp, bool *lost);
/* Whether it has to be asked. */
static inline bool hca_answers_are_planned(const Hca *hca, const HcaQp *qp)
{
    return hca_host_faults_at(hca->faults, HCA_FAULT_ANSWER) || qp->resp.waited;
}

/* WriteAddrTable (4.4.3) */

/* A Write begins: its address, R_Key and length. */
void hca_wat_store(HcaQp *qp, const HcaPacket *packet);
/* Where its next @len bytes go. */
HcaMatchInfo hca_wat_next(const HcaQp *qp, uint32_t len);
/* They have been written. */
void hca_wat_update(HcaQp *qp, uint32_t len);

/* Receive completions */

/* The WQE in use is done: @packet ended a message of @byte_cnt bytes. False:
 * the CQ took no entry, and the QP has to break. */
bool hca_recv_complete(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       uint32_t byte_cnt);
/* The WQE in use fails; the QP breaks, or has. @vendor_err: mostly HcaOutcome */
void hca_recv_fail(Hca *hca, HcaQp *qp, uint8_t syndrome, uint8_t vendor_err);

/* The queue to RespPktGen (7.2.10), and RespPktGen (4.4.4) */

/* Whether there is room for the answer to a request with @psn. */
bool hca_resp_has_room(const Hca *hca, HcaQp *qp, uint32_t psn);
/* Whether a Read by @key waits to be answered. */
bool hca_resp_reads_by(const HcaQp *qp, uint32_t key);
/* Whether a Read or atomic response with @psn is still to be sent. */
bool hca_resp_pending(const HcaQp *qp, uint32_t psn);
/* Those that wait to be answered again. */
unsigned hca_resp_duplicates(const HcaQp *qp);
/* Acknowledge all before the expected PSN. */
void hca_resp_ack(Hca *hca, HcaQp *qp);
/* A NAK or RNR NAK, by @syndrome of its AETH. */
void hca_resp_nak(Hca *hca, HcaQp *qp, uint32_t psn, uint8_t syndrome,
                  HcaOutcome reason);
/* NAK PSN sequence error: the peer is to send again from the expected packet
 * on (IBA 9.7.5.2). Nothing is said of it a second time. */
void hca_resp_ask_again(Hca *hca, HcaQp *qp);
/* The responses of a Read; of what is answered without data; of an atomic that
 * found @old. */
void hca_resp_read(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                   bool duplicate);
void hca_resp_done(Hca *hca, HcaQp *qp, uint32_t psn, bool counts,
                   bool duplicate);
void hca_resp_atomic(Hca *hca, HcaQp *qp, uint32_t psn, uint64_t old,
                     bool duplicate);
/* Send the CNP that is owed, if one is. False: the cable takes none now. */
bool hca_cnp_send(Hca *hca, HcaQp *qp);
/* The QP has failed: nothing more is answered, but for a NAK that says so. */
void hca_resp_abandon(HcaQp *qp);

/* The memory that a RETH or AtomicETH names. */
static inline HcaMatchInfo hca_remote_info(const HcaQp *qp,
                                           const HcaPacket *packet,
                                           uint32_t access, uint32_t len)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_ABSOLUTE_ADDR | access,
        .pd = qp->resp.remote_pd,
        .key = packet->rkey,
        .len = len,
        .va = packet->va,
        .qpn = qp->qpn,
    };
}

/* PSNs that the answer to a Read of @len bytes takes. */
static inline uint32_t hca_read_psns(const HcaQp *qp, uint32_t len)
{
    return len ? (len - 1) / qp->pmtu + 1 : 1;
}

#endif /* HCA_RESPONDER_UNITS_H */
