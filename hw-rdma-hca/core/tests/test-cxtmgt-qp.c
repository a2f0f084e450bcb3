/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The context manager's QPs: transitions, attributes and values (interface
 * document tables A1-2, A1-3), and what is told of a drained one.
 */
#include <string.h>

#include "lib-cxtmgt.h"
#include "lib-test.h"

#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD

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

    fix_qp_to(fix, FIX_QPN, service, state);
    hca_cxtmgt_query_qp(fix->cm, FIX_QPN, &before);
    changes = fix->changes;
    g_assert_cmphex(fix_modify(fix, arrow->op, FIX_QPN, service, 0), ==,
                    legal ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_QP_STATE);
    hca_cxtmgt_query_qp(fix->cm, FIX_QPN, &after);
    if (legal) {
        g_assert_cmpuint(fix_qp_state(fix, FIX_QPN), ==, arrow->to);
        g_assert_cmpuint(fix->changes - changes, ==, arrow->to != state);
        if (arrow->to != state) {
            g_assert_cmpuint(fix->from, ==, state);
            g_assert_cmpuint(fix->to, ==, arrow->to);
        }
    } else {
        g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
        g_assert_cmpuint(fix->changes, ==, changes);
    }
    fix_qp_reset(fix, FIX_QPN);
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

            fix_qp_to(&fix, FIX_QPN, service, row->from);
            status = fix_modify(&fix, row->op, FIX_QPN, service, 1u << bit);
            g_assert_cmphex(status, ==,
                            ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
            if (!ok) {
                g_assert_cmpuint(fix_qp_state(&fix, FIX_QPN), ==, row->from);
            }
            fix_qp_reset(&fix, FIX_QPN);
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

        fix_qp_to(&fix, FIX_QPN, RC, row->from);
        g_assert_cmphex(fix_modify_qp(&fix, row->op, FIX_QPN, NULL, false), ==,
                        ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
        fix_qp_reset(&fix, FIX_QPN);
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
    CREATE(pd, 1u << FIX_LOG_PDS),
    CREATE(pd, UINT32_MAX),
    CREATE(usr_page, RDMA_HCA_NUM_UARS),
    CREATE(cqn_snd, FIX_CQN + 1),
    CREATE(cqn_rcv, 1u << FIX_LOG_CQS),
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
    { HCA_QP_INIT2RTR, RC, WORD_OF(ackto_path), 8u << 16 },
    { HCA_QP_RTR2RTS, RC, WORD_OF(params1), 17u << 24 },
    { HCA_QP_RTR2RTS, UD, WORD_OF(next_send_psn), 1u << 24 },
};

static void test_qp_values(void)
{
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_values); i++) {
        const BadValue *bad = &bad_values[i];
        struct rdma_hca_qpc qpc = fix_make_qpc(bad->service, 0);
        struct rdma_hca_qpc before, after;
        unsigned state = bad->op - HCA_QP_RST2INIT;

        fix_qp_to(&fix, FIX_QPN, bad->service, state);
        ((__be32 *)&qpc)[bad->word / 4] = GUINT32_TO_BE(bad->value);
        hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &before);
        g_assert_cmphex(fix_modify_qp(&fix, bad->op, FIX_QPN, &qpc, false), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
        hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &after);
        g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
        fix_qp_reset(&fix, FIX_QPN);
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
        struct rdma_hca_qpc qpc = fix_make_qpc(g_test_rand_int_range(0, 5), 0);
        unsigned n = g_test_rand_int_range(0, 4);

        while (n--) {
            ((__be32 *)&qpc)[g_test_rand_int_range(0, 64)] =
                g_test_rand_int() & 1 ? g_test_rand_int()
                                      : -(g_test_rand_int() & 1);
        }
        fix_modify_qp(&fix, arrow->op, g_test_rand_int_range(0, 70), &qpc,
                      false);
    }
    fix_free(&fix);
}

static void test_qp_index(void)
{
    struct rdma_hca_qpc qpc;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_RST2INIT, 1u << FIX_LOG_QPS, RC, 0),
                    ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(fix_modify(&fix, HCA_QP_ERR2RST, UINT32_MAX, RC, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_cxtmgt_query_qp(fix.cm, 1u << FIX_LOG_QPS, &qpc), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_null(hca_qp_find(fix.cm, FIX_QPN + (1u << FIX_LOG_QPS)));
    /* An InfiniBand port's own (IBA 13.5.1, 13.5.3). */
    for (uint32_t qpn = 0; qpn < FIX_FIRST_QPN; qpn++) {
        g_assert_cmphex(fix_modify(&fix, HCA_QP_RST2INIT, qpn, UD, 0), ==,
                        RDMA_HCA_STAT_BAD_INDEX);
    }
    /* All there are, and not one more. */
    for (uint32_t qpn = FIX_FIRST_QPN; qpn < 1u << FIX_LOG_QPS; qpn++) {
        fix_qp_to(&fix, qpn, RC, RDMA_HCA_QP_STATE_INIT);
    }
    g_assert_cmpuint(hca_cxt_live(fix.cm)->qps, ==,
                     (1u << FIX_LOG_QPS) - FIX_FIRST_QPN);
    /* CLOSE_HCA tells the engines of each. */
    fix.changes = 0;
    hca_cxtmgt_close(fix.cm);
    g_assert_cmpuint(fix.changes, ==, (1u << FIX_LOG_QPS) - FIX_FIRST_QPN);
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
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, FIX_QPN);
    g_assert_cmpuint(qp->qpn, ==, FIX_QPN);
    g_assert_cmpuint(qp->pmtu, ==, 1024);
    g_assert_cmpuint(qp->max_msg, ==, 1u << 30);
    g_assert_cmphex(qp->attr.remote_qpn, ==, 0xabcdef);
    g_assert_cmphex(hca_port_pkey(fix.port, qp->attr.pkey_index), ==, 0xffff);
    g_assert_cmpuint(qp->attr.path.dlid, ==, 0x321);
    g_assert_cmpuint(hca_port_node_port(fix.port)->info.lid, ==, 77);
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
    hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &qpc);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.next_send_psn), ==, 0x123460);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.last_acked_psn), ==, 0x12345a);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.rnr_nextrecvpsn), ==, 0x0cffffff);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.rmsn), ==, 42);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.snd_wqe_len), ==, 0x1000);
    /* RTS2RTS leaves PSNs and what its mask does not name. */
    qpc = fix_make_qpc(RC, RDMA_HCA_QP_ATTR_MIN_RNR_TIMER);
    qpc.rnr_nextrecvpsn = GUINT32_TO_BE(0x1e000000);
    qpc.params1 = 0;
    g_assert_cmphex(fix_modify_qp(&fix, HCA_QP_RTS2RTS, FIX_QPN, &qpc, false),
                    ==, 0);
    g_assert_cmpuint(qp->attr.min_rnr_timer, ==, 30);
    g_assert_cmphex(qp->resp.expected_psn, ==, 0xffffff);
    g_assert_cmphex(qp->attr.access, ==, 0xe);
    /* The context in ICM has the state. */
    hca_qp_set_state(fix.cm, qp, RDMA_HCA_QP_STATE_ERR);
    memcpy(&qpc, ram_at(fix.ram, fix.icm + FIX_QPC_BASE + FIX_QPN * 256),
           sizeof(qpc));
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc.flags)), ==, 6);
    /* UD: datagrams of the port's MTU. */
    fix_qp_to(&fix, 6, UD, RDMA_HCA_QP_STATE_RTS);
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
            struct rdma_hca_qpc qpc = fix_make_qpc(c[i].service,
                                                   RDMA_HCA_QP_ATTR_PKEY_INDEX);
            bool ok = index < G_N_ELEMENTS(pkey);
            HcaQp *qp;

            fix_qp_to(&fix, FIX_QPN, c[i].service, c[i].from);
            qp = hca_qp_find(fix.cm, FIX_QPN);
            g_assert_cmphex(hca_port_pkey(fix.port, qp->attr.pkey_index), ==,
                            pkey[0]);
            qpc.port_pkey |= GUINT32_TO_BE(
                RDMA_HCA_PREP(RDMA_HCA_QPC_PKEY_INDEX, index));
            g_assert_cmphex(fix_modify_qp(&fix, c[i].op, FIX_QPN, &qpc, false),
                            ==,
                            ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
            g_assert_cmphex(hca_port_pkey(fix.port, qp->attr.pkey_index), ==,
                            pkey[ok ? index : 0]);
            hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &qpc);
            g_assert_cmpuint(RDMA_HCA_GET(RDMA_HCA_QPC_PKEY_INDEX,
                                          GUINT32_FROM_BE(qpc.port_pkey)),
                             ==, ok ? index : 0);
            fix_qp_reset(&fix, FIX_QPN);
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
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_RTS);
    qp = hca_qp_find(fix.cm, FIX_QPN);
    g_assert_cmphex(fix_modify_qp(&fix, HCA_QP_RTS2SQD, FIX_QPN, NULL, true),
                    ==, 0);
    g_assert_true(qp->sqd_event);
    hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &qpc);
    g_assert_true(GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_SQ_DRAINING);
    /* Nothing changes before it is drained. */
    g_assert_cmphex(
        fix_modify(&fix, HCA_QP_SQD2SQD, FIX_QPN, RC, RDMA_HCA_QP_ATTR_TIMEOUT),
        ==, RDMA_HCA_STAT_BAD_QP_STATE);
    qp->req.drained = true;
    hca_cxtmgt_query_qp(fix.cm, FIX_QPN, &qpc);
    g_assert_false(GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_SQ_DRAINING);
    g_assert_cmphex(
        fix_modify(&fix, HCA_QP_SQD2SQD, FIX_QPN, RC, RDMA_HCA_QP_ATTR_TIMEOUT),
        ==, 0);
    fix_free(&fix);
}

/* SQ_DRAINED is asked for in either of two ways, each time anew. */
static void test_qp_drain_event(void)
{
    static const uint32_t notify = RDMA_HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY;
    Fix fix;

    fix_init(&fix);
    fix_qp_to(&fix, FIX_QPN, UC, RDMA_HCA_QP_STATE_RTS);
    for (unsigned i = 0; i < 6; i++) {
        bool by_mask = i & 1, by_modifier = i & 2;
        struct rdma_hca_qpc qpc = fix_make_qpc(UC, by_mask ? notify : 0);

        g_assert_cmphex(
            fix_modify_qp(&fix, HCA_QP_RTS2SQD, FIX_QPN, &qpc, by_modifier), ==,
            0);
        g_assert_cmpint(hca_qp_find(fix.cm, FIX_QPN)->sqd_event, ==,
                        by_mask || by_modifier);
        g_assert_cmphex(fix_modify(&fix, HCA_QP_SQD2RTS, FIX_QPN, UC, 0), ==,
                        0);
    }
    g_assert_cmphex(fix_modify(&fix, HCA_QP_RTS2RTS, FIX_QPN, UC, notify), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    fix_free(&fix);
}

/* INIT2INIT takes what the mask names; all if it names nothing. */
static void test_qp_init2init(void)
{
    struct rdma_hca_qpc qpc = fix_make_qpc(RC, RDMA_HCA_QP_ATTR_ACCESS_FLAGS);
    HcaQp *qp;
    Fix fix;

    fix_init(&fix);
    fix_qp_to(&fix, FIX_QPN, RC, RDMA_HCA_QP_STATE_INIT);
    qp = hca_qp_find(fix.cm, FIX_QPN);
    qpc.params1 = 0;
    qpc.port_pkey = 0;
    g_assert_cmphex(fix_modify_qp(&fix, HCA_QP_INIT2INIT, FIX_QPN, &qpc, false),
                    ==, 0);
    g_assert_cmphex(qp->attr.access, ==, 0);
    g_assert_cmpuint(qp->attr.port, ==, 1);
    qpc.opt_param_mask = 0;
    g_assert_cmphex(fix_modify_qp(&fix, HCA_QP_INIT2INIT, FIX_QPN, &qpc, false),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    qpc.opt_param_mask = GUINT32_TO_BE(RDMA_HCA_QP_ATTR_STATE);
    g_assert_cmphex(fix_modify_qp(&fix, HCA_QP_INIT2INIT, FIX_QPN, &qpc, false),
                    ==, 0);
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
    return g_test_run();
}
