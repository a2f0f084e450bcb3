/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures as files. A link gives whole blocks of pcapng for a file of its own
 * (core/link/capture.c). Here several ports may write to one file: it has one
 * section, and an interface for each port, which is added with the port's first
 * block; what the link says of those is left out, and its packets get the
 * number of their interface.
 */
#include <errno.h>
#include <stdio.h>

#include "../core/record/pcapng.h"
#include "program.h"

#define BLOCK_PACKET 6
/* Type, length, ... and the length once more. */
#define BLOCK_FRAME 12

struct SwCapture {
    unsigned refs;
    FILE *file;
    char *path;
    uint64_t room; /* bytes that may still be written */
    bool full;
    unsigned interfaces;
    unsigned number[HCA_SWITCH_MAX_PORTS + 1]; /* of a port, from 1 on */
};

/* Bytes */

static uint32_t get_le32(const uint8_t *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return GUINT32_FROM_LE(value);
}

/* False: the file takes no more. */
static bool put(SwCapture *capture, const uint8_t *data, size_t len)
{
    if (capture->room < len) {
        return false;
    }
    capture->room -= len;
    return fwrite(data, 1, len, capture->file) == len;
}

/* Blocks */

/* @block of @out is its only one. */
static bool end(SwCapture *capture, GByteArray *out, guint block)
{
    bool good;

    hca_pcapng_end(out, block);
    good = put(capture, out->data, out->len);
    g_byte_array_unref(out);
    return good;
}

static bool put_section(SwCapture *capture)
{
    GByteArray *out = g_byte_array_new();

    return end(capture, out, hca_pcapng_begin_section(out, "hca-switch"));
}

static bool put_interface(SwCapture *capture, unsigned port)
{
    GByteArray *out = g_byte_array_new();
    char name[16];

    g_snprintf(name, sizeof(name), "port %u", port);
    return end(capture, out,
               hca_pcapng_begin_interface(out, HCA_PCAPNG_IB, name));
}

static bool put_packet(SwCapture *capture, unsigned port, const uint8_t *block,
                       size_t len)
{
    uint32_t interface = GUINT32_TO_LE(capture->number[port] - 1);

    if (capture->room < len) {
        return false;
    }
    return put(capture, block, 8) &&
           put(capture, (void *)&interface, sizeof(interface)) &&
           put(capture, block + BLOCK_FRAME, len - BLOCK_FRAME);
}

static bool put_blocks(SwCapture *capture, unsigned port, const uint8_t *data,
                       size_t len)
{
    while (len >= BLOCK_FRAME) {
        size_t size = get_le32(data + 4);

        if (size < BLOCK_FRAME || size > len) {
            return false;
        }
        if (get_le32(data) == BLOCK_PACKET &&
            !put_packet(capture, port, data, size)) {
            return false;
        }
        data += size;
        len -= size;
    }
    return true;
}

static bool add_port(SwCapture *capture, unsigned port)
{
    if (capture->number[port]) {
        return true;
    }
    capture->number[port] = ++capture->interfaces;
    return put_interface(capture, port);
}

/* Files */

/* Told once, however many ports write to it. */
static void set_full(SwCapture *capture)
{
    if (!capture->full) {
        capture->full = true;
        sw_complain("the capture %s ends: it takes no more", capture->path);
    }
}

SwCapture *sw_capture_open(const char *path, uint64_t max_bytes, GError **error)
{
    FILE *file = fopen(path, "wbe");
    SwCapture *capture;

    if (!file) {
        int saved = errno;

        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(saved),
                    "cannot write to %s: %s", path, g_strerror(saved));
        return NULL;
    }
    capture = g_new0(SwCapture, 1);
    capture->refs = 1;
    capture->file = file;
    capture->path = g_strdup(path);
    capture->room = max_bytes ? max_bytes : UINT64_MAX;
    if (!put_section(capture)) {
        set_full(capture);
    }
    return capture;
}

SwCapture *sw_capture_ref(SwCapture *capture)
{
    capture->refs++;
    return capture;
}

void sw_capture_unref(SwCapture *capture)
{
    if (capture && --capture->refs == 0) {
        fclose(capture->file);
        g_free(capture->path);
        g_free(capture);
    }
}

bool sw_capture_write(SwCapture *capture, unsigned port, const void *data,
                      size_t len)
{
    if (capture->full) {
        return false;
    }
    if (!add_port(capture, port) || !put_blocks(capture, port, data, len)) {
        set_full(capture);
    }
    fflush(capture->file);
    return !capture->full;
}
