/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send WQE processing (engine document 2): what becomes of doorbells, chains
 * and the units of a WQE. Tests are named after the arcs of the figures that
 * they take; docs/figures.md has the whole list.
 */
#include <string.h>

#include "../send/send.h"
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define CMP_SWAP RDMA_HCA_OPCODE_ATOMIC_CS
#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name

/* ---- figure 2.4: WQEScheduler ---- */

/* Offsets of the WQEs of both QPs in the order in which they were parsed. */
typedef struct Order {
    unsigned n;
    uint32_t qpn[64];
    uint32_t offset[64];
} Order;

static void hear(void *opaque, unsigned side, const HcaTrace *trace)
{
    Order *order = opaque;

    if (side == 0 && trace->event == HCA_TRACE_WQE) {
        g_assert_cmpuint(order->n, <, G_N_ELEMENTS(order->offset));
        order->qpn[order->n] = trace->qpn;
        order->offset[order->n++] = trace->arg[0];
    }
}

/* The WQEs of @qp were parsed in the order of their slots, @n of them. */
static void expect_order(const Order *order, const Qp *qp, unsigned n)
{
    unsigned next = 0;

    for (unsigned i = 0; i < order->n; i++) {
        if (order->qpn[i] == qp->qpn) {
            g_assert_cmphex(order->offset[i], ==, next << qp->sq.log_entry);
            next++;
        }
    }
    g_assert_cmpuint(next, ==, n);
}

/* @n Sends of nothing, in one chain; not run yet. */
static void ring_chain(Qp *qp, unsigned n)
{
    SendWr wr[16];

    for (unsigned i = 0; i < n; i++) {
        wr[i] = (SendWr) { .opcode = SEND };
    }
    g_assert_true(qp_post_send(qp, wr, n));
}

static void finish_order(Bed *bed, unsigned sends)
{
    g_assert_cmpuint(bed->heard.length, ==, sends);
    bed_forget_requests(bed);
    bed_ack(bed, PSN + sends - 1);
    bed_free(bed);
}

/* IDLE, FROM_DBQ_JUDGE, FROM_DBQ_PROC: the flag is clear */
static void test_doorbell(void)
{
    Bed *bed = bed_new();
    Order order = { 0 };

    lab_listen(bed->pair->lab, hear, &order);
    for (unsigned i = 0; i < 5; i++) {
        ring_chain(bed->qp, 1);
        g_assert_false(bed->hqp->send.indicator);
    }
    bed_run(bed);
    expect_order(&order, bed->qp, 5);
    g_assert_cmpuint(bed_counter(bed, 0, "send_wqes_chained"), ==, 0);
    g_assert_cmpuint(bed_counter(bed, 0, "send_doorbells"), ==, 5);
    finish_order(bed, 5);
}

/* IDLE, FROM_MEMQ_PROC: the next of a chain has come from memory */
static void test_chained(void)
{
    Bed *bed = bed_new();
    Order order = { 0 };

    lab_listen(bed->pair->lab, hear, &order);
    ring_chain(bed->qp, 8);
    bed_run(bed);
    expect_order(&order, bed->qp, 8);
    g_assert_cmpuint(bed_counter(bed, 0, "send_wqes_chained"), ==, 7);
    g_assert_cmpuint(bed_counter(bed, 0, "send_doorbells"), ==, 1);
    g_assert_false(bed->hqp->send.indicator);
    finish_order(bed, 8);
}

/*
 * FROM_DBQ_JUDGE, IDLE: the flag is set, a doorbell waits for the end of the
 * chain before it (figure 2.3).
 */
static void test_doorbell_waits(void)
{
    Bed *bed = bed_new();
    Order order = { 0 };

    lab_listen(bed->pair->lab, hear, &order);
    ring_chain(bed->qp, 4);
    ring_chain(bed->qp, 1);
    ring_chain(bed->qp, 3);
    ring_chain(bed->qp, 1);
    bed_run(bed);
    expect_order(&order, bed->qp, 9);
    g_assert_cmpuint(bed_counter(bed, 0, "send_wqes_chained"), ==, 5);
    finish_order(bed, 9);
}

/* The flag is of one QP: the doorbell of another does not wait. */
static void test_flag_of_qp(void)
{
    Bed *bed = bed_new();
    Order order = { 0 };
    QpConfig config;
    QpAttr attr;
    Qp *other;

    qp_config_init(&config, bed->pair->pd[0], bed->cq);
    other = qp_new(bed->pair->drv[0], &config);
    bed_attr_init(&attr);
    attr.dlid = bed->peer.slid;
    attr.dest_qpn = BED_PEER_QPN;
    qp_bring_up(other, &attr);
    lab_listen(bed->pair->lab, hear, &order);
    /* A fence that never falls keeps the chain from being followed. */
    bed_post_flags(bed, READ, 0, 8, 0);
    g_assert_true(
        qp_post_send(bed->qp,
                     (SendWr[]) { { .opcode = SEND, .flags = SEND_FENCE },
                                  { .opcode = SEND },
                                  { .opcode = SEND } },
                     3));
    bed_run(bed);
    g_assert_true(bed->hqp->send.indicator);
    expect_order(&order, bed->qp, 2);
    ring_chain(other, 2);
    bed_run(bed);
    expect_order(&order, other, 2);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    expect_order(&order, bed->qp, 4);
    g_assert_cmpuint(bed->heard.length, ==, 3);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* A link to a WQE that has a doorbell of its own (DBD) is not followed. */
static void test_link_with_doorbell(void)
{
    Bed *bed = bed_new();
    Order order = { 0 };
    SendWr wr[2] = { { .opcode = SEND }, { .opcode = SEND } };
    uint32_t low, high, word;

    lab_listen(bed->pair->lab, hear, &order);
    g_assert_true(qp_write_send(bed->qp, wr, 2, &low, &high));
    mr_read(bed->qp->sq.mr, 4, &word, sizeof(word));
    word |= GUINT32_TO_LE(RDMA_HCA_NEXT_DBD);
    mr_write(bed->qp->sq.mr, 4, &word, sizeof(word));
    qp_ring(bed->qp, low, high);
    bed_run(bed);
    expect_order(&order, bed->qp, 1);
    qp_ring(bed->qp,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD,
                          (1u << bed->qp->sq.log_entry) / RDMA_HCA_WQE_UNIT) |
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_OPCODE, SEND),
            high);
    bed_run(bed);
    expect_order(&order, bed->qp, 2);
    finish_order(bed, 2);
}

/* ---- figures 2.5 and 2.7: WQEParse and DataPack ---- */

/* CXT_RESP, ERR_HANDLING: the QP is in error; only the link counts. */
static void test_qp_in_error(void)
{
    Bed *bed = bed_new();
    SendWr wr[4] = { { .wr_id = 0, .opcode = SEND },
                     { .wr_id = 1, .opcode = 0x1f },
                     { .wr_id = 2, .opcode = READ },
                     { .wr_id = 3, .opcode = WRITE } };

    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    g_assert_true(qp_post_send(bed->qp, wr, 4));
    bed_run(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "send_wqe_good"), ==, 4);
    for (unsigned i = 0; i < 4; i++) {
        bed_expect_wc(bed, i, SYNDROME(WR_FLUSH_ERR));
    }
    bed_free(bed);
}

/* The counters of HcaWqeCheck. */
static const char *const check_counter[] = {
    [HCA_WQE_GOOD] = "send_wqe_good",
    [HCA_WQE_BAD_PLACE] = "send_wqe_bad_place",
    [HCA_WQE_UNREADABLE] = "send_wqe_unreadable",
    [HCA_WQE_BAD_OPCODE] = "send_wqe_bad_opcode",
    [HCA_WQE_BAD_UNITS] = "send_wqe_bad_units",
    [HCA_WQE_BAD_LENGTH] = "send_wqe_bad_length",
    [HCA_WQE_BAD_ENTRY] = "send_wqe_bad_entry",
    [HCA_WQE_BAD_ADDRESS] = "send_wqe_bad_address",
};

/* The error: of its check, at the WQE, and the send queue stops. */
static void expect_failed(Bed *bed, uint64_t wr_id, uint8_t syndrome,
                          HcaWqeCheck check)
{
    Wc wc;

    bed_run(bed);
    g_assert_true(cq_poll(bed->cq, &wc));
    g_assert_cmpuint(wc.wr_id, ==, wr_id);
    g_assert_cmphex(wc.syndrome, ==, syndrome);
    g_assert_cmpuint(wc.vendor_err, ==, check);
    bed_counted(bed, 0, check_counter[check], 1);
    bed_expect_state(bed, bed->service == RC ? RDMA_HCA_QP_STATE_ERR
                                             : RDMA_HCA_QP_STATE_SQE);
    bed_expect_quiet(bed);
}

/* NEXT_SEG, ERR_HANDLING, CXT_WB: an opcode of no use (table 1.1) */
static void test_bad_opcode(const void *opaque)
{
    static const uint8_t allowed[][15] = {
        [RC] = { 0, WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CMP_SWAP, FETCH_ADD,
                 RDMA_HCA_OPCODE_ATOMIC_WRITE, RDMA_HCA_OPCODE_FLUSH,
                 RDMA_HCA_OPCODE_SEND_INV, RDMA_HCA_OPCODE_BIND_MW,
                 RDMA_HCA_OPCODE_REG_MR, RDMA_HCA_OPCODE_LOCAL_INV },
        [UC] = { 0, WRITE, WRITE_IMM, SEND, SEND_IMM, RDMA_HCA_OPCODE_BIND_MW,
                 RDMA_HCA_OPCODE_REG_MR, RDMA_HCA_OPCODE_LOCAL_INV },
        [UD] = { 0, SEND, SEND_IMM },
    };
    uint8_t service = GPOINTER_TO_UINT(opaque);

    for (unsigned opcode = 1; opcode < 32; opcode++) {
        SendWr wr = { .wr_id = 1, .opcode = opcode, .flags = SEND_SIGNALED };
        Bed *bed;

        if (memchr(allowed[service], opcode, sizeof(allowed[service]))) {
            continue;
        }
        bed = bed_new_service(service);
        bed_post_wr(bed, &wr);
        expect_failed(bed, 1, SYNDROME(LOCAL_QP_OP_ERR), HCA_WQE_BAD_OPCODE);
        bed_free(bed);
    }
}

/* The same of a Read when the QP may have none outstanding. */
static void test_no_reads(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.max_rd_atomic = 0;
    bed = bed_new_with(RC, &attr, NULL);
    bed_post(bed, READ, 1, 100);
    expect_failed(bed, 1, SYNDROME(LOCAL_QP_OP_ERR), HCA_WQE_BAD_OPCODE);
    bed_free(bed);
}

static void finish(Bed *bed, uint32_t last_psn)
{
    if (bed->service == RC) {
        bed_ack(bed, last_psn);
    }
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* NEXT_SEG, JUDGE, DATA_SEG_CMD; 2.7: META_FWD, SGL_DATA_TRANS, IDLE */
static void test_send(const void *opaque)
{
    Bed *bed = bed_new_service(GPOINTER_TO_UINT(opaque));

    bed_post(bed, SEND, 1, 200);
    bed_expect_payload(bed, HCA_SEND_ONLY, PSN, 4096, 200);
    finish(bed, PSN);
}

/* NEXT_SEG, IDLE: no data; 2.7: META_FWD, IDLE */
static void test_send_zero(const void *opaque)
{
    uint8_t service = GPOINTER_TO_UINT(opaque);
    Bed *bed = bed_new_service(service);
    SendWr wr = { .wr_id = 1,
                  .opcode = SEND_IMM,
                  .flags = SEND_SIGNALED,
                  .imm_be = 0x44332211 };
    g_autofree BedPacket *request = NULL;

    bed_post_wr(bed, &wr);
    request = bed_next(bed, HCA_SEND_ONLY_IMM, PSN);
    g_assert_cmpuint(request->packet.payload_len, ==, 0);
    g_assert_cmphex(request->packet.imm_be, ==, 0x44332211);
    finish(bed, PSN);
}

/* NEXT_SEG, UD_SEG, JUDGE */
static void test_ud(void)
{
    Bed *bed = bed_new_service(UD);
    UdAddress ud = { .dlid = bed->peer.slid,
                     .sl = 5,
                     .grh = true,
                     .dgid = { 0xfe, 0x80, [15] = 9 },
                     .dqpn = BED_PEER_QPN,
                     .qkey = 0x7654 };
    g_autofree BedPacket *request = NULL;
    Sge sge;
    SendWr wr = bed_wr(bed, &sge, SEND, 1, 4096);

    wr.ud = &ud;
    bed_post_wr(bed, &wr);
    request = bed_next(bed, HCA_SEND_ONLY, PSN);
    g_assert_cmphex(request->packet.qkey, ==, 0x7654);
    g_assert_cmphex(request->packet.src_qp, ==, bed->qp->qpn);
    g_assert_cmphex(request->packet.sl, ==, 5);
    g_assert_true(request->packet.has_grh);
    g_assert_cmpmem(request->packet.dgid.raw, 16, ud.dgid, 16);
    g_assert_cmpuint(request->packet.payload_len, ==, 4096);
    finish(bed, PSN);
}

/* UD_SEG, IDLE: no data. A Q_Key with its high bit set asks for the QP's. */
static void test_ud_zero(void)
{
    Bed *bed = bed_new_service(UD);
    UdAddress ud = { .dlid = bed->peer.slid,
                     .dqpn = BED_PEER_QPN,
                     .qkey = 0x80000000 };
    SendWr wr = {
        .wr_id = 1, .opcode = SEND, .flags = SEND_SIGNALED, .ud = &ud
    };
    g_autofree BedPacket *request = NULL;

    bed_post_wr(bed, &wr);
    request = bed_next(bed, HCA_SEND_ONLY, PSN);
    g_assert_cmphex(request->packet.qkey, ==, BED_QKEY);
    finish(bed, PSN);
}

/* NEXT_SEG, ADDR_SEG, JUDGE */
static void test_write(const void *opaque)
{
    Bed *bed = bed_new_service(GPOINTER_TO_UINT(opaque));
    g_autofree BedPacket *first = NULL;

    bed_post(bed, WRITE_IMM, 1, MTU + 1);
    first = bed_next(bed, HCA_WRITE_FIRST, PSN);
    g_assert_cmphex(first->packet.va, ==, BED_RADDR);
    g_assert_cmphex(first->packet.rkey, ==, BED_RKEY);
    g_assert_cmpuint(first->packet.dma_len, ==, MTU + 1);
    bed_expect_payload(bed, HCA_WRITE_LAST_IMM, PSN + 1, 4096 + MTU, 1);
    finish(bed, PSN + 1);
}

/* ADDR_SEG, FWD_DATA_SEG, IDLE; 2.7: META_FWD, ENTRY, IDLE */
static void test_read(void)
{
    Bed *bed = bed_new();
    Sge sge[3];
    SendWr wr = bed_wr(bed, sge, READ, 1, 10);

    sge[1] = mr_sge(bed->mr, 20000, 20);
    sge[2] = mr_sge(bed->mr, 30000, 30);
    wr.nsge = 3;
    bed_post_wr(bed, &wr);
    bed_expect_read(bed, PSN, 0, 60);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 3);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 60);
    bed_expect_done(bed, 1);
    for (unsigned i = 0, at = 0; i < 3; at += sge[i].len, i++) {
        uint8_t got[30];

        mr_read(bed->mr, sge[i].va - bed->mr->va, got, sge[i].len);
        g_assert_cmpmem(got, sge[i].len, bed->data + at, sge[i].len);
    }
    bed_free(bed);
}

/* ADDR_SEG, ATOMIC_SEG, IDLE; 2.7: META_FWD, IDLE */
static void test_atomic(void)
{
    Bed *bed = bed_new();
    g_autofree BedPacket *add = NULL, *swap = NULL;
    uint64_t old;

    bed_post(bed, FETCH_ADD, 1, 8);
    bed_post(bed, CMP_SWAP, 2, 8);
    add = bed_next(bed, HCA_FETCH_ADD, PSN);
    g_assert_cmphex(add->packet.va, ==, BED_RADDR);
    g_assert_cmphex(add->packet.swap_add, ==, 0x1111222233334444);
    g_assert_cmpuint(add->packet.payload_len, ==, 0);
    swap = bed_next(bed, HCA_CMP_SWAP, PSN + 1);
    g_assert_cmphex(swap->packet.swap_add, ==, 0x1111222233334444);
    g_assert_cmphex(swap->packet.compare, ==, 0x5555666677778888);
    bed_atomic_ack(bed, PSN, 0x0123456789abcdef);
    bed_atomic_ack(bed, PSN + 1, 7);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    mr_read(bed->mr, 4096, &old, sizeof(old));
    g_assert_cmphex(GUINT64_FROM_LE(old), ==, 0x0123456789abcdef);
    bed_free(bed);
}

/*
 * JUDGE, DATA_SEG_CMD, DATA_SEG_RESP, DATA_SEG_CMD again, IDLE; 2.7:
 * SGL_DATA_TRANS, SGL_DATA_NEXT, SGL_DATA_TRANS, IDLE. Entries that begin and
 * end anywhere; packets that end in the midst of them.
 */
static void test_gather(const void *opaque)
{
    static const uint32_t len[] = { 1, 31, 0, 32, 33, 255, 0, 300, 64, 0, 7 };
    Bed *bed = bed_new_service(GPOINTER_TO_UINT(opaque));
    Sge sge[G_N_ELEMENTS(len)];
    SendWr wr = bed_wr(bed, sge, WRITE, 1, 0);
    uint8_t want[1024];
    uint32_t total = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(len); i++) {
        sge[i] = mr_sge(bed->mr, i * 5000 + i, len[i]);
        mr_read(bed->mr, i * 5000 + i, want + total, len[i]);
        total += len[i];
    }
    wr.nsge = G_N_ELEMENTS(len);
    bed_post_wr(bed, &wr);
    for (uint32_t at = 0; at < total; at += MTU) {
        bool last = total - at <= MTU;
        g_autofree BedPacket *request = bed_next(bed,
                                                 !at    ? HCA_WRITE_FIRST
                                                 : last ? HCA_WRITE_LAST
                                                        : HCA_WRITE_MIDDLE,
                                                 PSN + at / MTU);

        g_assert_cmpmem(request->data, request->packet.payload_len, want + at,
                        MIN(MTU, total - at));
    }
    finish(bed, PSN + (total - 1) / MTU);
}

/* JUDGE, INLINE_SEG, IDLE; 2.7: META_FWD, INLINE_DATA, IDLE */
static void test_inline(const void *opaque)
{
    static const uint32_t len[] = { 0, 1, 11, 12, 13, 28, 150 };

    for (unsigned i = 0; i < G_N_ELEMENTS(len); i++) {
        Bed *bed = bed_new_service(GPOINTER_TO_UINT(opaque));
        g_autofree BedPacket *request = NULL;
        SendWr wr = { .wr_id = 1,
                      .opcode = SEND,
                      .flags = SEND_SIGNALED | SEND_INLINE,
                      .inline_data = bed->data,
                      .inline_len = len[i] };

        bed_post_wr(bed, &wr);
        request = bed_next(bed, HCA_SEND_ONLY, PSN);
        g_assert_cmpmem(request->data, request->packet.payload_len, bed->data,
                        len[i]);
        finish(bed, PSN);
    }
}

/*
 * DATA_SEG_RESP, ERR_HANDLING. In figure 2.7 it depends on the entry: the
 * first, and nothing has been read: META_FWD, IDLE; a later one, and what has
 * been read is dropped: FLUSH_DATA. Nothing of it is sent in either case.
 */
static void entry_refused(uint8_t service, unsigned which)
{
    Bed *bed = bed_new_service(service);
    Sge sge[3];
    SendWr wr = bed_wr(bed, sge, WRITE, 1, 2 * MTU);

    sge[1] = mr_sge(bed->mr, 20000, 100);
    sge[2] = mr_sge(bed->mr, 30000, 100);
    sge[which].lkey ^= 0x100000;
    wr.nsge = 3;
    bed_post_wr(bed, &wr);
    bed_post(bed, SEND, 2, 10);
    expect_failed(bed, 1, SYNDROME(LOCAL_PROT_ERR), HCA_WQE_BAD_ENTRY);
    bed_expect_wc(bed, 2, SYNDROME(WR_FLUSH_ERR));
    bed_free(bed);
}

static void test_first_entry_refused(const void *opaque)
{
    entry_refused(GPOINTER_TO_UINT(opaque), 0);
}

static void test_later_entry_refused(const void *opaque)
{
    entry_refused(GPOINTER_TO_UINT(opaque), 1);
    entry_refused(GPOINTER_TO_UINT(opaque), 2);
}

/*
 * FLUSH_DATA once more: the region goes away when part of the message has
 * been sent. The WQE fails behind those before it.
 */
static void test_gone_in_message(void)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge;
    Mr *mr;
    unsigned sent;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].swpb_elements = 512;
    bed_attr_init(&attr);
    bed = bed_new_with(RC, &attr, config);
    mr = mr_new(bed->pair->drv[0], bed->pair->pd[0], 0x1000, 65536, 0);
    bed_post(bed, WRITE, 0, 100);
    wr = bed_wr(bed, &sge, WRITE, 1, 0);
    sge = mr_sge(mr, 0, 65536);
    bed_post_wr(bed, &wr);
    bed_post(bed, WRITE, 2, 100);
    sent = bed->heard.length;
    bed_forget_requests(bed);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 0);
    bed_expect_quiet(bed);
    bed_expect_none(bed);
    bed_ack(bed, PSN + sent - 1);
    bed_expect_broken(bed, 1, SYNDROME(LOCAL_PROT_ERR), 1);
    bed_free(bed);
}

/* ---- the checks of 2.4.3.1.2 that the figures do not name ---- */

/* An atomic's data are 8 bytes; a UD message is one packet. */
static void test_bad_length(void)
{
    Bed *bed = bed_new();

    bed_post(bed, FETCH_ADD, 1, 7);
    expect_failed(bed, 1, SYNDROME(LOCAL_LENGTH_ERR), HCA_WQE_BAD_LENGTH);
    bed_free(bed);
    bed = bed_new_service(UD);
    bed_post_ud(bed, 1, 4097);
    expect_failed(bed, 1, SYNDROME(LOCAL_LENGTH_ERR), HCA_WQE_BAD_LENGTH);
    bed_free(bed);
}

/* An address vector of another port, or with a source GID that is not there. */
static void test_bad_address(void)
{
    static const struct {
        uint32_t port;
        HcaWqeCheck check;
    } c[] = {
        { RDMA_HCA_PREP(RDMA_HCA_UD_PORT, 0), HCA_WQE_BAD_UNITS },
        { RDMA_HCA_PREP(RDMA_HCA_UD_PORT, 2), HCA_WQE_BAD_UNITS },
        { RDMA_HCA_PREP(RDMA_HCA_UD_PORT, 1) | RDMA_HCA_UD_GRH |
              RDMA_HCA_PREP(RDMA_HCA_UD_SGID_INDEX, 1),
          HCA_WQE_BAD_ADDRESS },
        { RDMA_HCA_PREP(RDMA_HCA_UD_PORT, 1) |
              RDMA_HCA_PREP(RDMA_HCA_UD_SGID_INDEX, 255),
          HCA_WQE_GOOD },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        Bed *bed = bed_new_service(UD);
        uint32_t word = GUINT32_TO_LE(c[i].port), low, high;
        UdAddress ud = { .dlid = bed->peer.slid, .dqpn = BED_PEER_QPN };
        Sge sge;
        SendWr wr = bed_wr(bed, &sge, SEND, 1, 100);

        wr.ud = &ud;
        g_assert_true(qp_write_send(bed->qp, &wr, 1, &low, &high));
        mr_write(bed->qp->sq.mr, sizeof(struct rdma_hca_next_unit), &word,
                 sizeof(word));
        qp_ring(bed->qp, low, high);
        bed_run(bed);
        if (c[i].check == HCA_WQE_GOOD) {
            bed_expect_request(bed, HCA_SEND_ONLY, PSN);
            bed_expect_done(bed, 1);
        } else {
            expect_failed(bed, 1, SYNDROME(LOCAL_QP_OP_ERR), c[i].check);
        }
        bed_free(bed);
    }
}

/* The event is asked for by the last packet of what ends a receive. */
static void test_solicited(const void *opaque)
{
    static const uint8_t opcode[] = { SEND, SEND_IMM, WRITE, WRITE_IMM };

    for (unsigned i = 0; i < G_N_ELEMENTS(opcode); i++) {
        Bed *bed = bed_new_service(GPOINTER_TO_UINT(opaque));

        bed_post_flags(bed, opcode[i], 1, 3 * MTU,
                       SEND_SIGNALED | SEND_SOLICITED);
        g_assert_cmpuint(bed->heard.length, ==, 3);
        for (unsigned n = 0; n < 3; n++) {
            g_autofree BedPacket *request = g_queue_pop_head(&bed->heard);

            g_assert_cmpint(request->packet.solicited, ==,
                            n == 2 && opcode[i] != WRITE);
        }
        finish(bed, PSN + 2);
    }
}

/* A doorbell for what lies outside the send queue, or for too little. */
static void test_bad_place(void)
{
    static const struct {
        uint32_t units, size; /* of 16 bytes; the queue has 64 * 256 */
    } bad[] = { { 1024, 1 }, { 1023, 2 }, { 0, 0 }, { 0x3ffffff, 1 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Bed *bed = bed_new();
        uint32_t low = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD, bad[i].units) |
                       RDMA_HCA_PREP(RDMA_HCA_SEND_DB_OPCODE, SEND);
        uint32_t high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, bed->qp->qpn) |
                        RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SIZE, bad[i].size);

        qp_ring(bed->qp, low, high);
        bed_run(bed);
        g_assert_cmpuint(bed_counter(bed, 0, "send_wqe_bad_place"), ==, 1);
        g_assert_cmpuint(bed_counter(bed, 0, "requester_wqes_failed"), ==, 1);
        bed_expect_quiet(bed);
        bed_expect_state(bed, RDMA_HCA_QP_STATE_ERR);
        /* No request was posted there: the entry means nothing to a driver. */
        g_assert_cmphex(qp_to_rst(bed->qp), ==, 0);
        bed_free(bed);
    }
}

static void add(const char *name, GTestFunc fn)
{
    const char *path = test_named("/send/%s", name);

    test_add(path, fn);
}

/* Once for each service that has it. */
static void add_each(const char *name, GTestDataFunc fn, unsigned services)
{
    static const char *const service[] = {
        [RC] = "rc", [UC] = "uc", [UD] = "ud"
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(service); i++) {
        if (services & (1u << i)) {
            const char *path = test_named("/send/%s/%s", name, service[i]);

            test_add_data(path, GUINT_TO_POINTER(i), fn);
        }
    }
}

#define CONNECTED (1u << RC | 1u << UC)
#define ALL (CONNECTED | 1u << UD)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("fig-2.4/from-dbq", test_doorbell);
    add("fig-2.4/from-memq", test_chained);
    add("fig-2.4/dbq-waits", test_doorbell_waits);
    add("fig-2.4/flag-of-qp", test_flag_of_qp);
    add("fig-2.4/link-with-doorbell", test_link_with_doorbell);
    add("fig-2.5/qp-in-error", test_qp_in_error);
    add_each("fig-2.5/bad-opcode", test_bad_opcode, ALL);
    add("fig-2.5/no-reads", test_no_reads);
    add_each("fig-2.5/send", test_send, CONNECTED);
    add_each("fig-2.5/send-zero", test_send_zero, CONNECTED);
    add("fig-2.5/ud", test_ud);
    add("fig-2.5/ud-zero", test_ud_zero);
    add_each("fig-2.5/write", test_write, CONNECTED);
    add("fig-2.5/read", test_read);
    add("fig-2.5/atomic", test_atomic);
    add_each("fig-2.5/gather", test_gather, CONNECTED);
    add_each("fig-2.5/entry-refused", test_later_entry_refused, CONNECTED);
    add_each("fig-2.5/inline", test_inline, CONNECTED);
    add_each("fig-2.7/sgl", test_gather, CONNECTED);
    add_each("fig-2.7/sgl-one", test_send, CONNECTED);
    add_each("fig-2.7/flush-data", test_later_entry_refused, CONNECTED);
    add("fig-2.7/flush-data-in-message", test_gone_in_message);
    add_each("fig-2.7/refused-unread", test_first_entry_refused, CONNECTED);
    add_each("fig-2.7/zero", test_send_zero, CONNECTED);
    add("fig-2.7/atomic", test_atomic);
    add_each("fig-2.7/bad-opcode", test_bad_opcode, ALL);
    add("fig-2.7/qp-in-error", test_qp_in_error);
    add_each("fig-2.7/inline", test_inline, CONNECTED);
    add("fig-2.7/entry", test_read);
    add("checks/length", test_bad_length);
    add("checks/place", test_bad_place);
    add("checks/address", test_bad_address);
    add_each("solicited", test_solicited, CONNECTED);
    return g_test_run();
}
