/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port: identity, state, drops. What a manager may see and set is a node of
 * one port (mad/node.h); that of a RoCE card has none to ask for it.
 */
#include <glib.h>
#include <string.h>

#include "../trace_events.h"
#include "frame_encap.h"
#include "port_int.h"

#define DESCRIPTION "rdma-hca"
#define VL_CAP_8 4 /* VL 0 to 7 */
#define NS_PER_US 1000
#define DISABLE_DELAY_NS 200000000
#define SPARE_GUID (UINT64_C(0x02) << 56) /* of local scope, by this bit */

static HcaPortInfo *info_of(const HcaPort *port)
{
    return &port->node->port[HCA_PORT_NUMBER].info;
}

/* What the node asks of its port */

static int64_t now(void *opaque)
{
    HcaPort *port = opaque;

    return port->host.ops->clock_ns(port->host.opaque);
}

/*
 * Who disables the port is to have its answer, which software sends, and maybe by
 * this port: so the link is there for a while, and SMPs pass.
 */
static void set_link(void *opaque, unsigned number, bool poll)
{
    HcaPort *port = opaque;

    port->disable_at = poll ? 0 : now(port) + DISABLE_DELAY_NS;
    if (poll) {
        hca_link_enable(port->link, false);
        hca_link_enable(port->link, port->enabled);
    }
    hca_port_refresh(port);
}

static void changed(void *opaque, unsigned number, unsigned what)
{
    HcaPort *port = opaque;

    if (what & HCA_CHANGED_GIDS) {
        hca_gid_update(port);
    }
    if (info_of(port)->state != HCA_PORT_ACTIVE) {
        port->fell = true;
    }
    port->changes |= what & ~HCA_CHANGED_STATE;
}

static uint64_t words(uint64_t bytes, uint64_t packets)
{
    return (bytes - packets * HCA_VCRC_SIZE) / 4;
}

static uint64_t receive_errors(const HcaPortCounters *c)
{
    return c->drops[HCA_DROP_PARSE_SHORT] + c->drops[HCA_DROP_PARSE_LENGTH] +
           c->drops[HCA_DROP_PARSE_VERSION] + c->drops[HCA_DROP_PARSE_LNH] +
           c->drops[HCA_DROP_PARSE_VCRC];
}

/* Packets to the card itself have not passed the port. */
static void counters(void *opaque, unsigned number, HcaPmaCounters *out)
{
    const HcaPort *port = opaque;
    const HcaPortCounters *c = &port->counters;
    const HcaLinkCounters *link = hca_link_counters(port->link);
    uint64_t *value = out->value;

    value[HCA_PMA_RCV_ERRORS] = receive_errors(c);
    value[HCA_PMA_RCV_REMOTE_ERRORS] = link->rx_marked_bad;
    value[HCA_PMA_XMIT_DISCARDS] = link->tx_discarded + c->tx_inactive +
                                   c->tx_mgmt_full;
    value[HCA_PMA_VL15_DROPPED] = c->vl15_dropped;
    value[HCA_PMA_QP1_DROPPED] = c->qp1_dropped;
    value[HCA_PMA_XMIT_DATA] = words(link->tx_bytes, link->tx_packets);
    value[HCA_PMA_RCV_DATA] = words(link->rx_bytes, link->rx_packets);
    value[HCA_PMA_XMIT_PKTS] = link->tx_packets;
    value[HCA_PMA_RCV_PKTS] = link->rx_packets;
    value[HCA_PMA_XMIT_WAIT] = link->tx_wait_ns / NS_PER_US;
    value[HCA_PMA_MULTICAST_XMIT] = c->tx_multicast;
    value[HCA_PMA_MULTICAST_RCV] = c->rx_multicast_all;
    value[HCA_PMA_UNICAST_XMIT] = link->tx_packets - c->tx_multicast;
    value[HCA_PMA_UNICAST_RCV] = link->rx_packets - c->rx_multicast_all;
}

static bool send_smp(void *opaque, uint16_t lid, uint8_t sl, const uint8_t *mad)
{
    HcaPort *port = opaque;
    HcaMadAddress to = { .path = { .dlid = lid, .smp = true } };

    return hca_frame_send_mad(port, &to, mad);
}

static const HcaNodeOps node_ops = {
    .now = now,
    .set_link = set_link,
    .changed = changed,
    .counters = counters,
    .send_smp = send_smp,
};

/* Life */

/* Who it is before a manager says so, or if there is none. */
static void set_identity(HcaPort *port)
{
    HcaNodePort *node = &port->node->port[HCA_PORT_NUMBER];

    memset(node->pkeys, 0, sizeof(node->pkeys));
    node->info.sm_lid = 0;
    if (port->managed) {
        node->info.lid = 0;
        node->pkeys[0] = HCA_DEFAULT_PKEY;
    } else {
        node->info.lid = hca_port_is_roce(port) ? 0 : port->config->lid;
        memcpy(node->pkeys, port->config->pkeys, sizeof(node->pkeys));
    }
}

/* What a manager would have to tell anew. */
static void forget(HcaPort *port)
{
    hca_node_reset(port->node);
    hca_node_enable(port->node, HCA_PORT_NUMBER, port->enabled);
    set_identity(port);
    hca_gid_reset(port);
    hca_mcast_reset(port);
    hca_flow_reset(port);
    port->changes = 0;
}

static HcaNode *new_node(HcaPort *port)
{
    HcaNodeSetup setup = {
        .type = HCA_NODE_CA,
        .num_ports = RDMA_HCA_NUM_PORTS,
        .guid = port->config->guid,
        .device_id = port->config->identity.device_id,
        .vendor_id = port->config->identity.vendor_id,
        .revision = port->config->identity.revision,
        .description = DESCRIPTION,
        .mtu_cap = port->config->max_mtu,
        .vl_cap = VL_CAP_8,
        .width = HCA_PORT_WIDTH,
        .speeds = hca_config_is_roce(port->config) ? HCA_PORT_SPEEDS_ROCE
                                                   : HCA_PORT_SPEEDS_IB,
    };

    return hca_node_new(&setup, &node_ops, port);
}

HcaPort *hca_port_new(const HcaConfig *config, HcaLink *link,
                      const HcaHost *host)
{
    HcaPort *port = g_new0(HcaPort, 1);

    port->config = config;
    port->link = link;
    port->host = *host;
    port->addressing = hca_config_is_roce(config) ? &hca_addressing_roce
                                                  : &hca_addressing_ib;
    port->told = HCA_PORT_DOWN;
    port->managed = !hca_config_is_roce(config) &&
                    config->managed == HCA_MANAGED_ON;
    hca_link_set_managed(link, port->managed);
    port->node = new_node(port);
    hca_flow_init(port);
    forget(port);
    return port;
}

void hca_port_free(HcaPort *port)
{
    hca_flow_cleanup(port);
    hca_mcast_chains_end(port);
    hca_node_free(port->node);
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
    port->fell = false;
    port->downs = hca_link_downs(port->link);
    port->mad_psn = 0;
    port->lane_sent = 0;
    port->arbiter = (HcaVlArbiter) { 0 };
    memset(&port->counters, 0, sizeof(port->counters));
}

/* State */

void hca_port_enable(HcaPort *port, bool enable)
{
    port->enabled = enable;
    port->disable_at = 0;
    hca_node_enable(port->node, HCA_PORT_NUMBER, enable);
    hca_link_enable(port->link, enable);
}

bool hca_port_is_enabled(const HcaPort *port)
{
    return port->enabled;
}

/* The other end of the cable has greeted: it may be one that is managed. */
static void judge_managed(HcaPort *port)
{
    bool managed = hca_link_peer_is_managed(port->link);

    if (port->config->managed != HCA_MANAGED_AUTO || managed == port->managed) {
        return;
    }
    port->managed = managed;
    hca_node_link(port->node, HCA_PORT_NUMBER, false);
    hca_node_forget(port->node, HCA_PORT_NUMBER);
    set_identity(port);
    changed(port, HCA_PORT_NUMBER,
            HCA_CHANGED_LID | HCA_CHANGED_SM | HCA_CHANGED_PKEYS |
                HCA_CHANGED_GIDS);
}

/*
 * A fault may have had the link come up with less; that of a RoCE card is what its
 * interface makes of it.
 */
static void limit_link(HcaPort *port)
{
    HcaPortInfo *info = info_of(port);
    uint8_t speed, mtu;

    hca_link_limits(port->link, &speed, &mtu);
    if (hca_port_is_roce(port) || !(speed || mtu || port->limited)) {
        return;
    }
    port->limited = speed || mtu;
    info->mtu_cap = mtu ? MIN(mtu, hca_port_mtu(port)) : hca_port_mtu(port);
    info->mtu = port->managed ? MIN(info->mtu, info->mtu_cap) : info->mtu_cap;
    if (speed) {
        info->speed_active = MIN(info->speed_active, speed);
    }
}

void hca_port_refresh(HcaPort *port)
{
    unsigned downs = hca_link_downs(port->link);
    bool up = port->enabled && hca_link_is_up(port->link);
    bool was_down;

    if (downs != port->downs) {
        port->downs = downs;
        hca_node_link(port->node, HCA_PORT_NUMBER, false);
    }
    judge_managed(port);
    was_down = info_of(port)->state == HCA_PORT_DOWN;
    hca_node_link(port->node, HCA_PORT_NUMBER, up);
    if (was_down && info_of(port)->state != HCA_PORT_DOWN) {
        limit_link(port);
    }
    if (!port->managed && info_of(port)->state == HCA_PORT_INIT) {
        hca_node_activate(port->node, HCA_PORT_NUMBER);
    }
}

void hca_port_tick(HcaPort *port)
{
    hca_node_tick(port->node);
    if (port->disable_at && now(port) >= port->disable_at) {
        port->disable_at = 0;
        hca_link_enable(port->link, false);
    }
}

int64_t hca_port_deadline(const HcaPort *port)
{
    int64_t node = hca_node_deadline(port->node);

    return port->disable_at ? MIN(port->disable_at, node) : node;
}

/* One that was lost and came back between two looks has been down, too. */
bool hca_port_state_changed(HcaPort *port, HcaPortState *state)
{
    *state = info_of(port)->state == HCA_PORT_ACTIVE ? HCA_PORT_ACTIVE
                                                     : HCA_PORT_DOWN;
    if (port->told == HCA_PORT_ACTIVE && port->fell) {
        *state = HCA_PORT_DOWN;
    }
    port->fell = false;
    if (*state == port->told) {
        return false;
    }
    port->told = *state;
    return true;
}

void hca_port_state_told(HcaPort *port)
{
    HcaPortState state;

    hca_port_refresh(port);
    while (hca_port_state_changed(port, &state)) {
    }
}

uint32_t hca_port_take_changes(HcaPort *port)
{
    uint32_t changes = port->changes;

    port->changes = 0;
    return changes;
}

void hca_port_turn_last_guid(HcaPort *port)
{
    HcaNodePort *node = &port->node->port[HCA_PORT_NUMBER];
    unsigned last = node->info.guid_cap - 1;

    node->guids[last] = node->guids[last] ? 0 : node->guids[0] ^ SPARE_GUID;
    changed(port, HCA_PORT_NUMBER, HCA_CHANGED_GIDS);
}

bool hca_port_takes_data(HcaPort *port, bool loopback)
{
    if (port->downs != hca_link_downs(port->link) ||
        info_of(port)->state != HCA_PORT_ACTIVE) {
        hca_port_refresh(port);
    }
    if (loopback || hca_port_is_roce(port)) {
        return port->enabled;
    }
    /* The peer is further than this end (IBA 7.2.7). */
    if (info_of(port)->state == HCA_PORT_ARMED) {
        hca_node_activate(port->node, HCA_PORT_NUMBER);
    }
    return info_of(port)->state == HCA_PORT_ACTIVE;
}

/* Identity */

HcaNode *hca_port_node(const HcaPort *port)
{
    return port->node;
}

bool hca_port_is_roce(const HcaPort *port)
{
    return hca_config_is_roce(port->config);
}

uint8_t hca_port_mtu(const HcaPort *port)
{
    return port->config->max_mtu;
}

bool hca_port_set_mtu(HcaPort *port, uint8_t mtu)
{
    if (mtu < 1 || mtu > hca_port_mtu(port)) {
        return false;
    }
    info_of(port)->mtu = mtu;
    return true;
}

uint16_t hca_port_pkey(const HcaPort *port, unsigned index)
{
    return index < HCA_NODE_PKEYS
               ? port->node->port[HCA_PORT_NUMBER].pkeys[index]
               : 0;
}

bool hca_port_takes_pkey(const HcaPort *port, unsigned index, uint16_t pkey)
{
    return hca_pkey_match(pkey, hca_port_pkey(port, index));
}

/* What a manager will write there nobody knows. */
bool hca_port_pkey_index_ok(const HcaPort *port, unsigned index)
{
    return port->managed ? index < HCA_NODE_PKEYS : hca_port_pkey(port, index);
}

bool hca_port_find_pkey(const HcaPort *port, uint16_t pkey, unsigned *index)
{
    for (*index = 0; *index < HCA_NODE_PKEYS; ++*index) {
        if (hca_port_takes_pkey(port, *index, pkey)) {
            return true;
        }
    }
    return false;
}

/* The very one, with its kind of membership. */
static bool has_pkey(const HcaPort *port, uint16_t pkey, uint16_t *index)
{
    for (*index = 0; *index < HCA_NODE_PKEYS; ++*index) {
        if (hca_port_pkey(port, *index) == pkey) {
            return true;
        }
    }
    return false;
}

bool hca_port_path_of(const HcaPort *port, const HcaPacket *packet,
                      HcaPath *path)
{
    const HcaGidEntry *source;

    path->dlid = packet->dlid;
    path->sl = packet->sl;
    path->path_bits = packet->slid & 0x7f;
    if (path->smp) {
        return true;
    }
    path->grh = packet->has_grh;
    if (path->grh) {
        source = hca_gid_find(port, &packet->sgid, 0, NULL);
        if (!source) {
            return false;
        }
        path->sgid_index = hca_gid_index(port, source);
        path->dgid = packet->dgid;
        path->tclass = packet->tclass;
        path->flow_label = packet->flow_label;
        path->hop_limit = packet->hop_limit;
    }
    return has_pkey(port, packet->pkey, &path->pkey_index);
}

uint8_t hca_port_vl(const HcaPort *port, uint8_t sl)
{
    return hca_node_vl(port->node, 0, HCA_PORT_NUMBER, sl);
}

#define MIN_CHARGE 64 /* bytes, a unit of weight */

unsigned hca_port_next_lane(HcaPort *port, uint16_t waiting, unsigned *left)
{
    port->lane_sent = 0;
    return hca_vl_arbiter_next(
        &port->arbiter, &port->node->port[HCA_PORT_NUMBER], waiting, left);
}

/* A turn that sent nothing has its price, or it might never end. */
void hca_port_lane_done(HcaPort *port, bool blocked)
{
    hca_vl_arbiter_sent(&port->arbiter,
                        MAX(port->lane_sent, blocked ? 0 : MIN_CHARGE));
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
    return port->addressing->source(port, packet);
}

void hca_port_datagram_header(const HcaPort *port, const HcaPacket *packet,
                              uint8_t *header)
{
    port->addressing->datagram_header(packet, header);
}

HcaParseError hca_port_parse(HcaPort *port, HcaPacket *packet,
                             const uint8_t *frame, size_t len)
{
    HcaParseError error = port->addressing->encap->parse(packet, frame, len);

    hca_node_packet(port->node, HCA_PORT_NUMBER, error != HCA_PARSE_VCRC);
    return error;
}

HcaArrival hca_port_arrival(HcaPort *port, const HcaPacket *packet,
                            bool loopback)
{
    HcaArrival arrival = port->addressing->arrival(port, packet, loopback);

    port->counters.rx_multicast_all += arrival == HCA_ARRIVAL_GROUP &&
                                       !loopback;
    return arrival;
}

/* Drops */

static HcaKeyViolation violation(const HcaPacket *packet, uint32_t key)
{
    return (HcaKeyViolation) {
        .slid = packet->slid,
        .dlid = packet->dlid,
        .key = key,
        .sl = packet->sl,
        .src_qp = packet->src_qp,
        .dest_qp = packet->dest_qp,
        .sgid = packet->has_grh ? packet->sgid.raw : NULL,
        .dgid = packet->has_grh ? packet->dgid.raw : NULL,
    };
}

static void tell_violation(HcaPort *port, const HcaPacket *packet,
                           HcaDropReason reason)
{
    HcaKeyViolation bad;

    if (reason == HCA_DROP_PKEY) {
        bad = violation(packet, packet->pkey);
        hca_node_bad_pkey(port->node, HCA_PORT_NUMBER, &bad);
    } else if (reason == HCA_DROP_QKEY) {
        bad = violation(packet, packet->qkey);
        hca_node_bad_qkey(port->node, HCA_PORT_NUMBER, &bad);
    }
}

void hca_drop(HcaPort *port, const HcaPacket *packet, HcaDropReason reason)
{
    port->counters.drops[reason]++;
    if (reason == HCA_DROP_NO_WQE) {
        port->counters.vl15_dropped += packet->dest_qp == 0;
        port->counters.qp1_dropped += packet->dest_qp == 1;
    }
    tell_violation(port, packet, reason);
    hca_host_trace(&port->host, HCA_TRACE_PACKET_DROP, packet->dest_qp,
                   packet->opcode, packet->psn, reason);
}

HcaPortCounters *hca_port_counters(HcaPort *port)
{
    return &port->counters;
}
