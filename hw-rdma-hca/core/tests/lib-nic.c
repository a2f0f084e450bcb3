/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-nic.h"

#include <string.h>

#include "lib-card.h"

#define DESC_SIZE 16u

static unsigned ring_size(const Nic *nic)
{
    return 1u << nic->log;
}

static uint64_t slot(const Nic *nic, uint64_t ring, uint16_t index)
{
    return ring + DESC_SIZE * (index % ring_size(nic));
}

static uint64_t alloc_ring(Nic *nic)
{
    unsigned bytes = DESC_SIZE << nic->log;

    return host_alloc(nic->host, (bytes + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE);
}

static Nic *new (Driver *drv, unsigned log, unsigned queue, uint16_t tx_vector,
                 uint16_t rx_vector)
{
    Nic *nic = g_new0(Nic, 1);

    nic->drv = drv;
    nic->host = drv->host;
    nic->log = log;
    nic->queue = queue;
    nic->tx_vector = tx_vector;
    nic->rx_vector = rx_vector;
    nic->tx_ring = alloc_ring(nic);
    nic->rx_ring = alloc_ring(nic);
    nic->buffer = host_alloc(nic->host, NIC_BUFFER_SIZE / HOST_PAGE_SIZE);
    nic->rx_buffer = g_new0(uint64_t, ring_size(nic));
    for (unsigned i = 0; i < ring_size(nic); i++) {
        nic->rx_buffer[i] = host_alloc(nic->host,
                                       NIC_BUFFER_SIZE / HOST_PAGE_SIZE);
    }
    g_assert_cmphex(nic_start(nic), ==, RDMA_HCA_STAT_OK);
    return nic;
}

Nic *nic_new(Driver *drv, unsigned log)
{
    return new (drv, log, 0, NIC_TX_VECTOR, NIC_RX_VECTOR);
}

Nic *nic_new_queue(Driver *drv, unsigned log, unsigned queue, uint16_t vector)
{
    return new (drv, log, queue, vector, vector);
}

void nic_free(Nic *nic)
{
    g_free(nic->rx_buffer);
    g_free(nic);
}

static void post_all(Nic *nic)
{
    for (unsigned i = 0; i + 1 < ring_size(nic); i++) {
        nic_put_rx(nic, nic->rx_buffer[i], NIC_BUFFER_SIZE);
    }
    nic_ring_rx(nic);
}

uint8_t nic_start(Nic *nic)
{
    struct rdma_hca_setup_eth setup = {
        .tx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(nic->tx_ring)),
        .tx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(nic->tx_ring)),
        .rx_ring_h = GUINT32_TO_BE(RDMA_HCA_HI32(nic->rx_ring)),
        .rx_ring_l = GUINT32_TO_BE(RDMA_HCA_LO32(nic->rx_ring)),
        .log_sizes = GUINT32_TO_BE(nic->log << 16 | nic->log),
        .vectors = GUINT32_TO_BE(nic->tx_vector << 16 | nic->rx_vector),
    };
    uint8_t status = driver_cmd_in(nic->drv, RDMA_HCA_CMD_SETUP_ETH, &setup,
                                   sizeof(setup), nic->queue,
                                   RDMA_HCA_SETUP_ETH_START);

    if (status == RDMA_HCA_STAT_OK) {
        nic->tx_tail = nic->tx_next = 0;
        nic->rx_tail = nic->rx_next = 0;
        post_all(nic);
    }
    return status;
}

uint8_t nic_stop(Nic *nic)
{
    return driver_cmd(nic->drv, RDMA_HCA_CMD_SETUP_ETH, 0, 0,
                      RDMA_HCA_SETUP_ETH_STOP, 0, NULL);
}

uint8_t nic_set_rx_mode(Nic *nic, uint32_t flags, const uint8_t (*multicast)[6],
                        unsigned count)
{
    union {
        struct rdma_hca_rx_mode mode;
        uint8_t bytes[RDMA_HCA_RX_MODE_SIZE];
    } box = { .bytes = { 0 } };

    box.mode.flags = GUINT32_TO_BE(flags);
    box.mode.count = GUINT32_TO_BE(count);
    memcpy(&box.mode.mac_h, nic->host->config.mac, 6);
    for (unsigned i = 0; i < MIN(count, RDMA_HCA_RX_MODE_MAX_MULTICAST); i++) {
        memcpy(box.mode.multicast[i], multicast[i], 6);
    }
    return driver_cmd_in(nic->drv, RDMA_HCA_CMD_SET_RX_MODE, &box, sizeof(box),
                         0, 0);
}

void nic_doorbell(Nic *nic, uint32_t reg, uint32_t value)
{
    host_bar0_write(nic->host,
                    RDMA_HCA_ETH_DB + nic->queue * RDMA_HCA_ETH_DB_STRIDE + reg,
                    value);
}

void nic_put_tx(Nic *nic, uint64_t addr, uint16_t len, uint8_t flags)
{
    struct rdma_hca_eth_tx desc = {
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(addr)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(addr)),
        .len = GUINT16_TO_LE(len),
        .flags = flags,
    };

    host_write(nic->host, slot(nic, nic->tx_ring, nic->tx_tail++), &desc,
               sizeof(desc));
}

void nic_put_rx(Nic *nic, uint64_t addr, uint16_t size)
{
    struct rdma_hca_eth_rx desc = {
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(addr)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(addr)),
        .size = GUINT16_TO_LE(size),
    };

    nic->rx_posted[nic->rx_tail % G_N_ELEMENTS(nic->rx_posted)] = addr;
    host_write(nic->host, slot(nic, nic->rx_ring, nic->rx_tail++), &desc,
               sizeof(desc));
}

void nic_put_tso(Nic *nic, uint16_t mss, uint16_t header_len, uint16_t ip_start,
                 uint16_t tcp_start)
{
    struct rdma_hca_eth_tso desc = {
        .mss = GUINT16_TO_LE(mss),
        .header_len = GUINT16_TO_LE(header_len),
        .ip_start = GUINT16_TO_LE(ip_start),
        .tcp_start = GUINT16_TO_LE(tcp_start),
        .flags = RDMA_HCA_ETH_TX_TSO,
    };

    host_write(nic->host, slot(nic, nic->tx_ring, nic->tx_tail++), &desc,
               sizeof(desc));
}

void nic_ring_tx(Nic *nic)
{
    nic_doorbell(nic, RDMA_HCA_ETH_DB_TX_TAIL, nic->tx_tail);
}

void nic_ring_rx(Nic *nic)
{
    nic_doorbell(nic, RDMA_HCA_ETH_DB_RX_TAIL, nic->rx_tail);
}

void nic_want_checksum(Nic *nic, uint16_t start, uint16_t offset)
{
    uint64_t at = slot(nic, nic->tx_ring, nic->tx_tail - 1);
    struct rdma_hca_eth_tx desc;

    host_read(nic->host, at, &desc, sizeof(desc));
    desc.flags |= RDMA_HCA_ETH_TX_CSUM;
    desc.csum_start = GUINT16_TO_LE(start);
    desc.csum_offset = GUINT16_TO_LE(offset);
    host_write(nic->host, at, &desc, sizeof(desc));
}

void nic_send(Nic *nic, const uint8_t *frame, uint16_t len)
{
    g_assert_cmpuint(len, <=, NIC_BUFFER_SIZE);
    host_write(nic->host, nic->buffer, frame, len);
    nic_put_tx(nic, nic->buffer, len, RDMA_HCA_ETH_TX_LAST);
    nic_ring_tx(nic);
}

bool nic_take_tx(Nic *nic, uint8_t *done)
{
    struct rdma_hca_eth_tx desc;

    if (nic->tx_next == nic->tx_tail) {
        return false;
    }
    host_read(nic->host, slot(nic, nic->tx_ring, nic->tx_next), &desc,
              sizeof(desc));
    *done = desc.done;
    nic->tx_next += desc.done != 0;
    return desc.done != 0;
}

bool nic_take_rx(Nic *nic, struct rdma_hca_eth_rx *desc)
{
    if (nic->rx_next == nic->rx_tail) {
        return false;
    }
    host_read(nic->host, slot(nic, nic->rx_ring, nic->rx_next), desc,
              sizeof(*desc));
    nic->rx_next += desc->done != 0;
    return desc->done != 0;
}

GByteArray *nic_receive(Nic *nic, uint8_t *flags)
{
    uint64_t addr = nic->rx_posted[nic->rx_next % G_N_ELEMENTS(nic->rx_posted)];
    struct rdma_hca_eth_rx desc;
    GByteArray *frame;

    if (!nic_take_rx(nic, &desc)) {
        return NULL;
    }
    g_assert_cmphex(desc.done, ==, RDMA_HCA_ETH_DONE);
    nic->received = desc;
    frame = g_byte_array_new();
    g_byte_array_set_size(frame, GUINT16_FROM_LE(desc.len));
    host_read(nic->host, addr, frame->data, frame->len);
    if (flags) {
        *flags = desc.flags;
    }
    nic_put_rx(nic, addr, GUINT16_FROM_LE(desc.size));
    nic_ring_rx(nic);
    return frame;
}

uint8_t nic_set_rss(Nic *nic, uint32_t types, unsigned queues)
{
    static const uint8_t key[RDMA_HCA_RSS_KEY_SIZE] = {
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
        0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
        0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    };
    struct rdma_hca_rss rss = { .types = GUINT32_TO_BE(types) };

    memcpy(rss.key, key, sizeof(key));
    for (unsigned i = 0; i < RDMA_HCA_RSS_TABLE_SIZE; i++) {
        rss.table[i] = i % queues;
    }
    return driver_cmd_in(nic->drv, RDMA_HCA_CMD_SET_RSS, &rss, sizeof(rss), 0,
                         0);
}

uint8_t nic_set_pause(Nic *nic, bool rx, bool tx)
{
    uint64_t in = (rx ? RDMA_HCA_PAUSE_RX : 0) | (tx ? RDMA_HCA_PAUSE_TX : 0);

    return driver_cmd(nic->drv, RDMA_HCA_CMD_SET_PAUSE, in, 0, 0, 0, NULL);
}

uint8_t nic_moderate(Nic *nic, uint16_t tx_frames, uint16_t tx_us,
                     uint16_t rx_frames, uint16_t rx_us)
{
    uint64_t tx = RDMA_HCA_PREP(RDMA_HCA_MODERATION_COUNT, tx_frames) |
                  RDMA_HCA_PREP(RDMA_HCA_MODERATION_PERIOD, tx_us);
    uint64_t rx = RDMA_HCA_PREP(RDMA_HCA_MODERATION_COUNT, rx_frames) |
                  RDMA_HCA_PREP(RDMA_HCA_MODERATION_PERIOD, rx_us);

    return driver_cmd(nic->drv, RDMA_HCA_CMD_MODIFY_ETH, tx << 32 | rx,
                      nic->queue, 0, 0, NULL);
}

uint64_t nic_counter(Host *host, const char *name)
{
    g_autofree char *full = g_strconcat("ethernet_", name, NULL);

    return card_counter(host->hca, full);
}
