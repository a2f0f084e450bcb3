/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FrameEncap (context document 3.2; sources of the fields: table A2-1 of the
 * interface document). Every packet leaves the card here.
 *
 * The payload is copied out of guest memory once, before the CRCs are made:
 * the guest may change it at any time (a peer may read a live counter), and
 * the packet must agree with its CRCs.
 */
#include <string.h>

#include "../trace_events.h"
#include "frame_encap.h"
#include "port_int.h"

/* Where a packet goes: bits. */
#define TO_PEER 1u
#define TO_SELF 2u

static unsigned destinations(const HcaPort *port, const HcaPath *path)
{
    if (port->addressing->is_multicast(path)) {
        return TO_PEER | (hca_mcast_find(port, &path->dgid) ? TO_SELF : 0);
    }
    return port->addressing->is_own(port, path) ? TO_SELF : TO_PEER;
}

/* An SMP waits for nobody: without room it is lost. */
bool hca_frame_can_send(HcaPort *port, const HcaPath *path)
{
    unsigned to = destinations(port, path);

    return path->smp ||
           ((!(to & TO_PEER) || hca_link_can_send(port->link, false)) &&
            (!(to & TO_SELF) || hca_link_can_send(port->link, true)));
}

uint64_t hca_frame_mark(const HcaPort *port, const HcaPath *path)
{
    return destinations(port, path) & TO_PEER ? hca_link_tx_mark(port->link)
                                              : 0;
}

bool hca_frame_has_left(const HcaPort *port, uint64_t mark)
{
    return hca_link_tx_passed(port->link, mark);
}

/* The same bytes for the card's own QPs of a group. */
static void copy_to_self(HcaPort *port, const uint8_t *frame, size_t len)
{
    memcpy(hca_link_open(port->link, true), frame, len);
    hca_link_close(port->link, true, 0, len);
}

/* Put the payload behind the first @len bytes; where it ends. */
static size_t gather(uint8_t *frame, size_t len, const struct iovec *payload,
                     unsigned iovcnt)
{
    for (unsigned i = 0; i < iovcnt; i++) {
        memcpy(frame + len, payload[i].iov_base, payload[i].iov_len);
        len += payload[i].iov_len;
    }
    return len;
}

static size_t build(HcaPort *port, HcaPacket *packet,
                    const struct iovec *payload, unsigned iovcnt,
                    uint8_t *frame)
{
    const HcaEncap *encap = port->addressing->encap;
    size_t len = encap->build(packet, frame);

    return encap->seal(packet, frame, gather(frame, len, payload, iovcnt));
}

static void count_sent(const HcaQp *qp, size_t payload)
{
    qp->counters->tx_packets++;
    qp->counters->tx_bytes += payload;
}

/*
 * Whether a packet that is for the peer may leave the port as it is: data by an
 * ACTIVE one alone (IBA 7.2.7). The link drops what nobody is there for.
 */
static bool may_leave(HcaPort *port, const HcaPath *path)
{
    const HcaPortInfo *info = &hca_port_node_port(port)->info;

    if (path->smp || hca_port_is_roce(port) || info->state == HCA_PORT_ACTIVE) {
        return true;
    }
    hca_port_refresh(port);
    return info->state == HCA_PORT_ACTIVE || info->state == HCA_PORT_DOWN;
}

/* Whether there is room for an SMP. */
static bool has_room(HcaPort *port, const HcaPath *path, bool loopback)
{
    if (!path->smp || hca_link_can_send_mgmt(port->link, loopback)) {
        return true;
    }
    port->counters.tx_mgmt_full++;
    return false;
}

static void put_frame(HcaPort *port, unsigned to, HcaPacket *packet,
                      const struct iovec *payload, unsigned iovcnt)
{
    bool loopback = !(to & TO_PEER);
    uint8_t *frame = hca_link_open(port->link, loopback);
    size_t len = build(port, packet, payload, iovcnt, frame);

    if (to == (TO_PEER | TO_SELF)) {
        copy_to_self(port, frame, len);
    }
    hca_link_close(port->link, loopback, packet->vl, len);
    port->lane_sent += len;
    port->counters.tx_packets++;
    hca_host_trace(&port->host, HCA_TRACE_PACKET_TX, packet->dest_qp,
                   packet->opcode, packet->psn, packet->payload_len);
}

/* False: the packet, which has a P_Key, is lost, and counted. */
static bool emit(HcaPort *port, uint32_t qpn, const HcaPath *path,
                 HcaPacket *packet, const struct iovec *payload,
                 unsigned iovcnt)
{
    unsigned to = destinations(port, path);

    if (!packet->pkey || !port->addressing->fill(port, qpn, path, packet)) {
        port->counters.tx_unreachable++;
        return false;
    }
    if ((to & TO_PEER) && !may_leave(port, path)) {
        port->counters.tx_inactive++;
        to &= ~TO_PEER;
    }
    if (!to || !has_room(port, path, !(to & TO_PEER))) {
        return false;
    }
    port->counters.tx_multicast += (to & TO_PEER) &&
                                   port->addressing->is_multicast(path);
    put_frame(port, to, packet, payload, iovcnt);
    return true;
}

/* An SMP is of no partition (IBA 13.5.1.5), one of QP 1 of any (IBA 13.5.3.1). */
static uint16_t pkey_of(const HcaPort *port, const HcaQp *qp,
                        const HcaPath *path)
{
    switch (qp->special) {
    case HCA_SPECIAL_SMI:
        return HCA_DEFAULT_PKEY;
    case HCA_SPECIAL_GSI:
        return hca_port_pkey(port, path->pkey_index);
    default:
        return hca_port_pkey(port, qp->attr.pkey_index);
    }
}

void hca_frame_send(HcaPort *port, HcaQp *qp, const HcaPath *path,
                    HcaPacket *packet, const struct iovec *payload,
                    unsigned iovcnt)
{
    packet->pkey = pkey_of(port, qp, path);
    if (emit(port, qp->qpn, path, packet, payload, iovcnt)) {
        qp->lane = packet->vl;
        count_sent(qp, packet->payload_len);
    }
}

bool hca_frame_send_mad(HcaPort *port, const HcaMadAddress *to,
                        const uint8_t *mad)
{
    struct iovec payload = { (void *)mad, HCA_MAD_SIZE };
    HcaPacket packet = {
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .mig_req = true,
        .pkey = to->path.smp ? HCA_DEFAULT_PKEY : to->pkey,
        .dest_qp = to->path.smp ? 0 : to->qpn,
        .src_qp = !to->path.smp,
        .qkey = to->path.smp ? 0 : to->qkey,
        .psn = port->mad_psn++ & HCA_PSN_MASK,
        .payload_len = HCA_MAD_SIZE,
    };

    return hca_frame_can_send(port, &to->path) &&
           emit(port, packet.src_qp, &to->path, &packet, &payload, 1);
}

/* Raw packets */

/* Where one goes is in the frame, which nobody has seen yet: room for both. */
bool hca_frame_can_send_raw(HcaPort *port)
{
    return hca_link_can_send(port->link, false) &&
           hca_link_can_send(port->link, true);
}

static unsigned raw_destinations(const HcaPort *port, const uint8_t *dmac)
{
    if (dmac[0] & 1) {
        return TO_PEER | TO_SELF;
    }
    return hca_gid_has_mac(port, dmac) ? TO_SELF : TO_PEER;
}

/* Built in the peer's buffer; what is not closed there is not sent. */
void hca_frame_send_raw(HcaPort *port, const HcaQp *qp,
                        const struct iovec *payload, unsigned iovcnt)
{
    uint8_t *frame = hca_link_open(port->link, false);
    size_t len = gather(frame, 0, payload, iovcnt);
    unsigned to = raw_destinations(port, frame);

    if (len < HCA_ETH_MIN_FRAME) {
        memset(frame + len, 0, HCA_ETH_MIN_FRAME - len);
        len = HCA_ETH_MIN_FRAME;
    }
    if (to & TO_SELF) {
        copy_to_self(port, frame, len);
    }
    if (to & TO_PEER) {
        hca_link_close(port->link, false, 0, len);
    }
    port->counters.tx_frames++;
    count_sent(qp, len);
    hca_host_trace(&port->host, HCA_TRACE_PACKET_TX, 0,
                   HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY), 0, len);
}
