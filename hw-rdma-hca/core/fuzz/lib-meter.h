/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a card costs its machine. Each call of a function of hca.h is a turn.
 * Its work is counted: look-ups of memory, those of the card's own tables in
 * guest memory among them; reads and writes of the cable; interrupts. So are
 * its steps: branches of the card's code, as the compiler counts them. A turn
 * may have so much of both, and more for what it has got done. What the cards
 * have allocated is counted, too.
 */
#ifndef LIB_METER_H
#define LIB_METER_H

#include <stdbool.h>
#include <stddef.h>

#include "../hca.h"

/* The bounds; docs/testing.md says what they are made of. */
#define METER_TURN 64u       /* any turn */
#define METER_PACKET 180u    /* more, for each packet and each WQE */
#define METER_MEM_OP 640u    /* more, for a REG_MR, BIND_MW, invalidation */
#define METER_ENTRY 16u      /* more, for each completion, event, timeout */
#define METER_COMMAND 64u    /* more, for a command */
#define METER_MTT 2u         /* more, for each MTT entry that it names */
#define METER_PIECE 6u       /* more, for each look-up of a piece */
#define METER_ETHERNET 4096u /* more, if there are Ethernet rings */
#define METER_STEPS 64u      /* for each piece of work */
#define METER_LOOKS 32768u /* steps of any turn: 128 packets that are dropped */
#define METER_TABLES 65536u /* steps of a reset, and of a card's making */
#define METER_NUMBER                                                           \
    4u /* steps, for each number of a QP, CQ and SRQ of these */
#define METER_STATE 16u    /* steps, for each byte of a state */
#define METER_PAGE 8u      /* steps, for each page (un)mapped for tables */
#define METER_ANY_PAGE 32u /* the same where tables may be mapped over others */
#define METER_CACHES 262144u /* and once for what is in the caches of these */
#define METER_MOST_PAGES (1u << 20) /* that a card has mapped */
#define METER_MOST_LIVE (12u << 20) /* bytes of two cards, */
#define METER_QP_LIVE 8192u /* and more, for each QP that both may have */

typedef struct Meter {
    unsigned work;    /* of this turn */
    uint64_t steps;   /* of this turn */
    unsigned allowed; /* work, for what it has got done */
    uint64_t looks;   /* steps, for what is looked at and not done */
    uint64_t pieces;  /* looked up before the turn */
    size_t live;      /* bytes */
    /* For the report at the end. */
    unsigned most_work;
    unsigned most_percent; /* of the work that a turn may have */
    uint64_t most_steps;
    unsigned most_steps_percent;
    size_t most_live;
    size_t allowed_live;
} Meter;

extern Meter meter;

/*
 * Called between any two steps, whoever takes them, if it is not NULL: what others
 * do at that moment. Not with COVERAGE=1, where steps are not counted.
 */
extern void (*meter_between)(void);

/* Once, before the first card. */
void meter_init(void);
/* A piece of work of the turn. */
void meter_work(unsigned n);
/* Something is done; see HcaTraceEvent. */
void meter_done(const Hca *hca, const HcaTrace *trace);
/* The machine's own doing inside of a turn; pause says what resume needs. */
bool meter_pause(void);
void meter_resume(bool was);

#endif /* LIB_METER_H */
