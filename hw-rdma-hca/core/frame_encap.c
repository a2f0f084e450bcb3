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

bool hca_frame_can_send(Hca *hca, uint16_t dlid)
{
    return hca_link_can_send(hca->link, hca_is_own_lid(hca, dlid));
}

static void fill_network_headers(Hca *hca, const HcaPath *path,
                                 HcaPacket *packet)
{
    packet->sl = path->sl;
    packet->vl = 0;             /* SL to VL: one data VL */
    packet->dlid = path->dlid;
    packet->slid = hca->config.lid;
    packet->has_grh = path->grh;
    if (path->grh) {
        packet->tclass = path->tclass;
        packet->flow_label = path->flow_label;
        packet->hop_limit = path->hop_limit;
        packet->dgid = path->dgid;
        hca_gid(hca, path->sgid_index, &packet->sgid);
    }
}

void hca_frame_send(Hca *hca, const HcaQp *qp, const HcaPath *path,
                    HcaPacket *packet, const struct iovec *payload,
                    unsigned iovcnt)
{
    bool loopback = hca_is_own_lid(hca, path->dlid);
    uint8_t *frame = hca_link_open(hca->link, loopback);
    size_t len;

    fill_network_headers(hca, path, packet);
    packet->pkey = qp->pkey;
    len = hca_ib_build(packet, frame);
    for (unsigned i = 0; i < iovcnt; i++) {
        memcpy(frame + len, payload[i].iov_base, payload[i].iov_len);
        len += payload[i].iov_len;
    }
    len = hca_ib_seal(packet, frame, len);
    hca_link_close(hca->link, loopback, packet->vl, len);
    hca->counters.tx_packets++;
    hca_trace(hca, HCA_TRACE_PACKET_TX, packet->dest_qp, packet->opcode,
              packet->psn, packet->payload_len);
}
