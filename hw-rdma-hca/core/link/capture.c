/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What passes the cable, gathered in a buffer and handed over in large pieces. */
#include "capture.h"

#include <string.h>

#include "link.h"

#define BUFFER_SIZE (256 * 1024)
#define MAX_BLOCK                                                              \
    (HCA_PCAPNG_PACKET_SIZE + HCA_LINK_MAX_PACKET + 2 * HCA_PCAPNG_COMMENT_SIZE)

struct HcaCapture {
    HcaHost host;
    bool on;
    bool full; /* it ended at its limit */
    HcaPcapngLinkType link_type;
    uint64_t max_bytes; /* 0: no limit */
    uint64_t room;      /* bytes that the file may still have */
    HcaCaptureCounters counters;
    char note[HCA_PCAPNG_MAX_COMMENT + 1]; /* for the next packet */
    GByteArray *buffer; /* room for BUFFER_SIZE bytes, once it has started */
};

HcaCapture *hca_capture_new(const HcaHost *host)
{
    HcaCapture *capture = g_new0(HcaCapture, 1);

    capture->host = *host;
    return capture;
}

void hca_capture_free(HcaCapture *capture)
{
    if (capture) {
        hca_capture_flush(capture);
        if (capture->buffer) {
            g_byte_array_unref(capture->buffer);
        }
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
    GByteArray *buffer = capture->buffer;

    if (!buffer || !buffer->len) {
        return;
    }
    if (capture->host.ops->capture_write(capture->host.opaque, buffer->data,
                                         buffer->len)) {
        capture->counters.bytes += buffer->len;
    } else {
        capture->on = false;
        capture->host.ops->warn(capture->host.opaque,
                                "the capture ends: its file takes no more");
    }
    g_byte_array_set_size(buffer, 0);
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

static void put_header(GByteArray *file, HcaPcapngLinkType link_type)
{
    hca_pcapng_end(file, hca_pcapng_begin_section(file, "rdma-hca"));
    hca_pcapng_end(file, hca_pcapng_begin_interface(file, link_type, "cable"));
}

void hca_capture_start(HcaCapture *capture, HcaPcapngLinkType link_type)
{
    if (!capture->host.ops->capture_write) {
        return;
    }
    hca_capture_flush(capture);
    if (!capture->buffer) {
        capture->buffer = g_byte_array_sized_new(BUFFER_SIZE);
    }
    capture->on = true;
    capture->full = false;
    capture->note[0] = '\0';
    capture->link_type = link_type;
    put_header(capture->buffer, link_type);
    capture->room = room_behind(capture, capture->buffer->len);
    hca_capture_flush(capture);
}

void hca_capture_stop(HcaCapture *capture)
{
    hca_capture_flush(capture);
    capture->on = false;
    capture->full = false;
}

void hca_capture_note(HcaCapture *capture, const char *text)
{
    if (!capture->on) {
        return;
    }
    if (capture->note[0]) {
        g_strlcat(capture->note, "; ", sizeof(capture->note));
    }
    g_strlcat(capture->note, text, sizeof(capture->note));
}

/* What follows @end does not fit into the file: it is taken back. */
static void end_at_limit(HcaCapture *capture, guint end)
{
    g_byte_array_set_size(capture->buffer, end);
    hca_capture_flush(capture);
    capture->on = false;
    capture->full = true;
    capture->host.ops->warn(capture->host.opaque,
                            "the capture ends: its file has reached its size");
}

/* Returns where its block begins. */
static guint put_packet(HcaCapture *capture, bool sent, const uint8_t *packet,
                        size_t len, const char *comment)
{
    HcaPcapngPacket p = {
        .way = sent ? HCA_PCAPNG_OUTBOUND : HCA_PCAPNG_INBOUND,
        .at_ns = capture->host.ops->clock_ns(capture->host.opaque),
        .data = packet,
        .kept = len,
        .len = len,
    };
    guint block = hca_pcapng_begin_packet(capture->buffer, capture->link_type,
                                          &p);

    if (capture->note[0]) {
        hca_pcapng_comment(capture->buffer, capture->note);
        capture->note[0] = '\0';
    }
    if (comment) {
        hca_pcapng_comment(capture->buffer, comment);
    }
    hca_pcapng_end(capture->buffer, block);
    return block;
}

void hca_capture_packet(HcaCapture *capture, bool sent, const uint8_t *packet,
                        size_t len, const char *comment)
{
    if (capture->buffer && BUFFER_SIZE - capture->buffer->len < MAX_BLOCK) {
        hca_capture_flush(capture);
    }
    if (capture->on) {
        guint block = put_packet(capture, sent, packet, len, comment);
        size_t size = capture->buffer->len - block;

        if (size <= capture->room) {
            capture->room -= size;
            capture->counters.packets++;
            return;
        }
        end_at_limit(capture, block);
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
