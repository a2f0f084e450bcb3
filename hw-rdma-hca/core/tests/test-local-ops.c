/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations that send nothing, among those that do (IBA 10.8.3.3, 10.8.6): when
 * they are executed, that they hold up nothing and complete in order, that
 * LOCAL_INV waits, and what retransmission, SQD and errors do with them. The
 * peer is the test.
 */
#include <string.h>

#include "lib-mem.h"
#include "lib-requester.h"
#include "lib-test.h"

#define PAGES 4
#define VA UINT64_C(0x440000000000)
#define LEN (2 * HOST_PAGE_SIZE)
#define PSN BED_PSN
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FLUSH RDMA_HCA_SYNDROME_WR_FLUSH_ERR
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)

/* A requester, and a region and a list for REG_MR. */
typedef struct Bench {
    Bed *bed;
    Mr *mr;
    uint64_t list;
} Bench;

static void bench_with(Bench *b, Bed *bed)
{
    b->bed = bed;
    b->mr = mem_region_new(bed->drv[0], bed->pair->pd[0], PAGES);
    b->list = mem_list_new(bed->drv[0], b->mr->page, PAGES);
}

static void bench_init(Bench *b)
{
    bench_with(b, bed_new());
}

static void post(Bench *b, uint8_t opcode, uint64_t wr_id)
{
    bed_post(b->bed, opcode, wr_id, 100);
}

static void post_reg(Bench *b, uint64_t wr_id, unsigned flags)
{
    SendWr wr = mem_reg_wr(b->mr, b->list, VA, LEN, ACCESS_ALL);

    wr.wr_id = wr_id;
    wr.flags = flags;
    bed_post_wr(b->bed, &wr);
}

static void post_bad_reg(Bench *b, uint64_t wr_id)
{
    SendWr wr = mem_reg_wr(b->mr, b->list, VA, LEN, ACCESS_ALL);

    wr.wr_id = wr_id;
    mem_reg_unit(&wr)->entries = 0;
    bed_post_wr(b->bed, &wr);
}

static void post_inv(Bench *b, uint64_t wr_id, uint32_t key)
{
    SendWr wr = mem_inv_wr(key);

    wr.wr_id = wr_id;
    bed_post_wr(b->bed, &wr);
}

static void post_nop(Bench *b, uint64_t wr_id)
{
    SendWr wr = { .wr_id = wr_id,
                  .opcode = RDMA_HCA_OPCODE_NOP,
                  .flags = SEND_SIGNALED };

    bed_post_wr(b->bed, &wr);
}

static bool is_free(Bench *b)
{
    return mem_is_free(b->mr->drv, b->mr->key);
}

static void executed(Bench *b, unsigned times)
{
    g_assert_cmpuint(bed_counter(b->bed, 0, "v2p_fast_regs"), ==, times);
}

/* At once, though nothing before it has been answered; done in its turn. */
static void test_at_its_turn(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post_reg(&b, 2, SEND_SIGNALED);
    post_nop(&b, 3);
    post(&b, WRITE, 4);
    g_assert_false(is_free(&b));
    bed_expect_request(b.bed, HCA_SEND_ONLY, PSN);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_done(b.bed, 2);
    bed_expect_done(b.bed, 3);
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN + 1);
    bed_expect_done(b.bed, 4);
    bed_free(b.bed);
}

/* With nothing before it, it is done at once; unsignalled it says nothing. */
static void test_alone(void)
{
    Bench b;

    bench_init(&b);
    post_reg(&b, 1, SEND_SIGNALED);
    bed_expect_done(b.bed, 1);
    post_inv(&b, 2, b.mr->key);
    bed_expect_done(b.bed, 2);
    post_reg(&b, 3, 0);
    bed_expect_none(b.bed);
    executed(&b, 2);
    bed_free(b.bed);
}

/* Behind a Read: its answer, not what is acknowledged before it, ends it. */
static void test_behind_read(void)
{
    Bench b;

    bench_init(&b);
    post(&b, WRITE, 1);
    post(&b, READ, 2);
    post_reg(&b, 3, SEND_SIGNALED);
    post(&b, READ, 4);
    post(&b, WRITE, 5);
    g_assert_false(is_free(&b));
    bed_forget_requests(b.bed);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_none(b.bed);
    bed_respond(b.bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_expect_done(b.bed, 2);
    bed_expect_done(b.bed, 3);
    bed_expect_none(b.bed);
    bed_respond(b.bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_expect_done(b.bed, 4);
    bed_ack(b.bed, PSN + 3);
    bed_expect_done(b.bed, 5);
    bed_free(b.bed);
}

/* One answer for all of it: completions are in order all the same. */
static void test_one_answer(void)
{
    Bench b;

    bench_init(&b);
    post_nop(&b, 1);
    bed_expect_done(b.bed, 1);
    for (unsigned i = 0; i < 12; i += 3) {
        post(&b, WRITE, 2 + i);
        post_nop(&b, 3 + i);
        post_nop(&b, 4 + i);
    }
    bed_forget_requests(b.bed);
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN + 3);
    for (unsigned i = 2; i < 14; i++) {
        bed_expect_done(b.bed, i);
    }
    bed_free(b.bed);
}

/* With the fence flag it waits for the Reads before it, and they alone. */
static void test_fence(void)
{
    Bench b;

    bench_init(&b);
    post(&b, READ, 1);
    post(&b, WRITE, 2);
    post_reg(&b, 3, SEND_SIGNALED | SEND_FENCE);
    post(&b, WRITE, 4);
    bed_expect_request(b.bed, HCA_READ_REQUEST, PSN);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_quiet(b.bed);
    g_assert_true(is_free(&b));
    bed_respond(b.bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    g_assert_false(is_free(&b));
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 2);
    bed_expect_done(b.bed, 1);
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN + 2);
    bed_expect_done(b.bed, 2);
    bed_expect_done(b.bed, 3);
    bed_expect_done(b.bed, 4);
    bed_free(b.bed);
}

/* FR-15: LOCAL_INV is behind all before it, and all behind it wait. */
static void test_barrier(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post(&b, READ, 2);
    post_reg(&b, 3, SEND_SIGNALED);
    post_inv(&b, 4, b.mr->key);
    post(&b, WRITE, 5);
    post_reg(&b, 6, SEND_SIGNALED);
    bed_expect_request(b.bed, HCA_SEND_ONLY, PSN);
    bed_expect_request(b.bed, HCA_READ_REQUEST, PSN + 1);
    bed_expect_quiet(b.bed);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_quiet(b.bed);
    g_assert_false(is_free(&b));
    bed_respond(b.bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_expect_done(b.bed, 2);
    bed_expect_done(b.bed, 3);
    bed_expect_done(b.bed, 4);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 2);
    g_assert_false(is_free(&b)); /* again: by 6 */
    executed(&b, 2);
    bed_ack(b.bed, PSN + 2);
    bed_expect_done(b.bed, 5);
    bed_expect_done(b.bed, 6);
    bed_free(b.bed);
}

/* Time-outs and NAKs send packets again, and nothing else. */
static void test_retransmission(void)
{
    Bench b;

    bench_init(&b);
    post_reg(&b, 1, SEND_SIGNALED);
    bed_expect_done(b.bed, 1);
    post_inv(&b, 2, b.mr->key);
    bed_expect_done(b.bed, 2);
    post(&b, SEND, 3);
    post_reg(&b, 4, SEND_SIGNALED);
    post(&b, WRITE, 5);
    post_nop(&b, 6);
    post(&b, READ, 7);
    post_nop(&b, 8);
    bed_forget_requests(b.bed);
    bed_nak(b.bed, PSN, NAK(PSN_SEQ));
    bed_expect_request(b.bed, HCA_SEND_ONLY, PSN);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_request(b.bed, HCA_READ_REQUEST, PSN + 2);
    bed_expect_quiet(b.bed);
    bed_run_for(b.bed, 100 * NS_PER_MS);
    bed_expect_request(b.bed, HCA_SEND_ONLY, PSN);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_request(b.bed, HCA_READ_REQUEST, PSN + 2);
    bed_nak(b.bed, PSN + 1, NAK(PSN_SEQ));
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 1);
    bed_expect_request(b.bed, HCA_READ_REQUEST, PSN + 2);
    bed_expect_done(b.bed, 3);
    bed_expect_done(b.bed, 4);
    bed_respond(b.bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    for (unsigned i = 5; i <= 8; i++) {
        bed_expect_done(b.bed, i);
    }
    executed(&b, 2);
    bed_free(b.bed);
}

/* The send queue is drained when the last of them has completed. */
static void test_drain(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post_reg(&b, 2, SEND_SIGNALED);
    post_inv(&b, 3, b.mr->key);
    bed_forget_requests(b.bed);
    g_assert_cmphex(qp_to_sqd(b.bed->qp, true), ==, 0);
    post_reg(&b, 4, SEND_SIGNALED); /* not before RTS */
    g_assert_cmpuint(
        driver_count_events(b.bed->drv[0], RDMA_HCA_EVENT_SQ_DRAINED), ==, 0);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_done(b.bed, 2);
    bed_expect_done(b.bed, 3);
    g_assert_cmpuint(
        driver_count_events(b.bed->drv[0], RDMA_HCA_EVENT_SQ_DRAINED), ==, 1);
    bed_expect_none(b.bed);
    executed(&b, 1);
    g_assert_cmphex(qp_sqd_to_rts(b.bed->qp), ==, 0);
    bed_run(b.bed);
    bed_expect_done(b.bed, 4);
    executed(&b, 2);
    bed_free(b.bed);
}

/* What has not completed is flushed, what was not executed is not. */
static void test_flush(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post_reg(&b, 2, 0);
    post(&b, READ, 3);
    post_nop(&b, 4);
    post_inv(&b, 5, b.mr->key);
    post(&b, SEND, 6);
    bed_forget_requests(b.bed);
    g_assert_cmphex(qp_to_err(b.bed->qp), ==, 0);
    bed_run(b.bed);
    for (unsigned i = 1; i <= 6; i++) {
        bed_expect_wc(b.bed, i, FLUSH);
    }
    g_assert_false(is_free(&b));
    g_assert_cmpuint(bed_counter(b.bed, 0, "v2p_local_invs"), ==, 0);
    post_reg(&b, 7, SEND_SIGNALED);
    bed_expect_wc(b.bed, 7, FLUSH);
    executed(&b, 1);
    bed_free(b.bed);
}

/* A NAK breaks what it is for; a local operation before that has been done. */
static void test_nak(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post_reg(&b, 2, SEND_SIGNALED);
    post(&b, WRITE, 3);
    post_nop(&b, 4);
    post_inv(&b, 5, b.mr->key);
    bed_forget_requests(b.bed);
    bed_nak(b.bed, PSN + 1, NAK(REMOTE_ACCESS));
    bed_expect_done(b.bed, 1);
    bed_expect_done(b.bed, 2);
    bed_expect_broken(b.bed, 3, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR, 2);
    g_assert_false(is_free(&b));
    bed_free(b.bed);
}

/* One that is refused ends behind all before it, and all behind are flushed. */
static void test_refused(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post_nop(&b, 2);
    post_bad_reg(&b, 3);
    post(&b, SEND, 4);
    post_nop(&b, 5);
    bed_expect_request(b.bed, HCA_SEND_ONLY, PSN);
    bed_expect_quiet(b.bed);
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_done(b.bed, 2);
    bed_expect_broken(b.bed, 3, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR, 2);
    bed_free(b.bed);
}

/* A LOCAL_INV that is refused, likewise, when its turn has come. */
static void test_barrier_refused(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    post_inv(&b, 2, b.mr->key ^ 1);
    post(&b, SEND, 3);
    bed_forget_requests(b.bed);
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_broken(b.bed, 2, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR, 1);
    bed_free(b.bed);
}

/* While the peer is not ready nothing new is begun. */
static void test_rnr(void)
{
    Bench b;

    bench_init(&b);
    post(&b, SEND, 1);
    bed_forget_requests(b.bed);
    bed_nak(b.bed, PSN, HCA_AETH(HCA_AETH_RNR, BED_RNR_CODE));
    post_reg(&b, 2, SEND_SIGNALED);
    g_assert_true(is_free(&b));
    bed_run_for(b.bed, 10 * NS_PER_MS);
    bed_expect_request(b.bed, HCA_SEND_ONLY, PSN);
    g_assert_false(is_free(&b));
    bed_expect_none(b.bed);
    bed_ack(b.bed, PSN);
    bed_expect_done(b.bed, 1);
    bed_expect_done(b.bed, 2);
    executed(&b, 1);
    bed_free(b.bed);
}

/* A pool that is full of them: they wait for room, and nothing is lost. */
static void test_full_pool(void)
{
    HcaConfig cards[2];
    QpAttr attr;
    Bench b;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].swpb_elements = 512;
        cards[i].osq_per_qp = 64;
    }
    bed_attr_init(&attr);
    bench_with(&b, bed_new_with(RDMA_HCA_QP_ST_RC, &attr, cards));
    g_assert_cmpuint(b.bed->qp->sq.entries, >=, 60);
    post(&b, READ, 1);
    bed_post(b.bed, WRITE, 2, 7000);
    for (unsigned i = 3; i < 60; i++) {
        post_nop(&b, i);
    }
    g_assert_cmpuint(bed_counter(b.bed, 0, "requester_wait_swpb"), >, 0);
    bed_expect_none(b.bed);
    bed_forget_requests(b.bed);
    bed_respond(b.bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_ack(b.bed, PSN + 28);
    for (unsigned i = 1; i < 60; i++) {
        bed_expect_done(b.bed, i);
    }
    g_assert_cmpuint(bed_counter(b.bed, 0, "requester_swpb_used"), ==, 0);
    bed_free(b.bed);
}

/* They are no packets on their way: the limit of those does not count them. */
static void test_outstanding_limit(void)
{
    HcaConfig cards[2];
    QpAttr attr;
    Bench b;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].osq_per_qp = 2;
    }
    bed_attr_init(&attr);
    bench_with(&b, bed_new_with(RDMA_HCA_QP_ST_RC, &attr, cards));
    post(&b, WRITE, 1);
    for (unsigned i = 2; i < 6; i++) {
        post_nop(&b, i);
    }
    post(&b, WRITE, 6);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN);
    bed_expect_request(b.bed, HCA_WRITE_ONLY, PSN + 1);
    bed_ack(b.bed, PSN + 1);
    for (unsigned i = 1; i < 7; i++) {
        bed_expect_done(b.bed, i);
    }
    bed_free(b.bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/at-its-turn", test_at_its_turn);
    test_add_each_link("/alone", test_alone);
    test_add_each_link("/behind-read", test_behind_read);
    test_add_each_link("/one-answer", test_one_answer);
    test_add_each_link("/fence", test_fence);
    test_add_each_link("/barrier", test_barrier);
    test_add_each_link("/retransmission", test_retransmission);
    test_add_each_link("/drain", test_drain);
    test_add_each_link("/flush", test_flush);
    test_add_each_link("/nak", test_nak);
    test_add_each_link("/refused", test_refused);
    test_add_each_link("/barrier-refused", test_barrier_refused);
    test_add_each_link("/rnr", test_rnr);
    test_add_each_link("/full-pool", test_full_pool);
    test_add_each_link("/outstanding-limit", test_outstanding_limit);
    return g_test_run();
}
