/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw packet QPs of card 0 of two RoCE cards, beside its interface; the test
 * has the other end of the cable.
 */
#ifndef LIB_RAW_H
#define LIB_RAW_H

#include "lib-nic.h"
#include "lib-pair.h"

#define RAW_SLOT 16384u /* of a receive, in the card's region */
#define RAW_SLOTS 64u
#define RAW_SEND_AT (RAW_SLOTS * RAW_SLOT) /* where frames to be sent lie */

typedef struct RawBench {
    Pair *pair;
    Host *host;
    Driver *drv;
    Nic *nic;
    GQueue sent;   /* GByteArray: frames that card 0 sent */
    unsigned next; /* slot of the next receive */
} RawBench;

/* With a cable that gives all frames of card 0 to the test. */
RawBench *raw_bench_new(uint32_t seed);
/* With a cable between the two cards. */
RawBench *raw_bench_new_cabled(uint32_t seed);
void raw_bench_free(RawBench *bench);

/* A raw packet QP in RTS with a CQ of its own. */
Qp *raw_new(RawBench *bench);
/* Post @n receives of a slot each; wr_id is the slot. */
void raw_post(RawBench *bench, Qp *qp, unsigned n);
/* Send a frame, well. */
void raw_send(RawBench *bench, Qp *qp, const uint8_t *frame, size_t len);
/* The QP's next receive is this frame; it has none. */
void raw_expect(RawBench *bench, Qp *qp, const uint8_t *frame, size_t len);
void raw_expect_none(RawBench *bench, Qp *qp);

/* A frame from the other end of the cable. */
void raw_inject(RawBench *bench, const uint8_t *frame, size_t len);
/* The next frame that left is this one, filled up; none did. */
void raw_expect_sent(RawBench *bench, const uint8_t *frame, size_t len);
void raw_expect_none_sent(RawBench *bench);
/* The interface has this frame, or none. */
void raw_expect_nic(RawBench *bench, const uint8_t *frame, size_t len);
void raw_expect_nic_none(RawBench *bench);

/* @len bytes with these addresses and a local EtherType, at random else. */
void raw_frame(RawBench *bench, uint8_t *frame, size_t len, const uint8_t *to);
/* Of counters: a name with its unit. */
uint64_t raw_count(RawBench *bench, const char *name);

/* A rule of @qp for all frames; @kind and priority: its word. */
void flow_init(struct rdma_hca_flow *flow, const Qp *qp, uint32_t kind);
uint8_t flow_add(RawBench *bench, unsigned index,
                 const struct rdma_hca_flow *flow);
uint8_t flow_remove(RawBench *bench, unsigned index);
/* Add a rule that cannot be refused. */
void flow_rule(RawBench *bench, unsigned index, const Qp *qp, uint32_t kind);

#endif /* LIB_RAW_H */
