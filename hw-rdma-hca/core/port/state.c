/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is saved of the port; its node has a section of its own. */
#include <string.h>

#include "../verbs.h"
#include "port_int.h"

#define ARBITER_ENTRIES (2 * HCA_VL_ARB_ENTRIES)

static const HcaField vl_table_fields[] = {
    HCA_SAVED(HcaVlTable, entry),
    HCA_SAVED(HcaVlTable, left),
};
static const HcaStruct vl_table_struct = HCA_STRUCT(HcaVlTable,
                                                    vl_table_fields);

static const HcaField arbiter_fields[] = {
    HCA_SAVED_STRUCT(HcaVlArbiter, low, vl_table_struct),
    HCA_SAVED_STRUCT(HcaVlArbiter, high, vl_table_struct),
    HCA_ELSEWHERE(HcaVlArbiter, turn),
    HCA_SAVED(HcaVlArbiter, limited),
    HCA_SAVED(HcaVlArbiter, high_left),
    HCA_SAVED(HcaVlArbiter, last),
};
static const HcaStruct arbiter_struct = HCA_STRUCT(HcaVlArbiter,
                                                   arbiter_fields);

static const HcaField port_fields[] = {
    HCA_DERIVED(HcaPort, config),
    HCA_DERIVED(HcaPort, link),
    HCA_DERIVED(HcaPort, host),
    HCA_DERIVED(HcaPort, addressing),
    HCA_SAVED(HcaPort, enabled),
    HCA_SAVED(HcaPort, managed),
    HCA_ELSEWHERE(HcaPort, node),
    HCA_SAVED(HcaPort, told),
    HCA_SAVED(HcaPort, fell),
    HCA_SAVED(HcaPort, downs),
    HCA_SAVED(HcaPort, limited),
    HCA_SAVED(HcaPort, changes),
    HCA_SAVED(HcaPort, disable_at),
    HCA_SAVED(HcaPort, mad_psn),
    HCA_SAVED_STRUCT(HcaPort, arbiter, arbiter_struct),
    HCA_SAVED(HcaPort, lane_sent),
    HCA_ELSEWHERE(HcaPort, gids),
    HCA_ELSEWHERE(HcaPort, mcast),
    HCA_ELSEWHERE(HcaPort, chains),
    HCA_ELSEWHERE(HcaPort, flows),
    HCA_COUNTED(HcaPort, counters),
};
static const HcaStruct port_struct = HCA_STRUCT(HcaPort, port_fields);

/* Whose turn it is. */
enum {
    TURN_NONE,
    TURN_LOW,
    TURN_HIGH
};

typedef struct State {
    HcaPort port;
    uint8_t turn;
} State;

static const HcaField state_fields[] = {
    HCA_SAVED_STRUCT(State, port, port_struct),
    HCA_SAVED(State, turn),
};
static const HcaStruct state_struct = HCA_STRUCT(State, state_fields);

static void save_port(void *room, GArray *records)
{
    const HcaPort *port = room;
    State *state;

    g_array_set_size(records, 1);
    state = &g_array_index(records, State, 0);
    hca_struct_take(&port_struct, &state->port, port);
    if (port->arbiter.turn) {
        state->turn = port->arbiter.turn == &port->arbiter.low ? TURN_LOW
                                                               : TURN_HIGH;
    }
}

/* Of the peer, or as the options say, which a new port has taken. */
static bool managed_ok(const HcaPort *port, const State *state)
{
    return state->port.managed == port->managed ||
           (!hca_port_is_roce(port) &&
            port->config->managed == HCA_MANAGED_AUTO);
}

static bool port_ok(const HcaPort *port, const State *state)
{
    const HcaVlArbiter *arbiter = &state->port.arbiter;

    return managed_ok(port, state) && state->turn <= TURN_HIGH &&
           state->port.told >= HCA_PORT_DOWN &&
           state->port.told <= HCA_PORT_ACTIVE &&
           arbiter->low.entry < ARBITER_ENTRIES &&
           arbiter->high.entry < ARBITER_ENTRIES && arbiter->last <= 15;
}

static bool load_port(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaPort *port = room;
    HcaVlArbiter *arbiter = &port->arbiter;
    const State *state = records;

    if (n != 1 || !port_ok(port, state)) {
        return hca_state_refuse(error, "no such port");
    }
    hca_struct_take(&port_struct, port, &state->port);
    arbiter->turn = state->turn == TURN_LOW    ? &arbiter->low
                    : state->turn == TURN_HIGH ? &arbiter->high
                                               : NULL;
    if (!hca_port_is_roce(port)) {
        hca_gid_update(port);
    }
    return true;
}

const HcaSection hca_port_section = HCA_SECTION("port", 1, &state_struct,
                                                save_port, load_port);

/* GIDs of a RoCE port: an InfiniBand port's are made of its node's GUIDs */

typedef struct Gid {
    uint16_t index;
    HcaGidEntry entry;
} Gid;

static const HcaField entry_fields[] = {
    HCA_SAVED_ARRAY(HcaGidEntry, gid.raw, gid.raw[0]),
    HCA_SAVED(HcaGidEntry, valid),
    HCA_SAVED(HcaGidEntry, has_vlan),
    HCA_SAVED(HcaGidEntry, vlan),
    HCA_SAVED_ARRAY(HcaGidEntry, mac, mac[0]),
};
static const HcaStruct entry_struct = HCA_STRUCT(HcaGidEntry, entry_fields);

static const HcaField gids_fields[] = {
    HCA_DERIVED(HcaGidTable, end),
    HCA_ELSEWHERE(HcaGidTable, entry),
};
static const HcaStruct gids_struct = HCA_STRUCT(HcaGidTable, gids_fields);

static const HcaField gid_fields[] = {
    HCA_SAVED(Gid, index),
    HCA_SAVED_STRUCT(Gid, entry, entry_struct),
};
static const HcaStruct gid_struct = HCA_STRUCT(Gid, gid_fields);

static void save_gids(void *room, GArray *records)
{
    const HcaPort *port = room;

    for (unsigned i = 0; hca_port_is_roce(port) && i < port->gids.end; i++) {
        Gid gid = { i, port->gids.entry[i] };

        if (gid.entry.valid) {
            g_array_append_val(records, gid);
        }
    }
}

static bool load_gids(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaPort *port = room;
    const Gid *gid = records;

    for (; n; n--, gid++) {
        if (!hca_port_is_roce(port) ||
            !hca_gid_set(port, gid->index, &gid->entry)) {
            return hca_state_refuse(error, "no GID %u", gid->index);
        }
    }
    return true;
}

const HcaSection hca_gid_section = HCA_SECTION("gid", 1, &gid_struct, save_gids,
                                               load_gids, &gids_struct);

/* Multicast groups */

typedef struct Group {
    uint8_t index;
    HcaMcastGroup group;
} Group;

static const HcaField of_group_fields[] = {
    HCA_SAVED_ARRAY(HcaMcastGroup, mgid.raw, mgid.raw[0]),
    HCA_SAVED(HcaMcastGroup, count),
    HCA_SAVED_ARRAY(HcaMcastGroup, qpn, qpn[0]),
};
static const HcaStruct of_group_struct = HCA_STRUCT(HcaMcastGroup,
                                                    of_group_fields);

static const HcaField mcast_fields[] = {
    HCA_DERIVED(HcaMcastTable, end),
    HCA_ELSEWHERE(HcaMcastTable, group),
};
static const HcaStruct mcast_struct = HCA_STRUCT(HcaMcastTable, mcast_fields);

static const HcaField group_fields[] = {
    HCA_SAVED(Group, index),
    HCA_SAVED_STRUCT(Group, group, of_group_struct),
};
static const HcaStruct group_struct = HCA_STRUCT(Group, group_fields);

static void save_groups(void *room, GArray *records)
{
    const HcaPort *port = room;

    for (unsigned i = 0; i < port->mcast.end; i++) {
        Group group = { i, port->mcast.group[i] };

        if (group.group.count) {
            g_array_append_val(records, group);
        }
    }
}

static bool load_groups(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    const Group *group = records;

    for (; n; n--, group++) {
        if (group->group.count > RDMA_HCA_MGM_MAX_QPS ||
            hca_mcast_set(room, group->index, &group->group) != HCA_STAT_OK) {
            return hca_state_refuse(error, "no group %u", group->index);
        }
    }
    return true;
}

const HcaSection hca_mcast_section = HCA_SECTION(
    "mcast-group", 1, &group_struct, save_groups, load_groups, &mcast_struct);

/* Groups in chains */

static const HcaField chains_fields[] = {
    HCA_SAVED(HcaMcastChains, number),
    HCA_SAVED(HcaMcastChains, buckets),
    HCA_ELSEWHERE(HcaMcastChains, entry),
};
static const HcaStruct chains_struct = HCA_STRUCT(HcaMcastChains,
                                                  chains_fields);

static void save_chains(void *room, GArray *records)
{
    const HcaPort *port = room;

    if (port->chains.number) {
        g_array_append_val(records, port->chains);
    }
}

static bool load_chains(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    const HcaMcastChains *from = records;

    if (!n) {
        return true;
    }
    if (n > 1 || !hca_mcast_chains_begin(room, from->number, from->buckets)) {
        return hca_state_refuse(error, "no such chains");
    }
    return true;
}

const HcaSection hca_mcast_chains_section = HCA_SECTION(
    "mcast-chains", 1, &chains_struct, save_chains, load_chains);

typedef struct Link {
    uint16_t index;
    HcaMcastEntry entry;
} Link;

static const HcaField of_entry_fields[] = {
    HCA_SAVED_STRUCT(HcaMcastEntry, group, of_group_struct),
    HCA_SAVED(HcaMcastEntry, next),
};
static const HcaStruct of_entry_struct = HCA_STRUCT(HcaMcastEntry,
                                                    of_entry_fields);

static const HcaField link_fields[] = {
    HCA_SAVED(Link, index),
    HCA_SAVED_STRUCT(Link, entry, of_entry_struct),
};
static const HcaStruct link_struct = HCA_STRUCT(Link, link_fields);

static void save_entries(void *room, GArray *records)
{
    const HcaPort *port = room;

    for (unsigned i = 0; i < port->chains.number; i++) {
        if (port->chains.entry[i]) {
            Link link = { i, *port->chains.entry[i] };

            g_array_append_val(records, link);
        }
    }
}

static bool load_entries(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    const Link *link = records;

    for (; n; n--, link++) {
        if (hca_mcast_chain_set(room, link->index, &link->entry) !=
            HCA_STAT_OK) {
            return hca_state_refuse(error, "no entry %u of a chain",
                                    link->index);
        }
    }
    return true;
}

const HcaSection hca_mcast_entry_section = HCA_SECTION(
    "mcast-chain-entry", 1, &link_struct, save_entries, load_entries);

/* Flow rules, in the order in which they are tried */

typedef struct Flow {
    uint16_t index;
    HcaFlowRule rule;
} Flow;

static const HcaField key_fields[] = {
    HCA_SAVED_ARRAY(HcaFlowKey, dmac, dmac[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, smac, smac[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, ether_type, ether_type[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, vlan_tci, vlan_tci[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, sip, sip[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, dip, dip[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, sport, sport[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, dport, dport[0]),
    HCA_SAVED(HcaFlowKey, protocol),
    HCA_SAVED(HcaFlowKey, tclass),
    HCA_SAVED(HcaFlowKey, hop_limit),
    HCA_SAVED(HcaFlowKey, layers),
    HCA_SAVED_ARRAY(HcaFlowKey, flow_label, flow_label[0]),
    HCA_SAVED_ARRAY(HcaFlowKey, reserved, reserved[0]),
};
static const HcaStruct key_struct = HCA_STRUCT(HcaFlowKey, key_fields);

static const HcaField rule_fields[] = {
    HCA_SAVED(HcaFlowRule, qpn),
    HCA_SAVED(HcaFlowRule, kind),
    HCA_SAVED(HcaFlowRule, tag),
    HCA_SAVED(HcaFlowRule, priority),
    HCA_SAVED(HcaFlowRule, dont_trap),
    HCA_SAVED_STRUCT(HcaFlowRule, value, key_struct),
    HCA_SAVED_STRUCT(HcaFlowRule, mask, key_struct),
};
static const HcaStruct rule_struct = HCA_STRUCT(HcaFlowRule, rule_fields);

static const HcaField table_fields[] = {
    HCA_ELSEWHERE(HcaFlowTable, rule),
    HCA_DERIVED(HcaFlowTable, used),
    HCA_DERIVED(HcaFlowTable, list),
};
static const HcaStruct table_struct = HCA_STRUCT(HcaFlowTable, table_fields);

static const HcaField flow_fields[] = {
    HCA_SAVED(Flow, index),
    HCA_SAVED_STRUCT(Flow, rule, rule_struct),
};
static const HcaStruct flow_struct = HCA_STRUCT(Flow, flow_fields);

static void save_flows(void *room, GArray *records)
{
    const HcaPort *port = room;
    const HcaFlowTable *table = &port->flows;

    for (unsigned kind = 0; kind < HCA_FLOW_NKINDS; kind++) {
        for (unsigned i = 0; i < table->list[kind].count; i++) {
            uint16_t index = table->list[kind].index[i];
            Flow flow = { index, table->rule[index] };

            g_array_append_val(records, flow);
        }
    }
}

static bool load_flows(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaPort *port = room;
    const Flow *flow = records;

    for (; n; n--, flow++) {
        if (!hca_port_is_roce(port) ||
            hca_flow_add(port, flow->index, &flow->rule) != HCA_STAT_OK) {
            return hca_state_refuse(error, "no flow rule %u", flow->index);
        }
    }
    return true;
}

const HcaSection hca_flow_section = HCA_SECTION(
    "flow", 1, &flow_struct, save_flows, load_flows, &table_struct);
