/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules of a plan of faults that need nothing to happen but have their time
 * (HCA_FAULT_CARD): events that are raised, a link that goes down and comes up.
 */
#ifndef HCA_SCRIPT_H
#define HCA_SCRIPT_H

#include "card.h"

typedef struct HcaScript HcaScript;

HcaScript *hca_script_new(void);
void hca_script_free(HcaScript *script);
/* The card's plan has become another one, of which @kept rules go on. */
void hca_script_begin(Hca *hca, unsigned kept);
/* Do what is due. True: the link has gone down, or may have. */
bool hca_script_run(Hca *hca);
/* When it has to be called; INT64_MAX: not at all. */
int64_t hca_script_deadline(const Hca *hca);

/* What is saved of it. */
extern const HcaSection hca_script_section;

#endif /* HCA_SCRIPT_H */
