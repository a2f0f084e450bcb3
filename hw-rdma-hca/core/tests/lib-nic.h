/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a network driver does with the Ethernet function of a RoCE card: two
 * rings with buffers in the machine's memory.
 */
#ifndef LIB_NIC_H
#define LIB_NIC_H

#include "../../abi/rdma_hca_eth.h"
#include "lib-driver.h"

#define NIC_TX_VECTOR 6 /* of lab_config_roce() */
#define NIC_RX_VECTOR 7
#define NIC_BUFFER_SIZE 16384u

typedef struct Nic {
    Driver *drv;
    Host *host;
    unsigned log;              /* of both rings */
    uint64_t tx_ring, rx_ring; /* bus addresses */
    uint64_t buffer;           /* where nic_send() puts frames */
    uint16_t tx_tail, tx_next; /* posted, taken; without wrapping */
    uint16_t rx_tail, rx_next;
    uint64_t *rx_buffer; /* one for each descriptor */
    unsigned queue;      /* which pair of rings of the card */
    uint16_t tx_vector, rx_vector;
    uint64_t rx_posted[1u << RDMA_HCA_ETH_MAX_LOG_RING]; /* addresses */
    struct rdma_hca_eth_rx received; /* what nic_receive() took last */
} Nic;

/* Rings of 2^@log descriptors, started; all but one receive buffer posted. */
Nic *nic_new(Driver *drv, unsigned log);
/* Another pair, whose rings share a vector. */
Nic *nic_new_queue(Driver *drv, unsigned log, unsigned queue, uint16_t vector);
/* Without a word to the card. */
void nic_free(Nic *nic);

/* SETUP_ETH; a start begins with empty rings, and a stop stops all pairs. */
uint8_t nic_start(Nic *nic);
uint8_t nic_stop(Nic *nic);
/* SET_RX_MODE with the card's own MAC. */
uint8_t nic_set_rx_mode(Nic *nic, uint32_t flags, const uint8_t (*multicast)[6],
                        unsigned count);

void nic_doorbell(Nic *nic, uint32_t reg, uint32_t value);

/* Write a descriptor, and tell the card of those written. */
void nic_put_tx(Nic *nic, uint64_t addr, uint16_t len, uint8_t flags);
void nic_put_rx(Nic *nic, uint64_t addr, uint16_t size);
void nic_ring_tx(Nic *nic);
void nic_ring_rx(Nic *nic);
/* In front of the pieces of what is to be cut. */
void nic_put_tso(Nic *nic, uint16_t mss, uint16_t header_len, uint16_t ip_start,
                 uint16_t tcp_start);
/* Make the descriptor written last one with a checksum. */
void nic_want_checksum(Nic *nic, uint16_t start, uint16_t offset);

/* Post a frame in one piece, of nic->buffer: one at a time. */
void nic_send(Nic *nic, const uint8_t *frame, uint16_t len);

/* The oldest descriptor not taken yet, if the card has done it. */
bool nic_take_tx(Nic *nic, uint8_t *done);
bool nic_take_rx(Nic *nic, struct rdma_hca_eth_rx *desc);
/* The same with the frame; NULL: none. The buffer is posted again. */
GByteArray *nic_receive(Nic *nic, uint8_t *flags);

/* SET_RSS with Microsoft's key, and a table of @queues rings in turn. */
uint8_t nic_set_rss(Nic *nic, uint32_t types, unsigned queues);
/* SET_PAUSE. */
uint8_t nic_set_pause(Nic *nic, bool rx, bool tx);
/* MODIFY_ETH. */
uint8_t nic_moderate(Nic *nic, uint16_t tx_frames, uint16_t tx_us,
                     uint16_t rx_frames, uint16_t rx_us);

/* A counter of unit ethernet of @host's card. */
uint64_t nic_counter(Host *host, const char *name);

#endif /* LIB_NIC_H */
