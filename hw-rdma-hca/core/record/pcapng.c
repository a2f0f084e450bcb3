/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wireshark knows no link type for an InfiniBand packet alone, but decodes
 * records of Endace's Extensible Record Format of type 21, a header of 16
 * bytes and the packet.
 */
#include "pcapng.h"

#include <string.h>

#include "../wire/bytes.h"

#define NS_PER_SECOND 1000000000

#define BLOCK_SECTION 0x0a0d0d0a
#define BLOCK_INTERFACE 1
#define BLOCK_PACKET 6
#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define SECTION_LENGTH_UNKNOWN UINT64_MAX

#define OPT_END 0
#define OPT_COMMENT 1
#define OPT_SHB_USERAPPL 4
#define OPT_IF_NAME 2
#define OPT_IF_TSRESOL 9
#define OPT_EPB_FLAGS 2

#define ERF_SIZE 16
#define ERF_TYPE_INFINIBAND 21
#define ERF_VARYING_LENGTH 0x04

/* Pieces of a block */

static void put_le16(GByteArray *file, uint16_t value)
{
    value = GUINT16_TO_LE(value);
    g_byte_array_append(file, (const guint8 *)&value, sizeof(value));
}

static void put_le32(GByteArray *file, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    g_byte_array_append(file, (const guint8 *)&value, sizeof(value));
}

static void put_le64(GByteArray *file, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    g_byte_array_append(file, (const guint8 *)&value, sizeof(value));
}

/* Blocks begin at multiples of 4 bytes, and so does each of their parts. */
static void pad(GByteArray *file)
{
    static const uint8_t zero[4];

    g_byte_array_append(file, zero, -file->len & 3);
}

static void put_option(GByteArray *file, uint16_t code, const void *value,
                       uint16_t len)
{
    put_le16(file, code);
    put_le16(file, len);
    g_byte_array_append(file, value, len);
    pad(file);
}

static guint begin_block(GByteArray *file, uint32_t type)
{
    guint block = file->len;

    put_le32(file, type);
    put_le32(file, 0); /* its length, once that is known */
    return block;
}

void hca_pcapng_end(GByteArray *file, guint block)
{
    uint32_t len;

    put_option(file, OPT_END, "", 0);
    len = GUINT32_TO_LE(file->len + sizeof(len) - block);
    memcpy(file->data + block + sizeof(len), &len, sizeof(len));
    g_byte_array_append(file, (const guint8 *)&len, sizeof(len));
}

void hca_pcapng_comment(GByteArray *file, const char *comment)
{
    put_option(file, OPT_COMMENT, comment,
               strnlen(comment, HCA_PCAPNG_MAX_COMMENT));
}

/* Blocks */

guint hca_pcapng_begin_section(GByteArray *file, const char *program)
{
    guint block = begin_block(file, BLOCK_SECTION);

    put_le32(file, BYTE_ORDER_MAGIC);
    put_le16(file, 1); /* version 1.0 */
    put_le16(file, 0);
    put_le64(file, SECTION_LENGTH_UNKNOWN);
    put_option(file, OPT_SHB_USERAPPL, program, strlen(program));
    return block;
}

guint hca_pcapng_begin_interface(GByteArray *file, HcaPcapngLinkType type,
                                 const char *name)
{
    static const uint8_t nanoseconds = 9;
    guint block = begin_block(file, BLOCK_INTERFACE);

    put_le16(file, type);
    put_le16(file, 0);
    put_le32(file, 0); /* no limit to the length of a packet */
    put_option(file, OPT_IF_NAME, name, strlen(name));
    put_option(file, OPT_IF_TSRESOL, &nanoseconds, sizeof(nanoseconds));
    return block;
}

/* The time is little-endian, in 2^-32 seconds; lengths are big-endian. */
static void put_erf(GByteArray *file, const HcaPcapngPacket *packet)
{
    uint8_t rest[8] = { ERF_TYPE_INFINIBAND, ERF_VARYING_LENGTH };
    uint64_t now = packet->at_ns;

    put_le32(file, ((now % NS_PER_SECOND) << 32) / NS_PER_SECOND);
    put_le32(file, now / NS_PER_SECOND);
    put_be16(rest + 2, ERF_SIZE + packet->kept);
    put_be16(rest + 6, packet->len);
    g_byte_array_append(file, rest, sizeof(rest));
}

guint hca_pcapng_begin_packet(GByteArray *file, HcaPcapngLinkType type,
                              const HcaPcapngPacket *packet)
{
    unsigned header = type == HCA_PCAPNG_IB ? ERF_SIZE : 0;
    uint32_t way = GUINT32_TO_LE(packet->way);
    uint64_t now = packet->at_ns;
    guint block = begin_block(file, BLOCK_PACKET);

    put_le32(file, 0); /* the interface */
    put_le32(file, now >> 32);
    put_le32(file, now);
    put_le32(file, header + packet->kept);
    put_le32(file, header + packet->len);
    if (header) {
        put_erf(file, packet);
    }
    g_byte_array_append(file, packet->data, packet->kept);
    pad(file);
    put_option(file, OPT_EPB_FLAGS, &way, sizeof(way));
    return block;
}
