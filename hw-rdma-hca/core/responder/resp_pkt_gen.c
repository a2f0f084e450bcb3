/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RespPktGen (engine document 4.4.4, figure 4.10; its queue of metadata:
 * 7.2.10): ACK and NAK, Read response and atomic response packets, in the
 * order of the requests.
 *
 * Acknowledgements that wait are coalesced (IBA 9.7.5.1.2): each says all that
 * those before it did. Departure: the payload of a Read response is found
 * packet by packet when it is sent, so that nothing is kept for it; a region
 * that went meanwhile ends the Read in a NAK.
 */
#include "../clear.h"
#include "../port/frame_encap.h"
#include "responder.h"
#include "units.h"

static HcaResp *at(HcaQp *qp, uint32_t index)
{
    return &qp->resp.ring[index % HCA_RESP_RING];
}

static bool is_empty(const HcaQp *qp)
{
    return qp->resp.ring_head == qp->resp.ring_tail;
}

/* The entry put last, or NULL. */
static HcaResp *newest(HcaQp *qp)
{
    return is_empty(qp) ? NULL : at(qp, qp->resp.ring_tail - 1);
}

/* A new entry. Everything that a response says of the QP is as of now. */
static HcaResp *put(Hca *hca, HcaQp *qp, HcaRespKind kind, uint32_t psn)
{
    HcaResp *resp = at(qp, qp->resp.ring_tail++);

    *resp = (HcaResp) {
        .kind = kind,
        .syndrome = HCA_AETH(HCA_AETH_ACK, HCA_AETH_CREDITS_INVALID),
        .psn = psn,
        .msn = qp->resp.msn,
    };
    hca_schedule_resp(hca, qp);
    return resp;
}

static void take(HcaQp *qp)
{
    const HcaResp *resp = at(qp, qp->resp.ring_head++);

    qp->resp.rd_atomic -= resp->counts;
}

static void clear(HcaQp *qp)
{
    qp->resp.ring_head = qp->resp.ring_tail;
    qp->resp.rd_atomic = 0;
}

static bool is_nak(const HcaResp *resp)
{
    return resp->kind == HCA_RESP_ACK &&
           HCA_AETH_KIND(resp->syndrome) != HCA_AETH_ACK;
}

/* After which the peer sends no more. */
static bool is_fatal(const HcaResp *resp)
{
    return is_nak(resp) && HCA_AETH_KIND(resp->syndrome) == HCA_AETH_NAK &&
           HCA_AETH_VALUE(resp->syndrome) != HCA_NAK_PSN_SEQ;
}

/*
 * Whether an acknowledgement takes the place of one that waits. Also against
 * the policy when half of the ring is used: the rest is for Reads.
 */
static bool joins(const Hca *hca, const HcaQp *qp, const HcaResp *last)
{
    return hca->config.ack_policy == HCA_ACK_COALESCED || is_nak(last) ||
           qp->resp.ring_tail - qp->resp.ring_head >= HCA_RESP_RING / 2;
}

/* An ACK that waits and says no more than a response with @psn does (IBA
 * 9.7.5.1.2), which takes its place; else NULL. */
static HcaResp *ack_before(const Hca *hca, HcaQp *qp, uint32_t psn)
{
    HcaResp *last = newest(qp);

    return last && last->kind == HCA_RESP_ACK && !is_nak(last) &&
                   joins(hca, qp, last) && hca_psn_diff(psn, last->psn) > 0
               ? last
               : NULL;
}

bool hca_resp_has_room(const Hca *hca, HcaQp *qp, uint32_t psn)
{
    return qp->resp.ring_tail - qp->resp.ring_head < HCA_RESP_RING ||
           ack_before(hca, qp, psn);
}

/*
 * An ACK or NAK for @psn, in place of one that waits as the last entry and
 * says less.
 */
static HcaResp *put_ack(Hca *hca, HcaQp *qp, uint32_t psn)
{
    HcaResp *last = newest(qp);

    if (last && last->kind == HCA_RESP_ACK && joins(hca, qp, last) &&
        hca_psn_diff(psn, last->psn) >= 0) {
        qp->resp.ring_tail--;
    }
    return put(hca, qp, HCA_RESP_ACK, psn);
}

void hca_resp_ack(Hca *hca, HcaQp *qp)
{
    const HcaResp *last = newest(qp);

    /* A NAK acknowledges what is before it. */
    if (!last || !is_nak(last) || last->psn != qp->resp.expected_psn) {
        put_ack(hca, qp, hca_psn_add(qp->resp.expected_psn, HCA_PSN_MASK));
    }
}

void hca_resp_nak(Hca *hca, HcaQp *qp, uint32_t psn, uint8_t syndrome,
                  HcaOutcome reason)
{
    hca_trace(hca, HCA_TRACE_NAK_TX, qp->qpn, psn, syndrome, reason);
    put_ack(hca, qp, psn)->syndrome = syndrome;
}

void hca_resp_ask_again(Hca *hca, HcaQp *qp)
{
    qp->resp.nak_owed = false;
    qp->resp.nak_sent = true;
    hca->responder->counters.outcomes[HCA_EXE_PSN]++;
    qp->counters->out_of_sequence++;
    hca_resp_nak(hca, qp, qp->resp.expected_psn,
                 HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ), HCA_EXE_PSN);
}

/* One that is no ACK. */
static HcaResp *put_response(Hca *hca, HcaQp *qp, HcaRespKind kind,
                             uint32_t psn, bool counts, bool duplicate)
{
    HcaResp *resp;

    if (ack_before(hca, qp, psn)) {
        qp->resp.ring_tail--;
    }
    resp = put(hca, qp, kind, psn);

    resp->duplicate = duplicate;
    resp->counts = counts && !duplicate;
    qp->resp.rd_atomic += resp->counts;
    return resp;
}

void hca_resp_read(Hca *hca, HcaQp *qp, const HcaPacket *packet, bool duplicate)
{
    HcaResp *resp = put_response(hca, qp, HCA_RESP_READ, packet->psn, true,
                                 duplicate);

    resp->pd = qp->resp.remote_pd;
    resp->rkey = packet->rkey;
    resp->va = packet->va;
    resp->len = packet->dma_len;
}

/* IBA annex A19: as a Read of no bytes. */
void hca_resp_done(Hca *hca, HcaQp *qp, uint32_t psn, bool counts,
                   bool duplicate)
{
    put_response(hca, qp, HCA_RESP_READ, psn, counts, duplicate);
}

void hca_resp_atomic(Hca *hca, HcaQp *qp, uint32_t psn, uint64_t old,
                     bool duplicate)
{
    HcaResp *resp = put_response(hca, qp, HCA_RESP_ATOMIC, psn, true,
                                 duplicate);

    resp->atomic_ack = old;
}

bool hca_resp_pending(const HcaQp *qp, uint32_t psn)
{
    for (uint32_t i = qp->resp.ring_head; i != qp->resp.ring_tail; i++) {
        const HcaResp *resp = &qp->resp.ring[i % HCA_RESP_RING];
        uint32_t psns = resp->kind == HCA_RESP_READ
                            ? hca_read_psns(qp, resp->len)
                            : 1;

        if (resp->kind != HCA_RESP_ACK &&
            ((psn - resp->psn) & HCA_PSN_MASK) < psns) {
            return true;
        }
    }
    return false;
}

bool hca_resp_reads_by(const HcaQp *qp, uint32_t key)
{
    for (uint32_t i = qp->resp.ring_head; i != qp->resp.ring_tail; i++) {
        const HcaResp *resp = &qp->resp.ring[i % HCA_RESP_RING];

        if (resp->kind == HCA_RESP_READ && resp->len && resp->rkey == key) {
            return true;
        }
    }
    return false;
}

unsigned hca_resp_duplicates(const HcaQp *qp)
{
    unsigned n = 0;

    for (uint32_t i = qp->resp.ring_head; i != qp->resp.ring_tail; i++) {
        n += qp->resp.ring[i % HCA_RESP_RING].duplicate;
    }
    return n;
}

/* What the NAK follows, Reads before it included, goes out in order. */
void hca_resp_abandon(HcaQp *qp)
{
    const HcaResp *last = newest(qp);

    qp->resp.cnp_owed = false;
    qp->resp.nak_owed = false;
    if (!last || !is_fatal(last)) {
        clear(qp);
    }
}

/* HEADER */
static void send(Hca *hca, HcaQp *qp, const HcaResp *resp, uint8_t operation,
                 uint32_t payload_len, const struct iovec *iov, unsigned iovcnt)
{
    HcaPacket packet;

    hca_clear(&packet, sizeof(packet));
    packet.opcode = HCA_BTH_OPCODE(hca_service(qp->attr.service)->bth,
                                   operation);
    packet.mig_req = true; /* the path state is always MIGRATED */
    packet.dest_qp = qp->attr.remote_qpn;
    packet.psn = resp->psn;
    packet.syndrome = resp->syndrome;
    packet.msn = resp->msn;
    packet.atomic_ack = resp->atomic_ack;
    packet.payload_len = payload_len;
    if (HCA_AETH_KIND(resp->syndrome) == HCA_AETH_ACK &&
        operation != HCA_READ_RESP_MIDDLE) {
        packet.syndrome = HCA_AETH(HCA_AETH_ACK, hca_rwm_credits(hca, qp));
    }
    if (!hca->responder->answer_lost) {
        hca_frame_send(hca->port, qp, &qp->attr.path, &packet, iov, iovcnt);
    }
}

static void send_ack(Hca *hca, HcaQp *qp, const HcaResp *resp)
{
    send(hca, qp, resp, HCA_ACK, 0, NULL, 0);
    switch (HCA_AETH_KIND(resp->syndrome)) {
    case HCA_AETH_ACK:
        hca->responder->counters.acks_tx++;
        break;
    case HCA_AETH_RNR:
        hca->responder->counters.rnrs_tx++;
        break;
    default:
        hca->responder->counters.naks_tx++;
        hca->responder->counters.nak_codes_tx[hca_nak_index(resp->syndrome)]++;
    }
    take(qp);
}

/* A ghost's memory may be gone with its Read; that is nobody's error. */
static void drop_duplicate(Hca *hca, HcaQp *qp, const HcaResp *resp)
{
    HcaPacket packet = {
        .opcode = HCA_BTH_OPCODE(hca_service(qp->attr.service)->bth,
                                 HCA_READ_REQUEST),
        .dest_qp = qp->qpn,
        .psn = resp->psn,
    };

    hca_drop(hca->port, &packet, HCA_DROP_ACCESS);
    take(qp);
}

/* Memory that was good when the request came is refused now. */
static void read_failed(Hca *hca, HcaQp *qp, const HcaMatchInfo *info,
                        HcaV2pState state)
{
    bool refused = state != HCA_V2P_DMA_ERR;
    HcaOutcome outcome = refused ? HCA_EXE_ACCESS : HCA_EXE_REMOTE_MEMORY;
    uint32_t psn = at(qp, qp->resp.ring_head)->psn;

    hca->responder->counters.outcomes[outcome]++;
    hca_trace(hca, HCA_TRACE_V2P_ERROR, info->key, state, info->va, info->len);
    clear(qp);
    hca_resp_nak(hca, qp, psn,
                 HCA_AETH(HCA_AETH_NAK,
                          refused ? HCA_NAK_REMOTE_ACCESS : HCA_NAK_REMOTE_OP),
                 outcome);
    if (qp->state != HCA_QP_ERR) {
        hca_qp_event(hca->cm, qp,
                     refused ? HCA_EVENT_WQ_ACCESS_ERROR
                             : HCA_EVENT_WQ_CATAS_ERROR);
        hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
    }
}

static uint8_t read_operation(const HcaResp *resp, bool last)
{
    if (resp->started) {
        return last ? HCA_READ_RESP_LAST : HCA_READ_RESP_MIDDLE;
    }
    return last ? HCA_READ_RESP_ONLY : HCA_READ_RESP_FIRST;
}

static HcaMatchInfo read_info(const HcaQp *qp, const HcaResp *resp)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_ABSOLUTE_ADDR | HCA_ACCESS_REMOTE_READ,
        .pd = resp->pd,
        .key = resp->rkey,
        .len = MIN(resp->len, qp->pmtu),
        .va = resp->va,
        .qpn = qp->qpn,
    };
}

/* Whether the memory of the next response is here. */
static bool is_here(Hca *hca, HcaQp *qp)
{
    const HcaResp *resp = at(qp, qp->resp.ring_head);
    HcaMatchInfo info = read_info(qp, resp);

    if (resp->kind != HCA_RESP_READ || !info.len) {
        return true;
    }
    if (!hca_v2p_ask(hca->v2p, &qp->resp_ask, 0, HCA_V2P_EE, HCA_V2P_FETCH,
                     &info)) {
        return false;
    }
    hca_v2p_ask_done(&qp->resp_ask);
    return true;
}

/* READ_SEG, READ_PAYLOAD: the next packet of a Read. */
static void send_read(Hca *hca, HcaQp *qp, HcaResp *resp)
{
    bool last = resp->len <= qp->pmtu;
    struct iovec iov[HCA_MAX_PIECES];
    unsigned iovcnt = G_N_ELEMENTS(iov);
    HcaMatchInfo info = read_info(qp, resp);
    HcaV2pState state = HCA_V2P_SUCCESS;

    if (info.len) {
        state = hca_v2p_map(hca->v2p, HCA_V2P_EE, &info, iov, &iovcnt);
    } else {
        iovcnt = 0;
    }
    if (state != HCA_V2P_SUCCESS && resp->duplicate) {
        drop_duplicate(hca, qp, resp);
    } else if (state != HCA_V2P_SUCCESS) {
        read_failed(hca, qp, &info, state);
    } else {
        send(hca, qp, resp, read_operation(resp, last), info.len, iov, iovcnt);
        hca->responder->counters.read_responses_tx++;
        resp->started = true;
        resp->psn = hca_psn_add(resp->psn, 1);
        resp->va += info.len;
        resp->len -= info.len;
        if (last) {
            take(qp);
        }
    }
}

static void send_atomic(Hca *hca, HcaQp *qp, const HcaResp *resp)
{
    send(hca, qp, resp, HCA_ATOMIC_ACK, 0, NULL, 0);
    hca->responder->counters.atomic_responses_tx++;
    take(qp);
}

static void send_next(Hca *hca, HcaQp *qp)
{
    HcaResp *resp = at(qp, qp->resp.ring_head);

    switch (resp->kind) {
    case HCA_RESP_ACK:
        send_ack(hca, qp, resp);
        break;
    case HCA_RESP_READ:
        send_read(hca, qp, resp);
        break;
    default:
        send_atomic(hca, qp, resp);
    }
}

HcaTurn hca_responder_send(Hca *hca, HcaQp *qp, unsigned budget)
{
    if (!hca_cnp_send(hca, qp)) {
        return HCA_TURN_BLOCKED;
    }
    for (; !is_empty(qp) || qp->resp.nak_owed; budget--) {
        if (!hca_frame_can_send(hca->port, &qp->attr.path)) {
            return HCA_TURN_BLOCKED;
        }
        if (!budget || hca_v2p_share_is_over(hca->v2p)) {
            return HCA_TURN_MORE;
        }
        if (hca->late && !is_empty(qp) && !is_here(hca, qp)) {
            return HCA_TURN_IDLE;
        }
        if (is_empty(qp)) {
            hca_resp_ask_again(hca, qp);
        }
        if (hca_answers_are_planned(hca, qp) &&
            hca_planned_answer(hca, qp, at(qp, qp->resp.ring_head),
                               &hca->responder->answer_lost)) {
            return HCA_TURN_IDLE;
        }
        send_next(hca, qp);
        hca->responder->answer_lost = false;
    }
    return HCA_TURN_IDLE;
}
