/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks of the pcapng format (IETF draft-ietf-opsawg-pcapng): one section,
 * one interface, then an Enhanced Packet Block for each packet. All numbers
 * are little-endian, on any host.
 *
 * Wireshark knows no link type for an InfiniBand packet alone, but decodes
 * records of Endace's Extensible Record Format of type 21, a header of 16
 * bytes and the packet.
 */
#include "capture.h"

#include <glib.h>
#include <string.h>

#include "../wire/bytes.h"
#include "link.h"

#define BUFFER_SIZE (256 * 1024)
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
#define EPB_INBOUND 1
#define EPB_OUTBOUND 2

#define ERF_SIZE 16
#define ERF_TYPE_INFINIBAND 21
#define ERF_VARYING_LENGTH 0x04

#define MAX_COMMENT 256
/* Fixed part, record, three options and the length again. */
#define MAX_BLOCK                                                              \
    (28 + ERF_SIZE + HCA_LINK_MAX_PACKET + 8 + 4 + MAX_COMMENT + 4 + 4)

struct HcaCapture {
    const HcaHostOps *ops;
    void *opaque;
    bool on;
    bool full; /* it ended at its limit */
    HcaCaptureLinkType link_type;
    uint64_t max_bytes; /* 0: no limit */
    uint64_t room;      /* bytes that the file may still have */
    HcaCaptureCounters counters;
    size_t block; /* where the block in hand begins */
    size_t used;
    uint8_t *buffer; /* BUFFER_SIZE bytes, once it has started */
};

HcaCapture *hca_capture_new(const HcaHostOps *ops, void *opaque)
{
    HcaCapture *capture = g_new0(HcaCapture, 1);

    capture->ops = ops;
    capture->opaque = opaque;
    return capture;
}

void hca_capture_free(HcaCapture *capture)
{
    if (capture) {
        hca_capture_flush(capture);
        g_free(capture->buffer);
        g_free(capture);
    }
}

bool hca_capture_is_on(const HcaCapture *capture)
{
    return capture->on;
}

bool hca_capture_is_watching(const HcaCapture *capture)
{
    return capture->on || capture->full;
}

void hca_capture_flush(HcaCapture *capture)
{
    if (!capture->used) {
        return;
    }
    if (capture->ops->capture_write(capture->opaque, capture->buffer,
                                    capture->used)) {
        capture->counters.bytes += capture->used;
    } else {
        capture->on = false;
        capture->ops->warn(capture->opaque,
                           "the capture ends: its file takes no more");
    }
    capture->used = 0;
}

/* Pieces of a block */

static void put(HcaCapture *capture, const void *data, size_t len)
{
    memcpy(capture->buffer + capture->used, data, len);
    capture->used += len;
}

static void put_le16(HcaCapture *capture, uint16_t value)
{
    value = GUINT16_TO_LE(value);
    put(capture, &value, sizeof(value));
}

static void put_le32(HcaCapture *capture, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    put(capture, &value, sizeof(value));
}

static void put_le64(HcaCapture *capture, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    put(capture, &value, sizeof(value));
}

static void pad(HcaCapture *capture)
{
    static const uint8_t zero[4];

    put(capture, zero, -capture->used & 3);
}

static void put_option(HcaCapture *capture, uint16_t code, const void *value,
                       size_t len)
{
    put_le16(capture, code);
    put_le16(capture, len);
    put(capture, value, len);
    pad(capture);
}

static void begin_block(HcaCapture *capture, uint32_t type)
{
    capture->block = capture->used;
    put_le32(capture, type);
    put_le32(capture, 0); /* its length, once that is known */
}

static void end_block(HcaCapture *capture)
{
    uint32_t len;

    put_option(capture, OPT_END, "", 0);
    len = GUINT32_TO_LE(capture->used + sizeof(len) - capture->block);
    memcpy(capture->buffer + capture->block + sizeof(len), &len, sizeof(len));
    put(capture, &len, sizeof(len));
}

/* Blocks */

static void put_section(HcaCapture *capture)
{
    static const char program[] = "rdma-hca";

    begin_block(capture, BLOCK_SECTION);
    put_le32(capture, BYTE_ORDER_MAGIC);
    put_le16(capture, 1); /* version 1.0 */
    put_le16(capture, 0);
    put_le64(capture, SECTION_LENGTH_UNKNOWN);
    put_option(capture, OPT_SHB_USERAPPL, program, strlen(program));
    end_block(capture);
}

static void put_interface(HcaCapture *capture)
{
    static const char name[] = "cable";
    static const uint8_t nanoseconds = 9;

    begin_block(capture, BLOCK_INTERFACE);
    put_le16(capture, capture->link_type);
    put_le16(capture, 0);
    put_le32(capture, 0); /* no limit to the length of a packet */
    put_option(capture, OPT_IF_NAME, name, strlen(name));
    put_option(capture, OPT_IF_TSRESOL, &nanoseconds, sizeof(nanoseconds));
    end_block(capture);
}

void hca_capture_limit(HcaCapture *capture, uint64_t max_bytes)
{
    capture->max_bytes = max_bytes;
}

static uint64_t room_behind(const HcaCapture *capture, size_t header)
{
    if (!capture->max_bytes) {
        return UINT64_MAX;
    }
    return capture->max_bytes - MIN(capture->max_bytes, header);
}

void hca_capture_start(HcaCapture *capture, HcaCaptureLinkType link_type)
{
    if (!capture->ops->capture_write) {
        return;
    }
    hca_capture_flush(capture);
    if (!capture->buffer) {
        capture->buffer = g_malloc(BUFFER_SIZE);
    }
    capture->on = true;
    capture->full = false;
    capture->link_type = link_type;
    put_section(capture);
    put_interface(capture);
    capture->room = room_behind(capture, capture->used);
    hca_capture_flush(capture);
}

void hca_capture_stop(HcaCapture *capture)
{
    hca_capture_flush(capture);
    capture->on = false;
    capture->full = false;
}

/* The time is little-endian, in 2^-32 seconds; lengths are big-endian. */
static void put_erf(HcaCapture *capture, uint64_t now, size_t len)
{
    uint8_t rest[8] = { ERF_TYPE_INFINIBAND, ERF_VARYING_LENGTH };

    put_le32(capture, ((now % NS_PER_SECOND) << 32) / NS_PER_SECOND);
    put_le32(capture, now / NS_PER_SECOND);
    put_be16(rest + 2, ERF_SIZE + len);
    put_be16(rest + 6, len);
    put(capture, rest, sizeof(rest));
}

static void put_packet_options(HcaCapture *capture, bool sent,
                               const char *comment)
{
    uint32_t flags = GUINT32_TO_LE(sent ? EPB_OUTBOUND : EPB_INBOUND);

    put_option(capture, OPT_EPB_FLAGS, &flags, sizeof(flags));
    if (comment) {
        put_option(capture, OPT_COMMENT, comment,
                   strnlen(comment, MAX_COMMENT));
    }
}

/* The block in hand does not fit into the file: it is taken back. */
static void end_at_limit(HcaCapture *capture)
{
    capture->used = capture->block;
    hca_capture_flush(capture);
    capture->on = false;
    capture->full = true;
    capture->ops->warn(capture->opaque,
                       "the capture ends: its file has reached its size");
}

static void put_packet(HcaCapture *capture, bool sent, const uint8_t *packet,
                       size_t len, const char *comment)
{
    bool erf = capture->link_type == HCA_CAPTURE_IB;
    size_t record_len = len + (erf ? ERF_SIZE : 0);
    uint64_t now;

    begin_block(capture, BLOCK_PACKET);
    now = capture->ops->clock_ns(capture->opaque);
    put_le32(capture, 0); /* the interface */
    put_le32(capture, now >> 32);
    put_le32(capture, now);
    put_le32(capture, record_len);
    put_le32(capture, record_len);
    if (erf) {
        put_erf(capture, now, len);
    }
    put(capture, packet, len);
    pad(capture);
    put_packet_options(capture, sent, comment);
    end_block(capture);
}

void hca_capture_packet(HcaCapture *capture, bool sent, const uint8_t *packet,
                        size_t len, const char *comment)
{
    size_t size;

    if (BUFFER_SIZE - capture->used < MAX_BLOCK) {
        hca_capture_flush(capture);
    }
    if (capture->on) {
        put_packet(capture, sent, packet, len, comment);
        size = capture->used - capture->block;
        if (size <= capture->room) {
            capture->room -= size;
            capture->counters.packets++;
            return;
        }
        end_at_limit(capture);
    }
    capture->counters.missed += capture->full;
}

const HcaCaptureCounters *hca_capture_counters(const HcaCapture *capture)
{
    return &capture->counters;
}

void hca_capture_reset_counters(HcaCapture *capture)
{
    memset(&capture->counters, 0, sizeof(capture->counters));
}
