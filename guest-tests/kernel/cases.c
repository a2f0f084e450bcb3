// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The verbs of the kernel on an rdma_hca device: what a storage protocol or
 * IP over InfiniBand does in there. Loading the module runs the tests, with
 * QPs of the device that talk to each other, and succeeds if they do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "bench.h"
#include "cases.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("Tests of the kernel's verbs on an rdma_hca device");
MODULE_LICENSE("Dual BSD/GPL");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the test to run, in place of all");

static const struct {
	const char *name;
	int (*run)(struct bench *b);
} tests[] = {
	{ "writes", test_writes },
	{ "reads", test_reads },
	{ "atomics", test_atomics },
	{ "atomic-writes", test_atomic_writes },
	{ "sends", test_sends },
	{ "datagrams", test_datagrams },
	{ "events", test_events },
	{ "refused", test_refused },
	{ "unreliable", test_unreliable },
	{ "largest-queues", test_largest },
	{ "fragmented-memory", test_fragmented },
	{ "flush-and-clean", test_flush_and_clean },
	{ "posts-by-state", test_posts_by_state },
	{ "dmabuf-exporter", test_dmabuf_exporter },
	{ "inline-answers", test_inline_answers },
	{ "access-flags", test_access_flags },
	{ "post-while-polling", test_post_while_polling },
	{ "drain", test_drain },
	{ "free-polled", test_free_polled },
	{ "drain-overrun", test_drain_overrun },
	{ "receives-only", test_receives_only },
	{ "srq", test_srq },
	{ "srq-limit", test_srq_limit },
	{ "srq-last-wqe", test_srq_last_wqe },
	{ "srq-drain", test_srq_drain },
	{ "xrc", test_xrc },
};

static int tested = -ENODEV;

/* A test that fails leaves what it has made: the guest is of no more use. */
static int test_device(struct ib_device *dev)
{
	struct bench b = {};
	int i, err;

	err = bench_init(&b, dev);
	for (i = 0; i < ARRAY_SIZE(tests) && !err; i++) {
		if (*only && strcmp(only, tests[i].name))
			continue;
		err = tests[i].run(&b);
		pr_info("%s: %s\n", tests[i].name, err ? "failed" : "passed");
	}
	if (!err)
		bench_cleanup(&b);
	return err;
}

static int add_device(struct ib_device *dev)
{
	if (is_rdma_hca(dev))
		tested = test_device(dev);
	return -EOPNOTSUPP;	/* not to be told when it goes */
}

static struct ib_client client = {
	.name = "rdma_hca_test",
	.add = add_device,
};

static int __init rdma_hca_test_init(void)
{
	return run_tests(&client, &tested);
}
module_init(rdma_hca_test_init);

static void __exit rdma_hca_test_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(rdma_hca_test_exit);
