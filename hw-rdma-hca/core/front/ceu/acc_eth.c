/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_eth: commands of the Ethernet function, which the CEU document has not:
 * SETUP_ETH, SET_RX_MODE, SET_RSS, MODIFY_ETH, SET_PAUSE.
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

    return hca_eth_start(ceu->hca->eth, cmd->in_modifier, &setup);
}

/* The row of all op_modifiers but that which starts the rings. */
uint8_t hca_ceu_stop_eth(HcaCeu *ceu, HcaCommand *cmd)
{
    if (cmd->op_modifier != RDMA_HCA_SETUP_ETH_STOP) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    hca_eth_stop(ceu->hca->eth);
    return RDMA_HCA_STAT_OK;
}

static HcaEthModeration moderation(uint32_t word)
{
    return (HcaEthModeration) {
        .frames = RDMA_HCA_GET(RDMA_HCA_MODERATION_COUNT, word),
        .period_us = RDMA_HCA_GET(RDMA_HCA_MODERATION_PERIOD, word),
    };
}

uint8_t hca_ceu_modify_eth(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaEthModeration tx = moderation(RDMA_HCA_HI32(cmd->in_param));
    HcaEthModeration rx = moderation(RDMA_HCA_LO32(cmd->in_param));

    return hca_eth_moderate(ceu->hca->eth, cmd->in_modifier, &tx, &rx);
}

uint8_t hca_ceu_set_pause(HcaCeu *ceu, HcaCommand *cmd)
{
    if (cmd->in_param & ~(uint64_t)(RDMA_HCA_PAUSE_RX | RDMA_HCA_PAUSE_TX)) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    hca_eth_set_pause(ceu->hca->eth, cmd->in_param & RDMA_HCA_PAUSE_RX,
                      cmd->in_param & RDMA_HCA_PAUSE_TX);
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_set_rss(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_rss *inbox = (const void *)cmd->inbox;
    HcaRssSetup setup = { .types = GUINT32_FROM_BE(inbox->types) };

    memcpy(setup.key, inbox->key, sizeof(setup.key));
    memcpy(setup.table, inbox->table, sizeof(setup.table));
    return hca_eth_set_rss(ceu->hca->eth, &setup);
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
