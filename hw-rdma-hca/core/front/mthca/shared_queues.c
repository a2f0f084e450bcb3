/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues of an InfiniHost III Lx. Their WQEs are a list: each says
 * where the next one is, and what completes goes to its end.
 */
#include "mthca.h"

#include "../../cxtmgt/recv_queue.h"

#define GET(field, word) RDMA_HCA_GET(MTHCA_SRQC_##field, GUINT32_FROM_BE(word))
#define PUT(field, value) RDMA_HCA_PREP(MTHCA_SRQC_##field, value)
#define BE(x) GUINT32_TO_BE(x)
#define STRIDE_BASE 4

/* False: it is no context to give to the card. The first WQE is at 0. */
static bool get_srq(const HcaCeu *ceu, const struct mthca_srqc *srqc,
                    HcaSrqAttr *attr)
{
    uint32_t log_size = GET(LOGSIZE, srqc->state_logsize_srqn);

    *attr = (HcaSrqAttr) {
        .pd = GET(PD, srqc->eqn_pd),
        .lkey = GUINT32_FROM_BE(srqc->lkey),
        .entry_log = GET(LOGSTRIDE, srqc->logstride_usrpage) + STRIDE_BASE,
    };
    attr->len = 1u << (log_size + attr->entry_log);
    return !GET(STATE, srqc->state_logsize_srqn) && !srqc->wqe_base_h &&
           !srqc->wqe_base_l &&
           hca_mthca_record(ceu, GET(UAR, srqc->logstride_usrpage),
                            GUINT32_FROM_BE(srqc->record), &attr->record);
}

static uint32_t log_entries(const HcaSrqAttr *attr)
{
    return g_bit_storage(attr->len >> attr->entry_log) - 1;
}

static void fill(const HcaSrq *srq, struct mthca_srqc *srqc)
{
    *srqc = (struct mthca_srqc) {
        .state_logsize_srqn = BE(
            PUT(STATE, srq->failed ? MTHCA_SRQC_STATE_FAILED : 0) |
            PUT(LOGSIZE, log_entries(&srq->attr)) | PUT(SRQN, srq->srqn)),
        .lkey = BE(srq->attr.lkey),
        .logstride_usrpage = BE(
            PUT(LOGSTRIDE, srq->attr.entry_log - STRIDE_BASE)),
        .eqn_pd = BE(PUT(PD, srq->attr.pd)),
        .limit = GUINT16_TO_BE(srq->limit),
        .wqe_cnt = GUINT16_TO_BE(hca_recv_queue_known(&srq->rq)),
    };
}

/* As much of it as a table in ICM has room for. */
void hca_mthca_put_srq(const HcaSrq *srq, void *cxt)
{
    struct mthca_srqc srqc = { 0 };

    if (srq) {
        fill(srq, &srqc);
    }
    memcpy(cxt, &srqc, MTHCA_SRQC_SIZE);
}

uint8_t hca_mthca_sw2hw_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaSrqAttr attr;
    bool ok = get_srq(ceu, (const void *)cmd->inbox, &attr);

    return hca_cxtmgt_sw2hw_srq(ceu->hca->cm, cmd->in_modifier,
                                ok ? &attr : NULL);
}

/* What it was is given back. */
uint8_t hca_mthca_hw2sw_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = hca_ceu_query_srq(ceu, cmd);

    return status ? status : hca_ceu_hw2sw_srq(ceu, cmd);
}
