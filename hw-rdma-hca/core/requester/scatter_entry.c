/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ScatterEntryManager (engine document 3.4.5.4, figure 3.22): the scatter
 * entries of the oldest Read, used up from the front.
 */
#include "../cxtmgt/completion.h"
#include "units.h"

static HcaMatchInfo entry_info(const HcaQp *qp, const HcaSge *entry,
                               uint32_t len)
{
    return (HcaMatchInfo) {
        .flags = HCA_V2P_ABSOLUTE_ADDR | HCA_ACCESS_LOCAL_WRITE,
        .pd = qp->attr.pd,
        .key = entry->lkey,
        .len = MIN(len, entry->len),
        .va = entry->va,
    };
}

HcaV2pState hca_scatter(Hca *hca, HcaQp *qp, const uint8_t *data, uint32_t len)
{
    while (len) {
        HcaSge *entry = hca_mq_reb_head(hca, qp); /* FETCH_ENTRY */
        HcaMatchInfo info;
        HcaV2pState state;

        if (!entry) {
            return HCA_V2P_LENGTH_ERR;
        }
        info = entry_info(qp, entry, len);
        state = hca_v2p_write(hca->v2p, HCA_V2P_RRC, &info, data);
        if (state != HCA_V2P_SUCCESS) {
            return state;
        }
        data += info.len;
        len -= info.len;
        if (info.len == entry->len) {
            hca_mq_reb_release(hca, qp); /* RELEASE_ENTRY */
        } else {
            entry->va += info.len; /* UPDATE_ENTRY */
            entry->len -= info.len;
        }
    }
    return HCA_V2P_SUCCESS;
}

static bool scatter_is_here(Hca *hca, HcaQp *qp, uint32_t len, HcaV2pAsk *ask,
                            unsigned *n)
{
    const HcaSge *entry;

    for (unsigned i = 0; len && (entry = hca_mq_reb_at(hca, qp, i)); i++) {
        HcaMatchInfo info = entry_info(qp, entry, len);

        if (!hca_v2p_ask(hca->v2p, ask, (*n)++, HCA_V2P_RRC, HCA_V2P_STORE,
                         &info)) {
            return false;
        }
        len -= info.len;
    }
    return true;
}

/* Where it goes, and where the completions go that it may lead to. */
bool hca_answer_is_here(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                        HcaV2pAsk *ask)
{
    bool atomic = HCA_BTH_OPERATION(packet->opcode) == HCA_ATOMIC_ACK;
    uint32_t len = atomic ? sizeof(uint64_t) : packet->payload_len;
    unsigned n = 0;

    return !hca_outstanding(qp) ||
           (scatter_is_here(hca, qp, len, ask, &n) &&
            hca_cq_is_here(hca->cm, HCA_V2P_RTC, qp->attr.sq_cqn, ask, &n));
}
