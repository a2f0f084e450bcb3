/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections that say nothing cost nothing: no timer of a card is set, and none
 * of its turns is asked for, however many there are and however long it takes.
 */
#include "lib-pair.h"
#include "lib-test.h"

#define CONNECTIONS 1000
#define HOUR (INT64_C(3600) * 1000000000)
#define LEN 64

static Pair *large_pair(uint32_t seed)
{
    HcaConfig config[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].log_qps = 11;
        config[i].log_mpts = 13;
        config[i].log_mtts = 15;
    }
    return pair_new_with(seed, LEN, config, NULL, NULL);
}

/* A Send each way; an answer has to come, timers have to be set meanwhile. */
static void talk(Pair *pair, Qp *qp[2])
{
    for (unsigned from = 0; from < 2; from++) {
        pair_check_works(pair, qp, from);
    }
}

static void check_idle(Pair *pair, unsigned hours)
{
    Lab *lab = pair->lab;
    uint64_t steps;

    lab_run(lab);
    lab_sleep(lab, HOUR); /* what congestion or a retry left behind ends */
    steps = lab->steps;
    for (unsigned i = 0; i < hours; i++) {
        for (unsigned side = 0; side < 2; side++) {
            g_assert_cmpint(lab->host[side].deadline, ==, INT64_MAX);
        }
        lab_sleep(lab, HOUR);
    }
    g_assert_cmpuint(lab->steps, ==, steps);
}

/* A day of a thousand connections that have carried data; then they carry more. */
static void test_day(void)
{
    Pair *pair = large_pair(8100);
    Qp *(*qp)[2] = g_malloc(CONNECTIONS * sizeof(*qp));

    for (unsigned i = 0; i < CONNECTIONS; i++) {
        pair_connect(pair, NULL, qp[i]);
        talk(pair, qp[i]);
    }
    check_idle(pair, 24);
    for (unsigned i = 0; i < CONNECTIONS; i += 100) {
        talk(pair, qp[i]);
    }
    check_idle(pair, 1);
    g_free(qp);
    pair_free(pair);
}

/* A Send of side 0, which ends with @syndrome. */
static void say(Pair *pair, Qp *qp, uint8_t syndrome)
{
    Sge sge;
    SendWr wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 7, &sge, 0, LEN, 0);
    Wc wc;

    g_assert_true(qp_post_send(qp, &wr, 1));
    cq_expect(pair->cq[0], &wc, 7, syndrome);
}

/* Receives that wait, queues that are armed, a peer that is silent for days. */
static void test_waiting(void)
{
    Pair *pair = large_pair(8101);
    Qp *qp[3][2];
    Wc wc;

    for (unsigned i = 0; i < 3; i++) {
        pair_connect(pair, NULL, qp[i]);
        pair_post_recv(pair, 1, qp[i][1], 0, 0, LEN);
        cq_arm(pair->cq[i % 2], false);
    }
    /* A request whose peer is silent ends after its retries. */
    lab_cable(pair->lab, false);
    say(pair, qp[0][0], RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    /* In ERR it would look for receives. */
    g_assert_cmphex(qp_to_rst(qp[0][0]), ==, 0);
    check_idle(pair, 24);
    lab_cable(pair->lab, true);
    check_idle(pair, 24);
    say(pair, qp[1][0], 0);
    cq_expect(pair->cq[1], &wc, 0, 0);
    check_idle(pair, 24);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/day", test_day);
    test_add_each_link("/waiting", test_waiting);
    return g_test_run();
}
