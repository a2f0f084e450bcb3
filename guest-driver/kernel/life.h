/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* life.c: how far a card is in its life, and what may happen to it next. */
#ifndef RHCA_LIFE_H
#define RHCA_LIFE_H

#include <linux/types.h>

struct rhca_pci;

/* In the order of rhca_is_lost(). */
enum rhca_state {
	RHCA_HALTED = 1,	/* there is no device, and none is wanted */
	RHCA_WAITING,	/* nor here, but a start is due: the last one failed */
	RHCA_PRIVATE,	/* on its way in or out: the driver alone uses it */
	RHCA_RUNNING,	/* the RDMA core offers the device */
	RHCA_LEAVING,	/* the core takes it from its users */
	/* The card does not answer any more, and reaches no memory. */
	RHCA_LOST,	/* as RHCA_PRIVATE */
	RHCA_FAILED,	/* as RHCA_RUNNING: a restart is due */
	RHCA_LEAVING_LOST,
	RHCA_OFF,	/* for good: the machine goes down */
	RHCA_NUM_STATES
};

enum rhca_life_event {
	RHCA_START,	/* a start begins */
	RHCA_OFFER,	/* the core is ready for users */
	RHCA_FAIL,	/* the card does not answer */
	RHCA_LEAVE,	/* a stop begins */
	RHCA_VACATED,	/* the core has no users any more */
	RHCA_END,	/* a start has failed, a stop is done, or none is due */
	RHCA_RETRY,	/* there is to be another start, later */
	RHCA_SHUTDOWN,	/* the machine goes down */
	RHCA_NUM_LIFE_EVENTS
};

/* Those who want the card to stand still. It starts when the last one does not. */
enum rhca_halter {
	RHCA_HALT_PROBE = BIT(0),	/* the driver is not ready for restarts */
	RHCA_HALT_RESET = BIT(1),	/* a function-level reset */
	RHCA_HALT_BUS = BIT(2),		/* an error of the bus */
	RHCA_HALT_RELOAD = BIT(3),	/* devlink */
	RHCA_HALT_SLEEP = BIT(4),	/* the machine's */
	RHCA_HALT_REMOVAL = BIT(5),	/* for good */
};

/* Commands fail at once then, and what the card had of memory is free. */
static inline bool rhca_is_lost(enum rhca_state state)
{
	return state >= RHCA_LOST;
}

/* Users have the device, and are told of what happens to it. */
static inline bool rhca_is_offered(enum rhca_state state)
{
	return state == RHCA_RUNNING || state == RHCA_FAILED;
}

/*
 * The only function that changes pci->state. In any context. Returns the state
 * before, which tells who was first; an event that means nothing there changes
 * nothing.
 */
enum rhca_state rhca_life(struct rhca_pci *pci, enum rhca_life_event event);
const char *rhca_state_name(enum rhca_state state);

#endif /* RHCA_LIFE_H */
