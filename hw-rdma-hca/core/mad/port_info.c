/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PortInfo (IBA 14.2.5.6). The table says where its fields lie; a Set is judged
 * field by field, what is valid is taken, and the answer is what there is then.
 */
#include "mad_int.h"

#define PHYS_NO_CHANGE 0
#define STATE_NO_CHANGE 0
#define ALL_WIDTHS 255
#define ALL_SPEEDS 15
/* 4.096 us * 2^18, what managers give; and how fast this agent answers. */
#define SUBNET_TIMEOUT 18
#define RESP_TIME 16
#define ERROR_THRESHOLD 8
#define HOQ_LIFE 18
#define VL_STALL_COUNT 7
#define PORT_MASK 0x7fffffffu /* above it: an option of the manager's */

/* From the most significant bit of byte 0 on. */
typedef struct Field {
    uint16_t bit;
    uint8_t width;
    uint8_t size; /* of the member, bytes */
    uint16_t offset;
} Field;

#define FIELD(byte, high, low, member)                                         \
    {                                                                          \
        .bit = (byte)*8 + 7 - (high), .width = (high) - (low) + 1,             \
        .size = sizeof(((HcaPortInfo *)0)->member),                            \
        .offset = offsetof(HcaPortInfo, member)                                \
    }
#define WHOLE(byte, member)                                                    \
    {                                                                          \
        .bit = (byte)*8, .width = sizeof(((HcaPortInfo *)0)->member) * 8,      \
        .size = sizeof(((HcaPortInfo *)0)->member),                            \
        .offset = offsetof(HcaPortInfo, member)                                \
    }

static const Field fields[] = {
    WHOLE(0, m_key),
    WHOLE(8, gid_prefix),
    WHOLE(16, lid),
    WHOLE(18, sm_lid),
    WHOLE(20, cap_mask),
    WHOLE(26, m_key_lease),
    WHOLE(28, local_port),
    WHOLE(29, width_enabled),
    WHOLE(30, width_supported),
    WHOLE(31, width_active),
    FIELD(32, 7, 4, speed_supported),
    FIELD(32, 3, 0, state),
    FIELD(33, 7, 4, phys_state),
    FIELD(33, 3, 0, down_default),
    FIELD(34, 7, 6, m_key_protect),
    FIELD(34, 2, 0, lmc),
    FIELD(35, 7, 4, speed_active),
    FIELD(35, 3, 0, speed_enabled),
    FIELD(36, 7, 4, mtu),
    FIELD(36, 3, 0, sm_sl),
    FIELD(37, 7, 4, vl_cap),
    WHOLE(38, vl_high_limit),
    WHOLE(39, arb_high_cap),
    WHOLE(40, arb_low_cap),
    FIELD(41, 3, 0, mtu_cap),
    FIELD(42, 7, 5, vl_stall_count),
    FIELD(42, 4, 0, hoq_life),
    FIELD(43, 7, 4, operational_vls),
    FIELD(43, 3, 3, enforce_in),
    FIELD(43, 2, 2, enforce_out),
    FIELD(43, 1, 1, filter_raw_in),
    FIELD(43, 0, 0, filter_raw_out),
    WHOLE(44, m_key_violations),
    WHOLE(46, p_key_violations),
    WHOLE(48, q_key_violations),
    WHOLE(50, guid_cap),
    FIELD(51, 7, 7, client_reregister),
    FIELD(51, 4, 0, subnet_timeout),
    FIELD(52, 4, 0, resp_time),
    FIELD(53, 7, 4, local_phy_errors),
    FIELD(53, 3, 0, overrun_errors),
};

static uint64_t get_member(const HcaPortInfo *info, const Field *field)
{
    const void *at = (const char *)info + field->offset;

    switch (field->size) {
    case 1:
        return *(const uint8_t *)at;
    case 2:
        return *(const uint16_t *)at;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static void set_member(HcaPortInfo *info, const Field *field, uint64_t value)
{
    void *at = (char *)info + field->offset;

    switch (field->size) {
    case 1:
        *(uint8_t *)at = value;
        break;
    case 2:
        *(uint16_t *)at = value;
        break;
    case 4:
        *(uint32_t *)at = value;
        break;
    default:
        *(uint64_t *)at = value;
        break;
    }
}

/* A field lies in one byte, or is of whole ones. */
static uint64_t get_field(const uint8_t *data, const Field *field)
{
    const uint8_t *at = data + field->bit / 8;
    uint64_t value = 0;

    if (field->width < 8) {
        return at[0] >> (8 - field->bit % 8 - field->width) &
               ((1u << field->width) - 1);
    }
    for (unsigned i = 0; i < field->width / 8; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

static void put_field(uint8_t *data, const Field *field, uint64_t value)
{
    uint8_t *at = data + field->bit / 8;

    if (field->width < 8) {
        at[0] |= (value & ((1u << field->width) - 1))
                 << (8 - field->bit % 8 - field->width);
        return;
    }
    for (unsigned i = field->width / 8; i--; value >>= 8) {
        at[i] = value;
    }
}

static void decode(const uint8_t *data, HcaPortInfo *info)
{
    memset(info, 0, sizeof(*info));
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        set_member(info, &fields[i], get_field(data, &fields[i]));
    }
}

static void encode(const HcaPortInfo *info, uint8_t *data)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        put_field(data, &fields[i], get_member(info, &fields[i]));
    }
}

/* Set */

/* What is not a value changes nothing, and is told. */
typedef struct Change {
    HcaPortInfo *info;
    const HcaPortInfo *to;
    uint16_t status;
    unsigned changed; /* HCA_CHANGED_* */
} Change;

static void judge(Change *change, bool good)
{
    if (!good) {
        change->status = HCA_MAD_BAD_VALUE;
    }
}

static void set_lid(Change *change, uint16_t *lid, uint16_t to, unsigned what)
{
    bool good = to && to < HCA_LID_FIRST_MULTICAST;

    judge(change, good);
    if (good && *lid != to) {
        *lid = to;
        change->changed |= what;
    }
}

static void set_byte(Change *change, uint8_t *byte, uint8_t to, unsigned what)
{
    if (*byte != to) {
        *byte = to;
        change->changed |= what;
    }
}

/* A counter of violations is reset by 0, and by nothing else changed. */
static void clear_violations(uint16_t *violations, uint16_t to)
{
    if (!to) {
        *violations = 0;
    }
}

/* What an end port has: who it is, and who its manager. */
static void set_end(const HcaNode *node, Change *change)
{
    HcaPortInfo *info = change->info;
    const HcaPortInfo *to = change->to;

    info->m_key = to->m_key;
    info->m_key_lease = to->m_key_lease;
    info->m_key_protect = to->m_key_protect;
    if (info->gid_prefix != to->gid_prefix) {
        info->gid_prefix = to->gid_prefix;
        change->changed |= HCA_CHANGED_GIDS;
    }
    set_lid(change, &info->lid, to->lid, HCA_CHANGED_LID);
    set_lid(change, &info->sm_lid, to->sm_lid, HCA_CHANGED_SM);
    set_byte(change, &info->sm_sl, to->sm_sl, HCA_CHANGED_SM);
    if (node->type == HCA_NODE_CA) {
        set_byte(change, &info->lmc, to->lmc, HCA_CHANGED_LID);
    }
    info->subnet_timeout = to->subnet_timeout;
    clear_violations(&info->m_key_violations, to->m_key_violations);
    clear_violations(&info->p_key_violations, to->p_key_violations);
    clear_violations(&info->q_key_violations, to->q_key_violations);
    if (to->client_reregister) {
        change->changed |= HCA_CHANGED_REREGISTER;
    }
}

/* 0 changes nothing, @all means all that there are. */
static void set_enabled(Change *change, uint8_t *enabled, uint8_t to,
                        uint8_t supported, uint8_t all)
{
    if (to == all) {
        to = supported;
    }
    judge(change, !(to & ~supported));
    if (to && !(to & ~supported)) {
        *enabled = to;
    }
}

static void set_range(Change *change, uint8_t *field, uint8_t to, uint8_t least,
                      uint8_t most)
{
    bool good = to >= least && to <= most;

    judge(change, good);
    if (good) {
        *field = to;
    }
}

/* What a port with a link has. */
static void set_link(const HcaNode *node, Change *change)
{
    HcaPortInfo *info = change->info;
    const HcaPortInfo *to = change->to;

    set_enabled(change, &info->width_enabled, to->width_enabled,
                info->width_supported, ALL_WIDTHS);
    set_enabled(change, &info->speed_enabled, to->speed_enabled,
                info->speed_supported, ALL_SPEEDS);
    set_range(change, &info->mtu, to->mtu, 1, info->mtu_cap);
    if (to->operational_vls) {
        set_range(change, &info->operational_vls, to->operational_vls, 1,
                  info->vl_cap);
    }
    if (to->down_default) {
        set_range(change, &info->down_default, to->down_default,
                  HCA_PORT_PHYS_SLEEP, HCA_PORT_PHYS_POLLING);
    }
    info->vl_high_limit = to->vl_high_limit;
    info->local_phy_errors = to->local_phy_errors;
    info->overrun_errors = to->overrun_errors;
    if (node->type == HCA_NODE_SWITCH) {
        info->vl_stall_count = to->vl_stall_count;
        info->hoq_life = to->hoq_life;
        info->enforce_in = to->enforce_in;
        info->enforce_out = to->enforce_out;
        info->filter_raw_in = to->filter_raw_in;
        info->filter_raw_out = to->filter_raw_out;
    }
}

/*
 * From which states (bits) a manager may go to Armed and to Active. To be told
 * to stay does no harm.
 */
static const uint8_t may_go[] = {
    [HCA_PORT_ARMED] = 1u << HCA_PORT_INIT | 1u << HCA_PORT_ARMED |
                       1u << HCA_PORT_ACTIVE,
    [HCA_PORT_ACTIVE] = 1u << HCA_PORT_ARMED | 1u << HCA_PORT_ACTIVE,
};

static void set_state(Change *change)
{
    uint8_t to = change->to->state;
    bool good = to < G_N_ELEMENTS(may_go) &&
                (may_go[to] >> change->info->state & 1);

    judge(change, good);
    if (good) {
        set_byte(change, &change->info->state, to, HCA_CHANGED_STATE);
    }
}

/* PortState and PortPhysicalState, whose changes are commands. */
static void command(HcaNode *node, unsigned number, Change *change)
{
    uint8_t state = change->to->state;
    uint8_t phys = change->to->phys_state;

    if (phys > HCA_PORT_PHYS_DISABLED ||
        (phys != PHYS_NO_CHANGE && state > HCA_PORT_DOWN)) {
        judge(change, false);
    } else if (phys != PHYS_NO_CHANGE) {
        hca_node_retrain(node, number, phys);
    } else if (state == HCA_PORT_DOWN) {
        if (change->info->state != HCA_PORT_DOWN) {
            hca_node_retrain(node, number, change->info->down_default);
        }
    } else if (state != STATE_NO_CHANGE) {
        set_state(change);
    }
}

static uint16_t set(HcaNode *node, unsigned number, const HcaPortInfo *to)
{
    Change change = { .info = &node->port[number].info, .to = to };

    if (hca_node_is_end(node, number)) {
        set_end(node, &change);
    }
    if (hca_node_has_link(node, number)) {
        set_link(node, &change);
        command(node, number, &change);
    }
    hca_node_tell(node, number, change.changed);
    return change.status;
}

uint16_t hca_sma_port_info(HcaNode *node, HcaSmp *smp)
{
    unsigned number = smp->modifier & PORT_MASK;
    uint16_t status = HCA_MAD_OK;
    HcaPortInfo to;
    HcaPortInfo shown;

    decode(smp->data, &to);
    if (node->type == HCA_NODE_CA && number == 0) {
        number = smp->in_port;
    }
    if (number > node->num_ports) {
        return HCA_MAD_BAD_VALUE;
    }
    /* A port of a CA is set by its own link alone. */
    if (smp->set && (node->type == HCA_NODE_SWITCH || number == smp->in_port)) {
        status = set(node, number, &to);
    }
    shown = node->port[number].info;
    shown.local_port = smp->in_port;
    shown.client_reregister = smp->set && hca_node_is_end(node, number) &&
                              to.client_reregister;
    encode(&shown, smp->answer);
    return status;
}

/* Reset */

static void reset_end(const HcaNode *node, HcaPortInfo *info)
{
    info->gid_prefix = HCA_DEFAULT_GID_PREFIX;
    info->cap_mask = node->cap_mask;
    info->guid_cap = node->type == HCA_NODE_CA ? HCA_NODE_GUIDS : 1;
    info->subnet_timeout = SUBNET_TIMEOUT;
    info->resp_time = RESP_TIME;
}

static void reset_link(const HcaNode *node, HcaPortInfo *info)
{
    info->state = HCA_PORT_DOWN;
    info->phys_state = HCA_PORT_PHYS_POLLING;
    info->mtu = node->mtu_cap;
    info->vl_cap = node->vl_cap;
    info->operational_vls = node->vl_cap;
    info->arb_high_cap = HCA_VL_ARB_ENTRIES;
    info->arb_low_cap = HCA_VL_ARB_ENTRIES;
    info->local_phy_errors = ERROR_THRESHOLD;
    info->overrun_errors = ERROR_THRESHOLD;
    if (node->type == HCA_NODE_SWITCH) {
        info->hoq_life = HOQ_LIFE;
        info->vl_stall_count = VL_STALL_COUNT;
    }
}

/* Base port 0 has no link, and shows that it can always be reached. */
void hca_port_info_reset(HcaNode *node, unsigned port)
{
    HcaPortInfo *info = &node->port[port].info;

    *info = (HcaPortInfo) {
        .width_enabled = node->width,
        .width_supported = node->width,
        .width_active = node->width,
        .speed_enabled = node->speeds,
        .speed_supported = node->speeds,
        .speed_active = hca_node_speed(node->speeds),
        .state = HCA_PORT_ACTIVE,
        .phys_state = HCA_PORT_PHYS_LINK_UP,
        .down_default = HCA_PORT_PHYS_POLLING,
        .mtu_cap = node->mtu_cap,
    };
    if (hca_node_is_end(node, port)) {
        reset_end(node, info);
    }
    if (hca_node_has_link(node, port)) {
        reset_link(node, info);
    }
}
