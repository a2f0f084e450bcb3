/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that nobody has sent: of any content, with the right checks. */
#ifndef LIB_FRAME_H
#define LIB_FRAME_H

#include "../wire/wire.h"
#include "lib-fuzz.h"

#define FRAME_MOST 9216u

/*
 * Make CRCs, checksums and lengths of @frame right again, as far as there are
 * headers that tell where they are.
 */
void frame_mend(bool roce, uint8_t *frame, size_t len);
/* Change a few bytes as the input says, near the front mostly. */
void frame_edit(Fuzz *f, uint8_t *frame, size_t len);
/* The same to the headers of a good one, the rest being right; its length. */
size_t frame_spoil(Fuzz *f, uint8_t *frame, size_t len);
/* The network headers of a packet from side @from to its QP's peer. */
void frame_headers(Fuzz *f, unsigned from, unsigned which, unsigned gid,
                   HcaPacket *packet);
/* Headers, @packet->payload_len bytes of some payload, CRCs; the length. */
size_t frame_build(bool roce, HcaPacket *packet, uint8_t *frame);
/* A tap that lets all pass: what is injected comes between whole frames. */
CableFate frame_deliver(void *opaque, unsigned from, uint8_t *packet,
                        size_t len);
/* To the other side, behind the card's back. */
void frame_inject(Fuzz *f, unsigned from, const uint8_t *frame, size_t len);

#endif /* LIB_FRAME_H */
