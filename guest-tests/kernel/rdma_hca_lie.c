// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A card that lies of what it is and has: while the module is loaded, a byte of
 * the answer to one command is another one. Which of them is told by parameters
 * that may be written at any time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#include "rdma_hca_cmd.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("Other answers of an rdma_hca card than its own");
MODULE_LICENSE("Dual BSD/GPL");

/* The parameters of the driver's rhca_cmd(). */
#define ARG_OP		1
#define ARG_OUT_PARAM	5

static uint op;
module_param(op, uint, 0644);
MODULE_PARM_DESC(op, "the command; 0: none");

static uint offset;
module_param(offset, uint, 0644);
MODULE_PARM_DESC(offset, "of the byte in the outbox");

static u8 bits;
module_param(bits, byte, 0644);
MODULE_PARM_DESC(bits, "which of the byte's are others");

static u8 value;
module_param(value, byte, 0644);
MODULE_PARM_DESC(value, "what they are");

static uint told;
module_param(told, uint, 0644);
MODULE_PARM_DESC(told, "how many answers were others");

static int entered(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	u64 *outbox = (u64 *)instance->data;

	if (!op || (u16)regs_get_kernel_argument(regs, ARG_OP) != op)
		return 1;
	*outbox = regs_get_kernel_argument(regs, ARG_OUT_PARAM);
	return 0;
}

/* Nothing is between the card and the guest's memory: its addresses are the guest's. */
static int returns(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	u64 *outbox = (u64 *)instance->data;
	u8 *byte = phys_to_virt(*outbox) + offset;

	if (regs_return_value(regs) || offset >= RDMA_HCA_MAILBOX_SIZE)
		return 0;
	*byte = (*byte & ~bits) | (value & bits);
	told++;
	return 0;
}

static struct kretprobe command = {
	.kp.symbol_name = "rdma_hca:rhca_cmd",
	.entry_handler = entered,
	.handler = returns,
	.data_size = sizeof(u64),
};

static int __init rdma_hca_lie_init(void)
{
	return register_kretprobe(&command);
}
module_init(rdma_hca_lie_init);

static void __exit rdma_hca_lie_exit(void)
{
	unregister_kretprobe(&command);
}
module_exit(rdma_hca_lie_exit);
