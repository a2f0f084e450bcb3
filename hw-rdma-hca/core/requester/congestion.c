/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reaction to congestion (RoCE engine document 7.4).
 *
 * A QP of a RoCE card has a limited number of requests on their way. A CNP
 * halves it and tells software; some time after the last CNP it is restored.
 * UC and UD wait for no answers, so none of their packets counts as on its way:
 * the event is all that a CNP means to them.
 */
#include "congestion.h"
#include "units.h"

#define NS_PER_US 1000ll

static uint32_t full_limit(const Hca *hca)
{
    return hca_port_is_roce(hca->port) ? hca->config.osq_per_qp : UINT32_MAX;
}

uint32_t hca_congestion_limit(const Hca *hca, const HcaQp *qp)
{
    uint32_t limit = full_limit(hca);

    return qp->req.congested ? MAX(limit / 2, 1) : limit;
}

static void set_congested(Hca *hca, HcaQp *qp, bool congested)
{
    uint32_t old = hca_congestion_limit(hca, qp);

    qp->req.congested = congested;
    hca_trace(hca, HCA_TRACE_CONGESTION, qp->qpn, old,
              hca_congestion_limit(hca, qp), hca_on_their_way(qp));
}

void hca_congestion_receive(Hca *hca, HcaQp *qp)
{
    hca->requester->counters.cnp_rx++;
    hca_timer_set(hca, qp, HCA_TIMER_CONGESTION,
                  hca_now(hca) + hca->config.cnp_timer_us * NS_PER_US);
    if (!qp->req.congested) {
        set_congested(hca, qp, true);
        hca->requester->counters.limit_halved++;
        hca_qp_event(hca->cm, qp, HCA_EVENT_CONGESTION);
    }
}

void hca_congestion_timer(Hca *hca, HcaQp *qp, int64_t now)
{
    if (!hca_timer_take(hca, qp, HCA_TIMER_CONGESTION, now)) {
        return;
    }
    set_congested(hca, qp, false);
    hca->requester->counters.limit_restored++;
    hca_schedule_send(hca, qp);
}
