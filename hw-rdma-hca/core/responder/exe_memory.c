/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What ExecutionEngine will touch for the packet in hand, while memory takes its
 * time (engine document figures 4.5 to 4.7 and 4.9: the states VTP_CMD, VTP_RESP,
 * ENTRY_FETCH, MEM_RESP): asked for one after the other, before anything is
 * done. The packet is judged when it is executed; nothing here says more than
 * how long it takes.
 */
#include "../cxtmgt/completion.h"
#include "responder.h"
#include "units.h"

typedef struct Needs {
    Hca *hca;
    HcaQp *qp;
    const HcaPacket *packet;
    HcaV2pAsk *ask;
    unsigned n;
    bool here; /* all that was asked for so far */
} Needs;

static void need(Needs *needs, HcaV2pUse use, const HcaMatchInfo *info)
{
    if (needs->here && info->len) {
        needs->here = hca_v2p_ask(needs->hca->v2p, needs->ask, needs->n++,
                                  HCA_V2P_EE, use, info);
    }
}

/* What a RETH or AtomicETH names; by XRC, in the PD of the SRQ. */
static void need_region(Needs *needs, HcaV2pUse use, const HcaSrq *xrc,
                        uint32_t access, uint32_t len)
{
    HcaMatchInfo info = hca_remote_info(needs->qp, needs->packet, access, len);

    info.pd = xrc ? xrc->attr.pd : needs->qp->attr.pd;
    need(needs, use, &info);
}

/* The WQE in use, or the one that will be. */
static void need_wqe(Needs *needs, HcaSrq *xrc, HcaRecvWqe *wqe)
{
    HcaQp *qp = needs->qp;
    HcaSrq *srq = xrc ? xrc : qp->srq;

    *wqe = qp->resp.wqe;
    if (qp->resp.wqe_valid || !needs->here) {
        return;
    }
    needs->here = srq ? hca_srq_is_here(needs->hca, srq, needs->ask, &needs->n,
                                        wqe)
                      : hca_recv_queue_is_here(needs->hca, &qp->rq, needs->ask,
                                               &needs->n, wqe);
}

static void need_scatter(Needs *needs, const HcaRecvWqe *wqe, uint32_t len)
{
    uint32_t done = wqe->sge_done;

    for (unsigned i = wqe->sge_at; len && i < wqe->nsge; i++) {
        const HcaSge *sge = &wqe->sge[i];
        HcaMatchInfo info = {
            .flags = HCA_V2P_ABSOLUTE_ADDR | HCA_ACCESS_LOCAL_WRITE,
            .pd = wqe->pd,
            .key = sge->lkey,
            .len = MIN(len, sge->len - done),
            .va = sge->va + done,
        };

        need(needs, HCA_V2P_STORE, &info);
        len -= info.len;
        done = 0;
    }
}

static void need_completion(Needs *needs, uint32_t cqn)
{
    if (needs->here) {
        needs->here = hca_cq_is_here(needs->hca->cm, HCA_V2P_EE, cqn,
                                     needs->ask, &needs->n);
    }
}

/* Figure 4.5 */
static void need_send(Needs *needs, const HcaOperation *op, HcaSrq *xrc)
{
    HcaQp *qp = needs->qp;
    uint32_t header = qp->attr.service == HCA_SERVICE_UD ? HCA_GRH_SIZE : 0;
    HcaRecvWqe wqe = { 0 };

    need_wqe(needs, xrc, &wqe);
    if (needs->here) {
        need_scatter(needs, &wqe, header + needs->packet->payload_len);
    }
    if (op->last) {
        need_completion(needs, xrc ? xrc->attr.cqn : qp->attr.rq_cqn);
    }
}

/* Figure 4.6 */
static void need_write(Needs *needs, const HcaOperation *op, HcaSrq *xrc)
{
    const HcaPacket *packet = needs->packet;
    HcaRecvWqe wqe;

    if (op->imm) {
        need_wqe(needs, xrc, &wqe);
    }
    if (op->first) {
        need_region(needs, HCA_V2P_STORE, xrc, HCA_ACCESS_REMOTE_WRITE,
                    packet->payload_len);
    } else {
        HcaMatchInfo info = hca_wat_next(needs->qp, packet->payload_len);

        need(needs, HCA_V2P_STORE, &info);
    }
    if (op->imm) {
        need_completion(needs, xrc ? xrc->attr.cqn : needs->qp->attr.rq_cqn);
    }
}

static void need_kind(Needs *needs, const HcaOperation *op, HcaSrq *xrc)
{
    switch (op->kind) {
    case HCA_REQUEST_SEND:
        need_send(needs, op, xrc);
        break;
    case HCA_REQUEST_WRITE:
        need_write(needs, op, xrc);
        break;
    case HCA_REQUEST_READ:
        need_region(needs, HCA_V2P_CHECK, xrc, HCA_ACCESS_REMOTE_READ,
                    needs->packet->dma_len);
        break;
    case HCA_REQUEST_FLUSH:
        need_region(needs, HCA_V2P_CHECK, xrc, 0, needs->packet->dma_len);
        break;
    case HCA_REQUEST_ATOMIC_WRITE:
        need_region(needs, HCA_V2P_STORE, xrc, HCA_ACCESS_REMOTE_WRITE,
                    sizeof(uint64_t));
        break;
    default:
        need_region(needs, HCA_V2P_MODIFY, xrc, HCA_ACCESS_REMOTE_ATOMIC,
                    sizeof(uint64_t));
    }
}

bool hca_responder_is_here(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                           HcaV2pAsk *ask)
{
    const HcaOperation *op = hca_operation(packet->opcode);
    bool reliable = hca_service(qp->attr.service)->reliable;
    Needs needs = {
        .hca = hca, .qp = qp, .packet = packet, .ask = ask, .here = true
    };
    HcaSrq *xrc = NULL;

    if (op->refused || (reliable && packet->psn != qp->resp.expected_psn &&
                        op->kind != HCA_REQUEST_READ)) {
        return true; /* no memory is touched */
    }
    if (hca_service(qp->attr.service)->xrc) {
        xrc = hca_srq_xrc(hca->cm, packet->srqn, qp->attr.xrcd);
        if (!xrc) {
            return true;
        }
    }
    need_kind(&needs, op, xrc);
    return needs.here;
}
