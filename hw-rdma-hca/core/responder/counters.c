/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The responder engine: what it counts. */
#include "../counter_table.h"
#include "responder.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaResponderCounters, field, text)
#define REFUSED(number, name, o, t)                                            \
    COUNTER(number, "refused_" name, outcomes[HCA_EXE_##o],                    \
            "requests refused: " t)

HCA_GAUGE_FN(resp_queue, Hca, room->resp_queue.length)

static const void *counters(const void *room)
{
    return &((const Hca *)room)->responder->counters;
}

static const HcaCounterRow rows[] = {
    COUNTER(115, "sends", requests[HCA_REQUEST_SEND], "Send packets executed"),
    COUNTER(116, "writes", requests[HCA_REQUEST_WRITE],
            "Write packets executed"),
    COUNTER(117, "reads", requests[HCA_REQUEST_READ], "Read requests executed"),
    COUNTER(118, "atomics", requests[HCA_REQUEST_ATOMIC], "atomics executed"),
    COUNTER(119, "executed", outcomes[HCA_EXE_OK], "request packets executed"),
    REFUSED(120, "psn", PSN, "ahead of what is expected"),
    REFUSED(121, "no_wqe", NO_WQE, "no receive WQE is posted"),
    REFUSED(122, "opcode", OPCODE, "out of place in a message"),
    REFUSED(123, "forbidden", FORBIDDEN, "not allowed by the QP"),
    REFUSED(124, "length", LENGTH, "wrong length"),
    REFUSED(125, "alignment", ALIGNMENT, "atomic not aligned"),
    REFUSED(126, "resources", RESOURCES, "more Reads than allowed"),
    REFUSED(127, "too_long", TOO_LONG, "too long for the receive WQE"),
    REFUSED(128, "access", ACCESS, "R_Key, address or length"),
    REFUSED(129, "remote_memory", REMOTE_MEMORY, "allowed, but not RAM"),
    REFUSED(130, "local_prot", LOCAL_PROT, "scatter entry refused"),
    REFUSED(131, "bad_wqe", BAD_WQE, "receive WQE malformed"),
    REFUSED(132, "bad_queue", BAD_QUEUE, "receive queue unusable"),
    REFUSED(133, "cq_lost", CQ_LOST, "completion not written"),
    REFUSED(561, "planned", PLANNED, "by a plan of faults"),
    REFUSED(562, "ignored", IGNORED, "in silence, by a plan of faults"),
    COUNTER(134, "duplicates", duplicates, "requests received again"),
    COUNTER(135, "acks_tx", acks_tx, "ACKs sent"),
    COUNTER(136, "rnrs_tx", rnrs_tx, "RNR NAKs sent"),
    COUNTER(137, "naks_tx", naks_tx, "other NAKs sent"),
    COUNTER(138, "nak_tx_psn", nak_codes_tx[HCA_NAK_PSN_SEQ],
            "NAKs sent: PSN sequence"),
    COUNTER(139, "nak_tx_invalid", nak_codes_tx[HCA_NAK_INVALID_REQUEST],
            "NAKs sent: invalid request"),
    COUNTER(140, "nak_tx_access", nak_codes_tx[HCA_NAK_REMOTE_ACCESS],
            "NAKs sent: remote access"),
    COUNTER(141, "nak_tx_operation", nak_codes_tx[HCA_NAK_REMOTE_OP],
            "NAKs sent: remote operation"),
    COUNTER(142, "read_responses_tx", read_responses_tx, "Read responses sent"),
    COUNTER(143, "atomic_responses_tx", atomic_responses_tx,
            "atomic responses sent"),
    COUNTER(144, "rq_fetches", rq.fetches, "fetches of receive WQEs"),
    COUNTER(145, "rq_record_reads", rq.record_reads, "reads of a posted count"),
    COUNTER(146, "receives_completed", receives_completed, "receive WQEs done"),
    COUNTER(147, "receives_failed", receives_failed,
            "receive WQEs that ended in an error"),
    COUNTER(148, "receives_flushed", receives_flushed, "receive WQEs flushed"),
    HCA_GAUGE(149, "qps_scheduled", INSTANT, resp_queue,
              "QPs with a response to send"),
    REFUSED(365, "xrc_srq", XRC_SRQ, "no such SRQ for XRC"),
    COUNTER(334, "ecn_marked_rx", ecn_marked_rx,
            "packets received with a CE mark"),
    REFUSED(352, "invalidation", INVALIDATION, "key not to be invalidated"),
    COUNTER(374, "atomic_writes", requests[HCA_REQUEST_ATOMIC_WRITE],
            "atomic writes executed"),
    COUNTER(375, "flushes", requests[HCA_REQUEST_FLUSH], "FLUSHes executed"),
    COUNTER(335, "cnp_tx", cnp_tx, "congestion notifications sent"),
};

const HcaCounterTable hca_responder_counter_table = {
    .unit = "responder",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
