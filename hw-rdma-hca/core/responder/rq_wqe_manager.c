/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RQWQEManager (engine document 4.4.2): the receive WQE that a QP's message
 * uses, handed out entry by entry. The queue that it comes out of, the QP's own
 * or a shared one, is cxtmgt/'s.
 */
#include "units.h"

HcaRwmResp hca_rwm_fetch_wqe(Hca *hca, HcaQp *qp)
{
    HcaRwmResp resp;

    if (qp->resp.wqe_valid) {
        return HCA_RWM_VALID;
    }
    resp = qp->srq
               ? hca_srq_take(hca, qp->srq, &qp->resp.wqe)
               : hca_recv_queue_take(hca, &qp->rq, &hca->responder->counters.rq,
                                     &qp->resp.wqe);
    qp->resp.wqe_valid = resp == HCA_RWM_VALID || resp == HCA_RWM_MALFORMED;
    return resp;
}

/* A message has its WQE until it ends, so here none is in use. */
HcaRwmResp hca_rwm_fetch_xrc_wqe(Hca *hca, HcaQp *qp, uint32_t srqn)
{
    HcaSrq *srq = hca_srq_xrc(hca->cm, srqn, qp->attr.xrcd);
    HcaRwmResp resp = srq ? hca_srq_take(hca, srq, &qp->resp.wqe)
                          : HCA_RWM_INVALID;

    qp->resp.wqe_valid = resp == HCA_RWM_VALID || resp == HCA_RWM_MALFORMED;
    return resp;
}

bool hca_rwm_is_of(Hca *hca, const HcaQp *qp, uint32_t srqn)
{
    return qp->resp.wqe.srqn == srqn && hca_srq_of(hca->cm, &qp->resp.wqe);
}

HcaRwmResp hca_rwm_fetch_entry(const HcaQp *qp, HcaSge *entry)
{
    const HcaRecvWqe *wqe = &qp->resp.wqe;

    if (wqe->sge_at == wqe->nsge) {
        return HCA_RWM_INVALID;
    }
    *entry = wqe->sge[wqe->sge_at];
    entry->va += wqe->sge_done;
    entry->len -= wqe->sge_done;
    return HCA_RWM_VALID;
}

void hca_rwm_update_entry(HcaQp *qp, uint32_t used)
{
    qp->resp.wqe.sge_done += used;
}

void hca_rwm_release_entry(HcaQp *qp)
{
    qp->resp.wqe.sge_at++;
    qp->resp.wqe.sge_done = 0;
}

void hca_rwm_release_wqe(HcaQp *qp)
{
    qp->resp.wqe_valid = false;
}

void hca_rwm_restart_wqe(HcaQp *qp)
{
    qp->resp.wqe.sge_at = 0;
    qp->resp.wqe.sge_done = 0;
}

/* The WQE in use belongs to a message that the MSN does not count yet. */
uint8_t hca_rwm_credits(Hca *hca, HcaQp *qp)
{
    uint8_t code = HCA_AETH_CREDITS_INVALID;
    uint16_t left;
    uint32_t held;

    if (!hca_recv_queue_left(hca->v2p, &qp->rq, &hca->responder->counters.rq,
                             &left)) {
        return code;
    }
    held = left + qp->resp.wqe_valid;
    do {
        code--;
    } while (hca_aeth_credits(code) > held);
    return code;
}
