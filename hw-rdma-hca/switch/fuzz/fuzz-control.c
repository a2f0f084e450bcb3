/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a user gives the switch: a command line, or commands at the control socket,
 * from several clients at once, in pieces. What passes the checks of the one has to
 * make a switch; each line of the other has one answer, whose last line is "ok" or
 * "error: ...", and a client loses its connection for a line without an end alone.
 *
 * The rest of the program is not here: who asks for a cable or a file is told that
 * all is well.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib-bench.h"
#include "switch/program.h"

#define PORTS 4
#define CLIENTS 10     /* two more than there may be */
#define LONG_LINE 4096 /* that control.c takes in any case */
#define MOST_ROUNDS 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of the program */

void sw_complain(const char *format, ...)
{
}

void sw_loop_kick(SwProgram *program)
{
}

void sw_cable_unplug(SwCable *cable)
{
}

void sw_cable_plug(SwCable *cable)
{
}

bool sw_program_capture(SwProgram *program, unsigned port, const char *path,
                        GError **error)
{
    if (!port || port > program->options->config.num_ports) {
        bench_fail("a capture of port %u", port);
    }
    return true;
}

/* Text */

static const char *const words[] = {
    "unix:a",
    "unix-listen:/b",
    "tcp:c:1",
    "tcp-listen:[::1]:65535",
    "--guid=",
    "--name=",
    "--ports=",
    "--mtu=",
    "--vls=",
    "--buffer=",
    "--reconnect-ms=",
    "--greeting-ms=",
    "--capture=",
    "--capture-max=",
    "--fault=",
    "--seed=",
    "--control=",
    "-v",
    "--",
    "0",
    "1",
    "2",
    "4",
    "48",
    "0xffff",
    "4096",
    "18446744073709551615",
    "-1",
    "1=",
    "1:",
    "help",
    "ports",
    "counters",
    "faults ",
    "capture ",
    "unplug ",
    "plug ",
    "quit",
    "off",
    " ",
    "\n",
    "action=drop",
    "direction=rx",
    "kind=send+ack",
    "opcode=",
    "qpn=",
    "psn=0-9",
    "skip=",
    "every=",
    "count=",
    "probability=0.5",
    "distance=",
    "delay-ns=",
    "offset=",
    "mask=",
    ",",
    ";",
};

/* Some words, numbers and bytes, one behind the other. */
static void take_text(Input *in, GString *text)
{
    for (unsigned n = take_below(in, 8); n; n--) {
        unsigned which = take8(in);

        if (which < G_N_ELEMENTS(words)) {
            g_string_append(text, words[which]);
        } else if (which < 0xe0) {
            g_string_append_c(text, which);
        } else {
            g_string_append_printf(text, "%u", take32(in));
        }
    }
}

/* Options */

/* Which print, and end the program. */
static bool asks_for_help(const char *text)
{
    return g_str_has_prefix(text, "--help") ||
           (text[0] == '-' && text[1] != '-' && strpbrk(text, "h?"));
}

static void check_options(const SwOptions *options)
{
    const HcaSwitchConfig *config = &options->config;

    if (hca_switch_config_check(config) || !config->num_ports ||
        config->num_ports > HCA_SWITCH_MAX_PORTS) {
        bench_fail("options that make no switch");
    }
    for (unsigned i = 0; i <= HCA_SWITCH_MAX_PORTS; i++) {
        const SwPortOptions *port = &options->port[i];

        if ((!i || i > config->num_ports) &&
            (port->address || port->capture || port->faults.nrules)) {
            bench_fail("options of port %u", i);
        }
    }
}

static void try_options(Input *in)
{
    GPtrArray *given = g_ptr_array_new_with_free_func(g_free);
    GPtrArray *line = g_ptr_array_new(); /* GLib takes words out of it */
    GError *error = NULL;
    SwOptions *options;

    g_ptr_array_add(given, g_strdup("hca-switch"));
    for (unsigned n = take_below(in, 10); n; n--) {
        GString *text = g_string_new(NULL);

        take_text(in, text);
        if (asks_for_help(text->str)) {
            g_string_truncate(text, 0);
        }
        g_ptr_array_add(given, g_string_free(text, FALSE));
    }
    for (unsigned i = 0; i < given->len; i++) {
        g_ptr_array_add(line, given->pdata[i]);
    }
    g_ptr_array_add(line, NULL);
    options = sw_options_parse(given->len, (char **)line->pdata, &error);
    if (!options == !error) {
        bench_fail("options and an error, or neither");
    }
    if (options) {
        check_options(options);
        sw_options_free(options);
    }
    g_clear_error(&error);
    g_ptr_array_unref(line);
    g_ptr_array_unref(given);
}

/* Commands */

typedef struct Talk {
    int fd;           /* -1: no client, or one that is gone */
    unsigned lines;   /* that it has sent to their end */
    unsigned answers; /* that have come to theirs */
    size_t open;      /* bytes behind the last of them */
    bool spoiled;     /* one was longer than is taken */
    GString *in;      /* an answer's line that is not all there */
} Talk;

typedef struct Scene {
    Input in;
    SwProgram program;
    SwAddress *address;
    Talk talk[CLIENTS];
    unsigned open;
} Scene;

static char *path;

static int64_t now(void *opaque)
{
    return 0;
}

static ssize_t no_write(void *opaque, unsigned port, const struct iovec *iov,
                        int iovcnt)
{
    return -EAGAIN;
}

static const HcaSwitchOps ops = {
    .now = now,
    .writev = no_write,
    .readv = no_write,
};

static void scene_begin(Scene *s)
{
    char *argv[] = { "hca-switch", "unix:a", "unix:b", "--ports=4", NULL };
    SwProgram *program = &s->program;
    GError *error = NULL;

    program->options = sw_options_parse(G_N_ELEMENTS(argv) - 1, argv, &error);
    g_assert_no_error(error);
    program->ops = ops;
    program->sw = hca_switch_new(&program->options->config, &program->ops, s);
    program->main = g_main_loop_new(NULL, FALSE);
    for (unsigned port = 1; port <= 2; port++) {
        program->cable[port] = (SwCable *)s; /* some: nobody looks at it */
    }
    s->address = sw_address_of_path(path, &error);
    g_assert_no_error(error);
    program->control = sw_control_new(program, s->address, &error);
    g_assert_no_error(error);
    for (unsigned i = 0; i < CLIENTS; i++) {
        s->talk[i].fd = -1;
        s->talk[i].in = g_string_new(NULL);
    }
}

/* The control socket has its turns until it wants none. */
static void scene_run(void)
{
    for (unsigned n = 0; g_main_context_iteration(NULL, FALSE); n++) {
        if (n == MOST_ROUNDS) {
            bench_fail("the control socket does not come to rest");
        }
    }
}

static void talk_end(Scene *s, Talk *talk)
{
    if (talk->fd >= 0) {
        close(talk->fd);
        talk->fd = -1;
        s->open--;
        scene_run();
    }
}

static void scene_end(Scene *s)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        talk_end(s, &s->talk[i]);
        g_string_free(s->talk[i].in, TRUE);
    }
    sw_control_free(s->program.control);
    sw_address_free(s->address);
    g_main_loop_unref(s->program.main);
    hca_switch_free(s->program.sw);
    sw_options_free(s->program.options);
}

static void talk_begin(Scene *s, Talk *talk)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    g_strlcpy(to.sun_path, path, sizeof(to.sun_path));
    talk->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    g_assert_cmpint(connect(talk->fd, (struct sockaddr *)&to, sizeof(to)), ==,
                    0);
    scene_run();
    talk->lines = talk->answers = talk->open = 0;
    /* One too many is sent away. */
    talk->spoiled = s->open++ >= 8;
    g_string_truncate(talk->in, 0);
}

static void hear(Talk *talk, const char *data, size_t len)
{
    g_string_append_len(talk->in, data, len);
    for (char *end; (end = memchr(talk->in->str, '\n', talk->in->len));) {
        *end = '\0';
        talk->answers += !strcmp(talk->in->str, "ok") ||
                         g_str_has_prefix(talk->in->str, "error: ");
        g_string_erase(talk->in, 0, end + 1 - talk->in->str);
    }
}

/* All that has come for a client; it may have been sent away. */
static void talk_read(Scene *s, Talk *talk)
{
    char data[4096];
    ssize_t n;

    while ((n = read(talk->fd, data, sizeof(data))) > 0) {
        hear(talk, data, n);
        scene_run();
    }
    if (n == 0 || errno != EAGAIN) {
        if (!talk->spoiled) {
            bench_fail("a client was sent away");
        }
        talk_end(s, talk);
    } else if (!talk->spoiled && talk->answers != talk->lines) {
        bench_fail("%u lines, %u answers", talk->lines, talk->answers);
    }
}

static void talk_write(Talk *talk, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        talk->open = data[i] == '\n' ? 0 : talk->open + 1;
        talk->lines += data[i] == '\n';
        talk->spoiled |= talk->open > LONG_LINE;
    }
    if (send(talk->fd, data, len, MSG_NOSIGNAL) != (ssize_t)len) {
        talk->spoiled = true; /* it is gone, or reads no more */
    }
}

static void talk_say(Scene *s, Talk *talk)
{
    GString *text = g_string_new(NULL);
    unsigned kind = take8(&s->in);

    take_text(&s->in, text);
    if (kind < 0xc0) {
        g_string_append_c(text, '\n');
    } else if (kind == 0xff) {
        for (unsigned n = take16(&s->in); n; n--) {
            g_string_append_c(text, 'x');
        }
    }
    talk_write(talk, text->str, text->len);
    g_string_free(text, TRUE);
}

static void try_commands(Input *in)
{
    Scene s = { .in = *in };

    scene_begin(&s);
    while (s.in.left) {
        Talk *talk = &s.talk[take_below(&s.in, CLIENTS)];
        unsigned action = take_below(&s.in, 8);

        if (talk->fd < 0) {
            talk_begin(&s, talk);
        } else if (action == 0) {
            talk_end(&s, talk);
        } else {
            talk_say(&s, talk);
        }
        if (action & 1) {
            scene_run();
        }
    }
    scene_run();
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (s.talk[i].fd >= 0) {
            talk_read(&s, &s.talk[i]);
        }
    }
    scene_end(&s);
}

static void remove_path(void)
{
    unlink(path);
}

static void make_path(void)
{
    path = g_strdup_printf("build/fuzz/control-%d", (int)getpid());
    atexit(remove_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input in = { .at = data, .left = size };

    if (!path) {
        make_path();
    }
    if (take8(&in) & 1) {
        try_options(&in);
    } else {
        try_commands(&in);
    }
    return 0;
}
