/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hca-switch: an InfiniBand switch as a program. */
#include <glib-unix.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "program.h"

#define NS_PER_SECOND 1000000000ll
#define EXIT_USAGE 2

void sw_complain(const char *format, ...)
{
    va_list ap;
    char *line;

    va_start(ap, format);
    line = g_strdup_vprintf(format, ap);
    va_end(ap);
    g_printerr("hca-switch: %s\n", line);
    g_free(line);
}

/* What the switch asks for */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static int64_t op_now(void *opaque)
{
    SwProgram *program = opaque;

    return clock_ns(CLOCK_MONOTONIC) + program->clock_offset;
}

static ssize_t op_writev(void *opaque, unsigned port, const struct iovec *iov,
                         int iovcnt)
{
    SwProgram *program = opaque;

    return sw_cable_writev(program->cable[port], iov, iovcnt);
}

static ssize_t op_readv(void *opaque, unsigned port, const struct iovec *iov,
                        int iovcnt)
{
    SwProgram *program = opaque;

    return sw_cable_readv(program->cable[port], iov, iovcnt);
}

static void op_drop(void *opaque, unsigned port)
{
    SwProgram *program = opaque;

    sw_cable_break(program->cable[port]);
}

static bool op_capture(void *opaque, unsigned port, const void *data,
                       size_t len)
{
    SwProgram *program = opaque;

    return program->capture[port] &&
           sw_capture_write(program->capture[port], port, data, len);
}

static void op_say(void *opaque, const char *line)
{
    sw_complain("%s", line);
}

/* That a capture ends was told of where it did. */
static void op_warn(void *opaque, const char *line)
{
    SwProgram *program = opaque;

    if (program->options->verbose) {
        sw_complain("%s", line);
    }
}

/* Captures */

bool sw_program_capture(SwProgram *program, unsigned port, const char *path,
                        GError **error)
{
    HcaLink *link = hca_switch_link(program->sw, port);
    SwCapture *capture = NULL;

    if (path) {
        capture = sw_capture_open(path, program->options->capture_max, error);
        if (!capture) {
            return false;
        }
    }
    hca_link_stop_capture(link); /* what is left goes into the old file */
    sw_capture_unref(program->capture[port]);
    program->capture[port] = capture;
    if (capture) {
        hca_link_start_capture(link);
    }
    return true;
}

static bool start_common_capture(SwProgram *program, GError **error)
{
    const SwOptions *options = program->options;
    SwCapture *capture = sw_capture_open(options->capture, options->capture_max,
                                         error);

    if (!capture) {
        return false;
    }
    for (unsigned i = 1; i <= options->config.num_ports; i++) {
        program->capture[i] = sw_capture_ref(capture);
        hca_link_start_capture(hca_switch_link(program->sw, i));
    }
    sw_capture_unref(capture);
    return true;
}

static bool start_captures(SwProgram *program, GError **error)
{
    const SwOptions *options = program->options;

    if (options->capture && !start_common_capture(program, error)) {
        return false;
    }
    for (unsigned i = 1; i <= options->config.num_ports; i++) {
        if (options->port[i].capture &&
            !sw_program_capture(program, i, options->port[i].capture, error)) {
            return false;
        }
    }
    return true;
}

/* Signals */

static gboolean on_end(gpointer opaque)
{
    SwProgram *program = opaque;

    g_main_loop_quit(program->main);
    return G_SOURCE_CONTINUE;
}

static gboolean on_usr1(gpointer opaque)
{
    SwProgram *program = opaque;
    GString *out = g_string_new(NULL);

    for (unsigned i = 0; i <= program->options->config.num_ports; i++) {
        hca_switch_report_port(program->sw, i, out);
    }
    for (unsigned i = 0; i <= program->options->config.num_ports; i++) {
        hca_switch_report_counters(program->sw, i, out);
    }
    g_printerr("%s", out->str);
    g_string_free(out, TRUE);
    return G_SOURCE_CONTINUE;
}

/* Life */

static bool start_ports(SwProgram *program, GError **error)
{
    const SwOptions *options = program->options;

    for (unsigned i = 1; i <= options->config.num_ports; i++) {
        const SwPortOptions *port = &options->port[i];

        hca_link_set_faults(hca_switch_link(program->sw, i), &port->faults);
        if (!port->address) {
            continue;
        }
        program->cable[i] = sw_cable_new(program, i, port->address);
        if (!sw_cable_start(program->cable[i], error)) {
            return false;
        }
    }
    return true;
}

static bool start(SwProgram *program, GError **error)
{
    const SwAddress *control = program->options->control;

    if (control) {
        program->control = sw_control_new(program, control, error);
        if (!program->control) {
            return false;
        }
    }
    return start_captures(program, error) && start_ports(program, error);
}

static void init(SwProgram *program, SwOptions *options)
{
    *program = (SwProgram) {
        .options = options,
        .ops = {
            .now = op_now,
            .writev = op_writev,
            .readv = op_readv,
            .drop = op_drop,
            .capture = op_capture,
            .warn = op_warn,
            .say = options->verbose ? op_say : NULL,
        },
        /* Captures have the time of day. */
        .clock_offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC),
    };
    program->main = g_main_loop_new(NULL, FALSE);
    program->sw = hca_switch_new(&options->config, &program->ops, program);
    program->source = sw_loop_new(program);
    g_source_attach(program->source, NULL);
    g_unix_signal_add(SIGTERM, on_end, program);
    g_unix_signal_add(SIGINT, on_end, program);
    g_unix_signal_add(SIGUSR1, on_usr1, program);
}

/* A connection that is being made ends in a callback. */
static void stop_cable(SwCable *cable)
{
    if (cable) {
        sw_cable_unplug(cable);
        while (sw_cable_is_connecting(cable)) {
            g_main_context_iteration(NULL, TRUE);
        }
        sw_cable_free(cable);
    }
}

static void destroy(SwProgram *program)
{
    unsigned n = program->options->config.num_ports;

    sw_control_free(program->control);
    for (unsigned i = 1; i <= n; i++) {
        stop_cable(program->cable[i]);
        program->cable[i] = NULL;
    }
    hca_switch_free(program->sw);
    for (unsigned i = 1; i <= n; i++) {
        sw_capture_unref(program->capture[i]);
    }
    g_source_destroy(program->source);
    g_source_unref(program->source);
    g_main_loop_unref(program->main);
    sw_options_free(program->options);
}

int main(int argc, char **argv)
{
    GError *error = NULL;
    SwOptions *options = sw_options_parse(argc, argv, &error);
    SwProgram program;
    bool good;

    if (!options) {
        sw_complain("%s", error->message);
        g_error_free(error);
        return EXIT_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    init(&program, options);
    good = start(&program, &error);
    if (good) {
        g_main_loop_run(program.main);
    } else {
        sw_complain("%s", error->message);
        g_error_free(error);
    }
    destroy(&program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
