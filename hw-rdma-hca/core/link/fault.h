/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault: the fault injector, between the card and the cable.
 *
 * A plan is a list of rules. Each packet that the cable carries, in either
 * direction, is held against them in their order; the first rule that fires
 * does its action, and the others do not see the packet. Packets to the card's
 * own address do not pass the cable, and the greeting is no packet. A packet
 * that was held back is not judged again. With the same plan, seed and packets
 * the same faults happen; each direction has its own chance.
 */
#ifndef HCA_LINK_FAULT_H
#define HCA_LINK_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_FAULT_MAX_RULES 32
/* Packets that are held back at a time, of each direction; more are not. */
#define HCA_FAULT_MAX_HELD 64
/* An hour. */
#define HCA_FAULT_MAX_DELAY_NS UINT64_C(3600000000000)

typedef enum HcaFaultAction {
    HCA_FAULT_DROP,
    HCA_FAULT_DUPLICATE, /* a second copy right behind the packet */
    HCA_FAULT_REORDER,   /* held until @distance later packets have passed */
    HCA_FAULT_DELAY,     /* held for @delay_ns; later packets overtake it */
    HCA_FAULT_CORRUPT,   /* bits inverted, CRCs left as they were */
    HCA_FAULT_MARK,      /* RoCEv2: ECN says that congestion was met */
    HCA_FAULT_NACTIONS
} HcaFaultAction;

typedef enum HcaFaultDirection {
    HCA_FAULT_TX, /* the card sends */
    HCA_FAULT_RX, /* the card receives */
    HCA_FAULT_NDIRECTIONS
} HcaFaultDirection;

/* What a packet is, for rules that match by kind. */
typedef enum HcaFaultKind {
    HCA_FAULT_SEND,
    HCA_FAULT_WRITE,
    HCA_FAULT_READ_REQUEST,
    HCA_FAULT_READ_RESPONSE,
    HCA_FAULT_ATOMIC,
    HCA_FAULT_ATOMIC_RESPONSE,
    HCA_FAULT_ACK,
    HCA_FAULT_RNR_NAK,
    HCA_FAULT_NAK,   /* all others */
    HCA_FAULT_OTHER, /* no BTH, or an opcode that is none of these */
    HCA_FAULT_NKINDS
} HcaFaultKind;

#define HCA_FAULT_ALWAYS (UINT64_C(1) << 32) /* probability 1 */

typedef struct HcaFaultRule {
    HcaFaultAction action;
    /* Match: a packet has to meet all of these. */
    uint8_t directions; /* bit n: HcaFaultDirection n */
    uint16_t kinds;     /* bit n: HcaFaultKind n; 0: any */
    bool match_opcode, match_qpn;
    uint8_t opcode; /* of BTH */
    uint32_t qpn;   /* BTH's destination */
    bool match_psn;
    uint32_t psn_first, psn_last; /* both included, on the 2^24 circle */
    /* Selection among the packets that match, of both directions together. */
    uint32_t skip;        /* the first ones are left alone */
    uint32_t every;       /* then each so many-th is taken; 0 as 1 */
    uint64_t probability; /* then by chance, in 2^-32; HCA_FAULT_ALWAYS */
    uint32_t count;       /* until so many faults; 0: no end */
    /* Of the action. */
    uint32_t distance; /* REORDER: 0 as 1 */
    uint64_t delay_ns; /* DELAY; REORDER: the longest, 0 as a millisecond */
    /* CORRUPT: byte of the packet; no shorter one matches; < 0: by chance */
    int32_t offset;
    uint8_t mask; /* CORRUPT: bits to invert; 0: one by chance */
} HcaFaultRule;

typedef struct HcaFaultPlan {
    uint32_t seed;
    unsigned nrules;
    HcaFaultRule rule[HCA_FAULT_MAX_RULES];
} HcaFaultPlan;

/*
 * What is wrong with @plan: a sentence naming the field and its limits, in
 * static storage; NULL if nothing is.
 */
const char *hca_fault_check(const HcaFaultPlan *plan);

typedef struct HcaFaultCounters {
    uint64_t injected[HCA_FAULT_NDIRECTIONS][HCA_FAULT_NACTIONS];
    uint64_t held_full; /* reorder and delay that found no room: passed */
} HcaFaultCounters;

#endif /* HCA_LINK_FAULT_H */
