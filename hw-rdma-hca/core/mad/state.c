/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of a node that is a channel adapter. Of what a manager has set each
 * value is one that it may set.
 */
#include "mad_int.h"

static const HcaField info_fields[] = {
    HCA_SAVED(HcaPortInfo, m_key),
    HCA_SAVED(HcaPortInfo, gid_prefix),
    HCA_SAVED(HcaPortInfo, lid),
    HCA_SAVED(HcaPortInfo, sm_lid),
    HCA_SAVED(HcaPortInfo, cap_mask),
    HCA_SAVED(HcaPortInfo, m_key_lease),
    HCA_SAVED(HcaPortInfo, local_port),
    HCA_SAVED(HcaPortInfo, width_enabled),
    HCA_SAVED(HcaPortInfo, width_supported),
    HCA_SAVED(HcaPortInfo, width_active),
    HCA_SAVED(HcaPortInfo, speed_supported),
    HCA_SAVED(HcaPortInfo, speed_active),
    HCA_SAVED(HcaPortInfo, speed_enabled),
    HCA_SAVED(HcaPortInfo, state),
    HCA_SAVED(HcaPortInfo, phys_state),
    HCA_SAVED(HcaPortInfo, down_default),
    HCA_SAVED(HcaPortInfo, m_key_protect),
    HCA_SAVED(HcaPortInfo, lmc),
    HCA_SAVED(HcaPortInfo, mtu),
    HCA_SAVED(HcaPortInfo, mtu_cap),
    HCA_SAVED(HcaPortInfo, sm_sl),
    HCA_SAVED(HcaPortInfo, vl_cap),
    HCA_SAVED(HcaPortInfo, operational_vls),
    HCA_SAVED(HcaPortInfo, vl_high_limit),
    HCA_SAVED(HcaPortInfo, arb_high_cap),
    HCA_SAVED(HcaPortInfo, arb_low_cap),
    HCA_SAVED(HcaPortInfo, vl_stall_count),
    HCA_SAVED(HcaPortInfo, hoq_life),
    HCA_SAVED(HcaPortInfo, enforce_in),
    HCA_SAVED(HcaPortInfo, enforce_out),
    HCA_SAVED(HcaPortInfo, filter_raw_in),
    HCA_SAVED(HcaPortInfo, filter_raw_out),
    HCA_SAVED(HcaPortInfo, m_key_violations),
    HCA_SAVED(HcaPortInfo, p_key_violations),
    HCA_SAVED(HcaPortInfo, q_key_violations),
    HCA_SAVED(HcaPortInfo, guid_cap),
    HCA_SAVED(HcaPortInfo, client_reregister),
    HCA_SAVED(HcaPortInfo, subnet_timeout),
    HCA_SAVED(HcaPortInfo, resp_time),
    HCA_SAVED(HcaPortInfo, local_phy_errors),
    HCA_SAVED(HcaPortInfo, overrun_errors),
};
static const HcaStruct info_struct = HCA_STRUCT(HcaPortInfo, info_fields);

static const HcaField weight_fields[] = {
    HCA_SAVED(HcaVlWeight, vl),
    HCA_SAVED(HcaVlWeight, weight),
};
static const HcaStruct weight_struct = HCA_STRUCT(HcaVlWeight, weight_fields);

static const HcaField pma_fields[] = {
    HCA_SAVED_ARRAY(HcaPmaCounters, value, value[0]),
};
static const HcaStruct pma_struct = HCA_STRUCT(HcaPmaCounters, pma_fields);

static const HcaField port_fields[] = {
    HCA_SAVED_STRUCT(HcaNodePort, info, info_struct),
    HCA_SAVED_ARRAY(HcaNodePort, pkeys, pkeys[0]),
    HCA_SAVED_ARRAY(HcaNodePort, guids, guids[0]),
    HCA_ELSEWHERE(HcaNodePort, sl_to_vl),
    HCA_SAVED_STRUCTS(HcaNodePort, vl_arb, vl_arb[0][0], weight_struct),
    HCA_SAVED(HcaNodePort, led),
    HCA_SAVED(HcaNodePort, lease_end),
    HCA_SAVED(HcaNodePort, phy_errors),
    HCA_SAVED(HcaNodePort, downs),
    HCA_SAVED(HcaNodePort, integrity_errors),
    HCA_SAVED_STRUCTS(HcaNodePort, cleared, cleared[0], pma_struct),
};
static const HcaStruct port_struct = HCA_STRUCT(HcaNodePort, port_fields);

static const HcaField trap_fields[] = {
    HCA_SAVED_ARRAY(HcaTrap, notice, notice[0]),
    HCA_SAVED(HcaTrap, tid),
    HCA_SAVED(HcaTrap, sent),
};
static const HcaStruct trap_struct = HCA_STRUCT(HcaTrap, trap_fields);

static const HcaField node_fields[] = {
    HCA_DERIVED(HcaNode, type),
    HCA_DERIVED(HcaNode, num_ports),
    HCA_DERIVED(HcaNode, system_guid),
    HCA_DERIVED(HcaNode, node_guid),
    HCA_DERIVED(HcaNode, device_id),
    HCA_DERIVED(HcaNode, revision),
    HCA_DERIVED(HcaNode, vendor_id),
    HCA_DERIVED(HcaNode, mtu_cap),
    HCA_DERIVED(HcaNode, vl_cap),
    HCA_DERIVED(HcaNode, width),
    HCA_DERIVED(HcaNode, speeds),
    HCA_DERIVED(HcaNode, cap_mask),
    HCA_SAVED_ARRAY(HcaNode, description, description[0]),
    HCA_ELSEWHERE(HcaNode, port),
    HCA_ANEW(HcaNode, switch_info),
    HCA_ANEW(HcaNode, lft),
    HCA_ANEW(HcaNode, mft),
    HCA_DERIVED(HcaNode, ops),
    HCA_DERIVED(HcaNode, opaque),
    HCA_COUNTED(HcaNode, counters),
    HCA_SAVED_STRUCTS(HcaNode, trap, trap[0], trap_struct),
    HCA_SAVED(HcaNode, ntraps),
    HCA_SAVED(HcaNode, next_tid),
    HCA_SAVED(HcaNode, next_trap),
    HCA_SAVED_ARRAY(HcaNode, notice, notice[0][0]),
    HCA_SAVED(HcaNode, nnotices),
    HCA_SAVED(HcaNode, notice_toggle),
};
static const HcaStruct of_node_struct = HCA_STRUCT(HcaNode, node_fields);

typedef struct State {
    HcaNode node;
    HcaNodePort port;
    uint8_t sl_to_vl[HCA_NUM_SLS];
} State;

static const HcaField state_fields[] = {
    HCA_SAVED_STRUCT(State, node, of_node_struct),
    HCA_SAVED_STRUCT(State, port, port_struct),
    HCA_SAVED_ARRAY(State, sl_to_vl, sl_to_vl[0]),
};
const HcaStruct hca_node_struct = HCA_STRUCT(State, state_fields);

static void save_node(void *room, GArray *records)
{
    HcaNode *node = room;
    HcaNodePort *port = &node->port[hca_node_mgmt_port(node)];
    State *state;

    g_array_set_size(records, 1);
    state = &g_array_index(records, State, 0);
    state->node = *node;
    state->port = *port;
    memcpy(state->sl_to_vl, port->sl_to_vl[0], sizeof(state->sl_to_vl));
}

static bool info_ok(const HcaPortInfo *info)
{
    return info->state >= HCA_PORT_DOWN && info->state <= HCA_PORT_ACTIVE &&
           (info->phys_state <= HCA_PORT_PHYS_DISABLED ||
            info->phys_state == HCA_PORT_PHYS_LINK_UP) &&
           info->phys_state >= HCA_PORT_PHYS_SLEEP && info->lmc <= 7 &&
           info->mtu >= 1 && info->mtu <= 5 && info->mtu_cap >= 1 &&
           info->mtu_cap <= 5 && info->vl_cap <= 5 &&
           info->operational_vls <= 5 && info->sm_sl < HCA_NUM_SLS;
}

static bool lanes_ok(const State *state)
{
    bool ok = true;

    for (unsigned i = 0; i < HCA_NUM_SLS; i++) {
        ok &= state->sl_to_vl[i] <= 15;
    }
    for (unsigned i = 0; i < HCA_VL_ARB_PARTS * HCA_VL_ARB_ENTRIES; i++) {
        ok &= state->port.vl_arb[i / HCA_VL_ARB_ENTRIES][i % HCA_VL_ARB_ENTRIES]
                  .vl <= 15;
    }
    return ok;
}

static bool load_node(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaNode *node = room;
    HcaNodePort *port = &node->port[hca_node_mgmt_port(node)];
    const State *state = records;
    uint64_t guid = port->guids[0];

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    if (!info_ok(&state->port.info) || !lanes_ok(state) ||
        state->node.ntraps > HCA_NODE_TRAPS ||
        state->node.nnotices > HCA_NODE_NOTICES) {
        return hca_state_refuse(error, "no such node");
    }
    hca_struct_take(&of_node_struct, node, &state->node);
    hca_struct_take(&port_struct, port, &state->port);
    port->guids[0] = guid; /* its own, whatever that was elsewhere */
    memcpy(port->sl_to_vl[0], state->sl_to_vl, sizeof(state->sl_to_vl));
    return true;
}

const HcaSection hca_node_section = HCA_SECTION("node", 1, &hca_node_struct,
                                                save_node, load_node);
