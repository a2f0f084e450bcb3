/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A card: what the machine that it sits in may do with it.
 *
 * One card is one clock domain. Every function here but the two that say so
 * must be called from one thread at a time, the card's.
 */
#ifndef HCA_H
#define HCA_H

#include "config.h"
#include "host.h"
#include "link/fault.h"

typedef struct Hca Hca;

/* A card in its reset state. @config must have passed hca_config_check(). */
Hca *hca_new(const HcaConfig *config, const HcaHostOps *ops, void *opaque);
void hca_free(Hca *hca);

/* Back to the state after hca_new(). The cable stays as it is. */
void hca_reset(Hca *hca);

/*
 * BAR 0. @offset is aligned to 4 and less than RDMA_HCA_BAR0_SIZE; registers
 * are in host byte order. From any thread, one at a time (the machine's I/O
 * lock). A write may leave work for the card's thread, which then has to call
 * hca_run(): returns true if so.
 */
uint32_t hca_bar0_read(const Hca *hca, uint32_t offset);
bool hca_bar0_write(Hca *hca, uint32_t offset, uint32_t value);

/*
 * A doorbell: a write of @size (4 or 8) bytes at @offset of BAR 0 (event
 * queues; hca_bar0_write() does not take those) or of BAR 2, aligned to
 * @size. The caller calls hca_run() after one or more.
 */
void hca_eq_doorbell(Hca *hca, uint32_t offset, uint32_t value);
/* The same of the Ethernet function; ignored on an InfiniBand card. */
void hca_eth_doorbell(Hca *hca, uint32_t offset, uint32_t value);
void hca_uar_write(Hca *hca, uint32_t offset, uint64_t value, unsigned size);

/* The cable: the peer is there, is gone, takes bytes again. */
void hca_link_up(Hca *hca);
void hca_link_down(Hca *hca);
void hca_link_writable(Hca *hca);

/*
 * Put @plan, which must have passed hca_fault_check(), in the place of the
 * last one. Its counts and its chance begin anew; packets that are held back
 * leave. The plan outlives hca_reset().
 */
void hca_set_faults(Hca *hca, const HcaFaultPlan *plan);

/*
 * Capture what passes the cable from now on, by the host's capture_write,
 * until that takes no more. hca_reset() does not end it.
 */
void hca_start_capture(Hca *hca);

/*
 * Whether the peer broke the framing, so that nothing more can be read. Look
 * after hca_run(); the host then ends the stream, which takes the link down.
 */
bool hca_link_failed(const Hca *hca);

/*
 * Do what there is to do, for a bounded time: a command, received packets,
 * timers that are due, work queues. Returns true if there is more to do now.
 */
bool hca_run(Hca *hca);

/* The name of an HcaTraceEvent; counters: see counters.h. */
const char *hca_trace_name(unsigned event);

#endif /* HCA_H */
