/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The cases of rdma_hca_test. Each finds what bench_init() makes, and leaves
 * it so if it passes.
 */
#ifndef CASES_H
#define CASES_H

struct bench;

/* verbs.c */

int test_writes(struct bench *b);
int test_reads(struct bench *b);
int test_atomics(struct bench *b);
int test_atomic_writes(struct bench *b);
int test_sends(struct bench *b);
int test_datagrams(struct bench *b);
int test_events(struct bench *b);
int test_refused(struct bench *b);
int test_inline_answers(struct bench *b);
int test_access_flags(struct bench *b);
int test_unreliable(struct bench *b);

/* queues.c */

int test_largest(struct bench *b);
int test_fragmented(struct bench *b);

/* dmabuf.c */

int test_dmabuf_exporter(struct bench *b);

/* states.c */

int test_flush_and_clean(struct bench *b);
int test_posts_by_state(struct bench *b);
int test_post_while_polling(struct bench *b);
int test_drain(struct bench *b);
int test_free_polled(struct bench *b);
int test_drain_overrun(struct bench *b);
int test_receives_only(struct bench *b);

/* srq.c */

int test_srq(struct bench *b);
int test_srq_limit(struct bench *b);
int test_srq_last_wqe(struct bench *b);
int test_srq_drain(struct bench *b);
int test_xrc(struct bench *b);

#endif /* CASES_H */
