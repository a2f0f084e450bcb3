/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How the modules of tests begin and end: loading one registers a client of
 * the core, whose add() runs the tests with a device of ours, and succeeds if
 * they do.
 */
#ifndef RDMA_HCA_MODULE_H
#define RDMA_HCA_MODULE_H

#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#define PORT		1
#define QKEY		0x1234567
#define WRS		8

/* Leave the function with an error, and say where. */
#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			pr_err("line %d: not so: %s\n",			\
			       __LINE__, #condition);			\
			return -EIO;					\
		}							\
	} while (0)

static inline bool is_rdma_hca(struct ib_device *dev)
{
	return strstarts(dev_name(&dev->dev), "rdma_hca");
}

static inline int to_init(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = PORT,
		.qkey = QKEY,
		.qp_access_flags = IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};
	int mask = IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX;

	mask |= qp->qp_type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;
	return ib_modify_qp(qp, &attr, mask);
}

/* What add() has found out is in @result; -ENODEV if there was no device. */
static inline int run_tests(struct ib_client *client, const int *result)
{
	int err = ib_register_client(client);

	if (err)
		return err;
	if (*result)
		ib_unregister_client(client);
	return *result;
}

#endif /* RDMA_HCA_MODULE_H */
