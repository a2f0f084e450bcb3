/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver-parts.h"

#include <string.h>

/* No CQ has this number. */
#define NO_CQ 0xfffff0u

void qp_config_init(QpConfig *config, uint32_t pd, Cq *cq)
{
    *config = (QpConfig) {
        .service = RDMA_HCA_QP_ST_RC,
        .privileged = true,
        .pd = pd,
        .uar = cq->uar,
        .send_cq = cq,
        .recv_cq = cq,
        .sq_entries = 64,
        .rq_entries = 64,
        .log_sq_entry = 8,
        .log_rq_entry = 7,
    };
}

static void ring_init(Driver *drv, Ring *ring, uint32_t pd, uint64_t va,
                      unsigned entries, unsigned log_entry)
{
    g_assert_true((entries & (entries - 1)) == 0);
    ring->entries = entries;
    ring->log_entry = log_entry;
    if (entries) {
        ring->wr_id = g_new0(uint64_t, entries);
        ring->mr = mr_new(drv, pd, va, (uint64_t)entries << log_entry, 0);
    }
}

Qp *qp_new_number(Driver *drv, const QpConfig *config, uint32_t qpn)
{
    Qp *qp = g_new0(Qp, 1);

    qp->drv = drv;
    qp->qpn = qpn;
    qp->service = config->service;
    qp->privileged = config->privileged;
    qp->uar = config->uar;
    qp->pd = config->pd;
    qp->send_cq = config->send_cq;
    qp->recv_cq = config->recv_cq;
    qp->srq = config->srq;
    qp->xrcd = config->xrcd;
    qp->counter_set = config->counter_set;
    qp->rq_record = record_new(drv);
    ring_init(drv, &qp->sq, qp->pd, UINT64_C(0x6000000000) + qpn * 0x100000,
              config->sq_entries, config->log_sq_entry);
    ring_init(drv, &qp->rq, qp->pd, UINT64_C(0x7000000000) + qpn * 0x100000,
              config->srq ? 0 : config->rq_entries, config->log_rq_entry);
    g_assert_null(g_hash_table_lookup(drv->qps, GUINT_TO_POINTER(qpn)));
    g_hash_table_insert(drv->qps, GUINT_TO_POINTER(qpn), qp);
    return qp;
}

Qp *qp_new(Driver *drv, const QpConfig *config)
{
    return qp_new_number(drv, config, drv->next_qpn++);
}

void qp_destroy(Qp *qp)
{
    Driver *drv = qp->drv;

    driver_must(qp_to_rst(qp));
    g_hash_table_remove(drv->qps, GUINT_TO_POINTER(qp->qpn));
    if (qp->sq.mr) {
        driver_must(mr_deregister(qp->sq.mr));
    }
    if (qp->rq.mr) {
        driver_must(mr_deregister(qp->rq.mr));
    }
    qp_free(qp);
}

void qp_attr_init(QpAttr *attr)
{
    *attr = (QpAttr) {
        .access = RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |
                  RDMA_HCA_ACCESS_REMOTE_ATOMIC,
        .mtu = 3,
        .sq_psn = 0x123456,
        .rq_psn = 0x123456,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .qkey = 0x11111111,
    };
}

static void qpc_init(const Qp *qp, struct rdma_hca_qpc *qpc, unsigned state,
                     uint32_t mask)
{
    memset(qpc, 0, sizeof(*qpc));
    qpc->opt_param_mask = GUINT32_TO_BE(mask | RDMA_HCA_QP_ATTR_STATE);
    qpc->flags = PREP_BE(RDMA_HCA_QPC_STATE, state) |
                 PREP_BE(RDMA_HCA_QPC_SERVICE, qp->service);
    qpc->local_qpn = GUINT32_TO_BE(qp->qpn);
}

static uint8_t qp_modify(Qp *qp, uint16_t op, struct rdma_hca_qpc *qpc)
{
    return driver_cmd_in(qp->drv, op, qpc, sizeof(*qpc), qp->qpn, 0);
}

static uint32_t init_mask(const Qp *qp)
{
    uint32_t mask = RDMA_HCA_QP_ATTR_PKEY_INDEX | RDMA_HCA_QP_ATTR_PORT;

    switch (qp->service) {
    case RDMA_HCA_QP_ST_RAW:
        return RDMA_HCA_QP_ATTR_PORT;
    case RDMA_HCA_QP_ST_UD:
        return mask | RDMA_HCA_QP_ATTR_QKEY;
    default:
        return mask | RDMA_HCA_QP_ATTR_ACCESS_FLAGS;
    }
}

/* Of a service whose QPs have a peer each. */
static bool is_connected(const Qp *qp)
{
    return qp->service != RDMA_HCA_QP_ST_UD &&
           qp->service != RDMA_HCA_QP_ST_RAW;
}

uint8_t qp_to_init(Qp *qp, const QpAttr *attr)
{
    struct rdma_hca_qpc qpc;

    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_INIT, init_mask(qp));
    qpc.flags |= PREP_BE(RDMA_HCA_QPC_PRIVILEGED, qp->privileged) |
                 PREP_BE(RDMA_HCA_QPC_BLOCK_LOOPBACK, qp->block_loopback);
    qpc.mtu_msgmax_sz = PREP_BE(RDMA_HCA_QPC_MSGMAX, 31) |
                        PREP_BE(RDMA_HCA_QPC_SQ_ENTRY_SZ, qp->sq.log_entry) |
                        PREP_BE(RDMA_HCA_QPC_RQ_ENTRY_SZ, qp->rq.log_entry);
    qpc.usr_page = PREP_BE(RDMA_HCA_QPC_UAR, qp->uar);
    qpc.port_pkey = PREP_BE(RDMA_HCA_QPC_PORT, 1) |
                    PREP_BE(RDMA_HCA_QPC_PKEY_INDEX, attr->pkey_index);
    qpc.pd = GUINT32_TO_BE(qp->pd);
    qpc.params1 = PREP_BE(RDMA_HCA_QPC_ACCESS, attr->access) |
                  PREP_BE(RDMA_HCA_QPC_FLUSH,
                          RDMA_HCA_GET(RDMA_HCA_ACCESS_FLUSH, attr->access));
    qpc.cqn_snd = GUINT32_TO_BE(qp->send_cq ? qp->send_cq->cqn : NO_CQ);
    qpc.cqn_rcv = GUINT32_TO_BE(qp->recv_cq ? qp->recv_cq->cqn : NO_CQ);
    if (qp->srq) {
        qpc.srq = GUINT32_TO_BE(RDMA_HCA_QPC_USES_SRQ | qp->srq->srqn);
    }
    qpc.xrcd = GUINT32_TO_BE(qp->xrcd);
    qpc.counter_set = GUINT32_TO_BE(qp->counter_set);
    if (qp->sq.mr) {
        qpc.snd_wqe_base_l = GUINT32_TO_BE(qp->sq.mr->key);
        qpc.snd_wqe_len = GUINT32_TO_BE(qp->sq.mr->len);
    }
    if (qp->rq.mr) {
        qpc.rcv_wqe_base_l = GUINT32_TO_BE(qp->rq.mr->key);
        qpc.rcv_wqe_len = GUINT32_TO_BE(qp->rq.mr->len);
        qpc.rq_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(qp->rq_record));
        qpc.rq_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(qp->rq_record));
    }
    qpc.qkey = GUINT32_TO_BE(attr->qkey);
    return qp_modify(qp, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc);
}

/* A MAC's first four bytes and its last two. */
uint32_t mac_high(const uint8_t *mac)
{
    return (uint32_t)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3];
}

uint16_t mac_low(const uint8_t *mac)
{
    return mac[4] << 8 | mac[5];
}

static void put_roce_path(struct rdma_hca_qpc *qpc, const RocePath *path)
{
    qpc->dlid_slid = PREP_BE(RDMA_HCA_QPC_DLID, mac_low(path->dmac));
    qpc->dmac_h = GUINT32_TO_BE(mac_high(path->dmac));
    if (path->document) {
        qpc->dlid_slid |= PREP_BE(RDMA_HCA_QPC_SLID, mac_low(path->smac));
        qpc->smac_h = GUINT32_TO_BE(mac_high(path->smac));
        qpc->sip = GUINT32_TO_BE(path->sip);
        qpc->dip = GUINT32_TO_BE(path->dip);
    }
    qpc->ackto_path |= PREP_BE(RDMA_HCA_QPC_SGID_INDEX, path->sgid_index);
}

uint8_t hop_limit(const RocePath *path)
{
    return path->hop_limit ? path->hop_limit : 64;
}

static void put_path(const Driver *drv, struct rdma_hca_qpc *qpc,
                     const QpAttr *attr)
{
    if (drv->roce) {
        put_roce_path(qpc, &attr->roce);
    } else {
        qpc->dlid_slid = PREP_BE(RDMA_HCA_QPC_DLID, attr->dlid);
        qpc->rnr_retry_path |= PREP_BE(RDMA_HCA_QPC_MLPATH, attr->path_bits);
        qpc->ackto_path |= PREP_BE(RDMA_HCA_QPC_SGID_INDEX,
                                   attr->roce.sgid_index);
    }
    qpc->sl_tclass_flowlabel = PREP_BE(RDMA_HCA_QPC_SL, attr->sl) |
                               PREP_BE(RDMA_HCA_QPC_TCLASS, attr->tclass) |
                               PREP_BE(RDMA_HCA_QPC_FLOW_LABEL,
                                       attr->roce.flow_label);
    qpc->rnr_retry_path |= PREP_BE(RDMA_HCA_QPC_GRH, attr->grh);
    qpc->ackto_path |= PREP_BE(RDMA_HCA_QPC_HOP_LIMIT, hop_limit(&attr->roce));
    memcpy(qpc->rgid, attr->dgid, sizeof(attr->dgid));
}

uint8_t qp_to_rtr(Qp *qp, const QpAttr *attr)
{
    struct rdma_hca_qpc qpc;
    uint32_t mask = 0;

    if (is_connected(qp)) {
        mask |= RDMA_HCA_QP_ATTR_AV | RDMA_HCA_QP_ATTR_PATH_MTU |
                RDMA_HCA_QP_ATTR_DEST_QPN | RDMA_HCA_QP_ATTR_RQ_PSN;
    }
    if (qp->service == RDMA_HCA_QP_ST_RC ||
        qp->service == RDMA_HCA_QP_ST_XRC_TGT) {
        mask |= RDMA_HCA_QP_ATTR_MIN_RNR_TIMER |
                RDMA_HCA_QP_ATTR_MAX_DEST_RD_ATOMIC;
    }
    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_RTR, mask);
    qpc.mtu_msgmax_sz = PREP_BE(RDMA_HCA_QPC_MTU, attr->mtu) |
                        PREP_BE(RDMA_HCA_QPC_MSGMAX, 31);
    qpc.remote_qpn = GUINT32_TO_BE(attr->dest_qpn);
    put_path(qp->drv, &qpc, attr);
    qpc.params1 = PREP_BE(RDMA_HCA_QPC_RRA_MAX, attr->max_dest_rd_atomic);
    qpc.rnr_nextrecvpsn = PREP_BE(RDMA_HCA_QPC_PSN, attr->rq_psn) |
                          PREP_BE(RDMA_HCA_QPC_MIN_RNR_TIMER,
                                  attr->min_rnr_timer);
    return qp_modify(qp, RDMA_HCA_CMD_INIT2RTR_QPEE, &qpc);
}

uint8_t qp_to_rts(Qp *qp, const QpAttr *attr)
{
    struct rdma_hca_qpc qpc;
    uint32_t mask = qp->service == RDMA_HCA_QP_ST_RAW ? 0
                                                      : RDMA_HCA_QP_ATTR_SQ_PSN;

    if (qp->service == RDMA_HCA_QP_ST_RC ||
        qp->service == RDMA_HCA_QP_ST_XRC_INI) {
        mask |= RDMA_HCA_QP_ATTR_TIMEOUT | RDMA_HCA_QP_ATTR_RETRY_CNT |
                RDMA_HCA_QP_ATTR_RNR_RETRY | RDMA_HCA_QP_ATTR_MAX_QP_RD_ATOMIC;
    } else if (qp->service == RDMA_HCA_QP_ST_XRC_TGT) {
        mask |= RDMA_HCA_QP_ATTR_TIMEOUT;
    }
    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_RTS, mask);
    qpc.rnr_retry_path = PREP_BE(RDMA_HCA_QPC_RNR_RETRY, attr->rnr_retry) |
                         PREP_BE(RDMA_HCA_QPC_RETRY_COUNT, attr->retry_cnt);
    qpc.ackto_path = PREP_BE(RDMA_HCA_QPC_ACK_TIMEOUT, attr->timeout);
    qpc.params1 = PREP_BE(RDMA_HCA_QPC_SRA_MAX, attr->max_rd_atomic);
    qpc.next_send_psn = PREP_BE(RDMA_HCA_QPC_PSN, attr->sq_psn);
    return qp_modify(qp, RDMA_HCA_CMD_RTR2RTS_QPEE, &qpc);
}

void qp_bring_up(Qp *qp, const QpAttr *attr)
{
    driver_must(qp_to_init(qp, attr));
    driver_must(qp_to_rtr(qp, attr));
    driver_must(qp_to_rts(qp, attr));
}

uint8_t qp_to_err(Qp *qp)
{
    return driver_cmd(qp->drv, RDMA_HCA_CMD_2ERR_QPEE, 0, qp->qpn,
                      RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);
}

uint8_t qp_to_rst(Qp *qp)
{
    uint8_t status = driver_cmd(qp->drv, RDMA_HCA_CMD_ERR2RST_QPEE, 0, qp->qpn,
                                RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);

    if (status == RDMA_HCA_STAT_OK) {
        if (qp->send_cq) {
            cq_clean(qp->send_cq, qp->qpn);
        }
        if (qp->recv_cq) {
            cq_clean(qp->recv_cq, qp->qpn);
        }
        qp->sq.head = qp->sq.tail = 0;
        qp->rq.head = qp->rq.tail = 0;
        host_write_le32(qp->drv->host, qp->rq_record, 0);
    }
    return status;
}

uint8_t qp_to_sqd(Qp *qp, bool event)
{
    return driver_cmd(qp->drv, RDMA_HCA_CMD_RTS2SQD_QPEE, 0,
                      qp->qpn | (event ? RDMA_HCA_RTS2SQD_EVENT : 0),
                      RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);
}

static uint8_t back_to_rts(Qp *qp, uint16_t op)
{
    struct rdma_hca_qpc qpc;

    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_RTS, 0);
    return qp_modify(qp, op, &qpc);
}

uint8_t qp_sqd_to_rts(Qp *qp)
{
    return back_to_rts(qp, RDMA_HCA_CMD_SQD2RTS_QPEE);
}

uint8_t qp_sqe_to_rts(Qp *qp)
{
    return back_to_rts(qp, RDMA_HCA_CMD_SQERR2RTS_QPEE);
}

uint8_t qp_query(Qp *qp, struct rdma_hca_qpc *qpc)
{
    return driver_cmd_out(qp->drv, RDMA_HCA_CMD_QUERY_QP, qpc, sizeof(*qpc),
                          qp->qpn, 0);
}

unsigned qp_state(Qp *qp)
{
    struct rdma_hca_qpc qpc;

    driver_must(qp_query(qp, &qpc));
    return GET_BE(RDMA_HCA_QPC_STATE, qpc.flags);
}

/* The addresses of the peer's table entry. */
static void roce_path_to(RocePath *path, bool *grh, uint8_t *dgid,
                         const Driver *from, const Driver *to)
{
    const Gid *source, *dest;

    *grh = !path->document;
    if (path->document) {
        path->sgid_index = GID_IPV4;
    }
    source = &from->gid[path->sgid_index];
    dest = &to->gid[path->sgid_index];
    memcpy(dgid, dest->gid, sizeof(dest->gid));
    memcpy(path->dmac, dest->mac, sizeof(path->dmac));
    memcpy(path->smac, source->mac, sizeof(path->smac));
    path->sip = mac_high(source->gid + 12);
    path->dip = mac_high(dest->gid + 12);
}

void qp_attr_to(QpAttr *attr, const Driver *from, const Driver *to)
{
    if (from->roce) {
        roce_path_to(&attr->roce, &attr->grh, attr->dgid, from, to);
    } else {
        attr->dlid = to->host->config.lid;
    }
}

void ud_address_to(UdAddress *ud, const Driver *from, const Driver *to)
{
    if (from->roce) {
        roce_path_to(&ud->roce, &ud->grh, ud->dgid, from, to);
    } else {
        ud->dlid = to->host->config.lid;
    }
}

/* RFC 1112, 6.4; RFC 2464, 7. */
void ud_address_to_group(UdAddress *ud, const uint8_t *mgid)
{
    uint8_t *mac = ud->roce.dmac;

    ud->grh = true;
    ud->dqpn = 0xffffff;
    memcpy(ud->dgid, mgid, sizeof(ud->dgid));
    if (mgid[0] == 0xff) {
        mac[0] = mac[1] = 0x33;
        memcpy(mac + 2, mgid + 12, 4);
    } else {
        mac[0] = 0x01;
        mac[1] = 0x00;
        mac[2] = 0x5e;
        mac[3] = mgid[13] & 0x7f;
        memcpy(mac + 4, mgid + 14, 2);
    }
}

void qp_connect(Qp *a, Qp *b, const QpAttr *attr)
{
    Qp *qp[2] = { a, b };

    for (unsigned i = 0; i < 2; i++) {
        Qp *peer = qp[!i];
        QpAttr own = *attr;

        if (i && a == b) {
            break;
        }
        own.dest_qpn = peer->qpn;
        qp_attr_to(&own, qp[i]->drv, peer->drv);
        if (i) {
            own.sq_psn = attr->rq_psn;
            own.rq_psn = attr->sq_psn;
        }
        qp_bring_up(qp[i], &own);
    }
}
