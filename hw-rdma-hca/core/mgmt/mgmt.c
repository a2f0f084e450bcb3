/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QP 0 and QP 1: see mgmt.h. */
#include "mgmt.h"

#include <string.h>

#include "../port/frame_encap.h"

/* Whether @packet is a whole MAD in the way that both interfaces take it. */
static bool is_mad(const HcaPacket *packet)
{
    return packet->opcode == HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY) &&
           packet->payload_len == HCA_MAD_SIZE;
}

static bool is_directed(const uint8_t *mad)
{
    return mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED;
}

/* IBA 13.5.1: on VL 15, without GRH; who has no LID has a directed route. */
static bool is_smp(const HcaPacket *packet)
{
    return packet->vl == HCA_VL_MGMT && packet->dest_qp == 0 &&
           is_mad(packet) && !packet->has_grh &&
           hca_mad_is_smp(packet->payload) &&
           (packet->dlid != HCA_LID_PERMISSIVE || is_directed(packet->payload));
}

static bool is_gmp(const HcaPacket *packet)
{
    return packet->vl != HCA_VL_MGMT && packet->dest_qp == 1 &&
           is_mad(packet) && !hca_mad_is_smp(packet->payload);
}

/* The agents answer by themselves */

/* Its directed part has ended before: LIDs lead back to there (IBA 14.2.2.4). */
static bool ends_by_lids(const uint8_t *mad)
{
    return get_be16(mad + HCA_SMP_DR_DLID) != HCA_LID_PERMISSIVE;
}

/* A response is a manager's, who is not here. */
static void answer_smp(Hca *hca, const HcaPacket *packet)
{
    HcaNode *node = hca_port_node(hca->port);
    HcaMadAddress to = { .path = { .dlid = packet->slid, .smp = true } };
    uint8_t mad[HCA_MAD_SIZE], reply[HCA_MAD_SIZE];
    unsigned out;

    memcpy(mad, packet->payload, sizeof(mad));
    if (is_directed(mad) &&
        (hca_smi_receive(node, HCA_PORT_NUMBER, mad, &out) != HCA_SMI_LOCAL ||
         hca_smp_is_response(mad))) {
        return;
    }
    if (hca_node_answer(node, HCA_PORT_NUMBER, false, mad, reply) !=
        HCA_MAD_REPLY) {
        return;
    }
    if (is_directed(mad) && !ends_by_lids(mad) &&
        hca_smi_respond(node, reply, &out) != HCA_SMI_FORWARD) {
        return;
    }
    hca_frame_send_mad(hca->port, &to, reply);
}

/* Back to where it came from, in the same way (IBA 13.5.4). */
static HcaMadAddress back(Hca *hca, const HcaPacket *packet, unsigned pkey)
{
    HcaMadAddress to = {
        .path = {
            .dlid = packet->slid,
            .sl = packet->sl,
            .grh = packet->has_grh,
            .hop_limit = 0xff,
            .dgid = packet->sgid,
        },
        .pkey = hca_port_pkey(hca->port, pkey),
        .qpn = packet->src_qp,
        .qkey = HCA_QKEY_GSI,
    };
    const HcaGidEntry *source = hca_gid_find(hca->port, &packet->dgid, 0, NULL);

    if (packet->has_grh && source) {
        to.path.sgid_index = hca_gid_index(hca->port, source);
    }
    return to;
}

static void answer_gmp(Hca *hca, const HcaPacket *packet)
{
    uint8_t reply[HCA_MAD_SIZE];
    HcaMadAddress to;
    unsigned pkey;

    if (!hca_port_find_pkey(hca->port, packet->pkey, &pkey)) {
        hca_drop(hca->port, packet, HCA_DROP_PKEY);
    } else if (packet->qkey != HCA_QKEY_GSI) {
        hca_drop(hca->port, packet, HCA_DROP_QKEY);
    } else if (hca_node_answer(hca_port_node(hca->port), HCA_PORT_NUMBER, false,
                               packet->payload, reply) == HCA_MAD_REPLY) {
        to = back(hca, packet, pkey);
        hca_frame_send_mad(hca->port, &to, reply);
    }
}

HcaQp *hca_mgmt_receive(Hca *hca, const HcaPacket *packet)
{
    bool smp = is_smp(packet);
    HcaSpecial special = smp ? HCA_SPECIAL_SMI : HCA_SPECIAL_GSI;
    uint32_t qpn = hca_cxtmgt_special(hca->cm, special);
    HcaQp *qp = NULL;

    if (!smp && !is_gmp(packet)) {
        hca_drop(hca->port, packet, HCA_DROP_MGMT);
    } else if (qpn) {
        qp = hca_qp_find(hca->cm, qpn);
        if (!qp) {
            hca_drop(hca->port, packet, HCA_DROP_QPN);
        }
    } else if (smp) {
        answer_smp(hca, packet);
    } else {
        answer_gmp(hca, packet);
    }
    return qp;
}
