/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-frames.h"

#include <string.h>

#define MIN_FRAME 60u

CableFate frames_take(void *sent, unsigned from, uint8_t *packet, size_t len)
{
    if (from == 0) {
        GByteArray *frame = g_byte_array_new();

        g_byte_array_append(frame, packet, len);
        g_queue_push_tail(sent, frame);
    }
    return CABLE_DROP;
}

static void frame_unref(gpointer frame)
{
    g_byte_array_unref(frame);
}

void frames_clear(GQueue *sent)
{
    g_queue_clear_full(sent, frame_unref);
}

void frames_expect(GQueue *sent, const uint8_t *frame, size_t len)
{
    static const uint8_t zeros[MIN_FRAME];
    GByteArray *next = g_queue_pop_head(sent);

    g_assert_nonnull(next);
    g_assert_cmpuint(next->len, ==, MAX(len, MIN_FRAME));
    g_assert_cmpmem(next->data, len, frame, len);
    g_assert_cmpmem(next->data + len, next->len - len, zeros, next->len - len);
    g_byte_array_unref(next);
}
