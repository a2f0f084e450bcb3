/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regions that are registered by work requests (IBA 10.6.5): REG_MR, what
 * memory may look like, how it stands to the requests around it; and the other
 * regions without a table of pages.
 */
#include <string.h>

#include "lib-mem.h"
#include "lib-test.h"

#define PAGES 8
#define SPARE_MPT 1000
#define VA UINT64_C(0x700000000000)
#define LEN (3 * HOST_PAGE_SIZE)
#define LOCAL_QP_OP_ERR RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR
#define REMOTE_ACCESS_ERR RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
#define REFUSED(state) (0x10 | HCA_V2P_##state)

/* A connection; regions of the test are on side 1. */
typedef struct Bench {
    Pair *pair;
    Qp *qp[2];
    Mr *mr;
} Bench;

static void bench_init(Bench *b, uint32_t seed)
{
    b->pair = pair_new(seed, 65536);
    pair_connect(b->pair, NULL, b->qp);
    b->mr = mem_region_new(b->pair->drv[1], b->pair->pd[1], PAGES);
}

static void bench_free(Bench *b)
{
    pair_free(b->pair);
}

static void try(Bench *b, uint8_t opcode, uint64_t va, uint32_t len,
                uint8_t syndrome)
{
    mem_try(b->pair, b->qp[0], 0, opcode, b->mr->key, va, len, syndrome);
}

/* A Write and a Read of all of the region, compared. */
static void check_data(Bench *b)
{
    uint32_t len = b->mr->len;
    uint64_t va = b->mr->va;
    uint8_t *data = pair_data(b->pair, len);
    uint8_t *got = g_malloc0(len);

    mr_write(b->pair->mr[0], 0, data, len);
    try(b, RDMA_HCA_OPCODE_RDMA_WRITE, va, len, 0);
    mr_read(b->mr, 0, got, len);
    g_assert_cmpmem(got, len, data, len);
    mr_fill(b->pair->mr[0], 0, 0, len);
    try(b, RDMA_HCA_OPCODE_RDMA_READ, va, len, 0);
    mr_read(b->pair->mr[0], 0, got, len);
    g_assert_cmpmem(got, len, data, len);
    g_free(data);
    g_free(got);
}

/* FR-4: free, valid, free; the consumer's byte changes each time. */
static void test_life(void)
{
    Bench b;

    bench_init(&b, 3001);
    for (unsigned round = 0; round < 300; round++) {
        uint32_t old = b.mr->key;

        g_assert_true(mem_is_free(b.pair->drv[1], b.mr->key));
        mem_register(b.qp[1], b.mr, VA + 100 * round, LEN - round, ACCESS_ALL);
        g_assert_cmphex(b.mr->key, !=, old);
        if (round % 16 == 0) {
            check_data(&b);
        }
        mem_invalidate(b.qp[1], b.mr);
    }
    bench_free(&b);
}

/* A free region, and an old key of a valid one, are keys of nothing. */
static void use_dead_key(uint32_t seed, bool valid)
{
    Bench b;
    uint32_t old;

    bench_init(&b, seed);
    mem_register(b.qp[1], b.mr, VA, LEN, ACCESS_ALL);
    old = b.mr->key;
    mem_invalidate(b.qp[1], b.mr);
    if (valid) {
        mem_register(b.qp[1], b.mr, VA, LEN, ACCESS_ALL);
    }
    mem_try(b.pair, b.qp[0], 0, RDMA_HCA_OPCODE_RDMA_WRITE, old, VA, 8,
            REMOTE_ACCESS_ERR);
    bench_free(&b);
}

static void test_dead_keys(void)
{
    use_dead_key(3002, false);
    use_dead_key(3003, true);
}

/* FR-12: exact to the byte, and the rights are those of the work request. */
static void test_bounds(void)
{
    static const struct {
        uint32_t access;
        uint8_t opcode;
        int64_t at;
        uint32_t len;
        uint8_t syndrome;
    } rows[] = {
        { ACCESS_ALL, RDMA_HCA_OPCODE_RDMA_WRITE, 0, 1001, 0 },
        { ACCESS_ALL, RDMA_HCA_OPCODE_RDMA_WRITE, 0, 1002, REMOTE_ACCESS_ERR },
        { ACCESS_ALL, RDMA_HCA_OPCODE_RDMA_WRITE, -1, 1, REMOTE_ACCESS_ERR },
        { ACCESS_ALL, RDMA_HCA_OPCODE_RDMA_READ, 1000, 1, 0 },
        { ACCESS_ALL, RDMA_HCA_OPCODE_RDMA_READ, 1001, 1, REMOTE_ACCESS_ERR },
        { ACCESS_ALL, RDMA_HCA_OPCODE_ATOMIC_FA, 11, 8, 0 },
        { RDMA_HCA_ACCESS_LOCAL_WRITE, RDMA_HCA_OPCODE_RDMA_READ, 0, 1,
          REMOTE_ACCESS_ERR },
        { RDMA_HCA_ACCESS_REMOTE_READ, RDMA_HCA_OPCODE_RDMA_READ, 0, 1, 0 },
        { RDMA_HCA_ACCESS_REMOTE_READ, RDMA_HCA_OPCODE_RDMA_WRITE, 0, 1,
          REMOTE_ACCESS_ERR },
        { RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE,
          RDMA_HCA_OPCODE_ATOMIC_CS, 11, 8, REMOTE_ACCESS_ERR },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Bench b;

        bench_init(&b, 3100 + i);
        mem_register(b.qp[1], b.mr, VA + 4093, 1001, rows[i].access);
        try(&b, rows[i].opcode, VA + 4093 + rows[i].at, rows[i].len,
            rows[i].syndrome);
        bench_free(&b);
    }
}

/* FR-10: the address is any with the offset in the first page; also 0. */
static void test_addresses(void)
{
    static const uint64_t starts[] = {
        0, 0x123, VA, UINT64_C(0xfeedbeef00000456), UINT64_MAX - LEN + 1,
    };
    Bench b;

    bench_init(&b, 3200);
    for (unsigned i = 0; i < G_N_ELEMENTS(starts); i++) {
        mem_register(b.qp[1], b.mr, starts[i], LEN, ACCESS_ALL);
        check_data(&b);
        mem_invalidate(b.qp[1], b.mr);
    }
    bench_free(&b);
}

/* Addresses count from 0, and the start is the offset in the first page. */
static void test_zero_based(void)
{
    Bench b;
    uint8_t got[16];

    bench_init(&b, 3201);
    mem_register(b.qp[1], b.mr, 0x321, LEN,
                 ACCESS_ALL | RDMA_HCA_ACCESS_ZERO_BASED);
    mr_fill(b.pair->mr[0], 0, 0x6b, sizeof(got));
    try(&b, RDMA_HCA_OPCODE_RDMA_WRITE, 4090, sizeof(got), 0);
    mr_read(b.mr, 4090, got, sizeof(got));
    for (unsigned i = 0; i < sizeof(got); i++) {
        g_assert_cmphex(got[i], ==, 0x6b);
    }
    try(&b, RDMA_HCA_OPCODE_RDMA_READ, LEN - 8, 8, 0);
    try(&b, RDMA_HCA_OPCODE_RDMA_READ, LEN - 7, 8, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* FR-9: pages larger than the smallest; here one of 64 KiB in 4 KiB lists. */
static void test_page_sizes(void)
{
    for (unsigned shift = 13; shift <= 16; shift++) {
        uint64_t page = UINT64_C(1) << shift;
        Bench b;
        Mr *memory;
        SendWr wr;

        bench_init(&b, 3210 + shift);
        memory = mr_new_pages(b.pair->drv[1], b.pair->pd[1], VA + 0x1800, page,
                              ACCESS_ALL, shift);
        wr = mem_reg_wr(b.mr,
                        mem_list_new(memory->drv, memory->page, memory->npages),
                        memory->va, memory->len, ACCESS_ALL);
        mem_reg_unit(&wr)->page_size = GUINT32_TO_LE(shift);
        mem_reg_unit(&wr)->entries = GUINT32_TO_LE(memory->npages);
        mem_do(b.qp[1], &wr, 0);
        /* Through one key, seen through the other. */
        mr_fill(b.pair->mr[0], 0, shift, 64);
        try(&b, RDMA_HCA_OPCODE_RDMA_WRITE, memory->va + page - 64, 64, 0);
        mr_read(memory, page - 64, wr.unit, 1);
        g_assert_cmphex(wr.unit[0], ==, shift);
        bench_free(&b);
    }
}

/* It is a local region, too (FR-13): gather and scatter entries. */
static void test_local_use(void)
{
    Bench b;
    Sge sge;
    SendWr wr;
    RecvWr recv;
    uint8_t *data, *got;
    Wc wc;

    bench_init(&b, 3220);
    mem_register(b.qp[1], b.mr, VA + 77, LEN, RDMA_HCA_ACCESS_LOCAL_WRITE);
    data = pair_data(b.pair, LEN);
    got = g_malloc(LEN);
    mr_write(b.pair->mr[0], 0, data, LEN);
    /* Receive into it... */
    sge = mr_sge(b.mr, 0, LEN);
    recv = (RecvWr) { .wr_id = 1, .nsge = 1, .sge = &sge };
    g_assert_true(qp_post_recv(b.qp[1], &recv, 1));
    wr = pair_send(b.pair, 0, RDMA_HCA_OPCODE_SEND, 2, &sge, 0, LEN, 0);
    g_assert_true(qp_post_send(b.qp[0], &wr, 1));
    cq_expect(b.pair->cq[0], &wc, 2, 0);
    cq_expect(b.pair->cq[1], &wc, 1, 0);
    mr_read(b.mr, 0, got, LEN);
    g_assert_cmpmem(got, LEN, data, LEN);
    /* ...and write from it. */
    mr_fill(b.pair->mr[0], 0, 0, LEN);
    wr = pair_send(b.pair, 1, RDMA_HCA_OPCODE_RDMA_WRITE, 3, &sge, 0, LEN, 0);
    sge = mr_sge(b.mr, 0, LEN);
    g_assert_true(qp_post_send(b.qp[1], &wr, 1));
    cq_expect(b.pair->cq[1], &wc, 3, 0);
    mr_read(b.pair->mr[0], 0, got, LEN);
    g_assert_cmpmem(got, LEN, data, LEN);
    g_free(data);
    g_free(got);
    bench_free(&b);
}

/* What lies in pieces of side 1 is @data. */
static void expect_pieces(Bench *b, const MemPiece *piece, unsigned n,
                          const uint8_t *data)
{
    uint64_t total = piece[n - 1].end;
    uint8_t *got = g_malloc(total);

    for (unsigned i = 0, at = 0; i < n; at = piece[i++].end) {
        host_read(b->pair->drv[1]->host, piece[i].bus, got + at,
                  piece[i].end - at);
    }
    g_assert_cmpmem(got, total, data, total);
    g_free(got);
}

/* SG_GAPS: pieces of any address and length. */
static void test_pieces(void)
{
    static const uint32_t lengths[] = { 1, 3, 512, 4096, 77, 5000, 1, 1, 2048 };
    Bench b;
    MemPiece piece[G_N_ELEMENTS(lengths)];
    uint64_t total = 0;
    uint8_t *data, *got;
    Mr *memory;
    SendWr wr;

    bench_init(&b, 3230);
    memory = mr_new(b.pair->drv[1], b.pair->pd[1], 0,
                    2 * G_N_ELEMENTS(lengths) * HOST_PAGE_SIZE, 0);
    b.mr = mem_pieces_new(b.pair->drv[1], b.pair->pd[1], G_N_ELEMENTS(lengths));
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        /* Nothing is where the one before it ends; pages are all over. */
        unsigned at = 2 * HOST_PAGE_SIZE * (G_N_ELEMENTS(lengths) - 1 - i);
        uint32_t len = MIN(lengths[i], HOST_PAGE_SIZE - 9);

        total += len;
        piece[i] = (MemPiece) { mr_bus(memory, at) + 9, total };
    }
    wr = mem_reg_pieces_wr(
        b.mr, mem_piece_list_new(b.pair->drv[1], piece, G_N_ELEMENTS(piece)),
        G_N_ELEMENTS(piece), VA + 5, total, ACCESS_ALL);
    mem_do(b.qp[1], &wr, 0);

    data = pair_data(b.pair, total);
    got = g_malloc0(total);
    mr_write(b.pair->mr[0], 0, data, total);
    try(&b, RDMA_HCA_OPCODE_RDMA_WRITE, VA + 5, total, 0);
    expect_pieces(&b, piece, G_N_ELEMENTS(piece), data);
    /* Read from anywhere to anywhere. */
    for (unsigned i = 0; i < 50; i++) {
        uint32_t at = pair_rand(b.pair, 0, total);
        uint32_t len = pair_rand(b.pair, 1, total - at + 1);

        mr_fill(b.pair->mr[0], 0, 0, len);
        try(&b, RDMA_HCA_OPCODE_RDMA_READ, VA + 5 + at, len, 0);
        mr_read(b.pair->mr[0], 0, got, len);
        g_assert_cmpmem(got, len, data + at, len);
    }
    try(&b, RDMA_HCA_OPCODE_RDMA_READ, VA + 5, total + 1, REMOTE_ACCESS_ERR);
    g_free(data);
    g_free(got);
    bench_free(&b);
}

/* The same made by commands, of a region that is one for good. */
static void test_pieces_by_command(void)
{
    Bench b;
    const uint32_t len = 190;
    MemPiece piece[3];
    uint8_t *data;
    Mr *memory;

    bench_init(&b, 3233);
    memory = b.mr;
    b.mr = mem_pieces_new(b.pair->drv[1], b.pair->pd[1], G_N_ELEMENTS(piece));
    piece[0] = (MemPiece) { mr_bus(memory, 8000), 100 };
    piece[1] = (MemPiece) { mr_bus(memory, 10), 103 };
    piece[2] = (MemPiece) { mr_bus(memory, 4000), len };
    mem_pieces_make_valid(b.mr, piece, G_N_ELEMENTS(piece), VA, ACCESS_ALL);
    data = pair_data(b.pair, len);
    mr_write(b.pair->mr[0], 0, data, len);
    try(&b, RDMA_HCA_OPCODE_RDMA_WRITE, VA, len, 0);
    expect_pieces(&b, piece, G_N_ELEMENTS(piece), data);
    g_free(data);
    bench_free(&b);
}

/* A region of as many pieces as there may be, one byte each, in @memory. */
#define TINY RDMA_HCA_MAX_PAGE_LIST
#define TINY_GAP 4
#define TINY_AT(i) (TINY_GAP * (TINY - 1 - (i)))

static Mr *tiny_new(Bench *b, unsigned side, Mr **memory)
{
    Driver *drv = b->pair->drv[side];
    uint32_t pd = b->pair->pd[side];
    Mr *mr = mem_pieces_new(drv, pd, TINY);
    MemPiece piece[TINY];
    SendWr wr;

    *memory = mr_new(drv, pd, 0, TINY_GAP * TINY, 0);
    for (unsigned i = 0; i < TINY; i++) {
        piece[i] = (MemPiece) { mr_bus(*memory, TINY_AT(i)), i + 1 };
    }
    wr = mem_reg_pieces_wr(mr, mem_piece_list_new(drv, piece, TINY), TINY, VA,
                           TINY, ACCESS_ALL);
    mem_do(b->qp[side], &wr, 0);
    return mr;
}

/* So many pieces in a packet that no list of them would do. */
static void test_tiny_pieces(void)
{
    Bench b;
    uint8_t *data, *got = g_malloc0(TINY);
    Mr *memory;
    SendWr wr;
    Sge sge;
    Wc wc;

    bench_init(&b, 3231);
    b.mr = tiny_new(&b, 0, &memory);
    data = pair_data(b.pair, TINY);
    for (unsigned i = 0; i < TINY; i++) {
        mr_write(memory, TINY_AT(i), data + i, 1);
    }
    wr = pair_send(b.pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 9, &sge, 0, TINY, 0);
    sge = (Sge) { .va = VA, .len = TINY, .lkey = b.mr->key };
    g_assert_true(qp_post_send(b.qp[0], &wr, 1));
    cq_expect(b.pair->cq[0], &wc, 9, 0);
    mr_read(b.pair->mr[1], 0, got, TINY);
    g_assert_cmpmem(got, TINY, data, TINY);
    g_free(data);
    g_free(got);
    bench_free(&b);
}

/*
 * However many there are in the packets that wait, a turn ends: its shares are
 * of so many look-ups, and the packet with which they are used up.
 */
static void test_pieces_share(void)
{
    enum {
        NSGE = 6,
        MESSAGES = 24,
        MOST = HCA_V2P_SHARE_PIECES + 2 * NSGE * TINY,
    };
    uint64_t seen[2], now;
    Bench b;
    Mr *memory;
    Sge sge[2][NSGE];
    Wc wc;

    bench_init(&b, 3232);
    for (unsigned side = 0; side < 2; side++) {
        uint32_t key = tiny_new(&b, side, &memory)->key;

        for (unsigned i = 0; i < NSGE; i++) {
            sge[side][i] = (Sge) { .va = VA, .len = TINY, .lkey = key };
        }
        seen[side] = pair_counter(b.pair, side, "v2p_pieces");
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        RecvWr recv = { .wr_id = i, .sge = sge[1], .nsge = NSGE };
        SendWr send = {
            .wr_id = i,
            .opcode = RDMA_HCA_OPCODE_SEND,
            .flags = SEND_SIGNALED,
            .sge = sge[0],
            .nsge = NSGE,
        };

        g_assert_true(qp_post_recv(b.qp[1], &recv, 1));
        g_assert_true(qp_post_send(b.qp[0], &send, 1));
    }
    while (lab_step(b.pair->lab)) {
        for (unsigned side = 0; side < 2; side++) {
            now = pair_counter(b.pair, side, "v2p_pieces");
            g_assert_cmpuint(now - seen[side], <=, MOST);
            seen[side] = now;
        }
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        cq_expect(b.pair->cq[0], &wc, i, 0);
        cq_expect(b.pair->cq[1], &wc, i, 0);
    }
    bench_free(&b);
}

/* A key without memory: reads as 0, takes all; of any protection domain. */
static void test_null(void)
{
    Bench b;
    Mr *null;
    Sge sge[3];
    SendWr wr;
    RecvWr recv;
    uint8_t got[40];
    Wc wc;

    bench_init(&b, 3240);
    null = mem_null_new(b.pair->drv[1], pd_new(b.pair->drv[1]), 0, UINT64_MAX);
    mr_fill(b.pair->mr[0], 0, 0x11, 4096);
    mr_fill(b.pair->mr[1], 0, 0x22, 4096);
    /* The middle of a message is nowhere. */
    sge[0] = mr_sge(b.pair->mr[1], 0, 10);
    sge[1] = (Sge) { .va = VA, .len = 20, .lkey = null->key };
    sge[2] = mr_sge(b.pair->mr[1], 10, 10);
    recv = (RecvWr) { .wr_id = 1, .nsge = 3, .sge = sge };
    g_assert_true(qp_post_recv(b.qp[1], &recv, 1));
    wr = pair_send(b.pair, 0, RDMA_HCA_OPCODE_SEND, 2, &sge[0], 0, 40, 0);
    g_assert_true(qp_post_send(b.qp[0], &wr, 1));
    cq_expect(b.pair->cq[0], &wc, 2, 0);
    cq_expect(b.pair->cq[1], &wc, 1, 0);
    g_assert_cmpuint(wc.byte_len, ==, 40);
    mr_read(b.pair->mr[1], 0, got, 40);
    for (unsigned i = 0; i < 40; i++) {
        g_assert_cmphex(got[i], ==, i < 20 ? 0x11 : 0x22);
    }
    wr = pair_send(b.pair, 1, RDMA_HCA_OPCODE_RDMA_WRITE, 3, &sge[0], 0, 10, 0);
    sge[1] = (Sge) { .va = UINT64_MAX - 20, .len = 20, .lkey = null->key };
    sge[2] = mr_sge(b.pair->mr[1], 30, 10);
    wr.nsge = 3;
    wr.sge = sge;
    g_assert_true(qp_post_send(b.qp[1], &wr, 1));
    cq_expect(b.pair->cq[1], &wc, 3, 0);
    mr_read(b.pair->mr[0], 0, got, 40);
    for (unsigned i = 0; i < 40; i++) {
        g_assert_cmphex(got[i], ==, i < 10 ? 0x11 : i < 30 ? 0 : 0x22);
    }
    /* Nobody else has it. */
    b.mr = null;
    try(&b, RDMA_HCA_OPCODE_RDMA_READ, VA, 8, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* What is refused: who asks, for which entry, with what. */

typedef struct Bad {
    const char *name;
    void (*spoil)(Bench *b, SendWr *wr);
    uint8_t vendor_err;
} Bad;

static void other_index(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->key = GUINT32_TO_LE(b->mr->key + 0x100);
}

static void other_lap(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->key = GUINT32_TO_LE(b->mr->key ^ 1u << 31);
}

static void plain_region(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->key = GUINT32_TO_LE(b->pair->mr[1]->key);
}

static void valid_region(Bench *b, SendWr *wr)
{
    mem_register(b->qp[1], b->mr, VA, LEN, ACCESS_ALL);
    mem_reg_unit(wr)->key = GUINT32_TO_LE(mem_next_key(b->mr->key));
}

static void other_pd(Bench *b, SendWr *wr)
{
    Mr *mr = mem_region_new(b->pair->drv[1], pd_new(b->pair->drv[1]), PAGES);

    mem_reg_unit(wr)->key = GUINT32_TO_LE(mr->key);
}

static void unknown_rights(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->access = GUINT32_TO_LE(1 << 7);
}

/* A peer may not write to what its owner may not (IBA 10.6.3.1). */
static void remote_write_alone(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->access = GUINT32_TO_LE(RDMA_HCA_ACCESS_REMOTE_WRITE);
}

static void atomic_alone(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->access = GUINT32_TO_LE(RDMA_HCA_ACCESS_REMOTE_ATOMIC |
                                             RDMA_HCA_ACCESS_REMOTE_READ);
}

static void on_demand(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->access = GUINT32_TO_LE(RDMA_HCA_ACCESS_ON_DEMAND);
}

static void too_many(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->entries = GUINT32_TO_LE(PAGES + 1);
}

static void far_too_many(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->entries = GUINT32_TO_LE(0x80000001);
}

static void too_few(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->entries = GUINT32_TO_LE(LEN / HOST_PAGE_SIZE - 1);
}

static void too_long(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->length_h = GUINT32_TO_LE(0x80000000);
    mem_reg_unit(wr)->length_l = GUINT32_TO_LE(1);
}

static void around_the_end(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->start_h = GUINT32_TO_LE(UINT32_MAX);
    mem_reg_unit(wr)->start_l = GUINT32_TO_LE(0xfffff000);
}

static void small_pages(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->page_size = GUINT32_TO_LE(11);
}

static void huge_pages(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->page_size = GUINT32_TO_LE(32);
}

static void no_list(Bench *b, SendWr *wr)
{
    mem_reg_unit(wr)->list_h = GUINT32_TO_LE(0x7777);
}

static const Bad bad[] = {
    { "index", other_index, REFUSED(KEY_ERR) },
    { "lap", other_lap, REFUSED(KEY_ERR) },
    { "plain-region", plain_region, REFUSED(FLAGS_ERR) },
    { "valid-region", valid_region, REFUSED(KEY_ERR) },
    { "pd", other_pd, REFUSED(PD_ERR) },
    { "rights", unknown_rights, REFUSED(FLAGS_ERR) },
    { "remote-write-alone", remote_write_alone, REFUSED(FLAGS_ERR) },
    { "atomic-alone", atomic_alone, REFUSED(FLAGS_ERR) },
    { "on-demand", on_demand, REFUSED(FLAGS_ERR) },
    { "too-many", too_many, REFUSED(LENGTH_ERR) },
    { "far-too-many", far_too_many, REFUSED(LENGTH_ERR) },
    { "too-few", too_few, REFUSED(LENGTH_ERR) },
    { "too-long", too_long, REFUSED(LENGTH_ERR) },
    { "around-the-end", around_the_end, REFUSED(LENGTH_ERR) },
    { "small-pages", small_pages, REFUSED(LENGTH_ERR) },
    { "huge-pages", huge_pages, REFUSED(LENGTH_ERR) },
    { "no-list", no_list, REFUSED(DMA_ERR) },
};

static void test_refused(gconstpointer data)
{
    const Bad *row = data;
    struct rdma_hca_mpt before, after;
    Bench b;
    SendWr wr;

    bench_init(&b, 3300);
    wr = mem_reg_wr(b.mr, mem_list_new(b.mr->drv, b.mr->page, PAGES), VA, LEN,
                    ACCESS_ALL);
    row->spoil(&b, &wr);
    before = mem_query(b.mr->drv, b.mr->key);
    g_assert_cmphex(mem_do(b.qp[1], &wr, LOCAL_QP_OP_ERR), ==, row->vendor_err);
    after = mem_query(b.mr->drv, b.mr->key);
    g_assert_cmpmem(&after, sizeof(after), &before, sizeof(before));
    g_assert_cmpuint(qp_state(b.qp[1]), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_mem_ops_refused"), ==, 1);
    bench_free(&b);
}

/* A process writes its own WQEs: REG_MR is the kernel's. */
static void test_privilege(void)
{
    Bench b;
    QpConfig config;
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];

    bench_init(&b, 3301);
    qp_config_init(&config, b.pair->pd[1], b.pair->cq[1]);
    config.privileged = false;
    qp[1] = qp_new(b.pair->drv[1], &config);
    qp[0] = pair_new_qp(b.pair, 0, RDMA_HCA_QP_ST_RC);
    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
    wr = mem_reg_wr(b.mr, mem_list_new(b.mr->drv, b.mr->page, PAGES), VA, LEN,
                    ACCESS_ALL);
    g_assert_cmpuint(mem_do(qp[1], &wr, LOCAL_QP_OP_ERR), ==,
                     HCA_WQE_BAD_OPCODE);
    g_assert_true(mem_is_free(b.mr->drv, b.mr->key));
    bench_free(&b);
}

/* Of UC, too, which only stops sending; not of UD. */
static void test_services(void)
{
    Bench b;
    SendWr wr;
    Qp *qp[2], *ud;

    bench_init(&b, 3302);
    pair_connect_service(b.pair, RDMA_HCA_QP_ST_UC, NULL, qp);
    mem_register(qp[1], b.mr, VA, LEN, ACCESS_ALL);
    check_data(&b);
    mem_invalidate(qp[1], b.mr);
    wr = mem_reg_wr(b.mr, 0, VA, LEN, ACCESS_ALL);
    mem_reg_unit(&wr)->page_size = 0;
    mem_do(qp[1], &wr, LOCAL_QP_OP_ERR);
    g_assert_cmpuint(qp_state(qp[1]), ==, RDMA_HCA_QP_STATE_SQE);
    ud = pair_new_ud(b.pair, 1);
    wr.ud = NULL;
    g_assert_cmpuint(mem_do(ud, &wr, LOCAL_QP_OP_ERR), ==, HCA_WQE_BAD_OPCODE);
    bench_free(&b);
}

/* A unit that is not all there. */
static void test_short_units(void)
{
    for (unsigned size = 0; size < 48; size += 16) {
        Bench b;
        SendWr wr;

        bench_init(&b, 3303);
        wr = mem_reg_wr(b.mr, 0, VA, LEN, ACCESS_ALL);
        wr.unit_size = size;
        g_assert_cmpuint(mem_do(b.qp[1], &wr, LOCAL_QP_OP_ERR), ==,
                         HCA_WQE_BAD_UNITS);
        bench_free(&b);
    }
}

/* FR-14: the requests behind it may use the key at once, in one chain. */
static void test_chain(void)
{
    Bench b;
    SendWr wr[3];
    Sge sge[3];
    Wc wc;

    bench_init(&b, 3400);
    b.mr->va = VA;
    b.mr->len = LEN;
    mr_fill(b.mr, 0, 0x5c, LEN);
    b.mr->key = mem_next_key(b.mr->key);
    wr[0] = mem_reg_wr(b.mr, mem_list_new(b.mr->drv, b.mr->page, PAGES), VA,
                       LEN, RDMA_HCA_ACCESS_LOCAL_WRITE);
    wr[0].flags = 0; /* no completion */
    wr[1] = pair_send(b.pair, 1, RDMA_HCA_OPCODE_RDMA_WRITE, 2, &sge[1], 0, 64,
                      0);
    sge[1] = mr_sge(b.mr, 0, LEN);
    wr[2] = mem_inv_wr(b.mr->key);
    g_assert_true(qp_post_send(b.qp[1], wr, 3));
    cq_expect(b.pair->cq[1], &wc, 2, 0);
    cq_expect(b.pair->cq[1], &wc, wr[2].wr_id, 0);
    mr_read(b.pair->mr[0], LEN - 1, wr[0].unit, 1);
    g_assert_cmphex(wr[0].unit[0], ==, 0x5c);
    g_assert_true(mem_is_free(b.mr->drv, b.mr->key));
    cq_expect_none(b.pair->cq[1]);
    bench_free(&b);
}

/* The spare entry is made anew: the status. */
static uint8_t entry_status(Bench *b, uint32_t flags, uint64_t length,
                            uint32_t entries, uint32_t pieces)
{
    const uint32_t index = SPARE_MPT;
    struct rdma_hca_mpt mpt = {
        .flags = GUINT32_TO_BE(RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | flags),
        .key = GUINT32_TO_BE(index << 8),
        .pd = GUINT32_TO_BE(b->mr->pd),
        .length_h = GUINT32_TO_BE(RDMA_HCA_HI32(length)),
        .length_l = GUINT32_TO_BE(RDMA_HCA_LO32(length)),
        .mtt_seg_l = GUINT32_TO_BE(b->mr->mtt),
        .mtt_sz = GUINT32_TO_BE(entries),
        .pieces = GUINT32_TO_BE(pieces),
    };

    driver_cmd(b->mr->drv, RDMA_HCA_CMD_HW2SW_MPT, 0, index, 0, 0, NULL);
    return driver_cmd_in(b->mr->drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt),
                         index, 0);
}

/* SW2HW_MPT of entries for it. */
static void test_entries(void)
{
    static const struct {
        uint32_t flags;
        uint64_t length;
        uint32_t entries;
        uint8_t status;
    } rows[] = {
        { RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_FREE, 0, 8, RDMA_HCA_STAT_OK },
        { RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_FREE, 0, 0, RDMA_HCA_STAT_OK },
        { RDMA_HCA_MPT_FAST_REG, 4096, 8, RDMA_HCA_STAT_OK },
        { RDMA_HCA_MPT_FREE, 0, 8, RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_FREE, 1, 8,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_PHYSICAL, 4096, 0,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_NULL, 4096, 0,
          RDMA_HCA_STAT_BAD_PARAM },
        /* Its range has to be in the table, now that nobody else looks. */
        { RDMA_HCA_MPT_FAST_REG | RDMA_HCA_MPT_FREE, 0, UINT32_MAX,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_NULL, UINT64_MAX, 0, RDMA_HCA_STAT_OK },
        { RDMA_HCA_MPT_NULL | RDMA_HCA_MPT_PHYSICAL, 4096, 0,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_NULL | RDMA_HCA_ACCESS_REMOTE_READ, 4096, 0,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_NULL | RDMA_HCA_ACCESS_MW_BIND, 4096, 0,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_PIECES | RDMA_HCA_MPT_PHYSICAL, 4096, 0,
          RDMA_HCA_STAT_BAD_PARAM },
        { RDMA_HCA_MPT_PIECES, 4096, 8, RDMA_HCA_STAT_OK },
    };
    Bench b;

    bench_init(&b, 3500);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("row %u", i);
        g_assert_cmphex(
            entry_status(&b, rows[i].flags, rows[i].length, rows[i].entries, 0),
            ==, rows[i].status);
    }
    bench_free(&b);
}

/* No more pieces than a REG_MR may name, nor than there is place for. */
static void test_piece_entries(void)
{
    static const struct {
        uint32_t entries;
        uint32_t pieces;
        uint8_t status;
    } rows[] = {
        { 2 * TINY, TINY, RDMA_HCA_STAT_OK },
        { 2 * TINY + 2, TINY + 1, RDMA_HCA_STAT_BAD_PARAM },
        { 7, 3, RDMA_HCA_STAT_OK },
        { 7, 4, RDMA_HCA_STAT_BAD_PARAM },
        { 7, UINT32_MAX, RDMA_HCA_STAT_BAD_PARAM },
    };
    Bench b;

    bench_init(&b, 3502);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("row %u", i);
        g_assert_cmphex(entry_status(&b, RDMA_HCA_MPT_PIECES, 4096,
                                     rows[i].entries, rows[i].pieces),
                        ==, rows[i].status);
    }
    bench_free(&b);
}

/*
 * The caches: a line of each that a REG_MR writes is the one that requests and
 * commands see, and ICM has it after SYNC_TPT.
 */
static void test_caches(void)
{
    HcaConfig config[2];
    Bench b;
    Mr *mr[24];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].mpt_cache_size = config[i].mtt_cache_size = 64;
        config[i].cache_ways = 1;
    }
    b.pair = pair_new_with(3501, 65536, config, NULL, NULL);
    pair_connect(b.pair, NULL, b.qp);
    for (unsigned i = 0; i < G_N_ELEMENTS(mr); i++) {
        mr[i] = mem_region_new(b.pair->drv[1], b.pair->pd[1], PAGES);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(mr); i++) {
            mem_register(b.qp[1], mr[i], VA * i + round, LEN, ACCESS_ALL);
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(mr); i++) {
            b.mr = mr[i];
            check_data(&b);
            mem_invalidate(b.qp[1], mr[i]);
        }
    }
    g_assert_cmphex(
        driver_cmd(b.pair->drv[1], RDMA_HCA_CMD_SYNC_TPT, 0, 0, 0, 0, NULL), ==,
        0);
    bench_free(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/life", test_life);
    test_add_each_link("/dead-keys", test_dead_keys);
    test_add_each_link("/bounds", test_bounds);
    test_add_each_link("/addresses", test_addresses);
    test_add_each_link("/zero-based", test_zero_based);
    test_add("/page-sizes", test_page_sizes);
    test_add_each_link("/local-use", test_local_use);
    test_add_each_link("/pieces", test_pieces);
    test_add_each_link("/pieces-by-command", test_pieces_by_command);
    test_add_each_link("/tiny-pieces", test_tiny_pieces);
    test_add_each_link("/pieces-share", test_pieces_share);
    test_add_each_link("/null", test_null);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        test_add_data_each_link(test_named("/refused/%s", bad[i].name), &bad[i],
                                test_refused);
    }
    test_add_each_link("/privilege", test_privilege);
    test_add_each_link("/services", test_services);
    test_add("/short-units", test_short_units);
    test_add_each_link("/chain", test_chain);
    test_add("/entries", test_entries);
    test_add("/piece-entries", test_piece_entries);
    test_add("/caches", test_caches);
    return g_test_run();
}
