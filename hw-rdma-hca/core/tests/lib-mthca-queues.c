/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion queues, QPs and work requests; see lib-mthca.h. */
#include <string.h>

#include "../../abi/rdma_hca_sizes.h"
#include "lib-mthca.h"

#define PAGE_SHIFT 12

/* ---- completion queues ---- */

static uint64_t record_virt(const Mthca *m, uint32_t uar, uint32_t index)
{
    return m->place[MTHCA_UARC].base + (uint64_t)uar * MTHCA_UARC_SIZE +
           index * 8ull;
}

static void map_record(Mthca *m, uint32_t uar, uint32_t index)
{
    uint64_t page = record_virt(m, uar, index) >> PAGE_SHIFT;

    if (!g_hash_table_contains(m->icm, GSIZE_TO_POINTER(page))) {
        mthca_must(mthca_map(m, page << PAGE_SHIFT, host_alloc(m->host, 1), 0));
    }
}

void mthca_put_cqc(const MthcaCq *cq, uint32_t pd, uint32_t eqn,
                   struct mthca_cqc *cqc)
{
    uint64_t start = cq->on_bus ? cq->mr->page[0] : 0;

    *cqc = (struct mthca_cqc) {
        /* No TR, fired; or TR */
        .flags = GUINT32_TO_BE(cq->on_bus ? 0x00000a00 : 0x00040000),
        .start_h = GUINT32_TO_BE(start >> 32),
        .start_l = GUINT32_TO_BE((uint32_t)start),
        .logsize_usrpage = GUINT32_TO_BE(cq->log_size << 24 | cq->uar),
        .error_eqn = GUINT32_TO_BE(eqn + 1),
        .comp_eqn = GUINT32_TO_BE(eqn),
        .pd = GUINT32_TO_BE(pd),
        .lkey = GUINT32_TO_BE(cq->on_bus ? 0 : cq->mr->key),
        .cqn = GUINT32_TO_BE(cq->cqn),
        .ci_record = GUINT32_TO_BE(cq->ci_record),
        .arm_record = GUINT32_TO_BE(cq->arm_record),
    };
}

uint8_t mthca_sw2hw_cq(Mthca *m, MthcaCq *cq)
{
    struct mthca_cqc cqc;

    cq->ci = 0;
    mthca_ring_clear(m, cq->mr, cq->log_size);
    map_record(m, cq->uar, cq->ci_record);
    map_record(m, cq->uar, cq->arm_record);
    mthca_cq_consume(m, cq);
    mthca_put_cqc(cq, m->pd, m->eq[MTHCA_EQ_COMP].eqn, &cqc);
    return mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc), cq->cqn,
                        0);
}

uint8_t mthca_hw2sw_cq(Mthca *m, MthcaCq *cq)
{
    uint8_t cqc[MTHCA_CQC_SIZE];

    return mthca_cmd_out(m, RDMA_HCA_CMD_HW2SW_CQ, cqc, sizeof(cqc), cq->cqn,
                         0);
}

bool mthca_cq_take(Mthca *m, MthcaCq *cq, struct mthca_cqe *cqe)
{
    return mthca_ring_take(m, cq->mr, cq->log_size, &cq->ci, cqe);
}

void mthca_cq_consume(Mthca *m, MthcaCq *cq)
{
    uint32_t ci = GUINT32_TO_BE(cq->ci);

    host_write(m->host,
               mthca_icm_bus(m, record_virt(m, cq->uar, cq->ci_record)), &ci,
               sizeof(ci));
}

void mthca_cq_arm(Mthca *m, const MthcaCq *cq, uint32_t how, bool in_halves)
{
    uint64_t words = GUINT64_TO_BE((uint64_t)(how << 24 | cq->cqn) << 32 |
                                   cq->ci);
    uint32_t at = cq->uar * RDMA_HCA_UAR_PAGE_SIZE + MTHCA_CQ_DB;

    if (in_halves) {
        host_uar_write32(m->host, at, words);
        host_uar_write32(m->host, at + 4, words >> 32);
    } else {
        host_uar_write64(m->host, at, words);
    }
}

/* ---- queue pairs ---- */

static void set_record(Mthca *m, uint32_t uar, uint32_t index, uint32_t value)
{
    value = GUINT32_TO_BE(value);
    host_write(m->host, mthca_icm_bus(m, record_virt(m, uar, index)), &value,
               sizeof(value));
}

/* In its pages. */
static uint32_t sq_offset(const MthcaQp *qp)
{
    return qp->srq ? 0 : 1u << (qp->log_rq + qp->log_stride);
}

/* Where those begin in the region that the card knows, in its 4 GiB. */
static uint32_t base_of(const MthcaQp *qp)
{
    return qp->on_bus ? (uint32_t)qp->mr->page[0] : 0;
}

static uint32_t slot_of(const MthcaQp *qp, uint32_t index, unsigned log)
{
    return (index & ((1u << log) - 1)) << qp->log_stride;
}

static uint8_t size_stride(const MthcaQp *qp, unsigned log)
{
    return log << 3 | (qp->log_stride - 4);
}

uint8_t mthca_qp_modify(Mthca *m, const MthcaQp *qp, uint16_t op,
                        const struct mthca_qp_mailbox *box)
{
    return mthca_cmd_in(m, op, box, sizeof(*box), qp->qpn, 0);
}

/* All receive entries end at once until they are posted. */
static void clear_receives(Mthca *m, const MthcaQp *qp)
{
    const struct mthca_data_seg none = {
        .lkey = GUINT32_TO_BE(MTHCA_INVAL_LKEY),
    };

    for (uint32_t at = 0; at < sq_offset(qp); at += sizeof(none)) {
        host_write(m->host, mthca_mr_bus(qp->mr, at), &none, sizeof(none));
    }
}

uint8_t mthca_qp_to_init(Mthca *m, MthcaQp *qp)
{
    struct mthca_qp_mailbox box = {
        /* rights, P_Key, port; of QP 0 and QP 1: P_Key, Q_Key */
        .opt_param_mask = GUINT32_TO_BE(
            qp->service == MTHCA_QPC_SERVICE_MLX ? 0x30 : 0x81e),
        .qpc = {
            .flags = GUINT32_TO_BE(0x10001900 | (uint32_t)qp->service << 16),
            .rq_size_stride = qp->srq ? 0 : size_stride(qp, qp->log_rq),
            .sq_size_stride = size_stride(qp, qp->log_sq),
            .usr_page = GUINT32_TO_BE(qp->uar),
            .local_qpn = GUINT32_TO_BE(qp->qpn),
            .path.port_pkey = GUINT32_TO_BE(1u << 24),
            .pd = GUINT32_TO_BE(m->pd),
            .wqe_base = GUINT32_TO_BE(qp->on_bus ? qp->mr->page[0] >> 32 : 0),
            .wqe_lkey = GUINT32_TO_BE(qp->on_bus ? m->physical : qp->mr->key),
            .params1 = GUINT32_TO_BE(0xa9004000 | (qp->signals_all ? 8 : 0)),
            .cqn_snd = GUINT32_TO_BE(qp->send_cq->cqn),
            .snd_wqe_base = GUINT32_TO_BE(base_of(qp) + sq_offset(qp)),
            .snd_record = GUINT32_TO_BE(qp->sq_record),
            .params2 = GUINT32_TO_BE(0x00004008),
            .cqn_rcv = GUINT32_TO_BE(qp->recv_cq->cqn),
            .rcv_wqe_base = GUINT32_TO_BE(base_of(qp)),
            .rcv_record = GUINT32_TO_BE(qp->rq_record),
            .srqn = GUINT32_TO_BE(qp->srq ? 1u << 24 | qp->srq->srqn : 0),
            .qkey = GUINT32_TO_BE(qp->service == MTHCA_QPC_SERVICE_MLX
                                      ? 0x80010000
                                      : 0x11111111),
        },
    };

    qp->sq_head = qp->rq_head = 0;
    map_record(m, qp->uar, qp->sq_record);
    map_record(m, qp->uar, qp->rq_record);
    set_record(m, qp->uar, qp->sq_record, 0);
    set_record(m, qp->uar, qp->rq_record, 0);
    clear_receives(m, qp);
    return mthca_qp_modify(m, qp, RDMA_HCA_CMD_RST2INIT_QPEE, &box);
}

uint8_t mthca_qp_to_rtr(Mthca *m, MthcaQp *qp, uint16_t dlid, uint32_t dqpn)
{
    bool ud = qp->service == MTHCA_QPC_SERVICE_UD ||
              qp->service == MTHCA_QPC_SERVICE_MLX;
    struct mthca_qp_mailbox box = {
        /* rights, RNR timer, path, Reads as responder */
        .opt_param_mask = GUINT32_TO_BE(ud ? 0 : 0x2ce),
        .qpc = {
            .mtu_msgmax = ud ? 4 << 5 | 11 : 3 << 5 | 31,
            .remote_qpn = GUINT32_TO_BE(dqpn),
            .path.dlid = GUINT16_TO_BE(dlid),
            .params2 = GUINT32_TO_BE(0x0040e008), /* 4 of them; all rights */
            .rnr_nextrecvpsn = GUINT32_TO_BE(0x01000000 | qp->rq_psn),
        },
    };

    return mthca_qp_modify(m, qp, RDMA_HCA_CMD_INIT2RTR_QPEE, &box);
}

uint8_t mthca_qp_to_rts(Mthca *m, MthcaQp *qp)
{
    struct mthca_qp_mailbox box = {
        /* Reads as requester, retries, time-out */
        .opt_param_mask = GUINT32_TO_BE(0xd100),
        .qpc = {
            .path = { .rnr_retry = 7 << 5, .ack_timeout = 14 << 3 },
            .params1 = GUINT32_TO_BE(0xa947e000),
            .next_send_psn = GUINT32_TO_BE(qp->sq_psn),
        },
    };

    return mthca_qp_modify(m, qp, RDMA_HCA_CMD_RTR2RTS_QPEE, &box);
}

uint8_t mthca_qp_query(Mthca *m, const MthcaQp *qp,
                       struct mthca_qp_mailbox *box)
{
    return mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_QP, box, sizeof(*box), qp->qpn,
                         0);
}

uint8_t mthca_qp_destroy(Mthca *m, const MthcaQp *qp)
{
    struct mthca_qp_mailbox box;

    return mthca_cmd_out(m, RDMA_HCA_CMD_ERR2RST_QPEE, &box, sizeof(box),
                         qp->qpn, 2);
}

/* ---- work requests ---- */

/* A WQE in the making. */
typedef struct Wqe {
    uint8_t bytes[512];
    unsigned len;
} Wqe;

static void add(Wqe *wqe, const void *segment, size_t len)
{
    memcpy(wqe->bytes + wqe->len, segment, len);
    wqe->len += len;
}

static void add_entry(Wqe *wqe, const MthcaSge *sge)
{
    const struct mthca_data_seg seg = { GUINT32_TO_BE(sge->len),
                                        GUINT32_TO_BE(sge->lkey),
                                        GUINT32_TO_BE(sge->va >> 32),
                                        GUINT32_TO_BE((uint32_t)sge->va) };

    add(wqe, &seg, sizeof(seg));
}

static void add_address(Wqe *wqe, const MthcaWr *wr)
{
    struct mthca_ud_seg seg;

    memset(&seg, 0xee, sizeof(seg)); /* what no GRH needs is garbage */
    seg.port_pd = GUINT32_TO_BE(1u << 24);
    seg.g_mlpath = 0;
    seg.dlid = GUINT16_TO_BE(wr->dlid);
    seg.sl_tclass_flow = GUINT32_TO_BE(0x0eeeeeee);
    if (wr->dgid) {
        seg.g_mlpath = 0x80;
        seg.gid_index = 0;
        seg.hop_limit = 1;
        memcpy(seg.dgid, wr->dgid, sizeof(seg.dgid));
    }
    seg.dqpn = GUINT32_TO_BE(wr->dqpn);
    seg.qkey = GUINT32_TO_BE(wr->qkey);
    add(wqe, &seg, sizeof(seg));
}

static void add_inline(Wqe *wqe, const void *data, uint32_t len)
{
    uint32_t header = GUINT32_TO_BE(MTHCA_INLINE_SEG | len);

    add(wqe, &header, sizeof(header));
    add(wqe, data, len);
    wqe->len = (wqe->len + 15) / 16 * 16;
}

static bool is_atomic(uint8_t opcode)
{
    return opcode == HCA_OP_ATOMIC_CS || opcode == HCA_OP_ATOMIC_FA;
}

static void add_operation(Wqe *wqe, const MthcaWr *wr)
{
    const struct mthca_raddr_seg raddr = { GUINT32_TO_BE(wr->raddr >> 32),
                                           GUINT32_TO_BE((uint32_t)wr->raddr),
                                           GUINT32_TO_BE(wr->rkey), 0 };
    const struct mthca_atomic_seg atomic = {
        GUINT32_TO_BE(wr->swap_add >> 32),
        GUINT32_TO_BE((uint32_t)wr->swap_add), GUINT32_TO_BE(wr->compare >> 32),
        GUINT32_TO_BE((uint32_t)wr->compare)
    };

    if (wr->opcode != HCA_OP_SEND && wr->opcode != HCA_OP_SEND_IMM) {
        add(wqe, &raddr, sizeof(raddr));
    }
    if (is_atomic(wr->opcode)) {
        add(wqe, &atomic, sizeof(atomic));
    }
}

static uint64_t send_bus(const MthcaQp *qp, uint32_t index)
{
    return mthca_mr_bus(qp->mr, sq_offset(qp) + slot_of(qp, index, qp->log_sq));
}

/* The link to a WQE lies in the one before it, which may have been rung. */
static void link_to(Mthca *m, const MthcaQp *qp, const MthcaWr *wr,
                    unsigned size)
{
    const uint32_t link[] = {
        GUINT32_TO_BE((base_of(qp) + sq_offset(qp) +
                       slot_of(qp, qp->sq_head, qp->log_sq)) |
                      wr->opcode),
        GUINT32_TO_BE(MTHCA_NEXT_DBD | (wr->fence ? MTHCA_NEXT_FENCE : 0) |
                      size / 16),
    };

    host_write(m->host, send_bus(qp, qp->sq_head - 1), link, sizeof(link));
}

/* All but the link, which the next one's posting fills in. */
static void write_send(Mthca *m, MthcaQp *qp, const MthcaWr *wr, const Wqe *wqe)
{
    g_assert_cmpuint(wqe->len, <=, 1u << qp->log_stride);
    link_to(m, qp, wr, wqe->len);
    host_write(m->host, send_bus(qp, qp->sq_head) + 8, wqe->bytes + 8,
               wqe->len - 8);
    qp->sq_head++;
    set_record(m, qp->uar, qp->sq_record, qp->sq_head & 0xffff);
}

void mthca_post_send(Mthca *m, MthcaQp *qp, const MthcaWr *wr)
{
    Wqe wqe = { .len = 0 };
    const struct mthca_next_seg next = {
        .flags = GUINT32_TO_BE(1 | (wr->signalled ? 8 : 0) |
                               (wr->solicited ? 2 : 0)),
        .imm = GUINT32_TO_BE(wr->imm),
    };

    add(&wqe, &next, sizeof(next));
    if (qp->service == MTHCA_QPC_SERVICE_UD) {
        add_address(&wqe, wr);
    } else {
        add_operation(&wqe, wr);
    }
    if (wr->inline_data) {
        add_inline(&wqe, wr->inline_data, wr->inline_len);
    }
    for (unsigned i = 0; i < wr->nsge; i++) {
        add_entry(&wqe, &wr->sge[i]);
    }
    write_send(m, qp, wr, &wqe);
}

void mthca_post_mlx(Mthca *m, MthcaQp *qp, const MthcaSge *sge, unsigned nsge,
                    bool icrc)
{
    Wqe wqe = { .len = 0 };
    const MthcaWr wr = { .opcode = HCA_OP_SEND };
    const struct mthca_next_seg next = { .flags = GUINT32_TO_BE(8) };

    add(&wqe, &next, sizeof(next));
    for (unsigned i = 0; i < nsge; i++) {
        add_entry(&wqe, &sge[i]);
    }
    if (icrc) {
        add_inline(&wqe, "\0\0\0", 4);
    }
    write_send(m, qp, &wr, &wqe);
}

/* What the first of them is says the link to it. */
void mthca_ring_send(Mthca *m, const MthcaQp *qp, unsigned count)
{
    uint32_t first = qp->sq_head - count, link[2];
    uint32_t high, low;
    uint64_t words;

    host_read(m->host, send_bus(qp, first - 1), link, sizeof(link));
    high = count << 24 | (first & 0xffff) << 8 |
           (GUINT32_FROM_BE(link[1]) & MTHCA_NEXT_FENCE ? 1u << 5 : 0) |
           (GUINT32_FROM_BE(link[0]) & 0x1f);
    low = qp->qpn << 8 | (GUINT32_FROM_BE(link[1]) & 0x3f);
    words = GUINT64_TO_BE((uint64_t)high << 32 | low);
    host_uar_write64(m->host, qp->uar * RDMA_HCA_UAR_PAGE_SIZE + MTHCA_SEND_DB,
                     words);
}

/* Of a receive: at @bus, but for its first segment. */
static void write_entries(Mthca *m, uint64_t bus, unsigned stride,
                          const MthcaSge *sge, unsigned nsge)
{
    const struct mthca_data_seg none = {
        .lkey = GUINT32_TO_BE(MTHCA_INVAL_LKEY),
    };
    Wqe wqe = { .len = 0 };

    for (unsigned i = 0; i < nsge; i++) {
        add_entry(&wqe, &sge[i]);
    }
    if (wqe.len + 16 < stride) {
        add(&wqe, &none, sizeof(none));
    }
    host_write(m->host, bus + 16, wqe.bytes, wqe.len);
}

void mthca_post_recv(Mthca *m, MthcaQp *qp, const MthcaSge *sge, unsigned nsge)
{
    write_entries(m, mthca_mr_bus(qp->mr, slot_of(qp, qp->rq_head, qp->log_rq)),
                  1u << qp->log_stride, sge, nsge);
    qp->rq_head++;
    set_record(m, qp->uar, qp->rq_record, qp->rq_head & 0xffff);
}

/* ---- shared receive queues ---- */

static uint64_t srq_bus(const MthcaSrq *srq, uint32_t index)
{
    return mthca_mr_bus(srq->mr, (uint64_t)index << srq->log_stride);
}

static void set_link(Mthca *m, const MthcaSrq *srq, uint32_t from, uint32_t to)
{
    uint32_t link = GUINT32_TO_BE(to << srq->log_stride | 1);

    host_write(m->host, srq_bus(srq, from), &link, sizeof(link));
}

static uint32_t get_link(Mthca *m, const MthcaSrq *srq, uint32_t from)
{
    uint32_t link;

    host_read(m->host, srq_bus(srq, from), &link, sizeof(link));
    return (GUINT32_FROM_BE(link) & MTHCA_NEXT_NDA) >> srq->log_stride;
}

void mthca_put_srqc(const MthcaSrq *srq, uint32_t pd, struct mthca_srqc *srqc)
{
    *srqc = (struct mthca_srqc) {
        .state_logsize_srqn = GUINT32_TO_BE(srq->log_size << 24 | srq->srqn),
        .lkey = GUINT32_TO_BE(srq->mr->key),
        .record = GUINT32_TO_BE(srq->record),
        .logstride_usrpage = GUINT32_TO_BE((srq->log_stride - 4) << 29 |
                                           srq->uar),
        .eqn_pd = GUINT32_TO_BE(1u << 24 | pd),
    };
}

/* As ib_mthca's: all entries, the last one's link leads to the first. */
static void link_all(Mthca *m, MthcaSrq *srq)
{
    uint32_t n = 1u << srq->log_size;
    const struct mthca_data_seg none = {
        .lkey = GUINT32_TO_BE(MTHCA_INVAL_LKEY),
    };

    for (uint32_t i = 0; i < n; i++) {
        set_link(m, srq, i, i + 1 < n ? i + 1 : 0);
        host_write(m->host, srq_bus(srq, i) + 16, &none, sizeof(none));
    }
    srq->first_free = 0;
    srq->last_free = n - 1;
}

uint8_t mthca_sw2hw_srq(Mthca *m, MthcaSrq *srq)
{
    struct mthca_srqc srqc;

    srq->posted = 0;
    map_record(m, srq->uar, srq->record);
    set_record(m, srq->uar, srq->record, 0);
    link_all(m, srq);
    mthca_put_srqc(srq, m->pd, &srqc);
    return mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_SRQ, &srqc, sizeof(srqc),
                        srq->srqn, 0);
}

uint8_t mthca_hw2sw_srq(Mthca *m, const MthcaSrq *srq)
{
    struct mthca_srqc srqc;

    return mthca_cmd_out(m, RDMA_HCA_CMD_HW2SW_SRQ, &srqc, sizeof(srqc),
                         srq->srqn, 0);
}

uint8_t mthca_srq_query(Mthca *m, const MthcaSrq *srq, struct mthca_srqc *srqc)
{
    return mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_SRQ, srqc, sizeof(*srqc),
                         srq->srqn, 0);
}

uint32_t mthca_srq_post(Mthca *m, MthcaSrq *srq, const MthcaSge *sge,
                        unsigned nsge)
{
    uint32_t index = srq->first_free;

    srq->first_free = get_link(m, srq, index);
    write_entries(m, srq_bus(srq, index), 1u << srq->log_stride, sge, nsge);
    srq->posted++;
    set_record(m, srq->uar, srq->record, srq->posted & 0xffff);
    return index;
}

void mthca_srq_release(Mthca *m, MthcaSrq *srq, uint32_t index)
{
    set_link(m, srq, srq->last_free, index);
    srq->last_free = index;
}
