/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contexts that a command hands over: every field of every mailbox with values
 * good and bad, and lengths that their buffers do not have. What has been refused
 * leaves nothing behind.
 */
#include <string.h>

#include "lib-box.h"
#include "lib-scene.h"

/* 0, the maximum, both sides of each bound, and at random. */
static unsigned field_values(Scene *s, const Field *f, uint32_t *values)
{
    uint32_t max = RDMA_HCA_GET(f->mask, ALL);
    uint32_t list[] = {
        0,
        max,
        f->low,
        f->high,
        f->low - 1,
        f->high + 1,
        g_rand_int(s->pair->lab->rand),
        g_rand_int(s->pair->lab->rand),
        g_rand_int(s->pair->lab->rand) % (f->high - f->low + (uint64_t)1) +
            f->low,
    };
    unsigned n = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(list); i++) {
        values[n++] = list[i] & max;
    }
    return n;
}

static uint8_t try_words(Scene *s, const Box *box, const uint32_t *words)
{
    uint8_t status;

    if (box->prepare) {
        box->prepare(s, words);
    }
    status = box_send(s, box, words);
    if (box->finish) {
        box->finish(s, words, status);
    }
    return status;
}

static bool value_good(const Field *f, uint32_t value, uint32_t taken)
{
    if (f->attr && !(f->attr & taken)) {
        return true;
    }
    if (f->or_zero && !value) {
        return true;
    }
    if (f->set) {
        return value < 32 && f->set >> value & 1;
    }
    return value >= f->low && value <= f->high &&
           (!f->step || value % f->step == 0);
}

static void try_value(Scene *s, const Box *box, const Field *f, uint32_t value,
                      uint32_t taken)
{
    uint32_t words[BOX_MAX_WORDS] = { 0 };
    uint8_t status, expected;

    box->make(s, words);
    words[f->word] &= ~f->mask;
    words[f->word] |= RDMA_HCA_PREP(f->mask, value);
    status = try_words(s, box, words);
    expected = value_good(f, value, taken) ? RDMA_HCA_STAT_OK : f->bad;
    if (f->either && value != RDMA_HCA_GET(f->mask, ALL) && !status) {
        expected = RDMA_HCA_STAT_OK;
    }
    if (status != expected) {
        g_error("%s, word %02xh, %s (%#x) = %#x: status %#x, not %#x",
                box->name, f->word * 4, f->name, f->mask, value, status,
                expected);
    }
}

static void try_field(Scene *s, const Box *box, const Field *f, uint32_t taken)
{
    uint32_t words[BOX_MAX_WORDS] = { 0 };
    uint32_t values[16];
    unsigned n = field_values(s, f, values);

    for (unsigned i = 0; i < n; i++) {
        try_value(s, box, f, values[i], taken);
    }
    /* What has been refused has left nothing behind. */
    box->make(s, words);
    EXPECT(try_words(s, box, words), OK);
}

static void walk_box(Scene *s, const Box *box, uint32_t taken)
{
    for (unsigned word = 0; word < box->nwords; word++) {
        Field reserved = {
            .name = "reserved", .word = word, .mask = ALL, .high = ALL
        };

        for (unsigned i = 0; i < box->nfields; i++) {
            const Field *f = &box->fields[i];

            if (f->word != word) {
                continue;
            }
            g_assert_cmphex(f->mask & ~reserved.mask, ==, 0);
            reserved.mask &= ~f->mask;
            try_field(s, box, f, taken);
        }
        if (reserved.mask) {
            try_field(s, box, &reserved, taken);
        }
    }
}

#define SPACE ((uint64_t)HCA_ICM_MAX_PAGES << RDMA_HCA_ICM_PAGE_SHIFT)
#define LAST_BASE(entry, log) ((SPACE - ((uint64_t)(entry) << (log))) >> 8)
#define TABLE(table, entry, log)                                               \
    FIELD(rdma_hca_init_hca, table##_base_h, ALL, .high = 0),                  \
        FIELD(rdma_hca_init_hca, table##_base_l, RDMA_HCA_INIT_BASE,           \
              .high = LAST_BASE(entry, log)),                                  \
    {                                                                          \
        .name = #table " count",                                               \
        .word = WORD_OF(rdma_hca_init_hca, table##_base_l),                    \
        .mask = RDMA_HCA_INIT_LOG_NUM, .high = log,                            \
        .bad = RDMA_HCA_STAT_EXCEED_LIM                                        \
    }

static const Field init_fields[] = {
    TABLE(qpc, RDMA_HCA_QPC_SIZE, LOG_QPS),
    TABLE(cqc, RDMA_HCA_CQC_SIZE, LOG_CQS),
    TABLE(eqc, RDMA_HCA_EQC_SIZE, LOG_EQS),
    TABLE(srqc, RDMA_HCA_SRQC_SIZE, LOG_SRQS),
    TABLE(mpt, RDMA_HCA_MPT_SIZE, LOG_MPTS),
    FIELD(rdma_hca_init_hca, mtt_base_h, ALL, .high = 0),
    FIELD(rdma_hca_init_hca, mtt_base_l, ALL, .high = ALL, .step = 64),
};

static void make_init(Scene *s, uint32_t *words)
{
    words[WORD_OF(rdma_hca_init_hca, qpc_base_l)] = 0x100000 | LOG_QPS;
    words[WORD_OF(rdma_hca_init_hca, cqc_base_l)] = 0x200000 | LOG_CQS;
    words[WORD_OF(rdma_hca_init_hca, eqc_base_l)] = 0x300000 | LOG_EQS;
    words[WORD_OF(rdma_hca_init_hca, srqc_base_l)] = 0x400000 | LOG_SRQS;
    words[WORD_OF(rdma_hca_init_hca, mpt_base_l)] = 0x100000 | LOG_MPTS;
    words[WORD_OF(rdma_hca_init_hca, mtt_base_l)] = 0x200000;
}

static void finish_init(Scene *s, const uint32_t *words, uint8_t status)
{
    g_assert_cmphex(scene_command(s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), ==,
                    status ? RDMA_HCA_STAT_BAD_SYS_STATE : RDMA_HCA_STAT_OK);
}

#define ICM_WORD(field)                                                        \
    (RDMA_HCA_ICM_SLOT(0) * WORDS(struct rdma_hca_icm_entry) +                 \
     WORD_OF(rdma_hca_icm_entry, field))
#define ICM_FIELD(field, bits, ...)                                            \
    {                                                                          \
        .name = #field, .word = ICM_WORD(field), .mask = bits,                 \
        .bad = RDMA_HCA_STAT_BAD_PARAM, __VA_ARGS__                            \
    }

static const Field icm_fields[] = {
    ICM_FIELD(virt_h, ALL, .high = 0),
    ICM_FIELD(virt_l, ALL, .high = SPACE - 3 * HOST_PAGE_SIZE,
              .step = HOST_PAGE_SIZE),
    ICM_FIELD(page_l, RDMA_HCA_ICM_PAGE_NUM, .low = 1, .high = 0xfff),
};

static void make_icm(Scene *s, uint32_t *words)
{
    words[ICM_WORD(virt_l)] = 0x200000;
    words[ICM_WORD(page_l)] = 0x300000 | 3;
}

static void finish_icm(Scene *s, uint8_t kind, const uint32_t *words,
                       uint8_t status)
{
    uint64_t virt = (uint64_t)words[ICM_WORD(virt_h)] << 32 |
                    words[ICM_WORD(virt_l)];
    uint32_t n = words[ICM_WORD(page_l)] & RDMA_HCA_ICM_PAGE_NUM;

    g_assert_cmphex(scene_unmap_icm(s, kind, virt, n), ==, status);
}

static void finish_icm_cxt(Scene *s, const uint32_t *words, uint8_t status)
{
    finish_icm(s, RDMA_HCA_ICM_CXT, words, status);
}

static void finish_icm_tpt(Scene *s, const uint32_t *words, uint8_t status)
{
    finish_icm(s, RDMA_HCA_ICM_TPT, words, status);
}

static const Box boxes_closed[] = {
    BOX(INIT_HCA, rdma_hca_init_hca, init_fields, .make = make_init,
        .finish = finish_init),
    BOX(MAP_ICM, rdma_hca_icm_entry[2], icm_fields, .in_modifier = 1,
        .op_modifier = RDMA_HCA_ICM_CXT, .make = make_icm,
        .finish = finish_icm_cxt),
    BOX(MAP_ICM, rdma_hca_icm_entry[2], icm_fields, .in_modifier = 1,
        .op_modifier = RDMA_HCA_ICM_TPT, .make = make_icm,
        .finish = finish_icm_tpt),
};

static void test_mailboxes(void)
{
    Scene s;

    scene_init(&s, 2002);
    for (unsigned i = 0; i < num_boxes_open; i++) {
        walk_box(&s, &boxes_open[i], 0);
        scene_check(&s);
    }
    scene_reset_card(&s);
    for (unsigned i = 0; i < G_N_ELEMENTS(boxes_closed); i++) {
        walk_box(&s, &boxes_closed[i], 0);
    }
    scene_recover(&s);
    scene_free(&s);
}

/* The one QP of this test, and how it gets to where a command begins. */
static struct {
    Qp *qp;
    QpAttr attr;
    unsigned from;
    struct rdma_hca_qpc before;
} victim;

#define CREATE (1u << 31)
#define ATTR(name) RDMA_HCA_QP_ATTR_##name
#define QPC(field, bits, taken, ...)                                           \
    FIELD(rdma_hca_qpc, field, bits, .attr = taken, __VA_ARGS__)

#define INIT_ATTRS (ATTR(PKEY_INDEX) | ATTR(PORT))
#define RTR_ATTRS (ATTR(AV) | ATTR(PATH_MTU) | ATTR(DEST_QPN))

/* A command, where it begins, and what it takes without being asked. */
static const struct {
    const char *name;
    uint16_t op;
    unsigned from;
    uint32_t taken[RDMA_HCA_QP_ST_UD + 1]; /* by service type */
} modify[] = {
    { "RST2INIT",
      RDMA_HCA_CMD_RST2INIT_QPEE,
      RDMA_HCA_QP_STATE_RST,
      { CREATE | INIT_ATTRS, CREATE | INIT_ATTRS, 0, CREATE | INIT_ATTRS } },
    { "INIT2INIT",
      RDMA_HCA_CMD_INIT2INIT_QPEE,
      RDMA_HCA_QP_STATE_INIT,
      { INIT_ATTRS, INIT_ATTRS, 0, INIT_ATTRS } },
    { "INIT2RTR",
      RDMA_HCA_CMD_INIT2RTR_QPEE,
      RDMA_HCA_QP_STATE_INIT,
      { RTR_ATTRS | ATTR(MAX_DEST_RD_ATOMIC), RTR_ATTRS, 0, 0 } },
    { "RTR2RTS",
      RDMA_HCA_CMD_RTR2RTS_QPEE,
      RDMA_HCA_QP_STATE_RTR,
      { ATTR(SQ_PSN) | ATTR(MAX_QP_RD_ATOMIC), ATTR(SQ_PSN), 0,
        ATTR(SQ_PSN) } },
    { "RTS2RTS", RDMA_HCA_CMD_RTS2RTS_QPEE, RDMA_HCA_QP_STATE_RTS, { 0 } },
    { "RTS2SQD", RDMA_HCA_CMD_RTS2SQD_QPEE, RDMA_HCA_QP_STATE_RTS, { 0 } },
    { "SQD2SQD", RDMA_HCA_CMD_SQD2SQD_QPEE, RDMA_HCA_QP_STATE_SQD, { 0 } },
    { "SQD2RTS", RDMA_HCA_CMD_SQD2RTS_QPEE, RDMA_HCA_QP_STATE_SQD, { 0 } },
    { "SQERR2RTS", RDMA_HCA_CMD_SQERR2RTS_QPEE, RDMA_HCA_QP_STATE_SQE, { 0 } },
    { "2ERR", RDMA_HCA_CMD_2ERR_QPEE, RDMA_HCA_QP_STATE_RTS, { 0 } },
    { "ERR2RST", RDMA_HCA_CMD_ERR2RST_QPEE, RDMA_HCA_QP_STATE_ERR, { 0 } },
};

static const Field qpc_fields[] = {
    QPC(opt_param_mask, ALL, 0, .high = 0, .either = true),
    QPC(flags, RDMA_HCA_QPC_SERVICE, CREATE,
        .set = 1u << RDMA_HCA_QP_ST_RC | 1u << RDMA_HCA_QP_ST_UC |
               1u << RDMA_HCA_QP_ST_UD),
    QPC(mtu_msgmax_sz, RDMA_HCA_QPC_MTU, ATTR(PATH_MTU), .low = 1,
        .high = MAX_MTU),
    /* A queue of 4096 bytes in slots of 32 to 512, or 64 to 1024 bytes. */
    QPC(mtu_msgmax_sz, RDMA_HCA_QPC_RQ_ENTRY_SZ, CREATE, .low = 5, .high = 9),
    QPC(mtu_msgmax_sz, RDMA_HCA_QPC_SQ_ENTRY_SZ, CREATE, .low = 6, .high = 10),
    QPC(usr_page, RDMA_HCA_QPC_UAR, CREATE, .high = RDMA_HCA_NUM_UARS - 1),
    QPC(remote_qpn, ALL, ATTR(DEST_QPN), .high = RDMA_HCA_QPN_MASK),
    QPC(port_pkey, RDMA_HCA_QPC_PORT, ATTR(PORT), .low = 1, .high = 1),
    QPC(port_pkey, RDMA_HCA_QPC_PKEY_INDEX, ATTR(PKEY_INDEX), .high = 0),
    QPC(rnr_retry_path, RDMA_HCA_QPC_GRH, ATTR(AV), .high = 1),
    /* The context that is changed has a GRH: it names a source GID. */
    QPC(ackto_path, RDMA_HCA_QPC_SGID_INDEX, ATTR(AV),
        .high = RDMA_HCA_MAX_GUIDS - 1),
    QPC(pd, ALL, CREATE, .high = (1u << LOG_PDS) - 1),
    QPC(params1, RDMA_HCA_QPC_SRA_MAX, ATTR(MAX_QP_RD_ATOMIC),
        .high = HCA_MAX_RD_ATOMIC),
    QPC(params1, RDMA_HCA_QPC_RRA_MAX, ATTR(MAX_DEST_RD_ATOMIC),
        .high = HCA_MAX_RD_ATOMIC),
    QPC(next_send_psn, ALL, ATTR(SQ_PSN), .high = HCA_PSN_MASK),
    QPC(cqn_snd, ALL, CREATE, .low = 1, .high = 1),
    QPC(snd_wqe_len, ALL, CREATE, .high = 64u << HCA_MAX_LOG_WQES, .step = 64),
    QPC(cqn_rcv, ALL, CREATE, .low = 1, .high = 1),
    QPC(rcv_wqe_len, ALL, CREATE, .high = 32u << HCA_MAX_LOG_WQES, .step = 32),
    QPC(rq_db_l, ALL, CREATE, .high = ALL, .step = 4),
    QPC(counter_set, ALL, CREATE, .high = (1u << HCA_LOG_COUNTER_SETS) - 1),
    /* It has a receive queue of its own. */
    QPC(srq, RDMA_HCA_QPC_USES_SRQ, CREATE, .high = 0),
};

static void make_qpc(Scene *s, uint32_t *words)
{
    struct rdma_hca_qpc qpc = scene_qpc(s, 4096, 4096);

    box_words(words, &qpc, sizeof(qpc));
    words[WORD_OF(rdma_hca_qpc, flags)] = RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE,
                                                        victim.qp->service);
    words[WORD_OF(rdma_hca_qpc, mtu_msgmax_sz)] |=
        RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, 3) |
        RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 31);
    words[WORD_OF(rdma_hca_qpc, rnr_retry_path)] = RDMA_HCA_QPC_GRH;
    box_put64(words, WORD_OF(rdma_hca_qpc, rq_db_h), victim.qp->rq_record);
}

/* A WQE that cannot be: UC and UD queue pairs go to SQE. */
static void to_sqe(Scene *s)
{
    qp_ring(victim.qp, RDMA_HCA_OPCODE_ATOMIC_CS,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, SPARE_QPN) | 1);
    lab_run(s->pair->lab);
}

static void prepare_qpc(Scene *s, const uint32_t *words)
{
    Qp *qp = victim.qp;
    unsigned state = victim.from;

    if (state > RDMA_HCA_QP_STATE_RST) {
        EXPECT(qp_to_init(qp, &victim.attr), OK);
    }
    if (state > RDMA_HCA_QP_STATE_INIT) {
        EXPECT(qp_to_rtr(qp, &victim.attr), OK);
    }
    if (state > RDMA_HCA_QP_STATE_RTR) {
        EXPECT(qp_to_rts(qp, &victim.attr), OK);
    }
    if (state == RDMA_HCA_QP_STATE_SQD) {
        EXPECT(scene_command(s, RDMA_HCA_CMD_RTS2SQD_QPEE, 0, qp->qpn,
                             RDMA_HCA_MODIFY_NO_INBOX),
               OK);
    } else if (state == RDMA_HCA_QP_STATE_SQE) {
        to_sqe(s);
    } else if (state == RDMA_HCA_QP_STATE_ERR) {
        EXPECT(qp_to_err(qp), OK);
    }
    lab_run(s->pair->lab);
    EXPECT(qp_query(qp, &victim.before), OK);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_QPC_STATE, GUINT32_FROM_BE(victim.before.flags)),
        ==, state);
}

static void finish_qpc(Scene *s, const uint32_t *words, uint8_t status)
{
    struct rdma_hca_qpc after;

    if (status) {
        EXPECT(qp_query(victim.qp, &after), OK);
        g_assert_cmpmem(&victim.before, sizeof(after), &after, sizeof(after));
    }
    EXPECT(qp_to_rst(victim.qp), OK);
}

/* A RoCE card has other source GIDs, and no group as a peer. */
static unsigned roce_fields(const Scene *s, Field *fields)
{
    static const Field rgid = QPC(rgid, ALL, ATTR(AV), .high = 0xfeffffff);
    unsigned n = G_N_ELEMENTS(qpc_fields);

    for (unsigned i = 0; i < n; i++) {
        if (fields[i].word == WORD_OF(rdma_hca_qpc, ackto_path) &&
            fields[i].mask == RDMA_HCA_QPC_SGID_INDEX) {
            fields[i].high = (1u << s->host->config.log_gids) - 1;
        }
    }
    fields[n++] = rgid;
    return n;
}

static void walk_modify(Scene *s, unsigned row, uint8_t service)
{
    Field fields[G_N_ELEMENTS(qpc_fields) + 1];
    Box box = BOX(RST2INIT_QPEE, rdma_hca_qpc, fields, .in_modifier = SPARE_QPN,
                  .make = make_qpc, .prepare = prepare_qpc,
                  .finish = finish_qpc);

    memcpy(fields, qpc_fields, sizeof(qpc_fields));
    box.nfields = s->drv->roce ? roce_fields(s, fields)
                               : G_N_ELEMENTS(qpc_fields);
    if (modify[row].from == RDMA_HCA_QP_STATE_SQE &&
        service == RDMA_HCA_QP_ST_RC) {
        return;
    }
    box.name = modify[row].name;
    box.op = modify[row].op;
    victim.from = modify[row].from;
    walk_box(s, &box, modify[row].taken[service]);
    scene_check(s);
}

static void test_modify_qp(gconstpointer data)
{
    uint8_t service = GPOINTER_TO_UINT(data);
    QpConfig config;
    Scene s;

    scene_init(&s, 2003);
    g_assert_cmpuint(s.pair->cq[0]->cqn, ==, 1); /* as qpc_fields has it */
    qp_config_init(&config, s.pair->pd[0], s.pair->cq[0]);
    config.service = service;
    config.uar = CARD_UAR;
    qp_attr_init(&victim.attr);
    victim.qp = qp_new_number(s.drv, &config, SPARE_QPN);
    for (unsigned row = 0; row < G_N_ELEMENTS(modify); row++) {
        walk_modify(&s, row, service);
    }
    qp_destroy(victim.qp);
    scene_free(&s);
}

static uint8_t rst2init(Scene *s, const struct rdma_hca_qpc *qpc)
{
    return scene_command_in(s, RDMA_HCA_CMD_RST2INIT_QPEE, qpc, sizeof(*qpc),
                            SPARE_QPN);
}

/*
 * CVE-2018-20125: page counts of rings in CREATE_CQ and CREATE_QP were taken
 * as they came: 0 had the device follow a null pointer, a huge one had it
 * allocate without limit.
 */
static void test_page_counts(void)
{
    Scene s;
    SceneLive was;

    scene_init(&s, 2151);
    was = scene_live(&s);
    for (unsigned log = 0; log < 256; log++) {
        struct rdma_hca_cqc cqc = scene_cqc(&s, log);
        struct rdma_hca_eqc eqc = scene_eqc(&s, log);

        g_assert_cmphex(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_CQ, &cqc,
                                         sizeof(cqc), SPARE_CQN),
                        ==,
                        log <= HCA_MAX_LOG_CQ_SIZE ? RDMA_HCA_STAT_OK
                                                   : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(scene_command_in(&s, RDMA_HCA_CMD_SW2HW_EQ, &eqc,
                                         sizeof(eqc), SPARE_EQN),
                        ==,
                        log <= HCA_MAX_LOG_EQ_SIZE ? RDMA_HCA_STAT_OK
                                                   : RDMA_HCA_STAT_BAD_PARAM);
        scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0);
        scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN, 0);
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t len = 1u << bit;
        struct rdma_hca_qpc qpc = scene_qpc(&s, len, 0);

        g_assert_cmphex(rst2init(&s, &qpc), ==,
                        bit >= 6 && bit <= 6 + HCA_MAX_LOG_WQES
                            ? RDMA_HCA_STAT_OK
                            : RDMA_HCA_STAT_BAD_PARAM);
        EXPECT(scene_to_rst(&s, SPARE_QPN), OK);
        qpc = scene_qpc(&s, 0, len);
        g_assert_cmphex(rst2init(&s, &qpc), ==,
                        bit >= 5 && bit <= 5 + HCA_MAX_LOG_WQES
                            ? RDMA_HCA_STAT_OK
                            : RDMA_HCA_STAT_BAD_PARAM);
        EXPECT(scene_to_rst(&s, SPARE_QPN), OK);
        qpc = scene_qpc(&s, -len, -len);
        if (bit < 31) {
            EXPECT(rst2init(&s, &qpc), BAD_PARAM);
        }
    }
    scene_expect_live(&s, &was);
    scene_free(&s);
}

/* Neither queue: a QP with nothing to post to, and doorbells for it. */
static void test_no_pages(void)
{
    struct rdma_hca_qpc qpc;
    QpAttr attr;
    QpConfig config;
    Scene s;
    Qp *qp;

    scene_init(&s, 2152);
    qpc = scene_qpc(&s, 0, 0);
    EXPECT(rst2init(&s, &qpc), OK);
    EXPECT(scene_to_rst(&s, SPARE_QPN), OK);
    qp_config_init(&config, s.pair->pd[0], s.pair->cq[0]);
    config.sq_entries = config.rq_entries = 0;
    qp = qp_new(s.drv, &config);
    qp_attr_init(&attr);
    attr.dlid = s.pair->lab->host[1].config.lid;
    attr.dest_qpn = SPARE_QPN;
    EXPECT(qp_to_init(qp, &attr), OK);
    EXPECT(qp_to_rtr(qp, &attr), OK);
    EXPECT(qp_to_rts(qp, &attr), OK);
    for (unsigned i = 0; i < 100; i++) {
        qp_ring(qp, i << 8 | RDMA_HCA_OPCODE_SEND,
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) | (i & 63));
    }
    lab_run(s.pair->lab);
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_ERR);
    qp_destroy(qp);
    scene_free(&s);
}

/*
 * CVE-2018-20126: CREATE_CQ and CREATE_QP did not give back what they had
 * made when a later step of theirs failed. Here each fails at each step.
 */
static void test_leak_on_error(void)
{
    Scene s;
    SceneLive was;

    scene_init(&s, 2161);
    was = scene_live(&s);
    /* The last step of all is the writing of the context: no page for it. */
    for (unsigned i = ICM_QPC; i < ICM_MPT; i++) {
        const IcmTable *table = &s.drv->icm[i];
        unsigned npages = (table->size + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;

        EXPECT(scene_unmap_icm(&s, table->kind, table->base, npages), OK);
    }
    for (unsigned i = 0; i < 500; i++) {
        struct rdma_hca_mpt mpt = scene_mpt(&s, 0, 4096, 0);
        struct rdma_hca_eqc eqc = scene_eqc(&s, 4);
        struct rdma_hca_cqc cqc = scene_cqc(&s, 4);
        struct rdma_hca_qpc qpc = scene_qpc(&s, 4096, 4096);
        bool last = i & 1;

        if (!last) {
            mpt.page_size = GUINT32_TO_BE(20);
            EXPECT(scene_sw2hw_mpt(&s, &mpt), BAD_PARAM);
            eqc.msix_vector = GUINT32_TO_BE(NUM_VECTORS);
            cqc.comp_eqn = GUINT32_TO_BE(SPARE_EQN);
            qpc.rq_db_l = GUINT32_TO_BE(1);
        }
        g_assert_cmphex(
            scene_command_in(&s, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc),
                             SPARE_EQN),
            ==, last ? RDMA_HCA_STAT_BAD_SEG_PARAM : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(
            scene_command_in(&s, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc),
                             SPARE_CQN),
            ==, last ? RDMA_HCA_STAT_BAD_SEG_PARAM : RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(rst2init(&s, &qpc), ==,
                        last ? RDMA_HCA_STAT_BAD_SEG_PARAM
                             : RDMA_HCA_STAT_BAD_PARAM);
    }
    scene_expect_live(&s, &was);
    /* MAP_ICM that fails with its last entry; INIT_HCA with its last table. */
    for (unsigned n = 2; n <= RDMA_HCA_ICM_MAX_ENTRIES; n += 6) {
        g_autofree struct rdma_hca_icm_entry *entry = g_malloc0(
            RDMA_HCA_MAILBOX_SIZE);

        for (unsigned i = 0; i < n; i++) {
            entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
                .virt_l = GUINT32_TO_BE(0x80000000 + (i % (n - 1)) * 0x4000),
                .page_l = GUINT32_TO_BE(0x100000 | 4),
            };
        }
        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry,
                             RDMA_HCA_MAILBOX_SIZE, n, 1 + n / 6 % 2),
               BAD_PARAM);
    }
    scene_check(&s);
    scene_reset_card(&s);
    for (unsigned i = 0; i < 100; i++) {
        struct rdma_hca_init_hca init = {
            .eqc_base_h = GUINT32_TO_BE(i & 1),
            .eqc_base_l = GUINT32_TO_BE(i & 1 ? 0 : LOG_EQS + 1),
        };

        g_assert_cmphex(
            scene_command_in(&s, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0),
            ==, i & 1 ? RDMA_HCA_STAT_BAD_PARAM : RDMA_HCA_STAT_EXCEED_LIM);
    }
    scene_recover(&s);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bad-contexts/mailboxes", test_mailboxes);
    test_add_data_each_link("/bad-contexts/modify-qp/rc",
                            GUINT_TO_POINTER(RDMA_HCA_QP_ST_RC),
                            test_modify_qp);
    test_add_data_each_link("/bad-contexts/modify-qp/uc",
                            GUINT_TO_POINTER(RDMA_HCA_QP_ST_UC),
                            test_modify_qp);
    test_add_data_each_link("/bad-contexts/modify-qp/ud",
                            GUINT_TO_POINTER(RDMA_HCA_QP_ST_UD),
                            test_modify_qp);
    test_add_each_link("/bad-contexts/page-counts", test_page_counts);
    test_add_each_link("/bad-contexts/page-counts/none", test_no_pages);
    test_add_each_link("/bad-contexts/leak-on-error-path", test_leak_on_error);
    return g_test_run();
}
