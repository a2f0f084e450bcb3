/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command unit by the sections of its document and of the interface
 * document: HCR (3.1.1), the table of commands (3.2), mailboxes, completion.
 */
#include <string.h>

#include "../fault/host_faults.h"
#include "lib-card.h"
#include "lib-make.h"
#include "lib-ram.h"
#include "lib-test.h"

#define CTRL (RDMA_HCA_HCR_CTRL)
#define EQN 1
#define CQN 1
#define MPT 3
#define KEY GOOD_KEY(MPT)
#define PD 1
#define LOG_QPS 4
#define LOG_EQ 2
#define MPT_BASE 0x1000
#define MTT_BASE 0x4000

typedef struct Fix {
    Ram *ram;
    Hca hca;
    HcaConfig small;  /* what the context manager is told */
    uint64_t in, out; /* mailboxes */
    uint64_t queues;  /* region KEY: the EQ, then the CQ */
} Fix;

static void state_changed(void *opaque, HcaQp *qp, uint8_t old_state)
{
}

static void fix_init(Fix *fix)
{
    Hca *hca = &fix->hca;

    *fix = (Fix) { .ram = ram_new() };
    hca_config_init(&hca->config);
    hca->config.lid = 9;
    hca->config.guid = UINT64_C(0x1122334455667788);
    hca->host = HCA_HOST(&fix->ram->ops, fix->ram);
    hca->interface = &hca_interface;
    hca->format = hca->interface->format;
    fix->small = hca->config;
    fix->small.log_qps = LOG_QPS;
    fix->small.log_cqs = 4;
    fix->small.log_eqs = 3;
    fix->small.log_pds = 4;
    fix->small.num_vectors = RAM_VECTORS;
    hca_card_init(hca);
    hca->requester = hca_requester_new(&hca->config);
    hca->responder = hca_responder_new();
    hca->send = hca_send_new();
    hca->link = hca_link_new(HCA_LINK_LAYER_IB, HCA_CABLE_CARD, &hca->host);
    hca->v2p = hca_v2p_new(&hca_mpt_format, &hca->host, 4, 8, 1024, 1024, 2);
    hca->port = hca_port_new(&hca->config, hca->link, &hca->host);
    hca->cm = hca_cxtmgt_new(hca->format->cxt, &fix->small, hca->v2p, hca->port,
                             &hca->host, state_changed, fix);
    hca->faults = hca_host_faults_new(&hca->host);
    hca->bars = hca_bars_new();
    hca->ceu = hca_ceu_new(hca);
    fix->in = ram_alloc(fix->ram, 1);
    fix->out = ram_alloc(fix->ram, 1);
    fix->queues = ram_alloc(fix->ram, 2);
}

static void fix_free(Fix *fix)
{
    hca_ceu_free(fix->hca.ceu);
    hca_bars_free(fix->hca.bars);
    hca_host_faults_free(fix->hca.faults);
    hca_cxtmgt_free(fix->hca.cm);
    hca_v2p_free(fix->hca.v2p);
    hca_link_free(fix->hca.link);
    hca_port_free(fix->hca.port);
    hca_send_free(fix->hca.send);
    hca_responder_free(fix->hca.responder);
    hca_requester_free(fix->hca.requester);
    hca_card_cleanup(&fix->hca);
    ram_free(fix->ram);
}

/* Write the registers as a driver does; the command waits then. */
static bool start(Fix *fix, uint32_t ctrl, uint64_t in_param,
                  uint32_t in_modifier, uint64_t out_param, uint16_t token)
{
    const uint32_t words[] = {
        in_param >> 32,  in_param,  in_modifier,
        out_param >> 32, out_param, (uint32_t)token << 16,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_assert_false(hca_ceu_write(fix->hca.ceu, i * 4, words[i]));
    }
    return hca_ceu_write(fix->hca.ceu, CTRL, ctrl | RDMA_HCA_HCR_GO);
}

static uint32_t ctrl(Fix *fix)
{
    return hca_ceu_read(fix->hca.ceu, CTRL);
}

static uint8_t run(Fix *fix, uint16_t op, uint64_t in_param,
                   uint32_t in_modifier, uint8_t op_modifier,
                   uint64_t out_param)
{
    g_assert_true(
        start(fix,
              RDMA_HCA_PREP(RDMA_HCA_HCR_OP, op) |
                  RDMA_HCA_PREP(RDMA_HCA_HCR_OP_MODIFIER, op_modifier),
              in_param, in_modifier, out_param, RDMA_HCA_CMD_POLL_TOKEN));
    g_assert_true(ctrl(fix) & RDMA_HCA_HCR_GO);
    hca_ceu_run(fix->hca.ceu);
    g_assert_false(ctrl(fix) & RDMA_HCA_HCR_GO);
    return RDMA_HCA_GET(RDMA_HCA_HCR_STATUS, ctrl(fix));
}

/* With the inbox @box of @len bytes. */
static uint8_t run_in(Fix *fix, uint16_t op, const void *box, size_t len,
                      uint32_t in_modifier, uint8_t op_modifier)
{
    memset(ram_at(fix->ram, fix->in), 0, RAM_PAGE);
    memcpy(ram_at(fix->ram, fix->in), box, len);
    return run(fix, op, fix->in, in_modifier, op_modifier, 0);
}

static const void *run_out(Fix *fix, uint16_t op, uint32_t in_modifier)
{
    memset(ram_at(fix->ram, fix->out), 0xee, RAM_PAGE);
    g_assert_cmphex(run(fix, op, 0, in_modifier, 0, fix->out), ==, 0);
    return ram_at(fix->ram, fix->out);
}

static struct rdma_hca_icm_entry icm_entry(uint64_t virt, uint64_t page,
                                           uint32_t npages)
{
    return (struct rdma_hca_icm_entry) {
        .virt_h = GUINT32_TO_BE(virt >> 32),
        .virt_l = GUINT32_TO_BE((uint32_t)virt),
        .page_h = GUINT32_TO_BE(page >> 32),
        .page_l = GUINT32_TO_BE((uint32_t)page | npages),
    };
}

static uint8_t map_icm(Fix *fix, uint8_t kind, uint64_t virt, uint32_t npages)
{
    struct rdma_hca_icm_entry entry[2] = { { 0 } };

    entry[RDMA_HCA_ICM_SLOT(0)] = icm_entry(virt, ram_alloc(fix->ram, npages),
                                            npages);
    return run_in(fix, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 1, kind);
}

static struct rdma_hca_init_hca make_init(void)
{
    return (struct rdma_hca_init_hca) {
        .qpc_base_l = GUINT32_TO_BE(0x1000 | LOG_QPS),
        .cqc_base_l = GUINT32_TO_BE(0x2000 | 4),
        .eqc_base_l = GUINT32_TO_BE(0x3000 | 3),
        .mpt_base_l = GUINT32_TO_BE(MPT_BASE | 4),
        .mtt_base_l = GUINT32_TO_BE(MTT_BASE),
    };
}

static void init_hca(Fix *fix)
{
    struct rdma_hca_init_hca init = make_init();

    g_assert_cmphex(map_icm(fix, RDMA_HCA_ICM_CXT, 0, 8), ==, 0);
    g_assert_cmphex(map_icm(fix, RDMA_HCA_ICM_TPT, 0, 8), ==, 0);
    g_assert_cmphex(
        run_in(fix, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0), ==, 0);
    g_assert_true(hca_ceu_initialised(fix->hca.ceu));
}

static struct rdma_hca_mpt make_mpt(Fix *fix)
{
    return good_mpt(KEY,
                    RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO |
                        RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_ACCESS_LOCAL_WRITE,
                    PD, fix->queues, 2 * RAM_PAGE, 0);
}

static struct rdma_hca_eqc make_eqc(void)
{
    struct rdma_hca_eqc eqc = good_eqc(PD, KEY, 0, LOG_EQ);

    eqc.msix_vector = GUINT32_TO_BE(EQN);
    return eqc;
}

static struct rdma_hca_cqc make_cqc(void)
{
    return good_cqc(PD, KEY, RAM_PAGE, 4, 0, EQN);
}

static struct rdma_hca_qpc make_qpc(void)
{
    return (struct rdma_hca_qpc) {
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .cqn_snd = GUINT32_TO_BE(CQN),
        .cqn_rcv = GUINT32_TO_BE(CQN),
    };
}

/* A region, an EQ for everything, a CQ: all by commands. */
static void make_objects(Fix *fix)
{
    struct rdma_hca_mpt mpt = make_mpt(fix);
    struct rdma_hca_eqc eqc = make_eqc();
    struct rdma_hca_cqc cqc = make_cqc();

    g_assert_cmphex(
        run_in(fix, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), MPT, 0), ==, 0);
    g_assert_cmphex(
        run_in(fix, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), EQN, 0), ==, 0);
    g_assert_cmphex(run(fix, RDMA_HCA_CMD_MAP_EQ, UINT64_MAX, EQN, 0, 0), ==,
                    0);
    g_assert_cmphex(
        run_in(fix, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc), CQN, 0), ==, 0);
}

/* 3.1.1: the registers */

static void test_hcr_registers(void)
{
    HcaCeu *ceu;
    Fix fix;

    fix_init(&fix);
    ceu = fix.hca.ceu;
    for (uint32_t offset = 0; offset < CTRL; offset += 4) {
        g_assert_false(hca_ceu_write(ceu, offset, 0x11111111 * (offset + 1)));
        g_assert_cmphex(hca_ceu_read(ceu, offset), ==,
                        0x11111111 * (offset + 1));
    }
    /* Without GO nothing starts; the status is read-only. */
    g_assert_false(hca_ceu_write(ceu, CTRL, ~RDMA_HCA_HCR_GO));
    g_assert_cmphex(ctrl(&fix), ==, 0x007fffff);
    hca_ceu_run(ceu);
    g_assert_cmpuint(hca_ceu_counters(ceu)->commands, ==, 0);
    /* Busy: writes are ignored and counted, one cannot take GO back. */
    g_assert_true(start(&fix, RDMA_HCA_CMD_NOP, 1, 2, 3, 4));
    for (uint32_t offset = 0; offset <= CTRL; offset += 4) {
        g_assert_false(hca_ceu_write(ceu, offset, 0));
    }
    g_assert_true(ctrl(&fix) & RDMA_HCA_HCR_GO);
    g_assert_cmpuint(hca_ceu_counters(ceu)->ignored_writes, ==, 7);
    hca_ceu_run(ceu);
    g_assert_cmphex(ctrl(&fix), ==, RDMA_HCA_CMD_NOP);
    g_assert_cmphex(hca_ceu_read(ceu, RDMA_HCA_HCR_OUT_PARAM_L), ==, 3);
    /* Reset forgets what waits. */
    g_assert_true(start(&fix, RDMA_HCA_CMD_NOP, 0, 0, 0, 0));
    hca_ceu_reset(ceu);
    g_assert_cmphex(ctrl(&fix), ==, 0);
    hca_ceu_run(ceu);
    g_assert_cmpuint(hca_ceu_counters(ceu)->commands, ==, 0);
    fix_free(&fix);
}

/* 3.2: each opcode in each state of the card */

typedef struct Legal {
    uint16_t op;
    bool before, after;
} Legal;

static const Legal legal[] = {
    { RDMA_HCA_CMD_QUERY_DEV_LIM, true, true },
    { RDMA_HCA_CMD_QUERY_FW, true, true },
    { RDMA_HCA_CMD_QUERY_ADAPTER, true, true },
    { RDMA_HCA_CMD_QUERY_PORT, true, true },
    { RDMA_HCA_CMD_NOP, true, true },
    { RDMA_HCA_CMD_MAP_ICM, true, true },
    { RDMA_HCA_CMD_UNMAP_ICM, true, true },
    { RDMA_HCA_CMD_INIT_HCA, true, false },
    { RDMA_HCA_CMD_CLOSE_HCA, false, true },
    { RDMA_HCA_CMD_INIT_IB, false, true },
    { RDMA_HCA_CMD_CLOSE_IB, false, true },
    { RDMA_HCA_CMD_SW2HW_MPT, false, true },
    { RDMA_HCA_CMD_QUERY_MPT, false, true },
    { RDMA_HCA_CMD_HW2SW_MPT, false, true },
    { RDMA_HCA_CMD_READ_MTT, false, true },
    { RDMA_HCA_CMD_WRITE_MTT, false, true },
    { RDMA_HCA_CMD_SYNC_TPT, false, true },
    { RDMA_HCA_CMD_MAP_EQ, false, true },
    { RDMA_HCA_CMD_SW2HW_EQ, false, true },
    { RDMA_HCA_CMD_HW2SW_EQ, false, true },
    { RDMA_HCA_CMD_QUERY_EQ, false, true },
    { RDMA_HCA_CMD_SW2HW_CQ, false, true },
    { RDMA_HCA_CMD_HW2SW_CQ, false, true },
    { RDMA_HCA_CMD_QUERY_CQ, false, true },
    { RDMA_HCA_CMD_RESIZE_CQ, false, true },
    { RDMA_HCA_CMD_MODIFY_CQ, false, true },
    { RDMA_HCA_CMD_SW2HW_SRQ, false, true },
    { RDMA_HCA_CMD_HW2SW_SRQ, false, true },
    { RDMA_HCA_CMD_QUERY_SRQ, false, true },
    { RDMA_HCA_CMD_ARM_SRQ, false, true },
    { RDMA_HCA_CMD_RESIZE_SRQ, false, true },
    { RDMA_HCA_CMD_QUERY_QP, false, true },
    { RDMA_HCA_CMD_SET_QP_COUNTERS, false, true },
    { RDMA_HCA_CMD_QUERY_QP_COUNTERS, true, true },
    { RDMA_HCA_CMD_RST2INIT_QPEE, false, true },
    { RDMA_HCA_CMD_INIT2INIT_QPEE, false, true },
    { RDMA_HCA_CMD_INIT2RTR_QPEE, false, true },
    { RDMA_HCA_CMD_RTR2RTS_QPEE, false, true },
    { RDMA_HCA_CMD_RTS2RTS_QPEE, false, true },
    { RDMA_HCA_CMD_SQERR2RTS_QPEE, false, true },
    { RDMA_HCA_CMD_2ERR_QPEE, false, true },
    { RDMA_HCA_CMD_RTS2SQD_QPEE, false, true },
    { RDMA_HCA_CMD_SQD2SQD_QPEE, false, true },
    { RDMA_HCA_CMD_SQD2RTS_QPEE, false, true },
    { RDMA_HCA_CMD_ERR2RST_QPEE, false, true },
    { RDMA_HCA_CMD_DIAG_RPRT, true, true },
    { RDMA_HCA_CMD_WRITE_MGM, false, true },
    { RDMA_HCA_CMD_READ_MGM, false, true },
    { RDMA_HCA_CMD_SET_IB, false, true },
    { RDMA_HCA_CMD_SET_NODE_DESC, false, true },
    { RDMA_HCA_CMD_CONF_SPECIAL_QP, false, true },
    { RDMA_HCA_CMD_MAD_IFC, false, true },
};

/* Those of a RoCE card, which this one is not. */
static bool is_roce_command(uint16_t op)
{
    return op == RDMA_HCA_CMD_SET_GID || op == RDMA_HCA_CMD_SETUP_ETH ||
           op == RDMA_HCA_CMD_SET_RX_MODE || op == RDMA_HCA_CMD_SET_FLOW ||
           op == RDMA_HCA_CMD_SET_RSS || op == RDMA_HCA_CMD_MODIFY_ETH ||
           op == RDMA_HCA_CMD_SET_PAUSE || op == RDMA_HCA_CMD_SET_MTU;
}

static const Legal *find_legal(uint16_t op)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(legal); i++) {
        if (legal[i].op == op) {
            return &legal[i];
        }
    }
    return NULL;
}

static void try_opcodes(Fix *fix, bool after)
{
    for (unsigned op = 0; op <= 0xfff; op++) {
        const Legal *row = find_legal(op);
        uint8_t status;

        if (after && op == RDMA_HCA_CMD_CLOSE_HCA) {
            continue;
        }
        status = run(fix, op, fix->in, 1, 1, fix->out);
        if (!row) {
            g_assert_cmphex(status, ==, RDMA_HCA_STAT_BAD_OP);
            g_assert_true(is_roce_command(op) ==
                          !!hca_ceu_command_name(&hca_interface, op));
        } else if (after ? !row->after : !row->before) {
            g_assert_cmphex(status, ==, RDMA_HCA_STAT_BAD_SYS_STATE);
        } else {
            g_assert_cmphex(status, !=, RDMA_HCA_STAT_BAD_OP);
            g_assert_cmphex(status, !=, RDMA_HCA_STAT_BAD_SYS_STATE);
            g_assert_nonnull(hca_ceu_command_name(&hca_interface, op));
        }
    }
}

static void test_opcodes(void)
{
    Fix fix;

    fix_init(&fix);
    /* INIT_HCA of a mailbox of zeros asks for one of everything. */
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_INIT_HCA, fix.in, 0, 0, 0), ==, 0);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), ==, 0);
    memset(ram_at(fix.ram, fix.in), 0xff, RAM_PAGE);
    try_opcodes(&fix, false);
    init_hca(&fix);
    memset(ram_at(fix.ram, fix.in), 0xff, RAM_PAGE);
    try_opcodes(&fix, true);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), ==, 0);
    try_opcodes(&fix, false);
    g_assert_cmpuint(
        hca_ceu_counters(fix.hca.ceu)->status[RDMA_HCA_STAT_BAD_OP], ==,
        3 * (0x1000 - G_N_ELEMENTS(legal)));
    g_assert_cmpuint(hca_ceu_counters(fix.hca.ceu)->opcodes[0xfff], ==, 3);
    fix_free(&fix);
}

/* Mailboxes that are not memory, or not where they should be */

static const uint64_t bad_boxes[] = {
    RAM_HOLE,
    0,
    8,
    RAM_BASE + 4,
    RAM_BASE - RAM_PAGE,
    RAM_BASE + RAM_SIZE,
    RAM_BASE + RAM_SIZE - 16,
    UINT64_MAX - 15,
    UINT64_MAX,
};

static void test_mailbox_address(void)
{
    static const uint16_t in_ops[] = {
        RDMA_HCA_CMD_SW2HW_MPT,     RDMA_HCA_CMD_SW2HW_EQ,
        RDMA_HCA_CMD_SW2HW_CQ,      RDMA_HCA_CMD_RESIZE_CQ,
        RDMA_HCA_CMD_RST2INIT_QPEE, RDMA_HCA_CMD_WRITE_MTT,
        RDMA_HCA_CMD_MAP_ICM,
    };
    static const uint16_t out_ops[] = {
        RDMA_HCA_CMD_QUERY_DEV_LIM, RDMA_HCA_CMD_QUERY_FW,
        RDMA_HCA_CMD_QUERY_ADAPTER, RDMA_HCA_CMD_QUERY_PORT,
        RDMA_HCA_CMD_QUERY_QP,      RDMA_HCA_CMD_QUERY_CQ,
        RDMA_HCA_CMD_QUERY_EQ,      RDMA_HCA_CMD_QUERY_MPT,
        RDMA_HCA_CMD_READ_MTT,
    };
    Fix fix;

    fix_init(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_boxes); i++) {
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_INIT_HCA, bad_boxes[i], 0, 0, 0),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    init_hca(&fix);
    make_objects(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_boxes); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(in_ops); j++) {
            uint8_t mod = in_ops[j] == RDMA_HCA_CMD_MAP_ICM;

            g_assert_cmphex(run(&fix, in_ops[j], bad_boxes[i], 1, mod, 0), ==,
                            RDMA_HCA_STAT_BAD_PARAM);
        }
        for (unsigned j = 0; j < G_N_ELEMENTS(out_ops); j++) {
            g_assert_cmphex(run(&fix, out_ops[j], 0, 1, 0, bad_boxes[i]), ==,
                            RDMA_HCA_STAT_BAD_PARAM);
        }
    }
    /* Memory that may only be read is good for an inbox alone. */
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_FW, 0, 0, 0, RAM_ROM), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    /* Numbers of entries that no mailbox holds. */
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_ICM, fix.in, 0, 1, 0), ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_ICM, fix.in, 257, 1, 0), ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_ICM, fix.in, UINT32_MAX, 1, 0),
                    ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_WRITE_MTT, fix.in, 0, 0, 0), ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_WRITE_MTT, fix.in, 509, 0, 0), ==,
                    3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_READ_MTT, 0, 509, 0, fix.out), ==,
                    3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_READ_MTT, 0, 0, 0, fix.out), ==, 3);
    fix_free(&fix);
}

/* Everything at random: a status each time, and the unit goes on. */
static void test_random(void)
{
    static const uint32_t odd[] = { 0,          1,          2,         3,
                                    15,         16,         255,       256,
                                    0x7fffffff, 0x80000000, 0xffffffff };
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    make_objects(&fix);
    for (unsigned i = 0; i < 200000; i++) {
        const Legal *row =
            &legal[g_test_rand_int_range(0, G_N_ELEMENTS(legal))];
        uint32_t *box = ram_at(fix.ram, fix.in);
        uint32_t modifier = g_test_rand_int() & 1
                                ? (uint32_t)g_test_rand_int_range(0, 20)
                                : odd[g_test_rand_int() % G_N_ELEMENTS(odd)];

        for (unsigned n = g_test_rand_int_range(0, 6); n; n--) {
            box[g_test_rand_int_range(0, 72)] = GUINT32_TO_BE(
                g_test_rand_int() & 1
                    ? odd[g_test_rand_int() % G_N_ELEMENTS(odd)]
                    : (uint32_t)g_test_rand_int() >> (g_test_rand_int() & 31));
        }
        run(&fix, row->op,
            g_test_rand_int() & 7 ? fix.in
                                  : (uint64_t)(uint32_t)g_test_rand_int(),
            modifier, g_test_rand_int() & 3,
            g_test_rand_int() & 7 ? fix.out : bad_boxes[i % 9]);
    }
    g_assert_cmpuint(hca_ceu_counters(fix.hca.ceu)->commands, >, 200000);
    g_assert_cmpuint(hca_ceu_counters(fix.hca.ceu)->status[0], >, 1000);
    fix_free(&fix);
}

/* 3.2.1: what the card is */

#define GET_LIM(field, word)                                                   \
    RDMA_HCA_GET(RDMA_HCA_DEV_LIM_##field, GUINT32_FROM_BE(word))

static void test_query_dev_lim(void)
{
    const struct rdma_hca_dev_lim *lim;
    Fix fix;

    fix_init(&fix);
    lim = run_out(&fix, RDMA_HCA_CMD_QUERY_DEV_LIM, 0);
    g_assert_cmpuint(GET_LIM(RESERVED_QP, lim->reserved_qp_cq_eq_mtt), ==, 1);
    g_assert_cmpuint(GET_LIM(MAX_QPS, lim->max_qps_cqs_eqs_mpts), ==, 14);
    g_assert_cmpuint(GET_LIM(MAX_CQS, lim->max_qps_cqs_eqs_mpts), ==, 14);
    g_assert_cmpuint(GET_LIM(MAX_EQS, lim->max_qps_cqs_eqs_mpts), ==, 5);
    g_assert_cmpuint(GET_LIM(MAX_MPTS, lim->max_qps_cqs_eqs_mpts), ==, 15);
    g_assert_cmpuint(GET_LIM(MTTS, lim->uars_mtts_msg), ==, 20);
    g_assert_cmpuint(GET_LIM(UARS, lim->uars_mtts_msg), ==, 11);
    g_assert_cmpuint(GET_LIM(MAX_SG, lim->max_sg_desc_sz), ==, 30);
    g_assert_cmpuint(GET_LIM(MAX_DESC_SZ, lim->max_sg_desc_sz), ==, 1008);
    g_assert_cmpuint(GET_LIM(MAX_DESC_SZ, lim->max_sg_desc_sz_rq), ==, 512);
    g_assert_cmpuint(GET_LIM(SRA, lim->rd_atomic_inline), ==, 16);
    g_assert_cmpuint(GET_LIM(MAX_MTU, lim->port), ==, 5);
    g_assert_cmpuint(GET_LIM(NUM_PORTS, lim->port), ==, 1);
    g_assert_cmpuint(GET_LIM(MIN_PAGE_SZ, lim->min_page_sz), ==, 12);
    g_assert_cmpuint(GET_LIM(QPC_SZ, lim->qpc_cqc_entry_sz), ==, 256);
    g_assert_cmphex(GUINT32_FROM_BE(lim->max_icm_sz_h), ==, 1);
    g_assert_cmpuint(GET_LIM(MAX_SRQS, lim->srqs), ==, 12);
    g_assert_cmpuint(GET_LIM(MAX_SRQ_WQES, lim->srqs), ==, 14);
    g_assert_cmpuint(GET_LIM(SRQC_SZ, lim->srqs), ==, 64);
    g_assert_cmpuint(GET_LIM(RESERVED_SRQ, lim->srq_page_list), ==, 0);
    g_assert_cmpuint(GET_LIM(MAX_SRQ_SGE, lim->srq_page_list), ==, 30);
    g_assert_cmpuint(GET_LIM(SQ_SLOTS, lim->xrcds_counters), ==, 22);
    g_assert_cmphex(GUINT32_FROM_BE(lim->dev_mem_h), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(lim->dev_mem_l), ==, 4 << 20);
    /* Only the mailbox has been written. */
    g_assert_cmphex(((uint8_t *)lim)[sizeof(*lim)], ==, 0xee);
    fix_free(&fix);
}

static void test_query_identity(void)
{
    const struct rdma_hca_adapter *adapter;
    const struct rdma_hca_fw *fw;
    Fix fix;

    fix_init(&fix);
    fw = run_out(&fix, RDMA_HCA_CMD_QUERY_FW, 0);
    g_assert_cmphex(GUINT32_FROM_BE(fw->magic), ==, RDMA_HCA_FW_MAGIC);
    g_assert_cmpuint(GUINT32_FROM_BE(fw->interface_version), ==,
                     RDMA_HCA_INTERFACE_VERSION);
    adapter = run_out(&fix, RDMA_HCA_CMD_QUERY_ADAPTER, 0);
    g_assert_cmphex(adapter->board_id_l, !=, 0);
    g_assert_cmphex(adapter->reserved[0], ==, 0);
    fix_free(&fix);
}

/* Those that a card has by its link layer, or by an option. */
static void test_query_features(void)
{
    Fix fix;

    fix_init(&fix);
    for (unsigned roce = 0; roce < 2; roce++) {
        for (unsigned v1 = 0; v1 < 2; v1++) {
            const struct rdma_hca_fw *fw;
            uint32_t features;

            fix.hca.config.link_layer = roce ? HCA_LINK_LAYER_ROCE
                                             : HCA_LINK_LAYER_IB;
            fix.hca.config.roce_v1_gids = v1;
            fw = run_out(&fix, RDMA_HCA_CMD_QUERY_FW, 0);
            features = GUINT32_FROM_BE(fw->features);
            g_assert_cmpuint(!!(features & RDMA_HCA_FEATURE_ETH), ==, roce);
            g_assert_cmpuint(!!(features & RDMA_HCA_FEATURE_MAD), ==, !roce);
            g_assert_cmpuint(!!(features & RDMA_HCA_FEATURE_ROCE_V1_GIDS), ==,
                             roce && v1);
        }
    }
    fix.hca.config.link_layer = HCA_LINK_LAYER_IB;
    fix_free(&fix);
}

static unsigned port_word(Fix *fix, uint32_t mask)
{
    const struct rdma_hca_port *port = run_out(fix, RDMA_HCA_CMD_QUERY_PORT, 1);

    return RDMA_HCA_GET(mask, GUINT32_FROM_BE(port->state));
}

static void test_query_port(void)
{
    const struct rdma_hca_port *port;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_PORT, 0, 0, 0, fix.out), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_PORT, 0, 2, 0, fix.out), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    init_hca(&fix);
    g_assert_cmpuint(port_word(&fix, RDMA_HCA_PORT_STATE), ==, 1);
    g_assert_cmpuint(port_word(&fix, RDMA_HCA_PORT_PHYS_STATE), ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_INIT_IB, 0, 2, 0, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_false(hca_port_is_enabled(fix.hca.port));
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0), ==, 0);
    g_assert_true(hca_port_is_enabled(fix.hca.port));
    /* Enabled, and nobody at the other end. */
    g_assert_cmpuint(port_word(&fix, RDMA_HCA_PORT_STATE), ==, 1);
    g_assert_cmpuint(port_word(&fix, RDMA_HCA_PORT_PHYS_STATE), ==, 2);
    port = run_out(&fix, RDMA_HCA_CMD_QUERY_PORT, 1);
    g_assert_cmpuint(GUINT32_FROM_BE(port->lid), ==, 9);
    g_assert_cmphex(GUINT32_FROM_BE(port->gid_prefix_h), ==, 0xfe800000);
    g_assert_cmphex(GUINT32_FROM_BE(port->guid_h), ==, 0x11223344);
    g_assert_cmphex(GUINT32_FROM_BE(port->guid_l), ==, 0x55667788);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0), ==, 0);
    g_assert_false(hca_port_is_enabled(fix.hca.port));
    fix_free(&fix);
}

/* A region's PD is one that the card has. */
static void test_mpt_pd(void)
{
    struct rdma_hca_mpt mpt;
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    mpt = make_mpt(&fix);
    mpt.pd = GUINT32_TO_BE(1u << fix.hca.config.log_pds);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), MPT, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    mpt.pd = GUINT32_TO_BE((1u << fix.hca.config.log_pds) - 1);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), MPT, 0), ==, 0);
    fix_free(&fix);
}

/* INIT_HCA: all tables or none; after CLOSE_HCA nothing is left of them. */
static void test_init_hca(void)
{
    struct rdma_hca_init_hca init = make_init();
    Fix fix;

    fix_init(&fix);
    init.cqc_base_l = GUINT32_TO_BE(5);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_EXCEED_LIM);
    init = make_init();
    init.mtt_base_h = GUINT32_TO_BE(1);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_QP, 0, 0, 0, fix.out), ==,
                    RDMA_HCA_STAT_BAD_SYS_STATE);
    for (unsigned round = 0; round < 3; round++) {
        const HcaCxtLive *live = hca_cxt_live(fix.hca.cm);
        struct rdma_hca_qpc qpc = make_qpc();

        init = make_init();
        if (round == 0) {
            init_hca(&fix);
        } else {
            g_assert_cmphex(
                run_in(&fix, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0),
                ==, 0);
        }
        make_objects(&fix);
        g_assert_cmphex(
            run_in(&fix, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc, sizeof(qpc), 3, 0),
            ==, 0);
        g_assert_cmpuint(live->qps + live->cqs + live->eqs, ==, 3);
        g_assert_cmpuint(hca_v2p_live_mpts(fix.hca.v2p), ==, 1);
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), ==, 0);
        g_assert_cmpuint(live->qps + live->cqs + live->eqs, ==, 0);
        g_assert_cmpuint(hca_v2p_live_mpts(fix.hca.v2p), ==, 0);
    }
    fix_free(&fix);
}

/* 3.2.2: MAP_ICM in groups of two, all or nothing */
static void test_map_icm(void)
{
    struct rdma_hca_icm_entry entry[4] = { { 0 } };
    uint64_t pages;
    Fix fix;

    fix_init(&fix);
    pages = ram_alloc(fix.ram, 8);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_ICM, fix.in, 1, 0, 0), ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_ICM, fix.in, 1, 3, 0), ==, 3);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_UNMAP_ICM, 0, 1, 0, 0), ==, 3);
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        /* The third is at 0x30, where the fourth would be is nothing. */
        entry[1] = icm_entry(0x0000, pages, 2);
        entry[0] = icm_entry(0x2000, pages + 0x2000, 1);
        entry[3] = icm_entry(0x1000, pages + 0x3000, 4);
        g_assert_cmphex(
            run_in(&fix, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 3, kind),
            ==, 3);
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_UNMAP_ICM, 0x2000, 1, kind, 0),
                        ==, 3);
        entry[3] = icm_entry(0x3000, pages + 0x3000, 4);
        g_assert_cmphex(
            run_in(&fix, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 3, kind),
            ==, 0);
        g_assert_cmphex(
            run_in(&fix, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 1, kind),
            ==, 3);
        entry[1] = icm_entry(0x10000, pages, 0);
        g_assert_cmphex(
            run_in(&fix, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 1, kind),
            ==, 3);
        /* Unmapped in other pieces and another order than mapped. */
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_UNMAP_ICM, 0x5000, 2, kind, 0),
                        ==, 0);
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_UNMAP_ICM, 0, 6, kind, 0), ==,
                        3);
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_UNMAP_ICM, 0, 5, kind, 0), ==,
                        0);
    }
    fix_free(&fix);
}

/* 3.2.3: WRITE_MTT in groups of four, READ_MTT the same */
static void test_write_mtt(void)
{
    struct rdma_hca_mtt_mailbox *box;
    const struct rdma_hca_mtt_mailbox *got;
    const uint64_t *table;
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    box = ram_at(fix.ram, fix.in);
    for (uint32_t n = 1; n <= 200; n++) {
        memset(box, 0, RAM_PAGE);
        box->start_index_l = GUINT32_TO_BE(n % 50);
        for (uint32_t i = 0; i < n; i++) {
            box->entry[i ^ 3].addr_h = GUINT32_TO_BE(n);
            box->entry[i ^ 3].addr_l = GUINT32_TO_BE(i << 12);
        }
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_WRITE_MTT, fix.in, n, 0, 0), ==,
                        0);
        memset(ram_at(fix.ram, fix.out), 0xee, RAM_PAGE);
        g_assert_cmphex(run(&fix, RDMA_HCA_CMD_READ_MTT, n % 50, n, 0, fix.out),
                        ==, 0);
        got = ram_at(fix.ram, fix.out);
        g_assert_cmpmem(got, 32 + 8 * ((n + 3) / 4 * 4), box,
                        32 + 8 * ((n + 3) / 4 * 4));
    }
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_SYNC_TPT, 0, 0, 0, 0), ==, 0);
    /* In ICM they lie in order (the last n was 200, at 0). */
    table = ram_at(fix.ram, fix.ram->bump - 8 * RAM_PAGE + MTT_BASE);
    for (uint32_t i = 0; i < 200; i++) {
        g_assert_cmphex(GUINT64_FROM_BE(table[i]), ==,
                        UINT64_C(200) << 32 | i << 12);
    }
    box->start_index_h = GUINT32_TO_BE(1);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_WRITE_MTT, fix.in, 4, 0, 0), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_READ_MTT, 255, 2, 0, fix.out), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    fix_free(&fix);
}

/* Objects by commands: queries answer what was written. */
static void test_objects(void)
{
    const struct rdma_hca_mpt *mpt;
    const struct rdma_hca_cqc *cqc;
    const struct rdma_hca_eqc *eqc;
    struct rdma_hca_resize_cq resize = { 0 };
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    make_objects(&fix);
    mpt = run_out(&fix, RDMA_HCA_CMD_QUERY_MPT, MPT);
    g_assert_cmphex(GUINT32_FROM_BE(mpt->key), ==, KEY);
    eqc = run_out(&fix, RDMA_HCA_CMD_QUERY_EQ, EQN);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_h), ==, 0xffffffff);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_EQ, UINT64_C(3) << 31,
                        RDMA_HCA_MAP_EQ_UNMAP | EQN, 0, 0),
                    ==, 0);
    eqc = run_out(&fix, RDMA_HCA_CMD_QUERY_EQ, EQN);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_h), ==, 0xfffffffe);
    g_assert_cmphex(GUINT32_FROM_BE(eqc->event_mask_l), ==, 0x7fffffff);
    resize.logsize = GUINT32_TO_BE(
        RDMA_HCA_PREP(RDMA_HCA_RESIZE_CQ_LOGSIZE, 6));
    resize.lkey = GUINT32_TO_BE(0x77);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_RESIZE_CQ, &resize, sizeof(resize), CQN, 0),
        ==, 0);
    cqc = run_out(&fix, RDMA_HCA_CMD_QUERY_CQ, CQN);
    g_assert_cmphex(GUINT32_FROM_BE(cqc->lkey), ==, 0x77);
    g_assert_cmphex(GUINT32_FROM_BE(cqc->logsize_usrpage) >> 24, ==, 6);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_HW2SW_EQ, 0, EQN, 0, 0), ==,
                    RDMA_HCA_STAT_RESOURCE_BUSY);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_HW2SW_CQ, 0, CQN, 0, 0), ==, 0);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_HW2SW_EQ, 0, EQN, 0, 0), ==, 0);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_HW2SW_MPT, 0, MPT, 0, 0), ==, 0);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_HW2SW_MPT, 0, MPT, 0, 0), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    fix_free(&fix);
}

/* 3.2.6.1: with an inbox and without */
static void test_modify_qp(void)
{
    struct rdma_hca_qpc qpc = make_qpc();
    const struct rdma_hca_qpc *got;
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    make_objects(&fix);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_RST2INIT_QPEE, 0, 3, 3, 0), ==, 3);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc, sizeof(qpc), 3, 1), ==,
        3);
    g_assert_cmphex(run_in(&fix, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc, sizeof(qpc),
                           3 | 1u << 31, 0),
                    ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(
        run_in(&fix, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc, sizeof(qpc), 3, 0), ==,
        0);
    got = run_out(&fix, RDMA_HCA_CMD_QUERY_QP, 3);
    g_assert_cmphex(GUINT32_FROM_BE(got->flags), ==, 1u << 28);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_RTS2SQD_QPEE, 0, 3 | 1u << 31, 3, 0),
                    ==, RDMA_HCA_STAT_BAD_QP_STATE);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_2ERR_QPEE, 0, 3, 3, 0), ==, 0);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_ERR2RST_QPEE, 0, 3, 3, 0), ==, 0);
    got = run_out(&fix, RDMA_HCA_CMD_QUERY_QP, 3);
    g_assert_cmphex(GUINT32_FROM_BE(got->flags), ==, 0);
    fix_free(&fix);
}

/* Completion by an event; with a full EQ the next command has to wait. */
static void test_events(void)
{
    const struct rdma_hca_eqe *eqe;
    const uint32_t nop = RDMA_HCA_CMD_NOP | RDMA_HCA_HCR_EVENT;
    HcaCeu *ceu;
    Fix fix;

    fix_init(&fix);
    ceu = fix.hca.ceu;
    /* Nobody to tell: it is done all the same. */
    g_assert_true(start(&fix, nop, 0, 0, 0, 1));
    hca_ceu_run(ceu);
    g_assert_cmphex(ctrl(&fix), ==, nop);
    init_hca(&fix);
    make_objects(&fix);
    eqe = ram_at(fix.ram, fix.queues);
    for (uint16_t token = 0x100; token < 0x104; token++, eqe++) {
        g_assert_true(start(&fix, nop | 0xff, 0, 0, 0x1234567890, token));
        hca_ceu_run(ceu);
        g_assert_false(ctrl(&fix) & RDMA_HCA_HCR_GO);
        g_assert_cmphex(eqe->type, ==, RDMA_HCA_EVENT_CMD);
        g_assert_cmphex(GUINT32_FROM_LE(eqe->cmd.token), ==, token);
        g_assert_cmphex(GUINT32_FROM_LE(eqe->cmd.status), ==,
                        RDMA_HCA_STAT_BAD_OP);
        g_assert_cmphex(GUINT32_FROM_LE(eqe->cmd.out_param_h), ==, 0x12);
        g_assert_cmphex(GUINT32_FROM_LE(eqe->cmd.out_param_l), ==, 0x34567890);
    }
    /* One more is done and its event waits; another is not begun. */
    g_assert_true(start(&fix, nop, 0, 0, 0, 0x104));
    hca_ceu_run(ceu);
    g_assert_false(ctrl(&fix) & RDMA_HCA_HCR_GO);
    /* ...but one without an event is. */
    g_assert_true(start(&fix, RDMA_HCA_CMD_NOP, 0, 0, 0, 0));
    hca_ceu_run(ceu);
    g_assert_cmphex(ctrl(&fix), ==, RDMA_HCA_CMD_NOP);
    g_assert_true(start(&fix, nop, 0, 0, 0, 0x105));
    hca_ceu_run(ceu);
    hca_ceu_run(ceu);
    g_assert_true(ctrl(&fix) & RDMA_HCA_HCR_GO);
    hca_eq_doorbell(fix.hca.cm, EQN, 2, RDMA_HCA_EQ_DB_CI, false);
    hca_ceu_run(ceu);
    g_assert_false(ctrl(&fix) & RDMA_HCA_HCR_GO);
    eqe = ram_at(fix.ram, fix.queues);
    g_assert_cmphex(GUINT32_FROM_LE(eqe[0].cmd.token), ==, 0x104);
    g_assert_cmphex(GUINT32_FROM_LE(eqe[1].cmd.token), ==, 0x105);
    fix_free(&fix);
}

/* Figure 2-3: CEU_ctrl, arc by arc */

static uint64_t mailboxes_refused(Fix *fix)
{
    return hca_ceu_counters(fix->hca.ceu)->mailboxes_refused;
}

/* DECODE, EXECUTE, IDLE: what a command does not use is not looked at. */
static void test_ctrl_no_inbox(void)
{
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    make_objects(&fix);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_NOP, RAM_HOLE, 0, 0, RAM_HOLE + 1),
                    ==, 0);
    g_assert_cmphex(
        run(&fix, RDMA_HCA_CMD_HW2SW_CQ, RAM_HOLE, CQN, 0, RAM_HOLE + 1), ==,
        0);
    g_assert_cmpuint(mailboxes_refused(&fix), ==, 0);
    fix_free(&fix);
}

/* DECODE, GET_INBOX, EXECUTE, IDLE: as many bytes are read as there are. */
static void test_ctrl_inbox(void)
{
    const uint64_t last = RAM_BASE + RAM_SIZE -
                          2 * sizeof(struct rdma_hca_icm_entry);
    struct rdma_hca_icm_entry *entry;
    Fix fix;

    fix_init(&fix);
    entry = ram_at(fix.ram, last);
    entry[RDMA_HCA_ICM_SLOT(0)] = icm_entry(0, ram_alloc(fix.ram, 1), 1);
    g_assert_cmphex(
        run(&fix, RDMA_HCA_CMD_MAP_ICM, last, 1, RDMA_HCA_ICM_CXT, 0), ==, 0);
    g_assert_cmpuint(hca_cxt_live_pages(fix.hca.cm), ==, 1);
    g_assert_cmpuint(hca_v2p_live_pages(fix.hca.v2p), ==, 0);
    /* A third entry would lie behind the end of memory. */
    g_assert_cmphex(
        run(&fix, RDMA_HCA_CMD_MAP_ICM, last, 3, RDMA_HCA_ICM_TPT, 0), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpuint(mailboxes_refused(&fix), ==, 1);
    fix_free(&fix);
}

/* GET_INBOX, IDLE: without its inbox nothing is executed. */
static void test_ctrl_inbox_refused(void)
{
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    make_objects(&fix);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_SW2HW_CQ, RAM_HOLE, CQN + 1, 0, 0),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpuint(mailboxes_refused(&fix), ==, 1);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_CQ, 0, CQN + 1, 0, fix.out),
                    ==, RDMA_HCA_STAT_BAD_RES_STATE);
    fix_free(&fix);
}

/* DECODE, IDLE: a command that cannot be has no mailboxes. */
static void test_ctrl_decode_refused(void)
{
    const uint8_t *out;
    Fix fix;

    fix_init(&fix);
    g_assert_cmphex(run(&fix, 0xfff, RAM_HOLE, 0, 0, RAM_HOLE), ==,
                    RDMA_HCA_STAT_BAD_OP);
    g_assert_cmphex(
        run(&fix, RDMA_HCA_CMD_SW2HW_CQ, RAM_HOLE, CQN, 0, RAM_HOLE), ==,
        RDMA_HCA_STAT_BAD_SYS_STATE);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_MAP_ICM, RAM_HOLE, 1, 3, RAM_HOLE),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpuint(mailboxes_refused(&fix), ==, 0);
    /* An outbox out of place is found here, too. */
    out = ram_at(fix.ram, fix.out);
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_FW, 0, 0, 0, fix.out + 8), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpuint(mailboxes_refused(&fix), ==, 1);
    g_assert_cmphex(out[8], ==, 0);
    fix_free(&fix);
}

/* EXECUTE, IDLE: a command that fails writes no outbox. */
static void test_ctrl_execute_refused(void)
{
    uint8_t *out;
    Fix fix;

    fix_init(&fix);
    init_hca(&fix);
    make_objects(&fix);
    out = ram_at(fix.ram, fix.out);
    memset(out, 0xee, sizeof(struct rdma_hca_cqc));
    g_assert_cmphex(run(&fix, RDMA_HCA_CMD_QUERY_CQ, 0, CQN + 1, 0, fix.out),
                    ==, RDMA_HCA_STAT_BAD_RES_STATE);
    for (unsigned i = 0; i < sizeof(struct rdma_hca_cqc); i++) {
        g_assert_cmphex(out[i], ==, 0xee);
    }
    g_assert_cmpuint(mailboxes_refused(&fix), ==, 0);
    fix_free(&fix);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/ceu/hcr/registers", test_hcr_registers);
    test_add("/ceu/opcodes", test_opcodes);
    test_add("/ceu/mailbox-address", test_mailbox_address);
    test_add("/ceu/random", test_random);
    test_add("/ceu/query/dev-lim", test_query_dev_lim);
    test_add("/ceu/query/identity", test_query_identity);
    test_add("/ceu/query/features", test_query_features);
    test_add("/ceu/query/port", test_query_port);
    test_add("/ceu/mpt-pd", test_mpt_pd);
    test_add("/ceu/init-hca", test_init_hca);
    test_add("/ceu/map-icm", test_map_icm);
    test_add("/ceu/write-mtt", test_write_mtt);
    test_add("/ceu/objects", test_objects);
    test_add("/ceu/modify-qp", test_modify_qp);
    test_add("/ceu/events", test_events);
    test_add("/ceu/fig-2.3/no-inbox", test_ctrl_no_inbox);
    test_add("/ceu/fig-2.3/inbox", test_ctrl_inbox);
    test_add("/ceu/fig-2.3/inbox-refused", test_ctrl_inbox_refused);
    test_add("/ceu/fig-2.3/decode-refused", test_ctrl_decode_refused);
    test_add("/ceu/fig-2.3/execute-refused", test_ctrl_execute_refused);
    return g_test_run();
}
