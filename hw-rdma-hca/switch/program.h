/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hca-switch: what is around a switch. See switch.h for who is who. */
#ifndef HCA_SWITCH_PROGRAM_H
#define HCA_SWITCH_PROGRAM_H

#include <gio/gio.h>

#include "switch.h"

typedef struct SwProgram SwProgram;
typedef struct SwAddress SwAddress;
typedef struct SwCable SwCable;
typedef struct SwCapture SwCapture;
typedef struct SwControl SwControl;
typedef struct SwTls SwTls;
typedef struct SwTlsCreds SwTlsCreds;

/* Who is told of errors: a line to stderr, with the program's name. */
void sw_complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* address.c */

/*
 * unix:PATH, unix-listen:PATH, tcp:HOST:PORT, tcp-listen:HOST:PORT, tls:HOST:PORT,
 * tls-listen:HOST:PORT. NULL and @error: it is none of them.
 */
SwAddress *sw_address_parse(const char *text, GError **error);
/* The same of a path that is listened at. */
SwAddress *sw_address_of_path(const char *path, GError **error);
void sw_address_free(SwAddress *address);
bool sw_address_listens(const SwAddress *address);
bool sw_address_is_tls(const SwAddress *address);
/* Of TCP; NULL: it is a path. */
const char *sw_address_host(const SwAddress *address);
const char *sw_address_text(const SwAddress *address);
GSocketConnectable *sw_address_target(const SwAddress *address);
/*
 * A socket that listens, non-blocking; the path of one that nobody listens at
 * any more is taken over. NULL and @error: it cannot be had.
 */
GSocket *sw_address_listen(const SwAddress *address, GError **error);
/* The socket ends: its path goes. */
void sw_address_unlink(const SwAddress *address);

/* fault_text.c */

/*
 * Append rules to @plan: KEY=VALUE,... and further ones behind semicolons. False
 * and @error: they are no rules, and @plan is not to be used.
 */
bool sw_faults_parse(const char *text, HcaFaultPlan *plan, GError **error);

/* options.c */

typedef struct SwPortOptions {
    SwAddress *address; /* NULL: the port has no cable */
    HcaFaultPlan faults;
    char *capture;      /* a file of its own, or NULL */
    GPtrArray *allowed; /* TLS: patterns of peers' names; NULL: none */
} SwPortOptions;

typedef struct SwOptions {
    HcaSwitchConfig config;
    char *name;
    char *capture; /* a file of all ports, or NULL */
    uint64_t capture_max;
    SwAddress *control;
    SwTlsCreds *tls;    /* NULL: no port has TLS */
    GPtrArray *allowed; /* at all ports; NULL: none */
    unsigned reconnect_ms, greeting_ms;
    bool verbose;
    SwPortOptions port[HCA_SWITCH_MAX_PORTS + 1];
} SwOptions;

/* NULL and @error: they are not good. --help prints and exits. */
SwOptions *sw_options_parse(int argc, char **argv, GError **error);
void sw_options_free(SwOptions *options);
/*
 * Whether the TLS peer of that name may have @port: it may if no names are given, not
 * for all ports and not for this one.
 */
bool sw_options_allow(const SwOptions *options, unsigned port,
                      const char *name);

/* cable.c */

SwCable *sw_cable_new(SwProgram *program, unsigned port,
                      const SwAddress *address);
void sw_cable_free(SwCable *cable);
/* Listen or begin to connect. False and @error: it cannot listen. */
bool sw_cable_start(SwCable *cable, GError **error);
bool sw_cable_is_connecting(const SwCable *cable);
/*
 * There is no cable: the peer's stream ends, and no other one is taken. While it
 * is still connecting a callback is on its way.
 */
void sw_cable_unplug(SwCable *cable);
/* There is one again. */
void sw_cable_plug(SwCable *cable);
ssize_t sw_cable_writev(SwCable *cable, const struct iovec *iov, int iovcnt);
ssize_t sw_cable_readv(SwCable *cable, const struct iovec *iov, int iovcnt);
/* The stream is of no use any more. */
void sw_cable_break(SwCable *cable);
/* Before and after a turn: tell the switch what is ready, watch what it wants. */
void sw_cable_before(SwCable *cable);
void sw_cable_after(SwCable *cable);

/* capture_file.c */

/* NULL and @error: no such file. @max_bytes: 0 is no limit. */
SwCapture *sw_capture_open(const char *path, uint64_t max_bytes,
                           GError **error);
SwCapture *sw_capture_ref(SwCapture *capture);
void sw_capture_unref(SwCapture *capture);
/* What a link gives, whole blocks of @port. False: the file takes no more. */
bool sw_capture_write(SwCapture *capture, unsigned port, const void *data,
                      size_t len);

/* control.c */

/* Take commands at @address. NULL and @error: it cannot listen. */
SwControl *sw_control_new(SwProgram *program, const SwAddress *address,
                          GError **error);
void sw_control_free(SwControl *control);

/* main.c */

struct SwProgram {
    SwOptions *options;
    HcaSwitch *sw;
    HcaSwitchOps ops;
    GMainLoop *main;
    GSource *source;      /* loop.c */
    int64_t clock_offset; /* of the switch's clock to the monotonic one, ns */
    SwCable *cable[HCA_SWITCH_MAX_PORTS + 1];
    SwCapture *capture[HCA_SWITCH_MAX_PORTS + 1];
    SwControl *control;
};

/* Capture @port's packets in @path, NULL: no more. */
bool sw_program_capture(SwProgram *program, unsigned port, const char *path,
                        GError **error);

/* loop.c */

GSource *sw_loop_new(SwProgram *program);
/* There may be something to do: a turn soon. */
void sw_loop_kick(SwProgram *program);

#endif /* HCA_SWITCH_PROGRAM_H */
