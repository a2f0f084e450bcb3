/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pcapng files, taken apart block by block (IETF draft-ietf-opsawg-pcapng), by
 * the format alone: nothing here is shared with who writes them. Whatever is not
 * as the format has it aborts the test.
 */
#ifndef LIB_PCAPNG_H
#define LIB_PCAPNG_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum PcapngType {
    PCAPNG_SECTION = 0x0a0d0d0a,
    PCAPNG_INTERFACE = 1,
    PCAPNG_PACKET = 6, /* Enhanced Packet Block */
} PcapngType;

enum {                  /* options */
    PCAPNG_COMMENT = 1, /* of any block */
    PCAPNG_INTERFACE_NAME = 2,
    PCAPNG_PACKET_FLAGS = 2,
    PCAPNG_PROGRAM = 4, /* of a section */
    PCAPNG_TIME_UNIT = 9,
};

/* A block of the file, which has to live as long. */
typedef struct PcapngBlock {
    PcapngType type;
    const uint8_t *body, *options, *end; /* of the options */
} PcapngBlock;

typedef struct PcapngPacket {
    uint32_t interface;
    uint64_t time;       /* in the interface's unit */
    const uint8_t *data; /* the first @kept bytes of @len */
    uint32_t kept, len;
} PcapngPacket;

uint32_t pcapng_le16(const uint8_t *p);
uint32_t pcapng_le32(const uint8_t *p);

/* The block at *@at, behind which *@at is then; false at the end. */
bool pcapng_next(const GByteArray *file, size_t *at, PcapngBlock *block);

/* The @nth option of that @code, of *@len bytes; NULL: there is none. */
const uint8_t *pcapng_option(const PcapngBlock *block, unsigned code,
                             unsigned nth, size_t *len);

/* The same where there is one at the most. */
const uint8_t *pcapng_only_option(const PcapngBlock *block, unsigned code,
                                  size_t *len);

/* @block is a section of this @program, of version 1.0. */
void pcapng_check_section(const PcapngBlock *block, const char *program);

/* @block is an interface with nanoseconds and packets of any length. */
void pcapng_check_interface(const PcapngBlock *block, unsigned link_type,
                            const char *name);

/* @block has to be a packet. */
PcapngPacket pcapng_packet(const PcapngBlock *block);

#endif /* LIB_PCAPNG_H */
