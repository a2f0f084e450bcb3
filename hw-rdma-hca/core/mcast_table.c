/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups (IBA 10.5.2). The driver chooses a group's index and keeps
 * each MGID and, in a group, each QP once.
 */
#include "card.h"

void hca_mcast_reset(Hca *hca)
{
    memset(&hca->mcast, 0, sizeof(hca->mcast));
}

static bool has_qpn_before(const HcaMcastGroup *group, unsigned end,
                           uint32_t qpn)
{
    for (unsigned i = 0; i < end; i++) {
        if (group->qpn[i] == qpn) {
            return true;
        }
    }
    return false;
}

static bool group_ok(const Hca *hca, const HcaMcastGroup *group)
{
    for (unsigned i = 0; i < group->count; i++) {
        if (group->qpn[i] >= 1u << hca->config.log_qps ||
            has_qpn_before(group, i, group->qpn[i])) {
            return false;
        }
    }
    return !group->count || hca_gid_is_multicast(&group->mgid);
}

uint8_t hca_mcast_set(Hca *hca, unsigned index, const HcaMcastGroup *group)
{
    HcaMcastTable *table = &hca->mcast;
    const HcaMcastGroup *same = hca_mcast_find(hca, &group->mgid);

    if (index >= RDMA_HCA_MGM_NUM) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    if (!group_ok(hca, group)) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    if (group->count && same && same != &table->group[index]) {
        return RDMA_HCA_STAT_BAD_RESOURCE;
    }
    table->group[index] = *group;
    table->end = MAX(table->end, index + 1);
    while (table->end && !table->group[table->end - 1].count) {
        table->end--;
    }
    return RDMA_HCA_STAT_OK;
}

const HcaMcastGroup *hca_mcast_get(const Hca *hca, unsigned index)
{
    return index < RDMA_HCA_MGM_NUM ? &hca->mcast.group[index] : NULL;
}

const HcaMcastGroup *hca_mcast_find(const Hca *hca, const HcaGid *mgid)
{
    for (unsigned i = 0; i < hca->mcast.end; i++) {
        const HcaMcastGroup *group = &hca->mcast.group[i];

        if (group->count && hca_gid_equal(&group->mgid, mgid)) {
            return group;
        }
    }
    return NULL;
}
