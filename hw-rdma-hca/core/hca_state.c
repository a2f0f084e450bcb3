/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of a card, from what others need to what needs others. */
#include "hca_state.h"

#include <string.h>

#include "counters.h"
#include "cxtmgt/cxtmgt.h"
#include "dispatch.h"
#include "eth/eth.h"
#include "fault/host_faults.h"
#include "front/bars.h"
#include "front/ceu/ceu.h"
#include "hca_int.h"
#include "link/link.h"
#include "port/port.h"
#include "qp_state.h"
#include "requester/requester.h"
#include "responder/responder.h"
#include "script.h"
#include "send/send.h"
#include "strict.h"
#include "v2p/v2p.h"

/* Options that have to be the same: the guest knows them, or memory lies by them */

typedef struct Option {
    uint8_t name[32];
    uint64_t value;
} Option;

static const HcaField option_fields[] = {
    HCA_SAVED_ARRAY(Option, name, name[0]),
    HCA_SAVED(Option, value),
};
static const HcaStruct option_struct = HCA_STRUCT(Option, option_fields);

typedef struct Fixed {
    const char *name;
    uint64_t value;
    bool later; /* 0 in a version that did not have it, and not written then */
} Fixed;

/* Those that are no rows of HCA_OPTIONS. */
#define NUM_FIXED 7
static void fixed(const HcaConfig *config, Fixed *options)
{
    options[0] = (Fixed) { .name = "link", .value = config->link_layer };
    options[1] = (Fixed) { .name = "mtu", .value = config->max_mtu };
    options[2] = (Fixed) { .name = "guid", .value = config->guid };
    options[3] = (Fixed) { .name = "pkeys", .value = config->num_pkeys };
    options[4] = (Fixed) { .name = "vectors", .value = config->num_vectors };
    options[5] = (Fixed) { .name = "managed", .value = config->managed };
    options[6] = (Fixed) { .name = "personality",
                           .value = config->personality,
                           .later = true };
}

/* What is no matter of the guest's may be otherwise elsewhere. */
static bool may_differ(const HcaOption *option)
{
    return strstr(option->name, "memory-latency") ||
           strstr(option->name, "memory-bandwidth") ||
           strcmp(option->name, "move-limit-ms") == 0 ||
           strcmp(option->name, "recorder") == 0;
}

static void put_option(GArray *records, const char *name, uint64_t value)
{
    Option option = { .value = value };

    memcpy(option.name, name, MIN(strlen(name), sizeof(option.name)));
    g_array_append_val(records, option);
}

static void save_options(void *room, GArray *records)
{
    const HcaConfig *config = &((Hca *)room)->config;
    Fixed others[NUM_FIXED];
    unsigned n;
    const HcaOption *options = hca_config_options(&n);

    for (unsigned i = 0; i < n; i++) {
        if (!may_differ(&options[i])) {
            put_option(
                records, options[i].name,
                *(const uint32_t *)((const char *)config + options[i].offset));
        }
    }
    fixed(config, others);
    for (unsigned i = 0; i < NUM_FIXED; i++) {
        if (others[i].value || !others[i].later) {
            put_option(records, others[i].name, others[i].value);
        }
    }
}

static const Option *find_option(const Option *options, unsigned n,
                                 const Option *like)
{
    for (unsigned i = 0; i < n; i++) {
        if (!memcmp(options[i].name, like->name, sizeof(like->name))) {
            return &options[i];
        }
    }
    return NULL;
}

/* An option that an earlier version did not have is as it was without it. */
static bool is_initial(const Option *ours)
{
    unsigned n;
    const HcaOption *options = hca_config_options(&n);

    for (unsigned i = 0; i < n; i++) {
        if (strncmp(options[i].name, (const char *)ours->name,
                    sizeof(ours->name)) == 0) {
            return options[i].initial == ours->value;
        }
    }
    return false;
}

static bool judge_option(const Option *ours, const Option *theirs,
                         HcaStateError *error)
{
    if (!theirs && !is_initial(ours)) {
        return hca_state_refuse(
            error, "%.32s is not known there and %" G_GUINT64_FORMAT " here",
            (const char *)ours->name, ours->value);
    }
    if (theirs && theirs->value != ours->value) {
        return hca_state_refuse(error,
                                "%.32s is %" G_GUINT64_FORMAT
                                " there and %" G_GUINT64_FORMAT " here",
                                (const char *)ours->name, theirs->value,
                                ours->value);
    }
    return true;
}

static bool load_options(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    g_autoptr(GArray) own = g_array_new(FALSE, TRUE, sizeof(Option));
    const Option *theirs = records;

    save_options(room, own);
    for (unsigned i = 0; i < n; i++) {
        if (!find_option((const Option *)own->data, own->len, &theirs[i])) {
            return hca_state_refuse(error, "%.32s is not known here",
                                    (const char *)theirs[i].name);
        }
    }
    for (unsigned i = 0; i < own->len; i++) {
        const Option *ours = &g_array_index(own, Option, i);

        if (!judge_option(ours, find_option(theirs, n, ours), error)) {
            return false;
        }
    }
    return true;
}

static const HcaSection option_section = HCA_SECTION(
    "option", 1, &option_struct, save_options, load_options);

/* What is no room's */

static const HcaField card_fields[] = {
    HCA_DERIVED(Hca, config),
    HCA_DERIVED(Hca, host),
    HCA_DERIVED(Hca, interface),
    HCA_DERIVED(Hca, format),
    HCA_ELSEWHERE(Hca, bars),
    HCA_ELSEWHERE(Hca, ceu),
    HCA_ELSEWHERE(Hca, eth),
    HCA_ELSEWHERE(Hca, send),
    HCA_ELSEWHERE(Hca, requester),
    HCA_ELSEWHERE(Hca, responder),
    HCA_ELSEWHERE(Hca, cm),
    HCA_ELSEWHERE(Hca, port),
    HCA_ELSEWHERE(Hca, v2p),
    HCA_ELSEWHERE(Hca, faults),
    HCA_ELSEWHERE(Hca, script),
    HCA_ELSEWHERE(Hca, strict),
    HCA_ELSEWHERE(Hca, link),
    HCA_ANEW(Hca, send_queue),
    HCA_ANEW(Hca, resp_queue),
    HCA_DERIVED(Hca, timers),
    HCA_DERIVED(Hca, timers_of_peers),
    HCA_DERIVED(Hca, alarm),
    HCA_SAVED(Hca, late),
    HCA_SAVED(Hca, timers_stand),
    HCA_SAVED(Hca, timers_stood_at),
    HCA_ELSEWHERE(Hca, arrived),
    HCA_SAVED(Hca, eth_first),
    HCA_SAVED(Hca, resp_first),
    HCA_ANEW(Hca, rx_left),
    HCA_ANEW(Hca, announces),
};
static const HcaStruct card_struct = HCA_STRUCT(Hca, card_fields);

static const HcaField sender_fields[] = { HCA_COUNTED(HcaSender, counters) };
static const HcaStruct sender_struct = HCA_STRUCT(HcaSender, sender_fields);

static const HcaField requester_fields[] = {
    HCA_ELSEWHERE(HcaRequesterUnit, mq),
    HCA_COUNTED(HcaRequesterUnit, counters),
};
static const HcaStruct requester_struct = HCA_STRUCT(HcaRequesterUnit,
                                                     requester_fields);

static const HcaField responder_fields[] = {
    HCA_COUNTED(HcaResponderUnit, counters),
    HCA_ANEW(HcaResponderUnit, planned),
    HCA_ANEW(HcaResponderUnit, answer_lost),
};
static const HcaStruct responder_struct = HCA_STRUCT(HcaResponderUnit,
                                                     responder_fields);

static bool load_card(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    Hca *hca = room;
    const Hca *from = records;

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    hca->eth_first = from->eth_first;
    hca->resp_first = from->resp_first;
    hca->timers_stand = from->timers_stand;
    hca->timers_stood_at = MAX(from->timers_stood_at, 0);
    if (from->late) {
        hca_be_late(hca);
    }
    return true;
}

static const HcaSection card_section = HCA_SECTION(
    "card", 1, &card_struct, hca_state_save_room, load_card, &sender_struct,
    &requester_struct, &responder_struct);

/* The port's node */

static void save_node(void *room, GArray *records)
{
    hca_node_section.save(hca_port_node(((Hca *)room)->port), records);
}

static bool load_node(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    return hca_node_section.load(hca_port_node(((Hca *)room)->port), records, n,
                                 error);
}

static const HcaSection node_section = HCA_SECTION("node", 1, &hca_node_struct,
                                                   save_node, load_node);

/* The QPs: each engine sees to its part of them */

static void save_qps(void *room, GArray *records)
{
    hca_qp_section.save(((Hca *)room)->cm, records);
}

/* All have a turn, to find out whether there is something to do. */
static void start_qp(Hca *hca, HcaQp *qp)
{
    int64_t deadline[HCA_NTIMERS];

    qp->lane = qp->lane < HCA_RUN_HELD ? qp->lane : 0;
    memcpy(deadline, qp->deadline, sizeof(deadline));
    hca_card_add_qp(qp);
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        hca_timer_set(hca, qp, i, deadline[i]);
    }
    hca_schedule_send(hca, qp);
    hca_schedule_resp(hca, qp);
}

static bool load_qp(const Hca *hca, HcaQp *qp)
{
    return hca_send_load_qp(qp) && hca_requester_load_qp(qp) &&
           hca_responder_load_qp(hca, qp);
}

/* Those that there are have started before one is refused: they are to end. */
static bool load_qps(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    Hca *hca = room;
    bool ok = hca_qp_section.load(hca->cm, records, n, error);
    HcaQp *qp;

    for (qp = hca_qp_next(hca->cm, NULL); qp; qp = hca_qp_next(hca->cm, qp)) {
        start_qp(hca, qp);
    }
    for (qp = hca_qp_next(hca->cm, NULL); ok && qp;
         qp = hca_qp_next(hca->cm, qp)) {
        ok = load_qp(hca, qp) ||
             hca_state_refuse(error, "QP %u cannot be", qp->qpn);
    }
    return ok;
}

static const HcaSection qp_section = HCA_SECTION("qp", 1, &hca_qp_struct,
                                                 save_qps, load_qps);

/* Counters, by their numbers: a card of another version has others */

typedef struct Counter {
    uint32_t number;
    uint64_t value;
} Counter;

static const HcaField counter_fields[] = {
    HCA_SAVED(Counter, number),
    HCA_SAVED(Counter, value),
};
static const HcaStruct counter_struct = HCA_STRUCT(Counter, counter_fields);

static void save_counters(void *room, GArray *records)
{
    const Hca *hca = room;

    for (unsigned i = 0; i < hca_counters_number(); i++) {
        Counter counter = { .number = i };

        if (hca_counter_saved(hca, i, &counter.value)) {
            g_array_append_val(records, counter);
        }
    }
}

static bool load_counters(void *room, const void *records, uint32_t n,
                          HcaStateError *error)
{
    const Counter *counter = records;

    for (; n; n--, counter++) {
        hca_counter_set(room, counter->number, counter->value);
    }
    return true;
}

static const HcaSection counter_section = HCA_SECTION(
    "counter", 1, &counter_struct, save_counters, load_counters);

/* The list */

#define OF(room, section)                                                      \
    {                                                                          \
        &(section), offsetof(Hca, room)                                        \
    }
/* Of what needs all of the card. */
#define OF_CARD(section)                                                       \
    {                                                                          \
        &(section), SIZE_MAX                                                   \
    }

static const struct {
    const HcaSection *section;
    size_t room;
} sections[] = {
    OF_CARD(option_section),
    OF_CARD(card_section),
    OF(host.recorder, hca_record_section),
    OF(host.recorder, hca_recorder_section),
    OF(faults, hca_host_faults_section),
    OF(faults, hca_fault_rule_section),
    OF(link, hca_link_section),
    OF(link, hca_injector_section),
    OF(link, hca_cable_rule_section),
    OF(link, hca_held_section),
    OF(link, hca_link_tx_section),
    OF(link, hca_link_rx_section),
    OF(link, hca_doubled_section),
    OF(link, hca_loopback_section),
    OF_CARD(node_section),
    OF(port, hca_port_section),
    OF(port, hca_gid_section),
    OF(port, hca_mcast_section),
    OF(port, hca_mcast_chains_section),
    OF(port, hca_mcast_entry_section),
    OF(port, hca_flow_section),
    OF(v2p, hca_v2p_section),
    OF(v2p, hca_v2p_icm_section),
    OF(v2p, hca_mpt_section),
    OF(v2p, hca_tpt_line_section),
    OF(v2p, hca_late_interrupt_section),
    OF(cm, hca_cxtmgt_section),
    OF(cm, hca_cxt_icm_section),
    OF(cm, hca_eq_section),
    OF(cm, hca_eq_on_bus_section),
    OF(cm, hca_cq_section),
    OF(cm, hca_cq_on_bus_section),
    OF(cm, hca_srq_section),
    OF(cm, hca_qp_counters_section),
    OF_CARD(qp_section),
    OF(cm, hca_sq_place_section),
    OF(cm, hca_rq_place_section),
    OF_CARD(hca_doorbell_section),
    OF_CARD(hca_wqe_section),
    OF_CARD(hca_wqe_count_section),
    OF_CARD(hca_sent_section),
    OF_CARD(hca_sent_piece_section),
    OF_CARD(hca_read_section),
    OF_CARD(hca_read_entry_section),
    OF_CARD(hca_answer_section),
    OF_CARD(hca_replay_section),
    OF_CARD(hca_receive_section),
    OF(cm, hca_event_section),
    OF(eth, hca_eth_section),
    OF(eth, hca_eth_queue_section),
    OF(eth, hca_eth_held_section),
    OF_CARD(hca_script_section),
    OF_CARD(hca_strict_section),
    OF(bars, hca_bars_section),
    OF(bars, hca_half_doorbell_section),
    OF(bars, hca_late_doorbell_section),
    OF(ceu, hca_ceu_section),
    OF(ceu, hca_uarc_section),
    OF_CARD(hca_arrived_section),
    OF_CARD(counter_section),
};

unsigned hca_state_nsections(void)
{
    return G_N_ELEMENTS(sections);
}

const HcaSection *hca_state_section(unsigned i)
{
    return sections[i].section;
}

static void *room_of(Hca *hca, unsigned i)
{
    return sections[i].room == SIZE_MAX
               ? hca
               : *(void **)((char *)hca + sections[i].room);
}

HcaState *hca_state_new(void)
{
    HcaState *state = g_new0(HcaState, 1);

    state->records = g_new0(GArray *, G_N_ELEMENTS(sections));
    for (unsigned i = 0; i < G_N_ELEMENTS(sections); i++) {
        state->records[i] = g_array_new(FALSE, TRUE,
                                        sections[i].section->record->size);
    }
    return state;
}

void hca_state_free(HcaState *state)
{
    if (!state) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(sections); i++) {
        g_array_unref(state->records[i]);
    }
    g_free(state->records);
    g_free(state);
}

void hca_settle(Hca *hca)
{
    hca_v2p_settle(hca->v2p);
}

HcaState *hca_save(Hca *hca)
{
    HcaState *state = hca_state_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(sections); i++) {
        sections[i].section->save(room_of(hca, i), state->records[i]);
    }
    return state;
}

/* A reader of bools may do anything with one that is neither 0 nor 1. */
static bool load_section(Hca *hca, unsigned i, GArray *records,
                         HcaStateError *error)
{
    const HcaSection *section = sections[i].section;
    const void *data = records->data ? records->data : "";
    HcaStateError why;

    for (unsigned n = 0; n < records->len; n++) {
        void *record = records->data + (size_t)n * section->record->size;

        hca_struct_take(section->record, record, record);
    }
    if (section->load(room_of(hca, i), data, records->len, &why)) {
        return true;
    }
    return hca_state_refuse(error, "%s: %s", section->name, why.text);
}

bool hca_load(Hca *hca, const HcaState *state, HcaStateError *error)
{
    hca_reset(hca);
    for (unsigned i = 0; i < G_N_ELEMENTS(sections); i++) {
        if (!load_section(hca, i, state->records[i], error)) {
            hca_reset(hca);
            return false;
        }
    }
    hca_dispatch_set_alarm(hca);
    return true;
}
