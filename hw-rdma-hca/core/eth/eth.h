/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eth: the Ethernet function of a RoCE card, the documents' non-RDMA channel:
 * two descriptor rings in guest memory, as eth_format.h says.
 *
 * eth.c        commands, doorbells, reset
 * ring.c       a descriptor ring and its interrupt
 * transmit.c   frames gathered into the link's buffer
 * receive.c    the receive filter; frames stored
 * checksum.c   of TCP and UDP, filled in and verified
 *
 * Rings are read and written in the card's thread, by way of host.h; a frame
 * goes to and comes from the link as RoCE frames do.
 */
#ifndef HCA_ETH_H
#define HCA_ETH_H

#include "../card.h"

typedef struct HcaEth HcaEth;

#define HCA_ETH_MIN_LOG_RING 4 /* descriptors */
#define HCA_ETH_MAX_LOG_RING 12
/* Transmit descriptors of a frame. */
#define HCA_ETH_MAX_PIECES 20
#define HCA_ETH_MAX_MULTICAST 128
#define HCA_ETH_MAC_SIZE 6

/* Where a ring is, its size, and its interrupt. */
typedef struct HcaEthRingSetup {
    uint64_t addr;
    uint16_t log_size;
    uint16_t vector;
} HcaEthRingSetup;

typedef struct HcaEthSetup {
    HcaEthRingSetup tx, rx;
} HcaEthSetup;

/* What is received besides broadcasts. */
typedef struct HcaEthRxMode {
    bool promisc;  /* all frames */
    bool allmulti; /* all multicasts */
    uint8_t mac[HCA_ETH_MAC_SIZE];
    uint32_t count; /* of @multicast; more than fit are refused */
    uint8_t multicast[HCA_ETH_MAX_MULTICAST][HCA_ETH_MAC_SIZE];
} HcaEthRxMode;

typedef enum HcaEthDoorbell {
    HCA_ETH_TX_TAIL,
    HCA_ETH_RX_TAIL,
    HCA_ETH_TX_ARM,
    HCA_ETH_RX_ARM,
    HCA_ETH_NO_DOORBELL, /* counted, no more */
} HcaEthDoorbell;

typedef struct HcaEthCounters {
    uint64_t tx_frames, tx_bytes;
    uint64_t tx_errors; /* frames refused, and the ring if not RAM */
    uint64_t rx_frames, rx_bytes;
    uint64_t rx_checksum_ok; /* of them, verified */
    uint64_t rx_filtered;    /* not for this interface, or it is down */
    uint64_t rx_no_buffer;   /* dropped: no descriptor, or a small one */
    uint64_t rx_errors;      /* no header, memory or ring not RAM */
    uint64_t interrupts, bad_doorbells;
} HcaEthCounters;

HcaEth *hca_eth_new(Hca *hca);
void hca_eth_free(HcaEth *eth);
/* No rings, own MAC only; a reset begins the counters again, too. */
void hca_eth_close(HcaEth *eth);
void hca_eth_reset(HcaEth *eth);

/* Commands; each returns a status. @setup NULL: stop. */
uint8_t hca_eth_setup(HcaEth *eth, const HcaEthSetup *setup);
uint8_t hca_eth_set_rx_mode(HcaEth *eth, const HcaEthRxMode *mode);

/* @value: a ring's index; one beyond 16 bits is counted as bad. */
void hca_eth_doorbell(HcaEth *eth, HcaEthDoorbell doorbell, uint32_t value);

/*
 * Send what is in the transmit ring, @budget frames at most, as long as the
 * link takes them. True if it could go on at once.
 */
bool hca_eth_run(HcaEth *eth, unsigned budget);

/* Whether the interface runs, and receives frames like this one. */
bool hca_eth_accepts(const HcaEth *eth, const uint8_t *frame, size_t len);
/* A frame of the cable that is not the engine's, without FCS. */
void hca_eth_receive(HcaEth *eth, const uint8_t *frame, size_t len);

/* Whether the rings are set up. */
bool hca_eth_running(const HcaEth *eth);
const HcaEthCounters *hca_eth_counters(const HcaEth *eth);

#endif /* HCA_ETH_H */
