/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addressing on an InfiniBand link (IBA 4.1; fields: table A2-1 of the
 * interface document). Who the port is, its manager says (mad/node.h).
 */
#include <string.h>

#include "port_int.h"

/* Which of the LIDs of a port with LMC it is (IBA 4.1.3). */
static uint8_t path_bits_of(const HcaPortInfo *info, uint16_t lid)
{
    return lid & ((1u << info->lmc) - 1);
}

static bool can_reach(const HcaPort *port, const HcaPath *path)
{
    return !path->grh || hca_gid_get(port, path->sgid_index);
}

static bool is_own(const HcaPort *port, const HcaPath *path)
{
    return hca_node_owns_lid(hca_port_node_port(port), path->dlid);
}

static bool is_multicast_lid(uint16_t lid)
{
    return lid >= HCA_LID_FIRST_MULTICAST && lid != HCA_LID_PERMISSIVE;
}

/* An SMP goes to one port, if to any. */
static bool is_multicast(const HcaPath *path)
{
    return is_multicast_lid(path->dlid) && !path->smp;
}

/* An SMP has neither SL nor GRH; who sends to no LID has none (IBA 13.5.1). */
static bool fill_smp(const HcaPortInfo *info, const HcaPath *path,
                     HcaPacket *packet)
{
    packet->vl = HCA_VL_MGMT;
    packet->sl = 0;
    packet->dlid = path->dlid;
    packet->slid = path->dlid == HCA_LID_PERMISSIVE ? HCA_LID_PERMISSIVE
                                                    : info->lid;
    packet->has_grh = false;
    return true;
}

static void fill_grh(const HcaPort *port, const HcaPath *path,
                     HcaPacket *packet)
{
    const HcaGidEntry *source = hca_gid_get(port, path->sgid_index);

    packet->tclass = path->tclass;
    packet->flow_label = path->flow_label;
    packet->hop_limit = path->hop_limit;
    packet->dgid = path->dgid;
    if (source) {
        packet->sgid = source->gid;
    }
}

static bool fill(const HcaPort *port, uint32_t qpn, const HcaPath *path,
                 HcaPacket *packet)
{
    const HcaPortInfo *info = &hca_port_node_port(port)->info;

    if (path->smp) {
        return fill_smp(info, path, packet);
    }
    packet->sl = path->sl;
    packet->vl = hca_port_vl(port, path->sl);
    packet->dlid = path->dlid;
    packet->slid = (info->lid ^ path_bits_of(info, info->lid)) |
                   path_bits_of(info, path->path_bits);
    packet->has_grh = path->grh;
    if (path->grh) {
        fill_grh(port, path, packet);
    }
    return packet->vl != HCA_VL_MGMT && can_reach(port, path);
}

static bool came_along(const HcaPort *port, const HcaPath *path,
                       const HcaPacket *packet)
{
    return packet->slid == path->dlid &&
           (!packet->has_grh || !path->grh ||
            hca_gid_equal(&packet->sgid, &path->dgid));
}

static bool is_to_own_gid(const HcaPort *port, const HcaPacket *packet)
{
    return !packet->has_grh || hca_gid_is_own(port, &packet->dgid);
}

/*
 * By LID, and if there is a GRH by GID (IBA 9.6.1). A multicast packet has a
 * GRH, which names the group (IBA 10.5.2). A port without a LID takes SMPs to
 * the permissive one.
 */
static HcaArrival arrival(const HcaPort *port, const HcaPacket *packet,
                          bool loopback)
{
    if (packet->vl != HCA_VL_MGMT && packet->slid == HCA_LID_PERMISSIVE) {
        return HCA_ARRIVAL_OTHER;
    }
    if (hca_node_owns_lid(hca_port_node_port(port), packet->dlid)) {
        return is_to_own_gid(port, packet) ? HCA_ARRIVAL_OWN
                                           : HCA_ARRIVAL_OTHER;
    }
    if (packet->vl == HCA_VL_MGMT) {
        return packet->dlid == HCA_LID_PERMISSIVE ? HCA_ARRIVAL_OWN
                                                  : HCA_ARRIVAL_OTHER;
    }
    return is_multicast_lid(packet->dlid) && packet->has_grh
               ? HCA_ARRIVAL_GROUP
               : HCA_ARRIVAL_OTHER;
}

static HcaSource source(const HcaPort *port, const HcaPacket *packet)
{
    const HcaNodePort *node = hca_port_node_port(port);
    bool unicast = hca_node_owns_lid(node, packet->dlid);

    return (HcaSource) {
        .lid = packet->slid,
        .sl = packet->sl,
        .path_bits = unicast ? path_bits_of(&node->info, packet->dlid) : 0,
        .grh = packet->has_grh,
    };
}

/* The GRH, if one came, as its parsed fields have it. */
static void datagram_header(const HcaPacket *packet, uint8_t *header)
{
    uint8_t all[HCA_MAX_HEADER_SIZE];
    HcaPacket copy = *packet;

    if (packet->has_grh) {
        hca_ib_build(&copy, all);
        memcpy(header, all + HCA_LRH_SIZE, HCA_GRH_SIZE);
    } else {
        memset(header, 0, HCA_GRH_SIZE);
    }
}

const HcaAddressing hca_addressing_ib = {
    .encap = &hca_encap_ib,
    .can_reach = can_reach,
    .is_own = is_own,
    .is_multicast = is_multicast,
    .fill = fill,
    .came_along = came_along,
    .arrival = arrival,
    .source = source,
    .datagram_header = datagram_header,
};
