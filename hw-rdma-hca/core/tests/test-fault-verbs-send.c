/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of send work requests: each status that can be planned, on both sides;
 * which work requests a rule takes; QPs that break.
 */
#define _GNU_SOURCE /* memmem() */
#include <string.h>

#include "../fault/status.h"
#include "../verbs.h"
#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define CMP_SWAP RDMA_HCA_OPCODE_ATOMIC_CS
#define LEN 3000u /* packets: 3 */

static Bed *bed_new(uint8_t service)
{
    BedConfig config = bed_connection(service);

    config.seed = 4200;
    config.attr.timeout = BED_TIMEOUT;
    return bed_new_as(&config);
}

/* What the peer says to a request that it refuses, and has itself. */
typedef struct Refusal {
    uint8_t nak;
    uint8_t event;         /* of the peer's, 0: none */
    uint8_t recv_syndrome; /* its receive, of a message that has one */
} Refusal;

static const Refusal *refusal_of(uint8_t way, uint8_t opcode)
{
    static const Refusal key = { 0x60 | HCA_NAK_REMOTE_ACCESS,
                                 RDMA_HCA_EVENT_WQ_ACCESS_ERROR, 0 };
    static const Refusal send_key = { 0x60 | HCA_NAK_REMOTE_ACCESS, 0,
                                      RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR };
    static const Refusal request = { 0x60 | HCA_NAK_INVALID_REQUEST,
                                     RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR, 0 };

    switch (way) {
    case HCA_PLANNED_KEY:
        return wr_is_send(opcode) ? &send_key : &key;
    case HCA_PLANNED_REQUEST:
        return &request;
    default:
        return NULL;
    }
}

static uint32_t length_of(uint8_t opcode)
{
    return wr_is_atomic(opcode) ? 8 : LEN;
}

static void post_three(Bed *bed, uint8_t opcode)
{
    bed_post_recvs(bed, 3, 4096);
    for (unsigned i = 0; i < 3; i++) {
        SendWr *wr = bed_request(bed, i, opcode, length_of(opcode));

        wr->raddr = ROUND_UP8(wr->raddr);
    }
    bed_post_requests(bed, 3);
}

/* The receives of @bed's other side: one is used, one may have failed. */
static void expect_receives(Bed *bed, uint8_t opcode, const Refusal *refusal)
{
    unsigned used = wr_takes_receive(opcode);
    Wc wc;

    if (used) {
        cq_expect(bed->cqs[1], &wc, 0, 0);
    }
    if (refusal && refusal->recv_syndrome) {
        cq_expect(bed->cqs[1], &wc, used++, refusal->recv_syndrome);
    }
    if (refusal) {
        cq_expect_flushed(bed->cqs[1], used, 3 - used);
    }
}

static void check_peer(Bed *bed, const Refusal *refusal)
{
    static const uint8_t errors[] = { RDMA_HCA_EVENT_WQ_ACCESS_ERROR,
                                      RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR,
                                      RDMA_HCA_EVENT_WQ_CATAS_ERROR };

    g_assert_cmpuint(qp_state(bed->qps[1]), ==,
                     refusal ? RDMA_HCA_QP_STATE_ERR : RDMA_HCA_QP_STATE_RTS);
    if (refusal && refusal->event) {
        g_assert_true(driver_event(bed->drv[1], refusal->event, NULL));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(errors); i++) {
        g_assert_cmpuint(driver_count_events(bed->drv[1], errors[i]), ==, 0);
    }
}

typedef struct StatusCase {
    const HcaFaultStatus *status;
    uint8_t opcode;
} StatusCase;

/* The second of three: the first is done, the last one flushed. */
static void test_status(gconstpointer data)
{
    const StatusCase *c = data;
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  c->status->syndrome);
    const Refusal *refusal = refusal_of(c->status->way, c->opcode);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    uint8_t vendor = BED_VENDOR_ERR;
    Wc wc;

    plan.rule[0].skip = 1;
    plan.rule[0].match_qpn = true;
    plan.rule[0].qpn = bed->qps[0]->qpn;
    bed_set_faults(bed, 0, &plan);
    post_three(bed, c->opcode);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, c->status->syndrome);
    if (refusal) {
        vendor = refusal->nak; /* the peer's, not the plan's */
    } else if (c->status->way == HCA_PLANNED_LOST) {
        vendor = 0;
    }
    g_assert_cmphex(wc.vendor_err, ==, vendor);
    cq_expect_flushed(bed->cqs[0], 2, 1);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    if (c->status->way == HCA_PLANNED_ANSWER && wr_takes_receive(c->opcode)) {
        for (unsigned i = 0; i < 3; i++) { /* they were sent */
            cq_expect(bed->cqs[1], &wc, i, 0);
        }
    } else {
        expect_receives(bed, c->opcode, refusal);
    }
    check_peer(bed, refusal);
    bed_counted(bed, 0, "verb_fault_send_fail", 1);
    bed_counted(bed, 0, "requester_retries_exhausted",
                c->status->way == HCA_PLANNED_LOST);
    bed_revive(bed);
    bed_free(bed);
}

/* A work request that has a status of its own is not the plan's. */
static void test_own_error(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_FATAL_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    Wc wc;

    bed_set_faults(bed, 0, &plan);
    bed_request(bed, 0, WRITE, LEN);
    bed->sge[0].lkey ^= 0xff;
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    bed_counted(bed, 0, "verb_fault_send_fail", 0);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- services ---- */

/* Nothing is answered: what the card refuses can fail, and nothing else. */
static void test_uc(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_REMOTE_ACCESS_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_UC);
    Wc wc;

    bed_set_faults(bed, 0, &plan);
    post_three(bed, SEND);
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
        cq_expect(bed->cqs[1], &wc, i, 0);
    }
    bed_counted(bed, 0, "verb_fault_send_fail", 0);
    plan.rule[0].status = HCA_SYNDROME_LOCAL_PROT_ERR;
    plan.rule[0].skip = 1;
    bed_set_faults(bed, 0, &plan);
    post_three(bed, SEND);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    g_assert_cmphex(wc.vendor_err, ==, BED_VENDOR_ERR);
    cq_expect_flushed(bed->cqs[0], 2, 1);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_SQE);
    cq_expect(bed->cqs[1], &wc, 0, 0);
    check_peer(bed, NULL);
    bed_free(bed);
}

/* A window that cannot be bound: other operations cannot fail so. */
static void test_bind_status(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_MW_BIND_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    Wc wc;

    bed_set_faults(bed, 0, &plan);
    post_three(bed, WRITE);
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    bed_counted(bed, 0, "verb_fault_send_fail", 0);
    bed_free(bed);
}

/* A key is looked at only where there are bytes. */
static void test_no_bytes(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_REMOTE_ACCESS_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    Wc wc;

    bed_set_faults(bed, 0, &plan);
    bed_request(bed, 0, WRITE, 0);
    bed_request(bed, 1, WRITE, 1);
    bed_post_requests(bed, 2);
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- which ones ---- */

typedef void SelectFn(const Bed *bed, HcaFaultRule *rule);

static void by_qpn(const Bed *bed, HcaFaultRule *rule)
{
    rule->match_qpn = true;
    rule->qpn = bed->qps[0]->qpn;
}

static void by_peer_qpn(const Bed *bed, HcaFaultRule *rule)
{
    rule->match_peer_qpn = true;
    rule->peer_qpn = bed->qps[1]->qpn;
}

static void by_cq(const Bed *bed, HcaFaultRule *rule)
{
    rule->match_cqn = true;
    rule->cqn = bed->cqs[0]->cqn;
}

static void by_operation(const Bed *bed, HcaFaultRule *rule)
{
    rule->operations = 1u << WRITE_IMM;
}

static void by_service_and_operation(const Bed *bed, HcaFaultRule *rule)
{
    rule->services = 1u << RDMA_HCA_QP_ST_RC;
    rule->operations = 1u << READ | 1u << WRITE_IMM;
}

typedef struct SelectCase {
    const char *name;
    SelectFn *fn;
} SelectCase;

static const SelectCase select_cases[] = {
    { "qpn", by_qpn },
    { "peer-qpn", by_peer_qpn },
    { "cqn", by_cq },
    { "operation", by_operation },
    { "service-and-operation", by_service_and_operation },
};

/* Those of the bystander's are left alone, before and behind. */
static void test_select(gconstpointer data)
{
    const SelectCase *c = data;
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_LOCAL_PROT_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    Wc wc;

    c->fn(bed, &plan.rule[0]);
    plan.rule[0].count = 0;
    bed_set_faults(bed, 0, &plan);
    pair_check_works(bed->pair, bed->bystander, 0);
    bed_post_recvs(bed, 1, 64);
    bed_request(bed, 0, WRITE_IMM, 64);
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    pair_check_works(bed->pair, bed->bystander, 0);
    bed_counted(bed, 0, "verb_fault_send_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* A peer's address: another one, and the peer's. */
static void test_select_address(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_LOCAL_PROT_ERR);
    HcaFaultPeer *peer = &plan.rule[0].peer;
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    const HcaPath *path =
        &card_qp(bed->lab->host[0].hca, bed->qps[0]->qpn)->attr.path;
    Wc wc;

    if (test_is_roce()) {
        peer->match_gid = true;
        peer->gid = path->dgid;
        peer->gid.raw[15] ^= 1;
    } else {
        peer->lid = path->dlid + 1;
    }
    bed_set_faults(bed, 0, &plan);
    pair_check_works(bed->pair, bed->qps, 0);
    if (test_is_roce()) {
        peer->gid = path->dgid;
    } else {
        peer->lid = path->dlid;
    }
    bed_set_faults(bed, 0, &plan);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    bed_revive(bed);
    bed_free(bed);
}

/* A datagram's peer is its own. */
static void test_select_datagram(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_LOCAL_QP_OP_ERR);
    Pair *pair = pair_new(4201, 65536);
    Qp *from = pair_new_ud(pair, 0), *to[2];
    UdAddress address = { .dlid = pair->lab->host[1].config.lid,
                          .qkey = 0x11111111 };
    Sge sge;
    Wc wc;

    for (unsigned i = 0; i < 2; i++) {
        to[i] = pair_new_ud(pair, 1);
        pair_post_recv(pair, 1, to[i], i, 0, 1024);
    }
    plan.rule[0].match_peer_qpn = true;
    plan.rule[0].peer_qpn = to[1]->qpn;
    host_set_faults(&pair->lab->host[0], &plan);
    for (unsigned i = 0; i < 2; i++) {
        SendWr wr = pair_send(pair, 0, SEND, i, &sge, 0, 64, 0);

        address.dqpn = to[i]->qpn;
        wr.ud = &address;
        g_assert_true(qp_post_send(from, &wr, 1));
        cq_expect(pair->cq[0], &wc, i,
                  i ? RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR : 0);
    }
    g_assert_cmpuint(qp_state(from), ==, RDMA_HCA_QP_STATE_SQE);
    pair_free(pair);
}

/* Every third, twice, from the second on. */
static void test_every(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_LOCAL_LENGTH_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_UC);
    unsigned failed = 0;
    Wc wc;

    plan.rule[0].skip = 1;
    plan.rule[0].every = 3;
    plan.rule[0].count = 2;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 1; i <= 12; i++) {
        bed_request(bed, 0, WRITE, 64);
        bed_post_requests(bed, 1);
        g_assert_true(cq_wait(bed->cqs[0], &wc, PAIR_PATIENCE));
        if (wc.syndrome) {
            failed |= 1u << i;
            g_assert_cmphex(qp_sqe_to_rts(bed->qps[0]), ==, 0);
        }
    }
    g_assert_cmphex(failed, ==, 1u << 4 | 1u << 7);
    bed_free(bed);
}

/* A rule's time: not before, not behind. */
static void test_time(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_LOCAL_PROT_ERR);
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    Wc wc;

    plan.rule[0].count = 0;
    plan.rule[0].after_ns = NS_PER_S;
    plan.rule[0].for_ns = NS_PER_S;
    bed_set_faults(bed, 0, &plan);
    pair_check_works(bed->pair, bed->qps, 0);
    bed->lab->now += NS_PER_S;
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    bed->lab->now += NS_PER_S;
    pair_check_works(bed->pair, bed->bystander, 0);
    bed_counted(bed, 0, "verb_fault_send_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* Parsed again when it may be sent again: judged once. */
static void test_parsed_again(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_BAD_RESP_ERR);
    QpAttr attr;
    Bed *bed;
    Wc wc;

    qp_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = bed_new_rc(4202, &attr);
    plan.rule[0].skip = 1;
    bed_set_faults(bed, 0, &plan);
    bed_set_weather(bed, 1, (BedWeather) { .lost = true });
    for (unsigned i = 0; i < 2; i++) {
        bed_request(bed, i, READ, 64);
    }
    bed_post_requests(bed, 2); /* the second one waits for the first */
    bed_run(bed);
    g_assert_cmphex(qp_to_sqd(bed->qps[0], false), ==, 0);
    bed_set_weather(bed, 1, (BedWeather) { .nth = 0 });
    cq_expect(bed->cqs[0], &wc, 0, 0);
    g_assert_cmphex(qp_sqd_to_rts(bed->qps[0]), ==, 0);
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_BAD_RESP_ERR);
    bed_counted(bed, 0, "verb_fault_send_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- breaking ---- */

static void test_break(gconstpointer data)
{
    uint8_t service = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_BREAK, 0);
    struct rdma_hca_eqe eqe;
    Bed *bed = bed_new(service);

    by_qpn(bed, &plan.rule[0]);
    bed_set_faults(bed, 0, &plan);
    bed_post_recvs_on(bed, 0, 10, 2, 64);
    post_three(bed, SEND);
    bed_run(bed);
    g_assert_true(
        driver_event(bed->drv[0], RDMA_HCA_EVENT_WQ_CATAS_ERROR, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.raw[0]), ==, bed->qps[0]->qpn);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    cq_expect_flushed(bed->cqs[0], 10, 2);
    cq_expect_flushed(bed->cqs[0], 0, 3);
    check_peer(bed, NULL);
    bed_counted(bed, 0, "verb_fault_send_break", 1);
    bed_free(bed);
}

/* ---- what is told ---- */

/* The next packet of a capture says so; with two of them, of both. */
static void test_capture(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_SEND_WR, HCA_FAULT_FAIL,
                                  HCA_SYNDROME_BAD_RESP_ERR);
    g_autofree char *note = NULL;
    Bed *bed = bed_new(RDMA_HCA_QP_ST_RC);
    Host *host = &bed->lab->host[0];
    Wc wc;

    hca_start_capture(host->hca);
    bed_set_faults(bed, 0, &plan);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_BAD_RESP_ERR);
    note = g_strdup_printf("fault: send fail 0x%x (rule 0)", bed->qps[0]->qpn);
    g_assert_nonnull(
        memmem(host->capture->data, host->capture->len, note, strlen(note)));
    bed_revive(bed);
    bed_free(bed);
}

static void add_statuses(uint8_t opcode, const char *name)
{
    const HcaFaultStatus *status;

    for (unsigned i = 0; (status = hca_fault_status_at(i)); i++) {
        StatusCase *c;

        if (!status->way || status->syndrome == HCA_SYNDROME_MW_BIND_ERR) {
            continue;
        }
        c = g_new(StatusCase, 1);
        *c = (StatusCase) { status, opcode };
        test_add_data_each_link(
            test_named("/fault-verbs/send/0x%02x/%s", status->syndrome, name),
            c, test_status);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_statuses(SEND, "send");
    add_statuses(SEND_IMM, "send-imm");
    add_statuses(WRITE, "write");
    add_statuses(WRITE_IMM, "write-imm");
    add_statuses(READ, "read");
    add_statuses(FETCH_ADD, "fetch-add");
    add_statuses(CMP_SWAP, "compare-swap");
    test_add("/fault-verbs/send/own-error", test_own_error);
    test_add_each_link("/fault-verbs/send/uc", test_uc);
    test_add("/fault-verbs/send/bind", test_bind_status);
    test_add_each_link("/fault-verbs/send/no-bytes", test_no_bytes);
    for (unsigned i = 0; i < G_N_ELEMENTS(select_cases); i++) {
        test_add_data_each_link(
            test_named("/fault-verbs/send/select/%s", select_cases[i].name),
            &select_cases[i], test_select);
    }
    test_add_each_link("/fault-verbs/send/select/address", test_select_address);
    test_add("/fault-verbs/send/select/datagram", test_select_datagram);
    test_add("/fault-verbs/send/every", test_every);
    test_add("/fault-verbs/send/time", test_time);
    test_add("/fault-verbs/send/parsed-again", test_parsed_again);
    test_add_data_each_link("/fault-verbs/send/break/rc",
                            GUINT_TO_POINTER(RDMA_HCA_QP_ST_RC), test_break);
    test_add_data_each_link("/fault-verbs/send/break/uc",
                            GUINT_TO_POINTER(RDMA_HCA_QP_ST_UC), test_break);
    test_add_each_link("/fault-verbs/send/capture", test_capture);
    return g_test_run();
}
