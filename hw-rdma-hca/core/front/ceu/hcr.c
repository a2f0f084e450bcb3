/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HCR (interface document 3.1.1, table 3-1-3) and status_mgmt (CEU document
 * 2.2).
 *
 * GO is the lock between software, which writes the registers in a virtual
 * CPU's thread while it is clear, and the card, which reads them in its own
 * while it is set. A write to the registers while GO is set is ignored.
 */
#include "ceu_int.h"

#define REG(name) (RDMA_HCA_HCR_##name / 4)

static uint32_t load(const HcaCeu *ceu, unsigned reg)
{
    return __atomic_load_n(&ceu->hcr[reg], __ATOMIC_ACQUIRE);
}

static void store(HcaCeu *ceu, unsigned reg, uint32_t value)
{
    __atomic_store_n(&ceu->hcr[reg], value, __ATOMIC_RELEASE);
}

uint32_t hca_ceu_read(const HcaCeu *ceu, uint32_t offset)
{
    return load(ceu, offset / 4);
}

bool hca_ceu_write(HcaCeu *ceu, uint32_t offset, uint32_t value)
{
    uint32_t ctrl = load(ceu, REG(CTRL));

    if (ctrl & RDMA_HCA_HCR_GO) {
        __atomic_fetch_add(&ceu->ignored_writes, 1, __ATOMIC_RELAXED);
        return false;
    }
    if (offset / 4 == REG(CTRL)) {
        /* The status is not software's to write. */
        value = (value & ~RDMA_HCA_HCR_STATUS) | (ctrl & RDMA_HCA_HCR_STATUS);
    }
    store(ceu, offset / 4, value);
    return offset / 4 == REG(CTRL) && (value & RDMA_HCA_HCR_GO);
}

bool hca_ceu_wanted(const HcaCeu *ceu)
{
    return load(ceu, REG(CTRL)) & RDMA_HCA_HCR_GO;
}

bool hca_hcr_wants_event(const HcaCeu *ceu)
{
    uint32_t ctrl = load(ceu, REG(CTRL));

    return (ctrl & RDMA_HCA_HCR_GO) && (ctrl & RDMA_HCA_HCR_EVENT);
}

bool hca_hcr_fetch(HcaCeu *ceu, HcaCommand *cmd)
{
    uint32_t ctrl = load(ceu, REG(CTRL));

    if (!(ctrl & RDMA_HCA_HCR_GO)) {
        return false;
    }
    cmd->op = RDMA_HCA_GET(RDMA_HCA_HCR_OP, ctrl);
    cmd->op_modifier = RDMA_HCA_GET(RDMA_HCA_HCR_OP_MODIFIER, ctrl);
    cmd->event = ctrl & RDMA_HCA_HCR_EVENT;
    cmd->in_param = (uint64_t)load(ceu, REG(IN_PARAM_H)) << 32 |
                    load(ceu, REG(IN_PARAM_L));
    cmd->in_modifier = load(ceu, REG(IN_MODIFIER));
    cmd->out_param = (uint64_t)load(ceu, REG(OUT_PARAM_H)) << 32 |
                     load(ceu, REG(OUT_PARAM_L));
    cmd->token = RDMA_HCA_GET(RDMA_HCA_HCR_TOKEN_MASK, load(ceu, REG(TOKEN)));
    return true;
}

void hca_hcr_complete(HcaCeu *ceu, const HcaCommand *cmd)
{
    const HcaCommandTable *table = ceu->hca->interface->commands;
    uint32_t ctrl = load(ceu, REG(CTRL));
    uint8_t status = table->status ? table->status(cmd->status) : cmd->status;

    store(ceu, REG(OUT_PARAM_H), RDMA_HCA_HI32(cmd->out_param));
    store(ceu, REG(OUT_PARAM_L), RDMA_HCA_LO32(cmd->out_param));
    ctrl &= ~(RDMA_HCA_HCR_STATUS | RDMA_HCA_HCR_GO);
    store(ceu, REG(CTRL), ctrl | RDMA_HCA_PREP(RDMA_HCA_HCR_STATUS, status));
}
