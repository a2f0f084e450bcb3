/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of verbs: whether a plan has something in mind for what a QP is about to
 * do (fault/fault.h). Each returns the rule that fires, which is counted and
 * traced, or NULL; the caller does what it says. One look at a word if no rule is
 * for that place. @faults may be NULL: a unit by itself has none.
 */
#ifndef HCA_VERB_FAULT_H
#define HCA_VERB_FAULT_H

#include "fault/host_faults.h"
#include "qp.h"

/* Actions that can be taken now, as bits. */
#define HCA_FAULT_BIT(action) (1u << HCA_FAULT_##action)
#define HCA_FAULT_ANY_ACTION UINT16_MAX

/* @wqe, which has passed its checks, has its turn: FAIL, BREAK. */
const HcaFaultRule *hca_send_fault_judge(HcaHostFaults *faults, const HcaQp *qp,
                                         const HcaWqe *wqe);
static inline const HcaFaultRule *hca_send_fault(HcaHostFaults *faults,
                                                 const HcaQp *qp,
                                                 const HcaWqe *wqe)
{
    return hca_host_faults_at(faults, HCA_FAULT_SEND_WR)
               ? hca_send_fault_judge(faults, qp, wqe)
               : NULL;
}

/*
 * These two only if there is a rule for their place: the responder asks for that
 * before it works out what they want to know (responder/units.h).
 *
 * A message is to have a receive, of SRQ @srqn if there is one (or NULL): those of
 * FAIL, BREAK and RNR that are in @actions. @operations: by which a rule may call
 * it, bit n: HcaOpcode n.
 */
const HcaFaultRule *hca_receive_fault_judge(HcaHostFaults *faults,
                                            const HcaQp *qp,
                                            uint32_t operations,
                                            const uint32_t *srqn,
                                            unsigned actions);
/* A request of the peer's begins, whose QP is reliable: FAIL, DROP. */
const HcaFaultRule *hca_request_fault_judge(HcaHostFaults *faults,
                                            const HcaQp *qp,
                                            uint32_t operations);

/* A packet answers it: DROP, DELAY. */
const HcaFaultRule *hca_answer_fault_judge(HcaHostFaults *faults,
                                           const HcaQp *qp, HcaFaultKind kind);
static inline const HcaFaultRule *hca_answer_fault(HcaHostFaults *faults,
                                                   const HcaQp *qp,
                                                   HcaFaultKind kind)
{
    return hca_host_faults_at(faults, HCA_FAULT_ANSWER)
               ? hca_answer_fault_judge(faults, qp, kind)
               : NULL;
}
/* A completion is on its way to @cqn: FAIL, OVERFLOW. */
const HcaFaultRule *hca_completion_fault_judge(HcaHostFaults *faults,
                                               const HcaQp *qp, uint32_t cqn,
                                               bool is_send, uint8_t opcode);
static inline const HcaFaultRule *hca_completion_fault(HcaHostFaults *faults,
                                                       const HcaQp *qp,
                                                       uint32_t cqn,
                                                       bool is_send,
                                                       uint8_t opcode)
{
    return hca_host_faults_at(faults, HCA_FAULT_COMPLETION)
               ? hca_completion_fault_judge(faults, qp, cqn, is_send, opcode)
               : NULL;
}

#endif /* HCA_VERB_FAULT_H */
