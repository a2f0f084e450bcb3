/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What goes wrong on a sound cable: each error ends in the completion that
 * ibv_poll_cq(3) and the InfiniBand specification (chapters 9.9 and 10.7)
 * name for it on each side, in order behind the work before it, with the
 * rest flushed; and nobody else is harmed.
 */
#include <string.h>

#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define RECV 0x1000u /* the first receive */

static void post(Bed *bed, const SendWr *wr)
{
    g_assert_true(qp_post_send(bed->qps[0], wr, 1));
}

/*
 * Work before the bad request, the bad one, and work after it: success, the
 * syndrome, flush. The work before is Writes, which need no receive.
 */
static void run_bad_request(Bed *bed, const SendWr *bad, uint8_t syndrome)
{
    SendWr wr[6];
    Sge sge[6];
    Wc wc;

    for (unsigned i = 0; i < 6; i++) {
        wr[i] = pair_send(bed->pair, 0, WRITE, i, &sge[i], 0, 3000, 8192);
    }
    wr[3] = *bad;
    wr[3].wr_id = 3;
    g_assert_true(qp_post_send(bed->qps[0], wr, 4));
    g_assert_true(qp_post_send(bed->qps[0], wr + 4, 2));
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    cq_expect(bed->cqs[0], &wc, 3, syndrome);
    g_assert_true(wc.is_send);
    cq_expect_flushed(bed->cqs[0], 4, 2);
    cq_expect_none(bed->cqs[0]);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
}

/* ---- receiver not ready ---- */

static void test_rnr_then_posted(void)
{
    Bed *bed;
    SendWr wr;
    Sge sge;
    Wc wc;

    bed = bed_new_rc(101, NULL);
    wr = pair_send(bed->pair, 0, SEND, 1, &sge, 0, 3000, 0);
    post(bed, &wr);
    lab_sleep(bed->lab, 50 * NS_PER_MS);
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    g_assert_false(cq_poll(bed->cqs[1], &wc));
    pair_post_recv(bed->pair, 1, bed->qps[1], 2, 0, 4096);
    cq_expect(bed->cqs[1], &wc, 2, 0);
    g_assert_cmpuint(wc.byte_len, ==, 3000);
    cq_expect(bed->cqs[0], &wc, 1, 0);
    bed_free(bed);
}

/* A Read, and behind it @behind; the first response is lost. */
static Bed *lose_read_before(const QpAttr *attr, uint8_t behind, bool bad_key)
{
    Bed *bed = bed_new_rc(110, attr);
    SendWr wr[2];
    Sge sge[2];

    wr[0] = pair_send(bed->pair, 0, READ, 1, &sge[0], 0, 100, 8192);
    wr[1] = pair_send(bed->pair, 0, behind, 2, &sge[1], 0, 100, 8192);
    wr[1].rkey ^= bad_key;
    bed_set_weather(bed, 1, (BedWeather) { .nth = 1, .fate = CABLE_DROP });
    g_assert_true(qp_post_send(bed->qps[0], wr, 2));
    return bed;
}

/* The Read's answer is asked for while the Send waits for its receive. */
static void test_rnr_read_lost(void)
{
    QpAttr attr;
    Bed *bed;
    Wc wc;

    qp_attr_init(&attr);
    attr.min_rnr_timer = 20; /* 10.24 ms */
    attr.timeout = 0;
    attr.retry_cnt = 0;
    bed = lose_read_before(&attr, SEND, false);
    lab_sleep(bed->lab, 5 * NS_PER_MS);
    g_assert_true(cq_poll(bed->cqs[0], &wc));
    g_assert_cmpuint(wc.wr_id, ==, 1);
    g_assert_cmphex(wc.syndrome, ==, 0);
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    bed_counted(bed, 0, "requester_rnrs_rx", 1);
    bed_post_recvs_on(bed, 1, RECV, 1, 4096);
    lab_sleep(bed->lab, 10 * NS_PER_MS);
    cq_expect(bed->cqs[0], &wc, 2, 0);
    bed_expect_end(bed, 1, 0);
    bed_counted(bed, 0, "requester_rnrs_rx", 1);
    bed_counted(bed, 0, "requester_timeouts", 0);
    bed_free(bed);
}

/*
 * The peer has broken its QP and answers no more: the cause is told at once,
 * and not by a time-out, which there is none of.
 */
static void test_fatal_read_lost(void)
{
    QpAttr attr;
    Bed *bed;
    Wc wc;

    qp_attr_init(&attr);
    attr.timeout = 0;
    bed = lose_read_before(&attr, WRITE, true);
    bed_run(bed);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_ERR);
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    cq_expect_flushed(bed->cqs[0], 2, 1);
    cq_expect_none(bed->cqs[0]);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    bed_free(bed);
}

/* The timer that the responder asks for is kept (IBA table 45); 0 is the longest. */
static void test_rnr_timer(void)
{
    static const struct {
        uint8_t code;
        unsigned us;
    } timers[] = { { 0, 655360 }, { 1, 10 }, { 20, 10240 }, { 31, 491520 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(timers); i++) {
        int64_t wait = (int64_t)timers[i].us * NS_PER_US;
        Bed *bed;
        QpAttr attr;
        SendWr wr;
        Sge sge;
        int64_t start;
        Wc wc;

        qp_attr_init(&attr);
        attr.min_rnr_timer = timers[i].code;
        attr.rnr_retry = 3;
        bed = bed_new_rc(102, &attr);
        wr = pair_send(bed->pair, 0, SEND, 1, &sge, 0, 100, 0);
        start = bed->lab->now;
        post(bed, &wr);
        cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR);
        g_assert_cmpint(bed->lab->now - start, >=, 3 * wait);
        g_assert_cmpint(bed->lab->now - start, <, 3 * 4 * wait);
        bed_free(bed);
    }
}

static void test_rnr_exhausted(void)
{
    for (unsigned retries = 0; retries < 7; retries += 3) {
        Bed *bed;
        QpAttr attr;
        SendWr wr[3];
        Sge sge[3];
        Wc wc;

        qp_attr_init(&attr);
        attr.rnr_retry = retries;
        bed = bed_new_rc(103, &attr);
        for (unsigned i = 0; i < 3; i++) {
            wr[i] = pair_send(bed->pair, 0, SEND, i, &sge[i], 0, 3000, 0);
        }
        g_assert_true(qp_post_send(bed->qps[0], wr, 3));
        cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR);
        cq_expect_flushed(bed->cqs[0], 1, 2);
        cq_expect_none(bed->cqs[0]);
        cq_expect_none(bed->cqs[1]);
        g_assert_cmpuint(bed_counter(bed, 1, "responder_rnrs_tx"), ==,
                         retries + 1);
        /* The responder did nothing wrong. */
        g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_RTS);
        bed_revive(bed);
        bed_free(bed);
    }
}

/* The count starts again with each message that gets through. */
static void test_rnr_count_restarts(void)
{
    Bed *bed;
    QpAttr attr;
    SendWr wr;
    Sge sge;
    Wc wc;

    qp_attr_init(&attr);
    attr.rnr_retry = 2;
    attr.min_rnr_timer = 20;
    bed = bed_new_rc(104, &attr);
    for (unsigned i = 0; i < 6; i++) {
        wr = pair_send(bed->pair, 0, SEND, i, &sge, 0, 3000, 0);
        post(bed, &wr);
        lab_sleep(bed->lab, 15 * NS_PER_MS);
        pair_post_recv(bed->pair, 1, bed->qps[1], i, 0, 4096);
        cq_expect(bed->cqs[1], &wc, i, 0);
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    bed_free(bed);
}

/* By its credits the sender knows: one message alone finds no receive. */
static void test_rnr_credits(void)
{
    enum {
        N = 20,
        READY = 7
    };
    SendWr wr[N];
    Sge sge[N];
    Bed *bed;

    bed = bed_new_rc(111, NULL);
    bed_post_recvs(bed, READY, 100);
    for (unsigned i = 0; i < N; i++) {
        wr[i] = pair_send(bed->pair, 0, SEND, i, &sge[i], 0, 100, 0);
    }
    g_assert_true(qp_post_send(bed->qps[0], wr, N));
    lab_sleep(bed->lab, 50 * NS_PER_MS);
    bed_counted(bed, 0, "requester_wqes_completed", READY);
    bed_counted(bed, 0, "requester_packets_sent", READY + 1);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_rnr_timeouts"), >, 2);
    bed_counted(bed, 0, "requester_retransmissions",
                bed_counter(bed, 0, "requester_rnr_timeouts"));
    bed_post_recvs(bed, N - READY, 100);
    for (unsigned i = 0; i < N; i++) {
        bed_expect_end(bed, 0, 0);
        bed_expect_end(bed, 1, 0);
    }
    bed_free(bed);
}

/* Receives that come one at a time, each just too late. */
static void test_rnr_trickle(void)
{
    Bed *bed;
    SendWr wr[20];
    Sge sge[20];
    Wc wc;

    bed = bed_new_rc(105, NULL);
    for (unsigned i = 0; i < 20; i++) {
        wr[i] = pair_send(bed->pair, 0, RDMA_HCA_OPCODE_SEND_IMM, i, &sge[i], 0,
                          2500, 0);
        wr[i].imm_be = GUINT32_TO_BE(i);
    }
    g_assert_true(qp_post_send(bed->qps[0], wr, 20));
    for (unsigned i = 0; i < 20; i++) {
        lab_sleep(bed->lab, 3 * NS_PER_MS);
        pair_post_recv(bed->pair, 1, bed->qps[1], i, 0, 4096);
        cq_expect(bed->cqs[1], &wc, i, 0);
        g_assert_cmpuint(GUINT32_FROM_BE(wc.imm_be), ==, i);
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    bed_free(bed);
}

/* Write with immediate: the data may be there, the immediate has to wait. */
static void test_rnr_write_imm(void)
{
    Bed *bed;
    SendWr wr;
    Sge sge;
    Wc wc;

    bed = bed_new_rc(106, NULL);
    wr = pair_send(bed->pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE_IMM, 1, &sge, 0,
                   5000, 0);
    post(bed, &wr);
    lab_sleep(bed->lab, 20 * NS_PER_MS);
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    bed_post_recvs_on(bed, 1, RECV, 1, 4096);
    cq_expect(bed->cqs[1], &wc, RECV, 0);
    g_assert_cmpuint(wc.byte_len, ==, 5000);
    cq_expect(bed->cqs[0], &wc, 1, 0);
    bed_free(bed);
}

/* ---- remote access ---- */

typedef enum RemoteFault {
    BAD_KEY,
    BAD_GENERATION,
    OUT_OF_RANGE,
    LAST_BYTE,
    WRAP,
    OTHER_PD,
    NO_PERMISSION,
    DEREGISTERED,
    NUM_REMOTE_FAULTS
} RemoteFault;

static const char *const remote_fault_name[] = {
    "bad-key", "bad-generation", "out-of-range",  "last-byte",
    "wrap",    "other-pd",       "no-permission", "deregistered",
};

/* Make @wr of @bed go wrong at the far end in this way. */
static void break_remote(Bed *bed, RemoteFault fault, SendWr *wr)
{
    Driver *drv = bed->drv[1];
    Mr *mr = bed->pair->mr[1];
    uint32_t len = wr->sge[0].len;

    switch (fault) {
    case BAD_KEY:
        wr->rkey = mr->key ^ 0x155;
        break;
    case BAD_GENERATION:
        wr->rkey = mr->key ^ 1u << 31;
        break;
    case OUT_OF_RANGE:
        wr->raddr = mr->va + mr->len + 0x100000;
        break;
    case LAST_BYTE:
        wr->raddr = mr->va + mr->len - len + 1;
        break;
    case WRAP:
        wr->raddr = UINT64_MAX - len / 2;
        break;
    case OTHER_PD:
        wr->rkey = mr_new(drv, pd_new(drv), mr->va, mr->len, ACCESS_ALL)->key;
        break;
    case NO_PERMISSION:
        wr->rkey = mr_new(drv, mr->pd, mr->va, mr->len,
                          RDMA_HCA_ACCESS_LOCAL_WRITE)
                       ->key;
        break;
    case DEREGISTERED:
        wr->rkey = mr->key;
        g_assert_cmphex(mr_deregister(mr), ==, RDMA_HCA_STAT_OK);
        bed->pair->mr[1] = mr_new(drv, mr->pd, mr->va, mr->len, ACCESS_ALL);
        break;
    default:
        g_assert_not_reached();
    }
}

/* Which byte of memory may a refused request have changed? None. */
static void check_remote(uint8_t opcode, RemoteFault fault, uint32_t len)
{
    struct rdma_hca_eqe eqe;
    g_autofree uint8_t *image = NULL;
    SendWr wr;
    Sge sge;
    Bed *bed;

    bed = bed_new_rc(200 + fault, NULL);
    mr_fill(bed->pair->mr[0], 0, 0x77, 65536);
    bed_post_recvs_on(bed, 1, RECV, 2, 4096);
    wr = pair_send(bed->pair, 0, opcode, 3, &sge, 20000, len, 0);
    break_remote(bed, fault, &wr);
    image = mr_image(bed->pair->mr[1]);
    memset(image + 8192, 0x77, 3000); /* the good Writes before */
    run_bad_request(bed, &wr, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    mr_check_image(bed->pair->mr[1], image);
    /* The responder's QP is in error too, and its owner is told. */
    g_assert_true(
        driver_event(bed->drv[1], RDMA_HCA_EVENT_WQ_ACCESS_ERROR, &eqe));
    g_assert_cmpuint(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qps[1]->qpn);
    cq_expect_flushed(bed->cqs[1], RECV, 2);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_ERR);
    bed_revive(bed);
    bed_free(bed);
}

typedef struct RemoteCase {
    uint8_t opcode;
    RemoteFault fault;
    uint32_t len;
} RemoteCase;

static void test_remote(const void *opaque)
{
    const RemoteCase *c = opaque;

    check_remote(c->opcode, c->fault, c->len);
}

static void add_remote(void)
{
    static const uint8_t opcode[] = { WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
                                      READ };
    static const char *const name[] = { "write", "write-imm", "read" };
    static const uint32_t len[] = { 8, 5000 };

    for (unsigned op = 0; op < 3; op++) {
        for (unsigned fault = 0; fault < NUM_REMOTE_FAULTS; fault++) {
            for (unsigned l = 0; l < 2; l++) {
                RemoteCase c = { opcode[op], fault, len[l] };
                const char *path = test_named("/errors/remote/%s/%s/%u",
                                              name[op],
                                              remote_fault_name[fault], len[l]);

                test_add_data_each_link(path, test_copy(&c, sizeof(c)),
                                        test_remote);
            }
        }
    }
}

/* An RDMA of no bytes checks neither key nor address (IBA 9.7.4.1.5). */
static void test_zero_length_bad_key(void)
{
    Bed *bed;
    SendWr wr[2];
    Sge sge[2];
    Wc wc;

    bed = bed_new_rc(220, NULL);
    for (unsigned i = 0; i < 2; i++) {
        wr[i] = pair_send(bed->pair, 0, i ? READ : WRITE, i, &sge[i], 0, 0, 0);
        wr[i].rkey = 0x12345;
        wr[i].raddr = UINT64_MAX;
    }
    g_assert_true(qp_post_send(bed->qps[0], wr, 2));
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, 0);
    bed_free(bed);
}

/* The QP itself does not allow it: an invalid request (IBA 9.7.4.1.3). */
static void test_qp_not_enabled(void)
{
    static const uint8_t opcode[] = { WRITE, READ, RDMA_HCA_OPCODE_ATOMIC_FA };

    for (unsigned i = 0; i < G_N_ELEMENTS(opcode); i++) {
        struct rdma_hca_eqe eqe;
        QpAttr attr;
        SendWr wr;
        Sge sge;
        Bed *bed;
        Wc wc;

        qp_attr_init(&attr);
        attr.access = 0;
        bed = bed_new_rc(221, &attr);
        wr = pair_send(bed->pair, 0, opcode[i], 1, &sge, 0, 8,
                       4096 - (bed->pair->mr[1]->va & 4095));
        post(bed, &wr);
        cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
        g_assert_true(
            driver_event(bed->drv[1], RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR, &eqe));
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qps[1]->qpn);
        bed_revive(bed);
        bed_free(bed);
    }
}

/* Atomics need 8 aligned bytes (IBA 9.4.5); else an invalid request. */
static void test_atomic_misaligned(void)
{
    Bed *bed;
    SendWr wr;
    Sge sge;

    bed = bed_new_rc(222, NULL);
    wr = pair_send(bed->pair, 0, RDMA_HCA_OPCODE_ATOMIC_FA, 3, &sge, 0, 8,
                   4096 - (bed->pair->mr[1]->va & 4095) + 4);
    run_bad_request(bed, &wr, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- local errors of a send request ---- */

typedef enum LocalFault {
    LOCAL_BAD_KEY,
    LOCAL_OUT_OF_RANGE,
    LOCAL_OTHER_PD,
    LOCAL_READ_ONLY,
    LOCAL_SECOND_ENTRY,
    LOCAL_DEREGISTERED,
    LOCAL_OPCODE,
    LOCAL_OPCODE_RAW,
    LOCAL_TOO_LONG,
    LOCAL_ATOMIC_LENGTH,
    NUM_LOCAL_FAULTS
} LocalFault;

static const struct {
    const char *name;
    uint8_t syndrome;
} local_fault[] = {
    { "bad-key", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "out-of-range", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "other-pd", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "read-into-read-only", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "second-entry", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "deregistered", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { "opcode", RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    { "opcode-raw", RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    { "too-long", RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR },
    { "atomic-length", RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR },
};

static void break_local(Bed *bed, LocalFault fault, SendWr *wr, Sge *sge)
{
    Driver *drv = bed->drv[0];
    Mr *mr = bed->pair->mr[0], *other;

    switch (fault) {
    case LOCAL_BAD_KEY:
        sge[0].lkey ^= 0x2aa;
        break;
    case LOCAL_OUT_OF_RANGE:
        sge[0].va = mr->va + mr->len - 1;
        sge[0].len = 2;
        break;
    case LOCAL_OTHER_PD:
        sge[0].lkey =
            mr_new(drv, pd_new(drv), mr->va, mr->len, ACCESS_ALL)->key;
        break;
    case LOCAL_READ_ONLY:
        wr->opcode = READ;
        sge[0].lkey = mr_new(drv, mr->pd, mr->va, mr->len, 0)->key;
        break;
    case LOCAL_SECOND_ENTRY:
        sge[1] = sge[0];
        sge[1].lkey = 0;
        wr->nsge = 2;
        break;
    case LOCAL_DEREGISTERED:
        other = mr_new(drv, mr->pd, mr->va, mr->len, ACCESS_ALL);
        sge[0].lkey = other->key;
        g_assert_cmphex(mr_deregister(other), ==, RDMA_HCA_STAT_OK);
        break;
    case LOCAL_OPCODE:
        wr->opcode = 0x0c; /* mthca's Send with Invalidate */
        break;
    case LOCAL_OPCODE_RAW:
        wr->opcode = 0x1f;
        break;
    case LOCAL_TOO_LONG:
        /* The sum counts, and may not wrap. */
        for (unsigned i = 0; i < 4; i++) {
            sge[i] = sge[0];
            sge[i].len = 0x60000000;
        }
        wr->nsge = 4;
        break;
    case LOCAL_ATOMIC_LENGTH:
        wr->opcode = RDMA_HCA_OPCODE_ATOMIC_CS;
        sge[0].len = 16;
        break;
    default:
        g_assert_not_reached();
    }
}

static void test_local(const void *opaque)
{
    LocalFault fault = GPOINTER_TO_UINT(opaque);
    SendWr wr;
    Sge sge[4];
    Bed *bed;

    bed = bed_new_rc(300 + fault, NULL);
    wr = pair_send(bed->pair, 0, WRITE, 3, sge, 0, 5000, 8192);
    break_local(bed, fault, &wr, sge);
    run_bad_request(bed, &wr, local_fault[fault].syndrome);
    /* The peer noticed nothing. */
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_RTS);
    bed_revive(bed);
    bed_free(bed);
}

/* The longest list, and one data unit more than the card takes. */
static void test_longest_list(void)
{
    Bed *bed;
    QpConfig config;
    QpAttr attr;
    Sge sge[RDMA_HCA_MAX_SGE + 1];
    SendWr wr;
    Wc wc;

    bed = bed_new_rc(320, NULL);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, bed->pair->pd[i], bed->cqs[i]);
        config.log_sq_entry = 10;
        bed->qps[i] = qp_new(bed->drv[i], &config);
    }
    qp_connect(bed->qps[0], bed->qps[1], &attr);
    for (unsigned i = 0; i <= RDMA_HCA_MAX_SGE; i++) {
        sge[i] = mr_sge(bed->pair->mr[0], i * 100, 100);
    }
    wr = pair_send(bed->pair, 0, WRITE, 1, sge, 0, 100, 20000);
    wr.nsge = RDMA_HCA_MAX_SGE;
    post(bed, &wr);
    cq_expect(bed->cqs[0], &wc, 1, 0);
    wr.nsge = RDMA_HCA_MAX_SGE + 1;
    post(bed, &wr);
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    bed_free(bed);
}

/* ---- errors of a receive request ---- */

typedef enum RecvFault {
    RECV_BAD_KEY,
    RECV_READ_ONLY,
    RECV_OTHER_PD,
    RECV_DEREGISTERED,
    RECV_TOO_SMALL,
    RECV_EMPTY,
    NUM_RECV_FAULTS
} RecvFault;

static const struct {
    const char *name;
    uint8_t receiver, sender;
} recv_fault[] = {
    { "bad-key", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    { "read-only", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    { "other-pd", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    { "deregistered", RDMA_HCA_SYNDROME_LOCAL_PROT_ERR,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    { "too-small", RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR,
      RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR },
    { "empty", RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR,
      RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR },
};

static void break_recv(Bed *bed, RecvFault fault, RecvWr *wr, Sge *sge)
{
    Driver *drv = bed->drv[1];
    Mr *mr = bed->pair->mr[1], *other;

    switch (fault) {
    case RECV_BAD_KEY:
        sge->lkey ^= 0x2aa;
        break;
    case RECV_READ_ONLY:
        sge->lkey = mr_new(drv, mr->pd, mr->va, mr->len, 0)->key;
        break;
    case RECV_OTHER_PD:
        sge->lkey = mr_new(drv, pd_new(drv), mr->va, mr->len, ACCESS_ALL)->key;
        break;
    case RECV_DEREGISTERED:
        other = mr_new(drv, mr->pd, mr->va, mr->len, ACCESS_ALL);
        sge->lkey = other->key;
        g_assert_cmphex(mr_deregister(other), ==, RDMA_HCA_STAT_OK);
        break;
    case RECV_TOO_SMALL:
        sge->len = 2999;
        break;
    case RECV_EMPTY:
        wr->nsge = 0;
        break;
    default:
        g_assert_not_reached();
    }
}

static void test_recv(const void *opaque)
{
    RecvFault fault = GPOINTER_TO_UINT(opaque);
    SendWr wr[3];
    Sge sge[3], to;
    RecvWr recv = { .wr_id = 1, .nsge = 1, .sge = &to };
    Bed *bed;
    Wc wc;

    bed = bed_new_rc(400 + fault, NULL);
    pair_post_recv(bed->pair, 1, bed->qps[1], 0, 0, 4096);
    to = mr_sge(bed->pair->mr[1], 8192, 4096);
    break_recv(bed, fault, &recv, &to);
    g_assert_true(qp_post_recv(bed->qps[1], &recv, 1));
    pair_post_recv(bed->pair, 1, bed->qps[1], 2, 0, 4096);
    for (unsigned i = 0; i < 3; i++) {
        wr[i] = pair_send(bed->pair, 0, SEND, i, &sge[i], 0, 3000, 0);
    }
    g_assert_true(qp_post_send(bed->qps[0], wr, 3));
    cq_expect(bed->cqs[1], &wc, 0, 0);
    cq_expect(bed->cqs[1], &wc, 1, recv_fault[fault].receiver);
    g_assert_false(wc.is_send);
    cq_expect_flushed(bed->cqs[1], 2, 1);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, recv_fault[fault].sender);
    cq_expect_flushed(bed->cqs[0], 2, 1);
    cq_expect_none(bed->cqs[0]);
    cq_expect_none(bed->cqs[1]);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_ERR);
    bed_revive(bed);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/errors/rnr/then-posted", test_rnr_then_posted);
    test_add_each_link("/errors/rnr/read-lost", test_rnr_read_lost);
    test_add_each_link("/errors/rnr/timer", test_rnr_timer);
    test_add_each_link("/errors/rnr/exhausted", test_rnr_exhausted);
    test_add_each_link("/errors/rnr/count-restarts", test_rnr_count_restarts);
    test_add_each_link("/errors/rnr/credits", test_rnr_credits);
    test_add_each_link("/errors/rnr/trickle", test_rnr_trickle);
    test_add_each_link("/errors/rnr/write-imm", test_rnr_write_imm);
    add_remote();
    test_add_each_link("/errors/remote/zero-length", test_zero_length_bad_key);
    test_add_each_link("/errors/remote/read-lost", test_fatal_read_lost);
    test_add_each_link("/errors/remote/qp-not-enabled", test_qp_not_enabled);
    test_add_each_link("/errors/remote/atomic-misaligned",
                       test_atomic_misaligned);
    for (unsigned i = 0; i < NUM_LOCAL_FAULTS; i++) {
        const char *path = test_named("/errors/local/%s", local_fault[i].name);

        test_add_data_each_link(path, GUINT_TO_POINTER(i), test_local);
    }
    test_add_each_link("/errors/local/longest-list", test_longest_list);
    for (unsigned i = 0; i < NUM_RECV_FAULTS; i++) {
        const char *path = test_named("/errors/recv/%s", recv_fault[i].name);

        test_add_data_each_link(path, GUINT_TO_POINTER(i), test_recv);
    }
    return g_test_run();
}
