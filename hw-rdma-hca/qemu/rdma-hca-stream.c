/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cable that is a stream socket with a peer at its other end: the
 * user-creatable object rdma-hca-cable. One peer at a time. See
 * rdma-hca-stream.h.
 */
#include "qemu/osdep.h"
#include <netinet/tcp.h>
#include "migration/misc.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-sockets.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "qom/object_interfaces.h"
#include "rdma-hca-stream.h"
#include "system/runstate.h"
#include "trace.h"

#define CABLE_RECONNECT_MS 1000
/* The same while a peer that has moved is on its way. */
#define CABLE_HURRY_MS 20
#define CABLE_GREETING_MS 10000
/* Who comes all at once. */
#define CABLE_BACKLOG RDMA_HCA_HANDSHAKES_MAX
/* In a row, until the user is told. */
#define CABLE_FAILED_HANDSHAKES 2
/* A few hundred packets; what the kernel grants may be less. */
#define CABLE_BUFFER_SIZE (2 * MiB)
/* A peer whose host fell silent is given up after this time. */
#define CABLE_SILENCE_S 10
#define CABLE_PROBE_S 5
#define CABLE_PROBES 4

static bool stream_is_plugged(const RdmaHcaStream *stream)
{
    return rdma_hca_cable_is_plugged(&stream->cable);
}

const char *rdma_hca_stream_id(const RdmaHcaStream *stream)
{
    const char *id = object_get_canonical_path_component(OBJECT(stream));

    return id ? id : "";
}

/* ---- the main loop ---- */

static void stream_connect(RdmaHcaStream *stream);

static HcaCableProtocol stream_protocol(const RdmaHcaCable *cable)
{
    return RDMA_HCA_STREAM(cable)->protocol == RDMA_HCA_CABLE_PROTOCOL_NETDEV
               ? HCA_CABLE_NETDEV
               : HCA_CABLE_CARD;
}

static bool stream_is_server(const RdmaHcaCable *cable)
{
    return RDMA_HCA_STREAM(cable)->server;
}

static bool stream_comes_back(const RdmaHcaCable *cable)
{
    const RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    return stream->server || (stream->reconnect_ms &&
                              stream->addr->type != SOCKET_ADDRESS_TYPE_FD);
}

static char *stream_address(const RdmaHcaCable *cable)
{
    return socket_uri(RDMA_HCA_STREAM(cable)->addr);
}

static bool set_option(QIOChannelSocket *sioc, int level, int name, int value)
{
    return setsockopt(sioc->fd, level, name, &value, sizeof(value)) == 0;
}

/* All of these only help: a socket that lacks one will do. */
static void stream_tune(QIOChannelSocket *sioc)
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
static void stream_take(RdmaHcaStream *stream, QIOChannel *ioc)
{
    object_ref(OBJECT(ioc));
    stream->taken = true;
    stream->handshakes_failed = 0;
    rdma_hca_handshakes_cancel(&stream->handshakes);
    trace_rdma_hca_cable_up(rdma_hca_stream_id(stream));
    WITH_QEMU_LOCK_GUARD(&stream->lock) {
        stream->arrived = ioc;
    }
    qemu_bh_schedule(stream->arrived_bh);
}

static gboolean stream_reconnect(gpointer opaque)
{
    RdmaHcaStream *stream = opaque;

    stream->reconnect_tag = 0;
    stream_connect(stream);
    return G_SOURCE_REMOVE;
}

static void stream_connect_later(RdmaHcaStream *stream)
{
    if (stream_is_plugged(stream) && !stream->server && stream->reconnect_ms &&
        stream->addr->type != SOCKET_ADDRESS_TYPE_FD &&
        !stream->reconnect_tag) {
        uint32_t ms = qatomic_read(&stream->hurry)
                          ? MIN(stream->reconnect_ms, CABLE_HURRY_MS)
                          : stream->reconnect_ms;

        stream->reconnect_tag = g_timeout_add(ms, stream_reconnect, stream);
    }
}

static bool stream_wants_peer(const RdmaHcaStream *stream)
{
    return stream_is_plugged(stream) && !stream->taken &&
           !qatomic_read(&stream->away);
}

/* One may be of a peer that went. */
static void stream_shake_failed(RdmaHcaStream *stream, const Error *err)
{
    trace_rdma_hca_cable_failed(rdma_hca_stream_id(stream),
                                error_get_pretty(err));
    if (++stream->handshakes_failed == CABLE_FAILED_HANDSHAKES) {
        warn_report("rdma-hca-cable %s: TLS: %s", rdma_hca_stream_id(stream),
                    error_get_pretty(err));
    }
}

static void stream_shaken(void *opaque, QIOChannel *ioc, const Error *err)
{
    RdmaHcaStream *stream = opaque;

    stream->connecting = false;
    if (err) {
        stream_shake_failed(stream, err);
    } else if (stream_wants_peer(stream)) {
        stream_take(stream, ioc);
    }
    if (!stream->taken) {
        stream_connect_later(stream);
    }
}

/* Somebody is there. */
static void stream_meet(RdmaHcaStream *stream, QIOChannelSocket *sioc)
{
    Error *err = NULL;

    qio_channel_set_blocking(QIO_CHANNEL(sioc), false, &err);
    if (err) {
        error_free(err);
        return;
    }
    stream_tune(sioc);
    if (stream->creds) {
        stream->connecting = !stream->server;
        rdma_hca_stream_tls_begin(stream, sioc, stream_shaken);
    } else {
        stream_take(stream, QIO_CHANNEL(sioc));
    }
}

static void stream_connected(QIOTask *task, gpointer opaque)
{
    RdmaHcaStream *stream = opaque;
    Error *err = NULL;

    stream->connecting = false;
    if (qio_task_propagate_error(task, &err)) {
        trace_rdma_hca_cable_failed(rdma_hca_stream_id(stream),
                                    error_get_pretty(err));
        if (stream_is_plugged(stream) && !stream->reconnect_ms) {
            warn_report("rdma-hca-cable %s: %s", rdma_hca_stream_id(stream),
                        error_get_pretty(err));
        }
        error_free(err);
    } else if (stream_wants_peer(stream)) {
        stream_meet(stream, QIO_CHANNEL_SOCKET(qio_task_get_source(task)));
    }
    if (!stream->taken && !stream->connecting) {
        stream_connect_later(stream);
    }
}

static void stream_connect(RdmaHcaStream *stream)
{
    QIOChannelSocket *sioc;

    if (stream->connecting || stream->taken || qatomic_read(&stream->away)) {
        return;
    }
    stream->connecting = true;
    sioc = qio_channel_socket_new();
    qio_channel_set_name(QIO_CHANNEL(sioc), "rdma-hca-cable");
    qio_channel_socket_connect_async(sioc, stream->addr, stream_connected,
                                     object_ref(OBJECT(stream)), object_unref,
                                     NULL);
    object_unref(OBJECT(sioc));
}

/* One peer at a time: another one finds its connection closed. */
static void stream_accept(QIONetListener *listener, QIOChannelSocket *sioc,
                          gpointer opaque)
{
    RdmaHcaStream *stream = opaque;

    if (stream->taken) {
        trace_rdma_hca_cable_refused(rdma_hca_stream_id(stream));
        return;
    }
    stream_meet(stream, sioc);
}

static void stream_drop_ended(RdmaHcaStream *stream)
{
    QIOChannel *ioc;

    WITH_QEMU_LOCK_GUARD(&stream->lock) {
        ioc = g_steal_pointer(&stream->ended);
    }
    if (ioc) {
        object_unref(OBJECT(ioc));
        stream->taken = false;
        trace_rdma_hca_cable_down(rdma_hca_stream_id(stream));
    }
}

/* Who connects while the card is away waits in the listener's queue. */
static void stream_listen(RdmaHcaStream *stream)
{
    bool away = qatomic_read(&stream->away);

    qio_net_listener_set_client_func(stream->listener,
                                     away ? NULL : stream_accept, stream, NULL);
}

static void stream_ended_bh(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    stream_drop_ended(stream);
    if (!stream_is_plugged(stream)) {
        return;
    }
    if (stream->listener) {
        stream_listen(stream);
    } else if (stream->taken || stream->server) {
        return;
    } else if (qatomic_xchg(&stream->seeks, false) &&
               stream->addr->type != SOCKET_ADDRESS_TYPE_FD) {
        stream_connect(stream);
    } else {
        stream_connect_later(stream);
    }
}

static void stream_plug(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    stream->ended_bh = qemu_bh_new(stream_ended_bh, stream);
    stream->away = runstate_check(RUN_STATE_INMIGRATE);
    rdma_hca_stream_flow_init(stream);
    if (stream->listener) {
        stream_listen(stream);
    } else if (stream->passed) {
        stream_meet(stream, stream->passed);
        object_unref(OBJECT(g_steal_pointer(&stream->passed)));
    } else if (stream->addr->type != SOCKET_ADDRESS_TYPE_FD) {
        stream_connect(stream);
    }
}

static void stream_unplug(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    if (stream->listener) {
        qio_net_listener_set_client_func(stream->listener, NULL, NULL, NULL);
    }
    if (stream->reconnect_tag) {
        g_source_remove(stream->reconnect_tag);
        stream->reconnect_tag = 0;
    }
    stream->connecting &= !stream->handshakes.count;
    rdma_hca_handshakes_cancel(&stream->handshakes);
    /* The card's thread is done with the cable: no lock is needed. */
    if (!stream->ended) {
        stream->ended = g_steal_pointer(&stream->arrived);
    }
    stream_drop_ended(stream);
    qemu_bh_delete(g_steal_pointer(&stream->ended_bh));
}

/* ---- the object ---- */

/* What is at the path now. False: nothing. */
static bool stream_is_at_path(const RdmaHcaStream *stream, dev_t *dev,
                              ino_t *ino)
{
    struct stat st;

    if (stat(stream->addr->u.q_unix.path, &st) < 0) {
        return false;
    }
    *dev = st.st_dev;
    *ino = st.st_ino;
    return true;
}

static bool stream_has_path(const RdmaHcaStream *stream)
{
    dev_t dev;
    ino_t ino;

    return stream_is_at_path(stream, &dev, &ino) &&
           dev == stream->listens_dev && ino == stream->listens_ino;
}

/*
 * Another QEMU, to which the machine has moved, has taken the path, and it is not
 * ours to remove: that is not known to QIO, which closes no socket that is not open.
 */
static void stream_leave_path(RdmaHcaStream *stream)
{
    if (stream_has_path(stream)) {
        return;
    }
    qio_net_listener_set_client_func(stream->listener, NULL, NULL, NULL);
    close(stream->at_path->fd);
    stream->at_path->fd = -1;
}

static bool stream_listen_at_path(RdmaHcaStream *stream, Error **errp)
{
    stream->at_path = qio_channel_socket_new();
    if (qio_channel_socket_listen_sync(stream->at_path, stream->addr,
                                       CABLE_BACKLOG, errp) < 0) {
        object_unref(OBJECT(g_steal_pointer(&stream->at_path)));
        return false;
    }
    qio_net_listener_add(stream->listener, stream->at_path);
    stream_is_at_path(stream, &stream->listens_dev, &stream->listens_ino);
    return true;
}

static void stream_close_listener(RdmaHcaStream *stream)
{
    if (stream->at_path) {
        stream_leave_path(stream);
    }
    qio_net_listener_disconnect(stream->listener);
    object_unref(OBJECT(g_steal_pointer(&stream->listener)));
    if (stream->at_path) {
        object_unref(OBJECT(g_steal_pointer(&stream->at_path)));
    }
}

static bool stream_open_listener(RdmaHcaStream *stream, Error **errp)
{
    bool is_path = stream->addr->type == SOCKET_ADDRESS_TYPE_UNIX;
    bool ok;

    stream->listener = qio_net_listener_new();
    qio_net_listener_set_name(stream->listener, "rdma-hca-cable");
    ok = is_path ? stream_listen_at_path(stream, errp)
                 : qio_net_listener_open_sync(stream->listener, stream->addr,
                                              CABLE_BACKLOG, errp) == 0;
    if (!ok) {
        object_unref(OBJECT(g_steal_pointer(&stream->listener)));
    }
    return ok;
}

static bool stream_open_passed(RdmaHcaStream *stream, Error **errp)
{
    if (stream->reconnect_given && stream->reconnect_ms) {
        error_setg(errp, "a passed file descriptor cannot be connected again: "
                         "reconnect-ms must be 0");
        return false;
    }
    stream->reconnect_ms = 0;
    stream->passed = qio_channel_socket_new();
    return qio_channel_socket_connect_sync(stream->passed, stream->addr,
                                           errp) == 0;
}

/* The QEMU that the machine was to move to had taken the path, and did not get it. */
static void stream_return_to_path(RdmaHcaStream *stream)
{
    Error *err = NULL;

    if (stream_has_path(stream)) {
        return;
    }
    stream_close_listener(stream);
    if (!stream_open_listener(stream, &err)) {
        warn_reportf_err(err,
                         "rdma-hca-cable %s: ", rdma_hca_stream_id(stream));
    } else if (stream_is_plugged(stream)) {
        stream_listen(stream);
    }
}

static int stream_migration_event(NotifierWithReturn *notifier,
                                  MigrationEvent *event, Error **errp)
{
    RdmaHcaStream *stream = container_of(notifier, RdmaHcaStream, migration);

    if (event->type == MIG_EVENT_PRECOPY_FAILED && stream->at_path) {
        stream_return_to_path(stream);
    }
    return 0;
}

/* A passed socket may be of any kind; one that is not local carries all. */
static bool stream_check_share(RdmaHcaStream *stream, Error **errp)
{
    if (stream->share != ON_OFF_AUTO_ON) {
        return true;
    }
    if (stream->protocol == RDMA_HCA_CABLE_PROTOCOL_NETDEV) {
        error_setg(errp, "shared-memory=on needs protocol=rdma-hca");
        return false;
    }
    if (stream->addr->type != SOCKET_ADDRESS_TYPE_UNIX &&
        stream->addr->type != SOCKET_ADDRESS_TYPE_FD) {
        error_setg(errp, "shared-memory=on needs a unix socket");
        return false;
    }
    return true;
}

static void stream_complete(UserCreatable *uc, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(uc);

    if (!stream->addr) {
        error_setg(errp, "rdma-hca-cable needs 'addr'");
        return;
    }
    if (socket_address_parse_named_fd(stream->addr, errp) < 0 ||
        !stream_check_share(stream, errp) ||
        !rdma_hca_stream_tls_complete(stream, errp)) {
        return;
    }
    stream->complete = true;
    if (stream->server) {
        if (stream_open_listener(stream, errp)) {
            migration_add_notifier(&stream->migration, stream_migration_event);
        }
    } else if (stream->addr->type == SOCKET_ADDRESS_TYPE_FD) {
        stream_open_passed(stream, errp);
    }
}

static bool stream_can_be_deleted(UserCreatable *uc)
{
    return !rdma_hca_cable_is_plugged(RDMA_HCA_CABLE(uc));
}

/* At object-del and at the end of QEMU: a socket's path goes now. */
static void stream_unparent(Object *obj)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    migration_remove_notifier(&stream->migration);
    if (stream->listener) {
        stream_close_listener(stream);
    }
}

static void stream_get_addr(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (!stream->addr) {
        error_setg(errp, "'addr' is not set");
        return;
    }
    visit_type_SocketAddress(v, name, &stream->addr, errp);
}

static void stream_set_addr(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);
    SocketAddress *addr = NULL;

    if (stream->addr) {
        error_setg(errp, "'addr' can only be set once");
        return;
    }
    if (visit_type_SocketAddress(v, name, &addr, errp)) {
        stream->addr = addr;
    }
}

bool rdma_hca_stream_can_be_set(const RdmaHcaStream *stream, const char *name,
                                Error **errp)
{
    if (stream->complete) {
        error_setg(errp, "'%s' can only be set when the cable is made", name);
    }
    return !stream->complete;
}

static bool stream_get_server(Object *obj, Error **errp)
{
    return RDMA_HCA_STREAM(obj)->server;
}

static void stream_set_server(Object *obj, bool value, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (!rdma_hca_stream_can_be_set(stream, "server", errp)) {
        return;
    }
    stream->server = value;
}

static void stream_get_reconnect(Object *obj, Visitor *v, const char *name,
                                 void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &RDMA_HCA_STREAM(obj)->reconnect_ms, errp);
}

static void stream_set_reconnect(Object *obj, Visitor *v, const char *name,
                                 void *opaque, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);
    uint32_t value;

    if (visit_type_uint32(v, name, &value, errp)) {
        stream->reconnect_ms = value;
        stream->reconnect_given = true;
    }
}

static void stream_get_greeting(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &RDMA_HCA_STREAM(obj)->greeting_ms, errp);
}

static void stream_set_greeting(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (!rdma_hca_stream_can_be_set(stream, "greeting-ms", errp)) {
        return;
    }
    visit_type_uint32(v, name, &stream->greeting_ms, errp);
}

static int stream_get_protocol(Object *obj, Error **errp)
{
    return RDMA_HCA_STREAM(obj)->protocol;
}

static void stream_set_protocol(Object *obj, int value, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (!rdma_hca_stream_can_be_set(stream, "protocol", errp)) {
        return;
    }
    stream->protocol = value;
}

static int stream_get_share(Object *obj, Error **errp)
{
    return RDMA_HCA_STREAM(obj)->share;
}

static void stream_set_share(Object *obj, int value, Error **errp)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (!rdma_hca_stream_can_be_set(stream, "shared-memory", errp)) {
        return;
    }
    stream->share = value;
}

static bool stream_get_sharing(Object *obj, Error **errp)
{
    return qatomic_read(&RDMA_HCA_STREAM(obj)->sharing);
}

static bool stream_get_connected(Object *obj, Error **errp)
{
    return RDMA_HCA_STREAM(obj)->taken;
}

static void stream_init(Object *obj)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    stream->share = ON_OFF_AUTO_AUTO;
    stream->reconnect_ms = CABLE_RECONNECT_MS;
    stream->greeting_ms = CABLE_GREETING_MS;
    rdma_hca_handshakes_init(&stream->handshakes);
    qemu_mutex_init(&stream->lock);
}

static void stream_finalize(Object *obj)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (stream->passed) {
        object_unref(OBJECT(stream->passed));
    }
    rdma_hca_stream_tls_finalize(stream);
    qapi_free_SocketAddress(stream->addr);
    qemu_mutex_destroy(&stream->lock);
}

static void stream_class_init(ObjectClass *klass, RDMA_HCA_CLASS_DATA *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(klass);
    RdmaHcaCableClass *cc = RDMA_HCA_CABLE_CLASS(klass);

    ucc->complete = stream_complete;
    ucc->can_be_deleted = stream_can_be_deleted;
    klass->unparent = stream_unparent;

    cc->protocol = stream_protocol;
    cc->plug = stream_plug;
    cc->unplug = stream_unplug;
    cc->is_server = stream_is_server;
    cc->comes_back = stream_comes_back;
    cc->address = stream_address;
    rdma_hca_stream_flow_class_init(cc);

    object_class_property_add(klass, "addr", "SocketAddress", stream_get_addr,
                              stream_set_addr, NULL, NULL);
    object_class_property_set_description(
        klass, "addr", "Where the peer is reached, or is waited for");
    object_class_property_add_bool(klass, "server", stream_get_server,
                                   stream_set_server);
    object_class_property_set_description(
        klass, "server", "Listen at addr instead of connecting to it");
    object_class_property_add(klass, "reconnect-ms", "uint32",
                              stream_get_reconnect, stream_set_reconnect, NULL,
                              NULL);
    object_class_property_set_description(
        klass, "reconnect-ms",
        "Milliseconds until a connection that failed or ended is tried again; "
        "0: never");
    object_class_property_add(klass, "greeting-ms", "uint32",
                              stream_get_greeting, stream_set_greeting, NULL,
                              NULL);
    object_class_property_set_description(
        klass, "greeting-ms",
        "Milliseconds that who connects to a listening cable has to say that "
        "it is a card; 0: no limit");
    object_class_property_add_enum(klass, "protocol", "RdmaHcaCableProtocol",
                                   &RdmaHcaCableProtocol_lookup,
                                   stream_get_protocol, stream_set_protocol);
    object_class_property_set_description(
        klass, "protocol",
        "What is at the other end: rdma-hca, a card like this one, or, of a "
        "RoCE card, netdev: a -netdev stream");
    object_class_property_add_enum(klass, "shared-memory", "OnOffAuto",
                                   &OnOffAuto_lookup, stream_get_share,
                                   stream_set_share);
    object_class_property_set_description(
        klass, "shared-memory",
        "Whether packets pass by memory that both ends share: on, off, or "
        "auto, if the other end is on this host and does so, too");
    rdma_hca_stream_tls_class_init(klass);
    object_class_property_add_bool(klass, "sharing", stream_get_sharing, NULL);
    object_class_property_set_description(
        klass, "sharing", "Whether packets pass by shared memory now");
    object_class_property_add_bool(klass, "connected", stream_get_connected,
                                   NULL);
    object_class_property_set_description(klass, "connected",
                                          "Whether the other end is there");
}

static const TypeInfo stream_types[] = {
    {
        .name = TYPE_RDMA_HCA_STREAM,
        .parent = TYPE_RDMA_HCA_CABLE,
        .instance_size = sizeof(RdmaHcaStream),
        .instance_init = stream_init,
        .instance_finalize = stream_finalize,
        .class_init = stream_class_init,
        .interfaces = (InterfaceInfo[]) { { TYPE_USER_CREATABLE }, {} },
    },
};

DEFINE_TYPES(stream_types)
