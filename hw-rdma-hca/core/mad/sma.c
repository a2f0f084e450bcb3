/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subnet management agent: the table of its attributes, the two that are
 * only read, and the M_Key that protects them (IBA 14.2.4).
 */
#include "mad_int.h"

#define NS_PER_SECOND 1000000000ll
/* NodeInfo (IBA 14.2.5.3). */
#define CLASS_VERSION 1

static uint16_t node_desc(HcaNode *node, HcaSmp *smp)
{
    memcpy(smp->answer, node->description, HCA_NODE_DESC_SIZE);
    return HCA_MAD_OK;
}

static uint64_t port_guid(const HcaNode *node, unsigned in_port)
{
    return node->type == HCA_NODE_SWITCH ? node->node_guid
                                         : node->port[in_port].guids[0];
}

static uint16_t node_info(HcaNode *node, HcaSmp *smp)
{
    uint8_t *p = smp->answer;

    p[0] = HCA_MAD_VERSION;
    p[1] = CLASS_VERSION;
    p[2] = node->type;
    p[3] = node->num_ports;
    put_be64(p + 4, node->system_guid);
    put_be64(p + 12, node->node_guid);
    put_be64(p + 20, port_guid(node, smp->in_port));
    put_be16(p + 28, HCA_NODE_PKEYS);
    put_be16(p + 30, node->device_id);
    put_be32(p + 32, node->revision);
    p[36] = smp->in_port;
    put_be24(p + 37, node->vendor_id);
    return HCA_MAD_OK;
}

#define CA (1u << HCA_NODE_CA)
#define SWITCH (1u << HCA_NODE_SWITCH)

typedef struct Attribute {
    uint16_t number;
    uint8_t nodes; /* that have it: bits */
    bool settable;
    bool plain; /* its modifier is 0 */
    HcaSmaFn *fn;
} Attribute;

/*
 * SMInfo is a manager's, who is not here. Of others that the specification has
 * nothing is to be said (RandomForwardingTable, VendorDiag, PortInfoExtended).
 */
static const Attribute attributes[] = {
    { HCA_ATTR_NOTICE, CA | SWITCH, true, true, hca_sma_notice },
    { HCA_ATTR_NODE_DESC, CA | SWITCH, false, true, node_desc },
    { HCA_ATTR_NODE_INFO, CA | SWITCH, false, true, node_info },
    { HCA_ATTR_SWITCH_INFO, SWITCH, true, true, hca_sma_switch_info },
    { HCA_ATTR_GUID_INFO, CA | SWITCH, true, false, hca_sma_guids },
    { HCA_ATTR_PORT_INFO, CA | SWITCH, true, false, hca_sma_port_info },
    { HCA_ATTR_PKEY_TABLE, CA | SWITCH, true, false, hca_sma_pkeys },
    { HCA_ATTR_SL_TO_VL, CA | SWITCH, true, false, hca_sma_sl_to_vl },
    { HCA_ATTR_VL_ARB, CA | SWITCH, true, false, hca_sma_vl_arb },
    { HCA_ATTR_LINEAR_FDB, SWITCH, true, false, hca_sma_lft },
    { HCA_ATTR_MCAST_FDB, SWITCH, true, false, hca_sma_mft },
    { HCA_ATTR_LED_INFO, CA | SWITCH, true, false, hca_sma_led },
};

static const Attribute *find(const HcaNode *node, const uint8_t *mad)
{
    bool set = mad[HCA_MAD_METHOD] == HCA_METHOD_SET;

    for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
        const Attribute *attribute = &attributes[i];

        if (attribute->number == hca_mad_attribute(mad) &&
            (attribute->nodes >> node->type & 1)) {
            return attribute->settable || !set ? attribute : NULL;
        }
    }
    return NULL;
}

/* M_Key */

/* The port whose key counts: of a switch there is one. */
static HcaNodePort *key_port(HcaNode *node, unsigned in_port)
{
    return &node->port[node->type == HCA_NODE_SWITCH ? 0 : in_port];
}

/* Trap 256: what was tried, and the way that it came. */
static void tell_bad_key(HcaNode *node, const HcaNodePort *port,
                         const uint8_t *mad)
{
    uint8_t details[54] = { 0 };
    HcaNotice notice = {
        .number = HCA_TRAP_BAD_MKEY,
        .type = HCA_NOTICE_SECURITY,
        .details = details,
        .len = sizeof(details),
    };
    unsigned hops = mad[HCA_SMP_HOP_COUNT];

    put_be16(details + 2, port->info.lid);
    put_be16(details + 4, get_be16(mad + HCA_SMP_DR_SLID));
    details[6] = mad[HCA_MAD_METHOD];
    memcpy(details + 8, mad + HCA_MAD_ATTRIBUTE, 2);
    memcpy(details + 10, mad + HCA_MAD_MODIFIER, 4);
    memcpy(details + 14, mad + HCA_SMP_MKEY, 8);
    if (mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED) {
        bool truncated = hops > 30;

        hops = MIN(hops, 30);
        details[23] = 0x80 | truncated << 6 | hops;
        memcpy(details + 24, mad + HCA_SMP_RETURN_PATH + 1, hops);
    }
    hca_notice_raise(node, &notice);
}

static void violate(HcaNode *node, HcaNodePort *port, const uint8_t *mad)
{
    HcaPortInfo *info = &port->info;

    node->counters.mkey_violations++;
    info->m_key_violations += info->m_key_violations < UINT16_MAX;
    if (info->m_key_lease && !port->lease_end) {
        port->lease_end = hca_node_now(node) +
                          info->m_key_lease * NS_PER_SECOND;
    }
    tell_bad_key(node, port, mad);
}

/* Table 144 of the specification: what a wrong key may do. */
static bool may_without_key(const HcaPortInfo *info, uint8_t method)
{
    switch (method) {
    case HCA_METHOD_GET:
        return info->m_key_protect < 2;
    case HCA_METHOD_SET:
    case HCA_METHOD_TRAP_REPRESS:
        return false;
    default:
        return true;
    }
}

/* Whether an SMP with this key may do that (IBA 14.2.4.3). */
static bool key_allows(HcaNode *node, unsigned in_port, const uint8_t *mad)
{
    HcaNodePort *port = key_port(node, in_port);
    uint64_t key = port->info.m_key;

    if (!key) {
        return true;
    }
    if (key == get_be64(mad + HCA_SMP_MKEY)) {
        port->lease_end = 0;
        return true;
    }
    if (may_without_key(&port->info, mad[HCA_MAD_METHOD])) {
        return true;
    }
    violate(node, port, mad);
    return false;
}

/* A manager that has lost its key may have it back when the lease has ended. */
void hca_mkey_tick(HcaNode *node)
{
    HcaNodePort *port = &node->port[hca_node_mgmt_port(node)];

    if (port->lease_end && hca_node_now(node) >= port->lease_end) {
        port->lease_end = 0;
        port->info.m_key_protect = 0;
    }
}

int64_t hca_mkey_deadline(const HcaNode *node)
{
    int64_t end = node->port[hca_node_mgmt_port(node)].lease_end;

    return end ? end : INT64_MAX;
}

/* Requests */

static uint16_t execute(HcaNode *node, unsigned in_port, const uint8_t *mad,
                        uint8_t *reply)
{
    const Attribute *attribute = find(node, mad);
    HcaSmp smp = {
        .in_port = in_port,
        .set = mad[HCA_MAD_METHOD] == HCA_METHOD_SET,
        .modifier = hca_mad_modifier(mad),
        .data = mad + HCA_MAD_DATA,
        .answer = reply + HCA_MAD_DATA,
    };

    if (!attribute) {
        return HCA_MAD_BAD_ATTRIBUTE;
    }
    memset(smp.answer, 0, HCA_SMP_DATA_SIZE);
    if (attribute->plain && smp.modifier) {
        smp.set = false;
        attribute->fn(node, &smp);
        return HCA_MAD_BAD_VALUE;
    }
    return attribute->fn(node, &smp);
}

/*
 * What a Get must not show to who does not have the key (protect bits 1). A Set
 * that has just changed it shows the new one.
 */
static void hide_key(HcaNode *node, unsigned in_port, const uint8_t *mad,
                     uint8_t *reply)
{
    const HcaPortInfo *info = &key_port(node, in_port)->info;

    if (mad[HCA_MAD_METHOD] == HCA_METHOD_GET &&
        hca_mad_attribute(mad) == HCA_ATTR_PORT_INFO && info->m_key_protect &&
        info->m_key != get_be64(mad + HCA_SMP_MKEY)) {
        memset(reply + HCA_MAD_DATA, 0, sizeof(info->m_key));
    }
}

static void answer(HcaNode *node, unsigned in_port, bool local,
                   const uint8_t *mad, uint8_t *reply)
{
    bool directed = mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED;
    uint16_t status;

    memcpy(reply, mad, HCA_MAD_SIZE);
    if (mad[HCA_MAD_CLASS_VERSION] != CLASS_VERSION) {
        status = HCA_MAD_BAD_VERSION;
    } else if (mad[HCA_MAD_METHOD] != HCA_METHOD_GET &&
               mad[HCA_MAD_METHOD] != HCA_METHOD_SET) {
        status = HCA_MAD_BAD_METHOD;
    } else {
        status = execute(node, in_port, mad, reply);
    }
    if (!local) {
        hide_key(node, in_port, mad, reply);
    }
    reply[HCA_MAD_METHOD] = HCA_METHOD_GET_RESP;
    put_be16(reply + HCA_MAD_STATUS,
             status | (directed ? HCA_SMP_DIRECTION : 0));
    node->counters.refused += status != HCA_MAD_OK;
}

HcaMadVerdict hca_sma_answer(HcaNode *node, unsigned in_port, bool local,
                             const uint8_t *mad, uint8_t *reply)
{
    if (!hca_mad_is_for_agent(mad)) {
        return HCA_MAD_DROP;
    }
    node->counters.smps++;
    if (!local && !key_allows(node, in_port, mad)) {
        return HCA_MAD_DROP;
    }
    if (mad[HCA_MAD_METHOD] == HCA_METHOD_TRAP_REPRESS) {
        hca_notice_repress(node, mad);
        return HCA_MAD_SILENT;
    }
    answer(node, in_port, local, mad, reply);
    return HCA_MAD_REPLY;
}
