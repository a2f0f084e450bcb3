/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLS handshakes of a port. See tls.h. */
#include <glib-unix.h>

#include "tls.h"

typedef struct Handshake {
    SwHandshakes *all;
    GSocket *socket;
    SwTls *tls;
    guint fd_tag, limit_tag;
    SwHandshakeDone *done;
    void *opaque;
} Handshake;

static gboolean step(gint fd, GIOCondition condition, gpointer opaque);

static void await(Handshake *handshake, GIOCondition condition)
{
    handshake->fd_tag = g_unix_fd_add(g_socket_get_fd(handshake->socket),
                                      condition, step, handshake);
}

/* Who has its sockets and @tls is said by what is left of them. */
static void handshake_free(Handshake *handshake)
{
    g_queue_remove(handshake->all, handshake);
    g_clear_handle_id(&handshake->fd_tag, g_source_remove);
    g_clear_handle_id(&handshake->limit_tag, g_source_remove);
    sw_tls_free(handshake->tls);
    g_object_unref(handshake->socket);
    g_free(handshake);
}

/* @why: NULL, if it is good. */
static void end(Handshake *handshake, const char *why)
{
    SwHandshakeDone *done = handshake->done;
    void *opaque = handshake->opaque;
    GSocket *socket = g_object_ref(handshake->socket);
    SwTls *tls = why ? NULL : g_steal_pointer(&handshake->tls);

    handshake_free(handshake);
    done(opaque, socket, tls, why);
    g_object_unref(socket);
}

static gboolean step(gint fd, GIOCondition condition, gpointer opaque)
{
    Handshake *handshake = opaque;
    g_autofree char *why = NULL;

    handshake->fd_tag = 0;
    switch (sw_tls_shake(handshake->tls, &why)) {
    case SW_TLS_READ:
        await(handshake, G_IO_IN);
        break;
    case SW_TLS_WRITE:
        await(handshake, G_IO_OUT);
        break;
    case SW_TLS_DONE:
    case SW_TLS_FAILED:
        end(handshake, why);
        break;
    }
    return G_SOURCE_REMOVE;
}

static gboolean late(gpointer opaque)
{
    Handshake *handshake = opaque;

    handshake->limit_tag = 0;
    end(handshake, "the TLS handshake takes too long");
    return G_SOURCE_REMOVE;
}

void sw_handshake_begin(SwHandshakes *handshakes, GSocket *socket, SwTls *tls,
                        unsigned limit_ms, SwHandshakeDone *done, void *opaque)
{
    Handshake *handshake = g_new0(Handshake, 1);

    if (handshakes->length == SW_HANDSHAKES_MAX) {
        handshake_free(g_queue_peek_head(handshakes));
    }
    *handshake = (Handshake) {
        .all = handshakes,
        .socket = g_object_ref(socket),
        .tls = tls,
        .done = done,
        .opaque = opaque,
    };
    g_queue_push_tail(handshakes, handshake);
    if (limit_ms) {
        handshake->limit_tag = g_timeout_add(limit_ms, late, handshake);
    }
    await(handshake, G_IO_OUT);
}

void sw_handshakes_cancel(SwHandshakes *handshakes)
{
    while (handshakes->length) {
        handshake_free(g_queue_peek_head(handshakes));
    }
}
