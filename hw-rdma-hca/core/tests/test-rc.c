/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reliable connections between two whole cards: every operation at every MTU
 * and at the sizes where segmentation changes, data compared with all of the
 * memory around them, completions in order, events one for each arm, several
 * QPs at once, loopback.
 */
#include <string.h>

#include "../wire/packet.h"
#include "lib-transfer.h"

#define MIB (1024 * 1024)

static const uint8_t operations[] = {
    RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
    RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
    RDMA_HCA_OPCODE_RDMA_READ,
};

/* ---- many work requests ---- */

#define STREAM 500

typedef struct Stream {
    Pair *pair;
    Qp *qp[2];
    unsigned posted, received;
    unsigned sent_done, recv_done, recv_posted;
} Stream;

static bool stream_signalled(unsigned i)
{
    return i % 7 == 3 || i + 1 == STREAM;
}

static uint32_t stream_len(unsigned i)
{
    return i * 37 % 3000;
}

static void stream_post_recvs(Stream *s)
{
    while (s->recv_posted < STREAM &&
           s->recv_posted - s->recv_done < s->qp[1]->rq.entries) {
        pair_post_recv(s->pair, 1, s->qp[1], s->recv_posted,
                       s->recv_posted % 64 * 4096, 4096);
        s->recv_posted++;
    }
}

/* Chains of up to seven in one doorbell, as room comes. */
static void stream_post_sends(Stream *s)
{
    while (s->posted < STREAM) {
        unsigned n = pair_rand(s->pair, 1, 8);
        SendWr wr[8];
        Sge sge[8];

        n = MIN(n, STREAM - s->posted);
        if (qp_send_room(s->qp[0]) < n) {
            return;
        }
        for (unsigned k = 0; k < n; k++) {
            unsigned i = s->posted + k;
            uint64_t at = i % 128 * 4096;

            wr[k] = pair_send(s->pair, 0, RDMA_HCA_OPCODE_SEND_IMM, i, &sge[k],
                              at, stream_len(i), 0);
            wr[k].flags = stream_signalled(i) ? SEND_SIGNALED : 0;
            wr[k].imm_be = GUINT32_TO_BE(i);
            mr_fill(s->pair->mr[0], at, i & 0xff, stream_len(i));
        }
        g_assert_true(qp_post_send(s->qp[0], wr, n));
        s->posted += n;
    }
}

static void stream_check_recv(Stream *s, const Wc *wc)
{
    unsigned i = s->recv_done++;
    g_autofree uint8_t *got = g_malloc(4096);

    g_assert_cmpuint(wc->syndrome, ==, 0);
    g_assert_cmpuint(wc->wr_id, ==, i);
    g_assert_cmpuint(wc->byte_len, ==, stream_len(i));
    g_assert_cmpuint(GUINT32_FROM_BE(wc->imm_be), ==, i);
    mr_read(s->pair->mr[1], i % 64 * 4096, got, wc->byte_len);
    for (unsigned k = 0; k < wc->byte_len; k++) {
        g_assert_cmphex(got[k], ==, i & 0xff);
    }
}

/* Unsignalled requests give no completion, the others one each, in order. */
static void stream_check_send(Stream *s, const Wc *wc)
{
    while (!stream_signalled(s->sent_done)) {
        s->sent_done++;
    }
    g_assert_cmpuint(wc->syndrome, ==, 0);
    g_assert_cmpuint(wc->wr_id, ==, s->sent_done);
    s->sent_done++;
}

static bool stream_turn(void *opaque)
{
    Stream *s = opaque;
    Wc wc;

    while (cq_poll(s->pair->cq[1], &wc)) {
        stream_check_recv(s, &wc);
    }
    while (cq_poll(s->pair->cq[0], &wc)) {
        stream_check_send(s, &wc);
    }
    stream_post_recvs(s);
    stream_post_sends(s);
    return s->sent_done == STREAM && s->recv_done == STREAM;
}

static void test_stream(void)
{
    Stream s = { .pair = pair_new(11, 128 * 4096) };

    pair_connect(s.pair, NULL, s.qp);
    g_assert_true(lab_wait(s.pair->lab, stream_turn, &s, PAIR_PATIENCE));
    cq_expect_none(s.pair->cq[0]);
    cq_expect_none(s.pair->cq[1]);
    pair_free(s.pair);
}

/* Reads, Writes and Sends mixed in one chain end in the order posted. */
static void test_mixed_order(void)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_RDMA_READ, RDMA_HCA_OPCODE_RDMA_WRITE,
        RDMA_HCA_OPCODE_SEND,      RDMA_HCA_OPCODE_RDMA_READ,
        RDMA_HCA_OPCODE_RDMA_READ, RDMA_HCA_OPCODE_RDMA_READ,
        RDMA_HCA_OPCODE_RDMA_READ, RDMA_HCA_OPCODE_RDMA_READ,
        RDMA_HCA_OPCODE_SEND_IMM,  RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
        RDMA_HCA_OPCODE_RDMA_READ, RDMA_HCA_OPCODE_RDMA_WRITE,
    };
    enum {
        N = G_N_ELEMENTS(opcode)
    };
    Pair *pair = pair_new(12, 32 * 8192);
    SendWr wr[N];
    Sge sge[N];
    Qp *qp[2];
    QpAttr attr;
    Wc wc;

    qp_attr_init(&attr);
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 2;
    pair_connect(pair, &attr, qp);
    for (unsigned i = 0; i < 3; i++) {
        pair_post_recv(pair, 1, qp[1], 100 + i, 16 * 8192, 8192);
    }
    for (unsigned i = 0; i < N; i++) {
        wr[i] = pair_send(pair, 0, opcode[i], i, &sge[i], i * 8192, 5000,
                          i * 8192);
    }
    g_assert_true(qp_post_send(qp[0], wr, N));
    for (unsigned i = 0; i < N; i++) {
        cq_expect(pair->cq[0], &wc, i, 0);
        g_assert_cmphex(wc.opcode, ==, opcode[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(pair->cq[1], &wc, 100 + i, 0);
    }
    pair_free(pair);
}

/*
 * A Write, a Read of the same place and a Write again: the Read has to see
 * the first Write. A fenced Send of what the Read brought sends that.
 */
static void test_read_after_write(void)
{
    Pair *pair = pair_new(13, 65536);
    g_autofree uint8_t *data = pair_data(pair, 10000);
    g_autofree uint8_t *got = g_malloc(10000);
    SendWr wr[3];
    Sge sge[3];
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[0], 0, data, 10000);
    pair_post_recv(pair, 1, qp[1], 7, 40000, 10000);
    wr[0] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge[0], 0, 10000,
                      20000);
    wr[1] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_READ, 2, &sge[1], 30000,
                      10000, 20000);
    wr[2] = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 3, &sge[2], 30000, 10000,
                      0);
    wr[2].flags |= SEND_FENCE;
    g_assert_true(qp_post_send(qp[0], wr, 3));
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(pair->cq[0], &wc, i + 1, 0);
    }
    cq_expect(pair->cq[1], &wc, 7, 0);
    mr_read(pair->mr[1], 40000, got, 10000);
    g_assert_cmpmem(got, 10000, data, 10000);
    pair_free(pair);
}

/* Fetch-and-Add and Compare-and-Swap return what was there before. */
static void test_atomics(void)
{
    Pair *pair = pair_new(14, 65536);
    uint64_t value = GUINT64_TO_LE(UINT64_C(0x1122334455667788));
    uint64_t at = 4096 - (pair->mr[1]->va & 4095); /* aligned */
    SendWr wr[3];
    Sge sge[3];
    Qp *qp[2];
    Wc wc;
    uint64_t got[3];

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[1], at, &value, 8);
    for (unsigned i = 0; i < 3; i++) {
        wr[i] = pair_send(
            pair, 0, i ? RDMA_HCA_OPCODE_ATOMIC_CS : RDMA_HCA_OPCODE_ATOMIC_FA,
            i, &sge[i], 64 * i, 8, at);
    }
    wr[0].swap_add = 0x10;
    wr[1].compare = UINT64_C(0x1122334455667798);
    wr[1].swap_add = 42;
    wr[2].compare = 43; /* does not match */
    wr[2].swap_add = 44;
    g_assert_true(qp_post_send(qp[0], wr, 3));
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(pair->cq[0], &wc, i, 0);
        g_assert_cmpuint(wc.byte_len, ==, 8);
        mr_read(pair->mr[0], 64 * i, &got[i], 8);
    }
    g_assert_cmphex(GUINT64_FROM_LE(got[0]), ==, UINT64_C(0x1122334455667788));
    g_assert_cmphex(GUINT64_FROM_LE(got[1]), ==, UINT64_C(0x1122334455667798));
    g_assert_cmphex(GUINT64_FROM_LE(got[2]), ==, 42);
    mr_read(pair->mr[1], at, &value, 8);
    g_assert_cmphex(GUINT64_FROM_LE(value), ==, 42);
    pair_free(pair);
}

/* A receive bigger than the message: only the message's bytes change. */
static void test_short_message(void)
{
    Pair *pair = pair_new(15, 65536);
    g_autofree uint8_t *data = pair_data(pair, 3000);
    g_autofree uint8_t *image = NULL;
    SendWr wr;
    Sge from, to;
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[0], 0, data, 3000);
    image = mr_image(pair->mr[1]);
    to = mr_sge(pair->mr[1], 100, 3000);
    image_write(image, pair->mr[1], &to, 1, data);
    pair_post_recv(pair, 1, qp[1], 1, 100, 60000);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 2, &from, 0, 3000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[1], &wc, 1, 0);
    g_assert_cmpuint(wc.byte_len, ==, 3000);
    cq_expect(pair->cq[0], &wc, 2, 0);
    mr_check_image(pair->mr[1], image);
    pair_free(pair);
}

/* The card reports each page that it writes (migration depends on it). */
static void test_dirty_pages(void)
{
    Pair *pair = pair_new(16, 65536);
    Host *host = &pair->lab->host[1];
    uint64_t va = pair->mr[1]->va;
    SendWr wr;
    Sge sge;
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    host_clear_dirty(host);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 2, &sge, 0, 20000,
                   10000);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 2, 0);
    for (uint64_t at = 0; at < 65536; at++) {
        bool hit = at >= 10000 && at < 30000;

        if (((va + at) & 4095) == 0 && at + 4096 <= 10000) {
            g_assert_false(host_is_dirty(host, mr_bus(pair->mr[1], at)));
        }
        g_assert_true(!hit || host_is_dirty(host, mr_bus(pair->mr[1], at)));
    }
    pair_free(pair);
}

/* Regions of big pages, and of one that is short and begins anywhere. */
static void test_page_sizes(void)
{
    for (unsigned shift = 12; shift <= 16; shift++) {
        Pair *pair = pair_new(17, 4096);
        uint64_t va = UINT64_C(0x123456789000) + 0xabc;
        Mr *big = mr_new_pages(pair->drv[1], pair->pd[1], va, 200001,
                               ACCESS_ALL, shift);
        Mr *small = mr_new_pages(pair->drv[0], pair->pd[0], va, 200001,
                                 ACCESS_ALL, 12);
        g_autofree uint8_t *data = pair_data(pair, 200001);
        g_autofree uint8_t *got = g_malloc(200001);
        Sge sge = mr_sge(small, 0, 200001);
        SendWr wr = { .wr_id = 1,
                      .opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
                      .flags = SEND_SIGNALED,
                      .raddr = va,
                      .rkey = big->key,
                      .nsge = 1,
                      .sge = &sge };
        Qp *qp[2];
        Wc wc;

        pair_connect(pair, NULL, qp);
        mr_write(small, 0, data, 200001);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, 1, 0);
        mr_read(big, 0, got, 200001);
        g_assert_cmpmem(got, 200001, data, 200001);
        pair_free(pair);
    }
}

/* ---- events ---- */

static unsigned comp_events(Driver *drv)
{
    return driver_count_events(drv, RDMA_HCA_EVENT_COMP);
}

static void send_one(Pair *pair, Qp *qp[2], unsigned flags)
{
    SendWr wr;
    Sge sge;

    pair_post_recv(pair, 1, qp[1], 1, 0, 100);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 2, &sge, 0, 100, 0);
    wr.flags = flags;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_run(pair->lab);
}

/* QUERY_QP says how many WQEs of each queue have been used, flushed ones too. */
static void test_wqe_counters(void)
{
    Pair *pair = pair_new(26, 4096);
    struct rdma_hca_qpc qpc;
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < 5; i++) {
        send_one(pair, qp, SEND_SIGNALED);
    }
    g_assert_cmphex(qp_query(qp[0], &qpc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.wqe_counter), ==,
                    RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_COUNTER, 5));
    g_assert_cmphex(qp_query(qp[1], &qpc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.wqe_counter), ==,
                    RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_COUNTER, 5));
    g_assert_cmphex(qp_to_err(qp[0]), ==, 0);
    send_one(pair, qp, SEND_SIGNALED);
    g_assert_cmphex(qp_query(qp[0], &qpc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.wqe_counter), ==,
                    RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_COUNTER, 6));
    pair_free(pair);
}

/* Nothing without an arm; one event, and one interrupt, for each. */
static void test_armed(void)
{
    Pair *pair = pair_new(21, 4096);
    uint64_t *msix = &pair->lab->host[1].msix[EQ_COMP];
    struct rdma_hca_eqe eqe;
    uint64_t before;
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    before = *msix;
    send_one(pair, qp, SEND_SIGNALED);
    g_assert_cmpuint(*msix, ==, before);
    g_assert_cmpuint(comp_events(pair->drv[1]), ==, 0);

    for (unsigned i = 0; i < 3; i++) {
        Wc wc;

        while (cq_poll(pair->cq[1], &wc)) {
        }
        before = *msix;
        cq_arm(pair->cq[1], false);
        lab_run(pair->lab);
        g_assert_cmpuint(*msix, ==, before);
        for (unsigned k = 0; k < 4; k++) {
            send_one(pair, qp, SEND_SIGNALED);
        }
        g_assert_cmpuint(*msix, ==, before + 1);
        g_assert_true(driver_event(pair->drv[1], RDMA_HCA_EVENT_COMP, &eqe));
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.cqn), ==, pair->cq[1]->cqn);
        g_assert_cmpuint(comp_events(pair->drv[1]), ==, 0);
        lab_run(pair->lab);
        g_assert_cmpuint(*msix, ==, before + 1);
    }
    pair_free(pair);
}

/* Solicited arm: only a Send with the mark, or an error, fires it. */
static void test_armed_solicited(void)
{
    Pair *pair = pair_new(22, 4096);
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    cq_arm(pair->cq[1], true);
    send_one(pair, qp, SEND_SIGNALED);
    send_one(pair, qp, SEND_SIGNALED);
    g_assert_cmpuint(comp_events(pair->drv[1]), ==, 0);
    send_one(pair, qp, SEND_SIGNALED | SEND_SOLICITED);
    g_assert_cmpuint(comp_events(pair->drv[1]), ==, 1);
    while (cq_poll(pair->cq[1], &wc)) {
    }
    cq_arm(pair->cq[1], true);
    pair_post_recv(pair, 1, qp[1], 9, 0, 100);
    g_assert_cmphex(qp_to_err(qp[1]), ==, RDMA_HCA_STAT_OK);
    lab_sleep(pair->lab, 100 * NS_PER_MS);
    g_assert_cmpuint(comp_events(pair->drv[1]), ==, 1);
    cq_expect(pair->cq[1], &wc, 9, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    pair_free(pair);
}

/* An arm after the entry is there already fires at once: no lost wake-up. */
static void test_arm_late(void)
{
    Pair *pair = pair_new(23, 4096);
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    send_one(pair, qp, SEND_SIGNALED);
    cq_arm(pair->cq[1], false);
    lab_run(pair->lab);
    g_assert_cmpuint(comp_events(pair->drv[1]), ==, 1);
    g_assert_true(cq_poll(pair->cq[1], &wc));
    cq_arm(pair->cq[1], false);
    lab_run(pair->lab);
    g_assert_cmpuint(comp_events(pair->drv[1]), ==, 0);
    pair_free(pair);
}

/* As ibv_rc_pingpong -e: sleep until the event, poll, arm. */
static void test_event_pingpong(void)
{
    Pair *pair = pair_new(24, 65536);
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    cq_arm(pair->cq[0], false);
    cq_arm(pair->cq[1], false);
    for (unsigned i = 0; i < 50; i++) {
        unsigned from = i & 1;
        SendWr wr;
        Sge sge;

        pair_post_recv(pair, !from, qp[!from], i, 0, 4096);
        wr = pair_send(pair, from, RDMA_HCA_OPCODE_SEND, i, &sge, 8192, 4096,
                       0);
        g_assert_true(qp_post_send(qp[from], &wr, 1));
        for (unsigned side = 0; side < 2; side++) {
            lab_run(pair->lab);
            g_assert_cmpuint(comp_events(pair->drv[side]), ==, 1);
            g_assert_true(cq_poll(pair->cq[side], &wc));
            g_assert_cmpuint(wc.syndrome, ==, 0);
            g_assert_cmpuint(wc.wr_id, ==, i);
            g_assert_false(cq_poll(pair->cq[side], &wc));
            cq_arm(pair->cq[side], false);
        }
    }
    pair_free(pair);
}

/* Commands that complete by event, traffic or not. */
static void test_command_events(void)
{
    Pair *pair = pair_new(25, 4096);
    Qp *qp[2];

    driver_cmd_events(pair->drv[0], true);
    driver_cmd_events(pair->drv[1], true);
    pair_connect(pair, NULL, qp);
    pair_check_works(pair, qp, 0);
    g_assert_cmphex(driver_cmd(pair->drv[0], 0x7ff, 0, 0, 0, 0, NULL), ==,
                    RDMA_HCA_STAT_BAD_OP);
    pair_check_works(pair, qp, 1);
    pair_free(pair);
}

/* More completions than entries: CQ_ERROR, and the QP is in error. */
static void test_cq_overrun(void)
{
    Pair *pair = pair_new(26, 4096);
    Cq *tiny = cq_new(pair->drv[1], 2, 1);
    struct rdma_hca_eqe eqe;
    QpConfig config;
    QpAttr attr;
    Qp *qp[2];

    qp_config_init(&config, pair->pd[0], pair->cq[0]);
    qp[0] = qp_new(pair->drv[0], &config);
    qp_config_init(&config, pair->pd[1], tiny);
    qp[1] = qp_new(pair->drv[1], &config);
    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
    for (unsigned i = 0; i < 4; i++) {
        send_one(pair, qp, SEND_SIGNALED);
    }
    g_assert_false(driver_event(pair->drv[1], RDMA_HCA_EVENT_CQ_ERROR, NULL));
    send_one(pair, qp, SEND_SIGNALED);
    g_assert_true(driver_event(pair->drv[1], RDMA_HCA_EVENT_CQ_ERROR, &eqe));
    g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.cqn), ==, tiny->cqn);
    g_assert_cmpuint(qp_state(qp[1]), ==, RDMA_HCA_QP_STATE_ERR);
    pair_free(pair);
}

/* ---- several QPs ---- */

#define NUM_QPS 8

typedef struct Fair {
    Pair *pair;
    Qp *qp[NUM_QPS][2];
    unsigned done[NUM_QPS];
} Fair;

static void fair_post(Fair *f, unsigned i)
{
    SendWr wr;
    Sge sge;

    /* Big and small messages; the bytes count, not the messages. */
    wr = pair_send(f->pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0,
                   i % 2 ? 65536 : 4096, 0);
    g_assert_true(qp_post_send(f->qp[i][0], &wr, 1));
}

/* Until one QP has moved 4 MiB, every queue being busy all the time. */
static bool fair_turn(void *opaque)
{
    Fair *f = opaque;
    bool end = false;
    Wc wc;

    while (cq_poll(f->pair->cq[0], &wc)) {
        g_assert_cmphex(wc.syndrome, ==, 0);
        f->done[wc.wr_id] += wc.wr_id % 2 ? 65536 : 4096;
        end |= f->done[wc.wr_id] >= 4 * MIB;
        fair_post(f, wc.wr_id);
    }
    return end;
}

static void test_fairness(void)
{
    Fair f = { .pair = pair_new(31, 65536) };
    unsigned least = UINT_MAX, most = 0;

    for (unsigned i = 0; i < NUM_QPS; i++) {
        pair_connect(f.pair, NULL, f.qp[i]);
    }
    for (unsigned i = 0; i < NUM_QPS; i++) {
        for (unsigned n = 0; n < 32; n++) {
            fair_post(&f, i);
        }
    }
    g_assert_true(lab_wait(f.pair->lab, fair_turn, &f, PAIR_PATIENCE));
    for (unsigned i = 0; i < NUM_QPS; i++) {
        g_test_message("QP %u: %u bytes", i, f.done[i]);
        least = MIN(least, f.done[i]);
        most = MAX(most, f.done[i]);
    }
    g_assert_cmpuint(most, <=, least * 3);
    pair_free(f.pair);
}

/* A QP that waits (RNR for ever) does not hold up the others. */
static void test_stuck_neighbour(void)
{
    Pair *pair = pair_new(32, 65536);
    Qp *stuck[2], *qp[2];
    SendWr wr;
    Sge sge;

    pair_connect(pair, NULL, stuck);
    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < 60; i++) {
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, i, &sge, 0, 60000, 0);
        g_assert_true(qp_post_send(stuck[0], &wr, 1));
    }
    for (unsigned i = 0; i < 50; i++) {
        pair_check_works(pair, qp, i & 1);
    }
    pair_free(pair);
}

/* ---- loopback ---- */

static void test_loopback(void)
{
    Pair *pair = pair_new(41, 65536);
    g_autofree uint8_t *data = pair_data(pair, 30000);
    g_autofree uint8_t *got = g_malloc(30000);
    Mr *mr = pair->mr[0];
    Cq *cq = pair->cq[0];
    Qp *qp[2];
    QpConfig config;
    QpAttr attr;
    Sge sge = mr_sge(mr, 0, 30000), to = mr_sge(mr, 32768, 30000);
    SendWr send = { .wr_id = 1,
                    .opcode = RDMA_HCA_OPCODE_SEND,
                    .flags = SEND_SIGNALED,
                    .nsge = 1,
                    .sge = &sge };
    RecvWr recv = { .wr_id = 2, .nsge = 1, .sge = &to };
    unsigned seen = 0;
    Wc wc;

    qp_config_init(&config, pair->pd[0], cq);
    qp[0] = qp_new(pair->drv[0], &config);
    qp[1] = qp_new(pair->drv[0], &config);
    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
    /* It has to work without a peer on the cable. */
    lab_cable(pair->lab, false);
    mr_write(mr, 0, data, 30000);
    g_assert_true(qp_post_recv(qp[1], &recv, 1));
    g_assert_true(qp_post_send(qp[0], &send, 1));
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(cq_wait(cq, &wc, PAIR_PATIENCE));
        g_assert_cmphex(wc.syndrome, ==, 0);
        g_assert_cmpuint(wc.is_send ? 1 : 2, ==, wc.wr_id);
        seen |= 1u << wc.wr_id;
    }
    g_assert_cmphex(seen, ==, 6);
    mr_read(mr, 32768, got, 30000);
    g_assert_cmpmem(got, 30000, data, 30000);
    pair_free(pair);
}

/* A QP connected to itself; all operations of it. */
static void test_loopback_self(void)
{
    Pair *pair = pair_new(42, 65536);
    g_autofree uint8_t *data = pair_data(pair, 7000);
    g_autofree uint8_t *got = g_malloc(7000);
    Mr *mr = pair->mr[0];
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, pair->pd[0], pair->cq[0]);
    qp = qp_new(pair->drv[0], &config);
    qp_attr_init(&attr);
    qp_connect(qp, qp, &attr);
    mr_write(mr, 0, data, 7000);
    for (unsigned op = 0; op < G_N_ELEMENTS(operations); op++) {
        uint8_t opcode = operations[op];
        bool read = opcode == RDMA_HCA_OPCODE_RDMA_READ;
        Sge near = mr_sge(mr, 0, 7000), far = mr_sge(mr, 20000, 7000);
        SendWr send = { .wr_id = 1,
                        .opcode = opcode,
                        .flags = SEND_SIGNALED,
                        .raddr = read ? near.va : far.va,
                        .rkey = mr->key,
                        .nsge = 1,
                        .sge = read ? &far : &near };
        RecvWr recv = { .wr_id = 2, .nsge = 1, .sge = &far };
        Wc wc;

        mr_fill(mr, 20000, 0, 7000);
        if (wr_takes_receive(opcode)) {
            g_assert_true(qp_post_recv(qp, &recv, 1));
        }
        g_assert_true(qp_post_send(qp, &send, 1));
        for (unsigned i = 0; i <= wr_takes_receive(opcode); i++) {
            g_assert_true(cq_wait(pair->cq[0], &wc, PAIR_PATIENCE));
            g_assert_cmphex(wc.syndrome, ==, 0);
            g_assert_cmpuint(wc.is_send ? 1 : 2, ==, wc.wr_id);
        }
        mr_read(mr, 20000, got, 7000);
        g_assert_cmpmem(got, 7000, data, 7000);
    }
    pair_free(pair);
}

/* QUERY_QP after traffic shows where the PSNs are. */
static void test_query_after_traffic(void)
{
    Pair *pair = pair_new(43, 65536);
    struct rdma_hca_qpc qpc;
    QpAttr attr;
    Qp *qp[2];
    SendWr wr;
    Sge sge;
    Wc wc;

    qp_attr_init(&attr);
    attr.sq_psn = 0xffffff;
    pair_connect(pair, &attr, qp);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 2049, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 1, 0);
    g_assert_cmphex(qp_query(qp[0], &qpc), ==, RDMA_HCA_STAT_OK);
    g_assert_cmphex(
        RDMA_HCA_GET(RDMA_HCA_QPC_PSN, GUINT32_FROM_BE(qpc.next_send_psn)), ==,
        2);
    g_assert_cmphex(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(qpc.flags)), ==,
        RDMA_HCA_QP_STATE_RTS);
    g_assert_cmphex(qp_query(qp[1], &qpc), ==, RDMA_HCA_STAT_OK);
    g_assert_cmphex(
        RDMA_HCA_GET(RDMA_HCA_QPC_PSN, GUINT32_FROM_BE(qpc.rnr_nextrecvpsn)),
        ==, 2);
    pair_free(pair);
}

/* A driver takes everything down and up again; the reset register, too. */
static void test_restart(void)
{
    Pair *pair = pair_new(44, 4096);
    Lab *lab = pair->lab;
    Qp *qp[2];

    for (unsigned round = 0; round < 3; round++) {
        pair_connect(pair, NULL, qp);
        pair_check_works(pair, qp, round & 1);
        for (unsigned i = 0; i < 2; i++) {
            Host *host = &lab->host[i];

            if (round == 1) {
                driver_free(pair->drv[i]);
                host_bar0_write(host, RDMA_HCA_RESET, 1);
                lab_run(lab);
                g_assert_cmphex(host_bar0_read(host, RDMA_HCA_RESET), ==, 0);
            } else {
                driver_close(pair->drv[i]);
            }
            pair->drv[i] = driver_new(host);
            pair->pd[i] = pd_new(pair->drv[i]);
            pair->cq[i] = cq_new(pair->drv[i], 6, 1);
            pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, 4096,
                                 ACCESS_ALL);
        }
        lab_run(lab);
    }
    pair_connect(pair, NULL, qp);
    pair_check_works(pair, qp, 0);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(operations); i++) {
        transfer_add_all(RDMA_HCA_QP_ST_RC, operations[i]);
    }
    test_add_each_link("/rc/stream", test_stream);
    test_add_each_link("/rc/mixed-order", test_mixed_order);
    test_add_each_link("/rc/read-after-write", test_read_after_write);
    test_add_each_link("/rc/atomics", test_atomics);
    test_add_each_link("/rc/short-message", test_short_message);
    test_add_each_link("/rc/dirty-pages", test_dirty_pages);
    test_add_each_link("/rc/page-sizes", test_page_sizes);
    test_add_each_link("/rc/wqe-counters", test_wqe_counters);
    test_add_each_link("/rc/event/armed", test_armed);
    test_add_each_link("/rc/event/solicited", test_armed_solicited);
    test_add_each_link("/rc/event/late-arm", test_arm_late);
    test_add_each_link("/rc/event/pingpong", test_event_pingpong);
    test_add_each_link("/rc/event/commands", test_command_events);
    test_add_each_link("/rc/event/cq-overrun", test_cq_overrun);
    test_add_each_link("/rc/fairness", test_fairness);
    test_add_each_link("/rc/stuck-neighbour", test_stuck_neighbour);
    test_add_each_link("/rc/loopback", test_loopback);
    test_add_each_link("/rc/loopback-self", test_loopback_self);
    test_add_each_link("/rc/query", test_query_after_traffic);
    test_add_each_link("/rc/restart", test_restart);
    return g_test_run();
}
