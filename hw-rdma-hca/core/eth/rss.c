/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive-side scaling: the Toeplitz hash of a frame's addresses and ports, as
 * Microsoft has published it. Each bit of what is hashed that is set adds the
 * 32 bits of the key that begin at its place; here half a byte at a time.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "eth_int.h"

#define PORTS_SIZE 4

/* The last window ends within the key. */
G_STATIC_ASSERT(HCA_RSS_KEY_SIZE * 8 >= HCA_RSS_MAX_INPUT * 8 + 32);

/* 32 bits of the key, from @bit on. */
static uint32_t window(const uint8_t *key, unsigned bit)
{
    uint64_t bits = (uint64_t)get_be32(key + bit / 8) << 8 | key[bit / 8 + 4];

    return bits >> (8 - bit % 8);
}

static void set_part(uint32_t *part, const uint8_t *key, unsigned bit)
{
    part[0] = 0;
    for (unsigned i = 0; i < 4; i++) {
        part[8 >> i] = window(key, bit + i);
    }
    for (unsigned value = 1; value < 16; value++) {
        part[value] = part[value & (value - 1)] ^ part[value & -value];
    }
}

void hca_rss_set(HcaRss *rss, const HcaRssSetup *setup)
{
    rss->types = setup->types;
    for (unsigned i = 0; i < G_N_ELEMENTS(rss->part); i++) {
        set_part(rss->part[i], setup->key, 4 * i);
    }
    memcpy(rss->table, setup->table, sizeof(rss->table));
}

/* Add @len bytes that come behind @at others. */
static uint32_t add(const HcaRss *rss, uint32_t hash, size_t at,
                    const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        hash ^= rss->part[2 * (at + i)][data[i] >> 4];
        hash ^= rss->part[2 * (at + i) + 1][data[i] & 0xf];
    }
    return hash;
}

/* What of the frame is to be hashed. */
static HcaRssType type_of(const HcaRss *rss, const HcaEthHeaders *headers)
{
    bool ports = !headers->fragment && headers->len >= PORTS_SIZE;
    HcaRssType type = HCA_RSS_NONE;

    if (ports && headers->protocol == HCA_PROTO_TCP) {
        type = headers->ipv6 ? HCA_RSS_TCP_IPV6 : HCA_RSS_TCP_IPV4;
    } else if (ports && headers->protocol == HCA_PROTO_UDP) {
        type = headers->ipv6 ? HCA_RSS_UDP_IPV6 : HCA_RSS_UDP_IPV4;
    }
    if (!(type & rss->types)) {
        type = headers->ipv6 ? HCA_RSS_IPV6 : HCA_RSS_IPV4;
    }
    return type & rss->types;
}

HcaRssType hca_rss_hash(const HcaRss *rss, const HcaEthHeaders *headers,
                        uint32_t *hash)
{
    HcaRssType type = headers->addresses ? type_of(rss, headers) : HCA_RSS_NONE;

    if (type == HCA_RSS_NONE) {
        return type;
    }
    *hash = add(rss, 0, 0, headers->addresses, headers->addresses_len);
    if (!(type & (HCA_RSS_IPV4 | HCA_RSS_IPV6))) {
        *hash = add(rss, *hash, headers->addresses_len, headers->data,
                    PORTS_SIZE);
    }
    return type;
}
