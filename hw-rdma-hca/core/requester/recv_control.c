/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RequesterRecvControl (engine document 3.4.5, figures 3.17 to 3.20).
 *
 * Terms of 3.4.5.1.1: UPSN is the oldest PSN not acknowledged (or answered),
 * RPSN the PSN of the response in hand, NPSN the next one to send.
 *
 * Departures, all for the IB specification: NAKs for remote access and
 * invalid requests break the connection, as those for remote operations do
 * (the document calls them recoverable); a Read is asked for again from where
 * its answer broke off;
 * what is lost is sent again once until the timer says otherwise; an RNR NAK
 * restores the retries, and one that comes while the card waits is a double.
 */
#include <string.h>

#include "units.h"

/* A plan of faults has it that what was answered is no answer: the QP fails. */
static bool planned_answer(Hca *hca, HcaQp *qp, HcaPlanned planned)
{
    if (planned.way != HCA_PLANNED_ANSWER) {
        return false;
    }
    hca_requester_fail(hca, qp, planned.syndrome, planned.vendor_err);
    return true;
}

/* Release the packets that RPSN acknowledges, Reads excepted. */
static bool release_packets(Hca *hca, HcaQp *qp, uint32_t limit)
{
    HcaSentPacket *head;
    bool any = false;

    while ((head = hca_mq_swpb_head(hca, qp)) &&
           hca_psn_diff(head->psn, limit) < 0) {
        HcaSentPacket done = *head;

        any = true;
        if (planned_answer(hca, qp, done.planned)) {
            break;
        }
        hca_mq_swpb_release(hca, qp);
        if (done.last) {
            hca_complete(hca, qp, done.wqe_offset, done.wqe_opcode,
                         done.signalled, done.msg_len, 0, 0);
        }
    }
    return any;
}

/* UPSN follows from what is still there. */
static void update_upsn(Hca *hca, HcaQp *qp)
{
    HcaSentPacket *packet = hca_mq_swpb_head(hca, qp);
    HcaSentRead *read = hca_mq_rpb_head(hca, qp);
    uint32_t upsn = qp->req.next_psn;

    if (hca_read_is_older(read, packet)) {
        upsn = hca_read_expects(read);
    } else if (packet) {
        upsn = packet->psn;
    }
    qp->req.unacked_psn = upsn;
}

static bool in_error(const HcaQp *qp)
{
    return qp->state == HCA_QP_ERR;
}

/* The peer answered something new: all patience is restored. */
static void made_progress(Hca *hca, HcaQp *qp)
{
    HcaRequester *req = &qp->req;

    hca_local_complete(hca, qp);
    if (in_error(qp)) {
        return;
    }
    update_upsn(hca, qp);
    req->retries_left = qp->attr.retry_count;
    req->rnr_retries_left = qp->attr.rnr_retry;
    req->loss_seen = false;
    hca_loss_timer_restart(hca, qp);
    hca_progress(hca, qp);
    hca_schedule_send(hca, qp);
}

/*
 * Release all before @limit up to the first Read not answered
 * (ACK_RELEASE_*, NAK_IMPLICIT_RELEASE, READ_IMPLICIT_RELEASE). Returns false
 * if a Read stood in the way: its answer was lost.
 */
static bool release_before(Hca *hca, HcaQp *qp, uint32_t limit)
{
    HcaSentRead *read = hca_mq_rpb_head(hca, qp);
    bool lost = false;

    if (read && hca_psn_diff(hca_read_expects(read), limit) < 0) {
        lost = true;
        limit = hca_read_expects(read);
    }
    if (release_packets(hca, qp, limit)) {
        made_progress(hca, qp);
    }
    return !lost;
}

/* Once for each UPSN: the cable may double what tells of a loss. */
static void send_again(Hca *hca, HcaQp *qp)
{
    HcaRequester *req = &qp->req;

    if (req->loss_seen && req->loss_psn == req->unacked_psn) {
        return;
    }
    if (hca_use_retry(hca, qp)) {
        req->loss_seen = true;
        req->loss_psn = req->unacked_psn;
        hca_retransmit(hca, qp);
    }
}

/* ACK_LOSS_RETRANS, READ_RETRANS */
static void answer_lost(Hca *hca, HcaQp *qp)
{
    hca->requester->counters.answers_lost++;
    send_again(hca, qp);
}

static void receive_ack(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    hca->requester->counters.acks_rx++;
    if (!release_before(hca, qp, hca_psn_add(packet->psn, 1)) &&
        !in_error(qp)) {
        answer_lost(hca, qp);
    }
}

/*
 * NAK RNR: wait for as long as the peer asks, then send again (3.4.5.1.3.1).
 * The peer answers: what time-outs have used up of its retries is restored.
 * What is in front of the packet that has to wait, if a Read's answer was
 * lost, is asked for again meanwhile.
 */
static void receive_rnr(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                        bool read_lost)
{
    HcaRequester *req = &qp->req;

    if (req->rnr_wait) {
        hca_drop(hca->port, packet, HCA_DROP_DUPLICATE);
        return;
    }
    req->retries_left = qp->attr.retry_count;
    if (qp->attr.rnr_retry != 7) {
        if (!req->rnr_retries_left) {
            hca->requester->counters.rnr_retries_exhausted++;
            hca_requester_fail(hca, qp, HCA_SYNDROME_RNR_RETRY_EXC_ERR,
                               packet->syndrome);
            return;
        }
        req->rnr_retries_left--;
    }
    req->retransmit = false;
    req->rnr_psn = packet->psn;
    hca_rnr_timer_start(hca, qp, HCA_AETH_VALUE(packet->syndrome));
    if (read_lost) {
        req->loss_seen = true;
        req->loss_psn = req->unacked_psn;
        hca_retransmit(hca, qp);
    }
}

/* Codes that no other comes back from. */
static uint8_t nak_syndrome(uint8_t value)
{
    switch (value) {
    case HCA_NAK_INVALID_REQUEST:
        return HCA_SYNDROME_REMOTE_INVAL_REQ_ERR;
    case HCA_NAK_REMOTE_ACCESS:
        return HCA_SYNDROME_REMOTE_ACCESS_ERR;
    case HCA_NAK_REMOTE_OP:
        return HCA_SYNDROME_REMOTE_OP_ERR;
    case HCA_NAK_INVALID_RD:
        return HCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR;
    default:
        return HCA_SYNDROME_BAD_RESP_ERR;
    }
}

static void count_nak(Hca *hca, HcaQp *qp, uint8_t syndrome)
{
    if (HCA_AETH_KIND(syndrome) == HCA_AETH_RNR) {
        hca->requester->counters.rnrs_rx++;
        qp->counters->rnrs_rx++;
    } else {
        hca->requester->counters.naks_rx++;
        hca->requester->counters.nak_codes_rx[hca_nak_index(syndrome)]++;
        qp->counters->psn_naks_rx += hca_nak_index(syndrome) == HCA_NAK_PSN_SEQ;
    }
}

/*
 * Figure 3.19. All before RPSN has been executed, so a Read that is left there
 * has lost its answer. It is asked for again if the peer still answers; one
 * that has broken its QP does not.
 */
static void receive_nak(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    uint8_t kind = HCA_AETH_KIND(packet->syndrome);
    uint8_t value = HCA_AETH_VALUE(packet->syndrome);
    bool read_lost;

    count_nak(hca, qp, packet->syndrome);
    hca_trace(hca, HCA_TRACE_NAK_RX, qp->qpn, packet->psn, packet->syndrome, 0);
    read_lost = !release_before(hca, qp, packet->psn);
    if (in_error(qp)) {
        return; /* a completion queue overran */
    }
    hca->requester->counters.answers_lost += read_lost;
    if (kind == HCA_AETH_RNR) {
        receive_rnr(hca, qp, packet, read_lost);
    } else if (kind == HCA_AETH_NAK && value == HCA_NAK_PSN_SEQ) {
        send_again(hca, qp); /* NAK_RETRANS */
    } else {
        hca_requester_fail(hca, qp,
                           kind == HCA_AETH_NAK ? nak_syndrome(value)
                                                : HCA_SYNDROME_BAD_RESP_ERR,
                           packet->syndrome);
    }
}

static bool is_atomic(const HcaSentRead *read)
{
    return hca_send_op(read->wqe_opcode)->atomic;
}

/*
 * IBA 9.9.2: First and Only begin an answer, where the Read was asked for;
 * Middle and Last go on with one, be it with what is left of an earlier one.
 */
static bool in_place(const HcaSentRead *read, uint8_t operation)
{
    if (operation == HCA_READ_RESP_FIRST || operation == HCA_READ_RESP_ONLY) {
        return read->answered == read->asked;
    }
    return read->answered;
}

/* Whether this is the response that the oldest Read or atomic expects next. */
static bool response_fits(const HcaQp *qp, const HcaSentRead *read,
                          const HcaPacket *packet)
{
    uint8_t operation = HCA_BTH_OPERATION(packet->opcode);
    uint32_t left = read->len - read->received;
    bool more = operation == HCA_READ_RESP_FIRST ||
                operation == HCA_READ_RESP_MIDDLE;

    if (is_atomic(read) || operation == HCA_ATOMIC_ACK) {
        return is_atomic(read) && operation == HCA_ATOMIC_ACK &&
               !packet->payload_len;
    }
    return in_place(read, operation) && more == (left > qp->pmtu) &&
           packet->payload_len == MIN(left, qp->pmtu);
}

/* Write what a response brings; the state of the memory it goes to. */
static HcaV2pState store_response(Hca *hca, HcaQp *qp, HcaSentRead *read,
                                  const HcaPacket *packet)
{
    uint64_t value;

    if (is_atomic(read)) {
        value = GUINT64_TO_LE(packet->atomic_ack);
        return hca_scatter(hca, qp, (const uint8_t *)&value, sizeof(value));
    }
    return hca_scatter(hca, qp, packet->payload, packet->payload_len);
}

/* Figure 3.20, RPSN = UPSN. */
static void accept_response(Hca *hca, HcaQp *qp, HcaSentRead *read,
                            const HcaPacket *packet)
{
    HcaSentRead done;

    if (planned_answer(hca, qp, read->planned)) {
        return;
    }
    if (!response_fits(qp, read, packet)) {
        hca_requester_fail(hca, qp, HCA_SYNDROME_BAD_RESP_ERR, packet->opcode);
        return;
    }
    if (store_response(hca, qp, read, packet) != HCA_V2P_SUCCESS) {
        hca_requester_fail(hca, qp, HCA_SYNDROME_LOCAL_PROT_ERR,
                           packet->opcode);
        return;
    }
    hca->requester->counters.responses_rx++;
    read->received += packet->payload_len;
    read->answered++;
    if (read->answered == read->npsn) {
        done = *read;
        hca_mq_rpb_release(hca, qp);
        hca_complete(hca, qp, done.wqe_offset, done.wqe_opcode, done.signalled,
                     done.len, 0, 0);
    }
    if (!in_error(qp)) {
        made_progress(hca, qp);
    }
}

static void receive_response(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaSentRead *read = hca_mq_rpb_head(hca, qp);

    if (!read || hca_psn_diff(packet->psn, hca_read_expects(read)) < 0) {
        hca_drop(hca->port, packet, HCA_DROP_GHOST);
        return;
    }
    /* An answer acknowledges all before it. */
    if (!release_before(hca, qp, packet->psn)) {
        if (!in_error(qp)) {
            answer_lost(hca, qp);
        }
        return;
    }
    if (in_error(qp)) {
        return;
    }
    accept_response(hca, qp, read, packet);
}

/* Whether it has an AETH of the kind that tells credits. */
static bool tells_credits(const HcaPacket *packet)
{
    return HCA_BTH_OPERATION(packet->opcode) != HCA_READ_RESP_MIDDLE &&
           HCA_AETH_KIND(packet->syndrome) == HCA_AETH_ACK;
}

/* SILENT_DROP; but an ACK may come once more to tell new credits. */
static void receive_duplicate(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (HCA_BTH_OPERATION(packet->opcode) != HCA_ACK ||
        !tells_credits(packet) || !hca_credits_told(hca, qp, packet)) {
        hca_drop(hca->port, packet, HCA_DROP_DUPLICATE);
    }
}

void hca_requester_receive(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaRequester *req = &qp->req;
    uint8_t operation = HCA_BTH_OPERATION(packet->opcode);

    if (hca_psn_diff(packet->psn, req->next_psn) >= 0) {
        hca_drop(hca->port, packet, HCA_DROP_GHOST); /* invalid region */
        return;
    }
    if (hca_psn_diff(packet->psn, req->unacked_psn) < 0) {
        receive_duplicate(hca, qp, packet);
        return;
    }
    if (tells_credits(packet)) {
        hca_credits_told(hca, qp, packet);
    } else if (operation != HCA_READ_RESP_MIDDLE) {
        receive_nak(hca, qp, packet);
        return;
    }
    if (operation == HCA_ACK) {
        receive_ack(hca, qp, packet);
    } else {
        receive_response(hca, qp, packet);
    }
}
