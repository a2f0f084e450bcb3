/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Internet checksum (RFC 1071) of TCP and UDP. Sums are of 16-bit words in
 * memory order: the result is right in memory order, too.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "eth_int.h"

#define TCP_MIN_HEADER 20
#define UDP_HEADER 8
#define UDP_CHECKSUM 6 /* its place in the header; TCP's is another */

uint64_t hca_eth_sum(const uint8_t *data, size_t len)
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

uint16_t hca_eth_checksum(uint64_t sum)
{
    return ~fold(sum);
}

bool hca_eth_checksum_fill(uint8_t *frame, size_t len, size_t start,
                           size_t offset)
{
    uint16_t value;

    if (start > len || offset > len - start ||
        sizeof(value) > len - start - offset) {
        return false;
    }
    value = hca_eth_checksum(hca_eth_sum(frame + start, len - start));
    if (!value && offset == UDP_CHECKSUM) {
        value = 0xffff; /* 0 would be none (RFC 768) */
    }
    memcpy(frame + start + offset, &value, sizeof(value));
    return true;
}

/* Whether there is a checksum, over all of the datagram. */
static bool has_checksum(const HcaEthHeaders *headers)
{
    const uint8_t *data = headers->data;

    switch (headers->protocol) {
    case HCA_PROTO_TCP:
        return headers->len >= TCP_MIN_HEADER;
    case HCA_PROTO_UDP:
        return headers->len >= UDP_HEADER &&
               get_be16(data + 4) == headers->len && get_be16(data + 6) != 0;
    default:
        return false;
    }
}

bool hca_eth_checksum_right(const HcaEthHeaders *headers)
{
    if (!headers->addresses || headers->fragment || !has_checksum(headers)) {
        return false;
    }
    return fold(hca_eth_sum(headers->addresses, headers->addresses_len) +
                GUINT16_TO_BE(headers->protocol) +
                GUINT16_TO_BE((uint16_t)headers->len) +
                hca_eth_sum(headers->data, headers->len)) == 0xffff;
}
