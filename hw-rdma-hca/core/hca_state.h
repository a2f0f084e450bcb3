/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a card, to be saved and loaded by the machine that it sits in:
 * sections in their order (state.h). Between two turns alone, in the card's thread.
 */
#ifndef HCA_HCA_STATE_H
#define HCA_HCA_STATE_H

#include "hca.h"
#include "state.h"

/* Records of each section. */
typedef struct HcaState {
    GArray **records;
} HcaState;

unsigned hca_state_nsections(void);
const HcaSection *hca_state_section(unsigned i);

/*
 * What the card writes has arrived in memory, which does not change any more until
 * it runs again. Before memory is saved.
 */
void hca_settle(Hca *hca);

/* No records; what a card has. The caller's, to be freed. */
HcaState *hca_state_new(void);
HcaState *hca_save(Hca *hca);
void hca_state_free(HcaState *state);

/*
 * Have @hca, made with the same options, go on where the card was whose state this
 * is, at the same time of its clock. False: it is none; then the card has been reset,
 * and @error says why.
 */
bool hca_load(Hca *hca, const HcaState *state, HcaStateError *error);

#endif /* HCA_HCA_STATE_H */
