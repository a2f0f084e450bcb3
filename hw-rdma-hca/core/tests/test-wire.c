/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire: packets built and taken apart, against the sample packet of IBA 7.8,
 * CRCs computed bit by bit from their definition, and hostile input.
 */
#include <glib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/crc.h"
#include "wire/crc_way.h"
#include "wire/headers.h"
#include "wire/wire.h"
#include "lib-test.h"

#define CRCS_SIZE (HCA_ICRC_SIZE + HCA_VCRC_SIZE)
#define FUZZ_FRAMES 100000

/* CRCs from their definition: a register of coefficients, highest term left */

typedef struct CrcModel {
    unsigned width;
    uint32_t polynomial;
    uint32_t reg;
} CrcModel;

static void model_bit(CrcModel *model, unsigned bit)
{
    uint32_t top = model->reg >> (model->width - 1) & 1;

    model->reg <<= 1;
    if (top ^ bit) {
        model->reg ^= model->polynomial;
    }
    model->reg &= 0xffffffffu >> (32 - model->width);
}

static void model_bytes(CrcModel *model, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            model_bit(model, p[i] >> bit & 1);
        }
    }
}

/* The complement, highest term in the first bit on the wire. */
static void model_put(const CrcModel *model, uint8_t *out)
{
    memset(out, 0, model->width / 8);
    for (unsigned i = 0; i < model->width; i++) {
        if (!(model->reg >> (model->width - 1 - i) & 1)) {
            out[i / 8] |= 1u << i % 8;
        }
    }
}

static void model_icrc(const uint8_t *frame, size_t len, uint8_t *out)
{
    CrcModel model = { 32, 0x04c11db7, 0xffffffff };
    g_autofree uint8_t *masked = g_memdup2(frame, len);
    bool global = (frame[1] & 3) == 3;
    size_t bth = global ? 48 : 8;

    if (global) {
        memset(masked, 0xff, 8);
        masked[8] |= 0x0f;
        masked[9] = masked[10] = masked[11] = 0xff;
        masked[15] = 0xff;
    } else {
        masked[0] |= 0xf0;
    }
    masked[bth + 4] = 0xff;
    model_bytes(&model, masked, len);
    model_put(&model, out);
}

static void model_vcrc(const uint8_t *frame, size_t len, uint8_t *out)
{
    CrcModel model = { 16, 0x100b, 0xffff };

    model_bytes(&model, frame, len);
    model_put(&model, out);
}

/* Frames */

/* New VCRC, for a frame that a test has changed. */
static void seal_vcrc(uint8_t *frame, size_t len)
{
    model_vcrc(frame, len - 2, frame + len - 2);
}

/* New ICRC and VCRC, where there is room for a BTH. */
static void seal(uint8_t *frame, size_t len)
{
    size_t headers = (frame[1] & 3) == 3 ? 60 : 20;

    if (len >= headers + CRCS_SIZE) {
        model_icrc(frame, len - CRCS_SIZE, frame + len - CRCS_SIZE);
    }
    if (len >= 10) {
        seal_vcrc(frame, len);
    }
}

static void set_lengths(uint8_t *frame, size_t len)
{
    put_be16(frame + 4, (len - 2) / 4);
    if ((frame[1] & 3) == 3 && len >= 48 + 2) {
        put_be16(frame + 12, len - 2 - 48);
    }
}

/* Parse from a copy of just that size, so that a sanitizer sees overruns. */
static HcaParseError parse_copy(HcaPacket *packet, const uint8_t *frame,
                                size_t len)
{
    g_autofree uint8_t *copy = g_memdup2(frame, len);
    HcaParseError error = hca_ib_parse(packet, copy, len);

    if (error == HCA_PARSE_OK) {
        g_assert_cmpuint(packet->payload_len, <=, HCA_MAX_MTU);
        g_assert_true(packet->payload >= copy);
        g_assert_cmpuint(packet->payload - copy + packet->payload_len +
                             packet->pad + CRCS_SIZE,
                         ==, len);
    }
    return error;
}

static void random_packet(GRand *rand, HcaPacket *packet, uint8_t opcode,
                          bool has_grh, size_t payload_len)
{
    memset(packet, 0, sizeof(*packet));
    packet->vl = g_rand_int_range(rand, 0, 16);
    packet->sl = g_rand_int_range(rand, 0, 16);
    packet->dlid = g_rand_int(rand);
    packet->slid = g_rand_int(rand);
    packet->has_grh = has_grh;
    if (has_grh) {
        packet->tclass = g_rand_int(rand);
        packet->hop_limit = g_rand_int(rand);
        packet->flow_label = g_rand_int(rand) & 0xfffff;
        random_fill(rand, &packet->sgid, sizeof(packet->sgid));
        random_fill(rand, &packet->dgid, sizeof(packet->dgid));
    }
    packet->opcode = opcode;
    packet->solicited = g_rand_boolean(rand);
    packet->mig_req = g_rand_boolean(rand);
    packet->ack_req = g_rand_boolean(rand);
    packet->pkey = g_rand_int(rand);
    packet->dest_qp = g_rand_int(rand) & 0xffffff;
    packet->psn = g_rand_int(rand) & 0xffffff;
    packet->srqn = g_rand_int(rand) & 0xffffff;
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
    packet->payload_len = payload_len;
}

/* A whole frame; returns its length. */
static size_t build(HcaPacket *packet, const uint8_t *payload, uint8_t *frame)
{
    size_t header_len = hca_ib_build(packet, frame);
    size_t at;

    g_assert_cmpuint(header_len, <=, HCA_MAX_HEADER_SIZE);
    memcpy(frame + header_len, payload, packet->payload_len);
    at = hca_ib_seal(packet, frame, header_len + packet->payload_len);
    g_assert_cmpuint(at, <=, HCA_MAX_PACKET_SIZE);
    return at;
}

static size_t build_random(GRand *rand, HcaPacket *packet, uint8_t opcode,
                           bool has_grh, size_t payload_len, uint8_t *frame)
{
    uint8_t payload[HCA_MAX_MTU];

    random_fill(rand, payload, payload_len);
    random_packet(rand, packet, opcode, has_grh, payload_len);
    return build(packet, payload, frame);
}

/* What IBA tables 38 and 39 and annexes A14 and A19 say of each opcode, by hand */

typedef struct Expected {
    uint8_t opcode;
    uint8_t extended; /* bytes between BTH and payload */
    bool payload;
} Expected;

static const Expected expected[] = {
    { 0x00, 0, true },   { 0x01, 0, true },   { 0x02, 0, true },
    { 0x03, 4, true },   { 0x04, 0, true },   { 0x05, 4, true },
    { 0x06, 16, true },  { 0x07, 0, true },   { 0x08, 0, true },
    { 0x09, 4, true },   { 0x0a, 16, true },  { 0x0b, 20, true },
    { 0x0c, 16, false }, { 0x0d, 4, true },   { 0x0e, 0, true },
    { 0x0f, 4, true },   { 0x10, 4, true },   { 0x11, 4, false },
    { 0x12, 12, false }, { 0x13, 28, false }, { 0x14, 28, false },
    { 0x16, 4, true },   { 0x17, 4, true },   { 0x1c, 20, false },
    { 0x1d, 16, true },  { 0x20, 0, true },   { 0x21, 0, true },
    { 0x22, 0, true },   { 0x23, 4, true },   { 0x24, 0, true },
    { 0x25, 4, true },   { 0x26, 16, true },  { 0x27, 0, true },
    { 0x28, 0, true },   { 0x29, 4, true },   { 0x2a, 16, true },
    { 0x2b, 20, true },  { 0x64, 8, true },   { 0x65, 12, true },
    { 0xa0, 4, true },   { 0xa1, 4, true },   { 0xa2, 4, true },
    { 0xa3, 8, true },   { 0xa4, 4, true },   { 0xa5, 8, true },
    { 0xa6, 20, true },  { 0xa7, 4, true },   { 0xa8, 4, true },
    { 0xa9, 8, true },   { 0xaa, 20, true },  { 0xab, 24, true },
    { 0xac, 20, false }, { 0xad, 4, true },   { 0xae, 0, true },
    { 0xaf, 4, true },   { 0xb0, 4, true },   { 0xb1, 4, false },
    { 0xb2, 12, false }, { 0xb3, 32, false }, { 0xb4, 32, false },
    { 0xb6, 8, true },   { 0xb7, 8, true },   { 0xbc, 24, false },
    { 0xbd, 20, true },
};

static const Expected *find_expected(uint8_t opcode)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        if (expected[i].opcode == opcode) {
            return &expected[i];
        }
    }
    return NULL;
}

static const Expected *random_expected(GRand *rand)
{
    return &expected[g_rand_int_range(rand, 0, G_N_ELEMENTS(expected))];
}

static size_t random_len(GRand *rand, const Expected *format)
{
    return format->payload ? g_rand_int_range(rand, 0, HCA_MAX_MTU + 1) : 0;
}

/* Tests */

/* The local packet of IBA 7.8, ICRC included; VCRC is the model's. */
static const uint8_t sample[] = {
    0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87,
    0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c,
    0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
    0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69,
    0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a, 0x45, 0xfa,
};

static void test_sample_parse(void)
{
    HcaPacket packet;

    g_assert_cmpint(parse_copy(&packet, sample, sizeof(sample)), ==,
                    HCA_PARSE_OK);
    g_assert_cmpuint(packet.vl, ==, 7);
    g_assert_cmpuint(packet.sl, ==, 1);
    g_assert_cmphex(packet.dlid, ==, 0x375c);
    g_assert_cmphex(packet.slid, ==, 0x17d2);
    g_assert_false(packet.has_grh);
    g_assert_cmphex(packet.opcode, ==, HCA_WRITE_ONLY);
    g_assert_cmphex(packet.pkey, ==, 0x2487);
    g_assert_cmphex(packet.dest_qp, ==, 0x87b1b3);
    g_assert_cmphex(packet.psn, ==, 0x0dec2a);
    g_assert_false(packet.ack_req);
    g_assert_cmphex(packet.va, ==, 0x01710a1c015d4002);
    g_assert_cmphex(packet.rkey, ==, 0x38f27a05);
    g_assert_cmpuint(packet.dma_len, ==, 14);
    g_assert_cmpuint(packet.payload_len, ==, 14);
    g_assert_cmpuint(packet.pad, ==, 2);
}

static void test_sample_build(void)
{
    HcaPacket packet = {
        .vl = 7,
        .sl = 1,
        .dlid = 0x375c,
        .slid = 0x17d2,
        .opcode = HCA_WRITE_ONLY,
        .pkey = 0x2487,
        .dest_qp = 0x87b1b3,
        .psn = 0x0dec2a,
        .va = 0x01710a1c015d4002,
        .rkey = 0x38f27a05,
        .dma_len = 14,
        .payload_len = 14,
    };
    uint8_t frame[HCA_MAX_PACKET_SIZE];

    g_assert_cmpmem(frame, build(&packet, sample + 36, frame), sample,
                    sizeof(sample));
}

/* A register of the model that has the bits of @reg, in their other order. */
static CrcModel model_from(unsigned width, uint32_t polynomial, uint32_t reg)
{
    CrcModel model = { width, polynomial, 0 };

    for (unsigned bit = 0; bit < width; bit++) {
        model.reg |= (reg >> bit & 1u) << (width - 1 - bit);
    }
    return model;
}

static uint32_t model_reg(const CrcModel *model)
{
    return model_from(model->width, 0, model->reg).reg;
}

/* Each way that this processor has, at all places and lengths. */
static void test_crc_ways(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    uint8_t data[1024 + 16];
    const HcaCrcWay *way;

    random_fill(rand, data, sizeof(data));
    for (unsigned i = 0; (way = hca_crc_way(i)); i++) {
        if (!way->usable()) {
            g_test_message("this processor has no way of %s", way->name);
            continue;
        }
        for (size_t len = way->least; len <= 1024; len++) {
            const uint8_t *p = data + g_rand_int_range(rand, 0, 16);
            uint32_t icrc = g_rand_int(rand);
            uint16_t vcrc = g_rand_int(rand);
            CrcModel icrc_model = model_from(32, 0x04c11db7, icrc);
            CrcModel vcrc_model = model_from(16, 0x100b, vcrc);

            model_bytes(&icrc_model, p, len);
            model_bytes(&vcrc_model, p, len);
            g_assert_cmphex(way->vcrc(vcrc, p, len), ==,
                            model_reg(&vcrc_model));
            if (way->icrc) {
                g_assert_cmphex(way->icrc(icrc, p, len), ==,
                                model_reg(&icrc_model));
            }
            way->both(&icrc, &vcrc, p, len);
            g_assert_cmphex(icrc, ==, model_reg(&icrc_model));
            g_assert_cmphex(vcrc, ==, model_reg(&vcrc_model));
        }
    }
}

static void test_vcrc_pieces(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    uint8_t data[256];

    random_fill(rand, data, sizeof(data));
    for (unsigned from = 0; from < 16; from++) {
        for (unsigned len = 0; len <= 200; len++) {
            unsigned cut = g_rand_int_range(rand, 0, len + 1);
            uint16_t crc = hca_vcrc_update(HCA_VCRC_INIT, data + from, cut);
            uint8_t want[2];

            crc = hca_vcrc_update(crc, data + from + cut, len - cut);
            model_vcrc(data + from, len, want);
            g_assert_cmphex(crc, ==, want[0] | want[1] << 8);
        }
    }
}

/* Which fields of @packet an opcode carries, and their equality. */
static void assert_same(const HcaPacket *a, const HcaPacket *b, uint8_t opcode)
{
    HcaOpcodeFormat format;

    g_assert_true(hca_opcode_format(opcode, &format));
    g_assert_cmpuint(a->vl, ==, b->vl);
    g_assert_cmpuint(a->sl, ==, b->sl);
    g_assert_cmpuint(a->dlid, ==, b->dlid);
    g_assert_cmpuint(a->slid, ==, b->slid);
    g_assert_cmpuint(a->has_grh, ==, b->has_grh);
    g_assert_cmpuint(a->tclass, ==, b->tclass);
    g_assert_cmpuint(a->hop_limit, ==, b->hop_limit);
    g_assert_cmpuint(a->flow_label, ==, b->flow_label);
    g_assert_cmpmem(&a->sgid, 16, &b->sgid, 16);
    g_assert_cmpmem(&a->dgid, 16, &b->dgid, 16);
    g_assert_cmpuint(a->opcode, ==, b->opcode);
    g_assert_cmpuint(a->solicited, ==, b->solicited);
    g_assert_cmpuint(a->mig_req, ==, b->mig_req);
    g_assert_cmpuint(a->ack_req, ==, b->ack_req);
    g_assert_cmpuint(a->pad, ==, b->pad);
    g_assert_cmpuint(a->pkey, ==, b->pkey);
    g_assert_cmpuint(a->dest_qp, ==, b->dest_qp);
    g_assert_cmpuint(a->psn, ==, b->psn);
    g_assert_cmpuint(a->payload_len, ==, b->payload_len);
    if (format.headers & 1 << HCA_XRCETH) {
        g_assert_cmpuint(a->srqn, ==, b->srqn);
    }
    if (format.headers & 1 << HCA_DETH) {
        g_assert_cmpuint(a->qkey, ==, b->qkey);
        g_assert_cmpuint(a->src_qp, ==, b->src_qp);
    }
    if (format.headers & (1 << HCA_RETH | 1 << HCA_ATOMIC_ETH)) {
        g_assert_cmpuint(a->va, ==, b->va);
        g_assert_cmpuint(a->rkey, ==, b->rkey);
    }
    if (format.headers & 1 << HCA_RETH) {
        g_assert_cmpuint(a->dma_len, ==, b->dma_len);
    }
    if (format.headers & 1 << HCA_ATOMIC_ETH) {
        g_assert_cmpuint(a->swap_add, ==, b->swap_add);
        g_assert_cmpuint(a->compare, ==, b->compare);
    }
    if (format.headers & 1 << HCA_AETH_HEADER) {
        g_assert_cmpuint(a->syndrome, ==, b->syndrome);
        g_assert_cmpuint(a->msn, ==, b->msn);
    }
    if (format.headers & 1 << HCA_ATOMIC_ACK_ETH) {
        g_assert_cmpuint(a->atomic_ack, ==, b->atomic_ack);
    }
    if (format.headers & 1 << HCA_IMMDT) {
        g_assert_cmpuint(a->imm_be, ==, b->imm_be);
    }
    if (format.headers & 1 << HCA_FETH) {
        g_assert_cmphex(a->feth, ==, b->feth);
    }
    if (format.headers & 1 << HCA_IETH) {
        g_assert_cmpuint(a->inv_rkey, ==, b->inv_rkey);
    }
}

static void check_round_trip(GRand *rand, const Expected *format, bool has_grh,
                             size_t payload_len)
{
    uint8_t frame[HCA_MAX_PACKET_SIZE], icrc[4], vcrc[2];
    HcaPacket sent, got;
    size_t len = build_random(rand, &sent, format->opcode, has_grh, payload_len,
                              frame);
    size_t at = (has_grh ? 48 : 8) + 12 + format->extended;

    g_assert_cmpuint(len, ==, at + (payload_len + 3) / 4 * 4 + CRCS_SIZE);
    model_icrc(frame, len - CRCS_SIZE, icrc);
    model_vcrc(frame, len - 2, vcrc);
    g_assert_cmpmem(frame + len - 6, 4, icrc, 4);
    g_assert_cmpmem(frame + len - 2, 2, vcrc, 2);
    g_assert_cmpint(hca_ib_parse(&got, frame, len), ==, HCA_PARSE_OK);
    g_assert_true(got.payload == frame + at);
    assert_same(&got, &sent, format->opcode);
}

static void test_round_trip(void)
{
    static const size_t lens[] = { 0,   1,   2,    3,    4,    5,
                                   255, 256, 1023, 2048, 4095, 4096 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);

    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        for (unsigned k = 0; k < 2; k++) {
            if (!expected[i].payload) {
                check_round_trip(rand, &expected[i], k, 0);
                continue;
            }
            for (unsigned n = 0; n < G_N_ELEMENTS(lens); n++) {
                check_round_trip(rand, &expected[i], k, lens[n]);
            }
        }
    }
    for (unsigned n = 0; n < 2000; n++) {
        const Expected *format = random_expected(rand);

        check_round_trip(rand, format, g_rand_boolean(rand),
                         random_len(rand, format));
    }
}

/* Reserved operations of RC and XRC are for the responder to refuse. */
static void test_every_opcode(void)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const Expected *format = find_expected(opcode);
        uint8_t bth[HCA_BTH_SIZE + 32] = { opcode };
        HcaPacket packet = { 0 };
        size_t len = HCA_BTH_SIZE + (format ? format->extended : 0);

        g_assert_cmpuint(hca_header_size(opcode), ==, len);
        g_assert_cmpint(hca_header_parse(&packet, bth, len), ==,
                        format || HCA_BTH_SERVICE(opcode) == HCA_BTH_RC ||
                                HCA_BTH_SERVICE(opcode) == HCA_BTH_XRC
                            ? HCA_PARSE_OK
                            : HCA_PARSE_OPCODE);
        for (size_t n = 0; format && n < len; n++) {
            g_assert_cmpint(hca_header_parse(&packet, bth, n), ==,
                            HCA_PARSE_SHORT);
        }
    }
}

/*
 * A path of figure 5.2, and the opcodes that take it. The figure lacks Send
 * Middle and the services beside RC; UD's DETH is the first after its BTH.
 */
typedef struct ParsePath {
    const char *name;
    uint16_t headers; /* bit n: HcaExtHeader n */
    bool payload;
    uint8_t opcode[9]; /* ends at one that repeats the first */
} ParsePath;

#define EXT(name) (1u << HCA_##name)
#define UC(op) (HCA_BTH_UC << 5 | (op))
#define UD(op) (HCA_BTH_UD << 5 | (op))

static const ParsePath parse_paths[] = {
    { "bth-reth-payload",
      EXT(RETH),
      true,
      { HCA_WRITE_FIRST, HCA_WRITE_ONLY, HCA_ATOMIC_WRITE, UC(HCA_WRITE_FIRST),
        UC(HCA_WRITE_ONLY), HCA_WRITE_FIRST } },
    { "bth-feth-reth", EXT(FETH) | EXT(RETH), false, { HCA_FLUSH, HCA_FLUSH } },
    { "bth-reth-immdt",
      EXT(RETH) | EXT(IMMDT),
      true,
      { HCA_WRITE_ONLY_IMM, UC(HCA_WRITE_ONLY_IMM), HCA_WRITE_ONLY_IMM } },
    { "bth-reth", EXT(RETH), false, { HCA_READ_REQUEST, HCA_READ_REQUEST } },
    { "bth-immdt",
      EXT(IMMDT),
      true,
      { HCA_SEND_LAST_IMM, HCA_SEND_ONLY_IMM, HCA_WRITE_LAST_IMM,
        UC(HCA_SEND_LAST_IMM), UC(HCA_SEND_ONLY_IMM), UC(HCA_WRITE_LAST_IMM),
        HCA_SEND_LAST_IMM } },
    { "bth-ieth",
      EXT(IETH),
      true,
      { HCA_SEND_LAST_INV, HCA_SEND_ONLY_INV, HCA_SEND_LAST_INV } },
    { "bth-payload",
      0,
      true,
      { HCA_SEND_FIRST, HCA_SEND_MIDDLE, HCA_SEND_LAST, HCA_SEND_ONLY,
        HCA_WRITE_MIDDLE, HCA_WRITE_LAST, HCA_READ_RESP_MIDDLE,
        UC(HCA_SEND_MIDDLE), HCA_SEND_FIRST } },
    { "bth-aeth-payload",
      EXT(AETH_HEADER),
      true,
      { HCA_READ_RESP_FIRST, HCA_READ_RESP_LAST, HCA_READ_RESP_ONLY,
        HCA_READ_RESP_FIRST } },
    { "bth-aeth", EXT(AETH_HEADER), false, { HCA_ACK, HCA_ACK } },
    { "bth-aeth-atomic-ack-eth",
      EXT(AETH_HEADER) | EXT(ATOMIC_ACK_ETH),
      false,
      { HCA_ATOMIC_ACK, HCA_ATOMIC_ACK } },
    { "bth-atomic-eth",
      EXT(ATOMIC_ETH),
      false,
      { HCA_CMP_SWAP, HCA_FETCH_ADD, HCA_CMP_SWAP } },
    { "bth-deth", EXT(DETH), true, { UD(HCA_SEND_ONLY), UD(HCA_SEND_ONLY) } },
    { "bth-deth-immdt",
      EXT(DETH) | EXT(IMMDT),
      true,
      { UD(HCA_SEND_ONLY_IMM), UD(HCA_SEND_ONLY_IMM) } },
};

static void test_parse_path(const void *opaque)
{
    const ParsePath *path = opaque;
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    unsigned i = 0;

    do {
        uint8_t opcode = path->opcode[i];
        HcaOpcodeFormat format;

        g_assert_true(hca_opcode_format(opcode, &format));
        g_assert_cmphex(format.headers, ==, path->headers);
        g_assert_cmpint(format.has_payload, ==, path->payload);
        check_round_trip(rand, find_expected(opcode), i & 1,
                         path->payload ? 777 : 0);
    } while (path->opcode[++i] != path->opcode[0]);
}

/* Each header cut after each byte; as it comes, and made consistent again. */
static void check_truncated(const uint8_t *frame, size_t len, size_t headers)
{
    uint8_t cut[HCA_MAX_PACKET_SIZE];
    HcaPacket packet;

    for (size_t n = 0; n < len; n++) {
        HcaParseError error = parse_copy(&packet, frame, n);

        g_assert_true(error == HCA_PARSE_VCRC ||
                      (n < 10 && error == HCA_PARSE_SHORT));
        memcpy(cut, frame, n);
        if (n >= 10) {
            set_lengths(cut, n);
        }
        seal(cut, n);
        error = parse_copy(&packet, cut, n);
        if (n < 10) {
            g_assert_cmpint(error, ==, HCA_PARSE_SHORT);
        } else if ((n - 2) % 4) {
            g_assert_cmpint(error, ==, HCA_PARSE_LENGTH);
        } else if (n < headers + CRCS_SIZE) {
            g_assert_cmpint(error, ==, HCA_PARSE_SHORT);
        }
    }
}

static void test_truncated(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);

    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        for (unsigned has_grh = 0; has_grh < 2; has_grh++) {
            uint8_t frame[HCA_MAX_PACKET_SIZE];
            HcaPacket packet;
            size_t len = build_random(rand, &packet, expected[i].opcode,
                                      has_grh, expected[i].payload ? 21 : 0,
                                      frame);

            check_truncated(frame, len,
                            (has_grh ? 60 : 20) + expected[i].extended);
        }
    }
}

/* One change to a good packet, and what it must be taken for. */
typedef struct Damage {
    size_t at;
    uint8_t mask; /* bits to flip */
    HcaParseError error;
} Damage;

static void check_damage(const uint8_t *frame, size_t len, const Damage *damage)
{
    g_autofree uint8_t *copy = g_memdup2(frame, len);
    HcaPacket packet;

    copy[damage->at] ^= damage->mask;
    g_assert_cmpint(parse_copy(&packet, copy, len), ==, HCA_PARSE_VCRC);
    seal(copy, len);
    g_assert_cmpint(parse_copy(&packet, copy, len), ==, damage->error);
}

static void test_damaged_fields(void)
{
    static const Damage local[] = {
        { 0, 0x01, HCA_PARSE_VERSION }, { 0, 0x08, HCA_PARSE_VERSION },
        { 1, 0x02, HCA_PARSE_LNH },     { 1, 0x03, HCA_PARSE_LNH },
        { 5, 0x01, HCA_PARSE_LENGTH },  { 4, 0x04, HCA_PARSE_LENGTH },
        { 8, 0x20, HCA_PARSE_OPCODE },  { 8, 0x40, HCA_PARSE_OPCODE },
        { 8, 0x80, HCA_PARSE_OPCODE },  { 9, 0x01, HCA_PARSE_VERSION },
        { 9, 0x08, HCA_PARSE_VERSION },
    };
    static const Damage global[] = {
        { 8, 0x10, HCA_PARSE_VERSION }, { 8, 0x80, HCA_PARSE_VERSION },
        { 12, 0x01, HCA_PARSE_LENGTH }, { 13, 0x04, HCA_PARSE_LENGTH },
        { 14, 0x01, HCA_PARSE_LNH },    { 49, 0x02, HCA_PARSE_VERSION },
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    uint8_t frame[HCA_MAX_PACKET_SIZE];
    HcaPacket packet;
    size_t len;

    len = build_random(rand, &packet, HCA_ATOMIC_ACK, false, 0, frame);
    for (unsigned i = 0; i < G_N_ELEMENTS(local); i++) {
        check_damage(frame, len, &local[i]);
    }
    len = build_random(rand, &packet, HCA_SEND_ONLY, true, 64, frame);
    for (unsigned i = 0; i < G_N_ELEMENTS(global); i++) {
        check_damage(frame, len, &global[i]);
    }
}

static HcaParseError parse_sealed(uint8_t *frame, size_t len)
{
    HcaPacket packet;

    set_lengths(frame, len);
    seal(frame, len);
    return parse_copy(&packet, frame, len);
}

static void test_payload_rules(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    uint8_t frame[HCA_MAX_PACKET_SIZE + 4] = { 0 };
    HcaPacket packet;
    size_t len;

    /* A pad in a packet that has no byte behind its headers. */
    len = build_random(rand, &packet, HCA_SEND_ONLY, false, 0, frame);
    frame[9] |= 0x30;
    g_assert_cmpint(parse_sealed(frame, len), ==, HCA_PARSE_LENGTH);
    len = build_random(rand, &packet, HCA_ACK, false, 0, frame);
    frame[9] |= 0x10;
    g_assert_cmpint(parse_sealed(frame, len), ==, HCA_PARSE_LENGTH);
    /* A payload where none can be, even if all of it is pad. */
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        if (!expected[i].payload) {
            len = build_random(rand, &packet, expected[i].opcode, false, 0,
                               frame);
            g_assert_cmpint(parse_sealed(frame, len + 4), ==, HCA_PARSE_LENGTH);
        }
    }
    /* More than the largest MTU. */
    len = build_random(rand, &packet, HCA_SEND_ONLY, false, 4096, frame);
    g_assert_cmpint(parse_sealed(frame, len), ==, HCA_PARSE_OK);
    g_assert_cmpint(parse_sealed(frame, len + 4), ==, HCA_PARSE_LENGTH);
    frame[9] |= 0x30;
    g_assert_cmpint(parse_sealed(frame, len + 4), ==, HCA_PARSE_LENGTH);
}

/* Flip a bit and say what the parser says, with or without a new VCRC. */
static HcaParseError flip(uint8_t *frame, size_t len, size_t bit, bool resealed)
{
    HcaPacket packet;
    uint8_t vcrc[2];
    HcaParseError error;

    memcpy(vcrc, frame + len - 2, 2);
    frame[bit / 8] ^= 0x80 >> bit % 8;
    if (resealed) {
        seal_vcrc(frame, len);
    }
    error = parse_copy(&packet, frame, len);
    if (resealed) {
        memcpy(frame + len - 2, vcrc, 2);
    }
    frame[bit / 8] ^= 0x80 >> bit % 8;
    return error;
}

/* Bits that ICRC leaves out and that no other check reads. */
static bool is_variant(size_t bit, bool global)
{
    size_t byte = bit / 8, bth = global ? 48 : 8;

    if (byte == bth + 4) {
        return true; /* resv8a */
    }
    if (!global) {
        return bit < 4; /* VL */
    }
    if (byte < 8) { /* LRH, its checked fields aside */
        return !(byte == 0 && bit >= 4) && !(byte == 1 && bit >= 8 + 6) &&
               !(byte == 4 && bit >= 32 + 5) && byte != 5;
    }
    return (byte == 8 && bit >= 64 + 4) || (byte > 8 && byte < 12) ||
           byte == 15; /* TClass, FlowLabel, HopLmt */
}

static void test_bit_flips(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(6);

    for (unsigned global = 0; global < 2; global++) {
        uint8_t frame[HCA_MAX_PACKET_SIZE];
        HcaPacket packet;
        size_t len = build_random(rand, &packet, HCA_WRITE_ONLY_IMM, global,
                                  257, frame);

        for (size_t bit = 0; bit < len * 8; bit++) {
            g_assert_cmpint(flip(frame, len, bit, false), ==, HCA_PARSE_VCRC);
            if (bit < (len - 2) * 8) {
                g_assert_true((flip(frame, len, bit, true) == HCA_PARSE_OK) ==
                              is_variant(bit, global));
            }
        }
    }
}

/* Two to sixteen wrong bits next to each other: all within VCRC's reach. */
static void test_bursts(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    uint8_t frame[HCA_MAX_PACKET_SIZE];
    HcaPacket packet;
    size_t len = build_random(rand, &packet, HCA_SEND_ONLY, false, 4096, frame);

    for (unsigned n = 0; n < 2000; n++) {
        size_t at = g_rand_int_range(rand, 0, len - 1);
        uint16_t burst = g_rand_int_range(rand, 1, 0x10000);

        frame[at] ^= burst;
        frame[at + 1] ^= burst >> 8;
        g_assert_cmpint(hca_ib_parse(&packet, frame, len), !=, HCA_PARSE_OK);
        frame[at] ^= burst;
        frame[at + 1] ^= burst >> 8;
    }
    g_assert_cmpint(hca_ib_parse(&packet, frame, len), ==, HCA_PARSE_OK);
}

/* A good packet with some header bytes made random. */
static size_t mutate(GRand *rand, uint8_t *frame)
{
    const Expected *format = random_expected(rand);
    HcaPacket packet;
    size_t len = build_random(
        rand, &packet, format->opcode, g_rand_boolean(rand),
        format->payload ? g_rand_int_range(rand, 0, 40) : 0, frame);

    for (int i = g_rand_int_range(rand, 0, 4); i > 0; i--) {
        frame[g_rand_int_range(rand, 0, MIN(len, 64))] = g_rand_int(rand);
    }
    if (g_rand_int_range(rand, 0, 4) == 0) {
        len = g_rand_int_range(rand, 0, len + 1);
    }
    return len;
}

static void test_fuzz(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    unsigned seen[HCA_PARSE_NERRORS] = { 0 };

    for (unsigned n = 0; n < FUZZ_FRAMES; n++) {
        uint8_t frame[HCA_MAX_PACKET_SIZE];
        HcaPacket packet;
        size_t len;

        if (n % 4 == 0) {
            len = g_rand_int_range(rand, 0, 128);
            random_fill(rand, frame, len);
        } else {
            len = mutate(rand, frame);
        }
        if (n % 3 == 0 && len >= 10) {
            set_lengths(frame, len);
        }
        if (n % 8 > 1) {
            seal(frame, len);
        } else if (n % 8 == 1 && len >= 10) {
            seal_vcrc(frame, len);
        }
        seen[parse_copy(&packet, frame, len)]++;
    }
    for (unsigned i = 0; i < HCA_PARSE_NERRORS; i++) {
        if (i < HCA_PARSE_FRAGMENT) { /* what follows is RoCEv2's */
            g_assert_cmpuint(seen[i], >, 100);
        } else {
            g_assert_cmpuint(seen[i], ==, 0);
        }
    }
}

/* The headers of annex A19, byte by byte: FETH is in front of RETH. */
static void test_placement_headers(void)
{
    static const uint8_t flush[] = {
        0x1c, 0x40, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, /* BTH */
        0x80, 0xab, 0xcd, 0xef, 0x00, 0x00, 0x00, 0x12, /* FETH: region, */
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* persistent; RETH */
        0x00, 0x00, 0xfe, 0xed, 0x00, 0x01, 0x00, 0x02,
    };
    static const uint8_t atomic_write[] = {
        0xbd, 0x40, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, /* BTH */
        0x80, 0xab, 0xcd, 0xef, 0x00, 0x07, 0x08, 0x09, /* XRCETH, RETH */
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
        0x00, 0x00, 0xfe, 0xed, 0x00, 0x00, 0x00, 0x08,
    };
    HcaPacket packet = {
        .opcode = HCA_FLUSH,
        .mig_req = true,
        .ack_req = true,
        .pkey = 0xffff,
        .dest_qp = 0x123456,
        .psn = 0xabcdef,
        .feth = HCA_FETH(2, 1),
        .va = UINT64_C(0x1122334455667788),
        .rkey = 0xfeed,
        .dma_len = 0x10002,
        .srqn = 0x70809,
    };
    uint8_t header[sizeof(atomic_write)];

    g_assert_cmpuint(hca_header_size(packet.opcode), ==, sizeof(flush));
    hca_header_build(&packet, header);
    g_assert_cmpmem(header, sizeof(flush), flush, sizeof(flush));
    packet.opcode = HCA_BTH_OPCODE(HCA_BTH_XRC, HCA_ATOMIC_WRITE);
    packet.dma_len = 8;
    g_assert_cmpuint(hca_header_size(packet.opcode), ==, sizeof(atomic_write));
    hca_header_build(&packet, header);
    g_assert_cmpmem(header, sizeof(header), atomic_write, sizeof(atomic_write));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/wire/sample/parse", test_sample_parse);
    test_add("/wire/sample/build", test_sample_build);
    test_add("/wire/crc-ways", test_crc_ways);
    test_add("/wire/vcrc/pieces", test_vcrc_pieces);
    test_add("/wire/round-trip", test_round_trip);
    test_add("/wire/every-opcode", test_every_opcode);
    test_add("/wire/a19/headers", test_placement_headers);
    for (unsigned i = 0; i < G_N_ELEMENTS(parse_paths); i++) {
        const char *path = test_named("/wire/fig-5.2/%s", parse_paths[i].name);

        test_add_data(path, &parse_paths[i], test_parse_path);
    }
    test_add("/wire/truncated", test_truncated);
    test_add("/wire/damaged-fields", test_damaged_fields);
    test_add("/wire/payload-rules", test_payload_rules);
    test_add("/wire/bit-flips", test_bit_flips);
    test_add("/wire/bursts", test_bursts);
    test_add("/wire/fuzz", test_fuzz);
    return g_test_run();
}
