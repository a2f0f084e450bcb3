/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every counter moves when what it counts happens. Each test makes some
 * things happen and checks the counters of those; the last one asks whether
 * all of the table has moved.
 */
#include <string.h>

#include "lib-card.h"
#include "../counters.h"
#include "../link/framing.h"
#include "../wire/crc.h"
#include "lib-bed.h"
#include "lib-nic.h"
#include "lib-pair.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define FIRST_PSN 0x123456 /* qp_attr_init()'s */
#define MR_LEN 65536

/* Counters that were not 0 in some test. */
static bool *moved;

/* The @n-th packet from now on of machine @from. */
static void treat_nth(Bed *bed, unsigned from, unsigned n, CableFate fate)
{
    bed_set_weather(bed, from, (BedWeather) { .nth = n, .fate = fate });
}

static Bed *bed_new_by(uint8_t service, const QpAttr *attr,
                       const HcaConfig *cards)
{
    BedConfig config = bed_connection(service);

    config.seed = 77;
    config.bystander = false;
    config.own_cq = false;
    config.cards = cards;
    if (attr) {
        config.attr = *attr;
    }
    return bed_new_as(&config);
}

/* Two connected QPs. */
static Bed *bed_new_rc(const QpAttr *attr)
{
    return bed_new_by(RDMA_HCA_QP_ST_RC, attr, NULL);
}

static void look_lab(Lab *lab)
{
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < hca_counters_number(); i++) {
            HcaCounter counter;

            hca_counter_get(lab->host[side].hca, i, &counter);
            moved[i] |= counter.value != 0;
        }
    }
}

static void look(Bed *bed)
{
    look_lab(bed->lab);
}

static void look_and_free(Bed *bed)
{
    look(bed);
    bed_free(bed);
}

static void expect_some(const Bed *bed, unsigned side, const char *name)
{
    if (!bed_counter(bed, side, name)) {
        g_error("%s of side %u is 0", name, side);
    }
}

/* Request @i of the bed, from side 0, to be posted by bed_post_requests(). */
static SendWr *request(Bed *bed, unsigned i, uint8_t opcode, uint32_t len)
{
    /* Atomics want an aligned address. */
    uint64_t aligned = 4096 - (bed->pair->mr[1]->va & 4095);

    bed->wr[i] = pair_send(bed->pair, 0, opcode, i, &bed->sge[i], 0, len,
                           aligned);
    return &bed->wr[i];
}

static void post_recv(Bed *bed, uint32_t len)
{
    pair_post_recv(bed->pair, 1, bed->qps[1], 0, 0, len);
}

/* Time enough for everything to be given up. */
static void run_long(Bed *bed)
{
    lab_sleep(bed->lab, PAIR_PATIENCE);
}

static uint8_t cmd(Bed *bed, uint16_t op, uint32_t in_modifier)
{
    return driver_cmd(bed->drv[0], op, 0, in_modifier, 0, 0, NULL);
}

/* ---- ceu ---- */

/* Each command and status by its name. */
static void test_commands(void)
{
    Bed *bed;
    uint64_t before;

    bed = bed_new_rc(NULL);
    for (unsigned op = 0; op < 0x1000; op++) {
        const char *name = hca_ceu_command_name(op);
        g_autofree char *counter = NULL;
        g_autofree char *lower = NULL;

        if (!name) {
            before = bed_counter(bed, 0, "ceu_unknown");
            g_assert_cmphex(cmd(bed, op, 0), ==, RDMA_HCA_STAT_BAD_OP);
            bed_counted(bed, 0, "ceu_unknown", before + 1);
            op |= 0x3f; /* not all of them: it takes long */
            continue;
        }
        lower = g_ascii_strdown(name, -1);
        counter = g_strdup_printf("ceu_cmd_%s", lower);
        before = bed_counter(bed, 0, counter);
        cmd(bed, op, 0);
        bed_counted(bed, 0, counter, before + 1);
    }
    for (unsigned op = 0; op < 0x1000; op++) {
        if (hca_ceu_command_name(op)) {
            cmd(bed, op, 0);
        }
    }
    look_and_free(bed);
}

static void test_statuses(void)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = GUINT32_TO_BE(31), /* 2^31 QPs */
    };
    struct rdma_hca_resize_cq resize = { 0 };
    struct rdma_hca_eqc eqc = {
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_EQC_OWNER, RDMA_HCA_EQ_OWNER_HW) |
            RDMA_HCA_EQC_TR |
            RDMA_HCA_PREP(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_ARMED)),
    };
    Driver *drv;
    Bed *bed;

    bed = bed_new_rc(NULL);
    drv = bed->drv[0];
    cmd(bed, RDMA_HCA_CMD_INIT_HCA, 0);
    bed_counted(bed, 0, "ceu_status_bad_sys_state", 1);
    cmd(bed, RDMA_HCA_CMD_HW2SW_CQ, bed->cqs[0]->cqn);
    bed_counted(bed, 0, "ceu_status_resource_busy", 1);
    cmd(bed, RDMA_HCA_CMD_HW2SW_MPT, (1u << drv->log_mpts) - 1);
    bed_counted(bed, 0, "ceu_status_bad_res_state", 1);
    cmd(bed, RDMA_HCA_CMD_HW2SW_MPT, UINT32_MAX);
    bed_counted(bed, 0, "ceu_status_bad_index", 1);
    driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), drv->eq[0].eqn,
                  0);
    bed_counted(bed, 0, "ceu_status_bad_resource", 1);
    driver_cmd(drv, RDMA_HCA_CMD_RTS2SQD_QPEE, 0, 99, RDMA_HCA_MODIFY_NO_INBOX,
               0, NULL);
    bed_counted(bed, 0, "ceu_status_bad_qp_state", 1);
    bed_counted(bed, 0, "cxtmgt_transitions_refused", 1);
    for (unsigned i = 0; i < 2; i++) {
        request(bed, i, WRITE, 8);
    }
    bed_post_requests(bed, 2);
    bed_run(bed);
    resize.lkey = GUINT32_TO_BE(bed->cqs[0]->mr->key);
    driver_cmd_in(drv, RDMA_HCA_CMD_RESIZE_CQ, &resize, sizeof(resize),
                  bed->cqs[0]->cqn, 0);
    bed_counted(bed, 0, "ceu_status_bad_size", 1);
    bed_counted(bed, 0, "ceu_mailboxes_refused", 0);
    driver_cmd(drv, RDMA_HCA_CMD_QUERY_FW, 0, 0, 0, HOST_MMIO_BASE, NULL);
    bed_counted(bed, 0, "ceu_mailboxes_refused", 1);
    driver_cmd(drv, RDMA_HCA_CMD_QUERY_FW, 0, 0, 0, 1, NULL);
    driver_cmd(drv, RDMA_HCA_CMD_SW2HW_EQ, HOST_MMIO_BASE, 0, 0, 0, NULL);
    bed_counted(bed, 0, "ceu_mailboxes_refused", 3);
    bed_counted(bed, 0, "ceu_status_bad_param", 3);

    look(bed);
    host_reset(&bed->lab->host[0]);
    driver_cmd_in(drv, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0);
    bed_counted(bed, 0, "ceu_status_exceed_lim", 1);
    init.qpc_base_l = 0;
    driver_cmd_in(drv, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0);
    driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), 0, 0);
    bed_counted(bed, 0, "ceu_status_bad_seg_param", 1);
    bed_counted(bed, 0, "cxtmgt_icm_write_errors", 1);
    bed_counted(bed, 0, "ceu_status_ok", 1);
    bed_counted(bed, 0, "ceu_commands", 3);
    look_and_free(bed);
}

static void test_busy_registers(void)
{
    Host *host;
    Bed *bed;

    bed = bed_new_rc(NULL);
    host = &bed->lab->host[0];
    host_bar0_write(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO |
                        RDMA_HCA_PREP(RDMA_HCA_HCR_OP, RDMA_HCA_CMD_NOP));
    for (unsigned reg = 0; reg < RDMA_HCA_HCR_SIZE; reg += 4) {
        host_bar0_write(host, RDMA_HCA_HCR + reg, 0);
    }
    bed_counted(bed, 0, "ceu_ignored_writes", RDMA_HCA_HCR_SIZE / 4);
    bed_run(bed);
    look_and_free(bed);
}

/* ---- send ---- */

static void test_doorbells(void)
{
    uint32_t low, high;
    Bed *bed;

    bed = bed_new_rc(NULL);
    request(bed, 0, WRITE, 100);
    g_assert_true(qp_write_send(bed->qps[0], bed->wr, 1, &low, &high));
    qp_ring(bed->qps[0], low,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, 0xabcdef) | (high & 0xff));
    bed_counted(bed, 0, "send_db_bad_qpn", 1);
    host_uar_write64(&bed->lab->host[0], 9 * RDMA_HCA_UAR_PAGE_SIZE,
                     (uint64_t)high << 32 | low);
    bed_counted(bed, 0, "send_db_bad_uar", 1);
    qp_ring(bed->qps[0], low, high);
    bed_counted(bed, 0, "send_qps_scheduled", 1);
    look(bed);
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
    look_and_free(bed);
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
    };
    Bed *bed;

    bed = bed_new_rc(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(kind); i++) {
        post_recv(bed, 4096);
        request(bed, i, kind[i].opcode, 8);
    }
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
    bed_counted(bed, 1, "responder_executed", 7);
    bed_counted(bed, 1, "responder_receives_completed", 3);
    look_and_free(bed);
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

    request(bed, 0, bad == BAD_LENGTH ? ADD : WRITE, 16);
    switch (bad) {
    case UNREADABLE:
        g_assert_cmphex(mr_deregister(bed->qps[0]->sq.mr), ==, 0);
        break;
    case BAD_OPCODE:
        bed->wr[0].opcode = RDMA_HCA_OPCODE_BIND_MW;
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

        bed = bed_new_rc(NULL);
        post_bad(bed, bad);
        bed_run(bed);
        bed_counted(bed, 0, bad_wqe_name[bad], 1);
        bed_counted(bed, 0, "send_wqe_good", 0);
        bed_counted(bed, 0, "requester_wqes_failed", 1);
        bed_counted(bed, 0, "cxtmgt_error_cqes", 1);
        look_and_free(bed);
    }
}

/* ---- requester ---- */

static void test_wait_fence_and_state(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    bed->weather[1].lost = true;
    request(bed, 0, READ, 100);
    request(bed, 1, WRITE, 100)->flags |= SEND_FENCE;
    bed_post_requests(bed, 2);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_fence");
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
    expect_some(bed, 0, "requester_wait_state");
    bed->weather[1].lost = false;
    run_long(bed);
    expect_some(bed, 0, "requester_timeouts");
    expect_some(bed, 0, "requester_retransmissions");
    bed_counted(bed, 0, "cxtmgt_event_sq_drained", 1);
    look_and_free(bed);
}

static void test_wait_rnr(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.rnr_retry = 2;
    bed = bed_new_rc(&attr);
    request(bed, 0, SEND, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    request(bed, 0, SEND, 100);
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
    look_and_free(bed);
}

static void test_wait_barrier(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    bed->weather[1].lost = true;
    for (unsigned i = 0; i < 3; i++) {
        request(bed, i, i == 1 ? RDMA_HCA_OPCODE_NOP : WRITE, 100);
    }
    bed_post_requests(bed, 3);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_barrier");
    bed->weather[1].lost = false;
    run_long(bed);
    bed_counted(bed, 0, "requester_wqes_completed", 3);
    look_and_free(bed);
}

static void test_wait_reads(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.max_rd_atomic = 1;
    bed = bed_new_rc(&attr);
    request(bed, 0, READ, 3000);
    request(bed, 1, READ, 3000);
    bed_post_requests(bed, 2);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_reads");
    bed_counted(bed, 0, "requester_reads_sent", 2);
    bed_counted(bed, 0, "requester_responses_rx", 6);
    bed_counted(bed, 1, "responder_read_responses_tx", 6);
    bed_counted(bed, 0, "requester_rpb_peak", 1);
    look_and_free(bed);
}

/* A Read whose answer takes half of all PSNs. */
static void test_wait_psns(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.mtu = 1;
    bed = bed_new_rc(&attr);
    bed->weather[0].lost = true;
    for (unsigned i = 0; i < 2; i++) {
        request(bed, i, READ, INT32_MAX);
        bed->sge[i].va = 0;
        bed->sge[i].lkey = i ? bed->sge[0].lkey
                             : driver_physical_region(bed->drv[0],
                                                      bed->pair->pd[0]);
    }
    bed_post_requests(bed, 2);
    bed_run(bed);
    bed_counted(bed, 0, "requester_reads_sent", 1);
    expect_some(bed, 0, "requester_wait_psns");
    look_and_free(bed);
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
    bed = bed_new_by(RDMA_HCA_QP_ST_RC, &attr, config);
    bed->weather[0].lost = true;
    request(bed, 0, WRITE, 40000);
    request(bed, 1, READ, 100);
    bed_post_requests(bed, 2);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_swpb");
    expect_some(bed, 0, "requester_swpb_used");
    bed_counted(bed, 0, "requester_qps_waiting", 1);
    look(bed);
    run_long(bed);
    bed_counted(bed, 0, "requester_retries_exhausted", 1);
    bed_counted(bed, 0, "requester_wqes_flushed", 1);
    bed_counted(bed, 0, "requester_swpb_used", 0);
    bed_counted(bed, 0, "requester_qps_waiting", 0);

    bed_connect(bed, &bed->config.attr);
    request(bed, 0, READ, 100);
    request(bed, 1, READ, 100);
    bed_post_requests(bed, 2);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_rpb");
    look_and_free(bed);
}

/* Until the first answer comes the peer's receives are not known. */
static void test_wait_credits(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    bed_post_recvs(bed, 2, 100);
    for (unsigned i = 0; i < 2; i++) {
        request(bed, i, SEND, 100);
    }
    bed_post_requests(bed, 2);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_credits");
    bed_counted(bed, 0, "requester_wqes_completed", 2);
    look_and_free(bed);
}

static void test_wait_cable(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    bed->lab->capacity = 2000;
    request(bed, 0, WRITE, 60000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    expect_some(bed, 0, "requester_wait_cable");
    expect_some(bed, 0, "link_tx_waits");
    bed_counted(bed, 0, "requester_wqes_completed", 1);
    look_and_free(bed);
}

/* Losses of each kind and what they lead to. */
static void test_losses(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    treat_nth(bed, 0, 2, CABLE_DROP);
    request(bed, 0, WRITE, 10000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "requester_naks_rx", 1);
    bed_counted(bed, 0, "requester_nak_rx_psn", 1);
    bed_counted(bed, 1, "responder_naks_tx", 1);
    bed_counted(bed, 1, "responder_nak_tx_psn", 1);
    bed_counted(bed, 1, "responder_refused_psn", 1);
    expect_some(bed, 1, "port_drop_psn");
    expect_some(bed, 0, "requester_retransmissions");

    /* The answer to a Read; the one to the Write after it tells. */
    treat_nth(bed, 1, 1, CABLE_DROP);
    request(bed, 0, READ, 100);
    request(bed, 1, WRITE, 100);
    bed_post_requests(bed, 2);
    run_long(bed);
    expect_some(bed, 0, "requester_answers_lost");

    treat_nth(bed, 0, 1, CABLE_DUPLICATE);
    request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    run_long(bed);
    expect_some(bed, 1, "responder_duplicates");

    treat_nth(bed, 1, 1, CABLE_DUPLICATE);
    request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    run_long(bed);
    expect_some(bed, 0, "port_drop_duplicate");
    bed_counted(bed, 0, "requester_wqes_failed", 0);
    look_and_free(bed);
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

/* A packet from side 0 to the QP of side 1 that is right as far as it goes. */
static HcaPacket forge(Bed *bed, uint8_t opcode, uint32_t psn)
{
    return (HcaPacket) {
        .opcode = opcode,
        .dlid = bed->lab->host[1].config.lid,
        .slid = bed->lab->host[0].config.lid,
        .pkey = HCA_DEFAULT_PKEY,
        .dest_qp = bed->qps[1]->qpn,
        .psn = psn,
        .ack_req = true,
        .rkey = bed->pair->mr[1]->key,
        .va = bed->pair->mr[1]->va,
        .qkey = 0x11111111,
    };
}

static void inject_bytes(Bed *bed, const uint8_t *packet, size_t len,
                         uint8_t marks)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    header[0] |= marks;
    lab_cable_inject(bed->lab, 0, header, sizeof(header));
    lab_cable_inject(bed->lab, 0, packet, len);
}

static size_t build(HcaPacket *packet, uint8_t *bytes)
{
    size_t len;

    memset(bytes, 0, HCA_MAX_PACKET_SIZE);
    len = hca_ib_build(packet, bytes) + packet->payload_len;
    return hca_ib_seal(packet, bytes, len);
}

/* What is wrong with the request itself. */
static void break_request(Bed *bed, Refusal refusal)
{
    SendWr *wr = &bed->wr[0];

    switch (refusal) {
    case ALIGNMENT:
        request(bed, 0, ADD, 8)->raddr += 4;
        break;
    case RESOURCES:
        for (unsigned i = 0; i < 8; i++) {
            request(bed, i, READ, 8);
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
        request(bed, 0, SEND, 100);
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
        sge.len |= RDMA_HCA_INLINE;
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
    HcaPacket packet = forge(
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
        bed = bed_new_rc(&attr);
        break_receiver(bed, refusal);
        request(bed, 0, WRITE, 100);
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
        look_and_free(bed);
    }
}

/* NAK codes that no card of ours sends. */
static void test_foreign_naks(void)
{
    for (unsigned code = HCA_NAK_INVALID_RD; code < 0x20; code += 27) {
        HcaPacket nak;
        Bed *bed;

        bed = bed_new_rc(NULL);
        bed->weather[1].lost = true;
        /* Side 1 asks here: what is injected goes there. */
        bed->wr[0] = pair_send(bed->pair, 1, WRITE, 0, &bed->sge[0], 0, 8, 0);
        g_assert_true(qp_post_send(bed->qps[1], bed->wr, 1));
        bed_run(bed);
        nak = forge(bed, HCA_ACK, FIRST_PSN);
        nak.syndrome = HCA_AETH(HCA_AETH_NAK, code);
        bed_inject(bed, 0, &nak);
        bed_counted(bed, 1,
                    code == HCA_NAK_INVALID_RD ? "requester_nak_rx_rd"
                                               : "requester_nak_rx_reserved",
                    1);
        look_and_free(bed);
    }
}

/* Responses and flushes. */
static void test_receives(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    for (unsigned i = 0; i < 4; i++) {
        post_recv(bed, 50);
    }
    request(bed, 0, WRITE, 8);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "responder_acks_tx", 1);
    bed_counted(bed, 0, "requester_acks_rx", 1);
    request(bed, 0, ADD, 8);
    request(bed, 1, READ, 5000);
    request(bed, 2, SEND, 50);
    request(bed, 3, SEND, 51);
    bed_post_requests(bed, 4);
    run_long(bed);
    bed_counted(bed, 1, "responder_atomic_responses_tx", 1);
    bed_counted(bed, 1, "responder_read_responses_tx", 5);
    bed_counted(bed, 1, "responder_receives_completed", 1);
    bed_counted(bed, 1, "responder_receives_failed", 1);
    bed_counted(bed, 1, "responder_receives_flushed", 2);
    expect_some(bed, 1, "responder_rq_fetches");
    expect_some(bed, 1, "responder_rq_record_reads");
    look_and_free(bed);
}

static void test_response_queue(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    request(bed, 0, READ, 60000);
    bed_post_requests(bed, 1);
    while (!bed_counter(bed, 1, "responder_qps_scheduled")) {
        g_assert_true(lab_step(bed->lab));
    }
    look(bed);
    bed_run(bed);
    bed_counted(bed, 1, "responder_qps_scheduled", 0);
    look_and_free(bed);
}

/* ---- cxtmgt ---- */

static void test_cq(void)
{
    Bed *bed;
    Cq *cq;

    bed = bed_new_rc(NULL);
    /* Two more: one of them has a consumer-index record. */
    for (unsigned i = 0; i < 3; i++) {
        cq = cq_new(bed->drv[0], 1, 2);
        if (cq->ci_record) {
            break;
        }
    }
    g_assert_cmpuint(cq->ci_record, !=, 0);
    bed->cqs[0] = cq;
    bed_connect(bed, &bed->config.attr);
    cq_arm(cq, false);
    bed_counted(bed, 0, "cxtmgt_cq_doorbells", 1);
    for (unsigned i = 0; i < 3; i++) {
        request(bed, i, WRITE, 8);
    }
    bed_post_requests(bed, 3);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_cqes", 2);
    bed_counted(bed, 0, "cxtmgt_event_comp", 1);
    expect_some(bed, 0, "cxtmgt_interrupts");
    expect_some(bed, 0, "cxtmgt_cq_ci_reads");
    bed_counted(bed, 0, "cxtmgt_cq_overruns", 1);
    bed_counted(bed, 0, "cxtmgt_cqes_lost", 1);
    bed_counted(bed, 0, "cxtmgt_event_cq_error", 1);
    look_and_free(bed);
}

static void test_moderation(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    g_assert_cmphex(cq_moderate(bed->cqs[0], 2, 10), ==, 0);
    cq_arm(bed->cqs[0], false);
    request(bed, 0, WRITE, 8);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_cqes_held", 1);
    bed_counted(bed, 0, "cxtmgt_event_comp", 0);
    run_long(bed);
    bed_counted(bed, 0, "cxtmgt_cq_periods", 1);
    bed_counted(bed, 0, "cxtmgt_event_comp", 1);
    look_and_free(bed);
}

static void test_queue_doorbells(void)
{
    Host *host;
    Bed *bed;

    bed = bed_new_rc(NULL);
    host = &bed->lab->host[0];
    host_uar_write64(host, 2 * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB,
                     0xabcdef);
    bed_counted(bed, 0, "cxtmgt_db_bad_cqn", 1);
    host_uar_write64(host, 9 * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB,
                     bed->cqs[0]->cqn);
    bed_counted(bed, 0, "cxtmgt_db_bad_uar", 1);
    host_uar_write64(host,
                     bed->cqs[0]->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB,
                     UINT64_C(5) << 32 | bed->cqs[0]->cqn);
    bed_counted(bed, 0, "cxtmgt_db_bad_ci", 1);
    host_bar0_write(host, RDMA_HCA_EQ_DB + 31 * RDMA_HCA_EQ_DB_STRIDE, 0);
    bed_counted(bed, 0, "cxtmgt_db_bad_eqn", 1);
    expect_some(bed, 0, "cxtmgt_eq_doorbells");
    look_and_free(bed);
}

/* The port goes down and up, with fewer and fewer that listen. */
static void test_events(void)
{
    Driver *drv;
    uint64_t n;
    Bed *bed;

    bed = bed_new_rc(NULL);
    drv = bed->drv[0];
    driver_poll_eq(drv, EQ_ASYNC);
    n = bed_counter(bed, 0, "cxtmgt_event_port_change");
    lab_cable(bed->lab, false);
    lab_cable(bed->lab, true);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_event_port_change", n + 2);
    bed_counted(bed, 0, "link_peers", 2);

    /* Until the queue is full and beyond. */
    for (unsigned i = 0; i < 1u << drv->eq[EQ_ASYNC].log_size; i++) {
        lab_cable(bed->lab, false);
        lab_cable(bed->lab, true);
        bed_run(bed);
    }
    expect_some(bed, 0, "cxtmgt_eq_waits");
    expect_some(bed, 0, "cxtmgt_events_waiting");
    look(bed);
    driver_poll_eq(drv, EQ_ASYNC);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_events_waiting", 0);

    g_assert_cmphex(mr_deregister(drv->eq[EQ_ASYNC].mr), ==, 0);
    lab_cable(bed->lab, false);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_events_lost", 1);
    g_assert_cmphex(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ,
                               UINT64_C(1) << RDMA_HCA_EVENT_PORT_CHANGE,
                               RDMA_HCA_MAP_EQ_UNMAP | drv->eq[EQ_ASYNC].eqn, 0,
                               0, NULL),
                    ==, 0);
    n = bed_counter(bed, 0, "cxtmgt_events_unmapped");
    lab_cable(bed->lab, true);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_events_unmapped", n + 1);

    driver_cmd_events(drv, true);
    cmd(bed, RDMA_HCA_CMD_NOP, 0);
    bed_counted(bed, 0, "cxtmgt_event_cmd", 1);
    look_and_free(bed);
}

/* The memory of the completions' EQ is gone; the other one is told. */
static void test_eq_failed(void)
{
    Bed *bed = bed_new_rc(NULL);

    g_assert_cmphex(mr_deregister(bed->drv[0]->eq[EQ_COMP].mr), ==, 0);
    cq_arm(bed->cqs[0], false);
    request(bed, 0, WRITE, 8);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_events_lost", 1);
    bed_counted(bed, 0, "cxtmgt_event_local_catas_error", 1);
    look_and_free(bed);
}

/* The peer sends before the QP is in RTS. */
static void test_comm_est(void)
{
    HcaPacket packet;
    QpAttr attr;
    Bed *bed;

    bed = bed_new_rc(NULL);
    g_assert_cmphex(qp_to_rst(bed->qps[1]), ==, 0);
    qp_attr_init(&attr);
    attr.dlid = bed->lab->host[0].config.lid;
    attr.dest_qpn = bed->qps[0]->qpn;
    g_assert_cmphex(qp_to_init(bed->qps[1], &attr), ==, 0);
    g_assert_cmphex(qp_to_rtr(bed->qps[1], &attr), ==, 0);
    packet = forge(bed, HCA_WRITE_ONLY, FIRST_PSN);
    bed_inject(bed, 0, &packet);
    bed_counted(bed, 1, "cxtmgt_event_comm_est", 1);
    look_and_free(bed);
}

/* ---- v2p ---- */

/* Each check, on the way of a Write with an R_Key. */
static void test_v2p_checks(void)
{
    static const char *const name[] = {
        "v2p_failed_key",    "v2p_failed_flags", "v2p_failed_pd",
        "v2p_failed_length", "v2p_failed_dma",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        Mr *mr;
        Bed *bed;

        bed = bed_new_rc(NULL);
        mr = bed->pair->mr[1];
        request(bed, 0, WRITE, 100);
        switch (i) {
        case 0:
            bed->wr[0].rkey ^= 0x155;
            break;
        case 1:
            bed->wr[0].rkey =
                mr_new(bed->drv[1], mr->pd, mr->va, mr->len, 0)->key;
            break;
        case 2:
            bed->wr[0].rkey = mr_new(bed->drv[1], pd_new(bed->drv[1]), mr->va,
                                     mr->len, ACCESS_ALL)
                                  ->key;
            break;
        case 3:
            bed->wr[0].raddr = mr->va + mr->len - 99;
            break;
        default:
            bed->wr[0].rkey = driver_physical_region(bed->drv[1], mr->pd);
            bed->wr[0].raddr = HOST_MMIO_BASE;
        }
        bed_post_requests(bed, 1);
        bed_run(bed);
        bed_counted(bed, 1, name[i], 1);
        expect_some(bed, 1, "v2p_passed");
        look_and_free(bed);
    }
}

/* Caches of one line: every look-up is a refill, whoever asks. */
static void test_v2p_caches(void)
{
    HcaConfig config[2];
    uint64_t refills;
    Bed *bed;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].cache_ways = 1;
        config[i].mpt_cache_size = 64;
        config[i].mtt_cache_size = 64;
    }
    bed = bed_new_by(RDMA_HCA_QP_ST_RC, NULL, config);
    refills = bed_counter(bed, 0, "v2p_mpt_refills");
    post_recv(bed, 4096);
    request(bed, 0, WRITE, 3000);
    request(bed, 1, SEND, 3000);
    request(bed, 2, READ, 3000);
    bed_post_requests(bed, 3);
    bed_run(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "v2p_mpt_refills"), >, refills);
    bed_counted(bed, 0, "v2p_mpt_misses",
                bed_counter(bed, 0, "v2p_mpt_refills"));
    bed_counted(bed, 0, "requester_wqes_completed", 3);
    g_assert_cmphex(cmd(bed, RDMA_HCA_CMD_SYNC_TPT, 0), ==, 0);
    expect_some(bed, 0, "v2p_mpt_write_backs");
    expect_some(bed, 0, "v2p_mtt_write_backs");
    bed_counted(bed, 0, "v2p_mpt_write_back_errors", 0);
    look_and_free(bed);
}

/* Tables in memory that the card may only read. */
static void test_v2p_write_back_errors(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    for (guint i = 0; i < bed->drv[0]->icm_pages->len; i++) {
        host_set_rom(&bed->lab->host[0],
                     g_array_index(bed->drv[0]->icm_pages, uint64_t, i));
    }
    g_assert_cmphex(cmd(bed, RDMA_HCA_CMD_SYNC_TPT, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    expect_some(bed, 0, "v2p_mpt_write_back_errors");
    expect_some(bed, 0, "v2p_mtt_write_back_errors");
    look_and_free(bed);
}

/* ---- port and link ---- */

/* Put the right VCRC on @len bytes that were changed. */
static void fix_vcrc(uint8_t *bytes, size_t len)
{
    uint16_t vcrc = hca_vcrc_update(HCA_VCRC_INIT, bytes, len - HCA_VCRC_SIZE);

    bytes[len - 2] = vcrc;
    bytes[len - 1] = vcrc >> 8;
}

static void test_drop_malformed(void)
{
    static const char *const name[] = {
        "port_drop_short",  "port_drop_parse_length", "port_drop_version",
        "port_drop_lnh",    "port_drop_vcrc",         "port_drop_icrc",
        "port_drop_opcode",
    };
    Bed *bed;

    bed = bed_new_rc(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        HcaPacket packet = forge(bed, HCA_SEND_ONLY, FIRST_PSN);
        uint8_t bytes[HCA_MAX_PACKET_SIZE];
        size_t len = build(&packet, bytes);

        switch (i) {
        case 0:
            len = HCA_LRH_SIZE;
            break;
        case 1:
            bytes[5]++;
            break;
        case 2:
            bytes[0] |= 1;
            break;
        case 3:
            bytes[1] &= ~3;
            break;
        case 4:
            bytes[len - 1] ^= 1;
            break;
        case 5:
            bytes[len - HCA_VCRC_SIZE - 1] ^= 1;
            break;
        default:
            bytes[HCA_LRH_SIZE] = 0x40; /* RD */
            len = hca_ib_seal(&packet, bytes,
                              len - HCA_VCRC_SIZE - HCA_ICRC_SIZE);
        }
        if (i != 0 && i != 4) {
            fix_vcrc(bytes, len);
        }
        bed_counted(bed, 1, name[i], 0);
        inject_bytes(bed, bytes, len, 0);
        bed_run(bed);
        bed_counted(bed, 1, name[i], 1);
    }
    look_and_free(bed);
}

/* Packets that are sound but not for the QP as it is. */
static void test_drop_headers(void)
{
    static const char *const name[] = {
        "port_drop_lid",      "port_drop_qpn",       "port_drop_service",
        "port_drop_pkey",     "port_drop_source",    "port_drop_ghost",
        "port_drop_qp_state", "port_drop_port_down",
    };
    Bed *bed;

    bed = bed_new_rc(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        HcaPacket packet = forge(bed, HCA_SEND_ONLY, FIRST_PSN);

        switch (i) {
        case 0:
            packet.dlid++;
            break;
        case 1:
            packet.dest_qp = 0xabcdef;
            break;
        case 2:
            packet.opcode |= HCA_BTH_UC << 5;
            break;
        case 3:
            packet.pkey = 0x8001;
            break;
        case 4:
            packet.slid++;
            break;
        case 5:
            packet.opcode = HCA_ACK;
            break;
        case 6:
            g_assert_cmphex(qp_to_err(bed->qps[1]), ==, 0);
            break;
        default:
            g_assert_cmphex(driver_cmd(bed->drv[1], RDMA_HCA_CMD_CLOSE_IB, 0, 1,
                                       0, 0, NULL),
                            ==, 0);
        }
        bed_counted(bed, 1, name[i], 0);
        bed_inject(bed, 0, &packet);
        bed_counted(bed, 1, name[i], 1);
    }
    look_and_free(bed);
}

/* UC, where a message with a fault is dropped and the next one is not. */
static void test_drop_uc(void)
{
    static const char *const name[] = {
        "port_drop_no_wqe",
        "port_drop_length",
        "port_drop_opcode_seq",
        "port_drop_access",
    };
    Bed *bed;

    bed = bed_new_by(RDMA_HCA_QP_ST_UC, NULL, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        static const uint8_t operation[] = { HCA_SEND_ONLY, HCA_WRITE_ONLY,
                                             HCA_SEND_MIDDLE, HCA_WRITE_ONLY };
        HcaPacket packet = forge(bed, HCA_BTH_UC << 5 | operation[i],
                                 FIRST_PSN + i);

        packet.payload_len = 8;
        packet.dma_len = i == 1 ? 9 : 8;
        packet.rkey ^= i == 3 ? 0x155 : 0;
        bed_counted(bed, 1, name[i], 0);
        bed_inject(bed, 0, &packet);
        bed_counted(bed, 1, name[i], 1);
    }
    look_and_free(bed);
}

static void test_drop_qkey(void)
{
    HcaPacket packet;
    Bed *bed;

    bed = bed_new_by(RDMA_HCA_QP_ST_UD, NULL, NULL);
    packet = forge(bed, HCA_BTH_UD << 5 | HCA_SEND_ONLY, 0);
    packet.qkey++;
    bed_inject(bed, 0, &packet);
    bed_counted(bed, 1, "port_drop_qkey", 1);
    look_and_free(bed);
}

/* To a multicast group that nobody has joined. */
static void test_drop_group(void)
{
    HcaPacket packet;
    Bed *bed;

    bed = bed_new_by(RDMA_HCA_QP_ST_UD, NULL, NULL);
    packet = forge(bed, HCA_BTH_UD << 5 | HCA_SEND_ONLY, 0);
    packet.dlid = 0xc001;
    packet.has_grh = true;
    packet.dgid.raw[0] = 0xff;
    packet.dest_qp = HCA_QPN_MULTICAST;
    bed_inject(bed, 0, &packet);
    bed_counted(bed, 1, "port_drop_group", 1);
    look_and_free(bed);
}

/* Reads asked for again, more at a time than the peer may have. */
static void test_drop_resources(void)
{
    HcaPacket packet;
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.max_dest_rd_atomic = 1;
    bed = bed_new_rc(&attr);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2; i++) {
            packet = forge(bed, HCA_READ_REQUEST, FIRST_PSN + i);
            packet.dma_len = 8;
            bed_put_from(bed, 0, &packet);
            if (!round) {
                bed_run(bed);
            }
        }
    }
    bed_run(bed);
    bed_counted(bed, 1, "responder_duplicates", 2);
    bed_counted(bed, 1, "port_drop_resources", 1);
    look_and_free(bed);
}

static void test_link(void)
{
    static const uint8_t noise[64];
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    HcaPacket packet;
    QpAttr attr;
    Bed *bed;

    bed = bed_new_rc(NULL);
    bed_counted(bed, 0, "link_up", 1);
    bed_counted(bed, 0, "link_peers", 1);
    packet = forge(bed, HCA_SEND_ONLY, FIRST_PSN);
    inject_bytes(bed, bytes, build(&packet, bytes), HCA_FRAME_ERROR);
    bed_run(bed);
    bed_counted(bed, 1, "link_rx_marked_bad", 1);
    bed_counted(bed, 1, "link_rx_packets", 0);
    request(bed, 0, WRITE, 5000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "link_tx_packets", 5);
    bed_counted(bed, 1, "link_rx_packets", 5);
    bed_counted(bed, 1, "link_rx_bytes", bed_counter(bed, 0, "link_tx_bytes"));
    expect_some(bed, 0, "link_tx_writes");
    expect_some(bed, 1, "link_rx_reads");
    lab_cable_inject(bed->lab, 0, noise, sizeof(noise));
    bed_run(bed);
    bed_counted(bed, 1, "link_rx_frame_errors", 1);
    bed_counted(bed, 1, "link_up", 0);

    lab_cable(bed->lab, false);
    request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "link_tx_discarded", 1);

    /* To itself. */
    bed_connect(bed, &bed->config.attr);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    qp_attr_init(&attr);
    attr.rq_psn = attr.sq_psn;
    qp_connect(bed->qps[0], bed->qps[0], &attr);
    request(bed, 0, WRITE, 100);
    bed->wr[0].rkey = bed->pair->mr[0]->key;
    bed->wr[0].raddr = bed->pair->mr[0]->va;
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "link_loopback_packets", 2);
    look_and_free(bed);
}

/* ---- RoCE ---- */

/* A good frame over IPv4 with one byte changed. */
static void test_roce_malformed(void)
{
    static const struct {
        const char *name;
        size_t at; /* from IP on */
        uint8_t mask;
        uint8_t checksum_mask; /* what makes up for it */
    } cases[] = {
        { "port_drop_fragment", 6, 0x20, 0x20 },
        { "port_drop_ip_header", 8, 0x01, 0 },
        { "port_drop_udp", 25, 0x04, 0 },
    };
    Bed *bed;

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        HcaPacket packet = { .opcode = HCA_ACK };
        uint8_t frame[256];
        size_t len;

        bed_headers_along(bed, 1, GID_IPV4, &packet);
        len = hca_roce_seal(&packet, frame, hca_roce_build(&packet, frame));
        frame[14 + cases[i].at] ^= cases[i].mask;
        frame[14 + 10] ^= cases[i].checksum_mask;
        bed_inject_frame(bed, 1, frame, len);
        bed_counted(bed, 0, cases[i].name, 1);
    }
    look_lab(bed->lab);
    bed_free(bed);
}

/* Datagrams that lead nowhere, to a group, and one whose source has gone. */
static void test_roce_addresses(void)
{
    static const uint8_t mgid[16] = { 0xff, 0x0e, [15] = 1 };
    UdAddress ud = { .qkey = 0x11111111 };
    Gid gid;
    Bed *bed;
    Qp *to;

    bed = bed_new_roce(RDMA_HCA_QP_ST_UD, NULL, NULL);
    to = bed->qps[1];
    ud_address_to_group(&ud, mgid);
    g_assert_cmphex(
        driver_write_mgm(bed->drv[1], 0, mgid, (const Qp *const *)&to, 1), ==,
        0);
    bed_request(bed, 0, SEND, 64)->ud = &ud;
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "port_rx_multicast", 1);
    ud.roce.sgid_index = 15;
    bed_request(bed, 0, SEND, 64)->ud = &ud;
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "send_wqe_bad_address", 1);
    look_lab(bed->lab);
    bed_free(bed);

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    gid = bed->drv[0]->gid[0];
    g_assert_cmphex(driver_set_gid(bed->drv[0], 0, NULL), ==, 0);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "port_tx_unreachable", 1);
    g_assert_cmphex(driver_set_gid(bed->drv[0], 0, &gid), ==, 0);
    look_lab(bed->lab);
    bed_free(bed);
}

static void test_roce_congestion(void)
{
    Bed *bed;

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
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
    look_lab(bed->lab);
    bed_free(bed);
}

/* ---- the Ethernet function ---- */

/* A UDP datagram over IPv6 to all, with its checksum still to be made. */
static size_t udp_frame(uint8_t *frame)
{
    static const uint8_t headers[] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0,  0,  0,
        9,    0x86, 0xdd, 0x60, 0,    0,    0, 0, 16, 17, 64,
    };

    memset(frame, 0, 70);
    memcpy(frame, headers, sizeof(headers));
    frame[59] = 16;      /* UDP length */
    frame[61] = 16 + 17; /* sum of the pseudo-header */
    return 70;
}

static void test_ethernet(void)
{
    uint8_t frame[70];
    size_t len = udp_frame(frame);
    Nic *nic[2];
    Bed *bed;

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        nic[i] = nic_new(bed->drv[i], 4);
        g_assert_cmphex(nic_set_rx_mode(nic[i], 0, NULL, 0), ==, 0);
    }
    host_write(nic[0]->host, nic[0]->buffer, frame, len);
    for (unsigned i = 0; i < 17; i++) { /* the peer has 15 buffers */
        nic_put_tx(nic[0], nic[0]->buffer, len, RDMA_HCA_ETH_TX_LAST);
        nic_want_checksum(nic[0], 54, 6);
        nic_ring_tx(nic[0]);
        lab_run(bed->lab);
    }
    nic_doorbell(nic[0], RDMA_HCA_ETH_DB_TX_ARM, 16); /* it is done */
    nic_doorbell(nic[0], RDMA_HCA_ETH_DB_TX_TAIL, 0);
    nic_put_tx(nic[0], nic[0]->buffer, 3, RDMA_HCA_ETH_TX_LAST);
    nic_ring_tx(nic[0]);
    lab_run(bed->lab);
    bed_counted(bed, 0, "ethernet_running", 1);
    bed_counted(bed, 0, "ethernet_tx_frames", 17);
    bed_counted(bed, 0, "ethernet_tx_bytes", 17 * len);
    bed_counted(bed, 0, "ethernet_tx_errors", 1);
    bed_counted(bed, 0, "ethernet_interrupts", 1);
    bed_counted(bed, 0, "ethernet_bad_doorbells", 1);
    bed_counted(bed, 1, "ethernet_rx_frames", 15);
    bed_counted(bed, 1, "ethernet_rx_bytes", 15 * len);
    bed_counted(bed, 1, "ethernet_rx_checksum_ok", 15);
    bed_counted(bed, 1, "ethernet_rx_no_buffer", 2);
    look_lab(bed->lab);

    frame[5] = 0xfe; /* a group of others */
    nic_send(nic[0], frame, len);
    lab_run(bed->lab);
    bed_counted(bed, 1, "ethernet_rx_filtered", 1);
    frame[5] = 0xff;
    nic[1]->rx_next = nic[1]->rx_tail;
    nic_put_rx(nic[1], HOST_MMIO_BASE, 100);
    nic_ring_rx(nic[1]);
    nic_send(nic[0], frame, len);
    lab_run(bed->lab);
    bed_counted(bed, 1, "ethernet_rx_errors", 1);
    look_lab(bed->lab);
    nic_free(nic[0]);
    nic_free(nic[1]);
    bed_free(bed);
}

/* ---- faults and the capture ---- */

static void set_fault(Bed *bed, HcaFaultAction action,
                      HcaFaultDirection direction)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = action,
                     .directions = 1u << direction,
                     .probability = HCA_FAULT_ALWAYS,
                     .count = 1,
                     .delay_ns = NS_PER_MS,
                     .offset = -1 },
    };

    hca_set_faults(bed->lab->host[0].hca, &plan);
}

/* One fault of each kind and direction, of a request or of its answer. */
static void check_faults(Bed *bed, HcaFaultAction end)
{
    static const char *const names[HCA_FAULT_NACTIONS] = {
        "drop", "duplicate", "reorder", "delay", "corrupt", "mark",
    };

    for (unsigned i = 0; i < 2 * end; i++) {
        g_autofree char *name = g_strdup_printf(
            "fault_%s_%s", i % 2 ? "rx" : "tx", names[i / 2]);

        bed_counted(bed, 0, name, 0);
        set_fault(bed, i / 2, i % 2);
        request(bed, 0, WRITE, 100);
        bed_post_requests(bed, 1);
        lab_sleep(bed->lab, NS_PER_S);
        bed_counted(bed, 0, name, 1);
        bed_counted(bed, 0, "requester_wqes_completed", i + 1);
    }
    bed_counted(bed, 0, "fault_held", 0);
}

/* An InfiniBand packet has no place for a mark. */
static void test_faults(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    check_faults(bed, HCA_FAULT_MARK);
    look_and_free(bed);
}

static void test_faults_roce(void)
{
    HcaConfig config[2];
    Bed *bed;

    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
    bed = bed_new_by(RDMA_HCA_QP_ST_RC, NULL, config);
    check_faults(bed, HCA_FAULT_NACTIONS);
    look_and_free(bed);
}

/* More packets at a time than are held back. */
static void test_faults_held(void)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = HCA_FAULT_DELAY,
                     .directions = 1u << HCA_FAULT_TX,
                     .probability = HCA_FAULT_ALWAYS,
                     .delay_ns = NS_PER_S },
    };
    const unsigned packets = HCA_FAULT_MAX_HELD + 5;
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.mtu = 1; /* 256 bytes */
    bed = bed_new_rc(&attr);
    hca_set_faults(bed->lab->host[0].hca, &plan);
    request(bed, 0, WRITE, packets * 256);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "fault_held", HCA_FAULT_MAX_HELD);
    expect_some(bed, 0, "fault_held_full");
    look_and_free(bed);
}

static void test_capture(void)
{
    Bed *bed;

    bed = bed_new_rc(NULL);
    bed_counted(bed, 0, "capture_on", 0);
    request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "capture_packets", 0);
    hca_start_capture(bed->lab->host[0].hca);
    bed_counted(bed, 0, "capture_on", 1);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "capture_packets", 2);
    bed_counted(bed, 0, "capture_bytes", bed->lab->host[0].capture->len);
    look_and_free(bed);

    bed = bed_new_rc(NULL);
    hca_limit_capture(bed->lab->host[0].hca, 1);
    hca_start_capture(bed->lab->host[0].hca);
    request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "capture_missed", 2);
    look_and_free(bed);
}

/* ---- all of them ---- */

/* Channels that only read; they write when a refill displaces a line. */
static bool may_rest(const HcaCounter *counter)
{
    static const char *const readers[] = { "db", "wp_wqe", "wp_nd", "rwm" };

    for (unsigned i = 0; i < G_N_ELEMENTS(readers); i++) {
        g_autofree char *writes = g_strdup_printf("writes_%s", readers[i]);
        g_autofree char *bytes = g_strdup_printf("write_bytes_%s", readers[i]);

        if (g_str_equal(counter->name, writes) ||
            g_str_equal(counter->name, bytes)) {
            return true;
        }
    }
    return false;
}

static void test_all_moved(void)
{
    unsigned resting = 0;
    Bed *bed;

    bed = bed_new_rc(NULL);
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(bed->lab->host[0].hca, i, &counter);
        if (!moved[i] && !may_rest(&counter)) {
            g_test_message("%s_%s never moved", counter.unit, counter.name);
            resting++;
        }
    }
    look_and_free(bed);
    g_assert_cmpuint(resting, ==, 0);
}

static const struct {
    const char *path;
    void (*test)(void);
} tests[] = {
    { "ceu/commands", test_commands },
    { "ceu/statuses", test_statuses },
    { "ceu/busy-registers", test_busy_registers },
    { "send/doorbells", test_doorbells },
    { "send/wqe-opcodes", test_wqe_opcodes },
    { "send/wqe-checks", test_wqe_checks },
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
    { "cxtmgt/cq", test_cq },
    { "cxtmgt/doorbells", test_queue_doorbells },
    { "cxtmgt/moderation", test_moderation },
    { "cxtmgt/events", test_events },
    { "cxtmgt/eq-failed", test_eq_failed },
    { "cxtmgt/comm-est", test_comm_est },
    { "v2p/checks", test_v2p_checks },
    { "v2p/caches", test_v2p_caches },
    { "v2p/write-back-errors", test_v2p_write_back_errors },
    { "port/malformed", test_drop_malformed },
    { "port/headers", test_drop_headers },
    { "port/uc", test_drop_uc },
    { "port/qkey", test_drop_qkey },
    { "port/resources", test_drop_resources },
    { "link", test_link },
    { "port/group", test_drop_group },
    { "roce/malformed", test_roce_malformed },
    { "roce/addresses", test_roce_addresses },
    { "roce/congestion", test_roce_congestion },
    { "ethernet", test_ethernet },
    { "faults/each", test_faults },
    { "faults/each-roce", test_faults_roce },
    { "faults/held", test_faults_held },
    { "capture", test_capture },
};

/* All tests in one: which counters have moved is known at their end. */
static void test_every_counter(void)
{
    memset(moved, 0, hca_counters_number() * sizeof(*moved));
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        tests[i].test();
    }
    test_all_moved();
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    moved = g_new0(bool, hca_counters_number());
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        const char *path = test_named("/counter-events/%s", tests[i].path);

        test_add(path, tests[i].test);
    }
    test_add("/counter-events/every-counter", test_every_counter);
    status = g_test_run();
    g_free(moved);
    return status;
}
