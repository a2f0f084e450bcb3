/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The turn of a card's clock: who works, for how long, and who gets a packet. */
#ifndef HCA_DISPATCH_H
#define HCA_DISPATCH_H

#include "card.h"

/* One turn; true if there is more to do now. */
bool hca_dispatch_run(Hca *hca);

/* Tell the driver if the port went to ACTIVE or DOWN. */
void hca_dispatch_watch_port(Hca *hca);

/* Have the host call again when the next timer ends. */
void hca_dispatch_set_alarm(Hca *hca);

/* There is a place for a packet that waits for memory. May be called again. */
void hca_dispatch_be_late(Hca *hca);
void hca_dispatch_cleanup(Hca *hca);
/* A packet that waits is lost: any, or one that came by the cable. */
void hca_dispatch_forget(Hca *hca);
void hca_dispatch_cable_gone(Hca *hca);
/* HcaV2pAnswerFn; @opaque is the card. */
void hca_dispatch_answered(void *opaque, HcaV2pAsk *ask);

/* HcaQpStateFn: the engines follow. @opaque is the card. */
void hca_dispatch_qp_state(void *opaque, HcaQp *qp, uint8_t old_state);

/* What is saved of it. */
extern const HcaSection hca_arrived_section;

#endif /* HCA_DISPATCH_H */
