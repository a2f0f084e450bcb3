/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the flight recorder (record/recorder.h) holds, for people and tools. */
#ifndef HCA_FRONT_RECORD_TEXT_H
#define HCA_FRONT_RECORD_TEXT_H

#include <glib.h>

typedef struct Hca Hca;

/* One line of a text, without its end; valid during the call. */
typedef void HcaLineFn(void *opaque, const char *line);

/* A line for each event or packet, the oldest first; none without a recorder. */
void hca_recorder_visit(const Hca *hca, HcaLineFn *fn, void *opaque);

/*
 * The same as a pcapng file, which the caller frees: an event is a comment of
 * the packet in front of it, or of the interface. NULL without a recorder.
 */
GByteArray *hca_recorder_pcapng(const Hca *hca);

#endif /* HCA_FRONT_RECORD_TEXT_H */
