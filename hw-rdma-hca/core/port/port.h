/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port: its identity (LID, P_Keys, GIDs), its multicast groups, its state,
 * what it counts, and what a path means on its link. Others ask it and keep no
 * copies: what a manager changes here is changed for everybody.
 *
 * port.c          identity, state, drops
 * gid_table.c     GIDs
 * mcast_table.c   multicast groups and the QPs attached to them
 * mcast_chains.c  the same where software keeps them in hash chains
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
#include "../mad/node.h"
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
    X(GROUP)            /* multicast, to no group of ours */              \
    X(MGMT)             /* not as those of QP 0 and QP 1 are */                \
    X(FAULT)            /* a plan of faults */
/* clang-format on */

typedef enum HcaDropReason {
#define HCA_DROP_ENUM(name) HCA_DROP_##name,
    HCA_DROP_REASONS(HCA_DROP_ENUM)
#undef HCA_DROP_ENUM
    HCA_DROP_NREASONS
} HcaDropReason;

typedef struct HcaPortCounters {
    uint64_t tx_packets, rx_packets;
    /* Lost: no source address for the path, no VL for its SL, no P_Key. */
    uint64_t tx_unreachable;
    uint64_t tx_inactive;      /* lost: the port was not ACTIVE */
    uint64_t tx_mgmt_full;     /* lost: no room on VL 15 */
    uint64_t tx_multicast;     /* to the peer */
    uint64_t rx_multicast;     /* to a group, counted once */
    uint64_t rx_multicast_all; /* from the peer, whosever groups they are */
    uint64_t vl15_dropped;     /* QP 0 or QP 1 had no receive WQE */
    uint64_t qp1_dropped;
    uint64_t tx_frames;    /* of raw packet QPs */
    uint64_t flow_steered; /* frames, to a raw packet QP each */
    uint64_t flow_sniffed; /* the same, copies */
    uint64_t drops[HCA_DROP_NREASONS];
} HcaPortCounters;

/* Its number, IB code of its width (4X), sets of the speeds that it has: of
 * InfiniBand SDR to QDR, of RoCE the Ethernet's (HCA_ETH_GBITS, as SDR). */
#define HCA_PORT_NUMBER RDMA_HCA_NUM_PORTS
#define HCA_PORT_WIDTH 2
#define HCA_PORT_SPEEDS_IB 7
#define HCA_PORT_SPEEDS_ROCE 1

/* @config and @link outlive the port. */
HcaPort *hca_port_new(const HcaConfig *config, HcaLink *link,
                      const HcaHost *host);
void hca_port_free(HcaPort *port);
/* Disabled, without addresses and groups but those that @config gives. */
void hca_port_close(HcaPort *port);
/* The same, and the counters begin again. */
void hca_port_reset(HcaPort *port);

/* INIT_IB, CLOSE_IB. */
void hca_port_enable(HcaPort *port, bool enable);
bool hca_port_is_enabled(const HcaPort *port);
/* What has its time: leases, traps, links. When that is, or INT64_MAX. */
void hca_port_tick(HcaPort *port);
int64_t hca_port_deadline(const HcaPort *port);
/* What has become of the cable since the last look. */
void hca_port_refresh(HcaPort *port);
/*
 * Whether the port had become ACTIVE, or something else (DOWN), at the last look,
 * since the last call or the reset. There may be another change behind it.
 */
bool hca_port_state_changed(HcaPort *port, HcaPortState *state);
/* Nobody needs to be told of what it has become up to now. */
void hca_port_state_told(HcaPort *port);
/* HCA_CHANGED_*: what a manager has changed since the last call. */
uint32_t hca_port_take_changes(HcaPort *port);
/* A fault: the last GUID of the port comes, or goes, as if a manager did so. */
void hca_port_turn_last_guid(HcaPort *port);
/* Whether data packets are taken; one from the peer makes ARMED ACTIVE. */
bool hca_port_takes_data(HcaPort *port, bool loopback);

/* The port as managers see it. */
HcaNode *hca_port_node(const HcaPort *port);
static inline const HcaNodePort *hca_port_node_port(const HcaPort *port)
{
    return &hca_port_node(port)->port[HCA_PORT_NUMBER];
}

bool hca_port_is_roce(const HcaPort *port);
/* The greatest MTU, an IB code. */
uint8_t hca_port_mtu(const HcaPort *port);
/*
 * What its packets hold now: what a manager has set, or the interface of a RoCE
 * port, by hca_port_set_mtu(), which refuses what is no MTU of the port's.
 */
static inline uint8_t hca_port_active_mtu(const HcaPort *port)
{
    return hca_port_node_port(port)->info.mtu;
}
bool hca_port_set_mtu(HcaPort *port, uint8_t mtu);
/* 0: nothing is at @index. */
uint16_t hca_port_pkey(const HcaPort *port, unsigned index);
/* Whether a packet with @pkey may come to a QP that has that at @index. */
bool hca_port_takes_pkey(const HcaPort *port, unsigned index, uint16_t pkey);
/* Whether QPs may name the key at @index: there is one, or may be one. */
bool hca_port_pkey_index_ok(const HcaPort *port, unsigned index);
/* The first @index that takes it, as QP 1 does. False: none. */
bool hca_port_find_pkey(const HcaPort *port, uint16_t pkey, unsigned *index);
/*
 * The path along which a datagram of QP 0 (@path's smp) or QP 1 is to go, by
 * headers that somebody else has written. False: it has a source or a P_Key that
 * the port has not.
 */
bool hca_port_path_of(const HcaPort *port, const HcaPacket *packet,
                      HcaPath *path);
/* The virtual lane of a service level, 15: none (IBA 7.6.6). */
uint8_t hca_port_vl(const HcaPort *port, uint8_t sl);

/*
 * Whose turn it is at the cable, as hca_vl_arbiter_next(); and the turn is over:
 * what was sent meanwhile is charged, and no turn is free but one that the cable
 * has @blocked.
 */
unsigned hca_port_next_lane(HcaPort *port, uint16_t waiting, unsigned *left);
void hca_port_lane_done(HcaPort *port, bool blocked);

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
HcaParseError hca_port_parse(HcaPort *port, HcaPacket *packet,
                             const uint8_t *frame, size_t len);
/* @loopback: it came from the card itself. */
HcaArrival hca_port_arrival(HcaPort *port, const HcaPacket *packet,
                            bool loopback);

/* Count and trace a received packet that is dropped without an answer. */
void hca_drop(HcaPort *port, const HcaPacket *packet, HcaDropReason reason);

/* Counters are written by the port, and by who hands packets out. */
HcaPortCounters *hca_port_counters(HcaPort *port);

/* state.c: what is saved, in this order, behind the node of hca_port_node(). */
extern const HcaSection hca_port_section, hca_gid_section, hca_mcast_section,
    hca_mcast_chains_section, hca_mcast_entry_section, hca_flow_section;

#endif /* HCA_PORT_H */
