/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pcapng: blocks of that format (IETF draft-ietf-opsawg-pcapng): one section,
 * its interfaces, and an Enhanced Packet Block for each packet. All numbers are
 * little-endian, on any host.
 */
#ifndef HCA_RECORD_PCAPNG_H
#define HCA_RECORD_PCAPNG_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* How packets lie in the file: link types of pcap. */
typedef enum HcaPcapngLinkType {
    HCA_PCAPNG_ETHERNET = 1,
    HCA_PCAPNG_IB = 197, /* ERF, records of type 21 (InfiniBand) */
} HcaPcapngLinkType;

typedef enum HcaPcapngWay {
    HCA_PCAPNG_NO_WAY, /* it did not pass the interface */
    HCA_PCAPNG_INBOUND,
    HCA_PCAPNG_OUTBOUND,
} HcaPcapngWay;

typedef struct HcaPcapngPacket {
    HcaPcapngWay way;
    int64_t at_ns;
    const uint8_t *data; /* the first @kept bytes of @len */
    uint32_t kept;
    uint32_t len;
} HcaPcapngPacket;

/* A longer comment is cut. */
#define HCA_PCAPNG_MAX_COMMENT 256

/* A packet's block without its bytes and comments, and a comment: at most. */
#define HCA_PCAPNG_PACKET_SIZE 72
#define HCA_PCAPNG_COMMENT_SIZE (4 + HCA_PCAPNG_MAX_COMMENT)

/*
 * Append to @file. Each block begins with hca_pcapng_begin_*(), may have
 * comments, and ends with hca_pcapng_end(), which is given what the former
 * returned: where the block begins.
 */
guint hca_pcapng_begin_section(GByteArray *file, const char *program);
guint hca_pcapng_begin_interface(GByteArray *file, HcaPcapngLinkType type,
                                 const char *name);
guint hca_pcapng_begin_packet(GByteArray *file, HcaPcapngLinkType type,
                              const HcaPcapngPacket *packet);
void hca_pcapng_comment(GByteArray *file, const char *comment);
void hca_pcapng_end(GByteArray *file, guint block);

#endif /* HCA_RECORD_PCAPNG_H */
