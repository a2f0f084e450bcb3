/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-cable.h"

#include <errno.h>
#include <string.h>

#include "../link/framing.h"

#define CAPACITY 65536

/* A packet, with its frame, that a tap holds back. */
typedef struct CableDelayed {
    int64_t due;
    unsigned from;
    GByteArray *frame;
} CableDelayed;

static void delayed_free(gpointer data)
{
    CableDelayed *delayed = data;

    g_byte_array_unref(delayed->frame);
    g_free(delayed);
}

static void cable_clear(Lab *lab)
{
    for (unsigned i = 0; i < 2; i++) {
        g_byte_array_set_size(lab->pipe[i], 0);
        lab->pipe_at[i] = 0;
        g_byte_array_set_size(lab->unparsed[i], 0);
        lab->want_write[i] = false;
    }
    g_queue_clear_full(&lab->delayed, delayed_free);
}

void cable_init(Lab *lab)
{
    lab->capacity = CAPACITY;
    lab->delay_ns = 20 * NS_PER_US;
    g_queue_init(&lab->delayed);
    for (unsigned i = 0; i < 2; i++) {
        lab->pipe[i] = g_byte_array_new();
        lab->unparsed[i] = g_byte_array_new();
    }
}

void cable_destroy(Lab *lab)
{
    cable_clear(lab);
    for (unsigned i = 0; i < 2; i++) {
        g_byte_array_unref(lab->pipe[i]);
        g_byte_array_unref(lab->unparsed[i]);
    }
}

static size_t pipe_level(const Lab *lab, unsigned from)
{
    return lab->pipe[from]->len - lab->pipe_at[from];
}

static size_t pipe_room(const Lab *lab, unsigned from)
{
    size_t used = pipe_level(lab, from) + lab->unparsed[from]->len;

    return used < lab->capacity ? lab->capacity - used : 0;
}

static void pipe_append(Lab *lab, unsigned from, const uint8_t *data,
                        size_t len)
{
    g_byte_array_append(lab->pipe[from], data, len);
    lab->host[!from].kicked = true;
}

/* How many of @len bytes one call moves. */
static size_t cut(Lab *lab, size_t len)
{
    if (lab->short_io && len > 1 && g_rand_int_range(lab->rand, 0, 4) == 0) {
        len = g_rand_int_range(lab->rand, 1, len);
    }
    return len;
}

/* ---- packets in the stream ---- */

/* Those that are due at the same time keep their order. */
static gint compare_due(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const CableDelayed *first = a, *second = b;

    return first->due <= second->due ? -1 : 1;
}

static void cable_delay(Lab *lab, unsigned from, const uint8_t *frame,
                        size_t len)
{
    CableDelayed *delayed = g_new(CableDelayed, 1);

    delayed->due = lab->now + lab->delay_ns;
    delayed->from = from;
    delayed->frame = g_byte_array_new();
    g_byte_array_append(delayed->frame, frame, len);
    g_queue_insert_sorted(&lab->delayed, delayed, compare_due, NULL);
}

static void release_delayed(Lab *lab, int64_t now)
{
    CableDelayed *delayed;

    while ((delayed = g_queue_peek_head(&lab->delayed)) &&
           delayed->due <= now) {
        g_queue_pop_head(&lab->delayed);
        pipe_append(lab, delayed->from, delayed->frame->data,
                    delayed->frame->len);
        delayed_free(delayed);
    }
}

void cable_release_delayed(Lab *lab)
{
    release_delayed(lab, lab->now);
}

int64_t cable_next_delayed(Lab *lab)
{
    CableDelayed *delayed = g_queue_peek_head(&lab->delayed);

    return delayed ? delayed->due : INT64_MAX;
}

static void cable_treat(Lab *lab, unsigned from, const HcaFrame *in,
                        uint8_t *frame, size_t len)
{
    CableFate fate = CABLE_DELIVER;

    if (in->type == HCA_FRAME_MOVE) {
        release_delayed(lab, INT64_MAX); /* it is the last one */
    }
    if (in->type == HCA_FRAME_PACKET) {
        fate = lab->tap(lab->tap_opaque, from, frame + (len - in->len),
                        in->len);
    }
    switch (fate) {
    case CABLE_DROP:
        break;
    case CABLE_DELAY:
        cable_delay(lab, from, frame, len);
        break;
    case CABLE_DUPLICATE:
        pipe_append(lab, from, frame, len);
        /* fall through */
    case CABLE_DELIVER:
        pipe_append(lab, from, frame, len);
        break;
    }
}

/* Move whole frames from the writer's end to the reader's. */
static void cable_cut_frames(Lab *lab, unsigned from)
{
    GByteArray *in = lab->unparsed[from];
    size_t done = 0;

    for (;;) {
        HcaFrame frame;
        int len = hca_frame_read(&frame, in->data + done, in->len - done);

        g_assert_cmpint(len, >=, 0);
        if (!len) {
            break;
        }
        cable_treat(lab, from, &frame, in->data + done, len);
        done += len;
    }
    if (done) {
        g_byte_array_remove_range(in, 0, done);
    }
}

/* ---- the ends ---- */

ssize_t cable_writev(Lab *lab, unsigned side, const struct iovec *iov,
                     int iovcnt)
{
    size_t room = pipe_room(lab, side);
    GByteArray *to = lab->tap ? lab->unparsed[side] : lab->pipe[side];
    size_t total = 0, left;

    if (!lab->up) {
        return -EPIPE;
    }
    for (int i = 0; i < iovcnt; i++) {
        total += iov[i].iov_len;
    }
    g_assert_cmpuint(total, >, 0);
    if (lab->refusals[side]) {
        lab->refusals[side]--;
        return -EAGAIN;
    }
    if (!room) {
        lab->want_write[side] = true;
        return -EAGAIN;
    }
    left = cut(lab, MIN(total, room));
    lab->want_write[side] = left < total;
    total = left;
    for (int i = 0; left; i++) {
        size_t n = MIN(left, iov[i].iov_len);

        g_byte_array_append(to, iov[i].iov_base, n);
        left -= n;
    }
    if (lab->tap) {
        cable_cut_frames(lab, side);
    }
    lab->host[!side].kicked = true;
    return total;
}

ssize_t cable_readv(Lab *lab, unsigned side, const struct iovec *iov,
                    int iovcnt)
{
    GByteArray *from = lab->pipe[!side];
    size_t *at = &lab->pipe_at[!side];
    size_t total = 0, left;

    if (!lab->up) {
        return 0;
    }
    for (int i = 0; i < iovcnt; i++) {
        total += iov[i].iov_len;
    }
    g_assert_cmpuint(total, >, 0);
    if (!pipe_level(lab, !side)) {
        return -EAGAIN;
    }
    left = cut(lab, MIN(total, pipe_level(lab, !side)));
    total = left;
    for (int i = 0; left; i++) {
        size_t n = MIN(left, iov[i].iov_len);

        memcpy(iov[i].iov_base, from->data + *at, n);
        *at += n;
        left -= n;
    }
    lab->reads[side]++;
    if (*at == from->len) {
        g_byte_array_set_size(from, 0);
        *at = 0;
    } else if (*at > CAPACITY) {
        g_byte_array_remove_range(from, 0, *at);
        *at = 0;
    }
    return total;
}

void cable_before_run(Lab *lab, unsigned side)
{
    lab->reads[side] = 0;
}

/* As an event loop would: a reader that got something is called again. */
void cable_after_run(Lab *lab, unsigned side)
{
    if (lab->reads[side] && pipe_level(lab, !side)) {
        lab->host[side].kicked = true;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (lab->up && lab->want_write[i] && pipe_room(lab, i)) {
            lab->want_write[i] = false;
            hca_link_writable(lab->host[i].hca);
            lab->host[i].kicked = true;
        }
    }
}

void lab_cable(Lab *lab, bool up)
{
    cable_clear(lab);
    lab->up = up;
    for (unsigned i = 0; i < 2; i++) {
        if (up) {
            hca_link_up(lab->host[i].hca);
        } else {
            hca_link_down(lab->host[i].hca);
        }
        lab->host[i].kicked = true;
    }
}

void lab_tap(Lab *lab, CableTap *tap, void *opaque)
{
    lab->tap = tap;
    lab->tap_opaque = opaque;
}

void cable_untap(Lab *lab)
{
    for (unsigned i = 0; i < 2; i++) {
        GByteArray *begun = lab->unparsed[i];

        pipe_append(lab, i, begun->data, begun->len);
        g_byte_array_set_size(begun, 0);
    }
    lab_tap(lab, NULL, NULL);
}

void lab_cable_inject(Lab *lab, unsigned from, const void *data, size_t len)
{
    pipe_append(lab, from, data, len);
}
