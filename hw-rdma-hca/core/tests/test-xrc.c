/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Extended reliable connections (IBA annex A14; docs/abi.md): an initiator on
 * side 0, a target on side 1, and the shared receive queues that requests name.
 */
#include <string.h>

#include "lib-mem.h"
#include "lib-pair.h"
#include "../link/framing.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define CMP_SWAP RDMA_HCA_OPCODE_ATOMIC_CS
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define INI RDMA_HCA_QP_ST_XRC_INI
#define TGT RDMA_HCA_QP_ST_XRC_TGT

#define AREA 65536u
#define SLOT 8192u
#define MTU 1024u
#define DOMAIN 5
#define IMM 0x01020304u

typedef struct Fix {
    Pair *pair;
    Driver *drv; /* of side 1 */
    Qp *ini[2], *tgt[2];
    Cq *cq; /* of the SRQs */
    uint32_t pd;
    Mr *mr; /* where receives go, of that PD */
    Srq *srq[2];
    /* The cable. */
    void (*edit)(HcaPacket *packet);
    unsigned lose; /* each so many packets of a side; 0: none */
    unsigned seen;
    unsigned requests, responses;
    bool break_off; /* what follows a First is lost */
} Fix;

static const HcaEncap *encap(void)
{
    return test_is_roce() ? &hca_encap_roce : &hca_encap_ib;
}

/* A14.2.2: XRCETH is in every request and in no response. */
static void check_headers(Fix *fix, unsigned from, const HcaPacket *packet,
                          const uint8_t *frame, size_t len)
{
    const uint8_t *bth = encap()->bth(frame, len);

    if (HCA_BTH_SERVICE(packet->opcode) != HCA_BTH_XRC) {
        return;
    }
    g_assert_true(hca_is_response(packet->opcode) == (from == 1));
    if (from == 0) {
        fix->requests++;
        g_assert_cmphex(bth[HCA_BTH_SIZE], ==, 0);
        g_assert_cmphex(bth[HCA_BTH_SIZE + 1] << 16 |
                            bth[HCA_BTH_SIZE + 2] << 8 | bth[HCA_BTH_SIZE + 3],
                        ==, packet->srqn);
    } else {
        fix->responses++;
        g_assert_cmphex(packet->srqn, ==, 0);
    }
}

static void rewrite(Fix *fix, HcaPacket *packet, uint8_t *frame, size_t len)
{
    g_autofree uint8_t *again = g_malloc(len + 256);
    size_t at;

    fix->edit(packet);
    at = encap()->build(packet, again);
    if (packet->payload_len) {
        memcpy(again + at, packet->payload, packet->payload_len);
    }
    g_assert_cmpuint(encap()->seal(packet, again, at + packet->payload_len), ==,
                     len);
    memcpy(frame, again, len);
}

static CableFate tap(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    Fix *fix = opaque;
    HcaPacket packet;
    uint8_t operation;

    if (encap()->parse(&packet, frame, len) != HCA_PARSE_OK) {
        return CABLE_DELIVER;
    }
    check_headers(fix, from, &packet, frame, len);
    operation = HCA_BTH_OPERATION(packet.opcode);
    if (fix->edit && from == 0) {
        rewrite(fix, &packet, frame, len);
    }
    if (fix->break_off &&
        (operation == HCA_SEND_MIDDLE || operation == HCA_SEND_LAST)) {
        return CABLE_DROP;
    }
    return fix->lose && ++fix->seen % fix->lose == 0 ? CABLE_DROP
                                                     : CABLE_DELIVER;
}

static Qp *new_qp(Fix *fix, unsigned side, uint8_t service)
{
    bool target = service == TGT;
    QpConfig config;

    qp_config_init(&config, fix->pair->pd[side], fix->pair->cq[side]);
    config.service = service;
    config.rq_entries = 0;
    config.recv_cq = NULL;
    if (target) {
        config.sq_entries = 0;
        config.send_cq = NULL;
        config.xrcd = DOMAIN;
    }
    return qp_new(fix->pair->drv[side], &config);
}

static void connect(Fix *fix, unsigned i)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.access |= RDMA_HCA_ACCESS_FLUSH;
    fix->ini[i] = new_qp(fix, 0, INI);
    fix->tgt[i] = new_qp(fix, 1, TGT);
    qp_connect(fix->ini[i], fix->tgt[i], &attr);
}

static Srq *new_srq(Fix *fix, uint32_t xrcd)
{
    SrqConfig config;

    srq_config_init(&config, fix->pd);
    srq_config_xrc(&config, fix->cq, xrcd);
    return srq_new(fix->drv, &config);
}

static void fix_init(Fix *fix)
{
    *fix = (Fix) { .edit = NULL };
    fix->pair = pair_new_with(812, AREA, NULL, tap, fix);
    fix->drv = fix->pair->drv[1];
    fix->cq = cq_new(fix->drv, 6, RDMA_HCA_UAR_KERNEL + 1);
    fix->pd = pd_new(fix->drv);
    fix->mr = mr_new(fix->drv, fix->pd, 0x12345000, AREA, ACCESS_ALL);
    for (unsigned i = 0; i < 2; i++) {
        fix->srq[i] = new_srq(fix, DOMAIN);
        connect(fix, i);
    }
}

static void fix_free(Fix *fix)
{
    Wc wc;

    g_assert_false(cq_poll(fix->cq, &wc));
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

static void post(Fix *fix, unsigned i, uint64_t wr_id)
{
    Sge sge = mr_sge(fix->mr, wr_id % 8 * SLOT, SLOT);
    RecvWr wr = { .wr_id = wr_id, .nsge = 1, .sge = &sge };

    g_assert_true(srq_post(fix->srq[i], &wr, 1));
}

static SendWr request(Fix *fix, uint8_t opcode, uint32_t len, uint32_t srqn,
                      Sge *sge)
{
    SendWr wr = pair_send(fix->pair, 0, opcode, 0, sge, 0, len, AREA / 2);

    wr.xrc = true;
    wr.srqn = srqn;
    /* Of the SRQs' PD: there is no other that a target would serve. */
    wr.raddr = fix->mr->va + AREA / 2;
    wr.rkey = fix->mr->key;
    return wr;
}

static void post_wr(Fix *fix, unsigned i, const SendWr *wr)
{
    g_assert_true(qp_post_send(fix->ini[i], wr, 1));
}

/* QP @i sends @len bytes of @byte to SRQ @srqn. */
static void send_to(Fix *fix, unsigned i, uint32_t srqn, int byte, uint32_t len)
{
    SendWr wr;
    Sge sge;

    mr_fill(fix->pair->mr[0], 0, byte, len);
    wr = request(fix, SEND, len, srqn, &sge);
    post_wr(fix, i, &wr);
}

static void expect_sent(Fix *fix, unsigned i, uint8_t syndrome)
{
    Wc wc;

    cq_expect(fix->pair->cq[0], &wc, 0, syndrome);
    g_assert_cmphex(wc.qpn, ==, fix->ini[i]->qpn);
    g_assert_false(wc.xrc);
}

static Wc expect_received(Fix *fix, uint64_t wr_id, unsigned i, unsigned srq,
                          uint8_t syndrome)
{
    Wc wc;

    cq_expect(fix->cq, &wc, wr_id, syndrome);
    g_assert_true(wc.xrc);
    g_assert_cmphex(wc.qpn, ==, fix->tgt[i]->qpn);
    g_assert_cmphex(wc.rqpn, ==, fix->srq[srq]->srqn);
    return wc;
}

static void expect_data(Fix *fix, uint64_t wr_id, int byte, uint32_t len)
{
    g_autofree uint8_t *got = g_malloc(len + 1);

    mr_read(fix->mr, wr_id % 8 * SLOT, got, len);
    for (uint32_t at = 0; at < len; at++) {
        g_assert_cmphex(got[at], ==, byte);
    }
}

/* ---- A14.2: operations ---- */

/* Sends of many lengths, with and without immediate data. */
static void test_send(void)
{
    static const uint32_t lens[] = { 0, 1, MTU, MTU + 1, 5 * MTU };
    Fix fix;

    fix_init(&fix);
    for (unsigned n = 0; n < 2 * G_N_ELEMENTS(lens); n++) {
        uint32_t len = lens[n / 2];
        SendWr wr;
        Sge sge;
        Wc wc;

        post(&fix, 0, n);
        mr_fill(fix.pair->mr[0], 0, n + 1, len);
        wr = request(&fix, n % 2 ? SEND_IMM : SEND, len, fix.srq[0]->srqn,
                     &sge);
        post_wr(&fix, 0, &wr);
        wc = expect_received(&fix, n, 0, 0, 0);
        g_assert_cmpuint(wc.byte_len, ==, len);
        g_assert_cmphex(HCA_BTH_SERVICE(wc.opcode), ==, HCA_BTH_XRC);
        if (n % 2) {
            g_assert_cmphex(wc.imm_be, ==, GUINT32_TO_BE(IMM));
        }
        expect_data(&fix, n, n + 1, len);
        expect_sent(&fix, 0, 0);
    }
    g_assert_cmpuint(fix.requests, ==, 2 * (1 + 1 + 1 + 2 + 5));
    g_assert_cmpuint(fix.responses, >, 0);
    fix_free(&fix);
}

/* Memory of the SRQ's domain: Write, Read; they use the SRQ for no more. */
static void test_rdma(void)
{
    const uint32_t len = 3 * MTU + 7;
    g_autofree uint8_t *data = NULL;
    g_autofree uint8_t *got = g_malloc(len);
    SendWr wr;
    Fix fix;
    Sge sge;

    fix_init(&fix);
    data = pair_data(fix.pair, len);
    mr_write(fix.pair->mr[0], 0, data, len);
    wr = request(&fix, WRITE, len, fix.srq[0]->srqn, &sge);
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, 0);
    mr_read(fix.mr, AREA / 2, got, len);
    g_assert_cmpmem(got, len, data, len);
    mr_fill(fix.pair->mr[0], 0, 0, len);
    wr = request(&fix, READ, len, fix.srq[1]->srqn, &sge);
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, 0);
    mr_read(fix.pair->mr[0], 0, got, len);
    g_assert_cmpmem(got, len, data, len);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_wqes"), ==, 0);
    fix_free(&fix);
}

static void test_write_imm(void)
{
    SendWr wr;
    Fix fix;
    Sge sge;
    Wc wc;

    fix_init(&fix);
    post(&fix, 1, 3);
    wr = request(&fix, WRITE_IMM, 2 * MTU, fix.srq[1]->srqn, &sge);
    post_wr(&fix, 0, &wr);
    wc = expect_received(&fix, 3, 0, 1, 0);
    g_assert_cmphex(wc.imm_be, ==, GUINT32_TO_BE(IMM));
    g_assert_cmpuint(wc.byte_len, ==, 2 * MTU);
    expect_sent(&fix, 0, 0);
    fix_free(&fix);
}

static void test_atomics(void)
{
    uint64_t value = GUINT64_TO_LE(100);
    SendWr wr;
    Fix fix;
    Sge sge;

    fix_init(&fix);
    wr = request(&fix, FETCH_ADD, 8, fix.srq[0]->srqn, &sge);
    wr.raddr &= ~7ull;
    wr.swap_add = 11;
    mr_write(fix.mr, wr.raddr - fix.mr->va, &value, sizeof(value));
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, 0);
    mr_read(fix.pair->mr[0], 0, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 100);
    wr.opcode = CMP_SWAP;
    wr.compare = 111;
    wr.swap_add = 5;
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, 0);
    mr_read(fix.pair->mr[0], 0, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 111);
    mr_read(fix.mr, wr.raddr - fix.mr->va, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 5);
    fix_free(&fix);
}

/* What annex A19 adds. Rights to FLUSH the regions here do not give. */
static void test_placement(void)
{
    uint64_t value = 0x1234567890, got;
    SendWr wr;
    Fix fix;
    Sge sge;

    fix_init(&fix);
    mr_write(fix.pair->mr[0], 0, &value, sizeof(value));
    wr = request(&fix, RDMA_HCA_OPCODE_ATOMIC_WRITE, 8, fix.srq[0]->srqn, &sge);
    wr.raddr &= ~7ull;
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, 0);
    mr_read(fix.mr, wr.raddr - fix.mr->va, &got, sizeof(got));
    g_assert_cmphex(got, ==, value);
    wr.opcode = RDMA_HCA_OPCODE_FLUSH;
    wr.nsge = 0;
    wr.flush = RDMA_HCA_FLUSH_TYPE_GLOBAL;
    wr.rkey =
        mr_new(fix.drv, fix.pd, wr.raddr, 4096, RDMA_HCA_ACCESS_FLUSH)->key;
    wr.flush_len = 4096;
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, 0);
    wr.rkey = fix.mr->key;
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    fix_free(&fix);
}

/* Each message goes to the queue that it names, whoever sends it. */
static void test_many_srqs(void)
{
    Fix fix;

    fix_init(&fix);
    for (unsigned n = 0; n < 8; n++) {
        post(&fix, n % 2, n);
    }
    for (unsigned n = 0; n < 8; n++) {
        unsigned from = n / 2 % 2;

        send_to(&fix, from, fix.srq[n % 2]->srqn, n + 1, 2 * MTU);
        expect_received(&fix, n, from, n % 2, 0);
        expect_data(&fix, n, n + 1, 2 * MTU);
        expect_sent(&fix, from, 0);
    }
    fix_free(&fix);
}

/* Packets are lost both ways: each message arrives once. */
static void test_loss(void)
{
    Fix fix;

    fix_init(&fix);
    fix.lose = 7;
    for (unsigned n = 0; n < 60; n++) {
        post(&fix, n % 2, n);
        send_to(&fix, 0, fix.srq[n % 2]->srqn, n + 1, n % 6 * MTU);
        expect_received(&fix, n, 0, n % 2, 0);
        expect_data(&fix, n, n + 1, n % 6 * MTU);
        expect_sent(&fix, 0, 0);
    }
    g_assert_cmpuint(pair_counter(fix.pair, 0, "requester_retransmissions"), >,
                     0);
    fix_free(&fix);
}

/* 9.7.5.2.8: an empty queue is not ready; credits there are none. */
static void test_empty(void)
{
    Fix fix;

    fix_init(&fix);
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 100);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(counted(&fix, "responder_rnrs_tx"), ==, 1);
    post(&fix, 0, 0);
    expect_received(&fix, 0, 0, 0, 0);
    expect_sent(&fix, 0, 0);
    g_assert_true(
        card_qp(fix.pair->lab->host[0].hca, fix.ini[0]->qpn)->req.no_credits);
    fix_free(&fix);
}

/* Both ends on one card. */
static void test_loopback(void)
{
    QpAttr attr;
    Fix fix;

    fix_init(&fix);
    qp_destroy(fix.tgt[0]);
    qp_attr_init(&attr);
    fix.ini[0] = new_qp(&fix, 1, INI);
    fix.tgt[0] = new_qp(&fix, 1, TGT);
    qp_connect(fix.ini[0], fix.tgt[0], &attr);
    post(&fix, 0, 2);
    {
        SendWr wr;
        Sge sge;
        Wc wc;

        wr = request(&fix, SEND, 3 * MTU, fix.srq[0]->srqn, &sge);
        mr_fill(fix.pair->mr[1], 0, 9, 3 * MTU);
        sge = mr_sge(fix.pair->mr[1], 0, 3 * MTU);
        post_wr(&fix, 0, &wr);
        expect_received(&fix, 2, 0, 0, 0);
        expect_data(&fix, 2, 9, 3 * MTU);
        cq_expect(fix.pair->cq[1], &wc, 0, 0);
    }
    fix_free(&fix);
}

/* ---- A14.3: what is refused ---- */

/* The target breaks, and says why; nobody waits for its last WQE. */
static void expect_refused(Fix *fix, unsigned i)
{
    expect_sent(fix, i, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    g_assert_cmpuint(qp_state(fix->tgt[i]), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(qp_state(fix->ini[i]), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(events(fix, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR), ==, 1);
    g_assert_cmpuint(events(fix, RDMA_HCA_EVENT_LAST_WQE_REACHED), ==, 0);
    g_assert_cmpuint(counted(fix, "responder_refused_xrc_srq"), >, 0);
}

/* No such queue, one beyond the table, no XRC SRQ, one of another domain. */
static void test_wrong_srq(gconstpointer data)
{
    unsigned how = GPOINTER_TO_UINT(data);
    SrqConfig config;
    uint32_t srqn = 0;
    Fix fix;

    fix_init(&fix);
    srq_config_init(&config, fix.pd);
    switch (how) {
    case 0:
        srqn = 63;
        break;
    case 1:
        srqn = 0xffffff;
        break;
    case 2:
        srqn = srq_new(fix.drv, &config)->srqn;
        break;
    case 3:
        srqn = new_srq(&fix, DOMAIN + 1)->srqn;
        break;
    }
    send_to(&fix, 0, srqn, 1, 100);
    expect_refused(&fix, 0);
    /* Of one that takes no WQE its R_Key is nobody's. */
    {
        static const uint8_t opcode[] = { WRITE, READ, FETCH_ADD, WRITE_IMM };
        SendWr wr;
        Sge sge;

        wr = request(&fix, opcode[how], how == 2 ? 8 : 2 * MTU, srqn, &sge);
        wr.raddr &= ~7ull;
        post_wr(&fix, 1, &wr);
    }
    expect_refused(&fix, 1);
    fix_free(&fix);
}

static uint32_t other_srqn;

static void name_another(HcaPacket *packet)
{
    if (HCA_BTH_OPERATION(packet->opcode) == HCA_SEND_LAST) {
        packet->srqn = other_srqn;
    }
}

/* A message that names two queues. */
static void test_two_srqs(void)
{
    Fix fix;

    fix_init(&fix);
    other_srqn = fix.srq[1]->srqn;
    fix.edit = name_another;
    post(&fix, 0, 0);
    post(&fix, 1, 1);
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 3 * MTU);
    expect_refused(&fix, 0);
    expect_received(&fix, 0, 0, 0, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    fix_free(&fix);
}

/* A queue that goes away under a message, and one that takes its number. */
static void test_srq_gone(gconstpointer data)
{
    bool again = GPOINTER_TO_UINT(data);
    uint32_t srqn;
    Fix fix;

    fix_init(&fix);
    srqn = fix.srq[0]->srqn;
    post(&fix, 0, 0);
    fix.break_off = true;
    send_to(&fix, 0, srqn, 1, 3 * MTU);
    lab_run(fix.pair->lab);
    g_assert_cmpuint(counted(&fix, "cxtmgt_srq_wqes"), ==, 1);
    g_assert_cmphex(srq_destroy(fix.srq[0]), ==, 0);
    if (again) {
        SrqConfig config;

        srq_config_init(&config, fix.pd);
        srq_config_xrc(&config, fix.cq, DOMAIN);
        fix.srq[0] = srq_new_number(fix.drv, &config, srqn);
        post(&fix, 0, 1);
    }
    fix.break_off = false;
    expect_refused(&fix, 0);
    /* The next one finds what is there now. */
    send_to(&fix, 1, again ? srqn : fix.srq[1]->srqn, 2, 100);
    if (again) {
        expect_received(&fix, 1, 1, 0, 0);
    } else {
        post(&fix, 1, 2);
        expect_received(&fix, 2, 1, 1, 0);
    }
    expect_sent(&fix, 1, 0);
    fix_free(&fix);
}

/* R_Keys and receives are of the SRQ's domain, and not of the target's. */
static void test_domains(void)
{
    SendWr wr;
    Fix fix;
    Sge sge;

    fix_init(&fix);
    wr = request(&fix, WRITE, 100, fix.srq[0]->srqn, &sge);
    wr.raddr = fix.pair->mr[1]->va;
    wr.rkey = fix.pair->mr[1]->key;
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_WQ_ACCESS_ERROR), ==, 1);
    sge = mr_sge(fix.pair->mr[1], 0, 1000);
    {
        RecvWr recv = { .wr_id = 4, .nsge = 1, .sge = &sge };

        g_assert_true(srq_post(fix.srq[0], &recv, 1));
    }
    send_to(&fix, 1, fix.srq[0]->srqn, 1, 100);
    expect_sent(&fix, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    expect_received(&fix, 4, 1, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    fix_free(&fix);
}

/* A target in ERR gives back the WQE that it has, to the queue's CQ. */
static void test_flush(void)
{
    Fix fix;

    fix_init(&fix);
    post(&fix, 0, 0);
    post(&fix, 0, 1);
    fix.break_off = true;
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 3 * MTU);
    lab_run(fix.pair->lab);
    g_assert_cmphex(qp_to_err(fix.tgt[0]), ==, 0);
    expect_received(&fix, 0, 0, 0, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_LAST_WQE_REACHED), ==, 0);
    fix.break_off = false;
    send_to(&fix, 1, fix.srq[0]->srqn, 2, 100);
    expect_received(&fix, 1, 1, 0, 0);
    expect_sent(&fix, 1, 0);
    qp_destroy(fix.tgt[0]);
    g_assert_cmphex(srq_destroy(fix.srq[0]), ==, 0);
    fix_free(&fix);
}

/* The queue's memory is gone: it fails, and who asks breaks. */
static void test_srq_fails(void)
{
    Fix fix;

    fix_init(&fix);
    host_write_le32(fix.drv->host, fix.srq[0]->record, 0x4000);
    for (unsigned i = 0; i < 2; i++) {
        send_to(&fix, i, fix.srq[0]->srqn, 1, 100);
        expect_sent(&fix, i, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
        g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_CATAS_ERROR), ==, !i);
        g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_WQ_CATAS_ERROR), ==, 1);
    }
    fix_free(&fix);
}

/* The CQ of a queue is full: it fails, and the target with it. */
static void test_cq_overruns(void)
{
    unsigned size;
    Fix fix;

    fix_init(&fix);
    size = 1u << fix.cq->log_size;
    for (unsigned n = 0; n <= size; n++) {
        Sge sge = mr_sge(fix.mr, 0, 100);
        RecvWr recv = { .nsge = 1, .sge = &sge };

        g_assert_true(srq_post(fix.srq[n % 2], &recv, 1));
        send_to(&fix, 0, fix.srq[n % 2]->srqn, 1, 10);
        expect_sent(&fix, 0, n == size ? RDMA_HCA_SYNDROME_REMOTE_OP_ERR : 0);
    }
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_CQ_ERROR), ==, 1);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_WQ_CATAS_ERROR), ==, 1);
    g_assert_cmphex(cq_destroy(fix.cq), ==, RDMA_HCA_STAT_RESOURCE_BUSY);
    for (unsigned n = 0; n < size; n++) {
        Wc wc;

        g_assert_true(cq_poll(fix.cq, &wc));
    }
    fix_free(&fix);
}

static void test_limit(void)
{
    Fix fix;

    fix_init(&fix);
    post(&fix, 0, 0);
    post(&fix, 0, 1);
    g_assert_cmphex(srq_arm(fix.srq[0], 2), ==, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 0);
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 100);
    expect_received(&fix, 0, 0, 0, 0);
    expect_sent(&fix, 0, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SRQ_LIMIT), ==, 1);
    fix_free(&fix);
}

/* ---- packets out of place ---- */

static void inject(Fix *fix, unsigned from, HcaPacket *packet)
{
    g_autofree uint8_t *frame = g_malloc0(8192);
    uint8_t header[HCA_FRAME_HEADER_SIZE];
    Driver *drv = fix->pair->drv[from], *peer = fix->pair->drv[!from];
    size_t len;

    if (drv->roce) {
        driver_roce_headers(drv, peer, GID_LINK_LOCAL, packet);
    } else {
        packet->slid = drv->host->config.lid;
        packet->dlid = peer->host->config.lid;
    }
    packet->pkey = HCA_DEFAULT_PKEY;
    len = encap()->build(packet, frame);
    len = encap()->seal(packet, frame, len + packet->payload_len);
    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(fix->pair->lab, from, header, sizeof(header));
    lab_cable_inject(fix->pair->lab, from, frame, len);
    lab_run(fix->pair->lab);
}

/* Of another service, and requests and responses to the wrong end. */
static void test_out_of_place(void)
{
    Qp *rc[2];
    uint64_t before[2];
    HcaPacket packet;
    Fix fix;

    fix_init(&fix);
    pair_connect(fix.pair, NULL, rc);
    for (unsigned i = 0; i < 2; i++) {
        before[i] = pair_drops(fix.pair, i, HCA_DROP_SERVICE);
    }
    packet = (HcaPacket) {
        .opcode = HCA_BTH_OPCODE(HCA_BTH_XRC, HCA_SEND_ONLY),
        .dest_qp = rc[1]->qpn,
        .psn = 0x123456,
        .srqn = fix.srq[0]->srqn,
    };
    inject(&fix, 0, &packet);
    packet.dest_qp = fix.tgt[0]->qpn;
    packet.opcode = HCA_BTH_OPCODE(HCA_BTH_RC, HCA_SEND_ONLY);
    inject(&fix, 0, &packet);
    packet.opcode = HCA_BTH_OPCODE(HCA_BTH_XRC, HCA_ACK);
    inject(&fix, 0, &packet);
    g_assert_cmpuint(pair_drops(fix.pair, 1, HCA_DROP_SERVICE), ==,
                     before[1] + 3);
    packet.opcode = HCA_BTH_OPCODE(HCA_BTH_XRC, HCA_SEND_ONLY);
    packet.dest_qp = fix.ini[0]->qpn;
    inject(&fix, 1, &packet);
    g_assert_cmpuint(pair_drops(fix.pair, 0, HCA_DROP_SERVICE), ==,
                     before[0] + 1);
    /* Nobody has noticed. */
    pair_check_works(fix.pair, rc, 0);
    post(&fix, 0, 0);
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 100);
    expect_received(&fix, 0, 0, 0, 0);
    expect_sent(&fix, 0, 0);
    fix_free(&fix);
}

/* A region for work requests that @pd has, on side 1; it is registered. */
static Mr *new_region(Fix *fix, uint32_t pd)
{
    Qp *peer = pair_new_qp(fix->pair, 0, RDMA_HCA_QP_ST_RC);
    Mr *mr = mem_region_new(fix->drv, pd, 1);
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_attr_init(&attr);
    qp_config_init(&config, pd, fix->pair->cq[1]);
    qp = qp_new(fix->drv, &config);
    qp_connect(peer, qp, &attr);
    mem_register(qp, mr, 0x770000, 64, ACCESS_ALL);
    return mr;
}

/* As an R_Key, the key is of the SRQ's PD; that of the target is no good. */
static void test_invalidate(gconstpointer data)
{
    bool own = GPOINTER_TO_UINT(data);
    SendWr wr;
    Fix fix;
    Sge sge;
    Mr *mr;
    Wc wc;

    fix_init(&fix);
    mr = new_region(&fix, own ? fix.pd : fix.pair->pd[1]);
    post(&fix, 0, 7);
    wr = request(&fix, RDMA_HCA_OPCODE_SEND_INV, 100, fix.srq[0]->srqn, &sge);
    wr.rkey = mr->key;
    post_wr(&fix, 0, &wr);
    expect_sent(&fix, 0, own ? 0 : RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    g_assert_true(mem_is_free(fix.drv, mr->key) == own);
    cq_expect(fix.cq, &wc, 7, own ? 0 : RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    g_assert_true(wc.xrc);
    if (own) {
        g_assert_cmphex(wc.inv_rkey, ==, mr->key);
    }
    fix_free(&fix);
}

/* What is reserved is refused as by RC. */
static void test_reserved(gconstpointer data)
{
    HcaPacket packet;
    Fix fix;

    fix_init(&fix);
    packet = (HcaPacket) {
        .opcode = HCA_BTH_OPCODE(HCA_BTH_XRC, GPOINTER_TO_UINT(data)),
        .dest_qp = fix.tgt[0]->qpn,
        .psn = 0x123456,
        .srqn = fix.srq[0]->srqn,
    };
    inject(&fix, 0, &packet);
    g_assert_cmpuint(qp_state(fix.tgt[0]), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(counted(&fix, "responder_nak_tx_invalid"), ==, 1);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR), ==, 1);
    fix_free(&fix);
}

/* ---- A14.4: queue pairs ---- */

/* A WQE without its xrc_unit. */
static void test_no_unit(void)
{
    SendWr wr;
    Fix fix;
    Sge sge;
    Wc wc;

    fix_init(&fix);
    wr = request(&fix, SEND, 0, 0, &sge);
    wr.xrc = false;
    wr.nsge = 0;
    post_wr(&fix, 0, &wr);
    cq_expect(fix.pair->cq[0], &wc, 0, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    g_assert_cmpuint(wc.vendor_err, ==, HCA_WQE_BAD_UNITS);
    g_assert_cmpuint(qp_state(fix.ini[0]), ==, RDMA_HCA_QP_STATE_ERR);
    /* What sends nothing needs none. */
    wr.opcode = RDMA_HCA_OPCODE_NOP;
    post_wr(&fix, 1, &wr);
    expect_sent(&fix, 1, 0);
    fix_free(&fix);
}

static uint8_t modify(Fix *fix, uint16_t op, struct rdma_hca_qpc *qpc,
                      uint32_t qpn)
{
    return driver_cmd_in(fix->drv, op, qpc, sizeof(*qpc), qpn, 0);
}

/* RST2INIT of a QP with these in place of zeros. */
static struct rdma_hca_qpc create(Fix *fix, uint8_t service)
{
    return (struct rdma_hca_qpc) {
        .flags = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, service)),
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 6)),
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .pd = GUINT32_TO_BE(fix->pd),
        .cqn_snd = GUINT32_TO_BE(fix->cq->cqn),
        .cqn_rcv = GUINT32_TO_BE(fix->cq->cqn),
    };
}

/* What a side does not have must not be given to it. */
static void test_create(void)
{
    enum {
        OK = RDMA_HCA_STAT_OK,
        BAD = RDMA_HCA_STAT_BAD_PARAM
    };
    static const struct {
        uint8_t service;
        uint32_t sq_len, rq_len, sq_cqn, rq_cqn, srq, xrcd;
        uint8_t status;
    } row[] = {
        { INI, 4096, 0, 0, 0, 0, 0, OK },
        { INI, 4096, 0, 0, 0xffffff, 0, 0xffffff, OK },
        { INI, 4096, 64, 0, 0, 0, 0, BAD },
        { INI, 4096, 0, 0xffffff, 0, 0, 0, BAD },
        { INI, 65, 0, 0, 0, 0, 0, BAD },
        { INI, 0, 0, 0, 0, RDMA_HCA_QPC_USES_SRQ | 1, 0, BAD },
        { TGT, 0, 0, 0, 0, 0, 0, OK },
        { TGT, 0, 0, 0xffffff, 0xffffff, 0, 0xffff, OK },
        { TGT, 64, 0, 0, 0, 0, 0, BAD },
        { TGT, 0, 64, 0, 0, 0, 0, BAD },
        { TGT, 0, 0, 0, 0, RDMA_HCA_QPC_USES_SRQ | 1, 0, BAD },
        { TGT, 0, 0, 0, 0, 0, 0x10000, BAD },
        { 4, 0, 0, 0, 0, 0, 0, BAD },
        { 2, 0, 0, 0, 0, 0, 0, BAD },
        { 8, 0, 0, 0, 0, 0, 0, BAD },
        { 255, 0, 0, 0, 0, 0, 0, BAD },
    };
    const uint32_t qpn = 200;
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        struct rdma_hca_qpc qpc = create(&fix, row[i].service);

        qpc.snd_wqe_len = GUINT32_TO_BE(row[i].sq_len);
        qpc.rcv_wqe_len = GUINT32_TO_BE(row[i].rq_len);
        if (row[i].sq_cqn) {
            qpc.cqn_snd = GUINT32_TO_BE(row[i].sq_cqn);
        }
        if (row[i].rq_cqn) {
            qpc.cqn_rcv = GUINT32_TO_BE(row[i].rq_cqn);
        }
        qpc.srq = GUINT32_TO_BE(row[i].srq);
        qpc.xrcd = GUINT32_TO_BE(row[i].xrcd);
        g_assert_cmphex(modify(&fix, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc, qpn), ==,
                        row[i].status);
        if (!row[i].status) {
            struct rdma_hca_qpc now;

            g_assert_cmphex(driver_cmd_out(fix.drv, RDMA_HCA_CMD_QUERY_QP, &now,
                                           sizeof(now), qpn, 0),
                            ==, 0);
            g_assert_cmphex(GUINT32_FROM_BE(now.xrcd), ==,
                            row[i].xrcd & RDMA_HCA_QPC_XRCD);
            g_assert_cmphex(driver_cmd(fix.drv, RDMA_HCA_CMD_ERR2RST_QPEE, 0,
                                       qpn, RDMA_HCA_MODIFY_NO_INBOX, 0, NULL),
                            ==, 0);
        }
    }
    fix_free(&fix);
}

/* Attributes of the other side are none of this one (A14.4.2). */
static void test_attributes(void)
{
    static const struct {
        uint8_t service;
        uint16_t op;
        uint32_t attr;
        bool good;
    } row[] = {
#define RTR2RTS RDMA_HCA_CMD_RTR2RTS_QPEE
#define INIT2RTR RDMA_HCA_CMD_INIT2RTR_QPEE
#define ATTR(name) RDMA_HCA_QP_ATTR_##name
        { INI, INIT2RTR, ATTR(RQ_PSN), true },
        { INI, INIT2RTR, ATTR(MAX_DEST_RD_ATOMIC), false },
        { INI, INIT2RTR, ATTR(MIN_RNR_TIMER), false },
        { INI, RTR2RTS, ATTR(RETRY_CNT), true },
        { INI, RTR2RTS, ATTR(MIN_RNR_TIMER), false },
        { TGT, INIT2RTR, ATTR(MAX_DEST_RD_ATOMIC), true },
        { TGT, INIT2RTR, ATTR(MIN_RNR_TIMER), true },
        { TGT, INIT2RTR, ATTR(QKEY), false },
        { TGT, RTR2RTS, ATTR(TIMEOUT), true },
        { TGT, RTR2RTS, ATTR(MIN_RNR_TIMER), true },
        { TGT, RTR2RTS, ATTR(RETRY_CNT), false },
        { TGT, RTR2RTS, ATTR(RNR_RETRY), false },
        { TGT, RTR2RTS, ATTR(MAX_QP_RD_ATOMIC), false },
    };
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        Qp *qp = new_qp(&fix, 1, row[i].service);
        struct rdma_hca_qpc qpc = create(&fix, row[i].service);
        QpAttr attr;

        qp_attr_init(&attr);
        qp_attr_to(&attr, fix.drv, fix.pair->drv[0]);
        g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
        if (row[i].op == RTR2RTS) {
            g_assert_cmphex(qp_to_rtr(qp, &attr), ==, 0);
        }
        qpc.mtu_msgmax_sz = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, 1));
        qpc.opt_param_mask = GUINT32_TO_BE(row[i].attr);
        g_assert_cmphex(modify(&fix, row[i].op, &qpc, qp->qpn), ==,
                        row[i].good ? RDMA_HCA_STAT_OK
                                    : RDMA_HCA_STAT_BAD_PARAM);
        qp_destroy(qp);
    }
    fix_free(&fix);
}

/* A target drains at once; an initiator behind what it has sent. */
static void test_sqd(void)
{
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(qp_to_sqd(fix.tgt[0], true), ==, 0);
    g_assert_cmpuint(events(&fix, RDMA_HCA_EVENT_SQ_DRAINED), ==, 1);
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 100);
    post(&fix, 0, 0);
    expect_received(&fix, 0, 0, 0, 0);
    expect_sent(&fix, 0, 0);
    g_assert_cmphex(qp_sqd_to_rts(fix.tgt[0]), ==, 0);
    g_assert_cmphex(qp_to_sqd(fix.ini[0], false), ==, 0);
    send_to(&fix, 0, fix.srq[0]->srqn, 1, 100);
    post(&fix, 0, 1);
    cq_expect_none(fix.pair->cq[0]);
    g_assert_cmphex(qp_sqd_to_rts(fix.ini[0]), ==, 0);
    expect_received(&fix, 1, 0, 0, 0);
    expect_sent(&fix, 0, 0);
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        GTestDataFunc test;
        unsigned arg;
    } cases[] = {
        { "/xrc/a14.3/no-such-srq", test_wrong_srq, 0 },
        { "/xrc/a14.3/beyond-the-table", test_wrong_srq, 1 },
        { "/xrc/a14.3/no-xrc-srq", test_wrong_srq, 2 },
        { "/xrc/a14.3/other-domain", test_wrong_srq, 3 },
        { "/xrc/a14.3/srq-gone", test_srq_gone, 0 },
        { "/xrc/a14.3/srq-again", test_srq_gone, 1 },
        { "/xrc/a14.3/reserved", test_reserved, 0x1f },
        { "/xrc/a14.3/invalidate-other-pd", test_invalidate, false },
        { "/xrc/a14.3/invalidate", test_invalidate, true },
    };

    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/xrc/a14.2/send", test_send);
    test_add_each_link("/xrc/a14.2/rdma", test_rdma);
    test_add_each_link("/xrc/a14.2/write-imm", test_write_imm);
    test_add_each_link("/xrc/a14.2/atomics", test_atomics);
    test_add_each_link("/xrc/a14.2/placement", test_placement);
    test_add_each_link("/xrc/a14.2/many-srqs", test_many_srqs);
    test_add_each_link("/xrc/a14.2/loss", test_loss);
    test_add_each_link("/xrc/a14.2/empty", test_empty);
    test_add_each_link("/xrc/a14.2/loopback", test_loopback);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        test_add_data_each_link(cases[i].name, GUINT_TO_POINTER(cases[i].arg),
                                cases[i].test);
    }
    test_add_each_link("/xrc/a14.3/two-srqs", test_two_srqs);
    test_add_each_link("/xrc/a14.3/domains", test_domains);
    test_add_each_link("/xrc/a14.3/flush", test_flush);
    test_add_each_link("/xrc/a14.3/srq-fails", test_srq_fails);
    test_add_each_link("/xrc/a14.3/cq-overruns", test_cq_overruns);
    test_add_each_link("/xrc/a14.3/limit", test_limit);
    test_add_each_link("/xrc/a14.3/out-of-place", test_out_of_place);
    test_add_each_link("/xrc/a14.4/no-unit", test_no_unit);
    test_add_each_link("/xrc/a14.4/create", test_create);
    test_add_each_link("/xrc/a14.4/attributes", test_attributes);
    test_add_each_link("/xrc/a14.4/sqd", test_sqd);
    return g_test_run();
}
