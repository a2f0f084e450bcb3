// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What `rdma resource show` (netlink) tells of an object: with -dd what the
 * driver knows of it, with -r its context as the card has it. The core knows
 * the rest, and counts objects.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "qp.h"
#include "restrack.h"
#include "srq.h"

/* --- the card's contexts ------------------------------------------------ */

/* The answer to a query of entry @index, @size bytes. */
static int rhca_put_context(struct rhca_dev *dev, struct sk_buff *msg, u16 op,
			    u32 index, size_t size)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;
	err = rhca_cmd_out(dev, op, index, &box);
	if (!err)
		err = nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, size, box.buf);
	rhca_mailbox_free(dev, &box);
	return err;
}

int rhca_res_qp_context(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct rhca_qp *qp = to_rhca_qp(ibqp);
	int err = -EAGAIN;	/* none: the core leaves this QP out */

	mutex_lock(&qp->lock);
	if (qp->state != IB_QPS_RESET)
		err = rhca_put_context(to_rhca(ibqp->device), msg,
				       RDMA_HCA_CMD_QUERY_QP, ibqp->qp_num,
				       RDMA_HCA_QPC_SIZE);
	mutex_unlock(&qp->lock);
	return err;
}

int rhca_res_cq_context(struct sk_buff *msg, struct ib_cq *ibcq)
{
	return rhca_put_context(to_rhca(ibcq->device), msg,
				RDMA_HCA_CMD_QUERY_CQ, to_rhca_cq(ibcq)->cqn,
				RDMA_HCA_CQC_SIZE);
}

int rhca_res_mr_context(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct rhca_region *region = &to_rhca_mr(ibmr)->region;
	struct rhca_dev *dev = to_rhca(ibmr->device);

	/* The card has refused to have it back in a reregistration. */
	if (!region->live)
		return -EAGAIN;
	return rhca_put_context(dev, msg, RDMA_HCA_CMD_QUERY_MPT,
				rhca_key_index(dev, region->key),
				RDMA_HCA_MPT_SIZE);
}

#ifdef RHCA_HAS_RES_SRQ
int rhca_res_srq_context(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	return rhca_put_context(to_rhca(ibsrq->device), msg,
				RDMA_HCA_CMD_QUERY_SRQ,
				to_rhca_srq(ibsrq)->srqn, RDMA_HCA_SRQC_SIZE);
}
#endif

/* --- what the driver knows ---------------------------------------------- */

struct rhca_res_value {
	const char *name;
	u32 value;
};

static int rhca_put_values(struct sk_buff *msg,
			   const struct rhca_res_value *values, u32 count)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	u32 i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		if (rdma_nl_put_driver_u32(msg, values[i].name,
					   values[i].value)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/* Those of a process are its own affair beyond their size. */
int rhca_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct rhca_qp *qp = to_rhca_qp(ibqp);
	const struct rhca_res_value values[] = {
		{ "uar", qp->uar },
		{ "sq_entries", qp->sq.entries },
		{ "sq_entry_size", qp->sq.len ? 1u << qp->sq.shift : 0 },
		{ "rq_entries", qp->rq.entries },
		{ "rq_entry_size", qp->rq.len ? 1u << qp->rq.shift : 0 },
		{ "sq_head", READ_ONCE(qp->sq.head) },
		{ "sq_tail", READ_ONCE(qp->sq.tail) },
		{ "rq_head", READ_ONCE(qp->rq.head) },
		{ "rq_tail", READ_ONCE(qp->rq.tail) },
	};
	u32 count = ARRAY_SIZE(values) - (ibqp->uobject ? 4 : 0);

	return rhca_put_values(msg, values, count);
}

int rhca_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct rhca_cq *cq = to_rhca_cq(ibcq);
	const struct rhca_res_value values[] = {
		{ "cqn", cq->cqn },
		{ "entries", cq->entries },
		{ "consumer_index", READ_ONCE(cq->ci) },
	};
	u32 count = ARRAY_SIZE(values) - (ibcq->uobject ? 1 : 0);

	return rhca_put_values(msg, values, count);
}

int rhca_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct rhca_mtt *mtt = &to_rhca_mr(ibmr)->region.mtt;
	const struct rhca_res_value values[] = {
		{ "key", ibmr->lkey },
		{ "translations", mtt->count },
		{ "first_translation", mtt->first },
		{ "page_shift", mtt->page_shift },
	};

	/* All memory has no translations. */
	return rhca_put_values(msg, values,
			       mtt->count ? ARRAY_SIZE(values) : 2);
}

#ifdef RHCA_HAS_RES_SRQ
int rhca_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct rhca_srq *srq = to_rhca_srq(ibsrq);
	const struct rhca_res_value values[] = {
		{ "srqn", srq->srqn },
		{ "entries", srq->wq.entries },
		{ "entry_size", 1u << srq->wq.shift },
		{ "head", READ_ONCE(srq->wq.head) },
		{ "outstanding", srq->tags.num -
				 READ_ONCE(srq->tags.num_free) },
	};
	u32 count = ARRAY_SIZE(values) - (ibsrq->uobject ? 2 : 0);

	return rhca_put_values(msg, values, count);
}
#endif
