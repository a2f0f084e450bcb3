// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles. The card has no object for them: the address vector goes
 * into each UD work request (interface document 3.4.4), which for a process
 * its provider writes. What the core has found out about a RoCE address, the
 * provider gets in the response.
 */
#include "rdma_hca_user.h"

#include "port.h"
#include "qp.h"
#include "udata.h"

static int rhca_ah_respond(const struct rdma_ah_attr *attr,
			   struct ib_udata *udata)
{
	struct rdma_hca_create_ah_resp resp = {};

	if (!udata || attr->type != RDMA_AH_ATTR_TYPE_ROCE)
		return 0;
	memcpy(resp.dmac, attr->roce.dmac, sizeof(resp.dmac));
	resp.hop_limit = rdma_ah_read_grh(attr)->hop_limit;
	return rhca_respond(udata, &resp, sizeof(resp));
}

int rhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
		   struct ib_udata *udata)
{
	struct rhca_ah *ah = to_rhca_ah(ibah);

	int err;

	if (rdma_ah_get_port_num(attr->ah_attr) != RHCA_PORT)
		return -EINVAL;
	if (!rhca_speaks_by(attr->ah_attr))
		return -EOPNOTSUPP;
	err = rhca_take_no_request(udata);
	if (err)
		return err;
	ah->attr = *attr->ah_attr;
	/* The core keeps its own reference; ours would outlive it. */
	ah->attr.grh.sgid_attr = NULL;
	return rhca_ah_respond(attr->ah_attr, udata);
}

int rhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_rhca_ah(ibah)->attr;
	return 0;
}

int rhca_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
