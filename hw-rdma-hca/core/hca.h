/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A card: what the machine that it sits in may do with it.
 *
 * One card is one clock domain. Every function here but the two that say so
 * must be called from one thread at a time, the card's.
 */
#ifndef HCA_H
#define HCA_H

#include "../abi/rdma_hca_cmd.h"
#include "host.h"
#include "link/fault.h"

typedef struct Hca Hca;

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

/* A card in its reset state. @config must have passed hca_config_check(). */
Hca *hca_new(const HcaConfig *config, const HcaHostOps *ops, void *opaque);
void hca_free(Hca *hca);

/* Back to the state after hca_new(). The cable stays as it is. */
void hca_reset(Hca *hca);

/*
 * BAR 0. @offset is aligned to 4 and less than RDMA_HCA_BAR0_SIZE; registers
 * are in host byte order. From any thread, one at a time (the machine's I/O
 * lock). A write may leave work for the card's thread, which then has to call
 * hca_run(): returns true if so.
 */
uint32_t hca_bar0_read(const Hca *hca, uint32_t offset);
bool hca_bar0_write(Hca *hca, uint32_t offset, uint32_t value);

/*
 * A doorbell: a write of @size (4 or 8) bytes at @offset of BAR 0 (event
 * queues; hca_bar0_write() does not take those) or of BAR 2, aligned to
 * @size. The caller calls hca_run() after one or more.
 */
void hca_eq_doorbell(Hca *hca, uint32_t offset, uint32_t value);
/* The same of the Ethernet function; ignored on an InfiniBand card. */
void hca_eth_doorbell(Hca *hca, uint32_t offset, uint32_t value);
void hca_uar_write(Hca *hca, uint32_t offset, uint64_t value, unsigned size);

/* The cable: the peer is there, is gone, takes bytes again. */
void hca_link_up(Hca *hca);
void hca_link_down(Hca *hca);
void hca_link_writable(Hca *hca);

/*
 * Put @plan, which must have passed hca_fault_check(), in the place of the
 * last one. Its counts and its chance begin anew; packets that are held back
 * leave. The plan outlives hca_reset().
 */
void hca_set_faults(Hca *hca, const HcaFaultPlan *plan);

/*
 * Capture what passes the cable from now on, by the host's capture_write,
 * until that takes no more. hca_reset() does not end it.
 */
void hca_start_capture(Hca *hca);

/*
 * Whether the peer broke the framing, so that nothing more can be read. Look
 * after hca_run(); the host then ends the stream, which takes the link down.
 */
bool hca_link_failed(const Hca *hca);

/*
 * Do what there is to do, for a bounded time: a command, received packets,
 * timers that are due, work queues. Returns true if there is more to do now.
 */
bool hca_run(Hca *hca);

/* The name of an HcaTraceEvent; counters: see counters.h. */
const char *hca_trace_name(unsigned event);

#endif /* HCA_H */
