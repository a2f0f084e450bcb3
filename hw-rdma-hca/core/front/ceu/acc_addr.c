/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_addr: commands of the port's address tables, which the CEU document has
 * not: SET_GID, WRITE_MGM, READ_MGM.
 */
#include "ceu_int.h"

/* An interface's MAC, and an address that one may have. */
static bool entry_ok(const HcaGidEntry *entry)
{
    static const uint8_t zero[6];

    return !(entry->mac[0] & 1) &&
           memcmp(entry->mac, zero, sizeof(zero)) != 0 &&
           !hca_gid_is_multicast(&entry->gid) &&
           !hca_gid_is_zero(&entry->gid) &&
           entry->vlan != 0xfff; /* reserved (IEEE 802.1Q 9.6) */
}

static void decode_entry(const struct rdma_hca_gid_entry *from, HcaGidEntry *to)
{
    uint32_t word = GUINT32_FROM_BE(from->type_vlan);

    *to = (HcaGidEntry) {
        .valid = true,
        .has_vlan = RDMA_HCA_GET(RDMA_HCA_GID_HAS_VLAN, word),
    };
    if (to->has_vlan) {
        to->vlan = RDMA_HCA_GET(RDMA_HCA_GID_VLAN, word);
    }
    memcpy(to->gid.raw, from->gid, sizeof(to->gid.raw));
    hca_path_mac(to->mac, GUINT32_FROM_BE(from->mac_h),
                 GUINT32_FROM_BE(from->mac_l) >> 16);
}

uint8_t hca_ceu_set_gid(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_gid_entry *from = (const void *)cmd->inbox;
    uint32_t type = RDMA_HCA_GET(RDMA_HCA_GID_TYPE,
                                 GUINT32_FROM_BE(from->type_vlan));
    HcaGidEntry entry = { 0 };

    if (type == RDMA_HCA_GID_TYPE_ROCE_V2) {
        decode_entry(from, &entry);
        if (!entry_ok(&entry)) {
            return RDMA_HCA_STAT_BAD_PARAM;
        }
    } else if (type != RDMA_HCA_GID_TYPE_NONE) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    return hca_gid_set(ceu->hca->port, cmd->in_modifier, &entry)
               ? RDMA_HCA_STAT_OK
               : RDMA_HCA_STAT_BAD_INDEX;
}

uint8_t hca_ceu_write_mgm(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_mgm *mgm = (const void *)cmd->inbox;
    HcaMcastGroup group = { .count = GUINT32_FROM_BE(mgm->count) };

    if (group.count > RDMA_HCA_MGM_MAX_QPS) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    memcpy(group.mgid.raw, mgm->mgid, sizeof(group.mgid.raw));
    for (unsigned i = 0; i < group.count; i++) {
        group.qpn[i] = GUINT32_FROM_BE(mgm->qpn[i]);
    }
    return hca_mcast_set(ceu->hca->port, cmd->in_modifier, &group);
}

uint8_t hca_ceu_read_mgm(HcaCeu *ceu, HcaCommand *cmd)
{
    const HcaMcastGroup *group = hca_mcast_get(ceu->hca->port,
                                               cmd->in_modifier);
    struct rdma_hca_mgm *mgm = (void *)cmd->outbox;

    if (!group) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    memcpy(mgm->mgid, group->mgid.raw, sizeof(mgm->mgid));
    mgm->count = GUINT32_TO_BE(group->count);
    for (unsigned i = 0; i < group->count; i++) {
        mgm->qpn[i] = GUINT32_TO_BE(group->qpn[i]);
    }
    return RDMA_HCA_STAT_OK;
}
