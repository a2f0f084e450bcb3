/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A card: what the machine that it sits in may do with it.
 *
 * One card is one clock domain. Every function here but those that say so
 * must be called from one thread at a time.
 */
#ifndef HCA_H
#define HCA_H

#include "config.h"
#include "fault/fault.h"
#include "front/bars.h"
#include "front/record_text.h"
#include "front/state_text.h"
#include "host.h"

typedef struct Hca Hca;

/* A card in its reset state. @config must have passed hca_config_check(). */
Hca *hca_new(const HcaConfig *config, const HcaHostOps *ops, void *opaque);
void hca_free(Hca *hca);

/* Back to the state after hca_new(). Cable and device memory stay as they are. */
void hca_reset(Hca *hca);

/* Registers and doorbells: front/bars.h. */

/* The cable: the peer is there, is gone, takes bytes again. */
void hca_link_up(Hca *hca);
void hca_link_down(Hca *hca);
void hca_link_writable(Hca *hca);

/*
 * Put @plan, which must have passed hca_fault_check(), in the place of the
 * last one. Its counts and its chance begin anew; packets that are held back
 * leave, but what is late at the host's side stays so, and a command that never
 * ends waits for hca_reset(). The plan outlives that.
 */
void hca_set_faults(Hca *hca, const HcaFaultPlan *plan);
/*
 * The same of a plan whose first @kept rules are those that there are: they go on,
 * with their counts and their chance, and nothing leaves.
 */
void hca_add_faults(Hca *hca, const HcaFaultPlan *plan, unsigned kept);
/* How often rule @i of the plan has matched, and has been done. */
typedef struct HcaFaultState {
    uint64_t matched, done;
} HcaFaultState;
void hca_fault_state(const Hca *hca, unsigned i, HcaFaultState *state);

/*
 * Capture what passes the cable from now on, by the host's capture_write,
 * until that takes no more, or until the file would be longer than was said
 * before it started (0, and at first: no limit). hca_reset() does not end it.
 */
void hca_limit_capture(Hca *hca, uint64_t max_bytes);
void hca_start_capture(Hca *hca);

/*
 * Whether the peer broke the framing, so that nothing more can be read. Look
 * after hca_run(); the host then ends the stream, which takes the link down.
 */
bool hca_link_failed(const Hca *hca);

/* Whether the peer has greeted; a RoCE card's need not. After hca_run(). */
bool hca_link_settled(const Hca *hca);

/*
 * A card that moves (link.h): before its state is saved, hca_depart(); if it is true,
 * hca_drain() until it is, too, or until that takes too long; then end the stream,
 * and hca_link_down(). Between turns. Who has loaded a state: hca_arrive(), and then
 * hca_link_up() as soon as there is a stream. hca_link_waits(): an end has departed,
 * and has not come back yet.
 */
bool hca_depart(Hca *hca);
bool hca_drain(Hca *hca);
void hca_arrive(Hca *hca);
bool hca_link_waits(const Hca *hca);

/*
 * Do what there is to do, for a bounded time: a command, received packets,
 * timers that are due, work queues. Returns true if there is more to do now.
 */
bool hca_run(Hca *hca);

/*
 * The same in its two parts, for a host that has doorbells waiting which a
 * command must not overtake. Whether software has asked for a command, a reset
 * among them, and whether for a reset, may be asked in any thread.
 */
void hca_run_command(Hca *hca);
bool hca_run_data(Hca *hca);
bool hca_command_wanted(const Hca *hca);
bool hca_reset_wanted(const Hca *hca);

/*
 * Whether a queue pair waits for an answer or until it may try again, so that
 * the card's next turn is not far away.
 */
bool hca_expects_peers(const Hca *hca);

/* What it is in: front/record_text.h, front/state_text.h. */

/* The name of an HcaTraceEvent; counters: see counters.h. */
const char *hca_trace_name(unsigned event);

#endif /* HCA_H */
