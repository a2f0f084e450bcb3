/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a responder takes its receives from, and how they are flushed
 * (engine document, table 4.5: RQWQEManager).
 */
#include "../responder/units.h"
#include "lib-responder.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN
#define RC_OP(op) (HCA_BTH_RC << 5 | (op))
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)
#define RNR(code) HCA_AETH(HCA_AETH_RNR, code)
#define RNR_CODE BED_RNR_CODE

/* ---- table 4.5: RQWQEManager ---- */

static void receive_one(Bed *bed, uint64_t wr_id)
{
    uint32_t psn = bed->psn;

    request_send(bed, HCA_SEND_ONLY, 8);
    g_assert_cmpuint(bed->heard.length, ==, 1);
    resp_expect_ack(bed, psn, bed->hqp->resp.msn);
    resp_expect_recv(bed, wr_id, RC_OP(HCA_SEND_ONLY), 8);
}

static void receive_none(Bed *bed)
{
    uint32_t psn = bed->psn;

    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_nak(bed, psn, RNR(RNR_CODE));
    bed->psn = psn;
}

/* A fetch brings what is posted, no more than 512 bytes or the queue's end. */
static void test_prefetch(void)
{
    Bed *bed = resp_new();
    HcaRecvQueue *rq = &bed->hqp->rq;

    for (unsigned i = 0; i < 3; i++) {
        resp_post_recv(bed, i, 0, 64);
    }
    receive_one(bed, 0);
    g_assert_cmpuint(rq->prefetched, ==, 2);
    for (unsigned i = 3; i < 16; i++) {
        resp_post_recv(bed, i, 0, 64);
    }
    receive_one(bed, 1);
    g_assert_cmpuint(rq->prefetched, ==, 1);
    receive_one(bed, 2);
    receive_one(bed, 3);
    g_assert_cmpuint(rq->prefetched, ==, 3);
    for (unsigned i = 4; i < 15; i++) {
        receive_one(bed, i);
    }
    /* The fetch ended with the queue: one of slot 15 alone. */
    for (unsigned i = 16; i < 20; i++) {
        resp_post_recv(bed, i, 0, 64);
    }
    receive_one(bed, 15);
    g_assert_cmpuint(rq->prefetched, ==, 0);
    g_assert_cmpuint(rq->offset, ==, 0);
    for (unsigned i = 16; i < 20; i++) {
        receive_one(bed, i);
    }
    receive_none(bed);
    bed_free(bed);
}

/* Each slot size; many laps, so that old entries lie everywhere. */
static void test_slot_sizes(void)
{
    for (unsigned log = 6; log <= 9; log++) {
        BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
        Bed *bed;

        config.log_rq_entry = log;
        config.rq_entries = 8;
        bed = bed_new_as(&config);
        for (unsigned i = 0; i < 50; i += 3) {
            resp_post_recv(bed, i, 0, 64);
            resp_post_recv(bed, i + 1, 0, 64);
            receive_one(bed, i);
            resp_post_recv(bed, i + 2, 0, 64);
            receive_one(bed, i + 1);
            receive_one(bed, i + 2);
            receive_none(bed);
        }
        bed_free(bed);
    }
}

/* The record says more than the queue holds, runs backwards, or is no RAM. */
static void test_bad_record(void)
{
    for (unsigned i = 0; i < 3; i++) {
        Bed *bed = resp_new();
        Host *host = &bed->lab->host[1];

        resp_post_recv(bed, 1, 0, 64);
        receive_one(bed, 1);
        if (i == 0) {
            host_write_le32(host, bed->qp->rq_record, 1 + 17);
        } else if (i == 1) {
            host_write_le32(host, bed->qp->rq_record, 0);
        } else {
            bed->hqp->rq.record = HOST_MMIO_BASE;
        }
        request_send(bed, HCA_SEND_ONLY, 8);
        resp_expect_nak(bed, PSN + 1, NAK(REMOTE_OP));
        resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
        bed_expect_none(bed);
        bed_free(bed);
    }
}

/* The record's high half is not looked at; its count wraps. */
static void test_record_wrap(void)
{
    Bed *bed = resp_new();
    Host *host = &bed->lab->host[1];

    bed->hqp->rq.consumed = bed->hqp->rq.posted = 0xffff;
    resp_post_recv(bed, 1, 0, 64);
    resp_post_recv(bed, 2, 0, 64);
    host_write_le32(host, bed->qp->rq_record, 0xabcd0001);
    receive_one(bed, 1);
    receive_one(bed, 2);
    receive_none(bed);
    bed_free(bed);
}

static void test_queue_refused(void)
{
    Bed *bed = resp_new();

    resp_post_recv(bed, 1, 0, 64);
    bed->hqp->rq.lkey ^= 0x100;
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_nak(bed, PSN, NAK(REMOTE_OP));
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_expect_none(bed);
    bed_free(bed);
}

static void test_no_queue(void)
{
    Bed *bed = resp_new();

    bed->hqp->rq.len = 0;
    receive_none(bed);
    bed->hqp->rq.len = 2048;
    bed->hqp->rq.entry_log = 10;
    receive_none(bed);
    bed->hqp->rq.entry_log = 200;
    receive_none(bed);
    bed->hqp->rq.entry_log = 7;
    bed_free(bed);
}

/* Write a slot of the queue by hand. */
static void write_slot(Bed *bed, unsigned slot, uint32_t nds, uint32_t len)
{
    struct {
        struct rdma_hca_next_unit next;
        struct rdma_hca_data_unit unit[7];
    } wqe = { .next.nee_nds = GUINT32_TO_LE(nds),
              .next.flags = GUINT32_TO_LE(RDMA_HCA_WQE_CQ_UPDATE) };

    G_STATIC_ASSERT(sizeof(wqe) == 128);
    wqe.unit[0] = (struct rdma_hca_data_unit) {
        .byte_cnt = GUINT32_TO_LE(len),
        .lkey = GUINT32_TO_LE(bed->mr->key),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(bed->mr->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(bed->mr->va)),
    };
    mr_write(bed->qp->rq.mr, slot * 128, &wqe, sizeof(wqe));
}

static void clear_slot(Bed *bed, unsigned slot)
{
    mr_fill(bed->qp->rq.mr, slot * 128, 0, 128);
}

/* Without a record: WQE_SPLIT by zeros and next sizes. */
static void test_no_record(void)
{
    Bed *bed = resp_new();
    HcaRecvQueue *rq = &bed->hqp->rq;

    bed->hqp->rq.record = 0;
    receive_none(bed); /* FLUSH_DATA 1 */
    write_slot(bed, 0, 8, 64);
    write_slot(bed, 1, 0, 64); /* FLUSH_DATA 3: no next size */
    write_slot(bed, 2, 8, 64);
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_ack(bed, PSN, 1);
    g_assert_cmpuint(rq->prefetched, ==, 1);
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_ack(bed, PSN + 1, 2);
    g_assert_cmpuint(rq->prefetched, ==, 0);
    request_send(bed, HCA_SEND_ONLY, 8); /* slot 2; slot 3 is empty */
    resp_expect_ack(bed, PSN + 2, 3);
    g_assert_cmpuint(rq->prefetched, ==, 0);
    receive_none(bed);
    for (unsigned i = 3; i < 16; i++) { /* four of 128 fill a fetch */
        write_slot(bed, i, 8, 64);
    }
    request_send(bed, HCA_SEND_ONLY, 8);
    resp_expect_ack(bed, PSN + 3, 4);
    g_assert_cmpuint(rq->prefetched, ==, 3);
    clear_slot(bed, 0);
    for (unsigned i = 4; i < 16; i++) {
        request_send(bed, HCA_SEND_ONLY, 8);
        resp_expect_ack(bed, hca_psn_add(PSN, i), i + 1);
    }
    receive_none(bed);
    bed_free(bed);
}

/* A list without an end is as long as its slot; an inline unit is no entry. */
static void test_odd_wqes(void)
{
    Bed *bed = resp_new();
    struct rdma_hca_data_unit unit = {
        .byte_cnt = GUINT32_TO_LE(1),
        .lkey = GUINT32_TO_LE(bed->mr->key),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(bed->mr->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(bed->mr->va)),
    };

    resp_post_recv(bed, 1, 0, 64);
    resp_post_recv(bed, 2, 0, 64);
    for (unsigned i = 1; i < 8; i++) {
        mr_write(bed->qp->rq.mr, i * 16, &unit, sizeof(unit));
    }
    request_send(bed, HCA_SEND_ONLY, 7);
    resp_expect_ack(bed, PSN, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 7);
    g_assert_cmpuint(bed->hqp->resp.wqe.nsge, ==, 7);
    bed->hqp->rq.prefetched = 0; /* fetch slot 1 again */
    unit.byte_cnt = GUINT32_TO_LE(RDMA_HCA_INLINE | 4);
    mr_write(bed->qp->rq.mr, 128 + 16, &unit, sizeof(unit));
    request_send(bed, HCA_SEND_ONLY, 1);
    resp_expect_nak(bed, PSN + 1, NAK(REMOTE_OP));
    resp_expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    resp_expect_broken(bed, 0);
    bed_free(bed);
}

/* Credit codes of IBA table 45, with the WQE in use counted in. */
static void test_credits(void)
{
    static const struct {
        unsigned posted, code;
    } c[] = { { 0, 0 },  { 1, 1 },  { 2, 2 }, { 3, 3 }, { 4, 4 },
              { 5, 4 },  { 6, 5 },  { 7, 5 }, { 8, 6 }, { 11, 6 },
              { 12, 7 }, { 15, 7 }, { 16, 8 } };
    Bed *bed = resp_new();
    Host *host = &bed->lab->host[1];

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        g_autofree BedPacket *answer = NULL;

        host_write_le32(host, bed->qp->rq_record, c[i].posted);
        request_send(bed, HCA_WRITE_ONLY, 0);
        answer = bed_next(bed, HCA_ACK, hca_psn_add(PSN, i));
        g_assert_cmphex(answer->packet.syndrome, ==, c[i].code);
    }
    host_write_le32(host, bed->qp->rq_record, 17);
    g_assert_cmphex(hca_rwm_credits(bed->hca, bed->hqp), ==,
                    HCA_AETH_CREDITS_INVALID);
    bed->hqp->rq.len = 16384 * 128;
    for (unsigned code = 0; code < 29; code++) {
        static const uint32_t value[] = { 0,    1,    2,    3,     4,    6,
                                          8,    12,   16,   24,    32,   48,
                                          64,   96,   128,  192,   256,  384,
                                          512,  768,  1024, 1536,  2048, 3072,
                                          4096, 6144, 8192, 12288, 16384 };

        host_write_le32(host, bed->qp->rq_record, value[code]);
        g_assert_cmpuint(hca_rwm_credits(bed->hca, bed->hqp), ==, code);
    }
    bed->hqp->rq.record = 0;
    g_assert_cmphex(hca_rwm_credits(bed->hca, bed->hqp), ==,
                    HCA_AETH_CREDITS_INVALID);
    bed_free(bed);
}

/* ---- flush ---- */

static void test_flush(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.rq_entries = 256;
    config.log_cq = 10;
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < 200; i++) {
        resp_post_recv(bed, i, 0, 4096);
    }
    request_send(bed, HCA_SEND_FIRST, MTU);
    resp_expect_ack(bed, PSN, 0);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    for (unsigned i = 0; i < 200; i++) {
        resp_expect_recv_error(bed, i, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    bed_expect_none(bed);
    /* Posted later; after a long time, too. */
    for (unsigned i = 200; i < 230; i++) {
        Wc wc;

        resp_post_recv(bed, i, 0, 4096);
        g_assert_true(cq_wait(bed->cq, &wc, 65 * NS_PER_MS));
        g_assert_cmphex(wc.wr_id, ==, i);
        g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
        lab_sleep(bed->lab, i * NS_PER_MS);
    }
    g_assert_cmphex(qp_to_rst(bed->qp), ==, 0);
    bed_free(bed);
}

/* A QP that is left in ERR: nobody is waited for, and the card looks for what is
 * posted once a second at last. */
static void test_flush_rests(void)
{
    Bed *bed = resp_new();
    uint64_t looks = 0;
    int64_t end;
    Wc wc;

    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    lab_sleep(bed->lab, 3600 * NS_PER_S);
    g_assert_false(hca_expects_peers(bed->hca));
    end = bed->lab->now + 10 * NS_PER_S;
    while (bed->lab->now < end) {
        int64_t next = bed->hqp->deadline[HCA_TIMER_FLUSH];

        g_assert_cmpint(next, <=, bed->lab->now + NS_PER_S);
        lab_sleep(bed->lab, MAX(next - bed->lab->now, 1));
        looks++;
    }
    g_assert_cmpuint(looks, <=, 12);
    resp_post_recv(bed, 7, 0, 4096);
    g_assert_true(cq_wait(bed->cq, &wc, NS_PER_S + NS_PER_MS));
    g_assert_cmphex(wc.wr_id, ==, 7);
    g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    bed_free(bed);
}

/* Without a record one lap is flushed, not more. */
static void test_flush_no_record(void)
{
    Bed *bed = resp_new();
    Wc wc;

    bed->hqp->rq.record = 0;
    for (unsigned i = 0; i < 16; i++) {
        resp_post_recv(bed, i, 0, 64);
    }
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    lab_sleep(bed->lab, NS_PER_S);
    for (unsigned i = 0; i < 16; i++) {
        g_assert_true(cq_poll(bed->cq, &wc));
        g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    bed_expect_none(bed);
    bed_free(bed);
}

/* By command: what waits to be answered is forgotten. */
static void test_error_silences(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make_read(bed, 0, 10);

    request_give(bed, &packet, 0);
    request_give_op(bed, HCA_WRITE_ONLY, 4);
    hca_qp_set_state(bed->hca->cm, bed->hqp, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(resp_waiting(bed), ==, 0);
    g_assert_cmpuint(bed->hqp->resp.rd_atomic, ==, 0);
    resp_run(bed);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/responder/t4.5/prefetch", test_prefetch);
    test_add("/responder/t4.5/slot-sizes", test_slot_sizes);
    test_add("/responder/t4.5/bad-record", test_bad_record);
    test_add("/responder/t4.5/record-wrap", test_record_wrap);
    test_add("/responder/t4.5/queue-refused", test_queue_refused);
    test_add("/responder/t4.5/no-queue", test_no_queue);
    test_add("/responder/t4.5/no-record", test_no_record);
    test_add("/responder/t4.5/odd-wqes", test_odd_wqes);
    test_add("/responder/t4.5/credits", test_credits);
    test_add("/responder/flush/all", test_flush);
    test_add("/responder/flush/rests", test_flush_rests);
    test_add("/responder/flush/no-record", test_flush_no_record);
    test_add("/responder/flush/silence", test_error_silences);
    return g_test_run();
}
