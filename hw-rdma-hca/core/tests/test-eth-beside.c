/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two cards that carry Ethernet beside RDMA.
 */
#include <string.h>

#include "lib-eth.h"

#define DONE RDMA_HCA_ETH_DONE

#define FLOW_FRAMES 200u
#define FLOW_WRITES 60u
#define FLOW_WRITE_LEN 20000u

typedef struct Flow {
    Pair *pair;
    Nic *nic[2];
    Qp *qp[2];
    unsigned sent[2], received[2];
} Flow;

/* Frame @n of side @from: its number, and bytes that follow from it. */
static size_t flow_frame(const Flow *flow, unsigned from, unsigned n,
                         uint8_t *frame)
{
    size_t len = 60 + n * 37 % 1400;

    for (size_t i = 12; i < len; i++) {
        frame[i] = n * 7 + i * 3 + from;
    }
    memcpy(frame, flow->pair->lab->host[!from].config.mac, 6);
    memcpy(frame + 6, flow->pair->lab->host[from].config.mac, 6);
    eth_put16(frame + 12, 0x88b5);
    return len;
}

static void flow_turn(Flow *flow, unsigned side)
{
    uint8_t frame[2048], done;
    GByteArray *got;

    while (nic_take_tx(flow->nic[side], &done)) {
        g_assert_cmphex(done, ==, DONE);
    }
    if (flow->sent[side] < FLOW_FRAMES &&
        flow->nic[side]->tx_next == flow->nic[side]->tx_tail) {
        size_t len = flow_frame(flow, side, flow->sent[side]++, frame);

        nic_send(flow->nic[side], frame, len);
    }
    while ((got = nic_receive(flow->nic[side], NULL))) {
        size_t len = flow_frame(flow, !side, flow->received[side]++, frame);

        g_assert_cmpmem(got->data, got->len, frame, len);
        g_byte_array_unref(got);
    }
}

static bool flow_done(const Flow *flow)
{
    return flow->received[0] == FLOW_FRAMES && flow->received[1] == FLOW_FRAMES;
}

static void post_write(Flow *flow, unsigned side, uint64_t wr_id)
{
    Sge sge;
    SendWr wr = pair_send(flow->pair, side, RDMA_HCA_OPCODE_RDMA_WRITE, wr_id,
                          &sge, side * FLOW_WRITE_LEN, FLOW_WRITE_LEN,
                          side * FLOW_WRITE_LEN);

    g_assert_true(qp_post_send(flow->qp[side], &wr, 1));
}

static void flow_run(Flow *flow)
{
    unsigned writes[2] = { 0, 0 };

    for (unsigned i = 0; i < 2; i++) {
        post_write(flow, i, 0);
    }
    while (!flow_done(flow) || MIN(writes[0], writes[1]) < FLOW_WRITES) {
        bool stepped = lab_step(flow->pair->lab);

        for (unsigned i = 0; i < 2; i++) {
            Wc wc;

            flow_turn(flow, i);
            if (cq_poll(flow->pair->cq[i], &wc)) {
                g_assert_cmphex(wc.syndrome, ==, 0);
                g_assert_cmpuint(wc.wr_id, ==, writes[i]);
                post_write(flow, i, ++writes[i]);
            }
        }
        g_assert_true(stepped || flow->pair->lab->host[0].kicked ||
                      flow->pair->lab->host[1].kicked);
    }
}

static void test_beside_rdma(void)
{
    Flow flow = { .pair = pair_new_roce(70, 65536, NULL, NULL) };
    Pair *pair = flow.pair;
    uint8_t *data = pair_data(pair, FLOW_WRITE_LEN);
    uint8_t *got = g_malloc(FLOW_WRITE_LEN);

    for (unsigned i = 0; i < 2; i++) {
        flow.nic[i] = nic_new(pair->drv[i], 6);
    }
    pair_connect(pair, NULL, flow.qp);
    mr_write(pair->mr[0], 0, data, FLOW_WRITE_LEN);
    flow_run(&flow);
    mr_read(pair->mr[1], 0, got, FLOW_WRITE_LEN);
    g_assert_cmpmem(got, FLOW_WRITE_LEN, data, FLOW_WRITE_LEN);
    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        g_assert_cmpuint(nic_counter(host, "rx_frames"), ==, FLOW_FRAMES);
        g_assert_cmpuint(nic_counter(host, "rx_filtered"), ==, 0);
        g_assert_cmpuint(nic_counter(host, "rx_no_buffer"), ==, 0);
        nic_free(flow.nic[i]);
    }
    g_free(data);
    g_free(got);
    pair_free(pair);
}

/* A card that has moved says where it is, once: what QEMU says of its own cards. */
static void test_announced(void)
{
    static const uint8_t request[] = { 0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3 };
    uint8_t expected[60] = { 0 };
    HcaConfig config[2];
    GByteArray *got;
    Pair *pair;
    Nic *nic;

    for (unsigned i = 0; i < 2; i++) {
        lab_config_roce(&config[i], i);
        config[i].cable = HCA_CABLE_NETDEV;
    }
    pair = pair_new_with(71, 4096, config, NULL, NULL);
    nic = nic_new(pair->drv[1], 6);
    lab_run(pair->lab);
    g_assert_null(nic_receive(nic, NULL));
    memset(expected, 0xff, 6);
    memcpy(expected + 6, config[0].mac, 6);
    memcpy(expected + 12, request, sizeof(request));
    memcpy(expected + 22, config[0].mac, 6);
    memcpy(expected + 32, config[0].mac, 6);
    lab_cable(pair->lab, false);
    lab_run(pair->lab);
    hca_arrive(pair->lab->host[0].hca);
    for (unsigned i = 0; i < 2; i++) {
        lab_cable(pair->lab, true);
        lab_run(pair->lab);
        got = nic_receive(nic, NULL);
        if (i) {
            g_assert_null(got);
        } else {
            g_assert_cmpmem(got->data, got->len, expected, sizeof(expected));
            g_byte_array_unref(got);
        }
        lab_cable(pair->lab, false);
        lab_run(pair->lab);
    }
    nic_free(nic);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/eth/beside-rdma", test_beside_rdma);
    test_add("/eth/announced", test_announced);
    return g_test_run();
}
