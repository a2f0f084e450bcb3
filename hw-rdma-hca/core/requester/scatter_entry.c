/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ScatterEntryManager (engine document 3.4.5.4, figure 3.22): the scatter
 * entries of the oldest Read, used up from the front.
 */
#include "units.h"

HcaV2pState hca_scatter(Hca *hca, HcaQp *qp, const uint8_t *data, uint32_t len)
{
    while (len) {
        HcaSge *entry = hca_mq_reb_head(hca, qp); /* FETCH_ENTRY */
        HcaMatchInfo info;
        HcaV2pState state;

        if (!entry) {
            return HCA_V2P_LENGTH_ERR;
        }
        info = (HcaMatchInfo) {
            .flags = HCA_V2P_ABSOLUTE_ADDR | HCA_ACCESS_LOCAL_WRITE,
            .pd = qp->attr.pd,
            .key = entry->lkey,
            .len = MIN(len, entry->len),
            .va = entry->va,
        };
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
