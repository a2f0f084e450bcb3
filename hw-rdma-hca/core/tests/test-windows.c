/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows (IBA 10.6.6, 10.6.7; verbs: types 1 and 2B): who may bind what
 * to what, what a peer may do with it, and what a region may not while windows
 * are bound to it.
 */
#include <string.h>

#include "lib-make.h"
#include "lib-mem.h"
#include "lib-test.h"

#define LEN (4 * HOST_PAGE_SIZE)
#define SPARE_MPT 1000
#define VA UINT64_C(0x660000000123)
#define BINDABLE (ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND)
#define REMOTE                                                                 \
    (RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |              \
     RDMA_HCA_ACCESS_REMOTE_ATOMIC)
#define MW_BIND_ERR RDMA_HCA_SYNDROME_MW_BIND_ERR
#define LOCAL_QP_OP_ERR RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR
#define REMOTE_ACCESS_ERR RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define REFUSED(state) (0x10 | HCA_V2P_##state)

/* A connection; region and windows are on side 1. */
typedef struct Bench {
    Pair *pair;
    Driver *drv;
    Qp *qp[2];
    Mr *mr;
} Bench;

static void bench_init(Bench *b, uint32_t seed)
{
    b->pair = pair_new(seed, 65536);
    b->drv = b->pair->drv[1];
    pair_connect(b->pair, NULL, b->qp);
    b->mr = mr_new(b->drv, b->pair->pd[1], VA, LEN, BINDABLE);
}

static void bench_free(Bench *b)
{
    pair_free(b->pair);
}

static void try(Bench *b, uint8_t opcode, uint32_t rkey, uint64_t va,
                uint32_t len, uint8_t syndrome)
{
    mem_try(b->pair, b->qp[0], 0, opcode, rkey, va, len, syndrome);
}

/* A peer sees the part of the region, and only that. */
static void check_window(Bench *b, uint32_t rkey, uint64_t at, uint32_t len,
                         uint64_t va)
{
    uint8_t *data = pair_data(b->pair, len);
    uint8_t *image = mr_image(b->mr);

    mr_write(b->pair->mr[0], 0, data, len);
    try(b, WRITE, rkey, va, len, 0);
    memcpy(image + at, data, len);
    mr_check_image(b->mr, image);
    mr_fill(b->pair->mr[0], 0, 0, len);
    try(b, READ, rkey, va, len, 0);
    mr_read(b->pair->mr[0], 0, image, len);
    g_assert_cmpmem(image, len, data, len);
    g_free(image);
    g_free(data);
}

static void make_valid(Bench *b, unsigned type, uint64_t va)
{
    uint32_t window = mem_window_new(b->drv, b->pair->pd[1], type);

    window = mem_bind(b->qp[1], type, window, b->mr, VA + 4000, 5000, REMOTE);
    check_window(b, window, 4000, 5000, va);
}

/* Both types, over pages, to the byte. */
static void test_bind(void)
{
    for (unsigned type = 1; type <= 2; type++) {
        Bench b;
        uint32_t window;

        bench_init(&b, 4000 + type);
        make_valid(&b, type, VA + 4000);
        g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 1);
        window = mem_window_new(b.drv, b.pair->pd[1], type);
        window = mem_bind(b.qp[1], type, window, b.mr, VA + 4000, 5000, REMOTE);
        g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 2);
        g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_windows"), ==, 2);
        try(&b, READ, window, VA + 4000, 5001, REMOTE_ACCESS_ERR);
        bench_free(&b);
    }
}

/* Parts at random, of regions of pages of any size, compared byte by byte. */
static void test_parts(void)
{
    for (unsigned shift = 12; shift <= 16; shift += 2) {
        Bench b;
        uint32_t window;

        bench_init(&b, 4010 + shift);
        b.mr = mr_new_pages(b.drv, b.pair->pd[1], VA, 3 << shift, BINDABLE,
                            shift);
        window = mem_window_new(b.drv, b.pair->pd[1], 1);
        for (unsigned i = 0; i < 40; i++) {
            uint32_t at = pair_rand(b.pair, 0, b.mr->len);
            uint32_t len = pair_rand(b.pair, 1, MIN(b.mr->len - at, 30000) + 1);

            window = mem_bind(b.qp[1], 1, window, b.mr, VA + at, len, REMOTE);
            check_window(&b, window, at, len, VA + at);
            g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 1);
        }
        bench_free(&b);
    }
}

/* Of a region that is all memory; BIND_ENABLE is what allows it. */
static void test_physical(void)
{
    Bench b;
    Mr all = { .key = GOOD_KEY(SPARE_MPT) };
    struct rdma_hca_mpt mpt;
    uint32_t window;
    uint64_t bus;
    char got[8];

    bench_init(&b, 4020);
    bus = mr_bus(b.mr, 100);
    mpt = good_mpt(all.key,
                   RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | ACCESS_ALL |
                       RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_BIND_ENABLE,
                   b.pair->pd[1], 0, UINT64_C(1) << 40, 0);
    g_assert_cmphex(driver_cmd_in(b.drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt,
                                  sizeof(mpt), SPARE_MPT, 0),
                    ==, 0);
    mr_write(b.mr, 102, "physics", 8);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(b.qp[1], 2, window, &all, bus, 64,
                      REMOTE | RDMA_HCA_ACCESS_ZERO_BASED);
    try(&b, READ, window, 2, 8, 0);
    mr_read(b.pair->mr[0], 0, got, 8);
    g_assert_cmpstr(got, ==, "physics");
    window = mem_window_new(b.drv, b.pair->pd[1], 1);
    window = mem_bind(b.qp[1], 1, window, &all, bus, 64, REMOTE);
    try(&b, READ, window, bus + 63, 1, 0);
    try(&b, READ, window, bus + 63, 2, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* Of a region of pieces. */
static void test_of_pieces(void)
{
    Bench b;
    MemPiece piece[3];
    Mr *memory;
    uint32_t window;
    uint8_t *data;
    uint8_t got[200];
    SendWr wr;

    bench_init(&b, 4021);
    memory = b.mr;
    b.mr = mem_pieces_new(b.drv, b.pair->pd[1], 3);
    piece[0] = (MemPiece) { mr_bus(memory, 8000), 100 };
    piece[1] = (MemPiece) { mr_bus(memory, 10), 103 };
    piece[2] = (MemPiece) { mr_bus(memory, 4000), 190 };
    wr = mem_reg_pieces_wr(b.mr, mem_piece_list_new(b.drv, piece, 3), 3, VA,
                           190, BINDABLE);
    mem_do(b.qp[1], &wr, 0);
    data = pair_data(b.pair, 190);
    mr_write(memory, 8000, data, 100);
    mr_write(memory, 10, data + 100, 3);
    mr_write(memory, 4000, data + 103, 87);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(b.qp[1], 2, window, b.mr, VA + 98, 90,
                      REMOTE | RDMA_HCA_ACCESS_ZERO_BASED);
    for (unsigned at = 0; at < 90; at += 7) {
        try(&b, READ, window, at, 90 - at, 0);
        mr_read(b.pair->mr[0], 0, got, 90 - at);
        g_assert_cmpmem(got, 90 - at, data + 98 + at, 90 - at);
    }
    try(&b, READ, window, 1, 90, REMOTE_ACCESS_ERR);
    g_free(data);
    bench_free(&b);
}

/* Type 2 may count from 0; type 1 may not. */
static void test_zero_based(void)
{
    uint32_t access = REMOTE | RDMA_HCA_ACCESS_ZERO_BASED;
    Bench b;
    uint32_t window;
    SendWr wr;

    bench_init(&b, 4022);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(b.qp[1], 2, window, b.mr, VA + 4000, 5000, access);
    check_window(&b, window, 4000, 5000, 0);
    check_window(&b, window, 4000 + 4990, 10, 4990);
    window = mem_window_new(b.drv, b.pair->pd[1], 1);
    wr = mem_bind_wr(1, mem_next_key(window), b.mr, VA, 10, access);
    g_assert_cmphex(mem_do(b.qp[1], &wr, MW_BIND_ERR), ==, REFUSED(FLAGS_ERR));
    bench_free(&b);
}

/* The window's rights, not the region's. */
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
            Bench b;
            uint32_t window;

            bench_init(&b, 4030);
            window = mem_window_new(b.drv, b.pair->pd[1], 1);
            window = mem_bind(b.qp[1], 1, window, b.mr, VA + 5, 64,
                              rows[i].access);
            try(&b, rows[j].opcode, window, VA + 5, 8,
                i == j ? 0 : REMOTE_ACCESS_ERR);
            bench_free(&b);
        }
    }
}

/* It is no local key, neither to read nor to write. */
static void test_not_local(void)
{
    for (unsigned type = 1; type <= 2; type++) {
        Bench b;
        uint32_t window;
        SendWr wr;
        Sge sge;
        Wc wc;

        bench_init(&b, 4040);
        window = mem_window_new(b.drv, b.pair->pd[1], type);
        window = mem_bind(b.qp[1], type, window, b.mr, VA, 64, REMOTE);
        wr = pair_send(b.pair, 1, WRITE, 1, &sge, 0, 8, 0);
        sge = (Sge) { .va = VA, .len = 8, .lkey = window };
        g_assert_true(qp_post_send(b.qp[1], &wr, 1));
        cq_expect(b.pair->cq[1], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
        bench_free(&b);
    }
}

/* MW-2: type 1 is bound again and again, and with length 0 to nothing. */
static void test_type1_life(void)
{
    Bench b;
    uint32_t window, old;
    Mr *other;

    bench_init(&b, 4050);
    other = mr_new(b.drv, b.pair->pd[1], 0x1000, LEN, BINDABLE);
    window = mem_window_new(b.drv, b.pair->pd[1], 1);
    for (unsigned i = 0; i < 300; i++) {
        window = mem_bind(b.qp[1], 1, window, b.mr, VA, 10 + i, REMOTE);
        window = mem_bind(b.qp[1], 1, window, other, 0x1000 + i, 10, REMOTE);
        g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 0);
        g_assert_cmpuint(mem_windows(b.drv, other->key), ==, 1);
        if (i & 1) {
            window = mem_bind(b.qp[1], 1, window, NULL, 0, 0, 0);
            g_assert_cmpuint(mem_windows(b.drv, other->key), ==, 0);
        }
    }
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_windows"), ==, 0);
    /* With its old key it is nothing. */
    old = mem_bind(b.qp[1], 1, window, b.mr, VA, 64, REMOTE);
    window = mem_bind(b.qp[1], 1, old, b.mr, VA, 64, REMOTE);
    try(&b, READ, window, VA, 64, 0);
    try(&b, READ, old, VA, 64, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* Unbound, it is a key that gives nothing. */
static void test_unbound(void)
{
    for (unsigned type = 1; type <= 2; type++) {
        Bench b;
        uint32_t window;

        bench_init(&b, 4060);
        window = mem_window_new(b.drv, b.pair->pd[1], type);
        try(&b, READ, window, 0, 0, 0); /* IBA 9.7.4.1.7: no R_Key */
        try(&b, READ, window, 0, 1, REMOTE_ACCESS_ERR);
        bench_free(&b);
    }
}

/* MW-3: type 2B is its QP's. Another one of the same PD is refused. */
static void test_type2_qp(void)
{
    Bench b;
    uint32_t window, first;
    Qp *qp[2];

    bench_init(&b, 4070);
    pair_connect(b.pair, NULL, qp);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(b.qp[1], 2, window, b.mr, VA, 64, REMOTE);
    check_window(&b, window, 0, 64, VA);
    /* Type 1 is the PD's. */
    first = mem_window_new(b.drv, b.pair->pd[1], 1);
    first = mem_bind(b.qp[1], 1, first, b.mr, VA, 64, REMOTE);
    mem_try(b.pair, qp[0], 0, READ, first, VA, 64, 0);
    mem_try(b.pair, qp[0], 0, READ, window, VA, 64, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* Free, bound, free by LOCAL_INV of its QP alone. */
static void test_type2_life(void)
{
    Bench b;
    uint32_t window;
    SendWr wr;
    Qp *qp[2];

    bench_init(&b, 4071);
    pair_connect(b.pair, NULL, qp);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    for (unsigned i = 0; i < 40; i++) {
        g_assert_true(mem_is_free(b.drv, window));
        window = mem_bind(b.qp[1], 2, window, b.mr, VA + i, 64, REMOTE);
        g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 1);
        check_window(&b, window, i, 64, VA + i);
        wr = mem_inv_wr(window);
        mem_do(b.qp[1], &wr, 0);
        g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 0);
    }
    window = mem_bind(b.qp[1], 2, window, b.mr, VA, 64, REMOTE);
    wr = mem_inv_wr(window);
    g_assert_cmphex(mem_do(qp[1], &wr, LOCAL_QP_OP_ERR), ==, REFUSED(PD_ERR));
    try(&b, READ, window, VA, 64, 0);
    wr = mem_inv_wr(window);
    mem_do(b.qp[1], &wr, 0);
    try(&b, READ, window, VA, 64, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* A peer frees a window of type 2 with its last message. */
static void test_remote_invalidation(void)
{
    Bench b;
    uint32_t window;
    SendWr wr;
    Wc wc;

    bench_init(&b, 4072);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(b.qp[1], 2, window, b.mr, VA, 64, REMOTE);
    pair_post_recv(b.pair, 1, b.qp[1], 5, 0, 64);
    wr = mem_send_inv_wr(window);
    mem_do(b.qp[0], &wr, 0);
    cq_expect(b.pair->cq[1], &wc, 5, 0);
    g_assert_cmphex(wc.inv_rkey, ==, window);
    g_assert_true(mem_is_free(b.drv, window));
    g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 0);
    try(&b, READ, window, VA, 64, REMOTE_ACCESS_ERR);
    bench_free(&b);
}

/* MW-5: a region with windows stays. */
static void test_region_bound(void)
{
    for (unsigned type = 1; type <= 2; type++) {
        Bench b;
        uint32_t window;

        bench_init(&b, 4080);
        window = mem_window_new(b.drv, b.pair->pd[1], type);
        window = mem_bind(b.qp[1], type, window, b.mr, VA, 64, REMOTE);
        g_assert_cmphex(mr_deregister(b.mr), ==, RDMA_HCA_STAT_REG_BOUND);
        check_window(&b, window, 0, 64, VA);
        /* HW2SW_MPT of the window unbinds it. */
        g_assert_cmphex(mem_window_free(b.drv, window), ==, 0);
        g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_windows"), ==, 0);
        g_assert_cmphex(mr_deregister(b.mr), ==, 0);
        try(&b, READ, window, VA, 64, REMOTE_ACCESS_ERR);
        bench_free(&b);
    }
}

/* Nor can it be invalidated, here or from there. */
static void test_region_not_invalidated(void)
{
    for (unsigned remote = 0; remote < 2; remote++) {
        Bench b;
        uint32_t window;
        SendWr wr;

        bench_init(&b, 4081);
        b.mr = mem_region_new(b.drv, b.pair->pd[1], 4);
        mem_register(b.qp[1], b.mr, VA, 4096, BINDABLE);
        window = mem_window_new(b.drv, b.pair->pd[1], 1);
        mem_bind(b.qp[1], 1, window, b.mr, VA, 64, REMOTE);
        if (remote) {
            pair_post_recv(b.pair, 1, b.qp[1], 5, 0, 64);
            wr = mem_send_inv_wr(b.mr->key);
            mem_do(b.qp[0], &wr, REMOTE_ACCESS_ERR);
        } else {
            wr = mem_inv_wr(b.mr->key);
            g_assert_cmphex(mem_do(b.qp[1], &wr, LOCAL_QP_OP_ERR), ==,
                            REFUSED(FLAGS_ERR));
        }
        g_assert_false(mem_is_free(b.drv, b.mr->key));
        bench_free(&b);
    }
}

/* What a bind is refused for; nothing has changed then. */

typedef struct Bad {
    const char *name;
    unsigned type;
    void (*spoil)(Bench *b, uint32_t window, SendWr *wr);
    uint8_t vendor_err;
} Bad;

static void other_index(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->rkey = GUINT32_TO_LE(window ^ 0x300);
}

static void other_lap(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->rkey = GUINT32_TO_LE(window ^ 1u << 31);
}

static void key_of_region(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->rkey = GUINT32_TO_LE(b->mr->key);
}

static void other_type(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->type = GUINT32_TO_LE(
        3 - GUINT32_FROM_LE(mem_bind_unit(wr)->type));
}

static void no_type(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->type = 0;
}

static void nothing(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->length_l = 0;
}

static void bound_already(Bench *b, uint32_t window, SendWr *wr)
{
    window = mem_bind(b->qp[1], 2, window, b->mr, VA, 64, REMOTE);
    mem_bind_unit(wr)->rkey = GUINT32_TO_LE(mem_next_key(window));
}

static void window_of_other_pd(Bench *b, uint32_t window, SendWr *wr)
{
    window = mem_window_new(b->drv, pd_new(b->drv),
                            GUINT32_FROM_LE(mem_bind_unit(wr)->type));
    mem_bind_unit(wr)->rkey = GUINT32_TO_LE(window);
}

static void to_region(SendWr *wr, const Mr *mr)
{
    mem_bind_unit(wr)->lkey = GUINT32_TO_LE(mr->key);
}

static void region_of_other_pd(Bench *b, uint32_t window, SendWr *wr)
{
    to_region(wr, mr_new(b->drv, pd_new(b->drv), VA, LEN, BINDABLE));
}

static void not_bindable(Bench *b, uint32_t window, SendWr *wr)
{
    to_region(wr, mr_new(b->drv, b->pair->pd[1], VA, LEN, ACCESS_ALL));
}

static void no_local_write(Bench *b, uint32_t window, SendWr *wr)
{
    to_region(wr,
              mr_new(b->drv, b->pair->pd[1], VA, LEN,
                     RDMA_HCA_ACCESS_MW_BIND | RDMA_HCA_ACCESS_REMOTE_READ));
}

static void zero_based_region(Bench *b, uint32_t window, SendWr *wr)
{
    to_region(wr, mr_new(b->drv, b->pair->pd[1], 0, LEN,
                         BINDABLE | RDMA_HCA_ACCESS_ZERO_BASED));
    mem_bind_unit(wr)->addr_l = mem_bind_unit(wr)->addr_h = 0;
}

static void free_region(Bench *b, uint32_t window, SendWr *wr)
{
    to_region(wr, mem_region_new(b->drv, b->pair->pd[1], 4));
}

static void null_region(Bench *b, uint32_t window, SendWr *wr)
{
    to_region(wr, mem_null_new(b->drv, b->pair->pd[1], 0, UINT64_MAX));
}

static void window_as_region(Bench *b, uint32_t window, SendWr *wr)
{
    window = mem_window_new(b->drv, b->pair->pd[1], 1);
    window = mem_bind(b->qp[1], 1, window, b->mr, VA, LEN, REMOTE);
    mem_bind_unit(wr)->lkey = GUINT32_TO_LE(window);
}

static void old_key_of_region(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->lkey = GUINT32_TO_LE(mem_next_key(b->mr->key));
}

static void before(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(VA - 1));
}

static void behind(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->length_l = GUINT32_TO_LE(LEN + 1);
}

static void wrapping(Bench *b, uint32_t window, SendWr *wr)
{
    uint64_t len = UINT64_MAX - VA + 2 + LEN;

    mem_bind_unit(wr)->length_l = GUINT32_TO_LE(RDMA_HCA_LO32(len));
    mem_bind_unit(wr)->length_h = GUINT32_TO_LE(RDMA_HCA_HI32(len));
    mem_bind_unit(wr)->addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(VA + 1));
}

static void local_rights(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->access = GUINT32_TO_LE(REMOTE |
                                              RDMA_HCA_ACCESS_LOCAL_WRITE);
}

static void unknown_rights(Bench *b, uint32_t window, SendWr *wr)
{
    mem_bind_unit(wr)->access = GUINT32_TO_LE(REMOTE | 1u << 31);
}

#define BOTH 0

static const Bad bad[] = {
    { "index", BOTH, other_index, REFUSED(KEY_ERR) },
    { "lap", BOTH, other_lap, REFUSED(KEY_ERR) },
    { "key-of-region", BOTH, key_of_region, REFUSED(FLAGS_ERR) },
    { "other-type", BOTH, other_type, REFUSED(FLAGS_ERR) },
    { "no-type", BOTH, no_type, REFUSED(FLAGS_ERR) },
    { "nothing", 2, nothing, REFUSED(LENGTH_ERR) },
    { "bound-already", 2, bound_already, REFUSED(KEY_ERR) },
    { "window-of-other-pd", BOTH, window_of_other_pd, REFUSED(PD_ERR) },
    { "region-of-other-pd", BOTH, region_of_other_pd, REFUSED(PD_ERR) },
    { "not-bindable", BOTH, not_bindable, REFUSED(FLAGS_ERR) },
    { "no-local-write", BOTH, no_local_write, REFUSED(FLAGS_ERR) },
    { "zero-based-region", BOTH, zero_based_region, REFUSED(FLAGS_ERR) },
    { "free-region", BOTH, free_region, REFUSED(KEY_ERR) },
    { "null-region", BOTH, null_region, REFUSED(FLAGS_ERR) },
    { "window-as-region", BOTH, window_as_region, REFUSED(FLAGS_ERR) },
    { "old-key-of-region", BOTH, old_key_of_region, REFUSED(KEY_ERR) },
    { "before", BOTH, before, REFUSED(LENGTH_ERR) },
    { "behind", BOTH, behind, REFUSED(LENGTH_ERR) },
    { "wrapping", BOTH, wrapping, REFUSED(LENGTH_ERR) },
    { "local-rights", BOTH, local_rights, REFUSED(FLAGS_ERR) },
    { "unknown-rights", BOTH, unknown_rights, REFUSED(FLAGS_ERR) },
};

static void check_refused(const Bad *row, unsigned type)
{
    struct rdma_hca_mpt before, after;
    uint32_t window;
    Bench b;
    SendWr wr;

    bench_init(&b, 4100);
    window = mem_window_new(b.drv, b.pair->pd[1], type);
    wr = mem_bind_wr(type, mem_next_key(window), b.mr, VA, LEN, REMOTE);
    row->spoil(&b, window, &wr);
    before = mem_query(b.drv, window);
    g_assert_cmphex(mem_do(b.qp[1], &wr, MW_BIND_ERR), ==, row->vendor_err);
    after = mem_query(b.drv, window);
    g_assert_cmpmem(&after, sizeof(after), &before, sizeof(before));
    g_assert_cmpuint(qp_state(b.qp[1]), ==, RDMA_HCA_QP_STATE_ERR);
    bench_free(&b);
}

static void test_refused(gconstpointer data)
{
    const Bad *row = data;

    for (unsigned type = 1; type <= 2; type++) {
        if (row->type == BOTH || row->type == type) {
            check_refused(row, type);
        }
    }
}

/* A bind that fails leaves a window of type 1 as it was bound. */
static void test_failed_rebind(void)
{
    Bench b;
    uint32_t window;
    SendWr wr;
    Qp *qp[2];

    bench_init(&b, 4200);
    pair_connect(b.pair, NULL, qp);
    window = mem_window_new(b.drv, b.pair->pd[1], 1);
    window = mem_bind(b.qp[1], 1, window, b.mr, VA, 64, REMOTE);
    wr = mem_bind_wr(1, mem_next_key(window), b.mr, VA, LEN + 1, REMOTE);
    mem_do(qp[1], &wr, MW_BIND_ERR);
    check_window(&b, window, 0, 64, VA);
    g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, 1);
    bench_free(&b);
}

/* Read rights need no LOCAL_WRITE of the region. */
static void test_read_only(void)
{
    Bench b;
    uint32_t window;

    bench_init(&b, 4201);
    b.mr = mr_new(b.drv, b.pair->pd[1], VA, LEN, RDMA_HCA_ACCESS_MW_BIND);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(b.qp[1], 2, window, b.mr, VA, 64,
                      RDMA_HCA_ACCESS_REMOTE_READ);
    try(&b, READ, window, VA, 64, 0);
    bench_free(&b);
}

/* Of UC, too; and a process may bind. */
static void test_services(void)
{
    Bench b;
    QpConfig config;
    QpAttr attr;
    uint32_t window;
    Qp *qp[2], *ud;
    SendWr wr;

    bench_init(&b, 4210);
    qp_config_init(&config, b.pair->pd[1], b.pair->cq[1]);
    config.privileged = false;
    config.service = RDMA_HCA_QP_ST_UC;
    qp[1] = qp_new(b.drv, &config);
    qp[0] = pair_new_qp(b.pair, 0, RDMA_HCA_QP_ST_UC);
    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
    window = mem_window_new(b.drv, b.pair->pd[1], 2);
    window = mem_bind(qp[1], 2, window, b.mr, VA, 64, REMOTE);
    mr_fill(b.pair->mr[0], 0, 0x19, 64);
    mem_try(b.pair, qp[0], 0, WRITE, window, VA, 64, 0);
    lab_run(b.pair->lab);
    mr_read(b.mr, 63, wr.unit, 1);
    g_assert_cmphex(wr.unit[0], ==, 0x19);
    wr = mem_bind_wr(2, window, b.mr, VA, 64, REMOTE);
    mem_do(qp[1], &wr, MW_BIND_ERR);
    g_assert_cmpuint(qp_state(qp[1]), ==, RDMA_HCA_QP_STATE_SQE);
    ud = pair_new_ud(b.pair, 1);
    g_assert_cmpuint(mem_do(ud, &wr, LOCAL_QP_OP_ERR), ==, HCA_WQE_BAD_OPCODE);
    bench_free(&b);
}

/* SW2HW_MPT takes key, PD and type; a window begins unbound whatever it says. */
static void test_entries(void)
{
    Bench b;
    uint32_t index = SPARE_MPT;
    struct rdma_hca_mpt mpt;

    bench_init(&b, 4220);
    memset(&mpt, 0xff, sizeof(mpt));
    mpt.flags = GUINT32_TO_BE(~RDMA_HCA_MPT_REGION);
    mpt.key = GUINT32_TO_BE(GOOD_KEY(index));
    mpt.pd = GUINT32_TO_BE(b.mr->pd);
    mpt.lkey = GUINT32_TO_BE(b.mr->key);
    g_assert_cmphex(driver_cmd_in(b.drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt,
                                  sizeof(mpt), index, 0),
                    ==, 0);
    mpt = mem_query(b.drv, GOOD_KEY(index));
    g_assert_cmphex(GUINT32_FROM_BE(mpt.flags), ==,
                    RDMA_HCA_MPT_FREE | RDMA_HCA_MPT_WINDOW2);
    g_assert_cmphex(mpt.length_h | mpt.length_l | mpt.lkey | mpt.qpn, ==, 0);
    bench_free(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bind", test_bind);
    test_add_each_link("/parts", test_parts);
    test_add("/physical", test_physical);
    test_add_each_link("/of-pieces", test_of_pieces);
    test_add_each_link("/zero-based", test_zero_based);
    test_add_each_link("/rights", test_rights);
    test_add_each_link("/not-local", test_not_local);
    test_add_each_link("/type1/life", test_type1_life);
    test_add_each_link("/unbound", test_unbound);
    test_add_each_link("/type2/qp", test_type2_qp);
    test_add_each_link("/type2/life", test_type2_life);
    test_add_each_link("/type2/remote-invalidation", test_remote_invalidation);
    test_add_each_link("/region/bound", test_region_bound);
    test_add_each_link("/region/not-invalidated", test_region_not_invalidated);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        test_add_data_each_link(test_named("/refused/%s", bad[i].name), &bad[i],
                                test_refused);
    }
    test_add_each_link("/failed-rebind", test_failed_rebind);
    test_add_each_link("/read-only", test_read_only);
    test_add_each_link("/services", test_services);
    test_add("/entries", test_entries);
    return g_test_run();
}
