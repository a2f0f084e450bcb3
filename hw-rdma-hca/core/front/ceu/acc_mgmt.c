/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_mgmt: commands of an InfiniBand port's management, with mthca's numbers:
 * the QPs that take the place of QP 0 and QP 1, the card's agents, and what the
 * host has a say in.
 */
#include "ceu_int.h"

#define BE32(x) GUINT32_FROM_BE(x)

static HcaNode *node_of(const HcaCeu *ceu)
{
    return hca_port_node(ceu->hca->port);
}

/* IsSM and the like, of which the card takes no part. */
static void set_capabilities(HcaNode *node, uint32_t wanted)
{
    uint32_t own = node->port[HCA_PORT_NUMBER].info.cap_mask;

    hca_node_set_capabilities(node, HCA_PORT_NUMBER,
                              (own & ~RDMA_HCA_CAP_SOFTWARE) |
                                  (wanted & RDMA_HCA_CAP_SOFTWARE));
}

uint8_t hca_ceu_set_ib(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_set_ib *set = (const void *)cmd->inbox;
    uint32_t flags = BE32(set->flags);
    HcaNode *node = node_of(ceu);

    if (cmd->in_modifier != HCA_PORT_NUMBER) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    if (flags & RDMA_HCA_SET_IB_RESET_QKEY) {
        node->port[HCA_PORT_NUMBER].info.q_key_violations = 0;
    }
    if (flags & RDMA_HCA_SET_IB_SYSTEM_GUID) {
        node->system_guid = hca_join_be(set->guid_h, set->guid_l);
    }
    set_capabilities(node, BE32(set->cap_mask));
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_set_node_desc(HcaCeu *ceu, HcaCommand *cmd)
{
    hca_node_set_description(node_of(ceu), (const char *)cmd->inbox);
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_conf_special_qp(HcaCeu *ceu, HcaCommand *cmd)
{
    static const HcaSpecial specials[] = {
        [RDMA_HCA_SPECIAL_SMI] = HCA_SPECIAL_SMI,
        [RDMA_HCA_SPECIAL_GSI] = HCA_SPECIAL_GSI,
    };

    if (cmd->op_modifier >= G_N_ELEMENTS(specials)) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    return hca_cxtmgt_set_special(ceu->hca->cm, specials[cmd->op_modifier],
                                  cmd->in_modifier);
}

uint32_t hca_ceu_mad_inbox_len(const HcaCommand *cmd)
{
    return cmd->op_modifier & RDMA_HCA_MAD_EXTENDED
               ? sizeof(struct rdma_hca_mad_ifc)
               : RDMA_HCA_MAD_SIZE;
}

/* Where the MAD came from is of no interest to these agents. */
uint8_t hca_ceu_mad_ifc(HcaCeu *ceu, HcaCommand *cmd)
{
    bool local = cmd->op_modifier & RDMA_HCA_MAD_IGNORE_MKEY;

    if ((cmd->in_modifier & 0xffff) != HCA_PORT_NUMBER) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    return hca_node_answer(node_of(ceu), HCA_PORT_NUMBER, local,
                           (const uint8_t *)cmd->inbox,
                           (uint8_t *)cmd->outbox) == HCA_MAD_REPLY
               ? RDMA_HCA_STAT_OK
               : RDMA_HCA_STAT_BAD_PKT;
}
