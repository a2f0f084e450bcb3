/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of sockets: a path, or a host and a port; to connect or to listen. */
#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "program.h"

typedef struct Kind {
    const char *prefix;
    bool is_unix, listens, is_tls;
} Kind;

struct SwAddress {
    const Kind *kind;
    char *text;
    char *path; /* NULL: TCP */
    GSocketConnectable *target;
};

static const Kind kinds[] = {
    { "unix:", true, false, false }, { "unix-listen:", true, true, false },
    { "tcp:", false, false, false }, { "tcp-listen:", false, true, false },
    { "tls:", false, false, true },  { "tls-listen:", false, true, true },
};

static bool parse_path(SwAddress *address, const char *path, GError **error)
{
    if (!*path || strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "a socket's path has 1 to %zu bytes",
                    sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
        return false;
    }
    address->path = g_strdup(path);
    address->target = G_SOCKET_CONNECTABLE(g_unix_socket_address_new(path));
    return true;
}

static bool parse_host(SwAddress *address, const char *host, GError **error)
{
    GSocketConnectable *target = g_network_address_parse(host, 0, error);

    if (!target) {
        return false;
    }
    address->target = target;
    if (!g_network_address_get_port(G_NETWORK_ADDRESS(target))) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "a port number is missing");
        return false;
    }
    return true;
}

/* @rest: behind the prefix. */
static SwAddress *new_address(const char *text, const char *rest,
                              const Kind *kind, GError **error)
{
    SwAddress *address = g_new0(SwAddress, 1);

    address->text = g_strdup(text);
    address->kind = kind;
    if (kind->is_unix ? parse_path(address, rest, error)
                      : parse_host(address, rest, error)) {
        return address;
    }
    g_prefix_error(error, "%s: ", text);
    sw_address_free(address);
    return NULL;
}

SwAddress *sw_address_parse(const char *text, GError **error)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_has_prefix(text, kinds[i].prefix)) {
            return new_address(text, text + strlen(kinds[i].prefix), &kinds[i],
                               error);
        }
    }
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                "%s: an address is unix:PATH, unix-listen:PATH, tcp:HOST:PORT, "
                "tcp-listen:HOST:PORT, tls:HOST:PORT or tls-listen:HOST:PORT",
                text);
    return NULL;
}

SwAddress *sw_address_of_path(const char *path, GError **error)
{
    static const Kind kind = { .is_unix = true, .listens = true };

    return new_address(path, path, &kind, error);
}

void sw_address_free(SwAddress *address)
{
    if (address) {
        g_clear_object(&address->target);
        g_free(address->path);
        g_free(address->text);
        g_free(address);
    }
}

bool sw_address_listens(const SwAddress *address)
{
    return address->kind->listens;
}

bool sw_address_is_tls(const SwAddress *address)
{
    return address->kind->is_tls;
}

const char *sw_address_host(const SwAddress *address)
{
    return address->path ? NULL
                         : g_network_address_get_hostname(
                               G_NETWORK_ADDRESS(address->target));
}

const char *sw_address_text(const SwAddress *address)
{
    return address->text;
}

GSocketConnectable *sw_address_target(const SwAddress *address)
{
    return address->target;
}

/* Listening */

/* The first that the name stands for. */
static GSocketAddress *resolve(const SwAddress *address, GError **error)
{
    GSocketAddressEnumerator *all = g_socket_connectable_enumerate(
        address->target);
    GSocketAddress *first = g_socket_address_enumerator_next(all, NULL, error);

    g_object_unref(all);
    return first;
}

static GSocket *bind_to(GSocketAddress *to, GError **error)
{
    GSocket *socket = g_socket_new(g_socket_address_get_family(to),
                                   G_SOCKET_TYPE_STREAM,
                                   G_SOCKET_PROTOCOL_DEFAULT, error);

    if (!socket) {
        return NULL;
    }
    g_socket_set_blocking(socket, FALSE);
    if (!g_socket_bind(socket, to, TRUE, error) ||
        !g_socket_listen(socket, error)) {
        g_object_unref(socket);
        return NULL;
    }
    return socket;
}

/* Nobody accepts there any more: what a killed process has left. */
static bool is_stale(const SwAddress *address, GSocketAddress *to)
{
    GSocket *socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM,
                                   G_SOCKET_PROTOCOL_DEFAULT, NULL);
    GError *error = NULL;
    bool stale;

    if (!address->path || !socket) {
        g_clear_object(&socket);
        return false;
    }
    g_socket_set_blocking(socket, FALSE);
    g_socket_connect(socket, to, NULL, &error);
    stale = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED);
    g_clear_error(&error);
    g_object_unref(socket);
    return stale;
}

GSocket *sw_address_listen(const SwAddress *address, GError **error)
{
    GSocketAddress *to = resolve(address, error);
    GError *busy = NULL;
    GSocket *socket;

    if (!to) {
        g_prefix_error(error, "%s: ", address->text);
        return NULL;
    }
    socket = bind_to(to, &busy);
    if (g_error_matches(busy, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE) &&
        is_stale(address, to)) {
        g_clear_error(&busy);
        sw_address_unlink(address);
        socket = bind_to(to, &busy);
    }
    if (busy) {
        g_propagate_prefixed_error(error, busy, "%s: ", address->text);
    }
    g_object_unref(to);
    return socket;
}

void sw_address_unlink(const SwAddress *address)
{
    if (address->path) {
        g_unlink(address->path);
    }
}
