/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VirtToPhys 5.5 in a whole card: the same work on thousands of regions with
 * caches of 16 lines and with full ones leaves the same data. Regions come
 * and go meanwhile, so entries are written, written back and invalidated
 * while others are in use.
 */
#include <inttypes.h>

#include "lib-card.h"
#include "lib-pair.h"

#define CACHE_LINE 64
#define SMALL_CACHE (16 * CACHE_LINE)

enum {
    REGIONS = 3000,
    MAX_LEN = 10000,
    ROUNDS = 1500,
    BATCH = 8, /* work requests of a round */
};

typedef struct Work {
    Pair *pair;
    GRand *rand; /* of the test alone: alike in both runs */
    Mr *mr[2][REGIONS];
    uint64_t serial; /* of the last region made */
    Qp *qp[2];
} Work;

/* One end of a work request. */
typedef struct Part {
    Mr *mr;
    uint64_t at;
} Part;

static uint32_t pick(Work *work, uint32_t begin, uint32_t end)
{
    return g_rand_int_range(work->rand, begin, end);
}

static Mr *make_region(Work *work, unsigned side)
{
    uint64_t va = (work->serial++ << 20) + pick(work, 0, 4096);

    return mr_new(work->pair->drv[side], work->pair->pd[side], va,
                  pick(work, 1, MAX_LEN), ACCESS_ALL);
}

static void replace_region(Work *work, unsigned side)
{
    Mr **mr = &work->mr[side][pick(work, 0, REGIONS)];

    g_assert_cmphex(mr_deregister(*mr), ==, 0);
    *mr = make_region(work, side);
}

static void work_init(Work *work, uint32_t cache_size)
{
    HcaConfig config[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].log_mpts = 13;
        config[i].log_mtts = 16;
        config[i].mpt_cache_size = cache_size;
        config[i].mtt_cache_size = cache_size;
        g_assert_null(hca_config_check(&config[i]));
    }
    work->pair = pair_new_with(3601, 4096, config, NULL, NULL);
    work->rand = g_rand_new_with_seed(work->pair->lab->seed);
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < REGIONS; i++) {
            work->mr[side][i] = make_region(work, side);
        }
    }
    pair_connect(work->pair, NULL, work->qp);
}

static void work_free(Work *work)
{
    g_rand_free(work->rand);
    pair_free(work->pair);
}

/* No two work requests of a round meet in a region. */
static Part pick_part(Work *work, unsigned side, unsigned n)
{
    unsigned i = pick(work, 0, REGIONS / BATCH) * BATCH + n;
    Mr *mr = work->mr[side][i];

    return (Part) { mr, pick(work, 0, mr->len) };
}

static void fill_part(Work *work, const Part *part, uint32_t len)
{
    g_autofree uint8_t *data = g_malloc(len);

    for (uint32_t i = 0; i < len; i++) {
        data[i] = g_rand_int(work->rand);
    }
    mr_write(part->mr, part->at, data, len);
}

static void check_equal(const Part *a, const Part *b, uint32_t len)
{
    g_autofree uint8_t *left = g_malloc(len), *right = g_malloc(len);

    mr_read(a->mr, a->at, left, len);
    mr_read(b->mr, b->at, right, len);
    g_assert_cmpmem(left, len, right, len);
}

/* A round: Writes, Reads and Sends, all posted at once. */
static void do_round(Work *work)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_RDMA_WRITE,
        RDMA_HCA_OPCODE_RDMA_READ,
        RDMA_HCA_OPCODE_SEND,
    };
    Part near[BATCH], far[BATCH];
    uint32_t len[BATCH];
    SendWr wr[BATCH];
    Sge sge[BATCH];
    Wc wc;

    for (unsigned n = 0; n < BATCH; n++) {
        uint8_t op = opcode[pick(work, 0, G_N_ELEMENTS(opcode))];

        near[n] = pick_part(work, 0, n);
        far[n] = pick_part(work, 1, n);
        len[n] = MIN(near[n].mr->len - near[n].at, far[n].mr->len - far[n].at);
        fill_part(work, op == RDMA_HCA_OPCODE_RDMA_READ ? &far[n] : &near[n],
                  len[n]);
        sge[n] = mr_sge(near[n].mr, near[n].at, len[n]);
        wr[n] = (SendWr) { .wr_id = n,
                           .opcode = op,
                           .flags = SEND_SIGNALED,
                           .raddr = far[n].mr->va + far[n].at,
                           .rkey = far[n].mr->key,
                           .nsge = 1,
                           .sge = &sge[n] };
        if (op == RDMA_HCA_OPCODE_SEND) {
            Sge to = mr_sge(far[n].mr, far[n].at, len[n]);

            g_assert_true(qp_post_recv(
                work->qp[1], &(RecvWr) { .wr_id = n, .nsge = 1, .sge = &to },
                1));
        }
    }
    g_assert_true(qp_post_send(work->qp[0], wr, BATCH));
    for (unsigned n = 0; n < BATCH; n++) {
        cq_expect(work->pair->cq[0], &wc, n, 0);
    }
    for (unsigned n = 0; n < BATCH; n++) {
        if (wr[n].opcode == RDMA_HCA_OPCODE_SEND) {
            cq_expect(work->pair->cq[1], &wc, n, 0);
        }
        check_equal(&near[n], &far[n], len[n]);
    }
}

static void checksum_region(GChecksum *sum, Mr *mr)
{
    g_autofree uint8_t *image = mr_image(mr);

    g_checksum_update(sum, image, mr->len);
}

static void report(const char *cache, const HcaTptCacheCounters *counters)
{
    uint64_t all = counters->hits + counters->misses;

    g_test_message(
        "%s: %" PRIu64 " look-ups, %.2f %% hit, %" PRIu64 " written back",
        cache, all, 100.0 * counters->hits / all, counters->write_backs);
}

/* All the work with caches of this size; what the memory is afterwards. */
static char *do_work(uint32_t cache_size, HcaV2pCounters *counters)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    Work work = { 0 };

    work_init(&work, cache_size);
    for (unsigned i = 0; i < ROUNDS; i++) {
        do_round(&work);
        replace_region(&work, i % 2);
    }
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < REGIONS; i++) {
            checksum_region(sum, work.mr[side][i]);
        }
    }
    *counters = *hca_v2p_counters(work.pair->lab->host[1].hca->v2p);
    g_test_message("caches of %u lines", cache_size / CACHE_LINE);
    report("MPT", &counters->mpt);
    report("MTT", &counters->mtt);
    work_free(&work);
    return g_strdup(g_checksum_get_string(sum));
}

static void test_same_data(void)
{
    HcaV2pCounters small, full;
    HcaConfig defaults;
    g_autofree char *with_small = do_work(SMALL_CACHE, &small);
    g_autofree char *with_full = NULL;

    hca_config_init(&defaults);
    with_full = do_work(defaults.mpt_cache_size, &full);
    g_assert_cmpstr(with_small, ==, with_full);
    /* Each was what it was meant to be. */
    g_assert_cmpuint(small.mpt.misses, >, ROUNDS);
    g_assert_cmpuint(small.mtt.misses, >, ROUNDS);
    g_assert_cmpuint(small.mpt.write_backs, >, REGIONS);
    g_assert_cmpuint(full.mpt.misses, <, small.mpt.misses / 2);
    g_assert_cmpuint(full.mtt.misses, <, small.mtt.misses / 2);
    g_assert_cmpuint(full.mpt.write_back_errors, ==, 0);
    g_assert_cmpuint(small.mpt.write_back_errors, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/caches/5.5/same-data", test_same_data);
    return g_test_run();
}
