/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of the host's side. A unit that is about to do something at one of
 * these places asks here whether that goes wrong, and has it go wrong. One look
 * at a word if there is no rule for the place.
 */
#ifndef HCA_HOST_FAULTS_H
#define HCA_HOST_FAULTS_H

#include "../host.h"
#include "faults.h"

/* Something that is about to happen. */
typedef struct HcaFaultSubject {
    HcaFaultPlace place;
    uint16_t actions; /* that can be done to it here: bits */
    /* DMA: @len bytes at @addr, for a unit (HcaV2pChannel). */
    unsigned unit;
    HcaFaultChannel channel;
    uint64_t addr, len;
    uint32_t number; /* the other places: see HcaFaultRule */
} HcaFaultSubject;

typedef struct HcaHostFaultCounters {
    uint64_t injected[HCA_FAULT_NPLACES][HCA_FAULT_NACTIONS];
    uint64_t held_full; /* late ones that found no room: they were not late */
} HcaHostFaultCounters;

typedef struct HcaHostFaults {
    HcaFaults faults;
    GRand *rand[HCA_FAULT_NPLACES];
    HcaHostFaultCounters counters;
    HcaHost host;
} HcaHostFaults;

HcaHostFaults *hca_host_faults_new(const HcaHost *host);
void hca_host_faults_free(HcaHostFaults *faults);
/* Rules for the cable are not looked at. */
void hca_host_faults_set_plan(HcaHostFaults *faults, const HcaFaultPlan *plan);

/* Whether a rule of @plan has memory answer late. */
bool hca_host_faults_delay_dma(const HcaFaultPlan *plan);

/* The rule that fires, which is counted and traced; NULL: all goes well. */
const HcaFaultRule *hca_host_faults_judge(HcaHostFaults *faults,
                                          const HcaFaultSubject *subject);

/* @faults may be NULL: a unit by itself has none. */
static inline bool hca_host_faults_at(const HcaHostFaults *faults,
                                      HcaFaultPlace place)
{
    return faults && hca_faults_at(&faults->faults, place);
}

static inline const HcaFaultRule *hca_host_fault(HcaHostFaults *faults,
                                                 const HcaFaultSubject *subject)
{
    return hca_host_faults_at(faults, subject->place)
               ? hca_host_faults_judge(faults, subject)
               : NULL;
}

#endif /* HCA_HOST_FAULTS_H */
