/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of the host's side, and of verbs. A unit that is about to do something at
 * one of these places asks here whether that goes wrong, and has it go wrong. One
 * look at a word if there is no rule for the place.
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
    uint32_t number; /* COMMAND to EVENT: see HcaFaultRule */
    /* Verbs. */
    uint8_t service;
    HcaFaultKind kind;   /* ANSWER */
    uint32_t operations; /* what a rule may call it; of an ANSWER, all */
    uint32_t qpn, peer_qpn, cqn, srqn;
    bool has_srq;
    uint16_t peer_lid;
    const HcaGid *peer_gid; /* NULL: none is known */
    uint64_t statuses;      /* that FAIL can give it: bit n, HcaSyndrome n */
} HcaFaultSubject;

/* What it is about, for people: an address, or a number. */
static inline uint64_t hca_fault_what(const HcaFaultSubject *subject)
{
    if (subject->place == HCA_FAULT_DMA) {
        return subject->addr;
    }
    return subject->place >= HCA_FAULT_SEND_WR ? subject->qpn : subject->number;
}

typedef struct HcaHostFaultCounters {
    uint64_t injected[HCA_FAULT_NPLACES][HCA_FAULT_NACTIONS];
    uint64_t held_full; /* late ones that found no room: they were not late */
} HcaHostFaultCounters;

/* A rule has fired: for who notes it in a capture. */
typedef void HcaFaultNoteFn(void *opaque, unsigned rule,
                            const HcaFaultSubject *subject,
                            HcaFaultAction action);

typedef struct HcaHostFaults {
    HcaFaults faults;
    HcaFaultNoteFn *note; /* or NULL */
    void *note_opaque;
    HcaChance chance[HCA_FAULT_NPLACES];
    HcaHostFaultCounters counters;
    HcaHost host;
} HcaHostFaults;

HcaHostFaults *hca_host_faults_new(const HcaHost *host);
void hca_host_faults_free(HcaHostFaults *faults);
/* As hca_faults_begin(). Rules for the cable are not looked at. */
void hca_host_faults_set_plan(HcaHostFaults *faults, const HcaFaultPlan *plan,
                              unsigned kept);

/* Rule @i, of a CARD, has been done; @what: for people. */
void hca_host_faults_did(HcaHostFaults *faults, unsigned i, uint32_t what);

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

/* state.c: what is saved. */
extern const HcaSection hca_host_faults_section, hca_fault_rule_section;

#endif /* HCA_HOST_FAULTS_H */
