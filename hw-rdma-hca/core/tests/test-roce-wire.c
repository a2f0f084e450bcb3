/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire/roce.c: frames built and taken apart, against frames of scapy, ICRCs
 * computed bit by bit from their definition, and hostile input.
 *
 * One frame of every kind goes to a capture file, for scripts/check-capture:
 * $HCA_CAPTURE, or rdma-hca-roce.pcap in the build folder of the tests.
 */
#include <glib.h>
#include <string.h>

#include "lib-pcap.h"
#include "wire/bytes.h"
#include "wire/headers.h"
#include "wire/wire.h"
#include "lib-test.h"

#define ETH 14
#define VLAN 4
#define ICRC HCA_ICRC_SIZE
#define MAX_FRAME                                                              \
    (HCA_MAX_ROCE_HEADER_SIZE + HCA_MAX_MTU + HCA_MAX_TRAILER_SIZE)
#define FUZZ_FRAMES 100000

static const uint8_t opcodes[] = {
    0x00,        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
    0x09,        0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
    0x12,        0x13, 0x14, 0x16, 0x17, 0x1c, 0x1d, /* RC */
    0x20,        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
    0x29,        0x2a, 0x2b, /* UC */
    0x64,        0x65,       /* UD */
    HCA_BTH_CNP,
};

/* The four shapes that a frame has in front of UDP. */
typedef struct Shape {
    bool is_ipv4;
    bool has_vlan;
} Shape;

static const Shape shapes[] = {
    { true, false },
    { true, true },
    { false, false },
    { false, true },
};

static size_t ip_at(const uint8_t *frame)
{
    return ETH + (get_be16(frame + 12) == 0x8100 ? VLAN : 0);
}

static bool is_ipv4(const uint8_t *frame)
{
    return get_be16(frame + ip_at(frame) - 2) == 0x0800;
}

static size_t udp_at(const uint8_t *frame)
{
    return ip_at(frame) + (is_ipv4(frame) ? 20 : 40);
}

static size_t bth_at(const uint8_t *frame)
{
    return udp_at(frame) + 8;
}

/* Sums and CRCs from their definitions */

static uint16_t model_sum(const uint8_t *p, size_t len, uint32_t sum)
{
    for (size_t i = 0; i < len; i++) {
        sum += i % 2 ? p[i] : p[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

/* What UDP's checksum has to be; @len: of UDP. */
static uint16_t model_udp_checksum(const uint8_t *frame, size_t len)
{
    const uint8_t *ip = frame + ip_at(frame);
    size_t udp = udp_at(frame);
    g_autofree uint8_t *copy = g_memdup2(frame + udp, len);
    uint32_t sum = is_ipv4(frame) ? model_sum(ip + 12, 8, 17 + len)
                                  : model_sum(ip + 8, 32, 17 + len);

    put_be16(copy + 6, 0);
    sum = (uint16_t)~model_sum(copy, len, sum);
    return sum ? sum : 0xffff;
}

/* Of the frame up to the pad, @len bytes; highest term in the first bit. */
static void model_icrc(const uint8_t *frame, size_t len, uint8_t *out)
{
    size_t ip = ip_at(frame), bth = bth_at(frame);
    g_autofree uint8_t *masked = g_memdup2(frame, len);
    uint32_t reg = 0xffffffff;

    if (is_ipv4(frame)) {
        masked[ip + 1] = masked[ip + 8] = 0xff;
        masked[ip + 10] = masked[ip + 11] = 0xff;
    } else {
        masked[ip] |= 0x0f;
        masked[ip + 1] = masked[ip + 2] = masked[ip + 3] = 0xff;
        masked[ip + 7] = 0xff;
    }
    masked[bth - 2] = masked[bth - 1] = 0xff;
    masked[bth + 4] = 0xff;
    /* The eight bytes in front of IP stand for LRH. */
    memset(masked + ip - 8, 0xff, 8);
    for (size_t i = ip - 8; i < len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bool one = (reg ^ masked[i] >> bit) & 1;

            reg = reg >> 1 ^ (one ? 0xedb88320 : 0);
        }
    }
    for (unsigned i = 0; i < ICRC; i++) {
        out[i] = ~reg >> 8 * i;
    }
}

/* Repairs of a frame that a test has changed */

static void set_ip_checksum(uint8_t *frame)
{
    uint8_t *ip = frame + ip_at(frame);

    if (is_ipv4(frame)) {
        put_be16(ip + 10, 0);
        put_be16(ip + 10, ~model_sum(ip, 20, 0));
    }
}

/* @len: IP to ICRC. */
static void set_ip_len(uint8_t *frame, size_t len)
{
    uint8_t *ip = frame + ip_at(frame);

    if (is_ipv4(frame)) {
        put_be16(ip + 2, len);
    } else {
        put_be16(ip + 4, len - 40);
    }
    set_ip_checksum(frame);
}

static void set_icrc(uint8_t *frame, size_t len)
{
    model_icrc(frame, len - ICRC, frame + len - ICRC);
}

/* Lengths and CRCs of a frame of @len bytes, as far as there is room. */
static void set_all(uint8_t *frame, size_t len)
{
    size_t ip = ip_at(frame), udp = udp_at(frame);

    if (len < udp) {
        return;
    }
    set_ip_len(frame, len - ip);
    if (len >= udp + 6) {
        put_be16(frame + udp + 4, len - udp);
    }
    if (len >= bth_at(frame) + HCA_BTH_SIZE + ICRC) {
        set_icrc(frame, len);
    }
}

/* Frames */

/* Parse from a copy of just that size, so that a sanitizer sees overruns. */
static HcaParseError parse_copy(HcaPacket *packet, const uint8_t *frame,
                                size_t len)
{
    g_autofree uint8_t *copy = g_memdup2(frame, len);
    HcaParseError error = hca_roce_parse(packet, copy, len);
    const uint8_t *bth = hca_roce_bth(copy, len);

    if (bth) {
        g_assert_true(bth >= copy && bth + HCA_BTH_SIZE <= copy + len);
    }
    if (error == HCA_PARSE_OK) {
        g_assert_cmpuint(packet->payload_len, <=, HCA_MAX_MTU);
        g_assert_true(packet->payload >= copy);
        g_assert_cmpuint(packet->payload - copy + packet->payload_len +
                             packet->pad + ICRC,
                         <=, len);
        g_assert_true(packet->ip_header == copy + ip_at(copy));
        g_assert_true(bth == copy + bth_at(copy));
    }
    return error;
}

static HcaParseError parse(const uint8_t *frame, size_t len)
{
    HcaPacket packet;

    return parse_copy(&packet, frame, len);
}

static void random_gid(GRand *rand, HcaGid *gid, bool ipv4)
{
    random_fill(rand, gid, sizeof(*gid));
    if (ipv4) {
        memset(gid->raw, 0, 10);
        memset(gid->raw + 10, 0xff, 2);
    }
}

static void random_network(GRand *rand, HcaPacket *packet, const Shape *shape)
{
    packet->is_ipv4 = shape->is_ipv4;
    packet->has_vlan = shape->has_vlan;
    if (shape->has_vlan) {
        packet->vlan_tci = g_rand_int(rand);
    }
    if (!shape->is_ipv4) {
        packet->flow_label = g_rand_int(rand) & 0xfffff;
    }
    packet->has_grh = true;
    packet->udp_sport = g_rand_int(rand);
    packet->tclass = g_rand_int(rand);
    packet->hop_limit = g_rand_int(rand);
    random_fill(rand, packet->dmac, sizeof(packet->dmac));
    random_fill(rand, packet->smac, sizeof(packet->smac));
    random_gid(rand, &packet->sgid, shape->is_ipv4);
    random_gid(rand, &packet->dgid, shape->is_ipv4);
}

static void random_transport(GRand *rand, HcaPacket *packet)
{
    packet->solicited = g_rand_boolean(rand);
    packet->fecn = g_rand_boolean(rand);
    packet->becn = g_rand_boolean(rand);
    packet->mig_req = g_rand_boolean(rand);
    packet->ack_req = g_rand_boolean(rand);
    packet->pkey = g_rand_int(rand);
    packet->dest_qp = g_rand_int(rand) & 0xffffff;
    packet->psn = g_rand_int(rand) & 0xffffff;
    packet->qkey = g_rand_int(rand);
    packet->src_qp = g_rand_int(rand) & 0xffffff;
    packet->va = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
    packet->rkey = g_rand_int(rand);
    packet->dma_len = g_rand_int(rand);
    packet->swap_add = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
    packet->compare = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
    packet->syndrome = g_rand_int(rand);
    packet->msn = g_rand_int(rand) & 0xffffff;
    packet->atomic_ack = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
    packet->imm_be = g_rand_int(rand);
    packet->inv_rkey = g_rand_int(rand);
    packet->feth = g_rand_int(rand);
}

/* What no host sends, and other decoders complain about. */
static void make_plausible(HcaPacket *packet, uint8_t *payload)
{
    packet->smac[0] &= ~1; /* no group address */
    packet->hop_limit |= 64;
    memset(payload, 0xff, 2); /* no Ethernet type (IP over IB) */
}

/* A whole frame; returns its length. */
static size_t build(HcaPacket *packet, const uint8_t *payload, uint8_t *frame)
{
    size_t header_len = hca_encap_roce.build(packet, frame);
    size_t at;

    g_assert_cmpuint(header_len, <=, HCA_MAX_ROCE_HEADER_SIZE);
    if (packet->payload_len) {
        memcpy(frame + header_len, payload, packet->payload_len);
    }
    at = hca_encap_roce.seal(packet, frame, header_len + packet->payload_len);
    g_assert_cmpuint(at, <=, MAX_FRAME);
    g_assert_cmpuint(at, >=, 60);
    return at;
}

static size_t build_random(GRand *rand, HcaPacket *packet, uint8_t opcode,
                           const Shape *shape, size_t payload_len,
                           uint8_t *frame)
{
    uint8_t payload[HCA_MAX_MTU];

    random_fill(rand, payload, payload_len);
    *packet = (HcaPacket) { .opcode = opcode, .payload_len = payload_len };
    random_network(rand, packet, shape);
    random_transport(rand, packet);
    make_plausible(packet, payload);
    return build(packet, payload, frame);
}

static bool has_payload(uint8_t opcode)
{
    HcaOpcodeFormat format = { 0 };

    return opcode != HCA_BTH_CNP && hca_opcode_format(opcode, &format) &&
           format.has_payload;
}

static size_t extended_size(uint8_t opcode)
{
    return opcode == HCA_BTH_CNP ? 16 : hca_header_size(opcode) - HCA_BTH_SIZE;
}

/* Frames that scapy has built (contrib.roce; IPv6: its ICRC by zlib) */

typedef struct Sample {
    HcaPacket packet;
    const char *payload;
    size_t len;
    uint8_t frame[96];
} Sample;

#define SAMPLE_MACS                                                            \
    .has_grh = true, .dmac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },           \
    .smac = { 0x52, 0x54, 0x00, 0xab, 0xcd, 0xef }
#define IPV4_GID(a, b, c, d)                                                   \
    {                                                                          \
        {                                                                      \
            [10] = 0xff, 0xff, a, b, c, d                                      \
        }                                                                      \
    }

static const Sample samples[] = {
    {
        /* IP(tos=2,ttl=64,flags='DF')/UDP(sport=0xc123)/BTH(opcode=10,...) */
        .packet = {
            SAMPLE_MACS, .is_ipv4 = true, .tclass = 2, .hop_limit = 64,
            .sgid = IPV4_GID(10, 0, 0, 1), .dgid = IPV4_GID(10, 0, 0, 2),
            .udp_sport = 0xc123, .opcode = HCA_WRITE_ONLY, .solicited = true,
            .pkey = 0xffff, .dest_qp = 0x87b1b3, .ack_req = true,
            .psn = 0x0dec2a, .va = 0x01710a1c015d4002, .rkey = 0x38f27a05,
            .dma_len = 5, .payload_len = 5,
        },
        .payload = "hello",
        .len = 82,
        .frame = {
            0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x52, 0x54, 0x00, 0xab, 0xcd,
            0xef, 0x08, 0x00, 0x45, 0x02, 0x00, 0x44, 0x00, 0x00, 0x40, 0x00,
            0x40, 0x11, 0x26, 0xa5, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00,
            0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x30, 0x00, 0x00, 0x0a, 0xb0,
            0xff, 0xff, 0x00, 0x87, 0xb1, 0xb3, 0x80, 0x0d, 0xec, 0x2a, 0x01,
            0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05,
            0x00, 0x00, 0x00, 0x05, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00,
            0x00, 0x8e, 0x92, 0x83, 0x53,
        },
    },
    {
        /* Dot1Q(prio=5,vlan=100)/IP(tos=0xba,ttl=255)/.../AETH(...) */
        .packet = {
            SAMPLE_MACS, .is_ipv4 = true, .has_vlan = true,
            .vlan_tci = 5 << 13 | 100, .tclass = 0xba, .hop_limit = 255,
            .sgid = IPV4_GID(192, 168, 7, 9),
            .dgid = IPV4_GID(172, 16, 255, 1), .udp_sport = 0xffff,
            .opcode = HCA_ACK, .mig_req = true, .pkey = 0x8001,
            .dest_qp = 0x11, .psn = 0xffffff, .syndrome = 0x1f,
            .msn = 0x123456,
        },
        .len = 66,
        .frame = {
            0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x52, 0x54, 0x00, 0xab, 0xcd,
            0xef, 0x81, 0x00, 0xa0, 0x64, 0x08, 0x00, 0x45, 0xba, 0x00, 0x30,
            0x00, 0x00, 0x40, 0x00, 0xff, 0x11, 0x08, 0x3f, 0xc0, 0xa8, 0x07,
            0x09, 0xac, 0x10, 0xff, 0x01, 0xff, 0xff, 0x12, 0xb7, 0x00, 0x1c,
            0x00, 0x00, 0x11, 0x40, 0x80, 0x01, 0x00, 0x00, 0x00, 0x11, 0x00,
            0xff, 0xff, 0xff, 0x1f, 0x12, 0x34, 0x56, 0x73, 0x2d, 0x42, 0xdf,
        },
    },
    {
        /* IP(tos=0xc0,ttl=64)/UDP(sport=0xc123)/cnp(0xabcdef) */
        .packet = {
            SAMPLE_MACS, .is_ipv4 = true, .tclass = 0xc0, .hop_limit = 64,
            .sgid = IPV4_GID(10, 0, 0, 1), .dgid = IPV4_GID(10, 0, 0, 2),
            .udp_sport = 0xc123, .opcode = HCA_BTH_CNP, .becn = true,
            .pkey = 0xffff, .dest_qp = 0xabcdef,
        },
        .len = 74,
        .frame = {
            0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x52, 0x54, 0x00, 0xab, 0xcd,
            0xef, 0x08, 0x00, 0x45, 0xc0, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00,
            0x40, 0x11, 0x25, 0xef, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00,
            0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00,
            0xff, 0xff, 0x40, 0xab, 0xcd, 0xef, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x7e, 0x93, 0x65, 0x66,
        },
    },
    {
        /* IPv6(tc=2,fl=0x12345,hlim=3)/UDP(sport=0xc456)/BTH(opcode=0x65) */
        .packet = {
            SAMPLE_MACS, .tclass = 2, .flow_label = 0x12345, .hop_limit = 3,
            .sgid = { { 0xfe, 0x80, [15] = 1 } },
            .dgid = { { 0x20, 0x01, 0x0d, 0xb8, [8] = 0x50, 0x54, 0x00, 0xff,
                        0xfe, 0x12, 0x34, 0x56 } },
            .udp_sport = 0xc456, .opcode = HCA_BTH_UD << 5 | HCA_SEND_ONLY_IMM,
            .pkey = 0xffff, .dest_qp = 1, .psn = 7, .qkey = 0x80010000,
            .src_qp = 0x42, .imm_be = 0xdeadadde,
            .payload_len = 2,
        },
        .payload = "ab",
        .len = 94,
        .frame = {
            0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x52, 0x54, 0x00, 0xab, 0xcd,
            0xef, 0x86, 0xdd, 0x60, 0x21, 0x23, 0x45, 0x00, 0x28, 0x11, 0x03,
            0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00,
            0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56, 0xc4,
            0x56, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x65, 0x20, 0xff, 0xff,
            0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x07, 0x80, 0x01, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x42, 0xde, 0xad, 0xad, 0xde, 0x61, 0x62,
            0x00, 0x00, 0xdb, 0x66, 0x14, 0xc0,
        },
    },
};

/* Equality of all that @opcode carries. */
static void assert_same(const HcaPacket *a, const HcaPacket *b, uint8_t opcode)
{
    HcaOpcodeFormat format = { 0 };

    g_assert_cmpuint(a->is_ipv4, ==, b->is_ipv4);
    g_assert_cmpuint(a->has_vlan, ==, b->has_vlan);
    g_assert_cmphex(a->vlan_tci, ==, b->vlan_tci);
    g_assert_cmpuint(a->has_grh, ==, b->has_grh);
    g_assert_cmphex(a->tclass, ==, b->tclass);
    g_assert_cmphex(a->flow_label, ==, b->flow_label);
    g_assert_cmpuint(a->hop_limit, ==, b->hop_limit);
    g_assert_cmphex(a->udp_sport, ==, b->udp_sport);
    g_assert_cmpmem(a->dmac, 6, b->dmac, 6);
    g_assert_cmpmem(a->smac, 6, b->smac, 6);
    g_assert_cmpmem(&a->sgid, 16, &b->sgid, 16);
    g_assert_cmpmem(&a->dgid, 16, &b->dgid, 16);
    g_assert_cmphex(a->opcode, ==, b->opcode);
    g_assert_cmpuint(a->solicited, ==, b->solicited);
    g_assert_cmpuint(a->fecn, ==, b->fecn);
    g_assert_cmpuint(a->becn, ==, b->becn);
    g_assert_cmpuint(a->mig_req, ==, b->mig_req);
    g_assert_cmpuint(a->ack_req, ==, b->ack_req);
    g_assert_cmpuint(a->pad, ==, b->pad);
    g_assert_cmphex(a->pkey, ==, b->pkey);
    g_assert_cmphex(a->dest_qp, ==, b->dest_qp);
    g_assert_cmphex(a->psn, ==, b->psn);
    g_assert_cmpuint(a->payload_len, ==, b->payload_len);
    if (opcode == HCA_BTH_CNP) {
        return;
    }
    g_assert_true(hca_opcode_format(opcode, &format));
    if (format.headers & 1 << HCA_DETH) {
        g_assert_cmphex(a->qkey, ==, b->qkey);
        g_assert_cmphex(a->src_qp, ==, b->src_qp);
    }
    if (format.headers & (1 << HCA_RETH | 1 << HCA_ATOMIC_ETH)) {
        g_assert_cmphex(a->va, ==, b->va);
        g_assert_cmphex(a->rkey, ==, b->rkey);
    }
    if (format.headers & 1 << HCA_AETH_HEADER) {
        g_assert_cmphex(a->syndrome, ==, b->syndrome);
        g_assert_cmphex(a->msn, ==, b->msn);
    }
    if (format.headers & 1 << HCA_IMMDT) {
        g_assert_cmphex(a->imm_be, ==, b->imm_be);
    }
}

static void test_samples(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *sample = &samples[i];
        const uint8_t *payload = (const uint8_t *)sample->payload;
        HcaPacket packet = sample->packet, got;
        uint8_t frame[MAX_FRAME];

        g_assert_cmpmem(frame, build(&packet, payload, frame), sample->frame,
                        sample->len);
        g_assert_cmpint(parse_copy(&got, sample->frame, sample->len), ==,
                        HCA_PARSE_OK);
        assert_same(&got, &packet, packet.opcode);
        g_assert_cmpuint(got.dma_len, ==, packet.dma_len);
    }
}

/* Round trips */

static void check_round_trip(GRand *rand, uint8_t opcode, const Shape *shape,
                             size_t payload_len)
{
    uint8_t frame[MAX_FRAME], icrc[ICRC];
    HcaPacket sent, got;
    size_t size = build_random(rand, &sent, opcode, shape, payload_len, frame);
    size_t at = bth_at(frame) + HCA_BTH_SIZE + extended_size(opcode);
    size_t len = at + (payload_len + 3) / 4 * 4 + ICRC;

    g_assert_cmpuint(size, ==, MAX(len, 60));
    for (size_t i = len; i < size; i++) {
        g_assert_cmphex(frame[i], ==, 0);
    }
    model_icrc(frame, len - ICRC, icrc);
    g_assert_cmpmem(frame + len - ICRC, ICRC, icrc, ICRC);
    g_assert_cmpint(hca_encap_roce.parse(&got, frame, size), ==, HCA_PARSE_OK);
    g_assert_true(got.payload == frame + at);
    g_assert_true(got.ip_header == frame + ip_at(frame));
    g_assert_true(hca_encap_roce.bth(frame, size) == frame + bth_at(frame));
    assert_same(&got, &sent, opcode);
}

static void test_round_trip(void)
{
    static const size_t lens[] = { 0,   1,   2,    3,    4,    5,
                                   255, 256, 1023, 2048, 4095, 4096 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
            unsigned n = has_payload(opcodes[i]) ? G_N_ELEMENTS(lens) : 1;

            while (n--) {
                check_round_trip(rand, opcodes[i], &shapes[s], lens[n]);
            }
        }
    }
}

/* Frames that are not RoCEv2 */

static void test_not_roce(void)
{
    static const struct {
        size_t at;
        uint8_t mask;
    } ipv4[] = {
        { 12, 0x80 },       { 13, 0x06 }, /* Ethernet type: others, ARP */
        { ETH + 6, 0x01 },  { ETH + 6, 0x10 },
        { ETH + 7, 0x01 }, /* offset */
        { ETH + 7, 0x80 },  { ETH + 9, 0x17 },
        { ETH + 9, 0x10 },                      /* TCP, ICMP */
        { ETH + 22, 0x10 }, { ETH + 23, 0x01 }, /* port */
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    uint8_t frame[MAX_FRAME];
    HcaPacket packet;
    size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[0], 64,
                              frame);

    for (unsigned i = 0; i < G_N_ELEMENTS(ipv4); i++) {
        frame[ipv4[i].at] ^= ipv4[i].mask;
        g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_NOT_ROCE);
        g_assert_null(hca_roce_bth(frame, len));
        frame[ipv4[i].at] ^= ipv4[i].mask;
    }
    g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_OK);

    /* A second VLAN tag; IPv6: other protocols, an extension header. */
    len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[1], 64, frame);
    put_be16(frame + 16, 0x8100);
    g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_NOT_ROCE);
    len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[2], 64, frame);
    for (unsigned next = 0; next < 256; next++) {
        frame[ETH + 6] = next;
        if (next != 17 && next != 44) {
            g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_NOT_ROCE);
        }
    }
}

/* Truncation */

/* What a frame is of which only @n bytes arrived; @len: Ethernet to ICRC. */
static HcaParseError expected_cut(const uint8_t *frame, size_t n, size_t len)
{
    if (n < ip_at(frame) && (n < ETH || ip_at(frame) > ETH)) {
        return HCA_PARSE_SHORT;
    }
    if (n < udp_at(frame) + 4) { /* the port cannot be seen */
        return HCA_PARSE_NOT_ROCE;
    }
    return n < len ? HCA_PARSE_LENGTH : HCA_PARSE_OK;
}

/* The same when IP and UDP tell the length that is there. */
static HcaParseError expected_consistent(const uint8_t *frame, size_t n,
                                         size_t headers, size_t len)
{
    HcaParseError error = expected_cut(frame, n, len);

    if (error != HCA_PARSE_LENGTH) {
        return error;
    }
    if (n < bth_at(frame) + HCA_BTH_SIZE + ICRC) {
        return HCA_PARSE_SHORT;
    }
    if ((n - bth_at(frame)) % 4) {
        return HCA_PARSE_LENGTH;
    }
    return n < headers + ICRC ? HCA_PARSE_SHORT : HCA_PARSE_OK;
}

static void check_truncated(const uint8_t *frame, size_t size, uint8_t opcode)
{
    size_t headers = bth_at(frame) + HCA_BTH_SIZE + extended_size(opcode);
    size_t len = headers + (has_payload(opcode) ? 24 : 0) + ICRC;

    for (size_t n = 0; n <= size; n++) {
        g_autofree uint8_t *cut = g_memdup2(frame, size);
        HcaParseError error;

        g_assert_cmpint(parse(frame, n), ==, expected_cut(frame, n, len));
        set_all(cut, MIN(n, len));
        error = parse(cut, n);
        /* Cut in its payload a packet is a shorter one, if its pad is right. */
        g_assert_cmpint(error, ==,
                        n == headers + ICRC && has_payload(opcode)
                            ? HCA_PARSE_LENGTH
                            : expected_consistent(frame, n, headers, len));
    }
}

static void test_truncated(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
            uint8_t frame[MAX_FRAME];
            HcaPacket packet;
            size_t len = build_random(rand, &packet, opcodes[i], &shapes[s],
                                      has_payload(opcodes[i]) ? 21 : 0, frame);

            check_truncated(frame, len, opcodes[i]);
        }
    }
}

/* BTH is found wherever the frame ends behind it. */
static void test_bth(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);

    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        uint8_t frame[MAX_FRAME];
        HcaPacket packet;
        size_t len = build_random(rand, &packet, HCA_ACK, &shapes[s], 0, frame);
        size_t at = bth_at(frame);

        for (size_t n = 0; n <= len; n++) {
            g_autofree uint8_t *cut = g_memdup2(frame, n);
            const uint8_t *bth = hca_roce_bth(cut, n);

            g_assert_true(bth == (n < at + HCA_BTH_SIZE ? NULL : cut + at));
        }
        memset(frame + len - ICRC, 0, ICRC); /* whatever else is wrong */
        g_assert_true(hca_roce_bth(frame, len) == frame + at);
    }
}

/* Wrong fields */

/* One change to a good packet, and what it must be taken for. */
typedef struct Damage {
    size_t at;    /* from IP on */
    uint8_t mask; /* bits to flip */
    HcaParseError error;
    bool keep_checksum; /* of IPv4: as the packet had it */
} Damage;

static void check_damage(const uint8_t *frame, size_t len, const Damage *damage)
{
    g_autofree uint8_t *copy = g_memdup2(frame, len);

    copy[ip_at(frame) + damage->at] ^= damage->mask;
    if (!damage->keep_checksum) {
        set_ip_checksum(copy);
    }
    set_icrc(copy, len);
    g_assert_cmpint(parse(copy, len), ==, damage->error);
}

/*
 * Of two frames, without and with VLAN, whose IP header has @length at
 * @length_at.
 */
static void check_damages(guint32 seed, const Shape *two, size_t length_at,
                          unsigned length, const Damage *damages, unsigned n)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);

    for (unsigned s = 0; s < 2; s++) {
        uint8_t frame[MAX_FRAME];
        HcaPacket packet;
        size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &two[s], 128,
                                  frame);

        g_assert_cmphex(get_be16(frame + ip_at(frame) + length_at), ==, length);
        for (unsigned i = 0; i < n; i++) {
            check_damage(frame, len, &damages[i]);
        }
    }
}

static void test_damaged_ipv4(void)
{
    static const Damage damages[] = {
        { 0, 0x10, HCA_PARSE_VERSION, false },
        { 0, 0x20, HCA_PARSE_VERSION, false },
        { 0, 0x80, HCA_PARSE_VERSION, false },
        { 0, 0x01, HCA_PARSE_IP_HEADER, false }, /* header of 4 words */
        { 0, 0x05, HCA_PARSE_IP_HEADER, false }, /* none */
        { 2, 0x80, HCA_PARSE_LENGTH, false },    /* more than arrived */
        { 3, 0x01, HCA_PARSE_LENGTH, false },
        { 3, 0x80, HCA_PARSE_UDP, false },      /* less than UDP says */
        { 6, 0x20, HCA_PARSE_FRAGMENT, false }, /* more fragments */
        { 6, 0x60, HCA_PARSE_FRAGMENT, false },
        { 6, 0x40, HCA_PARSE_OK, false }, /* may fragment: did not */
        { 4, 0x01, HCA_PARSE_OK, false }, /* identification */
        { 1, 0x03, HCA_PARSE_OK, false }, /* TOS, TTL */
        { 8, 0xff, HCA_PARSE_OK, false },
        { 4, 0x01, HCA_PARSE_IP_HEADER, true }, /* checksum */
        { 8, 0x01, HCA_PARSE_IP_HEADER, true },
        { 10, 0x01, HCA_PARSE_IP_HEADER, true },
        { 11, 0x80, HCA_PARSE_IP_HEADER, true },
        { 24, 0x01, HCA_PARSE_UDP, false }, /* UDP length */
        { 25, 0x01, HCA_PARSE_UDP, false },
        { 25, 0x80, HCA_PARSE_UDP, false },
        { 26, 0x01, HCA_PARSE_UDP, false }, /* a checksum */
        { 27, 0xff, HCA_PARSE_UDP, false },
        { 28, 0x40, HCA_PARSE_OPCODE, false }, /* RD */
        { 28, 0xc0, HCA_PARSE_OPCODE, false },
        { 29, 0x01, HCA_PARSE_VERSION, false }, /* TVer */
        { 29, 0x08, HCA_PARSE_VERSION, false },
    };

    /* 172 bytes from IP on: the lengths above are changes of that. */
    check_damages(5, &shapes[0], 2, 0xac, damages, G_N_ELEMENTS(damages));
}

static void test_damaged_ipv6(void)
{
    static const Damage damages[] = {
        { 0, 0x10, HCA_PARSE_VERSION, false },
        { 0, 0x20, HCA_PARSE_VERSION, false },
        { 0, 0x0f, HCA_PARSE_OK, false }, /* traffic class, flow */
        { 1, 0xff, HCA_PARSE_OK, false },
        { 3, 0xff, HCA_PARSE_OK, false },
        { 7, 0xff, HCA_PARSE_OK, false }, /* hop limit */
        { 4, 0x80, HCA_PARSE_LENGTH, false },
        { 5, 0x01, HCA_PARSE_LENGTH, false },
        { 5, 0x80, HCA_PARSE_UDP, false },
        { 44, 0x01, HCA_PARSE_UDP, false },
        { 45, 0x04, HCA_PARSE_UDP, false },
        { 46, 0x01, HCA_PARSE_UDP, false },
        { 48, 0x40, HCA_PARSE_OPCODE, false },
        { 49, 0x04, HCA_PARSE_VERSION, false },
    };

    check_damages(6, &shapes[2], 4, 0x98, damages, G_N_ELEMENTS(damages));
}

/* A header of six words, as it would be with options. */
static void test_ip_options(void)
{
    static const uint8_t nops[4] = { 1, 1, 1, 1 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    uint8_t frame[MAX_FRAME], longer[MAX_FRAME + 4];
    HcaPacket packet;
    size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[0], 64,
                              frame);
    uint8_t *ip = longer + ETH;

    memcpy(longer, frame, ETH + 20);
    memcpy(ip + 20, nops, sizeof(nops));
    memcpy(ip + 24, frame + ETH + 20, len - ETH - 20);
    ip[0] = 0x46;
    put_be16(ip + 2, len - ETH + 4);
    put_be16(ip + 10, 0);
    put_be16(ip + 10, ~model_sum(ip, 24, 0));
    g_assert_cmpint(parse(longer, len + 4), ==, HCA_PARSE_IP_HEADER);
    g_assert_true(hca_roce_bth(longer, len + 4) == ip + 24 + 8);
    /* Options that leave no room for ports. */
    g_assert_cmpint(parse(longer, ETH + 24 + 3), ==, HCA_PARSE_NOT_ROCE);
    ip[0] = 0x4f;
    g_assert_cmpint(parse(longer, ETH + 60 + 3), ==, HCA_PARSE_NOT_ROCE);
}

static void test_ipv6_fragments(void)
{
    static const struct {
        uint16_t offset;
        uint8_t next;
        HcaParseError error;
    } cases[] = {
        { 0x0001, 17, HCA_PARSE_FRAGMENT }, /* the first */
        { 0x0000, 17, HCA_PARSE_FRAGMENT }, /* all in one */
        { 0x0006, 17, HCA_PARSE_FRAGMENT }, /* reserved bits */
        { 0x0009, 17, HCA_PARSE_NOT_ROCE }, /* a later one */
        { 0x8000, 17, HCA_PARSE_NOT_ROCE }, { 0x0001, 6, HCA_PARSE_NOT_ROCE },
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    uint8_t frame[MAX_FRAME], longer[MAX_FRAME + 8];
    HcaPacket packet;
    size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[2], 64,
                              frame);
    uint8_t *ip = longer + ETH;

    memcpy(longer, frame, ETH + 40);
    memset(ip + 40, 0, 8);
    memcpy(ip + 48, frame + ETH + 40, len - ETH - 40);
    put_be16(ip + 4, get_be16(ip + 4) + 8);
    ip[6] = 44;
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        ip[40] = cases[i].next;
        put_be16(ip + 42, cases[i].offset);
        g_assert_cmpint(parse(longer, len + 8), ==, cases[i].error);
        /* As far as the ports can be seen. */
        g_assert_cmpint(parse(longer, ETH + 48 + 4), ==, cases[i].error);
        for (size_t n = ETH + 40; n < ETH + 48 + 4; n++) {
            g_assert_cmpint(parse(longer, n), ==, HCA_PARSE_NOT_ROCE);
        }
    }
}

/* Checksums that a peer has made are checked, and ICRC leaves them out. */
static void test_udp_checksum(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);

    for (unsigned n = 0; n < 4000; n++) {
        uint8_t frame[MAX_FRAME];
        HcaPacket packet;
        size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[n % 4],
                                  4 * (n % 9 + 1), frame);
        size_t udp = udp_at(frame);
        uint16_t sum = model_udp_checksum(frame, len - udp);

        g_assert_cmpuint(get_be16(frame + udp + 6), ==, 0);
        put_be16(frame + udp + 6, sum);
        g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_OK);
        put_be16(frame + udp + 6, sum ^ 1u << n % 16);
        /* Zero is no checksum. */
        g_assert_cmpint(parse(frame, len), ==,
                        sum == 1u << n % 16 ? HCA_PARSE_OK : HCA_PARSE_UDP);
    }
}

/* A sum of zero is sent as ones (RFC 768). */
static void test_udp_checksum_zero(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(10);
    unsigned found = 0;

    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        uint8_t frame[MAX_FRAME];
        HcaPacket packet;
        size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[s], 64,
                                  frame);
        size_t udp = udp_at(frame);
        uint16_t sum;

        /* The source port makes up for all else; ICRC follows it. */
        for (unsigned port = 0; port < 0x10000; port++) {
            put_be16(frame + udp, port);
            set_icrc(frame, len);
            sum = model_udp_checksum(frame, len - udp);
            if (sum == 0xffff) {
                break;
            }
        }
        if (sum == 0xffff) {
            put_be16(frame + udp + 6, sum);
            g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_OK);
            found++;
        }
    }
    g_assert_cmpuint(found, >, 0);
}

/* Lengths */

/* What lies behind the IP packet is no part of it. */
static void test_ethernet_padding(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
            uint8_t frame[MAX_FRAME + 64];
            HcaPacket sent, got;
            size_t len = build_random(rand, &sent, opcodes[i], &shapes[s], 0,
                                      frame);

            random_fill(rand, frame + len, 64);
            for (unsigned extra = 0; extra <= 64; extra++) {
                g_assert_cmpint(parse_copy(&got, frame, len + extra), ==,
                                HCA_PARSE_OK);
                g_assert_cmpuint(got.payload_len, ==, 0);
            }
        }
    }
}

/* The shortest frame is one of Ethernet's shortest. */
static void test_shortest(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(12);
    uint8_t frame[MAX_FRAME];
    HcaPacket packet;

    memset(frame, 0xee, sizeof(frame));
    g_assert_cmpuint(
        build_random(rand, &packet, HCA_SEND_ONLY, &shapes[0], 0, frame), ==,
        60);
    g_assert_cmpuint(get_be16(frame + ETH + 2), ==, 44);
    g_assert_cmphex(get_be16(frame + 58), ==, 0);
    g_assert_cmphex(frame[60], ==, 0xee);
    g_assert_cmpint(parse(frame, 60), ==, HCA_PARSE_OK);
    g_assert_cmpint(parse(frame, 58), ==, HCA_PARSE_OK);
}

static HcaParseError parse_repaired(uint8_t *frame, size_t len)
{
    set_all(frame, len);
    return parse(frame, len);
}

static void test_payload_rules(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(13);
    uint8_t frame[MAX_FRAME + 4] = { 0 };
    HcaPacket packet;
    size_t len;

    /* A payload where none can be; a pad with nothing to pad. */
    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        if (!has_payload(opcodes[i])) {
            len = build_random(rand, &packet, opcodes[i], &shapes[0], 0, frame);
            memset(frame + len, 0, 4);
            g_assert_cmpint(parse_repaired(frame, len + 4), ==,
                            HCA_PARSE_LENGTH);
            frame[bth_at(frame) + 1] |= 0x10;
            g_assert_cmpint(parse_repaired(frame, len), ==, HCA_PARSE_LENGTH);
        }
    }
    len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[2], 0, frame);
    frame[bth_at(frame) + 1] |= 0x30;
    g_assert_cmpint(parse_repaired(frame, len), ==, HCA_PARSE_LENGTH);
    /* More than the largest MTU; lengths that are no words. */
    len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[3], 4096, frame);
    g_assert_cmpint(parse_repaired(frame, len), ==, HCA_PARSE_OK);
    for (unsigned n = 1; n <= 4; n++) {
        g_assert_cmpint(parse_repaired(frame, len + n), ==, HCA_PARSE_LENGTH);
    }
    for (unsigned n = 1; n < 4; n++) {
        g_assert_cmpint(parse_repaired(frame, len - n), ==, HCA_PARSE_LENGTH);
    }
}

/* CNP (A17.9.3): what is behind BTH is reserved, and 16 bytes. */
static void test_cnp(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(14);
    uint8_t frame[MAX_FRAME];
    HcaPacket packet;
    size_t len = build_random(rand, &packet, HCA_BTH_CNP, &shapes[0], 0, frame);
    size_t reserved = bth_at(frame) + HCA_BTH_SIZE;

    for (unsigned i = 0; i < 16; i++) {
        g_assert_cmphex(frame[reserved + i], ==, 0);
    }
    random_fill(rand, frame + reserved, 16);
    set_icrc(frame, len);
    g_assert_cmpint(parse_copy(&packet, frame, len), ==, HCA_PARSE_OK);
    g_assert_cmphex(packet.opcode, ==, HCA_BTH_CNP);
    g_assert_cmpuint(packet.payload_len, ==, 0);
    for (size_t n = reserved + ICRC; n < len; n += 4) {
        g_autofree uint8_t *cut = g_memdup2(frame, len);

        g_assert_cmpint(parse_repaired(cut, n), ==, HCA_PARSE_SHORT);
    }
    frame[bth_at(frame) + 1] |= 0x01;
    set_icrc(frame, len);
    g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_VERSION);
    /* 0x81 only; the like of it mean nothing. */
    for (unsigned opcode = 0x80; opcode < 0xa0; opcode++) {
        if (opcode != HCA_BTH_CNP) {
            frame[bth_at(frame) + 1] = 0;
            frame[bth_at(frame)] = opcode;
            set_icrc(frame, len);
            g_assert_cmpint(parse(frame, len), ==, HCA_PARSE_OPCODE);
        }
    }
}

/* ICRC */

/* Bits that ICRC leaves out, once IPv4's own checksum has been repaired. */
static bool is_variant(const uint8_t *frame, size_t bit)
{
    size_t byte = bit / 8, ip = ip_at(frame), bth = bth_at(frame);

    if (byte < ip) { /* addresses, priority and VLAN, not the type */
        return byte < 12 || (byte >= 14 && byte < ip - 2);
    }
    if (byte == bth + 4) { /* FECN, BECN, reserved */
        return true;
    }
    if (is_ipv4(frame)) {
        return byte == ip + 1 || byte == ip + 8 || byte == ip + 10 ||
               byte == ip + 11;
    }
    return (byte == ip && bit % 8 >= 4) || (byte > ip && byte < ip + 4) ||
           byte == ip + 7;
}

static void test_bit_flips(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(15);

    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        uint8_t frame[MAX_FRAME];
        HcaPacket packet;
        size_t len = build_random(rand, &packet, HCA_WRITE_ONLY_IMM, &shapes[s],
                                  257, frame);

        for (size_t bit = 0; bit < len * 8; bit++) {
            g_autofree uint8_t *copy = g_memdup2(frame, len);
            HcaParseError error;

            copy[bit / 8] ^= 0x80 >> bit % 8;
            set_ip_checksum(copy);
            error = parse(copy, len);
            g_assert_true((error == HCA_PARSE_OK) == is_variant(frame, bit));
            if (bit / 8 >= bth_at(frame) && !is_variant(frame, bit)) {
                g_assert_cmpint(error, ==, HCA_PARSE_ICRC);
            }
        }
    }
}

/* A CE mark: the IP header stays right, and ICRC does not see it. */
static void test_mark(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(19);

    for (unsigned n = 0; n < 4000; n++) {
        uint8_t frame[MAX_FRAME];
        HcaPacket sent, got;
        size_t len = build_random(rand, &sent, HCA_ACK, &shapes[n % 4], 0,
                                  frame);

        g_assert_true(hca_roce_mark(frame, len));
        g_assert_cmpint(parse_copy(&got, frame, len), ==, HCA_PARSE_OK);
        g_assert_cmphex(got.tclass, ==, sent.tclass | HCA_ECN_CE);
        sent.tclass |= HCA_ECN_CE;
        assert_same(&got, &sent, HCA_ACK);
        g_assert_false(hca_roce_mark(frame, udp_at(frame) + 3));
        frame[udp_at(frame) + 2] ^= 1;
        g_assert_false(hca_roce_mark(frame, len));
    }
}

/* Bursts of wrong bits behind UDP: all within ICRC's reach. */
static void test_bursts(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(16);
    uint8_t frame[MAX_FRAME];
    HcaPacket packet;
    size_t len = build_random(rand, &packet, HCA_SEND_ONLY, &shapes[0], 4096,
                              frame);

    for (unsigned n = 0; n < 2000; n++) {
        size_t at = g_rand_int_range(rand, bth_at(frame) + 5, len - 3);
        uint32_t burst = g_rand_int(rand) | 1;
        uint32_t was = get_be32(frame + at);

        put_be32(frame + at, was ^ burst);
        g_assert_cmpint(hca_roce_parse(&packet, frame, len), ==,
                        HCA_PARSE_ICRC);
        put_be32(frame + at, was);
    }
    g_assert_cmpint(hca_roce_parse(&packet, frame, len), ==, HCA_PARSE_OK);
}

/* Hostile input */

/* A good frame with some header bytes made random. */
static size_t mutate(GRand *rand, uint8_t *frame)
{
    uint8_t opcode = opcodes[g_rand_int_range(rand, 0, G_N_ELEMENTS(opcodes))];
    HcaPacket packet;
    size_t len = build_random(
        rand, &packet, opcode, &shapes[g_rand_int_range(rand, 0, 4)],
        has_payload(opcode) ? g_rand_int_range(rand, 0, 40) : 0, frame);

    for (int i = g_rand_int_range(rand, 0, 4); i > 0; i--) {
        frame[g_rand_int_range(rand, 12, MIN(len, 80))] = g_rand_int(rand);
    }
    if (g_rand_int_range(rand, 0, 16) == 0 && packet.is_ipv4) {
        frame[ip_at(frame) + 6] |= 0x20; /* more fragments */
    }
    if (g_rand_int_range(rand, 0, 4) == 0) {
        len = g_rand_int_range(rand, 0, len + 1);
    }
    return len;
}

static void test_fuzz(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(17);
    unsigned seen[HCA_PARSE_NERRORS] = { 0 };

    for (unsigned n = 0; n < FUZZ_FRAMES; n++) {
        uint8_t frame[MAX_FRAME];
        size_t len;

        if (n % 8 == 0) {
            len = g_rand_int_range(rand, 0, 128);
            random_fill(rand, frame, len);
        } else {
            len = mutate(rand, frame);
        }
        if (n % 3 == 0 && len >= 58) {
            set_ip_checksum(frame);
        }
        if (n % 5 == 0 && len >= 94) {
            set_all(frame, len);
        } else if (n % 5 > 2 && len >= 94) {
            set_ip_checksum(frame);
            set_icrc(frame, len);
        }
        seen[parse(frame, len)]++;
    }
    for (unsigned i = 0; i < HCA_PARSE_NERRORS; i++) {
        g_test_message("error %u: %u", i, seen[i]);
        if (i == HCA_PARSE_LNH || i == HCA_PARSE_VCRC) {
            g_assert_cmpuint(seen[i], ==, 0);
        } else {
            g_assert_cmpuint(seen[i], >, 100);
        }
    }
}

/* For other decoders */

static void test_capture(void)
{
    static const size_t lens[] = { 0, 1, 64, 1027, 4096 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(18);
    g_autofree char *path = pcap_path("rdma-hca-roce.pcap");
    Pcap *pcap = pcap_create_ethernet(path);
    unsigned packets = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
            unsigned n = has_payload(opcodes[i]) ? G_N_ELEMENTS(lens) : 1;

            while (n--) {
                uint8_t frame[MAX_FRAME];
                HcaPacket packet;
                size_t len = build_random(rand, &packet, opcodes[i], &shapes[s],
                                          lens[n], frame);

                pcap_add(pcap, packets++, frame, len);
            }
        }
    }
    pcap_close(pcap);
    g_test_message("%u packets in %s", packets, path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/roce-wire/samples", test_samples);
    test_add("/roce-wire/round-trip", test_round_trip);
    test_add("/roce-wire/not-roce", test_not_roce);
    test_add("/roce-wire/truncated", test_truncated);
    test_add("/roce-wire/bth", test_bth);
    test_add("/roce-wire/damaged-ipv4", test_damaged_ipv4);
    test_add("/roce-wire/damaged-ipv6", test_damaged_ipv6);
    test_add("/roce-wire/ip-options", test_ip_options);
    test_add("/roce-wire/ipv6-fragments", test_ipv6_fragments);
    test_add("/roce-wire/udp-checksum", test_udp_checksum);
    test_add("/roce-wire/udp-checksum-zero", test_udp_checksum_zero);
    test_add("/roce-wire/ethernet-padding", test_ethernet_padding);
    test_add("/roce-wire/shortest", test_shortest);
    test_add("/roce-wire/payload-rules", test_payload_rules);
    test_add("/roce-wire/cnp", test_cnp);
    test_add("/roce-wire/bit-flips", test_bit_flips);
    test_add("/roce-wire/mark", test_mark);
    test_add("/roce-wire/bursts", test_bursts);
    test_add("/roce-wire/fuzz", test_fuzz);
    test_add("/roce-wire/capture", test_capture);
    return g_test_run();
}
