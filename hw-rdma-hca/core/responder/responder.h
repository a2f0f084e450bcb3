/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responder engine (engine document 4).
 *
 * header_check.c      4.4.1.1.1: the checks before a request is executed
 * execution_engine.c  4.4.1: PSN regions, execution, what failures lead to
 * recv_completion.c   4.4.1.3: state COMPLETION; flush of the receive queue
 * rq_wqe_manager.c    4.4.2: receive WQEs, prefetched 512 bytes at a time
 * write_addr_table.c  4.4.3: where the next packet of a Write goes
 * resp_pkt_gen.c      4.4.4: ACK, NAK, Read response, atomic response packets
 * notification.c      RoCE engine document 7.4: CE marks received, CNPs sent
 */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

#include "../card.h"

/* A request packet for @qp, which is in RTR, RTS, SQE or SQD. */
void hca_responder_receive(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/*
 * Send up to @budget response packets of @qp. Returns true if more are left
 * and the cable took all it was given.
 */
bool hca_responder_send(Hca *hca, HcaQp *qp, unsigned budget);

/* Whether anything is left to send. */
static inline bool hca_responder_owes(const HcaQp *qp)
{
    return qp->resp.cnp_owed || qp->resp.ring_head != qp->resp.ring_tail;
}

/* A sound packet for @qp, request or response: owe a CNP if it is marked. */
void hca_cnp_note(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/* resp.flush_deadline has come. */
void hca_responder_timer(Hca *hca, HcaQp *qp, int64_t now);

/* The QP's state changed (HcaQpStateFn): begin, flush or forget. */
void hca_responder_state(Hca *hca, HcaQp *qp, uint8_t old_state);

#endif /* HCA_RESPONDER_H */
