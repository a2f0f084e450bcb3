/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ReqPktGen (engine document 3.4.4; header fields: table 3.1, and table A2-1
 * of the interface document).
 *
 * First transmission and retransmission come from the same record, so both
 * packets are the same. Every packet asks for an acknowledgement (3.4.1.1.3).
 */
#include <string.h>

#include "../clear.h"
#include "../port/frame_encap.h"
#include "../strict.h"
#include "units.h"

static void begin(const HcaQp *qp, uint8_t operation, uint32_t psn,
                  HcaPacket *packet)
{
    const HcaServiceRow *service = hca_service(qp->attr.service);

    hca_clear(packet, sizeof(*packet));
    packet->opcode = HCA_BTH_OPCODE(service->bth, operation);
    packet->mig_req = true; /* the path state is always MIGRATED */
    packet->ack_req = service->reliable;
    packet->dest_qp = qp->attr.remote_qpn;
    packet->psn = psn;
}

/* It is the same each time that it is sent. */
static void judge_payload(Hca *hca, HcaQp *qp, HcaSentPacket *sent,
                          const struct iovec *iov, unsigned iovcnt)
{
    uint32_t sum = hca_strict_sum(iov, iovcnt);

    if (sent->sum && sent->sum != sum) {
        hca_strict_tell(hca, qp, HCA_STRICT_PAYLOAD,
                        hca_sq_slot(&qp->attr, sent->wqe_offset));
    }
    sent->sum = sum;
}

/* By way of ReqTransCore, which finds the payload's memory, to the cable. */
static HcaV2pState send(Hca *hca, HcaQp *qp, const HcaPath *path,
                        HcaPacket *packet, uint8_t wqe_opcode,
                        const HcaSge *refs, unsigned nrefs, HcaSentPacket *sent)
{
    struct iovec iov[HCA_MAX_PIECES];
    unsigned iovcnt = G_N_ELEMENTS(iov);
    HcaV2pState state = hca_req_trans_core(hca, qp, wqe_opcode, refs, nrefs,
                                           iov, &iovcnt);

    if (state == HCA_V2P_SUCCESS) {
        if (sent && hca_is_strict(hca)) {
            judge_payload(hca, qp, sent, iov, iovcnt);
        }
        if (hca_service(qp->attr.service)->raw) {
            hca_frame_send_raw(hca->port, qp, iov, iovcnt);
        } else {
            hca_frame_send(hca->port, qp, path, packet, iov, iovcnt);
        }
    }
    return state;
}

/* On the wire QP 0 and QP 1 have these numbers. */
static uint32_t number_of(const HcaQp *qp)
{
    static const uint32_t numbers[] = {
        [HCA_SPECIAL_SMI] = 0,
        [HCA_SPECIAL_GSI] = 1,
    };

    return qp->special ? numbers[qp->special] : qp->qpn;
}

HcaV2pState hca_req_send_packet(Hca *hca, HcaQp *qp, const HcaWqe *ud,
                                HcaSentPacket *sent, const HcaSge *refs)
{
    HcaPacket packet;

    if (sent->planned.way == HCA_PLANNED_LOST) {
        return HCA_V2P_SUCCESS;
    }
    begin(qp, sent->operation, sent->psn, &packet);
    packet.solicited = sent->solicited;
    packet.va = sent->raddr;
    packet.rkey = sent->rkey;
    packet.dma_len = sent->msg_len;
    packet.imm_be = sent->imm_be;
    packet.inv_rkey = sent->rkey;
    packet.srqn = sent->srqn;
    packet.payload_len = sent->len;
    if (ud) {
        packet.dest_qp = ud->dqpn;
        packet.qkey = ud->qkey;
        packet.src_qp = number_of(qp);
    }
    return send(hca, qp, ud ? &ud->path : &qp->attr.path, &packet,
                sent->wqe_opcode, refs, sent->nrefs, sent);
}

HcaV2pState hca_req_read_value(Hca *hca, HcaQp *qp, uint8_t opcode,
                               const HcaSge *refs, unsigned nrefs,
                               uint64_t *value)
{
    struct iovec iov[HCA_MAX_PIECES];
    unsigned iovcnt = G_N_ELEMENTS(iov);
    HcaV2pState state = hca_req_trans_core(hca, qp, opcode, refs, nrefs, iov,
                                           &iovcnt);
    uint8_t *to = (uint8_t *)value;

    for (unsigned i = 0; state == HCA_V2P_SUCCESS && i < iovcnt; i++) {
        memcpy(to, iov[i].iov_base, iov[i].iov_len);
        to += iov[i].iov_len;
    }
    return state;
}

/* The value was found when it was sent first. */
static void send_atomic_write(Hca *hca, HcaQp *qp, HcaPacket *packet,
                              const HcaSentRead *write)
{
    uint64_t value = write->value;
    struct iovec iov = { &value, sizeof(value) };

    packet->dma_len = sizeof(value);
    packet->payload_len = sizeof(value);
    hca_frame_send(hca->port, qp, &qp->attr.path, packet, &iov, 1);
}

/* A Read goes on from what has been answered (partial retry, IBA 9.7.3.1). */
void hca_req_send_read(Hca *hca, HcaQp *qp, const HcaSentRead *read)
{
    const HcaSendOp *op = hca_send_op(read->wqe_opcode);
    HcaPacket packet;

    if (read->planned.way == HCA_PLANNED_LOST) {
        return;
    }
    begin(qp,
          read->planned.way == HCA_PLANNED_REQUEST ? HCA_SEND_LAST : op->only,
          hca_read_expects(read), &packet);
    packet.va = read->raddr + read->received;
    packet.rkey = read->rkey;
    packet.dma_len = op->flush ? read->flush_len : read->len - read->received;
    packet.feth = read->feth;
    packet.swap_add = read->swap_add;
    packet.compare = read->compare;
    packet.srqn = read->srqn;
    if (hca_has_value(op)) {
        send_atomic_write(hca, qp, &packet, read);
    } else {
        send(hca, qp, &qp->attr.path, &packet, read->wqe_opcode, NULL, 0, NULL);
    }
}
