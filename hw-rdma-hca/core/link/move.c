/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An end that moves: its machine is saved, and goes on somewhere else with a new
 * stream, or here. The other end sees a pause.
 *
 *     moves                                   waits
 *       |  ... packets, then a move frame       |
 *       |-------------------------------------->|  takes no more packets
 *       |  ... packets, then a move frame       |
 *       |<--------------------------------------|
 *     keeps what came, ends the stream, is saved
 *
 *     somewhere else, or here
 *       |  a greeting that resumes: the token   |
 *       |<------------------------------------->|  both go on
 *
 * Each frame of the first stream has been taken by then, if there was time for it;
 * otherwise some are lost, as on any link. Both ends may move at once: the frames
 * are the same. The token was made of both greetings of the first stream, so each
 * end has known it from the beginning; who has another one is someone else, and
 * the link goes down and up again. It is another one once a frame has come by the
 * new stream: until then the other end may not know that there was one.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "link_int.h"

/* Of the stream that ends: more than the buffers of a socket and of memory. */
#define MAX_OLD (16u * 1024 * 1024)
#define READ_SIZE (64u * 1024)

void hca_link_set_patience(HcaLink *link, int64_t ns)
{
    link->patience_ns = ns;
}

bool hca_link_is_away(const HcaLink *link)
{
    return link->away;
}

static int64_t limit_of(const HcaLink *link)
{
    return link->host.ops->clock_ns(link->host.opaque) + link->patience_ns;
}

static void begin(HcaLink *link)
{
    link->away = true;
    link->away_end = limit_of(link);
    link->counters.moves++;
}

/* Greetings */

void hca_link_move_greet(HcaLink *link, HcaGreeting *greeting)
{
    greeting->old = link->greets_old;
    if (!greeting->old) {
        link->nonce = link->host.ops->nonce
                          ? link->host.ops->nonce(link->host.opaque)
                          : 0;
        greeting->waits = link->patience_ns != 0;
        greeting->resumes = link->away;
        greeting->nonce = link->nonce;
        greeting->token = link->away ? link->token : 0;
    }
    link->told_waits = greeting->waits;
}

/* Of who is waited for. */
static bool is_ours(const HcaLink *link, const HcaGreeting *greeting)
{
    return link->away && greeting->resumes && greeting->token == link->token;
}

void hca_link_move_greeted(HcaLink *link, const HcaGreeting *greeting)
{
    uint64_t token = link->nonce ^ greeting->nonce;
    bool ours = is_ours(link, greeting);

    if (link->away && !ours) {
        hca_link_move_lost(link);
    }
    link->away = false;
    link->greets_old = greeting->old;
    link->can_move = link->told_waits && greeting->waits;
    link->heard_move = link->told_move = false;
    link->resumed = ours;
    link->next_token = token;
    link->token = ours ? link->token : token;
}

/* Leaving */

/* A stream that has brought no frame but the greeting may never have been. */
void hca_link_move_end(HcaLink *link)
{
    if (link->resumed) {
        link->away = true;
        link->resumed = false;
    }
    link->told_move = link->heard_move = false;
    if (!link->old_left) {
        hca_link_forget_old(link);
    } else if (link->old && !link->old_at) { /* and half a frame, maybe */
        g_byte_array_set_size(link->old, link->old_left);
    }
}

bool hca_link_move_asked(HcaLink *link)
{
    if (!link->can_move || link->old_left) {
        return false;
    }
    if (!link->away) {
        begin(link);
    }
    link->heard_move = true;
    return true;
}

void hca_link_move_lost(HcaLink *link)
{
    if (!link->away) {
        return;
    }
    link->away = false;
    link->counters.moves_lost++;
    hca_link_forget_old(link);
    hca_link_set_peer_enabled(link, false);
    /* The stream is of no use, if it is still the one of before. */
    link->rx_failed |= link->heard_move || link->told_move;
}

void hca_link_move_tell(HcaLink *link)
{
    if (link->told_move || !link->up || !link->greeted || link->tx_failed ||
        HCA_LINK_TX_SIZE - link->tx_end < HCA_MOVE_FRAME_SIZE) {
        return;
    }
    link->tx_end += hca_frame_write_move(link->tx + link->tx_end);
    link->told_move = true;
}

bool hca_link_depart(HcaLink *link)
{
    if (link->away) {
        return true;
    }
    if (!hca_link_peer_has_greeted(link) || !link->can_move) {
        return false;
    }
    begin(link);
    return true;
}

/* What came by the stream */

void hca_link_forget_old(HcaLink *link)
{
    if (link->old) {
        g_byte_array_unref(link->old);
        link->old = NULL;
    }
    if (link->old_left) {
        link->rx_at = link->rx_end = 0; /* it begins there */
    }
    link->old_at = link->old_left = 0;
}

size_t hca_link_take_old(HcaLink *link, uint8_t *to, size_t room)
{
    size_t n = MIN(room, link->old->len - link->old_at);

    memcpy(to, link->old->data + link->old_at, n);
    link->old_at += n;
    if (link->old_at == link->old->len) {
        g_byte_array_unref(link->old);
        link->old = NULL;
    }
    return n;
}

/* What is in the buffer, and what was behind it already. */
static void keep_buffer(HcaLink *link)
{
    GByteArray *bytes = g_byte_array_new();

    g_byte_array_append(bytes, link->rx + link->rx_at,
                        link->rx_end - link->rx_at);
    if (link->old) {
        g_byte_array_append(bytes, link->old->data + link->old_at,
                            link->old->len - link->old_at);
        g_byte_array_unref(link->old);
    }
    link->old = bytes;
    link->old_at = 0;
    link->rx_at = link->rx_end = 0;
}

/*
 * This end had just come back, and goes away before it has seen that: the other end
 * may have sent something already. False: it is someone else.
 */
static bool hear_greeting(HcaLink *link, const HcaFrame *frame, int size)
{
    HcaGreeting greeting;

    if (!hca_frame_read_greeting(frame, link->link_layer, &greeting) ||
        !is_ours(link, &greeting)) {
        return false;
    }
    hca_link_rx_greeting(link, frame);
    begin(link);
    g_byte_array_remove_range(link->old, link->old_left, size);
    return true;
}

/* As many frames as are whole. False: nothing will follow them. */
static bool count_frames(HcaLink *link)
{
    while (link->old->len > link->old_left) {
        HcaFrame frame;
        int size = hca_frame_read(&frame, link->old->data + link->old_left,
                                  link->old->len - link->old_left);

        if (size <= 0) {
            return size == 0;
        }
        if (!link->greeted) {
            if (!hear_greeting(link, &frame, size)) {
                return false;
            }
            continue;
        }
        hca_link_move_heard(link);
        if (hca_frame_is_move(&frame)) {
            link->heard_move = true;
            return false;
        }
        link->old_left += size;
    }
    return true;
}

/* Whether there was something; or it is over. */
static bool read_more(HcaLink *link, bool *over)
{
    size_t len = link->old->len;
    struct iovec iov = { .iov_len = READ_SIZE };
    ssize_t n;

    if (len >= MAX_OLD) {
        *over = true;
        return false;
    }
    g_byte_array_set_size(link->old, len + READ_SIZE);
    iov.iov_base = link->old->data + len;
    n = link->host.ops->link_readv(link->host.opaque, &iov, 1);
    g_byte_array_set_size(link->old, len + MAX(n, 0));
    *over = !n || (n < 0 && n != -EAGAIN && n != -EINTR);
    return n > 0;
}

/* True: it has all that comes. */
static bool gather(HcaLink *link)
{
    bool over = false;

    if (link->heard_move || link->rx_failed) {
        return true;
    }
    if (!link->old || link->old_at || link->rx_at != link->rx_end) {
        keep_buffer(link);
    }
    do {
        over = !count_frames(link);
    } while (!over && read_more(link, &over));
    return over;
}

bool hca_link_drain(HcaLink *link)
{
    bool all;

    if (!link->up) {
        return true;
    }
    hca_link_flush(link);
    all = gather(link);
    hca_link_flush(link);
    return all && (link->tx_failed || link->tx_at == link->tx_end);
}

/* Going on */

void hca_link_arrive(HcaLink *link)
{
    if (link->up && !link->framing->greets) {
        begin(link); /* nobody is there who would notice */
    }
    if (link->up) {
        hca_link_set_up(link, false);
    }
    link->away_end = limit_of(link);
}
