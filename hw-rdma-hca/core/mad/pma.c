/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance management agent (IBA 16.1.3, 16.1.4). Whoever has the ports
 * counts from its start on; a manager that clears a counter moves the place that
 * it is counted from. A counter stays at its limit.
 */
#include "mad_int.h"

#define ALL_PORTS 0xff
#define RESP_TIME 18
#define CLASS_VERSION 1
/* ClassPortInfo's CapabilityMask. */
#define ALL_PORT_SELECT (1u << 8)
#define EXTENDED (1u << 9)
#define XMIT_WAIT (1u << 12)
#define QP1_DROPPED (1u << 15)

#define PORT_SELECT 1
#define SELECT 2
/* Bits of CounterSelect2, behind those of CounterSelect. */
#define SELECT2_XMIT_WAIT 16
#define SELECT2_QP1_DROPPED 17

typedef struct Row {
    uint8_t counter; /* HcaPmaCounter */
    uint8_t byte;
    uint8_t width;  /* bits: 4, 8, 16, 32 or 64 */
    uint8_t shift;  /* of 4 bits */
    uint8_t select; /* bit */
} Row;

static const Row port_counters[] = {
    { HCA_PMA_SYMBOL_ERRORS, 4, 16, 0, 0 },
    { HCA_PMA_LINK_RECOVERIES, 6, 8, 0, 1 },
    { HCA_PMA_LINK_DOWNED, 7, 8, 0, 2 },
    { HCA_PMA_RCV_ERRORS, 8, 16, 0, 3 },
    { HCA_PMA_RCV_REMOTE_ERRORS, 10, 16, 0, 4 },
    { HCA_PMA_RCV_RELAY_ERRORS, 12, 16, 0, 5 },
    { HCA_PMA_XMIT_DISCARDS, 14, 16, 0, 6 },
    { HCA_PMA_XMIT_CONSTRAINT, 16, 8, 0, 7 },
    { HCA_PMA_RCV_CONSTRAINT, 17, 8, 0, 8 },
    { HCA_PMA_INTEGRITY_ERRORS, 19, 4, 4, 9 },
    { HCA_PMA_OVERRUN_ERRORS, 19, 4, 0, 10 },
    { HCA_PMA_QP1_DROPPED, 20, 16, 0, SELECT2_QP1_DROPPED },
    { HCA_PMA_VL15_DROPPED, 22, 16, 0, 11 },
    { HCA_PMA_XMIT_DATA, 24, 32, 0, 12 },
    { HCA_PMA_RCV_DATA, 28, 32, 0, 13 },
    { HCA_PMA_XMIT_PKTS, 32, 32, 0, 14 },
    { HCA_PMA_RCV_PKTS, 36, 32, 0, 15 },
    { HCA_PMA_XMIT_WAIT, 40, 32, 0, SELECT2_XMIT_WAIT },
};

static const Row extended[] = {
    { HCA_PMA_XMIT_DATA, 8, 64, 0, 0 },
    { HCA_PMA_RCV_DATA, 16, 64, 0, 1 },
    { HCA_PMA_XMIT_PKTS, 24, 64, 0, 2 },
    { HCA_PMA_RCV_PKTS, 32, 64, 0, 3 },
    { HCA_PMA_UNICAST_XMIT, 40, 64, 0, 4 },
    { HCA_PMA_UNICAST_RCV, 48, 64, 0, 5 },
    { HCA_PMA_MULTICAST_XMIT, 56, 64, 0, 6 },
    { HCA_PMA_MULTICAST_RCV, 64, 64, 0, 7 },
};

/* The two sets of counters are cleared each by itself. */
typedef struct Set {
    const Row *rows;
    unsigned nrows;
    bool has_select2; /* in byte 18 */
} Set;

static const Set sets[] = {
    { port_counters, G_N_ELEMENTS(port_counters), true },
    { extended, G_N_ELEMENTS(extended), false },
};

static void put_value(uint8_t *data, const Row *row, uint64_t value)
{
    uint64_t limit = row->width == 64 ? UINT64_MAX : (1ull << row->width) - 1;
    uint8_t *at = data + row->byte;

    value = MIN(value, limit);
    if (row->width == 4) {
        *at |= value << row->shift;
        return;
    }
    for (unsigned i = row->width / 8; i--; value >>= 8) {
        at[i] = value;
    }
}

/* A card that was reset counts from 0 again. */
static uint64_t since(uint64_t now, uint64_t then)
{
    return now >= then ? now - then : now;
}

static void add_port(HcaNode *node, unsigned number, unsigned set,
                     uint32_t clear, HcaPmaCounters *sum)
{
    HcaNodePort *port = &node->port[number];
    HcaPmaCounters now = { { 0 } };

    node->ops->counters(node->opaque, number, &now);
    now.value[HCA_PMA_LINK_DOWNED] = port->downs;
    now.value[HCA_PMA_INTEGRITY_ERRORS] = port->integrity_errors;
    for (unsigned i = 0; i < sets[set].nrows; i++) {
        const Row *row = &sets[set].rows[i];
        unsigned n = row->counter;

        if (clear >> row->select & 1) {
            port->cleared[set].value[n] = now.value[n];
        }
        sum->value[n] += since(now.value[n], port->cleared[set].value[n]);
    }
}

static uint32_t selected(const Set *set, const uint8_t *data)
{
    return get_be16(data + SELECT) |
           (set->has_select2 ? (uint32_t)data[18] << SELECT2_XMIT_WAIT : 0);
}

/* The ports that are meant; false: there are none such. */
static bool ports(const HcaNode *node, unsigned in_port, uint8_t select,
                  unsigned *first, unsigned *last)
{
    *first = select;
    *last = select;
    if (node->type == HCA_NODE_CA) {
        return select == in_port;
    }
    if (select == ALL_PORTS) {
        *first = 1;
        *last = node->num_ports;
    }
    return *last <= node->num_ports;
}

static uint16_t counters(HcaNode *node, unsigned in_port, const uint8_t *mad,
                         uint8_t *reply, unsigned set)
{
    bool clears = mad[HCA_MAD_METHOD] == HCA_METHOD_SET;
    const uint8_t *from = mad + HCA_MAD_DATA;
    uint8_t *data = reply + HCA_MAD_DATA;
    uint32_t clear = clears ? selected(&sets[set], from) : 0;
    HcaPmaCounters sum = { { 0 } };
    unsigned first, last;

    memset(data, 0, HCA_MAD_SIZE - HCA_MAD_DATA);
    memcpy(data + PORT_SELECT, from + PORT_SELECT, 3);
    if (!ports(node, in_port, from[PORT_SELECT], &first, &last)) {
        return HCA_MAD_BAD_VALUE;
    }
    for (unsigned port = first; port <= last; port++) {
        add_port(node, port, set, clear, &sum);
    }
    for (unsigned i = 0; i < sets[set].nrows; i++) {
        put_value(data, &sets[set].rows[i],
                  sum.value[sets[set].rows[i].counter]);
    }
    return hca_mad_modifier(mad) ? HCA_MAD_BAD_VALUE : HCA_MAD_OK;
}

static void class_port_info(const HcaNode *node, uint8_t *reply)
{
    uint8_t *data = reply + HCA_MAD_DATA;
    uint16_t all = node->type == HCA_NODE_SWITCH ? ALL_PORT_SELECT : 0;

    memset(data, 0, HCA_MAD_SIZE - HCA_MAD_DATA);
    data[0] = HCA_MAD_VERSION;
    data[1] = CLASS_VERSION;
    put_be16(data + 2, EXTENDED | XMIT_WAIT | QP1_DROPPED | all);
    put_be32(data + 4, RESP_TIME);
}

static uint16_t execute(HcaNode *node, unsigned in_port, const uint8_t *mad,
                        uint8_t *reply)
{
    switch (hca_mad_attribute(mad)) {
    case HCA_ATTR_CLASS_PORT_INFO:
        if (mad[HCA_MAD_METHOD] == HCA_METHOD_SET) {
            return HCA_MAD_BAD_ATTRIBUTE;
        }
        class_port_info(node, reply);
        return hca_mad_modifier(mad) ? HCA_MAD_BAD_VALUE : HCA_MAD_OK;
    case HCA_ATTR_PORT_COUNTERS:
        return counters(node, in_port, mad, reply, 0);
    case HCA_ATTR_PORT_COUNTERS_EXT:
        return counters(node, in_port, mad, reply, 1);
    default:
        return HCA_MAD_BAD_ATTRIBUTE;
    }
}

HcaMadVerdict hca_pma_answer(HcaNode *node, unsigned in_port,
                             const uint8_t *mad, uint8_t *reply)
{
    uint8_t method = mad[HCA_MAD_METHOD];
    uint16_t status;

    if (!hca_mad_is_for_agent(mad) || method == HCA_METHOD_TRAP_REPRESS) {
        return HCA_MAD_DROP;
    }
    node->counters.gmps++;
    memcpy(reply, mad, HCA_MAD_SIZE);
    if (mad[HCA_MAD_CLASS_VERSION] != CLASS_VERSION) {
        status = HCA_MAD_BAD_VERSION;
    } else if (method != HCA_METHOD_GET && method != HCA_METHOD_SET) {
        status = HCA_MAD_BAD_METHOD;
    } else {
        status = execute(node, in_port, mad, reply);
    }
    reply[HCA_MAD_METHOD] = HCA_METHOD_GET_RESP;
    put_be16(reply + HCA_MAD_STATUS, status);
    node->counters.refused += status != HCA_MAD_OK;
    return HCA_MAD_REPLY;
}
