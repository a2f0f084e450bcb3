/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_addr: commands of the port's address tables, which the CEU document has
 * not: SET_GID, WRITE_MGM, READ_MGM, SET_FLOW.
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

uint8_t hca_ceu_set_mtu(HcaCeu *ceu, HcaCommand *cmd)
{
    return cmd->in_param <= UINT8_MAX &&
                   hca_port_set_mtu(ceu->hca->port, cmd->in_param)
               ? RDMA_HCA_STAT_OK
               : RDMA_HCA_STAT_BAD_PARAM;
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

G_STATIC_ASSERT(sizeof(struct rdma_hca_flow_match) == sizeof(HcaFlowKey));
G_STATIC_ASSERT(RDMA_HCA_FLOW_HAS_VLAN == HCA_FLOW_HAS_VLAN);
G_STATIC_ASSERT(RDMA_HCA_FLOW_HAS_IPV4 == HCA_FLOW_HAS_IPV4);
G_STATIC_ASSERT(RDMA_HCA_FLOW_HAS_IPV6 == HCA_FLOW_HAS_IPV6);
G_STATIC_ASSERT(RDMA_HCA_FLOW_HAS_PORTS == HCA_FLOW_HAS_PORTS);

/* Bytes in network order on both sides. */
static void decode_match(const struct rdma_hca_flow_match *from, HcaFlowKey *to)
{
    memset(to, 0, sizeof(*to));
    memcpy(to->dmac, from->dmac, sizeof(to->dmac));
    memcpy(to->smac, from->smac, sizeof(to->smac));
    memcpy(to->ether_type, &from->ether_type, sizeof(to->ether_type));
    memcpy(to->vlan_tci, &from->vlan_tci, sizeof(to->vlan_tci));
    memcpy(to->sip, from->sip, sizeof(to->sip));
    memcpy(to->dip, from->dip, sizeof(to->dip));
    memcpy(to->sport, &from->sport, sizeof(to->sport));
    memcpy(to->dport, &from->dport, sizeof(to->dport));
    to->protocol = from->protocol;
    to->tclass = from->tclass;
    to->hop_limit = from->hop_limit;
    to->layers = from->layers;
    memcpy(to->flow_label, &from->flow_label, sizeof(to->flow_label));
}

uint8_t hca_ceu_add_flow(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_flow *flow = (const void *)cmd->inbox;
    uint32_t word = GUINT32_FROM_BE(flow->kind_priority);
    HcaFlowRule rule = {
        .qpn = GUINT32_FROM_BE(flow->qpn),
        .kind = RDMA_HCA_GET(RDMA_HCA_FLOW_KIND, word),
        .priority = RDMA_HCA_GET(RDMA_HCA_FLOW_PRIORITY, word),
        .tag = GUINT32_FROM_BE(flow->tag),
        .dont_trap = word & RDMA_HCA_FLOW_DONT_TRAP,
    };

    decode_match(&flow->value, &rule.value);
    decode_match(&flow->mask, &rule.mask);
    return hca_flow_add(ceu->hca->port, cmd->in_modifier, &rule);
}

/* The row of all op_modifiers but that which adds a rule. */
uint8_t hca_ceu_remove_flow(HcaCeu *ceu, HcaCommand *cmd)
{
    if (cmd->op_modifier != RDMA_HCA_SET_FLOW_REMOVE) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    return hca_flow_remove(ceu->hca->port, cmd->in_modifier);
}
