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
} Nic;

/* Rings of 2^@log descriptors, started; all but one receive buffer posted. */
Nic *nic_new(Driver *drv, unsigned log);
/* Without a word to the card. */
void nic_free(Nic *nic);

/* SETUP_ETH; a start begins with empty rings. */
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
/* Make the descriptor written last one with a checksum. */
void nic_want_checksum(Nic *nic, uint16_t start, uint16_t offset);

/* Post a frame in one piece, of nic->buffer: one at a time. */
void nic_send(Nic *nic, const uint8_t *frame, uint16_t len);

/* The oldest descriptor not taken yet, if the card has done it. */
bool nic_take_tx(Nic *nic, uint8_t *done);
bool nic_take_rx(Nic *nic, struct rdma_hca_eth_rx *desc);
/* The same with the frame; NULL: none. The buffer is posted again. */
GByteArray *nic_receive(Nic *nic, uint8_t *flags);

/* A counter of unit ethernet of @host's card. */
uint64_t nic_counter(Host *host, const char *name);

#endif /* LIB_NIC_H */
