// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The life of a card, as states and what leads from one to the other. What is
 * done on the way is done by who brings the event: card.c (a failure), device.c
 * (starts and stops), recovery.c (who starts them).
 */
#include "card.h"

/* By state and event: the state behind it. 0: it stays as it is. */
static const u8 rhca_next[RHCA_NUM_STATES][RHCA_NUM_LIFE_EVENTS] = {
	[RHCA_HALTED] = {
		[RHCA_START] = RHCA_PRIVATE,
		[RHCA_RETRY] = RHCA_WAITING,
	},
	[RHCA_WAITING] = {
		[RHCA_START] = RHCA_PRIVATE,
		[RHCA_END] = RHCA_HALTED,
	},
	[RHCA_PRIVATE] = {
		[RHCA_OFFER] = RHCA_RUNNING,
		[RHCA_FAIL] = RHCA_LOST,
		[RHCA_END] = RHCA_HALTED,
	},
	[RHCA_RUNNING] = {
		[RHCA_FAIL] = RHCA_FAILED,
		[RHCA_LEAVE] = RHCA_LEAVING,
	},
	[RHCA_LEAVING] = {
		[RHCA_FAIL] = RHCA_LEAVING_LOST,
		[RHCA_VACATED] = RHCA_PRIVATE,
	},
	[RHCA_LOST] = {
		[RHCA_OFFER] = RHCA_FAILED,
		[RHCA_END] = RHCA_HALTED,
	},
	[RHCA_FAILED] = {
		[RHCA_LEAVE] = RHCA_LEAVING_LOST,
	},
	[RHCA_LEAVING_LOST] = {
		[RHCA_VACATED] = RHCA_LOST,
	},
};

static enum rhca_state rhca_next_state(enum rhca_state state,
				       enum rhca_life_event event)
{
	if (event == RHCA_SHUTDOWN)
		return RHCA_OFF;
	return rhca_next[state][event] ?: state;
}

enum rhca_state rhca_life(struct rhca_pci *pci, enum rhca_life_event event)
{
	enum rhca_state before;
	unsigned long flags;

	spin_lock_irqsave(&pci->state_lock, flags);
	before = pci->state;
	WRITE_ONCE(pci->state, rhca_next_state(before, event));
	spin_unlock_irqrestore(&pci->state_lock, flags);
	return before;
}

const char *rhca_state_name(enum rhca_state state)
{
	static const char * const names[RHCA_NUM_STATES] = {
		[RHCA_HALTED] = "stopped",
		[RHCA_WAITING] = "waiting",
		[RHCA_PRIVATE] = "starting",
		[RHCA_RUNNING] = "running",
		[RHCA_LEAVING] = "stopping",
		[RHCA_LOST] = "starting, failed",
		[RHCA_FAILED] = "failed",
		[RHCA_LEAVING_LOST] = "stopping, failed",
		[RHCA_OFF] = "off",
	};

	return names[state];
}
