/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cable that is a stream socket with a peer at its other end: the
 * user-creatable object rdma-hca-cable.
 *
 * The object listens, accepts, connects and reconnects in the main loop; the
 * bytes flow in the card's thread. A stream is handed from the one to the
 * other when the peer comes, and back when it goes. One peer at a time.
 *
 * With a peer on the same host that does so, too, the bytes go by shared memory,
 * see rdma-hca-shm.h; a peer that breaks its rules has seen the last of it.
 */
#include "qemu/osdep.h"
#include <netinet/tcp.h>
#include "io/channel-socket.h"
#include "io/net-listener.h"
#include "qapi/error.h"
#include "qapi/qapi-types-qom.h"
#include "qapi/qapi-visit-sockets.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "qom/object_interfaces.h"
#include "rdma-hca-cable.h"
#include "rdma-hca-shm.h"
#include "trace.h"

#define CABLE_RECONNECT_MS 1000
#define CABLE_GREETING_MS 10000
/* A few hundred packets; what the kernel grants may be less. */
#define CABLE_BUFFER_SIZE (2 * MiB)
/* A peer whose host fell silent is given up after this time. */
#define CABLE_SILENCE_S 10
#define CABLE_PROBE_S 5
#define CABLE_PROBES 4

#define TYPE_RDMA_HCA_STREAM "rdma-hca-cable"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaHcaStream, RDMA_HCA_STREAM)

struct RdmaHcaStream {
    RdmaHcaCable cable; /* what it is a kind of */

    /* Properties. */
    SocketAddress *addr;
    bool server;
    uint32_t reconnect_ms;
    bool reconnect_given;
    uint32_t greeting_ms;
    RdmaHcaCableProtocol protocol;
    OnOffAuto share; /* memory */
    bool complete;

    /* The main loop's. */
    QIONetListener *listener; /* server */
    QIOChannelSocket *passed; /* client on a passed fd, until plugged */
    guint reconnect_tag;
    bool connecting;
    bool taken; /* the card has a stream */
    QEMUBH *ended_bh;

    /* Hand-over between the two. */
    QemuMutex lock;
    QIOChannel *arrived; /* to the card */
    QIOChannel *ended;   /* to the main loop */

    /* The card's. */
    QEMUBH *arrived_bh;
    QEMUBH *broken_bh;
    QIOChannel *ioc; /* while a peer is there */
    bool running;
    bool broken;      /* to be ended by broken_bh */
    bool read_wanted; /* the card reads until -EAGAIN */
    bool read_watched;
    bool write_watched;  /* the card was told -EAGAIN */
    bool rings_watched;  /* in place of the socket, while the thread polls */
    EventNotifier wakes; /* the socket's descriptor, for that */
    bool write_blocked;  /* the same, and a wake-up will come */
    bool greeted;        /* the peer has said who it is */
    RdmaHcaShm *shm;     /* NULL: the socket carries everything */
    bool distrusted;     /* a peer has broken the rules of shared memory */
    bool sharing;        /* atomic: both directions go by it */
    QEMUTimer *greeting_timer;
};

static bool stream_is_plugged(const RdmaHcaStream *stream)
{
    return rdma_hca_cable_is_plugged(&stream->cable);
}

static const char *stream_id(const RdmaHcaStream *stream)
{
    const char *id = object_get_canonical_path_component(OBJECT(stream));

    return id ? id : "";
}

/* ---- the card's thread ---- */

static void stream_on_readable(void *opaque);
static void stream_on_writable(void *opaque);
static void stream_on_ring(RdmaHcaStream *stream);

static RdmaHcaStream *stream_of_wakes(EventNotifier *wakes)
{
    return container_of(wakes, RdmaHcaStream, wakes);
}

static void stream_on_wake(EventNotifier *wakes)
{
    stream_on_readable(stream_of_wakes(wakes));
}

static bool stream_poll(void *opaque)
{
    RdmaHcaStream *stream = stream_of_wakes(opaque);
    bool ready;

    if (qemu_rec_mutex_trylock(stream->cable.lock)) {
        return false; /* who has it looks for itself */
    }
    ready = rdma_hca_shm_is_ready(stream->shm);
    qemu_rec_mutex_unlock(stream->cable.lock);
    return ready;
}

static void stream_on_ready(EventNotifier *wakes)
{
    stream_on_ring(stream_of_wakes(wakes));
}

static void stream_poll_begin(EventNotifier *wakes)
{
    RdmaHcaStream *stream = stream_of_wakes(wakes);

    QEMU_LOCK_GUARD(stream->cable.lock);
    rdma_hca_shm_set_polling(stream->shm, true);
}

static void stream_poll_end(EventNotifier *wakes)
{
    RdmaHcaStream *stream = stream_of_wakes(wakes);

    QEMU_LOCK_GUARD(stream->cable.lock);
    rdma_hca_shm_set_polling(stream->shm, false);
}

/*
 * Watch the rings of shared memory as long as the thread's event loop polls (see
 * poll-max-ns of its iothread), and then the socket.
 */
static void stream_watch_rings(RdmaHcaStream *stream)
{
    AioContext *ctx = stream->cable.ctx;

    event_notifier_init_fd(&stream->wakes, QIO_CHANNEL_SOCKET(stream->ioc)->fd);
    aio_set_event_notifier(ctx, &stream->wakes, stream_on_wake, stream_poll,
                           stream_on_ready);
    aio_set_event_notifier_poll(ctx, &stream->wakes, stream_poll_begin,
                                stream_poll_end);
}

static void stream_watch_socket(RdmaHcaStream *stream, bool read, bool write)
{
    AioContext *ctx = stream->cable.ctx;

    if (stream->shm) {
        rdma_hca_shm_set_polling(stream->shm, false);
    }
    qio_channel_set_aio_fd_handler(stream->ioc, ctx,
                                   read ? stream_on_readable : NULL, ctx,
                                   write ? stream_on_writable : NULL, stream);
}

static void stream_watch(RdmaHcaStream *stream, bool read, bool write)
{
    bool rings = stream->sharing && read && !write;

    if (stream->read_watched == read && stream->write_watched == write &&
        stream->rings_watched == rings) {
        return;
    }
    stream->read_watched = read;
    stream->write_watched = write;
    stream->rings_watched = rings;
    if (rings) {
        stream_watch_rings(stream);
    } else {
        stream_watch_socket(stream, read, write);
    }
}

static void stream_break(RdmaHcaStream *stream)
{
    if (stream->ioc && !stream->broken) {
        stream->broken = true;
        qemu_bh_schedule(stream->broken_bh);
    }
}

/* What comes by the socket is of use only when the card has room for it. */
static bool stream_brings_bytes(const RdmaHcaStream *stream)
{
    return !stream->shm || !rdma_hca_shm_is_receiving(stream->shm);
}

static void stream_tell_writable(RdmaHcaStream *stream)
{
    if (stream->write_blocked) {
        stream->write_blocked = false;
        stream->cable.events->writable(stream->cable.opaque);
    }
}

/*
 * The socket stays readable while the card has no room for more. Stop
 * watching then; the next stream_readv() watches again.
 */
static void stream_on_readable(void *opaque)
{
    RdmaHcaStream *stream = opaque;
    bool there;

    QEMU_LOCK_GUARD(stream->cable.lock);
    there = !stream->shm || rdma_hca_shm_woken(stream->shm);
    stream->read_wanted = false;
    stream_tell_writable(stream);
    stream->cable.events->readable(stream->cable.opaque);
    if (!there) {
        stream_break(stream);
    } else if (stream->ioc && stream->running && !stream->read_wanted &&
               stream_brings_bytes(stream)) {
        stream_watch(stream, false, stream->write_watched);
    }
}

/* The thread has looked for itself: no wake-up has come for that. */
static void stream_on_ring(RdmaHcaStream *stream)
{
    QEMU_LOCK_GUARD(stream->cable.lock);
    stream_tell_writable(stream);
    stream->cable.events->readable(stream->cable.opaque);
}

static void stream_on_writable(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    QEMU_LOCK_GUARD(stream->cable.lock);
    stream_watch(stream, stream->read_watched, false);
    stream->cable.events->writable(stream->cable.opaque);
}

static void stream_drop(RdmaHcaCable *cable)
{
    stream_break(RDMA_HCA_STREAM(cable));
}

static ssize_t stream_do_writev(RdmaHcaStream *stream, const struct iovec *iov,
                                int iovcnt)
{
    ssize_t ret;

    if (stream->shm) {
        return rdma_hca_shm_writev(stream->shm, iov, iovcnt);
    }
    ret = qio_channel_writev(stream->ioc, iov, MIN(iovcnt, IOV_MAX), NULL);
    return ret == QIO_CHANNEL_ERR_BLOCK ? -EAGAIN : ret < 0 ? -EPIPE : ret;
}

static ssize_t stream_do_readv(RdmaHcaStream *stream, const struct iovec *iov,
                               int iovcnt)
{
    ssize_t ret;

    if (stream->shm) {
        return rdma_hca_shm_readv(stream->shm, iov, iovcnt);
    }
    ret = qio_channel_readv(stream->ioc, iov, MIN(iovcnt, IOV_MAX), NULL);
    return ret == QIO_CHANNEL_ERR_BLOCK ? -EAGAIN : ret < 0 ? -EPIPE : ret;
}

/* The stream has come to its end, or to what cannot be. */
static void stream_fail(RdmaHcaStream *stream, ssize_t ret)
{
    if (ret == -EPROTO) {
        trace_rdma_hca_cable_distrusted(stream_id(stream));
        stream->distrusted = true;
    }
    stream_break(stream);
}

/* What has come of the offer to share memory. */
static void stream_look_at_shm(RdmaHcaStream *stream)
{
    if (!stream->shm || stream->sharing) {
        return;
    }
    if (rdma_hca_shm_is_sending(stream->shm) &&
        rdma_hca_shm_is_receiving(stream->shm)) {
        trace_rdma_hca_cable_shared(stream_id(stream));
        qatomic_set(&stream->sharing, true);
        stream_watch(stream, stream->read_watched, stream->write_watched);
    } else if (rdma_hca_shm_is_refused(stream->shm)) {
        trace_rdma_hca_cable_not_shared(stream_id(stream));
        if (stream->share == ON_OFF_AUTO_ON) {
            stream_break(stream);
        }
        g_clear_pointer(&stream->shm, rdma_hca_shm_free);
    }
}

static ssize_t stream_writev(RdmaHcaCable *cable, const struct iovec *iov,
                             int iovcnt)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);
    ssize_t ret;

    if (!stream->ioc || stream->broken) {
        return -EPIPE;
    }
    ret = stream_do_writev(stream, iov, iovcnt);
    if (ret == -EAGAIN && stream->shm && rdma_hca_shm_is_sending(stream->shm)) {
        stream->write_blocked = true;
    } else if (ret == -EAGAIN) {
        stream_watch(stream, stream->read_watched, true);
    } else if (ret < 0) {
        stream_fail(stream, ret);
    }
    return ret;
}

static ssize_t stream_readv(RdmaHcaCable *cable, const struct iovec *iov,
                            int iovcnt)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);
    ssize_t ret;

    if (!stream->ioc || stream->broken) {
        return -EPIPE;
    }
    stream->read_wanted = true;
    stream_watch(stream, true, stream->write_watched);
    ret = stream_do_readv(stream, iov, iovcnt);
    if (ret <= 0 && ret != -EAGAIN) {
        stream_fail(stream, ret);
    }
    stream_look_at_shm(stream);
    return ret;
}

/*
 * Whoever connects has the cable to itself, so it has to say soon that it is a
 * card: the whole greeting in one time, however it is cut. That is host time;
 * the guest's is not the peer's. Who connected to a peer waits for that one.
 */
static void stream_await_greeting(RdmaHcaStream *stream)
{
    if (stream->ioc && stream->server && stream->greeting_ms &&
        !stream->greeted) {
        timer_mod(stream->greeting_timer,
                  qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + stream->greeting_ms);
    }
}

static void stream_settle(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    stream->greeted = true;
    timer_del(stream->greeting_timer);
}

static void stream_silent(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    QEMU_LOCK_GUARD(stream->cable.lock);
    trace_rdma_hca_cable_silent(stream_id(stream));
    stream_break(stream);
}

/* Give the stream back to the main loop. */
static void stream_end(RdmaHcaStream *stream)
{
    timer_del(stream->greeting_timer);
    stream_watch(stream, false, false);
    WITH_QEMU_LOCK_GUARD(&stream->lock) {
        stream->ended = stream->ioc;
    }
    stream->ioc = NULL;
    stream->broken = false;
    qatomic_set(&stream->sharing, false);
    g_clear_pointer(&stream->shm, rdma_hca_shm_free);
    qemu_bh_schedule(stream->ended_bh);
}

static void stream_broken_bh(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    QEMU_LOCK_GUARD(stream->cable.lock);
    if (!stream->running || !stream->broken) {
        return;
    }
    stream_end(stream);
    stream->cable.events->down(stream->cable.opaque);
}

static bool stream_may_share(const RdmaHcaStream *stream)
{
    return stream->share == ON_OFF_AUTO_ON ||
           (stream->share == ON_OFF_AUTO_AUTO && !stream->distrusted &&
            stream->protocol == RDMA_HCA_CABLE_PROTOCOL_RDMA_HCA);
}

/* A host or socket that knows no such memory does without, if it may. */
static void stream_offer_memory(RdmaHcaStream *stream)
{
    Error *err = NULL;

    if (!stream_may_share(stream)) {
        return;
    }
    stream->shm = rdma_hca_shm_new(stream->ioc, &err);
    if (stream->shm) {
        return;
    }
    trace_rdma_hca_cable_no_memory(stream_id(stream), error_get_pretty(err));
    error_free(err);
    if (stream->share == ON_OFF_AUTO_ON) {
        stream_break(stream);
    }
}

static void stream_arrived_bh(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    QEMU_LOCK_GUARD(stream->cable.lock);
    if (!stream->running || stream->ioc) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&stream->lock) {
        stream->ioc = g_steal_pointer(&stream->arrived);
    }
    if (stream->ioc) {
        stream_watch(stream, true, false);
        stream->write_blocked = false;
        stream_offer_memory(stream);
        stream->greeted = false;
        stream_await_greeting(stream);
        stream->cable.events->up(stream->cable.opaque);
    }
}

static void stream_start(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    stream->running = true;
    if (stream->ioc) {
        /* What was waited for may have come: let both sides look. */
        stream_watch(stream, true, true);
        stream_await_greeting(stream);
    }
    qemu_bh_schedule(stream->broken_bh);
    qemu_bh_schedule(stream->arrived_bh);
}

static void stream_stop(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    if (stream->ioc) {
        stream_watch(stream, false, false);
        timer_del(stream->greeting_timer);
    }
    stream->running = false;
}

static void stream_close(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    if (stream->ioc) {
        stream_end(stream);
    }
    qemu_bh_delete(g_steal_pointer(&stream->arrived_bh));
    qemu_bh_delete(g_steal_pointer(&stream->broken_bh));
    timer_free(g_steal_pointer(&stream->greeting_timer));
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
static void stream_take(RdmaHcaStream *stream, QIOChannelSocket *sioc)
{
    QIOChannel *ioc = QIO_CHANNEL(sioc);

    if (qio_channel_set_blocking(ioc, false, NULL) < 0) {
        return;
    }
    stream_tune(sioc);
    object_ref(OBJECT(ioc));
    stream->taken = true;
    trace_rdma_hca_cable_up(stream_id(stream));
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
        stream->reconnect_tag = g_timeout_add(stream->reconnect_ms,
                                              stream_reconnect, stream);
    }
}

static void stream_connected(QIOTask *task, gpointer opaque)
{
    RdmaHcaStream *stream = opaque;
    Error *err = NULL;

    stream->connecting = false;
    if (qio_task_propagate_error(task, &err)) {
        trace_rdma_hca_cable_failed(stream_id(stream), error_get_pretty(err));
        if (stream_is_plugged(stream) && !stream->reconnect_ms) {
            warn_report("rdma-hca-cable %s: %s", stream_id(stream),
                        error_get_pretty(err));
        }
        error_free(err);
    } else if (stream_is_plugged(stream) && !stream->taken) {
        stream_take(stream, QIO_CHANNEL_SOCKET(qio_task_get_source(task)));
    }
    if (!stream->taken) {
        stream_connect_later(stream);
    }
}

static void stream_connect(RdmaHcaStream *stream)
{
    QIOChannelSocket *sioc;

    if (stream->connecting || stream->taken) {
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
        trace_rdma_hca_cable_refused(stream_id(stream));
        return;
    }
    stream_take(stream, sioc);
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
        trace_rdma_hca_cable_down(stream_id(stream));
    }
}

static void stream_ended_bh(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    stream_drop_ended(stream);
    if (!stream->taken) {
        stream_connect_later(stream);
    }
}

static void stream_plug(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    stream->ended_bh = qemu_bh_new(stream_ended_bh, stream);
    stream->arrived_bh = aio_bh_new(cable->ctx, stream_arrived_bh, stream);
    stream->broken_bh = aio_bh_new(cable->ctx, stream_broken_bh, stream);
    stream->greeting_timer = aio_timer_new(cable->ctx, QEMU_CLOCK_REALTIME,
                                           SCALE_MS, stream_silent, stream);

    if (stream->listener) {
        qio_net_listener_set_client_func(stream->listener, stream_accept,
                                         stream, NULL);
    } else if (stream->passed) {
        stream_take(stream, stream->passed);
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
    /* The card's thread is done with the cable: no lock is needed. */
    if (!stream->ended) {
        stream->ended = g_steal_pointer(&stream->arrived);
    }
    stream_drop_ended(stream);
    qemu_bh_delete(g_steal_pointer(&stream->ended_bh));
}

/* ---- the object ---- */

static bool stream_open_listener(RdmaHcaStream *stream, Error **errp)
{
    stream->listener = qio_net_listener_new();
    qio_net_listener_set_name(stream->listener, "rdma-hca-cable");
    if (qio_net_listener_open_sync(stream->listener, stream->addr, 1, errp) <
        0) {
        object_unref(OBJECT(g_steal_pointer(&stream->listener)));
        return false;
    }
    return true;
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
        !stream_check_share(stream, errp)) {
        return;
    }
    stream->complete = true;
    if (stream->server) {
        stream_open_listener(stream, errp);
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

    if (stream->listener) {
        qio_net_listener_disconnect(stream->listener);
        object_unref(OBJECT(g_steal_pointer(&stream->listener)));
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

static bool stream_can_be_set(const RdmaHcaStream *stream, const char *name,
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

    if (!stream_can_be_set(stream, "server", errp)) {
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

    if (!stream_can_be_set(stream, "greeting-ms", errp)) {
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

    if (!stream_can_be_set(stream, "protocol", errp)) {
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

    if (!stream_can_be_set(stream, "shared-memory", errp)) {
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
    qemu_mutex_init(&stream->lock);
}

static void stream_finalize(Object *obj)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(obj);

    if (stream->passed) {
        object_unref(OBJECT(stream->passed));
    }
    qapi_free_SocketAddress(stream->addr);
    qemu_mutex_destroy(&stream->lock);
}

static void stream_class_init(ObjectClass *klass, void *data)
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
    cc->address = stream_address;
    cc->start = stream_start;
    cc->stop = stream_stop;
    cc->close = stream_close;
    cc->writev = stream_writev;
    cc->readv = stream_readv;
    cc->drop = stream_drop;
    cc->settle = stream_settle;

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
