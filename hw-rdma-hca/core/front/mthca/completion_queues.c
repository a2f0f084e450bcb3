/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion queues of an InfiniHost III Lx: contexts and entries. */
#include "mthca.h"

#define CQC(field, value) RDMA_HCA_PREP(MTHCA_CQC_##field, value)
#define CQE(field, value) RDMA_HCA_PREP(MTHCA_CQE_##field, value)
#define BE(x) GUINT32_TO_BE(x)

static const uint8_t states[] = {
    [HCA_CQ_DISARMED] = MTHCA_CQC_STATE_DISARMED,
    [HCA_CQ_ARMED_SOLICITED] = MTHCA_CQC_STATE_ARMED_SOLICITED,
    [HCA_CQ_ARMED_NEXT] = MTHCA_CQC_STATE_ARMED,
    [HCA_CQ_FIRED] = MTHCA_CQC_STATE_FIRED,
};

static bool get_arm(uint32_t state, HcaCqArm *arm)
{
    for (*arm = HCA_CQ_DISARMED; *arm < G_N_ELEMENTS(states); ++*arm) {
        if (states[*arm] == state) {
            return true;
        }
    }
    return false;
}

/* False: it is no context to give to the card. */
static bool get_cq(const HcaCeu *ceu, const struct mthca_cqc *cqc,
                   HcaCqAttr *attr)
{
    uint32_t flags = GUINT32_FROM_BE(cqc->flags);
    uint32_t size_uar = GUINT32_FROM_BE(cqc->logsize_usrpage);

    *attr = (HcaCqAttr) {
        .uar = RDMA_HCA_GET(MTHCA_CQC_UAR, size_uar),
        .eqn = RDMA_HCA_GET(MTHCA_CQC_EQN, GUINT32_FROM_BE(cqc->comp_eqn)),
        .pd = GUINT32_FROM_BE(cqc->pd),
        .lkey = GUINT32_FROM_BE(cqc->lkey),
        .start = hca_join_be(cqc->start_h, cqc->start_l),
        .on_bus = !(flags & MTHCA_CQC_TR),
        .log_size = RDMA_HCA_GET(MTHCA_CQC_LOGSIZE, size_uar),
        .ignore_overrun = flags & MTHCA_CQC_IGNORE_OVERRUN,
    };
    return !RDMA_HCA_GET(MTHCA_CQC_STATUS, flags) &&
           hca_mthca_record(ceu, attr->uar, GUINT32_FROM_BE(cqc->ci_record),
                            &attr->ci_db) &&
           get_arm(RDMA_HCA_GET(MTHCA_CQC_STATE, flags), &attr->arm);
}

/* The records' places are not told again. */
void hca_mthca_put_cq(const HcaCq *cq, void *cxt)
{
    struct mthca_cqc cqc = { 0 };

    if (cq) {
        cqc = (struct mthca_cqc) {
            .flags = BE(CQC(STATUS, hca_mthca_queue_status(cq->status)) |
                        (cq->attr.on_bus ? 0 : MTHCA_CQC_TR) |
                        CQC(IGNORE_OVERRUN, cq->attr.ignore_overrun) |
                        CQC(STATE, states[cq->arm])),
            .start_h = BE(RDMA_HCA_HI32(cq->attr.start)),
            .start_l = BE(RDMA_HCA_LO32(cq->attr.start)),
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
        };
    }
    memcpy(cxt, &cqc, sizeof(cqc));
}

static uint8_t opcode_of(const HcaCompletion *completion)
{
    if (!completion->syndrome) {
        return completion->opcode;
    }
    return completion->is_send ? MTHCA_CQE_ERROR_SEND : MTHCA_CQE_ERROR_RECV;
}

/* What of a CQE depends on how it ended, and on whom it is of. */
static void put_result(const HcaCompletion *completion, struct mthca_cqe *cqe)
{
    if (completion->syndrome) {
        cqe->syndrome = completion->syndrome;
        cqe->vendor_err = completion->vendor_err;
    } else if (completion->has_pkey_index) {
        cqe->pkey_index = GUINT16_TO_BE(completion->pkey_index);
    } else {
        cqe->imm = completion->imm_be;
    }
}

void hca_mthca_put_cqe(const HcaCompletion *completion, int64_t time, void *cqe)
{
    const HcaSource *source = &completion->source;
    struct mthca_cqe entry = {
        .my_qpn = BE(completion->qpn),
        .rqpn = BE(completion->remote_qpn),
        .rlid_path = BE(CQE(SL, source->sl) | CQE(GRH, source->grh) |
                        CQE(MLPATH, source->path_bits) |
                        CQE(RLID, source->lid)),
        .byte_cnt = BE(completion->byte_cnt),
        .wqe = BE(completion->wqe),
        .opcode = opcode_of(completion),
        .is_send = completion->is_send ? MTHCA_CQE_IS_SEND : 0,
        .owner = MTHCA_OWNER_SW,
    };

    put_result(completion, &entry);
    memcpy(cqe, &entry, sizeof(entry));
}

uint8_t hca_mthca_sw2hw_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaCqAttr attr;
    bool ok = get_cq(ceu, (const void *)cmd->inbox, &attr);

    return hca_cxtmgt_sw2hw_cq(ceu->hca->cm, cmd->in_modifier,
                               ok ? &attr : NULL);
}

/* What it was is given back. */
uint8_t hca_mthca_hw2sw_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = hca_ceu_query_cq(ceu, cmd);

    return status ? status : hca_ceu_hw2sw_cq(ceu, cmd);
}

/* The new buffer begins where the old one does in its region: at 0. */
uint8_t hca_mthca_resize_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct mthca_resize_cq *resize = (const void *)cmd->inbox;

    if (resize->start_h || resize->start_l) {
        return HCA_STAT_BAD_PARAM;
    }
    return hca_cxtmgt_resize_cq(
        ceu->hca->cm, cmd->in_modifier,
        RDMA_HCA_GET(MTHCA_RESIZE_CQ_LOGSIZE, GUINT32_FROM_BE(resize->logsize)),
        GUINT32_FROM_BE(resize->lkey));
}
