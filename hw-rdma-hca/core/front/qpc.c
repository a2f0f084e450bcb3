/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contexts of QPs (table 3-2-40); see contexts.h. */
#include "../wire/gid.h"
#include "contexts.h"
#include "path.h"
#include "words.h"

#define GET(field, word) RDMA_HCA_GET(RDMA_HCA_QPC_##field, word)
#define PUT(field, value) RDMA_HCA_PREP(RDMA_HCA_QPC_##field, value)

static uint32_t be(__be32 word)
{
    return GUINT32_FROM_BE(word);
}

/* From a mailbox */

static void get_path(const struct rdma_hca_qpc *qpc, bool roce, HcaPath *path)
{
    uint32_t ackto = be(qpc->ackto_path);
    uint32_t flow = be(qpc->sl_tclass_flowlabel);
    HcaFrontAddresses addresses = {
        .low = be(qpc->dlid_slid),
        .smac_h = be(qpc->smac_h),
        .dmac_h = be(qpc->dmac_h),
        .sip = be(qpc->sip),
        .dip = be(qpc->dip),
        .dgid = (const uint8_t *)qpc->rgid,
    };

    *path = (HcaPath) {
        .sl = GET(SL, flow),
        .path_bits = GET(MLPATH, be(qpc->rnr_retry_path)),
        .grh = GET(GRH, be(qpc->rnr_retry_path)),
        .sgid_index = GET(SGID_INDEX, ackto),
        .tclass = GET(TCLASS, flow),
        .hop_limit = GET(HOP_LIMIT, ackto),
        .flow_label = GET(FLOW_LABEL, flow),
    };
    hca_front_path(path, roce, &addresses);
}

static void get_queues(const struct rdma_hca_qpc *qpc, HcaQpAttr *attr)
{
    uint32_t sizes = be(qpc->mtu_msgmax_sz);

    attr->sq_cqn = be(qpc->cqn_snd);
    attr->sq_lkey = be(qpc->snd_wqe_base_l);
    attr->sq_len = be(qpc->snd_wqe_len);
    attr->sq_entry_log = GET(SQ_ENTRY_SZ, sizes);
    attr->rq_cqn = be(qpc->cqn_rcv);
    attr->rq_lkey = be(qpc->rcv_wqe_base_l);
    attr->rq_len = be(qpc->rcv_wqe_len);
    attr->rq_entry_log = GET(RQ_ENTRY_SZ, sizes);
    attr->rq_db = hca_join_be(qpc->rq_db_h, qpc->rq_db_l);
    attr->uses_srq = GET(USES_SRQ, be(qpc->srq));
    attr->srqn = GET(SRQN, be(qpc->srq));
    attr->xrcd = GET(XRCD, be(qpc->xrcd));
    attr->counter_set = be(qpc->counter_set);
}

/* What a connection promises: PSNs, retries, Reads outstanding. */
static void get_transport(const struct rdma_hca_qpc *qpc, HcaQpAttr *attr)
{
    uint32_t retry = be(qpc->rnr_retry_path);
    uint32_t params = be(qpc->params1);
    uint32_t receive = be(qpc->rnr_nextrecvpsn);

    attr->rq_psn = GET(PSN, receive);
    attr->sq_psn = be(qpc->next_send_psn);
    attr->sra_max = GET(SRA_MAX, params);
    attr->rra_max = GET(RRA_MAX, params);
    attr->access = GET(ACCESS, params) | HCA_FLUSH_NEEDS(GET(FLUSH, params));
    attr->retry_count = GET(RETRY_COUNT, retry);
    attr->rnr_retry = GET(RNR_RETRY, retry);
    attr->ack_timeout = GET(ACK_TIMEOUT, be(qpc->ackto_path));
    attr->min_rnr_timer = GET(MIN_RNR_TIMER, receive);
}

void hca_front_get_qp(const struct rdma_hca_qpc *qpc, bool roce,
                      HcaQpAttr *attr)
{
    uint32_t sizes = be(qpc->mtu_msgmax_sz);
    uint32_t port = be(qpc->port_pkey);

    *attr = (HcaQpAttr) {
        .service = GET(SERVICE, be(qpc->flags)),
        .privileged = GET(PRIVILEGED, be(qpc->flags)),
        .block_loopback = GET(BLOCK_LOOPBACK, be(qpc->flags)),
        .pd = be(qpc->pd),
        .uar = GET(UAR, be(qpc->usr_page)),
        .mtu = GET(MTU, sizes),
        .log_max_msg = GET(MSGMAX, sizes),
        .slid = roce ? 0 : GET(SLID, be(qpc->dlid_slid)),
        .static_rate = GET(STATIC_RATE, be(qpc->ackto_path)),
        .pkey_index = GET(PKEY_INDEX, port),
        .port = GET(PORT, port),
        .qkey = be(qpc->qkey),
        .remote_qpn = be(qpc->remote_qpn),
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(attr->alt_path); i++) {
        attr->alt_path[i] = be(qpc->alt_path[i]);
    }
    get_path(qpc, roce, &attr->path);
    get_queues(qpc, attr);
    get_transport(qpc, attr);
}

/* The whole context */

/* What the link layer does not use of a path is 0. */
static void put_addresses(const HcaQpAttr *attr, struct rdma_hca_qpc *qpc)
{
    const HcaPath *path = &attr->path;
    uint16_t far = path->dlid | get_be16(path->dmac + 4);
    uint16_t near = attr->slid | get_be16(path->smac + 4);

    qpc->dlid_slid = GUINT32_TO_BE(PUT(DLID, far) | PUT(SLID, near));
    qpc->smac_h = GUINT32_TO_BE(get_be32(path->smac));
    qpc->dmac_h = GUINT32_TO_BE(get_be32(path->dmac));
    qpc->sip = GUINT32_TO_BE(path->sip);
    if (path->grh) {
        memcpy(qpc->rgid, path->dgid.raw, sizeof(qpc->rgid));
    } else {
        qpc->dip = GUINT32_TO_BE(get_be32(path->dgid.raw + 12));
    }
}

static void put_path(const HcaQpAttr *attr, struct rdma_hca_qpc *qpc)
{
    const HcaPath *path = &attr->path;

    qpc->rnr_retry_path = GUINT32_TO_BE(
        PUT(RNR_RETRY, attr->rnr_retry) | PUT(GRH, path->grh) |
        PUT(MLPATH, path->path_bits) | PUT(RETRY_COUNT, attr->retry_count));
    qpc->ackto_path = GUINT32_TO_BE(PUT(ACK_TIMEOUT, attr->ack_timeout) |
                                    PUT(SGID_INDEX, path->sgid_index) |
                                    PUT(STATIC_RATE, attr->static_rate) |
                                    PUT(HOP_LIMIT, path->hop_limit));
    qpc->sl_tclass_flowlabel = GUINT32_TO_BE(PUT(SL, path->sl) |
                                             PUT(TCLASS, path->tclass) |
                                             PUT(FLOW_LABEL, path->flow_label));
    put_addresses(attr, qpc);
    for (unsigned i = 0; i < G_N_ELEMENTS(attr->alt_path); i++) {
        qpc->alt_path[i] = GUINT32_TO_BE(attr->alt_path[i]);
    }
}

static void put_attr(const HcaQpAttr *attr, struct rdma_hca_qpc *qpc)
{
    qpc->mtu_msgmax_sz = GUINT32_TO_BE(PUT(MTU, attr->mtu) |
                                       PUT(MSGMAX, attr->log_max_msg) |
                                       PUT(RQ_ENTRY_SZ, attr->rq_entry_log) |
                                       PUT(SQ_ENTRY_SZ, attr->sq_entry_log));
    qpc->usr_page = GUINT32_TO_BE(PUT(UAR, attr->uar));
    qpc->remote_qpn = GUINT32_TO_BE(attr->remote_qpn);
    qpc->port_pkey = GUINT32_TO_BE(PUT(PORT, attr->port) |
                                   PUT(PKEY_INDEX, attr->pkey_index));
    qpc->pd = GUINT32_TO_BE(attr->pd);
    qpc->params1 = GUINT32_TO_BE(
        PUT(SRA_MAX, attr->sra_max) | PUT(RRA_MAX, attr->rra_max) |
        PUT(ACCESS, attr->access) |
        PUT(FLUSH, RDMA_HCA_GET(RDMA_HCA_ACCESS_FLUSH, attr->access)));
    qpc->cqn_snd = GUINT32_TO_BE(attr->sq_cqn);
    qpc->snd_wqe_base_l = GUINT32_TO_BE(attr->sq_lkey);
    qpc->snd_wqe_len = GUINT32_TO_BE(attr->sq_len);
    qpc->cqn_rcv = GUINT32_TO_BE(attr->rq_cqn);
    qpc->rcv_wqe_base_l = GUINT32_TO_BE(attr->rq_lkey);
    qpc->rcv_wqe_len = GUINT32_TO_BE(attr->rq_len);
    qpc->qkey = GUINT32_TO_BE(attr->qkey);
    qpc->rq_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(attr->rq_db));
    qpc->rq_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(attr->rq_db));
    qpc->srq = GUINT32_TO_BE(PUT(USES_SRQ, attr->uses_srq) |
                             PUT(SRQN, attr->srqn));
    qpc->xrcd = GUINT32_TO_BE(PUT(XRCD, attr->xrcd));
    qpc->counter_set = GUINT32_TO_BE(attr->counter_set);
    put_path(attr, qpc);
}

/* Where the engines are. */
static void put_state(const HcaQp *qp, struct rdma_hca_qpc *qpc)
{
    bool draining = qp->state == HCA_QP_SQD && !qp->req.drained;

    qpc->flags = GUINT32_TO_BE(PUT(STATE, qp->state) |
                               PUT(SERVICE, qp->attr.service) |
                               PUT(PRIVILEGED, qp->attr.privileged) |
                               PUT(BLOCK_LOOPBACK, qp->attr.block_loopback) |
                               PUT(SQ_DRAINING, draining));
    qpc->next_send_psn = GUINT32_TO_BE(qp->req.next_psn);
    qpc->last_acked_psn = GUINT32_TO_BE(qp->req.unacked_psn);
    qpc->rnr_nextrecvpsn = GUINT32_TO_BE(
        PUT(MIN_RNR_TIMER, qp->attr.min_rnr_timer) |
        PUT(PSN, qp->resp.expected_psn));
    qpc->rmsn = GUINT32_TO_BE(qp->resp.msn);
    qpc->wqe_counter = GUINT32_TO_BE(PUT(RQ_COUNTER, qp->rq.consumed) |
                                     PUT(SQ_COUNTER, qp->send.taken));
}

void hca_front_put_qp(uint32_t qpn, const HcaQp *qp, void *cxt)
{
    struct rdma_hca_qpc qpc = { .local_qpn = GUINT32_TO_BE(qpn) };

    if (qp) {
        put_attr(&qp->attr, &qpc);
        put_state(qp, &qpc);
    }
    memcpy(cxt, &qpc, sizeof(qpc));
}
