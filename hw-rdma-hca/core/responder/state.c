/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of responders beside the QP: answers that are owed, atomics that
 * may come again, receives in use.
 */
#include "../qp_state.h"
#include "units.h"

/* Of InfiniBand nobody is owed one: no packet says that there is congestion. */
static bool cnp_ok(const Hca *hca, const HcaResponder *resp)
{
    return !resp->cnp_owed ||
           (hca_port_is_roce(hca->port) && hca_path_ok(&resp->cnp_path) &&
            resp->cnp_qpn <= HCA_QPN_MASK);
}

bool hca_responder_load_qp(const Hca *hca, HcaQp *qp)
{
    HcaResponder *resp = &qp->resp;

    resp->ring_tail = resp->ring_head;
    resp->rd_atomic = 0;
    return resp->replay_next < HCA_MAX_RD_ATOMIC &&
           resp->message < HCA_NREQUEST_KINDS &&
           resp->expected_psn <= HCA_PSN_MASK && cnp_ok(hca, resp);
}

/* Answers that are owed */

typedef struct Answer {
    uint32_t qpn;
    HcaResp resp;
} Answer;

static const HcaField answer_fields[] = {
    HCA_SAVED(Answer, qpn),
    HCA_SAVED_STRUCT(Answer, resp, hca_resp_struct),
};
static const HcaStruct answer_struct = HCA_STRUCT(Answer, answer_fields);

static void save_answers(void *room, GArray *records)
{
    const Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        const HcaResponder *resp = &qp->resp;

        for (uint32_t i = resp->ring_head; i != resp->ring_tail; i++) {
            Answer answer = { qp->qpn, resp->ring[i % HCA_RESP_RING] };

            g_array_append_val(records, answer);
        }
    }
}

static bool answer_ok(const HcaResponder *resp, const HcaResp *answer)
{
    return resp->ring_tail - resp->ring_head < HCA_RESP_RING &&
           answer->kind <= HCA_RESP_ATOMIC && answer->psn <= HCA_PSN_MASK &&
           answer->len <= 1u << 31;
}

static bool load_answers(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    const Hca *hca = room;
    const Answer *answer = records;

    for (; n; n--, answer++) {
        HcaQp *qp = hca_qp_peek(hca->cm, answer->qpn);

        if (!qp || !answer_ok(&qp->resp, &answer->resp)) {
            return hca_state_refuse(error, "an answer of QP %u", answer->qpn);
        }
        qp->resp.ring[qp->resp.ring_tail++ % HCA_RESP_RING] = answer->resp;
        qp->resp.rd_atomic += answer->resp.counts;
    }
    return true;
}

const HcaSection hca_answer_section = HCA_SECTION("answer", 1, &answer_struct,
                                                  save_answers, load_answers);

/* Atomics that may come again */

typedef struct Replay {
    uint32_t qpn;
    uint8_t place;
    HcaReplay replay;
} Replay;

static const HcaField replay_fields[] = {
    HCA_SAVED(Replay, qpn),
    HCA_SAVED(Replay, place),
    HCA_SAVED_STRUCT(Replay, replay, hca_replay_struct),
};
static const HcaStruct replay_struct = HCA_STRUCT(Replay, replay_fields);

static void save_replays(void *room, GArray *records)
{
    const Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        for (unsigned i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
            Replay replay = { qp->qpn, i, qp->resp.replay[i] };

            if (replay.replay.valid) {
                g_array_append_val(records, replay);
            }
        }
    }
}

static bool load_replays(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    const Hca *hca = room;
    const Replay *replay = records;

    for (; n; n--, replay++) {
        HcaQp *qp = hca_qp_peek(hca->cm, replay->qpn);

        if (!qp || replay->place >= HCA_MAX_RD_ATOMIC) {
            return hca_state_refuse(error, "an atomic of QP %u", replay->qpn);
        }
        qp->resp.replay[replay->place] = replay->replay;
    }
    return true;
}

const HcaSection hca_replay_section = HCA_SECTION("replay", 1, &replay_struct,
                                                  save_replays, load_replays);

/* Receives in use */

typedef struct Receive {
    uint32_t qpn;
    HcaRecvWqe wqe;
} Receive;

static const HcaField receive_fields[] = {
    HCA_SAVED(Receive, qpn),
    HCA_SAVED_STRUCT(Receive, wqe, hca_recv_wqe_struct),
};
static const HcaStruct receive_struct = HCA_STRUCT(Receive, receive_fields);

static void save_receives(void *room, GArray *records)
{
    const Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        Receive receive = { qp->qpn, qp->resp.wqe };

        if (qp->resp.wqe_valid) {
            g_array_append_val(records, receive);
        }
    }
}

static bool receive_ok(const HcaRecvWqe *wqe)
{
    return wqe->nsge <= RDMA_HCA_MAX_SGE && wqe->sge_at <= wqe->nsge &&
           (wqe->sge_at == wqe->nsge
                ? !wqe->sge_done
                : wqe->sge_done <= wqe->sge[wqe->sge_at].len);
}

static bool load_receives(void *room, const void *records, uint32_t n,
                          HcaStateError *error)
{
    const Hca *hca = room;
    const Receive *receive = records;

    for (; n; n--, receive++) {
        HcaQp *qp = hca_qp_peek(hca->cm, receive->qpn);

        if (!qp || !qp->resp.wqe_valid || !receive_ok(&receive->wqe)) {
            return hca_state_refuse(error, "a receive of QP %u", receive->qpn);
        }
        qp->resp.wqe = receive->wqe;
    }
    return true;
}

const HcaSection hca_receive_section = HCA_SECTION(
    "receive", 1, &receive_struct, save_receives, load_receives);
