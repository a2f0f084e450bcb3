/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line for each QP, CQ, SRQ and EQ that the card has. */
#include "state_text.h"

#include "../card.h"
#include "../cxtmgt/cxtmgt.h"

const char *hca_qp_state_text(uint64_t state)
{
    static const char *const names[] = {
        [HCA_QP_RST] = "RST", [HCA_QP_INIT] = "INIT", [HCA_QP_RTR] = "RTR",
        [HCA_QP_RTS] = "RTS", [HCA_QP_SQE] = "SQE",   [HCA_QP_SQD] = "SQD",
        [HCA_QP_ERR] = "ERR",
    };

    return state < G_N_ELEMENTS(names) ? names[state] : "?";
}

const char *hca_drop_reason_text(uint64_t reason)
{
    static const char *const names[HCA_DROP_NREASONS] = {
#define DROP_NAME(name) [HCA_DROP_##name] = #name,
        HCA_DROP_REASONS(DROP_NAME)
#undef DROP_NAME
    };

    return reason < HCA_DROP_NREASONS ? names[reason] : "?";
}

static const char *service_text(uint8_t service)
{
    static const char *const names[HCA_NSERVICES] = {
        [HCA_SERVICE_RC] = "RC",           [HCA_SERVICE_UC] = "UC",
        [HCA_SERVICE_RD] = "RD",           [HCA_SERVICE_UD] = "UD",
        [HCA_SERVICE_XRC_INI] = "XRC_INI", [HCA_SERVICE_XRC_TGT] = "XRC_TGT",
        [HCA_SERVICE_RAW] = "RAW",
    };

    return service < HCA_NSERVICES && names[service] ? names[service] : "?";
}

static const char *status_text(HcaQueueStatus status)
{
    static const char *const names[] = {
        [HCA_QUEUE_OK] = "ok",
        [HCA_QUEUE_OVERFLOW] = "overflow",
        [HCA_QUEUE_WRITE_FAIL] = "write failed",
    };

    return names[status];
}

/* QPs */

static void add_send_queue(GString *line, const HcaQp *qp)
{
    const HcaSendQueue *send = &qp->send;

    g_string_append_printf(line, " doorbells %u",
                           send->doorbell_tail - send->doorbell_head);
    if (send->wqe_valid) {
        g_string_append_printf(line, " wqe 0x%x sent %u of %u",
                               send->wqe.ref.offset, send->wqe.sent,
                               send->wqe.msg_len);
    }
    if (send->indicator) {
        g_string_append_printf(line, " chained 0x%x", send->chained.offset);
    }
}

static void add_requester(GString *line, const HcaQp *qp)
{
    const HcaRequester *req = &qp->req;

    g_string_append_printf(line, " psn 0x%x unacked 0x%x", req->next_psn,
                           req->unacked_psn);
    if (req->swpb.count || req->rpb.count) {
        g_string_append_printf(line, " outstanding %u reads %u retries %u/%u",
                               req->swpb.count, req->rpb.count,
                               req->retries_left, req->rnr_retries_left);
    }
    g_string_append(line, req->retransmit ? " retransmits" : "");
    g_string_append(line, req->rnr_wait ? " waits for receives" : "");
    g_string_append(line, req->barrier.pending ? " barrier" : "");
    g_string_append(line, req->congested ? " congested" : "");
    if (req->fail_syndrome) {
        g_string_append_printf(line, " failed 0x%02x", req->fail_syndrome);
    }
}

static void add_responder(GString *line, const HcaQp *qp)
{
    const HcaResponder *resp = &qp->resp;

    g_string_append_printf(line, " expects 0x%x msn 0x%x", resp->expected_psn,
                           resp->msn);
    if (resp->ring_tail != resp->ring_head) {
        g_string_append_printf(line, " owes %u",
                               resp->ring_tail - resp->ring_head);
    }
    g_string_append(line, resp->nak_sent ? " nak sent" : "");
    g_string_append(line, resp->nak_owed ? " nak owed" : "");
    g_string_append(line, resp->in_message ? " in a message" : "");
    if (qp->srq) {
        g_string_append_printf(line, " srq 0x%x", qp->srq->srqn);
    } else if (qp->rq.len) {
        g_string_append_printf(line, " receives taken %u of %u",
                               qp->rq.consumed, qp->rq.posted);
    }
}

/* When each of its timers ends. */
static void add_timers(GString *line, const HcaQp *qp)
{
    static const char *const names[HCA_NTIMERS] = {
        [HCA_TIMER_LOSS] = "loss",
        [HCA_TIMER_RNR] = "rnr",
        [HCA_TIMER_CONGESTION] = "congestion",
        [HCA_TIMER_FLUSH] = "flush",
        [HCA_TIMER_ANSWER] = "answer",
    };

    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        if (hca_timer_runs(qp, i)) {
            g_string_append_printf(line, " %s timer %" G_GINT64_FORMAT,
                                   names[i], qp->deadline[i]);
        }
    }
}

/* A turn that it waits for, and memory that it has asked for. */
static void add_turns(GString *line, const HcaQp *qp)
{
    g_string_append(line, qp->send_turn.queued ? " send turn" : "");
    g_string_append(line, qp->resp_turn.queued ? " response turn" : "");
    g_string_append(line, qp->pool_wait.slot >= 0 ? " waits for buffers" : "");
}

static void put_qp(GString *line, const HcaQp *qp)
{
    const HcaQpAttr *attr = &qp->attr;

    g_string_append_printf(line, "qp 0x%x %s %s dqpn 0x%x cqs 0x%x 0x%x",
                           qp->qpn, service_text(attr->service),
                           hca_qp_state_text(qp->state), attr->remote_qpn,
                           attr->sq_cqn, attr->rq_cqn);
    add_send_queue(line, qp);
    add_requester(line, qp);
    add_responder(line, qp);
    add_timers(line, qp);
    add_turns(line, qp);
}

/* Other queues. Between CI, as last heard, and PI are those not consumed. */

static void put_cq(GString *line, const HcaCq *cq)
{
    static const char *const arms[] = {
        [HCA_CQ_DISARMED] = "disarmed",
        [HCA_CQ_ARMED_SOLICITED] = "armed for solicited",
        [HCA_CQ_ARMED_NEXT] = "armed",
        [HCA_CQ_FIRED] = "fired",
    };

    g_string_append_printf(line, "cq 0x%x %s %s pi %u ci %u of %u eq 0x%x",
                           cq->cqn, status_text(cq->status), arms[cq->arm],
                           cq->producer_index, cq->consumer_index,
                           1u << cq->attr.log_size, cq->attr.eqn);
    g_string_append(line,
                    hca_event_waits(&cq->completion) ? " event waits" : "");
    g_string_append(line, hca_event_waits(&cq->error) ? " error waits" : "");
}

static void put_srq(GString *line, const HcaSrq *srq)
{
    g_string_append_printf(
        line, "srq 0x%x %s receives taken %u of %u limit %u qps %u", srq->srqn,
        srq->failed ? "failed" : "ok", srq->rq.consumed, srq->rq.posted,
        srq->limit, srq->qps);
    g_string_append(line, hca_event_waits(&srq->catas_error) ||
                                  hca_event_waits(&srq->limit_reached)
                              ? " events wait"
                              : "");
}

static void put_eq(GString *line, const HcaEq *eq)
{
    static const char *const arms[] = {
        [HCA_EQ_ARMED] = "armed",
        [HCA_EQ_FIRED] = "fired",
        [HCA_EQ_ALWAYS_ARMED] = "always armed",
    };

    g_string_append_printf(
        line, "eq 0x%x %s %s pi %u ci %u of %u vector %u cqs %u", eq->eqn,
        status_text(eq->status), arms[eq->arm], eq->producer_index,
        eq->consumer_index, 1u << eq->attr.log_size, eq->attr.vector, eq->cqs);
    if (eq->completions.length) {
        g_string_append_printf(line, " %u completions wait",
                               eq->completions.length);
    }
}

#define VISIT(kind, type, log)                                                 \
    static void visit_##kind##s(const Hca *hca, GString *line, HcaLineFn *fn,  \
                                void *opaque)                                  \
    {                                                                          \
        for (uint32_t i = 0; i < 1u << hca->config.log; i++) {                 \
            const type *x = hca_##kind##_peek(hca->cm, i);                     \
                                                                               \
            if (x) {                                                           \
                g_string_truncate(line, 0);                                    \
                put_##kind(line, x);                                           \
                fn(opaque, line->str);                                         \
            }                                                                  \
        }                                                                      \
    }

VISIT(qp, HcaQp, log_qps)
VISIT(cq, HcaCq, log_cqs)
VISIT(srq, HcaSrq, log_srqs)
VISIT(eq, HcaEq, log_eqs)

void hca_queues_visit(const Hca *hca, HcaLineFn *fn, void *opaque)
{
    g_autoptr(GString) line = g_string_new(NULL);

    visit_qps(hca, line, fn, opaque);
    visit_cqs(hca, line, fn, opaque);
    visit_srqs(hca, line, fn, opaque);
    visit_eqs(hca, line, fn, opaque);
}
