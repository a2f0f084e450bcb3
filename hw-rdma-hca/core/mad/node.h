/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node of a subnet as managers see it: a channel adapter or a switch, with the
 * state that they read and set, and the agents that answer them.
 *
 * node.c          the node, the state machine of its ports, its SLs and keys
 * smi.c           directed routes (IBA 14.2.2)
 * agents.c        who answers a MAD: classes, versions, methods
 * sma.c           subnet management agent: attributes, M_Key (IBA 14.2.4, 14.2.5)
 * port_info.c     PortInfo: what it shows, and what may be set
 * tables.c        P_Keys, GUIDs, SL to VL, VL arbitration, LED
 * switch_tables.c SwitchInfo and forwarding tables
 * notice.c        traps and notices (IBA 13.4.8 to 13.4.11)
 * pma.c           performance management agent (IBA 16.1)
 * vl_arbiter.c    which lane of a port is next (IBA 7.6.9)
 *
 * It knows neither cables nor packets: who owns a node tells it of its links,
 * gives it MADs, and is asked by HcaNodeOps. One thread at a time.
 */
#ifndef HCA_MAD_NODE_H
#define HCA_MAD_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../state.h"
#include "mad.h"

typedef struct HcaNode HcaNode;

typedef enum HcaNodeType {
    HCA_NODE_CA = 1,
    HCA_NODE_SWITCH = 2,
} HcaNodeType;

/* PortState, PortPhysicalState (IBA 14.2.5.6). */
typedef enum HcaPortState {
    HCA_PORT_DOWN = 1,
    HCA_PORT_INIT = 2,
    HCA_PORT_ARMED = 3,
    HCA_PORT_ACTIVE = 4,
} HcaPortState;

typedef enum HcaPortPhysState {
    HCA_PORT_PHYS_SLEEP = 1,
    HCA_PORT_PHYS_POLLING = 2,
    HCA_PORT_PHYS_DISABLED = 3,
    HCA_PORT_PHYS_LINK_UP = 5,
} HcaPortPhysState;

/* PortInfo, field by field (IBA 14.2.5.6). What is not here reads as 0. */
typedef struct HcaPortInfo {
    uint64_t m_key;
    uint64_t gid_prefix;
    uint16_t lid;
    uint16_t sm_lid;
    uint32_t cap_mask;
    uint16_t m_key_lease; /* seconds; 0: for ever */
    uint8_t local_port;   /* of an answer: the port that it was asked by */
    uint8_t width_enabled, width_supported, width_active;
    uint8_t speed_supported, speed_active, speed_enabled;
    uint8_t state;        /* HcaPortState */
    uint8_t phys_state;   /* HcaPortPhysState */
    uint8_t down_default; /* SLEEP or POLLING */
    uint8_t m_key_protect;
    uint8_t lmc;
    uint8_t mtu; /* NeighborMTU, a code */
    uint8_t mtu_cap;
    uint8_t sm_sl;
    uint8_t vl_cap, operational_vls; /* codes */
    uint8_t vl_high_limit;
    uint8_t arb_high_cap, arb_low_cap;
    uint8_t vl_stall_count, hoq_life;
    uint8_t enforce_in, enforce_out; /* P_Keys, at a switch */
    uint8_t filter_raw_in, filter_raw_out;
    uint16_t m_key_violations, p_key_violations, q_key_violations;
    uint8_t guid_cap;
    uint8_t client_reregister; /* of a Set and its answer alone */
    uint8_t subnet_timeout, resp_time;
    uint8_t local_phy_errors, overrun_errors; /* thresholds */
} HcaPortInfo;

/* What a performance manager reads of a port; see pma.c. */
typedef enum HcaPmaCounter {
    HCA_PMA_SYMBOL_ERRORS,
    HCA_PMA_LINK_RECOVERIES,
    HCA_PMA_LINK_DOWNED,
    HCA_PMA_RCV_ERRORS,
    HCA_PMA_RCV_REMOTE_ERRORS,
    HCA_PMA_RCV_RELAY_ERRORS,
    HCA_PMA_XMIT_DISCARDS,
    HCA_PMA_XMIT_CONSTRAINT,
    HCA_PMA_RCV_CONSTRAINT,
    HCA_PMA_INTEGRITY_ERRORS,
    HCA_PMA_OVERRUN_ERRORS,
    HCA_PMA_VL15_DROPPED,
    HCA_PMA_XMIT_DATA, /* words from LRH to ICRC */
    HCA_PMA_RCV_DATA,
    HCA_PMA_XMIT_PKTS,
    HCA_PMA_RCV_PKTS,
    HCA_PMA_XMIT_WAIT, /* ticks of a microsecond */
    HCA_PMA_QP1_DROPPED,
    HCA_PMA_UNICAST_XMIT,
    HCA_PMA_UNICAST_RCV,
    HCA_PMA_MULTICAST_XMIT,
    HCA_PMA_MULTICAST_RCV,
    HCA_PMA_NCOUNTERS
} HcaPmaCounter;

typedef struct HcaPmaCounters {
    uint64_t value[HCA_PMA_NCOUNTERS];
} HcaPmaCounters;

#define HCA_NODE_PKEYS RDMA_HCA_MAX_PKEYS
#define HCA_NODE_GUIDS RDMA_HCA_MAX_GUIDS
#define HCA_VL_ARB_PARTS 4
#define HCA_VL_ARB_ENTRIES 32
#define HCA_NUM_SLS 16

typedef struct HcaVlWeight {
    uint8_t vl;
    uint8_t weight; /* units of 64 bytes; 0: the entry is skipped */
} HcaVlWeight;

typedef struct HcaNodePort {
    HcaPortInfo info;
    uint16_t pkeys[HCA_NODE_PKEYS]; /* 0: none */
    uint64_t guids[HCA_NODE_GUIDS]; /* 0: none; the first is the port's */
    /* The VL of an SL, by the port that a packet came in by; of a CA one. */
    uint8_t (*sl_to_vl)[HCA_NUM_SLS];
    /* Low, low from 32 on, high, high from 32 on (IBA 7.6.9). */
    HcaVlWeight vl_arb[HCA_VL_ARB_PARTS][HCA_VL_ARB_ENTRIES];
    bool led;
    /* Inside of the agents. */
    int64_t lease_end;   /* of the M_Key's protection; 0: no timer runs */
    unsigned phy_errors; /* not made good by good packets (IBA 7.12.2) */
    uint64_t downs;      /* times that the link was lost */
    uint64_t integrity_errors;
    HcaPmaCounters cleared[2]; /* what each set of counters began at */
} HcaNodePort;

/* SwitchInfo (IBA 14.2.5.4). */
typedef struct HcaSwitchInfo {
    uint16_t lft_top;
    uint16_t mft_top;
    uint8_t default_port, default_mcast_primary, default_mcast_secondary;
    uint8_t life_time; /* 4.096 us * 2^n; from 20 on: no limit */
    bool port_state_change;
} HcaSwitchInfo;

#define HCA_LFT_SIZE HCA_LID_FIRST_MULTICAST
#define HCA_LFT_NO_PORT 0xff
#define HCA_MFT_SIZE 1024

/* Port changes that its owner is told of: bits. */
#define HCA_CHANGED_LID (1u << 0) /* or LMC */
#define HCA_CHANGED_SM (1u << 1)  /* its LID or SL */
#define HCA_CHANGED_PKEYS (1u << 2)
#define HCA_CHANGED_GIDS (1u << 3) /* or the prefix */
#define HCA_CHANGED_REREGISTER (1u << 4)
#define HCA_CHANGED_STATE (1u << 5)

typedef struct HcaNodeOps {
    /* Nanoseconds, of the clock that leases and traps go by. */
    int64_t (*now)(void *opaque);
    /*
     * Train the link of @port anew if @poll, else keep it down. The peer sees
     * it go down in either case.
     */
    void (*set_link)(void *opaque, unsigned port, bool poll);
    /* Something of @port has changed: HCA_CHANGED_*. Its tables have the new. */
    void (*changed)(void *opaque, unsigned port, unsigned what);
    /* All counters of @port, since ever. */
    void (*counters)(void *opaque, unsigned port, HcaPmaCounters *counters);
    /*
     * Send an SMP of the node's own to QP0 of @lid. False: there is no way now.
     */
    bool (*send_smp)(void *opaque, uint16_t lid, uint8_t sl,
                     const uint8_t *mad);
} HcaNodeOps;

/* What the agents count. */
typedef struct HcaNodeCounters {
    uint64_t smps, gmps;      /* requests to the agents */
    uint64_t refused;         /* answered with a status */
    uint64_t mkey_violations; /* not answered */
    uint64_t route_errors;    /* directed routes that cannot be */
    uint64_t traps;           /* sent, repeats too */
    uint64_t traps_repressed;
    uint64_t traps_lost; /* no room among those that wait */
} HcaNodeCounters;

#define HCA_NODE_DESC_SIZE 64
/* Traps that wait for their time or for an answer; notices that are kept. Of
 * security notices each has half as many. */
#define HCA_NODE_TRAPS 16
#define HCA_NODE_NOTICES 16
#define HCA_NOTICE_SIZE 64

typedef struct HcaTrap {
    uint8_t notice[HCA_NOTICE_SIZE];
    uint64_t tid;
    unsigned sent; /* times */
} HcaTrap;

struct HcaNode {
    HcaNodeType type;
    uint8_t num_ports; /* without a switch's port 0 */
    uint64_t system_guid, node_guid;
    uint16_t device_id;
    uint32_t revision, vendor_id;
    uint8_t mtu_cap, vl_cap;              /* codes */
    uint8_t width, speeds;                /* of the links, one bit each */
    uint32_t cap_mask;                    /* that a port begins with */
    char description[HCA_NODE_DESC_SIZE]; /* filled up with zeros */
    HcaNodePort *port;                    /* by number; of a CA 0 is not used */
    HcaSwitchInfo switch_info;
    uint8_t *lft;  /* of a switch: HCA_LFT_SIZE ports */
    uint64_t *mft; /* HCA_MFT_SIZE sets of ports, a bit each */
    const HcaNodeOps *ops;
    void *opaque;
    HcaNodeCounters counters;

    HcaTrap trap[HCA_NODE_TRAPS]; /* the oldest first */
    unsigned ntraps;
    uint64_t next_tid;
    int64_t next_trap; /* not before that */
    uint8_t notice[HCA_NODE_NOTICES][HCA_NOTICE_SIZE];
    unsigned nnotices;
    bool notice_toggle;
};

/* What a node is made with. */
typedef struct HcaNodeSetup {
    HcaNodeType type;
    uint8_t num_ports;
    uint64_t guid; /* of node, system and port */
    uint16_t device_id;
    const char *description;
    uint32_t vendor_id; /* an OUI */
    uint32_t revision;
    uint8_t mtu_cap, vl_cap; /* codes */
    uint8_t width, speeds;   /* of the links, one bit each */
} HcaNodeSetup;

/* @opaque is @ops'. */
HcaNode *hca_node_new(const HcaNodeSetup *setup, const HcaNodeOps *ops,
                      void *opaque);
void hca_node_free(HcaNode *node);
/* As after power-up: no LIDs, keys or routes; all links Down. */
void hca_node_reset(HcaNode *node);

/* The fastest of @speeds, a bit each (LinkSpeedEnabled; IBA 14.2.5.6). */
static inline uint8_t hca_node_speed(uint8_t speeds)
{
    return speeds ? 1u << (31 - __builtin_clz(speeds)) : 0;
}

/* The port that the node's keys, LID and traps belong to. */
static inline unsigned hca_node_mgmt_port(const HcaNode *node)
{
    return node->type == HCA_NODE_SWITCH ? 0 : 1;
}

/*
 * One port of it, which has no link: but for what its host has set, and what was
 * counted.
 */
void hca_node_forget(HcaNode *node, unsigned port);

/* Links */

/*
 * The link of @port is trained or lost. A switch takes notice of it (trap 128).
 */
void hca_node_link(HcaNode *node, unsigned port, bool up);
/* The host's driver keeps the port down, or lets it train. */
void hca_node_enable(HcaNode *node, unsigned port, bool enable);
/* From Initialize to Active without a manager; from Armed by a packet. */
void hca_node_activate(HcaNode *node, unsigned port);
/* A packet has arrived at @port, good or with a local physical error. */
void hca_node_count_packet(HcaNode *node, unsigned port, bool good);
static inline void hca_node_packet(HcaNode *node, unsigned port, bool good)
{
    if (!good || node->port[port].phy_errors) {
        hca_node_count_packet(node, port, good);
    }
}

/* Addresses and keys */

/* Whether @lid is the port's, with any path bits (IBA 4.1.3). */
static inline bool hca_node_owns_lid(const HcaNodePort *port, uint16_t lid)
{
    return port->info.lid &&
           (lid >> port->info.lmc) == (port->info.lid >> port->info.lmc);
}

/* The VL of @sl from port @in to port @out, 15: to be dropped. */
uint8_t hca_node_vl(const HcaNode *node, unsigned in, unsigned out, uint8_t sl);

/* What a bad key is told with (IBA 14.2.5.1, traps 257 to 259). */
typedef struct HcaKeyViolation {
    uint16_t slid, dlid;
    uint32_t key;
    uint8_t sl;
    uint32_t src_qp, dest_qp;
    const uint8_t *sgid, *dgid; /* 16 bytes each, NULL: no GRH */
} HcaKeyViolation;

/* Count it and tell the manager; at a switch, of external port @port. */
void hca_node_bad_pkey(HcaNode *node, unsigned port,
                       const HcaKeyViolation *violation);
void hca_node_bad_qkey(HcaNode *node, unsigned port,
                       const HcaKeyViolation *violation);

/* The host changes its part of CapabilityMask, or the description: trap 144. */
void hca_node_set_capabilities(HcaNode *node, unsigned port, uint32_t mask);
void hca_node_set_description(HcaNode *node, const char *text);

/* Time */

/* Leases end, traps are sent; when that is next, or INT64_MAX. */
void hca_node_tick(HcaNode *node);
int64_t hca_node_deadline(const HcaNode *node);

/* MADs */

typedef enum HcaSmiAction {
    HCA_SMI_DROP,
    HCA_SMI_LOCAL,   /* to this node's agent or manager */
    HCA_SMI_FORWARD, /* out of a port */
    HCA_SMI_ROUTE,   /* by LIDs: a request to DrDLID, a response to DrSLID */
} HcaSmiAction;

/*
 * An SMP by directed route has come in by @in_port (0: from this node itself).
 * Writes its hop pointer and return path as it goes on; *@out_port is where.
 */
HcaSmiAction hca_smi_receive(HcaNode *node, unsigned in_port, uint8_t *mad,
                             unsigned *out_port);
/* The same of a response that begins its way back here. */
HcaSmiAction hca_smi_respond(HcaNode *node, uint8_t *mad, unsigned *out_port);

typedef enum HcaMadVerdict {
    HCA_MAD_REPLY,  /* there is an answer */
    HCA_MAD_SILENT, /* it was taken, and is not answered */
    HCA_MAD_DROP,   /* not answered: a wrong M_Key, or nothing to be answered */
} HcaMadVerdict;

/*
 * The agents' answer to @mad, HCA_MAD_SIZE bytes that came in by @in_port; @reply
 * has room for as many. @local: it is the node's own host's, which needs no M_Key.
 */
HcaMadVerdict hca_node_answer(HcaNode *node, unsigned in_port, bool local,
                              const uint8_t *mad, uint8_t *reply);

/* state.c: what is saved of a channel adapter. */
extern const HcaStruct hca_node_struct;
extern const HcaSection hca_node_section;

#endif /* HCA_MAD_NODE_H */
