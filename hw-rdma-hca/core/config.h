/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a card is made after. */
#ifndef HCA_CONFIG_H
#define HCA_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "../abi/rdma_hca_sizes.h"

typedef enum HcaLinkLayer {
    HCA_LINK_LAYER_IB = 1,   /* packets of an InfiniBand link */
    HCA_LINK_LAYER_ROCE = 2, /* Ethernet frames: RoCEv2 and others */
} HcaLinkLayer;

/* When the responder of a reliable connection acknowledges. */
typedef enum HcaAckPolicy {
    HCA_ACK_COALESCED, /* as AckReq asks; those that wait join */
    HCA_ACK_REQUESTED, /* as AckReq asks, one for each packet */
    HCA_ACK_EACH,      /* each packet, one for each */
    HCA_ACK_NPOLICIES
} HcaAckPolicy;

/* Sizes are logarithms to base 2 where the name begins with log. */
typedef struct HcaConfig {
    uint8_t log_qps;         /* 14 */
    uint8_t log_cqs;         /* 14 */
    uint8_t log_eqs;         /* 5 */
    uint8_t log_mpts;        /* 15 */
    uint8_t log_mtts;        /* 20: 4 GiB of 4 KiB pages */
    uint8_t log_pds;         /* 15 */
    uint32_t mpt_cache_size; /* bytes, power of two: 512 KiB */
    uint32_t mtt_cache_size; /* bytes, power of two: 512 KiB */
    uint32_t cache_ways;     /* 2 */
    uint32_t rpb_elements;   /* 512, read packet buffer */
    uint32_t reb_elements;   /* 16384, read entry buffer */
    uint32_t swpb_elements;  /* 4096, send/write packet buffer, 256 bits */
    HcaLinkLayer link_layer;
    uint16_t lid;             /* 1..0xbfff; InfiniBand only */
    uint8_t mac[6];           /* RoCE only, as all that follows to... */
    uint8_t log_gids;         /* 6 */
    uint32_t osq_per_qp;      /* 16: packets of a QP on their way */
    uint32_t cnp_timer_us;    /* 1000: until a halved limit recovers */
    uint32_t cnp_interval_us; /* 50: between two CNPs of a QP; ...here */
    HcaAckPolicy ack_policy;  /* HCA_ACK_COALESCED */
    uint8_t max_mtu;          /* IB MTU code 1..5 (256..4096) */
    uint32_t num_pkeys;       /* entries of the P_Key table, 1 */
    uint16_t pkeys[RDMA_HCA_MAX_PKEYS]; /* 0xffff; top bit: full member */
    uint64_t guid;                      /* node and port GUID, EUI-64 */
    uint32_t num_vectors;               /* MSI-X messages of the function */
} HcaConfig;

static inline bool hca_config_is_roce(const HcaConfig *config)
{
    return config->link_layer == HCA_LINK_LAYER_ROCE;
}

/* The documents' sizes. */
void hca_config_init(HcaConfig *config);

/* The P_Key table unless something else is asked for: full member. */
#define HCA_DEFAULT_PKEY 0xffff

/*
 * Take the P_Key table from @list: keys separated by colons, as in
 * "0xffff:0x8001". What is wrong with it, as by hca_config_check().
 */
const char *hca_config_set_pkeys(HcaConfig *config, const char *list);

/*
 * What is wrong with @config: a sentence naming the field and its limits, in
 * static storage; NULL if nothing is.
 */
const char *hca_config_check(const HcaConfig *config);

#endif /* HCA_CONFIG_H */
