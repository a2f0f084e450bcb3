/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program in a process of its own; peers, sockets on which the test reads and
 * writes frames; commands by its control socket. Whatever a test waits for may
 * take as long as it takes.
 */
#ifndef LIB_PROGRAM_H
#define LIB_PROGRAM_H

#include <gio/gio.h>

#include "core/link/framing.h"
#include "lib-fabric.h"

/* Run the cases, in a folder that is gone afterwards; what main() returns. */
int program_run_tests(void);
/* A path in that folder. */
char *program_path(const char *name);

typedef struct Program {
    GSubprocess *process;
    char *log; /* where its standard error goes */
} Program;

/* Of a program that does not outlive the test, with @flags. */
GSubprocessLauncher *program_launcher(GSubprocessFlags flags);
/* With these arguments, up to NULL; its standard error goes to @name. */
Program program_start(const char *name, ...);
char *program_log(const Program *program);
/* Until its log has @text in it. */
void program_expect(const Program *program, const char *text);
/* It has ended; its status, or -1: by a signal. */
int program_wait(Program *program);
/* It ends as it is asked to. */
void program_end(Program *program);

/* Peers */

typedef struct Peer {
    int fd;
    GByteArray *in;
} Peer;

/* As soon as somebody listens there. */
int peer_connect_bare(const char *path);
int peer_listen(const char *path);
int peer_listen_tcp(unsigned *port);

Peer peer_of(int fd);
Peer peer_accept(int listener);
void peer_close(Peer *peer);
void peer_write(Peer *peer, const void *data, size_t len);
/* False: it is the end of the stream. */
bool peer_read(Peer *peer);
/* The next frame's body; the frame is at the front of peer->in until then. */
GByteArray *peer_frame(Peer *peer, HcaFrameType type);
void peer_expect_end(Peer *peer);
/* Both greet. */
void peer_greet(Peer *peer);
/* Connect, and both greet. */
Peer peer_connect(const char *path);

void peer_send_packet(Peer *peer, const GByteArray *packet);
/* A Get by directed route. */
void peer_ask(Peer *peer, uint16_t attribute, const uint8_t *path,
              unsigned hops);
/* The data of the answer. */
void peer_answer(Peer *peer, uint8_t *data);
uint64_t peer_guid(Peer *peer, const uint8_t *path, unsigned hops);
/* Set, of the switch that the peer is at. */
void peer_set(Peer *peer, uint16_t attribute, uint32_t modifier, uint8_t *data);
/* What a manager would do for two ports, LIDs 1 and 2, and no limits of time. */
void peer_configure(Peer *peer);
/*
 * Packets from LID 1 to LID 2, until the switch of the control socket @ctl does not
 * read any more. How many of them are whole; @packet is what each of them is.
 */
unsigned peer_fill(Peer *peer, GByteArray **packet, const char *ctl);
void peer_expect_packets(Peer *peer, const GByteArray *packet, unsigned n);
/* Path and hops: the switch that the peer is at. */
#define PEER_HERE (const uint8_t *)"", 0

/* Commands by the control socket at @path */

/* The answer, up to its last line. */
char *control_command(const char *path, const char *line);
/* The answer has @text in it. */
void control_expect(const char *path, const char *line, const char *text);
/* Until the answer has @text in it. */
void control_await(const char *path, const char *line, const char *text);

#endif /* LIB_PROGRAM_H */
