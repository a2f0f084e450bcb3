// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains and XRC domains: numbers that the card compares, nothing
 * else.
 */
#include "rdma_hca_user.h"

#include "mr.h"
#include "srq.h"
#include "udata.h"

int rhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibpd->device);
	struct rdma_hca_alloc_pd_resp resp = {};
	struct rhca_pd *pd = to_rhca_pd(ibpd);
	int err;

	err = rhca_take_no_request(udata);
	if (err)
		return err;
	err = rhca_bitmap_alloc(&dev->pd_map, &pd->pdn, NULL);
	if (err || !udata)
		return err;

	resp.pdn = pd->pdn;
	err = rhca_respond(udata, &resp, sizeof(resp));
	if (err)
		rhca_bitmap_free(&dev->pd_map, pd->pdn, 1);
	return err;
}

int rhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	rhca_bitmap_free(&to_rhca(ibpd->device)->pd_map, to_rhca_pd(ibpd)->pdn,
			 1);
	return 0;
}

int rhca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibxrcd->device);
	struct rhca_xrcd *xrcd = to_rhca_xrcd(ibxrcd);
	int err;

	err = rhca_take_no_request(udata);
	if (err)
		return err;
	err = rhca_bitmap_alloc(&dev->xrcd_map, &xrcd->xrcdn, NULL);
	if (err)
		return err;
	err = rhca_bitmap_alloc(&dev->pd_map, &xrcd->pdn, NULL);
	if (err)
		rhca_bitmap_free(&dev->xrcd_map, xrcd->xrcdn, 1);
	return err;
}

int rhca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct rhca_dev *dev = to_rhca(ibxrcd->device);
	struct rhca_xrcd *xrcd = to_rhca_xrcd(ibxrcd);

	rhca_bitmap_free(&dev->pd_map, xrcd->pdn, 1);
	rhca_bitmap_free(&dev->xrcd_map, xrcd->xrcdn, 1);
	return 0;
}
