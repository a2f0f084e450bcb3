/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RequesterTransControl (engine document 3.4.1, figure 3.3).
 *
 * RC and XRC keep each packet until it is acknowledged and send it again from
 * the oldest on (Go-Back-N, 3.4.1.1.3.2.1). UC, UD and RAW send and complete.
 */
#include "../port/frame_encap.h"
#include "congestion.h"
#include "units.h"

/* So many PSNs may be on their way (IBA 9.7.2: half of the circle). */
#define PSN_WINDOW (1u << 23)

/* PSNs that a Read of @len bytes takes: one for each response (3.4.1.1.3.2.4) */
static uint32_t responses(const HcaQp *qp, uint32_t len)
{
    return len ? len / qp->pmtu + (len % qp->pmtu != 0) : 1;
}

static bool has_response(const HcaWqe *wqe)
{
    return hca_has_response(hca_send_op(wqe->ref.opcode));
}

/* Scatter entries for the data of its response. */
static unsigned entries_of(const HcaWqe *wqe)
{
    return hca_send_op(wqe->ref.opcode)->transfer == HCA_TRANSFER_RESPONSE
               ? wqe->nsge
               : 0;
}

/* And bytes of it. */
static uint32_t response_len(const HcaWqe *wqe)
{
    return entries_of(wqe) ? wqe->msg_len : 0;
}

static uint32_t psns_on_their_way(const HcaQp *qp)
{
    return hca_psn_diff(qp->req.next_psn, qp->req.unacked_psn) & HCA_PSN_MASK;
}

/* RC_BAD_REQ, and what waits for all before it. */
static HcaJudge put_aside(Hca *hca, HcaQp *qp, const HcaWqe *wqe,
                          uint8_t syndrome, uint8_t vendor_err)
{
    qp->req.barrier = (HcaBarrier) {
        .pending = true,
        .signalled = wqe->signalled,
        .syndrome = syndrome,
        .vendor_err = vendor_err,
        .ref = wqe->ref,
    };
    if (!syndrome) {
        qp->req.barrier.mem = wqe->mem;
    }
    hca_mq_stop_waiting(hca, qp);
    hca_progress(hca, qp);
    return HCA_JUDGE_TAKEN;
}

/* Count what a WQE waits for. Returns false: it may not be sent. */
static bool count_wait(Hca *hca, HcaWait reason)
{
    hca->requester->counters.waits[reason]++;
    return false;
}

/* The same, for other things than room in a pool. */
static bool waits_for(Hca *hca, HcaQp *qp, HcaWait reason)
{
    hca_mq_stop_waiting(hca, qp);
    return count_wait(hca, reason);
}

/* RC_JUDGE_MSG (3.4.1.1.3.2.3): room, fence, and what the peer can hold. */
static bool may_send_read(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    if (qp->req.rpb.count >= qp->attr.sra_max) {
        return waits_for(hca, qp, HCA_WAIT_READS);
    }
    if (responses(qp, response_len(wqe)) > PSN_WINDOW - psns_on_their_way(qp)) {
        return waits_for(hca, qp, HCA_WAIT_PSNS);
    }
    return hca_mq_read_room(hca, qp, entries_of(wqe)) ||
           count_wait(hca, HCA_WAIT_RPB);
}

static bool may_send_packet(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    if (psns_on_their_way(qp) >= PSN_WINDOW) {
        return waits_for(hca, qp, HCA_WAIT_PSNS);
    }
    return hca_mq_swpb_room(hca, qp, MIN(qp->pmtu, wqe->msg_len - wqe->sent),
                            wqe->nsge) ||
           count_wait(hca, HCA_WAIT_SWPB);
}

/* IBA 10.8.3.3: the fence, for Reads, atomics, and what is answered as they. */
static bool is_fenced(const HcaQp *qp, const HcaWqe *wqe)
{
    return wqe->ref.fence && !wqe->sent && qp->req.rpb.count;
}

/* Execute a local operation, unless it has to wait. */
static HcaJudge judge_local(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    uint8_t opcode = wqe->ref.opcode;
    uint8_t syndrome, vendor_err;

    if (hca_send_op(opcode)->waits) {
        return put_aside(hca, qp, wqe, 0, 0);
    }
    if (is_fenced(qp, wqe)) {
        waits_for(hca, qp, HCA_WAIT_FENCE);
        return HCA_JUDGE_WAIT;
    }
    if (!hca_local_room(hca, qp)) {
        count_wait(hca, HCA_WAIT_SWPB);
        return HCA_JUDGE_WAIT;
    }
    syndrome = hca_local_execute(hca, qp, opcode, &wqe->mem, &vendor_err);
    if (syndrome) {
        return put_aside(hca, qp, wqe, syndrome, vendor_err);
    }
    hca_local_done(hca, qp, wqe);
    return HCA_JUDGE_TAKEN;
}

static bool rc_judge_msg(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    if (is_fenced(qp, wqe)) {
        return waits_for(hca, qp, HCA_WAIT_FENCE);
    }
    if (!wqe->sent && !hca_credits_allow(qp, hca_send_op(wqe->ref.opcode))) {
        return waits_for(hca, qp, HCA_WAIT_CREDITS);
    }
    if (hca_on_their_way(qp) >= hca_congestion_limit(hca, qp)) {
        return waits_for(hca, qp, HCA_WAIT_OUTSTANDING);
    }
    return has_response(wqe) ? may_send_read(hca, qp, wqe)
                             : may_send_packet(hca, qp, wqe);
}

/* Whether the QP sends at all now. */
static bool may_send(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    if (qp->state != HCA_QP_RTS && (qp->state != HCA_QP_SQD || !wqe->sent)) {
        return waits_for(hca, qp, HCA_WAIT_STATE);
    }
    if (qp->req.rnr_wait) {
        return waits_for(hca, qp, HCA_WAIT_RNR);
    }
    return !(qp->req.barrier.pending || qp->req.retransmit) ||
           waits_for(hca, qp, HCA_WAIT_BARRIER);
}

static bool cable_takes(Hca *hca, const HcaQp *qp, const HcaWqe *wqe)
{
    switch (qp->attr.service) {
    case HCA_SERVICE_RAW:
        return hca_frame_can_send_raw(hca->port);
    case HCA_SERVICE_UD:
        return hca_frame_can_send(hca->port, &wqe->path);
    default:
        return hca_frame_can_send(hca->port, &qp->attr.path);
    }
}

HcaJudge hca_requester_judge(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    bool reliable = hca_service(qp->attr.service)->reliable;

    if (!may_send(hca, qp, wqe)) {
        return HCA_JUDGE_WAIT;
    }
    if (wqe->syndrome) {
        return put_aside(hca, qp, wqe, wqe->syndrome, wqe->vendor_err);
    }
    if (hca_send_op(wqe->ref.opcode)->transfer == HCA_TRANSFER_NONE) {
        return judge_local(hca, qp, wqe);
    }
    /* Before its turn: room that was promised to it stays so. */
    if (!cable_takes(hca, qp, wqe)) {
        count_wait(hca, HCA_WAIT_CABLE);
        return HCA_JUDGE_BLOCKED;
    }
    return !reliable || rc_judge_msg(hca, qp, wqe) ? HCA_JUDGE_SEND
                                                   : HCA_JUDGE_WAIT;
}

/* BTH operation of a packet by its place in the message (3.4.1.1.2.1). */
static uint8_t net_opcode(const HcaSendOp *op, bool first, bool last)
{
    return first ? (last ? op->only : op->first)
                 : (last ? op->last : op->middle);
}

/*
 * The peer is to refuse it, and judges for itself: it has a key that there is not
 * (a Send, one to invalidate), or is out of place in its message.
 */
static void spoil(HcaSentPacket *packet, const HcaSendOp *op, bool first)
{
    switch (packet->planned.way) {
    case HCA_PLANNED_KEY:
        packet->rkey = op->remote || op->invalidates
                           ? packet->rkey ^ HCA_KEY_BYTE
                           : UINT32_MAX;
        if (!op->remote && packet->last) {
            packet->operation = first ? HCA_SEND_ONLY_INV : HCA_SEND_LAST_INV;
        }
        break;
    case HCA_PLANNED_REQUEST:
        if (first) {
            packet->operation = HCA_SEND_LAST;
        }
        break;
    }
}

/* The next packet of a Send or Write (3.4.1.1.2.2). */
static HcaSentPacket next_packet(const HcaQp *qp, const HcaWqe *wqe,
                                 unsigned nrefs, uint32_t len)
{
    const HcaSendOp *op = hca_send_op(wqe->ref.opcode);
    bool first = !wqe->sent;
    bool last = len == wqe->msg_len - wqe->sent;
    HcaSentPacket packet = {
        .psn = qp->req.next_psn,
        .wqe_offset = wqe->ref.offset,
        .wqe_opcode = wqe->ref.opcode,
        .operation = net_opcode(op, first, last),
        .last = last,
        .signalled = wqe->signalled,
        /* A message that ends no receive has no event (IBA 9.2.3). */
        .solicited = wqe->solicited && last && op->ends_receive,
        .nrefs = nrefs,
        .len = len,
        .msg_len = wqe->msg_len,
        .imm_be = wqe->imm_be,
        .rkey = wqe->rkey,
        .raddr = wqe->raddr,
        .srqn = wqe->srqn,
        .planned = wqe->planned,
    };

    spoil(&packet, op, first);
    return packet;
}

/* The next packet of a Send or Write. Returns true if it was the last. */
static bool segment_packet(Hca *hca, HcaQp *qp, const HcaWqe *wqe,
                           const HcaSge *refs, unsigned nrefs, uint32_t len)
{
    HcaRequester *req = &qp->req;
    const HcaWqe *ud = qp->attr.service == HCA_SERVICE_UD ? wqe : NULL;
    HcaSentPacket packet = next_packet(qp, wqe, nrefs, len);

    if (hca_req_send_packet(hca, qp, ud, &packet, refs) != HCA_V2P_SUCCESS) {
        /* The region went away since the WQE was parsed. */
        put_aside(hca, qp, wqe, HCA_SYNDROME_LOCAL_PROT_ERR, 0);
        return true;
    }
    hca->requester->counters.packets_sent++;
    req->next_psn = hca_psn_add(req->next_psn, 1);
    if (hca_service(qp->attr.service)->reliable) {
        if (!wqe->sent) {
            hca_credits_begin(qp, hca_send_op(wqe->ref.opcode));
        }
        hca_mq_swpb_insert(hca, qp, &packet, refs);
        hca_loss_timer_start(hca, qp);
    } else { /* UCUD_CPL */
        req->unacked_psn = req->next_psn;
        if (packet.last) {
            hca_complete(hca, qp, wqe->ref.offset, wqe->ref.opcode,
                         wqe->signalled, wqe->msg_len, 0, 0);
        }
    }
    return packet.last;
}

/* Of an atomic write; else there is nothing to find. */
static bool find_value(Hca *hca, HcaQp *qp, const HcaWqe *wqe,
                       const HcaSge *refs, unsigned nrefs, uint64_t *value)
{
    uint8_t opcode = wqe->ref.opcode;

    return !hca_has_value(hca_send_op(opcode)) ||
           hca_req_read_value(hca, qp, opcode, refs, nrefs, value) ==
               HCA_V2P_SUCCESS;
}

/* RC_STORE_ENTRY: what is answered, kept with its scatter entries. */
static void segment_read(Hca *hca, HcaQp *qp, const HcaWqe *wqe,
                         const HcaSge *entries, unsigned n)
{
    HcaSentRead read = {
        .psn = qp->req.next_psn,
        .npsn = responses(qp, response_len(wqe)),
        .wqe_opcode = wqe->ref.opcode,
        .signalled = wqe->signalled,
        .wqe_offset = wqe->ref.offset,
        .raddr = wqe->raddr,
        .rkey = wqe->planned.way == HCA_PLANNED_KEY ? wqe->rkey ^ HCA_KEY_BYTE
                                                    : wqe->rkey,
        .len = response_len(wqe),
        .swap_add = wqe->swap_add,
        .compare = wqe->compare,
        .feth = wqe->feth,
        .flush_len = wqe->flush_len,
        .srqn = wqe->srqn,
        .nentries = entries_of(wqe),
        .planned = wqe->planned,
    };

    if (!find_value(hca, qp, wqe, entries, n, &read.value)) {
        put_aside(hca, qp, wqe, HCA_SYNDROME_LOCAL_PROT_ERR, 0);
        return;
    }
    hca_req_send_read(hca, qp, &read);
    hca_credits_begin(qp, hca_send_op(wqe->ref.opcode));
    hca->requester->counters.reads_sent++;
    qp->req.next_psn = hca_psn_add(qp->req.next_psn, read.npsn);
    hca_mq_read_insert(hca, qp, &read, entries);
    hca_loss_timer_start(hca, qp);
}

bool hca_requester_segment(Hca *hca, HcaQp *qp, const HcaWqe *wqe,
                           const HcaSge *refs, unsigned nrefs, uint32_t len)
{
    if (has_response(wqe)) {
        segment_read(hca, qp, wqe, refs, nrefs);
        return true;
    }
    return segment_packet(hca, qp, wqe, refs, nrefs, len);
}

void hca_requester_wqe_sent(Hca *hca, HcaQp *qp)
{
    hca_progress(hca, qp);
}

void hca_retransmit(Hca *hca, HcaQp *qp)
{
    HcaRequester *req = &qp->req;

    if (!hca_outstanding(qp)) {
        return;
    }
    req->retransmit = true;
    req->resend_swpb = req->swpb.count ? req->swpb.head : HCA_MQ_NONE;
    req->resend_rpb = req->rpb.count ? req->rpb.head : HCA_MQ_NONE;
    hca_trace(hca, HCA_TRACE_RETRANSMIT, qp->qpn, req->unacked_psn,
              req->next_psn, req->retries_left);
    hca_loss_timer_restart(hca, qp);
    hca_schedule_send(hca, qp);
}

/* The older of the two packets at the resend cursors; one of them is NULL. */
typedef struct Resend {
    HcaSentPacket *packet;
    HcaSentRead *read;
    uint32_t next; /* behind it in its queue */
} Resend;

/* The packet at its cursor, past local operations, and what is behind it. */
static HcaSentPacket *resend_packet(Hca *hca, HcaQp *qp, uint32_t *next)
{
    HcaRequester *req = &qp->req;

    while (req->resend_swpb != HCA_MQ_NONE) {
        HcaSentPacket *packet = hca_mq_swpb_at(hca, req->resend_swpb, next);

        if (!packet->local) {
            return packet;
        }
        req->resend_swpb = *next;
    }
    return NULL;
}

/* False: all has been sent again. */
static bool next_resend(Hca *hca, HcaQp *qp, Resend *resend)
{
    HcaRequester *req = &qp->req;
    uint32_t next_read = HCA_MQ_NONE;

    *resend = (Resend) { .next = HCA_MQ_NONE };
    resend->packet = resend_packet(hca, qp, &resend->next);
    if (req->resend_rpb != HCA_MQ_NONE) {
        resend->read = hca_mq_rpb_at(hca, req->resend_rpb, &next_read);
    }
    if (hca_read_is_older(resend->read, resend->packet)) {
        resend->packet = NULL;
        resend->next = next_read;
    } else {
        resend->read = NULL;
    }
    return resend->packet || resend->read;
}

static uint32_t resend_psn(const Resend *resend)
{
    return resend->read ? hca_read_expects(resend->read) : resend->packet->psn;
}

bool hca_resend_is_due(Hca *hca, HcaQp *qp)
{
    Resend resend;

    return qp->req.retransmit && next_resend(hca, qp, &resend) &&
           resend_psn(&resend) == qp->req.unacked_psn;
}

/* What the peer was not ready for waits, and all behind it. */
static bool waits_for_rnr(const HcaQp *qp, const Resend *resend)
{
    return qp->req.rnr_wait &&
           hca_psn_diff(resend_psn(resend), qp->req.rnr_psn) >= 0;
}

static bool resend_is_here(Hca *hca, HcaQp *qp, const Resend *resend)
{
    HcaSge refs[RDMA_HCA_MAX_SGE];

    if (resend->read) {
        return true;
    }
    hca_mq_swpb_refs(hca, qp->req.resend_swpb, refs);
    return hca_req_trans_is_here(hca, qp, resend->packet->wqe_opcode, refs,
                                 resend->packet->nrefs, false);
}

/* False if the packet's memory is refused: the region went away. */
static bool resend_one(Hca *hca, HcaQp *qp, const Resend *resend)
{
    HcaRequester *req = &qp->req;
    bool oldest = resend_psn(resend) == req->unacked_psn;
    HcaSge refs[RDMA_HCA_MAX_SGE];

    if (resend->read) {
        resend->read->asked = resend->read->answered;
        hca_req_send_read(hca, qp, resend->read);
        req->resend_rpb = resend->next;
    } else {
        hca_mq_swpb_refs(hca, req->resend_swpb, refs);
        if (hca_req_send_packet(hca, qp, NULL, resend->packet, refs) !=
            HCA_V2P_SUCCESS) {
            return false;
        }
        req->resend_swpb = resend->next;
    }
    if (oldest) {
        hca_loss_timer_restart(hca, qp); /* it may have waited for the cable */
    }
    hca->requester->counters.retransmissions++;
    qp->counters->retransmissions++;
    return true;
}

/*
 * A packet cannot be sent again. Its WQE fails when all before it are done;
 * until then each response gives the QP a turn, and nothing new is sent.
 */
static HcaTurn resend_refused(Hca *hca, HcaQp *qp, const Resend *resend)
{
    if (resend->packet->psn != qp->req.unacked_psn) {
        return HCA_TURN_IDLE;
    }
    hca_requester_fail(hca, qp, HCA_SYNDROME_LOCAL_PROT_ERR, 0);
    return HCA_TURN_MORE;
}

HcaTurn hca_requester_resend(Hca *hca, HcaQp *qp, unsigned *budget)
{
    Resend resend;

    while (qp->req.retransmit) {
        if (!next_resend(hca, qp, &resend)) {
            qp->req.retransmit = false;
            break;
        }
        if (waits_for_rnr(qp, &resend)) {
            break;
        }
        if (!*budget || hca_v2p_share_is_over(hca->v2p)) {
            return HCA_TURN_MORE;
        }
        if (!hca_frame_can_send(hca->port, &qp->attr.path)) {
            return HCA_TURN_BLOCKED;
        }
        if (hca->late && !resend_is_here(hca, qp, &resend)) {
            return HCA_TURN_IDLE;
        }
        (*budget)--;
        if (!resend_one(hca, qp, &resend)) {
            return resend_refused(hca, qp, &resend);
        }
    }
    return HCA_TURN_IDLE;
}

static void count_ended(Hca *hca, HcaQp *qp, uint8_t syndrome)
{
    if (!syndrome) {
        hca->requester->counters.wqes_completed++;
    } else if (syndrome == HCA_SYNDROME_WR_FLUSH_ERR) {
        hca->requester->counters.wqes_flushed++;
        qp->counters->sends_flushed++;
    } else {
        hca->requester->counters.wqes_failed++;
        qp->counters->sends_failed++;
    }
}

void hca_complete(Hca *hca, HcaQp *qp, uint32_t wqe_offset, uint8_t opcode,
                  bool signalled, uint32_t byte_cnt, uint8_t syndrome,
                  uint8_t vendor_err)
{
    HcaCompletion completion = {
        .qpn = qp->qpn,
        .remote_qpn = qp->attr.remote_qpn,
        .wqe = wqe_offset,
        .byte_cnt = byte_cnt,
        .is_send = true,
        .opcode = opcode,
        .syndrome = syndrome,
        .vendor_err = vendor_err,
    };

    count_ended(hca, qp, syndrome);
    qp->send.ended++;
    if ((syndrome || signalled) &&
        !hca_cq_post(hca->cm, HCA_V2P_RTC, qp, qp->attr.sq_cqn, &completion) &&
        qp->state != HCA_QP_ERR) {
        hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
    }
}

/* After an error UC and UD only stop sending; others break (IBA 10.3.1). */
static void stop_sending(Hca *hca, HcaQp *qp)
{
    hca_qp_set_state(hca->cm, qp,
                     hca_service(qp->attr.service)->reliable ? HCA_QP_ERR
                                                             : HCA_QP_SQE);
}

void hca_progress(Hca *hca, HcaQp *qp)
{
    HcaRequester *req = &qp->req;
    HcaBarrier barrier = req->barrier;

    if (hca_outstanding(qp)) {
        return;
    }
    if (barrier.pending) { /* BAD_REQ */
        req->barrier.pending = false;
        if (!barrier.syndrome) {
            barrier.syndrome = hca_local_execute(
                hca, qp, barrier.ref.opcode, &barrier.mem, &barrier.vendor_err);
        }
        hca_complete(hca, qp, barrier.ref.offset, barrier.ref.opcode,
                     barrier.signalled, 0, barrier.syndrome,
                     barrier.vendor_err);
        if (barrier.syndrome && qp->state != HCA_QP_ERR) {
            stop_sending(hca, qp);
            return;
        }
    }
    if (qp->state == HCA_QP_SQD && !req->drained &&
        !(qp->send.wqe_valid && qp->send.wqe.sent)) {
        req->drained = true;
        if (qp->sqd_event) {
            hca_qp_event(hca->cm, qp, HCA_EVENT_SQ_DRAINED);
        }
    }
}

/* The syndrome of the next WQE to end: the cause first, then flushed. */
static void flush_one(Hca *hca, HcaQp *qp, uint32_t offset, uint8_t opcode)
{
    uint8_t syndrome = qp->req.fail_syndrome;
    uint8_t vendor_err = qp->req.fail_vendor_err;

    qp->req.fail_syndrome = 0;
    hca_complete(hca, qp, offset, opcode, true, 0,
                 syndrome ? syndrome : HCA_SYNDROME_WR_FLUSH_ERR,
                 syndrome ? vendor_err : 0);
}

/* FLUSH: all that is outstanding, in order of PSN. */
static void flush_outstanding(Hca *hca, HcaQp *qp)
{
    while (hca_outstanding(qp)) {
        HcaSentPacket *packet = hca_mq_swpb_head(hca, qp);
        HcaSentRead *read = hca_mq_rpb_head(hca, qp);

        if (hca_read_is_older(read, packet)) {
            HcaSentRead done = *read;

            hca_mq_rpb_release(hca, qp);
            flush_one(hca, qp, done.wqe_offset, done.wqe_opcode);
        } else {
            HcaSentPacket done = *packet;

            hca_mq_swpb_release(hca, qp);
            if (done.last) {
                flush_one(hca, qp, done.wqe_offset, done.wqe_opcode);
            }
        }
    }
    qp->req.unacked_psn = qp->req.next_psn;
    if (qp->req.barrier.pending) {
        HcaBarrier barrier = qp->req.barrier;

        qp->req.barrier.pending = false;
        flush_one(hca, qp, barrier.ref.offset, barrier.ref.opcode);
    }
}

void hca_requester_flush(Hca *hca, HcaQp *qp, const HcaWqeRef *ref)
{
    flush_one(hca, qp, ref->offset, ref->opcode);
}

void hca_requester_fail(Hca *hca, HcaQp *qp, uint8_t syndrome,
                        uint8_t vendor_err)
{
    qp->req.fail_syndrome = syndrome;
    qp->req.fail_vendor_err = vendor_err;
    hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
}

HcaRequesterUnit *hca_requester_new(const HcaConfig *config)
{
    HcaRequesterUnit *requester = g_new0(HcaRequesterUnit, 1);

    requester->mq = hca_mq_new(config);
    return requester;
}

void hca_requester_free(HcaRequesterUnit *requester)
{
    hca_mq_free(requester->mq);
    g_free(requester);
}

void hca_requester_reset(HcaRequesterUnit *requester)
{
    hca_mq_reset_peaks(requester->mq);
    memset(&requester->counters, 0, sizeof(requester->counters));
}

static void forget(Hca *hca, HcaQp *qp)
{
    hca_mq_forget(hca, qp);
    memset(&qp->req, 0, sizeof(qp->req));
    hca_timers_stop(hca, qp);
    hca_timer_stop(hca, qp, HCA_TIMER_CONGESTION);
}

void hca_requester_state(Hca *hca, HcaQp *qp, uint8_t old_state)
{
    switch (qp->state) {
    case HCA_QP_RST:
        forget(hca, qp);
        break;
    case HCA_QP_INIT:
        if (old_state == HCA_QP_RST) {
            forget(hca, qp);
        }
        break;
    case HCA_QP_RTS:
        qp->req.drained = false;
        break;
    case HCA_QP_SQD:
        hca_progress(hca, qp);
        break;
    case HCA_QP_SQE:
    case HCA_QP_ERR:
        qp->req.retransmit = false;
        hca_mq_stop_waiting(hca, qp);
        hca_timers_stop(hca, qp);
        flush_outstanding(hca, qp);
        break;
    }
}
