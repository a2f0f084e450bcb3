/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An InfiniBand switch: cables in, cables out, and a node that a subnet manager
 * configures by MADs. It knows neither sockets nor a main loop: who runs it
 * gives it HcaSwitchOps.
 *
 * switch.c    its life, one turn of it
 * port.c      a port: its link, what is received by it
 * packet.c    what of a packet a switch looks at
 * forward.c   which ports a packet goes to (IBA 18.2.4)
 * output.c    a packet at the port that it leaves by; queues, their time limits
 * queue.c     packets that wait: a ring for each port and virtual lane
 * agent.c     port 0: packets to and from the switch itself
 * counters.c  what is counted, and where
 * report.c    ports and counters as text
 *
 * And the program around it:
 *
 * main.c          start, signals, end
 * options.c       the command line
 * loop.c          the main loop's source: all sockets, one turn
 * cable.c         a port's socket: it listens, connects, comes back
 * tls.c           TLS of such a socket, by GnuTLS
 * handshake.c     its beginning: peers that are not known yet
 * address.c       addresses of sockets
 * fault_text.c    plans of faults as text
 * capture_file.c  captures as files
 * control.c       commands by a socket
 *
 * One thread.
 */
#ifndef HCA_SWITCH_H
#define HCA_SWITCH_H

#include <glib.h>

#include "../core/link/link.h"
#include "../core/mad/node.h"

#define HCA_SWITCH_MAX_PORTS 48
#define HCA_SWITCH_DEFAULT_GUID UINT64_C(0x525400fffe800000)
#define HCA_SWITCH_MIN_QUEUE (16 * 1024)
#define HCA_SWITCH_DEFAULT_MOVE_MS 10000
#define HCA_SWITCH_MAX_QUEUE (16 * 1024 * 1024)

typedef struct HcaSwitch HcaSwitch;

typedef struct HcaSwitchConfig {
    unsigned num_ports; /* 1 to HCA_SWITCH_MAX_PORTS */
    uint64_t guid;      /* of node and port 0: of no other node of the subnet */
    const char *name;   /* NodeDescription; copied */
    unsigned mtu;       /* bytes: 256, 512, ... 4096 */
    unsigned vls;       /* data VLs: 1, 2, 4, 8 or 15 */
    size_t queue_size;  /* bytes of a port's queue for one VL */
    unsigned move_ms;   /* that a card may take to move; 0: none may */
} HcaSwitchConfig;

/* Every field at its default. */
void hca_switch_config_init(HcaSwitchConfig *config);
/* What is wrong with it, a sentence in static storage; NULL: nothing. */
const char *hca_switch_config_check(const HcaSwitchConfig *config);

/* What a switch asks of who runs it. Ports are numbers from 1 on. */
typedef struct HcaSwitchOps {
    /* Nanoseconds of a clock that never goes back. */
    int64_t (*now)(void *opaque);
    /*
     * As writev() and readv() of the port's non-blocking stream. -EAGAIN: call
     * hca_switch_writable() or hca_switch_readable() when that changes. Another
     * negative errno, or the end of the stream (0 from readv): the cable is to
     * be taken down soon.
     */
    ssize_t (*writev)(void *opaque, unsigned port, const struct iovec *iov,
                      int iovcnt);
    ssize_t (*readv)(void *opaque, unsigned port, const struct iovec *iov,
                     int iovcnt);
    /* The peer broke the framing: take the cable down soon. */
    void (*drop)(void *opaque, unsigned port);
    /* Append to the capture of @port; false: it takes no more. May be NULL. */
    bool (*capture)(void *opaque, unsigned port, const void *data, size_t len);
    /* One line that the user should see, without a line feed. */
    void (*warn)(void *opaque, const char *line);
    /* The same of changes of state and of packets dropped. NULL: nobody asks. */
    void (*say)(void *opaque, const char *line);
} HcaSwitchOps;

/* Life: as after power-up, no cable. @config must be good, and may go. */
HcaSwitch *hca_switch_new(const HcaSwitchConfig *config,
                          const HcaSwitchOps *ops, void *opaque);
void hca_switch_free(HcaSwitch *sw);

/* A peer's stream begins at @port, or has ended. */
void hca_switch_cable(HcaSwitch *sw, unsigned port, bool up);
/* The stream has something to read, or takes more; then run a turn. */
void hca_switch_readable(HcaSwitch *sw, unsigned port);
void hca_switch_writable(HcaSwitch *sw, unsigned port);

/*
 * One turn: what has come, what is due, what can leave. Each port has a share
 * of packets of it. True: there is more to do at once.
 */
bool hca_switch_run(HcaSwitch *sw);
/* When the next turn is due without a cable's doing; INT64_MAX: never. */
int64_t hca_switch_deadline(const HcaSwitch *sw);

/*
 * Whether the switch would take bytes of @port now, and whether it has bytes
 * that the stream has not taken.
 */
bool hca_switch_wants_read(const HcaSwitch *sw, unsigned port);
bool hca_switch_wants_write(const HcaSwitch *sw, unsigned port);
/* The peer of @port has said who it is. */
bool hca_switch_is_greeted(const HcaSwitch *sw, unsigned port);

/* Its node, and the link of a port: the switch's, for as long as it lives. */
HcaNode *hca_switch_node(HcaSwitch *sw);
HcaLink *hca_switch_link(HcaSwitch *sw, unsigned port);

/*
 * As text: a line for each port; a line for each counter of @port (0 is the
 * switch itself) that is not 0.
 */
void hca_switch_report_port(const HcaSwitch *sw, unsigned port, GString *out);
void hca_switch_report_counters(HcaSwitch *sw, unsigned port, GString *out);

#endif /* HCA_SWITCH_H */
