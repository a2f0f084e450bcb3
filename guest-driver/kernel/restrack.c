// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What `rdma resource show` (netlink) tells of an object: with -dd what the
 * driver knows of it and what stands in the card's context, with -r that
 * context as it is. The core knows the rest, and counts objects.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "qp.h"
#include "restrack.h"
#include "srq.h"

/* --- the card's contexts ------------------------------------------------ */

/* The answer to a query of entry @index, in @box: rhca_mailbox_free(). */
static int rhca_query(struct rhca_dev *dev, u16 op, u32 index,
		      struct rhca_mailbox *box)
{
	int err;

	err = rhca_mailbox_alloc(dev, box);
	if (err)
		return err;
	err = rhca_cmd_out(dev, op, index, box);
	if (err)
		rhca_mailbox_free(dev, box);
	return err;
}

/* Of it, @size bytes. */
static int rhca_put_context(struct rhca_dev *dev, struct sk_buff *msg, u16 op,
			    u32 index, size_t size)
{
	struct rhca_mailbox box;
	int err;

	err = rhca_query(dev, op, index, &box);
	if (err)
		return err;
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
				       RDMA_HCA_CMD_QUERY_QP, qp->qpn,
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

/* --- what the driver knows, and what stands in contexts ------------------ */

struct rhca_res_value {
	const char *name;
	u32 value;
};

/* A field of a context: where its word is, and the bits in it. */
struct rhca_res_field {
	const char *name;
	u16 offset;
	u32 mask;
};

#define RHCA_QPC_FIELD(name, word, mask) \
	{ name, offsetof(struct rdma_hca_qpc, word), mask }
#define RHCA_CQC_FIELD(name, word, mask) \
	{ name, offsetof(struct rdma_hca_cqc, word), mask }
#define RHCA_MPT_FIELD(name, word, mask) \
	{ name, offsetof(struct rdma_hca_mpt, word), mask }
#define RHCA_SRQC_FIELD(name, word, mask) \
	{ name, offsetof(struct rdma_hca_srqc, word), mask }

static const struct rhca_res_field rhca_qp_fields[] = {
	RHCA_QPC_FIELD("state", flags, RDMA_HCA_QPC_STATE),
	RHCA_QPC_FIELD("next_psn", next_send_psn, RDMA_HCA_QPC_PSN),
	RHCA_QPC_FIELD("unacked_psn", last_acked_psn, RDMA_HCA_QPC_PSN),
	RHCA_QPC_FIELD("expected_psn", rnr_nextrecvpsn, RDMA_HCA_QPC_PSN),
	RHCA_QPC_FIELD("messages_received", rmsn, U32_MAX),
	RHCA_QPC_FIELD("sq_taken", wqe_counter, RDMA_HCA_QPC_SQ_COUNTER),
	RHCA_QPC_FIELD("rq_taken", wqe_counter, RDMA_HCA_QPC_RQ_COUNTER),
	RHCA_QPC_FIELD("counter_set", counter_set, U32_MAX),
};

static const struct rhca_res_field rhca_cq_fields[] = {
	RHCA_CQC_FIELD("status", flags, RDMA_HCA_CQC_STATUS),
	RHCA_CQC_FIELD("arm_state", flags, RDMA_HCA_CQC_STATE),
	RHCA_CQC_FIELD("eqn", comp_eqn, U32_MAX),
	RHCA_CQC_FIELD("entries_written", producer_index, U32_MAX),
	RHCA_CQC_FIELD("moderation_count", moderation,
		       RDMA_HCA_MODERATION_COUNT),
	RHCA_CQC_FIELD("moderation_period", moderation,
		       RDMA_HCA_MODERATION_PERIOD),
};

static const struct rhca_res_field rhca_mr_fields[] = {
	RHCA_MPT_FIELD("flags", flags, U32_MAX),
	RHCA_MPT_FIELD("windows", window_count, U32_MAX),
};

#ifdef RHCA_HAS_RES_SRQ
static const struct rhca_res_field rhca_srq_fields[] = {
	RHCA_SRQC_FIELD("status", flags, RDMA_HCA_SRQC_STATUS),
	RHCA_SRQC_FIELD("limit", limit_wqes, RDMA_HCA_SRQC_LIMIT),
	RHCA_SRQC_FIELD("wqes", limit_wqes, RDMA_HCA_SRQC_WQES),
	RHCA_SRQC_FIELD("taken", taken, U32_MAX),
};
#endif

/* Values that are known, then @nfields of @context; NULL: there is none. */
static int rhca_put_values(struct sk_buff *msg,
			   const struct rhca_res_value *values, u32 count,
			   const void *context,
			   const struct rhca_res_field *fields, u32 nfields)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int err = 0;
	u32 i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; !err && i < count; i++)
		err = rdma_nl_put_driver_u32(msg, values[i].name,
					     values[i].value);
	for (i = 0; !err && context && i < nfields; i++) {
		u32 word = be32_to_cpup(context + fields[i].offset);

		err = rdma_nl_put_driver_u32(
			msg, fields[i].name,
			(word & fields[i].mask) >> __ffs(fields[i].mask));
	}
	if (err) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

/* The same, the context being entry @index that @op queries. */
static int rhca_put_entry(struct rhca_dev *dev, struct sk_buff *msg,
			  const struct rhca_res_value *values, u32 count,
			  u16 op, u32 index,
			  const struct rhca_res_field *fields, u32 nfields)
{
	struct rhca_mailbox box;
	int err;

	/* Of a card that does not answer there is what the driver knows. */
	if (rhca_query(dev, op, index, &box))
		return rhca_put_values(msg, values, count, NULL, NULL, 0);
	err = rhca_put_values(msg, values, count, box.buf, fields, nfields);
	rhca_mailbox_free(dev, &box);
	return err;
}

/* Those of a process are its own affair beyond their size. */
int rhca_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct rhca_qp *qp = to_rhca_qp(ibqp);
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
	int err;

	mutex_lock(&qp->lock);
	if (qp->state == IB_QPS_RESET)
		err = rhca_put_values(msg, values, count, NULL, NULL, 0);
	else
		err = rhca_put_entry(to_rhca(ibqp->device), msg, values, count,
				     RDMA_HCA_CMD_QUERY_QP, qp->qpn,
				     rhca_qp_fields,
				     ARRAY_SIZE(rhca_qp_fields));
	mutex_unlock(&qp->lock);
	return err;
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

	return rhca_put_entry(to_rhca(ibcq->device), msg, values, count,
			      RDMA_HCA_CMD_QUERY_CQ, cq->cqn, rhca_cq_fields,
			      ARRAY_SIZE(rhca_cq_fields));
}

int rhca_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct rhca_region *region = &to_rhca_mr(ibmr)->region;
	const struct rhca_mtt *mtt = &region->mtt;
	struct rhca_dev *dev = to_rhca(ibmr->device);
	const struct rhca_res_value values[] = {
		{ "key", ibmr->lkey },
		{ "translations", mtt->count },
		{ "first_translation", mtt->first },
		{ "page_shift", mtt->page_shift },
	};
	/* All memory has no translations. */
	u32 count = mtt->count ? ARRAY_SIZE(values) : 2;

	if (!region->live)
		return rhca_put_values(msg, values, count, NULL, NULL, 0);
	return rhca_put_entry(dev, msg, values, count, RDMA_HCA_CMD_QUERY_MPT,
			      rhca_key_index(dev, region->key), rhca_mr_fields,
			      ARRAY_SIZE(rhca_mr_fields));
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

	return rhca_put_entry(to_rhca(ibsrq->device), msg, values, count,
			      RDMA_HCA_CMD_QUERY_SRQ, srq->srqn,
			      rhca_srq_fields, ARRAY_SIZE(rhca_srq_fields));
}
#endif
