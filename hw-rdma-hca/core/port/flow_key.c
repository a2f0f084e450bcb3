/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What rules look at of a frame. A header that is cut off, or is not what the
 * one before it says, is not there, and nothing behind it is.
 */
#include <string.h>

#include <glib.h>

#include "../wire/bytes.h"
#include "../wire/wire.h"
#include "flow_table.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_SERVICE_VLAN 0x88a8
#define VLAN_TAG_SIZE 4
#define MAX_VLAN_TAGS 2 /* IEEE 802.1ad */
#define IPV4_FRAGMENT_OFFSET 0x1fff
#define FLOW_LABEL_MASK 0xfffffu
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

G_STATIC_ASSERT(sizeof(HcaFlowKey) == 64);

/* What is left of the frame. */
typedef struct Rest {
    const uint8_t *at;
    size_t len;
} Rest;

static void skip(Rest *rest, size_t len)
{
    rest->at += len;
    rest->len -= len;
}

/* Addresses, tags and type; the type is in front of @rest. */
static uint16_t ethernet(Rest *rest, HcaFlowKey *key)
{
    uint16_t type;

    memcpy(key->dmac, rest->at, sizeof(key->dmac));
    memcpy(key->smac, rest->at + sizeof(key->dmac), sizeof(key->smac));
    skip(rest, HCA_ETH_HEADER_SIZE);
    type = get_be16(rest->at - 2);
    for (unsigned tags = 0; tags < MAX_VLAN_TAGS; tags++) {
        if ((type != ETHERTYPE_VLAN && type != ETHERTYPE_SERVICE_VLAN) ||
            rest->len < VLAN_TAG_SIZE) {
            break;
        }
        if (!tags) {
            key->layers |= HCA_FLOW_HAS_VLAN;
            memcpy(key->vlan_tci, rest->at, sizeof(key->vlan_tci));
        }
        skip(rest, VLAN_TAG_SIZE);
        type = get_be16(rest->at - 2);
    }
    put_be16(key->ether_type, type);
    return type;
}

static void ports(const Rest *rest, HcaFlowKey *key)
{
    if ((key->protocol == PROTOCOL_TCP || key->protocol == PROTOCOL_UDP) &&
        rest->len >= sizeof(key->sport) + sizeof(key->dport)) {
        key->layers |= HCA_FLOW_HAS_PORTS;
        memcpy(key->sport, rest->at, sizeof(key->sport));
        memcpy(key->dport, rest->at + 2, sizeof(key->dport));
    }
}

static void ipv4_address(uint8_t *to, const uint8_t *from)
{
    memcpy(to, hca_ipv4_mapped, sizeof(hca_ipv4_mapped));
    memcpy(to + sizeof(hca_ipv4_mapped), from, 4);
}

static void ipv4(Rest *rest, HcaFlowKey *key)
{
    const uint8_t *ip = rest->at;
    size_t header;

    if (rest->len < HCA_IPV4_HEADER_SIZE || ip[0] >> 4 != 4) {
        return;
    }
    header = (ip[0] & 0xf) * 4;
    if (header < HCA_IPV4_HEADER_SIZE || header > rest->len) {
        return;
    }
    key->layers |= HCA_FLOW_HAS_IPV4;
    key->tclass = ip[1];
    key->hop_limit = ip[8];
    key->protocol = ip[9];
    ipv4_address(key->sip, ip + 12);
    ipv4_address(key->dip, ip + 16);
    skip(rest, header);
    if (!(get_be16(ip + 6) & IPV4_FRAGMENT_OFFSET)) {
        ports(rest, key);
    }
}

/* Extension headers are what the protocol is then. */
static void ipv6(Rest *rest, HcaFlowKey *key)
{
    const uint8_t *ip = rest->at;

    if (rest->len < HCA_IPV6_HEADER_SIZE || ip[0] >> 4 != 6) {
        return;
    }
    key->layers |= HCA_FLOW_HAS_IPV6;
    key->tclass = get_be16(ip) >> 4;
    put_be32(key->flow_label, get_be32(ip) & FLOW_LABEL_MASK);
    key->protocol = ip[6];
    key->hop_limit = ip[7];
    memcpy(key->sip, ip + 8, sizeof(key->sip));
    memcpy(key->dip, ip + 24, sizeof(key->dip));
    skip(rest, HCA_IPV6_HEADER_SIZE);
    ports(rest, key);
}

void hca_flow_key(const uint8_t *frame, size_t len, HcaFlowKey *key)
{
    Rest rest = { frame, len };

    memset(key, 0, sizeof(*key));
    switch (ethernet(&rest, key)) {
    case ETHERTYPE_IPV4:
        ipv4(&rest, key);
        break;
    case ETHERTYPE_IPV6:
        ipv6(&rest, key);
        break;
    default:
        break;
    }
}
