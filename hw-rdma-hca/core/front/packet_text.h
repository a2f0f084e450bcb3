/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet of which the first bytes are known, in words. */
#ifndef HCA_FRONT_PACKET_TEXT_H
#define HCA_FRONT_PACKET_TEXT_H

#include <glib.h>

#include "../wire/wire.h"

/* Append what @packet, of @len bytes, is, as far as its first @kept say it. */
void hca_packet_text(GString *text, const HcaEncap *encap,
                     const uint8_t *packet, size_t kept, size_t len);

#endif /* HCA_FRONT_PACKET_TEXT_H */
