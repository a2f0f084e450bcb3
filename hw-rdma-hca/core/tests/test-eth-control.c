/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function's interrupts and commands, and how it is stopped.
 */
#include <string.h>

#include "../link/framing.h"
#include "lib-eth.h"

#define MIN_FRAME 60u
#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define DONE RDMA_HCA_ETH_DONE

/* ---- interrupts ---- */

static void expect_interrupts(EthBench *bench, uint64_t tx, uint64_t rx)
{
    lab_run(bench->lab);
    g_assert_cmpuint(bench->host->msix[NIC_TX_VECTOR], ==, tx);
    g_assert_cmpuint(bench->host->msix[NIC_RX_VECTOR], ==, rx);
    g_assert_cmpuint(eth_count(bench, "interrupts"), ==, tx + rx);
}

static void test_arm_tx(void)
{
    EthBench *bench = eth_bench_new(30, 4);
    Nic *nic = bench->nic;
    uint8_t frame[MIN_FRAME] = { 0 };

    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 0, 0);               /* not armed */
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 0); /* is done already */
    expect_interrupts(bench, 1, 0);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 1, 0);               /* only once */
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 2); /* not posted yet */
    expect_interrupts(bench, 1, 0);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 2, 0);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 5); /* the third from now */
    nic_send(nic, frame, sizeof(frame));
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 2, 0);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 3, 0);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 9); /* armed anew: it moves */
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 6);
    nic_send(nic, frame, sizeof(frame));
    expect_interrupts(bench, 4, 0);
    eth_bench_free(bench);
}

static void test_arm_rx(void)
{
    EthBench *bench = eth_bench_new(31, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger, 70);
    GByteArray *other = eth_make_frame(bench, eth_stranger, eth_broadcast, 70);

    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
    eth_inject(bench, other->data, other->len);
    expect_interrupts(bench, 0, 0); /* not for us */
    eth_inject(bench, frame->data, frame->len);
    expect_interrupts(bench, 0, 1);
    eth_inject(bench, frame->data, frame->len);
    expect_interrupts(bench, 0, 1);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 1);
    expect_interrupts(bench, 0, 2);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 2);
    expect_interrupts(bench, 0, 2);
    eth_inject(bench, frame->data, frame->len);
    expect_interrupts(bench, 0, 3);
    g_byte_array_unref(frame);
    g_byte_array_unref(other);
    eth_bench_free(bench);
}

/*
 * A driver that looks, arms at what it has not seen done, and sleeps: whatever
 * the order of frames and arming, it is always woken. Indices wrap.
 */
static void test_arm_race(void)
{
    EthBench *bench = eth_bench_new(32, 4);
    Nic *nic = bench->nic;
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger, 60);
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, frame->len);
    for (unsigned i = 0; i < 30000; i++) {
        uint64_t before = bench->host->msix[NIC_RX_VECTOR];
        unsigned frames = eth_rand(bench, 0, 4), taken = 0;
        bool arm_first = eth_rand(bench, 0, 2);
        GByteArray *got;

        if (arm_first) {
            nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, nic->rx_next);
        }
        for (unsigned n = 0; n < frames; n++) {
            lab_cable_inject(bench->lab, 1, header, sizeof(header));
            lab_cable_inject(bench->lab, 1, frame->data, frame->len);
        }
        lab_run(bench->lab);
        if (!arm_first) {
            nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, nic->rx_next);
            lab_run(bench->lab);
        }
        g_assert_cmpint(bench->host->msix[NIC_RX_VECTOR] > before, ==,
                        frames > 0);
        while ((got = nic_receive(nic, NULL))) {
            g_byte_array_unref(got);
            taken++;
        }
        g_assert_cmpuint(taken, ==, frames);
    }
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* ---- commands ---- */

static void test_setup(void)
{
    static const struct {
        int64_t tx, rx; /* added to the rings' places */
        uint32_t sizes, vectors;
        uint8_t op_modifier;
    } wrong[] = {
        { 1, 0, 0x40004, 0, 1 },
        { 32, 0, 0x40004, 0, 1 },
        { 0, 16, 0x40004, 0, 1 },
        { 0, -1, 0x40004, 0, 1 },
        { 0, 0, 0x30004, 0, 1 },
        { 0, 0, 0x40003, 0, 1 },
        { 0, 0, 0xd0004, 0, 1 },
        { 0, 0, 0x4000d, 0, 1 },
        { 0, 0, 0, 0, 1 },
        { 0, 0, UINT32_MAX, 0, 1 },
        { 0, 0, 0x400004, 0, 1 },
        { 0, 0, 0x40024, 0, 1 },
        { 0, 0, 0x40004, 8, 1 },
        { 0, 0, 0x40004, 8 << 16, 1 },
        { 0, 0, 0x40004, UINT32_MAX, 1 },
        { 0, 0, 0x40004, 0, 2 },
        { 0, 0, 0x40004, 0, 0xf },
    };
    EthBench *bench = eth_bench_new(40, 4);
    uint64_t tx = bench->nic->tx_ring, rx = bench->nic->rx_ring;

    g_assert_cmphex(nic_start(bench->nic), ==, RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_cmphex(eth_setup(bench, tx + wrong[i].tx, rx + wrong[i].rx,
                                  wrong[i].sizes, wrong[i].vectors,
                                  wrong[i].op_modifier),
                        ==, RDMA_HCA_STAT_BAD_PARAM);
        g_assert_cmpuint(eth_count(bench, "running"), ==, 0);
    }
    g_assert_cmphex(eth_setup(bench, UINT64_MAX - 63, rx, 0x40004, 0, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(eth_setup(bench, tx, rx, 0xc0004, 7 << 16, 1), ==, OK);
    g_assert_cmpuint(eth_count(bench, "running"), ==, 1);
    eth_bench_free(bench);
}

static void test_rx_mode_refused(void)
{
    uint8_t list[2][6] = { { 1, 2, 3, 4, 5, 6 }, { 2, 2, 3, 4, 5, 6 } };
    EthBench *bench = eth_bench_new(41, 4);
    uint8_t *mac = bench->host->config.mac, was[6];

    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 2), ==,
                    RDMA_HCA_STAT_BAD_PARAM); /* not a group */
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 1), ==, OK);
    memcpy(was, mac, 6);
    memset(mac, 0, 6);
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    memcpy(mac, eth_broadcast, 6);
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    memcpy(mac, was, 6);
    eth_bench_free(bench);
}

static void test_rx_mode_count(void)
{
    static const uint32_t counts[] = { 129, 1000, 0x10000, 0x80000000,
                                       UINT32_MAX };
    uint8_t list[RDMA_HCA_RX_MODE_MAX_MULTICAST][6];
    EthBench *bench = eth_bench_new(42, 4);

    memset(list, 1, sizeof(list));
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, counts[i]), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
    }
    g_assert_cmphex(nic_set_rx_mode(bench->nic, 0, list, 128), ==, OK);
    eth_bench_free(bench);
}

static void test_infiniband(void)
{
    Pair *pair = pair_new(43, 4096);
    uint8_t box[RDMA_HCA_RX_MODE_SIZE] = { 0 };

    for (unsigned modifier = 0; modifier < 2; modifier++) {
        g_assert_cmphex(driver_cmd_in(pair->drv[0], RDMA_HCA_CMD_SETUP_ETH, box,
                                      sizeof(box), 0, modifier),
                        ==, RDMA_HCA_STAT_BAD_OP);
    }
    g_assert_cmphex(driver_cmd_in(pair->drv[0], RDMA_HCA_CMD_SET_RX_MODE, box,
                                  sizeof(box), 0, 0),
                    ==, RDMA_HCA_STAT_BAD_OP);
    for (unsigned reg = 0; reg < RDMA_HCA_ETH_DB_STRIDE; reg += 4) {
        host_bar0_write(&pair->lab->host[0], RDMA_HCA_ETH_DB + reg, 1);
    }
    lab_run(pair->lab);
    g_assert_cmpuint(nic_counter(&pair->lab->host[0], "bad_doorbells"), ==, 0);
    pair_free(pair);
}

/* ---- stopping ---- */

typedef enum End {
    END_STOP,
    END_CLOSE_HCA,
    END_RESET
} End;

static void end_it(EthBench *bench, End end)
{
    switch (end) {
    case END_STOP:
        g_assert_cmphex(nic_stop(bench->nic), ==, OK);
        break;
    case END_CLOSE_HCA:
        g_assert_cmphex(
            driver_cmd(bench->drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL),
            ==, OK);
        break;
    case END_RESET:
        host_reset(bench->host);
        break;
    }
}

/*
 * The cable is full, frames wait in the ring: after the end of the rings none
 * of them leaves but those that had been taken, and no memory is written.
 */
static void stop_while_full(End end)
{
    EthBench *bench = eth_bench_new(50 + end, 8);
    Nic *nic = bench->nic;
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger,
                                       9000);
    uint64_t taken;

    lab_tap(bench->lab, NULL, NULL);
    bench->lab->host[1].kicked = false;
    bench->lab->capacity = 0;
    for (unsigned i = 0; i < 200; i++) {
        nic_put_tx(nic, nic->buffer, 9000, LAST);
    }
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 199);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
    nic_ring_tx(nic);
    lab_run(bench->lab);
    taken = eth_count(bench, "tx_frames");
    g_assert_cmpuint(taken, >, 10);
    g_assert_cmpuint(taken, <, 199);

    end_it(bench, end);
    lab_run(bench->lab);
    host_clear_dirty(bench->host);
    bench->lab->capacity = 1 << 20;
    hca_link_writable(bench->host->hca);
    bench->host->kicked = true;
    eth_inject(bench, frame->data, frame->len);
    g_assert_cmpuint(eth_count(bench, "tx_frames"), ==,
                     end == END_RESET ? 0 : taken);
    g_assert_cmpuint(eth_count(bench, "rx_frames"), ==, 0);
    g_assert_cmpuint(eth_count(bench, "rx_filtered"), ==, 1);
    g_assert_cmpuint(eth_count(bench, "interrupts"), ==, 0);
    g_assert_false(host_is_dirty(bench->host, nic->tx_ring));
    g_assert_false(host_is_dirty(bench->host, nic->rx_ring));
    g_assert_false(host_is_dirty(bench->host, nic->rx_buffer[0]));
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

static void test_stop_while_full(void)
{
    stop_while_full(END_STOP);
}

static void test_close_while_full(void)
{
    stop_while_full(END_CLOSE_HCA);
}

static void test_reset_while_full(void)
{
    stop_while_full(END_RESET);
}

/* The first piece of a frame of too many is not held against the next ring. */
static void test_stop_in_endless(void)
{
    EthBench *bench = eth_bench_new(54, 6);
    Nic *nic = bench->nic;
    uint8_t frame[MIN_FRAME] = { 0 };

    for (unsigned i = 0; i < 25; i++) {
        nic_put_tx(nic, nic->buffer, 20, 0);
    }
    nic_ring_tx(nic);
    eth_expect_none_sent(bench);
    g_assert_cmphex(nic_stop(nic), ==, OK);
    g_assert_cmphex(nic_start(nic), ==, OK);
    nic_send(nic, frame, sizeof(frame));
    eth_expect_sent(bench, frame, sizeof(frame));
    eth_bench_free(bench);
}

/* The filter is the card's own again. */
static void test_reset_filter(void)
{
    EthBench *bench = eth_bench_new(55, 4);
    GByteArray *frame = eth_make_frame(bench, eth_stranger, eth_broadcast, 80);

    g_assert_cmphex(
        nic_set_rx_mode(bench->nic, RDMA_HCA_RX_MODE_PROMISC, NULL, 0), ==, OK);
    host_reset(bench->host);
    driver_free(bench->drv);
    bench->drv = driver_new(bench->host);
    bench->nic->drv = bench->drv;
    g_assert_cmphex(nic_start(bench->nic), ==, OK);
    eth_inject(bench, frame->data, frame->len);
    g_assert_cmpuint(eth_count(bench, "rx_filtered"), ==, 1);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* A ring that is not RAM, or read-only, is given up; a new one works. */
static void test_bad_rings(void)
{
    EthBench *bench = eth_bench_new(56, 4);
    Nic *nic = bench->nic;
    uint64_t rom = host_alloc(bench->host, 16);
    const uint64_t bad[] = { 0, HOST_MMIO_BASE, UINT64_MAX - 4095, rom };
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger, 80);

    host_set_rom(bench->host, rom);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(nic_stop(nic), ==, OK);
        g_assert_cmphex(eth_setup(bench, bad[i] & ~63ull, bad[i] & ~63ull,
                                  0x40004, NIC_TX_VECTOR << 16 | NIC_RX_VECTOR,
                                  1),
                        ==, OK);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, 0);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, 0);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_TAIL, 3);
        nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_TAIL, 3);
        lab_run(bench->lab);
        eth_inject(bench, frame->data, frame->len);
        eth_inject(bench, frame->data, frame->len);
        g_assert_cmpuint(eth_count(bench, "tx_errors"), ==, i + 1);
        g_assert_cmpuint(eth_count(bench, "rx_errors"), ==, i + 1);
        g_assert_cmpuint(eth_count(bench, "running"), ==, 0);
    }
    g_assert_cmpuint(eth_count(bench, "interrupts"), ==, 0);
    g_assert_cmphex(nic_stop(nic), ==, OK);
    g_assert_cmphex(nic_start(nic), ==, OK);
    eth_inject(bench, frame->data, frame->len);
    eth_expect_received(bench, frame->data, frame->len, 0);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* Without a cable frames are lost, and their descriptors done. */
static void test_no_link(void)
{
    EthBench *bench = eth_bench_new(57, 6);
    uint8_t frame[MIN_FRAME] = { 0 };

    lab_cable(bench->lab, false);
    for (unsigned i = 0; i < 40; i++) {
        nic_send(bench->nic, frame, sizeof(frame));
    }
    eth_expect_done(bench, 40, DONE);
    lab_cable(bench->lab, true);
    nic_send(bench->nic, frame, sizeof(frame));
    eth_expect_sent(bench, frame, sizeof(frame));
    eth_expect_none_sent(bench);
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/arm/tx", test_arm_tx);
    test_add("/eth/arm/rx", test_arm_rx);
    test_add("/eth/arm/race", test_arm_race);
    test_add("/eth/commands/setup", test_setup);
    test_add("/eth/commands/rx-mode", test_rx_mode_refused);
    test_add("/eth/commands/rx-mode-count", test_rx_mode_count);
    test_add("/eth/commands/infiniband", test_infiniband);
    test_add("/eth/stop/full", test_stop_while_full);
    test_add("/eth/stop/close-hca", test_close_while_full);
    test_add("/eth/stop/reset", test_reset_while_full);
    test_add("/eth/stop/in-endless", test_stop_in_endless);
    test_add("/eth/stop/filter", test_reset_filter);
    test_add("/eth/stop/bad-rings", test_bad_rings);
    test_add("/eth/no-link", test_no_link);
    return g_test_run();
}
