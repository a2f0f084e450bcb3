/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQEParse (engine document 2.4.3, figure 2.5). What lies where in a WQE is
 * the programming interface's (wqe_format.h).
 *
 * A WQE that fails a check is not dropped here: it goes on with its syndrome,
 * behind the WQEs before it, and the requester ends it (2.4.3.1.2).
 *
 * The document's parser reads the payload as well. Here an entry is only
 * checked; its memory is found when a packet is built, so that a region that
 * goes away in between is noticed.
 */
#include "../clear.h"
#include "../verb_fault.h"
#include "send.h"

static void fail(HcaWqe *wqe, uint8_t syndrome, HcaWqeCheck check)
{
    if (!wqe->syndrome) {
        wqe->syndrome = syndrome;
        wqe->vendor_err = check;
    }
}

/* Table 1.1: what each service type can do; and who may do it. */
static bool opcode_allowed(const HcaQp *qp, const HcaSendOp *op)
{
    return (op->services & 1 << qp->attr.service) &&
           (!hca_has_response(op) || qp->attr.sra_max) &&
           (!op->privileged || qp->attr.privileged);
}

/* Follow the chain to @next, if there is one. */
static void indicate(HcaQp *qp, const HcaWqeRef *next)
{
    /* A chain has no more WQEs than the queue has slots: no endless loop. */
    if (next->size &&
        qp->send.chain_len < qp->attr.sq_len >> qp->attr.sq_entry_log) {
        qp->send.chain_len++;
        hca_wqe_indicate(qp, next);
    } else {
        hca_wqe_indicate_end(qp);
    }
}

/* UD: who the peer is, and whether there is a way to it. */
static void parse_peer(const Hca *hca, const HcaQp *qp, const uint8_t *bytes,
                       HcaWqe *wqe)
{
    bool roce = hca_port_is_roce(hca->port);

    if (!hca->format->wqe->parse_peer(bytes, roce, wqe)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
        return;
    }
    wqe->path.smp = qp->special == HCA_SPECIAL_SMI;
    if (!hca_port_can_reach(hca->port, &wqe->path)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_ADDRESS);
    } else if (wqe->qkey >> 31) { /* asks for the QP's own (IBA 10.2.5) */
        wqe->qkey = qp->attr.qkey;
    }
}

/* @read: hca_v2p_peek(), or what takes effect. */
typedef HcaV2pState ReadFn(HcaV2p *v2p, const HcaMatchInfo *info, void *buf);

static HcaV2pState read_headers(HcaV2p *v2p, const HcaMatchInfo *info,
                                void *buf)
{
    return hca_v2p_read(v2p, HCA_V2P_WP_ND, info, buf);
}

static void parse_special(Hca *hca, const HcaQp *qp, const uint8_t *bytes,
                          ReadFn *read, HcaWqe *wqe)
{
    uint8_t headers[HCA_MAX_HEADER_SIZE];
    HcaMatchInfo info;
    HcaWqeCheck check;

    if (!hca_special_find_headers(hca, qp, bytes, wqe, &info)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
    } else if (read(hca->v2p, &info, headers) != HCA_V2P_SUCCESS) {
        fail(wqe, HCA_SYNDROME_LOCAL_PROT_ERR, HCA_WQE_BAD_ENTRY);
    } else {
        check = hca_special_take_headers(hca, qp, headers, info.len, wqe);
        if (check != HCA_WQE_GOOD) {
            fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, check);
        }
    }
}

/* Places in the send queue are told by their low words. */
static void widen_inline(const HcaQp *qp, HcaWqe *wqe)
{
    if (wqe->nsge && wqe->sge[0].relative) {
        wqe->sge[0].va += qp->attr.wq_base;
    }
}

static void parse_units(Hca *hca, const HcaQp *qp, const uint8_t *bytes,
                        ReadFn *read, HcaWqe *wqe)
{
    if (hca_special_has_headers(hca, qp)) {
        parse_special(hca, qp, bytes, read, wqe);
        return;
    }
    if (qp->attr.service == HCA_SERVICE_UD) {
        parse_peer(hca, qp, bytes, wqe);
    }
    if (!wqe->syndrome && !hca->format->wqe->parse_units(
                              bytes, qp->attr.service, qp->attr.sq_lkey, wqe)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
    }
    widen_inline(qp, wqe);
}

/*
 * Request length check: a packet of a datagram service, of which a raw one has
 * a header, and one of QP 0 and QP 1 is a MAD; others are of the port's MTU, as
 * it is now; else the QP's limit. 2 GiB at the
 * most, as QUERY_DEV_LIM says; a Read of that takes half of all PSNs at the least
 * MTU.
 */
static void check_length(const Hca *hca, const HcaQp *qp, const HcaSendOp *op,
                         HcaWqe *wqe)
{
    const HcaServiceRow *service = hca_service(qp->attr.service);
    uint32_t limit = qp->max_msg;

    if (service->datagram) {
        limit = MIN(limit, service->raw
                               ? qp->pmtu
                               : 128u << hca_port_active_mtu(hca->port));
    }
    if (MAX(wqe->msg_len, wqe->flush_len) > limit ||
        (service->raw && wqe->msg_len < HCA_ETH_HEADER_SIZE) ||
        (qp->special && wqe->msg_len != HCA_MAD_SIZE) ||
        (op->length && wqe->msg_len != op->length)) {
        fail(wqe, HCA_SYNDROME_LOCAL_LENGTH_ERR, HCA_WQE_BAD_LENGTH);
    }
}

static HcaMatchInfo entry_info(const HcaQp *qp, const HcaSendOp *op,
                               const HcaSge *sge)
{
    uint32_t access = op->transfer == HCA_TRANSFER_RESPONSE
                          ? HCA_ACCESS_LOCAL_WRITE
                          : 0;

    return (HcaMatchInfo) {
        .flags = access | (sge->relative ? HCA_V2P_RELATIVE_ADDR
                                         : HCA_V2P_ABSOLUTE_ADDR),
        .pd = qp->attr.pd,
        .key = sge->lkey,
        .len = sge->len,
        .va = sge->va,
    };
}

/* Local memory access check of each entry. */
static void check_entries(Hca *hca, const HcaQp *qp, const HcaSendOp *op,
                          HcaWqe *wqe)
{
    for (unsigned i = 0; i < wqe->nsge; i++) {
        HcaMatchInfo info = entry_info(qp, op, &wqe->sge[i]);

        if (hca_v2p_check(hca->v2p, HCA_V2P_WP_ND, &info) != HCA_V2P_SUCCESS) {
            fail(wqe, HCA_SYNDROME_LOCAL_PROT_ERR, HCA_WQE_BAD_ENTRY);
            return;
        }
    }
}

static HcaMatchInfo wqe_info(const HcaQp *qp, const HcaWqeRef *ref)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_RELATIVE_ADDR,
        .pd = qp->attr.pd,
        .key = qp->attr.sq_lkey,
        .len = ref->size,
        .va = qp->attr.wq_base + ref->offset,
    };
}

static bool place_ok(const HcaQp *qp, const HcaWqeRef *ref)
{
    return ref->size >= RDMA_HCA_WQE_UNIT &&
           ref->size <= RDMA_HCA_MAX_SEND_WQE_SIZE &&
           ref->size <= qp->attr.sq_len && ref->offset >= qp->attr.sq_offset &&
           ref->offset - qp->attr.sq_offset <= qp->attr.sq_len - ref->size;
}

/* Read the WQE; false (and failed) if it is not in the queue's memory. */
static bool fetch(Hca *hca, const HcaQp *qp, HcaV2pChannel channel, HcaWqe *wqe,
                  uint8_t *bytes)
{
    HcaMatchInfo info = wqe_info(qp, &wqe->ref);

    if (!place_ok(qp, &wqe->ref)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_PLACE);
        return false;
    }
    if (hca_v2p_read(hca->v2p, channel, &info, bytes) != HCA_V2P_SUCCESS) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_UNREADABLE);
        return false;
    }
    return true;
}

/* The checks of 2.4.3.1.2, in turn. */
static void check(Hca *hca, const HcaQp *qp, const uint8_t *bytes, HcaWqe *wqe)
{
    const HcaSendOp *op = hca_send_op(wqe->ref.opcode);

    if (!opcode_allowed(qp, op)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_OPCODE);
        return;
    }
    if (op->transfer == HCA_TRANSFER_NONE && !op->mem) {
        return;
    }
    parse_units(hca, qp, bytes, read_headers, wqe);
    if (op->mem) {
        return; /* judged when it is executed */
    }
    if (!wqe->syndrome) {
        check_length(hca, qp, op, wqe);
    }
    if (!wqe->syndrome) {
        check_entries(hca, qp, op, wqe);
    }
}

/* What a plan of faults has in mind; what the card itself refuses ends here. */
static void take_plan(HcaWqe *wqe, HcaPlanned planned)
{
    wqe->planned = planned;
    if (planned.way == HCA_PLANNED_LOCAL && !wqe->syndrome) {
        wqe->syndrome = planned.syndrome;
        wqe->vendor_err = planned.vendor_err;
    }
}

static void parse(Hca *hca, HcaQp *qp, HcaV2pChannel channel, HcaWqe *wqe)
{
    uint8_t bytes[RDMA_HCA_MAX_SEND_WQE_SIZE];
    HcaWqeRef next;

    if (!fetch(hca, qp, channel, wqe, bytes)) {
        hca_wqe_indicate_end(qp);
        return;
    }
    hca->format->wqe->parse_header(bytes, wqe, &next);
    wqe->signalled |= qp->attr.signals_all;
    indicate(qp, &next);
    if (!hca_send_flushes(qp)) { /* else only the link counts */
        check(hca, qp, bytes, wqe);
    }
}

void hca_wqe_parse(Hca *hca, HcaQp *qp, HcaV2pChannel channel,
                   const HcaWqeRef *ref, HcaWqe *wqe)
{
    hca_clear(wqe, offsetof(HcaWqe, sge));
    wqe->ref = *ref;
    parse(hca, qp, channel, wqe);
    hca->send->counters.wqes++;
    hca->send->counters.wqe_opcodes[ref->opcode]++;
    hca->send->counters.wqe_checks[wqe->vendor_err]++;
    if (wqe->syndrome) {
        hca_trace(hca, HCA_TRACE_WQE_ERROR, qp->qpn, ref->offset, wqe->syndrome,
                  wqe->vendor_err);
    } else {
        hca_trace(hca, HCA_TRACE_WQE, qp->qpn, ref->offset, ref->opcode,
                  wqe->msg_len);
    }
}

bool hca_wqe_plan(Hca *hca, HcaQp *qp)
{
    HcaWqe *wqe = &qp->send.wqe;
    const HcaFaultRule *rule;

    if (wqe->syndrome || hca_send_flushes(qp)) {
        return false;
    }
    rule = hca_send_fault(hca->faults, qp, wqe);
    if (!rule) {
        return false;
    }
    if (rule->action == HCA_FAULT_BREAK) {
        return true;
    }
    take_plan(wqe, (HcaPlanned) {
                       .way = hca_fault_status(rule->status)->way,
                       .syndrome = rule->status,
                       .vendor_err = rule->vendor_err,
                   });
    return false;
}

/*
 * Attributes may have changed in SQD: those that it was parsed by count no
 * more. Its link, if it has one, has not been followed yet.
 */
void hca_wqe_parse_again(Hca *hca, HcaQp *qp)
{
    HcaSendQueue *sq = &qp->send;
    HcaWqeRef ref = sq->wqe.ref;
    HcaPlanned planned = sq->wqe.planned;

    if (!sq->wqe_valid || sq->wqe.sent) {
        return;
    }
    if (sq->indicator) {
        sq->chain_len--;
    }
    hca_wqe_parse(hca, qp, HCA_V2P_WP_WQE, &ref, &sq->wqe);
    take_plan(&sq->wqe, planned);
}

/* Whether the headers are here that a WQE has in memory, question @nth. */
static bool headers_are_here(Hca *hca, HcaQp *qp, const uint8_t *bytes,
                             unsigned nth)
{
    HcaWqe wqe = { .nsge = 0 };
    HcaMatchInfo info;

    return !hca_special_find_headers(hca, qp, bytes, &wqe, &info) ||
           hca_v2p_ask(hca->v2p, &qp->send_ask, nth, HCA_V2P_WP_ND,
                       HCA_V2P_FETCH, &info);
}

/*
 * VTP_CMD, VTP_RESP: the WQE, then the regions of its entries. What is read here
 * to find these is not what the WQE is judged by.
 */
bool hca_wqe_is_here(Hca *hca, HcaQp *qp, HcaV2pChannel channel,
                     const HcaWqeRef *ref)
{
    uint8_t bytes[RDMA_HCA_MAX_SEND_WQE_SIZE];
    const HcaSendOp *op = hca_send_op(ref->opcode);
    HcaMatchInfo info = wqe_info(qp, ref);
    HcaWqe wqe = { .ref = *ref };
    unsigned nth = 0;

    if (!place_ok(qp, ref)) {
        return true;
    }
    if (!hca_v2p_ask(hca->v2p, &qp->send_ask, nth++, channel, HCA_V2P_FETCH,
                     &info)) {
        return false;
    }
    if (hca_v2p_peek(hca->v2p, &info, bytes) == HCA_V2P_SUCCESS &&
        opcode_allowed(qp, op)) {
        if (hca_special_has_headers(hca, qp) &&
            !headers_are_here(hca, qp, bytes, nth++)) {
            return false;
        }
        parse_units(hca, qp, bytes, hca_v2p_peek, &wqe);
    }
    for (unsigned i = 0; !wqe.syndrome && i < wqe.nsge; i++) {
        info = entry_info(qp, op, &wqe.sge[i]);
        if (!hca_v2p_ask(hca->v2p, &qp->send_ask, nth + i, HCA_V2P_WP_ND,
                         HCA_V2P_CHECK, &info)) {
            return false;
        }
    }
    hca_v2p_ask_done(&qp->send_ask);
    return true;
}
