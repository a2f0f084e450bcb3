/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DataPack (engine document 2.4.5, figure 2.7).
 *
 * The document closes the gaps between the pieces that were read. Here no
 * data have been read: a packet's payload is the next bytes of the list of
 * entries, and the pieces lie side by side in the gathered write.
 */
#include "send.h"

/* Take the next @len bytes of the message; returns the pieces they are in. */
static unsigned pack(HcaWqe *wqe, uint32_t len, HcaSge *refs)
{
    unsigned n = 0;

    while (len) {
        const HcaSge *sge = &wqe->sge[wqe->sge_at];
        uint32_t part = MIN(len, sge->len - wqe->sge_done);

        refs[n] = *sge;
        refs[n].va += wqe->sge_done;
        refs[n].len = part;
        n++;
        len -= part;
        wqe->sge_done += part;
        if (wqe->sge_done == sge->len) { /* SGL_DATA_NEXT */
            wqe->sge_at++;
            wqe->sge_done = 0;
        }
    }
    return n;
}

/* Whether the memory of the next packet is here; none of it is taken. */
static bool payload_is_here(Hca *hca, HcaQp *qp)
{
    HcaWqe *wqe = &qp->send.wqe;
    const HcaSendOp *op = hca_send_op(wqe->ref.opcode);
    uint32_t len = MIN(qp->pmtu, wqe->msg_len - wqe->sent);
    unsigned at = wqe->sge_at;
    uint32_t done = wqe->sge_done;
    bool completes = !hca_service(qp->attr.service)->reliable &&
                     wqe->signalled && wqe->sent + len == wqe->msg_len;
    HcaSge refs[RDMA_HCA_MAX_SGE];
    unsigned nrefs;

    if (hca_has_value(op)) {
        return hca_req_trans_is_here(hca, qp, wqe->ref.opcode, wqe->sge,
                                     wqe->nsge, completes);
    }
    if (op->transfer != HCA_TRANSFER_PAYLOAD) {
        return true;
    }
    nrefs = pack(wqe, len, refs);
    wqe->sge_at = at;
    wqe->sge_done = done;
    return hca_req_trans_is_here(hca, qp, wqe->ref.opcode, refs, nrefs,
                                 completes);
}

/* One packet of the WQE in hand. Returns true if it was the last. */
static bool offer_packet(Hca *hca, HcaQp *qp)
{
    HcaWqe *wqe = &qp->send.wqe;
    HcaSge refs[RDMA_HCA_MAX_SGE];
    unsigned nrefs;
    uint32_t len;
    bool last;

    if (hca_send_op(wqe->ref.opcode)->transfer != HCA_TRANSFER_PAYLOAD) {
        /* ENTRY */
        return hca_requester_segment(hca, qp, wqe, wqe->sge, wqe->nsge,
                                     wqe->msg_len);
    }
    len = MIN(qp->pmtu, wqe->msg_len - wqe->sent);
    nrefs = pack(wqe, len, refs);
    last = hca_requester_segment(hca, qp, wqe, refs, nrefs, len);
    wqe->sent += len;
    return last;
}

HcaTurn hca_data_pack(Hca *hca, HcaQp *qp, unsigned *budget)
{
    HcaSendQueue *sq = &qp->send;

    while (*budget && !hca_v2p_share_is_over(hca->v2p)) {
        /* Before there is room for it, which others may want meanwhile. */
        if (hca->late && !sq->wqe.syndrome && !payload_is_here(hca, qp)) {
            return HCA_TURN_IDLE;
        }
        switch (hca_requester_judge(hca, qp, &sq->wqe)) {
        case HCA_JUDGE_WAIT:
            return HCA_TURN_IDLE;
        case HCA_JUDGE_BLOCKED:
            return HCA_TURN_BLOCKED;
        case HCA_JUDGE_TAKEN: /* FLUSH_DATA */
            sq->wqe_valid = false;
            (*budget)--;
            return HCA_TURN_IDLE;
        case HCA_JUDGE_SEND:
            (*budget)--;
            if (offer_packet(hca, qp)) {
                sq->wqe_valid = false;
                hca_requester_wqe_sent(hca, qp);
                return HCA_TURN_IDLE;
            }
            break;
        }
    }
    return HCA_TURN_MORE;
}
