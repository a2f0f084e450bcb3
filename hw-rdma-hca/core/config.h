/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a card is made with.
 *
 * An option that is a number is one row of HCA_OPTIONS, from which its field,
 * its default, its check and, in the machine, its property are made.
 */
#ifndef HCA_CONFIG_H
#define HCA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../abi/rdma_hca_sizes.h"

typedef enum HcaLinkLayer {
    HCA_LINK_LAYER_IB = 1,   /* packets of an InfiniBand link */
    HCA_LINK_LAYER_ROCE = 2, /* Ethernet frames: RoCEv2 and others */
} HcaLinkLayer;

/* What surrounds packets on the cable, see link/framing.h. */
typedef enum HcaCableProtocol {
    HCA_CABLE_CARD,    /* one card at the other end, which says who it is */
    HCA_CABLE_SEGMENT, /* RoCE: the same frames, of any number of stations */
    HCA_CABLE_NETDEV,  /* RoCE: frames as of QEMU's -netdev stream */
    HCA_CABLE_NPROTOCOLS
} HcaCableProtocol;

/* When the responder of a reliable connection acknowledges. */
typedef enum HcaAckPolicy {
    HCA_ACK_COALESCED, /* as AckReq asks; those that wait join */
    HCA_ACK_REQUESTED, /* as AckReq asks, one for each packet */
    HCA_ACK_EACH,      /* each packet, one for each */
    HCA_ACK_NPOLICIES
} HcaAckPolicy;

/* Who gives an InfiniBand port its LID, state and P_Keys. */
typedef enum HcaManaged {
    HCA_MANAGED_AUTO, /* a manager, if the other end of the cable is managed */
    HCA_MANAGED_ON,   /* a subnet manager */
    HCA_MANAGED_OFF, /* this configuration, at first; the port activates itself */
    HCA_MANAGED_NCHOICES
} HcaManaged;

/* The programming interface that software sees. */
typedef enum HcaPersonality {
    HCA_PERSONALITY_NATIVE, /* the documents' */
    HCA_PERSONALITY_MTHCA,  /* a mem-free InfiniHost III Lx's */
    HCA_NPERSONALITIES
} HcaPersonality;

/* The P_Key table unless something else is asked for: full member. */
#define HCA_DEFAULT_PKEY 0xffff
#define HCA_MAX_LOG_GIDS 8
#define HCA_MAX_LOG_FLOWS 10

/*
 * field, name, default, least, most (numbers as they stand in messages),
 * ANY, POWER of two or NONE_OR_POWER (0 is good, too), unit (HcaOptionUnit),
 * BOTH link layers or ROCE, text.
 *
 * swpb-elements: a packet of 4096 bytes takes 130 elements.
 */
#define HCA_OPTIONS(X)                                                         \
    X(log_qps, "log-qps", 14, 2, 16, ANY, NONE, BOTH,                          \
      "Number of queue pairs, as a power of two")                              \
    X(log_cqs, "log-cqs", 14, 1, 16, ANY, NONE, BOTH,                          \
      "Number of completion queues, as a power of two")                        \
    X(log_eqs, "log-eqs", 5, 1, 5, ANY, NONE, BOTH,                            \
      "Number of event queues, as a power of two")                             \
    X(log_srqs, "log-srqs", 12, 1, 16, ANY, NONE, BOTH,                        \
      "Number of shared receive queues, as a power of two")                    \
    X(log_srq_wqes, "log-srq-wqes", 14, 1, 15, ANY, NONE, BOTH,                \
      "Work requests of a shared receive queue, as a power of two")            \
    X(log_sq_slots, "log-sq-slots", 22, 15, 28, ANY, NONE, BOTH,               \
      "Slots of all send queues, as a power of two")                           \
    X(log_mpts, "log-mpts", 15, 4, 20, ANY, NONE, BOTH,                        \
      "Number of memory keys, as a power of two")                              \
    X(log_mtts, "log-mtts", 20, 4, 24, ANY, NONE, BOTH,                        \
      "Number of page translations, as a power of two")                        \
    X(log_pds, "log-pds", 15, 1, 24, ANY, NONE, BOTH,                          \
      "Number of protection domains, as a power of two")                       \
    X(cache_ways, "cache-ways", 2, 1, 16, POWER, NONE, BOTH,                   \
      "Ways of both caches")                                                   \
    X(mpt_cache_size, "mpt-cache-size", 524288, 64, 67108864, POWER, BYTES,    \
      BOTH, "Cache of memory keys on the card")                                \
    X(mtt_cache_size, "mtt-cache-size", 524288, 64, 67108864, POWER, BYTES,    \
      BOTH, "Cache of page translations on the card")                          \
    X(rpb_elements, "rpb-elements", 512, 1, 32768, POWER, NONE, BOTH,          \
      "Elements of the read packet buffer")                                    \
    X(reb_elements, "reb-elements", 16384, 32, 32768, POWER, NONE, BOTH,       \
      "Elements of the read entry buffer")                                     \
    X(swpb_elements, "swpb-elements", 32768, 512, 32768, POWER, NONE, BOTH,    \
      "Elements of the send and write packet buffer, of 256 bits each")        \
    X(log_gids, "log-gids", 6, 0, HCA_MAX_LOG_GIDS, ANY, NONE, ROCE,           \
      "Number of GIDs, as a power of two")                                     \
    X(roce_v1_gids, "roce-v1-gids", 0, 0, 1, ANY, NONE, ROCE,                  \
      "1: GIDs have the places that they have on a card with RoCEv1, too")     \
    X(log_flows, "log-flows", 8, 1, HCA_MAX_LOG_FLOWS, ANY, NONE, ROCE,        \
      "Number of flow rules of raw packet queue pairs, as a power of two")     \
    X(osq_per_qp, "osq-per-qp", 1024, 1, 32768, ANY, NONE, ROCE,               \
      "Packets of a queue pair that may be on their way")                      \
    X(cnp_timer_us, "cnp-timer-us", 1000, 1, 1000000, ANY, US, ROCE,           \
      "Time until a limit that a CNP has halved recovers")                     \
    X(cnp_interval_us, "cnp-interval-us", 50, 0, 1000000, ANY, US, ROCE,       \
      "Least time between two CNPs for a queue pair")                          \
    X(device_memory, "device-memory", 4194304, 4096, 1073741824,               \
      NONE_OR_POWER, BYTES, BOTH, "Memory on the card for regions")            \
    X(memory_latency_ns, "memory-latency-ns", 0, 0, 1000000000, ANY, NS, BOTH, \
      "Time until memory of the machine answers")                              \
    X(memory_bandwidth, "memory-bandwidth", 0, 0, 1000000, ANY, NONE, BOTH,    \
      "Megabytes that pass in a second to memory, or from it; 0: no limit")    \
    X(move_limit_ms, "move-limit-ms", 10000, 0, 3600000, ANY, MS, BOTH,        \
      "Time that the other end of the cable may take to move; 0: none")        \
    X(recorder, "recorder", 0, 16, 65536, NONE_OR_POWER, NONE, BOTH,           \
      "Events and packets that the flight recorder keeps; 0: there is none")

/* What managers are told that the card is (NodeInfo, IBA 14.2.5.3). */
typedef struct HcaIdentity {
    uint32_t vendor_id; /* an OUI */
    uint16_t device_id;
    uint32_t revision;
} HcaIdentity;

typedef struct HcaConfig {
#define HCA_OPTION_FIELD(field, ...) uint32_t field;
    HCA_OPTIONS(HCA_OPTION_FIELD)
#undef HCA_OPTION_FIELD
    HcaPersonality personality;
    HcaIdentity identity; /* that of its personality */
    HcaLinkLayer link_layer;
    HcaCableProtocol cable;             /* HCA_CABLE_CARD */
    uint16_t lid;                       /* 1..0xbfff; InfiniBand only */
    HcaManaged managed;                 /* InfiniBand only */
    uint8_t mac[6];                     /* RoCE only */
    HcaAckPolicy ack_policy;            /* HCA_ACK_COALESCED */
    uint8_t max_mtu;                    /* IB MTU code 1..5 (256..4096) */
    uint32_t num_pkeys;                 /* entries of the P_Key table, 1 */
    uint16_t pkeys[RDMA_HCA_MAX_PKEYS]; /* 0xffff; top bit: full member */
    uint64_t guid;                      /* node and port GUID, EUI-64 */
    uint32_t num_vectors;               /* MSI-X messages of the function */
    bool strict;                        /* see strict.h */
} HcaConfig;

static inline bool hca_config_is_roce(const HcaConfig *config)
{
    return config->link_layer == HCA_LINK_LAYER_ROCE;
}

/* The documents' sizes, but for what a cable of software needs more of. */
void hca_config_init(HcaConfig *config);
/*
 * Make of it what drivers of its personality take for granted: some ask for tables
 * of the sizes that they know.
 */
void hca_config_settle(HcaConfig *config);

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

typedef enum HcaOptionUnit {
    HCA_UNIT_NONE,
    HCA_UNIT_BYTES,
    HCA_UNIT_MS, /* milliseconds */
    HCA_UNIT_US, /* microseconds */
    HCA_UNIT_NS, /* nanoseconds */
} HcaOptionUnit;

/* A row of HCA_OPTIONS. Strings are in static storage. */
typedef struct HcaOption {
    const char *name;
    const char *text;    /* what it is */
    const char *limits;  /* as in "from 2 to 16" */
    const char *message; /* for a value beyond them */
    size_t offset;       /* of its uint32_t in HcaConfig */
    uint32_t initial;
    uint32_t least;
    uint32_t most;
    bool power_of_two;
    bool may_be_0; /* besides */
    bool roce;     /* not looked at on an InfiniBand card */
    HcaOptionUnit unit;
} HcaOption;

/* All rows; @number: how many. */
const HcaOption *hca_config_options(unsigned *number);

#endif /* HCA_CONFIG_H */
