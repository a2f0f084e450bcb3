/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queue entries of an InfiniHost III Lx. A send doorbell counts WQEs; the
 * place, size and operation of each but the first are in the one before it.
 */
#include <string.h>

#include "../../../abi/mthca/mthca_wqe.h"
#include "../../send_op.h"
#include "../../wire/packet.h"
#include "../../wqe_format.h"
#include "../units.h"
#include "mthca.h"

G_STATIC_ASSERT(sizeof(struct mthca_next_seg) == RDMA_HCA_WQE_UNIT);
G_STATIC_ASSERT(sizeof(struct mthca_data_seg) == RDMA_HCA_WQE_UNIT);

static void parse_header(const uint8_t *bytes, HcaWqe *wqe, HcaWqeRef *next)
{
    struct mthca_next_seg seg;
    uint32_t nda_op, ee_nds, flags;

    memcpy(&seg, bytes, sizeof(seg));
    nda_op = GUINT32_FROM_BE(seg.nda_op);
    ee_nds = GUINT32_FROM_BE(seg.ee_nds);
    flags = GUINT32_FROM_BE(seg.flags);
    wqe->signalled = flags & MTHCA_NEXT_CQ_UPDATE;
    wqe->solicited = flags & MTHCA_NEXT_SOLICITED;
    wqe->imm_be = seg.imm;
    *next = (HcaWqeRef) { .size = 0 };
    if (wqe->ref.count > 1) {
        *next = (HcaWqeRef) {
            .offset = nda_op & MTHCA_NEXT_NDA,
            .size = RDMA_HCA_GET(MTHCA_NEXT_NDS, ee_nds) * RDMA_HCA_WQE_UNIT,
            .opcode = RDMA_HCA_GET(MTHCA_NEXT_NOP, nda_op),
            .fence = RDMA_HCA_GET(MTHCA_NEXT_FENCE, ee_nds),
            .count = wqe->ref.count - 1,
        };
    }
}

/* Without a GRH what belongs to one may be anything. */
static void parse_path(const struct mthca_ud_seg *seg, HcaPath *path)
{
    uint32_t flow = GUINT32_FROM_BE(seg->sl_tclass_flow);

    *path = (HcaPath) {
        .dlid = GUINT16_FROM_BE(seg->dlid),
        .sl = RDMA_HCA_GET(MTHCA_AV_SL, flow),
        .path_bits = seg->g_mlpath & MTHCA_AV_MLPATH,
        .grh = seg->g_mlpath & MTHCA_AV_GRH,
    };
    if (path->grh) {
        path->sgid_index = seg->gid_index;
        path->hop_limit = seg->hop_limit;
        path->tclass = RDMA_HCA_GET(MTHCA_AV_TCLASS, flow);
        path->flow_label = RDMA_HCA_GET(MTHCA_AV_FLOW, flow);
        memcpy(path->dgid.raw, seg->dgid, sizeof(seg->dgid));
    }
}

static bool parse_peer(const uint8_t *bytes, bool roce, HcaWqe *wqe)
{
    HcaUnits segments = hca_units_of(bytes, wqe);
    struct mthca_ud_seg seg;

    if (!hca_units_take(&segments, &seg, sizeof(seg))) {
        return false;
    }
    parse_path(&seg, &wqe->path);
    wqe->dqpn = GUINT32_FROM_BE(seg.dqpn) & HCA_QPN_MASK;
    wqe->qkey = GUINT32_FROM_BE(seg.qkey);
    return RDMA_HCA_GET(MTHCA_AV_PORT, GUINT32_FROM_BE(seg.port_pd)) ==
           RDMA_HCA_NUM_PORTS;
}

static bool parse_raddr(HcaUnits *segments, HcaWqe *wqe)
{
    struct mthca_raddr_seg seg;

    if (!hca_units_take(segments, &seg, sizeof(seg))) {
        return false;
    }
    wqe->raddr = hca_join_be(seg.addr_h, seg.addr_l);
    wqe->rkey = GUINT32_FROM_BE(seg.rkey);
    return true;
}

static bool parse_atomic(HcaUnits *segments, HcaWqe *wqe)
{
    struct mthca_atomic_seg seg;

    if (!hca_units_take(segments, &seg, sizeof(seg))) {
        return false;
    }
    wqe->swap_add = hca_join_be(seg.swap_add_h, seg.swap_add_l);
    wqe->compare = hca_join_be(seg.cmp_h, seg.cmp_l);
    return true;
}

/* The data stay in the send queue and are read from there. */
static bool parse_inline(HcaUnits *segments, uint32_t lkey, HcaWqe *wqe)
{
    uint32_t header;

    hca_units_take(segments, &header, sizeof(header));
    header = GUINT32_FROM_BE(header);
    return hca_send_op(wqe->ref.opcode)->transfer != HCA_TRANSFER_RESPONSE &&
           hca_units_inline(segments, RDMA_HCA_GET(MTHCA_INLINE_LENGTH, header),
                            lkey, wqe);
}

static bool parse_entry(const void *bytes, HcaSge *sge)
{
    struct mthca_data_seg seg;

    memcpy(&seg, bytes, sizeof(seg));
    *sge = (HcaSge) {
        .va = hca_join_be(seg.addr_h, seg.addr_l),
        .lkey = GUINT32_FROM_BE(seg.lkey),
        .len = GUINT32_FROM_BE(seg.byte_cnt),
    };
    return !(sge->len & MTHCA_INLINE_SEG);
}

static bool parse_message(HcaUnits *segments, uint32_t lkey, HcaWqe *wqe)
{
    uint32_t first;

    if (segments->left < RDMA_HCA_WQE_UNIT) {
        return true;
    }
    memcpy(&first, segments->at, sizeof(first));
    return GUINT32_FROM_BE(first) & MTHCA_INLINE_SEG
               ? parse_inline(segments, lkey, wqe)
               : hca_units_entries(segments, parse_entry, wqe);
}

/* The engine can do more than this interface has words for. */
#define KNOWN                                                                  \
    (1u << HCA_OP_SEND | 1u << HCA_OP_SEND_IMM | 1u << HCA_OP_RDMA_WRITE |     \
     1u << HCA_OP_RDMA_WRITE_IMM | 1u << HCA_OP_RDMA_READ |                    \
     1u << HCA_OP_ATOMIC_CS | 1u << HCA_OP_ATOMIC_FA)

static bool parse_units(const uint8_t *bytes, HcaService service, uint32_t lkey,
                        HcaWqe *wqe)
{
    const HcaSendOp *op = hca_send_op(wqe->ref.opcode);
    HcaUnits segments = hca_units_of(bytes, wqe);

    if (service == HCA_SERVICE_UD) {
        hca_units_skip(&segments, sizeof(struct mthca_ud_seg));
    }
    return (KNOWN >> wqe->ref.opcode & 1) &&
           (!op->remote || parse_raddr(&segments, wqe)) &&
           (!op->atomic || parse_atomic(&segments, wqe)) &&
           parse_message(&segments, lkey, wqe);
}

/*
 * Entries, the first of which is of the headers, to the end or to the place for
 * an ICRC, which is the only data that can be in such a WQE itself.
 */
static bool parse_special(const uint8_t *bytes, HcaWqe *wqe, HcaSge *headers)
{
    HcaUnits segments = hca_units_of(bytes, wqe);
    uint8_t unit[RDMA_HCA_WQE_UNIT];
    HcaSge sge;

    if (!hca_units_take(&segments, unit, sizeof(unit)) ||
        !parse_entry(unit, headers)) {
        return false;
    }
    while (hca_units_take(&segments, unit, sizeof(unit)) &&
           parse_entry(unit, &sge)) {
        if (wqe->nsge == RDMA_HCA_MAX_SGE) {
            return false;
        }
        wqe->sge[wqe->nsge] = sge;
        wqe->nsge += sge.len != 0;
    }
    return true;
}

/* There is always a count of what is posted. */
static HcaRecvSlot recv_slot(const uint8_t *slot)
{
    return HCA_SLOT_EMPTY;
}

/* Of a shared queue: it is written when a WQE is put behind this one. */
static uint32_t recv_link(const uint8_t *slot)
{
    struct mthca_next_seg seg;

    memcpy(&seg, slot, sizeof(seg));
    return GUINT32_FROM_BE(seg.nda_op) & MTHCA_NEXT_NDA;
}

/*
 * Entries up to the L_Key that ends them, or to the slot's end. What tells of a
 * shared queue's WQE is its place.
 */
static bool parse_recv(const uint8_t *slot, uint32_t size, HcaRecvWqe *wqe)
{
    struct mthca_data_seg seg;

    wqe->tag = wqe->offset;
    for (uint32_t at = sizeof(struct mthca_next_seg); at < size;
         at += sizeof(seg)) {
        memcpy(&seg, slot + at, sizeof(seg));
        if (GUINT32_FROM_BE(seg.lkey) == MTHCA_INVAL_LKEY) {
            return true;
        }
        if (wqe->nsge == RDMA_HCA_MAX_SGE ||
            !parse_entry(slot + at, &wqe->sge[wqe->nsge])) {
            return false;
        }
        wqe->nsge += wqe->sge[wqe->nsge].len != 0;
    }
    return true;
}

const HcaWqeFormat hca_mthca_wqe_format = {
    .parse_header = parse_header,
    .parse_peer = parse_peer,
    .parse_units = parse_units,
    .parse_special = parse_special,
    .recv_slot = recv_slot,
    .parse_recv = parse_recv,
    .recv_link = recv_link,
};
