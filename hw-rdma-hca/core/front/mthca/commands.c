/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of an InfiniHost III Lx, in the order of a driver's probe. */
#include "mthca.h"

/* Of MAP_ICM and its like. */
static uint32_t entries_len(const HcaCommand *cmd)
{
    uint32_t n = cmd->in_modifier;

    return n <= MTHCA_ICM_MAX_ENTRIES ? n * sizeof(struct mthca_icm_entry) : 0;
}

#define ROW(prefix, cmd, when, fn, ...)                                        \
    {                                                                          \
        .op = prefix##_CMD_##cmd, .name = #cmd, .legal = HCA_CEU_##when,       \
        .execute = fn, __VA_ARGS__                                             \
    }
/* By the documents' number, or one that they have not. */
#define KNOWN(cmd, when, fn, ...) ROW(RDMA_HCA, cmd, when, fn, __VA_ARGS__)
#define OTHER(cmd, when, fn, ...) ROW(MTHCA, cmd, when, fn, __VA_ARGS__)

#define MODIFY_QP(way)                                                         \
    KNOWN(way##_QPEE, AFTER_INIT, hca_mthca_modify_qp,                         \
          .transition = HCA_QP_##way,                                          \
          .inbox = sizeof(struct mthca_qp_mailbox))
/* Nothing of the mailbox, if there is one, is taken. */
#define LEAVE_QP(way, fn, ...)                                                 \
    KNOWN(way##_QPEE, AFTER_INIT, fn, .transition = HCA_QP_##way, __VA_ARGS__)

static const HcaCommandRow commands[] = {
    KNOWN(QUERY_FW, ANY, hca_mthca_query_fw, .outbox = sizeof(struct mthca_fw)),
    OTHER(ENABLE_LAM, ANY, hca_mthca_enable_lam),
    OTHER(MAP_FA, ANY, hca_mthca_map_area, .inbox_len = entries_len),
    OTHER(UNMAP_FA, ANY, hca_mthca_unmap_area),
    OTHER(RUN_FW, ANY, hca_ceu_nop),
    KNOWN(QUERY_DEV_LIM, ANY, hca_mthca_query_dev_lim,
          .outbox = sizeof(struct mthca_dev_lim)),
    OTHER(SET_ICM_SIZE, ANY, hca_mthca_set_icm_size),
    OTHER(MAP_ICM_AUX, ANY, hca_mthca_map_area, .inbox_len = entries_len),
    OTHER(UNMAP_ICM_AUX, ANY, hca_mthca_unmap_area),
    KNOWN(MAP_ICM, ANY, hca_mthca_map_icm, .inbox_len = entries_len),
    KNOWN(UNMAP_ICM, ANY, hca_mthca_unmap_icm),
    KNOWN(INIT_HCA, BEFORE_INIT, hca_mthca_init_hca,
          .inbox = sizeof(struct mthca_init_hca)),
    KNOWN(CLOSE_HCA, AFTER_INIT, hca_ceu_close_hca),
    KNOWN(QUERY_ADAPTER, ANY, hca_mthca_query_adapter,
          .outbox = sizeof(struct mthca_adapter)),
    KNOWN(SW2HW_MPT, AFTER_INIT, hca_mthca_sw2hw_mpt,
          .inbox = sizeof(struct mthca_mpt)),
    KNOWN(HW2SW_MPT, AFTER_INIT, hca_mthca_hw2sw_mpt, .op_modifier = 1),
    KNOWN(HW2SW_MPT, AFTER_INIT, hca_mthca_hw2sw_mpt,
          .outbox = sizeof(struct mthca_mpt)),
    KNOWN(SW2HW_CQ, AFTER_INIT, hca_mthca_sw2hw_cq,
          .inbox = sizeof(struct mthca_cqc)),
    KNOWN(HW2SW_CQ, AFTER_INIT, hca_mthca_hw2sw_cq,
          .outbox = sizeof(struct mthca_cqc)),
    KNOWN(QUERY_CQ, AFTER_INIT, hca_ceu_query_cq,
          .outbox = sizeof(struct mthca_cqc)),
    KNOWN(RESIZE_CQ, AFTER_INIT, hca_mthca_resize_cq,
          .inbox = sizeof(struct mthca_resize_cq)),
    KNOWN(SW2HW_EQ, AFTER_INIT, hca_mthca_sw2hw_eq,
          .inbox = sizeof(struct mthca_eqc)),
    KNOWN(HW2SW_EQ, AFTER_INIT, hca_mthca_hw2sw_eq,
          .outbox = sizeof(struct mthca_eqc)),
    KNOWN(QUERY_EQ, AFTER_INIT, hca_ceu_query_eq,
          .outbox = sizeof(struct mthca_eqc)),
    KNOWN(SW2HW_SRQ, AFTER_INIT, hca_mthca_sw2hw_srq,
          .inbox = sizeof(struct mthca_srqc)),
    KNOWN(HW2SW_SRQ, AFTER_INIT, hca_mthca_hw2sw_srq,
          .outbox = sizeof(struct mthca_srqc)),
    KNOWN(QUERY_SRQ, AFTER_INIT, hca_ceu_query_srq,
          .outbox = sizeof(struct mthca_srqc)),
    KNOWN(ARM_SRQ, AFTER_INIT, hca_ceu_arm_srq),
    MODIFY_QP(RST2INIT),
    MODIFY_QP(INIT2INIT),
    MODIFY_QP(INIT2RTR),
    MODIFY_QP(RTR2RTS),
    MODIFY_QP(RTS2RTS),
    MODIFY_QP(SQERR2RTS),
    MODIFY_QP(SQD2SQD),
    MODIFY_QP(SQD2RTS),
    LEAVE_QP(RTS2SQD, hca_mthca_modify_qp),
    LEAVE_QP(2ERR, hca_mthca_modify_qp),
    LEAVE_QP(ERR2RST, hca_mthca_modify_qp, .op_modifier = 3),
    LEAVE_QP(ERR2RST, hca_mthca_destroy_qp,
             .outbox = sizeof(struct mthca_qp_mailbox)),
    KNOWN(QUERY_QP, AFTER_INIT, hca_mthca_query_qp,
          .outbox = sizeof(struct mthca_qp_mailbox)),
    KNOWN(READ_MGM, AFTER_INIT, hca_mthca_read_mgm,
          .outbox = sizeof(struct mthca_mgm)),
    KNOWN(WRITE_MGM, AFTER_INIT, hca_mthca_write_mgm,
          .inbox = sizeof(struct mthca_mgm)),
    OTHER(MGID_HASH, AFTER_INIT, hca_mthca_mgid_hash, .inbox = 16),
    KNOWN(MAP_EQ, AFTER_INIT, hca_ceu_map_eq),
    KNOWN(NOP, ANY, hca_ceu_nop),
    KNOWN(CONF_SPECIAL_QP, AFTER_INIT, hca_ceu_conf_special_qp),
    KNOWN(MAD_IFC, AFTER_INIT, hca_mthca_mad_ifc,
          .inbox_len = hca_ceu_mad_inbox_len, .outbox = RDMA_HCA_MAD_SIZE),
    KNOWN(INIT_IB, AFTER_INIT, hca_ceu_init_ib),
    KNOWN(CLOSE_IB, AFTER_INIT, hca_mthca_close_ib),
    KNOWN(SET_IB, AFTER_INIT, hca_ceu_set_ib,
          .inbox = sizeof(struct rdma_hca_set_ib)),
};

uint8_t hca_mthca_status(uint8_t status)
{
    switch (status) {
    case RDMA_HCA_STAT_BAD_NVMEM:
        return MTHCA_STAT_BAD_NVMEM;
    case RDMA_HCA_STAT_BAD_RESOURCE:
        return MTHCA_STAT_BAD_RESOURCE;
    case RDMA_HCA_STAT_RESOURCE_BUSY:
        return MTHCA_STAT_RESOURCE_BUSY;
    default:
        return status;
    }
}

const HcaCommandTable hca_mthca_commands = {
    .rows = commands,
    .number = G_N_ELEMENTS(commands),
    .status = hca_mthca_status,
};
