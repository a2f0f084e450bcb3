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

bool hca_frame_can_send(HcaPort *port, const HcaPath *path)
{
    unsigned to = destinations(port, path);

    return (!(to & TO_PEER) || hca_link_can_send(port->link, false)) &&
           (!(to & TO_SELF) || hca_link_can_send(port->link, true));
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

void hca_frame_send(HcaPort *port, const HcaQp *qp, const HcaPath *path,
                    HcaPacket *packet, const struct iovec *payload,
                    unsigned iovcnt)
{
    unsigned to = destinations(port, path);
    bool loopback = !(to & TO_PEER);
    uint8_t *frame;
    size_t len;

    packet->pkey = hca_port_pkey(port, qp->attr.pkey_index);
    if (!port->addressing->fill(port, qp->qpn, path, packet)) {
        port->counters.tx_unreachable++;
        return;
    }
    frame = hca_link_open(port->link, loopback);
    len = build(port, packet, payload, iovcnt, frame);
    if (to == (TO_PEER | TO_SELF)) {
        copy_to_self(port, frame, len);
    }
    hca_link_close(port->link, loopback, packet->vl, len);
    port->counters.tx_packets++;
    count_sent(qp, packet->payload_len);
    hca_host_trace(port->ops, port->opaque, HCA_TRACE_PACKET_TX,
                   packet->dest_qp, packet->opcode, packet->psn,
                   packet->payload_len);
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
    hca_host_trace(port->ops, port->opaque, HCA_TRACE_PACKET_TX, 0,
                   HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY), 0, len);
}
