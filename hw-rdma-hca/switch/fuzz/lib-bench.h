/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A switch whose cables are the fuzz target's: what peers have sent, how much
 * they take, and a look at all that leaves. After each turn, whatever the input
 * was:
 *
 * - what leaves is framed and checked as it has to be, and the M_Key does not;
 * - the turn is no longer, and the switch no larger, than the bounds say;
 * - with an M_Key nothing is configured by who does not have it.
 */
#ifndef LIB_BENCH_H
#define LIB_BENCH_H

#include "core/tests/lib-input.h"
#include "core/link/framing.h"
#include "core/wire/wire.h"
#include "switch/switch.h"

#define BENCH_PORTS 4
#define BENCH_SWITCH_LID 9
#define NS_PER_MS 1000000ll
#define NS_PER_S 1000000000ll

/* The bounds; docs/testing.md says what they are made of. */
#define BENCH_MOST_LIVE (11u << 20)
#define BENCH_MOST_STEPS (1u << 20)
#define BENCH_MOST_TURNS 20000u

typedef struct Cable {
    bool plugged;
    bool cut;     /* to be unplugged after the turn */
    bool greeted; /* by the switch */
    uint8_t in[512 * 1024];
    size_t at, len;  /* of that: not read yet, up to its end */
    size_t room;     /* bytes that the peer takes; SIZE_MAX: all */
    size_t piece;    /* most that a call moves, */
    unsigned pieces; /* so many times */
    int error;       /* of the next call, or 0 */
    uint8_t out[HCA_FRAME_MAX_SIZE]; /* a frame that is not all there yet */
    size_t out_len;
    uint8_t packet[HCA_LINK_MAX_PACKET]; /* the last one that has left */
    size_t packet_len;                   /* 0: none */
} Cable;

typedef struct Bench {
    Input in;
    HcaSwitch *sw;
    HcaNode *node;
    int64_t now;
    Cable cable[BENCH_PORTS + 1];
    uint64_t moved; /* bytes */
    bool spoiled;   /* a plan inverts bits of what leaves */
    uint64_t key;   /* that no input can hold */
    bool protected; /* by it, and it must not leave */
} Bench;

G_NORETURN void bench_fail(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* HCA_TRACE is in the environment. */
bool bench_traces(void);

/* The configuration is the input's head. */
void bench_begin(Bench *b, const uint8_t *data, size_t size);
/* It still answers and forwards; then it goes. */
void bench_end(Bench *b);

void bench_turn(Bench *b);
/* Turns until nothing moves. */
void bench_rest(Bench *b);
void bench_sleep(Bench *b, int64_t ns);

/* With a greeting of the peer's. */
void bench_plug(Bench *b, unsigned port);
void bench_unplug(Bench *b, unsigned port);
/* Bytes of the peer's; lost, if it has sent more than the cable holds. */
void bench_put(Bench *b, unsigned port, const void *bytes, size_t len);
void bench_put_packet(Bench *b, unsigned port, unsigned vl,
                      const uint8_t *packet, size_t len);
/* LRH to VCRC; returns its length. */
size_t bench_pack(HcaPacket *packet, const uint8_t *payload, uint8_t *out);

/* As a manager would: LIDs are ports, all that are up are Active. */
void bench_manage(Bench *b);
/* An M_Key for ever. */
void bench_protect(Bench *b, uint8_t protect);

#endif /* LIB_BENCH_H */
