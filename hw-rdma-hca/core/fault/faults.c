/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of a plan at work. */
#include "faults.h"

#include <string.h>

static bool has_time(const HcaFaultRule *rule)
{
    return rule->after_ns || rule->for_ns;
}

void hca_faults_begin(HcaFaults *faults, const HcaHost *host,
                      const HcaFaultPlan *plan, unsigned kept)
{
    faults->host = *host;
    faults->plan = *plan;
    faults->places = 0;
    memset(&faults->state[kept], 0,
           (HCA_FAULT_MAX_RULES - kept) * sizeof(faults->state[0]));
    for (unsigned i = 0; i < plan->nrules; i++) {
        faults->places |= 1u << plan->rule[i].place;
        if (i >= kept && has_time(&plan->rule[i])) {
            faults->state[i].begun = host->ops->clock_ns(host->opaque);
        }
    }
}

/* Whether the rule has begun, and has not ended. */
static bool is_its_time(const HcaFaults *faults, unsigned i)
{
    const HcaFaultRule *rule = &faults->plan.rule[i];
    uint64_t age;

    if (!has_time(rule)) {
        return true;
    }
    age = faults->host.ops->clock_ns(faults->host.opaque) -
          faults->state[i].begun;
    return age >= rule->after_ns &&
           (!rule->for_ns || age - rule->after_ns < rule->for_ns);
}

bool hca_faults_takes(HcaFaults *faults, unsigned i, HcaChance *chance)
{
    const HcaFaultRule *rule = &faults->plan.rule[i];
    uint64_t matched;

    if (!is_its_time(faults, i)) {
        return false;
    }
    matched = ++faults->state[i].matched;
    return (!rule->count || faults->state[i].faults < rule->count) &&
           matched > rule->skip &&
           (matched - rule->skip) % MAX(rule->every, 1) == 0 &&
           (rule->probability == HCA_FAULT_ALWAYS ||
            hca_chance_draw(chance) < rule->probability);
}

void hca_faults_done(HcaFaults *faults, unsigned i)
{
    faults->state[i].faults++;
}

const char *hca_fault_place_text(uint64_t place)
{
    static const char *const texts[HCA_FAULT_NPLACES] = {
        [HCA_FAULT_CABLE] = "cable",
        [HCA_FAULT_DMA] = "dma",
        [HCA_FAULT_COMMAND] = "command",
        [HCA_FAULT_INTERRUPT] = "interrupt",
        [HCA_FAULT_DOORBELL] = "doorbell",
        [HCA_FAULT_EVENT] = "event-queue",
        [HCA_FAULT_SEND_WR] = "send",
        [HCA_FAULT_RECEIVE] = "receive",
        [HCA_FAULT_REQUEST] = "request",
        [HCA_FAULT_ANSWER] = "answer",
        [HCA_FAULT_COMPLETION] = "completion",
        [HCA_FAULT_CARD] = "card",
    };

    return place < G_N_ELEMENTS(texts) ? texts[place] : "?";
}

const char *hca_fault_action_text(uint64_t action)
{
    static const char *const texts[HCA_FAULT_NACTIONS] = {
        [HCA_FAULT_DROP] = "drop",         [HCA_FAULT_DUPLICATE] = "duplicate",
        [HCA_FAULT_REORDER] = "reorder",   [HCA_FAULT_DELAY] = "delay",
        [HCA_FAULT_CORRUPT] = "corrupt",   [HCA_FAULT_MARK] = "mark",
        [HCA_FAULT_FAIL] = "fail",         [HCA_FAULT_HANG] = "hang",
        [HCA_FAULT_OVERFLOW] = "overflow", [HCA_FAULT_BREAK] = "break",
        [HCA_FAULT_RNR] = "rnr",           [HCA_FAULT_RAISE] = "raise",
        [HCA_FAULT_DOWN] = "down",
    };

    return action < G_N_ELEMENTS(texts) ? texts[action] : "?";
}

const char *hca_fault_done_word(uint64_t action)
{
    static const char *const words[HCA_FAULT_NACTIONS] = {
        [HCA_FAULT_DROP] = "dropped",      [HCA_FAULT_DUPLICATE] = "duplicate",
        [HCA_FAULT_REORDER] = "reordered", [HCA_FAULT_DELAY] = "delayed",
        [HCA_FAULT_MARK] = "marked",       [HCA_FAULT_CORRUPT] = "corrupted",
        [HCA_FAULT_DOWN] = "link down",
    };

    return action < G_N_ELEMENTS(words) && words[action] ? words[action] : "?";
}

HcaFaultKind hca_fault_ack_kind(uint8_t syndrome)
{
    switch (HCA_AETH_KIND(syndrome)) {
    case HCA_AETH_ACK:
        return HCA_FAULT_ACK;
    case HCA_AETH_RNR:
        return HCA_FAULT_RNR_NAK;
    default:
        return HCA_FAULT_NAK;
    }
}
