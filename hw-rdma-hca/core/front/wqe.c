/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work queue entries of the card's own interface (interface document 3.4). */
#include <string.h>

#include <glib.h>

#include "../../abi/rdma_hca_cxt.h"
#include "../../abi/rdma_hca_regs.h"
#include "../../abi/rdma_hca_wqe.h"
#include "../send_op.h"
#include "../wire/packet.h"
#include "../wqe_format.h"
#include "format.h"
#include "path.h"
#include "units.h"
#include "words.h"

G_STATIC_ASSERT(sizeof(struct rdma_hca_next_unit) == RDMA_HCA_WQE_UNIT);
G_STATIC_ASSERT(sizeof(struct rdma_hca_data_unit) == RDMA_HCA_WQE_UNIT);

/* Send WQEs */

/* NEXT_SEG: about this WQE, and the link to the next one. */
static void parse_header(const uint8_t *bytes, HcaWqe *wqe, HcaWqeRef *next)
{
    struct rdma_hca_next_unit unit;
    uint32_t nda_nop, nee_nds, flags;

    memcpy(&unit, bytes, sizeof(unit));
    nda_nop = GUINT32_FROM_LE(unit.nda_nop);
    nee_nds = GUINT32_FROM_LE(unit.nee_nds);
    flags = GUINT32_FROM_LE(unit.flags);
    wqe->signalled = flags & RDMA_HCA_WQE_CQ_UPDATE;
    wqe->solicited = flags & RDMA_HCA_WQE_SOLICITED;
    wqe->imm_be = unit.imm_data;
    if (hca_send_op(wqe->ref.opcode)->invalidates) {
        wqe->rkey = GUINT32_FROM_LE(unit.inv_rkey);
    }
    *next = (HcaWqeRef) {
        .offset = RDMA_HCA_GET(RDMA_HCA_NEXT_NDA, nda_nop) * RDMA_HCA_WQE_ALIGN,
        .size = RDMA_HCA_GET(RDMA_HCA_NEXT_NDS, nee_nds) * RDMA_HCA_WQE_UNIT,
        .opcode = RDMA_HCA_GET(RDMA_HCA_NEXT_NOP, nda_nop),
        .fence = RDMA_HCA_GET(RDMA_HCA_NEXT_FENCE, nee_nds),
    };
    if (nee_nds & RDMA_HCA_NEXT_DBD) {
        next->size = 0; /* it has a doorbell of its own */
    }
}

/* The path of a UD unit; false: of a port that there is not. */
static bool parse_path(bool roce, const struct rdma_hca_ud_unit *unit,
                       HcaPath *path)
{
    uint32_t port = GUINT32_FROM_LE(unit->port);
    uint32_t flow = GUINT32_FROM_LE(unit->flow);
    bool grh = RDMA_HCA_GET(RDMA_HCA_UD_GRH, port);
    HcaFrontAddresses addresses = {
        .low = GUINT32_FROM_LE(unit->dlid_slid),
        .smac_h = GUINT32_FROM_LE(unit->smac_h),
        .dmac_h = GUINT32_FROM_LE(grh ? unit->dmac_h2 : unit->dmac_h),
        .sip = GUINT32_FROM_LE(unit->sip),
        .dip = GUINT32_FROM_LE(unit->dip),
        .dgid = unit->dgid,
    };

    *path = (HcaPath) {
        .sl = RDMA_HCA_GET(RDMA_HCA_UD_SL, port),
        .path_bits = RDMA_HCA_GET(RDMA_HCA_UD_PATH_BITS, addresses.low),
        .grh = grh,
        .pkey_index = RDMA_HCA_GET(RDMA_HCA_UD_PKEY_INDEX,
                                   GUINT32_FROM_LE(unit->pkey_index)),
        .sgid_index = RDMA_HCA_GET(RDMA_HCA_UD_SGID_INDEX, port),
        .hop_limit = RDMA_HCA_GET(RDMA_HCA_UD_HOP_LIMIT, port),
        .tclass = RDMA_HCA_GET(RDMA_HCA_QPC_TCLASS, flow),
        .flow_label = RDMA_HCA_GET(RDMA_HCA_QPC_FLOW_LABEL, flow),
    };
    hca_front_path(path, roce, &addresses);
    return RDMA_HCA_GET(RDMA_HCA_UD_PORT, port) == RDMA_HCA_NUM_PORTS;
}

/* UD_SEG */
static bool parse_peer(const uint8_t *bytes, bool roce, HcaWqe *wqe)
{
    HcaUnits units = hca_units_of(bytes, wqe);
    struct rdma_hca_ud_unit unit;

    if (!hca_units_take(&units, &unit, sizeof(unit)) ||
        !parse_path(roce, &unit, &wqe->path)) {
        return false;
    }
    wqe->dqpn = GUINT32_FROM_LE(unit.dqpn) & HCA_QPN_MASK;
    wqe->qkey = GUINT32_FROM_LE(unit.qkey);
    return true;
}

static bool parse_xrc(HcaUnits *units, HcaWqe *wqe)
{
    struct rdma_hca_xrc_unit unit;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    wqe->srqn = RDMA_HCA_GET(RDMA_HCA_XRC_SRQN, GUINT32_FROM_LE(unit.srqn));
    return true;
}

/* ADDR_SEG */
static bool parse_raddr(HcaUnits *units, HcaWqe *wqe)
{
    struct rdma_hca_raddr_unit unit;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    wqe->raddr = hca_join_le(unit.raddr_h, unit.raddr_l);
    wqe->rkey = GUINT32_FROM_LE(unit.rkey);
    return true;
}

/* ATOMIC_SEG */
static bool parse_atomic(HcaUnits *units, HcaWqe *wqe)
{
    struct rdma_hca_atomic_unit unit;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    wqe->swap_add = hca_join_le(unit.swap_add_h, unit.swap_add_l);
    wqe->compare = hca_join_le(unit.cmp_h, unit.cmp_l);
    return true;
}

/* What there is no such type or level of is senseless. */
static bool parse_flush(HcaUnits *units, HcaWqe *wqe)
{
    struct rdma_hca_flush_unit unit;
    uint32_t types, level;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    types = RDMA_HCA_GET(RDMA_HCA_FLUSH_TYPE, GUINT32_FROM_LE(unit.type_level));
    level = RDMA_HCA_GET(RDMA_HCA_FLUSH_LEVEL,
                         GUINT32_FROM_LE(unit.type_level));
    wqe->feth = HCA_FETH(types, level);
    wqe->flush_len = GUINT32_FROM_LE(unit.length);
    return hca_flush_is_known(types, level);
}

/* INLINE_SEG: the data stay in the send queue and are read from there. */
static bool parse_inline(HcaUnits *units, uint32_t lkey, HcaWqe *wqe)
{
    uint32_t header;

    hca_units_take(units, &header, sizeof(header));
    header = GUINT32_FROM_LE(header);
    return hca_send_op(wqe->ref.opcode)->transfer != HCA_TRANSFER_RESPONSE &&
           hca_units_inline(units, RDMA_HCA_GET(RDMA_HCA_INLINE_LENGTH, header),
                            lkey, wqe);
}

/* DATA_SEG, FWD_DATA_SEG */
static bool parse_entry(const void *bytes, HcaSge *sge)
{
    struct rdma_hca_data_unit unit;

    memcpy(&unit, bytes, sizeof(unit));
    *sge = (HcaSge) {
        .va = hca_join_le(unit.addr_h, unit.addr_l),
        .lkey = GUINT32_FROM_LE(unit.lkey),
        .len = GUINT32_FROM_LE(unit.byte_cnt),
    };
    return sge->len <= RDMA_HCA_MAX_BYTE_CNT;
}

/* JUDGE: data in place, or entries that say where they are. */
static bool parse_message(HcaUnits *units, uint32_t lkey, HcaWqe *wqe)
{
    uint32_t first;

    if (units->left < RDMA_HCA_WQE_UNIT) {
        return true;
    }
    memcpy(&first, units->at, sizeof(first));
    return GUINT32_FROM_LE(first) > RDMA_HCA_MAX_BYTE_CNT
               ? parse_inline(units, lkey, wqe)
               : hca_units_entries(units, parse_entry, wqe);
}

/* HcaUnits of memory management */

static bool parse_fast_reg(HcaUnits *units, HcaMemOp *op)
{
    struct rdma_hca_fast_reg_unit unit;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    *op = (HcaMemOp) {
        .key = GUINT32_FROM_LE(unit.key),
        .access = GUINT32_FROM_LE(unit.access),
        .start = hca_join_le(unit.start_h, unit.start_l),
        .length = hca_join_le(unit.length_h, unit.length_l),
        .list = hca_join_le(unit.list_h, unit.list_l),
        .entries = GUINT32_FROM_LE(unit.entries),
        .page_shift = GUINT32_FROM_LE(unit.page_size),
    };
    return true;
}

static bool parse_bind(HcaUnits *units, HcaMemOp *op)
{
    struct rdma_hca_bind_unit unit;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    *op = (HcaMemOp) {
        .key = GUINT32_FROM_LE(unit.rkey),
        .access = GUINT32_FROM_LE(unit.access),
        .start = hca_join_le(unit.addr_h, unit.addr_l),
        .length = hca_join_le(unit.length_h, unit.length_l),
        .type = GUINT32_FROM_LE(unit.type),
        .lkey = GUINT32_FROM_LE(unit.lkey),
    };
    return true;
}

static bool parse_inv(HcaUnits *units, HcaMemOp *op)
{
    struct rdma_hca_inv_unit unit;

    if (!hca_units_take(units, &unit, sizeof(unit))) {
        return false;
    }
    *op = (HcaMemOp) { .key = GUINT32_FROM_LE(unit.key) };
    return true;
}

static bool (*const parse_mem[HCA_NMEM_OPS])(HcaUnits *, HcaMemOp *) = {
    [HCA_MEM_FAST_REG] = parse_fast_reg,
    [HCA_MEM_BIND] = parse_bind,
    [HCA_MEM_INVALIDATE] = parse_inv,
};

/* In the order of figures 3-4-1 and 3-4-2. */
static bool parse_units(const uint8_t *bytes, HcaService service, uint32_t lkey,
                        HcaWqe *wqe)
{
    const HcaSendOp *op = hca_send_op(wqe->ref.opcode);
    HcaUnits units = hca_units_of(bytes, wqe);

    if (op->mem) {
        return parse_mem[op->mem](&units, &wqe->mem);
    }
    if (service == HCA_SERVICE_UD) {
        hca_units_skip(&units, sizeof(struct rdma_hca_ud_unit));
    }
    return (service != HCA_SERVICE_XRC_INI || parse_xrc(&units, wqe)) &&
           (!op->remote || parse_raddr(&units, wqe)) &&
           (!op->atomic || parse_atomic(&units, wqe)) &&
           (op->flush ? parse_flush(&units, wqe)
                      : parse_message(&units, lkey, wqe));
}

/* Receive WQEs */

static bool is_zero(const uint8_t *unit)
{
    static const uint8_t zero[RDMA_HCA_WQE_UNIT];

    return !memcmp(unit, zero, sizeof(zero));
}

/* Table 4.5 of the engine document. */
static HcaRecvSlot recv_slot(const uint8_t *slot)
{
    struct rdma_hca_next_unit next;

    if (is_zero(slot)) {
        return HCA_SLOT_EMPTY;
    }
    memcpy(&next, slot, sizeof(next));
    return RDMA_HCA_GET(RDMA_HCA_NEXT_NDS, GUINT32_FROM_LE(next.nee_nds))
               ? HCA_SLOT_WQE
               : HCA_SLOT_LAST;
}

/* The tag; entries from next_unit to the all-zero unit, or the slot's end. */
static bool parse_recv(const uint8_t *slot, uint32_t size, HcaRecvWqe *wqe)
{
    struct rdma_hca_next_unit next;

    memcpy(&next, slot, sizeof(next));
    wqe->tag = GUINT32_FROM_LE(next.tag);
    for (uint32_t at = sizeof(struct rdma_hca_next_unit); at < size;
         at += RDMA_HCA_WQE_UNIT) {
        if (is_zero(slot + at)) {
            return true;
        }
        if (wqe->nsge == RDMA_HCA_MAX_SGE ||
            !parse_entry(slot + at, &wqe->sge[wqe->nsge])) {
            return false;
        }
        wqe->nsge++;
    }
    return true;
}

const HcaWqeFormat hca_wqe_format = {
    .parse_header = parse_header,
    .parse_peer = parse_peer,
    .parse_units = parse_units,
    .recv_slot = recv_slot,
    .parse_recv = parse_recv,
};
