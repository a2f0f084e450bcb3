// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: MPT entries that a process's work requests bind to regions.
 * The card does all the rest.
 */
#include "mr.h"
#include "udata.h"

int rhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	u32 flags = ibmw->type == IB_MW_TYPE_2 ? RDMA_HCA_MPT_WINDOW2 : 0;
	struct rhca_mw *mw = to_rhca_mw(ibmw);
	int err;

	err = rhca_take_no_request(udata);
	if (err)
		return err;
	err = rhca_region_create(to_rhca(ibmw->device), &mw->region,
				 to_rhca_pd(ibmw->pd)->pdn, flags, 0, 0);
	if (err)
		return err;
	ibmw->rkey = mw->region.key;
	return 0;
}

/* Bound or not: nobody gets in by it any more. */
int rhca_dealloc_mw(struct ib_mw *ibmw)
{
	rhca_region_destroy(to_rhca(ibmw->device), &to_rhca_mw(ibmw)->region);
	return 0;
}
