/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every counter of the engines moves when what it counts happens: WQEs,
 * requests, responses.
 */
#include "lib-counter-events.h"
#include "lib-mem.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define FIRST_PSN 0x123456 /* qp_attr_init()'s */

/* The @n-th packet from now on of machine @from. */
static void treat_nth(Bed *bed, unsigned from, unsigned n, CableFate fate)
{
    bed_set_weather(bed, from, (BedWeather) { .nth = n, .fate = fate });
}

/* Time enough for everything to be given up. */
static void run_long(Bed *bed)
{
    lab_sleep(bed->lab, PAIR_PATIENCE);
}

/* ---- send ---- */

static void test_doorbells(void)
{
    uint32_t low, high;
    Bed *bed;

    bed = events_new_rc(NULL);
    events_request(bed, 0, WRITE, 100);
    g_assert_true(qp_write_send(bed->qps[0], bed->wr, 1, &low, &high));
    qp_ring(bed->qps[0], low,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, 0xabcdef) | (high & 0xff));
    bed_counted(bed, 0, "send_db_bad_qpn", 1);
    host_uar_write64(&bed->lab->host[0], 9 * RDMA_HCA_UAR_PAGE_SIZE,
                     (uint64_t)high << 32 | low);
    bed_counted(bed, 0, "send_db_bad_uar", 1);
    qp_ring(bed->qps[0], low, high);
    bed_counted(bed, 0, "send_qps_scheduled", 1);
    events_look(bed);
    bed_run(bed);
    bed_counted(bed, 0, "send_doorbells", 3);
    bed_counted(bed, 0, "send_wqes", 1);
    bed_counted(bed, 0, "send_qps_scheduled", 0);

    for (unsigned i = 0; i <= bed->qps[0]->sq.entries; i++) {
        qp_ring(bed->qps[0], low, high);
    }
    bed_counted(bed, 0, "send_db_overflow", 1);
    bed_counted(bed, 0, "cxtmgt_event_wq_catas_error", 1);
    bed_run(bed);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    {
        QpAttr attr;

        qp_attr_init(&attr);
        g_assert_cmphex(qp_to_init(bed->qps[0], &attr), ==, 0);
    }
    qp_ring(bed->qps[0], low, high);
    bed_counted(bed, 0, "send_db_bad_state", 1);
    events_look_and_free(bed);
}

/* QPs that allow a peer's FLUSH. */
static Bed *events_new_flush(void)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.access |= RDMA_HCA_ACCESS_FLUSH;
    return events_new_rc(&attr);
}

/* Of a region that allows it, too. */
static void make_flush(Bed *bed, SendWr *wr)
{
    Mr *mr = mr_new(bed->drv[1], bed->pair->pd[1], 0, 4096,
                    RDMA_HCA_ACCESS_FLUSH);

    wr->nsge = 0;
    wr->raddr = mr->va;
    wr->rkey = mr->key;
    wr->flush_len = mr->len;
    wr->flush = RDMA_HCA_FLUSH_TYPE_GLOBAL;
}

/* One WQE of each kind. */
static void test_wqe_opcodes(void)
{
    static const struct {
        uint8_t opcode;
        const char *name;
    } kind[] = {
        { RDMA_HCA_OPCODE_NOP, "send_wqe_nop" },
        { WRITE, "send_wqe_write" },
        { RDMA_HCA_OPCODE_RDMA_WRITE_IMM, "send_wqe_write_imm" },
        { SEND, "send_wqe_send" },
        { RDMA_HCA_OPCODE_SEND_IMM, "send_wqe_send_imm" },
        { READ, "send_wqe_read" },
        { RDMA_HCA_OPCODE_ATOMIC_CS, "send_wqe_cmp_swap" },
        { ADD, "send_wqe_fetch_add" },
        { RDMA_HCA_OPCODE_ATOMIC_WRITE, "send_wqe_atomic_write" },
        { RDMA_HCA_OPCODE_FLUSH, "send_wqe_flush" },
    };
    Bed *bed;

    bed = events_new_flush();
    for (unsigned i = 0; i < G_N_ELEMENTS(kind); i++) {
        events_post_recv(bed, 4096);
        events_request(bed, i, kind[i].opcode, 8);
    }
    make_flush(bed, &bed->wr[G_N_ELEMENTS(kind) - 1]);
    bed_post_requests(bed, G_N_ELEMENTS(kind));
    bed_run(bed);
    for (unsigned i = 0; i < G_N_ELEMENTS(kind); i++) {
        bed_counted(bed, 0, kind[i].name, 1);
    }
    bed_counted(bed, 0, "send_wqes_chained", G_N_ELEMENTS(kind) - 1);
    bed_counted(bed, 0, "send_wqe_good", G_N_ELEMENTS(kind));
    bed_counted(bed, 0, "requester_wqes_completed", G_N_ELEMENTS(kind));
    bed_counted(bed, 1, "responder_sends", 2);
    bed_counted(bed, 1, "responder_writes", 2);
    bed_counted(bed, 1, "responder_reads", 1);
    bed_counted(bed, 1, "responder_atomics", 2);
    bed_counted(bed, 1, "responder_atomic_writes", 1);
    bed_counted(bed, 1, "responder_flushes", 1);
    bed_counted(bed, 1, "responder_executed", 9);
    bed_counted(bed, 1, "responder_receives_completed", 3);
    events_look_and_free(bed);
}

typedef enum BadWqe {
    BAD_PLACE,
    UNREADABLE,
    BAD_OPCODE,
    BAD_UNITS,
    BAD_LENGTH,
    BAD_ENTRY,
    NUM_BAD_WQES
} BadWqe;

static const char *const bad_wqe_name[] = {
    "send_wqe_bad_place", "send_wqe_unreadable", "send_wqe_bad_opcode",
    "send_wqe_bad_units", "send_wqe_bad_length", "send_wqe_bad_entry",
};

static void post_bad(Bed *bed, BadWqe bad)
{
    uint32_t low, high;

    events_request(bed, 0, bad == BAD_LENGTH ? ADD : WRITE, 16);
    switch (bad) {
    case UNREADABLE:
        g_assert_cmphex(mr_deregister(bed->qps[0]->sq.mr), ==, 0);
        break;
    case BAD_OPCODE:
        bed->wr[0].opcode = 0x0c;
        break;
    case BAD_ENTRY:
        bed->sge[0].lkey ^= 0x155;
        break;
    default:
        break;
    }
    g_assert_true(qp_write_send(bed->qps[0], bed->wr, 1, &low, &high));
    if (bad == BAD_PLACE) {
        low |= RDMA_HCA_SEND_DB_SQ_HEAD;
    }
    if (bad == BAD_UNITS) {
        high = (high & ~RDMA_HCA_SEND_DB_SIZE) | 1;
    }
    qp_ring(bed->qps[0], low, high);
}

static void test_wqe_checks(void)
{
    for (unsigned bad = 0; bad < NUM_BAD_WQES; bad++) {
        Bed *bed;

        bed = events_new_rc(NULL);
        post_bad(bed, bad);
        bed_run(bed);
        bed_counted(bed, 0, bad_wqe_name[bad], 1);
        bed_counted(bed, 0, "send_wqe_good", 0);
        bed_counted(bed, 0, "requester_wqes_failed", 1);
        bed_counted(bed, 0, "cxtmgt_error_cqes", 1);
        events_look_and_free(bed);
    }
}

/* ---- requester ---- */

static void test_wait_fence_and_state(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    bed->weather[1].lost = true;
    events_request(bed, 0, READ, 100);
    events_request(bed, 1, WRITE, 100)->flags |= SEND_FENCE;
    bed_post_requests(bed, 2);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_fence");
    bed_counted(bed, 0, "requester_wait_state", 0);
    bed_counted(bed, 0, "requester_rpb_used", 1);
    bed_counted(bed, 0, "requester_reb_used", 1);
    bed_counted(bed, 0, "requester_timers", 1);
    bed_counted(bed, 0, "cxtmgt_event_sq_drained", 0);
    g_assert_cmphex(driver_cmd(bed->drv[0], RDMA_HCA_CMD_RTS2SQD_QPEE, 0,
                               bed->qps[0]->qpn | RDMA_HCA_RTS2SQD_EVENT,
                               RDMA_HCA_MODIFY_NO_INBOX, 0, NULL),
                    ==, 0);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_state");
    bed->weather[1].lost = false;
    run_long(bed);
    events_expect_some(bed, 0, "requester_timeouts");
    events_expect_some(bed, 0, "requester_retransmissions");
    bed_counted(bed, 0, "cxtmgt_event_sq_drained", 1);
    events_look_and_free(bed);
}

static void test_wait_rnr(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.rnr_retry = 2;
    bed = events_new_rc(&attr);
    events_request(bed, 0, SEND, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    events_request(bed, 0, SEND, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "requester_wait_rnr", 1);
    bed_counted(bed, 0, "requester_rnrs_rx", 1);
    bed_counted(bed, 0, "requester_naks_rx", 0);
    run_long(bed);
    bed_counted(bed, 0, "requester_rnrs_rx", 3);
    bed_counted(bed, 0, "requester_rnr_timeouts", 2);
    bed_counted(bed, 0, "requester_rnr_retries_exhausted", 1);
    bed_counted(bed, 0, "requester_wqes_failed", 1);
    bed_counted(bed, 0, "requester_wqes_flushed", 1);
    bed_counted(bed, 1, "responder_rnrs_tx", 3);
    bed_counted(bed, 1, "responder_refused_no_wqe", 3);
    events_look_and_free(bed);
}

static void test_wait_barrier(void)
{
    Bed *bed;
    Mr *mr;

    bed = events_new_rc(NULL);
    mr = mem_region_new(bed->drv[0], bed->pair->pd[0], 1);
    bed->weather[1].lost = true;
    events_request(bed, 0, WRITE, 100);
    bed->wr[1] = mem_inv_wr(mr->key);
    events_request(bed, 2, WRITE, 100);
    bed_post_requests(bed, 3);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_barrier");
    bed->weather[1].lost = false;
    run_long(bed);
    bed_counted(bed, 0, "requester_wqes_completed", 3);
    events_look_and_free(bed);
}

static void test_wait_reads(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = events_new_rc(&attr);
    events_request(bed, 0, READ, 3000);
    events_request(bed, 1, READ, 3000);
    bed_post_requests(bed, 2);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_reads");
    bed_counted(bed, 0, "requester_reads_sent", 2);
    bed_counted(bed, 0, "requester_responses_rx", 6);
    bed_counted(bed, 1, "responder_read_responses_tx", 6);
    bed_counted(bed, 0, "requester_rpb_peak", 1);
    events_look_and_free(bed);
}

/* A Read whose answer takes half of all PSNs. */
static void test_wait_psns(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.mtu = 1;
    bed = events_new_rc(&attr);
    bed->weather[0].lost = true;
    for (unsigned i = 0; i < 2; i++) {
        events_request(bed, i, READ, INT32_MAX);
        bed->sge[i].va = 0;
        bed->sge[i].lkey = i ? bed->sge[0].lkey
                             : driver_physical_region(bed->drv[0],
                                                      bed->pair->pd[0]);
    }
    bed_post_requests(bed, 2);
    bed_run(bed);
    bed_counted(bed, 0, "requester_reads_sent", 1);
    events_expect_some(bed, 0, "requester_wait_psns");
    events_look_and_free(bed);
}

static void test_wait_pools(void)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].swpb_elements = 512;
        config[i].rpb_elements = 1;
        config[i].reb_elements = 32;
    }
    qp_attr_init(&attr);
    attr.retry_cnt = 2;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
    bed = events_new_by(RDMA_HCA_QP_ST_RC, &attr, config);
    bed->weather[0].lost = true;
    events_request(bed, 0, WRITE, 40000);
    events_request(bed, 1, READ, 100);
    bed_post_requests(bed, 2);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_swpb");
    events_expect_some(bed, 0, "requester_swpb_used");
    bed_counted(bed, 0, "requester_qps_waiting", 1);
    events_look(bed);
    run_long(bed);
    bed_counted(bed, 0, "requester_retries_exhausted", 1);
    bed_counted(bed, 0, "requester_wqes_flushed", 1);
    bed_counted(bed, 0, "requester_swpb_used", 0);
    bed_counted(bed, 0, "requester_qps_waiting", 0);

    bed_connect(bed, &bed->config.attr);
    for (unsigned i = 0; i < 12; i++) { /* it has room for some of its own */
        events_request(bed, i, READ, 100);
    }
    bed_post_requests(bed, 12);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_rpb");
    events_look_and_free(bed);
}

/* Until the first answer comes the peer's receives are not known. */
static void test_wait_credits(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    bed_post_recvs(bed, 2, 100);
    for (unsigned i = 0; i < 2; i++) {
        events_request(bed, i, SEND, 100);
    }
    bed_post_requests(bed, 2);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_credits");
    bed_counted(bed, 0, "requester_wqes_completed", 2);
    events_look_and_free(bed);
}

static void test_wait_cable(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    bed->lab->capacity = 2000;
    events_request(bed, 0, WRITE, 60000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    events_expect_some(bed, 0, "requester_wait_cable");
    events_expect_some(bed, 0, "link_tx_waits");
    bed_counted(bed, 0, "requester_wqes_completed", 1);
    events_look_and_free(bed);
}

/* Losses of each kind and what they lead to. */
static void test_losses(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    treat_nth(bed, 0, 2, CABLE_DROP);
    events_request(bed, 0, WRITE, 10000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "requester_naks_rx", 1);
    bed_counted(bed, 0, "requester_nak_rx_psn", 1);
    bed_counted(bed, 1, "responder_naks_tx", 1);
    bed_counted(bed, 1, "responder_nak_tx_psn", 1);
    bed_counted(bed, 1, "responder_refused_psn", 1);
    events_expect_some(bed, 1, "port_drop_psn");
    events_expect_some(bed, 0, "requester_retransmissions");

    /* The answer to a Read; the one to the Write after it tells. */
    treat_nth(bed, 1, 1, CABLE_DROP);
    events_request(bed, 0, READ, 100);
    events_request(bed, 1, WRITE, 100);
    bed_post_requests(bed, 2);
    run_long(bed);
    events_expect_some(bed, 0, "requester_answers_lost");

    treat_nth(bed, 0, 1, CABLE_DUPLICATE);
    events_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    run_long(bed);
    events_expect_some(bed, 1, "responder_duplicates");

    treat_nth(bed, 1, 1, CABLE_DUPLICATE);
    events_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    run_long(bed);
    events_expect_some(bed, 0, "port_drop_duplicate");
    bed_counted(bed, 0, "requester_wqes_failed", 0);
    events_look_and_free(bed);
}

/* ---- responder ---- */

typedef enum Refusal {
    FORBIDDEN,
    ALIGNMENT,
    RESOURCES,
    TOO_LONG,
    ACCESS,
    REMOTE_MEMORY,
    LOCAL_PROT,
    BAD_RECV_WQE,
    BAD_QUEUE,
    CQ_LOST,
    OPCODE,
    LENGTH,
    NUM_REFUSALS
} Refusal;

static const struct {
    const char *counter;
    const char *nak; /* _tx_ and _rx_ */
} refusal_name[] = {
    [FORBIDDEN] = { "responder_refused_forbidden", "invalid" },
    [ALIGNMENT] = { "responder_refused_alignment", "invalid" },
    [RESOURCES] = { "responder_refused_resources", "invalid" },
    [TOO_LONG] = { "responder_refused_too_long", "invalid" },
    [ACCESS] = { "responder_refused_access", "access" },
    [REMOTE_MEMORY] = { "responder_refused_remote_memory", "operation" },
    [LOCAL_PROT] = { "responder_refused_local_prot", "operation" },
    [BAD_RECV_WQE] = { "responder_refused_bad_wqe", "operation" },
    [BAD_QUEUE] = { "responder_refused_bad_queue", "operation" },
    [CQ_LOST] = { "responder_refused_cq_lost", "operation" },
    [OPCODE] = { "responder_refused_opcode", "invalid" },
    [LENGTH] = { "responder_refused_length", "invalid" },
};

/* What is wrong with the events_request itself. */
static void break_request(Bed *bed, Refusal refusal)
{
    SendWr *wr = &bed->wr[0];

    switch (refusal) {
    case ALIGNMENT:
        events_request(bed, 0, ADD, 8)->raddr += 4;
        break;
    case RESOURCES:
        for (unsigned i = 0; i < 8; i++) {
            events_request(bed, i, READ, 8);
        }
        break;
    case ACCESS:
        wr->rkey ^= 0x155;
        break;
    case REMOTE_MEMORY:
        wr->rkey = driver_physical_region(bed->drv[1], bed->pair->pd[1]);
        wr->raddr = HOST_MMIO_BASE;
        break;
    case FORBIDDEN:
        break;
    default:
        events_request(bed, 0, SEND, 100);
    }
}

/* What is wrong with what receives it. */
static void break_receiver(Bed *bed, Refusal refusal)
{
    Sge sge = mr_sge(bed->pair->mr[1], 0, 4096);
    RecvWr recv = { .nsge = 1, .sge = &sge };

    switch (refusal) {
    case TOO_LONG:
        sge.len = 50;
        break;
    case LOCAL_PROT:
        sge.lkey ^= 0x155;
        break;
    case BAD_RECV_WQE:
        sge.len |= RDMA_HCA_MAX_BYTE_CNT; /* and more */
        break;
    default:
        break;
    }
    g_assert_true(qp_post_recv(bed->qps[1], &recv, 1));
    if (refusal == BAD_QUEUE) {
        g_assert_cmphex(mr_deregister(bed->qps[1]->rq.mr), ==, 0);
    }
    if (refusal == CQ_LOST) {
        g_assert_cmphex(mr_deregister(bed->cqs[1]->mr), ==, 0);
    }
}

static void inject_refused(Bed *bed, Refusal refusal)
{
    HcaPacket packet = events_forge(
        bed, refusal == OPCODE ? HCA_WRITE_MIDDLE : HCA_WRITE_ONLY, FIRST_PSN);

    packet.dma_len = 50;
    packet.payload_len = 60;
    bed_put_from(bed, 0, &packet);
}

static void test_refusals(void)
{
    for (unsigned refusal = 0; refusal < NUM_REFUSALS; refusal++) {
        g_autofree char *nak_tx = NULL, *nak_rx = NULL;
        QpAttr attr;
        Bed *bed;

        qp_attr_init(&attr);
        attr.access = refusal == FORBIDDEN ? 0 : attr.access;
        attr.max_dest_rd_atomic = refusal == RESOURCES ? 1 : 4;
        bed = events_new_rc(&attr);
        break_receiver(bed, refusal);
        events_request(bed, 0, WRITE, 100);
        break_request(bed, refusal);
        if (refusal >= OPCODE) {
            /* One that is outstanding, so that the NAK means something. */
            bed->weather[0].lost = true;
            bed_post_requests(bed, 1);
            bed_run(bed);
            inject_refused(bed, refusal);
        } else {
            bed_post_requests(bed, refusal == RESOURCES ? 8 : 1);
        }
        bed_run(bed);
        bed_counted(bed, 1, refusal_name[refusal].counter, 1);
        nak_tx = g_strdup_printf("responder_nak_tx_%s",
                                 refusal_name[refusal].nak);
        nak_rx = g_strdup_printf("requester_nak_rx_%s",
                                 refusal_name[refusal].nak);
        bed_counted(bed, 1, nak_tx, 1);
        bed_counted(bed, 1, "responder_naks_tx", 1);
        bed_counted(bed, 0, nak_rx, 1);
        bed_counted(bed, 0, "requester_naks_rx", 1);
        events_look_and_free(bed);
    }
}

/* NAK codes that no card of ours sends. */
static void test_foreign_naks(void)
{
    for (unsigned code = HCA_NAK_INVALID_RD; code < 0x20; code += 27) {
        HcaPacket nak;
        Bed *bed;

        bed = events_new_rc(NULL);
        bed->weather[1].lost = true;
        /* Side 1 asks here: what is injected goes there. */
        bed->wr[0] = pair_send(bed->pair, 1, WRITE, 0, &bed->sge[0], 0, 8, 0);
        g_assert_true(qp_post_send(bed->qps[1], bed->wr, 1));
        bed_run(bed);
        nak = events_forge(bed, HCA_ACK, FIRST_PSN);
        nak.syndrome = HCA_AETH(HCA_AETH_NAK, code);
        bed_inject(bed, 0, &nak);
        bed_counted(bed, 1,
                    code == HCA_NAK_INVALID_RD ? "requester_nak_rx_rd"
                                               : "requester_nak_rx_reserved",
                    1);
        events_look_and_free(bed);
    }
}

/* Responses and flushes. */
static void test_receives(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    for (unsigned i = 0; i < 4; i++) {
        events_post_recv(bed, 50);
    }
    events_request(bed, 0, WRITE, 8);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "responder_acks_tx", 1);
    bed_counted(bed, 0, "requester_acks_rx", 1);
    events_request(bed, 0, ADD, 8);
    events_request(bed, 1, READ, 5000);
    events_request(bed, 2, SEND, 50);
    events_request(bed, 3, SEND, 51);
    bed_post_requests(bed, 4);
    run_long(bed);
    bed_counted(bed, 1, "responder_atomic_responses_tx", 1);
    bed_counted(bed, 1, "responder_read_responses_tx", 5);
    bed_counted(bed, 1, "responder_receives_completed", 1);
    bed_counted(bed, 1, "responder_receives_failed", 1);
    bed_counted(bed, 1, "responder_receives_flushed", 2);
    events_expect_some(bed, 1, "responder_rq_fetches");
    events_expect_some(bed, 1, "responder_rq_record_reads");
    events_look_and_free(bed);
}

static void test_response_queue(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    events_request(bed, 0, READ, 60000);
    bed_post_requests(bed, 1);
    while (!bed_counter(bed, 1, "responder_qps_scheduled")) {
        g_assert_true(lab_step(bed->lab));
    }
    events_look(bed);
    bed_run(bed);
    bed_counted(bed, 1, "responder_qps_scheduled", 0);
    events_look_and_free(bed);
}

/* ---- RoCE ---- */

static void test_xrc(void)
{
    QpConfig config;
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Bed *bed;
    Sge sge;

    bed = events_new_rc(NULL);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, bed->pair->pd[i], bed->cqs[i]);
        config.service = i ? RDMA_HCA_QP_ST_XRC_TGT : RDMA_HCA_QP_ST_XRC_INI;
        config.sq_entries = i ? 0 : config.sq_entries;
        config.rq_entries = 0;
        qp[i] = qp_new(bed->drv[i], &config);
    }
    qp_connect(qp[0], qp[1], &attr);
    wr = pair_send(bed->pair, 0, RDMA_HCA_OPCODE_SEND, 0, &sge, 0, 0, 0);
    wr.xrc = true;
    wr.srqn = 7;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    bed_run(bed);
    bed_counted(bed, 1, "responder_refused_xrc_srq", 1);
    bed_counted(bed, 1, "responder_nak_tx_invalid", 1);
    bed_counted(bed, 0, "requester_nak_rx_invalid", 1);
    events_look_and_free(bed);
}

static void test_roce_congestion(void)
{
    HcaConfig cards[2];
    Bed *bed;

    for (unsigned i = 0; i < 2; i++) {
        lab_config_roce(&cards[i], i);
        cards[i].osq_per_qp = 4; /* less than a turn sends */
    }
    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, cards);
    bed_set_weather(bed, 0, (BedWeather) { .mark = true });
    for (unsigned i = 0; i < 20; i++) {
        bed_request(bed, i, WRITE, 64);
    }
    bed_post_requests(bed, 20);
    bed_run(bed);
    lab_sleep(bed->lab, NS_PER_MS);
    bed_counted(bed, 1, "responder_ecn_marked_rx", 20);
    bed_counted(bed, 1, "responder_cnp_tx", 1);
    bed_counted(bed, 0, "requester_cnp_rx", 1);
    bed_counted(bed, 0, "requester_limit_halved", 1);
    bed_counted(bed, 0, "requester_limit_restored", 1);
    bed_counted(bed, 0, "cxtmgt_event_congestion", 1);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_outstanding"), >, 0);
    events_look_and_free(bed);
}

/* ---- verb_fault ---- */

typedef struct VerbFault {
    HcaFaultPlace place;
    HcaFaultAction action;
    uint8_t status;
    unsigned side;
    uint8_t syndrome; /* of a Send from side 0 */
    const char *counter;
} VerbFault;

static const VerbFault verb_faults[] = {
    { HCA_FAULT_SEND_WR, HCA_FAULT_FAIL, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 0,
      RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, "send_fail" },
    { HCA_FAULT_SEND_WR, HCA_FAULT_BREAK, 0, 0, RDMA_HCA_SYNDROME_WR_FLUSH_ERR,
      "send_break" },
    { HCA_FAULT_RECEIVE, HCA_FAULT_FAIL, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 1,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, "receive_fail" },
    { HCA_FAULT_RECEIVE, HCA_FAULT_BREAK, 0, 1, RDMA_HCA_SYNDROME_REMOTE_OP_ERR,
      "receive_break" },
    { HCA_FAULT_RECEIVE, HCA_FAULT_RNR, 0, 1, 0, "receive_rnr" },
    { HCA_FAULT_REQUEST, HCA_FAULT_FAIL, RDMA_HCA_SYNDROME_REMOTE_OP_ERR, 1,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, "request_fail" },
    { HCA_FAULT_REQUEST, HCA_FAULT_DROP, 0, 1, 0, "request_drop" },
    { HCA_FAULT_ANSWER, HCA_FAULT_DROP, 0, 1, 0, "answer_drop" },
    { HCA_FAULT_ANSWER, HCA_FAULT_DELAY, 0, 1, 0, "answer_delay" },
    { HCA_FAULT_COMPLETION, HCA_FAULT_FAIL, 0, 1,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, "completion_fail" },
    { HCA_FAULT_COMPLETION, HCA_FAULT_OVERFLOW, 0, 1,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, "completion_overflow" },
};

/* Rules that have their time, or have the link go down at a packet. */
static void test_script(void)
{
    HcaFaultPlan plan = {
        .nrules = 5,
        .rule = { { .place = HCA_FAULT_CARD,
                    .action = HCA_FAULT_RAISE,
                    .event = HCA_FAULT_PATH_MIG,
                    .match_qpn = true },
                  { .place = HCA_FAULT_CARD,
                    .action = HCA_FAULT_RAISE,
                    .event = HCA_FAULT_PATH_MIG_ERR,
                    .match_qpn = true },
                  { .place = HCA_FAULT_CARD,
                    .action = HCA_FAULT_DOWN,
                    .count = 1,
                    .down = { .down_ns = NS_PER_MS,
                              .ends = HCA_FAULT_OWN_END } },
                  { .action = HCA_FAULT_DOWN,
                    .directions = 1u << HCA_FAULT_TX,
                    .count = 1,
                    .skip = 1,
                    .down = { .down_ns = NS_PER_MS } },
                  { .action = HCA_FAULT_DOWN,
                    .directions = 1u << HCA_FAULT_RX,
                    .count = 1,
                    .skip = 2,
                    .down = { .down_ns = NS_PER_MS } } },
    };
    Bed *bed = events_new_rc(NULL);
    Sge sge;
    SendWr wr = pair_send(bed->pair, 1, WRITE, 0, &sge, 0, 64, 0);

    for (unsigned i = 0; i < plan.nrules; i++) {
        plan.rule[i].qpn = bed->qps[0]->qpn;
        plan.rule[i].probability = HCA_FAULT_ALWAYS;
        plan.rule[i].offset = -1;
    }
    bed_set_faults(bed, 0, &plan);
    bed_run(bed);
    g_assert_true(qp_post_send(bed->qps[1], &wr, 1));
    bed_expect_end(bed, 1, 0);
    for (unsigned i = 0; i < 6; i++) {
        events_request(bed, 0, WRITE, 64);
        bed_post_requests(bed, 1);
        bed_expect_end(bed, 0, 0);
    }
    bed_counted(bed, 0, "verb_fault_card_raise", 2);
    bed_counted(bed, 0, "verb_fault_card_down", 1);
    bed_counted(bed, 0, "verb_fault_all", 3);
    bed_counted(bed, 0, "fault_tx_down", 1);
    bed_counted(bed, 0, "fault_rx_down", 1);
    bed_counted(bed, 0, "fault_all", 2);
    events_expect_some(bed, 0, "link_rx_unheard");
    events_look_and_free(bed);
}

static void test_verb_faults(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(verb_faults); i++) {
        const VerbFault *f = &verb_faults[i];
        HcaFaultPlan plan = {
            .nrules = 1,
            .rule[0] = { .place = f->place,
                         .action = f->action,
                         .status = f->status,
                         .delay_ns = NS_PER_MS,
                         .probability = HCA_FAULT_ALWAYS,
                         .count = 1 },
        };
        g_autofree char *name = g_strdup_printf("verb_fault_%s", f->counter);
        Bed *bed = events_new_rc(NULL);

        bed_set_faults(bed, f->side, &plan);
        events_post_recv(bed, 64);
        events_request(bed, 0, SEND, 64);
        bed_post_requests(bed, 1);
        bed_expect_end(bed, 0, f->syndrome);
        bed_counted(bed, f->side, name, 1);
        events_look_and_free(bed);
    }
}

static const EventsTest tests[] = {
    { "send/doorbells", test_doorbells },
    { "send/wqe-opcodes", test_wqe_opcodes },
    { "send/wqe-checks", test_wqe_checks },
    { "send/memory-management", events_memory_management },
    { "requester/wait-fence-and-state", test_wait_fence_and_state },
    { "requester/wait-rnr", test_wait_rnr },
    { "requester/wait-barrier", test_wait_barrier },
    { "requester/wait-reads", test_wait_reads },
    { "requester/wait-psns", test_wait_psns },
    { "requester/wait-pools", test_wait_pools },
    { "requester/wait-credits", test_wait_credits },
    { "requester/wait-cable", test_wait_cable },
    { "requester/losses", test_losses },
    { "responder/refusals", test_refusals },
    { "responder/foreign-naks", test_foreign_naks },
    { "responder/receives", test_receives },
    { "responder/queue", test_response_queue },
    { "responder/xrc", test_xrc },
    { "roce/congestion", test_roce_congestion },
    { "verb-faults", test_verb_faults },
    { "script", test_script },
};

int main(int argc, char **argv)
{
    const EventsProgram program = { EVENTS_ENGINES, tests,
                                    G_N_ELEMENTS(tests) };

    return events_main(argc, argv, &program);
}
