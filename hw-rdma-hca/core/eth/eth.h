/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eth: the Ethernet function of a RoCE card, the documents' non-RDMA channel:
 * pairs of descriptor rings in guest memory, as eth_format.h says.
 *
 * eth.c        commands, doorbells, reset
 * ring.c       a descriptor ring and its interrupt
 * transmit.c   frames gathered into the link's buffer
 * segment.c    the headers of TCP segments that the card makes of one
 * receive.c    the receive filter; frames stored
 * pause.c      flow control of the link, IEEE 802.3 annex 31B
 * rss.c        which receive ring a frame is for
 * headers.c    the IP header of a frame that was received
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
#define HCA_ETH_MAX_QUEUES 8 /* pairs of rings */
#define HCA_ETH_GBITS 10     /* a second, of the link: 4X SDR */
/*
 * A frame to be cut into TCP segments, its headers, and what is in a segment:
 * shorter ones would be little but headers, and so many that one frame keeps the
 * cable busy.
 */
#define HCA_ETH_MAX_TSO 65553u
#define HCA_ETH_MAX_TSO_HEADER 192
#define HCA_ETH_MIN_MSS 64

/* Where a ring is, its size, and its interrupt. */
typedef struct HcaEthRingSetup {
    uint64_t addr;
    uint16_t log_size;
    uint16_t vector;
} HcaEthRingSetup;

typedef struct HcaEthSetup {
    HcaEthRingSetup tx, rx;
} HcaEthSetup;

/*
 * What an interrupt waits for: so many frames, or so long after the first of
 * them; either one 0: it does not wait.
 */
typedef struct HcaEthModeration {
    uint16_t frames;
    uint16_t period_us;
} HcaEthModeration;

/* What a hash is made of: addresses, with the ports of TCP or UDP. */
typedef enum HcaRssType {
    HCA_RSS_NONE = 0,
    HCA_RSS_IPV4 = 1 << 0,
    HCA_RSS_TCP_IPV4 = 1 << 1,
    HCA_RSS_UDP_IPV4 = 1 << 2,
    HCA_RSS_IPV6 = 1 << 3,
    HCA_RSS_TCP_IPV6 = 1 << 4,
    HCA_RSS_UDP_IPV6 = 1 << 5,
    HCA_RSS_ALL = (1 << 6) - 1,
} HcaRssType;

#define HCA_RSS_KEY_SIZE 40
#define HCA_RSS_TABLE_SIZE 128

typedef struct HcaRssSetup {
    uint32_t types; /* HcaRssType; 0: all frames to ring 0 */
    uint8_t key[HCA_RSS_KEY_SIZE];
    uint8_t table[HCA_RSS_TABLE_SIZE]; /* receive rings */
} HcaRssSetup;

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
    uint64_t tx_errors;   /* frames refused, and the ring if not RAM */
    uint64_t tx_tso;      /* frames cut into segments */
    uint64_t tx_segments; /* of tx_frames, made by that */
    uint64_t rx_frames, rx_bytes;
    uint64_t rx_checksum_ok; /* of them, verified */
    uint64_t rx_hashed;      /* of them, with a hash */
    uint64_t rx_filtered;    /* not for this interface, or it is down */
    uint64_t rx_no_buffer;   /* dropped: no descriptor, or a small one */
    uint64_t rx_errors;      /* no header, memory or ring not RAM */
    uint64_t interrupts, bad_doorbells;
    uint64_t interrupts_held;    /* waited for more frames, or for their time */
    uint64_t rx_pause, tx_pause; /* PAUSE frames, to this card and its own */
    uint64_t rx_control_ignored; /* other MAC control frames */
    uint64_t tx_stopped;         /* times that rx_pause stopped the link */
    uint64_t rx_waited;          /* frames for which there was no descriptor */
    uint64_t pause_given_up;     /* receive rings that are not refilled */
} HcaEthCounters;

HcaEth *hca_eth_new(Hca *hca);
void hca_eth_free(HcaEth *eth);
/* No rings, own MAC only; a reset begins the counters again, too. */
void hca_eth_close(HcaEth *eth);
void hca_eth_reset(HcaEth *eth);

/* Commands; each returns a status. */
uint8_t hca_eth_start(HcaEth *eth, uint32_t queue, const HcaEthSetup *setup);
void hca_eth_stop(HcaEth *eth);
uint8_t hca_eth_set_rx_mode(HcaEth *eth, const HcaEthRxMode *mode);
uint8_t hca_eth_set_rss(HcaEth *eth, const HcaRssSetup *setup);
uint8_t hca_eth_moderate(HcaEth *eth, uint32_t queue,
                         const HcaEthModeration *tx,
                         const HcaEthModeration *rx);

/*
 * Whether PAUSE frames that arrive stop the port, RDMA included, and whether
 * some are sent when a receive ring runs short.
 */
void hca_eth_set_pause(HcaEth *eth, bool rx, bool tx);

/*
 * @queue: below HCA_ETH_MAX_QUEUES; @value: a ring's index, one beyond 16 bits
 * is counted as bad.
 */
void hca_eth_doorbell(HcaEth *eth, unsigned queue, HcaEthDoorbell doorbell,
                      uint32_t value);

/*
 * Send what is in the transmit rings, @budget frames at most, as long as the
 * link takes them. True if it could go on at once.
 */
bool hca_eth_run(HcaEth *eth, unsigned budget);
/* Whether a transmit ring found no room on the link then. */
bool hca_eth_waits(const HcaEth *eth);

/* Whether the interface runs, and receives frames like this one. */
bool hca_eth_accepts(const HcaEth *eth, const uint8_t *frame, size_t len);
/* A frame of the cable that is not the engine's, without FCS. */
void hca_eth_receive(HcaEth *eth, const uint8_t *frame, size_t len);

/*
 * Whether a frame of the cable, with its header, is a MAC control frame: it has
 * been seen to, and is nobody else's.
 */
bool hca_eth_take_control(HcaEth *eth, const uint8_t *frame, size_t len);

/* Say on the cable where the interface's address is. False: there is no room. */
bool hca_eth_announce(HcaEth *eth);

/* Interrupts that have waited long enough. */
void hca_eth_run_timers(HcaEth *eth);
/*
 * What waits for descriptors, and what the peer is to be told. True if it could
 * go on at once.
 */
bool hca_eth_run_pause(HcaEth *eth);
/* When the next of both is due. */
int64_t hca_eth_deadline(const HcaEth *eth);

/* Whether rings are set up. */
bool hca_eth_running(const HcaEth *eth);
const HcaEthCounters *hca_eth_counters(const HcaEth *eth);

/* state.c: what is saved, in this order. */
extern const HcaSection hca_eth_queue_section, hca_eth_section,
    hca_eth_held_section;

#endif /* HCA_ETH_H */
