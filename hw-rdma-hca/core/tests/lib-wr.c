/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver-parts.h"

#include <string.h>

unsigned qp_send_room(const Qp *qp)
{
    return qp->sq.entries - (qp->sq.head - qp->sq.tail);
}

static bool has_raddr(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_RDMA_WRITE ||
           opcode == RDMA_HCA_OPCODE_RDMA_WRITE_IMM ||
           opcode == RDMA_HCA_OPCODE_RDMA_READ ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_WRITE ||
           opcode == RDMA_HCA_OPCODE_FLUSH ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_CS ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_FA;
}

bool wr_is_atomic(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_ATOMIC_CS ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_FA;
}

bool wr_is_of_eight(uint8_t opcode)
{
    return wr_is_atomic(opcode) || opcode == RDMA_HCA_OPCODE_ATOMIC_WRITE;
}

bool wr_is_send(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_SEND ||
           opcode == RDMA_HCA_OPCODE_SEND_IMM ||
           opcode == RDMA_HCA_OPCODE_SEND_INV;
}

bool wr_has_imm(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_SEND_IMM ||
           opcode == RDMA_HCA_OPCODE_RDMA_WRITE_IMM;
}

bool wr_takes_receive(uint8_t opcode)
{
    return wr_is_send(opcode) || wr_has_imm(opcode);
}

static void put_sge(GByteArray *wqe, const Sge *sge)
{
    struct rdma_hca_data_unit unit = {
        .byte_cnt = GUINT32_TO_LE(sge->len),
        .lkey = GUINT32_TO_LE(sge->lkey),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(sge->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(sge->va)),
    };

    g_byte_array_append(wqe, (void *)&unit, sizeof(unit));
}

void driver_gid(const Driver *drv, uint8_t gid[16])
{
    const uint64_t half[2] = {
        GUINT64_TO_BE(UINT64_C(0xfe80000000000000)),
        GUINT64_TO_BE(drv->host->config.guid),
    };

    memcpy(gid, half, sizeof(half));
}

static void put_roce_ud(struct rdma_hca_ud_unit *unit, const UdAddress *ud)
{
    const RocePath *path = &ud->roce;
    uint32_t low = RDMA_HCA_PREP(RDMA_HCA_UD_DLID, mac_low(path->dmac));

    if (path->document) {
        low |= RDMA_HCA_PREP(RDMA_HCA_UD_SLID, mac_low(path->smac));
        unit->smac_h = GUINT32_TO_LE(mac_high(path->smac));
        unit->dmac_h = GUINT32_TO_LE(mac_high(path->dmac));
        unit->sip = GUINT32_TO_LE(path->sip);
        unit->dip = GUINT32_TO_LE(path->dip);
    } else {
        memcpy(unit->dgid, ud->dgid, sizeof(unit->dgid));
        unit->dmac_h2 = GUINT32_TO_LE(mac_high(path->dmac));
    }
    unit->dlid_slid = GUINT32_TO_LE(low);
}

static void put_ud(const Driver *drv, GByteArray *wqe, const UdAddress *ud)
{
    struct rdma_hca_ud_unit unit = {
        .port = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_UD_PORT, 1) |
            RDMA_HCA_PREP(RDMA_HCA_UD_SL, ud->sl) |
            RDMA_HCA_PREP(RDMA_HCA_UD_HOP_LIMIT, hop_limit(&ud->roce)) |
            RDMA_HCA_PREP(RDMA_HCA_UD_SGID_INDEX, ud->roce.sgid_index) |
            RDMA_HCA_PREP(RDMA_HCA_UD_GRH, ud->grh)),
        .flow = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_TCLASS, ud->tclass) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_FLOW_LABEL, ud->roce.flow_label)),
        .dqpn = GUINT32_TO_LE(ud->dqpn),
        .qkey = GUINT32_TO_LE(ud->qkey),
    };

    if (drv->roce) {
        put_roce_ud(&unit, ud);
    } else {
        unit.dlid_slid = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_UD_DLID, ud->dlid) |
            RDMA_HCA_PREP(RDMA_HCA_UD_PATH_BITS, ud->path_bits));
        unit.pkey_index = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_UD_PKEY_INDEX, ud->pkey_index));
        memcpy(unit.dgid, ud->dgid, sizeof(unit.dgid));
    }
    g_byte_array_append(wqe, (void *)&unit, sizeof(unit));
}

static void put_inline(GByteArray *wqe, const SendWr *wr)
{
    uint32_t header = GUINT32_TO_LE(RDMA_HCA_INLINE | wr->inline_len);
    static const uint8_t zero[RDMA_HCA_WQE_UNIT];

    if (!wr->inline_len) {
        return;
    }
    g_byte_array_append(wqe, (void *)&header, sizeof(header));
    g_byte_array_append(wqe, wr->inline_data, wr->inline_len);
    if (wqe->len % RDMA_HCA_WQE_UNIT) {
        g_byte_array_append(wqe, zero,
                            RDMA_HCA_WQE_UNIT - wqe->len % RDMA_HCA_WQE_UNIT);
    }
}

/* All units of a send WQE; its next_unit has no link yet. */
static GByteArray *build_send(const Driver *drv, const SendWr *wr)
{
    GByteArray *wqe = g_byte_array_new();
    struct rdma_hca_next_unit next = { .imm_data = wr->imm_be };
    uint32_t flags = 0;

    flags |= wr->flags & SEND_SIGNALED ? RDMA_HCA_WQE_CQ_UPDATE : 0;
    flags |= wr->flags & SEND_SOLICITED ? RDMA_HCA_WQE_SOLICITED : 0;
    next.flags = GUINT32_TO_LE(flags);
    if (wr->opcode == RDMA_HCA_OPCODE_SEND_INV) {
        next.inv_rkey = GUINT32_TO_LE(wr->rkey);
    }
    g_byte_array_append(wqe, (void *)&next, sizeof(next));
    g_byte_array_append(wqe, wr->unit, wr->unit_size);
    if (wr->ud) {
        put_ud(drv, wqe, wr->ud);
    }
    if (wr->xrc) {
        struct rdma_hca_xrc_unit xrc = { .srqn = GUINT32_TO_LE(wr->srqn) };

        g_byte_array_append(wqe, (void *)&xrc, sizeof(xrc));
    }
    if (has_raddr(wr->opcode)) {
        struct rdma_hca_raddr_unit raddr = {
            .raddr_l = GUINT32_TO_LE(RDMA_HCA_LO32(wr->raddr)),
            .raddr_h = GUINT32_TO_LE(RDMA_HCA_HI32(wr->raddr)),
            .rkey = GUINT32_TO_LE(wr->rkey),
        };

        g_byte_array_append(wqe, (void *)&raddr, sizeof(raddr));
    }
    if (wr_is_atomic(wr->opcode)) {
        struct rdma_hca_atomic_unit atomic = {
            .swap_add_l = GUINT32_TO_LE(RDMA_HCA_LO32(wr->swap_add)),
            .swap_add_h = GUINT32_TO_LE(RDMA_HCA_HI32(wr->swap_add)),
            .cmp_l = GUINT32_TO_LE(RDMA_HCA_LO32(wr->compare)),
            .cmp_h = GUINT32_TO_LE(RDMA_HCA_HI32(wr->compare)),
        };

        g_byte_array_append(wqe, (void *)&atomic, sizeof(atomic));
    }
    if (wr->opcode == RDMA_HCA_OPCODE_FLUSH) {
        struct rdma_hca_flush_unit flush = {
            .length = GUINT32_TO_LE(wr->flush_len),
            .type_level = GUINT32_TO_LE(wr->flush),
        };

        g_byte_array_append(wqe, (void *)&flush, sizeof(flush));
    }
    if (wr->flags & SEND_INLINE) {
        put_inline(wqe, wr);
    } else {
        for (unsigned i = 0; i < wr->nsge; i++) {
            put_sge(wqe, &wr->sge[i]);
        }
    }
    return wqe;
}

/* Fill in what a next_unit says about the WQE that follows it. */
static void link_next(GByteArray *wqe, uint32_t offset, const SendWr *next,
                      uint32_t size)
{
    struct rdma_hca_next_unit *unit = (void *)wqe->data;

    unit->nda_nop = GUINT32_TO_LE(
        RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA, offset / RDMA_HCA_WQE_ALIGN) |
        RDMA_HCA_PREP(RDMA_HCA_NEXT_NOP, next->opcode));
    unit->nee_nds = GUINT32_TO_LE(
        RDMA_HCA_PREP(RDMA_HCA_NEXT_NDS, size / RDMA_HCA_WQE_UNIT) |
        (next->flags & SEND_FENCE ? RDMA_HCA_NEXT_FENCE : 0));
}

static uint32_t slot_offset(const Ring *ring, uint32_t index)
{
    return (index & (ring->entries - 1)) << ring->log_entry;
}

bool qp_write_send(Qp *qp, const SendWr *wr, unsigned n, uint32_t *low,
                   uint32_t *high)
{
    Ring *ring = &qp->sq;
    GByteArray *wqe, *next;

    if (n == 0 || n > qp_send_room(qp)) {
        return false;
    }
    wqe = build_send(qp->drv, wr);
    *low = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD,
                         slot_offset(ring, ring->head) / RDMA_HCA_WQE_UNIT) |
           (wr->flags & SEND_FENCE ? RDMA_HCA_SEND_DB_FENCE : 0) |
           RDMA_HCA_PREP(RDMA_HCA_SEND_DB_OPCODE, wr->opcode);
    *high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) |
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SIZE, wqe->len / RDMA_HCA_WQE_UNIT);
    for (unsigned i = 0; i < n; i++, wqe = next) {
        uint32_t index = ring->head++;

        next = i + 1 < n ? build_send(qp->drv, &wr[i + 1]) : NULL;
        if (next) {
            link_next(wqe, slot_offset(ring, ring->head), &wr[i + 1],
                      next->len);
        }
        g_assert_cmpuint(wqe->len, <=, 1u << ring->log_entry);
        g_assert_cmpuint(wqe->len, <=, RDMA_HCA_MAX_SEND_WQE_SIZE);
        ring->wr_id[index & (ring->entries - 1)] = wr[i].wr_id;
        mr_write(ring->mr, slot_offset(ring, index), wqe->data, wqe->len);
        g_byte_array_unref(wqe);
    }
    return true;
}

void qp_ring(Qp *qp, uint32_t low, uint32_t high)
{
    uint32_t at = qp->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_SEND_DB;

    /* Both ways of writing a doorbell have to work. */
    if (qp->qpn & 1) {
        host_uar_write64(qp->drv->host, at, (uint64_t)high << 32 | low);
    } else {
        host_uar_write32(qp->drv->host, at, low);
        host_uar_write32(qp->drv->host, at + 4, high);
    }
}

bool qp_post_send(Qp *qp, const SendWr *wr, unsigned n)
{
    uint32_t low, high;

    if (!qp_write_send(qp, wr, n, &low, &high)) {
        return false;
    }
    qp_ring(qp, low, high);
    return true;
}

GByteArray *build_recv(const RecvWr *wr, uint32_t size, uint32_t next,
                       uint32_t tag)
{
    static const uint8_t zero[RDMA_HCA_WQE_UNIT];
    GByteArray *wqe = g_byte_array_new();
    struct rdma_hca_next_unit unit = {
        .nda_nop = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA, next / RDMA_HCA_WQE_ALIGN)),
        .nee_nds = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_NEXT_NDS, size / RDMA_HCA_WQE_UNIT)),
        .flags = GUINT32_TO_LE(RDMA_HCA_WQE_CQ_UPDATE),
        .tag = GUINT32_TO_LE(tag),
    };

    g_byte_array_append(wqe, (void *)&unit, sizeof(unit));
    for (unsigned i = 0; i < wr->nsge; i++) {
        /* An empty entry might look like the end of the list. */
        if (wr->sge[i].len) {
            put_sge(wqe, &wr->sge[i]);
        }
    }
    g_byte_array_append(wqe, zero, sizeof(zero));
    g_assert_cmpuint(wqe->len, <=, size);
    return wqe;
}

static void write_recv(Qp *qp, const RecvWr *wr)
{
    Ring *ring = &qp->rq;
    uint32_t index = ring->head++;
    GByteArray *wqe = build_recv(wr, 1u << ring->log_entry,
                                 slot_offset(ring, ring->head), 0);

    ring->wr_id[index & (ring->entries - 1)] = wr->wr_id;
    mr_write(ring->mr, slot_offset(ring, index), wqe->data, wqe->len);
    g_byte_array_unref(wqe);
}

bool qp_post_recv(Qp *qp, const RecvWr *wr, unsigned n)
{
    Ring *ring = &qp->rq;

    if (n > ring->entries - (ring->head - ring->tail)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        write_recv(qp, &wr[i]);
    }
    host_write_le32(qp->drv->host, qp->rq_record, ring->head & 0xffff);
    return true;
}
