/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands: every opcode in every state of the card, numbers and modifiers out
 * of range, mailboxes of noise, tables too large. Each ends with a status, and a
 * reset makes the card as good as new.
 */
#include <string.h>

#include "lib-noise.h"
#include "lib-scene.h"

static void test_random_commands(void)
{
    Scene s;

    scene_init_victim(&s, 1101);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 400; i++) {
            noise_command(&s, noise_opcode(&s));
        }
        scene_recover(&s);
    }
    scene_free(&s);
}

/* Every opcode: on a running card, and on one that is fresh from reset. */
static void test_all_opcodes(void)
{
    Scene s;

    scene_init_victim(&s, 1102);
    for (unsigned op = 0; op <= 0xfff; op++) {
        noise_command(&s, op);
    }
    scene_recover(&s);
    host_bar0_write(&s.pair->lab->host[0], RDMA_HCA_RESET, 1);
    for (unsigned op = 0; op <= 0xfff; op++) {
        noise_command(&s, op);
    }
    scene_recover(&s);
    scene_free(&s);
}

static void test_commands_under_traffic(void)
{
    Scene s;

    for (unsigned round = 0; round < 30; round++) {
        scene_init_victim(&s, 1110 + round);
        for (unsigned i = 0; i < 30; i++) {
            scene_keep_busy(&s);
            noise_command(&s, noise_opcode(&s));
        }
        scene_recover(&s);
        scene_free(&s);
    }
}

/* What a command answers when it is legal and all its arguments are bad. */
typedef struct Known {
    uint16_t op;
    bool before, after; /* INIT_HCA */
    uint8_t answer;
    bool roce; /* of RoCE cards alone */
    bool ib;   /* of InfiniBand cards alone */
} Known;

#define ANY(cmd, answer)                                                       \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, true, true, RDMA_HCA_STAT_##answer, false, false   \
    }
#define BEFORE(cmd, answer)                                                    \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, true, false, RDMA_HCA_STAT_##answer, false, false  \
    }
#define AFTER(cmd, answer)                                                     \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, false, true, RDMA_HCA_STAT_##answer, false, false  \
    }
#define ROCE(cmd, answer)                                                      \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, false, true, RDMA_HCA_STAT_##answer, true, false   \
    }
#define IB(cmd, answer)                                                        \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, false, true, RDMA_HCA_STAT_##answer, false, true   \
    }

static const Known known[] = {
    ANY(QUERY_DEV_LIM, BAD_PARAM),
    ANY(QUERY_FW, BAD_PARAM),
    ANY(QUERY_ADAPTER, BAD_PARAM),
    ANY(QUERY_PORT, BAD_INDEX),
    ANY(DIAG_RPRT, BAD_PARAM),
    ANY(NOP, OK),
    ANY(MAP_ICM, BAD_PARAM),
    ANY(UNMAP_ICM, BAD_PARAM),
    BEFORE(INIT_HCA, BAD_PARAM),
    AFTER(CLOSE_HCA, OK),
    AFTER(INIT_IB, BAD_INDEX),
    AFTER(CLOSE_IB, BAD_INDEX),
    AFTER(SW2HW_MPT, BAD_PARAM),
    AFTER(QUERY_MPT, BAD_INDEX),
    AFTER(HW2SW_MPT, BAD_INDEX),
    AFTER(READ_MTT, BAD_PARAM),
    AFTER(WRITE_MTT, BAD_PARAM),
    AFTER(SYNC_TPT, OK),
    AFTER(MAP_EQ, BAD_INDEX),
    AFTER(SW2HW_EQ, BAD_PARAM),
    AFTER(HW2SW_EQ, BAD_INDEX),
    AFTER(QUERY_EQ, BAD_INDEX),
    AFTER(SW2HW_CQ, BAD_PARAM),
    AFTER(HW2SW_CQ, BAD_INDEX),
    AFTER(QUERY_CQ, BAD_INDEX),
    AFTER(RESIZE_CQ, BAD_PARAM),
    AFTER(QUERY_QP, BAD_INDEX),
    AFTER(RST2INIT_QPEE, BAD_PARAM),
    AFTER(INIT2INIT_QPEE, BAD_PARAM),
    AFTER(INIT2RTR_QPEE, BAD_PARAM),
    AFTER(RTR2RTS_QPEE, BAD_PARAM),
    AFTER(RTS2RTS_QPEE, BAD_PARAM),
    AFTER(SQERR2RTS_QPEE, BAD_PARAM),
    AFTER(2ERR_QPEE, BAD_PARAM),
    AFTER(RTS2SQD_QPEE, BAD_PARAM),
    AFTER(SQD2SQD_QPEE, BAD_PARAM),
    AFTER(SQD2RTS_QPEE, BAD_PARAM),
    AFTER(ERR2RST_QPEE, BAD_PARAM),
    AFTER(SW2HW_SRQ, BAD_PARAM),
    AFTER(HW2SW_SRQ, BAD_INDEX),
    AFTER(QUERY_SRQ, BAD_INDEX),
    AFTER(ARM_SRQ, BAD_INDEX),
    AFTER(WRITE_MGM, BAD_PARAM),
    AFTER(READ_MGM, BAD_INDEX),
    AFTER(MODIFY_CQ, BAD_INDEX),
    AFTER(RESIZE_SRQ, BAD_PARAM),
    AFTER(SET_QP_COUNTERS, BAD_INDEX),
    ANY(QUERY_QP_COUNTERS, BAD_PARAM),
    ROCE(SET_GID, BAD_PARAM),
    ROCE(SETUP_ETH, BAD_PARAM),
    ROCE(SET_RX_MODE, BAD_PARAM),
    ROCE(SET_FLOW, BAD_PARAM),
    ROCE(SET_RSS, BAD_PARAM),
    ROCE(MODIFY_ETH, BAD_INDEX),
    ROCE(SET_PAUSE, BAD_PARAM),
    ROCE(SET_MTU, BAD_PARAM),
    IB(SET_IB, BAD_PARAM),
    IB(SET_NODE_DESC, BAD_PARAM),
    IB(CONF_SPECIAL_QP, BAD_PARAM),
    IB(MAD_IFC, BAD_PARAM),
};

static const Known *find_known(uint16_t op, bool roce)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        if (known[i].op == op && !(roce ? known[i].ib : known[i].roce)) {
            return &known[i];
        }
    }
    return NULL;
}

/* All bits set, and registers for mailboxes. */
static uint8_t worst_command(Scene *s, uint16_t op)
{
    return driver_cmd(s->drv, op, HOST_MMIO_BASE, UINT32_MAX, 0xff,
                      HOST_MMIO_BASE, NULL);
}

/* All bits clear, and mailboxes of zeros. */
static uint8_t zero_command(Scene *s, uint16_t op)
{
    host_fill(s->host, s->drv->mbox_in, 0, HOST_PAGE_SIZE);
    return driver_cmd(s->drv, op, s->drv->mbox_in, 0, 0, s->drv->mbox_out,
                      NULL);
}

static void try_opcode(Scene *s, uint16_t op, bool after)
{
    const Known *row = find_known(op, s->drv->roce);
    uint8_t worst = worst_command(s, op);
    uint8_t zero = zero_command(s, op);

    if (!row) {
        EXPECT(worst, BAD_OP);
        EXPECT(zero, BAD_OP);
    } else if (after ? row->after : row->before) {
        g_assert_cmphex(worst, ==, row->answer);
        g_assert_cmphex(zero, !=, RDMA_HCA_STAT_BAD_OP);
        g_assert_cmphex(zero, !=, RDMA_HCA_STAT_BAD_SYS_STATE);
        if (op == RDMA_HCA_CMD_INIT_HCA) {
            /* Zeros ask for one entry of each table. */
            EXPECT(zero, OK);
            EXPECT(zero_command(s, RDMA_HCA_CMD_CLOSE_HCA), OK);
        }
    } else {
        EXPECT(worst, BAD_SYS_STATE);
        EXPECT(zero, BAD_SYS_STATE);
    }
}

/*
 * CLOSE_HCA ends the state it is tried in: it is left to the end. SET_GID of
 * zeros has emptied the entry that the bystanders use.
 */
static void try_opcodes(Scene *s, bool after)
{
    for (unsigned op = 0; op <= 0xfff; op++) {
        if (!after || op != RDMA_HCA_CMD_CLOSE_HCA) {
            try_opcode(s, op, after);
        }
    }
    if (after && s->drv->roce) {
        EXPECT(driver_set_gid(s->drv, 0, &s->drv->gid[0]), OK);
    }
}

static void test_opcodes(void)
{
    Scene s;

    scene_init(&s, 2001);
    try_opcodes(&s, true); /* in full operation */
    scene_check(&s);
    driver_cmd_events(s.drv, true); /* ending by events */
    try_opcodes(&s, true);
    driver_cmd_events(s.drv, false);
    scene_check(&s);
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0), OK);
    try_opcodes(&s, true); /* port disabled */
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), OK);
    try_opcodes(&s, false); /* closed with objects */
    scene_reset_card(&s);
    try_opcodes(&s, false); /* fresh from reset */
    scene_small_map(&s);
    try_opcodes(&s, false); /* ICM, no tables */
    EXPECT(scene_small_init(&s), OK);
    try_opcodes(&s, true); /* tables, no objects */
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), OK);
    try_opcodes(&s, false);
    scene_recover(&s);
    scene_free(&s);
}

/* Numbers of objects: everything from the table's end on is BAD_INDEX. */
static void test_indices(void)
{
    static const struct {
        uint16_t op;
        unsigned log;
        size_t inbox;
    } indexed[] = {
        { RDMA_HCA_CMD_SW2HW_MPT, LOG_MPTS, 64 },
        { RDMA_HCA_CMD_QUERY_MPT, LOG_MPTS, 0 },
        { RDMA_HCA_CMD_HW2SW_MPT, LOG_MPTS, 0 },
        { RDMA_HCA_CMD_MAP_EQ, LOG_EQS, 0 },
        { RDMA_HCA_CMD_SW2HW_EQ, LOG_EQS, 64 },
        { RDMA_HCA_CMD_HW2SW_EQ, LOG_EQS, 0 },
        { RDMA_HCA_CMD_QUERY_EQ, LOG_EQS, 0 },
        { RDMA_HCA_CMD_SW2HW_CQ, LOG_CQS, 64 },
        { RDMA_HCA_CMD_HW2SW_CQ, LOG_CQS, 0 },
        { RDMA_HCA_CMD_QUERY_CQ, LOG_CQS, 0 },
        { RDMA_HCA_CMD_RESIZE_CQ, LOG_CQS, 32 },
        { RDMA_HCA_CMD_MODIFY_CQ, LOG_CQS, 0 },
        { RDMA_HCA_CMD_SW2HW_SRQ, LOG_SRQS, 64 },
        { RDMA_HCA_CMD_HW2SW_SRQ, LOG_SRQS, 0 },
        { RDMA_HCA_CMD_QUERY_SRQ, LOG_SRQS, 0 },
        { RDMA_HCA_CMD_ARM_SRQ, LOG_SRQS, 0 },
        { RDMA_HCA_CMD_RESIZE_SRQ, LOG_SRQS, 32 },
        { RDMA_HCA_CMD_QUERY_QP, LOG_QPS, 0 },
        { RDMA_HCA_CMD_SET_QP_COUNTERS, LOG_QPS, 0 },
        { RDMA_HCA_CMD_RST2INIT_QPEE, LOG_QPS, 256 },
        { RDMA_HCA_CMD_RTS2RTS_QPEE, LOG_QPS, 256 },
        { RDMA_HCA_CMD_2ERR_QPEE, LOG_QPS, 256 },
        { RDMA_HCA_CMD_ERR2RST_QPEE, LOG_QPS, 256 },
    };
    Scene s;

    scene_init(&s, 2004);
    for (unsigned i = 0; i < G_N_ELEMENTS(indexed); i++) {
        uint32_t end = 1u << indexed[i].log;
        const uint32_t numbers[] = {
            end,         end + 1,    end | 1,
            end * 2 + 1, 1u << 23,   1u << 24,
            1u << 30,    0x7ffffffe, pair_rand(s.pair, end, 0x7fffffff),
        };

        host_fill(s.host, s.drv->mbox_in, 0, HOST_PAGE_SIZE);
        for (unsigned n = 0; n < G_N_ELEMENTS(numbers); n++) {
            EXPECT(
                scene_command(&s, indexed[i].op, s.drv->mbox_in, numbers[n], 0),
                BAD_INDEX);
        }
    }
    for (uint32_t first = 4096; first; first <<= 1) {
        EXPECT(scene_command(&s, RDMA_HCA_CMD_DIAG_RPRT, 0, first, 0),
               BAD_INDEX);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_DIAG_RPRT, 0, -first, 1),
               BAD_INDEX);
    }
    for (uint32_t port = 0; port < 300; port++) {
        uint8_t status = port == 1 ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_INDEX;

        g_assert_cmphex(scene_command(&s, RDMA_HCA_CMD_QUERY_PORT, 0, port, 0),
                        ==, status);
        g_assert_cmphex(scene_command(&s, RDMA_HCA_CMD_INIT_IB, 0, port, 0), ==,
                        status);
        if (port != 1) {
            g_assert_cmphex(
                scene_command(&s, RDMA_HCA_CMD_CLOSE_IB, 0, port, 0), ==,
                status);
        }
    }
    scene_free(&s);
}

/* op_modifier: where it counts, other values are BAD_PARAM. */
static void test_op_modifier(void)
{
    Scene s;

    scene_init(&s, 2005);
    for (unsigned modifier = 0; modifier < 256; modifier++) {
        bool kind = modifier == RDMA_HCA_ICM_CXT ||
                    modifier == RDMA_HCA_ICM_TPT;
        uint64_t far = UINT64_C(0x80000000);
        uint8_t status = kind ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM;

        g_assert_cmphex(
            scene_map_icm(&s, modifier, far, host_alloc(s.host, 1), 1), ==,
            status);
        g_assert_cmphex(scene_unmap_icm(&s, modifier, far, 1), ==, status);
        /* Of a QP in RST: 3 is "no inbox", 0 one of zeros, else refused. */
        status = modifier == 0 || modifier == RDMA_HCA_MODIFY_NO_INBOX
                     ? RDMA_HCA_STAT_OK
                     : RDMA_HCA_STAT_BAD_PARAM;
        host_fill(s.host, s.drv->mbox_in, 0, HOST_PAGE_SIZE);
        g_assert_cmphex(scene_command(&s, RDMA_HCA_CMD_ERR2RST_QPEE,
                                      s.drv->mbox_in, SPARE_QPN, modifier),
                        ==, status);
        status = modifier <= RDMA_HCA_DIAG_NAMES ? RDMA_HCA_STAT_OK
                                                 : RDMA_HCA_STAT_BAD_PARAM;
        g_assert_cmphex(
            scene_command(&s, RDMA_HCA_CMD_DIAG_RPRT, 0, 0, modifier), ==,
            status);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_NOP, 0, 0, modifier), OK);
    }
    scene_free(&s);
}

/*
 * CVE-2021-3607: a number of pages from the guest was made a size by a product
 * that could overflow, so that what was allocated was too small for what was
 * then done. Here are products and sums of all kinds, at their ends.
 */
static void test_size_overflow(void)
{
    static const struct {
        uint64_t start, length;
        uint32_t flags;
        bool good;
    } regions[] = {
        { 0, UINT64_MAX, RDMA_HCA_MPT_PHYSICAL, true },
        { 1, UINT64_MAX, RDMA_HCA_MPT_PHYSICAL, true },
        { 2, UINT64_MAX, RDMA_HCA_MPT_PHYSICAL, false },
        { UINT64_MAX, 1, RDMA_HCA_MPT_PHYSICAL, true },
        { UINT64_MAX, 2, RDMA_HCA_MPT_PHYSICAL, false },
        { UINT64_MAX - 4095, 4096, 0, true },
        { UINT64_MAX - 4095, 4097, 0, false },
        { UINT64_C(1) << 63, UINT64_C(1) << 63, 0, false },
        { 0xfff, UINT64_MAX, 0, false },
        { 0, 0, 0, true },
    };
    Scene s;

    scene_init(&s, 2201);
    for (unsigned i = 0; i < G_N_ELEMENTS(regions); i++) {
        struct rdma_hca_mpt mpt = scene_mpt(
            &s, regions[i].start, regions[i].length, regions[i].flags);

        g_assert_cmphex(scene_sw2hw_mpt(&s, &mpt), ==,
                        regions[i].good ? RDMA_HCA_STAT_OK
                                        : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(scene_hw2sw_mpt(&s), ==,
                        regions[i].good ? RDMA_HCA_STAT_OK
                                        : RDMA_HCA_STAT_BAD_RES_STATE);
    }
    /* ICM: an address and a number of pages. */
    EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0xfffff000, 0x100000, 2),
           BAD_PARAM);
    EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, UINT64_C(0xfffffffffffff000),
                         0x100000, 2),
           BAD_PARAM);
    EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0x80000000,
                         UINT64_C(0xfffffffffffff000), 2),
           BAD_PARAM);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0xfffff000, UINT32_MAX),
           BAD_PARAM);
    /* INIT_HCA: every number of entries as a power of two. */
    scene_reset_card(&s);
    for (unsigned log = 0; log < 256; log++) {
        struct rdma_hca_init_hca init = { 0 };
        __be32 *low[] = { &init.qpc_base_l, &init.cqc_base_l, &init.eqc_base_l,
                          &init.mpt_base_l };
        const unsigned most[] = { LOG_QPS, LOG_CQS, LOG_EQS, LOG_MPTS };

        for (unsigned i = 0; i < G_N_ELEMENTS(low); i++) {
            *low[i] = GUINT32_TO_BE(log);
            g_assert_cmphex(scene_command_in(&s, RDMA_HCA_CMD_INIT_HCA, &init,
                                             sizeof(init), 0),
                            ==,
                            log <= most[i] ? RDMA_HCA_STAT_OK
                                           : RDMA_HCA_STAT_EXCEED_LIM);
            if (log <= most[i]) {
                EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), OK);
            }
            *low[i] = 0;
        }
    }
    scene_recover(&s);
    scene_free(&s);
}

/* And mailboxes that say that they are longer than a mailbox is. */
static void test_beyond_one_mailbox(void)
{
    static const uint32_t counts[] = {
        257, 258, 512, 4096, 65536, 1u << 28, 1u << 31, UINT32_MAX,
    };
    g_autofree struct rdma_hca_icm_entry *entry = g_malloc0(
        RDMA_HCA_MAILBOX_SIZE);
    const uint64_t far = UINT64_C(0x80000000);
    Scene s;

    scene_init(&s, 2232);
    for (unsigned i = 0; i < RDMA_HCA_ICM_MAX_ENTRIES; i++) {
        entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
            .virt_l = GUINT32_TO_BE(far + i * HOST_PAGE_SIZE),
            .page_l = GUINT32_TO_BE(0x100000 | 1),
        };
    }
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
            EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry,
                                 RDMA_HCA_MAILBOX_SIZE, counts[i], kind),
                   BAD_PARAM);
        }
        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry,
                             RDMA_HCA_MAILBOX_SIZE, RDMA_HCA_ICM_MAX_ENTRIES,
                             kind),
               OK);
        EXPECT(scene_unmap_icm(&s, kind, far, RDMA_HCA_ICM_MAX_ENTRIES), OK);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        uint32_t n = counts[i] < 512 ? 509 : counts[i];

        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_WRITE_MTT, entry,
                             RDMA_HCA_MAILBOX_SIZE, n, 0),
               BAD_PARAM);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, 0, n, 0), BAD_PARAM);
    }
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bad-commands/random", test_random_commands);
    test_add_each_link("/bad-commands/random/all-opcodes", test_all_opcodes);
    test_add_each_link("/bad-commands/random/under-traffic",
                       test_commands_under_traffic);
    test_add_each_link("/bad-commands/opcodes", test_opcodes);
    test_add_each_link("/bad-commands/indices", test_indices);
    test_add_each_link("/bad-commands/op-modifier", test_op_modifier);
    test_add_each_link("/bad-commands/size-overflow", test_size_overflow);
    test_add_each_link("/bad-commands/beyond-one-mailbox",
                       test_beyond_one_mailbox);
    return g_test_run();
}
