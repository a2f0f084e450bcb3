/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wr_both (CEU document 2.2, figure 2-7): commands of both the context manager
 * and VirtToPhys.
 */
#include "../../eth/eth.h"
#include "ceu_int.h"

static uint64_t base(__be32 high, __be32 low)
{
    return hca_join_be(high, low) & ~(uint64_t)RDMA_HCA_INIT_LOG_NUM;
}

static unsigned log_num(__be32 low)
{
    return RDMA_HCA_GET(RDMA_HCA_INIT_LOG_NUM, GUINT32_FROM_BE(low));
}

static HcaCxtPlace place(__be32 high, __be32 low)
{
    return (HcaCxtPlace) { base(high, low), log_num(low) };
}

/* INIT_HCA: the places and sizes of all tables, or of none. */
uint8_t hca_ceu_init_hca(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_init_hca *init = (const void *)cmd->inbox;
    HcaCxtPlaces places = {
        .qpc = place(init->qpc_base_h, init->qpc_base_l),
        .cqc = place(init->cqc_base_h, init->cqc_base_l),
        .eqc = place(init->eqc_base_h, init->eqc_base_l),
        .srqc = place(init->srqc_base_h, init->srqc_base_l),
    };
    Hca *hca = ceu->hca;
    uint8_t status = hca_v2p_init(
        hca->v2p, base(init->mpt_base_h, init->mpt_base_l),
        log_num(init->mpt_base_l),
        hca_join_be(init->mtt_base_h, init->mtt_base_l));

    if (status) {
        return status;
    }
    status = hca_cxtmgt_init(hca->cm, &places);
    if (status) {
        hca_v2p_close(hca->v2p);
        return status;
    }
    ceu->initialised = true;
    return RDMA_HCA_STAT_OK;
}

/*
 * CLOSE_HCA: contexts, regions, addresses and rings are gone; ICM stays until
 * unmapped.
 */
uint8_t hca_ceu_close_hca(HcaCeu *ceu, HcaCommand *cmd)
{
    Hca *hca = ceu->hca;

    hca_cxtmgt_close(hca->cm);
    hca_v2p_close(hca->v2p);
    hca_port_close(hca->port);
    if (hca->eth) {
        hca_eth_close(hca->eth);
    }
    ceu->initialised = false;
    return RDMA_HCA_STAT_OK;
}
