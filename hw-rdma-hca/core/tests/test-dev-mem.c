/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory: regions of it are reached as others are, and no others; where
 * it ends; who may have it; what a reset leaves of it.
 */
#include <string.h>

#include "../../abi/rdma_hca_cmd.h"
#include "lib-make.h"
#include "lib-mem.h"
#include "lib-test.h"

#define SIZE 65536u /* of a card's device memory, as lab_config() has it */
#define ZERO_BASED RDMA_HCA_ACCESS_ZERO_BASED
#define ALL ACCESS_ALL
#define REMOTE (ACCESS_ALL & ~RDMA_HCA_ACCESS_LOCAL_WRITE)
#define REMOTE_ACCESS_ERR RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
#define LOCAL_PROT_ERR RDMA_HCA_SYNDROME_LOCAL_PROT_ERR
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ

/* A connection; the device memory looked at is side 1's. */
typedef struct Bench {
    Pair *pair;
    Driver *drv;
    Qp *qp[2];
    uint8_t *mem;
    uint8_t *image; /* what is to be in it */
} Bench;

static void bench_init(Bench *b, uint32_t seed)
{
    b->pair = pair_new(seed, 65536);
    b->drv = b->pair->drv[1];
    pair_connect(b->pair, NULL, b->qp);
    b->mem = b->drv->host->dev_mem;
    b->image = pair_data(b->pair, SIZE);
    memcpy(b->mem, b->image, SIZE);
}

static void bench_free(Bench *b)
{
    g_assert_cmpmem(b->mem, SIZE, b->image, SIZE);
    g_free(b->image);
    pair_free(b->pair);
}

static uint32_t region(Bench *b, uint64_t start, uint64_t len, uint32_t access)
{
    uint32_t key;

    g_assert_cmphex(
        mem_dev_mem_new(b->drv, b->pair->pd[1], start, len, access, &key), ==,
        0);
    return key;
}

static void try(Bench *b, uint8_t opcode, uint32_t rkey, uint64_t va,
                uint32_t len, uint8_t syndrome)
{
    mem_try(b->pair, b->qp[0], 0, opcode, rkey, va, len, syndrome);
}

/* A peer writes and reads @len bytes, which are those at @at of the memory. */
static void check_remote(Bench *b, uint32_t rkey, uint64_t va, uint32_t at,
                         uint32_t len)
{
    uint8_t *data = pair_data(b->pair, len);
    uint8_t *got = g_malloc(len);
    Mr *mr = b->pair->mr[0];

    mr_write(mr, 0, data, len);
    try(b, WRITE, rkey, va, len, 0);
    memcpy(b->image + at, data, len);
    g_assert_cmpmem(b->mem, SIZE, b->image, SIZE);
    mr_fill(mr, 0, 0, len);
    try(b, READ, rkey, va, len, 0);
    mr_read(mr, 0, got, len);
    g_assert_cmpmem(got, len, data, len);
    g_free(got);
    g_free(data);
}

/* Parts at random, to the byte; by offsets in the memory or in the region. */
static void test_remote(void)
{
    for (unsigned zero = 0; zero < 2; zero++) {
        Bench b;

        bench_init(&b, 7000 + zero);
        for (unsigned i = 0; i < 30; i++) {
            uint32_t start = pair_rand(b.pair, 0, SIZE);
            uint32_t len = pair_rand(b.pair, 1, SIZE - start + 1);
            uint32_t at = pair_rand(b.pair, 0, len);
            uint32_t part = MIN(pair_rand(b.pair, 1, len - at + 1), 20000);
            uint32_t key = region(&b, start, len,
                                  ALL | (zero ? ZERO_BASED : 0));

            check_remote(&b, key, zero ? at : start + at, start + at, part);
            g_assert_cmphex(mem_window_free(b.drv, key), ==, 0);
        }
        bench_free(&b);
    }
}

/* Software is told which pages the card writes, and of no others. */
static void test_written(void)
{
    Bench b;
    uint8_t *dirty;

    bench_init(&b, 7010);
    dirty = b.drv->host->dev_mem_dirty;
    check_remote(&b, region(&b, 0, SIZE, ALL), 3 * 4096 + 4095, 3 * 4096 + 4095,
                 2);
    for (unsigned page = 0; page < SIZE / HOST_PAGE_SIZE; page++) {
        g_assert_cmpuint(dirty[page], ==, page == 3 || page == 4);
    }
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_dev_mem_write_bytes"), ==, 2);
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_dev_mem_read_bytes"), ==, 2);
    bench_free(&b);
}

/* What is sent and received lies in device memory, in parts. */
static void test_local(void)
{
    Bench b;
    uint32_t key;
    SendWr wr;
    Sge sge;
    Wc wc;

    bench_init(&b, 7020);
    key = region(&b, 1000, 50000, ALL | ZERO_BASED);
    /* From it */
    pair_post_recv(b.pair, 0, b.qp[0], 2, 0, 5000);
    wr = pair_send(b.pair, 1, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 0, 0);
    sge = (Sge) { .va = 4000, .len = 5000, .lkey = key };
    g_assert_true(qp_post_send(b.qp[1], &wr, 1));
    cq_expect(b.pair->cq[1], &wc, 1, 0);
    cq_expect(b.pair->cq[0], &wc, 2, 0);
    {
        uint8_t got[5000];

        mr_read(b.pair->mr[0], 0, got, 5000);
        g_assert_cmpmem(got, 5000, b.image + 5000, 5000);
    }
    /* To it, by a receive */
    sge = (Sge) { .va = 20000, .len = 3000, .lkey = key };
    g_assert_true(qp_post_recv(
        b.qp[1], &(RecvWr) { .wr_id = 3, .nsge = 1, .sge = &sge }, 1));
    mr_fill(b.pair->mr[0], 100, 0x5a, 3000);
    wr = pair_send(b.pair, 0, RDMA_HCA_OPCODE_SEND, 4, &sge, 100, 3000, 0);
    g_assert_true(qp_post_send(b.qp[0], &wr, 1));
    cq_expect(b.pair->cq[0], &wc, 4, 0);
    cq_expect(b.pair->cq[1], &wc, 3, 0);
    memset(b.image + 21000, 0x5a, 3000);
    g_assert_cmpmem(b.mem, SIZE, b.image, SIZE);
    /* and by a Read */
    wr = pair_send(b.pair, 1, READ, 5, &sge, 0, 0, 100);
    sge = (Sge) { .va = 45000, .len = 3000, .lkey = key };
    g_assert_true(qp_post_send(b.qp[1], &wr, 1));
    cq_expect(b.pair->cq[1], &wc, 5, 0);
    memset(b.image + 46000, 0x5a, 3000);
    bench_free(&b);
}

static uint64_t atomic(Bench *b, uint8_t opcode, uint32_t rkey, uint64_t va,
                       uint64_t compare, uint64_t swap_add, uint8_t syndrome)
{
    uint64_t old = 0;
    SendWr wr;
    Sge sge;
    Wc wc;

    wr = pair_send(b->pair, 0, opcode, 9, &sge, 0, 8, 0);
    wr.raddr = va;
    wr.rkey = rkey;
    wr.compare = compare;
    wr.swap_add = swap_add;
    g_assert_true(qp_post_send(b->qp[0], &wr, 1));
    cq_expect(b->pair->cq[0], &wc, 9, syndrome);
    mr_read(b->pair->mr[0], 0, &old, 8);
    return GUINT64_FROM_LE(old);
}

static void put64(Bench *b, uint32_t at, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    memcpy(b->image + at, &value, sizeof(value));
}

static void test_atomics(void)
{
    const uint64_t first = UINT64_C(0xfffffffffffffff0);
    uint32_t key;
    Bench b;

    bench_init(&b, 7030);
    put64(&b, 4096 + 24, first);
    memcpy(b.mem, b.image, SIZE);
    key = region(&b, 4096, 4096, ALL | ZERO_BASED);
    g_assert_cmphex(atomic(&b, RDMA_HCA_OPCODE_ATOMIC_FA, key, 24, 0, 0x23, 0),
                    ==, first);
    g_assert_cmphex(atomic(&b, RDMA_HCA_OPCODE_ATOMIC_CS, key, 24, 7, 8, 0), ==,
                    0x13);
    g_assert_cmphex(atomic(&b, RDMA_HCA_OPCODE_ATOMIC_CS, key, 24, 0x13, 8, 0),
                    ==, 0x13);
    put64(&b, 4096 + 24, 8);
    g_assert_true(b.drv->host->dev_mem_dirty[1]);
    atomic(&b, RDMA_HCA_OPCODE_ATOMIC_FA, key, 4096 - 4, 0, 1,
           RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    bench_free(&b);
}

/* Its rights, one by one. */
static void test_rights(void)
{
    static const struct {
        uint32_t access;
        uint8_t opcode;
    } rows[] = {
        { RDMA_HCA_ACCESS_REMOTE_READ, READ },
        { RDMA_HCA_ACCESS_REMOTE_WRITE, WRITE },
        { RDMA_HCA_ACCESS_REMOTE_ATOMIC, RDMA_HCA_OPCODE_ATOMIC_FA },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(rows); j++) {
            uint32_t key;
            Bench b;

            bench_init(&b, 7040);
            key = region(&b, 8, 64,
                         RDMA_HCA_ACCESS_LOCAL_WRITE | rows[i].access);
            try(&b, rows[j].opcode, key, 8, 8, i == j ? 0 : REMOTE_ACCESS_ERR);
            memcpy(b.image + 8, b.mem + 8, 8);
            bench_free(&b);
        }
    }
}

/* One byte before the region, or behind it, or of another domain. */
static void test_bounds(void)
{
    static const struct {
        uint32_t access;
        uint64_t va;
        uint32_t len;
        bool far; /* of another protection domain */
    } rows[] = {
        { ALL, 999, 1, false },
        { ALL, 1100, 1, false },
        { ALL, 1099, 2, false },
        { ALL, UINT64_MAX, 2, false },
        { ALL, 1000, 1, true },
        { ALL | ZERO_BASED, 100, 1, false },
        { ALL | ZERO_BASED, 1000, 1, false },
        { ALL | ZERO_BASED, UINT64_MAX, 1, false },
        { ALL | ZERO_BASED, 0, 1, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned op = WRITE; op <= READ; op += READ - WRITE) {
            uint32_t pd, key;
            Bench b;

            bench_init(&b, 7050);
            pd = rows[i].far ? pd_new(b.drv) : b.pair->pd[1];
            g_assert_cmphex(
                mem_dev_mem_new(b.drv, pd, 1000, 100, rows[i].access, &key), ==,
                0);
            try(&b, op, key, rows[i].va, rows[i].len, REMOTE_ACCESS_ERR);
            bench_free(&b);
        }
    }
}

/* No region reaches beyond the memory, whatever its numbers add up to. */
static void test_end(void)
{
    static const struct {
        uint64_t start;
        uint64_t length;
        bool good;
    } rows[] = {
        { 0, SIZE, true },
        { SIZE - 1, 1, true },
        { SIZE, 0, true },
        { SIZE + 1, 0, false },
        { 0, SIZE + 1, false },
        { 1, SIZE, false },
        { SIZE, 1, false },
        { UINT64_MAX, 1, false },
        { UINT64_MAX, 2, false },
        { 1, UINT64_MAX, false },
        { UINT64_C(1) << 63, UINT64_C(1) << 63, false },
        { 0, UINT64_MAX, false },
    };
    Bench b;

    bench_init(&b, 7060);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t key;

        g_assert_cmphex(mem_dev_mem_new(b.drv, b.pair->pd[1], rows[i].start,
                                        rows[i].length, ALL, &key),
                        ==, rows[i].good ? 0 : RDMA_HCA_STAT_BAD_PARAM);
    }
    bench_free(&b);
}

/* What cannot be of device memory. */
static void test_kinds(void)
{
    static const uint32_t bad[] = {
        RDMA_HCA_MPT_DEV_MEM,
        RDMA_HCA_MPT_DEV_MEM | RDMA_HCA_MPT_NULL,
        RDMA_HCA_MPT_DEV_MEM | RDMA_HCA_MPT_FAST_REG,
        RDMA_HCA_MPT_DEV_MEM | RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_FAST_REG,
        RDMA_HCA_MPT_DEV_MEM | RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_PIECES,
        RDMA_HCA_MPT_DEV_MEM | RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_NULL,
        RDMA_HCA_MPT_DEV_MEM | RDMA_HCA_MPT_PHYSICAL |
            RDMA_HCA_ACCESS_ON_DEMAND,
    };
    Bench b;

    bench_init(&b, 7070);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct rdma_hca_mpt mpt = good_mpt(
            GOOD_KEY(1000), RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | bad[i],
            b.pair->pd[1], 0, 64, 0);

        g_assert_cmphex(driver_cmd_in(b.drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt,
                                      sizeof(mpt), 1000, 0),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    bench_free(&b);
}

static void query(Driver *drv, uint32_t *features, uint64_t *size)
{
    struct rdma_hca_dev_lim lim;
    struct rdma_hca_fw fw;

    g_assert_cmphex(
        driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_FW, &fw, sizeof(fw), 0, 0), ==,
        0);
    g_assert_cmphex(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_DEV_LIM, &lim,
                                   sizeof(lim), 0, 0),
                    ==, 0);
    *features = GUINT32_FROM_BE(fw.features);
    *size = (uint64_t)GUINT32_FROM_BE(lim.dev_mem_h) << 32 |
            GUINT32_FROM_BE(lim.dev_mem_l);
}

/* A card may have none. */
static void test_none(void)
{
    HcaConfig config[2];
    uint32_t features, key;
    uint64_t size;
    Pair *pair;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[1].device_memory = 0;
    pair = pair_new_with(7080, 4096, config, NULL, NULL);
    query(pair->drv[0], &features, &size);
    g_assert_true(features & RDMA_HCA_FEATURE_DEV_MEM);
    g_assert_cmpuint(size, ==, SIZE);
    query(pair->drv[1], &features, &size);
    g_assert_false(features & RDMA_HCA_FEATURE_DEV_MEM);
    g_assert_cmpuint(size, ==, 0);
    for (unsigned len = 0; len < 2; len++) {
        g_assert_cmphex(
            mem_dev_mem_new(pair->drv[1], pair->pd[1], 0, len, ALL, &key), ==,
            RDMA_HCA_STAT_BAD_PARAM);
    }
    pair_free(pair);
}

/* A window has its region's memory; but none is bound to one based on zero. */
static void test_windows(void)
{
    for (unsigned type = 1; type <= 2; type++) {
        uint32_t access = ALL | RDMA_HCA_ACCESS_MW_BIND, window;
        Bench b;
        SendWr wr;
        Mr mr;

        bench_init(&b, 7090 + type);
        mr.key = region(&b, 4000, 5000, access);
        window = mem_window_new(b.drv, b.pair->pd[1], type);
        window = mem_bind(b.qp[1], type, window, &mr, 4100, 200, REMOTE);
        check_remote(&b, window, 4100, 4100, 200);
        g_assert_cmphex(mem_window_free(b.drv, mr.key), ==,
                        RDMA_HCA_STAT_REG_BOUND);
        g_assert_cmphex(mem_window_free(b.drv, window), ==, 0);
        g_assert_cmphex(mem_window_free(b.drv, mr.key), ==, 0);

        window = mem_window_new(b.drv, b.pair->pd[1], type);
        if (type == 2) {
            mr.key = region(&b, 4000, 5000, access);
            window = mem_bind(b.qp[1], type, window, &mr, 4100, 200,
                              REMOTE | ZERO_BASED);
            check_remote(&b, window, 0, 4100, 200);
            wr = mem_inv_wr(window);
            mem_do(b.qp[1], &wr, 0);
        }
        mr.key = region(&b, 4000, 5000, access | ZERO_BASED);
        wr = mem_bind_wr(type, mem_next_key(window), &mr, 0, 200, REMOTE);
        mem_do(b.qp[1], &wr, RDMA_HCA_SYNDROME_MW_BIND_ERR);
        bench_free(&b);
    }
}

/* Beyond a window there may be more of the region: it is refused all the same. */
static void test_window_bounds(void)
{
    uint32_t window;
    Bench b;
    Mr mr;

    bench_init(&b, 7095);
    mr.key = region(&b, 0, SIZE, ALL | RDMA_HCA_ACCESS_MW_BIND);
    window = mem_window_new(b.drv, b.pair->pd[1], 1);
    window = mem_bind(b.qp[1], 1, window, &mr, 100, 100, REMOTE);
    try(&b, READ, window, 199, 1, 0);
    try(&b, READ, window, 199, 2, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* A bus address is never one of device memory, nor the other way. */
static void test_apart(void)
{
    uint8_t before[64] = { 1, 2, 3 }, after[64];
    Bench b;
    Mr *mr;

    bench_init(&b, 7100);
    mr = b.pair->mr[1];
    host_write(b.drv->host, mr->page[0], before, sizeof(before));
    g_assert_cmpuint(mr->page[0], >=, SIZE);
    try(&b, WRITE, region(&b, 0, SIZE, ALL), mr->page[0], 64,
        REMOTE_ACCESS_ERR);
    host_read(b.drv->host, mr->page[0], after, sizeof(after));
    g_assert_cmpmem(after, 64, before, 64);
    bench_free(&b);
}

/* The regions are gone, what was in them is there. */
static void test_reset(void)
{
    uint32_t key;
    Bench b;

    bench_init(&b, 7110);
    key = region(&b, 0, SIZE, ALL);
    check_remote(&b, key, 77, 77, 1000);
    host_reset(b.drv->host);
    lab_run(b.pair->lab);
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_mpts"), ==, 0);
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_dev_mem_write_bytes"), ==, 0);
    bench_free(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/dev-mem/remote", test_remote);
    test_add("/dev-mem/written", test_written);
    test_add_each_link("/dev-mem/local", test_local);
    test_add_each_link("/dev-mem/atomics", test_atomics);
    test_add_each_link("/dev-mem/rights", test_rights);
    test_add_each_link("/dev-mem/bounds", test_bounds);
    test_add("/dev-mem/end", test_end);
    test_add("/dev-mem/kinds", test_kinds);
    test_add_each_link("/dev-mem/none", test_none);
    test_add_each_link("/dev-mem/windows", test_windows);
    test_add("/dev-mem/window-bounds", test_window_bounds);
    test_add("/dev-mem/apart", test_apart);
    test_add_each_link("/dev-mem/reset", test_reset);
    return g_test_run();
}
