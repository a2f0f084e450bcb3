/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ExecutionEngine (engine document 4.4.1, figures 4.2 and 4.4 to 4.7).
 *
 * A packet is executed whole before the next one: memory, completion, then
 * the entry for RespPktGen. Terms: EPSN is the expected PSN.
 *
 * Departures, all for the IB specification: a Write with immediate gets its
 * WQE before its data is written, so that an RNR NAK leaves memory alone
 * (9.7.4.1.5 before 9.7.4.1.7); after an RNR NAK, too, what follows is dropped
 * in silence; a packet of an illegal kind is refused by NAK invalid request
 * and not dropped; the document's "asynchronous error (not implemented)" is an
 * event. Data is read for a Read when its packet is sent, not when the request
 * arrives (see resp_pkt_gen.c).
 */
#include <string.h>

#include "../strict.h"
#include "responder.h"
#include "units.h"

#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)

#define INVALID_REQUEST(reason)                                                \
    {                                                                          \
        .nak = NAK(INVALID_REQUEST), .drop = HCA_DROP_##reason,                \
        .event = HCA_EVENT_WQ_INVAL_REQ_ERROR                                  \
    }
#define LOCAL_ERROR(s)                                                         \
    {                                                                          \
        .nak = NAK(REMOTE_OP), .drop = HCA_DROP_ACCESS, .syndrome = (s),       \
        .local = true                                                          \
    }

static const HcaFailure failures[] = {
    [HCA_EXE_NO_WQE] = { .drop = HCA_DROP_NO_WQE },
    [HCA_EXE_OPCODE] = INVALID_REQUEST(OPCODE_SEQ),
    [HCA_EXE_FORBIDDEN] = INVALID_REQUEST(ACCESS),
    [HCA_EXE_LENGTH] = INVALID_REQUEST(LENGTH),
    [HCA_EXE_ALIGNMENT] = INVALID_REQUEST(LENGTH),
    [HCA_EXE_RESOURCES] = INVALID_REQUEST(RESOURCES),
    [HCA_EXE_TOO_LONG] = { .nak = NAK(INVALID_REQUEST),
                           .syndrome = HCA_SYNDROME_LOCAL_LENGTH_ERR,
                           .drop = HCA_DROP_LENGTH },
    [HCA_EXE_ACCESS] = { .nak = NAK(REMOTE_ACCESS),
                         .event = HCA_EVENT_WQ_ACCESS_ERROR,
                         .drop = HCA_DROP_ACCESS },
    [HCA_EXE_REMOTE_MEMORY] = { .nak = NAK(REMOTE_OP),
                                .event = HCA_EVENT_WQ_CATAS_ERROR,
                                .drop = HCA_DROP_ACCESS },
    [HCA_EXE_LOCAL_PROT] = LOCAL_ERROR(HCA_SYNDROME_LOCAL_PROT_ERR),
    [HCA_EXE_BAD_WQE] = LOCAL_ERROR(HCA_SYNDROME_LOCAL_QP_OP_ERR),
    [HCA_EXE_BAD_QUEUE] = { .nak = NAK(REMOTE_OP),
                            .event = HCA_EVENT_WQ_CATAS_ERROR,
                            .drop = HCA_DROP_NO_WQE,
                            .local = true },
    [HCA_EXE_CQ_LOST] = { .nak = NAK(REMOTE_OP),
                          .drop = HCA_DROP_QP_STATE,
                          .local = true },
    [HCA_EXE_XRC_SRQ] = INVALID_REQUEST(ACCESS),
    [HCA_EXE_INVALIDATION] = { .nak = NAK(REMOTE_ACCESS),
                               .syndrome = HCA_SYNDROME_REMOTE_INVAL_REQ_ERR,
                               .drop = HCA_DROP_ACCESS },
};

static const HcaFailure *failure_of(const Hca *hca, HcaOutcome outcome)
{
    return outcome == HCA_EXE_PLANNED ? &hca->responder->planned
                                      : &failures[outcome];
}

/* Memory */

static void trace_refused(Hca *hca, const HcaMatchInfo *info, HcaV2pState state)
{
    hca_trace(hca, HCA_TRACE_V2P_ERROR, info->key, state, info->va, info->len);
}

/* VTP_RESP: what the answer to a request with an R_Key means. */
static HcaOutcome remote_outcome(Hca *hca, const HcaMatchInfo *info,
                                 HcaV2pState state)
{
    if (state == HCA_V2P_SUCCESS) {
        return HCA_EXE_OK;
    }
    trace_refused(hca, info, state);
    return state == HCA_V2P_DMA_ERR ? HCA_EXE_REMOTE_MEMORY : HCA_EXE_ACCESS;
}

static bool is_xrc(const HcaQp *qp)
{
    return hca_service(qp->attr.service)->xrc;
}

/*
 * Find the protection domain that R_Keys of the request are of. An XRC target
 * serves processes that have nothing in common but the XRC domain: it is that of
 * the SRQ which the request names, as each request does, if it uses it or not.
 */
static bool find_remote_pd(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    const HcaSrq *srq;

    if (!is_xrc(qp)) {
        qp->resp.remote_pd = qp->attr.pd;
        return true;
    }
    srq = hca_srq_xrc(hca->cm, packet->srqn, qp->attr.xrcd);
    if (srq) {
        qp->resp.remote_pd = srq->attr.pd;
    }
    return srq;
}

/* The whole of what a RETH names is checked before any of it is touched. */
static HcaOutcome check_region(Hca *hca, const HcaQp *qp,
                               const HcaPacket *packet, uint32_t access)
{
    HcaMatchInfo info = hca_remote_info(qp, packet, access, packet->dma_len);

    if (!packet->dma_len) {
        return HCA_EXE_OK; /* IBA 9.7.4.1.7: no R_Key */
    }
    return remote_outcome(hca, &info,
                          hca_v2p_check(hca->v2p, HCA_V2P_EE, &info));
}

/* ENTRY_FETCH, ENTRY_RESP, as far as the WQE is concerned */
static HcaOutcome take_wqe(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    bool planned = hca_receives_are_planned(hca);
    HcaRwmResp resp;

    switch (planned ? hca_planned_before_receive(hca, qp, packet)
                    : HCA_FAULT_NACTIONS) {
    case HCA_FAULT_RNR:
        return HCA_EXE_NO_WQE;
    case HCA_FAULT_BREAK:
        return HCA_EXE_BAD_QUEUE;
    default:
        break;
    }
    resp = is_xrc(qp) ? hca_rwm_fetch_xrc_wqe(hca, qp, packet->srqn)
                      : hca_rwm_fetch_wqe(hca, qp);
    switch (resp) {
    case HCA_RWM_VALID:
        return planned ? hca_planned_receive(hca, qp, packet) : HCA_EXE_OK;
    case HCA_RWM_EMPTY:
        if (hca_is_strict(hca)) {
            hca_strict_tell(hca, qp, HCA_STRICT_NO_RECEIVE,
                            qp->srq ? qp->srq->rq.consumed : qp->rq.consumed);
        }
        return HCA_EXE_NO_WQE;
    case HCA_RWM_INVALID:
        return HCA_EXE_XRC_SRQ;
    case HCA_RWM_MALFORMED:
        return HCA_EXE_BAD_WQE;
    default:
        return HCA_EXE_BAD_QUEUE;
    }
}

/* SEND_SCATTER, ENTRY_RELEASE, ENTRY_UPDATE (figure 4.5) */
static HcaOutcome scatter(Hca *hca, HcaQp *qp, const uint8_t *data,
                          uint32_t len)
{
    while (len) {
        HcaMatchInfo info;
        HcaV2pState state;
        HcaSge entry;

        if (hca_rwm_fetch_entry(qp, &entry) != HCA_RWM_VALID) {
            return HCA_EXE_TOO_LONG;
        }
        info = (HcaMatchInfo) {
            .flags = HCA_V2P_ABSOLUTE_ADDR | HCA_ACCESS_LOCAL_WRITE,
            .pd = qp->resp.wqe.pd,
            .key = entry.lkey,
            .len = MIN(len, entry.len),
            .va = entry.va,
        };
        state = hca_v2p_write(hca->v2p, HCA_V2P_EE, &info, data);
        if (state != HCA_V2P_SUCCESS) {
            trace_refused(hca, &info, state);
            return HCA_EXE_LOCAL_PROT;
        }
        if (info.len == entry.len) {
            hca_rwm_release_entry(qp);
        } else {
            hca_rwm_update_entry(qp, info.len);
        }
        data += info.len;
        len -= info.len;
    }
    return HCA_EXE_OK;
}

/*
 * UD: room for a GRH comes before the data, whether there is one or not; on
 * RoCE the IP header lies there.
 */
static HcaOutcome scatter_grh(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    uint8_t header[HCA_GRH_SIZE];

    hca_port_datagram_header(hca->port, packet, header);
    return scatter(hca, qp, header, sizeof(header));
}

/* WQE_RELEASE, COMPLETION */
static HcaOutcome complete(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                           uint32_t byte_cnt)
{
    return hca_recv_complete(hca, qp, packet, byte_cnt) ? HCA_EXE_OK
                                                        : HCA_EXE_CQ_LOST;
}

/*
 * IBA 9.9.4: the key is gone before the receive completes. A packet that comes
 * again is not executed, so it goes once.
 */
static HcaOutcome invalidate(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaInvalidation inv = {
        .key = packet->inv_rkey,
        .pd = qp->resp.remote_pd,
        .qpn = qp->qpn,
        .remote = true,
    };
    HcaV2pState state = hca_v2p_invalidate(hca->v2p, HCA_V2P_EE, &inv);

    hca_trace(hca, HCA_TRACE_MEM_OP, qp->qpn, packet->opcode, inv.key, state);
    return state == HCA_V2P_SUCCESS ? HCA_EXE_OK : HCA_EXE_INVALIDATION;
}

/* Figure 4.5 */
static HcaOutcome execute_send(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                               const HcaOperation *op)
{
    bool ud = qp->attr.service == HCA_SERVICE_UD;
    HcaOutcome outcome = HCA_EXE_OK;

    if (op->first) {
        outcome = take_wqe(hca, qp, packet);
    } else if (is_xrc(qp) && !hca_rwm_is_of(hca, qp, packet->srqn)) {
        outcome = HCA_EXE_XRC_SRQ;
    }
    if (outcome == HCA_EXE_OK && ud) {
        outcome = scatter_grh(hca, qp, packet);
    }
    if (outcome == HCA_EXE_OK) {
        outcome = scatter(hca, qp, packet->payload, packet->payload_len);
    }
    if (outcome == HCA_EXE_OK && op->invalidates) {
        outcome = invalidate(hca, qp, packet);
    }
    if (outcome == HCA_EXE_OK && op->last) {
        outcome = complete(hca, qp, packet,
                           qp->resp.message_len + packet->payload_len +
                               (ud ? HCA_GRH_SIZE : 0));
    }
    return outcome;
}

/* WRITE_DATA, STORE_ADDR */
static HcaOutcome write_data(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaMatchInfo info = hca_wat_next(qp, packet->payload_len);
    HcaV2pState state = HCA_V2P_SUCCESS;

    if (info.len) {
        state = hca_v2p_write(hca->v2p, HCA_V2P_EE, &info, packet->payload);
    }
    if (state == HCA_V2P_SUCCESS) {
        hca_wat_update(qp, info.len);
    }
    return remote_outcome(hca, &info, state);
}

/* Figure 4.6 */
static HcaOutcome execute_write(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                                const HcaOperation *op)
{
    HcaOutcome outcome = HCA_EXE_OK;

    if (op->imm) {
        outcome = take_wqe(hca, qp, packet);
    }
    if (outcome == HCA_EXE_OK && op->first) {
        if (!op->last) { /* an Only is checked when it is written */
            outcome = check_region(hca, qp, packet, HCA_ACCESS_REMOTE_WRITE);
        }
        hca_wat_store(qp, packet);
    }
    if (outcome == HCA_EXE_OK) {
        outcome = write_data(hca, qp, packet);
    }
    if (outcome == HCA_EXE_OK && op->imm) {
        outcome = complete(hca, qp, packet,
                           qp->resp.message_len + packet->payload_len);
    }
    return outcome;
}

/* Keep the answer for a duplicate of the request (IBA 9.4.5). */
static void store_replay(HcaQp *qp, uint32_t psn, uint64_t old)
{
    HcaResponder *resp = &qp->resp;

    resp->replay[resp->replay_next] = (HcaReplay) {
        .valid = true,
        .psn = psn,
        .atomic_ack = old,
    };
    resp->replay_next = (resp->replay_next + 1) % HCA_MAX_RD_ATOMIC;
}

/*
 * Among the last rra_max: the peer has no older one outstanding. The newest
 * with this PSN: an older one is 2^24 packets old.
 */
static const HcaReplay *find_replay(const HcaQp *qp, uint32_t psn)
{
    const HcaResponder *resp = &qp->resp;

    for (unsigned i = 1; i <= qp->attr.rra_max; i++) {
        const HcaReplay *replay =
            &resp->replay[(resp->replay_next - i) % HCA_MAX_RD_ATOMIC];

        if (replay->valid && replay->psn == psn) {
            return replay;
        }
    }
    return NULL;
}

static HcaOutcome execute_atomic(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaMatchInfo info = hca_remote_info(qp, packet, HCA_ACCESS_REMOTE_ATOMIC,
                                        sizeof(uint64_t));
    HcaV2pState state;
    uint64_t old;

    if (HCA_BTH_OPERATION(packet->opcode) == HCA_CMP_SWAP) {
        state = hca_v2p_cmp_swap(hca->v2p, HCA_V2P_EE, &info, packet->compare,
                                 packet->swap_add, &old);
    } else {
        state = hca_v2p_fetch_add(hca->v2p, HCA_V2P_EE, &info, packet->swap_add,
                                  &old);
    }
    if (state == HCA_V2P_SUCCESS) {
        store_replay(qp, packet->psn, old);
    }
    return remote_outcome(hca, &info, state);
}

/* IBA annex A19: at once, to whoever looks. */
static HcaOutcome execute_atomic_write(Hca *hca, const HcaQp *qp,
                                       const HcaPacket *packet)
{
    HcaMatchInfo info = hca_remote_info(qp, packet, HCA_ACCESS_REMOTE_WRITE,
                                        sizeof(uint64_t));
    uint64_t value;

    memcpy(&value, packet->payload, sizeof(value));
    return remote_outcome(
        hca, &info, hca_v2p_atomic_write(hca->v2p, HCA_V2P_EE, &info, value));
}

/*
 * IBA annex A19. All requests before it have been executed; what they wrote is in
 * the machine's memory, where everybody sees it, when it is on its way no more.
 */
static HcaOutcome execute_flush(Hca *hca, const HcaQp *qp,
                                const HcaPacket *packet, const HcaOperation *op)
{
    bool whole = HCA_FETH_LEVEL(packet->feth) == HCA_FLUSH_REGION;
    HcaMatchInfo info = hca_remote_info(
        qp, packet, hca_operation_access(op, packet), packet->dma_len);

    HcaV2pState state = hca_v2p_check_flush(hca->v2p, HCA_V2P_EE, &info, whole);

    if (state == HCA_V2P_SUCCESS) {
        hca_v2p_settle(hca->v2p);
    }
    return remote_outcome(hca, &info, state);
}

static HcaOutcome execute_kind(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                               const HcaOperation *op)
{
    switch (op->kind) {
    case HCA_REQUEST_SEND:
        return execute_send(hca, qp, packet, op);
    case HCA_REQUEST_WRITE:
        return execute_write(hca, qp, packet, op);
    case HCA_REQUEST_READ:
        return check_region(hca, qp, packet, HCA_ACCESS_REMOTE_READ);
    case HCA_REQUEST_ATOMIC_WRITE:
        return execute_atomic_write(hca, qp, packet);
    case HCA_REQUEST_FLUSH:
        return execute_flush(hca, qp, packet, op);
    default:
        return execute_atomic(hca, qp, packet);
    }
}

/* For the QP: requests that begin well, and those that find no WQE. */
static void count_request(HcaQp *qp, const HcaOperation *op, HcaOutcome outcome)
{
    bool begun = outcome == HCA_EXE_OK && op->first;

    qp->counters->out_of_buffer += outcome == HCA_EXE_NO_WQE;
    qp->counters->write_requests += begun && op->kind == HCA_REQUEST_WRITE;
    qp->counters->read_requests += begun && op->kind == HCA_REQUEST_READ;
    qp->counters->atomic_requests += begun && op->kind == HCA_REQUEST_ATOMIC;
}

/* What works by the order in which things happen to come here. */
static void judge_strictly(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                           const HcaOperation *op, HcaOutcome outcome)
{
    const HcaBarrier *barrier = &qp->req.barrier;

    if (outcome == HCA_EXE_RESOURCES) {
        hca_strict_tell(hca, qp, HCA_STRICT_RD_ATOMIC, qp->attr.rra_max);
    }
    if (outcome == HCA_EXE_OK && op->first && op->kind != HCA_REQUEST_SEND &&
        barrier->pending && barrier->ref.opcode == HCA_OP_LOCAL_INV &&
        barrier->mem.key == packet->rkey) {
        hca_strict_tell(hca, qp, HCA_STRICT_KEY_GOING,
                        hca_sq_slot(&qp->attr, barrier->ref.offset));
    }
}

static HcaOutcome execute(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                          const HcaOperation *op)
{
    HcaOutcome outcome = hca_check_request(qp, packet, op);

    if (outcome == HCA_EXE_OK && !find_remote_pd(hca, qp, packet)) {
        outcome = HCA_EXE_XRC_SRQ;
    }
    if (outcome == HCA_EXE_OK && hca_requests_are_planned(hca)) {
        outcome = hca_planned_request(hca, qp, packet, op);
    }
    if (outcome == HCA_EXE_OK) {
        outcome = execute_kind(hca, qp, packet, op);
    }
    hca->responder->counters.requests[op->kind] += outcome == HCA_EXE_OK;
    hca->responder->counters.outcomes[outcome]++;
    count_request(qp, op, outcome);
    if (hca_is_strict(hca)) {
        judge_strictly(hca, qp, packet, op, outcome);
    }
    return outcome;
}

/* CXT_WB: the packet is done. */
static void advance(HcaQp *qp, const HcaPacket *packet, const HcaOperation *op)
{
    HcaResponder *resp = &qp->resp;
    uint32_t psns = op->kind == HCA_REQUEST_READ
                        ? hca_read_psns(qp, packet->dma_len)
                        : 1;

    resp->expected_psn = hca_psn_add(packet->psn, psns);
    resp->message = op->kind;
    resp->in_message = !op->last;
    if (op->last) {
        resp->message_len = 0;
        resp->msn = (resp->msn + 1) & HCA_PSN_MASK;
    } else {
        resp->message_len += packet->payload_len;
    }
}

/* GEN_RESP */
static void respond(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                    const HcaOperation *op)
{
    switch (op->kind) {
    case HCA_REQUEST_READ:
        hca_resp_read(hca, qp, packet, false);
        break;
    case HCA_REQUEST_ATOMIC:
        hca_resp_atomic(hca, qp, packet->psn,
                        find_replay(qp, packet->psn)->atomic_ack, false);
        break;
    case HCA_REQUEST_ATOMIC_WRITE:
    case HCA_REQUEST_FLUSH:
        hca_resp_done(hca, qp, packet->psn, hca_operation_counts(op), false);
        break;
    default:
        if (packet->ack_req || hca->config.ack_policy == HCA_ACK_EACH) {
            hca_resp_ack(hca, qp);
        }
    }
}

/* Reliable connection */

/* The QP breaks: completion in error, event, flush. */
static void break_qp(Hca *hca, HcaQp *qp, HcaOutcome outcome)
{
    const HcaFailure *failure = failure_of(hca, outcome);

    if (failure->syndrome) {
        hca_recv_fail(hca, qp, failure->syndrome,
                      failure->vendor_err ? failure->vendor_err : outcome);
    }
    if (failure->event) {
        hca_qp_event(hca->cm, qp, failure->event);
    }
    hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
}

/* The expected packet waits until the peer sends it again. */
static void not_ready(Hca *hca, HcaQp *qp)
{
    qp->resp.nak_sent = true;
    hca_resp_nak(hca, qp, qp->resp.expected_psn,
                 HCA_AETH(HCA_AETH_RNR, qp->attr.min_rnr_timer),
                 HCA_EXE_NO_WQE);
}

static void expected(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                     const HcaOperation *op)
{
    HcaOutcome outcome;

    qp->resp.nak_sent = false;
    qp->resp.nak_owed = false;
    outcome = execute(hca, qp, packet, op);
    if (outcome == HCA_EXE_OK) {
        advance(qp, packet, op);
        respond(hca, qp, packet, op);
    } else if (outcome == HCA_EXE_NO_WQE) {
        not_ready(hca, qp);
    } else if (outcome == HCA_EXE_IGNORED) {
        qp->resp.nak_sent = true; /* nor of what follows */
        hca_drop(hca->port, packet, HCA_DROP_FAULT);
    } else {
        hca_resp_nak(hca, qp, qp->resp.expected_psn,
                     failure_of(hca, outcome)->nak, outcome);
        break_qp(hca, qp, outcome);
    }
}

/* Figure 4.4: the invalid region. One NAK, then silence. */
static void ahead(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    if (qp->resp.nak_sent || qp->resp.nak_owed) {
        hca_drop(hca->port, packet, HCA_DROP_PSN);
    } else {
        hca_resp_ask_again(hca, qp);
    }
}

/*
 * The expected packet has to wait for the answers before it: a peer that asks for
 * more than it was granted leaves none to remember, and the key of a Read that is
 * being answered cannot go yet. It is asked for again when they are out.
 */
static bool must_wait(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                      const HcaOperation *op)
{
    bool reads = op->invalidates && hca_resp_reads_by(qp, packet->inv_rkey);

    if (reads && hca_is_strict(hca)) {
        hca_strict_tell(hca, qp, HCA_STRICT_KEY_READ, packet->inv_rkey);
    }
    return reads || !hca_resp_has_room(hca, qp, packet->psn);
}

/*
 * A Read asked for again. Nothing that is wrong with it breaks the
 * connection: it may be a ghost of a Read that was answered long ago.
 */
static void repeat_read(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    uint32_t behind = (qp->resp.expected_psn - packet->psn) & HCA_PSN_MASK;

    if (packet->dma_len > qp->max_msg ||
        hca_read_psns(qp, packet->dma_len) > behind) {
        hca_drop(hca->port, packet, HCA_DROP_DUPLICATE);
    } else if (!(qp->attr.access & HCA_ACCESS_REMOTE_READ) ||
               !find_remote_pd(hca, qp, packet) ||
               check_region(hca, qp, packet, HCA_ACCESS_REMOTE_READ) !=
                   HCA_EXE_OK) {
        hca_drop(hca->port, packet, HCA_DROP_ACCESS);
    } else {
        hca_resp_read(hca, qp, packet, true);
    }
}

static void repeat_atomic(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    const HcaReplay *replay = find_replay(qp, packet->psn);

    if (replay) {
        hca_resp_atomic(hca, qp, packet->psn, replay->atomic_ack, true);
    } else {
        hca_drop(hca->port, packet, HCA_DROP_DUPLICATE);
    }
}

static unsigned repeats_allowed(const HcaQp *qp, const HcaOperation *op)
{
    return hca_operation_counts(op) ? qp->attr.rra_max : HCA_MAX_RD_ATOMIC;
}

/* Figure 4.2: the duplicate region. */
static void duplicate(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                      const HcaOperation *op)
{
    hca->responder->counters.duplicates++;
    qp->counters->duplicates++;
    if (op->kind == HCA_REQUEST_SEND || op->kind == HCA_REQUEST_WRITE) {
        hca_resp_ack(hca, qp);
    } else if (hca_resp_pending(qp, packet->psn)) {
        hca_drop(hca->port, packet, HCA_DROP_DUPLICATE);
    } else if (hca_resp_duplicates(qp) >= repeats_allowed(qp, op)) {
        hca_drop(hca->port, packet, HCA_DROP_RESOURCES);
    } else if (op->kind == HCA_REQUEST_READ) {
        repeat_read(hca, qp, packet);
    } else if (op->kind == HCA_REQUEST_ATOMIC) {
        repeat_atomic(hca, qp, packet);
    } else { /* executed once, and the answer is always the same */
        hca_resp_done(hca, qp, packet->psn, false, true);
    }
}

static void receive_rc(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       const HcaOperation *op)
{
    int32_t distance = hca_psn_diff(packet->psn, qp->resp.expected_psn);

    if (distance == 0 && must_wait(hca, qp, packet, op)) {
        hca_drop(hca->port, packet, HCA_DROP_RESOURCES);
        qp->resp.nak_owed = true;
    } else if (!hca_resp_has_room(hca, qp, packet->psn)) {
        hca_drop(hca->port, packet, HCA_DROP_RESOURCES);
    } else if (distance < 0) {
        duplicate(hca, qp, packet, op);
    } else if (distance > 0) {
        ahead(hca, qp, packet);
    } else {
        expected(hca, qp, packet, op);
    }
}

/* Unreliable services */

/* A message is given up; the next one uses its receive WQE. */
static void abandon_message(HcaQp *qp)
{
    qp->resp.in_message = false;
    qp->resp.message_len = 0;
    hca_rwm_restart_wqe(qp);
}

static void fail_unreliable(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                            HcaOutcome outcome)
{
    const HcaFailure *failure = failure_of(hca, outcome);

    hca_drop(hca->port, packet, failure->drop);
    if (failure->local) {
        break_qp(hca, qp, outcome);
    } else {
        abandon_message(qp);
    }
}

/* IBA 9.8.2.2: packets may be lost; a message of which one is lost is, too. */
static void receive_uc(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       const HcaOperation *op)
{
    bool lost = packet->psn != qp->resp.expected_psn;
    HcaOutcome outcome;

    if (qp->resp.in_message && (lost || op->first)) {
        abandon_message(qp);
    }
    qp->resp.expected_psn = hca_psn_add(packet->psn, 1);
    if (lost && !op->first) {
        hca_drop(hca->port, packet, HCA_DROP_PSN);
        return;
    }
    outcome = execute(hca, qp, packet, op);
    if (outcome == HCA_EXE_OK) {
        advance(qp, packet, op);
    } else {
        fail_unreliable(hca, qp, packet, outcome);
    }
}

static void receive_ud(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       const HcaOperation *op)
{
    HcaOutcome outcome = execute(hca, qp, packet, op);

    if (outcome != HCA_EXE_OK) {
        fail_unreliable(hca, qp, packet, outcome);
    }
}

/*
 * Raw packets (verbs): a frame is a message. What does not fit into the next
 * WQE is dropped, as a datagram is: who asks for all frames must not break by a
 * long one. The completion is that of a Send.
 */
void hca_responder_receive_frame(Hca *hca, HcaQp *qp, const uint8_t *frame,
                                 size_t len, uint32_t flow_tag)
{
    HcaPacket packet = {
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .dest_qp = qp->qpn,
        .flow_tag = flow_tag,
        .payload = frame,
        .payload_len = len,
    };
    HcaOutcome outcome;

    hca_trace(hca, HCA_TRACE_PACKET_RX, qp->qpn, packet.opcode, 0, len);
    qp->counters->rx_packets++;
    qp->counters->rx_bytes += len;
    outcome = take_wqe(hca, qp, &packet);
    if (outcome == HCA_EXE_OK) {
        outcome = scatter(hca, qp, frame, len);
    }
    if (outcome == HCA_EXE_OK) {
        outcome = complete(hca, qp, &packet, len);
    }
    hca->responder->counters.outcomes[outcome]++;
    qp->counters->out_of_buffer += outcome == HCA_EXE_NO_WQE;
    if (outcome != HCA_EXE_OK) {
        fail_unreliable(hca, qp, &packet, outcome);
    }
}

/* IBA 11.6.3.1: the first packet tells that the connected peer is in RTS. */
static void communication_established(Hca *hca, HcaQp *qp)
{
    if (qp->state == HCA_QP_RTR && qp->attr.service != HCA_SERVICE_UD &&
        !qp->resp.comm_est) {
        qp->resp.comm_est = true;
        hca_qp_event(hca->cm, qp, HCA_EVENT_COMM_EST);
    }
}

void hca_responder_receive(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    const HcaOperation *op = hca_operation(packet->opcode);

    if (!hca_check_headers(hca, qp, packet, op)) {
        return;
    }
    hca_cnp_note(hca, qp, packet);
    communication_established(hca, qp);
    switch (qp->attr.service) {
    case HCA_SERVICE_RC:
    case HCA_SERVICE_XRC_TGT:
        receive_rc(hca, qp, packet, op);
        break;
    case HCA_SERVICE_UC:
        receive_uc(hca, qp, packet, op);
        break;
    default:
        receive_ud(hca, qp, packet, op);
    }
}
