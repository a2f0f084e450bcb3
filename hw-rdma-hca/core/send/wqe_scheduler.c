/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQEScheduler (engine document 2.4.2, figure 2.4).
 *
 * A chained WQE (Q2) comes before a doorbelled one (Q1) of the same QP, which
 * has to wait until the chain ends. Among QPs the turns of hca_run() decide.
 */
#include "../strict.h"
#include "send.h"

/* The next reference and who finds it; false if the queue is empty. */
static bool next_ref(const HcaSendQueue *sq, HcaWqeRef *ref,
                     HcaV2pChannel *channel)
{
    if (sq->indicator) { /* FROM_MEMQ */
        *ref = sq->chained;
        *channel = HCA_V2P_WP_WQE;
        return true;
    }
    if (sq->doorbell_head != sq->doorbell_tail) { /* FROM_DBQ */
        *ref = sq->doorbells[sq->doorbell_head & sq->doorbell_mask];
        *channel = HCA_V2P_DB;
        return true;
    }
    return false;
}

/* A WQE has the place of one that has ended, or the queue has no such place. */
static void judge_room(Hca *hca, HcaQp *qp)
{
    const HcaSendQueue *sq = &qp->send;
    uint16_t in_use = sq->taken - sq->ended;

    if (in_use > qp->attr.sq_len >> qp->attr.sq_entry_log) {
        hca_strict_tell(hca, qp, HCA_STRICT_SQ_OVERRUN,
                        hca_sq_slot(&qp->attr, sq->wqe.ref.offset));
    }
}

bool hca_wqe_schedule(Hca *hca, HcaQp *qp)
{
    HcaSendQueue *sq = &qp->send;
    HcaV2pChannel channel;
    HcaWqeRef ref;

    if (!next_ref(sq, &ref, &channel)) {
        return false;
    }
    if (hca->late && !hca_wqe_is_here(hca, qp, channel, &ref)) {
        return false;
    }
    sq->doorbell_head += channel == HCA_V2P_DB;
    hca->send->counters.wqes_chained += channel == HCA_V2P_WP_WQE;
    hca_wqe_parse(hca, qp, channel, &ref, &sq->wqe);
    sq->wqe_valid = true;
    sq->taken++;
    if (hca_is_strict(hca)) {
        judge_room(hca, qp);
    }
    if (hca_wqe_plan(hca, qp)) {
        hca_qp_event(hca->cm, qp, HCA_EVENT_WQ_CATAS_ERROR);
        hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
    }
    return true;
}

/*
 * A QP that came back from SQE has flushed all that was posted before. It may
 * have gone on to SQD meanwhile; there is no end in SQE and ERR.
 */
static bool flushed_enough(const HcaQp *qp)
{
    const HcaSendQueue *sq = &qp->send;

    return qp->state != HCA_QP_SQE && qp->state != HCA_QP_ERR &&
           !sq->wqe_valid && !sq->indicator &&
           sq->doorbell_head == sq->flush_end;
}

/* ERR and SQE: what is in the queue ends unsent (2.4.3.1.2). */
static HcaTurn flush(Hca *hca, HcaQp *qp, unsigned budget)
{
    HcaSendQueue *sq = &qp->send;

    while (budget--) {
        if (flushed_enough(qp)) {
            sq->flushing = false;
            return HCA_TURN_MORE;
        }
        if (!sq->wqe_valid && !hca_wqe_schedule(hca, qp)) {
            return HCA_TURN_IDLE;
        }
        sq->wqe_valid = false;
        hca_requester_flush(hca, qp, &sq->wqe.ref);
    }
    return HCA_TURN_MORE;
}

HcaTurn hca_send_run(Hca *hca, HcaQp *qp, unsigned budget)
{
    HcaSendQueue *sq = &qp->send;
    HcaTurn turn;

    if (hca_send_flushes(qp)) {
        return flush(hca, qp, budget);
    }
    if (qp->state < HCA_QP_RTS) {
        return HCA_TURN_IDLE;
    }
    turn = hca_requester_resend(hca, qp, &budget);
    if (hca->late && qp->req.retransmit && hca_v2p_ask_waits(&qp->send_ask)) {
        return HCA_TURN_IDLE; /* for what is to be sent again */
    }
    while (turn == HCA_TURN_IDLE && budget) {
        if (!sq->wqe_valid &&
            (qp->state != HCA_QP_RTS || !hca_wqe_schedule(hca, qp))) {
            return HCA_TURN_IDLE;
        }
        if (hca_send_flushes(qp)) {
            return HCA_TURN_MORE; /* it broke */
        }
        turn = hca_data_pack(hca, qp, &budget);
        if (turn == HCA_TURN_IDLE && sq->wqe_valid) {
            return HCA_TURN_IDLE; /* the requester waits */
        }
    }
    return budget ? turn : HCA_TURN_MORE;
}
