/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs of one virtual lane send in turn. While several lanes have something, the
 * port's VLArbitrationTable says whose QPs are next (IBA 7.6.9). A turn of a QP
 * that the cable blocks costs next to nothing.
 */
#include "turns.h"

#include "port/port.h"
#include "responder/responder.h"
#include "send/send.h"

#define QP_BUDGET 16    /* packets of a QP's turn, at most */
#define ROUND_BUDGET 64 /* and of all that wait, if each has one at least */
#define TURN_BUDGET 64  /* QPs that have a turn at sending */

/* Responses, or requests. */
typedef struct Kind {
    size_t queue; /* where in Hca */
    size_t node;  /* where in HcaQp */
    HcaTurn (*run)(Hca *hca, HcaQp *qp, unsigned budget);
} Kind;

static const Kind responses = {
    offsetof(Hca, resp_queue),
    offsetof(HcaQp, resp_turn),
    hca_responder_send,
};
static const Kind requests = {
    offsetof(Hca, send_queue),
    offsetof(HcaQp, send_turn),
    hca_send_run,
};

static HcaRunQueue *queue_of(Hca *hca, const Kind *kind)
{
    return (HcaRunQueue *)((char *)hca + kind->queue);
}

static HcaRunNode *node_of(HcaQp *qp, const Kind *kind)
{
    return (HcaRunNode *)((char *)qp + kind->node);
}

/* The first QP of @lane has its turn. */
static HcaTurn visit(Hca *hca, const Kind *kind, unsigned lane, unsigned budget)
{
    HcaRunQueue *queue = queue_of(hca, kind);
    HcaQp *qp = hca_run_queue_take(queue, lane);
    HcaTurn turn = kind->run(hca, qp, budget);

    if (turn == HCA_TURN_BLOCKED) {
        hca_run_queue_put(queue, node_of(qp, kind), HCA_RUN_HELD);
    } else if (turn == HCA_TURN_MORE && !node_of(qp, kind)->queued) {
        hca_run_queue_put(queue, node_of(qp, kind), qp->lane);
    }
    return turn;
}

/* The QPs that were blocked wait in their lanes again. True: others do, too. */
static bool release(Hca *hca, const Kind *kind)
{
    HcaRunQueue *queue = queue_of(hca, kind);
    bool others = queue->length > queue->lane[HCA_RUN_HELD].length;

    while (queue->lane[HCA_RUN_HELD].length) {
        HcaQp *qp = hca_run_queue_take(queue, HCA_RUN_HELD);

        hca_run_queue_put(queue, node_of(qp, kind), qp->lane);
    }
    return others;
}

/*
 * Each QP of @lane that is queued has one turn, which is the shorter the more they
 * are: who is first must not take the buffers that all share.
 */
static bool run_lane(Hca *hca, const Kind *kind, unsigned lane)
{
    unsigned visits = queue_of(hca, kind)->lane[lane].length;
    unsigned budget = CLAMP(ROUND_BUDGET / MAX(visits, 1), 1, QP_BUDGET);
    unsigned left = TURN_BUDGET;

    hca_v2p_begin_share(hca->v2p);
    for (; visits && hca_turns_go_on(hca, left); visits--) {
        left -= visit(hca, kind, lane, budget) != HCA_TURN_BLOCKED;
    }
    return release(hca, kind);
}

/* Lanes */

static unsigned data_lanes(const Hca *hca)
{
    return (hca->resp_queue.lanes | hca->send_queue.lanes) &
           ((1u << HCA_NUM_DATA_VLS) - 1);
}

/* As many as fit, however large they are. */
static unsigned packets_in(unsigned bytes)
{
    return CLAMP(bytes / HCA_MAX_PACKET_SIZE, 1, QP_BUDGET);
}

/* Responses and requests of a lane take turns. */
static const Kind *next_of(Hca *hca, unsigned lane)
{
    bool resp_first = hca->resp_first >> lane & 1;
    const Kind *first = resp_first ? &responses : &requests;
    const Kind *other = resp_first ? &requests : &responses;

    hca->resp_first ^= 1u << lane;
    return queue_of(hca, first)->lane[lane].length ? first : other;
}

/* One lane after the other, as the table has it. */
static bool run_lanes(Hca *hca)
{
    unsigned left = TURN_BUDGET * QP_BUDGET;
    bool more;

    hca_v2p_begin_share(hca->v2p);
    while (data_lanes(hca) && hca_turns_go_on(hca, left)) {
        unsigned bytes;
        unsigned lane = hca_port_next_lane(hca->port, data_lanes(hca), &bytes);
        unsigned budget = MIN(left, bytes ? packets_in(bytes) : QP_BUDGET);

        bool blocked = visit(hca, next_of(hca, lane), lane, budget) ==
                       HCA_TURN_BLOCKED;

        left -= blocked ? 0 : budget;
        hca_port_lane_done(hca->port, blocked);
    }
    more = release(hca, &responses);
    return release(hca, &requests) || more;
}

/* Of one lane, whoever is in it. */
static bool run_only(Hca *hca, unsigned lane)
{
    bool more = run_lane(hca, &responses, lane);

    return run_lane(hca, &requests, lane) || more;
}

bool hca_turns_run(Hca *hca)
{
    unsigned lanes;
    bool more = false;

    if ((hca->resp_queue.lanes | hca->send_queue.lanes) >> HCA_VL_MGMT & 1) {
        more |= run_only(hca, HCA_VL_MGMT);
    }
    lanes = data_lanes(hca);
    if (lanes & (lanes - 1)) {
        return run_lanes(hca) || more;
    }
    if (lanes) {
        more |= run_only(hca, __builtin_ctz(lanes));
    }
    return more;
}
