/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector. A packet costs at most a look at each rule and at each
 * packet that is held back; memory for those is allocated with a plan that
 * needs it.
 */
#include "fault_int.h"

#include <stdio.h>
#include <string.h>

#include "../trace_events.h"
#include "../wire/bytes.h"
#include "../wire/headers.h"

#define REORDER_DELAY_NS 1000000

/* The plan */

static bool holds(const HcaFaultRule *rule)
{
    return rule->action == HCA_FAULT_REORDER || rule->action == HCA_FAULT_DELAY;
}

static void allocate_slots(HcaInjectorSide *side)
{
    if (side->slots) {
        return;
    }
    side->slots = g_new0(HcaHeld, HCA_FAULT_MAX_HELD);
    for (unsigned i = 0; i < HCA_FAULT_MAX_HELD; i++) {
        side->slots[i].link.data = &side->slots[i];
        g_queue_push_tail_link(&side->free, &side->slots[i].link);
    }
}

static void update_on(HcaInjector *injector)
{
    injector->on = hca_faults_at(&injector->faults, HCA_FAULT_CABLE) ||
                   injector->held;
}

static void hurry(HcaInjectorSide *side, int64_t now)
{
    for (GList *l = side->waiting.head; l; l = l->next) {
        HcaHeld *held = l->data;

        held->deadline = MIN(held->deadline, now);
    }
}

static void begin_side(HcaInjector *injector, HcaFaultDirection direction,
                       bool kept)
{
    HcaInjectorSide *side = &injector->side[direction];
    const HcaFaultPlan *plan = &injector->faults.plan;

    if (!kept) {
        side->chance = hca_chance(plan->seed, direction);
    }
    for (unsigned i = 0; i < plan->nrules; i++) {
        const HcaFaultRule *rule = &plan->rule[i];

        if (rule->place == HCA_FAULT_CABLE && holds(rule) &&
            rule->directions & 1u << direction) {
            allocate_slots(side);
        }
    }
    if (!kept && side->waiting.length) {
        hurry(side, injector->host.ops->clock_ns(injector->host.opaque));
    }
}

void hca_injector_set_plan(HcaInjector *injector, const HcaFaultPlan *plan,
                           unsigned kept)
{
    hca_faults_begin(&injector->faults, &injector->host, plan, kept);
    for (unsigned i = 0; i < HCA_FAULT_NDIRECTIONS; i++) {
        begin_side(injector, i, kept);
    }
    update_on(injector);
}

HcaInjector *hca_injector_new(const HcaHost *host, const HcaEncap *encap)
{
    HcaInjector *injector = g_new0(HcaInjector, 1);

    injector->host = *host;
    injector->encap = encap;
    return injector;
}

void hca_injector_free(HcaInjector *injector)
{
    for (unsigned i = 0; i < HCA_FAULT_NDIRECTIONS; i++) {
        g_free(injector->side[i].slots);
    }
    g_free(injector);
}

/* What a packet is */

typedef struct Subject {
    size_t len;
    bool has_bth;
    bool has_ecn;
    HcaFaultKind kind;
    uint8_t opcode;
    uint32_t qpn, psn;
} Subject;

/* BTH and what follows it: @len bytes. */
static HcaFaultKind kind_of(const uint8_t *bth, size_t len)
{
    HcaOpcodeFormat format;

    if (!hca_opcode_format(bth[0], &format)) {
        return HCA_FAULT_OTHER;
    }
    switch (HCA_BTH_OPERATION(bth[0])) {
    case HCA_SEND_FIRST ... HCA_SEND_ONLY_IMM:
    case HCA_SEND_LAST_INV ... HCA_SEND_ONLY_INV:
        return HCA_FAULT_SEND;
    case HCA_WRITE_FIRST ... HCA_WRITE_ONLY_IMM:
        return HCA_FAULT_WRITE;
    case HCA_READ_REQUEST:
        return HCA_FAULT_READ_REQUEST;
    case HCA_READ_RESP_FIRST ... HCA_READ_RESP_ONLY:
        return HCA_FAULT_READ_RESPONSE;
    case HCA_ACK:
        return len - HCA_BTH_SIZE < hca_ext_header_size[HCA_AETH_HEADER]
                   ? HCA_FAULT_OTHER
                   : hca_fault_ack_kind(bth[HCA_BTH_SIZE]);
    case HCA_ATOMIC_ACK:
        return HCA_FAULT_ATOMIC_RESPONSE;
    case HCA_CMP_SWAP:
    case HCA_FETCH_ADD:
    case HCA_ATOMIC_WRITE:
        return HCA_FAULT_ATOMIC;
    default:
        return HCA_FAULT_OTHER;
    }
}

static Subject subject_of(const HcaInjector *injector, const uint8_t *packet,
                          size_t len)
{
    const uint8_t *bth = injector->encap->bth(packet, len);

    if (!bth) {
        return (Subject) { .len = len, .kind = HCA_FAULT_OTHER };
    }
    return (Subject) {
        .len = len,
        .has_bth = true,
        .has_ecn = injector->encap->mark,
        .kind = kind_of(bth, len - (bth - packet)),
        .opcode = bth[0],
        .qpn = get_be24(bth + 5),
        .psn = get_be24(bth + 9),
    };
}

/* Judging */

static bool psn_in_range(const HcaFaultRule *rule, uint32_t psn)
{
    return ((psn - rule->psn_first) & HCA_PSN_MASK) <=
           ((rule->psn_last - rule->psn_first) & HCA_PSN_MASK);
}

static bool matches(const HcaFaultRule *rule, HcaFaultDirection direction,
                    const Subject *s)
{
    bool needs_bth = rule->match_opcode || rule->match_qpn || rule->match_psn;

    return rule->place == HCA_FAULT_CABLE &&
           rule->directions & 1u << direction &&
           (!rule->kinds || rule->kinds & 1u << s->kind) &&
           (!needs_bth || s->has_bth) &&
           (!rule->match_opcode || rule->opcode == s->opcode) &&
           (!rule->match_qpn || rule->qpn == s->qpn) &&
           (!rule->match_psn || psn_in_range(rule, s->psn)) &&
           (rule->action != HCA_FAULT_CORRUPT || rule->offset < 0 ||
            (size_t)rule->offset < s->len) &&
           (rule->action != HCA_FAULT_MARK || s->has_ecn);
}

/* The number of the rule that fires; nrules: none. */
static unsigned judge(HcaInjector *injector, HcaFaultDirection direction,
                      const Subject *subject)
{
    HcaFaults *faults = &injector->faults;
    unsigned i;

    for (i = 0; i < faults->plan.nrules; i++) {
        if (matches(&faults->plan.rule[i], direction, subject) &&
            hca_faults_takes(faults, i, &injector->side[direction].chance)) {
            break;
        }
    }
    return i;
}

/* Doing */

static void corrupt(const HcaFaultRule *rule, HcaChance *chance,
                    HcaFault *fault, uint8_t *packet, size_t len)
{
    fault->offset = rule->offset < 0 ? hca_chance_draw(chance) % len
                                     : (size_t)rule->offset;
    fault->mask = rule->mask ? rule->mask : 1u << hca_chance_draw(chance) % 8;
    packet[fault->offset] ^= fault->mask;
}

static void hold(HcaInjector *injector, HcaInjectorSide *side,
                 const HcaFault *fault, const uint8_t *packet, size_t len,
                 uint8_t vl)
{
    const HcaFaultRule *rule = &injector->faults.plan.rule[fault->rule];
    HcaHeld *held = g_queue_pop_head_link(&side->free)->data;
    uint64_t delay = rule->delay_ns ? rule->delay_ns : REORDER_DELAY_NS;

    held->number = side->number;
    held->left = rule->action == HCA_FAULT_REORDER ? MAX(rule->distance, 1)
                                                   : UINT32_MAX;
    held->deadline = injector->host.ops->clock_ns(injector->host.opaque) +
                     delay;
    held->fault = *fault;
    held->vl = vl;
    held->len = len;
    memcpy(held->packet, packet, len);
    g_queue_push_tail_link(&side->waiting, &held->link);
    injector->held++;
}

static void make_due(HcaInjectorSide *side, HcaHeld *held)
{
    g_queue_unlink(&side->waiting, &held->link);
    g_queue_push_tail_link(&side->due, &held->link);
}

/* Packet @number passes those that came before it. */
static void overtake(HcaInjectorSide *side, uint64_t number)
{
    GList *next;

    for (GList *l = side->waiting.head; l; l = next) {
        HcaHeld *held = l->data;

        next = l->next;
        if (held->number < number && held->fault.action == HCA_FAULT_REORDER &&
            --held->left == 0) {
            make_due(side, held);
        }
    }
}

static void count(HcaInjector *injector, HcaFaultDirection direction,
                  const HcaFault *fault, uint32_t qpn)
{
    hca_faults_done(&injector->faults, fault->rule);
    if (fault->action == HCA_FAULT_DOWN) {
        injector->counters.downs[direction]++;
    } else {
        injector->counters.injected[direction][fault->action]++;
    }
    hca_host_trace(&injector->host, HCA_TRACE_FAULT, qpn, direction,
                   fault->action, fault->rule);
}

static HcaFault inject(HcaInjector *injector, HcaFaultDirection direction,
                       uint8_t *packet, size_t len, uint8_t vl)
{
    HcaInjectorSide *side = &injector->side[direction];
    Subject subject = subject_of(injector, packet, len);
    HcaFault fault = { .action = HCA_FAULT_NPACKET_ACTIONS };
    const HcaFaultRule *rule;

    fault.rule = judge(injector, direction, &subject);
    if (fault.rule == injector->faults.plan.nrules) {
        return fault;
    }
    rule = &injector->faults.plan.rule[fault.rule];
    if (holds(rule) && !side->free.length) {
        injector->counters.held_full++;
        return fault;
    }
    fault.action = rule->action;
    if (holds(rule)) {
        hold(injector, side, &fault, packet, len, vl);
    } else if (rule->action == HCA_FAULT_CORRUPT) {
        corrupt(rule, &side->chance, &fault, packet, len);
    } else if (rule->action == HCA_FAULT_MARK) {
        injector->encap->mark(packet, len);
    }
    count(injector, direction, &fault, subject.qpn);
    return fault;
}

HcaFault hca_injector_treat(HcaInjector *injector, HcaFaultDirection direction,
                            uint8_t *packet, size_t len, uint8_t vl)
{
    HcaInjectorSide *side = &injector->side[direction];
    HcaFault fault = inject(injector, direction, packet, len, vl);

    if (fault.action != HCA_FAULT_DROP && fault.action != HCA_FAULT_REORDER &&
        fault.action != HCA_FAULT_DELAY) {
        overtake(side, side->number);
    }
    side->number++;
    return fault;
}

void hca_fault_describe(const HcaFault *fault, char text[HCA_FAULT_TEXT_SIZE])
{
    if (fault->action == HCA_FAULT_CORRUPT) {
        snprintf(text, HCA_FAULT_TEXT_SIZE,
                 "fault: %s byte %zu, bits 0x%02x (rule %u)",
                 hca_fault_done_word(fault->action), fault->offset, fault->mask,
                 fault->rule);
    } else {
        snprintf(text, HCA_FAULT_TEXT_SIZE, "fault: %s (rule %u)",
                 hca_fault_done_word(fault->action), fault->rule);
    }
}

/* Packets that are held */

/* The one that has to leave first; of those at one time, the oldest. */
static HcaHeld *next_waiting(const HcaInjectorSide *side)
{
    HcaHeld *next = NULL;

    for (GList *l = side->waiting.head; l; l = l->next) {
        HcaHeld *held = l->data;

        if (!next || held->deadline < next->deadline) {
            next = held;
        }
    }
    return next;
}

void hca_injector_tick(HcaInjector *injector)
{
    int64_t now;

    if (!injector->held) {
        return;
    }
    now = injector->host.ops->clock_ns(injector->host.opaque);
    for (unsigned i = 0; i < HCA_FAULT_NDIRECTIONS; i++) {
        HcaInjectorSide *side = &injector->side[i];
        HcaHeld *held;

        while ((held = next_waiting(side)) && held->deadline <= now) {
            make_due(side, held);
        }
    }
}

int64_t hca_injector_deadline(const HcaInjector *injector)
{
    int64_t at = INT64_MAX;

    for (unsigned i = 0; i < HCA_FAULT_NDIRECTIONS; i++) {
        HcaHeld *held = next_waiting(&injector->side[i]);

        at = held ? MIN(at, held->deadline) : at;
    }
    return at;
}

bool hca_injector_is_due(const HcaInjector *injector,
                         HcaFaultDirection direction)
{
    return injector->side[direction].due.length;
}

HcaHeld *hca_injector_take_due(HcaInjector *injector,
                               HcaFaultDirection direction)
{
    HcaInjectorSide *side = &injector->side[direction];
    GList *l = g_queue_pop_head_link(&side->due);
    HcaHeld *held = l ? l->data : NULL;

    if (held) {
        overtake(side, held->number);
    }
    return held;
}

void hca_injector_give_back(HcaInjector *injector, HcaFaultDirection direction,
                            HcaHeld *held)
{
    g_queue_push_head_link(&injector->side[direction].free, &held->link);
    injector->held--;
    update_on(injector);
}

static void forget_queue(HcaInjector *injector, HcaFaultDirection direction,
                         GQueue *queue)
{
    GList *l;

    while ((l = g_queue_pop_head_link(queue))) {
        hca_injector_give_back(injector, direction, l->data);
    }
}

void hca_injector_forget(HcaInjector *injector, HcaFaultDirection direction)
{
    forget_queue(injector, direction, &injector->side[direction].waiting);
    forget_queue(injector, direction, &injector->side[direction].due);
}

bool hca_injector_load(HcaInjector *injector, const void *records, uint32_t n,
                       HcaStateError *error)
{
    if (!hca_faults_load(&injector->faults, &injector->host, records, n,
                         error)) {
        return false;
    }
    for (unsigned i = 0; i < HCA_FAULT_NDIRECTIONS; i++) {
        begin_side(injector, i, true);
    }
    update_on(injector);
    return true;
}

HcaHeld *hca_injector_add_held(HcaInjector *injector,
                               HcaFaultDirection direction, bool due)
{
    HcaInjectorSide *side = &injector->side[direction];
    HcaHeld *held;

    allocate_slots(side);
    if (!side->free.length) {
        return NULL;
    }
    held = g_queue_pop_head_link(&side->free)->data;
    g_queue_push_tail_link(due ? &side->due : &side->waiting, &held->link);
    injector->held++;
    update_on(injector);
    return held;
}
