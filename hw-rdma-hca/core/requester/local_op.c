/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Local operations (IBA 10.6, 10.8.3): executed in the card, nothing is sent.
 *
 * One is executed once, when its turn comes, and completes when all before it
 * has. Until then it has a place in the multi-queue, at the PSN of the next
 * packet, of which it takes none: what follows is sent meanwhile, and
 * retransmission passes it over. One that waits for all before it is put aside
 * (HcaBarrier) and executed when it completes.
 */
#include "units.h"

typedef struct HcaLocalOp {
    HcaV2pState (*execute)(Hca *hca, const HcaQp *qp, const HcaMemOp *op);
    uint8_t syndrome; /* if it is refused */
} HcaLocalOp;

static HcaV2pState nothing(Hca *hca, const HcaQp *qp, const HcaMemOp *op)
{
    return HCA_V2P_SUCCESS;
}

static HcaV2pState fast_reg(Hca *hca, const HcaQp *qp, const HcaMemOp *op)
{
    return hca_v2p_fast_reg(hca->v2p, HCA_V2P_RTC, qp->attr.pd, op);
}

static HcaV2pState bind(Hca *hca, const HcaQp *qp, const HcaMemOp *op)
{
    return hca_v2p_bind(hca->v2p, HCA_V2P_RTC, qp->attr.pd, qp->qpn, op);
}

static HcaV2pState invalidate(Hca *hca, const HcaQp *qp, const HcaMemOp *op)
{
    HcaInvalidation inv = {
        .key = op->key,
        .pd = qp->attr.pd,
        .qpn = qp->qpn,
    };

    return hca_v2p_invalidate(hca->v2p, HCA_V2P_RTC, &inv);
}

static const HcaLocalOp local_ops[HCA_NMEM_OPS] = {
    [HCA_MEM_NONE] = { nothing, 0 },
    [HCA_MEM_FAST_REG] = { fast_reg, HCA_SYNDROME_LOCAL_QP_OP_ERR },
    [HCA_MEM_BIND] = { bind, HCA_SYNDROME_MW_BIND_ERR },
    [HCA_MEM_INVALIDATE] = { invalidate, HCA_SYNDROME_LOCAL_QP_OP_ERR },
};

uint8_t hca_local_execute(Hca *hca, HcaQp *qp, uint8_t opcode,
                          const HcaMemOp *op, uint8_t *vendor_err)
{
    const HcaLocalOp *local = &local_ops[hca_send_op(opcode)->mem];
    HcaV2pState state = local->execute(hca, qp, op);

    if (local->syndrome) {
        hca_trace(hca, HCA_TRACE_MEM_OP, qp->qpn, opcode, op->key, state);
    }
    *vendor_err = state == HCA_V2P_SUCCESS ? 0 : HCA_LOCAL_REFUSED | state;
    return state == HCA_V2P_SUCCESS ? 0 : local->syndrome;
}

bool hca_local_room(Hca *hca, HcaQp *qp)
{
    if (hca_outstanding(qp)) {
        return hca_mq_swpb_room(hca, qp, 0, 0);
    }
    hca_mq_stop_waiting(hca, qp);
    return true;
}

void hca_local_done(Hca *hca, HcaQp *qp, const HcaWqe *wqe)
{
    HcaSentPacket local = {
        .psn = qp->req.next_psn,
        .wqe_offset = wqe->ref.offset,
        .wqe_opcode = wqe->ref.opcode,
        .local = true,
        .last = true,
        .signalled = wqe->signalled,
    };

    if (hca_outstanding(qp)) {
        hca_mq_swpb_insert(hca, qp, &local, NULL);
    } else {
        hca_complete(hca, qp, wqe->ref.offset, wqe->ref.opcode, wqe->signalled,
                     0, 0, 0);
    }
}

/* Whether the oldest of all that is outstanding is a local operation. */
static bool local_is_next(Hca *hca, HcaQp *qp)
{
    const HcaSentPacket *head = hca_mq_swpb_head(hca, qp);

    return head->local && !hca_read_is_older(hca_mq_rpb_head(hca, qp), head);
}

void hca_local_complete(Hca *hca, HcaQp *qp)
{
    while (qp->req.locals && local_is_next(hca, qp)) {
        HcaSentPacket done = *hca_mq_swpb_head(hca, qp);

        hca_mq_swpb_release(hca, qp);
        hca_complete(hca, qp, done.wqe_offset, done.wqe_opcode, done.signalled,
                     0, 0, 0);
    }
}
