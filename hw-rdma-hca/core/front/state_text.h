/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the card's queues hold, for people. */
#ifndef HCA_FRONT_STATE_TEXT_H
#define HCA_FRONT_STATE_TEXT_H

#include <stdint.h>

#include "record_text.h"

/*
 * A line for each QP that is not in RST, each CQ, SRQ and EQ: its state, and
 * what is in it. Reads no memory of the machine's, and counts nothing.
 */
void hca_queues_visit(const Hca *hca, HcaLineFn *fn, void *opaque);

/* The names of an HcaQpState and of an HcaDropReason; "?": there is none. */
const char *hca_qp_state_text(uint64_t state);
const char *hca_drop_reason_text(uint64_t reason);

#endif /* HCA_FRONT_STATE_TEXT_H */
