/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ReqPktGen (engine document 3.4.4; header fields: table 3.1, and table A2-1
 * of the interface document).
 *
 * First transmission and retransmission come from the same record, so both
 * packets are the same. Every packet asks for an acknowledgement (3.4.1.1.3).
 */
#include "../port/frame_encap.h"
#include "units.h"

static HcaPacket request(const HcaQp *qp, uint8_t operation, uint32_t psn)
{
    return (HcaPacket) {
        .opcode = qp->service << 5 | operation,
        .mig_req = true, /* the path state is always MIGRATED */
        .ack_req = qp->service == HCA_SERVICE_RC,
        .dest_qp = qp->remote_qpn,
        .psn = psn,
    };
}

HcaV2pState hca_req_send_packet(Hca *hca, HcaQp *qp, const HcaWqe *ud,
                                const HcaSentPacket *sent, const HcaSge *refs)
{
    struct iovec iov[HCA_MAX_PIECES];
    unsigned iovcnt = G_N_ELEMENTS(iov);
    const HcaWqeMeta *meta = &sent->meta;
    HcaPacket packet = request(
        qp, RDMA_HCA_GET(HCA_META_NET_OPCODE, meta->remote), sent->psn);
    HcaV2pState state;

    packet.dest_qp = RDMA_HCA_GET(HCA_META_REMOTE_QPN, meta->remote);
    packet.solicited = meta->flags & HCA_META_SOLICITED;
    packet.va = hca_meta_raddr(meta);
    packet.rkey = meta->rkey;
    packet.dma_len = meta->msg_length;
    packet.imm_be = meta->immediate;
    packet.payload_len = meta->packet_length;
    if (ud) {
        packet.qkey = ud->qkey;
        packet.src_qp = qp->qpn;
    }
    state = hca_req_trans_core(hca, qp, meta, refs, sent->nrefs, iov, &iovcnt);
    if (state == HCA_V2P_SUCCESS) {
        hca_frame_send(hca->port, qp, ud ? &ud->path : &qp->path, &packet, iov,
                       iovcnt);
    }
    return state;
}

/* A Read carries no payload: it takes the bypass of ReqTransCore. */
static void bypass(Hca *hca, HcaQp *qp, const HcaSentRead *read)
{
    unsigned iovcnt = 0;
    HcaWqeMeta meta = {
        .local = RDMA_HCA_PREP(HCA_META_LOCAL_QPN, qp->qpn) |
                 RDMA_HCA_PREP(HCA_META_VERBS_OPCODE, read->wqe_opcode),
    };

    hca_req_trans_core(hca, qp, &meta, NULL, 0, NULL, &iovcnt);
}

/* A Read goes on from what has been answered (partial retry, IBA 9.7.3.1). */
void hca_req_send_read(Hca *hca, HcaQp *qp, const HcaSentRead *read)
{
    HcaPacket packet = request(qp, hca_send_op(read->wqe_opcode)->only,
                               hca_read_expects(read));

    packet.va = read->raddr + read->received;
    packet.rkey = read->rkey;
    packet.dma_len = read->len - read->received;
    packet.swap_add = read->swap_add;
    packet.compare = read->compare;
    bypass(hca, qp, read);
    hca_frame_send(hca->port, qp, &qp->path, &packet, NULL, 0);
}
