/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues (interface document 3.2.5, 3.3; context document 4.2.2).
 *
 * Indices count without wrapping at the queue's size, modulo 2^32. A CQ stays
 * while QPs use it. The overrun check, the consumer index in guest memory and
 * the arming that the documents leave open are as rdma_hca_regs.h and
 * rdma_hca_cxt.h say.
 */
#include "cxtmgt_int.h"

static uint32_t cq_size(const HcaCq *cq)
{
    return 1u << cq->log_size;
}

HcaCq *hca_cq_find(HcaCxtMgt *cm, uint32_t cqn)
{
    cm->counters.cqc_lookups++;
    return hca_index_ok(cm, &cm->cqc, cqn) ? cm->cqs[cqn] : NULL;
}

static uint32_t arm_to_state(HcaCqArm arm)
{
    static const uint8_t states[] = {
        [HCA_CQ_DISARMED] = RDMA_HCA_CQ_STATE_DISARMED,
        [HCA_CQ_ARMED_SOLICITED] = RDMA_HCA_CQ_STATE_ARMED_SOLICITED,
        [HCA_CQ_ARMED_NEXT] = RDMA_HCA_CQ_STATE_ARMED,
        [HCA_CQ_FIRED] = RDMA_HCA_CQ_STATE_FIRED,
    };

    return states[arm];
}

static bool state_to_arm(uint32_t state, HcaCqArm *arm)
{
    switch (state) {
    case RDMA_HCA_CQ_STATE_DISARMED:
        *arm = HCA_CQ_DISARMED;
        return true;
    case RDMA_HCA_CQ_STATE_ARMED:
        *arm = HCA_CQ_ARMED_NEXT;
        return true;
    case RDMA_HCA_CQ_STATE_ARMED_SOLICITED:
        *arm = HCA_CQ_ARMED_SOLICITED;
        return true;
    default:
        return false;
    }
}

static void encode(const HcaCq *cq, struct rdma_hca_cqc *cqc)
{
    *cqc = (struct rdma_hca_cqc) {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_CQC_STATUS, cq->status) | RDMA_HCA_CQC_TR |
            RDMA_HCA_PREP(RDMA_HCA_CQC_STATE, arm_to_state(cq->arm))),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(cq->start)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(cq->start)),
        .logsize_usrpage = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_CQC_LOGSIZE, cq->log_size) | cq->uar),
        .comp_eqn = GUINT32_TO_BE(cq->eqn),
        .pd = GUINT32_TO_BE(cq->pd),
        .lkey = GUINT32_TO_BE(cq->lkey),
        .last_notified_index = GUINT32_TO_BE(cq->last_notified_index),
        .solicit_producer_index = GUINT32_TO_BE(cq->solicit_producer_index),
        .consumer_index = GUINT32_TO_BE(cq->consumer_index),
        .producer_index = GUINT32_TO_BE(cq->producer_index),
        .cqn = GUINT32_TO_BE(cq->cqn),
        .ci_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(cq->ci_db)),
        .ci_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(cq->ci_db)),
    };
}

static bool write_cqc(HcaCxtMgt *cm, const HcaCq *cq)
{
    struct rdma_hca_cqc cqc;

    encode(cq, &cqc);
    return hca_cxt_write(cm, &cm->cqc, cq->cqn, &cqc, sizeof(cqc));
}

static void decode(HcaCq *cq, const struct rdma_hca_cqc *cqc)
{
    uint32_t size_uar = GUINT32_FROM_BE(cqc->logsize_usrpage);

    cq->start = (uint64_t)GUINT32_FROM_BE(cqc->start_h) << 32 |
                GUINT32_FROM_BE(cqc->start_l);
    cq->log_size = RDMA_HCA_GET(RDMA_HCA_CQC_LOGSIZE, size_uar);
    cq->uar = RDMA_HCA_GET(RDMA_HCA_CQC_UAR, size_uar);
    cq->eqn = GUINT32_FROM_BE(cqc->comp_eqn);
    cq->pd = GUINT32_FROM_BE(cqc->pd);
    cq->lkey = GUINT32_FROM_BE(cqc->lkey);
    cq->ci_db = (uint64_t)GUINT32_FROM_BE(cqc->ci_db_h) << 32 |
                GUINT32_FROM_BE(cqc->ci_db_l);
}

static bool check(HcaCxtMgt *cm, const HcaCq *cq, uint32_t flags)
{
    return RDMA_HCA_GET(RDMA_HCA_CQC_STATUS, flags) == RDMA_HCA_CQ_STATUS_OK &&
           (flags & RDMA_HCA_CQC_TR) && cq->start % RDMA_HCA_CQE_SIZE == 0 &&
           cq->log_size <= HCA_MAX_LOG_CQ_SIZE && cq->uar < RDMA_HCA_NUM_UARS &&
           hca_eq_find(cm, cq->eqn) && cq->pd < 1ull << cm->config->log_pds &&
           cq->ci_db % sizeof(uint32_t) == 0;
}

uint8_t hca_cxtmgt_sw2hw_cq(HcaCxtMgt *cm, uint32_t cqn,
                            const struct rdma_hca_cqc *cqc)
{
    uint32_t flags = GUINT32_FROM_BE(cqc->flags);
    HcaCq cq = { .cqn = cqn };

    if (!hca_index_ok(cm, &cm->cqc, cqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (cm->cqs[cqn]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    decode(&cq, cqc);
    if (!check(cm, &cq, flags) ||
        !state_to_arm(RDMA_HCA_GET(RDMA_HCA_CQC_STATE, flags), &cq.arm)) {
        return HCA_STAT_BAD_PARAM;
    }
    if (!write_cqc(cm, &cq)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    cm->cqs[cqn] = g_memdup2(&cq, sizeof(cq));
    cm->cqs[cqn]->comp_link.data = cm->cqs[cqn];
    cm->cqs[cqn]->error_link.data = cm->cqs[cqn];
    hca_eq_find(cm, cq.eqn)->cqs++;
    cm->live.cqs++;
    return HCA_STAT_OK;
}

static void free_cq(HcaCxtMgt *cm, HcaCq *cq)
{
    hca_eq_forget_cq(cm, cq);
    hca_eq_find(cm, cq->eqn)->cqs--;
    cm->live.cqs--;
    cm->cqs[cq->cqn] = NULL;
    g_free(cq);
}

void hca_cq_free_all(HcaCxtMgt *cm)
{
    for (uint32_t cqn = 0; cqn < 1u << cm->cqc.log_num; cqn++) {
        if (cm->cqs[cqn]) {
            free_cq(cm, cm->cqs[cqn]);
        }
    }
}

/* BAD_RES_STATE for a CQ that is not in hardware, as SW2HW has not been. */
static uint8_t find(HcaCxtMgt *cm, uint32_t cqn, HcaCq **cq)
{
    if (!hca_index_ok(cm, &cm->cqc, cqn)) {
        return HCA_STAT_BAD_INDEX;
    }
    *cq = cm->cqs[cqn];
    return *cq ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE;
}

uint8_t hca_cxtmgt_hw2sw_cq(HcaCxtMgt *cm, uint32_t cqn)
{
    static const struct rdma_hca_cqc invalid;
    HcaCq *cq;
    uint8_t status = find(cm, cqn, &cq);

    if (status) {
        return status;
    }
    if (cq->qps) {
        return HCA_STAT_RESOURCE_BUSY;
    }
    hca_cxt_write(cm, &cm->cqc, cqn, &invalid, sizeof(invalid));
    free_cq(cm, cq);
    return HCA_STAT_OK;
}

uint8_t hca_cxtmgt_query_cq(HcaCxtMgt *cm, uint32_t cqn,
                            struct rdma_hca_cqc *cqc)
{
    HcaCq *cq;
    uint8_t status = find(cm, cqn, &cq);

    if (!status) {
        encode(cq, cqc);
    }
    return status;
}

/* The consumer moved to @ci, if that can be; it does not move back. */
static void consumed(HcaCq *cq, uint32_t ci)
{
    if (ci - cq->consumer_index <= cq->producer_index - cq->consumer_index) {
        cq->consumer_index = ci;
    }
    if ((int32_t)(cq->consumer_index - cq->solicit_producer_index) > 0) {
        cq->solicit_producer_index = cq->consumer_index;
    }
}

static uint32_t entries(const HcaCq *cq)
{
    return cq->producer_index - cq->consumer_index;
}

/* Read the consumer index that software keeps in memory. */
static void refresh_consumer(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq)
{
    uint32_t ci;

    cm->counters.cq_ci_reads += cq->ci_db != 0;
    if (cq->ci_db &&
        hca_dma_read(cm->v2p, channel, cq->ci_db, &ci, sizeof(ci))) {
        consumed(cq, GUINT32_FROM_LE(ci));
    }
}

/*
 * RESIZE_CQ: entries from here on go to the new buffer, at the same offset in
 * its region. Those before it are software's to move; they must fit.
 */
uint8_t hca_cxtmgt_resize_cq(HcaCxtMgt *cm, uint32_t cqn, unsigned log_size,
                             uint32_t lkey)
{
    HcaCq *cq;
    uint8_t status = find(cm, cqn, &cq);

    if (status) {
        return status;
    }
    if (log_size > HCA_MAX_LOG_CQ_SIZE) {
        return HCA_STAT_BAD_PARAM;
    }
    if (cq->status != RDMA_HCA_CQ_STATUS_OK) {
        return HCA_STAT_BAD_RES_STATE;
    }
    refresh_consumer(cm, HCA_V2P_CEU, cq);
    if (entries(cq) > 1u << log_size) {
        return HCA_STAT_BAD_SIZE;
    }
    cq->log_size = log_size;
    cq->lkey = lkey;
    write_cqc(cm, cq);
    return HCA_STAT_OK;
}

static bool is_full(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq)
{
    if (entries(cq) < cq_size(cq)) {
        return false;
    }
    refresh_consumer(cm, channel, cq);
    return entries(cq) >= cq_size(cq);
}

uint64_t hca_cq_next_addr(const HcaCq *cq)
{
    uint32_t slot = cq->producer_index & (cq_size(cq) - 1);

    return cq->start + (uint64_t)slot * RDMA_HCA_CQE_SIZE;
}

/* Hand the entry to software: the owner byte is in the last word. */
static HcaV2pState write_cqe(HcaCxtMgt *cm, HcaV2pChannel channel,
                             const HcaCq *cq, uint64_t addr,
                             const struct rdma_hca_cqe *cqe)
{
    struct rdma_hca_cqe entry = *cqe;
    HcaMatchInfo info = {
        .flags = HCA_V2P_RELATIVE_ADDR | HCA_ACCESS_LOCAL_WRITE,
        .pd = cq->pd,
        .key = cq->lkey,
        .len = sizeof(entry),
        .va = addr,
    };

    entry.ctrl &= GUINT32_TO_LE(~RDMA_HCA_CQE_OWNER);
    entry.ctrl |= GUINT32_TO_LE(
        RDMA_HCA_PREP(RDMA_HCA_CQE_OWNER, RDMA_HCA_OWNER_SW));
    return hca_v2p_write_entry(cm->v2p, channel, &info, &entry);
}

static uint8_t cqe_opcode(const struct rdma_hca_cqe *cqe)
{
    return RDMA_HCA_GET(RDMA_HCA_CQE_OPCODE, GUINT32_FROM_LE(cqe->ctrl));
}

static bool is_error(const struct rdma_hca_cqe *cqe)
{
    return cqe_opcode(cqe) == RDMA_HCA_OPCODE_INVALID;
}

static void trace_cqe(HcaCxtMgt *cm, const HcaCq *cq,
                      const struct rdma_hca_cqe *cqe)
{
    uint32_t syndrome = is_error(cqe) ? RDMA_HCA_GET(RDMA_HCA_CQE_SYNDROME,
                                                     GUINT32_FROM_LE(cqe->err))
                                      : 0;

    hca_cxt_trace(cm, HCA_TRACE_CQE, cq->cqn, GUINT32_FROM_LE(cqe->my_qpn),
                  cqe_opcode(cqe), syndrome);
}

/* The queue has failed: one event, and it takes no more entries. */
static void fail(HcaCxtMgt *cm, HcaCq *cq, uint8_t status, uint32_t syndrome)
{
    HcaEvent event = {
        .type = HCA_EVENT_CQ_ERROR,
        .number = cq->cqn,
        .syndrome = syndrome,
    };

    cq->status = status;
    write_cqc(cm, cq);
    hca_cxt_trace(cm, HCA_TRACE_CQ_ERROR, cq->cqn, syndrome, 0, 0);
    hca_eq_event(cm, &event);
}

HcaCq *hca_cq_request(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t cqn)
{
    HcaCq *cq = hca_cq_find(cm, cqn);

    if (!cq || cq->status != RDMA_HCA_CQ_STATUS_OK) {
        return NULL;
    }
    if (is_full(cm, channel, cq)) {
        cm->counters.cq_overruns++;
        fail(cm, cq, RDMA_HCA_CQ_STATUS_OVERFLOW, HCA_CQ_ERROR_OVERRUN);
        return NULL;
    }
    return cq;
}

bool hca_cq_write(HcaCxtMgt *cm, HcaV2pChannel channel, HcaCq *cq,
                  uint64_t addr, const struct rdma_hca_cqe *cqe)
{
    if (write_cqe(cm, channel, cq, addr, cqe) != HCA_V2P_SUCCESS) {
        fail(cm, cq, RDMA_HCA_CQ_STATUS_WRITE_FAIL, HCA_CQ_ERROR_ACCESS);
        return false;
    }
    cq->producer_index++;
    cm->counters.cqes++;
    trace_cqe(cm, cq, cqe);
    return true;
}

bool hca_cq_take_arm(HcaCxtMgt *cm, HcaCq *cq, const struct rdma_hca_cqe *cqe,
                     bool solicited)
{
    if (is_error(cqe)) {
        cm->counters.error_cqes++;
        solicited = true;
    }
    if (solicited) {
        cq->solicit_producer_index = cq->producer_index;
    }
    if (cq->arm == HCA_CQ_ARMED_NEXT ||
        (cq->arm == HCA_CQ_ARMED_SOLICITED && solicited)) {
        cq->arm = HCA_CQ_FIRED;
        cq->last_notified_index = cq->producer_index;
        return true;
    }
    return false;
}

/* Arm @cq for entries at or after @ci. */
static void arm(HcaCxtMgt *cm, HcaCq *cq, HcaCqArm how, uint32_t ci)
{
    uint32_t end = how == HCA_CQ_ARMED_NEXT ? cq->producer_index
                                            : cq->solicit_producer_index;

    if ((int32_t)(end - ci) > 0) {
        cq->arm = HCA_CQ_FIRED;
        cq->last_notified_index = cq->producer_index;
        hca_eq_completion(cm, cq);
    } else {
        cq->arm = how;
    }
}

void hca_cq_doorbell(HcaCxtMgt *cm, uint32_t uar, uint32_t cqn, HcaCqArm how,
                     uint32_t ci)
{
    HcaCq *cq = hca_cq_find(cm, cqn);

    cm->counters.cq_doorbells++;
    if (!cq) {
        cm->counters.db_bad_cqn++;
        return;
    }
    if (cq->uar != uar) {
        cm->counters.db_bad_uar++;
        return;
    }
    if ((int32_t)(cq->producer_index - ci) < 0) {
        cm->counters.db_bad_ci++;
        return;
    }
    consumed(cq, ci);
    /* An arm for any entry is not taken back. */
    if (how == HCA_CQ_ARMED_NEXT ||
        (how == HCA_CQ_ARMED_SOLICITED && cq->arm != HCA_CQ_ARMED_NEXT)) {
        arm(cm, cq, how, ci);
    }
}
