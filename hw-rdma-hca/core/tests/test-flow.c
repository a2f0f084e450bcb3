/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow rules: which raw packet QPs get a frame, and what is left for the
 * interface.
 */
#include <string.h>

#include "../port/flow_table.h"
#include "lib-raw.h"

#define OK RDMA_HCA_STAT_OK
#define NORMAL(priority)                                                       \
    (RDMA_HCA_PREP(RDMA_HCA_FLOW_KIND, RDMA_HCA_FLOW_NORMAL) | (priority))
#define KIND(name) RDMA_HCA_PREP(RDMA_HCA_FLOW_KIND, RDMA_HCA_FLOW_##name)

#define FRAME_LEN 100u

static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 1 };
static const uint8_t neighbour[6] = { 0x02, 0, 0, 0, 0, 0x77 };

/* Fields */

/* A frame, and what a rule has to see of it. */
typedef struct Sample {
    const char *what;
    bool vlan, ipv6, tcp;
    uint16_t fragment; /* the word of IPv4 */
    uint8_t protocol;
    bool no_ip;
    unsigned options; /* of IPv4, bytes */
    unsigned tags;    /* besides the first one */
} Sample;

static const Sample samples[] = {
    { "udp4", .protocol = 17 },
    { "tcp4 vlan", .protocol = 6, .vlan = true },
    { "udp6", .protocol = 17, .ipv6 = true },
    { "tcp6 vlan", .protocol = 6, .ipv6 = true, .vlan = true },
    { "udp4 options", .protocol = 17, .options = 40 },
    { "udp4 first fragment", .protocol = 17, .fragment = 0x2000 },
    { "udp4 later fragment", .protocol = 17, .fragment = 0x2001 },
    { "icmp", .protocol = 1 },
    { "two tags", .protocol = 17, .vlan = true, .tags = 1 },
    { "no ip", .no_ip = true },
    { "no ip vlan", .no_ip = true, .vlan = true },
};

static uint8_t *put(uint8_t *at, const void *data, size_t len)
{
    memcpy(at, data, len);
    return at + len;
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
    at[0] = value >> 8;
    at[1] = value;
    return at + 2;
}

static uint8_t *put_tags(const Sample *s, uint8_t *at,
                         struct rdma_hca_flow_match *match)
{
    at = put16(at, 0x8100);
    match->vlan_tci = GUINT16_TO_BE(0x6abc);
    at = put(at, &match->vlan_tci, 2);
    match->layers |= RDMA_HCA_FLOW_HAS_VLAN;
    for (unsigned i = 0; i < s->tags; i++) {
        at = put16(put16(at, 0x8100), 0x0123);
    }
    return at;
}

static uint8_t *put_ports(const Sample *s, uint8_t *at,
                          struct rdma_hca_flow_match *match)
{
    uint16_t sport = GUINT16_TO_BE(0x1234), dport = GUINT16_TO_BE(0x5678);

    at = put(put(at, &sport, 2), &dport, 2);
    if (s->protocol == 1 || s->fragment & 0x1fff) {
        return at;
    }
    match->sport = sport;
    match->dport = dport;
    match->layers |= RDMA_HCA_FLOW_HAS_PORTS;
    return at;
}

static uint8_t *put_ipv4(const Sample *s, uint8_t *at,
                         struct rdma_hca_flow_match *match)
{
    at[0] = 0x45 + s->options / 4;
    match->tclass = at[1] = 0x1b;
    put16(at + 6, s->fragment);
    match->hop_limit = at[8] = 63;
    match->protocol = at[9] = s->protocol;
    memcpy(at + 12, (uint8_t[]) { 10, 1, 2, 3, 192, 168, 4, 5 }, 8);
    match->sip[10] = match->sip[11] = 0xff;
    match->dip[10] = match->dip[11] = 0xff;
    memcpy(match->sip + 12, at + 12, 4);
    memcpy(match->dip + 12, at + 16, 4);
    match->layers |= RDMA_HCA_FLOW_HAS_IPV4;
    return at + 20 + s->options;
}

static uint8_t *put_ipv6(const Sample *s, uint8_t *at,
                         struct rdma_hca_flow_match *match)
{
    memcpy(at, (uint8_t[]) { 0x61, 0xba, 0xbc, 0xde }, 4);
    match->tclass = 0x1b;
    match->flow_label = GUINT32_TO_BE(0xabcde);
    match->protocol = at[6] = s->protocol;
    match->hop_limit = at[7] = 62;
    for (unsigned i = 0; i < 16; i++) {
        match->sip[i] = at[8 + i] = 0xa0 + i;
        match->dip[i] = at[24 + i] = 0xb0 + i;
    }
    match->layers |= RDMA_HCA_FLOW_HAS_IPV6;
    return at + 40;
}

static size_t make_sample(const Sample *s, const uint8_t *to, uint8_t *frame,
                          struct rdma_hca_flow_match *match)
{
    static const uint8_t from[6] = { 0x02, 1, 2, 3, 4, 5 };
    uint16_t type = s->no_ip ? 0x88b5 : s->ipv6 ? 0x86dd : 0x0800;
    uint8_t *at = frame;

    memset(frame, 0, 256);
    memset(match, 0, sizeof(*match));
    at = put(put(at, to, 6), from, 6);
    memcpy(match->dmac, to, 6);
    memcpy(match->smac, from, 6);
    if (s->vlan) {
        at = put_tags(s, at, match);
    }
    at = put16(at, type);
    match->ether_type = GUINT16_TO_BE(type);
    if (!s->no_ip) {
        at = s->ipv6 ? put_ipv6(s, at, match) : put_ipv4(s, at, match);
        at = put_ports(s, at, match);
    }
    return MAX(at - frame, 60);
}

static void check_rule(RawBench *bench, Qp *qp,
                       const struct rdma_hca_flow *flow, const uint8_t *frame,
                       size_t len, bool expected)
{
    g_assert_cmphex(flow_add(bench, 0, flow), ==, OK);
    raw_post(bench, qp, expected);
    raw_inject(bench, frame, len);
    if (expected) {
        raw_expect(bench, qp, frame, len);
        raw_expect_nic_none(bench);
    } else {
        raw_expect_none(bench, qp);
        raw_expect_nic(bench, frame, len);
    }
    g_assert_cmphex(flow_remove(bench, 0), ==, OK);
}

/* Each bit of each field counts, if the mask says so. */
static void test_fields(gconstpointer data)
{
    const Sample *s = data;
    RawBench *bench = raw_bench_new(300);
    Qp *qp = raw_new(bench);
    struct rdma_hca_flow flow;
    uint8_t frame[256];
    size_t len;

    flow_init(&flow, qp, NORMAL(0));
    len = make_sample(s, bench->host->config.mac, frame, &flow.value);
    memset(&flow.mask, 0xff, sizeof(flow.mask));
    check_rule(bench, qp, &flow, frame, len, true);
    for (size_t i = 0; i < offsetof(struct rdma_hca_flow_match, reserved);
         i++) {
        uint8_t bit = 1u << pair_rand(bench->pair, 0, 8);

        ((uint8_t *)&flow.value)[i] ^= bit;
        check_rule(bench, qp, &flow, frame, len, false);
        ((uint8_t *)&flow.mask)[i] ^= bit;
        check_rule(bench, qp, &flow, frame, len, true);
        ((uint8_t *)&flow.mask)[i] ^= bit;
        ((uint8_t *)&flow.value)[i] ^= bit;
    }
    raw_bench_free(bench);
}

/* A frame that ends anywhere: nothing behind its end is looked at. */
static void test_cut(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(samples); i++) {
        struct rdma_hca_flow_match match;
        uint8_t frame[256];
        size_t len = make_sample(&samples[i], group, frame, &match);

        for (size_t cut = 14; cut <= len; cut++) {
            uint8_t *part = g_memdup2(frame, cut);
            HcaFlowKey key;

            hca_flow_key(part, cut, &key);
            g_assert_cmpmem(key.dmac, 6, group, 6);
            g_free(part);
        }
        for (unsigned n = 0; n < 2000; n++) {
            size_t cut = g_test_rand_int_range(14, len + 1);
            uint8_t *part = g_memdup2(frame, cut);
            HcaFlowKey key;

            part[g_test_rand_int_range(12, MAX(cut, 13))] = g_test_rand_int();
            hca_flow_key(part, cut, &key);
            g_free(part);
        }
    }
}

/* Who gets a frame */

typedef struct Priorities {
    const char *what;
    uint32_t rule[3]; /* of QP i */
    bool gets[3];
    bool nic;
} Priorities;

#define STAY RDMA_HCA_FLOW_DONT_TRAP

static const Priorities priorities[] = {
    { "first", { NORMAL(0), NORMAL(1), NORMAL(0xffff) }, { 1, 0, 0 }, 0 },
    { "last", { NORMAL(9), NORMAL(8), NORMAL(7) }, { 0, 0, 1 }, 0 },
    { "equal", { NORMAL(5), NORMAL(5), NORMAL(6) }, { 1, 1, 0 }, 0 },
    { "all equal", { NORMAL(5), NORMAL(5), NORMAL(5) }, { 1, 1, 1 }, 0 },
    { "one lets on",
      { STAY | NORMAL(1), NORMAL(2), NORMAL(3) },
      { 1, 1, 0 },
      0 },
    { "one of equals lets on",
      { STAY | NORMAL(1), NORMAL(1), NORMAL(2) },
      { 1, 1, 0 },
      0 },
    { "all let on",
      { STAY | NORMAL(1), STAY | NORMAL(2), STAY | NORMAL(3) },
      { 1, 1, 1 },
      1 },
    { "sniffer", { KIND(SNIFFER), NORMAL(0), NORMAL(1) }, { 1, 1, 0 }, 0 },
    { "sniffer alone",
      { KIND(SNIFFER), KIND(SNIFFER), KIND(ALL_DEFAULT) },
      { 1, 1, 0 },
      1 },
    { "default", { KIND(ALL_DEFAULT), NORMAL(9), NORMAL(9) }, { 0, 1, 1 }, 0 },
};

static void check_priorities(const Priorities *p, const uint8_t *to)
{
    RawBench *bench = raw_bench_new(301);
    uint8_t frame[FRAME_LEN];
    Qp *qp[3];

    g_assert_cmphex(
        nic_set_rx_mode(bench->nic, RDMA_HCA_RX_MODE_ALLMULTI, NULL, 0), ==,
        OK);
    raw_frame(bench, frame, sizeof(frame), to ? to : bench->host->config.mac);
    for (unsigned i = 0; i < 3; i++) {
        qp[i] = raw_new(bench);
        raw_post(bench, qp[i], 2);
        flow_rule(bench, i, qp[i], p->rule[i]);
    }
    raw_inject(bench, frame, sizeof(frame));
    for (unsigned i = 0; i < 3; i++) {
        if (p->gets[i]) {
            raw_expect(bench, qp[i], frame, sizeof(frame));
        }
        raw_expect_none(bench, qp[i]);
    }
    if (p->nic) {
        raw_expect_nic(bench, frame, sizeof(frame));
    }
    raw_expect_nic_none(bench);
    raw_bench_free(bench);
}

static void test_priority(gconstpointer data)
{
    check_priorities(data, NULL);
    check_priorities(data, group);
}

/* Two rules, one QP: one copy. */
static void test_once(void)
{
    RawBench *bench = raw_bench_new(302);
    Qp *qp = raw_new(bench);
    uint8_t frame[FRAME_LEN];

    raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
    raw_post(bench, qp, 4);
    for (unsigned i = 0; i < 8; i++) {
        flow_rule(bench, i, qp, i < 4 ? NORMAL(3) : STAY | NORMAL(1));
    }
    raw_inject(bench, frame, sizeof(frame));
    raw_expect(bench, qp, frame, sizeof(frame));
    raw_expect_none(bench, qp);
    g_assert_cmpuint(raw_count(bench, "port_flow_steered"), ==, 1);
    g_assert_cmpuint(raw_count(bench, "port_flow_rules"), ==, 8);
    raw_bench_free(bench);
}

/* What nothing else takes, to whom it is addressed be as it may. */
static void test_defaults(void)
{
    RawBench *bench = raw_bench_new(303);
    Qp *all = raw_new(bench), *multi = raw_new(bench);
    uint8_t frame[FRAME_LEN];

    raw_post(bench, all, 4);
    raw_post(bench, multi, 4);
    flow_rule(bench, 0, all, KIND(ALL_DEFAULT));
    flow_rule(bench, 255, multi, KIND(MC_DEFAULT));
    raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect_nic(bench, frame, sizeof(frame));
    raw_expect_none(bench, all);
    raw_expect_none(bench, multi);

    raw_frame(bench, frame, sizeof(frame), neighbour);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect(bench, all, frame, sizeof(frame));
    raw_expect_none(bench, multi);

    raw_frame(bench, frame, sizeof(frame), group);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect(bench, all, frame, sizeof(frame));
    raw_expect(bench, multi, frame, sizeof(frame));
    raw_expect_nic_none(bench);

    /* An interface that is down takes nothing. */
    g_assert_cmphex(nic_stop(bench->nic), ==, OK);
    raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect(bench, all, frame, sizeof(frame));
    raw_bench_free(bench);
}

/* A rule is one while its QP receives, and is a raw packet QP. */
static void test_states(void)
{
    RawBench *bench = raw_bench_new(304);
    Qp *qp = pair_new_qp(bench->pair, 0, RDMA_HCA_QP_ST_RAW);
    Qp *ud = pair_new_ud(bench->pair, 0);
    uint8_t frame[FRAME_LEN];
    QpAttr attr;

    qp_attr_init(&attr);
    flow_rule(bench, 0, qp, NORMAL(0));
    flow_rule(bench, 1, qp, KIND(SNIFFER));
    flow_rule(bench, 2, ud, NORMAL(0));
    flow_rule(bench, 3, ud, KIND(SNIFFER));
    raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
    for (unsigned state = 0; state < 6; state++) {
        bool receives = state == 2 || state == 3;

        g_test_message("state %u", state);
        if (state == 1) {
            g_assert_cmphex(qp_to_init(qp, &attr), ==, OK);
            raw_post(bench, qp, 4);
        } else if (state == 2) {
            g_assert_cmphex(qp_to_rtr(qp, &attr), ==, OK);
        } else if (state == 3) {
            g_assert_cmphex(qp_to_rts(qp, &attr), ==, OK);
        } else if (state == 4) {
            g_assert_cmphex(qp_to_err(qp), ==, OK);
        } else if (state == 5) {
            g_assert_cmphex(qp_to_rst(qp), ==, OK);
        }
        raw_inject(bench, frame, sizeof(frame));
        if (receives) {
            raw_expect(bench, qp, frame, sizeof(frame)); /* a copy */
            raw_expect(bench, qp, frame, sizeof(frame));
        } else {
            raw_expect_nic(bench, frame, sizeof(frame));
        }
        raw_expect_nic_none(bench);
    }
    g_assert_cmphex(qp_to_init(qp, &attr), ==, OK);
    g_assert_cmphex(qp_to_rtr(qp, &attr), ==, OK);
    raw_post(bench, qp, 2);
    raw_inject(bench, frame, sizeof(frame));
    raw_expect(bench, qp, frame, sizeof(frame));
    raw_bench_free(bench);
}

/* Sniffers and RDMA */

static void take_copies(RawBench *bench, Qp *qp, unsigned expected)
{
    unsigned n = 0;
    Wc wc;

    lab_run(bench->pair->lab);
    while (cq_poll(qp->recv_cq, &wc)) {
        g_assert_cmphex(wc.syndrome, ==, 0);
        n++;
    }
    g_assert_cmpuint(n, ==, expected);
}

/* All that passes the cable, both ways, is seen, and gets where it goes. */
static void test_sniff_rdma(void)
{
    RawBench *bench = raw_bench_new_cabled(305);
    uint8_t frame[FRAME_LEN];
    Qp *sniffer = raw_new(bench);
    uint64_t tx, rx;
    Qp *qp[2];

    pair_connect(bench->pair, NULL, qp);
    raw_post(bench, sniffer, 50);
    flow_rule(bench, 7, sniffer, KIND(SNIFFER));
    tx = raw_count(bench, "link_tx_packets");
    rx = raw_count(bench, "link_rx_packets");
    pair_check_works(bench->pair, qp, 0);
    pair_check_works(bench->pair, qp, 1);
    raw_frame(bench, frame, sizeof(frame), neighbour);
    nic_send(bench->nic, frame, sizeof(frame));
    lab_run(bench->pair->lab);
    tx = raw_count(bench, "link_tx_packets") - tx;
    rx = raw_count(bench, "link_rx_packets") - rx;
    g_assert_cmpuint(tx, ==, 3);
    g_assert_cmpuint(rx, ==, 2);
    take_copies(bench, sniffer, tx + rx);
    g_assert_cmpuint(raw_count(bench, "port_flow_sniffed"), ==, tx + rx);

    g_assert_cmphex(flow_remove(bench, 7), ==, OK);
    pair_check_works(bench->pair, qp, 0);
    take_copies(bench, sniffer, 0);
    raw_bench_free(bench);
}

/* What turns round is seen once. */
static void test_sniff_self(void)
{
    RawBench *bench = raw_bench_new(306);
    Pair *pair = bench->pair;
    Qp *sniffer = raw_new(bench);
    Qp *qp[2] = { pair_new_qp(pair, 0, RDMA_HCA_QP_ST_RC),
                  pair_new_qp(pair, 0, RDMA_HCA_QP_ST_RC) };
    SendWr wr;
    QpAttr attr;
    Sge sge;
    Wc wc;

    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
    raw_post(bench, sniffer, 10);
    flow_rule(bench, 0, sniffer, KIND(SNIFFER));
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 1, &sge, RAW_SEND_AT, 8, 0);
    pair_post_recv(pair, 0, qp[1], 2, RAW_SEND_AT, 64);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_run(pair->lab);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(cq_poll(pair->cq[0], &wc));
        g_assert_cmphex(wc.syndrome, ==, 0);
    }
    take_copies(bench, sniffer, 2); /* and the acknowledgement */
    raw_expect_none_sent(bench);
    raw_bench_free(bench);
}

#define BURST 120u

/*
 * More is sent at a time than copies are kept: nothing is lost, and a sniffer
 * that posts nothing holds up nobody.
 */
static void test_sniff_burst(void)
{
    RawBench *bench = raw_bench_new(307);
    Qp *sniffer = raw_new(bench), *idle = raw_new(bench);
    Qp *sender = raw_new(bench);
    uint8_t *frame = g_malloc(9000);
    Sge sge = mr_sge(bench->pair->mr[0], RAW_SEND_AT, 9000);
    SendWr wr = {
        .opcode = RDMA_HCA_OPCODE_SEND,
        .flags = SEND_SIGNALED,
        .sge = &sge,
        .nsge = 1,
    };
    Wc wc;

    raw_frame(bench, frame, 9000, neighbour);
    mr_write(bench->pair->mr[0], RAW_SEND_AT, frame, 9000);
    raw_post(bench, sniffer, 60);
    flow_rule(bench, 0, sniffer, KIND(SNIFFER));
    flow_rule(bench, 1, idle, KIND(SNIFFER));
    for (unsigned i = 0; i < BURST; i += 60) {
        for (unsigned j = 0; j < 60; j++) {
            g_assert_true(qp_post_send(sender, &wr, 1));
        }
        lab_run(bench->pair->lab);
        for (unsigned j = 0; j < 60; j++) {
            cq_expect(sender->send_cq, &wc, 0, 0);
            raw_expect_sent(bench, frame, 9000);
            raw_expect(bench, sniffer, frame, 9000);
        }
        raw_post(bench, sniffer, 60);
    }
    raw_expect_none(bench, idle);
    g_assert_cmpuint(pair_drops(bench->pair, 0, HCA_DROP_NO_WQE), ==, BURST);
    g_free(frame);
    raw_bench_free(bench);
}

/* Tags */

static void expect_tag(RawBench *bench, Qp *qp, uint32_t tag)
{
    Wc wc;

    lab_run(bench->pair->lab);
    g_assert_true(cq_poll(qp->recv_cq, &wc));
    g_assert_cmphex(wc.syndrome, ==, 0);
    g_assert_cmphex(wc.flow_tag, ==, tag);
}

static void add_tagged(RawBench *bench, unsigned index, const Qp *qp,
                       uint32_t kind, uint32_t tag)
{
    struct rdma_hca_flow flow;

    flow_init(&flow, qp, kind);
    flow.tag = GUINT32_TO_BE(tag);
    g_assert_cmphex(flow_add(bench, index, &flow), ==, OK);
}

/* A completion says by which rule the frame came: each QP's own, its first. */
static void test_tag(void)
{
    RawBench *bench = raw_bench_new(311);
    Qp *qp[3] = { raw_new(bench), raw_new(bench), raw_new(bench) };
    uint8_t frame[FRAME_LEN];

    raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
    for (unsigned i = 0; i < 3; i++) {
        raw_post(bench, qp[i], 2);
    }
    add_tagged(bench, 0, qp[0], NORMAL(2), 0x11223344);
    add_tagged(bench, 1, qp[0], STAY | NORMAL(1), UINT32_MAX);
    add_tagged(bench, 2, qp[1], NORMAL(2), 0);
    add_tagged(bench, 3, qp[2], KIND(SNIFFER), 1);
    raw_inject(bench, frame, sizeof(frame));
    expect_tag(bench, qp[0], UINT32_MAX);
    expect_tag(bench, qp[1], 0);
    expect_tag(bench, qp[2], 1);
    g_assert_cmphex(flow_remove(bench, 1), ==, OK);
    raw_inject(bench, frame, sizeof(frame));
    expect_tag(bench, qp[0], 0x11223344);
    expect_tag(bench, qp[1], 0);
    expect_tag(bench, qp[2], 1);
    raw_bench_free(bench);
}

/* Commands */

static void test_commands(void)
{
    RawBench *bench = raw_bench_new(308);
    unsigned end = 1u << bench->host->config.log_flows;
    uint32_t qps = 1u << bench->host->config.log_qps;
    Qp *qp = raw_new(bench);
    struct rdma_hca_flow flow;
    struct rdma_hca_dev_lim lim;

    driver_cmd_out(bench->drv, RDMA_HCA_CMD_QUERY_DEV_LIM, &lim, sizeof(lim), 0,
                   0);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_FLOWS, GUINT32_FROM_BE(lim.flows)),
        ==, bench->host->config.log_flows);
    flow_init(&flow, qp, NORMAL(0));
    g_assert_cmphex(flow_remove(bench, 0), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    for (unsigned i = 0; i < end; i++) {
        g_assert_cmphex(flow_add(bench, i, &flow), ==, OK);
    }
    g_assert_cmphex(flow_add(bench, 0, &flow), ==, RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(flow_add(bench, end, &flow), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(flow_remove(bench, end), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(flow_remove(bench, UINT32_MAX), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(flow_remove(bench, 5), ==, OK);
    g_assert_cmphex(flow_remove(bench, 5), ==, RDMA_HCA_STAT_BAD_RES_STATE);
    flow.qpn = GUINT32_TO_BE(qps);
    g_assert_cmphex(flow_add(bench, 5, &flow), ==, RDMA_HCA_STAT_BAD_PARAM);
    flow.qpn = GUINT32_TO_BE(qps - 1);
    for (uint32_t kind = 4; kind < 16; kind++) {
        flow.kind_priority = GUINT32_TO_BE(kind << 16);
        g_assert_cmphex(flow_add(bench, 5, &flow), ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    flow.kind_priority = GUINT32_TO_BE(KIND(SNIFFER) | STAY);
    g_assert_cmphex(flow_add(bench, 5, &flow), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(
        driver_cmd(bench->drv, RDMA_HCA_CMD_SET_FLOW, 0, 5, 2, 0, NULL), ==,
        RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmpuint(raw_count(bench, "port_flow_rules"), ==, end - 1);
    g_assert_cmphex(
        driver_cmd(bench->drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL), ==,
        OK);
    g_assert_cmpuint(raw_count(bench, "port_flow_rules"), ==, 0);
    raw_bench_free(bench);
}

/* An InfiniBand card has none of it. */
static void test_infiniband(void)
{
    Pair *pair = pair_new(309, 4096);
    Qp *qp = pair_new_qp(pair, 0, RDMA_HCA_QP_ST_RAW);
    struct rdma_hca_flow flow;
    struct rdma_hca_fw fw;
    QpAttr attr;

    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    flow_init(&flow, qp, NORMAL(0));
    g_assert_cmphex(driver_cmd_in(pair->drv[0], RDMA_HCA_CMD_SET_FLOW, &flow,
                                  sizeof(flow), 0, RDMA_HCA_SET_FLOW_ADD),
                    ==, RDMA_HCA_STAT_BAD_OP);
    driver_cmd_out(pair->drv[0], RDMA_HCA_CMD_QUERY_FW, &fw, sizeof(fw), 0, 0);
    g_assert_cmphex(GUINT32_FROM_BE(fw.features) & RDMA_HCA_FEATURE_RAW, ==, 0);
    pair_free(pair);
}

/* Rules come and go at random; a model says who gets what. */
typedef struct ModelRule {
    bool used;
    unsigned qp;
    uint16_t priority;
    bool stay, matches;
} ModelRule;

#define MODEL_QPS 4u

static bool model_gets(const ModelRule *rule, unsigned qp)
{
    unsigned best = UINT_MAX;

    for (unsigned i = 0; i < 256; i++) {
        if (rule[i].used && rule[i].matches && !rule[i].stay) {
            best = MIN(best, rule[i].priority);
        }
    }
    for (unsigned i = 0; i < 256; i++) {
        if (rule[i].used && rule[i].matches && rule[i].qp == qp &&
            rule[i].priority <= best) {
            return true;
        }
    }
    return false;
}

static void model_change(RawBench *bench, Qp *const *qp, ModelRule *rule,
                         const uint8_t *mac)
{
    unsigned i = pair_rand(bench->pair, 0, 256);
    struct rdma_hca_flow flow;

    if (rule[i].used) {
        g_assert_cmphex(flow_remove(bench, i), ==, OK);
        rule[i].used = false;
        return;
    }
    rule[i] = (ModelRule) {
        .used = true,
        .qp = pair_rand(bench->pair, 0, MODEL_QPS),
        .priority = pair_rand(bench->pair, 0, 6),
        .stay = pair_rand(bench->pair, 0, 2),
        .matches = pair_rand(bench->pair, 0, 3) == 0,
    };
    flow_init(&flow, qp[rule[i].qp],
              NORMAL(rule[i].priority) | (rule[i].stay ? STAY : 0));
    memset(flow.mask.dmac, 0xff, sizeof(flow.mask.dmac));
    memcpy(flow.value.dmac, mac, sizeof(flow.value.dmac));
    flow.value.dmac[5] ^= !rule[i].matches;
    g_assert_cmphex(flow_add(bench, i, &flow), ==, OK);
}

static void test_model(void)
{
    RawBench *bench = raw_bench_new(310);
    ModelRule rule[256] = { 0 };
    uint8_t frame[FRAME_LEN];
    Qp *qp[MODEL_QPS];

    for (unsigned i = 0; i < MODEL_QPS; i++) {
        qp[i] = raw_new(bench);
    }
    for (unsigned n = 0; n < 1500; n++) {
        model_change(bench, qp, rule, bench->host->config.mac);
        raw_frame(bench, frame, sizeof(frame), bench->host->config.mac);
        for (unsigned i = 0; i < MODEL_QPS; i++) {
            raw_post(bench, qp[i], model_gets(rule, i));
        }
        raw_inject(bench, frame, sizeof(frame));
        for (unsigned i = 0; i < MODEL_QPS; i++) {
            if (model_gets(rule, i)) {
                raw_expect(bench, qp[i], frame, sizeof(frame));
            }
            raw_expect_none(bench, qp[i]);
        }
        while (nic_receive(bench->nic, NULL)) {
            /* that it gets is another test's */
        }
    }
    g_assert_cmpuint(pair_drops(bench->pair, 0, HCA_DROP_NO_WQE), ==, 0);
    raw_bench_free(bench);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(samples); i++) {
        test_add_data(test_named("/flow/fields/%s", samples[i].what),
                      &samples[i], test_fields);
    }
    test_add("/flow/cut", test_cut);
    for (unsigned i = 0; i < G_N_ELEMENTS(priorities); i++) {
        test_add_data(test_named("/flow/priority/%s", priorities[i].what),
                      &priorities[i], test_priority);
    }
    test_add("/flow/once", test_once);
    test_add("/flow/defaults", test_defaults);
    test_add("/flow/states", test_states);
    test_add("/flow/sniff/rdma", test_sniff_rdma);
    test_add("/flow/sniff/self", test_sniff_self);
    test_add("/flow/sniff/burst", test_sniff_burst);
    test_add("/flow/tag", test_tag);
    test_add("/flow/commands", test_commands);
    test_add("/flow/infiniband", test_infiniband);
    test_add("/flow/model", test_model);
    return g_test_run();
}
