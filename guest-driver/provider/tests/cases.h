/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The cases. Each finds what setup() makes, and leaves nothing behind.
 */
#ifndef CASES_H
#define CASES_H

/* test-ah.c */

void test_ud(void);
void test_ah_limits(void);
void test_roce_ud(void);

/* test-cq.c */

void test_recv_completions(void);
void test_roce_completions(void);
void test_send_completions(void);
void test_errors(void);
void test_clean(void);
void test_resize(void);
void test_arm(void);
void test_start_poll(void);
void test_cq_attr(void);
void test_wc_flags(void);
void test_cvlan(void);
void test_flow_tag(void);
void test_timestamps(void);

/* test-dm.c */

void test_device_memory(void);
void test_bad_device_memory(void);
void test_dm_mr(void);
void test_import_dm(void);

/* test-domain.c */

void test_domains(void);
void test_bad_domains(void);
void test_allocators(void);
void test_thread_domain(void);

/* test-flow.c */

void test_raw(void);

/* test-mem.c */

void test_records(void);

/* test-mw.c */

void test_invalidate(void);
void test_bind(void);
void test_bad_binds(void);

/* test-qp.c */

void test_caps(void);
void test_bad_caps(void);
void test_missing_ops(void);
void test_create_flags(void);
void test_xrc_target(void);
void test_destroyed_under_an_event(void);

/* test-recv.c */

void test_recv(void);
void test_srq_recv(void);

/* test-send.c */

void test_chain(void);
void test_atomics(void);
void test_bad_sends(void);
void test_bad_wr(void);
void test_full(void);

/* test-srq.c */

void test_srq_caps(void);
void test_srq_order(void);
void test_srq_resize(void);
void test_srq_clean(void);
void test_bad_srqs(void);
void test_srq_threads(void);

/* test-verbs.c */

void test_query_device(void);
void test_rt_values(void);
void test_null_mr(void);
void test_import(void);
void test_on_demand(void);
void test_dmabuf(void);

/* test-wr-api.c */

void test_wr_api(void);
void test_wr_api_ud(void);
void test_flush(void);
void test_atomic_write(void);

/* test-xrc.c */

void test_xrc_completions(void);
void test_xrc_send(void);
void test_xrc_wr_api(void);
void test_xrc_local(void);
void test_xrc_bind(void);
void test_xrc_destroyed_under_an_event(void);

#endif /* CASES_H */
