/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters that have to move: two cards to move them with, and a last test of
 * each program, which asks whether all counters that are the program's have
 * moved in its others.
 */
#ifndef LIB_COUNTER_EVENTS_H
#define LIB_COUNTER_EVENTS_H

#include "lib-bed.h"

typedef enum EventsSubject {
    EVENTS_ENGINES,
    EVENTS_HOST,
    EVENTS_NETWORK,
    EVENTS_MANAGEMENT,
} EventsSubject;

typedef struct EventsTest {
    const char *path; /* below /counter-events */
    void (*test)(void);
} EventsTest;

typedef struct EventsProgram {
    EventsSubject subject;
    const EventsTest *tests;
    unsigned n;
} EventsProgram;

int events_main(int argc, char **argv, const EventsProgram *program);

Bed *events_new_by(uint8_t service, const QpAttr *attr, const HcaConfig *cards);
/* Two connected QPs. */
Bed *events_new_rc(const QpAttr *attr);
/* Take down which counters are not 0. */
void events_look(Bed *bed);
void events_look_lab(Lab *lab);
void events_look_and_free(Bed *bed);
void events_expect_some(const Bed *bed, unsigned side, const char *name);
/* Request @i of the bed, from side 0, to be posted by bed_post_requests(). */
SendWr *events_request(Bed *bed, unsigned i, uint8_t opcode, uint32_t len);
void events_post_recv(Bed *bed, uint32_t len);
/* A packet from side 0 to the QP of side 1 that is right as far as it goes. */
HcaPacket events_forge(Bed *bed, uint8_t opcode, uint32_t psn);

/* A test. A region and a window come and go; then one that is gone is to go
 * again. Moves what sends, what answers and the tables. */
void events_memory_management(void);

#endif /* LIB_COUNTER_EVENTS_H */
