/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a programming interface lays out the descriptors of the Ethernet
 * function; front/ fills it. A slot is in guest memory, where software may
 * write at any time: it is copied before it is looked at.
 */
#ifndef HCA_ETH_FORMAT_H
#define HCA_ETH_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* Both kinds of descriptors are of one size. */
#define HCA_ETH_DESC_SIZE 16

/* A piece of a frame. */
typedef struct HcaEthTxDesc {
    uint64_t addr;
    uint16_t len;
    bool last; /* of the frame */
    /* In a frame's first: put the sum from here on there, behind it. */
    bool checksum;
    uint16_t csum_start;
    uint16_t csum_offset;
    /* No piece, but how the frame is to be cut into TCP segments. */
    bool tso;
    uint16_t mss;
    uint16_t header_len; /* of all headers */
    uint16_t ip_start;   /* where that of IP is... */
    uint16_t tcp_start;  /* ...and TCP's */
} HcaEthTxDesc;

/* A buffer for a frame. */
typedef struct HcaEthRxDesc {
    uint64_t addr;
    uint16_t size;
} HcaEthRxDesc;

/* What became of a buffer. */
typedef struct HcaEthReceived {
    uint16_t len; /* 0: the frame could not be stored */
    bool checksum_right;
    uint8_t hash_type; /* HcaRssType */
    uint32_t hash;
} HcaEthReceived;

typedef struct HcaEthFormat {
    void (*read_tx)(const void *slot, HcaEthTxDesc *desc);
    void (*read_rx)(const void *slot, HcaEthRxDesc *desc);
    /* Give a descriptor back. What says so is stored after all else. */
    void (*tx_done)(void *slot, bool good);
    void (*rx_done)(void *slot, const HcaEthReceived *received);
} HcaEthFormat;

#endif /* HCA_ETH_FORMAT_H */
