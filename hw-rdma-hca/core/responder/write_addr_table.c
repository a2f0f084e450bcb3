/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WriteAddrTable (engine document 4.4.3, table 4.6): where the next packet of
 * a Write goes. The entry of a QP lies in its context; it also holds how much
 * is left of the length that the first packet gave, which the document does
 * not check.
 */
#include "units.h"

void hca_wat_store(HcaQp *qp, const HcaPacket *packet)
{
    HcaResponder *resp = &qp->resp;

    resp->write_va = packet->va;
    resp->write_pd = resp->remote_pd;
    resp->write_rkey = packet->rkey;
    resp->write_left = packet->dma_len;
}

HcaMatchInfo hca_wat_next(const HcaQp *qp, uint32_t len)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_ABSOLUTE_ADDR | HCA_ACCESS_REMOTE_WRITE,
        .pd = qp->resp.write_pd,
        .key = qp->resp.write_rkey,
        .len = len,
        .va = qp->resp.write_va,
        .qpn = qp->qpn,
    };
}

void hca_wat_update(HcaQp *qp, uint32_t len)
{
    qp->resp.write_va += len;
    qp->resp.write_left -= len;
}
