/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A RoCE card whose Ethernet function is looked at, with a driver for it; the
 * test has the other end of the cable.
 */
#ifndef LIB_ETH_H
#define LIB_ETH_H

#include "lib-nic.h"
#include "lib-pair.h"

#define ETH_HEADER 14u

extern const uint8_t eth_stranger[6];
extern const uint8_t eth_broadcast[6];

typedef struct EthBench {
    Lab *lab;
    Host *host; /* 0 */
    Driver *drv;
    Nic *nic;
    GQueue sent; /* GByteArray: frames that card 0 sent */
} EthBench;

/* All pairs of rings, which are started one after the other. */
#define ETH_QUEUES RDMA_HCA_ETH_MAX_QUEUES
typedef struct EthQueues {
    EthBench *bench;
    Nic *nic[ETH_QUEUES]; /* 0: the bench's */
} EthQueues;

EthBench *eth_bench_new(uint32_t seed, unsigned log);
void eth_bench_free(EthBench *bench);
/* Interrupts of one pair are on the vector behind those of the pair before. */
void eth_queues_open(EthQueues *queues, uint32_t seed, unsigned log);
void eth_queues_close(EthQueues *queues);
/* A counter of the Ethernet function. */
uint64_t eth_count(EthBench *bench, const char *name);
/* From @begin to @end - 1. */
uint32_t eth_rand(EthBench *bench, uint32_t begin, uint32_t end);
GByteArray *eth_make_frame(EthBench *bench, const uint8_t *to,
                           const uint8_t *from, size_t len);
/* SETUP_ETH. */
uint8_t eth_setup(EthBench *bench, uint64_t tx, uint64_t rx, uint32_t sizes,
                  uint32_t vectors, uint8_t op_modifier);

void eth_expect_none_sent(EthBench *bench);
/* The next frame that left is @frame, filled up. */
void eth_expect_sent(EthBench *bench, const uint8_t *frame, size_t len);
/* @n descriptors are done, the last one with @last. */
void eth_expect_done(EthBench *bench, unsigned n, uint8_t last);
/*
 * Ring the doorbell: the frame of @n descriptors that is posted ends in error,
 * and the ring goes on with what is behind it.
 */
void eth_expect_refused(EthBench *bench, unsigned n);
/* A frame from the other end of the cable. */
void eth_inject(EthBench *bench, const uint8_t *frame, size_t len);
void eth_expect_received(EthBench *bench, const uint8_t *frame, size_t len,
                         uint8_t flags);

/* ---- datagrams ---- */

/* RFC 1071, byte by byte. */
uint16_t eth_checksum(const uint8_t *data, size_t len, uint32_t sum);
void eth_put16(uint8_t *p, uint16_t value);

typedef struct Datagram {
    const char *what;
    bool ipv6, vlan, tcp;
    unsigned len;     /* of the TCP or UDP part */
    unsigned trailer; /* behind the datagram */
    unsigned options; /* of IPv4, bytes */
    /* What a test changes. */
    uint16_t fragment; /* the word of IPv4 */
    bool no_checksum;
    int corrupt; /* byte of the TCP or UDP part, -1: none */
    int cut;     /* bytes missing at the end */
    int udp_len; /* too many */
    bool expected;
} Datagram;

/* Of each kind one, good and bad. */
extern const Datagram eth_datagrams[];
extern const unsigned eth_datagrams_number;

GByteArray *eth_make_datagram(EthBench *bench, const Datagram *d);

#endif /* LIB_ETH_H */
