/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers and doorbells of an InfiniHost III Lx (abi/mthca/mthca_regs.h). */
#include "../../card.h"
#include "../../cxtmgt/cxtmgt.h"
#include "../../send/send.h"
#include "../bars.h"
#include "mthca.h"

/* The word of an EQ's place in the table of consumer indices. */
static bool is_set_ci(uint32_t offset, uint32_t *eqn)
{
    uint32_t at;
    bool in_table = hca_offset_in(offset, MTHCA_EQ_SET_CI,
                                  RDMA_HCA_MAX_EQS * MTHCA_EQ_SET_CI_STRIDE,
                                  &at);

    *eqn = at / MTHCA_EQ_SET_CI_STRIDE;
    return in_table && at % MTHCA_EQ_SET_CI_STRIDE == 0;
}

static bool is_arm(uint32_t offset)
{
    return offset == MTHCA_EQ_ARM + 4; /* the low word: EQs 0 to 31 */
}

static bool is_doorbell(uint32_t offset)
{
    uint32_t eqn;

    return is_set_ci(offset, &eqn) || is_arm(offset);
}

static void arm(Hca *hca, uint32_t eqs)
{
    for (uint32_t eqn = 0; eqn < RDMA_HCA_MAX_EQS; eqn++) {
        if (eqs >> eqn & 1) {
            hca_eq_arm_doorbell(hca->cm, eqn);
        }
    }
}

static void ring(Hca *hca, uint32_t offset, uint32_t value)
{
    uint32_t eqn;

    if (is_set_ci(offset, &eqn)) {
        hca_eq_doorbell(hca->cm, eqn, value, UINT32_MAX, false);
    } else if (is_arm(offset)) {
        arm(hca, value);
    }
}

/*
 * The buffer for catastrophic errors: a driver looks at it every few seconds, and
 * begins anew with a card that says something there.
 */
static uint32_t read_register(const Hca *hca, uint32_t offset)
{
    return offset == MTHCA_CATAS && hca_cxtmgt_eq_has_failed(hca->cm)
               ? MTHCA_CATAS_INTERNAL
               : 0;
}

/* The doorbell of a receive queue, at 0x18, is not one that a driver rings. */

static HcaCqArm cq_arm(uint32_t high)
{
    switch (RDMA_HCA_GET(MTHCA_CQ_DB_CMD, high)) {
    case MTHCA_CQ_DB_ARM_SOLICITED:
        return HCA_CQ_ARMED_SOLICITED;
    case MTHCA_CQ_DB_ARM_NEXT:
    case MTHCA_CQ_DB_ARM_AT:
        return HCA_CQ_ARMED_NEXT;
    default:
        return HCA_CQ_DISARMED;
    }
}

/* Opcode, fence and size are of the first WQE, which the counter places. */
static void send_doorbell(Hca *hca, uint32_t uar, uint32_t high, uint32_t low)
{
    uint32_t qpn = RDMA_HCA_GET(MTHCA_SEND_DB_QPN, low);
    const HcaQp *qp = hca_qp_peek(hca->cm, qpn);
    HcaWqeRef ref = {
        .size = RDMA_HCA_GET(MTHCA_SEND_DB_SIZE, low) * RDMA_HCA_WQE_UNIT,
        .opcode = RDMA_HCA_GET(MTHCA_SEND_DB_OPCODE, high),
        .fence = RDMA_HCA_GET(MTHCA_SEND_DB_FENCE, high),
        .count = RDMA_HCA_GET(MTHCA_SEND_DB_COUNT, high),
    };

    if (qp) {
        uint32_t at = RDMA_HCA_GET(MTHCA_SEND_DB_COUNTER, high)
                      << qp->attr.sq_entry_log;

        ref.offset = qp->attr.sq_offset + (at & (qp->attr.sq_len - 1));
    }
    hca_send_doorbell(hca, uar, qpn, &ref);
}

/* What says how many events there have been (SN) does not count: an arm that is
 * taken once too often is an event too many, one that is not is lost. */
static void ring_uar(Hca *hca, uint32_t uar, HcaUarDoorbell doorbell,
                     uint32_t high, uint32_t low)
{
    if (doorbell == HCA_UAR_SEND) {
        send_doorbell(hca, uar, high, low);
    } else {
        hca_cq_doorbell(hca->cm, uar, RDMA_HCA_GET(MTHCA_CQ_DB_CQN, high),
                        cq_arm(high), low);
    }
}

static uint32_t send_qpn(uint32_t high, uint32_t low)
{
    return RDMA_HCA_GET(MTHCA_SEND_DB_QPN, low);
}

const HcaRegisters hca_mthca_registers = {
    .big_endian = true,
    .hcr = MTHCA_HCR,
    .reset = MTHCA_RESET,
    .goes_away = true,
    .clear_pin = MTHCA_CLEAR_INT,
    .clear_pin_size = MTHCA_CLEAR_INT_SIZE,
    .uar = { [HCA_UAR_SEND] = MTHCA_SEND_DB, [HCA_UAR_CQ] = MTHCA_CQ_DB },
    .read = read_register,
    .is_doorbell = is_doorbell,
    .ring = ring,
    .ring_uar = ring_uar,
    .send_qpn = send_qpn,
};
