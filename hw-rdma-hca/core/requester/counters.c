/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The requester engine: what it counts. */
#include "../counter_table.h"
#include "requester.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaRequesterCounters, field, text)
#define WAIT(number, name, w, t)                                               \
    COUNTER(number, "wait_" name, waits[HCA_WAIT_##w], "waits: " t)

static HcaMqGauges gauges(const Hca *hca)
{
    HcaMqGauges gauges;

    hca_mq_gauges(hca->requester->mq, &gauges);
    return gauges;
}

HCA_GAUGE_FN(timers, Hca, room->timers.count)
HCA_GAUGE_FN(swpb_used, Hca, gauges(room).swpb.used)
HCA_GAUGE_FN(swpb_peak, Hca, gauges(room).swpb.peak)
HCA_GAUGE_FN(rpb_used, Hca, gauges(room).rpb.used)
HCA_GAUGE_FN(rpb_peak, Hca, gauges(room).rpb.peak)
HCA_GAUGE_FN(reb_used, Hca, gauges(room).reb.used)
HCA_GAUGE_FN(reb_peak, Hca, gauges(room).reb.peak)
HCA_GAUGE_FN(pool_waiting, Hca, gauges(room).waiting)
HCA_GAUGE_FN(swpb_capacity, Hca, room->config.swpb_elements)
HCA_GAUGE_FN(rpb_capacity, Hca, room->config.rpb_elements)
HCA_GAUGE_FN(reb_capacity, Hca, room->config.reb_elements)

static const void *counters(const void *room)
{
    return &((const Hca *)room)->requester->counters;
}

static const HcaCounterRow rows[] = {
    COUNTER(77, "packets_sent", packets_sent,
            "Send and Write packets sent first"),
    COUNTER(78, "reads_sent", reads_sent,
            "Read and atomic requests sent first"),
    COUNTER(79, "retransmissions", retransmissions, "packets sent again"),
    WAIT(80, "state", STATE, "the QP does not send in its state"),
    WAIT(81, "rnr", RNR, "the peer was not ready to receive"),
    WAIT(82, "barrier", BARRIER, "a WQE put aside is still to complete"),
    WAIT(83, "fence", FENCE, "Reads before a fence"),
    WAIT(84, "reads", READS, "as many Reads out as the peer takes"),
    WAIT(85, "psns", PSNS, "no PSNs left"),
    WAIT(86, "swpb", SWPB, "no room in the send and write packet buffer"),
    WAIT(87, "rpb", RPB, "no room in the read buffers"),
    WAIT(88, "cable", CABLE, "the cable took no packet"),
    COUNTER(89, "acks_rx", acks_rx, "ACKs received"),
    COUNTER(90, "rnrs_rx", rnrs_rx, "RNR NAKs received"),
    COUNTER(91, "naks_rx", naks_rx, "other NAKs received"),
    COUNTER(92, "nak_rx_psn", nak_codes_rx[HCA_NAK_PSN_SEQ],
            "NAKs received: PSN sequence"),
    COUNTER(93, "nak_rx_invalid", nak_codes_rx[HCA_NAK_INVALID_REQUEST],
            "NAKs received: invalid request"),
    COUNTER(94, "nak_rx_access", nak_codes_rx[HCA_NAK_REMOTE_ACCESS],
            "NAKs received: remote access"),
    COUNTER(95, "nak_rx_operation", nak_codes_rx[HCA_NAK_REMOTE_OP],
            "NAKs received: remote operation"),
    COUNTER(96, "nak_rx_rd", nak_codes_rx[HCA_NAK_INVALID_RD],
            "NAKs received: invalid RD request"),
    COUNTER(97, "nak_rx_reserved", nak_codes_rx[HCA_NNAKS - 1],
            "NAKs received: reserved code"),
    COUNTER(98, "responses_rx", responses_rx,
            "Read and atomic responses taken"),
    COUNTER(99, "answers_lost", answers_lost,
            "answers that tell of a lost one"),
    COUNTER(100, "timeouts", timeouts, "transport timer expired"),
    COUNTER(101, "rnr_timeouts", rnr_timeouts, "RNR timer expired"),
    COUNTER(102, "retries_exhausted", retries_exhausted, "QPs that gave up"),
    COUNTER(103, "rnr_retries_exhausted", rnr_retries_exhausted,
            "QPs that gave up after RNR NAKs"),
    COUNTER(104, "wqes_completed", wqes_completed, "send WQEs done"),
    COUNTER(105, "wqes_failed", wqes_failed,
            "send WQEs that ended in an error"),
    COUNTER(106, "wqes_flushed", wqes_flushed, "send WQEs flushed"),
    HCA_GAUGE(107, "swpb_used", INSTANT, swpb_used,
              "send and write packet buffer: elements in use"),
    HCA_GAUGE(108, "swpb_peak", PEAK, swpb_peak,
              "send and write packet buffer: most in use"),
    HCA_GAUGE(109, "rpb_used", INSTANT, rpb_used,
              "read packet buffer: elements in use"),
    HCA_GAUGE(110, "rpb_peak", PEAK, rpb_peak,
              "read packet buffer: most in use"),
    HCA_GAUGE(111, "reb_used", INSTANT, reb_used,
              "read entry buffer: elements in use"),
    HCA_GAUGE(112, "reb_peak", PEAK, reb_peak,
              "read entry buffer: most in use"),
    HCA_GAUGE(113, "qps_waiting", INSTANT, pool_waiting,
              "QPs that wait for room in a buffer"),
    HCA_GAUGE(114, "timers", INSTANT, timers, "QPs with a timer running"),
    WAIT(330, "outstanding", OUTSTANDING,
         "as many requests out as the limit says"),
    COUNTER(331, "cnp_rx", cnp_rx, "congestion notifications received"),
    COUNTER(332, "limit_halved", limit_halved, "outstanding limits halved"),
    COUNTER(333, "limit_restored", limit_restored,
            "outstanding limits restored"),
    WAIT(341, "credits", CREDITS, "the peer has no receive for a message"),
    HCA_GAUGE(532, "swpb_capacity", INSTANT, swpb_capacity,
              "send and write packet buffer: elements that there are"),
    HCA_GAUGE(533, "rpb_capacity", INSTANT, rpb_capacity,
              "read packet buffer: elements that there are"),
    HCA_GAUGE(534, "reb_capacity", INSTANT, reb_capacity,
              "read entry buffer: elements that there are"),
};

const HcaCounterTable hca_requester_counter_table = {
    .unit = "requester",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
