/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notification of congestion (annex A17.9.3; RoCE engine document 7.4): a
 * packet that came with a CE mark is answered by a CNP to the QP that sent it.
 *
 * A CNP is owed, not sent at once: a receive never waits for a send. A QP owes
 * one at most, and sends none sooner than an interval after the last. A
 * connected QP's goes to its peer; a datagram QP's goes back to the last
 * sender, from the address and VLAN that its packet went to. What came to a
 * multicast group, or names no sender, owes nothing.
 */
#include <string.h>

#include "../port/frame_encap.h"
#include "responder.h"
#include "units.h"

#define NS_PER_US 1000ll

/* The way back to who sent @packet; false if there is none. */
static bool path_back(const Hca *hca, const HcaPacket *packet, HcaPath *path)
{
    const HcaGidEntry *own = hca_gid_find(hca->port, &packet->dgid,
                                          hca_packet_vlan(packet), NULL);

    if (!own || hca_gid_is_multicast(&packet->sgid)) {
        return false;
    }
    *path = (HcaPath) {
        .grh = true,
        .sgid_index = hca_gid_index(hca->port, own),
        .sl = hca_packet_priority(packet),
        .dgid = packet->sgid,
    };
    memcpy(path->dmac, packet->smac, sizeof(path->dmac));
    return true;
}

void hca_cnp_note(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaResponder *resp = &qp->resp;

    /* Only RoCEv2 has an IP header, and ECN in it. */
    if (!packet->ip_header || (packet->tclass & HCA_ECN_MASK) != HCA_ECN_CE) {
        return;
    }
    hca->responder->counters.ecn_marked_rx++;
    if (hca_now(hca) < resp->cnp_next) {
        return;
    }
    if (qp->attr.service == HCA_SERVICE_UD) {
        if (!path_back(hca, packet, &resp->cnp_path)) {
            return;
        }
        resp->cnp_qpn = packet->src_qp;
    } else {
        resp->cnp_path = qp->attr.path;
        resp->cnp_qpn = qp->attr.remote_qpn;
    }
    resp->cnp_owed = true;
    hca_schedule_resp(hca, qp);
}

bool hca_cnp_send(Hca *hca, HcaQp *qp)
{
    HcaResponder *resp = &qp->resp;
    HcaPacket packet = {
        .opcode = HCA_BTH_CNP,
        .becn = true,
        .dest_qp = resp->cnp_qpn,
    };

    if (!resp->cnp_owed) {
        return true;
    }
    if (!hca_frame_can_send(hca->port, &resp->cnp_path)) {
        return false;
    }
    resp->cnp_owed = false;
    resp->cnp_next = hca_now(hca) + hca->config.cnp_interval_us * NS_PER_US;
    hca->responder->counters.cnp_tx++;
    hca_trace(hca, HCA_TRACE_CNP_TX, qp->qpn, resp->cnp_qpn, 0, 0);
    hca_frame_send(hca->port, qp, &resp->cnp_path, &packet, NULL, 0);
    return true;
}
