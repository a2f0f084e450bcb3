/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors of the Ethernet function, as in abi/rdma_hca_eth.h. */
#include <string.h>

#include <glib.h>

#include "../../abi/rdma_hca_cmd.h"
#include "../../abi/rdma_hca_eth.h"
#include "../eth/eth.h"
#include "../eth/eth_format.h"
#include "../wire/wire.h"
#include "format.h"
#include "words.h"

G_STATIC_ASSERT(sizeof(struct rdma_hca_eth_tx) == HCA_ETH_DESC_SIZE);
G_STATIC_ASSERT(sizeof(struct rdma_hca_eth_tso) == HCA_ETH_DESC_SIZE);
G_STATIC_ASSERT(offsetof(struct rdma_hca_eth_tso, flags) ==
                offsetof(struct rdma_hca_eth_tx, flags));
G_STATIC_ASSERT(offsetof(struct rdma_hca_eth_tso, done) ==
                offsetof(struct rdma_hca_eth_tx, done));
G_STATIC_ASSERT(sizeof(struct rdma_hca_eth_rx) == HCA_ETH_DESC_SIZE);
/* The limits that software is told. */
G_STATIC_ASSERT(HCA_ETH_MIN_LOG_RING == RDMA_HCA_ETH_MIN_LOG_RING);
G_STATIC_ASSERT(HCA_ETH_MAX_LOG_RING == RDMA_HCA_ETH_MAX_LOG_RING);
G_STATIC_ASSERT(HCA_ETH_MAX_PIECES == RDMA_HCA_ETH_MAX_PIECES);
G_STATIC_ASSERT(HCA_ETH_MAX_FRAME ==
                RDMA_HCA_ETH_HEADER_SIZE + RDMA_HCA_ETH_MAX_MTU);
G_STATIC_ASSERT(HCA_ETH_MAX_MULTICAST == RDMA_HCA_RX_MODE_MAX_MULTICAST);
G_STATIC_ASSERT(HCA_ETH_MAX_QUEUES == RDMA_HCA_ETH_MAX_QUEUES);
G_STATIC_ASSERT(HCA_ETH_MAX_TSO == RDMA_HCA_ETH_MAX_TSO);
G_STATIC_ASSERT(HCA_ETH_MAX_TSO_HEADER == RDMA_HCA_ETH_MAX_TSO_HEADER);
G_STATIC_ASSERT(HCA_ETH_MIN_MSS == RDMA_HCA_ETH_MIN_MSS);
G_STATIC_ASSERT(HCA_RSS_KEY_SIZE == RDMA_HCA_RSS_KEY_SIZE);
G_STATIC_ASSERT(HCA_RSS_TABLE_SIZE == RDMA_HCA_RSS_TABLE_SIZE);
/* Types of hashes have the same numbers. */
G_STATIC_ASSERT(HCA_RSS_IPV4 == RDMA_HCA_RSS_IPV4);
G_STATIC_ASSERT(HCA_RSS_TCP_IPV4 == RDMA_HCA_RSS_TCP_IPV4);
G_STATIC_ASSERT(HCA_RSS_UDP_IPV4 == RDMA_HCA_RSS_UDP_IPV4);
G_STATIC_ASSERT(HCA_RSS_IPV6 == RDMA_HCA_RSS_IPV6);
G_STATIC_ASSERT(HCA_RSS_TCP_IPV6 == RDMA_HCA_RSS_TCP_IPV6);
G_STATIC_ASSERT(HCA_RSS_UDP_IPV6 == RDMA_HCA_RSS_UDP_IPV6);
G_STATIC_ASSERT(HCA_RSS_ALL == RDMA_HCA_RSS_ALL);

static void read_tso(const void *slot, HcaEthTxDesc *desc)
{
    struct rdma_hca_eth_tso tso;

    memcpy(&tso, slot, sizeof(tso));
    *desc = (HcaEthTxDesc) {
        .last = tso.flags & RDMA_HCA_ETH_TX_LAST,
        .tso = true,
        .mss = GUINT16_FROM_LE(tso.mss),
        .header_len = GUINT16_FROM_LE(tso.header_len),
        .ip_start = GUINT16_FROM_LE(tso.ip_start),
        .tcp_start = GUINT16_FROM_LE(tso.tcp_start),
    };
}

static void read_tx(const void *slot, HcaEthTxDesc *desc)
{
    struct rdma_hca_eth_tx tx;

    memcpy(&tx, slot, sizeof(tx));
    if (tx.flags & RDMA_HCA_ETH_TX_TSO) {
        read_tso(&tx, desc);
        return;
    }
    *desc = (HcaEthTxDesc) {
        .addr = hca_join_le(tx.addr_h, tx.addr_l),
        .len = GUINT16_FROM_LE(tx.len),
        .last = tx.flags & RDMA_HCA_ETH_TX_LAST,
        .checksum = tx.flags & RDMA_HCA_ETH_TX_CSUM,
        .csum_start = GUINT16_FROM_LE(tx.csum_start),
        .csum_offset = GUINT16_FROM_LE(tx.csum_offset),
    };
}

static void read_rx(const void *slot, HcaEthRxDesc *desc)
{
    struct rdma_hca_eth_rx rx;

    memcpy(&rx, slot, sizeof(rx));
    *desc = (HcaEthRxDesc) {
        .addr = hca_join_le(rx.addr_h, rx.addr_l),
        .size = GUINT16_FROM_LE(rx.size),
    };
}

/* Store the last byte, after all others. */
static void store_done(uint8_t *done, bool good)
{
    uint8_t status = good ? 0 : RDMA_HCA_ETH_ERROR;

    __atomic_store_n(done, RDMA_HCA_ETH_DONE | status, __ATOMIC_RELEASE);
}

static void tx_done(void *slot, bool good)
{
    struct rdma_hca_eth_tx *tx = slot;

    store_done(&tx->done, good);
}

static void rx_done(void *slot, const HcaEthReceived *received)
{
    struct rdma_hca_eth_rx *rx = slot;

    if (received->hash_type != HCA_RSS_NONE) {
        rx->addr_l = GUINT32_TO_LE(received->hash);
    }
    rx->hash_type = received->hash_type;
    rx->len = GUINT16_TO_LE(received->len);
    rx->flags = received->checksum_right ? RDMA_HCA_ETH_RX_CSUM_OK : 0;
    store_done(&rx->done, received->len != 0);
}

const HcaEthFormat hca_eth_format = {
    .read_tx = read_tx,
    .read_rx = read_rx,
    .tx_done = tx_done,
    .rx_done = rx_done,
};
