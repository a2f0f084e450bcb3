/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wr_v2p (CEU document 2.2, figure 2-6): commands of VirtToPhys. */
#include "../format.h"
#include "ceu_int.h"

static uint8_t map_tpt(Hca *hca, uint64_t virt, uint64_t page, uint32_t npages)
{
    return hca_v2p_map_icm(hca->v2p, virt, page, npages);
}

static uint8_t unmap_tpt(Hca *hca, uint64_t virt, uint32_t npages)
{
    return hca_v2p_unmap_icm(hca->v2p, virt, npages);
}

uint8_t hca_ceu_map_icm_v2p(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_ceu_map_entries(ceu, cmd, map_tpt, unmap_tpt);
}

uint8_t hca_ceu_unmap_icm_v2p(HcaCeu *ceu, HcaCommand *cmd)
{
    return unmap_tpt(ceu->hca, cmd->in_param, cmd->in_modifier);
}

uint8_t hca_ceu_sw2hw_mpt(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaMpt mpt;

    hca_mpt_format.decode(&mpt, cmd->inbox);
    if (mpt.pd >= UINT64_C(1) << ceu->hca->config.log_pds) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    return hca_v2p_write_mpt(ceu->hca->v2p, cmd->in_modifier, &mpt);
}

uint8_t hca_ceu_hw2sw_mpt(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_v2p_invalidate_mpt(ceu->hca->v2p, cmd->in_modifier);
}

uint8_t hca_ceu_query_mpt(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaMpt mpt;
    uint8_t status = hca_v2p_query_mpt(ceu->hca->v2p, cmd->in_modifier, &mpt);

    if (!status) {
        hca_mpt_format.encode(&mpt, cmd->outbox);
    }
    return status;
}

/* The number of entries was checked with the length of the mailbox. */
uint8_t hca_ceu_write_mtt(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_mtt_mailbox *box = (const void *)cmd->inbox;
    uint64_t addr[RDMA_HCA_MTT_MAX_ENTRIES];

    for (uint32_t i = 0; i < cmd->in_modifier; i++) {
        addr[i] = hca_join_be(box->entry[RDMA_HCA_MTT_SLOT(i)].addr_h,
                              box->entry[RDMA_HCA_MTT_SLOT(i)].addr_l);
    }
    return hca_v2p_write_mtt(
        ceu->hca->v2p, hca_join_be(box->start_index_h, box->start_index_l),
        addr, cmd->in_modifier);
}

uint8_t hca_ceu_read_mtt(HcaCeu *ceu, HcaCommand *cmd)
{
    struct rdma_hca_mtt_mailbox *box = (void *)cmd->outbox;
    uint64_t addr[RDMA_HCA_MTT_MAX_ENTRIES];
    uint8_t status = hca_v2p_read_mtt(ceu->hca->v2p, cmd->in_param, addr,
                                      cmd->in_modifier);

    if (status) {
        return status;
    }
    box->start_index_h = GUINT32_TO_BE(RDMA_HCA_HI32(cmd->in_param));
    box->start_index_l = GUINT32_TO_BE(RDMA_HCA_LO32(cmd->in_param));
    for (uint32_t i = 0; i < cmd->in_modifier; i++) {
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
            RDMA_HCA_HI32(addr[i]));
        box->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
            RDMA_HCA_LO32(addr[i]));
    }
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_sync_tpt(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_v2p_sync(ceu->hca->v2p);
}
