/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of receives, of requests that are executed, of answers, and of
 * completions: what both sides see, and that a connection works afterwards.
 */
#include "../fault/status.h"
#include "../verbs.h"
#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define ATOMIC_WRITE RDMA_HCA_OPCODE_ATOMIC_WRITE
#define FLUSH RDMA_HCA_OPCODE_FLUSH
#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD
#define LEN 3000u

static Bed *bed_new(uint8_t service)
{
    BedConfig config = bed_connection(service);

    config.seed = 4300;
    config.attr.timeout = BED_TIMEOUT;
    config.attr.rnr_retry = 3;
    config.attr.access |= RDMA_HCA_ACCESS_FLUSH;
    return bed_new_as(&config);
}

/* Of @len bytes, or of the eight that the operation has. */
static void request(Bed *bed, unsigned i, uint8_t opcode, uint32_t len)
{
    SendWr *wr = bed_request(bed, i, opcode, wr_is_of_eight(opcode) ? 8 : len);

    wr->raddr = ROUND_UP8(wr->raddr);
    if (opcode == FLUSH) {
        const Mr *mr = mr_new(bed->drv[1], bed->pair->pd[1], 0x7000000, LEN,
                              ACCESS_ALL | RDMA_HCA_ACCESS_FLUSH);

        wr->nsge = 0;
        wr->raddr = mr->va;
        wr->rkey = mr->key;
        wr->flush_len = len;
        wr->flush = RDMA_HCA_FLUSH_TYPE_GLOBAL;
    }
}

/* Two requests from side 0, with two receives at side 1. */
static void post_two(Bed *bed, uint8_t opcode)
{
    bed_post_recvs(bed, 2, 4096);
    request(bed, 0, opcode, LEN);
    request(bed, 1, opcode, LEN);
    bed_post_requests(bed, 2);
}

static void expect_broken(Bed *bed, unsigned side)
{
    g_assert_cmpuint(qp_state(bed->qps[side]), ==, RDMA_HCA_QP_STATE_ERR);
}

/* What the requester makes of a code of a NAK. */
static uint8_t syndrome_of(uint8_t nak)
{
    static const uint8_t syndromes[] = {
        [HCA_NAK_INVALID_REQUEST] = RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR,
        [HCA_NAK_REMOTE_ACCESS] = RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR,
        [HCA_NAK_REMOTE_OP] = RDMA_HCA_SYNDROME_REMOTE_OP_ERR,
        [HCA_NAK_INVALID_RD] = RDMA_HCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR,
    };

    return syndromes[nak];
}

/* ---- receives ---- */

typedef struct StatusCase {
    const HcaFaultStatus *status;
    uint8_t opcode;
} StatusCase;

/* The second of two. */
static void test_status(gconstpointer data)
{
    const StatusCase *c = data;
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_FAIL,
                                  c->status->syndrome);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].skip = 1;
    bed_set_faults(bed, 1, &plan);
    post_two(bed, c->opcode);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, syndrome_of(c->status->nak));
    cq_expect(bed->cqs[1], &wc, 0, 0);
    cq_expect(bed->cqs[1], &wc, 1, c->status->syndrome);
    g_assert_cmphex(wc.vendor_err, ==, BED_VENDOR_ERR);
    expect_broken(bed, 0);
    expect_broken(bed, 1);
    bed_counted(bed, 1, "verb_fault_receive_fail", 1);
    bed_counted(bed, 1, "responder_refused_planned", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* UC and UD tell nobody: only the receiver's QP breaks. */
static void test_status_unreliable(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_LOCAL_LENGTH_ERR);
    Bed *bed = bed_new(UC);
    Wc wc;

    bed_set_faults(bed, 1, &plan);
    post_two(bed, SEND);
    cq_expect(bed->cqs[1], &wc, 0, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
    cq_expect_flushed(bed->cqs[1], 1, 1);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    expect_broken(bed, 1);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_RTS);
    bed_free(bed);
}

/* The receive queue seems to be empty, three times; nothing is lost. */
static void test_rnr(gconstpointer data)
{
    uint8_t opcode = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_RNR, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].count = 3;
    bed_set_faults(bed, 1, &plan);
    post_two(bed, opcode);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
        cq_expect(bed->cqs[1], &wc, i, 0);
    }
    bed_counted(bed, 1, "verb_fault_receive_rnr", 3);
    bed_counted(bed, 0, "requester_rnrs_rx", 3);
    bed_free(bed);
}

/* For longer than the sender has patience for. */
static void test_rnr_exhausted(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_RNR, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].count = 0;
    bed_set_faults(bed, 1, &plan);
    post_two(bed, SEND);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR);
    cq_expect_flushed(bed->cqs[0], 1, 1);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_RTS);
    bed_counted(bed, 1, "verb_fault_receive_rnr", 4);
    bed_revive(bed);
    bed_free(bed);
}

/* For a time: the sender waits, and then goes on. */
static void test_rnr_for_a_time(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_RNR, 0);
    BedConfig config = bed_connection(RC);
    int64_t begun;
    Bed *bed;
    Wc wc;

    config.attr.rnr_retry = 7;
    config.attr.min_rnr_timer = BED_RNR_CODE;
    bed = bed_new_as(&config);
    plan.rule[0].count = 0;
    plan.rule[0].for_ns = 20 * NS_PER_MS;
    bed_set_faults(bed, 1, &plan);
    begun = bed->lab->now;
    post_two(bed, SEND);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
        cq_expect(bed->cqs[1], &wc, i, 0);
    }
    g_assert_cmpint(bed->lab->now - begun, >=, 20 * NS_PER_MS);
    g_assert_cmpint(bed->lab->now - begun, <, 40 * NS_PER_MS);
    bed_free(bed);
}

/* Datagrams find no receive: they are lost. */
static void test_rnr_datagram(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_RNR, 0);
    Bed *bed = bed_new(UC);
    Wc wc;

    bed_set_faults(bed, 1, &plan);
    post_two(bed, SEND);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    cq_expect(bed->cqs[1], &wc, 0, 0);
    cq_expect_none(bed->cqs[1]);
    bed_free(bed);
}

/* A receive queue that breaks is the QP's end. */
static void test_break(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_BREAK, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    bed_set_faults(bed, 1, &plan);
    post_two(bed, SEND);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    cq_expect_flushed(bed->cqs[1], 0, 2);
    g_assert_cmpuint(
        driver_count_events(bed->drv[1], RDMA_HCA_EVENT_WQ_CATAS_ERROR), ==, 1);
    expect_broken(bed, 1);
    bed_counted(bed, 1, "verb_fault_receive_break", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* A shared queue breaks for all of its QPs, and says so once. */
typedef struct Shared {
    Pair *pair;
    Srq *srq;
    Qp *near[2], *far[2];
} Shared;

static void shared_init(Shared *s)
{
    SrqConfig config;
    QpConfig qp;
    QpAttr attr;

    s->pair = pair_new(4301, 65536);
    srq_config_init(&config, s->pair->pd[1]);
    s->srq = srq_new(s->pair->drv[1], &config);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        Sge sge = mr_sge(s->pair->mr[1], 0, 4096);
        RecvWr wr = { .wr_id = i, .nsge = 1, .sge = &sge };

        qp_config_init(&qp, s->pair->pd[1], s->pair->cq[1]);
        qp.srq = s->srq;
        s->far[i] = qp_new(s->pair->drv[1], &qp);
        s->near[i] = pair_new_qp(s->pair, 0, RC);
        qp_connect(s->near[i], s->far[i], &attr);
        g_assert_true(srq_post(s->srq, &wr, 1));
    }
}

static void send_one(Shared *s, unsigned i, uint8_t syndrome)
{
    Sge sge;
    SendWr wr = pair_send(s->pair, 0, SEND, i, &sge, 0, 64, 0);
    Wc wc;

    g_assert_true(qp_post_send(s->near[i], &wr, 1));
    cq_expect(s->pair->cq[0], &wc, i, syndrome);
}

static void test_break_srq(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_BREAK, 0);
    Driver *drv;
    Shared s;

    shared_init(&s);
    drv = s.pair->drv[1];
    plan.rule[0].match_srqn = true;
    plan.rule[0].srqn = s.srq->srqn;
    host_set_faults(&s.pair->lab->host[1], &plan);
    for (unsigned i = 0; i < 2; i++) {
        send_one(&s, i, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    }
    g_assert_cmpuint(driver_count_events(drv, RDMA_HCA_EVENT_SRQ_CATAS_ERROR),
                     ==, 1);
    pair_free(s.pair);
}

/* By its SRQ; another number matches none. */
static void test_select_srq(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_TM_ERR);
    Shared s;
    Wc wc;

    shared_init(&s);
    plan.rule[0].match_srqn = true;
    plan.rule[0].srqn = s.srq->srqn + 1;
    host_set_faults(&s.pair->lab->host[1], &plan);
    send_one(&s, 0, 0);
    cq_expect(s.pair->cq[1], &wc, 0, 0);
    plan.rule[0].srqn = s.srq->srqn;
    host_set_faults(&s.pair->lab->host[1], &plan);
    send_one(&s, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    cq_expect(s.pair->cq[1], &wc, 1, RDMA_HCA_SYNDROME_TM_ERR);
    pair_free(s.pair);
}

/* ---- requests ---- */

/* The second of two is refused, with an event, and not executed. */
static void test_request(gconstpointer data)
{
    const StatusCase *c = data;
    HcaFaultPlan plan = bed_fault(HCA_FAULT_REQUEST, HCA_FAULT_FAIL,
                                  c->status->syndrome);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].skip = 1;
    bed_set_faults(bed, 1, &plan);
    post_two(bed, c->opcode);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, c->status->syndrome);
    g_assert_cmphex(wc.vendor_err, ==,
                    HCA_AETH(HCA_AETH_NAK, c->status->request_nak));
    g_assert_cmpuint(driver_count_events(bed->drv[1], c->status->event), ==, 1);
    if (wr_takes_receive(c->opcode)) {
        cq_expect(bed->cqs[1], &wc, 0, 0);
        cq_expect_flushed(bed->cqs[1], 1, 1);
    } else {
        cq_expect_flushed(bed->cqs[1], 0, 2);
    }
    expect_broken(bed, 0);
    expect_broken(bed, 1);
    bed_counted(bed, 1, "verb_fault_request_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* No notice is taken: the peer asks again, after its time-out. */
static void test_request_drop(gconstpointer data)
{
    uint8_t opcode = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = bed_fault(HCA_FAULT_REQUEST, HCA_FAULT_DROP, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    bed_set_faults(bed, 1, &plan);
    post_two(bed, opcode);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    bed_counted(bed, 1, "verb_fault_request_drop", 1);
    bed_counted(bed, 1, "responder_naks_tx", 0); /* not a word */
    bed_counted(bed, 0, "requester_timeouts", 1);
    bed_free(bed);
}

/* By operation: a Write is none of the others. */
static void test_request_select(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_REQUEST, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_REMOTE_OP_ERR);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].operations = 1u << READ;
    plan.rule[0].match_qpn = true;
    plan.rule[0].qpn = bed->qps[1]->qpn;
    bed_set_faults(bed, 1, &plan);
    bed_request(bed, 0, WRITE, LEN);
    bed_request(bed, 1, READ, LEN);
    bed_post_requests(bed, 2);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- answers ---- */

/* One is not given: the request is done once, and answered again. */
static void test_answer_drop(gconstpointer data)
{
    uint8_t opcode = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = bed_fault(HCA_FAULT_ANSWER, HCA_FAULT_DROP, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    bed_set_faults(bed, 1, &plan);
    bed_post_recvs(bed, 1, 4096);
    request(bed, 0, opcode, 100);
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    if (opcode == SEND) {
        cq_expect(bed->cqs[1], &wc, 0, 0);
        cq_expect_none(bed->cqs[1]);
    }
    bed_counted(bed, 1, "verb_fault_answer_drop", 1);
    bed_counted(bed, 0, "requester_timeouts", 1);
    bed_free(bed);
}

/* They are withheld for 30 ms, and come then; nothing is asked for again. */
static void test_answer_delay(gconstpointer data)
{
    uint8_t opcode = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = bed_fault(HCA_FAULT_ANSWER, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new(RC);
    int64_t begun;
    Wc wc;

    plan.rule[0].delay_ns = 30 * NS_PER_MS;
    bed_set_faults(bed, 1, &plan);
    begun = bed->lab->now;
    post_two(bed, opcode);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    g_assert_cmpint(bed->lab->now - begun, >=, 30 * NS_PER_MS);
    g_assert_cmpint(bed->lab->now - begun, <, 60 * NS_PER_MS);
    bed_counted(bed, 1, "verb_fault_answer_delay", 1);
    bed_counted(bed, 0, "requester_timeouts", 0);
    bed_free(bed);
}

/* By kind: an acknowledgement is no response. A QP that goes waits no more. */
static void test_answer_select(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_ANSWER, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].delay_ns = NS_PER_S;
    plan.rule[0].kinds = 1u << HCA_FAULT_READ_RESPONSE;
    plan.rule[0].count = 0;
    bed_set_faults(bed, 1, &plan);
    bed_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    bed_counted(bed, 1, "verb_fault_answer_delay", 0);
    bed_request(bed, 0, READ, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "verb_fault_answer_delay", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* Withheld for longer than the requester waits: as a peer that is silent. */
static void test_answer_silent(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_ANSWER, HCA_FAULT_DROP, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].count = 0;
    bed_set_faults(bed, 1, &plan);
    post_two(bed, WRITE);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    cq_expect_flushed(bed->cqs[0], 1, 1);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_RTS);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- completions ---- */

typedef struct CompletionCase {
    const char *name;
    HcaFaultAction action;
    uint8_t syndrome; /* of the event */
    const char *counter;
} CompletionCase;

static const CompletionCase completion_cases[] = {
    { "fail", HCA_FAULT_FAIL, HCA_CQ_ERROR_ACCESS,
      "verb_fault_completion_fail" },
    { "overflow", HCA_FAULT_OVERFLOW, HCA_CQ_ERROR_OVERRUN,
      "verb_fault_completion_overflow" },
};

/* The second entry of a CQ: the queue has failed, and its QP. */
static void test_completion(gconstpointer data)
{
    const CompletionCase *c = data;
    HcaFaultPlan plan = bed_fault(HCA_FAULT_COMPLETION, c->action, 0);
    struct rdma_hca_eqe eqe;
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].skip = 1;
    plan.rule[0].match_cqn = true;
    plan.rule[0].cqn = bed->cqs[0]->cqn;
    bed_set_faults(bed, 0, &plan);
    post_two(bed, SEND);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    bed_run(bed);
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    g_assert_true(driver_event(bed->drv[0], RDMA_HCA_EVENT_CQ_ERROR, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.raw[0]), ==, bed->cqs[0]->cqn);
    g_assert_cmpuint(GUINT32_FROM_LE(eqe.cq.syndrome), ==, c->syndrome);
    expect_broken(bed, 0);
    bed_counted(bed, 0, c->counter, 1);
    bed_free(bed);
}

/* A receive's, by its operation. */
static void test_completion_receive(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_COMPLETION, HCA_FAULT_OVERFLOW, 0);
    Bed *bed = bed_new(RC);
    Wc wc;

    plan.rule[0].operations = 1u << HCA_FAULT_OP_RECV;
    bed_set_faults(bed, 1, &plan);
    post_two(bed, SEND);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    g_assert_true(driver_event(bed->drv[1], RDMA_HCA_EVENT_CQ_ERROR, NULL));
    expect_broken(bed, 1);
    bed_free(bed);
}

/* ---- the list ---- */

typedef bool HasFn(const HcaFaultStatus *status);

static bool has_receive(const HcaFaultStatus *status)
{
    return status->receive;
}

static bool has_request(const HcaFaultStatus *status)
{
    return status->request;
}

static void add_statuses(const char *place, HasFn *has, uint8_t opcode,
                         const char *name, GTestDataFunc test)
{
    const HcaFaultStatus *status;

    for (unsigned i = 0; (status = hca_fault_status_at(i)); i++) {
        StatusCase *c;

        if (!has(status)) {
            continue;
        }
        c = g_new(StatusCase, 1);
        *c = (StatusCase) { status, opcode };
        test_add_data_each_link(test_named("/fault-verbs/%s/0x%02x/%s", place,
                                           status->syndrome, name),
                                c, test);
    }
}

static void add_each_opcode(const char *name, GTestDataFunc test)
{
    static const struct {
        const char *name;
        uint8_t opcode;
    } opcodes[] = { { "send", SEND },
                    { "write", WRITE },
                    { "read", READ },
                    { "fetch-add", FETCH_ADD },
                    { "atomic-write", ATOMIC_WRITE },
                    { "flush", FLUSH } };

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        test_add_data_each_link(
            test_named("/fault-verbs/%s/%s", name, opcodes[i].name),
            GUINT_TO_POINTER(opcodes[i].opcode), test);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_statuses("receive", has_receive, SEND, "send", test_status);
    add_statuses("receive", has_receive, SEND_IMM, "send-imm", test_status);
    add_statuses("receive", has_receive, WRITE_IMM, "write-imm", test_status);
    test_add_each_link("/fault-verbs/receive/unreliable",
                       test_status_unreliable);
    test_add_data_each_link("/fault-verbs/receive/rnr/send",
                            GUINT_TO_POINTER(SEND), test_rnr);
    test_add_data_each_link("/fault-verbs/receive/rnr/write-imm",
                            GUINT_TO_POINTER(WRITE_IMM), test_rnr);
    test_add_each_link("/fault-verbs/receive/rnr/exhausted",
                       test_rnr_exhausted);
    test_add("/fault-verbs/receive/rnr/for-a-time", test_rnr_for_a_time);
    test_add("/fault-verbs/receive/rnr/datagram", test_rnr_datagram);
    test_add_each_link("/fault-verbs/receive/break", test_break);
    test_add("/fault-verbs/receive/break-srq", test_break_srq);
    test_add("/fault-verbs/receive/select-srq", test_select_srq);
    add_statuses("request", has_request, SEND, "send", test_request);
    add_statuses("request", has_request, WRITE, "write", test_request);
    add_statuses("request", has_request, WRITE_IMM, "write-imm", test_request);
    add_statuses("request", has_request, READ, "read", test_request);
    add_statuses("request", has_request, FETCH_ADD, "fetch-add", test_request);
    add_statuses("request", has_request, ATOMIC_WRITE, "atomic-write",
                 test_request);
    add_statuses("request", has_request, FLUSH, "flush", test_request);
    add_each_opcode("request/drop", test_request_drop);
    test_add("/fault-verbs/request/select", test_request_select);
    add_each_opcode("answer/drop", test_answer_drop);
    add_each_opcode("answer/delay", test_answer_delay);
    test_add("/fault-verbs/answer/select", test_answer_select);
    test_add("/fault-verbs/answer/silent", test_answer_silent);
    for (unsigned i = 0; i < G_N_ELEMENTS(completion_cases); i++) {
        test_add_data_each_link(
            test_named("/fault-verbs/completion/%s", completion_cases[i].name),
            &completion_cases[i], test_completion);
    }
    test_add("/fault-verbs/completion/receive", test_completion_receive);
    return g_test_run();
}
