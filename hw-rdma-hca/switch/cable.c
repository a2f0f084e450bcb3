/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cable of a port: a stream socket that listens, one peer at a time, or
 * connects, again and again. As QEMU's rdma-hca-cable does.
 */
#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tls.h"

/* A few hundred packets; what the kernel grants may be less. */
#define BUFFER_SIZE (2 * 1024 * 1024)
/* A peer whose host fell silent is given up after this time. */
#define SILENCE_S 10
#define PROBE_S 5
#define PROBES 4

struct SwCable {
    SwProgram *program;
    unsigned port;
    const SwAddress *address;

    GSocket *listener; /* it listens */
    guint accept_tag;  /* while it has no peer */

    GSocketClient *client; /* it connects */
    GCancellable *cancel;
    bool connecting;
    guint retry_tag;
    bool unplugged; /* it wants no peer */

    SwHandshakes handshakes; /* with TLS */

    SwTls *tls;                    /* of the stream; NULL: it has none */
    GSocket *socket;               /* the peer's stream, NULL: none */
    GSocketConnection *connection; /* which would close it when it goes */
    int fd;
    gpointer fd_tag; /* of the loop's source */
    GIOCondition watched;
    guint greeting_tag;
    bool greeted;
    bool broken; /* to be ended after the turn */
};

static void await_peer(SwCable *cable);
static void await_peer_later(SwCable *cable);

static void say(const SwCable *cable, const char *what)
{
    if (cable->program->options->verbose) {
        sw_complain("port %u: %s (%s)", cable->port, what,
                    sw_address_text(cable->address));
    }
}

/* The stream */

/* All of these only help: a socket that lacks one will do. */
static void tune(GSocket *socket)
{
    int fd = g_socket_get_fd(socket);
    int size = BUFFER_SIZE;

    if (g_socket_get_family(socket) == G_SOCKET_FAMILY_UNIX) {
        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size))) {
            g_socket_set_option(socket, SOL_SOCKET, SO_SNDBUF, size, NULL);
        }
        return;
    }
    /* TCP sizes its own buffers, and better so. */
    g_socket_set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    g_socket_set_keepalive(socket, TRUE);
    g_socket_set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, SILENCE_S, NULL);
    g_socket_set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S, NULL);
    g_socket_set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, PROBES, NULL);
}

/* Who connects has the port to itself, so it has to say soon who it is. */
static gboolean silent(gpointer opaque)
{
    SwCable *cable = opaque;

    cable->greeting_tag = 0;
    say(cable, "the peer does not greet");
    sw_cable_break(cable);
    sw_loop_kick(cable->program);
    return G_SOURCE_REMOVE;
}

static void await_greeting(SwCable *cable)
{
    unsigned ms = cable->program->options->greeting_ms;

    if (cable->listener && ms) {
        cable->greeting_tag = g_timeout_add(ms, silent, cable);
    }
}

static void clear_tag(guint *tag)
{
    if (*tag) {
        g_source_remove(*tag);
        *tag = 0;
    }
}

/* The peer is there. @tls: taken, or NULL. */
static void begin(SwCable *cable, GSocket *socket, SwTls *tls)
{
    sw_handshakes_cancel(&cable->handshakes);
    cable->tls = tls;
    cable->socket = g_object_ref(socket);
    cable->fd = g_socket_get_fd(socket);
    cable->greeted = false;
    cable->broken = false;
    cable->watched = G_IO_IN;
    cable->fd_tag = g_source_add_unix_fd(cable->program->source, cable->fd,
                                         cable->watched);
    clear_tag(&cable->accept_tag);
    await_greeting(cable);
    say(cable, "a peer is there");
    hca_switch_cable(cable->program->sw, cable->port, true);
    sw_loop_kick(cable->program);
}

static void end(SwCable *cable)
{
    clear_tag(&cable->greeting_tag);
    g_source_remove_unix_fd(cable->program->source, cable->fd_tag);
    g_clear_pointer(&cable->tls, sw_tls_free);
    g_socket_close(cable->socket, NULL);
    g_clear_object(&cable->socket);
    g_clear_object(&cable->connection);
    say(cable, "the peer is gone");
    hca_switch_cable(cable->program->sw, cable->port, false);
    sw_loop_kick(cable->program);
}

void sw_cable_break(SwCable *cable)
{
    cable->broken = cable->socket != NULL;
}

/* Other ends of it than -EAGAIN are the stream's. */
static ssize_t judge(SwCable *cable, ssize_t n)
{
    if (n < 0 && n != -EAGAIN && n != -EINTR) {
        sw_cable_break(cable);
    }
    return n;
}

/* What a system call has returned. */
static ssize_t result(ssize_t n)
{
    return n >= 0 ? n : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static ssize_t write_socket(SwCable *cable, const struct iovec *iov, int iovcnt)
{
    struct msghdr message = {
        .msg_iov = (struct iovec *)iov,
        .msg_iovlen = iovcnt,
    };

    return result(sendmsg(cable->fd, &message, MSG_NOSIGNAL));
}

ssize_t sw_cable_writev(SwCable *cable, const struct iovec *iov, int iovcnt)
{
    if (!cable->socket || cable->broken) {
        return -EPIPE;
    }
    return judge(cable, cable->tls ? sw_tls_writev(cable->tls, iov, iovcnt)
                                   : write_socket(cable, iov, iovcnt));
}

ssize_t sw_cable_readv(SwCable *cable, const struct iovec *iov, int iovcnt)
{
    ssize_t n;

    if (!cable->socket || cable->broken) {
        return -EPIPE;
    }
    n = judge(cable, cable->tls ? sw_tls_readv(cable->tls, iov, iovcnt)
                                : result(readv(cable->fd, iov, iovcnt)));
    if (!n) {
        sw_cable_break(cable);
    }
    return n;
}

/* What was taken before. False: not all of it is sent. */
static bool flush(SwCable *cable)
{
    return !cable->tls || judge(cable, sw_tls_flush(cable->tls)) == 0;
}

void sw_cable_before(SwCable *cable)
{
    HcaSwitch *sw = cable->program->sw;
    GIOCondition ready;

    if (!cable->socket) {
        return;
    }
    ready = g_source_query_unix_fd(cable->program->source, cable->fd_tag);
    if (ready & (G_IO_HUP | G_IO_ERR) &&
        !hca_switch_wants_read(sw, cable->port)) {
        /* Nobody would read the end of it, and poll() tells it for ever. */
        sw_cable_break(cable);
    }
    if (ready & (G_IO_IN | G_IO_HUP | G_IO_ERR)) {
        hca_switch_readable(sw, cable->port);
    }
    if (ready & G_IO_OUT && flush(cable)) {
        hca_switch_writable(sw, cable->port);
    }
}

static void watch(SwCable *cable)
{
    HcaSwitch *sw = cable->program->sw;
    GIOCondition wanted = 0;

    if (hca_switch_wants_read(sw, cable->port)) {
        wanted |= G_IO_IN;
    }
    if (hca_switch_wants_write(sw, cable->port) ||
        (cable->tls && sw_tls_is_full(cable->tls))) {
        wanted |= G_IO_OUT;
    }
    if (wanted != cable->watched) {
        cable->watched = wanted;
        g_source_modify_unix_fd(cable->program->source, cable->fd_tag, wanted);
    }
}

void sw_cable_after(SwCable *cable)
{
    if (!cable->socket) {
        return;
    }
    if (cable->broken) {
        end(cable);
        await_peer(cable);
        return;
    }
    if (!cable->greeted &&
        hca_switch_is_greeted(cable->program->sw, cable->port)) {
        cable->greeted = true;
        clear_tag(&cable->greeting_tag);
    }
    watch(cable);
}

/* Who it is */

static bool allows(const SwCable *cable, SwTls *tls)
{
    g_autofree char *name = sw_tls_peer(tls);

    if (cable->listener && !sw_options_allow(cable->program->options,
                                             cable->port, name ? name : "")) {
        sw_complain("port %u: %s may not connect", cable->port,
                    name ? name : "a peer without a name");
        return false;
    }
    return true;
}

static void refuse(SwCable *cable, const char *why)
{
    if (why) {
        say(cable, why);
    }
    if (!cable->listener) {
        g_clear_object(&cable->connection);
        await_peer(cable);
    }
}

static void on_shaken(void *opaque, GSocket *socket, SwTls *tls,
                      const char *why)
{
    SwCable *cable = opaque;

    if (tls && allows(cable, tls)) {
        begin(cable, socket, tls);
    } else {
        sw_tls_free(tls);
        refuse(cable, why);
    }
}

/* Somebody is there. */
static void meet(SwCable *cable, GSocket *socket)
{
    const SwOptions *options = cable->program->options;
    g_autoptr(GError) error = NULL;
    SwTls *tls;

    g_socket_set_blocking(socket, FALSE);
    tune(socket);
    if (!sw_address_is_tls(cable->address)) {
        begin(cable, socket, NULL);
        return;
    }
    tls = sw_tls_new(options->tls, g_socket_get_fd(socket),
                     cable->listener ? NULL : sw_address_host(cable->address),
                     &error);
    if (tls) {
        sw_handshake_begin(&cable->handshakes, socket, tls,
                           cable->listener ? options->greeting_ms : 0,
                           on_shaken, cable);
    } else {
        refuse(cable, error->message);
    }
}

/* Listening */

/* For want of a descriptor: later. */
static gboolean rest(SwCable *cable)
{
    cable->accept_tag = 0;
    await_peer_later(cable);
    return G_SOURCE_REMOVE;
}

static gboolean on_accept(gint fd, GIOCondition condition, gpointer opaque)
{
    SwCable *cable = opaque;
    GError *error = NULL;
    GSocket *socket = g_socket_accept(cable->listener, NULL, &error);

    if (!socket) {
        bool gone = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);

        g_error_free(error);
        return gone ? G_SOURCE_CONTINUE : rest(cable);
    }
    meet(cable, socket);
    g_object_unref(socket);
    return G_SOURCE_CONTINUE; /* until begin() removes it */
}

static bool start_listening(SwCable *cable, GError **error)
{
    cable->listener = sw_address_listen(cable->address, error);
    return cable->listener != NULL;
}

/* Connecting */

static void on_connected(GObject *client, GAsyncResult *result, gpointer opaque)
{
    SwCable *cable = opaque;
    GSocketConnection *connection = g_socket_client_connect_finish(
        G_SOCKET_CLIENT(client), result, NULL);

    cable->connecting = false;
    g_clear_object(&cable->cancel);
    if (cable->unplugged) {
        g_clear_object(&connection);
    } else if (connection) {
        cable->connection = connection;
        meet(cable, g_socket_connection_get_socket(connection));
    } else {
        await_peer(cable);
    }
}

static void connect_now(SwCable *cable)
{
    cable->connecting = true;
    cable->cancel = g_cancellable_new();
    g_socket_client_connect_async(cable->client,
                                  sw_address_target(cable->address),
                                  cable->cancel, on_connected, cable);
}

static void start_connecting(SwCable *cable)
{
    cable->client = g_socket_client_new();
    g_socket_client_set_enable_proxy(cable->client, FALSE);
    connect_now(cable);
}

/* The next peer */

static void accept_next(SwCable *cable)
{
    cable->accept_tag = g_unix_fd_add(g_socket_get_fd(cable->listener), G_IO_IN,
                                      on_accept, cable);
}

static gboolean retry(gpointer opaque)
{
    SwCable *cable = opaque;

    cable->retry_tag = 0;
    if (cable->listener) {
        accept_next(cable);
    } else {
        connect_now(cable);
    }
    return G_SOURCE_REMOVE;
}

static void await_peer_later(SwCable *cable)
{
    if (!cable->retry_tag) {
        cable->retry_tag = g_timeout_add(cable->program->options->reconnect_ms,
                                         retry, cable);
    }
}

static void await_peer(SwCable *cable)
{
    if (cable->unplugged) {
        return;
    }
    if (cable->listener) {
        accept_next(cable);
    } else {
        await_peer_later(cable);
    }
}

/* Life */

SwCable *sw_cable_new(SwProgram *program, unsigned port,
                      const SwAddress *address)
{
    SwCable *cable = g_new0(SwCable, 1);

    cable->program = program;
    cable->port = port;
    cable->address = address;
    return cable;
}

bool sw_cable_start(SwCable *cable, GError **error)
{
    if (!sw_address_listens(cable->address)) {
        start_connecting(cable);
        return true;
    }
    if (!start_listening(cable, error)) {
        return false;
    }
    await_peer(cable);
    return true;
}

bool sw_cable_is_connecting(const SwCable *cable)
{
    return cable->connecting;
}

void sw_cable_unplug(SwCable *cable)
{
    cable->unplugged = true;
    clear_tag(&cable->retry_tag);
    clear_tag(&cable->accept_tag);
    if (cable->cancel) {
        g_cancellable_cancel(cable->cancel);
    }
    sw_handshakes_cancel(&cable->handshakes);
    if (cable->socket) {
        end(cable);
    }
    g_clear_object(&cable->connection);
}

void sw_cable_plug(SwCable *cable)
{
    if (!cable->unplugged) {
        return;
    }
    cable->unplugged = false;
    if (!cable->connecting) { /* else its callback goes on */
        retry(cable);
    }
}

void sw_cable_free(SwCable *cable)
{
    if (!cable) {
        return;
    }
    sw_cable_unplug(cable);
    if (cable->listener) {
        sw_address_unlink(cable->address);
        g_clear_object(&cable->listener);
    }
    g_clear_object(&cable->client);
    g_free(cable);
}
