// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's part of what a process asks for by uverbs, and is told. What
 * the driver does not know it refuses, so that it can get a meaning later.
 */
#include "udata.h"

static bool rhca_is_cleared(struct ib_udata *udata, size_t from)
{
	return udata->inlen <= from ||
	       ib_is_udata_cleared(udata, from, udata->inlen - from);
}

int rhca_take_request(struct ib_udata *udata, void *req, size_t size)
{
	if (udata->inlen < size)
		return -EINVAL;
	if (!rhca_is_cleared(udata, size))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(req, udata, size);
}

int rhca_check_request(u32 comp_mask, u32 reserved)
{
	if (comp_mask)
		return -EOPNOTSUPP;
	return reserved ? -EINVAL : 0;
}

int rhca_take_no_request(struct ib_udata *udata)
{
	return !udata || rhca_is_cleared(udata, 0) ? 0 : -EOPNOTSUPP;
}

int rhca_respond(struct ib_udata *udata, const void *resp, size_t size)
{
	return ib_copy_to_udata(udata, (void *)resp, min(size, udata->outlen));
}
