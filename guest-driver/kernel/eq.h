/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* eq.c: event queues and their interrupts. */
#ifndef RHCA_EQ_H
#define RHCA_EQ_H

#include "rdma_hca_wqe.h"

#include "region.h"

struct rhca_eq {
	struct rhca_dev *dev;
	u32 eqn;
	u32 entries;
	u32 ci;
	u32 vector;
	int irq;
	u32 waiting;		/* the entry that the last look saw waiting */
	bool waits;		/* there was one */
	struct mutex look_lock;	/* while a look handles entries */
	struct rhca_buf buf;
	struct rhca_region region;
	char name[32];
};

int rhca_eqs_init(struct rhca_dev *dev);
void rhca_eqs_cleanup(struct rhca_dev *dev);
/*
 * Handle what no interrupt has told of, and find a queue that has failed. Once a
 * second.
 */
void rhca_eqs_look(struct rhca_dev *dev);
/* Wait until no handler that runs now uses an object that was looked up. */
void rhca_eq_synchronize(struct rhca_eq *eq);
/* The same of all queues: whose handlers that began before have ended. */
void rhca_eqs_synchronize(struct rhca_dev *dev);
/*
 * Wait until the thread of queue 0 has handled what the card had written by
 * now, whether its interrupt has come or not. Not from an event's handler, which
 * runs in that thread; so rhca_eq_synchronize().
 */
void rhca_eq_catch_up(struct rhca_eq *eq);
/* The event queue of a completion vector. */
struct rhca_eq *rhca_eq_of_vector(struct rhca_dev *dev, u32 vector);

#endif /* RHCA_EQ_H */
