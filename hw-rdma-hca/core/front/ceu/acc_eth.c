/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_eth: commands of the Ethernet function, which the CEU document has not:
 * SETUP_ETH, SET_RX_MODE.
 */
#include "../../eth/eth.h"
#include "ceu_int.h"

uint8_t hca_ceu_setup_eth(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_eth_setup(ceu->hca->eth, (const void *)cmd->inbox);
}

/* The row of all op_modifiers but that which starts the rings. */
uint8_t hca_ceu_stop_eth(HcaCeu *ceu, HcaCommand *cmd)
{
    if (cmd->op_modifier != RDMA_HCA_SETUP_ETH_STOP) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    return hca_eth_setup(ceu->hca->eth, NULL);
}

uint8_t hca_ceu_set_rx_mode(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_eth_set_rx_mode(ceu->hca->eth, (const void *)cmd->inbox);
}
