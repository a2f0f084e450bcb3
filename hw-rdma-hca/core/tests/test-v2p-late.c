/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VirtToPhys while memory takes its time, by the sections of its document: 5.2
 * and 5.6.3.2 request control, 5.7.3.2 and 6 the paths behind the MPT, 5.4 the
 * ways to the host.
 *
 * Caches have two lines each, in one set. Regions are of 16 pages, so each has
 * two lines of the MTT.
 */
#include <string.h>

#include "../fault/host_faults.h"
#include "../v2p/tpt_cache.h"
#include "lib-make.h"
#include "lib-ram.h"

#define LOG_MPTS 6
#define LOG_MTTS 12
#define MPT_BASE 0
#define MTT_BASE 0x8000
#define ICM_PAGES 16
#define PAGES 16
#define LEN (PAGES * RAM_PAGE)
#define FLAGS                                                                  \
    (RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | RDMA_HCA_ACCESS_LOCAL_WRITE |    \
     RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |              \
     RDMA_HCA_ACCESS_REMOTE_ATOMIC)
#define PD 3
#define REGIONS 8
#define ASKS 8
#define LATENCY 1000

typedef struct Late {
    Ram *ram;
    HcaV2p *v2p;
    uint64_t pages[REGIONS];
    HcaV2pAsk ask[ASKS];
    unsigned answers;
    unsigned answer[32]; /* which, in their order */
} Late;

static void answered(void *opaque, HcaV2pAsk *ask)
{
    Late *late = opaque;

    g_assert_cmpuint(late->answers, <, G_N_ELEMENTS(late->answer));
    late->answer[late->answers++] = ask->unit;
}

static uint64_t start_of(unsigned region)
{
    return (uint64_t)(region + 1) << 20;
}

static void add_region(Late *late, unsigned region)
{
    struct rdma_hca_mpt mpt = good_mpt(GOOD_KEY(region), FLAGS, PD,
                                       start_of(region), LEN, PAGES * region);
    uint64_t addr[PAGES];

    late->pages[region] = ram_alloc(late->ram, PAGES);
    for (unsigned i = 0; i < PAGES; i++) {
        addr[i] = late->pages[region] + i * RAM_PAGE;
    }
    g_assert_cmphex(ram_write_mpt(late->v2p, region, &mpt), ==, 0);
    g_assert_cmphex(hca_v2p_write_mtt(late->v2p, PAGES * region, addr, PAGES),
                    ==, 0);
}

static HcaMatchInfo info_of(unsigned region, uint64_t offset, uint32_t len)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_ABSOLUTE_ADDR,
        .pd = PD,
        .key = GOOD_KEY(region),
        .va = start_of(region) + offset,
        .len = len,
    };
}

static HcaV2pState read_at(Late *late, unsigned region, uint64_t offset)
{
    HcaMatchInfo info = info_of(region, offset, 8);
    uint8_t bytes[8];

    return hca_v2p_read(late->v2p, HCA_V2P_WP_ND, &info, bytes);
}

/* The lines of these two are those that the caches have, @last used last. */
static void cache(Late *late, unsigned first, unsigned last)
{
    g_assert_cmpint(read_at(late, first, 0), ==, HCA_V2P_SUCCESS);
    g_assert_cmpint(read_at(late, last, 0), ==, HCA_V2P_SUCCESS);
}

static Late *late_new(uint64_t bandwidth)
{
    Late *late = g_new0(Late, 1);

    late->ram = ram_new();
    late->v2p = hca_v2p_new(&hca_mpt_format,
                            &HCA_HOST(&late->ram->ops, late->ram), LOG_MPTS,
                            LOG_MTTS, 128, 128, 2);
    hca_v2p_set_late(late->v2p, LATENCY, bandwidth, answered, late);
    for (unsigned i = 0; i < ICM_PAGES; i++) {
        g_assert_cmphex(hca_v2p_map_icm(late->v2p, (uint64_t)i << 12,
                                        ram_alloc(late->ram, 1), 1),
                        ==, 0);
    }
    g_assert_cmphex(hca_v2p_init(late->v2p, MPT_BASE, LOG_MPTS, MTT_BASE), ==,
                    0);
    for (unsigned i = 0; i < REGIONS; i++) {
        add_region(late, i);
    }
    for (unsigned i = 0; i < ASKS; i++) {
        late->ask[i].unit = i;
    }
    cache(late, 6, 7);
    hca_v2p_settle(late->v2p);
    return late;
}

static void late_free(Late *late)
{
    hca_v2p_free(late->v2p);
    ram_free(late->ram);
    g_free(late);
}

static bool ask(Late *late, unsigned i, HcaV2pChannel channel, HcaV2pUse use,
                unsigned region, uint64_t offset, uint32_t len)
{
    HcaMatchInfo info = info_of(region, offset, len);

    return hca_v2p_ask(late->v2p, &late->ask[i], 0, channel, use, &info);
}

/* It is asked for, and not there. */
static void begin(Late *late, unsigned i, HcaV2pChannel channel, HcaV2pUse use,
                  unsigned region)
{
    g_assert_false(ask(late, i, channel, use, region, 0, 8));
}

static void run_at(Late *late, int64_t now)
{
    late->ram->now = now;
    hca_v2p_run(late->v2p);
}

static void expect(Late *late, unsigned n, const unsigned *which)
{
    g_assert_cmpuint(late->answers, ==, n);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(late->answer[i], ==, which[i]);
    }
}

#define EXPECT(late, ...)                                                      \
    expect(late, G_N_ELEMENTS(((unsigned[]) { __VA_ARGS__ })),                 \
           (unsigned[]) { __VA_ARGS__ })

static void expect_stage(Late *late, unsigned i, HcaV2pStage stage)
{
    g_assert_cmpint(late->ask[i].stage, ==, stage);
}

static uint64_t refills(Late *late)
{
    const HcaV2pCounters *c = hca_v2p_counters(late->v2p);

    return c->mpt.refills;
}

/* 5.2 */

static void test_ceu_first(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    begin(late, 1, HCA_V2P_EE, HCA_V2P_CHECK, 7);
    begin(late, 2, HCA_V2P_CEU, HCA_V2P_CHECK, 7);
    expect_stage(late, 2, HCA_V2P_QUEUED);
    run_at(late, 0);
    EXPECT(late, 2, 0, 1);
    late_free(late);
}

static void test_round_robin(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_RRC, HCA_V2P_CHECK, 7);
    begin(late, 1, HCA_V2P_RRC, HCA_V2P_CHECK, 7);
    begin(late, 2, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    begin(late, 3, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    begin(late, 4, HCA_V2P_EE, HCA_V2P_CHECK, 7);
    run_at(late, 0);
    EXPECT(late, 2, 0, 4, 3, 1);
    late_free(late);
}

/* A miss holds up its channel, in its order, and no other. */
static void test_pending(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 0);
    begin(late, 1, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    begin(late, 2, HCA_V2P_WP_ND, HCA_V2P_CHECK, 7);
    run_at(late, 0);
    EXPECT(late, 2);
    expect_stage(late, 0, HCA_V2P_MPT_MISS);
    expect_stage(late, 1, HCA_V2P_QUEUED);
    g_assert_cmpint(hca_v2p_deadline(late->v2p), ==, LATENCY);
    run_at(late, LATENCY - 1);
    EXPECT(late, 2);
    run_at(late, LATENCY);
    EXPECT(late, 2, 0, 1);
    g_assert_cmpint(hca_v2p_deadline(late->v2p), ==, INT64_MAX);
    g_assert_true(ask(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 0, 0, 8));
    late_free(late);
}

static void test_several_misses(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 0);
    begin(late, 1, HCA_V2P_EE, HCA_V2P_CHECK, 1);
    run_at(late, 0);
    EXPECT(late);
    run_at(late, LATENCY);
    EXPECT(late, 0, 1);
    late_free(late);
}

static void test_shared_line(void)
{
    Late *late = late_new(0);
    uint64_t before = refills(late);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 0);
    begin(late, 1, HCA_V2P_EE, HCA_V2P_CHECK, 0);
    run_at(late, 0);
    run_at(late, LATENCY);
    EXPECT(late, 0, 1);
    g_assert_cmpuint(refills(late) - before, ==, 1);
    late_free(late);
}

/* 5.5 */

static bool refill_line(void *opaque, uint64_t line, void *data)
{
    const bool *there = opaque;

    memset(data, line, HCA_TPT_LINE);
    return *there;
}

static bool refuse_line(void *opaque, uint64_t line, const void *data)
{
    return false;
}

/*
 * No way can be had, as the table refuses the lines that are there. A set that
 * waits for another line waits for that; else the line does not come, and who
 * asked finds out.
 */
static void test_no_room(void)
{
    static const HcaTptBackingOps ops = { .refill = refill_line,
                                          .write_back = refuse_line };
    HcaTptCacheCounters counters = { 0 };
    bool there = true;
    HcaTptCache *cache = hca_tpt_cache_new(2 * HCA_TPT_LINE, 2, &ops, &there,
                                           &counters);

    g_assert_nonnull(hca_tpt_cache_write(cache, 1));
    g_assert_true(hca_tpt_cache_await(cache, 2));
    g_assert_false(hca_tpt_cache_await(cache, 3));
    hca_tpt_cache_arrive(cache, 2);
    g_assert_nonnull(hca_tpt_cache_write(cache, 2));
    g_assert_true(hca_tpt_cache_await(cache, 3));
    g_assert_false(hca_tpt_cache_awaits(cache, 3));
    g_assert_null(hca_tpt_cache_read(cache, 3));
    hca_tpt_cache_arrive(cache, 3);
    g_assert_nonnull(hca_tpt_cache_peek(cache, 1));
    g_assert_nonnull(hca_tpt_cache_peek(cache, 2));
    hca_tpt_cache_free(cache);
}

/* Ways are in use that have a line, and those that are kept for one. */
static void test_used(void)
{
    static const HcaTptBackingOps ops = { .refill = refill_line };
    HcaTptCacheCounters counters = { 0 };
    bool there = true;
    HcaTptCache *cache = hca_tpt_cache_new(4 * HCA_TPT_LINE, 2, &ops, &there,
                                           &counters);

    g_assert_cmpuint(hca_tpt_cache_lines(cache), ==, 4);
    g_assert_cmpuint(cache->used, ==, 0);
    g_assert_nonnull(hca_tpt_cache_read(cache, 0));
    g_assert_nonnull(hca_tpt_cache_read(cache, 1));
    g_assert_cmpuint(cache->used, ==, 2);
    g_assert_true(hca_tpt_cache_await(cache, 2));
    g_assert_true(hca_tpt_cache_await(cache, 3));
    g_assert_cmpuint(cache->used, ==, 4);
    hca_tpt_cache_arrive(cache, 2);
    g_assert_cmpuint(cache->used, ==, 4);
    g_assert_nonnull(hca_tpt_cache_read(cache, 4)); /* in the place of 0 */
    g_assert_cmpuint(cache->used, ==, 4);
    there = false;
    hca_tpt_cache_arrive(cache, 3);
    g_assert_cmpuint(cache->used, ==, 3);
    hca_tpt_cache_drop(cache, 0, 2);
    g_assert_cmpuint(cache->used, ==, 2);
    g_assert_true(hca_tpt_cache_await(cache, 5));
    g_assert_cmpuint(cache->used, ==, 3);
    hca_tpt_cache_drop(cache, 5, 6);
    g_assert_cmpuint(cache->used, ==, 2);
    hca_tpt_cache_clear(cache);
    g_assert_cmpuint(cache->used, ==, 0);
    hca_tpt_cache_free(cache);
}

/* 5.6.3.2 */

/* Both ways of the set wait for lines, so the third has to. */
static void test_no_way(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 0);
    begin(late, 1, HCA_V2P_WP_ND, HCA_V2P_CHECK, 1);
    begin(late, 2, HCA_V2P_EE, HCA_V2P_CHECK, 2);
    run_at(late, 0);
    run_at(late, LATENCY);
    EXPECT(late, 0, 1);
    expect_stage(late, 2, HCA_V2P_MPT_MISS);
    run_at(late, 2 * LATENCY);
    EXPECT(late, 0, 1, 2);
    late_free(late);
}

/* A region that goes while its entry is on its way: error, not what was. */
static void test_gone(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 0);
    run_at(late, 0);
    g_assert_cmphex(hca_v2p_invalidate_mpt(late->v2p, 0), ==, 0);
    run_at(late, LATENCY);
    EXPECT(late, 0);
    g_assert_true(ask(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 0, 0, 8));
    g_assert_cmpint(read_at(late, 0, 0), ==, HCA_V2P_KEY_ERR);
    late_free(late);
}

/* The table cannot be read: who asked is told, and finds out. */
static void test_unmapped(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 0);
    run_at(late, 0);
    g_assert_cmphex(hca_v2p_unmap_icm(late->v2p, 0, 1), ==, 0);
    run_at(late, LATENCY);
    EXPECT(late, 0);
    g_assert_cmpint(read_at(late, 0, 0), ==, HCA_V2P_KEY_ERR);
    late_free(late);
}

/* What is refused, or of no length, is answered without a look at the MTT. */
static void test_refused(void)
{
    Late *late = late_new(0);

    g_assert_false(ask(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 7, LEN, 8));
    g_assert_false(ask(late, 1, HCA_V2P_EE, HCA_V2P_FETCH, REGIONS, 0, 8));
    run_at(late, 0);
    EXPECT(late, 0, 1);
    late_free(late);
}

/* 5.7.3.2, 6: WQEs, data and writes each have a path. */

static void test_paths(void)
{
    Late *late = late_new(0);

    /* Region 7's second line of the MTT is not there, its first one is. */
    g_assert_false(ask(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 7, 8 * RAM_PAGE, 8));
    begin(late, 1, HCA_V2P_WP_WQE, HCA_V2P_FETCH, 7);
    begin(late, 2, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7);
    begin(late, 3, HCA_V2P_EE, HCA_V2P_STORE, 7);
    run_at(late, 0);
    EXPECT(late, 3); /* it is posted */
    expect_stage(late, 0, HCA_V2P_MTT_MISS);
    expect_stage(late, 1, HCA_V2P_MTT_QUEUED);
    expect_stage(late, 2, HCA_V2P_DMA);
    run_at(late, LATENCY);
    EXPECT(late, 3, 2);
    expect_stage(late, 0, HCA_V2P_DMA);
    run_at(late, 2 * LATENCY);
    EXPECT(late, 3, 2, 0, 1);
    late_free(late);
}

/* 5.4 */

/* 4000 bytes of 1000 in a microsecond; the next behind them. */
static void test_bandwidth(void)
{
    Late *late = late_new(1000);

    g_assert_false(ask(late, 0, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7, 0, 4000));
    g_assert_false(ask(late, 1, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7, 0, 1000));
    run_at(late, 0);
    g_assert_cmpint(late->ask[0].ready_at, ==, 4000 + LATENCY);
    run_at(late, 4000 + LATENCY);
    EXPECT(late, 0);
    g_assert_cmpint(hca_v2p_deadline(late->v2p), ==, 5000 + LATENCY);
    run_at(late, 5000 + LATENCY);
    EXPECT(late, 0, 1);
    late_free(late);
}

static void write_at(Late *late, uint64_t offset, uint8_t value)
{
    HcaMatchInfo info = info_of(7, offset, 8);
    uint8_t bytes[8];

    memset(bytes, value, sizeof(bytes));
    info.flags |= RDMA_HCA_ACCESS_LOCAL_WRITE;
    g_assert_cmpint(hca_v2p_write(late->v2p, HCA_V2P_EE, &info, bytes), ==,
                    HCA_V2P_SUCCESS);
}

static uint8_t byte_at(Late *late, uint64_t offset)
{
    return *(uint8_t *)ram_at(late->ram, late->pages[7] + offset);
}

/* What is written arrives in its order, an interrupt behind it. */
static void test_posted(void)
{
    Late *late = late_new(0);

    write_at(late, 0, 1);
    hca_v2p_interrupt(late->v2p, 5);
    late->ram->now = 10;
    write_at(late, 64, 2);
    g_assert_cmpint(hca_v2p_deadline(late->v2p), ==, LATENCY);
    run_at(late, LATENCY - 1);
    g_assert_cmpuint(byte_at(late, 0), ==, 0);
    g_assert_cmpuint(late->ram->msix[5], ==, 0);
    run_at(late, LATENCY);
    g_assert_cmpuint(byte_at(late, 0), ==, 1);
    g_assert_cmpuint(late->ram->msix[5], ==, 1);
    g_assert_cmpuint(byte_at(late, 64), ==, 0);
    run_at(late, LATENCY + 10);
    g_assert_cmpuint(byte_at(late, 64), ==, 2);
    late_free(late);
}

/* The card sees what it wrote: what is before that arrives, too, no more. */
static void test_own_writes(void)
{
    Late *late = late_new(0);

    write_at(late, 0, 1);
    write_at(late, 64, 2);
    write_at(late, 128, 3);
    g_assert_cmpint(read_at(late, 7, 64), ==, HCA_V2P_SUCCESS);
    g_assert_cmpuint(byte_at(late, 0), ==, 1);
    g_assert_cmpuint(byte_at(late, 64), ==, 2);
    g_assert_cmpuint(byte_at(late, 128), ==, 0);
    hca_v2p_settle(late->v2p);
    g_assert_cmpuint(byte_at(late, 128), ==, 3);
    late_free(late);
}

/* More than has room on its way: the oldest arrive early, in their order. */
static void test_many_writes(void)
{
    Late *late = late_new(0);

    for (unsigned i = 0; i < 1000; i++) {
        write_at(late, 8 * (i % 512), i % 251);
        hca_v2p_interrupt(late->v2p, 1);
    }
    g_assert_cmpuint(late->ram->msix[1], >=, 1000 - 128);
    g_assert_cmpuint(late->ram->msix[1], <, 1000);
    g_assert_cmpuint(hca_v2p_counters(late->v2p)->posted_early, ==, 2000 - 256);
    run_at(late, LATENCY);
    g_assert_cmpuint(late->ram->msix[1], ==, 1000);
    for (unsigned i = 512; i < 1000; i++) {
        g_assert_cmpuint(byte_at(late, 8 * (i % 512)), ==, i % 251);
    }
    late_free(late);
}

/*
 * A rule that has some memory answer late meets the pieces of a read by their
 * own addresses: here the second of two, and not what lies behind the first.
 */
static void test_delay_of_pieces(void)
{
    Late *late = late_new(0);
    HcaHostFaults *faults = hca_host_faults_new(
        &HCA_HOST(&late->ram->ops, late->ram));
    uint64_t page = late->pages[7];
    uint64_t addr[2] = { page + 4 * RAM_PAGE, page + 2 * RAM_PAGE };
    HcaFaultPlan plan = { .nrules = 1,
                          .rule[0] = { .place = HCA_FAULT_DMA,
                                       .action = HCA_FAULT_DELAY,
                                       .match_addr = true,
                                       .delay_ns = 5 * LATENCY,
                                       .probability = HCA_FAULT_ALWAYS } };
    HcaMatchInfo info = info_of(7, RAM_PAGE - 8, 16);

    g_assert_cmphex(hca_v2p_write_mtt(late->v2p, 7 * PAGES, addr, 2), ==, 0);
    hca_v2p_set_faults(late->v2p, faults);
    for (unsigned i = 0; i < 2; i++) {
        plan.rule[0].addr_first = page + (i ? 5 : 2) * RAM_PAGE;
        plan.rule[0].addr_last = plan.rule[0].addr_first + 7;
        hca_host_faults_set_plan(faults, &plan, 0);
        g_assert_false(hca_v2p_ask(late->v2p, &late->ask[i], 0, HCA_V2P_WP_ND,
                                   HCA_V2P_FETCH, &info));
        run_at(late, 10 * i * LATENCY);
        g_assert_cmpint(hca_v2p_deadline(late->v2p), ==,
                        i ? 11 * LATENCY : 6 * LATENCY);
        run_at(late, 10 * i * LATENCY + 6 * LATENCY);
        g_assert_cmpuint(late->answers, ==, i + 1);
    }
    late_free(late);
    hca_host_faults_free(faults);
}

/* An atomic comes back, behind what was written there. */
static void test_atomic(void)
{
    Late *late = late_new(0);
    HcaMatchInfo info = info_of(7, 0, 8);
    uint64_t old;

    write_at(late, 0, 1);
    begin(late, 0, HCA_V2P_EE, HCA_V2P_MODIFY, 7);
    run_at(late, 0);
    EXPECT(late);
    run_at(late, LATENCY);
    EXPECT(late, 0);
    info.flags |= RDMA_HCA_ACCESS_REMOTE_ATOMIC;
    write_at(late, 128, 2); /* is not overtaken */
    g_assert_cmpint(hca_v2p_fetch_add(late->v2p, HCA_V2P_EE, &info, 1, &old),
                    ==, HCA_V2P_SUCCESS);
    g_assert_cmpuint(byte_at(late, 128), ==, 2);
    g_assert_cmphex(old, ==, UINT64_C(0x0101010101010101));
    late_free(late);
}

/* Who asks */

/* A step that needs two things has the first one still when the second comes. */
static void test_steps(void)
{
    Late *late = late_new(0);
    HcaMatchInfo first = info_of(0, 0, 8), second = info_of(1, 0, 8);
    HcaV2pAsk *a = &late->ask[0];

    g_assert_false(
        hca_v2p_ask(late->v2p, a, 0, HCA_V2P_DB, HCA_V2P_CHECK, &first));
    run_at(late, 0);
    g_assert_false(
        hca_v2p_ask(late->v2p, a, 0, HCA_V2P_DB, HCA_V2P_CHECK, &first));
    run_at(late, LATENCY);
    g_assert_true(
        hca_v2p_ask(late->v2p, a, 0, HCA_V2P_DB, HCA_V2P_CHECK, &first));
    g_assert_false(
        hca_v2p_ask(late->v2p, a, 1, HCA_V2P_DB, HCA_V2P_CHECK, &second));
    run_at(late, LATENCY);
    run_at(late, 2 * LATENCY);
    EXPECT(late, 0, 0);
    g_assert_true(
        hca_v2p_ask(late->v2p, a, 0, HCA_V2P_DB, HCA_V2P_CHECK, &first));
    g_assert_true(
        hca_v2p_ask(late->v2p, a, 1, HCA_V2P_DB, HCA_V2P_CHECK, &second));
    hca_v2p_ask_done(a);
    g_assert_cmpuint(a->answered, ==, 0);
    late_free(late);
}

/* A step that has become another one asks anew; the old answer is nobody's. */
static void test_other_step(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 0);
    run_at(late, 0);
    begin(late, 0, HCA_V2P_WP_ND, HCA_V2P_CHECK, 7);
    run_at(late, 1);
    EXPECT(late, 0);
    g_assert_true(ask(late, 0, HCA_V2P_WP_ND, HCA_V2P_CHECK, 7, 0, 8));
    run_at(late, LATENCY);
    EXPECT(late, 0);
    late_free(late);
}

/* What has been answered is, though something else is asked for by now. */
static void test_other_answer(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_RWM, HCA_V2P_CHECK, 7);
    run_at(late, 0);
    EXPECT(late, 0);
    g_assert_true(ask(late, 0, HCA_V2P_RWM, HCA_V2P_CHECK, 0, 64, 8));
    expect_stage(late, 0, HCA_V2P_IDLE);
    late_free(late);
}

/* Whatever stage it is in: it is forgotten, and its channel and path go on. */
static void test_forget(void)
{
    Late *late = late_new(0);
    static const HcaV2pStage stages[] = { HCA_V2P_MPT_MISS, HCA_V2P_QUEUED,
                                          HCA_V2P_MTT_MISS, HCA_V2P_MTT_QUEUED,
                                          HCA_V2P_DMA };

    begin(late, 0, HCA_V2P_RRC, HCA_V2P_FETCH, 0);
    begin(late, 1, HCA_V2P_RRC, HCA_V2P_FETCH, 7);
    g_assert_false(ask(late, 2, HCA_V2P_DB, HCA_V2P_FETCH, 7, 8 * RAM_PAGE, 8));
    begin(late, 3, HCA_V2P_DB, HCA_V2P_FETCH, 7);
    begin(late, 4, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7);
    run_at(late, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(stages); i++) {
        expect_stage(late, i, stages[i]);
        hca_v2p_ask_forget(late->v2p, &late->ask[i]);
        expect_stage(late, i, HCA_V2P_IDLE);
        hca_v2p_ask_forget(late->v2p, &late->ask[i]); /* there is none */
        g_assert_cmpuint(hca_v2p_counters(late->v2p)->forgotten, ==, i + 1);
    }
    run_at(late, 10 * LATENCY);
    EXPECT(late);
    begin(late, 1, HCA_V2P_RRC, HCA_V2P_FETCH, 7);
    begin(late, 3, HCA_V2P_DB, HCA_V2P_FETCH, 7);
    run_at(late, 10 * LATENCY);
    run_at(late, 12 * LATENCY);
    g_assert_cmpuint(late->answers, ==, 2);
    late_free(late);
}

/* A reset forgets what is asked for, on its way or not, and what was written. */
static void test_reset(void)
{
    Late *late = late_new(0);

    begin(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 0);
    begin(late, 1, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7);
    begin(late, 2, HCA_V2P_DB, HCA_V2P_FETCH, 7);
    run_at(late, 0);
    write_at(late, 0, 1);
    hca_v2p_reset(late->v2p);
    for (unsigned i = 0; i < 3; i++) {
        expect_stage(late, i, HCA_V2P_IDLE);
    }
    g_assert_cmpint(hca_v2p_deadline(late->v2p), ==, INT64_MAX);
    run_at(late, LATENCY);
    EXPECT(late);
    g_assert_cmpuint(byte_at(late, 0), ==, 0);
    late_free(late);
}

/* So many waits of @channel in @stage, and ns in all; taken from what is left. */
static void take_waits(HcaV2pCounters *left, HcaV2pChannel channel,
                       HcaV2pStage stage, uint64_t times, uint64_t ns)
{
    HcaV2pWaits *waits = &left->waits[channel];
    unsigned cause = stage - HCA_V2P_QUEUED;

    g_assert_cmpuint(waits->times[cause], ==, times);
    g_assert_cmpuint(waits->ns[cause], ==, ns);
    waits->times[cause] = waits->ns[cause] = 0;
}

static void expect_no_waits(const HcaV2pCounters *left)
{
    static const HcaV2pWaits none[HCA_V2P_NCHANNELS];

    g_assert_cmpmem(left->waits, sizeof(left->waits), none, sizeof(none));
}

/* Who waited for what, and how long. */
static void test_waits(void)
{
    Late *late = late_new(0);
    HcaV2pCounters left;

    begin(late, 0, HCA_V2P_DB, HCA_V2P_FETCH, 0);
    begin(late, 1, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    g_assert_false(
        ask(late, 2, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7, 8 * RAM_PAGE, 8));
    g_assert_false(ask(late, 3, HCA_V2P_EE, HCA_V2P_FETCH, 7, 8 * RAM_PAGE, 8));
    for (unsigned i = 0; i < 4; i++) {
        run_at(late, i * LATENCY);
    }
    EXPECT(late, 1, 2, 3, 0);
    g_assert_cmpuint(hca_v2p_counters(late->v2p)->pended[HCA_V2P_DB], ==, 2);
    g_assert_cmpuint(hca_v2p_counters(late->v2p)->pended[HCA_V2P_WP_ND], ==, 1);
    left = *hca_v2p_counters(late->v2p);
    take_waits(&left, HCA_V2P_DB, HCA_V2P_QUEUED, 1, LATENCY);
    take_waits(&left, HCA_V2P_DB, HCA_V2P_MPT_MISS, 1, LATENCY);
    take_waits(&left, HCA_V2P_DB, HCA_V2P_MTT_MISS, 1, LATENCY);
    take_waits(&left, HCA_V2P_DB, HCA_V2P_DMA, 1, LATENCY);
    take_waits(&left, HCA_V2P_WP_ND, HCA_V2P_MTT_MISS, 1, LATENCY);
    take_waits(&left, HCA_V2P_WP_ND, HCA_V2P_DMA, 1, LATENCY);
    take_waits(&left, HCA_V2P_EE, HCA_V2P_MTT_QUEUED, 1, LATENCY);
    take_waits(&left, HCA_V2P_EE, HCA_V2P_DMA, 1, LATENCY);
    expect_no_waits(&left);
    late_free(late);
}

/*
 * What is answered in the card's next turn has waited for nobody, however long
 * that turn takes to come. Who is behind a miss has, from the moment when there
 * is one.
 */
static void test_no_waits(void)
{
    Late *late = late_new(0);
    HcaV2pCounters left;

    begin(late, 0, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    begin(late, 1, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    run_at(late, 10);
    EXPECT(late, 0, 1);
    expect_no_waits(hca_v2p_counters(late->v2p));

    begin(late, 2, HCA_V2P_DB, HCA_V2P_CHECK, 0);
    begin(late, 3, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    run_at(late, 20);
    late->ram->now = 50;
    begin(late, 4, HCA_V2P_DB, HCA_V2P_CHECK, 7);
    run_at(late, 60);
    run_at(late, 20 + LATENCY);
    EXPECT(late, 0, 1, 2, 3, 4);
    left = *hca_v2p_counters(late->v2p);
    take_waits(&left, HCA_V2P_DB, HCA_V2P_MPT_MISS, 1, LATENCY);
    take_waits(&left, HCA_V2P_DB, HCA_V2P_QUEUED, 2, LATENCY + LATENCY - 30);
    expect_no_waits(&left);
    late_free(late);
}

/* The most that were in a FIFO, a path, on their way; and lines in use. */
static void test_peaks(void)
{
    Late *late = late_new(0);
    const HcaV2pCounters *c = hca_v2p_counters(late->v2p);

    for (unsigned i = 0; i < 3; i++) {
        begin(late, i, HCA_V2P_DB, HCA_V2P_FETCH, 7);
    }
    begin(late, 3, HCA_V2P_WP_ND, HCA_V2P_FETCH, 7);
    run_at(late, 0);
    begin(late, 4, HCA_V2P_DB, HCA_V2P_FETCH, 7);
    run_at(late, LATENCY);
    run_at(late, 2 * LATENCY);
    EXPECT(late, 0, 1, 2, 3, 4);
    g_assert_cmpuint(c->fifo_peak[HCA_V2P_DB], ==, 3);
    g_assert_cmpuint(c->fifo_peak[HCA_V2P_WP_ND], ==, 1);
    g_assert_cmpuint(c->fifo_peak[HCA_V2P_EE], ==, 0);
    g_assert_cmpuint(c->path_peak[HCA_MTT_READ_WQE], ==, 3);
    g_assert_cmpuint(c->path_peak[HCA_MTT_READ_DATA], ==, 1);
    g_assert_cmpuint(c->away_peak[HCA_MTT_READ_WQE], ==, 4);
    g_assert_cmpuint(c->away_peak[HCA_MTT_READ_DATA], ==, 1);
    g_assert_cmpuint(c->away_peak[HCA_MTT_WRITE], ==, 0);
    late_free(late);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/v2p/5.2/ceu-first", test_ceu_first);
    g_test_add_func("/v2p/5.2/round-robin", test_round_robin);
    g_test_add_func("/v2p/5.2/pending", test_pending);
    g_test_add_func("/v2p/5.2/several-misses", test_several_misses);
    g_test_add_func("/v2p/5.2/shared-line", test_shared_line);
    g_test_add_func("/v2p/5.2/waits", test_waits);
    g_test_add_func("/v2p/5.2/no-waits", test_no_waits);
    g_test_add_func("/v2p/late/peaks", test_peaks);
    g_test_add_func("/v2p/5.5/late/used", test_used);
    g_test_add_func("/v2p/5.5/late/no-room", test_no_room);
    g_test_add_func("/v2p/5.6/late/no-way", test_no_way);
    g_test_add_func("/v2p/5.6/late/gone", test_gone);
    g_test_add_func("/v2p/5.6/late/unmapped", test_unmapped);
    g_test_add_func("/v2p/5.6/late/refused", test_refused);
    g_test_add_func("/v2p/6/paths", test_paths);
    g_test_add_func("/v2p/5.4/late/bandwidth", test_bandwidth);
    g_test_add_func("/v2p/5.4/late/posted", test_posted);
    g_test_add_func("/v2p/5.4/late/own-writes", test_own_writes);
    g_test_add_func("/v2p/5.4/late/many-writes", test_many_writes);
    g_test_add_func("/v2p/5.4/late/delay-of-pieces", test_delay_of_pieces);
    g_test_add_func("/v2p/5.4/late/atomic", test_atomic);
    g_test_add_func("/v2p/late/steps", test_steps);
    g_test_add_func("/v2p/late/other-step", test_other_step);
    g_test_add_func("/v2p/late/other-answer", test_other_answer);
    g_test_add_func("/v2p/late/forget", test_forget);
    g_test_add_func("/v2p/late/reset", test_reset);
    return g_test_run();
}
