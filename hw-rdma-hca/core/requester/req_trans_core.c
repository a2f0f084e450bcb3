/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ReqTransCore_Thread_2 (its document, state table): judges a packet by its
 * operation and finds the memory of its payload, if it has any.
 *
 * Inline data, RDMA Reads and FLUSH bypass the memory regions of data: inline
 * data are part of the WQE, the others carry none. Departure: the document completes
 * an inline request when it has passed; here a reliable one completes when it
 * is acknowledged. The rest of the chain is cxtmgt/completion.c.
 */
#include "../cxtmgt/completion.h"
#include "../port/frame_encap.h"
#include "units.h"

typedef struct Request {
    Hca *hca;
    HcaQp *qp;
    uint8_t opcode;
    const HcaSge *refs;
    unsigned nrefs;
    struct iovec *iov;
    unsigned room;
    unsigned used;
    HcaV2pState result;
} Request;

static HcaMatchInfo ref_info(const HcaQp *qp, const HcaSge *ref)
{
    return (HcaMatchInfo) {
        .flags = ref->relative ? HCA_V2P_RELATIVE_ADDR : HCA_V2P_ABSOLUTE_ADDR,
        .pd = qp->attr.pd,
        .key = ref->lkey,
        .len = ref->len,
        .va = ref->va,
    };
}

/* Find the memory of each piece of the payload. */
static void map_pieces(Request *request, HcaV2pChannel channel)
{
    for (unsigned i = 0; i < request->nrefs; i++) {
        HcaMatchInfo info = ref_info(request->qp, &request->refs[i]);
        unsigned n = request->room - request->used;

        request->result = hca_v2p_map(request->hca->v2p, channel, &info,
                                      request->iov + request->used, &n);
        if (request->result != HCA_V2P_SUCCESS) {
            return;
        }
        request->used += n;
    }
}

static HcaReqTransState judge(const Request *request)
{
    bool in_line = request->nrefs && request->refs[0].relative;
    const HcaSendOp *op = hca_send_op(request->opcode);

    return in_line || op->transfer == HCA_TRANSFER_RESPONSE || op->flush
               ? HCA_RT_BYPASS
               : HCA_RT_FETCH_DATA_MR;
}

static HcaReqTransState step(Request *request, HcaReqTransState state)
{
    switch (state) {
    case HCA_RT_JUDGE:
        return judge(request);
    case HCA_RT_BYPASS:
        map_pieces(request, HCA_V2P_WP_WQE);
        return HCA_RT_IDLE;
    case HCA_RT_FETCH_DATA_MR:
        map_pieces(request, HCA_V2P_WP_ND);
        return HCA_RT_IDLE;
    default:
        return HCA_RT_IDLE;
    }
}

HcaV2pState hca_req_trans_core(Hca *hca, HcaQp *qp, uint8_t opcode,
                               const HcaSge *refs, unsigned nrefs,
                               struct iovec *iov, unsigned *iovcnt)
{
    HcaReqTransState state = HCA_RT_JUDGE;
    Request request = {
        .hca = hca,
        .qp = qp,
        .opcode = opcode,
        .refs = refs,
        .nrefs = nrefs,
        .iov = iov,
        .room = *iovcnt,
        .result = HCA_V2P_SUCCESS,
    };

    while (state != HCA_RT_IDLE) {
        HcaReqTransState next = step(&request, state);

        hca_trace(hca, HCA_TRACE_REQ_TRANS, qp->qpn, state, next,
                  request.result);
        state = next;
    }
    *iovcnt = request.used;
    return request.result;
}

bool hca_req_trans_is_here(Hca *hca, HcaQp *qp, uint8_t opcode,
                           const HcaSge *refs, unsigned nrefs, bool completes)
{
    const Request request = { .opcode = opcode, .refs = refs, .nrefs = nrefs };
    HcaV2pChannel channel = judge(&request) == HCA_RT_BYPASS ? HCA_V2P_WP_WQE
                                                             : HCA_V2P_WP_ND;

    unsigned n;

    for (n = 0; n < nrefs; n++) {
        HcaMatchInfo info = ref_info(qp, &refs[n]);

        if (!hca_v2p_ask(hca->v2p, &qp->send_ask, n, channel, HCA_V2P_FETCH,
                         &info)) {
            return false;
        }
    }
    if (completes && !hca_cq_is_here(hca->cm, HCA_V2P_RTC, qp->attr.sq_cqn,
                                     &qp->send_ask, &n)) {
        return false;
    }
    hca_v2p_ask_done(&qp->send_ask);
    return true;
}
