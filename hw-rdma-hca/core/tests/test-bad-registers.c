/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers and doorbells that a guest writes and reads as it likes: numbers out
 * of range, of others, at random, too many. What a process does harms nobody
 * else.
 */
#include <string.h>

#include "lib-box.h"
#include "lib-noise.h"
#include "lib-scene.h"

static void random_uar_write(Scene *s)
{
    Host *host = &s->pair->lab->host[0];
    uint32_t page = pair_rand(s->pair, 0, 4) ? 3
                                             : noise32(s) % RDMA_HCA_NUM_UARS;
    uint32_t at = pair_rand(s->pair, 0, 2) ? pair_rand(s->pair, 0, 12) * 4
                                           : noise32(s) % 1024 * 4;

    /* Pages 1 (the bystander's) and 0 (the kernel's) are not mapped here. */
    page = page < 3 ? 3 : page;
    if (at % 8 == 0 && pair_rand(s->pair, 0, 2)) {
        host_uar_write64(host, page * RDMA_HCA_UAR_PAGE_SIZE + at,
                         (uint64_t)noise_odd32(s) << 32 | noise_odd32(s));
    } else {
        host_uar_write32(host, page * RDMA_HCA_UAR_PAGE_SIZE + at,
                         noise_odd32(s));
    }
}

static void test_random_doorbells(void)
{
    Scene s;

    scene_init_victim(&s, 1001);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 50; i++) {
            noise_send_doorbell(&s);
            random_uar_write(&s);
        }
        lab_run(s.pair->lab);
        scene_check(&s);
        scene_revive_victim(&s);
    }
    scene_free(&s);
}

/* More doorbells than the send queue has places. */
static void test_doorbell_flood(void)
{
    Scene s;

    scene_init_victim(&s, 1005);
    for (unsigned i = 0; i < 5000; i++) {
        qp_ring(s.victim[0], RDMA_HCA_OPCODE_SEND,
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.victim[0]->qpn) | 1);
    }
    lab_run(s.pair->lab);
    scene_check(&s);
    scene_revive_victim(&s);
    scene_free(&s);
}

static void test_random_registers(void)
{
    Scene s;

    scene_init_victim(&s, 1103);
    for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
        host_bar0_read(&s.pair->lab->host[0], at);
    }
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t at = noise32(&s) % RDMA_HCA_BAR0_SIZE;

        switch (pair_rand(s.pair, 0, 4)) {
        case 0:
            at = RDMA_HCA_HCR + at % 64;
            break;
        case 1:
            at = RDMA_HCA_EQ_DB + at % 256;
            break;
        case 2:
            at = RDMA_HCA_RESET - 16 + at % 32;
            break;
        }
        host_bar0_write(&s.pair->lab->host[0], at & ~3u, noise_odd32(&s));
        random_uar_write(&s);
        if (i % 16 == 0) {
            lab_run(s.pair->lab);
        }
    }
    scene_recover(&s);
    scene_free(&s);
}

static const uint32_t wild[] = {
    1u << LOG_QPS, (1u << LOG_QPS) + 1,
    0xfff,         1u << 14,
    1u << 16,      1u << 23,
    0xfffffe,      0xffffff,
};

static void test_wild_doorbells(void)
{
    uint64_t qpns, cqns, eqns;
    const Hca *hca;
    Scene s;

    scene_init(&s, 2014);
    hca = s.host->hca;
    qpns = card_counter(hca, "send_db_bad_qpn");
    cqns = card_counter(hca, "cxtmgt_db_bad_cqn");
    eqns = card_counter(hca, "cxtmgt_db_bad_eqn");
    for (unsigned i = 0; i < G_N_ELEMENTS(wild); i++) {
        for (uint32_t uar = 0; uar < RDMA_HCA_NUM_UARS; uar += 89) {
            uint32_t at = uar * RDMA_HCA_UAR_PAGE_SIZE;
            uint64_t high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, wild[i]) | 1;
            uint32_t cmd = RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, uar & 3);

            host_uar_write64(s.host, at + RDMA_HCA_SEND_DB, high << 32);
            host_uar_write64(s.host, at + RDMA_HCA_CQ_DB, cmd | wild[i]);
            qpns++;
            cqns++;
        }
    }
    /* Registers of EQs that there are not: those beyond 8, and EQ 0. */
    for (uint32_t eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (eqn < 1 || eqn > NUM_EQS) {
            host_bar0_write(s.host,
                            RDMA_HCA_EQ_DB + eqn * RDMA_HCA_EQ_DB_STRIDE,
                            ALL << (eqn & 1));
            eqns++;
        }
    }
    lab_run(s.pair->lab);
    g_assert_cmpuint(card_counter(hca, "send_db_bad_qpn"), ==, qpns);
    g_assert_cmpuint(card_counter(hca, "cxtmgt_db_bad_cqn"), ==, cqns);
    g_assert_cmpuint(card_counter(hca, "cxtmgt_db_bad_eqn"), ==, eqns);
    scene_free(&s);
}

/* Numbers that are right, from each page that is not theirs. */
static void test_foreign_pages(void)
{
    Cq *cq;
    Scene s;

    scene_init(&s, 2015);
    cq = s.pair->cq[0];
    for (uint32_t uar = 0; uar < RDMA_HCA_NUM_UARS; uar++) {
        uint32_t at = uar * RDMA_HCA_UAR_PAGE_SIZE;

        if (uar == cq->uar) {
            continue;
        }
        host_uar_write64(
            s.host, at + RDMA_HCA_SEND_DB,
            (uint64_t)RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.bystander[0]->qpn)
                << 32);
        host_uar_write64(
            s.host, at + RDMA_HCA_CQ_DB,
            RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, RDMA_HCA_CQ_DB_CMD_ARM_NEXT) |
                cq->cqn);
    }
    lab_run(s.pair->lab);
    g_assert_cmpuint(card_counter(s.host->hca, "send_db_bad_uar"), ==,
                     RDMA_HCA_NUM_UARS - 1);
    g_assert_cmpuint(card_counter(s.host->hca, "cxtmgt_db_bad_uar"), ==,
                     RDMA_HCA_NUM_UARS - 1);
    scene_check(&s);
    /* None of these has armed the queue. */
    g_assert_cmpuint(driver_count_events(s.drv, RDMA_HCA_EVENT_COMP), ==, 0);
    scene_free(&s);
}

/*
 * Each register's worth of both BARs, written with patterns and read. (What is
 * narrower or not aligned ends in the PCI device: its qtest.)
 */
static void test_bars(void)
{
    static const uint32_t patterns[] = { 0, ALL, 0x01234567 };
    Scene s;

    scene_init(&s, 2016);
    for (unsigned i = 0; i < G_N_ELEMENTS(patterns); i++) {
        for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
            uint32_t offset = at - RDMA_HCA_HCR;
            uint32_t value;

            host_bar0_write(s.host, at, patterns[i]);
            value = host_bar0_read(s.host, at);
            if (offset >= RDMA_HCA_HCR_SIZE && at != RDMA_HCA_RESET) {
                g_assert_cmphex(value, ==, 0);
            }
        }
        for (uint32_t at = 0; at < RDMA_HCA_BAR2_SIZE; at += 4) {
            hca_doorbell(s.host->hca, RDMA_HCA_BAR2, at, patterns[i], 4);
            if (at % 8 == 0) {
                hca_doorbell(s.host->hca, RDMA_HCA_BAR2, at,
                             (uint64_t)patterns[i] << 32 | ~patterns[i], 8);
            }
        }
        lab_run(s.pair->lab);
    }
    scene_recover(&s);
    scene_free(&s);
}

/*
 * CVE-2018-20191: the doorbell pages could be written only, and a read of one
 * called a function that was not there. Reads of BAR 2 end in the PCI device
 * (its qtest); here it is BAR 0, in any state.
 */
static void test_register_read(void)
{
    Scene s;

    scene_init(&s, 2171);
    for (unsigned state = 0; state < 2; state++) {
        for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
            uint32_t value = host_bar0_read(s.host, at);

            if (at < RDMA_HCA_HCR || at >= RDMA_HCA_HCR + RDMA_HCA_HCR_SIZE) {
                g_assert_cmphex(value, ==, 0);
            }
        }
        scene_check(&s);
        if (!state) {
            scene_recover(&s);
        }
    }
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bad-registers/doorbells/random",
                       test_random_doorbells);
    test_add_each_link("/bad-registers/doorbells/flood", test_doorbell_flood);
    test_add_each_link("/bad-registers/random", test_random_registers);
    test_add_each_link("/bad-registers/doorbells/wild-numbers",
                       test_wild_doorbells);
    test_add_each_link("/bad-registers/doorbells/foreign-pages",
                       test_foreign_pages);
    test_add_each_link("/bad-registers/bars", test_bars);
    test_add_each_link("/bad-registers/read", test_register_read);
    return g_test_run();
}
