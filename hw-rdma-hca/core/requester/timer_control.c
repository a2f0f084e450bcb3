/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TimerControl (engine document 3.4.2).
 *
 * The document counts each QP's two timers down in a table that is scanned
 * every 64 us. We keep deadlines and the card's heap of them, with the
 * granularity that the IB specification asks for: the loss timer is
 * 4.096 us * 2^timeout (IBA 9.7.6.1.3), the RNR timer table 45 (9.7.5.2.8).
 */
#include "../port/frame_encap.h"
#include "congestion.h"
#include "units.h"

#define ACK_TIMEOUT_UNIT_NS 4096

/* RNR NAK timer codes in units of 10 us. */
static const uint32_t rnr_10us[32] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

void hca_loss_timer_restart(Hca *hca, HcaQp *qp)
{
    if (hca_outstanding(qp) && !qp->req.rnr_wait && qp->attr.ack_timeout) {
        qp->req.timer_mark = hca_frame_mark(hca->port, &qp->attr.path);
        hca_timer_set(hca, qp, HCA_TIMER_LOSS,
                      hca_now(hca) + ((int64_t)ACK_TIMEOUT_UNIT_NS
                                      << (qp->attr.ack_timeout & 31)));
    } else {
        hca_timer_stop(hca, qp, HCA_TIMER_LOSS);
    }
}

void hca_loss_timer_start(Hca *hca, HcaQp *qp)
{
    if (!hca_timer_runs(qp, HCA_TIMER_LOSS)) {
        hca_loss_timer_restart(hca, qp);
    }
}

void hca_rnr_timer_start(Hca *hca, HcaQp *qp, uint8_t code)
{
    qp->req.rnr_wait = true;
    hca_timer_stop(hca, qp, HCA_TIMER_LOSS);
    hca_timer_set(hca, qp, HCA_TIMER_RNR,
                  hca_now(hca) + rnr_10us[code & 31] * 10000ll);
}

void hca_timers_stop(Hca *hca, HcaQp *qp)
{
    qp->req.rnr_wait = false;
    hca_timer_stop(hca, qp, HCA_TIMER_LOSS);
    hca_timer_stop(hca, qp, HCA_TIMER_RNR);
}

bool hca_use_retry(Hca *hca, HcaQp *qp)
{
    if (!qp->req.retries_left) {
        hca->requester->counters.retries_exhausted++;
        hca_requester_fail(hca, qp, HCA_SYNDROME_RETRY_EXC_ERR, 0);
        return false;
    }
    qp->req.retries_left--;
    return true;
}

/*
 * Whether what the timer runs for has left the card. While the cable takes
 * nothing there can be no answer, and nothing is lost.
 */
static bool has_left(Hca *hca, HcaQp *qp)
{
    return !hca_resend_is_due(hca, qp) &&
           hca_frame_has_left(hca->port, qp->req.timer_mark);
}

static void rnr_timeout(Hca *hca, HcaQp *qp)
{
    HcaRequester *req = &qp->req;

    hca->requester->counters.rnr_timeouts++;
    hca_trace(hca, HCA_TRACE_TIMEOUT, qp->qpn, 1, req->unacked_psn,
              req->rnr_retries_left);
    req->rnr_wait = false;
    req->loss_seen = false; /* what is sent now may be lost, too */
    hca_retransmit(hca, qp);
    hca_schedule_send(hca, qp);
}

/* TIMER_RETRANS */
static void loss_timeout(Hca *hca, HcaQp *qp)
{
    if (!has_left(hca, qp)) {
        hca_loss_timer_restart(hca, qp);
        return;
    }
    hca->requester->counters.timeouts++;
    qp->counters->timeouts++;
    hca_trace(hca, HCA_TRACE_TIMEOUT, qp->qpn, 0, qp->req.unacked_psn,
              qp->req.retries_left);
    if (hca_use_retry(hca, qp)) {
        qp->req.loss_seen = false;
        hca_retransmit(hca, qp);
    }
}

void hca_requester_timer(Hca *hca, HcaQp *qp, int64_t now)
{
    hca_congestion_timer(hca, qp, now);
    if (hca_timer_take(hca, qp, HCA_TIMER_RNR, now)) {
        rnr_timeout(hca, qp);
    }
    if (hca_timer_take(hca, qp, HCA_TIMER_LOSS, now)) {
        loss_timeout(hca, qp);
    }
}
