/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues (IBA 10.2.9, 11.2.3; docs/abi.md): who takes which
 * WQE, the limit, errors of QPs and of the queue, life and death.
 */
#include <string.h>

#include "lib-make.h"
#include "lib-pair.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD

#define AREA 262144u
#define MTU 1024u
#define SLOT 8192u /* of the area, for one message */
#define GRH_SIZE 40
#define QPS 3

/* Side 0 sends; the QPs of side 1 share a receive queue. */
typedef struct Fix {
    Pair *pair;
    uint8_t service;
    Srq *srq;
    Driver *drv; /* of side 1 */
    Qp *near[QPS], *far[QPS];
    uint32_t lose; /* QPN of side 1: what follows a First of it is lost */
} Fix;

static CableFate tap(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    Fix *fix = opaque;
    const HcaEncap *encap = test_is_roce() ? &hca_encap_roce : &hca_encap_ib;
    HcaPacket packet;
    uint8_t operation;

    if (encap->parse(&packet, frame, len) != HCA_PARSE_OK ||
        packet.dest_qp != fix->lose) {
        return CABLE_DELIVER;
    }
    operation = HCA_BTH_OPERATION(packet.opcode);
    return operation == HCA_SEND_MIDDLE || operation == HCA_SEND_LAST
               ? CABLE_DROP
               : CABLE_DELIVER;
}

static Qp *shared_qp(Fix *fix, Srq *srq)
{
    QpConfig config;

    qp_config_init(&config, fix->pair->pd[1], fix->pair->cq[1]);
    config.service = fix->service;
    config.srq = srq;
    return qp_new(fix->drv, &config);
}

static void connect(Fix *fix, unsigned i, const QpAttr *attr)
{
    fix->near[i] = pair_new_qp(fix->pair, 0, fix->service);
    fix->far[i] = shared_qp(fix, fix->srq);
    qp_connect(fix->near[i], fix->far[i], attr);
}

static void fix_init_as(Fix *fix, uint8_t service, const SrqConfig *config)
{
    QpAttr attr;

    *fix = (Fix) { .service = service };
    fix->pair = pair_new_with(811, AREA, NULL, tap, fix);
    fix->drv = fix->pair->drv[1];
    fix->srq = srq_new(fix->drv, config);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < QPS; i++) {
        connect(fix, i, &attr);
    }
}

static void fix_init(Fix *fix, uint8_t service)
{
    SrqConfig config;

    /* The first PD of side 1 is its driver's, the second the Pair's. */
    srq_config_init(&config, 2);
    fix_init_as(fix, service, &config);
    g_assert_cmpuint(fix->pair->pd[1], ==, config.pd);
}

static void fix_free(Fix *fix)
{
    pair_free(fix->pair);
}

static uint64_t counted(const Fix *fix, const char *name)
{
    return pair_counter(fix->pair, 1, name);
}

static unsigned events(Fix *fix, uint8_t type)
{
    lab_run(fix->pair->lab);
    return driver_count_events(fix->drv, type);
}

/* Receives with the numbers from @first on, each in its own slot of the area */
static void post(Fix *fix, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        Sge sge = mr_sge(fix->pair->mr[1], i % 16 * SLOT, SLOT);
        RecvWr wr = { .wr_id = i, .nsge = 1, .sge = &sge };

        g_assert_true(srq_post(fix->srq, &wr, 1));
    }
}

static SendWr request(Fix *fix, unsigned i, uint8_t opcode, uint32_t len,
                      Sge *sge, UdAddress *ud)
{
    SendWr wr = pair_send(fix->pair, 0, opcode, i, sge, i * SLOT, len,
                          AREA / 2 + i * SLOT);

    if (fix->service == UD) {
        *ud = (UdAddress) {
            .dqpn = fix->far[i]->qpn,
            .qkey = 0x11111111,
        };
        ud_address_to(ud, fix->pair->drv[0], fix->drv);
        wr.ud = ud;
    }
    return wr;
}

/* QP @i sends @len bytes, each of them @i + 1. */
static void send_as(Fix *fix, unsigned i, uint8_t opcode, uint32_t len)
{
    UdAddress ud;
    Sge sge;
    SendWr wr = request(fix, i, opcode, len, &sge, &ud);

    mr_fill(fix->pair->mr[0], i * SLOT, i + 1, len);
    g_assert_true(qp_post_send(fix->near[i], &wr, 1));
}

static void send(Fix *fix, unsigned i, uint32_t len)
{
    send_as(fix, i, SEND, len);
}

static void expect_sent(Fix *fix, unsigned i, uint8_t syndrome)
{
    Wc wc;

    cq_expect(fix->pair->cq[0], &wc, i, syndrome);
}

/* The next receive is @wr_id's, by QP @i, with its data. */
static void expect(Fix *fix, unsigned wr_id, unsigned i, uint32_t len)
{
    uint32_t skip = fix->service == UD ? GRH_SIZE : 0;
    g_autofree uint8_t *got = g_malloc0(len + skip);
    Wc wc;

    cq_expect(fix->pair->cq[1], &wc, wr_id, 0);
    g_assert_cmphex(wc.qpn, ==, fix->far[i]->qpn);
    g_assert_cmpuint(wc.byte_len, ==, len + skip);
    g_assert_false(wc.xrc);
    mr_read(fix->pair->mr[1], wr_id % 16 * SLOT, got, len + skip);
    for (uint32_t at = skip; at < len + skip; at++) {
        g_assert_cmphex(got[at], ==, i + 1);
    }
}

static void expect_failed(Fix *fix, unsigned wr_id, unsigned i,
                          uint8_t syndrome)
{
    Wc wc;

    cq_expect(fix->pair->cq[1], &wc, wr_id, syndrome);
    g_assert_cmphex(wc.qpn, ==, fix->far[i]->qpn);
}

static struct rdma_hca_srqc query(Fix *fix)
{
    struct rdma_hca_srqc srqc;

    g_assert_cmphex(srq_query(fix->srq, &srqc), ==, 0);
    return srqc;
}

static uint32_t field(__be32 word, uint32_t mask)
{
    return RDMA_HCA_GET(mask, GUINT32_FROM_BE(word));
}

/* ---- 10.2.9: taking ---- */

/* WQEs are taken in the order in which they were posted, by whoever asks. */
static void test_order(gconstpointer data)
{
    Fix fix;

    fix_init(&fix, GPOINTER_TO_UINT(data));
    post(&fix, 0, 6);
    for (unsigned n = 0; n < 6; n++) {
        unsigned i = (n * 2) % QPS;

        send(&fix, i, 700 + n);
        expect(&fix, n, i, 700 + n);
        expect_sent(&fix, i, 0);
    }
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_wqes"), ==, 6);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_empty"), ==, 0);
    /* Six WQEs of 128 bytes are two fetches. */
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_fetches"), ==, 2);
    g_assert_cmpuint(counted(&fix, "responder_rq_fetches"), ==, 0);
    fix_free(&fix);
}

/* A QP has its WQE until its message ends; others go on with the next ones. */
static void test_held(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 4);
    fix.lose = fix.far[0]->qpn;
    send(&fix, 0, 5 * MTU);
    lab_run(fix.pair->lab);
    for (unsigned n = 1; n < 4; n++) {
        unsigned i = 1 + n % 2;

        send(&fix, i, 3000);
        expect(&fix, n, i, 3000);
        expect_sent(&fix, i, 0);
    }
    fix.lose = 0;
    expect(&fix, 0, 0, 5 * MTU);
    expect_sent(&fix, 0, 0);
    fix_free(&fix);
}

/* Write with immediate takes one with its last packet, Write and Read none. */
static void test_operations(void)
{
    Fix fix;

    fix_init(&fix, RC);
    send_as(&fix, 0, WRITE, 3 * MTU);
    expect_sent(&fix, 0, 0);
    send_as(&fix, 0, READ, 3 * MTU);
    expect_sent(&fix, 0, 0);
    post(&fix, 7, 1);
    send_as(&fix, 1, WRITE_IMM, 3 * MTU);
    expect_sent(&fix, 1, 0);
    {
        Wc wc;

        cq_expect(fix.pair->cq[1], &wc, 7, 0);
        g_assert_cmphex(wc.imm_be, ==, GUINT32_TO_BE(0x01020304));
        g_assert_cmphex(wc.qpn, ==, fix.far[1]->qpn);
    }
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_wqes"), ==, 1);
    fix_free(&fix);
}

/* 9.7.5.2.8: an empty queue is not ready; all of the QPs find what comes. */
static void test_empty_rc(void)
{
    Fix fix;

    fix_init(&fix, RC);
    send(&fix, 0, 100);
    send(&fix, 1, 100);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(counted(&fix, "responder_rnrs_tx"), ==, 2);
    g_assert_cmpuint(counted(&fix, "responder_refused_no_wqe"), ==, 2);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_empty"), ==, 2);
    post(&fix, 0, 2);
    expect_sent(&fix, 0, 0);
    expect_sent(&fix, 1, 0);
    expect(&fix, 0, 0, 100);
    expect(&fix, 1, 1, 100);
    fix_free(&fix);
}

/* 9.8.3: and without acknowledgements the message is lost. */
static void test_empty_unreliable(gconstpointer data)
{
    Fix fix;

    fix_init(&fix, GPOINTER_TO_UINT(data));
    send(&fix, 0, 100);
    expect_sent(&fix, 0, 0);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(pair_drops(fix.pair, 1, HCA_DROP_NO_WQE), ==, 1);
    post(&fix, 0, 1);
    send(&fix, 1, 100);
    expect(&fix, 0, 1, 100);
    fix_free(&fix);
}

/* UC: a message that breaks off leaves its WQE to the QP's next one. */
static void test_uc_broken_off(void)
{
    Fix fix;

    fix_init(&fix, UC);
    post(&fix, 0, 2);
    fix.lose = fix.far[0]->qpn;
    send(&fix, 0, 3 * MTU);
    expect_sent(&fix, 0, 0);
    lab_run(fix.pair->lab);
    fix.lose = 0;
    send(&fix, 1, 100);
    expect(&fix, 1, 1, 100);
    send(&fix, 0, 2 * MTU);
    expect(&fix, 0, 0, 2 * MTU);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_wqes"), ==, 2);
    fix_free(&fix);
}

/* 9.7.7.2: who shares a queue cannot promise any of it. */
static void test_credits(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 2);
    send(&fix, 0, 100);
    expect_sent(&fix, 0, 0);
    g_assert_true(
        card_qp(fix.pair->lab->host[0].hca, fix.near[0]->qpn)->req.no_credits);
    fix_free(&fix);
}

/* 10.6.3.5: entries are of the protection domain of the queue, not the QP's. */
static void test_protection_domain(void)
{
    SrqConfig config;
    uint32_t pd;
    RecvWr wr = { .nsge = 1 };
    Mr *mr;
    Sge sge;
    Wc wc;
    Fix fix;

    srq_config_init(&config, 3);
    fix_init_as(&fix, RC, &config);
    pd = pd_new(fix.drv);
    g_assert_cmpuint(pd, ==, config.pd);
    mr = mr_new(fix.drv, pd, 0x1234000, SLOT, ACCESS_ALL);
    sge = mr_sge(mr, 0, SLOT);
    wr.sge = &sge;
    g_assert_true(srq_post(fix.srq, &wr, 1));
    send(&fix, 0, 100);
    cq_expect(fix.pair->cq[1], &wc, 0, 0);
    expect_sent(&fix, 0, 0);
    /* That of the QP alone will not do. */
    post(&fix, 1, 1);
    send(&fix, 1, 100);
    expect_sent(&fix, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    expect_failed(&fix, 1, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    g_assert_cmpuint(qp_state(fix.far[1]), ==, RDMA_HCA_QP_STATE_ERR);
    /* An R_Key is the QP's. */
    send_as(&fix, 2, WRITE, 100);
    expect_sent(&fix, 2, 0);
    fix_free(&fix);
}

/* @n messages without data and receives for them, numbered from @first on; each
 * @every-th Send is signalled. */
static void empty_messages(Fix *fix, RecvWr *recv, SendWr *wr, unsigned n,
                           unsigned first, unsigned every)
{
    for (unsigned i = 0; i < n; i++) {
        Sge none;

        recv[i] = (RecvWr) { .wr_id = first + i };
        wr[i] = pair_send(fix->pair, 0, SEND, 0, &none, 0, 0, 0);
        wr[i].flags = (i + 1) % every ? 0 : SEND_SIGNALED;
        wr[i].sge = NULL;
        wr[i].nsge = 0;
    }
}

/* A queue of any number of slots, its count beyond 16 bits. */
static void test_wrap(void)
{
    SrqConfig config;
    Fix fix;

    srq_config_init(&config, 2);
    config.entries = 1000;
    config.log_entry = 5;
    fix_init_as(&fix, UC, &config);
    for (unsigned n = 0; n < 66000;) {
        RecvWr recv[1000];
        SendWr wr[60];
        Wc wc;

        empty_messages(&fix, recv, wr, 60, n, 60);
        g_assert_true(srq_post(fix.srq, recv, 60));
        g_assert_true(qp_post_send(fix.near[n % QPS], wr, 60));
        for (unsigned i = 0; i < 60; i++) {
            cq_expect(fix.pair->cq[1], &wc, n++, 0);
        }
        expect_sent(&fix, 0, 0);
    }
    g_assert_cmpuint(field(query(&fix).taken, 0xffff), ==, 66000 & 0xffff);
    fix_free(&fix);
}

/* ---- RESIZE_SRQ ---- */

/* Between what is posted and what is taken, past the end of the counts. */
static void test_resize(void)
{
    SrqConfig config;
    Fix fix;

    srq_config_init(&config, 2);
    config.log_entry = 6;
    fix_init_as(&fix, UC, &config);
    for (unsigned n = 0, round = 0; n < 66000; round++) {
        RecvWr recv[60];
        SendWr wr[60];
        Wc wc;

        empty_messages(&fix, recv, wr, 60, n, 30);
        g_assert_true(srq_post(fix.srq, recv, 60));
        g_assert_cmphex(srq_resize(fix.srq, 64u << round % 4), ==, 0);
        for (unsigned half = 0; half < 2; half++) {
            g_assert_true(qp_post_send(fix.near[n % QPS], wr + 30 * half, 30));
            for (unsigned i = 0; i < 30; i++) {
                cq_expect(fix.pair->cq[1], &wc, n++, 0);
            }
            expect_sent(&fix, 0, 0);
            g_assert_cmphex(srq_resize(fix.srq, half ? 64 : 128), ==, 0);
        }
    }
    g_assert_cmpuint(GUINT32_FROM_BE(query(&fix).len), ==, 64 << 6);
    g_assert_cmphex(GUINT32_FROM_BE(query(&fix).lkey), ==, fix.srq->mr->key);
    g_assert_cmpuint(field(query(&fix).taken, 0xffff), ==, 66000 & 0xffff);
    fix_free(&fix);
}

static uint8_t resize(const Fix *fix, uint32_t srqn, uint32_t len)
{
    struct rdma_hca_resize_srq resize = {
        .len = GUINT32_TO_BE(len),
        .lkey = GUINT32_TO_BE(fix->pair->mr[1]->key),
    };

    return driver_cmd_in(fix->drv, RDMA_HCA_CMD_RESIZE_SRQ, &resize,
                         sizeof(resize), srqn, 0);
}

/* Nothing changes; the queue's own slots have 128 bytes. */
static void test_resize_refused(void)
{
    static const uint32_t bad[] = { 0, 64, 129, 3 << 7, UINT32_MAX, 1u << 31 };
    struct rdma_hca_srqc before;
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 9);
    before = query(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(resize(&fix, fix.srq->srqn, bad[i]), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
    }
    g_assert_cmphex(resize(&fix, 64, 64 << 7), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(resize(&fix, 63, 64 << 7), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(srq_resize(fix.srq, 8), ==, RDMA_HCA_STAT_BAD_SIZE);
    g_assert_cmphex(srq_arm(fix.srq, 5), ==, 0);
    send(&fix, 0, 100);
    expect_sent(&fix, 0, 0);
    expect(&fix, 0, 0, 100);
    g_assert_cmphex(srq_resize(fix.srq, 4), ==, RDMA_HCA_STAT_BAD_SIZE);
    g_assert_cmphex(srq_arm(fix.srq, 0), ==, 0);
    g_assert_cmphex(query(&fix).lkey, ==, before.lkey);
    g_assert_cmphex(query(&fix).len, ==, before.len);
    g_assert_cmphex(srq_resize(fix.srq, 8), ==, 0);
    for (unsigned i = 1; i < 9; i++) {
        send(&fix, i % QPS, 100);
        expect_sent(&fix, i % QPS, 0);
        expect(&fix, i, i % QPS, 100);
    }
    /* A record that cannot be is found now. */
    host_write_le32(fix.drv->host, fix.srq->record, 0);
    g_assert_cmphex(srq_resize(fix.srq, 64), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_CATAS_ERROR), ==, 1);
    g_assert_cmphex(srq_resize(fix.srq, 64), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    fix_free(&fix);
}

/* ---- 10.2.9.2: the limit ---- */

static uint32_t limit(Fix *fix)
{
    return field(query(fix).limit_wqes, RDMA_HCA_SRQC_LIMIT);
}

static uint32_t left(Fix *fix)
{
    return field(query(fix).limit_wqes, RDMA_HCA_SRQC_WQES);
}

/* One message from start to end. */
static void take_one(Fix *fix, unsigned wr_id)
{
    unsigned i = wr_id % QPS;

    send(fix, i, 100);
    expect(fix, wr_id, i, 100);
    expect_sent(fix, i, 0);
}

static void test_limit(void)
{
    struct rdma_hca_eqe eqe;
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 10);
    g_assert_cmphex(srq_arm(fix.srq, 7), ==, 0);
    for (unsigned n = 0; n < 3; n++) {
        take_one(&fix, n);
        g_assert_cmpuint(limit(&fix), ==, 7);
        g_assert_cmpuint(left(&fix), ==, 9 - n);
    }
    g_assert_false(driver_event(fix.drv, RDMA_HCA_EVENT_SRQ_LIMIT, NULL));
    take_one(&fix, 3);
    g_assert_true(driver_event(fix.drv, RDMA_HCA_EVENT_SRQ_LIMIT, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.srq.srqn), ==, fix.srq->srqn);
    g_assert_cmpuint(limit(&fix), ==, 0);
    take_one(&fix, 4);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 0);
    g_assert_cmpuint(counted(&fix, "cxtmgt_event_srq_limit"), ==, 1);
    fix_free(&fix);
}

/* At once if fewer are left already; 0 takes it back; no more than slots. */
static void test_limit_armed(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 5);
    g_assert_cmphex(srq_arm(fix.srq, 5), ==, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 0);
    g_assert_cmphex(srq_arm(fix.srq, 6), ==, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 1);
    g_assert_cmpuint(limit(&fix), ==, 0);
    g_assert_cmphex(srq_arm(fix.srq, 5), ==, 0);
    g_assert_cmphex(srq_arm(fix.srq, 0), ==, 0);
    take_one(&fix, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 0);
    g_assert_cmphex(srq_arm(fix.srq, fix.srq->entries), ==, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 1);
    g_assert_cmphex(srq_arm(fix.srq, fix.srq->entries + 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    fix_free(&fix);
}

/* What was posted since the card last looked counts. */
static void test_limit_looks_again(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 4);
    take_one(&fix, 0);
    post(&fix, 4, 8);
    g_assert_cmphex(srq_arm(fix.srq, 4), ==, 0);
    for (unsigned n = 1; n < 8; n++) {
        take_one(&fix, n);
    }
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 0);
    take_one(&fix, 8);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 1);
    fix_free(&fix);
}

/* An event that finds its EQ full waits, and is one however often it comes. */
static void test_limit_waits(void)
{
    unsigned size;
    Fix fix;

    fix_init(&fix, RC);
    events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT);
    size = 1u << fix.drv->eq[EQ_ASYNC].log_size;
    for (unsigned i = 0; i < size + 10; i++) {
        g_assert_cmphex(srq_arm(fix.srq, 1), ==, 0);
    }
    g_assert_cmpuint(counted(&fix, "cxtmgt_events_waiting"), ==, 1);
    g_assert_cmpuint(driver_poll_eq(fix.drv, EQ_ASYNC), ==, size);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(driver_poll_eq(fix.drv, EQ_ASYNC), ==, 1);
    /* One that waits goes with its queue. */
    for (unsigned i = 0; i < size + 1; i++) {
        g_assert_cmphex(srq_arm(fix.srq, 1), ==, 0);
    }
    for (unsigned i = 0; i < QPS; i++) {
        qp_destroy(fix.far[i]);
    }
    g_assert_cmphex(srq_destroy(fix.srq), ==, 0);
    g_assert_cmpuint(counted(&fix, "cxtmgt_events_waiting"), ==, 0);
    g_assert_cmpuint(driver_poll_eq(fix.drv, EQ_ASYNC), ==, size);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(driver_poll_eq(fix.drv, EQ_ASYNC), ==, 0);
    fix_free(&fix);
}

/* ---- 10.2.9.1, 11.6.3.1: QPs that fail ---- */

static void expect_last_wqe(Fix *fix, unsigned i)
{
    struct rdma_hca_eqe eqe;

    lab_run(fix->pair->lab);
    g_assert_true(
        driver_event(fix->drv, RDMA_HCA_EVENT_LAST_WQE_REACHED, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.qp.qpn), ==, fix->far[i]->qpn);
    g_assert_cmpuint(events(fix, RDMA_HCA_EVENT_LAST_WQE_REACHED), ==, 0);
}

/* Also with nothing to flush; what is in the queue stays there. */
static void test_last_wqe_modify(gconstpointer data)
{
    Fix fix;

    fix_init(&fix, GPOINTER_TO_UINT(data));
    post(&fix, 0, 2);
    g_assert_cmphex(qp_to_err(fix.far[0]), ==, 0);
    expect_last_wqe(&fix, 0);
    cq_expect_none(fix.pair->cq[1]);
    g_assert_cmphex(qp_to_err(fix.far[0]), ==, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_LAST_WQE_REACHED), ==, 0);
    g_assert_cmpuint(left(&fix), ==, 2);
    send(&fix, 1, 100);
    expect(&fix, 0, 1, 100);
    /* And again in its next life. */
    qp_destroy(fix.far[0]);
    {
        QpAttr attr;

        qp_attr_init(&attr);
        fix.far[0] = shared_qp(&fix, fix.srq);
        g_assert_cmphex(qp_to_init(fix.far[0], &attr), ==, 0);
    }
    g_assert_cmphex(qp_to_err(fix.far[0]), ==, 0);
    expect_last_wqe(&fix, 0);
    fix_free(&fix);
}

/* Behind the completion of the WQE that it has. */
static void test_last_wqe_held(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 2);
    fix.lose = fix.far[0]->qpn;
    send(&fix, 0, 3 * MTU);
    lab_run(fix.pair->lab);
    g_assert_cmphex(qp_to_err(fix.far[0]), ==, 0);
    g_assert_true(driver_event(fix.drv, RDMA_HCA_EVENT_LAST_WQE_REACHED, NULL));
    expect_failed(&fix, 0, 0, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    take_one(&fix, 1);
    fix_free(&fix);
}

/* A QP that breaks by itself. */
static void test_last_wqe_breaks(void)
{
    SendWr wr;
    Sge sge;
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 1);
    wr = pair_send(fix.pair, 0, WRITE, 0, &sge, 0, 100, 0);
    wr.rkey ^= 0x100;
    g_assert_true(qp_post_send(fix.near[0], &wr, 1));
    expect_sent(&fix, 0, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    expect_last_wqe(&fix, 0);
    g_assert_cmpuint(left(&fix), ==, 1);
    /* None of a QP that shares no queue. */
    g_assert_cmphex(qp_to_err(fix.near[0]), ==, 0);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(
        driver_count_events(fix.pair->drv[0], RDMA_HCA_EVENT_LAST_WQE_REACHED),
        ==, 0);
    fix_free(&fix);
}

/* A WQE that is none breaks who took it; the others find the next one. */
static void test_malformed(void)
{
    const uint32_t inline_bit = GUINT32_TO_LE(RDMA_HCA_INLINE | 64);
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 2);
    mr_write(fix.srq->mr, 16, &inline_bit, sizeof(inline_bit));
    send(&fix, 0, 100);
    expect_sent(&fix, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    expect_failed(&fix, 0, 0, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    expect_last_wqe(&fix, 0);
    take_one(&fix, 1);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_CATAS_ERROR), ==, 0);
    fix_free(&fix);
}

/* ---- 11.6.3.4: a queue that fails ---- */

static void expect_srq_failed(Fix *fix)
{
    struct rdma_hca_eqe eqe;

    lab_run(fix->pair->lab);
    g_assert_true(driver_event(fix->drv, RDMA_HCA_EVENT_SRQ_CATAS_ERROR, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.srq.srqn), ==, fix->srq->srqn);
    g_assert_cmpuint(field(query(fix).flags, RDMA_HCA_SRQC_STATUS), ==,
                     RDMA_HCA_SRQ_STATUS_FAILED);
    g_assert_cmpuint(field(query(fix).limit_wqes, RDMA_HCA_SRQC_LIMIT), ==, 0);
}

/* Each QP that asks breaks, and the queue tells of it once. */
static void expect_all_break(Fix *fix)
{
    send(fix, 0, 100);
    expect_sent(fix, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    expect_srq_failed(fix);
    expect_last_wqe(fix, 0);
    g_assert_cmpuint(events(fix, RDMA_HCA_EVENT_WQ_CATAS_ERROR), ==, 1);
    send(fix, 1, 100);
    expect_sent(fix, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    g_assert_cmpuint(events(fix, RDMA_HCA_EVENT_WQ_CATAS_ERROR), ==, 1);
    expect_last_wqe(fix, 1);
    g_assert_cmpuint(events(fix, RDMA_HCA_EVENT_SRQ_CATAS_ERROR), ==, 0);
    /* What needs no receive goes on. */
    send_as(fix, 2, WRITE, 100);
    expect_sent(fix, 2, 0);
    g_assert_cmphex(srq_arm(fix->srq, 1), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(srq_arm(fix->srq, 0), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    for (unsigned i = 0; i < QPS; i++) {
        qp_destroy(fix->far[i]);
    }
    g_assert_cmphex(srq_destroy(fix->srq), ==, 0);
}

static void test_memory_gone(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 4);
    g_assert_cmphex(srq_arm(fix.srq, 2), ==, 0);
    g_assert_cmphex(mr_deregister(fix.srq->mr), ==, 0);
    send(&fix, 0, 100);
    expect_sent(&fix, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    expect_srq_failed(&fix);
    fix_free(&fix);
}

/* Records that cannot be: more than the queue holds. */
static void test_record_jumps(void)
{
    Fix fix;

    fix_init(&fix, RC);
    host_write_le32(fix.drv->host, fix.srq->record, fix.srq->entries + 1);
    expect_all_break(&fix);
    fix_free(&fix);
}

/* Fewer than the card has fetched already; found when the limit is armed. */
static void test_record_goes_back(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 4);
    take_one(&fix, 0);
    host_write_le32(fix.drv->host, fix.srq->record, 2);
    g_assert_cmphex(srq_arm(fix.srq, 4), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    expect_srq_failed(&fix);
    send(&fix, 0, 100);
    expect_sent(&fix, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    fix_free(&fix);
}

/* The bits above the count are nobody's. */
static void test_record_high_bits(void)
{
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 1);
    host_write_le32(fix.drv->host, fix.srq->record, 0xfffe0001);
    take_one(&fix, 0);
    fix_free(&fix);
}

/* UC and UD drop the message and break, too. */
static void test_memory_gone_unreliable(gconstpointer data)
{
    Fix fix;

    fix_init(&fix, GPOINTER_TO_UINT(data));
    host_write_le32(fix.drv->host, fix.srq->record, 0x8000);
    send(&fix, 0, 100);
    expect_sent(&fix, 0, 0);
    expect_srq_failed(&fix);
    g_assert_cmpuint(qp_state(fix.far[0]), ==, RDMA_HCA_QP_STATE_ERR);
    fix_free(&fix);
}

/* ---- commands ---- */

static uint8_t sw2hw(Fix *fix, const struct rdma_hca_srqc *srqc, uint32_t srqn)
{
    return driver_cmd_in(fix->drv, RDMA_HCA_CMD_SW2HW_SRQ, srqc, sizeof(*srqc),
                         srqn, 0);
}

static struct rdma_hca_srqc good(const Fix *fix)
{
    return good_srqc(fix->pair->pd[1], fix->srq->mr->key, 4096, 6,
                     fix->srq->record);
}

/* What SW2HW_SRQ looks at. */
static void test_sw2hw(void)
{
    static const struct {
        unsigned word;
        uint32_t value;
        uint8_t status;
    } row[] = {
        { 0, 0xa0060000, RDMA_HCA_STAT_BAD_PARAM }, /* failed */
        { 0, 0x00040000, RDMA_HCA_STAT_BAD_PARAM }, /* slots of 16 bytes */
        { 0, 0x000a0000, RDMA_HCA_STAT_BAD_PARAM }, /* and of 1024 */
        { 0, 0x00ff0000, RDMA_HCA_STAT_BAD_PARAM },
        { 0, 0x01060000, 0 }, /* XRC: CQ 0 and domain 0 follow */
        { 1, 0, RDMA_HCA_STAT_BAD_PARAM },
        { 1, 4096 + 32, RDMA_HCA_STAT_BAD_PARAM },
        { 1, 64 * 3, 0 },
        { 1, 64 << 12, 0 }, /* as many as there may be */
        { 1, 64 * 4097, RDMA_HCA_STAT_BAD_PARAM },
        { 1, 0xffffffc0, RDMA_HCA_STAT_BAD_PARAM },
        { 2, 1u << 8, RDMA_HCA_STAT_BAD_PARAM }, /* PD */
        { 5, 2, RDMA_HCA_STAT_BAD_PARAM },       /* record */
        { 8, 0xffff, 0 }, /* CQ and domain count with XRC alone */
        { 9, 0xffffffff, 0 },
    };
    const uint32_t srqn = 40;
    struct rdma_hca_srqc srqc;
    Fix fix;

    fix_init(&fix, RC);
    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        srqc = good(&fix);
        srqc.cqn = GUINT32_TO_BE(fix.pair->cq[1]->cqn);
        ((__be32 *)&srqc)[row[i].word] = GUINT32_TO_BE(row[i].value);
        g_assert_cmphex(sw2hw(&fix, &srqc, srqn), ==, row[i].status);
        if (!row[i].status) {
            g_assert_cmphex(driver_cmd(fix.drv, RDMA_HCA_CMD_HW2SW_SRQ, 0, srqn,
                                       0, 0, NULL),
                            ==, 0);
        }
    }
    srqc = good(&fix);
    srqc.db_h = srqc.db_l = 0;
    g_assert_cmphex(sw2hw(&fix, &srqc, srqn), ==, RDMA_HCA_STAT_BAD_PARAM);
    /* XRC: a CQ that is not there, a domain that cannot be. */
    srqc = good(&fix);
    srqc.flags |= GUINT32_TO_BE(RDMA_HCA_SRQC_XRC);
    srqc.cqn = GUINT32_TO_BE(200);
    g_assert_cmphex(sw2hw(&fix, &srqc, srqn), ==, RDMA_HCA_STAT_BAD_PARAM);
    srqc.cqn = GUINT32_TO_BE(fix.pair->cq[1]->cqn);
    srqc.xrcd = GUINT32_TO_BE(1u << HCA_LOG_XRCDS);
    g_assert_cmphex(sw2hw(&fix, &srqc, srqn), ==, RDMA_HCA_STAT_BAD_PARAM);
    fix_free(&fix);
}

/* Numbers and states. */
static void test_states(void)
{
    struct rdma_hca_srqc srqc;
    Fix fix;

    fix_init(&fix, RC);
    srqc = good(&fix);
    g_assert_cmphex(sw2hw(&fix, &srqc, 64), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(sw2hw(&fix, &srqc, fix.srq->srqn), ==,
                    RDMA_HCA_STAT_BAD_RESOURCE);
    for (unsigned i = 0; i < 3; i++) {
        static const uint16_t op[] = {
            RDMA_HCA_CMD_HW2SW_SRQ,
            RDMA_HCA_CMD_QUERY_SRQ,
            RDMA_HCA_CMD_ARM_SRQ,
        };

        g_assert_cmphex(
            driver_cmd(fix.drv, op[i], 0, 64, 0, fix.drv->mbox_out, NULL), ==,
            RDMA_HCA_STAT_BAD_INDEX);
        g_assert_cmphex(
            driver_cmd(fix.drv, op[i], 0, 63, 0, fix.drv->mbox_out, NULL), ==,
            RDMA_HCA_STAT_BAD_RES_STATE);
    }
    srqc = query(&fix);
    g_assert_cmphex(GUINT32_FROM_BE(srqc.flags), ==, 7 << 16);
    g_assert_cmpuint(GUINT32_FROM_BE(srqc.len), ==, 64 << 7);
    g_assert_cmphex(GUINT32_FROM_BE(srqc.pd), ==, fix.pair->pd[1]);
    g_assert_cmphex(GUINT32_FROM_BE(srqc.lkey), ==, fix.srq->mr->key);
    g_assert_cmphex((uint64_t)GUINT32_FROM_BE(srqc.db_h) << 32 |
                        GUINT32_FROM_BE(srqc.db_l),
                    ==, fix.srq->record);
    g_assert_cmphex(GUINT32_FROM_BE(srqc.srqn), ==, fix.srq->srqn);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srqs"), ==, 1);
    fix_free(&fix);
}

/* RST2INIT: an SRQ that is there, no queue beside it. */
static void test_rst2init(void)
{
    QpConfig config;
    SrqConfig xrc;
    QpAttr attr;
    Srq none = { .srqn = 33 };
    Srq beyond = { .srqn = 0xffffff };
    Fix fix;
    Qp *qp;

    fix_init(&fix, RC);
    qp_attr_init(&attr);
    qp_config_init(&config, fix.pair->pd[1], fix.pair->cq[1]);
    qp = qp_new(fix.drv, &config);
    qp->srq = fix.srq;
    g_assert_cmphex(qp_to_init(qp, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    config.srq = &none;
    g_assert_cmphex(qp_to_init(qp_new(fix.drv, &config), &attr), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    config.srq = &beyond;
    g_assert_cmphex(qp_to_init(qp_new(fix.drv, &config), &attr), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    srq_config_init(&xrc, fix.pair->pd[1]);
    srq_config_xrc(&xrc, fix.pair->cq[1], 1);
    config.srq = srq_new(fix.drv, &xrc);
    g_assert_cmphex(qp_to_init(qp_new(fix.drv, &config), &attr), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    config.srq = fix.srq;
    qp = qp_new(fix.drv, &config);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
    {
        struct rdma_hca_qpc qpc;

        g_assert_cmphex(qp_query(qp, &qpc), ==, 0);
        g_assert_cmphex(GUINT32_FROM_BE(qpc.srq), ==,
                        RDMA_HCA_QPC_USES_SRQ | fix.srq->srqn);
    }
    fix_free(&fix);
}

/* ---- life and death ---- */

/* In any order: who is in use stays. Then another one has the number. */
static void test_destroy(void)
{
    SrqConfig config;
    uint32_t srqn;
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 3);
    for (unsigned i = 0; i < QPS; i++) {
        g_assert_cmphex(srq_destroy(fix.srq), ==, RDMA_HCA_STAT_RESOURCE_BUSY);
        send(&fix, i, 10);
        expect(&fix, i, i, 10);
        qp_destroy(fix.far[i]);
    }
    srqn = fix.srq->srqn;
    g_assert_cmphex(srq_destroy(fix.srq), ==, 0);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srqs"), ==, 0);
    srq_config_init(&config, fix.pair->pd[1]);
    fix.srq = srq_new_number(fix.drv, &config, srqn);
    g_assert_cmpuint(left(&fix), ==, 0);
    driver_close(fix.drv);
    fix.pair->drv[1] = driver_new(&fix.pair->lab->host[1]);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srqs"), ==, 0);
    fix_free(&fix);
}

/* CLOSE_HCA and a reset, with a QP that has a WQE in hand. */
static void test_close(gconstpointer data)
{
    bool reset = GPOINTER_TO_UINT(data);
    Fix fix;

    fix_init(&fix, RC);
    post(&fix, 0, 2);
    fix.lose = fix.far[0]->qpn;
    send(&fix, 0, 3 * MTU);
    lab_run(fix.pair->lab);
    if (reset) {
        host_reset(fix.drv->host);
    } else {
        g_assert_cmphex(
            driver_cmd(fix.drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL), ==,
            0);
        g_assert_cmpuint(counted(&fix, "cxtmgt_srqs"), ==, 0);
        host_reset(fix.drv->host);
    }
    driver_free(fix.drv);
    fix.drv = fix.pair->drv[1] = driver_new(&fix.pair->lab->host[1]);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srqs"), ==, 0);
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_data_each_link("/srq/10.2.9/order/rc", GUINT_TO_POINTER(RC),
                            test_order);
    test_add_data_each_link("/srq/10.2.9/order/uc", GUINT_TO_POINTER(UC),
                            test_order);
    test_add_data_each_link("/srq/10.2.9/order/ud", GUINT_TO_POINTER(UD),
                            test_order);
    test_add_each_link("/srq/10.2.9/held", test_held);
    test_add_each_link("/srq/10.2.9/operations", test_operations);
    test_add_each_link("/srq/9.7.5.2.8/empty/rc", test_empty_rc);
    test_add_data_each_link("/srq/9.8.3/empty/uc", GUINT_TO_POINTER(UC),
                            test_empty_unreliable);
    test_add_data_each_link("/srq/9.8.3/empty/ud", GUINT_TO_POINTER(UD),
                            test_empty_unreliable);
    test_add_each_link("/srq/9.8.2.2/uc-broken-off", test_uc_broken_off);
    test_add_each_link("/srq/9.7.7.2/credits", test_credits);
    test_add_each_link("/srq/10.6.3.5/protection-domain",
                       test_protection_domain);
    test_add_each_link("/srq/wrap", test_wrap);
    test_add_each_link("/srq/10.2.9.2/limit", test_limit);
    test_add_each_link("/srq/10.2.9.2/armed", test_limit_armed);
    test_add_each_link("/srq/10.2.9.2/looks-again", test_limit_looks_again);
    test_add_each_link("/srq/10.2.9.2/waits", test_limit_waits);
    test_add_data_each_link("/srq/11.6.3.1/modify/rc", GUINT_TO_POINTER(RC),
                            test_last_wqe_modify);
    test_add_data_each_link("/srq/11.6.3.1/modify/uc", GUINT_TO_POINTER(UC),
                            test_last_wqe_modify);
    test_add_data_each_link("/srq/11.6.3.1/modify/ud", GUINT_TO_POINTER(UD),
                            test_last_wqe_modify);
    test_add_each_link("/srq/11.6.3.1/held", test_last_wqe_held);
    test_add_each_link("/srq/11.6.3.1/breaks", test_last_wqe_breaks);
    test_add_each_link("/srq/11.6.3.1/malformed", test_malformed);
    test_add_each_link("/srq/11.6.3.4/memory-gone", test_memory_gone);
    test_add_data_each_link("/srq/11.6.3.4/uc", GUINT_TO_POINTER(UC),
                            test_memory_gone_unreliable);
    test_add_data_each_link("/srq/11.6.3.4/ud", GUINT_TO_POINTER(UD),
                            test_memory_gone_unreliable);
    test_add_each_link("/srq/11.6.3.4/record/jumps", test_record_jumps);
    test_add_each_link("/srq/11.6.3.4/record/back", test_record_goes_back);
    test_add_each_link("/srq/11.6.3.4/record/high-bits", test_record_high_bits);
    test_add_each_link("/srq/commands/sw2hw", test_sw2hw);
    test_add_each_link("/srq/commands/states", test_states);
    test_add_each_link("/srq/resize", test_resize);
    test_add_each_link("/srq/resize/refused", test_resize_refused);
    test_add_each_link("/srq/commands/rst2init", test_rst2init);
    test_add_each_link("/srq/destroy", test_destroy);
    test_add_data_each_link("/srq/close", GUINT_TO_POINTER(0), test_close);
    test_add_data_each_link("/srq/reset", GUINT_TO_POINTER(1), test_close);
    return g_test_run();
}
