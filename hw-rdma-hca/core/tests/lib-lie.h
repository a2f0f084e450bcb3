/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States that lie: a card is saved while it works, somebody changes what was saved,
 * and the card is to go on from there. What it refuses leaves a card that was reset.
 * The cable is not tapped any more: such a card may send what is no frame.
 */
#ifndef LIB_LIE_H
#define LIB_LIE_H

#include "lib-host.h"
#include "lib-input.h"

/* Of some sections members or the number of records. Whether it was taken. */
bool lie_in_state(Input *in, Host *host);
/* Of what is sent some bytes: that is no state, or one that lies. */
void lie_in_bytes(Input *in, Host *host);

/*
 * The same of what @host's card is now, in children of this process that nobody
 * hears of if all is well: a card that takes a lie, or the truth, comes to rest, can
 * be looked at, loads what it saves itself, and is reset as any other. Else the test
 * fails. A lab at work calls it (HCA_LIES in the environment).
 */
void lie_in_children(Host *host);

#endif /* LIB_LIE_H */
