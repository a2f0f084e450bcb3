/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plan of faults: rules for what goes wrong at the card's cable, at its host,
 * and with verbs. Each thing that happens at a place is held against the rules for
 * that place in their order; the first rule that fires does its action, and the
 * others do not see the thing. With the same plan, seed and things the same
 * faults happen: each place, and each direction of the cable, has its own
 * chance.
 *
 * plan.c          what a plan may say
 * status.c        which status can be planned where, and how it comes about
 * faults.c        which of the things that match a rule it takes
 * host_faults.c   the rules of all places but the cable; who does what they say
 *                 asks there, of verbs by ../verb_fault.h
 *
 * At the cable (link/fault.c) a thing is a packet that the cable carries, in
 * either direction. Packets to the card's own address do not pass the cable,
 * and the greeting is no packet. A packet that was held back is not judged again.
 */
#ifndef HCA_FAULT_H
#define HCA_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../wire/packet.h"

#define HCA_FAULT_MAX_RULES 32
/* Packets that are held back at a time, of each direction; more are not. */
#define HCA_FAULT_MAX_HELD 64
/* An hour. */
#define HCA_FAULT_MAX_DELAY_NS UINT64_C(3600000000000)

/* The longest packet that a link takes. */
#define HCA_FAULT_MAX_PACKET 9216

typedef enum HcaFaultPlace {
    HCA_FAULT_CABLE,
    HCA_FAULT_DMA,       /* memory of the machine that lies together */
    HCA_FAULT_COMMAND,   /* in the HCR */
    HCA_FAULT_INTERRUPT, /* an MSI-X message */
    HCA_FAULT_DOORBELL,
    HCA_FAULT_EVENT, /* on its way to an event queue */
    /* Verbs. */
    HCA_FAULT_SEND_WR, /* a work request of a send queue, in its turn */
    HCA_FAULT_RECEIVE, /* a message that is to have a receive of its own */
    HCA_FAULT_REQUEST, /* of a reliable peer's, before it is executed */
    HCA_FAULT_ANSWER,  /* to such a request: an acknowledgement or response */
    HCA_FAULT_COMPLETION, /* on its way to a completion queue */
    HCA_FAULT_CARD,       /* nothing happens: it has its time */
    HCA_FAULT_NPLACES
} HcaFaultPlace;

typedef enum HcaFaultAction {
    /* Of the cable; DROP, DUPLICATE and DELAY: also of other places. */
    HCA_FAULT_DROP,
    HCA_FAULT_DUPLICATE, /* a second copy right behind the packet */
    HCA_FAULT_REORDER,   /* held until @distance later packets have passed */
    HCA_FAULT_DELAY,     /* held for @delay_ns; later packets overtake it */
    HCA_FAULT_CORRUPT,   /* bits inverted, CRCs left as they were */
    HCA_FAULT_MARK,      /* RoCEv2: ECN says that congestion was met */
    HCA_FAULT_NPACKET_ACTIONS,
    /* Of the others. */
    HCA_FAULT_FAIL = HCA_FAULT_NPACKET_ACTIONS,
    HCA_FAULT_HANG,     /* a command that never ends */
    HCA_FAULT_OVERFLOW, /* the queue of events or completions has no room */
    HCA_FAULT_BREAK,    /* the QP breaks; a receive of an SRQ: that does */
    HCA_FAULT_RNR,      /* as if no receive were posted */
    HCA_FAULT_RAISE,    /* of a CARD: an event, and what it tells of */
    HCA_FAULT_DOWN,     /* of a CARD, or at a packet: the link goes down */
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

/* Channels to the host's memory (VirtToPhys document 5.4.4). */
typedef enum HcaFaultChannel {
    HCA_FAULT_READ_CTX,   /* a line of the MPT or MTT */
    HCA_FAULT_WRITE_CTX,  /* a line of these, or a context */
    HCA_FAULT_READ_WQE,   /* work requests, and records of those posted */
    HCA_FAULT_READ_DATA,  /* payload, frames, mailboxes, lists */
    HCA_FAULT_WRITE_DATA, /* payload, frames, CQEs, EQEs, mailboxes; atomics */
    HCA_FAULT_NCHANNELS
} HcaFaultChannel;

/* Units that ask for memory: as many as HcaV2pChannel has. */
#define HCA_FAULT_NUNITS 8

/* In HcaFaultRule.operations, beside HcaOpcode: a receive that is completed. */
#define HCA_FAULT_OP_RECV 31

/* A peer, by its address: of InfiniBand its LID, or its GID. */
typedef struct HcaFaultPeer {
    uint16_t lid; /* 0: any */
    bool match_gid;
    HcaGid gid; /* RoCE: its IP address */
} HcaFaultPeer;

/* Events that can be raised; docs/faults.md has the verbs' names. */
typedef enum HcaFaultEvent {
    HCA_FAULT_NO_EVENT,
    /* Of a QP, with what they tell: the first three break it. */
    HCA_FAULT_QP_FATAL,
    HCA_FAULT_QP_REQ_ERR,
    HCA_FAULT_QP_ACCESS_ERR,
    HCA_FAULT_COMM_EST,
    HCA_FAULT_SQ_DRAINED,
    HCA_FAULT_PATH_MIG,
    HCA_FAULT_PATH_MIG_ERR,
    HCA_FAULT_LAST_WQE_REACHED,
    HCA_FAULT_CQ_ERR,
    HCA_FAULT_SRQ_ERR,
    HCA_FAULT_SRQ_LIMIT,
    /* Of the port of an InfiniBand card. */
    HCA_FAULT_LID_CHANGE,
    HCA_FAULT_SM_CHANGE,
    HCA_FAULT_PKEY_CHANGE,
    HCA_FAULT_GID_CHANGE,
    HCA_FAULT_REREGISTER,
    HCA_FAULT_DEVICE_FATAL, /* an event queue cannot be written any more */
    HCA_FAULT_NEVENTS
} HcaFaultEvent;

/* Ends of a link, bits. */
#define HCA_FAULT_OWN_END 1u
#define HCA_FAULT_PEER_END 2u
#define HCA_FAULT_BOTH_ENDS (HCA_FAULT_OWN_END | HCA_FAULT_PEER_END)

/* A link that goes down. */
typedef struct HcaFaultDown {
    uint64_t down_ns; /* for so long; 0: as long as there is the plan */
    uint64_t up_ns;   /* of a CARD, between two times */
    uint8_t ends;     /* that are told; 0: both */
    bool delivered;   /* what is on its way arrives; else it is lost */
    uint8_t speed;    /* it comes up with, code of InfiniBand's; 0: all */
    uint8_t mtu;      /* the same, code */
} HcaFaultDown;

#define HCA_FAULT_ALWAYS (UINT64_C(1) << 32) /* probability 1 */

typedef struct HcaFaultRule {
    HcaFaultPlace place;
    HcaFaultAction action;
    /* Match, CABLE: a packet has to meet all of these. */
    uint8_t directions; /* bit n: HcaFaultDirection n */
    uint16_t kinds;     /* bit n: HcaFaultKind n; 0: any; also of an ANSWER */
    bool match_opcode, match_qpn;
    uint8_t opcode; /* of BTH */
    uint32_t qpn;   /* BTH's destination; of verbs, the card's own QP */
    bool match_psn;
    uint32_t psn_first, psn_last; /* both included, on the 2^24 circle */
    /* Match, DMA */
    uint8_t units;    /* bit n: HcaV2pChannel n; 0: any */
    uint8_t channels; /* bit n: HcaFaultChannel n; 0: any */
    bool match_addr;
    uint64_t addr_first, addr_last; /* bus addresses, both included */
    /*
     * Match, the other places: COMMAND, its opcode; INTERRUPT, its vector;
     * DOORBELL, the QP of a send doorbell; EVENT, the event queue.
     */
    bool match_number;
    uint32_t number;
    /* Match, verbs */
    uint8_t services;    /* bit n: HcaService n; 0: any */
    uint32_t operations; /* bit n: HcaOpcode n, HCA_FAULT_OP_RECV; 0: any */
    bool match_peer_qpn, match_cqn, match_srqn;
    uint32_t peer_qpn, cqn, srqn;
    HcaFaultPeer peer;
    /* RAISE: of whom, by qpn, cqn or srqn, as the event has it. */
    HcaFaultEvent event;
    /* When: so long after the plan has begun, and for how long. */
    uint64_t after_ns, for_ns; /* for_ns 0: no end */
    /* Selection among the things that match, of both directions together. */
    uint32_t skip;        /* the first ones are left alone */
    uint32_t every;       /* then each so many-th is taken; 0 as 1 */
    uint64_t probability; /* then by chance, in 2^-32; HCA_FAULT_ALWAYS */
    uint32_t count;       /* until so many faults; 0: no end */
    /* Of the action. */
    uint32_t distance;  /* REORDER: 0 as 1 */
    uint64_t delay_ns;  /* DELAY; REORDER: the longest, 0 as a millisecond */
    uint8_t status;     /* FAIL: what a command ends with; verbs: HcaSyndrome */
    uint8_t vendor_err; /* FAIL of verbs: beside the status */
    HcaFaultDown down;  /* DOWN */
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

/* Of a cable. */
typedef struct HcaFaultCounters {
    uint64_t injected[HCA_FAULT_NDIRECTIONS][HCA_FAULT_NPACKET_ACTIONS];
    uint64_t downs[HCA_FAULT_NDIRECTIONS]; /* of the link */
    uint64_t held_full; /* reorder and delay that found no room: passed */
} HcaFaultCounters;

#endif /* HCA_FAULT_H */
