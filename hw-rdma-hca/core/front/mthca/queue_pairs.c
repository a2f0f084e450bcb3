/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs of an InfiniHost III Lx: contexts and transitions. Both work
 * queues lie in one region, in the same 4 GiB of it.
 */
#include "../../cxtmgt/cxt_format.h"
#include "../../qp.h"
#include "../../wire/gid.h"
#include "mthca.h"

#define GET(field, word) RDMA_HCA_GET(MTHCA_QPC_##field, GUINT32_FROM_BE(word))
#define PUT(field, value) RDMA_HCA_PREP(MTHCA_QPC_##field, value)
#define BE(x) GUINT32_TO_BE(x)

/* Logarithms of a queue's entries and of their bytes, in one byte. */
#define STRIDE_BASE 4
#define STRIDE_BITS 3

static const uint8_t services[] = {
    [MTHCA_QPC_SERVICE_RC] = HCA_SERVICE_RC,
    [MTHCA_QPC_SERVICE_UC] = HCA_SERVICE_UC,
    [MTHCA_QPC_SERVICE_UD] = HCA_SERVICE_UD,
    [MTHCA_QPC_SERVICE_MLX] = HCA_SERVICE_UD,
};

/* From a mailbox */

/* HCA_SERVICE_RD: a service that there is not. */
static uint8_t service_of(uint32_t service)
{
    return service < G_N_ELEMENTS(services) && (services[service] || !service)
               ? services[service]
               : HCA_SERVICE_RD;
}

static void get_queue(uint8_t size_stride, uint32_t *len, uint8_t *entry_log)
{
    unsigned log = size_stride >> STRIDE_BITS;

    *entry_log = (size_stride & ((1u << STRIDE_BITS) - 1)) + STRIDE_BASE;
    *len = 1u << MIN(log + *entry_log, 31);
}

static void get_path(const struct mthca_path *from, HcaQpAttr *attr)
{
    uint32_t flow = GUINT32_FROM_BE(from->sl_tclass_flow);

    attr->path = (HcaPath) {
        .dlid = GUINT16_FROM_BE(from->dlid),
        .sl = RDMA_HCA_GET(MTHCA_PATH_SL, flow),
        .path_bits = from->g_mlpath & MTHCA_PATH_MLPATH,
        .grh = from->g_mlpath & MTHCA_PATH_GRH,
    };
    if (attr->path.grh) {
        attr->path.sgid_index = from->gid_index;
        attr->path.hop_limit = from->hop_limit;
        attr->path.tclass = RDMA_HCA_GET(MTHCA_PATH_TCLASS, flow);
        attr->path.flow_label = RDMA_HCA_GET(MTHCA_PATH_FLOW, flow);
        memcpy(attr->path.dgid.raw, from->dgid, sizeof(from->dgid));
    }
    attr->static_rate = from->static_rate;
    attr->ack_timeout = from->ack_timeout >> 3;
    attr->rnr_retry = from->rnr_retry >> 5;
    attr->port = RDMA_HCA_GET(MTHCA_PATH_PORT,
                              GUINT32_FROM_BE(from->port_pkey));
    attr->pkey_index = RDMA_HCA_GET(MTHCA_PATH_PKEY_INDEX,
                                    GUINT32_FROM_BE(from->port_pkey));
}

static void get_rights(const struct mthca_qpc *qpc, HcaQpAttr *attr)
{
    attr->access = (GET(RRE, qpc->params2) ? HCA_ACCESS_REMOTE_READ : 0) |
                   (GET(RWE, qpc->params2) ? HCA_ACCESS_REMOTE_WRITE : 0) |
                   (GET(RAE, qpc->params2) ? HCA_ACCESS_REMOTE_ATOMIC : 0);
}

/* Without SRE and SAE it asks for none. */
static void get_transport(const struct mthca_qpc *qpc, HcaQpAttr *attr)
{
    bool reads = GET(SRE, qpc->params1) || GET(SAE, qpc->params1);

    attr->sra_max = reads ? 1u << GET(SRA_MAX, qpc->params1) : 0;
    attr->rra_max = 1u << GET(RRA_MAX, qpc->params2);
    attr->retry_count = GET(RETRY_COUNT, qpc->params1);
    attr->sq_psn = GET(NUMBER, qpc->next_send_psn);
    attr->rq_psn = GET(NUMBER, qpc->rnr_nextrecvpsn);
    attr->min_rnr_timer = GET(MIN_RNR_TIMER, qpc->rnr_nextrecvpsn);
    get_rights(qpc, attr);
}

/* False: a record that its UAR has not, or a queue where none can be. */
static bool get_queues(const HcaCeu *ceu, const struct mthca_qpc *qpc,
                       HcaQpAttr *attr)
{
    attr->sq_cqn = GET(NUMBER, qpc->cqn_snd);
    attr->rq_cqn = GET(NUMBER, qpc->cqn_rcv);
    attr->sq_lkey = attr->rq_lkey = GUINT32_FROM_BE(qpc->wqe_lkey);
    attr->wq_base = (uint64_t)GUINT32_FROM_BE(qpc->wqe_base) << 32;
    attr->sq_offset = GUINT32_FROM_BE(qpc->snd_wqe_base);
    attr->rq_offset = GUINT32_FROM_BE(qpc->rcv_wqe_base);
    attr->signals_all = GET(SSC, qpc->params1);
    attr->uses_srq = GET(USES_SRQ, qpc->srqn);
    get_queue(qpc->sq_size_stride, &attr->sq_len, &attr->sq_entry_log);
    if (attr->uses_srq) {
        attr->srqn = GET(NUMBER, qpc->srqn);
        return true;
    }
    get_queue(qpc->rq_size_stride, &attr->rq_len, &attr->rq_entry_log);
    return hca_mthca_record(ceu, attr->uar, GUINT32_FROM_BE(qpc->rcv_record),
                            &attr->rq_db);
}

static bool get_qp(const HcaCeu *ceu, const struct mthca_qpc *qpc,
                   HcaQpAttr *attr)
{
    *attr = (HcaQpAttr) {
        .service = service_of(GET(SERVICE, qpc->flags)),
        .pd = GET(NUMBER, qpc->pd),
        .uar = GET(UAR, qpc->usr_page),
        .mtu = qpc->mtu_msgmax >> 5,
        .log_max_msg = qpc->mtu_msgmax & 0x1f,
        .qkey = GUINT32_FROM_BE(qpc->qkey),
        .remote_qpn = GET(NUMBER, qpc->remote_qpn),
    };
    get_path(&qpc->path, attr);
    get_transport(qpc, attr);
    return get_queues(ceu, qpc, attr);
}

/* Which attributes a mask names; it has two bits beside that are nobody's. */
static uint32_t attrs_of(uint32_t mask)
{
    static const struct {
        uint32_t bits;
        uint32_t attr;
    } rows[] = {
        { MTHCA_OPT_ALT_PATH, HCA_QP_ATTR_ALT_PATH },
        { MTHCA_OPT_RIGHTS, HCA_QP_ATTR_ACCESS_FLAGS },
        { MTHCA_OPT_PKEY_INDEX, HCA_QP_ATTR_PKEY_INDEX },
        { MTHCA_OPT_QKEY, HCA_QP_ATTR_QKEY },
        { MTHCA_OPT_RNR_TIMER, HCA_QP_ATTR_MIN_RNR_TIMER },
        { MTHCA_OPT_PATH, HCA_QP_ATTR_AV },
        { MTHCA_OPT_SRA_MAX, HCA_QP_ATTR_MAX_QP_RD_ATOMIC },
        { MTHCA_OPT_RRA_MAX, HCA_QP_ATTR_MAX_DEST_RD_ATOMIC },
        { MTHCA_OPT_MIGRATION, HCA_QP_ATTR_PATH_MIG_STATE },
        { MTHCA_OPT_PORT, HCA_QP_ATTR_PORT },
        { MTHCA_OPT_RETRY_COUNT, HCA_QP_ATTR_RETRY_CNT },
        { MTHCA_OPT_ACK_TIMEOUT, HCA_QP_ATTR_TIMEOUT },
        { MTHCA_OPT_RNR_RETRY, HCA_QP_ATTR_RNR_RETRY },
    };
    uint32_t attrs = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        attrs |= mask & rows[i].bits ? rows[i].attr : 0;
    }
    return attrs;
}

/* The whole context */

static uint8_t log_of(uint32_t n)
{
    return n > 1 ? g_bit_storage(n - 1) : 0;
}

static uint8_t size_stride(uint32_t len, uint8_t entry_log)
{
    return len ? log_of(len >> entry_log) << STRIDE_BITS |
                     (entry_log - STRIDE_BASE)
               : 0;
}

static void put_path(const HcaQpAttr *attr, struct mthca_path *to)
{
    const HcaPath *path = &attr->path;

    *to = (struct mthca_path) {
        .port_pkey = BE(RDMA_HCA_PREP(MTHCA_PATH_PORT, attr->port) |
                        RDMA_HCA_PREP(MTHCA_PATH_PKEY_INDEX, attr->pkey_index)),
        .rnr_retry = attr->rnr_retry << 5,
        .g_mlpath = (path->grh ? MTHCA_PATH_GRH : 0) | path->path_bits,
        .dlid = GUINT16_TO_BE(path->dlid),
        .ack_timeout = attr->ack_timeout << 3,
        .gid_index = path->sgid_index,
        .static_rate = attr->static_rate,
        .hop_limit = path->hop_limit,
        .sl_tclass_flow = BE(RDMA_HCA_PREP(MTHCA_PATH_SL, path->sl) |
                             RDMA_HCA_PREP(MTHCA_PATH_TCLASS, path->tclass) |
                             RDMA_HCA_PREP(MTHCA_PATH_FLOW, path->flow_label)),
    };
    memcpy(to->dgid, path->dgid.raw, sizeof(to->dgid));
}

/* What the engine has settled for a QP, beside where it is. */
static void put_attr(const HcaQpAttr *attr, struct mthca_qpc *qpc)
{
    qpc->mtu_msgmax = attr->mtu << 5 | attr->log_max_msg;
    qpc->rq_size_stride = size_stride(attr->rq_len, attr->rq_entry_log);
    qpc->sq_size_stride = size_stride(attr->sq_len, attr->sq_entry_log);
    qpc->usr_page = BE(PUT(UAR, attr->uar));
    qpc->remote_qpn = BE(attr->remote_qpn);
    put_path(attr, &qpc->path);
    qpc->pd = BE(attr->pd);
    qpc->wqe_base = BE(RDMA_HCA_HI32(attr->wq_base));
    qpc->wqe_lkey = BE(attr->sq_lkey);
    qpc->params1 = BE(PUT(SRA_MAX, log_of(attr->sra_max)) |
                      PUT(RETRY_COUNT, attr->retry_count) |
                      PUT(SRE, attr->sra_max != 0) | PUT(SWE, 1) |
                      PUT(SAE, attr->sra_max != 0) |
                      PUT(SSC, attr->signals_all));
    qpc->params2 = BE(PUT(RRA_MAX, log_of(attr->rra_max)) |
                      PUT(RRE, !!(attr->access & HCA_ACCESS_REMOTE_READ)) |
                      PUT(RWE, !!(attr->access & HCA_ACCESS_REMOTE_WRITE)) |
                      PUT(RAE, !!(attr->access & HCA_ACCESS_REMOTE_ATOMIC)) |
                      PUT(RSC, 1));
    qpc->cqn_snd = BE(attr->sq_cqn);
    qpc->snd_wqe_base = BE(attr->sq_offset);
    qpc->cqn_rcv = BE(attr->rq_cqn);
    qpc->rcv_wqe_base = BE(attr->rq_offset);
    qpc->qkey = BE(attr->qkey);
    qpc->srqn = BE(PUT(USES_SRQ, attr->uses_srq) | PUT(NUMBER, attr->srqn));
}

static uint8_t state_of(const HcaQp *qp)
{
    return qp->state == HCA_QP_SQD && !qp->req.drained
               ? MTHCA_QPC_STATE_DRAINING
               : qp->state;
}

/* Where the engines are. */
static void put_state(const HcaQp *qp, struct mthca_qpc *qpc)
{
    uint32_t service = qp->special ? MTHCA_QPC_SERVICE_MLX : qp->attr.service;

    qpc->flags = BE(PUT(STATE, state_of(qp)) | PUT(SERVICE, service) |
                    PUT(MIGRATION, MTHCA_QPC_MIGRATED) | MTHCA_QPC_DE);
    qpc->next_send_psn = BE(qp->req.next_psn);
    qpc->last_acked_psn = BE(qp->req.unacked_psn);
    qpc->ssn = BE(qp->req.ssn);
    qpc->rnr_nextrecvpsn = BE(PUT(MIN_RNR_TIMER, qp->attr.min_rnr_timer) |
                              PUT(NUMBER, qp->resp.expected_psn));
    qpc->rmsn = BE(qp->resp.msn);
    qpc->sq_counter = GUINT16_TO_BE(qp->send.taken);
    qpc->rq_counter = GUINT16_TO_BE(qp->rq.consumed);
}

void hca_mthca_put_qp(uint32_t qpn, const HcaQp *qp, void *cxt)
{
    struct mthca_qpc qpc = { .local_qpn = BE(qpn) };

    if (qp) {
        put_attr(&qp->attr, &qpc);
        put_state(qp, &qpc);
    }
    memcpy(cxt, &qpc, sizeof(qpc));
}

/* Commands */

/* A QP 0 or QP 1 has a service of its own, and no other QP has. */
static bool service_fits(const HcaCeu *ceu, uint32_t qpn,
                         const struct mthca_qpc *qpc)
{
    const HcaCxtMgt *cm = ceu->hca->cm;
    bool special = qpn == hca_cxtmgt_special(cm, HCA_SPECIAL_SMI) ||
                   qpn == hca_cxtmgt_special(cm, HCA_SPECIAL_GSI);

    return (GET(SERVICE, qpc->flags) == MTHCA_QPC_SERVICE_MLX) == special;
}

/*
 * What a QP is made with; its port is always said, but not always in the mask.
 * False: it is no context to give to the card.
 */
static bool get_new_qp(const HcaCeu *ceu, uint32_t qpn,
                       const struct mthca_qp_mailbox *box, HcaQpChange *change,
                       HcaQpAttr *attr)
{
    change->mask |= HCA_QP_ATTR_PORT;
    return get_qp(ceu, &box->qpc, attr) && service_fits(ceu, qpn, &box->qpc);
}

/*
 * A driver names all attributes that a verb has, those too that a transition
 * takes by itself, or not at all; and it fills in no others, so none are taken.
 */
uint8_t hca_mthca_modify_qp(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct mthca_qp_mailbox *box = (const void *)cmd->inbox;
    HcaQpChange change = {
        .transition = cmd->row->transition,
        .lenient = true,
    };
    uint32_t qpn = cmd->in_modifier;
    HcaQpAttr attr;

    if (change.transition == HCA_QP_RTS2SQD) {
        change.sqd_event = qpn & RDMA_HCA_RTS2SQD_EVENT;
        qpn &= ~RDMA_HCA_RTS2SQD_EVENT;
    }
    if (cmd->has_inbox) {
        change.attr = &attr;
        change.mask = attrs_of(GUINT32_FROM_BE(box->opt_param_mask));
        if (change.transition != HCA_QP_RST2INIT) {
            get_qp(ceu, &box->qpc, &attr);
        } else if (!get_new_qp(ceu, qpn, box, &change, &attr)) {
            return HCA_STAT_BAD_PARAM;
        }
    }
    return hca_cxtmgt_modify_qp(ceu->hca->cm, qpn, &change);
}

uint8_t hca_mthca_query_qp(HcaCeu *ceu, HcaCommand *cmd)
{
    struct mthca_qp_mailbox *box = (void *)cmd->outbox;

    return hca_cxtmgt_query_qp(ceu->hca->cm, cmd->in_modifier, &box->qpc);
}

/* Of who destroys it: what it was is given back. */
uint8_t hca_mthca_destroy_qp(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = hca_mthca_query_qp(ceu, cmd);

    return status ? status : hca_mthca_modify_qp(ceu, cmd);
}
