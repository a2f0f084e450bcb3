/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver-parts.h"

#include <string.h>

/* Half of the queues begin somewhere inside their region. */
static Mr *cq_buffer(Driver *drv, uint32_t cqn, uint64_t start,
                     unsigned log_size)
{
    return mr_new(drv, drv->kernel_pd, UINT64_C(0x5000000000) + cqn * 0x100000,
                  start + ((uint64_t)RDMA_HCA_CQE_SIZE << log_size),
                  RDMA_HCA_ACCESS_LOCAL_WRITE);
}

/* The number freed last is used first. */
static uint32_t cqn_alloc(Driver *drv)
{
    GArray *free = drv->free_cqns;
    uint32_t cqn;

    if (!free->len) {
        return drv->next_cqn++;
    }
    cqn = g_array_index(free, uint32_t, free->len - 1);
    g_array_set_size(free, free->len - 1);
    return cqn;
}

Cq *cq_new(Driver *drv, unsigned log_size, uint32_t uar)
{
    Cq *cq = g_new0(Cq, 1);
    struct rdma_hca_cqc cqc;

    cq->drv = drv;
    cq->cqn = cqn_alloc(drv);
    cq->uar = uar;
    cq->log_size = log_size;
    cq->start = cq->cqn & 1 ? HOST_PAGE_SIZE : 0;
    cq->ci_record = cq->cqn & 2 ? record_new(drv) : 0;
    cq->mr = cq_buffer(drv, cq->cqn, cq->start, log_size);
    give_entries(cq->mr, cq->start, log_size, RDMA_HCA_CQE_SIZE);
    cqc = good_cqc(drv->kernel_pd, cq->mr->key, cq->start, log_size, uar,
                   drv->eq[EQ_COMP].eqn);
    cqc.cqn = GUINT32_TO_BE(cq->cqn);
    cqc.ci_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(cq->ci_record));
    cqc.ci_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(cq->ci_record));
    driver_must(driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc),
                              cq->cqn, 0));
    g_ptr_array_add(drv->cqs, cq);
    return cq;
}

uint8_t cq_destroy(Cq *cq)
{
    uint8_t status = driver_cmd(cq->drv, RDMA_HCA_CMD_HW2SW_CQ, 0, cq->cqn, 0,
                                0, NULL);

    if (status == RDMA_HCA_STAT_OK) {
        driver_must(mr_deregister(cq->mr));
        g_array_append_val(cq->drv->free_cqns, cq->cqn);
        g_ptr_array_remove(cq->drv->cqs, cq);
    }
    return status;
}

static void cq_doorbell(Cq *cq, uint32_t cmd)
{
    uint32_t at = cq->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB;
    uint32_t low = RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, cmd) |
                   RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CQN, cq->cqn);

    /* Both ways of writing a doorbell have to work. */
    if (cq->cqn & 1) {
        host_uar_write64(cq->drv->host, at, (uint64_t)cq->ci << 32 | low);
    } else {
        host_uar_write32(cq->drv->host, at, low);
        host_uar_write32(cq->drv->host, at + 4, cq->ci);
    }
}

void cq_arm(Cq *cq, bool solicited_only)
{
    cq_doorbell(cq, solicited_only ? RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED
                                   : RDMA_HCA_CQ_DB_CMD_ARM_NEXT);
}

void cq_update_ci(Cq *cq)
{
    if (cq->ci_record) {
        host_write_le32(cq->drv->host, cq->ci_record, cq->ci);
    } else {
        cq_doorbell(cq, RDMA_HCA_CQ_DB_CMD_SET_CI);
    }
}

static uint64_t cqe_at(const Cq *cq, uint32_t index)
{
    return cq->start +
           ring_slot(cq->mr, cq->log_size, index, RDMA_HCA_CQE_SIZE);
}

static bool cqe_read(Cq *cq, uint32_t index, struct rdma_hca_cqe *cqe)
{
    mr_read(cq->mr, cqe_at(cq, index), cqe, sizeof(*cqe));
    return !(RDMA_HCA_GET(RDMA_HCA_CQE_OWNER, GUINT32_FROM_LE(cqe->ctrl)) &
             RDMA_HCA_OWNER_HW);
}

/* An entry keeps its index, and with it its place in each ring. */
static void move_cqes(Cq *cq, const Cq *old)
{
    for (uint32_t i = cq->ci; i != cq->ci + (1u << old->log_size); i++) {
        struct rdma_hca_cqe cqe;

        mr_read(old->mr, cqe_at(old, i), &cqe, sizeof(cqe));
        if (RDMA_HCA_GET(RDMA_HCA_CQE_OWNER, GUINT32_FROM_LE(cqe.ctrl)) &
            RDMA_HCA_OWNER_HW) {
            break;
        }
        mr_write(cq->mr, cqe_at(cq, i), &cqe, sizeof(cqe));
    }
}

uint8_t cq_resize(Cq *cq, unsigned log_size)
{
    Cq old = *cq;
    Mr *mr = cq_buffer(cq->drv, cq->cqn, cq->start, log_size);
    struct rdma_hca_resize_cq resize = {
        .logsize = PREP_BE(RDMA_HCA_RESIZE_CQ_LOGSIZE, log_size),
        .lkey = GUINT32_TO_BE(mr->key),
    };
    uint8_t status;

    give_entries(mr, cq->start, log_size, RDMA_HCA_CQE_SIZE);
    cq_update_ci(cq);
    status = driver_cmd_in(cq->drv, RDMA_HCA_CMD_RESIZE_CQ, &resize,
                           sizeof(resize), cq->cqn, 0);
    if (status == RDMA_HCA_STAT_OK) {
        cq->mr = mr;
        cq->log_size = log_size;
        move_cqes(cq, &old);
        driver_must(mr_deregister(old.mr));
    } else {
        driver_must(mr_deregister(mr));
    }
    return status;
}

uint8_t cq_moderate(Cq *cq, uint16_t count, uint16_t period_us)
{
    uint64_t in = RDMA_HCA_PREP(RDMA_HCA_MODERATION_COUNT, count) |
                  RDMA_HCA_PREP(RDMA_HCA_MODERATION_PERIOD, period_us);

    return driver_cmd(cq->drv, RDMA_HCA_CMD_MODIFY_CQ, in, cq->cqn, 0, 0, NULL);
}

uint8_t cq_query(Cq *cq, struct rdma_hca_cqc *cqc)
{
    return driver_cmd_out(cq->drv, RDMA_HCA_CMD_QUERY_CQ, cqc, sizeof(*cqc),
                          cq->cqn, 0);
}

static void cqe_give_back(Cq *cq, uint32_t index)
{
    const uint8_t owner = RDMA_HCA_OWNER_HW;

    mr_write(cq->mr, cqe_at(cq, index) + RDMA_HCA_CQE_SIZE - 1, &owner, 1);
}

/* The work request that ended; those before it in its queue did too. */
static uint64_t ring_complete(Ring *ring, uint32_t offset)
{
    uint32_t slot = offset >> ring->log_entry;
    uint32_t mask = ring->entries - 1;

    g_assert_cmpuint(slot, <, ring->entries);
    g_assert_cmpuint(offset & ((1u << ring->log_entry) - 1), ==, 0);
    ring->tail += ((slot - ring->tail) & mask) + 1;
    /* Never one that has not been posted, nor one twice. */
    g_assert_cmpint((int32_t)(ring->head - ring->tail), >=, 0);
    return ring->wr_id[slot];
}

/* An XRC QP may be gone, or be somebody else's. */
static uint64_t xrc_done(Cq *cq, const Wc *wc, uint32_t tag)
{
    Srq *srq = g_hash_table_lookup(cq->drv->srqs, GUINT_TO_POINTER(wc->rqpn));

    g_assert_nonnull(srq);
    g_assert_true(srq->xrc && cq == srq->cq && !wc->is_send);
    return srq_complete(srq, tag);
}

/* The work request that @wqe, its place or tag, stands for. */
static uint64_t work_done(Cq *cq, const Wc *wc, uint32_t wqe)
{
    Qp *qp = g_hash_table_lookup(cq->drv->qps, GUINT_TO_POINTER(wc->qpn));

    if (wc->xrc) {
        return xrc_done(cq, wc, wqe);
    }
    g_assert_nonnull(qp);
    g_assert_true(cq == (wc->is_send ? qp->send_cq : qp->recv_cq));
    if (!wc->is_send && qp->srq) {
        return srq_complete(qp->srq, wqe);
    }
    return ring_complete(wc->is_send ? &qp->sq : &qp->rq, wqe);
}

bool cq_poll(Cq *cq, Wc *wc)
{
    struct rdma_hca_cqe cqe;
    uint32_t ctrl, path;

    if (!cqe_read(cq, cq->ci, &cqe)) {
        return false;
    }
    cqe_give_back(cq, cq->ci);
    cq->ci++;
    cq_update_ci(cq);

    ctrl = GUINT32_FROM_LE(cqe.ctrl);
    path = GUINT32_FROM_LE(cqe.rlid_path);
    *wc = (Wc) {
        .qpn = GUINT32_FROM_LE(cqe.my_qpn),
        .is_send = RDMA_HCA_GET(RDMA_HCA_CQE_IS_SEND, ctrl),
        .opcode = RDMA_HCA_GET(RDMA_HCA_CQE_OPCODE, ctrl),
        .rqpn = GUINT32_FROM_LE(cqe.rqpn),
        .xrc = RDMA_HCA_GET(RDMA_HCA_CQE_XRC, ctrl),
        .grh = RDMA_HCA_GET(RDMA_HCA_CQE_GRH, path),
        .sl = RDMA_HCA_GET(RDMA_HCA_CQE_SL, path),
        .time = (uint64_t)RDMA_HCA_GET(RDMA_HCA_CQE_TIME_H, ctrl) << 32 |
                GUINT32_FROM_LE(cqe.time_l),
    };
    if (cq->drv->roce) {
        wc->has_vlan = RDMA_HCA_GET(RDMA_HCA_CQE_HAS_VLAN, path);
        wc->vlan = RDMA_HCA_GET(RDMA_HCA_CQE_VLAN, path);
        wc->ipv4 = RDMA_HCA_GET(RDMA_HCA_CQE_IPV4, path);
    } else {
        wc->rlid = RDMA_HCA_GET(RDMA_HCA_CQE_RLID, path);
        wc->path_bits = RDMA_HCA_GET(RDMA_HCA_CQE_MLPATH, path);
    }
    if (wc->opcode == RDMA_HCA_OPCODE_INVALID) {
        uint32_t err = GUINT32_FROM_LE(cqe.err);

        wc->syndrome = RDMA_HCA_GET(RDMA_HCA_CQE_SYNDROME, err);
        wc->vendor_err = RDMA_HCA_GET(RDMA_HCA_CQE_VENDOR_ERR, err);
        g_assert_cmphex(wc->syndrome, !=, 0);
    } else {
        wc->byte_len = GUINT32_FROM_LE(cqe.byte_cnt);
        wc->imm_be = cqe.imm;
        wc->inv_rkey = GUINT32_FROM_LE(cqe.inv_rkey);
        wc->flow_tag = GUINT32_FROM_LE(cqe.flow_tag);
        wc->pkey_index = RDMA_HCA_GET(RDMA_HCA_CQE_PKEY_INDEX,
                                      GUINT32_FROM_LE(cqe.pkey_index));
    }
    wc->wr_id = work_done(cq, wc, GUINT32_FROM_LE(cqe.wqe));
    return true;
}

typedef struct CqWait {
    Cq *cq;
    Wc *wc;
} CqWait;

static bool cq_has_one(void *opaque)
{
    CqWait *wait = opaque;

    return cq_poll(wait->cq, wait->wc);
}

bool cq_wait(Cq *cq, Wc *wc, int64_t ns)
{
    CqWait wait = { cq, wc };

    return lab_wait(cq->drv->host->lab, cq_has_one, &wait, ns);
}

/* An entry of @qpn goes unseen. XRC: it is its SRQ's. */
static bool takes_out(Cq *cq, uint32_t qpn, const struct rdma_hca_cqe *cqe)
{
    Qp *qp = g_hash_table_lookup(cq->drv->qps, GUINT_TO_POINTER(qpn));
    uint32_t ctrl = GUINT32_FROM_LE(cqe->ctrl);

    if (GUINT32_FROM_LE(cqe->my_qpn) != qpn || (ctrl & RDMA_HCA_CQE_XRC)) {
        return false;
    }
    if (qp && qp->srq && !RDMA_HCA_GET(RDMA_HCA_CQE_IS_SEND, ctrl)) {
        srq_complete(qp->srq, GUINT32_FROM_LE(cqe->wqe));
    }
    return true;
}

/* Take the entries of @qpn out, keeping the order of the others. */
void cq_clean(Cq *cq, uint32_t qpn)
{
    struct rdma_hca_cqe cqe;
    uint32_t end = cq->ci, removed = 0;

    while (end - cq->ci < 1u << cq->log_size && cqe_read(cq, end, &cqe)) {
        end++;
    }
    for (uint32_t i = end; i-- != cq->ci;) {
        cqe_read(cq, i, &cqe);
        if (takes_out(cq, qpn, &cqe)) {
            removed++;
        } else if (removed) {
            mr_write(cq->mr, cqe_at(cq, i + removed), &cqe, sizeof(cqe));
        }
    }
    for (uint32_t i = 0; i < removed; i++) {
        cqe_give_back(cq, cq->ci++);
    }
    cq_update_ci(cq);
}
