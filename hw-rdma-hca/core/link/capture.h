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
#include "../record/pcapng.h"

typedef struct HcaCapture HcaCapture;

typedef struct HcaCaptureCounters {
    uint64_t packets;
    uint64_t bytes;  /* of the file */
    uint64_t missed; /* packets that came after the file was full */
} HcaCaptureCounters;

/* Nothing is captured until hca_capture_start(), which writes the header. */
HcaCapture *hca_capture_new(const HcaHost *host);
/* Hands over what is buffered. */
void hca_capture_free(HcaCapture *capture);
/*
 * A packet that would make the file longer than @max_bytes (0: no limit, as at
 * first) ends the capture; it and those behind it are counted. For captures
 * that start afterwards.
 */
void hca_capture_limit(HcaCapture *capture, uint64_t max_bytes);
void hca_capture_start(HcaCapture *capture, HcaPcapngLinkType link_type);
/* It ends, and what is buffered is handed over; nothing is counted any more. */
void hca_capture_stop(HcaCapture *capture);
/* Packets are to be handed over: to be written, or to be counted. */
bool hca_capture_is_watching(const HcaCapture *capture);
/* They are written. */
bool hca_capture_is_on(const HcaCapture *capture);

/* @comment: NULL if there is nothing to say. */
void hca_capture_packet(HcaCapture *capture, bool sent, const uint8_t *packet,
                        size_t len, const char *comment);

/* Something that the next packet is to have a comment on, beside its own. */
void hca_capture_note(HcaCapture *capture, const char *text);

/* Hand what is buffered to the host. */
void hca_capture_flush(HcaCapture *capture);

const HcaCaptureCounters *hca_capture_counters(const HcaCapture *capture);
void hca_capture_reset_counters(HcaCapture *capture);

#endif /* HCA_LINK_CAPTURE_H */
