/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets of a RoCEv2 link (annex A17): Ethernet, at most one VLAN tag, IPv4
 * or IPv6, UDP, the transport headers, payload, pad and ICRC.
 *
 * A frame is RoCEv2 if UDP's port 4791 is where a good packet has it. Only
 * then its faults are counted and the frame dropped; all else, a later fragment
 * too, belongs to the network interface.
 *
 * The checks on arrival are in the order of the headers, then ICRC, and only
 * then what the transport headers say.
 */
#include <string.h>

#include "../clear.h"
#include "bytes.h"
#include "crc.h"
#include "headers.h"

#define VLAN_TAG_SIZE 4
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV6 0x86dd

#define IPV4_DONT_FRAGMENT 0x4000
#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV6_FRAGMENT_SIZE 8
#define IPV6_FRAGMENT_OFFSET 0xfff8

#define IP_PROTOCOL_UDP 17
#define IP_PROTOCOL_IPV6_FRAGMENT 44

#define CNP_RESERVED_SIZE 16 /* A17.9.3: behind BTH, zero */

const uint8_t hca_ipv4_mapped[12] = { [10] = 0xff, [11] = 0xff };

/* Sums of 16 bits (RFC 1071) of a few headers and a packet: no overflow. */
static uint32_t add_words(uint32_t sum, const uint8_t *p, size_t len)
{
    for (; len > 1; len -= 2, p += 2) {
        sum += get_be16(p);
    }
    return len ? sum + (p[0] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

static size_t ip_header_size(bool is_ipv4)
{
    return is_ipv4 ? HCA_IPV4_HEADER_SIZE : HCA_IPV6_HEADER_SIZE;
}

/* Building */

static size_t eth_size(const HcaPacket *packet)
{
    return HCA_ETH_HEADER_SIZE + (packet->has_vlan ? VLAN_TAG_SIZE : 0);
}

/* BTH and the extended headers. */
static size_t transport_header_size(uint8_t opcode)
{
    return opcode == HCA_BTH_CNP ? HCA_BTH_SIZE + CNP_RESERVED_SIZE
                                 : hca_header_size(opcode);
}

static void build_eth(const HcaPacket *packet, uint8_t *p)
{
    memcpy(p, packet->dmac, sizeof(packet->dmac));
    memcpy(p + 6, packet->smac, sizeof(packet->smac));
    p += 12;
    if (packet->has_vlan) {
        put_be16(p, ETHERTYPE_VLAN);
        put_be16(p + 2, packet->vlan_tci);
        p += VLAN_TAG_SIZE;
    }
    put_be16(p, packet->is_ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
}

/* @len: with the header. A datagram that is whole needs no identification. */
static void build_ipv4(const HcaPacket *packet, uint8_t *p, size_t len)
{
    p[0] = 4 << 4 | HCA_IPV4_HEADER_SIZE / 4;
    p[1] = packet->tclass;
    put_be16(p + 2, len);
    put_be16(p + 4, 0);
    put_be16(p + 6, IPV4_DONT_FRAGMENT);
    p[8] = packet->hop_limit;
    p[9] = IP_PROTOCOL_UDP;
    put_be16(p + 10, 0);
    memcpy(p + 12, packet->sgid.raw + sizeof(hca_ipv4_mapped), 4);
    memcpy(p + 16, packet->dgid.raw + sizeof(hca_ipv4_mapped), 4);
    put_be16(p + 10, ~fold(add_words(0, p, HCA_IPV4_HEADER_SIZE)));
}

/* @len: what follows the header. */
static void build_ipv6(const HcaPacket *packet, uint8_t *p, size_t len)
{
    put_be32(p, (uint32_t)6 << 28 | (uint32_t)packet->tclass << 20 |
                    (packet->flow_label & 0xfffff));
    put_be16(p + 4, len);
    p[6] = IP_PROTOCOL_UDP;
    p[7] = packet->hop_limit;
    memcpy(p + 8, packet->sgid.raw, sizeof(packet->sgid.raw));
    memcpy(p + 24, packet->dgid.raw, sizeof(packet->dgid.raw));
}

/* No checksum: ICRC does better (A17.3.1.3; RFC 6935 for IPv6). */
static void build_udp(const HcaPacket *packet, uint8_t *p, size_t len)
{
    put_be16(p, packet->udp_sport);
    put_be16(p + 2, HCA_ROCE_UDP_PORT);
    put_be16(p + 4, len);
    put_be16(p + 6, 0);
}

size_t hca_roce_build(HcaPacket *packet, uint8_t *header)
{
    size_t transport = transport_header_size(packet->opcode);
    uint8_t *ip = header + eth_size(packet);
    uint8_t *udp = ip + ip_header_size(packet->is_ipv4);
    uint8_t *bth = udp + HCA_UDP_HEADER_SIZE;
    size_t udp_len;

    packet->pad = -packet->payload_len & 3;
    udp_len = HCA_UDP_HEADER_SIZE + transport + packet->payload_len +
              packet->pad + HCA_ICRC_SIZE;
    build_eth(packet, header);
    if (packet->is_ipv4) {
        build_ipv4(packet, ip, HCA_IPV4_HEADER_SIZE + udp_len);
    } else {
        build_ipv6(packet, ip, udp_len);
    }
    build_udp(packet, udp, udp_len);
    if (packet->opcode == HCA_BTH_CNP) {
        hca_bth_build(packet, bth);
        memset(bth + HCA_BTH_SIZE, 0, CNP_RESERVED_SIZE);
    } else {
        hca_header_build(packet, bth);
    }
    return bth + transport - header;
}

/* The ICRC of @len bytes from IP on, as it lies in a packet. */
static void make_icrc(const uint8_t *ip, size_t len, bool is_ipv4, uint8_t *out)
{
    size_t masked = ip_header_size(is_ipv4) + HCA_UDP_HEADER_SIZE +
                    HCA_BTH_SIZE;
    uint32_t crc = hca_icrc_update(hca_icrc_masked_ip_headers(ip, is_ipv4),
                                   ip + masked, len - masked);

    for (unsigned i = 0; i < HCA_ICRC_SIZE; i++) {
        out[i] = crc >> 8 * i;
    }
}

size_t hca_roce_seal(const HcaPacket *packet, uint8_t *frame, size_t len)
{
    size_t eth = eth_size(packet);

    hca_clear(frame + len, packet->pad);
    len += packet->pad;
    make_icrc(frame + eth, len - eth, packet->is_ipv4, frame + len);
    len += HCA_ICRC_SIZE;
    if (len < HCA_ETH_MIN_FRAME) {
        memset(frame + len, 0, HCA_ETH_MIN_FRAME - len);
        len = HCA_ETH_MIN_FRAME;
    }
    return len;
}

/* Parsing */

/* @ip: where the IP header begins. */
static HcaParseError parse_eth(HcaPacket *packet, const uint8_t *frame,
                               size_t len, size_t *ip)
{
    uint16_t type;

    if (len < HCA_ETH_HEADER_SIZE) {
        return HCA_PARSE_SHORT;
    }
    memcpy(packet->dmac, frame, sizeof(packet->dmac));
    memcpy(packet->smac, frame + 6, sizeof(packet->smac));
    type = get_be16(frame + 12);
    *ip = HCA_ETH_HEADER_SIZE;
    if (type == ETHERTYPE_VLAN) {
        if (len - HCA_ETH_HEADER_SIZE < VLAN_TAG_SIZE) {
            return HCA_PARSE_SHORT;
        }
        packet->has_vlan = true;
        packet->vlan_tci = get_be16(frame + HCA_ETH_HEADER_SIZE);
        type = get_be16(frame + HCA_ETH_HEADER_SIZE + 2);
        *ip += VLAN_TAG_SIZE;
    }
    packet->is_ipv4 = type == ETHERTYPE_IPV4;
    return packet->is_ipv4 || type == ETHERTYPE_IPV6 ? HCA_PARSE_OK
                                                     : HCA_PARSE_NOT_ROCE;
}

/*
 * Where UDP, if that is the protocol, begins by the word of the IP header; 0 if
 * there is none. @len: of what arrived from there on.
 */
static size_t find_udp_ipv4(const uint8_t *ip, size_t len)
{
    size_t size;

    if (len < HCA_IPV4_HEADER_SIZE || ip[9] != IP_PROTOCOL_UDP ||
        get_be16(ip + 6) & IPV4_FRAGMENT_OFFSET) {
        return 0;
    }
    size = (ip[0] & 15) * 4;
    return size < HCA_IPV4_HEADER_SIZE ? HCA_IPV4_HEADER_SIZE : size;
}

static size_t find_udp_ipv6(const uint8_t *ip, size_t len)
{
    const uint8_t *fragment = ip + HCA_IPV6_HEADER_SIZE;

    if (len < HCA_IPV6_HEADER_SIZE) {
        return 0;
    }
    if (ip[6] == IP_PROTOCOL_UDP) {
        return HCA_IPV6_HEADER_SIZE;
    }
    if (ip[6] != IP_PROTOCOL_IPV6_FRAGMENT ||
        len - HCA_IPV6_HEADER_SIZE < IPV6_FRAGMENT_SIZE ||
        fragment[0] != IP_PROTOCOL_UDP ||
        get_be16(fragment + 2) & IPV6_FRAGMENT_OFFSET) {
        return 0;
    }
    return HCA_IPV6_HEADER_SIZE + IPV6_FRAGMENT_SIZE;
}

/* The same, 0 also if UDP's destination is not RoCEv2's or not there. */
static size_t find_roce(const uint8_t *ip, size_t len, bool is_ipv4)
{
    size_t udp = is_ipv4 ? find_udp_ipv4(ip, len) : find_udp_ipv6(ip, len);

    if (!udp || len < udp || len - udp < 4 ||
        get_be16(ip + udp + 2) != HCA_ROCE_UDP_PORT) {
        return 0;
    }
    return udp;
}

/*
 * The next two: @len bytes arrived, with the IP header and the ports. What IP
 * says of its length comes back, header and all.
 */
static HcaParseError parse_ipv4(HcaPacket *packet, const uint8_t *ip,
                                size_t *len)
{
    size_t total = get_be16(ip + 2);

    packet->tclass = ip[1];
    packet->hop_limit = ip[8];
    memcpy(packet->sgid.raw, hca_ipv4_mapped, sizeof(hca_ipv4_mapped));
    memcpy(packet->sgid.raw + sizeof(hca_ipv4_mapped), ip + 12, 4);
    memcpy(packet->dgid.raw, hca_ipv4_mapped, sizeof(hca_ipv4_mapped));
    memcpy(packet->dgid.raw + sizeof(hca_ipv4_mapped), ip + 16, 4);
    if (ip[0] >> 4 != 4) {
        return HCA_PARSE_VERSION;
    }
    if ((ip[0] & 15) * 4 != HCA_IPV4_HEADER_SIZE ||
        fold(add_words(0, ip, HCA_IPV4_HEADER_SIZE)) != 0xffff) {
        return HCA_PARSE_IP_HEADER;
    }
    if (get_be16(ip + 6) & IPV4_MORE_FRAGMENTS) {
        return HCA_PARSE_FRAGMENT;
    }
    if (total > *len) {
        return HCA_PARSE_LENGTH;
    }
    *len = total;
    return HCA_PARSE_OK;
}

static HcaParseError parse_ipv6(HcaPacket *packet, const uint8_t *ip,
                                size_t *len)
{
    uint32_t word = get_be32(ip);
    size_t payload = get_be16(ip + 4);

    packet->tclass = word >> 20;
    packet->flow_label = word & 0xfffff;
    packet->hop_limit = ip[7];
    memcpy(packet->sgid.raw, ip + 8, sizeof(packet->sgid.raw));
    memcpy(packet->dgid.raw, ip + 24, sizeof(packet->dgid.raw));
    if (word >> 28 != 6) {
        return HCA_PARSE_VERSION;
    }
    if (ip[6] == IP_PROTOCOL_IPV6_FRAGMENT) {
        return HCA_PARSE_FRAGMENT;
    }
    if (payload > *len - HCA_IPV6_HEADER_SIZE) {
        return HCA_PARSE_LENGTH;
    }
    *len = HCA_IPV6_HEADER_SIZE + payload;
    return HCA_PARSE_OK;
}

/* RFC 768, and RFC 8200 8.1 with its pseudo-header. @len: of UDP. */
static bool udp_checksum_is_good(const uint8_t *ip, const uint8_t *udp,
                                 size_t len, bool is_ipv4)
{
    uint32_t sum = IP_PROTOCOL_UDP + len;

    if (get_be16(udp + 6) == 0) { /* the sender made none */
        return true;
    }
    sum = is_ipv4 ? add_words(sum, ip + 12, 8) : add_words(sum, ip + 8, 32);
    return fold(add_words(sum, udp, len)) == 0xffff;
}

/* @len: of IP, header and all, all of it arrived. */
static HcaParseError parse_udp(HcaPacket *packet, const uint8_t *ip, size_t len)
{
    size_t before = ip_header_size(packet->is_ipv4);
    const uint8_t *udp = ip + before;

    if (len < before + HCA_UDP_HEADER_SIZE) {
        return HCA_PARSE_SHORT;
    }
    len -= before;
    packet->udp_sport = get_be16(udp);
    if (get_be16(udp + 4) != len ||
        !udp_checksum_is_good(ip, udp, len, packet->is_ipv4)) {
        return HCA_PARSE_UDP;
    }
    return HCA_PARSE_OK;
}

/* @len: of what follows UDP. */
static HcaParseError check_icrc(const HcaPacket *packet, const uint8_t *ip,
                                size_t len)
{
    size_t before = ip_header_size(packet->is_ipv4) + HCA_UDP_HEADER_SIZE;
    uint8_t icrc[HCA_ICRC_SIZE];
    size_t covered;

    if (len < HCA_BTH_SIZE + HCA_ICRC_SIZE) {
        return HCA_PARSE_SHORT;
    }
    if (len % 4) { /* it is padded to words (IBA 9.2.5) */
        return HCA_PARSE_LENGTH;
    }
    covered = before + len - HCA_ICRC_SIZE;
    make_icrc(ip, covered, packet->is_ipv4, icrc);
    return memcmp(icrc, ip + covered, sizeof(icrc)) ? HCA_PARSE_ICRC
                                                    : HCA_PARSE_OK;
}

/* @len: without ICRC, BTH at least. */
static HcaParseError parse_cnp(HcaPacket *packet, const uint8_t *bth,
                               size_t len)
{
    HcaParseError error = hca_bth_parse(packet, bth);

    if (error != HCA_PARSE_OK) {
        return error;
    }
    if (len < HCA_BTH_SIZE + CNP_RESERVED_SIZE) {
        return HCA_PARSE_SHORT;
    }
    packet->payload = bth + HCA_BTH_SIZE + CNP_RESERVED_SIZE;
    return len > HCA_BTH_SIZE + CNP_RESERVED_SIZE || packet->pad
               ? HCA_PARSE_LENGTH
               : HCA_PARSE_OK;
}

/* The frame is RoCEv2; @len bytes of it arrived from @ip on. */
static HcaParseError parse_roce(HcaPacket *packet, const uint8_t *ip,
                                size_t len)
{
    size_t before_bth = ip_header_size(packet->is_ipv4) + HCA_UDP_HEADER_SIZE;
    const uint8_t *bth = ip + before_bth;
    HcaParseError error = packet->is_ipv4 ? parse_ipv4(packet, ip, &len)
                                          : parse_ipv6(packet, ip, &len);

    if (error == HCA_PARSE_OK) {
        error = parse_udp(packet, ip, len);
    }
    if (error == HCA_PARSE_OK) {
        error = check_icrc(packet, ip, len - before_bth);
    }
    if (error != HCA_PARSE_OK) {
        return error;
    }
    len -= before_bth + HCA_ICRC_SIZE;
    return bth[0] == HCA_BTH_CNP ? parse_cnp(packet, bth, len)
                                 : hca_header_parse(packet, bth, len);
}

HcaParseError hca_roce_parse(HcaPacket *packet, const uint8_t *frame,
                             size_t len)
{
    HcaParseError error;
    size_t at = 0;

    hca_clear(packet, sizeof(*packet));
    error = parse_eth(packet, frame, len, &at);
    if (error != HCA_PARSE_OK) {
        return error;
    }
    if (!find_roce(frame + at, len - at, packet->is_ipv4)) {
        return HCA_PARSE_NOT_ROCE;
    }
    packet->has_grh = true;
    packet->ip_header = frame + at;
    return parse_roce(packet, frame + at, len - at);
}

const uint8_t *hca_roce_bth(const uint8_t *frame, size_t len)
{
    HcaPacket packet = { 0 };
    size_t at = 0, udp;

    if (parse_eth(&packet, frame, len, &at) != HCA_PARSE_OK) {
        return NULL;
    }
    udp = find_roce(frame + at, len - at, packet.is_ipv4);
    if (!udp || len - at - udp < HCA_UDP_HEADER_SIZE + HCA_BTH_SIZE) {
        return NULL;
    }
    return frame + at + udp + HCA_UDP_HEADER_SIZE;
}

bool hca_roce_mark(uint8_t *frame, size_t len)
{
    HcaPacket packet = { 0 };
    uint16_t was, sum;
    uint8_t *ip;
    size_t at = 0;

    if (parse_eth(&packet, frame, len, &at) != HCA_PARSE_OK ||
        !find_roce(frame + at, len - at, packet.is_ipv4)) {
        return false;
    }
    ip = frame + at;
    if (!packet.is_ipv4) {
        ip[1] |= HCA_ECN_CE << 4;
        return true;
    }
    was = get_be16(ip);
    ip[1] |= HCA_ECN_CE;
    sum = ~get_be16(ip + 10); /* RFC 1624, equation 3 */
    put_be16(ip + 10, ~fold((uint32_t)sum + (uint16_t)~was + get_be16(ip)));
    return true;
}

const HcaEncap hca_encap_roce = {
    .build = hca_roce_build,
    .seal = hca_roce_seal,
    .parse = hca_roce_parse,
    .bth = hca_roce_bth,
    .mark = hca_roce_mark,
};
