/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several pairs of rings of the Ethernet function: who sends when, doorbells,
 * and interrupts that wait.
 */
#include <string.h>

#include "lib-eth.h"
#include "lib-frames.h"

#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define DONE RDMA_HCA_ETH_DONE
#define QUEUES ETH_QUEUES
#define LOG_RING 8
#define US 1000
#define MIN_FRAME 60u

/* @n frames of @len bytes of queue @i, which have its number in them. */
static void put_frames(EthQueues *queues, unsigned i, unsigned n, unsigned len)
{
    Nic *nic = queues->nic[i];
    uint8_t mark = 0xa0 + i;

    host_write(nic->host, nic->buffer + 14, &mark, 1);
    while (n--) {
        nic_put_tx(nic, nic->buffer, len, LAST);
    }
    nic_ring_tx(nic);
}

/* Whose frame is the next one on the cable. */
static unsigned take_sent(EthQueues *queues)
{
    GByteArray *frame = g_queue_pop_head(&queues->bench->sent);
    unsigned i;

    g_assert_nonnull(frame);
    i = frame->data[14] - 0xa0;
    g_byte_array_unref(frame);
    return i;
}

/* All rings have the same number of frames: none is ahead by more than a share. */
static void test_share(void)
{
    unsigned sent[QUEUES] = { 0 };
    EthQueues queues;

    eth_queues_open(&queues, 1, LOG_RING);
    for (unsigned i = 0; i < QUEUES; i++) {
        put_frames(&queues, i, 200, 1500);
    }
    lab_run(queues.bench->lab);
    for (unsigned n = 0; n < 200 * QUEUES; n++) {
        unsigned least = UINT_MAX, most = 0;

        sent[take_sent(&queues)]++;
        for (unsigned i = 0; i < QUEUES; i++) {
            least = MIN(least, sent[i]);
            most = MAX(most, sent[i]);
        }
        g_assert_cmpuint(most - least, <=, 16);
    }
    g_assert_true(g_queue_is_empty(&queues.bench->sent));
    eth_queues_close(&queues);
}

/* The cable takes less in a turn than one ring's share: each has its turn. */
static void test_share_of_narrow_cable(void)
{
    unsigned sent[QUEUES] = { 0 };
    EthQueues queues;

    eth_queues_open(&queues, 2, LOG_RING);
    queues.bench->lab->capacity = 4 * 9000;
    for (unsigned i = 0; i < QUEUES; i++) {
        put_frames(&queues, i, 100, 9000);
    }
    lab_run(queues.bench->lab);
    for (unsigned n = 0; n < 400; n++) {
        sent[take_sent(&queues)]++;
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        g_assert_cmpuint(sent[i], >=, 30);
    }
    frames_clear(&queues.bench->sent);
    eth_queues_close(&queues);
}

/* A ring that is not RAM, or whose frame has no end, keeps no other up. */
static void test_broken_ring(void)
{
    EthQueues queues;

    eth_queues_open(&queues, 3, LOG_RING);
    g_assert_cmphex(nic_stop(queues.nic[0]), ==, OK);
    queues.nic[3]->tx_ring = HOST_MMIO_BASE;
    for (unsigned i = 0; i < QUEUES; i++) {
        g_assert_cmphex(nic_start(queues.nic[i]), ==, OK);
    }
    nic_doorbell(queues.nic[3], RDMA_HCA_ETH_DB_TX_TAIL, 4);
    nic_put_tx(queues.nic[5], queues.nic[5]->buffer, 100, 0);
    nic_ring_tx(queues.nic[5]);
    for (unsigned i = 0; i < QUEUES; i += 2) {
        put_frames(&queues, i, 100, 100);
    }
    lab_run(queues.bench->lab);
    g_assert_cmpuint(g_queue_get_length(&queues.bench->sent), ==, 400);
    g_assert_cmpuint(eth_count(queues.bench, "tx_errors"), ==, 1);
    frames_clear(&queues.bench->sent);
    eth_queues_close(&queues);
}

/* Each pair has its own registers, and no others. */
static void test_doorbells(void)
{
    static const uint32_t regs[] = {
        RDMA_HCA_ETH_DB_TX_TAIL,
        RDMA_HCA_ETH_DB_RX_TAIL,
        RDMA_HCA_ETH_DB_TX_ARM,
        RDMA_HCA_ETH_DB_RX_ARM,
    };
    EthBench *bench = eth_bench_new(4, 4);
    struct rdma_hca_setup_eth setup = { 0 };

    for (unsigned i = 1; i <= QUEUES; i++) {
        for (unsigned reg = 0; reg < G_N_ELEMENTS(regs); reg++) {
            uint64_t bad = eth_count(bench, "bad_doorbells");

            host_bar0_write(
                bench->host,
                RDMA_HCA_ETH_DB + i * RDMA_HCA_ETH_DB_STRIDE + regs[reg], 1);
            lab_run(bench->lab);
            g_assert_cmpuint(eth_count(bench, "bad_doorbells"), ==,
                             bad + (i < QUEUES));
        }
    }
    for (unsigned i = QUEUES; i < 20; i++) {
        g_assert_cmphex(driver_cmd_in(bench->drv, RDMA_HCA_CMD_SETUP_ETH,
                                      &setup, sizeof(setup), i, 1),
                        ==, RDMA_HCA_STAT_BAD_INDEX);
    }
    eth_bench_free(bench);
}

/* ---- interrupts that wait ---- */

static void inject(EthBench *bench, unsigned n)
{
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger,
                                       MIN_FRAME);

    while (n--) {
        eth_inject(bench, frame->data, frame->len);
    }
    g_byte_array_unref(frame);
}

static void expect_rx(EthBench *bench, uint64_t interrupts)
{
    g_assert_cmpuint(bench->host->msix[NIC_RX_VECTOR], ==, interrupts);
}

static void arm_rx(EthBench *bench)
{
    GByteArray *frame;

    while ((frame = nic_receive(bench->nic, NULL))) {
        g_byte_array_unref(frame);
    }
    nic_doorbell(bench->nic, RDMA_HCA_ETH_DB_RX_ARM, bench->nic->rx_next);
    lab_run(bench->lab);
}

static void test_frames_or_time(void)
{
    EthBench *bench = eth_bench_new(5, LOG_RING);

    g_assert_cmphex(nic_moderate(bench->nic, 0, 0, 4, 100), ==, OK);
    arm_rx(bench);
    inject(bench, 3);
    expect_rx(bench, 0);
    inject(bench, 1); /* the fourth */
    expect_rx(bench, 1);
    inject(bench, 9); /* nobody waits */
    lab_sleep(bench->lab, 200 * US);
    expect_rx(bench, 1);

    arm_rx(bench);
    inject(bench, 1);
    lab_sleep(bench->lab, 90 * US);
    inject(bench, 1); /* the time is that since the first */
    expect_rx(bench, 1);
    lab_sleep(bench->lab, 20 * US);
    expect_rx(bench, 2);
    g_assert_cmpuint(eth_count(bench, "interrupts_held"), ==, 2);

    arm_rx(bench);
    lab_sleep(bench->lab, 1000 * US); /* without frames, none */
    expect_rx(bench, 2);
    eth_bench_free(bench);
}

/* Who arms for what is there already is told at once. */
static void test_told_at_once(void)
{
    EthBench *bench = eth_bench_new(6, LOG_RING);

    g_assert_cmphex(nic_moderate(bench->nic, 0, 0, 100, 60000), ==, OK);
    inject(bench, 1);
    nic_doorbell(bench->nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
    lab_run(bench->lab);
    expect_rx(bench, 1);
    arm_rx(bench);
    inject(bench, 1); /* waits */
    expect_rx(bench, 1);
    nic_doorbell(bench->nic, RDMA_HCA_ETH_DB_RX_ARM, 1);
    lab_run(bench->lab);
    expect_rx(bench, 2);
    lab_sleep(bench->lab, 100000 * US); /* no timer is left */
    expect_rx(bench, 2);
    eth_bench_free(bench);
}

/* Either one 0: no waiting; and a change tells what waits sooner, not later. */
static void test_changes(void)
{
    EthBench *bench = eth_bench_new(7, LOG_RING);
    Nic *nic = bench->nic;

    g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 0), ==, OK);
    arm_rx(bench);
    inject(bench, 1);
    expect_rx(bench, 1);
    g_assert_cmphex(nic_moderate(nic, 0, 0, 0, 10), ==, OK);
    arm_rx(bench);
    inject(bench, 1);
    expect_rx(bench, 2);

    g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 1000), ==, OK);
    arm_rx(bench);
    inject(bench, 2);
    g_assert_cmphex(nic_moderate(nic, 0, 0, 2, 1000), ==, OK); /* enough */
    expect_rx(bench, 3);
    g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 1000), ==, OK);
    arm_rx(bench);
    inject(bench, 1);
    g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 60000), ==, OK);
    lab_sleep(bench->lab, 1100 * US); /* as it was */
    expect_rx(bench, 4);
    arm_rx(bench);
    inject(bench, 1);
    g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 50), ==, OK);
    lab_sleep(bench->lab, 60 * US);
    expect_rx(bench, 5);
    arm_rx(bench);
    inject(bench, 1);
    g_assert_cmphex(nic_moderate(nic, 0, 0, 0, 0), ==, OK);
    expect_rx(bench, 6);
    eth_bench_free(bench);
}

/* Frames, not descriptors; and a long segment is one. */
static void test_transmit(void)
{
    EthBench *bench = eth_bench_new(8, LOG_RING);
    Nic *nic = bench->nic;

    g_assert_cmphex(nic_moderate(nic, 3, 500, 0, 0), ==, OK);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 0);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpuint(bench->host->msix[NIC_TX_VECTOR], ==, 0);
        nic_put_tx(nic, nic->buffer, 30, 0);
        nic_put_tx(nic, nic->buffer, 30, 0);
        nic_put_tx(nic, nic->buffer, 30, LAST);
        nic_ring_tx(nic);
        lab_run(bench->lab);
    }
    g_assert_cmpuint(bench->host->msix[NIC_TX_VECTOR], ==, 1);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 9);
    nic_put_tx(nic, nic->buffer, 30, LAST);
    nic_ring_tx(nic);
    lab_sleep(bench->lab, 400 * US);
    g_assert_cmpuint(bench->host->msix[NIC_TX_VECTOR], ==, 1);
    lab_sleep(bench->lab, 200 * US);
    g_assert_cmpuint(bench->host->msix[NIC_TX_VECTOR], ==, 2);
    frames_clear(&bench->sent);
    eth_bench_free(bench);
}

/* Rings that go, and a reset, take what waits with them. */
static void test_end(void)
{
    EthBench *bench = eth_bench_new(9, LOG_RING);
    Nic *nic = bench->nic;

    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 100), ==, OK);
        arm_rx(bench);
        inject(bench, 1);
        if (i) {
            host_reset(bench->host);
        } else {
            g_assert_cmphex(nic_stop(nic), ==, OK);
            g_assert_cmphex(nic_moderate(nic, 0, 0, 10, 100), ==,
                            RDMA_HCA_STAT_BAD_RES_STATE);
            g_assert_cmphex(nic_start(nic), ==, OK);
        }
        lab_sleep(bench->lab, 1000 * US);
        expect_rx(bench, 0);
    }
    eth_bench_free(bench);
}

static void test_refused(void)
{
    EthBench *bench = eth_bench_new(10, LOG_RING);

    for (unsigned i = 1; i < 20; i++) {
        bench->nic->queue = i;
        g_assert_cmphex(nic_moderate(bench->nic, 1, 1, 1, 1), ==,
                        i < QUEUES ? RDMA_HCA_STAT_BAD_RES_STATE
                                   : RDMA_HCA_STAT_BAD_INDEX);
    }
    bench->nic->queue = 0;
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/queues/share", test_share);
    test_add("/eth/queues/narrow-cable", test_share_of_narrow_cable);
    test_add("/eth/queues/broken", test_broken_ring);
    test_add("/eth/queues/doorbells", test_doorbells);
    test_add("/eth/moderation/frames-or-time", test_frames_or_time);
    test_add("/eth/moderation/told-at-once", test_told_at_once);
    test_add("/eth/moderation/changes", test_changes);
    test_add("/eth/moderation/transmit", test_transmit);
    test_add("/eth/moderation/end", test_end);
    test_add("/eth/moderation/refused", test_refused);
    return g_test_run();
}
