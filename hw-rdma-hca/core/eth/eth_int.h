/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the Ethernet function. */
#ifndef HCA_ETH_INT_H
#define HCA_ETH_INT_H

#include "../card.h"
#include "../link/link.h"
#include "../link/loopback.h"
#include "../v2p/v2p.h"
#include "../wire/wire.h"
#include "eth.h"
#include "eth_format.h"

/*
 * Indices count without wrapping at the ring's size: descriptors from head to
 * below tail are the card's.
 */
/* What a receive ring has, to who sends PAUSE frames. */
typedef enum HcaEthSupply {
    HCA_ETH_SUPPLY_ENOUGH,
    HCA_ETH_SUPPLY_SHORT,
    HCA_ETH_SUPPLY_GIVEN_UP, /* short, and not refilled for too long */
} HcaEthSupply;

typedef struct HcaEthRing {
    uint64_t addr;
    uint8_t log_size;
    bool running; /* from setup on, while the ring is RAM */
    bool posted;  /* there have been descriptors */
    bool armed;
    uint16_t arm; /* the descriptor whose end is waited for */
    uint16_t vector;
    uint16_t head;
    uint16_t tail;
    HcaEthModeration moderation;
    uint32_t untold; /* frames since that end */
    HcaHeapNode timer;
    HcaEthSupply supply;
    uint16_t short_tail; /* while it is short: the last refill... */
    int64_t short_since; /* ...and when it was */
} HcaEthRing;

typedef struct HcaEthPieces {
    HcaEthTxDesc desc[HCA_ETH_MAX_PIECES];
    unsigned count;
    bool whole; /* the last one is the frame's last */
} HcaEthPieces;

/* A frame that is cut into TCP segments: what has not been sent of it. */
typedef struct HcaEthTso {
    unsigned piece; /* where that begins... */
    uint32_t at;    /* ...and at which byte of it */
    uint32_t left;  /* bytes; 0: no frame is being cut */
    uint32_t sent;  /* in front of it, without headers */
    uint16_t segments;
    uint16_t mss;
    uint16_t header_len;
    uint16_t ip_start;
    uint16_t tcp_start;
    bool ipv6;
    /* As they were when the frame was begun. */
    uint8_t header[HCA_ETH_MAX_TSO_HEADER];
} HcaEthTso;

/* A pair of rings. */
typedef struct HcaEthQueue {
    HcaEthRing tx;
    HcaEthRing rx;
    bool tx_discard;     /* the rest of a frame of too many pieces */
    HcaEthPieces pieces; /* of the frame in hand */
    HcaEthTso tso;
} HcaEthQueue;

/* Of each half byte of what is hashed its part of the hash. */
#define HCA_RSS_MAX_INPUT 36 /* two IPv6 addresses, two ports */
typedef struct HcaRss {
    uint32_t types;
    uint32_t part[2 * HCA_RSS_MAX_INPUT][16];
    uint8_t table[HCA_RSS_TABLE_SIZE];
} HcaRss;

typedef struct HcaPause {
    bool rx;           /* PAUSE frames of the peer count */
    bool tx;           /* it is sent some */
    bool told;         /* the peer has been told to stop */
    int64_t again_at;  /* when it is to be told again, or INT64_MAX */
    HcaLoopback *held; /* frames without a descriptor; NULL if not @tx */
    unsigned num_held;
    const uint8_t *first; /* of them, if it has been looked at */
    size_t first_len;
} HcaPause;

struct HcaEth {
    Hca *hca;
    HcaEthQueue queue[HCA_ETH_MAX_QUEUES];
    unsigned tx_turn; /* the queue that sends first */
    bool tx_waits;    /* one found no room on the link in its last turn */
    HcaHeap timers;   /* of rings */
    HcaHeapNode *timer_slot[2 * HCA_ETH_MAX_QUEUES];
    HcaEthRxMode filter;
    HcaRss rss;
    HcaPause pause;
    HcaEthCounters counters;
};

/* eth.c */
bool hca_eth_ring_setup_ok(const HcaEth *eth, const HcaEthRingSetup *ring);

/* ring.c */

static inline uint32_t hca_eth_ring_size(const HcaEthRing *ring)
{
    return 1u << ring->log_size;
}

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
bool hca_eth_ring_arm(HcaEth *eth, HcaEthRing *ring, uint32_t value);
/* The last descriptor of a frame has been given back. */
void hca_eth_ring_frame_done(HcaEthRing *ring);
/* Send the interrupt if it is due. */
void hca_eth_ring_notify(HcaEth *eth, HcaEthRing *ring);
void hca_eth_ring_moderate(HcaEth *eth, HcaEthRing *ring,
                           const HcaEthModeration *moderation);
/* No ring, no interrupt. */
void hca_eth_ring_clear(HcaEth *eth, HcaEthRing *ring);

/* receive.c */

/*
 * Put a frame that is received into its ring, or drop it. False: the ring is
 * worth waiting for, and has no descriptor now.
 */
bool hca_eth_deliver(HcaEth *eth, const uint8_t *frame, size_t len);

/* pause.c */

void hca_pause_init(HcaPause *pause);
/* Whether frames without a descriptor wait for one of @ring. */
static inline bool hca_pause_waits_for(const HcaEth *eth,
                                       const HcaEthRing *ring)
{
    return eth->pause.tx && ring->running && ring->posted &&
           ring->supply != HCA_ETH_SUPPLY_GIVEN_UP;
}
/* A frame waits, or is dropped for want of room. */
void hca_pause_hold(HcaEth *eth, const uint8_t *frame, size_t len);
/* Drop all that wait. */
void hca_pause_forget(HcaEth *eth);

/* headers.c */

/* TCP and UDP. */
#define HCA_PROTO_TCP 6
#define HCA_PROTO_UDP 17
#define HCA_IPV4_FRAGMENT 0x3fff /* more fragments, and the fragment's offset */

/* The IP header of a frame; @addresses NULL: it has none. */
typedef struct HcaEthHeaders {
    bool ipv6;
    bool fragment;
    uint8_t protocol;         /* of IPv6: what the next header is */
    const uint8_t *addresses; /* of the source, then the destination */
    size_t addresses_len;
    const uint8_t *data; /* behind the header */
    size_t len;
} HcaEthHeaders;

/*
 * Of a frame with one VLAN tag at most. A header that says what cannot be is
 * none.
 */
void hca_eth_parse(const uint8_t *frame, size_t len, HcaEthHeaders *headers);

/* checksum.c */

uint64_t hca_eth_sum(const uint8_t *data, size_t len);
/* The checksum that goes with a sum, in memory order. */
uint16_t hca_eth_checksum(uint64_t sum);
/*
 * Put the checksum of @frame from @start to its end in place @offset behind
 * @start, where the sum of the pseudo-header is. False: outside the frame.
 */
bool hca_eth_checksum_fill(uint8_t *frame, size_t len, size_t start,
                           size_t offset);
/*
 * Whether there is a TCP or UDP checksum that is right: of a whole datagram,
 * IPv4, or IPv6 without extension headers.
 */
bool hca_eth_checksum_right(const HcaEthHeaders *headers);

/* rss.c */

void hca_rss_set(HcaRss *rss, const HcaRssSetup *setup);
/* The hash, and of what it is: HCA_RSS_NONE if there is none. */
HcaRssType hca_rss_hash(const HcaRss *rss, const HcaEthHeaders *headers,
                        uint32_t *hash);

/* segment.c */

/* Whether @tso, whose headers have been read, can be cut. */
bool hca_eth_tso_check(HcaEthTso *tso);
/*
 * Write the headers of the next segment in front of its @len bytes, which are
 * in @frame already.
 */
void hca_eth_tso_headers(const HcaEthTso *tso, uint8_t *frame, uint16_t len);

#endif /* HCA_ETH_INT_H */
