/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP segmentation: from the headers of a long segment to those of the ones
 * that are sent. What software says of the headers has to be what they are.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "eth_int.h"

#define TCP_MIN_HEADER 20
#define TCP_FLAGS 13
#define TCP_FIN_PSH 0x09
#define TCP_CWR 0x80
#define TCP_CHECKSUM 16

static bool check_ipv4(const uint8_t *ip, size_t len)
{
    return len >= HCA_IPV4_HEADER_SIZE && ip[0] >> 4 == 4 &&
           (ip[0] & 0xfu) * 4 == len && ip[9] == HCA_PROTO_TCP &&
           !(get_be16(ip + 6) & HCA_IPV4_FRAGMENT);
}

/* Without extension headers: one of them may change what the addresses are. */
static bool check_ipv6(const uint8_t *ip, size_t len)
{
    return len == HCA_IPV6_HEADER_SIZE && ip[0] >> 4 == 6 &&
           ip[6] == HCA_PROTO_TCP;
}

bool hca_eth_tso_check(HcaEthTso *tso)
{
    size_t ip_len, tcp_len;
    const uint8_t *ip, *tcp;

    if (tso->ip_start < HCA_ETH_HEADER_SIZE ||
        tso->tcp_start < tso->ip_start + HCA_IPV4_HEADER_SIZE ||
        tso->header_len < tso->tcp_start + TCP_MIN_HEADER) {
        return false;
    }
    ip = tso->header + tso->ip_start;
    tcp = tso->header + tso->tcp_start;
    ip_len = tso->tcp_start - tso->ip_start;
    tcp_len = tso->header_len - tso->tcp_start;
    tso->ipv6 = ip[0] >> 4 == 6;
    return (tso->ipv6 ? check_ipv6 : check_ipv4)(ip, ip_len) &&
           (tcp[12] >> 4) * 4u == tcp_len;
}

static void put_ipv4(const HcaEthTso *tso, uint8_t *ip, size_t len)
{
    size_t header = tso->tcp_start - tso->ip_start;
    uint16_t value;

    put_be16(ip + 2, len);
    put_be16(ip + 4, get_be16(ip + 4) + tso->segments);
    memset(ip + 10, 0, sizeof(value));
    value = hca_eth_checksum(hca_eth_sum(ip, header));
    memcpy(ip + 10, &value, sizeof(value));
}

/* What only the first segment says, or the last. */
static void put_tcp_flags(const HcaEthTso *tso, uint8_t *tcp, uint16_t len)
{
    if (tso->sent) {
        tcp[TCP_FLAGS] &= ~TCP_CWR;
    }
    if (len < tso->left) {
        tcp[TCP_FLAGS] &= ~TCP_FIN_PSH;
    }
}

/* @len: of the segment, with its header. */
static void put_tcp_checksum(const HcaEthTso *tso, uint8_t *frame, size_t len)
{
    const uint8_t *ip = frame + tso->ip_start;
    uint8_t *tcp = frame + tso->tcp_start;
    uint64_t addresses = tso->ipv6 ? hca_eth_sum(ip + 8, 2 * 16)
                                   : hca_eth_sum(ip + 12, 2 * 4);
    uint16_t value;

    memset(tcp + TCP_CHECKSUM, 0, sizeof(value));
    value = hca_eth_checksum(addresses + GUINT16_TO_BE(HCA_PROTO_TCP) +
                             GUINT16_TO_BE((uint16_t)len) +
                             hca_eth_sum(tcp, len));
    memcpy(tcp + TCP_CHECKSUM, &value, sizeof(value));
}

void hca_eth_tso_headers(const HcaEthTso *tso, uint8_t *frame, uint16_t len)
{
    uint8_t *ip = frame + tso->ip_start;
    uint8_t *tcp = frame + tso->tcp_start;
    size_t tcp_len = tso->header_len - tso->tcp_start + len;

    memcpy(frame, tso->header, tso->header_len);
    if (tso->ipv6) {
        put_be16(ip + 4, tcp_len);
    } else {
        put_ipv4(tso, ip, tso->tcp_start - tso->ip_start + tcp_len);
    }
    put_be32(tcp + 4, get_be32(tcp + 4) + tso->sent);
    put_tcp_flags(tso, tcp, len);
    put_tcp_checksum(tso, frame, tcp_len);
}
