/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What hostile work requests can do with keys: two QPs that want to be first,
 * keys that go while data flow through them, lists of pages that are not there.
 * Tables that are scribbled over: test-v2p.c.
 */
#include <string.h>

#include "lib-mem.h"
#include "lib-test.h"

#define VA UINT64_C(0x330000000000)
#define PAGES 15
#define LEN (PAGES * HOST_PAGE_SIZE)
#define REMOTE (RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ)

typedef struct Bench {
    Pair *pair;
    Driver *drv;
    Qp *qp[2];    /* of who uses the region */
    Qp *other[2]; /* of who takes it away */
    Mr *mr;
} Bench;

static void bench_init(Bench *b, uint32_t seed)
{
    b->pair = pair_new(seed, 65536);
    b->drv = b->pair->drv[1];
    pair_connect(b->pair, NULL, b->qp);
    pair_connect(b->pair, NULL, b->other);
    b->mr = mem_region_new(b->drv, b->pair->pd[1], PAGES);
    mem_register(b->other[1], b->mr, VA, LEN,
                 ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
}

static void bench_free(Bench *b)
{
    pair_free(b->pair);
}

/* Which of two came first, the other one is refused. */
static void test_bind_and_invalidate(void)
{
    for (unsigned round = 0; round < 6; round++) {
        Bench b;
        uint32_t window;
        SendWr inv, bind;
        bool bound = false, freed = false;
        Wc wc;

        bench_init(&b, 6000 + round);
        window = mem_window_new(b.drv, b.pair->pd[1], 1 + round % 2);
        inv = mem_inv_wr(b.mr->key);
        bind = mem_bind_wr(1 + round % 2, mem_next_key(window), b.mr, VA, 64,
                           REMOTE);
        if (round & 2) {
            g_assert_true(qp_post_send(b.other[1], &inv, 1));
        }
        g_assert_true(qp_post_send(b.qp[1], &bind, 1));
        if (!(round & 2)) {
            g_assert_true(qp_post_send(b.other[1], &inv, 1));
        }
        for (unsigned i = 0; i < 2; i++) {
            g_assert_true(cq_wait(b.pair->cq[1], &wc, NS_PER_S));
            if (wc.qpn == b.qp[1]->qpn) {
                bound = !wc.syndrome;
            } else {
                freed = !wc.syndrome;
            }
        }
        g_assert_true(bound != freed);
        g_assert_true(mem_is_free(b.drv, b.mr->key) == freed);
        g_assert_cmpuint(mem_windows(b.drv, b.mr->key), ==, bound);
        bench_free(&b);
    }
}

/* So many steps of the cards that some of the message has gone. */
static void begin(Bench *b, uint8_t opcode, unsigned steps)
{
    Sge sge;
    SendWr wr = pair_send(b->pair, 0, opcode, 1, &sge, 0, LEN, 0);

    wr.raddr = VA;
    wr.rkey = b->mr->key;
    wr.sge = &sge;
    g_assert_true(qp_post_send(b->qp[0], &wr, 1));
    for (unsigned i = 0; i < steps; i++) {
        lab_step(b->pair->lab);
    }
}

/* FR-17: when LOCAL_INV has completed nothing touches the memory any more. */
static void test_write_while_it_goes(void)
{
    unsigned ended[2] = { 0 };

    for (unsigned steps = 0; steps < 24; steps++) {
        Bench b;
        uint8_t *image;
        Wc wc;

        bench_init(&b, 6100);
        mr_fill(b.pair->mr[0], 0, 0xaa, LEN);
        begin(&b, RDMA_HCA_OPCODE_RDMA_WRITE, steps);
        mem_invalidate(b.other[1], b.mr);
        image = mr_image(b.mr);
        g_assert_true(cq_wait(b.pair->cq[0], &wc, PAIR_PATIENCE));
        lab_run(b.pair->lab);
        mr_check_image(b.mr, image);
        if (wc.syndrome) {
            g_assert_cmphex(wc.syndrome, ==,
                            RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
        } else {
            g_assert_cmphex(image[LEN - 1], ==, 0xaa);
        }
        ended[wc.syndrome != 0]++;
        g_free(image);
        bench_free(&b);
    }
    g_assert_cmpuint(ended[1], >, 0);
}

/* Nor is it read: what comes is what was there, or an error. */
static void test_read_while_it_goes(void)
{
    for (unsigned steps = 0; steps < 24; steps++) {
        Bench b;
        uint8_t *data, *got = g_malloc0(LEN);
        Wc wc;

        bench_init(&b, 6200);
        data = pair_data(b.pair, LEN);
        mr_write(b.mr, 0, data, LEN);
        begin(&b, RDMA_HCA_OPCODE_RDMA_READ, steps);
        mem_invalidate(b.other[1], b.mr);
        mr_fill(b.mr, 0, 0xee, LEN);
        g_assert_true(cq_wait(b.pair->cq[0], &wc, PAIR_PATIENCE));
        if (wc.syndrome) {
            g_assert_cmphex(wc.syndrome, ==,
                            RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
        } else {
            mr_read(b.pair->mr[0], 0, got, LEN);
            g_assert_cmpmem(got, LEN, data, LEN);
        }
        g_free(data);
        g_free(got);
        bench_free(&b);
    }
}

/* The same of a window that is bound elsewhere meanwhile. */
static void test_rebind_while_data_flow(void)
{
    for (unsigned steps = 0; steps < 24; steps++) {
        Bench b;
        Mr *elsewhere;
        uint32_t window;
        uint8_t *image, *other;
        Wc wc;

        bench_init(&b, 6300);
        elsewhere = mr_new(b.drv, b.pair->pd[1], VA, LEN,
                           ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
        other = mr_image(elsewhere);
        window = mem_window_new(b.drv, b.pair->pd[1], 1);
        window = mem_bind(b.other[1], 1, window, b.mr, VA, LEN, REMOTE);
        mr_fill(b.pair->mr[0], 0, 0xbb, LEN);
        b.mr->key = window; /* that begin() names */
        begin(&b, RDMA_HCA_OPCODE_RDMA_WRITE, steps);
        mem_bind(b.other[1], 1, window, elsewhere, VA, LEN, REMOTE);
        image = mr_image(b.mr);
        g_assert_true(cq_wait(b.pair->cq[0], &wc, PAIR_PATIENCE));
        lab_run(b.pair->lab);
        mr_check_image(b.mr, image);
        mr_check_image(elsewhere, other);
        g_free(image);
        g_free(other);
        bench_free(&b);
    }
}

/* Lists where there is no memory, or that go on where there is none. */
static void test_lists_of_nothing(void)
{
    static const uint64_t nowhere[] = {
        HOST_MMIO_BASE,    0, UINT64_MAX - 7, UINT64_C(0xfffffffffffff000),
        UINT64_C(1) << 40, 3,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(nowhere); i++) {
        Bench b;
        SendWr wr;

        bench_init(&b, 6400);
        mem_invalidate(b.other[1], b.mr);
        wr = mem_reg_wr(b.mr, nowhere[i], VA, LEN, ACCESS_ALL);
        g_assert_cmphex(
            mem_do(b.other[1], &wr, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR), ==,
            0x10 | HCA_V2P_DMA_ERR);
        g_assert_true(mem_is_free(b.drv, b.mr->key));
        bench_free(&b);
    }
}

/* Pages that are no memory: the card does as it is told, and requests fail. */
static void test_pages_of_nothing(void)
{
    uint64_t page[PAGES];
    Bench b;
    SendWr wr;

    bench_init(&b, 6500);
    mem_invalidate(b.other[1], b.mr);
    for (unsigned i = 0; i < PAGES; i++) {
        page[i] = i & 1 ? HOST_MMIO_BASE : UINT64_MAX;
    }
    wr = mem_reg_wr(b.mr, mem_list_new(b.drv, page, PAGES), VA, LEN,
                    ACCESS_ALL);
    mem_do(b.other[1], &wr, 0);
    mem_try(b.pair, b.qp[0], 0, RDMA_HCA_OPCODE_RDMA_WRITE, b.mr->key, VA, 8,
            RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    bench_free(&b);
}

/* Pieces whose ends do not ascend, or do not reach the end. */
static void test_bad_pieces(void)
{
    static const uint64_t ends[][3] = {
        { 10, 10, 30 }, { 0, 20, 30 },          { 20, 10, 30 },
        { 10, 20, 29 }, { 10, UINT64_MAX, 30 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        MemPiece piece[3];
        Bench b;
        SendWr wr;
        Mr *mr;

        bench_init(&b, 6600);
        mr = mem_pieces_new(b.drv, b.pair->pd[1], 3);
        for (unsigned j = 0; j < 3; j++) {
            piece[j] = (MemPiece) { b.mr->page[j], ends[i][j] };
        }
        wr = mem_reg_pieces_wr(mr, mem_piece_list_new(b.drv, piece, 3), 3, VA,
                               30, ACCESS_ALL);
        g_assert_cmphex(
            mem_do(b.other[1], &wr, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR), ==,
            0x10 | HCA_V2P_LENGTH_ERR);
        bench_free(&b);
    }
}

/* The tables' memory goes while regions are in them. */
static void test_table_goes(void)
{
    HcaConfig config[2];
    Bench b;
    SendWr wr;
    const IcmTable *mtt;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].mpt_cache_size = config[i].mtt_cache_size = 64;
        config[i].cache_ways = 1;
    }
    b.pair = pair_new_with(6700, 65536, config, NULL, NULL);
    b.drv = b.pair->drv[1];
    pair_connect(b.pair, NULL, b.other);
    b.mr = mem_region_new(b.drv, b.pair->pd[1], PAGES);
    mtt = &b.drv->icm[ICM_MTT];
    wr = mem_reg_wr(b.mr, mem_list_new(b.drv, b.mr->page, PAGES), VA, LEN,
                    ACCESS_ALL);
    /* The page that its range of the MTT begins in. */
    g_assert_cmphex(driver_cmd(b.drv, RDMA_HCA_CMD_UNMAP_ICM,
                               (mtt->base + b.mr->mtt * RDMA_HCA_MTT_SIZE) &
                                   ~UINT64_C(4095),
                               1, RDMA_HCA_ICM_TPT, 0, NULL),
                    ==, 0);
    qp_post_send(b.other[1], &wr, 1);
    lab_run(b.pair->lab);
    g_assert_true(mem_is_free(b.drv, b.mr->key));
    bench_free(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/bad-keys/bind-and-invalidate",
                       test_bind_and_invalidate);
    test_add_each_link("/bad-keys/write-while-it-goes",
                       test_write_while_it_goes);
    test_add_each_link("/bad-keys/read-while-it-goes", test_read_while_it_goes);
    test_add_each_link("/bad-keys/rebind-while-data-flow",
                       test_rebind_while_data_flow);
    test_add("/bad-keys/lists-of-nothing", test_lists_of_nothing);
    test_add_each_link("/bad-keys/pages-of-nothing", test_pages_of_nothing);
    test_add("/bad-keys/bad-pieces", test_bad_pieces);
    test_add("/bad-keys/table-goes", test_table_goes);
    return g_test_run();
}
