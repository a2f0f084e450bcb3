/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of the host's side: which rule fires. */
#include "host_faults.h"

#include "../trace_events.h"

HcaHostFaults *hca_host_faults_new(const HcaHost *host)
{
    HcaHostFaults *faults = g_new0(HcaHostFaults, 1);

    faults->host = *host;
    for (unsigned i = 0; i < HCA_FAULT_NPLACES; i++) {
        faults->rand[i] = g_rand_new_with_seed(0);
    }
    return faults;
}

void hca_host_faults_free(HcaHostFaults *faults)
{
    for (unsigned i = 0; i < HCA_FAULT_NPLACES; i++) {
        g_rand_free(faults->rand[i]);
    }
    g_free(faults);
}

void hca_host_faults_set_plan(HcaHostFaults *faults, const HcaFaultPlan *plan)
{
    hca_faults_begin(&faults->faults, plan);
    for (unsigned i = 0; i < HCA_FAULT_NPLACES; i++) {
        const guint32 seed[] = { plan->seed, HCA_FAULT_NDIRECTIONS + i };

        g_rand_set_seed_array(faults->rand[i], seed, G_N_ELEMENTS(seed));
    }
}

bool hca_host_faults_delay_dma(const HcaFaultPlan *plan)
{
    for (unsigned i = 0; i < plan->nrules; i++) {
        if (plan->rule[i].place == HCA_FAULT_DMA &&
            plan->rule[i].action == HCA_FAULT_DELAY) {
            return true;
        }
    }
    return false;
}

/* Bytes from @addr on, @len of them and one at least, meet the range. */
static bool meets(const HcaFaultRule *rule, uint64_t addr, uint64_t len)
{
    return addr <= rule->addr_last &&
           (addr >= rule->addr_first || rule->addr_first - addr < len);
}

static bool matches_dma(const HcaFaultRule *rule, const HcaFaultSubject *s)
{
    return (!rule->units || rule->units >> s->unit & 1) &&
           (!rule->channels || rule->channels >> s->channel & 1) &&
           (!rule->match_addr || meets(rule, s->addr, s->len));
}

static bool matches(const HcaFaultRule *rule, const HcaFaultSubject *s)
{
    if (rule->place != s->place || !(s->actions >> rule->action & 1)) {
        return false;
    }
    return s->place == HCA_FAULT_DMA
               ? matches_dma(rule, s)
               : !rule->match_number || rule->number == s->number;
}

const HcaFaultRule *hca_host_faults_judge(HcaHostFaults *faults,
                                          const HcaFaultSubject *s)
{
    const HcaFaultPlan *plan = &faults->faults.plan;
    uint64_t what = s->place == HCA_FAULT_DMA ? s->addr : s->number;

    for (unsigned i = 0; i < plan->nrules; i++) {
        const HcaFaultRule *rule = &plan->rule[i];

        if (matches(rule, s) &&
            hca_faults_takes(&faults->faults, i, faults->rand[s->place])) {
            hca_faults_done(&faults->faults, i);
            faults->counters.injected[s->place][rule->action]++;
            hca_host_trace(&faults->host, HCA_TRACE_HOST_FAULT, i, s->place,
                           rule->action, what);
            return rule;
        }
    }
    return NULL;
}
