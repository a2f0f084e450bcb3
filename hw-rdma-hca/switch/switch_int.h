/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the switch. */
#ifndef HCA_SWITCH_INT_H
#define HCA_SWITCH_INT_H

#include "../core/mad/vl_arbiter.h"
#include "../core/wire/wire.h"
#include "switch.h"

/* LRH to ICRC: what headers may have besides a payload of the MTU. */
#define SW_HEADER_ROOM 124

/* Why a packet is dropped; what of it a manager sees is in counters.c. */
typedef enum SwDrop {
    SW_DROP_VCRC,
    SW_DROP_MALFORMED, /* lengths, LVer, a VL that is not there */
    SW_DROP_RAW,       /* no IBA transport */
    SW_DROP_IN_STATE,  /* data before the port is Armed */
    SW_DROP_IN_PKEY,
    SW_DROP_NO_ROUTE,
    SW_DROP_SAME_PORT,
    SW_DROP_SL, /* its SL has no VL there */
    SW_DROP_OUT_STATE,
    SW_DROP_MTU,
    SW_DROP_OUT_PKEY,
    SW_DROP_LIFETIME,  /* SwitchInfo.LifeTimeValue */
    SW_DROP_HOQ,       /* PortInfo.HOQLife */
    SW_DROP_STALLED,   /* for VLStallCount of those in a row */
    SW_DROP_LINK_LOST, /* while it waited */
    SW_DROP_VL15,      /* no room for a packet on VL 15 */
    SW_DROP_OWN,       /* no room for an answer of the switch */
    SW_DROP_AGENT,     /* to the switch, but for none of its agents */
    SW_DROP_CORRUPT,   /* the same, with a wrong ICRC */
    SW_NDROPS,
    SW_NO_DROP = SW_NDROPS
} SwDrop;

/* Of one port, since it was made; port 0 is the switch itself. */
typedef struct SwCounters {
    uint64_t rx_packets, rx_words, rx_multicast;
    uint64_t tx_packets, tx_words, tx_multicast;
    uint64_t dropped[SW_NDROPS];
    uint64_t queued; /* packets that had to wait */
} SwCounters;

/* A packet on its way through the switch. */
typedef struct SwPacket {
    const uint8_t *data; /* LRH to VCRC */
    size_t len;
    unsigned in; /* the port that it came in by; 0: the switch's own */
    uint8_t vl, sl;
    bool has_grh;
    uint16_t slid, dlid;
    int64_t arrived;
} SwPacket;

/* queue.c: packets that wait for a port, of one VL. */
typedef struct SwQueue {
    uint8_t *ring; /* NULL: never used */
    size_t size;
    size_t head, used; /* bytes, with gaps */
    unsigned packets;
    int64_t head_since; /* when the oldest became that */
    unsigned hoq_drops; /* in a row */
    int64_t stalled_until;
} SwQueue;

typedef struct SwQueued {
    const uint8_t *data; /* in the ring, until the next call */
    size_t len;
    int64_t arrived;
} SwQueued;

/* False: it does not fit. The ring is allocated by the first one. */
bool sw_queue_put(SwQueue *queue, const SwPacket *packet, int64_t now);
/* The oldest; false: there is none. */
bool sw_queue_peek(const SwQueue *queue, SwQueued *packet);
void sw_queue_drop(SwQueue *queue, int64_t now);
void sw_queue_clear(SwQueue *queue);
void sw_queue_free(SwQueue *queue);

typedef struct SwPort {
    HcaSwitch *sw;
    unsigned number;
    HcaLink *link;  /* NULL: port 0 */
    bool cabled;    /* there is a stream */
    bool readable;  /* the stream may have something */
    bool writable;  /* the stream takes more again */
    bool enabled;   /* the manager lets it train */
    bool trained;   /* both ends are there, and want to be: as the node knows */
    unsigned downs; /* of the link, as far as noticed */
    bool failed;    /* the peer broke the framing */

    /* Received, and not yet taken by the ports in @left (bits). */
    SwPacket held;
    uint64_t left; /* 0: none */

    uint16_t waiting; /* VLs whose queues have something: bits */
    SwQueue queue[HCA_NUM_DATA_VLS];
    HcaVlArbiter arbiter;
    SwCounters counters;
} SwPort;

struct HcaSwitch {
    HcaSwitchConfig config;
    const HcaSwitchOps *ops;
    void *opaque;
    HcaHostOps link_ops;
    HcaNode *node;
    unsigned num_ports;
    SwPort *port;         /* num_ports + 1 */
    uint64_t all;         /* the ports, with 0: bits */
    unsigned first;       /* the port that is first this turn */
    int64_t now;          /* of this turn */
    uint32_t psn;         /* of what the switch sends itself */
    uint64_t inputs_held; /* ports with a packet held: bits */
    bool answering;       /* a packet to the switch itself */
    uint64_t closing;     /* ports that are disabled behind the answer: bits */
};

static inline const HcaPortInfo *sw_info(const SwPort *port)
{
    return &port->sw->node->port[port->number].info;
}

static inline bool sw_is_multicast(uint16_t dlid)
{
    return dlid >= HCA_LID_FIRST_MULTICAST && dlid != HCA_LID_PERMISSIVE;
}

/* Data VLs of a code of PortInfo. */
unsigned sw_num_vls(unsigned code);

/* port.c */
void sw_port_init(HcaSwitch *sw, unsigned number);
void sw_port_destroy(SwPort *port);
void sw_port_cable(SwPort *port, bool up);
/* Take a share of what has come. True: there may be more. */
bool sw_port_receive(SwPort *port);
/* A packet that waits may go on now. */
void sw_port_retry(SwPort *port);
/* The node's order. */
void sw_port_set_link(SwPort *port, bool poll);
/* Tell the node what has become of the link. */
void sw_port_watch(SwPort *port);

/* packet.c */
/* Fill in @packet; what is wrong with it, or SW_NO_DROP. */
SwDrop sw_packet_parse(SwPacket *packet, unsigned mtu_cap, unsigned vls);
const uint8_t *sw_packet_bth(const SwPacket *packet);
/* For a trap. */
HcaKeyViolation sw_packet_violation(const SwPacket *packet);

/* forward.c */
/* A packet has come in: to where it goes. */
void sw_forward(SwPort *in, SwPacket *packet);
/* To the ports in @to; those that have no room for it yet. */
uint64_t sw_deliver(HcaSwitch *sw, const SwPacket *packet, uint64_t to);
/* The port that @lid is reached by, or HCA_LFT_NO_PORT. */
unsigned sw_route(const HcaSwitch *sw, uint16_t lid);
/* hca_pkey_match() or hca_pkey_may_send(). */
typedef bool SwPkeyRule(uint16_t entry, uint16_t pkey);
/* The entry of @port's table that lets @pkey pass by @rule; 0: there is none. */
uint16_t sw_find_pkey(const HcaNodePort *port, SwPkeyRule *rule, uint16_t pkey);

/* output.c */
/* Send or queue a packet, or drop and count it. False: there is no room yet. */
bool sw_output(SwPort *out, const SwPacket *packet);
/* What waits leaves as far as the cable takes it; the rest grows old. */
void sw_output_run(SwPort *out);
/* The link is gone: so is what waited for it. */
void sw_output_lose(SwPort *out);
int64_t sw_output_deadline(const SwPort *out);
/* Until when a packet waits for room that has done so @since. */
int64_t sw_output_patience(const SwPort *out, int64_t since);

/* agent.c */
extern const HcaNodeOps sw_node_ops;
/* A packet to port 0, or on a directed route. */
void sw_agent_receive(HcaSwitch *sw, const SwPacket *packet);

/* counters.c */
const char *sw_drop_name(SwDrop why);
void sw_count_rx(SwPort *port, const SwPacket *packet);
void sw_count_tx(SwPort *port, uint16_t dlid, size_t len);
/* @packet was dropped at @port. */
void sw_drop(SwPort *port, SwDrop why);
void sw_counters(const SwPort *port, HcaPmaCounters *counters);

/* report.c */
const char *sw_state_name(unsigned state);

/* Say it, if anybody wants to know. */
void sw_say(HcaSwitch *sw, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif /* HCA_SWITCH_INT_H */
