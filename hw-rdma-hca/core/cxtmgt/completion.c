/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The completion chain (ReqTransCore_Thread_2 document): a place in the CQ,
 * its address, the entry through the CQ's key; then, if the CQ is armed, the
 * same for the EQ.
 *
 * The document completes UC and UD here and RC when it is acknowledged; all of
 * them, and receives, take this chain.
 */
#include "../verb_fault.h"
#include "completion.h"
#include "cxtmgt_int.h"

typedef struct Chain {
    HcaCxtMgt *cm;
    HcaV2pChannel channel;
    const HcaQp *qp;
    uint32_t cqn;
    const HcaCompletion *completion;
    HcaCq *cq;
    uint64_t cq_addr; /* offset in the CQ's region */
    HcaEq *eq;
    bool lost; /* the CQ took no entry */
} Chain;

/* Whether a plan of faults has it that the CQ fails now. */
static bool cq_breaks(const Chain *chain)
{
    const HcaCompletion *completion = chain->completion;
    const HcaFaultRule *rule = hca_completion_fault(
        chain->cm->faults, chain->qp, chain->cqn, completion->is_send,
        completion->opcode);

    if (rule) {
        hca_cq_break(chain->cm, chain->cq,
                     rule->action == HCA_FAULT_OVERFLOW ? HCA_QUEUE_OVERFLOW
                                                        : HCA_QUEUE_WRITE_FAIL);
    }
    return rule;
}

static HcaReqTransState cq_req(Chain *chain)
{
    chain->cq = hca_cq_request(chain->cm, chain->channel, chain->cqn);
    chain->lost = !chain->cq || cq_breaks(chain);
    return chain->lost ? HCA_RT_IDLE : HCA_RT_CQ_RESP;
}

static HcaReqTransState cq_resp(Chain *chain)
{
    chain->cq_addr = hca_cq_next_addr(chain->cm, chain->cq);
    return HCA_RT_FETCH_CQ_MR;
}

static HcaReqTransState fetch_cq_mr(Chain *chain)
{
    if (!hca_cq_write(chain->cm, chain->channel, chain->cq, chain->cq_addr,
                      chain->completion)) {
        chain->lost = true;
        return HCA_RT_IDLE;
    }
    return hca_cq_take_arm(chain->cm, chain->cq, chain->completion)
               ? HCA_RT_EQ_REQ
               : HCA_RT_IDLE;
}

/* A full EQ: the event waits in its CQ. */
static HcaReqTransState eq_req(Chain *chain)
{
    chain->eq = hca_eq_request(chain->cm, chain->cq->attr.eqn, chain->cqn,
                               &chain->cq->completion);
    return chain->eq ? HCA_RT_EQ_RESP : HCA_RT_IDLE;
}

/* The EQ's address is found where the entry is written. */
static HcaReqTransState eq_resp(Chain *chain)
{
    return HCA_RT_FETCH_EQ_MR;
}

static HcaReqTransState fetch_eq_mr(Chain *chain)
{
    hca_eq_write_completion(chain->cm, chain->eq, chain->cqn);
    return HCA_RT_IDLE;
}

static HcaReqTransState step(Chain *chain, HcaReqTransState state)
{
    switch (state) {
    case HCA_RT_CQ_REQ:
        return cq_req(chain);
    case HCA_RT_CQ_RESP:
        return cq_resp(chain);
    case HCA_RT_FETCH_CQ_MR:
        return fetch_cq_mr(chain);
    case HCA_RT_EQ_REQ:
        return eq_req(chain);
    case HCA_RT_EQ_RESP:
        return eq_resp(chain);
    case HCA_RT_FETCH_EQ_MR:
        return fetch_eq_mr(chain);
    default:
        return HCA_RT_IDLE;
    }
}

/*
 * Completions of @qp cannot be told any more: beside the CQ's error an error
 * of its work queue, once (IBA 11.6.3.2).
 */
static void cq_lost(HcaCxtMgt *cm, HcaQp *qp)
{
    cm->counters.cqes_lost++;
    if (qp->state != HCA_QP_RST && qp->state != HCA_QP_ERR) {
        hca_qp_event(cm, qp, HCA_EVENT_WQ_CATAS_ERROR);
    }
}

bool hca_cq_post(HcaCxtMgt *cm, HcaV2pChannel channel, HcaQp *qp, uint32_t cqn,
                 const HcaCompletion *completion)
{
    HcaReqTransState state = HCA_RT_CQ_REQ;
    Chain chain = {
        .cm = cm,
        .channel = channel,
        .qp = qp,
        .cqn = cqn,
        .completion = completion,
    };

    while (state != HCA_RT_IDLE) {
        HcaReqTransState next = step(&chain, state);

        hca_cxt_trace(cm, HCA_TRACE_REQ_TRANS, qp->qpn, state, next, cqn);
        state = next;
    }
    if (chain.lost) {
        cq_lost(cm, qp);
    }
    return !chain.lost;
}
