/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: fabric-cards [--guid=GUID] PATH...
 *
 * The ends of a large fabric: for each path of a socket a card, which connects
 * to it, and again when that fails or ends. The cards have no machine and no
 * driver; their agents answer managers. Their GUIDs follow GUID, so that the
 * first one's is greater by 1. What the cards warn of is printed.
 */
#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "core/card.h"
#include "core/hca.h"
#include "core/port/port.h"

#define NS_PER_SECOND 1000000000ll
#define NS_PER_US 1000
#define RECONNECT_MS 100
#define FIRST_GUID "0x525400fffe0b0000"
#define EXIT_USAGE 2

typedef struct Card {
    const char *path;
    Hca *hca;
    GSource *source;
    int64_t deadline;
    guint retry_tag;
    GSocketConnection *connection; /* NULL: it has no peer */
    gpointer fd_tag;
    bool blocked; /* the cable took no more */
    bool broken;  /* to be ended after the turn */
} Card;

typedef struct CardSource {
    GSource source;
    Card *card;
} CardSource;

static GSocketClient *client;

/* What a card asks of its machine, which has no memory */

static void *op_dma_map(void *opaque, uint64_t addr, uint64_t *len,
                        bool is_write)
{
    return NULL;
}

static void op_dma_written(void *opaque, uint64_t addr, uint64_t len)
{
}

static void op_msix_notify(void *opaque, unsigned vector)
{
}

static int64_t op_clock_ns(void *opaque)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static void set_ready(Card *card, bool now)
{
    int64_t at = card->deadline == INT64_MAX
                     ? -1
                     : MAX(card->deadline, 0) / NS_PER_US + 1;

    g_source_set_ready_time(card->source, now ? 0 : at);
}

/* Outside of a turn there is one that follows. */
static void op_timer_mod(void *opaque, int64_t deadline_ns)
{
    Card *card = opaque;

    card->deadline = deadline_ns;
}

static int socket_of(const Card *card)
{
    return g_socket_get_fd(g_socket_connection_get_socket(card->connection));
}

static ssize_t judge(Card *card, ssize_t n)
{
    if (n < 0) {
        n = errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
    if (n < 0 && n != -EAGAIN && n != -EINTR) {
        card->broken = true;
    }
    return n;
}

static ssize_t op_link_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    Card *card = opaque;
    struct msghdr message = {
        .msg_iov = (struct iovec *)iov,
        .msg_iovlen = iovcnt,
    };
    ssize_t n;

    if (!card->connection || card->broken) {
        return -EPIPE;
    }
    n = judge(card, sendmsg(socket_of(card), &message, MSG_NOSIGNAL));
    card->blocked = n == -EAGAIN;
    return n;
}

static ssize_t op_link_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    Card *card = opaque;
    ssize_t n;

    if (!card->connection || card->broken) {
        return -EPIPE;
    }
    n = judge(card, readv(socket_of(card), iov, iovcnt));
    if (!n) {
        card->broken = true;
    }
    return n;
}

static void op_warn(void *opaque, const char *message)
{
    const Card *card = opaque;

    g_printerr("fabric-cards: %s: %s\n", card->path, message);
}

static const HcaHostOps ops = {
    .dma_map = op_dma_map,
    .dma_written = op_dma_written,
    .msix_notify = op_msix_notify,
    .clock_ns = op_clock_ns,
    .timer_mod = op_timer_mod,
    .link_writev = op_link_writev,
    .link_readv = op_link_readv,
    .warn = op_warn,
};

/* The cable */

static gboolean plug(gpointer opaque)
{
    Card *card = opaque;
    GSocketAddress *address = g_unix_socket_address_new(card->path);

    card->connection = g_socket_client_connect(
        client, G_SOCKET_CONNECTABLE(address), NULL, NULL);
    g_object_unref(address);
    if (!card->connection) {
        return G_SOURCE_CONTINUE;
    }
    card->retry_tag = 0;
    card->blocked = false;
    card->broken = false;
    g_socket_set_blocking(g_socket_connection_get_socket(card->connection),
                          FALSE);
    card->fd_tag = g_source_add_unix_fd(card->source, socket_of(card), G_IO_IN);
    hca_link_up(card->hca);
    set_ready(card, true);
    return G_SOURCE_REMOVE;
}

static void unplug(Card *card)
{
    g_source_remove_unix_fd(card->source, card->fd_tag);
    g_clear_object(&card->connection);
    hca_link_down(card->hca);
}

static void watch(Card *card)
{
    g_source_modify_unix_fd(card->source, card->fd_tag,
                            card->blocked ? G_IO_IN | G_IO_OUT : G_IO_IN);
}

/* Turns */

static gboolean turn(GSource *source, GSourceFunc callback, gpointer data)
{
    Card *card = ((CardSource *)source)->card;
    bool more;

    if (card->connection &&
        g_source_query_unix_fd(source, card->fd_tag) & G_IO_OUT) {
        hca_link_writable(card->hca);
    }
    more = hca_run(card->hca);
    if (card->connection && (card->broken || hca_link_failed(card->hca))) {
        unplug(card);
        card->retry_tag = g_timeout_add(RECONNECT_MS, plug, card);
        more = true;
    }
    if (card->connection) {
        watch(card);
    }
    set_ready(card, more);
    return G_SOURCE_CONTINUE;
}

/* Life */

/* As small as a card can be: nobody uses its queues. */
static void configure(HcaConfig *config, uint64_t guid)
{
    const HcaOption *options;
    unsigned n;

    hca_config_init(config);
    options = hca_config_options(&n);
    for (unsigned i = 0; i < n; i++) {
        G_STRUCT_MEMBER(uint32_t, config, options[i].offset) =
            options[i].may_be_0 ? 0 : options[i].least;
    }
    config->num_vectors = 1;
    config->guid = guid;
}

static void start(Card *card, const char *path, uint64_t guid)
{
    static GSourceFuncs funcs = { .dispatch = turn };
    HcaConfig config;
    const char *error;

    configure(&config, guid);
    error = hca_config_check(&config);
    if (error) {
        g_error("%s", error);
    }
    card->path = path;
    card->deadline = INT64_MAX;
    card->source = g_source_new(&funcs, sizeof(CardSource));
    ((CardSource *)card->source)->card = card;
    g_source_attach(card->source, NULL);
    card->hca = hca_new(&config, &ops, card);
    hca_port_enable(card->hca->port, true); /* as a driver has it by INIT_IB */
    card->retry_tag = g_timeout_add(0, plug, card);
}

static void stop(Card *card)
{
    if (card->retry_tag) {
        g_source_remove(card->retry_tag);
    }
    if (card->connection) {
        unplug(card);
    }
    hca_free(card->hca);
    g_source_destroy(card->source);
    g_source_unref(card->source);
}

static gboolean on_end(gpointer opaque)
{
    g_main_loop_quit(opaque);
    return G_SOURCE_CONTINUE;
}

static void run(char **paths, unsigned n, uint64_t guid)
{
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    Card *cards = g_new0(Card, n);

    client = g_socket_client_new();
    g_unix_signal_add(SIGTERM, on_end, loop);
    g_unix_signal_add(SIGINT, on_end, loop);
    for (unsigned i = 0; i < n; i++) {
        start(&cards[i], paths[i], guid + i + 1);
    }
    g_main_loop_run(loop);
    for (unsigned i = 0; i < n; i++) {
        stop(&cards[i]);
    }
    g_free(cards);
    g_object_unref(client);
    g_main_loop_unref(loop);
}

int main(int argc, char **argv)
{
    char *guid = NULL, **paths = NULL;
    const GOptionEntry entries[] = {
        { "guid", 0, 0, G_OPTION_ARG_STRING, &guid,
          "That of the first card is greater by 1; " FIRST_GUID, "GUID" },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &paths, NULL,
          "PATH..." },
        { NULL },
    };
    GOptionContext *context = g_option_context_new(NULL);
    GError *error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || !paths) {
        g_printerr("fabric-cards: %s\n",
                   error ? error->message : "there is no PATH");
        return EXIT_USAGE;
    }
    run(paths, g_strv_length(paths), strtoull(guid ?: FIRST_GUID, NULL, 0));
    g_option_context_free(context);
    g_strfreev(paths);
    g_free(guid);
    return EXIT_SUCCESS;
}
