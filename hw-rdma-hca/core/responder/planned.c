/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a plan of faults has in mind for requests of the peer's and for their
 * answers (fault/fault.h). A request that is refused is so as one that is wrong:
 * NAK, event, completion, flush.
 */
#include "../fault/status.h"
#include "../verb_fault.h"
#include "responder.h"
#include "units.h"

#define BIT(op) (1u << HCA_OP_##op)
#define SENDS (BIT(SEND) | BIT(SEND_IMM) | BIT(SEND_INV))

/*
 * What a rule may call the request of a packet. The first one of a message does
 * not say how that will end.
 */
static uint32_t names_of(const HcaPacket *packet, const HcaOperation *op)
{
    switch ((HcaRequestKind)op->kind) {
    case HCA_REQUEST_SEND:
        return SENDS;
    case HCA_REQUEST_WRITE:
        return BIT(RDMA_WRITE) | BIT(RDMA_WRITE_IMM);
    case HCA_REQUEST_READ:
        return BIT(RDMA_READ);
    case HCA_REQUEST_ATOMIC_WRITE:
        return BIT(ATOMIC_WRITE);
    case HCA_REQUEST_FLUSH:
        return BIT(FLUSH);
    default:
        return HCA_BTH_OPERATION(packet->opcode) == HCA_CMP_SWAP
                   ? BIT(ATOMIC_CS)
                   : BIT(ATOMIC_FA);
    }
}

/* Of a message that has a receive. */
static uint32_t receive_names(const HcaPacket *packet)
{
    return hca_operation(packet->opcode)->kind == HCA_REQUEST_SEND
               ? SENDS
               : BIT(RDMA_WRITE_IMM);
}

/* The SRQ that the receive is of, or NULL. */
static HcaSrq *srq_of(Hca *hca, const HcaQp *qp, const HcaPacket *packet)
{
    return hca_service(qp->attr.service)->xrc
               ? hca_srq_xrc(hca->cm, packet->srqn, qp->attr.xrcd)
               : qp->srq;
}

static const HcaFaultRule *receive_rule(Hca *hca, const HcaQp *qp,
                                        const HcaPacket *packet,
                                        const HcaSrq *srq, unsigned actions)
{
    return hca_receive_fault_judge(hca->faults, qp, receive_names(packet),
                                   srq ? &srq->srqn : NULL, actions);
}

HcaFaultAction hca_planned_before_receive(Hca *hca, const HcaQp *qp,
                                          const HcaPacket *packet)
{
    HcaSrq *srq = srq_of(hca, qp, packet);
    const HcaFaultRule *rule = receive_rule(
        hca, qp, packet, srq, HCA_FAULT_BIT(BREAK) | HCA_FAULT_BIT(RNR));

    if (!rule) {
        return HCA_FAULT_NACTIONS;
    }
    if (rule->action == HCA_FAULT_BREAK && srq) {
        hca_srq_break(hca->cm, srq);
    }
    return rule->action;
}

static HcaOutcome plan(Hca *hca, HcaFailure failure)
{
    hca->responder->planned = failure;
    return HCA_EXE_PLANNED;
}

HcaOutcome hca_planned_receive(Hca *hca, const HcaQp *qp,
                               const HcaPacket *packet)
{
    const HcaFaultRule *rule = receive_rule(
        hca, qp, packet, srq_of(hca, qp, packet), HCA_FAULT_BIT(FAIL));

    return rule ? plan(hca,
                       (HcaFailure) {
                           .nak = HCA_AETH(HCA_AETH_NAK,
                                           hca_fault_status(rule->status)->nak),
                           .syndrome = rule->status,
                           .vendor_err = rule->vendor_err,
                           .drop = HCA_DROP_FAULT,
                           .local = true,
                       })
                : HCA_EXE_OK;
}

HcaOutcome hca_planned_request(Hca *hca, const HcaQp *qp,
                               const HcaPacket *packet, const HcaOperation *op)
{
    const HcaFaultStatus *status;
    const HcaFaultRule *rule;

    if (!op->first || !hca_service(qp->attr.service)->reliable) {
        return HCA_EXE_OK;
    }
    rule = hca_request_fault_judge(hca->faults, qp, names_of(packet, op));
    if (!rule) {
        return HCA_EXE_OK;
    }
    if (rule->action == HCA_FAULT_DROP) {
        return HCA_EXE_IGNORED;
    }
    status = hca_fault_status(rule->status);
    return plan(hca, (HcaFailure) {
                         .nak = HCA_AETH(HCA_AETH_NAK, status->request_nak),
                         .event = status->event,
                     });
}

static HcaFaultKind kind_of(const HcaResp *resp)
{
    switch (resp->kind) {
    case HCA_RESP_READ:
        return HCA_FAULT_READ_RESPONSE;
    case HCA_RESP_ATOMIC:
        return HCA_FAULT_ATOMIC_RESPONSE;
    default:
        return hca_fault_ack_kind(resp->syndrome);
    }
}

bool hca_planned_answer(Hca *hca, HcaQp *qp, const HcaResp *resp, bool *lost)
{
    const HcaFaultRule *rule;

    *lost = false;
    if (hca_timer_runs(qp, HCA_TIMER_ANSWER)) {
        return true;
    }
    if (qp->resp.waited) {
        qp->resp.waited = false;
        return false;
    }
    rule = hca_answer_fault(hca->faults, qp, kind_of(resp));
    if (rule && rule->action == HCA_FAULT_DELAY) {
        qp->resp.waited = true;
        hca_timer_set(hca, qp, HCA_TIMER_ANSWER,
                      hca_now(hca) + (int64_t)rule->delay_ns);
        return true;
    }
    *lost = rule;
    return false;
}
