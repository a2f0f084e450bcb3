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

#include "frame_encap.h"

/* Where a packet goes: bits. */
#define TO_PEER 1u
#define TO_SELF 2u

static unsigned destinations(const Hca *hca, const HcaPath *path)
{
    if (hca->addressing->is_multicast(path)) {
        return TO_PEER | (hca_mcast_find(hca, &path->dgid) ? TO_SELF : 0);
    }
    return hca->addressing->is_own(hca, path) ? TO_SELF : TO_PEER;
}

bool hca_frame_can_send(Hca *hca, const HcaPath *path)
{
    unsigned to = destinations(hca, path);

    return (!(to & TO_PEER) || hca_link_can_send(hca->link, false)) &&
           (!(to & TO_SELF) || hca_link_can_send(hca->link, true));
}

/* The same bytes for the card's own QPs of a group. */
static void copy_to_self(Hca *hca, const uint8_t *frame, size_t len)
{
    memcpy(hca_link_open(hca->link, true), frame, len);
    hca_link_close(hca->link, true, 0, len);
}

static size_t build(Hca *hca, HcaPacket *packet, const struct iovec *payload,
                    unsigned iovcnt, uint8_t *frame)
{
    const HcaEncap *encap = hca->addressing->encap;
    size_t len = encap->build(packet, frame);

    for (unsigned i = 0; i < iovcnt; i++) {
        memcpy(frame + len, payload[i].iov_base, payload[i].iov_len);
        len += payload[i].iov_len;
    }
    return encap->seal(packet, frame, len);
}

void hca_frame_send(Hca *hca, const HcaQp *qp, const HcaPath *path,
                    HcaPacket *packet, const struct iovec *payload,
                    unsigned iovcnt)
{
    unsigned to = destinations(hca, path);
    bool loopback = !(to & TO_PEER);
    uint8_t *frame;
    size_t len;

    packet->pkey = qp->pkey;
    if (!hca->addressing->fill(hca, qp, path, packet)) {
        hca->counters.tx_unreachable++;
        return;
    }
    frame = hca_link_open(hca->link, loopback);
    len = build(hca, packet, payload, iovcnt, frame);
    if (to == (TO_PEER | TO_SELF)) {
        copy_to_self(hca, frame, len);
    }
    hca_link_close(hca->link, loopback, packet->vl, len);
    hca->counters.tx_packets++;
    hca_trace(hca, HCA_TRACE_PACKET_TX, packet->dest_qp, packet->opcode,
              packet->psn, packet->payload_len);
}
