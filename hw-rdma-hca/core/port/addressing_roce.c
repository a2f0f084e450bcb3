/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addressing on Ethernet (RoCEv2 annex A17; paths: interface document, tables
 * 3-2-40 and 3-4-4). A path without GRH is the document's: it brings both MACs
 * and IPv4 addresses along, and knows no VLAN. One with GRH (ours) names its
 * source by its place in the GID table. Either is looked up when a packet is
 * made.
 */
#include <string.h>

#include "port_int.h"

#define DEFAULT_HOP_LIMIT 64
/* Source ports are dynamic ones (A17.9.2): 0xc000 on, 14 bits of hash. */
#define SPORT_BASE 0xc000
#define SPORT_BITS 14
#define FLOW_LABEL_MASK 0xfffff

/*
 * The near end of a path; NULL: the port does not have it. A process writes
 * the paths of its datagrams, the kernel the table; so what the document's form
 * spells out has to be there as well.
 */
static const HcaGidEntry *source_of(const HcaPort *port, const HcaPath *path)
{
    HcaGid gid;

    if (path->grh) {
        return hca_gid_get(port, path->sgid_index);
    }
    gid = hca_gid_of_ipv4(path->sip);
    return hca_gid_find(port, &gid, 0, path->smac);
}

/* The near end of a path that packets can be sent along. */
static const HcaGidEntry *usable_source(const HcaPort *port,
                                        const HcaPath *path)
{
    const HcaGidEntry *source = source_of(port, path);

    return source &&
                   hca_gid_is_ipv4(&source->gid) == hca_gid_is_ipv4(&path->dgid)
               ? source
               : NULL;
}

static bool can_reach(const HcaPort *port, const HcaPath *path)
{
    return usable_source(port, path);
}

static bool is_own(const HcaPort *port, const HcaPath *path)
{
    const HcaGidEntry *source = source_of(port, path);

    return source && hca_gid_find(port, &path->dgid, source->vlan, NULL);
}

static bool is_multicast(const HcaPath *path)
{
    return hca_gid_is_multicast(&path->dgid);
}

/* A flow's packets have one source port, so that they keep their order. */
static uint16_t source_port(uint32_t flow_label, uint32_t qpn, uint32_t dqpn)
{
    uint64_t mix = (uint64_t)qpn * dqpn;

    if (!flow_label) {
        mix ^= mix >> 20;
        mix ^= mix >> 40;
        flow_label = mix & FLOW_LABEL_MASK;
    }
    flow_label ^= flow_label >> SPORT_BITS;
    return SPORT_BASE | (flow_label & ((1u << SPORT_BITS) - 1));
}

static bool fill(const HcaPort *port, uint32_t qpn, const HcaPath *path,
                 HcaPacket *packet)
{
    const HcaGidEntry *source = usable_source(port, path);

    if (!source) {
        return false;
    }
    memcpy(packet->dmac, path->dmac, sizeof(packet->dmac));
    memcpy(packet->smac, source->mac, sizeof(packet->smac));
    packet->has_vlan = source->has_vlan;
    packet->vlan_tci = (path->sl & 7) << HCA_VLAN_PRIORITY_SHIFT | source->vlan;
    packet->is_ipv4 = hca_gid_is_ipv4(&path->dgid);
    packet->sgid = source->gid;
    packet->dgid = path->dgid;
    packet->tclass = path->tclass;
    if (!(packet->tclass & HCA_ECN_MASK)) {
        packet->tclass |= HCA_ECN_ECT0;
    }
    packet->flow_label = path->flow_label;
    packet->hop_limit = path->hop_limit ? path->hop_limit : DEFAULT_HOP_LIMIT;
    packet->udp_sport = source_port(path->flow_label, qpn, packet->dest_qp);
    return true;
}

static bool came_along(const HcaPort *port, const HcaPath *path,
                       const HcaPacket *packet)
{
    const HcaGidEntry *source = source_of(port, path);

    return source && hca_gid_equal(&packet->sgid, &path->dgid) &&
           hca_gid_equal(&packet->dgid, &source->gid) &&
           hca_packet_vlan(packet) == source->vlan;
}

/*
 * Some network backends give a card its own multicast frames back; the QPs of
 * a group have had their copy by loopback.
 */
static bool is_group(const HcaPort *port, const HcaPacket *packet,
                     bool loopback)
{
    return hca_mcast_find(port, &packet->dgid) &&
           hca_gid_has_vlan(port, hca_packet_vlan(packet)) &&
           (loopback || !hca_gid_has_mac(port, packet->smac));
}

/* An IPv4 address inside IPv6 does not go over a wire (RFC 4038 4.2). */
static HcaArrival arrival(const HcaPort *port, const HcaPacket *packet,
                          bool loopback)
{
    if (packet->is_ipv4 != hca_gid_is_ipv4(&packet->dgid)) {
        return HCA_ARRIVAL_OTHER;
    }
    if (hca_gid_is_multicast(&packet->dgid)) {
        return is_group(port, packet, loopback) ? HCA_ARRIVAL_GROUP
                                                : HCA_ARRIVAL_OTHER;
    }
    return hca_gid_find(port, &packet->dgid, hca_packet_vlan(packet),
                        loopback ? NULL : packet->dmac)
               ? HCA_ARRIVAL_OWN
               : HCA_ARRIVAL_OTHER;
}

/* There is always an IP header, in the place of a GRH. */
static HcaSource source(const HcaPort *port, const HcaPacket *packet)
{
    return (HcaSource) {
        .vlan = hca_packet_vlan(packet),
        .sl = hca_packet_priority(packet),
        .grh = true,
        .ipv4 = packet->is_ipv4,
    };
}

/* The IP header that came, at the end (A17.4.5.2). */
static void datagram_header(const HcaPacket *packet, uint8_t *header)
{
    size_t size = packet->is_ipv4 ? HCA_IPV4_HEADER_SIZE : HCA_IPV6_HEADER_SIZE;

    memset(header, 0, HCA_GRH_SIZE);
    memcpy(header + HCA_GRH_SIZE - size, packet->ip_header, size);
}

const HcaAddressing hca_addressing_roce = {
    .encap = &hca_encap_roce,
    .can_reach = can_reach,
    .is_own = is_own,
    .is_multicast = is_multicast,
    .fill = fill,
    .came_along = came_along,
    .arrival = arrival,
    .source = source,
    .datagram_header = datagram_header,
};
