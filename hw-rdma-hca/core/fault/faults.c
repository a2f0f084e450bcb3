/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of a plan at work. */
#include "faults.h"

#include <string.h>

void hca_faults_begin(HcaFaults *faults, const HcaFaultPlan *plan)
{
    *faults = (HcaFaults) { .plan = *plan };
    for (unsigned i = 0; i < plan->nrules; i++) {
        faults->places |= 1u << plan->rule[i].place;
    }
}

bool hca_faults_takes(HcaFaults *faults, unsigned i, GRand *rand)
{
    const HcaFaultRule *rule = &faults->plan.rule[i];
    uint64_t matched = ++faults->state[i].matched;

    return (!rule->count || faults->state[i].faults < rule->count) &&
           matched > rule->skip &&
           (matched - rule->skip) % MAX(rule->every, 1) == 0 &&
           (rule->probability == HCA_FAULT_ALWAYS ||
            g_rand_int(rand) < rule->probability);
}

void hca_faults_done(HcaFaults *faults, unsigned i)
{
    faults->state[i].faults++;
}

const char *hca_fault_done_word(HcaFaultAction action)
{
    static const char *const words[HCA_FAULT_NPACKET_ACTIONS] = {
        [HCA_FAULT_DROP] = "dropped",      [HCA_FAULT_DUPLICATE] = "duplicate",
        [HCA_FAULT_REORDER] = "reordered", [HCA_FAULT_DELAY] = "delayed",
        [HCA_FAULT_MARK] = "marked",       [HCA_FAULT_CORRUPT] = "corrupted",
    };

    return words[action];
}
