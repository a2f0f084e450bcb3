/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node alone (mad/node.h): a test is its ports' links, its clock, and the
 * manager that asks its agents.
 */
#ifndef LIB_MAD_H
#define LIB_MAD_H

#include <glib.h>

#include "../mad/node.h"

#define MAD_MAX_PORTS 40
/* The port that a request to a node comes in by, unless a test has another. */
#define MAD_IN_PORT 1
#define MAD_GUID UINT64_C(0x0002c90300a1b2c3)
#define MAD_DEVICE_ID 0x1234
#define MAD_REVISION 0x56789abcu
#define MAD_VENDOR_ID 0xdecadeu
#define MAD_DESCRIPTION "a node in a test"
#define MAD_SWITCH_PORTS 20
/* Status (IBA 13.4.7). */
#define MAD_OK 0x0000
#define MAD_BAD_VERSION 0x0004
#define MAD_BAD_METHOD 0x0008
#define MAD_BAD_ATTRIBUTE 0x000c
#define MAD_BAD_VALUE 0x001c
#define MAD_MS INT64_C(1000000)
#define MAD_S INT64_C(1000000000)

/* An SMP that the node has sent of its own. */
typedef struct MadSent {
    uint16_t lid;
    uint8_t sl;
    int64_t time;
    uint8_t mad[HCA_MAD_SIZE];
} MadSent;

/* What has become of a port since mad_forget(). */
typedef struct MadPort {
    unsigned changed;       /* HCA_CHANGED_*, all of them */
    unsigned tells;         /* times that something was told */
    HcaNodePort seen;       /* the port when it was told last */
    unsigned trains, stops; /* of set_link() */
    HcaPmaCounters counters;
} MadPort;

typedef struct MadBench {
    HcaNode *node;
    int64_t now;
    bool no_way;  /* SMPs of the node's own cannot be sent */
    bool no_peer; /* a link that is trained stays down */
    GQueue sent;  /* MadSent */
    MadPort port[MAD_MAX_PORTS + 1];
    uint8_t class;  /* of requests: HCA_CLASS_SUBN_LID */
    uint64_t m_key; /* of requests */
    bool local;     /* they are the host's own */
    uint64_t tid;   /* of the last one */
    uint8_t mad[HCA_MAD_SIZE];
    uint8_t reply[HCA_MAD_SIZE];
    uint8_t look[HCA_MAD_SIZE];
} MadBench;

/* A CA of one port, or a switch of MAD_SWITCH_PORTS; all links are down. */
MadBench *mad_bench_new(HcaNodeType type);
MadBench *mad_bench_new_ports(HcaNodeType type, unsigned num_ports);
void mad_bench_free(MadBench *b);
void mad_forget(MadBench *b);
/* What was told of @port is this, and nothing of another; forget it. */
void mad_expect_changed(MadBench *b, unsigned port, unsigned changed);

static inline bool mad_is_switch(const MadBench *b)
{
    return b->node->type == HCA_NODE_SWITCH;
}

/* Begin a request; its 64 bytes of data, zero. */
uint8_t *mad_request(MadBench *b, uint8_t method, uint16_t attribute,
                     uint32_t modifier);
/* Have it answered, which it is; its status, without D. */
uint16_t mad_answer(MadBench *b, unsigned in_port);
/* It is not: HCA_MAD_SILENT or HCA_MAD_DROP. */
void mad_unanswered(MadBench *b, unsigned in_port, HcaMadVerdict verdict);
/* The data of the answer. */
static inline const uint8_t *mad_data(const MadBench *b)
{
    return b->reply + 64;
}

/* A Get that is answered well; its data. A Set of @data. */
const uint8_t *mad_get(MadBench *b, uint16_t attribute, uint32_t modifier);
uint16_t mad_set(MadBench *b, uint16_t attribute, uint32_t modifier,
                 const void *data);

/* The same Get, by the host itself: it needs no key, and leaves no trace. */
const uint8_t *mad_look(MadBench *b, uint16_t attribute, uint32_t modifier);

/* Answered with @status; the Set, at random, changes nothing. */
void mad_get_refused(MadBench *b, uint16_t attribute, uint32_t modifier,
                     uint16_t status);
void mad_set_refused(MadBench *b, uint16_t attribute, uint32_t modifier,
                     uint16_t status);

/* PortInfo of a port, as it is; a Set of one that was changed, well. */
void mad_port_info(MadBench *b, unsigned port, uint8_t info[64]);
void mad_set_port_info(MadBench *b, unsigned port, const uint8_t info[64]);
/* One to be set: as it is, with LIDs if the port has such, no state. */
void mad_good_info(MadBench *b, unsigned port, uint8_t info[64]);
/* A field of an attribute: @high to @low of byte @byte. */
uint8_t mad_bits(const uint8_t *data, unsigned byte, unsigned high,
                 unsigned low);
void mad_put_bits(uint8_t *data, unsigned byte, unsigned high, unsigned low,
                  uint8_t value);

/* What a manager does first: LID, its own LID, ACTIVE. */
void mad_configure(MadBench *b, uint16_t lid, uint16_t sm_lid);
/* PortState 14.2.5.6 of @port, as PortInfo shows it; PortPhysicalState. */
uint8_t mad_state(MadBench *b, unsigned port);
uint8_t mad_phys_state(MadBench *b, unsigned port);

/* Let time pass, each deadline in its turn. */
void mad_sleep(MadBench *b, int64_t ns);
/* The next SMP that was sent, which is a trap; g_free() it. */
MadSent *mad_next_trap(MadBench *b, unsigned number);
void mad_expect_quiet(MadBench *b);
void mad_clear_sent(MadBench *b);
/* TrapRepress of @trap. */
void mad_repress(MadBench *b, const MadSent *trap);

/* Maps of SLs to VLs that a port has: one for each that packets come in by. */
static inline unsigned mad_inputs(const HcaNode *node)
{
    return node->type == HCA_NODE_SWITCH ? node->num_ports + 1u : 1;
}

/*
 * All that managers can read of @node, NodeInfo to LedInfo, but for violations:
 * a status and 64 bytes each.
 */
GByteArray *mad_dump(HcaNode *node);

#endif /* LIB_MAD_H */
