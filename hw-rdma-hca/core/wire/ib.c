/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets of an InfiniBand link: LRH (IBA 7.7), GRH (IBA 8.3), the transport
 * headers, payload, pad, ICRC and VCRC. (The documents leave these to their
 * LinkLayer; FrameEncap, context document 3.2, fills the fields.)
 *
 * The checks on arrival are in the order of IBA 7.3: what the link can tell,
 * then the network header, then ICRC, and only then what the transport headers
 * say, so that nothing is judged by corrupt bytes.
 */
#include <string.h>

#include "../clear.h"
#include "bytes.h"
#include "crc.h"
#include "headers.h"

#define LNH_IBA_LOCAL 2
#define LNH_IBA_GLOBAL 3
#define PKT_LEN_MASK 0x7ff
#define IP_VERSION 6
#define NEXT_HEADER_IBA 0x1b

/* Building */

/* BTH to ICRC. */
static size_t transport_len(const HcaPacket *packet)
{
    return hca_header_size(packet->opcode) + packet->payload_len + packet->pad +
           HCA_ICRC_SIZE;
}

static void build_lrh(const HcaPacket *packet, uint8_t *p, size_t len)
{
    p[0] = packet->vl << 4;
    p[1] = packet->sl << 4 | (packet->has_grh ? LNH_IBA_GLOBAL : LNH_IBA_LOCAL);
    put_be16(p + 2, packet->dlid);
    put_be16(p + 4, (len / 4) & PKT_LEN_MASK);
    put_be16(p + 6, packet->slid);
}

static void build_grh(const HcaPacket *packet, uint8_t *p, size_t len)
{
    put_be32(p, (uint32_t)IP_VERSION << 28 | (uint32_t)packet->tclass << 20 |
                    (packet->flow_label & 0xfffff));
    put_be16(p + 4, len);
    p[6] = NEXT_HEADER_IBA;
    p[7] = packet->hop_limit;
    memcpy(p + 8, packet->sgid.raw, sizeof(packet->sgid.raw));
    memcpy(p + 24, packet->dgid.raw, sizeof(packet->dgid.raw));
}

size_t hca_ib_build(HcaPacket *packet, uint8_t *header)
{
    size_t network_size = packet->has_grh ? HCA_GRH_SIZE : 0;
    size_t bth = HCA_LRH_SIZE + network_size;
    size_t len;

    packet->pad = -packet->payload_len & 3;
    len = transport_len(packet);
    build_lrh(packet, header, bth + len);
    if (packet->has_grh) {
        build_grh(packet, header + HCA_LRH_SIZE, len);
    }
    hca_header_build(packet, header + bth);
    return bth + hca_header_size(packet->opcode);
}

/* Least significant byte first: the highest terms (IBA 7.8). */
static void put_icrc(uint8_t *p, uint32_t crc)
{
    p[0] = crc;
    p[1] = crc >> 8;
    p[2] = crc >> 16;
    p[3] = crc >> 24;
}

static void put_vcrc(uint8_t *p, uint16_t crc)
{
    p[0] = crc;
    p[1] = crc >> 8;
}

/* CRCs of the bytes from LRH on, up to ICRC. */
typedef struct Crcs {
    uint32_t icrc; /* IBA 7.8.1 */
    uint16_t vcrc; /* IBA 7.8.2; of ICRC, too, when that is known */
} Crcs;

/* @len: at least up to the end of BTH. */
static Crcs crcs_of(const uint8_t *frame, size_t len, bool has_grh)
{
    size_t masked = HCA_LRH_SIZE + HCA_BTH_SIZE + (has_grh ? HCA_GRH_SIZE : 0);
    Crcs crcs = {
        .icrc = hca_icrc_masked_headers(frame, has_grh),
        .vcrc = hca_vcrc_update(HCA_VCRC_INIT, frame, masked),
    };

    hca_crcs_update(&crcs.icrc, &crcs.vcrc, frame + masked, len - masked);
    return crcs;
}

size_t hca_ib_seal(const HcaPacket *packet, uint8_t *frame, size_t len)
{
    Crcs crcs;

    hca_clear(frame + len, packet->pad);
    len += packet->pad;
    crcs = crcs_of(frame, len, packet->has_grh);
    put_icrc(frame + len, crcs.icrc);
    crcs.vcrc = hca_vcrc_update(crcs.vcrc, frame + len, HCA_ICRC_SIZE);
    len += HCA_ICRC_SIZE;
    put_vcrc(frame + len, crcs.vcrc);
    return len + HCA_VCRC_SIZE;
}

/* Parsing */

/* Whether the CRCs of a packet are right. */
typedef struct Verdict {
    bool vcrc, icrc;
} Verdict;

/* @len: LRH to VCRC. What has no place for an ICRC has none that is right. */
static Verdict judge_crcs(const uint8_t *frame, size_t len)
{
    bool has_grh = (frame[1] & 3) == LNH_IBA_GLOBAL;
    size_t least = HCA_LRH_SIZE + HCA_BTH_SIZE + (has_grh ? HCA_GRH_SIZE : 0) +
                   HCA_ICRC_SIZE;
    uint8_t icrc[HCA_ICRC_SIZE], vcrc[HCA_VCRC_SIZE];
    Crcs crcs = { .vcrc = HCA_VCRC_INIT };
    size_t done = 0;
    Verdict good = { 0 };

    len -= HCA_VCRC_SIZE;
    if (len >= least) {
        done = len - HCA_ICRC_SIZE;
        crcs = crcs_of(frame, done, has_grh);
        put_icrc(icrc, crcs.icrc);
        good.icrc = memcmp(icrc, frame + done, sizeof(icrc)) == 0;
    }
    put_vcrc(vcrc, hca_vcrc_update(crcs.vcrc, frame + done, len - done));
    good.vcrc = memcmp(vcrc, frame + len, sizeof(vcrc)) == 0;
    return good;
}

/* @len: LRH to ICRC, as arrived. */
static HcaParseError parse_lrh(HcaPacket *packet, const uint8_t *p, size_t len)
{
    unsigned lnh = p[1] & 3;

    packet->vl = p[0] >> 4;
    packet->sl = p[1] >> 4;
    packet->dlid = get_be16(p + 2);
    packet->slid = get_be16(p + 6);
    packet->has_grh = lnh == LNH_IBA_GLOBAL;
    if (p[0] & 0x0f) {
        return HCA_PARSE_VERSION;
    }
    if (lnh != LNH_IBA_LOCAL && lnh != LNH_IBA_GLOBAL) {
        return HCA_PARSE_LNH;
    }
    if ((size_t)(get_be16(p + 4) & PKT_LEN_MASK) * 4 != len) {
        return HCA_PARSE_LENGTH;
    }
    return HCA_PARSE_OK;
}

/* @len: what follows GRH, to ICRC. */
static HcaParseError parse_grh(HcaPacket *packet, const uint8_t *p, size_t len)
{
    uint32_t word = get_be32(p);

    packet->tclass = word >> 20;
    packet->flow_label = word & 0xfffff;
    packet->hop_limit = p[7];
    memcpy(packet->sgid.raw, p + 8, sizeof(packet->sgid.raw));
    memcpy(packet->dgid.raw, p + 24, sizeof(packet->dgid.raw));
    if (word >> 28 != IP_VERSION) {
        return HCA_PARSE_VERSION;
    }
    if (p[6] != NEXT_HEADER_IBA) {
        return HCA_PARSE_LNH;
    }
    return get_be16(p + 4) == len ? HCA_PARSE_OK : HCA_PARSE_LENGTH;
}

/* Check GRH, if there is one, and ICRC. @len: LRH to ICRC. */
static HcaParseError parse_network(HcaPacket *packet, const uint8_t *frame,
                                   size_t len, bool icrc_is_good)
{
    size_t before_bth = HCA_LRH_SIZE + (packet->has_grh ? HCA_GRH_SIZE : 0);
    HcaParseError error = HCA_PARSE_OK;

    if (len < before_bth + HCA_BTH_SIZE + HCA_ICRC_SIZE) {
        return HCA_PARSE_SHORT;
    }
    if (packet->has_grh) {
        error = parse_grh(packet, frame + HCA_LRH_SIZE, len - before_bth);
    }
    return error == HCA_PARSE_OK && !icrc_is_good ? HCA_PARSE_ICRC : error;
}

HcaParseError hca_ib_parse(HcaPacket *packet, const uint8_t *frame, size_t len)
{
    HcaParseError error;
    size_t before_bth;
    Verdict good;

    hca_clear(packet, sizeof(*packet));
    if (len < HCA_LRH_SIZE + HCA_VCRC_SIZE) {
        return HCA_PARSE_SHORT;
    }
    good = judge_crcs(frame, len);
    if (!good.vcrc) {
        return HCA_PARSE_VCRC;
    }
    len -= HCA_VCRC_SIZE;
    error = parse_lrh(packet, frame, len);
    if (error != HCA_PARSE_OK) {
        return error;
    }
    error = parse_network(packet, frame, len, good.icrc);
    if (error != HCA_PARSE_OK) {
        return error;
    }
    before_bth = HCA_LRH_SIZE + (packet->has_grh ? HCA_GRH_SIZE : 0);
    return hca_header_parse(packet, frame + before_bth,
                            len - before_bth - HCA_ICRC_SIZE);
}

HcaParseError hca_ib_parse_headers(HcaPacket *packet, const uint8_t *headers,
                                   size_t len)
{
    HcaParseError error;
    size_t whole, before_bth;

    hca_clear(packet, sizeof(*packet));
    if (len < HCA_LRH_SIZE) {
        return HCA_PARSE_SHORT;
    }
    whole = (size_t)(get_be16(headers + 4) & PKT_LEN_MASK) * 4;
    error = parse_lrh(packet, headers, whole);
    if (error != HCA_PARSE_OK) {
        return error;
    }
    before_bth = HCA_LRH_SIZE + (packet->has_grh ? HCA_GRH_SIZE : 0);
    if (len < before_bth || whole < len + HCA_ICRC_SIZE) {
        return HCA_PARSE_SHORT;
    }
    if (packet->has_grh) {
        error = parse_grh(packet, headers + HCA_LRH_SIZE, whole - before_bth);
    }
    if (error == HCA_PARSE_OK) {
        error = hca_header_parse(packet, headers + before_bth,
                                 len - before_bth);
    }
    if (error == HCA_PARSE_OK && packet->payload_len) {
        error = HCA_PARSE_LENGTH;
    }
    packet->payload_len = whole - len - HCA_ICRC_SIZE;
    return error;
}

const uint8_t *hca_ib_bth(const uint8_t *frame, size_t len)
{
    size_t before_bth = HCA_LRH_SIZE;

    if (len < HCA_LRH_SIZE) {
        return NULL;
    }
    switch (frame[1] & 3) {
    case LNH_IBA_GLOBAL:
        before_bth += HCA_GRH_SIZE;
        break;
    case LNH_IBA_LOCAL:
        break;
    default:
        return NULL;
    }
    return len < before_bth + HCA_BTH_SIZE ? NULL : frame + before_bth;
}

const HcaEncap hca_encap_ib = {
    .build = hca_ib_build,
    .seal = hca_ib_seal,
    .parse = hca_ib_parse,
    .bth = hca_ib_bth,
};
