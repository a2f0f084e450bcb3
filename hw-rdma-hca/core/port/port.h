/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port: its identity (LID, P_Keys, GIDs), its multicast groups, its state,
 * what it counts, and what a path means on its link. Others ask it and keep no
 * copies: what a manager changes here is changed for everybody.
 *
 * port.c          identity, state, drops
 * gid_table.c     GIDs
 * mcast_table.c   multicast groups and the QPs attached to them
 * flow_table.c    rules by which raw packet QPs get frames
 * flow_key.c      what of a frame they look at
 * addressing*.c   paths and addresses, a table for each link layer
 * frame_encap.c   context document 3.2: from packet metadata to a packet
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

#include <sys/uio.h>

#include "../config.h"
#include "../host.h"
#include "../link/link.h"
#include "../path.h"
#include "../wire/gid.h"
#include "../wire/wire.h"
#include "flow_table.h"
#include "gid_table.h"
#include "mcast_table.h"

typedef struct HcaPort HcaPort;

/* Why a received packet was dropped without an answer. */
/* clang-format off */
#define HCA_DROP_REASONS(X)                                                    \
    X(PARSE_SHORT) X(PARSE_LENGTH) X(PARSE_VERSION) X(PARSE_LNH)               \
    X(PARSE_OPCODE) X(PARSE_VCRC) X(PARSE_ICRC)                                \
    X(PARSE_FRAGMENT) X(PARSE_IP_HEADER) X(PARSE_UDP)                          \
    X(LID)              /* not for us */                                       \
    X(PORT_DOWN)        /* INIT_IB not done */                                 \
    X(QPN)              /* no such QP */                                       \
    X(QP_STATE)         /* its state takes no packets */                       \
    X(SERVICE)          /* opcode of another service type */                   \
    X(PKEY) X(QKEY)                                                            \
    X(SOURCE)           /* not from the connected peer */                      \
    X(DUPLICATE)        /* nothing to answer */                                \
    X(PSN)              /* out of sequence, already told or not to be told */  \
    X(GHOST)            /* a response to nothing that is outstanding */        \
    X(NO_WQE)           /* UC, UD: no receive WQE */                           \
    X(LENGTH)           /* UC, UD: does not fit */                             \
    X(OPCODE_SEQ)       /* UC: out of place in a message */                    \
    X(ACCESS)           /* UC: memory refused */                               \
    X(RESOURCES)        /* the response ring is full */                        \
    X(GROUP)            /* multicast, to no group of ours */
/* clang-format on */

typedef enum HcaDropReason {
#define HCA_DROP_ENUM(name) HCA_DROP_##name,
    HCA_DROP_REASONS(HCA_DROP_ENUM)
#undef HCA_DROP_ENUM
    HCA_DROP_NREASONS
} HcaDropReason;

typedef struct HcaPortCounters {
    uint64_t tx_packets, rx_packets;
    uint64_t tx_unreachable; /* lost: no source address for the path */
    uint64_t rx_multicast;   /* to a group, counted once */
    uint64_t tx_frames;      /* of raw packet QPs */
    uint64_t flow_steered;   /* frames, to a raw packet QP each */
    uint64_t flow_sniffed;   /* the same, copies */
    uint64_t drops[HCA_DROP_NREASONS];
} HcaPortCounters;

/* PortState, PortPhysicalState (IBA 14.2.5.6). */
typedef enum HcaPortState {
    HCA_PORT_DOWN = 1,
    HCA_PORT_ACTIVE = 4,
} HcaPortState;

typedef enum HcaPortPhysState {
    HCA_PORT_PHYS_POLLING = 2,
    HCA_PORT_PHYS_DISABLED = 3,
    HCA_PORT_PHYS_LINK_UP = 5,
} HcaPortPhysState;

/* @config and @link outlive the port. */
HcaPort *hca_port_new(const HcaConfig *config, HcaLink *link,
                      const HcaHostOps *ops, void *opaque);
void hca_port_free(HcaPort *port);
/* Disabled, without addresses and groups but those that @config gives. */
void hca_port_close(HcaPort *port);
/* The same, and the counters begin again. */
void hca_port_reset(HcaPort *port);

/* INIT_IB, CLOSE_IB. */
void hca_port_enable(HcaPort *port, bool enable);
bool hca_port_is_enabled(const HcaPort *port);
/* ACTIVE: enabled, and the peer is there. */
HcaPortState hca_port_state(const HcaPort *port);
HcaPortPhysState hca_port_phys_state(const HcaPort *port);
/*
 * Whether the state has changed since the last call, or the reset, and to what.
 * There may be another change behind it.
 */
bool hca_port_state_changed(HcaPort *port, HcaPortState *state);

bool hca_port_is_roce(const HcaPort *port);
uint16_t hca_port_lid(const HcaPort *port);
/* The greatest MTU, an IB code. */
uint8_t hca_port_mtu(const HcaPort *port);
unsigned hca_port_num_pkeys(const HcaPort *port);
/* 0: nothing is at @index. */
uint16_t hca_port_pkey(const HcaPort *port, unsigned index);
/* Whether a packet with @pkey may come to a QP that has that at @index. */
bool hca_port_takes_pkey(const HcaPort *port, unsigned index, uint16_t pkey);

/* Whether packets can be sent along @path as things are. */
bool hca_port_can_reach(const HcaPort *port, const HcaPath *path);
/* Whether @packet came along @path, from its other end (IBA 9.6.1). */
bool hca_port_came_along(const HcaPort *port, const HcaPath *path,
                         const HcaPacket *packet);
HcaSource hca_port_source(const HcaPort *port, const HcaPacket *packet);
/* The 40 bytes before a datagram in its receive buffer. */
void hca_port_datagram_header(const HcaPort *port, const HcaPacket *packet,
                              uint8_t *header);

/* Whom a packet that has arrived is for. */
typedef enum HcaArrival {
    HCA_ARRIVAL_OTHER, /* not the engine */
    HCA_ARRIVAL_OWN,   /* the QP that it names */
    HCA_ARRIVAL_GROUP, /* the QPs of a multicast group */
} HcaArrival;

/* A frame of the link, as hca_ib_parse() and hca_roce_parse(). */
HcaParseError hca_port_parse(const HcaPort *port, HcaPacket *packet,
                             const uint8_t *frame, size_t len);
/* @loopback: it came from the card itself. */
HcaArrival hca_port_arrival(const HcaPort *port, const HcaPacket *packet,
                            bool loopback);

/* Count and trace a received packet that is dropped without an answer. */
void hca_drop(HcaPort *port, const HcaPacket *packet, HcaDropReason reason);

/* Counters are written by the port, and by who hands packets out. */
HcaPortCounters *hca_port_counters(HcaPort *port);

#endif /* HCA_PORT_H */
