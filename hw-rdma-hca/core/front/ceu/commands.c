/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands of the documents' interface (interface document 3.2; CEU
 * document 2.2), and those that both leave out.
 */
#include "ceu_int.h"

static uint32_t round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

static uint32_t icm_inbox_len(const HcaCommand *cmd)
{
    uint32_t n = cmd->in_modifier;

    if (!n || n > RDMA_HCA_ICM_MAX_ENTRIES) {
        return 0;
    }
    return round_up(n, 2) * sizeof(struct rdma_hca_icm_entry);
}

static uint32_t mtt_mailbox_len(const HcaCommand *cmd)
{
    uint32_t n = cmd->in_modifier;

    if (!n || n > RDMA_HCA_MTT_MAX_ENTRIES) {
        return 0;
    }
    return sizeof(struct rdma_hca_mtt_mailbox) +
           round_up(n, 4) * RDMA_HCA_MTT_SIZE;
}

#define ROW(cmd, when, fn, ...)                                                \
    {                                                                          \
        .op = RDMA_HCA_CMD_##cmd, .name = #cmd, .legal = HCA_CEU_##when,       \
        .execute = hca_ceu_##fn, __VA_ARGS__                                   \
    }
#define MODIFY_QP(way)                                                         \
    ROW(way##_QPEE, AFTER_INIT, modify_qp, .transition = HCA_QP_##way,         \
        .inbox = sizeof(struct rdma_hca_qpc), .no_inbox_modifier = true)

static const HcaCommandRow commands[] = {
    ROW(QUERY_DEV_LIM, ANY, query_dev_lim,
        .outbox = sizeof(struct rdma_hca_dev_lim)),
    ROW(QUERY_FW, ANY, query_fw, .outbox = sizeof(struct rdma_hca_fw)),
    ROW(QUERY_ADAPTER, ANY, query_adapter,
        .outbox = sizeof(struct rdma_hca_adapter)),
    ROW(QUERY_PORT, ANY, query_port, .outbox = sizeof(struct rdma_hca_port)),
    ROW(NOP, ANY, nop),
    ROW(DIAG_RPRT, ANY, diag_rprt, .outbox = sizeof(struct rdma_hca_diag)),
    ROW(INIT_IB, AFTER_INIT, init_ib),
    ROW(CLOSE_IB, AFTER_INIT, close_ib),
    ROW(SET_IB, AFTER_INIT, set_ib, .ib = true,
        .inbox = sizeof(struct rdma_hca_set_ib)),
    ROW(SET_NODE_DESC, AFTER_INIT, set_node_desc, .ib = true,
        .inbox = RDMA_HCA_NODE_DESC_SIZE),
    ROW(CONF_SPECIAL_QP, AFTER_INIT, conf_special_qp, .ib = true),
    ROW(MAD_IFC, AFTER_INIT, mad_ifc, .ib = true,
        .inbox_len = hca_ceu_mad_inbox_len, .outbox = RDMA_HCA_MAD_SIZE),
    ROW(SET_GID, AFTER_INIT, set_gid, .roce = true,
        .inbox = sizeof(struct rdma_hca_gid_entry)),
    ROW(SET_MTU, AFTER_INIT, set_mtu, .roce = true),
    ROW(SETUP_ETH, AFTER_INIT, setup_eth, .roce = true,
        .op_modifier = RDMA_HCA_SETUP_ETH_START,
        .inbox = sizeof(struct rdma_hca_setup_eth)),
    ROW(SETUP_ETH, AFTER_INIT, stop_eth, .roce = true),
    ROW(SET_RX_MODE, AFTER_INIT, set_rx_mode, .roce = true,
        .inbox = RDMA_HCA_RX_MODE_SIZE),
    ROW(SET_RSS, AFTER_INIT, set_rss, .roce = true,
        .inbox = sizeof(struct rdma_hca_rss)),
    ROW(MODIFY_ETH, AFTER_INIT, modify_eth, .roce = true),
    ROW(SET_PAUSE, AFTER_INIT, set_pause, .roce = true),
    ROW(SET_FLOW, AFTER_INIT, add_flow, .roce = true,
        .op_modifier = RDMA_HCA_SET_FLOW_ADD,
        .inbox = sizeof(struct rdma_hca_flow)),
    ROW(SET_FLOW, AFTER_INIT, remove_flow, .roce = true),
    ROW(WRITE_MGM, AFTER_INIT, write_mgm, .inbox = RDMA_HCA_MGM_SIZE),
    ROW(READ_MGM, AFTER_INIT, read_mgm, .outbox = RDMA_HCA_MGM_SIZE),
    ROW(INIT_HCA, BEFORE_INIT, init_hca,
        .inbox = sizeof(struct rdma_hca_init_hca)),
    ROW(CLOSE_HCA, AFTER_INIT, close_hca),
    ROW(MAP_ICM, ANY, map_icm_cm, .op_modifier = RDMA_HCA_ICM_CXT,
        .inbox_len = icm_inbox_len),
    ROW(MAP_ICM, ANY, map_icm_v2p, .op_modifier = RDMA_HCA_ICM_TPT,
        .inbox_len = icm_inbox_len),
    ROW(UNMAP_ICM, ANY, unmap_icm_cm, .op_modifier = RDMA_HCA_ICM_CXT),
    ROW(UNMAP_ICM, ANY, unmap_icm_v2p, .op_modifier = RDMA_HCA_ICM_TPT),
    ROW(SW2HW_MPT, AFTER_INIT, sw2hw_mpt, .inbox = sizeof(struct rdma_hca_mpt)),
    ROW(QUERY_MPT, AFTER_INIT, query_mpt,
        .outbox = sizeof(struct rdma_hca_mpt)),
    ROW(HW2SW_MPT, AFTER_INIT, hw2sw_mpt),
    ROW(READ_MTT, AFTER_INIT, read_mtt, .outbox_len = mtt_mailbox_len),
    ROW(WRITE_MTT, AFTER_INIT, write_mtt, .inbox_len = mtt_mailbox_len),
    ROW(SYNC_TPT, AFTER_INIT, sync_tpt),
    ROW(MAP_EQ, AFTER_INIT, map_eq),
    ROW(SW2HW_EQ, AFTER_INIT, sw2hw_eq, .inbox = sizeof(struct rdma_hca_eqc)),
    ROW(HW2SW_EQ, AFTER_INIT, hw2sw_eq),
    ROW(QUERY_EQ, AFTER_INIT, query_eq, .outbox = sizeof(struct rdma_hca_eqc)),
    ROW(SW2HW_CQ, AFTER_INIT, sw2hw_cq, .inbox = sizeof(struct rdma_hca_cqc)),
    ROW(HW2SW_CQ, AFTER_INIT, hw2sw_cq),
    ROW(QUERY_CQ, AFTER_INIT, query_cq, .outbox = sizeof(struct rdma_hca_cqc)),
    ROW(RESIZE_CQ, AFTER_INIT, resize_cq,
        .inbox = sizeof(struct rdma_hca_resize_cq)),
    ROW(MODIFY_CQ, AFTER_INIT, modify_cq),
    ROW(SW2HW_SRQ, AFTER_INIT, sw2hw_srq,
        .inbox = sizeof(struct rdma_hca_srqc)),
    ROW(HW2SW_SRQ, AFTER_INIT, hw2sw_srq),
    ROW(QUERY_SRQ, AFTER_INIT, query_srq,
        .outbox = sizeof(struct rdma_hca_srqc)),
    ROW(ARM_SRQ, AFTER_INIT, arm_srq),
    ROW(RESIZE_SRQ, AFTER_INIT, resize_srq,
        .inbox = sizeof(struct rdma_hca_resize_srq)),
    MODIFY_QP(RST2INIT),
    MODIFY_QP(INIT2INIT),
    MODIFY_QP(INIT2RTR),
    MODIFY_QP(RTR2RTS),
    MODIFY_QP(RTS2RTS),
    MODIFY_QP(SQERR2RTS),
    MODIFY_QP(2ERR),
    MODIFY_QP(RTS2SQD),
    MODIFY_QP(SQD2SQD),
    MODIFY_QP(SQD2RTS),
    MODIFY_QP(ERR2RST),
    ROW(QUERY_QP, AFTER_INIT, query_qp, .outbox = sizeof(struct rdma_hca_qpc)),
    ROW(SET_QP_COUNTERS, AFTER_INIT, set_qp_counters),
    ROW(QUERY_QP_COUNTERS, ANY, query_qp_counters,
        .outbox = sizeof(struct rdma_hca_diag)),
};

const HcaCommandTable hca_commands = {
    .rows = commands,
    .number = G_N_ELEMENTS(commands),
};

const char *hca_ceu_command_name(const HcaInterface *interface, uint16_t op)
{
    const HcaCommandTable *table = interface->commands;

    for (unsigned i = 0; i < table->number; i++) {
        if (table->rows[i].op == op) {
            return table->rows[i].name;
        }
    }
    return NULL;
}
