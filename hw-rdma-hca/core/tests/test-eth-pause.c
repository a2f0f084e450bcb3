/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flow control of the link: PAUSE frames that arrive, and the card's own. */
#include <string.h>

#include "../link/framing.h"
#include "lib-eth.h"
#include "lib-frames.h"
#include "lib-raw.h"

#define OK RDMA_HCA_STAT_OK
#define LAST RDMA_HCA_ETH_TX_LAST
#define MIN_FRAME 60u
#define PAUSE_SIZE 18u
#define MAC_CONTROL 0x8808
#define LOG_RING 6
#define POSTED 63u   /* of a new ring */
#define SHORT 8u     /* fewer are too few */
#define ENOUGH 16u   /* more are enough */
#define MOST 3355392 /* ns: 0xffff quanta at 10 Gbit/s */
#define SLACK 2000   /* for a turn of a card the lab takes some time */

static const uint8_t group[6] = { 0x01, 0x80, 0xc2, 0, 0, 1 };

/* ---- frames ---- */

static void make_pause(uint8_t *frame, const uint8_t *to, const uint8_t *from,
                       uint16_t quanta)
{
    memset(frame, 0, MIN_FRAME);
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    eth_put16(frame + 12, MAC_CONTROL);
    eth_put16(frame + 14, 1);
    eth_put16(frame + 16, quanta);
}

static void pause_card(EthBench *bench, uint16_t quanta)
{
    uint8_t frame[MIN_FRAME];

    make_pause(frame, group, eth_stranger, quanta);
    eth_inject(bench, frame, sizeof(frame));
}

/* What card 0 sends when it wants to. */
static void expect_pause(EthBench *bench, uint16_t quanta)
{
    uint8_t frame[MIN_FRAME];

    make_pause(frame, group, bench->host->config.mac, quanta);
    eth_expect_sent(bench, frame, sizeof(frame));
}

/* A frame to card 0 with its number. */
static void inject(EthBench *bench, unsigned number)
{
    uint8_t frame[MIN_FRAME] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

    memcpy(frame + 6, eth_stranger, 6);
    eth_put16(frame + 12, 0x88b5);
    eth_put16(frame + 14, number);
    eth_inject(bench, frame, sizeof(frame));
}

static void inject_many(EthBench *bench, unsigned first, unsigned n)
{
    while (n--) {
        inject(bench, first++);
    }
}

/* The driver takes @n frames, the first of them @first, and refills. */
static void take(EthBench *bench, unsigned first, unsigned n)
{
    while (n--) {
        GByteArray *frame = nic_receive(bench->nic, NULL);

        g_assert_nonnull(frame);
        g_assert_cmpuint(frame->data[14] << 8 | frame->data[15], ==, first++);
        g_byte_array_unref(frame);
        lab_run(bench->lab);
    }
}

static void transmit(EthBench *bench)
{
    nic_put_tx(bench->nic, bench->nic->buffer, MIN_FRAME, LAST);
    nic_ring_tx(bench->nic);
}

/* Frames that have left since the last look. */
static unsigned left(EthBench *bench)
{
    unsigned n;

    lab_run(bench->lab);
    n = g_queue_get_length(&bench->sent);
    frames_clear(&bench->sent);
    return n;
}

static EthBench *bench_new(uint32_t seed, bool rx, bool tx)
{
    EthBench *bench = eth_bench_new(seed, LOG_RING);

    g_assert_cmphex(nic_set_pause(bench->nic, rx, tx), ==, OK);
    return bench;
}

/* ---- frames that arrive ---- */

/* A frame leaves @ns from now, but for what turns of the lab take. */
static void expect_still(EthBench *bench, int64_t ns)
{
    int64_t end = bench->host->deadline, now = bench->lab->now;

    g_assert_cmpint(end - now, >, ns - SLACK);
    g_assert_cmpint(end - now, <=, ns);
    transmit(bench);
    lab_sleep(bench->lab, end - now - SLACK);
    g_assert_cmpuint(left(bench), ==, 0);
    lab_sleep(bench->lab, SLACK);
    g_assert_cmpuint(left(bench), ==, 1);
}

/* Nothing leaves for as long as the frame says. */
static void test_time(void)
{
    static const uint16_t quanta[] = { 100, 1000, 0xffff };
    static const int64_t ns[] = { 5120, 51200, MOST };
    EthBench *bench = bench_new(1, true, false);

    for (unsigned i = 0; i < G_N_ELEMENTS(quanta); i++) {
        pause_card(bench, quanta[i]);
        expect_still(bench, ns[i]);
        g_assert_cmpuint(eth_count(bench, "rx_pause"), ==, i + 1);
        g_assert_cmpuint(eth_count(bench, "tx_stopped"), ==, i + 1);
    }
    eth_bench_free(bench);
}

/* The last one counts, longer or shorter, and 0 ends it. */
static void test_replaced(void)
{
    EthBench *bench = bench_new(2, true, false);

    pause_card(bench, 1000);
    pause_card(bench, 0xffff);
    lab_sleep(bench->lab, MOST - SLACK);
    pause_card(bench, 100);
    expect_still(bench, 5120);

    pause_card(bench, 0xffff);
    transmit(bench);
    g_assert_cmpuint(left(bench), ==, 0);
    pause_card(bench, 0);
    g_assert_cmpuint(left(bench), ==, 1);
    pause_card(bench, 0); /* for nothing */
    g_assert_cmpuint(eth_count(bench, "rx_pause"), ==, 6);
    g_assert_cmpuint(eth_count(bench, "tx_stopped"), ==, 2);
    eth_bench_free(bench);
}

/* As a card begins, and after it was switched off. */
static void test_off(void)
{
    EthBench *bench = eth_bench_new(3, LOG_RING);

    pause_card(bench, 0xffff);
    transmit(bench);
    g_assert_cmpuint(left(bench), ==, 1);
    g_assert_cmphex(nic_set_pause(bench->nic, false, true), ==, OK);
    pause_card(bench, 0xffff);
    transmit(bench);
    g_assert_cmpuint(left(bench), ==, 1);
    g_assert_cmpuint(eth_count(bench, "tx_stopped"), ==, 0);

    g_assert_cmphex(nic_set_pause(bench->nic, true, false), ==, OK);
    pause_card(bench, 0xffff);
    transmit(bench);
    g_assert_cmpuint(left(bench), ==, 0);
    g_assert_cmphex(nic_set_pause(bench->nic, false, false), ==, OK);
    g_assert_cmpuint(left(bench), ==, 1);
    g_assert_cmpuint(eth_count(bench, "rx_pause"), ==, 3);
    g_assert_cmpuint(eth_count(bench, "tx_pause"), ==, 0);
    eth_bench_free(bench);
}

/*
 * No MAC control frame gets to software, which is told of every other one; nor
 * does one stop the port that is no PAUSE, or not for it.
 */
static void test_other_frames(void)
{
    EthBench *bench = bench_new(4, true, false);
    const uint8_t *own = bench->host->config.mac;
    uint8_t frame[MIN_FRAME], other[6] = { 2, 0, 0, 0, 0, 0x77 };
    const struct {
        const uint8_t *to, *from;
        uint16_t opcode;
        unsigned len;
    } none[] = {
        { group, eth_stranger, 0x0101, MIN_FRAME }, /* of a priority */
        { group, eth_stranger, 0, MIN_FRAME },
        { group, eth_stranger, 0xffff, MIN_FRAME },
        { group, own, 1, MIN_FRAME }, /* its own, which came back */
        { other, eth_stranger, 1, MIN_FRAME },
        { eth_broadcast, eth_stranger, 1, MIN_FRAME },
        { group, eth_stranger, 1, 14 },
        { group, eth_stranger, 1, 15 },
        { group, eth_stranger, 1, 16 },
        { group, eth_stranger, 1, 17 },
    };

    g_assert_cmphex(
        nic_set_rx_mode(bench->nic,
                        RDMA_HCA_RX_MODE_PROMISC | RDMA_HCA_RX_MODE_ALLMULTI,
                        NULL, 0),
        ==, OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(none); i++) {
        make_pause(frame, none[i].to, none[i].from, 0xffff);
        eth_put16(frame + 14, none[i].opcode);
        eth_inject(bench, frame, none[i].len);
        transmit(bench);
        g_assert_cmpuint(left(bench), ==, 1);
        g_assert_cmpuint(eth_count(bench, "rx_control_ignored"), ==, i + 1);
    }
    g_assert_cmpuint(eth_count(bench, "rx_pause"), ==, 0);
    g_assert_cmpuint(eth_count(bench, "rx_frames"), ==, 0);
    g_assert_cmpuint(eth_count(bench, "rx_filtered"), ==, 0);

    make_pause(frame, group, eth_stranger, 0xffff);
    memmove(frame + 16, frame + 12, MIN_FRAME - 16);
    eth_put16(frame + 12, 0x8100); /* of a VLAN: a frame like any other */
    eth_inject(bench, frame, sizeof(frame));
    eth_expect_received(bench, frame, sizeof(frame), 0);
    make_pause(frame, own, eth_stranger, 1000);
    eth_inject(bench, frame,
               PAUSE_SIZE); /* to its own address, and no longer */
    expect_still(bench, 51200);
    eth_bench_free(bench);
}

/* Without rings, too; and any number of them are no more than the last one. */
static void test_flood(void)
{
    EthBench *bench = bench_new(5, true, false);

    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    for (unsigned i = 0; i < 1000; i++) {
        pause_card(bench, eth_rand(bench, 0, 0x10000));
    }
    g_assert_cmphex(nic_start(bench->nic), ==, OK);
    pause_card(bench, 100);
    expect_still(bench, 5120);
    g_assert_cmpuint(eth_count(bench, "rx_pause"), ==, 1001);
    eth_bench_free(bench);
}

typedef enum End {
    END_RESET,
    END_CLOSE,
    END_LINK,
    NENDS
} End;

/* What has begun ends with the card, and with the link; settings with the card. */
static void test_forgotten(void)
{
    for (End end = 0; end < NENDS; end++) {
        EthBench *bench = bench_new(6 + end, true, true);
        HcaLink *link = bench->host->hca->link;

        pause_card(bench, 0xffff);
        g_assert_true(hca_link_is_paused(link));
        switch (end) {
        case END_RESET:
            host_reset(bench->host);
            break;
        case END_CLOSE:
            g_assert_cmphex(driver_cmd(bench->drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0,
                                       0, 0, NULL),
                            ==, OK);
            break;
        default:
            lab_cable(bench->lab, false);
            lab_cable(bench->lab, true);
            break;
        }
        lab_run(bench->lab);
        g_assert_false(hca_link_is_paused(link));
        pause_card(bench, 0xffff);
        g_assert_true(hca_link_is_paused(link) == (end == END_LINK));
        eth_bench_free(bench);
    }
}

/* The frame comes to card 0 of a pair. */
static void pause_pair(Pair *pair, uint16_t quanta)
{
    uint8_t box[HCA_FRAME_HEADER_SIZE + MIN_FRAME];

    hca_frame_write_header(box, HCA_FRAME_PACKET, 0, MIN_FRAME);
    make_pause(box + HCA_FRAME_HEADER_SIZE, group, eth_stranger, quanta);
    lab_cable_inject(pair->lab, 1, box, sizeof(box));
    lab_run(pair->lab);
}

static void post_write(Pair *pair, Qp *qp, unsigned to, uint64_t wr_id)
{
    Sge sge;
    SendWr wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, wr_id, &sge, 0,
                          5000, 0);

    wr.raddr = mr_sge(pair->mr[to], 8192, 5000).va;
    wr.rkey = pair->mr[to]->key;
    g_assert_true(qp_post_send(qp, &wr, 1));
}

/* RDMA stands still, too; what turns round in the card is not on the link. */
static void test_rdma(void)
{
    Pair *pair = pair_new_roce(10, 65536, NULL, NULL);
    Nic *nic = nic_new(pair->drv[0], LOG_RING);
    Qp *qp[2], *own;
    QpConfig config;
    QpAttr attr;
    Wc wc;

    pair_connect(pair, NULL, qp);
    qp_config_init(&config, pair->pd[0], pair->cq[0]);
    own = qp_new(pair->drv[0], &config);
    qp_attr_init(&attr);
    qp_connect(own, own, &attr);
    g_assert_cmphex(nic_set_pause(nic, true, false), ==, OK);
    pause_pair(pair, 1000);
    post_write(pair, qp[0], 1, 7);
    post_write(pair, own, 0, 8);
    lab_sleep(pair->lab, 51200 - SLACK);
    g_assert_true(cq_poll(pair->cq[0], &wc));
    g_assert_cmpuint(wc.wr_id, ==, 8);
    g_assert_false(cq_poll(pair->cq[0], &wc));
    lab_sleep(pair->lab, 2 * SLACK);
    cq_expect(pair->cq[0], &wc, 7, 0);

    /* For longer than all time-outs: what has not left has none. */
    pause_pair(pair, 0xffff);
    post_write(pair, qp[0], 1, 9);
    for (unsigned i = 0; i < 3000; i++) {
        pause_pair(pair, 0xffff);
        lab_sleep(pair->lab, MOST - SLACK);
    }
    g_assert_false(cq_poll(pair->cq[0], &wc));
    lab_sleep(pair->lab, 2 * SLACK);
    cq_expect(pair->cq[0], &wc, 9, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "requester_retransmissions"), ==, 0);
    nic_free(nic);
    pair_free(pair);
}

/* Nor does a raw packet QP see one, be it a sniffer's or that of all frames. */
static void test_raw(void)
{
    static const uint32_t kinds[] = { RDMA_HCA_FLOW_SNIFFER,
                                      RDMA_HCA_FLOW_NORMAL,
                                      RDMA_HCA_FLOW_ALL_DEFAULT };
    RawBench *bench = raw_bench_new(11);
    Qp *qp[G_N_ELEMENTS(kinds)];
    uint8_t frame[MIN_FRAME];

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        qp[i] = raw_new(bench);
        raw_post(bench, qp[i], 1);
        flow_rule(bench, i, qp[i], RDMA_HCA_PREP(RDMA_HCA_FLOW_KIND, kinds[i]));
    }
    make_pause(frame, group, eth_stranger, 10);
    raw_inject(bench, frame, sizeof(frame));
    eth_put16(frame + 14, 2);
    raw_inject(bench, frame, sizeof(frame));
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        raw_expect_none(bench, qp[i]);
    }
    g_assert_cmpuint(raw_count(bench, "ethernet_rx_pause"), ==, 1);
    g_assert_cmpuint(raw_count(bench, "ethernet_rx_control_ignored"), ==, 1);

    /* What a program sends to its own card has not come by the link. */
    g_assert_cmphex(nic_set_pause(bench->nic, true, true), ==, OK);
    eth_put16(frame + 14, 1);
    raw_send(bench, qp[0], frame, sizeof(frame));
    raw_expect_sent(bench, frame, sizeof(frame));
    g_assert_cmpuint(raw_count(bench, "ethernet_rx_pause"), ==, 1);
    raw_bench_free(bench);
}

/* ---- frames that the card sends ---- */

/* Told, told again in time, released; and the same once more. */
static void test_rule(void)
{
    EthBench *bench = bench_new(12, false, true);
    unsigned n = POSTED - SHORT;

    inject_many(bench, 0, n);
    lab_sleep(bench->lab, NS_PER_S);
    g_assert_cmpuint(left(bench), ==, 0);
    inject(bench, n++);
    expect_pause(bench, 0xffff);
    for (unsigned i = 0; i < 10; i++) {
        lab_sleep(bench->lab, MOST / 2 - 2 * SLACK);
        g_assert_cmpuint(left(bench), ==, 0);
        lab_sleep(bench->lab, 2 * SLACK);
        expect_pause(bench, 0xffff);
    }
    take(bench, 0, ENOUGH - SHORT + 1);
    g_assert_cmpuint(left(bench), ==, 0);
    take(bench, ENOUGH - SHORT + 1, 1);
    expect_pause(bench, 0);
    g_assert_cmpuint(eth_count(bench, "tx_pause"), ==, 12);

    inject_many(bench, n, ENOUGH - SHORT + 1);
    n += ENOUGH - SHORT + 1;
    lab_sleep(bench->lab, NS_PER_S);
    g_assert_cmpuint(left(bench), ==, 0);
    inject(bench, n);
    expect_pause(bench, 0xffff);
    eth_bench_free(bench);
}

/* Without the rule frames are lost; with it they wait, in their order. */
static void test_wait(void)
{
    for (unsigned tx = 0; tx < 2; tx++) {
        EthBench *bench = bench_new(13, true, tx);

        inject_many(bench, 0, POSTED + 20);
        g_assert_cmpuint(eth_count(bench, "rx_frames"), ==, POSTED);
        g_assert_cmpuint(eth_count(bench, "rx_waited"), ==, tx ? 20 : 0);
        g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, tx ? 0 : 20);
        g_assert_cmpuint(eth_count(bench, "tx_pause"), ==, tx);
        if (tx) {
            take(bench, 0, 5);
            inject_many(bench, POSTED + 20, 10);
            take(bench, 5, POSTED + 25);
        } else {
            take(bench, 0, POSTED);
        }
        g_assert_null(nic_receive(bench->nic, NULL));
        g_assert_cmpuint(eth_count(bench, "tx_pause"), ==, 2 * tx);
        eth_bench_free(bench);
    }
}

/* More than a turn's share waits, and the driver refills all at once. */
static void test_wait_long(void)
{
    EthBench *bench = bench_new(14, false, true);
    unsigned taken = 0;

    inject_many(bench, 0, 500);
    g_assert_cmpuint(left(bench), ==, 1);
    while (taken < 500) {
        GByteArray *frame;

        while ((frame = nic_receive(bench->nic, NULL))) {
            g_assert_cmpuint(frame->data[14] << 8 | frame->data[15], ==,
                             taken++);
            g_byte_array_unref(frame);
        }
        g_assert_true(lab_step(bench->lab) || taken == 500);
    }
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 0);
    g_assert_cmpuint(eth_count(bench, "rx_waited"), ==, 500 - POSTED);
    eth_bench_free(bench);
}

/* Of what waits there is no more than fits; the rest is lost, and counted. */
static void test_room(void)
{
    EthBench *bench = bench_new(15, false, true);
    GByteArray *frame = eth_make_frame(bench, eth_broadcast, eth_stranger,
                                       9000);
    uint64_t waited, lost;

    for (unsigned i = 0; i < POSTED + 100; i++) {
        eth_inject(bench, frame->data, frame->len);
    }
    waited = eth_count(bench, "rx_waited");
    lost = eth_count(bench, "rx_no_buffer");
    g_assert_cmpuint(waited, >=, 20);
    g_assert_cmpuint(waited + lost, ==, 100);
    for (unsigned i = 0; i < POSTED + waited; i++) {
        eth_expect_received(bench, frame->data, frame->len, 0);
        lab_run(bench->lab);
    }
    g_assert_null(nic_receive(bench->nic, NULL));
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, lost);
    g_byte_array_unref(frame);
    eth_bench_free(bench);
}

/* A hash sends all datagrams to ring 1. */
static void spread_to_one(EthBench *bench)
{
    struct rdma_hca_rss rss = { .types = GUINT32_TO_BE(RDMA_HCA_RSS_ALL) };

    memset(rss.table, 1, sizeof(rss.table));
    g_assert_cmphex(driver_cmd_in(bench->drv, RDMA_HCA_CMD_SET_RSS, &rss,
                                  sizeof(rss), 0, 0),
                    ==, OK);
}

static void expect_datagram(Nic *nic)
{
    GByteArray *frame = nic_receive(nic, NULL);

    g_assert_nonnull(frame);
    g_byte_array_unref(frame);
}

/*
 * A ring that nobody refills stops the segment for eight seconds, and other
 * rings no longer; it has its right again when it was refilled.
 */
static void test_given_up(void)
{
    EthBench *bench = bench_new(16, false, true);
    Nic *other = nic_new_queue(bench->drv, LOG_RING, 1, 0);
    GByteArray *datagram = eth_make_datagram(bench, &eth_datagrams[0]);
    unsigned n = POSTED + 7;

    spread_to_one(bench);
    inject_many(bench, 0, n);
    eth_inject(bench, datagram->data, datagram->len);
    g_assert_cmpuint(eth_count(bench, "rx_waited"), ==, 8);
    lab_sleep(bench->lab, 8 * NS_PER_S - MOST);
    g_assert_cmpuint(left(bench), >, 8 * NS_PER_S / MOST);
    g_assert_null(nic_receive(other, NULL));
    lab_sleep(bench->lab, 2 * MOST);
    while (g_queue_get_length(&bench->sent) > 1) {
        expect_pause(bench, 0xffff);
    }
    expect_pause(bench, 0);
    g_assert_cmpuint(eth_count(bench, "pause_given_up"), ==, 1);
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 7);
    expect_datagram(other);
    lab_sleep(bench->lab, 20 * NS_PER_S);
    inject(bench, n);
    eth_inject(bench, datagram->data, datagram->len);
    expect_datagram(other);
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 8);

    take(bench, 0, ENOUGH);
    inject_many(bench, n, ENOUGH);
    g_assert_cmpuint(left(bench), ==, 0);
    take(bench, ENOUGH, POSTED - ENOUGH);
    inject_many(bench, n + ENOUGH, POSTED - ENOUGH - SHORT + 1);
    expect_pause(bench, 0xffff);
    g_byte_array_unref(datagram);
    nic_free(other);
    eth_bench_free(bench);
}

/* Who refills something has its eight seconds again. */
static void test_refilled_in_part(void)
{
    EthBench *bench = bench_new(17, false, true);

    inject_many(bench, 0, POSTED);
    for (unsigned i = 0; i < 5; i++) {
        lab_sleep(bench->lab, 7 * NS_PER_S);
        take(bench, i, 1);
    }
    g_assert_cmpuint(eth_count(bench, "pause_given_up"), ==, 0);
    lab_sleep(bench->lab, 8 * NS_PER_S + MOST);
    g_assert_cmpuint(eth_count(bench, "pause_given_up"), ==, 1);
    eth_bench_free(bench);
}

/* Rings that are closed, or have had no buffers yet, stop nobody. */
static void test_rings(void)
{
    EthBench *bench = bench_new(18, false, true);
    Nic *nic = bench->nic;

    inject_many(bench, 0, POSTED + 5);
    expect_pause(bench, 0xffff);
    g_assert_cmphex(nic_stop(nic), ==, OK);
    expect_pause(bench, 0);
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 5);
    g_assert_cmphex(eth_setup(bench, nic->tx_ring, nic->rx_ring,
                              LOG_RING << 16 | LOG_RING,
                              NIC_TX_VECTOR << 16 | NIC_RX_VECTOR,
                              RDMA_HCA_SETUP_ETH_START),
                    ==, OK);
    inject(bench, 0);
    lab_sleep(bench->lab, NS_PER_S);
    g_assert_cmpuint(left(bench), ==, 0);
    g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 6);
    g_assert_cmpuint(eth_count(bench, "rx_waited"), ==, 5);
    eth_bench_free(bench);
}

/* On when a ring is short already; off while frames wait. */
static void test_switched(void)
{
    EthBench *bench = bench_new(19, false, false);

    inject_many(bench, 0, POSTED);
    g_assert_cmpuint(left(bench), ==, 0);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmphex(nic_set_pause(bench->nic, true, true), ==, OK);
        expect_pause(bench, 0xffff);
        g_assert_cmphex(nic_set_pause(bench->nic, false, true), ==, OK);
        inject_many(bench, 0, 10);
        g_assert_cmphex(nic_set_pause(bench->nic, false, false), ==, OK);
        expect_pause(bench, 0);
        g_assert_cmpuint(eth_count(bench, "rx_no_buffer"), ==, 10 * (i + 1));
        lab_sleep(bench->lab, NS_PER_S);
        g_assert_cmpuint(left(bench), ==, 0);
    }
    take(bench, 0, POSTED);
    g_assert_null(nic_receive(bench->nic, NULL));
    eth_bench_free(bench);
}

/* A port that stands still tells its peer nevertheless. */
static void test_while_still(void)
{
    EthBench *bench = bench_new(20, true, true);

    pause_card(bench, 0xffff);
    transmit(bench);
    inject_many(bench, 0, POSTED);
    expect_pause(bench, 0xffff);
    take(bench, 0, POSTED);
    expect_pause(bench, 0);
    g_assert_cmpuint(left(bench), ==, 0);
    pause_card(bench, 0);
    g_assert_cmpuint(left(bench), ==, 1);
    eth_bench_free(bench);
}

/* A cable that takes nothing: the peer is told as soon as it does. */
static void test_full_cable(void)
{
    EthBench *bench = bench_new(21, false, true);
    Nic *nic = bench->nic;

    lab_tap(bench->lab, NULL, NULL);
    bench->lab->host[1].kicked = false;
    bench->lab->capacity = 0;
    for (unsigned i = 0; i < POSTED; i++) {
        nic_put_tx(nic, nic->buffer, 9000, LAST);
    }
    nic_ring_tx(nic);
    inject_many(bench, 0, POSTED);
    lab_sleep(bench->lab, NS_PER_MS);
    g_assert_cmpuint(eth_count(bench, "tx_pause"), ==, 0);
    bench->lab->capacity = 1 << 20;
    hca_link_writable(bench->host->hca);
    bench->host->kicked = true;
    lab_run(bench->lab);
    g_assert_cmpuint(eth_count(bench, "tx_pause"), ==, 1);
    eth_bench_free(bench);
}

/* ---- two cards ---- */

#define FRAMES 3000u

typedef struct Flow {
    Pair *pair;
    Nic *nic[2];
    Qp *qp[2];
    unsigned sent[2], received[2], writes;
} Flow;

static void flow_send(Flow *flow, unsigned side)
{
    Nic *nic = flow->nic[side];
    unsigned n = flow->sent[side], len = MIN_FRAME + n * 37 % 1400;
    uint8_t frame[1514] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    uint8_t done;

    while (nic_take_tx(nic, &done)) {
        continue;
    }
    if (n == FRAMES || nic->tx_next != nic->tx_tail) {
        return;
    }
    memcpy(frame + 6, nic->host->config.mac, 6);
    eth_put16(frame + 12, 0x88b5);
    eth_put16(frame + 14, n);
    nic_send(nic, frame, len);
    flow->sent[side]++;
}

static void flow_receive(Flow *flow, unsigned side)
{
    GByteArray *frame = nic_receive(flow->nic[side], NULL);

    if (frame) {
        g_assert_cmpuint(frame->data[14] << 8 | frame->data[15], ==,
                         flow->received[side]++);
        g_byte_array_unref(frame);
    }
}

static bool flow_done(const Flow *flow)
{
    return MIN(flow->received[0], flow->received[1]) == FRAMES;
}

/* A Write after the other. */
static void flow_write(Flow *flow)
{
    Wc wc;

    if (cq_poll(flow->pair->cq[0], &wc)) {
        g_assert_cmphex(wc.syndrome, ==, 0);
        flow->writes++;
        post_write(flow->pair, flow->qp[0], 1, 0);
    }
}

/*
 * Drivers that are slower than their peers, with small rings: they get every
 * frame, both ways at once, and RDMA beside them goes on.
 */
static void test_lossless(void)
{
    Flow flow = { .pair = pair_new_roce(22, 65536, NULL, NULL) };
    Pair *pair = flow.pair;

    pair->lab->short_io = true;
    pair_connect(pair, NULL, flow.qp);
    post_write(pair, flow.qp[0], 1, 0);
    for (unsigned i = 0; i < 2; i++) {
        flow.nic[i] = nic_new(pair->drv[i], 5);
        g_assert_cmphex(nic_set_pause(flow.nic[i], true, true), ==, OK);
    }
    for (unsigned turn = 0; !flow_done(&flow); turn++) {
        for (unsigned i = 0; i < 2; i++) {
            flow_send(&flow, i);
            if (turn % 8 == i) {
                flow_receive(&flow, i);
            }
        }
        flow_write(&flow);
        lab_sleep(pair->lab, NS_PER_US);
    }
    g_assert_cmpuint(flow.writes, >, 100);
    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        g_assert_cmpuint(nic_counter(host, "rx_no_buffer"), ==, 0);
        g_assert_cmpuint(nic_counter(host, "tx_pause"), >, 10);
        g_assert_cmpuint(nic_counter(host, "tx_stopped"), >, 10);
        nic_free(flow.nic[i]);
    }
    pair_free(pair);
}

static void test_refused(void)
{
    EthBench *bench = eth_bench_new(23, LOG_RING);

    for (unsigned bit = 0; bit < 64; bit++) {
        g_assert_cmphex(driver_cmd(bench->drv, RDMA_HCA_CMD_SET_PAUSE,
                                   UINT64_C(1) << bit | 1, 0, 0, 0, NULL),
                        ==, bit < 2 ? OK : RDMA_HCA_STAT_BAD_PARAM);
    }
    eth_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/pause/time", test_time);
    test_add("/eth/pause/replaced", test_replaced);
    test_add("/eth/pause/off", test_off);
    test_add("/eth/pause/other-frames", test_other_frames);
    test_add("/eth/pause/flood", test_flood);
    test_add("/eth/pause/forgotten", test_forgotten);
    test_add("/eth/pause/rdma", test_rdma);
    test_add("/eth/pause/raw", test_raw);
    test_add("/eth/pause/rule", test_rule);
    test_add("/eth/pause/wait", test_wait);
    test_add("/eth/pause/wait-long", test_wait_long);
    test_add("/eth/pause/room", test_room);
    test_add("/eth/pause/given-up", test_given_up);
    test_add("/eth/pause/refilled-in-part", test_refilled_in_part);
    test_add("/eth/pause/rings", test_rings);
    test_add("/eth/pause/switched", test_switched);
    test_add("/eth/pause/while-still", test_while_still);
    test_add("/eth/pause/full-cable", test_full_cable);
    test_add("/eth/pause/lossless", test_lossless);
    test_add("/eth/pause/refused", test_refused);
    return g_test_run();
}
