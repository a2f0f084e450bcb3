/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The main loop's source of a switch: all sockets of its cables, and the time of
 * the next turn. However many of them are ready, there is one turn for all.
 */
#include "program.h"

typedef struct Loop {
    GSource source;
    SwProgram *program;
} Loop;

/* ns of the switch's clock to us of the main loop's, upwards. */
static int64_t ready_time(const SwProgram *program, int64_t deadline)
{
    if (deadline == INT64_MAX) {
        return -1;
    }
    return MAX((deadline - program->clock_offset + 999) / 1000, 0);
}

static void each_cable(SwProgram *program, void (*fn)(SwCable *cable))
{
    for (unsigned i = 1; i <= program->options->config.num_ports; i++) {
        if (program->cable[i]) {
            fn(program->cable[i]);
        }
    }
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    SwProgram *program = ((Loop *)source)->program;
    bool more;

    each_cable(program, sw_cable_before);
    more = hca_switch_run(program->sw);
    g_source_set_ready_time(
        source,
        more ? 0 : ready_time(program, hca_switch_deadline(program->sw)));
    each_cable(program, sw_cable_after);
    return G_SOURCE_CONTINUE;
}

GSource *sw_loop_new(SwProgram *program)
{
    static GSourceFuncs funcs = { .dispatch = dispatch };
    GSource *source = g_source_new(&funcs, sizeof(Loop));

    ((Loop *)source)->program = program;
    g_source_set_name(source, "switch");
    return source;
}

void sw_loop_kick(SwProgram *program)
{
    g_source_set_ready_time(program->source, 0);
}
