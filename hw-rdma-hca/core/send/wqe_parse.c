/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQEParse (engine document 2.4.3, figure 2.5; units: interface document 3.4).
 *
 * A WQE that fails a check is not dropped here: it goes on with its syndrome,
 * behind the WQEs before it, and the requester ends it (2.4.3.1.2).
 *
 * The document's parser reads the payload as well. Here an entry is only
 * checked; its memory is found when a packet is built, so that a region that
 * goes away in between is noticed.
 */
#include <string.h>

#include "../../abi/rdma_hca_cxt.h"
#include "../../abi/rdma_hca_wqe.h"
#include "send.h"

/* The WQE being parsed: its units and how many bytes of them are left. */
typedef struct Parser {
    const uint8_t *at;
    uint32_t left;
    uint32_t offset; /* of @at in the send queue */
} Parser;

static void fail(HcaWqe *wqe, uint8_t syndrome, HcaWqeCheck check)
{
    if (!wqe->syndrome) {
        wqe->syndrome = syndrome;
        wqe->vendor_err = check;
    }
}

/* Take the next unit of @size bytes; false (and failed) if there is none. */
static bool take(Parser *parser, HcaWqe *wqe, void *unit, uint32_t size)
{
    if (parser->left < size) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
        return false;
    }
    memcpy(unit, parser->at, size);
    parser->at += size;
    parser->left -= size;
    parser->offset += size;
    return true;
}

static bool is_rdma(uint8_t opcode)
{
    return opcode == HCA_OP_RDMA_WRITE || opcode == HCA_OP_RDMA_WRITE_IMM ||
           opcode == HCA_OP_RDMA_READ;
}

static bool is_atomic(uint8_t opcode)
{
    return opcode == HCA_OP_ATOMIC_CS || opcode == HCA_OP_ATOMIC_FA;
}

static bool is_read(uint8_t opcode)
{
    return opcode == HCA_OP_RDMA_READ || is_atomic(opcode);
}

/* Table 1.1: what each service type can do. */
static bool opcode_allowed(const HcaQp *qp, uint8_t opcode)
{
    switch (opcode) {
    case HCA_OP_NOP:
    case HCA_OP_SEND:
    case HCA_OP_SEND_IMM:
        return true;
    case HCA_OP_RDMA_WRITE:
    case HCA_OP_RDMA_WRITE_IMM:
        return qp->attr.service != HCA_SERVICE_UD;
    case HCA_OP_RDMA_READ:
    case HCA_OP_ATOMIC_CS:
    case HCA_OP_ATOMIC_FA:
        return qp->attr.service == HCA_SERVICE_RC && qp->attr.sra_max > 0;
    default:
        return false;
    }
}

/* NEXT_SEG: about this WQE, and the link to the next one. */
static void parse_next(HcaQp *qp, const struct rdma_hca_next_unit *unit,
                       HcaWqe *wqe)
{
    uint32_t nda_nop = GUINT32_FROM_LE(unit->nda_nop);
    uint32_t nee_nds = GUINT32_FROM_LE(unit->nee_nds);
    uint32_t flags = GUINT32_FROM_LE(unit->flags);
    HcaWqeRef next = {
        .offset = RDMA_HCA_GET(RDMA_HCA_NEXT_NDA, nda_nop) * RDMA_HCA_WQE_ALIGN,
        .size = RDMA_HCA_GET(RDMA_HCA_NEXT_NDS, nee_nds) * RDMA_HCA_WQE_UNIT,
        .opcode = RDMA_HCA_GET(RDMA_HCA_NEXT_NOP, nda_nop),
        .fence = RDMA_HCA_GET(RDMA_HCA_NEXT_FENCE, nee_nds),
    };

    wqe->signalled = flags & RDMA_HCA_WQE_CQ_UPDATE;
    wqe->solicited = flags & RDMA_HCA_WQE_SOLICITED;
    wqe->imm_be = unit->imm_data;
    /* A chain has no more WQEs than the queue has slots: no endless loop. */
    if (next.size && !(nee_nds & RDMA_HCA_NEXT_DBD) &&
        qp->send.chain_len < qp->attr.sq_len >> qp->attr.sq_entry_log) {
        qp->send.chain_len++;
        hca_wqe_indicate(qp, &next);
    } else {
        hca_wqe_indicate_end(qp);
    }
}

/* ADDR_SEG */
static void parse_raddr(Parser *parser, HcaWqe *wqe)
{
    struct rdma_hca_raddr_unit unit;

    if (take(parser, wqe, &unit, sizeof(unit))) {
        wqe->raddr = (uint64_t)GUINT32_FROM_LE(unit.raddr_h) << 32 |
                     GUINT32_FROM_LE(unit.raddr_l);
        wqe->rkey = GUINT32_FROM_LE(unit.rkey);
    }
}

/* ATOMIC_SEG */
static void parse_atomic(Parser *parser, HcaWqe *wqe)
{
    struct rdma_hca_atomic_unit unit;

    if (take(parser, wqe, &unit, sizeof(unit))) {
        wqe->swap_add = (uint64_t)GUINT32_FROM_LE(unit.swap_add_h) << 32 |
                        GUINT32_FROM_LE(unit.swap_add_l);
        wqe->compare = (uint64_t)GUINT32_FROM_LE(unit.cmp_h) << 32 |
                       GUINT32_FROM_LE(unit.cmp_l);
    }
}

/* Where an address vector leads, by link layer. @path->grh is known. */
static void parse_addresses(const Hca *hca, const struct rdma_hca_ud_unit *unit,
                            HcaPath *path)
{
    uint32_t lids = GUINT32_FROM_LE(unit->dlid_slid);
    uint16_t high = RDMA_HCA_GET(RDMA_HCA_UD_DLID, lids);
    uint16_t low = RDMA_HCA_GET(RDMA_HCA_UD_SLID, lids);

    memcpy(path->dgid.raw, unit->dgid, sizeof(path->dgid.raw));
    if (!hca_port_is_roce(hca->port)) {
        path->dlid = high;
    } else if (path->grh) {
        hca_path_mac(path->dmac, GUINT32_FROM_LE(unit->dmac_h2), high);
    } else {
        hca_path_mac(path->dmac, GUINT32_FROM_LE(unit->dmac_h), high);
        hca_path_mac(path->smac, GUINT32_FROM_LE(unit->smac_h), low);
        path->sip = GUINT32_FROM_LE(unit->sip);
        path->dgid = hca_gid_of_ipv4(GUINT32_FROM_LE(unit->dip));
    }
}

/* UD_SEG */
static void parse_ud(const Hca *hca, const HcaQp *qp, Parser *parser,
                     HcaWqe *wqe)
{
    struct rdma_hca_ud_unit unit;
    uint32_t port, flow, qkey;

    if (!take(parser, wqe, &unit, sizeof(unit))) {
        return;
    }
    port = GUINT32_FROM_LE(unit.port);
    flow = GUINT32_FROM_LE(unit.flow);
    qkey = GUINT32_FROM_LE(unit.qkey);
    if (RDMA_HCA_GET(RDMA_HCA_UD_PORT, port) != RDMA_HCA_NUM_PORTS) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
        return;
    }
    wqe->path = (HcaPath) {
        .sl = RDMA_HCA_GET(RDMA_HCA_UD_SL, port),
        .grh = RDMA_HCA_GET(RDMA_HCA_UD_GRH, port),
        .sgid_index = RDMA_HCA_GET(RDMA_HCA_UD_SGID_INDEX, port),
        .hop_limit = RDMA_HCA_GET(RDMA_HCA_UD_HOP_LIMIT, port),
        .tclass = RDMA_HCA_GET(RDMA_HCA_QPC_TCLASS, flow),
        .flow_label = RDMA_HCA_GET(RDMA_HCA_QPC_FLOW_LABEL, flow),
    };
    parse_addresses(hca, &unit, &wqe->path);
    if (!hca_port_can_reach(hca->port, &wqe->path)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_ADDRESS);
        return;
    }
    wqe->dqpn = GUINT32_FROM_LE(unit.dqpn) & HCA_QPN_MASK;
    /* The high bit asks for the QP's own (IBA 10.2.5). */
    wqe->qkey = qkey >> 31 ? qp->attr.qkey : qkey;
}

/* INLINE_SEG: the data stay in the send queue and are read from there. */
static void parse_inline(const HcaQp *qp, Parser *parser, HcaWqe *wqe)
{
    uint32_t header;

    take(parser, wqe, &header, sizeof(header));
    wqe->msg_len = RDMA_HCA_GET(RDMA_HCA_INLINE_LENGTH,
                                GUINT32_FROM_LE(header));
    if (is_read(wqe->ref.opcode) || wqe->msg_len > parser->left) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
        return;
    }
    if (wqe->msg_len) {
        wqe->sge[wqe->nsge++] = (HcaSge) {
            .va = parser->offset,
            .lkey = qp->attr.sq_lkey,
            .len = wqe->msg_len,
            .relative = true,
        };
    }
}

/* DATA_SEG, FWD_DATA_SEG: gather or scatter entries; empty ones are left out */
static void parse_data(Parser *parser, HcaWqe *wqe)
{
    struct rdma_hca_data_unit unit;
    uint64_t total = 0;
    uint32_t len;

    while (parser->left >= sizeof(unit)) {
        take(parser, wqe, &unit, sizeof(unit));
        len = GUINT32_FROM_LE(unit.byte_cnt);
        if (len & RDMA_HCA_INLINE) {
            fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
            return;
        }
        if (!len) {
            continue;
        }
        if (wqe->nsge == RDMA_HCA_MAX_SGE) {
            fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_UNITS);
            return;
        }
        total += len;
        wqe->sge[wqe->nsge++] = (HcaSge) {
            .va = (uint64_t)GUINT32_FROM_LE(unit.addr_h) << 32 |
                  GUINT32_FROM_LE(unit.addr_l),
            .lkey = GUINT32_FROM_LE(unit.lkey),
            .len = len,
        };
    }
    wqe->msg_len = MIN(total, UINT32_MAX);
}

/*
 * Request length check: a packet for UD, else the QP's limit. 2 GiB at the
 * most, as QUERY_DEV_LIM says; a Read of that takes half of all PSNs at the
 * least MTU.
 */
static void check_length(const HcaQp *qp, HcaWqe *wqe)
{
    uint32_t limit = qp->max_msg;

    if (qp->attr.service == HCA_SERVICE_UD) {
        limit = MIN(limit, qp->pmtu);
    }
    if (wqe->msg_len > limit ||
        (is_atomic(wqe->ref.opcode) && wqe->msg_len != sizeof(uint64_t))) {
        fail(wqe, HCA_SYNDROME_LOCAL_LENGTH_ERR, HCA_WQE_BAD_LENGTH);
    }
}

/* Local memory access check of each entry. */
static void check_entries(Hca *hca, const HcaQp *qp, HcaWqe *wqe)
{
    uint32_t access = is_read(wqe->ref.opcode) ? HCA_ACCESS_LOCAL_WRITE : 0;

    for (unsigned i = 0; i < wqe->nsge; i++) {
        const HcaSge *sge = &wqe->sge[i];
        HcaMatchInfo info = {
            .flags = access | (sge->relative ? HCA_V2P_RELATIVE_ADDR
                                             : HCA_V2P_ABSOLUTE_ADDR),
            .pd = qp->attr.pd,
            .key = sge->lkey,
            .len = sge->len,
            .va = sge->va,
        };

        if (hca_v2p_check(hca->v2p, HCA_V2P_WP_ND, &info) != HCA_V2P_SUCCESS) {
            fail(wqe, HCA_SYNDROME_LOCAL_PROT_ERR, HCA_WQE_BAD_ENTRY);
            return;
        }
    }
}

/* The units after next_unit, in the order of figures 3-4-1 and 3-4-2. */
static void parse_units(const Hca *hca, const HcaQp *qp, Parser *parser,
                        HcaWqe *wqe)
{
    uint8_t opcode = wqe->ref.opcode;
    uint32_t first;

    if (opcode == HCA_OP_NOP) {
        return;
    }
    if (qp->attr.service == HCA_SERVICE_UD) {
        parse_ud(hca, qp, parser, wqe);
    }
    if (is_rdma(opcode) || is_atomic(opcode)) {
        parse_raddr(parser, wqe);
    }
    if (is_atomic(opcode)) {
        parse_atomic(parser, wqe);
    }
    if (wqe->syndrome || parser->left < RDMA_HCA_WQE_UNIT) {
        return;
    }
    memcpy(&first, parser->at, sizeof(first)); /* JUDGE */
    if (GUINT32_FROM_LE(first) & RDMA_HCA_INLINE) {
        parse_inline(qp, parser, wqe);
    } else {
        parse_data(parser, wqe);
    }
}

/* Read the WQE; false (and failed) if it is not in the queue's memory. */
static bool fetch(Hca *hca, const HcaQp *qp, HcaV2pChannel channel, HcaWqe *wqe,
                  uint8_t *buffer)
{
    const HcaWqeRef *ref = &wqe->ref;
    HcaMatchInfo info = {
        .flags = HCA_V2P_RELATIVE_ADDR,
        .pd = qp->attr.pd,
        .key = qp->attr.sq_lkey,
        .len = ref->size,
        .va = ref->offset,
    };

    if (ref->size < sizeof(struct rdma_hca_next_unit) ||
        ref->size > RDMA_HCA_MAX_SEND_WQE_SIZE || ref->size > qp->attr.sq_len ||
        ref->offset > qp->attr.sq_len - ref->size) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_PLACE);
        return false;
    }
    if (hca_v2p_read(hca->v2p, channel, &info, buffer) != HCA_V2P_SUCCESS) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_UNREADABLE);
        return false;
    }
    return true;
}

static void parse(Hca *hca, HcaQp *qp, HcaV2pChannel channel, HcaWqe *wqe)
{
    uint8_t buffer[RDMA_HCA_MAX_SEND_WQE_SIZE];
    struct rdma_hca_next_unit next;
    Parser parser = {
        .at = buffer,
        .left = wqe->ref.size,
        .offset = wqe->ref.offset,
    };

    if (!fetch(hca, qp, channel, wqe, buffer)) {
        hca_wqe_indicate_end(qp);
        return;
    }
    take(&parser, wqe, &next, sizeof(next));
    parse_next(qp, &next, wqe);
    if (hca_send_flushes(qp)) {
        return; /* to be flushed: only the link counts */
    }
    if (!opcode_allowed(qp, wqe->ref.opcode)) {
        fail(wqe, HCA_SYNDROME_LOCAL_QP_OP_ERR, HCA_WQE_BAD_OPCODE);
        return;
    }
    parse_units(hca, qp, &parser, wqe);
    if (!wqe->syndrome) {
        check_length(qp, wqe);
    }
    if (!wqe->syndrome) {
        check_entries(hca, qp, wqe);
    }
}

void hca_wqe_parse(Hca *hca, HcaQp *qp, HcaV2pChannel channel,
                   const HcaWqeRef *ref, HcaWqe *wqe)
{
    memset(wqe, 0, offsetof(HcaWqe, sge));
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

/*
 * Attributes may have changed in SQD: those that it was parsed by count no
 * more. Its link, if it has one, has not been followed yet.
 */
void hca_wqe_parse_again(Hca *hca, HcaQp *qp)
{
    HcaSendQueue *sq = &qp->send;
    HcaWqeRef ref = sq->wqe.ref;

    if (!sq->wqe_valid || sq->wqe.sent) {
        return;
    }
    if (sq->indicator) {
        sq->chain_len--;
    }
    hca_wqe_parse(hca, qp, HCA_V2P_WP_WQE, &ref, &sq->wqe);
}
