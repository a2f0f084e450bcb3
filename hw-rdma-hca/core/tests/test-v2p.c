/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VirtToPhys, by the sections of its document: 5.6 checks, 5.7 pages, 5.1
 * commands, 5.4 DMA, and of 5.3 what commands do. Metadata and caches by
 * themselves: test-v2p-tables.c.
 */
#include <string.h>

#include "../../abi/rdma_hca_cmd.h"
#include "../v2p/mpt_check.h"
#include "../v2p/tpt_cache.h"
#include "../v2p/v2p.h"
#include "lib-make.h"
#include "lib-ram.h"
#include "lib-test.h"

#define LOG_MPTS 6
#define LOG_MTTS 12
#define MPT_BASE 0x2000
#define MTT_BASE 0x8000
#define ALL_ACCESS                                                             \
    (RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE |              \
     RDMA_HCA_ACCESS_REMOTE_READ | RDMA_HCA_ACCESS_REMOTE_ATOMIC)
#define LOCAL_MPT (RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO)

/* A unit with its tables mapped, scattered over memory */

typedef struct Fix {
    Ram *ram;
    HcaV2p *v2p;
    uint64_t icm[16]; /* bus pages of card-virtual 0 on */
    uint64_t pool;    /* for the pages of random regions */
} Fix;

#define POOL_PAGES 512

static void fix_init(Fix *fix, uint32_t cache_size)
{
    fix->ram = ram_new();
    fix->v2p = hca_v2p_new(&hca_mpt_format, &HCA_HOST(&fix->ram->ops, fix->ram),
                           LOG_MPTS, LOG_MTTS, cache_size, cache_size, 2);
    for (int i = G_N_ELEMENTS(fix->icm) - 1; i >= 0; i--) {
        fix->icm[i] = ram_alloc(fix->ram, 1);
        g_assert_cmphex(
            hca_v2p_map_icm(fix->v2p, (uint64_t)i << 12, fix->icm[i], 1), ==,
            0);
    }
    g_assert_cmphex(hca_v2p_init(fix->v2p, MPT_BASE, LOG_MPTS, MTT_BASE), ==,
                    0);
}

static void fix_free(Fix *fix)
{
    hca_v2p_free(fix->v2p);
    ram_free(fix->ram);
}

static void *icm_at(Fix *fix, uint64_t virt)
{
    return ram_at(fix->ram, fix->icm[virt >> 12] + (virt & 0xfff));
}

static struct rdma_hca_mpt make_mpt(uint32_t key, uint32_t flags, uint32_t pd,
                                    uint64_t start, uint64_t length,
                                    unsigned page_shift, uint32_t mtt,
                                    uint32_t mtt_sz)
{
    struct rdma_hca_mpt mpt = good_mpt(key, flags, pd, start, length, mtt);

    mpt.page_size = GUINT32_TO_BE(page_shift - 12);
    mpt.mtt_sz = GUINT32_TO_BE(mtt_sz);
    return mpt;
}

static uint8_t write_mpt(Fix *fix, uint32_t key, uint32_t flags, uint32_t pd,
                         uint64_t start, uint64_t length, unsigned page_shift,
                         uint32_t mtt, uint32_t mtt_sz)
{
    struct rdma_hca_mpt mpt = make_mpt(key, flags, pd, start, length,
                                       page_shift, mtt, mtt_sz);

    return ram_write_mpt(fix->v2p, KEY_INDEX(key, LOG_MPTS), &mpt);
}

static HcaMatchInfo match(uint32_t flags, uint32_t pd, uint32_t key,
                          uint64_t va, uint32_t len)
{
    return (HcaMatchInfo) { flags, pd, key, len, va, 0 };
}

static HcaV2pState check(Fix *fix, uint32_t flags, uint32_t pd, uint32_t key,
                         uint64_t va, uint32_t len)
{
    HcaMatchInfo info = match(flags, pd, key, va, len);

    return hca_v2p_check(fix->v2p, HCA_V2P_EE, &info);
}

/* 5.6: the checks, each alone and in their order */

#define VA HCA_V2P_ABSOLUTE_ADDR
#define OFF HCA_V2P_RELATIVE_ADDR

static void test_check_order(void)
{
    Fix fix;
    uint32_t key = 0xabc05 << 8 | 0x3c;

    fix_init(&fix, 4096);
    g_assert_cmphex(
        write_mpt(&fix, key, LOCAL_MPT, 7, 0x10000, 0x2000, 12, 8, 2), ==, 0);
    g_assert_cmpint(check(&fix, VA, 7, key, 0x10000, 1), ==, 0);
    /* All bits of the key count; so do entries that nobody wrote. */
    g_assert_cmpint(check(&fix, VA, 7, key ^ 1u << 31, 0x10000, 1), ==,
                    HCA_V2P_KEY_ERR);
    g_assert_cmpint(check(&fix, VA, 7, key + 1, 0x10000, 1), ==,
                    HCA_V2P_KEY_ERR);
    g_assert_cmpint(check(&fix, VA, 7, key + 0x100, 0x10000, 1), ==,
                    HCA_V2P_KEY_ERR);
    /* Wrong in every way but one after the other: KEY, PD, FLAGS, LENGTH. */
    g_assert_cmpint(
        check(&fix, VA | RDMA_HCA_ACCESS_REMOTE_READ, 6, key ^ 1u << 31, 0, 1),
        ==, HCA_V2P_KEY_ERR);
    g_assert_cmpint(check(&fix, VA | RDMA_HCA_ACCESS_REMOTE_READ, 6, key, 0, 1),
                    ==, HCA_V2P_PD_ERR);
    g_assert_cmpint(check(&fix, VA | RDMA_HCA_ACCESS_REMOTE_READ, 7, key, 0, 1),
                    ==, HCA_V2P_FLAGS_ERR);
    g_assert_cmpint(check(&fix, VA, 7, key, 0, 1), ==, HCA_V2P_LENGTH_ERR);
    /* A request of no bytes succeeds, whatever its key. */
    g_assert_cmpint(check(&fix, VA, 1, 0xffffffff, 0, 0), ==, 0);
    g_assert_cmphex(hca_v2p_invalidate_mpt(fix.v2p, 5), ==, 0);
    g_assert_cmpint(check(&fix, VA, 7, key, 0x10000, 1), ==, HCA_V2P_KEY_ERR);
    fix_free(&fix);
}

static void test_check_flags(void)
{
    static const uint32_t bits[] = {
        RDMA_HCA_ACCESS_LOCAL_WRITE,
        RDMA_HCA_ACCESS_REMOTE_WRITE,
        RDMA_HCA_ACCESS_REMOTE_READ,
        RDMA_HCA_ACCESS_REMOTE_ATOMIC,
    };
    Fix fix;

    fix_init(&fix, 4096);
    for (uint32_t have = 0; have < 16; have++) {
        uint32_t key = GOOD_KEY(0x100 | have);
        bool alone = !(have & RDMA_HCA_ACCESS_LOCAL_WRITE) &&
                     (have & (RDMA_HCA_ACCESS_REMOTE_WRITE |
                              RDMA_HCA_ACCESS_REMOTE_ATOMIC));

        /* A peer may not write to what its owner may not (IBA 10.6.3.1). */
        g_assert_cmphex(
            write_mpt(&fix, key, LOCAL_MPT | have, 1, 0, 0x1000, 12, 0, 1), ==,
            alone ? RDMA_HCA_STAT_BAD_PARAM : 0);
        if (alone) {
            continue;
        }
        g_assert_cmpint(check(&fix, VA, 1, key, 0, 1), ==, 0);
        for (unsigned i = 0; i < 4; i++) {
            g_assert_cmpint(check(&fix, VA | bits[i], 1, key, 0, 1), ==,
                            have & bits[i] ? HCA_V2P_SUCCESS
                                           : HCA_V2P_FLAGS_ERR);
        }
    }
    /* Without MIO only the peer gets in. */
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(0x120),
                              RDMA_HCA_MPT_REGION | ALL_ACCESS, 1, 0, 0x1000,
                              12, 0, 1),
                    ==, 0);
    g_assert_cmpint(check(&fix, VA, 1, GOOD_KEY(0x120), 0, 1), ==,
                    HCA_V2P_FLAGS_ERR);
    g_assert_cmpint(
        check(&fix, VA | RDMA_HCA_ACCESS_LOCAL_WRITE, 1, GOOD_KEY(0x120), 0, 1),
        ==, HCA_V2P_FLAGS_ERR);
    g_assert_cmpint(
        check(&fix, VA | RDMA_HCA_ACCESS_REMOTE_READ, 1, GOOD_KEY(0x120), 0, 1),
        ==, 0);
    fix_free(&fix);
}

typedef struct BoundsRow {
    uint32_t flags;
    uint64_t start, length, va;
    uint32_t len;
    bool ok;
} BoundsRow;

static void test_check_bounds(void)
{
    static const BoundsRow rows[] = {
        { VA, 0x1234, 0x100, 0x1234, 0x100, true },
        { VA, 0x1234, 0x100, 0x1233, 1, false },
        { VA, 0x1234, 0x100, 0x1235, 0x100, false },
        { VA, 0x1234, 0x100, 0x1333, 1, true },
        { VA, 0x1234, 0x100, 0x1334, 1, false },
        { VA, 0x1234, 0x100, UINT64_MAX, 1, false },
        { VA, 0x1234, 0x100, UINT64_MAX, UINT32_MAX, false },
        { OFF, 0x1234, 0x100, 0, 0x100, true },
        { OFF, 0x1234, 0x100, 1, 0x100, false },
        { OFF, 0x1234, 0x100, 0x1234, 1, false },
        { OFF, 0x1234, 0x100, UINT64_MAX, 2, false },
        { VA, 0xfffffffffffff000, 0x1000, UINT64_MAX, 1, true },
        { VA, 0xfffffffffffff000, 0x1000, UINT64_MAX, 2, false },
        { VA, 0xfffffffffffff000, 0x1000, 0, 1, false },
        { VA, 0, 0, 0, 1, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const BoundsRow *row = &rows[i];
        Fix fix;

        fix_init(&fix, 4096);
        g_assert_cmphex(write_mpt(&fix, GOOD_KEY(1), LOCAL_MPT, 1, row->start,
                                  row->length, 12, 0, 0),
                        ==, 0);
        g_assert_cmpint(
            check(&fix, row->flags, 1, GOOD_KEY(1), row->va, row->len), ==,
            row->ok ? HCA_V2P_SUCCESS : HCA_V2P_LENGTH_ERR);
        fix_free(&fix);
    }
}

static HcaV2pState check_mpt(const HcaMpt *mpt, const HcaMatchInfo *info,
                             uint64_t *offset)
{
    HcaRegion region = { .mpt = *mpt };

    hca_region_init(&region);
    return hca_mpt_check(&region, info, offset);
}

/* Physical regions and lengths up to 2^63 */
static void test_check_huge(void)
{
    HcaMatchInfo info = match(VA, 1, GOOD_KEY(1), 0, 1);
    struct rdma_hca_mpt entry;
    uint64_t offset;
    HcaMpt mpt;

    entry = make_mpt(GOOD_KEY(1), LOCAL_MPT, 1, 0xfff, UINT64_C(1) << 63, 31, 0,
                     0);
    hca_mpt_format.decode(&mpt, &entry);
    g_assert_true(hca_mpt_shape_ok(&mpt));
    g_assert_cmpuint(hca_mpt_pages(&mpt), ==, (UINT64_C(1) << 32) + 1);
    info.va = 0xfff + (UINT64_C(1) << 63) - 1;
    g_assert_cmpint(check_mpt(&mpt, &info, &offset), ==, 0);
    g_assert_cmphex(offset, ==, (UINT64_C(1) << 63) - 1);
    info.len = 2;
    g_assert_cmpint(check_mpt(&mpt, &info, &offset), ==, HCA_V2P_LENGTH_ERR);
    mpt.length++;
    info.len = 1;
    g_assert_cmpint(check_mpt(&mpt, &info, &offset), ==, HCA_V2P_LENGTH_ERR);
    mpt.physical = true;
    mpt.page_shift = 12;
    g_assert_cmpint(check_mpt(&mpt, &info, &offset), ==, 0);
    mpt.physical = false;
    mpt.length = 0x1000;
    mpt.page_shift = 32;
    info.va = mpt.start;
    g_assert_cmpint(check_mpt(&mpt, &info, &offset), ==, HCA_V2P_LENGTH_ERR);
}

/* 5.7: pages of every size, regions that begin and end anywhere */

typedef struct Region {
    uint32_t key;
    uint32_t flags;
    uint64_t start, length;
    unsigned page_shift;
    unsigned npages;
    uint64_t page[16]; /* bus */
} Region;

/* Bus address of byte @offset of a region, the slow way. */
static uint64_t region_bus(const Region *region, uint64_t offset)
{
    uint64_t size = UINT64_C(1) << region->page_shift;
    uint64_t at = (region->start & (size - 1)) + offset;

    return region->page[at / size] + at % size;
}

static void region_write_tables(Fix *fix, Region *region, uint32_t mtt)
{
    g_assert_cmphex(
        hca_v2p_write_mtt(fix->v2p, mtt, region->page, region->npages), ==, 0);
    g_assert_cmphex(write_mpt(fix, region->key,
                              LOCAL_MPT | ALL_ACCESS | region->flags, 5,
                              region->start, region->length, region->page_shift,
                              mtt, region->npages),
                    ==, 0);
}

/* A region of small pages, somewhere in memory, in no order. */
static void region_random(Fix *fix, Region *region, uint32_t index)
{
    uint64_t size;

    region->key = ((uint32_t)g_test_rand_int() << LOG_MPTS | index) << 8 |
                  (g_test_rand_int() & 0xff);
    region->flags = g_test_rand_int() & 1 ? RDMA_HCA_ACCESS_ZERO_BASED : 0;
    region->page_shift = g_test_rand_int_range(12, 15);
    size = UINT64_C(1) << region->page_shift;
    region->npages = g_test_rand_int_range(1, 16);
    region->start = ((uint64_t)g_test_rand_int() << 32 | g_test_rand_int()) >>
                    g_test_rand_int_range(2, 40);
    region->length = region->npages * size - (region->start & (size - 1));
    region->length -= g_test_rand_int_range(0, MIN(region->length, size));
    for (unsigned i = 0; i < region->npages; i++) {
        /* Multiples of 4 KiB, even of larger pages. */
        region->page[i] = fix->pool +
                          (uint64_t)RAM_PAGE *
                              g_test_rand_int_range(0, POOL_PAGES -
                                                           size / RAM_PAGE + 1);
    }
    region_write_tables(fix, region, index * 16);
}

static HcaMatchInfo region_part(const Region *region, uint64_t offset,
                                uint32_t len, bool relative)
{
    uint64_t base = relative || (region->flags & RDMA_HCA_ACCESS_ZERO_BASED)
                        ? 0
                        : region->start;

    return match((relative ? OFF : VA) | RDMA_HCA_ACCESS_LOCAL_WRITE, 5,
                 region->key, base + offset, len);
}

static void try_read(Fix *fix, const Region *region, uint64_t offset,
                     uint32_t len, bool relative)
{
    HcaMatchInfo info = region_part(region, offset, len, relative);
    g_autofree uint8_t *got = g_malloc(len);
    struct iovec iov[64];
    unsigned iovcnt = G_N_ELEMENTS(iov);
    uint32_t at = 0;

    g_assert_cmpint(hca_v2p_read(fix->v2p, HCA_V2P_WP_ND, &info, got), ==, 0);
    g_assert_cmpint(hca_v2p_map(fix->v2p, HCA_V2P_WP_ND, &info, iov, &iovcnt),
                    ==, 0);
    for (unsigned i = 0; i < iovcnt; i++) {
        g_assert_cmpmem(got + at, iov[i].iov_len, iov[i].iov_base,
                        iov[i].iov_len);
        at += iov[i].iov_len;
    }
    g_assert_cmpuint(at, ==, len);
    for (uint32_t i = 0; i < len; i++) {
        uint64_t bus = region_bus(region, offset + i);

        g_assert_cmphex(got[i], ==, *(uint8_t *)ram_at(fix->ram, bus));
    }
}

static void try_write(Fix *fix, const Region *region, uint64_t offset,
                      uint32_t len, bool relative)
{
    HcaMatchInfo info = region_part(region, offset, len, relative);
    g_autofree uint8_t *put = g_malloc(len);
    g_autofree uint8_t *want = g_memdup2(ram_at(fix->ram, fix->pool),
                                         POOL_PAGES * RAM_PAGE);

    for (uint32_t i = 0; i < len; i++) {
        put[i] = g_test_rand_int();
        want[region_bus(region, offset + i) - fix->pool] = put[i];
    }
    memset(fix->ram->dirty, 0, RAM_SIZE / RAM_PAGE);
    g_assert_cmpint(hca_v2p_write(fix->v2p, HCA_V2P_EE, &info, put), ==, 0);
    for (uint32_t i = 0; i < len; i++) {
        uint64_t at = region_bus(region, offset + i) - RAM_BASE;

        g_assert_cmpint(fix->ram->dirty[at / RAM_PAGE], ==, 1);
    }
    g_assert_cmpmem(ram_at(fix->ram, fix->pool), POOL_PAGES * RAM_PAGE, want,
                    POOL_PAGES * RAM_PAGE);
}

static void fill_pool(Fix *fix)
{
    fix->pool = ram_alloc(fix->ram, POOL_PAGES);
    for (unsigned i = 0; i < POOL_PAGES * RAM_PAGE; i++) {
        *(uint8_t *)ram_at(fix->ram, fix->pool + i) = g_test_rand_int();
    }
}

/*
 * What follows from an entry is kept beside its line, and no longer than that:
 * written anew in the cache, or another's by then, it is computed anew.
 */
static void test_pages_again(gconstpointer cache_size)
{
    Region region;
    Fix fix;

    fix_init(&fix, GPOINTER_TO_UINT(cache_size));
    fill_pool(&fix);
    for (unsigned i = 0; i < 200; i++) {
        uint32_t index = 1 + i % 3;

        region_random(&fix, &region, index);
        try_read(&fix, &region, 0, region.length, false);
        try_read(&fix, &region, region.length - 1, 1, true);
        g_assert_cmphex(hca_v2p_invalidate_mpt(fix.v2p, index), ==, 0);
        g_assert_cmpint(
            check(&fix, VA, 5, region.key, region.start, region.length), ==,
            HCA_V2P_KEY_ERR);
    }
    fix_free(&fix);
}

/* The same data through caches of one set and of many. */
static void test_pages_random(gconstpointer cache_size)
{
    Region regions[1u << LOG_MPTS];
    Fix fix;

    fix_init(&fix, GPOINTER_TO_UINT(cache_size));
    fill_pool(&fix);
    for (unsigned i = 0; i < G_N_ELEMENTS(regions); i++) {
        region_random(&fix, &regions[i], i);
    }
    for (unsigned i = 0; i < 2000; i++) {
        const Region *r = &regions[g_test_rand_int() % G_N_ELEMENTS(regions)];
        uint64_t offset = g_test_rand_int_range(0, r->length);
        uint32_t len = g_test_rand_int_range(1, r->length - offset + 1);

        try_read(&fix, r, offset, len, g_test_rand_int() & 1);
        if (i % 20 == 0) {
            try_write(&fix, r, offset, len, g_test_rand_int() & 1);
        }
    }
    fix_free(&fix);
}

/* Each page size there is, one page whose base is aligned to its size. */
static void test_pages_sizes(void)
{
    for (unsigned shift = 12; shift <= 31; shift++) {
        uint64_t size = UINT64_C(1) << shift;
        Region region = {
            .key = GOOD_KEY(shift),
            .page_shift = shift,
            .npages = 2,
            .start = (UINT64_C(5) << 40) + 0x10800,
            .length = size,
        };
        uint64_t bus, offset;
        uint32_t word = 0x12345678, got = 0;
        HcaMatchInfo info;
        Fix fix;

        fix_init(&fix, 4096);
        bus = ram_alloc(fix.ram, 64) + 123;
        /* The second page has the word, the first lies in a hole. */
        region.page[0] = RAM_HOLE & ~(size - 1);
        region.page[1] = bus & ~(size - 1);
        offset = size + (bus & (size - 1)) - (region.start & (size - 1));
        if (offset >= region.length - 4) {
            offset -= size;
            region.page[0] = region.page[1];
        }
        region_write_tables(&fix, &region, 0);
        info = region_part(&region, offset, 4, false);
        g_assert_cmpint(hca_v2p_write(fix.v2p, HCA_V2P_EE, &info, &word), ==,
                        0);
        g_assert_cmpmem(ram_at(fix.ram, bus), 4, &word, 4);
        g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==, 0);
        g_assert_cmphex(got, ==, word);
        fix_free(&fix);
    }
}

static void test_pages_physical(void)
{
    HcaMatchInfo info;
    uint64_t bus, got;
    Fix fix;

    fix_init(&fix, 4096);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(3),
                              LOCAL_MPT | RDMA_HCA_MPT_PHYSICAL, 5, 0,
                              UINT64_MAX, 12, 0, 0),
                    ==, 0);
    bus = ram_alloc(fix.ram, 40) + 0x8001;
    memset(ram_at(fix.ram, bus), 0x77, 8);
    info = match(VA, 5, GOOD_KEY(3), bus, 8);
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==, 0);
    g_assert_cmphex(got, ==, UINT64_C(0x7777777777777777));
    /* Across pieces of the machine's memory. */
    fix.ram->piece = 4;
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==, 0);
    g_assert_cmphex(got, ==, UINT64_C(0x7777777777777777));
    info.va = UINT64_MAX - 3;
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==,
                    HCA_V2P_LENGTH_ERR);
    info.len = 3;
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==,
                    HCA_V2P_DMA_ERR);
    /* Relative to its start. */
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(4),
                              LOCAL_MPT | RDMA_HCA_MPT_PHYSICAL, 5, bus, 8, 12,
                              0, 0),
                    ==, 0);
    info = match(OFF, 5, GOOD_KEY(4), 0, 8);
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==, 0);
    info.va = 1;
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, &got), ==,
                    HCA_V2P_LENGTH_ERR);
    fix_free(&fix);
}

/* A page size that cannot be, of an entry with pages and of one without. */
static void test_pages_size(void)
{
    static const uint32_t shift[] = { 13, 31, 32, 63, 64, 76, 12 + 0x7fff0000 };
    Fix fix;

    fix_init(&fix, 4096);
    for (unsigned i = 0; i < G_N_ELEMENTS(shift); i++) {
        uint32_t physical = LOCAL_MPT | RDMA_HCA_MPT_PHYSICAL;
        bool paged = shift[i] <= HCA_MPT_PAGE_SHIFT_MAX;

        g_assert_cmphex(write_mpt(&fix, GOOD_KEY(3), physical, 5, 0x1000,
                                  0x1000, shift[i], 0, 0),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmphex(write_mpt(&fix, GOOD_KEY(4 + i), LOCAL_MPT, 5, 0x1000,
                                  0x1000, shift[i], 0, 0),
                        ==, paged ? 0 : RDMA_HCA_STAT_BAD_PARAM);
    }
    fix_free(&fix);
}

/* Pages together in memory are one piece; too many pieces do not fit. */
static void test_pages_joined(void)
{
    Region region = {
        .key = GOOD_KEY(9),
        .page_shift = 12,
        .npages = 4,
        .start = 0x7800,
        .length = 0x3000,
    };
    struct iovec iov[2];
    unsigned n = 2;
    HcaMatchInfo info;
    uint64_t bus;
    Fix fix;

    fix_init(&fix, 4096);
    fix.ram->piece = RAM_SIZE;
    bus = ram_alloc(fix.ram, 6);
    for (unsigned i = 0; i < 4; i++) {
        region.page[i] = bus + i * RAM_PAGE;
    }
    region_write_tables(&fix, &region, 100);
    info = region_part(&region, 0, 0x3000, false);
    g_assert_cmpint(hca_v2p_map(fix.v2p, HCA_V2P_WP_ND, &info, iov, &n), ==, 0);
    g_assert_cmpuint(n, ==, 1);
    g_assert_true(iov[0].iov_base == ram_at(fix.ram, bus + 0x800));
    g_assert_cmpuint(iov[0].iov_len, ==, 0x3000);

    region.page[1] = bus + 5 * RAM_PAGE;
    region.page[3] = bus;
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, 100, region.page, 4), ==, 0);
    n = 2;
    g_assert_cmpint(hca_v2p_map(fix.v2p, HCA_V2P_WP_ND, &info, iov, &n), ==,
                    HCA_V2P_LENGTH_ERR);
    g_assert_cmpuint(n, ==, 2);
    fix_free(&fix);
}

/* 5.4: what is not RAM is never touched */
static void test_dma_refused(void)
{
    static const uint64_t bad[] = { RAM_HOLE, RAM_BASE + RAM_SIZE, 0,
                                    ~UINT64_C(0xfff), RAM_BASE - RAM_PAGE };
    uint8_t buf[64] = { 0 };
    struct iovec iov[4];
    Fix fix;

    fix_init(&fix, 4096);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Region region = { .key = GOOD_KEY(i),
                          .page_shift = 12,
                          .npages = 1,
                          .length = 0x1000,
                          .page = { bad[i] } };
        HcaMatchInfo info = region_part(&region, 0, 64, false);
        unsigned n = 4;
        uint64_t old;

        region_write_tables(&fix, &region, i);
        g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_RRC, &info, buf), ==,
                        HCA_V2P_DMA_ERR);
        g_assert_cmpint(hca_v2p_write(fix.v2p, HCA_V2P_RRC, &info, buf), ==,
                        HCA_V2P_DMA_ERR);
        g_assert_cmpint(hca_v2p_write_entry(fix.v2p, HCA_V2P_RRC, &info, buf),
                        ==, HCA_V2P_DMA_ERR);
        g_assert_cmpint(hca_v2p_map(fix.v2p, HCA_V2P_RRC, &info, iov, &n), ==,
                        HCA_V2P_DMA_ERR);
        info.len = 8;
        g_assert_cmpint(hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 1, &old),
                        ==, HCA_V2P_DMA_ERR);
        g_assert_false(hca_dma_read(fix.v2p, HCA_V2P_CEU, bad[i], buf, 64));
        g_assert_false(hca_dma_write(fix.v2p, HCA_V2P_CEU, bad[i], buf, 64));
    }
    g_assert_true(hca_dma_read(fix.v2p, HCA_V2P_CEU, RAM_ROM, buf, 64));
    g_assert_false(hca_dma_write(fix.v2p, HCA_V2P_CEU, RAM_ROM, buf, 64));
    g_assert_false(
        hca_dma_read(fix.v2p, HCA_V2P_CEU, RAM_BASE + RAM_SIZE - 32, buf, 64));
    fix_free(&fix);
}

static void test_dma_atomic(void)
{
    Region region = { .key = GOOD_KEY(2),
                      .page_shift = 12,
                      .npages = 2,
                      .start = 0x1004,
                      .length = 0x1800 };
    HcaMatchInfo info;
    uint64_t old, *word;
    Fix fix;

    fix_init(&fix, 4096);
    region.page[0] = ram_alloc(fix.ram, 1);
    region.page[1] = ram_alloc(fix.ram, 1);
    region_write_tables(&fix, &region, 3);
    word = ram_at(fix.ram, region.page[0] + 0x10);
    *word = GUINT64_TO_LE(UINT64_MAX);
    info = region_part(&region, 0xc, 8, false);
    g_assert_cmpint(hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 5, &old), ==,
                    0);
    g_assert_cmphex(old, ==, UINT64_MAX);
    g_assert_cmphex(GUINT64_FROM_LE(*word), ==, 4);
    g_assert_cmpint(hca_v2p_cmp_swap(fix.v2p, HCA_V2P_EE, &info, 5, 9, &old),
                    ==, 0);
    g_assert_cmphex(old, ==, 4);
    g_assert_cmphex(GUINT64_FROM_LE(*word), ==, 4);
    g_assert_cmpint(hca_v2p_cmp_swap(fix.v2p, HCA_V2P_EE, &info, 4, 9, &old),
                    ==, 0);
    g_assert_cmphex(GUINT64_FROM_LE(*word), ==, 9);
    /* Not aligned; not 8 bytes; across pages. */
    info.va++;
    g_assert_cmpint(hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 5, &old), ==,
                    HCA_V2P_LENGTH_ERR);
    info.va--;
    info.len = 4;
    g_assert_cmpint(hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 5, &old), ==,
                    HCA_V2P_LENGTH_ERR);
    info = region_part(&region, 0xff8, 8, false);
    g_assert_cmpint(hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 5, &old), ==,
                    HCA_V2P_LENGTH_ERR);
    fix_free(&fix);
}

static void test_dma_entry(void)
{
    Region region = { .key = GOOD_KEY(2),
                      .page_shift = 12,
                      .npages = 2,
                      .start = 0x1ff0,
                      .length = 0x1000 };
    uint8_t entry[32], got[32];
    Fix fix;

    fix_init(&fix, 4096);
    region.page[0] = ram_alloc(fix.ram, 1);
    ram_alloc(fix.ram, 1);
    region.page[1] = ram_alloc(fix.ram, 1);
    region_write_tables(&fix, &region, 3);
    for (unsigned i = 0; i < 16; i++) {
        HcaMatchInfo info = region_part(&region, i, 32, true);

        memset(entry, 0x80 + i, sizeof(entry));
        g_assert_cmpint(hca_v2p_write_entry(fix.v2p, HCA_V2P_EE, &info, entry),
                        ==, 0);
        g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, got), ==, 0);
        g_assert_cmpmem(got, 32, entry, 32);
        fix.ram->piece = i & 1 ? 65536 : 16;
    }
    fix_free(&fix);
}

/* 5.1: the commands */

static void test_command_init(void)
{
    Ram *ram = ram_new();
    HcaV2p *v2p = hca_v2p_new(&hca_mpt_format, &HCA_HOST(&ram->ops, ram),
                              LOG_MPTS, LOG_MTTS, 1024, 1024, 2);
    struct rdma_hca_mpt mpt = { 0 };
    HcaMatchInfo info = match(VA, 0, 0, 0, 1);
    uint64_t addr = 0;
    uint64_t space = (uint64_t)HCA_ICM_MAX_PAGES << 12;

    /* Nothing before INIT_HCA. */
    g_assert_cmphex(ram_write_mpt(v2p, 0, &mpt), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_v2p_write_mtt(v2p, 0, &addr, 1), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmpint(hca_v2p_check(v2p, HCA_V2P_EE, &info), ==, HCA_V2P_KEY_ERR);
    g_assert_cmphex(hca_v2p_init(v2p, 0, LOG_MPTS + 1, 0), ==,
                    RDMA_HCA_STAT_EXCEED_LIM);
    g_assert_cmphex(hca_v2p_init(v2p, space, 0, 0), ==, 3);
    g_assert_cmphex(hca_v2p_init(v2p, space - 64, 1, 0), ==, 3);
    g_assert_cmphex(hca_v2p_init(v2p, 0, 0, space), ==, 3);
    g_assert_cmphex(hca_v2p_init(v2p, 0, 0, 32), ==, 3);
    g_assert_cmphex(hca_v2p_init(v2p, UINT64_MAX - 63, 0, 0), ==, 3);
    g_assert_cmphex(hca_v2p_init(v2p, 0, LOG_MPTS, space - 64), ==, 0);
    /* ICM that is not mapped, or that is not memory. */
    mpt = make_mpt(GOOD_KEY(0), LOCAL_MPT, 0, 0, 0, 12, 0, 0);
    g_assert_cmphex(ram_write_mpt(v2p, 0, &mpt), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_v2p_map_icm(v2p, 0, RAM_HOLE, 1), ==, 0);
    g_assert_cmphex(ram_write_mpt(v2p, 0, &mpt), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(ram_query_mpt(v2p, 0, &mpt), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_v2p_write_mtt(v2p, 0, &addr, 1), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(hca_v2p_unmap_icm(v2p, 0, 1), ==, 0);
    g_assert_cmphex(hca_v2p_unmap_icm(v2p, 0, 1), ==, 3);
    hca_v2p_free(v2p);
    ram_free(ram);
}

/* Of a window without a region no pages count, whatever is said of them. */
static void test_command_window(void)
{
    const uint32_t flags = LOCAL_MPT & ~RDMA_HCA_MPT_REGION;
    struct rdma_hca_mpt mpt;
    Fix fix;

    fix_init(&fix, 4096);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(5), flags, 1, UINT64_MAX,
                              UINT64_MAX, 12 + 64, UINT32_MAX, UINT32_MAX),
                    ==, 0);
    g_assert_cmphex(ram_query_mpt(fix.v2p, 5, &mpt), ==, 0);
    g_assert_cmphex(mpt.start_h | mpt.start_l, ==, 0);
    g_assert_cmphex(mpt.length_h | mpt.length_l, ==, 0);
    g_assert_cmphex(mpt.page_size, ==, 0);
    fix_free(&fix);
}

static void test_command_mpt(void)
{
    const uint32_t last_mtt = (1u << LOG_MTTS) - 1;
    struct rdma_hca_mpt mpt;
    Fix fix;

    fix_init(&fix, 4096);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(5),
                              LOCAL_MPT | RDMA_HCA_MPT_SW_OWNS, 1, 0, 0x3000,
                              12, last_mtt - 2, 3),
                    ==, 0);
    g_assert_cmpuint(hca_v2p_live_mpts(fix.v2p), ==, 1);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(5), LOCAL_MPT, 1, 0, 0, 12, 0, 0),
                    ==, RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(ram_query_mpt(fix.v2p, 5, &mpt), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(mpt.flags), ==, LOCAL_MPT);
    /* Key against index, pages against length, table, size; never valid. */
    mpt = make_mpt(GOOD_KEY(7), LOCAL_MPT, 1, 0, 0, 12, 0, 0);
    g_assert_cmphex(ram_write_mpt(fix.v2p, 6, &mpt), ==, 3);
    g_assert_cmphex(
        write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT, 1, 0, 0x3001, 12, 0, 3), ==, 3);
    g_assert_cmphex(
        write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT, 1, 0xfff, 0x2002, 12, 0, 3), ==,
        3);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT, 1, 0, 0x3000, 12,
                              last_mtt - 1, 0),
                    ==, 3);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT, 1, 0, 0x1000, 12,
                              last_mtt + 1, 0),
                    ==, 3);
    g_assert_cmphex(
        write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT, 1, 0, 0x1000, 32, 0, 0), ==, 3);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT, 1, 0,
                              (UINT64_C(1) << 63) + 1, 31, 0, 0),
                    ==, 3);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(6), LOCAL_MPT | RDMA_HCA_MPT_FREE,
                              1, 0, 0, 12, 0, 0),
                    ==, 3);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(6),
                              LOCAL_MPT | RDMA_HCA_ACCESS_ON_DEMAND, 1, 0,
                              0x1000, 12, 0, 0),
                    ==, 3);
    mpt = make_mpt(GOOD_KEY(64), LOCAL_MPT, 1, 0, 0, 12, 0, 0);
    g_assert_cmphex(ram_write_mpt(fix.v2p, 64, &mpt), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(ram_query_mpt(fix.v2p, UINT32_MAX, &mpt), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    /* Back to software; twice is an error. */
    g_assert_cmphex(hca_v2p_invalidate_mpt(fix.v2p, 5), ==, 0);
    g_assert_cmphex(hca_v2p_invalidate_mpt(fix.v2p, 5), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(hca_v2p_invalidate_mpt(fix.v2p, 64), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmpuint(hca_v2p_live_mpts(fix.v2p), ==, 0);
    g_assert_cmphex(ram_query_mpt(fix.v2p, 5, &mpt), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(mpt.flags) & RDMA_HCA_MPT_SW_OWNS, ==,
                    RDMA_HCA_MPT_SW_OWNS);
    fix_free(&fix);
}

static void test_command_mtt(void)
{
    const uint64_t table = 1u << LOG_MTTS;
    uint64_t addr[512], got[512];
    Fix fix;

    fix_init(&fix, 1024);
    for (unsigned i = 0; i < 512; i++) {
        addr[i] = (uint64_t)(i + 1) << 12;
    }
    for (uint64_t at = 3; at + 508 <= table; at += 501) {
        g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, at, addr, 508), ==, 0);
        g_assert_cmphex(hca_v2p_read_mtt(fix.v2p, at, got, 508), ==, 0);
        g_assert_cmpmem(got, 508 * 8, addr, 508 * 8);
    }
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, table - 1, addr, 1), ==, 0);
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, table - 1, addr, 2), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, table, addr, 1), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, UINT64_MAX, addr, 2), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(hca_v2p_read_mtt(fix.v2p, UINT64_MAX, got, 2), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    fix_free(&fix);
}

/* SYNC_TPT and UNMAP_ICM: tables in memory are whole; big-endian. */
static void test_command_sync(void)
{
    uint64_t addr[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 0x123456789000 };
    struct rdma_hca_mpt *entry;
    uint64_t *mtt;
    Fix fix;

    fix_init(&fix, 65536);
    entry = icm_at(&fix, MPT_BASE + 33 * 64);
    mtt = icm_at(&fix, MTT_BASE + 7 * 8);
    g_assert_cmphex(
        write_mpt(&fix, GOOD_KEY(33), LOCAL_MPT, 1, 0, 0x1000, 12, 7, 1), ==,
        0);
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, 7, addr, 9), ==, 0);
    g_assert_cmphex(entry->key, ==, 0);
    g_assert_cmphex(hca_v2p_sync(fix.v2p), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(entry->key), ==, GOOD_KEY(33));
    g_assert_cmphex(GUINT64_FROM_BE(mtt[8]), ==, 0x123456789000);
    /* Gone from under the region: it has no memory, and is still given back. */
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MPT_BASE, 2), ==, 0);
    g_assert_cmpint(check(&fix, VA, 1, GOOD_KEY(33), 0, 1), ==,
                    HCA_V2P_KEY_ERR);
    g_assert_cmphex(hca_v2p_invalidate_mpt(fix.v2p, 33), ==, 0);
    fix_free(&fix);
}

/*
 * UNMAP_ICM that is refused leaves the caches as they are, and one of another
 * page does not lose what could not be written back.
 */
static void test_command_unmap(void)
{
    const HcaTptCacheCounters *counters;
    HcaTptCacheCounters before;
    Fix fix;

    fix_init(&fix, 65536);
    counters = &hca_v2p_counters(fix.v2p)->mpt;
    /* The table's first page can be read and not written. */
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MPT_BASE, 1), ==, 0);
    g_assert_cmphex(hca_v2p_map_icm(fix.v2p, MPT_BASE, RAM_ROM, 1), ==, 0);
    g_assert_cmphex(
        write_mpt(&fix, GOOD_KEY(3), LOCAL_MPT, 1, 0, 0x1000, 12, 7, 1), ==, 0);
    before = *counters;
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MPT_BASE + 1, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MPT_BASE, UINT32_MAX), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpmem(counters, sizeof(*counters), &before, sizeof(before));
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MTT_BASE, 1), ==, 0);
    g_assert_cmpmem(counters, sizeof(*counters), &before, sizeof(before));
    g_assert_cmpint(check(&fix, VA, 1, GOOD_KEY(3), 0, 1), ==, 0);
    g_assert_cmpuint(counters->hits, ==, before.hits + 1);
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MPT_BASE, 1), ==,
                    RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmpuint(counters->write_back_errors, ==, 1);
    g_assert_cmpint(check(&fix, VA, 1, GOOD_KEY(3), 0, 1), ==, 0);
    fix_free(&fix);
}

/* What was left in memory by the system before is no region. */
static void test_command_leftovers(void)
{
    struct rdma_hca_mpt mpt = make_mpt(GOOD_KEY(4), LOCAL_MPT | ALL_ACCESS, 0,
                                       0, 0x1000, 12, 0, 1);
    Fix fix;

    fix_init(&fix, 4096);
    memcpy(icm_at(&fix, MPT_BASE + 4 * 64), &mpt, sizeof(mpt));
    g_assert_cmpint(check(&fix, VA, 0, GOOD_KEY(4), 0, 1), ==, HCA_V2P_KEY_ERR);
    g_assert_cmphex(
        write_mpt(&fix, GOOD_KEY(4), LOCAL_MPT, 0, 0, 0x1000, 12, 0, 1), ==, 0);
    g_assert_cmpint(check(&fix, VA, 0, GOOD_KEY(4), 0, 1), ==, 0);
    hca_v2p_close(fix.v2p);
    g_assert_cmpint(check(&fix, VA, 0, GOOD_KEY(4), 0, 1), ==, HCA_V2P_KEY_ERR);
    g_assert_cmphex(hca_v2p_init(fix.v2p, MPT_BASE, LOG_MPTS, MTT_BASE), ==, 0);
    g_assert_cmpint(check(&fix, VA, 0, GOOD_KEY(4), 0, 1), ==, HCA_V2P_KEY_ERR);
    fix_free(&fix);
}

/* Tables that the guest scribbles over: errors, and nothing but its RAM. */
static void test_hostile_icm(void)
{
    uint8_t buf[256] = { 0 };
    struct iovec iov[8];
    unsigned states[HCA_V2P_NSTATES] = { 0 };
    Fix fix;

    fix_init(&fix, 128); /* two lines: everything is read again */
    for (uint32_t i = 0; i < 1u << LOG_MPTS; i++) {
        g_assert_cmphex(
            write_mpt(&fix, GOOD_KEY(i), LOCAL_MPT, 1, 0, 0x1000, 12, i, 0), ==,
            0);
    }
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t i = g_test_rand_int_range(0, 1 << LOG_MPTS);
        struct rdma_hca_mpt *mpt = icm_at(&fix, MPT_BASE + i * 64);
        HcaMatchInfo info = match(g_test_rand_int() & 1 ? VA : OFF, 1,
                                  GOOD_KEY(i), g_test_rand_int_range(0, 0x3000),
                                  g_test_rand_int_range(1, sizeof(buf)));
        uint32_t *word = (uint32_t *)mpt + g_test_rand_int_range(4, 14);
        unsigned n = G_N_ELEMENTS(iov);
        uint64_t old;
        HcaV2pState state;

        *mpt = make_mpt(GOOD_KEY(i), LOCAL_MPT | ALL_ACCESS, 1, 0, 0x4000, 12,
                        i, 0);
        *word = g_test_rand_int() >> (g_test_rand_int() & 31);
        if (g_test_rand_int() & 1) {
            mpt->page_size = g_test_rand_int() >> (g_test_rand_int() & 31);
        }
        for (unsigned j = 0; j < 16; j++) {
            uint64_t *mtt = icm_at(&fix,
                                   MTT_BASE + 8 * g_test_rand_int_range(0, 64));

            *mtt = GUINT64_TO_BE(RAM_BASE + (g_test_rand_int() % RAM_SIZE));
            if (j & 1) {
                *mtt = (uint64_t)g_test_rand_int() << 32 | g_test_rand_int();
            }
        }
        state = hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, buf);
        g_assert_cmpint(state, <, HCA_V2P_NSTATES);
        states[state]++;
        hca_v2p_map(fix.v2p, HCA_V2P_EE, &info, iov, &n);
        info.len = 8;
        hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 0, &old);
    }
    g_assert_cmpuint(states[HCA_V2P_SUCCESS], >, 0);
    g_assert_cmpuint(states[HCA_V2P_LENGTH_ERR], >, 0);
    g_assert_cmpuint(states[HCA_V2P_DMA_ERR], >, 0);
    fix_free(&fix);
}

/* 5.2: requests are counted where they came from */
static void test_channels(void)
{
    const HcaV2pCounters *counters;
    HcaMatchInfo info;
    uint64_t buf;
    Fix fix;

    fix_init(&fix, 4096);
    counters = hca_v2p_counters(fix.v2p);
    g_assert_cmphex(write_mpt(&fix, GOOD_KEY(1),
                              LOCAL_MPT | RDMA_HCA_MPT_PHYSICAL, 1, RAM_BASE,
                              RAM_SIZE, 12, 0, 0),
                    ==, 0);
    for (HcaV2pChannel c = HCA_V2P_DB; c < HCA_V2P_NCHANNELS; c++) {
        info = match(VA, 1, GOOD_KEY(1), RAM_BASE + RAM_PAGE, 8);
        g_assert_cmpint(hca_v2p_read(fix.v2p, c, &info, &buf), ==, 0);
        g_assert_cmpuint(counters->requests[c], ==, 1);
        g_assert_cmpuint(counters->read_bytes[c], ==, 8);
        info.len = 4; /* back to where they were */
        g_assert_cmpint(hca_v2p_write(fix.v2p, c, &info, &buf), ==, 0);
        g_assert_cmpuint(counters->requests[c], ==, 2);
        g_assert_cmpuint(counters->writes[c], ==, 1);
        g_assert_cmpuint(counters->write_bytes[c], ==, 4);
        g_assert_cmpuint(counters->pended[c], ==, 0);
    }
    g_assert_cmpuint(counters->failed[HCA_V2P_KEY_ERR], ==, 0);
    info.key = GOOD_KEY(2);
    hca_v2p_read(fix.v2p, HCA_V2P_DB, &info, &buf);
    g_assert_cmpuint(counters->failed[HCA_V2P_KEY_ERR], ==, 1);
    fix_free(&fix);
}

/* 5.3: MTT_DMA_REQ, entries in two pages of ICM, which lie apart */
static void test_mdata_mtt_pages(void)
{
    const uint64_t first = RAM_PAGE / RDMA_HCA_MTT_SIZE - 8;
    uint64_t addr[16], *low, *high;
    Fix fix;

    fix_init(&fix, 4096);
    low = icm_at(&fix, MTT_BASE + RAM_PAGE - 8 * RDMA_HCA_MTT_SIZE);
    high = icm_at(&fix, MTT_BASE + RAM_PAGE);
    g_assert_true(high != low + 8);
    for (unsigned i = 0; i < G_N_ELEMENTS(addr); i++) {
        addr[i] = (uint64_t)(i + 1) << 12;
    }
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, first, addr, G_N_ELEMENTS(addr)),
                    ==, 0);
    g_assert_cmphex(hca_v2p_sync(fix.v2p), ==, 0);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmphex(GUINT64_FROM_BE(low[i]), ==, addr[i]);
        g_assert_cmphex(GUINT64_FROM_BE(high[i]), ==, addr[8 + i]);
    }
    fix_free(&fix);
}

/* A region or a window of any kind, in an entry of the table. */
static void write_some_kind(Fix *fix, uint32_t index)
{
    static const uint32_t kinds[] = {
        0,
        RDMA_HCA_MPT_WINDOW2,
        RDMA_HCA_MPT_REGION | RDMA_HCA_ACCESS_MW_BIND,
        RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_FREE,
        RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_FREE |
            RDMA_HCA_MPT_PIECES,
    };
    unsigned kind = g_test_rand_int_range(0, G_N_ELEMENTS(kinds));

    write_mpt(fix, GOOD_KEY(index), kinds[kind] | ALL_ACCESS, 1, 0,
              kind == 2 ? 0x4000 : 0, 12, index * 8, 8);
}

/* A list of pages, or of pairs that may ascend. */
static void random_fill_list(Fix *fix, uint64_t list)
{
    uint64_t *entry = ram_at(fix->ram, list);
    uint64_t end = 0;

    for (unsigned i = 0; i < 32; i += 2) {
        end += g_test_rand_int_range(0, 0x800);
        entry[i] = GUINT64_TO_LE(RAM_BASE + g_test_rand_int_range(0, RAM_SIZE));
        entry[i + 1] = GUINT64_TO_LE(end);
    }
}

/* One work request of memory management with numbers at random. */
static HcaV2pState some_mem_op(Fix *fix, uint64_t list)
{
    uint32_t key = GOOD_KEY(g_test_rand_int_range(0, 8)) +
                   (g_test_rand_int() & 1);
    HcaMemOp op = {
        .key = key,
        .access = g_test_rand_int() & g_test_rand_int() & 0x3f,
        .start = g_test_rand_int_range(0, 0x4000),
        .length = g_test_rand_int_range(0, 0x4000),
        .list = list,
        .entries = g_test_rand_int_range(0, 10),
        .page_shift = g_test_rand_int_range(11, 14),
        .type = g_test_rand_int_range(1, 3),
        .lkey = GOOD_KEY(g_test_rand_int_range(0, 8)),
    };
    HcaInvalidation inv = {
        .key = key,
        .pd = 1,
        .qpn = 5,
        .remote = g_test_rand_int() & 1,
    };

    switch (g_test_rand_int_range(0, 3)) {
    case 0:
        return hca_v2p_fast_reg(fix->v2p, HCA_V2P_RTC, 1, &op);
    case 1:
        return hca_v2p_bind(fix->v2p, HCA_V2P_RTC, 1, 5, &op);
    default:
        return hca_v2p_invalidate(fix->v2p, HCA_V2P_RTC, &inv);
    }
}

/* Entries of regions and windows that the guest scribbles over meanwhile. */
static void test_hostile_windows(void)
{
    unsigned done = 0, refused = 0, used = 0;
    uint8_t buf[256] = { 0 };
    uint64_t list;
    Fix fix;

    fix_init(&fix, 128); /* two lines: everything is read again */
    list = ram_alloc(fix.ram, 1);
    for (unsigned round = 0; round < 30000; round++) {
        uint32_t i = g_test_rand_int_range(0, 8);
        uint32_t *words = icm_at(&fix, MPT_BASE + i * 64);
        HcaMatchInfo info = match(VA | RDMA_HCA_ACCESS_REMOTE_READ, 1,
                                  GOOD_KEY(i) + (g_test_rand_int() & 1),
                                  g_test_rand_int_range(0, 0x4000),
                                  g_test_rand_int_range(1, sizeof(buf)));

        info.qpn = 5;
        if (g_test_rand_int_range(0, 8) == 0) {
            hca_v2p_invalidate_mpt(fix.v2p, i);
            write_some_kind(&fix, i);
        }
        if (g_test_rand_int_range(0, 4) == 0) {
            words[g_test_rand_int_range(0, 16)] = g_test_rand_int() >>
                                                  (g_test_rand_int() & 31);
        }
        random_fill_list(&fix, list);
        if (some_mem_op(&fix, list) == HCA_V2P_SUCCESS) {
            done++;
        } else {
            refused++;
        }
        used += hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, buf) ==
                HCA_V2P_SUCCESS;
    }
    g_assert_cmpuint(done, >, 0);
    g_assert_cmpuint(refused, >, 0);
    g_assert_cmpuint(used, >, 0);
    fix_free(&fix);
}

/* 5.6.3.2: mpt_miss_proc and mpt_rsp_proc judge as mpt_hit_proc does. */
static void test_check_miss(void)
{
    const HcaV2pCounters *counters;
    uint64_t pended, hits;
    Fix fix;

    fix_init(&fix, 2 * HCA_TPT_LINE);
    counters = hca_v2p_counters(fix.v2p);
    for (uint32_t i = 1; i <= 3; i++) {
        g_assert_cmphex(write_mpt(&fix, GOOD_KEY(i), LOCAL_MPT, 7, 0x10000,
                                  0x1000, 12, 0, 1),
                        ==, 0);
    }
    /* The first has had to go. */
    pended = counters->pended[HCA_V2P_EE];
    hits = counters->mpt.hits;
    g_assert_cmpint(check(&fix, VA, 6, GOOD_KEY(1), 0x10000, 1), ==,
                    HCA_V2P_PD_ERR);
    g_assert_cmpuint(counters->pended[HCA_V2P_EE], ==, pended + 1);
    g_assert_cmpuint(counters->mpt.hits, ==, hits);
    g_assert_cmpint(check(&fix, VA, 6, GOOD_KEY(1), 0x10000, 1), ==,
                    HCA_V2P_PD_ERR);
    g_assert_cmpint(check(&fix, VA, 7, GOOD_KEY(1), 0x10000, 1), ==, 0);
    g_assert_cmpuint(counters->pended[HCA_V2P_EE], ==, pended + 1);
    g_assert_cmpuint(counters->mpt.hits, ==, hits + 2);
    /* And one that is there no more is a key of nothing. */
    g_assert_cmphex(hca_v2p_unmap_icm(fix.v2p, MPT_BASE, 1), ==, 0);
    g_assert_cmpint(check(&fix, VA, 7, GOOD_KEY(1), 0x10000, 1), ==,
                    HCA_V2P_KEY_ERR);
    fix_free(&fix);
}

/* 5.7.3.1, 5: a line that is missing is read before one entry is written. */
static void test_mtt_write_miss(void)
{
    const uint64_t page = 0x9000;
    uint64_t *table;
    Fix fix;

    fix_init(&fix, 2 * HCA_TPT_LINE);
    table = icm_at(&fix, MTT_BASE);
    for (unsigned i = 0; i < 8; i++) {
        table[i] = GUINT64_TO_BE((uint64_t)(i + 1) << 12);
    }
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, 3, &page, 1), ==, 0);
    g_assert_cmphex(GUINT64_FROM_BE(table[3]), ==, 0x4000);
    /* Two others take its place: it goes back to memory, whole. */
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, 8, &page, 1), ==, 0);
    g_assert_cmphex(hca_v2p_write_mtt(fix.v2p, 16, &page, 1), ==, 0);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmphex(GUINT64_FROM_BE(table[i]), ==,
                        i == 3 ? page : (uint64_t)(i + 1) << 12);
    }
    fix_free(&fix);
}

/* 5.8: a request whose MTT entries are in two lines looks for both. */
static void test_parser_lines(void)
{
    Region region = { .key = GOOD_KEY(1),
                      .page_shift = 12,
                      .npages = 2,
                      .start = 0x7800,
                      .length = 0x1000 };
    const HcaV2pCounters *counters;
    HcaMatchInfo info;
    uint8_t data[16], got[16];
    uint64_t hits;
    Fix fix;

    fix_init(&fix, 4096);
    counters = hca_v2p_counters(fix.v2p);
    region.page[1] = ram_alloc(fix.ram, 1);
    region.page[0] = ram_alloc(fix.ram, 1);
    region_write_tables(&fix, &region, 7); /* the last of a line */
    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = i + 1;
    }
    info = region_part(&region, 0x7f8, sizeof(data), false);
    hits = counters->mtt.hits;
    g_assert_cmpint(hca_v2p_write(fix.v2p, HCA_V2P_EE, &info, data), ==, 0);
    g_assert_cmpuint(counters->mtt.hits, ==, hits + 2);
    g_assert_cmpmem(ram_at(fix.ram, region.page[0] + 0xff8), 8, data, 8);
    g_assert_cmpmem(ram_at(fix.ram, region.page[1]), 8, data + 8, 8);
    g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, got), ==, 0);
    g_assert_cmpmem(got, sizeof(got), data, sizeof(data));
    fix_free(&fix);
}

/* Device memory */

#define DEV_MEM_SIZE 64u
#define DEV_MEM_MPT                                                            \
    (LOCAL_MPT | RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_DEV_MEM |                \
     RDMA_HCA_ACCESS_LOCAL_WRITE)

static uint64_t told; /* where the last bytes were written, */
static uint64_t told_len;

static void note_dev_mem(void *opaque, uint64_t offset, uint64_t len)
{
    told = offset;
    told_len = len;
}

static uint8_t *fix_dev_mem(Fix *fix)
{
    uint8_t *mem = g_malloc0(DEV_MEM_SIZE);

    fix->ram->ops.dev_mem_written = note_dev_mem;
    hca_v2p_set_dev_mem(fix->v2p, mem, DEV_MEM_SIZE);
    return mem;
}

/* Entries of a queue, and what is mapped for sending. */
static void test_dev_mem(void)
{
    uint8_t entry[32] = { [0] = 1, [31] = 2 }, *mem;
    uint32_t key = GOOD_KEY(3);
    struct iovec iov[2];
    unsigned n = G_N_ELEMENTS(iov);
    HcaMatchInfo info;
    Fix fix;

    fix_init(&fix, 4096);
    mem = fix_dev_mem(&fix);
    g_assert_cmphex(write_mpt(&fix, key, DEV_MEM_MPT, 7, 16, 48, 12, 0, 0), ==,
                    0);
    info = match(OFF | RDMA_HCA_ACCESS_LOCAL_WRITE, 7, key, 16, 32);
    g_assert_cmpint(hca_v2p_write_entry(fix.v2p, HCA_V2P_EE, &info, entry), ==,
                    0);
    g_assert_cmpmem(mem + 32, 32, entry, 32);
    g_assert_cmpuint(told, ==, 32);
    g_assert_cmpuint(told_len, ==, 32);
    info = match(VA, 7, key, 17, 47);
    g_assert_cmpint(hca_v2p_map(fix.v2p, HCA_V2P_WP_ND, &info, iov, &n), ==, 0);
    g_assert_cmpuint(n, ==, 1);
    g_assert_true(iov[0].iov_base == mem + 17);
    g_assert_cmpuint(iov[0].iov_len, ==, 47);
    fix_free(&fix);
    g_free(mem);
}

/* The entry in ICM changes after it was checked. */
static void test_dev_mem_changed(void)
{
    static const uint64_t start[] = { 33, 64, 4096, UINT64_MAX - 31 };
    uint32_t key = GOOD_KEY(3);

    for (unsigned i = 0; i < G_N_ELEMENTS(start); i++) {
        uint8_t data[32] = { 0 }, *mem;
        struct rdma_hca_mpt mpt;
        struct iovec iov[2];
        unsigned n = G_N_ELEMENTS(iov);
        HcaMatchInfo info;
        uint64_t old;
        Fix fix;

        fix_init(&fix, 128);
        mem = fix_dev_mem(&fix);
        g_assert_cmphex(write_mpt(&fix, key, DEV_MEM_MPT, 7, 0, 32, 12, 0, 0),
                        ==, 0);
        g_assert_cmphex(hca_v2p_sync(fix.v2p), ==, 0);
        mpt = make_mpt(key, DEV_MEM_MPT, 7, start[i], 32, 12, 0, 0);
        mpt.flags &= GUINT32_TO_BE(~RDMA_HCA_MPT_SW_OWNS);
        memcpy(icm_at(&fix, MPT_BASE + 3 * HCA_MPT_SIZE), &mpt, sizeof(mpt));
        /* Others take its places in the cache. */
        for (uint32_t other = 4; other < 12; other++) {
            write_mpt(&fix, GOOD_KEY(other), DEV_MEM_MPT, 7, 0, 8, 12, 0, 0);
        }
        info = match(OFF | RDMA_HCA_ACCESS_LOCAL_WRITE, 7, key, 0, 32);
        g_assert_cmpint(hca_v2p_write(fix.v2p, HCA_V2P_EE, &info, data), ==,
                        HCA_V2P_DMA_ERR);
        g_assert_cmpint(hca_v2p_write_entry(fix.v2p, HCA_V2P_EE, &info, data),
                        ==, HCA_V2P_DMA_ERR);
        g_assert_cmpint(hca_v2p_read(fix.v2p, HCA_V2P_EE, &info, data), ==,
                        HCA_V2P_DMA_ERR);
        g_assert_cmpint(hca_v2p_map(fix.v2p, HCA_V2P_EE, &info, iov, &n), ==,
                        HCA_V2P_DMA_ERR);
        info = match(OFF | RDMA_HCA_ACCESS_LOCAL_WRITE, 7, key, 24, 8);
        g_assert_cmpint(hca_v2p_fetch_add(fix.v2p, HCA_V2P_EE, &info, 1, &old),
                        !=, 0);
        fix_free(&fix);
        g_free(mem);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/v2p/5.2/channels", test_channels);
    test_add("/v2p/5.3/mtt-pages", test_mdata_mtt_pages);
    test_add("/v2p/5.6/order", test_check_order);
    test_add("/v2p/5.6/flags", test_check_flags);
    test_add("/v2p/5.6/bounds", test_check_bounds);
    test_add("/v2p/5.6/huge", test_check_huge);
    test_add("/v2p/5.6/miss", test_check_miss);
    test_add_data("/v2p/5.7/random/small-cache", GUINT_TO_POINTER(1024),
                  test_pages_random);
    test_add_data("/v2p/5.7/random/large-cache", GUINT_TO_POINTER(524288),
                  test_pages_random);
    test_add_data("/v2p/5.7/again/small-cache",
                  GUINT_TO_POINTER(2 * HCA_TPT_LINE), test_pages_again);
    test_add_data("/v2p/5.7/again/large-cache", GUINT_TO_POINTER(524288),
                  test_pages_again);
    test_add("/v2p/5.7/sizes", test_pages_sizes);
    test_add("/v2p/5.7/physical", test_pages_physical);
    test_add("/v2p/5.7/page-size", test_pages_size);
    test_add("/v2p/5.7/joined", test_pages_joined);
    test_add("/v2p/5.7/write-miss", test_mtt_write_miss);
    test_add("/v2p/5.8/lines", test_parser_lines);
    test_add("/v2p/5.4/refused", test_dma_refused);
    test_add("/v2p/5.4/atomic", test_dma_atomic);
    test_add("/v2p/5.4/entry", test_dma_entry);
    test_add("/v2p/5.1/init", test_command_init);
    test_add("/v2p/5.1/mpt", test_command_mpt);
    test_add("/v2p/5.1/window", test_command_window);
    test_add("/v2p/5.1/mtt", test_command_mtt);
    test_add("/v2p/5.1/sync", test_command_sync);
    test_add("/v2p/5.1/unmap", test_command_unmap);
    test_add("/v2p/5.1/leftovers", test_command_leftovers);
    test_add("/v2p/hostile-icm", test_hostile_icm);
    test_add("/v2p/hostile-windows", test_hostile_windows);
    test_add("/v2p/dev-mem/entry", test_dev_mem);
    test_add("/v2p/dev-mem/changed", test_dev_mem_changed);
    return g_test_run();
}
