/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command unit: what it counts. */
#include "../../../abi/mthca/mthca_cmd.h"
#include "../../counter_table.h"
#include "ceu_int.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaCeuCounters, field, text)
#define COMMAND(number, name, op)                                              \
    COUNTER(number, "cmd_" name, opcodes[RDMA_HCA_CMD_##op], #op " commands")
/* Of an InfiniHost III Lx alone. */
#define MTHCA(number, name, op)                                                \
    COUNTER(number, "cmd_" name, opcodes[MTHCA_CMD_##op], #op " commands")
#define STATUS(number, name, s)                                                \
    COUNTER(number, "status_" name, status[RDMA_HCA_STAT_##s],                 \
            "commands answered " #s)

static const void *counters(const void *room)
{
    return hca_ceu_counters((HcaCeu *)room);
}

static const HcaCounterRow rows[] = {
    COUNTER(0, "commands", commands, "commands executed"),
    COUNTER(1, "unknown", unknown, "commands that are none"),
    COUNTER(2, "mailboxes_refused", mailboxes_refused,
            "inboxes and outboxes misplaced or not RAM"),
    COUNTER(3, "ignored_writes", ignored_writes, "register writes while busy"),
    STATUS(4, "ok", OK),
    STATUS(5, "bad_op", BAD_OP),
    STATUS(6, "bad_param", BAD_PARAM),
    STATUS(7, "bad_sys_state", BAD_SYS_STATE),
    STATUS(8, "bad_resource", BAD_RESOURCE),
    STATUS(9, "resource_busy", RESOURCE_BUSY),
    STATUS(10, "exceed_lim", EXCEED_LIM),
    STATUS(11, "bad_res_state", BAD_RES_STATE),
    STATUS(12, "bad_index", BAD_INDEX),
    STATUS(13, "bad_qp_state", BAD_QP_STATE),
    STATUS(14, "bad_seg_param", BAD_SEG_PARAM),
    STATUS(15, "bad_size", BAD_SIZE),
    COMMAND(16, "query_dev_lim", QUERY_DEV_LIM),
    COMMAND(17, "query_fw", QUERY_FW),
    COMMAND(18, "query_adapter", QUERY_ADAPTER),
    COMMAND(19, "query_port", QUERY_PORT),
    COMMAND(20, "nop", NOP),
    COMMAND(21, "diag_rprt", DIAG_RPRT),
    COMMAND(22, "init_ib", INIT_IB),
    COMMAND(23, "close_ib", CLOSE_IB),
    COMMAND(24, "init_hca", INIT_HCA),
    COMMAND(25, "close_hca", CLOSE_HCA),
    COMMAND(26, "map_icm", MAP_ICM),
    COMMAND(27, "unmap_icm", UNMAP_ICM),
    COMMAND(28, "sw2hw_mpt", SW2HW_MPT),
    COMMAND(29, "query_mpt", QUERY_MPT),
    COMMAND(30, "hw2sw_mpt", HW2SW_MPT),
    COMMAND(31, "read_mtt", READ_MTT),
    COMMAND(32, "write_mtt", WRITE_MTT),
    COMMAND(33, "sync_tpt", SYNC_TPT),
    COMMAND(34, "map_eq", MAP_EQ),
    COMMAND(35, "sw2hw_eq", SW2HW_EQ),
    COMMAND(36, "hw2sw_eq", HW2SW_EQ),
    COMMAND(37, "query_eq", QUERY_EQ),
    COMMAND(38, "sw2hw_cq", SW2HW_CQ),
    COMMAND(39, "hw2sw_cq", HW2SW_CQ),
    COMMAND(40, "query_cq", QUERY_CQ),
    COMMAND(41, "resize_cq", RESIZE_CQ),
    COMMAND(42, "rst2init_qpee", RST2INIT_QPEE),
    COMMAND(43, "init2init_qpee", INIT2INIT_QPEE),
    COMMAND(44, "init2rtr_qpee", INIT2RTR_QPEE),
    COMMAND(45, "rtr2rts_qpee", RTR2RTS_QPEE),
    COMMAND(46, "rts2rts_qpee", RTS2RTS_QPEE),
    COMMAND(47, "sqerr2rts_qpee", SQERR2RTS_QPEE),
    COMMAND(48, "2err_qpee", 2ERR_QPEE),
    COMMAND(49, "rts2sqd_qpee", RTS2SQD_QPEE),
    COMMAND(50, "sqd2sqd_qpee", SQD2SQD_QPEE),
    COMMAND(51, "sqd2rts_qpee", SQD2RTS_QPEE),
    COMMAND(52, "err2rst_qpee", ERR2RST_QPEE),
    COMMAND(53, "query_qp", QUERY_QP),
    COMMAND(306, "set_gid", SET_GID),
    COMMAND(307, "write_mgm", WRITE_MGM),
    COMMAND(308, "read_mgm", READ_MGM),
    COMMAND(316, "setup_eth", SETUP_ETH),
    COMMAND(317, "set_rx_mode", SET_RX_MODE),
    COMMAND(353, "sw2hw_srq", SW2HW_SRQ),
    COMMAND(354, "hw2sw_srq", HW2SW_SRQ),
    COMMAND(355, "query_srq", QUERY_SRQ),
    COMMAND(356, "arm_srq", ARM_SRQ),
    COMMAND(366, "modify_cq", MODIFY_CQ),
    COMMAND(369, "resize_srq", RESIZE_SRQ),
    COMMAND(382, "set_qp_counters", SET_QP_COUNTERS),
    COMMAND(383, "query_qp_counters", QUERY_QP_COUNTERS),
    COMMAND(380, "set_flow", SET_FLOW),
    COMMAND(388, "set_rss", SET_RSS),
    COMMAND(389, "modify_eth", MODIFY_ETH),
    COMMAND(390, "set_pause", SET_PAUSE),
    COMMAND(414, "set_ib", SET_IB),
    COMMAND(415, "set_node_desc", SET_NODE_DESC),
    COMMAND(416, "conf_special_qp", CONF_SPECIAL_QP),
    COMMAND(417, "mad_ifc", MAD_IFC),
    STATUS(418, "bad_pkt", BAD_PKT),
    COMMAND(548, "set_mtu", SET_MTU),
    MTHCA(575, "enable_lam", ENABLE_LAM),
    MTHCA(576, "map_fa", MAP_FA),
    MTHCA(577, "unmap_fa", UNMAP_FA),
    MTHCA(578, "run_fw", RUN_FW),
    MTHCA(579, "set_icm_size", SET_ICM_SIZE),
    MTHCA(580, "map_icm_aux", MAP_ICM_AUX),
    MTHCA(581, "unmap_icm_aux", UNMAP_ICM_AUX),
    MTHCA(582, "mgid_hash", MGID_HASH),
};

const HcaCounterTable hca_ceu_counter_table = {
    .unit = "ceu",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
