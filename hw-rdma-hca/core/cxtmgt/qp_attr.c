/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP transitions and attributes (interface document, tables A1-2, A1-3,
 * 3-2-40), as data.
 *
 * Departures from table A1-2. RC needs MAX_DEST_RD_ATOMIC at INIT2RTR and
 * MAX_QP_RD_ATOMIC at RTR2RTS, and may change both in SQD, as the IB
 * specification has it (the document's hardware did not use them). INIT2INIT
 * takes the attributes that the mask names, as verbs do, and all of them, as
 * the table says, if the mask is 0. There is no automatic path migration:
 * ALT_PATH is kept for QUERY_QP and PATH_MIG_STATE has no effect. XRC has the
 * attributes of RC that its side of a connection has (annex A14.4). A raw packet
 * QP has none but its port.
 */
#include <stddef.h>
#include <string.h>

#include "../wire/gid.h"
#include "cxtmgt_int.h"

#define IN(state) (1u << HCA_QP_##state)
#define ATTR(name) HCA_QP_ATTR_##name

#define RC HCA_SERVICE_RC
#define UC HCA_SERVICE_UC
#define UD HCA_SERVICE_UD
#define INI HCA_SERVICE_XRC_INI
#define TGT HCA_SERVICE_XRC_TGT
#define RAW HCA_SERVICE_RAW

#define CONNECTED_INIT (ATTR(PKEY_INDEX) | ATTR(PORT) | ATTR(ACCESS_FLAGS))
#define DATAGRAM_INIT (ATTR(PKEY_INDEX) | ATTR(PORT) | ATTR(QKEY))
#define CONNECTED_RTR                                                          \
    (ATTR(AV) | ATTR(PATH_MTU) | ATTR(DEST_QPN) | ATTR(RQ_PSN))
#define RESPONDER_RTR                                                          \
    (CONNECTED_RTR | ATTR(MAX_DEST_RD_ATOMIC) | ATTR(MIN_RNR_TIMER))
#define OPTIONAL_RTR (ATTR(ALT_PATH) | ATTR(ACCESS_FLAGS) | ATTR(PKEY_INDEX))
#define REQUESTER_RTS                                                          \
    (ATTR(TIMEOUT) | ATTR(RETRY_CNT) | ATTR(RNR_RETRY) | ATTR(SQ_PSN) |        \
     ATTR(MAX_QP_RD_ATOMIC))
/* Attributes that may change in RTS, and with it. */
#define CONNECTED_CHANGES                                                      \
    (ATTR(ALT_PATH) | ATTR(PATH_MIG_STATE) | ATTR(ACCESS_FLAGS))
#define RESPONDER_CHANGES (CONNECTED_CHANGES | ATTR(MIN_RNR_TIMER))
/* In SQD. */
#define RELIABLE_SQD                                                           \
    (CONNECTED_CHANGES | ATTR(PORT) | ATTR(AV) | ATTR(TIMEOUT) |               \
     ATTR(PKEY_INDEX))
#define REQUESTER_SQD                                                          \
    (ATTR(RETRY_CNT) | ATTR(RNR_RETRY) | ATTR(MAX_QP_RD_ATOMIC))
#define RESPONDER_SQD (ATTR(MIN_RNR_TIMER) | ATTR(MAX_DEST_RD_ATOMIC))

const HcaQpTransitionRow hca_qp_transitions[] = {
    [HCA_QP_RST2INIT] = {
        .from = IN(RST),
        .to = HCA_QP_INIT,
        .attrs = {
            [RC] = { CONNECTED_INIT | ATTR(CREATE), 0 },
            [UC] = { CONNECTED_INIT | ATTR(CREATE), 0 },
            [UD] = { DATAGRAM_INIT | ATTR(CREATE), 0 },
            [RAW] = { ATTR(PORT) | ATTR(CREATE), 0 },
            [INI] = { CONNECTED_INIT | ATTR(CREATE), 0 },
            [TGT] = { CONNECTED_INIT | ATTR(CREATE), 0 },
        },
    },
    [HCA_QP_INIT2INIT] = {
        .from = IN(INIT),
        .to = HCA_QP_INIT,
        .masked = true,
        .attrs = {
            [RC] = { CONNECTED_INIT, 0 },
            [UC] = { CONNECTED_INIT, 0 },
            [UD] = { DATAGRAM_INIT, 0 },
            [RAW] = { ATTR(PORT), 0 },
            [INI] = { CONNECTED_INIT, 0 },
            [TGT] = { CONNECTED_INIT, 0 },
        },
    },
    [HCA_QP_INIT2RTR] = {
        .from = IN(INIT),
        .to = HCA_QP_RTR,
        .attrs = {
            [RC] = { RESPONDER_RTR, OPTIONAL_RTR },
            [UC] = { CONNECTED_RTR, OPTIONAL_RTR },
            [UD] = { 0, ATTR(PKEY_INDEX) | ATTR(QKEY) },
            [INI] = { CONNECTED_RTR, OPTIONAL_RTR },
            [TGT] = { RESPONDER_RTR, OPTIONAL_RTR },
        },
    },
    [HCA_QP_RTR2RTS] = {
        .from = IN(RTR),
        .to = HCA_QP_RTS,
        .attrs = {
            [RC] = { REQUESTER_RTS, RESPONDER_CHANGES },
            [UC] = { ATTR(SQ_PSN), CONNECTED_CHANGES },
            [UD] = { ATTR(SQ_PSN), ATTR(QKEY) },
            [INI] = { REQUESTER_RTS, CONNECTED_CHANGES },
            [TGT] = { ATTR(TIMEOUT) | ATTR(SQ_PSN), RESPONDER_CHANGES },
        },
    },
    [HCA_QP_RTS2RTS] = {
        .from = IN(RTS),
        .to = HCA_QP_RTS,
        .attrs = {
            [RC] = { 0, RESPONDER_CHANGES },
            [UC] = { 0, CONNECTED_CHANGES },
            [UD] = { 0, ATTR(QKEY) },
            [INI] = { 0, CONNECTED_CHANGES },
            [TGT] = { 0, RESPONDER_CHANGES },
        },
    },
    [HCA_QP_SQERR2RTS] = {
        .from = IN(SQE),
        .to = HCA_QP_RTS,
        .attrs = {
            [UC] = { 0, ATTR(ACCESS_FLAGS) },
            [UD] = { 0, ATTR(QKEY) },
        },
    },
    [HCA_QP_RTS2SQD] = {
        .from = IN(RTS),
        .to = HCA_QP_SQD,
        .attrs_optional = true,
        .attrs = {
            [RC] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [UC] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [UD] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [RAW] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [INI] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [TGT] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
        },
    },
    [HCA_QP_SQD2SQD] = {
        .from = IN(SQD),
        .to = HCA_QP_SQD,
        .attrs = {
            [RC] = { 0, RELIABLE_SQD | REQUESTER_SQD | RESPONDER_SQD },
            [UC] = { 0, CONNECTED_CHANGES | ATTR(AV) | ATTR(PKEY_INDEX) },
            [UD] = { 0, ATTR(PKEY_INDEX) | ATTR(QKEY) },
            [INI] = { 0, RELIABLE_SQD | REQUESTER_SQD },
            [TGT] = { 0, RELIABLE_SQD | RESPONDER_SQD },
        },
    },
    [HCA_QP_SQD2RTS] = {
        .from = IN(SQD),
        .to = HCA_QP_RTS,
        .attrs = {
            [RC] = { 0, RESPONDER_CHANGES },
            [UC] = { 0, CONNECTED_CHANGES },
            [UD] = { 0, ATTR(QKEY) },
            [INI] = { 0, CONNECTED_CHANGES },
            [TGT] = { 0, RESPONDER_CHANGES },
        },
    },
    [HCA_QP_2ERR] = {
        .from = IN(INIT) | IN(RTR) | IN(RTS) | IN(SQE) | IN(SQD) | IN(ERR),
        .to = HCA_QP_ERR,
        .attrs_optional = true,
    },
    [HCA_QP_ERR2RST] = {
        .from = IN(RST) | IN(INIT) | IN(RTR) | IN(RTS) | IN(SQE) | IN(SQD) |
                IN(ERR),
        .to = HCA_QP_RST,
        .attrs_optional = true,
    },
};

/* The fields that an attribute is made of. */
typedef struct HcaQpField {
    uint32_t attrs; /* any of them */
    uint16_t offset;
    uint16_t size;
} HcaQpField;

#define FIELD(attr, field)                                                     \
    {                                                                          \
        attr, offsetof(HcaQpAttr, field), sizeof(((HcaQpAttr *)0)->field)      \
    }

static const HcaQpField fields[] = {
    FIELD(ATTR(CREATE), service),
    FIELD(ATTR(CREATE), privileged),
    FIELD(ATTR(CREATE), block_loopback),
    FIELD(ATTR(CREATE), pd),
    FIELD(ATTR(CREATE), uar),
    FIELD(ATTR(CREATE), sq_cqn),
    FIELD(ATTR(CREATE), rq_cqn),
    FIELD(ATTR(CREATE), sq_lkey),
    FIELD(ATTR(CREATE), sq_len),
    FIELD(ATTR(CREATE), sq_entry_log),
    FIELD(ATTR(CREATE), signals_all),
    FIELD(ATTR(CREATE), rq_lkey),
    FIELD(ATTR(CREATE), rq_len),
    FIELD(ATTR(CREATE), rq_entry_log),
    FIELD(ATTR(CREATE), wq_base),
    FIELD(ATTR(CREATE), sq_offset),
    FIELD(ATTR(CREATE), rq_offset),
    FIELD(ATTR(CREATE), rq_db),
    FIELD(ATTR(CREATE), uses_srq),
    FIELD(ATTR(CREATE), srqn),
    FIELD(ATTR(CREATE), xrcd),
    FIELD(ATTR(CREATE), counter_set),
    FIELD(ATTR(CREATE) | ATTR(PATH_MTU), mtu),
    FIELD(ATTR(CREATE) | ATTR(PATH_MTU), log_max_msg),
    FIELD(ATTR(AV), path),
    FIELD(ATTR(AV), slid),
    FIELD(ATTR(AV), static_rate),
    FIELD(ATTR(ALT_PATH), alt_path),
    FIELD(ATTR(PKEY_INDEX), pkey_index),
    FIELD(ATTR(PORT), port),
    FIELD(ATTR(QKEY), qkey),
    FIELD(ATTR(ACCESS_FLAGS), access),
    FIELD(ATTR(DEST_QPN), remote_qpn),
    FIELD(ATTR(RQ_PSN), rq_psn),
    FIELD(ATTR(SQ_PSN), sq_psn),
    FIELD(ATTR(MAX_QP_RD_ATOMIC), sra_max),
    FIELD(ATTR(MAX_DEST_RD_ATOMIC), rra_max),
    FIELD(ATTR(RETRY_CNT), retry_count),
    FIELD(ATTR(RNR_RETRY), rnr_retry),
    FIELD(ATTR(TIMEOUT), ack_timeout),
    FIELD(ATTR(MIN_RNR_TIMER), min_rnr_timer),
};

uint8_t hca_qp_attrs(const HcaQpTransitionRow *row, uint8_t service,
                     const HcaQpChange *change, uint32_t *attrs)
{
    uint32_t mask = change->mask;
    uint32_t required = row->attrs[service].required;
    uint32_t optional = row->attrs[service].optional;
    /* The transition says both states; the sizes are there at CREATE. */
    uint32_t tolerated = ATTR(STATE) | ATTR(CUR_STATE) | ATTR(CAP);
    uint32_t known = (required | optional | tolerated) & ~ATTR(CREATE);

    if (mask & ~known && !change->lenient) {
        return HCA_STAT_BAD_PARAM;
    }
    if (row->masked && (mask || change->lenient)) {
        *attrs = mask & required;
    } else {
        *attrs = required | (mask & optional);
    }
    return HCA_STAT_OK;
}

/* A work queue of @len bytes in entries of 2^@log bytes. */
static bool queue_ok(uint32_t len, uint32_t log, uint32_t min_log,
                     uint32_t max_log)
{
    return !len ||
           (log >= min_log && log <= max_log && len % (1u << log) == 0 &&
            len >> log <= 1u << HCA_MAX_LOG_WQES);
}

static bool sends_ok(HcaCxtMgt *cm, const HcaQpAttr *attr)
{
    if (!hca_service(attr->service)->sends) {
        return !attr->sq_len;
    }
    return hca_cq_find(cm, attr->sq_cqn) &&
           attr->sq_offset <= UINT32_MAX - attr->sq_len &&
           queue_ok(attr->sq_len, attr->sq_entry_log, 6, 10);
}

/* Receives come out of a queue of its own, or an SRQ that no XRC QP uses. */
static bool receives_ok(HcaCxtMgt *cm, const HcaQpAttr *attr)
{
    const HcaSrq *srq;

    if (!hca_service(attr->service)->receives) {
        return !attr->uses_srq && !attr->rq_len;
    }
    if (!hca_cq_find(cm, attr->rq_cqn)) {
        return false;
    }
    if (!attr->uses_srq) {
        return attr->rq_offset <= UINT32_MAX - attr->rq_len &&
               queue_ok(attr->rq_len, attr->rq_entry_log, 5, 9) &&
               attr->rq_db % sizeof(uint32_t) == 0;
    }
    srq = hca_srq_find(cm, attr->srqn);
    return srq && !srq->attr.xrc && !attr->rq_len;
}

/* What RST2INIT settles for the QP's life. */
static bool create_ok(HcaCxtMgt *cm, const HcaQpAttr *attr)
{
    return attr->pd < 1ull << cm->config->log_pds &&
           attr->uar < RDMA_HCA_NUM_UARS &&
           hca_qp_counter_set_ok(attr->counter_set) && sends_ok(cm, attr) &&
           receives_ok(cm, attr) &&
           (attr->service != RAW || hca_port_is_roce(cm->port)) &&
           (attr->service != TGT || attr->xrcd < 1u << HCA_LOG_XRCDS);
}

/* A connection leads to one peer, from an entry of the GID table. */
static bool path_ok(const HcaCxtMgt *cm, const HcaPath *path)
{
    return (!path->grh ||
            path->sgid_index < 1u << hca_gid_log_size(cm->port)) &&
           !(hca_port_is_roce(cm->port) && hca_gid_is_multicast(&path->dgid));
}

uint8_t hca_qp_check(HcaCxtMgt *cm, const HcaQpAttr *attr, uint32_t attrs)
{
    bool ok = true;

    if (attrs & ATTR(CREATE)) {
        ok &= create_ok(cm, attr);
    }
    if (attrs & ATTR(PKEY_INDEX)) {
        ok &= hca_port_pkey_index_ok(cm->port, attr->pkey_index);
    }
    if (attrs & ATTR(PORT)) {
        ok &= attr->port == RDMA_HCA_NUM_PORTS;
    }
    if (attrs & ATTR(AV)) {
        ok &= path_ok(cm, &attr->path);
    }
    if (attrs & ATTR(PATH_MTU)) {
        ok &= attr->mtu >= 1 && attr->mtu <= hca_port_mtu(cm->port);
    }
    if (attrs & ATTR(MAX_QP_RD_ATOMIC)) {
        ok &= attr->sra_max <= HCA_MAX_RD_ATOMIC;
    }
    if (attrs & ATTR(MAX_DEST_RD_ATOMIC)) {
        ok &= attr->rra_max <= HCA_MAX_RD_ATOMIC;
    }
    if (attrs & ATTR(SQ_PSN)) {
        ok &= attr->sq_psn <= HCA_PSN_MASK;
    }
    if (attrs & ATTR(DEST_QPN)) {
        ok &= attr->remote_qpn <= HCA_QPN_MASK;
    }
    return ok ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}

static void merge(HcaQpAttr *to, const HcaQpAttr *from, uint32_t attrs)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        const HcaQpField *f = &fields[i];

        if (attrs & f->attrs) {
            memcpy((uint8_t *)to + f->offset, (const uint8_t *)from + f->offset,
                   f->size);
        }
    }
}

/* A datagram is one packet, of the port's MTU; or a frame. */
static void derive_sizes(const HcaCxtMgt *cm, HcaQp *qp)
{
    const HcaQpAttr *attr = &qp->attr;
    const HcaServiceRow *service = hca_service(attr->service);
    uint8_t mtu = service->datagram ? hca_port_mtu(cm->port) : attr->mtu;

    qp->pmtu = mtu ? 128u << mtu : 0;
    qp->max_msg = attr->log_max_msg ? 1u << attr->log_max_msg : 1u << 31;
    if (service->raw) {
        qp->pmtu = qp->max_msg = HCA_ETH_MAX_FRAME;
    } else if (service->datagram) {
        qp->max_msg = MIN(qp->max_msg, qp->pmtu);
    }
}

/* Where the receive queue is; how far it has been used is its own. */
static void derive_recv_queue(HcaQp *qp)
{
    const HcaQpAttr *attr = &qp->attr;

    qp->rq.pd = attr->pd;
    qp->rq.lkey = attr->rq_lkey;
    qp->rq.base = attr->wq_base + attr->rq_offset;
    qp->rq.len = attr->rq_len;
    qp->rq.entry_log = attr->rq_entry_log;
    qp->rq.record = attr->rq_len ? attr->rq_db : 0;
}

/* PSNs and counters that the engines then carry on. */
static void start_engines(HcaQp *qp, uint32_t attrs)
{
    if (attrs & ATTR(RQ_PSN)) {
        qp->resp.expected_psn = qp->attr.rq_psn;
    }
    if (attrs & ATTR(SQ_PSN)) {
        qp->req.next_psn = qp->attr.sq_psn;
        qp->req.unacked_psn = qp->attr.sq_psn;
    }
    if (attrs & ATTR(RETRY_CNT)) {
        qp->req.retries_left = qp->attr.retry_count;
    }
    if (attrs & ATTR(RNR_RETRY)) {
        qp->req.rnr_retries_left = qp->attr.rnr_retry;
    }
}

void hca_qp_derive(const HcaCxtMgt *cm, HcaQp *qp)
{
    derive_sizes(cm, qp);
    derive_recv_queue(qp);
    hca_qp_find_counters(cm, qp);
}

void hca_qp_take(const HcaCxtMgt *cm, HcaQp *qp, const HcaQpAttr *attr,
                 uint32_t attrs)
{
    merge(&qp->attr, attr, attrs);
    hca_qp_derive(cm, qp);
    start_engines(qp, attrs);
}

#define MAX_MTU 5 /* code of 4096 bytes */

/* Who sends has a code that there is: INIT2RTR looks at it. */
static bool mtu_ok(const HcaQp *qp)
{
    bool looked_at = qp->state != HCA_QP_INIT && qp->state != HCA_QP_ERR &&
                     !hca_service(qp->attr.service)->datagram;

    return looked_at ? qp->attr.mtu >= 1 && qp->attr.mtu <= MAX_MTU
                     : qp->attr.mtu <= 7;
}

/* What a context has so many bits for. */
static bool widths_ok(const HcaQpAttr *attr)
{
    return attr->log_max_msg <= 31 && attr->retry_count <= 7 &&
           attr->rnr_retry <= 7 && attr->ack_timeout <= 31 &&
           attr->min_rnr_timer <= 31 && attr->rq_psn <= HCA_PSN_MASK &&
           hca_path_ok(&attr->path);
}

/* An attribute that no transition has brought yet is 0, which may be no value. */
bool hca_qp_attr_ok(HcaCxtMgt *cm, const HcaQp *qp)
{
    const HcaQpAttr *attr = &qp->attr;
    uint32_t brought = ATTR(CREATE) | ATTR(AV) | ATTR(MAX_QP_RD_ATOMIC) |
                       ATTR(MAX_DEST_RD_ATOMIC) | ATTR(SQ_PSN) | ATTR(DEST_QPN);

    brought |= attr->pkey_index ? ATTR(PKEY_INDEX) : 0;
    brought |= attr->port ? ATTR(PORT) : 0;
    return mtu_ok(qp) && widths_ok(attr) &&
           hca_qp_check(cm, attr, brought) == HCA_STAT_OK;
}
