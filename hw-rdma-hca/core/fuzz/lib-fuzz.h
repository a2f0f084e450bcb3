/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What fuzz targets share: two machines with a card each and connections
 * between them, made anew for each input; memory that nobody has rights to; a
 * machine that changes memory behind its card's back; and what has to be true
 * afterwards, whatever the input was:
 *
 * - memory without rights has not changed, and has not left;
 * - the cards come to rest;
 * - no turn of a card, and nothing that it keeps, is larger than lib-meter.h
 *   says; without cards nothing is kept;
 * - after a reset both cards work.
 *
 * A target is a table of actions. An input is a head and then actions, a byte
 * for which one and what that one takes.
 */
#ifndef LIB_FUZZ_H
#define LIB_FUZZ_H

#include "lib-input.h"
#include "lib-meter.h"
#include "lib-machine.h"
#include "lib-mem.h"

/* Turns until the cards rest, timers and the clock apart. */
#define FUZZ_MOST_TURNS 20000u

/*
 * A connection of each service. XRC is one way: its target is machine 0's, that
 * of XRC_BACK machine 1's.
 */
enum {
    FUZZ_RC,
    FUZZ_UC,
    FUZZ_UD,
    FUZZ_SHARED, /* RC, with an SRQ on each side */
    FUZZ_XRC,
    FUZZ_XRC_BACK,
    FUZZ_NQPS
};

/* Shared receive queues of each machine. */
enum {
    FUZZ_SRQ,
    FUZZ_SRQ_XRC,
    FUZZ_NSRQS
};

/* Regions of each machine. What is not said to be allowed is not. */
enum {
    FUZZ_ALL,      /* pair->mr: everything */
    FUZZ_READABLE, /* by the peer */
    FUZZ_WRITABLE, /* by the machine and the peer */
    FUZZ_LOCAL,    /* written by the machine */
    FUZZ_ALIEN,    /* everything, of another protection domain */
    FUZZ_NREGIONS
};

#define FUZZ_MEM_VA 0x777000u
#define FUZZ_NPIECES 7u
#define FUZZ_PIECES_LEN 4300u

/* For work requests of memory management, and what else is no plain memory. */
enum {
    FUZZ_FAST,    /* a region: the key that it began with */
    FUZZ_WINDOW1, /* windows, likewise */
    FUZZ_WINDOW2,
    FUZZ_PIECES,  /* a region of pieces, likewise */
    FUZZ_DEV_MEM, /* device memory */
    FUZZ_NULL,    /* the region without memory */
    FUZZ_CLAIMED, /* a window that a QP has bound which has broken since */
    FUZZ_NMEM_KEYS
};

/* Who means harm on a machine. */
typedef enum FuzzGuest {
    FUZZ_GUEST_GOOD,
    FUZZ_GUEST_PROGRAM, /* with queues and doorbells of its own */
    FUZZ_GUEST_DRIVER,  /* with all of the machine */
} FuzzGuest;

typedef struct Fuzz {
    Input in;
    bool roce;
    FuzzGuest guest[2];
    Pair *pair;
    Lab *lab;
    Qp *qp[FUZZ_NQPS][2];
    Srq *srq[FUZZ_NSRQS][2];
    Mr *mr[2][FUZZ_NREGIONS];
    Mr *bindable[2]; /* everything, and windows */
    Mr *fast[2], *pieces[2];
    uint64_t list[2], piece_list[2];  /* of their memory */
    Mr dev_mem[2];                    /* where it is, no more */
    Mr *claimed[2];                   /* what FUZZ_CLAIMED has all rights to */
    const Mr *mem[2][FUZZ_NMEM_KEYS]; /* where each is, if it is valid */
    uint32_t mem_key[2][FUZZ_NMEM_KEYS];
    GArray *secrets; /* FuzzSecret */
    void *own;       /* of the target */
} Fuzz;

/* What libFuzzer calls. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct FuzzAction {
    const char *name;
    void (*act)(Fuzz *f);
} FuzzAction;

/* Something is wrong: say it, and end as libFuzzer wants to see it. */
G_NORETURN void fuzz_fail(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Event queues that a driver does not get to, of few entries. */
#define FUZZ_COMP_EQN 6 /* of the CQ of a guest who is not good */
#define FUZZ_SPARE_EQN 7

/* Cards of few entries, so that an input takes little time. */
void fuzz_config(HcaConfig *config, unsigned side, bool roce);

/*
 * The two machines, connected; machine 0 has @first. The link layer is the first
 * bit of the input.
 */
void fuzz_begin(Fuzz *f, const uint8_t *data, size_t size, FuzzGuest first);
/* The same after @config, with f->in as it is. */
void fuzz_begin_with(Fuzz *f, const uint8_t *data, size_t size, FuzzGuest first,
                     const HcaConfig *config);
/* More memory of a machine's that must neither change nor leave. */
void fuzz_add_secret(Fuzz *f, unsigned side, uint64_t bus, uint32_t len);
/* Actions until the input ends. */
void fuzz_play(Fuzz *f, const FuzzAction *actions, unsigned n);
/* Look at everything, and take it down. */
void fuzz_end(Fuzz *f);

/* Turns until both cards rest; timers that are due later stay so. */
void fuzz_rest(Fuzz *f);
/* Let @ns pass. */
void fuzz_sleep(Fuzz *f, int64_t ns);

/* A card after a reset, its driver and connections again. */
void fuzz_start_over(Fuzz *f, unsigned side);
/* Short patience, the smallest MTU. */
void fuzz_attr(QpAttr *attr);
/* A side of a connection from RST to RTS, if the card takes @attr of side 0. */
bool fuzz_bring_up(Fuzz *f, unsigned side, unsigned which, const QpAttr *attr);

/* An event queue at the begin of a region. Returns the command's status. */
uint8_t fuzz_make_eq(const Mr *mr, uint32_t eqn, unsigned log_size);
/* A region that was invalidated, as it was. */
void fuzz_bring_back(Fuzz *f, const Mr *mr);

/* ---- choices ---- */

unsigned fuzz_take_side(Fuzz *f);
unsigned fuzz_take_qp(Fuzz *f);
/* A QP of machine @side that has a send queue; its receives, or NULL. */
Qp *fuzz_take_sender(Fuzz *f, unsigned side);
Srq *fuzz_srq_of(const Fuzz *f, unsigned side, unsigned which);
/*
 * A key of machine @side, more or less, and the region that it is of, or NULL.
 * @own: for the machine's own use, by a guest that keeps its secrets if good.
 */
uint32_t fuzz_take_key(Fuzz *f, unsigned side, bool own, const Mr **mr);
/* One that work requests of machine @side change, with any consumer's byte.
 * *@which: which it is, FUZZ_FAST and following; NULL if nobody cares. */
uint32_t fuzz_take_mem_key(Fuzz *f, unsigned side, unsigned *which);
/* An address in or near region @mr; NULL: anything. */
uint64_t fuzz_take_va(Fuzz *f, const Mr *mr);
uint32_t fuzz_take_len(Fuzz *f);

/* Post @n work requests of any kind at once. */
#define FUZZ_MOST_WRS 3
void fuzz_post(Fuzz *f, unsigned side, unsigned which, unsigned n);
/* Read BAR 2 of machine 0: the clock, or nothing. */
void fuzz_read_uar(Fuzz *f, uint32_t offset);

/* ---- actions of every target ---- */

void fuzz_act_send(Fuzz *f);      /* a work request of any kind, either side */
void fuzz_act_exchange(Fuzz *f);  /* requests, with receives at the peer */
void fuzz_act_recv(Fuzz *f);      /* receives */
void fuzz_act_arm(Fuzz *f);       /* a CQ again and again */
void fuzz_act_poll(Fuzz *f);      /* completions and events of good guests */
void fuzz_act_turns(Fuzz *f);     /* a few turns */
void fuzz_act_rest(Fuzz *f);      /* until the cards rest */
void fuzz_act_time(Fuzz *f);      /* a moment, or a second */
void fuzz_act_revive(Fuzz *f);    /* a connection from the beginning */
void fuzz_act_modify(Fuzz *f);    /* a connection to another state */
void fuzz_act_group(Fuzz *f);     /* datagram QPs of a multicast group */
void fuzz_act_cable(Fuzz *f);     /* unplugged, and plugged again */
void fuzz_act_events(Fuzz *f);    /* an event queue of few entries, or room */
void fuzz_act_multicast(Fuzz *f); /* to a group of both machines' */
void fuzz_act_gid(Fuzz *f);       /* an address less, or one more */
void fuzz_act_region(Fuzz *f);    /* a region less, or one more */
void fuzz_act_lie(Fuzz *f);       /* in the state of machine 0's card */
void fuzz_act_reload(Fuzz *f);    /* either card goes on in another one */

#endif /* LIB_FUZZ_H */
