/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The node: its life, the state machine of its ports (IBA 7.2.7, 14.2.5.6), and
 * what makes it tell its manager.
 */
#include "../config.h"
#include "mad_int.h"

#define DATA_VLS_OFF 15 /* SLtoVLMappingTable: packets of this SL are dropped */
/* Trap 144: what has changed besides CapabilityMask. */
#define OTHER_LOCAL_CHANGES 1
#define CHANGED_DESCRIPTION 1

/* Trap 259: fields that are there, bits in their order. */
#define KEY_FIELDS 0x03ff
#define KEY_GIDS 0x00c0

/* CapabilityMask (IBA 14.2.5.6). */
#define CAP_NOTICE (1u << 2)
#define CAP_TRAP (1u << 3)
#define CAP_SL_MAPPING (1u << 6)
#define CAP_LED (1u << 9)
#define CAP_SYSTEM_GUID (1u << 11)
#define CAP_SWITCH_PKEY_TRAP (1u << 12)
#define CAP_DR_NOTICE (1u << 21)
#define CAP_MASK_NOTICE (1u << 22)
#define CAP_REREGISTER (1u << 25)
#define CAP_OTHER_CHANGES (1u << 26)
#define CAP_MCAST_FDB_TOP (1u << 30)
#define CAPS                                                                   \
    (CAP_NOTICE | CAP_TRAP | CAP_SL_MAPPING | CAP_LED | CAP_SYSTEM_GUID |      \
     CAP_DR_NOTICE | CAP_MASK_NOTICE | CAP_OTHER_CHANGES)
#define CA_CAPS (CAPS | CAP_REREGISTER)
#define SWITCH_CAPS (CAPS | CAP_SWITCH_PKEY_TRAP | CAP_MCAST_FDB_TOP)

/* Life */

static unsigned num_inputs(const HcaNode *node)
{
    return node->type == HCA_NODE_SWITCH ? node->num_ports + 1 : 1;
}

static void set_text(HcaNode *node, const char *text)
{
    memset(node->description, 0, HCA_NODE_DESC_SIZE);
    memcpy(node->description, text, strnlen(text, HCA_NODE_DESC_SIZE));
}

static void new_ports(HcaNode *node)
{
    node->port = g_new0(HcaNodePort, node->num_ports + 1);
    for (unsigned i = 0; i <= node->num_ports; i++) {
        node->port[i].sl_to_vl = g_malloc0(num_inputs(node) *
                                           sizeof(*node->port[i].sl_to_vl));
        node->port[i].guids[0] = node->node_guid;
    }
}

HcaNode *hca_node_new(const HcaNodeSetup *setup, const HcaNodeOps *ops,
                      void *opaque)
{
    bool is_switch = setup->type == HCA_NODE_SWITCH;
    HcaNode *node = g_new0(HcaNode, 1);

    node->type = setup->type;
    node->num_ports = setup->num_ports;
    node->system_guid = setup->guid;
    node->node_guid = setup->guid;
    node->device_id = setup->device_id;
    node->revision = setup->revision;
    node->vendor_id = setup->vendor_id;
    node->mtu_cap = setup->mtu_cap;
    node->vl_cap = setup->vl_cap;
    node->width = setup->width;
    node->speeds = setup->speeds;
    node->cap_mask = is_switch ? SWITCH_CAPS : CA_CAPS;
    node->ops = ops;
    node->opaque = opaque;
    set_text(node, setup->description);
    new_ports(node);
    if (is_switch) {
        node->lft = g_malloc0(HCA_LFT_SIZE);
        node->mft = g_new0(uint64_t, HCA_MFT_SIZE);
    }
    hca_node_reset(node);
    return node;
}

void hca_node_free(HcaNode *node)
{
    if (!node) {
        return;
    }
    for (unsigned i = 0; i <= node->num_ports; i++) {
        g_free(node->port[i].sl_to_vl);
    }
    g_free(node->port);
    g_free(node->lft);
    g_free(node->mft);
    g_free(node);
}

static void reset_port(HcaNode *node, unsigned number)
{
    HcaNodePort *port = &node->port[number];
    uint8_t(*sl_to_vl)[HCA_NUM_SLS] = port->sl_to_vl;
    uint64_t guid = port->guids[0];

    memset(port, 0, sizeof(*port));
    port->sl_to_vl = sl_to_vl;
    memset(sl_to_vl, 0, num_inputs(node) * sizeof(*sl_to_vl));
    port->guids[0] = guid;
    port->pkeys[0] = HCA_DEFAULT_PKEY;
    hca_port_info_reset(node, number);
}

void hca_node_forget(HcaNode *node, unsigned port)
{
    HcaNodePort old = node->port[port];

    reset_port(node, port);
    node->port[port].info.cap_mask = old.info.cap_mask;
    node->port[port].info.phys_state = old.info.phys_state;
    node->port[port].downs = old.downs;
    node->port[port].integrity_errors = old.integrity_errors;
    memcpy(node->port[port].cleared, old.cleared, sizeof(old.cleared));
    hca_notice_reset(node);
}

void hca_node_reset(HcaNode *node)
{
    for (unsigned i = 0; i <= node->num_ports; i++) {
        reset_port(node, i);
    }
    if (node->type == HCA_NODE_SWITCH) {
        hca_switch_tables_reset(node);
    }
    hca_notice_reset(node);
    memset(&node->counters, 0, sizeof(node->counters));
}

/* Links */

/* Trap 128: the manager of a switch will look which port it was. */
static void tell_link(HcaNode *node)
{
    uint8_t lid[2];
    HcaNotice notice = {
        .number = HCA_TRAP_LINK_STATE,
        .type = HCA_NOTICE_URGENT,
        .details = lid,
        .len = sizeof(lid),
    };

    if (node->type == HCA_NODE_SWITCH) {
        node->switch_info.port_state_change = true;
        put_be16(lid, node->port[0].info.lid);
        hca_notice_raise(node, &notice);
    }
}

/* False: it was down. */
static bool lose(HcaNodePort *port, HcaPortPhysState to)
{
    bool was_up = port->info.state != HCA_PORT_DOWN;

    port->downs += was_up;
    port->info.state = HCA_PORT_DOWN;
    port->info.phys_state = to;
    return was_up;
}

/* Whether the port tries to have a link; one that sleeps is woken by the peer. */
static bool trains(const HcaPortInfo *info)
{
    return info->phys_state != HCA_PORT_PHYS_DISABLED;
}

void hca_node_link(HcaNode *node, unsigned port, bool up)
{
    HcaNodePort *p = &node->port[port];

    if (up == (p->info.state != HCA_PORT_DOWN) || !trains(&p->info)) {
        return; /* no news */
    }
    if (up) {
        p->info.phys_state = HCA_PORT_PHYS_LINK_UP;
        p->info.state = HCA_PORT_INIT;
        p->info.speed_active = hca_node_speed(p->info.speed_enabled);
    } else {
        lose(p, p->info.down_default);
    }
    tell_link(node);
    hca_node_tell(node, port, HCA_CHANGED_STATE);
}

void hca_node_enable(HcaNode *node, unsigned port, bool enable)
{
    HcaNodePort *p = &node->port[port];

    if (!enable) {
        if (lose(p, HCA_PORT_PHYS_DISABLED)) {
            hca_node_tell(node, port, HCA_CHANGED_STATE);
        }
    } else if (p->info.phys_state == HCA_PORT_PHYS_DISABLED) {
        p->info.phys_state = HCA_PORT_PHYS_POLLING;
    }
}

/* What a manager asks for is no news to it: no trap. */
void hca_node_retrain(HcaNode *node, unsigned port, HcaPortPhysState to)
{
    if (lose(&node->port[port], to)) {
        hca_node_tell(node, port, HCA_CHANGED_STATE);
    }
    node->ops->set_link(node->opaque, port, to != HCA_PORT_PHYS_DISABLED);
}

void hca_node_activate(HcaNode *node, unsigned port)
{
    HcaPortInfo *info = &node->port[port].info;

    if (info->state == HCA_PORT_INIT || info->state == HCA_PORT_ARMED) {
        info->state = HCA_PORT_ACTIVE;
        hca_node_tell(node, port, HCA_CHANGED_STATE);
    }
}

static void tell_integrity(HcaNode *node, unsigned port)
{
    uint8_t details[5] = { 0 };
    HcaNotice notice = {
        .number = HCA_TRAP_INTEGRITY,
        .type = HCA_NOTICE_URGENT,
        .details = details,
        .len = sizeof(details),
    };

    put_be16(details + 2, node->port[hca_node_mgmt_port(node)].info.lid);
    details[4] = port;
    hca_notice_raise(node, &notice);
}

/* IBA 7.12.2: good packets make up for bad ones, up to the threshold. */
void hca_node_count_packet(HcaNode *node, unsigned port, bool good)
{
    HcaNodePort *p = &node->port[port];

    if (good) {
        p->phy_errors--;
    } else if (++p->phy_errors > p->info.local_phy_errors) {
        p->phy_errors = 0;
        p->integrity_errors++;
        tell_integrity(node, port);
    }
}

/* Virtual lanes */

unsigned hca_num_vls(uint8_t code)
{
    static const uint8_t vls[] = { 0, 1, 2, 4, 8, 15 };

    return code < G_N_ELEMENTS(vls) ? vls[code] : 0;
}

uint8_t hca_node_vl(const HcaNode *node, unsigned in, unsigned out, uint8_t sl)
{
    const HcaNodePort *port = &node->port[out];
    unsigned input = node->type == HCA_NODE_SWITCH ? in : 0;
    uint8_t vl;

    if (!hca_node_has_link(node, out)) {
        return 0;
    }
    vl = port->sl_to_vl[input][sl];
    return vl < hca_num_vls(port->info.operational_vls) ? vl : DATA_VLS_OFF;
}

/* Keys */

/*
 * Traps 257 to 259: LID1 and LID2, key, SL and QP1, QP2, GID1, GID2, of which
 * the first ones are the source's. @details has the rest.
 */
static void raise_key(HcaNode *node, uint16_t number,
                      const HcaKeyViolation *violation, uint8_t *details)
{
    HcaNotice notice = {
        .number = number,
        .type = HCA_NOTICE_SECURITY,
        .details = details,
        .len = HCA_NOTICE_SIZE - HCA_NOTICE_DETAILS,
    };

    put_be16(details + 2, violation->slid);
    put_be16(details + 4, violation->dlid);
    hca_notice_raise(node, &notice);
}

static void copy_gid(uint8_t *to, const uint8_t *gid)
{
    if (gid) {
        memcpy(to, gid, 16);
    }
}

static void tell_key(HcaNode *node, uint16_t number,
                     const HcaKeyViolation *violation)
{
    uint8_t details[HCA_NOTICE_SIZE - HCA_NOTICE_DETAILS] = { 0 };

    put_be32(details + 6, violation->key);
    put_be32(details + 10, (uint32_t)violation->sl << 28 | violation->src_qp);
    put_be32(details + 14, violation->dest_qp);
    copy_gid(details + 18, violation->sgid);
    copy_gid(details + 34, violation->dgid);
    raise_key(node, number, violation, details);
}

/* Trap 259; its bits say what of it is there. */
static void tell_switch_key(HcaNode *node, unsigned port,
                            const HcaKeyViolation *violation)
{
    uint8_t details[HCA_NOTICE_SIZE - HCA_NOTICE_DETAILS] = { 0 };
    uint16_t valid = violation->sgid ? KEY_FIELDS : KEY_FIELDS & ~KEY_GIDS;

    put_be16(details, valid);
    put_be16(details + 6, violation->key);
    put_be32(details + 8, (uint32_t)violation->sl << 28 | violation->src_qp);
    put_be32(details + 12, violation->dest_qp);
    copy_gid(details + 16, violation->sgid);
    copy_gid(details + 32, violation->dgid);
    put_be16(details + 48, node->port[0].info.lid);
    details[50] = port;
    raise_key(node, HCA_TRAP_SWITCH_BAD_PKEY, violation, details);
}

static void count_violation(uint16_t *violations)
{
    *violations += *violations < UINT16_MAX;
}

void hca_node_bad_pkey(HcaNode *node, unsigned port,
                       const HcaKeyViolation *violation)
{
    if (hca_node_is_end(node, port)) {
        count_violation(&node->port[port].info.p_key_violations);
        tell_key(node, HCA_TRAP_BAD_PKEY, violation);
    } else {
        tell_switch_key(node, port, violation);
    }
}

void hca_node_bad_qkey(HcaNode *node, unsigned port,
                       const HcaKeyViolation *violation)
{
    count_violation(&node->port[port].info.q_key_violations);
    tell_key(node, HCA_TRAP_BAD_QKEY, violation);
}

/* Changes by the host */

static void tell_change(HcaNode *node, unsigned port, uint16_t flags)
{
    const HcaPortInfo *info = &node->port[port].info;
    uint8_t details[14] = { 0 };
    HcaNotice notice = {
        .number = HCA_TRAP_LOCAL_CHANGE,
        .type = HCA_NOTICE_INFORMATIONAL,
        .details = details,
        .len = sizeof(details),
    };

    put_be16(details + 2, info->lid);
    details[5] = flags ? OTHER_LOCAL_CHANGES : 0;
    put_be32(details + 6, info->cap_mask);
    put_be16(details + 10, flags);
    hca_notice_raise(node, &notice);
}

void hca_node_set_capabilities(HcaNode *node, unsigned port, uint32_t mask)
{
    HcaPortInfo *info = &node->port[port].info;

    if (info->cap_mask != mask) {
        info->cap_mask = mask;
        tell_change(node, port, 0);
    }
}

void hca_node_set_description(HcaNode *node, const char *text)
{
    char old[HCA_NODE_DESC_SIZE];

    memcpy(old, node->description, sizeof(old));
    set_text(node, text);
    if (memcmp(old, node->description, sizeof(old))) {
        tell_change(node, hca_node_mgmt_port(node), CHANGED_DESCRIPTION);
    }
}

/* Time */

void hca_node_tick(HcaNode *node)
{
    hca_mkey_tick(node);
    hca_notice_tick(node);
}

int64_t hca_node_deadline(const HcaNode *node)
{
    return MIN(hca_mkey_deadline(node), hca_notice_deadline(node));
}
