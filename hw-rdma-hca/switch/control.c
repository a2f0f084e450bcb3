/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands by a unix socket: a line each; the answer is lines, of which the last
 * one is "ok" or "error: " and why.
 */
#include <errno.h>
#include <glib-unix.h>
#include <unistd.h>

#include "program.h"

#define MAX_CLIENTS 8
#define MAX_LINE 4096
#define REST_MS 500

typedef struct Client {
    SwControl *control;
    GSocket *socket;
    GString *in, *out;
    guint tag;
    bool writing; /* what the tag waits for */
} Client;

struct SwControl {
    SwProgram *program;
    const SwAddress *address;
    GSocket *listener;
    guint accept_tag; /* of accepting, or of a rest */
    GList *clients;
};

/* Commands: @words behind the first; false and @error: it failed. */
typedef bool Command(SwProgram *program, char **words, GString *out,
                     GError **error);

static bool fail(GError **error, const char *message)
{
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s", message);
    return false;
}

/* 0: it is none. */
static unsigned port_number(SwProgram *program, const char *text)
{
    guint64 number = 0;

    if (text) {
        g_ascii_string_to_unsigned(
            text, 10, 1, program->options->config.num_ports, &number, NULL);
    }
    return number;
}

static bool ports(SwProgram *program, char **words, GString *out,
                  GError **error)
{
    for (unsigned i = 0; i <= program->options->config.num_ports; i++) {
        hca_switch_report_port(program->sw, i, out);
    }
    return true;
}

static bool counters(SwProgram *program, char **words, GString *out,
                     GError **error)
{
    unsigned last = program->options->config.num_ports;
    guint64 only;

    if (!words[0]) {
        for (unsigned i = 0; i <= last; i++) {
            hca_switch_report_counters(program->sw, i, out);
        }
        return true;
    }
    if (!g_ascii_string_to_unsigned(words[0], 10, 0, last, &only, NULL)) {
        return fail(error, "no such port");
    }
    hca_switch_report_counters(program->sw, only, out);
    return true;
}

static bool faults(SwProgram *program, char **words, GString *out,
                   GError **error)
{
    unsigned port = port_number(program, words[0]);
    HcaFaultPlan plan = { 0 };

    if (!port || !words[1]) {
        return fail(error, "faults PORT RULES|off");
    }
    plan.seed = program->options->port[port].faults.seed;
    if (strcmp(words[1], "off") && !sw_faults_parse(words[1], &plan, error)) {
        return false;
    }
    hca_link_set_faults(hca_switch_link(program->sw, port), &plan);
    sw_loop_kick(program);
    return true;
}

static bool capture(SwProgram *program, char **words, GString *out,
                    GError **error)
{
    unsigned port = port_number(program, words[0]);

    if (!port || !words[1]) {
        return fail(error, "capture PORT FILE|off");
    }
    return sw_program_capture(program, port,
                              strcmp(words[1], "off") ? words[1] : NULL, error);
}

/* NULL, and told: there is none. */
static SwCable *cable_of(SwProgram *program, char **words, GError **error)
{
    unsigned port = port_number(program, words[0]);

    if (!port || !program->cable[port]) {
        fail(error, "no such port, or one without an address");
        return NULL;
    }
    return program->cable[port];
}

static bool unplug(SwProgram *program, char **words, GString *out,
                   GError **error)
{
    SwCable *cable = cable_of(program, words, error);

    if (cable) {
        sw_cable_unplug(cable);
    }
    return cable;
}

static bool plug(SwProgram *program, char **words, GString *out, GError **error)
{
    SwCable *cable = cable_of(program, words, error);

    if (cable) {
        sw_cable_plug(cable);
    }
    return cable;
}

static bool quit(SwProgram *program, char **words, GString *out, GError **error)
{
    g_main_loop_quit(program->main);
    return true;
}

static Command help;

static const struct {
    const char *name, *usage;
    Command *run;
} commands[] = {
    { "help", "help", help },
    { "ports", "ports", ports },
    { "counters", "counters [PORT]", counters },
    { "faults", "faults PORT RULES|off", faults },
    { "capture", "capture PORT FILE|off", capture },
    { "unplug", "unplug PORT", unplug },
    { "plug", "plug PORT", plug },
    { "quit", "quit", quit },
};

static bool help(SwProgram *program, char **words, GString *out, GError **error)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_string_append_printf(out, "%s\n", commands[i].usage);
    }
    return true;
}

static bool run(SwProgram *program, char **words, GString *out, GError **error)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (!g_strcmp0(commands[i].name, words[0])) {
            return commands[i].run(program, words + 1, out, error);
        }
    }
    return fail(error, "no such command; try help");
}

/* At most three words; what is behind is the last one's. */
static void execute(Client *client, const char *line)
{
    char **words = g_strsplit(line, " ", 3);
    GError *error = NULL;

    if (run(client->control->program, words, client->out, &error)) {
        g_string_append(client->out, "ok\n");
    } else {
        g_string_append_printf(client->out, "error: %s\n", error->message);
        g_error_free(error);
    }
    g_strfreev(words);
}

/* Clients */

static void client_free(Client *client)
{
    if (client->tag) {
        g_source_remove(client->tag);
    }
    g_object_unref(client->socket);
    g_string_free(client->in, TRUE);
    g_string_free(client->out, TRUE);
    g_free(client);
}

static void client_end(Client *client)
{
    client->control->clients = g_list_remove(client->control->clients, client);
    client->tag = 0; /* by the return value of its callback */
    client_free(client);
}

static gboolean on_client(gint fd, GIOCondition condition, gpointer opaque);

static void client_watch(Client *client)
{
    client->writing = client->out->len;
    client->tag = g_unix_fd_add(g_socket_get_fd(client->socket),
                                client->writing ? G_IO_OUT : G_IO_IN, on_client,
                                client);
}

/* Whole lines that have come; one at a time, so that answers do not pile up. */
static void execute_next(Client *client)
{
    char *end = memchr(client->in->str, '\n', client->in->len);
    char *line;

    if (!end || client->out->len) {
        return;
    }
    line = g_strndup(client->in->str, end - client->in->str);
    g_string_erase(client->in, 0, end + 1 - client->in->str);
    execute(client, g_strchomp(line));
    g_free(line);
}

/* False: the client is gone, or says what is no line. */
static bool client_read(Client *client)
{
    char data[MAX_LINE];
    ssize_t n = read(g_socket_get_fd(client->socket), data, sizeof(data));

    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    g_string_append_len(client->in, data, n);
    return client->in->len <= 2 * MAX_LINE;
}

static bool client_write(Client *client)
{
    ssize_t n = g_socket_send(client->socket, client->out->str,
                              client->out->len, NULL, NULL);

    if (n > 0) {
        g_string_erase(client->out, 0, n);
    }
    return n > 0;
}

static gboolean on_client(gint fd, GIOCondition condition, gpointer opaque)
{
    Client *client = opaque;
    bool good = client->writing ? client_write(client) : client_read(client);

    if (!good) {
        client_end(client);
        return G_SOURCE_REMOVE;
    }
    execute_next(client);
    client_watch(client);
    return G_SOURCE_REMOVE;
}

static void control_listen(SwControl *control);

static gboolean listen_again(gpointer opaque)
{
    control_listen(opaque);
    return G_SOURCE_REMOVE;
}

/* For want of a descriptor: later. */
static gboolean rest(SwControl *control)
{
    control->accept_tag = g_timeout_add(REST_MS, listen_again, control);
    return G_SOURCE_REMOVE;
}

static void client_new(SwControl *control, GSocket *socket)
{
    Client *client;

    g_socket_set_blocking(socket, FALSE);
    client = g_new0(Client, 1);
    client->control = control;
    client->socket = socket;
    client->in = g_string_new(NULL);
    client->out = g_string_new(NULL);
    control->clients = g_list_prepend(control->clients, client);
    client_watch(client);
}

static gboolean on_accept(gint fd, GIOCondition condition, gpointer opaque)
{
    SwControl *control = opaque;
    GError *error = NULL;
    GSocket *socket = g_socket_accept(control->listener, NULL, &error);

    if (!socket) {
        bool gone = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);

        g_error_free(error);
        return gone ? G_SOURCE_CONTINUE : rest(control);
    }
    if (g_list_length(control->clients) < MAX_CLIENTS) {
        client_new(control, socket);
    } else {
        g_object_unref(socket);
    }
    return G_SOURCE_CONTINUE;
}

static void control_listen(SwControl *control)
{
    control->accept_tag = g_unix_fd_add(g_socket_get_fd(control->listener),
                                        G_IO_IN, on_accept, control);
}

SwControl *sw_control_new(SwProgram *program, const SwAddress *address,
                          GError **error)
{
    GSocket *listener = sw_address_listen(address, error);
    SwControl *control;

    if (!listener) {
        return NULL;
    }
    control = g_new0(SwControl, 1);
    control->program = program;
    control->address = address;
    control->listener = listener;
    control_listen(control);
    return control;
}

/* What was answered last goes out as far as it can. */
static void client_finish(gpointer opaque)
{
    Client *client = opaque;

    if (client->out->len) {
        client_write(client);
    }
    client_free(client);
}

void sw_control_free(SwControl *control)
{
    if (control) {
        g_list_free_full(control->clients, client_finish);
        g_source_remove(control->accept_tag);
        sw_address_unlink(control->address);
        g_object_unref(control->listener);
        g_free(control);
    }
}
