// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: pages of the card's own, mapped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

/*
 * It is a device's: what is read and written are words of 32 bits, each once,
 * whatever the compiler makes of a memcpy().
 */
#define RHCA_DM_WORD	sizeof(uint32_t)

static int rhca_check_copy(const struct rhca_dm *dm, uint64_t offset,
			   size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return offset % RHCA_DM_WORD || length % RHCA_DM_WORD ? EINVAL : 0;
}

static int rhca_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset,
			     const void *host_addr, size_t length)
{
	struct rhca_dm *dm = to_rdm(ibdm);
	int err = rhca_check_copy(dm, offset, length);
	volatile uint32_t *to;
	const uint8_t *from = host_addr;
	uint32_t word;

	if (err)
		return err;
	to = (volatile uint32_t *)((uint8_t *)dm->addr + offset);
	for (; length; length -= RHCA_DM_WORD, from += RHCA_DM_WORD) {
		memcpy(&word, from, RHCA_DM_WORD);
		*to++ = word;
	}
	/* What is posted next may be of this memory. */
	mmio_flush_writes();
	return 0;
}

static int rhca_memcpy_from_dm(void *host_addr, struct ibv_dm *ibdm,
			       uint64_t offset, size_t length)
{
	struct rhca_dm *dm = to_rdm(ibdm);
	int err = rhca_check_copy(dm, offset, length);
	const volatile uint32_t *from;
	uint8_t *to = host_addr;
	uint32_t word;

	if (err)
		return err;
	/* Not before what was polled last. */
	udma_from_device_barrier();
	from = (const volatile uint32_t *)((uint8_t *)dm->addr + offset);
	for (; length; length -= RHCA_DM_WORD, to += RHCA_DM_WORD) {
		word = *from++;
		memcpy(to, &word, RHCA_DM_WORD);
	}
	return 0;
}

/* Some kernels call it a protocol that is not supported. */
static struct rhca_dm *rhca_new_dm(struct ibv_context *context)
{
	if (!to_rctx(context)->has_dm) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return calloc(1, sizeof(struct rhca_dm));
}

/* What the kernel has said of @dm. */
static int rhca_map_dm(struct ibv_context *context, struct rhca_dm *dm,
		       const struct rdma_hca_dm_resp *resp)
{
	dm->length = resp->length;
	dm->mapped = align(dm->length, sysconf(_SC_PAGESIZE));
	dm->addr = mmap(NULL, dm->mapped, PROT_READ | PROT_WRITE, MAP_SHARED,
			context->cmd_fd, resp->mmap_key);
	if (dm->addr == MAP_FAILED)
		return errno;
	dm->vdm.dm.memcpy_to_dm = rhca_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = rhca_memcpy_from_dm;
	return 0;
}

static int rhca_make_dm(struct ibv_context *context,
			const struct ibv_alloc_dm_attr *attr,
			struct rhca_dm *dm)
{
	DECLARE_COMMAND_BUFFER_LINK(driver, UVERBS_OBJECT_DM,
				    UVERBS_METHOD_DM_ALLOC, 1, NULL);
	struct rdma_hca_dm_resp resp = {};
	int err;

	fill_attr_out_ptr(driver, RDMA_HCA_ATTR_ALLOC_DM_RESP, &resp);
	err = ibv_cmd_alloc_dm(context, attr, &dm->vdm, driver);
	if (err)
		return err;
	err = rhca_map_dm(context, dm, &resp);
	if (err)
		ibv_cmd_free_dm(&dm->vdm);
	return err;
}

struct ibv_dm *rhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	struct rhca_dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	dm = rhca_new_dm(context);
	if (!dm)
		return NULL;
	err = rhca_make_dm(context, attr, dm);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	return &dm->vdm.dm;
}

void rhca_unimport_dm(struct ibv_dm *ibdm)
{
	struct rhca_dm *dm = to_rdm(ibdm);

	munmap(dm->addr, dm->mapped);
	free(dm);
}

/* While it has regions it stays, and can be used as before. */
int rhca_free_dm(struct ibv_dm *ibdm)
{
	int err;

	err = ibv_cmd_free_dm(&to_rdm(ibdm)->vdm);
	if (err)
		return err;
	rhca_unimport_dm(ibdm);
	return 0;
}

static int rhca_query_dm(struct ibv_context *context, uint32_t handle,
			 struct rdma_hca_dm_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, RDMA_HCA_METHOD_DM_QUERY,
			       2);

	fill_attr_in_obj(cmd, RDMA_HCA_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, RDMA_HCA_ATTR_DM_QUERY_RESP, resp);
	return execute_ioctl(context, cmd) ? errno : 0;
}

struct ibv_dm *rhca_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct rdma_hca_dm_resp resp = {};
	struct rhca_dm *dm;
	int err;

	dm = rhca_new_dm(context);
	if (!dm)
		return NULL;
	err = rhca_query_dm(context, handle, &resp);
	if (!err)
		err = rhca_map_dm(context, dm, &resp);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.context = context;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	return &dm->vdm.dm;
}

struct ibv_mr *rhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct rhca_dm *dm = to_rdm(ibdm);
	struct verbs_mr *vmr;
	int err;

	if (offset > dm->length || length > dm->length - offset) {
		errno = EINVAL;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dm_mr(pd, &dm->vdm, offset, length, access, vmr,
				NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}
