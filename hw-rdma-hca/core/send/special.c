/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQEs of QP 0 and QP 1 that have the packet's own headers in memory, in front of
 * the payload (wqe_format.h: parse_special()). They say who the peer is and how
 * long the payload is. Its source's LID and the CRCs are the card's.
 */
#include "../wire/wire.h"
#include "send.h"

#define LEAST (HCA_LRH_SIZE + HCA_BTH_SIZE)

bool hca_special_has_headers(const Hca *hca, const HcaQp *qp)
{
    return qp->special && hca->format->wqe->parse_special;
}

bool hca_special_find_headers(const Hca *hca, const HcaQp *qp,
                              const uint8_t *bytes, HcaWqe *wqe,
                              HcaMatchInfo *info)
{
    HcaSge headers;

    if (!hca->format->wqe->parse_special(bytes, wqe, &headers) ||
        headers.len < LEAST || headers.len > HCA_MAX_HEADER_SIZE) {
        return false;
    }
    *info = (HcaMatchInfo) {
        .flags = HCA_V2P_ABSOLUTE_ADDR,
        .pd = qp->attr.pd,
        .key = headers.lkey,
        .len = headers.len,
        .va = headers.va,
    };
    return true;
}

/* The entries end with the payload: behind it may be room for a CRC. */
static bool cut(HcaWqe *wqe, uint32_t len)
{
    unsigned n;

    wqe->msg_len = len;
    for (n = 0; n < wqe->nsge && len; n++) {
        wqe->sge[n].len = MIN(wqe->sge[n].len, len);
        len -= wqe->sge[n].len;
    }
    wqe->nsge = n;
    return !len;
}

HcaWqeCheck hca_special_take_headers(const Hca *hca, const HcaQp *qp,
                                     const uint8_t *headers, uint32_t len,
                                     HcaWqe *wqe)
{
    HcaPacket packet;

    if (hca_ib_parse_headers(&packet, headers, len) != HCA_PARSE_OK ||
        packet.opcode != HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY) ||
        !cut(wqe, packet.payload_len)) {
        return HCA_WQE_BAD_UNITS;
    }
    wqe->dqpn = packet.dest_qp;
    wqe->qkey = packet.qkey;
    wqe->solicited = packet.solicited;
    wqe->path.smp = qp->special == HCA_SPECIAL_SMI;
    return hca_port_path_of(hca->port, &packet, &wqe->path)
               ? HCA_WQE_GOOD
               : HCA_WQE_BAD_ADDRESS;
}
