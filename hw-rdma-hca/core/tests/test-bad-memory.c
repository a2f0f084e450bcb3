/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory: tables in the card's virtual memory that are missing, overlap or are
 * taken away, regions and keys out of bounds, pages that are registers or
 * nothing, memory that the guest takes back.
 */
#include <string.h>

#include "lib-box.h"
#include "lib-noise.h"
#include "lib-scene.h"

/* Regions whose pages are another device's registers, holes, or ROM. */
static void test_bad_pages(void)
{
    static const uint64_t bad[] = {
        HOST_MMIO_BASE,
        HOST_MMIO_BASE + HOST_MMIO_SIZE - 4096,
        0,
        UINT64_C(0xfffffffffffff000),
        UINT64_C(1) << 52,
        0x7ffff000,
    };

    for (unsigned b = 0; b < G_N_ELEMENTS(bad); b++) {
        for (unsigned what = 0; what < 5; what++) {
            static const char *const where[] = { "source", "target", "sq", "rq",
                                                 "cq" };
            struct rdma_hca_mtt_mailbox *mbox;
            Scene s;
            Mr *mr;
            SendWr wr;
            Sge sge;

            scene_init_victim(&s, 1007);
            mr = (Mr *[]) { mr_new(s.pair->drv[0], s.pair->pd[0], 0x10000, 4096,
                                   ACCESS_ALL),
                            mr_new(s.pair->drv[1], s.pair->pd[1], 0x10000, 4096,
                                   ACCESS_ALL),
                            s.victim[0]->sq.mr, s.victim[1]->rq.mr,
                            s.victim_cq[0]->mr }[what];
            g_test_message("%s at %#" G_GINT64_MODIFIER "x", where[what],
                           bad[b]);
            mbox = g_malloc0(sizeof(*mbox) + 4 * 8);
            mbox->start_index_l = GUINT32_TO_BE(mr->mtt);
            mbox->entry[3].addr_h = GUINT32_TO_BE(RDMA_HCA_HI32(bad[b]));
            mbox->entry[3].addr_l = GUINT32_TO_BE(RDMA_HCA_LO32(bad[b]));
            driver_cmd_in(mr->drv, RDMA_HCA_CMD_WRITE_MTT, mbox,
                          sizeof(*mbox) + 4 * 8, 1, 0);
            g_free(mbox);
            pair_post_recv(s.pair, 1, s.victim[1], 1, 0, 4096);
            wr = pair_send(s.pair, 0, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 100, 0);
            if (what == 0) {
                sge = mr_sge(mr, 0, 100);
            } else if (what == 1) {
                wr.opcode = RDMA_HCA_OPCODE_RDMA_WRITE;
                wr.raddr = mr->va;
                wr.rkey = mr->key;
            }
            g_assert_true(qp_post_send(s.victim[0], &wr, 1));
            lab_sleep(s.pair->lab, NS_PER_S);
            scene_check(&s);
            pair_free(s.pair);
        }
    }
}

/* The guest scribbles over the contexts that it gave to the card. */
static void test_icm(void)
{
    for (unsigned round = 0; round < 25; round++) {
        Scene s;
        GArray *pages;

        scene_init_victim(&s, 1200 + round);
        pages = s.pair->drv[0]->icm_pages;
        for (unsigned i = 0; i < 40; i++) {
            for (unsigned n = 0; n < 1 + round * 20; n++) {
                uint64_t bus = g_array_index(pages, uint64_t,
                                             noise32(&s) % pages->len);

                host_write_le32(&s.pair->lab->host[0],
                                bus + noise32(&s) % 1024 * 4, noise_odd32(&s));
            }
            scene_keep_busy(&s);
            if (i % 8 == 7) {
                noise_command(&s, RDMA_HCA_CMD_SYNC_TPT);
                noise_command(&s, RDMA_HCA_CMD_QUERY_QP);
            }
        }
        scene_recover(&s);
        scene_free(&s);
    }
}

static const uint64_t no_memory[] = {
    HOST_MMIO_BASE, /* registers */
    HOST_MMIO_BASE + HOST_MMIO_SIZE - HOST_PAGE_SIZE,
    0,
    0x7ffff000,
    UINT64_C(1) << 40,
    UINT64_C(0xfffffffffffff000),
};

static uint8_t send_good(Scene *s, uint16_t op, uint32_t number)
{
    Box box = *box_find(op);
    uint32_t words[BOX_MAX_WORDS] = { 0 };

    box.in_modifier = number;
    box.make(s, words);
    if (op == RDMA_HCA_CMD_SW2HW_MPT) {
        words[WORD_OF(rdma_hca_mpt, key)] = GOOD_KEY(number);
        words[WORD_OF(rdma_hca_mpt, flags)] |= RDMA_HCA_MPT_PHYSICAL;
    } else if (op == RDMA_HCA_CMD_WRITE_MTT) {
        words[BOX_MTT_START + 1] = number;
    }
    return box_send(s, &box, words);
}

/* Nothing of tables that are nowhere can be used, and nothing is lost. */
static void try_tables_missing(Scene *s)
{
    struct rdma_hca_mpt mpt;

    EXPECT(send_good(s, RDMA_HCA_CMD_SW2HW_MPT, 3), BAD_SEG_PARAM);
    EXPECT(
        driver_cmd_out(s->drv, RDMA_HCA_CMD_QUERY_MPT, &mpt, sizeof(mpt), 3, 0),
        BAD_SEG_PARAM);
    EXPECT(send_good(s, RDMA_HCA_CMD_WRITE_MTT, 8), BAD_SEG_PARAM);
    EXPECT(scene_command(s, RDMA_HCA_CMD_READ_MTT, 8, 4, 0), BAD_SEG_PARAM);
    EXPECT(send_good(s, RDMA_HCA_CMD_SW2HW_EQ, 3), BAD_SEG_PARAM);
    EXPECT(scene_command(s, RDMA_HCA_CMD_HW2SW_EQ, 0, 3, 0), BAD_RES_STATE);
    EXPECT(scene_command(s, RDMA_HCA_CMD_SYNC_TPT, 0, 0, 0), OK);
}

/* Nothing is mapped, or what is mapped is not memory. */
static void test_icm_over_nothing(void)
{
    Scene s;

    scene_init(&s, 2006);
    scene_reset_card(&s);
    EXPECT(scene_small_init(&s), OK);
    try_tables_missing(&s);
    for (unsigned i = 0; i < G_N_ELEMENTS(no_memory); i++) {
        scene_reset_card(&s);
        if (no_memory[i] == UINT64_C(0xfffffffffffff000)) {
            /* The range would go past the last address. */
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_CXT, 0, no_memory[i], 2),
                   BAD_PARAM);
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0, no_memory[i], 1), OK);
        } else {
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_CXT, 0, no_memory[i], 3), OK);
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, 0, no_memory[i], 2), OK);
        }
        EXPECT(scene_small_init(&s), OK);
        try_tables_missing(&s);
    }
    /* Registers have been tried, and never touched. */
    g_assert_cmpuint(s.host->mmio_hits, >, 0);
    scene_recover(&s);
    scene_free(&s);
}

/* A page that is mapped stays what it is; a refused command maps none. */
static void test_icm_twice(void)
{
    Scene s;

    scene_init(&s, 2007);
    for (unsigned i = 0; i < NUM_ICM_TABLES; i++) {
        const IcmTable *table = &s.drv->icm[i];
        uint64_t virt = table->base & ~(uint64_t)(HOST_PAGE_SIZE - 1);

        EXPECT(scene_map_icm(&s, table->kind, virt, host_alloc(s.host, 1), 1),
               BAD_PARAM);
        /* From a free page on into the table. */
        if (virt) {
            EXPECT(scene_map_icm(&s, table->kind, virt - HOST_PAGE_SIZE,
                                 host_alloc(s.host, 2), 2),
                   BAD_PARAM);
            EXPECT(scene_unmap_icm(&s, table->kind, virt - HOST_PAGE_SIZE, 1),
                   BAD_PARAM);
        }
        scene_check(&s);
    }
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        struct rdma_hca_icm_entry entry[4] = { 0 };
        uint32_t far = 0x80000000;

        /* The third of four overlaps the first. */
        for (unsigned i = 0; i < 4; i++) {
            entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
                .virt_l = GUINT32_TO_BE(far + (i == 2 ? 0x1000 : i * 0x4000)),
                .page_l = GUINT32_TO_BE(0x100000 | 3),
            };
        }
        EXPECT(driver_cmd_in(s.drv, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry),
                             4, kind),
               BAD_PARAM);
        for (unsigned page = 0; page < 16; page++) {
            EXPECT(scene_unmap_icm(&s, kind, far + page * HOST_PAGE_SIZE, 1),
                   BAD_PARAM);
        }
    }
    scene_free(&s);
}

/* Any command, with numbers that exist and mailboxes that are half good. */
static void storm(Scene *s, unsigned count)
{
    static const uint16_t ops[] = {
        RDMA_HCA_CMD_SW2HW_MPT,
        RDMA_HCA_CMD_WRITE_MTT,
        RDMA_HCA_CMD_SW2HW_EQ,
        RDMA_HCA_CMD_SW2HW_CQ,
    };

    for (unsigned i = 0; i < count; i++) {
        uint32_t number = pair_rand(s->pair, 0, 16);

        send_good(s, ops[pair_rand(s->pair, 0, G_N_ELEMENTS(ops))], number);
        scene_command(s, noise_opcode(s), s->drv->mbox_in, number,
                      pair_rand(s->pair, 0, 4));
        if (i % 16 == 0) {
            host_uar_write64(s->host, CARD_UAR * RDMA_HCA_UAR_PAGE_SIZE,
                             RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, number) | 1);
            host_bar0_write(s->host, RDMA_HCA_EQ_DB + number % 8 * 4,
                            RDMA_HCA_EQ_DB_ARM | number);
        }
    }
    lab_run(s->pair->lab);
}

/*
 * One page for all tables, the mailbox and the queues: each write of the card
 * goes over all the others.
 */
static void test_icm_over_itself(void)
{
    Scene s;

    scene_init(&s, 2008);
    for (unsigned round = 0; round < 8; round++) {
        uint64_t page = round & 1 ? s.drv->mbox_in : host_alloc(s.host, 1);

        scene_reset_card(&s);
        for (unsigned i = 0; i < 3; i++) {
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_CXT, i * HOST_PAGE_SIZE, page,
                                 1),
                   OK);
        }
        for (unsigned i = 0; i < 2; i++) {
            EXPECT(scene_map_icm(&s, RDMA_HCA_ICM_TPT, i * HOST_PAGE_SIZE, page,
                                 1),
                   OK);
        }
        EXPECT(scene_small_init(&s), OK);
        storm(&s, 400);
        scene_recover(&s);
    }
    scene_free(&s);
}

/* All tables at one place of ICM, overlapping. */
static void test_icm_tables_overlap(void)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = GUINT32_TO_BE(4),
        .cqc_base_l = GUINT32_TO_BE(4),
        .eqc_base_l = GUINT32_TO_BE(LOG_EQS),
        .mpt_base_l = GUINT32_TO_BE(4),
    };
    Scene s;

    scene_init(&s, 2009);
    scene_reset_card(&s);
    scene_small_map(&s);
    EXPECT(scene_command_in(&s, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0),
           OK);
    storm(&s, 400);
    scene_recover(&s);
    scene_free(&s);
}

/* The tables' pages go, under traffic; the same pages come back. */
static void test_icm_taken_away(void)
{
    const IcmTable *table;
    uint64_t first;
    unsigned pages;
    Scene s;

    scene_init(&s, 2010);
    table = &s.drv->icm[ICM_MPT];
    pages = table->size / HOST_PAGE_SIZE;
    g_assert_cmphex(table->base, ==, 0);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0, pages), OK);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0, pages), BAD_PARAM);
    EXPECT(send_good(&s, RDMA_HCA_CMD_SW2HW_MPT, SPARE_MPT), BAD_SEG_PARAM);
    /* The driver's list has the contexts' pages first, then these. */
    for (first = 0; first < s.drv->icm_pages->len; first++) {
        uint64_t cxt = 0;

        for (unsigned i = ICM_QPC; i < ICM_MPT; i++) {
            cxt += (s.drv->icm[i].size + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;
        }
        if (first == cxt) {
            break;
        }
    }
    for (unsigned i = 0; i < pages; i++) {
        EXPECT(scene_map_icm(
                   &s, RDMA_HCA_ICM_TPT, (uint64_t)i * HOST_PAGE_SIZE,
                   g_array_index(s.drv->icm_pages, uint64_t, first + i), 1),
               OK);
    }
    scene_check(&s);
    for (unsigned i = ICM_QPC; i < ICM_MPT; i++) {
        table = &s.drv->icm[i];
        pages = (table->size + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;
        EXPECT(scene_unmap_icm(&s, table->kind, table->base, pages), OK);
    }
    /* Contexts are written there, never read: what exists goes on. */
    scene_check(&s);
    EXPECT(send_good(&s, RDMA_HCA_CMD_SW2HW_CQ, SPARE_CQN), BAD_SEG_PARAM);
    EXPECT(send_good(&s, RDMA_HCA_CMD_SW2HW_SRQ, SPARE_SRQN), BAD_SEG_PARAM);
    scene_recover(&s);
    scene_free(&s);
}

static uint8_t write_mtt(Scene *s, uint64_t index, unsigned n)
{
    struct rdma_hca_mtt_mailbox *box = g_malloc0(RDMA_HCA_MAILBOX_SIZE);
    uint8_t status;

    box->start_index_h = GUINT32_TO_BE(RDMA_HCA_HI32(index));
    box->start_index_l = GUINT32_TO_BE(RDMA_HCA_LO32(index));
    status = scene_command_in(s, RDMA_HCA_CMD_WRITE_MTT, box,
                              RDMA_HCA_MAILBOX_SIZE, n);
    g_free(box);
    return status;
}

static void test_mtt_index(void)
{
    const uint64_t table = 1u << LOG_MTTS;
    static const uint64_t far[] = {
        1u << LOG_MTTS,
        1u << 20,
        UINT32_MAX,
        UINT64_C(1) << 32,
        (UINT64_C(1) << 61) - 1,
        UINT64_C(1) << 63,
        UINT64_MAX - 507,
        UINT64_MAX,
    };
    Scene s;

    scene_init(&s, 2011);
    for (unsigned n = 1; n <= RDMA_HCA_MTT_MAX_ENTRIES; n += 13) {
        EXPECT(write_mtt(&s, table - n, n), OK);
        EXPECT(write_mtt(&s, table - n + 1, n), BAD_INDEX);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, table - n, n, 0), OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, table - n + 1, n, 0),
               BAD_INDEX);
        for (unsigned i = 0; i < G_N_ELEMENTS(far); i++) {
            EXPECT(write_mtt(&s, far[i], n), BAD_INDEX);
            EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, far[i], n, 0),
                   BAD_INDEX);
        }
    }
    for (unsigned n = 509; n < 2000; n += 7) {
        EXPECT(write_mtt(&s, SPARE_MTT, n), BAD_PARAM);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_READ_MTT, SPARE_MTT, n, 0),
               BAD_PARAM);
    }
    EXPECT(write_mtt(&s, SPARE_MTT, 0), BAD_PARAM);
    scene_free(&s);
}

static uint8_t sw2hw_words(Scene *s, const uint32_t *words)
{
    uint8_t status = box_send(s, box_find(RDMA_HCA_CMD_SW2HW_MPT), words);

    box_finish_mpt(s, words, status);
    return status;
}

/* For each page size, a region of some pages and the entries it has. */
static void test_mpt_length(void)
{
    Scene s;

    scene_init(&s, 2012);
    for (unsigned shift = 12; shift <= 31; shift++) {
        uint64_t page = UINT64_C(1) << shift;
        uint32_t words[BOX_MAX_WORDS] = { 0 };

        for (unsigned n = 1; n <= 40; n += 3) {
            /* It begins with the last byte of its first page. */
            uint64_t length = n == 1 ? 1 : (n - 2) * page + 2;

            box_make_mpt(&s, words);
            words[WORD_OF(rdma_hca_mpt, page_size)] = shift - 12;
            box_put64(words, WORD_OF(rdma_hca_mpt, start_h), 7 * page - 1);
            box_put64(words, WORD_OF(rdma_hca_mpt, length_h), length);
            words[WORD_OF(rdma_hca_mpt, mtt_sz)] = n;
            EXPECT(sw2hw_words(&s, words), OK);
            if (n > 1) {
                words[WORD_OF(rdma_hca_mpt, mtt_sz)] = n - 1;
                EXPECT(sw2hw_words(&s, words), BAD_PARAM);
            }
            /* The same at the end of the table, the number not given. */
            words[WORD_OF(rdma_hca_mpt, mtt_sz)] = 0;
            box_put64(words, WORD_OF(rdma_hca_mpt, mtt_seg_h),
                      (1u << LOG_MTTS) - n);
            EXPECT(sw2hw_words(&s, words), OK);
            words[WORD_OF(rdma_hca_mpt, mtt_seg_l)]++;
            EXPECT(sw2hw_words(&s, words), BAD_PARAM);
        }
        /* More than the whole table can map. */
        box_make_mpt(&s, words);
        words[WORD_OF(rdma_hca_mpt, page_size)] = shift - 12;
        box_put64(words, WORD_OF(rdma_hca_mpt, mtt_seg_h), 0);
        box_put64(words, WORD_OF(rdma_hca_mpt, length_h),
                  (page << LOG_MTTS) + 1);
        words[WORD_OF(rdma_hca_mpt, mtt_sz)] = 0;
        EXPECT(sw2hw_words(&s, words), BAD_PARAM);
        box_put64(words, WORD_OF(rdma_hca_mpt, length_h), UINT64_MAX);
        EXPECT(sw2hw_words(&s, words), BAD_PARAM);
    }
    scene_free(&s);
}

/* The right entry by its low bits, another key by the high ones. */
static void test_key_bits(void)
{
    QpAttr attr;
    Scene s;
    Wc wc;

    scene_init(&s, 2013);
    qp_attr_init(&attr);
    for (unsigned bit = 0; bit < 32; bit++) {
        uint8_t op = bit & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                             : RDMA_HCA_OPCODE_RDMA_WRITE;
        uint8_t *image = mr_image(s.pair->mr[1]);
        Qp *qp[2];
        SendWr wr;
        Sge sge;

        pair_connect(s.pair, NULL, qp);
        wr = pair_send(s.pair, 0, op, 1, &sge, 0, 100, 0);
        wr.rkey ^= 1u << bit;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(s.pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
        qp_destroy(qp[0]);
        qp_destroy(qp[1]);
        pair_connect(s.pair, NULL, qp);
        wr = pair_send(s.pair, 0, op, 2, &sge, 0, 100, 0);
        sge.lkey ^= 1u << bit;
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(s.pair->cq[0], &wc, 2, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
        qp_destroy(qp[0]);
        qp_destroy(qp[1]);
        mr_check_image(s.pair->mr[1], image);
        g_free(image);
        scene_check(&s);
    }
    scene_free(&s);
}

static void map_region_to(Scene *s, Mr *mr, uint64_t bus)
{
    struct rdma_hca_mtt_mailbox *box = g_malloc0(RDMA_HCA_MAILBOX_SIZE);

    box->start_index_l = GUINT32_TO_BE(mr->mtt);
    for (unsigned i = 0; i < mr->npages; i++) {
        uint64_t page = bus + (uint64_t)i * HOST_PAGE_SIZE;

        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
            RDMA_HCA_HI32(page));
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
            RDMA_HCA_LO32(page));
    }
    EXPECT(scene_command_in(s, RDMA_HCA_CMD_WRITE_MTT, box,
                            RDMA_HCA_MAILBOX_SIZE, mr->npages),
           OK);
    g_free(box);
}

/* A CQ whose consumer index, and a QP whose posted count, is a register. */
static void try_records(Scene *s, uint64_t bus)
{
    const uint64_t overruns = card_counter(s->host->hca, "cxtmgt_cq_overruns");
    uint32_t words[BOX_MAX_WORDS] = { 0 };
    struct rdma_hca_qpc qpc;
    QpConfig config;
    QpAttr attr;
    SendWr wr;
    Sge sge;
    Qp *qp[2];
    Cq cq;
    Wc wc;

    box_make_cqc(s, words);
    words[WORD_OF(rdma_hca_cqc, logsize_usrpage)] = CARD_UAR;
    box_put64(words, WORD_OF(rdma_hca_cqc, ci_db_h), bus);
    EXPECT(box_send(s, &box_cqc, words), OK);
    cq = *s->pair->cq[0];
    cq.cqn = SPARE_CQN;
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, s->pair->pd[i], s->pair->cq[i]);
        config.uar = CARD_UAR;
        if (!i) {
            config.send_cq = &cq;
        }
        qp[i] = qp_new_number(s->pair->drv[i], &config, SPARE_QPN);
    }
    /* With the queue of one entry full, its record is asked. */
    qp[0]->rq_record = bus;
    qp_connect(qp[0], qp[1], &attr);
    EXPECT(qp_query(qp[0], &qpc), OK);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.rq_db_l), ==, (uint32_t)bus);
    for (unsigned i = 0; i < 2; i++) {
        wr = pair_send(s->pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0, 8,
                       0);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        lab_run(s->pair->lab);
    }
    g_assert_cmpuint(card_counter(s->host->hca, "cxtmgt_cq_overruns"), ==,
                     overruns + 1);
    g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_ERR);
    /* And what is sent there finds no receive queue that works. */
    EXPECT(scene_command(s, RDMA_HCA_CMD_ERR2RST_QPEE, 0, SPARE_QPN,
                         RDMA_HCA_MODIFY_NO_INBOX),
           OK);
    EXPECT(qp_to_rst(qp[1]), OK);
    qp[0]->send_cq = s->pair->cq[0];
    qp_connect(qp[0], qp[1], &attr);
    wr = pair_send(s->pair, 1, RDMA_HCA_OPCODE_SEND, 9, &sge, 0, 8, 0);
    g_assert_true(qp_post_send(qp[1], &wr, 1));
    cq_expect(s->pair->cq[1], &wc, 9, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    EXPECT(scene_command(s, RDMA_HCA_CMD_ERR2RST_QPEE, 0, SPARE_QPN,
                         RDMA_HCA_MODIFY_NO_INBOX),
           OK);
    qp[0]->rq_record = s->drv->record_page;
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
    box_finish_cqc(s, words, 0);
    driver_count_events(s->drv, RDMA_HCA_EVENT_CQ_ERROR);
    scene_check(s);
}

/* An EQ in a region of registers: its first event fails it. */
static void try_eq(Scene *s, uint64_t bus)
{
    uint32_t mpt[BOX_MAX_WORDS] = { 0 }, eqc[BOX_MAX_WORDS] = { 0 };
    struct rdma_hca_eqc after;
    Box box = *box_find(RDMA_HCA_CMD_SW2HW_EQ);
    uint64_t mask = UINT64_C(1) << RDMA_HCA_EVENT_CMD;

    box_make_mpt(s, mpt);
    mpt[WORD_OF(rdma_hca_mpt, flags)] |= RDMA_HCA_MPT_PHYSICAL;
    box_put64(mpt, WORD_OF(rdma_hca_mpt, start_h), bus);
    box_put64(mpt, WORD_OF(rdma_hca_mpt, length_h), HOST_PAGE_SIZE);
    EXPECT(box_send(s, box_find(RDMA_HCA_CMD_SW2HW_MPT), mpt), OK);
    box_make_eqc(s, eqc);
    eqc[WORD_OF(rdma_hca_eqc, lkey)] = mpt[WORD_OF(rdma_hca_mpt, key)];
    EXPECT(box_send(s, &box, eqc), OK);
    EXPECT(scene_command(s, RDMA_HCA_CMD_MAP_EQ, mask, SPARE_EQN, 0), OK);
    host_bar0_write(s->host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                    RDMA_HCA_HCR_GO | RDMA_HCA_HCR_EVENT | RDMA_HCA_CMD_NOP);
    lab_run(s->pair->lab);
    EXPECT(driver_cmd_out(s->drv, RDMA_HCA_CMD_QUERY_EQ, &after, sizeof(after),
                          SPARE_EQN, 0),
           OK);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_EQC_STATUS, GUINT32_FROM_BE(after.flags)), ==,
        RDMA_HCA_EQ_STATUS_WRITE_FAIL);
    EXPECT(
        scene_command(s, RDMA_HCA_CMD_MAP_EQ, mask, s->drv->eq[EQ_CMD].eqn, 0),
        OK);
    box_finish_eqc(s, eqc, 0);
    box_finish_mpt(s, mpt, 0);
}

static void test_registers_as_memory(void)
{
    static const struct {
        uint8_t op;
        bool local;
        uint8_t syndrome;
    } uses[] = {
        { RDMA_HCA_OPCODE_SEND, true, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
        { RDMA_HCA_OPCODE_RDMA_WRITE, true, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
        { RDMA_HCA_OPCODE_RDMA_READ, true, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
        { RDMA_HCA_OPCODE_RDMA_WRITE, false, RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
        { RDMA_HCA_OPCODE_RDMA_READ, false, RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    };
    Scene s;
    Wc wc;

    scene_init(&s, 2017);
    for (unsigned b = 0; b < G_N_ELEMENTS(no_memory); b++) {
        uint64_t bus = no_memory[b];
        Mr *mr = mr_new(s.drv, s.pair->pd[0], 0x20000, 4096, ACCESS_ALL);

        /* Mailboxes. */
        EXPECT(driver_cmd(s.drv, RDMA_HCA_CMD_QUERY_FW, 0, 0, 0, bus, NULL),
               BAD_PARAM);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_SW2HW_MPT, bus, SPARE_MPT, 0),
               BAD_PARAM);
        /* Data, from this side and from the other. */
        map_region_to(&s, mr, bus);
        for (unsigned i = 0; i < G_N_ELEMENTS(uses); i++) {
            unsigned from = !uses[i].local;
            Qp *qp[2];
            SendWr wr;
            Sge sge;

            pair_connect(s.pair, NULL, qp);
            pair_post_recv(s.pair, !from, qp[!from], 7, 0, 100);
            wr = pair_send(s.pair, from, uses[i].op, i, &sge, 0, 100, 0);
            if (uses[i].local) {
                sge = mr_sge(mr, 0, 100);
            } else {
                wr.raddr = mr->va;
                wr.rkey = mr->key;
            }
            g_assert_true(qp_post_send(qp[from], &wr, 1));
            cq_expect(s.pair->cq[from], &wc, i, uses[i].syndrome);
            qp_destroy(qp[0]);
            qp_destroy(qp[1]);
        }
        EXPECT(mr_deregister(mr), OK);
        if (bus) {
            try_records(&s, bus); /* 0 is "no record" */
        }
        try_eq(&s, bus);
        scene_check(&s);
    }
    g_assert_cmpuint(s.host->mmio_hits, >, 0);
    scene_free(&s);
}

/*
 * CVE-2018-20123: what a device held was not given back when it was unplugged.
 * A card goes in the middle of everything: requests under way, responses to
 * send, events that wait for room, a command not begun.
 */
static void test_leak_on_unplug(void)
{
    for (unsigned round = 0; round < 30; round++) {
        Scene s;

        scene_init(&s, 2101 + round);
        for (unsigned side = 0; side < 2; side++) {
            for (unsigned i = 0; i < 8; i++) {
                SendWr wr;
                Sge sge;

                wr = pair_send(s.pair, side,
                               i & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                                     : RDMA_HCA_OPCODE_SEND,
                               i, &sge, 0, 8000, 8000);
                g_assert_true(qp_post_send(s.bystander[side], &wr, 1));
            }
            cq_arm(s.pair->cq[side], false);
        }
        for (unsigned i = 0; i < round * 4; i++) {
            lab_step(s.pair->lab);
        }
        host_bar0_write(s.host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
                        RDMA_HCA_HCR_GO | RDMA_HCA_CMD_NOP);
        if (round & 1) {
            /* Power off and on: the card is there, what it held is not. */
            host_reset(s.host);
            scene_expect_live(&s, &(SceneLive) { 0 });
        }
        pair_free(s.pair);
    }
}

/*
 * A card that is reset or goes has let go of its guest's memory: who has it now
 * may not be who gave it.
 */
static void test_no_dma_on_reset(void)
{
    Scene s;

    scene_init(&s, 2140);
    for (unsigned by_register = 0; by_register < 2; by_register++) {
        host_clear_dirty(s.host);
        if (by_register) {
            scene_reset_card(&s);
        } else {
            host_reset(s.host);
        }
        for (guint i = 0; i < s.drv->icm_pages->len; i++) {
            g_assert_false(host_is_dirty(
                s.host, g_array_index(s.drv->icm_pages, uint64_t, i)));
        }
        scene_recover(&s);
    }
    scene_free(&s);
}

/*
 * CVE-2021-3582: the pages of a region were moved together by a length that
 * was not checked against the number of pages given. Here a region ends where
 * its length says, whatever lies behind it in the table.
 */
static void test_remap_length(void)
{
    struct rdma_hca_mtt_mailbox *box = g_malloc0(RDMA_HCA_MAILBOX_SIZE);
    struct rdma_hca_mpt mpt;
    uint64_t page[3];
    Scene s;
    Wc wc;

    scene_init(&s, 2191);
    box->start_index_l = GUINT32_TO_BE(SPARE_MTT);
    for (unsigned i = 0; i < 3; i++) {
        page[i] = host_alloc(s.host, 1);
        host_fill(s.host, page[i], 0x11, HOST_PAGE_SIZE);
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
            RDMA_HCA_HI32(page[i]));
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
            RDMA_HCA_LO32(page[i]));
    }
    EXPECT(scene_command_in(&s, RDMA_HCA_CMD_WRITE_MTT, box,
                            RDMA_HCA_MAILBOX_SIZE, 3),
           OK);
    g_free(box);
    /* Of the three pages behind each other it has the first, and a part. */
    for (uint64_t len = 4095; len <= 4098; len++) {
        mpt = scene_mpt(&s, 0x10000, len, 0);
        EXPECT(scene_sw2hw_mpt(&s, &mpt), OK);
        for (uint32_t more = 0; more < 2; more++) {
            uint8_t *data = pair_data(s.pair, len + more);
            uint8_t after[HOST_PAGE_SIZE];
            SendWr wr;
            Qp *qp[2];
            Sge sge;

            pair_connect(s.pair, NULL, qp);
            mr_write(s.pair->mr[1], 0, data, len + more);
            wr = pair_send(s.pair, 1, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0,
                           len + more, 0);
            wr.raddr = 0x10000;
            wr.rkey = GOOD_KEY(SPARE_MPT);
            g_assert_true(qp_post_send(qp[1], &wr, 1));
            cq_expect(s.pair->cq[1], &wc, 1,
                      more ? RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR : 0);
            scene_disconnect(qp);
            host_read(s.host, page[1], after, sizeof(after));
            for (unsigned at = len > 4096 ? len - 4096 : 0; at < sizeof(after);
                 at++) {
                g_assert_cmphex(after[at], ==, 0x11);
            }
            g_free(data);
        }
        EXPECT(scene_hw2sw_mpt(&s), OK);
    }
    scene_free(&s);
}

/* UNMAP_ICM of more or less than was mapped with one command. */
static void test_unmap_length(void)
{
    const uint64_t far = UINT64_C(0x80000000);
    Scene s;

    scene_init(&s, 2192);
    for (uint8_t kind = RDMA_HCA_ICM_CXT; kind <= RDMA_HCA_ICM_TPT; kind++) {
        uint64_t bus = host_alloc(s.host, 8);

        EXPECT(scene_map_icm(&s, kind, far, bus, 8), OK);
        EXPECT(scene_unmap_icm(&s, kind, far, 9), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far - HOST_PAGE_SIZE, 9), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far, UINT32_MAX), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far, 0), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far + 1, 1), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far + 3 * HOST_PAGE_SIZE, 2), OK);
        EXPECT(scene_unmap_icm(&s, kind, far, 8), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, kind, far, 3), OK);
        EXPECT(scene_unmap_icm(&s, kind, far + 5 * HOST_PAGE_SIZE, 3), OK);
        EXPECT(scene_unmap_icm(&s, kind, far, 1), BAD_PARAM);
    }
    scene_free(&s);
}

/*
 * CVE-2021-3608: when only some pages of a ring could be mapped, the error
 * path unmapped all of them, those never mapped too. Here is everything that
 * takes back, without that which gives.
 */
static void test_never_mapped(void)
{
    Scene s;
    SceneLive was;

    scene_init(&s, 2211);
    was = scene_live(&s);
    for (unsigned twice = 0; twice < 2; twice++) {
        EXPECT(scene_hw2sw_mpt(&s), BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0, SPARE_EQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, SPARE_CQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_RESIZE_CQ, s.drv->mbox_in,
                             SPARE_CQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_MAP_EQ, UINT64_MAX,
                             RDMA_HCA_MAP_EQ_UNMAP | SPARE_EQN, 0),
               BAD_RES_STATE);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_2ERR_QPEE, 0, SPARE_QPN,
                             RDMA_HCA_MODIFY_NO_INBOX),
               BAD_QP_STATE);
        EXPECT(scene_to_rst(&s, SPARE_QPN), OK); /* RST to RST is legal */
        EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_CXT, 0x80000000, 1), BAD_PARAM);
        EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_TPT, 0x80000000, 1), BAD_PARAM);
    }
    scene_expect_live(&s, &was);
    scene_check(&s);
    /* What exists, taken back twice; what is in use, not at all. */
    {
        struct rdma_hca_mpt mpt = scene_mpt(&s, 0, 4096, 0);
        Cq *cq = cq_new(s.drv, 4, CARD_UAR);
        uint32_t cqn = cq->cqn;

        EXPECT(scene_sw2hw_mpt(&s, &mpt), OK);
        EXPECT(scene_sw2hw_mpt(&s, &mpt), BAD_RESOURCE);
        EXPECT(scene_hw2sw_mpt(&s), OK);
        EXPECT(scene_hw2sw_mpt(&s), BAD_RES_STATE);
        EXPECT(cq_destroy(cq), OK);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, cqn, 0),
               BAD_RES_STATE);
        EXPECT(
            scene_command(&s, RDMA_HCA_CMD_HW2SW_CQ, 0, s.pair->cq[0]->cqn, 0),
            RESOURCE_BUSY);
        EXPECT(scene_command(&s, RDMA_HCA_CMD_HW2SW_EQ, 0,
                             s.drv->eq[EQ_COMP].eqn, 0),
               RESOURCE_BUSY);
    }
    scene_expect_live(&s, &was);
    scene_check(&s);
    scene_reset_card(&s);
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0), BAD_SYS_STATE);
    EXPECT(scene_command(&s, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0), BAD_SYS_STATE);
    EXPECT(scene_unmap_icm(&s, RDMA_HCA_ICM_CXT, 0, 1), BAD_PARAM);
    scene_recover(&s);
    scene_free(&s);
}

static void scribble(void *opaque)
{
    Mr *mr = opaque;
    uint32_t word = g_rand_int(mr->drv->host->lab->rand);

    for (uint64_t at = 0; at < mr->len; at += 64) {
        mr_write(mr, at, &word, sizeof(word));
    }
}

/*
 * A processor may write what a peer reads. The Read brings something of the
 * old and the new; it does not fail.
 */
static void test_live_memory(void)
{
    Pair *pair = pair_new(3401, 65536);
    SendWr wr[2];
    Sge sge[2];
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    pair->lab->host[1].before_write = scribble;
    pair->lab->host[1].before_write_opaque = pair->mr[1];
    wr[0] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_READ, 1, &sge[0], 0, 65536,
                      0);
    g_assert_true(qp_post_send(qp[0], wr, 1));
    cq_expect(pair->cq[0], &wc, 1, 0);
    g_assert_cmpuint(pair_drops(pair, 0, HCA_DROP_PARSE_ICRC), ==, 0);
    g_assert_cmpuint(pair_drops(pair, 0, HCA_DROP_PARSE_VCRC), ==, 0);
    pair_free(pair);
}

/*
 * Regions of device memory at places out of nowhere, used by the victim's
 * peer. What the card takes lies inside of it; what it is asked beyond that is
 * the sanitizer's to see.
 */
static void test_device_memory(void)
{
    static const uint8_t op[] = { RDMA_HCA_OPCODE_RDMA_WRITE,
                                  RDMA_HCA_OPCODE_RDMA_READ,
                                  RDMA_HCA_OPCODE_ATOMIC_FA };
    unsigned taken = 0;
    Scene s;

    scene_init_victim(&s, 2019);
    for (unsigned i = 0; i < 600; i++) {
        uint64_t start = (uint64_t)(noise32(&s) % 4 ? 0 : noise_odd32(&s))
                             << 32 |
                         noise_odd32(&s);
        uint64_t len = (uint64_t)(noise32(&s) % 4 ? 0 : noise_odd32(&s)) << 32 |
                       noise_odd32(&s);
        uint64_t size = s.host->config.device_memory;
        struct rdma_hca_mpt mpt = scene_mpt(
            &s, start, len, RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_DEV_MEM);
        bool fits = start <= size && len <= size - start;
        SendWr wr;
        Sge sge;

        g_assert_cmphex(scene_sw2hw_mpt(&s, &mpt), ==,
                        fits ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
        if (!fits) {
            continue;
        }
        taken++;
        wr = pair_send(s.pair, 1, op[i % G_N_ELEMENTS(op)], i, &sge, 0,
                       i % 3 == 2 ? 8 : 1 + noise32(&s) % 4096, 0);
        wr.raddr = start + (noise32(&s) % 2 ? 0 : noise_odd32(&s));
        wr.rkey = GUINT32_FROM_BE(mpt.key);
        qp_post_send(s.victim[1], &wr, 1);
        lab_run(s.pair->lab);
        EXPECT(scene_hw2sw_mpt(&s), OK);
        scene_keep_busy(&s);
    }
    g_assert_cmpuint(taken, >, 20);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bad-memory/bad-pages", test_bad_pages);
    test_add_each_link("/bad-memory/icm/random", test_icm);
    test_add_each_link("/bad-memory/icm/over-nothing", test_icm_over_nothing);
    test_add_each_link("/bad-memory/icm/twice", test_icm_twice);
    test_add_each_link("/bad-memory/icm/over-itself", test_icm_over_itself);
    test_add_each_link("/bad-memory/icm/tables-overlap",
                       test_icm_tables_overlap);
    test_add_each_link("/bad-memory/icm/taken-away", test_icm_taken_away);
    test_add_each_link("/bad-memory/mtt-index", test_mtt_index);
    test_add_each_link("/bad-memory/mpt-length", test_mpt_length);
    test_add_each_link("/bad-memory/key-bits", test_key_bits);
    test_add_each_link("/bad-memory/registers-as-memory",
                       test_registers_as_memory);
    test_add_each_link("/bad-memory/leak-on-unplug", test_leak_on_unplug);
    test_add_each_link("/bad-memory/leak-on-unplug/no-dma",
                       test_no_dma_on_reset);
    test_add_each_link("/bad-memory/remap-length/region", test_remap_length);
    test_add_each_link("/bad-memory/remap-length/icm", test_unmap_length);
    test_add_each_link("/bad-memory/never-mapped", test_never_mapped);
    test_add_each_link("/bad-memory/live", test_live_memory);
    test_add_each_link("/bad-memory/device-memory", test_device_memory);
    return g_test_run();
}
