/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Send WQE processing: what it counts. */
#include "../counter_table.h"
#include "send.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaSendCounters, field, text)
HCA_GAUGE_FN(send_queue, Hca, room->send_queue.length)

static const void *counters(const void *room)
{
    return &((const Hca *)room)->send->counters;
}

static const HcaCounterRow rows[] = {
    COUNTER(54, "doorbells", doorbells, "send doorbells"),
    COUNTER(55, "db_bad_qpn", db_bad_qpn, "doorbells for no QP"),
    COUNTER(56, "db_bad_uar", db_bad_uar, "doorbells from another UAR page"),
    COUNTER(57, "db_bad_state", db_bad_state, "doorbells for a QP not in RTS"),
    COUNTER(58, "db_overflow", db_overflow, "doorbells beyond the send queue"),
    COUNTER(59, "wqes", wqes, "send WQEs fetched"),
    COUNTER(60, "wqes_chained", wqes_chained,
            "of them, linked by the one before"),
    COUNTER(61, "wqe_nop", wqe_opcodes[HCA_OP_NOP], "NOP WQEs"),
    COUNTER(62, "wqe_write", wqe_opcodes[HCA_OP_RDMA_WRITE], "RDMA Write WQEs"),
    COUNTER(63, "wqe_write_imm", wqe_opcodes[HCA_OP_RDMA_WRITE_IMM],
            "RDMA Write with immediate WQEs"),
    COUNTER(64, "wqe_send", wqe_opcodes[HCA_OP_SEND], "Send WQEs"),
    COUNTER(65, "wqe_send_imm", wqe_opcodes[HCA_OP_SEND_IMM],
            "Send with immediate WQEs"),
    COUNTER(66, "wqe_read", wqe_opcodes[HCA_OP_RDMA_READ], "RDMA Read WQEs"),
    COUNTER(67, "wqe_cmp_swap", wqe_opcodes[HCA_OP_ATOMIC_CS],
            "Compare and Swap WQEs"),
    COUNTER(68, "wqe_fetch_add", wqe_opcodes[HCA_OP_ATOMIC_FA],
            "Fetch and Add WQEs"),
    COUNTER(69, "wqe_good", wqe_checks[HCA_WQE_GOOD],
            "WQEs that failed no check"),
    COUNTER(70, "wqe_bad_place", wqe_checks[HCA_WQE_BAD_PLACE],
            "WQEs outside their queue"),
    COUNTER(71, "wqe_unreadable", wqe_checks[HCA_WQE_UNREADABLE],
            "WQEs whose queue could not be read"),
    COUNTER(72, "wqe_bad_opcode", wqe_checks[HCA_WQE_BAD_OPCODE],
            "WQEs of no use with their service"),
    COUNTER(73, "wqe_bad_units", wqe_checks[HCA_WQE_BAD_UNITS],
            "WQEs with units missing or too many"),
    COUNTER(74, "wqe_bad_length", wqe_checks[HCA_WQE_BAD_LENGTH],
            "WQEs above a length limit"),
    COUNTER(75, "wqe_bad_entry", wqe_checks[HCA_WQE_BAD_ENTRY],
            "WQEs with an entry that was refused"),
    HCA_GAUGE(76, "qps_scheduled", INSTANT, send_queue,
              "QPs with something to send"),
    COUNTER(348, "wqe_send_inv", wqe_opcodes[HCA_OP_SEND_INV],
            "Send with invalidate WQEs"),
    COUNTER(349, "wqe_bind", wqe_opcodes[HCA_OP_BIND_MW], "BIND_MW WQEs"),
    COUNTER(350, "wqe_reg_mr", wqe_opcodes[HCA_OP_REG_MR], "REG_MR WQEs"),
    COUNTER(351, "wqe_local_inv", wqe_opcodes[HCA_OP_LOCAL_INV],
            "LOCAL_INV WQEs"),
    COUNTER(372, "wqe_atomic_write", wqe_opcodes[HCA_OP_ATOMIC_WRITE],
            "atomic write WQEs"),
    COUNTER(373, "wqe_flush", wqe_opcodes[HCA_OP_FLUSH], "FLUSH WQEs"),
    COUNTER(309, "wqe_bad_address", wqe_checks[HCA_WQE_BAD_ADDRESS],
            "datagrams without a source address"),
};

const HcaCounterTable hca_send_counter_table = {
    .unit = "send",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
