/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a hostile driver or segment can do to the Ethernet function.
 */
#include "lib-eth.h"
#include "lib-frames.h"

#define MIN_FRAME 60u
#define OK RDMA_HCA_STAT_OK

static uint64_t random_address(EthBench *bench)
{
    switch (eth_rand(bench, 0, 6)) {
    case 0:
        return (uint64_t)g_rand_int(bench->lab->rand) << 32 |
               g_rand_int(bench->lab->rand);
    case 1:
        return bench->nic->tx_ring + eth_rand(bench, 0, 4096); /* itself */
    case 2:
        return HOST_MMIO_BASE + eth_rand(bench, 0, HOST_MMIO_SIZE);
    default:
        return bench->nic->buffer + eth_rand(bench, 0, NIC_BUFFER_SIZE);
    }
}

static void random_descriptors(EthBench *bench, uint64_t ring)
{
    for (unsigned i = 0; i < 64; i++) {
        uint64_t addr = random_address(bench);
        uint32_t desc[4] = {
            RDMA_HCA_LO32(addr),
            RDMA_HCA_HI32(addr),
            g_rand_int(bench->lab->rand),
            g_rand_int(bench->lab->rand),
        };

        if (eth_rand(bench, 0, 2)) {
            desc[2] = (desc[2] & 0xffff0000) | eth_rand(bench, 0, 600);
        }
        host_write(bench->host, ring + 16 * i, desc, sizeof(desc));
    }
}

/* Noise; or a datagram with a few bytes changed, cut anywhere. */
static GByteArray *hostile_frame(EthBench *bench)
{
    GByteArray *frame;

    if (eth_rand(bench, 0, 2)) {
        return eth_make_frame(
            bench, eth_rand(bench, 0, 2) ? eth_broadcast : eth_stranger,
            eth_stranger, eth_rand(bench, 1, HCA_LINK_MAX_PACKET + 1));
    }
    frame = eth_make_datagram(
        bench, &eth_datagrams[eth_rand(bench, 0, eth_datagrams_number)]);
    for (unsigned n = eth_rand(bench, 0, 5); n; n--) {
        frame->data[eth_rand(bench, 12, MIN(frame->len, 80))] = g_rand_int(
            bench->lab->rand);
    }
    if (eth_rand(bench, 0, 2)) {
        g_byte_array_set_size(frame, eth_rand(bench, 1, frame->len + 1));
    }
    return frame;
}

/* Where a ring can lie: over buffers, over the other one, or nowhere. */
static uint64_t hostile_ring(EthBench *bench)
{
    const Nic *nic = bench->nic;
    const uint64_t places[] = {
        nic->tx_ring,
        nic->rx_ring,
        nic->buffer + 64 * eth_rand(bench, 0, NIC_BUFFER_SIZE / 64 - 16),
        nic->rx_buffer[eth_rand(bench, 0, 1u << nic->log)],
        HOST_MMIO_BASE + 64 * eth_rand(bench, 0, 1000),
        UINT64_MAX - 4095,
        0,
    };

    /* Places in memory more often. */
    return places[eth_rand(bench, 0, 3)
                      ? eth_rand(bench, 0, 4)
                      : eth_rand(bench, 0, G_N_ELEMENTS(places))];
}

static void hostile_restart(EthBench *bench)
{
    uint32_t sizes = eth_rand(bench, 4, 7) << 16 | eth_rand(bench, 4, 7);

    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    if (eth_rand(bench, 0, 2)) {
        g_assert_cmphex(nic_start(bench->nic), ==, OK);
    } else {
        uint64_t tx = hostile_ring(bench), rx = hostile_ring(bench);

        g_assert_cmphex(
            eth_setup(bench, tx, rx, sizes, eth_rand(bench, 0, 8), 1), ==, OK);
    }
}

static void hostile_step(EthBench *bench)
{
    static const uint32_t regs[] = {
        RDMA_HCA_ETH_DB_TX_TAIL,
        RDMA_HCA_ETH_DB_RX_TAIL,
        RDMA_HCA_ETH_DB_TX_ARM,
        RDMA_HCA_ETH_DB_RX_ARM,
    };
    GByteArray *frame;

    switch (eth_rand(bench, 0, 8)) {
    case 0:
        random_descriptors(bench, bench->nic->tx_ring);
        break;
    case 1:
        random_descriptors(bench, bench->nic->rx_ring);
        break;
    case 2:
        hostile_restart(bench);
        break;
    case 3:
    case 4:
        frame = hostile_frame(bench);
        eth_inject(bench, frame->data, frame->len);
        g_byte_array_unref(frame);
        break;
    default:
        nic_doorbell(bench->nic, regs[eth_rand(bench, 0, 4)],
                     eth_rand(bench, 0, 4) ? eth_rand(bench, 0, 128)
                                           : g_rand_int(bench->lab->rand));
    }
}

/*
 * Rings, descriptors, doorbells and frames at random. What the card then does
 * to memory is what it was told to; afterwards it works as before.
 */
static void test_hostile(void)
{
    EthBench *bench = eth_bench_new(60, 6);
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger, 333);
    /* With holes around it: no buffer of those named here leads to it. */
    uint64_t aside = host_alloc(bench->host, HOST_BLOCK_SIZE / HOST_PAGE_SIZE);

    host_clear_dirty(bench->host);

    for (unsigned i = 0; i < 20000; i++) {
        hostile_step(bench);
        lab_run(bench->lab);
        frames_clear(&bench->sent);
    }
    g_assert_cmpuint(eth_count(bench, "tx_errors"), >, 0);
    g_assert_cmpuint(eth_count(bench, "tx_frames"), >, 0);
    g_assert_cmpuint(eth_count(bench, "rx_frames"), >, 0);
    g_assert_cmpuint(eth_count(bench, "rx_checksum_ok"), >, 0);
    g_assert_cmpuint(eth_count(bench, "rx_errors"), >, 0);
    g_assert_cmpuint(eth_count(bench, "bad_doorbells"), >, 0);
    for (unsigned at = 0; at < HOST_BLOCK_SIZE; at += sizeof(uint32_t)) {
        g_assert_cmphex(host_read_le32(bench->host, aside + at), ==, 0);
        g_assert_false(host_is_dirty(bench->host, aside + at));
    }
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    g_assert_cmphex(nic_start(bench->nic), ==, OK);
    nic_send(bench->nic, frame->data, frame->len);
    eth_expect_sent(bench, frame->data, frame->len);
    eth_inject(bench, frame->data, frame->len);
    eth_expect_received(bench, frame->data, frame->len, 0);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/hostile", test_hostile);
    return g_test_run();
}
