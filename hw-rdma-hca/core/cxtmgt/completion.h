/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States of a request on its way to memory and to its completion
 * (ReqTransCore_Thread_2 document, "state definition", by its numbers). The
 * requester goes through the first four (requester/req_trans_core.c), every
 * completion through the others (completion.c).
 */
#ifndef HCA_COMPLETION_H
#define HCA_COMPLETION_H

#include "cxtmgt.h"

typedef enum HcaReqTransState {
    HCA_RT_IDLE = 1,
    HCA_RT_JUDGE = 2,
    HCA_RT_BYPASS = 3,
    HCA_RT_FETCH_DATA_MR = 4,
    HCA_RT_CQ_REQ = 5,
    HCA_RT_CQ_RESP = 6,
    HCA_RT_FETCH_CQ_MR = 7,
    HCA_RT_FETCH_EQ_MR = 8,
    HCA_RT_EQ_REQ = 9,
    HCA_RT_EQ_RESP = 10,
} HcaReqTransState;

/*
 * Memory that takes its time: whether what a completion in @cqn will need is
 * here; it is asked for by @ask, from the *@nth thing on.
 */
bool hca_cq_is_here(HcaCxtMgt *cm, HcaV2pChannel channel, uint32_t cqn,
                    HcaV2pAsk *ask, unsigned *nth);

#endif /* HCA_COMPLETION_H */
