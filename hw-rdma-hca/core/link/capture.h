/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture: what passes the cable, as a pcapng file. Each packet as it was on
 * the cable, its direction, the card's virtual time, and a comment on what the
 * fault injector did to it.
 */
#ifndef HCA_LINK_CAPTURE_H
#define HCA_LINK_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../host.h"

typedef struct HcaCapture HcaCapture;

/* Nothing is captured until hca_capture_start(), which writes the header. */
HcaCapture *hca_capture_new(const HcaHostOps *ops, void *opaque);
void hca_capture_free(HcaCapture *capture);
void hca_capture_start(HcaCapture *capture);
bool hca_capture_is_on(const HcaCapture *capture);

/* @comment: NULL if there is nothing to say. */
void hca_capture_packet(HcaCapture *capture, bool sent, const uint8_t *packet,
                        size_t len, const char *comment);

/* Hand what is buffered to the host. */
void hca_capture_flush(HcaCapture *capture);

#endif /* HCA_LINK_CAPTURE_H */
