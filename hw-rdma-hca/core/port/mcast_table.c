/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups (IBA 10.5.2). The driver chooses a group's index and keeps
 * each MGID and, in a group, each QP once.
 */
#include <glib.h>
#include <string.h>

#include "../verbs.h"
#include "port_int.h"

void hca_mcast_reset(HcaPort *port)
{
    memset(&port->mcast, 0, sizeof(port->mcast));
    hca_mcast_chains_end(port);
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

static bool group_ok(const HcaPort *port, const HcaMcastGroup *group)
{
    for (unsigned i = 0; i < group->count; i++) {
        if (group->qpn[i] >= 1u << port->config->log_qps ||
            has_qpn_before(group, i, group->qpn[i])) {
            return false;
        }
    }
    return !group->count || hca_gid_is_multicast(&group->mgid);
}

uint8_t hca_mcast_set(HcaPort *port, unsigned index, const HcaMcastGroup *group)
{
    HcaMcastTable *table = &port->mcast;
    const HcaMcastGroup *same = hca_mcast_find(port, &group->mgid);

    if (index >= RDMA_HCA_MGM_NUM) {
        return HCA_STAT_BAD_INDEX;
    }
    if (!group_ok(port, group)) {
        return HCA_STAT_BAD_PARAM;
    }
    if (group->count && same && same != &table->group[index]) {
        return HCA_STAT_BAD_RESOURCE;
    }
    table->group[index] = *group;
    table->end = MAX(table->end, index + 1);
    while (table->end && !table->group[table->end - 1].count) {
        table->end--;
    }
    return HCA_STAT_OK;
}

const HcaMcastGroup *hca_mcast_get(const HcaPort *port, unsigned index)
{
    return index < RDMA_HCA_MGM_NUM ? &port->mcast.group[index] : NULL;
}

const HcaMcastGroup *hca_mcast_find(const HcaPort *port, const HcaGid *mgid)
{
    if (port->chains.number) {
        return hca_mcast_chain_find(port, mgid);
    }
    for (unsigned i = 0; i < port->mcast.end; i++) {
        const HcaMcastGroup *group = &port->mcast.group[i];

        if (group->count && hca_gid_equal(&group->mgid, mgid)) {
            return group;
        }
    }
    return NULL;
}
