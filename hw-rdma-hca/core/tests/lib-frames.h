/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet frames that card 0 has sent, which a test keeps and looks at. */
#ifndef LIB_FRAMES_H
#define LIB_FRAMES_H

#include "lib-host.h"

/* A CableTap: frames of card 0 go to the GQueue @sent, and nowhere else. */
CableFate frames_take(void *sent, unsigned from, uint8_t *packet, size_t len);
void frames_clear(GQueue *sent);
/* The next one is this, filled up with zeros to the least size. */
void frames_expect(GQueue *sent, const uint8_t *frame, size_t len);

#endif /* LIB_FRAMES_H */
