/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine of the switch: peers that send anything, managers that configure
 * anything, cables that take nothing, break, go and come, and time that passes.
 */
#include "lib-bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/wire/bytes.h"
#include "core/wire/crc.h"

#define UD HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY)
#define SHORTEST (HCA_LRH_SIZE + HCA_BTH_SIZE + HCA_ICRC_SIZE + HCA_VCRC_SIZE)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Bench bench;

static unsigned take_port(Bench *b)
{
    return 1 + take_below(&b->in, BENCH_PORTS);
}

/* Zero is the common thing; an address in use, a group, or any number. */
static uint16_t take_lid(Bench *b, uint16_t common)
{
    uint8_t kind = take8(&b->in);

    if (kind < 0x80) {
        return kind % 16 ? kind % 16 : common;
    }
    return kind < 0xc0 ? HCA_LID_FIRST_MULTICAST + kind % 4 : take16(&b->in);
}

/* Packets */

static void edit(Bench *b, uint8_t *bytes, size_t len)
{
    for (unsigned n = take_below(&b->in, 8); n--;) {
        size_t at = take_below(&b->in, MIN(len, 65536));

        bytes[at] = take8(&b->in);
    }
}

static void seal(uint8_t *packet, size_t len, bool icrc)
{
    HcaPacket headers = {
        .has_grh = (packet[1] & 3) == 3 && len >= SHORTEST + HCA_GRH_SIZE,
    };
    uint16_t vcrc;

    if (icrc) {
        hca_ib_seal(&headers, packet, len - HCA_ICRC_SIZE - HCA_VCRC_SIZE);
        return;
    }
    len -= HCA_VCRC_SIZE;
    vcrc = hca_vcrc_update(HCA_VCRC_INIT, packet, len);
    packet[len] = vcrc;
    packet[len + 1] = vcrc >> 8;
}

/* As it is, if @odd is 0. */
static void send_odd(Bench *b, unsigned port, uint8_t *packet, size_t len,
                     uint8_t odd)
{
    unsigned vl;

    if (odd & 1) {
        edit(b, packet, MIN(len, 64));
    }
    if (odd & 2) {
        len = SHORTEST + take_below(&b->in, len - SHORTEST + 1);
    }
    if (odd & 4) {
        put_be16(packet + 4, (len - HCA_VCRC_SIZE) / 4);
    }
    if (odd & 8) {
        seal(packet, len, odd & 16);
    }
    vl = odd & 32 ? take8(&b->in) & 15 : packet[0] >> 4;
    bench_put_packet(b, port, vl, packet, len);
}

static void act_data(Bench *b)
{
    static const uint8_t opcodes[] = { UD, 0x00, 0x04, 0x0a, 0x64, 0xff };
    static uint8_t out[HCA_MAX_PACKET_SIZE], payload[HCA_MAX_MTU];
    unsigned port = take_port(b), n = 1;
    uint8_t kind = take8(&b->in), odd = take8(&b->in);
    HcaPacket packet = {
        .slid = take_lid(b, port),
        .dlid = take_lid(b, port % BENCH_PORTS + 1),
        .sl = take8(&b->in) & 15,
        .vl = kind >> 4,
        .has_grh = kind & 1,
        .pkey = kind & 2 ? take16(&b->in) : 0xffff,
        .opcode = opcodes[kind & 4 ? take_below(&b->in, 6) : 0],
        .dest_qp = kind & 4 ? take8(&b->in) & 1 : 5,
    };
    size_t len;

    packet.payload_len = take_below(&b->in, HCA_MAX_MTU + 1);
    if (kind & 8) {
        n += take8(&b->in);
    }
    len = bench_pack(&packet, payload, out);
    if (n > 1) {
        odd = 0;
    }
    while (n--) {
        send_odd(b, port, out, len, odd);
    }
}

static void act_noise(Bench *b)
{
    static uint8_t out[HCA_LINK_MAX_PACKET];
    unsigned port = take_port(b);
    size_t len = SHORTEST + take_below(&b->in, sizeof(out) - SHORTEST);
    uint8_t odd = take8(&b->in);

    memset(out, take8(&b->in), len);
    take_bytes(&b->in, out, MIN(len, 32));
    send_odd(b, port, out, len, odd);
}

/* MADs */

static void send_mad(Bench *b, unsigned port, HcaPacket *packet,
                     const uint8_t *mad, uint8_t odd)
{
    uint8_t out[HCA_MAX_HEADER_SIZE + HCA_MAD_SIZE + HCA_MAX_TRAILER_SIZE];
    size_t len;

    packet->opcode = UD;
    packet->pkey = odd & 64 ? take16(&b->in) : 0xffff;
    packet->payload_len = odd & 128 ? take8(&b->in) : HCA_MAD_SIZE;
    len = bench_pack(packet, mad, out);
    send_odd(b, port, out, len, odd & 63);
}

/* A way back to where it came from; or any pointer, count and ports. */
static void route(Bench *b, uint8_t *mad)
{
    uint8_t kind = take8(&b->in);

    memset(mad + HCA_SMP_DR_SLID, 0xff, 4);
    mad[HCA_SMP_HOP_POINTER] = 1;
    mad[HCA_SMP_HOP_COUNT] = 1 + (kind & 1);
    mad[HCA_SMP_INITIAL_PATH + 2] = kind >> 1 & 7;
    if (kind & 16) {
        mad[HCA_SMP_HOP_POINTER] = take8(&b->in);
        mad[HCA_SMP_HOP_COUNT] = take8(&b->in);
        edit(b, mad + HCA_SMP_INITIAL_PATH, 64);
        edit(b, mad + HCA_SMP_RETURN_PATH, 64);
    }
    if (kind & 32) {
        put_be16(mad + HCA_SMP_DR_SLID, take_lid(b, BENCH_SWITCH_LID));
    }
    if (kind & 64) {
        put_be16(mad + HCA_SMP_DR_DLID, take_lid(b, BENCH_SWITCH_LID));
    }
    if (kind & 128) {
        mad[HCA_MAD_STATUS] = 0x80;
    }
}

static const uint16_t attributes[] = {
    HCA_ATTR_PORT_INFO,  HCA_ATTR_SWITCH_INFO,   HCA_ATTR_LINEAR_FDB,
    HCA_ATTR_MCAST_FDB,  HCA_ATTR_SL_TO_VL,      HCA_ATTR_VL_ARB,
    HCA_ATTR_PKEY_TABLE, HCA_ATTR_GUID_INFO,     HCA_ATTR_NODE_INFO,
    HCA_ATTR_NODE_DESC,  HCA_ATTR_NOTICE,        HCA_ATTR_SM_INFO,
    HCA_ATTR_LED_INFO,   HCA_ATTR_PORT_COUNTERS,
};

/* What a Set changes of, as it is. */
static void read_attribute(Bench *b, unsigned port, uint8_t *mad)
{
    uint8_t get[HCA_MAD_SIZE], reply[HCA_MAD_SIZE];

    memcpy(get, mad, sizeof(get));
    get[HCA_MAD_METHOD] = HCA_METHOD_GET;
    if (hca_node_answer(b->node, port, true, get, reply) == HCA_MAD_REPLY) {
        memcpy(mad + HCA_MAD_DATA, reply + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
    }
    if (hca_mad_attribute(mad) == HCA_ATTR_PORT_INFO) {
        /* No change of states, and not what nobody without it may know. */
        mad[HCA_MAD_DATA + 32] &= 0xf0;
        mad[HCA_MAD_DATA + 33] &= 0x0f;
        memset(mad + HCA_MAD_DATA, 0, b->protected ? 8 : 0);
    }
}

static void begin_mad(Bench *b, uint8_t *mad, uint8_t class, uint8_t kind)
{
    static const uint8_t methods[] = {
        HCA_METHOD_GET,  HCA_METHOD_SET,          HCA_METHOD_SET,
        HCA_METHOD_TRAP, HCA_METHOD_TRAP_REPRESS, HCA_METHOD_GET_RESP,
        HCA_METHOD_SEND,
    };
    unsigned which = kind & 7;

    mad[HCA_MAD_BASE_VERSION] = HCA_MAD_VERSION;
    mad[HCA_MAD_CLASS] = class;
    mad[HCA_MAD_CLASS_VERSION] = 1;
    mad[HCA_MAD_METHOD] = which < 7 ? methods[which] : take8(&b->in);
}

static void act_smp(Bench *b)
{
    unsigned port = take_port(b);
    uint8_t kind = take8(&b->in), odd = take8(&b->in), which = take8(&b->in);
    bool directed = !(kind & 8);
    uint16_t lid = directed ? HCA_LID_PERMISSIVE : BENCH_SWITCH_LID;
    uint8_t mad[HCA_MAD_SIZE] = { 0 };
    HcaPacket packet = { .vl = HCA_VL_MGMT };
    uint64_t key = b->protected ? 0 : b->node->port[0].info.m_key;

    begin_mad(b, mad, directed ? HCA_CLASS_SUBN_DIRECTED : HCA_CLASS_SUBN_LID,
              kind);
    put_be16(mad + HCA_MAD_ATTRIBUTE, which < G_N_ELEMENTS(attributes)
                                          ? attributes[which]
                                          : take16(&b->in));
    put_be32(mad + HCA_MAD_MODIFIER,
             kind & 16 ? take_odd(&b->in) : take8(&b->in));
    put_be64(mad + HCA_SMP_MKEY, kind & 32 ? take_odd(&b->in) : key);
    read_attribute(b, port, mad);
    edit(b, mad + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
    if (directed) {
        route(b, mad);
    }
    packet.slid = kind & 64 ? take_lid(b, port) : directed ? lid : port;
    packet.dlid = kind & 64 ? take_lid(b, lid) : lid;
    packet.dest_qp = kind & 128 ? take8(&b->in) & 3 : 0;
    send_mad(b, port, &packet, mad, odd);
}

static void act_gmp(Bench *b)
{
    static const uint16_t numbers[] = {
        HCA_ATTR_PORT_COUNTERS,
        HCA_ATTR_PORT_COUNTERS_EXT,
        HCA_ATTR_CLASS_PORT_INFO,
    };
    unsigned port = take_port(b);
    uint8_t kind = take8(&b->in), odd = take8(&b->in);
    unsigned which = take8(&b->in);
    uint8_t mad[HCA_MAD_SIZE] = { 0 };
    HcaPacket packet = {
        .slid = take_lid(b, port),
        .dlid = take_lid(b, BENCH_SWITCH_LID),
        .has_grh = kind & 8,
        .dest_qp = 1,
        .src_qp = 1,
        .qkey = kind & 16 ? take32(&b->in) : HCA_QKEY_GSI,
        .sl = kind & 32 ? take8(&b->in) & 15 : 0,
    };

    begin_mad(b, mad, kind & 64 ? take8(&b->in) : HCA_CLASS_PERF, kind);
    put_be16(mad + HCA_MAD_ATTRIBUTE,
             which < 3 ? numbers[which] : take16(&b->in));
    mad[HCA_MAD_DATA + 1] = take8(&b->in);
    put_be16(mad + HCA_MAD_DATA + 2, take16(&b->in));
    edit(b, mad, HCA_MAD_SIZE);
    send_mad(b, port, &packet, mad, odd);
}

/* The stream */

static void act_bytes(Bench *b)
{
    unsigned port = take_port(b);
    uint8_t bytes[64];
    size_t len = 1 + take_below(&b->in, sizeof(bytes));

    take_bytes(&b->in, bytes, len);
    bench_put(b, port, bytes, len);
}

static void act_state(Bench *b)
{
    unsigned port = take_port(b);
    uint8_t frame[HCA_STATE_FRAME_SIZE];
    uint8_t kind = take8(&b->in);

    hca_frame_write_state(frame, kind & 1);
    if (kind & 2) {
        edit(b, frame, sizeof(frame));
    }
    bench_put(b, port, frame, sizeof(frame));
}

static void act_cable(Bench *b)
{
    unsigned port = take_port(b);

    if (b->cable[port].plugged) {
        bench_unplug(b, port);
    } else {
        bench_plug(b, port);
    }
    if (take_bool(&b->in)) { /* without the greeting */
        b->cable[port].len = b->cable[port].at;
    }
}

static void act_room(Bench *b)
{
    Cable *cable = &b->cable[take_port(b)];
    uint8_t kind = take8(&b->in);

    cable->room = kind < 0x60 ? 0 : kind < 0xc0 ? SIZE_MAX : take16(&b->in);
}

static void act_pieces(Bench *b)
{
    static const int errors[] = { 0, -EINTR, -EAGAIN, -EPIPE };
    Cable *cable = &b->cable[take_port(b)];

    cable->piece = 1 + take8(&b->in);
    cable->pieces = take8(&b->in);
    cable->error = errors[take_below(&b->in, G_N_ELEMENTS(errors))];
}

/* Time */

static void act_turns(Bench *b)
{
    for (unsigned n = 1 + take_below(&b->in, 16); n--;) {
        bench_turn(b);
    }
}

static void act_rest(Bench *b)
{
    bench_rest(b);
}

static void act_time(Bench *b)
{
    uint8_t kind = take8(&b->in);

    switch (kind >> 6) {
    case 0:
        bench_sleep(b, kind * 1000);
        break;
    case 1:
        bench_sleep(b, (kind & 63) * NS_PER_MS);
        break;
    case 2:
        bench_sleep(b, (kind & 63) * NS_PER_S);
        break;
    default: /* no turn at all */
        b->now += (1 + (int64_t)take16(&b->in)) << (kind & 31);
    }
}

/* The user of the switch */

static void act_faults(Bench *b)
{
    unsigned port = take_port(b);
    HcaFaultPlan plan = { .seed = 1, .nrules = take_below(&b->in, 3) };

    for (unsigned i = 0; i < plan.nrules; i++) {
        HcaFaultRule *rule = &plan.rule[i];

        rule->action = take_below(&b->in, HCA_FAULT_MARK);
        rule->directions = 1 + take_below(&b->in, 3);
        rule->probability = HCA_FAULT_ALWAYS;
        rule->every = take8(&b->in);
        rule->count = take8(&b->in);
        rule->distance = take8(&b->in);
        rule->delay_ns = 1 + take16(&b->in) * 1000;
        rule->offset = -1;
        b->spoiled |= rule->action == HCA_FAULT_CORRUPT;
    }
    if (!hca_fault_check(&plan)) {
        hca_link_set_faults(hca_switch_link(b->sw, port), &plan);
    }
}

static void act_capture(Bench *b)
{
    HcaLink *link = hca_switch_link(b->sw, take_port(b));

    if (take_bool(&b->in)) {
        hca_link_stop_capture(link);
    } else {
        hca_link_start_capture(link);
    }
}

/* Protect bits: without the key it may be read, but for itself, or not. */
static void act_protect(Bench *b)
{
    bench_protect(b, 1 + take_below(&b->in, 3));
}

static void act_manage(Bench *b)
{
    bench_manage(b);
}

static const struct {
    const char *name;
    void (*act)(Bench *b);
} actions[] = {
    { "data", act_data },       { "smp", act_smp },
    { "gmp", act_gmp },         { "turns", act_turns },
    { "rest", act_rest },       { "time", act_time },
    { "room", act_room },       { "cable", act_cable },
    { "protect", act_protect }, { "noise", act_noise },
    { "bytes", act_bytes },     { "state", act_state },
    { "pieces", act_pieces },   { "faults", act_faults },
    { "capture", act_capture }, { "manage", act_manage },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bench *b = &bench;

    bench_begin(b, data, size);
    while (b->in.left) {
        unsigned which = take_below(&b->in, G_N_ELEMENTS(actions));

        if (bench_traces()) {
            fprintf(stderr, "%s\n", actions[which].name);
        }
        actions[which].act(b);
    }
    bench_end(b);
    return 0;
}
