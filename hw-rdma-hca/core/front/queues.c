/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contexts of completion, event and shared receive queues; see contexts.h. */
#include "../../abi/rdma_hca_cmd.h"
#include "../../abi/rdma_hca_regs.h"
#include "../cxtmgt/recv_queue.h"
#include "contexts.h"
#include "words.h"

#define CQC(field, value) RDMA_HCA_PREP(RDMA_HCA_CQC_##field, value)
#define EQC(field, value) RDMA_HCA_PREP(RDMA_HCA_EQC_##field, value)
#define SRQC(field, value) RDMA_HCA_PREP(RDMA_HCA_SRQC_##field, value)
#define BE(x) GUINT32_TO_BE(x)
#define BE_HIGH(x) GUINT32_TO_BE(RDMA_HCA_HI32(x))
#define BE_LOW(x) GUINT32_TO_BE(RDMA_HCA_LO32(x))

/* Those of a CQ and of an EQ have the same numbers. */
static const uint8_t statuses[] = {
    [HCA_QUEUE_OK] = RDMA_HCA_CQ_STATUS_OK,
    [HCA_QUEUE_OVERFLOW] = RDMA_HCA_CQ_STATUS_OVERFLOW,
    [HCA_QUEUE_WRITE_FAIL] = RDMA_HCA_CQ_STATUS_WRITE_FAIL,
};
G_STATIC_ASSERT(RDMA_HCA_EQ_STATUS_OK == RDMA_HCA_CQ_STATUS_OK);
G_STATIC_ASSERT(RDMA_HCA_EQ_STATUS_OVERFLOW == RDMA_HCA_CQ_STATUS_OVERFLOW);
G_STATIC_ASSERT(RDMA_HCA_EQ_STATUS_WRITE_FAIL == RDMA_HCA_CQ_STATUS_WRITE_FAIL);

/* Completion queues */

static const uint8_t cq_states[] = {
    [HCA_CQ_DISARMED] = RDMA_HCA_CQ_STATE_DISARMED,
    [HCA_CQ_ARMED_SOLICITED] = RDMA_HCA_CQ_STATE_ARMED_SOLICITED,
    [HCA_CQ_ARMED_NEXT] = RDMA_HCA_CQ_STATE_ARMED,
    [HCA_CQ_FIRED] = RDMA_HCA_CQ_STATE_FIRED,
};

/* No CQ is given to the card fired. */
static bool get_cq_arm(uint32_t state, HcaCqArm *arm)
{
    for (*arm = HCA_CQ_DISARMED; *arm < HCA_CQ_FIRED; ++*arm) {
        if (cq_states[*arm] == state) {
            return true;
        }
    }
    return false;
}

bool hca_front_get_cq(const struct rdma_hca_cqc *cqc, HcaCqAttr *attr)
{
    uint32_t flags = GUINT32_FROM_BE(cqc->flags);
    uint32_t size_uar = GUINT32_FROM_BE(cqc->logsize_usrpage);

    *attr = (HcaCqAttr) {
        .uar = RDMA_HCA_GET(RDMA_HCA_CQC_UAR, size_uar),
        .eqn = GUINT32_FROM_BE(cqc->comp_eqn),
        .pd = GUINT32_FROM_BE(cqc->pd),
        .lkey = GUINT32_FROM_BE(cqc->lkey),
        .start = hca_join_be(cqc->start_h, cqc->start_l),
        .log_size = RDMA_HCA_GET(RDMA_HCA_CQC_LOGSIZE, size_uar),
        .ci_db = hca_join_be(cqc->ci_db_h, cqc->ci_db_l),
        .ignore_overrun = flags & RDMA_HCA_CQC_IGNORE_OVERRUN,
    };
    return RDMA_HCA_GET(RDMA_HCA_CQC_STATUS, flags) == RDMA_HCA_CQ_STATUS_OK &&
           (flags & RDMA_HCA_CQC_TR) &&
           get_cq_arm(RDMA_HCA_GET(RDMA_HCA_CQC_STATE, flags), &attr->arm);
}

void hca_front_put_cq(const HcaCq *cq, void *cxt)
{
    struct rdma_hca_cqc cqc = { 0 };

    if (cq) {
        cqc = (struct rdma_hca_cqc) {
            .flags = BE(CQC(STATUS, statuses[cq->status]) | RDMA_HCA_CQC_TR |
                        CQC(IGNORE_OVERRUN, cq->attr.ignore_overrun) |
                        CQC(STATE, cq_states[cq->arm])),
            .start_h = BE_HIGH(cq->attr.start),
            .start_l = BE_LOW(cq->attr.start),
            .logsize_usrpage = BE(CQC(LOGSIZE, cq->attr.log_size) |
                                  CQC(UAR, cq->attr.uar)),
            .comp_eqn = BE(cq->attr.eqn),
            .pd = BE(cq->attr.pd),
            .lkey = BE(cq->attr.lkey),
            .last_notified_index = BE(cq->last_notified_index),
            .solicit_producer_index = BE(cq->solicit_producer_index),
            .consumer_index = BE(cq->consumer_index),
            .producer_index = BE(cq->producer_index),
            .cqn = BE(cq->cqn),
            .ci_db_h = BE_HIGH(cq->attr.ci_db),
            .ci_db_l = BE_LOW(cq->attr.ci_db),
            .moderation = BE(
                RDMA_HCA_PREP(RDMA_HCA_MODERATION_COUNT, cq->event_count) |
                RDMA_HCA_PREP(RDMA_HCA_MODERATION_PERIOD, cq->event_period_us)),
        };
    }
    memcpy(cxt, &cqc, sizeof(cqc));
}

HcaCqArm hca_front_cq_arm(uint32_t low)
{
    switch (RDMA_HCA_GET(RDMA_HCA_CQ_DB_CMD, low)) {
    case RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED:
        return HCA_CQ_ARMED_SOLICITED;
    case RDMA_HCA_CQ_DB_CMD_ARM_NEXT:
        return HCA_CQ_ARMED_NEXT;
    default:
        return HCA_CQ_DISARMED;
    }
}

/* Event queues */

static const uint8_t eq_states[] = {
    [HCA_EQ_ARMED] = RDMA_HCA_EQ_STATE_ARMED,
    [HCA_EQ_FIRED] = RDMA_HCA_EQ_STATE_FIRED,
    [HCA_EQ_ALWAYS_ARMED] = RDMA_HCA_EQ_STATE_ALWAYS_ARMED,
};

static bool get_eq_arm(uint32_t state, HcaEqArm *arm)
{
    for (*arm = HCA_EQ_ARMED; *arm < G_N_ELEMENTS(eq_states); ++*arm) {
        if (eq_states[*arm] == state) {
            return true;
        }
    }
    return false;
}

bool hca_front_get_eq(const struct rdma_hca_eqc *eqc, HcaEqAttr *attr)
{
    uint32_t flags = GUINT32_FROM_BE(eqc->flags);

    *attr = (HcaEqAttr) {
        .pd = GUINT32_FROM_BE(eqc->pd),
        .lkey = GUINT32_FROM_BE(eqc->lkey),
        .start = hca_join_be(eqc->start_h, eqc->start_l),
        .log_size = RDMA_HCA_GET(RDMA_HCA_EQC_LOGSIZE,
                                 GUINT32_FROM_BE(eqc->logsize)),
        .vector = RDMA_HCA_GET(RDMA_HCA_EQC_VECTOR,
                               GUINT32_FROM_BE(eqc->msix_vector)),
        .index = GUINT32_FROM_BE(eqc->producer_index),
    };
    return RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, flags) == RDMA_HCA_EQ_STATUS_OK &&
           (flags & RDMA_HCA_EQC_TR) &&
           eqc->consumer_index == eqc->producer_index &&
           get_eq_arm(RDMA_HCA_GET(RDMA_HCA_EQC_STATE, flags), &attr->arm);
}

void hca_front_put_eq(const HcaEq *eq, uint64_t events, void *cxt)
{
    struct rdma_hca_eqc eqc = { 0 };

    if (eq) {
        eqc = (struct rdma_hca_eqc) {
            .flags = BE(EQC(STATUS, statuses[eq->status]) |
                        EQC(OWNER, RDMA_HCA_EQ_OWNER_HW) | RDMA_HCA_EQC_TR |
                        EQC(STATE, eq_states[eq->arm])),
            .start_h = BE_HIGH(eq->attr.start),
            .start_l = BE_LOW(eq->attr.start),
            .logsize = BE(EQC(LOGSIZE, eq->attr.log_size)),
            .msix_vector = BE(eq->attr.vector),
            .pd = BE(eq->attr.pd),
            .lkey = BE(eq->attr.lkey),
            .consumer_index = BE(eq->consumer_index),
            .producer_index = BE(eq->producer_index),
            .event_mask_h = BE_HIGH(events),
            .event_mask_l = BE_LOW(events),
        };
    }
    memcpy(cxt, &eqc, sizeof(eqc));
}

/* Shared receive queues */

bool hca_front_get_srq(const struct rdma_hca_srqc *srqc, HcaSrqAttr *attr)
{
    uint32_t flags = GUINT32_FROM_BE(srqc->flags);
    uint32_t status = RDMA_HCA_GET(RDMA_HCA_SRQC_STATUS, flags);

    *attr = (HcaSrqAttr) {
        .pd = GUINT32_FROM_BE(srqc->pd),
        .lkey = GUINT32_FROM_BE(srqc->lkey),
        .len = GUINT32_FROM_BE(srqc->len),
        .entry_log = RDMA_HCA_GET(RDMA_HCA_SRQC_ENTRY_SZ, flags),
        .record = hca_join_be(srqc->db_h, srqc->db_l),
        .xrc = flags & RDMA_HCA_SRQC_XRC,
        .cqn = GUINT32_FROM_BE(srqc->cqn),
        .xrcd = GUINT32_FROM_BE(srqc->xrcd),
    };
    return status == RDMA_HCA_SRQ_STATUS_OK;
}

void hca_front_put_srq(const HcaSrq *srq, void *cxt)
{
    struct rdma_hca_srqc srqc = { 0 };
    uint8_t status;

    if (srq) {
        status = srq->failed ? RDMA_HCA_SRQ_STATUS_FAILED
                             : RDMA_HCA_SRQ_STATUS_OK;
        srqc = (struct rdma_hca_srqc) {
            .flags = BE(SRQC(STATUS, status) | SRQC(XRC, srq->attr.xrc) |
                        SRQC(ENTRY_SZ, srq->attr.entry_log)),
            .len = BE(srq->attr.len),
            .pd = BE(srq->attr.pd),
            .lkey = BE(srq->attr.lkey),
            .db_h = BE_HIGH(srq->attr.record),
            .db_l = BE_LOW(srq->attr.record),
            .limit_wqes = BE(SRQC(LIMIT, srq->limit) |
                             SRQC(WQES, hca_recv_queue_known(&srq->rq))),
            .taken = BE(srq->rq.consumed),
            .cqn = BE(srq->attr.cqn),
            .xrcd = BE(srq->attr.xrcd),
            .srqn = BE(srq->srqn),
        };
    }
    memcpy(cxt, &srqc, sizeof(srqc));
}
