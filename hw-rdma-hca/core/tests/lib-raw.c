/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-raw.h"

#include <string.h>

#include "../link/framing.h"
#include "lib-frames.h"

#define LOG_RING 6

static RawBench *new_bench(uint32_t seed, CableTap *tap)
{
    RawBench *bench = g_new0(RawBench, 1);

    g_queue_init(&bench->sent);
    bench->pair = pair_new_roce(seed, RAW_SEND_AT + RAW_SLOT, tap,
                                &bench->sent);
    bench->host = &bench->pair->lab->host[0];
    bench->drv = bench->pair->drv[0];
    bench->nic = nic_new(bench->drv, LOG_RING);
    lab_run(bench->pair->lab);
    return bench;
}

RawBench *raw_bench_new(uint32_t seed)
{
    return new_bench(seed, frames_take);
}

RawBench *raw_bench_new_cabled(uint32_t seed)
{
    return new_bench(seed, NULL);
}

void raw_bench_free(RawBench *bench)
{
    frames_clear(&bench->sent);
    nic_free(bench->nic);
    pair_free(bench->pair);
    g_free(bench);
}

Qp *raw_new(RawBench *bench)
{
    Cq *cq = cq_new(bench->drv, 10, bench->pair->cq[0]->uar);
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, bench->pair->pd[0], cq);
    config.service = RDMA_HCA_QP_ST_RAW;
    config.log_sq_entry = 9;
    qp = qp_new(bench->drv, &config);
    qp_attr_init(&attr);
    qp_bring_up(qp, &attr);
    return qp;
}

void raw_post(RawBench *bench, Qp *qp, unsigned n)
{
    while (n--) {
        unsigned slot = bench->next++ % RAW_SLOTS;

        pair_post_recv(bench->pair, 0, qp, slot, slot * RAW_SLOT, RAW_SLOT);
    }
}

void raw_send(RawBench *bench, Qp *qp, const uint8_t *frame, size_t len)
{
    Mr *mr = bench->pair->mr[0];
    Sge sge = mr_sge(mr, RAW_SEND_AT, len);
    SendWr wr = {
        .opcode = RDMA_HCA_OPCODE_SEND,
        .flags = SEND_SIGNALED,
        .wr_id = 0x5e4d,
        .sge = &sge,
        .nsge = 1,
    };
    Wc wc;

    mr_write(mr, RAW_SEND_AT, frame, len);
    g_assert_true(qp_post_send(qp, &wr, 1));
    do {
        g_assert_true(cq_wait(qp->send_cq, &wc, PAIR_PATIENCE));
    } while (!wc.is_send);
    g_assert_cmphex(wc.syndrome, ==, 0);
    g_assert_cmphex(wc.wr_id, ==, 0x5e4d);
}

void raw_expect(RawBench *bench, Qp *qp, const uint8_t *frame, size_t len)
{
    g_autofree uint8_t *got = g_malloc(len);
    Wc wc;

    lab_run(bench->pair->lab);
    g_assert_true(cq_poll(qp->recv_cq, &wc));
    g_assert_cmphex(wc.syndrome, ==, 0);
    g_assert_false(wc.is_send);
    g_assert_cmpuint(wc.qpn, ==, qp->qpn);
    g_assert_cmpuint(wc.byte_len, ==, len);
    g_assert_false(wc.grh);
    g_assert_false(wc.has_vlan);
    mr_read(bench->pair->mr[0], wc.wr_id * RAW_SLOT, got, len);
    g_assert_cmpmem(got, len, frame, len);
}

void raw_expect_none(RawBench *bench, Qp *qp)
{
    Wc wc;

    lab_run(bench->pair->lab);
    g_assert_false(cq_poll(qp->recv_cq, &wc));
}

void raw_inject(RawBench *bench, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(bench->pair->lab, 1, header, sizeof(header));
    lab_cable_inject(bench->pair->lab, 1, frame, len);
    lab_run(bench->pair->lab);
}

void raw_expect_sent(RawBench *bench, const uint8_t *frame, size_t len)
{
    lab_run(bench->pair->lab);
    frames_expect(&bench->sent, frame, len);
}

void raw_expect_none_sent(RawBench *bench)
{
    lab_run(bench->pair->lab);
    g_assert_true(g_queue_is_empty(&bench->sent));
}

void raw_expect_nic(RawBench *bench, const uint8_t *frame, size_t len)
{
    GByteArray *got;

    lab_run(bench->pair->lab);
    got = nic_receive(bench->nic, NULL);
    g_assert_nonnull(got);
    g_assert_cmpmem(got->data, got->len, frame, len);
    g_byte_array_unref(got);
}

void raw_expect_nic_none(RawBench *bench)
{
    lab_run(bench->pair->lab);
    g_assert_null(nic_receive(bench->nic, NULL));
}

void raw_frame(RawBench *bench, uint8_t *frame, size_t len, const uint8_t *to)
{
    static const uint8_t from[6] = { 0x02, 0, 0, 0, 0, 0x99 };

    random_fill(bench->pair->lab->rand, frame, len);
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    frame[12] = 0x88; /* local experimental */
    frame[13] = 0xb5;
}

uint64_t raw_count(RawBench *bench, const char *name)
{
    return pair_counter(bench->pair, 0, name);
}

void flow_init(struct rdma_hca_flow *flow, const Qp *qp, uint32_t kind)
{
    memset(flow, 0, sizeof(*flow));
    flow->qpn = GUINT32_TO_BE(qp->qpn);
    flow->kind_priority = GUINT32_TO_BE(kind);
}

uint8_t flow_add(RawBench *bench, unsigned index,
                 const struct rdma_hca_flow *flow)
{
    return driver_cmd_in(bench->drv, RDMA_HCA_CMD_SET_FLOW, flow, sizeof(*flow),
                         index, RDMA_HCA_SET_FLOW_ADD);
}

uint8_t flow_remove(RawBench *bench, unsigned index)
{
    return driver_cmd(bench->drv, RDMA_HCA_CMD_SET_FLOW, 0, index,
                      RDMA_HCA_SET_FLOW_REMOVE, 0, NULL);
}

void flow_rule(RawBench *bench, unsigned index, const Qp *qp, uint32_t kind)
{
    struct rdma_hca_flow flow;

    flow_init(&flow, qp, kind);
    g_assert_cmphex(flow_add(bench, index, &flow), ==, RDMA_HCA_STAT_OK);
}
