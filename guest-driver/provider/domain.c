// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains, of this process or another one; thread domains, which
 * promise that one thread at a time uses what is made in them; and parent
 * domains, which add a thread domain and the application's own memory to a
 * protection domain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

/* --- protection domains ------------------------------------------------- */

static struct rhca_pd *rhca_pd_new(void)
{
	struct rhca_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		atomic_init(&pd->users, 0);
	return pd;
}

struct ibv_pd *rhca_alloc_pd(struct ibv_context *context)
{
	struct rhca_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct rhca_pd *pd;
	int err;

	pd = rhca_pd_new();
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(context, &pd->ibv_pd, &cmd, sizeof(cmd),
			       &resp.core, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibv_pd;
}

static int rhca_dealloc_parent_domain(struct rhca_pd *parent)
{
	atomic_fetch_sub(&parent->contained->users, 1);
	if (parent->td)
		atomic_fetch_sub(&parent->td->users, 1);
	free(parent);
	return 0;
}

int rhca_dealloc_pd(struct ibv_pd *ibpd)
{
	struct rhca_pd *pd = to_rpd(ibpd);
	int err;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->contained)
		return rhca_dealloc_parent_domain(pd);
	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;
	free(pd);
	return 0;
}

/* The kernel has no command that asks for a PD: who uses it finds out. */
struct ibv_pd *rhca_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct rhca_pd *pd = rhca_pd_new();

	if (!pd)
		return NULL;
	pd->ibv_pd.context = context;
	pd->ibv_pd.handle = handle;
	return &pd->ibv_pd;
}

void rhca_unimport_pd(struct ibv_pd *ibpd)
{
	free(to_rpd(ibpd));
}

/* --- thread and parent domains ------------------------------------------ */

/* There is nothing in the card that threads would have to share. */
struct ibv_td *rhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr)
{
	struct rhca_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = context;
	atomic_init(&td->users, 0);
	return &td->ibv_td;
}

int rhca_dealloc_td(struct ibv_td *ibtd)
{
	struct rhca_td *td = to_rtd(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

static int rhca_check_parent(const struct ibv_parent_domain_init_attr *attr)
{
	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		return EOPNOTSUPP;
	if (!attr->pd || to_rpd(attr->pd)->contained)
		return EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *
rhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr)
{
	struct rhca_pd *parent;
	int err;

	err = rhca_check_parent(attr);
	if (err) {
		errno = err;
		return NULL;
	}
	parent = rhca_pd_new();
	if (!parent)
		return NULL;
	ibv_initialize_parent_domain(&parent->ibv_pd, attr->pd);
	parent->contained = to_rpd(attr->pd);
	atomic_fetch_add(&parent->contained->users, 1);
	if (attr->td) {
		parent->td = to_rtd(attr->td);
		atomic_fetch_add(&parent->td->users, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->alloc_context = attr->pd_context;
	return &parent->ibv_pd;
}

struct rhca_pd *rhca_pd_use(struct ibv_pd *ibpd)
{
	struct rhca_pd *pd = to_rpd(ibpd);

	if (!pd->contained)
		return NULL;
	atomic_fetch_add(&pd->users, 1);
	return pd;
}

void rhca_pd_release(struct rhca_pd *parent)
{
	if (parent)
		atomic_fetch_sub(&parent->users, 1);
}
