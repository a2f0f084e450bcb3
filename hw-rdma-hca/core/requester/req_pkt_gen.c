/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ReqPktGen (engine document 3.4.4; header fields: table 3.1, and table A2-1
 * of the interface document).
 *
 * First transmission and retransmission come from the same record, so both
 * packets are the same. Every packet asks for an acknowledgement (3.4.1.1.3).
 */
#include "../frame_encap.h"
#include "units.h"

static HcaPacket request(const HcaQp *qp, uint8_t bth_opcode, uint32_t psn)
{
    return (HcaPacket) {
        .opcode = bth_opcode,
        .mig_req = true,        /* the path state is always MIGRATED */
        .ack_req = qp->service == RDMA_HCA_QP_ST_RC,
        .dest_qp = qp->remote_qpn,
        .psn = psn,
    };
}

/* The memory that the pieces of a payload are in. */
static HcaV2pState map_refs(Hca *hca, const HcaQp *qp, const HcaSge *refs,
                            unsigned nrefs, struct iovec *iov,
                            unsigned *iovcnt)
{
    unsigned used = 0;

    for (unsigned i = 0; i < nrefs; i++) {
        HcaMatchInfo info = {
            .flags = refs[i].relative ? HCA_V2P_RELATIVE_ADDR
                                      : HCA_V2P_ABSOLUTE_ADDR,
            .pd = qp->pd,
            .key = refs[i].lkey,
            .len = refs[i].len,
            .va = refs[i].va,
        };
        unsigned room = *iovcnt - used;
        HcaV2pState state = hca_v2p_map(hca->v2p, HCA_V2P_WP_ND, &info,
                                        iov + used, &room);

        if (state != HCA_V2P_SUCCESS) {
            return state;
        }
        used += room;
    }
    *iovcnt = used;
    return HCA_V2P_SUCCESS;
}

HcaV2pState hca_req_send_packet(Hca *hca, HcaQp *qp, const HcaWqe *ud,
                                const HcaSentPacket *sent, const HcaSge *refs)
{
    struct iovec iov[HCA_MAX_PIECES];
    unsigned iovcnt = G_N_ELEMENTS(iov);
    HcaPacket packet = request(qp, sent->bth_opcode, sent->psn);
    HcaV2pState state;

    packet.solicited = sent->solicited;
    packet.va = sent->raddr;
    packet.rkey = sent->rkey;
    packet.dma_len = sent->msg_len;
    packet.imm_be = sent->imm_be;
    packet.payload_len = sent->len;
    if (ud) {
        packet.dest_qp = ud->dqpn;
        packet.qkey = ud->qkey;
        packet.src_qp = qp->qpn;
    }
    state = map_refs(hca, qp, refs, sent->nrefs, iov, &iovcnt);
    if (state == HCA_V2P_SUCCESS) {
        hca_frame_send(hca, qp, ud ? &ud->path : &qp->path, &packet, iov,
                       iovcnt);
    }
    return state;
}

/* A Read goes on from what has been answered (partial retry, IBA 9.7.3.1). */
void hca_req_send_read(Hca *hca, HcaQp *qp, const HcaSentRead *read)
{
    HcaPacket packet = request(qp, HCA_READ_REQUEST,
                               hca_psn_add(read->psn, read->answered));

    switch (read->wqe_opcode) {
    case RDMA_HCA_OPCODE_ATOMIC_CS:
        packet.opcode = HCA_CMP_SWAP;
        break;
    case RDMA_HCA_OPCODE_ATOMIC_FA:
        packet.opcode = HCA_FETCH_ADD;
        break;
    }
    packet.va = read->raddr + read->received;
    packet.rkey = read->rkey;
    packet.dma_len = read->len - read->received;
    packet.swap_add = read->swap_add;
    packet.compare = read->compare;
    hca_frame_send(hca, qp, &qp->path, &packet, NULL, 0);
}
