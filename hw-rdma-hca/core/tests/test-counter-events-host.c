/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every counter of commands, contexts and memory moves when what it counts
 * happens.
 */
#include "../front/ceu/ceu_int.h"
#include "lib-card.h"
#include "lib-counter-events.h"
#include "lib-mem.h"
#include "lib-mthca.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FIRST_PSN 0x123456 /* qp_attr_init()'s */

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

    bed = events_new_rc(NULL);
    for (unsigned op = 0; op < 0x1000; op++) {
        const char *name = hca_ceu_command_name(&hca_interface, op);
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
        if (hca_ceu_command_name(&hca_interface, op)) {
            cmd(bed, op, 0);
        }
    }
    events_look_and_free(bed);
}

/* The same of the interface that guests know, which has some of its own. */
static void test_mthca_commands(void)
{
    const HcaInterface *interface = hca_front_interface(HCA_PERSONALITY_MTHCA);
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 78, 0);

    mthca_query(m);
    mthca_map_tables(m);
    mthca_init(m);
    for (unsigned op = 0; op < 0x1000; op++) {
        const char *name = hca_ceu_command_name(interface, op);
        g_autofree char *lower = name ? g_ascii_strdown(name, -1) : NULL;
        g_autofree char *counter = g_strdup_printf("ceu_cmd_%s", lower);
        uint64_t before;

        if (name) {
            before = card_counter(lab->host[0].hca, counter);
            mthca_cmd(m, op, 0, 0, 0, 0, NULL);
            g_assert_cmpuint(card_counter(lab->host[0].hca, counter), ==,
                             before + 1);
        }
    }
    events_look_lab(lab);
    mthca_lab_free(lab, m);
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

    bed = events_new_rc(NULL);
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
        events_request(bed, i, WRITE, 8);
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

    events_look(bed);
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
    events_look_and_free(bed);
}

static void test_busy_registers(void)
{
    Host *host;
    Bed *bed;

    bed = events_new_rc(NULL);
    host = &bed->lab->host[0];
    host_bar0_write(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO |
                        RDMA_HCA_PREP(RDMA_HCA_HCR_OP, RDMA_HCA_CMD_NOP));
    for (unsigned reg = 0; reg < RDMA_HCA_HCR_SIZE; reg += 4) {
        host_bar0_write(host, RDMA_HCA_HCR + reg, 0);
    }
    bed_counted(bed, 0, "ceu_ignored_writes", RDMA_HCA_HCR_SIZE / 4);
    bed_run(bed);
    events_look_and_free(bed);
}

/* ---- cxtmgt ---- */

static void test_cq(void)
{
    Bed *bed;
    Cq *cq;

    bed = events_new_rc(NULL);
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
        events_request(bed, i, WRITE, 8);
    }
    bed_post_requests(bed, 3);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_cqes", 2);
    bed_counted(bed, 0, "cxtmgt_event_comp", 1);
    events_expect_some(bed, 0, "cxtmgt_interrupts");
    events_expect_some(bed, 0, "cxtmgt_cq_ci_reads");
    bed_counted(bed, 0, "cxtmgt_cq_overruns", 1);
    bed_counted(bed, 0, "cxtmgt_cqes_lost", 1);
    bed_counted(bed, 0, "cxtmgt_event_cq_error", 1);
    events_look_and_free(bed);
}

static void test_moderation(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    g_assert_cmphex(cq_moderate(bed->cqs[0], 2, 10), ==, 0);
    cq_arm(bed->cqs[0], false);
    events_request(bed, 0, WRITE, 8);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_cqes_held", 1);
    bed_counted(bed, 0, "cxtmgt_event_comp", 0);
    lab_sleep(bed->lab, PAIR_PATIENCE);
    bed_counted(bed, 0, "cxtmgt_cq_periods", 1);
    bed_counted(bed, 0, "cxtmgt_event_comp", 1);
    events_look_and_free(bed);
}

static void test_queue_doorbells(void)
{
    Host *host;
    Bed *bed;

    bed = events_new_rc(NULL);
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
    events_expect_some(bed, 0, "cxtmgt_eq_doorbells");
    events_look_and_free(bed);
}

/* The port goes down and up, with fewer and fewer that listen. */
static void test_events(void)
{
    Driver *drv;
    uint64_t n;
    Bed *bed;

    bed = events_new_rc(NULL);
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
    events_expect_some(bed, 0, "cxtmgt_eq_waits");
    events_expect_some(bed, 0, "cxtmgt_events_waiting");
    events_look(bed);
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
    events_look_and_free(bed);
}

/* The memory of the completions' EQ is gone; the other one is told. */
static void test_eq_failed(void)
{
    Bed *bed = events_new_rc(NULL);

    g_assert_cmphex(mr_deregister(bed->drv[0]->eq[EQ_COMP].mr), ==, 0);
    cq_arm(bed->cqs[0], false);
    events_request(bed, 0, WRITE, 8);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "cxtmgt_events_lost", 1);
    bed_counted(bed, 0, "cxtmgt_event_local_catas_error", 1);
    events_look_and_free(bed);
}

/* The peer sends before the QP is in RTS. */
static void test_comm_est(void)
{
    HcaPacket packet;
    QpAttr attr;
    Bed *bed;

    bed = events_new_rc(NULL);
    g_assert_cmphex(qp_to_rst(bed->qps[1]), ==, 0);
    qp_attr_init(&attr);
    attr.dlid = bed->lab->host[0].config.lid;
    attr.dest_qpn = bed->qps[0]->qpn;
    g_assert_cmphex(qp_to_init(bed->qps[1], &attr), ==, 0);
    g_assert_cmphex(qp_to_rtr(bed->qps[1], &attr), ==, 0);
    packet = events_forge(bed, HCA_WRITE_ONLY, FIRST_PSN);
    bed_inject(bed, 0, &packet);
    bed_counted(bed, 1, "cxtmgt_event_comm_est", 1);
    events_look_and_free(bed);
}

/* A QP of side 1 that shares @srq, and who sends to it. */
static void share(Bed *bed, Srq *srq, Qp *qp[2])
{
    QpConfig config;
    QpAttr attr;

    qp_attr_init(&attr);
    qp_config_init(&config, bed->pair->pd[1], bed->cqs[1]);
    config.srq = srq;
    qp[0] = pair_new_qp(bed->pair, 0, RDMA_HCA_QP_ST_RC);
    qp[1] = qp_new(bed->drv[1], &config);
    qp_connect(qp[0], qp[1], &attr);
}

static void test_srq(void)
{
    const RecvWr nothing = { .nsge = 0 };
    SrqConfig config;
    SendWr wr;
    Srq *srq;
    Qp *qp[2];
    Bed *bed;
    Sge sge;

    bed = events_new_rc(NULL);
    srq_config_init(&config, bed->pair->pd[1]);
    srq = srq_new(bed->drv[1], &config);
    bed_counted(bed, 1, "cxtmgt_srqs", 1);
    share(bed, srq, qp);
    wr = pair_send(bed->pair, 0, RDMA_HCA_OPCODE_SEND, 0, &sge, 0, 0, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    bed_run(bed);
    bed_counted(bed, 1, "cxtmgt_srq_empty", 1);
    bed_counted(bed, 1, "cxtmgt_srq_record_reads", 1);
    bed_counted(bed, 1, "cxtmgt_srq_fetches", 0);
    g_assert_true(srq_post(srq, &nothing, 1));
    lab_sleep(bed->lab, NS_PER_S);
    bed_counted(bed, 1, "cxtmgt_srq_wqes", 1);
    bed_counted(bed, 1, "cxtmgt_srq_record_reads", 2);
    bed_counted(bed, 1, "cxtmgt_srq_fetches", 1);
    g_assert_cmphex(srq_arm(srq, 1), ==, 0);
    bed_counted(bed, 1, "cxtmgt_event_srq_limit", 1);
    host_write_le32(bed->drv[1]->host, srq->record, 0);
    g_assert_cmphex(srq_arm(srq, 1), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    bed_counted(bed, 1, "cxtmgt_event_srq_catas_error", 1);
    g_assert_cmphex(qp_to_err(qp[1]), ==, 0);
    bed_counted(bed, 1, "cxtmgt_event_last_wqe_reached", 1);
    events_look_and_free(bed);
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

        bed = events_new_rc(NULL);
        mr = bed->pair->mr[1];
        events_request(bed, 0, WRITE, 100);
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
        events_expect_some(bed, 1, "v2p_passed");
        events_look_and_free(bed);
    }
}

/* Two cards whose caches have one line each. */
static void least_caches(HcaConfig *config)
{
    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].cache_ways = 1;
        config[i].mpt_cache_size = 64;
        config[i].mtt_cache_size = 64;
    }
}

/* Caches of one line: every events_look-up is a refill, whoever asks. */
static void test_v2p_caches(void)
{
    HcaConfig config[2];
    uint64_t refills;
    Bed *bed;

    least_caches(config);
    bed = events_new_by(RDMA_HCA_QP_ST_RC, NULL, config);
    refills = bed_counter(bed, 0, "v2p_mpt_refills");
    events_post_recv(bed, 4096);
    events_request(bed, 0, WRITE, 3000);
    events_request(bed, 1, SEND, 3000);
    events_request(bed, 2, READ, 3000);
    bed_post_requests(bed, 3);
    bed_run(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "v2p_mpt_refills"), >, refills);
    bed_counted(bed, 0, "v2p_mpt_misses",
                bed_counter(bed, 0, "v2p_mpt_refills"));
    bed_counted(bed, 0, "requester_wqes_completed", 3);
    g_assert_cmphex(cmd(bed, RDMA_HCA_CMD_SYNC_TPT, 0), ==, 0);
    events_expect_some(bed, 0, "v2p_mpt_write_backs");
    events_expect_some(bed, 0, "v2p_mtt_write_backs");
    bed_counted(bed, 0, "v2p_mpt_write_back_errors", 0);
    events_look_and_free(bed);
}

/* Tables in memory that the card may only read. */
static void test_v2p_write_back_errors(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    for (guint i = 0; i < bed->drv[0]->icm_pages->len; i++) {
        host_set_rom(&bed->lab->host[0],
                     g_array_index(bed->drv[0]->icm_pages, uint64_t, i));
    }
    g_assert_cmphex(cmd(bed, RDMA_HCA_CMD_SYNC_TPT, 0), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    events_expect_some(bed, 0, "v2p_mpt_write_back_errors");
    events_expect_some(bed, 0, "v2p_mtt_write_back_errors");
    events_look_and_free(bed);
}

/* Two requests of @channel, the first of which misses the caches. */
static void ask_twice(Bed *bed, HcaV2pChannel channel, const Mr *mr)
{
    Lab *lab = bed->lab;
    HcaV2p *v2p = lab->host[0].hca->v2p;
    HcaV2pAsk ask[2] = { { .unit = HCA_ASK_COMMAND },
                         { .unit = HCA_ASK_COMMAND } };
    HcaMatchInfo info = {
        .flags = HCA_V2P_ABSOLUTE_ADDR,
        .pd = bed->pair->pd[0],
        .key = mr->key,
        .va = mr->va,
        .len = 8,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ask); i++) {
        g_assert_false(
            hca_v2p_ask(v2p, &ask[i], 0, channel, HCA_V2P_FETCH, &info));
    }
    lab->host[0].kicked = true;
    lab_run(lab);
    for (unsigned i = 0; i < G_N_ELEMENTS(ask); i++) {
        g_assert_true(
            hca_v2p_ask(v2p, &ask[i], 0, channel, HCA_V2P_FETCH, &info));
    }
}

/* All channels, each of which misses what the one before it had come. */
static void ask_of_all(Bed *bed)
{
    const Mr *mr[2] = { bed->pair->mr[0], mr_new(bed->drv[0], bed->pair->pd[0],
                                                 0x100000, 65536, ACCESS_ALL) };

    for (unsigned i = 0; i < HCA_V2P_NCHANNELS; i++) {
        ask_twice(bed, i, mr[i % 2]);
    }
}

/* A request that nobody waits for any more. */
static void forget(Bed *bed)
{
    HcaV2p *v2p = bed->lab->host[0].hca->v2p;
    uint64_t before = bed_counter(bed, 0, "v2p_forgotten");
    HcaV2pAsk ask = { .unit = HCA_ASK_COMMAND };
    HcaMatchInfo info = { .flags = HCA_V2P_BUS_ADDR, .len = 8 };

    g_assert_false(
        hca_v2p_ask(v2p, &ask, 0, HCA_V2P_CEU, HCA_V2P_FETCH, &info));
    hca_v2p_ask_forget(v2p, &ask);
    bed_counted(bed, 0, "v2p_forgotten", before + 1);
}

/* What is on its way to a page that cannot be written when it arrives. */
static void lose_write(Bed *bed)
{
    uint64_t page = g_array_index(bed->drv[0]->icm_pages, uint64_t, 0);
    Host *host = &bed->lab->host[0];
    uint32_t word = 0;

    g_assert_true(
        hca_dma_write(host->hca->v2p, HCA_V2P_CEU, page, &word, sizeof(word)));
    host_set_rom(host, page);
    events_expect_some(bed, 0, "v2p_posted");
    events_look(bed);
    host->kicked = true;
    lab_run(bed->lab);
    bed_counted(bed, 0, "v2p_posted_lost", 1);
}

/* More is on its way than there is room for. */
static void crowd_writes(Bed *bed)
{
    Host *host = &bed->lab->host[0];

    for (unsigned i = 0; i < 300; i++) {
        hca_v2p_interrupt(host->hca->v2p, 0);
    }
    events_expect_some(bed, 0, "v2p_posted_early");
    host->kicked = true;
    lab_run(bed->lab);
}

/* Memory takes its time. */
static void test_v2p_late(void)
{
    HcaConfig config[2];
    Bed *bed;

    least_caches(config);
    for (unsigned i = 0; i < 2; i++) {
        config[i].memory_latency_ns = 1000;
        config[i].memory_bandwidth = 1000;
    }
    bed = events_new_by(RDMA_HCA_QP_ST_RC, NULL, config);
    events_post_recv(bed, 4096);
    events_request(bed, 0, WRITE, 3000);
    events_request(bed, 1, SEND, 3000);
    events_request(bed, 2, READ, 3000);
    bed_post_requests(bed, 3);
    bed_run(bed);
    bed_counted(bed, 0, "requester_wqes_completed", 3);
    events_expect_some(bed, 0, "v2p_waits_mpt");
    events_expect_some(bed, 0, "v2p_waits_mtt");
    events_expect_some(bed, 0, "v2p_wait_ns_host");
    ask_of_all(bed);
    events_expect_some(bed, 0, "v2p_waits_channel");
    events_expect_some(bed, 0, "v2p_wait_ns_path");
    forget(bed);
    crowd_writes(bed);
    lose_write(bed);
    events_look_and_free(bed);
}

/* A peer writes device memory, and reads it. */
static void test_dev_mem(void)
{
    Bed *bed = events_new_rc(NULL);
    uint32_t key;

    g_assert_cmphex(mem_dev_mem_new(bed->drv[1], bed->pair->pd[1], 0, 100,
                                    ACCESS_ALL, &key),
                    ==, 0);
    mem_try(bed->pair, bed->qps[0], 0, WRITE, key, 10, 50, 0);
    mem_try(bed->pair, bed->qps[0], 0, READ, key, 10, 20, 0);
    bed_counted(bed, 1, "v2p_dev_mem_write_bytes", 50);
    bed_counted(bed, 1, "v2p_dev_mem_read_bytes", 20);
    events_look_and_free(bed);
}

/* A region of two pieces, both of which are read. */
static void test_pieces(void)
{
    Bed *bed = events_new_rc(NULL);
    Mr *mr = mem_pieces_new(bed->drv[1], bed->pair->pd[1], 2);
    const MemPiece piece[] = { { mr->page[1] + 5, 30 }, { mr->page[0], 64 } };
    SendWr wr = mem_reg_pieces_wr(mr, mem_piece_list_new(bed->drv[1], piece, 2),
                                  2, 0x10000, 64, ACCESS_ALL);

    mem_do(bed->qps[1], &wr, 0);
    mem_try(bed->pair, bed->qps[0], 0, READ, mr->key, 0x10000, 64, 0);
    events_expect_some(bed, 1, "v2p_pieces");
    events_look_and_free(bed);
}

/* ---- host_fault ---- */

static HcaFaultRule host_rule(HcaFaultPlace place, HcaFaultAction action)
{
    return (HcaFaultRule) {
        .place = place,
        .action = action,
        .probability = HCA_FAULT_ALWAYS,
        .count = 1,
        .delay_ns = action == HCA_FAULT_DELAY ? NS_PER_MS : 0,
        .status = action == HCA_FAULT_FAIL ? RDMA_HCA_STAT_INTERNAL_ERR : 0,
    };
}

/* One fault of each kind that leaves the card alive. */
static void test_host_faults(void)
{
    HcaFaultPlan plan = {
        .nrules = 8,
        .rule = { host_rule(HCA_FAULT_DMA, HCA_FAULT_DELAY),
                  host_rule(HCA_FAULT_DMA, HCA_FAULT_FAIL),
                  host_rule(HCA_FAULT_COMMAND, HCA_FAULT_FAIL),
                  host_rule(HCA_FAULT_COMMAND, HCA_FAULT_DELAY),
                  host_rule(HCA_FAULT_INTERRUPT, HCA_FAULT_DROP),
                  host_rule(HCA_FAULT_INTERRUPT, HCA_FAULT_DUPLICATE),
                  host_rule(HCA_FAULT_INTERRUPT, HCA_FAULT_DELAY),
                  host_rule(HCA_FAULT_DOORBELL, HCA_FAULT_DELAY) },
    };
    Bed *bed = events_new_by(RDMA_HCA_QP_ST_RC, NULL, NULL);
    HcaV2p *v2p = bed->lab->host[0].hca->v2p;

    plan.rule[0].channels = 1u << HCA_FAULT_READ_WQE;
    plan.rule[1].channels = 1u << HCA_FAULT_READ_DATA;
    plan.rule[1].units = 1u << HCA_V2P_WP_ND;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 2; i++) {
        driver_cmd(bed->drv[0], RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL);
    }
    for (unsigned i = 0; i < 3; i++) {
        hca_v2p_interrupt(v2p, EQ_CMD);
    }
    bed->lab->host[0].kicked = true;
    lab_sleep(bed->lab, 2 * NS_PER_MS);
    events_request(bed, 0, WRITE, 3000);
    bed_post_requests(bed, 1);
    bed_expect_end(bed, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    bed_counted(bed, 0, "host_fault_dma_delay", 1);
    bed_counted(bed, 0, "host_fault_dma_fail", 1);
    bed_counted(bed, 0, "host_fault_command_fail", 1);
    bed_counted(bed, 0, "host_fault_command_delay", 1);
    bed_counted(bed, 0, "host_fault_interrupt_drop", 1);
    bed_counted(bed, 0, "host_fault_interrupt_duplicate", 1);
    bed_counted(bed, 0, "host_fault_interrupt_delay", 1);
    bed_counted(bed, 0, "host_fault_doorbell_delay", 1);
    bed_counted(bed, 0, "host_fault_all", 8);
    events_look_and_free(bed);
}

/* Those that end it, and more than can be late. */
static void test_host_faults_fatal(void)
{
    HcaFaultPlan plan = {
        .nrules = 3,
        .rule = { host_rule(HCA_FAULT_COMMAND, HCA_FAULT_HANG),
                  host_rule(HCA_FAULT_EVENT, HCA_FAULT_OVERFLOW),
                  host_rule(HCA_FAULT_INTERRUPT, HCA_FAULT_DELAY) },
    };
    Bed *bed = events_new_by(RDMA_HCA_QP_ST_RC, NULL, NULL);
    Host *host = &bed->lab->host[0];

    g_assert_cmphex(driver_cmd(bed->drv[0], RDMA_HCA_CMD_MAP_EQ,
                               1ull << RDMA_HCA_EVENT_EQ_OVERFLOW,
                               bed->drv[0]->eq[EQ_COMP].eqn, 0, 0, NULL),
                    ==, 0);
    plan.rule[2].count = 0;
    bed_set_faults(bed, 0, &plan);
    hca_port_change_event(host->hca->cm, 0);
    for (unsigned i = 0; i < 64; i++) { /* and that of the event */
        hca_v2p_interrupt(host->hca->v2p, EQ_CMD);
    }
    host_bar0_write(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO |
                        RDMA_HCA_PREP(RDMA_HCA_HCR_OP, RDMA_HCA_CMD_NOP));
    lab_run(bed->lab);
    bed_counted(bed, 0, "host_fault_command_hang", 1);
    bed_counted(bed, 0, "host_fault_event_overflow", 1);
    bed_counted(bed, 0, "cxtmgt_event_eq_overflow", 1);
    bed_counted(bed, 0, "host_fault_held_full", 1);
    events_look_and_free(bed);
}

static const EventsTest tests[] = {
    { "ceu/commands", test_commands },
    { "ceu/mthca-commands", test_mthca_commands },
    { "ceu/statuses", test_statuses },
    { "ceu/busy-registers", test_busy_registers },
    { "cxtmgt/cq", test_cq },
    { "cxtmgt/moderation", test_moderation },
    { "cxtmgt/doorbells", test_queue_doorbells },
    { "cxtmgt/events", test_events },
    { "cxtmgt/eq-failed", test_eq_failed },
    { "cxtmgt/comm-est", test_comm_est },
    { "cxtmgt/srq", test_srq },
    { "v2p/checks", test_v2p_checks },
    { "v2p/late", test_v2p_late },
    { "v2p/caches", test_v2p_caches },
    { "v2p/write-back-errors", test_v2p_write_back_errors },
    { "v2p/pieces", test_pieces },
    { "v2p/memory-management", events_memory_management },
    { "v2p/device-memory", test_dev_mem },
    { "host-faults/each", test_host_faults },
    { "host-faults/fatal", test_host_faults_fatal },
};

int main(int argc, char **argv)
{
    const EventsProgram program = { EVENTS_HOST, tests, G_N_ELEMENTS(tests) };

    return events_main(argc, argv, &program);
}
