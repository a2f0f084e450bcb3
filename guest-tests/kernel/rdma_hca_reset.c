// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A QP goes to RESET, and just before its queues are emptied the card fails and
 * somebody polls. Loading the module does that with the first rdma_hca device,
 * and succeeds if nothing of the life that has ended is told. It takes two
 * processors.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "rdma_hca_module.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("Test of an rdma_hca card that fails while a QP is reset");
MODULE_LICENSE("Dual BSD/GPL");

#define WAIT_MS		5000

static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_qp *qp;
static bool in_reset, polled;
static int reset_err;

/* On the processor that resets, until the other one has polled. */
static int before_empty(struct kprobe *probe, struct pt_regs *regs)
{
	int ms;

	WRITE_ONCE(in_reset, true);
	for (ms = 0; ms < WAIT_MS && !READ_ONCE(polled); ms++)
		mdelay(1);
	return 0;
}

static struct kprobe empty = {
	.symbol_name = "rdma_hca:rhca_queues_reset",
	.pre_handler = before_empty,
};

static void reset(struct work_struct *work)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	reset_err = ib_modify_qp(qp, &attr, IB_QP_STATE);
}

static DECLARE_WORK(reset_work, reset);

static int create(struct ib_device *dev)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = WRS,
			.max_recv_wr = WRS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	pd = ib_alloc_pd(dev, 0);
	CHECK(!IS_ERR(pd));
	cq = ib_alloc_cq(dev, NULL, 2 * WRS, 0, IB_POLL_DIRECT);
	CHECK(!IS_ERR(cq));
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp(pd, &attr);
	CHECK(!IS_ERR(qp));
	return to_init(qp);
}

static void destroy(void)
{
	ib_destroy_qp(qp);
	ib_free_cq(cq);
	ib_dealloc_pd(pd);
}

/* Returns how many completions were there. */
static int poll_failed_card(struct ib_device *dev)
{
	struct ib_port_attr port;
	struct ib_wc wc[WRS];

	pci_write_config_word(to_pci_dev(dev->dev.parent), PCI_COMMAND, 0);
	CHECK(ib_query_port(dev, 1, &port));
	return ib_poll_cq(cq, WRS, wc);
}

static int fail_in_reset(struct ib_device *dev)
{
	struct ib_recv_wr wr = {};
	int ms, count;

	CHECK(!create(dev));
	CHECK(!ib_post_recv(qp, &wr, NULL));
	CHECK(!register_kprobe(&empty));
	/* Not this one: it would wait for itself. */
	queue_work_on(!raw_smp_processor_id(), system_wq, &reset_work);
	for (ms = 0; ms < WAIT_MS && !READ_ONCE(in_reset); ms++)
		msleep(1);
	count = poll_failed_card(dev);
	WRITE_ONCE(polled, true);
	flush_work(&reset_work);
	unregister_kprobe(&empty);
	CHECK(in_reset && !reset_err);
	CHECK(!count);
	CHECK(!poll_failed_card(dev));
	destroy();
	return 0;
}

static int failed = -ENODEV;

static int add_device(struct ib_device *dev)
{
	if (is_rdma_hca(dev) && failed == -ENODEV)
		failed = fail_in_reset(dev);
	return -EOPNOTSUPP;
}

static struct ib_client client = {
	.name = "rdma_hca_reset",
	.add = add_device,
};

static int __init rdma_hca_reset_init(void)
{
	CHECK(num_online_cpus() == 2);
	return run_tests(&client, &failed);
}
module_init(rdma_hca_reset_init);

static void __exit rdma_hca_reset_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(rdma_hca_reset_exit);
