/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-cxtmgt.h"

#include <string.h>

#define RC RDMA_HCA_QP_ST_RC

static void state_changed(void *opaque, HcaQp *qp, uint8_t old_state)
{
    Fix *fix = opaque;

    fix->changes++;
    fix->from = old_state;
    fix->to = qp->state;
}

static const HcaConfig config = {
    .log_qps = FIX_LOG_QPS,
    .log_cqs = FIX_LOG_CQS,
    .log_eqs = FIX_LOG_EQS,
    .log_srqs = FIX_LOG_SRQS,
    .log_srq_wqes = 4,
    .log_pds = FIX_LOG_PDS,
    .log_sq_slots = 15,
    .num_vectors = RAM_VECTORS,
    .link_layer = HCA_LINK_LAYER_IB,
    .max_mtu = 4,
    .lid = 77,
    .num_pkeys = 3,
    .pkeys = { 0xffff, 0x8001, 0x7ffe },
};

/* One region over all queues: physical, so it needs no MTT. */
static void make_region(Fix *fix, unsigned npages)
{
    struct rdma_hca_mpt mpt = {
        .flags = GUINT32_TO_BE(RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO |
                               RDMA_HCA_MPT_PHYSICAL |
                               RDMA_HCA_ACCESS_LOCAL_WRITE),
        .key = GUINT32_TO_BE(FIX_KEY),
        .pd = GUINT32_TO_BE(FIX_PD),
    };

    fix->queues = ram_alloc(fix->ram, npages);
    mpt.start_h = GUINT32_TO_BE(fix->queues >> 32);
    mpt.start_l = GUINT32_TO_BE((uint32_t)fix->queues);
    mpt.length_l = GUINT32_TO_BE(npages * RAM_PAGE);
    g_assert_cmphex(hca_v2p_map_icm(fix->v2p, 0, ram_alloc(fix->ram, 1), 1), ==,
                    0);
    g_assert_cmphex(hca_v2p_init(fix->v2p, 0, 6, 0), ==, 0);
    g_assert_cmphex(ram_write_mpt(fix->v2p, FIX_MPT, &mpt), ==, 0);
}

void fix_init_bare(Fix *fix)
{
    static const HcaCxtPlaces places = {
        .qpc = { FIX_QPC_BASE, FIX_LOG_QPS },
        .cqc = { FIX_CQC_BASE, FIX_LOG_CQS },
        .eqc = { FIX_EQC_BASE, FIX_LOG_EQS },
        .srqc = { FIX_SRQC_BASE, FIX_LOG_SRQS },
    };

    *fix = (Fix) { .ram = ram_new(), .config = config };
    fix->v2p = hca_v2p_new(&hca_mpt_format, &HCA_HOST(&fix->ram->ops, fix->ram),
                           6, 6, 4096, 4096, 2);
    make_region(fix, 64);
    fix->link = hca_link_new(HCA_LINK_LAYER_IB, HCA_CABLE_CARD,
                             &HCA_HOST(&fix->ram->ops, fix->ram));
    fix->port = hca_port_new(&fix->config, fix->link,
                             &HCA_HOST(&fix->ram->ops, fix->ram));
    fix->cm = hca_cxtmgt_new(hca_format.cxt, &fix->config, fix->v2p, fix->port,
                             &HCA_HOST(&fix->ram->ops, fix->ram), state_changed,
                             fix);
    fix->icm = ram_alloc(fix->ram, FIX_ICM_PAGES);
    g_assert_cmphex(hca_cxtmgt_map_icm(fix->cm, 0, fix->icm, FIX_ICM_PAGES), ==,
                    0);
    g_assert_cmphex(hca_cxtmgt_init(fix->cm, &places), ==, 0);
}

uint8_t fix_sw2hw_eq(Fix *fix, uint32_t eqn, const struct rdma_hca_eqc *eqc)
{
    HcaEqAttr attr;
    bool ok = hca_front_get_eq(eqc, &attr);

    return hca_cxtmgt_sw2hw_eq(fix->cm, eqn, ok ? &attr : NULL);
}

struct rdma_hca_eqc fix_make_eqc(Fix *fix, unsigned log_size, unsigned vector,
                                 unsigned state)
{
    uint64_t start = fix->next_queue;
    struct rdma_hca_eqc eqc;

    fix->next_queue += (uint64_t)RDMA_HCA_EQE_SIZE << log_size;
    memset(ram_at(fix->ram, fix->queues + start), RDMA_HCA_OWNER_HW,
           (size_t)RDMA_HCA_EQE_SIZE << log_size);
    eqc = good_eqc(FIX_PD, FIX_KEY, start, log_size);
    eqc.flags = GUINT32_TO_BE(RDMA_HCA_EQC_TR |
                              RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, 1) |
                              RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, state));
    eqc.msix_vector = GUINT32_TO_BE(vector);
    return eqc;
}

uint64_t fix_new_eq(Fix *fix, uint32_t eqn, unsigned log_size)
{
    struct rdma_hca_eqc eqc = fix_make_eqc(fix, log_size, eqn,
                                           RDMA_HCA_EQ_STATE_ARMED);

    g_assert_cmphex(fix_sw2hw_eq(fix, eqn, &eqc), ==, 0);
    return GUINT32_FROM_BE(eqc.start_l);
}

const struct rdma_hca_eqe *fix_eqe_at(Fix *fix, uint64_t queue,
                                      unsigned log_size, uint32_t index)
{
    const struct rdma_hca_eqe *first = ram_at(fix->ram, fix->queues + queue);

    return &first[index & ((1u << log_size) - 1)];
}

void fix_expect_eqe(Fix *fix, uint64_t queue, unsigned log_size, uint32_t index,
                    uint8_t type, uint32_t number)
{
    const struct rdma_hca_eqe *eqe = fix_eqe_at(fix, queue, log_size, index);

    g_assert_cmphex(eqe->owner, ==, RDMA_HCA_OWNER_SW);
    g_assert_cmphex(eqe->type, ==, type);
    g_assert_cmpuint(GUINT32_FROM_LE(eqe->raw[0]), ==, number);
}

uint32_t fix_eq_producer(Fix *fix, uint32_t eqn)
{
    struct rdma_hca_eqc eqc;

    g_assert_cmphex(hca_cxtmgt_query_eq(fix->cm, eqn, &eqc), ==, 0);
    return GUINT32_FROM_BE(eqc.producer_index);
}

uint8_t fix_sw2hw_cq(Fix *fix, uint32_t cqn, const struct rdma_hca_cqc *cqc)
{
    HcaCqAttr attr;
    bool ok = hca_front_get_cq(cqc, &attr);

    return hca_cxtmgt_sw2hw_cq(fix->cm, cqn, ok ? &attr : NULL);
}

struct rdma_hca_cqc fix_make_cqc(Fix *fix, uint32_t eqn, unsigned log_size,
                                 uint64_t ci_db)
{
    uint64_t start = fix->next_queue;
    struct rdma_hca_cqc cqc;

    fix->next_queue += (uint64_t)RDMA_HCA_CQE_SIZE << log_size;
    memset(ram_at(fix->ram, fix->queues + start), RDMA_HCA_OWNER_HW,
           (size_t)RDMA_HCA_CQE_SIZE << log_size);
    cqc = good_cqc(FIX_PD, FIX_KEY, start, log_size, FIX_UAR, eqn);
    cqc.ci_db_h = GUINT32_TO_BE(ci_db >> 32);
    cqc.ci_db_l = GUINT32_TO_BE((uint32_t)ci_db);
    return cqc;
}

uint64_t fix_new_cq(Fix *fix, uint32_t cqn, uint32_t eqn, uint64_t ci_db)
{
    struct rdma_hca_cqc cqc = fix_make_cqc(fix, eqn, FIX_LOG_CQ, ci_db);

    g_assert_cmphex(fix_sw2hw_cq(fix, cqn, &cqc), ==, 0);
    return GUINT32_FROM_BE(cqc.start_l);
}

void fix_cq_doorbell(Fix *fix, uint32_t cqn, HcaCqArm how, uint32_t ci)
{
    hca_cq_doorbell(fix->cm, FIX_UAR, cqn, how, ci);
}

struct rdma_hca_qpc fix_make_qpc(unsigned service, uint32_t mask)
{
    return (struct rdma_hca_qpc) {
        .opt_param_mask = GUINT32_TO_BE(mask),
        .flags = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, service)),
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, 3) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 30) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 7) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 6)),
        .usr_page = GUINT32_TO_BE(FIX_UAR),
        .remote_qpn = GUINT32_TO_BE(0xabcdef),
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .rnr_retry_path = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_RNR_RETRY, 6) | RDMA_HCA_QPC_GRH |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RETRY_COUNT, 5)),
        .ackto_path = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_ACK_TIMEOUT, 14) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_HOP_LIMIT, 64)),
        .sl_tclass_flowlabel = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SL, 2) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_TCLASS, 0x5a) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_FLOW_LABEL, 0x12345)),
        .rgid = { 1, 2, 3, 4 },
        .dlid_slid = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_DLID, 0x321)),
        .pd = GUINT32_TO_BE(FIX_PD),
        .params1 = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_SRA_MAX, 4) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_RRA_MAX, 16) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_ACCESS, 0xe)),
        .next_send_psn = GUINT32_TO_BE(0x123456),
        .cqn_snd = GUINT32_TO_BE(FIX_CQN),
        .snd_wqe_base_l = GUINT32_TO_BE(0x111),
        .snd_wqe_len = GUINT32_TO_BE(0x1000),
        .rnr_nextrecvpsn = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_MIN_RNR_TIMER, 12) | 0x654321),
        .cqn_rcv = GUINT32_TO_BE(FIX_CQN),
        .rcv_wqe_base_l = GUINT32_TO_BE(0x222),
        .rcv_wqe_len = GUINT32_TO_BE(0x800),
        .qkey = GUINT32_TO_BE(0x80010000),
        .rq_db_l = GUINT32_TO_BE(0x1000),
    };
}

uint8_t fix_modify_qp(Fix *fix, HcaQpTransition transition, uint32_t qpn,
                      const struct rdma_hca_qpc *qpc, bool sqd_event)
{
    HcaQpChange change = { .transition = transition, .sqd_event = sqd_event };
    HcaQpAttr attr;

    if (qpc) {
        hca_front_get_qp(qpc, false, &attr);
        change.attr = &attr;
        change.mask = GUINT32_FROM_BE(qpc->opt_param_mask);
    }
    return hca_cxtmgt_modify_qp(fix->cm, qpn, &change);
}

uint8_t fix_modify(Fix *fix, HcaQpTransition transition, uint32_t qpn,
                   unsigned service, uint32_t mask)
{
    struct rdma_hca_qpc qpc = fix_make_qpc(service, mask);

    return fix_modify_qp(fix, transition, qpn, &qpc, false);
}

unsigned fix_qp_state(Fix *fix, uint32_t qpn)
{
    struct rdma_hca_qpc qpc;

    g_assert_cmphex(hca_cxtmgt_query_qp(fix->cm, qpn, &qpc), ==, 0);
    return RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc.flags));
}

void fix_qp_to(Fix *fix, uint32_t qpn, unsigned service, unsigned state)
{
    static const uint16_t way[] = { HCA_QP_RST2INIT, HCA_QP_INIT2RTR,
                                    HCA_QP_RTR2RTS };
    unsigned steps = MIN(state, RDMA_HCA_QP_STATE_RTS);

    if (state == RDMA_HCA_QP_STATE_ERR) {
        steps = RDMA_HCA_QP_STATE_INIT;
    }
    for (unsigned i = 0; i < steps; i++) {
        g_assert_cmphex(fix_modify(fix, way[i], qpn, service, 0), ==, 0);
    }
    if (state == RDMA_HCA_QP_STATE_SQE) {
        hca_qp_set_state(fix->cm, hca_qp_find(fix->cm, qpn), state);
    } else if (state == RDMA_HCA_QP_STATE_SQD) {
        g_assert_cmphex(fix_modify(fix, HCA_QP_RTS2SQD, qpn, service, 0), ==,
                        0);
        hca_qp_find(fix->cm, qpn)->req.drained = true;
    } else if (state == RDMA_HCA_QP_STATE_ERR) {
        g_assert_cmphex(fix_modify(fix, HCA_QP_2ERR, qpn, service, 0), ==, 0);
    }
    g_assert_cmpuint(fix_qp_state(fix, qpn), ==, state);
}

void fix_qp_reset(Fix *fix, uint32_t qpn)
{
    g_assert_cmphex(fix_modify_qp(fix, HCA_QP_ERR2RST, qpn, NULL, false), ==,
                    0);
    g_assert_null(hca_qp_find(fix->cm, qpn));
}

FixQueues fix_init(Fix *fix)
{
    FixQueues q;

    fix_init_bare(fix);
    q.eq = fix_new_eq(fix, FIX_EQN, FIX_LOG_EQ);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix->cm, FIX_EQN, UINT64_MAX, false), ==,
                    0);
    q.cq = fix_new_cq(fix, FIX_CQN, FIX_EQN, 0);
    return q;
}

void fix_free(Fix *fix)
{
    const HcaCxtLive *live = hca_cxt_live(fix->cm);

    hca_cxtmgt_close(fix->cm);
    g_assert_cmpuint(live->qps + live->cqs + live->eqs, ==, 0);
    hca_cxtmgt_free(fix->cm);
    hca_port_free(fix->port);
    hca_link_free(fix->link);
    hca_v2p_free(fix->v2p);
    ram_free(fix->ram);
}

const HcaCompletion fix_cqe = { .qpn = 0x12345678 };

void fix_post(Fix *fix, HcaQp *qp, bool solicited)
{
    HcaCompletion cqe = fix_cqe;

    cqe.byte_cnt = 7;
    cqe.opcode = 0x0a;
    cqe.solicited = solicited;
    if (!hca_cq_post(fix->cm, HCA_V2P_RTC, qp, FIX_CQN, &cqe)) {
        hca_qp_set_state(fix->cm, qp, HCA_QP_ERR);
    }
}

HcaQp *fix_qp(Fix *fix)
{
    fix_qp_to(fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    return hca_qp_find(fix->cm, FIX_QPN);
}
