/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cable of an rdma-hca: a stream socket with a peer at its other end.
 * See rdma-hca-cable.h for who calls what in which thread.
 */
#include "qemu/osdep.h"
#include <netinet/tcp.h>
#include "io/channel-socket.h"
#include "io/net-listener.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-sockets.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "qom/object_interfaces.h"
#include "rdma-hca-cable.h"
#include "trace.h"

#define CABLE_RECONNECT_MS 1000
/* A few hundred packets; what the kernel grants may be less. */
#define CABLE_BUFFER_SIZE (2 * MiB)
/* A peer whose host fell silent is given up after this time. */
#define CABLE_SILENCE_S 10
#define CABLE_PROBE_S 5
#define CABLE_PROBES 4

struct RdmaHcaCable {
    Object parent_obj;

    /* Properties. */
    SocketAddress *addr;
    bool server;
    uint32_t reconnect_ms;
    bool reconnect_given;
    bool complete;

    /* The main loop's. */
    QIONetListener *listener; /* server */
    QIOChannelSocket *passed; /* client on a passed fd, until plugged */
    guint reconnect_tag;
    bool plugged;
    bool connecting;
    bool taken; /* the card has a stream */
    QEMUBH *ended_bh;

    /* Hand-over between the two. */
    QemuMutex lock;
    QIOChannel *arrived; /* to the card */
    QIOChannel *ended;   /* to the main loop */

    /* The card's. */
    AioContext *ctx;
    const RdmaHcaCableOps *ops;
    void *opaque;
    QEMUBH *arrived_bh;
    QEMUBH *broken_bh;
    QIOChannel *stream;
    bool running;
    bool broken;      /* to be ended by broken_bh */
    bool read_wanted; /* the card reads until -EAGAIN */
    bool read_watched;
    bool write_watched; /* the card was told -EAGAIN */
};

static const char *cable_id(const RdmaHcaCable *cable)
{
    const char *id = object_get_canonical_path_component(OBJECT(cable));

    return id ? id : "";
}

/* ---- the card's thread ---- */

static void cable_on_readable(void *opaque);
static void cable_on_writable(void *opaque);

static void cable_watch(RdmaHcaCable *cable, bool read, bool write)
{
    if (cable->read_watched == read && cable->write_watched == write) {
        return;
    }
    cable->read_watched = read;
    cable->write_watched = write;
    qio_channel_set_aio_fd_handler(cable->stream, cable->ctx,
                                   read ? cable_on_readable : NULL, cable->ctx,
                                   write ? cable_on_writable : NULL, cable);
}

/*
 * The socket stays readable while the card has no room for more. Stop
 * watching then; the next rdma_hca_cable_readv() watches again.
 */
static void cable_on_readable(void *opaque)
{
    RdmaHcaCable *cable = opaque;

    cable->read_wanted = false;
    cable->ops->readable(cable->opaque);
    if (cable->stream && cable->running && !cable->read_wanted) {
        cable_watch(cable, false, cable->write_watched);
    }
}

static void cable_on_writable(void *opaque)
{
    RdmaHcaCable *cable = opaque;

    cable_watch(cable, cable->read_watched, false);
    cable->ops->writable(cable->opaque);
}

void rdma_hca_cable_drop(RdmaHcaCable *cable)
{
    if (cable->stream && !cable->broken) {
        cable->broken = true;
        qemu_bh_schedule(cable->broken_bh);
    }
}

ssize_t rdma_hca_cable_writev(RdmaHcaCable *cable, const struct iovec *iov,
                              int iovcnt)
{
    ssize_t ret;

    if (!cable->stream || cable->broken) {
        return -EPIPE;
    }
    ret = qio_channel_writev(cable->stream, iov, MIN(iovcnt, IOV_MAX), NULL);
    if (ret == QIO_CHANNEL_ERR_BLOCK) {
        cable_watch(cable, cable->read_watched, true);
        return -EAGAIN;
    }
    if (ret < 0) {
        rdma_hca_cable_drop(cable);
        return -EPIPE;
    }
    return ret;
}

ssize_t rdma_hca_cable_readv(RdmaHcaCable *cable, const struct iovec *iov,
                             int iovcnt)
{
    ssize_t ret;

    if (!cable->stream || cable->broken) {
        return -EPIPE;
    }
    cable->read_wanted = true;
    cable_watch(cable, true, cable->write_watched);
    ret = qio_channel_readv(cable->stream, iov, MIN(iovcnt, IOV_MAX), NULL);
    if (ret == QIO_CHANNEL_ERR_BLOCK) {
        return -EAGAIN;
    }
    if (ret <= 0) {
        rdma_hca_cable_drop(cable);
        return ret < 0 ? -EPIPE : 0;
    }
    return ret;
}

/* Give the stream back to the main loop. */
static void cable_end_stream(RdmaHcaCable *cable)
{
    cable_watch(cable, false, false);
    WITH_QEMU_LOCK_GUARD(&cable->lock) {
        cable->ended = cable->stream;
    }
    cable->stream = NULL;
    cable->broken = false;
    qemu_bh_schedule(cable->ended_bh);
}

static void cable_broken_bh(void *opaque)
{
    RdmaHcaCable *cable = opaque;

    if (!cable->running || !cable->broken) {
        return;
    }
    cable_end_stream(cable);
    cable->ops->down(cable->opaque);
}

static void cable_arrived_bh(void *opaque)
{
    RdmaHcaCable *cable = opaque;

    if (!cable->running || cable->stream) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&cable->lock) {
        cable->stream = g_steal_pointer(&cable->arrived);
    }
    if (cable->stream) {
        cable_watch(cable, true, false);
        cable->ops->up(cable->opaque);
    }
}

void rdma_hca_cable_start(RdmaHcaCable *cable)
{
    cable->running = true;
    if (cable->stream) {
        /* What was waited for may have come: let both sides look. */
        cable_watch(cable, true, true);
    }
    qemu_bh_schedule(cable->broken_bh);
    qemu_bh_schedule(cable->arrived_bh);
}

void rdma_hca_cable_stop(RdmaHcaCable *cable)
{
    if (cable->stream) {
        cable_watch(cable, false, false);
    }
    cable->running = false;
}

void rdma_hca_cable_close(RdmaHcaCable *cable)
{
    rdma_hca_cable_stop(cable);
    if (cable->stream) {
        cable_end_stream(cable);
    }
    qemu_bh_delete(cable->arrived_bh);
    qemu_bh_delete(cable->broken_bh);
    cable->arrived_bh = NULL;
    cable->broken_bh = NULL;
}

/* ---- the main loop ---- */

static void cable_connect(RdmaHcaCable *cable);

bool rdma_hca_cable_is_server(const RdmaHcaCable *cable)
{
    return cable->server;
}

static bool set_option(QIOChannelSocket *sioc, int level, int name, int value)
{
    return setsockopt(sioc->fd, level, name, &value, sizeof(value)) == 0;
}

/* All of these only help: a socket that lacks one will do. */
static void cable_tune(QIOChannelSocket *sioc)
{
    switch (sioc->localAddr.ss_family) {
    case AF_UNIX:
        if (!set_option(sioc, SOL_SOCKET, SO_SNDBUFFORCE, CABLE_BUFFER_SIZE)) {
            set_option(sioc, SOL_SOCKET, SO_SNDBUF, CABLE_BUFFER_SIZE);
        }
        break;
    case AF_INET:
    case AF_INET6:
        /* TCP sizes its own buffers, and better so. */
        qio_channel_set_delay(QIO_CHANNEL(sioc), false);
        set_option(sioc, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(sioc, IPPROTO_TCP, TCP_KEEPIDLE, CABLE_SILENCE_S);
        set_option(sioc, IPPROTO_TCP, TCP_KEEPINTVL, CABLE_PROBE_S);
        set_option(sioc, IPPROTO_TCP, TCP_KEEPCNT, CABLE_PROBES);
        break;
    }
}

/* The peer is there: hand the stream to the card. */
static void cable_take(RdmaHcaCable *cable, QIOChannelSocket *sioc)
{
    QIOChannel *ioc = QIO_CHANNEL(sioc);

    if (qio_channel_set_blocking(ioc, false, NULL) < 0) {
        return;
    }
    cable_tune(sioc);
    object_ref(OBJECT(ioc));
    cable->taken = true;
    trace_rdma_hca_cable_up(cable_id(cable));
    WITH_QEMU_LOCK_GUARD(&cable->lock) {
        cable->arrived = ioc;
    }
    qemu_bh_schedule(cable->arrived_bh);
}

static gboolean cable_reconnect(gpointer opaque)
{
    RdmaHcaCable *cable = opaque;

    cable->reconnect_tag = 0;
    cable_connect(cable);
    return G_SOURCE_REMOVE;
}

static void cable_connect_later(RdmaHcaCable *cable)
{
    if (cable->plugged && !cable->server && cable->reconnect_ms &&
        cable->addr->type != SOCKET_ADDRESS_TYPE_FD && !cable->reconnect_tag) {
        cable->reconnect_tag = g_timeout_add(cable->reconnect_ms,
                                             cable_reconnect, cable);
    }
}

static void cable_connected(QIOTask *task, gpointer opaque)
{
    RdmaHcaCable *cable = opaque;
    Error *err = NULL;

    cable->connecting = false;
    if (qio_task_propagate_error(task, &err)) {
        trace_rdma_hca_cable_failed(cable_id(cable), error_get_pretty(err));
        if (cable->plugged && !cable->reconnect_ms) {
            warn_report("rdma-hca-cable %s: %s", cable_id(cable),
                        error_get_pretty(err));
        }
        error_free(err);
    } else if (cable->plugged && !cable->taken) {
        cable_take(cable, QIO_CHANNEL_SOCKET(qio_task_get_source(task)));
    }
    if (!cable->taken) {
        cable_connect_later(cable);
    }
}

static void cable_connect(RdmaHcaCable *cable)
{
    QIOChannelSocket *sioc;

    if (cable->connecting || cable->taken) {
        return;
    }
    cable->connecting = true;
    sioc = qio_channel_socket_new();
    qio_channel_set_name(QIO_CHANNEL(sioc), "rdma-hca-cable");
    qio_channel_socket_connect_async(sioc, cable->addr, cable_connected,
                                     object_ref(OBJECT(cable)), object_unref,
                                     NULL);
    object_unref(OBJECT(sioc));
}

/* One peer at a time: another one finds its connection closed. */
static void cable_accept(QIONetListener *listener, QIOChannelSocket *sioc,
                         gpointer opaque)
{
    RdmaHcaCable *cable = opaque;

    if (cable->taken) {
        trace_rdma_hca_cable_refused(cable_id(cable));
        return;
    }
    cable_take(cable, sioc);
}

static void cable_drop_ended(RdmaHcaCable *cable)
{
    QIOChannel *ioc;

    WITH_QEMU_LOCK_GUARD(&cable->lock) {
        ioc = g_steal_pointer(&cable->ended);
    }
    if (ioc) {
        object_unref(OBJECT(ioc));
        cable->taken = false;
        trace_rdma_hca_cable_down(cable_id(cable));
    }
}

static void cable_ended_bh(void *opaque)
{
    RdmaHcaCable *cable = opaque;

    cable_drop_ended(cable);
    if (!cable->taken) {
        cable_connect_later(cable);
    }
}

bool rdma_hca_cable_plug(RdmaHcaCable *cable, AioContext *ctx,
                         const RdmaHcaCableOps *ops, void *opaque, Error **errp)
{
    if (cable->plugged) {
        error_setg(errp, "rdma-hca-cable %s is in another card already",
                   cable_id(cable));
        return false;
    }
    cable->plugged = true;
    cable->ctx = ctx;
    cable->ops = ops;
    cable->opaque = opaque;
    cable->ended_bh = qemu_bh_new(cable_ended_bh, cable);
    cable->arrived_bh = aio_bh_new(ctx, cable_arrived_bh, cable);
    cable->broken_bh = aio_bh_new(ctx, cable_broken_bh, cable);

    if (cable->listener) {
        qio_net_listener_set_client_func(cable->listener, cable_accept, cable,
                                         NULL);
    } else if (cable->passed) {
        cable_take(cable, cable->passed);
        object_unref(OBJECT(g_steal_pointer(&cable->passed)));
    } else if (cable->addr->type != SOCKET_ADDRESS_TYPE_FD) {
        cable_connect(cable);
    }
    return true;
}

void rdma_hca_cable_unplug(RdmaHcaCable *cable)
{
    if (cable->listener) {
        qio_net_listener_set_client_func(cable->listener, NULL, NULL, NULL);
    }
    if (cable->reconnect_tag) {
        g_source_remove(cable->reconnect_tag);
        cable->reconnect_tag = 0;
    }
    /* The card's thread is done with the cable: no lock is needed. */
    if (!cable->ended) {
        cable->ended = g_steal_pointer(&cable->arrived);
    }
    cable_drop_ended(cable);
    qemu_bh_delete(cable->ended_bh);
    cable->ended_bh = NULL;
    cable->plugged = false;
}

/* ---- the object ---- */

static bool cable_open_listener(RdmaHcaCable *cable, Error **errp)
{
    cable->listener = qio_net_listener_new();
    qio_net_listener_set_name(cable->listener, "rdma-hca-cable");
    if (qio_net_listener_open_sync(cable->listener, cable->addr, 1, errp) < 0) {
        object_unref(OBJECT(g_steal_pointer(&cable->listener)));
        return false;
    }
    return true;
}

static bool cable_open_passed(RdmaHcaCable *cable, Error **errp)
{
    if (cable->reconnect_given && cable->reconnect_ms) {
        error_setg(errp, "a passed file descriptor cannot be connected again: "
                         "reconnect-ms must be 0");
        return false;
    }
    cable->reconnect_ms = 0;
    cable->passed = qio_channel_socket_new();
    return qio_channel_socket_connect_sync(cable->passed, cable->addr, errp) ==
           0;
}

static void cable_complete(UserCreatable *uc, Error **errp)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(uc);

    if (!cable->addr) {
        error_setg(errp, "rdma-hca-cable needs 'addr'");
        return;
    }
    if (socket_address_parse_named_fd(cable->addr, errp) < 0) {
        return;
    }
    cable->complete = true;
    if (cable->server) {
        cable_open_listener(cable, errp);
    } else if (cable->addr->type == SOCKET_ADDRESS_TYPE_FD) {
        cable_open_passed(cable, errp);
    }
}

static bool cable_can_be_deleted(UserCreatable *uc)
{
    return !RDMA_HCA_CABLE(uc)->plugged;
}

/* At object-del and at the end of QEMU: a socket's path goes now. */
static void cable_unparent(Object *obj)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);

    if (cable->listener) {
        qio_net_listener_disconnect(cable->listener);
        object_unref(OBJECT(g_steal_pointer(&cable->listener)));
    }
}

static void cable_get_addr(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);

    if (!cable->addr) {
        error_setg(errp, "'addr' is not set");
        return;
    }
    visit_type_SocketAddress(v, name, &cable->addr, errp);
}

static void cable_set_addr(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);
    SocketAddress *addr = NULL;

    if (cable->addr) {
        error_setg(errp, "'addr' can only be set once");
        return;
    }
    if (visit_type_SocketAddress(v, name, &addr, errp)) {
        cable->addr = addr;
    }
}

static bool cable_get_server(Object *obj, Error **errp)
{
    return RDMA_HCA_CABLE(obj)->server;
}

static void cable_set_server(Object *obj, bool value, Error **errp)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);

    if (cable->complete) {
        error_setg(errp, "'server' can only be set when the cable is made");
        return;
    }
    cable->server = value;
}

static void cable_get_reconnect(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &RDMA_HCA_CABLE(obj)->reconnect_ms, errp);
}

static void cable_set_reconnect(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);
    uint32_t value;

    if (visit_type_uint32(v, name, &value, errp)) {
        cable->reconnect_ms = value;
        cable->reconnect_given = true;
    }
}

static bool cable_get_connected(Object *obj, Error **errp)
{
    return RDMA_HCA_CABLE(obj)->taken;
}

static void cable_init(Object *obj)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);

    cable->reconnect_ms = CABLE_RECONNECT_MS;
    qemu_mutex_init(&cable->lock);
}

static void cable_finalize(Object *obj)
{
    RdmaHcaCable *cable = RDMA_HCA_CABLE(obj);

    if (cable->passed) {
        object_unref(OBJECT(cable->passed));
    }
    qapi_free_SocketAddress(cable->addr);
    qemu_mutex_destroy(&cable->lock);
}

static void cable_class_init(ObjectClass *klass, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(klass);

    ucc->complete = cable_complete;
    ucc->can_be_deleted = cable_can_be_deleted;
    klass->unparent = cable_unparent;

    object_class_property_add(klass, "addr", "SocketAddress", cable_get_addr,
                              cable_set_addr, NULL, NULL);
    object_class_property_set_description(
        klass, "addr", "Where the peer is reached, or is waited for");
    object_class_property_add_bool(klass, "server", cable_get_server,
                                   cable_set_server);
    object_class_property_set_description(
        klass, "server", "Listen at addr instead of connecting to it");
    object_class_property_add(klass, "reconnect-ms", "uint32",
                              cable_get_reconnect, cable_set_reconnect, NULL,
                              NULL);
    object_class_property_set_description(
        klass, "reconnect-ms",
        "Milliseconds until a connection that failed or ended is tried again; "
        "0: never");
    object_class_property_add_bool(klass, "connected", cable_get_connected,
                                   NULL);
    object_class_property_set_description(klass, "connected",
                                          "Whether the other end is there");
}

static const TypeInfo cable_types[] = {
    {
        .name = TYPE_RDMA_HCA_CABLE,
        .parent = TYPE_OBJECT,
        .instance_size = sizeof(RdmaHcaCable),
        .instance_init = cable_init,
        .instance_finalize = cable_finalize,
        .class_init = cable_class_init,
        .interfaces = (InterfaceInfo[]) { { TYPE_USER_CREATABLE }, {} },
    },
};

DEFINE_TYPES(cable_types)
