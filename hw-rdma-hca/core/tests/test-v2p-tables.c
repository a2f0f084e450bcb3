/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What VirtToPhys has of tables, by itself: 5.3 metadata, 5.5 cache. */
#include <string.h>

#include "../../abi/rdma_hca_cmd.h"
#include "../v2p/tpt_cache.h"
#include "../v2p/v2p.h"
#include "lib-test.h"

/* 5.5: the cache against a model of its sets */

#define TABLE_LINES 256
#define WAYS 4
#define SETS 8

typedef struct Table {
    uint8_t line[TABLE_LINES][HCA_TPT_LINE];
    bool gone[TABLE_LINES], no_write[TABLE_LINES];
    unsigned reads, writes;
} Table;

static bool table_refill(void *opaque, uint64_t line, void *data)
{
    Table *table = opaque;

    if (line >= TABLE_LINES || table->gone[line]) {
        return false;
    }
    memcpy(data, table->line[line], HCA_TPT_LINE);
    table->reads++;
    return true;
}

static bool table_write_back(void *opaque, uint64_t line, const void *data)
{
    Table *table = opaque;

    if (table->gone[line] || table->no_write[line]) {
        return false;
    }
    memcpy(table->line[line], data, HCA_TPT_LINE);
    table->writes++;
    return true;
}

static const HcaTptBackingOps table_ops = {
    .refill = table_refill,
    .write_back = table_write_back,
};

/* What a set holds, the most recently used line first. */
typedef struct ModelSet {
    unsigned used;
    uint64_t line[WAYS];
} ModelSet;

static bool model_touch(ModelSet *set, uint64_t line)
{
    unsigned i;
    bool hit;

    for (i = 0; i < set->used && set->line[i] != line; i++) {
    }
    hit = i < set->used;
    if (!hit) {
        i = set->used < WAYS ? set->used++ : WAYS - 1;
    }
    memmove(&set->line[1], &set->line[0], i * sizeof(set->line[0]));
    set->line[0] = line;
    return hit;
}

static void test_cache_model(void)
{
    static Table table, truth;
    ModelSet sets[SETS] = { 0 };
    HcaTptCacheCounters counters = { 0 };
    HcaTptCache *cache;
    uint64_t hits = 0, misses = 0;

    memset(&table, 0, sizeof(table));
    memset(&truth, 0, sizeof(truth));
    cache = hca_tpt_cache_new(WAYS * SETS * HCA_TPT_LINE, WAYS, &table_ops,
                              &table, &counters);
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t line = g_test_rand_int_range(0, TABLE_LINES);
        bool write = g_test_rand_int_range(0, 3) == 0;
        bool hit = model_touch(&sets[line % SETS], line);
        uint8_t *data = write ? hca_tpt_cache_write(cache, line)
                              : (void *)hca_tpt_cache_read(cache, line);

        hits += hit;
        misses += !hit;
        g_assert_cmpuint(counters.hits, ==, hits);
        g_assert_cmpuint(counters.misses, ==, misses);
        g_assert_cmpmem(data, HCA_TPT_LINE, truth.line[line], HCA_TPT_LINE);
        if (write) {
            unsigned at = g_test_rand_int_range(0, HCA_TPT_LINE);

            data[at] = truth.line[line][at] = g_test_rand_int();
        }
    }
    g_assert_cmpuint(counters.refills, ==, table.reads);
    g_assert_true(hca_tpt_cache_sync(cache));
    g_assert_cmpuint(counters.write_backs, ==, table.writes);
    g_assert_cmpmem(table.line, sizeof(table.line), truth.line,
                    sizeof(truth.line));
    /* Nothing is dirty any more. */
    g_assert_true(hca_tpt_cache_sync(cache));
    g_assert_cmpuint(counters.write_backs, ==, table.writes);
    hca_tpt_cache_free(cache);
}

/* A line that cannot be had replaces nothing; one refused stays dirty. */
static void test_cache_errors(void)
{
    static Table table;
    HcaTptCacheCounters counters = { 0 };
    HcaTptCache *cache;
    uint8_t *data;

    memset(&table, 0, sizeof(table));
    cache = hca_tpt_cache_new(HCA_TPT_LINE, 1, &table_ops, &table, &counters);
    data = hca_tpt_cache_write(cache, 1);
    data[0] = 1;
    table.gone[2] = true;
    g_assert_null(hca_tpt_cache_read(cache, 2));
    g_assert_null(hca_tpt_cache_read(cache, TABLE_LINES));
    g_assert_cmpuint(*(uint8_t *)hca_tpt_cache_read(cache, 1), ==, 1);
    g_assert_cmpuint(counters.hits, ==, 1);
    table.gone[1] = true;
    g_assert_false(hca_tpt_cache_sync(cache));
    g_assert_cmpuint(counters.write_back_errors, ==, 1);
    table.gone[1] = false;
    g_assert_true(hca_tpt_cache_sync(cache));
    g_assert_cmpuint(table.line[1][0], ==, 1);
    hca_tpt_cache_free(cache);
}

/*
 * A line that its table refuses stays, whatever needs its way: another one is
 * taken, or the new line is not had. It is written when the table takes it.
 */
static void test_cache_no_room(void)
{
    static Table table;
    HcaTptCacheCounters counters = { 0 };
    HcaTptCache *cache;

    memset(&table, 0, sizeof(table));
    cache = hca_tpt_cache_new(2 * HCA_TPT_LINE, 2, &table_ops, &table,
                              &counters);
    *(uint8_t *)hca_tpt_cache_write(cache, 1) = 1;
    table.no_write[1] = true;
    for (unsigned line = 2; line < 6; line++) {
        g_assert_nonnull(hca_tpt_cache_read(cache, line));
    }
    g_assert_cmpuint(counters.write_back_errors, >, 0);
    *(uint8_t *)hca_tpt_cache_write(cache, 6) = 6;
    table.no_write[6] = true;
    g_assert_null(hca_tpt_cache_read(cache, 7));
    g_assert_null(hca_tpt_cache_write(cache, 7));
    g_assert_cmpuint(*(uint8_t *)hca_tpt_cache_read(cache, 1), ==, 1);
    g_assert_cmpuint(*(uint8_t *)hca_tpt_cache_read(cache, 6), ==, 6);
    table.no_write[1] = false;
    g_assert_nonnull(hca_tpt_cache_read(cache, 7));
    g_assert_cmpuint(table.line[1][0], ==, 1);
    g_assert_cmpuint(table.line[6][0], ==, 0);
    g_assert_cmpuint(*(uint8_t *)hca_tpt_cache_read(cache, 6), ==, 6);
    hca_tpt_cache_free(cache);
}

/* Of a few lines among many: those, and no other. */
static void test_cache_range(void)
{
    static Table table;
    HcaTptCacheCounters counters = { 0 };
    HcaTptCache *cache;

    memset(&table, 0, sizeof(table));
    cache = hca_tpt_cache_new(WAYS * SETS * HCA_TPT_LINE, WAYS, &table_ops,
                              &table, &counters);
    for (unsigned line = 0; line < SETS; line++) {
        *(uint8_t *)hca_tpt_cache_write(cache, line) = 1;
    }
    g_assert_true(hca_tpt_cache_flush(cache, 1, 3));
    g_assert_cmpuint(table.writes, ==, 2);
    hca_tpt_cache_drop(cache, 4, 6);
    g_assert_true(hca_tpt_cache_sync(cache));
    for (unsigned line = 0; line < SETS; line++) {
        bool dropped = line == 4 || line == 5;

        g_assert_cmpuint(table.line[line][0], ==, !dropped);
        g_assert_cmpuint(*(uint8_t *)hca_tpt_cache_read(cache, line), ==,
                         !dropped);
    }
    g_assert_cmpuint(counters.misses, ==, SETS + 2);
    hca_tpt_cache_free(cache);
}

/* 5.3: mappings against a flat array */

#define MDATA_PAGES 1500

static void test_mdata_model(void)
{
    HcaTptMdata *mdata = hca_mdata_new(MDATA_PAGES);
    static uint64_t model[MDATA_PAGES];
    uint64_t bus;

    memset(model, 0, sizeof(model));
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t first = g_test_rand_int_range(0, MDATA_PAGES + 4);
        uint32_t n = g_test_rand_int_range(0, 8);
        uint64_t page = (uint64_t)g_test_rand_int() << 12;
        bool map = g_test_rand_int() & 1;
        bool ok = n && first + n <= MDATA_PAGES;
        uint8_t status;

        for (uint32_t j = first; ok && j < first + n; j++) {
            ok = !model[j] == map;
        }
        status = map ? hca_mdata_map(mdata, (uint64_t)first << 12, page, n)
                     : hca_mdata_unmap(mdata, (uint64_t)first << 12, n);
        g_assert_cmphex(status, ==,
                        ok ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
        for (uint32_t j = 0; ok && j < n; j++) {
            model[first + j] = map ? (page + ((uint64_t)j << 12)) | 1 : 0;
        }
    }
    for (uint32_t i = 0; i < MDATA_PAGES; i++) {
        uint64_t virt = ((uint64_t)i << 12) + 0x123;
        bool mapped = hca_mdata_lookup(mdata, virt, &bus);

        g_assert_cmpint(mapped, ==, model[i] != 0);
        if (mapped) {
            g_assert_cmphex(bus, ==, model[i] - 1 + 0x123);
        }
    }
    hca_mdata_clear(mdata);
    g_assert_false(hca_mdata_lookup(mdata, 0, &bus));
    hca_mdata_free(mdata);
}

static void test_mdata_bad(void)
{
    HcaTptMdata *mdata = hca_mdata_new(16);
    uint64_t bus;

    g_assert_cmphex(hca_mdata_map(mdata, 1, 0x1000, 1), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, 0, 0x1001, 1), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, 0, 0x1000, 0), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, 0, 0x1000, UINT32_MAX), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, 16 << 12, 0x1000, 1), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, ~UINT64_C(0xfff), 0, 2), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, 0, ~UINT64_C(0xfff), 2), ==, 3);
    g_assert_cmphex(hca_mdata_map(mdata, 0, ~UINT64_C(0xfff), 1), ==, 0);
    g_assert_false(hca_mdata_lookup(mdata, UINT64_MAX, &bus));
    g_assert_false(hca_mdata_lookup(mdata, 16 << 12, &bus));
    g_assert_cmphex(hca_mdata_unmap(mdata, 0, 2), ==, 3);
    g_assert_true(hca_mdata_lookup(mdata, 0, &bus));
    hca_mdata_free(mdata);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/v2p/5.3/model", test_mdata_model);
    test_add("/v2p/5.3/bad", test_mdata_bad);
    test_add("/v2p/5.5/model", test_cache_model);
    test_add("/v2p/5.5/errors", test_cache_errors);
    test_add("/v2p/5.5/no-room", test_cache_no_room);
    test_add("/v2p/5.5/range", test_cache_range);
    return g_test_run();
}
