/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_eth: commands of the Ethernet function, which the CEU document has not:
 * SETUP_ETH, SET_RX_MODE.
 */
#include <string.h>

#include "../../eth/eth.h"
#include "ceu_int.h"

uint8_t hca_ceu_setup_eth(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_setup_eth *inbox = (const void *)cmd->inbox;
    uint32_t sizes = GUINT32_FROM_BE(inbox->log_sizes);
    uint32_t vectors = GUINT32_FROM_BE(inbox->vectors);
    HcaEthSetup setup = {
        .tx = { .addr = hca_join_be(inbox->tx_ring_h, inbox->tx_ring_l),
                .log_size = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_LOG_TX, sizes),
                .vector = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_TX_VECTOR, vectors) },
        .rx = { .addr = hca_join_be(inbox->rx_ring_h, inbox->rx_ring_l),
                .log_size = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_LOG_RX, sizes),
                .vector = RDMA_HCA_GET(RDMA_HCA_SETUP_ETH_RX_VECTOR, vectors) },
    };

    return hca_eth_setup(ceu->hca->eth, &setup);
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
    const struct rdma_hca_rx_mode *inbox = (const void *)cmd->inbox;
    uint32_t flags = GUINT32_FROM_BE(inbox->flags);
    HcaEthRxMode mode = {
        .promisc = flags & RDMA_HCA_RX_MODE_PROMISC,
        .allmulti = flags & RDMA_HCA_RX_MODE_ALLMULTI,
        .count = GUINT32_FROM_BE(inbox->count),
    };

    memcpy(mode.mac, &inbox->mac_h, 4);
    memcpy(mode.mac + 4, &inbox->mac_l, 2);
    for (unsigned i = 0; i < MIN(mode.count, HCA_ETH_MAX_MULTICAST); i++) {
        memcpy(mode.multicast[i], inbox->multicast[i], HCA_ETH_MAC_SIZE);
    }
    return hca_eth_set_rx_mode(ceu->hca->eth, &mode);
}
