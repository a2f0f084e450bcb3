/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of the host's side and of verbs: which rule fires. */
#include "host_faults.h"

#include <string.h>

#include "../trace_events.h"

HcaHostFaults *hca_host_faults_new(const HcaHost *host)
{
    HcaHostFaults *faults = g_new0(HcaHostFaults, 1);

    faults->host = *host;
    return faults;
}

void hca_host_faults_free(HcaHostFaults *faults)
{
    g_free(faults);
}

void hca_host_faults_set_plan(HcaHostFaults *faults, const HcaFaultPlan *plan,
                              unsigned kept)
{
    hca_faults_begin(&faults->faults, &faults->host, plan, kept);
    if (kept) {
        return; /* chance goes on, too */
    }
    for (unsigned i = 0; i < HCA_FAULT_NPLACES; i++) {
        faults->chance[i] = hca_chance(plan->seed, HCA_FAULT_NDIRECTIONS + i);
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

static bool is_peer(const HcaFaultPeer *peer, const HcaFaultSubject *s)
{
    return (!peer->lid || peer->lid == s->peer_lid) &&
           (!peer->match_gid ||
            (s->peer_gid &&
             memcmp(&peer->gid, s->peer_gid, sizeof(peer->gid)) == 0));
}

static bool matches_verbs(const HcaFaultRule *rule, const HcaFaultSubject *s)
{
    return (!rule->services || rule->services >> s->service & 1) &&
           (!rule->operations || rule->operations & s->operations) &&
           (!rule->kinds || rule->kinds >> s->kind & 1) &&
           (!rule->match_qpn || rule->qpn == s->qpn) &&
           (!rule->match_peer_qpn || rule->peer_qpn == s->peer_qpn) &&
           (!rule->match_cqn || rule->cqn == s->cqn) &&
           (!rule->match_srqn || (s->has_srq && rule->srqn == s->srqn)) &&
           is_peer(&rule->peer, s) &&
           (rule->action != HCA_FAULT_FAIL ||
            s->place == HCA_FAULT_COMPLETION ||
            s->statuses >> rule->status & 1);
}

static bool matches(const HcaFaultRule *rule, const HcaFaultSubject *s)
{
    if (rule->place != s->place || !(s->actions >> rule->action & 1)) {
        return false;
    }
    if (s->place == HCA_FAULT_DMA) {
        return matches_dma(rule, s);
    }
    return s->place >= HCA_FAULT_SEND_WR
               ? matches_verbs(rule, s)
               : !rule->match_number || rule->number == s->number;
}

static void done(HcaHostFaults *faults, unsigned i, const HcaFaultSubject *s)
{
    const HcaFaultRule *rule = &faults->faults.plan.rule[i];

    hca_faults_done(&faults->faults, i);
    faults->counters.injected[s->place][rule->action]++;
    hca_host_trace(&faults->host, HCA_TRACE_HOST_FAULT, i, s->place,
                   rule->action, hca_fault_what(s));
    if (faults->note) {
        faults->note(faults->note_opaque, i, s, rule->action);
    }
}

void hca_host_faults_did(HcaHostFaults *faults, unsigned i, uint32_t what)
{
    const HcaFaultSubject subject = { .place = HCA_FAULT_CARD, .qpn = what };

    done(faults, i, &subject);
}

const HcaFaultRule *hca_host_faults_judge(HcaHostFaults *faults,
                                          const HcaFaultSubject *s)
{
    const HcaFaultPlan *plan = &faults->faults.plan;

    for (unsigned i = 0; i < plan->nrules; i++) {
        const HcaFaultRule *rule = &plan->rule[i];

        if (matches(rule, s) &&
            hca_faults_takes(&faults->faults, i, &faults->chance[s->place])) {
            done(faults, i, s);
            return rule;
        }
    }
    return NULL;
}
