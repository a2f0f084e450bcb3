/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The IP header of a frame that was received. */
#include "../wire/bytes.h"
#include "eth_int.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define VLAN_TAG_SIZE 4
#define IPV4_ADDRESSES 8
#define IPV6_ADDRESSES 32

static void parse_ipv4(const uint8_t *ip, size_t len, HcaEthHeaders *headers)
{
    size_t header, total;

    if (len < HCA_IPV4_HEADER_SIZE || ip[0] >> 4 != 4) {
        return;
    }
    header = (ip[0] & 0xf) * 4;
    total = get_be16(ip + 2);
    if (header < HCA_IPV4_HEADER_SIZE || total < header || total > len) {
        return;
    }
    *headers = (HcaEthHeaders) {
        .fragment = get_be16(ip + 6) & HCA_IPV4_FRAGMENT,
        .protocol = ip[9],
        .addresses = ip + 12,
        .addresses_len = IPV4_ADDRESSES,
        .data = ip + header,
        .len = total - header,
    };
}

static void parse_ipv6(const uint8_t *ip, size_t len, HcaEthHeaders *headers)
{
    if (len < HCA_IPV6_HEADER_SIZE || ip[0] >> 4 != 6 ||
        get_be16(ip + 4) > len - HCA_IPV6_HEADER_SIZE) {
        return;
    }
    *headers = (HcaEthHeaders) {
        .ipv6 = true,
        .protocol = ip[6],
        .addresses = ip + 8,
        .addresses_len = IPV6_ADDRESSES,
        .data = ip + HCA_IPV6_HEADER_SIZE,
        .len = get_be16(ip + 4),
    };
}

void hca_eth_parse(const uint8_t *frame, size_t len, HcaEthHeaders *headers)
{
    size_t at = HCA_ETH_HEADER_SIZE;
    uint16_t type = get_be16(frame + at - 2);

    *headers = (HcaEthHeaders) { 0 };
    if (type == ETHERTYPE_VLAN && len >= at + VLAN_TAG_SIZE) {
        at += VLAN_TAG_SIZE;
        type = get_be16(frame + at - 2);
    }
    if (type == ETHERTYPE_IPV4) {
        parse_ipv4(frame + at, len - at, headers);
    } else if (type == ETHERTYPE_IPV6) {
        parse_ipv6(frame + at, len - at, headers);
    }
}
