/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addressing on an InfiniBand link (IBA 4.1; fields: table A2-1 of the
 * interface document). The port's LMC is 0 and its GID table has one entry.
 */
#include <string.h>

#include "port_int.h"

#define LID_FIRST_MULTICAST 0xc000

static bool can_reach(const HcaPort *port, const HcaPath *path)
{
    return !path->grh || hca_gid_get(port, path->sgid_index);
}

static bool is_own(const HcaPort *port, const HcaPath *path)
{
    return path->dlid == port->lid;
}

static bool is_multicast_lid(uint16_t lid)
{
    return lid >= LID_FIRST_MULTICAST && lid != HCA_LID_PERMISSIVE;
}

static bool is_multicast(const HcaPath *path)
{
    return is_multicast_lid(path->dlid);
}

static bool fill(const HcaPort *port, uint32_t qpn, const HcaPath *path,
                 HcaPacket *packet)
{
    packet->sl = path->sl;
    packet->vl = 0; /* SL to VL: one data VL */
    packet->dlid = path->dlid;
    packet->slid = port->lid;
    packet->has_grh = path->grh;
    if (path->grh) {
        packet->tclass = path->tclass;
        packet->flow_label = path->flow_label;
        packet->hop_limit = path->hop_limit;
        packet->dgid = path->dgid;
        packet->sgid = hca_gid_default(port);
    }
    return true;
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
    HcaGid gid = hca_gid_default(port);

    return !packet->has_grh || hca_gid_equal(&packet->dgid, &gid);
}

/*
 * By LID, and if there is a GRH by GID (IBA 9.6.1). A multicast packet has a
 * GRH, which names the group (IBA 10.5.2).
 */
static HcaArrival arrival(const HcaPort *port, const HcaPacket *packet,
                          bool loopback)
{
    if (packet->dlid == port->lid) {
        return is_to_own_gid(port, packet) ? HCA_ARRIVAL_OWN
                                           : HCA_ARRIVAL_OTHER;
    }
    return is_multicast_lid(packet->dlid) && packet->has_grh
               ? HCA_ARRIVAL_GROUP
               : HCA_ARRIVAL_OTHER;
}

static HcaSource source(const HcaPacket *packet)
{
    return (HcaSource) {
        .lid = packet->slid,
        .sl = packet->sl,
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
