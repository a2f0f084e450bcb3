/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-fault.h"

#include <errno.h>
#include <string.h>

#include "../link/framing.h"
#include "../wire/bytes.h"

#define TX HCA_FAULT_TX
#define RX HCA_FAULT_RX

static ssize_t op_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    FaultBench *b = opaque;
    size_t n = MIN(iov[0].iov_len, b->room);

    g_assert_cmpint(iovcnt, ==, 1);
    if (!n) {
        return -EAGAIN;
    }
    b->room -= n;
    g_byte_array_append(b->out, iov[0].iov_base, n);
    return n;
}

static ssize_t op_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    FaultBench *b = opaque;
    size_t n = MIN(iov[0].iov_len, b->in->len - b->in_at);

    g_assert_cmpuint(iov[0].iov_len, >=, HCA_FRAME_MAX_SIZE);
    if (!n) {
        return -EAGAIN;
    }
    memcpy(iov[0].iov_base, b->in->data + b->in_at, n);
    b->in_at += n;
    return n;
}

static int64_t op_clock(void *opaque)
{
    FaultBench *b = opaque;

    b->clock_reads++;
    return b->now;
}

static void op_trace(void *opaque, const HcaTrace *trace)
{
    g_array_append_val(((FaultBench *)opaque)->traces, *trace);
}

static void put_frame(FaultBench *b, const uint8_t *packet, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    g_byte_array_append(b->in, header, sizeof(header));
    g_byte_array_append(b->in, packet, len);
}

static void fault_bench_up(FaultBench *b)
{
    HcaGreeting greeting_of = { .enabled = true };
    uint8_t greeting[HCA_GREETING_FRAME_SIZE];
    bool loopback;
    size_t len;

    g_byte_array_set_size(b->in, 0);
    g_byte_array_set_size(b->out, 0);
    b->in_at = 0;
    b->room = SIZE_MAX;
    hca_link_set_up(b->link, true);
    b->out_at = b->out->len;
    if (b->layer == HCA_LINK_LAYER_ROCE) {
        g_assert_cmpuint(b->out->len, ==, 0);
        return;
    }
    g_assert_cmpuint(b->out->len, ==, HCA_GREETING_FRAME_SIZE);
    hca_frame_write_greeting(greeting, HCA_LINK_LAYER_IB, &greeting_of);
    g_byte_array_append(b->in, greeting, sizeof(greeting));
    g_assert_null(hca_link_receive(b->link, &len, &loopback));
    g_assert_true(hca_link_is_up(b->link));
}

static void fault_bench_init_layer(FaultBench *b, HcaLinkLayer layer)
{
    *b = (FaultBench) {
        .layer = layer,
        .ops = { .link_writev = op_writev,
                 .link_readv = op_readv,
                 .clock_ns = op_clock,
                 .trace = op_trace },
        .out = g_byte_array_new(),
        .in = g_byte_array_new(),
        .now = NS_PER_S,
        .traces = g_array_new(FALSE, FALSE, sizeof(HcaTrace)),
    };
    b->link = hca_link_new(
        layer, layer == HCA_LINK_LAYER_IB ? HCA_CABLE_CARD : HCA_CABLE_SEGMENT,
        &HCA_HOST(&b->ops, b));
    hca_link_enable(b->link, true);
    fault_bench_up(b);
}

void fault_bench_init(FaultBench *b)
{
    fault_bench_init_layer(b, HCA_LINK_LAYER_IB);
}

void fault_bench_free(FaultBench *b)
{
    hca_link_free(b->link);
    g_byte_array_unref(b->out);
    g_byte_array_unref(b->in);
    g_array_unref(b->traces);
}

void fault_pass(FaultBench *b, HcaFaultDirection d, const uint8_t *packet,
                size_t len)
{
    if (d == RX) {
        put_frame(b, packet, len);
        return;
    }
    g_assert_true(hca_link_can_send(b->link, false));
    memcpy(hca_link_open(b->link, false), packet, len);
    hca_link_close(b->link, false, 3, len);
}

const uint8_t *fault_next_out(FaultBench *b, HcaFaultDirection d, size_t *len)
{
    const uint8_t *packet;
    HcaFrame frame;
    bool loopback;
    int size;

    if (d == RX) {
        do {
            packet = hca_link_receive(b->link, len, &loopback);
        } while (!packet && hca_link_rx_pending(b->link));
        return packet;
    }
    do {
        size = hca_frame_read(&frame, b->out->data + b->out_at,
                              b->out->len - b->out_at);
        g_assert_cmpint(size, >=, 0);
        b->out_at += size;
    } while (size && frame.type == HCA_FRAME_STATE); /* of a reset */
    *len = frame.len;
    g_assert_true(!size || frame.vl == 3);
    return size ? frame.body : NULL;
}

size_t fault_make(uint8_t *bytes, uint8_t opcode, uint32_t qpn, uint32_t psn,
                  uint8_t syndrome)
{
    HcaPacket packet = {
        .dlid = 1,
        .slid = 2,
        .opcode = opcode,
        .pkey = 0xffff,
        .dest_qp = qpn,
        .psn = psn,
        .syndrome = syndrome,
    };

    return hca_ib_seal(&packet, bytes, hca_ib_build(&packet, bytes));
}

void fault_pass_one(FaultBench *b, HcaFaultDirection d, uint8_t opcode,
                    uint32_t qpn, uint32_t psn)
{
    uint8_t bytes[HCA_MAX_PACKET_SIZE];

    fault_pass(b, d, bytes, fault_make(bytes, opcode, qpn, psn, 0));
}

void fault_pass_psns(FaultBench *b, HcaFaultDirection d, uint32_t first,
                     uint32_t last)
{
    for (uint32_t psn = first; psn <= last; psn++) {
        fault_pass_one(b, d, HCA_SEND_ONLY, FAULT_QPN, psn);
    }
}

char *fault_psns_out(FaultBench *b, HcaFaultDirection d)
{
    GString *got = g_string_new("");
    const uint8_t *packet;
    size_t len;

    hca_link_flush(b->link);
    while ((packet = fault_next_out(b, d, &len))) {
        g_assert_cmpuint(len, >=, FAULT_BTH_AT + HCA_BTH_SIZE);
        g_string_append_printf(got, "%s%u", got->len ? " " : "",
                               get_be24(packet + FAULT_BTH_AT + 9));
    }
    return g_string_free(got, FALSE);
}

void fault_expect(FaultBench *b, HcaFaultDirection d, const char *psns)
{
    g_autofree char *got = fault_psns_out(b, d);

    g_assert_cmpstr(got, ==, psns);
}

void fault_let_pass(FaultBench *b, int64_t ns)
{
    b->now += ns;
    hca_link_tick(b->link);
}

uint64_t fault_injected(FaultBench *b, HcaFaultDirection d,
                        HcaFaultAction action)
{
    return hca_link_fault_counters(b->link)->injected[d][action];
}

void fault_set(FaultBench *b, const HcaFaultPlan *plan)
{
    g_assert_null(hca_fault_check(plan));
    hca_link_set_faults(b->link, plan);
}

void fault_set_none(FaultBench *b)
{
    HcaFaultPlan none = { 0 };

    fault_set(b, &none);
}

static void on_link(FaultCase *test, HcaLinkLayer layer)
{
    for (HcaFaultDirection d = 0; d < HCA_FAULT_NDIRECTIONS; d++) {
        FaultBench b;

        g_test_message("%s", d == TX ? "tx" : "rx");
        fault_bench_init_layer(&b, layer);
        test(&b, d);
        fault_bench_free(&b);
    }
}

void fault_both_directions(gconstpointer data)
{
    on_link(*(FaultCase *const *)data, HCA_LINK_LAYER_IB);
}

void fault_both_directions_roce(gconstpointer data)
{
    on_link(*(FaultCase *const *)data, HCA_LINK_LAYER_ROCE);
}

bool fault_dropped(FaultBench *b, HcaFaultDirection d, const uint8_t *packet,
                   size_t size)
{
    size_t len;

    fault_pass(b, d, packet, size);
    hca_link_flush(b->link);
    return !fault_next_out(b, d, &len);
}

void fault_bench_restart(FaultBench *b)
{
    hca_link_set_up(b->link, false);
    fault_bench_up(b);
}
