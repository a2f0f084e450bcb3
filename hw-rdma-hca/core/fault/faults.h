/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of a plan at work: for whoever holds things against them. Which
 * things a rule matches is for the caller to say.
 */
#ifndef HCA_FAULTS_H
#define HCA_FAULTS_H

#include <glib.h>

#include "../host.h"
#include "../state.h"
#include "chance.h"
#include "fault.h"

/* How far a rule is. */
typedef struct HcaFaultCount {
    uint64_t matched;
    uint32_t faults;
    int64_t begun; /* ns; of a rule that has its time */
} HcaFaultCount;

typedef struct HcaFaults {
    uint32_t places; /* that have a rule: bit n is HcaFaultPlace n */
    HcaHost host;
    HcaFaultPlan plan;
    HcaFaultCount state[HCA_FAULT_MAX_RULES];
} HcaFaults;

/*
 * @plan from now on, by @host's clock. Its first @kept rules are those of the plan
 * before it, and go on; the counts of others are 0.
 */
void hca_faults_begin(HcaFaults *faults, const HcaHost *host,
                      const HcaFaultPlan *plan, unsigned kept);

/* Whether rule @i takes a thing that it matches, with @chance for its own. */
bool hca_faults_takes(HcaFaults *faults, unsigned i, HcaChance *chance);

/* Rule @i has been done. */
void hca_faults_done(HcaFaults *faults, unsigned i);

/* For people: a place, what is done there... */
const char *hca_fault_place_text(uint64_t place);
const char *hca_fault_action_text(uint64_t action);
/* ...and what has been done to a packet. Of what there is not, "?". */
const char *hca_fault_done_word(uint64_t action);

/* Of a packet with this AETH. */
HcaFaultKind hca_fault_ack_kind(uint8_t syndrome);

static inline bool hca_faults_at(const HcaFaults *faults, HcaFaultPlace place)
{
    return faults->places >> place & 1;
}

/* The rules and how far they are, as records of this structure; see state.h. */
extern const HcaStruct hca_fault_rule_struct;
void hca_faults_save(const HcaFaults *faults, GArray *records);
bool hca_faults_load(HcaFaults *faults, const HcaHost *host,
                     const void *records, uint32_t n, HcaStateError *error);
/* Of what else others have. */
extern const HcaStruct hca_chance_struct;
extern const HcaStruct hca_fault_down_struct;

#endif /* HCA_FAULTS_H */
