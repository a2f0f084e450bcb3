// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Flow rules: what frames a raw packet QP gets. They are the kernel's affair. */
#include <errno.h>
#include <stdlib.h>

#include "rhca.h"

struct ibv_flow *rhca_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;
	int err;

	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	err = ibv_cmd_create_flow(qp, flow, attr, NULL, 0);
	if (err) {
		free(flow);
		errno = err;
		return NULL;
	}
	return flow;
}

int rhca_destroy_flow(struct ibv_flow *flow)
{
	int err;

	err = ibv_cmd_destroy_flow(flow);
	if (err)
		return err;
	free(flow);
	return 0;
}
