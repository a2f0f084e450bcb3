/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function: a network driver on machine 0 that means harm, with
 * descriptors, doorbells and commands as it likes, and frames of any content;
 * a good one on machine 1, whose buffers end where it says. Beside them raw
 * packet QPs, which get and send the same frames. Who sends the state of machine
 * 0's card lies, too.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "lib-frame.h"
#include "lib-nic.h"

#define LOG_RING 4
#define DESC_SIZE 16
#define TIGHT 3 /* receive buffers of machine 1 that are small */
#define RULES 8 /* of a card */

typedef struct Ethernet {
    Nic *nic[2];
    Nic *more[2]; /* pair 1 of rings, once it is wanted */
    Qp *raw[2];
    uint64_t area; /* 16 pages of machine 0, for frames to send */
    uint8_t frame[FRAME_MOST];
} Ethernet;

/* Behind the end of a good machine's buffer nobody may write. */
static void post_tight(Fuzz *f, Nic *nic)
{
    static const uint16_t size[TIGHT] = { 64, 1514, 200 };

    for (unsigned i = 0; i < TIGHT; i++) {
        uint64_t page = host_alloc(nic->host, 1);

        nic_put_rx(nic, page, size[i]);
        if (nic->host->side == 1) {
            fuzz_add_secret(f, 1, page + size[i], HOST_PAGE_SIZE - size[i]);
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        nic_put_rx(nic, host_alloc(nic->host, 4), NIC_BUFFER_SIZE);
    }
    nic_ring_rx(nic);
}

static struct rdma_hca_setup_eth good_setup(const Nic *nic)
{
    return (struct rdma_hca_setup_eth) {
        .tx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(nic->tx_ring)),
        .tx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(nic->tx_ring)),
        .rx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(nic->rx_ring)),
        .rx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(nic->rx_ring)),
        .log_sizes = GUINT32_TO_BE(LOG_RING << 16 | LOG_RING),
        .vectors = GUINT32_TO_BE(NIC_TX_VECTOR << 16 | NIC_RX_VECTOR),
    };
}

static uint8_t set_up(Nic *nic, const struct rdma_hca_setup_eth *setup,
                      uint8_t op_modifier)
{
    nic->tx_tail = nic->tx_next = nic->rx_tail = nic->rx_next = 0;
    return driver_cmd_in(nic->drv, RDMA_HCA_CMD_SETUP_ETH, setup,
                         sizeof(*setup), nic->queue, op_modifier);
}

/* Rings without buffers, not set up. */
static Nic *new_nic(Fuzz *f, unsigned side)
{
    Host *host = &f->lab->host[side];
    Nic *nic = g_new0(Nic, 1);

    *nic = (Nic) {
        .drv = f->pair->drv[side],
        .host = host,
        .log = LOG_RING,
        .tx_ring = host_alloc(host, 1),
        .rx_ring = host_alloc(host, 1),
        .buffer = host_alloc(host, NIC_BUFFER_SIZE / HOST_PAGE_SIZE),
    };
    return nic;
}

static Nic *start(Fuzz *f, unsigned side)
{
    Nic *nic = new_nic(f, side);
    struct rdma_hca_setup_eth setup;

    setup = good_setup(nic);
    g_assert_cmphex(set_up(nic, &setup, RDMA_HCA_SETUP_ETH_START), ==, 0);
    g_assert_cmphex(nic_set_rx_mode(nic, 0, NULL, 0), ==, 0);
    return nic;
}

/* ---- what machine 0 writes ---- */

static uint64_t take_place(Fuzz *f)
{
    Ethernet *eth = f->own;

    switch (take_below(&f->in, 8)) {
    case 0:
        return take_odd(&f->in);
    case 1:
        return eth->nic[0]->tx_ring + take_below(&f->in, HOST_PAGE_SIZE);
    case 2: /* over the end of memory */
        return eth->area + HOST_BLOCK_SIZE - take_below(&f->in, 256);
    default:
        return eth->area + take_below(&f->in, HOST_BLOCK_SIZE);
    }
}

static uint16_t take_size(Fuzz *f)
{
    switch (take_below(&f->in, 8)) {
    case 0:
        return take_odd(&f->in);
    case 1:
        return 1500 + take_below(&f->in, 32);
    case 2:
        return 9000 + take_below(&f->in, 32);
    default:
        return take_below(&f->in, 256);
    }
}

static void act_transmit(Fuzz *f)
{
    Ethernet *eth = f->own;
    Nic *nic = eth->nic[0];
    unsigned pieces = take_below(&f->in, 4);

    if (take_below(&f->in, 16) == 0) {
        pieces = RDMA_HCA_ETH_MAX_PIECES + take_below(&f->in, 2);
    }
    for (unsigned i = 0; i <= pieces; i++) {
        uint8_t flags = take8(&f->in);

        nic_put_tx(nic, take_place(f), take_size(f),
                   flags ^ (i == pieces ? RDMA_HCA_ETH_TX_LAST : 0));
        if (flags & RDMA_HCA_ETH_TX_CSUM) {
            nic_want_checksum(nic, take_size(f), take_size(f));
        }
    }
    nic_ring_tx(nic);
}

static void act_receive_buffers(Fuzz *f)
{
    Ethernet *eth = f->own;
    Nic *nic = eth->nic[0];

    for (unsigned n = take_below(&f->in, 8); n; n--) {
        nic_put_rx(nic, take_place(f), take_size(f));
    }
    nic_ring_rx(nic);
}

static void act_doorbell(Fuzz *f)
{
    Ethernet *eth = f->own;
    Nic *nic = eth->nic[0];
    uint32_t reg = take_below(&f->in, RDMA_HCA_ETH_DB_STRIDE + 4);
    uint32_t value = take_bool(&f->in) ? nic->tx_tail : nic->rx_tail;

    value += (int)take8(&f->in) - 32;
    nic_doorbell(nic, reg,
                 take_below(&f->in, 8) ? value & 0xffff : take_odd(&f->in));
}

static void act_scribble(Fuzz *f)
{
    Ethernet *eth = f->own;
    uint64_t ring = take_bool(&f->in) ? eth->nic[0]->tx_ring
                                      : eth->nic[0]->rx_ring;
    uint64_t value = take_odd(&f->in);
    unsigned later = take_below(&f->in, 64);

    ring += take_below(&f->in, (DESC_SIZE << LOG_RING) / 8) * 8;
    if (later < 32) {
        machine_plan_write(0, later, ring, &value, sizeof(value));
    } else {
        host_write(&f->lab->host[0], ring, &value, sizeof(value));
    }
}

static void act_failure(Fuzz *f)
{
    unsigned lookups = take_below(&f->in, 64);

    machine_plan_failure(0, lookups, 1 + take_below(&f->in, 4));
}

static void act_setup(Fuzz *f)
{
    Ethernet *eth = f->own;
    struct rdma_hca_setup_eth setup = good_setup(eth->nic[0]);
    uint32_t *word = (uint32_t *)&setup;

    if (take_bool(&f->in)) {
        unsigned at = take_below(&f->in, 6);

        word[at] = GUINT32_TO_BE(take_odd(&f->in));
    }
    set_up(eth->nic[0], &setup, take_below(&f->in, 3));
}

static void act_mode(Fuzz *f)
{
    uint8_t side = fuzz_take_side(f), flags = take_below(&f->in, 4);
    uint8_t count = take8(&f->in);
    Ethernet *eth = f->own;
    static const uint8_t multicast[RDMA_HCA_RX_MODE_MAX_MULTICAST][6] = {
        { 1, 0, 0x5e, 0, 0, 1 }, { 0x33, 0x33, [5] = 1 }
    };

    nic_set_rx_mode(eth->nic[side], flags, multicast, side ? count & 3 : count);
}

/* ---- frames ---- */

static void put_checksum_free_udp(uint8_t *udp, uint16_t len)
{
    put_be16(udp, 4791);
    put_be16(udp + 2, 4791);
    put_be16(udp + 4, len);
    put_be16(udp + 6, 0);
}

static size_t take_ipv4(Fuzz *f, uint8_t *ip, size_t payload)
{
    uint16_t len = 20 + payload;

    memset(ip, 0, 20);
    ip[0] = 0x45;
    put_be16(ip + 2, len);
    ip[8] = 64;
    ip[9] = take_bool(&f->in) ? 17 : 6;
    memcpy(ip + 12, (uint8_t[]) { 10, 0, 0, 1, 10, 0, 0, 2 }, 8);
    return 20;
}

static size_t take_ipv6(Fuzz *f, uint8_t *ip, size_t payload)
{
    memset(ip, 0, 40);
    ip[0] = 0x60;
    put_be16(ip + 4, payload);
    ip[6] = take_bool(&f->in) ? 17 : 6;
    ip[7] = 64;
    ip[8] = ip[24] = 0xfd;
    return 40;
}

static void take_destination(Fuzz *f, unsigned to, uint8_t *mac)
{
    switch (take_below(&f->in, 5)) {
    case 0:
        memset(mac, 0xff, 6);
        break;
    case 1:
        memcpy(mac, (uint8_t[]) { 1, 0, 0x5e, 0, 0, 1 }, 6);
        break;
    case 2:
        take_bytes(&f->in, mac, 6);
        break;
    default:
        memcpy(mac, f->lab->host[to].config.mac, 6);
        break;
    }
}

/* A frame for machine @to; what is said of it is not always so. */
static size_t take_frame(Fuzz *f, unsigned to, uint8_t *frame)
{
    size_t payload = take_size(f) % 9000, at = 14, transport;
    bool ipv6 = take_bool(&f->in);

    memset(frame, 0, FRAME_MOST);
    take_destination(f, to, frame);
    memcpy(frame + 6, f->lab->host[!to].config.mac, 6);
    if (take_bool(&f->in)) {
        put_be16(frame + 12, 0x8100);
        put_be16(frame + 14, take8(&f->in));
        at += 4;
    }
    put_be16(frame + at - 2, ipv6 ? 0x86dd : 0x0800);
    at += ipv6 ? take_ipv6(f, frame + at, payload)
               : take_ipv4(f, frame + at, payload);
    transport = at;
    put_checksum_free_udp(frame + transport, payload);
    if (take_bool(&f->in)) {
        take_bytes(&f->in, frame + transport, 8);
    }
    if (take_bool(&f->in)) {
        frame_edit(f, frame, at + payload);
    }
    if (take_bool(&f->in)) {
        frame_mend(true, frame, at + payload);
    }
    return MAX(at + payload, 14) - take_below(&f->in, 4);
}

/* By machine 0's ring. */
static void act_frame(Fuzz *f)
{
    Ethernet *eth = f->own;
    size_t len = take_frame(f, 1, eth->frame);

    host_write(&f->lab->host[0], eth->area, eth->frame, len);
    nic_put_tx(eth->nic[0], eth->area, len, RDMA_HCA_ETH_TX_LAST);
    if (take_bool(&f->in)) {
        nic_want_checksum(eth->nic[0], 14 + take_below(&f->in, 64),
                          take_below(&f->in, 32));
    }
    nic_ring_tx(eth->nic[0]);
}

/* From the segment, to either. */
static void act_inject(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned to = fuzz_take_side(f);
    size_t len = take_frame(f, to, eth->frame);

    if (take_below(&f->in, 4) == 0) {
        len = 1 + take_below(&f->in, 64);
    }
    frame_inject(f, !to, eth->frame, len);
}

/* Machine 1 sends, and takes what it has got. */
static void act_good(Fuzz *f)
{
    Ethernet *eth = f->own;
    Nic *nic = eth->nic[1];
    size_t len = take_frame(f, 0, eth->frame);
    uint8_t done;

    while (nic_take_tx(nic, &done)) {
        continue;
    }
    if ((uint16_t)(nic->tx_tail - nic->tx_next) < 8) {
        nic_send(nic, eth->frame, MAX(len, 14));
    }
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, nic->rx_next);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, nic->tx_next);
}

/* ---- raw packets ---- */

/* Frames of all lengths, of memory that machine 0 may read or may not. */
static void act_raw_send(Fuzz *f)
{
    static const uint8_t opcodes[] = { RDMA_HCA_OPCODE_SEND,
                                       RDMA_HCA_OPCODE_SEND_IMM,
                                       RDMA_HCA_OPCODE_RDMA_WRITE,
                                       RDMA_HCA_OPCODE_NOP };
    Ethernet *eth = f->own;
    uint8_t how = take8(&f->in);
    const Mr *mr = f->mr[0][how & 8 ? FUZZ_ALIEN : FUZZ_ALL];
    uint32_t len = MIN(take_frame(f, 1, eth->frame), mr->len);
    Sge sge = mr_sge(mr, 0, len);
    SendWr wr = {
        .opcode = opcodes[how & 4 ? how & 3 : 0],
        .flags = how & 16 ? SEND_SIGNALED : 0,
        .nsge = 1,
        .sge = &sge,
    };

    if (!(how & 8)) {
        mr_write(f->mr[0][FUZZ_ALL], 0, eth->frame, len);
    }
    sge.len += how & 32 ? take_odd(&f->in) : 0;
    qp_post_send(eth->raw[0], &wr, 1);
}

/* Buffers of both: those of machine 1 end where they say. */
static void act_raw_receive(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);
    const Mr *mr = f->mr[side][FUZZ_WRITABLE];
    uint32_t at = take8(&f->in), len = take_size(f) % (mr->len - at);
    Sge sge = mr_sge(mr, at, len);
    RecvWr wr = { .nsge = 1, .sge = &sge };

    if (!side && take_below(&f->in, 8) == 0) {
        sge.lkey = take_odd(&f->in);
    }
    qp_post_recv(eth->raw[side], &wr, 1);
}

static void act_rule(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);
    uint8_t kind = take8(&f->in), at = take_below(&f->in, 60);
    struct rdma_hca_flow flow = {
        .qpn = GUINT32_TO_BE(eth->raw[side]->qpn),
        .tag = GUINT32_TO_BE(kind),
        .kind_priority = GUINT32_TO_BE(
            (kind & 3) << 16 | (kind >> 2 & 3) |
            (kind & 16 ? RDMA_HCA_FLOW_DONT_TRAP : 0)),
    };

    if (kind & 32) {
        ((uint8_t *)&flow.value)[at] = take8(&f->in);
        ((uint8_t *)&flow.mask)[at] = take8(&f->in);
    }
    driver_cmd_in(f->pair->drv[side], RDMA_HCA_CMD_SET_FLOW, &flow,
                  sizeof(flow), take_below(&f->in, RULES + 1),
                  kind & 64 ? RDMA_HCA_SET_FLOW_REMOVE : RDMA_HCA_SET_FLOW_ADD);
}

static void act_raw_again(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);
    QpAttr attr;

    qp_attr_init(&attr);
    if (take_bool(&f->in)) {
        qp_to_err(eth->raw[side]);
    }
    qp_to_rst(eth->raw[side]);
    qp_to_init(eth->raw[side], &attr);
    qp_to_rtr(eth->raw[side], &attr);
    qp_to_rts(eth->raw[side], &attr);
}

/* ---- more rings, and what is spread over them ---- */

/* Pair 1 of a machine, or 0, which it has in any case. */
static Nic *take_nic(Fuzz *f, unsigned side)
{
    Ethernet *eth = f->own;

    return take_bool(&f->in) || !eth->more[side] ? eth->nic[side]
                                                 : eth->more[side];
}

static void act_more_rings(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);
    struct rdma_hca_setup_eth setup;

    if (!eth->more[side]) {
        eth->more[side] = new_nic(f, side);
        eth->more[side]->queue = 1;
    }
    setup = good_setup(eth->more[side]);
    if (set_up(eth->more[side], &setup, RDMA_HCA_SETUP_ETH_START) == 0) {
        post_tight(f, eth->more[side]);
    }
}

static void act_rss(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);

    nic_set_rss(eth->nic[side], take_below(&f->in, RDMA_HCA_RSS_ALL + 2),
                1 + take_below(&f->in, 3));
}

static void act_moderate(Fuzz *f)
{
    Nic *nic = take_nic(f, fuzz_take_side(f));
    uint8_t frames = take_below(&f->in, 16), us = take8(&f->in);

    nic_moderate(nic, frames, us, take_below(&f->in, 16), take8(&f->in));
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_ARM, nic->rx_next);
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_ARM, nic->tx_next);
}

/* Headers of TCP in front of whatever is there; at @tcp of them. */
static void write_tcp(Fuzz *f, uint64_t at, bool ipv6, size_t tcp)
{
    uint8_t header[14 + 40 + 20] = { 0 };

    memcpy(header, f->lab->host[1].config.mac, 6);
    memcpy(header + 6, f->lab->host[0].config.mac, 6);
    put_be16(header + 12, ipv6 ? 0x86dd : 0x0800);
    header[14] = ipv6 ? 0x60 : 0x45;
    header[ipv6 ? 20 : 23] = 6;
    header[tcp + 12] = 0x50;
    header[tcp + 13] = take8(&f->in);
    if (take_below(&f->in, 4) == 3) {
        header[take_below(&f->in, sizeof(header))] = take8(&f->in);
    }
    host_write(&f->lab->host[0], at, header, sizeof(header));
}

/* A long segment; its descriptor says what is so, or something else. */
static void act_tso(Fuzz *f)
{
    Ethernet *eth = f->own;
    Nic *nic = take_nic(f, 0);
    uint8_t how = take8(&f->in);
    bool ipv6 = how & 1;
    uint16_t tcp = 14 + (ipv6 ? 40 : 20), len = take16(&f->in);
    uint16_t field[] = { RDMA_HCA_ETH_MIN_MSS + take_size(f), tcp + 20, 14,
                         tcp };

    write_tcp(f, eth->area, ipv6, tcp);
    if (how & 2) {
        unsigned at = take_below(&f->in, G_N_ELEMENTS(field));

        field[at] = take_odd(&f->in);
    }
    nic_put_tso(nic, field[0], field[1], field[2], field[3]);
    if (how & 4) {
        nic_put_tx(nic, eth->area, tcp, 0);
        nic_put_tx(nic, eth->area + tcp, 20, 0);
        nic_put_tx(nic, take_place(f), len, RDMA_HCA_ETH_TX_LAST);
    } else {
        nic_put_tx(nic, eth->area, len, RDMA_HCA_ETH_TX_LAST);
    }
    nic_ring_tx(nic);
}

/* Registers of all pairs; and frames of pair 1, also of the good machine's. */
static void act_more_doorbells(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);
    uint32_t reg = take8(&f->in), value = take8(&f->in);

    host_bar0_write(&f->lab->host[0], RDMA_HCA_ETH_DB + reg, value);
    if (eth->more[side]) {
        nic_put_tx(eth->more[side], eth->more[side]->buffer, value,
                   RDMA_HCA_ETH_TX_LAST);
        nic_ring_tx(eth->more[side]);
    }
}

/* ---- flow control of the link ---- */

static void act_set_pause(Fuzz *f)
{
    Ethernet *eth = f->own;
    unsigned side = fuzz_take_side(f);
    uint8_t not = take8(&f->in);

    nic_set_pause(eth->nic[side], !(not &1), !(not &2));
}

/* From the segment, to either; also what is nearly a PAUSE frame. */
static void act_pause(Fuzz *f)
{
    uint8_t frame[60] = { 0x01, 0x80, 0xc2, 0, 0, 1 };
    unsigned to = fuzz_take_side(f);
    uint8_t how = take8(&f->in);
    size_t len = sizeof(frame);

    if (how & 1) {
        take_destination(f, to, frame);
    }
    memcpy(frame + 6, f->lab->host[how & 2 ? to : !to].config.mac, 6);
    put_be16(frame + 12, 0x8808);
    put_be16(frame + 14, how & 4 ? take8(&f->in) : 1);
    put_be16(frame + 16, take16(&f->in));
    if (how & 8) {
        len = 1 + take_below(&f->in, sizeof(frame));
    }
    frame_inject(f, !to, frame, len);
}

/* More frames than machine 1 has buffers, with a hash or without; some come back. */
static void act_flood(Fuzz *f)
{
    Ethernet *eth = f->own;
    Nic *nic = eth->nic[1];
    unsigned n = take_below(&f->in, 32), again = take_below(&f->in, 12);
    size_t len = take_frame(f, 1, eth->frame);

    while (n--) {
        frame_inject(f, 0, eth->frame, len);
    }
    while (again--) {
        nic_put_rx(nic, nic->buffer, NIC_BUFFER_SIZE);
    }
    nic_ring_rx(nic);
}

static Qp *new_raw(Fuzz *f, unsigned side)
{
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, f->pair->pd[side], f->pair->cq[side]);
    config.service = RDMA_HCA_QP_ST_RAW;
    config.sq_entries = config.rq_entries = 16;
    qp = qp_new(f->pair->drv[side], &config);
    qp_attr_init(&attr);
    qp_bring_up(qp, &attr);
    return qp;
}

static const FuzzAction actions[] = {
    { "transmit", act_transmit },
    { "receive buffers", act_receive_buffers },
    { "doorbell", act_doorbell },
    { "scribble", act_scribble },
    { "failure", act_failure },
    { "setup", act_setup },
    { "mode", act_mode },
    { "frame", act_frame },
    { "inject", act_inject },
    { "good", act_good },
    { "send", fuzz_act_send },
    { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },
    { "time", fuzz_act_time },
    { "cable", fuzz_act_cable },
    { "raw send", act_raw_send },
    { "raw receive", act_raw_receive },
    { "rule", act_rule },
    { "raw again", act_raw_again },
    { "more rings", act_more_rings },
    { "spread", act_rss },
    { "moderate", act_moderate },
    { "long segment", act_tso },
    { "more doorbells", act_more_doorbells },
    { "set pause", act_set_pause },
    { "pause", act_pause },
    { "flood", act_flood },
    { "lie", fuzz_act_lie },
    { "reload", fuzz_act_reload },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Ethernet eth;
    HcaConfig config[2];
    Fuzz f = { .in = { data, size } };

    fuzz_config(&config[0], 0, true);
    fuzz_config(&config[1], 1, true);
    fuzz_begin_with(&f, data, size, FUZZ_GUEST_DRIVER, config);
    f.own = &eth;
    lab_tap(f.lab, frame_deliver, NULL);
    eth.area = host_alloc(&f.lab->host[0], HOST_BLOCK_SIZE / HOST_PAGE_SIZE);
    eth.nic[0] = start(&f, 0);
    eth.nic[1] = start(&f, 1);
    eth.more[0] = eth.more[1] = NULL;
    eth.raw[0] = new_raw(&f, 0);
    eth.raw[1] = new_raw(&f, 1);
    post_tight(&f, eth.nic[1]);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    nic_free(eth.nic[0]);
    nic_free(eth.nic[1]);
    for (unsigned i = 0; i < 2; i++) {
        if (eth.more[i]) {
            nic_free(eth.more[i]);
        }
    }
    return 0;
}
