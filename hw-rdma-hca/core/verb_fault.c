/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of verbs: what a rule can know of what a QP is about to do. */
#include "verb_fault.h"

#include "fault/status.h"
#include "send_op.h"
#include "service.h"

static HcaFaultSubject subject_of(HcaFaultPlace place, const HcaQp *qp)
{
    return (HcaFaultSubject) {
        .place = place,
        .actions = HCA_FAULT_ANY_ACTION,
        .service = qp->attr.service,
        .qpn = qp->qpn,
        .peer_qpn = qp->attr.remote_qpn,
        .peer_lid = qp->attr.path.dlid,
        .peer_gid = &qp->attr.path.dgid,
    };
}

/* Whether a request can be made to be refused by its key: it has to have one. */
static bool has_key(const HcaSendOp *op, const HcaWqe *wqe)
{
    return op->ends_receive || op->atomic || op->flush ||
           (op->remote && wqe->msg_len);
}

/* Whether a work request can end in this way. */
static bool can_end(const HcaFaultStatus *status, const HcaQp *qp,
                    const HcaWqe *wqe)
{
    const HcaSendOp *op = hca_send_op(wqe->ref.opcode);
    bool answered = hca_service(qp->attr.service)->reliable &&
                    op->transfer != HCA_TRANSFER_NONE;

    if (status->syndrome == HCA_SYNDROME_MW_BIND_ERR) {
        return op->mem == HCA_MEM_BIND;
    }
    switch (status->way) {
    case HCA_PLANNED_LOCAL:
        return true;
    case HCA_PLANNED_KEY:
        return answered && has_key(op, wqe);
    case HCA_PLANNED_NOT:
        return false;
    default:
        return answered;
    }
}

static uint64_t statuses_of(const HcaQp *qp, const HcaWqe *wqe)
{
    uint64_t statuses = 0;
    const HcaFaultStatus *status;

    for (unsigned i = 0; (status = hca_fault_status_at(i)); i++) {
        if (can_end(status, qp, wqe)) {
            statuses |= UINT64_C(1) << status->syndrome;
        }
    }
    return statuses;
}

const HcaFaultRule *hca_send_fault_judge(HcaHostFaults *faults, const HcaQp *qp,
                                         const HcaWqe *wqe)
{
    HcaFaultSubject subject = subject_of(HCA_FAULT_SEND_WR, qp);

    subject.operations = 1u << wqe->ref.opcode;
    subject.cqn = qp->attr.sq_cqn;
    subject.statuses = statuses_of(qp, wqe);
    if (qp->attr.service == HCA_SERVICE_UD) {
        subject.peer_qpn = wqe->dqpn;
        subject.peer_lid = wqe->path.dlid;
        subject.peer_gid = &wqe->path.dgid;
    }
    return hca_host_faults_judge(faults, &subject);
}

const HcaFaultRule *hca_receive_fault_judge(HcaHostFaults *faults,
                                            const HcaQp *qp,
                                            uint32_t operations,
                                            const uint32_t *srqn,
                                            unsigned actions)
{
    HcaFaultSubject subject = subject_of(HCA_FAULT_RECEIVE, qp);

    subject.actions = actions;
    subject.operations = operations;
    subject.cqn = qp->attr.rq_cqn;
    subject.has_srq = srqn;
    subject.srqn = srqn ? *srqn : 0;
    subject.statuses = UINT64_MAX; /* all that the plan could name */
    return hca_host_faults_judge(faults, &subject);
}

const HcaFaultRule *hca_request_fault_judge(HcaHostFaults *faults,
                                            const HcaQp *qp,
                                            uint32_t operations)
{
    HcaFaultSubject subject = subject_of(HCA_FAULT_REQUEST, qp);

    subject.operations = operations;
    subject.cqn = qp->attr.rq_cqn;
    subject.statuses = UINT64_MAX;
    return hca_host_faults_judge(faults, &subject);
}

const HcaFaultRule *hca_answer_fault_judge(HcaHostFaults *faults,
                                           const HcaQp *qp, HcaFaultKind kind)
{
    HcaFaultSubject subject = subject_of(HCA_FAULT_ANSWER, qp);

    subject.kind = kind;
    subject.operations = UINT32_MAX;
    return hca_host_faults_judge(faults, &subject);
}

const HcaFaultRule *hca_completion_fault_judge(HcaHostFaults *faults,
                                               const HcaQp *qp, uint32_t cqn,
                                               bool is_send, uint8_t opcode)
{
    HcaFaultSubject subject = subject_of(HCA_FAULT_COMPLETION, qp);

    subject.operations = 1u << (is_send ? opcode : HCA_FAULT_OP_RECV);
    subject.cqn = cqn;
    return hca_host_faults_judge(faults, &subject);
}
