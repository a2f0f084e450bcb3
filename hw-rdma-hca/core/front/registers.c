/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers and doorbells of the documents' interface (interface document 3.1;
 * abi/rdma_hca_regs.h).
 */
#include "../../abi/rdma_hca_regs.h"
#include "../../abi/rdma_hca_wqe.h"
#include "../card.h"
#include "../cxtmgt/cxtmgt.h"
#include "../eth/eth.h"
#include "../send/send.h"
#include "bars.h"
#include "contexts.h"
#include "format.h"
#include "interface.h"

/* BAR 0 */

static bool is_eq_doorbell(uint32_t offset, uint32_t *at)
{
    return hca_offset_in(offset, RDMA_HCA_EQ_DB,
                         RDMA_HCA_MAX_EQS * RDMA_HCA_EQ_DB_STRIDE, at);
}

static bool is_eth_doorbell(uint32_t offset, uint32_t *at)
{
    return hca_offset_in(offset, RDMA_HCA_ETH_DB,
                         RDMA_HCA_ETH_MAX_QUEUES * RDMA_HCA_ETH_DB_STRIDE, at);
}

static bool is_doorbell(uint32_t offset)
{
    uint32_t at;

    return is_eq_doorbell(offset, &at) || is_eth_doorbell(offset, &at);
}

static void eq_doorbell(Hca *hca, uint32_t eqn, uint32_t value)
{
    hca_eq_doorbell(hca->cm, eqn, RDMA_HCA_GET(RDMA_HCA_EQ_DB_CI, value),
                    RDMA_HCA_EQ_DB_CI, value & RDMA_HCA_EQ_DB_ARM);
}

static HcaEthDoorbell eth_doorbell(uint32_t at)
{
    switch (at % RDMA_HCA_ETH_DB_STRIDE) {
    case RDMA_HCA_ETH_DB_TX_TAIL:
        return HCA_ETH_TX_TAIL;
    case RDMA_HCA_ETH_DB_RX_TAIL:
        return HCA_ETH_RX_TAIL;
    case RDMA_HCA_ETH_DB_TX_ARM:
        return HCA_ETH_TX_ARM;
    case RDMA_HCA_ETH_DB_RX_ARM:
        return HCA_ETH_RX_ARM;
    default:
        return HCA_ETH_NO_DOORBELL;
    }
}

static void ring(Hca *hca, uint32_t offset, uint32_t value)
{
    uint32_t at;

    if (is_eq_doorbell(offset, &at)) {
        eq_doorbell(hca, at / RDMA_HCA_EQ_DB_STRIDE, value);
    } else if (hca->eth && is_eth_doorbell(offset, &at)) {
        hca_eth_doorbell(hca->eth, at / RDMA_HCA_ETH_DB_STRIDE,
                         eth_doorbell(at), value);
    }
}

/* UAR pages */

static uint32_t send_qpn(uint32_t low, uint32_t high)
{
    return RDMA_HCA_GET(RDMA_HCA_SEND_DB_QPN, high);
}

/* Table 3-1-7, and table 7.1 of the engine document. */
static void send_doorbell(Hca *hca, uint32_t uar, uint32_t low, uint32_t high)
{
    HcaWqeRef ref = {
        .offset = RDMA_HCA_GET(RDMA_HCA_SEND_DB_SQ_HEAD, low) *
                  RDMA_HCA_WQE_UNIT,
        .size = RDMA_HCA_GET(RDMA_HCA_SEND_DB_SIZE, high) * RDMA_HCA_WQE_UNIT,
        .opcode = RDMA_HCA_GET(RDMA_HCA_SEND_DB_OPCODE, low),
        .fence = RDMA_HCA_GET(RDMA_HCA_SEND_DB_FENCE, low),
    };

    hca_send_doorbell(hca, uar, send_qpn(low, high), &ref);
}

static void cq_doorbell(Hca *hca, uint32_t uar, uint32_t low, uint32_t high)
{
    hca_cq_doorbell(hca->cm, uar, RDMA_HCA_GET(RDMA_HCA_CQ_DB_CQN, low),
                    hca_front_cq_arm(low), high);
}

static void ring_uar(Hca *hca, uint32_t uar, HcaUarDoorbell doorbell,
                     uint32_t low, uint32_t high)
{
    if (doorbell == HCA_UAR_SEND) {
        send_doorbell(hca, uar, low, high);
    } else {
        cq_doorbell(hca, uar, low, high);
    }
}

/* Each page has the clock. */
static uint64_t read_uar(Hca *hca, uint32_t at, unsigned size)
{
    uint64_t now;

    if (at - at % 8 != RDMA_HCA_CLOCK) {
        return 0;
    }
    now = hca_now(hca);
    if (size == 8) {
        return now;
    }
    return at == RDMA_HCA_CLOCK ? RDMA_HCA_LO32(now) : RDMA_HCA_HI32(now);
}

const HcaRegisters hca_registers = {
    .hcr = RDMA_HCA_HCR,
    .reset = RDMA_HCA_RESET,
    .uar = { [HCA_UAR_SEND] = RDMA_HCA_SEND_DB, [HCA_UAR_CQ] = RDMA_HCA_CQ_DB },
    .is_doorbell = is_doorbell,
    .ring = ring,
    .ring_uar = ring_uar,
    .send_qpn = send_qpn,
    .read_uar = read_uar,
};
