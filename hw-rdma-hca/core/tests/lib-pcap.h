/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets to a capture file that tshark and others read. */
#ifndef LIB_PCAP_H
#define LIB_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Pcap Pcap;

/*
 * Where a test leaves a capture: $HCA_CAPTURE, or @name in the build folder of
 * the tests, be it said by the environment or where the program is. g_free() it.
 */
char *pcap_path(const char *name);

/* Create @path for packets of an IB link. Aborts the test if it cannot. */
Pcap *pcap_create(const char *path);

/* The same for Ethernet frames without FCS. */
Pcap *pcap_create_ethernet(const char *path);

/* Add a packet, LRH to VCRC, or a frame, seen at @time_ns. */
void pcap_add(Pcap *pcap, int64_t time_ns, const void *packet, size_t len);

/* Close the file. Aborts the test if not all could be written. */
void pcap_close(Pcap *pcap);

#endif /* LIB_PCAP_H */
