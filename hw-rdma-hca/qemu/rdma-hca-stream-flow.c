/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a cable that is a stream socket. See rdma-hca-stream.h.
 *
 * With a peer on the same host that does so, too, they go by shared memory, see
 * rdma-hca-shm.h; a peer that breaks its rules has seen the last of it. With
 * credentials they go over TLS, see rdma-hca-tls.h.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/lockable.h"
#include "qemu/timer.h"
#include "rdma-hca-channel.h"
#include "rdma-hca-stream.h"
#include "trace.h"

static void stream_on_readable(void *opaque);
static void stream_on_writable(void *opaque);
static void stream_on_ready(EventNotifier *wakes);

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
static void stream_on_ready(EventNotifier *wakes)
{
    RdmaHcaStream *stream = stream_of_wakes(wakes);

    QEMU_LOCK_GUARD(stream->cable.lock);
    stream_tell_writable(stream);
    stream->cable.events->readable(stream->cable.opaque);
}

/* The rest of what was taken before. False: more is left, or it has failed. */
static bool stream_flush(RdmaHcaStream *stream)
{
    int ret = stream->tls ? rdma_hca_tls_flush(stream->tls) : 0;

    if (ret && ret != -EAGAIN) {
        stream_break(stream);
    }
    return !ret;
}

static void stream_on_writable(void *opaque)
{
    RdmaHcaStream *stream = opaque;

    QEMU_LOCK_GUARD(stream->cable.lock);
    if (!stream_flush(stream)) {
        return;
    }
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
    if (stream->tls) {
        return rdma_hca_tls_writev(stream->tls, iov, iovcnt);
    }
    ret = qio_channel_writev(stream->ioc, iov, MIN(iovcnt, IOV_MAX), NULL);
    return rdma_hca_channel_result(ret);
}

static ssize_t stream_do_readv(RdmaHcaStream *stream, const struct iovec *iov,
                               int iovcnt)
{
    ssize_t ret;

    if (stream->shm) {
        return rdma_hca_shm_readv(stream->shm, iov, iovcnt);
    }
    ret = qio_channel_readv(stream->ioc, iov, MIN(iovcnt, IOV_MAX), NULL);
    return rdma_hca_channel_result(ret);
}

/* The stream has come to its end, or to what cannot be. */
static void stream_fail(RdmaHcaStream *stream, ssize_t ret)
{
    if (ret == -EPROTO) {
        trace_rdma_hca_cable_distrusted(rdma_hca_stream_id(stream));
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
        trace_rdma_hca_cable_shared(rdma_hca_stream_id(stream));
        qatomic_set(&stream->sharing, true);
        stream_watch(stream, stream->read_watched, stream->write_watched);
    } else if (rdma_hca_shm_is_refused(stream->shm)) {
        trace_rdma_hca_cable_not_shared(rdma_hca_stream_id(stream));
        if (stream->share == ON_OFF_AUTO_ON) {
            stream_break(stream);
        }
        g_clear_pointer(&stream->shm, rdma_hca_shm_free);
    }
}

/* The card has given them and does not ask for them again. */
static bool stream_holds_bytes(const RdmaHcaStream *stream)
{
    return stream->tls && rdma_hca_tls_is_full(stream->tls);
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
    if (ret < 0 && ret != -EAGAIN) {
        stream_fail(stream, ret);
    } else if (stream->shm && rdma_hca_shm_is_sending(stream->shm)) {
        stream->write_blocked = ret == -EAGAIN;
    } else if (ret == -EAGAIN || stream_holds_bytes(stream)) {
        stream_watch(stream, stream->read_watched, true);
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
    trace_rdma_hca_cable_silent(rdma_hca_stream_id(stream));
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
    g_clear_pointer(&stream->tls, rdma_hca_tls_free);
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
    if (stream->tls) {
        return false;
    }
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
    trace_rdma_hca_cable_no_memory(rdma_hca_stream_id(stream),
                                   error_get_pretty(err));
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
        if (stream->creds) {
            stream->tls = rdma_hca_tls_new(stream->ioc);
        }
        stream_offer_memory(stream);
        stream->greeted = false;
        stream_await_greeting(stream);
        stream->cable.events->up(stream->cable.opaque);
    }
}

/* A card that has been somewhere else looks for its peer. */
static void stream_seek(RdmaHcaStream *stream)
{
    if (qatomic_xchg(&stream->away, false)) {
        qatomic_set(&stream->seeks, true);
        qemu_bh_schedule(stream->ended_bh);
    }
}

static void stream_start(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    stream->running = true;
    stream_seek(stream);
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

static void stream_part(RdmaHcaCable *cable)
{
    RdmaHcaStream *stream = RDMA_HCA_STREAM(cable);

    qatomic_set(&stream->away, true);
    if (stream->ioc) {
        /* The main loop closes it when it has time. */
        qio_channel_shutdown(stream->ioc, QIO_CHANNEL_SHUTDOWN_BOTH, NULL);
        stream_end(stream);
    }
}

static void stream_hurry(RdmaHcaCable *cable, bool hurry)
{
    qatomic_set(&RDMA_HCA_STREAM(cable)->hurry, hurry);
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

void rdma_hca_stream_flow_class_init(RdmaHcaCableClass *cc)
{
    cc->start = stream_start;
    cc->stop = stream_stop;
    cc->close = stream_close;
    cc->writev = stream_writev;
    cc->readv = stream_readv;
    cc->drop = stream_drop;
    cc->settle = stream_settle;
    cc->part = stream_part;
    cc->hurry = stream_hurry;
}

void rdma_hca_stream_flow_init(RdmaHcaStream *stream)
{
    AioContext *ctx = stream->cable.ctx;

    stream->arrived_bh = aio_bh_new(ctx, stream_arrived_bh, stream);
    stream->broken_bh = aio_bh_new(ctx, stream_broken_bh, stream);
    stream->greeting_timer = aio_timer_new(ctx, QEMU_CLOCK_REALTIME, SCALE_MS,
                                           stream_silent, stream);
}
