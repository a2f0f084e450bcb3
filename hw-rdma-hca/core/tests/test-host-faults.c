/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of the host's side, each at its place: what software sees of it, and
 * that a connection works afterwards.
 */
#include <string.h>

#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define LEN 3000u

static Bed *bed_new(void)
{
    return bed_new_rc(4100, NULL);
}

/* ---- memory that fails ---- */

/*
 * Something that fails: on which side, by which channel and for whom; which
 * request meets that, and how it ends on both sides.
 */
typedef struct DmaCase {
    const char *name;
    unsigned side;
    uint8_t unit;
    HcaFaultChannel channel;
    uint8_t opcode;
    uint8_t syndrome;      /* side 0's completion */
    uint8_t recv_syndrome; /* of a Send, side 1's; OK: none comes */
    uint8_t event;         /* on @side, or 0 */
} DmaCase;

static const DmaCase dma_cases[] = {
    { "wqe", 0, HCA_V2P_DB, HCA_FAULT_READ_WQE, WRITE,
      RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR, 0, 0 },
    { "payload", 0, HCA_V2P_WP_ND, HCA_FAULT_READ_DATA, WRITE,
      RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 0, 0 },
    { "read-response", 0, HCA_V2P_RRC, HCA_FAULT_WRITE_DATA, READ,
      RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 0, 0 },
    { "peer-write", 1, HCA_V2P_EE, HCA_FAULT_WRITE_DATA, WRITE,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, 0, RDMA_HCA_EVENT_WQ_CATAS_ERROR },
    { "peer-read", 1, HCA_V2P_EE, HCA_FAULT_READ_DATA, READ,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, 0, RDMA_HCA_EVENT_WQ_CATAS_ERROR },
    { "peer-atomic", 1, HCA_V2P_EE, HCA_FAULT_WRITE_DATA, FETCH_ADD,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, 0, RDMA_HCA_EVENT_WQ_CATAS_ERROR },
    { "receive-wqe", 1, HCA_V2P_RWM, HCA_FAULT_READ_WQE, SEND,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, 0, RDMA_HCA_EVENT_WQ_CATAS_ERROR },
    { "receive", 1, HCA_V2P_EE, HCA_FAULT_WRITE_DATA, SEND,
      RDMA_HCA_SYNDROME_REMOTE_OP_ERR, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 0 },
};

/* Accesses by @channel are refused: so many (0: all), for @units (bits; 0: any). */
static void refuse(Bed *bed, unsigned side, uint8_t units,
                   HcaFaultChannel channel, uint32_t count)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DMA, HCA_FAULT_FAIL, 0);

    plan.rule[0].units = units;
    plan.rule[0].channels = 1u << channel;
    plan.rule[0].count = count;
    bed_set_faults(bed, side, &plan);
}

static void test_dma_fail(gconstpointer data)
{
    const DmaCase *c = data;
    Bed *bed = bed_new();
    SendWr wr;
    Sge sge;
    Wc wc;

    wr = pair_send(bed->pair, 0, c->opcode, 1, &sge, 0,
                   c->opcode == FETCH_ADD ? 8 : LEN,
                   8192 - (bed->pair->mr[1]->va & 4095));
    if (c->opcode == SEND) {
        pair_post_recv(bed->pair, 1, bed->qps[1], 2, 0, 4096);
    }
    refuse(bed, c->side, 1u << c->unit, c->channel, 1);
    g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    cq_expect(bed->cqs[0], &wc, 1, c->syndrome);
    if (c->recv_syndrome) {
        cq_expect(bed->cqs[1], &wc, 2, c->recv_syndrome);
    }
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    if (c->event) {
        g_assert_true(driver_event(bed->drv[c->side], c->event, NULL));
    }
    bed_counted(bed, c->side, "host_fault_dma_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* Each table's cache has one line. */
static Bed *bed_least_caches(void)
{
    BedConfig bc = bed_connection(RDMA_HCA_QP_ST_RC);
    HcaConfig config[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].cache_ways = 1;
        config[i].mpt_cache_size = config[i].mtt_cache_size = 64;
    }
    bc.seed = 4101;
    bc.cards = config;
    return bed_new_as(&bc);
}

/* A line of the table of regions, which is in no cache. */
static void test_dma_fail_table(void)
{
    Bed *bed = bed_least_caches();
    SendWr wr;
    Sge sge;
    Wc wc;

    refuse(bed, 1, 1u << HCA_V2P_EE, HCA_FAULT_READ_CTX, 1);
    wr = pair_send(bed->pair, 0, WRITE, 1, &sge, 0, LEN, 8192);
    g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    cq_expect(bed->cqs[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    bed_counted(bed, 1, "host_fault_dma_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/*
 * A region's entry, which is in no cache: it is the card's until it can be told
 * that it is not.
 */
static void test_dma_fail_take_back(void)
{
    Bed *bed = bed_least_caches();
    Mr *mr[2];

    for (unsigned i = 0; i < 2; i++) {
        mr[i] = mr_new(bed->drv[1], bed->pair->pd[1], 0x7000000, 4096,
                       ACCESS_ALL);
    }
    refuse(bed, 1, 0, HCA_FAULT_READ_CTX, 1);
    g_assert_cmphex(mr_deregister(mr[0]), ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(mr_deregister(mr[0]), ==, 0);
    g_assert_cmphex(mr_deregister(mr[0]), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    bed_counted(bed, 1, "host_fault_dma_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/*
 * A line of the table that cannot be written back: what needs its place is not
 * had, and what it says stays true.
 */
static void test_dma_fail_write_back(void)
{
    Bed *bed = bed_least_caches();
    struct rdma_hca_mpt mpt;
    Mr *mr = mr_new(bed->drv[1], bed->pair->pd[1], 0x7000000, 4096, ACCESS_ALL);
    Driver *drv = bed->drv[1];

    refuse(bed, 1, 0, HCA_FAULT_WRITE_CTX, 0);
    g_assert_cmphex(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_MPT, &mpt,
                                   sizeof(mpt), mr_index(bed->pair->mr[1]), 0),
                    ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_MPT, &mpt,
                                   sizeof(mpt), mr_index(mr), 0),
                    ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(mpt.key), ==, mr->key);
    bed_set_faults(bed, 1, NULL);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    bed_revive(bed);
    bed_free(bed);
}

/* A completion: the CQ fails, and tells. */
static void test_dma_fail_cqe(void)
{
    struct rdma_hca_eqe eqe;
    Bed *bed = bed_new();
    SendWr wr;
    Sge sge;
    Wc wc;

    refuse(bed, 0, 1u << HCA_V2P_RTC, HCA_FAULT_WRITE_DATA, 1);
    wr = pair_send(bed->pair, 0, WRITE, 1, &sge, 0, LEN, 8192);
    g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    bed_run(bed);
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    g_assert_true(driver_event(bed->drv[0], RDMA_HCA_EVENT_CQ_ERROR, &eqe));
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    bed_counted(bed, 0, "host_fault_dma_fail", 1);
    bed_set_faults(bed, 0, NULL);
    bed_free(bed);
}

/* An event: its EQ fails, and another one tells. */
static void test_dma_fail_eqe(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DMA, HCA_FAULT_FAIL, 0);
    Bed *bed = bed_new();
    Eq *eq = &bed->drv[1]->eq[EQ_COMP];

    cq_arm(bed->cqs[1], false);
    plan.rule[0].match_addr = true;
    plan.rule[0].addr_first = mr_bus(eq->mr, 0);
    plan.rule[0].addr_last = plan.rule[0].addr_first + HOST_PAGE_SIZE - 1;
    bed_set_faults(bed, 1, &plan);
    pair_check_works(bed->pair, bed->qps, 0);
    g_assert_true(
        driver_event(bed->drv[1], RDMA_HCA_EVENT_LOCAL_CATAS_ERROR, NULL));
    bed_counted(bed, 1, "host_fault_dma_fail", 1);
    bed_set_faults(bed, 1, NULL);
    bed_free(bed);
}

/* A mailbox, and a context. */
static void test_dma_fail_command(void)
{
    Bed *bed = bed_new();
    Driver *drv = bed->drv[0];
    struct rdma_hca_port port;
    QpAttr attr;

    refuse(bed, 0, 1u << HCA_V2P_CEU, HCA_FAULT_WRITE_DATA, 1);
    g_assert_cmphex(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_PORT, &port,
                                   sizeof(port), RDMA_HCA_NUM_PORTS, 0),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_PORT, &port,
                                   sizeof(port), RDMA_HCA_NUM_PORTS, 0),
                    ==, 0);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    refuse(bed, 0, 1u << HCA_V2P_CEU, HCA_FAULT_WRITE_CTX, 1);
    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(bed->qps[0], &attr), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(qp_to_init(bed->qps[0], &attr), ==, 0);
    bed_revive(bed);
    bed_free(bed);
}

/* Every second read of data, by range of addresses; others are not counted. */
static void test_dma_select(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DMA, HCA_FAULT_FAIL, 0);
    HcaFaultRule *rule = &plan.rule[0];
    Bed *bed = bed_new();
    Mr *mr = bed->pair->mr[0];
    SendWr wr;
    Sge sge;
    Wc wc;

    rule->channels = 1u << HCA_FAULT_READ_DATA;
    rule->match_addr = true;
    rule->addr_first = mr_bus(mr, 4096) + 100;
    rule->addr_last = rule->addr_first + 7;
    rule->every = 2;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 2; i++) { /* before, and behind */
        wr = pair_send(bed->pair, 0, WRITE, i, &sge, 4096 + 108 * i, 100, 0);
        g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        wr = pair_send(bed->pair, 0, WRITE, i, &sge, 4096 + 50 + 50 * i, 58, 0);
        g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
        cq_expect(bed->cqs[0], &wc, i,
                  i ? RDMA_HCA_SYNDROME_LOCAL_PROT_ERR : 0);
    }
    bed_counted(bed, 0, "host_fault_dma_fail", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* By chance, the same each time with the same seed; another seed: another. */
static unsigned failures(uint32_t seed)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_COMMAND, HCA_FAULT_FAIL, 0);
    Bed *bed = bed_new();
    unsigned failed = 0;

    plan.seed = seed;
    plan.rule[0].status = RDMA_HCA_STAT_INTERNAL_ERR;
    plan.rule[0].probability = HCA_FAULT_ALWAYS / 2;
    plan.rule[0].count = 0;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 32; i++) {
        failed = failed << 1 |
                 !!driver_cmd(bed->drv[0], RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL);
    }
    bed_set_faults(bed, 0, NULL);
    bed_free(bed);
    return failed;
}

static void test_chance(void)
{
    unsigned first = failures(1);

    g_assert_cmphex(first, ==, failures(1));
    g_assert_cmphex(first, !=, failures(2));
    g_assert_cmpint(__builtin_popcount(first), >, 5);
    g_assert_cmpint(__builtin_popcount(first), <, 27);
}

/* ---- memory that is late ---- */

/*
 * A payload, 5 ms late: the card has memory take its time from then on. Of the
 * plan's rules it is the second one.
 */
static void test_dma_delay(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DMA, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    int64_t begin;
    SendWr wr;
    Sge sge;
    Wc wc;

    plan.rule[0].units = 1u << HCA_V2P_WP_ND;
    plan.rule[0].channels = 1u << HCA_FAULT_READ_DATA;
    plan.rule[0].delay_ns = 5 * NS_PER_MS;
    plan.rule[1] = plan.rule[0];
    plan.rule[0].action = HCA_FAULT_FAIL;
    plan.rule[0].units = 1u << HCA_V2P_EE; /* which has nothing to do here */
    plan.nrules = 2;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 2; i++) {
        begin = bed->lab->now;
        wr = pair_send(bed->pair, 0, WRITE, i, &sge, 0, 100, 8192);
        g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
        cq_expect(bed->cqs[0], &wc, i, 0);
        if (i) {
            g_assert_cmpint(bed->lab->now - begin, <, 5 * NS_PER_MS);
        } else {
            g_assert_cmpint(bed->lab->now - begin, >=, 5 * NS_PER_MS);
        }
    }
    bed_counted(bed, 0, "host_fault_dma_delay", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* What is written comes late, what is behind it no sooner; an interrupt, too. */
static void test_dma_delay_write(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DMA, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    uint32_t word = 0x12345678, was;
    uint64_t vectors;
    SendWr wr;
    Sge sge;
    Wc wc;

    plan.rule[0].units = 1u << HCA_V2P_EE;
    plan.rule[0].channels = 1u << HCA_FAULT_WRITE_DATA;
    plan.rule[0].delay_ns = 5 * NS_PER_MS;
    bed_set_faults(bed, 1, &plan);
    cq_arm(bed->cqs[1], false);
    pair_post_recv(bed->pair, 1, bed->qps[1], 2, 0, 4096);
    mr_write(bed->pair->mr[0], 0, &word, sizeof(word));
    wr = pair_send(bed->pair, 0, SEND, 1, &sge, 0, sizeof(word), 0);
    vectors = bed->lab->host[1].msix[EQ_COMP];
    g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    while (lab_step(bed->lab)) {
    }
    mr_read(bed->pair->mr[1], 0, &was, sizeof(was));
    g_assert_cmphex(was, !=, word);
    g_assert_false(cq_poll(bed->cqs[1], &wc));
    g_assert_cmpuint(bed->lab->host[1].msix[EQ_COMP], ==, vectors);
    lab_sleep(bed->lab, 5 * NS_PER_MS);
    mr_read(bed->pair->mr[1], 0, &was, sizeof(was));
    g_assert_cmphex(was, ==, word);
    cq_expect(bed->cqs[1], &wc, 2, 0);
    cq_expect(bed->cqs[0], &wc, 1, 0);
    g_assert_cmpuint(bed->lab->host[1].msix[EQ_COMP], ==, vectors + 1);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- commands ---- */

static bool go_is_clear(void *opaque)
{
    return !(host_bar0_read(opaque, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL) &
             RDMA_HCA_HCR_GO);
}

static void start_nop(Host *host)
{
    host_bar0_write(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO |
                        RDMA_HCA_PREP(RDMA_HCA_HCR_OP, RDMA_HCA_CMD_NOP));
}

static void test_command_delay(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_COMMAND, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    Host *host = &bed->lab->host[0];

    plan.rule[0].match_number = true;
    plan.rule[0].number = RDMA_HCA_CMD_NOP;
    plan.rule[0].delay_ns = 5 * NS_PER_MS;
    bed_set_faults(bed, 0, &plan);
    /* Another command is not, and does not count. */
    g_assert_cmpuint(driver_port_state(bed->drv[0]), ==, 4);
    start_nop(host);
    lab_sleep(bed->lab, 4 * NS_PER_MS);
    g_assert_false(go_is_clear(host));
    lab_sleep(bed->lab, 2 * NS_PER_MS);
    g_assert_true(go_is_clear(host));
    start_nop(host);
    lab_run(bed->lab);
    g_assert_true(go_is_clear(host));
    bed_counted(bed, 0, "host_fault_command_delay", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* The third SW2HW_CQ never ends; data goes on; a reset ends it. */
static void test_command_hang(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_COMMAND, HCA_FAULT_HANG, 0);
    Bed *bed = bed_new();
    Host *host = &bed->lab->host[0];

    plan.rule[0].match_number = true;
    plan.rule[0].number = RDMA_HCA_CMD_SW2HW_CQ;
    plan.rule[0].skip = 2;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 2; i++) {
        cq_destroy(cq_new(bed->drv[0], 4, 0));
    }
    host_bar0_write(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO |
                        RDMA_HCA_PREP(RDMA_HCA_HCR_OP, RDMA_HCA_CMD_SW2HW_CQ));
    lab_sleep(bed->lab, 3600 * NS_PER_S);
    g_assert_false(go_is_clear(host));
    pair_check_works(bed->pair, bed->qps, 0);
    bed_counted(bed, 0, "host_fault_command_hang", 1);
    host_bar0_write(host, RDMA_HCA_RESET, 1);
    lab_run(bed->lab);
    g_assert_true(go_is_clear(host));
    bed_set_faults(bed, 0, NULL);
    driver_free(bed->drv[0]);
    bed->drv[0] = bed->pair->drv[0] = driver_new(host);
    bed_drop(bed);
}

/* It ends with a status, and has not been executed. */
static void test_command_fail(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_COMMAND, HCA_FAULT_FAIL, 0);
    Bed *bed = bed_new();

    plan.rule[0].match_number = true;
    plan.rule[0].number = RDMA_HCA_CMD_2ERR_QPEE;
    plan.rule[0].status = RDMA_HCA_STAT_RESOURCE_BUSY;
    bed_set_faults(bed, 0, &plan);
    g_assert_cmphex(driver_cmd(bed->drv[0], RDMA_HCA_CMD_2ERR_QPEE, 0,
                               bed->qps[0]->qpn, RDMA_HCA_MODIFY_NO_INBOX, 0,
                               NULL),
                    ==, RDMA_HCA_STAT_RESOURCE_BUSY);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_RTS);
    bed_counted(bed, 0, "host_fault_command_fail", 1);
    pair_check_works(bed->pair, bed->qps, 0);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- interrupts ---- */

/* A Send that side 1 wants an interrupt for, of which @n have come. */
static void expect_interrupts(Bed *bed, uint64_t n)
{
    uint64_t *msix = &bed->lab->host[1].msix[EQ_COMP];
    uint64_t before;

    driver_poll_eq(bed->drv[1], EQ_COMP);
    lab_run(bed->lab);
    cq_arm(bed->cqs[1], false);
    before = *msix;
    pair_check_works(bed->pair, bed->qps, 0);
    g_assert_cmpuint(*msix - before, ==, n);
}

static void test_interrupt_drop(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_INTERRUPT, HCA_FAULT_DROP, 0);
    Bed *bed = bed_new();

    plan.rule[0].match_number = true;
    plan.rule[0].number = EQ_ASYNC;
    bed_set_faults(bed, 1, &plan);
    expect_interrupts(bed, 1);
    plan.rule[0].number = EQ_COMP;
    bed_set_faults(bed, 1, &plan);
    expect_interrupts(bed, 0);
    bed_counted(bed, 1, "host_fault_interrupt_drop", 1);
    /* The event is there all the same, and the next one comes. */
    g_assert_cmpuint(driver_poll_eq(bed->drv[1], EQ_COMP), ==, 1);
    expect_interrupts(bed, 1);
    bed_revive(bed);
    bed_free(bed);
}

static void test_interrupt_duplicate(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_INTERRUPT, HCA_FAULT_DUPLICATE, 0);
    Bed *bed = bed_new();
    const uint64_t *msix = &bed->lab->host[1].msix[EQ_COMP];
    uint64_t before;

    bed_set_faults(bed, 1, &plan);
    expect_interrupts(bed, 1);
    before = *msix;
    lab_sleep(bed->lab, NS_PER_MS);
    g_assert_cmpuint(*msix, ==, before + 1);
    expect_interrupts(bed, 1);
    bed_counted(bed, 1, "host_fault_interrupt_duplicate", 1);
    bed_revive(bed);
    bed_free(bed);
}

/* 50 ms late. */
static void test_interrupt_delay(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_INTERRUPT, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    uint64_t *msix = &bed->lab->host[1].msix[EQ_COMP];
    uint64_t before = *msix;
    SendWr wr;
    Sge sge;

    plan.rule[0].delay_ns = 50 * NS_PER_MS;
    bed_set_faults(bed, 1, &plan);
    cq_arm(bed->cqs[1], false);
    pair_post_recv(bed->pair, 1, bed->qps[1], 2, 0, 4096);
    wr = pair_send(bed->pair, 0, SEND, 1, &sge, 0, 100, 0);
    g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    while (lab_step(bed->lab)) {
    }
    lab_sleep(bed->lab, 49 * NS_PER_MS);
    g_assert_cmpuint(*msix, ==, before);
    lab_sleep(bed->lab, 2 * NS_PER_MS);
    g_assert_cmpuint(*msix, ==, before + 1);
    bed_counted(bed, 1, "host_fault_interrupt_delay", 1);
    /* One that is late when the card is reset never comes. */
    bed_set_faults(bed, 1, &plan);
    driver_poll_eq(bed->drv[1], EQ_COMP);
    hca_reset(bed->lab->host[1].hca);
    lab_sleep(bed->lab, NS_PER_S);
    g_assert_cmpuint(*msix, ==, before + 1);
    bed_set_faults(bed, 1, NULL);
    driver_free(bed->drv[1]);
    bed->drv[1] = bed->pair->drv[1] = driver_new(&bed->lab->host[1]);
    bed_drop(bed);
}

/* More are late than there is room for: the others are not. */
static void test_interrupt_many(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_INTERRUPT, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    uint64_t *msix = &bed->lab->host[1].msix[EQ_COMP];
    HcaV2p *v2p = bed->lab->host[1].hca->v2p;
    uint64_t before = *msix;

    plan.rule[0].delay_ns = NS_PER_S;
    plan.rule[0].count = 0;
    bed_set_faults(bed, 1, &plan);
    for (unsigned i = 0; i < 100; i++) {
        hca_v2p_interrupt(v2p, EQ_COMP);
    }
    g_assert_cmpuint(*msix - before, ==, 36);
    bed_counted(bed, 1, "host_fault_held_full", 36);
    bed->lab->host[1].kicked = true;
    lab_sleep(bed->lab, NS_PER_S);
    g_assert_cmpuint(*msix - before, ==, 100);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- doorbells ---- */

/* That of one QP: what is rung behind it waits, a command, too. */
static void test_doorbell_delay(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DOORBELL, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    Lab *lab = bed->lab;
    SendWr wr[3];
    Sge sge[3];
    Wc wc;

    plan.rule[0].count = 0;
    plan.rule[0].match_number = true;
    plan.rule[0].number = bed->qps[0]->qpn + 1;
    plan.rule[0].delay_ns = 5 * NS_PER_MS;
    bed_set_faults(bed, 0, &plan);
    pair_check_works(bed->pair, bed->qps, 0); /* it is another's */
    plan.rule[0].number = bed->qps[0]->qpn;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 2; i++) {
        wr[i] = pair_send(bed->pair, 0, WRITE, i, &sge[i], 0, 100, 8192);
        g_assert_true(qp_post_send(bed->qps[0], &wr[i], 1));
    }
    start_nop(&lab->host[0]);
    lab_sleep(lab, 4 * NS_PER_MS);
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    g_assert_false(go_is_clear(&lab->host[0]));
    /* The command does not wait for those that come after it. */
    wr[2] = pair_send(bed->pair, 0, WRITE, 2, &sge[2], 0, 100, 8192);
    g_assert_true(qp_post_send(bed->qps[0], &wr[2], 1));
    lab_sleep(lab, 2 * NS_PER_MS);
    for (unsigned i = 0; i < 2; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    g_assert_true(go_is_clear(&lab->host[0]));
    g_assert_false(cq_poll(bed->cqs[0], &wc));
    lab_sleep(lab, 4 * NS_PER_MS);
    cq_expect(bed->cqs[0], &wc, 2, 0);
    bed_counted(bed, 0, "host_fault_doorbell_delay", 3);
    bed_revive(bed);
    bed_free(bed);
}

/* More are late than there is room for: the oldest are rung, in their order. */
static void test_doorbell_many(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_DOORBELL, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new();
    Host *host = &bed->lab->host[0];
    uint64_t rung;

    plan.rule[0].delay_ns = NS_PER_S;
    plan.rule[0].count = 0;
    bed_set_faults(bed, 0, &plan);
    rung = bed_counter(bed, 0, "send_doorbells");
    for (unsigned i = 0; i < 300; i++) {
        hca_doorbell(host->hca, RDMA_HCA_BAR2, RDMA_HCA_SEND_DB, UINT64_MAX, 8);
    }
    g_assert_cmpuint(bed_counter(bed, 0, "send_doorbells") - rung, ==, 44);
    bed_counted(bed, 0, "host_fault_held_full", 44);
    host->kicked = true;
    lab_sleep(bed->lab, NS_PER_S);
    g_assert_cmpuint(bed_counter(bed, 0, "send_doorbells") - rung, ==, 300);
    bed_revive(bed);
    bed_free(bed);
}

/* ---- event queues ---- */

static void test_event_overflow(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_EVENT, HCA_FAULT_OVERFLOW, 0);
    struct rdma_hca_eqe eqe;
    struct rdma_hca_eqc eqc;
    Bed *bed = bed_new();
    Driver *drv = bed->drv[1];
    uint32_t eqn = drv->eq[EQ_COMP].eqn;

    g_assert_cmphex(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ,
                               1ull << RDMA_HCA_EVENT_EQ_OVERFLOW,
                               drv->eq[EQ_ASYNC].eqn, 0, 0, NULL),
                    ==, 0);
    plan.rule[0].match_number = true;
    plan.rule[0].number = eqn;
    bed_set_faults(bed, 1, &plan);
    cq_arm(bed->cqs[1], false);
    pair_check_works(bed->pair, bed->qps, 0);
    g_assert_cmpuint(driver_poll_eq(drv, EQ_COMP), ==, 0);
    g_assert_true(driver_event(drv, RDMA_HCA_EVENT_EQ_OVERFLOW, &eqe));
    g_assert_cmphex(
        driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_EQ, &eqc, sizeof(eqc), eqn, 0),
        ==, 0);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, GUINT32_FROM_BE(eqc.flags)), ==,
        RDMA_HCA_EQ_STATUS_OVERFLOW);
    bed_counted(bed, 1, "host_fault_event_overflow", 1);
    bed_counted(bed, 1, "cxtmgt_events_lost", 1);
    /* It takes no more; QPs work on. */
    cq_arm(bed->cqs[1], false);
    pair_check_works(bed->pair, bed->qps, 0);
    bed_counted(bed, 1, "cxtmgt_events_lost", 2);
    bed_revive(bed);
    bed_free(bed);
}

/* The EQ that is to tell is full: it tells when there is room. */
static void test_event_overflow_waits(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_EVENT, HCA_FAULT_OVERFLOW, 0);
    Bed *bed = bed_new();
    Driver *drv = bed->drv[1];
    HcaCxtMgt *cm = bed->lab->host[1].hca->cm;
    Eq *async = &drv->eq[EQ_ASYNC];

    g_assert_cmphex(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ,
                               1ull << RDMA_HCA_EVENT_EQ_OVERFLOW, async->eqn,
                               0, 0, NULL),
                    ==, 0);
    driver_poll_eq(drv, EQ_ASYNC);
    lab_run(bed->lab);
    for (unsigned i = 0; i < 1u << async->log_size; i++) {
        hca_port_change_event(cm, i & 1);
    }
    plan.rule[0].match_number = true;
    plan.rule[0].number = drv->eq[EQ_COMP].eqn;
    bed_set_faults(bed, 1, &plan);
    cq_arm(bed->cqs[1], false);
    pair_check_works(bed->pair, bed->qps, 0);
    g_assert_cmpuint(driver_count_events(drv, RDMA_HCA_EVENT_EQ_OVERFLOW), ==,
                     0);
    lab_run(bed->lab);
    g_assert_cmpuint(driver_count_events(drv, RDMA_HCA_EVENT_EQ_OVERFLOW), ==,
                     1);
    bed_revive(bed);
    bed_free(bed);
}

/* Each event is judged once, when there is room for it. */
static void test_event_judged_once(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_EVENT, HCA_FAULT_OVERFLOW, 0);
    Bed *bed = bed_new();
    Driver *drv = bed->drv[1];
    HcaCxtMgt *cm = bed->lab->host[1].hca->cm;
    Eq *async = &drv->eq[EQ_ASYNC];
    unsigned size = 1u << async->log_size;

    driver_poll_eq(drv, EQ_ASYNC);
    lab_run(bed->lab);
    plan.rule[0].every = size + 1;
    plan.rule[0].match_number = true;
    plan.rule[0].number = async->eqn;
    bed_set_faults(bed, 1, &plan);
    for (unsigned i = 0; i < size + 10; i++) {
        hca_port_change_event(cm, i & 1);
    }
    bed_counted(bed, 1, "host_fault_event_overflow", 0);
    driver_poll_eq(drv, EQ_ASYNC);
    lab_run(bed->lab);
    bed_counted(bed, 1, "host_fault_event_overflow", 1);
    bed_set_faults(bed, 1, NULL);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(dma_cases); i++) {
        test_add_data_each_link(
            test_named("/host-faults/dma/fail/%s", dma_cases[i].name),
            &dma_cases[i], test_dma_fail);
    }
    test_add_each_link("/host-faults/dma/fail/table", test_dma_fail_table);
    test_add("/host-faults/dma/fail/take-back", test_dma_fail_take_back);
    test_add("/host-faults/dma/fail/write-back", test_dma_fail_write_back);
    test_add_each_link("/host-faults/dma/fail/cqe", test_dma_fail_cqe);
    test_add_each_link("/host-faults/dma/fail/eqe", test_dma_fail_eqe);
    test_add("/host-faults/dma/fail/command", test_dma_fail_command);
    test_add("/host-faults/dma/select", test_dma_select);
    test_add("/host-faults/chance", test_chance);
    test_add_each_link("/host-faults/dma/delay/read", test_dma_delay);
    test_add_each_link("/host-faults/dma/delay/write", test_dma_delay_write);
    test_add("/host-faults/command/delay", test_command_delay);
    test_add("/host-faults/command/hang", test_command_hang);
    test_add("/host-faults/command/fail", test_command_fail);
    test_add("/host-faults/interrupt/drop", test_interrupt_drop);
    test_add("/host-faults/interrupt/duplicate", test_interrupt_duplicate);
    test_add("/host-faults/interrupt/delay", test_interrupt_delay);
    test_add("/host-faults/interrupt/many", test_interrupt_many);
    test_add("/host-faults/doorbell/delay", test_doorbell_delay);
    test_add("/host-faults/doorbell/many", test_doorbell_many);
    test_add("/host-faults/event/overflow", test_event_overflow);
    test_add("/host-faults/event/overflow-waits", test_event_overflow_waits);
    test_add("/host-faults/event/judged-once", test_event_judged_once);
    return g_test_run();
}
