/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the requester cuts requests into packets, and what they wait for
 * (engine document, figures 3.3, 3.9 and 3.10).
 */
#include "../requester/multi_queue.h"
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
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name

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

/* The peer answers @op to another QP than the bed's. */
static void respond_to(Bed *bed, Qp *other, uint8_t op, uint32_t len)
{
    Qp *own = bed->qp;

    bed->qp = other;
    bed_respond(bed, op, PSN, 0, len);
    bed->qp = own;
}

/* Elements of the pools; 0: as many as usual. */
typedef struct Pools {
    uint32_t swpb, rpb, reb;
} Pools;

static Bed *new_with_pools(const QpAttr *attr, Pools pools)
{
    HcaConfig config[2];

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    if (pools.swpb) {
        config[0].swpb_elements = pools.swpb;
    }
    if (pools.rpb) {
        config[0].rpb_elements = pools.rpb;
    }
    if (pools.reb) {
        config[0].reb_elements = pools.reb;
    }
    return bed_new_with(RDMA_HCA_QP_ST_RC, attr, config);
}

/*
 * RC_STORE_ENTRY waits for room: RC_JUDGE_MSG does it in its place. Others
 * hold all of the entry buffer; the QP itself is far from its share.
 */
static void test_store_entry_waits(void)
{
    Qp *other[2];
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge[14]; /* what a WQE of 256 bytes has room for */

    bed_attr_init(&attr);
    bed = new_with_pools(&attr, (Pools) { .reb = 32 });
    bed_post(bed, READ, 1, 1);
    bed_expect_read(bed, PSN, 0, 1);
    wr = bed_wr(bed, sge, READ, 2, 1);
    for (unsigned i = 1; i < G_N_ELEMENTS(sge); i++) {
        sge[i] = mr_sge(bed->mr, 2 * 4096 + i, 1);
    }
    wr.nsge = G_N_ELEMENTS(sge);
    bed_post_from_others(bed, &attr, other, G_N_ELEMENTS(other), &wr);
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
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge[12];

    bed_attr_init(&attr);
    bed = new_with_pools(&attr, (Pools) { .reb = 32 });
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
    unsigned sent = 0, more;
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    bed = new_with_pools(&attr, (Pools) { .swpb = 512 });
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
    Qp *other[4];
    HcaMqGauges gauges;
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge;

    bed_attr_init(&attr);
    attr.mtu = 5;
    bed = new_with_pools(&attr, (Pools) { .swpb = 512 });
    bed_post(bed, WRITE, 1, 1000);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN, 4096, 1000);
    wr = bed_wr(bed, &sge, WRITE, 2, 4096);
    bed_post_from_others(bed, &attr, other, G_N_ELEMENTS(other), &wr);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.swpb.used, >=, 512);
    bed_post(bed, WRITE, 3, 1000);
    bed_expect_quiet(bed);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.waiting, ==, 1);
    respond_to(bed, other[0], HCA_ACK, 0);
    bed_expect_done(bed, 2);
    bed_expect_payload(bed, HCA_WRITE_ONLY, PSN + 1, 3 * 4096, 1000);
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

/*
 * Many peers that do not answer leave a QP what is its own: of the packet buffer
 * a 16th of what it counts (7 packets of 1 KiB, of 34 elements), of the other two
 * a 64th (8 Reads).
 */
static void own_room(uint8_t opcode, uint32_t len, unsigned n, unsigned own)
{
    Qp *other[48];
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge;

    bed_attr_init(&attr);
    attr.mtu = 3;
    attr.timeout = 0;
    attr.max_rd_atomic = 16;
    bed = new_with_pools(&attr,
                         (Pools) { .swpb = 4096, .rpb = 512, .reb = 2048 });
    wr = bed_wr(bed, &sge, opcode, 2, 1);
    bed_post_from_others(bed, &attr, other, G_N_ELEMENTS(other), &wr);
    wr = bed_wr(bed, &sge, opcode, 2, len);
    for (unsigned i = 0; i < n * G_N_ELEMENTS(other); i++) {
        g_assert_true(qp_post_send(other[i / n], &wr, 1));
    }
    bed_run(bed);
    bed_forget_requests(bed);
    for (unsigned i = 0; i < n; i++) {
        bed_post(bed, opcode, i, len);
    }
    g_assert_cmpuint(bed->heard.length, ==, own);
    bed_forget_requests(bed);
    bed_free(bed);
}

static void test_own_packets(void)
{
    own_room(WRITE, 60 * 1024, 1, 7);
}

static void test_own_reads(void)
{
    own_room(READ, 1, 16, 8);
}

/*
 * Of many QPs that wait for the packet buffer as many have a turn as what was
 * released is enough for, and none if it is not.
 */
static void test_wake_what_fits(void)
{
    enum {
        N = 9,
        SMALL = 34,     /* elements of 1000 bytes */
        LARGE = 130,    /* of 4096 */
        LEAST = 34 + 34 /* free, for one that has 34 to have as many more */
    };
    unsigned left = 512, fit = 0;
    Qp *large[1], *small[N];
    uint64_t waits;
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge;

    bed_attr_init(&attr);
    attr.mtu = 5;
    attr.timeout = 0;
    bed = new_with_pools(&attr, (Pools) { .swpb = left });
    wr = bed_wr(bed, &sge, WRITE, 2, 4096);
    bed_post_from_others(bed, &attr, large, 1, &wr);
    wr = bed_wr(bed, &sge, WRITE, 3, 1000);
    bed_post_from_others(bed, &attr, small, N, &wr);
    left -= LARGE + N * SMALL;
    waits = bed_counter(bed, 0, "requester_wait_swpb");
    for (unsigned i = 0; i < N; i++) {
        g_assert_true(qp_post_send(small[i], &wr, 1));
        bed_run(bed);
    }
    for (; left >= LEAST; left -= SMALL) {
        bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 1);
        fit++;
    }
    bed_expect_quiet(bed);
    bed_counted(bed, 0, "requester_qps_waiting", N - fit);
    bed_counted(bed, 0, "requester_wait_swpb", waits + N - fit);
    /* A bystander that has nothing: what it gives back is not enough. */
    for (unsigned i = 0; i < 10; i++) {
        bed_post(bed, WRITE, 1, 0);
        bed_expect_request(bed, HCA_WRITE_ONLY, PSN + i);
        bed_ack(bed, PSN + i);
        bed_expect_done(bed, 1);
    }
    bed_counted(bed, 0, "requester_wait_swpb", waits + N - fit);
    waits = bed_counter(bed, 0, "requester_wait_swpb");
    respond_to(bed, large[0], HCA_ACK, 0);
    bed_expect_done(bed, 2);
    for (left += LARGE; left >= LEAST; left -= SMALL) {
        bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 1);
        fit++;
    }
    bed_expect_quiet(bed);
    bed_counted(bed, 0, "requester_qps_waiting", N - fit);
    bed_counted(bed, 0, "requester_wait_swpb", waits);
    for (unsigned i = 0; i < N; i++) {
        g_assert_cmphex(qp_to_err(small[i]), ==, 0);
    }
    bed_forget_requests(bed); /* of those that the others made room for */
    bed_counted(bed, 0, "requester_qps_waiting", 0);
    bed_counted(bed, 0, "requester_swpb_used", 0);
    bed_free(bed);
}

/* What was promised to a QP that does not want it any more goes to the next. */
static void test_promise_passed_on(void)
{
    Qp *other[3];
    HcaMqGauges gauges;
    QpAttr attr;
    Bed *bed;
    SendWr wr;
    Sge sge;

    bed_attr_init(&attr);
    attr.timeout = 0;
    bed = new_with_pools(&attr, (Pools) { .rpb = 8 });
    for (unsigned i = 0; i < 4; i++) {
        bed_post(bed, READ, 1, 8);
    }
    bed_forget_requests(bed);
    wr = bed_wr(bed, &sge, READ, 3, 8);
    bed_post_from_others(bed, &attr, other, G_N_ELEMENTS(other), &wr);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(qp_post_send(other[i], &wr, 1));
    }
    bed_expect_quiet(bed);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.waiting, ==, 2);
    /* Two places are free then: enough for one that has one. */
    hca_mq_rpb_release(bed->hca, bed->hqp);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.waiting, ==, 1);
    for (unsigned i = 0; i < 2; i++) {
        HcaQp *hqp = card_qp(bed->hca, other[i]->qpn);

        if (hqp->pool_promised) {
            g_assert_cmphex(qp_to_sqd(other[i], false), ==, 0);
            break;
        }
    }
    bed_run(bed);
    bed_expect_request(bed, HCA_READ_REQUEST, PSN + 1);
    bed_expect_quiet(bed);
    hca_mq_gauges(bed->hca->requester->mq, &gauges);
    g_assert_cmpuint(gauges.waiting, ==, 0);
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
    bed_expect_timer_off(bed);
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
    test_add("/requester/pool/own-packets", test_own_packets);
    test_add("/requester/pool/own-reads", test_own_reads);
    test_add("/requester/pool/wake-what-fits", test_wake_what_fits);
    test_add("/requester/pool/promise-passed-on", test_promise_passed_on);
    test_add("/requester/fig-3.17/bad-request", test_bad_request);
    test_add("/requester/fig-3.17/bad-request-waits", test_bad_request_waits);
    return g_test_run();
}
