/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the Ethernet function. */
#ifndef HCA_ETH_INT_H
#define HCA_ETH_INT_H

#include "../card.h"
#include "../link/link.h"
#include "../v2p/v2p.h"
#include "../wire/wire.h"
#include "eth.h"
#include "eth_format.h"

/*
 * Indices count without wrapping at the ring's size: descriptors from head to
 * below tail are the card's.
 */
typedef struct HcaEthRing {
    uint64_t addr;
    uint8_t log_size;
    bool running; /* from setup on, while the ring is RAM */
    bool armed;
    uint16_t arm; /* the descriptor whose end is waited for */
    uint16_t vector;
    uint16_t head;
    uint16_t tail;
} HcaEthRing;

struct HcaEth {
    Hca *hca;
    HcaEthRing tx;
    HcaEthRing rx;
    bool tx_discard; /* the rest of a frame of too many pieces */
    HcaEthRxMode filter;
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
/* The descriptor at @addr has been given back. */
void hca_eth_ring_done(HcaEth *eth, uint64_t addr);
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
