/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: sweep [--quick] [--qps=N]
 *
 * Messages a second in simulated time, by the size and ways of VirtToPhys'
 * caches, the latency of memory, and the number of queue pairs, each of which
 * has a region of its own on either side. A line for each: bytes, queue pairs,
 * lines of either cache, ways, ns of latency, thousands of messages a second,
 * hits of the MPT and of the MTT per cent, and misses of both cards a message.
 *
 * The clock is the laboratory's. A turn of both cards is TURN_NS, in which the
 * cable carries TURN_BYTES each way, 100 Gbit/s; beside that, and what memory
 * takes, a card takes no time. So where memory answers at once the cable and
 * turns are all that bounds the cards, and misses cost nothing.
 *
 * RDMA Writes, 512 of 64 bytes or 48 of 4 KiB posted and not complete, but no
 * more than 32 for each queue pair there is; each by a queue pair that chance
 * chooses. When one has completed the next is posted. All queue pairs have had
 * their turn before anything is counted.
 */
#include <stdio.h>

#include "rig.h"

#define TURN_NS 10
#define TURN_BYTES 125
#define WINDOW 512                /* messages, */
#define WINDOW_BYTES (192 * 1024) /* or as many as there is room for */
#define QP_WINDOW 32
#define WARM 2048
#define MEASURED 8192
#define MAX_LOG_QPS 14
#define REGION_VA UINT64_C(0x10000000)
#define LINE 64 /* bytes of a cache's line */

typedef struct Point {
    uint32_t bytes;
    uint32_t lines;
    uint32_t ways;
    uint32_t latency_ns;
    unsigned log_qps;
} Point;

typedef struct Sweep {
    Rig rig;
    Mr **mr[2];
    GRand *rand;
    uint32_t bytes;
    unsigned posted, completed;
} Sweep;

/* What has been counted by now. */
typedef struct Marks {
    int64_t now;
    unsigned completed;
    uint64_t mpt_hits, mpt_misses, mtt_hits, mtt_misses;
} Marks;

static void configure(HcaConfig *config, unsigned side, const Point *point)
{
    lab_config(config, side);
    /* Send queues have regions, too. */
    config->log_qps = MAX(config->log_qps, point->log_qps + 1);
    config->log_mpts = MAX(config->log_mpts, point->log_qps + 2);
    config->log_mtts = MAX(config->log_mtts, point->log_qps + 4);
    config->mpt_cache_size = config->mtt_cache_size = point->lines * LINE;
    config->cache_ways = point->ways;
    config->memory_latency_ns = point->latency_ns;
}

static void sweep_open(Sweep *sweep, const Point *point)
{
    unsigned num_qps = 1u << point->log_qps;
    HcaConfig config[2];

    configure(&config[0], 0, point);
    configure(&config[1], 1, point);
    *sweep = (Sweep) { .rand = g_rand_new_with_seed(1) };
    rig_open(&sweep->rig, config, num_qps, false);
    for (unsigned i = 0; i < 2; i++) {
        const Pair *pair = sweep->rig.pair;

        sweep->mr[i] = g_new(Mr *, num_qps);
        for (unsigned n = 0; n < num_qps; n++) {
            sweep->mr[i][n] = mr_new(pair->drv[i], pair->pd[i], REGION_VA,
                                     HOST_PAGE_SIZE, ACCESS_ALL);
        }
    }
    rig_plug(&sweep->rig, TURN_BYTES);
}

static void sweep_close(Sweep *sweep)
{
    rig_close(&sweep->rig);
    g_free(sweep->mr[0]);
    g_free(sweep->mr[1]);
    g_rand_free(sweep->rand);
}

/* Messages */

/* The queue pair of the next message: each in turn at first. */
static unsigned next_qp(Sweep *sweep)
{
    unsigned num_qps = sweep->rig.num_qps;
    unsigned n = sweep->posted;

    if (n >= num_qps) {
        n = g_rand_int_range(sweep->rand, 0, num_qps);
    }
    while (!qp_send_room(sweep->rig.qp[0][n])) {
        n = (n + 1) % num_qps;
    }
    return n;
}

static void post(Sweep *sweep)
{
    unsigned n = next_qp(sweep);
    Sge from = mr_sge(sweep->mr[0][n], 0, sweep->bytes);
    SendWr wr = {
        .opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
        .flags = SEND_SIGNALED,
        .raddr = sweep->mr[1][n]->va,
        .rkey = sweep->mr[1][n]->key,
        .nsge = 1,
        .sge = &from,
    };

    g_assert_true(qp_post_send(sweep->rig.qp[0][n], &wr, 1));
    sweep->posted++;
}

/* To the moment at which something is due, as neither card has work now. */
static void skip_time(Lab *lab)
{
    int64_t next = MIN(lab->host[0].deadline, lab->host[1].deadline);

    g_assert_cmpint(next, !=, INT64_MAX);
    lab->now = MAX(lab->now, next - TURN_NS);
}

/* Until @completed messages have, with the window full all the time. */
static void run_until(Sweep *sweep, unsigned completed)
{
    unsigned window = MIN(WINDOW, WINDOW_BYTES / sweep->bytes);
    Wc wc;

    window = MIN(window, QP_WINDOW * sweep->rig.num_qps);
    while (sweep->completed < completed) {
        while (sweep->posted - sweep->completed < window) {
            post(sweep);
        }
        if (!rig_turn(&sweep->rig, TURN_NS)) {
            skip_time(sweep->rig.pair->lab);
        }
        while (cq_poll(sweep->rig.cq[0], &wc)) {
            g_assert_cmphex(wc.syndrome, ==, 0);
            sweep->completed++;
        }
    }
}

/* Of both cards. */
static uint64_t counted(const Sweep *sweep, const char *name)
{
    return pair_counter(sweep->rig.pair, 0, name) +
           pair_counter(sweep->rig.pair, 1, name);
}

static Marks mark(const Sweep *sweep)
{
    return (Marks) {
        .now = sweep->rig.pair->lab->now,
        .completed = sweep->completed,
        .mpt_hits = counted(sweep, "v2p_mpt_hits"),
        .mpt_misses = counted(sweep, "v2p_mpt_misses"),
        .mtt_hits = counted(sweep, "v2p_mtt_hits"),
        .mtt_misses = counted(sweep, "v2p_mtt_misses"),
    };
}

static double per_cent(uint64_t part, uint64_t rest)
{
    return part + rest ? 100.0 * part / (part + rest) : 100.0;
}

static void print_row(const Point *point, const Marks *from, const Marks *to)
{
    double messages = to->completed - from->completed;
    uint64_t mpt_misses = to->mpt_misses - from->mpt_misses;
    uint64_t mtt_misses = to->mtt_misses - from->mtt_misses;

    printf("%6u %6u %6u %5u %7u %10.1f %7.2f %7.2f %8.4f\n", point->bytes,
           1u << point->log_qps, point->lines, point->ways, point->latency_ns,
           messages * 1e6 / (to->now - from->now),
           per_cent(to->mpt_hits - from->mpt_hits, mpt_misses),
           per_cent(to->mtt_hits - from->mtt_hits, mtt_misses),
           (mpt_misses + mtt_misses) / messages);
    fflush(stdout);
}

static const uint32_t sizes[] = { 64, 4096 };

static void run_point(Point *point)
{
    Sweep sweep;

    sweep_open(&sweep, point);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        unsigned start = sweep.completed + sweep.rig.num_qps + WARM;
        Marks from, to;

        point->bytes = sweep.bytes = sizes[i];
        run_until(&sweep, start);
        from = mark(&sweep);
        run_until(&sweep, start + MEASURED);
        to = mark(&sweep);
        g_assert_cmpuint(counted(&sweep, "requester_retransmissions"), ==, 0);
        print_row(point, &from, &to);
    }
    sweep_close(&sweep);
}

/* Points */

#define DEFAULT_WAYS 2
/* Where all ways are tried. */
#define WAYS_LOG_QPS 10
#define WAYS_LATENCY 500

static const uint32_t latencies[] = { 0, 500, 2000 };
static const uint32_t ways[] = { 1, 2, 4, 8, 16 };
#define LEAST_LINES 16
#define MOST_LINES 65536 /* the whole table of the most queue pairs */

static bool is_tried(const Point *point, bool quick)
{
    if (quick) {
        return point->ways == DEFAULT_WAYS &&
               (point->log_qps == 0 || point->log_qps == 6) &&
               (point->lines == LEAST_LINES || point->lines == 1024);
    }
    return point->ways == DEFAULT_WAYS || (point->log_qps == WAYS_LOG_QPS &&
                                           point->latency_ns == WAYS_LATENCY);
}

static void run_all(bool quick, gint qps)
{
    Point p;

    for (p.log_qps = 0; p.log_qps <= MAX_LOG_QPS; p.log_qps += 2) {
        for (p.lines = LEAST_LINES; p.lines <= MOST_LINES; p.lines *= 4) {
            for (unsigned w = 0; w < G_N_ELEMENTS(ways); w++) {
                for (unsigned l = 0; l < G_N_ELEMENTS(latencies); l++) {
                    p.ways = ways[w];
                    p.latency_ns = latencies[l];
                    if (is_tried(&p, quick) &&
                        (!qps || qps == 1 << p.log_qps)) {
                        run_point(&p);
                    }
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    gboolean quick = FALSE;
    gint qps = 0;
    const GOptionEntry entries[] = {
        { "quick", 0, 0, G_OPTION_ARG_NONE, &quick, "some of all", NULL },
        { "qps", 0, 0, G_OPTION_ARG_INT, &qps, "of so many", "N" },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "sweep: %s\n", error->message);
        return 2;
    }
    rig_be_quiet();
    printf("%6s %6s %6s %5s %7s %10s %7s %7s %8s\n", "bytes", "QPs", "lines",
           "ways", "ns", "k/s", "MPT %", "MTT %", "misses");
    run_all(quick, qps);
    return 0;
}
