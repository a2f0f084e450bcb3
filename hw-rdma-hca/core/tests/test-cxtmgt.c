/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The context manager: QP transitions and attributes (interface document
 * tables A1-2, A1-3), completion queues (3.2.5), event queues (3.2.4).
 */
#include <string.h>

#include "../../abi/rdma_hca_regs.h"
#include "../cxtmgt/cxtmgt_int.h"
#include "lib-card.h"
#include "lib-make.h"
#include "lib-ram.h"
#include "lib-test.h"

#define LOG_QPS 6
#define LOG_CQS 5
#define LOG_EQS 3
#define LOG_PDS 8
#define QPC_BASE 0x10000
#define CQC_BASE 0x20000
#define EQC_BASE 0x30000
#define ICM_PAGES 64
#define PD 3
#define KEY 1
#define UAR 9
#define CQN 2
#define EQN 1
#define QPN 5
#define LOG_CQ 3
#define LOG_EQ 2

#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD

typedef struct Fix {
    Ram *ram;
    HcaConfig config;
    HcaLink *link;
    HcaPort *port;
    HcaV2p *v2p;
    HcaCxtMgt *cm;
    uint64_t icm;        /* bus address of card-virtual 0 */
    uint64_t queues;     /* all queues: region KEY begins here */
    uint64_t next_queue; /* offset in the region */
    unsigned changes;    /* calls of the state function */
    uint8_t from, to;    /* the last one */
} Fix;

static void state_changed(void *opaque, HcaQp *qp, uint8_t old_state)
{
    Fix *fix = opaque;

    fix->changes++;
    fix->from = old_state;
    fix->to = qp->state;
}

static const HcaConfig config = {
    .log_qps = LOG_QPS,
    .log_cqs = LOG_CQS,
    .log_eqs = LOG_EQS,
    .log_pds = LOG_PDS,
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
        .key = GUINT32_TO_BE(KEY),
        .pd = GUINT32_TO_BE(PD),
    };

    fix->queues = ram_alloc(fix->ram, npages);
    mpt.start_h = GUINT32_TO_BE(fix->queues >> 32);
    mpt.start_l = GUINT32_TO_BE((uint32_t)fix->queues);
    mpt.length_l = GUINT32_TO_BE(npages * RAM_PAGE);
    g_assert_cmphex(hca_v2p_map_icm(fix->v2p, 0, ram_alloc(fix->ram, 1), 1), ==,
                    0);
    g_assert_cmphex(hca_v2p_init(fix->v2p, 0, 6, 0), ==, 0);
    g_assert_cmphex(ram_write_mpt(fix->v2p, KEY, &mpt), ==, 0);
}

static void fix_init_bare(Fix *fix)
{
    *fix = (Fix) { .ram = ram_new(), .config = config };
    fix->v2p = hca_v2p_new(&hca_mpt_format, &fix->ram->ops, fix->ram, 6, 6,
                           4096, 4096, 2);
    make_region(fix, 64);
    fix->link = hca_link_new(HCA_LINK_LAYER_IB, &fix->ram->ops, fix->ram);
    fix->port = hca_port_new(&fix->config, fix->link, &fix->ram->ops, fix->ram);
    fix->cm = hca_cxtmgt_new(hca_format.cxt, &fix->config, fix->v2p, fix->port,
                             &fix->ram->ops, fix->ram, state_changed, fix);
    fix->icm = ram_alloc(fix->ram, ICM_PAGES);
    g_assert_cmphex(hca_cxtmgt_map_icm(fix->cm, 0, fix->icm, ICM_PAGES), ==, 0);
    g_assert_cmphex(hca_cxtmgt_init(fix->cm, QPC_BASE, LOG_QPS, CQC_BASE,
                                    LOG_CQS, EQC_BASE, LOG_EQS),
                    ==, 0);
}

/* Event queues. */

static uint8_t sw2hw_eq(Fix *fix, uint32_t eqn, const struct rdma_hca_eqc *eqc)
{
    HcaEqAttr attr;
    bool ok = hca_front_get_eq(eqc, &attr);

    return hca_cxtmgt_sw2hw_eq(fix->cm, eqn, ok ? &attr : NULL);
}

static void eq_doorbell(Fix *fix, uint32_t eqn, uint32_t value)
{
    hca_eq_doorbell(fix->cm, eqn, RDMA_HCA_GET(RDMA_HCA_EQ_DB_CI, value),
                    value & RDMA_HCA_EQ_DB_ARM);
}

static struct rdma_hca_eqc make_eqc(Fix *fix, unsigned log_size,
                                    unsigned vector, unsigned state)
{
    uint64_t start = fix->next_queue;
    struct rdma_hca_eqc eqc;

    fix->next_queue += (uint64_t)RDMA_HCA_EQE_SIZE << log_size;
    memset(ram_at(fix->ram, fix->queues + start), RDMA_HCA_OWNER_HW,
           (size_t)RDMA_HCA_EQE_SIZE << log_size);
    eqc = good_eqc(PD, KEY, start, log_size);
    eqc.flags = GUINT32_TO_BE(RDMA_HCA_EQC_TR |
                              RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, 1) |
                              RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, state));
    eqc.msix_vector = GUINT32_TO_BE(vector);
    return eqc;
}

/* An EQ armed once; its vector is its number. Returns the queue's offset. */
static uint64_t new_eq(Fix *fix, uint32_t eqn, unsigned log_size)
{
    struct rdma_hca_eqc eqc = make_eqc(fix, log_size, eqn,
                                       RDMA_HCA_EQ_STATE_ARMED);

    g_assert_cmphex(sw2hw_eq(fix, eqn, &eqc), ==, 0);
    return GUINT32_FROM_BE(eqc.start_l);
}

static const struct rdma_hca_eqe *eqe_at(Fix *fix, uint64_t queue,
                                         unsigned log_size, uint32_t index)
{
    const struct rdma_hca_eqe *first = ram_at(fix->ram, fix->queues + queue);

    return &first[index & ((1u << log_size) - 1)];
}

static void expect_eqe(Fix *fix, uint64_t queue, unsigned log_size,
                       uint32_t index, uint8_t type, uint32_t number)
{
    const struct rdma_hca_eqe *eqe = eqe_at(fix, queue, log_size, index);

    g_assert_cmphex(eqe->owner, ==, RDMA_HCA_OWNER_SW);
    g_assert_cmphex(eqe->type, ==, type);
    g_assert_cmpuint(GUINT32_FROM_LE(eqe->raw[0]), ==, number);
}

static uint32_t eq_producer(Fix *fix, uint32_t eqn)
{
    struct rdma_hca_eqc eqc;

    g_assert_cmphex(hca_cxtmgt_query_eq(fix->cm, eqn, &eqc), ==, 0);
    return GUINT32_FROM_BE(eqc.producer_index);
}

/* Completion queues. */

static uint8_t sw2hw_cq(Fix *fix, uint32_t cqn, const struct rdma_hca_cqc *cqc)
{
    HcaCqAttr attr;
    bool ok = hca_front_get_cq(cqc, &attr);

    return hca_cxtmgt_sw2hw_cq(fix->cm, cqn, ok ? &attr : NULL);
}

static struct rdma_hca_cqc make_cqc(Fix *fix, uint32_t eqn, unsigned log_size,
                                    uint64_t ci_db)
{
    uint64_t start = fix->next_queue;
    struct rdma_hca_cqc cqc;

    fix->next_queue += (uint64_t)RDMA_HCA_CQE_SIZE << log_size;
    memset(ram_at(fix->ram, fix->queues + start), RDMA_HCA_OWNER_HW,
           (size_t)RDMA_HCA_CQE_SIZE << log_size);
    cqc = good_cqc(PD, KEY, start, log_size, UAR, eqn);
    cqc.ci_db_h = GUINT32_TO_BE(ci_db >> 32);
    cqc.ci_db_l = GUINT32_TO_BE((uint32_t)ci_db);
    return cqc;
}

static uint64_t new_cq(Fix *fix, uint32_t cqn, uint32_t eqn, uint64_t ci_db)
{
    struct rdma_hca_cqc cqc = make_cqc(fix, eqn, LOG_CQ, ci_db);

    g_assert_cmphex(sw2hw_cq(fix, cqn, &cqc), ==, 0);
    return GUINT32_FROM_BE(cqc.start_l);
}

static const struct rdma_hca_cqe *cqe_at(Fix *fix, uint64_t queue,
                                         uint32_t index)
{
    const struct rdma_hca_cqe *first = ram_at(fix->ram, fix->queues + queue);

    return &first[index & ((1u << LOG_CQ) - 1)];
}

static void cq_doorbell(Fix *fix, uint32_t cqn, HcaCqArm how, uint32_t ci)
{
    hca_cq_doorbell(fix->cm, UAR, cqn, how, ci);
}

/* Queue pairs. */

/* Values that are all good, for each attribute there is. */
static struct rdma_hca_qpc make_qpc(unsigned service, uint32_t mask)
{
    return (struct rdma_hca_qpc) {
        .opt_param_mask = GUINT32_TO_BE(mask),
        .flags = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, service)),
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, 3) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 30) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 7) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 6)),
        .usr_page = GUINT32_TO_BE(UAR),
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
        .pd = GUINT32_TO_BE(PD),
        .params1 = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_SRA_MAX, 4) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_RRA_MAX, 16) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_ACCESS, 0xe)),
        .next_send_psn = GUINT32_TO_BE(0x123456),
        .cqn_snd = GUINT32_TO_BE(CQN),
        .snd_wqe_base_l = GUINT32_TO_BE(0x111),
        .snd_wqe_len = GUINT32_TO_BE(0x1000),
        .rnr_nextrecvpsn = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_MIN_RNR_TIMER, 12) | 0x654321),
        .cqn_rcv = GUINT32_TO_BE(CQN),
        .rcv_wqe_base_l = GUINT32_TO_BE(0x222),
        .rcv_wqe_len = GUINT32_TO_BE(0x800),
        .qkey = GUINT32_TO_BE(0x80010000),
        .rq_db_l = GUINT32_TO_BE(0x1000),
    };
}

/* @qpc NULL: no inbox. */
static uint8_t modify_qp(Fix *fix, HcaQpTransition transition, uint32_t qpn,
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

static uint8_t modify(Fix *fix, HcaQpTransition transition, uint32_t qpn,
                      unsigned service, uint32_t mask)
{
    struct rdma_hca_qpc qpc = make_qpc(service, mask);

    return modify_qp(fix, transition, qpn, &qpc, false);
}

static unsigned qp_state(Fix *fix, uint32_t qpn)
{
    struct rdma_hca_qpc qpc;

    g_assert_cmphex(hca_cxtmgt_query_qp(fix->cm, qpn, &qpc), ==, 0);
    return RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc.flags));
}

/* Bring a QP from RST to @state by the commands of a driver. */
static void qp_to(Fix *fix, uint32_t qpn, unsigned service, unsigned state)
{
    static const uint16_t way[] = { HCA_QP_RST2INIT, HCA_QP_INIT2RTR,
                                    HCA_QP_RTR2RTS };
    unsigned steps = MIN(state, RDMA_HCA_QP_STATE_RTS);

    if (state == RDMA_HCA_QP_STATE_ERR) {
        steps = RDMA_HCA_QP_STATE_INIT;
    }
    for (unsigned i = 0; i < steps; i++) {
        g_assert_cmphex(modify(fix, way[i], qpn, service, 0), ==, 0);
    }
    if (state == RDMA_HCA_QP_STATE_SQE) {
        hca_qp_set_state(fix->cm, hca_qp_find(fix->cm, qpn), state);
    } else if (state == RDMA_HCA_QP_STATE_SQD) {
        g_assert_cmphex(modify(fix, HCA_QP_RTS2SQD, qpn, service, 0), ==, 0);
        hca_qp_find(fix->cm, qpn)->req.drained = true;
    } else if (state == RDMA_HCA_QP_STATE_ERR) {
        g_assert_cmphex(modify(fix, HCA_QP_2ERR, qpn, service, 0), ==, 0);
    }
    g_assert_cmpuint(qp_state(fix, qpn), ==, state);
}

static void qp_reset(Fix *fix, uint32_t qpn)
{
    g_assert_cmphex(modify_qp(fix, HCA_QP_ERR2RST, qpn, NULL, false), ==, 0);
    g_assert_null(hca_qp_find(fix->cm, qpn));
}

typedef struct Queues {
    uint64_t eq, cq;
} Queues;

/* One EQ for everything, one CQ. */
static Queues fix_init(Fix *fix)
{
    Queues q;

    fix_init_bare(fix);
    q.eq = new_eq(fix, EQN, LOG_EQ);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix->cm, EQN, UINT64_MAX, false), ==, 0);
    q.cq = new_cq(fix, CQN, EQN, 0);
    return q;
}

static void fix_free(Fix *fix)
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

/* A1-2: who may go where */

typedef struct Arrow {
    uint16_t op;
    const char *from; /* digits: states */
    unsigned to;
} Arrow;

static const Arrow arrows[] = {
    { HCA_QP_RST2INIT, "0", 1 },      { HCA_QP_INIT2INIT, "1", 1 },
    { HCA_QP_INIT2RTR, "1", 2 },      { HCA_QP_RTR2RTS, "2", 3 },
    { HCA_QP_RTS2RTS, "3", 3 },       { HCA_QP_SQERR2RTS, "4", 3 },
    { HCA_QP_RTS2SQD, "3", 5 },       { HCA_QP_SQD2SQD, "5", 5 },
    { HCA_QP_SQD2RTS, "5", 3 },       { HCA_QP_2ERR, "123456", 6 },
    { HCA_QP_ERR2RST, "0123456", 0 },
};

static void try_arrow(Fix *fix, const Arrow *arrow, unsigned service,
                      unsigned state)
{
    bool legal = strchr(arrow->from, '0' + state) != NULL;
    struct rdma_hca_qpc before, after;
    unsigned changes;

    qp_to(fix, QPN, service, state);
    hca_cxtmgt_query_qp(fix->cm, QPN, &before);
    changes = fix->changes;
    g_assert_cmphex(modify(fix, arrow->op, QPN, service, 0), ==,
                    legal ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_QP_STATE);
    hca_cxtmgt_query_qp(fix->cm, QPN, &after);
    if (legal) {
        g_assert_cmpuint(qp_state(fix, QPN), ==, arrow->to);
        g_assert_cmpuint(fix->changes - changes, ==, arrow->to != state);
        if (arrow->to != state) {
            g_assert_cmpuint(fix->from, ==, state);
            g_assert_cmpuint(fix->to, ==, arrow->to);
        }
    } else {
        g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
        g_assert_cmpuint(fix->changes, ==, changes);
    }
    qp_reset(fix, QPN);
}

static void test_qp_transitions(void)
{
    static const unsigned services[] = { RC, UC, UD };
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(arrows); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(services); s++) {
            for (unsigned state = 0; state <= RDMA_HCA_QP_STATE_ERR; state++) {
                try_arrow(&fix, &arrows[i], services[s], state);
            }
        }
    }
    fix_free(&fix);
}

/* A1-2, third and fourth column, by the numbers of the bits in A1-3 */

typedef struct AttrRow {
    uint16_t op;
    unsigned from;
    const char *allowed[UD + 1]; /* bits, by service type */
} AttrRow;

static const AttrRow attr_rows[] = {
    { HCA_QP_RST2INIT, 0, { [RC] = "3 4 5", [UC] = "3 4 5", [UD] = "4 5 6" } },
    { HCA_QP_INIT2INIT, 1, { [RC] = "3 4 5", [UC] = "3 4 5", [UD] = "4 5 6" } },
    { HCA_QP_INIT2RTR,
      1,
      { [RC] = "3 4 7 8 12 14 15 17 20",
        [UC] = "3 4 7 8 12 14 20",
        [UD] = "4 6" } },
    { HCA_QP_RTR2RTS,
      2,
      { [RC] = "3 9 10 11 13 14 15 16 18",
        [UC] = "3 14 16 18",
        [UD] = "6 16" } },
    { HCA_QP_RTS2RTS,
      3,
      { [RC] = "3 14 15 18", [UC] = "3 14 18", [UD] = "6" } },
    { HCA_QP_SQERR2RTS, 4, { [RC] = "", [UC] = "3", [UD] = "6" } },
    { HCA_QP_RTS2SQD, 3, { [RC] = "2", [UC] = "2", [UD] = "2" } },
    { HCA_QP_SQD2SQD,
      5,
      { [RC] = "3 4 5 7 9 10 11 13 14 15 17 18",
        [UC] = "3 4 7 14 18",
        [UD] = "4 6" } },
    { HCA_QP_SQD2RTS,
      5,
      { [RC] = "3 14 15 18", [UC] = "3 14 18", [UD] = "6" } },
    { HCA_QP_2ERR, 3, { [RC] = "", [UC] = "", [UD] = "" } },
    { HCA_QP_ERR2RST, 6, { [RC] = "", [UC] = "", [UD] = "" } },
};

static bool attr_allowed(const char *list, unsigned bit)
{
    g_auto(GStrv) bits = g_strsplit(list, " ", -1);
    g_autofree char *name = g_strdup_printf("%u", bit);

    /* STATE, CUR_STATE and CAP say nothing that the card needs. */
    return bit == 0 || bit == 1 || bit == 19 ||
           g_strv_contains((const char *const *)bits, name);
}

static void test_qp_attributes(void)
{
    static const unsigned services[] = { RC, UC, UD };
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(attr_rows) * 3; i++) {
        const AttrRow *row = &attr_rows[i / 3];
        unsigned service = services[i % 3];

        for (unsigned bit = 0; bit < 32; bit++) {
            bool ok = attr_allowed(row->allowed[service], bit);
            uint8_t status;

            qp_to(&fix, QPN, service, row->from);
            status = modify(&fix, row->op, QPN, service, 1u << bit);
            g_assert_cmphex(status, ==,
                            ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
            if (!ok) {
                g_assert_cmpuint(qp_state(&fix, QPN), ==, row->from);
            }
            qp_reset(&fix, QPN);
        }
    }
    fix_free(&fix);
}

/* Without an inbox: only where no attribute is needed. */
static void test_qp_no_inbox(void)
{
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(attr_rows); i++) {
        const AttrRow *row = &attr_rows[i];
        bool ok = row->op == HCA_QP_2ERR || row->op == HCA_QP_ERR2RST ||
                  row->op == HCA_QP_RTS2SQD;

        qp_to(&fix, QPN, RC, row->from);
        g_assert_cmphex(modify_qp(&fix, row->op, QPN, NULL, false), ==,
                        ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
        qp_reset(&fix, QPN);
    }
    fix_free(&fix);
}

/* What RST2INIT and the others do with values that are no good */

typedef struct BadValue {
    uint16_t op;
    unsigned service;
    size_t word;
    uint32_t value;
} BadValue;

#define WORD_OF(field) offsetof(struct rdma_hca_qpc, field)
#define CREATE(field, value)                                                   \
    {                                                                          \
        HCA_QP_RST2INIT, RC, WORD_OF(field), value                             \
    }

static const BadValue bad_values[] = {
    CREATE(flags, RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, RDMA_HCA_QP_ST_RD)),
    CREATE(flags, RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, 4)),
    CREATE(flags, RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, 255)),
    CREATE(pd, 1u << LOG_PDS),
    CREATE(pd, UINT32_MAX),
    CREATE(usr_page, RDMA_HCA_NUM_UARS),
    CREATE(cqn_snd, CQN + 1),
    CREATE(cqn_rcv, 1u << LOG_CQS),
    CREATE(cqn_rcv, UINT32_MAX),
    CREATE(snd_wqe_len, 0x1001),
    CREATE(snd_wqe_len, 1u << 31),
    CREATE(rcv_wqe_len, 0x820),
    CREATE(rcv_wqe_len, 1u << 31),
    CREATE(mtu_msgmax_sz, 0x00060500),
    CREATE(mtu_msgmax_sz, 0x00060b00),
    CREATE(mtu_msgmax_sz, 0x00040700),
    CREATE(mtu_msgmax_sz, 0x000a0700),
    CREATE(mtu_msgmax_sz, 0x00ffff00),
    CREATE(rq_db_l, 0x1002),
    CREATE(port_pkey, 0),
    CREATE(port_pkey, RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 2)),
    CREATE(port_pkey, RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1) | 3),
    CREATE(port_pkey, RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1) | 127),
    { HCA_QP_INIT2RTR, RC, WORD_OF(mtu_msgmax_sz), 0 },
    { HCA_QP_INIT2RTR, RC, WORD_OF(mtu_msgmax_sz), 5u << 29 },
    { HCA_QP_INIT2RTR, UC, WORD_OF(mtu_msgmax_sz), 7u << 29 },
    { HCA_QP_INIT2RTR, UC, WORD_OF(remote_qpn), 1u << 24 },
    { HCA_QP_INIT2RTR, RC, WORD_OF(params1), 17u << 16 },
    { HCA_QP_INIT2RTR, RC, WORD_OF(ackto_path), 1u << 16 },
    { HCA_QP_RTR2RTS, RC, WORD_OF(params1), 17u << 24 },
    { HCA_QP_RTR2RTS, UD, WORD_OF(next_send_psn), 1u << 24 },
};

static void test_qp_values(void)
{
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_values); i++) {
        const BadValue *bad = &bad_values[i];
        struct rdma_hca_qpc qpc = make_qpc(bad->service, 0);
        struct rdma_hca_qpc before, after;
        unsigned state = bad->op - HCA_QP_RST2INIT;

        qp_to(&fix, QPN, bad->service, state);
        ((__be32 *)&qpc)[bad->word / 4] = GUINT32_TO_BE(bad->value);
        hca_cxtmgt_query_qp(fix.cm, QPN, &before);
        g_assert_cmphex(modify_qp(&fix, bad->op, QPN, &qpc, false), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
        hca_cxtmgt_query_qp(fix.cm, QPN, &after);
        g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
        qp_reset(&fix, QPN);
    }
    fix_free(&fix);
}

/* Mailboxes of random words: a status, and nothing worse. */
static void test_qp_random(void)
{
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < 100000; i++) {
        const Arrow *arrow =
            &arrows[g_test_rand_int_range(0, G_N_ELEMENTS(arrows))];
        struct rdma_hca_qpc qpc = make_qpc(g_test_rand_int_range(0, 5), 0);
        unsigned n = g_test_rand_int_range(0, 4);

        while (n--) {
            ((__be32 *)&qpc)[g_test_rand_int_range(0, 64)] =
                g_test_rand_int() & 1 ? g_test_rand_int()
                                      : -(g_test_rand_int() & 1);
        }
        modify_qp(&fix, arrow->op, g_test_rand_int_range(0, 70), &qpc, false);
    }
    fix_free(&fix);
}

static void test_qp_index(void)
{
    struct rdma_hca_qpc qpc;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(modify(&fix, HCA_QP_RST2INIT, 1u << LOG_QPS, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(modify(&fix, HCA_QP_ERR2RST, UINT32_MAX, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_query_qp(fix.cm, 1u << LOG_QPS, &qpc), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_null(hca_qp_find(fix.cm, QPN + (1u << LOG_QPS)));
    /* All there are, and not one more. */
    for (uint32_t qpn = 0; qpn < 1u << LOG_QPS; qpn++) {
        qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_INIT);
    }
    g_assert_cmpuint(hca_cxt_live(fix.cm)->qps, ==, 1u << LOG_QPS);
    /* CLOSE_HCA tells the engines of each. */
    fix.changes = 0;
    hca_cxtmgt_close(fix.cm);
    g_assert_cmpuint(fix.changes, ==, 1u << LOG_QPS);
    g_assert_cmpuint(fix.to, ==, RDMA_HCA_QP_STATE_RST);
    g_assert_null(hca_qp_find(fix.cm, 3));
    fix_free(&fix);
}

/* The fields of HcaQp, and QUERY_QP with what the engines have done. */
static void test_qp_fields(void)
{
    struct rdma_hca_qpc qpc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, QPN);
    g_assert_cmpuint(qp->qpn, ==, QPN);
    g_assert_cmpuint(qp->pmtu, ==, 1024);
    g_assert_cmpuint(qp->max_msg, ==, 1u << 30);
    g_assert_cmphex(qp->attr.remote_qpn, ==, 0xabcdef);
    g_assert_cmphex(hca_port_pkey(fix.port, qp->attr.pkey_index), ==, 0xffff);
    g_assert_cmpuint(qp->attr.path.dlid, ==, 0x321);
    g_assert_cmpuint(hca_port_lid(fix.port), ==, 77);
    g_assert_cmpuint(qp->attr.path.sl, ==, 2);
    g_assert_true(qp->attr.path.grh);
    g_assert_cmphex(qp->attr.path.tclass, ==, 0x5a);
    g_assert_cmphex(qp->attr.path.flow_label, ==, 0x12345);
    g_assert_cmpuint(qp->attr.path.hop_limit, ==, 64);
    g_assert_cmphex(qp->attr.access, ==, 0xe);
    g_assert_cmpuint(qp->attr.sra_max, ==, 4);
    g_assert_cmpuint(qp->attr.rra_max, ==, 16);
    g_assert_cmpuint(qp->attr.retry_count, ==, 5);
    g_assert_cmpuint(qp->attr.rnr_retry, ==, 6);
    g_assert_cmpuint(qp->req.retries_left, ==, 5);
    g_assert_cmpuint(qp->req.rnr_retries_left, ==, 6);
    g_assert_cmpuint(qp->attr.ack_timeout, ==, 14);
    g_assert_cmpuint(qp->attr.min_rnr_timer, ==, 12);
    g_assert_cmphex(qp->req.next_psn, ==, 0x123456);
    g_assert_cmphex(qp->req.unacked_psn, ==, 0x123456);
    g_assert_cmphex(qp->resp.expected_psn, ==, 0x654321);
    g_assert_cmphex(qp->rq.record, ==, 0x1000);
    qp->req.next_psn = 0x123460;
    qp->req.unacked_psn = 0x12345a;
    qp->resp.expected_psn = 0xffffff;
    qp->resp.msn = 42;
    hca_cxtmgt_query_qp(fix.cm, QPN, &qpc);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.next_send_psn), ==, 0x123460);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.last_acked_psn), ==, 0x12345a);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.rnr_nextrecvpsn), ==, 0x0cffffff);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.rmsn), ==, 42);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.snd_wqe_len), ==, 0x1000);
    /* RTS2RTS leaves PSNs and what its mask does not name. */
    qpc = make_qpc(RC, RDMA_HCA_QP_ATTR_MIN_RNR_TIMER);
    qpc.rnr_nextrecvpsn = GUINT32_TO_BE(0x1e000000);
    qpc.params1 = 0;
    g_assert_cmphex(modify_qp(&fix, HCA_QP_RTS2RTS, QPN, &qpc, false), ==, 0);
    g_assert_cmpuint(qp->attr.min_rnr_timer, ==, 30);
    g_assert_cmphex(qp->resp.expected_psn, ==, 0xffffff);
    g_assert_cmphex(qp->attr.access, ==, 0xe);
    /* The context in ICM has the state. */
    hca_qp_set_state(fix.cm, qp, RDMA_HCA_QP_STATE_ERR);
    memcpy(&qpc, ram_at(fix.ram, fix.icm + QPC_BASE + QPN * 256), sizeof(qpc));
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc.flags)), ==, 6);
    /* UD: datagrams of the port's MTU. */
    qp_to(&fix, 6, UD, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, 6);
    g_assert_cmpuint(qp->pmtu, ==, 2048);
    g_assert_cmpuint(qp->max_msg, ==, 2048);
    g_assert_cmphex(qp->attr.qkey, ==, 0x80010000);
    fix_free(&fix);
}

/* The P_Key that its index says, and another one by INIT2RTR and in SQD. */
static void test_qp_pkey(void)
{
    static const struct {
        uint16_t op;
        uint8_t from;
        uint8_t service;
    } c[] = {
        { HCA_QP_INIT2INIT, RDMA_HCA_QP_STATE_INIT, RC },
        { HCA_QP_INIT2RTR, RDMA_HCA_QP_STATE_INIT, RC },
        { HCA_QP_INIT2RTR, RDMA_HCA_QP_STATE_INIT, UC },
        { HCA_QP_INIT2RTR, RDMA_HCA_QP_STATE_INIT, UD },
        { HCA_QP_SQD2SQD, RDMA_HCA_QP_STATE_SQD, RC },
        { HCA_QP_SQD2SQD, RDMA_HCA_QP_STATE_SQD, UC },
        { HCA_QP_SQD2SQD, RDMA_HCA_QP_STATE_SQD, UD },
    };
    static const uint16_t pkey[] = { 0xffff, 0x8001, 0x7ffe };
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        for (unsigned index = 1; index <= 3; index++) {
            struct rdma_hca_qpc qpc = make_qpc(c[i].service,
                                               RDMA_HCA_QP_ATTR_PKEY_INDEX);
            bool ok = index < G_N_ELEMENTS(pkey);
            HcaQp *qp;

            qp_to(&fix, QPN, c[i].service, c[i].from);
            qp = hca_qp_find(fix.cm, QPN);
            g_assert_cmphex(hca_port_pkey(fix.port, qp->attr.pkey_index), ==,
                            pkey[0]);
            qpc.port_pkey |= GUINT32_TO_BE(
                RDMA_HCA_PREP(RDMA_HCA_QPC_PKEY_INDEX, index));
            g_assert_cmphex(modify_qp(&fix, c[i].op, QPN, &qpc, false), ==,
                            ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
            g_assert_cmphex(hca_port_pkey(fix.port, qp->attr.pkey_index), ==,
                            pkey[ok ? index : 0]);
            hca_cxtmgt_query_qp(fix.cm, QPN, &qpc);
            g_assert_cmpuint(RDMA_HCA_GET(RDMA_HCA_QPC_PKEY_INDEX,
                                          GUINT32_FROM_BE(qpc.port_pkey)),
                             ==, ok ? index : 0);
            qp_reset(&fix, QPN);
        }
    }
    fix_free(&fix);
}

static void test_qp_drain(void)
{
    struct rdma_hca_qpc qpc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, QPN);
    g_assert_cmphex(modify_qp(&fix, HCA_QP_RTS2SQD, QPN, NULL, true), ==, 0);
    g_assert_true(qp->sqd_event);
    hca_cxtmgt_query_qp(fix.cm, QPN, &qpc);
    g_assert_true(GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_SQ_DRAINING);
    /* Nothing changes before it is drained. */
    g_assert_cmphex(
        modify(&fix, HCA_QP_SQD2SQD, QPN, RC, RDMA_HCA_QP_ATTR_TIMEOUT), ==,
        RDMA_HCA_STAT_BAD_QP_STATE);
    qp->req.drained = true;
    hca_cxtmgt_query_qp(fix.cm, QPN, &qpc);
    g_assert_false(GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_SQ_DRAINING);
    g_assert_cmphex(
        modify(&fix, HCA_QP_SQD2SQD, QPN, RC, RDMA_HCA_QP_ATTR_TIMEOUT), ==, 0);
    fix_free(&fix);
}

/* SQ_DRAINED is asked for in either of two ways, each time anew. */
static void test_qp_drain_event(void)
{
    static const uint32_t notify = RDMA_HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY;
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, UC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 6; i++) {
        bool by_mask = i & 1, by_modifier = i & 2;
        struct rdma_hca_qpc qpc = make_qpc(UC, by_mask ? notify : 0);

        g_assert_cmphex(modify_qp(&fix, HCA_QP_RTS2SQD, QPN, &qpc, by_modifier),
                        ==, 0);
        g_assert_cmpint(hca_qp_find(fix.cm, QPN)->sqd_event, ==,
                        by_mask || by_modifier);
        g_assert_cmphex(modify(&fix, HCA_QP_SQD2RTS, QPN, UC, 0), ==, 0);
    }
    g_assert_cmphex(modify(&fix, HCA_QP_RTS2RTS, QPN, UC, notify), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    fix_free(&fix);
}

/* INIT2INIT takes what the mask names; all if it names nothing. */
static void test_qp_init2init(void)
{
    struct rdma_hca_qpc qpc = make_qpc(RC, RDMA_HCA_QP_ATTR_ACCESS_FLAGS);
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_INIT);
    qp = hca_qp_find(fix.cm, QPN);
    qpc.params1 = 0;
    qpc.port_pkey = 0;
    g_assert_cmphex(modify_qp(&fix, HCA_QP_INIT2INIT, QPN, &qpc, false), ==, 0);
    g_assert_cmphex(qp->attr.access, ==, 0);
    g_assert_cmpuint(qp->attr.port, ==, 1);
    qpc.opt_param_mask = 0;
    g_assert_cmphex(modify_qp(&fix, HCA_QP_INIT2INIT, QPN, &qpc, false), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpc.opt_param_mask = GUINT32_TO_BE(RDMA_HCA_QP_ATTR_STATE);
    g_assert_cmphex(modify_qp(&fix, HCA_QP_INIT2INIT, QPN, &qpc, false), ==, 0);
    fix_free(&fix);
}

/* ICM that is not there */
static void test_icm_missing(void)
{
    struct rdma_hca_eqc eqc;
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(hca_cxtmgt_unmap_icm(fix.cm, QPC_BASE, 33), ==, 0);
    g_assert_cmphex(hca_cxtmgt_unmap_icm(fix.cm, QPC_BASE, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(modify(&fix, HCA_QP_RST2INIT, QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_null(hca_qp_find(fix.cm, QPN));
    cqc = make_cqc(&fix, EQN, LOG_CQ, 0);
    g_assert_cmphex(sw2hw_cq(&fix, 3, &cqc), ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    eqc = make_eqc(&fix, LOG_EQ, 2, RDMA_HCA_EQ_STATE_ARMED);
    g_assert_cmphex(sw2hw_eq(&fix, 2, &eqc), ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    /* Mapped, but onto registers of a device. */
    g_assert_cmphex(hca_cxtmgt_map_icm(fix.cm, QPC_BASE, RAM_HOLE, 33), ==, 0);
    g_assert_cmphex(modify(&fix, HCA_QP_RST2INIT, QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmpuint(hca_cxt_live(fix.cm)->qps, ==, 0);
    fix_free(&fix);
}

/*
 * ICM goes away under what is in hardware. A command that changes something
 * changes all or nothing; what goes may go.
 */
static void test_icm_gone(void)
{
    const uint64_t comm_est = UINT64_C(1) << HCA_EVENT_COMM_EST;
    HcaEvent event = { .type = HCA_EVENT_COMM_EST, .number = QPN };
    struct rdma_hca_qpc before, after;
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix);
    new_eq(&fix, 2, LOG_EQ);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_INIT);
    g_assert_cmphex(hca_cxtmgt_unmap_icm(fix.cm, QPC_BASE, 33), ==, 0);
    hca_cxtmgt_query_qp(fix.cm, QPN, &before);
    g_assert_cmphex(modify(&fix, HCA_QP_INIT2RTR, QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(modify(&fix, HCA_QP_INIT2INIT, QPN, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    hca_cxtmgt_query_qp(fix.cm, QPN, &after);
    g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN, LOG_CQ + 1, 77), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, CQN, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.lkey), ==, KEY);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, comm_est, false), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, EQN, comm_est, true), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    hca_eq_event(fix.cm, &event);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 1);
    g_assert_cmpuint(eq_producer(&fix, 2), ==, 0);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->icm_write_errors, ==, 5);
    g_assert_cmphex(modify(&fix, HCA_QP_2ERR, QPN, RC, 0), ==, 0);
    qp_reset(&fix, QPN);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, CQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, EQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, 2), ==, 0);
    fix_free(&fix);
}

static void test_init_limits(void)
{
    uint64_t space = (uint64_t)HCA_ICM_MAX_PAGES << 12;
    struct rdma_hca_qpc qpc = make_qpc(RC, 0);
    Fix fix;

    fix_init(&fix);
    hca_cxtmgt_close(fix.cm);
    /* Nothing answers before INIT_HCA. */
    g_assert_cmphex(modify_qp(&fix, HCA_QP_RST2INIT, 0, &qpc, false), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    eq_doorbell(&fix, EQN, 0);
    cq_doorbell(&fix, CQN, HCA_CQ_DISARMED, 0);
    g_assert_cmphex(hca_cxtmgt_init(fix.cm, 0, LOG_QPS + 1, 0, 0, 0, 0), ==,
                    RDMA_HCA_STAT_EXCEED_LIM);
    g_assert_cmphex(hca_cxtmgt_init(fix.cm, 0, 0, 0, 255, 0, 0), ==,
                    RDMA_HCA_STAT_EXCEED_LIM);
    g_assert_cmphex(hca_cxtmgt_init(fix.cm, space, 0, 0, 0, 0, 0), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(hca_cxtmgt_init(fix.cm, 0, 0, space - 64, 1, 0, 0), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(hca_cxtmgt_init(fix.cm, 0, 0, 0, 0, UINT64_MAX - 63, 0), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    fix_free(&fix);
}

/* 3.2.5: completion queues */

static const HcaCompletion good_cqe = { .qpn = 0x12345678 };

/* As an engine does it: the QP of a completion that is lost breaks. */
static void post(Fix *fix, HcaQp *qp, bool solicited)
{
    HcaCompletion cqe = good_cqe;

    cqe.byte_cnt = 7;
    cqe.opcode = 0x0a;
    cqe.solicited = solicited;
    if (!hca_cq_post(fix->cm, HCA_V2P_RTC, qp, CQN, &cqe)) {
        hca_qp_set_state(fix->cm, qp, HCA_QP_ERR);
    }
}

static HcaQp *fix_qp(Fix *fix)
{
    qp_to(fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    return hca_qp_find(fix->cm, QPN);
}

static void test_cq_entries(void)
{
    Fix fix;
    Queues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    for (uint32_t i = 0; i < 40; i++) {
        const struct rdma_hca_cqe *cqe = cqe_at(&fix, q.cq, i);

        memset((void *)cqe, RDMA_HCA_OWNER_HW, sizeof(*cqe));
        post(&fix, qp, false);
        g_assert_cmphex(GUINT32_FROM_LE(cqe->my_qpn), ==, good_cqe.qpn);
        g_assert_cmphex(GUINT32_FROM_LE(cqe->ctrl), ==, 0x0000000a);
        cq_doorbell(&fix, CQN, HCA_CQ_DISARMED, i + 1);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cqes, ==, 40);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->eqes, ==, 0);
    fix_free(&fix);
}

/* Arming: one event for each, at once if there is something already. */
static void test_cq_arm(void)
{
    Fix fix;
    Queues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);
    uint32_t ci = 0;

    post(&fix, qp, true);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 0);
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_NEXT, ci);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 1);
    expect_eqe(&fix, q.eq, LOG_EQ, 0, RDMA_HCA_EVENT_COMP, CQN);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 1);
    /* Fired: no more until armed again. */
    post(&fix, qp, true);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 1);
    ci = 2;
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_NEXT, ci);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 1);
    post(&fix, qp, false);
    post(&fix, qp, false);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 2);
    ci = 4;
    hca_eq_doorbell(fix.cm, EQN, 2, false);
    /* Solicited only: not for others, at once for one before. */
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_SOLICITED, ci);
    post(&fix, qp, false);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 2);
    post(&fix, qp, true);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 3);
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_SOLICITED, ci);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 4);
    ci = 6;
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_SOLICITED, ci);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 4);
    /* ARM_NEXT is not weakened by ARM_SOLICITED. */
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_NEXT, ci);
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_SOLICITED, ci);
    post(&fix, qp, false);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 5);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 1);
    fix_free(&fix);
}

/*
 * A program that arms when an event has woken it, and takes one entry for each
 * event, as `ib_send_lat -e` does, on a CQ with an EQ of its own.
 */
typedef struct Waiter {
    Fix fix;
    HcaQp *qp;
    uint32_t ci;
    uint32_t events; /* taken */
    uint32_t added;  /* entries */
} Waiter;

#define WAITER_EQN 2
#define WAITER_LOG_EQ 7

static void waiter_init(Waiter *w, uint32_t first)
{
    HcaCq *cq;

    *w = (Waiter) { .ci = first };
    fix_init_bare(&w->fix);
    new_eq(&w->fix, WAITER_EQN, WAITER_LOG_EQ);
    new_cq(&w->fix, CQN, WAITER_EQN, 0);
    cq = hca_cq_find(w->fix.cm, CQN);
    cq->producer_index = cq->consumer_index = first;
    cq->solicit_producer_index = cq->last_notified_index = first;
    w->qp = fix_qp(&w->fix);
}

static void waiter_add(Waiter *w, unsigned n, bool solicited)
{
    for (unsigned i = 0; i < n; i++) {
        post(&w->fix, w->qp, solicited);
        w->added++;
    }
}

/* Events that it has not taken. */
static uint32_t waiter_due(Waiter *w)
{
    return eq_producer(&w->fix, WAITER_EQN) - w->events;
}

static void waiter_arm(Waiter *w, HcaCqArm how)
{
    cq_doorbell(&w->fix, CQN, how, w->ci);
}

static void waiter_take_event(Waiter *w)
{
    w->events++;
    hca_eq_doorbell(w->fix.cm, WAITER_EQN, w->events, true);
}

static void test_cq_arm_told(void)
{
    Waiter w;

    waiter_init(&w, 0);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_add(&w, 1, false);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    waiter_take_event(&w);
    /* It has told of the entry that is there still. */
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 0);
    w.ci++;
    waiter_add(&w, 1, false);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    waiter_take_event(&w);
    /* Not of the next one, which comes before the arm. */
    waiter_add(&w, 1, false);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    waiter_take_event(&w);
    w.ci++;
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 0);
    w.ci++;
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 0);
    fix_free(&w.fix);
}

/* Arms with an old index, over and over: an event for each entry, no more. */
static void test_cq_arm_stale(void)
{
    static const HcaCqArm hows[] = { HCA_CQ_ARMED_NEXT,
                                     HCA_CQ_ARMED_SOLICITED };

    for (unsigned i = 0; i < G_N_ELEMENTS(hows); i++) {
        Waiter w;

        waiter_init(&w, UINT32_MAX - 2);
        waiter_add(&w, 5, true);
        for (unsigned k = 0; k < 100; k++) {
            waiter_arm(&w, hows[i]);
        }
        g_assert_cmpuint(waiter_due(&w), ==, 5);
        fix_free(&w.fix);
    }
}

/* The CQ's event waits for room: arms meanwhile are answered by it. */
static void test_cq_arm_full_eq(void)
{
    Waiter w;

    waiter_init(&w, 0);
    for (unsigned i = 0; i < 1u << WAITER_LOG_EQ; i++) {
        waiter_arm(&w, HCA_CQ_ARMED_NEXT);
        waiter_add(&w, 1, false);
        w.ci++;
    }
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_add(&w, 3, false);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    g_assert_cmpuint(waiter_due(&w), ==, 1u << WAITER_LOG_EQ);
    g_assert_cmpuint(hca_cxt_waiting_events(w.fix.cm), ==, 1);
    waiter_take_event(&w);
    g_assert_cmpuint(waiter_due(&w), ==, 1u << WAITER_LOG_EQ);
    /* It told of one; of the other two nobody has. */
    for (unsigned i = 0; i < 1u << WAITER_LOG_EQ; i++) {
        waiter_take_event(&w);
    }
    for (unsigned i = 0; i < 3; i++) {
        waiter_arm(&w, HCA_CQ_ARMED_NEXT);
        g_assert_cmpuint(waiter_due(&w), ==, i < 2);
        w.events += i < 2;
    }
    fix_free(&w.fix);
}

/* One step of what a program does between two waits, by its number. */
static void waiter_step(Waiter *w, unsigned step, unsigned batch, HcaCqArm how)
{
    const HcaCq *cq = hca_cq_find(w->fix.cm, CQN);

    if (step == 0) {
        waiter_take_event(w);
    } else if (step == 1) {
        waiter_arm(w, how);
    } else {
        w->ci += MIN(batch, cq->producer_index - w->ci);
    }
}

/*
 * Whenever entries come, who takes one or more of them for each event gets
 * all, in the order arm and poll as in the other; indices wrap.
 */
static void waiter_run(GRand *rand, HcaCqArm how)
{
    bool poll_first = g_rand_boolean(rand);
    unsigned batch = 1 + g_rand_int_range(rand, 0, 3);
    unsigned step = 0;
    Waiter w;

    waiter_init(&w, UINT32_MAX - 20);
    waiter_arm(&w, how);
    while (w.added < 60 || step || waiter_due(&w)) {
        bool room = UINT32_MAX - 20 + w.added - w.ci < 1u << (LOG_CQ - 1);
        bool awake = step || waiter_due(&w);

        g_assert_true(awake || room);
        if (w.added < 60 && room && (!awake || g_rand_boolean(rand))) {
            waiter_add(&w, 1, how == HCA_CQ_ARMED_SOLICITED);
        } else if (awake) {
            waiter_step(&w, poll_first && step ? 3 - step : step, batch, how);
            step = (step + 1) % 3;
        }
        g_assert_cmpuint(w.events, <=, 60);
    }
    g_assert_cmpuint(w.ci, ==, UINT32_MAX - 20 + 60);
    fix_free(&w.fix);
}

static void test_cq_arm_race(void)
{
    GRand *rand = g_rand_new_with_seed(11);

    for (unsigned i = 0; i < 200; i++) {
        waiter_run(rand, i & 1 ? HCA_CQ_ARMED_NEXT : HCA_CQ_ARMED_SOLICITED);
    }
    g_rand_free(rand);
}

/* Who polls and never arms for 2^31 entries is told of the next one all the
 * same. */
static void test_cq_arm_long_after(void)
{
    Waiter w;

    waiter_init(&w, 0);
    waiter_arm(&w, HCA_CQ_ARMED_NEXT);
    waiter_add(&w, 1, false);
    waiter_take_event(&w);
    for (unsigned i = 1; i < 8; i++) {
        HcaCq *cq = hca_cq_find(w.fix.cm, CQN);

        cq->producer_index = w.ci = i << 29;
        cq_doorbell(&w.fix, CQN, HCA_CQ_DISARMED, w.ci);
    }
    waiter_add(&w, 1, true);
    waiter_arm(&w, HCA_CQ_ARMED_SOLICITED);
    g_assert_cmpuint(waiter_due(&w), ==, 1);
    fix_free(&w.fix);
}

/* An error is solicited; a CQ may be armed when it is made. */
static void test_cq_arm_error(void)
{
    HcaCompletion cqe = { 0 };
    struct rdma_hca_cqc cqc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp = fix_qp(&fix);
    cqc = make_cqc(&fix, EQN, LOG_CQ, 0);
    cqc.flags |= GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_CQC_STATE, RDMA_HCA_CQ_STATE_ARMED_SOLICITED));
    g_assert_cmphex(sw2hw_cq(&fix, 7, &cqc), ==, 0);
    hca_cq_post(fix.cm, HCA_V2P_RRC, qp, 7, &cqe);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 0);
    cqe.syndrome = HCA_SYNDROME_WR_FLUSH_ERR;
    hca_cq_post(fix.cm, HCA_V2P_RRC, qp, 7, &cqe);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 1);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, 7, &cqc), ==, 0);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_CQC_STATE, GUINT32_FROM_BE(cqc.flags)), ==,
        RDMA_HCA_CQ_STATE_FIRED);
    /* It tells of the oldest entry. */
    g_assert_cmpuint(GUINT32_FROM_BE(cqc.last_notified_index), ==, 1);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->error_cqes, ==, 1);
    fix_free(&fix);
}

static void test_cq_doorbell_bad(void)
{
    HcaCxtCounters *counters;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    counters = hca_cxt_counters(fix.cm);
    qp = fix_qp(&fix);
    for (unsigned i = 0; i < 3; i++) {
        post(&fix, qp, false);
    }
    hca_cq_doorbell(fix.cm, UAR + 1, CQN, HCA_CQ_ARMED_NEXT, 0);
    g_assert_cmpuint(counters->db_bad_uar, ==, 1);
    cq_doorbell(&fix, CQN + 1, HCA_CQ_ARMED_NEXT, 0);
    cq_doorbell(&fix, 0xffffff, HCA_CQ_ARMED_NEXT, 0);
    g_assert_cmpuint(counters->db_bad_cqn, ==, 2);
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_NEXT, 4);
    cq_doorbell(&fix, CQN, HCA_CQ_ARMED_NEXT, 0x7fffffff);
    g_assert_cmpuint(counters->db_bad_ci, ==, 2);
    cq_doorbell(&fix, CQN, 0xff, 3);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 0);
    /* An old index does not take room away that was given. */
    cq_doorbell(&fix, CQN, HCA_CQ_DISARMED, 1);
    for (unsigned i = 0; i < 8; i++) {
        post(&fix, qp, false);
    }
    g_assert_cmpuint(counters->cq_overruns, ==, 0);
    fix_free(&fix);
}

/* Overrun: an event of CQ and QP each; entries lost and counted. */
static void test_cq_overrun(void)
{
    struct rdma_hca_cqc cqc;
    Fix fix;
    Queues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    for (unsigned i = 0; i < 8; i++) {
        post(&fix, qp, false);
    }
    g_assert_cmpuint(qp->state, ==, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 5; i++) {
        post(&fix, qp, false);
    }
    g_assert_cmpuint(qp->state, ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 2);
    expect_eqe(&fix, q.eq, LOG_EQ, 0, RDMA_HCA_EVENT_CQ_ERROR, CQN);
    expect_eqe(&fix, q.eq, LOG_EQ, 1, RDMA_HCA_EVENT_WQ_CATAS_ERROR, qp->qpn);
    g_assert_cmpuint(
        GUINT32_FROM_LE(eqe_at(&fix, q.eq, LOG_EQ, 0)->cq.syndrome), ==,
        RDMA_HCA_CQ_ERROR_OVERRUN);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 1);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cqes_lost, ==, 5);
    hca_cxtmgt_query_cq(fix.cm, CQN, &cqc);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_CQC_STATUS, GUINT32_FROM_BE(cqc.flags)), ==,
        RDMA_HCA_CQ_STATUS_OVERFLOW);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN, 5, KEY), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    fix_free(&fix);
}

/* Who asked for it loses entries, and is told of none. */
static void test_cq_ignore_overrun(void)
{
    struct rdma_hca_cqc cqc;
    HcaCompletion cqe = good_cqe;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp = fix_qp(&fix);
    cqc = make_cqc(&fix, EQN, 2, 0);
    cqc.flags |= GUINT32_TO_BE(RDMA_HCA_CQC_IGNORE_OVERRUN);
    g_assert_cmphex(sw2hw_cq(&fix, 7, &cqc), ==, 0);
    for (uint32_t i = 0; i < 10; i++) {
        cqe.byte_cnt = i;
        g_assert_true(hca_cq_post(fix.cm, HCA_V2P_RTC, qp, 7, &cqe));
    }
    for (uint32_t i = 6; i < 10; i++) {
        const struct rdma_hca_cqe *at = ram_at(
            fix.ram, fix.queues + GUINT32_FROM_BE(cqc.start_l));

        g_assert_cmpuint(GUINT32_FROM_LE(at[i & 3].byte_cnt), ==, i);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 0);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 0);
    g_assert_cmpuint(qp->state, ==, HCA_QP_RTS);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, 7, &cqc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.flags), ==,
                    RDMA_HCA_CQC_TR | RDMA_HCA_CQC_IGNORE_OVERRUN);
    /* What is lost was never consumed: there is no room for it elsewhere. */
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, 7, 3, KEY), ==,
                    RDMA_HCA_STAT_BAD_SIZE);
    hca_cq_doorbell(fix.cm, UAR, 7, HCA_CQ_ARMED_NEXT, 10);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 0);
    g_assert_true(hca_cq_post(fix.cm, HCA_V2P_RTC, qp, 7, &cqe));
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 1);
    fix_free(&fix);
}

/* The consumer index in memory is read before that is said. */
static void test_cq_ci_record(void)
{
    uint64_t record;
    uint32_t *ci;
    struct rdma_hca_cqc cqc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, QPN);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, CQN), ==,
                    RDMA_HCA_STAT_RESOURCE_BUSY);
    qp_reset(&fix, QPN);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, CQN), ==, 0);
    record = ram_alloc(fix.ram, 1) + 64;
    ci = ram_at(fix.ram, record);
    new_cq(&fix, CQN, EQN, record);
    qp = fix_qp(&fix);
    for (uint32_t i = 0; i < 100; i++) {
        post(&fix, qp, false);
        *ci = GUINT32_TO_LE(i);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 0);
    /* Nonsense in it makes no room. */
    *ci = GUINT32_TO_LE(1000);
    for (uint32_t i = 0; i < 9; i++) {
        post(&fix, qp, false);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 1);
    hca_cxtmgt_query_cq(fix.cm, CQN, &cqc);
    g_assert_cmpuint(GUINT32_FROM_BE(cqc.producer_index) -
                         GUINT32_FROM_BE(cqc.consumer_index),
                     ==, 8);
    fix_free(&fix);
}

static void test_cq_unwritable(void)
{
    HcaCompletion cqe = good_cqe;
    struct rdma_hca_cqc cqc;
    Fix fix;
    Queues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    cqc = make_cqc(&fix, EQN, LOG_CQ, 0);
    cqc.lkey = GUINT32_TO_BE(KEY + 1);
    g_assert_cmphex(sw2hw_cq(&fix, 3, &cqc), ==, 0);
    g_assert_false(hca_cq_post(fix.cm, HCA_V2P_EE, qp, 3, &cqe));
    hca_qp_set_state(fix.cm, qp, HCA_QP_ERR);
    g_assert_false(hca_cq_post(fix.cm, HCA_V2P_EE, qp, 3, &cqe));
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 2);
    g_assert_cmpuint(
        GUINT32_FROM_LE(eqe_at(&fix, q.eq, LOG_EQ, 0)->cq.syndrome), ==,
        RDMA_HCA_CQ_ERROR_ACCESS);
    fix_free(&fix);
}

/* RESIZE_CQ: entries outstanding stay where they are, new ones go on. */
static void test_cq_resize(void)
{
    struct rdma_hca_mpt mpt;
    uint64_t other;
    struct rdma_hca_cqe *cqe;
    HcaQp *qp;
    Fix fix;
    Queues q = fix_init(&fix);

    qp = fix_qp(&fix);
    other = ram_alloc(fix.ram, 2);
    ram_query_mpt(fix.v2p, KEY, &mpt);
    mpt.key = GUINT32_TO_BE(KEY + 1);
    mpt.start_l = GUINT32_TO_BE((uint32_t)other);
    mpt.length_l = GUINT32_TO_BE(2 * RAM_PAGE);
    g_assert_cmphex(ram_write_mpt(fix.v2p, KEY + 1, &mpt), ==, 0);
    for (unsigned i = 0; i < 5; i++) {
        post(&fix, qp, false);
    }
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN, 2, KEY + 1), ==,
                    RDMA_HCA_STAT_BAD_SIZE);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN, 23, KEY + 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN + 1, 4, KEY + 1), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, 99, 4, KEY + 1), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN, 4, KEY + 1), ==, 0);
    for (unsigned i = 5; i < 16; i++) {
        post(&fix, qp, false);
        cqe = (struct rdma_hca_cqe *)ram_at(fix.ram, other + q.cq) + i;
        g_assert_cmphex(GUINT32_FROM_LE(cqe->my_qpn), ==, good_cqe.qpn);
    }
    g_assert_cmphex(GUINT32_FROM_LE(cqe_at(&fix, q.cq, 5)->ctrl) >> 24, ==,
                    RDMA_HCA_OWNER_HW);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 0);
    post(&fix, qp, false);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->cq_overruns, ==, 1);
    fix_free(&fix);
}

typedef struct BadCq {
    size_t word;
    uint32_t value;
} BadCq;

static void test_cq_values(void)
{
#define CQ_WORD(field) offsetof(struct rdma_hca_cqc, field)
    static const BadCq bad[] = {
        { CQ_WORD(flags), 0 },
        { CQ_WORD(flags), RDMA_HCA_CQC_TR | 9u << 28 },
        { CQ_WORD(flags), RDMA_HCA_CQC_TR | 2u << 8 },
        { CQ_WORD(flags), RDMA_HCA_CQC_TR | 10u << 8 },
        { CQ_WORD(start_l), 8 },
        { CQ_WORD(logsize_usrpage), 23u << 24 },
        { CQ_WORD(logsize_usrpage), 255u << 24 },
        { CQ_WORD(logsize_usrpage), RDMA_HCA_NUM_UARS },
        { CQ_WORD(comp_eqn), EQN + 1 },
        { CQ_WORD(comp_eqn), UINT32_MAX },
        { CQ_WORD(pd), 1u << LOG_PDS },
        { CQ_WORD(ci_db_l), 2 },
    };
    struct rdma_hca_cqc cqc;
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        cqc = make_cqc(&fix, EQN, 0, 0);
        ((__be32 *)&cqc)[bad[i].word / 4] = GUINT32_TO_BE(bad[i].value);
        g_assert_cmphex(sw2hw_cq(&fix, 1, &cqc), ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    cqc = make_cqc(&fix, EQN, 0, 0);
    g_assert_cmphex(sw2hw_cq(&fix, CQN, &cqc), ==, RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(sw2hw_cq(&fix, 1u << LOG_CQS, &cqc), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, 1), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, UINT32_MAX, &cqc), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmpuint(hca_cxt_live(fix.cm)->cqs, ==, 1);
    fix_free(&fix);
}

/* 3.2.4: event queues */

/* Every CQ fires into an EQ of four entries; none is lost. */
static void test_eq_full_completions(void)
{
    HcaCompletion cqe = good_cqe;
    bool seen[1u << LOG_CQS] = { 0 };
    uint32_t ci = 0;
    Fix fix;
    Queues q = fix_init(&fix);
    HcaQp *qp = fix_qp(&fix);

    for (uint32_t cqn = 3; cqn < 1u << LOG_CQS; cqn++) {
        new_cq(&fix, cqn, EQN, 0);
        cq_doorbell(&fix, cqn, HCA_CQ_ARMED_NEXT, 0);
        hca_cq_post(fix.cm, HCA_V2P_EE, qp, cqn, &cqe);
    }
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 4);
    /* One of those that wait goes away before its turn. */
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, 20), ==, 0);
    while (ci < eq_producer(&fix, EQN)) {
        const struct rdma_hca_eqe *eqe = eqe_at(&fix, q.eq, LOG_EQ, ci++);

        g_assert_cmphex(eqe->type, ==, RDMA_HCA_EVENT_COMP);
        seen[GUINT32_FROM_LE(eqe->cq.cqn)] = true;
        hca_eq_doorbell(fix.cm, EQN, ci, false);
    }
    for (uint32_t cqn = 3; cqn < 1u << LOG_CQS; cqn++) {
        g_assert_cmpint(seen[cqn], ==, cqn != 20);
    }
    fix_free(&fix);
}

static void qp_event(Fix *fix, uint8_t type, uint32_t qpn)
{
    HcaEvent event = { .type = type, .number = qpn };

    hca_eq_event(fix->cm, &event);
}

static void command_event(Fix *fix, uint16_t token, uint8_t status,
                          uint64_t out_param)
{
    HcaEvent event = {
        .type = HCA_EVENT_CMD,
        .number = token,
        .status = status,
        .out_param = out_param,
    };

    hca_eq_event(fix->cm, &event);
}

static void port_event(Fix *fix, uint8_t subtype)
{
    HcaEvent event = { .type = RDMA_HCA_EVENT_PORT_CHANGE,
                       .number = 1,
                       .subtype = subtype };

    hca_eq_event(fix->cm, &event);
}

/* Take all entries; how many there were of each type and number. */
static void drain_eq(Fix *fix, uint64_t queue, unsigned count[64])
{
    struct rdma_hca_eqc eqc;
    uint32_t ci;

    hca_cxtmgt_query_eq(fix->cm, EQN, &eqc);
    ci = GUINT32_FROM_BE(eqc.consumer_index);
    while (ci < eq_producer(fix, EQN)) {
        count[eqe_at(fix, queue, LOG_EQ, ci++)->type]++;
        hca_eq_doorbell(fix->cm, EQN, ci, false);
    }
}

static void test_eq_full_async(void)
{
    unsigned count[64] = { 0 };
    Fix fix;
    Queues q = fix_init(&fix);

    for (uint32_t qpn = 0; qpn < 32; qpn++) {
        qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_RTS);
        qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, qpn);
        qp_event(&fix, RDMA_HCA_EVENT_SQ_DRAINED, qpn);
        qp_event(&fix, RDMA_HCA_EVENT_WQ_ACCESS_ERROR, qpn);
    }
    for (unsigned i = 0; i < 5; i++) {
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
        port_event(&fix, RDMA_HCA_PORT_CHANGE_ACTIVE);
    }
    command_event(&fix, 0x55, 3, UINT64_MAX);
    g_assert_true(hca_eq_command_pending(fix.cm));
    /* A QP that is gone has no events any more. */
    qp_reset(&fix, 31);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 4);
    drain_eq(&fix, q.eq, count);
    g_assert_false(hca_eq_command_pending(fix.cm));
    g_assert_cmpuint(count[RDMA_HCA_EVENT_COMM_EST], ==, 31);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_SQ_DRAINED], ==, 31);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_WQ_ACCESS_ERROR], ==, 31);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_PORT_CHANGE], ==, 2);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_CMD], ==, 1);
    fix_free(&fix);
}

/* CQ_ERROR waits like the others; the CQ may go first. */
static void test_eq_full_cq_error(void)
{
    unsigned count[64] = { 0 };
    HcaQp *qp;
    Fix fix;
    Queues q = fix_init(&fix);

    qp_to(&fix, 9, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 4; i++) {
        qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, 9);
    }
    qp = fix_qp(&fix);
    for (unsigned i = 0; i < 9; i++) {
        post(&fix, qp, false);
    }
    drain_eq(&fix, q.eq, count);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_CQ_ERROR], ==, 1);
    g_assert_cmpuint(count[RDMA_HCA_EVENT_COMM_EST], ==, 4);
    fix_free(&fix);
}

/*
 * Events of many QPs wait for a full EQ. A doorbell does no more than it can
 * deliver, be it of this queue or of another, and none is lost.
 */
static void test_eq_wait_work(void)
{
    const HcaCxtCounters *counters;
    uint32_t ci = 0, n = 0;
    uint64_t waits;
    Fix fix;

    fix_init(&fix);
    counters = hca_cxt_counters(fix.cm);
    new_eq(&fix, 2, LOG_EQ);
    for (uint32_t qpn = 0; qpn < 1u << LOG_QPS; qpn++) {
        HcaEvent event = { .number = qpn };

        qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_RTS);
        event.type = HCA_EVENT_COMM_EST;
        hca_eq_event(fix.cm, &event);
        event.type = HCA_EVENT_WQ_ACCESS_ERROR;
        hca_eq_event(fix.cm, &event);
        n += 2;
    }
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, n - (1u << LOG_EQ));
    for (unsigned i = 0; i < 10; i++) {
        waits = counters->eq_waits;
        hca_eq_doorbell(fix.cm, EQN, 0, true);
        hca_eq_doorbell(fix.cm, 2, 0, true);
        g_assert_cmpuint(counters->eq_waits - waits, <=, 1);
    }
    while (ci < n) {
        waits = counters->eq_waits;
        hca_eq_doorbell(fix.cm, EQN, ++ci, true);
        g_assert_cmpuint(counters->eq_waits - waits, <=, 1);
        g_assert_cmpuint(eq_producer(&fix, EQN), ==,
                         MIN(ci + (1u << LOG_EQ), n));
    }
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 0);
    g_assert_cmpuint(counters->eqe_types[HCA_EVENT_COMM_EST], ==, n / 2);
    g_assert_cmpuint(counters->eqe_types[HCA_EVENT_WQ_ACCESS_ERROR], ==, n / 2);
    fix_free(&fix);
}

/* What waits goes to whoever asks for its type, or to nobody. */
static void test_eq_wait_remapped(void)
{
    const uint64_t comm_est = UINT64_C(1) << HCA_EVENT_COMM_EST;
    const uint64_t access = UINT64_C(1) << HCA_EVENT_WQ_ACCESS_ERROR;
    Fix fix;

    fix_init(&fix);
    new_eq(&fix, 2, LOG_EQ);
    for (uint32_t qpn = 0; qpn < 6; qpn++) {
        HcaEvent event = { .type = HCA_EVENT_COMM_EST, .number = qpn };

        qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_RTS);
        hca_eq_event(fix.cm, &event);
        event.type = HCA_EVENT_WQ_ACCESS_ERROR;
        hca_eq_event(fix.cm, &event);
    }
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 8);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, access, false), ==, 0);
    g_assert_cmpuint(eq_producer(&fix, 2), ==, 4);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 4);
    /* A QP that goes takes its events along. */
    qp_reset(&fix, 5);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 3);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, EQN, comm_est, true), ==, 0);
    g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, 0);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->events_unmapped, ==, 3);
    g_assert_cmpuint(eq_producer(&fix, EQN), ==, 4);
    fix_free(&fix);
}

/* Interrupts: one for each arm; at once if there is an entry. */
static void test_eq_interrupts(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, QPN);
    qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, QPN);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 1);
    hca_eq_doorbell(fix.cm, EQN, 1, false);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 1);
    hca_eq_doorbell(fix.cm, EQN, 1, true);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 2);
    hca_eq_doorbell(fix.cm, EQN, 2, true);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 2);
    qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, QPN);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 3);
    /* Beyond what there is, or back. */
    hca_eq_doorbell(fix.cm, EQN, 4, true);
    hca_eq_doorbell(fix.cm, EQN, 1, true);
    hca_eq_doorbell(fix.cm, 7, 0, true);
    hca_eq_doorbell(fix.cm, UINT32_MAX, 0, true);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->db_bad_ci, ==, 2);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->db_bad_eqn, ==, 2);
    g_assert_cmpuint(fix.ram->msix[EQN], ==, 3);
    /* ALWAYS_ARMED: one for each entry. */
    eqc = make_eqc(&fix, LOG_EQ, 5, RDMA_HCA_EQ_STATE_ALWAYS_ARMED);
    g_assert_cmphex(sw2hw_eq(&fix, 4, &eqc), ==, 0);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 4, UINT64_MAX, false), ==, 0);
    qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, QPN);
    qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, QPN);
    g_assert_cmpuint(fix.ram->msix[5], ==, 2);
    g_assert_cmpuint(fix.ram->msix_bad, ==, 0);
    fix_free(&fix);
}

/* The consumer index has 24 bits; the producer goes past them. */
static void test_eq_wrap(void)
{
    struct rdma_hca_eqc eqc;
    uint32_t ci = 0xfffffe;
    Fix fix;

    fix_init(&fix);
    eqc = make_eqc(&fix, LOG_EQ, 2, RDMA_HCA_EQ_STATE_ARMED);
    eqc.consumer_index = eqc.producer_index = GUINT32_TO_BE(ci);
    g_assert_cmphex(sw2hw_eq(&fix, 2, &eqc), ==, 0);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, UINT64_MAX, false), ==, 0);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 20; i++) {
        qp_event(&fix, RDMA_HCA_EVENT_COMM_EST, QPN);
        hca_eq_doorbell(fix.cm, 2, ++ci & RDMA_HCA_EQ_DB_CI, false);
    }
    g_assert_cmphex(eq_producer(&fix, 2), ==, ci);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->db_bad_ci, ==, 0);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->eq_waits, ==, 0);
    fix_free(&fix);
}

/* MAP_EQ: each type goes to the EQ that asked last, or nowhere. */
static void test_eq_map(void)
{
    HcaCxtCounters *counters;
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    counters = hca_cxt_counters(fix.cm);
    new_eq(&fix, 2, LOG_EQ);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned type = 1; type < 0x15; type++) {
        uint32_t before = eq_producer(&fix, 2);

        g_assert_cmphex(
            hca_cxtmgt_map_eq(fix.cm, 2, UINT64_C(1) << type, false), ==, 0);
        qp_event(&fix, type, QPN);
        g_assert_cmpuint(eq_producer(&fix, 2), ==, before + 1);
        hca_eq_doorbell(fix.cm, 2, before + 1, false);
        hca_cxtmgt_query_eq(fix.cm, 2, &eqc);
        g_assert_cmphex(GUINT32_FROM_BE(eqc.event_mask_l), ==, 1u << type);
        /* Unmapped by another it stays; by itself it goes. */
        g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, EQN, UINT64_MAX, true), ==,
                        0);
        qp_event(&fix, type, QPN);
        g_assert_cmpuint(eq_producer(&fix, 2), ==, before + 2);
        hca_eq_doorbell(fix.cm, 2, before + 2, false);
        g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, UINT64_MAX, true), ==, 0);
        counters->events_unmapped = 0;
        qp_event(&fix, type, QPN);
        g_assert_cmpuint(counters->events_unmapped, ==, 1);
    }
    command_event(&fix, 1, 0, 0);
    g_assert_cmpuint(counters->events_unmapped, ==, 2);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 3, 1, false), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 0x7fffffff, 1, false), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    fix_free(&fix);
}

static void test_eq_life(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, EQN), ==,
                    RDMA_HCA_STAT_RESOURCE_BUSY);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, CQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, EQN), ==, 0);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, EQN), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, 1u << LOG_EQS), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_query_eq(fix.cm, EQN, &eqc), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->events_unmapped, ==, 1);
    /* Bad values. */
    eqc = make_eqc(&fix, LOG_EQ, RAM_VECTORS, RDMA_HCA_EQ_STATE_ARMED);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = make_eqc(&fix, LOG_EQ, 0, 0);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = make_eqc(&fix, LOG_EQ, 0, 4);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = make_eqc(&fix, LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.logsize = GUINT32_TO_BE(21u << 24);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = make_eqc(&fix, LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.start_l = GUINT32_TO_BE(16);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = make_eqc(&fix, LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.consumer_index = GUINT32_TO_BE(1);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    eqc = make_eqc(&fix, LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.pd = GUINT32_TO_BE(1u << LOG_PDS);
    g_assert_cmphex(sw2hw_eq(&fix, 0, &eqc), ==, 3);
    g_assert_cmpuint(hca_cxt_live(fix.cm)->eqs, ==, 0);
    fix_free(&fix);
}

/* An EQ whose memory is refused: its status says so, and it is not tried. */
static void test_eq_unwritable(void)
{
    struct rdma_hca_eqc eqc;
    Fix fix;

    fix_init(&fix);
    eqc = make_eqc(&fix, LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
    eqc.lkey = GUINT32_TO_BE(KEY + 1);
    g_assert_cmphex(sw2hw_eq(&fix, 2, &eqc), ==, 0);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2, UINT64_MAX, false), ==, 0);
    for (unsigned i = 0; i < 9; i++) {
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
    }
    g_assert_cmpuint(hca_cxt_counters(fix.cm)->events_lost, ==, 9);
    hca_cxtmgt_query_eq(fix.cm, 2, &eqc);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, GUINT32_FROM_BE(eqc.flags)), ==,
        RDMA_HCA_EQ_STATUS_WRITE_FAIL);
    g_assert_cmpuint(fix.ram->msix[0], ==, 0);
    fix_free(&fix);
}

/* The EQ that asked for it is told which one has failed, once it has room. */
static void test_eq_failed(void)
{
    const uint64_t port = UINT64_C(1) << HCA_EVENT_PORT_CHANGE;
    HcaEvent event = { .type = HCA_EVENT_COMM_EST, .number = QPN };
    struct rdma_hca_eqc eqc;
    Fix fix;
    Queues q = fix_init(&fix);

    for (unsigned full = 0; full < 2; full++) {
        uint32_t next = eq_producer(&fix, EQN);

        eqc = make_eqc(&fix, LOG_EQ, 0, RDMA_HCA_EQ_STATE_ARMED);
        eqc.lkey = GUINT32_TO_BE(KEY + 1);
        g_assert_cmphex(sw2hw_eq(&fix, 2 + full, &eqc), ==, 0);
        for (unsigned i = 0; full && i < 1u << LOG_EQ; i++) {
            hca_eq_event(fix.cm, &event);
            next++;
        }
        g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, 2 + full, port, false), ==,
                        0);
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
        g_assert_cmpuint(hca_cxt_waiting_events(fix.cm), ==, full);
        hca_eq_doorbell(fix.cm, EQN, next, false);
        g_assert_cmpuint(eq_producer(&fix, EQN), ==, next + 1);
        expect_eqe(&fix, q.eq, LOG_EQ, next, HCA_EVENT_LOCAL_CATAS_ERROR,
                   2 + full);
        hca_eq_doorbell(fix.cm, EQN, next + 1, false);
        port_event(&fix, RDMA_HCA_PORT_CHANGE_DOWN);
        g_assert_cmpuint(eq_producer(&fix, EQN), ==, next + 1);
    }
    fix_free(&fix);
}

/* Context document 5.3 to 5.6: what is in ICM, and what is on the card */

static const void *context_at(Fix *fix, uint64_t base, uint32_t index,
                              size_t size)
{
    return ram_at(fix->ram, fix->icm + base + index * size);
}

static void expect_zeros(const void *context, size_t size)
{
    const uint8_t *byte = context;

    for (size_t i = 0; i < size; i++) {
        g_assert_cmphex(byte[i], ==, 0);
    }
}

/* DMA_PROC, and writectx: whole contexts; parts; zeros when they go */
static void test_icm_written(void)
{
    const struct rdma_hca_cqc *cqc;
    const struct rdma_hca_eqc *eqc;
    const struct rdma_hca_qpc *qpc;
    Fix fix;
    Queues q = fix_init(&fix);

    qpc = context_at(&fix, QPC_BASE, QPN, RDMA_HCA_QPC_SIZE);
    cqc = context_at(&fix, CQC_BASE, CQN, RDMA_HCA_CQC_SIZE);
    eqc = context_at(&fix, EQC_BASE, EQN, RDMA_HCA_EQC_SIZE);
    g_assert_cmpuint(GUINT32_FROM_BE(cqc->start_l), ==, q.cq);
    g_assert_cmpuint(GUINT32_FROM_BE(cqc->cqn), ==, CQN);
    g_assert_cmpuint(GUINT32_FROM_BE(eqc->start_l), ==, q.eq);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_l), ==, UINT32_MAX);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_INIT);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc->local_qpn), ==, QPN);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc->snd_wqe_len), ==, 0x1000);

    g_assert_cmphex(hca_cxtmgt_resize_cq(fix.cm, CQN, LOG_CQ + 1, KEY), ==, 0);
    g_assert_cmpuint(RDMA_HCA_GET(RDMA_HCA_CQC_LOGSIZE,
                                  GUINT32_FROM_BE(cqc->logsize_usrpage)),
                     ==, LOG_CQ + 1);
    g_assert_cmphex(hca_cxtmgt_map_eq(fix.cm, EQN, 0xf0, true), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_l), ==, 0xffffff0f);

    qp_reset(&fix, QPN);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc->flags)), ==,
        RDMA_HCA_QP_STATE_RST);
    g_assert_cmphex(hca_cxtmgt_hw2sw_cq(fix.cm, CQN), ==, 0);
    expect_zeros(cqc, sizeof(*cqc));
    g_assert_cmphex(hca_cxtmgt_hw2sw_eq(fix.cm, EQN), ==, 0);
    expect_zeros(eqc, sizeof(*eqc));
    fix_free(&fix);
}

/* RD_REQ, DATA_WR, RESP_OUT: an engine's write of the state goes to ICM. */
static void test_key_engine_write(void)
{
    const struct rdma_hca_qpc *qpc;
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    qpc = context_at(&fix, QPC_BASE, QPN, RDMA_HCA_QPC_SIZE);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, QPN);
    qp->req.next_psn = 0x111111;
    qp->req.unacked_psn = 0x101010;
    qp->resp.expected_psn = 0x222222;
    hca_qp_set_state(fix.cm, qp, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc->flags)), ==,
        RDMA_HCA_QP_STATE_ERR);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->next_send_psn), ==, 0x111111);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->last_acked_psn), ==, 0x101010);
    g_assert_cmphex(
        RDMA_HCA_GET(RDMA_HCA_QPC_PSN, GUINT32_FROM_BE(qpc->rnr_nextrecvpsn)),
        ==, 0x222222);
    fix_free(&fix);
}

/* RD_REQ, RESP_OUT: PSNs are read live; to ICM they go with the state. */
static void test_key_engine_read(void)
{
    struct rdma_hca_qpc got;
    const struct rdma_hca_qpc *qpc;
    Fix fix;

    fix_init(&fix);
    qpc = context_at(&fix, QPC_BASE, QPN, RDMA_HCA_QPC_SIZE);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->next_send_psn), ==, 0x123456);
    hca_qp_find(fix.cm, QPN)->req.next_psn = 0x111111;
    g_assert_cmphex(hca_cxtmgt_query_qp(fix.cm, QPN, &got), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(got.next_send_psn), ==, 0x111111);
    g_assert_cmphex(GUINT32_FROM_BE(qpc->next_send_psn), ==, 0x123456);
    fix_free(&fix);
}

/* No readctx: what the guest writes over its contexts changes nothing. */
static void test_icm_not_believed(void)
{
    struct rdma_hca_qpc qpc[2];
    struct rdma_hca_cqc cqc[2];
    struct rdma_hca_eqc eqc[2];
    Fix fix;

    fix_init(&fix);
    qp_to(&fix, QPN, RC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(hca_cxtmgt_query_qp(fix.cm, QPN, &qpc[i]), ==, 0);
        g_assert_cmphex(hca_cxtmgt_query_cq(fix.cm, CQN, &cqc[i]), ==, 0);
        g_assert_cmphex(hca_cxtmgt_query_eq(fix.cm, EQN, &eqc[i]), ==, 0);
        memset(ram_at(fix.ram, fix.icm), 0xff, ICM_PAGES * RAM_PAGE);
    }
    g_assert_cmpmem(&qpc[0], sizeof(qpc[0]), &qpc[1], sizeof(qpc[1]));
    g_assert_cmpmem(&cqc[0], sizeof(cqc[0]), &cqc[1], sizeof(cqc[1]));
    g_assert_cmpmem(&eqc[0], sizeof(eqc[0]), &eqc[1], sizeof(eqc[1]));
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/cxtmgt/qp/transitions", test_qp_transitions);
    test_add("/cxtmgt/qp/attributes", test_qp_attributes);
    test_add("/cxtmgt/qp/no-inbox", test_qp_no_inbox);
    test_add("/cxtmgt/qp/values", test_qp_values);
    test_add("/cxtmgt/qp/random", test_qp_random);
    test_add("/cxtmgt/qp/index", test_qp_index);
    test_add("/cxtmgt/qp/fields", test_qp_fields);
    test_add("/cxtmgt/qp/pkey", test_qp_pkey);
    test_add("/cxtmgt/qp/drain", test_qp_drain);
    test_add("/cxtmgt/qp/drain-event", test_qp_drain_event);
    test_add("/cxtmgt/qp/init2init", test_qp_init2init);
    test_add("/cxtmgt/icm/missing", test_icm_missing);
    test_add("/cxtmgt/icm/gone", test_icm_gone);
    test_add("/cxtmgt/icm/limits", test_init_limits);
    test_add("/cxtmgt/cq/entries", test_cq_entries);
    test_add("/cxtmgt/cq/arm", test_cq_arm);
    test_add("/cxtmgt/cq/arm-told", test_cq_arm_told);
    test_add("/cxtmgt/cq/arm-stale", test_cq_arm_stale);
    test_add("/cxtmgt/cq/arm-full-eq", test_cq_arm_full_eq);
    test_add("/cxtmgt/cq/arm-race", test_cq_arm_race);
    test_add("/cxtmgt/cq/arm-long-after", test_cq_arm_long_after);
    test_add("/cxtmgt/cq/arm-error", test_cq_arm_error);
    test_add("/cxtmgt/cq/doorbell-bad", test_cq_doorbell_bad);
    test_add("/cxtmgt/cq/overrun", test_cq_overrun);
    test_add("/cxtmgt/cq/ignore-overrun", test_cq_ignore_overrun);
    test_add("/cxtmgt/cq/ci-record", test_cq_ci_record);
    test_add("/cxtmgt/cq/unwritable", test_cq_unwritable);
    test_add("/cxtmgt/cq/resize", test_cq_resize);
    test_add("/cxtmgt/cq/values", test_cq_values);
    test_add("/cxtmgt/eq/full-completions", test_eq_full_completions);
    test_add("/cxtmgt/eq/full-async", test_eq_full_async);
    test_add("/cxtmgt/eq/full-cq-error", test_eq_full_cq_error);
    test_add("/cxtmgt/eq/wait-work", test_eq_wait_work);
    test_add("/cxtmgt/eq/wait-remapped", test_eq_wait_remapped);
    test_add("/cxtmgt/eq/interrupts", test_eq_interrupts);
    test_add("/cxtmgt/eq/wrap", test_eq_wrap);
    test_add("/cxtmgt/eq/map", test_eq_map);
    test_add("/cxtmgt/eq/life", test_eq_life);
    test_add("/cxtmgt/eq/unwritable", test_eq_unwritable);
    test_add("/cxtmgt/eq/failed", test_eq_failed);
    test_add("/cxtmgt/5.3/written", test_icm_written);
    test_add("/cxtmgt/5.4/engine-write", test_key_engine_write);
    test_add("/cxtmgt/5.4/engine-read", test_key_engine_read);
    test_add("/cxtmgt/5.5/not-believed", test_icm_not_believed);
    return g_test_run();
}
