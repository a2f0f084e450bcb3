/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FrameEncap (context document 3.2; sources of the fields: table A2-1 of the
 * interface document). Every packet leaves the card here.
 */
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
    uint8_t header[HCA_MAX_HEADER_SIZE];
    uint8_t trailer[HCA_MAX_TRAILER_SIZE];
    size_t header_len, trailer_len;

    fill_network_headers(hca, path, packet);
    packet->pkey = qp->pkey;
    header_len = hca_ib_build(packet, header);
    trailer_len = hca_ib_trailer(packet, header, header_len, payload, iovcnt,
                                 trailer);
    hca_link_send(hca->link, hca_is_own_lid(hca, path->dlid), packet->vl,
                  header, header_len, payload, iovcnt, trailer, trailer_len);
    hca->counters.tx_packets++;
    hca_trace(hca, HCA_TRACE_PACKET_TX, packet->dest_qp, packet->opcode,
              packet->psn, packet->payload_len);
}
