/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is saved of a plan of faults, and of what has been done of it. */
#include <string.h>

#include "host_faults.h"

/* Rules */

static const HcaField peer_fields[] = {
    HCA_SAVED(HcaFaultPeer, lid),
    HCA_SAVED(HcaFaultPeer, match_gid),
    HCA_SAVED_ARRAY(HcaFaultPeer, gid.raw, gid.raw[0]),
};
static const HcaStruct peer_struct = HCA_STRUCT(HcaFaultPeer, peer_fields);

static const HcaField down_fields[] = {
    HCA_SAVED(HcaFaultDown, down_ns), HCA_SAVED(HcaFaultDown, up_ns),
    HCA_SAVED(HcaFaultDown, ends),    HCA_SAVED(HcaFaultDown, delivered),
    HCA_SAVED(HcaFaultDown, speed),   HCA_SAVED(HcaFaultDown, mtu),
};
const HcaStruct hca_fault_down_struct = HCA_STRUCT(HcaFaultDown, down_fields);

static const HcaField rule_fields[] = {
    HCA_SAVED(HcaFaultRule, place),
    HCA_SAVED(HcaFaultRule, action),
    HCA_SAVED(HcaFaultRule, directions),
    HCA_SAVED(HcaFaultRule, kinds),
    HCA_SAVED(HcaFaultRule, match_opcode),
    HCA_SAVED(HcaFaultRule, match_qpn),
    HCA_SAVED(HcaFaultRule, opcode),
    HCA_SAVED(HcaFaultRule, qpn),
    HCA_SAVED(HcaFaultRule, match_psn),
    HCA_SAVED(HcaFaultRule, psn_first),
    HCA_SAVED(HcaFaultRule, psn_last),
    HCA_SAVED(HcaFaultRule, units),
    HCA_SAVED(HcaFaultRule, channels),
    HCA_SAVED(HcaFaultRule, match_addr),
    HCA_SAVED(HcaFaultRule, addr_first),
    HCA_SAVED(HcaFaultRule, addr_last),
    HCA_SAVED(HcaFaultRule, match_number),
    HCA_SAVED(HcaFaultRule, number),
    HCA_SAVED(HcaFaultRule, services),
    HCA_SAVED(HcaFaultRule, operations),
    HCA_SAVED(HcaFaultRule, match_peer_qpn),
    HCA_SAVED(HcaFaultRule, match_cqn),
    HCA_SAVED(HcaFaultRule, match_srqn),
    HCA_SAVED(HcaFaultRule, peer_qpn),
    HCA_SAVED(HcaFaultRule, cqn),
    HCA_SAVED(HcaFaultRule, srqn),
    HCA_SAVED_STRUCT(HcaFaultRule, peer, peer_struct),
    HCA_SAVED(HcaFaultRule, event),
    HCA_SAVED(HcaFaultRule, after_ns),
    HCA_SAVED(HcaFaultRule, for_ns),
    HCA_SAVED(HcaFaultRule, skip),
    HCA_SAVED(HcaFaultRule, every),
    HCA_SAVED(HcaFaultRule, probability),
    HCA_SAVED(HcaFaultRule, count),
    HCA_SAVED(HcaFaultRule, distance),
    HCA_SAVED(HcaFaultRule, delay_ns),
    HCA_SAVED(HcaFaultRule, status),
    HCA_SAVED(HcaFaultRule, vendor_err),
    HCA_SAVED_STRUCT(HcaFaultRule, down, hca_fault_down_struct),
    HCA_SAVED(HcaFaultRule, offset),
    HCA_SAVED(HcaFaultRule, mask),
};
static const HcaStruct rule_struct = HCA_STRUCT(HcaFaultRule, rule_fields);

static const HcaField count_fields[] = {
    HCA_SAVED(HcaFaultCount, matched),
    HCA_SAVED(HcaFaultCount, faults),
    HCA_SAVED(HcaFaultCount, begun),
};
static const HcaStruct count_struct = HCA_STRUCT(HcaFaultCount, count_fields);

typedef struct Record {
    uint32_t seed; /* of the plan */
    HcaFaultRule rule;
    HcaFaultCount count;
} Record;

static const HcaField record_fields[] = {
    HCA_SAVED(Record, seed),
    HCA_SAVED_STRUCT(Record, rule, rule_struct),
    HCA_SAVED_STRUCT(Record, count, count_struct),
};
const HcaStruct hca_fault_rule_struct = HCA_STRUCT(Record, record_fields);

static const HcaField plan_fields[] = {
    HCA_ELSEWHERE(HcaFaultPlan, seed),
    HCA_ELSEWHERE(HcaFaultPlan, nrules),
    HCA_ELSEWHERE(HcaFaultPlan, rule),
};
static const HcaStruct plan_struct = HCA_STRUCT(HcaFaultPlan, plan_fields);

static const HcaField faults_fields[] = {
    HCA_DERIVED(HcaFaults, places),
    HCA_DERIVED(HcaFaults, host),
    HCA_ELSEWHERE(HcaFaults, plan),
    HCA_ELSEWHERE(HcaFaults, state),
};
static const HcaStruct faults_struct = HCA_STRUCT(HcaFaults, faults_fields);

void hca_faults_save(const HcaFaults *faults, GArray *records)
{
    for (unsigned i = 0; i < faults->plan.nrules; i++) {
        Record record = { faults->plan.seed, faults->plan.rule[i],
                          faults->state[i] };

        g_array_append_val(records, record);
    }
}

bool hca_faults_load(HcaFaults *faults, const HcaHost *host,
                     const void *records, uint32_t n, HcaStateError *error)
{
    HcaFaultPlan plan = { .nrules = n };
    const Record *record = records;
    const char *bad;

    if (n > HCA_FAULT_MAX_RULES) {
        return hca_state_refuse(error, "%u rules", n);
    }
    for (unsigned i = 0; i < n; i++) {
        plan.seed = record[i].seed;
        plan.rule[i] = record[i].rule;
    }
    bad = hca_fault_check(&plan);
    if (bad) {
        return hca_state_refuse(error, "%s", bad);
    }
    hca_faults_begin(faults, host, &plan, 0);
    for (unsigned i = 0; i < n; i++) {
        faults->state[i] = record[i].count;
    }
    return true;
}

static const HcaField chance_fields[] = {
    HCA_SAVED(HcaChance, state),
};
const HcaStruct hca_chance_struct = HCA_STRUCT(HcaChance, chance_fields);

/* Of all places but the cable, which the link has */

static const HcaField unit_fields[] = {
    HCA_ELSEWHERE(HcaHostFaults, faults),
    HCA_DERIVED(HcaHostFaults, note),
    HCA_DERIVED(HcaHostFaults, note_opaque),
    HCA_SAVED_STRUCTS(HcaHostFaults, chance, chance[0], hca_chance_struct),
    HCA_COUNTED(HcaHostFaults, counters),
    HCA_DERIVED(HcaHostFaults, host),
};
static const HcaStruct unit_struct = HCA_STRUCT(HcaHostFaults, unit_fields);

static bool load_unit(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    if (!hca_state_is_one(n, error)) {
        return false;
    }
    hca_struct_take(&unit_struct, room, records);
    return true;
}

const HcaSection hca_host_faults_section = HCA_SECTION(
    "host-faults", 1, &unit_struct, hca_state_save_room, load_unit);

static void save_rules(void *room, GArray *records)
{
    hca_faults_save(&((HcaHostFaults *)room)->faults, records);
}

static bool load_rules(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaHostFaults *faults = room;

    return hca_faults_load(&faults->faults, &faults->host, records, n, error);
}

const HcaSection hca_fault_rule_section = HCA_SECTION(
    "fault-rule", 1, &hca_fault_rule_struct, save_rules, load_rules,
    &plan_struct, &faults_struct);
