/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event queues of an InfiniHost III Lx: contexts and entries. */
#include "mthca.h"

#define EQC(field, value) RDMA_HCA_PREP(MTHCA_EQC_##field, value)

uint8_t hca_mthca_queue_status(HcaQueueStatus status)
{
    static const uint8_t statuses[] = {
        [HCA_QUEUE_OK] = 0,
        [HCA_QUEUE_OVERFLOW] = MTHCA_QUEUE_OVERFLOW,
        [HCA_QUEUE_WRITE_FAIL] = MTHCA_QUEUE_WRITE_FAIL,
    };

    return statuses[status];
}

static const uint8_t states[] = {
    [HCA_EQ_ARMED] = MTHCA_EQC_STATE_ARMED,
    [HCA_EQ_FIRED] = MTHCA_EQC_STATE_FIRED,
    [HCA_EQ_ALWAYS_ARMED] = MTHCA_EQC_STATE_ALWAYS,
};

static bool get_arm(uint32_t state, HcaEqArm *arm)
{
    for (*arm = HCA_EQ_ARMED; *arm < G_N_ELEMENTS(states); ++*arm) {
        if (states[*arm] == state) {
            return true;
        }
    }
    return false;
}

/* False: it is no context to give to the card. */
static bool get_eq(const struct mthca_eqc *eqc, HcaEqAttr *attr)
{
    uint32_t flags = GUINT32_FROM_BE(eqc->flags);
    uint32_t intr = GUINT32_FROM_BE(eqc->intr);

    *attr = (HcaEqAttr) {
        .pd = GUINT32_FROM_BE(eqc->pd),
        .lkey = GUINT32_FROM_BE(eqc->lkey),
        .start = hca_join_be(eqc->start_h, eqc->start_l),
        .on_bus = !(flags & MTHCA_EQC_TR),
        .log_size = RDMA_HCA_GET(MTHCA_EQC_LOGSIZE,
                                 GUINT32_FROM_BE(eqc->logsize)),
        .vector = intr & MTHCA_EQC_INTR_MSIX
                      ? RDMA_HCA_GET(MTHCA_EQC_INTR_VECTOR, intr)
                      : HCA_VECTOR_PIN,
        .index = GUINT32_FROM_BE(eqc->producer_index),
    };
    return !RDMA_HCA_GET(MTHCA_EQC_STATUS, flags) &&
           eqc->consumer_index == eqc->producer_index &&
           get_arm(RDMA_HCA_GET(MTHCA_EQC_STATE, flags), &attr->arm);
}

/* There is one pin, whatever its number is. */
static uint32_t put_vector(uint16_t vector)
{
    return vector == HCA_VECTOR_PIN
               ? EQC(INTR, MTHCA_INTA_PIN)
               : MTHCA_EQC_INTR_MSIX | EQC(INTR_VECTOR, vector);
}

void hca_mthca_put_eq(const HcaEq *eq, uint64_t events, void *cxt)
{
    struct mthca_eqc eqc = { 0 };

    if (eq) {
        eqc = (struct mthca_eqc) {
            .flags = GUINT32_TO_BE(
                EQC(STATUS, hca_mthca_queue_status(eq->status)) |
                EQC(OWNER, MTHCA_EQC_OWNER_HW) |
                (eq->attr.on_bus ? 0 : MTHCA_EQC_TR) |
                EQC(STATE, states[eq->arm])),
            .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(eq->attr.start)),
            .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(eq->attr.start)),
            .logsize = GUINT32_TO_BE(EQC(LOGSIZE, eq->attr.log_size)),
            .intr = GUINT32_TO_BE(put_vector(eq->attr.vector)),
            .pd = GUINT32_TO_BE(eq->attr.pd),
            .lkey = GUINT32_TO_BE(eq->attr.lkey),
            .consumer_index = GUINT32_TO_BE(eq->consumer_index),
            .producer_index = GUINT32_TO_BE(eq->producer_index),
        };
    }
    memcpy(cxt, &eqc, sizeof(eqc));
}

void hca_mthca_put_eqe(const HcaEvent *event, void *eqe)
{
    struct mthca_eqe entry = {
        .type = event->type,
        .subtype = event->subtype,
        .owner = MTHCA_OWNER_SW,
    };

    if (event->type == HCA_EVENT_CMD) {
        entry.cmd.token = GUINT16_TO_BE(event->number);
        entry.cmd.status = hca_mthca_status(event->status);
        entry.cmd.out_param_h = GUINT32_TO_BE(RDMA_HCA_HI32(event->out_param));
        entry.cmd.out_param_l = GUINT32_TO_BE(RDMA_HCA_LO32(event->out_param));
    } else if (event->type == HCA_EVENT_PORT_CHANGE) {
        entry.port.port = GUINT32_TO_BE(
            RDMA_HCA_PREP(MTHCA_EQE_PORT, event->number));
    } else {
        entry.object.number = GUINT32_TO_BE(event->number);
    }
    if (event->type == HCA_EVENT_CQ_ERROR) {
        entry.cq.syndrome = event->syndrome;
    }
    memcpy(eqe, &entry, sizeof(entry));
}

uint8_t hca_mthca_sw2hw_eq(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaEqAttr attr;
    bool ok = get_eq((const void *)cmd->inbox, &attr);

    return hca_cxtmgt_sw2hw_eq(ceu->hca->cm, cmd->in_modifier,
                               ok ? &attr : NULL);
}

/* What it was is given back. */
uint8_t hca_mthca_hw2sw_eq(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = hca_ceu_query_eq(ceu, cmd);

    return status ? status : hca_ceu_hw2sw_eq(ceu, cmd);
}
