/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector between whole cards: what software gets over, and what a
 * reset leaves.
 */
#include <string.h>

#include "lib-pair.h"

#define TX HCA_FAULT_TX
#define RX HCA_FAULT_RX

#define AREA (512 * 1024u)

/* Side 0 reads all of side 1's region; 512 packets of an MTU of 1024. */
static void read_all(Pair *pair, Qp *qp[2])
{
    g_autofree uint8_t *data = pair_data(pair, AREA);
    SendWr wr;
    Sge sge;
    Wc wc;

    mr_write(pair->mr[1], 0, data, AREA);
    for (unsigned i = 0; i < 4; i++) {
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_READ, i, &sge,
                       i * (AREA / 4), AREA / 4, i * (AREA / 4));
        g_assert_true(qp_post_send(qp[0], &wr, 1));
    }
    for (unsigned i = 0; i < 4; i++) {
        cq_expect(pair->cq[0], &wc, i, 0);
    }
    mr_check_image(pair->mr[0], data);
}

/* The example of the documentation. */
static void test_every_50th_read_response(void)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = HCA_FAULT_DROP,
                     .directions = 1u << RX,
                     .kinds = 1u << HCA_FAULT_READ_RESPONSE,
                     .every = 50,
                     .probability = HCA_FAULT_ALWAYS },
    };
    Pair *pair = pair_new(4001, AREA);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    host_set_faults(&pair->lab->host[0], &plan);
    read_all(pair, qp);
    g_assert_cmpuint(pair_counter(pair, 0, "fault_rx_drop"), ==,
                     pair_counter(pair, 0, "link_rx_packets") / 50);
    g_assert_cmpuint(pair_counter(pair, 0, "fault_rx_drop"), >=, 10);
    g_assert_cmpuint(pair_counter(pair, 0, "requester_retransmissions"), >=,
                     10);
    pair_check_works(pair, qp, 0);
    pair_free(pair);
}

/* The acknowledgements that side 0 sees, by PSN. */
static void note_ack(void *opaque, unsigned side, const HcaTrace *trace)
{
    GArray *psns = opaque;

    if (side == 0 && !strcmp(hca_trace_name(trace->event), "PACKET_RX") &&
        trace->arg[0] == HCA_ACK) {
        uint32_t psn = trace->arg[1];

        g_array_append_val(psns, psn);
    }
}

/* The other example: the first of two ACKs comes second, and changes nothing. */
static void test_acks_out_of_order(void)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = HCA_FAULT_REORDER,
                     .directions = 1u << TX,
                     .kinds = 1u << HCA_FAULT_ACK,
                     .probability = HCA_FAULT_ALWAYS,
                     .count = 1,
                     .delay_ns = NS_PER_S },
    };
    g_autoptr(GArray) psns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Pair *pair = pair_new(4002, 8192);
    QpAttr attr;
    Qp *qp[2];
    SendWr wr;
    Sge sge;
    Wc wc;

    qp_attr_init(&attr);
    attr.timeout = 20; /* four seconds: nothing is sent again */
    pair_connect(pair, &attr, qp);
    host_set_faults(&pair->lab->host[1], &plan);
    lab_listen(pair->lab, note_ack, psns);
    for (unsigned i = 0; i < 2; i++) {
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0, 100, 0);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        lab_run(pair->lab);
    }
    cq_expect(pair->cq[0], &wc, 0, 0);
    cq_expect(pair->cq[0], &wc, 1, 0);
    lab_run(pair->lab);
    g_assert_cmpuint(psns->len, ==, 2);
    g_assert_cmphex(g_array_index(psns, uint32_t, 0), ==,
                    g_array_index(psns, uint32_t, 1) + 1);
    g_assert_cmpuint(pair_counter(pair, 1, "fault_tx_reorder"), ==, 1);
    g_assert_cmpuint(pair_counter(pair, 1, "fault_held"), ==, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "requester_retransmissions"), ==, 0);
    pair_check_works(pair, qp, 0);
    pair_free(pair);
}

/* The card's own timer lets packets go, the earlier of QPs' and the link's. */
static void test_card_timer(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    Pair *pair = pair_new(4003, 4096);
    Lab *lab = pair->lab;
    int64_t begin;
    Qp *qp[2];
    SendWr wr;
    Sge sge;

    pair_connect(pair, NULL, qp);
    plan.rule[0].directions = 1u << TX;
    plan.rule[0].delay_ns = 10 * NS_PER_MS;
    host_set_faults(&pair->lab->host[0], &plan);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 0, &sge, 0, 100, 0);
    begin = lab->now;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_run(lab);
    g_assert_cmpint(lab->host[0].deadline, >=, begin + 10 * NS_PER_MS);
    g_assert_cmpint(lab->host[0].deadline, <=, begin + 11 * NS_PER_MS);
    pair_check_works(pair, qp, 1); /* the answers of side 0 are late, too */
    g_assert_cmpint(lab->now, >=, begin + 10 * NS_PER_MS);
    lab_sleep(lab, NS_PER_S);
    g_assert_cmpuint(pair_counter(pair, 0, "fault_held"), ==, 0);
    g_assert_cmpint(lab->host[0].deadline, ==, INT64_MAX);
    g_assert_cmpuint(pair_counter(pair, 1, "responder_writes"), ==, 1);
    g_assert_cmpuint(pair_counter(pair, 0, "requester_retransmissions"), ==, 0);

    /* A plan that goes sets free at once what is held, without another call. */
    plan.rule[0].delay_ns = HCA_FAULT_MAX_DELAY_NS;
    host_set_faults(&pair->lab->host[0], &plan);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_run(lab);
    g_assert_cmpuint(pair_counter(pair, 1, "responder_writes"), ==, 1);
    plan.nrules = 0;
    host_set_faults(&pair->lab->host[0], &plan);
    lab_run(lab);
    g_assert_cmpuint(pair_counter(pair, 1, "responder_writes"), ==, 2);
    pair_free(pair);
}

/* A reset forgets packets, and not the plan. */
static void test_card_reset(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    Pair *pair = pair_new(4004, 4096);
    Lab *lab = pair->lab;
    Qp *qp[2];
    SendWr wr;
    Sge sge;

    pair_connect(pair, NULL, qp);
    plan.rule[0].delay_ns = NS_PER_S;
    host_set_faults(&pair->lab->host[1], &plan);
    for (unsigned i = 0; i < 2; i++) {
        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 0, &sge, 0, 100, 0);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        lab_run(lab);
        g_assert_cmpuint(pair_counter(pair, 1, "fault_held"), ==, 1);
        g_assert_cmpuint(pair_counter(pair, 1, "fault_rx_delay"), ==, 1);
        driver_free(pair->drv[1]);
        host_reset(&lab->host[1]);
        lab_run(lab);
        g_assert_cmpuint(pair_counter(pair, 1, "fault_held"), ==, 0);
        g_assert_cmpuint(pair_counter(pair, 1, "fault_rx_delay"), ==, 0);
        g_assert_cmpint(lab->host[1].deadline, ==, INT64_MAX);
        pair->drv[1] = driver_new(&lab->host[1]);
        pair->pd[1] = pd_new(pair->drv[1]);
        pair->cq[1] = cq_new(pair->drv[1], 8, 1);
        pair->mr[1] = mr_new(pair->drv[1], pair->pd[1], 0x10000, 4096,
                             ACCESS_ALL);
    }
    pair_free(pair);
}

/* All faults in both directions of both cards; all is right in the end. */
static void test_card_storm(void)
{
    static const char *const names[HCA_FAULT_NPACKET_ACTIONS] = {
        "drop", "duplicate", "reorder", "delay", "corrupt", "mark",
    };
    HcaFaultPlan plan = { .seed = lab_seed(9),
                          .nrules = HCA_FAULT_NPACKET_ACTIONS };
    Pair *pair = pair_new(4005, AREA);
    unsigned actions = pair->drv[0]->roce ? HCA_FAULT_NPACKET_ACTIONS
                                          : HCA_FAULT_MARK;
    QpAttr attr;
    Qp *qp[2];

    for (unsigned i = 0; i < HCA_FAULT_NPACKET_ACTIONS; i++) {
        plan.rule[i] = fault_plan(i).rule[0];
        plan.rule[i].probability = HCA_FAULT_ALWAYS / 200;
    }
    plan.rule[HCA_FAULT_DELAY].delay_ns = 20 * NS_PER_US;
    qp_attr_init(&attr);
    pair_connect(pair, &attr, qp);
    host_set_faults(&pair->lab->host[0], &plan);
    plan.seed++;
    host_set_faults(&pair->lab->host[1], &plan);
    for (unsigned round = 0; round < 8; round++) {
        read_all(pair, qp);
        for (unsigned i = 0; i < 20; i++) {
            pair_check_works(pair, qp, i % 2);
        }
    }
    for (unsigned i = 0; i < actions; i++) {
        g_autofree char *rx = g_strdup_printf("fault_rx_%s", names[i]);
        g_autofree char *tx = g_strdup_printf("fault_tx_%s", names[i]);

        /* Where the many packets are. */
        g_assert_cmpuint(pair_counter(pair, 0, rx), >, 0);
        g_assert_cmpuint(pair_counter(pair, 1, tx), >, 0);
    }
    pair_free(pair);
}

/*
 * QPs that nobody answers fill the link's buffer, which the cable then takes
 * whole: those that found it full go on.
 */
static void test_full_buffer_goes_on(void)
{
    Pair *pair = pair_new(4006, 4096);
    QpAttr attr;
    Qp *qp[100][2];

    pair->lab->capacity = 16 * 1024 * 1024;
    pair->lab->short_io = false;
    qp_attr_init(&attr);
    attr.mtu = 5;
    for (unsigned i = 0; i < G_N_ELEMENTS(qp); i++) {
        for (unsigned side = 0; side < 2; side++) {
            QpConfig config;

            qp_config_init(&config, pair->pd[side], pair->cq[side]);
            config.service = RDMA_HCA_QP_ST_UC;
            qp[i][side] = qp_new(pair->drv[side], &config);
        }
        qp_connect(qp[i][0], qp[i][1], &attr);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(qp); i++) {
        SendWr wr;
        Sge sge;

        wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0, 4096,
                       0);
        g_assert_true(qp_post_send(qp[i][0], &wr, 1));
    }
    lab_run(pair->lab);
    g_assert_cmpuint(pair_counter(pair, 0, "link_tx_packets"), ==,
                     G_N_ELEMENTS(qp));
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/fault/cards/every-50th-read-response",
             test_every_50th_read_response);
    test_add("/fault/cards/acks-out-of-order", test_acks_out_of_order);
    test_add("/fault/cards/timer", test_card_timer);
    test_add("/fault/cards/reset", test_card_reset);
    test_add_each_link("/fault/cards/storm", test_card_storm);
    test_add("/fault/cards/full-buffer-goes-on", test_full_buffer_goes_on);
    return g_test_run();
}
