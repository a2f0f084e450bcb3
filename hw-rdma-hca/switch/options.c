/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line. */
#include <errno.h>

#include "tls.h"

#define NOT_GIVEN G_MININT
#define RECONNECT_MS 100
#define GREETING_MS 10000
#define TLS_USER "qemu"
/* A GUID up to that is a number to be added to the default one. */
#define MAX_SHORT_GUID 0xffff

/* As GLib gives it. */
typedef struct Raw {
    char *guid, *name, *control, *x509, *psk, *user;
    int ports, mtu, vls, buffer, reconnect_ms, greeting_ms, move_ms;
    gint64 seed, capture_max;
    gboolean verbose;
    char **captures, **faults, **allowed, **addresses;
} Raw;

static const char summary[] =
    "An InfiniBand switch for rdma-hca cards. Each PORT is a cable, numbered "
    "from 1 on:\n"
    "  unix:PATH, tcp:HOST:PORT                connect, again and again\n"
    "  unix-listen:PATH, tcp-listen:HOST:PORT  wait for a peer, one at a time\n"
    "  tls:HOST:PORT, tls-listen:HOST:PORT     the same over TLS\n"
    "A subnet manager (opensm) on one of the cards configures the switch.";

static const char description[] =
    "Rules of faults: KEY=VALUE,...[;...]\n"
    "  action=drop|duplicate|reorder|delay|corrupt  (must be said)\n"
    "  direction=tx|rx|both      as the switch sees it\n"
    "  kind=send+write+read-request+read-response+atomic+atomic-response+ack+\n"
    "       rnr-nak+nak+other    some of these\n"
    "  opcode=N qpn=N psn=N or psn=FIRST-LAST\n"
    "  skip=N every=N count=N probability=0..1\n"
    "  distance=N delay-ns=N offset=N mask=N\n"
    "\n"
    "SIGUSR1 prints ports and counters; SIGTERM and SIGINT end the program.\n"
    "Commands of the control socket, a line each: help says which.";

static bool fail(GError **error, const char *message)
{
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s", message);
    return false;
}

static bool read_number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;

    if (!g_ascii_isdigit(*text)) {
        return false;
    }
    errno = 0;
    *value = g_ascii_strtoull(text, &end, 0);
    return !*end && !errno && *value <= most;
}

/* Pieces */

static bool take_guid(SwOptions *options, const char *text, GError **error)
{
    uint64_t guid;

    if (!text) {
        return true;
    }
    if (!read_number(text, UINT64_MAX, &guid) || !guid) {
        return fail(error, "--guid is a number of 1 to 64 bits");
    }
    options->config.guid = guid <= MAX_SHORT_GUID
                               ? HCA_SWITCH_DEFAULT_GUID + guid
                               : guid;
    return true;
}

static bool take_addresses(SwOptions *options, char **texts, int ports,
                           GError **error)
{
    unsigned n = texts ? g_strv_length(texts) : 0;

    if (!n) {
        return fail(error, "no PORT is given");
    }
    if (n > HCA_SWITCH_MAX_PORTS) {
        return fail(error, "a switch has at most 48 ports");
    }
    for (unsigned i = 0; i < n; i++) {
        options->port[i + 1].address = sw_address_parse(texts[i], error);
        if (!options->port[i + 1].address) {
            return false;
        }
    }
    if (ports == NOT_GIVEN) {
        ports = n;
    }
    options->config.num_ports = MAX(ports, 0);
    if (options->config.num_ports < n) {
        return fail(error, "--ports is less than the number of PORTs");
    }
    return true;
}

/* "N", and what follows @sep; NULL and @error: no such port. */
static SwPortOptions *port_of(SwOptions *options, const char *text, char sep,
                              const char **rest, GError **error)
{
    char *end;
    guint64 number = g_ascii_strtoull(text, &end, 10);

    if (!g_ascii_isdigit(*text) || *end != sep || number < 1 ||
        number > options->config.num_ports) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "'%s' does not begin with a port's number and '%c'", text,
                    sep);
        return NULL;
    }
    *rest = end + 1;
    return &options->port[number];
}

static bool take_faults(SwOptions *options, char **texts, GError **error)
{
    for (char **text = texts; text && *text; text++) {
        const char *rules;
        SwPortOptions *port = port_of(options, *text, ':', &rules, error);

        if (!port || !sw_faults_parse(rules, &port->faults, error)) {
            g_prefix_error(error, "--fault: ");
            return false;
        }
    }
    return true;
}

/* PORT=FILE, or a file of all ports. */
static bool is_of_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits && text[digits] == '=';
}

/* What an option that is for all ports, or for one, says, and for which; NULL: all. */
static bool read_of_port(SwOptions *options, const char *name, const char *text,
                         SwPortOptions **port, const char **value,
                         GError **error)
{
    *port = NULL;
    *value = text;
    if (!is_of_port(text)) {
        return true;
    }
    *port = port_of(options, text, '=', value, error);
    if (!*port) {
        g_prefix_error(error, "%s: ", name);
    }
    return *port;
}

static bool take_captures(SwOptions *options, char **texts, GError **error)
{
    for (char **text = texts; text && *text; text++) {
        SwPortOptions *port;
        const char *path;
        char **to;

        if (!read_of_port(options, "--capture", *text, &port, &path, error)) {
            return false;
        }
        to = port ? &port->capture : &options->capture;
        g_free(*to);
        *to = g_strdup(path);
    }
    return true;
}

static bool take_allowed(SwOptions *options, char **texts, GError **error)
{
    for (char **text = texts; text && *text; text++) {
        SwPortOptions *port;
        const char *name;
        GPtrArray **to;

        if (!read_of_port(options, "--tls-allow", *text, &port, &name, error)) {
            return false;
        }
        to = port ? &port->allowed : &options->allowed;
        if (!*to) {
            *to = g_ptr_array_new_with_free_func(g_free);
        }
        g_ptr_array_add(*to, g_strdup(name));
    }
    return true;
}

static bool load_tls(SwOptions *options, const char *user, GError **error)
{
    for (unsigned i = 1; i <= options->config.num_ports; i++) {
        const SwAddress *address = options->port[i].address;

        if (!address || !sw_address_is_tls(address)) {
            continue;
        }
        if (!options->tls) {
            return fail(error, "tls: and tls-listen: need --tls-x509 or "
                               "--tls-psk");
        }
        if (!sw_tls_creds_load(options->tls, sw_address_listens(address), user,
                               error)) {
            return false;
        }
    }
    return true;
}

static bool take_tls(SwOptions *options, const Raw *raw, GError **error)
{
    if (raw->x509 && raw->psk) {
        return fail(error, "--tls-x509 and --tls-psk are given both");
    }
    if (raw->x509 || raw->psk) {
        options->tls = sw_tls_creds_new(raw->psk ? raw->psk : raw->x509,
                                        raw->psk);
    }
    return load_tls(options, raw->user ? raw->user : TLS_USER, error) &&
           take_allowed(options, raw->allowed, error);
}

static bool take_control(SwOptions *options, const char *path, GError **error)
{
    if (path) {
        options->control = sw_address_of_path(path, error);
    }
    return !path || options->control;
}

static bool take_numbers(SwOptions *options, const Raw *raw, GError **error)
{
    if (raw->reconnect_ms < 1 || raw->greeting_ms < 0 || raw->move_ms < 0) {
        return fail(error, "--reconnect-ms is 1 or more, --greeting-ms and "
                           "--move-limit-ms 0 or more");
    }
    if (raw->seed < 0 || raw->seed > UINT32_MAX) {
        return fail(error, "--seed has 32 bits");
    }
    if (raw->capture_max < 0) {
        return fail(error, "--capture-max is 0 or more");
    }
    options->reconnect_ms = raw->reconnect_ms;
    options->greeting_ms = raw->greeting_ms;
    options->config.move_ms = raw->move_ms;
    options->capture_max = raw->capture_max;
    options->verbose = raw->verbose;
    for (unsigned i = 0; i <= HCA_SWITCH_MAX_PORTS; i++) {
        options->port[i].faults.seed = raw->seed;
    }
    return true;
}

static bool take_config(SwOptions *options, const Raw *raw, GError **error)
{
    HcaSwitchConfig *config = &options->config;
    const char *wrong;

    config->mtu = MAX(raw->mtu, 0);
    config->vls = MAX(raw->vls, 0);
    config->queue_size = (size_t)MAX(raw->buffer, 0) * 1024;
    if (raw->name) {
        options->name = g_strdup(raw->name);
        config->name = options->name;
    }
    if (!take_guid(options, raw->guid, error) ||
        !take_addresses(options, raw->addresses, raw->ports, error)) {
        return false;
    }
    wrong = hca_switch_config_check(config);
    return wrong ? fail(error, wrong) : true;
}

static bool take(SwOptions *options, const Raw *raw, GError **error)
{
    return take_config(options, raw, error) &&
           take_numbers(options, raw, error) &&
           take_faults(options, raw->faults, error) &&
           take_captures(options, raw->captures, error) &&
           take_tls(options, raw, error) &&
           take_control(options, raw->control, error);
}

/* The line */

static bool parse(Raw *raw, int argc, char **argv, GError **error)
{
    const GOptionEntry entries[] = {
        { "guid", 0, 0, G_OPTION_ARG_STRING, &raw->guid,
          "GUID of the switch, which no other node may have; a number up to "
          "0xffff is added to 0x525400fffe800000 (default: 1)",
          "GUID" },
        { "name", 0, 0, G_OPTION_ARG_STRING, &raw->name,
          "NodeDescription (default: hca-switch)", "TEXT" },
        { "ports", 0, 0, G_OPTION_ARG_INT, &raw->ports,
          "Number of ports, up to 48 (default: as many as are given)", "N" },
        { "mtu", 0, 0, G_OPTION_ARG_INT, &raw->mtu,
          "Largest MTU: 256, 512, 1024, 2048 or 4096 (default)", "BYTES" },
        { "vls", 0, 0, G_OPTION_ARG_INT, &raw->vls,
          "Data virtual lanes of each port: 1, 2, 4, 8 (default) or 15", "N" },
        { "buffer", 0, 0, G_OPTION_ARG_INT, &raw->buffer,
          "Packets that wait for a port on one virtual lane, 16 to 16384 KiB "
          "(default: 128)",
          "KIB" },
        { "reconnect-ms", 0, 0, G_OPTION_ARG_INT, &raw->reconnect_ms,
          "Time until a connection is tried again (default: 100)", "MS" },
        { "greeting-ms", 0, 0, G_OPTION_ARG_INT, &raw->greeting_ms,
          "Time that who connects to a port has to greet (default: 10000; 0: "
          "no limit)",
          "MS" },
        { "move-limit-ms", 0, 0, G_OPTION_ARG_INT, &raw->move_ms,
          "Time that a card may take to move to another machine (default: "
          "10000; 0: none may)",
          "MS" },
        { "capture", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &raw->captures,
          "Write packets of all ports, or of one, to a pcapng file",
          "[PORT=]FILE" },
        { "capture-max", 0, 0, G_OPTION_ARG_INT64, &raw->capture_max,
          "Longest file of a capture (default: 0, no limit)", "BYTES" },
        { "fault", 0, 0, G_OPTION_ARG_STRING_ARRAY, &raw->faults,
          "Spoil packets of a port's cable: see below", "PORT:RULES" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &raw->seed,
          "Where the chance of faults begins (default: 0)", "N" },
        { "control", 0, 0, G_OPTION_ARG_FILENAME, &raw->control,
          "Take commands at a unix socket", "PATH" },
        { "tls-x509", 0, 0, G_OPTION_ARG_FILENAME, &raw->x509,
          "TLS by certificates: ca-cert.pem, server-cert.pem, server-key.pem, "
          "client-cert.pem and client-key.pem of a folder",
          "DIR" },
        { "tls-psk", 0, 0, G_OPTION_ARG_FILENAME, &raw->psk,
          "TLS by keys that both ends have: keys.psk of a folder", "DIR" },
        { "tls-user", 0, 0, G_OPTION_ARG_STRING, &raw->user,
          "Whose key a port has that connects (default: " TLS_USER ")",
          "NAME" },
        { "tls-allow", 0, 0, G_OPTION_ARG_STRING_ARRAY, &raw->allowed,
          "Who may connect to the ports, or to one: a distinguished name or a "
          "user, * and ? are any (default: all that the credentials know)",
          "[PORT=]NAME" },
        { "verbose", 'v', 0, G_OPTION_ARG_NONE, &raw->verbose,
          "Print changes of state and dropped packets, a line each", NULL },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &raw->addresses,
          NULL, "PORT..." },
        { NULL },
    };
    GOptionContext *context = g_option_context_new(NULL);
    bool good;

    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, description);
    g_option_context_add_main_entries(context, entries, NULL);
    good = g_option_context_parse(context, &argc, &argv, error);
    g_option_context_free(context);
    return good;
}

static void free_raw(Raw *raw)
{
    g_free(raw->guid);
    g_free(raw->name);
    g_free(raw->control);
    g_free(raw->x509);
    g_free(raw->psk);
    g_free(raw->user);
    g_strfreev(raw->allowed);
    g_strfreev(raw->captures);
    g_strfreev(raw->faults);
    g_strfreev(raw->addresses);
}

SwOptions *sw_options_parse(int argc, char **argv, GError **error)
{
    SwOptions *options = g_new0(SwOptions, 1);
    Raw raw = {
        .ports = NOT_GIVEN,
        .reconnect_ms = RECONNECT_MS,
        .greeting_ms = GREETING_MS,
        .move_ms = HCA_SWITCH_DEFAULT_MOVE_MS,
    };
    bool good;

    hca_switch_config_init(&options->config);
    raw.mtu = options->config.mtu;
    raw.vls = options->config.vls;
    raw.buffer = options->config.queue_size / 1024;
    good = parse(&raw, argc, argv, error) && take(options, &raw, error);
    free_raw(&raw);
    if (!good) {
        sw_options_free(options);
        return NULL;
    }
    return options;
}

void sw_options_free(SwOptions *options)
{
    for (unsigned i = 0; i <= HCA_SWITCH_MAX_PORTS; i++) {
        sw_address_free(options->port[i].address);
        g_free(options->port[i].capture);
        g_clear_pointer(&options->port[i].allowed, g_ptr_array_unref);
    }
    g_clear_pointer(&options->allowed, g_ptr_array_unref);
    sw_tls_creds_free(options->tls);
    sw_address_free(options->control);
    g_free(options->capture);
    g_free(options->name);
    g_free(options);
}

static bool has_match(const GPtrArray *patterns, const char *name)
{
    for (unsigned i = 0; patterns && i < patterns->len; i++) {
        if (g_pattern_match_simple(patterns->pdata[i], name)) {
            return true;
        }
    }
    return false;
}

bool sw_options_allow(const SwOptions *options, unsigned port, const char *name)
{
    const GPtrArray *own = options->port[port].allowed;

    return (!own && !options->allowed) || has_match(own, name) ||
           has_match(options->allowed, name);
}
