/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the Ethernet function. */
#ifndef HCA_ETH_INT_H
#define HCA_ETH_INT_H

#include "../../abi/rdma_hca_regs.h"
#include "../card.h"
#include "../link/link.h"
#include "../v2p/v2p.h"
#include "eth.h"

#define HCA_ETH_MAC_SIZE 6
/* Addresses and EtherType. */
#define HCA_ETH_HEADER_SIZE 14
#define HCA_ETH_MIN_FRAME 60
#define HCA_ETH_MAX_FRAME (RDMA_HCA_ETH_HEADER_SIZE + RDMA_HCA_ETH_MAX_MTU)

/* Both kinds of descriptors are of one size. */
#define HCA_ETH_DESC_SIZE 16

/*
 * Indices count without wrapping at the ring's size: descriptors from head to
 * below tail are the card's.
 */
typedef struct HcaEthRing {
    uint64_t addr;
    uint8_t log_size;
    bool running; /* from SETUP_ETH on, while the ring is RAM */
    bool armed;
    uint16_t arm; /* the descriptor whose end is waited for */
    uint16_t vector;
    uint16_t head;
    uint16_t tail;
} HcaEthRing;

typedef struct HcaEthFilter {
    bool promisc;
    bool allmulti;
    uint8_t mac[HCA_ETH_MAC_SIZE];
    unsigned count;
    uint8_t multicast[RDMA_HCA_RX_MODE_MAX_MULTICAST][HCA_ETH_MAC_SIZE];
} HcaEthFilter;

struct HcaEth {
    Hca *hca;
    HcaEthRing tx;
    HcaEthRing rx;
    bool tx_discard; /* the rest of a frame of too many pieces */
    HcaEthFilter filter;
    HcaEthCounters counters;
};

/* ring.c */

static inline uint16_t hca_eth_ring_level(const HcaEthRing *ring)
{
    return ring->tail - ring->head;
}

/*
 * Descriptor @index of the ring, in memory that can be written; NULL if it is
 * not RAM. *@addr is where, for hca_eth_ring_done().
 */
void *hca_eth_ring_slot(HcaEth *eth, const HcaEthRing *ring, uint16_t index,
                        uint64_t *addr);
/* Store a descriptor's last byte, after all others; @slot as above. */
void hca_eth_ring_done(HcaEth *eth, void *slot, uint64_t addr, uint8_t *done,
                       uint8_t status);
/* TAIL and ARM; false: an index that cannot be. */
bool hca_eth_ring_set_tail(HcaEthRing *ring, uint32_t value);
bool hca_eth_ring_arm(HcaEthRing *ring, uint32_t value);
/* Send the interrupt if it is due. */
void hca_eth_ring_notify(HcaEth *eth, HcaEthRing *ring);

/* checksum.c */

/*
 * Put the checksum of @frame from @start to its end in place @offset behind
 * @start, where the sum of the pseudo-header is. False: outside the frame.
 */
bool hca_eth_checksum_fill(uint8_t *frame, size_t len, size_t start,
                           size_t offset);
/*
 * Whether @frame has a TCP or UDP checksum that is right: of a whole datagram,
 * IPv4, or IPv6 without extension headers, with one VLAN tag at most.
 */
bool hca_eth_checksum_right(const uint8_t *frame, size_t len);

#endif /* HCA_ETH_INT_H */
