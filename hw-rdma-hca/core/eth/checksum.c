/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Internet checksum (RFC 1071) of TCP and UDP. Sums are of 16-bit words in
 * memory order: the result is right in memory order, too.
 */
#include <string.h>

#include "eth_int.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define VLAN_TAG_SIZE 4
#define IPV4_MIN_HEADER 20
#define IPV6_HEADER 40
/* More fragments, and the fragment's offset. */
#define IPV4_FRAGMENT 0x3fff
#define PROTO_TCP 6
#define PROTO_UDP 17
#define TCP_MIN_HEADER 20
#define UDP_HEADER 8

/* A TCP segment or UDP datagram. */
typedef struct Datagram {
    const uint8_t *data;
    size_t len;
    uint8_t protocol;
    uint64_t addresses; /* sum of the IP addresses */
} Datagram;

static uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static uint64_t sum(const uint8_t *data, size_t len)
{
    uint64_t total = 0;
    uint32_t word = 0;

    for (; len >= sizeof(word); len -= sizeof(word), data += sizeof(word)) {
        memcpy(&word, data, sizeof(word));
        total += word;
    }
    word = 0;
    memcpy(&word, data, len);
    return total + word;
}

static uint16_t fold(uint64_t total)
{
    while (total >> 16) {
        total = (total >> 16) + (total & 0xffff);
    }
    return total;
}

bool hca_eth_checksum_fill(uint8_t *frame, size_t len, size_t start,
                           size_t offset)
{
    uint16_t value;

    if (start > len || offset > len - start ||
        sizeof(value) > len - start - offset) {
        return false;
    }
    value = ~fold(sum(frame + start, len - start));
    if (!value) {
        value = 0xffff; /* of UDP, 0 would be none (RFC 768) */
    }
    memcpy(frame + start + offset, &value, sizeof(value));
    return true;
}

static bool parse_ipv4(const uint8_t *ip, size_t len, Datagram *datagram)
{
    size_t header, total;

    if (len < IPV4_MIN_HEADER || ip[0] >> 4 != 4) {
        return false;
    }
    header = (ip[0] & 0xf) * 4;
    total = get16(ip + 2);
    if (header < IPV4_MIN_HEADER || total < header || total > len ||
        (get16(ip + 6) & IPV4_FRAGMENT)) {
        return false;
    }
    datagram->data = ip + header;
    datagram->len = total - header;
    datagram->protocol = ip[9];
    datagram->addresses = sum(ip + 12, 2 * 4);
    return true;
}

static bool parse_ipv6(const uint8_t *ip, size_t len, Datagram *datagram)
{
    if (len < IPV6_HEADER || ip[0] >> 4 != 6 ||
        get16(ip + 4) > len - IPV6_HEADER) {
        return false;
    }
    datagram->data = ip + IPV6_HEADER;
    datagram->len = get16(ip + 4);
    datagram->protocol = ip[6];
    datagram->addresses = sum(ip + 8, 2 * 16);
    return true;
}

static bool parse_frame(const uint8_t *frame, size_t len, Datagram *datagram)
{
    size_t at = HCA_ETH_HEADER_SIZE;
    uint16_t type = get16(frame + at - 2);

    if (type == ETHERTYPE_VLAN && len >= at + VLAN_TAG_SIZE) {
        at += VLAN_TAG_SIZE;
        type = get16(frame + at - 2);
    }
    switch (type) {
    case ETHERTYPE_IPV4:
        return parse_ipv4(frame + at, len - at, datagram);
    case ETHERTYPE_IPV6:
        return parse_ipv6(frame + at, len - at, datagram);
    default:
        return false;
    }
}

/* Whether there is a checksum, over all of the datagram. */
static bool has_checksum(const Datagram *datagram)
{
    const uint8_t *data = datagram->data;

    switch (datagram->protocol) {
    case PROTO_TCP:
        return datagram->len >= TCP_MIN_HEADER;
    case PROTO_UDP:
        return datagram->len >= UDP_HEADER &&
               get16(data + 4) == datagram->len && get16(data + 6) != 0;
    default:
        return false;
    }
}

bool hca_eth_checksum_right(const uint8_t *frame, size_t len)
{
    Datagram datagram;

    if (!parse_frame(frame, len, &datagram) || !has_checksum(&datagram)) {
        return false;
    }
    return fold(datagram.addresses + GUINT16_TO_BE(datagram.protocol) +
                GUINT16_TO_BE((uint16_t)datagram.len) +
                sum(datagram.data, datagram.len)) == 0xffff;
}
