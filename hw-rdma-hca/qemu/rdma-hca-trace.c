/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's trace events (core/trace_events.h) as QEMU's, of the same names.
 */
#include "qemu/osdep.h"
#include "../core/card.h"
#include "rdma-hca-thread.h"
#include "trace.h"

void rdma_hca_trace(void *opaque, const HcaTrace *trace)
{
    const char *name = ((RdmaHcaThread *)opaque)->name;
    uint32_t number = trace->qpn;
    const uint64_t *arg = trace->arg;

/* FORWARD and the number of arguments; there is always the number. */
#define FORWARD0(event, function)                                              \
    case HCA_TRACE_##event:                                                    \
        trace_rdma_hca_##function(name, number);                               \
        break
#define FORWARD1(event, function)                                              \
    case HCA_TRACE_##event:                                                    \
        trace_rdma_hca_##function(name, number, arg[0]);                       \
        break
#define FORWARD2(event, function)                                              \
    case HCA_TRACE_##event:                                                    \
        trace_rdma_hca_##function(name, number, arg[0], arg[1]);               \
        break
#define FORWARD3(event, function)                                              \
    case HCA_TRACE_##event:                                                    \
        trace_rdma_hca_##function(name, number, arg[0], arg[1], arg[2]);       \
        break

    /* Without a default, the compiler tells of an event that is missing. */
    switch ((HcaTraceEvent)trace->event) {
        FORWARD3(COMMAND, command);
        FORWARD3(DOORBELL, doorbell);
        FORWARD2(DOORBELL_BAD, doorbell_bad);
        FORWARD2(QP_STATE, qp_state);
        FORWARD3(WQE, wqe);
        FORWARD3(WQE_ERROR, wqe_error);
        FORWARD3(PACKET_TX, packet_tx);
        FORWARD3(PACKET_RX, packet_rx);
        FORWARD3(PACKET_DROP, packet_drop);
        FORWARD3(NAK_TX, nak_tx);
        FORWARD2(NAK_RX, nak_rx);
        FORWARD3(RETRANSMIT, retransmit);
        FORWARD3(TIMEOUT, timeout);
        FORWARD3(REQ_TRANS, req_trans);
        FORWARD3(CQE, cqe);
        FORWARD1(CQ_ERROR, cq_error);
        FORWARD2(EQE, eqe);
        FORWARD3(V2P_ERROR, v2p_error);
        FORWARD3(V2P_REQUEST, v2p_request);
        FORWARD1(LINK, link);
        FORWARD3(FAULT, fault);
        FORWARD3(HOST_FAULT, host_fault);
        FORWARD2(STRICT, strict);
        FORWARD3(SRQ_WQE, srq_wqe);
        FORWARD1(SRQ_ERROR, srq_error);
        FORWARD1(CNP_TX, cnp_tx);
        FORWARD3(CONGESTION, congestion);
        FORWARD3(MEM_OP, mem_op);
        FORWARD0(RESET, card_reset);
    case HCA_TRACE_NEVENTS:
        break;
    }
}
