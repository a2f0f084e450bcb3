/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flow_table: the rules by which raw packet QPs get Ethernet frames (verbs:
 * flow steering). A rule names a QP by its number; whether there is one that
 * receives is found out when a frame comes.
 */
#ifndef HCA_FLOW_TABLE_H
#define HCA_FLOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum HcaFlowKind {
    HCA_FLOW_NORMAL,      /* frames that match, by priority */
    HCA_FLOW_ALL_DEFAULT, /* frames that nothing else takes */
    HCA_FLOW_MC_DEFAULT,  /* multicasts of them */
    HCA_FLOW_SNIFFER,     /* all that is received or sent */
    HCA_FLOW_NKINDS
} HcaFlowKind;

/* What a frame has: bits. */
#define HCA_FLOW_HAS_VLAN 0x01u
#define HCA_FLOW_HAS_IPV4 0x02u
#define HCA_FLOW_HAS_IPV6 0x04u
#define HCA_FLOW_HAS_PORTS 0x08u /* TCP or UDP, not a later fragment */

/*
 * What a rule can look at of a frame; what the frame does not have is 0. Bytes
 * are in network order: two keys are compared as words, whatever is in them.
 */
typedef struct HcaFlowKey {
    union {
        struct {
            uint8_t dmac[6];
            uint8_t smac[6];
            uint8_t ether_type[2]; /* behind the VLAN tags */
            uint8_t vlan_tci[2];   /* of the first one */
            uint8_t sip[16];       /* IPv4: ::ffff:a.b.c.d */
            uint8_t dip[16];
            uint8_t sport[2];
            uint8_t dport[2];
            uint8_t protocol; /* IPv6: Next Header */
            uint8_t tclass;   /* IPv4: TOS */
            uint8_t hop_limit;
            uint8_t layers;        /* HCA_FLOW_HAS_* */
            uint8_t flow_label[4]; /* IPv6 */
            uint8_t reserved[4];
        };
        uint64_t word[8];
    };
} HcaFlowKey;

typedef struct HcaFlowRule {
    uint32_t qpn;
    HcaFlowKind kind;
    uint32_t tag;      /* for who gets a frame by it */
    uint16_t priority; /* 0: the first */
    bool dont_trap;    /* frames go on to rules behind it, too */
    HcaFlowKey value;
    HcaFlowKey mask;
} HcaFlowRule;

typedef struct HcaPort HcaPort;

/* SET_FLOW; each returns a status. */
uint8_t hca_flow_add(HcaPort *port, unsigned index, const HcaFlowRule *rule);
uint8_t hca_flow_remove(HcaPort *port, unsigned index);
/* How many rules there are. */
unsigned hca_flow_count(const HcaPort *port);

/* The key of a frame, which has a header at the least. */
void hca_flow_key(const uint8_t *frame, size_t len, HcaFlowKey *key);

/* Give @rule's QP the frame. False: it does not receive; the rule is none. */
typedef bool HcaFlowFn(void *opaque, const HcaFlowRule *rule);

/*
 * Have @fn called for each QP that gets a frame: that of all rules of the best
 * priority that match, once, with the first of them. True: a rule has trapped it, it goes no further.
 */
bool hca_flow_steer(HcaPort *port, const uint8_t *frame, size_t len,
                    HcaFlowFn *fn, void *opaque);
/* The same of a frame that nothing else took. */
bool hca_flow_default(HcaPort *port, const uint8_t *frame, HcaFlowFn *fn,
                      void *opaque);
/* The same of any frame that was received or sent. */
void hca_flow_sniff(HcaPort *port, HcaFlowFn *fn, void *opaque);

#endif /* HCA_FLOW_TABLE_H */
