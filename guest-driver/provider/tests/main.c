// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider without a kernel and a card: this program answers uverbs
 * commands, reads WQEs as the card would, and writes CQEs.
 *
 * usage: rdma_hca_provider_test [-l] [-p CASE]...
 * Prints TAP; -l lists the cases, -p chooses one.
 */
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "lib-check.h"
#include "lib-objects.h"

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "caps", test_caps },
	{ "bad-caps", test_bad_caps },
	{ "chain", test_chain },
	{ "atomics", test_atomics },
	{ "invalidate", test_invalidate },
	{ "bind", test_bind },
	{ "bad-binds", test_bad_binds },
	{ "null-mr", test_null_mr },
	{ "ud", test_ud },
	{ "ah-limits", test_ah_limits },
	{ "roce-ud", test_roce_ud },
	{ "raw", test_raw },
	{ "bad-sends", test_bad_sends },
	{ "bad-wr", test_bad_wr },
	{ "full", test_full },
	{ "recv", test_recv },
	{ "recv-completions", test_recv_completions },
	{ "roce-completions", test_roce_completions },
	{ "send-completions", test_send_completions },
	{ "errors", test_errors },
	{ "clean", test_clean },
	{ "resize", test_resize },
	{ "arm", test_arm },
	{ "start-poll", test_start_poll },
	{ "wr-api", test_wr_api },
	{ "wr-api-ud", test_wr_api_ud },
	{ "flush", test_flush },
	{ "atomic-write", test_atomic_write },
	{ "missing-ops", test_missing_ops },
	{ "create-flags", test_create_flags },
	{ "srq-caps", test_srq_caps },
	{ "srq-recv", test_srq_recv },
	{ "srq-order", test_srq_order },
	{ "srq-resize", test_srq_resize },
	{ "srq-clean", test_srq_clean },
	{ "srq-threads", test_srq_threads },
	{ "destroyed-under-an-event", test_destroyed_under_an_event },
	{ "xrc-completions", test_xrc_completions },
	{ "xrc-send", test_xrc_send },
	{ "xrc-wr-api", test_xrc_wr_api },
	{ "xrc-local", test_xrc_local },
	{ "xrc-bind", test_xrc_bind },
	{ "xrc-destroyed-under-an-event", test_xrc_destroyed_under_an_event },
	{ "xrc-target", test_xrc_target },
	{ "bad-srqs", test_bad_srqs },
	{ "records", test_records },
	{ "query-device", test_query_device },
	{ "timestamps", test_timestamps },
	{ "rt-values", test_rt_values },
	{ "wc-flags", test_wc_flags },
	{ "cvlan", test_cvlan },
	{ "flow-tag", test_flow_tag },
	{ "cq-attr", test_cq_attr },
	{ "domains", test_domains },
	{ "bad-domains", test_bad_domains },
	{ "allocators", test_allocators },
	{ "thread-domain", test_thread_domain },
	{ "import", test_import },
	{ "on-demand", test_on_demand },
	{ "dmabuf", test_dmabuf },
	{ "device-memory", test_device_memory },
	{ "bad-device-memory", test_bad_device_memory },
	{ "dm-mr", test_dm_mr },
	{ "import-dm", test_import_dm },
};

static bool is_chosen(const char *name, int argc, char **argv)
{
	bool any = false;
	int i;

	for (i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "-p"))
			continue;
		any = true;
		if (!strcmp(argv[i + 1], name))
			return true;
	}
	return !any;
}

int main(int argc, char **argv)
{
	int before, bad = 0, n = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (argc > 1 && !strcmp(argv[1], "-l")) {
			puts(cases[i].name);
			continue;
		}
		if (!is_chosen(cases[i].name, argc, argv))
			continue;
		before = check_failures;
		setup();
		cases[i].run();
		teardown();
		bad += check_failures != before;
		printf("%sok %d %s\n", check_failures == before ? "" : "not ",
		       ++n, cases[i].name);
	}
	if (n)
		printf("1..%d\n", n);
	return bad != 0;
}
