/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester engine (engine document 3; IBA 9.7.5, 9.7.6, 9.9.2), packet by
 * packet. Tests are named after the arcs of the figures that they take;
 * docs/figures.md has the whole list.
 */
#include <string.h>

#include "../requester/multi_queue.h"
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define TIMEOUT_NS (INT64_C(4096) << BED_TIMEOUT)
#define RNR_CODE 20 /* 10.24 ms */
#define RNR_NS (INT64_C(10240) * NS_PER_US)

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define CMP_SWAP RDMA_HCA_OPCODE_ATOMIC_CS
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)
#define RNR(code) HCA_AETH(HCA_AETH_RNR, code)

static void expect_upsn(Bed *bed, uint32_t psn)
{
    g_assert_cmphex(bed->hqp->req.unacked_psn, ==, psn & HCA_PSN_MASK);
}

/* @len bytes at @to of the region are those at @at of bed->data. */
static void expect_region(Bed *bed, uint32_t to, uint32_t at, uint32_t len)
{
    g_autofree uint8_t *got = g_malloc(len + 1);

    mr_read(bed->mr, to, got, len);
    g_assert_cmpmem(got, len, bed->data + at, len);
}

static void expect_timer_off(Bed *bed)
{
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_RNR], ==, INT64_MAX);
}

/* The loss timer was set again in the last microseconds. */
static void expect_timer_reset(Bed *bed)
{
    int64_t left = bed->hqp->deadline[HCA_TIMER_LOSS] - bed->pair->lab->now;

    g_assert_cmpint(left, <=, TIMEOUT_NS);
    g_assert_cmpint(left, >, TIMEOUT_NS - 100 * NS_PER_US);
}

/* Time passes, so that a timer that is set again can be told from others. */
static void pass_time(Bed *bed)
{
    lab_sleep(bed->pair->lab, NS_PER_MS);
}

/* ---- figure 3.3: RequesterTransControl ---- */

/* RC_JUDGE_MSG, RC_SEG, RC_FWD and RC_SEG again, CXT_WB */
static void test_rc_segments(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND_IMM, 1, 3 * MTU + 10);
    bed_expect_payload(bed, HCA_SEND_FIRST, PSN, 4096, MTU);
    bed_expect_payload(bed, HCA_SEND_MIDDLE, PSN + 1, 4096 + MTU, MTU);
    bed_expect_payload(bed, HCA_SEND_MIDDLE, PSN + 2, 4096 + 2 * MTU, MTU);
    bed_expect_payload(bed, HCA_SEND_LAST_IMM, PSN + 3, 4096 + 3 * MTU, 10);
    g_assert_cmphex(bed->hqp->req.next_psn, ==, 0);
    g_assert_cmpuint(bed->hqp->req.swpb.count, ==, 4);
    bed_expect_none(bed);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* RC_SEG, CXT_WB: nothing to forward */
static void test_rc_zero(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 0);
    bed_expect_payload(bed, HCA_SEND_ONLY, PSN, 0, 0);
    bed_post(bed, WRITE_IMM, 2, 0);
    bed_expect_payload(bed, HCA_WRITE_ONLY_IMM, PSN + 1, 0, 0);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* RC_SEG, RC_STORE_ENTRY, RC_STORE_ENTRY for each entry, CXT_WB */
static void test_store_entry(void)
{
    Bed *bed = bed_new();
    Sge sge[3];
    SendWr wr = bed_wr(bed, sge, READ, 0, 100);

    sge[1] = mr_sge(bed->mr, 5000, 300);
    sge[2] = mr_sge(bed->mr, 9000, 1);
    wr.nsge = 3;
    bed_post_wr(bed, &wr);
    bed_expect_read(bed, PSN, 0, 401);
    g_assert_cmpuint(bed->hqp->req.rpb.count, ==, 1);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 3);
    g_assert_cmphex(bed->hqp->req.next_psn, ==, PSN + 2);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 1, MTU, 145);
    bed_expect_done(bed, 0);
    bed_free(bed);
}

/* More QPs of the bed's kind: they hold what of a pool they are let have. */
static void post_from_others(Bed *bed, const QpAttr *attr, Qp **other,
                             unsigned n, const SendWr *wr)
{
    for (unsigned i = 0; i < n; i++) {
        QpConfig config;
        QpAttr own = *attr;

        own.dlid = bed->peer.slid;
        own.dest_qpn = BED_PEER_QPN;
        qp_config_init(&config, bed->pair->pd[0], bed->cq);
        other[i] = qp_new(bed->pair->drv[0], &config);
        g_assert_cmphex(qp_to_init(other[i], &own), ==, 0);
        g_assert_cmphex(qp_to_rtr(other[i], &own), ==, 0);
        g_assert_cmphex(qp_to_rts(other[i], &own), ==, 0);
        g_assert_true(qp_post_send(other[i], wr, 1));
        bed_run(bed);
        bed_expect_request(
            bed, wr->opcode == READ ? HCA_READ_REQUEST : HCA_WRITE_ONLY, PSN);
    }
}

/* The peer answers @op to another QP than the bed's. */
static void respond_to(Bed *bed, Qp *other, uint8_t op, uint32_t len)
{
    Qp *own = bed->qp;

    bed->qp = other;
    bed_respond(bed, op, PSN, 0, len);
    bed->qp = own;
}

/*
 * RC_STORE_ENTRY waits for room: RC_JUDGE_MSG does it in its place. Others
 * hold all of the entry buffer; the QP itself is far from its share.
 */
static void test_store_entry_waits(void)
{
    HcaConfig config[2];
    Qp *other[2];
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge[14]; /* what a WQE of 256 bytes has room for */

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].reb_elements = 32;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    bed_post(bed, READ, 1, 1);
    bed_expect_read(bed, PSN, 0, 1);
    wr = bed_wr(bed, sge, READ, 2, 1);
    for (unsigned i = 1; i < G_N_ELEMENTS(sge); i++) {
        sge[i] = mr_sge(bed->mr, 2 * 4096 + i, 1);
    }
    wr.nsge = G_N_ELEMENTS(sge);
    post_from_others(bed, &attr, other, G_N_ELEMENTS(other), &wr);
    /* Three places are left, and four entries are wanted. */
    wr = bed_wr(bed, sge, READ, 3, 1);
    wr.nsge = 4;
    bed_post_wr(bed, &wr);
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 1);
    respond_to(bed, other[0], HCA_READ_RESP_ONLY, 14);
    bed_expect_done(bed, 2);
    bed_expect_read(bed, PSN + 1, 0, 4);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 5);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 4);
    respond_to(bed, other[1], HCA_READ_RESP_ONLY, 14);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 3);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* RC_JUDGE_MSG, FETCH_CXT: the QP has its share of the entry buffer. */
static void test_judge_entries(void)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge[12];

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].reb_elements = 32;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    for (unsigned n = 0; n < 3; n++) {
        wr = bed_wr(bed, sge, READ, n, 1);
        for (unsigned i = 1; i < G_N_ELEMENTS(sge); i++) {
            sge[i] = mr_sge(bed->mr, n * 4096 + i, 1);
        }
        wr.nsge = G_N_ELEMENTS(sge);
        bed_post_wr(bed, &wr);
    }
    bed_expect_read(bed, PSN, 0, 12);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 12);
    bed_expect_done(bed, 0);
    bed_expect_read(bed, PSN + 1, 0, 12);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 12);
    bed_expect_read(bed, PSN + 2, 0, 12);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 12);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* RC_JUDGE_MSG, FETCH_CXT: a fenced request waits for the Reads before it. */
static void test_judge_fence(void)
{
    static const uint8_t before[] = { READ, FETCH_ADD };

    for (unsigned i = 0; i < G_N_ELEMENTS(before); i++) {
        Bed *bed = bed_new();
        uint64_t waits = bed_counter(bed, 0, "requester_wait_fence");

        bed_post(bed, before[i], 1, 8);
        bed_post_flags(bed, WRITE, 2, 100, SEND_SIGNALED | SEND_FENCE);
        bed_post(bed, WRITE, 3, 100);
        g_free(g_queue_pop_head(&bed->heard));
        bed_expect_quiet(bed);
        g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_fence"), >, waits);
        if (before[i] == READ) {
            bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
        } else {
            bed_atomic_ack(bed, PSN, 1);
        }
        bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 1, 2 * 4096, 100);
        bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 2, 3 * 4096, 100);
        bed_ack(bed, PSN + 2);
        bed_expect_done(bed, 1);
        bed_expect_done(bed, 2);
        bed_expect_done(bed, 3);
        bed_free(bed);
    }
}

/* A fence waits for no Send or Write, and later requests for no fence. */
static void test_fence_passes(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post_flags(bed, WRITE, 2, 100, SEND_SIGNALED | SEND_FENCE);
    bed_post_flags(bed, READ, 3, 100, SEND_SIGNALED | SEND_FENCE);
    bed_post(bed, WRITE, 4, 100);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_request(bed, HCA_READ_REQUEST, PSN + 2);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_ack(bed, PSN + 3);
    for (unsigned i = 1; i <= 4; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* RC_JUDGE_MSG, FETCH_CXT: as many Reads as the peer takes are outstanding. */
static void test_judge_reads(void)
{
    for (unsigned max = 1; max <= HCA_MAX_RD_ATOMIC; max *= 2) {
        QpAttr attr;
        Bed *bed;

        bed_attr_init(&attr);
        attr.max_rd_atomic = max;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        for (unsigned i = 0; i <= max; i++) {
            bed_post(bed, i % 2 ? CMP_SWAP : READ, i, 8);
        }
        for (unsigned i = 0; i < max; i++) {
            bed_expect_request(bed, i % 2 ? HCA_CMP_SWAP : HCA_READ_REQUEST,
                               PSN + i);
        }
        bed_expect_quiet(bed);
        /* Nor may a Write go round the Read that waits. */
        bed_post(bed, WRITE, max + 1, 8);
        bed_expect_quiet(bed);
        bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
        bed_expect_done(bed, 0);
        bed_expect_request(bed, max % 2 ? HCA_CMP_SWAP : HCA_READ_REQUEST,
                           PSN + max);
        bed_expect_request(bed, HCA_WRITE_ONLY, PSN + max + 1);
        for (unsigned i = 1; i <= max; i++) {
            if (i % 2) {
                bed_atomic_ack(bed, PSN + i, i);
            } else {
                bed_respond(bed, HCA_READ_RESP_ONLY, PSN + i, 0, 8);
            }
            bed_expect_done(bed, i);
        }
        bed_ack(bed, PSN + max + 1);
        bed_expect_done(bed, max + 1);
        bed_free(bed);
    }
}

/* RC_JUDGE_MSG, FETCH_CXT: the QP has its share of the packet buffer. */
static void test_judge_room(void)
{
    HcaConfig config[2];
    unsigned sent = 0, more;
    QpAttr attr;
    Bed *bed;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].swpb_elements = 512;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    bed_post(bed, WRITE, 1, 60 * MTU);
    sent = bed->heard.length;
    /* Ten elements a packet; a QP alone has two thirds of the pool. */
    g_assert_cmpuint(sent, >=, 30);
    g_assert_cmpuint(sent, <=, 512 * 2 / 3 / 10);
    bed_forget_requests(bed);
    bed_ack(bed, PSN);
    bed_expect_request(bed, HCA_WRITE_MIDDLE, PSN + sent);
    bed_expect_quiet(bed);
    bed_ack(bed, PSN + sent);
    more = bed->heard.length;
    g_assert_cmpuint(sent + 1 + more, ==, 60);
    bed_forget_requests(bed);
    bed_ack(bed, PSN + 59);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(bed->hqp->req.swpb_elements, ==, 0);
    bed_free(bed);
}

/*
 * Figure 3.9, "no": the others hold the whole packet buffer. What the QP has
 * is little, so its share is not what it waits for.
 */
static void test_no_room(void)
{
    HcaConfig config[2];
    Qp *other[4];
    HcaMqGauges gauges;
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].swpb_elements = 512;
    bed_attr_init(&attr);
    attr.mtu = 5;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    bed_post(bed, WRITE, 1, 100);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN, 4096, 100);
    wr = bed_wr(bed, &sge, WRITE, 2, 4096);
    post_from_others(bed, &attr, other, G_N_ELEMENTS(other), &wr);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.swpb.used, >=, 512);
    bed_post(bed, WRITE, 3, 100);
    bed_expect_quiet(bed);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.waiting, ==, 1);
    respond_to(bed, other[0], HCA_ACK, 0);
    bed_expect_done(bed, 2);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 1, 3 * 4096, 100);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 3);
    for (unsigned i = 1; i < G_N_ELEMENTS(other); i++) {
        respond_to(bed, other[i], HCA_ACK, 0);
        bed_expect_done(bed, 2);
    }
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.swpb.used, ==, 0);
    bed_free(bed);
}

/* RC_BAD_REQ, CXT_WB; figure 3.17: BAD_REQ, COMPLETION, CXT_WB */
static void test_bad_request(void)
{
    Bed *bed = bed_new();

    bed_post_bad(bed, 1);
    bed_expect_broken(bed, 1, SYNDROME(LOCAL_PROT_ERR), 0);
    bed_free(bed);
}

/* Figure 3.17: BAD_REQ, IDLE: it waits until all before it has completed. */
static void test_bad_request_waits(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    bed_post_bad(bed, 3);
    bed_post(bed, WRITE, 4, 100);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_expect_request(bed, HCA_READ_REQUEST, PSN + 1);
    bed_expect_quiet(bed);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    bed_expect_state(bed, RDMA_HCA_QP_STATE_RTS);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_expect_done(bed, 2);
    bed_expect_broken(bed, 3, SYNDROME(LOCAL_PROT_ERR), 1);
    bed_free(bed);
}

/* UCUD_SEG, UCUD_FWD, UCUD_CPL, CXT_WB */
static void test_uc(void)
{
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UC);

    bed_post(bed, WRITE, 1, 2 * MTU + 1);
    bed_expect_payload(bed, HCA_WRITE_FIRST, PSN, 4096, MTU);
    bed_expect_payload(bed, HCA_WRITE_MIDDLE, PSN + 1, 4096 + MTU, MTU);
    bed_expect_payload(bed, HCA_WRITE_LAST, PSN + 2, 4096 + 2 * MTU, 1);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(bed->hqp->req.swpb.count, ==, 0);
    expect_timer_off(bed);
    bed_free(bed);
}

static void test_ud(void)
{
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UD);
    g_autofree BedPacket *request = NULL;

    bed_post_ud(bed, 1, 1000);
    request = bed_next(bed, HCA_SEND_ONLY, PSN);
    g_assert_cmpuint(request->packet.payload_len, ==, 1000);
    g_assert_cmphex(request->packet.qkey, ==, BED_QKEY);
    g_assert_cmphex(request->packet.src_qp, ==, bed->qp->qpn);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* UCUD_SEG, UCUD_CPL: nothing to forward */
static void test_uc_zero(void)
{
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UC);

    bed_post(bed, SEND, 1, 0);
    bed_expect_payload(bed, HCA_SEND_ONLY, PSN, 0, 0);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

static void test_ud_zero(void)
{
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UD);

    bed_post_ud(bed, 1, 0);
    bed_expect_payload(bed, HCA_SEND_ONLY, PSN, 0, 0);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* RESP_CXT, UCUD_CPL: a bad request; the send queue stops. */
static void test_ucud_bad(void)
{
    static const uint8_t service[] = { RDMA_HCA_QP_ST_UC, RDMA_HCA_QP_ST_UD };

    for (unsigned i = 0; i < G_N_ELEMENTS(service); i++) {
        Bed *bed = bed_new_service(service[i]);

        bed_post_bad(bed, 1);
        bed_expect_wc(bed, 1, SYNDROME(LOCAL_PROT_ERR));
        bed_expect_state(bed, RDMA_HCA_QP_STATE_SQE);
        bed_free(bed);
    }
}

/* FLUSH, RC_BAD_REQ: a doorbell in ERR */
static void test_flush_rc(void)
{
    Bed *bed = bed_new();

    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_post(bed, WRITE, 1, 100);
    bed_expect_wc(bed, 1, SYNDROME(WR_FLUSH_ERR));
    bed_free(bed);
}

/* FLUSH, UCUD_CPL */
static void test_flush_ucud(void)
{
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UC);

    bed_post_bad(bed, 1);
    bed_expect_wc(bed, 1, SYNDROME(LOCAL_PROT_ERR));
    bed_post(bed, SEND, 2, 100);
    bed_expect_wc(bed, 2, SYNDROME(WR_FLUSH_ERR));
    bed_free(bed);
}

/* ---- figures 3.9 and 3.10: MultiQueue ---- */

/* Insertion into an empty queue and behind an element; release of both. */
static void test_multi_queue(void)
{
    Bed *bed = bed_new();
    const HcaMqList *swpb = &bed->hqp->req.swpb, *rpb = &bed->hqp->req.rpb;
    const HcaMqList *reb = &bed->hqp->req.reb;

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    g_assert_cmpuint(swpb->count, ==, 1); /* head = tail = new */
    g_assert_cmpuint(swpb->head, ==, swpb->tail);
    g_assert_cmpuint(rpb->head, ==, rpb->tail);
    g_assert_cmpuint(reb->head, ==, reb->tail);
    bed_post(bed, WRITE, 3, 100);
    bed_post(bed, READ, 4, 100);
    g_assert_cmpuint(swpb->count, ==, 2); /* tail.next = new */
    g_assert_cmpuint(rpb->count, ==, 2);
    g_assert_cmpuint(reb->count, ==, 2);
    g_assert_cmpuint(swpb->head, !=, swpb->tail);
    g_assert_cmphex(hca_mq_swpb_head(bed->hca, bed->hqp)->psn, ==, PSN);
    bed_forget_requests(bed);
    bed_ack(bed, PSN);
    g_assert_cmpuint(swpb->count, ==, 1); /* head = head.next */
    g_assert_cmpuint(swpb->head, ==, swpb->tail);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    g_assert_cmpuint(rpb->count, ==, 1);
    g_assert_cmpuint(rpb->head, ==, rpb->tail);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 3, 0, 100);
    g_assert_cmpuint(swpb->count, ==, 0); /* empty */
    g_assert_cmpuint(rpb->count, ==, 0);
    g_assert_cmpuint(reb->count, ==, 0);
    g_assert_null(hca_mq_swpb_head(bed->hca, bed->hqp));
    g_assert_null(hca_mq_rpb_head(bed->hca, bed->hqp));
    g_assert_null(hca_mq_reb_head(bed->hca, bed->hqp));
    for (unsigned i = 1; i <= 4; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* ---- figure 3.17: timers and bad requests ---- */

/* TIMER_RETRANS, IDLE */
static void test_timer_retrans(void)
{
    Bed *bed = bed_new();
    int64_t began;

    bed_post(bed, SEND, 1, 100);
    began = bed->hqp->deadline[HCA_TIMER_LOSS] - TIMEOUT_NS;
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    lab_sleep(bed->pair->lab, TIMEOUT_NS - NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 2 * NS_PER_MS);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    {
        g_autofree BedPacket *again = bed_next(bed, HCA_SEND_ONLY, PSN);

        g_assert_cmpint(again->time - began, >=, TIMEOUT_NS);
        g_assert_cmpint(again->time - began, <, TIMEOUT_NS + 10 * NS_PER_US);
        g_assert_true(again->packet.ack_req);
    }
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 1, 2 * 4096, 100);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 3);
    bed_free(bed);
}

/* FLUSH, CXT_WB, CLEAR_TIMER: the retries are used up. */
static void test_timer_flush(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 100);
    bed_post(bed, SEND, 2, 3 * MTU);
    bed_post(bed, WRITE, 3, 100);
    lab_sleep(bed->pair->lab, 4 * TIMEOUT_NS + NS_PER_MS);
    bed_expect_broken(bed, 1, SYNDROME(RETRY_EXC_ERR), 2);
    g_assert_cmpuint(bed->heard.length, ==, 4 * 5);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* ---- figure 3.18: ACKs ---- */

/* SILENT_DROP */
static void test_silent_drop(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, WRITE, 2, 100);
    bed_ack(bed, PSN);
    pass_time(bed);
    bed_ack(bed, PSN);
    bed_ack(bed, PSN - 1);
    bed_nak(bed, PSN, NAK(REMOTE_ACCESS));
    bed_nak(bed, PSN, RNR(1));
    bed_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 5);
    bed_forget_requests(bed);
    pass_time(bed);
    bed_expect_quiet(bed);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    expect_upsn(bed, PSN + 1);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS] - bed->pair->lab->now, <,
                    TIMEOUT_NS - NS_PER_MS);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* What was never sent cannot be acknowledged: the invalid region. */
static void test_invalid_region(void)
{
    Bed *bed = bed_new();

    bed_ack(bed, PSN);
    bed_post(bed, WRITE, 1, 100);
    bed_ack(bed, PSN + 1);
    bed_nak(bed, PSN + 1, NAK(REMOTE_ACCESS));
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_atomic_ack(bed, PSN + 0x7fffff, 1);
    bed_expect_drops(bed, HCA_DROP_GHOST, 5);
    bed_expect_none(bed);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* FLUSH, CLEAR_TIMER: all was flushed when the QP broke; nothing is left. */
static void test_response_in_error(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_expect_broken(bed, 1, SYNDROME(WR_FLUSH_ERR), 1);
    bed_ack(bed, PSN);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_expect_drops(bed, HCA_DROP_QP_STATE, 2);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* ACK_RELEASE_NORMAL, CLEAR_TIMER: RPSN + 1 = NPSN */
static void test_ack_release_all(void)
{
    Bed *bed = bed_new();

    for (unsigned i = 1; i <= 5; i++) {
        bed_post(bed, i % 2 ? SEND : WRITE, i, 300);
    }
    bed_forget_requests(bed);
    bed_ack(bed, PSN + 9);
    for (unsigned i = 1; i <= 5; i++) {
        bed_expect_done(bed, i);
    }
    expect_timer_off(bed);
    expect_upsn(bed, PSN + 10);
    bed_free(bed);
}

/* ACK_RELEASE_NORMAL, RESET_TIMER: RPSN + 1 < NPSN; in mid-message, too */
static void test_ack_release_some(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, SEND, 2, 300);
    bed_forget_requests(bed);
    for (unsigned i = 0; i < 3; i++) {
        pass_time(bed);
        bed_ack(bed, PSN + i);
        expect_upsn(bed, PSN + i + 1);
        expect_timer_reset(bed);
        if (i == 1) {
            bed_expect_done(bed, 1);
        }
        bed_expect_none(bed);
    }
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 2);
    expect_timer_off(bed);
    bed_free(bed);
}

/* ACK_RELEASE_EXCEPTION, ACK_LOSS_RETRANS, RESET_TIMER: a Read stays */
static void test_ack_release_exception(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 2 * MTU);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    pass_time(bed);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    expect_upsn(bed, PSN + 1);
    bed_expect_read(bed, PSN + 1, 0, 2 * MTU);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    expect_timer_reset(bed);
    /* The same ACK again asks for nothing more. */
    bed_ack(bed, PSN + 3);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, MTU, MTU);
    bed_expect_done(bed, 2);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 3);
    expect_region(bed, 2 * 4096, 0, 2 * MTU);
    bed_free(bed);
}

/* ---- figure 3.19: NAKs ---- */

/* UPSN = RPSN, RNR: RESET_TIMER, the RNR timer */
static void test_rnr_at_upsn(void)
{
    Bed *bed = bed_new();
    int64_t told;

    bed_post(bed, SEND, 1, 100);
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    told = bed->pair->lab->now;
    bed_nak(bed, PSN, RNR(RNR_CODE));
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_RNR], <, INT64_MAX);
    /* Nothing new is sent meanwhile. */
    bed_post(bed, WRITE, 3, 100);
    lab_sleep(bed->pair->lab, RNR_NS - NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 2 * NS_PER_MS);
    {
        g_autofree BedPacket *again = bed_next(bed, HCA_SEND_ONLY, PSN);

        g_assert_cmpint(again->time - told, >=, RNR_NS);
    }
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 2);
    bed_ack(bed, PSN + 2);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

/* UPSN = RPSN, PSN error: NAK_RETRANS, RESET_TIMER */
static void test_psn_at_upsn(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, READ, 2, 100);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    pass_time(bed);
    bed_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_payload(bed, HCA_SEND_FIRST, PSN, 4096, MTU);
    bed_expect_payload(bed, HCA_SEND_LAST, PSN + 1, 4096 + MTU, 300 - MTU);
    bed_expect_read(bed, PSN + 2, 0, 100);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 3, 3 * 4096, 100);
    expect_timer_reset(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    /* The cable doubles it: nothing more is sent, no retry is used. */
    bed_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 2);
    bed_ack(bed, PSN + 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_ack(bed, PSN + 3);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    bed_free(bed);
}

typedef struct FatalNak {
    const char *name;
    uint8_t aeth;
    uint8_t syndrome;
} FatalNak;

static const FatalNak fatal_naks[] = {
    { "invalid-request", NAK(INVALID_REQUEST), SYNDROME(REMOTE_INVAL_REQ_ERR) },
    { "remote-access", NAK(REMOTE_ACCESS), SYNDROME(REMOTE_ACCESS_ERR) },
    { "remote-operation", NAK(REMOTE_OP), SYNDROME(REMOTE_OP_ERR) },
    { "invalid-rd", NAK(INVALID_RD), SYNDROME(REMOTE_INVAL_RD_REQ_ERR) },
    { "reserved-code", HCA_AETH(HCA_AETH_NAK, 17), SYNDROME(BAD_RESP_ERR) },
    { "reserved-kind", HCA_AETH(2, 0), SYNDROME(BAD_RESP_ERR) },
};

/* UPSN = RPSN, fatal: FLUSH, CXT_WB, CLEAR_TIMER */
static void test_fatal_at_upsn(const void *opaque)
{
    const FatalNak *fatal = opaque;
    Bed *bed = bed_new();

    bed_post_flags(bed, SEND, 1, 300, 0);
    bed_post(bed, READ, 2, 100);
    bed_post_flags(bed, WRITE, 3, 100, 0);
    bed_forget_requests(bed);
    bed_nak(bed, PSN, fatal->aeth);
    /* The unsignalled complete, too: in error. */
    bed_expect_broken(bed, 1, fatal->syndrome, 2);
    bed_expect_quiet(bed);
    bed_free(bed);
}

/* UPSN < RPSN: NAK_IMPLICIT_RELEASE, FLUSH */
static void test_fatal_implicit_release(const void *opaque)
{
    const FatalNak *fatal = opaque;
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post_flags(bed, WRITE, 2, 100, 0);
    bed_post(bed, WRITE, 3, 300);
    bed_post(bed, READ, 4, 100);
    bed_forget_requests(bed);
    bed_nak(bed, PSN + 4, fatal->aeth); /* in the middle of message 3 */
    bed_expect_done(bed, 1);
    bed_expect_broken(bed, 3, fatal->syndrome, 1);
    bed_expect_quiet(bed);
    bed_free(bed);
}

/*
 * NAK_IMPLICIT_RELEASE, NAK_RETRANS with a Read left: its answer is lost, and
 * comes before what the NAK says.
 */
static void test_nak_read_in_way(void)
{
    static const uint8_t aeth[] = { NAK(REMOTE_ACCESS), NAK(REMOTE_OP),
                                    NAK(INVALID_REQUEST), RNR(RNR_CODE),
                                    NAK(PSN_SEQ) };

    for (unsigned i = 0; i < G_N_ELEMENTS(aeth); i++) {
        Bed *bed = bed_new();

        bed_post(bed, WRITE, 1, 100);
        bed_post(bed, READ, 2, 100);
        bed_post(bed, SEND, 3, 100);
        bed_forget_requests(bed);
        pass_time(bed);
        bed_nak(bed, PSN + 2, aeth[i]);
        bed_expect_done(bed, 1);
        bed_expect_none(bed);
        expect_upsn(bed, PSN + 1);
        bed_expect_read(bed, PSN + 1, 0, 100);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
        expect_timer_reset(bed);
        bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
        bed_expect_done(bed, 2);
        bed_nak(bed, PSN + 2, NAK(REMOTE_OP));
        bed_expect_broken(bed, 3, SYNDROME(REMOTE_OP_ERR), 0);
        bed_free(bed);
    }
}

/* NAK_IMPLICIT_RELEASE, NAK_RETRANS: PSN error */
static void test_psn_implicit_release(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, WRITE, 2, 300);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    bed_nak(bed, PSN + 3, NAK(PSN_SEQ));
    bed_expect_done(bed, 1);
    bed_expect_payload(bed, HCA_WRITE_LAST, PSN + 3, 2 * 4096 + MTU, 300 - MTU);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 4, 3 * 4096, 100);
    bed_ack(bed, PSN + 4);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/* NAK_IMPLICIT_RELEASE, RESET_TIMER: RNR, and no Read left */
static void test_rnr_implicit_release(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 300);
    bed_post(bed, SEND, 2, 100);
    bed_forget_requests(bed);
    bed_nak(bed, PSN + 2, RNR(RNR_CODE));
    bed_expect_done(bed, 1);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    lab_sleep(bed->pair->lab, RNR_NS - NS_PER_MS);
    bed_expect_quiet(bed);
    lab_sleep(bed->pair->lab, 2 * NS_PER_MS);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
    bed_ack(bed, PSN + 2);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* ---- figure 3.20: Read and atomic responses; figure 3.22 ---- */

static void post_read_in(Bed *bed, uint64_t wr_id, const uint32_t *len,
                         unsigned n)
{
    Sge sge[8];
    SendWr wr = bed_wr(bed, sge, READ, wr_id, len[0]);

    for (unsigned i = 0; i < n; i++) {
        sge[i] = mr_sge(bed->mr, wr_id * 4096 + i * 1024, len[i]);
    }
    wr.nsge = n;
    bed_post_wr(bed, &wr);
    bed_forget_requests(bed);
}

/* READ_SCATTER, READ_UPDATE_ENTRY, CXT_WB, RESET_TIMER: room is left in it. */
static void test_update_entry(void)
{
    const uint32_t len[] = { 2 * MTU + 50 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 1);
    pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmpuint(hca_mq_reb_head(bed->hca, bed->hqp)->len, ==, MTU + 50);
    g_assert_cmphex(hca_mq_reb_head(bed->hca, bed->hqp)->va, ==,
                    bed->mr->va + 4096 + MTU);
    expect_timer_reset(bed);
    expect_upsn(bed, PSN + 1);
    pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    g_assert_cmpuint(hca_mq_reb_head(bed->hca, bed->hqp)->len, ==, 50);
    expect_timer_reset(bed);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, 2 * MTU, 50);
    bed_expect_done(bed, 1);
    expect_region(bed, 4096, 0, 2 * MTU + 50);
    bed_free(bed);
}

/* READ_RELEASE_ENTRY, READ_FETCH_ENTRY: the packet goes on in the next. */
static void test_next_entry(void)
{
    const uint32_t len[] = { 100, 100, 100 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 3);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 1);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 1, MTU, 300 - MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 0);
    bed_expect_done(bed, 1);
    expect_region(bed, 4096, 0, 100);
    expect_region(bed, 4096 + 1024, 100, 100);
    expect_region(bed, 4096 + 2048, 200, 100);
    bed_free(bed);
}

/* READ_RELEASE_ENTRY, IDLE: it is full, and more is to come. */
static void test_entry_fits_middle(void)
{
    const uint32_t len[] = { MTU, MTU, 10 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 3);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 2);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 1);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, 2 * MTU, 10);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* READ_RELEASE_ENTRY, COMPLETION, CXT_WB, CLEAR_TIMER */
static void test_entry_fits_last(void)
{
    const uint32_t len[] = { 100 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_expect_done(bed, 1);
    expect_region(bed, 4096, 0, 100);
    expect_timer_off(bed);
    bed_free(bed);
}

/* COMPLETION, CXT_WB, RESET_TIMER: requests are left. */
static void test_last_resets_timer(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 100);
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_expect_done(bed, 1);
    expect_timer_reset(bed);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/*
 * It is not what was asked for. This is found before an entry is looked for, so
 * none is ever missing.
 */
static void test_wrong_length(void)
{
    static const struct {
        uint32_t want;
        uint8_t op;
        uint32_t got;
    } bad[] = {
        { 100, HCA_READ_RESP_ONLY, 101 },
        { 100, HCA_READ_RESP_ONLY, 99 },
        { 100, HCA_READ_RESP_FIRST, MTU },
        { 300, HCA_READ_RESP_ONLY, MTU },
        { 300, HCA_READ_RESP_FIRST, MTU - 1 },
        { 300, HCA_READ_RESP_FIRST, MTU + 1 },
        { 0, HCA_READ_RESP_ONLY, 1 },
        { MTU, HCA_READ_RESP_FIRST, MTU },
        { 100, HCA_ATOMIC_ACK, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Bed *bed = bed_new();
        g_autofree uint8_t *before = NULL;

        bed_post(bed, READ, 1, bad[i].want);
        bed_post(bed, WRITE, 2, 1);
        bed_forget_requests(bed);
        before = mr_image(bed->mr);
        if (bad[i].op == HCA_ATOMIC_ACK) {
            bed_atomic_ack(bed, PSN, 1);
        } else {
            bed_respond(bed, bad[i].op, PSN, 0, bad[i].got);
        }
        bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 1);
        mr_check_image(bed->mr, before);
        bed_free(bed);
    }
}

/* A Read response for an atomic. */
static void test_wrong_kind(void)
{
    Bed *bed = bed_new();

    bed_post(bed, FETCH_ADD, 1, 8);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 0);
    bed_free(bed);
}

/* The memory that a Read goes to went away: figure 3.20 has no arc for it. */
static void test_entry_refused(void)
{
    const uint32_t len[] = { 400 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 1);
    bed_post(bed, WRITE, 2, 0);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmphex(mr_deregister(bed->mr), ==, 0);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 1, MTU, 400 - MTU);
    bed_expect_broken(bed, 1, SYNDROME(LOCAL_PROT_ERR), 1);
    bed_free(bed);
}

/* READ_IMPLICIT_RELEASE, READ_FETCH_ENTRY */
static void test_read_implicit_release(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, WRITE, 2, 100);
    bed_post(bed, READ, 3, 100);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 3, 0, 100);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    expect_region(bed, 3 * 4096, 0, 100);
    bed_free(bed);
}

/* READ_IMPLICIT_RELEASE, READ_RETRANS: an earlier Read's answer is lost. */
static void test_read_implicit_release_lost(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    bed_post(bed, READ, 3, 100);
    bed_forget_requests(bed);
    pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    bed_expect_read(bed, PSN + 1, 0, 100);
    bed_expect_read(bed, PSN + 2, 0, 100);
    expect_timer_reset(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 100, 100);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 200, 100);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    expect_region(bed, 2 * 4096, 100, 100);
    expect_region(bed, 3 * 4096, 200, 100);
    bed_free(bed);
}

/* READ_RETRANS, CXT_WB, RESET_TIMER: First or Only, and UPSN is a Read */
static void test_first_read_lost(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 100);
    bed_post(bed, FETCH_ADD, 2, 8);
    bed_post(bed, WRITE, 3, 8);
    bed_forget_requests(bed);
    pass_time(bed);
    bed_atomic_ack(bed, PSN + 1, 5);
    bed_expect_none(bed);
    bed_expect_read(bed, PSN, 0, 100);
    bed_expect_request(bed, HCA_FETCH_ADD, PSN + 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 2);
    expect_timer_reset(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_atomic_ack(bed, PSN + 1, 0x0102030405060708);
    bed_ack(bed, PSN + 2);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    {
        uint64_t old;

        mr_read(bed->mr, 2 * 4096, &old, sizeof(old));
        g_assert_cmphex(GUINT64_FROM_LE(old), ==, 0x0102030405060708);
    }
    bed_free(bed);
}

/*
 * READ_RETRANS: Middle or Last, and UPSN < RPSN. The Read goes on from where
 * its answer broke off.
 */
static void test_middle_lost(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 4 * MTU);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 2 * MTU, MTU);
    bed_expect_read(bed, PSN + 1, MTU, 3 * MTU);
    expect_timer_reset(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 3, 3 * MTU, MTU);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 2 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 3, 3 * MTU, MTU);
    bed_expect_done(bed, 1);
    expect_region(bed, 4096, 0, 4 * MTU);
    bed_free(bed);
}

/* ---- responses that come late, twice or not at all ---- */

/* Responses of the first answer mix with those of the second. */
static void test_partial_retry(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 5 * MTU);
    bed_post(bed, READ, 2, 0);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    lab_sleep(bed->pair->lab, TIMEOUT_NS + NS_PER_MS);
    bed_expect_read(bed, PSN + 2, 2 * MTU, 3 * MTU);
    bed_expect_read(bed, PSN + 5, 0, 0);
    /* The late rest of the first answer serves as well. */
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 2 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 2, 2 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 3, 3 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 3, 3 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 4, 4 * MTU, MTU);
    bed_expect_done(bed, 1);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 4, 4 * MTU, MTU);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 3);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 5, 0, 0);
    bed_expect_done(bed, 2);
    expect_region(bed, 4096, 0, 5 * MTU);
    bed_free(bed);
}

/* A response to a Send, or to what was answered: nothing happens. */
static void test_ghosts(void)
{
    Bed *bed = bed_new();
    g_autofree uint8_t *before = NULL;

    bed_post(bed, READ, 1, 100);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_expect_done(bed, 1);
    bed_post(bed, SEND, 2, 100);
    bed_post(bed, READ, 3, 100);
    bed_forget_requests(bed);
    before = mr_image(bed->mr);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_atomic_ack(bed, PSN + 1, 1);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1);
    bed_expect_drops(bed, HCA_DROP_GHOST, 2);
    mr_check_image(bed->mr, before);
    bed_expect_none(bed);
    bed_ack(bed, PSN + 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/* An ACK in the middle of a Read's PSNs is no answer to it. */
static void test_ack_for_read(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 3 * MTU);
    bed_forget_requests(bed);
    bed_ack(bed, PSN + 1);
    bed_expect_read(bed, PSN, 0, 3 * MTU);
    bed_expect_none(bed);
    bed_ack(bed, PSN + 2);
    bed_expect_quiet(bed);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, 2 * MTU, MTU);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/*
 * Memory that a packet came from is gone when it has to be sent again: those
 * before it are not at fault.
 */
static void test_resend_refused(void)
{
    Bed *bed = bed_new();
    Mr *mr = mr_new(bed->pair->drv[0], bed->pair->pd[0], 0x1000, 4096, 0);
    Sge sge;
    SendWr wr;

    bed_post(bed, WRITE, 1, 100);
    wr = bed_wr(bed, &sge, WRITE, 2, 100);
    sge = mr_sge(mr, 0, 100);
    bed_post_wr(bed, &wr);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    lab_sleep(bed->pair->lab, TIMEOUT_NS + NS_PER_MS);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_expect_quiet(bed);
    bed_expect_none(bed);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_expect_broken(bed, 2, SYNDROME(LOCAL_PROT_ERR), 1);
    bed_free(bed);
}

/* ---- timers and counts ---- */

/* IBA table 45, in units of 10 us. */
static const uint32_t rnr_10us[] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void test_rnr_table(void)
{
    for (unsigned code = 0; code < G_N_ELEMENTS(rnr_10us); code++) {
        int64_t want = rnr_10us[code] * 10 * NS_PER_US, told;
        Bed *bed = bed_new();
        BedPacket *again;

        bed_post(bed, SEND, 1, 0);
        bed_forget_requests(bed);
        told = bed->pair->lab->now;
        bed_nak(bed, PSN, RNR(code));
        lab_sleep(bed->pair->lab, want + NS_PER_MS);
        again = bed_next(bed, HCA_SEND_ONLY, PSN);
        g_assert_cmpint(again->time - told, >=, want);
        g_assert_cmpint(again->time - told, <, want + 10 * NS_PER_US);
        g_free(again);
        bed_ack(bed, PSN);
        bed_expect_done(bed, 1);
        bed_free(bed);
    }
}

/* 4.096 us * 2^code; 0 waits for ever. */
static void test_timeout_table(void)
{
    for (unsigned code = 0; code < 32; code++) {
        int64_t want = INT64_C(4096) << code, began;
        QpAttr attr;
        Bed *bed;

        bed_attr_init(&attr);
        attr.timeout = code;
        attr.retry_cnt = 0;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        bed_post(bed, WRITE, 1, 0);
        began = bed->pair->lab->now;
        bed_forget_requests(bed);
        if (code) {
            lab_sleep(bed->pair->lab, want - MIN(want / 2, NS_PER_MS));
            bed_expect_none(bed);
            lab_sleep(bed->pair->lab, want);
            bed_expect_broken(bed, 1, SYNDROME(RETRY_EXC_ERR), 0);
        } else {
            lab_sleep(bed->pair->lab, 3600 * NS_PER_S);
            bed_expect_none(bed);
            g_assert_cmpint(bed->pair->lab->now - began, >=, 3600 * NS_PER_S);
            bed_ack(bed, PSN);
            bed_expect_done(bed, 1);
        }
        bed_free(bed);
    }
}

/* Sent so often again as retry_cnt says, then the WQE fails in time. */
static void test_retry_count(void)
{
    for (unsigned count = 0; count <= 7; count++) {
        int64_t began;
        QpAttr attr;
        Bed *bed;
        Wc wc;

        bed_attr_init(&attr);
        attr.retry_cnt = count;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        began = bed->pair->lab->now;
        bed_post(bed, WRITE, 1, 0);
        g_assert_true(cq_wait(bed->cq, &wc, 10 * NS_PER_S));
        g_assert_cmphex(wc.syndrome, ==, SYNDROME(RETRY_EXC_ERR));
        g_assert_cmpint(bed->pair->lab->now - began, >=,
                        (count + 1) * TIMEOUT_NS);
        g_assert_cmpint(bed->pair->lab->now - began, <,
                        (count + 1) * TIMEOUT_NS + NS_PER_MS);
        g_assert_cmpuint(bed->heard.length, ==, count + 1);
        bed_forget_requests(bed);
        bed_free(bed);
    }
}

/* A packet that is acknowledged restores the count. */
static void test_retry_restored(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 0);
    bed_post(bed, WRITE, 2, 0);
    lab_sleep(bed->pair->lab, 3 * TIMEOUT_NS + NS_PER_MS);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 0);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    lab_sleep(bed->pair->lab, 3 * TIMEOUT_NS + NS_PER_MS);
    bed_expect_none(bed);
    g_assert_cmpuint(bed->hqp->req.retries_left, ==, 0);
    lab_sleep(bed->pair->lab, TIMEOUT_NS);
    bed_expect_broken(bed, 2, SYNDROME(RETRY_EXC_ERR), 0);
    bed_forget_requests(bed);
    bed_free(bed);
}

/*
 * A packet is lost, comes late, is not taken, and is lost once more: the peer
 * tells each time, and no timer is needed.
 */
static void test_lost_after_rnr(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.timeout = 0;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, SEND, 1, 100);
    bed_post(bed, SEND, 2, 100);
    bed_forget_requests(bed);
    for (unsigned round = 0; round < 2; round++) {
        bed_nak(bed, PSN, NAK(PSN_SEQ));
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
        bed_nak(bed, PSN, RNR(RNR_CODE));
        bed_expect_quiet(bed);
        lab_sleep(bed->pair->lab, RNR_NS + NS_PER_MS);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
    }
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/* The peer answers, though it is not ready: no time-out is counted on. */
static void test_rnr_restores_retries(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.rnr_retry = 7;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, SEND, 1, 0);
    for (unsigned i = 0; i < 10; i++) {
        lab_sleep(bed->pair->lab, 2 * TIMEOUT_NS + NS_PER_MS);
        g_assert_cmpuint(bed->hqp->req.retries_left, ==, 1);
        bed_nak(bed, PSN, RNR(1));
        lab_sleep(bed->pair->lab, NS_PER_MS);
        g_assert_cmpuint(bed->hqp->req.retries_left, ==, 3);
    }
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_forget_requests(bed);
    bed_free(bed);
}

/* rnr_retry times, 7 is for ever. */
static void test_rnr_retry(void)
{
    for (unsigned count = 0; count <= 7; count++) {
        unsigned rounds = count == 7 ? 1000 : count;
        QpAttr attr;
        Bed *bed;

        bed_attr_init(&attr);
        attr.rnr_retry = count;
        bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
        bed_post(bed, SEND, 1, 0);
        bed_post(bed, SEND, 2, 0);
        for (unsigned i = 0; i < rounds; i++) {
            bed_expect_request(bed, HCA_SEND_ONLY, PSN);
            bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
            bed_nak(bed, PSN, RNR(1));
            lab_sleep(bed->pair->lab, 20 * NS_PER_US);
        }
        bed_forget_requests(bed);
        bed_expect_none(bed);
        if (count == 7) {
            bed_ack(bed, PSN + 1);
            bed_expect_done(bed, 1);
            bed_expect_done(bed, 2);
        } else {
            bed_nak(bed, PSN, RNR(1));
            bed_expect_broken(bed, 1, SYNDROME(RNR_RETRY_EXC_ERR), 1);
        }
        bed_free(bed);
    }
}

/* An RNR NAK that the cable doubles costs no more than one. */
static void test_rnr_doubled(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 0);
    bed_forget_requests(bed);
    for (unsigned i = 0; i < 10; i++) {
        bed_nak(bed, PSN, RNR(RNR_CODE));
    }
    g_assert_cmpuint(bed->hqp->req.rnr_retries_left, ==, 2);
    lab_sleep(bed->pair->lab, RNR_NS + NS_PER_MS);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(bed->hqp->req.rnr_retries_left, ==, 3);
    bed_free(bed);
}

/* ---- the life of a QP ---- */

/* The failing WQE first, then the others in the order of their posting. */
static void test_flush_order(void)
{
    Bed *bed = bed_new();

    bed_post_flags(bed, WRITE, 1, 100, 0);
    bed_post_flags(bed, READ, 2, 300, 0);
    bed_post_flags(bed, WRITE, 3, 1000, 0);
    bed_post_flags(bed, FETCH_ADD, 4, 8, 0);
    bed_post_flags(bed, SEND, 5, 100, SEND_FENCE); /* waits */
    bed_post_flags(bed, SEND, 6, 0, 0);            /* is not fetched */
    bed_post_bad(bed, 7);
    bed_forget_requests(bed);
    bed_ack(bed, PSN); /* 1: unsignalled */
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_expect_broken(bed, 2, SYNDROME(WR_FLUSH_ERR), 5);
    bed_free(bed);
}

/* In mid-message: the WQE in hand is flushed once. */
static void test_flush_in_hand(void)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].swpb_elements = 512;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    bed_post(bed, WRITE, 1, 60 * MTU);
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    g_assert_true(bed->hqp->send.wqe_valid);
    bed_nak(bed, PSN + 3, NAK(REMOTE_OP));
    bed_expect_broken(bed, 1, SYNDROME(REMOTE_OP_ERR), 1);
    bed_free(bed);
}

static unsigned count_drained(Bed *bed)
{
    bed_run(bed);
    return driver_count_events(bed->pair->drv[0], RDMA_HCA_EVENT_SQ_DRAINED);
}

static bool draining(Bed *bed)
{
    struct rdma_hca_qpc qpc;

    g_assert_cmphex(qp_query(bed->qp, &qpc), ==, 0);
    return GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_SQ_DRAINING;
}

/* SQD: what has begun ends, the event comes then, and only if asked for. */
static void test_drain(void)
{
    for (unsigned event = 0; event <= 1; event++) {
        Bed *bed = bed_new();

        bed_post(bed, WRITE, 1, 100);
        bed_post(bed, READ, 2, 300);
        bed_forget_requests(bed);
        g_assert_cmphex(qp_to_sqd(bed->qp, event), ==, 0);
        bed_post(bed, WRITE, 3, 100);
        bed_expect_quiet(bed);
        bed_ack(bed, PSN);
        bed_expect_done(bed, 1);
        bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
        g_assert_cmpuint(count_drained(bed), ==, 0);
        g_assert_true(draining(bed));
        /* What is lost is still sent again. */
        lab_sleep(bed->pair->lab, TIMEOUT_NS + NS_PER_MS);
        bed_expect_read(bed, PSN + 2, MTU, 300 - MTU);
        bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, MTU, 300 - MTU);
        bed_expect_done(bed, 2);
        g_assert_cmpuint(count_drained(bed), ==, event);
        g_assert_false(draining(bed));
        bed_expect_quiet(bed);
        g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
        bed_run(bed);
        bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 3, 3 * 4096, 100);
        bed_ack(bed, PSN + 3);
        bed_expect_done(bed, 3);
        g_assert_cmpuint(count_drained(bed), ==, 0);
        bed_free(bed);
    }
}

/* Nothing is outstanding: drained at once. */
static void test_drain_idle(void)
{
    Bed *bed = bed_new();

    g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
    g_assert_cmpuint(count_drained(bed), ==, 1);
    g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
    g_assert_cmpuint(count_drained(bed), ==, 1);
    bed_free(bed);
}

/* A message that has begun is sent to its end, of UC too. */
static void test_drain_in_message(void)
{
    static const uint8_t service[] = { RDMA_HCA_QP_ST_RC, RDMA_HCA_QP_ST_UC };

    for (unsigned i = 0; i < G_N_ELEMENTS(service); i++) {
        const unsigned packets = BED_AREA / MTU;
        Bed *bed = bed_new_service(service[i]);
        Sge sge;
        SendWr wr = bed_wr(bed, &sge, WRITE, 0, BED_AREA);

        g_assert_true(qp_post_send(bed->qp, &wr, 1));
        while (bed->heard.length < 3) {
            lab_step(bed->pair->lab);
        }
        g_assert_cmpuint(bed->heard.length, <, packets / 2);
        g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
        bed_post(bed, WRITE, 1, 1);
        for (unsigned acked = 0; acked < packets;) {
            bed_run(bed);
            acked = bed->heard.length;
            if (service[i] == RDMA_HCA_QP_ST_RC) {
                g_assert_cmpuint(count_drained(bed), ==, 0);
                bed_ack(bed, PSN + acked - 1);
            }
        }
        g_assert_cmpuint(bed->heard.length, ==, packets);
        bed_expect_done(bed, 0);
        bed_expect_none(bed);
        g_assert_cmpuint(count_drained(bed), ==, 1);
        g_assert_false(draining(bed));
        bed_forget_requests(bed);
        g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
        bed_expect_wc(bed, 1, SYNDROME(WR_FLUSH_ERR));
        bed_free(bed);
    }
}

/* What stands behind the bad one in the queue is flushed without delay. */
static void test_sqe(void)
{
    static const uint8_t service[] = { RDMA_HCA_QP_ST_UC, RDMA_HCA_QP_ST_UD };

    for (unsigned i = 0; i < G_N_ELEMENTS(service); i++) {
        Bed *bed = bed_new_service(service[i]);
        UdAddress ud = { .dlid = bed->peer.slid,
                         .dqpn = BED_PEER_QPN,
                         .qkey = BED_QKEY };
        SendWr wr[40];
        Sge sge[40];

        for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
            wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
            sge[n] = mr_sge(bed->mr, 0, 8);
            wr[n].flags = n == 1 ? SEND_SIGNALED : 0;
            wr[n].ud = service[i] == RDMA_HCA_QP_ST_UD ? &ud : NULL;
        }
        sge[2].lkey = 0xbad;
        g_assert_true(qp_post_send(bed->qp, wr, G_N_ELEMENTS(wr)));
        bed_run(bed);
        g_assert_cmpuint(bed_counter(bed, 0, "requester_wqes_flushed"), ==, 37);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 1);
        bed_expect_done(bed, 1);
        bed_expect_wc(bed, 2, SYNDROME(LOCAL_PROT_ERR));
        for (unsigned n = 3; n < G_N_ELEMENTS(wr); n++) {
            bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
        }
        bed_expect_none(bed);
        bed_expect_state(bed, RDMA_HCA_QP_STATE_SQE);
        wr[0].wr_id = 100;
        g_assert_true(qp_post_send(bed->qp, wr, 1));
        bed_expect_wc(bed, 100, SYNDROME(WR_FLUSH_ERR));
        /* And back: the next PSN is the one that the bad one did not use. */
        g_assert_cmphex(qp_sqe_to_rts(bed->qp), ==, 0);
        wr[0].wr_id = 101;
        wr[0].flags = SEND_SIGNALED;
        g_assert_true(qp_post_send(bed->qp, wr, 1));
        bed_expect_done(bed, 101);
        bed_expect_request(bed, HCA_SEND_ONLY, PSN + 2);
        bed_free(bed);
    }
}

/* What was posted before the QP is taken back to RTS is flushed all the same. */
static void test_sqe_then_rts(void)
{
    enum {
        N = 50
    };
    Bed *bed = bed_new_service(RDMA_HCA_QP_ST_UC);
    SendWr wr[N];
    Sge sge[N];
    Wc wc;

    for (unsigned n = 0; n < N; n++) {
        wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    sge[0].lkey = 0xbad;
    /* Half in a chain, half by doorbells. */
    g_assert_true(qp_post_send(bed->qp, wr, N / 2));
    for (unsigned n = N / 2; n < N; n++) {
        g_assert_true(qp_post_send(bed->qp, &wr[n], 1));
    }
    while (!cq_poll(bed->cq, &wc)) {
        lab_step(bed->pair->lab);
    }
    g_assert_cmphex(wc.syndrome, ==, SYNDROME(LOCAL_PROT_ERR));
    g_assert_cmphex(qp_sqe_to_rts(bed->qp), ==, 0);
    bed_post(bed, SEND, 7, 8);
    for (unsigned n = 1; n < N; n++) {
        bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
    }
    bed_expect_done(bed, 7);
    bed_expect_request(bed, HCA_SEND_ONLY, PSN);
    bed_free(bed);
}

/* RC breaks at once, too: no WQE waits for a timer to be flushed. */
static void test_flush_at_once(void)
{
    Bed *bed = bed_new();
    SendWr wr[40];
    Sge sge[40];

    for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
        wr[n] = bed_wr(bed, &sge[n], SEND, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    sge[0].lkey = 0xbad;
    g_assert_true(qp_post_send(bed->qp, wr, G_N_ELEMENTS(wr)));
    bed_run(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wqes_flushed"), ==, 39);
    bed_expect_broken(bed, 0, SYNDROME(LOCAL_PROT_ERR), 39);
    bed_free(bed);
}

/* A QP in place of one that was destroyed: late responses are not for it. */
static void test_reuse_number(void)
{
    static const uint32_t psn[] = { PSN, PSN + 0x1000, 0x400000 };

    for (unsigned i = 0; i < G_N_ELEMENTS(psn); i++) {
        Bed *bed = bed_new();
        uint32_t qpn = bed->qp->qpn;
        QpConfig config;
        QpAttr attr;

        bed_post(bed, WRITE, 1, 100);
        bed_post(bed, READ, 2, 1000);
        bed_forget_requests(bed);
        bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, 0, MTU);
        qp_destroy(bed->qp);
        qp_config_init(&config, bed->pair->pd[0], bed->cq);
        bed->qp = qp_new_number(bed->pair->drv[0], &config, qpn);
        bed_ack(bed, PSN);
        bed_expect_drops(bed, HCA_DROP_QPN, 1);
        bed_attr_init(&attr);
        attr.sq_psn = psn[i];
        attr.dlid = bed->peer.slid;
        attr.dest_qpn = BED_PEER_QPN;
        g_assert_cmphex(qp_to_init(bed->qp, &attr), ==, 0);
        g_assert_cmphex(qp_to_rtr(bed->qp, &attr), ==, 0);
        bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 0, MTU);
        bed_expect_drops(bed, HCA_DROP_QP_STATE, 1);
        g_assert_cmphex(qp_to_rts(bed->qp, &attr), ==, 0);
        bed->hqp = card_qp(bed->hca, qpn);
        bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 3, 0, MTU);
        bed_ack(bed, PSN);
        lab_sleep(bed->pair->lab, 10 * TIMEOUT_NS);
        bed_expect_none(bed);
        bed_expect_quiet(bed);
        expect_timer_off(bed);
        bed_post(bed, SEND, 7, 100);
        bed_expect_payload(bed, HCA_SEND_ONLY, psn[i], 7 * 4096, 100);
        bed_ack(bed, psn[i]);
        bed_expect_done(bed, 7);
        bed_free(bed);
    }
}

/* A Read waited for others when SQD took away the right to Reads. */
static void test_drain_no_reads(void)
{
    struct rdma_hca_qpc qpc = {
        .opt_param_mask = GUINT32_TO_BE(RDMA_HCA_QP_ATTR_MAX_QP_RD_ATOMIC),
    };
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, READ, 1, 8);
    bed_post(bed, READ, 2, 8);
    bed_post(bed, WRITE, 3, 8);
    bed_expect_read(bed, PSN, 0, 8);
    g_assert_cmphex(qp_to_sqd(bed->qp, true), ==, 0);
    /* It drains still. */
    g_assert_cmphex(driver_cmd_in(bed->qp->drv, RDMA_HCA_CMD_SQD2SQD_QPEE, &qpc,
                                  sizeof(qpc), bed->qp->qpn, 0),
                    ==, RDMA_HCA_STAT_BAD_QP_STATE);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_done(bed, 1);
    g_assert_cmpuint(count_drained(bed), ==, 1);
    g_assert_cmphex(driver_cmd_in(bed->qp->drv, RDMA_HCA_CMD_SQD2SQD_QPEE, &qpc,
                                  sizeof(qpc), bed->qp->qpn, 0),
                    ==, RDMA_HCA_STAT_OK);
    g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    bed_expect_broken(bed, 2, SYNDROME(LOCAL_QP_OP_ERR), 1);
    bed_free(bed);
}

/* What is in hand when the queue is drained is sent once, and its chain too. */
static void test_drain_in_hand(void)
{
    QpAttr attr;
    Bed *bed;
    SendWr wr[64];
    Sge sge[64];

    bed_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    /* As long a chain as the queue takes: no link may count twice. */
    for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
        wr[n] = bed_wr(bed, &sge[n], n < 2 ? READ : WRITE, n, 8);
        sge[n] = mr_sge(bed->mr, 0, 8);
    }
    g_assert_cmpuint(qp_send_room(bed->qp), ==, G_N_ELEMENTS(wr));
    g_assert_true(qp_post_send(bed->qp, wr, G_N_ELEMENTS(wr)));
    bed_run(bed);
    bed_expect_read(bed, PSN, 0, 8);
    for (unsigned n = 0; n < 3; n++) {
        g_assert_cmphex(qp_to_sqd(bed->qp, false), ==, 0);
        g_assert_cmphex(qp_sqd_to_rts(bed->qp), ==, 0);
    }
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_read(bed, PSN + 1, 0, 8);
    for (unsigned n = 2; n < G_N_ELEMENTS(wr); n++) {
        bed_expect_request(bed, HCA_WRITE_ONLY, PSN + n);
    }
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 8);
    bed_ack(bed, PSN + G_N_ELEMENTS(wr) - 1);
    for (unsigned n = 0; n < G_N_ELEMENTS(wr); n++) {
        bed_expect_done(bed, n);
    }
    bed_free(bed);
}

/* ---- half of the circle ---- */

/* A Read into 2 GiB that are 64 KiB again and again. */
static void post_long_read(Bed *bed, const Mr *mr, uint64_t wr_id, uint32_t len)
{
    Sge sge[2] = { mr_sge(mr, 0, len / 2), mr_sge(mr, len / 2, len - len / 2) };
    SendWr wr = bed_wr(bed, &(Sge) { 0 }, READ, wr_id, len);

    wr.nsge = 2;
    wr.sge = sge;
    bed_post_wr(bed, &wr);
}

/* As if all responses but the last had come. */
static void answer_all_but_last(Bed *bed)
{
    HcaSentRead *read = hca_mq_rpb_head(bed->hca, bed->hqp);
    uint32_t rest = read->len % MTU ? read->len % MTU : MTU;
    HcaSge *entry;

    hca_mq_reb_release(bed->hca, bed->hqp);
    entry = hca_mq_reb_head(bed->hca, bed->hqp);
    entry->va += entry->len - rest;
    entry->len = rest;
    read->answered = read->npsn - 1;
    read->received = read->len - rest;
    bed->hqp->req.unacked_psn = hca_psn_add(read->psn, read->answered);
}

static Bed *long_bed(Mr **mr)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].log_mtts = 17;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    *mr = mr_new_repeated(bed->pair->drv[0], bed->pair->pd[0], 0x10000,
                          UINT64_C(1) << 31, RDMA_HCA_ACCESS_LOCAL_WRITE);
    return bed;
}

/* No more than half of all PSNs are on their way, and no less. */
static void test_window(void)
{
    const uint32_t half = 1u << 23;
    Bed *bed;
    Mr *mr;

    bed = long_bed(&mr);
    post_long_read(bed, mr, 1, half * MTU);
    bed_expect_read(bed, PSN, 0, half * MTU);
    bed_post(bed, WRITE, 2, 100);
    bed_post(bed, WRITE, 3, 100);
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_psns"), >, 0);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + half);
    bed_expect_quiet(bed);
    answer_all_but_last(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + half - 1, 0, MTU);
    bed_expect_done(bed, 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + half + 1);
    bed_ack(bed, PSN + half + 1);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/*
 * The first Read's own PSN is more than half of the circle behind the Write.
 * All the same it comes first: when it is sent again, when the Write is
 * acknowledged, and when the queue is flushed.
 */
static void test_long_reads(void)
{
    const uint32_t first = 1u << 22, second = (1u << 23) - 2;
    const uint32_t write = PSN + first + second;
    Bed *bed;
    Mr *mr;

    bed = long_bed(&mr);
    post_long_read(bed, mr, 1, first * MTU);
    bed_expect_read(bed, PSN, 0, first * MTU);
    answer_all_but_last(bed);
    post_long_read(bed, mr, 2, second * MTU);
    bed_expect_read(bed, PSN + first, 0, second * MTU);
    bed_post(bed, WRITE, 3, 100);
    bed_expect_payload(bed, HCA_WRITE_ONLY, write, 3 * 4096, 100);
    lab_sleep(bed->pair->lab, TIMEOUT_NS + NS_PER_MS);
    bed_expect_read(bed, PSN + first - 1, (first - 1) * MTU, MTU);
    bed_expect_read(bed, PSN + first, 0, second * MTU);
    bed_expect_payload(bed, HCA_WRITE_ONLY, write, 3 * 4096, 100);
    bed_ack(bed, write);
    bed_expect_none(bed);
    expect_upsn(bed, PSN + first - 1);
    bed_forget_requests(bed);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    for (unsigned n = 1; n <= 3; n++) {
        bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
    }
    bed_free(bed);
}

/* ---- anything at all ---- */

/* The fields that a peer may fill, mostly nearly right. */
static void say_anything(Bed *bed)
{
    static const uint8_t op[] = {
        HCA_ACK,
        HCA_READ_RESP_FIRST,
        HCA_READ_RESP_MIDDLE,
        HCA_READ_RESP_LAST,
        HCA_READ_RESP_ONLY,
        HCA_ATOMIC_ACK,
    };
    static const uint32_t len[] = { 0, 1, 8, 100, MTU - 1, MTU, MTU + 1 };
    HcaPacket packet = {
        .opcode = op[pair_rand(bed->pair, 0, G_N_ELEMENTS(op))],
        .psn = bed->hqp->req.unacked_psn +
               (pair_rand(bed->pair, 0, 3) ? 0
                                           : pair_rand(bed->pair, 0, 12) - 3),
        .syndrome = pair_rand(bed->pair, 0, 6) ? HCA_AETH_CREDITS_INVALID
                                               : pair_rand(bed->pair, 0, 256),
        .atomic_ack = pair_rand(bed->pair, 0, 1000),
    };

    if (packet.opcode != HCA_ACK && packet.opcode != HCA_ATOMIC_ACK) {
        packet.payload_len = len[pair_rand(bed->pair, 0, G_N_ELEMENTS(len))];
    }
    bed_say_packet(bed, &packet, 0);
}

/* Each WQE ends once and in order, whatever the peer says. */
static void test_anything(void)
{
    static const uint8_t opcode[] = { SEND, WRITE, READ, FETCH_ADD, CMP_SWAP };

    for (unsigned life = 0; life < 400; life++) {
        unsigned posted = 0, done = 0;
        Bed *bed = bed_new();
        Wc wc;

        for (unsigned n = 0; n < 60; n++) {
            uint8_t op = opcode[pair_rand(bed->pair, 0, G_N_ELEMENTS(opcode))];

            if (posted - done < 8) {
                bed_post_flags(
                    bed, op, posted++ % 16,
                    op == FETCH_ADD || op == CMP_SWAP
                        ? 8
                        : pair_rand(bed->pair, 0, 600),
                    SEND_SIGNALED |
                        (pair_rand(bed->pair, 0, 4) ? 0 : SEND_FENCE));
            }
            say_anything(bed);
            if (pair_rand(bed->pair, 0, 10) == 0) {
                lab_sleep(bed->pair->lab, TIMEOUT_NS);
            }
            while (cq_poll(bed->cq, &wc)) {
                g_assert_cmpuint(wc.wr_id, ==, done++ % 16);
            }
        }
        g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
        bed_run(bed);
        while (cq_poll(bed->cq, &wc)) {
            g_assert_cmpuint(wc.wr_id, ==, done++ % 16);
        }
        g_assert_cmpuint(done, ==, posted);
        g_assert_cmpuint(bed->hqp->req.swpb_elements, ==, 0);
        g_assert_cmpuint(bed->hqp->req.reb.count, ==, 0);
        bed_forget_requests(bed);
        bed_free(bed);
        if (life % 8 == 0 && g_test_failed()) {
            break;
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/fig-3.3/rc-segments", test_rc_segments);
    test_add("/requester/fig-3.3/rc-zero", test_rc_zero);
    test_add("/requester/fig-3.3/store-entry", test_store_entry);
    test_add("/requester/fig-3.3/store-entry-waits", test_store_entry_waits);
    test_add("/requester/fig-3.3/judge-fails/fence", test_judge_fence);
    test_add("/requester/fig-3.3/judge-fails/reads", test_judge_reads);
    test_add("/requester/fig-3.3/judge-fails/room", test_judge_room);
    test_add("/requester/fig-3.3/judge-fails/entries", test_judge_entries);
    test_add("/requester/fig-3.3/judge-passes/fence", test_fence_passes);
    test_add("/requester/fig-3.3/bad-request", test_bad_request);
    test_add("/requester/fig-3.3/uc", test_uc);
    test_add("/requester/fig-3.3/uc-zero", test_uc_zero);
    test_add("/requester/fig-3.3/ud", test_ud);
    test_add("/requester/fig-3.3/ud-zero", test_ud_zero);
    test_add("/requester/fig-3.3/ucud-bad-request", test_ucud_bad);
    test_add("/requester/fig-3.3/flush-rc", test_flush_rc);
    test_add("/requester/fig-3.3/flush-ucud", test_flush_ucud);
    test_add("/requester/fig-3.9/insert-and-release", test_multi_queue);
    test_add("/requester/fig-3.9/no-room", test_no_room);
    test_add("/requester/fig-3.10/release", test_multi_queue);
    test_add("/requester/fig-3.17/timer-retrans", test_timer_retrans);
    test_add("/requester/fig-3.17/timer-flush", test_timer_flush);
    test_add("/requester/fig-3.17/bad-request", test_bad_request);
    test_add("/requester/fig-3.17/bad-request-waits", test_bad_request_waits);
    test_add("/requester/fig-3.18/silent-drop", test_silent_drop);
    test_add("/requester/fig-3.18/invalid-region", test_invalid_region);
    test_add("/requester/fig-3.18/flush", test_response_in_error);
    test_add("/requester/fig-3.18/ack-release-normal/all",
             test_ack_release_all);
    test_add("/requester/fig-3.18/ack-release-normal/some",
             test_ack_release_some);
    test_add("/requester/fig-3.18/ack-release-exception",
             test_ack_release_exception);
    test_add("/requester/fig-3.19/rnr-at-upsn", test_rnr_at_upsn);
    test_add("/requester/fig-3.19/psn-at-upsn", test_psn_at_upsn);
    test_add("/requester/fig-3.19/implicit-release/psn",
             test_psn_implicit_release);
    test_add("/requester/fig-3.19/implicit-release/rnr",
             test_rnr_implicit_release);
    test_add("/requester/fig-3.19/implicit-release/read-in-way",
             test_nak_read_in_way);
    test_add("/requester/fig-3.20/update-entry", test_update_entry);
    test_add("/requester/fig-3.20/next-entry", test_next_entry);
    test_add("/requester/fig-3.20/entry-fits-middle", test_entry_fits_middle);
    test_add("/requester/fig-3.20/entry-fits-last", test_entry_fits_last);
    test_add("/requester/fig-3.20/last-resets-timer", test_last_resets_timer);
    test_add("/requester/fig-3.20/wrong-kind", test_wrong_kind);
    test_add("/requester/fig-3.20/entry-refused", test_entry_refused);
    test_add("/requester/fig-3.20/implicit-release",
             test_read_implicit_release);
    test_add("/requester/fig-3.20/implicit-release-retrans",
             test_read_implicit_release_lost);
    test_add("/requester/fig-3.20/retrans-first", test_first_read_lost);
    test_add("/requester/fig-3.20/retrans-middle", test_middle_lost);
    test_add("/requester/fig-3.22/fetch-and-release", test_next_entry);
    test_add("/requester/fig-3.22/update", test_update_entry);
    test_add("/requester/read/wrong-length", test_wrong_length);
    test_add("/requester/read/partial-retry", test_partial_retry);
    test_add("/requester/read/ghosts", test_ghosts);
    test_add("/requester/read/ack-is-no-answer", test_ack_for_read);
    test_add("/requester/resend/refused", test_resend_refused);
    test_add("/requester/timer/rnr-table", test_rnr_table);
    test_add("/requester/timer/timeout-table", test_timeout_table);
    test_add("/requester/timer/retry-count", test_retry_count);
    test_add("/requester/timer/retry-restored", test_retry_restored);
    test_add("/requester/timer/rnr-restores-retries",
             test_rnr_restores_retries);
    test_add("/requester/timer/rnr-retry", test_rnr_retry);
    test_add("/requester/timer/rnr-doubled", test_rnr_doubled);
    test_add("/requester/timer/lost-after-rnr", test_lost_after_rnr);
    test_add("/requester/psn/window", test_window);
    test_add("/requester/psn/long-reads", test_long_reads);
    test_add("/requester/life/flush-order", test_flush_order);
    test_add("/requester/life/flush-in-hand", test_flush_in_hand);
    test_add("/requester/life/flush-at-once", test_flush_at_once);
    test_add("/requester/life/drain", test_drain);
    test_add("/requester/life/drain-idle", test_drain_idle);
    test_add("/requester/life/drain-in-message", test_drain_in_message);
    test_add("/requester/life/drain-in-hand", test_drain_in_hand);
    test_add("/requester/life/drain-no-reads", test_drain_no_reads);
    test_add("/requester/life/sqe", test_sqe);
    test_add("/requester/life/sqe-then-rts", test_sqe_then_rts);
    test_add("/requester/life/reuse-number", test_reuse_number);
    test_add("/requester/anything", test_anything);
    for (unsigned i = 0; i < G_N_ELEMENTS(fatal_naks); i++) {
        const char *at_upsn = test_named("/requester/fig-3.19/fatal-at-upsn/%s",
                                         fatal_naks[i].name);
        const char *release = test_named(
            "/requester/fig-3.19/implicit-release/%s", fatal_naks[i].name);

        test_add_data(at_upsn, &fatal_naks[i], test_fatal_at_upsn);
        test_add_data(release, &fatal_naks[i], test_fatal_implicit_release);
    }
    return g_test_run();
}
