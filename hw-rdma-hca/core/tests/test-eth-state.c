/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of the Ethernet function while it cuts a frame into segments: a
 * card that loads it goes on, and none loads what cannot be.
 */
#include <inttypes.h>
#include <string.h>

#include "lib-eth.h"
#include "lib-frames.h"
#include "lib-state.h"

#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define DONE RDMA_HCA_ETH_DONE
#define LOG_RING 4

/* A frame with IPv4 and TCP, in two pieces behind the descriptor for cutting. */
#define IP ETH_HEADER
#define TCP (IP + 20)
#define HEADER (TCP + 20)
#define MSS 100u
#define SEGMENTS 600u
#define LENGTH (HEADER + MSS * SEGMENTS)
#define FIRST 9000u /* bytes of the first piece */

/* What a turn sends of it. */
#define SENT 64u

static void post(EthBench *bench)
{
    GByteArray *frame = eth_make_frame(bench, eth_stranger,
                                       bench->host->config.mac, LENGTH);
    uint64_t at = host_alloc(bench->host, HOST_BLOCK_SIZE / HOST_PAGE_SIZE);

    eth_put16(frame->data + IP - 2, 0x0800);
    memset(frame->data + IP, 0, HEADER - IP);
    frame->data[IP] = 0x45;
    frame->data[IP + 9] = 6;
    frame->data[TCP + 12] = 5 << 4;
    host_write(bench->host, at, frame->data, LENGTH);
    nic_put_tso(bench->nic, MSS, HEADER, IP, TCP);
    nic_put_tx(bench->nic, at, FIRST, 0);
    nic_put_tx(bench->nic, at + FIRST, LENGTH - FIRST, LAST);
    nic_ring_tx(bench->nic);
    g_byte_array_unref(frame);
}

/* In the middle of the first piece. */
static EthBench *bench_cutting(void)
{
    EthBench *bench = eth_bench_new(11, LOG_RING);

    post(bench);
    g_assert_true(lab_step(bench->lab));
    g_assert_cmpuint(eth_count(bench, "tx_segments"), ==, SENT);
    return bench;
}

/* Nothing is sent twice, and nothing is left out. */
static void test_goes_on(void)
{
    EthBench *bench = bench_cutting();
    HcaState *state = state_save(bench->host->hca);
    HcaStateError error;

    g_assert_true(hca_load(bench->host->hca, state, &error));
    hca_state_free(state);
    lab_run(bench->lab);
    g_assert_cmpuint(eth_count(bench, "tx_segments"), ==, SEGMENTS);
    g_assert_cmpuint(bench->sent.length, ==, SEGMENTS);
    eth_expect_done(bench, 3, DONE);
    frames_clear(&bench->sent);
    eth_bench_free(bench);
}

#define QUEUE(field, value)                                                    \
    {                                                                          \
        "eth-queue", -1, "queue." field, value, "queue 0"                      \
    }
#define FUNCTION(field, value)                                                 \
    {                                                                          \
        "eth", 1, field, value, "no such function"                             \
    }
#define AT (HEADER + SENT * MSS)
#define LEFT ((SEGMENTS - SENT) * MSS)

static const StateLie lies[] = {
    { "eth-queue", -1, "number", ETH_QUEUES, "no queue 8" },
    { "eth-queue", 2, NULL, 0, "no queue 0" },
    QUEUE("tx.addr", 64 + 1),
    QUEUE("tx.log_size", RDMA_HCA_ETH_MIN_LOG_RING - 1),
    QUEUE("tx.log_size", RDMA_HCA_ETH_MAX_LOG_RING + 1),
    QUEUE("tx.vector", UINT16_MAX),
    QUEUE("tx.tail", (1 << LOG_RING) + 1),
    QUEUE("tx.tail", 2),
    QUEUE("tx.supply", 3),
    QUEUE("rx.log_size", RDMA_HCA_ETH_MAX_LOG_RING + 1),
    QUEUE("rx.tail", (1 << LOG_RING) + 1),
    QUEUE("rx.supply", 3),
    QUEUE("tx_discard", true),
    QUEUE("pieces.count", 2),
    QUEUE("pieces.count", 21),
    QUEUE("pieces.whole", false),
    QUEUE("tso.piece", 3),
    QUEUE("tso.at", FIRST + 1),
    QUEUE("tso.at", AT + 1),
    QUEUE("tso.left", LEFT + 1),
    QUEUE("tso.mss", RDMA_HCA_ETH_MIN_MSS - 1),
    QUEUE("tso.mss", 9018 - HEADER + 1),
    QUEUE("tso.header_len", HEADER + 4),
    QUEUE("tso.header_len", RDMA_HCA_ETH_MAX_TSO_HEADER + 1),
    QUEUE("tso.ip_start", IP + 1),
    QUEUE("tso.tcp_start", TCP - 4),
    QUEUE("tso.ipv6", true),
    FUNCTION("tx_turn", ETH_QUEUES + 1),
    FUNCTION("filter.count", 128 + 1),
    FUNCTION("rss.table", ETH_QUEUES),
    { "link", 1, "enabled", false, "no such link" },
};

static const StateLie truths[] = {
    QUEUE("tx.tail", 3),
    QUEUE("tx.supply", 2),
    QUEUE("tso.at", AT),
    QUEUE("tso.left", LEFT),
    QUEUE("tso.mss", RDMA_HCA_ETH_MIN_MSS),
    QUEUE("tso.mss", 9018 - HEADER),
    FUNCTION("tx_turn", ETH_QUEUES),
    FUNCTION("filter.count", 128),
    FUNCTION("rss.table", ETH_QUEUES - 1),
};

static void check(const StateLie *lie, bool loads)
{
    EthBench *bench = bench_cutting();
    HcaState *state = state_save(bench->host->hca);
    HcaStateError error;

    state_tell(state, lie);
    if (hca_load(bench->host->hca, state, &error) != loads) {
        g_error("%s is %" PRIu64 ": %s", lie->field, lie->value,
                loads ? error.text : "loaded");
    }
    if (!loads) {
        g_assert_nonnull(strstr(error.text, lie->why));
    }
    hca_state_free(state);
    lab_run(bench->lab);
    frames_clear(&bench->sent);
    eth_bench_free(bench);
}

static void test_lies(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(lies); i++) {
        check(&lies[i], false);
    }
}

/* The largest and the least that can be. */
static void test_bounds(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(truths); i++) {
        check(&truths[i], true);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/state/goes-on", test_goes_on);
    test_add("/eth/state/lies", test_lies);
    test_add("/eth/state/bounds", test_bounds);
    return g_test_run();
}
