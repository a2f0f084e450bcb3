/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion of receive WQEs (engine document 4.4.1.3, state COMPLETION; CQE:
 * interface document 3.3.1), and what a change of the QP's state does to the
 * receive queue.
 *
 * In ERR all receive WQEs are flushed, those that are posted later too, as
 * the verbs promise. There is no receive doorbell, so the card looks for them:
 * after 2 ms at first, less and less often while nothing comes, but once a
 * second at least; none waits for longer than nothing came before it. Without a
 * posted-count record new WQEs look like old ones; one lap of the queue is
 * flushed then. Of a shared queue only what the QP has taken is flushed (IBA
 * 10.2.9.1), and an event says that it will take no more.
 */
#include <string.h>

#include "responder.h"
#include "units.h"

#define FLUSH_BATCH 64
#define FLUSH_DELAY_MIN (2 * 1000 * 1000) /* ns */
#define FLUSH_DELAY_MAX (1000 * 1000 * 1000)

/* To the SRQ's CQ (A14.3.2.4); of one that is gone nobody is to be told. */
static bool post_xrc(Hca *hca, HcaQp *qp, HcaCompletion *completion)
{
    const HcaSrq *srq = hca_srq_of(hca->cm, &qp->resp.wqe);

    if (!srq) {
        return true;
    }
    completion->xrc = true;
    completion->remote_qpn = srq->srqn;
    completion->wqe = qp->resp.wqe.tag;
    return hca_cq_post(hca->cm, HCA_V2P_EE, qp, srq->attr.cqn, completion);
}

/* Give the WQE in use back and write its CQE. False: the CQ took none. */
static bool post(Hca *hca, HcaQp *qp, HcaCompletion *completion)
{
    completion->qpn = qp->qpn;
    hca_rwm_release_wqe(qp);
    if (hca_service(qp->attr.service)->xrc) {
        return post_xrc(hca, qp, completion);
    }
    completion->wqe = qp->srq ? qp->resp.wqe.tag
                              : qp->attr.rq_offset + qp->resp.wqe.offset;
    return hca_cq_post(hca->cm, HCA_V2P_EE, qp, qp->attr.rq_cqn, completion);
}

bool hca_recv_complete(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       uint32_t byte_cnt)
{
    HcaCompletion completion = {
        .remote_qpn = qp->attr.service == HCA_SERVICE_UD ? packet->src_qp
                                                         : qp->attr.remote_qpn,
        .imm_be = packet->imm_be,
        .inv_rkey = packet->inv_rkey,
        .flow_tag = packet->flow_tag,
        .byte_cnt = byte_cnt,
        .opcode = packet->opcode,
        .solicited = packet->solicited,
    };
    unsigned pkey_index;

    if (!hca_service(qp->attr.service)->raw) {
        completion.source = hca_port_source(hca->port, packet);
    }
    if (qp->special == HCA_SPECIAL_GSI &&
        hca_port_find_pkey(hca->port, packet->pkey, &pkey_index)) {
        completion.has_pkey_index = true;
        completion.pkey_index = pkey_index;
    }
    hca->responder->counters.receives_completed++;
    return post(hca, qp, &completion);
}

void hca_recv_fail(Hca *hca, HcaQp *qp, uint8_t syndrome, uint8_t vendor_err)
{
    HcaCompletion completion = {
        .syndrome = syndrome,
        .vendor_err = vendor_err,
    };

    hca_trace(hca, HCA_TRACE_WQE_ERROR, qp->qpn, qp->resp.wqe.offset, syndrome,
              vendor_err);
    if (syndrome == HCA_SYNDROME_WR_FLUSH_ERR) {
        hca->responder->counters.receives_flushed++;
        qp->counters->receives_flushed++;
    } else {
        hca->responder->counters.receives_failed++;
        qp->counters->receives_failed++;
    }
    post(hca, qp, &completion);
}

/* Flush up to FLUSH_BATCH WQEs; false if no more can ever come. */
static bool flush_batch(Hca *hca, HcaQp *qp, unsigned *n)
{
    for (*n = 0; *n < FLUSH_BATCH; ++*n) {
        HcaRwmResp resp;

        if (!qp->rq.record && !qp->resp.wqe_valid &&
            qp->resp.flushed >= hca_recv_queue_slots(&qp->rq)) {
            return false;
        }
        resp = hca_rwm_fetch_wqe(hca, qp);
        if (resp == HCA_RWM_REFUSED) {
            return false;
        }
        if (resp == HCA_RWM_EMPTY) {
            return hca_recv_queue_slots(&qp->rq) != 0;
        }
        hca_recv_fail(hca, qp, HCA_SYNDROME_WR_FLUSH_ERR, HCA_EXE_OK);
        qp->resp.flushed++;
    }
    return true;
}

static void flush(Hca *hca, HcaQp *qp, int64_t now)
{
    HcaResponder *resp = &qp->resp;
    int64_t again = now;
    unsigned n;

    if (!flush_batch(hca, qp, &n)) {
        hca_timer_stop(hca, qp, HCA_TIMER_FLUSH);
        return;
    }
    if (n) {
        resp->flush_delay = FLUSH_DELAY_MIN;
    }
    if (n < FLUSH_BATCH) {
        again += resp->flush_delay;
        resp->flush_delay = MIN(2 * resp->flush_delay, FLUSH_DELAY_MAX);
    }
    hca_timer_set(hca, qp, HCA_TIMER_FLUSH, again);
}

void hca_responder_timer(Hca *hca, HcaQp *qp, int64_t now)
{
    if (hca_timer_take(hca, qp, HCA_TIMER_FLUSH, now) &&
        qp->state == HCA_QP_ERR) {
        flush(hca, qp, now);
    }
    if (hca_timer_take(hca, qp, HCA_TIMER_ANSWER, now)) {
        hca_schedule_resp(hca, qp);
    }
}

/* The WQE in use, if there is one. */
static void flush_used(Hca *hca, HcaQp *qp)
{
    if (qp->resp.wqe_valid) {
        hca_recv_fail(hca, qp, HCA_SYNDROME_WR_FLUSH_ERR, HCA_EXE_OK);
    }
}

static void flush_receives(Hca *hca, HcaQp *qp)
{
    if (!hca_service(qp->attr.service)->receives) {
        flush_used(hca, qp);
    } else if (qp->srq) {
        flush_used(hca, qp);
        hca_qp_event(hca->cm, qp, HCA_EVENT_LAST_WQE_REACHED);
    } else {
        flush(hca, qp, hca_now(hca));
    }
}

static void forget(Hca *hca, HcaQp *qp)
{
    memset(&qp->resp, 0, sizeof(qp->resp));
    hca_recv_queue_rewind(&qp->rq);
    hca_timer_stop(hca, qp, HCA_TIMER_FLUSH);
    hca_timer_stop(hca, qp, HCA_TIMER_ANSWER);
}

HcaResponderUnit *hca_responder_new(void)
{
    return g_new0(HcaResponderUnit, 1);
}

void hca_responder_free(HcaResponderUnit *responder)
{
    g_free(responder);
}

void hca_responder_reset(HcaResponderUnit *responder)
{
    memset(&responder->counters, 0, sizeof(responder->counters));
}

void hca_responder_state(Hca *hca, HcaQp *qp, uint8_t old_state)
{
    if (qp->state == HCA_QP_RST || old_state == HCA_QP_RST) {
        forget(hca, qp);
    }
    if (qp->state == HCA_QP_ERR) {
        qp->resp.in_message = false;
        qp->resp.flush_delay = FLUSH_DELAY_MIN;
        hca_resp_abandon(qp);
        flush_receives(hca, qp);
    }
}
