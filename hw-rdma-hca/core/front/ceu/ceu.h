/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CEU: the command execution unit (CEU document 2).
 *
 * hcr.c        the HCR registers (interface document 3.1.1)
 * ceu_ctrl.c   IDLE, DECODE, GET_INBOX, EXECUTE
 * commands.c   the table of commands
 * acc_local.c  commands answered from the unit's own store
 * acc_addr.c   commands of the port's address tables
 * acc_cm.c     commands of the context manager
 * acc_eth.c    commands of the Ethernet function
 * wr_v2p.c     commands of VirtToPhys
 * wr_both.c    INIT_HCA and CLOSE_HCA
 */
#ifndef HCA_CEU_H
#define HCA_CEU_H

#include "../../card.h"
#include "../interface.h"

typedef struct HcaCeu HcaCeu;

/* The commands of a programming interface; see ceu_int.h. */
typedef struct HcaCommandTable HcaCommandTable;
extern const HcaCommandTable hca_commands; /* of the documents' */

HcaCeu *hca_ceu_new(Hca *hca);
void hca_ceu_free(HcaCeu *ceu);
/* Reset: a command in progress is forgotten, GO is cleared. */
void hca_ceu_reset(HcaCeu *ceu);

/*
 * HCR access, from any thread, one at a time. @offset is in the HCR.
 * hca_ceu_write() returns true if it started a command.
 */
uint32_t hca_ceu_read(const HcaCeu *ceu, uint32_t offset);
bool hca_ceu_write(HcaCeu *ceu, uint32_t offset, uint32_t value);
/* Whether a command waits. From any thread. */
bool hca_ceu_wanted(const HcaCeu *ceu);

/* Execute the command that waits, if any. The card's thread. */
void hca_ceu_run(HcaCeu *ceu);
/* When to call that again for a command in hand; INT64_MAX: no time is known. */
int64_t hca_ceu_deadline(const HcaCeu *ceu);

/*
 * Whether the last command's event still waits for room in its EQ: the next
 * command that ends in an event has to wait, too.
 */
bool hca_ceu_event_waits(const HcaCeu *ceu);

/* Whether INIT_HCA has been done. */
bool hca_ceu_initialised(const HcaCeu *ceu);

typedef struct HcaCeuCounters {
    uint64_t commands;
    uint64_t opcodes[1u << 12];
    uint64_t status[256];
    uint64_t unknown;           /* opcode, or op_modifier, of no command */
    uint64_t mailboxes_refused; /* misaligned, of no length, or not RAM */
    uint64_t ignored_writes;    /* to a busy HCR */
} HcaCeuCounters;

const HcaCeuCounters *hca_ceu_counters(HcaCeu *ceu);

/* The name of an interface's command @op, or NULL if there is none. */
const char *hca_ceu_command_name(const HcaInterface *interface, uint16_t op);

/* state.c: what is saved. */
extern const HcaSection hca_ceu_section, hca_uarc_section;

#endif /* HCA_CEU_H */
