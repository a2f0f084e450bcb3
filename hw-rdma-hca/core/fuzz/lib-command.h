/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that a card takes, each a row of a table, to be made worse. */
#ifndef LIB_COMMAND_H
#define LIB_COMMAND_H

#include "lib-fuzz.h"

#define COMMAND_WORDS 64

/* Keys that the driver does not get to: this one and those behind it. */
#define FUZZ_SPARE_MPT 60
/* Of the queue pairs of fuzz_make_qp(). */
#define FUZZ_RECV_WQE_SIZE 64

typedef struct FuzzCommand {
    uint16_t op;
    uint8_t op_modifier;
    uint32_t in_modifier;
    uint64_t in_param; /* 0: the mailbox */
    unsigned nwords;   /* of the mailbox, in host byte order */
    uint32_t word[COMMAND_WORDS];
} FuzzCommand;

/* A good command for machine 0, of the input's choice. */
void fuzz_take_command(Fuzz *f, FuzzCommand *command);
/* An event queue of few entries; have all events go to it. */
void fuzz_small_eq(Fuzz *f, FuzzCommand *make, FuzzCommand *map);
/* The context of a queue pair, for any transition; the operation stays. */
void fuzz_make_qp(Fuzz *f, FuzzCommand *command);
/* A command's mailbox, to where the driver's is. */
void fuzz_write_inbox(Fuzz *f, const FuzzCommand *command);

#endif /* LIB_COMMAND_H */
