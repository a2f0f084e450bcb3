/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the units of the requester engine offer to one another. */
#ifndef HCA_REQUESTER_UNITS_H
#define HCA_REQUESTER_UNITS_H

#include "../send_op.h"
#include "multi_queue.h"

/* TimerControl (3.4.2, table 7.9). */
void hca_loss_timer_start(Hca *hca, HcaQp *qp); /* if it is off */
void hca_loss_timer_restart(Hca *hca, HcaQp *qp);
void hca_rnr_timer_start(Hca *hca, HcaQp *qp, uint8_t code);
void hca_timers_stop(Hca *hca, HcaQp *qp);

/*
 * ReqTransCore: the memory of the payload of a packet, whose pieces are @refs;
 * @opcode is its WQE's. As hca_v2p_map().
 */
HcaV2pState hca_req_trans_core(Hca *hca, HcaQp *qp, uint8_t opcode,
                               const HcaSge *refs, unsigned nrefs,
                               struct iovec *iov, unsigned *iovcnt);

/*
 * ReqPktGen (3.4.4): put a packet on the cable. Memory that is refused sends
 * nothing and is the result.
 */
HcaV2pState hca_req_send_packet(Hca *hca, HcaQp *qp, const HcaWqe *ud,
                                HcaSentPacket *packet, const HcaSge *refs);
void hca_req_send_read(Hca *hca, HcaQp *qp, const HcaSentRead *read);
/* What an atomic write will write: @refs are 8 bytes. */
HcaV2pState hca_req_read_value(Hca *hca, HcaQp *qp, uint8_t opcode,
                               const HcaSge *refs, unsigned nrefs,
                               uint64_t *value);

/* Whether a message of this kind may begin: the peer has credits for it. */
bool hca_credits_allow(const HcaQp *qp, const HcaSendOp *op);
/* One has begun. */
void hca_credits_begin(HcaQp *qp, const HcaSendOp *op);
/* What an AETH that is no NAK tells. False: nothing new. */
bool hca_credits_told(Hca *hca, HcaQp *qp, const HcaPacket *packet);

/* ScatterEntryManager (3.4.5.4): write response data to where it belongs. */
HcaV2pState hca_scatter(Hca *hca, HcaQp *qp, const uint8_t *data, uint32_t len);

/* Local operations */

/* In a CQE's vendor_err, with the HcaV2pState. */
#define HCA_LOCAL_REFUSED 0x10

/* Execute @op, of a WQE with @opcode. The syndrome it ends with, 0: well. */
uint8_t hca_local_execute(Hca *hca, HcaQp *qp, uint8_t opcode,
                          const HcaMemOp *op, uint8_t *vendor_err);
/* Whether there is room for one; else as hca_mq_swpb_room(). */
bool hca_local_room(Hca *hca, HcaQp *qp);
/* @wqe has been executed: it completes when all before it has. */
void hca_local_done(Hca *hca, HcaQp *qp, const HcaWqe *wqe);
/* Something has completed: those that waited for nothing else do, too. */
void hca_local_complete(Hca *hca, HcaQp *qp);

/* Whether packets are sent that have not been acknowledged or answered. */
static inline bool hca_outstanding(const HcaQp *qp)
{
    return qp->req.swpb.count || qp->req.rpb.count;
}

/* Packets of either kind: what the outstanding limit counts. */
static inline uint32_t hca_on_their_way(const HcaQp *qp)
{
    return qp->req.swpb.count - qp->req.locals + qp->req.rpb.count;
}

/* PSN of the next response to @read. */
static inline uint32_t hca_read_expects(const HcaSentRead *read)
{
    return hca_psn_add(read->psn, read->answered);
}

/*
 * Whether @read is the older of the two, either of which may be NULL. Its
 * answered part may be so long that its own PSN is half of the circle away.
 */
static inline bool hca_read_is_older(const HcaSentRead *read,
                                     const HcaSentPacket *packet)
{
    return read &&
           (!packet || hca_psn_diff(hca_read_expects(read), packet->psn) < 0);
}

/* Begin to send again from the oldest packet on. */
void hca_retransmit(Hca *hca, HcaQp *qp);
/* Whether the oldest packet is still to be sent again. */
bool hca_resend_is_due(Hca *hca, HcaQp *qp);

/*
 * Write the CQE of a send WQE. @syndrome 0 is success; then @signalled
 * decides whether there is one.
 */
void hca_complete(Hca *hca, HcaQp *qp, uint32_t wqe_offset, uint8_t opcode,
                  bool signalled, uint32_t byte_cnt, uint8_t syndrome,
                  uint8_t vendor_err);

/* What a completion leads to: a barrier that falls, SQD that is drained. */
void hca_progress(Hca *hca, HcaQp *qp);

/* The oldest WQE that is not done fails with @syndrome; the QP goes to ERR. */
void hca_requester_fail(Hca *hca, HcaQp *qp, uint8_t syndrome,
                        uint8_t vendor_err);

/* One turn of the loss timer or an implied NAK; false: retries exhausted. */
bool hca_use_retry(Hca *hca, HcaQp *qp);

#endif /* HCA_REQUESTER_UNITS_H */
