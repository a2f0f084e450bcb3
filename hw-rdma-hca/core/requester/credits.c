/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * End-to-end flow control (IBA 9.7.7.2; the engine document does not have it).
 *
 * The peer tells in each AETH how many messages it has executed (MSN) and for
 * how many more it has receives. Their sum is the limit of the sequence number
 * (LSN) that the messages of a QP count by (SSN). What takes no receive makes
 * the limit one more.
 *
 * One message beyond the limit may go: its answer tells new credits, be it
 * after RNR NAKs, so no QP waits for ever. Nor does it for a peer that counts
 * wrongly: when all is acknowledged the next message goes.
 */
#include "units.h"

bool hca_credits_allow(const HcaQp *qp, const HcaSendOp *op)
{
    const HcaRequester *req = &qp->req;

    return !op->ends_receive || req->no_credits || !hca_outstanding(qp) ||
           hca_psn_diff(req->ssn, req->lsn) <= 0;
}

void hca_credits_begin(HcaQp *qp, const HcaSendOp *op)
{
    HcaRequester *req = &qp->req;

    req->ssn = hca_psn_add(req->ssn, 1);
    if (!op->ends_receive) {
        req->lsn = hca_psn_add(req->lsn, 1);
    }
}

bool hca_credits_told(Hca *hca, HcaQp *qp, const HcaPacket *packet)
{
    HcaRequester *req = &qp->req;
    uint8_t code = HCA_AETH_VALUE(packet->syndrome);
    uint32_t lsn = hca_psn_add(packet->msn, hca_aeth_credits(code));

    if (req->no_credits) {
        return false;
    }
    if (code == HCA_AETH_CREDITS_INVALID) {
        req->no_credits = true;
    } else if (hca_psn_diff(lsn, req->lsn) > 0) {
        req->lsn = lsn;
    } else {
        return false;
    }
    hca_schedule_send(hca, qp);
    return true;
}
