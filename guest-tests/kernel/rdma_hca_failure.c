// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What becomes of users in the kernel when a card fails, or does something
 * behind its driver's back. Loading the module plays one scene with the first
 * rdma_hca device, and succeeds if it went as it should.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/iopoll.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>

#include "rdma_hca_cmd.h"
#include "rdma_hca_module.h"
#include "rdma_hca_regs.h"

#include "connect.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("Tests of users in the kernel of an rdma_hca card that fails");
MODULE_LICENSE("Dual BSD/GPL");

#define COMMAND_US	(10 * USEC_PER_SEC)
#define MULTICAST_LID	0xc001

static char *scene = "";
module_param(scene, charp, 0444);
MODULE_PARM_DESC(scene, "which one to play");

static struct pci_dev *function_of(struct ib_device *dev)
{
	return to_pci_dev(dev->dev.parent);
}

/* --- behind the driver's back ------------------------------------------- */

static void __iomem *map_register(struct ib_device *dev, u32 offset, u32 size)
{
	return ioremap(pci_resource_start(function_of(dev), RDMA_HCA_BAR0) +
			       offset, size);
}

/* Returns the command's status, or an errno. */
static int command(struct ib_device *dev, u16 op)
{
	void __iomem *hcr = map_register(dev, RDMA_HCA_HCR, RDMA_HCA_HCR_SIZE);
	u32 ctrl;
	int err;

	CHECK(hcr);
	writel(0, hcr + RDMA_HCA_HCR_IN_MODIFIER);
	writel(op | RDMA_HCA_HCR_GO, hcr + RDMA_HCA_HCR_CTRL);
	err = readl_poll_timeout(hcr + RDMA_HCA_HCR_CTRL, ctrl,
				 !(ctrl & RDMA_HCA_HCR_GO), 10, COMMAND_US);
	iounmap(hcr);
	return err ?: FIELD_GET(RDMA_HCA_HCR_STATUS, ctrl);
}

/* From now on the card refuses whatever is about its tables. */
static int close_card(struct ib_device *dev)
{
	CHECK(command(dev, RDMA_HCA_CMD_CLOSE_HCA) == RDMA_HCA_STAT_OK);
	return 0;
}

static int reset_card(struct ib_device *dev)
{
	void __iomem *reset = map_register(dev, RDMA_HCA_RESET, 4);

	CHECK(reset);
	writel(1, reset);
	iounmap(reset);
	return 0;
}

/* From the card; whether that goes well is no matter when it has been reset. */
static int read_counters(struct ib_device *dev)
{
	struct rdma_hw_stats *stats = dev->ops.alloc_hw_device_stats(dev);
	int count;

	CHECK(stats);
	count = dev->ops.get_hw_stats(dev, stats, 0, 0);
	rdma_free_hw_stats_struct(stats);
	return count;
}

/*
 * A card that has been reset has forgotten where it is to write an answer, too:
 * a command that the driver gives it before it knows must not have it write to
 * address 0, where there is a page that is nobody's.
 */
static int ask_reset_card(struct ib_device *dev)
{
	void __iomem *ctrl = map_register(dev, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL,
					  sizeof(u32));
	void *before = kmemdup(phys_to_virt(0), PAGE_SIZE, GFP_KERNEL);
	u32 word;
	int err;

	CHECK(ctrl && before);
	/* The mailbox is the same each time. */
	CHECK(read_counters(dev) > 0 && read_counters(dev) > 0);
	reset_card(dev);
	err = readl_poll_timeout(ctrl, word, !word, 10, COMMAND_US);
	read_counters(dev);
	err = err ?: memcmp(before, phys_to_virt(0), PAGE_SIZE);
	kfree(before);
	iounmap(ctrl);
	CHECK(!err);
	return 0;
}

/* The card cannot be reached, and reaches nothing. */
static void lose_card(struct ib_device *dev)
{
	pci_write_config_word(function_of(dev), PCI_COMMAND, 0);
}

/* --- teardown that the card refuses ------------------------------------- */

static int refused_mr(struct ib_device *dev)
{
	struct ib_pd *pd = ib_alloc_pd(dev, 0);
	struct ib_mr *mr;

	CHECK(!IS_ERR(pd));
	mr = dev->ops.get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE);
	CHECK(!IS_ERR(mr));
	mr->device = dev;	/* as the core would */
	CHECK(!close_card(dev));
	CHECK(!dev->ops.dereg_mr(mr, NULL));
	ib_dealloc_pd(pd);
	return 0;
}

static int refused_cq(struct ib_device *dev)
{
	struct ib_cq *cq = ib_alloc_cq(dev, NULL, WRS, 0, IB_POLL_WORKQUEUE);

	CHECK(!IS_ERR(cq));
	CHECK(!close_card(dev));
	ib_free_cq(cq);
	return 0;
}

/* --- consumers -------------------------------------------------------------- */

struct consumer {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_cqe cqe;
	atomic_t flushed;
};

static void flushed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct consumer *u = container_of(wc->wr_cqe, struct consumer, cqe);

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&u->flushed);
}

static int consumer_init(struct consumer *u, struct ib_device *dev,
		     enum ib_qp_type type, enum ib_poll_context context)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = WRS,
			.max_recv_wr = WRS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = type,
	};

	u->cqe.done = flushed;
	atomic_set(&u->flushed, 0);
	u->pd = ib_alloc_pd(dev, 0);
	CHECK(!IS_ERR(u->pd));
	u->cq = ib_alloc_cq(dev, NULL, 2 * WRS, 0, context);
	CHECK(!IS_ERR(u->cq));
	attr.send_cq = u->cq;
	attr.recv_cq = u->cq;
	u->qp = ib_create_qp(u->pd, &attr);
	CHECK(!IS_ERR(u->qp));
	return to_init(u->qp);
}

static void consumer_cleanup(struct consumer *u)
{
	ib_destroy_qp(u->qp);
	ib_free_cq(u->cq);
	ib_dealloc_pd(u->pd);
}

static int post_recvs(struct consumer *u, int count)
{
	struct ib_recv_wr wr = { .wr_cqe = &u->cqe };

	while (count--)
		CHECK(!ib_post_recv(u->qp, &wr, NULL));
	return 0;
}

static int refused_qp(struct ib_device *dev)
{
	struct consumer u;

	CHECK(!consumer_init(&u, dev, IB_QPT_RC, IB_POLL_WORKQUEUE));
	CHECK(!close_card(dev));
	consumer_cleanup(&u);
	return 0;
}

/* The QP leaves, although the card goes on to have it in the group. */
static int refused_detach(struct ib_device *dev)
{
	union ib_gid group = { .raw = { 0xff, 0x12, 0x40, 0x1b, [15] = 1 } };
	struct consumer u;

	CHECK(!consumer_init(&u, dev, IB_QPT_UD, IB_POLL_WORKQUEUE));
	CHECK(!ib_attach_mcast(u.qp, &group, MULTICAST_LID));
	CHECK(!close_card(dev));
	CHECK(!ib_detach_mcast(u.qp, &group, MULTICAST_LID));
	consumer_cleanup(&u);
	return 0;
}

/* --- a card that is lost ------------------------------------------------ */

static atomic_t events;

static void count_event(struct ib_cq *cq, void *context)
{
	atomic_inc(&events);
}

/* The card fails in the course of the free: nobody may use the CQ then. */
static int freed_cq(struct ib_device *dev)
{
	struct ib_cq *cq = ib_alloc_cq(dev, NULL, WRS, 0, IB_POLL_WORKQUEUE);

	CHECK(!IS_ERR(cq));
	cq->comp_handler = count_event;
	lose_card(dev);
	ib_free_cq(cq);
	CHECK(!atomic_read(&events));
	return 0;
}

/* One drain before the failure is known, and one after; all that is posted ends. */
static int drain(struct ib_device *dev)
{
	static const enum ib_poll_context contexts[] = {
		IB_POLL_DIRECT, IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE,
		IB_POLL_UNBOUND_WORKQUEUE,
	};
	static struct consumer consumers[2 * ARRAY_SIZE(contexts)];
	int i;

	for (i = 0; i < ARRAY_SIZE(consumers); i++) {
		CHECK(!consumer_init(&consumers[i], dev, i % 2 ? IB_QPT_UD : IB_QPT_RC,
				 contexts[i / 2]));
		CHECK(!post_recvs(&consumers[i], WRS - 1));
	}
	lose_card(dev);
	for (i = 0; i < ARRAY_SIZE(consumers); i++) {
		ib_drain_qp(consumers[i].qp);
		CHECK(atomic_read(&consumers[i].flushed) == WRS - 1);
		ib_drain_qp(consumers[i].qp);
		consumer_cleanup(&consumers[i]);
	}
	return 0;
}

/* The host's side has faults: whatever they are, all that is posted ends. */
static int drain_faulty(struct ib_device *dev)
{
	struct consumer u;

	CHECK(!consumer_init(&u, dev, IB_QPT_RC, IB_POLL_WORKQUEUE));
	CHECK(!connect_rtr(u.qp, u.qp->qp_num) && !connect_rts(u.qp));
	CHECK(!post_recvs(&u, WRS - 1));
	ib_drain_qp(u.qp);
	CHECK(atomic_read(&u.flushed) == WRS - 1);
	consumer_cleanup(&u);
	return 0;
}

/*
 * Who polls in softirqs sees the end when somebody finds the card failed: at
 * once, or when the processor that is behind with softirqs has caught up.
 */
static int flushed_first(struct ib_device *dev)
{
	static struct consumer u;
	struct ib_port_attr port;
	int flushed;

	CHECK(!consumer_init(&u, dev, IB_QPT_RC, IB_POLL_SOFTIRQ));
	CHECK(!post_recvs(&u, WRS - 1));
	lose_card(dev);
	CHECK(ib_query_port(dev, 1, &port));
	CHECK(!read_poll_timeout(atomic_read, flushed, flushed == WRS - 1, 100,
				 COMMAND_US, false, &u.flushed));
	consumer_cleanup(&u);
	return 0;
}

/*
 * The card fails when a QP is in RESET already, but its queues are not empty yet.
 * Who polls then is told nothing of the life that has ended. It takes a processor
 * that resets, and another one.
 */
static struct consumer resetting;
static bool in_reset, polled, held;

static int hold_reset(struct kprobe *probe, struct pt_regs *regs)
{
	int ms;

	WRITE_ONCE(in_reset, true);
	for (ms = 0; ms < COMMAND_US / USEC_PER_MSEC && !held; ms++) {
		mdelay(1);
		held = READ_ONCE(polled);
	}
	return 0;
}

static struct kprobe before_empty = {
	.symbol_name = "rdma_hca:rhca_queues_reset",
	.pre_handler = hold_reset,
};

static void reset_qp(struct work_struct *work)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	if (ib_modify_qp(resetting.qp, &attr, IB_QP_STATE))
		pr_err("no reset\n");
}

static DECLARE_WORK(reset_work, reset_qp);

static int fails_in_reset(struct ib_device *dev)
{
	int told, cpu = raw_smp_processor_id();
	struct ib_port_attr port;
	bool begun;

	CHECK(num_online_cpus() > 1);
	CHECK(!consumer_init(&resetting, dev, IB_QPT_RC, IB_POLL_DIRECT));
	CHECK(!post_recvs(&resetting, WRS - 1));
	CHECK(!register_kprobe(&before_empty));
	set_cpus_allowed_ptr(current, cpumask_of(cpu));
	queue_work_on(cpumask_any_but(cpu_online_mask, cpu), system_wq,
		      &reset_work);
	read_poll_timeout(READ_ONCE, begun, begun, 1000, COMMAND_US, false,
			  in_reset);
	lose_card(dev);
	ib_query_port(dev, PORT, &port);
	told = ib_process_cq_direct(resetting.cq, -1);
	WRITE_ONCE(polled, true);
	flush_work(&reset_work);
	unregister_kprobe(&before_empty);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	CHECK(held && !told);
	CHECK(!ib_process_cq_direct(resetting.cq, -1));
	consumer_cleanup(&resetting);
	return 0;
}

/* Memory of one page, mapped to be registered. */
static struct ib_mr *mapped_mr(struct ib_pd *pd, struct scatterlist *sg)
{
	struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
	void *page = (void *)get_zeroed_page(GFP_KERNEL);

	if (IS_ERR(mr) || !page)
		return NULL;
	sg_init_one(sg, page, PAGE_SIZE);
	if (ib_dma_map_sg(pd->device, sg, 1, DMA_BIDIRECTIONAL) != 1 ||
	    ib_map_mr_sg(mr, sg, 1, NULL, PAGE_SIZE) != 1)
		return NULL;
	return mr;
}

static int mapped_mr_free(struct ib_mr *mr, struct scatterlist *sg)
{
	struct ib_device *dev = mr->device;
	int err = ib_dereg_mr(mr);

	ib_dma_unmap_sg(dev, sg, 1, DMA_BIDIRECTIONAL);
	free_page((unsigned long)sg_virt(sg));
	return err;
}

/* Returns how many the driver took; it may know of the failure by then. */
static int post_registrations(struct consumer *u, struct ib_mr *mr, int count)
{
	struct ib_reg_wr reg = {
		.wr = {
			.wr_cqe = &u->cqe,
			.opcode = IB_WR_REG_MR,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	struct ib_send_wr inv = {
		.wr_cqe = &u->cqe,
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = mr->rkey,
	};
	int n;

	for (n = 0; n < count; n++)
		if (ib_post_send(u->qp, n % 2 ? &inv : &reg.wr, NULL))
			break;
	return n;
}

/*
 * A user that polls some time after it was told, as a softirq does on a busy
 * machine: its requests have ended when the device is taken from it.
 */
static struct consumer late;
static struct delayed_work late_poll;
static int seen = -1;
module_param(seen, int, 0444);
MODULE_PARM_DESC(seen, "what the user of scene \"late\" had seen to end when the device went");

static void poll_late(struct work_struct *work)
{
	ib_process_cq_direct(late.cq, -1);
}

static void wake_late(struct ib_cq *cq, void *context)
{
	schedule_delayed_work(&late_poll, HZ / 2);
}

static int late_start(struct ib_device *dev)
{
	struct ib_port_attr port;

	INIT_DELAYED_WORK(&late_poll, poll_late);
	CHECK(!consumer_init(&late, dev, IB_QPT_RC, IB_POLL_WORKQUEUE));
	late.cq->comp_handler = wake_late;
	CHECK(!post_recvs(&late, WRS - 1));
	lose_card(dev);
	CHECK(ib_query_port(dev, 1, &port));
	return 0;
}

static void late_end(struct ib_device *dev)
{
	seen = atomic_read(&late.flushed);
	cancel_delayed_work_sync(&late_poll);
	consumer_cleanup(&late);
}

/* --- a user that leaves later -------------------------------------------- */

/* When the device is taken from it a work item has still to give all back. */
static struct consumer leaving;
static struct scatterlist leaving_sg;
static struct ib_mr *leaving_mr;

static void leave(struct work_struct *work)
{
	mapped_mr_free(leaving_mr, &leaving_sg);
	consumer_cleanup(&leaving);
}

static DECLARE_DELAYED_WORK(leaving_work, leave);

static int leaving_start(struct ib_device *dev)
{
	CHECK(!consumer_init(&leaving, dev, IB_QPT_RC, IB_POLL_WORKQUEUE));
	CHECK(!post_recvs(&leaving, WRS - 1));
	leaving_mr = mapped_mr(leaving.pd, &leaving_sg);
	CHECK(leaving_mr);
	return 0;
}

static void leaving_end(struct ib_device *dev)
{
	schedule_delayed_work(&leaving_work, HZ);
}

/* --- what is registered ---------------------------------------------------- */

/* What is registered, and what is about to be, goes with the card. */
static int drain_registrations(struct ib_device *dev)
{
	struct scatterlist sg;
	struct consumer u;
	struct ib_mr *mr;
	int posted;

	CHECK(!consumer_init(&u, dev, IB_QPT_RC, IB_POLL_WORKQUEUE));
	CHECK(!connect_rtr(u.qp, u.qp->qp_num) && !connect_rts(u.qp));
	mr = mapped_mr(u.pd, &sg);
	CHECK(mr);
	CHECK(post_registrations(&u, mr, 1) == 1);
	lose_card(dev);
	posted = post_registrations(&u, mr, WRS - 2);
	ib_drain_qp(u.qp);
	CHECK(atomic_read(&u.flushed) >= posted);
	CHECK(!mapped_mr_free(mr, &sg));
	consumer_cleanup(&u);
	return 0;
}

static atomic_t last_wqes;

static void count_last_wqe(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(&last_wqes);
}

/*
 * Who waits for the last entry that a QP takes of its SRQ is told of it, once;
 * nothing can be posted any more, and all can be taken down.
 */
static int lost_srq(struct ib_device *dev)
{
	struct ib_srq_init_attr srq_attr = {
		.attr = { .max_wr = WRS, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_qp_init_attr attr = {
		.event_handler = count_last_wqe,
		.cap = { .max_send_wr = WRS, .max_send_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	struct ib_recv_wr wr = {};
	struct consumer u;
	int i;

	u.pd = ib_alloc_pd(dev, 0);
	CHECK(!IS_ERR(u.pd));
	u.cq = ib_alloc_cq(dev, NULL, 2 * WRS, 0, IB_POLL_WORKQUEUE);
	CHECK(!IS_ERR(u.cq));
	attr.srq = ib_create_srq(u.pd, &srq_attr);
	CHECK(!IS_ERR(attr.srq));
	attr.send_cq = u.cq;
	attr.recv_cq = u.cq;
	u.qp = ib_create_qp(u.pd, &attr);
	CHECK(!IS_ERR(u.qp));
	CHECK(!to_init(u.qp));
	for (i = 0; i < WRS / 2; i++)
		CHECK(!ib_post_srq_recv(attr.srq, &wr, NULL));
	lose_card(dev);
	ib_drain_sq(u.qp);
	CHECK(atomic_read(&last_wqes) == 1);
	CHECK(ib_post_srq_recv(attr.srq, &wr, NULL) == -EIO);
	ib_drain_sq(u.qp);
	CHECK(atomic_read(&last_wqes) == 1);
	ib_destroy_qp(u.qp);
	ib_destroy_srq(attr.srq);
	ib_free_cq(u.cq);
	ib_dealloc_pd(u.pd);
	return 0;
}

/* --- a machine that sleeps ---------------------------------------------- */

static struct pci_dev *sleeper;

/* When all is asleep the card loses what it had, as without power. */
static int forget_all(struct device *unused)
{
	void __iomem *reset = ioremap(pci_resource_start(sleeper,
							 RDMA_HCA_BAR0) +
				      RDMA_HCA_RESET, 4);

	CHECK(reset);
	writel(1, reset);
	iounmap(reset);
	return 0;
}

static const struct dev_pm_ops sleep_ops = { .suspend_noirq = forget_all };

static int sleep_probe(struct platform_device *pdev)
{
	return 0;
}

static struct platform_driver sleep_driver = {
	.driver = { .name = "rdma_hca_sleep", .pm = &sleep_ops },
	.probe = sleep_probe,
};

static struct platform_device *sleep_device;

static int sleep_start(struct ib_device *dev)
{
	sleeper = pci_dev_get(function_of(dev));
	CHECK(!platform_driver_register(&sleep_driver));
	sleep_device = platform_device_register_simple("rdma_hca_sleep",
						       PLATFORM_DEVID_NONE,
						       NULL, 0);
	CHECK(!IS_ERR(sleep_device));
	return 0;
}

static void sleep_stop(void)
{
	if (!sleeper)
		return;
	platform_device_unregister(sleep_device);
	platform_driver_unregister(&sleep_driver);
	pci_dev_put(sleeper);
}

/* --- a kernel that ends without a word to the card ----------------------- */

static int left_running(struct ib_device *dev)
{
	function_of(dev)->driver->shutdown = NULL;
	return 0;
}

/* --- a device that can be removed, but not at once ------------------------ */

static int hold_start(struct ib_device *dev)
{
	return 0;
}

static void hold_end(struct ib_device *dev)
{
	pr_notice("holds %s\n", dev_name(&dev->dev));
	while (1)
		schedule_timeout_uninterruptible(HZ);
}

/* --- module ------------------------------------------------------------- */

static const struct scene {
	const char *name;
	int (*play)(struct ib_device *dev);
	void (*end)(struct ib_device *dev);	/* the device goes */
} scenes[] = {
	{ "refused-mr", refused_mr },
	{ "refused-cq", refused_cq },
	{ "refused-qp", refused_qp },
	{ "refused-detach", refused_detach },
	{ "close", close_card },
	{ "reset", reset_card },
	{ "ask-reset", ask_reset_card },
	{ "freed-cq", freed_cq },
	{ "drain", drain },
	{ "drain-faulty", drain_faulty },
	{ "flushed-first", flushed_first },
	{ "fails-in-reset", fails_in_reset },
	{ "late", late_start, late_end },
	{ "leaves-later", leaving_start, leaving_end },
	{ "drain-registrations", drain_registrations },
	{ "lost-srq", lost_srq },
	{ "sleep", sleep_start },
	{ "left-running", left_running },
	{ "hold", hold_start, hold_end },
};

static const struct scene *playing;
static int played = -ENODEV;

static int add_device(struct ib_device *dev)
{
	int i;

	if (!is_rdma_hca(dev) || playing)
		return -EOPNOTSUPP;
	for (i = 0; i < ARRAY_SIZE(scenes); i++) {
		if (strcmp(scene, scenes[i].name))
			continue;
		playing = &scenes[i];
		played = playing->play(dev);
	}
	return !played && playing->end ? 0 : -EOPNOTSUPP;
}

static void remove_device(struct ib_device *dev, void *client_data)
{
	playing->end(dev);
}

static struct ib_client client = {
	.name = "rdma_hca_failure",
	.add = add_device,
	.remove = remove_device,
};

static int __init rdma_hca_failure_init(void)
{
	return run_tests(&client, &played);
}
module_init(rdma_hca_failure_init);

static void __exit rdma_hca_failure_exit(void)
{
	ib_unregister_client(&client);
	flush_delayed_work(&leaving_work);
	sleep_stop();
}
module_exit(rdma_hca_failure_exit);
