/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: cards [--roce] [--rounds=N] [--recorder=N] [--bytes=N] [--qps=N] [NAME]
 *
 * What two cards cost that have nothing between them but memory: one process,
 * one thread, no guests, no sockets. A line for each case: its name, bytes,
 * queue pairs, nanoseconds a message and a packet of data, and the same as
 * megabytes and thousands of messages a second. Time is that of the processor,
 * of both cards together, without that of their drivers: the least of all
 * rounds, which hardly depends on what else the machine does. With --recorder
 * each round is run once more, by cards with a flight recorder.
 *
 * Memory is in pages of 4 KiB that do not lie together, as a guest's is.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rig.h"

#define BATCH 256 /* messages on their way, of all queue pairs */
#define LONG_BATCH 16
#define SQ_ENTRIES 64 /* of qp_config_init() */
#define MTU 4096
#define TURN_NS 100
#define MESSAGES 16384 /* a round, or less of long ones */
#define ROUND_BYTES (64 * 1024 * 1024)
#define LOG_MANY 14
#define REGION (1024 * 1024)

typedef struct Case {
    const char *name;
    uint8_t opcode;
    uint32_t bytes;
    unsigned log_qps;
    bool small_caches; /* which hold nothing long enough */
} Case;

/* A doorbell that is to be rung. */
typedef struct Bell {
    Qp *qp;
    uint32_t low, high;
} Bell;

typedef struct Bench {
    const Case *run;
    Rig rig;
    Mr *mr[2];
    uint64_t posted;
    Bell bells[BATCH];
    int64_t spent; /* ns in the cards */
} Bench;

/* The cards */

static int64_t processor_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void run_cards(Bench *bench, const Bell *bell, unsigned n)
{
    int64_t start = processor_ns();

    for (unsigned i = 0; i < n; i++) {
        qp_ring(bell[i].qp, bell[i].low, bell[i].high);
    }
    while (rig_turn(&bench->rig, TURN_NS)) {
    }
    bench->spent += processor_ns() - start;
}

/* Their drivers */

static void bench_open(Bench *bench, const Case *c, bool roce,
                       unsigned recorder)
{
    HcaConfig config[2];

    for (unsigned i = 0; i < 2; i++) {
        (roce ? lab_config_roce : lab_config)(&config[i], i);
        config[i].log_qps = LOG_MANY + 1;
        config[i].recorder = recorder;
        config[i].log_mpts = LOG_MANY + 2;
        config[i].log_mtts = LOG_MANY + 4;
        if (c->small_caches) {
            config[i].mpt_cache_size = config[i].mtt_cache_size = 1024;
        }
    }
    *bench = (Bench) { .run = c };
    rig_open(&bench->rig, config, 1u << c->log_qps,
             wr_takes_receive(c->opcode));
    for (unsigned i = 0; i < 2; i++) {
        const Pair *pair = bench->rig.pair;

        bench->mr[i] = mr_new(pair->drv[i], pair->pd[i], UINT64_C(0x10000000),
                              REGION, ACCESS_ALL);
    }
    rig_plug(&bench->rig, 0);
}

/* The next message, of the next queue pair, from and to the next place. */
static void post(Bench *bench, Bell *bell)
{
    const Case *c = bench->run;
    unsigned n = bench->posted % bench->rig.num_qps;
    uint64_t at = bench->posted * c->bytes % (REGION - c->bytes + 1);
    Sge sge = mr_sge(bench->mr[0], at & ~7, c->bytes);
    Sge into = mr_sge(bench->mr[1], at & ~7, c->bytes);
    RecvWr receive = { .nsge = 1, .sge = &into };
    SendWr wr = {
        .opcode = c->opcode,
        .flags = SEND_SIGNALED,
        .raddr = into.va,
        .rkey = into.lkey,
        .nsge = 1,
        .sge = &sge,
    };

    if (wr_takes_receive(c->opcode)) {
        g_assert_true(qp_post_recv(bench->rig.qp[1][n], &receive, 1));
    }
    bell->qp = bench->rig.qp[0][n];
    g_assert_true(qp_write_send(bell->qp, &wr, 1, &bell->low, &bell->high));
    bench->posted++;
}

static void run_batch(Bench *bench, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        post(bench, &bench->bells[i]);
    }
    run_cards(bench, bench->bells, n);
    rig_expect(bench->rig.cq[0], n);
    rig_expect(bench->rig.cq[1], wr_takes_receive(bench->run->opcode) ? n : 0);
}

/* Nanoseconds a message. */
static double run_round(Bench *bench, unsigned batch, unsigned messages)
{
    messages = MAX(messages, bench->rig.num_qps);
    bench->spent = 0;
    for (unsigned done = 0; done < messages; done += batch) {
        run_batch(bench, batch);
    }
    return (double)bench->spent / messages;
}

/*
 * The same of the quickest round, of each of @n benches. They take turns, so
 * that what else the machine does meets all.
 */
static void measure(Bench *benches, unsigned n, unsigned batch,
                    unsigned messages, unsigned rounds, double best[])
{
    for (unsigned i = 0; i < n; i++) {
        run_round(&benches[i], batch, messages); /* fills caches */
        best[i] = INFINITY;
    }
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < n; i++) {
            best[i] = MIN(best[i], run_round(&benches[i], batch, messages));
        }
    }
}

/* Cases */

#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define SEND RDMA_HCA_OPCODE_SEND
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA

static const Case cases[] = {
    { "write", WRITE, 2, 0, false },
    { "write", WRITE, 64, 0, false },
    { "write", WRITE, 512, 0, false },
    { "write", WRITE, 4096, 0, false },
    { "write", WRITE, 65536, 0, false },
    { "write", WRITE, 1048576, 0, false },
    { "send", SEND, 64, 0, false },
    { "send", SEND, 4096, 0, false },
    { "send", SEND, 65536, 0, false },
    { "read", READ, 64, 0, false },
    { "read", READ, 4096, 0, false },
    { "read", READ, 65536, 0, false },
    { "fetch and add", FETCH_ADD, 8, 0, false },
    { "write", WRITE, 64, 3, false },
    { "write", WRITE, 64, 6, false },
    { "write", WRITE, 64, 10, false },
    { "write", WRITE, 64, LOG_MANY, false },
    { "write", WRITE, 4096, 6, false },
    { "write", WRITE, 4096, LOG_MANY, false },
    { "send", SEND, 64, LOG_MANY, false },
    { "write, small caches", WRITE, 64, 6, true },
    { "write, small caches", WRITE, 4096, 6, true },
};

/* What is asked for; 0 and NULL: all. */
typedef struct Choice {
    const char *name;
    gint bytes, qps;
} Choice;

/* How cards are measured. */
typedef struct Way {
    gboolean roce;
    gint rounds;
    gint recorder; /* entries; 0: only without one */
} Way;

static bool is_chosen(const Choice *choice, const Case *c)
{
    return (!choice->name || g_str_equal(choice->name, c->name)) &&
           (!choice->bytes || choice->bytes == (gint)c->bytes) &&
           (!choice->qps || choice->qps == 1 << c->log_qps);
}

static void run_case(const Case *c, const Way *way)
{
    unsigned packets = MAX(1, (c->bytes + MTU - 1) / MTU);
    unsigned batch = packets > 1 ? LONG_BATCH : BATCH;
    unsigned messages = MIN(MESSAGES, ROUND_BYTES / c->bytes);
    unsigned n = way->recorder ? 2 : 1; /* without, and with a recorder */
    g_autofree Bench *benches = g_new0(Bench, n);
    double ns[2];

    for (unsigned i = 0; i < n; i++) {
        bench_open(&benches[i], c, way->roce, i ? way->recorder : 0);
    }
    batch = MIN(batch, SQ_ENTRIES * benches->rig.num_qps);
    measure(benches, n, batch, MAX(messages, batch), way->rounds, ns);
    for (unsigned i = 0; i < n; i++) {
        rig_close(&benches[i].rig);
    }
    printf("%-5s %-20s %8u %6u %10.1f %9.1f %9.1f %9.1f",
           way->roce ? "roce" : "ib", c->name, c->bytes, 1u << c->log_qps, *ns,
           *ns / packets, c->bytes * 1e3 / *ns, 1e6 / *ns);
    if (n > 1) {
        printf(" %10.1f %+6.1f %%", ns[1], 100 * (ns[1] / ns[0] - 1));
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    Way way = { .rounds = 5 };
    Choice choice = { 0 };
    const GOptionEntry entries[] = {
        { "roce", 0, 0, G_OPTION_ARG_NONE, &way.roce, "RoCE cards", NULL },
        { "rounds", 0, 0, G_OPTION_ARG_INT, &way.rounds,
          "of which the quickest counts", "N" },
        { "recorder", 0, 0, G_OPTION_ARG_INT, &way.recorder,
          "and with a flight recorder of so many entries", "N" },
        { "bytes", 0, 0, G_OPTION_ARG_INT, &choice.bytes, "of these", "N" },
        { "qps", 0, 0, G_OPTION_ARG_INT, &choice.qps, "of so many", "N" },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new("[NAME]");
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) ||
        way.rounds < 1) {
        fprintf(stderr, "cards: %s\n", error ? error->message : "rounds?");
        return 2;
    }
    rig_be_quiet();
    choice.name = argv[1]; /* or NULL */
    printf("%-5s %-20s %8s %6s %10s %9s %9s %9s%s\n", "cards", "operation",
           "bytes", "QPs", "ns/message", "ns/packet", "MB/s", "k/s",
           way.recorder ? "   recorded" : "");
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (is_chosen(&choice, &cases[i])) {
            run_case(&cases[i], &way);
        }
    }
    return 0;
}
