/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: identity, state, drops. */
#include <glib.h>
#include <string.h>

#include "../trace_events.h"
#include "port_int.h"

/* What a manager, if there were one, would have to tell anew. */
static void forget(HcaPort *port)
{
    port->lid = port->config->lid;
    port->num_pkeys = port->config->num_pkeys;
    memcpy(port->pkeys, port->config->pkeys, sizeof(port->pkeys));
    hca_gid_reset(port);
    hca_mcast_reset(port);
    hca_flow_reset(port);
}

HcaPort *hca_port_new(const HcaConfig *config, HcaLink *link,
                      const HcaHostOps *ops, void *opaque)
{
    HcaPort *port = g_new0(HcaPort, 1);

    port->config = config;
    port->link = link;
    port->ops = ops;
    port->opaque = opaque;
    port->addressing = hca_config_is_roce(config) ? &hca_addressing_roce
                                                  : &hca_addressing_ib;
    port->told = HCA_PORT_DOWN;
    hca_flow_init(port);
    forget(port);
    return port;
}

void hca_port_free(HcaPort *port)
{
    hca_flow_cleanup(port);
    g_free(port);
}

void hca_port_close(HcaPort *port)
{
    hca_port_enable(port, false);
    forget(port);
}

void hca_port_reset(HcaPort *port)
{
    hca_port_close(port);
    port->told = HCA_PORT_DOWN;
    port->downs = hca_link_downs(port->link);
    memset(&port->counters, 0, sizeof(port->counters));
}

/* State */

void hca_port_enable(HcaPort *port, bool enable)
{
    port->enabled = enable;
    hca_link_enable(port->link, enable);
}

bool hca_port_is_enabled(const HcaPort *port)
{
    return port->enabled;
}

HcaPortState hca_port_state(const HcaPort *port)
{
    return port->enabled && hca_link_is_up(port->link) ? HCA_PORT_ACTIVE
                                                       : HCA_PORT_DOWN;
}

HcaPortPhysState hca_port_phys_state(const HcaPort *port)
{
    if (!port->enabled) {
        return HCA_PORT_PHYS_DISABLED;
    }
    return hca_link_is_up(port->link) ? HCA_PORT_PHYS_LINK_UP
                                      : HCA_PORT_PHYS_POLLING;
}

/* A link that went down and came back between two looks has been down, too. */
bool hca_port_state_changed(HcaPort *port, HcaPortState *state)
{
    unsigned downs = hca_link_downs(port->link);
    bool was_down = downs != port->downs;

    *state = hca_port_state(port);
    if (port->told == HCA_PORT_ACTIVE && was_down) {
        *state = HCA_PORT_DOWN;
    }
    port->downs = downs;
    if (*state == port->told) {
        return false;
    }
    port->told = *state;
    return true;
}

/* Identity */

bool hca_port_is_roce(const HcaPort *port)
{
    return hca_config_is_roce(port->config);
}

uint16_t hca_port_lid(const HcaPort *port)
{
    return port->lid;
}

uint8_t hca_port_mtu(const HcaPort *port)
{
    return port->config->max_mtu;
}

unsigned hca_port_num_pkeys(const HcaPort *port)
{
    return port->num_pkeys;
}

uint16_t hca_port_pkey(const HcaPort *port, unsigned index)
{
    return index < port->num_pkeys ? port->pkeys[index] : 0;
}

bool hca_port_takes_pkey(const HcaPort *port, unsigned index, uint16_t pkey)
{
    return hca_pkey_match(pkey, hca_port_pkey(port, index));
}

/* Paths and packets, as the link layer has them */

bool hca_port_can_reach(const HcaPort *port, const HcaPath *path)
{
    return port->addressing->can_reach(port, path);
}

bool hca_port_came_along(const HcaPort *port, const HcaPath *path,
                         const HcaPacket *packet)
{
    return port->addressing->came_along(port, path, packet);
}

HcaSource hca_port_source(const HcaPort *port, const HcaPacket *packet)
{
    return port->addressing->source(packet);
}

void hca_port_datagram_header(const HcaPort *port, const HcaPacket *packet,
                              uint8_t *header)
{
    port->addressing->datagram_header(packet, header);
}

HcaParseError hca_port_parse(const HcaPort *port, HcaPacket *packet,
                             const uint8_t *frame, size_t len)
{
    return port->addressing->encap->parse(packet, frame, len);
}

HcaArrival hca_port_arrival(const HcaPort *port, const HcaPacket *packet,
                            bool loopback)
{
    return port->addressing->arrival(port, packet, loopback);
}

/* Counters */

void hca_drop(HcaPort *port, const HcaPacket *packet, HcaDropReason reason)
{
    port->counters.drops[reason]++;
    hca_host_trace(port->ops, port->opaque, HCA_TRACE_PACKET_DROP,
                   packet->dest_qp, packet->opcode, packet->psn, reason);
}

HcaPortCounters *hca_port_counters(HcaPort *port)
{
    return &port->counters;
}
