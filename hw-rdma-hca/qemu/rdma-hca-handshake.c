/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLS handshakes of a cable. See rdma-hca-handshake.h. */
#include "qemu/osdep.h"
#include "io/channel-tls.h"
#include "qapi/error.h"
#include "rdma-hca-handshake.h"

struct RdmaHcaHandshake {
    RdmaHcaHandshakes *all;
    QTAILQ_ENTRY(RdmaHcaHandshake) next;
    QIOChannelTLS *tioc;
    guint limit_tag;
    RdmaHcaHandshakeDone *done;
    void *opaque;
};

void rdma_hca_handshakes_init(RdmaHcaHandshakes *handshakes)
{
    QTAILQ_INIT(&handshakes->list);
    handshakes->count = 0;
}

/* What its task has of it goes with the task. */
static void handshake_end(RdmaHcaHandshake *handshake)
{
    QTAILQ_REMOVE(&handshake->all->list, handshake, next);
    handshake->all->count--;
    g_clear_handle_id(&handshake->limit_tag, g_source_remove);
    object_unref(OBJECT(g_steal_pointer(&handshake->tioc)));
}

/* Before it is done: its task is not called any more. */
static void handshake_cancel(RdmaHcaHandshake *handshake)
{
    QIOChannel *ioc = QIO_CHANNEL(object_ref(OBJECT(handshake->tioc)));

    handshake_end(handshake);
    qio_channel_close(ioc, NULL);
    object_unref(OBJECT(ioc));
}

static void handshake_done(QIOTask *task, gpointer opaque)
{
    RdmaHcaHandshake *handshake = opaque;
    QIOChannel *ioc = QIO_CHANNEL(qio_task_get_source(task));
    g_autoptr(Error) err = NULL;

    handshake_end(handshake);
    qio_task_propagate_error(task, &err);
    handshake->done(handshake->opaque, err ? NULL : ioc, err);
}

static gboolean handshake_late(gpointer opaque)
{
    RdmaHcaHandshake *handshake = opaque;
    RdmaHcaHandshakeDone *done = handshake->done;
    void *done_opaque = handshake->opaque;
    g_autoptr(Error) err = NULL;

    handshake->limit_tag = 0;
    handshake_cancel(handshake);
    error_setg(&err, "the TLS handshake takes too long");
    done(done_opaque, NULL, err);
    return G_SOURCE_REMOVE;
}

static QIOChannelTLS *handshake_channel(const RdmaHcaTlsEnd *end,
                                        QIOChannelSocket *sioc, Error **errp)
{
    QIOChannel *ioc = QIO_CHANNEL(sioc);

    return end->server
               ? qio_channel_tls_new_server(ioc, end->creds, end->authz, errp)
               : qio_channel_tls_new_client(ioc, end->creds, end->hostname,
                                            errp);
}

void rdma_hca_handshake_begin(RdmaHcaHandshakes *handshakes,
                              const RdmaHcaTlsEnd *end, QIOChannelSocket *sioc,
                              RdmaHcaHandshakeDone *done, void *opaque)
{
    g_autoptr(Error) err = NULL;
    QIOChannelTLS *tioc = handshake_channel(end, sioc, &err);
    RdmaHcaHandshake *handshake;

    if (!tioc) {
        done(opaque, NULL, err);
        return;
    }
    if (handshakes->count == RDMA_HCA_HANDSHAKES_MAX) {
        handshake_cancel(QTAILQ_FIRST(&handshakes->list));
    }
    qio_channel_set_name(QIO_CHANNEL(tioc), "rdma-hca-cable-tls");
    handshake = g_new0(RdmaHcaHandshake, 1);
    handshake->all = handshakes;
    handshake->tioc = tioc;
    handshake->done = done;
    handshake->opaque = opaque;
    QTAILQ_INSERT_TAIL(&handshakes->list, handshake, next);
    handshakes->count++;
    if (end->limit_ms) {
        handshake->limit_tag = g_timeout_add(end->limit_ms, handshake_late,
                                             handshake);
    }
    qio_channel_tls_handshake(tioc, handshake_done, handshake, g_free, NULL);
}

void rdma_hca_handshakes_cancel(RdmaHcaHandshakes *handshakes)
{
    while (!QTAILQ_EMPTY(&handshakes->list)) {
        handshake_cancel(QTAILQ_FIRST(&handshakes->list));
    }
}
