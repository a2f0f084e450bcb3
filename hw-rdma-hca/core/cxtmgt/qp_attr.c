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
 * ALT_PATH is kept for QUERY_QP and PATH_MIG_STATE has no effect.
 */
#include <stddef.h>
#include <string.h>

#include "../wire/gid.h"
#include "cxtmgt_int.h"

#define IN(state) (1u << HCA_QP_##state)
#define ATTR(name) RDMA_HCA_QP_ATTR_##name

#define RC HCA_SERVICE_RC
#define UC HCA_SERVICE_UC
#define UD HCA_SERVICE_UD

#define CONNECTED_INIT (ATTR(PKEY_INDEX) | ATTR(PORT) | ATTR(ACCESS_FLAGS))
#define DATAGRAM_INIT (ATTR(PKEY_INDEX) | ATTR(PORT) | ATTR(QKEY))
#define CONNECTED_RTR                                                          \
    (ATTR(AV) | ATTR(PATH_MTU) | ATTR(DEST_QPN) | ATTR(RQ_PSN))
#define MIGRATION (ATTR(ALT_PATH) | ATTR(PATH_MIG_STATE))

static const HcaQpTransition transitions[] = {
    {
        .op = RDMA_HCA_CMD_RST2INIT_QPEE,
        .from = IN(RST),
        .to = HCA_QP_INIT,
        .attrs = {
            [RC] = { CONNECTED_INIT | HCA_QP_ATTR_CREATE, 0 },
            [UC] = { CONNECTED_INIT | HCA_QP_ATTR_CREATE, 0 },
            [UD] = { DATAGRAM_INIT | HCA_QP_ATTR_CREATE, 0 },
        },
    }, {
        .op = RDMA_HCA_CMD_INIT2INIT_QPEE,
        .from = IN(INIT),
        .to = HCA_QP_INIT,
        .masked = true,
        .attrs = {
            [RC] = { CONNECTED_INIT, 0 },
            [UC] = { CONNECTED_INIT, 0 },
            [UD] = { DATAGRAM_INIT, 0 },
        },
    }, {
        .op = RDMA_HCA_CMD_INIT2RTR_QPEE,
        .from = IN(INIT),
        .to = HCA_QP_RTR,
        .attrs = {
            [RC] = { CONNECTED_RTR | ATTR(MAX_DEST_RD_ATOMIC) |
                         ATTR(MIN_RNR_TIMER),
                     ATTR(ALT_PATH) | ATTR(ACCESS_FLAGS) | ATTR(PKEY_INDEX) },
            [UC] = { CONNECTED_RTR,
                     ATTR(ALT_PATH) | ATTR(ACCESS_FLAGS) | ATTR(PKEY_INDEX) },
            [UD] = { 0, ATTR(PKEY_INDEX) | ATTR(QKEY) },
        },
    }, {
        .op = RDMA_HCA_CMD_RTR2RTS_QPEE,
        .from = IN(RTR),
        .to = HCA_QP_RTS,
        .attrs = {
            [RC] = { ATTR(TIMEOUT) | ATTR(RETRY_CNT) | ATTR(RNR_RETRY) |
                         ATTR(SQ_PSN) | ATTR(MAX_QP_RD_ATOMIC),
                     MIGRATION | ATTR(ACCESS_FLAGS) | ATTR(MIN_RNR_TIMER) },
            [UC] = { ATTR(SQ_PSN), MIGRATION | ATTR(ACCESS_FLAGS) },
            [UD] = { ATTR(SQ_PSN), ATTR(QKEY) },
        },
    }, {
        .op = RDMA_HCA_CMD_RTS2RTS_QPEE,
        .from = IN(RTS),
        .to = HCA_QP_RTS,
        .attrs = {
            [RC] = { 0, MIGRATION | ATTR(ACCESS_FLAGS) | ATTR(MIN_RNR_TIMER) },
            [UC] = { 0, MIGRATION | ATTR(ACCESS_FLAGS) },
            [UD] = { 0, ATTR(QKEY) },
        },
    }, {
        .op = RDMA_HCA_CMD_SQERR2RTS_QPEE,
        .from = IN(SQE),
        .to = HCA_QP_RTS,
        .attrs = {
            [UC] = { 0, ATTR(ACCESS_FLAGS) },
            [UD] = { 0, ATTR(QKEY) },
        },
    }, {
        .op = RDMA_HCA_CMD_RTS2SQD_QPEE,
        .from = IN(RTS),
        .to = HCA_QP_SQD,
        .inbox_optional = true,
        .attrs = {
            [RC] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [UC] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
            [UD] = { 0, ATTR(EN_SQD_ASYNC_NOTIFY) },
        },
    }, {
        .op = RDMA_HCA_CMD_SQD2SQD_QPEE,
        .from = IN(SQD),
        .to = HCA_QP_SQD,
        .attrs = {
            [RC] = { 0, MIGRATION | ATTR(PORT) | ATTR(AV) | ATTR(TIMEOUT) |
                            ATTR(RETRY_CNT) | ATTR(RNR_RETRY) |
                            ATTR(ACCESS_FLAGS) | ATTR(PKEY_INDEX) |
                            ATTR(MIN_RNR_TIMER) | ATTR(MAX_QP_RD_ATOMIC) |
                            ATTR(MAX_DEST_RD_ATOMIC) },
            [UC] = { 0, MIGRATION | ATTR(AV) | ATTR(ACCESS_FLAGS) |
                            ATTR(PKEY_INDEX) },
            [UD] = { 0, ATTR(PKEY_INDEX) | ATTR(QKEY) },
        },
    }, {
        .op = RDMA_HCA_CMD_SQD2RTS_QPEE,
        .from = IN(SQD),
        .to = HCA_QP_RTS,
        .attrs = {
            [RC] = { 0, MIGRATION | ATTR(ACCESS_FLAGS) | ATTR(MIN_RNR_TIMER) },
            [UC] = { 0, MIGRATION | ATTR(ACCESS_FLAGS) },
            [UD] = { 0, ATTR(QKEY) },
        },
    }, {
        .op = RDMA_HCA_CMD_2ERR_QPEE,
        .from = IN(INIT) | IN(RTR) | IN(RTS) | IN(SQE) | IN(SQD) | IN(ERR),
        .to = HCA_QP_ERR,
        .inbox_optional = true,
    }, {
        .op = RDMA_HCA_CMD_ERR2RST_QPEE,
        .from = IN(RST) | IN(INIT) | IN(RTR) | IN(RTS) | IN(SQE) | IN(SQD) |
                IN(ERR),
        .to = HCA_QP_RST,
        .inbox_optional = true,
    },
};

/* The words of a context that an attribute is made of. */
typedef struct HcaQpField {
    uint32_t attr;
    uint16_t offset;
    uint32_t mask;
} HcaQpField;

#define FIELD(attr, word, mask)                                                \
    {                                                                          \
        ATTR(attr), offsetof(struct rdma_hca_qpc, word), mask                  \
    }
#define CREATE(word, mask)                                                     \
    {                                                                          \
        HCA_QP_ATTR_CREATE, offsetof(struct rdma_hca_qpc, word), mask          \
    }
#define WORD 0xffffffffu

static const HcaQpField fields[] = {
    CREATE(flags, RDMA_HCA_QPC_SERVICE),
    CREATE(mtu_msgmax_sz, WORD),
    CREATE(usr_page, WORD),
    CREATE(local_qpn, WORD),
    CREATE(pd, WORD),
    CREATE(cqn_snd, WORD),
    CREATE(snd_wqe_base_l, WORD),
    CREATE(snd_wqe_len, WORD),
    CREATE(cqn_rcv, WORD),
    CREATE(rcv_wqe_base_l, WORD),
    CREATE(rcv_wqe_len, WORD),
    CREATE(rq_db_h, WORD),
    CREATE(rq_db_l, WORD),
    FIELD(ACCESS_FLAGS, params1, RDMA_HCA_QPC_ACCESS),
    FIELD(PKEY_INDEX, port_pkey, RDMA_HCA_QPC_PKEY_INDEX),
    FIELD(PORT, port_pkey, RDMA_HCA_QPC_PORT),
    FIELD(QKEY, qkey, WORD),
    FIELD(AV, rnr_retry_path, RDMA_HCA_QPC_GRH | RDMA_HCA_QPC_MLPATH),
    FIELD(AV, ackto_path,
          RDMA_HCA_QPC_SGID_INDEX | RDMA_HCA_QPC_STATIC_RATE |
              RDMA_HCA_QPC_HOP_LIMIT),
    FIELD(AV, sl_tclass_flowlabel, WORD),
    FIELD(AV, rgid[0], WORD),
    FIELD(AV, rgid[1], WORD),
    FIELD(AV, rgid[2], WORD),
    FIELD(AV, rgid[3], WORD),
    FIELD(AV, dlid_slid, WORD),
    FIELD(AV, smac_h, WORD),
    FIELD(AV, dmac_h, WORD),
    FIELD(AV, sip, WORD),
    FIELD(AV, dip, WORD),
    FIELD(PATH_MTU, mtu_msgmax_sz, RDMA_HCA_QPC_MTU | RDMA_HCA_QPC_MSGMAX),
    FIELD(TIMEOUT, ackto_path, RDMA_HCA_QPC_ACK_TIMEOUT),
    FIELD(RETRY_CNT, rnr_retry_path, RDMA_HCA_QPC_RETRY_COUNT),
    FIELD(RNR_RETRY, rnr_retry_path, RDMA_HCA_QPC_RNR_RETRY),
    FIELD(RQ_PSN, rnr_nextrecvpsn, RDMA_HCA_QPC_PSN),
    FIELD(MAX_QP_RD_ATOMIC, params1, RDMA_HCA_QPC_SRA_MAX),
    FIELD(ALT_PATH, alt_path[0], WORD),
    FIELD(ALT_PATH, alt_path[1], WORD),
    FIELD(ALT_PATH, alt_path[2], WORD),
    FIELD(MIN_RNR_TIMER, rnr_nextrecvpsn, RDMA_HCA_QPC_MIN_RNR_TIMER),
    FIELD(SQ_PSN, next_send_psn, WORD),
    FIELD(MAX_DEST_RD_ATOMIC, params1, RDMA_HCA_QPC_RRA_MAX),
    FIELD(DEST_QPN, remote_qpn, WORD),
};

const HcaQpTransition *hca_qp_transition(uint16_t op)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(transitions); i++) {
        if (transitions[i].op == op) {
            return &transitions[i];
        }
    }
    return NULL;
}

uint8_t hca_qp_attrs(const HcaQpTransition *row, uint8_t service, uint32_t mask,
                     uint32_t *attrs)
{
    uint32_t required = row->attrs[service].required;
    uint32_t optional = row->attrs[service].optional;
    /* The command says both states; the sizes are in its mailbox. */
    uint32_t tolerated = ATTR(STATE) | ATTR(CUR_STATE) | ATTR(CAP);
    uint32_t known = (required | optional | tolerated) & ~HCA_QP_ATTR_CREATE;

    if (mask & ~known) {
        return HCA_STAT_BAD_PARAM;
    }
    if (row->masked && mask) {
        *attrs = mask & required;
    } else {
        *attrs = required | (mask & optional);
    }
    return HCA_STAT_OK;
}

static __be32 *word_at(struct rdma_hca_qpc *qpc, uint16_t offset)
{
    return (__be32 *)qpc + offset / sizeof(__be32);
}

void hca_qp_merge(struct rdma_hca_qpc *to, const struct rdma_hca_qpc *from,
                  uint32_t attrs)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        const HcaQpField *f = &fields[i];
        const __be32 *source = (const __be32 *)from + f->offset / 4;
        __be32 *target = word_at(to, f->offset);
        uint32_t mask = GUINT32_TO_BE(f->mask);

        if (attrs & f->attr) {
            *target = (*target & ~mask) | (*source & mask);
        }
    }
}

#define GET(field, word) RDMA_HCA_GET(RDMA_HCA_QPC_##field, word)

static uint32_t be(__be32 word)
{
    return GUINT32_FROM_BE(word);
}

/* A work queue of @len bytes in entries of 2^@log bytes. */
static bool queue_ok(uint32_t len, uint32_t log, uint32_t min_log,
                     uint32_t max_log)
{
    return !len ||
           (log >= min_log && log <= max_log && len % (1u << log) == 0 &&
            len >> log <= 1u << HCA_MAX_LOG_WQES);
}

/* What RST2INIT settles for the QP's life. */
static bool create_ok(HcaCxtMgt *cm, const struct rdma_hca_qpc *qpc)
{
    uint32_t sizes = be(qpc->mtu_msgmax_sz);
    uint32_t service = GET(SERVICE, be(qpc->flags));

    return (service == RC || service == UC || service == UD) &&
           be(qpc->pd) < 1ull << cm->config->log_pds &&
           GET(UAR, be(qpc->usr_page)) < RDMA_HCA_NUM_UARS &&
           hca_cq_find(cm, be(qpc->cqn_snd)) &&
           hca_cq_find(cm, be(qpc->cqn_rcv)) &&
           queue_ok(be(qpc->snd_wqe_len), GET(SQ_ENTRY_SZ, sizes), 6, 10) &&
           queue_ok(be(qpc->rcv_wqe_len), GET(RQ_ENTRY_SZ, sizes), 5, 9) &&
           be(qpc->rq_db_l) % sizeof(uint32_t) == 0;
}

static bool mtu_ok(const HcaCxtMgt *cm, uint32_t mtu)
{
    return mtu >= 1 && mtu <= hca_port_mtu(cm->port);
}

/* A connection leads to one peer, from an entry of the GID table. */
static bool path_ok(const HcaCxtMgt *cm, const struct rdma_hca_qpc *qpc)
{
    bool grh = GET(GRH, be(qpc->rnr_retry_path));
    HcaGid dgid = hca_gid_of_ipv4(be(qpc->dip));

    if (grh) {
        memcpy(dgid.raw, qpc->rgid, sizeof(dgid.raw));
    }
    return (!grh || GET(SGID_INDEX, be(qpc->ackto_path)) <
                        1u << hca_gid_log_size(cm->port)) &&
           !(hca_port_is_roce(cm->port) && hca_gid_is_multicast(&dgid));
}

uint8_t hca_qp_check(HcaCxtMgt *cm, const struct rdma_hca_qpc *qpc,
                     uint32_t attrs)
{
    uint32_t port = be(qpc->port_pkey);
    uint32_t params = be(qpc->params1);
    bool ok = true;

    if (attrs & HCA_QP_ATTR_CREATE) {
        ok &= create_ok(cm, qpc);
    }
    if (attrs & ATTR(PKEY_INDEX)) {
        ok &= GET(PKEY_INDEX, port) < hca_port_num_pkeys(cm->port);
    }
    if (attrs & ATTR(PORT)) {
        ok &= GET(PORT, port) == RDMA_HCA_NUM_PORTS;
    }
    if (attrs & ATTR(AV)) {
        ok &= path_ok(cm, qpc);
    }
    if (attrs & ATTR(PATH_MTU)) {
        ok &= mtu_ok(cm, GET(MTU, be(qpc->mtu_msgmax_sz)));
    }
    if (attrs & ATTR(MAX_QP_RD_ATOMIC)) {
        ok &= GET(SRA_MAX, params) <= HCA_MAX_RD_ATOMIC;
    }
    if (attrs & ATTR(MAX_DEST_RD_ATOMIC)) {
        ok &= GET(RRA_MAX, params) <= HCA_MAX_RD_ATOMIC;
    }
    if (attrs & ATTR(SQ_PSN)) {
        ok &= be(qpc->next_send_psn) <= HCA_PSN_MASK;
    }
    if (attrs & ATTR(DEST_QPN)) {
        ok &= be(qpc->remote_qpn) <= HCA_QPN_MASK;
    }
    return ok ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}

/* The words that differ by link layer. @path->grh is known. */
static void decode_addresses(const HcaCxtMgt *cm, HcaPath *path,
                             const struct rdma_hca_qpc *qpc)
{
    uint32_t lids = be(qpc->dlid_slid);

    memcpy(path->dgid.raw, qpc->rgid, sizeof(path->dgid.raw));
    if (!hca_port_is_roce(cm->port)) {
        path->dlid = GET(DLID, lids);
        /* From the port's attributes (table A2-1); its LMC is 0. */
        path->slid = hca_port_lid(cm->port);
        return;
    }
    hca_path_mac(path->dmac, be(qpc->dmac_h), GET(DLID, lids));
    if (!path->grh) {
        hca_path_mac(path->smac, be(qpc->smac_h), GET(SLID, lids));
        path->sip = be(qpc->sip);
        path->dgid = hca_gid_of_ipv4(be(qpc->dip));
    }
}

static void decode_path(const HcaCxtMgt *cm, HcaPath *path,
                        const struct rdma_hca_qpc *qpc)
{
    uint32_t retry = be(qpc->rnr_retry_path);
    uint32_t ackto = be(qpc->ackto_path);
    uint32_t flow = be(qpc->sl_tclass_flowlabel);

    path->sl = GET(SL, flow);
    path->grh = GET(GRH, retry);
    path->sgid_index = GET(SGID_INDEX, ackto);
    path->tclass = GET(TCLASS, flow);
    path->hop_limit = GET(HOP_LIMIT, ackto);
    path->flow_label = GET(FLOW_LABEL, flow);
    decode_addresses(cm, path, qpc);
}

static void decode_sizes(const HcaCxtMgt *cm, HcaQp *qp,
                         const struct rdma_hca_qpc *qpc)
{
    uint32_t sizes = be(qpc->mtu_msgmax_sz);
    uint32_t log_max = GET(MSGMAX, sizes);

    qp->mtu = qp->service == UD ? hca_port_mtu(cm->port) : GET(MTU, sizes);
    qp->pmtu = qp->mtu ? 128u << qp->mtu : 0;
    /* 0: no limit but that of the wire. */
    qp->max_msg = log_max ? 1u << log_max : 1u << 31;
    if (qp->service == UD) {
        qp->max_msg = MIN(qp->max_msg, qp->pmtu);
    }
    qp->sq_len = be(qpc->snd_wqe_len);
    qp->sq_entry_log = GET(SQ_ENTRY_SZ, sizes);
    qp->rq.len = be(qpc->rcv_wqe_len);
    qp->rq.entry_log = GET(RQ_ENTRY_SZ, sizes);
}

void hca_qp_decode(const HcaCxtMgt *cm, HcaQp *qp,
                   const struct rdma_hca_qpc *qpc)
{
    uint32_t port = be(qpc->port_pkey);
    uint32_t retry = be(qpc->rnr_retry_path);
    uint32_t params = be(qpc->params1);

    qp->service = GET(SERVICE, be(qpc->flags));
    decode_sizes(cm, qp, qpc);
    decode_path(cm, &qp->path, qpc);
    qp->pd = be(qpc->pd);
    qp->rq.pd = qp->pd;
    qp->uar = GET(UAR, be(qpc->usr_page));
    qp->remote_qpn = be(qpc->remote_qpn);
    qp->pkey_index = GET(PKEY_INDEX, port);
    qp->port = GET(PORT, port);
    qp->qkey = be(qpc->qkey);
    qp->access = GET(ACCESS, params);
    qp->sq_cqn = be(qpc->cqn_snd);
    qp->rq_cqn = be(qpc->cqn_rcv);
    qp->sq_lkey = be(qpc->snd_wqe_base_l);
    qp->rq.lkey = be(qpc->rcv_wqe_base_l);
    qp->rq.record = (uint64_t)be(qpc->rq_db_h) << 32 | be(qpc->rq_db_l);
    qp->sra_max = GET(SRA_MAX, params);
    qp->rra_max = GET(RRA_MAX, params);
    qp->retry_count = GET(RETRY_COUNT, retry);
    qp->rnr_retry = GET(RNR_RETRY, retry);
    qp->ack_timeout = GET(ACK_TIMEOUT, be(qpc->ackto_path));
    qp->min_rnr_timer = GET(MIN_RNR_TIMER, be(qpc->rnr_nextrecvpsn));
}

void hca_qp_encode(const HcaQp *qp, struct rdma_hca_qpc *qpc)
{
    bool draining = qp->state == HCA_QP_SQD && !qp->req.drained;

    *qpc = qp->qpc;
    qpc->flags = GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_QPC_STATE, qp->state) |
        RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, qp->service) |
        RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_DRAINING, draining));
    qpc->local_qpn = GUINT32_TO_BE(qp->qpn);
    qpc->next_send_psn = GUINT32_TO_BE(qp->req.next_psn);
    qpc->last_acked_psn = GUINT32_TO_BE(qp->req.unacked_psn);
    qpc->rnr_nextrecvpsn = GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_QPC_MIN_RNR_TIMER, qp->min_rnr_timer) |
        qp->resp.expected_psn);
    qpc->rmsn = GUINT32_TO_BE(qp->resp.msn);
    qpc->wqe_counter = GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_COUNTER, qp->rq.consumed));
}
